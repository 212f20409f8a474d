//! Acts that concern files and come in an order, until they can be done again in that order.
//!
//! ```text
//! recent   as reported, some of it too late ─────in order of places──> done again, if nothing comes before this part
//!                                               └──────────────────> settled, until the part before says what fds were;
//!                                                                    where that is much, packed: about 20 bytes each
//! ```
//!
//! A run reports its acts when it ends, so only acts before the begin of all runs that go on have
//! their place for certain.

use serde::{Deserialize, Serialize};

use super::acts::FileAct;
use super::pids::Pids;
use crate::calls::{Bases, EventPosition};
use crate::names::Renumbering;
use crate::threads::{Slots, ThreadKey};

/// An act of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    pub(super) place: EventPosition,
    pub(super) key: ThreadKey,
    pub(super) act: FileAct,
}

/// Acts of threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Log {
    recent: Vec<Logged>,
    settled: SettledActs,
    /// The process of a thread from a place on; acts that are still logged say the same.
    moves: Vec<Move>,
    /// How many were left when it was tried last to put them in order.
    #[serde(skip)]
    left: usize,
}

/// From a place on, a thread is of a process, or of an unknown one.
type Move = (EventPosition, ThreadKey, Option<i32>);

/// Acts in the order of places. As bytes, all of them are packed: unpacked ones take four times as many.
#[derive(Clone, Debug, Default)]
pub struct SettledActs {
    /// The first ones; each with the time since the one before.
    packed: Vec<u8>,
    /// The last time there.
    last_ns: i64,
    /// The others.
    acts: Vec<Logged>,
    /// They are the rest of acts that were done [alone](super::apart::ThreadKnowledge::Alone) from this place
    /// on.
    done_from: Option<EventPosition>,
    /// Then, of which process threads are behind them, if they say so.
    pids: Vec<(ThreadKey, Option<i32>)>,
}

/// The new values of numbers that were given elsewhere.
#[derive(Debug, Default)]
pub(super) struct Renumbered {
    /// Of lives.
    pub(super) bases: Bases,
    /// Of names; `None`: the same.
    pub(super) names: Option<Renumbering>,
}

/// Acts that are kept before they are packed. Packing costs time, so short logs stay as they are.
/// Tests use small numbers, so that they reach both ways.
const UNPACKED: usize = if cfg!(test) { 8 } else { 1 << 19 };
/// Bytes of a packed act, about.
const PACKED_BYTES: usize = 24;
/// Acts that are logged before it is worth to put them in order.
const PATIENCE: usize = if cfg!(test) { 4 } else { 4096 };

impl Logged {
    fn rebase(mut self, numbers: &Renumbered) -> Self {
        self.rebase_here(numbers);
        self
    }

    #[inline]
    fn rebase_here(&mut self, Renumbered { bases, names }: &Renumbered) {
        if let FileAct::Over(whole) = &mut self.act {
            whole.who.rebase(bases);
        }
        if let Some(names) = names {
            self.act.rename(names);
        }
    }
}

impl Log {
    /// With memory for acts that are put aside.
    pub(super) fn new(room: Vec<Logged>) -> Self {
        Self { settled: SettledActs { acts: room, ..SettledActs::default() }, ..Self::default() }
    }

    /// Something happens.
    #[inline]
    pub(super) fn push(&mut self, place: EventPosition, key: ThreadKey, act: FileAct) {
        // A count concerns only its thread, and needs no place in the order.
        if !matches!(act, FileAct::Count(_)) {
            self.moved(place, key, &act);
            self.recent.push(Logged { place, key, act });
        }
    }

    /// An act, and nothing can come before it but the acts that were put aside.
    #[inline]
    pub(super) fn put_aside(&mut self, place: EventPosition, key: ThreadKey, act: FileAct) {
        self.moved(place, key, &act);
        self.settled.push(Logged { place, key, act });
    }

