//! Threads as they live and die: the kernel gives the number of a dead thread to a new one.
//!
//! ```text
//! time  ──────────┤ part k ├───────────────────────────────────────┤ part k+1
//! tid 7   ═══ ran before ═══x  dead        fork ═══════════════════ still there
//!         is_left                closed          live
//! ```
//!
//! What is known of one life is a row of the analysis' own. A part of a trace does not see the beginning of lives that
//! are older; merging joins the two pieces.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

/// A thread's number on its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadKey {
    /// See [`LaneFacts::host`](crate::LaneFacts::host).
    pub host: u16,
    /// The thread.
    pub tid: i32,
}

/// One life of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId {
    /// Its number.
    pub key: ThreadKey,
    /// Tells lives with the same number apart: when it was made, or was seen first.
    pub since: i64,
}

/// What is known of a life, in pieces.
pub trait Life: Default {
    /// Adds what came after.
    fn join(&mut self, later: Self);
}

/// A life that is not over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Living<R> {
    /// When it was made, or was seen first in this part.
    pub since: i64,
    /// It may have been there before this part began.
    pub is_left: bool,
    /// What is known of it.
    pub row: R,
}

/// Lives in a part of a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "R: Serialize + serde::de::DeserializeOwned")]
pub struct Threads<R> {
    live: FxHashMap<ThreadKey, Living<R>>,
    /// The first lives of threads, which may have begun before the part and ended in it.
    left: FxHashMap<ThreadKey, Living<R>>,
    /// Threads of which a life has ended in this part.
    ended: FxHashSet<ThreadKey>,
}

impl<R> Default for Threads<R> {
    fn default() -> Self {
        Self { live: FxHashMap::default(), left: FxHashMap::default(), ended: FxHashSet::default() }
    }
}

impl<R: Life> Threads<R> {
    /// The life of a thread that does something now.
    #[inline]
    pub fn at(&mut self, key: ThreadKey, now: i64) -> &mut R {
        &mut self.living(key, now).row
    }

    /// The life of a thread that does something now, and since when it is known here.
    #[inline]
    pub fn living(&mut self, key: ThreadKey, now: i64) -> &mut Living<R> {
        let ended = &self.ended;
        let new = || Living { since: now, is_left: !ended.contains(&key), row: R::default() };
        self.live.entry(key).or_insert_with(new)
    }

    /// Since when the life of a thread is known that is not over.
    #[must_use]
    pub fn since(&self, key: ThreadKey) -> Option<i64> {
        self.live.get(&key).map(|living| living.since)
    }

    /// A life that may be over meanwhile; `None`: it is over, and complete.
    pub fn life(&mut self, id: ThreadId) -> Option<&mut R> {
        let is_it = |living: &&mut Living<R>| living.since == id.since;
        let living = self.live.get_mut(&id.key).filter(is_it);
        living.or_else(|| self.left.get_mut(&id.key).filter(is_it)).map(|living| &mut living.row)
    }

    /// The first life of a thread, if that may have begun before this part.
    #[must_use]
    pub fn first(&self, key: ThreadKey) -> Option<ThreadId> {
        let is_left = |living: &&Living<R>| living.is_left;
        let first = self.left.get(&key).or_else(|| self.live.get(&key).filter(is_left))?;
        Some(ThreadId { key, since: first.since })
    }

    /// A thread is made now. A life with its number must be over, even if nobody saw it end: `over` takes it.
    pub fn begin(&mut self, key: ThreadKey, now: i64, over: impl FnOnce(ThreadId, R)) -> &mut R {
        self.end(key, over);
        self.ended.insert(key);
        self.at(key, now)
    }

    /// A thread's life is over; `over` takes it, unless it may have begun before this part.
    pub fn end(&mut self, key: ThreadKey, over: impl FnOnce(ThreadId, R)) {
        let Some(living) = self.live.remove(&key) else { return };
        self.ended.insert(key);
        if living.is_left {
            self.left.insert(key, living);
        } else {
            over(ThreadId { key, since: living.since }, living.row);
        }
    }

    /// Adds the part that follows; `over` takes lives whose pieces are complete now.
    pub fn merge(&mut self, right: Self, mut over: impl FnMut(ThreadId, R)) {
        // Lives begin there that end those before, even if they are over themselves.
        for key in right.ended.iter().filter(|key| !right.left.contains_key(key)) {
            self.end(*key, &mut over);
        }
        for (key, piece) in right.left {
            self.append(key, piece, &mut over);
            self.end(key, &mut over);
        }
        for (key, piece) in right.live {
            self.append(key, piece, &mut over);
        }
        self.ended.extend(right.ended);
    }

    /// Adds a piece of a life.
    fn append(&mut self, key: ThreadKey, piece: Living<R>, over: &mut impl FnMut(ThreadId, R)) {
        if !piece.is_left {
            self.end(key, over);
            self.live.insert(key, piece);
            return;
        }
        match self.live.get_mut(&key) {
            Some(living) => living.row.join(piece.row),
            None => {
                let is_left = !self.ended.contains(&key);
                self.live.insert(key, Living { is_left, ..piece });
            }
        }
    }

    /// All lives that are not with `over`: those that are not over, and those that may have begun before.
    pub fn iter(&self) -> impl Iterator<Item = (ThreadId, &R)> {
        let id = |(key, living): (&ThreadKey, &'_ Living<R>)| ThreadId { key: *key, since: living.since };
        let pieces = self.left.iter().chain(&self.live);
        pieces.map(move |(key, living)| (id((key, living)), &living.row))
    }
}

/// Whether a thread that is switched out with this state can run on at once: it was preempted. Kernels add marks above
/// the low eight bits.
#[must_use]
pub fn is_runnable(state: i64) -> bool {
    state & 0xff == 0
}

/// Whether a thread that is switched out with this state will never run again.
///
/// `EXIT_DEAD` and `EXIT_ZOMBIE` always; 0x40 is `TASK_DEAD` before Linux 4.14, `TASK_PARKED` since.
#[must_use]
pub fn is_dead(state: i64, kernel: Option<(u32, u32)>) -> bool {
    const SLEEPS: i64 = 0xf;
    const EXITED: i64 = 0x10 | 0x20;
    const DEAD_OR_PARKED: i64 = 0x40;
    let is_dead_marked = kernel.is_some_and(|version| version < (4, 14));
    let marks = if is_dead_marked { EXITED | DEAD_OR_PARKED } else { EXITED };
    state & SLEEPS == 0 && state & marks != 0
}
