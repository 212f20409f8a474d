//! Batches: runs of event records of one packet, and the marks between them.

use std::ops::Range;
use std::sync::Arc;

use kymo_decode::PacketHead;
use kymo_ir::{PacketWindow, Records};

pub use kymo_ir::ReadState;
use kymo_source::Buffer;

use crate::index::PacketRow;
use crate::merge::KeyedItem;

/// The unit of exchange between cores; some have larger ones.
const LINE_BYTES: usize = 64;

/// One packet of a data stream.
#[derive(Debug)]
pub struct Packet {
    /// Place among the stream's packets, from 0.
    pub number: u64,
    /// The row from the index, with the quirks of its writer mended.
    pub row: PacketRow,
    /// The head of the packet.
    pub head: PacketHead,
    /// The bytes of its head.
    pub head_bytes: Buffer,
}

impl Packet {
    /// The packet's head in memory.
    #[must_use]
    pub fn head_window(&self) -> PacketWindow<'_> {
        PacketWindow::new(self.head_bytes.with_slack(), 0, self.head.body_start)
    }
}

/// A delivery of a stream.
#[derive(Debug)]
pub struct StreamBatch {
    /// Rank of the data stream.
    pub stream: usize,
    /// The content.
    pub content: BatchContent,
    /// Merge keys, one for each row, not decreasing within a stream: nanoseconds, or `i64::MIN` before
    /// anything of the stream had a time.
    pub keys: Vec<i64>,
}

/// The content of a batch.
#[derive(Debug)]
pub enum BatchContent {
    /// Consecutive event records.
    Events(BatchEvents),
    /// One row that is not an event.
    Mark(Mark),
}

/// Consecutive event records of one packet that are in memory together.
#[derive(Debug)]
pub struct BatchEvents {
    /// Their packet.
    pub packet: Arc<Packet>,
    /// The bytes, from `origin` of the packet on.
    pub bytes: Buffer,
    /// The byte of the packet that `bytes` begins with.
    pub origin: u64,
    /// End of the bytes in memory or of the packet's content, in bits of the packet.
    pub end: u64,
    /// The records.
    pub records: Records,
}

impl BatchEvents {
    /// The bytes for reading records again.
    #[must_use]
    pub fn window(&self) -> PacketWindow<'_> {
        PacketWindow::new(self.bytes.with_slack(), self.origin, self.end)
    }

    /// Reads a byte of every cache line of the rows and of their bytes, front to back. Another core may have written
    /// them: fetched in this order they come many at a time; in the order of events, line by line, each would be waited for.
    pub fn touch(&self, rows: Range<usize>) {
        let records = &self.records;
        let lines = |values: &[u64]| values.iter().step_by(LINE_BYTES / 8).fold(0, |sum, value| sum ^ value);
        let mut sum = lines(&records.cycles[rows.clone()]) ^ lines(&records.positions[rows.clone()]);
        for class in records.classes[rows.clone()].iter().step_by(LINE_BYTES / 4) {
            sum ^= u64::from(*class);
        }
        let bytes = self.bytes.bytes();
        let byte = |row: usize| records.positions.get(row).map(|at| (at / 8).saturating_sub(self.origin) as usize);
        let (first, last) = (byte(rows.start).unwrap_or(0), byte(rows.end.saturating_sub(1)).unwrap_or(0));
        let end = byte(rows.end).unwrap_or(last + 4 * LINE_BYTES).min(bytes.len());
        for line in bytes.get(first..end).unwrap_or_default().iter().step_by(LINE_BYTES) {
            sum ^= u64::from(*line);
        }
        std::hint::black_box(sum);
    }

    /// A state for reading records again.
    #[must_use]
    pub fn state(&self) -> ReadState {
        ReadState { clock: 0, slots: self.packet.head.slots.to_vec() }
    }
}

/// A mark in a stream beside its events.
#[derive(Debug)]
pub enum Mark {
    /// The stream begins.
    StreamBegin,
    /// The stream ends.
    StreamEnd,
    /// A packet begins.
    PacketBegin {
        /// The packet.
        packet: Arc<Packet>,
        /// When, with the quirks of its writer mended.
        cycles: Option<u64>,
    },
    /// A packet ends.
    PacketEnd {
        /// The packet.
        packet: Arc<Packet>,
        /// Its time: as the packet gives it, but not before its last event.
        cycles: Option<u64>,
    },
    /// Event records were discarded before the packet that follows ended.
    DiscardedEvents(Loss),
    /// Packets are missing before the one that follows.
    DiscardedPackets(Loss),
}

/// A loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How many, if known.
    pub count: Option<u64>,
    /// Not before.
    pub begin_cycles: Option<u64>,
    /// Not after.
    pub end_cycles: Option<u64>,
}

impl KeyedItem for StreamBatch {
    fn keys(&self) -> &[i64] {
        &self.keys
    }
}
