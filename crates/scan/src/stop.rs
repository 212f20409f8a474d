//! Whether reading should go on.
//!
//! A caller may not want an answer any more. Cursors check this flag between batches, so that their
//! readers come to an end; the caller sees by the same flag that the answer is then not the whole
//! one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends cursors: once it is raised, they deliver nothing more. Its copies are the same flag.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

/// A flag that other code raises, such as the handler of a signal.
impl From<Arc<AtomicBool>> for StopFlag {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

impl StopFlag {
    /// Raises it, for good.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was raised. A caller that finds it not raised, after all threads that read have
    /// ended, knows that none of them has found it raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
