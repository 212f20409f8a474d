//! A histogram in the requested bins: equal widths, or equal ratios.

use super::Histogram;
use crate::Bounded;

/// Where bins begin and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins {
    /// The first value of each bin; strictly ascending, at least one.
    firsts: Vec<u64>,
    /// The last value of the last bin; not before its first.
    last: u64,
}

/// One bin: how many values lie in `low..=high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// The first value that belongs here.
    pub low: u64,
    /// The last value that belongs here.
    pub high: u64,
    /// How many there are. An interval where an edge of the bin cuts a bucket of the histogram;
    /// values of one bucket are up to 0.2 % apart.
    pub count: Bounded<u64>,
}

/// A histogram in bins; the values of all counts add up to the number of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Values before the first bin.
    pub below: Bounded<u64>,
    /// The bins, ascending, without gaps.
    pub bins: Vec<Bin>,
    /// Values behind the last bin.
    pub above: Bounded<u64>,
}

impl Bins {
    /// About `count` bins of equal width over `low..=high`: fewer where there are fewer integers than bins. Bounds in
    /// the wrong order are exchanged.
    #[must_use]
    pub fn linear(low: u64, high: u64, count: u16) -> Self {
        let (low, high) = (low.min(high), low.max(high));
        let width = u128::from(high - low) + 1;
        let count = u128::from(count.max(1));
        let firsts = (0..count).map(|bin| low + (width * bin / count) as u64);
        Self::ascending(firsts, high)
    }

    /// About `count` bins over `low..=high`, each reaching the same multiple further than the one before: fewer where
    /// bins would be narrower than an integer. Zero has a bin of its own, before the others.
    #[must_use]
    pub fn logarithmic(low: u64, high: u64, count: u16) -> Self {
        let (low, high) = (low.min(high), low.max(high));
        let begin = low.max(1).min(high);
        let ratio = (high.max(1) as f64 / begin.max(1) as f64).powf(1.0 / f64::from(count.max(1)));
        let grown = (1..count).map(|bin| (begin as f64 * ratio.powi(i32::from(bin))).round() as u64);
        // Rounding must not lead out of the range, nor before the first bin.
        Self::ascending([low, begin].into_iter().chain(grown.map(|first| first.clamp(begin, high))), high)
    }

    fn ascending(firsts: impl Iterator<Item = u64>, last: u64) -> Self {
        let mut firsts: Vec<u64> = firsts.collect();
        firsts.dedup();
        Self { firsts, last }
    }

    /// The bounds of each bin, both inclusive.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let lasts = self.firsts[1..].iter().map(|next| next - 1).chain([self.last]);
        self.firsts.iter().copied().zip(lasts)
    }
}

impl Histogram {
    /// This histogram in other bins.
    ///
    /// ```
    /// use kymo_analysis::{Bins, Histogram};
    /// let mut sizes = Histogram::default();
    /// [1, 5, 12, 4000].map(|size| sizes.record(size));
    /// let distribution = sizes.distribution(&Bins::linear(0, 19, 2));
    /// let counts: Vec<u64> = distribution.bins.iter().map(|bin| bin.count.value).collect();
    /// assert_eq!((counts, distribution.above.value), (vec![2, 1], 1));
    /// ```
    #[must_use]
    pub fn distribution(&self, bins: &Bins) -> Distribution {
        let first = bins.firsts[0];
        let lasts: Vec<u64> = bins.ranges().map(|(_, last)| last).collect();
        let up_to = self.counts_up_to(&lasts);
        let below = self.count_below(first);
        let mut before = below;
        let bins = bins.ranges().zip(up_to).map(|((low, high), up_to)| {
            let count = between(before, up_to);
            before = up_to;
            Bin { low, high, count }
        });
        let bins = bins.collect();
        Distribution { below, bins, above: between(before, Bounded::exact(self.count())) }
    }
}

/// How many values are behind one edge and not behind the next, where it is known how many are before each.
fn between(before: Bounded<u64>, up_to: Bounded<u64>) -> Bounded<u64> {
    let estimate = up_to.value.saturating_sub(before.value);
    Bounded {
        value: estimate,
        low: up_to.low.saturating_sub(before.high).min(estimate),
        high: up_to.high.saturating_sub(before.low).max(estimate),
    }
}
