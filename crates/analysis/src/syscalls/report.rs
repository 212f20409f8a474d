//! The tables of `syscalls`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::rows::{CallRow, Others, SlowCall};
use super::totals::{CallNameTotals, SyscallTotals};
use super::{SyscallState, Syscalls};
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, ERRNO, Plot, RESULT, Table};
use crate::calls::report::{count, figure_cells, figure_columns, life_cells, thread_columns};
use crate::calls::{Bases, CallId, LifeNumbering, ThreadLife};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::statistics::{leave, percentile_cells, percentile_columns};
use crate::threads::ThreadKey;
use crate::{Bins, Histogram, Merge};

/// A thread's machine and cells, and its calls of a name.
type ThreadRow<'a> = (Option<u16>, Vec<Cell>, CallId, &'a CallRow);

/// Everything that is known.
struct SyscallFindings<'a> {
    calls: BTreeMap<CallId, CallNameTotals>,
    /// Calls of threads, the most time first: the thread, the call, and its sums.
    threads: Vec<ThreadRow<'a>>,
    /// Rows of threads that others rank above.
    dropped: u64,
    /// Slow calls, each with the machine and the cells of its thread.
    slow: Vec<(SlowCall, u16, Vec<Cell>)>,
}

impl Syscalls {
    /// The answer so far.
    pub(super) fn report(&self, state: &SyscallState) -> Answer {
        let mut more = SyscallTotals::new(&self.wishes);
        let bases = state.calls.finish(self, &mut more);
        let found = self.found(&state.totals, &more, &bases);
        let by = &self.wishes.by;
        let wants = |name: &str| by.is_empty() || by.iter().any(|wanted| wanted == name);
        let mut tables = Vec::new();
        tables.extend(wants("syscall").then(|| self.per_syscall(&found)));
        tables.extend(wants("thread").then(|| self.per_thread(&found)));
        tables.extend(wants("error").then(|| self.errors(&found)));
        tables.extend(wants("slowest").then(|| self.slowest(&found)));
        tables.extend(wants("distribution").then(|| self.distribution(&found)));
        if wants("uring") {
            tables.extend(self.uring.finish(&state.uring).tables(&self.uring));
        }
        let span_ns = crate::setup::span_ns(&self.settings.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    /// The call that took most time, and the most frequent error, or the call that took longest.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        if let Some(call) = tables.most("per-syscall", "total") {
            headline.say(&call, "System call {syscall} took most time: {total+} in {count+:call}");
        } else if let Some(thread) = tables.most("per-thread", "total") {
            headline.say(&thread, "Thread {thread} spent most time in {syscall}: {total+} in {count+:call}");
        }
        if let Some(error) = tables.most("errors", "count") {
            headline.say(&error, "The most frequent error is {errno} of {syscall}: {count+:time}");
        } else if let Some(slow) = tables.most("slowest", "duration") {
            headline.say(&slow, "The slowest call took {duration+}: {syscall} of {thread}");
        }
        headline
    }

