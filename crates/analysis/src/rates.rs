//! `rates`: how many events of each class, or of each CPU, in each period.
//!
//! ```text
//! period     0        1        2        3
//! open       ▂ 3      █ 40     ▂ 2      · 0      min 0  avg 11  max 40
//! ```
//!
//! A lane counts the events of its current period, which costs a comparison and an addition per
//! event, and puts the sums into a [`Course`] when the next period begins. Periods become longer
//! where there would be too many counts.

mod course;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::count::{at_least, lost_of};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::statistics::saturated;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, LaneFacts, LaneNotes, Needs, PartShape, Question, Setup, SpoolError,
    Wishes,
};
pub use course::{Course, CoursePeriods};

/// The analysis.
#[derive(Debug)]
pub struct Rates {
    /// Grouping: by names of classes, or none.
    names: Vec<Arc<str>>,
    /// For each class the place of its name.
    name_of_class: Vec<u32>,
    lanes: Vec<LaneFacts>,
    is_by_lane: bool,
    periods: CoursePeriods,
    wishes: Wishes,
}

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct RateState {
    course: Course,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct RateLane {
    cpu: Option<u32>,
    /// Number of its first series.
    series: u64,
    /// The period that it is in, and from when to when that is.
    period: i64,
    span: (i64, i64),
    /// Events in this period, by name; which are not 0.
    counts: Vec<u64>,
    counted: Vec<u32>,
    course: Course,
}

impl Rates {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions =
            SupportedOptions { by: &["class", "name", "cpu", "stream"], cpus: true, ..SupportedOptions::NONE };
        const SENTENCE: &str = "Number of events in each period of time";
        AnalysisDescription::new("rates", "Events over time", SENTENCE, OPTIONS)
            .with_examples(
                "kymo rates my-trace\n\
                 kymo rates --period 10ms --by cpu my-trace",
            )
            .with_view(&[], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question { has_periods: true, ..Question::new(Self::needs(), &[], Self::new) }
    }

    /// Roles and fields that it needs.
    fn needs() -> Needs {
        Needs { all: true, context: vec![crate::roles::CPU], ..Needs::default() }
    }

    /// The analysis of these lanes. `by` may have `class` (also without it), `cpu` or `stream`.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let by = |wanted: &[&str]| setup.wishes.by.iter().any(|by| wanted.contains(&by.as_str()));
        let is_by_lane = by(&["cpu", "stream"]);
        let is_by_class = !is_by_lane || by(&["class", "name"]);
        let mut places: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        let mut names = Vec::new();
        let mut place_of = |name: Arc<str>| {
            *places.entry(Arc::clone(&name)).or_insert_with(|| {
                names.push(name);
                names.len() as u32 - 1
            })
        };
        let all: Arc<str> = "".into();
        let name_of = |class: &crate::BoundClass| Arc::clone(if is_by_class { &class.name } else { &all });
        let name_of_class = setup.classes.iter().map(|class| place_of(name_of(class))).collect();
        Self {
            names,
            name_of_class,
            lanes: setup.lanes.to_vec(),
            is_by_lane,
            periods: CoursePeriods::new(setup),
            wishes: setup.wishes.clone(),
        }
    }

    /// The most frequent event, or the CPU with most events.
    fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        let Some(most) = tables.most("rates", "count") else { return headline };
        let of_lane = |column: &str| most.of_table(column) && most.has(column);
        headline.say(
            &most,
            match (most.has("name"), of_lane("cpu"), of_lane("stream")) {
                (true, true, _) => {
                    "Event {name} of CPU {cpu} is most frequent: {count:time}, and {max+} in its busiest period"
                }
                (true, _, true) => {
                    "Event {name} of stream {stream} is most frequent: {count:time}, and {max+} in its busiest period"
                }
                (true, _, _) => "Event {name} is most frequent: {count:time}, and {max+} in its busiest period",
                (_, true, _) => "CPU {cpu} has most events: {count}, and {max+} in its busiest period",
                _ => "Stream {stream} has most events: {count}, and {max+} in its busiest period",
            },
        );
        headline
    }

    /// The lane, if lanes are told apart, and the name of a series.
    fn series(&self, series: u64) -> (Option<usize>, &Arc<str>) {
        let count = self.names.len().max(1) as u64;
        let lane = (series / count) as usize;
        (self.is_by_lane.then_some(lane), &self.names[(series % count) as usize])
    }

    /// Columns that say which series it is.
    fn columns(&self) -> Vec<Column> {
        let mut columns = Vec::new();
        if self.is_by_lane {
            columns.push(Column::new("stream", "Stream", CellClass::Text));
            columns.push(Column::new("cpu", "CPU", CellClass::Cpu));
        }
        columns.push(Column::new("name", "Event", CellClass::Text));
        columns
    }

    fn cells(&self, series: u64) -> Vec<Cell> {
        let (lane, name) = self.series(series);
        let mut cells = Vec::new();
        if let Some(lane) = lane {
            let facts = &self.lanes[lane];
            cells.push(Cell::Text(facts.stream_names()));
            cells.push(facts.cpu.map_or(Cell::Empty, Cell::Cpu));
        }
        cells.push(if name.is_empty() { Cell::Empty } else { Cell::Text(name.to_string()) });
        cells
    }

    /// How many events may be missing in a span of time, if that is known.
    fn lost(&self, series: u64, begin: i64, end: i64) -> Option<u64> {
        let touched = |lane: &LaneFacts| self.wishes.wants_lane(lane) && lane.holes.touch(begin, end);
        match self.series(series).0 {
            Some(lane) if touched(&self.lanes[lane]) => self.lanes[lane].lost,
            Some(_) => Some(0),
            None => {
                let mut lanes = self.lanes.iter().filter(|lane| touched(lane));
                lanes.try_fold(0_u64, |sum, lane| Some(sum.saturating_add(lane.lost?)))
            }
        }
    }

    /// Least, average and most events in a period.
    fn rates(&self, course: &Course, series: &[(u64, SeriesSum)]) -> Table {
        let mut columns = self.columns();
        columns.push(Column::of("count", "Count", "events"));
        columns.push(Column::of("min", "Min", "events in a period").detail());
        columns.push(Column::of("avg", "Average", "events in a period"));
        columns.push(Column::of("max", "Max", "events in a period"));
        let mut table = Table::new("rates", "Events in a period", columns);
        let Some((begin, end)) = self.periods.span(course) else { return self.with_hosts(table, &[]) };
        let width = self.periods.width(course);
        let length = begin.abs_diff(end).max(1);
        // A last period that is shorter would have less than it should.
        let whole_periods = length / width;
        for (series, sum) in series {
            let lost = if self.is_by_lane {
                self.lanes[self.lane(*series)].lost
            } else {
                lost_of(self.lanes.iter().filter(|lane| self.wishes.wants_lane(lane)))
            };
            let mut row = self.cells(*series);
            let max = if whole_periods > 0 { sum.max } else { sum.count };
            let min = if sum.periods < whole_periods { 0 } else { sum.min.unwrap_or(max) };
            let average = (u128::from(sum.count) * u128::from(width) + u128::from(length / 2)) / u128::from(length);
            row.push(Cell::Count(at_least(sum.count, lost)));
            row.extend([min, saturated(average), max].map(|count| Cell::Count(Bounded::exact(count))));
            table.rows.push(row);
        }
        let series: Vec<u64> = series.iter().map(|(series, _)| *series).collect();
        self.with_hosts(table, &series)
    }

    /// The table with the machine of each lane, if it tells lanes apart; `series`: of its rows.
    fn with_hosts(&self, mut table: Table, series: &[u64]) -> Table {
        if self.is_by_lane {
            let hosts = series.iter().map(|series| self.lanes[self.lane(*series)].host);
            HostNames::new(&self.lanes).put(&mut table, hosts);
        }
        table
    }

    fn lane(&self, series: u64) -> usize {
        (series / self.names.len().max(1) as u64) as usize
    }

    fn course(&self, course: &Course, series: &[(u64, SeriesSum)]) -> Table {
        let mut columns = vec![Column::new("period", "Period", CellClass::TimeRange)];
        columns.extend(self.columns());
        columns.push(Column::of("count", "Count", "events"));
        let count_column = columns.len() - 1;
        let mut table = Table::new("course", "Events over time", columns);
        table.plot = Some(Plot::Course { time: 0, series: Some(count_column - 1), value: count_column });
        let wanted: BTreeMap<u64, ()> = series.iter().map(|(series, _)| (*series, ())).collect();
        let mut shown = Vec::new();
        for ((period, series), &count) in course.counts() {
            if !wanted.contains_key(&series) {
                continue;
            }
            let (begin, end) = self.periods.at(course, period);
            let mut row = vec![Cell::TimeRange(Some(begin), Some(end))];
            row.extend(self.cells(series));
            row.push(Cell::Count(at_least(count, self.lost(series, begin, end))));
            table.rows.push(row);
            shown.push(series);
        }
        self.with_hosts(table, &shown)
    }
}

