//! `memory`: the threads that take pages of memory from the kernel, and that give them back.
//!
//! ```text
//! CPU 0   ├──────── bash ────────┤├─ idle ─┤├──── make ────┤
//!            +4    -1        +1              +8  ░░ lost ░░ -2      pages
//! ```
//!
//! The thread of pages is found as for everything that threads do: see `shares`.

mod report;
#[cfg(test)]
mod tests;
mod usage;

use serde::{Deserialize, Serialize};

use crate::description::{AnalysisDescription, SupportedOptions};
use crate::rates::{Course, CoursePeriods};
use crate::roles::{CPU, EventRole, PID, TID, page};
use crate::shares::{self, Amount, ShareNote, ThreadShares, epoch};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, LaneFacts, LaneNotes, Needs, PartShape, Question, RoleEvent,
    Setup, SpoolError, Wishes,
};
use usage::{Depth, Usage};

/// The analysis.
#[derive(Debug)]
pub struct MemoryAnalysis {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
    periods: CoursePeriods,
}

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct MemoryState {
    /// Memory by thread.
    shares: ThreadShares<Usage>,
    /// Pages over time: series are [`TAKEN`] and [`GIVEN`].
    course: Course,
    depth: Depth,
}

/// A series of the course: pages that were taken.
const TAKEN: u64 = 0;
/// Pages that were given back.
const GIVEN: u64 = 1;

/// A change of pages.
#[derive(Debug)]
pub struct MemoryNote {
    cpu: u32,
    what: PageEvent,
}

#[derive(Debug)]
enum PageEvent {
    /// Pages are taken or given back, by a thread if the event says by which.
    Used(Usage, Option<i32>),
    /// Names and processes of threads.
    Told(ShareNote),
}

impl MemoryAnalysis {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions =
            SupportedOptions { by: &["thread", "process", "cpu"], durations: false, ..SupportedOptions::COMMON };
        const SENTENCE: &str = "Pages of memory that threads took from the kernel and gave back";
        AnalysisDescription::new("memory", "Pages of memory", SENTENCE, OPTIONS)
            .with_examples(
                "kymo memory my-trace\n\
                 kymo memory --by process --top 20 my-trace\n\
                 kymo memory --period 100ms --csv --table course my-trace",
            )
            .with_view(&["total", "per-thread", "course"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[EventRole::PageAlloc, EventRole::PageFree], Self::new)
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        let mut roles = vec![(EventRole::PageAlloc, vec![page::ORDER]), (EventRole::PageFree, vec![page::ORDER])];
        roles.extend(shares::needs());
        Needs { roles, context: vec![CPU, TID, PID], ..Needs::default() }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        Self { lanes: setup.lanes.to_vec(), wishes: setup.wishes.clone(), periods: CoursePeriods::new(setup) }
    }

    /// Facts of an event in one of its roles.
    fn told(&self, lane: &LaneFacts, cpu: u32, meaning: RoleEvent<'_>) -> Option<PageEvent> {
        match meaning.role {
            EventRole::PageAlloc | EventRole::PageFree => {
                let usage = Usage::of(meaning.role == EventRole::PageAlloc, meaning.integer(page::ORDER));
                self.wishes.wants_cpu(Some(cpu)).then(|| PageEvent::Used(usage, meaning.event.small_context(TID)))
            }
            _ => ShareNote::by(lane, meaning).map(PageEvent::Told),
        }
    }

    /// Pages are taken or given back.
    fn used(&self, state: &mut MemoryState, (lane, cpu): (usize, u32), time: i64, usage: Usage, tid: Option<i32>) {
        let facts = &self.lanes[lane];
        state.depth.add(&usage);
        if time != i64::MIN {
            let (period, _) = self.periods.of(time);
            for (series, pages) in [(TAKEN, usage.taken.pages), (GIVEN, usage.given.pages)] {
                if pages > 0 {
                    state.course.add(period, series, pages);
                }
            }
        }
        let cpu = state.shares.cpu(lane, cpu);
        cpu.sums.add(&usage);
        match tid {
            Some(tid) => state.shares.said(facts.host, time, tid, usage),
            None => cpu.add(epoch(facts, time), usage),
        }
    }
}

impl Analysis for MemoryAnalysis {
    type State = MemoryState;
    type Lane<'a> = usize;
    type Note = MemoryNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "memory", version: 2 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> MemoryState {
        MemoryState {
            shares: ThreadShares::new(self.lanes.len(), &self.wishes),
            course: self.periods.course(),
            depth: Depth::default(),
        }
    }

    fn enter(&self, lane: usize) -> usize {
        lane
    }

    fn step(&self, lane: &mut usize, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<MemoryNote>) {
        let facts = &self.lanes[*lane];
        let cpu = facts.cpu.or_else(|| event.cpu()).unwrap_or(*lane as u32);
        for what in event.roles().filter_map(|meaning| self.told(facts, cpu, meaning)) {
            notes.push(event.time, MemoryNote { cpu, what });
        }
    }

    fn note(&self, state: &mut MemoryState, lane: usize, time: i64, MemoryNote { cpu, what }: MemoryNote) {
        match what {
            PageEvent::Used(usage, tid) => self.used(state, (lane, cpu), time, usage, tid),
            PageEvent::Told(told) => state.shares.told(&self.lanes, &self.wishes, (lane, cpu), time, &told),
        }
    }

    fn leave(&self, _: &mut MemoryState, _: usize, _: usize) {}

    fn merge(&self, left: &mut MemoryState, right: MemoryState) {
        left.shares.merge(&self.lanes, &self.wishes, right.shares);
        left.course.merge(right.course);
        left.depth.append(&right.depth);
    }

    fn forget(&self, state: &mut MemoryState, at: i64) -> bool {
        state.shares.forget(&self.wishes, at);
        (state.course, state.depth) = (self.periods.course(), Depth::default());
        true
    }

    fn fits(&self, state: &MemoryState) -> bool {
        state.shares.fits(self.lanes.len()) && state.course.fits(&self.periods)
    }

    fn finish(&self, state: &MemoryState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
