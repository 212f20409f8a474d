//! A timeline of some events: where those are that a filter selects.
//!
//! What programs and threads do is told by all events; of some of them only their number can be said. So such a timeline has the tracks of
//! events, which are called and numbered as in the timeline of all events. It is built in the same way, and kept nowhere.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use kymo_analysis::timeline::{Thing, TrackKey};

use super::build::Desk;
use super::chunks::Before;
use super::pyramid::Pyramid;
use super::{Timeline, TimelineFailure, analysis_of, chunks, exact};
use crate::analysis_options::AnalysisOptions;
use crate::progress::Progress;
use crate::select::Selection;

impl Timeline {
    /// The same traces with only those events that are selected.
    ///
    /// # Errors
    ///
    /// There is no room for its file.
    pub fn selected(&self, selection: Selection) -> Result<Arc<Self>, TimelineFailure> {
        let session = Arc::clone(&self.session);
        let options = AnalysisOptions { selection, ..self.options.clone() };
        // Lanes and classes of events do not depend on what is selected, so that numbers mean the same.
        let mut prepared = session.prepared_for_timeline(&options, &self.own)?;
        let mut analysis = analysis_of(&prepared, self.span.0).counting();
        if self.until.is_some() {
            prepared.lanes = self.numbering.clone().apply(&session, std::mem::take(&mut prepared.lanes));
            analysis = analysis_of(&prepared, self.span.0).counting().after(&self.analysis.numbers());
        }
        let chunks = chunks::from(&session, &prepared, (self.span, self.until), Before::default());
        let desk = Arc::new(Desk::new(&analysis, chunks.len(), 0));
        let progress = Progress::default();
        progress.expect(chunks.iter().map(|chunk| chunk.slice.bytes).sum());
        let settled = if self.until.is_some() { chunks.len().saturating_sub(1) } else { usize::MAX };
        let pyramid = Pyramid::new(session.cache.as_deref(), chunks.len(), settled)?;
        Ok(Arc::new(Self {
            desk,
            prepared: Arc::new(prepared),
            causes: OnceLock::new(),
            analysis: Arc::new(analysis),
            span: self.span,
            until: self.until,
            numbering: self.numbering.clone(),
            chunks,
            pyramid,
            names: Arc::clone(&self.names),
            is_selected: true,
            progress,
            shared: exact::Shared::default(),
            asked: AtomicUsize::new(0),
            is_started: AtomicBool::new(false),
            began: Instant::now(),
            home: None,
            options,
            own: self.own.clone(),
            session,
        }))
    }

    /// So much memory is for nodes that were looked at last.
    pub fn hold(&self, bytes_max: usize) {
        self.pyramid.hold(bytes_max);
    }

    /// The first of some tracks that is not one of events: a selection of events says nothing of it.
    #[must_use]
    pub fn first_not_of_events(&self, tracks: &[u32]) -> Option<u32> {
        let is_of_events = |number: &u32| {
            let key = self.names.keys(&[*number]).ok().and_then(|keys| TrackKey::of(keys[0]));
            key.is_none_or(|key| matches!(key.thing, Thing::LaneEvents | Thing::ThreadEvents))
        };
        tracks.iter().copied().find(|number| !is_of_events(number))
    }
}
