//! The changes of a track in a bucket of time, so that buckets add up.
//!
//! ```text
//! bucket          │          ·················· │      value 7 begins here: begins 1, net +1, time = dots
//! value 9 ─────────────────┐ ·················· │      value 9 ends here:            net -1, time = -dots
//! value 7         │        └──────────────────────
//! ```
//!
//! A cell says how often a value begins in a bucket, how often more than it ends, and how much
//! longer it lasts up to the bucket's end because of that. A value that lasts through a bucket has
//! no cell in it: the reader knows the value before, and adds the bucket's width for it. So cells
//! of neighboring spans of time, cut anywhere, add up to those of both, and those of two buckets to
//! that of a wider one; values that do not change cost nothing.

/// The changes of one value in one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrackCell {
    /// The bucket: its number, counted from the timeline's origin in widths of its level.
    pub bucket: u64,
    /// The value; the track says its meaning.
    pub value: u64,
    /// How often it begins. Of instants: how often they happen.
    pub begins: u32,
    /// How often more it begins than it ends.
    pub net: i32,
    /// How much longer it lasts in the bucket, in nanoseconds, than the value at the bucket's begin
    /// says.
    pub time: i64,
}

/// Widths of buckets: so many nanoseconds are `1 << level`.
pub type Level = u8;

/// The widest level: a bucket holds all times.
pub const LEVEL_MAX: Level = 62;

/// The value of all that nodes do not tell apart: see `thinning`.
pub const OTHERS: u64 = u64::MAX - 1;

/// The same of values at rest, so that the sum of all others stays true.
pub const OTHERS_AT_REST: u64 = u64::MAX - 2;

/// Whether a value stands for several.
#[must_use]
pub fn is_several(value: u64) -> bool {
    matches!(value, OTHERS | OTHERS_AT_REST)
}

/// Adds up cells of the same bucket and value; afterwards they are in this order.
pub fn add_up(cells: &mut Vec<TrackCell>) {
    // Cells come in the order of buckets, or almost: then only those of each bucket have to be put in order.
    if cells.is_sorted_by_key(|cell| cell.bucket) {
        let mut rest = &mut cells[..];
        while let Some(first) = rest.first() {
            let bucket = first.bucket;
            let count = rest.iter().position(|cell| cell.bucket != bucket).unwrap_or(rest.len());
            let (of_bucket, behind) = rest.split_at_mut(count);
            of_bucket.sort_unstable_by_key(|cell| cell.value);
            rest = behind;
        }
    } else {
        cells.sort_unstable_by_key(|cell| (cell.bucket, cell.value));
    }
    cells.dedup_by(|next, sum| {
        let is_same = (next.bucket, next.value) == (sum.bucket, sum.value);
        if is_same {
            sum.add(next);
        }
        is_same
    });
    cells.retain(|cell| cell.begins != 0 || cell.net != 0 || cell.time != 0);
}

impl TrackCell {
    /// Whether the bucket's begin or end has the value: without its cell, the bucket would seem to
    /// have another value. One that is there at both ends and is interrupted lasts less long than a
    /// reader without the cell would think.
    #[must_use]
    pub fn stays(&self) -> bool {
        (self.net != 0 || self.time < 0) && !is_several(self.value)
    }

    /// Adds the changes of the same value in the same bucket; only cells that the writer never made
    /// reach the limits of numbers.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        self.begins = self.begins.saturating_add(other.begins);
        self.net = self.net.wrapping_add(other.net);
        self.time = self.time.wrapping_add(other.time);
    }

    /// Its share of the bucket of a wider level that it lies in.
    #[must_use]
    pub fn widened(self, from: Level, to: Level) -> Self {
        let bucket = self.bucket >> (to - from);
        let ends = (((bucket + 1) << (to - from)) - (self.bucket + 1)) << from;
        // Only cells that nobody wrote wrap.
        let behind = i64::from(self.net).wrapping_mul(ends.cast_signed());
        Self { bucket, time: self.time.wrapping_add(behind), ..self }
    }
}

