//! Lives of threads as long as something may still be said of them: in places that are used again.
//!
//! ```text
//! tid 7   begins before the part ═══ dies │ fork ═══ dies │ fork ═══ there still
//!         first (is open)                 │ settled, its  │ living
//!                                         │ place is free │
//! ```
//!
//! A life that may have begun before the part is *open*: the part before knows more of it, so it is
//! kept even if it is over. Mostly a thread has one open life at most. But where only the death of
//! it was seen, it may have been an older thread, and its number was given away already; so that
//! the next life may be open too.

use serde::{Deserialize, Serialize};

use super::doing::{CurrentCall, WakeSource};
use super::row::SchedRow;
use crate::threads::{Slot, Slots, ThreadId, ThreadKey};

/// Where a life is kept.
pub(super) type Place = u32;

/// A life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SchedLife {
    pub(super) id: ThreadId,
    /// Thread of the life.
    pub(super) slot: Slot,
    /// How many lives that are not open were before in this part.
    pub(super) number: u32,
    pub(super) stage: LifeStage,
    pub(super) is_open: bool,
    /// How many CPUs began to run it, less those that stopped.
    pub(super) running_on: i32,
    /// The next open life of the thread.
    pub(super) next: Option<Place>,
    /// Lives that it has woken while the part was read, as far as that is not settled; maybe others that are over.
    #[serde(skip)]
    pub(super) woken: Vec<Place>,
    pub(super) row: SchedRow,
}

/// Up to this many woken lives, a search for those that are over does not pay off.
const WOKEN: usize = 16;

/// Content of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LifeStage {
    /// Nothing.
    #[default]
    Free,
    /// Something may happen to it.
    Living,
    /// It is over, but not everything is known of it.
    Over,
}

/// The lives of one number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ThreadLives {
    pub(super) key: ThreadKey,
    /// How many lives are over that were not open.
    pub(super) ended: u32,
    pub(super) living: Option<Place>,
    /// The first open life that is over; others follow.
    pub(super) first: Option<Place>,
    pub(super) opening: EarlierLives,
}

/// Whether lives of a thread may have begun before the part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EarlierLives {
    /// The next one may, if none is living.
    #[default]
    Open,
    /// None was seen, and nothing comes before the part: the first one is there since then.
    Since(i64),
    /// No more: one of them has died for certain.
    Died,
    /// No more: a new thread was made then.
    Made(i64),
}

/// All lives that are not settled.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SchedLives {
    slots: Slots,
    pub(super) threads: Vec<ThreadLives>,
    pub(super) places: Vec<SchedLife>,
    /// Since when threads are there that were not seen yet, if that is known.
    pub(super) begin: Option<i64>,
    free: Vec<Place>,
}

impl Default for SchedLife {
    fn default() -> Self {
        Self {
            id: ThreadId { key: ThreadKey { host: 0, tid: 0 }, since: 0 },
            slot: 0,
            number: 0,
            stage: LifeStage::Free,
            is_open: false,
            running_on: 0,
            next: None,
            woken: Vec::new(),
            row: SchedRow::default(),
        }
    }
}

impl SchedLife {
    /// It began in the part.
    pub(super) fn is_known(&self) -> bool {
        self.stage != LifeStage::Free && !self.is_open
    }

    /// Nothing will be said of it any more.
    pub(super) fn is_complete(&self) -> bool {
        self.stage == LifeStage::Over && !self.is_open && self.running_on <= 0
    }
}

impl ThreadLives {
    /// A number is that of a new thread: no life that follows began before the part.
    pub(super) fn close(&mut self, now: i64) {
        if matches!(self.opening, EarlierLives::Open | EarlierLives::Since(_)) {
            self.opening = EarlierLives::Made(now);
        }
    }
}

