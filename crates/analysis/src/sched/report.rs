//! The tables of `sched`.

use std::collections::BTreeMap;

use super::row::{Row, STATES, Start, Times};
use super::whole::{Lives, Waker, Whole};
use super::{Sched, State};
use crate::answer::{Answer, Bounded, Cell, Class, Column, Plot, Table};
use crate::statistics::{self, distribution_of, percentile_cells, percentile_columns};
use crate::threads::ThreadId;
use crate::{Histogram, Merge};

/// Rows of the longest wakeups where nobody says how many.
const TOP: usize = 10;

impl Sched {
    /// The answer so far.
    pub(super) fn report(&self, state: &State) -> Answer {
        let lives = self.lives(state);
        let mut all = Histogram::default();
        let priorities = lives.priorities();
        priorities.values().for_each(|priority| all.merge_from(&priority.latencies));
        let mut tables = vec![self.total(&lives, &all)];
        let wants = |name: &str| self.wishes.by.is_empty() || self.wishes.by.iter().any(|wanted| wanted == name);
        if wants("thread") {
            tables.push(self.per_thread(&lives));
        }
        if wants("priority") {
            tables.push(self.per_priority(&lives));
        }
        if wants("top") {
            tables.push(self.longest(&lives));
        }
        if wants("waker") {
            tables.push(self.wakers(&lives));
        }
        if wants("run") {
            tables.push(self.runs(&lives));
        }
        if wants("state") {
            tables.extend([self.states(&lives), self.blocked(&lives)]);
        }
        if !all.is_empty() {
            tables.push(statistics::distribution("Wakeup to run", &all, &self.wishes));
        }
        tables.extend(self.distributions(&lives, &all));
        tables.iter_mut().for_each(|table| table.span_ns = Some(lives.span));
        Answer { tables }
    }

    /// How many of the longest wakeups are shown.
    pub(super) fn top(&self) -> usize {
        self.wishes.top.unwrap_or(TOP)
    }

    pub(super) fn wants_cpu(&self, cpu: u32) -> bool {
        self.wishes.cpus.is_empty() || self.wishes.cpus.contains(&cpu)
    }

    /// Whether somebody wants to know of the wakeup.
    pub(super) fn wants(&self, thread: ThreadId, start: Start, ns: u64) -> bool {
        let wishes = &self.wishes;
        wishes.wants_duration(ns)
            && self.wants_cpu(start.cpu)
            && wishes.wants_thread(thread.key.tid, || start.comm.text())
    }

    fn wants_life(&self, life: &Whole<'_>) -> bool {
        self.wishes.wants_thread(life.id.key.tid, || life.row.name())
    }

