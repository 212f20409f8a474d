//! Everything that is known when the trace is over: lives from begin to end, numbered, and what ran at the edges.
//!
//! ```text
//! tid 7   piece, piece, fork, piece ──> incarnation 0: unknown ... dead    incarnation 1: new ... until the end
//! ```
//!
//! Pieces whose beginning nobody saw begin here: with what their CPU ran when it began to record, or unknown.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::row::{Call, Now, Row, Times, Who};
use super::{CpuHead, Priority, Sched, State, Wakeup, Wakeups};
use crate::Merge;
use crate::ranking::Ranking;
use crate::threads::{Life, ThreadId, ThreadKey};

/// A life from its begin to its end.
pub(super) struct Whole<'a> {
    pub(super) id: ThreadId,
    pub(super) incarnation: u64,
    pub(super) row: Cow<'a, Row>,
    /// It has waited for a CPU when it, or the trace, ended.
    pub(super) never_ended: bool,
}

/// Everything that is known.
pub(super) struct Lives<'a> {
    sched: &'a Sched,
    state: &'a State,
    /// In the order of their ids.
    pub(super) lives: Vec<Whole<'a>>,
    /// Which one is meant by an id; of several pieces of a life each has its own.
    places: Vec<(ThreadId, u32)>,
    /// Wakeups that were found while pieces were put together.
    late: Wakeups,
    /// From when to when the trace is.
    pub(super) span: (i64, i64),
}

/// The run that a CPU was in when it began to record.
struct First {
    begin: i64,
    cpu: u32,
    head: CpuHead,
}

impl Sched {
    pub(super) fn lives<'a>(&'a self, state: &'a State) -> Lives<'a> {
        let span = crate::setup::span_ns(&self.lanes).or(state.span).unwrap_or((0, 0));
        let mut pieces: Vec<(ThreadId, Cow<'a, Row>)> = Vec::with_capacity(state.over.len());
        pieces.extend(state.over.iter().map(|(id, row)| (*id, Cow::Borrowed(&**row))));
        pieces.extend(state.threads.iter().map(|(id, row)| (id, Cow::Borrowed(&**row))));
        pieces.sort_by_key(|piece| piece.0);
        let mut lives = Lives {
            sched: self,
            state,
            lives: Vec::new(),
            places: Vec::with_capacity(pieces.len()),
            late: Wakeups::new(self.top()),
            span,
        };
        let mut firsts = self.firsts(state);
        let mut pieces = pieces.into_iter().peekable();
        while let Some((id, row)) = pieces.next() {
            let mut row = row;
            while let Some((_, more)) = pieces.next_if(|next| next.0 == id) {
                row = Cow::Owned(joined(row, more));
            }
            let ran_before = firsts.remove(&id.key).unwrap_or_default();
            lives.add(id, row, &ran_before);
        }
        lives.end(span.1);
        self.last_runs(state, &mut lives);
        lives
    }

    /// Runs that CPUs were in when they began to record, by thread, the earliest first.
    fn firsts(&self, state: &State) -> HashMap<ThreadKey, Vec<First>> {
        let mut firsts: HashMap<ThreadKey, Vec<First>> = HashMap::default();
        for (lane, cpu, head) in state.heads().filter(|(_, _, head)| head.prev != 0) {
            let begin = self.lanes[lane].span_ns.map_or(head.time, |span| span.0.min(head.time));
            firsts.entry(self.key(lane, head.prev)).or_default().push(First { begin, cpu, head });
        }
        firsts.values_mut().for_each(|runs| runs.sort_by_key(|first| (first.begin, first.cpu)));
        firsts
    }

    /// Runs that CPUs are in when they end.
    fn last_runs(&self, state: &State, lives: &mut Lives<'_>) {
        for (lane, running) in state.running.iter().enumerate() {
            for run in running.iter().filter(|run| run.tid != 0 && self.wants_cpu(run.cpu)) {
                let id = ThreadId { key: self.key(lane, run.tid), since: run.since };
                if let Some(place) = lives.place(id) {
                    lives.lives[place].row.to_mut().cut += 1;
                }
            }
        }
    }
}

impl State {
    /// First switches of CPUs.
    pub(super) fn heads(&self) -> impl Iterator<Item = (usize, u32, CpuHead)> {
        let cpus = self.cpus.iter().enumerate();
        cpus.flat_map(|(lane, cpus)| cpus.iter().filter_map(move |cpu| Some((lane, cpu.cpu, cpu.head?))))
    }

