//! The folder that the recorder writes to at the moment: a disk may be slow, and clients that wait
//! for a reply are told why.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shared by the thread that writes and those that tell clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriterState(Arc<Mutex<Option<(PathBuf, Instant)>>>);

/// While this value exists, the recorder writes.
#[derive(Debug)]
#[must_use]
pub(crate) struct WriteGuard(WriterState);

impl WriterState {
    /// The recorder writes to a folder from now on.
    pub(crate) fn begin(&self, folder: &Path) -> WriteGuard {
        self.set(Some((folder.to_owned(), Instant::now())));
        WriteGuard(self.clone())
    }

    /// The folder, and since when.
    pub(crate) fn now(&self) -> Option<(PathBuf, Duration)> {
        let now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|(folder, since)| (folder.clone(), since.elapsed()))
    }

    fn set(&self, what: Option<(PathBuf, Instant)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
