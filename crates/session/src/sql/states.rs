//! The states of each thread from when to when, as a table: the runs that `kymo state` asks at an
//! instant.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_analysis::runs::StateRun;
use kymo_analysis::states::{DOUBT, Entity, EntityKind, RunTexts, ThreadState, thread_track};
use kymo_sql::TableError;
use kymo_table::RecordBatch;
use kymo_table::arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray, StringDictionaryBuilder, TimestampNanosecondArray,
    UInt32Array,
};
use kymo_table::arrow::datatypes::{Field, Int32Type, Schema};

use crate::answers::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::Report;

/// A row for each time that a thread was in one state, by thread and in the order of time.
pub(super) fn thread_states(
    session: &Session,
    options: &AnalysisOptions,
    progress: &Progress,
) -> Result<(RecordBatch, Report), TableError> {
    let (runs, texts, report) = session.all_runs(options, progress)?;
    let mut states: Vec<StateRun> = Vec::new();
    let mut names: HashMap<(u16, i32), Vec<StateRun>> = HashMap::new();
    for run in runs {
        match Entity::of_key(run.key) {
            Some((EntityKind::Thread, _, _, thread_track::STATE)) => states.push(run),
            Some((EntityKind::Thread, host, tid, thread_track::NAME)) => {
                names.entry((host, tid)).or_default().push(run);
            }
            _ => {}
        }
    }
    states.sort_unstable();
    names.values_mut().for_each(|runs| runs.sort_unstable_by_key(|run| run.begin));
    Ok((table(&states, &names, &texts, session.times_are_unix())?, report))
}

fn table(
    states: &[StateRun],
    names: &HashMap<(u16, i32), Vec<StateRun>>,
    texts: &RunTexts,
    are_unix: bool,
) -> Result<RecordBatch, TableError> {
    let thread = |run: &StateRun| Entity::of_key(run.key).map_or((0, 0), |(_, host, tid, _)| (host, tid));
    let name = |run: &StateRun| {
        let names = names.get(&thread(run))?;
        // The name that it had when the state ended: threads get theirs late.
        let place = names.partition_point(|name| name.begin < run.end).checked_sub(1)?;
        texts.names.get(&names[place].value)?.text()
    };
    let mut comms = StringDictionaryBuilder::<Int32Type>::new();
    states.iter().for_each(|run| comms.append_option(name(run)));
    let mut doings = StringDictionaryBuilder::<Int32Type>::new();
    states.iter().for_each(|run| doings.append_option(ThreadState::of(run.value).map(|doing| doing.0.name())));
    let cpu = |run: &StateRun| {
        ThreadState::of(run.value).filter(|doing| doing.0 == ThreadState::Running).map(|doing| doing.1)
    };
    let known = |time: i64| Some(time).filter(|time| !matches!(*time, i64::MIN | i64::MAX));
    let length = |run: &StateRun| known(run.begin).zip(known(run.end)).map(|(begin, end)| end - begin);
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("tid", Arc::new(states.iter().map(|run| Some(thread(run).1)).collect::<Int32Array>())),
        ("comm", Arc::new(comms.finish())),
        ("state", Arc::new(doings.finish())),
        ("cpu", Arc::new(states.iter().map(cpu).collect::<UInt32Array>())),
        ("begin", times(states.iter().map(|run| known(run.begin)), are_unix)),
        ("end", times(states.iter().map(|run| known(run.end)), are_unix)),
        ("duration", Arc::new(states.iter().map(length).collect::<Int64Array>())),
        ("uncertain", Arc::new(states.iter().map(|run| Some(run.value & DOUBT != 0)).collect::<BooleanArray>())),
    ];
    let has_hosts = states.iter().any(|run| thread(run).0 > 0);
    if has_hosts {
        columns.push((
            "host",
            Arc::new(states.iter().map(|run| Some(thread(run).0.to_string())).collect::<StringArray>()),
        ));
    }
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// Nanoseconds as what they mean.
fn times(nanos: impl Iterator<Item = Option<i64>>, are_unix: bool) -> ArrayRef {
    if are_unix {
        Arc::new(nanos.collect::<TimestampNanosecondArray>().with_timezone("UTC"))
    } else {
        Arc::new(nanos.collect::<Int64Array>())
    }
}
