//! `states`: the states of CPUs and threads at any time, as runs.
//!
//! ```text
//! CPU 0     thread    │ 7 ─────────────│ 0 (idle) ───│ 9 ──────
//!           interrupt        │ 41 │
//! thread 7  state     │ running on 0 ──│ blocked ──────────│ woken ─│ running on 3
//!           call         │ read ─────────────────────────────────────│
//!           name      │ bash ───────────────────────────────────────────
//! ```
//!
//! No counting: every change of a value is a run of the value before, see [`crate::runs`]. All
//! questions, at an instant or over a span of time, are answered from the runs.

mod attributes;
mod lane;
mod report;
mod sequel;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::roles::{CPU, EventRole, PID, TID, fork, irq, priority, softirq, switch, syscall_entry, syscall_exit};
use crate::roles::{thread_state, wake};
use crate::runs::{RunWriter, StateRun};
use crate::threads::{is_dead, is_runnable};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, BoundClass, Comm, FieldSlot, LaneFacts, LaneNotes, Needs,
    PartShape, Question, RoleEvent, Room, Setup, SpoolError,
};

pub use attributes::{AttributeChange, Attributes, DOUBT, Entity, EntityKind, FLAGS, PriorValue};
pub use lane::{Edge, IntervalSequence, StatesNote};
pub(crate) use report::times;
pub use report::{InstantStates, LaneText, RunTexts};
pub use sequel::{StatesSequel, keys};

use attributes::PriorValue::{Gone, Not, Unknown, Was};
use lane::{StatesCpu, StatesSwitch, StatesThreadFacts};

/// Values of a CPU.
pub mod cpu_track {
    /// The thread that it runs; 0: none.
    pub const THREAD: usize = 0;
    /// The interrupt that it serves.
    pub const IRQ: usize = 1;
    /// The softirq that it serves.
    pub const SOFTIRQ: usize = 2;
}

/// Linux' name of a softirq.
#[must_use]
pub fn softirq_name(vec: i64) -> Option<&'static str> {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(usize::try_from(vec).ok()?).copied()
}

/// Values of a thread.
pub mod thread_track {
    /// Its state: see [`super::ThreadState`].
    pub const STATE: usize = 0;
    /// The call that it is in.
    pub const CALL: usize = 1;
    /// The digest of its name.
    pub const NAME: usize = 2;
    /// Its process.
    pub const PROCESS: usize = 3;
}

/// The states of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum ThreadState {
    /// It runs, on the CPU that the lower half of the value says.
    Running = 1,
    /// It could run on: another one was more important.
    Preempted,
    /// It was woken, and waits for a CPU.
    Woken,
    /// It was made, and waits for a CPU.
    New,
    /// It waits for something, and signals wake it.
    Blocked,
    /// It waits for something, even if signals come.
    Uninterruptible,
    /// A signal or a tracer stopped it.
    Stopped,
    /// It waits, the event does not say how.
    Away,
}

impl ThreadState {
    const ALL: [Self; 8] = [
        Self::Running,
        Self::Preempted,
        Self::Woken,
        Self::New,
        Self::Blocked,
        Self::Uninterruptible,
        Self::Stopped,
        Self::Away,
    ];

    fn value(self, cpu: u32) -> u64 {
        u64::from(self as u32) << 32 | u64::from(cpu)
    }

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Preempted => "preempted",
            Self::Woken => "waiting for a CPU",
            Self::New => "new",
            Self::Blocked => "blocked",
            Self::Uninterruptible => "uninterruptible",
            Self::Stopped => "stopped",
            Self::Away => "off the CPU",
        }
    }

    /// The meaning of a value: the state of the thread, and the CPU where it is or was in that
    /// state.
    #[must_use]
    pub fn of(value: u64) -> Option<(Self, u32)> {
        let number = (value & !FLAGS) >> 32;
        let doing = Self::ALL.into_iter().find(|doing| u64::from(*doing as u32) == number)?;
        Some((doing, value as u32))
    }
}

