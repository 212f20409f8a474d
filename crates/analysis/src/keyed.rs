//! Tables by key that stay within a budget: rows that do not fit are put aside, sorted, and merged at the end.
//!
//! ```text
//! entry(key) ──> rows in memory ──budget reached──> a sorted run in the spool
//!                     │                                  │  more than 64: some are merged into one
//!                     └───────────> rows() <─────────────┘
//!                                   merged, in the order of keys
//! ```
//!
//! A row in a run is partial: later values of its key are in later runs and in memory. Runs and
//! memory are kept in the order of time, so values only have to merge associatively. Memory is a
//! hash table with a hash function that is drawn at random, because keys come from traces, and a
//! trace might be made so that its keys collide in a known one.
//!
//! The table does not see how values grow after [`KeyTable::entry`] has handed them out. It measures all rows now and
//! then, the more often the closer it is to its budget.

mod rows;
mod run;
mod stored;
mod top;

pub use rows::KeyedRows;
pub use top::TopRows;

use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::merge::{Merge, Weight};
use crate::spool::{Room, SpoolError};
use run::{RunReader, SpoolRun, SpoolRunWriter};

/// The requirements for keys of tables.
pub trait TableKey: Ord + Hash + Clone + Weight + Serialize + DeserializeOwned + 'static {}
impl<K: Ord + Hash + Clone + Weight + Serialize + DeserializeOwned + 'static> TableKey for K {}

/// The requirements for values of tables; the default one is neutral.
pub trait TableValue: Default + Merge + Clone + Weight + Serialize + DeserializeOwned + 'static {}
impl<V: Default + Merge + Clone + Weight + Serialize + DeserializeOwned + 'static> TableValue for V {}

/// Runs that are read side by side at most: each takes a block of 64 KiB.
const RUNS_MAX: usize = 64;
/// Runs that become one where there are too many.
const RUNS_MERGED: usize = 32;
/// Memory that a value may take, on average, each time that it is asked for. A histogram's eighth value takes that.
const GROWTH_BYTES: usize = 256;

/// Rows by key, within a budget of memory.
///
/// ```
/// use kymo_analysis::{KeyTable, Merge, Weight};
/// # use serde::{Deserialize, Serialize};
/// #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
/// struct Calls {
///     count: u64,
/// }
/// impl Merge for Calls {
///     fn merge(&mut self, later: Self) {
///         self.count += later.count;
///     }
/// }
/// impl Weight for Calls {}
///
/// let mut calls: KeyTable<(u32, String), Calls> = KeyTable::default();
/// calls.entry((17, "read".to_owned())).count += 2;
/// calls.entry((17, "open".to_owned())).count += 1;
/// let top = calls.top(1, |_, calls| calls.count)?;
/// assert_eq!(top.rows[0].0.1, "read");
/// assert_eq!(top.others.count, 1);
/// # Ok::<(), kymo_analysis::SpoolError>(())
/// ```
#[derive(Debug)]
pub struct KeyTable<K, V> {
    rows: HashMap<K, V>,
    /// In the order of time, all before `rows`.
    runs: Vec<Arc<SpoolRun<K>>>,
    room: Option<Room>,
    /// How often [`KeyTable::entry`] may be called before rows are measured.
    unmeasured: usize,
    fault: Option<SpoolError>,
}

impl<K, V> Default for KeyTable<K, V> {
    /// An empty table without a budget.
    fn default() -> Self {
        Self { rows: HashMap::new(), runs: Vec::new(), room: None, unmeasured: usize::MAX, fault: None }
    }
}

impl<K: TableKey, V: TableValue> KeyTable<K, V> {
    /// An empty table that keeps within a budget.
    #[must_use]
    pub fn new(room: Room) -> Self {
        let mut table = Self::default();
        table.set_room(room);
        table
    }

    /// Gives the table a budget, or another one. It holds from the next row on.
    pub fn set_room(&mut self, room: Room) {
        self.room = Some(room);
        self.unmeasured = 0;
    }

