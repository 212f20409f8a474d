//! `stacks`: the functions that CPUs run, and those in which threads wait, by their call stacks.
//!
//! ```text
//! CPU 0      sample 17 ...... sample 17 ... stack 5 ┐ switch 7 → 9
//! thread 7   ─────── runs ──────────────────────────┘├───── waits: in stack 5 ─────┤ runs
//! ```
//!
//! Events name stacks by number. Their frames are not looked at before the answer is made: the caller of an analysis has them,
//! see [`crate::resolve`]. The stack of a wait is an event of its own, a moment before the switch that begins it, or behind it:
//! `waits` puts them together.

mod report;
mod sums;
#[cfg(test)]
mod tests;
mod waits;

use std::sync::Arc;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::description::{AnalysisDescription, SupportedOptions};
use crate::resolve::{StackId, StackResolver};
use crate::roles::{CPU, EventRole, call_stack, fork, priority, switch, thread_state};
use crate::threads::{ThreadKey, is_dead, is_runnable};
use crate::windows::Windows;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, Comm, LaneFacts, LaneNotes, Needs, PartShape, Question,
    RoleEvent, Setup, SpoolError, Wishes,
};
use sums::{StackKind, StackSums};
use waits::{ThreadWaits, WaitMoment};

/// The analysis.
#[derive(Debug)]
pub struct StackAnalysis {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
    /// Where events of each machine may be missing.
    holes: Vec<Windows>,
    /// For each class of events the trace that it is of.
    traces: Vec<u32>,
    resolver: Option<Arc<dyn StackResolver>>,
}

/// The state behind a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StackState {
    sums: StackSums,
    waits: HashMap<ThreadKey, ThreadWaits>,
    threads: HashMap<ThreadKey, NamedThread>,
    /// Nothing comes before.
    is_first: bool,
}

/// The last that is known of a thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct NamedThread {
    comm: Comm,
    pid: Option<i32>,
}

/// What an event tells.
#[derive(Debug)]
pub enum StackNote {
    /// A thread has a stack; its process, if that is known.
    Stack(StackId, StackKind, i32, Option<i32>),
    /// A thread is woken, in this stack of another one.
    Woken(i32, StackId),
    /// A CPU changes threads: that of before, its name, and how it is; the next one.
    Switch((i32, Comm, SwitchedThread), (i32, Comm)),
    /// A thread is known by these: its number, process and name.
    Known(i32, Option<i32>, Comm),
}

/// How a thread is that stops running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchedThread {
    /// It waits for something.
    Waits,
    /// It waits for a CPU.
    CanRun,
    /// It never runs again.
    IsDead,
}

impl StackAnalysis {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions { names: true, ..SupportedOptions::COMMON };
        const SENTENCE: &str = "Functions that CPUs ran and in which threads waited, by call stacks";
        AnalysisDescription::new("stacks", "Call stacks", SENTENCE, OPTIONS)
            .with_examples(
                "kymo stacks my-trace\n\
                 kymo stacks --top 20 --comm 'server*' my-trace\n\
                 kymo stacks --name 'futex_*' --min 10ms my-trace\n\
                 kymo stacks --csv --table waits my-trace",
            )
            .with_view(&["functions", "waits", "wakers"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[EventRole::CallStack], Self::new)
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        use {call_stack::*, fork::*, priority::*, switch::*, thread_state::*};
        let roles = vec![
            (EventRole::CallStack, vec![STACK, STACK_TID, STACK_PID, STACK_KIND, STACK_EVENT, STACK_WOKEN]),
            (EventRole::Switch, vec![PREV_TID, PREV_STATE, NEXT_TID, PREV_COMM, NEXT_COMM]),
            (EventRole::Fork, vec![CHILD_TID, CHILD_PID, CHILD_COMM]),
            (EventRole::ThreadState, vec![KNOWN_TID, KNOWN_PID, KNOWN_COMM]),
            (EventRole::Rename, vec![CHANGED_TID, NEW_COMM]),
        ];
        Needs { roles, context: vec![CPU], ..Needs::default() }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        Self {
            lanes: setup.lanes.to_vec(),
            wishes: setup.wishes.clone(),
            holes: setup.holes_by_host(),
            traces: setup.traces.to_vec(),
            resolver: setup.stacks.cloned(),
        }
    }

    /// The stack that an event names.
    fn stack_id(&self, meaning: RoleEvent<'_>) -> Option<StackId> {
        let trace = self.traces.get(meaning.event.number).copied().unwrap_or_default();
        Some(StackId { trace, number: u32::try_from(meaning.integer(call_stack::STACK)?).ok()? })
    }

    /// A thread that is woken, if it is wanted; the thread that wakes it, and its CPU, may be any.
    fn woken(&self, meaning: RoleEvent<'_>) -> Option<StackNote> {
        let woken = meaning.small(call_stack::STACK_WOKEN).filter(|tid| *tid != 0 && self.wishes.wants_tid(*tid))?;
        (meaning.text(call_stack::STACK_KIND) == Some(b"waker")).then_some(())?;
        Some(StackNote::Woken(woken, self.stack_id(meaning)?))
    }

    /// A stack, if its event is wanted.
    fn stack(&self, lane: &LaneFacts, meaning: RoleEvent<'_>) -> Option<StackNote> {
        let event = meaning.event;
        let tid = meaning.small(call_stack::STACK_TID)?;
        if !self.wishes.wants_tid(tid) || !self.wishes.wants_cpu(lane.cpu.or_else(|| event.cpu())) {
            return None;
        }
        let of = meaning.integer(call_stack::STACK_EVENT).and_then(|event| u16::try_from(event).ok());
        let kind = StackKind::of(meaning.text(call_stack::STACK_KIND).unwrap_or_default(), of.unwrap_or_default());
        // Threads that are ending have no process any more.
        let pid = meaning.small(call_stack::STACK_PID).filter(|pid| *pid >= 0);
        Some(StackNote::Stack(self.stack_id(meaning)?, kind, tid, pid))
    }

