//! The tables of `threads`: the counts, with unknown shares put in.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{EventTally, NO_CPU, WhoseAnalysis, WhoseState};
use crate::LaneFacts;
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::count::{at_least, lost_count, lost_of};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::shares::{self, Amount, AmountShare, ShareProcess, ShareThreadRow, ThreadOwner};
use crate::statistics::leave;
use crate::threads::{ThreadId, ThreadKey};

/// Everything that is known.
struct WhoseTotals {
    shares: shares::ShareTotals<EventTally>,
    /// Events that name their process, but not their thread.
    of_processes: u64,
    /// Events that are lost, if that is known.
    lost: Option<u64>,
}

/// Processes that run the same program.
#[derive(Clone, Default)]
struct Application {
    processes: u64,
    threads: u64,
    share: AmountShare<EventTally>,
}

impl WhoseAnalysis {
    /// The answer so far.
    pub(super) fn report(&self, state: &WhoseState) -> Answer {
        let whole = self.whole(state);
        let by = &self.wishes.by;
        let wants = |name: &str| by.is_empty() || by.iter().any(|wanted| wanted == name);
        let mut tables = Vec::new();
        tables.extend(wants("thread").then(|| self.per_thread(&whole)));
        tables.extend(wants("process").then(|| self.per_process(&whole)));
        tables.extend(wants("application").then(|| self.per_application(&whole)));
        tables.extend(wants("cpu").then(|| self.per_cpu(state)));
        tables.push(self.total(state, &whole));
        let span_ns = crate::setup::span_ns(&self.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    /// The thread with most events.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        const MOST: [(&str, &str); 4] = [
            ("per-thread", "Thread {thread} has most events: {count}"),
            ("per-process", "Process {process} has most events: {count}"),
            ("per-application", "Application {application} has most events: {count}"),
            ("per-cpu", "CPU {cpu} has most events: {count}"),
        ];
        let mut headline = Headline::default();
        if let Some(total) = tables.first("total").filter(|total| !total.is_zero("count")) {
            headline.say(&total, total.there_are());
        }
        if let Some((row, sentence)) =
            MOST.iter().find_map(|(class, sentence)| Some((tables.most(class, "count")?, sentence)))
        {
            headline.say(
                &row,
                match row.is_known() {
                    true if row.is_idle() => "Idle CPUs have most events: {count}",
                    true => sentence,
                    false => "Most events are of unknown threads: {count}",
                },
            );
        }
        headline
    }

    fn whole(&self, state: &WhoseState) -> WhoseTotals {
        let shares::ShareTotals { mut threads, mut idle, unknown, .. } = state.shares.whole(&self.lanes, &self.wishes);
        for (&(host, tid), said) in &state.threads {
            if tid == 0 {
                idle.add(&AmountShare::certain(said.events));
                continue;
            }
            let id = ThreadId { key: ThreadKey { host, tid }, since: 0 };
            let row = ShareThreadRow::only(said.pid.map(|(_, pid)| pid), said.comm.1, said.events);
            threads.take(&self.wishes, id, row);
        }
        let mut of_processes = 0;
        for (&(host, pid), said) in state.processes.iter().filter(|(_, said)| !said.events.is_empty()) {
            of_processes += said.events.0;
            // None of them is an event of a chosen thread, as far as it says.
            if !self.wishes.tids.is_empty() {
                continue;
            }
            let process = ShareProcess::of_no_thread(said.events, said.comm.1);
            threads.processes.entry((host, ThreadOwner::Process(pid))).or_default().join(&process);
        }
        let lost = lost_of(self.lanes.iter().filter(|lane| self.wishes.wants_lane(lane)));
        WhoseTotals { shares: shares::ShareTotals::new(threads, idle, unknown), of_processes, lost }
    }

