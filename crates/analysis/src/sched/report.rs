//! The tables of `sched`.

use super::Sched;
use super::doing::{CurrentCall, STATES, Start, WakeSource};
use super::settled::{KeyedRow, total_ns};
use super::state::SchedState;
use super::whole::SchedTotals;
use crate::Histogram;
use crate::Merge;
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::ranking::Ranking;
use crate::statistics::{self, distribution_of, percentile_cells, percentile_columns};
use crate::threads::ThreadId;

/// Rows of the longest wakeups by default.
const TOP: usize = 10;

impl Sched {
    /// The answer so far.
    pub(super) fn report(&self, state: &SchedState) -> Answer {
        let whole = self.whole(state);
        let mut all = Histogram::default();
        let priorities = whole.priorities();
        priorities.values().for_each(|priority| all.merge_from(&priority.latencies));
        let mut tables = vec![total(&whole, &all)];
        let wanted = &self.tables;
        tables.extend(wanted.thread.then(|| self.per_thread(&whole)));
        tables.extend(wanted.priority.then(|| per_priority(&whole)));
        tables.extend(wanted.top.then(|| self.longest(&whole)));
        tables.extend(wanted.waker.then(|| self.wakers(&whole)));
        tables.extend(wanted.run.then(|| self.runs(&whole)));
        tables.extend(wanted.state.then(|| self.states(&whole)));
        tables.extend(wanted.state.then(|| self.blocked(&whole)));
        if !all.is_empty() {
            tables.push(statistics::distribution("Wakeup to run", &all, &self.wishes));
        }
        tables.extend(self.distributions(&whole, &all));
        tables.iter_mut().for_each(|table| table.span_ns = Some(whole.span));
        Answer { tables }
    }

