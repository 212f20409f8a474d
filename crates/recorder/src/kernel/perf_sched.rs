//! Context switches from perf, where tracefs cannot be used.
//!
//! ```text
//! look n      a mark, and records of all CPUs ──> spool, which the helper keeps
//! converter   records up to a mark, in the order of time ──> SchedTracker ──> events of each CPU
//! ```
//!
//! A mark tells the clocks' times before the rings were read: all records of earlier times are there. Later ones wait for the next
//! mark, as those of another CPU that come before them may not have been read. It also tells the clocks' times of the mark before: so
//! the next recorder gives a record the same time as this one, and finds it in the packets that this one has written.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::sync::Arc;

use kymo_ftrace::KernelThreads;
use kymo_ftrace::perf_sched::{
    PERF_EVENTS, SchedFact, SchedRecord, SchedTracker, kernel_name, lost_record, next_record,
};
use kymo_lane::ClockSource;
use kymo_probe::helper::KnownEvents;
use kymo_probe::stacks::{StackFiles, StackRequest, StackRings};
use kymo_writer::WriteError;

use crate::kernel::KernelBeginning;
use crate::kernel::filter::{EventFilters, RecordedRecord};
use crate::kernel::marked::{ClockPair, MARK, next_entry, put_mark};
use crate::kernel::output::KernelOutput;
use crate::kernel::place::KernelPlace;
use crate::kernel::spool::{PageSpool, SpoolProgress};
use crate::kernel::wanted::WantedTimes;
use crate::protocol::Keep;
use crate::tracepoints::{StackOptions, chosen};

/// Bytes of the spool that are read at a time.
const TURN: usize = 1 << 20;
/// The PID namespace of the system itself has this number.
const INITIAL_NAMESPACE: &str = "pid:[4026531836]";
/// What perf does not tell.
pub(crate) const MISSING: &str = "wake-ups, system calls, interrupts, timers, disks and networks are missing";
const HELP: &str = "help: `sudo kymo doctor` says what keeps tracefs from being used; a container needs `--volume \
    /sys/kernel/tracing:/sys/kernel/tracing`";

/// Moves records from rings to their spool.
#[derive(Debug)]
pub(super) struct SchedReader {
    rings: StackRings,
    spool: Arc<PageSpool>,
    source: ClockSource,
    last: ClockPair,
    batch: Vec<u8>,
}

impl SchedReader {
    /// Moves all records, if there is room for them.
    pub(super) fn read(&mut self, has_room: bool, is_over: bool) -> io::Result<()> {
        self.spool.free();
        if !has_room {
            return Ok(());
        }
        let Self { rings, batch, source, last, .. } = self;
        batch.clear();
        let mark = ClockPair::now(*source);
        rings.drain(|cpu, records, was_full| {
            // The kernel counts losses before the next record, which does not come any more: there was one at least.
            let lost = if was_full && is_over { &lost_record(mark.nanos)[..] } else { &[] };
            put(batch, (records.len() + lost.len()) as u32, cpu, &[records, lost]);
        });
        let before = std::mem::replace(last, mark);
        put_mark(batch, [mark.nanos, mark.ticks, before.nanos, before.ticks]);
        self.spool.put(batch)?;
        // If this process is killed before, the next one reads them again.
        self.rings.release();
        Ok(())
    }

    /// Bytes that wait for conversion.
    pub(super) fn waiting(&self) -> u64 {
        self.spool.waiting()
    }

    /// Recording has taken so many nanoseconds of processor time: the next recorder counts it, too.
    pub(super) fn told_cost(&self, ns: u64) {
        self.spool.told_cost(ns);
    }
}

fn put(batch: &mut Vec<u8>, length: u32, cpu: u32, parts: &[&[u8]]) {
    batch.extend_from_slice(&length.to_le_bytes());
    batch.extend_from_slice(&cpu.to_le_bytes());
    parts.iter().for_each(|part| batch.extend_from_slice(part));
}

/// Filters, and the number of events that they did not keep.
type CountedFilters<'f> = (&'f mut EventFilters, &'f mut u64);

/// Counts of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SchedCounts {
    /// Events in the trace.
    pub(super) events: u64,
    /// Records that had no room.
    pub(super) lost: u64,
}