    fn per_thread(&self, whole: &WhoseTotals) -> Table {
        let columns = vec![
            Column::new("thread", "Thread", CellClass::Process),
            Column::of("incarnation", "Life", "lives").rest(),
            Column::of("count", "Count", "events"),
        ];
        let mut table = Table::new("per-thread", "Threads", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        let rows = whole.shares.threads.rows.sorted();
        let hosts: Vec<u16> = rows.iter().map(|(_, (id, _))| id.key.host).collect();
        table.omitted = whole.shares.threads.rows.count() - rows.len() as u64;
        for (_, (id, row)) in rows {
            let (pid, tid) = (row.pid.map(i64::from), Some(i64::from(id.key.tid)));
            let thread = Cell::Process { name: row.comm.text(), pid, tid };
            table.rows.push(vec![thread, number(row.lives_before.into()), whole.of_thread(&row.share)]);
        }
        if !whole.shares.idle.all.is_empty() && self.wishes.wants_thread(0, || None) {
            table.rows.push(vec![idle(Some(0)), number(0), whole.of_thread(&whole.shares.idle)]);
        }
        let unknown = whole.of_no_thread();
        if unknown > 0 {
            table.rows.push(vec![Cell::Unknown, Cell::Empty, number(unknown)]);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn per_process(&self, whole: &WhoseTotals) -> Table {
        let columns = vec![
            Column::new("process", "Process", CellClass::Process),
            Column::of("threads", "Threads", "threads").detail(),
            Column::of("count", "Count", "events"),
        ];
        let mut table = Table::new("per-process", "Processes", columns);
        table.plot = Some(Plot::Bars { value: 2 });
        let known = |(key, process): (&(u16, ThreadOwner), &ShareProcess<EventTally>)| {
            let pid = key.1.pid().filter(|_| !process.share.all.is_empty())?;
            self.wishes.wants_name(process.name().as_deref()).then(|| (key.0, pid, process.clone()))
        };
        let mut rows: Vec<(u16, i32, ShareProcess<EventTally>)> =
            whole.shares.threads.processes.iter().filter_map(known).collect();
        rows.sort_by_key(|(host, pid, process)| (Reverse(process.share.all), *host, *pid));
        table.omitted = leave(&mut rows, self.wishes.top);
        let hosts: Vec<u16> = rows.iter().map(|(host, ..)| *host).collect();
        for (_, pid, process) in rows {
            let cell = Cell::Process { name: process.name(), pid: Some(pid.into()), tid: None };
            table.rows.push(vec![cell, number(process.threads), whole.cell(&process.share)]);
        }
        if !whole.shares.idle.all.is_empty() && self.wishes.wants_thread(0, || None) {
            table.rows.push(vec![idle(None), number(0), whole.cell(&whole.shares.idle)]);
        }
        let (threads, unknown) = whole.shares.of_no_process();
        if !unknown.is_empty() {
            table.rows.push(vec![Cell::Unknown, number(threads), number(unknown.0)]);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn per_application(&self, whole: &WhoseTotals) -> Table {
        let columns = vec![
            Column::new("application", "Application", CellClass::Text),
            Column::of("processes", "Processes", "processes"),
            Column::of("threads", "Threads", "threads").detail(),
            Column::of("count", "Count", "events"),
        ];
        let mut table = Table::new("per-application", "Applications", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let mut found: BTreeMap<Option<String>, Application> = BTreeMap::new();
        for ((_, owner), process) in &whole.shares.threads.processes {
            if process.share.all.is_empty() {
                continue;
            }
            let application = found.entry(process.application()).or_default();
            application.processes += u64::from(owner.pid().is_some());
            application.threads += process.threads;
            application.share.add(&process.share);
        }
        let mut unknown = found.remove(&None).unwrap_or_default();
        unknown.share.all.add(&whole.shares.unknown);
        let mut rows: Vec<(Option<String>, Application)> = found.into_iter().collect();
        rows.retain(|(name, _)| self.wishes.wants_name(name.as_deref()));
        rows.sort_by(|one, other| other.1.share.all.cmp(&one.1.share.all).then_with(|| one.0.cmp(&other.0)));
        table.omitted = leave(&mut rows, self.wishes.top);
        let mut push = |name: Cell, Application { processes, threads, .. }: &Application, count: Cell| {
            table.rows.push(vec![name, number(*processes), number(*threads), count]);
        };
        for (name, application) in rows {
            push(name.map_or(Cell::Unknown, Cell::Text), &application, whole.cell(&application.share));
        }
        if !whole.shares.idle.all.is_empty() && self.wishes.wants_thread(0, || None) {
            push(Cell::Text("idle".to_owned()), &Application::default(), whole.cell(&whole.shares.idle));
        }
        if !unknown.share.all.is_empty() {
            push(Cell::Unknown, &unknown, number(unknown.share.all.0));
        }
        table
    }

    /// Behind the titles of numbers that are those of all threads where only some were chosen.
    fn of_all_threads(&self) -> &'static str {
        if self.wishes.tids.is_empty() && self.wishes.comms.is_empty() { "" } else { ", all threads" }
    }

    fn per_cpu(&self, state: &WhoseState) -> Table {
        let columns = vec![Column::new("cpu", "CPU", CellClass::Cpu), Column::of("count", "Count", "events")];
        let mut table = Table::new("per-cpu", format!("CPUs{}", self.of_all_threads()), columns);
        table.plot = Some(Plot::Bars { value: 1 });
        let mut cpus: BTreeMap<(u32, u16), (EventTally, Vec<&LaneFacts>)> = BTreeMap::new();
        for (facts, known) in self.lanes.iter().zip(&state.shares.cpus) {
            for (number, cpu) in known.iter().filter(|(_, cpu)| !cpu.sums.is_empty()) {
                let (events, lanes) = cpus.entry((*number, facts.host)).or_default();
                events.add(&cpu.sums);
                lanes.push(facts);
            }
        }
        let hosts: Vec<u16> = cpus.keys().map(|(_, host)| *host).collect();
        for ((number, _), (events, lanes)) in cpus {
            let cpu = if number == NO_CPU { Cell::Empty } else { Cell::Cpu(number) };
            table.rows.push(vec![cpu, Cell::Count(at_least(events.0, lost_of(lanes)))]);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn total(&self, state: &WhoseState, whole: &WhoseTotals) -> Table {
        let columns = vec![
            Column::of("count", "Count", "events"),
            Column::of("idle", "Of idle CPUs", "events"),
            Column::of("unknown", "Of unknown threads", "events").rest(),
            Column::of("lost", "Lost", "events"),
        ];
        let mut table = Table::new("total", format!("All events{}", self.of_all_threads()), columns);
        let count = state.shares.cpus.iter().flatten().map(|(_, cpu)| cpu.sums.0).sum();
        let count = Cell::Count(at_least(count, whole.lost));
        let unknown = number(whole.of_no_thread());
        table.rows.push(vec![count, whole.of_thread(&whole.shares.idle), unknown, Cell::Count(lost_count(whole.lost))]);
        table
    }
}

impl WhoseTotals {
    /// Events of unknown threads.
    fn of_no_thread(&self) -> u64 {
        self.shares.unknown.0 + self.of_processes
    }

    /// Events of a thread, which may also have some of those that say no more than a process.
    fn of_thread(&self, share: &AmountShare<EventTally>) -> Cell {
        self.bounded(share, self.of_processes)
    }

    /// Events of a thread with bounds: without its doubtful ones, or with the doubtful ones of
    /// others.
    fn cell(&self, share: &AmountShare<EventTally>) -> Cell {
        self.bounded(share, 0)
    }

    fn bounded(&self, share: &AmountShare<EventTally>, others: u64) -> Cell {
        let low = share.all.0 - share.doubt.0;
        let doubt = self.shares.doubt.0 + others;
        let high = self.lost.map_or(u64::MAX, |lost| low.saturating_add(doubt).saturating_add(lost));
        Cell::Count(Bounded { value: share.all.0, low, high })
    }
}

fn idle(tid: Option<i64>) -> Cell {
    Cell::Process { name: Some("idle".to_owned()), pid: Some(0), tid }
}

fn number(count: u64) -> Cell {
    Cell::Count(Bounded::exact(count))
}