/// The values that cover a bucket: the data that a viewer needs to draw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackBucket {
    /// Its number.
    pub bucket: u64,
    /// The value that covers most of it, and how many nanoseconds; of two alike the lower value. Where none
    /// covers any of it, one that begins and ends at once, and 0.
    pub first: Option<(u64, u64)>,
    /// The value that covers most of the rest.
    pub second: Option<(u64, u64)>,
    /// The value at its end.
    pub last: Option<u64>,
    /// How many values begin in it.
    pub begins: u32,
    /// How many nanoseconds all values cover that are not at rest, and the one that covers most of
    /// them.
    pub busy: u64,
    /// See `busy`.
    pub busiest: Option<(u64, u64)>,
}

/// The buckets of a level in which something changes, of the cells of a track in the order of buckets. `carry`: the value before the first one.
/// `is_rest`: whether a value means that nothing is done.
pub fn buckets(
    cells: &[TrackCell],
    level: Level,
    carry: Option<u64>,
    is_rest: impl Fn(u64) -> bool,
) -> impl Iterator<Item = TrackBucket> {
    let mut carry = carry;
    cells.chunk_by(|a, b| a.bucket == b.bucket).map(move |cells| {
        let bucket = covered(cells, level, carry, &is_rest);
        carry = bucket.last;
        bucket
    })
}

/// What covers a bucket that begins with a value.
fn covered(cells: &[TrackCell], level: Level, carry: Option<u64>, is_rest: &impl Fn(u64) -> bool) -> TrackBucket {
    let mut all = TrackBucket { bucket: cells[0].bucket, last: carry, ..TrackBucket::default() };
    let width = 1i64 << level;
    let mut add = |value: u64, time: i64| {
        let held = (value, time.max(0).cast_unsigned());
        let is_more = |than: Option<(u64, u64)>| than.is_none_or(|(_, most)| held.1 > most);
        if held.1 == 0 {
            return;
        }
        if !is_rest(value) {
            all.busy += held.1;
            if is_more(all.busiest) {
                all.busiest = Some(held);
            }
        }
        if is_more(all.first) {
            all.second = all.first.replace(held);
        } else if is_more(all.second) {
            all.second = Some(held);
        }
    };
    let mut is_carried = carry.is_none();
    for cell in cells {
        // Values come in their order, so that equal shares have the same winner wherever the bucket was cut.
        if let Some(carry) = carry.filter(|carry| !is_carried && *carry < cell.value) {
            add(carry, width);
            is_carried = true;
        }
        let is_it = carry == Some(cell.value);
        is_carried |= is_it;
        add(cell.value, cell.time.saturating_add(if is_it { width } else { 0 }));
    }
    if let Some(carry) = carry.filter(|_| !is_carried) {
        add(carry, width);
    }
    // Values without a duration cover nothing. They are drawn where nothing else is.
    all.first = all.first.or_else(|| cells.iter().find(|cell| cell.begins > 0).map(|cell| (cell.value, 0)));
    all.begins = cells.iter().fold(0, |sum, cell| sum.saturating_add(cell.begins));
    all.last = last(cells, carry);
    all
}