/// Records for the converter.
#[derive(Debug)]
pub(super) struct SchedFeed {
    pub(super) spool: Arc<PageSpool>,
    /// CPUs by their streams, and when the packets of an earlier recorder end there.
    cpus: Vec<(u32, Option<u64>)>,
    /// Names of the events that are wanted.
    events: Vec<String>,
    tracker: SchedTracker,
    last: ClockPair,
    /// The next mark, if it was read, with the clocks at the one before, and its end in the spool.
    mark: Option<([ClockPair; 2], u64)>,
    /// The end of the one before.
    before: u64,
    /// Records that were not converted, with the places of their CPUs.
    records: Vec<(usize, SchedRecord)>,
    turn: Vec<u8>,
    /// The spool cannot be read any more.
    is_gone: bool,
    pub(super) counts: SchedCounts,
}

/// The reader, and its way to the converter, which adds these events.
pub(super) fn begin(
    files: StackFiles,
    beginning: &KernelBeginning<'_>,
    (events, names): (&[String], &[(i32, Vec<u8>)]),
    source: ClockSource,
) -> Result<(SchedReader, SchedFeed), String> {
    let rings = StackRings::map(&files).map_err(|error| format!("rings of perf cannot be mapped: {error}"))?;
    let opened = PageSpool::open((0, 0), File::from(files.spool));
    let (spool, before) = opened.map_err(|error| format!("there is no memory for context switches: {error}"))?;
    let scope = beginning.options.scope.as_ref().map(|scope| threads(&scope.processes));
    let now = ClockPair::now(source);
    let mut tracker = SchedTracker::new(scope, is_initial_namespace());
    names.iter().for_each(|(tid, name)| tracker.knows(*tid, own_name(name)));
    let feed = SchedFeed {
        spool: Arc::clone(&spool),
        cpus: files.cpus.iter().map(|cpu| (*cpu, None)).collect(),
        events: events.iter().filter_map(|event| Some(event.split_once(':')?.1.to_owned())).collect(),
        tracker,
        last: now,
        mark: None,
        before: before.done,
        records: Vec::new(),
        turn: Vec::new(),
        is_gone: false,
        counts: SchedCounts { events: before.events, lost: before.understood },
    };
    Ok((SchedReader { rings, spool, source, last: now, batch: Vec::new() }, feed))
}

fn threads(processes: &[u32]) -> HashSet<i32> {
    processes.iter().flat_map(|process| numbers(&format!("/proc/{process}/task"))).collect()
}

/// Names of threads, before anything is recorded: some are gone when the state of the system is written.
pub(super) fn names() -> Vec<(i32, Vec<u8>)> {
    let threads = numbers("/proc").into_iter().flat_map(|process| numbers(&format!("/proc/{process}/task")));
    let name = |tid: i32| {
        let mut name = fs::read(format!("/proc/{tid}/comm")).ok()?;
        name.pop();
        Some((tid, name))
    };
    threads.filter_map(name).collect()
}

/// The name of a worker of the kernel without the work that `/proc` puts behind it: `kworker/0:1-events`.
fn own_name(name: &[u8]) -> &[u8] {
    let number = if name.starts_with(b"kworker/") { name.iter().position(|byte| *byte == b':') } else { None };
    let end = number.and_then(|at| Some(at + name[at..].iter().position(|byte| matches!(byte, b'-' | b'+'))?));
    &name[..end.unwrap_or(name.len())]
}

fn numbers(folder: &str) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn is_initial_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() == INITIAL_NAMESPACE)
}

impl SchedFeed {
    /// Streams of its CPUs.
    pub(super) fn streams(&self) -> Vec<(u8, u32)> {
        self.cpus.iter().map(|(cpu, _)| (0, *cpu)).collect()
    }

    /// Events of packets that an earlier recorder has written, at this place, are there already.
    pub(super) fn goes_on(&mut self, place: &KernelPlace, base: u64) {
        for (cpu, until) in &mut self.cpus {
            *until = place.written_until(0, *cpu).map(|cycles| cycles + base);
        }
    }

    /// Threads have these names.
    pub(super) fn knows(&mut self, threads: &mut KernelThreads) {
        for (tid, name) in threads.take_names() {
            self.tracker.knows(tid.cast_signed(), own_name(&name));
        }
    }

    /// Whether records wait for conversion.
    pub(super) fn waits(&self) -> bool {
        self.mark.is_some() || !self.is_gone && self.spool.waiting() > 0
    }

