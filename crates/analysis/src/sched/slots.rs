//! Where threads are kept, by their numbers.
//!
//! Kernels give numbers one after the other, so those that are used together are neighbours: they share a page here, and
//! pages are so few that they stay in the processor's caches. A table with an entry for each thread takes a miss for each
//! life.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::threads::ThreadKey;

/// Where a thread is kept.
pub(super) type Slot = u32;

/// Threads by their numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Slots {
    /// By machine and number, without its low bits: one more than the slot, or 0.
    pages: HashMap<(u16, i32), Vec<Slot>>,
}

/// Threads of a page.
const PAGE: i32 = 64;

impl Slots {
    pub(super) fn get(&self, key: ThreadKey) -> Option<Slot> {
        self.pages.get(&(key.host, key.tid.div_euclid(PAGE)))?[key.tid.rem_euclid(PAGE) as usize].checked_sub(1)
    }

    /// The slot of a thread; `slot` if it has none.
    #[inline]
    pub(super) fn entry(&mut self, key: ThreadKey, slot: impl FnOnce() -> Slot) -> Slot {
        let page = self.pages.entry((key.host, key.tid.div_euclid(PAGE)));
        let known = &mut page.or_insert_with(|| vec![0; PAGE as usize])[key.tid.rem_euclid(PAGE) as usize];
        if *known == 0 {
            *known = slot() + 1;
        }
        *known - 1
    }
}
