//! Numbers over time, as values of tracks: how many threads run, what a counter of a program says.
//!
//! A number lasts until another one follows, as a state does, and has the same cells: how often it begins in a bucket, and how long it
//! lasts there. So the least, the greatest and the last number of a bucket are known, and what it is on average. What has many values is
//! thinned otherwise than states are: what is between the least and the greatest number of a bucket becomes one number that lasts
//! as long as all of them, and is what they are on average.
//!
//! ```text
//! a bucket's cells    3 begins    5 ... 6 ... 7 ... 5 ...    9 once    4 lasts
//! thinned             3           5.8, as long as all of these    9         4
//! ```

use hashbrown::HashMap;

use super::cells::{Cell, Level, last};
use super::changes::{Change, Sequel, To};

/// Instead of how many values of a bucket are told apart: they are numbers, and thinned as such.
pub const MOST: usize = usize::MAX - 1;
/// Values that numbers are thinned to, beside those that last longer than the bucket.
const KEPT: usize = 3;
/// Integers up to here stand for themselves; a double has each of them.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// What a number is in a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The bucket.
    pub bucket: u64,
    /// How often it changes.
    pub changes: u32,
    /// The least that it is; what it is before the bucket, too.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// What it is at the end.
    pub last: f64,
    /// What it is on average, as long as it is anything.
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
pub fn buckets(cells: &[Cell], level: Level, carry: Option<u64>) -> impl Iterator<Item = Bucket> {
    let mut carry = carry;
    cells.chunk_by(|a, b| a.bucket == b.bucket).filter_map(move |of_bucket| {
        let before = carry;
        carry = last(of_bucket, carry);
        bucket(of_bucket, level, before, carry)
    })
}

fn bucket(cells: &[Cell], level: Level, carry: Option<u64>, last: Option<u64>) -> Option<Bucket> {
    let width = 1i64 << level;
    let is_carry = |cell: &&Cell| carry == Some(cell.value);
    // What has no cell lasts as long as the bucket.
    let whole = carry.filter(|_| !cells.iter().any(|cell| is_carry(&cell)));
    let whole = whole.map(|carry| Cell { value: carry, time: width, ..Cell::default() });
    let all = cells.iter().map(|cell| Cell { time: cell.time + if is_carry(&cell) { width } else { 0 }, ..*cell });
    let (mut min, mut max, mut sum, mut time, mut changes) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0, 0u32);
    for cell in all.chain(whole) {
        let now = number(cell.value);
        // Of what lasts but a moment, the time may be lost.
        if cell.begins > 0 || cell.time > 0 || is_carry(&&cell) {
            (min, max) = (min.min(now), max.max(now));
        }
        let lasts = cell.time.max(0) as f64;
        (sum, time) = (sum + now * lasts, time + lasts);
        changes = changes.saturating_add(cell.begins);
    }
    let last = number(last?);
    let mean = if time > 0.0 { (sum / time).clamp(min, max) } else { last };
    (min <= max).then_some(Bucket { bucket: cells[0].bucket, changes, min, max, last, mean })
}

/// Leaves of each bucket, of cells that were added up, the least and the greatest number and all that last longer than it; the rest becomes one.
pub(super) fn thin(cells: &mut Vec<Cell>) {
    let thinned = cells.chunk_by(|a, b| a.bucket == b.bucket).flat_map(thinned).collect();
    *cells = thinned;
}

fn thinned(cells: &[Cell]) -> Vec<Cell> {
    let (lasting, mut passing): (Vec<Cell>, Vec<Cell>) = cells.iter().copied().partition(Cell::stays);
    if passing.len() <= KEPT {
        return cells.to_vec();
    }
    passing.sort_by(|a, b| number(a.value).total_cmp(&number(b.value)));
    let (least, rest) = passing.split_first().expect("there are more");
    let (greatest, rest) = rest.split_last().expect("there are more");
    let mut kept: Vec<Cell> = [lasting, vec![*least, *greatest, average(rest)]].concat();
    super::cells::add_up(&mut kept);
    kept
}

/// One cell for several: its number is what they are on average, by how long they last, or how often they begin.
fn average(cells: &[Cell]) -> Cell {
    let mut all = Cell { bucket: cells[0].bucket, ..Cell::default() };
    cells.iter().for_each(|cell| all.add(cell));
    let weight = |cell: &Cell| if all.time > 0 { cell.time.max(0) as f64 } else { f64::from(cell.begins) };
    let sum: f64 = cells.iter().map(weight).sum();
    let middle = cells.iter().map(|cell| number(cell.value) * (weight(cell) / sum)).sum();
    Cell { value: value(middle), ..all }
}

/// How many things there are at a time, from when each of them begins and ends.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// In any order.
    pub(super) begins: Vec<i64>,
    pub(super) ends: Vec<i64>,
}

impl Tally {
    pub(super) fn is_empty(&self) -> bool {
        self.begins.is_empty() && self.ends.is_empty()
    }

    /// How many more there are behind all than before.
    pub(super) fn net(&self) -> i64 {
        self.begins.len() as i64 - self.ends.len() as i64
    }

    /// How many there are since when, if there are so many before; a time at which as many begin as end is none.
    pub(super) fn sequel(mut self, key: u64, before: i64) -> Sequel {
        // They come in about the order of time.
        self.begins.sort();
        self.ends.sort();
        let (mut begins, mut ends) = (&self.begins[..], &self.ends[..]);
        let (mut now, mut changes) = (before, Vec::with_capacity(begins.len()));
        while let Some(&time) = begins.first().into_iter().chain(ends.first()).min() {
            let step = drop_at(&mut begins, time) - drop_at(&mut ends, time);
            now += step;
            if step != 0 {
                changes.push(Change { time, key, to: To::Value(value(now as f64)) });
            }
        }
        Sequel { changes, before: HashMap::from([(key, Some(value(before as f64)))]) }
    }
}

/// Leaves out those that are at a time; how many these are.
fn drop_at(times: &mut &[i64], at: i64) -> i64 {
    let count = times.iter().take_while(|time| **time == at).count();
    *times = &times[count..];
    count as i64
}

#[cfg(test)]
mod tests;
