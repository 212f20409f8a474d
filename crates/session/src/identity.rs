//! What traces are known by, so that whoever opens them elsewhere can tell whether they are the same.

use std::fmt;

use kymo_units::Uuid;
use serde::{Deserialize, Serialize};

use crate::open::Session;

/// Which traces a session has open.
///
/// Two sessions with equal identities read the same packets: the same metadata, in the same order of traces and streams, and
/// as many packets with the same times and sizes of the first and last one of each stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceIdentity {
    traces: Vec<OneTrace>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OneTrace {
    uuid: Option<[u8; 16]>,
    /// Bytes of all packets.
    bytes: u64,
    packets: u64,
    /// Of the metadata and the packets at the edges.
    hash: u64,
}

impl Session {
    /// What these traces are known by.
    #[must_use]
    pub fn identity(&self) -> TraceIdentity {
        let one = |trace: &std::sync::Arc<kymo_scan::Trace>| {
            let mut one = OneTrace {
                uuid: trace.class.uuid.map(|uuid| uuid.0),
                bytes: 0,
                packets: 0,
                hash: hash(OFFSET, trace.metadata.text.as_bytes()),
            };
            for stream in &trace.streams {
                let packets = &stream.packets;
                one.bytes += packets.packet_bytes(0..packets.len());
                one.packets += packets.len() as u64;
                for row in packets.first().into_iter().chain(packets.last()) {
                    let words = [row.begin_cycles, row.end_cycles, Some(row.total_bits), Some(row.content_bits)];
                    for word in words {
                        one.hash = hash(one.hash, &[u8::from(word.is_some())]);
                        one.hash = hash(one.hash, &word.unwrap_or(0).to_le_bytes());
                    }
                }
                one.hash = hash(one.hash, &(packets.len() as u64).to_le_bytes());
            }
            one
        };
        TraceIdentity { traces: self.traces.iter().map(one).collect() }
    }
}

/// FNV-1a.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl fmt::Display for TraceIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, trace) in self.traces.iter().enumerate() {
            if number > 0 {
                f.write_str(", ")?;
            }
            match trace.uuid {
                Some(uuid) => write!(f, "{}", Uuid(uuid))?,
                None => f.write_str("a trace without UUID")?,
            }
            write!(f, " of {} packets and {} bytes ({:016x})", trace.packets, trace.bytes, trace.hash)?;
        }
        Ok(())
    }
}
