//! The work of several threads for an analysis, done by one at a time: with few cores it shows how
//! long many would take.
//!
//! ```text
//! thread 0   ├─ read ─┤ merge ├─ read ─┤          the duration of each piece of work is measured; its begin follows
//! thread 1   ├─── read ───┤├─ read ─┤ merge       from that, and so does the next piece of work
//! done one after the other, in the order of the beginnings
//! ```
//!
//! That threads wait for each other at the desk, and share caches and memory, is not rehearsed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// A part was read.
    Read,
    /// States of neighbors were merged.
    Merge,
    /// The remaining work of a merge.
    Later,
    /// There was nothing more to do: memory was given back.
    Leave,
}

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// The kind of work.
    pub work: WorkKind,
    /// Which thread would have done it.
    pub thread: usize,
    /// When it would have begun, since all threads began.
    pub begin: Duration,
    /// How long it took.
    pub time: Duration,
}

/// Number of rehearsed threads, and their work.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    pub(crate) threads: usize,
    took: Mutex<Vec<Took>>,
    lasted: Mutex<Duration>,
}

impl Rehearsal {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, took: Mutex::default(), lasted: Mutex::default() }
    }

    /// Something was done.
    pub(crate) fn add(&self, took: Took) {
        self.took.lock().unwrap_or_else(PoisonError::into_inner).push(took);
    }

    /// All of it together was done in that time.
    pub(crate) fn lasted(&self, time: Duration) {
        *self.lasted.lock().unwrap_or_else(PoisonError::into_inner) += time;
    }

    pub(crate) fn time(&self) -> Duration {
        *self.lasted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn took(&self) -> Vec<Took> {
        self.took.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
