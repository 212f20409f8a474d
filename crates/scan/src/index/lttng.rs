//! LTTng's index files, believed only as far as the packets themselves agree.
//!
//! ```text
//! index/chan_0.idx, big endian
//! ┌ magic │ 1 │ minor │ entry size ┬ entry │ entry │ …   one per packet, in the order of the file
//! offset, packet bits, content bits, begin, end, discarded, class id (1.1: stream id, sequence number)
//! ```
//!
//! Reading one file is faster than reading the head of every packet. But an index may be stale,
//! from another file, or hostile, so its entries must tile the file from its first byte on, and the
//! first, the middle and the last are compared with the heads in the data. The caller hops instead
//! when they differ.

use kymo_decode::Decoder;
use kymo_source::ByteSource;
use kymo_wire::index::{ENTRY_LENGTH_1_0, ENTRY_LENGTH_1_1, HEADER_LENGTH};
use kymo_wire::magic;

use super::hop::{HeadReader, HopFault, row};
use super::row::PacketRow;

/// Why an index file is not used.
#[derive(Debug, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct LttngIndexError {
    /// Byte of the index file.
    pub at: u64,
    /// The error there.
    pub fault: LttngIndexFault,
}

/// The error of an index file.
#[derive(Debug, thiserror::Error)]
pub enum LttngIndexFault {
    /// Shorter than its header.
    #[error("expected a header of 16 bytes, found {0} bytes")]
    Short(usize),
    /// Another kind of file.
    #[error("expected the magic number 0xC1F1DCC1, found {0:#010X}")]
    Magic(u32),
    /// A version with unknown entries.
    #[error("expected version 1.0 or 1.1 with entries of 56 or 72 bytes, found {major}.{minor} with {size}")]
    Version {
        /// The first number.
        major: u32,
        /// The second.
        minor: u32,
        /// Bytes of an entry.
        size: u32,
    },
    /// It ends inside an entry.
    #[error("expected an entry of {size} bytes, found {left}")]
    Cut {
        /// Bytes of an entry.
        size: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// Packets do not lie one behind the other.
    #[error("expected a packet at byte {expected}, found byte {found}")]
    Offset {
        /// The end of the packet before.
        expected: u64,
        /// The value in the entry.
        found: u64,
    },
    /// A size that cannot be.
    #[error(
        "a packet of {total_bits} bits with {content_bits} bits of content cannot be at byte {offset_bytes} of {file_bytes}"
    )]
    Size {
        /// The packet's first byte.
        offset_bytes: u64,
        /// Its size.
        total_bits: u64,
        /// The size of its content.
        content_bits: u64,
        /// Size of the file of packets.
        file_bytes: u64,
    },
    /// Packets of several streams.
    #[error("the entries belong to different data streams")]
    Mixed,
    /// The packets have sequence numbers, which entries of this version lack.
    #[error("the packets have sequence numbers, the index has none")]
    NoSequence,
    /// The data disagrees.
    #[error("the entry does not agree with the packet at byte {offset_bytes}")]
    Disagrees {
        /// The packet's first byte.
        offset_bytes: u64,
    },
    /// A packet's head cannot be read.
    #[error("{0}")]
    Head(#[from] HopFault),
}

/// One entry as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LttngIndexEntry {
    /// First byte of the packet.
    pub offset_bytes: u64,
    /// Size of the packet.
    pub total_bits: u64,
    /// Size of its content.
    pub content_bits: u64,
    /// First time.
    pub begin_cycles: u64,
    /// Last time.
    pub end_cycles: u64,
    /// Counter of discarded event records.
    pub discarded: u64,
    /// Id of the data stream class.
    pub class_id: u64,
    /// Id of the data stream and sequence number, from version 1.1 on.
    pub stream_and_sequence: Option<(u64, u64)>,
}

/// Reads the index file `bytes` of a file of `file_bytes`; the result tiles that file from its
/// first byte.
///
/// # Errors
///
/// The reason why it is no such index.
pub fn parse_lttng_index(bytes: &[u8], file_bytes: u64) -> Result<Vec<LttngIndexEntry>, LttngIndexError> {
    let fail = |at: usize, fault| LttngIndexError { at: at as u64, fault };
    let Some((header, body)) = bytes.split_at_checked(HEADER_LENGTH) else {
        return Err(fail(0, LttngIndexFault::Short(bytes.len())));
    };
    let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("a word has 4 bytes"));
    if word(0) != magic::INDEX {
        return Err(fail(0, LttngIndexFault::Magic(word(0))));
    }
    let size = match (word(4), word(8), word(12)) {
        (1, 0, size) if size as usize == ENTRY_LENGTH_1_0 => ENTRY_LENGTH_1_0,
        (1, 1, size) if size as usize == ENTRY_LENGTH_1_1 => ENTRY_LENGTH_1_1,
        (major, minor, size) => return Err(fail(4, LttngIndexFault::Version { major, minor, size })),
    };
    let mut entries = Vec::with_capacity(body.len() / size);
    let mut expected = 0;
    for (index, bytes) in body.chunks(size).enumerate() {
        let at = HEADER_LENGTH + index * size;
        if bytes.len() < size {
            return Err(fail(at, LttngIndexFault::Cut { size, left: bytes.len() }));
        }
        let entry = entry(bytes);
        expected = end_of(&entry, expected, file_bytes).map_err(|fault| fail(at, fault))?;
        entries.push(entry);
    }
    Ok(entries)
}