/// The analysis.
#[derive(Debug)]
pub struct StatesAnalysis {
    lanes: Vec<LaneFacts>,
    /// For each class of events the call that it enters or leaves, if its name says that.
    calls: Vec<Option<u64>>,
    texts: RunTexts,
    room: Option<Room>,
    /// Some events are switches of threads.
    has_switches: bool,
    /// Only some events are there: see [`StatesAnalysis::of_some`].
    is_of_some: bool,
}

/// A call that has no name has this bit, and its number.
const NUMBERED: u64 = 1 << 32;

/// The state behind a part of the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatesPart {
    /// By lane, then by CPU.
    cpus: Vec<Vec<CpuEnd>>,
    attributes: Attributes,
    runs: RunWriter,
    /// Names by their digest.
    names: HashMap<u64, Comm>,
    /// Names of interrupts, by machine and number.
    irqs: BTreeMap<(u16, u64), String>,
    /// The names that threads have in the moment of their death: when, the key, and the digest. Where that is another one
    /// than before, it is no run, because it lasts no time.
    #[serde(skip)]
    last_names: Vec<(i64, u64, u64)>,
}

/// The state of a CPU when a part ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CpuEnd {
    cpu: u32,
    /// The thread that it ran before its first switch.
    head: Option<i32>,
    /// The thread that it runs since its last one.
    now: Option<i32>,
    /// Calls since then: the end of the run will tell their thread.
    calls: IntervalSequence,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct StatesLane<'a> {
    states: &'a StatesAnalysis,
    facts: &'a LaneFacts,
    /// The CPU of events that do not say it.
    cpu: u32,
    /// By CPU; almost always one.
    cpus: Vec<StatesCpu>,
    runs: RunWriter,
    /// Names of interrupts, by number.
    irqs: BTreeMap<u64, String>,
}

