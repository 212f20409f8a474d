//! The whole state when the trace is over: lives that are not over end, those with an unseen begin
//! get one.
//!
//! ```text
//! tid 7   open, open, known, known ──> life 0: unknown ... dead    life 1: new ... until the end
//! ```
//!
//! Open lives begin with the thread that their CPU ran when it began to record, or unknown.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::Sched;
use super::doing::WakeSource;
use super::lane::CpuHead;
use super::lives::{EarlierLives, Place, SchedLife, ThreadLives};
use super::row::SchedRow;
use super::settled::{EndedSchedLives, Name};
use super::state::SchedState;
use super::wakeups::Priority;
use crate::Merge;
use crate::threads::{ThreadId, ThreadKey};

/// Everything that is known.
pub(super) struct SchedTotals<'a> {
    sched: &'a Sched,
    pub(super) state: &'a SchedState,
    /// Lives that end with the trace, and those that began before it.
    pub(super) last: EndedSchedLives,
    /// How many lives of a thread began before the trace, where there is one.
    open: HashMap<ThreadKey, u32>,
    /// From when to when the trace is.
    pub(super) span: (i64, i64),
}

/// The run that a CPU was in when it began to record.
pub(super) struct FirstRun {
    begin: i64,
    cpu: u32,
    pub(super) head: CpuHead,
}

impl Sched {
    pub(super) fn whole<'a>(&'a self, state: &'a SchedState) -> SchedTotals<'a> {
        let span = crate::setup::span_ns(&self.lanes).or(state.span).unwrap_or((0, 0));
        let mut whole =
            SchedTotals { sched: self, state, last: EndedSchedLives::new(self), open: HashMap::default(), span };
        let mut cut: HashMap<Place, u64> = HashMap::default();
        for run in state.running.iter().flatten().filter(|run| run.tid != 0 && self.wants_cpu(run.cpu)) {
            *cut.entry(run.at).or_default() += 1;
        }
        let cut = |at: Place| cut.get(&at).copied().unwrap_or(0);
        let mut firsts = self.firsts(state);
        for thread in &state.lives.threads {
            whole.begin(thread, &firsts.remove(&thread.key).unwrap_or_default(), cut);
        }
        for (at, life) in state.lives.places.iter().enumerate().filter(|(_, life)| life.is_known()) {
            let mut row = life.row.clone();
            row.cut += cut(at as Place);
            whole.end(life.id, life.number + whole.before(life.id.key), row, span.1);
        }
        for (id, wakers) in &state.settled.unknown {
            let mut wakers = wakers.clone();
            wakers.rekey(|who| whole.identified(who));
            whole.last.take_wakers(*id, &wakers);
        }
        whole
    }

    /// Runs that CPUs were in when they began to record, by thread, the earliest first.
    pub(super) fn firsts(&self, state: &SchedState) -> HashMap<ThreadKey, Vec<FirstRun>> {
        let mut firsts: HashMap<ThreadKey, Vec<FirstRun>> = HashMap::default();
        for (lane, cpu, head) in state.heads().filter(|(_, _, head)| head.prev != 0) {
            let begin = self.lanes[lane].span_ns.map_or(head.time, |span| span.0.min(head.time));
            firsts.entry(self.key(lane, head.prev)).or_default().push(FirstRun { begin, cpu, head });
        }
        firsts.values_mut().for_each(|runs| runs.sort_by_key(|first| (first.begin, first.cpu)));
        firsts
    }

    /// The state of a thread from the trace's begin to its first event.
    pub(super) fn first_row(&self, life: Option<&SchedLife>, firsts: &[FirstRun], begin: i64) -> SchedRow {
        let switch = life.and_then(|life| life.row.first_switch());
        let mut row = SchedRow::unknown(begin);
        for first in firsts {
            if switch.is_none_or(|switch| first.begin <= switch) {
                row.was_on(first.cpu, first.begin);
            }
            row.name_it(first.head.comm, first.head.time);
            row.cut += u64::from(self.wants_cpu(first.cpu));
        }
        row
    }

