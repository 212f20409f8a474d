//! `threads`: how many events each thread, process, application and CPU has.
//!
//! ```text
//! CPU 0   ├──────── bash ────────┤├─ idle ─┤├──── make ────┤
//!           · ·   ·  ·· ·      ·   ·            · ░░ lost ░░ ·      events without a process or thread
//! ```
//!
//! Kernels' events rarely say their thread: then they are of the thread that their CPU runs, which
//! is found out as for everything that threads do (see `shares`). Between two switches they are
//! counted where they are seen; only an event that says its thread has to be told at once, as that
//! thread may be another one later. Where no event tells of threads at all, as in traces of
//! programs, a number is one thread forever, and even that is counted where it is seen.

mod report;
#[cfg(test)]
mod tests;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::description::{AnalysisDescription, SupportedOptions};
use crate::roles::{COMM, CPU, EventRole, PID, TID};
use crate::shares::{self, Amount, Pending, ShareNote, ThreadShares, epoch};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, Comm, LaneFacts, LaneNotes, Needs, PartShape, Question, Setup,
    SpoolError, Wishes,
};

/// The analysis.
#[derive(Debug)]
pub struct WhoseAnalysis {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
    /// Some events tell of threads: which one a CPU runs, which one is made.
    has_lives: bool,
}

/// Events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct EventTally(u64);

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct WhoseState {
    shares: ThreadShares<EventTally>,
    /// Where no event tells of threads: by machine, the counts of the events that say a thread.
    threads: HashMap<(u16, i32), OwnerClaims>,
    /// The same of those that say a process, but no thread.
    processes: HashMap<(u16, i32), OwnerClaims>,
}

/// The facts from events that say their thread or process, with when they said so last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OwnerClaims {
    events: EventTally,
    pid: Option<(i64, i32)>,
    comm: (i64, Comm),
}

/// The counts of a lane.
#[derive(Debug, Default)]
pub struct WhoseLane {
    number: usize,
    cpus: Vec<WhoseCpu>,
    threads: HashMap<i32, OwnerClaims>,
    processes: HashMap<i32, OwnerClaims>,
}

#[derive(Debug)]
struct WhoseCpu {
    number: u32,
    events: EventTally,
    /// Since the last switch those that do not say their thread.
    pending: Pending<EventTally>,
}

/// The note of an event.
#[derive(Debug)]
pub struct WhoseNote {
    cpu: u32,
    what: OwnerFacts,
}

#[derive(Debug)]
enum OwnerFacts {
    /// An event says its thread, and maybe the process and name of that.
    Said(i32, Option<i32>, Comm),
    /// The facts about threads, and the CPU's counts up to then.
    Told(Pending<EventTally>, ShareNote),
}

/// Stands for the CPU of events that say none.
const NO_CPU: u32 = u32::MAX;

impl Amount for EventTally {
    #[inline]
    fn add(&mut self, other: &Self) {
        self.0 += other.0;
    }

    fn is_empty(&self) -> bool {
        self.0 == 0
    }

    fn rank(&self) -> u64 {
        self.0
    }
}

impl OwnerClaims {
    fn hear(&mut self, time: i64, pid: Option<i32>, comm: Comm) {
        self.events.0 += 1;
        self.pid = pid.map(|pid| (time, pid)).or(self.pid);
        if !comm.is_empty() {
            self.comm = (time, comm);
        }
    }

    /// Adds later events, or those at the same time on another lane.
    fn join(&mut self, later: &Self) {
        self.events.add(&later.events);
        if let Some(pid) = later.pid {
            self.pid = Some(self.pid.filter(|known| known.0 > pid.0).unwrap_or(pid));
        }
        if !later.comm.1.is_empty() && (self.comm.1.is_empty() || self.comm.0 <= later.comm.0) {
            self.comm = later.comm;
        }
    }
}

impl WhoseAnalysis {
    /// The description that people see before they ask.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions {
            by: &["thread", "process", "application", "cpu"],
            durations: false,
            ..SupportedOptions::COMMON
        };
        const SENTENCE: &str = "Number of events of each thread, process, application and CPU";
        AnalysisDescription::new("threads", "Events by thread", SENTENCE, OPTIONS)
            .with_examples(
                "kymo threads my-trace\n\
                 kymo threads --by application --top 20 my-trace\n\
                 kymo threads --begin 17:46:23 --end 17:46:24 --csv my-trace",
            )
            .with_view(&["per-thread", "per-application"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[], Self::new)
    }

    /// The roles and fields that it needs.
    fn needs() -> Needs {
        Needs { roles: shares::needs(), context: vec![CPU, TID, PID, COMM], all: true, ..Needs::default() }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let tells = |role: EventRole| {
            matches!(role, EventRole::Switch | EventRole::Fork | EventRole::ThreadState | EventRole::Rename)
        };
        let has_lives = setup.classes.iter().any(|class| class.roles.iter().any(|bound| tells(bound.role)));
        Self { lanes: setup.lanes.to_vec(), wishes: setup.wishes.clone(), has_lives }
    }

    /// Counts an event that says its thread or its process.
    fn said(
        &self,
        lane: &mut WhoseLane,
        event: &AnalysisEvent<'_>,
        cpu: u32,
        notes: &mut LaneNotes<WhoseNote>,
    ) -> bool {
        let tid = event.small_context(TID);
        let pid = event.small_context(PID);
        let comm = || event.comm(&event.class.context[COMM]);
        match (tid, pid) {
            (Some(tid), pid) if self.has_lives => {
                notes.push(event.time, WhoseNote { cpu, what: OwnerFacts::Said(tid, pid, comm()) });
            }
            (Some(tid), pid) => lane.threads.entry(tid).or_default().hear(event.time, pid, comm()),
            (None, Some(pid)) if !self.has_lives => {
                lane.processes.entry(pid).or_default().hear(event.time, None, comm());
            }
            _ => return false,
        }
        true
    }
}

