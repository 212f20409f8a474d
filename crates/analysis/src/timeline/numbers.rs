//! Numbers over time, as values of tracks: how many threads run, the values of a program's counter.
//!
//! A number lasts until another one follows, as a state does, and has the same cells: how often it
//! begins in a bucket, and how long it lasts there. So the least, the greatest and the last number
//! of a bucket are known, and its average. Tracks with many values are thinned: see `thinning`.

use super::cells::{Level, TrackCell, last};

/// Integers up to here stand for themselves; a double has each of them.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A number in a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberBucket {
    /// The bucket.
    pub bucket: u64,
    /// How often it changes.
    pub changes: u32,
    /// The minimum; the value before the bucket counts, too.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The value at the end.
    pub last: f64,
    /// The average, as long as there is a value.
    pub mean: f64,
}

/// A number as a track's value: integers are even and small where they are, of others the last bit is lost.
#[must_use]
pub fn value(number: f64) -> u64 {
    if number.abs() <= WHOLE_MAX && number.fract() == 0.0 {
        let whole = number as i64;
        ((whole << 1) ^ (whole >> 63)).cast_unsigned() << 1
    } else {
        number.to_bits() | 1
    }
}

/// The number that a value is.
#[must_use]
pub fn number(value: u64) -> f64 {
    if value & 1 == 0 {
        let whole = value >> 1;
        ((whole >> 1).cast_signed() ^ -(whole & 1).cast_signed()) as f64
    } else {
        f64::from_bits(value & !1)
    }
}

/// The buckets of a level in which a number changes, of the cells of a track that were added up. `carry`: the value before the first one.
pub fn buckets(cells: &[TrackCell], level: Level, carry: Option<u64>) -> impl Iterator<Item = NumberBucket> {
    let mut carry = carry;
    cells.chunk_by(|a, b| a.bucket == b.bucket).filter_map(move |of_bucket| {
        let before = carry;
        carry = last(of_bucket, carry);
        bucket(of_bucket, level, before, carry)
    })
}

fn bucket(cells: &[TrackCell], level: Level, carry: Option<u64>, last: Option<u64>) -> Option<NumberBucket> {
    let width = 1i64 << level;
    let is_carry = |cell: &&TrackCell| carry == Some(cell.value);
    // A value without a cell lasts as long as the bucket.
    let whole = carry.filter(|_| !cells.iter().any(|cell| is_carry(&cell)));
    let whole = whole.map(|carry| TrackCell { value: carry, time: width, ..TrackCell::default() });
    let all = cells.iter().map(|cell| TrackCell { time: cell.time + if is_carry(&cell) { width } else { 0 }, ..*cell });
    let (mut min, mut max, mut sum, mut time, mut changes) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0, 0u32);
    for cell in all.chain(whole) {
        let now = number(cell.value);
        // The duration of a very short value may be lost.
        if cell.begins > 0 || cell.time > 0 || is_carry(&&cell) {
            (min, max) = (min.min(now), max.max(now));
        }
        let lasts = cell.time.max(0) as f64;
        (sum, time) = (sum + now * lasts, time + lasts);
        changes = changes.saturating_add(cell.begins);
    }
    let last = number(last?);
    let mean = if time > 0.0 { (sum / time).clamp(min, max) } else { last };
    (min <= max).then_some(NumberBucket { bucket: cells[0].bucket, changes, min, max, last, mean })
}

#[cfg(test)]
mod tests;