    /// The value of a key, to be changed. A new one if the key is unknown, or if its earlier value
    /// was put aside: the value covers the time since.
    ///
    /// Where rows cannot be put aside, they stay in memory, and [`KeyTable::fault`] says why.
    #[inline]
    pub fn entry(&mut self, key: K) -> &mut V {
        if self.unmeasured == 0 || self.rows.len() == self.rows.capacity() {
            self.keep_within_budget();
        }
        self.unmeasured = self.unmeasured.saturating_sub(1);
        match self.rows.entry(key) {
            Entry::Occupied(row) => row.into_mut(),
            Entry::Vacant(row) => row.insert(V::default()),
        }
    }

    /// Why rows could not be put aside, if so. The table is complete even then, but not within its
    /// budget, and tables that are merged into it may not be merged in the order of time.
    #[must_use]
    pub fn fault(&self) -> Option<&SpoolError> {
        self.fault.as_ref()
    }

    /// Whether rows were put aside.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.runs.is_empty()
    }

    /// How many rows there are; reads the rows that were put aside.
    ///
    /// # Errors
    ///
    /// Rows that were put aside do not come back.
    pub fn count_rows(&self) -> Result<usize, SpoolError> {
        if self.runs.is_empty() {
            return Ok(self.rows.len());
        }
        self.rows().try_fold(0, |count, row| row.map(|_| count + 1))
    }

    /// The whole value of a key. A read of the spool for each run, where rows were put aside.
    ///
    /// # Errors
    ///
    /// Rows that were put aside do not come back.
    pub fn get(&self, key: &K) -> Result<Option<Cow<'_, V>>, SpoolError> {
        let mut found: Option<Cow<'_, V>> = None;
        for run in &self.runs {
            if let Some(value) = RunReader::<K, V>::find(run, key)? {
                match &mut found {
                    Some(earlier) => earlier.to_mut().merge(value),
                    None => found = Some(Cow::Owned(value)),
                }
            }
        }
        Ok(match (found, self.rows.get(key)) {
            (Some(mut earlier), Some(value)) => {
                earlier.to_mut().merge_from(value);
                Some(earlier)
            }
            (earlier, value) => earlier.or(value.map(Cow::Borrowed)),
        })
    }

    /// All rows, in the order of their keys. Values that lie in memory complete are lent, others are made.
    #[must_use]
    pub fn rows(&self) -> KeyedRows<'_, K, V> {
        KeyedRows::borrowed(&self.runs, self.rows.iter().collect())
    }

    /// All rows, in the order of their keys.
    pub fn finish(self) -> impl Iterator<Item = Result<(K, V), SpoolError>> {
        let rows = KeyedRows::owned(&self.runs, self.rows.into_iter().collect());
        rows.map(|row| row.map(|(key, value)| (key, value.into_owned())))
    }

    /// The same rows under other keys; rows that get the same one are merged, in the order of their old keys. Keys that
    /// hold numbers of an [`crate::Interner`] need this where that is merged into another one.
    ///
    /// # Errors
    ///
    /// Rows that were put aside do not come back.
    pub fn rekeyed<L: TableKey>(mut self, new_key: impl Fn(K) -> L) -> Result<KeyTable<L, V>, SpoolError> {
        let mut table: KeyTable<L, V> = self.room.clone().map_or_else(KeyTable::default, KeyTable::new);
        table.fault = self.fault.take();
        if self.runs.is_empty() {
            table.rows.reserve(self.rows.len());
        }
        for row in self.finish() {
            let (key, value) = row?;
            table.entry(new_key(key)).merge(value);
        }
        table.keep_within_budget();
        Ok(table)
    }

    #[cold]
    fn keep_within_budget(&mut self) {
        let grows = self.rows.len() == self.rows.capacity();
        match &self.room {
            Some(Room { budget_bytes, .. }) if self.fault.is_none() => {
                let budget_bytes = *budget_bytes;
                // While the hash table moves, the old one and one of twice its size exist.
                let grown_bytes = if grows { 2 * self.rows.allocation_size() } else { 0 };
                let mut headroom_bytes = budget_bytes.saturating_sub(self.memory_bytes() + grown_bytes);
                // What rows hold may grow by half until the next measurement, if all grow at the same time. And closer
                // to the budget, they would be measured all the time.
                if headroom_bytes < budget_bytes / 3 && !self.rows.is_empty() {
                    self.spill();
                    headroom_bytes = budget_bytes.saturating_sub(self.memory_bytes());
                }
                self.unmeasured = (headroom_bytes / GROWTH_BYTES).max(self.rows.len() / 2).max(16);
            }
            _ => self.unmeasured = usize::MAX,
        }
        // So that a table that is just full does not get here with every call.
        self.rows.reserve(1);
    }

    /// What its rows take.
    fn memory_bytes(&self) -> usize {
        let held: usize = self.rows.iter().map(|(key, value)| key.weight() + value.weight()).sum();
        self.rows.allocation_size() + held
    }

    /// Puts all rows aside; they stay where that does not work.
    fn spill(&mut self) {
        let Some(room) = &self.room else { return };
        match written(room, &self.rows) {
            Ok(run) => {
                self.runs.push(Arc::new(run));
                self.rows.clear();
                if self.rows.allocation_size() > room.budget_bytes / 2 {
                    self.rows = HashMap::new();
                }
            }
            Err(error) => self.fault = Some(error),
        }
        self.merge_runs();
    }

    /// Merges neighboring runs where there are too many: those that are smallest.
    fn merge_runs(&mut self) {
        while let Some(room) = self.room.as_ref().filter(|_| self.runs.len() > RUNS_MAX && self.fault.is_none()) {
            let sizes = self.runs.windows(RUNS_MERGED).map(|runs| runs.iter().map(|run| run.size_bytes()).sum::<u64>());
            let (first, _) = sizes.enumerate().min_by_key(|&(_, size)| size).expect("there are more runs than that");
            let merged = first..first + RUNS_MERGED;
            match rewritten::<K, V>(room, &self.runs[merged.clone()]) {
                Ok(run) => drop(self.runs.splice(merged, [Arc::new(run)])),
                Err(error) => self.fault = Some(error),
            }
        }
    }
}

