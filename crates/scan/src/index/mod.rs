//! The packet index: the places of packets, their spans of time, and the losses before them.
//!
//! Made by hopping from one packet's head to the next, or from LTTng's index files where those agree with
//! the data. It answers questions about density, losses and spans, and finds any time by binary search.

mod hop;
mod lttng;
mod packets;
mod row;

pub use hop::{HeadReader, HopError, HopFault, hop, hop_on};
pub use lttng::{LttngIndexEntry, LttngIndexError, LttngIndexFault, parse_lttng_index, rows_of_lttng_index};
pub use packets::{PacketRowPlace, PacketRows, Packets};
pub use row::PacketRow;
