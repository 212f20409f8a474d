//! What concerns files and comes in an order, until it can be done again in that order.
//!
//! ```text
//! recent   as it was told, some of it too late ──in order of places──> done again, if nothing comes before this part
//!                                               └──────────────────> settled, until the part before says what fds were;
//!                                                                    where that is much, packed: about 20 bytes each
//! ```
//!
//! A run tells what it did when it ends, so only what is before the begin of all runs that go on has its place for certain.

use serde::{Deserialize, Serialize};

use super::acts::Act;
use super::pids::Pids;
use crate::calls::{Bases, Place};
use crate::threads::ThreadKey;

/// An act of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    pub(super) place: Place,
    pub(super) key: ThreadKey,
    pub(super) act: Act,
}

/// Acts of threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Log {
    recent: Vec<Logged>,
    settled: Settled,
    /// Of which process threads are, from a place on; also said by acts that are there.
    moves: Vec<Move>,
    /// How many were left when it was tried last to put them in order.
    #[serde(skip)]
    left: usize,
}

/// From a place on, a thread is of a process, or nobody knows of which.
type Move = (Place, ThreadKey, Option<i32>);

/// Acts in the order of places. As bytes, all of them are packed: unpacked ones take four times as many.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// The first ones; each with the time since the one before.
    packed: Vec<u8>,
    /// The last time there.
    last_ns: i64,
    /// The others.
    acts: Vec<Logged>,
}

/// Acts that are kept before they are packed.
const UNPACKED: usize = if cfg!(test) { 8 } else { 1 << 18 };
/// Bytes of a packed act, about.
const PACKED_BYTES: usize = 24;
/// Acts that are logged before it is worth to put them in order.
const PATIENCE: usize = if cfg!(test) { 4 } else { 4096 };

impl Logged {
    fn rebase(mut self, bases: &Bases) -> Self {
        self.rebase_here(bases);
        self
    }

    #[inline]
    fn rebase_here(&mut self, bases: &Bases) {
        if let Act::Over(whole) = &mut self.act {
            whole.who.rebase(bases);
        }
    }
}

impl Log {
    /// With memory for what is put aside.
    pub(super) fn new(room: Vec<Logged>) -> Self {
        Self { settled: Settled { acts: room, ..Settled::default() }, ..Self::default() }
    }

    /// Something happens.
    #[inline]
    pub(super) fn push(&mut self, place: Place, key: ThreadKey, act: Act) {
        if !matches!(act, Act::Count(_)) {
            self.moved(place, key, &act);
            self.recent.push(Logged { place, key, act });
        }
    }

    /// Something happens, and nothing can come before it but what was put aside.
    #[inline]
    pub(super) fn put_aside(&mut self, place: Place, key: ThreadKey, act: Act) {
        self.moved(place, key, &act);
        self.settled.push(Logged { place, key, act });
    }

    /// A thread may be of another process from now on.
    #[inline]
    fn moved(&mut self, place: Place, key: ThreadKey, act: &Act) {
        match *act {
            Act::Fork(pid, parent_pid, parent) => {
                let parent = parent.zip(parent_pid).map(|(parent, pid)| (place, parent, Some(pid)));
                self.moves.extend(parent);
                self.moves.push((place, key, pid));
            }
            Act::Known(pid) => self.moves.push((place, key, Some(pid))),
            Act::Said(tid, pid) => self.moves.push((place, ThreadKey { tid, ..key }, Some(pid))),
            _ => {}
        }
    }

