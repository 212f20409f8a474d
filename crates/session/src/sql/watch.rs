//! The problems and losses in the scans of one query, and whether a caller still waits for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::open::progress::Progress;
use crate::open::report::Report;

/// The scans of a query.
#[derive(Debug, Default)]
pub(super) struct QueryScans {
    scans: Mutex<Vec<Arc<ScanWatch>>>,
    is_unsliceable: AtomicBool,
    /// Ends the reading that planning it needs.
    progress: Arc<Progress>,
}

/// One scan; its parts add their findings.
#[derive(Debug, Default)]
pub(super) struct ScanWatch {
    report: Mutex<Option<Report>>,
}

impl ScanWatch {
    pub(super) fn add(&self, part: &Report) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let report = report.get_or_insert_default();
        report.add_losses(part);
        report.add_problems(part);
    }
}

impl QueryScans {
    /// For a query that the caller may cancel.
    pub(super) fn new(progress: &Arc<Progress>) -> Self {
        Self { progress: Arc::clone(progress), ..Self::default() }
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// For scans of a query of which something was read already, such as the answer of an analysis.
    pub(super) fn after(before: &Self) -> Self {
        let scans = before.scans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let progress = Arc::clone(&before.progress);
        Self { scans: Mutex::new(scans), is_unsliceable: AtomicBool::new(false), progress }
    }

    /// A scan that is about to be.
    pub(super) fn scan(&self) -> Arc<ScanWatch> {
        let scan = Arc::new(ScanWatch::default());
        self.scans.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&scan));
        scan
    }

    /// Something else that was read for the query.
    pub(super) fn add(&self, report: &Report) {
        self.scan().add(report);
    }

    pub(super) fn refuse_slices(&self) {
        self.is_unsliceable.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_unsliceable(&self) -> bool {
        self.is_unsliceable.load(Ordering::Relaxed)
    }

    /// All of it. Scans of one query read the same streams: the losses of each of them are not
    /// added up.
    pub(super) fn report(&self, opening: &Report) -> Report {
        let mut all = opening.clone();
        let mut is_first = true;
        for scan in &*self.scans.lock().unwrap_or_else(PoisonError::into_inner) {
            let scan = scan.report.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(report) = &*scan else { continue };
            if std::mem::take(&mut is_first) {
                all.add_losses(report);
            } else {
                all.raise_losses(report);
            }
            all.add_problems(report);
        }
        all
    }
}
