//! The identity of traces, so that a session that opens them elsewhere can tell whether they are
//! the same.

use std::fmt;

use kymo_scan::{DataStream, Trace};
use kymo_units::Uuid;
use serde::{Deserialize, Serialize};

use crate::cache::hash;
use crate::open::Session;

/// Which traces a session has open.
///
/// Two sessions with equal identities read the same packets: the same metadata, in the same order
/// of traces and streams, and as many packets with the same times and sizes of the first and last
/// one of each stream, with clocks that are shifted as far.
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
    /// The identity of these traces.
    #[must_use]
    pub fn identity(&self) -> TraceIdentity {
        TraceIdentity { traces: self.traces.iter().map(|trace| OneTrace::new(trace)).collect() }
    }
}

impl OneTrace {
    fn new(trace: &Trace) -> Self {
        let mut facts = vec![hash(trace.metadata.text.as_bytes()), trace.clock_shift_ns.cast_unsigned()];
        let (mut bytes, mut packets) = (0, 0);
        for DataStream { packets: of_stream, .. } in &trace.streams {
            bytes += of_stream.packet_bytes(0..of_stream.len());
            packets += of_stream.len() as u64;
            facts.push(of_stream.len() as u64);
            for row in of_stream.first().into_iter().chain(of_stream.last()) {
                let times = [row.begin_cycles, row.end_cycles];
                facts.extend(times.iter().flat_map(|time| [u64::from(time.is_some()), time.unwrap_or(0)]));
                facts.extend([row.total_bits, row.content_bits]);
            }
        }
        let hash = hash(&facts.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
        Self { uuid: trace.class.uuid.map(|uuid| uuid.0), bytes, packets, hash }
    }
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
