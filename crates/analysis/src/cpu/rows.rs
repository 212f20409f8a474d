//! The rows of threads: one life, and all those that are over.

use std::cmp::Reverse;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::sums::ThreadRun;
use crate::ranking::Ranking;
use crate::shares::{ThreadOwner, application};
use crate::threads::{LifeFacts, ThreadId, ThreadKey};
use crate::{Comm, Wishes};

/// A number, if there is one, in half the room of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Small(i32);

impl Small {
    /// No thread, process, priority or CPU is that.
    const NONE: i32 = i32::MIN;

    #[inline]
    pub(super) fn of(number: Option<i32>) -> Self {
        Self(number.unwrap_or(Self::NONE))
    }

    #[inline]
    fn of_cpu(cpu: u32) -> Self {
        Self(cpu.cast_signed())
    }

    #[inline]
    pub(super) fn get(self) -> Option<i32> {
        (self.0 != Self::NONE).then_some(self.0)
    }

    /// This number, or another one if there is none.
    #[inline]
    pub(super) fn or(self, other: Self) -> Self {
        if self.0 == Self::NONE { other } else { self }
    }

    /// Both are there, and differ.
    #[inline]
    fn differs(self, other: Self) -> bool {
        self != other && self.0 != Self::NONE && other.0 != Self::NONE
    }
}

impl Default for Small {
    fn default() -> Self {
        Self(Self::NONE)
    }
}

/// The row of a thread's life. Threads are wherever they are in memory, and are looked at for each
/// switch: half of the lines is half of the wait. No trace has four billion runs of one life.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CpuThreadRow {
    /// How many lives of the same number were before.
    pub(super) lives_before: u32,
    /// How many CPUs began to run it, less those that stopped.
    pub(super) running_on: i32,
    pub(super) comm: Comm,
    pub(super) run_ns: u64,
    /// Of that, in holes.
    pub(super) doubt_ns: u64,
    pub(super) runs: u32,
    pub(super) preemptions: u32,
    /// Among runs whose beginning was seen.
    pub(super) migrations: u32,
    pub(super) pid: Small,
    pub(super) prio: Small,
    /// Where the first of these was.
    pub(super) first_cpu: Small,
    pub(super) last_cpu: Small,
}

const _: () = assert!(size_of::<CpuThreadRow>() <= 72, "switches wait for these");

impl CpuThreadRow {
    /// It begins to run on a CPU, where runs are wanted or not.
    #[inline]
    pub(super) fn begins_on(&mut self, cpu: u32, is_wanted: bool) {
        let cpu = Small::of_cpu(cpu);
        self.runs += u32::from(is_wanted);
        self.running_on += 1;
        self.migrations += u32::from(self.last_cpu.differs(cpu));
        self.first_cpu = self.first_cpu.or(cpu);
        self.last_cpu = cpu;
    }

    /// A CPU stops running it; `run`: how long it ran, if that is wanted.
    #[inline]
    pub(super) fn ends_on(&mut self, run: Option<ThreadRun>) {
        let run = run.unwrap_or_default();
        self.run_ns += run.ns;
        self.doubt_ns += run.doubt_ns;
        self.running_on -= 1;
    }

    /// Forgets the counts, but not its identity, nor where it runs.
    pub(super) fn forget(&mut self) {
        let Self { lives_before, running_on, comm, pid, last_cpu, prio, .. } = *self;
        *self = Self { lives_before, running_on, comm, pid, last_cpu, prio, first_cpu: last_cpu, ..Self::default() };
    }

    /// Its first known fact is a run on a CPU without a visible switch to it.
    pub(super) fn was_on(&mut self, cpu: u32) {
        let cpu = Small::of_cpu(cpu);
        self.migrations += u32::from(self.first_cpu.differs(cpu));
        self.first_cpu = cpu;
    }
}

