//! Many rows of the packet index in little memory: about ten bytes a row instead of 128.
//!
//! Packets of a stream resemble each other: one begins where the one before ends, in the file and
//! in time, is as long, and has the next number. A row stores only the differences from that.
//!
//! ```text
//! block  ┌ row │ row │ …     64 rows; the first one differs from nothing
//! row      └ mask of the words that differ from what is expected │ their differences, signed LEB128
//! ```
//!
//! A row is found by reading its block from the beginning; a [`PacketRowPlace`] remembers the position, for
//! walks.

use std::fmt;
use std::ops::Range;

use kymo_wire::leb128::{decode_signed, encode_signed};

use super::row::PacketRow;

/// Rows of a block.
const BLOCK: usize = 64;

/// A row in numbers. A word may be expected from those before it.
type Words = [u64; 11];
const FILE: usize = 0;
const STREAM_CLASS: usize = 1;
/// The known facts about the packet, one bit each, and whether it is cut.
const FLAGS: usize = 2;
const TOTAL: usize = 3;
const CONTENT: usize = 4;
const DISCARDED: usize = 5;
const STREAM_ID: usize = 6;
const SEQUENCE: usize = 7;
const OFFSET: usize = 8;
const BEGIN: usize = 9;
const END: usize = 10;
/// Words that a packet may lack.
const OPTIONS: [usize; 5] = [DISCARDED, STREAM_ID, SEQUENCE, BEGIN, END];
const CUT: u64 = 1;

/// Rows in their order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Packets {
    /// Blocks that are full.
    full: Vec<Box<[u8]>>,
    /// The block that is not.
    open: Vec<u8>,
    length: usize,
    /// Bytes of all packets.
    packet_bytes: u64,
    /// The number of packets without a begin time.
    without_begin: usize,
    /// The row that was added last.
    last: Words,
}

/// Where a row is, so that it can be read without those before it.
#[derive(Clone, Debug, Default)]
pub struct PacketRowPlace {
    /// Number of the row.
    next: usize,
    /// Its first byte in its block, unless it is the first one there.
    byte: usize,
    /// The row before.
    before: Words,
}

/// Some rows, one after the other.
#[derive(Clone, Debug)]
pub struct PacketRows<'a> {
    packets: &'a Packets,
    place: PacketRowPlace,
    end: usize,
}

impl Packets {
    /// Adds a row behind the others.
    pub fn push(&mut self, row: PacketRow) {
        let now = words(&row);
        let before = if self.length.is_multiple_of(BLOCK) { Words::default() } else { self.last };
        encode(&before, &now, &mut self.open);
        (self.length, self.last) = (self.length + 1, now);
        self.packet_bytes = self.packet_bytes.saturating_add(row.total_bits / 8);
        self.without_begin += usize::from(row.begin_cycles.is_none());
        if self.length.is_multiple_of(BLOCK) {
            self.full.push(self.open.as_slice().into());
            self.open.clear();
        }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// A row.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[must_use]
    pub fn get(&self, index: usize) -> PacketRow {
        self.range(index..index + 1).next().expect("the range is one row")
    }

    /// The first row.
    #[must_use]
    pub fn first(&self) -> Option<PacketRow> {
        self.iter().next()
    }

    /// The last row.
    #[must_use]
    pub fn last(&self) -> Option<PacketRow> {
        (self.length > 0).then(|| row(&self.last))
    }

    /// All rows.
    #[must_use]
    pub fn iter(&self) -> PacketRows<'_> {
        self.range(0..self.length)
    }

