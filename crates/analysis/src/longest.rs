//! The longest of many intervals, with the memory of those that are kept.

use std::cmp::Reverse;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Some intervals, the longest first; of equally long ones the lesser first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "T: Serialize + DeserializeOwned")]
pub struct Longest<T> {
    most: usize,
    rows: Vec<(Reverse<u64>, T)>,
}

impl<T: Ord> Longest<T> {
    /// Keeps so many.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, rows: Vec::new() }
    }

    /// One more interval; `what` is asked only if it may be kept.
    #[inline]
    pub fn push(&mut self, length_ns: u64, what: impl FnOnce() -> T) {
        let is_full = self.rows.len() >= self.most;
        if is_full && self.rows.last().is_none_or(|last| length_ns < last.0.0) {
            return;
        }
        let row = (Reverse(length_ns), what());
        let at = self.rows.partition_point(|known| *known <= row);
        self.rows.insert(at, row);
        self.rows.truncate(self.most);
    }

    /// Adds others.
    pub fn merge(&mut self, others: Self) {
        others.rows.into_iter().for_each(|(Reverse(length_ns), what)| self.push(length_ns, || what));
    }

    /// Lengths and what they are of.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.rows.iter().map(|(Reverse(length_ns), what)| (*length_ns, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept_whatever_the_order() {
        let mut longest = Longest::new(3);
        for (length, what) in [(5, 'e'), (7, 'b'), (1, 'x'), (7, 'a'), (5, 'd')] {
            longest.push(length, || what);
        }
        assert_eq!(
            longest.iter().map(|(length, what)| (length, *what)).collect::<Vec<_>>(),
            [(7, 'a'), (7, 'b'), (5, 'd')]
        );
        let mut other = Longest::new(3);
        other.push(6, || 'c');
        other.merge(longest);
        assert_eq!(other.iter().map(|row| *row.1).collect::<String>(), "abc");
    }
}