impl StatesAnalysis {
    /// The question that it answers.
    #[must_use]
    pub fn question() -> Question<'static> {
        Question::new(Self::needs(), &[EventRole::Switch], Self::new)
    }

    /// The roles and fields that it needs.
    pub(crate) fn needs() -> Needs {
        use {fork::*, irq::*, priority::*, softirq::*, switch::*, syscall_entry::*, syscall_exit::*, thread_state::*};
        Needs {
            roles: vec![
                (EventRole::Switch, vec![PREV_TID, PREV_STATE, NEXT_TID, PREV_COMM, NEXT_COMM]),
                (EventRole::Waking, vec![wake::WOKEN_TID, wake::WOKEN_COMM]),
                (EventRole::Wakeup, vec![wake::WOKEN_TID, wake::WOKEN_COMM]),
                (EventRole::Fork, vec![CHILD_TID, CHILD_PID, CHILD_COMM, PARENT_TID, PARENT_PID]),
                (EventRole::ThreadState, vec![KNOWN_TID, KNOWN_PID, KNOWN_COMM]),
                (EventRole::Rename, vec![CHANGED_TID, NEW_COMM]),
                (EventRole::SyscallEntry, vec![ENTRY_NAME, ENTRY_NUMBER]),
                (EventRole::SyscallExit, vec![EXIT_NAME, EXIT_NUMBER]),
                (EventRole::IrqEntry, vec![IRQ, IRQ_NAME]),
                (EventRole::IrqExit, vec![IRQ]),
                (EventRole::SoftirqEntry, vec![VEC]),
                (EventRole::SoftirqExit, vec![VEC]),
            ],
            context: vec![CPU, TID, PID],
            ..Needs::default()
        }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let (calls, names) = calls(setup.classes);
        let texts =
            RunTexts { calls: names, lanes: setup.lanes.iter().map(LaneText::of).collect(), ..RunTexts::default() };
        let is_switch = |class: &BoundClass| class.roles.iter().any(|bound| bound.role == EventRole::Switch);
        let has_switches = setup.classes.iter().any(is_switch);
        let (lanes, room) = (setup.lanes.to_vec(), setup.room.cloned());
        Self { lanes, calls, texts, room, has_switches, is_of_some: false }
    }

    /// The same for traces with only some of the events, to measure how long something takes. A run
    /// that does not end as it began is in doubt, or cut where its thread ends. Where traces have
    /// switches, a CPU without any runs a thread that stands for none, and its calls take as long;
    /// and where events say their thread, or a switch says which thread it takes the CPU from, that
    /// goes before the thread that the switch before said.
    #[must_use]
    pub fn of_some(self) -> Self {
        Self { is_of_some: true, ..self }
    }

    /// The same where these names of calls have the first numbers.
    #[must_use]
    pub fn after(self, calls: &[String]) -> Self {
        let mut names = calls.to_vec();
        let mut places: HashMap<String, u64> = names.iter().cloned().zip(0..).collect();
        let mut number = |name: &String| {
            *places.entry(name.clone()).or_insert_with(|| {
                names.push(name.clone());
                names.len() as u64 - 1
            })
        };
        let numbers: Vec<u64> = self.texts.calls.iter().map(&mut number).collect();
        let calls = self.calls.iter().map(|call| call.map(|call| numbers[call as usize])).collect();
        Self { calls, texts: RunTexts { calls: names, ..self.texts }, ..self }
    }

    /// Names of calls, by their numbers.
    #[must_use]
    pub fn call_names(&self) -> &[String] {
        &self.texts.calls
    }

    /// There were fewer lanes when this was known, of which the first ones are the same.
    pub fn widen(&self, state: &mut StatesPart) {
        state.cpus.resize_with(state.cpus.len().max(self.lanes.len()), Vec::new);
    }

    /// The results of a state: all runs, and the texts of their numbers.
    #[must_use]
    pub fn into_runs(&self, mut state: StatesPart) -> (RunWriter, RunTexts) {
        for (lane, cpus) in std::mem::take(&mut state.cpus).into_iter().enumerate() {
            for CpuEnd { now, calls, .. } in cpus {
                now.into_iter().for_each(|tid| state.calls(self, lane, tid, &calls));
            }
        }
        let StatesPart { attributes, mut runs, names, irqs, .. } = state;
        attributes.open(&mut runs);
        (runs, RunTexts { names, irqs, ..self.texts.clone() })
    }

    fn thread(&self, lane: usize, tid: i32) -> Entity {
        Entity::new(EntityKind::Thread, self.lanes[lane].host, tid)
    }

    /// Switches of threads may be missing among the events that are there.
    fn lacks_switches(&self) -> bool {
        self.is_of_some && self.has_switches
    }

    /// The thread of a CPU's calls, as far as it is known now; where switches may be missing, the
    /// stand-in thread instead of the idle thread.
    fn whose(&self, end: &CpuEnd) -> Option<i32> {
        match self.lacks_switches() {
            true => Some(end.now.filter(|tid| *tid != 0).unwrap_or_else(|| nobody(end.cpu))),
            false => end.now,
        }
    }
}

/// For each class of events the call that it is of, and the names of calls. A call with its name in
/// a field is called as its class.
fn calls(classes: &[BoundClass]) -> (Vec<Option<u64>>, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    let mut places: HashMap<String, u64> = HashMap::new();
    let mut call = |class: &BoundClass| {
        let bound =
            class.roles.iter().find(|bound| matches!(bound.role, EventRole::SyscallEntry | EventRole::SyscallExit))?;
        let is_entry = bound.role == EventRole::SyscallEntry;
        let name = match &bound.slots[if is_entry { syscall_entry::ENTRY_NAME } else { syscall_exit::EXIT_NAME }] {
            FieldSlot::Absent => return None,
            FieldSlot::Text(name) => String::from_utf8_lossy(name).into_owned(),
            _ => class.name.to_string(),
        };
        Some(*places.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() as u64 - 1
        }))
    };
    let calls = classes.iter().map(&mut call).collect();
    (calls, names)
}

/// The stand-in for the unknown thread of a CPU.
fn nobody(cpu: u32) -> i32 {
    -1 - (cpu & 0x7fff_ffff).cast_signed()
}

/// The state of a CPU; the place is made if there is none.
fn at(cpus: &mut Vec<StatesCpu>, cpu: u32) -> &mut StatesCpu {
    let at = cpus.iter().position(|known| known.cpu == cpu).unwrap_or_else(|| {
        cpus.push(StatesCpu { cpu, ..StatesCpu::default() });
        cpus.len() - 1
    });
    &mut cpus[at]
}