    /// Whether nothing waits for its turn.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.recent.is_empty()
    }

    /// Hands over what is there, in order; almost always that is what one note says.
    #[inline]
    pub(super) fn drain(&mut self, each: impl FnMut(Logged)) {
        self.left = 0;
        self.moves.clear();
        self.recent.sort_by_key(|logged| logged.place);
        self.recent.drain(..).for_each(each);
    }

    /// What a run did.
    #[inline]
    pub(super) fn extend(&mut self, key: ThreadKey, acts: Vec<(Place, Act)>) {
        acts.into_iter().for_each(|(place, act)| self.push(place, key, act));
    }

    /// What counts was counted.
    pub(super) fn forget(&mut self) {
        self.recent.retain_mut(|logged| logged.act.forget());
    }

    /// Whether it is worth to put it in order.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.recent.len() > 2 * self.left + PATIENCE
    }

    /// Takes what comes before a place, in order.
    fn settled(&mut self, until: Option<Place>) -> Vec<Logged> {
        self.recent.sort_by_key(|logged| logged.place);
        let behind = until.map_or(self.recent.len(), |until| self.recent.partition_point(|known| known.place < until));
        let rest = self.recent.split_off(behind);
        self.left = rest.len();
        std::mem::replace(&mut self.recent, rest)
    }

    /// Puts aside what comes before a place.
    pub(super) fn settle(&mut self, until: Option<Place>) {
        let settled = self.settled(until);
        settled.into_iter().for_each(|logged| self.settled.push(logged));
    }

    /// Puts aside what is there, in order; almost always that is what one note says.
    #[inline]
    pub(super) fn settle_all(&mut self) {
        self.left = 0;
        self.recent.sort_by_key(|logged| logged.place);
        self.recent.drain(..).for_each(|logged| self.settled.push(logged));
    }

    /// Hands over what comes before a place, in order.
    pub(super) fn hand_over(&mut self, until: Option<Place>, each: impl FnMut(Logged)) {
        self.moves.retain(|moved| until.is_some_and(|until| moved.0 >= until));
        self.settled(until).into_iter().for_each(each);
    }

    /// Takes what comes before a place, together with what a part that follows had settled: the lives there count from these
    /// numbers on. Says which processes threads are of then.
    pub(super) fn take(
        &mut self,
        until: Option<Place>,
        (mut settled, bases): (Settled, Bases),
        pids: &mut Pids,
    ) -> Waiting {
        if let Some(until) = until {
            settled.split_off(until).into_iter().for_each(|logged| self.recent.push(logged.rebase(&bases)));
        }
        self.moves.sort_by_key(|moved| moved.0);
        let behind = until.map_or(self.moves.len(), |until| self.moves.partition_point(|moved| moved.0 < until));
        let pids_before = pids.clone();
        self.moves.drain(..behind).for_each(|(_, key, pid)| pids.set(key, pid));
        Waiting { first: self.settled(until), behind: settled, bases, pids: pids_before }
    }

    /// Adds another one, but for what is settled there: whose lives count from these numbers on.
    pub(super) fn add(&mut self, other: Self, bases: &Bases) {
        self.recent.extend(other.recent.into_iter().map(|logged| logged.rebase(bases)));
        self.moves.extend(other.moves);
    }

    /// Takes what is settled.
    pub(super) fn take_settled(&mut self) -> Settled {
        std::mem::take(&mut self.settled)
    }

    /// Adds what was settled in another one.
    pub(super) fn unsettle(&mut self, behind: Behind<'_>) {
        self.recent.extend(behind);
    }

    /// All of this and of another one, in order; lives of this one count from these numbers on.
    pub(super) fn sorted(&self, more: &Self, bases: &Bases) -> Vec<Logged> {
        let mut log: Vec<Logged> = Behind::new(self.settled.clone(), bases).collect();
        log.extend(self.recent.iter().map(|logged| logged.clone().rebase(bases)));
        log.extend_from_slice(&more.recent);
        log.sort_by_key(|logged| logged.place);
        log
    }
}

impl Settled {
    #[inline]
    fn push(&mut self, logged: Logged) {
        if self.acts.len() == UNPACKED {
            self.pack();
        }
        self.acts.push(logged);
    }

    /// Takes what does not come before a place.
    fn split_off(&mut self, until: Place) -> Vec<Logged> {
        if !self.packed.is_empty() && self.last_ns >= until.time {
            self.acts = Behind::new(std::mem::take(self), &Bases::default()).collect();
        }
        self.acts.split_off(self.acts.partition_point(|logged| logged.place < until))
    }

