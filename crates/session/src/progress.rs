//! How far a long job is: bytes of packets that were begun, of all.
//!
//! Whoever reads adds, whoever watches looks; neither waits for the other. Showing it is the caller's duty.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::open::Session;

/// How far a job is; may be looked at from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Bytes of packets that were begun, and of all packets.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        (self.done.load(Ordering::Relaxed).min(total), total)
    }

    /// There is more to do than was known.
    pub(crate) fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
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
        let progress = Progress::default();
        progress.expect(packets.map(|packet| packet.total_bits / 8).sum());
        progress
    }
}
