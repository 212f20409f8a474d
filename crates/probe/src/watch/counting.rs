//! Maps and programs of a request, as long as they are wanted: they go when this value does, and so when the helper ends.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use kymo_filter::bpf;
use kymo_ir::Encoding;
use kymo_ir::predicate::{ArgumentLayout, InputClass, InputKind, InputPlace, Predicate};
use kymo_units::ByteOrder;

use super::begins::{BegunThings, begin_programs, begins};
use super::fields::{TracepointFields, WatchKind, WatchableEvents, WatchedField};
use super::parts::{ReadPart, described, found, part};
use super::program::{CompiledCondition, CountingMaps, CountingPlan, TALLY_BYTES, UNBEGUN, UNPLACED, counted};
use super::{
    AnyInteger, BEGIN_KEYS_MAX, BUCKETS, WATCH_KEYS_MAX, WATCH_ROWS_MAX, WATCHED_EVENTS_MAX, WatchCondition, WatchCost,
    WatchCounts, WatchPath, WatchRequest, WatchRow, WatchValue, WatchedEvent,
};
use crate::error::KernelAction;
use crate::linux::tables::{self, EntryBytes, ProgramRuns};
use crate::linux::{BpfMapShape, Loaded, MapKind};
use crate::loading::{attach, load, map, told};
use crate::perf_sched;
use crate::thread_limit::{RecordedThreads, ThreadLimit};

/// Bytes of the rows at most, with the numbers of each CPU.
const ROWS_BYTES_MAX: usize = 256 << 20;
/// Fields of a condition at most.
const INPUTS_MAX: usize = 64;
/// Sums of a row at most.
const SUMS_MAX: usize = 4;

const MACHINE_ORDER: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

/// A request that is counted.
#[derive(Debug)]
pub(crate) struct KernelCounts {
    counts: OwnedFd,
    bytes: EntryBytes,
    /// Keys of rows.
    keys: Vec<ReadPart>,
    /// Of each sum: whether it may be negative.
    signs: Vec<bool>,
    has_buckets: bool,
    _begins: Option<BegunThings>,
    tally: OwnedFd,
    programs: Vec<Loaded>,
    /// The programs run as long as these are there.
    links: Vec<OwnedFd>,
    cpus: usize,
    measured: WatchCost,
    measuring: Option<Measuring>,
    begun: Instant,
    /// When counting stopped.
    ended: Option<Instant>,
}

/// A time in which the kernel measures programs.
#[derive(Debug)]
struct Measuring {
    begun: Instant,
    before: ProgramRuns,
    _statistics: OwnedFd,
}

impl KernelCounts {
    /// Begins; if there is a limit, with events of its threads alone.
    ///
    /// # Errors
    ///
    /// Why not, in sentences; with the verifier's log, if it has refused a program.
    pub(crate) fn begin(request: &WatchRequest, limit: Option<&ThreadLimit>) -> Result<Self, String> {
        check(request)?;
        let events = WatchableEvents::of_this_kernel()?;
        let mut plans = plans(request, &events)?;
        let ends = plans.iter_mut().filter_map(|(plan, _)| plan.since.as_mut()).collect();
        let (begins, mut programs) = begin_programs(&mut begins(&request.begins, &events)?, ends)?;
        let (keys, has_buckets) = (plans[0].0.keys.clone(), plans[0].0.histogram.is_some());
        let signs = signs(&plans);
        // The kernel has a value for each.
        let cpus = perf_sched::possible_cpus()?.len();
        let value_bytes = 8 * (1 + request.events[0].sums.len());
        let (counts, bytes) = counts_map((&keys, has_buckets), value_bytes, cpus, request)?;
        let tally_shape = BpfMapShape {
            kind: MapKind::Array,
            key_bytes: 4,
            value_bytes: TALLY_BYTES,
            entries: 1,
            flags: 0,
            inner: None,
        };
        let tally = map(tally_shape, "kymo_tally")?;
        let maps = CountingMaps {
            counts: counts.as_fd(),
            begins: begins.as_ref().map(BegunThings::of_programs),
            tally: tally.as_fd(),
            is_shared: plans.len() > 1,
            threads: limit,
        };
        for (plan, number) in &plans {
            let code = counted(plan, maps).map_err(|problem| problem.to_string())?;
            programs.push(load(&code, "kymo_watch", *number)?);
        }
        let links = programs.iter().map(attach).collect::<Result<_, _>>()?;
        Ok(Self {
            counts,
            bytes,
            keys,
            signs,
            has_buckets,
            _begins: begins,
            tally,
            programs,
            links,
            cpus,
            measured: WatchCost::default(),
            measuring: None,
            begun: Instant::now(),
            ended: None,
        })
    }

