//! What the parts of an analysis cost, read on one thread as several would get them: whoever has few cores works out from it
//! how long many would take.
//!
//! ```text
//! parts as for 16 threads   ├─ read 0 ─┤├ merge 0 ┤├─ read 1 ─┤├ merge 1 ┤ ...      on one thread: nothing waits
//! ```
//!
//! Working it out is somebody else's duty: `bench/simulate.py`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What was done with a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It was read.
    Read,
    /// Its state was merged with those before.
    Merge,
}

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// What was done.
    pub work: Work,
    /// The number of the part.
    pub part: u64,
    /// How long that took.
    pub time: Duration,
}

/// How many threads are rehearsed, and what their parts took.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    pub(crate) threads: usize,
    took: Mutex<Vec<Took>>,
}

impl Rehearsal {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, took: Mutex::default() }
    }

    /// Something was done, and began then.
    pub(crate) fn add(&self, work: Work, part: u64, begun: Instant) {
        let took = Took { work, part, time: begun.elapsed() };
        self.took.lock().unwrap_or_else(PoisonError::into_inner).push(took);
    }

    pub(crate) fn took(&self) -> Vec<Took> {
        self.took.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