    /// A thread may be of another process from now on.
    #[inline]
    fn moved(&mut self, place: EventPosition, key: ThreadKey, act: &FileAct) {
        match *act {
            FileAct::Fork(pid, parent_pid, parent) => {
                let parent = parent.zip(parent_pid).map(|(parent, pid)| (place, parent, Some(pid)));
                self.moves.extend(parent);
                self.moves.push((place, key, pid));
            }
            FileAct::Known(pid) => self.moves.push((place, key, Some(pid))),
            FileAct::Said(tid, pid) => self.moves.push((place, ThreadKey { tid, ..key }, Some(pid))),
            _ => {}
        }
    }

    /// Whether nothing waits for its turn.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.recent.is_empty()
    }

    /// Hands over all acts, in order; almost always those of one note.
    #[inline]
    pub(super) fn drain(&mut self, each: impl FnMut(Logged)) {
        self.left = 0;
        self.moves.clear();
        self.recent.sort_by_key(|logged| logged.place);
        self.recent.drain(..).for_each(each);
    }

    /// Adds the acts of a run.
    #[inline]
    pub(super) fn extend(&mut self, key: ThreadKey, acts: Vec<(EventPosition, FileAct)>) {
        acts.into_iter().for_each(|(place, act)| self.push(place, key, act));
    }

    /// Forgets the counts.
    pub(super) fn forget(&mut self) {
        self.recent.retain_mut(|logged| logged.act.forget());
    }

    /// Whether it is worth to put it in order.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        // The log at least doubles between two sorts that leave much of it, so each act takes part
        // in few sorts.
        self.recent.len() > 2 * self.left + PATIENCE
    }

    /// Takes the acts before a place, in order.
    fn settled(&mut self, until: Option<EventPosition>) -> Vec<Logged> {
        // The sort is stable: acts of one place stay in the order in which they were reported.
        self.recent.sort_by_key(|logged| logged.place);
        let behind = until.map_or(self.recent.len(), |until| self.recent.partition_point(|known| known.place < until));
        let rest = self.recent.split_off(behind);
        self.left = rest.len();
        std::mem::replace(&mut self.recent, rest)
    }

    /// Puts aside the acts before a place.
    pub(super) fn settle(&mut self, until: Option<EventPosition>) {
        let settled = self.settled(until);
        settled.into_iter().for_each(|logged| self.settled.push(logged));
    }

    /// Puts aside all acts, in order; almost always those of one note.
    #[inline]
    pub(super) fn settle_all(&mut self) {
        self.left = 0;
        self.recent.sort_by_key(|logged| logged.place);
        self.recent.drain(..).for_each(|logged| self.settled.push(logged));
    }

    /// Hands over the acts before a place, in order.
    pub(super) fn hand_over(&mut self, until: Option<EventPosition>, each: impl FnMut(Logged)) {
        self.moves.retain(|moved| until.is_some_and(|until| moved.0 >= until));
        self.settled(until).into_iter().for_each(each);
    }

    /// Takes the acts before a place, together with the settled acts of a part that follows: the
    /// lives there count from these numbers on. Says which processes threads are of then.
    pub(super) fn take(
        &mut self,
        until: Option<EventPosition>,
        (mut settled, numbers): (SettledActs, Renumbered),
        pids: &mut Pids,
    ) -> ReadyActs {
        let mut is_torn = false;
        if let Some(until) = until {
            let behind = settled.split_off(until);
            is_torn = settled.done_from.is_some() && !behind.is_empty();
            behind.into_iter().for_each(|logged| self.recent.push(logged.rebase(&numbers)));
        }
        self.moves.sort_by_key(|moved| moved.0);
        let behind = until.map_or(self.moves.len(), |until| self.moves.partition_point(|moved| moved.0 < until));
        // A copy shares its pages: see `Pids`.
        let pids_before = pids.clone();
        self.moves.drain(..behind).for_each(|(_, key, pid)| pids.set(key, pid));
        settled.pids.drain(..).for_each(|(key, pid)| pids.set(key, pid));
        ReadyActs { first: self.settled(until), behind: settled, numbers, pids: pids_before, is_torn }
    }

    /// Adds another one, without the settled acts there.
    pub(super) fn add(&mut self, other: Self, numbers: &Renumbered) {
        self.recent.extend(other.recent.into_iter().map(|logged| logged.rebase(numbers)));
        self.moves.extend(other.moves);
    }

    /// Takes the settled acts.
    pub(super) fn take_settled(&mut self) -> SettledActs {
        std::mem::take(&mut self.settled)
    }

    /// The acts that were settled up to a place were done alone from another one on; these are left
    /// over, in order.
    pub(super) fn done(
        &mut self,
        (since, last): (EventPosition, EventPosition),
        left: impl Iterator<Item = Logged>,
        room: Vec<Logged>,
    ) {
        self.moves.sort_by_key(|moved| moved.0);
        let (mut places, mut pids) = (Slots::default(), Vec::new());
        for (_, key, pid) in self.moves.extract_if(.., |moved| moved.0 <= last) {
            let place = places.of(key, || {
                pids.push((key, pid));
                (pids.len() - 1) as u32
            });
            pids[place as usize].1 = pid;
        }
        self.settled = SettledActs { acts: room, done_from: Some(since), pids, ..SettledActs::default() };
        left.for_each(|logged| self.settled.push(logged));
    }

    /// How many acts are settled.
    #[cfg(test)]
    pub(super) fn settled_acts(&self) -> usize {
        FollowingActs::new(self.settled.clone(), &Renumbered::default()).count()
    }

    /// Whether the settled acts were done alone.
    #[cfg(test)]
    pub(super) fn is_done(&self) -> bool {
        self.settled.is_done()
    }

    /// Adds the settled acts of another one.
    pub(super) fn unsettle(&mut self, behind: FollowingActs<'_>) {
        self.recent.extend(behind);
    }

    /// All of this and of another one, in order.
    pub(super) fn sorted(&self, more: &Self, numbers: &Renumbered) -> Vec<Logged> {
        let mut log: Vec<Logged> = FollowingActs::new(self.settled.clone(), numbers).collect();
        log.extend(self.recent.iter().map(|logged| logged.clone().rebase(numbers)));
        log.extend_from_slice(&more.recent);
        log.sort_by_key(|logged| logged.place);
        log
    }
}

