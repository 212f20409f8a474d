//! Counts for people, a sentence and tables that fit a terminal, and for programs.

use std::io::{self, Write};
use std::time::Duration;

use kymo_recorder::watch::{
    CountedColumns, HistogramBar, WatchColumn, WatchGroup, WatchHistogram, WatchKey, WatchMeaning, WatchTotals,
};
use kymo_session::{Bounded, Cell, CellClass, Column, Plot, Table};
use serde_json::{Map, Value, json};

use crate::answer::InstantFormat;
use crate::answer::screen::{Screen, ScreenTone};
use crate::answer::table::{self, TableLook};
use crate::answer::words::{CellDetail, CellFormatter, escaped};
use crate::arguments::WatchArguments;
use crate::show::{counted, duration, grouped};

/// Rows for people, unless others are wanted.
const TOP: usize = 10;
/// Percentiles of a distribution.
const PARTS: [(&str, &str, f64); 4] =
    [("p50", "Half", 0.5), ("p90", "90%", 0.9), ("p99", "99%", 0.99), ("p999", "99.9%", 0.999)];

/// Counts of a time.
pub(super) struct Interval<'a> {
    pub(super) counts: &'a WatchTotals,
    /// How long that was.
    pub(super) time: Duration,
    /// Since the beginning.
    pub(super) all: Duration,
    pub(super) is_final: bool,
    /// All events of this time are counted in it.
    pub(super) is_complete: bool,
}

/// How counts are shown.
pub(super) struct WatchView<'a> {
    pub(super) columns: &'a CountedColumns,
    pub(super) arguments: &'a WatchArguments,
}

type GroupRow<'a> = (&'a Vec<WatchKey>, &'a WatchGroup);

