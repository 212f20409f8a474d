//! Threads as they live and die: the kernel gives the number of a dead thread to a new one.
//!
//! ```text
//! time  ──────────┤ part k ├───────────────────────────────────────┤ part k+1
//! tid 7   ═══ ran before ═══x  dead        fork ═══════════════════ still there
//!         is_left                closed          live
//! ```
//!
//! The facts about one life are a row of the analysis' own. A part of a trace does not see the
//! beginning of lives that are older; merging joins the two pieces.

pub(crate) mod slots;

use std::hash::{Hash, Hasher};

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

pub(crate) use self::slots::Slots;

pub use self::slots::Slot;

/// A thread's number on its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadKey {
    /// See [`LaneFacts::host`](crate::LaneFacts::host).
    pub host: u16,
    /// The thread.
    pub tid: i32,
}

impl Hash for ThreadKey {
    /// As one number: threads are looked up for every switch.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.host) << 32 | u64::from(self.tid.cast_unsigned()));
    }
}

/// One life of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId {
    /// Its number.
    pub key: ThreadKey,
    /// Tells lives with the same number apart: when it was made, or was seen first; of those of one time, the later ones
    /// are a nanosecond later.
    pub since: i64,
}

/// The facts about a life, in pieces.
pub trait LifeFacts: Default {
    /// Adds the later piece.
    fn join(&mut self, later: Self);

    /// A CPU is still thought to run it: more will be known, even if it is over.
    fn is_running(&self) -> bool {
        false
    }

    /// It is over: so many lives of its number were before it in this part.
    fn number(&mut self, lives_before: u32) {
        let _ = lives_before;
    }
}

/// A life that is not over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Living<R> {
    /// When it was made, or was seen first in this part.
    pub since: i64,
    /// It may have been there before this part began.
    pub is_left: bool,
    /// The facts about it.
    pub row: R,
}

/// The lives of one number.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NumberLives<R> {
    key: ThreadKey,
    /// How many are over.
    ended: u32,
    /// The next one is known since then at least.
    next_since: i64,
    /// Which of [`PartLives::left`] is the first of them; [`NONE`] if it began in this part, or is not over.
    left: u32,
    living: Option<Living<R>>,
}

const NONE: u32 = u32::MAX;

/// Lives in a part of a trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "R: Serialize + serde::de::DeserializeOwned")]
pub struct PartLives<R> {
    slots: Slots,
    lives: Vec<NumberLives<R>>,
    /// The first lives of threads, which may have begun before the part and ended in it. Nothing is looked up here: a
    /// part has one of each number that is used again.
    left: Vec<Living<R>>,
    /// Lives that are over while a CPU is still thought to run them, with how many were before.
    lingering: HashMap<ThreadId, (u32, R)>,
}

impl<R> Default for PartLives<R> {
    fn default() -> Self {
        Self::with_room(0)
    }
}

impl<R: LifeFacts> NumberLives<R> {
    fn living(&mut self, now: i64) -> &mut Living<R> {
        let is_left = self.ended == 0;
        let since = now.max(self.next_since);
        self.living.get_or_insert_with(|| Living { since, is_left, row: R::default() })
    }
}

impl<R> PartLives<R> {
    /// Nothing, with room for so many numbers: tables that grow are written several times.
    #[must_use]
    pub fn with_room(numbers: usize) -> Self {
        Self {
            slots: Slots::default(),
            lives: Vec::with_capacity(numbers),
            left: Vec::new(),
            lingering: HashMap::default(),
        }
    }

    /// How many numbers are known.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lives.len()
    }
}

impl<R: LifeFacts> PartLives<R> {
    /// Where the lives of a number are kept in this part.
    #[inline]
    pub fn slot(&mut self, key: ThreadKey) -> Slot {
        let lives = &mut self.lives;
        self.slots.of(key, || {
            lives.push(NumberLives { key, ended: 0, next_since: i64::MIN, left: NONE, living: None });
            (lives.len() - 1) as Slot
        })
    }

    /// Whether each number is kept where it is said to be.
    #[must_use]
    pub fn fits(&self) -> bool {
        let is_kept = |(at, lives): (usize, &NumberLives<R>)| self.slots.get(lives.key) == Some(at as Slot);
        self.lives.iter().enumerate().all(is_kept) && self.slots.all().count() == self.lives.len()
    }

    fn lives(&self, key: ThreadKey) -> Option<&NumberLives<R>> {
        self.slots.get(key).map(|slot| &self.lives[slot as usize])
    }

    /// The life of a thread that does something now.
    #[inline]
    pub fn at(&mut self, key: ThreadKey, now: i64) -> &mut R {
        let slot = self.slot(key);
        &mut self.living_in(slot, now).row
    }

    /// The same for callers that know where the number is kept, and since when the life is known
    /// here.
    #[inline]
    pub fn living_in(&mut self, slot: Slot, now: i64) -> &mut Living<R> {
        self.lives[slot as usize].living(now)
    }

    /// Since when the life of a thread is known that is not over.
    #[must_use]
    pub fn since(&self, key: ThreadKey) -> Option<i64> {
        Some(self.lives(key)?.living.as_ref()?.since)
    }

    /// Forgets lives that are over, and the counts of the others.
    pub fn forget(&mut self, mut forget: impl FnMut(&mut R)) {
        self.left.clear();
        let living = self.lives.iter_mut().filter_map(|lives| {
            lives.left = NONE;
            lives.living.as_mut()
        });
        let rows = living.map(|living| &mut living.row);
        rows.chain(self.lingering.values_mut().map(|(_, row)| row)).for_each(&mut forget);
    }

