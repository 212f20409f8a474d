//! Cells as bytes.
//!
//! ```text
//! states         (step to the bucket, begins, net)  value  time            three to five bytes
//! instants       step to the bucket, how many  │  value, how often  │ ...  two bytes each
//! ```
//!
//! Numbers take seven bits a byte. Times are whole units: see [`unit`].

use super::super::cells::{Level, OTHERS, TrackCell};

/// Times are kept in units of `1 << unit(level)` nanoseconds: a 64th of a bucket.
pub(super) fn unit(level: Level) -> u32 {
    u32::from(level.saturating_sub(6))
}

/// Buckets of any level that there may be: their times fit into 64 bits at every level that is wider.
pub(super) const BUCKETS_MAX: u64 = 1 << 62;

/// A number that does not fit into two bits of a cell's head stands behind it.
pub(super) const MANY: u32 = 3;

pub(super) fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[inline]
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// How a value is written, in its lowest bits: as it is; its upper half, with zeros or ones below; or something else.
const PLAIN: u64 = 0;
const UPPER: u64 = 1;
const UPPER_ONES: u64 = 2;
const ELSE: u64 = 3;
/// Something else: [`OTHERS`], or the value stands behind.
const ELSE_OTHERS: u64 = ELSE;
const ELSE_BEHIND: u64 = 1 << 2 | ELSE;
/// The lower half of a value.
const LOWER: u64 = 0xffff_ffff;

/// Values are small numbers, or have their number in the upper half.
#[inline]
pub(super) fn put_value(bytes: &mut Vec<u8>, value: u64) {
    match value {
        OTHERS => put(bytes, ELSE_OTHERS),
        _ if value & LOWER == LOWER => put(bytes, value >> 32 << 2 | UPPER_ONES),
        _ if value & LOWER == 0 && value != 0 => put(bytes, value >> 32 << 2 | UPPER),
        _ if value >> 62 == 0 => put(bytes, value << 2 | PLAIN),
        _ => {
            put(bytes, ELSE_BEHIND);
            put(bytes, value);
        }
    }
}

#[inline]
pub(super) fn take_value(bytes: &mut &[u8]) -> Option<u64> {
    let head = take(bytes)?;
    match head & 3 {
        PLAIN => Some(head >> 2),
        UPPER => Some(head >> 2 << 32),
        UPPER_ONES => Some(head >> 2 << 32 | LOWER),
        _ if head == ELSE_OTHERS => Some(OTHERS),
        _ if head == ELSE_BEHIND => take(bytes),
        _ => None,
    }
}

/// Whether these are of things that take no time.
pub(super) fn are_plain(cells: &[TrackCell]) -> bool {
    cells.iter().all(|cell| cell.net == 0 && cell.time == 0)
}

/// Cells in their order, each bucket and value once; no bucket is before `base`.
pub(super) fn write(bytes: &mut Vec<u8>, cells: &[TrackCell], (level, base, is_plain): (Level, u64, bool)) {
    let mut before = base;
    if !is_plain {
        let unit = unit(level);
        cells.iter().for_each(|cell| write_lasting(bytes, cell, (&mut before, unit)));
        return;
    }
    for cells in cells.chunk_by(|a, b| a.bucket == b.bucket) {
        put(bytes, cells[0].bucket - before);
        before = cells[0].bucket;
        put(bytes, cells.len() as u64);
        let mut value = 0;
        for cell in cells {
            put_value(bytes, step_of(cell.value, value));
            value = cell.value;
            put(bytes, cell.begins.into());
        }
    }
}

/// From one value of a bucket to the next, of instants.
pub(super) fn step_of(value: u64, before: u64) -> u64 {
    if value == OTHERS { OTHERS } else { value.wrapping_sub(before) }
}

/// The value behind such a step.
pub(super) fn value_of(step: u64, before: u64) -> u64 {
    if step == OTHERS { OTHERS } else { before.wrapping_add(step) }
}

/// The head of a cell of a state: of almost all the net is 0, 1 or -1, and many begin once or
/// never.
pub(super) fn head_of(step: u64, begins: u32, net: u64) -> u64 {
    step << 4 | u64::from(begins.min(MANY)) << 2 | net.min(MANY.into())
}

fn write_lasting(bytes: &mut Vec<u8>, cell: &TrackCell, (before, unit): (&mut u64, u32)) {
    let step = cell.bucket - std::mem::replace(before, cell.bucket);
    let net = zigzag(cell.net.into());
    put(bytes, head_of(step, cell.begins, net));
    put_value(bytes, cell.value);
    if cell.begins >= MANY {
        put(bytes, u64::from(cell.begins - MANY));
    }
    if net >= MANY.into() {
        put(bytes, net);
    }
    put(bytes, zigzag(cell.time >> unit));
}

/// Cells that were written. Unwritten bytes end them.
#[derive(Clone, Debug)]
pub(super) struct EncodedCells<'a> {
    bytes: &'a [u8],
    level: Level,
    is_plain: bool,
    bucket: u64,
    /// Values of the bucket that follow, and the one before them.
    left: u64,
    value: u64,
}

impl<'a> EncodedCells<'a> {
    pub(super) fn new(bytes: &'a [u8], (level, base, is_plain): (Level, u64, bool)) -> Self {
        Self { bytes, level, is_plain, bucket: base, left: 0, value: 0 }
    }

    fn step(&mut self, step: u64) -> Option<()> {
        self.bucket = self.bucket.checked_add(step).filter(|bucket| *bucket < BUCKETS_MAX)?;
        Some(())
    }

    fn plain(&mut self) -> Option<TrackCell> {
        while self.left == 0 {
            let step = take(&mut self.bytes)?;
            self.step(step)?;
            self.left = take(&mut self.bytes)?;
            self.value = 0;
        }
        self.left -= 1;
        self.value = value_of(take_value(&mut self.bytes)?, self.value);
        let begins = u32::try_from(take(&mut self.bytes)?).ok()?;
        Some(TrackCell { bucket: self.bucket, value: self.value, begins, net: 0, time: 0 })
    }

    fn lasting(&mut self) -> Option<TrackCell> {
        let bytes = &mut self.bytes;
        let head = take(bytes)?;
        let value = take_value(bytes)?;
        let begins = match head >> 2 & 3 {
            few if few < MANY.into() => few as u32,
            _ => u32::try_from(take(bytes)?.checked_add(MANY.into())?).ok()?,
        };
        let net = if head & 3 < MANY.into() { head & 3 } else { take(bytes)? };
        let net = i32::try_from(unzigzag(net)).ok()?;
        let time = unzigzag(take(bytes)?).checked_mul(1 << unit(self.level))?;
        self.step(head >> 4)?;
        Some(TrackCell { bucket: self.bucket, value, begins, net, time })
    }
}

impl Iterator for EncodedCells<'_> {
    type Item = TrackCell;

    #[inline]
    fn next(&mut self) -> Option<TrackCell> {
        if self.bytes.is_empty() {
            return None;
        }
        let cell = if self.is_plain { self.plain() } else { self.lasting() };
        if cell.is_none() {
            self.bytes = &[];
        }
        cell
    }
}