impl StatesLane<'_> {
    fn at(&mut self, cpu: u32) -> &mut StatesCpu {
        at(&mut self.cpus, cpu)
    }

    /// The call that an event is of. Where the kernel does not say its number any more, as on the way back from a signal, that is below 0.
    fn call(&self, meaning: &RoleEvent<'_>, number: usize) -> Option<u64> {
        let numbered = || Some(NUMBERED | u64::from(u32::try_from(meaning.small(number)?).ok()?));
        self.states.calls[meaning.event.number].or_else(numbered)
    }

    fn take(&mut self, meaning: RoleEvent<'_>, notes: &mut LaneNotes<StatesNote>) -> Option<()> {
        let (time, cpu) = (meaning.event.time, meaning.event.cpu().unwrap_or(self.cpu));
        let number = |field| Some(u64::from(meaning.small(field)?.cast_unsigned()));
        match meaning.role {
            EventRole::Switch => self.switch(&meaning, cpu, notes)?,
            EventRole::SyscallEntry => {
                let call = self.call(&meaning, syscall_entry::ENTRY_NUMBER).unwrap_or(NUMBERED - 1);
                self.says(&meaning, cpu).calls.begin(time, call);
            }
            EventRole::SyscallExit => {
                let call = self.call(&meaning, syscall_exit::EXIT_NUMBER);
                self.says(&meaning, cpu).calls.end(time, call);
            }
            EventRole::IrqEntry => {
                let irq = number(irq::IRQ)?;
                self.at(cpu).irqs.begin(time, irq);
                if let Some(name) = meaning.text(irq::IRQ_NAME) {
                    self.irqs.entry(irq).or_insert_with(|| String::from_utf8_lossy(name).into_owned());
                }
            }
            EventRole::IrqExit => self.at(cpu).irqs.end(time, number(irq::IRQ)),
            EventRole::SoftirqEntry => self.at(cpu).softirqs.begin(time, number(softirq::VEC)?),
            EventRole::SoftirqExit => self.at(cpu).softirqs.end(time, number(softirq::VEC)),
            _ => notes.push(time, other(&meaning)?),
        }
        Some(())
    }

    /// The CPU of a call; the event says the thread that runs there, where switches may be missing.
    fn says(&mut self, meaning: &RoleEvent<'_>, cpu: u32) -> &mut StatesCpu {
        let said = if self.states.lacks_switches() { meaning.event.small_context(TID) } else { None };
        let at = self.at(cpu);
        at.said = said.or(at.said);
        at
    }

    fn switch(&mut self, meaning: &RoleEvent<'_>, cpu: u32, notes: &mut LaneNotes<StatesNote>) -> Option<()> {
        let prev = meaning.small(switch::PREV_TID)?;
        let next = meaning.small(switch::NEXT_TID)?;
        let state = meaning.integer(switch::PREV_STATE);
        let away = away(state, cpu, self.facts.kernel);
        let names = [meaning.comm(switch::PREV_COMM), meaning.comm(switch::NEXT_COMM)];
        let host = self.facts.host;
        let Self { cpus, runs, .. } = self;
        let at = at(cpus, cpu);
        let IntervalSequence { first, done, open } = &mut at.calls;
        let (first, open) = (first.take(), open.take());
        at.head = at.head.or(at.now.is_none().then_some(prev));
        (at.now, at.said) = (Some(next), None);
        if prev != 0 {
            tell(runs, Entity::new(EntityKind::Thread, host, prev).key(thread_track::CALL), done);
        }
        done.clear();
        notes.push(meaning.event.time, StatesNote::Switch(StatesSwitch { cpu, prev, next, away, names, first, open }));
        let event = meaning.event;
        if let Some(pid) = event.small_context(PID).filter(|_| event.small_context(TID) == Some(prev)) {
            notes.push(
                event.time,
                StatesNote::Known(StatesThreadFacts { tid: prev, pid: Some(pid), comm: Comm::default() }),
            );
        }
        Some(())
    }
}

