//! The tables of `syscalls`.

use std::collections::BTreeMap;

use super::rows::{CallRow, Detail, Others, Slow};
use super::{State, Syscalls};
use crate::answer::{Answer, Bounded, Cell, Class, Column, Plot, Table};
use crate::calls::report::{
    Names, count, figure_cells, figure_columns, percentile_cells, percentile_columns, thread_cells, thread_columns,
    wants,
};
use crate::calls::{CallId, Figures, LifeView};
use crate::statistics::leave;
use crate::threads::ThreadKey;
use crate::{Bins, Histogram, Merge};

/// What is known of all calls of a name.
#[derive(Default)]
struct Whole {
    figures: Figures,
    errors: u64,
    others: Others,
    detail: Detail,
}

type ThreadRow = ((std::cmp::Reverse<u64>, u64, CallId), Vec<Cell>, CallRow);

/// Everything that is known.
#[derive(Default)]
struct Found {
    calls: BTreeMap<CallId, Whole>,
    /// Rows of threads: how much time they took, who of all threads it is, its cells, the call.
    threads: Vec<ThreadRow>,
    /// Rows of threads that were dropped, as others rank higher.
    dropped: u64,
    slow: Vec<(Slow, ThreadKey)>,
    names: Names,
}

/// Rows of threads beyond those that are wanted, until they are sorted out.
const SLACK: usize = 4096;

impl Found {
    /// Drops rows of threads that cannot be among those that are wanted.
    fn shorten(&mut self, top: usize, slack: usize) {
        if self.threads.len() > top.saturating_add(slack) {
            self.threads.retain(|row| row.2.figures.count > 0 || row.2.others() != Others::default());
            self.threads.sort_unstable_by_key(|row| row.0);
            self.dropped += self.threads.len().saturating_sub(top) as u64;
            self.threads.truncate(top);
        }
    }
}

