//! The trace as a viewer sees it: tracks over time, at any width of a pixel.
//!
//! ```text
//! packet index ──> chunks of a few MiB each            density, losses: at once
//! chunks ──threads──> sealed in order ──> nodes        four nodes make one of a wider level
//!                                         └─> file in the cache
//! question: (level, buckets, tracks) ──> the widest nodes that are fine enough ──> cells ──> buckets
//!                                        none: the chunk is read, in the finest buckets
//! ```
//!
//! A question costs rows times pixels, and at most a few chunks: between the nodes' finest level
//! and a nanosecond, chunks are decoded on demand. The few most recently used ones are kept.

mod arrows;
mod ask;
mod build;
mod catalogue;
mod chunks;
mod estimate;
mod exact;
mod findings;
mod growing;
mod items;
mod kept;
mod own;
mod pyramid;
#[cfg(feature = "columns")]
mod ran;
mod selected;
mod spans;
#[cfg(test)]
mod tests;
mod tiles;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use kymo_analysis::setup::span_ns;
use kymo_analysis::timeline::cells::Level;
use kymo_analysis::timeline::own::DeclaredTracks;
use kymo_analysis::timeline::{TimelineAnalysis, ValueNumbering};
use kymo_analysis::{LaneFacts, Question, Setup, SpoolError, Wishes};
use serde::Serialize;

use crate::answers::analyse::{AnalyseFailure, Prepared};
use crate::answers::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::open::progress::{Cancelled, Progress};
use crate::open::report::ReportProblem;

pub use self::catalogue::{Catalogue, Track, TrackKind, TrackValue};
pub use self::items::{ITEMS_MAX, ItemQuestion, ItemsFound, TrackItem, WaitCall, WaitReason, WaitRequest, Waker};
pub use self::own::OwnTracks;
#[cfg(feature = "columns")]
pub use self::ran::EventsOfThreads;
pub use self::tiles::{
    ArrowBucket, BEGIN_UNKNOWN, BUCKETS_MAX, CounterBucket, END_UNKNOWN, ExactArrow, ExactInstant, ExactRun,
    HeatBucket, IN_DOUBT, InstantBucket, Items, Quality, RECEIVED_FIRST, StateBucket, TRACKS_MAX, TileQuestion,
    TileSpan, Tiles, TrackTile,
};

use self::build::BuildScheduler;
use self::catalogue::TrackNames;
use self::chunks::{ExistingChunks, TimelineChunk};
use self::growing::Numbering;
use self::kept::{EarlierRun, Home};
use self::pyramid::Pyramid;

/// How a timeline is made.
#[derive(Clone, Debug, Default)]
pub struct TimelineOptions {
    /// A mapping from events to roles that goes before those that are built in.
    pub roles: Option<std::path::PathBuf>,
    /// Own analyses that add their states and counters as tracks.
    pub own: Vec<OwnTracks>,
    /// Memory for recently used parts; without it, 48 MiB.
    pub cache_bytes: Option<usize>,
}

/// A trace as a viewer sees it. All may be asked by any thread.
pub struct Timeline {
    session: Arc<Session>,
    prepared: Arc<Prepared>,
    /// For reading why threads wait.
    causes: OnceLock<Option<Prepared>>,
    analysis: Arc<TimelineAnalysis>,
    /// When the first bucket begins, and when the last event may be.
    span: (i64, i64),
    /// Up to when everything is there, if the traces grow.
    until: Option<i64>,
    /// Of traces that grow, which machines and lanes have which numbers.
    numbering: Numbering,
    chunks: Vec<TimelineChunk>,
    pyramid: Pyramid,
    desk: Arc<BuildScheduler>,
    names: Arc<TrackNames>,
    /// Only some events are there: the timeline of all.
    all: Option<Arc<Self>>,
    progress: Progress,
    /// Chunks that are read for questions right now.
    shared: exact::SharedChunk,
    /// Questions that are being answered: builders let them go first.
    asked: AtomicUsize,
    /// Building has begun.
    is_started: AtomicBool,
    began: Instant,
    home: Option<Home>,
    /// The options that it was asked with.
    options: AnalysisOptions,
    own: DeclaredTracks,
}

/// The parts that change when the traces have grown.
struct TimelineParts {
    session: Arc<Session>,
    all: Option<Arc<Timeline>>,
    prepared: Arc<Prepared>,
    analysis: Arc<TimelineAnalysis>,
    span: (i64, i64),
    until: Option<i64>,
    numbering: Numbering,
    chunks: Vec<TimelineChunk>,
}

