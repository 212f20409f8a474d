//! Buckets with many values, thinned: nodes tell some values of a bucket apart, and the rest is one.
//!
//! Of states those are left that last longest or happen most often. Of numbers the least and the
//! greatest one of a bucket are left: the values between them become one number that lasts as long
//! as all of them, and is their average.
//!
//! ```text
//! a bucket's cells    3 begins    5 ... 6 ... 7 ... 5 ...    9 once    4 lasts
//! thinned             3           5.8, as long as all of these    9         4
//! ```

use super::cells::{OTHERS, OTHERS_AT_REST, TrackCell, add_up, is_several};
use super::numbers::{number, value};

/// Instead of how many values of a bucket are told apart: they are numbers, and thinned as such.
pub(super) const AS_NUMBERS: usize = usize::MAX - 1;
/// Values that numbers are thinned to, beside those that last longer than the bucket.
pub(super) const KEPT: usize = 3;

/// Leaves of each bucket, of cells that were added up, so many values: those that last longest
/// there or happen most often, and all that are there before it or behind it, see [`TrackCell::stays`].
/// The rest becomes one cell, and one for values at rest; longer values stay as they are. With [`AS_NUMBERS`] the values are
/// numbers, and the least and the greatest are left.
pub(super) fn thin(cells: &mut Vec<TrackCell>, most: usize, is_rest: impl Fn(u64) -> bool) {
    if most == AS_NUMBERS {
        return thin_numbers(cells);
    }
    let mut kept = 0;
    let mut at = 0;
    while at < cells.len() {
        let bucket = cells[at].bucket;
        let count = cells[at..].iter().position(|cell| cell.bucket != bucket).unwrap_or(cells.len() - at);
        let mut left = count;
        if count > most.saturating_add(1) {
            let of_bucket = &mut cells[at..at + count];
            of_bucket.sort_unstable_by_key(|cell| {
                std::cmp::Reverse((
                    cell.stays(),
                    !is_several(cell.value),
                    cell.time,
                    cell.begins,
                    std::cmp::Reverse(cell.value),
                ))
            });
            let lasting = of_bucket.iter().take_while(|cell| cell.stays()).count();
            left = most.max(lasting);
            let mut others =
                [OTHERS_AT_REST, OTHERS].map(|value| (0, TrackCell { bucket, value, ..TrackCell::default() }));
            for cell in &of_bucket[left..] {
                let (number, sum) = &mut others[usize::from(!is_rest(cell.value))];
                *number += 1;
                sum.add(cell);
            }
            of_bucket[..left].sort_unstable_by_key(|cell| cell.value);
            for (_, sum) in others.iter().filter(|(number, _)| *number > 0) {
                of_bucket[left] = *sum;
                left += 1;
            }
        }
        cells.copy_within(at..at + left, kept);
        kept += left;
        at += count;
    }
    cells.truncate(kept);
}

/// Leaves of each bucket, of cells that were added up, the least and the greatest number and all that last longer than it; the rest becomes one.
fn thin_numbers(cells: &mut Vec<TrackCell>) {
    let thinned = cells.chunk_by(|a, b| a.bucket == b.bucket).flat_map(thinned).collect();
    *cells = thinned;
}

fn thinned(cells: &[TrackCell]) -> Vec<TrackCell> {
    let (lasting, mut passing): (Vec<TrackCell>, Vec<TrackCell>) = cells.iter().copied().partition(TrackCell::stays);
    if passing.len() <= KEPT {
        return cells.to_vec();
    }
    passing.sort_by(|a, b| number(a.value).total_cmp(&number(b.value)));
    let (least, rest) = passing.split_first().expect("there are more");
    let (greatest, rest) = rest.split_last().expect("there are more");
    let mut kept: Vec<TrackCell> = [lasting, vec![*least, *greatest, average(rest)]].concat();
    add_up(&mut kept);
    kept
}

/// One cell for several: its number is their average, weighted by duration, or by how often they
/// begin.
fn average(cells: &[TrackCell]) -> TrackCell {
    let mut all = TrackCell { bucket: cells[0].bucket, ..TrackCell::default() };
    cells.iter().for_each(|cell| all.add(cell));
    let weight = |cell: &TrackCell| if all.time > 0 { cell.time.max(0) as f64 } else { f64::from(cell.begins) };
    let sum: f64 = cells.iter().map(weight).sum();
    let middle = cells.iter().map(|cell| number(cell.value) * (weight(cell) / sum)).sum();
    TrackCell { value: value(middle), ..all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Less is omitted than is kept, and sums stay.
    #[test]
    fn a_thinned_bucket_keeps_what_lasts_longest_and_what_stays() {
        for seed in 0..300 {
            let random = &mut Random(seed);
            let cell = |value: u64, random: &mut Random| TrackCell {
                bucket: random.below(3) as u64,
                value,
                begins: random.below(9) as u32,
                net: i32::from(random.below(12) == 0),
                time: random.below(50) as i64 - 5,
            };
            let mut all: Vec<TrackCell> = (0..40).map(|value| cell(value, random)).collect();
            add_up(&mut all);
            let (mut thinned, most) = (all.clone(), 1 + random.below(6));
            let is_rest = |value: u64| value.is_multiple_of(3) || value == OTHERS_AT_REST;
            thin(&mut thinned, most, is_rest);
            for bucket in 0..3 {
                let of = |cells: &[TrackCell]| {
                    cells.iter().copied().filter(|cell| cell.bucket == bucket).collect::<Vec<_>>()
                };
                let (all, thinned) = (of(&all), of(&thinned));
                let sums = |cells: &[TrackCell]| {
                    let begins: u32 = cells.iter().map(|cell| cell.begins).sum();
                    (
                        begins,
                        cells.iter().map(|cell| i64::from(cell.net)).sum::<i64>(),
                        cells.iter().map(|cell| cell.time).sum::<i64>(),
                    )
                };
                assert_eq!(sums(&all), sums(&thinned), "{seed}");
                let at_rest = |cells: &[TrackCell]| {
                    sums(&cells.iter().copied().filter(|cell| is_rest(cell.value)).collect::<Vec<_>>())
                };
                assert_eq!(at_rest(&all), at_rest(&thinned), "{seed}");
                let is_kept = |cell: &TrackCell| thinned.contains(cell);
                assert!(all.iter().filter(|cell| cell.stays()).all(is_kept), "{seed}");
                let left_out = all.iter().filter(|cell| !is_kept(cell)).map(|cell| cell.time).max();
                let kept =
                    thinned.iter().filter(|cell| !cell.stays() && !is_several(cell.value)).map(|cell| cell.time).min();
                assert!(left_out.zip(kept).is_none_or(|(left_out, kept)| left_out <= kept), "{seed}");
                let lasting = all.iter().filter(|cell| cell.stays()).count();
                assert!(thinned.len() <= most.max(lasting) + 2, "{seed}: {} of {most}", thinned.len());
            }
        }
    }
}
