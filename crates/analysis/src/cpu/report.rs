//! The tables of `cpu`: the measurements, with unknown time put in.

use hashbrown::HashMap;

use super::rows::{CpuProcess, CpuThreadRow, EndedCpuLives};
use super::sums::{CpuState, ThreadRun};
use super::{Cpu, CpuUsageState};
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::count::at_least;
use crate::headline::{Headline, HeadlineRow, HeadlineTables};
use crate::hosts::HostNames;
use crate::statistics::leave;
use crate::threads::{ThreadId, ThreadKey};
use crate::windows::Windows;
use crate::{LaneFacts, Wishes};

/// A CPU, with its runs at the edges of the trace.
struct CpuRow {
    cpu: u32,
    host: u16,
    begin: i64,
    end: i64,
    /// Neither its packets nor its switches say when it begins and ends.
    is_timeless: bool,
    busy_ns: u64,
    idle_ns: u64,
    unknown_ns: u64,
    switches: u64,
    /// Busy time in holes.
    doubt_ns: u64,
    holes: Windows,
    lost: Option<u64>,
    course: Vec<u64>,
}

/// Everything that is known, by CPU and by thread.
struct CpuTotals {
    cpus: Vec<CpuRow>,
    threads: EndedCpuLives,
    /// Length of the union of all holes.
    holes_ns: u64,
    /// Sum of the lengths of all holes.
    all_holes_ns: u64,
    /// Events that are lost, if that is known.
    lost: Option<u64>,
    /// The same of all CPUs, also of those that are not wanted.
    lost_anywhere: Option<u64>,
    /// From the first begin to the last end of all CPUs; where packets have no times, of their switches.
    span_ns: Option<(i64, i64)>,
}

impl CpuRow {
    fn new(cpu: u32, facts: &LaneFacts, span: Option<(i64, i64)>) -> Self {
        let (begin, end) = span.unwrap_or((0, 0));
        Self {
            cpu,
            host: facts.host,
            begin,
            end,
            is_timeless: span.is_none(),
            busy_ns: 0,
            idle_ns: 0,
            unknown_ns: 0,
            switches: 0,
            doubt_ns: 0,
            holes: facts.holes.clone(),
            lost: facts.lost,
            course: Vec::new(),
        }
    }

    fn holes_ns(&self) -> u64 {
        self.holes.cover(self.begin, self.end)
    }
}

impl Cpu {
    /// The answer so far.
    pub(super) fn report(&self, state: &CpuUsageState) -> Answer {
        let whole = self.whole(state);
        let by = &self.wishes.by;
        let wants = |name: &str| by.is_empty() || by.iter().any(|wanted| wanted == name);
        let mut tables = Vec::new();
        tables.extend(wants("cpu").then(|| self.per_cpu(&whole)));
        tables.extend(wants("thread").then(|| self.per_thread(&whole)));
        tables.extend(wants("process").then(|| self.per_process(&whole)));
        tables.extend(wants("application").then(|| self.per_application(&whole)));
        tables.push(self.course(&whole));
        tables.iter_mut().for_each(|table| table.span_ns = whole.span_ns);
        Answer { tables }
    }