    fn pack(&mut self) {
        let Self { packed, last_ns, acts } = self;
        acts.drain(..).for_each(|logged| pack(packed, last_ns, &logged));
    }
}

/// Adds an act to packed ones, of which the last one was at `last_ns`.
fn pack(packed: &mut Vec<u8>, last_ns: &mut i64, Logged { place, key, act }: &Logged) {
    let Place { time, lane, nth } = *place;
    let since_ns = time.wrapping_sub(*last_ns);
    *last_ns = time;
    let bytes = std::mem::take(packed);
    let bytes = postcard::to_extend(&(since_ns, lane, nth, key, act), bytes);
    *packed = bytes.expect("a vector takes all bytes, and acts have lengths");
}

impl Serialize for Settled {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut packed = Vec::with_capacity(self.packed.len() + PACKED_BYTES * self.acts.len());
        packed.extend_from_slice(&self.packed);
        let mut last_ns = self.last_ns;
        self.acts.iter().for_each(|logged| pack(&mut packed, &mut last_ns, logged));
        (serde_bytes::Bytes::new(&packed), last_ns).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Settled {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (packed, last_ns) = <(serde_bytes::ByteBuf, i64)>::deserialize(deserializer)?;
        Ok(Self { packed: packed.into_vec(), last_ns, acts: Vec::new() })
    }
}

/// Acts before which nothing is missing.
#[derive(Debug)]
pub(super) struct Waiting {
    first: Vec<Logged>,
    behind: Settled,
    bases: Bases,
    /// Which process each thread is of before them.
    pub(super) pids: Pids,
}

impl Waiting {
    /// Hands them over in order, where they are; what is left is memory.
    pub(super) fn hand_over(&mut self, mut each: impl FnMut(&mut Logged)) -> Vec<Logged> {
        let Self { first, behind, bases, .. } = self;
        let mut first = first.iter_mut().peekable();
        let mut next = |logged: &mut Logged| {
            while let Some(earlier) = first.next_if(|earlier| earlier.place <= logged.place) {
                each(earlier);
            }
            each(logged);
        };
        let mut acts = std::mem::take(&mut behind.acts);
        Behind::new(std::mem::take(behind), bases).for_each(|mut logged| next(&mut logged));
        for logged in &mut acts {
            logged.rebase_here(bases);
            next(logged);
        }
        first.for_each(each);
        acts.clear();
        acts
    }
}

/// What was settled in a part that follows, one after the other; lives count from these numbers on.
#[derive(Debug)]
pub struct Behind<'a> {
    packed: Vec<u8>,
    /// How much of that was read.
    read: usize,
    last_ns: i64,
    acts: std::vec::IntoIter<Logged>,
    bases: &'a Bases,
}

impl<'a> Behind<'a> {
    pub(super) fn new(settled: Settled, bases: &'a Bases) -> Self {
        let Settled { packed, acts, .. } = settled;
        Self { packed, read: 0, last_ns: 0, acts: acts.into_iter(), bases }
    }
}

impl Iterator for Behind<'_> {
    type Item = Logged;

    #[inline]
    fn next(&mut self) -> Option<Logged> {
        if self.read == self.packed.len() {
            return Some(self.acts.next()?.rebase(self.bases));
        }
        let left = &self.packed[self.read..];
        let (since_ns, lane, nth, key, act): (i64, u32, u32, ThreadKey, Act);
        let rest: &[u8];
        ((since_ns, lane, nth, key, act), rest) = postcard::take_from_bytes(left).ok()?;
        self.read = self.packed.len() - rest.len();
        self.last_ns = self.last_ns.wrapping_add(since_ns);
        let place = Place { time: self.last_ns, lane, nth };
        Some(Logged { place, key, act }.rebase(self.bases))
    }
}