    /// The call that was seen in the first run of a CPU.
    fn first_call(&self, lane: u32, cpu: u32) -> Call {
        let known = self.cpus[lane as usize].iter().find(|known| known.cpu == cpu);
        known.map_or(Call::None, |known| known.seen.or(Call::None))
    }
}

/// Pieces of one life.
fn joined(row: Cow<'_, Row>, more: Cow<'_, Row>) -> Row {
    let mut joined = Box::new(row.into_owned());
    joined.join(Box::new(more.into_owned()));
    *joined
}

impl<'a> Lives<'a> {
    /// Adds the next life, or a piece that belongs to the one before.
    fn add(&mut self, id: ThreadId, row: Cow<'a, Row>, ran_before: &[First]) {
        let before = self.lives.last().filter(|life| life.id.key == id.key);
        let incarnation = before.map_or(0, |before| before.incarnation + 1);
        if !row.is_forked && before.is_some_and(|before| before.row.is_unborn()) {
            // What died under its number was an older thread.
            let place = self.lives.len() - 1;
            let last = self.lives.pop().expect("there is one before");
            let row = self.joined(last.id, last.row.into_owned(), row.into_owned());
            self.lives.push(Whole { row: Cow::Owned(row), ..last });
            self.places.push((id, place as u32));
            return;
        }
        let is_first = before.is_none();
        match before {
            Some(_) => self.end(id.since),
            None => self.end(self.span.1),
        }
        let since = if is_first { self.span.0 } else { id.since };
        let mut begin = Row::doing(Now::Unknown, since);
        for first in ran_before {
            if row.is_forked || row.first_switch().is_none_or(|switch| first.begin <= switch) {
                begin.was_on(first.cpu, first.begin);
            }
            begin.name_it(first.head.comm, first.head.time);
            begin.cut += u64::from(self.sched.wants_cpu(first.cpu));
        }
        if row.is_forked {
            if !ran_before.is_empty() {
                let unseen = ThreadId { since: i64::MIN, ..id };
                self.push(unseen, incarnation, Cow::Owned(begin));
                self.end(id.since);
            }
            let incarnation = incarnation + u64::from(!ran_before.is_empty());
            self.push(id, incarnation, row);
            return;
        }
        let row = self.joined(id, begin, row.into_owned());
        self.push(id, incarnation, Cow::Owned(row));
    }

    fn push(&mut self, id: ThreadId, incarnation: u64, row: Cow<'a, Row>) {
        self.places.push((id, self.lives.len() as u32));
        self.lives.push(Whole { id, incarnation, row, never_ended: false });
    }

    /// Two pieces of a life.
    fn joined(&mut self, id: ThreadId, row: Row, more: Row) -> Row {
        let (mut row, mut more) = (Box::new(row), Box::new(more));
        more.resolve(|call| if call == Call::BeforeRow { row.call } else { call });
        row.join(more);
        if let Some(waited) = row.take_waited() {
            self.late.count(self.sched, id, &mut row, waited);
        }
        *row
    }

    /// The last life ends, if it has not died.
    fn end(&mut self, time: i64) {
        let Some(life) = self.lives.last_mut() else { return };
        if matches!(life.row.now, Now::Dead) {
            return;
        }
        let row = life.row.to_mut();
        if let Now::Waiting(wait) = row.now {
            life.never_ended = self.sched.is_whole(row.since, time);
            row.lost_inside += u64::from(!life.never_ended);
            self.late.wakers.entry((life.id, wait.waker)).count += 1;
        }
        row.close(time);
        row.now = Now::Dead;
    }

