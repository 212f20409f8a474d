//! The state behind a part of the trace, and the effect of each note on it.

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};

use super::Sched;
use super::doing::{Away, CpuWait, CurrentCall, Start, WakeSource};
use super::lane::{CpuHead, Rename, SchedCpuState, SchedSwitch, SchedThreadFacts, Wake};
use super::lives::{LifeStage, Place, SchedLives};
use super::settled::{EndedSchedLives, Name};
use crate::threads::Slot;
use crate::threads::ThreadKey;

/// The thread that a CPU runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CurrentThread {
    pub(super) cpu: u32,
    /// 0: none.
    pub(super) tid: i32,
    /// Its life, if there is a thread; it is kept until the run ends.
    pub(super) at: Place,
    /// The call that it was in when the run began, or was found to be in since.
    pub(super) call: CurrentCall,
}

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct SchedState {
    /// By lane, then by CPU.
    pub(super) cpus: Vec<Vec<SchedCpuState>>,
    /// By lane, then by CPU.
    pub(super) running: Vec<Vec<CurrentThread>>,
    pub(super) lives: SchedLives,
    pub(super) settled: EndedSchedLives,
    /// Nothing comes before.
    pub(super) is_anchored: bool,
    /// Threads that CPUs ran when they began to record.
    pub(super) firsts: HashSet<ThreadKey>,
    /// It was merged: the lives that a life has woken are not known any more.
    pub(super) is_merging: bool,
    /// There was a period before: the threads of CPUs that had not switched then will never be
    /// known.
    pub(super) is_later: bool,
    /// When the first and the last event were.
    pub(super) span: Option<(i64, i64)>,
}

impl SchedState {
    pub(super) fn new(sched: &Sched) -> Self {
        let lanes = sched.lanes.len();
        Self {
            cpus: vec![Vec::new(); lanes],
            running: vec![Vec::new(); lanes],
            lives: SchedLives::default(),
            settled: EndedSchedLives::new(sched),
            is_anchored: false,
            firsts: HashSet::default(),
            is_merging: false,
            is_later: false,
            span: None,
        }
    }

    #[inline]
    pub(super) fn running(&self, lane: usize, cpu: u32) -> Option<CurrentThread> {
        self.running[lane].iter().find(|running| running.cpu == cpu).copied()
    }

    pub(super) fn running_mut(&mut self, lane: usize, cpu: u32) -> Option<&mut CurrentThread> {
        self.running[lane].iter_mut().find(|running| running.cpu == cpu)
    }

    #[inline]
    pub(super) fn set_running(&mut self, lane: usize, running: CurrentThread) {
        match self.running_mut(lane, running.cpu) {
            Some(known) => *known = running,
            None => self.running[lane].push(running),
        }
    }

    /// First switches of CPUs.
    pub(super) fn heads(&self) -> impl Iterator<Item = (usize, u32, CpuHead)> {
        let cpus = self.cpus.iter().enumerate();
        let heads = cpus.flat_map(|(lane, cpus)| cpus.iter().filter_map(move |cpu| Some((lane, cpu.cpu, cpu.head?))));
        heads.filter(|_| !self.is_later)
    }

    /// The call that was seen in the first run of a CPU.
    pub(super) fn first_call(&self, lane: usize, cpu: u32) -> CurrentCall {
        let known = self.cpus[lane].iter().find(|known| known.cpu == cpu);
        known.map_or(CurrentCall::None, |known| known.seen.or(CurrentCall::None))
    }

    /// A call, if nothing before is known.
    pub(super) fn known_call(&self, call: CurrentCall) -> CurrentCall {
        match call {
            CurrentCall::BeforeRow => CurrentCall::None,
            CurrentCall::BeforeCpu(lane, cpu) => self.first_call(lane as usize, cpu),
            call => call,
        }
    }

    /// The thread of a CPU, from its run.
    pub(super) fn who(&self, lane: usize, cpu: u32, run: Option<CurrentThread>) -> WakeSource {
        match run {
            None => WakeSource::Before(lane as u32, cpu),
            Some(CurrentThread { tid: 0, .. }) => WakeSource::Idle,
            Some(run) => WakeSource::Thread(self.lives.places[run.at as usize].id),
        }
    }

    /// A life is over.
    pub(super) fn end(&mut self, sched: &Sched, at: Place) {
        if self.lives.end(at) {
            self.settle(sched, at);
        }
    }

    /// A number is that of a new thread: the life that had it is over.
    pub(super) fn give_away(&mut self, sched: &Sched, slot: Slot, time: i64) {
        let thread = &mut self.lives.threads[slot as usize];
        thread.close(time);
        let Some(at) = thread.living else { return };
        let life = self.lives.at(at);
        // The state of an open life before its first switch is known when it is joined.
        if !life.is_open || life.row.is_known() {
            life.row.end(time, |begin, end| sched.is_whole(begin, end));
        }
        self.end(sched, at);
    }

    /// A CPU stops running a life.
    pub(super) fn stopped(&mut self, sched: &Sched, at: Place) {
        if self.lives.at(at).is_complete() {
            self.settle(sched, at);
        }
    }

    /// Nothing will be said of a life any more.
    fn settle(&mut self, sched: &Sched, at: Place) {
        let is_awaited = self.settle_woken(sched, at);
        let life = &mut self.lives.places[at as usize];
        let name = Name { number: life.number, comm: life.row.comm(), pid: life.row.pid };
        let is_needed = self.settled.take(sched, life.id, &mut life.row) || is_awaited;
        self.settled.name(life.id, name, is_needed);
        self.lives.release(at);
    }

