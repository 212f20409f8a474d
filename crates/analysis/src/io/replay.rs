//! Replays acts whose order is certain: beside other merges where a state before is known, or by
//! themselves where none is.
//!
//! ```text
//! merge_later ──> ReadyActs ──run, on any thread──> ActResults ──end, in order──> files
//! condense    ──> ReadyActs ──replay_alone──────────────────────> rows, log without them
//! ```

use std::sync::{MutexGuard, PoisonError};

use super::apart::{ActResults, Apart, ApartBuffers, ThreadKnowledge};
use super::log::{FollowingActs, Logged, ReadyActs, Renumbered, SettledActs};
use super::pids::Pids;
use super::{Io, IoState, IoTotals, first_to_tell};
use crate::Later;
use crate::calls::{Bases, EventPosition};

/// Memory of acts that were replayed: pages that were written to once are there.
#[derive(Debug, Default)]
pub(super) struct ReplayBuffers {
    pub(super) logs: Vec<Vec<Logged>>,
    apart: Vec<ApartBuffers>,
}

/// Acts that are replayed while others merge.
struct Replay<'a> {
    io: &'a Io,
    waiting: ReadyActs,
    done: Option<ActResults>,
}

impl Later<IoState> for Replay<'_> {
    fn run(&mut self) {
        let (pids, memory) = (std::mem::take(&mut self.waiting.pids), self.io.room().apart.pop().unwrap_or_default());
        let mode = self.waiting.done_from().map_or(ThreadKnowledge::Whole, ThreadKnowledge::Again);
        let mut apart = Apart::new(&self.io.limits, &self.io.kept, pids, memory, mode);
        let log = self.waiting.hand_over(|logged, from| apart.act(logged, from));
        self.done = Some(apart.end());
        self.io.room().logs.push(log);
    }

    fn end(self: Box<Self>, state: &mut IoState) {
        let mut done = self.done.expect("what is given back was done");
        state.is_odd |= done.is_odd || self.waiting.is_torn;
        let IoState { totals, files: Some(files), .. } = state else { unreachable!("nothing comes before it") };
        files.follow(&self.io.limits, &mut totals.over, &mut done);
        self.io.room().apart.push(done.memory());
    }
}

impl Io {
    pub(super) fn room(&self) -> MutexGuard<'_, ReplayBuffers> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts that cannot change any more wait to be replayed, with the settled acts of a part that
    /// follows: lives there count from these numbers on. Or they are put aside, if the state before
    /// is unknown.
    pub(super) fn replay_later<'a>(
        &'a self,
        state: &mut IoState,
        (settled, numbers): (SettledActs, Renumbered),
    ) -> Option<Box<dyn Later<IoState> + 'a>> {
        let until = state.calls.settled_until(first_to_tell);
        let IoState { totals: IoTotals { log, .. }, files, pids, is_odd, .. } = state;
        let Some(files) = files else {
            *is_odd |= settled.is_done();
            log.unsettle(FollowingActs::new(settled, &numbers));
            log.settle(until);
            return None;
        };
        let pids = pids.get_or_insert_with(|| files.pids());
        let waiting = log.take(until, (settled, numbers), pids);
        Some(Box::new(Replay { io: self, waiting, done: None }))
    }

    /// Replays the settled acts of a part that knows nothing of the state before it, from where the
    /// last of its CPUs switched first. Acts before that are left over.
    pub(super) fn replay_alone(&self, state: &mut IoState, since: EventPosition) {
        let mut waiting = ReadyActs::alone(state.totals.log.take_settled());
        let memory = self.room().apart.pop().unwrap_or_default();
        let mut apart = Apart::new(&self.limits, &self.kept, Pids::default(), memory, ThreadKnowledge::Alone(since));
        let mut last = EventPosition { time: i64::MIN, lane: 0, nth: 0 };
        let room = waiting.hand_over(|logged, from| {
            last = logged.place;
            apart.act(logged, from);
        });
        let mut done = apart.end();
        state.totals.over.add(done.take_over(), &Bases::default());
        state.rows = std::mem::take(&mut done.rows);
        state.totals.log.done((since, last), done.acts(since), room);
        self.room().apart.push(done.memory());
    }
}