    /// The life that is meant by an id.
    pub(super) fn place(&self, id: ThreadId) -> Option<usize> {
        let behind = self.places.partition_point(|known| known.0 <= id);
        let is_it = |known: &&(ThreadId, u32)| known.0.key == id.key;
        let before = behind.checked_sub(1).and_then(|place| self.places.get(place)).filter(is_it);
        // What was there when a CPU began to record is the first one.
        before.or_else(|| self.places.get(behind).filter(is_it)).map(|known| known.1 as usize)
    }

    /// What wakeups of each priority add up to.
    pub(super) fn priorities(&self) -> BTreeMap<Option<i32>, Priority> {
        let mut priorities = self.state.wakeups.priorities.clone();
        for (prio, late) in &self.late.priorities {
            let known = priorities.entry(*prio).or_default();
            known.latencies.merge_from(&late.latencies);
            known.lost_inside += late.lost_inside;
        }
        priorities
    }

    pub(super) fn wrong_cpu(&self) -> u64 {
        self.state.wakeups.wrong_cpu + self.late.wrong_cpu
    }

    /// The longest wakeups.
    pub(super) fn longest(&self) -> Ranking<Wakeup> {
        let mut longest = self.state.wakeups.longest.clone();
        longest.merge(self.late.longest.clone());
        longest
    }

    /// Who woke whom: places of lives.
    pub(super) fn wakers(&self) -> Vec<(usize, Waker, Times)> {
        let mut wakers: Vec<(usize, Waker, Times)> = Vec::new();
        for table in [&self.state.wakeups.wakers, &self.late.wakers] {
            for ((thread, who), times) in table.rows().filter_map(Result::ok) {
                wakers.extend(self.place(thread).map(|place| (place, self.waker(who), *times)));
            }
        }
        wakers.sort_by_key(|(place, waker, _)| (*place, *waker));
        wakers.dedup_by(|later, sum| {
            let is_same = (sum.0, sum.1) == (later.0, later.1);
            if is_same {
                sum.2.add(later.2);
            }
            is_same
        });
        wakers
    }

    /// Who somebody is.
    pub(super) fn waker(&self, who: Who) -> Waker {
        let mut who = who;
        loop {
            match who {
                Who::Unknown => return Waker::Unknown,
                Who::Idle => return Waker::Idle,
                Who::Thread(id) => return self.place(id).map_or(Waker::Unknown, Waker::Life),
                Who::Before(lane, cpu, time) => {
                    let early = self.state.early.iter().find(|early| early.is_of(lane, cpu) && early.time == time);
                    who = match early.and_then(|early| early.who) {
                        Some(Who::Before(_, _, earlier)) if earlier >= time => Who::Unknown,
                        Some(known) => known,
                        None => self.first_on(lane, cpu),
                    };
                }
            }
        }
    }

    /// Who was on a CPU when that began to record.
    fn first_on(&self, lane: u32, cpu: u32) -> Who {
        let head = self.state.heads().find(|head| (head.0, head.1) == (lane as usize, cpu));
        match head.map(|head| head.2.prev) {
            None => Who::Unknown,
            Some(0) => Who::Idle,
            Some(tid) => Who::Thread(ThreadId { key: self.sched.key(lane as usize, tid), since: i64::MIN }),
        }
    }

    /// The name of a call; none for none.
    pub(super) fn call_name(&self, call: Call) -> Option<String> {
        let call = match call {
            Call::BeforeCpu(lane, cpu) => self.state.first_call(lane, cpu),
            call => call,
        };
        match call {
            Call::Named(place) => self.sched.names.get(place as usize).cloned(),
            Call::Numbered(number) => Some(number.to_string()),
            Call::None | Call::BeforeRow | Call::BeforeCpu(..) => None,
        }
    }
}

/// Who wakes: nobody knows, no thread, or the life at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waker {
    Unknown,
    Idle,
    Life(usize),
}
