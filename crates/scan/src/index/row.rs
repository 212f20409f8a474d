//! One row of the packet index.

/// The facts about a packet that are known without reading its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// Which file of the trace, by its place in [`kymo_source::TraceFolder::streams`].
    pub file: u32,
    /// Index of the data stream class.
    pub stream_class: u32,
    /// First byte in the file.
    pub offset_bytes: u64,
    /// Length in bits: whole bytes that are in the file, even if the packet claims more.
    pub total_bits: u64,
    /// End of the content in bits, at most `total_bits`.
    pub content_bits: u64,
    /// The packet claims more bytes than the file has.
    pub cut: bool,
    /// Begin timestamp, extended to 64 bits.
    pub begin_cycles: Option<u64>,
    /// End timestamp, as written.
    pub end_cycles: Option<u64>,
    /// Snapshot of the counter of discarded event records.
    pub discarded: Option<u64>,
    /// Sequence number.
    pub sequence: Option<u64>,
    /// The data stream's id.
    pub stream_id: Option<u64>,
}

impl PacketRow {
    /// The first byte behind the packet in its file.
    #[must_use]
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.total_bits / 8
    }
}