    /// The busiest CPU, and the thread that ran longest.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        let only = tables.first("per-cpu").filter(|_| tables.rows("per-cpu").nth(1).is_none());
        if tables.first("per-cpu").is_some() && tables.rows("per-cpu").all(|cpu| cpu.is_zero("busy")) {
            headline.tell("No CPU ran a thread.");
        } else if let Some(cpu) = only {
            headline.say(&cpu, "CPU {cpu} was busy {share} of the time");
        } else if let Some(cpu) = tables.greatest_by_bounds(&["per-cpu"], &["share"]) {
            headline.say(&cpu, "CPU {cpu} was busiest: {share} of the time");
        }
        if let Some(thread) = tables.most("per-thread", "run_time") {
            headline.say(
                &thread,
                match thread.is_known() {
                    true => "Thread {thread} ran longest: {run_time}, {share} of the time",
                    false => "Unknown threads ran longest: {run_time}, {share} of the time",
                },
            );
        } else if let Some(process) = tables.most("per-process", "run_time").filter(HeadlineRow::is_known) {
            headline.say(&process, "Process {process} ran longest: {run_time}");
        } else if let Some(application) = tables.most("per-application", "run_time").filter(HeadlineRow::is_known) {
            headline.say(&application, "Application {application} ran longest: {run_time}");
        }
        headline
    }

    fn whole(&self, state: &CpuUsageState) -> CpuTotals {
        let numbered = |(id, number, row): (ThreadId, u32, &CpuThreadRow)| {
            (id, CpuThreadRow { lives_before: number, ..row.clone() })
        };
        let mut threads: HashMap<ThreadId, CpuThreadRow> = state.threads.numbered().map(numbered).collect();
        let mut cpus = Vec::new();
        self.were_on(state, &mut threads);
        for (lane, known) in state.cpus.iter().enumerate() {
            let facts = &self.lanes[lane];
            if known.is_empty() {
                let mut row = CpuRow::new(facts.cpu.unwrap_or(lane as u32), facts, facts.span_ns);
                let span = (row.begin, row.end);
                row.unknown_ns = span.0.abs_diff(span.1);
                row.holes.add(span.0, span.1);
                cpus.push(row);
            }
            for (number, cpu) in known {
                cpus.push(self.edges(state, lane, *number, cpu, &mut threads));
            }
        }
        let mut over = state.over.clone();
        threads.into_iter().for_each(|(id, row)| over.take(&self.wishes, id, row));
        let lost_anywhere = sum_of_lost(&cpus);
        let span_ns = crate::setup::span_ns(&self.lanes).or_else(|| span_of(&cpus));
        cpus.retain(|cpu| self.wishes.wants_cpu(Some(cpu.cpu)));
        let mut union = Windows::default();
        for cpu in &cpus {
            cpu.holes.inside(cpu.begin, cpu.end).for_each(|(begin, end)| union.add(begin, end));
        }
        let lost = sum_of_lost(&cpus);
        let all_holes_ns = cpus.iter().map(CpuRow::holes_ns).sum();
        let holes_ns = union.cover(i64::MIN, i64::MAX);
        CpuTotals { cpus, threads: over, holes_ns, all_holes_ns, lost, lost_anywhere, span_ns }
    }

    /// Adds the migrations from runs before the first switches: their threads are known only at the
    /// end.
    fn were_on(&self, state: &CpuUsageState, threads: &mut HashMap<ThreadId, CpuThreadRow>) {
        let mut heads = Vec::new();
        for (known, facts) in state.cpus.iter().zip(&self.lanes) {
            for (cpu, head) in known.iter().filter_map(|(cpu, known)| Some((*cpu, known.head?))) {
                let begin = facts.span_ns.map_or(head.time, |span| span.0.min(head.time));
                heads.extend((head.prev != 0).then_some((begin, cpu, head_thread(state, facts.host, head.prev))));
            }
        }
        heads.sort_unstable();
        // The last one is next to the runs that were seen.
        for (_, cpu, id) in heads.into_iter().rev() {
            threads.entry(id).or_default().was_on(cpu);
        }
    }

    /// A CPU with its runs before the first switch and after the last one, which their threads get too.
    fn edges(
        &self,
        state: &CpuUsageState,
        lane: usize,
        number: u32,
        cpu: &CpuState,
        threads: &mut HashMap<ThreadId, CpuThreadRow>,
    ) -> CpuRow {
        let facts = &self.lanes[lane];
        let mut sums = cpu.sums.clone();
        let switches = cpu.head.map(|head| head.time).zip(cpu.tail.map(|tail| tail.0));
        let mut row = CpuRow::new(number, facts, facts.span_ns.or(switches));
        let span = (row.begin, row.end);
        row.holes.extend(&cpu.odd);
        let mut edge = |tid: i32, begin: i64, end: i64| -> Option<(ThreadKey, ThreadRun)> {
            let end = end.max(begin);
            // No switch names the thread at the other end.
            let is_doubtful = facts.holes.touch(begin, end);
            if is_doubtful {
                row.holes.add(begin, end);
            }
            let doubt = |begin: i64, end: i64| if is_doubtful { begin.abs_diff(end) } else { 0 };
            let run = sums.ran(&self.bins, tid, begin, end, doubt);
            (tid != 0).then_some((ThreadKey { host: facts.host, tid }, run))
        };
        let head = cpu.head.and_then(|head| edge(head.prev, span.0.min(head.time), head.time));
        let tail = cpu.tail.and_then(|(since, tid)| edge(tid, since, span.1));
        let is_wanted = self.wishes.wants_cpu(Some(number));
        if let Some((key, run)) = head.filter(|_| is_wanted) {
            let thread = threads.entry(head_thread(state, key.host, key.tid)).or_default();
            thread.runs += 1;
            thread.add(run);
        }
        if let Some((key, run)) = tail.filter(|_| is_wanted) {
            let since = state.running[lane]
                .iter()
                .find(|running| running.cpu == number)
                .map_or(i64::MIN, |running| running.since);
            threads.entry(ThreadId { key, since }).or_default().add(run);
        }
        (row.busy_ns, row.idle_ns, row.doubt_ns) = (sums.busy_ns, sums.idle_ns, sums.doubt_ns);
        (row.switches, row.course) = (sums.switches, sums.course);
        if cpu.is_uncounted {
            row.lost = None;
        }
        row
    }

    fn per_cpu(&self, whole: &CpuTotals) -> Table {
        let columns = vec![
            Column::new("cpu", "CPU", CellClass::Cpu),
            Column::new("begin", "Begin", CellClass::Timestamp).detail(),
            Column::new("end", "End", CellClass::Timestamp).detail(),
            Column::new("busy", "Busy", CellClass::Duration),
            Column::new("share", "Share", CellClass::Ratio),
            Column::new("idle", "Idle", CellClass::Duration).detail(),
            Column::new("unknown", "Unknown", CellClass::Duration).rest(),
            Column::of("switches", "Switches", "switches"),
        ];
        let mut table = Table::new("per-cpu", format!("CPUs{}", self.of_all_threads()), columns);
        table.plot = Some(Plot::Bars { value: 4 });
        let hosts: Vec<u16> = whole.cpus.iter().map(|cpu| cpu.host).collect();
        for cpu in &whole.cpus {
            let time = |time: i64| if cpu.is_timeless { Cell::Unknown } else { Cell::Timestamp(time) };
            let span = cpu.begin.abs_diff(cpu.end);
            let holes = cpu.holes_ns();
            let busy = if cpu.unknown_ns > 0 {
                Bounded { value: 0, low: 0, high: span }
            } else {
                let low = cpu.busy_ns.saturating_sub(cpu.doubt_ns);
                Bounded { value: cpu.busy_ns, low, high: (low + holes).min(span) }
            };
            let idle = if cpu.unknown_ns > 0 {
                busy
            } else {
                let low = cpu.idle_ns.saturating_sub(holes.saturating_sub(cpu.doubt_ns));
                Bounded { value: cpu.idle_ns, low, high: cpu.idle_ns + cpu.doubt_ns }
            };
            table.rows.push(vec![
                Cell::Cpu(cpu.cpu),
                time(cpu.begin),
                time(cpu.end),
                Cell::Duration(busy),
                Cell::Ratio(share(busy, span)),
                Cell::Duration(idle),
                Cell::Duration(Bounded::exact(cpu.unknown_ns)),
                Cell::Count(at_least(cpu.switches, cpu.lost)),
            ]);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn per_thread(&self, whole: &CpuTotals) -> Table {
        let columns = vec![
            Column::new("thread", "Thread", CellClass::Process),
            Column::of("incarnation", "Life", "lives").rest(),
            Column::new("run_time", "Run time", CellClass::Duration),
            Column::new("share", "Share", CellClass::Ratio),
            Column::of("runs", "Runs", "runs"),
            Column::of("migrations", "Migrations", "migrations").detail(),
            Column::of("preemptions", "Preemptions", "preemptions").detail(),
            Column::of("priority", "Priority", "priority").detail(),
        ];
        let mut table = Table::new("per-thread", "Threads", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let span = whole.length_ns();
        let rows = whole.threads.rows.sorted();
        let mut hosts = Vec::new();
        table.omitted = whole.threads.rows.count() - rows.len() as u64;
        for (_, (id, row)) in rows {
            let low = row.run_ns - row.doubt_ns;
            let run = Bounded { value: row.run_ns, low, high: low + whole.holes_ns };
            table.rows.push(vec![
                Cell::Process { name: row.name(), pid: row.pid.get().map(i64::from), tid: Some(i64::from(id.key.tid)) },
                Cell::Count(Bounded::exact(u64::from(row.lives_before))),
                Cell::Duration(run),
                // A thread runs on one CPU at a time, a process on several.
                Cell::Ratio(share(Bounded { high: run.high.min(span), ..run }, span)),
                Cell::Count(at_least(u64::from(row.runs), whole.lost)),
                Cell::Count(at_least(
                    u64::from(row.migrations),
                    whole.lost_anywhere.map(|lost| lost.saturating_mul(2)),
                )),
                Cell::Count(at_least(u64::from(row.preemptions), whole.lost)),
                row.prio.get().map_or(Cell::Empty, |prio| Cell::Integer(i64::from(prio))),
            ]);
            hosts.push(id.key.host);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn per_process(&self, whole: &CpuTotals) -> Table {
        let columns = vec![
            Column::new("process", "Process", CellClass::Process),
            Column::of("threads", "Threads", "threads").detail(),
            Column::new("run_time", "Run time", CellClass::Duration),
            Column::new("share", "Share", CellClass::Ratio),
            Column::of("runs", "Runs", "runs"),
        ];
        let mut table = Table::new("per-process", "Processes", columns);
        table.plot = Some(Plot::Bars { value: 3 });
        let mut found: HashMap<(u16, Option<i32>), CpuProcess> = HashMap::new();
        for ((host, owner), process) in &whole.threads.processes {
            found.entry((*host, owner.pid())).or_default().join(process);
        }
        let mut rows: Vec<((u16, Option<i32>), CpuProcess)> = found.into_iter().collect();
        rows.retain(|((_, pid), process)| {
            let name = process.name().filter(|_| pid.is_some());
            process.threads > 0 && self.wishes.wants_name(name.as_deref())
        });
        rows.sort_by(|one, other| other.1.run_ns.cmp(&one.1.run_ns).then(one.0.cmp(&other.0)));
        table.omitted = leave(&mut rows, self.wishes.top);
        let hosts: Vec<u16> = rows.iter().map(|((host, _), _)| *host).collect();
        for ((_, pid), process) in rows {
            let name = match pid {
                Some(pid) => Cell::Process { name: process.name(), pid: Some(i64::from(pid)), tid: None },
                None => Cell::Unknown,
            };
            let [threads, run, share, runs] = self.process_cells(whole, &process);
            table.rows.push(vec![name, threads, run, share, runs]);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }

    fn per_application(&self, whole: &CpuTotals) -> Table {
        let columns = vec![
            Column::new("application", "Application", CellClass::Text),
            Column::of("processes", "Processes", "processes").detail(),
            Column::of("threads", "Threads", "threads").detail(),
            Column::new("run_time", "Run time", CellClass::Duration),
            Column::new("share", "Share", CellClass::Ratio),
            Column::of("runs", "Runs", "runs"),
        ];
        let mut table = Table::new("per-application", "Applications", columns);
        table.plot = Some(Plot::Bars { value: 4 });
        let mut found: HashMap<Option<String>, (u64, CpuProcess)> = HashMap::new();
        for ((_, owner), process) in whole.threads.processes.iter().filter(|(_, process)| process.threads > 0) {
            let (processes, all) = found.entry(process.application()).or_default();
            *processes += u64::from(owner.pid().is_some());
            all.join(process);
        }
        let mut rows: Vec<(Option<String>, (u64, CpuProcess))> = found.into_iter().collect();
        rows.retain(|(name, _)| self.wishes.wants_name(name.as_deref()));
        rows.sort_by(|one, other| other.1.1.run_ns.cmp(&one.1.1.run_ns).then_with(|| one.0.cmp(&other.0)));
        table.omitted = leave(&mut rows, self.wishes.top);
        for (name, (processes, all)) in rows {
            let [threads, run, share, runs] = self.process_cells(whole, &all);
            let name = name.map_or(Cell::Unknown, Cell::Text);
            table.rows.push(vec![name, Cell::Count(Bounded::exact(processes)), threads, run, share, runs]);
        }
        table
    }

    /// Threads, run time, its share and runs of one or several processes.
    fn process_cells(&self, whole: &CpuTotals, process: &CpuProcess) -> [Cell; 4] {
        let span = whole.length_ns();
        let low = process.run_ns - process.doubt_ns;
        // Where the number of CPUs is unknown, each thread may have run all the time.
        let high = if self.mixes_cpus() { span.saturating_mul(process.threads) } else { low + whole.all_holes_ns };
        let run = Bounded { value: process.run_ns, low, high: high.max(process.run_ns) };
        [
            Cell::Count(Bounded::exact(process.threads)),
            Cell::Duration(run),
            Cell::Ratio(share(run, span)),
            Cell::Count(at_least(process.runs, whole.lost)),
        ]
    }

    /// How busy all CPUs were over time.
    fn course(&self, whole: &CpuTotals) -> Table {
        let columns =
            vec![Column::new("time", "Time", CellClass::TimeRange), Column::new("busy", "Busy", CellClass::Ratio)];
        // Where events name their CPUs, others than those with a switch are not known.
        let knows_all = self.lanes.iter().all(|lane| lane.cpu.is_some() || lane.names_no_cpu);
        let cpus = match self.wishes.cpus.is_empty() {
            true if knows_all => "all CPUs",
            true => "CPUs that changed threads",
            false => "chosen CPUs",
        };
        let mut table = Table::new("course", format!("Busy over time, {cpus}{}", self.of_all_threads()), columns);
        table.plot = Some(Plot::Course { time: 0, series: None, value: 1 });
        let Some((_, end)) = crate::setup::span_ns(&self.lanes).filter(|_| !whole.cpus.is_empty()) else {
            return table;
        };
        for bin in 0..self.bins.count {
            let from = self.bins.begin.saturating_add_unsigned(bin as u64 * self.bins.width);
            let to = from.saturating_add_unsigned(self.bins.width).min(end);
            let busy: u64 = whole.cpus.iter().filter_map(|cpu| cpu.course.get(bin)).sum();
            let there: u64 = whole.cpus.iter().map(|cpu| overlap((cpu.begin, cpu.end), (from, to))).sum();
            let ratio = if there == 0 { 0.0 } else { busy as f64 / there as f64 };
            let ratio = match self.mixes_cpus() {
                true => Bounded { value: ratio, low: 0.0, high: 1.0 },
                false => Bounded::exact(ratio),
            };
            table.rows.push(vec![Cell::TimeRange(Some(from), Some(to)), Cell::Ratio(ratio)]);
        }
        table
    }

    /// Behind the titles of numbers that are those of all threads where only some were chosen.
    fn of_all_threads(&self) -> &'static str {
        if self.wishes.tids.is_empty() && self.wishes.comms.is_empty() { "" } else { ", all threads" }
    }

    /// Whether events of several CPUs cannot be told apart.
    fn mixes_cpus(&self) -> bool {
        self.lanes.iter().any(|lane| lane.mixes_cpus)
    }
}

impl CpuTotals {
    /// Nanoseconds of the trace.
    fn length_ns(&self) -> u64 {
        self.span_ns.map_or(0, |(begin, end)| begin.abs_diff(end))
    }
}

/// From the first begin to the last end of CPUs of which these are known.
fn span_of(cpus: &[CpuRow]) -> Option<(i64, i64)> {
    let known = || cpus.iter().filter(|cpu| cpu.begin < cpu.end);
    Some((known().map(|cpu| cpu.begin).min()?, known().map(|cpu| cpu.end).max()?))
}

/// Lost events of CPUs; `None`: that is unknown of one of them.
fn sum_of_lost(cpus: &[CpuRow]) -> Option<u64> {
    cpus.iter().try_fold(0_u64, |sum, cpu| Some(sum.saturating_add(cpu.lost?)))
}

/// The life of a thread that ran when the trace began.
fn head_thread(state: &CpuUsageState, host: u16, tid: i32) -> ThreadId {
    let key = ThreadKey { host, tid };
    state.threads.first(key).unwrap_or(ThreadId { key, since: i64::MIN })
}

impl CpuThreadRow {
    fn name(&self) -> Option<String> {
        self.comm.text()
    }

    fn add(&mut self, run: ThreadRun) {
        self.run_ns += run.ns;
        self.doubt_ns += run.doubt_ns;
    }

    /// Whether the answer includes it.
    pub(super) fn is_wanted(&self, wishes: &Wishes, id: ThreadId) -> bool {
        wishes.wants_duration(self.run_ns) && wishes.wants_thread(id.key.tid, || self.name())
    }
}

fn share(part: Bounded<u64>, whole: u64) -> Bounded<f64> {
    let of = |part: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    Bounded { value: of(part.value), low: of(part.low), high: of(part.high).max(of(part.low)) }
}

fn overlap(one: (i64, i64), other: (i64, i64)) -> u64 {
    let (begin, end) = (one.0.max(other.0), one.1.min(other.1));
    if begin < end { begin.abs_diff(end) } else { 0 }
}