/// Total of a series.
#[derive(Clone, Copy, Debug, Default)]
struct SeriesSum {
    count: u64,
    /// Least and most in a period that is whole and has any.
    min: Option<u64>,
    max: u64,
    /// How many of these there are.
    periods: u64,
}

impl RateLane {
    /// Adds the counts of the period to the course.
    fn flush(&mut self) {
        for name in self.counted.drain(..) {
            let count = std::mem::take(&mut self.counts[name as usize]);
            self.course.add(self.period, self.series + u64::from(name), count);
        }
    }
}

impl Analysis for Rates {
    type State = RateState;
    type Lane<'a> = RateLane;
    type Note = ();

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "rates", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Lane
    }

    fn init(&self) -> RateState {
        RateState { course: self.periods.course() }
    }

    fn enter(&self, lane: usize) -> RateLane {
        let cpu = self.lanes[lane].cpu;
        let lane = if self.is_by_lane { lane as u64 } else { 0 };
        RateLane {
            cpu,
            series: lane * self.names.len() as u64,
            period: 0,
            span: (0, 0),
            counts: vec![0; self.names.len()],
            counted: Vec::new(),
            course: self.periods.course(),
        }
    }

    #[inline]
    fn step(&self, lane: &mut RateLane, event: &AnalysisEvent<'_>, _: &mut LaneNotes<()>) {
        if !self.wishes.wants_cpu(event.cpu().or(lane.cpu)) {
            return;
        }
        if event.time < lane.span.0 || event.time >= lane.span.1 {
            lane.flush();
            if event.time == i64::MIN {
                return;
            }
            (lane.period, lane.span) = self.periods.of(event.time);
        }
        let name = self.name_of_class[event.number];
        let count = &mut lane.counts[name as usize];
        if *count == 0 {
            lane.counted.push(name);
        }
        *count += 1;
    }

    fn note(&self, _: &mut RateState, _: usize, _: i64, (): ()) {}

    fn leave(&self, state: &mut RateState, _: usize, mut end: RateLane) {
        end.flush();
        state.course.merge(end.course);
    }

    fn merge(&self, left: &mut RateState, right: RateState) {
        left.course.merge(right.course);
    }

    fn fits(&self, state: &RateState) -> bool {
        state.course.fits(&self.periods)
    }

    fn finish(&self, state: &RateState) -> Result<Answer, SpoolError> {
        let course = &state.course;
        let span = self.periods.span(course);
        let width = self.periods.width(course);
        let mut sums: BTreeMap<u64, SeriesSum> = BTreeMap::new();
        let series_count = (self.names.len() * self.lanes.len()) as u64;
        for ((period, series), &count) in course.counts().filter(|((_, series), _)| *series < series_count) {
            let sum = sums.entry(series).or_default();
            let (begin, end) = self.periods.at(course, period);
            sum.count += count;
            if begin.abs_diff(end) == width {
                sum.min = Some(sum.min.map_or(count, |min| min.min(count)));
                sum.max = sum.max.max(count);
                sum.periods += 1;
            }
        }
        let mut series: Vec<(u64, SeriesSum)> = sums.into_iter().collect();
        let by_name = |one: &u64, other: &u64| self.series(*one).cmp(&self.series(*other));
        series.sort_by(|one, other| other.1.count.cmp(&one.1.count).then_with(|| by_name(&one.0, &other.0)));
        let kept = self.wishes.top.unwrap_or(usize::MAX).min(series.len());
        let omitted = (series.len() - kept) as u64;
        series.truncate(kept);
        let mut tables = vec![self.rates(course, &series), self.course(course, &series)];
        tables[0].omitted = omitted;
        tables.iter_mut().for_each(|table| table.span_ns = span);
        Ok(Answer { tables })
    }
}
