//! `gaps`: the longest times without an event, of each lane and of all together.
//!
//! A lane has its events in the order of time: its gaps are seen as they are. A gap of all lanes is
//! seen by none of them. So time is divided into equal spans, and of each the first and the last
//! event of all lanes is kept, in any order; a gap that is not shorter than a span lies between the
//! last event of one and the first of another:
//!
//! ```text
//! lane 0     │  x   xx│        │        │  x     │
//! lane 1     │x      x│ x      │        │     x  │
//! first,last │x      x│ x      │        │  x  x  │
//!                       └─────── gap ──────┘
//! ```
//!
//! Shorter ones are not looked for: see [`SPANS_MAX`].

mod busy;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::ranking::Ranking;
use crate::windows::Windows;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, LaneFacts, LaneNotes, Needs, PartShape, Question, Setup, SpoolError,
    Wishes,
};
use busy::Busy;
pub use busy::SPANS_MAX;

/// The analysis.
#[derive(Debug)]
pub struct Gaps {
    lanes: Vec<LaneFacts>,
    /// Where events of any lane may be missing.
    holes: Windows,
    /// An empty one.
    busy: Busy,
    wishes: Wishes,
}

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct GapState {
    lanes: Vec<Edges>,
    busy: Busy,
}

/// State of a lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Edges {
    /// Its first and its last event.
    ends: Option<(i64, i64)>,
    /// From when to when.
    gaps: Ranking<(i64, i64)>,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct GapLane {
    cpu: Option<u32>,
    edges: Edges,
    busy: Busy,
    /// From when to when the span of time is that it is in, and its first and last event there.
    span: (i64, i64),
    inside: (i64, i64),
}

/// The kind of a gap in which events were lost.
const LOSS: &str = "loss";
/// Gaps that are shown by default.
const LONGEST: usize = 10;

impl Gaps {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions { threads: false, ..SupportedOptions::COMMON };
        const SENTENCE: &str = "Longest times without events, and how many events were lost in them";
        AnalysisDescription::new("gaps", "Gaps", SENTENCE, OPTIONS)
            .with_examples(
                "kymo gaps my-trace\n\
                 kymo gaps --min 100ms --top all my-trace",
            )
            .with_view(&[], Self::headline)
    }

    /// The longest time without any event.
    fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        // The gaps of all lanes together come first, if there are any.
        let of_all = tables.first("gaps").filter(|gap| !gap.has("stream"));
        if let Some(gap) = of_all {
            headline.say(
                &gap,
                match gap.cell("kind") {
                    Cell::Text(kind) if kind == LOSS => {
                        "No event came for {length}, from {begin} on, and events were lost then"
                    }
                    _ => "No event came for {length}, from {begin} on",
                },
            );
        }
        if let Some(lane) = tables.most_of_all("gaps", "length").filter(|lane| lane.has("stream")) {
            headline.say(
                &lane,
                match (of_all.is_some(), lane.has("cpu")) {
                    (true, true) => "CPU {cpu} had none for longest: {length}",
                    (true, false) => "Stream {stream} had none for longest: {length}",
                    (false, true) => "CPU {cpu} had no event for longest: {length}, from {begin} on",
                    (false, false) => "Stream {stream} had no event for longest: {length}, from {begin} on",
                },
            );
        }
        headline
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[], Self::new)
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        Needs { all: true, context: vec![crate::roles::CPU], ..Needs::default() }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let mut holes = Windows::default();
        setup.lanes.iter().filter(|lane| setup.wishes.wants_lane(lane)).for_each(|lane| holes.extend(&lane.holes));
        let busy = Busy::new(setup.span_ns());
        Self { lanes: setup.lanes.to_vec(), holes, busy, wishes: setup.wishes.clone() }
    }

    fn edges(&self) -> Edges {
        Edges { ends: None, gaps: self.none() }
    }

    fn none(&self) -> Ranking<(i64, i64)> {
        Ranking::new(Some(self.wishes.top.unwrap_or(LONGEST)))
    }

    /// A lane had no event in this time.
    #[inline]
    fn gap(&self, gaps: &mut Ranking<(i64, i64)>, begin: i64, end: i64) {
        let length = begin.abs_diff(end);
        if self.wishes.wants_duration(length) {
            gaps.push(length, || (begin, end));
        }
    }

    /// The gaps of all lanes together.
    fn overall(&self, busy: &Busy) -> Ranking<(i64, i64)> {
        let mut gaps = self.none();
        for (begin, end) in busy.gaps() {
            self.gap(&mut gaps, begin, end);
        }
        gaps
    }
}

