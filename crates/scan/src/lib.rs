//! A set of traces as packets in time: packet index, clock correlation, batches, time merge.
//!
//! It must never know threads, caches on disk, SQL, or faces: the caller drives it.
//!
//! ```text
//! Trace ── data streams ── Cursor: batches and marks ─┐
//!                          Cursor: batches and marks ─┴─> Merger: rounds in one time order
//! ```

pub mod batch;
pub mod cursor;
pub mod fault;
pub mod groups;
pub mod index;
pub mod keys;
pub mod losses;
pub mod merge;
mod quirks;
pub mod slices;
pub mod stop;
pub mod trace;

pub use batch::{BatchContent, BatchEvents, Loss, Mark, Packet, StreamBatch};
pub use cursor::{Cursor, CursorItem, CursorSetup};
pub use fault::{StreamFault, StreamFaultKind};
pub use index::{PacketRow, Packets};
pub use keys::KeyMaker;
pub use merge::{Merger, PartRow, Round, RoundPart};
pub use slices::{Lengths, Slice, Slices, Unsliceable};
pub use stop::StopFlag;
pub use trace::{BrokenFile, DataStream, KnownPackets, NothingKnown, OpenError, Trace, TraceOptions};