    /// The thread that waited longest for a CPU, and how long most waited.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        if let Some(wakeup) = tables.most("top", "latency") {
            headline.say(&wakeup, "Thread {thread} waited longest for a CPU: {latency+}, from {woken} on");
        } else if let Some(total) = tables.first("total").filter(|total| total.has("max")) {
            headline.say(&total, "The longest wait for a CPU took {max+}");
        }
        if let Some(total) = tables.first("total").filter(|total| !total.is_zero("count")) {
            headline.say(
                &total,
                match tables.is_lossy() {
                    true => "Of {count:wait} seen, 99 % took at most {p99-}",
                    false => "Of {count:wait}, 99 % took at most {p99-}",
                },
            );
        }
        headline
    }

    /// How many of the longest wakeups are shown.
    pub(super) fn top(&self) -> usize {
        self.wishes.top.unwrap_or(TOP)
    }

    pub(super) fn wants_cpu(&self, cpu: u32) -> bool {
        self.wishes.cpus.is_empty() || self.wishes.cpus.contains(&cpu)
    }

    /// Whether the answer includes the wakeup.
    pub(super) fn wants(&self, thread: ThreadId, start: Start, ns: u64) -> bool {
        let wishes = &self.wishes;
        wishes.wants_duration(ns)
            && self.wants_cpu(start.cpu)
            && wishes.wants_thread(thread.key.tid, || start.comm.text())
    }

    /// The first rows of two rankings, and how many there are beyond.
    fn first<'a, T: Ord>(&self, one: &'a Ranking<T>, other: &'a Ranking<T>) -> (Vec<(u64, &'a T)>, u64) {
        let mut rows = one.sorted();
        rows.extend(other.sorted());
        rows.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        rows.truncate(self.wishes.top.unwrap_or(usize::MAX));
        let omitted = one.count() + other.count() - rows.len() as u64;
        (rows, omitted)
    }

    fn per_thread(&self, whole: &SchedTotals<'_>) -> Table {
        let mut columns = thread_columns();
        columns.extend(statistics::columns());
        columns.extend(percentile_columns());
        columns.extend(other_columns());
        let mut table = Table::new("per-thread", "Wakeup to run, by thread", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let (rows, omitted) = self.first(&whole.state.settled.waits, &whole.last.waits);
        table.omitted = omitted;
        let hosts: Vec<u16> = rows.iter().map(|(_, row)| row.key.key.host).collect();
        for (_, KeyedRow { key, value }) in rows {
            let mut row = thread(whole, *key);
            row.extend(statistics::cells(&value.latencies));
            row.extend(percentile_cells(&value.latencies));
            row.extend([u64::from(value.never_ended), value.lost_inside, value.unseen].map(count));
            table.rows.push(row);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn longest(&self, whole: &SchedTotals<'_>) -> Table {
        let mut columns = vec![
            Column::new("woken", "Woken", CellClass::Timestamp),
            Column::new("latency", "Wakeup to run", CellClass::Duration),
        ];
        columns.extend(thread_columns());
        columns.extend([
            Column::of("priority", "Priority", "priority").detail(),
            Column::new("cpu", "CPU", CellClass::Cpu).detail(),
            Column::new("target", "Meant for", CellClass::Cpu).detail(),
            Column::new("waker", "Woken by", CellClass::Process),
            Column::of("waker_incarnation", "Waker's life", "lives").rest(),
        ]);
        let mut table = Table::new("top", "Longest wakeups", columns);
        table.plot = Some(Plot::Bars { value: 1 });
        let (mut rows, _) = self.first(&whole.state.settled.wakeups.longest, &whole.last.wakeups.longest);
        rows.truncate(self.top());
        let hosts: Vec<u16> = rows.iter().map(|(_, wakeup)| wakeup.thread.key.host).collect();
        for (latency_ns, wakeup) in rows {
            let waited = &wakeup.waited;
            let mut row = vec![Cell::Timestamp(waited.begin), duration(latency_ns)];
            row.extend(thread(whole, wakeup.thread));
            row.push(wakeup.start.prio.map_or(Cell::Empty, |prio| Cell::Integer(i64::from(prio))));
            row.push(Cell::Cpu(wakeup.start.cpu));
            row.push(waited.wait.target.map_or(Cell::Empty, Cell::Cpu));
            row.extend(waker(whole, waited.wait.waker));
            table.rows.push(row);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn wakers(&self, whole: &SchedTotals<'_>) -> Table {
        let mut columns = vec![
            Column::new("waker", "Who", CellClass::Process),
            Column::of("waker_incarnation", "Waker's life", "lives").rest(),
            Column::new("thread", "Wakes", CellClass::Process),
            Column::of("incarnation", "Life", "lives").rest(),
        ];
        columns.extend([
            Column::of("count", "Count", "times"),
            Column::new("total", "Wakeup to run", CellClass::Duration),
        ]);
        let mut table = Table::new("wakers", "Wakeups between threads", columns);
        table.plot = Some(Plot::Bars { value: 4 });
        let (rows, omitted) = self.first(&whole.state.settled.wakers, &whole.last.wakers);
        table.omitted = omitted;
        // A thread wakes others of its machine.
        let hosts: Vec<u16> = rows.iter().map(|(_, row)| row.key.0.key.host).collect();
        for (times, KeyedRow { key: (woken, who), value: total_ns }) in rows {
            let mut row = waker(whole, *who);
            row.extend(thread(whole, *woken));
            row.extend([count(times), duration(*total_ns)]);
            table.rows.push(row);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn runs(&self, whole: &SchedTotals<'_>) -> Table {
        let mut columns = thread_columns();
        columns.extend(statistics::columns());
        columns.extend([
            Column::of("cut", "In doubt", "runs").rest(),
            Column::of("preemptions", "Preemptions", "preemptions").detail(),
            Column::of("migrations", "Migrations", "migrations").detail(),
        ]);
        let mut table = Table::new("runs", "Runs", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let (rows, omitted) = self.first(&whole.state.settled.runs, &whole.last.runs);
        table.omitted = omitted;
        let hosts: Vec<u16> = rows.iter().map(|(_, row)| row.key.key.host).collect();
        for (_, KeyedRow { key, value }) in rows {
            let mut row = thread(whole, *key);
            row.extend(statistics::cells(&value.lengths));
            row.extend([value.cut, value.preemptions, value.migrations].map(count));
            table.rows.push(row);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn states(&self, whole: &SchedTotals<'_>) -> Table {
        let mut columns = thread_columns();
        let titles = ["Running", "Preempted", "Waiting", "Blocked", "New", "Unknown"];
        let states = STATES.into_iter().zip(titles);
        columns.extend(states.map(|(name, title)| Column::new(name, title, CellClass::Duration)));
        // Threads are seldom new, or unknown.
        let seldom = columns.split_off(columns.len() - 2);
        columns.extend(seldom.into_iter().map(Column::rest));
        let mut table = Table::new("states", "What threads do", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        let (rows, omitted) = self.first(&whole.state.settled.states, &whole.last.states);
        table.omitted = omitted;
        let hosts: Vec<u16> = rows.iter().map(|(_, row)| row.key.key.host).collect();
        for (_, KeyedRow { key, value: times_ns }) in rows {
            let whole_ns = times_ns.iter().sum();
            let mut row = thread(whole, *key);
            row.extend(times_ns.map(|ns| Cell::Duration(self.bounded(ns, whole_ns))));
            table.rows.push(row);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn blocked(&self, whole: &SchedTotals<'_>) -> Table {
        let mut columns = thread_columns();
        columns.extend([
            Column::new("syscall", "In", CellClass::Syscall),
            Column::of("count", "Count", "times"),
            Column::new("total", "Blocked", CellClass::Duration),
        ]);
        let mut table = Table::new("blocked", "What threads wait for", columns);
        table.plot = Some(Plot::Bars { value: 4 });
        let (rows, omitted) = self.first(&whole.state.settled.blocked, &whole.last.blocked);
        table.omitted = omitted;
        let hosts: Vec<u16> = rows.iter().map(|(_, row)| row.key.0.key.host).collect();
        for (_, KeyedRow { key: (id, call), value }) in rows {
            let mut row = thread(whole, *id);
            row.push(self.call_name(*call).map_or(Cell::Empty, Cell::Syscall));
            row.push(Cell::Count(self.bounded(value.times.count, u64::MAX)));
            row.push(Cell::Duration(self.bounded(value.times.total_ns, value.whole_ns)));
            table.rows.push(row);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    /// The name of a call; none for none.
    fn call_name(&self, call: CurrentCall) -> Option<String> {
        match call {
            CurrentCall::Named(place) => self.names.get(place as usize).cloned(),
            CurrentCall::Numbered(number) => Some(number.to_string()),
            CurrentCall::None | CurrentCall::BeforeRow | CurrentCall::BeforeCpu(..) => None,
        }
    }

    /// Distributions on request: by thread, by priority.
    fn distributions(&self, whole: &SchedTotals<'_>, all: &Histogram) -> Vec<Table> {
        let is_named = |name: &str| self.wishes.by.iter().any(|wanted| wanted == name);
        let mut tables = Vec::new();
        let mut add = |class: &'static str, title: String, values: &Histogram| {
            if !values.is_empty() {
                tables.push(distribution_of(class, title, (values, all), &self.wishes));
            }
        };
        if is_named("priority") {
            for (prio, priority) in whole.priorities() {
                let prio = prio.map_or_else(|| "unknown".to_owned(), |prio| prio.to_string());
                add("priority-distribution", format!("Wakeup to run, priority {prio}"), &priority.latencies);
            }
        }
        if is_named("thread") {
            let (rows, _) = self.first(&whole.state.settled.waits, &whole.last.waits);
            for (_, KeyedRow { key, value }) in rows.into_iter().filter(|(_, row)| total_ns(&row.value.latencies) > 0) {
                let name = whole.name(*key).and_then(|name| name.comm.text()).unwrap_or_default();
                add("thread-distribution", format!("Wakeup to run, {name} ({})", key.key.tid), &value.latencies);
            }
        }
        tables
    }

    /// A number that holes may have made anything.
    fn bounded(&self, value: u64, high: u64) -> Bounded<u64> {
        if self.holes.is_empty() { Bounded::exact(value) } else { Bounded { value, low: 0, high } }
    }
}

fn total(whole: &SchedTotals<'_>, all: &Histogram) -> Table {
    let mut columns = statistics::columns();
    columns.extend(percentile_columns());
    columns.extend(other_columns());
    columns.push(Column::of("wrong_cpu", "Wrong CPU", "times").rest());
    let mut table = Table::new("total", "Wakeup to run, all threads", columns);
    let (settled, last) = (&whole.state.settled, &whole.last);
    let mut row = statistics::cells(all);
    row.extend(percentile_cells(all));
    row.push(count(settled.totals.never_ended + last.totals.never_ended));
    row.push(count(settled.totals.lost_inside + last.totals.lost_inside));
    row.push(count(settled.totals.unseen + last.totals.unseen));
    row.push(count(settled.wakeups.wrong_cpu + last.wakeups.wrong_cpu));
    table.rows.push(row);
    table
}

fn per_priority(whole: &SchedTotals<'_>) -> Table {
    let mut columns = vec![Column::of("priority", "Priority", "priority").detail()];
    columns.extend(statistics::columns());
    columns.extend(percentile_columns());
    columns.push(Column::of("lost_inside", "In doubt", "times").rest());
    let mut table = Table::new("per-priority", "Wakeup to run, by priority", columns);
    table.plot = Some(Plot::Bars { value: 2 });
    for (prio, priority) in whole.priorities() {
        let mut row = vec![prio.map_or(Cell::Empty, |prio| Cell::Integer(i64::from(prio)))];
        row.extend(statistics::cells(&priority.latencies));
        row.extend(percentile_cells(&priority.latencies));
        row.push(count(priority.lost_inside));
        table.rows.push(row);
    }
    table
}

fn thread_columns() -> Vec<Column> {
    vec![Column::new("thread", "Thread", CellClass::Process), Column::of("incarnation", "Life", "lives").rest()]
}

fn other_columns() -> Vec<Column> {
    vec![
        Column::of("never_ended", "Never ended", "times").rest(),
        Column::of("lost_inside", "In doubt", "times").rest(),
        Column::of("unseen", "Unseen", "times").rest(),
    ]
}

fn thread(whole: &SchedTotals<'_>, id: ThreadId) -> Vec<Cell> {
    let Some(name) = whole.name(id) else { return vec![Cell::Unknown, Cell::Empty] };
    let (pid, tid) = (name.pid.map(i64::from), Some(i64::from(id.key.tid)));
    vec![Cell::Process { name: name.comm.text(), pid, tid }, count(u64::from(name.number))]
}

fn waker(whole: &SchedTotals<'_>, who: WakeSource) -> Vec<Cell> {
    match whole.identified(who) {
        WakeSource::Unknown | WakeSource::Before(..) => vec![Cell::Unknown, Cell::Empty],
        WakeSource::Idle => vec![Cell::Process { name: None, pid: None, tid: Some(0) }, Cell::Empty],
        WakeSource::Thread(id) => thread(whole, id),
    }
}

fn count(count: u64) -> Cell {
    Cell::Count(Bounded::exact(count))
}

fn duration(ns: u64) -> Cell {
    Cell::Duration(Bounded::exact(ns))
}
