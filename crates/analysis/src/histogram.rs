//! How values are distributed: a histogram that merges, with percentiles within 0.1 %.
//!
//! Count, sum, sum of squares, minimum and maximum are exact integers. Values are counted in buckets that are 1/512 of
//! their octave wide, so the middle of a bucket is at most 1/1024 away from any value in it (`buckets.rs`). Values
//! below 1024 have a bucket each.
//!
//! One histogram exists per row of a table (per system call of each thread, say), and most rows see
//! few values, so the memory grows with the recorded values:
//!
//! ```text
//! up to 7 values    the values themselves, inside of these 64 bytes
//! more              two bytes per value: a list of bucket numbers
//! many              32 counters of 4 bytes for each neighbourhood that has values; some 10 KiB
//! ```
//!
//! All that is kept are integer sums and multisets, so merging is associative and commutative to the last bit: however
//! a trace is cut, equal values give equal histograms. That is why there is no running mean in here.

mod bins;
mod buckets;
mod moments;
mod stored;

pub use bins::{Bin, Bins, Distribution};

use crate::Bounded;
use crate::merge::{Merge, Weight};
use buckets::Buckets;
use moments::Moments;

/// How many values are kept as they are.
const FEW: usize = 7;

/// A mergeable, log-linear histogram of durations in nanoseconds, sizes in bytes, or any other
/// `u64`.
///
/// Counts stop at `u64::MAX` and sums at `u128::MAX` instead of wrapping around.
///
/// ```
/// use kymo_analysis::Histogram;
/// let mut latencies_ns = Histogram::default();
/// for latency_ns in 1..=100_000 {
///     latencies_ns.record(latency_ns);
/// }
/// let median = latencies_ns.quantile(0.5).expect("there are values");
/// assert!(median.low <= 50_000 && 50_000 <= median.high);
/// assert_eq!(latencies_ns.sum(), 5_000_050_000);
/// ```
#[derive(Clone, Debug)]
pub struct Histogram {
    form: HistogramForm,
}

/// The form follows from the count alone: few if, and only if, there are at most [`FEW`] values.
#[derive(Clone, Debug)]
enum HistogramForm {
    /// The first `count` of `values`, ascending.
    Few {
        count: u8,
        values: [u64; FEW],
    },
    Many(Box<HistogramBody>),
}

#[derive(Clone, Debug)]
struct HistogramBody {
    moments: Moments,
    buckets: Buckets,
}

/// Values that were counted together: `count` of them lie in `low..=high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramBucket {
    /// The smallest value that is counted here.
    pub low: u64,
    /// The largest value that is counted here.
    pub high: u64,
    /// How many there were; not zero.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { form: HistogramForm::Few { count: 0, values: [0; FEW] } }
    }
}

impl Histogram {
    /// Records one value. Measured by `examples/statistics_speed.rs`.
    #[inline]
    pub fn record(&mut self, value: u64) {
        match &mut self.form {
            HistogramForm::Many(body) => {
                body.moments.record(value);
                body.buckets.add(buckets::bucket_of(value), 1);
            }
            HistogramForm::Few { .. } => self.record_among_few(value, 1),
        }
    }

    /// Records the same value `count` times.
    pub fn record_many(&mut self, value: u64, count: u64) {
        match &mut self.form {
            HistogramForm::Many(body) => body.record_many(value, count),
            HistogramForm::Few { .. } => self.record_among_few(value, count),
        }
    }

    fn record_among_few(&mut self, value: u64, count: u64) {
        let HistogramForm::Few { count: held, values } = &mut self.form else {
            unreachable!("asked only while there are few")
        };
        let free = (FEW - usize::from(*held)) as u64;
        if count > free {
            self.many().record_many(value, count);
            return;
        }
        for _ in 0..count {
            let position = values[..usize::from(*held)].partition_point(|&kept| kept <= value);
            values.copy_within(position..usize::from(*held), position + 1);
            values[position] = value;
            *held += 1;
        }
    }

    /// Puts the few values into buckets, if that is not so already.
    fn many(&mut self) -> &mut HistogramBody {
        if let HistogramForm::Few { .. } = &self.form {
            let mut body = Box::new(HistogramBody { moments: Moments::NONE, buckets: Buckets::default() });
            for &value in self.few() {
                body.record_many(value, 1);
            }
            self.form = HistogramForm::Many(body);
        }
        match &mut self.form {
            HistogramForm::Many(body) => body,
            HistogramForm::Few { .. } => unreachable!("they were put into buckets above"),
        }
    }