impl SettledActs {
    /// Whether they are the rest of acts that were done.
    pub(super) fn is_done(&self) -> bool {
        self.done_from.is_some()
    }

    #[inline]
    fn push(&mut self, logged: Logged) {
        if self.acts.len() == UNPACKED {
            self.pack();
        }
        self.acts.push(logged);
    }

    /// Takes the acts that do not come before a place.
    fn split_off(&mut self, until: EventPosition) -> Vec<Logged> {
        // Unpacking everything is rare: a place before the packed acts lies half a million acts
        // back.
        if !self.packed.is_empty() && self.last_ns >= until.time {
            let done_from = self.done_from;
            let pids = std::mem::take(&mut self.pids);
            let acts = FollowingActs::new(std::mem::take(self), &Renumbered::default()).collect();
            *self = Self { acts, done_from, pids, ..Self::default() };
        }
        self.acts.split_off(self.acts.partition_point(|logged| logged.place < until))
    }

    fn pack(&mut self) {
        let Self { packed, last_ns, acts, .. } = self;
        acts.drain(..).for_each(|logged| pack(packed, last_ns, &logged));
    }
}

/// Adds an act to packed ones, of which the last one was at `last_ns`.
fn pack(packed: &mut Vec<u8>, last_ns: &mut i64, Logged { place, key, act }: &Logged) {
    let EventPosition { time, lane, nth } = *place;
    // Differences are small numbers, which take few bytes. They wrap, so that any order of times is
    // allowed.
    let since_ns = time.wrapping_sub(*last_ns);
    *last_ns = time;
    let bytes = std::mem::take(packed);
    let bytes = postcard::to_extend(&(since_ns, lane, nth, key, act), bytes);
    *packed = bytes.expect("a vector takes all bytes, and acts have lengths");
}