    /// Some rows.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[must_use]
    pub fn range(&self, range: Range<usize>) -> PacketRows<'_> {
        assert!(range.start <= range.end && range.end <= self.length, "{range:?} of {} rows", self.length);
        PacketRows { packets: self, place: self.place(range.start), end: range.end }
    }

    /// The place of a row, or the one behind the last row.
    #[must_use]
    pub fn place(&self, index: usize) -> PacketRowPlace {
        let mut place = PacketRowPlace { next: index / BLOCK * BLOCK, ..PacketRowPlace::default() };
        while place.next < index {
            self.step(&mut place);
        }
        place
    }

    /// Rows from a place on.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[must_use]
    pub fn range_from(&self, place: PacketRowPlace, end: usize) -> PacketRows<'_> {
        assert!(place.next <= end && end <= self.length, "{}..{end} of {} rows", place.next, self.length);
        PacketRows { packets: self, place, end }
    }

    /// The row at a place, which becomes that of the next one.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn step(&self, place: &mut PacketRowPlace) -> PacketRow {
        assert!(place.next < self.length, "row {} of {}", place.next, self.length);
        if place.next.is_multiple_of(BLOCK) {
            (place.byte, place.before) = (0, Words::default());
        }
        let block = self.full.get(place.next / BLOCK).map_or(self.open.as_slice(), |block| block);
        let mut bytes = &block[place.byte..];
        place.before = decode(&place.before, &mut bytes);
        place.byte = block.len() - bytes.len();
        place.next += 1;
        row(&place.before)
    }

    /// How many rows there are before the first one for which `holds` is false; none may follow for which it is true.
    #[must_use]
    pub fn partition_point(&self, mut holds: impl FnMut(&PacketRow) -> bool) -> usize {
        let (mut low, mut high) = (0, self.length.div_ceil(BLOCK));
        while low < high {
            let middle = (low + high) / 2;
            if holds(&self.get(middle * BLOCK)) { low = middle + 1 } else { high = middle }
        }
        let begin = low.saturating_sub(1) * BLOCK;
        let end = (begin + BLOCK).min(self.length);
        begin + self.range(begin..end).take_while(|row| holds(row)).count()
    }

    /// Whether all packets have a begin time.
    #[must_use]
    pub fn have_begins(&self) -> bool {
        self.without_begin == 0
    }

    /// Bytes of some packets in their files.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[must_use]
    pub fn packet_bytes(&self, range: Range<usize>) -> u64 {
        if range == (0..self.length) {
            return self.packet_bytes;
        }
        self.range(range).fold(0, |sum, row| row.total_bits / 8 + sum)
    }

    /// Bytes of memory that the rows take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.full.iter().map(|block| block.len() + size_of::<Box<[u8]>>()).sum::<usize>() + self.open.capacity()
    }
}

impl fmt::Debug for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl FromIterator<PacketRow> for Packets {
    fn from_iter<I: IntoIterator<Item = PacketRow>>(rows: I) -> Self {
        let mut packets = Self::default();
        rows.into_iter().for_each(|row| packets.push(row));
        packets
    }
}

impl<'a> IntoIterator for &'a Packets {
    type Item = PacketRow;
    type IntoIter = PacketRows<'a>;
    fn into_iter(self) -> PacketRows<'a> {
        self.iter()
    }
}

