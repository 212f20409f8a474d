//! Threads in the order of time, as they wander from CPU to CPU, and how parts of a trace come together.

use serde::{Deserialize, Serialize};

use super::Cpu;
use super::lane::{CpuSwitch, Fork};
use super::rows::{CpuThreadRow, EndedCpuLives, Small};
use super::sums::{CpuState, ThreadRun};
use crate::Wishes;
use crate::threads::{PartLives, Slot, ThreadId, ThreadKey};

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct CpuUsageState {
    /// By lane, then by CPU.
    pub(super) cpus: Vec<Vec<(u32, CpuState)>>,
    /// For each lane, the current run of each CPU.
    pub(super) running: Vec<Vec<RunningThread>>,
    pub(super) threads: PartLives<CpuThreadRow>,
    pub(super) over: EndedCpuLives,
}

/// The current run of a CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RunningThread {
    pub(super) cpu: u32,
    tid: i32,
    /// Which life of the thread.
    pub(super) since: i64,
    /// Index of the thread; 0 for a thread of another part.
    slot: Slot,
}

/// Entry of a CPU's current run; a new one if there is none.
#[inline]
fn place(cpus: &mut Vec<RunningThread>, cpu: u32) -> usize {
    cpus.iter().position(|known| known.cpu == cpu).unwrap_or_else(|| {
        cpus.push(RunningThread { cpu, tid: 0, since: 0, slot: 0 });
        cpus.len() - 1
    })
}

/// Which thread ran until a switch, and how long, if that was seen.
type Ran = Option<(i32, ThreadRun)>;

impl CpuUsageState {
    /// A CPU stops running a life, which may be over meanwhile.
    fn ran(&mut self, wishes: &Wishes, cpu: u32, id: ThreadId, run: ThreadRun) {
        let Some(row) = self.threads.life(id) else { return };
        row.ends_on(wishes.wants_cpu(Some(cpu)).then_some(run));
        self.threads.stopped(id, |id, row| self.over.take(wishes, id, row));
    }

    /// A CPU changes threads.
    #[inline]
    pub(super) fn switch(
        &mut self,
        wishes: &Wishes,
        (lane, host): (usize, u16),
        time: i64,
        (switch, ran): (&CpuSwitch, Ran),
    ) {
        let at = place(&mut self.running[lane], switch.cpu);
        let began = self.running[lane][at];
        let key = |tid: i32| ThreadKey { host, tid };
        if switch.prev != 0 {
            let is_same = ran.is_some() && began.tid == switch.prev;
            let slot = if is_same { began.slot } else { self.threads.slot(key(switch.prev)) };
            let began = is_same.then_some(ThreadId { key: key(began.tid), since: began.since });
            self.leaves(wishes, (slot, began), time, (switch, ran));
        }
        if let Some((tid, run)) = ran.filter(|(tid, _)| *tid != 0 && *tid != switch.prev) {
            self.ran(wishes, switch.cpu, ThreadId { key: key(tid), since: began.since }, run);
        }
        let (mut slot, mut since) = (0, time);
        if switch.next != 0 {
            slot = self.threads.slot(key(switch.next));
            let living = self.threads.living_in(slot, time);
            since = living.since;
            let row = &mut living.row;
            row.begins_on(switch.cpu, wishes.wants_cpu(Some(switch.cpu)));
            row.comm = switch.next_comm.or(row.comm);
            row.prio = switch.next_prio.or(row.prio);
        }
        self.running[lane][at] = RunningThread { cpu: switch.cpu, tid: switch.next, since, slot };
    }

    /// A thread leaves a CPU, which began to run `began`.
    #[inline]
    fn leaves(
        &mut self,
        wishes: &Wishes,
        (slot, began): (Slot, Option<ThreadId>),
        time: i64,
        (switch, ran): (&CpuSwitch, Ran),
    ) {
        let living = self.threads.living_in(slot, time);
        // The number may have been given away before the last switch of its old thread.
        let older = began.filter(|id| id.since != living.since);
        let row = match older {
            Some(id) => self.threads.life(id),
            None => Some(&mut living.row),
        };
        let is_wanted = wishes.wants_cpu(Some(switch.cpu));
        if let Some(row) = row {
            row.preemptions += u32::from(switch.is_preempted && is_wanted);
            row.pid = switch.prev_pid.or(row.pid);
            row.comm = switch.prev_comm.or(row.comm);
            if let Some((_, run)) = ran.filter(|(tid, _)| *tid == switch.prev) {
                row.ends_on(is_wanted.then_some(run));
            }
        }
        let over = |id, row| self.over.take(wishes, id, row);
        match older {
            Some(id) => self.threads.stopped(id, over),
            None if switch.is_dead => self.threads.end_in(slot, over),
            None => {}
        }
    }

    /// A thread is made.
    pub(super) fn fork(&mut self, wishes: &Wishes, host: u16, time: i64, fork: &Fork) {
        let Self { threads, over, .. } = self;
        if let Some((parent, pid)) = fork.parent.filter(|parent| parent.0 != 0) {
            threads.at(ThreadKey { host, tid: parent }, time).pid = Small::of(Some(pid));
        }
        if fork.child != 0 {
            let key = ThreadKey { host, tid: fork.child };
            let row = threads.begin(key, time, |id, row| over.take(wishes, id, row));
            (row.pid, row.comm) = (Small::of(fork.child_pid), fork.comm);
        }
    }
}

impl Cpu {
    /// Adds the part that follows.
    pub(super) fn merge_states(&self, left: &mut CpuUsageState, right: CpuUsageState) {
        for (lane, cpus) in right.cpus.into_iter().enumerate() {
            for (number, cpu) in cpus {
                self.merge_cpu(left, lane, number, cpu);
            }
        }
        for (lane, new) in right.running.into_iter().enumerate() {
            for now in new {
                let key = ThreadKey { host: self.lanes[lane].host, tid: now.tid };
                // A life that the part before knows is known since then.
                let is_first = right.threads.first(key) == Some(ThreadId { key, since: now.since });
                let since = left.threads.since(key).filter(|_| is_first).unwrap_or(now.since);
                let slot = if now.tid == 0 { 0 } else { left.threads.slot(key) };
                let at = place(&mut left.running[lane], now.cpu);
                left.running[lane][at] = RunningThread { since, slot, ..now };
            }
        }
        let CpuUsageState { threads, over, .. } = left;
        over.merge(right.over, |key| threads.lives_before(key, &right.threads));
        threads.merge(right.threads, |id, row| over.take(&self.wishes, id, row));
    }

    /// Adds the results of a CPU in the part that follows, and the run across the border.
    fn merge_cpu(&self, left: &mut CpuUsageState, lane: usize, number: u32, right: CpuState) {
        let facts = &self.lanes[lane];
        let Some((_, known)) = left.cpus[lane].iter_mut().find(|known| known.0 == number) else {
            left.cpus[lane].push((number, right));
            return;
        };
        let across = known
            .tail
            .zip(right.head)
            .map(|(tail, head)| (tail.1, known.ran(&self.bins, &facts.holes, tail, (head.time, head.prev))));
        known.sums.add(&right.sums);
        known.odd.extend(&right.odd);
        known.is_uncounted |= right.is_uncounted;
        known.head = known.head.or(right.head);
        known.tail = right.tail.or(known.tail);
        if let Some((tid, run)) = across.filter(|across| across.0 != 0) {
            let at = place(&mut left.running[lane], number);
            let since = left.running[lane][at].since;
            left.ran(&self.wishes, number, ThreadId { key: ThreadKey { host: facts.host, tid }, since }, run);
        }
    }
}