/// Why there is no timeline, or no tile.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TimelineFailure {
    /// The mapping of roles is wrong.
    #[error("{0}")]
    Roles(Arc<AnalyseFailure>),
    /// No event has a time.
    #[error("no event of these traces has a time to draw it over")]
    NoTimes,
    /// A question is out of bounds.
    #[error("{name} is {found}, but {expected}")]
    Bounds {
        /// The name of the value.
        name: &'static str,
        /// The given value.
        found: u64,
        /// The allowed values.
        expected: String,
    },
    /// A file of the cache cannot be written or read.
    #[error("{0}")]
    Kept(Arc<SpoolError>),
    /// Packets cannot be read as their times say.
    #[error("{0}")]
    Unreadable(String),
    /// The request was canceled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<SpoolError> for TimelineFailure {
    fn from(error: SpoolError) -> Self {
        Self::Kept(Arc::new(error))
    }
}

/// How far building is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimelineState {
    /// No thread builds it.
    Idle,
    /// Chunks are being read.
    Building,
    /// All chunks were read.
    Complete,
    /// Something went wrong: the parts that were built before are there.
    Failed,
}

/// The state of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineStatus {
    /// When the first bucket begins, in nanoseconds since the clock's origin: at the first event.
    pub begin_ns: i64,
    /// The last nanosecond in which something happens.
    pub end_ns: i64,
    /// Whether the clock's origin is that of Unix.
    pub unix: bool,
    /// A bucket of this level holds everything.
    pub level_max: Level,
    /// Goes up whenever tiles or tracks change; not when values are met, of which `values` tells.
    pub version: u64,
    /// How far building is.
    pub state: TimelineState,
    /// The error.
    pub failure: Option<String>,
    /// Bytes of packets that were read, and all.
    pub done_bytes: u64,
    /// All of them.
    pub total_bytes: u64,
    /// How long it will take, about.
    pub eta_ms: Option<u64>,
    /// How many events there are, as soon as that is known.
    pub events: Option<u64>,
    /// How many events are known to be lost; absent if some tracers that lost events do not say how
    /// many.
    pub lost_events: Option<u64>,
    /// Tracks and values that are known.
    pub tracks: u32,
    /// Values that are known.
    pub values: u32,
}

impl Session {
    /// The trace as a viewer sees it. Nothing is read yet except the packet index, and data streams
    /// with packets that do not say when they are.
    ///
    /// # Errors
    ///
    /// No event has a time, or the mapping is wrong.
    pub fn timeline(self: &Arc<Self>, options: &TimelineOptions) -> Result<Arc<Timeline>, TimelineFailure> {
        self.timed().timeline_until(options, None)
    }

    /// The same of traces that grow: everything before `until` is there. [`Timeline::grown`] puts
    /// later events behind it; nothing is left in the cache.
    ///
    /// # Errors
    ///
    /// As those of [`Session::timeline`]; no event is before that time.
    pub fn growing_timeline(
        self: &Arc<Self>,
        options: &TimelineOptions,
        until: i64,
    ) -> Result<Arc<Timeline>, TimelineFailure> {
        self.timeline_until(options, Some(until))
    }

    fn timeline_until(
        self: &Arc<Self>,
        options: &TimelineOptions,
        until: Option<i64>,
    ) -> Result<Arc<Timeline>, TimelineFailure> {
        let cache_bytes = options.cache_bytes;
        let (own, own_texts) = own::all(&options.own);
        let options = AnalysisOptions { roles: options.roles.clone(), ..AnalysisOptions::default() };
        let mut prepared = self.prepared_for_timeline(&options, &own)?;
        let mut numbering = Numbering::default();
        if until.is_some() {
            prepared.lanes = numbering.apply(self, std::mem::take(&mut prepared.lanes));
        }
        let span = span_ns(&prepared.lanes).ok_or(TimelineFailure::NoTimes)?;
        let span = (span.0, until.map_or(span.1, |until| until.saturating_sub(1)));
        if span.1 < span.0 {
            return Err(TimelineFailure::NoTimes);
        }
        let analysis = analysis_of(&prepared, span.0).with_own(own.clone());
        let analysis = if until.is_some() { analysis.after(&ValueNumbering::default()) } else { analysis };
        let chunks = chunks::from(self, &prepared, (span, until), ExistingChunks::default());
        let spans: Vec<_> = chunks.iter().map(|chunk| chunk.span).collect();
        let home = self.home(&options, &own_texts).filter(|_| until.is_none());
        let names = Arc::new(TrackNames::new(&analysis, until.is_some()));
        let desk = Arc::new(BuildScheduler::new(&analysis, chunks.len(), 0));
        let progress = Progress::default();
        progress.expect(chunks.iter().map(|chunk| chunk.slice.bytes).sum());
        let pyramid = match home.as_ref().and_then(|home| home.recall(&spans)) {
            Some(EarlierRun { pyramid, known, built, before }) => {
                names.recall(known);
                desk.go_on(built, before);
                progress.add(chunks[..built].iter().map(|chunk| chunk.slice.bytes).sum());
                pyramid
            }
            None => {
                let settled = if until.is_some() { chunks.len() - 1 } else { usize::MAX };
                Pyramid::new(self.cache.as_deref(), chunks.len(), settled)?
            }
        };
        let timeline = Timeline {
            session: Arc::clone(self),
            desk,
            prepared: Arc::new(prepared),
            causes: OnceLock::new(),
            analysis: Arc::new(analysis),
            span,
            until,
            numbering,
            chunks,
            pyramid,
            names,
            all: None,
            options,
            own,
            progress,
            shared: exact::SharedChunk::default(),
            asked: AtomicUsize::new(0),
            is_started: AtomicBool::new(false),
            began: Instant::now(),
            home,
        };
        if let Some(bytes) = cache_bytes {
            timeline.pyramid.hold(bytes);
        }
        Ok(Arc::new(timeline))
    }