impl Iterator for PacketRows<'_> {
    type Item = PacketRow;

    fn next(&mut self) -> Option<PacketRow> {
        (self.place.next < self.end).then(|| self.packets.step(&mut self.place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.place.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for PacketRows<'_> {}

/// The value of a word if the packet is like the one before.
fn expected(before: &Words, now: &Words, word: usize) -> u64 {
    let is_there = |words: &Words, option: usize| words[FLAGS] & flag(option) != 0;
    match word {
        OFFSET => before[OFFSET].wrapping_add(before[TOTAL] / 8),
        SEQUENCE if is_there(now, SEQUENCE) => before[SEQUENCE].wrapping_add(1),
        BEGIN if is_there(now, BEGIN) && is_there(before, END) => before[END],
        // It lasts as long.
        END if is_there(now, BEGIN) && is_there(now, END) && is_there(before, END) => {
            now[BEGIN].wrapping_add(before[END].wrapping_sub(before[BEGIN]))
        }
        END if !is_there(now, END) => 0,
        _ => before[word],
    }
}

fn encode(before: &Words, now: &Words, bytes: &mut Vec<u8>) {
    let mask_at = bytes.len();
    let mut mask = 0_u16;
    bytes.extend(mask.to_le_bytes());
    for word in 0..now.len() {
        let difference = now[word].wrapping_sub(expected(before, now, word)) as i64;
        if difference != 0 {
            let (number, length) = encode_signed(difference);
            bytes.extend(&number[..length]);
            mask |= 1 << word;
        }
    }
    bytes[mask_at..mask_at + 2].copy_from_slice(&mask.to_le_bytes());
}

fn decode(before: &Words, bytes: &mut &[u8]) -> Words {
    let (mask, mut rest) = bytes.split_first_chunk().expect("`encode` wrote a mask");
    let mask = u16::from_le_bytes(*mask);
    let mut now = Words::default();
    for word in 0..now.len() {
        now[word] = expected(before, &now, word);
        if mask >> word & 1 == 1 {
            let (difference, length) = decode_signed(rest).expect("`encode` wrote a number");
            now[word] = now[word].wrapping_add(difference as u64);
            rest = &rest[length..];
        }
    }
    *bytes = rest;
    now
}

fn flag(option: usize) -> u64 {
    1 << option
}

fn words(row: &PacketRow) -> Words {
    let mut words = Words::default();
    words[FILE] = row.file.into();
    words[STREAM_CLASS] = row.stream_class.into();
    words[FLAGS] = if row.cut { CUT } else { 0 };
    words[TOTAL] = row.total_bits;
    words[CONTENT] = row.content_bits;
    words[OFFSET] = row.offset_bytes;
    let options = [row.discarded, row.stream_id, row.sequence, row.begin_cycles, row.end_cycles];
    for (word, option) in OPTIONS.into_iter().zip(options) {
        if let Some(value) = option {
            words[FLAGS] |= flag(word);
            words[word] = value;
        }
    }
    words
}

fn row(words: &Words) -> PacketRow {
    let option = |word: usize| (words[FLAGS] & flag(word) != 0).then_some(words[word]);
    PacketRow {
        file: words[FILE] as u32,
        stream_class: words[STREAM_CLASS] as u32,
        offset_bytes: words[OFFSET],
        total_bits: words[TOTAL],
        content_bits: words[CONTENT],
        cut: words[FLAGS] & CUT != 0,
        begin_cycles: option(BEGIN),
        end_cycles: option(END),
        discarded: option(DISCARDED),
        sequence: option(SEQUENCE),
        stream_id: option(STREAM_ID),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets as a tracer writes them: of one size, filled differently, about a millisecond each.
    fn usual(number: u64) -> PacketRow {
        PacketRow {
            file: 3,
            stream_class: 1,
            offset_bytes: number << 12,
            total_bits: 8 << 12,
            content_bits: (8 << 12) - number * 7919 % 4096,
            cut: false,
            begin_cycles: Some(1 << 60 | (number * 1_000_000 + number * 104_729 % 500_000)),
            end_cycles: Some(1 << 60 | (number * 1_000_000 + 900_000 + number * 7919 % 90_000)),
            discarded: Some(number / 1000),
            sequence: Some(number + 17),
            stream_id: Some(5),
        }
    }

    /// Rows that have nothing in common: every word from all over, every option there or not.
    fn unusual(number: u64) -> PacketRow {
        let mut seed = number;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = seed ^ seed >> 32;
            value >> (value % 64)
        };
        let mut option = |number: u64| (random() % 3 > 0).then_some([u64::MAX, 0, number][random() as usize % 3]);
        PacketRow {
            begin_cycles: option(number),
            end_cycles: option(1 << 63),
            discarded: option(7),
            sequence: option(number << 40),
            stream_id: option(1),
            file: random() as u32,
            stream_class: random() as u32,
            offset_bytes: random(),
            total_bits: random(),
            content_bits: random(),
            cut: random() % 2 == 0,
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        for make in [usual, unusual] {
            for length in [0, 1, 63, 64, 65, 128, 1000] {
                let rows: Vec<PacketRow> = (0..length).map(make).collect();
                let packets: Packets = rows.iter().copied().collect();
                let has_begin = |row: &PacketRow| row.begin_cycles.is_some();
                assert_eq!(packets.have_begins(), rows.iter().all(has_begin), "{length}");
                assert_eq!((packets.len(), packets.is_empty()), (rows.len(), rows.is_empty()));
                assert_eq!((packets.first(), packets.last()), (rows.first().copied(), rows.last().copied()));
                assert!(packets.iter().eq(rows.iter().copied()), "{length} rows");
                assert!((0..rows.len()).all(|index| packets.get(index) == rows[index]), "{length} rows");
            }
        }
    }

    #[test]
    fn some_rows_are_those_of_all() {
        let rows: Vec<PacketRow> = (0..300).map(usual).collect();
        let packets: Packets = rows.iter().copied().collect();
        for (start, end) in [(0, 0), (0, 64), (63, 65), (64, 64), (100, 300), (299, 300), (300, 300), (0, 300)] {
            assert!(packets.range(start..end).eq(rows[start..end].iter().copied()), "{start}..{end}");
            assert!(packets.range_from(packets.place(start), end).eq(packets.range(start..end)), "{start}..{end}");
            assert_eq!(packets.packet_bytes(start..end), (end - start) as u64 * 4096, "{start}..{end}");
        }
        for offset in [0, 1, 62 << 12, 63 << 12, 64 << 12, 65 << 12, 299 << 12, u64::MAX] {
            let holds = |row: &PacketRow| row.offset_bytes < offset;
            assert_eq!(packets.partition_point(holds), rows.partition_point(holds), "offset {offset}");
        }
    }

    /// Three million packets stay far below the 64 MB that a run may take.
    #[test]
    fn usual_packets_take_few_bytes() {
        let packets: Packets = (0..10_000).map(usual).collect();
        let each = packets.bytes() as f64 / 10_000.0;
        assert!(each < 16.0, "{each} bytes a packet");
    }
}
