//! Where something of a thread is, by its number.
//!
//! ```text
//! pages    │ 0..1023 │    -    │ 2048..3071 │ -          only those that threads are in
//!               └─ place of each thread, and 0 where there is none
//! ```
//!
//! Kernels count threads up, so those that live at the same time have numbers side by side: the places of a burst of new
//! threads lie in a few cache lines. A table of hashes has each in another one.

use hashbrown::HashMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::threads::ThreadKey;

/// A place for each thread.
#[derive(Clone, Debug, Default)]
pub struct Tids {
    /// Of the first machine: by thread number. Places are counted from 1.
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    /// Of other machines, and numbers that are no threads.
    others: HashMap<ThreadKey, u32>,
}

/// Threads of a page.
const PAGE: usize = 1024;
/// No kernel gives a thread a higher number.
const TID_MAX: i32 = 1 << 22;

impl Tids {
    /// The place of a thread, and `make`'s if it has none yet.
    #[inline]
    pub fn get_or_insert_with(&mut self, key: ThreadKey, make: impl FnOnce() -> u32) -> u32 {
        let Some((page, at)) = find(key) else { return *self.others.entry(key).or_insert_with(make) };
        if let Some(Some(page)) = self.pages.get(page)
            && page[at] != 0
        {
            return page[at] - 1;
        }
        let place = make();
        self.insert(key, place);
        place
    }

    fn insert(&mut self, key: ThreadKey, place: u32) {
        let Some((page, at)) = find(key) else {
            self.others.insert(key, place);
            return;
        };
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]))[at] = place + 1;
    }

    fn iter(&self) -> impl Iterator<Item = (ThreadKey, u32)> {
        let pages = self.pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.as_ref()?)));
        let own = pages.flat_map(|(number, page)| {
            let key = move |at: usize| ThreadKey { host: 0, tid: (number * PAGE + at) as i32 };
            page.iter().enumerate().filter(|place| *place.1 != 0).map(move |(at, place)| (key(at), place - 1))
        });
        own.chain(self.others.iter().map(|(key, place)| (*key, *place)))
    }
}

/// The page of a thread, and where in it.
#[inline]
fn find(key: ThreadKey) -> Option<(usize, usize)> {
    let is_paged = key.host == 0 && (0..=TID_MAX).contains(&key.tid);
    is_paged.then_some((key.tid as usize / PAGE, key.tid as usize % PAGE))
}

impl Serialize for Tids {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<_>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tids = Self::default();
        let places: Vec<(ThreadKey, u32)> = Deserialize::deserialize(deserializer)?;
        // A place behind all places would wrap.
        places.into_iter().filter(|place| place.1 != u32::MAX).for_each(|(key, place)| tids.insert(key, place));
        Ok(tids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_that_were_made() {
        let mut tids = Tids::default();
        let keys = [(0, 0), (0, 7), (0, 1023), (0, 1024), (0, TID_MAX), (0, TID_MAX + 1), (0, -1), (1, 7)];
        let keys = keys.map(|(host, tid)| ThreadKey { host, tid });
        for (place, key) in keys.into_iter().enumerate() {
            assert_eq!(tids.get_or_insert_with(key, || place as u32), place as u32);
        }
        let bytes = postcard::to_allocvec(&tids).unwrap();
        let mut again: Tids = postcard::from_bytes(&bytes).unwrap();
        for (place, key) in keys.into_iter().enumerate() {
            assert_eq!(again.get_or_insert_with(key, || unreachable!("it has a place")), place as u32);
        }
        assert_eq!(again.get_or_insert_with(ThreadKey { host: 0, tid: 8 }, || 9), 9);
    }
}
