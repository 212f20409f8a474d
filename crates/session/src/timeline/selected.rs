//! A timeline of some events: where the events are that a filter selects.
//!
//! ```text
//! of the selected events   their number, durations between pairs of them, woken threads, messages
//! of all events            the time when a woken thread runs
//! nowhere                  states, durations inside each other, counters: of these, some events say nothing that is true
//! ```
//!
//! Its tracks are called and numbered as in the timeline of all events. It is built in the same way, and kept nowhere.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use hashbrown::HashMap;
use kymo_analysis::timeline::node::TimelineNode;
use kymo_analysis::timeline::{Thing, TrackKey};

use super::build::BuildScheduler;
use super::chunks::ExistingChunks;
use super::exact::{Exactly, TrackRun};
use super::pyramid::Pyramid;
use super::{Timeline, TimelineFailure, analysis_of, chunks, exact};
use crate::answers::analysis_options::AnalysisOptions;
use crate::open::progress::Progress;
use crate::open::select::Selection;

/// Chunks of all events that are read at most to find when woken threads run.
const CHUNKS_MAX: usize = 8;

impl Timeline {
    /// The same traces with only those events that are selected.
    ///
    /// # Errors
    ///
    /// There is no room for its file.
    pub fn selected(self: &Arc<Self>, selection: Selection) -> Result<Arc<Self>, TimelineFailure> {
        let session = Arc::clone(&self.session);
        let options = AnalysisOptions { selection, ..self.options.clone() };
        // Lanes and classes of events do not depend on the selection, so that numbers mean the
        // same.
        let mut prepared = session.prepared_for_timeline(&options, &self.own)?;
        let mut analysis = analysis_of(&prepared, self.span.0).of_some();
        if self.until.is_some() {
            prepared.lanes = self.numbering.clone().apply(&session, std::mem::take(&mut prepared.lanes));
            analysis = analysis_of(&prepared, self.span.0).of_some().after(&self.analysis.numbers());
        }
        let chunks = chunks::from(&session, &prepared, (self.span, self.until), ExistingChunks::default());
        let desk = Arc::new(BuildScheduler::new(&analysis, chunks.len(), 0));
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
            all: Some(Arc::clone(self)),
            progress,
            shared: exact::SharedChunk::default(),
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

    /// The first of some tracks that only all events tell: a selection of events says nothing of it.
    #[must_use]
    pub fn first_told_by_all(&self, tracks: &[u32]) -> Option<u32> {
        let is_told_by_some = |number: &u32| {
            let key = self.names.keys(&[*number]).ok().and_then(|keys| TrackKey::of(keys[0]));
            key.is_none_or(|key| {
                let is_of_events = matches!(key.thing, Thing::LaneEvents | Thing::ThreadEvents);
                is_of_events || matches!(key.thing, Thing::Latency | Thing::Wakeups | Thing::Messages)
            })
        };
        tracks.iter().copied().find(|number| !is_told_by_some(number))
    }

    /// The states of threads in a window and before it, by the keys of their tracks, as far as a
    /// few chunks tell: all events tell when a woken thread runs. Times count from the timeline's
    /// begin.
    pub(super) fn states_in(
        &self,
        keys: &[u64],
        window: (i64, i64),
        progress: &Progress,
    ) -> Result<HashMap<u64, Vec<TrackRun>>, TimelineFailure> {
        let _asked = self.ask();
        let (first, known) = (self.chunk_at(window.0), self.desk.known());
        let chunks = first..(self.chunk_at(window.1 - 1) + 1).min(first + CHUNKS_MAX).min(self.chunks.len());
        let exact = chunks.clone().map(|chunk| self.exact(chunk, Some(keys), known, progress));
        let nodes: Vec<Arc<TimelineNode>> = exact.collect::<Result<_, _>>()?;
        let since = |at_ns: i64| at_ns.saturating_sub(self.span.0);
        let Some(last) = nodes.len().checked_sub(1) else { return Ok(HashMap::new()) };
        let read = (since(self.chunks[first].span.0), since(self.chunks[first + last].span.1));
        let nodes = nodes.iter().map(|node| &**node).collect();
        Exactly { timeline: self, nodes, first_chunk: first, read, progress }.states(keys, window.0)
    }

    /// Up to when the state before is known, counted from the timeline's begin.
    pub(super) fn known_until(&self) -> i64 {
        let known = self.chunks.get(self.desk.known());
        known.map_or(i64::MAX, |chunk| chunk.span.1.saturating_sub(self.span.0))
    }
}
