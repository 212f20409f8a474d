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
use crate::roles::{CPU, EventRole, FieldIndex, PID, TID, fork, switch, syscall_entry, syscall_exit, thread_state};
use crate::threads::ThreadKey;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, LaneNotes, Needs, PartShape, Question, Setup, SpoolError, Wishes,
};

pub(crate) use outcomes::errno;
pub use rows::{CallRows, CallRun, SlowCall};
pub use totals::SyscallTotals;

/// The analysis.
#[derive(Debug)]
pub struct Syscalls {
    settings: Settings,
    names: CallNames,
    wishes: Wishes,
    limits: CallLimits,
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
            by: &["syscall", "thread", "error", "slowest", "distribution"],
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
            .with_view(&["per-syscall", "errors", "slowest"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[EventRole::SyscallEntry], Self::new)
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        Needs {
            roles: vec![
                (EventRole::Switch, switch_fields()),
                (
                    EventRole::Fork,
                    vec![fork::CHILD_TID, fork::CHILD_PID, fork::CHILD_COMM, fork::PARENT_TID, fork::PARENT_PID],
                ),
                (
                    EventRole::ThreadState,
                    vec![thread_state::KNOWN_TID, thread_state::KNOWN_PID, thread_state::KNOWN_COMM],
                ),
                (EventRole::SyscallEntry, vec![syscall_entry::ENTRY_NAME, syscall_entry::ENTRY_NUMBER]),
                (EventRole::SyscallExit, vec![syscall_exit::EXIT_NAME, syscall_exit::EXIT_NUMBER, syscall_exit::RET]),
            ],
            context: vec![CPU, TID, PID, crate::roles::COMM],
            ..Needs::default()
        }
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
        Self { settings: Settings::new(setup), names, wishes, limits }
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
    type Lane<'a> = CallLane<'a, Self>;
    type Note = CallNote<(), (), CallRun>;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "syscalls", version: 2 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> SyscallState {
        SyscallState { calls: CallState::new(self.settings.lanes.len()), totals: SyscallTotals::new(&self.wishes) }
    }

    fn enter(&self, lane: usize) -> CallLane<'_, Self> {
        CallLane::new(self, lane, SyscallTotals::new(&self.wishes))
    }

    fn step(&self, lane: &mut CallLane<'_, Self>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<Self::Note>) {
        lane.arrive(event);
        for (place, meaning) in event.roles().enumerate() {
            match meaning.role {
                EventRole::SyscallEntry => lane.enter(&meaning, self.names.call(&meaning, place), (), notes),
                EventRole::SyscallExit => {
                    let ret = meaning.integer(syscall_exit::RET);
                    lane.exit(&meaning, self.names.call(&meaning, place), ret, (), notes);
                }
                EventRole::Switch => lane.switch(&meaning, notes),
                EventRole::Fork => lane.fork(&meaning, notes),
                EventRole::ThreadState => lane.known(&meaning, notes),
                _ => {}
            }
        }
    }

    fn note(&self, state: &mut SyscallState, _: usize, _: i64, note: Self::Note) {
        state.calls.note(self, &mut state.totals, note);
    }

    fn leave(&self, state: &mut SyscallState, lane: usize, end: CallLane<'_, Self>) {
        let totals = state.calls.leave(lane, end);
        state.totals.add(&self.limits, totals, &Bases::default());
    }

    fn merge(&self, left: &mut SyscallState, right: SyscallState) {
        let bases = left.calls.merge(self, &mut left.totals, right.calls);
        left.totals.add(&self.limits, right.totals, &bases);
    }

    fn anchor(&self, state: &mut SyscallState) {
        let known = std::mem::replace(&mut state.totals, SyscallTotals::new(&self.wishes));
        let bases = state.calls.anchor(self, &mut state.totals);
        state.totals.add(&self.limits, known, &bases);
    }

    fn fits(&self, state: &SyscallState) -> bool {
        state.calls.fits(self.settings.lanes.len())
    }

    fn forget(&self, state: &mut SyscallState, _: i64) -> bool {
        state.calls.forget(self);
        state.totals.forget(&self.wishes);
        true
    }

    fn finish(&self, state: &SyscallState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
