//! Counts by period and series, within bounds: periods double where there would be too many.
//!
//! ```text
//! period   0   1   2   3   4        too many: each two become one      0       1       2
//! counts   3   ·   7   1   2        ──────────────────────────────>    3       8       2
//! ```
//!
//! How often they double depends only on the counts, not on the order: adding more never needs
//! fewer doublings, and the number of counts is that of all together. So parts of a trace merge to
//! the same, however it is cut.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Setup;

/// Which periods there are.
#[derive(Clone, Copy, Debug)]
pub struct CoursePeriods {
    begin: i64,
    /// When the trace ends, if it says so.
    end: Option<i64>,
    /// Nanoseconds of each before they double; not 0.
    width: u64,
    /// From the first to the last one there are so many at most.
    most: u64,
}

/// Counts by period and series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// How often the width of periods has doubled.
    doublings: u32,
    most: u64,
    counts: BTreeMap<(i64, u64), u64>,
}

/// Periods from the first to the last one.
const PERIODS_MAX: u64 = 1 << 16;
/// Then there are two periods.
const DOUBLINGS_MAX: u32 = 63;
/// Counts that are kept: some 12 MB.
const COUNTS_MAX: usize = 1 << 18;

impl CoursePeriods {
    /// Periods as long as wanted, else as many as there shall be bins; from the trace's begin on, where it has one, else
    /// from the clock's origin.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let span = setup.span_ns();
        let bins = setup.wishes.bins.max(1) as u64;
        let (width, most) = match (setup.wishes.period_ns, span) {
            (Some(period_ns), _) => (period_ns.max(1), PERIODS_MAX),
            (None, Some((begin, end))) => (begin.abs_diff(end).div_ceil(bins).max(1), PERIODS_MAX),
            (None, None) => (1, bins.min(PERIODS_MAX)),
        };
        Self { begin: span.map_or(0, |span| span.0), end: span.map(|span| span.1), width, most }
    }

    /// An empty course.
    #[must_use]
    pub fn course(&self) -> Course {
        Course { doublings: 0, most: self.most, counts: BTreeMap::new() }
    }

    /// The period that a time is in, before periods double, and from when to when it is.
    #[must_use]
    pub fn of(&self, time: i64) -> (i64, (i64, i64)) {
        let period = (i128::from(time) - i128::from(self.begin)).div_euclid(i128::from(self.width));
        let at = |period: i128| clamped(i128::from(self.begin) + period * i128::from(self.width));
        (clamped(period), (at(period), at(period + 1)))
    }

    /// Nanoseconds of each period of a course.
    #[must_use]
    pub fn width(&self, course: &Course) -> u64 {
        self.width.saturating_mul(1_u64.checked_shl(course.doublings).unwrap_or(u64::MAX))
    }

    /// From when to when a period of a course is; the last one ends with the trace.
    #[must_use]
    pub fn at(&self, course: &Course, period: i64) -> (i64, i64) {
        let width = i128::from(self.width(course));
        let at = |period: i128| clamped(i128::from(self.begin) + period * width);
        let (begin, end) = (at(i128::from(period)), at(i128::from(period) + 1));
        (begin, self.end.filter(|&last| begin < last).map_or(end, |last| end.min(last)))
    }

    /// When the trace begins and ends, else the first and the last period.
    #[must_use]
    pub fn span(&self, course: &Course) -> Option<(i64, i64)> {
        let first = course.counts.first_key_value()?.0.0;
        let last = course.counts.last_key_value()?.0.0;
        Some(match self.end {
            Some(end) => (self.begin, end),
            None => (self.at(course, first).0, self.at(course, last).1),
        })
    }
}

fn clamped(time: i128) -> i64 {
    time.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl Course {
    /// Counts something; `period` as before periods double.
    pub fn add(&mut self, period: i64, series: u64, count: u64) {
        *self.counts.entry((period >> self.doublings, series)).or_default() += count;
        self.keep_within_bounds();
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: Self) {
        let doublings = other.doublings.min(DOUBLINGS_MAX);
        while self.doublings < doublings {
            self.double();
        }
        let shift = self.doublings - doublings;
        for ((period, series), count) in other.counts {
            *self.counts.entry((period >> shift, series)).or_default() += count;
        }
        self.keep_within_bounds();
    }

    /// Whether it can be a course of these periods.
    #[must_use]
    pub fn fits(&self, periods: &CoursePeriods) -> bool {
        let is_small = self.counts.len() <= COUNTS_MAX && self.periods() <= self.most;
        self.most == periods.most && self.doublings <= DOUBLINGS_MAX && is_small
    }

    /// All counts, by period, then by series.
    pub fn counts(&self) -> impl Iterator<Item = ((i64, u64), &u64)> {
        self.counts.iter().map(|(place, count)| (*place, count))
    }

    fn keep_within_bounds(&mut self) {
        while self.doublings < DOUBLINGS_MAX && (self.counts.len() > COUNTS_MAX || self.periods() > self.most) {
            self.double();
        }
    }

    /// Periods from the first to the last one.
    fn periods(&self) -> u64 {
        let ends = self.counts.first_key_value().zip(self.counts.last_key_value());
        ends.map_or(0, |(first, last)| first.0.0.abs_diff(last.0.0).saturating_add(1))
    }

    fn double(&mut self) {
        self.doublings += 1;
        let mut counts: BTreeMap<(i64, u64), u64> = BTreeMap::new();
        for ((period, series), count) in std::mem::take(&mut self.counts) {
            *counts.entry((period >> 1, series)).or_default() += count;
        }
        self.counts = counts;
    }
}
