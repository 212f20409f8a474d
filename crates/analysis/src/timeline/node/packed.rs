//! A node in a file: like values side by side, and compressed.
//!
//! ```text
//! in memory    track: (step, value, time) (step, value, time) ...     track: (step, value, time) ...
//! packed       keys │ heads │ ... │ steps step step step │ values value value │ times time time time
//! ```
//!
//! A track in memory is read by itself; in a file, steps look like steps and times like times, so that half the bytes do. Each column
//! has a table of codes of its own.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::code::{self, MANY, put, put_value, take, take_value, unit, unzigzag, zigzag};
use super::{Extra, NodeTrack, TimelineNode};
use crate::timeline::cells::{LEVEL_MAX, Level, TrackCell};

/// Higher levels take twice as long for a twentieth less.
const LEVEL: Compression = Compression::new(4);
/// Bytes of a column that gets a table of its own: it takes about a hundred.
const OWN_TABLE_BYTES: usize = 1 << 10;
/// Bytes of all columns together at most: a file that claims more was not written here.
const COLUMNS_BYTES_MAX: u64 = 1 << 30;

/// The columns, in their order. All numbers take seven bits a byte.
#[derive(Clone, Copy)]
enum NodeColumn {
    /// Steps from one track's key to the next.
    Keys,
    /// Of tracks: how many cells they have, or which nodes below have them, and the content of the
    /// columns behind.
    Heads,
    /// Last values of tracks, since when, and numbers of events.
    Extras,
    /// First buckets.
    Firsts,
    /// Of states: steps to the bucket, begins and nets. Of instants: steps to the next bucket that
    /// has cells.
    Steps,
    /// Number of cells of a bucket, of instants.
    Counts,
    Values,
    /// Counts of instants; of states, begins that do not fit into the step.
    Begins,
    /// The same of nets.
    Nets,
    Times,
}

const COLUMNS: usize = NodeColumn::Times as usize + 1;

type Columns = [Vec<u8>; COLUMNS];

/// A node's bytes.
pub(super) fn pack(node: &TimelineNode) -> Vec<u8> {
    let mut columns = Columns::default();
    let first = node.extras.iter().filter_map(|extra| extra.last).map(|last| last.1).min().unwrap_or(0);
    let mut key = 0;
    for (place, entry) in node.tracks.iter().enumerate() {
        put(&mut columns[NodeColumn::Keys as usize], entry.key - std::mem::replace(&mut key, entry.key));
        let cells: Vec<TrackCell> = node.at(place).cells(node.level).collect();
        pack_head(&mut columns, (entry, cells.len()), (node.extra(entry), first));
        pack_cells(&mut columns, &cells, (node.level, node.base, entry.is_plain));
    }
    let mut bytes = Vec::new();
    for number in [node.level.into(), node.base, zigzag(first), node.tracks.len() as u64] {
        put(&mut bytes, number);
    }
    columns.iter().for_each(|column| put(&mut bytes, column.len() as u64));
    let mut encoder = DeflateEncoder::new(bytes, LEVEL);
    let written = columns.iter().try_for_each(|column| {
        encoder.write_all(column)?;
        // The following columns get another table of codes.
        if column.len() >= OWN_TABLE_BYTES { encoder.flush() } else { Ok(()) }
    });
    written.and_then(|()| encoder.finish()).expect("memory takes all bytes")
}

fn pack_head(columns: &mut Columns, (entry, cells): (&NodeTrack, usize), (extra, first): (Extra, i64)) {
    let Extra { last, begins } = extra;
    let is_below = entry.below != 0;
    let count = if is_below { u64::from(entry.below) } else { cells as u64 };
    let marks = u64::from(is_below) << 2 | u64::from(entry.is_plain) << 1 | u64::from(last.is_some());
    put(&mut columns[NodeColumn::Heads as usize], count << 3 | marks);
    let extras = &mut columns[NodeColumn::Extras as usize];
    // Cells that are here say that themselves.
    if entry.is_plain && is_below {
        put(extras, begins);
    }
    if let Some((value, since)) = last {
        put_value(extras, value);
        put(extras, first.abs_diff(since));
    }
}

fn pack_cells(columns: &mut Columns, cells: &[TrackCell], (level, base, is_plain): (Level, u64, bool)) {
    let Some(first) = cells.first() else { return };
    let [.., firsts, steps, counts, values, begins, nets, times] = columns;
    put(firsts, first.bucket - base);
    let mut before = first.bucket;
    for of_bucket in cells.chunk_by(|a, b| is_plain && a.bucket == b.bucket) {
        let step = of_bucket[0].bucket - std::mem::replace(&mut before, of_bucket[0].bucket);
        if is_plain {
            put(steps, step);
            put(counts, of_bucket.len() as u64);
            let mut value = 0;
            for cell in of_bucket {
                put_value(values, code::step_of(cell.value, std::mem::replace(&mut value, cell.value)));
                put(begins, cell.begins.into());
            }
            continue;
        }
        let cell = &of_bucket[0];
        let net = zigzag(cell.net.into());
        put(steps, code::head_of(step, cell.begins, net));
        put_value(values, cell.value);
        if cell.begins >= MANY {
            put(begins, u64::from(cell.begins - MANY));
        }
        if net >= MANY.into() {
            put(nets, net);
        }
        put(times, zigzag(cell.time >> unit(level)));
    }
}