    /// Counts no more: counts stay as they are.
    pub(crate) fn stop(&mut self) {
        self.links.clear();
        self.ended.get_or_insert_with(Instant::now);
    }

    /// The counts until now.
    ///
    /// # Errors
    ///
    /// The kernel's, in a sentence.
    pub(crate) fn counts(&self) -> Result<WatchCounts, String> {
        let entries = tables::entries(self.counts.as_fd(), self.bytes).map_err(told(KernelAction::Map))?;
        let tally = tables::only_value(self.tally.as_fd(), TALLY_BYTES as usize).map_err(told(KernelAction::Map))?;
        let keys = entries.keys.chunks_exact(self.bytes.key);
        let rows =
            keys.zip(entries.values.chunks_exact(self.bytes.value)).filter_map(|(key, value)| self.row(key, value));
        let rows = rows.collect();
        Ok(WatchCounts {
            rows,
            unplaced: number(&tally, UNPLACED),
            unbegun: number(&tally, UNBEGUN),
            missed: self.runs().missed,
            counted_ns: (self.ended.unwrap_or_else(Instant::now) - self.begun).as_nanos() as u64,
            cost: WatchCost { helper_ns: own_nanos(), ..self.measured },
        })
    }

    fn runs(&self) -> ProgramRuns {
        let all = self.programs.iter().filter_map(|program| tables::runs(program.as_fd()).ok());
        all.fold(ProgramRuns::default(), |all, one| ProgramRuns {
            run_ns: all.run_ns + one.run_ns,
            runs: all.runs + one.runs,
            missed: all.missed + one.missed,
        })
    }

    /// From now on, the kernel measures its programs; or it does no more.
    pub(crate) fn measure(&mut self, is_on: bool) {
        let now = self.runs();
        if let Some(Measuring { begun, before, .. }) = self.measuring.take() {
            self.measured.measured_ns += begun.elapsed().as_nanos() as u64;
            self.measured.run_ns += now.run_ns.saturating_sub(before.run_ns);
            self.measured.runs += now.runs.saturating_sub(before.runs);
        }
        if is_on {
            // Not every user may: then the cost is not known.
            let statistics = tables::measure().ok();
            self.measuring =
                statistics.map(|statistics| Measuring { begun: Instant::now(), before: now, _statistics: statistics });
        }
    }