    /// A life that is over leaves the lists of the lives that it has woken: a thread that lives
    /// long may be woken by a million others. Returns whether the life may be asked for later.
    fn settle_woken(&mut self, sched: &Sched, at: Place) -> bool {
        let life = self.lives.at(at);
        // Only a thread that is over has its last name, by which it may be wanted.
        if self.is_merging || !sched.wishes.comms.is_empty() {
            return life.row.is_referred;
        }
        let (who, mut list) = (WakeSource::Thread(life.id), std::mem::take(&mut life.woken));
        let mut is_awaited = false;
        for woken in list.drain(..) {
            let life = self.lives.at(woken);
            if life.row.awaits_last(who) {
                is_awaited = true;
            } else {
                self.settled.forget(sched, life.id, &mut life.row, who);
            }
        }
        self.lives.at(at).woken = list;
        is_awaited
    }

    /// Forgets names that nothing refers to.
    #[inline]
    pub(super) fn tidy(&mut self) {
        if self.settled.is_crowded() {
            self.settled.sweep(self.lives.iter().flat_map(|life| life.row.who()));
        }
    }

    pub(super) fn switch(&mut self, sched: &Sched, lane: usize, time: i64, switch: &SchedSwitch) {
        let run = self.running(lane, switch.cpu);
        let ended = run.filter(|run| run.tid != 0);
        if let Some(run) = ended {
            self.lives.at(run.at).running_on -= 1;
        }
        let is_of_prev = switch.prev != 0 && self.leaves(sched, lane, time, switch, run);
        if let Some(run) = ended.filter(|_| !is_of_prev) {
            let row = &mut self.lives.at(run.at).row;
            if run.tid != switch.prev {
                row.lose(switch.cpu, time);
            }
            if let Some(ns) = switch.ran_ns.filter(|_| sched.wants_cpu(switch.cpu)) {
                row.ran(ns, switch.is_cut);
            }
            self.stopped(sched, run.at);
        }
        let mut running = CurrentThread { cpu: switch.cpu, tid: switch.next, at: 0, call: CurrentCall::None };
        if switch.next != 0 {
            running.at = self.lives.living(sched.key(lane, switch.next), time);
            let life = self.lives.at(running.at);
            life.running_on += 1;
            life.row.name_it(switch.next_comm, time);
            running.call = life.row.call;
            let start = Start { cpu: switch.cpu, prio: switch.next_prio, comm: switch.next_comm };
            if let Some(waited) = life.row.begin(time, start) {
                self.settled.count(sched, life.id, &mut life.row, waited);
            }
        }
        self.set_running(lane, running);
        if run.is_none() {
            self.firsts.insert(sched.key(lane, switch.prev));
            self.begin(sched);
        }
    }

    /// A thread leaves a CPU; whether the run that ends was its.
    fn leaves(
        &mut self,
        sched: &Sched,
        lane: usize,
        time: i64,
        switch: &SchedSwitch,
        run: Option<CurrentThread>,
    ) -> bool {
        let same = run.filter(|run| run.tid == switch.prev);
        let its = same.filter(|run| self.lives.at(run.at).stage == LifeStage::Living);
        let at = its.map_or_else(|| self.lives.living(sched.key(lane, switch.prev), time), |run| run.at);
        let is_first = run.is_none() && self.lives.is_first(sched.key(lane, switch.prev));
        if let Some(pid) = switch.prev_pid {
            self.lives.at(same.map_or(at, |run| run.at)).row.pid = Some(pid);
        }
        let life = self.lives.at(at);
        let row = &mut life.row;
        if switch.away == Away::Dead && row.is_unborn() {
            return false;
        }
        let call = match its {
            Some(run) => switch.seen.or(run.call),
            None if is_first => CurrentCall::BeforeCpu(lane as u32, switch.cpu),
            None => CurrentCall::None,
        };
        if let Some(ns) = switch.ran_ns.filter(|_| its.is_some() && sched.wants_cpu(switch.cpu)) {
            row.ran(ns, switch.is_cut);
        }
        if let Some(waited) = row.away(time, switch.away, call) {
            self.settled.count(sched, life.id, row, waited);
        }
        if switch.away == Away::Dead {
            self.end(sched, at);
        }
        its.is_some()
    }

    pub(super) fn rename(&mut self, lane: usize, time: i64, rename: &Rename) {
        if let Some(run) = self.running(lane, rename.cpu).filter(|run| run.tid != 0) {
            self.lives.at(run.at).row.name_it(rename.comm, time);
        }
    }

    pub(super) fn wake(&mut self, sched: &Sched, lane: usize, time: i64, wake: &Wake) {
        let run = self.running(lane, wake.cpu);
        let waker = self.who(lane, wake.cpu, run);
        let at = self.lives.living(sched.key(lane, wake.tid), time);
        let row = &mut self.lives.at(at).row;
        row.name_it(wake.comm, time);
        let wait = CpuWait { waker, target: wake.target, is_woken: wake.is_wakeup, is_last: false };
        let waits = row.wake(time, &wait);
        if let Some(run) = run.filter(|run| waits && run.tid != 0) {
            self.lives.wakes(run.at, at);
        }
    }

    pub(super) fn fork(&mut self, sched: &Sched, lane: usize, time: i64, named: &SchedThreadFacts) {
        let slot = self.lives.slot(sched.key(lane, named.tid));
        self.give_away(sched, slot, time);
        let at = self.lives.make(slot, time);
        let row = &mut self.lives.at(at).row;
        row.name_it(named.comm, time);
        row.pid = named.pid;
    }
}