    /// The known facts before a timeline is read. Preparing looks only at the roles and fields that
    /// it needs of events.
    fn prepared_for_timeline(
        &self,
        options: &AnalysisOptions,
        own: &DeclaredTracks,
    ) -> Result<Prepared, TimelineFailure> {
        let question = TimelineAnalysis::question();
        let mapping = (!own.is_empty()).then(|| own.mapping());
        let question = Question { mapping, ..question };
        self.prepare(&question, options).map_err(|error| TimelineFailure::Roles(Arc::new(error)))
    }

    /// Where the pyramid is kept, if it can be.
    fn home(&self, options: &AnalysisOptions, own: &str) -> Option<Home> {
        let belongs = self.fingerprint(options, format!("timeline{own}").as_bytes())?;
        let folder = self.cache.as_deref()?;
        Some(Home::new(folder, self.paths_hash(b""), belongs))
    }
}

/// The analysis of the read chunks, with a first bucket that begins at a time.
fn analysis_of(prepared: &Prepared, begin_ns: i64) -> TimelineAnalysis {
    let wishes = Wishes::default();
    let (classes, lanes) = (&prepared.bindings.classes, &prepared.lanes);
    let setup = Setup { classes, lanes, wishes: &wishes, room: None, traces: &[], stacks: None };
    TimelineAnalysis::new(&setup, begin_ns)
}

impl Timeline {
    /// The traces that it is of.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Its current state.
    #[must_use]
    pub fn status(&self) -> TimelineStatus {
        let (done_bytes, total_bytes) = self.progress.bytes();
        let (built, failure) = self.desk.state(self.is_started.load(Ordering::Relaxed));
        // Everything that is built stays, and the rest will never be there.
        let gone = self.session.gone_files_seen();
        let failure = failure.or_else(|| gone_text(&gone));
        let state = if gone.is_empty() { built } else { TimelineState::Failed };
        let (tracks, values) = self.names.count();
        let elapsed_ms = self.began.elapsed().as_millis() as u64;
        let eta = (done_bytes > 0).then(|| elapsed_ms.saturating_mul(total_bytes - done_bytes) / done_bytes);
        let lost = |sum: Option<u64>, lane: &LaneFacts| Some(sum?.saturating_add(lane.lost?));
        TimelineStatus {
            begin_ns: self.span.0,
            end_ns: self.span.1,
            unix: self.session.times_are_unix(),
            level_max: self.level_max(),
            // Values get their numbers at the first request: that changes nothing for others.
            version: u64::from(tracks) + self.desk.version(),
            state,
            failure,
            done_bytes,
            total_bytes,
            eta_ms: eta.filter(|_| state == TimelineState::Building),
            events: (built == TimelineState::Complete).then(|| self.events()),
            lost_events: self.prepared.lanes.iter().fold(Some(0), lost),
            tracks,
            values,
        }
    }

    /// A bucket of this level holds everything.
    fn level_max(&self) -> Level {
        (64 - self.span.0.abs_diff(self.span.1).leading_zeros()) as Level
    }
}

/// The files that are gone, in a sentence.
fn gone_text(gone: &[ReportProblem]) -> Option<String> {
    let (first, more) = gone.split_first()?;
    let first = format!("{}: {}", first.message, first.place);
    Some(match more.len() {
        0 => first,
        1 => format!("{first}; another file of these traces is gone or shorter, too"),
        more => format!("{first}; {more} other files of these traces are gone or shorter, too"),
    })
}

impl Drop for Timeline {
    /// Threads that wait for something to do end.
    fn drop(&mut self) {
        self.desk.stop();
    }
}

impl std::fmt::Debug for Timeline {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Timeline").field("span", &self.span).field("chunks", &self.chunks.len()).finish()
    }
}