impl WatchView<'_> {
    /// For people.
    pub(super) fn text(&self, told: &Interval<'_>, screen: Screen) -> io::Result<String> {
        let words =
            CellFormatter { times: InstantFormat::default(), unicode: screen.unicode, detail: CellDetail::Telling };
        let rows = self.rows(told.counts);
        let mut out = Vec::new();
        for line in screen.wrapped(&self.headline(told, &rows)) {
            writeln!(out, "{}", screen.toned(ScreenTone::Title, &line))?;
        }
        let look = TableLook { rows: self.top(Some(TOP)), ..TableLook::WHOLE };
        if !rows.is_empty() && (!self.columns.keys.is_empty() || self.columns.sum.is_some()) {
            writeln!(out)?;
            // A pipe gets no more rows than a terminal.
            let shown = self.top(Some(TOP)).unwrap_or(rows.len()).min(rows.len());
            let mut table = self.table(&rows[..shown], told);
            table.omitted = (rows.len() - shown) as u64;
            table::rows(&table, &words, screen, look, &mut out)?;
        }
        if let (Some(histogram), Some(column)) = (told.counts.histogram(), &self.columns.histogram) {
            writeln!(out)?;
            let table = bars(&histogram, column);
            table::show(&table, &words, screen, TableLook::WHOLE, &mut out)?;
        }
        if told.is_final {
            writeln!(out)?;
            for line in self.ends(told).iter().flat_map(|line| screen.wrapped(line)) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    fn top(&self, usual: Option<usize>) -> Option<usize> {
        self.arguments.top.map_or(usual, |top| top.0)
    }

    /// Rows, the most important ones first.
    fn rows<'t>(&self, counts: &'t WatchTotals) -> Vec<GroupRow<'t>> {
        let mut rows: Vec<GroupRow<'t>> = counts.groups.iter().collect();
        let is_time = self.columns.histogram.as_ref().is_some_and(|column| column.meaning == WatchMeaning::Nanos);
        let weight = |(_, group): &GroupRow<'_>| match (group.sum, &group.histogram) {
            (Some(sum), _) => sum,
            (None, Some(histogram)) if is_time => histogram.sum,
            _ => group.count.into(),
        };
        rows.sort_by_key(|row| std::cmp::Reverse(weight(row)));
        rows
    }

    /// The answer in a sentence.
    fn headline(&self, told: &Interval<'_>, rows: &[GroupRow<'_>]) -> String {
        let (count, time) = (told.counts.count(), duration(told.time.as_nanos() as i128));
        let events = match &self.columns.events[..] {
            [event] => format!("{} of {event}", counted(count, "event")),
            events => format!("{} of {} tracepoints", counted(count, "event"), events.len()),
        };
        if count == 0 {
            return format!("No event in {time}: {}.", self.arguments.question);
        }
        let mut said = format!("{events} in {time}, {} per second", grouped(per_second(count, told.time)));
        if let (Some(sum), Some(column)) = (sum_of(rows), &self.columns.sum) {
            said += &format!("; {} is {} in all", column.name, word(sum, &column.meaning));
        }
        let histogram = told.counts.histogram();
        if let (Some(histogram), Some(column)) = (&histogram, &self.columns.histogram) {
            let of = |part| histogram.percentile(part).map(|value| word(value.into(), &column.meaning));
            if let (Some(half), Some(most)) = (of(0.5), of(0.99)) {
                said += &format!("; {} is at most about {half} for half of them, {most} for 99%", column.name);
            }
        }
        if let ([(keys, group), _, ..], None, None) = (rows, &self.columns.sum, &histogram) {
            let keys = self.columns.keys.iter().zip(*keys);
            let keys: Vec<String> = keys.map(|(column, key)| format!("{} {}", column.name, shown(key))).collect();
            let share = group.count as f64 * 100.0 / count as f64;
            said += &format!("; {share:.1}% are of {}", escaped(&keys.join(", ")));
        }
        said + "."
    }

    fn table(&self, rows: &[GroupRow<'_>], told: &Interval<'_>) -> Table {
        let mut columns: Vec<Column> =
            self.columns.keys.iter().map(|key| Column::new("key", title(&key.name), key_class(key))).collect();
        let value = columns.len();
        columns.push(Column::of("events", "Events", "events"));
        columns.push(Column::of("events_per_second", "Per second", "events/s").detail());
        if let Some(sum) = &self.columns.sum {
            columns.push(Column::new("sum", format!("Sum of {}", sum.name), value_class(sum)));
        }
        if let Some(of) = &self.columns.histogram {
            columns.push(Column::new("total", "Total", value_class(of)));
            columns.push(Column::new("mean", "Mean", value_class(of)).detail());
            columns.extend(PARTS.iter().map(|(name, title, _)| Column::new(name, *title, value_class(of))));
            columns.push(Column::new("most", "At most", value_class(of)).detail());
        }
        let is_time = self.columns.histogram.as_ref().is_some_and(|column| column.meaning == WatchMeaning::Nanos);
        let value = if self.columns.sum.is_some() || is_time { value + 2 } else { value };
        let mut table = Table { plot: Some(Plot::Bars { value }), ..Table::new("watch", "Counts", columns) };
        table.rows = rows.iter().map(|row| self.cells(row, told)).collect();
        table
    }

    fn cells(&self, (keys, group): &GroupRow<'_>, told: &Interval<'_>) -> Vec<Cell> {
        let mut cells: Vec<Cell> =
            keys.iter().zip(&self.columns.keys).map(|(key, column)| key_cell(key, column)).collect();
        cells.push(Cell::Count(Bounded::exact(group.count)));
        cells.push(Cell::Count(Bounded::exact(per_second(group.count, told.time))));
        if let Some(sum) = &self.columns.sum {
            cells.push(cell(group.sum.unwrap_or(0), &sum.meaning));
        }
        if let (Some(of), Some(histogram)) = (&self.columns.histogram, &group.histogram) {
            let of = |value: Option<i128>| value.map_or(Cell::Empty, |value| cell(value, &of.meaning));
            let mean = histogram.sum / i128::from(histogram.count().max(1));
            cells.extend([of(Some(histogram.sum)), of(Some(mean))]);
            cells.extend(PARTS.iter().map(|(_, _, part)| of(histogram.percentile(*part).map(i128::from))));
            cells.push(of(histogram.most().map(i128::from)));
        }
        cells
    }

    /// Losses, and the cost.
    fn ends(&self, told: &Interval<'_>) -> Vec<String> {
        let WatchTotals { unplaced, unbegun, missed, .. } = *told.counts;
        let mut lost = Vec::new();
        if unplaced > 0 {
            lost.push(format!(
                "{} without a row, as the map is full (`--rows` makes a larger one)",
                counted(unplaced, "event")
            ));
        }
        if missed > 0 {
            lost.push(format!("{} that interrupted the program at its work", counted(missed, "event")));
        }
        let unread = "the last counts could not be read: events after them are missing";
        lost.extend((!told.is_complete).then(|| unread.to_owned()));
        let mut lines = vec![format!("losses   {}", if lost.is_empty() { "none".to_owned() } else { lost.join("; ") })];
        if self.columns.is_pair && unbegun > 0 {
            lines.push(format!("unknown  {} without a known begin, not counted", counted(unbegun, "event")));
        }
        let own = own_nanos().saturating_add(told.counts.cost.helper_ns);
        let cost = match programs_ns(told) {
            Some(nanos) => {
                let share = nanos as f64 * 100.0 / told.all.as_nanos().max(1) as f64;
                let each = told.counts.cost.run_ns / told.counts.cost.runs.max(1);
                format!("about {} in the kernel, {share:.2}% of one CPU ({each} ns each time)", duration(nanos.into()))
            }
            None => "not measured in the kernel, as this user may not".to_owned(),
        };
        lines.push(format!("cost     {cost}; {} for reading and showing", duration(own.into())));
        lines
    }

    /// For programs.
    pub(super) fn json(&self, told: &Interval<'_>) -> Value {
        let rows = self.rows(told.counts);
        let shown = self.top(None).unwrap_or(rows.len()).min(rows.len());
        let WatchTotals { unplaced, unbegun, missed, cost, .. } = told.counts;
        let programs = programs_ns(told);
        json!({
            "question": self.arguments.question,
            "is_final": told.is_final,
            "is_complete": told.is_complete,
            "time_ns": told.time.as_nanos() as u64,
            "events": told.counts.count(),
            "rows": rows[..shown].iter().map(|row| self.row(row)).collect::<Vec<_>>(),
            "omitted_rows": rows.len() - shown,
            "histogram": told.counts.histogram().map(|histogram| distribution(&histogram)),
            "lost": { "map_full": unplaced, "interrupted": missed },
            "unbegun": self.columns.is_pair.then_some(unbegun),
            "cost": {
                "programs_ns": programs,
                "ns_each": programs.map(|_| cost.run_ns / cost.runs.max(1)),
                "own_ns": own_nanos(),
                "helper_ns": cost.helper_ns,
            },
        })
    }

    fn row(&self, (keys, group): &GroupRow<'_>) -> Value {
        let keys: Map<String, Value> =
            self.columns.keys.iter().zip(*keys).map(|(column, key)| (column.name.clone(), key_json(key))).collect();
        let mut row = json!({ "keys": keys, "events": group.count });
        if let Some(sum) = group.sum {
            row["sum"] = integer(sum);
        }
        if let Some(histogram) = &group.histogram {
            row["histogram"] = distribution(histogram);
        }
        row
    }
}

