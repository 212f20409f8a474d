//! Where the recorder writes just now: a disk may take its time, and whoever waits for an answer meanwhile is told.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shared by who writes and who tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writing(Arc<Mutex<Option<(PathBuf, Instant)>>>);

/// While this is there, something is written.
#[derive(Debug)]
#[must_use]
pub(crate) struct Writes(Writing);

impl Writing {
    /// Something is written to a folder from now on.
    pub(crate) fn begin(&self, folder: &Path) -> Writes {
        self.set(Some((folder.to_owned(), Instant::now())));
        Writes(self.clone())
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

impl Drop for Writes {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