/// The value at the end of cells, of one bucket or of several, that begin with a value.
#[must_use]
pub fn last(cells: &[TrackCell], carry: Option<u64>) -> Option<u64> {
    let mut now = carry;
    for of_bucket in cells.chunk_by(|a, b| a.bucket == b.bucket) {
        let net = |value: u64| of_bucket.iter().find(|cell| cell.value == value).map_or(0, |cell| cell.net);
        let is_over = now.is_some_and(|now| net(now) < 0);
        match of_bucket.iter().find(|cell| cell.net > 0) {
            Some(begun) => now = Some(begun.value),
            None if is_over => now = None,
            None => {}
        }
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// A value from when to when, in buckets of a level.
    fn run(cells: &mut Vec<TrackCell>, level: Level, (begin, end): (u64, u64), value: u64) {
        for (at, begins, net) in [(begin, 1, 1), (end, 0, -1)] {
            let bucket = at >> level;
            let rest = (((bucket + 1) << level) - at).cast_signed();
            cells.push(TrackCell { bucket, value, begins, net, time: i64::from(net) * rest });
        }
    }

    /// Random runs one after the other, some with gaps.
    fn runs(random: &mut Random) -> Vec<((u64, u64), u64)> {
        let mut at = random.below(20) as u64;
        let run = |_| {
            let (begin, length) =
                (at + (random.below(4) as u64 / 3) * random.below(30) as u64, 1 + random.below(40) as u64);
            at = begin + length;
            ((begin, at), random.below(4) as u64)
        };
        (0..40).map(run).collect()
    }

    /// How long each value is in a span, counted nanosecond by nanosecond.
    fn direct(runs: &[((u64, u64), u64)], span: (u64, u64)) -> Vec<(u64, u64)> {
        let mut sums = [0; 4];
        for at in span.0..span.1 {
            for ((begin, end), value) in runs {
                sums[*value as usize] += u64::from(*begin <= at && at < *end);
            }
        }
        let mut held: Vec<(u64, u64)> = (0..4).zip(sums).filter(|(_, sum)| *sum > 0).collect();
        held.sort_by_key(|&(value, sum)| (std::cmp::Reverse(sum), value));
        held
    }

    fn at(runs: &[((u64, u64), u64)], time: u64) -> Option<u64> {
        runs.iter().find(|((begin, end), _)| *begin <= time && time < *end).map(|run| run.1)
    }

    #[test]
    fn a_value_without_a_duration_is_told_where_nothing_else_is() {
        for level in 0..20 {
            let mut cells = Vec::new();
            run(&mut cells, level, (1 << 20, 1 << 20), 7);
            run(&mut cells, level, (3 << 20, 3 << 20), 9);
            run(&mut cells, level, (3 << 20, 3 << 20), 8);
            add_up(&mut cells);
            let told =
                buckets(&cells, level, None, |_| false).map(|found| (found.bucket << level, found.first, found.begins));
            assert_eq!(told.collect::<Vec<_>>(), [(1 << 20, Some((7, 0)), 1), (3 << 20, Some((8, 0)), 2)]);
            // Lasting values come first.
            let covered = buckets(&cells, level, Some(5), |_| false).map(|found| (found.first, found.last));
            assert_eq!(covered.collect::<Vec<_>>(), [(Some((5, 1 << level)), Some(5)); 2]);
        }
    }

    #[test]
    fn buckets_of_any_width_say_what_a_count_by_hand_says() {
        for seed in 0..200 {
            let random = &mut Random(seed);
            let runs = runs(random);
            let (fine, coarse) = (random.below(4) as Level, 4 + random.below(3) as Level);
            let mut cells = Vec::new();
            runs.iter().for_each(|(span, value)| run(&mut cells, fine, *span, *value));
            add_up(&mut cells);
            let mut wide: Vec<TrackCell> = cells.iter().map(|cell| cell.widened(fine, coarse)).collect();
            add_up(&mut wide);
            let mut directly = Vec::new();
            runs.iter().for_each(|(span, value)| run(&mut directly, coarse, *span, *value));
            add_up(&mut directly);
            assert_eq!(wide, directly, "{seed}");
            for bucket in buckets(&wide, coarse, None, |value| value < 2) {
                let span = (bucket.bucket << coarse, (bucket.bucket + 1) << coarse);
                let held = direct(&runs, span);
                assert_eq!(
                    (bucket.first, bucket.second),
                    (held.first().copied(), held.get(1).copied()),
                    "{seed}: {bucket:?}"
                );
                assert_eq!(bucket.last, at(&runs, span.1 - 1), "{seed}: {bucket:?}");
                let busy: Vec<(u64, u64)> = held.iter().copied().filter(|(value, _)| *value >= 2).collect();
                let all = busy.iter().map(|(_, lasts)| lasts).sum();
                assert_eq!((bucket.busy, bucket.busiest), (all, busy.first().copied()), "{seed}: {bucket:?}");
                let begun = runs.iter().filter(|((begin, _), _)| span.0 <= *begin && *begin < span.1).count();
                assert_eq!(bucket.begins as usize, begun, "{seed}");
            }
        }
    }
}
