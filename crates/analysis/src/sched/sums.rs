//! Times by key, of which a life has few: a short sorted list is looked at faster than a table, and moved as a whole.

use serde::{Deserialize, Serialize};

/// Several times that something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DurationSums {
    pub(super) count: u64,
    pub(super) total_ns: u64,
}

impl DurationSums {
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.total_ns += other.total_ns;
    }
}

/// Times by key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DurationsByKey<K> {
    /// In the order of keys.
    sums: Vec<(K, DurationSums)>,
}

/// An empty list keeps its memory for so many keys.
const USUAL: usize = 8;

impl<K> Default for DurationsByKey<K> {
    fn default() -> Self {
        Self { sums: Vec::new() }
    }
}

impl<K: Copy + Ord> DurationsByKey<K> {
    /// Keys with times; those that were counted in another period have none.
    pub(super) fn some(&self) -> impl Iterator<Item = (K, DurationSums)> {
        self.iter().filter(|(_, times)| *times != DurationSums::default())
    }

    /// The times of a key.
    pub(super) fn of(&mut self, key: K) -> &mut DurationSums {
        let place = self.sums.partition_point(|known| known.0 < key);
        if self.sums.get(place).is_none_or(|known| known.0 != key) {
            self.sums.insert(place, (key, DurationSums::default()));
        }
        &mut self.sums[place].1
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (K, DurationSums)> {
        self.sums.iter().copied()
    }

    /// Removes a key.
    pub(super) fn remove(&mut self, key: K) -> Option<DurationSums> {
        let place = self.sums.binary_search_by_key(&key, |known| known.0).ok()?;
        Some(self.sums.remove(place).1)
    }

    pub(super) fn merge(&mut self, other: Self) {
        if self.sums.is_empty() {
            *self = other;
        } else {
            other.iter().for_each(|(key, times)| self.of(key).add(times));
        }
    }

    /// Gives keys other names; those that are the same then are one.
    pub(super) fn rekey(&mut self, key: impl Fn(K) -> K) {
        let mut is_changed = false;
        for known in &mut self.sums {
            let renamed = key(known.0);
            is_changed |= renamed != known.0;
            known.0 = renamed;
        }
        if is_changed {
            self.sums.sort_unstable_by_key(|known| known.0);
            self.sums.dedup_by(|later, sum| {
                let is_same = later.0 == sum.0;
                if is_same {
                    sum.1.add(later.1);
                }
                is_same
            });
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.sums.clear();
        self.sums.shrink_to(USUAL);
    }
}