    /// The identity of a thread, from a state that nothing comes before.
    pub(super) fn identified(&self, state: &SchedState, who: WakeSource) -> WakeSource {
        let WakeSource::Before(lane, cpu) = who else { return who };
        let head = state.heads().find(|head| (head.0, head.1) == (lane as usize, cpu));
        match head.map(|head| head.2.prev) {
            None => WakeSource::Unknown,
            Some(0) => WakeSource::Idle,
            Some(tid) => {
                let (key, lives) = (self.key(lane as usize, tid), &state.lives);
                let first = lives.thread(key).and_then(|thread| lives.first_of(thread));
                WakeSource::Thread(first.map_or(ThreadId { key, since: i64::MIN }, |at| lives.places[at as usize].id))
            }
        }
    }
}

impl SchedTotals<'_> {
    /// Lives of a thread that began before the trace; `firsts` are its runs then.
    fn begin(&mut self, thread: &ThreadLives, firsts: &[FirstRun], cut: impl Fn(Place) -> u64) {
        let (state, lives) = (self.state, &self.state.lives);
        let end = if let EarlierLives::Made(time) = thread.opening { time } else { self.span.1 };
        let mut next = lives.first_of(thread);
        let mut row = self.sched.first_row(next.map(|at| &lives.places[at as usize]), firsts, self.span.0);
        let mut number = 0;
        if next.is_none() && !firsts.is_empty() {
            // Nothing is known of it but that it ran.
            self.end(ThreadId { key: thread.key, since: i64::MIN }, 0, std::mem::take(&mut row), end);
            number = 1;
        }
        while let Some(at) = next {
            let life = &lives.places[at as usize];
            let mut piece = life.row.clone();
            piece.resolve(|call| state.known_call(call));
            if let Some(waited) = row.join(piece) {
                self.last.count(self.sched, life.id, &mut row, waited);
            }
            row.cut += cut(at);
            next = lives.next_of(thread, at);
            let since = next.map_or(end, |at| lives.places[at as usize].id.since);
            self.end(life.id, number, std::mem::replace(&mut row, SchedRow::unknown(since)), end);
            number += 1;
        }
        if number > 0 {
            self.open.insert(thread.key, number);
        }
    }

    /// A life ends.
    fn end(&mut self, id: ThreadId, number: u32, mut row: SchedRow, time: i64) {
        row.identify(|who| self.identified(who));
        row.end(time, |begin, end| self.sched.is_whole(begin, end));
        self.last.take(self.sched, id, &mut row);
        self.last.name(id, Name { number, comm: row.comm(), pid: row.pid }, true);
    }

    /// The identity of a thread.
    pub(super) fn identified(&self, who: WakeSource) -> WakeSource {
        self.sched.identified(self.state, who)
    }

    /// How many lives of a thread there are before those that began in the trace.
    fn before(&self, key: ThreadKey) -> u32 {
        self.open.get(&key).copied().unwrap_or(0)
    }

    /// The displayed identity of a life.
    pub(super) fn name(&self, id: ThreadId) -> Option<Name> {
        let settled = || {
            let name = (*self.state.settled.names.get(&id)?)?;
            Some(Name { number: name.number + self.before(id.key), ..name })
        };
        self.last.names.get(&id).copied().flatten().or_else(settled)
    }

    /// Sums of wakeups by priority.
    pub(super) fn priorities(&self) -> BTreeMap<Option<i32>, Priority> {
        let mut priorities = self.state.settled.wakeups.priorities.clone();
        for (prio, late) in &self.last.wakeups.priorities {
            let known = priorities.entry(*prio).or_default();
            known.latencies.merge_from(&late.latencies);
            known.lost_inside += late.lost_inside;
        }
        priorities
    }
}