    /// Lives that were over before the trace was, and the others.
    fn found<'a>(&self, over: &'a SyscallTotals, more: &'a SyscallTotals, bases: &'a Bases) -> SyscallFindings<'a> {
        let numbers = LifeNumbering { bases, firsts: &more.firsts };
        let mut calls: BTreeMap<CallId, CallNameTotals> = BTreeMap::new();
        over.calls().chain(more.calls()).for_each(|(call, whole)| calls.entry(call).or_default().add(whole));
        let (threads, dropped) = self.thread_rows(over, more, &numbers);
        let mut slow = Vec::new();
        for (totals, is_early) in [(over, true), (more, false)] {
            let slowest = totals.slowest(&self.limits).into_iter();
            slow.extend(slowest.map(|(slow, who)| (slow, who.key.host, numbers.cells(&who, is_early))));
        }
        slow.sort_by_key(|row: &(SlowCall, u16, Vec<Cell>)| Reverse(row.0));
        slow.truncate(self.limits.slow);
        SyscallFindings { calls, threads, dropped, slow }
    }

    /// Rows of threads, and how many others there are.
    fn thread_rows<'a>(
        &self,
        over: &'a SyscallTotals,
        more: &'a SyscallTotals,
        numbers: &LifeNumbering<'_>,
    ) -> (Vec<ThreadRow<'a>>, u64) {
        let unknown = more.unknown.rows.iter().filter(|row| row.1.is_any());
        let mut rows: Vec<_> = unknown.map(|(call, row)| (rank(row), (None, 0, *call), None, row)).collect();
        for (totals, is_early) in [(over, true), (more, false)] {
            rows.extend(totals.threads.sorted().into_iter().map(|(_, thread)| {
                let incarnation = numbers.incarnation(&thread.who, is_early);
                let id = (Some(thread.who.key), incarnation, thread.call);
                (rank(&thread.row), id, Some(&thread.who), &thread.row)
            }));
        }
        let count = over.threads.count()
            + more.threads.count()
            + more.unknown.rows.iter().filter(|row| row.1.is_any()).count() as u64;
        rows.sort_unstable_by_key(|row| (row.0, row.1));
        leave(&mut rows, self.wishes.top);
        let dropped = count - rows.len() as u64;
        let cells = |who: Option<&ThreadLife>, incarnation| match who {
            Some(who) => life_cells(who.key, incarnation, who.comm, who.pid),
            None => vec![Cell::Unknown, Cell::Empty],
        };
        let row = |(_, id, who, row): (_, (Option<ThreadKey>, u64, CallId), Option<&ThreadLife>, _)| {
            (id.0.map(|key| key.host), cells(who, id.1), id.2, row)
        };
        (rows.into_iter().map(row).collect(), dropped)
    }

    fn syscall(&self, call: CallId) -> Cell {
        let name = self.names.name(call);
        if name.is_empty() { Cell::Empty } else { Cell::Syscall(name) }
    }

    fn per_syscall(&self, found: &SyscallFindings<'_>) -> Table {
        let mut columns = vec![
            Column::new("syscall", "System call", CellClass::Syscall),
            Column::of("count", "Calls", "calls"),
            Column::of("errors", "Errors", "errors"),
        ];
        columns.extend(figure_columns());
        columns.extend(percentile_columns());
        columns.extend(other_columns());
        let mut table = Table::new("per-syscall", "System calls", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let mut rows: Vec<(&CallId, &CallNameTotals)> =
            found.calls.iter().filter(|(_, whole)| whole.is_any()).collect();
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

    fn per_thread(&self, found: &SyscallFindings<'_>) -> Table {
        let mut columns = thread_columns();
        columns.push(Column::new("syscall", "System call", CellClass::Syscall));
        columns.extend([Column::of("count", "Calls", "calls"), Column::of("errors", "Errors", "errors")]);
        columns.extend(figure_columns());
        columns.extend(other_columns());
        let mut table = Table::new("per-thread", "System calls of threads", columns);
        table.plot = Some(Plot::Bars { value: 5 });
        table.omitted = found.dropped;
        for (_, thread, call, row) in &found.threads {
            let mut cells = thread.clone();
            cells.extend([self.syscall(*call), count(row.figures.count), count(row.errors)]);
            cells.extend(figure_cells(&row.figures));
            cells.extend(other_cells(&row.others()));
            table.rows.push(cells);
        }
        HostNames::new(&self.settings.lanes).put(&mut table, found.threads.iter().map(|row| row.0));
        table
    }

    fn errors(&self, found: &SyscallFindings<'_>) -> Table {
        let columns = vec![
            Column::new("syscall", "System call", CellClass::Syscall),
            Column::of("errno", "Error", ERRNO),
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

    fn slowest(&self, found: &SyscallFindings<'_>) -> Table {
        let mut columns = vec![
            Column::new("time", "Time", CellClass::TimeRange),
            Column::new("duration", "Duration", CellClass::Duration),
        ];
        columns.extend(thread_columns());
        columns.push(Column::new("syscall", "System call", CellClass::Syscall));
        columns.push(Column::of("ret", "Result", RESULT));
        let mut table = Table::new("slowest", "Slowest system calls", columns);
        table.plot = Some(Plot::Bars { value: 1 });
        for (slow, _, thread) in &found.slow {
            let mut cells = vec![
                Cell::TimeRange(Some(slow.begin.0.time), Some(slow.end.time)),
                Cell::Duration(Bounded::exact(slow.ns)),
            ];
            cells.extend_from_slice(thread);
            cells.extend([self.syscall(slow.call), slow.ret.map_or(Cell::Empty, Cell::Integer)]);
            table.rows.push(cells);
        }
        HostNames::new(&self.settings.lanes).put(&mut table, found.slow.iter().map(|row| row.1));
        table
    }

    /// How long calls took, all of them together.
    fn distribution(&self, found: &SyscallFindings<'_>) -> Table {
        let mut all = Histogram::default();
        found.calls.values().for_each(|whole| all.merge_from(&whole.detail.latency_ns));
        distribution("distribution", "How long system calls took", &all, self.wishes.bins)
    }
}

/// The most time first.
fn rank(row: &CallRow) -> Reverse<u64> {
    Reverse(row.figures.total)
}

/// A histogram as a table.
pub(crate) fn distribution(class: &'static str, title: &str, histogram: &Histogram, bins: usize) -> Table {
    let columns = vec![
        Column::new("low", "From", CellClass::Duration),
        Column::new("high", "To", CellClass::Duration),
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

fn other_columns() -> [Column; 4] {
    [
        Column::of("began_before", "Began before", "calls").rest(),
        Column::of("child_returns", "Child returns", "calls").rest(),
        Column::of("never_ended", "Never ended", "calls").rest(),
        Column::of("lost_inside", "Lost inside", "calls").rest(),
    ]
}

fn other_cells(others: &Others) -> [Cell; 4] {
    [others.began_before, others.child_returns, others.never_ended, others.lost_inside].map(count)
}
