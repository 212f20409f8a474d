//! Context switches as perf events tell them, where tracefs cannot be used: records, and the events with LTTng's names that
//! they become.
//!
//! ```text
//! SWITCH_CPU_WIDE, out of a thread, and into the next one ─> sched_switch
//! FORK, EXIT ──────────────────────────────────────────────> sched_process_fork, sched_process_exit
//! COMM ────────────────────────────────────────────────────> task_rename, and sched_process_exec
//! ```
//!
//! A field that the kernel does not tell is not there. `prev_state` is 0 of a thread that was preempted, 0x10 of one of which the
//! kernel has let go, and is not there of one that waits: perf does not say for what. So an event of one name may have several
//! classes. The last switch of a process is one of these, too, as long as its parent has not asked for its end: EXIT does not tell
//! which switch is the last, as newer kernels tell it before the process gives back its memory and files.
//!
//! The perf events were opened with `PERF_SAMPLE_TID`, `PERF_SAMPLE_TIME` and `sample_id_all`.

use std::collections::{HashMap, HashSet};

use kymo_format::model::FieldClass;

use crate::fields::{FieldList, KernelValue};
use crate::listing::ListedEvent;

/// Bytes before what a record says, and behind it: process and thread, and the time.
const HEAD: usize = 8;
const TRAILER: usize = 16;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SWITCH: u32 = 15;
const IS_EXEC: u16 = 1 << 13;
const IS_OUT: u16 = 1 << 13;
const IS_PREEMPTED: u16 = 1 << 14;
/// Bytes of a name, with a zero at least.
const NAME: usize = 16;
/// The number of a thread that has ended, and of which the kernel has let go.
const GONE: i32 = -1;
/// States of LTTng.
const RUNNABLE: i64 = 0;
const DEAD: i64 = 0x10;

/// Events that perf gives without tracefs, as `SYSTEM:NAME`.
pub const PERF_EVENTS: [&str; 5] = [
    "sched:sched_switch",
    "sched:sched_process_fork",
    "sched:sched_process_exec",
    "sched:sched_process_exit",
    "task:task_rename",
];

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedRecord {
    /// Nanoseconds of the clock.
    pub nanos: u64,
    /// The thread that ran.
    pub tid: i32,
    /// The fact.
    pub fact: SchedFact,
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SchedFact {
    /// The thread stops, and the other one runs.
    Out { next: i32, is_preempted: bool },
    /// The thread runs, and the other one did before.
    In { prev: i32 },
    /// A thread has a new name; it became another program.
    Name { tid: i32, name: [u8; NAME], is_exec: bool },
    /// A thread was made.
    Fork { tid: i32, pid: i32, parent_tid: i32, parent_pid: i32 },
    /// A thread ends.
    Exit { tid: i32 },
    /// Records had no room before this one.
    Lost { records: u64 },
    /// Another one.
    Other,
}

/// Splits off the first record; `None`: there is none, or it is not whole.
///
/// ```
/// use kymo_ftrace::perf_sched::{SchedFact, lost_record, next_record};
///
/// let bytes = lost_record(77);
/// let (record, rest) = next_record(&bytes).unwrap();
/// assert_eq!((record.fact, record.nanos, rest.len()), (SchedFact::Lost { records: 1 }, 77, 0));
/// ```
#[must_use]
pub fn next_record(bytes: &[u8]) -> Option<(SchedRecord, &[u8])> {
    let kind = u32::from_le_bytes(*bytes.first_chunk()?);
    let flags = u16::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
    let length = usize::from(u16::from_le_bytes(*bytes.get(6..)?.first_chunk()?));
    let (record, rest) = bytes.split_at_checked(length.max(HEAD))?;
    let other = SchedRecord { nanos: 0, tid: 0, fact: SchedFact::Other };
    Some((read(kind, flags, &record[HEAD..]).unwrap_or(other), rest))
}

fn read(kind: u32, flags: u16, body: &[u8]) -> Option<SchedRecord> {
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(TRAILER)?)?;
    let fact = match kind {
        SWITCH if flags & IS_OUT != 0 => {
            SchedFact::Out { next: number(body, 4)?, is_preempted: flags & IS_PREEMPTED != 0 }
        }
        SWITCH => SchedFact::In { prev: number(body, 4)? },
        COMM => {
            let mut name = [0; NAME];
            let text = body.get(8..)?.iter().take_while(|byte| **byte != 0).take(NAME - 1);
            name.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
            SchedFact::Name { tid: number(body, 4)?, name, is_exec: flags & IS_EXEC != 0 }
        }
        FORK => SchedFact::Fork {
            pid: number(body, 0)?,
            parent_pid: number(body, 4)?,
            tid: number(body, 8)?,
            parent_tid: number(body, 12)?,
        },
        EXIT => SchedFact::Exit { tid: number(body, 8)? },
        LOST => SchedFact::Lost { records: word(body, 8)? },
        _ => SchedFact::Other,
    };
    Some(SchedRecord { nanos: word(trailer, 8)?, tid: number(trailer, 4)?, fact })
}

