//! Answers about some of the events: what other events say of threads is never left out.

use std::path::Path;

use kymo_analysis::{Answer, Cell};

use super::kind;
use super::tiny_trace::{Event, Packet, write};
use crate::{AnalyseFailure, AnalysisOptions, Filter, OpenOptions, Progress, Selection, Session};

fn event(time: u64, name: &str, values: &[(&str, i64)]) -> Event {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
    Event { time, name: name.to_owned(), values }
}

/// CPU 0 runs thread 7 and then 8, which take 1 and 2 and 4 pages; CPU 1 runs thread 9.
fn trace(folder: &Path) {
    let switch = |time, prev, next| event(time, "sched_switch", &[("prev_tid", prev), ("next_tid", next)]);
    let alloc = |time, order| event(time, "mm_page_alloc", &[("order", order)]);
    let events =
        vec![switch(100, 0, 7), alloc(150, 0), switch(200, 7, 8), alloc(250, 1), alloc(260, 2), switch(300, 8, 0)];
    let others = vec![switch(120, 0, 9), switch(290, 9, 0)];
    let packet = |cpu, events| Packet { cpu, begin: 100, end: 300, events, ..Packet::default() };
    write(folder, &[packet(0, events), packet(1, others)]);
}

fn selection(filter: &str) -> Selection {
    match filter.strip_prefix("names ") {
        Some(names) => Selection { events: vec![names.to_owned()], ..Selection::default() },
        None => Selection { filter: Some(Filter::parse(filter).unwrap()), ..Selection::default() },
    }
}

fn ask(folder: &Path, name: &str, filter: &str) -> Result<Answer, AnalyseFailure> {
    let options = AnalysisOptions { selection: selection(filter), ..AnalysisOptions::default() };
    let mut answers = Vec::new();
    for slice_bytes in [None, Some(1)] {
        let mut session = Session::open(&[folder.to_owned()], &OpenOptions::default()).unwrap();
        session.slice_bytes = slice_bytes;
        answers.push(session.ask(kind(name), &options, &Progress::default())?.answer);
    }
    assert_eq!(answers[0], answers[1], "{name} {filter}");
    Ok(answers.swap_remove(0))
}

/// Of each thread a number of the table of threads.
fn of_threads(answer: &Answer, column: &str) -> Vec<(i64, u64)> {
    let threads = answer.tables.iter().find(|table| table.class == "per-thread").unwrap();
    let column = threads.columns.iter().position(|known| known.name == column).unwrap();
    let number = |cell: &Cell| match cell {
        Cell::Count(bounded) | Cell::Duration(bounded) | Cell::Size(bounded) => bounded.value,
        cell => panic!("{cell:?}"),
    };
    let row = |row: &Vec<Cell>| match &row[0] {
        Cell::Process { tid: Some(tid), .. } => (*tid, number(&row[column])),
        cell => panic!("{cell:?}"),
    };
    let mut rows: Vec<(i64, u64)> = threads.rows.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn switches_tell_threads_also_where_they_are_not_selected() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    for filter in ["order > 0", "names mm_page_alloc", "event.name == \"mm_page_alloc\" && order > 0"] {
        let answer = ask(folder.path(), "memory", filter).unwrap();
        let taken = of_threads(&answer, "allocated");
        let all = filter.starts_with("names");
        assert_eq!(taken, if all { vec![(7, 1), (8, 6)] } else { vec![(8, 6)] }, "{filter}");
    }
}

#[test]
fn events_that_are_not_selected_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    for (filter, counts) in [
        ("order > 0", vec![(8, 2)]),
        ("names mm_page_alloc", vec![(7, 1), (8, 2)]),
        // A switch is of the thread that goes.
        ("next_tid == 0", vec![(8, 1), (9, 1)]),
        ("next_tid == 0 || order == 0", vec![(7, 1), (8, 1), (9, 1)]),
        ("names sched_switch", vec![(0, 2), (7, 1), (8, 1), (9, 1)]),
        ("cpu_id == 1", vec![(0, 1), (9, 1)]),
    ] {
        assert_eq!(of_threads(&ask(folder.path(), "threads", filter).unwrap(), "count"), counts, "{filter}");
    }
}

#[test]
fn without_some_switches_there_is_no_running_time() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    for filter in ["next_tid == 7", "order > 0", "names mm_page_alloc", "time > 0", "cpu_id == 1 || order == 0"] {
        for name in ["cpu", "sched"] {
            let failure = ask(folder.path(), name, filter).unwrap_err();
            assert!(matches!(failure, AnalyseFailure::NotAllSwitches { .. }), "{name} {filter}: {failure}");
            assert!(failure.to_string().contains("some of `sched_switch` out"), "{failure}");
        }
    }
    // Each of these leaves out whole CPUs, or no switch.
    let all = vec![(7, 100), (8, 100), (9, 170)];
    for (filter, times) in [
        ("cpu_id == 1", vec![(9, 170)]),
        ("cpu_id == 0 && stream.class_id == 0", vec![(7, 100), (8, 100)]),
        ("names sched_switch", all.clone()),
        ("env.tracer_name == \"lttng-modules\"", all),
        ("env.tracer_name == \"other\"", vec![]),
    ] {
        assert_eq!(of_threads(&ask(folder.path(), "cpu", filter).unwrap(), "run_time"), times, "{filter}");
    }
}

/// LTTng's channels are data stream classes of their own: the switches of a CPU may be in another one than its other events.
#[test]
fn switches_of_another_channel_tell_threads_too() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    let path = folder.path().join("metadata");
    let metadata = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, metadata + SECOND_CHANNEL).unwrap();
    let event = |time: u64, order: u64| [time.to_le_bytes(), order.to_le_bytes()].concat();
    let events = [event(150, 0), event(250, 1), event(260, 2)].concat();
    let head = [100_u64, 300].map(u64::to_le_bytes).concat();
    let magic = [0xC1FC_1FC1_u32, 1].map(u32::to_le_bytes).concat();
    std::fs::write(folder.path().join("other"), [&magic[..], &head, &0_u32.to_le_bytes(), &events].concat()).unwrap();
    // Both channels have the same pages, so that each is counted twice.
    for (filter, pages, counts) in
        [("order > 0", vec![(8, 12)], vec![(8, 4)]), ("order == 0", vec![(7, 2)], vec![(7, 2)])]
    {
        assert_eq!(of_threads(&ask(folder.path(), "memory", filter).unwrap(), "allocated"), pages, "{filter}");
        assert_eq!(of_threads(&ask(folder.path(), "threads", filter).unwrap(), "count"), counts, "{filter}");
        let failure = ask(folder.path(), "cpu", filter).unwrap_err();
        assert!(matches!(failure, AnalyseFailure::NotAllSwitches { .. }), "{filter}: {failure}");
    }
}

#[test]
fn fields_of_other_events_do_not_change_which_streams_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    let path = folder.path().join("metadata");
    let metadata = std::fs::read_to_string(&path).unwrap();
    let changed = metadata.replace("i64 _key;", "i64 _cpu_id;");
    assert_ne!(changed, metadata);
    std::fs::write(path, changed).unwrap();
    assert_eq!(of_threads(&ask(folder.path(), "cpu", "cpu_id == 1").unwrap(), "run_time"), [(9, 170)]);
}

const SECOND_CHANNEL: &str = "
stream {
    id = 1;
    packet.context := struct { time64 timestamp_begin; time64 timestamp_end; u32 cpu_id; };
    event.header := struct { time64 timestamp; };
};
event { id = 0; stream_id = 1; name = mm_page_alloc; fields := struct { i64 order; }; };
";