    /// What an event tells in one of its roles.
    fn told(&self, lane: &LaneFacts, meaning: RoleEvent<'_>) -> Option<StackNote> {
        match meaning.role {
            EventRole::CallStack => self.stack(lane, meaning),
            EventRole::Switch => {
                let (prev, next) = (meaning.small(switch::PREV_TID)?, meaning.small(switch::NEXT_TID)?);
                let thread = match meaning.integer(switch::PREV_STATE) {
                    Some(state) if is_dead(state, lane.kernel) => SwitchedThread::IsDead,
                    Some(state) if is_runnable(state) => SwitchedThread::CanRun,
                    Some(_) | None => SwitchedThread::Waits,
                };
                let names = [switch::PREV_COMM, switch::NEXT_COMM].map(|field| meaning.comm(field));
                Some(StackNote::Switch((prev, names[0], thread), (next, names[1])))
            }
            EventRole::Fork => {
                let pid = meaning.small(fork::CHILD_PID).filter(|pid| *pid >= 0);
                Some(StackNote::Known(meaning.small(fork::CHILD_TID)?, pid, meaning.comm(fork::CHILD_COMM)))
            }
            EventRole::ThreadState => {
                let (tid, pid) = (meaning.small(thread_state::KNOWN_TID)?, meaning.small(thread_state::KNOWN_PID));
                Some(StackNote::Known(tid, pid, meaning.comm(thread_state::KNOWN_COMM)))
            }
            EventRole::Rename => {
                Some(StackNote::Known(meaning.small(priority::CHANGED_TID)?, None, meaning.comm(priority::NEW_COMM)))
            }
            _ => None,
        }
    }

    /// Something happens to a thread that may wait.
    fn moment(&self, state: &mut StackState, key: ThreadKey, moment: WaitMoment) {
        let is_first = state.is_first;
        let waits = state.waits.entry(key).or_insert_with(|| ThreadWaits::new(is_first));
        let ended = waits.push(moment);
        ended.into_iter().for_each(|wait| state.sums.add_wait(&self.holes, &self.wishes, key, &wait));
    }
}

impl StackState {
    /// A thread is called so, and of that process.
    fn known(&mut self, key: ThreadKey, pid: Option<i32>, comm: Comm) {
        let known = self.threads.entry(key).or_default();
        *known = NamedThread { comm: comm.or(known.comm), pid: pid.or(known.pid) };
    }
}

impl Analysis for StackAnalysis {
    type State = StackState;
    type Lane<'a> = usize;
    type Note = StackNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "stacks", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> StackState {
        StackState::default()
    }

    fn enter(&self, lane: usize) -> usize {
        lane
    }

    fn step(&self, lane: &mut usize, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<StackNote>) {
        for meaning in event.roles() {
            let woken = if meaning.role == EventRole::CallStack { self.woken(meaning) } else { None };
            for note in woken.into_iter().chain(self.told(&self.lanes[*lane], meaning)) {
                notes.push(event.time, note);
            }
        }
    }

    fn note(&self, state: &mut StackState, lane: usize, time: i64, note: StackNote) {
        let key = |tid: i32| ThreadKey { host: self.lanes[lane].host, tid };
        match note {
            StackNote::Stack(stack, kind, tid, pid) => {
                state.known(key(tid), pid, Comm::default());
                match kind {
                    StackKind::Wait => self.moment(state, key(tid), WaitMoment::Stack(time, stack)),
                    kind => state.sums.add(key(tid), kind, stack),
                }
            }
            StackNote::Woken(tid, stack) => self.moment(state, key(tid), WaitMoment::Woken(stack)),
            StackNote::Switch((prev, prev_comm, thread), (next, next_comm)) => {
                let goes = match thread {
                    SwitchedThread::IsDead => WaitMoment::End,
                    thread => WaitMoment::Out(time, thread == SwitchedThread::CanRun),
                };
                for (tid, comm, moment) in [(prev, prev_comm, goes), (next, next_comm, WaitMoment::In(time))] {
                    if tid != 0 && self.wishes.wants_tid(tid) {
                        state.known(key(tid), None, comm);
                        self.moment(state, key(tid), moment);
                    }
                }
            }
            StackNote::Known(tid, pid, comm) => state.known(key(tid), pid, comm),
        }
    }

    fn leave(&self, _: &mut StackState, _: usize, _: usize) {}

    fn merge(&self, left: &mut StackState, right: StackState) {
        left.sums.merge(right.sums);
        for (key, waits) in right.waits {
            waits.head().for_each(|moment| self.moment(left, key, moment));
            if let Some(known) = left.waits.get_mut(&key) {
                known.follow(&waits);
            } else {
                left.waits.insert(key, waits);
            }
        }
        right.threads.into_iter().for_each(|(key, known)| left.known(key, known.pid, known.comm));
    }

    fn anchor(&self, state: &mut StackState) {
        state.is_first = true;
        let Self { holes, wishes, .. } = self;
        for (key, waits) in &mut state.waits {
            waits.begin().iter().for_each(|wait| state.sums.add_wait(holes, wishes, *key, wait));
        }
    }

    fn forget(&self, state: &mut StackState, _: i64) -> bool {
        self.anchor(state);
        state.sums = StackSums::default();
        true
    }

    fn finish(&self, state: &StackState) -> Result<Answer, SpoolError> {
        let mut whole = state.clone();
        self.anchor(&mut whole);
        Ok(self.report(whole))
    }
}
