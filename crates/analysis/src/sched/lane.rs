//! A lane while it is read: its notes to the others about switches, wakes and forks, of 64 bytes at
//! most.
//!
//! ```text
//! CPU 0   switch  entry read  exit read  entry futex  switch
//!                 └── known here, nothing is noted ──┘ └─> Note::Switch, in futex
//! ```
//!
//! Calls are counted by the run in which they are entered and left: they are needed to know the
//! call that is open when a thread is switched away from.

use serde::{Deserialize, Serialize};

use super::doing::{Away, CurrentCall};
use crate::roles::{EventRole, PID, TID, fork, priority, switch, syscall_entry, thread_state, wake};
use crate::threads::{is_dead, is_runnable};
use crate::{AnalysisEvent, BoundClass, Comm, FieldSlot, LaneFacts, LaneNotes, RoleEvent};

/// A lane while it is read.
#[derive(Debug)]
pub struct SchedLane<'a> {
    pub(super) facts: &'a LaneFacts,
    /// For each class of events.
    calls: &'a [CallClass],
    /// CPU of events that do not name one.
    cpu: u32,
    /// By CPU; almost always one.
    pub(super) cpus: Vec<SchedCpu>,
    /// When its first and its last event were, if packets do not say.
    pub(super) span: Option<(i64, i64)>,
}

/// A CPU in a part of a lane.
#[derive(Debug)]
pub(super) struct SchedCpu {
    pub(super) known: SchedCpuState,
    /// Calls that were seen since its last switch.
    pub(super) seen: RunCalls,
}

/// The state of a CPU in a part of the trace.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct SchedCpuState {
    pub(super) cpu: u32,
    /// Its first switch.
    pub(super) head: Option<CpuHead>,
    /// Its last switch.
    pub(super) tail: Option<CpuTail>,
    /// Calls that were seen before the first switch, or all calls if there is none.
    pub(super) seen: RunCalls,
}

/// The first switch of a CPU: when, and the thread that it ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CpuHead {
    pub(super) time: i64,
    pub(super) prev: i32,
    pub(super) comm: Comm,
}

/// The last switch of a CPU: when, and the thread that it began.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CpuTail {
    pub(super) time: i64,
    pub(super) next: i32,
    pub(super) comm: Comm,
    /// The switch was not seen: the CPU runs that thread since then at least.
    pub(super) is_assumed: bool,
}

/// Calls that were seen in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RunCalls {
    /// Neither an entry nor an exit.
    #[default]
    Nothing,
    /// Last, this one was entered; or left: none is open.
    Last(CurrentCall),
}

impl SchedCpu {
    /// State for the part that follows.
    pub(super) fn state(&self) -> SchedCpuState {
        match self.known.head {
            Some(_) => self.known,
            None => SchedCpuState { seen: self.seen, ..self.known },
        }
    }
}

impl CpuTail {
    /// Whether a switch away from this thread with this name says that it has got that since.
    pub(super) fn is_renamed(&self, prev: i32, comm: Comm) -> bool {
        self.next == prev && comm != self.comm && !comm.is_empty()
    }
}

impl RunCalls {
    pub(super) fn or(self, before: CurrentCall) -> CurrentCall {
        match self {
            Self::Nothing => before,
            Self::Last(call) => call,
        }
    }

    pub(super) fn after(self, before: Self) -> Self {
        if self == Self::Nothing { before } else { self }
    }
}

/// The notes about threads.
#[derive(Debug)]
pub enum SchedNote {
    /// A CPU changes threads.
    Switch(SchedSwitch),
    /// A thread is woken.
    Wake(Wake),
    /// A thread is made; its parent and the parent's process, if that is said.
    Fork(SchedThreadFacts, Option<(i32, i32)>),
    /// A thread is known by its process and name.
    Known(SchedThreadFacts),
    /// The thread that a CPU runs has another name than when it began to.
    Rename(Rename),
}

/// A CPU changes threads.
#[derive(Debug)]
pub struct SchedSwitch {
    /// How long the run was that ends; none: it began before this part.
    pub(super) ran_ns: Option<u64>,
    /// The run that ends is in doubt.
    pub(super) is_cut: bool,
    pub(super) away: Away,
    pub(super) cpu: u32,
    pub(super) prev: i32,
    pub(super) next: i32,
    pub(super) next_prio: Option<i32>,
    pub(super) prev_pid: Option<i32>,
    pub(super) seen: RunCalls,
    pub(super) next_comm: Comm,
}