impl Syscalls {
    /// The answer so far.
    pub(super) fn report(&self, state: &State) -> Answer {
        let found = self.found(state);
        let by = &self.wishes.by;
        let wants = |name: &str| by.is_empty() || by.iter().any(|wanted| wanted == name);
        let mut tables = Vec::new();
        tables.extend(wants("syscall").then(|| self.per_syscall(&found)));
        tables.extend(wants("thread").then(|| self.per_thread(&found)));
        tables.extend(wants("error").then(|| self.errors(&found)));
        tables.extend(wants("slowest").then(|| self.slowest(&found)));
        tables.extend(wants("distribution").then(|| self.distribution(&found)));
        let span_ns = crate::setup::span_ns(&self.settings.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    fn found(&self, state: &State) -> Found {
        let mut found = Found::default();
        let mut totals = state.totals.clone();
        let mut unknown: BTreeMap<CallId, CallRow> = BTreeMap::new();
        let mut lives = 0;
        state.calls.finish(self, &mut totals, |life| {
            found.names.add(&life);
            if wants(&self.wishes, &life) {
                lives += 1;
                life_rows(&mut found, &mut unknown, lives, &life);
                if let Some(top) = self.wishes.top {
                    found.shorten(top, SLACK);
                }
            }
        });
        let cells = vec![Cell::Unknown, Cell::Empty];
        let row = |(call, row): (CallId, CallRow)| (key(&row, 0, call), cells.clone(), row);
        found.threads.extend(unknown.into_iter().map(row));
        found.threads.retain(|row| row.2.figures.count > 0 || row.2.others() != Others::default());
        found.threads.sort_by_key(|row| row.0);
        if !self.limits.is_by_thread {
            for (call, whole) in &mut found.calls {
                whole.detail = totals.of(*call).cloned().unwrap_or_default();
            }
            found.slow = totals.slowest(&self.limits);
        }
        found.slow.sort_unstable_by(|one, other| other.cmp(one));
        found.slow.truncate(self.limits.slow);
        found
    }

    fn syscall(&self, call: CallId) -> Cell {
        let name = self.names.name(call);
        if name.is_empty() { Cell::Empty } else { Cell::Syscall(name) }
    }

    fn per_syscall(&self, found: &Found) -> Table {
        let mut columns = vec![
            Column::new("syscall", "System call", Class::Syscall),
            Column::of("count", "Calls", "calls"),
            Column::of("errors", "Errors", "errors"),
        ];
        columns.extend(figure_columns());
        columns.extend(percentile_columns());
        columns.extend(other_columns());
        let mut table = Table::new("per-syscall", "System calls", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let mut rows: Vec<(&CallId, &Whole)> = found.calls.iter().filter(|(_, whole)| whole.is_any()).collect();
        rows.sort_by(|one, other| other.1.figures.total.cmp(&one.1.figures.total).then(one.0.cmp(other.0)));
        table.omitted = leave(&mut rows, self.wishes.top);
        for (call, whole) in rows {
            let mut cells = vec![self.syscall(*call), count(whole.figures.count), count(whole.errors)];
            cells.extend(figure_cells(&whole.figures));
            cells.extend(percentile_cells(&whole.detail.latency_ns));
            cells.extend(other_cells(&whole.others));
            table.rows.push(cells);
        }
        table
    }

    fn per_thread(&self, found: &Found) -> Table {
        let mut columns = thread_columns();
        columns.push(Column::new("syscall", "System call", Class::Syscall));
        columns.extend([Column::of("count", "Calls", "calls"), Column::of("errors", "Errors", "errors")]);
        columns.extend(figure_columns());
        columns.extend(other_columns());
        let mut table = Table::new("per-thread", "System calls of threads", columns);
        table.plot = Some(Plot::Bars { value: 5 });
        let mut rows: Vec<&ThreadRow> = found.threads.iter().collect();
        table.omitted = leave(&mut rows, self.wishes.top) + found.dropped;
        for ((_, _, call), thread, row) in rows {
            let mut cells = thread.clone();
            cells.extend([self.syscall(*call), count(row.figures.count), count(row.errors)]);
            cells.extend(figure_cells(&row.figures));
            cells.extend(other_cells(&row.others()));
            table.rows.push(cells);
        }
        table
    }

    fn errors(&self, found: &Found) -> Table {
        let columns = vec![
            Column::new("syscall", "System call", Class::Syscall),
            Column::of("errno", "Error", "errno"),
            Column::of("count", "Calls", "calls"),
        ];
        let mut table = Table::new("errors", "Errors of system calls", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        let errors =
            found.calls.iter().flat_map(|(call, whole)| whole.detail.errors.iter().map(move |row| (call, row)));
        let mut rows: Vec<(u64, &CallId, u16)> = errors.map(|(call, (errno, count))| (*count, call, *errno)).collect();
        rows.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)).then(one.2.cmp(&other.2)));
        table.omitted = leave(&mut rows, self.wishes.top);
        for (times, call, errno) in rows {
            table.rows.push(vec![self.syscall(*call), Cell::Integer(i64::from(errno)), count(times)]);
        }
        table
    }

    fn slowest(&self, found: &Found) -> Table {
        let mut columns =
            vec![Column::new("time", "Time", Class::TimeRange), Column::new("duration", "Duration", Class::Duration)];
        columns.extend(thread_columns());
        columns.push(Column::new("syscall", "System call", Class::Syscall));
        columns.push(Column::of("ret", "Result", "result"));
        let mut table = Table::new("slowest", "Slowest system calls", columns);
        table.plot = Some(Plot::Bars { value: 1 });
        for (slow, key) in &found.slow {
            table.rows.push(vec![
                Cell::TimeRange(Some(slow.begin.0.time), Some(slow.end.time)),
                Cell::Duration(Bounded::exact(slow.ns)),
                found.names.thread(*key, slow.end),
                found.names.incarnation(*key, slow.end).map_or(Cell::Empty, count),
                self.syscall(slow.call),
                slow.ret.map_or(Cell::Empty, Cell::Integer),
            ]);
        }
        table
    }

    /// How long calls took, all of them together.
    fn distribution(&self, found: &Found) -> Table {
        let mut all = Histogram::default();
        found.calls.values().for_each(|whole| all.merge_from(&whole.detail.latency_ns));
        distribution("distribution", "How long system calls took", &all, self.wishes.bins)
    }
}

/// By how much time calls took, then by who made them.
fn key(row: &CallRow, life: u64, call: CallId) -> (std::cmp::Reverse<u64>, u64, CallId) {
    (std::cmp::Reverse(row.figures.total), life, call)
}

/// Adds what a life did to what is known.
fn life_rows(
    found: &mut Found,
    unknown: &mut BTreeMap<CallId, CallRow>,
    number: u64,
    life: &LifeView<super::CallRows>,
) {
    for (call, row) in life.rows.rows() {
        let whole = found.calls.entry(*call).or_default();
        whole.figures.add(&row.figures);
        whole.errors += row.errors;
        whole.others.add(&row.others());
        row.detail.iter().for_each(|detail| whole.detail.add(detail));
        if life.key.tid <= 0 {
            unknown.entry(*call).or_default().add(row);
        } else {
            found.threads.push((key(row, number, *call), thread_cells(life), row.clone()));
        }
    }
    found.slow.extend(life.rows.slow().iter().map(|slow| (*slow, life.key)));
}

/// A histogram as a table.
pub(crate) fn distribution(class: &'static str, title: &str, histogram: &Histogram, bins: usize) -> Table {
    let columns = vec![
        Column::new("low", "From", Class::Duration),
        Column::new("high", "To", Class::Duration),
        Column::of("count", "Calls", "calls"),
    ];
    let mut table = Table::new(class, title, columns);
    table.plot = Some(Plot::Histogram { low: 0, high: 1, count: 2 });
    let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else { return table };
    let bins = Bins::logarithmic(min, max, u16::try_from(bins).unwrap_or(u16::MAX));
    for bin in histogram.distribution(&bins).bins {
        let edges = [bin.low, bin.high.saturating_add(1)].map(|edge| Cell::Duration(Bounded::exact(edge)));
        let [low, high] = edges;
        table.rows.push(vec![low, high, Cell::Count(bin.count)]);
    }
    table
}

impl Whole {
    fn is_any(&self) -> bool {
        self.figures.count > 0 || self.others != Others::default()
    }
}

fn other_columns() -> [Column; 4] {
    [
        Column::of("began_before", "Began before", "calls"),
        Column::of("child_returns", "Child returns", "calls"),
        Column::of("never_ended", "Never ended", "calls"),
        Column::of("lost_inside", "Lost inside", "calls"),
    ]
}

fn other_cells(others: &Others) -> [Cell; 4] {
    [others.began_before, others.child_returns, others.never_ended, others.lost_inside].map(count)
}