impl WhoseLane {
    #[inline]
    fn cpu(&mut self, number: u32) -> &mut WhoseCpu {
        let at = self.cpus.iter().position(|known| known.number == number).unwrap_or_else(|| {
            self.cpus.push(WhoseCpu { number, events: EventTally(0), pending: Pending::default() });
            self.cpus.len() - 1
        });
        &mut self.cpus[at]
    }
}

impl Analysis for WhoseAnalysis {
    type State = WhoseState;
    type Lane<'a> = WhoseLane;
    type Note = WhoseNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "threads", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> WhoseState {
        WhoseState {
            shares: ThreadShares::new(self.lanes.len(), &self.wishes),
            threads: HashMap::new(),
            processes: HashMap::new(),
        }
    }

    fn enter(&self, lane: usize) -> WhoseLane {
        WhoseLane { number: lane, ..WhoseLane::default() }
    }

    #[inline]
    fn step(&self, lane: &mut WhoseLane, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<WhoseNote>) {
        let facts = &self.lanes[lane.number];
        let said = facts.cpu.or_else(|| event.cpu());
        let number = said.unwrap_or(NO_CPU);
        if event.class.is_selected && self.wishes.wants_cpu(said) {
            lane.cpu(number).events.0 += 1;
            if !self.said(lane, event, number, notes) {
                lane.cpu(number).pending.add(epoch(facts, event.time), EventTally(1));
            }
        }
        // The facts that an event tells about threads hold behind it: a switch is of the thread
        // that runs before it.
        for told in event.roles().filter_map(|meaning| ShareNote::by(facts, meaning)) {
            let is_switch = matches!(told, ShareNote::Switch(_));
            let done = if is_switch { std::mem::take(&mut lane.cpu(number).pending) } else { Pending::default() };
            notes.push(event.time, WhoseNote { cpu: number, what: OwnerFacts::Told(done, told) });
        }
    }

    fn note(&self, state: &mut WhoseState, lane: usize, time: i64, WhoseNote { cpu, what }: WhoseNote) {
        match what {
            OwnerFacts::Said(tid, pid, comm) => {
                let host = self.lanes[lane].host;
                state.shares.said(host, time, tid, EventTally(1));
                if pid.is_some() || !comm.is_empty() {
                    state.shares.known(host, time, (tid, pid, comm));
                }
            }
            OwnerFacts::Told(done, told) => {
                state.shares.cpu(lane, cpu).append(done);
                state.shares.told(&self.lanes, &self.wishes, (lane, cpu), time, &told);
            }
        }
    }

    fn leave(&self, state: &mut WhoseState, lane: usize, end: WhoseLane) {
        let host = self.lanes[lane].host;
        for cpu in end.cpus {
            let known = state.shares.cpu(lane, cpu.number);
            known.sums.add(&cpu.events);
            known.append(cpu.pending);
        }
        end.threads.into_iter().for_each(|(tid, said)| state.threads.entry((host, tid)).or_default().join(&said));
        end.processes.into_iter().for_each(|(pid, said)| state.processes.entry((host, pid)).or_default().join(&said));
    }

    fn merge(&self, left: &mut WhoseState, right: WhoseState) {
        left.shares.merge(&self.lanes, &self.wishes, right.shares);
        right.threads.into_iter().for_each(|(key, said)| left.threads.entry(key).or_default().join(&said));
        right.processes.into_iter().for_each(|(key, said)| left.processes.entry(key).or_default().join(&said));
    }

    fn forget(&self, state: &mut WhoseState, at: i64) -> bool {
        state.shares.forget(&self.wishes, at);
        // The threads and processes are known from before; their counts are forgotten.
        let forget = |said: &mut OwnerClaims| said.events = EventTally(0);
        state.threads.values_mut().for_each(forget);
        state.processes.values_mut().for_each(forget);
        true
    }

    fn fits(&self, state: &WhoseState) -> bool {
        state.shares.fits(self.lanes.len())
    }

    fn finish(&self, state: &WhoseState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