    /// A life that may be over meanwhile; `None`: it is over, and complete.
    pub fn life(&mut self, id: ThreadId) -> Option<&mut R> {
        let is_it = |living: &&mut Living<R>| living.since == id.since;
        if let Some(slot) = self.slots.get(id.key) {
            let lives = &mut self.lives[slot as usize];
            let left = self.left.get_mut(lives.left as usize).filter(is_it);
            if let Some(living) = lives.living.as_mut().filter(is_it).or(left) {
                return Some(&mut living.row);
            }
        }
        self.lingering.get_mut(&id).map(|(_, row)| row)
    }

    /// No CPU is thought to run a life any more that may be over meanwhile: `over` takes it if it is.
    pub fn stopped(&mut self, id: ThreadId, over: impl FnOnce(ThreadId, R)) {
        if self.lingering.get(&id).is_some_and(|(_, row)| !row.is_running())
            && let Some((number, mut row)) = self.lingering.remove(&id)
        {
            row.number(number);
            over(id, row);
        }
    }

    /// The first life of a thread, if that may have begun before this part.
    #[must_use]
    pub fn first(&self, key: ThreadKey) -> Option<ThreadId> {
        let lives = self.lives(key)?;
        let live = || lives.living.as_ref().filter(|living| living.is_left);
        let first = self.left.get(lives.left as usize).or_else(live)?;
        Some(ThreadId { key, since: first.since })
    }

    /// A thread is made now. A life with its number must be over, even if its end was not seen:
    /// `over` takes it.
    pub fn begin(&mut self, key: ThreadKey, now: i64, over: impl FnOnce(ThreadId, R)) -> &mut R {
        let slot = self.slot(key);
        self.end_in(slot, over);
        let lives = &mut self.lives[slot as usize];
        let since = now.max(lives.next_since);
        &mut lives.living.insert(Living { since, is_left: false, row: R::default() }).row
    }

    /// A thread's life is over; `over` takes it, unless it may have begun before this part or a CPU is thought to run it.
    pub fn end_in(&mut self, slot: Slot, over: impl FnOnce(ThreadId, R)) {
        let lives = &mut self.lives[slot as usize];
        let Some(mut living) = lives.living.take() else { return };
        let (key, number) = (lives.key, lives.ended);
        lives.ended += 1;
        lives.next_since = living.since.saturating_add(1);
        let id = ThreadId { key, since: living.since };
        if living.is_left {
            lives.left = self.left.len() as u32;
            self.left.push(living);
        } else if living.row.is_running() {
            self.lingering.insert(id, (number, living.row));
        } else {
            living.row.number(number);
            over(id, living.row);
        }
    }

    /// How many lives of a number were before those that `right`, the part that follows, counts from 0.
    #[must_use]
    pub fn lives_before(&self, key: ThreadKey, right: &Self) -> u32 {
        let Some(lives) = self.lives(key) else { return 0 };
        lives.ended + u32::from(lives.living.is_some() && right.first(key).is_none())
    }

    /// Adds the part that follows; `over` takes lives with pieces that are complete now.
    pub fn merge(&mut self, mut right: Self, mut over: impl FnMut(ThreadId, R)) {
        for (id, (number, row)) in right.lingering {
            // Numbers are those of the right part.
            let before = self.lives(id.key).map_or(0, |lives| {
                let begins = right.slots.get(id.key).is_none_or(|slot| right.lives[slot as usize].left == NONE);
                lives.ended + u32::from(begins && lives.living.is_some())
            });
            self.lingering.insert(id, (before + number, row));
        }
        for lives in right.lives {
            let slot = self.slot(lives.key);
            match right.left.get_mut(lives.left as usize) {
                Some(piece) => {
                    self.append(slot, std::mem::take(piece));
                    self.end_in(slot, &mut over);
                    self.lives[slot as usize].ended += lives.ended - 1;
                }
                None if lives.ended > 0 || lives.living.as_ref().is_some_and(|living| !living.is_left) => {
                    self.end_in(slot, &mut over);
                    self.lives[slot as usize].ended += lives.ended;
                }
                None => {}
            }
            let known = &mut self.lives[slot as usize];
            known.next_since = known.next_since.max(lives.next_since);
            if let Some(living) = lives.living {
                self.append(slot, living);
            }
        }
    }

    /// Adds a piece of a life.
    fn append(&mut self, slot: Slot, piece: Living<R>) {
        let lives = &mut self.lives[slot as usize];
        match &mut lives.living {
            Some(living) => living.row.join(piece.row),
            None => lives.living = Some(Living { is_left: piece.is_left && lives.ended == 0, ..piece }),
        }
    }

    /// All lives that `over` did not take, with how many of the same number were before.
    pub fn numbered(&self) -> impl Iterator<Item = (ThreadId, u32, &R)> {
        let of = |key: &ThreadKey, living: &Living<R>| ThreadId { key: *key, since: living.since };
        let left = self.lives.iter().filter_map(move |lives| {
            let living = self.left.get(lives.left as usize)?;
            Some((of(&lives.key, living), 0, &living.row))
        });
        let live = self.lives.iter().filter_map(move |lives| {
            let living = lives.living.as_ref()?;
            Some((of(&lives.key, living), lives.ended, &living.row))
        });
        let lingering = self.lingering.iter().map(|(id, (number, row))| (*id, *number, row));
        left.chain(live).chain(lingering)
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