/// A thread is woken.
#[derive(Debug)]
pub struct Wake {
    pub(super) tid: i32,
    pub(super) target: Option<u32>,
    pub(super) is_wakeup: bool,
    /// The CPU on which that happens.
    pub(super) cpu: u32,
    pub(super) comm: Comm,
}

/// A thread with the facts that an event tells about it.
#[derive(Debug)]
pub struct SchedThreadFacts {
    pub(super) tid: i32,
    pub(super) pid: Option<i32>,
    pub(super) comm: Comm,
}

/// The thread that a CPU runs has another name than when it began to.
#[derive(Debug)]
pub struct Rename {
    pub(super) cpu: u32,
    pub(super) comm: Comm,
}

const _: () = assert!(size_of::<SchedNote>() <= 80, "notes are written and read again for each switch");

/// Facts of a class of events about calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallClass {
    /// The call that it is the entry of, if its name says that.
    call: CurrentCall,
    /// Nothing else is said, and it is always the same: most events are like that.
    is_all: bool,
}

/// Facts of classes of events about calls, and the names of calls, in their order. A call whose
/// name is in a field is called as its class.
pub(super) fn calls(classes: &[BoundClass]) -> (Vec<CallClass>, Vec<String>) {
    let mut names: Vec<String> = classes.iter().filter_map(entered).collect();
    names.sort_unstable();
    names.dedup();
    let named = |name: String| match name.parse::<i32>() {
        Ok(number) if number.to_string() == name => CurrentCall::Numbered(number),
        _ => names.binary_search(&name).map_or(CurrentCall::None, |place| CurrentCall::Named(place as u32)),
    };
    let class = |class: &BoundClass| {
        let call = entered(class).map_or(CurrentCall::None, named);
        let is_all = match class.roles.as_slice() {
            [bound] if bound.role == EventRole::SyscallEntry => call != CurrentCall::None,
            [bound] => bound.role == EventRole::SyscallExit,
            _ => false,
        };
        CallClass { call, is_all }
    };
    (classes.iter().map(class).collect(), names)
}

/// The name of the call that events of a class are entries of.
fn entered(class: &BoundClass) -> Option<String> {
    let entry = class.roles.iter().find(|bound| bound.role == EventRole::SyscallEntry)?;
    match &entry.slots[syscall_entry::ENTRY_NAME] {
        FieldSlot::Absent => None,
        FieldSlot::Text(name) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => Some(class.name.to_string()),
    }
}

impl<'a> SchedLane<'a> {
    pub(super) fn new(facts: &'a LaneFacts, calls: &'a [CallClass], cpu: u32) -> Self {
        Self { facts, calls, cpu, cpus: Vec::new(), span: None }
    }

    #[inline]
    fn number(&self, event: &AnalysisEvent<'_>) -> u32 {
        match self.facts.cpu {
            Some(cpu) => cpu,
            None => event.cpu().unwrap_or(self.cpu),
        }
    }

    #[inline]
    fn cpu(&mut self, cpu: u32) -> &mut SchedCpu {
        let at = self.cpus.iter().position(|known| known.known.cpu == cpu);
        let at = at.unwrap_or_else(|| self.add(cpu));
        &mut self.cpus[at]
    }

    #[cold]
    fn add(&mut self, cpu: u32) -> usize {
        let known = SchedCpuState { cpu, ..SchedCpuState::default() };
        self.cpus.push(SchedCpu { known, seen: RunCalls::Nothing });
        self.cpus.len() - 1
    }

    /// Takes one event.
    pub(super) fn step(&mut self, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<SchedNote>) {
        if self.facts.span_ns.is_none() {
            self.span = Some((self.span.map_or(event.time, |span| span.0), event.time));
        }
        let CallClass { call, is_all } = self.calls[event.number];
        if is_all {
            self.cpu(self.number(event)).seen = RunCalls::Last(call);
            return;
        }
        for meaning in event.roles() {
            self.take(meaning, notes);
        }
    }

    /// Takes an event in one of its roles.
    #[inline]
    fn take(&mut self, meaning: RoleEvent<'_>, notes: &mut LaneNotes<SchedNote>) {
        let event = meaning.event;
        match meaning.role {
            EventRole::SyscallEntry => {
                let call = self.entered(meaning);
                self.cpu(self.number(event)).seen = RunCalls::Last(call);
            }
            EventRole::SyscallExit => self.cpu(self.number(event)).seen = RunCalls::Last(CurrentCall::None),
            EventRole::Switch => self.switch(meaning, notes),
            EventRole::Waking | EventRole::Wakeup => self.wake(meaning, notes),
            role => {
                if let Some(note) = rare(role, meaning) {
                    notes.push(event.time, note);
                }
            }
        }
    }

