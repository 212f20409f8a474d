//! The use of memory: pages that were taken and given back.

use serde::{Deserialize, Serialize};

use crate::shares::Amount;

/// Pages that went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct PageCounts {
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
    pub(super) taken: PageCounts,
    pub(super) given: PageCounts,
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

impl PageCounts {
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
        let pages = PageCounts { count: 1, pages: pages.unwrap_or(1), unsized_count: u64::from(pages.is_none()) };
        if is_taken { Self { taken: pages, ..Self::default() } } else { Self { given: pages, ..Self::default() } }
    }

    /// Pages that were taken less those that were given back.
    pub(super) fn change(&self) -> i64 {
        self.taken.pages.cast_signed() - self.given.pages.cast_signed()
    }
}

impl Amount for Usage {
    fn add(&mut self, other: &Self) {
        self.taken.add(&other.taken);
        self.given.add(&other.given);
    }

    fn is_empty(&self) -> bool {
        self.taken.count == 0 && self.given.count == 0
    }

    fn rank(&self) -> u64 {
        self.taken.pages + self.given.pages
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
