//! What was used: pages that were taken and given back, by whom, and how certain that is.

use serde::{Deserialize, Serialize};

/// Pages that went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Pages {
    /// How often.
    pub(super) count: u64,
    /// How many.
    pub(super) pages: u64,
    /// How often nobody said how many: one page is counted then.
    pub(super) unsized_count: u64,
}

/// Pages that were taken, and those that were given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Usage {
    pub(super) taken: Pages,
    pub(super) given: Pages,
}

/// What somebody used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Share {
    pub(super) all: Usage,
    /// Of that, what may have been somebody else's.
    pub(super) doubt: Usage,
}

/// What a run used, as long as nobody knows its ends.
///
/// An *epoch* is the time between two holes, by the number of holes that began before it. Only what is of the first epoch
/// may be of that in which the run began, only what is of the last one of that in which it ends: all else is in doubt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The first and the last epoch, if there are any.
    epochs: Vec<(usize, Usage)>,
    doubt: Usage,
}

/// Pages that were taken and not given back, over time: as many more or less than at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Depth {
    pub(super) last: i64,
    pub(super) lowest: i64,
    pub(super) highest: i64,
}

/// More than any kernel's: sums of such pages fit into 64 bits.
const ORDER_MAX: i64 = 31;

impl Pages {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.pages += other.pages;
        self.unsized_count += other.unsized_count;
    }
}

impl Usage {
    /// Of one event: 2^order pages.
    pub(super) fn of(is_taken: bool, order: Option<i64>) -> Self {
        let pages = order.filter(|order| (0..=ORDER_MAX).contains(order)).map(|order| 1 << order);
        let pages = Pages { count: 1, pages: pages.unwrap_or(1), unsized_count: u64::from(pages.is_none()) };
        if is_taken { Self { taken: pages, ..Self::default() } } else { Self { given: pages, ..Self::default() } }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.taken.add(&other.taken);
        self.given.add(&other.given);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.count == 0 && self.given.count == 0
    }

    /// The more, the more worth looking at.
    pub(super) fn rank(&self) -> u64 {
        self.taken.pages + self.given.pages
    }

    /// Pages that were taken less those that were given back.
    pub(super) fn change(&self) -> i64 {
        self.taken.pages.cast_signed() - self.given.pages.cast_signed()
    }
}

impl Share {
    pub(super) fn certain(usage: Usage) -> Self {
        Self { all: usage, doubt: Usage::default() }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.all.add(&other.all);
        self.doubt.add(&other.doubt);
    }
}

impl Pending {
    /// Adds what was used in an epoch; `None`: in a hole.
    pub(super) fn add(&mut self, epoch: Option<usize>, usage: Usage) {
        match epoch {
            None => self.doubt.add(&usage),
            Some(epoch) => self.push((epoch, usage)),
        }
    }

    /// Adds what was used later.
    pub(super) fn append(&mut self, later: Self) {
        later.epochs.into_iter().for_each(|epoch| self.push(epoch));
        self.doubt.add(&later.doubt);
    }

    fn push(&mut self, (epoch, usage): (usize, Usage)) {
        match self.epochs.last_mut().filter(|last| last.0 == epoch) {
            Some(last) => last.1.add(&usage),
            None => self.epochs.push((epoch, usage)),
        }
        if self.epochs.len() > 2 {
            let between = self.epochs.remove(1);
            self.doubt.add(&between.1);
        }
    }

    pub(super) fn all(&self) -> Usage {
        let mut all = self.doubt;
        self.epochs.iter().for_each(|(_, usage)| all.add(usage));
        all
    }

    pub(super) fn all_in_doubt(&self) -> Share {
        let all = self.all();
        Share { all, doubt: all }
    }

    /// All of it, in doubt where it is not of a certain epoch.
    pub(super) fn share(&self, is_certain: impl Fn(usize) -> bool) -> Share {
        let mut doubt = self.doubt;
        self.epochs.iter().filter(|(epoch, _)| !is_certain(*epoch)).for_each(|(_, usage)| doubt.add(usage));
        Share { all: self.all(), doubt }
    }
}

impl Depth {
    pub(super) fn add(&mut self, usage: &Usage) {
        self.last += usage.change();
        self.lowest = self.lowest.min(self.last);
        self.highest = self.highest.max(self.last);
    }

    /// Adds what follows.
    pub(super) fn append(&mut self, later: &Self) {
        self.lowest = self.lowest.min(self.last + later.lowest);
        self.highest = self.highest.max(self.last + later.highest);
        self.last += later.last;
    }
}
