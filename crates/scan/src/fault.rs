//! The unreadable parts, and their places.

use kymo_ir::ProgramFault;

use crate::index::HopFault;

/// An unreadable part of a data stream.
#[derive(Debug)]
pub struct StreamFault {
    /// Rank of the data stream.
    pub stream: usize,
    /// The file, by its number in the trace.
    pub file: u32,
    /// The packet's place in its stream, from 0.
    pub packet: u64,
    /// The packet's first byte in the file.
    pub offset_bytes: u64,
    /// The kind of fault.
    pub kind: StreamFaultKind,
}

/// The kind of the unreadable part.
#[derive(Debug, thiserror::Error)]
pub enum StreamFaultKind {
    /// A packet's head.
    #[error("{0}")]
    Head(HopFault),
    /// An event record.
    #[error("the event record at bit {record}: at bit {at}: {kind}", at = fault.at, kind = fault.kind)]
    Record {
        /// First bit of the record in its packet.
        record: u64,
        /// The error in it.
        fault: ProgramFault,
    },
    /// A record is longer than is kept in memory.
    #[error("the event record at bit {at} is longer than {bytes} bytes")]
    LongRecord {
        /// First bit of the record in its packet.
        at: u64,
        /// The limit.
        bytes: u64,
    },
    /// The index has another size than the packet's own head, which is right: the packet is read to the end that its head names.
    #[error(
        "the index says the packet has {index_bits} bits of content, its own head says {packet_bits}; the packet was read to \
         the end that its head names (help: delete the trace's folder `index`, and `kymo index --remove` it)"
    )]
    IndexSize {
        /// The size from the index.
        index_bits: u64,
        /// The size from the packet.
        packet_bits: u64,
    },
    /// The index says something else than the packet's own head, which is right: events were searched by the index.
    #[error(
        "the index says that the packet's {what} is {index}, its own head says {packet}: searching by it may have missed \
         events (help: delete the trace's folder `index`, and `kymo index --remove` it)"
    )]
    IndexFact {
        /// Which fact.
        what: &'static str,
        /// Its value in the index.
        index: u64,
        /// Its value in the packet.
        packet: u64,
    },
    /// The file ends inside the packet.
    #[error("the file ends {left_bits} bits after the packet's beginning, before the packet does")]
    Cut {
        /// Bits that are there.
        left_bits: u64,
    },
    /// The file is shorter than when it was opened.
    #[error("the file now ends before byte {offset_bytes}")]
    Shrank {
        /// The offset to be read.
        offset_bytes: u64,
    },
    /// The file cannot be read. The place names the file.
    #[error("{}", .0.kind)]
    Source(kymo_source::SourceError),
}
