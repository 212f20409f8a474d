//! The limit of requests that read events: so many at a time; others wait for a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::refusal::RequestRefusal;

/// Answers that are read at a time.
const READERS: usize = 64;
/// How long others wait for one of them to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The places of readers.
#[derive(Debug)]
pub(crate) struct ReaderPlaces(Arc<Semaphore>);

impl Default for ReaderPlaces {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READERS)))
    }
}

impl ReaderPlaces {
    /// Waits for a place among the readers; dropping the returned permit gives it back.
    pub(crate) async fn enter(&self) -> Result<OwnedSemaphorePermit, RequestRefusal> {
        let place = tokio::time::timeout(PATIENCE, Arc::clone(&self.0).acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or_else(|| RequestRefusal::busy(format!("{READERS} others read events")))
    }
}
