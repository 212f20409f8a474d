//! `count`: how many events of each class, and of each lane.
//!
//! The cheapest analysis there is: an addition per event. Its cost is that of reading and driving.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::statistics::shorten;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, LaneFacts, LaneNotes, Needs, PartShape, Question, Setup, SpoolError,
    Wishes,
};

/// The analysis.
#[derive(Debug)]
pub struct CountAnalysis {
    names: Vec<Arc<str>>,
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
}

/// The state behind a part of the trace: for each lane events by class.
#[derive(Debug, Serialize, Deserialize)]
pub struct CountState {
    counts: Vec<Vec<u64>>,
}

impl CountAnalysis {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions::NONE;
        const SENTENCE: &str = "Number of events of each class";
        AnalysisDescription::new("count", "Events by class", SENTENCE, OPTIONS)
            .with_view(&["per-class"], Self::headline)
            // `count(*)` is a function of SQL.
            .with_sql_name("counts")
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
        let names = setup.classes.iter().map(|class| Arc::clone(&class.name)).collect();
        Self { names, lanes: setup.lanes.to_vec(), wishes: setup.wishes.clone() }
    }

    /// How many events there are, and which are most frequent.
    fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        if let Some(total) = tables.first("total").filter(|total| !total.is_zero("count")) {
            headline.say(&total, total.there_are());
        }
        if let Some(class) = tables.most("per-class", "count") {
            headline.say(&class, "{name} is most frequent: {count}");
        }
        headline
    }

    fn per_class(&self, state: &CountState, lost: Option<u64>) -> Table {
        let columns = vec![Column::new("name", "Event", CellClass::Text), Column::of("count", "Count", "events")];
        let mut table = Table::new("per-class", "Classes of events", columns);
        table.plot = Some(Plot::Bars { value: 1 });
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (number, name) in self.names.iter().enumerate() {
            let count: u64 = state.counts.iter().filter_map(|counts| counts.get(number)).sum();
            if count > 0 {
                *sums.entry(name).or_default() += count;
            }
        }
        let mut rows: Vec<(&str, u64)> = sums.into_iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.1));
        for (name, count) in rows {
            table.rows.push(vec![Cell::Text(name.to_owned()), Cell::Count(at_least(count, lost))]);
        }
        shorten(&mut table, self.wishes.top);
        table
    }

    fn per_lane(&self, state: &CountState) -> Table {
        let columns = vec![
            Column::new("stream", "Stream", CellClass::Text),
            Column::new("cpu", "CPU", CellClass::Cpu),
            Column::of("count", "Count", "events"),
            Column::of("lost", "Lost", "events"),
        ];
        let mut table = Table::new("per-stream", "Streams", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        for (facts, counts) in self.lanes.iter().zip(&state.counts) {
            table.rows.push(vec![
                Cell::Text(facts.stream_names()),
                facts.cpu.map_or(Cell::Empty, Cell::Cpu),
                Cell::Count(at_least(counts.iter().sum(), facts.lost)),
                Cell::Count(lost_count(facts.lost)),
            ]);
        }
        HostNames::new(&self.lanes).put(&mut table, self.lanes.iter().map(|facts| facts.host));
        table
    }
}

/// A count to which lost events may add.
pub(crate) fn at_least(value: u64, lost: Option<u64>) -> Bounded<u64> {
    Bounded { value, low: value, high: lost.map_or(u64::MAX, |lost| value.saturating_add(lost)) }
}

pub(crate) fn lost_count(lost: Option<u64>) -> Bounded<u64> {
    lost.map_or(Bounded { value: 0, low: 0, high: u64::MAX }, Bounded::exact)
}

/// How many events all lanes lost, if all say it.
pub(crate) fn lost_of<'a>(lanes: impl IntoIterator<Item = &'a LaneFacts>) -> Option<u64> {
    lanes.into_iter().try_fold(0_u64, |sum, lane| Some(sum.saturating_add(lane.lost?)))
}

impl LaneFacts {
    /// The numbers of its data streams: `3`, or `0, 4`.
    pub(crate) fn stream_names(&self) -> String {
        let names: Vec<String> = self.streams.iter().map(ToString::to_string).collect();
        names.join(", ")
    }
}

impl Analysis for CountAnalysis {
    type State = CountState;
    type Lane<'a> = Vec<u64>;
    type Note = ();

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "count", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Lane
    }

    fn init(&self) -> CountState {
        CountState { counts: vec![Vec::new(); self.lanes.len()] }
    }

    fn enter(&self, _: usize) -> Vec<u64> {
        vec![0; self.names.len()]
    }

    #[inline]
    fn step(&self, lane: &mut Vec<u64>, event: &AnalysisEvent<'_>, _: &mut LaneNotes<()>) {
        lane[event.number] += 1;
    }

    fn note(&self, _: &mut CountState, _: usize, _: i64, (): ()) {}

    fn leave(&self, state: &mut CountState, lane: usize, end: Vec<u64>) {
        if end.iter().any(|&count| count > 0) {
            state.counts[lane] = end;
        }
    }

    fn merge(&self, left: &mut CountState, right: CountState) {
        for (counts, more) in left.counts.iter_mut().zip(right.counts) {
            if counts.is_empty() {
                *counts = more;
            } else {
                counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
            }
        }
    }

    fn forget(&self, state: &mut CountState, _: i64) -> bool {
        *state = self.init();
        true
    }

    fn fits(&self, state: &CountState) -> bool {
        let is_whole = |counts: &Vec<u64>| counts.is_empty() || counts.len() == self.names.len();
        state.counts.len() == self.lanes.len() && state.counts.iter().all(is_whole)
    }

    fn finish(&self, state: &CountState) -> Result<Answer, SpoolError> {
        let lost = lost_of(&self.lanes);
        let columns = vec![Column::of("count", "Count", "events"), Column::of("lost", "Lost", "events")];
        let mut total = Table::new("total", "All events", columns);
        let count = state.counts.iter().flatten().sum();
        total.rows.push(vec![Cell::Count(at_least(count, lost)), Cell::Count(lost_count(lost))]);
        let mut tables = vec![self.per_class(state, lost), self.per_lane(state), total];
        let span_ns = crate::setup::span_ns(&self.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Ok(Answer { tables })
    }
}