impl Serialize for SettledActs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut packed = Vec::with_capacity(self.packed.len() + PACKED_BYTES * self.acts.len());
        packed.extend_from_slice(&self.packed);
        let mut last_ns = self.last_ns;
        self.acts.iter().for_each(|logged| pack(&mut packed, &mut last_ns, logged));
        (serde_bytes::Bytes::new(&packed), last_ns, self.done_from, &self.pids).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SettledActs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (packed, last_ns, done_from, pids) = Deserialize::deserialize(deserializer)?;
        let packed: serde_bytes::ByteBuf = packed;
        Ok(Self { packed: packed.into_vec(), last_ns, acts: Vec::new(), done_from, pids })
    }
}

/// Where an act comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// The part that follows had settled it.
    Part,
    /// It was there before, or became known when the part was added.
    Elsewhere,
}

/// Acts before which nothing is missing.
#[derive(Debug)]
pub(super) struct ReadyActs {
    first: Vec<Logged>,
    behind: SettledActs,
    numbers: Renumbered,
    /// Which process each thread is of before them.
    pub(super) pids: Pids,
    /// The rest of acts that were done would have to be done in two steps.
    pub(super) is_torn: bool,
}

impl ReadyActs {
    /// The acts of a part with an unknown state before.
    pub(super) fn alone(settled: SettledActs) -> Self {
        let (numbers, pids) = Default::default();
        Self { first: Vec::new(), behind: settled, numbers, pids, is_torn: false }
    }

    /// From where on the settled acts are the rest of acts that were done.
    pub(super) fn done_from(&self) -> Option<EventPosition> {
        self.behind.done_from
    }

    /// Hands them over in order, where they are, and says where each comes from; the remaining
    /// memory can be used again.
    pub(super) fn hand_over(&mut self, mut each: impl FnMut(&mut Logged, From)) -> Vec<Logged> {
        let Self { first, behind, numbers, .. } = self;
        let mut first = first.iter_mut().peekable();
        let mut next = |logged: &mut Logged| {
            while let Some(earlier) = first.next_if(|earlier| earlier.place <= logged.place) {
                each(earlier, From::Elsewhere);
            }
            each(logged, From::Part);
        };
        let mut acts = std::mem::take(&mut behind.acts);
        FollowingActs::new(std::mem::take(behind), numbers).for_each(|mut logged| next(&mut logged));
        for logged in &mut acts {
            logged.rebase_here(numbers);
            next(logged);
        }
        first.for_each(|logged| each(logged, From::Elsewhere));
        acts.clear();
        acts
    }
}

/// The settled acts of a part that follows, one after the other.
#[derive(Debug)]
pub struct FollowingActs<'a> {
    packed: Vec<u8>,
    /// How much of that was read.
    read: usize,
    last_ns: i64,
    acts: std::vec::IntoIter<Logged>,
    numbers: &'a Renumbered,
}

impl<'a> FollowingActs<'a> {
    pub(super) fn new(settled: SettledActs, numbers: &'a Renumbered) -> Self {
        let SettledActs { packed, acts, .. } = settled;
        Self { packed, read: 0, last_ns: 0, acts: acts.into_iter(), numbers }
    }
}

impl Iterator for FollowingActs<'_> {
    type Item = Logged;

    #[inline]
    fn next(&mut self) -> Option<Logged> {
        if self.read == self.packed.len() {
            return Some(self.acts.next()?.rebase(self.numbers));
        }
        let left = &self.packed[self.read..];
        let (since_ns, lane, nth, key, act): (i64, u32, u32, ThreadKey, FileAct);
        let rest: &[u8];
        ((since_ns, lane, nth, key, act), rest) = postcard::take_from_bytes(left).ok()?;
        self.read = self.packed.len() - rest.len();
        self.last_ns = self.last_ns.wrapping_add(since_ns);
        let place = EventPosition { time: self.last_ns, lane, nth };
        Some(Logged { place, key, act }.rebase(self.numbers))
    }
}