    /// Lives that somebody wants to know of, those with the largest `size` first; those with none are left out.
    fn largest<'a>(&self, lives: &'a Lives<'_>, size: impl Fn(&Whole<'_>) -> u64) -> (Vec<&'a Whole<'a>>, u64) {
        let wanted = lives.lives.iter().filter(|life| size(life) > 0 && self.wants_life(life));
        self.shortened(wanted.map(|life| (std::cmp::Reverse(size(life)), life.id, life)).collect())
    }

    /// The first rows in order, and how many there are beyond.
    fn shortened<R: Ord, K: Ord, T>(&self, mut rows: Vec<(R, K, T)>) -> (Vec<T>, u64) {
        let kept = self.wishes.top.unwrap_or(rows.len()).min(rows.len());
        let order = |one: &(R, K, T), other: &(R, K, T)| (&one.0, &one.1).cmp(&(&other.0, &other.1));
        let omitted = rows.len() - kept;
        if omitted > 0 && kept > 0 {
            rows.select_nth_unstable_by(kept - 1, order);
        }
        rows.truncate(kept);
        rows.sort_by(order);
        (rows.into_iter().map(|row| row.2).collect(), omitted as u64)
    }

    fn total(&self, lives: &Lives<'_>, all: &Histogram) -> Table {
        let mut columns = statistics::columns();
        columns.extend(percentile_columns());
        columns.extend(other_columns());
        columns.push(Column::of("wrong_cpu", "Wrong CPU", "times"));
        let mut table = Table::new("total", "Wakeup to run, all threads", columns);
        let wanted = || lives.lives.iter().filter(|life| self.wants_life(life));
        let mut row = statistics::cells(all);
        row.extend(percentile_cells(all));
        row.push(count(wanted().filter(|life| life.never_ended).count() as u64));
        row.push(count(wanted().map(|life| life.row.lost_inside).sum()));
        row.push(count(wanted().map(|life| life.row.unseen).sum()));
        row.push(count(lives.wrong_cpu()));
        table.rows.push(row);
        table
    }

    fn per_thread(&self, lives: &Lives<'_>) -> Table {
        let mut columns = thread_columns();
        columns.extend(statistics::columns());
        columns.extend(percentile_columns());
        columns.extend(other_columns());
        let mut table = Table::new("per-thread", "Wakeup to run, by thread", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let size = |life: &Whole<'_>| {
            let others = life.row.lost_inside + life.row.unseen + u64::from(life.never_ended);
            total_ns(&life.row.latencies).saturating_add(u64::from(others + life.row.latencies.count() > 0))
        };
        let (rows, omitted) = self.largest(lives, size);
        table.omitted = omitted;
        for life in rows {
            let mut row = thread(life);
            row.extend(statistics::cells(&life.row.latencies));
            row.extend(percentile_cells(&life.row.latencies));
            row.extend([u64::from(life.never_ended), life.row.lost_inside, life.row.unseen].map(count));
            table.rows.push(row);
        }
        table
    }

    fn per_priority(&self, lives: &Lives<'_>) -> Table {
        let mut columns = vec![Column::of("priority", "Priority", "priority")];
        columns.extend(statistics::columns());
        columns.extend(percentile_columns());
        columns.push(Column::of("lost_inside", "In doubt", "times"));
        let mut table = Table::new("per-priority", "Wakeup to run, by priority", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        for (prio, priority) in lives.priorities() {
            let mut row = vec![prio.map_or(Cell::Empty, |prio| Cell::Integer(i64::from(prio)))];
            row.extend(statistics::cells(&priority.latencies));
            row.extend(percentile_cells(&priority.latencies));
            row.push(count(priority.lost_inside));
            table.rows.push(row);
        }
        table
    }

    fn longest(&self, lives: &Lives<'_>) -> Table {
        let mut columns = vec![
            Column::new("woken", "Woken", Class::Timestamp),
            Column::new("latency", "Wakeup to run", Class::Duration),
        ];
        columns.extend(thread_columns());
        columns.extend([
            Column::of("priority", "Priority", "priority"),
            Column::new("cpu", "CPU", Class::Cpu),
            Column::new("target", "Meant for", Class::Cpu),
            Column::new("waker", "Woken by", Class::Process),
            Column::of("waker_incarnation", "Life", "lives"),
        ]);
        let mut table = Table::new("top", "Longest wakeups", columns);
        table.plot = Some(Plot::Bars { value: 1 });
        for (latency_ns, wakeup) in lives.longest().sorted() {
            let waited = &wakeup.waited;
            let mut row = vec![Cell::Timestamp(waited.begin), duration(latency_ns)];
            let place = lives.place(wakeup.thread);
            row.extend(place.map_or_else(|| vec![Cell::Unknown, Cell::Empty], |place| thread(&lives.lives[place])));
            row.push(wakeup.start.prio.map_or(Cell::Empty, |prio| Cell::Integer(i64::from(prio))));
            row.push(Cell::Cpu(wakeup.start.cpu));
            row.push(waited.wait.target.map_or(Cell::Empty, Cell::Cpu));
            row.extend(waker(lives, lives.waker(waited.wait.waker)));
            table.rows.push(row);
        }
        table
    }

    fn wakers(&self, lives: &Lives<'_>) -> Table {
        let mut columns = vec![
            Column::new("waker", "Who", Class::Process),
            Column::of("waker_incarnation", "Life", "lives"),
            Column::new("thread", "Wakes", Class::Process),
            Column::of("incarnation", "Life", "lives"),
        ];
        columns.extend([Column::of("count", "Count", "times"), Column::new("total", "Wakeup to run", Class::Duration)]);
        let mut table = Table::new("wakers", "Who wakes whom", columns);
        table.plot = Some(Plot::Bars { value: 4 });
        let rows = lives.wakers().into_iter().filter(|(place, ..)| self.wants_life(&lives.lives[*place]));
        let rows = rows.map(|(place, who, times)| (std::cmp::Reverse(times.count), (place, who), (place, who, times)));
        let (rows, omitted) = self.shortened(rows.collect());
        table.omitted = omitted;
        for (place, who, times) in rows {
            let mut row = waker(lives, who);
            row.extend(thread(&lives.lives[place]));
            row.extend([count(times.count), duration(times.total_ns)]);
            table.rows.push(row);
        }
        table
    }

    fn runs(&self, lives: &Lives<'_>) -> Table {
        let mut columns = thread_columns();
        columns.extend(statistics::columns());
        columns.extend([
            Column::of("cut", "In doubt", "runs"),
            Column::of("preemptions", "Preemptions", "preemptions"),
            Column::of("migrations", "Migrations", "migrations"),
        ]);
        let mut table = Table::new("runs", "Runs", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let size = |life: &Whole<'_>| {
            let others = life.row.cut + life.row.preemptions + life.row.migrations;
            total_ns(&life.row.lengths).saturating_add(u64::from(others + life.row.lengths.count() > 0))
        };
        let (rows, omitted) = self.largest(lives, size);
        table.omitted = omitted;
        for life in rows {
            let mut row = thread(life);
            row.extend(statistics::cells(&life.row.lengths));
            row.extend([life.row.cut, life.row.preemptions, life.row.migrations].map(count));
            table.rows.push(row);
        }
        table
    }

    fn states(&self, lives: &Lives<'_>) -> Table {
        let mut columns = thread_columns();
        let titles = ["Running", "Preempted", "Waiting", "Blocked", "New", "Unknown"];
        let states = STATES.into_iter().zip(titles);
        columns.extend(states.map(|(name, title)| Column::new(name, title, Class::Duration)));
        let mut table = Table::new("states", "What threads do", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        // Whoever did anything comes before those who only were there.
        let size = |life: &Whole<'_>| {
            let [running, preempted, waiting, blocked, new, _] = life.row.times_ns;
            let all = running + preempted + waiting + blocked + new;
            (running + preempted + waiting).saturating_add(u64::from(all > 0))
        };
        let (rows, omitted) = self.largest(lives, size);
        table.omitted = omitted;
        for life in rows {
            let whole = life.row.times_ns.iter().sum();
            let mut row = thread(life);
            row.extend(life.row.times_ns.map(|ns| Cell::Duration(self.bounded(ns, whole))));
            table.rows.push(row);
        }
        table
    }

    fn blocked(&self, lives: &Lives<'_>) -> Table {
        let mut columns = thread_columns();
        columns.extend([
            Column::new("syscall", "In", Class::Syscall),
            Column::of("count", "Count", "times"),
            Column::new("total", "Blocked", Class::Duration),
        ]);
        let mut table = Table::new("blocked", "What threads wait for", columns);
        table.plot = Some(Plot::Bars { value: 4 });
        let mut rows = Vec::new();
        for life in lives.lives.iter().filter(|life| self.wants_life(life)) {
            let whole = life.row.times_ns.iter().sum();
            for (name, times) in calls(lives, &life.row) {
                rows.push((std::cmp::Reverse(times.total_ns), (life.id, name.clone()), (life, name, times, whole)));
            }
        }
        let (rows, omitted) = self.shortened(rows);
        table.omitted = omitted;
        for (life, name, times, whole) in rows {
            let mut row = thread(life);
            row.push(name.map_or(Cell::Empty, Cell::Syscall));
            row.push(Cell::Count(self.bounded(times.count, u64::MAX)));
            row.push(Cell::Duration(self.bounded(times.total_ns, whole)));
            table.rows.push(row);
        }
        table
    }

    /// Distributions of what somebody names explicitly: by thread, by priority.
    fn distributions(&self, lives: &Lives<'_>, all: &Histogram) -> Vec<Table> {
        let is_named = |name: &str| self.wishes.by.iter().any(|wanted| wanted == name);
        let mut tables = Vec::new();
        let mut add = |class: &'static str, title: String, values: &Histogram| {
            if !values.is_empty() {
                tables.push(distribution_of(class, title, (values, all), &self.wishes));
            }
        };
        if is_named("priority") {
            for (prio, priority) in lives.priorities() {
                let prio = prio.map_or_else(|| "unknown".to_owned(), |prio| prio.to_string());
                add("priority-distribution", format!("Wakeup to run, priority {prio}"), &priority.latencies);
            }
        }
        if is_named("thread") {
            for life in self.largest(lives, |life| total_ns(&life.row.latencies)).0 {
                let name = life.row.name().unwrap_or_default();
                let title = format!("Wakeup to run, {name} ({})", life.id.key.tid);
                add("thread-distribution", title, &life.row.latencies);
            }
        }
        tables
    }

    /// A number that holes may have made anything.
    fn bounded(&self, value: u64, high: u64) -> Bounded<u64> {
        if self.holes.is_empty() { Bounded::exact(value) } else { Bounded { value, low: 0, high } }
    }
}