impl SchedLives {
    /// Whether its numbers point into its tables, and its lists end.
    pub(super) fn fits(&self) -> bool {
        let is_place = |at: Place| (at as usize) < self.places.len();
        let is_thread = |(at, thread): (usize, &ThreadLives)| {
            let mut lives = thread.living.into_iter().chain(thread.first);
            let is_last = |at: Place| self.places.get(at as usize).is_some_and(|life| life.next.is_none());
            self.slots.get(thread.key) == Some(at as Slot) && lives.all(is_place) && thread.living.is_none_or(is_last)
        };
        let is_life = |life: &SchedLife| {
            let mut others = life.next.into_iter().chain(life.woken.iter().copied());
            (life.slot as usize) < self.threads.len().max(1) && others.all(is_place)
        };
        let is_whole = self.threads.iter().enumerate().all(is_thread)
            && self.slots.all().count() == self.threads.len()
            && self.places.iter().all(is_life)
            && self.free.iter().all(|at| is_place(*at));
        is_whole && self.do_lists_end()
    }

    fn do_lists_end(&self) -> bool {
        let mut is_listed = vec![false; self.places.len()];
        let mut firsts = self.threads.iter().filter_map(|thread| thread.first);
        firsts.all(|first| {
            let mut lives = std::iter::successors(Some(first), |at| self.places[*at as usize].next);
            lives.all(|at| !std::mem::replace(&mut is_listed[at as usize], true))
        })
    }

    /// Where a thread is kept.
    #[inline]
    pub(super) fn slot(&mut self, key: ThreadKey) -> Slot {
        let (threads, opening) = (&mut self.threads, self.begin.map_or(EarlierLives::Open, EarlierLives::Since));
        self.slots.of(key, || {
            threads.push(ThreadLives { key, ended: 0, living: None, first: None, opening });
            (threads.len() - 1) as Slot
        })
    }

    pub(super) fn thread(&self, key: ThreadKey) -> Option<&ThreadLives> {
        self.slots.get(key).map(|slot| &self.threads[slot as usize])
    }

    /// The life of a thread that does something now.
    #[inline]
    pub(super) fn living(&mut self, key: ThreadKey, now: i64) -> Place {
        let slot = self.slot(key);
        match self.threads[slot as usize].living {
            Some(at) => at,
            None => self.appear(slot, now),
        }
    }

    /// A thread is there since an unknown time.
    fn appear(&mut self, slot: Slot, now: i64) -> Place {
        let ThreadLives { opening, first, .. } = self.threads[slot as usize];
        let at = self.add(slot, now, opening == EarlierLives::Open);
        let row = &mut self.places[at as usize].row;
        match opening {
            EarlierLives::Open if first.is_none() => {}
            // The one before has died, so this one is in no call.
            EarlierLives::Open => row.call = CurrentCall::None,
            EarlierLives::Died | EarlierLives::Made(_) => row.begin_unknown(now),
            EarlierLives::Since(begin) => {
                row.begin_unknown(begin);
                self.threads[slot as usize].opening = EarlierLives::Died;
            }
        }
        at
    }

    /// A thread is made; no life has its number.
    pub(super) fn make(&mut self, slot: Slot, now: i64) -> Place {
        let at = self.add(slot, now, false);
        self.places[at as usize].row.fork(now);
        at
    }

    fn add(&mut self, slot: Slot, now: i64, is_open: bool) -> Place {
        let at = self.take();
        let (thread, life) = (&mut self.threads[slot as usize], &mut self.places[at as usize]);
        thread.living = Some(at);
        (life.id, life.slot) = (ThreadId { key: thread.key, since: now }, slot);
        (life.number, life.is_open) = (thread.ended, is_open);
        at
    }

