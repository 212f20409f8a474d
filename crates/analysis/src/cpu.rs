//! `cpu`: how long each CPU was busy, and with which threads.
//!
//! ```text
//! CPU 0   ├── bash ──┤├─ idle ─┤├──── make ────┤░░ lost ░░├── make ──┤
//!         ↑ edge     ↑ switch   ↑               ↑           ↑          ↑ edge
//! ```
//!
//! A run of a thread is the time between two switches of a CPU. Each run is measured where it is
//! seen; the facts about a thread are put together in the order of time, as threads wander. Before
//! the first switch of a part of the trace the CPU ran the thread that this switch ends; since
//! when, the part before knows.

mod lane;
mod report;
mod rows;
mod state;
mod sums;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::description::{AnalysisDescription, SupportedOptions};
use crate::roles::{CPU, EventRole, PID, TID, fork, priority, switch, thread_state};
use crate::threads::{PartLives, ThreadKey};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, BoundClass, EventRows, LaneFacts, LaneNotes, Needs, PartShape,
    Question, Setup, SpoolError, Wishes,
};

use self::lane::{Fork, SwitchColumns};
use self::rows::{EndedCpuLives, Small};
use self::sums::{CpuFirstSwitch, ThreadRun, TimeBins};

pub use self::lane::{CpuLane, CpuNote};
pub use self::rows::CpuThreadRow;
pub use self::state::CpuUsageState;
pub use self::sums::CpuState;

/// The analysis.
#[derive(Debug)]
pub struct Cpu {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
    bins: TimeBins,
    /// For each class of events that means switches where their fields are, if all are columns.
    columns: Vec<Option<SwitchColumns>>,
    /// How many threads a part had: others have about as many.
    threads: AtomicUsize,
}

impl Cpu {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions =
            SupportedOptions { by: &["cpu", "thread", "process", "application"], ..SupportedOptions::COMMON };
        const SENTENCE: &str = "How long each CPU was busy, and with which threads, processes and applications";
        AnalysisDescription::new("cpu", "Busy CPUs", SENTENCE, OPTIONS)
            .with_examples(
                "kymo cpu my-trace\n\
                 kymo cpu --by process --top 20 my-trace\n\
                 kymo cpu --by application my-trace\n\
                 kymo cpu --by thread --comm 'kworker*' --begin 17:46:23 my-trace\n\
                 kymo cpu --period 100ms --csv --table course my-trace\n\
                 kymo cpu --period 'frame : app:vsync' my-trace\n\
                 kymo cpu --period 'call : rpc:begin : rpc:end if id == $begin.id' \\\n\
                 \x20 --period-captures 'call : peer=peer : status=status' my-trace",
            )
            .with_view(&["per-cpu", "per-thread", "course"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[EventRole::Switch], Self::new)
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        use {fork::*, priority::*, switch::*, thread_state::*};
        Needs {
            roles: vec![
                (EventRole::Switch, vec![PREV_TID, PREV_STATE, NEXT_TID, PREV_COMM, NEXT_COMM, NEXT_PRIO]),
                (EventRole::Fork, vec![CHILD_TID, CHILD_PID, CHILD_COMM, PARENT_TID, PARENT_PID]),
                (EventRole::ThreadState, vec![KNOWN_TID, KNOWN_PID, KNOWN_COMM]),
                (EventRole::Rename, vec![CHANGED_TID, NEW_COMM]),
            ],
            context: vec![CPU, TID, PID],
            ..Needs::default()
        }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        Self {
            lanes: setup.lanes.to_vec(),
            wishes: setup.wishes.clone(),
            bins: TimeBins::new(setup),
            columns: setup.classes.iter().map(SwitchColumns::of).collect(),
            threads: AtomicUsize::new(0),
        }
    }
}

impl Analysis for Cpu {
    type State = CpuUsageState;
    type Lane<'a> = CpuLane<'a>;
    type Note = CpuNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "cpu", version: 3 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> CpuUsageState {
        let lanes = self.lanes.len();
        let threads = PartLives::with_room(self.threads.load(Ordering::Relaxed));
        CpuUsageState {
            cpus: vec![Vec::new(); lanes],
            running: vec![Vec::new(); lanes],
            threads,
            over: EndedCpuLives::new(&self.wishes),
        }
    }