    /// The values themselves while there are few; nothing otherwise.
    fn few(&self) -> &[u64] {
        match &self.form {
            HistogramForm::Few { count, values } => &values[..usize::from(*count)],
            HistogramForm::Many(_) => &[],
        }
    }

    fn moments(&self) -> Moments {
        match &self.form {
            HistogramForm::Many(body) => body.moments,
            HistogramForm::Few { .. } => {
                let mut moments = Moments::NONE;
                self.few().iter().for_each(|&value| moments.record(value));
                moments
            }
        }
    }

    /// How many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        match &self.form {
            HistogramForm::Few { count, .. } => u64::from(*count),
            HistogramForm::Many(body) => body.moments.count,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        match &mut self.form {
            HistogramForm::Few { count, .. } => *count = 0,
            HistogramForm::Many(_) => *self = Self::default(),
        }
    }

    /// True if nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The sum of all values, exact.
    #[must_use]
    pub fn sum(&self) -> u128 {
        match &self.form {
            HistogramForm::Few { .. } => self.few().iter().map(|&value| u128::from(value)).sum(),
            HistogramForm::Many(body) => body.moments.sum,
        }
    }

    /// The smallest value, exact; `None` if there is none.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        let moments = self.moments();
        (moments.count > 0).then_some(moments.min)
    }

    /// The largest value, exact; `None` if there is none.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        let moments = self.moments();
        (moments.count > 0).then_some(moments.max)
    }

    /// The mean, computed from the exact sum; `None` if there is no value.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.moments().mean()
    }

    /// The mean of the squared distances from the mean; `None` if there is no value.
    ///
    /// The sums behind it are integers, so it does not depend on how the trace was cut, and nothing cancels out.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        let moments = self.moments();
        Some(moments.squared_distances()? / moments.count as f64)
    }

    /// The variance of the population that these values are a sample of: divided by one less than
    /// their count. `None` below two values.
    #[must_use]
    pub fn sample_variance(&self) -> Option<f64> {
        let moments = self.moments();
        (moments.count >= 2).then_some(())?;
        Some(moments.squared_distances()? / (moments.count - 1) as f64)
    }

    /// The square root of [`Histogram::sample_variance`], which lttng-analyses prints.
    #[must_use]
    pub fn sample_standard_deviation(&self) -> Option<f64> {
        self.sample_variance().map(f64::sqrt)
    }

    /// The smallest recorded value that at least the `share` (0 to 1) of all values do not exceed; `None` if there is
    /// no value or `share` is not a number.
    ///
    /// Its value is an estimate within 0.1 % of it. It is exact up to 7 values, below 1024, for share 0 (the minimum)
    /// and for share 1 (the maximum).
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Bounded<u64>> {
        let [quantile] = self.quantiles([share]);
        quantile
    }

    /// Several quantiles, for the price of a little more than one.
    #[must_use]
    pub fn quantiles<const COUNT: usize>(&self, shares: [f64; COUNT]) -> [Option<Bounded<u64>>; COUNT] {
        let moments = self.moments();
        let ranks = shares.map(|share| rank(share, moments.count));
        let mut found = ranks.map(|rank| match rank? {
            rank if rank == moments.count => Some(Bounded::exact(moments.max)),
            1 => Some(Bounded::exact(moments.min)),
            _ => None,
        });
        let mut pending: Vec<usize> = (0..COUNT).filter(|&place| ranks[place].is_some()).collect();
        pending.sort_unstable_by_key(|&place| std::cmp::Reverse(ranks[place]));
        let mut seen = 0u64;
        for bucket in self.buckets() {
            seen = seen.saturating_add(bucket.count);
            while let Some(place) = pending.pop_if(|place| ranks[*place].is_some_and(|rank| rank <= seen)) {
                let value = bucket.low + (bucket.high - bucket.low) / 2;
                found[place].get_or_insert(Bounded { value, low: bucket.low, high: bucket.high });
            }
            if pending.is_empty() {
                break;
            }
        }
        found
    }

    /// How many values are below `value`. Exact at the edges of buckets; otherwise the value takes the values of the
    /// bucket to be spread evenly.
    #[must_use]
    pub fn count_below(&self, value: u64) -> Bounded<u64> {
        match value.checked_sub(1) {
            None => Bounded::exact(0),
            Some(last) => self.counts_up_to(&[last])[0],
        }
    }

    /// For each of `lasts`, which ascend: how many values do not exceed it.
    fn counts_up_to(&self, lasts: &[u64]) -> Vec<Bounded<u64>> {
        let mut counts = Vec::with_capacity(lasts.len());
        let mut buckets = self.buckets().peekable();
        let mut full = 0u64;
        for &last in lasts {
            while let Some(bucket) = buckets.next_if(|bucket| bucket.high <= last) {
                full = full.saturating_add(bucket.count);
            }
            let cut = buckets.peek().filter(|bucket| bucket.low <= last);
            let (inside, estimate) = cut.map_or((0, 0), |bucket| {
                let share = u128::from(last - bucket.low + 1) * u128::from(bucket.count);
                let width = u128::from(bucket.high - bucket.low) + 1;
                let estimate = u64::try_from(share / width).expect("a part of a count is no larger than the count");
                (bucket.count, estimate)
            });
            counts.push(Bounded { low: full, value: full.saturating_add(estimate), high: full.saturating_add(inside) });
        }
        counts
    }

    /// All buckets that hold values, ascending. The first begins at the minimum, the last ends at the maximum, and
    /// few values (up to 7) have a bucket each.
    pub fn buckets(&self) -> impl Iterator<Item = HistogramBucket> + '_ {
        let (few, many) = match &self.form {
            HistogramForm::Few { .. } => (self.few(), None),
            HistogramForm::Many(body) => (&[][..], Some(body)),
        };
        let few = few.iter().map(|&value| HistogramBucket { low: value, high: value, count: 1 });
        let many = many.into_iter().flat_map(|body| {
            let Moments { min, max, .. } = body.moments;
            body.buckets.counted().map(move |(bucket, count)| {
                let (low, high) = buckets::range_of(bucket);
                HistogramBucket { low: low.max(min), high: high.min(max), count }
            })
        });
        few.chain(many)
    }
}