/// The record of one lost record.
#[must_use]
pub fn lost_record(nanos: u64) -> Vec<u8> {
    let body = [0, 1, 0, nanos].map(u64::to_le_bytes).concat();
    let length = (HEAD + body.len()) as u16;
    [&LOST.to_le_bytes()[..], &[0; 2], &length.to_le_bytes(), &body].concat()
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn number(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))
}

/// The events of [`PERF_EVENTS`], with all fields that they may have.
#[must_use]
pub fn listed() -> Vec<ListedEvent> {
    let listed =
        |(kernel, name, class): (&str, &str, FieldClass)| ListedEvent::new(kernel.to_owned(), name.to_owned(), &class);
    classes().into_iter().map(listed).collect()
}

/// The kernel's name of an event.
#[must_use]
pub fn kernel_name(name: &str) -> &'static str {
    let is_its = |kernel: &&&str| kernel.split_once(':').is_some_and(|(_, own)| own == name);
    PERF_EVENTS.iter().find(is_its).copied().unwrap_or_default()
}

/// The same, as structures: the kernel's name, and that in the trace.
#[must_use]
pub fn classes() -> Vec<(&'static str, &'static str, FieldClass)> {
    let mut tracker = SchedTracker::new(None, true);
    [1, 2].into_iter().for_each(|tid| tracker.knows(tid, b"name"));
    let facts = [
        SchedFact::Out { next: 2, is_preempted: true },
        SchedFact::Fork { tid: 3, pid: 3, parent_tid: 1, parent_pid: 1 },
        SchedFact::Name { tid: 1, name: [0; NAME], is_exec: true },
        SchedFact::Exit { tid: 1 },
    ];
    let mut all = Vec::new();
    for fact in facts {
        tracker.record(0, &SchedRecord { nanos: 0, tid: 1, fact }, |event| {
            all.push((kernel_name(event.name), event.name, event.fields.class()));
        });
    }
    all
}

/// An event with its fields.
#[derive(Debug)]
pub struct SchedEvent {
    /// Its name.
    pub name: &'static str,
    /// Events of the same name and variant have the same fields.
    pub variant: u8,
    /// Its fields.
    pub fields: FieldList,
}

/// Threads, as records tell of them one after the other.
#[derive(Debug, Default)]
pub struct SchedTracker {
    names: HashMap<i32, [u8; NAME]>,
    /// Those that run, by CPU.
    running: HashMap<u32, i32>,
    /// Those that have ended: another one may get the number.
    ended: HashSet<i32>,
    /// Those of which the kernel has let go, and that have not stopped yet.
    gone: Vec<i32>,
    /// Threads that events are about; `None`: all.
    scope: Option<HashSet<i32>>,
    /// Number 0 is that of idle threads alone, and not that of threads outside of a PID namespace.
    is_initial_namespace: bool,
}

impl SchedTracker {
    /// A tracker with events about these threads and all that they start; `None`: about all.
    #[must_use]
    pub fn new(scope: Option<HashSet<i32>>, is_initial_namespace: bool) -> Self {
        Self { scope, is_initial_namespace, ..Self::default() }
    }

    /// A thread has a name, before the next record.
    pub fn knows(&mut self, tid: i32, name: &[u8]) {
        let mut known = [0; NAME];
        known.iter_mut().zip(name.iter().take(NAME - 1)).for_each(|(to, from)| *to = *from);
        self.names.insert(tid, known);
    }

