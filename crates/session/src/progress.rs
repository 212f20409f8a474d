//! How far a long job is: bytes of packets that were begun, of all.
//!
//! Whoever reads adds, whoever watches looks; neither waits for the other. Showing it is the caller's duty.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::open::Session;

/// How far a job is; may be looked at from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: u64,
}

impl Progress {
    /// Bytes of packets that were begun, and of all packets.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed).min(self.total), self.total)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Session {
    /// For a job that reads every packet once.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let streams = self.streams();
        let packets = streams.iter().flat_map(|(_, stream)| stream.packets.iter());
        Progress { done: AtomicU64::new(0), total: packets.map(|packet| packet.total_bits / 8).sum() }
    }
}