/// A node of bytes that [`pack`] made; `None`: they are something else.
pub(super) fn unpack(mut bytes: &[u8]) -> Option<TimelineNode> {
    let bytes = &mut bytes;
    let level = Level::try_from(take(bytes)?).ok().filter(|level| *level <= LEVEL_MAX)?;
    let base = take(bytes)?;
    let first = unzigzag(take(bytes)?);
    let count = take(bytes)?;
    let mut sizes = [0; COLUMNS];
    for size in &mut sizes {
        *size = take(bytes)?;
    }
    let all = sizes.iter().try_fold(0u64, |all, size| all.checked_add(*size))?;
    if all > COLUMNS_BYTES_MAX {
        return None;
    }
    let mut unpacked = Vec::new();
    let mut decoder = DeflateDecoder::new(*bytes);
    decoder.by_ref().take(all).read_to_end(&mut unpacked).ok()?;
    // All of the bytes are needed, and nothing else is there.
    let is_whole = unpacked.len() as u64 == all && decoder.read(&mut [0]).ok()? == 0;
    if !is_whole || decoder.total_in() != bytes.len() as u64 {
        return None;
    }
    let mut rest = &unpacked[..];
    let columns = sizes.map(|size| rest.split_off(..size as usize).unwrap_or_default());
    let mut reading = ColumnReaders { columns, level, base, first };
    // As many as there are keys, so that a number alone takes no memory.
    let count =
        usize::try_from(count).ok().filter(|count| *count <= reading.columns[NodeColumn::Keys as usize].len())?;
    let mut node = TimelineNode::new(level, base);
    node.tracks.reserve_exact(count);
    let (mut key, mut cells) = (0u64, Vec::new());
    for _ in 0..count {
        key = key.checked_add(reading.take(NodeColumn::Keys)?)?;
        reading.track(&mut node, key, &mut cells)?;
    }
    node.bytes.shrink_to_fit();
    reading.columns.iter().all(|column| column.is_empty()).then_some(node)
}

/// Columns with their first value still unread.
struct ColumnReaders<'a> {
    columns: [&'a [u8]; COLUMNS],
    level: Level,
    base: u64,
    first: i64,
}

impl ColumnReaders<'_> {
    fn take(&mut self, column: NodeColumn) -> Option<u64> {
        take(&mut self.columns[column as usize])
    }

    fn take_value(&mut self, column: NodeColumn) -> Option<u64> {
        take_value(&mut self.columns[column as usize])
    }

    fn track(&mut self, node: &mut TimelineNode, key: u64, cells: &mut Vec<TrackCell>) -> Option<()> {
        let head = self.take(NodeColumn::Heads)?;
        let (count, is_below, is_plain, has_last) = (head >> 3, head & 4 != 0, head & 2 != 0, head & 1 != 0);
        cells.clear();
        let (mut below, mut begins) = (0, 0);
        if is_below {
            below = u8::try_from(count).ok().filter(|below| *below != 0)?;
            begins = if is_plain { self.take(NodeColumn::Extras)? } else { 0 };
        } else if is_plain {
            self.plain(count, cells)?;
            begins = cells.iter().map(|cell| u64::from(cell.begins)).sum();
        } else {
            self.lasting(count, cells)?;
        }
        let last = match has_last {
            true => Some((
                self.take_value(NodeColumn::Extras)?,
                self.first.checked_add_unsigned(self.take(NodeColumn::Extras)?)?,
            )),
            false => None,
        };
        code::write(&mut node.bytes, cells, (self.level, self.base, is_plain));
        u32::try_from(node.bytes.len()).ok()?;
        node.enter((key, is_plain), below, Extra { last, begins });
        Some(())
    }

    fn first_bucket(&mut self) -> Option<u64> {
        self.base.checked_add(self.take(NodeColumn::Firsts)?).filter(|bucket| *bucket < code::BUCKETS_MAX)
    }

    fn step(&mut self, bucket: u64, step: u64) -> Option<u64> {
        bucket.checked_add(step).filter(|bucket| *bucket < code::BUCKETS_MAX)
    }

    fn plain(&mut self, count: u64, cells: &mut Vec<TrackCell>) -> Option<()> {
        if count == 0 {
            return Some(());
        }
        let mut bucket = self.first_bucket()?;
        while (cells.len() as u64) < count {
            let step = self.take(NodeColumn::Steps)?;
            bucket = self.step(bucket, step)?;
            let of_bucket = self.take(NodeColumn::Counts)?;
            if of_bucket == 0 || of_bucket > count - cells.len() as u64 {
                return None;
            }
            let mut value = 0;
            for _ in 0..of_bucket {
                value = code::value_of(self.take_value(NodeColumn::Values)?, value);
                let begins = u32::try_from(self.take(NodeColumn::Begins)?).ok()?;
                cells.push(TrackCell { bucket, value, begins, net: 0, time: 0 });
            }
        }
        Some(())
    }

    fn lasting(&mut self, count: u64, cells: &mut Vec<TrackCell>) -> Option<()> {
        if count == 0 {
            return Some(());
        }
        let mut bucket = self.first_bucket()?;
        for _ in 0..count {
            let head = self.take(NodeColumn::Steps)?;
            bucket = self.step(bucket, head >> 4)?;
            let value = self.take_value(NodeColumn::Values)?;
            let many = u64::from(MANY);
            let begins =
                if head >> 2 & 3 < many { head >> 2 & 3 } else { self.take(NodeColumn::Begins)?.checked_add(many)? };
            let net = if head & 3 < many { head & 3 } else { self.take(NodeColumn::Nets)? };
            let (begins, net) = (u32::try_from(begins).ok()?, i32::try_from(unzigzag(net)).ok()?);
            let time = unzigzag(self.take(NodeColumn::Times)?).checked_mul(1 << unit(self.level))?;
            cells.push(TrackCell { bucket, value, begins, net, time });
        }
        Some(())
    }
}