    fn entered(&self, meaning: RoleEvent<'_>) -> CurrentCall {
        match self.calls[meaning.event.number].call {
            CurrentCall::None => {
                meaning.small(syscall_entry::ENTRY_NUMBER).map_or(CurrentCall::Numbered(-1), CurrentCall::Numbered)
            }
            call => call,
        }
    }

    fn wake(&self, meaning: RoleEvent<'_>, notes: &mut LaneNotes<SchedNote>) {
        let Some(tid) = meaning.small(wake::WOKEN_TID) else { return };
        let target = meaning.integer(wake::TARGET_CPU).and_then(|cpu| u32::try_from(cpu).ok());
        let (is_wakeup, cpu) = (meaning.role == EventRole::Wakeup, self.number(meaning.event));
        let wake = Wake { tid, target, is_wakeup, cpu, comm: meaning.comm(wake::WOKEN_COMM) };
        notes.push(meaning.event.time, SchedNote::Wake(wake));
    }

    fn switch(&mut self, event: RoleEvent<'_>, notes: &mut LaneNotes<SchedNote>) {
        let ids = event.small(switch::PREV_TID).zip(event.small(switch::NEXT_TID));
        let Some((prev, next)) = ids else { return };
        let (time, number, facts) = (event.event.time, self.number(event.event), self.facts);
        let cpu = self.cpu(number);
        let (prev_comm, next_comm) = (event.comm(switch::PREV_COMM), event.comm(switch::NEXT_COMM));
        let seen = std::mem::take(&mut cpu.seen);
        let tail = cpu.known.tail.replace(CpuTail { time, next, comm: next_comm, is_assumed: false });
        match tail {
            None => (cpu.known.head, cpu.known.seen) = (Some(CpuHead { time, prev, comm: prev_comm }), seen),
            Some(tail) if tail.is_renamed(prev, prev_comm) => {
                notes.push(time, SchedNote::Rename(Rename { cpu: number, comm: prev_comm }));
            }
            Some(_) => {}
        }
        let away = match event.integer(switch::PREV_STATE) {
            Some(state) if is_runnable(state) => Away::Preempted,
            Some(state) if is_dead(state, facts.kernel) => Away::Dead,
            _ => Away::Blocked,
        };
        let switch = SchedSwitch {
            ran_ns: tail.map(|tail| tail.time.abs_diff(time)),
            is_cut: tail.is_none_or(|tail| tail.next != prev || is_doubtful(facts, tail.time, time)),
            away,
            cpu: number,
            prev,
            next,
            next_prio: event.small(switch::NEXT_PRIO),
            prev_pid: event.event.small_context(PID).filter(|_| event.event.small_context(TID) == Some(prev)),
            seen,
            next_comm,
        };
        notes.push(time, SchedNote::Switch(switch));
    }
}

/// Facts about threads from their forks or from other events.
fn rare(role: EventRole, meaning: RoleEvent<'_>) -> Option<SchedNote> {
    let named = |tid: i32, pid, comm| SchedThreadFacts { tid, pid, comm };
    match role {
        EventRole::Fork => meaning.small(fork::CHILD_TID).map(|tid| {
            let parent = meaning.small(fork::PARENT_TID).filter(|&parent| parent != 0);
            let parent = parent.zip(meaning.small(fork::PARENT_PID));
            SchedNote::Fork(named(tid, meaning.small(fork::CHILD_PID), meaning.comm(fork::CHILD_COMM)), parent)
        }),
        EventRole::ThreadState => meaning.small(thread_state::KNOWN_TID).map(|tid| {
            let (pid, comm) = (meaning.small(thread_state::KNOWN_PID), meaning.comm(thread_state::KNOWN_COMM));
            SchedNote::Known(named(tid, pid, comm))
        }),
        EventRole::Rename => {
            let tid = meaning.small(priority::CHANGED_TID)?;
            Some(SchedNote::Known(named(tid, None, meaning.comm(priority::NEW_COMM))))
        }
        _ => None,
    }
}

/// Whether events of the lane may be missing between two instants.
pub(super) fn is_doubtful(facts: &LaneFacts, begin: i64, end: i64) -> bool {
    !facts.holes.is_empty() && facts.holes.touch(begin, end)
}
