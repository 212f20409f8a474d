//! The largest rows of a table, and the sum of the others.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{KeyTable, TableKey, TableValue};
use crate::spool::SpoolError;

/// Some rows of a table, and the sum of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopRows<K, V> {
    /// The rows asked for, the largest first.
    pub rows: Vec<(K, V)>,
    /// How many others there are.
    pub others_count: u64,
    /// All others merged; the default where there are none.
    pub others: V,
}

/// A row that may be among the largest: ordered by size, and among equals by key, the smaller key being the larger row.
struct TopCandidate<'a, S, K, V: Clone> {
    size: S,
    key: Reverse<K>,
    value: Cow<'a, V>,
}

impl<S: Ord, K: Ord, V: Clone> Ord for TopCandidate<'_, S, K, V> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (&self.size, &self.key).cmp(&(&other.size, &other.key))
    }
}

impl<S: Ord, K: Ord, V: Clone> PartialOrd for TopCandidate<'_, S, K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<S: Ord, K: Ord, V: Clone> PartialEq for TopCandidate<'_, S, K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<S: Ord, K: Ord, V: Clone> Eq for TopCandidate<'_, S, K, V> {}

impl<K: TableKey, V: TableValue> KeyTable<K, V> {
    /// The `count` rows with the largest `size`, in one pass and with the memory of these rows. Of
    /// equal rows those with smaller keys are taken.
    ///
    /// The others are merged in no particular order, no matter their keys: values that depend on
    /// the order (the last name seen) mean nothing there.
    ///
    /// # Errors
    ///
    /// Rows that were put aside do not come back.
    pub fn top<S: Ord>(&self, count: usize, size: impl Fn(&K, &V) -> S) -> Result<TopRows<K, V>, SpoolError> {
        let mut kept = BinaryHeap::new();
        let (mut others_count, mut others) = (0, V::default());
        for row in self.rows() {
            let (key, value) = row?;
            kept.push(Reverse(TopCandidate { size: size(&key, &value), key: Reverse(key), value }));
            if kept.len() > count {
                let Reverse(smallest) = kept.pop().expect("a row was put in above");
                others.merge_from(&smallest.value);
                others_count += 1;
            }
        }
        let ascending = kept.into_sorted_vec().into_iter();
        let rows = ascending.map(|Reverse(row)| (row.key.0, row.value.into_owned())).collect();
        Ok(TopRows { rows, others_count, others })
    }
}
