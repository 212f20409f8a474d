//! Where the lives of a thread's number are kept.
//!
//! ```text
//! tid 4711 ──> page 18 ──> [103] ──> slot        numbers are given one after the other, so those that are asked for together
//! others   ──> a table by key                    lie side by side: a table that hashes them would be missed for each
//! ```

use hashbrown::HashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ThreadKey;

/// Where the lives of a number are kept, for callers that ask again soon.
pub type Slot = u32;

/// Slots by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    /// Those of the first machine's threads, by number.
    pages: Vec<Option<Box<Page>>>,
    /// All others.
    others: HashMap<ThreadKey, Slot>,
}

type Page = [Slot; PAGE];

/// Numbers of a page.
pub(crate) const PAGE: usize = 256;
/// The kernel gives no higher numbers than this.
const NUMBERS: u32 = 1 << 22;
const NONE: Slot = Slot::MAX;

/// The page that a number is in, and where; those of other machines, and what no kernel gives, are in none.
#[inline]
pub(crate) fn place(key: ThreadKey) -> Option<(usize, usize)> {
    let tid = key.tid.cast_unsigned();
    (key.host == 0 && tid < NUMBERS).then_some((tid as usize / PAGE, tid as usize % PAGE))
}

impl Slots {
    #[inline]
    pub(crate) fn get(&self, key: ThreadKey) -> Option<Slot> {
        match place(key) {
            Some((page, at)) => self.pages.get(page)?.as_ref().map(|page| page[at]).filter(|slot| *slot != NONE),
            None => self.others.get(&key).copied(),
        }
    }

    /// The slot of a number; `make` makes it if there is none.
    #[inline]
    pub(crate) fn of(&mut self, key: ThreadKey, make: impl FnOnce() -> Slot) -> Slot {
        let Some((page, at)) = place(key) else { return *self.others.entry(key).or_insert_with(make) };
        if let Some(Some(page)) = self.pages.get(page)
            && page[at] != NONE
        {
            return page[at];
        }
        let slot = make();
        self.set((page, at), slot);
        slot
    }

    #[cold]
    fn set(&mut self, (page, at): (usize, usize), slot: Slot) {
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page].get_or_insert_with(|| Box::new([NONE; PAGE]))[at] = slot;
    }

    /// Forgets all, but not their memory.
    pub(crate) fn clear(&mut self) {
        self.pages.iter_mut().flatten().for_each(|page| page.fill(NONE));
        self.others.clear();
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (ThreadKey, Slot)> {
        let of_page = |(number, page): (usize, &Option<Box<Page>>)| {
            let slots = page.iter().flat_map(|page| page.iter().copied()).collect::<Vec<Slot>>();
            let key = move |at: usize| ThreadKey { host: 0, tid: (number * PAGE + at) as i32 };
            slots.into_iter().enumerate().filter(|(_, slot)| *slot != NONE).map(move |(at, slot)| (key(at), slot))
        };
        let others = self.others.iter().map(|(key, slot)| (*key, *slot));
        self.pages.iter().enumerate().flat_map(of_page).chain(others)
    }
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all().collect::<Vec<(ThreadKey, Slot)>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut slots = Self::default();
        for (key, slot) in Vec::<(ThreadKey, Slot)>::deserialize(deserializer)? {
            slots.of(key, || slot);
        }
        Ok(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all machines, those that no kernel gives, and those that were never asked for.
    #[test]
    fn every_number_has_a_slot_of_its_own() {
        let keys: Vec<ThreadKey> = [0, 1, 255, 256, 70_000, (1 << 22) - 1, 1 << 22, i32::MAX, -1, i32::MIN]
            .into_iter()
            .flat_map(|tid| [0, 1].map(|host| ThreadKey { host, tid }))
            .collect();
        let mut slots = Slots::default();
        for _ in 0..2 {
            for (key, slot) in keys.iter().zip(0..) {
                assert_eq!(slots.of(*key, || slot), slot, "{key:?}");
            }
        }
        let bytes = postcard::to_allocvec(&slots).expect("slots can be encoded");
        let again: Slots = postcard::from_bytes(&bytes).expect("what was encoded can be decoded");
        for slots in [slots, again] {
            for (key, slot) in keys.iter().zip(0..) {
                assert_eq!(slots.get(*key), Some(slot), "{key:?}");
            }
            assert_eq!(slots.get(ThreadKey { host: 0, tid: 2 }), None);
            assert_eq!(slots.get(ThreadKey { host: 0, tid: 300 }), None);
            assert_eq!(slots.get(ThreadKey { host: 2, tid: 0 }), None);
        }
    }
}
