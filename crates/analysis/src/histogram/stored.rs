//! A histogram as bytes, and back from untrusted bytes.
//!
//! Equal histograms have equal bytes: values and buckets ascend, and derived data is left out.
//! Reading checks everything that the rest relies on, and takes memory in proportion to the bytes
//! that it has read.

use super::buckets::{BUCKETS, Buckets, range_of};
use super::moments::{Moments, Squares};
use super::{FEW, Histogram, HistogramBody, HistogramForm};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
enum StoredHistogram {
    /// The values, ascending.
    Few(Vec<u64>),
    Many {
        sum: u128,
        /// The sum of squares: bits from 128 on, and below.
        squares: (u64, u128),
        min: u64,
        max: u64,
        /// How far each bucket is behind the one before (the first: behind 0), and its count.
        buckets: Vec<(u16, u64)>,
    },
}

/// Why bytes are no histogram.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum HistogramFault {
    #[error("a histogram of {0} values has no buckets before it has more than {FEW}")]
    Form(u64),
    #[error("value {value} of a histogram comes after {before}; they ascend")]
    ValueOrder { before: u64, value: u64 },
    #[error("a histogram's bucket is {step} behind bucket {before}; there are {BUCKETS}, and each comes once")]
    BucketOrder { before: u16, step: u16 },
    #[error("a histogram's bucket {0} is listed without a value in it")]
    EmptyBucket(u16),
    #[error("a histogram's minimum {min} and maximum {max} do not lie in its first and last bucket ({first}, {last})")]
    Edges { min: u64, max: u64, first: u16, last: u16 },
    #[error("a histogram's sum is {found}, but its buckets add up to {low} at least and {high} at most")]
    Sum { found: u128, low: u128, high: u128 },
    #[error("a histogram's sum of squares is not one that its buckets allow")]
    Squares,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = match &self.form {
            HistogramForm::Few { .. } => StoredHistogram::Few(self.few().to_vec()),
            HistogramForm::Many(body) => {
                let Moments { sum, squares, min, max, .. } = body.moments;
                let mut before = 0;
                let step = |(bucket, count)| (bucket - std::mem::replace(&mut before, bucket), count);
                let squares = (squares.high, squares.low);
                StoredHistogram::Many { sum, squares, min, max, buckets: body.buckets.counted().map(step).collect() }
            }
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(StoredHistogram::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl TryFrom<StoredHistogram> for Histogram {
    type Error = HistogramFault;

    fn try_from(stored: StoredHistogram) -> Result<Self, HistogramFault> {
        match stored {
            StoredHistogram::Few(values) => few(&values),
            StoredHistogram::Many { sum, squares, min, max, buckets } => {
                let (buckets, bounds) = restored_buckets(&buckets)?;
                let BucketBounds { count, first, last, .. } = bounds;
                if count <= FEW as u64 {
                    return Err(HistogramFault::Form(count));
                }
                if !within(first, min) || !within(last, max) || min > max {
                    return Err(HistogramFault::Edges { min, max, first, last });
                }
                let squares = Squares { high: squares.0, low: squares.1 };
                bounds.check(sum, squares)?;
                let moments = Moments { count, sum, squares, min, max };
                Ok(Self { form: HistogramForm::Many(Box::new(HistogramBody { moments, buckets })) })
            }
        }
    }
}

fn few(values: &[u64]) -> Result<Histogram, HistogramFault> {
    if values.len() > FEW {
        return Err(HistogramFault::Form(values.len() as u64));
    }
    if let Some(pair) = values.windows(2).find(|pair| pair[0] > pair[1]) {
        return Err(HistogramFault::ValueOrder { before: pair[0], value: pair[1] });
    }
    let mut histogram = Histogram::default();
    values.iter().for_each(|&value| histogram.record(value));
    Ok(histogram)
}

fn within(bucket: u16, value: u64) -> bool {
    let (low, high) = range_of(bucket);
    (low..=high).contains(&value)
}

/// Bounds of the stored sums, computed from the buckets.
struct BucketBounds {
    count: u64,
    first: u16,
    last: u16,
    /// If all values were the first, or the last, of their buckets.
    sum: [u128; 2],
    squares: [Squares; 2],
}

impl BucketBounds {
    fn check(&self, sum: u128, squares: Squares) -> Result<(), HistogramFault> {
        if self.count == u64::MAX {
            // The count is saturated, so the buckets hold fewer values than were recorded.
            return Ok(());
        }
        let [low, high] = self.sum;
        if !(low..=high).contains(&sum) {
            return Err(HistogramFault::Sum { found: sum, low, high });
        }
        let [low, high] = self.squares;
        if (low..=high).contains(&squares) { Ok(()) } else { Err(HistogramFault::Squares) }
    }
}

fn restored_buckets(stored: &[(u16, u64)]) -> Result<(Buckets, BucketBounds), HistogramFault> {
    let mut buckets = Buckets::default();
    let mut bounds = BucketBounds { count: 0, first: 0, last: 0, sum: [0; 2], squares: [Squares::default(); 2] };
    for (position, &(step, count)) in stored.iter().enumerate() {
        let before = bounds.last;
        let bucket = before.checked_add(step).filter(|&bucket| bucket < BUCKETS && (step > 0 || position == 0));
        let bucket = bucket.ok_or(HistogramFault::BucketOrder { before, step })?;
        if count == 0 {
            return Err(HistogramFault::EmptyBucket(bucket));
        }
        if position == 0 {
            bounds.first = bucket;
        }
        bounds.last = bucket;
        bounds.count = bounds.count.saturating_add(count);
        let (low, high) = range_of(bucket);
        for (side, value) in [low, high].into_iter().enumerate() {
            let value = u128::from(value);
            bounds.sum[side] = bounds.sum[side].saturating_add(value * u128::from(count));
            bounds.squares[side] = bounds.squares[side].plus(Squares::product(value * value, count));
        }
        buckets.add(bucket, count);
    }
    Ok((buckets, bounds))
}
