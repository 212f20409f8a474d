//! `syscalls`: the calls into the kernel, how long they took, and their outcomes.
//!
//! ```text
//! entry read ──── 12 µs ──── exit 42        count, total, min ... of `read`, and of the thread's `read`
//! entry futex ── switched out … in ── exit -110   errors: ETIMEDOUT
//! ```
//!
//! How entries find their exits is described in `calls`; here are the counts of each call.

mod outcomes;
mod report;
mod rows;
#[cfg(test)]
pub(crate) mod tests;
mod totals;

use serde::{Deserialize, Serialize};

use crate::calls::{
    Bases, CallId, CallLane, CallNames, CallNote, CallObserver, CallOutcome, CallState, LifeView, Settings,
};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::roles::{
    CPU, EventRole, FieldIndex, PID, TID, block, fork, switch, syscall_entry, syscall_exit, thread_state,
};
use crate::threads::ThreadKey;
use crate::uring::{Uring, UringLane, UringNote, UringState};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, LaneNotes, Needs, PartShape, Question, Setup, SpoolError, Wishes,
};

pub use rows::{CallRows, CallRun, SlowCall};
pub use totals::SyscallTotals;

/// The analysis.
#[derive(Debug)]
pub struct Syscalls {
    settings: Settings,
    names: CallNames,
    uring: Uring,
    wishes: Wishes,
    limits: CallLimits,
    /// No entry is in the trace, and exits tell themselves how long calls took.
    is_of_exits: bool,
}

/// Which calls count, and how they are counted.
#[derive(Clone, Debug, Default)]
struct CallLimits {
    min_ns: u64,
    max_ns: u64,
    cpus: Vec<u32>,
    /// In order; `None`: all.
    calls: Option<Vec<CallId>>,
    /// Only some threads are asked for, so that all that is counted must be known of each.
    is_by_thread: bool,
    /// How many of the slowest calls are kept.
    slow: usize,
}

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct SyscallState {
    calls: CallState<(), (), CallRun, CallRows>,
    totals: SyscallTotals,
    uring: UringState,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct SyscallLane<'a> {
    calls: CallLane<'a, Syscalls>,
    uring: UringLane<'a>,
}

/// The notes of a lane.
#[derive(Debug)]
pub enum SyscallNote {
    /// Of calls and threads.
    Calls(CallNote<(), (), CallRun>),
    /// Of io_uring.
    Uring(Box<UringNote>),
}

impl From<CallNote<(), (), CallRun>> for SyscallNote {
    fn from(note: CallNote<(), (), CallRun>) -> Self {
        Self::Calls(note)
    }
}

impl CallLimits {
    #[inline]
    fn wants_cpu(&self, cpu: u32) -> bool {
        self.cpus.is_empty() || self.cpus.contains(&cpu)
    }

    #[inline]
    fn wants_call(&self, call: CallId) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.binary_search(&call).is_ok())
    }
}

impl Syscalls {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions {
            by: &["syscall", "thread", "error", "slowest", "distribution", "uring"],
            names: true,
            ..SupportedOptions::COMMON
        };
        const SENTENCE: &str = "Durations and errors of system calls";
        AnalysisDescription::new("syscalls", "System calls", SENTENCE, OPTIONS)
            .with_examples(
                "kymo syscalls my-trace\n\
                 kymo syscalls --comm nginx --min 1ms my-trace\n\
                 kymo syscalls --json my-trace | jq '.tables[0].rows'",
            )
            .with_view(&["per-syscall", "errors", "slowest", "uring"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        let essential = &[EventRole::SyscallEntry, EventRole::SyscallExit, EventRole::UringSubmit];
        Question::new(Self::needs(), essential, Self::new)
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        let mut roles = vec![
            (EventRole::Switch, switch_fields()),
            (
                EventRole::Fork,
                vec![fork::CHILD_TID, fork::CHILD_PID, fork::CHILD_COMM, fork::PARENT_TID, fork::PARENT_PID],
            ),
            (EventRole::ThreadState, vec![thread_state::KNOWN_TID, thread_state::KNOWN_PID, thread_state::KNOWN_COMM]),
            (EventRole::SyscallEntry, vec![syscall_entry::ENTRY_NAME, syscall_entry::ENTRY_NUMBER]),
            (
                EventRole::SyscallExit,
                vec![syscall_exit::EXIT_NAME, syscall_exit::EXIT_NUMBER, syscall_exit::RET, syscall_exit::TOOK_NS],
            ),
            // For requests of io_uring.
            (EventRole::BlockIssue, vec![block::DEV]),
        ];
        roles.extend(Uring::roles());
        Needs { roles, context: vec![CPU, TID, PID, crate::roles::COMM], ..Needs::default() }
    }

    /// Whether it is interested in a call of that name.
    #[must_use]
    pub fn wants(_: EventRole, _: &str) -> bool {
        true
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let wishes = setup.wishes.clone();
        let names = CallNames::new(setup);
        let limits = CallLimits {
            min_ns: wishes.min_ns.unwrap_or(0),
            max_ns: wishes.max_ns.unwrap_or(u64::MAX),
            cpus: wishes.cpus.clone(),
            calls: names.wanted(&wishes),
            is_by_thread: !wishes.tids.is_empty() || !wishes.comms.is_empty(),
            slow: wishes.top.unwrap_or(SLOW),
        };
        let mut roles = setup.classes.iter().flat_map(|class| &class.roles);
        let is_of_exits = !roles.any(|bound| bound.role == EventRole::SyscallEntry);
        Self { settings: Settings::new(setup), names, uring: Uring::new(setup), wishes, limits, is_of_exits }
    }
}

/// How many of the slowest calls are shown by default.
const SLOW: usize = 10;

/// Fields of switches that calls need.
pub(crate) fn switch_fields() -> Vec<FieldIndex> {
    vec![switch::PREV_TID, switch::PREV_STATE, switch::NEXT_TID, switch::PREV_COMM, switch::NEXT_COMM]
}

impl CallObserver for Syscalls {
    type Entry = ();
    type Exit = ();
    type Run = CallRun;
    type Rows = CallRows;
    type Totals = SyscallTotals;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    #[inline]
    fn settle_in_run(&self, totals: &mut SyscallTotals, run: &mut CallRun, outcome: CallOutcome<(), ()>) {
        outcomes::settle_in_run(&self.limits, totals, run, outcome);
    }