/// The first byte behind an entry's packet, which must begin at byte `expected`.
fn end_of(entry: &LttngIndexEntry, expected: u64, file_bytes: u64) -> Result<u64, LttngIndexFault> {
    let &LttngIndexEntry { offset_bytes, total_bits, content_bits, .. } = entry;
    if offset_bytes != expected {
        return Err(LttngIndexFault::Offset { expected, found: offset_bytes });
    }
    let sane = total_bits > 0 && total_bits % 8 == 0 && content_bits <= total_bits;
    let end = offset_bytes.checked_add(total_bits / 8).filter(|&end| sane && end <= file_bytes);
    end.ok_or(LttngIndexFault::Size { offset_bytes, total_bits, content_bits, file_bytes })
}

fn entry(bytes: &[u8]) -> LttngIndexEntry {
    let number = |index: usize| {
        let bytes = &bytes[index * 8..index * 8 + 8];
        u64::from_be_bytes(bytes.try_into().expect("a number has 8 bytes"))
    };
    LttngIndexEntry {
        offset_bytes: number(0),
        total_bits: number(1),
        content_bits: number(2),
        begin_cycles: number(3),
        end_cycles: number(4),
        discarded: number(5),
        class_id: number(6),
        stream_and_sequence: (bytes.len() >= 72).then(|| (number(7), number(8))),
    }
}

/// The packets of file number `file` according to its index, compared with the data.
///
/// The file may have more packets behind those.
///
/// # Errors
///
/// The index is not of this file.
pub fn rows_of_lttng_index(
    decoder: &Decoder,
    stream: &ByteSource,
    file: u32,
    file_bytes: u64,
    index: &[u8],
) -> Result<Vec<PacketRow>, LttngIndexError> {
    let entries = parse_lttng_index(index, file_bytes)?;
    let is_1_1 = entries.first().is_some_and(|entry| entry.stream_and_sequence.is_some());
    let size = if is_1_1 { ENTRY_LENGTH_1_1 } else { ENTRY_LENGTH_1_0 };
    let fail = |number: usize, fault| LttngIndexError { at: (HEADER_LENGTH + number * size) as u64, fault };
    let Some(first) = entries.first() else {
        return Ok(Vec::new());
    };
    let mut reader = HeadReader::default();
    let mut head_row = |offset_bytes, clock| {
        let head = reader.read(decoder, stream, offset_bytes, clock)?;
        Ok(row(&head, file, offset_bytes, file_bytes))
    };
    let pattern = head_row(0, 0).map_err(|fault: HopFault| fail(0, fault.into()))?;
    if pattern.sequence.is_some() && first.stream_and_sequence.is_none() {
        return Err(fail(0, LttngIndexFault::NoSequence));
    }
    let stream_of = |entry: &LttngIndexEntry| (entry.class_id, entry.stream_and_sequence.map(|(stream, _)| stream));
    if let Some(number) = entries.iter().position(|entry| stream_of(entry) != stream_of(first)) {
        return Err(fail(number, LttngIndexFault::Mixed));
    }
    let rows: Vec<PacketRow> = entries.iter().map(|entry| row_like(&pattern, entry)).collect();
    for number in [0, rows.len() / 2, rows.len() - 1] {
        let clock = number.checked_sub(1).and_then(|before| rows[before].end_cycles).unwrap_or(0);
        let offset_bytes = rows[number].offset_bytes;
        let found = head_row(offset_bytes, clock).map_err(|fault| fail(number, fault.into()))?;
        if found != rows[number] {
            return Err(fail(number, LttngIndexFault::Disagrees { offset_bytes }));
        }
    }
    Ok(rows)
}

/// The row of an entry: it has the same known facts as the packet `pattern` of the same stream.
fn row_like(pattern: &PacketRow, entry: &LttngIndexEntry) -> PacketRow {
    PacketRow {
        offset_bytes: entry.offset_bytes,
        total_bits: entry.total_bits,
        content_bits: entry.content_bits,
        cut: false,
        begin_cycles: pattern.begin_cycles.map(|_| entry.begin_cycles),
        end_cycles: pattern.end_cycles.map(|_| entry.end_cycles),
        discarded: pattern.discarded.map(|_| entry.discarded),
        sequence: pattern.sequence.and(entry.stream_and_sequence.map(|(_, sequence)| sequence)),
        ..*pattern
    }
}
