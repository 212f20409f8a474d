//! `sched`: how long threads wait for a CPU once they were woken, how long they run, and their
//! other states.
//!
//! ```text
//! thread 7     blocked in read ├─ waiting ─┤├──── running ────┤├ preempted ┤├ running ...
//! CPU 0        wake 7 ─────────↑           │                  │            │
//! CPU 1                                    ↑ switch to 7      ↑ away       ↑
//! ```
//!
//! Threads wander between CPUs, so their states are kept in the order of time, from notes of all
//! lanes (`lane`). A piece of a thread's life in a part of the trace keeps its open questions until
//! it is joined with the piece before (`row`).

mod beginning;
mod doing;
mod lane;
mod lives;
mod merging;
mod periods;
mod report;
mod row;
mod settled;
mod state;
mod sums;
#[cfg(test)]
mod tests;
mod wakeups;
mod whole;

use crate::description::{AnalysisDescription, SupportedOptions};
use crate::roles::{CPU, EventRole, PID, TID, fork, priority, switch, syscall_entry, thread_state, wake};
use crate::threads::ThreadKey;
use crate::windows::Windows;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, LaneFacts, LaneNotes, Needs, PartShape, Question, Setup,
    SpoolError, Wishes,
};
pub use lane::{SchedLane, SchedNote};
pub use state::SchedState;

/// The analysis.
#[derive(Debug)]
pub struct Sched {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
    tables: Tables,
    /// Holes of all lanes.
    holes: Windows,
    /// For each class of events, its facts about calls.
    calls: Vec<lane::CallClass>,
    /// Names that classes give to calls.
    names: Vec<String>,
}

/// Which tables to make; all of them by default.
#[derive(Clone, Copy, Debug)]
struct Tables {
    thread: bool,
    priority: bool,
    top: bool,
    waker: bool,
    run: bool,
    state: bool,
}

impl Tables {
    fn new(by: &[String]) -> Self {
        let wants = |name: &str| by.is_empty() || by.iter().any(|wanted| wanted == name);
        Self {
            thread: wants("thread"),
            priority: wants("priority"),
            top: wants("top"),
            waker: wants("waker"),
            run: wants("run"),
            state: wants("state"),
        }
    }
}

impl Sched {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions {
            by: &["total", "thread", "priority", "top", "waker", "run", "state"],
            ..SupportedOptions::COMMON
        };
        const SENTENCE: &str = "Scheduling latency of threads, how long they ran, and what blocked them";
        AnalysisDescription::new("sched", "Scheduling", SENTENCE, OPTIONS)
            .with_examples(
                "kymo sched my-trace\n\
                 kymo sched --by top --min 1ms my-trace\n\
                 kymo sched --by state --comm nginx my-trace",
            )
            .with_view(&["total", "per-thread", "top"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[EventRole::Switch], Self::new)
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        use {fork::*, priority::*, switch::*, syscall_entry::*, thread_state::*, wake::*};
        Needs {
            roles: vec![
                (EventRole::Switch, vec![PREV_TID, PREV_STATE, NEXT_TID, PREV_COMM, NEXT_COMM, NEXT_PRIO]),
                (EventRole::Waking, vec![WOKEN_TID, WOKEN_COMM, TARGET_CPU]),
                (EventRole::Wakeup, vec![WOKEN_TID, WOKEN_COMM, TARGET_CPU]),
                (EventRole::Fork, vec![CHILD_TID, CHILD_PID, CHILD_COMM, PARENT_TID, PARENT_PID]),
                (EventRole::ThreadState, vec![KNOWN_TID, KNOWN_PID, KNOWN_COMM]),
                (EventRole::Rename, vec![CHANGED_TID, NEW_COMM]),
                (EventRole::SyscallEntry, vec![ENTRY_NAME, ENTRY_NUMBER]),
                (EventRole::SyscallExit, Vec::new()),
            ],
            context: vec![CPU, TID, PID],
            ..Needs::default()
        }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let holes = setup.holes();
        let (calls, names) = lane::calls(setup.classes);
        let tables = Tables::new(&setup.wishes.by);
        Self { lanes: setup.lanes.to_vec(), wishes: setup.wishes.clone(), tables, holes, calls, names }
    }

    /// Whether no event between two instants is missing.
    fn is_whole(&self, begin: i64, end: i64) -> bool {
        self.holes.is_empty() || !self.holes.touch(begin, end)
    }

    fn key(&self, lane: usize, tid: i32) -> ThreadKey {
        ThreadKey { host: self.lanes[lane].host, tid }
    }
}

impl Analysis for Sched {
    type State = SchedState;
    type Lane<'a> = SchedLane<'a>;
    type Note = SchedNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "sched", version: 3 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> SchedState {
        SchedState::new(self)
    }

    fn enter(&self, lane: usize) -> SchedLane<'_> {
        let facts = &self.lanes[lane];
        SchedLane::new(facts, &self.calls, facts.cpu.unwrap_or(lane as u32))
    }

    fn step(&self, lane: &mut SchedLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<SchedNote>) {
        lane.step(event, notes);
    }

    fn note(&self, state: &mut SchedState, lane: usize, time: i64, note: SchedNote) {
        match &note {
            SchedNote::Switch(switch) => state.switch(self, lane, time, switch),
            SchedNote::Wake(wake) if wake.tid != 0 => state.wake(self, lane, time, wake),
            SchedNote::Fork(named, parent) => {
                if let Some((parent, pid)) = *parent {
                    state.lives.row(self.key(lane, parent), time).pid = Some(pid);
                }
                if named.tid != 0 {
                    state.fork(self, lane, time, named);
                }
            }
            SchedNote::Known(named) if named.tid != 0 => {
                let row = state.lives.row(self.key(lane, named.tid), time);
                row.name_it(named.comm, time);
                row.pid = named.pid.or(row.pid);
            }
            SchedNote::Rename(rename) => state.rename(lane, time, rename),
            SchedNote::Wake(_) | SchedNote::Known(_) => {}
        }
        state.tidy();
    }

    fn leave(&self, state: &mut SchedState, lane: usize, end: SchedLane<'_>) {
        for cpu in &end.cpus {
            if let Some(running) = state.running_mut(lane, cpu.known.cpu) {
                running.call = cpu.seen.or(running.call);
            }
        }
        state.cpus[lane] = end.cpus.iter().map(lane::SchedCpu::state).collect();
        state.span = union(state.span, end.span);
    }

    fn merge(&self, left: &mut SchedState, right: SchedState) {
        self.merge_states(left, right);
    }

    fn anchor(&self, state: &mut SchedState) {
        state.is_anchored = true;
        state.begin(self);
    }

    fn forget(&self, state: &mut SchedState, at: i64) -> bool {
        self.forget_period(state, at);
        true
    }

    fn fits(&self, state: &SchedState) -> bool {
        let is_place = |run: &state::CurrentThread| run.tid == 0 || (run.at as usize) < state.lives.places.len();
        let lanes = self.lanes.len();
        let is_of_lanes = state.cpus.len() == lanes && state.running.len() == lanes;
        is_of_lanes && state.running.iter().flatten().all(is_place) && state.lives.fits()
    }

    fn finish(&self, state: &SchedState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}

fn union(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}