/// Estimated time of the programs since the beginning: measured a part of the time, and taken for all of it.
fn programs_ns(told: &Interval<'_>) -> Option<u64> {
    let cost = told.counts.cost;
    let part = told.all.as_nanos() as f64 / cost.measured_ns as f64;
    (cost.measured_ns > 0).then(|| (cost.run_ns as f64 * part.max(1.0)) as u64)
}

/// Processor time of this process.
fn own_nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn per_second(count: u64, time: Duration) -> u64 {
    (count as f64 / time.as_secs_f64().max(1e-9)).round() as u64
}

fn sum_of(rows: &[GroupRow<'_>]) -> Option<i128> {
    rows.iter().filter_map(|(_, group)| group.sum).reduce(i128::saturating_add)
}

/// `next_comm` is `Next comm`; a path stays.
fn title(name: &str) -> String {
    if name.contains(['.', '[', '$']) {
        return name.to_owned();
    }
    let mut letters = name.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().chain(letters).collect::<String>().replace('_', " "))
}

fn key_class(column: &WatchColumn) -> CellClass {
    match column.meaning {
        WatchMeaning::Call | WatchMeaning::Labels(_) | WatchMeaning::Event => CellClass::Text,
        _ => CellClass::Mixed,
    }
}

fn value_class(column: &WatchColumn) -> CellClass {
    match column.meaning {
        WatchMeaning::Nanos => CellClass::Duration,
        WatchMeaning::Bytes => CellClass::Size,
        _ => CellClass::Number,
    }
}

