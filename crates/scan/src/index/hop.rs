//! Hops from one packet's head to the next.

use kymo_decode::{Decoder, HeadError, PacketHead};
use kymo_ir::{PacketWindow, SLACK};
use kymo_source::ByteSource;

use super::packets::Packets;
use super::row::PacketRow;

/// Why the rest of a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset_bytes}: {fault}")]
pub struct HopError {
    /// First byte of the packet in its file.
    pub offset_bytes: u64,
    /// The error in it.
    pub fault: HopFault,
}

/// The error in a packet's head.
#[derive(Debug, thiserror::Error)]
pub enum HopFault {
    /// It cannot be decoded.
    #[error("{0}")]
    Head(HeadError),
    /// There is none: the rest of the file is empty space.
    #[error("the rest of the file, {bytes} bytes, is zeros: recording ended before packets were written there")]
    Zeros {
        /// Up to the end of the file.
        bytes: u64,
    },
    /// It has no bits, so that there would be endlessly many.
    #[error("the packet has no bits")]
    Empty,
    /// The file cannot be read. The place names the file.
    #[error("{}", .0.kind)]
    Source(#[from] kymo_source::SourceError),
}

/// Bytes that are read for a packet's head at first; most heads are below 100.
const HEAD_BYTES: usize = 512;
/// Bytes that are compared with zeros at a time.
const ZEROS_STEP: usize = 64 << 10;
/// Bytes that are compared with zeros at most: reading them takes a fraction of a second.
const ZEROS_MAX: usize = 256 << 20;
/// A head that is longer is refused.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// Reads packets' heads, with a buffer of its own.
#[derive(Debug, Default)]
pub struct HeadReader {
    buffer: Vec<u8>,
}

impl HeadReader {
    /// Reads the head of the packet at `offset_bytes`.
    ///
    /// # Errors
    ///
    /// The error in it.
    pub fn read(
        &mut self,
        decoder: &Decoder,
        stream: &ByteSource,
        offset_bytes: u64,
        clock_cycles: u64,
    ) -> Result<PacketHead, HopFault> {
        let mut wanted = HEAD_BYTES;
        loop {
            self.buffer.clear();
            self.buffer.resize(wanted + SLACK, 0);
            let got = stream.read_at(offset_bytes, &mut self.buffer[..wanted])?;
            self.buffer[got..].fill(0);
            let window = PacketWindow::new(&self.buffer, 0, got as u64 * 8);
            match decoder.head(window, clock_cycles) {
                Err(HeadError::Fault(fault)) if fault.kind.wants_more() && got == wanted && wanted < HEAD_BYTES_MAX => {
                    wanted *= 8;
                }
                result => return result.map_err(HopFault::Head),
            }
        }
    }

    /// The head that was read last, in memory.
    #[must_use]
    pub fn window(&self, head: &PacketHead) -> PacketWindow<'_> {
        PacketWindow::new(&self.buffer, 0, head.body_start)
    }

    /// The bytes of the head that was read last.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }
}

/// The packets of one file in their order, and the fault that ended them early.
///
/// `size_bytes` is the size of the file when the trace was opened: bytes appended since are not
/// read.
#[must_use]
pub fn hop(decoder: &Decoder, stream: &ByteSource, file: u32, size_bytes: u64) -> (Packets, Option<HopError>) {
    hop_on(decoder, stream, file, size_bytes, Packets::default(), &|_| {})
}

/// As [`hop`], but the first packets are known; `found` receives each further one.
#[must_use]
pub fn hop_on(
    decoder: &Decoder,
    stream: &ByteSource,
    file: u32,
    size_bytes: u64,
    mut rows: Packets,
    found: &dyn Fn(&PacketRow),
) -> (Packets, Option<HopError>) {
    let mut reader = HeadReader::default();
    let mut offset_bytes = rows.last().map_or(0, |row| row.end_bytes());
    let mut clock = rows.iter().fold(0, |clock, row| clock_after(clock, &row));
    while offset_bytes < size_bytes {
        let head = match reader.read(decoder, stream, offset_bytes, clock) {
            Ok(head) => head,
            Err(fault) => {
                let fault = if are_zeros(stream, offset_bytes) {
                    HopFault::Zeros { bytes: size_bytes - offset_bytes }
                } else {
                    fault
                };
                return (rows, Some(HopError { offset_bytes, fault }));
            }
        };
        let row = row(&head, file, offset_bytes, size_bytes);
        if row.total_bits == 0 {
            return (rows, Some(HopError { offset_bytes, fault: HopFault::Empty }));
        }
        clock = clock_after(clock, &row);
        offset_bytes = row.end_bytes();
        found(&row);
        rows.push(row);
    }
    (rows, None)
}

/// Whether the rest of a file is zeros. More than [`ZEROS_MAX`] bytes are not looked at, and count as
/// something else.
fn are_zeros(stream: &ByteSource, mut offset_bytes: u64) -> bool {
    let mut bytes = vec![0; ZEROS_STEP];
    for _ in 0..ZEROS_MAX / ZEROS_STEP {
        match stream.read_at(offset_bytes, &mut bytes) {
            Ok(0) => return true,
            Ok(read) if bytes[..read].iter().all(|byte| *byte == 0) => offset_bytes += read as u64,
            _ => return false,
        }
    }
    false
}

/// The latest time that is known after a packet.
fn clock_after(clock: u64, row: &PacketRow) -> u64 {
    row.end_cycles.or(row.begin_cycles).unwrap_or(clock).max(clock)
}

/// The index row of a packet that begins at `offset_bytes` of a file of `size_bytes`.
pub(super) fn row(head: &PacketHead, file: u32, offset_bytes: u64, size_bytes: u64) -> PacketRow {
    let left_bits = (size_bytes - offset_bytes).saturating_mul(8);
    let total = head.total_bits.or(head.content_bits.map(|bits| bits.next_multiple_of(8))).unwrap_or(left_bits);
    let content = head.content_bits.unwrap_or(total);
    PacketRow {
        file,
        stream_class: head.stream_class as u32,
        offset_bytes,
        total_bits: total.min(left_bits),
        content_bits: content.min(left_bits),
        cut: total > left_bits,
        begin_cycles: head.begin_cycles,
        end_cycles: head.end_cycles,
        discarded: head.discarded,
        sequence: head.sequence,
        stream_id: head.stream_id,
    }
}
