//! The options of a trace, and counts of the events that it has and has lost.

use std::path::PathBuf;
use std::time::Duration;

use kymo_skew::CpuCounter;
use kymo_writer::CtfVersion;
use serde::{Deserialize, Serialize};

use crate::program::namespaces::NamespaceKinds;

/// How a trace is written.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// Version of CTF.
    pub format: CtfVersion,
    /// A chunk ends when it has this many bytes, and the next one begins (rotation): each chunk is
    /// a trace of its own, in a folder of its own.
    pub chunk_bytes: Option<u64>,
    /// A chunk ends after this time.
    pub chunk_time: Option<Duration>,
    /// The recorder deletes the oldest chunks when all together have more bytes than this.
    pub ring_bytes: Option<u64>,
    /// Kinds of namespaces: packets tell the namespaces of these kinds that threads are in.
    pub namespaces: NamespaceKinds,
    /// Counters of CPUs: the trace tells them if its clock is the counter.
    pub counters: Vec<CpuCounter>,
    /// More entries of the environment; the recorder knows the others.
    pub environment: Vec<(String, String)>,
    /// While this file exists, another recorder continues the trace if this one is killed; the
    /// journal of the trace stays until the program that deletes the file deletes the journal too.
    pub session: Option<PathBuf>,
}

/// How far a trace is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Events of programs that are in files.
    pub events: u64,
    /// Events of the recorder itself.
    pub own: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of packets.
    pub bytes: u64,
    /// Discarded events that the trace counts: those that programs had no room for, and those that
    /// could not be written to files.
    pub discarded: u64,
    /// Discarded events that could not be written.
    pub unwritten: u64,
    /// Discarded events of threads that found no lane.
    pub no_lane: u64,
    /// Discarded events whose definitions cannot be used.
    #[serde(default)]
    pub undefined: u64,
    /// Sub-buffers that programs overwrote before the recorder read them: the number of their
    /// events is unknown.
    pub missing: u64,
    /// Events of other times than [`Output::wants`](super::Output::wants), or from before the trace.
    pub outside: u64,
    /// Bytes of programs that are not events.
    pub unreadable: u64,
    /// Events with times slightly before those of the events before them; in the trace they have
    /// those times.
    pub stepped: u64,
    /// Files of lanes.
    pub files: u64,
    /// Chunks that were begun, and chunks that were deleted.
    pub chunks: u64,
    /// See [`Tally::chunks`].
    pub deleted: u64,
    /// Packets and bytes of chunks before the last one.
    pub(crate) packets_before: u64,
    pub(crate) bytes_before: u64,
}

impl OutputOptions {
    pub(crate) fn has_chunks(&self) -> bool {
        self.chunk_bytes().is_some() || self.chunk_time.is_some()
    }

    /// A ring consists of several chunks, so it needs a size for each.
    pub(crate) fn chunk_bytes(&self) -> Option<u64> {
        self.chunk_bytes.or(self.ring_bytes.map(|all| all / 8))
    }
}
