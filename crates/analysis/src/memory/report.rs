//! The tables of `memory`: the counts, with unknown shares put in.

use super::usage::{PageCounts, Usage};
use super::{MemoryAnalysis, MemoryState, TAKEN};
use crate::LaneFacts;
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::count::{at_least, lost_of};
use crate::headline::{Headline, HeadlineRow, HeadlineTables};
use crate::hosts::HostNames;
use crate::shares::{self, Amount, AmountShare, ShareProcess, ThreadOwner};
use crate::statistics::leave;

/// Everything that is known.
struct MemoryTotals {
    shares: shares::ShareTotals<Usage>,
    /// Events that are lost, if that is known.
    lost: Option<u64>,
}

/// Periods of a course at most, if none is left out.
const PERIODS_MAX: i64 = 1 << 16;

impl MemoryAnalysis {
    /// The answer so far.
    pub(super) fn report(&self, state: &MemoryState) -> Answer {
        let whole = MemoryTotals { shares: state.shares.whole(&self.lanes, &self.wishes), lost: self.lost() };
        let by = &self.wishes.by;
        let wants = |name: &str| by.is_empty() || by.iter().any(|wanted| wanted == name);
        let mut tables = vec![self.total(state)];
        tables.extend(wants("thread").then(|| self.per_thread(&whole)));
        tables.extend(wants("process").then(|| self.per_process(&whole)));
        tables.extend(wants("cpu").then(|| self.per_cpu(state)));
        tables.push(self.course(state));
        let span_ns = crate::setup::span_ns(&self.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    /// How much was taken and given back, and by which thread most.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        let most = |class: &str| tables.greatest(&[class], &["allocated", "freed"]);
        let is_nothing = |row: &HeadlineRow<'_>| row.is_zero("allocations") && row.is_zero("frees");
        if let Some(total) = tables.first("total").filter(|total| !is_nothing(total)) {
            headline.say(&total, "The kernel allocated {allocated:page} and freed {freed}");
        }
        let (of_thread, of_process) = (most("per-thread"), most("per-process"));
        if let Some(row) = of_thread.or(of_process) {
            headline.say(
                &row,
                match (row.is_known(), of_thread.is_some()) {
                    _ if row.is_idle() => "Idle CPUs moved most: {allocated} allocated, {freed} freed",
                    (false, _) => "Unknown threads moved most: {allocated} allocated, {freed} freed",
                    (true, true) => "Thread {thread} moved most: {allocated} allocated, {freed} freed",
                    (true, false) => "Process {process} moved most: {allocated} allocated, {freed} freed",
                },
            );
        }
        headline
    }

    /// Those whose CPUs are asked for.
    fn lanes_asked(&self) -> impl Iterator<Item = &LaneFacts> {
        self.lanes.iter().filter(|lane| self.wishes.wants_lane(lane))
    }

    /// How many of their events are lost, if that is known.
    fn lost(&self) -> Option<u64> {
        lost_of(self.lanes_asked())
    }

    fn total(&self, state: &MemoryState) -> Table {
        let mut columns = columns();
        columns.push(Column::of("lowest", "Lowest", "pages").detail());
        columns.push(Column::of("highest", "Highest", "pages"));
        let mut table = Table::new("total", "Pages of memory", columns);
        let mut all = Usage::default();
        state.shares.cpus.iter().flatten().for_each(|(_, cpu)| all.add(&cpu.sums));
        let mut row = seen(&all, self.lost());
        row.extend([state.depth.lowest, state.depth.highest].map(Cell::Integer));
        table.rows.push(row);
        table
    }

    fn per_thread(&self, whole: &MemoryTotals) -> Table {
        let mut table = Table::new(
            "per-thread",
            "Threads",
            vec![
                Column::new("thread", "Thread", CellClass::Process),
                Column::of("incarnation", "Life", "lives").rest(),
            ],
        );
        table.columns.extend(columns());
        table.plot = Some(Plot::Sums { values: [3, 5] });
        let rows = whole.shares.threads.rows.sorted();
        table.omitted = whole.shares.threads.rows.count() - rows.len() as u64;
        let hosts: Vec<u16> = rows.iter().map(|(_, (id, _))| id.key.host).collect();
        for (_, (id, row)) in rows {
            let (pid, tid) = (row.pid.map(i64::from), Some(i64::from(id.key.tid)));
            let mut cells = vec![Cell::Process { name: row.comm.text(), pid, tid }, count(row.lives_before.into())];
            cells.extend(whole.cells(&row.share));
            table.rows.push(cells);
        }
        if !whole.shares.idle.all.is_empty() && self.wishes.wants_thread(0, || None) {
            let mut cells = vec![idle(Some(0)), count(0)];
            cells.extend(whole.cells(&whole.shares.idle));
            table.rows.push(cells);
        }
        if !whole.shares.unknown.is_empty() {
            let mut cells = vec![Cell::Unknown, Cell::Empty];
            cells.extend(seen(&whole.shares.unknown, Some(0)));
            table.rows.push(cells);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn per_process(&self, whole: &MemoryTotals) -> Table {
        let mut table = Table::new(
            "per-process",
            "Processes",
            vec![
                Column::new("process", "Process", CellClass::Process),
                Column::of("threads", "Threads", "threads").detail(),
            ],
        );
        table.columns.extend(columns());
        table.plot = Some(Plot::Sums { values: [3, 5] });
        let processes = whole.shares.threads.processes.iter().map(|(key, process)| (*key, process.clone()));
        let mut rows: Vec<((u16, ThreadOwner), ShareProcess<Usage>)> = processes.collect();
        rows.retain(|(key, process)| {
            key.1.pid().is_some() && process.threads > 0 && self.wishes.wants_name(process.name().as_deref())
        });
        let rank = |process: &ShareProcess<Usage>| std::cmp::Reverse(process.share.all.rank());
        rows.sort_by_key(|(key, process)| (rank(process), *key));
        table.omitted = leave(&mut rows, self.wishes.top);
        let hosts: Vec<u16> = rows.iter().map(|((host, _), _)| *host).collect();
        for ((_, owner), process) in rows {
            let name = process.name();
            let mut cells =
                vec![Cell::Process { name, pid: owner.pid().map(i64::from), tid: None }, count(process.threads)];
            cells.extend(whole.cells(&process.share));
            table.rows.push(cells);
        }
        if !whole.shares.idle.all.is_empty() && self.wishes.wants_thread(0, || None) {
            let mut cells = vec![idle(None), count(0)];
            cells.extend(whole.cells(&whole.shares.idle));
            table.rows.push(cells);
        }
        let (threads, unknown) = whole.shares.of_no_process();
        if !unknown.is_empty() {
            let mut cells = vec![Cell::Unknown, count(threads)];
            cells.extend(seen(&unknown, Some(0)));
            table.rows.push(cells);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn per_cpu(&self, state: &MemoryState) -> Table {
        let mut table = Table::new("per-cpu", "CPUs", vec![Column::new("cpu", "CPU", CellClass::Cpu)]);
        table.columns.extend(columns());
        table.plot = Some(Plot::Sums { values: [2, 4] });
        let mut hosts = Vec::new();
        for (facts, cpus) in self.lanes.iter().zip(&state.shares.cpus) {
            let mut cpus: Vec<_> = cpus.iter().filter(|(_, cpu)| !cpu.sums.is_empty()).collect();
            cpus.sort_by_key(|(number, _)| *number);
            for (number, cpu) in cpus {
                let mut cells = vec![Cell::Cpu(*number)];
                cells.extend(seen(&cpu.sums, facts.lost));
                table.rows.push(cells);
                hosts.push(facts.host);
            }
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    /// Pages over time.
    fn course(&self, state: &MemoryState) -> Table {
        let mut table = Table::new(
            "course",
            "Pages over time",
            vec![
                Column::new("time", "Time", CellClass::TimeRange),
                Column::of("allocated", "Allocated", "pages"),
                Column::of("freed", "Freed", "pages"),
                Column::of("relative", "Relative", "pages"),
                Column::of("held", "Held at least", "pages"),
            ],
        );
        table.plot = Some(Plot::Course { time: 0, series: None, value: 4 });
        let mut counts = state.course.counts().peekable();
        let is_sound = self.lanes_asked().all(|lane| lane.holes.is_empty());
        let mut depth = 0;
        for period in self.shown(state) {
            let mut pages = [0; 2];
            while let Some(((_, series), count)) = counts.next_if(|((known, _), _)| *known <= period) {
                pages[usize::from(series != TAKEN)] += count;
            }
            let [taken, given] = pages;
            depth += taken.cast_signed() - given.cast_signed();
            let (from, to) = self.periods.at(&state.course, period);
            let is_whole = !self.lanes_asked().any(|lane| lane.holes.touch(from, to));
            let held = (depth - state.depth.lowest).max(0).cast_unsigned();
            let held = if is_sound { Bounded::exact(held) } else { Bounded { value: held, low: 0, high: u64::MAX } };
            let mut cells = vec![Cell::TimeRange(Some(from), Some(to))];
            cells.extend([taken, given].map(|pages| Cell::Count(at_least(pages, is_whole.then_some(0)))));
            cells.push(Cell::Integer(depth));
            cells.push(Cell::Count(held));
            table.rows.push(cells);
        }
        table
    }

    /// All periods of the trace; where these are too many, those from the first to the last in which something was used.
    fn shown(&self, state: &MemoryState) -> std::ops::Range<i64> {
        let mut used = state.course.counts().map(|((period, _), _)| period);
        let Some(first) = used.next() else { return 0..0 };
        let behind = used.last().unwrap_or(first) + 1;
        let Some((begin, end)) = crate::setup::span_ns(&self.lanes) else { return first..behind };
        let width = self.periods.width(&state.course);
        let whole = i64::try_from(begin.abs_diff(end).div_ceil(width)).unwrap_or(i64::MAX);
        if whole <= PERIODS_MAX { first.min(0)..behind.max(whole) } else { first..behind }
    }
}

impl MemoryTotals {
    /// Pages of a thread with bounds: without its doubtful ones, or with the doubtful ones of
    /// others.
    fn cells(&self, share: &AmountShare<Usage>) -> Vec<Cell> {
        let of = |all: &PageCounts, doubt: &PageCounts, others: &PageCounts| {
            let low = all.count - doubt.count;
            let high = self.lost.map_or(u64::MAX, |lost| low.saturating_add(others.count).saturating_add(lost));
            let calls = Bounded { value: all.count, low, high };
            let is_bounded = self.lost == Some(0) && all.unsized_count + others.unsized_count == 0;
            let low = all.pages.saturating_sub(doubt.pages);
            let high = if is_bounded { low.saturating_add(others.pages) } else { u64::MAX };
            [Cell::Count(calls), Cell::Count(Bounded { value: all.pages, low, high })]
        };
        let mut cells = of(&share.all.taken, &share.doubt.taken, &self.shares.doubt.taken).to_vec();
        cells.extend(of(&share.all.given, &share.doubt.given, &self.shares.doubt.given));
        cells.push(Cell::Integer(share.all.change()));
        cells
    }
}

/// Columns of [`seen`].
fn columns() -> Vec<Column> {
    vec![
        Column::of("allocations", "Allocations", "times").detail(),
        Column::of("allocated", "Allocated", "pages"),
        Column::of("frees", "Frees", "times").detail(),
        Column::of("freed", "Freed", "pages"),
        Column::of("relative", "Relative", "pages"),
    ]
}

/// Pages that were taken and given back, if this many events are lost.
fn seen(usage: &Usage, lost: Option<u64>) -> Vec<Cell> {
    let of = |pages: &PageCounts| {
        let missing = (lost == Some(0) && pages.unsized_count == 0).then_some(0);
        [Cell::Count(at_least(pages.count, lost)), Cell::Count(at_least(pages.pages, missing))]
    };
    let mut cells = of(&usage.taken).to_vec();
    cells.extend(of(&usage.given));
    cells.push(Cell::Integer(usage.change()));
    cells
}

fn idle(tid: Option<i64>) -> Cell {
    Cell::Process { name: Some("idle".to_owned()), pid: Some(0), tid }
}

fn count(count: u64) -> Cell {
    Cell::Count(Bounded::exact(count))
}