/// The state of a thread that is switched away from; `None`: it is dead.
fn away(state: Option<i64>, cpu: u32, kernel: Option<(u32, u32)>) -> Option<u64> {
    let doing = match state {
        None => ThreadState::Away,
        Some(state) if is_runnable(state) => ThreadState::Preempted,
        Some(state) if is_dead(state, kernel) => return None,
        Some(state) if state & 1 != 0 => ThreadState::Blocked,
        Some(state) if state & 2 != 0 => ThreadState::Uninterruptible,
        Some(state) if state & 0xc != 0 => ThreadState::Stopped,
        Some(_) => ThreadState::Away,
    };
    Some(doing.value(cpu))
}

/// The facts that other events tell about threads.
fn other(meaning: &RoleEvent<'_>) -> Option<StatesNote> {
    Some(match meaning.role {
        EventRole::Waking | EventRole::Wakeup => {
            StatesNote::Wake(meaning.small(wake::WOKEN_TID)?, meaning.comm(wake::WOKEN_COMM))
        }
        EventRole::Fork => {
            let parent = meaning.small(fork::PARENT_TID).zip(meaning.small(fork::PARENT_PID));
            let (tid, pid) = (meaning.small(fork::CHILD_TID)?, meaning.small(fork::CHILD_PID));
            StatesNote::Fork(StatesThreadFacts { tid, pid, comm: meaning.comm(fork::CHILD_COMM) }, parent)
        }
        EventRole::ThreadState => {
            let (tid, pid) = (meaning.small(thread_state::KNOWN_TID)?, meaning.small(thread_state::KNOWN_PID));
            StatesNote::Known(StatesThreadFacts { tid, pid, comm: meaning.comm(thread_state::KNOWN_COMM) })
        }
        EventRole::Rename => {
            let tid = meaning.small(priority::CHANGED_TID)?;
            StatesNote::Known(StatesThreadFacts { tid, pid: None, comm: meaning.comm(priority::NEW_COMM) })
        }
        _ => return None,
    })
}

/// Writes the intervals that began and ended.
fn tell(runs: &mut RunWriter, key: u64, done: &[(i64, i64, u64)]) {
    for &(begin, end, value) in done {
        runs.push(StateRun { key, begin, end, value });
    }
}

impl StatesPart {
    /// The names that threads have in the moment of their death: when, the key, and the value.
    pub(crate) fn take_last_names(&mut self) -> Vec<(i64, u64, u64)> {
        std::mem::take(&mut self.last_names)
    }

    fn set(&mut self, entity: Entity, track: usize, time: i64, before: PriorValue, change: AttributeChange) {
        self.attributes.set(entity, track, time, (before, change), &mut self.runs);
    }

    /// Adds the edges of a sequence, without the intervals that began and ended in it.
    fn edges(&mut self, entity: Entity, track: usize, first: Option<(i64, Edge)>, open: Option<(i64, u64)>) {
        if let Some((time, edge)) = first {
            let before = match edge {
                Edge::Begin => Was(None),
                Edge::End(None) => Unknown,
                Edge::End(what) => Was(what),
            };
            self.set(entity, track, time, before, AttributeChange::Begin(None));
        }
        if let Some((time, what)) = open {
            self.set(entity, track, time, Was(None), AttributeChange::Begin(Some(what)));
        }
    }

    fn sequence(&mut self, entity: Entity, track: usize, sequence: &IntervalSequence) {
        tell(&mut self.runs, entity.key(track), &sequence.done);
        self.edges(entity, track, sequence.first, sequence.open);
    }

    fn name(&mut self, thread: Entity, time: i64, comm: Comm) {
        if !comm.is_empty() {
            let digest = comm.digest() & !FLAGS;
            self.names.entry(digest).or_insert(comm);
            self.set(thread, thread_track::NAME, time, Unknown, AttributeChange::Is(digest));
        }
    }

    fn process(&mut self, thread: Entity, time: i64, pid: Option<i32>) {
        if let Some(pid) = pid {
            let pid = u64::from(pid.cast_unsigned());
            self.set(thread, thread_track::PROCESS, time, Unknown, AttributeChange::Is(pid));
        }
    }

