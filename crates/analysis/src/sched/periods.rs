//! Between two periods: the counts are forgotten, the states of threads go on.
//!
//! ```text
//! period 0                │ period 1                     thread 7 waits since 10 and runs at 30
//!      10 ├── waiting ────┼─────────┤ 30                 waiting: 10 ns in period 0, 10 ns in period 1
//!                        20         └ latency 20         wakeups: none in period 0, one of 20 ns in period 1
//! ```
//!
//! The states of threads before a period began are known, or will never be: no life is open any
//! more. A CPU that has not switched yet tells in a later period which thread it runs; there it has
//! run that thread since the period began.

use hashbrown::HashMap;

use super::Sched;
use super::doing::WakeSource;
use super::lane::{CpuTail, RunCalls, SchedCpuState};
use super::lives::{EarlierLives, SchedLives, ThreadLives};
use super::merging::is_before;
use super::settled::{EndedSchedLives, Name};
use super::state::{CurrentThread, SchedState};
use super::whole::FirstRun;
use crate::threads::Slot;
use crate::threads::{ThreadId, ThreadKey};

impl Sched {
    /// A period ends, and another one begins.
    pub(super) fn forget_period(&self, state: &mut SchedState, at: i64) {
        self.close_lives(state);
        let SchedState { lives, settled, .. } = state;
        lives.places.iter_mut().for_each(|life| life.row.forget(at));
        let names = std::mem::take(&mut settled.names);
        *settled = EndedSchedLives::new(self);
        settled.names = names;
        settled.sweep(lives.iter().flat_map(|life| life.row.who()));
        lives.begin = Some(at);
        for thread in &mut lives.threads {
            if let EarlierLives::Open | EarlierLives::Since(_) = thread.opening {
                thread.opening = EarlierLives::Since(at);
            }
        }
        for cpu in state.cpus.iter_mut().flatten() {
            // Events of a run without a visible begin are kept until its thread is known.
            let seen = if cpu.tail.is_none() { cpu.seen } else { RunCalls::Nothing };
            *cpu = SchedCpuState { head: None, seen, ..*cpu };
        }
        state.firsts.clear();
        state.is_later = true;
    }

    /// Nothing will be known of the time before: open lives keep the identity that they are shown
    /// with.
    fn close_lives(&self, state: &mut SchedState) {
        let firsts = self.firsts(state);
        self.close_rows(state);
        let (begin, _) = crate::setup::span_ns(&self.lanes).or(state.span).unwrap_or((0, 0));
        let opened: HashMap<ThreadKey, u32> = state.lives.opened(&firsts);
        state.count_before(&opened);
        for slot in 0..state.lives.threads.len() {
            let thread = state.lives.threads[slot];
            if !opened.contains_key(&thread.key) {
                continue;
            }
            let runs = firsts.get(&thread.key).map_or(&[][..], Vec::as_slice);
            let first = state.lives.first_of(&thread);
            let row = self.first_row(first.map(|at| &state.lives.places[at as usize]), runs, begin);
            if first.is_some() {
                state.begin_thread(self, slot as Slot, row);
            } else {
                // Nothing is known of it but that it ran.
                let name = Name { number: 0, comm: row.comm(), pid: None };
                state.settled.name(ThreadId { key: thread.key, since: i64::MIN }, name, true);
                state.lives.threads[slot].ended += 1;
            }
        }
    }

    /// The first switch of a CPU names the thread and the call that it had before.
    fn close_rows(&self, state: &mut SchedState) {
        let cpus: Vec<WakeSource> = state.lives.iter().flat_map(|life| life.row.who()).collect();
        let is_before = |who: &WakeSource| matches!(who, WakeSource::Before(..));
        let known: Vec<(WakeSource, WakeSource)> =
            cpus.into_iter().filter(is_before).map(|who| (who, self.identified(state, who))).collect();
        for place in 0..state.lives.places.len() {
            let mut row = std::mem::take(&mut state.lives.places[place].row);
            row.identify(|who| known.iter().find(|known| known.0 == who).map_or(who, |known| known.1));
            row.resolve(|call| state.known_call(call));
            state.lives.places[place].row = row;
        }
        let mut running = std::mem::take(&mut state.running);
        running.iter_mut().flatten().for_each(|run| run.call = state.known_call(run.call));
        state.running = running;
    }

    /// CPUs that switch for the first time in a later period: since its begin, they ran the thread
    /// that this switch names.
    pub(super) fn begin_cpus(&self, left: &mut SchedState, right: &SchedState) {
        let is_new = |(lane, cpu, _): &(usize, u32, _)| left.running(*lane, *cpu).is_none();
        let begin = |lane: usize, time: i64| self.lanes[lane].span_ns.map_or(time, |span| span.0.min(time));
        let mut firsts: Vec<_> = right.heads().filter(is_new).collect();
        firsts.sort_by_key(|(lane, cpu, head)| (begin(*lane, head.time), *cpu));
        for (lane, cpu, head) in firsts {
            let (time, tid) = (begin(lane, head.time), head.prev);
            let mut running = CurrentThread { cpu, tid, at: 0, call: left.first_call(lane, cpu) };
            if tid != 0 {
                let key = self.key(lane, tid);
                running.at = left.lives.living(key, time);
                let life = left.lives.at(running.at);
                life.running_on += 1;
                if is_before(&right.lives, key, time) {
                    life.row.was_on(cpu, time);
                }
                life.row.name_it(head.comm, head.time);
            }
            left.set_running(lane, running);
            let tail = Some(CpuTail { time, next: tid, comm: head.comm, is_assumed: true });
            match left.cpus[lane].iter_mut().find(|known| known.cpu == cpu) {
                Some(known) => known.tail = tail,
                None => left.cpus[lane].push(SchedCpuState { cpu, tail, ..SchedCpuState::default() }),
            }
        }
    }
}

impl SchedLives {
    /// How many lives of threads are open, where there are any; those that nothing is known of but that they ran too.
    fn opened(&self, firsts: &HashMap<ThreadKey, Vec<FirstRun>>) -> HashMap<ThreadKey, u32> {
        let count = |thread: &ThreadLives| {
            let open = std::iter::successors(self.first_of(thread), |at| self.next_of(thread, *at));
            (open.count() as u32).max(u32::from(firsts.contains_key(&thread.key)))
        };
        let opened = self.threads.iter().map(|thread| (thread.key, count(thread)));
        opened.filter(|(_, count)| *count > 0).collect()
    }
}

impl SchedState {
    /// So many lives of threads turn out to be before those that were seen to begin.
    fn count_before(&mut self, opened: &HashMap<ThreadKey, u32>) {
        let before = |key: &ThreadKey| opened.get(key).copied().unwrap_or(0);
        for life in self.lives.places.iter_mut().filter(|life| life.is_known()) {
            life.number += before(&life.id.key);
        }
        for (id, name) in &mut self.settled.names {
            name.iter_mut().for_each(|name| name.number += before(&id.key));
        }
    }
}