fn thread_columns() -> Vec<Column> {
    vec![Column::new("thread", "Thread", Class::Process), Column::of("incarnation", "Life", "lives")]
}

fn other_columns() -> Vec<Column> {
    vec![
        Column::of("never_ended", "Never ended", "times"),
        Column::of("lost_inside", "In doubt", "times"),
        Column::of("unseen", "Unseen", "times"),
    ]
}

fn thread(life: &Whole<'_>) -> Vec<Cell> {
    let Whole { id, incarnation, row, .. } = life;
    let name = Cell::Process { name: row.name(), pid: row.pid.map(i64::from), tid: Some(i64::from(id.key.tid)) };
    vec![name, count(*incarnation)]
}

fn waker(lives: &Lives<'_>, waker: Waker) -> Vec<Cell> {
    match waker {
        Waker::Unknown => vec![Cell::Unknown, Cell::Empty],
        Waker::Idle => vec![Cell::Process { name: None, pid: None, tid: Some(0) }, Cell::Empty],
        Waker::Life(place) => thread(&lives.lives[place]),
    }
}

/// How long a life was blocked in which calls.
fn calls(lives: &Lives<'_>, row: &Row) -> BTreeMap<Option<String>, Times> {
    let mut calls: BTreeMap<Option<String>, Times> = BTreeMap::new();
    for (call, times) in &row.blocked {
        calls.entry(lives.call_name(*call)).or_default().add(*times);
    }
    calls
}

fn total_ns(values: &Histogram) -> u64 {
    u64::try_from(values.sum()).unwrap_or(u64::MAX)
}

fn count(count: u64) -> Cell {
    Cell::Count(Bounded::exact(count))
}

fn duration(ns: u64) -> Cell {
    Cell::Duration(Bounded::exact(ns))
}