    fn enter(&self, lane: usize) -> CpuLane<'_> {
        let facts = &self.lanes[lane];
        CpuLane::new(facts, facts.cpu.unwrap_or(lane as u32))
    }

    fn step(&self, lane: &mut CpuLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<CpuNote>) {
        for meaning in event.roles() {
            let note = match meaning.role {
                EventRole::Switch => {
                    lane.switch_anywhere(&self.bins, meaning, notes);
                    None
                }
                EventRole::Fork => meaning.small(fork::CHILD_TID).map(|child| {
                    let parent = meaning.small(fork::PARENT_TID);
                    CpuNote::Fork(Fork {
                        child,
                        child_pid: meaning.small(fork::CHILD_PID),
                        comm: meaning.comm(fork::CHILD_COMM),
                        parent: parent.zip(meaning.small(fork::PARENT_PID)),
                    })
                }),
                EventRole::ThreadState => meaning.small(thread_state::KNOWN_TID).map(|known| {
                    let pid = meaning.small(thread_state::KNOWN_PID);
                    CpuNote::Known(known, pid, meaning.comm(thread_state::KNOWN_COMM))
                }),
                EventRole::Rename => meaning
                    .small(priority::CHANGED_TID)
                    .map(|changed| CpuNote::Known(changed, None, meaning.comm(priority::NEW_COMM))),
                _ => None,
            };
            if let Some(note) = note {
                notes.push(event.time, note);
            }
        }
    }

    fn steps(
        &self,
        lane: &mut CpuLane<'_>,
        (rows, classes, bytes): (&EventRows, &[BoundClass], &[u8]),
        notes: &mut LaneNotes<CpuNote>,
    ) {
        let other = |lane: &mut CpuLane<'_>, row: usize, notes: &mut LaneNotes<CpuNote>| {
            self.step(lane, &rows.event(row, classes, bytes), notes);
        };
        lane.steps((&self.bins, &self.columns), rows, bytes, notes, other);
    }

    fn note(&self, state: &mut CpuUsageState, lane: usize, time: i64, note: CpuNote) {
        let host = self.lanes[lane].host;
        match note {
            CpuNote::Switch(ref switch) => {
                let ran = (switch.prev, ThreadRun { ns: switch.run_ns, doubt_ns: 0 });
                state.switch(&self.wishes, (lane, host), time, (switch, Some(ran)));
            }
            CpuNote::Other(other) => state.switch(&self.wishes, (lane, host), time, (&other.switch, other.ran)),
            CpuNote::Fork(ref fork) => state.fork(&self.wishes, host, time, fork),
            CpuNote::Known(0, ..) => {}
            CpuNote::Known(tid, pid, comm) => {
                let row = state.threads.at(ThreadKey { host, tid }, time);
                (row.pid, row.comm) = (Small::of(pid).or(row.pid), comm.or(row.comm));
            }
        }
    }

    fn leave(&self, state: &mut CpuUsageState, lane: usize, end: CpuLane<'_>) {
        state.cpus[lane] = end.end();
        self.threads.fetch_max(state.threads.count(), Ordering::Relaxed);
    }

    fn merge(&self, left: &mut CpuUsageState, right: CpuUsageState) {
        self.merge_states(left, right);
    }

    fn forget(&self, state: &mut CpuUsageState, at: i64) -> bool {
        for (_, cpu) in state.cpus.iter_mut().flatten() {
            let tail = cpu.tail.map(|(_, tid)| (at, tid));
            // The thread of each current run is known, so no edge is left without an owner.
            let head = tail.map(|(time, _)| CpuFirstSwitch { time, prev: 0 });
            *cpu = CpuState { head, tail, ..CpuState::default() };
        }
        state.threads.forget(CpuThreadRow::forget);
        state.over = EndedCpuLives::new(&self.wishes);
        true
    }

    fn fits(&self, state: &CpuUsageState) -> bool {
        let lanes = self.lanes.len();
        state.cpus.len() == lanes && state.running.len() == lanes && state.threads.fits()
    }

    fn finish(&self, state: &CpuUsageState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
