//! The state that all tables of a database share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::watch::QueryScans;
use crate::open::Session;

/// All events.
pub(super) const EVENTS: &str = "events";

/// What all tables share.
#[derive(Debug)]
pub(super) struct TableContext {
    pub(super) session: Arc<Session>,
    /// Nobody relies on the order of time.
    pub(super) is_unordered: bool,
    /// Packets were found not to tell the times of their events.
    is_unsliceable: AtomicBool,
    watch: Mutex<Arc<QueryScans>>,
    /// Names of event record classes.
    names: OnceLock<BTreeSet<String>>,
}

impl TableContext {
    pub(super) fn new(session: Arc<Session>, is_unordered: bool) -> Self {
        Self {
            session,
            is_unordered,
            is_unsliceable: AtomicBool::new(false),
            watch: Mutex::default(),
            names: OnceLock::new(),
        }
    }

    /// The watch of the query that is planned.
    pub(super) fn watch(&self) -> Arc<QueryScans> {
        Arc::clone(&self.watch.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Scans from now on are watched by this.
    pub(super) fn watch_with(&self, watch: QueryScans) -> Arc<QueryScans> {
        let watch = Arc::new(watch);
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&watch);
        watch
    }

    pub(super) fn give_up_slices(&self) {
        self.is_unsliceable.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_unsliceable(&self) -> bool {
        self.is_unsliceable.load(Ordering::Relaxed)
    }

    pub(super) fn names(&self) -> &BTreeSet<String> {
        self.names.get_or_init(|| {
            let classes = self.session.traces.iter().flat_map(|trace| &trace.class.stream_classes);
            classes.flat_map(|stream| &stream.event_classes).filter_map(|class| class.name.clone()).collect()
        })
    }
}