    /// Ticks up to which records are converted.
    pub(super) fn until(&self) -> u64 {
        self.last.ticks
    }

    /// Converts records up to the next mark, if it is known which times are wanted until then; returns whether it did.
    pub(super) fn convert(
        &mut self,
        output: &mut KernelOutput,
        wanted: &WantedTimes,
        filters: CountedFilters<'_>,
    ) -> Result<bool, String> {
        let (filters, filtered) = filters;
        if self.mark.is_none() && !self.is_gone {
            self.read().map_err(|error| {
                self.is_gone = true;
                format!("context switches are gone: {error}")
            })?;
        }
        let known = self.mark.filter(|([mark, _], _)| mark.ticks <= wanted.known_until);
        let Some(([mark, before], end)) = known else { return Ok(false) };
        self.mark = None;
        // Those of a CPU are in order mostly: an interrupt may tell something between the time of a record and its place.
        self.records.sort_by_key(|(_, record)| record.nanos);
        let mut records = std::mem::take(&mut self.records);
        let due = records.partition_point(|(_, record)| record.nanos <= mark.nanos);
        let mut converted = Ok(());
        for (at, record) in records.drain(..due) {
            let ticks = before.ticks_at(mark, record.nanos);
            let filters = (&mut *filters, &mut *filtered);
            converted = converted.and(self.record((at, ticks), &record, (output, wanted), filters));
        }
        for at in 0..self.cpus.len() {
            converted = converted.and(output.flush(at));
        }
        (self.records, self.last) = (records, mark);
        // Records behind the last mark but one may still wait.
        let SchedCounts { events, lost } = self.counts;
        self.spool.is_done(&SpoolProgress { done: self.before, events, understood: lost });
        self.before = end;
        converted.map_err(|error| error.to_string()).map(|()| true)
    }

    /// Reads entries up to the next mark.
    fn read(&mut self) -> io::Result<()> {
        let mut most = TURN;
        while self.mark.is_none() {
            let place = self.spool.place();
            self.spool.peek(most, &mut self.turn)?;
            let turn = std::mem::take(&mut self.turn);
            let mut rest = &turn[..];
            while let Some((length, cpu, entry, behind)) = next_entry(rest).filter(|_| self.mark.is_none()) {
                rest = behind;
                if length & MARK != 0 {
                    let number = |at: usize| entry.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                    let end = place + (turn.len() - rest.len()) as u64;
                    let pair = |at: usize| Some(ClockPair { nanos: number(at)?, ticks: number(at + 8)? });
                    self.mark = pair(0).zip(pair(16)).map(|(mark, before)| ([mark, before], end));
                } else if let Some(at) = self.cpus.iter().position(|(known, _)| *known == cpu) {
                    self.records.extend(records(entry).map(|record| (at, record)));
                }
            }
            let used = turn.len() - rest.len();
            // One entry has all that a ring had.
            let next = rest.first_chunk().map_or(0, |length| (u32::from_le_bytes(*length) & !MARK) as usize + 8);
            self.turn = turn;
            self.spool.used(used);
            if used == 0 && (next <= most || self.spool.waiting() < next as u64) {
                break;
            }
            most = TURN.max(next);
        }
        Ok(())
    }

    fn record(
        &mut self,
        (at, ticks): (usize, u64),
        record: &SchedRecord,
        (output, wanted): (&mut KernelOutput, &WantedTimes),
        (filters, filtered): CountedFilters<'_>,
    ) -> Result<(), WriteError> {
        let Self { cpus, events, tracker, counts, last, .. } = self;
        let (cpu, until) = &mut cpus[at];
        if let SchedFact::Lost { records } = record.fact {
            tracker.loses(*cpu);
            if !wanted.overlaps(last.ticks.min(ticks), ticks) {
                return Ok(());
            }
            counts.lost += records;
            return output.loses(at, records);
        }
        let is_written = until.is_some_and(|until| ticks <= until);
        *until = until.filter(|_| is_written);
        let mut written = Ok(());
        tracker.record(*cpu, record, |event| {
            if wanted.has(ticks) && !is_written && events.iter().any(|name| name == event.name) {
                let (name, kernel) = ((event.name, event.variant), kernel_name(event.name));
                let values = RecordedRecord { cpu: *cpu, tid: record.tid, payload: event.fields.bytes() };
                let is_kept =
                    filters.is_empty() || filters.of_named(name, kernel, || event.fields.class()).keeps(&values);
                if !is_kept {
                    *filtered += 1;
                    return;
                }
                counts.events += 1;
                let added = output.sched_event(at, ticks, &event);
                written = std::mem::replace(&mut written, Ok(())).and(added);
            }
        });
        written
    }
}

