//! LTTng's index files: one entry a packet, everything big-endian.
//!
//! ```text
//! header  magic u32, major u32, minor u32, entry length u32
//! entry   offset (bytes), packet bits, content bits, begin, end (cycles), discarded, stream class id
//!         and from 1.1: stream id, sequence number                               each u64
//! ```

use crate::magic;

/// Bytes of the header.
pub const HEADER_LENGTH: usize = 16;
/// Bytes of an entry of version 1.0.
pub const ENTRY_LENGTH_1_0: usize = 56;
/// Bytes of an entry of version 1.1.
pub const ENTRY_LENGTH_1_1: usize = 72;

/// One packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexEntry {
    /// Where the packet begins in its file, in bytes.
    pub offset: u64,
    /// Length of the packet in bits.
    pub packet_bits: u64,
    /// Length of its content in bits.
    pub content_bits: u64,
    /// Clock at its beginning.
    pub begin_cycles: u64,
    /// Clock at its end.
    pub end_cycles: u64,
    /// Snapshot of the counter of discarded event records.
    pub discarded: u64,
    /// Id of the data stream class.
    pub stream_class_id: u64,
    /// Id of the data stream.
    pub stream_id: u64,
    /// Sequence number in the stream.
    pub sequence: u64,
}

/// The header of a file of version 1.1.
#[must_use]
pub fn header() -> [u8; HEADER_LENGTH] {
    let mut bytes = [0; HEADER_LENGTH];
    let numbers = [magic::INDEX, 1, 1, ENTRY_LENGTH_1_1 as u32];
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    bytes
}

impl IndexEntry {
    /// The bytes of an entry of version 1.1.
    #[must_use]
    pub fn to_bytes(self) -> [u8; ENTRY_LENGTH_1_1] {
        let mut bytes = [0; ENTRY_LENGTH_1_1];
        let numbers = [
            self.offset,
            self.packet_bits,
            self.content_bits,
            self.begin_cycles,
            self.end_cycles,
            self.discarded,
            self.stream_class_id,
            self.stream_id,
            self.sequence,
        ];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// Reads an entry of version 1.1.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; ENTRY_LENGTH_1_1]) -> Self {
        let number = |index: usize| {
            let mut place = [0; 8];
            place.copy_from_slice(&bytes[8 * index..8 * index + 8]);
            u64::from_be_bytes(place)
        };
        Self {
            offset: number(0),
            packet_bits: number(1),
            content_bits: number(2),
            begin_cycles: number(3),
            end_cycles: number(4),
            discarded: number(5),
            stream_class_id: number(6),
            stream_id: number(7),
            sequence: number(8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_their_bytes() {
        let entry = IndexEntry {
            offset: 1,
            packet_bits: 2,
            content_bits: 3,
            begin_cycles: 4,
            end_cycles: 5,
            discarded: 6,
            stream_class_id: 7,
            stream_id: u64::MAX,
            sequence: 9,
        };
        assert_eq!(IndexEntry::from_bytes(&entry.to_bytes()), entry);
        assert_eq!(&header()[..4], &[0xC1, 0xF1, 0xDC, 0xC1]);
        assert_eq!(header()[15], 72);
    }
}