/// A run of these rows.
fn written<K: TableKey, V: TableValue>(room: &Room, rows: &HashMap<K, V>) -> Result<SpoolRun<K>, SpoolError> {
    let mut sorted: Vec<(&K, &V)> = rows.iter().collect();
    sorted.sort_unstable_by_key(|&(key, _)| key);
    let mut writer = SpoolRunWriter::new(Arc::clone(&room.spool));
    for (key, value) in sorted {
        writer.push(key, value)?;
    }
    writer.finish()
}

/// One run that says what these say.
fn rewritten<K: TableKey, V: TableValue>(room: &Room, runs: &[Arc<SpoolRun<K>>]) -> Result<SpoolRun<K>, SpoolError> {
    let mut writer = SpoolRunWriter::new(Arc::clone(&room.spool));
    for row in KeyedRows::<K, V>::of_runs(runs) {
        let (key, value) = row?;
        writer.push(&key, &*value)?;
    }
    writer.finish()
}

impl<K: TableKey, V: TableValue> Merge for KeyTable<K, V> {
    fn merge(&mut self, mut later: Self) {
        if self.room.is_none() {
            self.room = later.room.take();
            self.unmeasured = 0;
        }
        self.fault = self.fault.take().or(later.fault.take());
        if !later.runs.is_empty() {
            // What is in memory came before those runs, so it has to become a run too.
            if !self.rows.is_empty() {
                self.spill();
            }
            self.runs.append(&mut later.runs);
            self.merge_runs();
        }
        // Fewer look-ups: the smaller side is merged into the larger one.
        if self.rows.len() < later.rows.len() {
            for (key, earlier) in std::mem::replace(&mut self.rows, later.rows) {
                match self.rows.entry(key) {
                    Entry::Vacant(row) => drop(row.insert(earlier)),
                    Entry::Occupied(mut row) => {
                        let value = std::mem::replace(row.get_mut(), earlier);
                        row.get_mut().merge(value);
                    }
                }
            }
        } else {
            for (key, value) in later.rows {
                self.entry(key).merge(value);
            }
        }
        self.keep_within_budget();
    }
}

impl<K: TableKey, V: TableValue> Weight for KeyTable<K, V> {
    /// Walks over all rows.
    fn weight(&self) -> usize {
        let runs: usize = self.runs.iter().map(|run| run.weight()).sum();
        self.memory_bytes() + runs + self.runs.capacity() * size_of::<Arc<SpoolRun<K>>>()
    }
}

#[cfg(test)]
mod tests;