/// Records of an entry, whole ones.
fn records(mut entry: &[u8]) -> impl Iterator<Item = SchedRecord> {
    std::iter::from_fn(move || {
        let (record, rest) = next_record(entry)?;
        entry = rest;
        Some(record)
    })
    .filter(|record| record.fact != SchedFact::Other)
}

/// The events of options that perf gives, where tracefs cannot be used.
pub(super) fn chosen_of_perf(beginning: &KernelBeginning<'_>, known: &KnownEvents) -> Result<Vec<String>, String> {
    let (options, why) = (beginning.options, known.tracefs_absent.as_deref().unwrap_or_default());
    let refused = |about: &str| Err(refusal(about, why));
    if beginning.keep == Keep::Newest {
        return refused("a flight recorder keeps no events of the kernel");
    }
    if !options.probes.requests.is_empty() {
        return refused("there are no probes");
    }
    chosen_of(&options.events, known)
}

/// The events of patterns that perf gives.
pub(super) fn chosen_of(patterns: &[String], known: &KnownEvents) -> Result<Vec<String>, String> {
    let refused = |about: &str| Err(refusal(about, known.tracefs_absent.as_deref().unwrap_or_default()));
    // Those that are left out need not be there.
    let is_there =
        |pattern: &&String| !pattern.starts_with('!') || chosen(&[pattern[1..].to_owned()], &known.events).is_ok();
    let patterns: Vec<String> = patterns.iter().filter(is_there).cloned().collect();
    let named = patterns.iter().filter(|pattern| !pattern.starts_with(['?', '!']));
    for pattern in named {
        if chosen(std::slice::from_ref(pattern), &known.events).is_err() {
            let given = PERF_EVENTS.join(", ");
            let about = format!("`{pattern}` cannot be recorded, as perf gives {given} alone,");
            return refused(&about);
        }
    }
    chosen(&patterns, &known.events).or_else(|_| refused("none of these events can be recorded"))
}

fn refusal(about: &str, why: &str) -> String {
    format!("{about} without tracefs: {why}\n{HELP}")
}

/// Call stacks of samples: tracefs tells the numbers of all other events.
pub(super) fn samples(options: &StackOptions, why: &str) -> Result<StackRequest, String> {
    let named = options.events.iter().find(|pattern| !pattern.starts_with(['?', '!']));
    match (named, options.hz) {
        (Some(pattern), _) => Err(refusal(&format!("`{pattern}` has no call stacks"), why)),
        (None, 0) => Err(refusal("none of these events has call stacks", why)),
        (None, hz) => Ok(StackRequest { hz, events: Vec::new() }),
    }
}

/// What is missing in a recording without tracefs, and why.
pub(super) fn missing(why: &str) -> String {
    let outside = match is_initial_namespace() {
        true => "",
        false => "; threads outside of this PID namespace have the number of an idle CPU, 0",
    };
    format!("cannot be used: {why}; perf tells switches, forks, names and ends of threads: {MISSING}{outside}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_their_own_names() {
        let of = |name: &'static str| std::str::from_utf8(own_name(name.as_bytes())).expect("it is text");
        let names = ["kworker/0:1-eve", "kworker/u8:2+kv", "kworker/0:0H", "kworker/R-netns", "a:b-c"].map(of);
        assert_eq!(names, ["kworker/0:1", "kworker/u8:2", "kworker/0:0H", "kworker/R-netns", "a:b-c"]);
    }

    #[test]
    fn entries_are_split() {
        let lost = lost_record(7);
        let mut bytes = Vec::new();
        put(&mut bytes, 2 * lost.len() as u32, 3, &[&lost, &lost]);
        put_mark(&mut bytes, [1; 4]);
        let (length, cpu, entry, rest) = next_entry(&bytes).expect("it is whole");
        assert_eq!((length as usize, cpu, records(entry).count()), (2 * lost.len(), 3, 2));
        assert_eq!(next_entry(rest).map(|(length, ..)| length), Some(32 | MARK));
        assert_eq!(next_entry(&rest[..10]), None);
    }
}
