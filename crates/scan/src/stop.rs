//! Whether reading should go on.
//!
//! Whoever waits for an answer may not want it any more. Cursors look at this flag between batches, so that whatever reads with
//! them comes to an end; that its answer is then not the whole one is for who asked to see, by the same flag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends cursors: once it is raised, they deliver nothing more. Its copies are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

/// A flag that somebody else raises, such as the handler of a signal.
impl From<Arc<AtomicBool>> for Stop {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

impl Stop {
    /// Raises it, for good.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was raised. Who finds that it was not, after all threads that read have ended, knows that none of them has
    /// found it raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
