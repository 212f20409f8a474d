//! Runs as tables: all of them, or the states of CPUs and threads at an instant.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::{DOUBT, Entity, EntityKind, FLAGS, NUMBERED, ThreadState, cpu_track, thread_track};
use crate::headline::{Headline, HeadlineRow, HeadlineTables};
use crate::hosts::HostNames;
use crate::runs::{RunWriter, StateRun};
use crate::windows::Windows;
use crate::{Answer, Bounded, Cell, CellClass, Column, Comm, LaneFacts, SpoolError, Table, Wishes};

/// The texts of runs' numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunTexts {
    /// Calls by their number.
    pub calls: Vec<String>,
    /// Threads' names by their digest.
    pub names: HashMap<u64, Comm>,
    /// Interrupts' names by machine and number.
    pub irqs: BTreeMap<(u16, u64), String>,
    /// The texts of lanes.
    pub lanes: Vec<LaneText>,
}

/// The texts of a lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaneText {
    host: u16,
    host_name: Option<String>,
    cpu: Option<u32>,
    holes: Windows,
}

impl LaneText {
    pub(super) fn of(facts: &LaneFacts) -> Self {
        let LaneFacts { host, host_name, cpu, holes, .. } = facts.clone();
        Self { host, host_name, cpu, holes }
    }
}

impl RunTexts {
    fn call(&self, value: u64) -> Cell {
        let name = usize::try_from(value).ok().and_then(|place| self.calls.get(place)).cloned();
        let number = || ((value & NUMBERED) != 0).then(|| format!("#{}", value as u32));
        name.or_else(number).map_or(Cell::Unknown, Cell::Syscall)
    }

    fn name(&self, value: u64) -> Option<String> {
        self.names.get(&value).and_then(|name| name.text())
    }
}

/// All runs, in the order of their subjects, and of time.
pub(super) fn history(runs: &RunWriter, texts: &RunTexts) -> Result<Answer, SpoolError> {
    let columns = vec![
        Column::new("what", "What", CellClass::Text),
        Column::new("begin", "Begin", CellClass::Timestamp),
        Column::new("end", "End", CellClass::Timestamp),
        Column::new("value", "Value", CellClass::Mixed),
        Column::new("uncertain", "Uncertain", CellClass::Flag).rest(),
    ];
    let mut table = Table::new("history", "What CPUs and threads did", columns);
    let mut all = Vec::new();
    runs.each(|run| all.push(run))?;
    all.sort_unstable();
    for run in all {
        let Some((kind, host, number, track)) = Entity::of_key(run.key) else { continue };
        let (what, value) = described(texts, (kind, host, track), run.value & !FLAGS);
        let begin = if run.begin == i64::MIN { Cell::Unknown } else { Cell::Timestamp(run.begin) };
        let end = if run.end == i64::MAX { Cell::Empty } else { Cell::Timestamp(run.end) };
        let is_doubtful = Cell::Flag(run.value & DOUBT != 0);
        table.rows.push(vec![Cell::Text(format!("{what} of {number}")), begin, end, value, is_doubtful]);
    }
    Ok(Answer { tables: vec![table] })
}

fn described(texts: &RunTexts, (kind, host, track): (EntityKind, u16, usize), value: u64) -> (&'static str, Cell) {
    let number = Cell::Integer(i64::from((value as u32).cast_signed()));
    match (kind, track) {
        (EntityKind::Cpu, cpu_track::THREAD) => ("CPU: thread", number),
        (EntityKind::Cpu, track) => {
            let is_hard = track == cpu_track::IRQ;
            (if is_hard { "CPU: irq" } else { "CPU: softirq" }, irq(texts, host, is_hard, value))
        }
        (EntityKind::Thread, thread_track::STATE) => {
            let text = match ThreadState::of(value) {
                Some((ThreadState::Running, cpu)) => format!("running on {cpu}"),
                doing => doing.map_or("?", |doing| doing.0.name()).to_owned(),
            };
            ("thread: state", Cell::Text(text))
        }
        (EntityKind::Thread, thread_track::CALL) => ("thread: call", texts.call(value)),
        (EntityKind::Thread, thread_track::NAME) => {
            ("thread: name", texts.name(value).map_or(Cell::Unknown, Cell::Text))
        }
        (EntityKind::Thread, _) => ("thread: process", number),
    }
}

fn irq(texts: &RunTexts, host: u16, is_hard: bool, value: u64) -> Cell {
    let name = texts.irqs.get(&(host, value)).filter(|_| is_hard).cloned();
    Cell::Irq { is_hard, number: value.cast_signed(), name }
}

/// Since when and until when a run is, seen at an instant, and whether that is certain.
pub(crate) fn times(at: i64, run: &StateRun, is_doubtful: bool) -> [Cell; 4] {
    let is_known = run.begin != i64::MIN;
    let since = if is_known { Cell::Timestamp(run.begin) } else { Cell::Unknown };
    let length = if is_known { Cell::Duration(Bounded::exact(at.abs_diff(run.begin))) } else { Cell::Unknown };
    let until = if run.end == i64::MAX { Cell::Empty } else { Cell::Timestamp(run.end) };
    [since, length, until, Cell::Flag(is_doubtful)]
}