    /// Records of a CPU are missing: which thread runs there is not known.
    pub fn loses(&mut self, cpu: u32) {
        self.running.remove(&cpu);
        self.gone.clear();
    }

    /// Calls `tell` with the events of the next record of a CPU.
    pub fn record(&mut self, cpu: u32, record: &SchedRecord, mut tell: impl FnMut(SchedEvent)) {
        match record.fact {
            SchedFact::Out { next, is_preempted } => {
                let before = self.running.get(&cpu).copied();
                // The kernel no longer knows the number of a thread that is gone.
                let prev = if record.tid == GONE { before.unwrap_or(GONE) } else { record.tid };
                let state = match (is_preempted, record.tid) {
                    (true, _) => Some(RUNNABLE),
                    (false, GONE) => Some(DEAD),
                    (false, _) => None,
                };
                if record.tid == GONE && is_preempted && !self.gone.contains(&prev) {
                    self.gone.push(prev);
                }
                let next = self.number(next);
                self.running.insert(cpu, next);
                self.switch(cpu, (prev, state, next), tell);
            }
            SchedFact::In { .. } if record.tid == GONE && self.running.contains_key(&cpu) => {}
            // The switch itself was not told, or was lost.
            SchedFact::In { prev } => {
                let next = self.number(record.tid);
                let before = self.running.insert(cpu, next);
                let (prev, state) = if prev == GONE { (before.unwrap_or(GONE), Some(DEAD)) } else { (prev, None) };
                if before != Some(next) {
                    self.switch(cpu, (prev, state, next), tell);
                }
            }
            SchedFact::Name { tid, name, is_exec } if tid > 0 => {
                let old = self.names.insert(tid, name);
                if self.is_about(tid) {
                    tell(renamed(tid, old, &name));
                    if is_exec {
                        tell(about("sched_process_exec", tid, None));
                    }
                }
            }
            SchedFact::Fork { tid, pid, parent_tid, parent_pid } if tid > 0 => {
                // The name is that of a thread before with the same number, or the state of the system has told it.
                if self.ended.remove(&tid) {
                    self.names.remove(&tid);
                }
                let parent = self.names.get(&parent_tid).copied();
                parent.inspect(|name| _ = self.names.insert(tid, *name));
                if self.is_about(parent_tid) {
                    self.scope.as_mut().map(|scope| scope.insert(tid));
                    tell(forked(parent, (parent_tid, parent_pid), (tid, pid)));
                }
            }
            SchedFact::Exit { tid } if tid > 0 => {
                self.ended.insert(tid);
                if self.is_about(tid) {
                    tell(about("sched_process_exit", tid, self.names.get(&tid)));
                }
            }
            _ => {}
        }
    }

    /// The number of a thread that runs next. One that is gone may run on: which one is known, if there is no other.
    fn number(&self, tid: i32) -> i32 {
        if let (GONE, [one]) = (tid, &self.gone[..]) { *one } else { tid }
    }

    fn is_about(&self, tid: i32) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.contains(&tid))
    }

    fn switch(&mut self, cpu: u32, (prev, state, next): (i32, Option<i64>, i32), mut tell: impl FnMut(SchedEvent)) {
        if self.is_about(prev) || self.is_about(next) {
            let names = [prev, next].map(|tid| self.name(cpu, tid));
            let (mut fields, [before, behind]) = (FieldList::default(), names);
            before.inspect(|name| fields.add("prev_comm", KernelValue::ThreadName(name)));
            fields.add("prev_tid", KernelValue::I32(prev));
            state.inspect(|state| fields.add("prev_state", KernelValue::I64(*state)));
            behind.inspect(|name| fields.add("next_comm", KernelValue::ThreadName(name)));
            fields.add("next_tid", KernelValue::I32(next));
            let variant = [before.is_some(), state.is_some(), behind.is_some()];
            tell(SchedEvent { name: "sched_switch", variant: bits(variant), fields });
        }
        if state == Some(DEAD) {
            self.gone.retain(|gone| *gone != prev);
            self.ended.remove(&prev);
            self.names.remove(&prev);
            self.scope.as_mut().map(|scope| scope.remove(&prev));
        }
    }

    fn name(&self, cpu: u32, tid: i32) -> Option<[u8; NAME]> {
        if tid != 0 {
            return self.names.get(&tid).copied();
        }
        let mut name = [0; NAME];
        let text = format!("swapper/{cpu}");
        name.iter_mut().zip(text.bytes().take(NAME - 1)).for_each(|(to, from)| *to = from);
        self.is_initial_namespace.then_some(name)
    }
}

