//! Rows of which only those that rank highest are kept, if no more are wanted: a trace may have millions of them.

use serde::{Deserialize, Serialize};

/// The rows that rank highest, or all. Where rows rank alike, the lower ones are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranking<T> {
    wanted: Option<usize>,
    rows: Vec<(u64, T)>,
    /// Rows below this are not among those that are wanted.
    least: u64,
    count: u64,
}

/// Rows beyond those that are wanted, until they are sorted out.
const SLACK: usize = 256;

impl<T: Ord> Ranking<T> {
    /// Keeps so many rows, or all.
    #[must_use]
    pub fn new(wanted: Option<usize>) -> Self {
        Self { wanted, rows: Vec::new(), least: 0, count: 0 }
    }

    /// How many rows there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All rows that are kept, in no order.
    pub fn rows(&self) -> impl Iterator<Item = &T> {
        self.rows.iter().map(|(_, row)| row)
    }

    /// Ranks and rows, the highest first.
    #[must_use]
    pub fn sorted(&self) -> Vec<(u64, &T)> {
        let mut rows: Vec<(u64, &T)> = self.rows.iter().map(|(rank, row)| (*rank, row)).collect();
        rows.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        rows.truncate(self.wanted.unwrap_or(usize::MAX));
        rows
    }

    /// Adds a row, which is asked for only if it may be wanted; whether it may.
    #[inline]
    pub fn push(&mut self, rank: u64, row: impl FnOnce() -> T) -> bool {
        self.count += 1;
        let may_be_wanted = rank >= self.least;
        if may_be_wanted {
            self.rows.push((rank, row()));
            self.shorten(SLACK);
        }
        may_be_wanted
    }

    /// Adds those of another part.
    pub fn merge(&mut self, other: Self) {
        self.merge_changed(other, |_| {});
    }

    /// Adds those of another part, changed by `change`.
    pub fn merge_changed(&mut self, other: Self, mut change: impl FnMut(&mut T)) {
        self.count += other.count;
        for (rank, mut row) in other.rows {
            if rank >= self.least {
                change(&mut row);
                self.rows.push((rank, row));
            }
        }
        self.shorten(SLACK);
    }

    fn shorten(&mut self, slack: usize) {
        let Some(wanted) = self.wanted else { return };
        if self.rows.len() < wanted.saturating_add(slack) {
            return;
        }
        if wanted == 0 {
            self.rows.clear();
            self.least = u64::MAX;
            return;
        }
        let order = |one: &(u64, T), other: &(u64, T)| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1));
        let (_, last, _) = self.rows.select_nth_unstable_by(wanted - 1, order);
        self.least = last.0;
        self.rows.truncate(wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Whatever the order and the parts, the same rows are left.
    #[test]
    fn the_highest_are_kept() {
        let mut random = Random(7);
        let all: Vec<(u64, usize)> = (0..5000).map(|row| (random.below(900) as u64, row)).collect();
        for wanted in [0, 1, 10, 700, 6000] {
            let mut parts: Vec<Ranking<usize>> = (0..7).map(|_| Ranking::new(Some(wanted))).collect();
            for &(rank, row) in &all {
                parts[random.below(7)].push(rank, || row);
            }
            let mut whole = Ranking::new(Some(wanted));
            parts.into_iter().for_each(|part| whole.merge(part));
            let found: Vec<(u64, usize)> = whole.sorted().into_iter().map(|(rank, row)| (rank, *row)).collect();
            let mut expected = all.clone();
            expected.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
            expected.truncate(wanted);
            assert_eq!(found, expected, "{wanted}");
            assert_eq!(whole.count(), 5000);
        }
    }

    #[test]
    fn the_highest_come_first_whatever_the_order() {
        let mut longest = Ranking::new(Some(3));
        for (length, what) in [(5, 'e'), (7, 'b'), (1, 'x'), (7, 'a'), (5, 'd')] {
            longest.push(length, || what);
        }
        assert_eq!(longest.sorted(), [(7, &'a'), (7, &'b'), (5, &'d')]);
        let mut other = Ranking::new(Some(3));
        other.push(6, || 'c');
        other.merge(longest);
        assert_eq!(other.sorted().into_iter().map(|row| *row.1).collect::<String>(), "abc");
    }
}
