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
    /// How many were left when it was tried last to put them in order.
    #[serde(skip)]
    left: usize,
}

/// Acts in the order of places.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
/// Acts that are logged before it is worth to put them in order.
const PATIENCE: usize = if cfg!(test) { 4 } else { 4096 };

impl Logged {
    fn rebase(mut self, bases: &Bases) -> Self {
        if let Act::Over(whole) = &mut self.act {
            whole.who.rebase(bases);
        }
        self
    }
}

impl Log {
    /// Something happens.
    #[inline]
    pub(super) fn push(&mut self, place: Place, key: ThreadKey, act: Act) {
        if !matches!(act, Act::Count(_)) {
            self.recent.push(Logged { place, key, act });
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
        self.settled.acts.extend(settled);
        if self.settled.acts.len() > UNPACKED {
            self.settled.pack();
        }
    }

    /// Hands over what comes before a place, in order, together with what a part that follows had packed.
    pub(super) fn hand_over(&mut self, until: Option<Place>, behind: Behind<'_>, mut each: impl FnMut(Logged)) {
        let mut settled = self.settled(until).into_iter().peekable();
        for behind in behind {
            if until.is_some_and(|until| behind.place >= until) {
                self.recent.push(behind);
                continue;
            }
            while let Some(logged) = settled.next_if(|logged| logged.place <= behind.place) {
                each(logged);
            }
            each(behind);
        }
        settled.for_each(each);
    }

    /// Adds another one, but for what is settled there: whose lives count from these numbers on.
    pub(super) fn add(&mut self, other: Self, bases: &Bases) {
        self.recent.extend(other.recent.into_iter().map(|logged| logged.rebase(bases)));
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
    fn pack(&mut self) {
        for Logged { place: Place { time, lane, nth }, key, act } in self.acts.drain(..) {
            let since_ns = time.wrapping_sub(self.last_ns);
            self.last_ns = time;
            let bytes = std::mem::take(&mut self.packed);
            self.packed = postcard::to_extend(&(since_ns, lane, nth, key, act), bytes)
                .expect("a vector takes all bytes, and acts have lengths");
        }
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