impl LifeFacts for CpuThreadRow {
    fn join(&mut self, later: Self) {
        self.comm = later.comm.or(self.comm);
        self.pid = later.pid.or(self.pid);
        self.run_ns += later.run_ns;
        self.doubt_ns += later.doubt_ns;
        self.runs += later.runs;
        self.preemptions += later.preemptions;
        self.migrations += later.migrations + u32::from(self.last_cpu.differs(later.first_cpu));
        self.first_cpu = self.first_cpu.or(later.first_cpu);
        self.last_cpu = later.last_cpu.or(self.last_cpu);
        self.prio = later.prio.or(self.prio);
        self.running_on += later.running_on;
    }

    fn is_running(&self) -> bool {
        self.running_on > 0
    }

    fn number(&mut self, lives_before: u32) {
        self.lives_before = lives_before;
    }
}

/// Lives that are over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndedCpuLives {
    /// Those that may be shown.
    pub(super) rows: Ranking<(ThreadId, CpuThreadRow)>,
    /// All of them, by machine and process.
    pub(super) processes: HashMap<(u16, ThreadOwner), CpuProcess>,
}

/// Lives of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CpuProcess {
    pub(super) threads: u64,
    pub(super) runs: u64,
    pub(super) run_ns: u64,
    pub(super) doubt_ns: u64,
    /// Its first thread's: since when that lived, and its name.
    pub(super) name: Option<(i64, Comm)>,
    /// That of its threads with the lowest number that has a name, its last life.
    lowest: Option<(Reverse<i32>, i64, Comm)>,
}

impl EndedCpuLives {
    pub(super) fn new(wishes: &Wishes) -> Self {
        Self { rows: Ranking::new(wishes.top), processes: HashMap::default() }
    }

    /// Takes a life that is over.
    pub(super) fn take(&mut self, wishes: &Wishes, id: ThreadId, row: CpuThreadRow) {
        let has_run = row.runs > 0 || row.run_ns > 0;
        if has_run || row.pid.get() == Some(id.key.tid) {
            let counts = has_run && wishes.wants_tid(id.key.tid);
            let owner = row.pid.get().map_or(ThreadOwner::Unknown(row.comm), ThreadOwner::Process);
            self.processes.entry((id.key.host, owner)).or_default().add(id, &row, counts);
        }
        if has_run && row.is_wanted(wishes, id) {
            self.rows.push(row.run_ns, || (id, row));
        }
    }

    /// Adds what follows; `lives_before` says how many lives of a thread were before.
    pub(super) fn merge(&mut self, right: Self, lives_before: impl Fn(ThreadKey) -> u32) {
        self.rows.merge_changed(right.rows, |(id, row)| row.lives_before += lives_before(id.key));
        for (key, process) in right.processes {
            self.processes.entry(key).or_default().join(&process);
        }
    }
}

impl CpuProcess {
    /// Adds a life, or only its name if it does not count.
    fn add(&mut self, id: ThreadId, row: &CpuThreadRow, counts: bool) {
        let named = (!row.comm.is_empty()).then_some((id.since, row.comm));
        let name = named.filter(|_| row.pid.get() == Some(id.key.tid));
        let lowest = named.map(|(since, comm)| (Reverse(id.key.tid), since, comm));
        self.join(&match counts {
            true => {
                let (runs, run_ns, doubt_ns) = (u64::from(row.runs), row.run_ns, row.doubt_ns);
                Self { threads: 1, runs, run_ns, doubt_ns, name, lowest }
            }
            false => Self { name, lowest, ..Self::default() },
        });
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.threads += other.threads;
        self.runs += other.runs;
        self.run_ns += other.run_ns;
        self.doubt_ns += other.doubt_ns;
        self.name = self.name.max(other.name);
        self.lowest = self.lowest.max(other.lowest);
    }

    pub(super) fn name(&self) -> Option<String> {
        self.name.and_then(|(_, comm)| comm.text())
    }

    /// The name of the program that it runs.
    pub(super) fn application(&self) -> Option<String> {
        application(self.name(), self.lowest.map(|(.., comm)| comm))
    }
}
