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
use crate::roles::{CPU, PID, Role, TID, fork, priority, switch, thread_state};
use crate::threads::{ThreadKey, Threads};
use crate::{
    Analysis, Answer, BoundClass, Event, EventRows, Identity, LaneFacts, Needs, Notes, Question, Setup, Shape,
    SpoolError, Wishes,
};

use self::lane::{Fork, SwitchColumns};
use self::rows::{Over, Small};
use self::sums::{Bins, Head, Run};

pub use self::lane::{Lane, Note};
pub use self::rows::ThreadRow;
pub use self::state::State;
pub use self::sums::CpuState;

/// The analysis.
#[derive(Debug)]
pub struct Cpu {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
    bins: Bins,
    /// For each class of events that means switches where their fields are, if all are columns.
    columns: Vec<Option<SwitchColumns>>,
    /// How many threads a part had: others have about as many.
    threads: AtomicUsize,
}

impl Cpu {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions =
            SupportedOptions { by: &["cpu", "thread", "process"], ..SupportedOptions::COMMON };
        const SENTENCE: &str = "How long each CPU was busy, and with which threads and processes";
        AnalysisDescription::new("cpu", "Busy CPUs", SENTENCE, OPTIONS).with_examples(
            "kymo cpu my-trace\n\
                 kymo cpu --by process --top 20 my-trace\n\
                 kymo cpu --by thread --comm 'kworker*' --begin 17:46:23 my-trace\n\
                 kymo cpu --period 100ms --csv --table course my-trace\n\
                 kymo cpu --period 'frame : app:vsync' my-trace\n\
                 kymo cpu --period 'call : rpc:begin : rpc:end if id == $begin.id' \\\n\
                 \x20 --period-captures 'call : peer=peer : status=status' my-trace",
        )
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[Role::Switch], Self::new)
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        use {fork::*, priority::*, switch::*, thread_state::*};
        Needs {
            roles: vec![
                (Role::Switch, vec![PREV_TID, PREV_STATE, NEXT_TID, PREV_COMM, NEXT_COMM, NEXT_PRIO]),
                (Role::Fork, vec![CHILD_TID, CHILD_PID, CHILD_COMM, PARENT_TID, PARENT_PID]),
                (Role::ThreadState, vec![KNOWN_TID, KNOWN_PID, KNOWN_COMM]),
                (Role::Rename, vec![CHANGED_TID, NEW_COMM]),
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
            bins: Bins::new(setup),
            columns: setup.classes.iter().map(SwitchColumns::of).collect(),
            threads: AtomicUsize::new(0),
        }
    }
}

impl Analysis for Cpu {
    type State = State;
    type Lane<'a> = Lane<'a>;
    type Note = Note;

    fn identity(&self) -> Identity {
        Identity { name: "cpu", version: 2 }
    }

    fn shape(&self) -> Shape {
        Shape::Slice
    }

    fn init(&self) -> State {
        let lanes = self.lanes.len();
        let threads = Threads::with_room(self.threads.load(Ordering::Relaxed));
        State {
            cpus: vec![Vec::new(); lanes],
            running: vec![Vec::new(); lanes],
            threads,
            over: Over::new(&self.wishes),
        }
    }

    fn enter(&self, lane: usize) -> Lane<'_> {
        let facts = &self.lanes[lane];
        Lane::new(facts, facts.cpu.unwrap_or(lane as u32))
    }

    fn step(&self, lane: &mut Lane<'_>, event: &Event<'_>, notes: &mut Notes<Note>) {
        for meaning in event.roles() {
            let note = match meaning.role {
                Role::Switch => {
                    lane.switch_anywhere(&self.bins, meaning, notes);
                    None
                }
                Role::Fork => meaning.small(fork::CHILD_TID).map(|child| {
                    let parent = meaning.small(fork::PARENT_TID);
                    Note::Fork(Fork {
                        child,
                        child_pid: meaning.small(fork::CHILD_PID),
                        comm: meaning.comm(fork::CHILD_COMM),
                        parent: parent.zip(meaning.small(fork::PARENT_PID)),
                    })
                }),
                Role::ThreadState => meaning.small(thread_state::KNOWN_TID).map(|known| {
                    let pid = meaning.small(thread_state::KNOWN_PID);
                    Note::Known(known, pid, meaning.comm(thread_state::KNOWN_COMM))
                }),
                Role::Rename => meaning
                    .small(priority::CHANGED_TID)
                    .map(|changed| Note::Known(changed, None, meaning.comm(priority::NEW_COMM))),
                _ => None,
            };
            if let Some(note) = note {
                notes.push(event.time, note);
            }
        }
    }

    fn steps(
        &self,
        lane: &mut Lane<'_>,
        (rows, classes, bytes): (&EventRows, &[BoundClass], &[u8]),
        notes: &mut Notes<Note>,
    ) {
        let other = |lane: &mut Lane<'_>, row: usize, notes: &mut Notes<Note>| {
            self.step(lane, &rows.event(row, classes, bytes), notes);
        };
        lane.steps((&self.bins, &self.columns), rows, bytes, notes, other);
    }

    fn note(&self, state: &mut State, lane: usize, time: i64, note: Note) {
        let host = self.lanes[lane].host;
        match note {
            Note::Switch(ref switch) => {
                let ran = (switch.prev, Run { ns: switch.run_ns, doubt_ns: 0 });
                state.switch(&self.wishes, (lane, host), time, (switch, Some(ran)));
            }
            Note::Other(other) => state.switch(&self.wishes, (lane, host), time, (&other.switch, other.ran)),
            Note::Fork(ref fork) => state.fork(&self.wishes, host, time, fork),
            Note::Known(0, ..) => {}
            Note::Known(tid, pid, comm) => {
                let row = state.threads.at(ThreadKey { host, tid }, time);
                (row.pid, row.comm) = (Small::of(pid).or(row.pid), comm.or(row.comm));
            }
        }
    }

    fn leave(&self, state: &mut State, lane: usize, end: Lane<'_>) {
        state.cpus[lane] = end.end();
        self.threads.fetch_max(state.threads.count(), Ordering::Relaxed);
    }

    fn merge(&self, left: &mut State, right: State) {
        self.merge_states(left, right);
    }

    fn forget(&self, state: &mut State, at: i64) -> bool {
        for (_, cpu) in state.cpus.iter_mut().flatten() {
            let tail = cpu.tail.map(|(_, tid)| (at, tid));
            // The thread of each current run is known, so no edge is left without an owner.
            let head = tail.map(|(time, _)| Head { time, prev: 0 });
            *cpu = CpuState { head, tail, ..CpuState::default() };
        }
        state.threads.forget(ThreadRow::forget);
        state.over = Over::new(&self.wishes);
        true
    }

    fn fits(&self, state: &State) -> bool {
        let lanes = self.lanes.len();
        state.cpus.len() == lanes && state.running.len() == lanes && state.threads.fits()
    }

    fn finish(&self, state: &State) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