impl HistogramBody {
    fn record_many(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.moments.record_many(value, count);
        self.buckets.add(buckets::bucket_of(value), count);
    }
}

/// Which value, counted from 1 in ascending order, is the quantile.
///
/// A share such as 0.07 is no binary fraction, and 0.07 x 100 comes out a bit above 7; such products count as whole.
fn rank(share: f64, count: u64) -> Option<u64> {
    if count == 0 || share.is_nan() {
        return None;
    }
    let position = share.clamp(0.0, 1.0) * count as f64;
    let whole = position.round();
    let nearly_whole = (position - whole).abs() <= position * (4.0 * f64::EPSILON);
    let rank = if nearly_whole { whole } else { position.ceil() };
    Some((rank as u64).clamp(1, count))
}

impl Merge for Histogram {
    fn merge(&mut self, later: Self) {
        if self.is_empty() {
            *self = later;
        } else {
            self.merge_from(&later);
        }
    }

    fn merge_from(&mut self, later: &Self) {
        match &later.form {
            HistogramForm::Few { .. } => later.few().iter().for_each(|&value| self.record(value)),
            HistogramForm::Many(body) => {
                let own = self.many();
                own.moments.merge(&body.moments);
                own.buckets.merge(&body.buckets);
            }
        }
    }
}

impl Weight for Histogram {
    fn weight(&self) -> usize {
        match &self.form {
            HistogramForm::Few { .. } => 0,
            HistogramForm::Many(body) => size_of::<HistogramBody>() + body.buckets.weight(),
        }
    }
}

/// Equal if the same figures come out of both, whatever the order and grouping in which they were recorded.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        match (&self.form, &other.form) {
            (HistogramForm::Few { .. }, HistogramForm::Few { .. }) => self.few() == other.few(),
            (HistogramForm::Many(own), HistogramForm::Many(others)) => {
                own.moments == others.moments && own.buckets.counted().eq(others.buckets.counted())
            }
            _ => false,
        }
    }
}

impl Eq for Histogram {}

#[cfg(test)]
mod tests;
