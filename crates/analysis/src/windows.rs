//! Spans of time in which events were lost.

use serde::{Deserialize, Serialize};

/// Spans of time that do not touch each other, the earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows(Vec<(i64, i64)>);

impl Windows {
    /// Adds a span of time.
    pub fn add(&mut self, begin: i64, end: i64) {
        if end <= begin {
            return;
        }
        // Almost always it is the latest.
        let from = self.0.partition_point(|&(_, other_end)| other_end < begin);
        let to = self.0.partition_point(|&(other_begin, _)| other_begin <= end);
        let begin = self.0.get(from).filter(|_| from < to).map_or(begin, |first| first.0.min(begin));
        let end = to.checked_sub(1).filter(|last| *last >= from).map_or(end, |last| self.0[last].1.max(end));
        self.0.splice(from..to.max(from), [(begin, end)]);
    }

    /// Adds others.
    pub fn extend(&mut self, others: &Self) {
        others.0.iter().for_each(|&(begin, end)| self.add(begin, end));
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them overlaps a span of time, or touches it.
    #[must_use]
    pub fn touch(&self, begin: i64, end: i64) -> bool {
        let from = self.0.partition_point(|&(_, other_end)| other_end < begin);
        self.0.get(from).is_some_and(|&(other_begin, _)| other_begin <= end)
    }

    /// How many of them have begun at a time.
    #[must_use]
    pub fn begun(&self, time: i64) -> usize {
        self.0.partition_point(|&(begin, _)| begin <= time)
    }

    /// How much of a span of time they cover, in nanoseconds.
    #[must_use]
    pub fn cover(&self, begin: i64, end: i64) -> u64 {
        self.inside(begin, end).map(|(begin, end)| begin.abs_diff(end)).sum()
    }

    /// Their parts in a span of time.
    pub fn inside(&self, begin: i64, end: i64) -> impl Iterator<Item = (i64, i64)> {
        let from = self.0.partition_point(|&(_, other_end)| other_end <= begin);
        let inside = self.0[from..].iter().take_while(move |&&(other_begin, _)| other_begin < end);
        inside.map(move |&(other_begin, other_end)| (other_begin.max(begin), other_end.min(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_touch_become_one() {
        let mut windows = Windows::default();
        for (begin, end) in [(10, 20), (40, 50), (20, 25), (60, 60), (5, 7), (24, 45)] {
            windows.add(begin, end);
        }
        assert_eq!(windows, Windows(vec![(5, 7), (10, 50)]));
        assert!(windows.touch(7, 8) && windows.touch(9, 10) && windows.touch(20, 20) && windows.touch(0, 100));
        assert!(!windows.touch(8, 9) && !windows.touch(51, 60) && !windows.touch(0, 4));
        assert_eq!([4, 5, 9, 10, 60].map(|time| windows.begun(time)), [0, 1, 1, 2, 2]);
        assert_eq!(windows.cover(0, 100), 42);
        assert_eq!(windows.cover(6, 12), 3);
        assert_eq!(windows.cover(7, 10), 0);
        assert_eq!(windows.inside(i64::MIN, 11).collect::<Vec<_>>(), [(5, 7), (10, 11)]);
    }
}