    /// Nothing is known of a number's thread from now on: it is dead, or another one gets it.
    fn forget(&mut self, states: &StatesAnalysis, thread: Entity, time: i64, before: PriorValue) {
        let of_state = if before == Unknown && states.is_of_some { Was(None) } else { before };
        self.set(thread, thread_track::STATE, time, of_state, AttributeChange::Begin(None));
        self.set(thread, thread_track::CALL, time, Gone, AttributeChange::Begin(None));
        for track in [thread_track::NAME, thread_track::PROCESS] {
            self.set(thread, track, time, Unknown, AttributeChange::Begin(None));
        }
    }

    fn switch(&mut self, states: &StatesAnalysis, lane: usize, time: i64, switch: &StatesSwitch) {
        let StatesSwitch { cpu, prev, next, away, names, first, open } = *switch;
        let of_cpu = Entity::new(EntityKind::Cpu, states.lanes[lane].host, cpu.cast_signed());
        let (was, is) = (u64::from(prev.cast_unsigned()), u64::from(next.cast_unsigned()));
        self.set(of_cpu, cpu_track::THREAD, time, Was(Some(was)), AttributeChange::Begin(Some(is)));
        let running = ThreadState::Running.value(cpu);
        if prev != 0 {
            let thread = states.thread(lane, prev);
            self.edges(thread, thread_track::CALL, first, open);
            self.name(thread, time, names[0]);
            match away {
                Some(away) => {
                    self.set(thread, thread_track::STATE, time, Was(Some(running)), AttributeChange::Begin(Some(away)));
                }
                None => {
                    if !names[0].is_empty() {
                        self.last_names.push((time, thread.key(thread_track::NAME), names[0].digest() & !FLAGS));
                    }
                    self.forget(states, thread, time, Was(Some(running)));
                }
            }
        }
        if next != 0 {
            let thread = states.thread(lane, next);
            self.name(thread, time, names[1]);
            let before = Not(ThreadState::Running as u32);
            self.set(thread, thread_track::STATE, time, before, AttributeChange::Begin(Some(running)));
        }
    }

    fn fork(&mut self, states: &StatesAnalysis, thread: Entity, time: i64, named: &StatesThreadFacts) {
        self.forget(states, thread, time, Unknown);
        let new = ThreadState::New.value(0);
        self.set(thread, thread_track::STATE, time, Unknown, AttributeChange::Begin(Some(new)));
        self.name(thread, time, named.comm);
        self.process(thread, time, named.pid);
    }

    /// The thread of a CPU since its last switch is known now: a call that was entered there since
    /// is that thread's.
    fn others(&mut self, states: &StatesAnalysis, (lane, at): (usize, usize), tid: i32) {
        let end = &self.cpus[lane][at];
        let of_cpu = Entity::new(EntityKind::Cpu, states.lanes[lane].host, end.cpu.cast_signed());
        let Some(was) = states.whose(end).filter(|was| *was != tid) else { return };
        let since = self.attributes.since_when(of_cpu, cpu_track::THREAD);
        let thread = states.thread(lane, was);
        let Some((begin, call)) = self.attributes.take(thread, thread_track::CALL, since) else { return };
        // The thread that it was told of before is in no call any more.
        self.runs.push(StateRun { key: thread.key(thread_track::CALL), begin, end: i64::MAX, value: call | DOUBT });
        self.calls(states, lane, tid, &IntervalSequence { open: Some((begin, call)), ..IntervalSequence::default() });
    }

    /// Calls of a run that has ended, or will not.
    fn calls(&mut self, states: &StatesAnalysis, lane: usize, tid: i32, calls: &IntervalSequence) {
        if tid != 0 {
            self.sequence(states.thread(lane, tid), thread_track::CALL, calls);
        }
    }
}

impl Analysis for StatesAnalysis {
    type State = StatesPart;
    type Lane<'a> = StatesLane<'a>;
    type Note = StatesNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "states", version: 2 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> StatesPart {
        StatesPart {
            cpus: vec![Vec::new(); self.lanes.len()],
            attributes: Attributes::default(),
            runs: RunWriter::new(self.room.as_ref()),
            names: HashMap::new(),
            irqs: BTreeMap::new(),
            last_names: Vec::new(),
        }
    }

