//! When nothing comes before a part, and every CPU has begun to record, lives are not open any more.
//!
//! ```text
//! CPU 0   ├─ 5 ─┤ switch                      5 ran on a CPU when that began: it stays open until the trace is over
//! CPU 1   ├──────── 6 ────────┤ switch        6 as well
//!                 7, 8 woken  ↑ 7 and 8, and each thread that is first seen after this, were there since the begin
//! ```
//!
//! Without this, every number that a trace names would be remembered until its end, where it does not say which threads are
//! made.

use super::Sched;
use super::doing::{CurrentCall, EndedWait};
use super::lives::{EarlierLives, LifeStage, Place};
use super::row::SchedRow;
use super::state::SchedState;
use crate::threads::Slot;

impl SchedState {
    /// Open lives were there when the trace began, if nothing can contradict that any more.
    pub(super) fn begin(&mut self, sched: &Sched) {
        let is_awaited =
            || sched.lanes.iter().zip(&self.running).any(|(lane, cpus)| lane.cpu.is_none() || cpus.is_empty());
        if !self.is_anchored || self.lives.begin.is_some() || is_awaited() {
            return;
        }
        let Some((begin, _)) = crate::setup::span_ns(&sched.lanes) else { return };
        self.lives.begin = Some(begin);
        for slot in 0..self.lives.threads.len() {
            let thread = self.lives.threads[slot];
            let is_known = thread.living.is_some_and(|at| !self.lives.at(at).is_open);
            if thread.ended == 0 && !is_known && !self.firsts.contains(&thread.key) {
                self.begin_thread(sched, slot as Slot, SchedRow::unknown(begin));
            }
        }
        for run in self.running.iter_mut().flatten().filter(|run| run.call == CurrentCall::BeforeRow) {
            if !self.lives.at(run.at).is_open {
                run.call = CurrentCall::None;
            }
        }
    }

    /// Open lives of a thread are there since the trace began; `begin` is the state of the first
    /// one then.
    pub(super) fn begin_thread(&mut self, sched: &Sched, slot: Slot, mut begin: SchedRow) {
        let thread = self.lives.threads[slot as usize];
        let (mut next, mut number) = (self.lives.first_of(&thread), 0);
        while let Some(at) = next {
            next = self.lives.next_of(&thread, at);
            let since = next.map_or(0, |at| self.lives.places[at as usize].id.since);
            let life = self.lives.at(at);
            let mut piece = std::mem::replace(&mut life.row, std::mem::replace(&mut begin, SchedRow::unknown(since)));
            piece.resolve(|call| if call == CurrentCall::BeforeRow { CurrentCall::None } else { call });
            let waited = life.row.join(piece);
            (life.is_open, life.number, life.next) = (false, number, None);
            self.begun(sched, at, waited, thread.opening);
            number += 1;
        }
        let thread = &mut self.lives.threads[slot as usize];
        thread.first = None;
        if thread.opening == EarlierLives::Open {
            thread.opening = EarlierLives::Died;
        }
    }

    /// A life is not open any more.
    fn begun(&mut self, sched: &Sched, at: Place, waited: Option<EndedWait>, opening: EarlierLives) {
        let life = self.lives.at(at);
        if let Some(waited) = waited {
            self.settled.count(sched, life.id, &mut life.row, waited);
        }
        if life.stage == LifeStage::Over {
            if let EarlierLives::Made(time) = opening {
                life.row.end(time, |begin, end| sched.is_whole(begin, end));
            }
            let slot = life.slot;
            self.lives.threads[slot as usize].ended += 1;
            self.stopped(sched, at);
        }
    }
}