fn bits(all: [bool; 3]) -> u8 {
    all.iter().fold(0, |bits, is_there| bits << 1 | u8::from(*is_there))
}

fn renamed(tid: i32, old: Option<[u8; NAME]>, name: &[u8; NAME]) -> SchedEvent {
    let mut fields = FieldList::default();
    fields.add("tid", KernelValue::I32(tid));
    old.inspect(|old| fields.add("oldcomm", KernelValue::ThreadName(old)));
    fields.add("newcomm", KernelValue::ThreadName(name));
    SchedEvent { name: "task_rename", variant: old.is_some().into(), fields }
}

fn about(event: &'static str, tid: i32, name: Option<&[u8; NAME]>) -> SchedEvent {
    let mut fields = FieldList::default();
    name.inspect(|name| fields.add("comm", KernelValue::ThreadName(*name)));
    fields.add("tid", KernelValue::I32(tid));
    SchedEvent { name: event, variant: name.is_some().into(), fields }
}

fn forked(name: Option<[u8; NAME]>, parent: (i32, i32), child: (i32, i32)) -> SchedEvent {
    let mut fields = FieldList::default();
    name.inspect(|name| fields.add("parent_comm", KernelValue::ThreadName(name)));
    fields.add("parent_tid", KernelValue::I32(parent.0));
    fields.add("parent_pid", KernelValue::I32(parent.1));
    name.inspect(|name| fields.add("child_comm", KernelValue::ThreadName(name)));
    fields.add("child_tid", KernelValue::I32(child.0));
    fields.add("child_pid", KernelValue::I32(child.1));
    SchedEvent { name: "sched_process_fork", variant: name.is_some().into(), fields }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, flags: u16, body: &[i32], tid: i32, nanos: u64) -> Vec<u8> {
        let body: Vec<u8> = body.iter().chain(&[1, tid]).flat_map(|number| number.to_le_bytes()).collect();
        let body = [body, nanos.to_le_bytes().to_vec()].concat();
        let length = (HEAD + body.len()) as u16;
        [&kind.to_le_bytes()[..], &flags.to_le_bytes(), &length.to_le_bytes(), &body].concat()
    }

    /// Names, variants and numbers of the events of records.
    fn told(tracker: &mut SchedTracker, records: &[Vec<u8>]) -> Vec<(&'static str, u8, Vec<u8>)> {
        let mut all = Vec::new();
        for bytes in records {
            let (record, rest) = next_record(bytes).expect("it is whole");
            assert!(rest.is_empty());
            tracker.record(0, &record, |event| all.push((event.name, event.variant, event.fields.bytes().to_vec())));
        }
        all
    }

    fn name(text: &str) -> Vec<u8> {
        let mut name = text.as_bytes().to_vec();
        name.resize(NAME, 0);
        name
    }

    #[test]
    fn switches_have_the_fields_that_are_known() {
        let mut tracker = SchedTracker::new(None, true);
        tracker.knows(7, b"seven");
        let out = |from: i32, to: i32, flags: u16| record(SWITCH, IS_OUT | flags, &[to, to], from, 5);
        let into = |from: i32, to: i32| record(SWITCH, 0, &[from, from], to, 6);
        let all = told(
            &mut tracker,
            &[out(0, 7, 0), into(0, 7), out(7, 8, IS_PREEMPTED), into(7, 8), into(8, 0), out(GONE, 7, 0)],
        );
        let [i7, i8, i0] = [7_i32, 8, 0].map(|number| number.to_le_bytes().to_vec());
        let state = |state: i64| state.to_le_bytes().to_vec();
        let wanted = [
            ("sched_switch", 0b101, [name("swapper/0"), i0.clone(), name("seven"), i7.clone()].concat()),
            ("sched_switch", 0b110, [name("seven"), i7.clone(), state(0), i8.clone()].concat()),
            // Its end was not told, but the begin of the next one.
            ("sched_switch", 0b001, [i8, name("swapper/0"), i0.clone()].concat()),
            ("sched_switch", 0b111, [name("swapper/0"), i0, state(DEAD), name("seven"), i7].concat()),
        ];
        assert_eq!(all, wanted);
        // One that is gone is preempted, and goes on to its end.
        let all = told(
            &mut tracker,
            &[
                out(7, 8, 0),
                out(GONE, 0, IS_PREEMPTED),
                out(0, GONE, 0),
                into(0, GONE),
                out(GONE, 0, 0),
                out(0, GONE, 0),
            ],
        );
        let tids = |(_, variant, bytes): &(&str, u8, Vec<u8>)| {
            let number = |at: usize| i32::from_le_bytes(*bytes[at..].first_chunk().expect("it is there"));
            let (prev, next) = (if variant & 4 > 0 { NAME } else { 0 }, bytes.len() - 4);
            (number(prev), number(next))
        };
        assert_eq!(all.iter().map(tids).collect::<Vec<_>>(), [(7, 8), (8, 0), (0, 8), (8, 0), (0, GONE)]);
        // In another PID namespace, the number is also that of threads outside of it.
        let all = told(&mut SchedTracker::new(None, false), &[out(0, 7, 0)]);
        assert_eq!(all, [("sched_switch", 0, [0_i32, 7].map(i32::to_le_bytes).concat())]);
    }

    #[test]
    fn threads_that_end_are_dead_when_they_are_gone() {
        let mut tracker = SchedTracker::new(Some(HashSet::from([7])), true);
        tracker.knows(7, b"seven");
        let end = told(
            &mut tracker,
            &[
                record(FORK, 0, &[7, 7, 9, 7, 0, 0], 7, 1),
                record(COMM, IS_EXEC, &[9, 9, i32::from_le_bytes(*b"new\0"), 0], 9, 2),
                record(EXIT, 0, &[7, 7, 9, 7, 0, 0], 9, 3),
                // It gives back its memory, and may wait for that.
                record(SWITCH, IS_OUT, &[0, 0], 9, 4),
                record(SWITCH, IS_OUT, &[9, 9], 0, 5),
                record(SWITCH, IS_OUT, &[0, 0], GONE, 6),
                // Of another number, and of one that is another thread by now.
                record(SWITCH, IS_OUT, &[0, 0], 11, 7),
                record(SWITCH, IS_OUT, &[0, 0], 9, 8),
            ],
        );
        let names: Vec<&str> = end.iter().map(|(name, ..)| *name).collect();
        let [all, switches] = [&end[..4], &end[4..]];
        assert_eq!(names[..4], ["sched_process_fork", "task_rename", "sched_process_exec", "sched_process_exit"]);
        assert_eq!(names[4..], ["sched_switch"; 3]);
        let number = |number: i32| number.to_le_bytes().to_vec();
        let fork = [name("seven"), number(7), number(7), name("seven"), number(9), number(7)].concat();
        assert_eq!(all[0].2, fork);
        assert_eq!(all[1].2, [number(9), name("seven"), name("new")].concat());
        let state = DEAD.to_le_bytes().to_vec();
        assert_eq!(switches[0].2, [name("new"), number(9), name("swapper/0"), number(0)].concat());
        assert_eq!(switches[2].2, [name("new"), number(9), state, name("swapper/0"), number(0)].concat());
    }

    #[test]
    fn all_events_are_listed() {
        let all = listed();
        let mut names: Vec<&str> = all.iter().map(|event| event.kernel.as_str()).collect();
        names.sort_unstable();
        let mut wanted = PERF_EVENTS;
        wanted.sort_unstable();
        assert_eq!(names, wanted);
        let switch: Vec<&str> = all[0].fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(switch, ["prev_comm", "prev_tid", "prev_state", "next_comm", "next_tid"]);
    }

    #[test]
    fn records_that_are_not_whole_are_none() {
        let whole = record(SWITCH, IS_OUT, &[1, 1], 2, 3);
        assert!((0..whole.len()).all(|length| next_record(&whole[..length]).is_none()));
        let short = record(SWITCH, 0, &[1], 2, 3);
        assert_eq!(next_record(&short).map(|(record, _)| record.fact), Some(SchedFact::Other));
    }
}