    fn enter(&self, lane: usize) -> StatesLane<'_> {
        let facts = &self.lanes[lane];
        let runs = RunWriter::new(self.room.as_ref());
        StatesLane {
            states: self,
            facts,
            cpu: facts.cpu.unwrap_or(lane as u32),
            cpus: Vec::new(),
            runs,
            irqs: BTreeMap::new(),
        }
    }

    fn step(&self, lane: &mut StatesLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<StatesNote>) {
        for meaning in event.roles() {
            lane.take(meaning, notes);
        }
    }

    fn note(&self, state: &mut StatesPart, lane: usize, time: i64, note: StatesNote) {
        match note {
            StatesNote::Switch(switch) => state.switch(self, lane, time, &switch),
            StatesNote::Wake(0, _) => {}
            StatesNote::Wake(tid, comm) => {
                let thread = self.thread(lane, tid);
                let change =
                    AttributeChange::Unless { value: ThreadState::Woken.value(0), than: ThreadState::Blocked as u32 };
                state.set(thread, thread_track::STATE, time, Unknown, change);
                state.name(thread, time, comm);
            }
            StatesNote::Fork(named, parent) => {
                if let Some((parent, pid)) = parent.filter(|parent| parent.0 != 0) {
                    state.process(self.thread(lane, parent), time, Some(pid));
                }
                if named.tid != 0 {
                    state.fork(self, self.thread(lane, named.tid), time, &named);
                }
            }
            StatesNote::Known(named) if named.tid != 0 => {
                let thread = self.thread(lane, named.tid);
                state.name(thread, time, named.comm);
                state.process(thread, time, named.pid);
            }
            StatesNote::Known(_) => {}
        }
    }

    fn leave(&self, state: &mut StatesPart, lane: usize, end: StatesLane<'_>) {
        state.runs.append(end.runs);
        state.irqs.extend(end.irqs.into_iter().map(|(irq, name)| ((end.facts.host, irq), name)));
        for StatesCpu { cpu, now, said, head, calls, irqs, softirqs } in end.cpus {
            let of_cpu = Entity::new(EntityKind::Cpu, end.facts.host, cpu.cast_signed());
            state.sequence(of_cpu, cpu_track::IRQ, &irqs);
            state.sequence(of_cpu, cpu_track::SOFTIRQ, &softirqs);
            let known = CpuEnd { cpu, now: said.or(now), head, calls };
            state.cpus[lane].push(known);
        }
    }

    fn merge(&self, left: &mut StatesPart, right: StatesPart) {
        left.runs.append(right.runs);
        left.names.extend(right.names);
        left.irqs.extend(right.irqs);
        left.last_names.extend(right.last_names);
        for (lane, cpus) in right.cpus.into_iter().enumerate() {
            for right in cpus {
                let at = left.cpus[lane].iter().position(|known| known.cpu == right.cpu);
                let Some(at) = at else {
                    left.cpus[lane].push(right);
                    continue;
                };
                if let Some(tid) = right.head.or(right.now).filter(|_| self.lacks_switches()) {
                    left.others(self, (lane, at), tid);
                }
                let known = &mut left.cpus[lane][at];
                known.head = known.head.or(right.head);
                known.now = right.now.or(known.now);
                match right.head {
                    None => known.calls.then(right.calls),
                    Some(tid) => {
                        let calls = std::mem::replace(&mut known.calls, right.calls);
                        left.calls(self, lane, tid, &calls);
                    }
                }
            }
        }
        left.attributes.merge(right.attributes, &mut left.runs);
    }

    fn anchor(&self, state: &mut StatesPart) {
        state.attributes.anchor(&mut state.runs);
    }

    fn fits(&self, state: &StatesPart) -> bool {
        state.cpus.len() == self.lanes.len()
    }

    fn finish(&self, state: &StatesPart) -> Result<Answer, SpoolError> {
        let (runs, texts) = self.into_runs(state.clone());
        report::history(&runs, &texts)
    }
}