    /// A row; `None`: it has no events.
    fn row(&self, key: &[u8], value: &[u8]) -> Option<WatchRow> {
        let each = self.bytes.value / self.cpus;
        let of_cpus = |at: usize| value.chunks_exact(each).map(move |cpu| number(cpu, at));
        let count = of_cpus(0).fold(0, u64::saturating_add);
        let (mut at, mut keys) = (0, Vec::with_capacity(self.keys.len()));
        for part in &self.keys {
            keys.push(match part.text {
                Some(capacity) => {
                    let text = &key[at..at + capacity as usize];
                    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
                    WatchValue::Text(String::from_utf8_lossy(&text[..end]).into_owned())
                }
                None => WatchValue::Number(number(key, at) as i64),
            });
            at += part.bytes() as usize;
        }
        let bucket = key.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| u32::from_ne_bytes(*bytes));
        // The sum of one CPU has 64 bits, that of all has more.
        let sum = |at, is_signed: bool| -> i128 {
            of_cpus(at).map(|sum| if is_signed { i128::from(sum as i64) } else { i128::from(sum) }).sum()
        };
        let sums = (8..each).step_by(8).zip(&self.signs).map(|(at, sign)| AnyInteger(sum(at, *sign))).collect();
        (count > 0).then(|| WatchRow { keys, bucket: bucket.filter(|_| self.has_buckets), count, sums })
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Processor time of this thread, which is the helper's only one.
fn own_nanos() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Numbers of things in a request are those that it may have.
fn check(request: &WatchRequest) -> Result<(), String> {
    let Some(first) = request.events.first() else { return Err("no event is to be counted".to_owned()) };
    let programs = request.events.len() + request.begins.len();
    if programs > WATCHED_EVENTS_MAX {
        return Err(format!("{programs} events are too many: at most {WATCHED_EVENTS_MAX} are watched at a time"));
    }
    let shape = |event: &WatchedEvent| (event.keys.len(), event.sums.len(), event.histogram.is_some());
    if request.events.iter().any(|event| shape(event) != shape(first)) {
        return Err("all events of a question have the same keys, sums and histogram".to_owned());
    }
    let inputs = |event: &WatchedEvent| event.condition.as_ref().map_or(0, |condition| condition.inputs.len());
    if request.events.iter().any(|event| inputs(event) > INPUTS_MAX) {
        return Err(format!("a condition has at most {INPUTS_MAX} fields"));
    }
    let since = request.events.iter().filter_map(|event| event.since.as_ref());
    if since.chain(request.begins.iter().map(|begin| &begin.keys)).any(|keys| keys.len() > BEGIN_KEYS_MAX) {
        return Err(format!("begin and end have at most {BEGIN_KEYS_MAX} fields in common"));
    }
    if request.events.iter().any(|event| event.since.is_some() == request.begins.is_empty()) {
        return Err("events that end something need others that begin it".to_owned());
    }
    if first.keys.len() > WATCH_KEYS_MAX || first.sums.len() > SUMS_MAX {
        return Err(format!("a row has at most {WATCH_KEYS_MAX} keys and {SUMS_MAX} sums"));
    }
    Ok(())
}

/// A program to be written, and the number of the tracepoint's type.
type PlannedProgram = (CountingPlan, u32);

fn plans(request: &WatchRequest, events: &WatchableEvents) -> Result<Vec<PlannedProgram>, String> {
    let mut plans = Vec::new();
    for (number, event) in request.events.iter().enumerate() {
        let fields = described(events, &event.name, event.since.is_some())?;
        let parts = |paths: &[WatchPath]| paths.iter().map(|path| part(&fields, path)).collect::<Result<Vec<_>, _>>();
        let condition = event.condition.as_ref().map(|condition| compiled(&fields, condition)).transpose()?;
        let sums = event.sums.iter().map(|path| integer(&fields, path));
        let histogram = event.histogram.as_ref().map(|path| integer(&fields, path)).transpose()?;
        let plan = CountingPlan {
            event: number as i32,
            condition,
            keys: parts(&event.keys)?,
            sums: sums.map(|sum| sum.map(|(field, is_signed)| (field.source, is_signed))).collect::<Result<_, _>>()?,
            histogram: histogram.map(|(field, is_signed)| (field.source, is_signed)),
            since: event.since.as_deref().map(parts).transpose()?,
            threads: RecordedThreads::of(&event.system, &event.name),
        };
        plans.push((plan, fields.number));
    }
    level(&mut plans)?;
    Ok(plans)
}

/// A text has as much room in the rows of all events.
fn level(plans: &mut [PlannedProgram]) -> Result<(), String> {
    for key in 0..plans[0].0.keys.len() {
        let most = plans.iter().map(|(plan, _)| plan.keys[key].text).max().flatten();
        for (plan, _) in plans.iter_mut() {
            if plan.keys[key].text.is_some() != most.is_some() {
                return Err("a key that is a number for one event and a text for another is none".to_owned());
            }
            plan.keys[key].text = most;
        }
    }
    Ok(())
}

/// Whether sums may be negative: unsigned numbers of fewer than 64 bits may be added to others.
fn signs(plans: &[PlannedProgram]) -> Vec<bool> {
    let count = plans[0].0.sums.len();
    (0..count).map(|sum| plans.iter().any(|(plan, _)| plan.sums[sum].1)).collect()
}

/// An integer, and whether it may be negative.
fn integer(fields: &TracepointFields<'_>, path: &WatchPath) -> Result<(WatchedField, bool), String> {
    let field = found(fields, path)?;
    match field.kind {
        WatchKind::Integer { is_signed, .. } => Ok((field, is_signed)),
        WatchKind::Text { .. } => Err(format!("`{path}` is a text, and no number")),
    }
}

/// The instructions of a condition, and the values that they need.
pub(crate) fn compiled(fields: &TracepointFields<'_>, condition: &WatchCondition) -> Result<CompiledCondition, String> {
    let (mut inputs, mut classes, mut places, mut offset) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for path in &condition.inputs {
        let kind = match found(fields, path)?.kind {
            WatchKind::Integer { bits, is_signed } => InputKind::Integer { signed: is_signed, bits },
            WatchKind::Text { .. } => InputKind::Text(Encoding::Utf8),
        };
        let part = part(fields, path)?;
        places.push(match part.text {
            Some(capacity) => InputPlace::Inline { offset, capacity },
            None => InputPlace::Integer { offset, bytes: 8, order: MACHINE_ORDER },
        });
        classes.push(InputClass { name: path.to_string().into(), kind, optional: false });
        offset += part.bytes();
        inputs.push(part);
    }
    let predicate = Predicate { inputs: classes, root: condition.tree.test() };
    let layout = ArgumentLayout { size: offset, places };
    let program = bpf::compile(&predicate, &layout)
        .map_err(|refusal| format!("the kernel cannot test this condition: {refusal}"))?;
    let instructions = program.iter().map(|instruction| instruction.to_bytes()).collect();
    Ok(CompiledCondition { inputs, instructions })
}

/// The map of rows, and the sizes of its entries.
fn counts_map(
    (keys, has_buckets): (&[ReadPart], bool),
    value_bytes: usize,
    cpus: usize,
    request: &WatchRequest,
) -> Result<(OwnedFd, EntryBytes), String> {
    let bucket_bytes = if has_buckets { 8 } else { 0 };
    let is_hash = !keys.is_empty();
    let key_bytes = if is_hash { keys.iter().map(ReadPart::bytes).sum::<u32>() + bucket_bytes } else { 4 };
    let entries = match (is_hash, has_buckets) {
        (true, _) => fitting_rows(request, key_bytes as usize + value_bytes * cpus)?,
        (false, true) => BUCKETS + 1,
        (false, false) => 1,
    };
    let kind = if is_hash { MapKind::HashOfCpus } else { MapKind::ArrayOfCpus };
    let shape = BpfMapShape { kind, key_bytes, value_bytes: value_bytes as u32, entries, flags: 0, inner: None };
    let counts = map(shape, "kymo_counts")?;
    Ok((counts, EntryBytes { key: key_bytes as usize, value: value_bytes * cpus, is_hash, entries }))
}

/// Rows of so many bytes that there is room for.
fn fitting_rows(request: &WatchRequest, row_bytes: usize) -> Result<u32, String> {
    let fit = u32::try_from(ROWS_BYTES_MAX / row_bytes).unwrap_or(u32::MAX).min(WATCH_ROWS_MAX);
    let rows = request.rows.max(1);
    if rows <= fit || request.may_be_fewer && fit > 0 {
        return Ok(rows.min(fit));
    }
    Err(format!("{rows} rows of {row_bytes} bytes are too many: {fit} fit into {} MiB", ROWS_BYTES_MAX >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_no_more_memory_than_they_may() {
        let rows = |rows, may_be_fewer, bytes| {
            fitting_rows(&WatchRequest { events: Vec::new(), begins: Vec::new(), rows, may_be_fewer }, bytes)
        };
        assert_eq!((rows(1000, false, 100), rows(0, false, 100)), (Ok(1000), Ok(1)));
        assert_eq!(rows(1 << 20, true, 1 << 10), Ok(1 << 18));
        let why = rows(1 << 20, false, 1 << 10).expect_err("they are too many");
        assert_eq!(why, "1048576 rows of 1024 bytes are too many: 262144 fit into 256 MiB");
        assert!(rows(1, true, 1 << 30).is_err(), "not one fits");
    }
}