/// The states of CPUs and threads at an instant.
#[derive(Debug)]
pub struct InstantStates<'a> {
    /// When, in nanoseconds.
    pub at: i64,
    /// The texts of numbers.
    pub texts: &'a RunTexts,
    /// Which CPUs and threads are wanted, and how many.
    pub wishes: &'a Wishes,
}

/// Order of threads: by state, its begin, machine and number.
type Order = (ThreadState, i64, u16, i32);

/// Runs of a thing at an instant, by track.
type Now = [Option<StateRun>; 4];

impl InstantStates<'_> {
    /// The tables; `runs`: all those of the instant.
    #[must_use]
    pub fn answer(&self, runs: &[StateRun]) -> Answer {
        let (mut cpus, mut threads): (BTreeMap<_, Now>, BTreeMap<_, Now>) = Default::default();
        for lane in &self.texts.lanes {
            cpus.extend(lane.cpu.map(|cpu| ((lane.host, cpu.cast_signed()), Now::default())));
        }
        for run in runs {
            let Some((kind, host, number, track)) = Entity::of_key(run.key) else { continue };
            let things = if kind == EntityKind::Cpu { &mut cpus } else { &mut threads };
            // Where events were lost, a later run tells more than an earlier one without a visible
            // end.
            let known = &mut things.entry((host, number)).or_default()[track];
            if known.is_none_or(|known| (known.begin, known.end) < (run.begin, run.end)) {
                *known = Some(*run);
            }
        }
        let mut tables = vec![self.cpus(&cpus, &threads), self.threads(&threads, &cpus)];
        tables.iter_mut().for_each(|table| table.span_ns = Some((self.at, self.at)));
        Answer { tables }
    }

    /// How many CPUs run a thread, and which thread has run longest; of [`InstantStates::answer`].
    #[must_use]
    pub fn headline(answer: &Answer, is_lossy: bool) -> Headline {
        let tables = HeadlineTables::new(answer, is_lossy);
        let mut headline = Headline::default();
        let is_uncertain = |row: &HeadlineRow<'_>| matches!(row.cell("uncertain"), Cell::Flag(true));
        let (uncertain, certain): (Vec<_>, Vec<_>) = tables.rows("cpus").partition(is_uncertain);
        let all = uncertain.len() + certain.len();
        if all > 0 {
            let running = certain.iter().filter(|row| matches!(row.cell("thread"), Cell::Process { .. })).count();
            let verb = if running == 1 || all == 1 { "runs" } else { "run" };
            let noun = if all == 1 { "CPU" } else { "CPUs" };
            let others = match uncertain.len() {
                0 => String::new(),
                1 if running == 0 => ", and 1 may".to_owned(),
                1 => ", and 1 other may".to_owned(),
                several if running == 0 => format!(", and {several} may"),
                several => format!(", and {several} others may"),
            };
            headline.tell(&format!("{running} of {all} {noun} {verb} a thread{others}."));
        }
        if let Some(thread) = tables.first("threads").filter(|thread| thread.has("for")) {
            headline.say(&thread.in_doubt(is_uncertain(&thread)), "Thread {thread} is {state}, for {for}");
        }
        headline
    }

    fn wants_cpu(&self, cpu: u32) -> bool {
        self.wishes.cpus.is_empty() || self.wishes.cpus.contains(&cpu)
    }

    fn hosts(&self) -> HostNames {
        HostNames::of(self.texts.lanes.iter().map(|lane| (lane.host, lane.host_name.as_deref())))
    }

    fn columns(mut columns: Vec<Column>) -> Vec<Column> {
        columns.extend([
            Column::new("since", "Since", CellClass::Timestamp),
            Column::new("for", "For", CellClass::Duration),
            Column::new("until", "Until", CellClass::Timestamp).detail(),
            Column::new("uncertain", "Uncertain", CellClass::Flag).rest(),
        ]);
        columns
    }

    fn times(&self, run: &StateRun, is_doubtful: bool) -> [Cell; 4] {
        times(self.at, run, is_doubtful || run.value & DOUBT != 0)
    }

    /// Whether events of a machine, or of one of its CPUs, are missing in a run: then it may have been something else.
    fn is_cut(&self, host: u16, cpu: Option<u32>, run: &StateRun) -> bool {
        let is_of = |lane: &&LaneText| lane.host == host && (cpu.is_none() || lane.cpu.is_none() || lane.cpu == cpu);
        self.texts.lanes.iter().filter(is_of).any(|lane| lane.holes.touch(run.begin, run.end))
    }

    fn process(&self, tid: i32, thread: Option<&Now>) -> Cell {
        let track = |track: usize| Some(thread?[track]?.value & !FLAGS);
        let name = track(thread_track::NAME).and_then(|value| self.texts.name(value));
        let pid = track(thread_track::PROCESS).map(|pid| i64::from(pid as u32));
        Cell::Process { name, pid, tid: Some(i64::from(tid)) }
    }

    fn cpus(&self, cpus: &BTreeMap<(u16, i32), Now>, threads: &BTreeMap<(u16, i32), Now>) -> Table {
        let columns = Self::columns(vec![
            Column::new("cpu", "CPU", CellClass::Cpu),
            Column::new("thread", "Thread", CellClass::Process),
            Column::new("call", "Call", CellClass::Syscall),
            Column::new("irq", "Interrupt", CellClass::Irq),
            Column::new("softirq", "Softirq", CellClass::Irq).detail(),
        ]);
        let mut table = Table::new("cpus", "What CPUs do", columns);
        let mut hosts = Vec::new();
        for (&(host, cpu), now) in cpus {
            let number = cpu.cast_unsigned();
            if !self.wants_cpu(number) {
                continue;
            }
            let mut row = vec![Cell::Cpu(number)];
            let served = |track: usize| match now[track] {
                Some(run) => irq(self.texts, host, track == cpu_track::IRQ, run.value & !FLAGS),
                None => Cell::Empty,
            };
            let thread = now[cpu_track::THREAD].map(|run| (run, (run.value as u32).cast_signed()));
            row.extend(match thread {
                None => [Cell::Unknown, Cell::Unknown],
                Some((_, 0)) => [Cell::Text("idle".to_owned()), Cell::Empty],
                Some((_, tid)) => {
                    let thread = threads.get(&(host, tid));
                    let call = thread.and_then(|thread| thread[thread_track::CALL]);
                    [self.process(tid, thread), call.map_or(Cell::Empty, |run| self.texts.call(run.value & !FLAGS))]
                }
            });
            row.extend([served(cpu_track::IRQ), served(cpu_track::SOFTIRQ)]);
            row.extend(match thread {
                Some((run, _)) => self.times(&run, self.is_cut(host, Some(number), &run)),
                None => [Cell::Unknown, Cell::Unknown, Cell::Unknown, Cell::Flag(true)],
            });
            table.rows.push(row);
            hosts.push(host);
        }
        self.hosts().put(&mut table, hosts);
        table
    }

    fn threads(&self, threads: &BTreeMap<(u16, i32), Now>, cpus: &BTreeMap<(u16, i32), Now>) -> Table {
        let columns = Self::columns(vec![
            Column::new("thread", "Thread", CellClass::Process),
            Column::new("state", "State", CellClass::Text),
            Column::new("cpu", "CPU", CellClass::Cpu),
            Column::new("call", "Call", CellClass::Syscall),
        ]);
        let mut table = Table::new("threads", "What threads do", columns);
        let mut rows: Vec<_> = threads.iter().filter_map(|(id, now)| self.thread(*id, now, cpus)).collect();
        // Those that run, then those that could, and of each those that have done so for longest.
        rows.sort_by_key(|(order, _)| *order);
        let kept = self.wishes.top.unwrap_or(usize::MAX).min(rows.len());
        table.omitted = (rows.len() - kept) as u64;
        let hosts: Vec<u16> = rows.iter().take(kept).map(|((_, _, host, _), _)| *host).collect();
        table.rows = rows.into_iter().take(kept).map(|(_, row)| row).collect();
        self.hosts().put(&mut table, hosts);
        table
    }

    /// A thread's row, and where it comes.
    fn thread(
        &self,
        (host, tid): (u16, i32),
        now: &Now,
        cpus: &BTreeMap<(u16, i32), Now>,
    ) -> Option<(Order, Vec<Cell>)> {
        let state = now[thread_track::STATE]?;
        let (doing, cpu) = ThreadState::of(state.value)?;
        let name = || self.texts.name(now[thread_track::NAME]?.value & !FLAGS);
        let is_on = doing == ThreadState::Running;
        if !self.wishes.wants_thread(tid, name) || !(self.wishes.cpus.is_empty() || is_on && self.wants_cpu(cpu)) {
            return None;
        }
        let runs = cpus.get(&(host, cpu.cast_signed())).and_then(|now| now[cpu_track::THREAD]);
        let is_another = runs.is_some_and(|run| (run.value as u32).cast_signed() != tid);
        let is_doubtful = self.is_cut(host, None, &state) || is_on && is_another;
        let mut row = vec![self.process(tid, Some(now)), Cell::Text(doing.name().to_owned())];
        row.push(if is_on { Cell::Cpu(cpu) } else { Cell::Empty });
        row.push(now[thread_track::CALL].map_or(Cell::Empty, |run| self.texts.call(run.value & !FLAGS)));
        row.extend(self.times(&state, is_doubtful));
        Some(((doing, state.begin, host, tid), row))
    }
}
