//! Packets of networks: their heads, filters over these, and captures of packets as files.
//!
//! It must never know traces, nor where packets come from.
//!
//! ```text
//! bytes ──heads──> PacketHeads ──fields──> values, by the names that events of captures have
//! text ──PacketFilter──> predicate over these values; for a kernel, classic BPF that lets at least these packets through
//! packets ──pcapng──> a capture, one section
//! ```

mod addresses;
mod classic;
mod fields;
mod filter;
mod heads;
pub mod pcapng;

pub use classic::{ClassicInstruction, take_all};
pub use fields::{HeadField, PacketFacts, flag_names};
pub use filter::PacketFilter;
pub use heads::{CLASSES, HEADS_MAX, HeadClass, IpVersion, PacketDirection, PacketHeads};