fn cell(value: i128, meaning: &WatchMeaning) -> Cell {
    match (u64::try_from(value), meaning) {
        (Ok(value), WatchMeaning::Nanos) => Cell::Duration(Bounded::exact(value)),
        (Ok(value), WatchMeaning::Bytes) => Cell::Size(Bounded::exact(value)),
        (Ok(value), _) => Cell::Count(Bounded::exact(value)),
        (Err(_), _) => i64::try_from(value).map_or_else(|_| Cell::Text(value.to_string()), Cell::Integer),
    }
}

fn key_cell(key: &WatchKey, column: &WatchColumn) -> Cell {
    match (key, &column.meaning) {
        (WatchKey::Text(text), _) => Cell::Text(text.clone()),
        (WatchKey::Number(number), WatchMeaning::Address) => Cell::Based(*number as i64, 16),
        (WatchKey::Number(number), meaning @ (WatchMeaning::Nanos | WatchMeaning::Bytes)) => cell(*number, meaning),
        // A number that stands for something: no commas.
        (WatchKey::Number(number), _) => Cell::Text(number.to_string()),
    }
}

fn key_json(key: &WatchKey) -> Value {
    match key {
        WatchKey::Text(text) => text.clone().into(),
        WatchKey::Number(number) => i64::try_from(*number).map_or_else(|_| Value::from(*number as u64), Value::from),
    }
}

/// A number of JSON; beyond 64 bits, the nearest that most programs read.
fn integer(value: i128) -> Value {
    let small = i64::try_from(value).map(Value::from);
    small.or_else(|_| u64::try_from(value).map(Value::from)).unwrap_or_else(|_| Value::from(value as f64))
}

fn shown(key: &WatchKey) -> String {
    match key {
        WatchKey::Text(text) => text.clone(),
        WatchKey::Number(number) => number.to_string(),
    }
}

fn word(value: i128, meaning: &WatchMeaning) -> String {
    let is_small = u64::try_from(value).is_ok();
    match meaning {
        WatchMeaning::Nanos => duration(value),
        WatchMeaning::Bytes if is_small => crate::show::bytes(value as u64),
        _ if is_small => grouped(value as u64),
        _ => value.to_string(),
    }
}

/// A distribution by powers of two, as bars.
fn bars(histogram: &WatchHistogram, column: &WatchColumn) -> Table {
    let class = value_class(column);
    let columns = vec![
        Column::new("from", "From", class),
        Column::new("to", "To", class),
        Column::of("events", "Events", "events"),
    ];
    let plot = Some(Plot::Histogram { low: 0, high: 1, count: 2 });
    let title = format!("Distribution of {}", column.name);
    let mut table = Table { plot, ..Table::new("distribution", title, columns) };
    let end = |end: Option<u64>| end.map_or(Cell::Empty, |end| cell(end.into(), &column.meaning));
    table.rows = histogram
        .bars()
        .iter()
        .map(|bar| vec![end(bar.from), end(bar.to), Cell::Count(Bounded::exact(bar.count))])
        .collect();
    table
}

fn distribution(histogram: &WatchHistogram) -> Value {
    let bucket = |bar: &HistogramBar| json!([bar.from, bar.to, bar.count]);
    let mut told = json!({
        "count": histogram.count(),
        "sum": integer(histogram.sum),
        "most": histogram.most(),
        "buckets": histogram.buckets().iter().map(bucket).collect::<Vec<_>>(),
    });
    for (name, _, part) in PARTS {
        told[name] = histogram.percentile(part).into();
    }
    told
}