impl Edges {
    /// Adds the part that follows.
    fn merge(&mut self, later: Self, gap: impl FnOnce(&mut Ranking<(i64, i64)>, i64, i64)) {
        if let Some(((_, last), (first, _))) = self.ends.zip(later.ends) {
            gap(&mut self.gaps, last, first);
        }
        self.gaps.merge(later.gaps);
        let begin = self.ends.or(later.ends).map(|ends| ends.0);
        let end = later.ends.or(self.ends).map(|ends| ends.1);
        self.ends = begin.zip(end);
    }
}

impl GapLane {
    /// The time that follows is in another span.
    #[cold]
    fn turn(&mut self, time: i64) {
        if self.span.0 < self.span.1 {
            self.busy.add(self.inside.0, self.inside.1);
        }
        self.span = self.busy.span(time);
        self.inside = (time, time);
    }
}

impl Analysis for Gaps {
    type State = GapState;
    type Lane<'a> = GapLane;
    type Note = ();

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "gaps", version: 2 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Lane
    }

    fn init(&self) -> GapState {
        GapState { lanes: vec![self.edges(); self.lanes.len()], busy: self.busy.clone() }
    }

    fn enter(&self, lane: usize) -> GapLane {
        GapLane {
            cpu: self.lanes[lane].cpu,
            edges: self.edges(),
            busy: self.busy.clone(),
            span: (0, 0),
            inside: (0, 0),
        }
    }

    #[inline]
    fn step(&self, lane: &mut GapLane, event: &AnalysisEvent<'_>, _: &mut LaneNotes<()>) {
        let time = event.time;
        if time == i64::MIN || !self.wishes.wants_cpu(event.cpu().or(lane.cpu)) {
            return;
        }
        match &mut lane.edges.ends {
            Some(ends) => {
                let last = std::mem::replace(&mut ends.1, time);
                self.gap(&mut lane.edges.gaps, last, time);
            }
            None => lane.edges.ends = Some((time, time)),
        }
        if time < lane.span.0 || time >= lane.span.1 {
            lane.turn(time);
        }
        lane.inside.1 = time;
    }

    fn note(&self, _: &mut GapState, _: usize, _: i64, (): ()) {}

    fn leave(&self, state: &mut GapState, lane: usize, mut end: GapLane) {
        if end.span.0 < end.span.1 {
            end.busy.add(end.inside.0, end.inside.1);
        }
        state.lanes[lane] = end.edges;
        state.busy.merge(&end.busy);
    }

    fn merge(&self, left: &mut GapState, right: GapState) {
        for (edges, later) in left.lanes.iter_mut().zip(right.lanes) {
            edges.merge(later, |gaps, begin, end| self.gap(gaps, begin, end));
        }
        left.busy.merge(&right.busy);
    }

    fn forget(&self, state: &mut GapState, _: i64) -> bool {
        state.lanes.iter_mut().for_each(|edges| edges.gaps = self.none());
        state.busy.forget();
        true
    }

    fn fits(&self, state: &GapState) -> bool {
        state.lanes.len() == self.lanes.len() && state.busy.fits()
    }

    fn finish(&self, state: &GapState) -> Result<Answer, SpoolError> {
        let columns = vec![
            Column::new("stream", "Stream", CellClass::Text).detail(),
            Column::new("cpu", "CPU", CellClass::Cpu),
            Column::new("begin", "Begin", CellClass::Timestamp),
            Column::new("end", "End", CellClass::Timestamp).detail(),
            Column::new("length", "Length", CellClass::Duration),
            Column::new("kind", "Kind", CellClass::Text),
        ];
        let mut table = Table::new("gaps", "The longest times without an event: of all lanes, and of each", columns);
        table.plot = Some(Plot::Bars { value: 4 });
        table.span_ns = crate::setup::span_ns(&self.lanes);
        let mut hosts = Vec::new();
        let mut rows = |host: Option<u16>, name: [Cell; 2], gaps: &Ranking<(i64, i64)>, holes: &Windows| {
            for (length, &(begin, end)) in gaps.sorted() {
                let kind = if holes.touch(begin, end) { LOSS } else { "quiet" };
                let mut row = name.to_vec();
                row.extend([Cell::Timestamp(begin), Cell::Timestamp(end), Cell::Duration(Bounded::exact(length))]);
                row.push(Cell::Text(kind.to_owned()));
                table.rows.push(row);
                hosts.push(host);
            }
        };
        rows(None, [Cell::Empty, Cell::Empty], &self.overall(&state.busy), &self.holes);
        let lanes = self.lanes.iter().zip(&state.lanes).filter(|(facts, _)| self.wishes.wants_lane(facts));
        for (facts, edges) in lanes {
            let name = [Cell::Text(facts.stream_names()), facts.cpu.map_or(Cell::Empty, Cell::Cpu)];
            rows(Some(facts.host), name, &edges.gaps, &facts.holes);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        Ok(Answer { tables: vec![table] })
    }
}