    #[inline]
    fn is_empty(&self, run: &CallRun) -> bool {
        run.is_empty()
    }

    fn extend(&self, run: &mut CallRun, later: CallRun) {
        run.extend(&self.limits, later);
    }

    fn settle(&self, totals: &mut SyscallTotals, _: ThreadKey, rows: &mut CallRows, outcome: CallOutcome<(), ()>) {
        totals.lend(rows);
        outcomes::settle(&self.limits, totals, rows, outcome);
    }

    #[inline]
    fn count(&self, totals: &mut SyscallTotals, _: ThreadKey, rows: &mut CallRows, run: CallRun) {
        totals.lend(rows);
        rows.count_run(&self.limits, run);
    }

    fn add(&self, rows: &mut CallRows, later: CallRows) {
        rows.add(later);
    }

    fn over(&self, totals: &mut SyscallTotals, life: LifeView<'_, CallRows>) {
        totals.over(&self.limits, &self.wishes, life);
    }
}

impl Analysis for Syscalls {
    type State = SyscallState;
    type Lane<'a> = SyscallLane<'a>;
    type Note = SyscallNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "syscalls", version: 4 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> SyscallState {
        let (calls, totals) = (CallState::new(self.settings.lanes.len()), SyscallTotals::new(&self.wishes));
        SyscallState { calls, totals, uring: UringState::default() }
    }

    fn enter(&self, lane: usize) -> SyscallLane<'_> {
        let calls = CallLane::new(self, lane, SyscallTotals::new(&self.wishes));
        SyscallLane { calls, uring: UringLane::new(&self.uring, lane) }
    }

    fn step(&self, lane: &mut SyscallLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<Self::Note>) {
        let SyscallLane { calls: lane, uring } = lane;
        lane.arrive(event);
        for (place, meaning) in event.roles().enumerate() {
            uring.step(&meaning, |note| notes.push(event.time, SyscallNote::Uring(Box::new(note))));
            match meaning.role {
                EventRole::SyscallEntry => lane.enter(&meaning, self.names.call(&meaning, place), (), notes),
                EventRole::SyscallExit => {
                    let (call, ret) = (self.names.call(&meaning, place), meaning.integer(syscall_exit::RET));
                    let took_ns = self.is_of_exits.then(|| meaning.integer(syscall_exit::TOOK_NS)).flatten();
                    match took_ns.and_then(|took_ns| u64::try_from(took_ns).ok()) {
                        Some(took_ns) => lane.whole(&meaning, call, (took_ns, ret), ((), ()), notes),
                        None => lane.exit(&meaning, call, ret, (), notes),
                    }
                }
                EventRole::Switch => lane.switch(&meaning, notes),
                EventRole::Fork => lane.fork(&meaning, notes),
                EventRole::ThreadState => lane.known(&meaning, notes),
                _ => {}
            }
        }
    }

    fn note(&self, state: &mut SyscallState, lane: usize, time: i64, note: Self::Note) {
        match note {
            SyscallNote::Calls(note) => state.calls.note(self, &mut state.totals, note),
            SyscallNote::Uring(note) => self.uring.note(&mut state.uring, lane, time, &note),
        }
    }

    fn leave(&self, state: &mut SyscallState, lane: usize, end: SyscallLane<'_>) {
        self.uring.leave(&mut state.uring, lane, end.uring);
        let totals = state.calls.leave(lane, end.calls);
        state.totals.add(&self.limits, totals, &Bases::default());
    }

    fn merge(&self, left: &mut SyscallState, right: SyscallState) {
        let bases = left.calls.merge(self, &mut left.totals, right.calls);
        left.totals.add(&self.limits, right.totals, &bases);
        self.uring.merge(&mut left.uring, right.uring);
    }

    fn anchor(&self, state: &mut SyscallState) {
        let known = std::mem::replace(&mut state.totals, SyscallTotals::new(&self.wishes));
        let bases = state.calls.anchor(self, &mut state.totals);
        state.totals.add(&self.limits, known, &bases);
        self.uring.anchor(&mut state.uring);
    }

    fn fits(&self, state: &SyscallState) -> bool {
        state.calls.fits(self.settings.lanes.len())
    }

    fn forget(&self, state: &mut SyscallState, _: i64) -> bool {
        state.calls.forget(self);
        state.totals.forget(&self.wishes);
        self.uring.forget(&mut state.uring);
        true
    }

    fn finish(&self, state: &SyscallState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