    /// A free place, for a life.
    fn take(&mut self) -> Place {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(SchedLife::default());
            (self.places.len() - 1) as Place
        });
        self.places[at as usize].stage = LifeStage::Living;
        at
    }

    #[inline]
    pub(super) fn at(&mut self, place: Place) -> &mut SchedLife {
        &mut self.places[place as usize]
    }

    /// The life of a thread that does something now, to be changed.
    pub(super) fn row(&mut self, key: ThreadKey, now: i64) -> &mut SchedRow {
        let at = self.living(key, now);
        &mut self.at(at).row
    }

    /// The thread's life that is not over.
    pub(super) fn now(&self, key: ThreadKey) -> Option<&SchedLife> {
        Some(&self.places[self.thread(key)?.living? as usize])
    }

    /// Whether the thread's next event may be of the life that began before the part.
    pub(super) fn is_first(&self, key: ThreadKey) -> bool {
        self.thread(key).map_or(self.begin.is_none(), |thread| match thread.living {
            Some(at) => self.places[at as usize].is_open && thread.first.is_none(),
            None => thread.opening == EarlierLives::Open && thread.first.is_none(),
        })
    }

    /// The first open life of a thread.
    pub(super) fn first_of(&self, thread: &ThreadLives) -> Option<Place> {
        thread.first.or(thread.living.filter(|&at| self.places[at as usize].is_open))
    }

    /// The open life behind one of a thread.
    pub(super) fn next_of(&self, thread: &ThreadLives, at: Place) -> Option<Place> {
        let open = |at: &Place| self.places[*at as usize].is_open;
        let life = &self.places[at as usize];
        life.next.or(thread.living.filter(open).filter(|&living| living != at && life.stage == LifeStage::Over))
    }

    /// How many lives of a thread are over that were not open.
    pub(super) fn ended(&self, key: ThreadKey) -> u32 {
        self.thread(key).map_or(0, |thread| thread.ended)
    }

    /// A life is over; whether it is complete.
    pub(super) fn end(&mut self, at: Place) -> bool {
        let life = &mut self.places[at as usize];
        life.stage = LifeStage::Over;
        let thread = &mut self.threads[life.slot as usize];
        thread.living = None;
        if !life.is_open {
            thread.ended += 1;
            return life.is_complete();
        }
        if thread.opening == EarlierLives::Open && !life.row.is_only_death() {
            thread.opening = EarlierLives::Died;
        }
        self.chain(at);
        false
    }

    /// Adds an open life that is over to those of its thread.
    fn chain(&mut self, at: Place) {
        let thread = &mut self.threads[self.places[at as usize].slot as usize];
        let Some(mut last) = thread.first else {
            thread.first = Some(at);
            return;
        };
        while let Some(next) = self.places[last as usize].next {
            last = next;
        }
        self.places[last as usize].next = Some(at);
    }

    /// Takes a life of the part that follows. Its woken lives are not put together yet.
    pub(super) fn insert(&mut self, slot: Slot, life: SchedLife) -> Place {
        let (at, number) = (self.take(), life.number + self.threads[slot as usize].ended);
        self.places[at as usize] = SchedLife { slot, number, next: None, woken: Vec::new(), ..life };
        at
    }

    /// Takes a life of the part that follows; it is the thread's living one.
    pub(super) fn insert_living(&mut self, slot: Slot, life: SchedLife) -> Place {
        let at = self.insert(slot, SchedLife { stage: LifeStage::Living, ..life });
        self.threads[slot as usize].living = Some(at);
        at
    }

    /// A life has woken another one.
    pub(super) fn wakes(&mut self, waker: Place, woken: Place) {
        let life = &mut self.places[waker as usize];
        life.row.is_referred = true;
        if life.woken.last() == Some(&woken) {
            return;
        }
        if life.woken.len() == life.woken.capacity() && life.woken.len() >= WOKEN {
            // Lives that are over do not matter any more.
            let (mut list, id) = (std::mem::take(&mut life.woken), life.id);
            list.sort_unstable();
            list.dedup();
            list.retain(|&at| self.places[at as usize].row.who().any(|who| who == WakeSource::Thread(id)));
            list.reserve(list.len() + WOKEN);
            self.places[waker as usize].woken = list;
        }
        self.places[waker as usize].woken.push(woken);
    }

    /// Nothing refers to a life any more.
    pub(super) fn release(&mut self, at: Place) {
        let life = &mut self.places[at as usize];
        life.row.clear();
        life.woken.clear();
        (life.stage, life.running_on, life.next) = (LifeStage::Free, 0, None);
        self.free.push(at);
    }

    /// All lives that are not settled.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SchedLife> {
        self.places.iter().filter(|life| life.stage != LifeStage::Free)
    }
}
