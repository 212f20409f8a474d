//! A timeline of traces that grow: the built part stays, and new events are put behind it.
//!
//! ```text
//! chunks   [  0  ][  1  ][  2  ][ open ]│ watermark: before it, everything is there
//! later    [  0  ][  1  ][  2  ][  3  ][ open    ]│
//! ```
//!
//! All chunks but the last one are as they will ever be, and so are nodes above such chunks: these
//! are in the file. The open chunk and the nodes above it are made anew each time, in memory. The
//! state before the open chunk is kept, so that no event of a chunk before is looked at again.
//!
//! Numbers stay as they are: of tracks and values, as they are given when something is met, and of
//! machines, lanes and classes of events, which would otherwise depend on the other events that
//! there are ([`Numbering`]).

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use kymo_analysis::LaneFacts;
use kymo_analysis::timeline::TimelinePart;
use kymo_scan::{DataStream, Trace};

use super::build::BuildScheduler;
use super::chunks::{self, ExistingChunks, TimelineChunk};
use super::pyramid::Pyramid;
use super::{Timeline, TimelineFailure, TimelineParts, analysis_of};
use crate::answers::analyse::Prepared;
use crate::open::Session;
use crate::open::progress::Progress;

/// How long to wait for builders before their remaining work is left to the next ones.
const PATIENCE: Duration = Duration::from_millis(400);

/// Which numbers machines and lanes have. Those that come later have others, and those that are gone keep theirs.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    hosts: Vec<MachineIdentity>,
    lanes: Vec<LaneIdentity>,
}

/// The identity of a machine: its name, or the only trace of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MachineIdentity {
    Named(String),
    Of(PathBuf),
}

/// The identity of a lane: its CPU, or else its streams.
#[derive(Clone, Debug)]
struct LaneIdentity {
    facts: LaneFacts,
    streams: HashSet<StreamIdentity>,
}

/// The identity of a data stream: trace, class, its id or its first file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StreamIdentity(PathBuf, usize, Result<u64, String>);

impl Numbering {
    /// Lanes of traces with the numbers that they have had, or with new ones.
    pub(super) fn apply(&mut self, session: &Session, lanes: Vec<LaneFacts>) -> Vec<LaneFacts> {
        let streams = session.streams();
        let stream = |number: usize| StreamIdentity::of(streams[number]);
        let mut found: Vec<Option<LaneFacts>> = vec![None; self.lanes.len()];
        for mut lane in lanes {
            let of: HashSet<StreamIdentity> = lane.streams.iter().map(|number| stream(*number)).collect();
            let folder = lane.streams.first().map(|number| streams[*number].0.folder.path().to_owned());
            lane.host = self.host(lane.host_name.as_ref(), folder);
            let number = self.lane(&lane, of);
            found.resize(self.lanes.len().max(found.len()), None);
            found[number] = Some(lane);
        }
        let gone = |known: &LaneIdentity| LaneFacts { streams: Vec::new(), span_ns: None, ..known.facts.clone() };
        self.lanes.iter().zip(found).map(|(known, found)| found.unwrap_or_else(|| gone(known))).collect()
    }

    fn host(&mut self, name: Option<&String>, folder: Option<PathBuf>) -> u16 {
        let machine = match name {
            Some(name) => MachineIdentity::Named(name.clone()),
            None => MachineIdentity::Of(folder.unwrap_or_default()),
        };
        let number = self.hosts.iter().position(|known| *known == machine).unwrap_or_else(|| {
            self.hosts.push(machine);
            self.hosts.len() - 1
        });
        u16::try_from(number).unwrap_or(u16::MAX)
    }

    fn lane(&mut self, lane: &LaneFacts, streams: HashSet<StreamIdentity>) -> usize {
        let is_it = |known: &LaneIdentity| {
            let is_place = (known.facts.host, known.facts.cpu) == (lane.host, lane.cpu);
            is_place && (lane.cpu.is_some() || !known.streams.is_disjoint(&streams))
        };
        if let Some(number) = self.lanes.iter().position(is_it) {
            self.lanes[number].streams.extend(streams);
            return number;
        }
        self.lanes.push(LaneIdentity { facts: lane.clone(), streams });
        self.lanes.len() - 1
    }
}

impl StreamIdentity {
    fn of((trace, stream): (&Arc<Trace>, &DataStream)) -> Self {
        let file = || stream.files.first().map(|file| trace.folder.streams()[*file as usize].name.clone());
        let id = stream.id.ok_or_else(|| file().unwrap_or_default());
        Self(trace.folder.path().to_owned(), stream.class, id)
    }
}

/// The parts of a timeline that stay when its traces have grown.
struct StableParts {
    /// How many of the first chunks.
    chunks: usize,
    /// The state behind these.
    before: Option<TimelinePart>,
}

impl Timeline {
    /// The same traces, which have grown: everything before `until` is there now, or all that ever will be. This timeline is not built any
    /// further, and answers as it did.
    ///
    /// # Errors
    ///
    /// As those of [`Session::timeline`].
    pub fn grown(&self, session: &Arc<Session>, until: Option<i64>) -> Result<Arc<Self>, TimelineFailure> {
        self.grown_beside(None, session, until)
    }

    /// The same of a timeline of some events, beside that of all, which has grown already.
    ///
    /// # Errors
    ///
    /// As those of [`Timeline::grown`].
    pub fn grown_beside(
        &self,
        all: Option<&Arc<Self>>,
        session: &Arc<Session>,
        until: Option<i64>,
    ) -> Result<Arc<Self>, TimelineFailure> {
        if self.is_started.load(Ordering::Relaxed) {
            self.wait_some(PATIENCE);
        }
        // The watermark never goes back.
        let until = until.map(|until| until.max(self.until.unwrap_or(until)));
        let all = all.or(self.all.as_ref()).map(Arc::clone);
        let is_same = Arc::ptr_eq(session, &self.session);
        if let (true, Some(until)) = (is_same, until)
            && let Some(longer) = self.longer(all.as_ref(), until)
        {
            return Ok(longer);
        }
        let kept = self.take_kept();
        let is_alike = self.has_streams_of(session);
        let mut numbering = self.numbering.clone();
        let (prepared, analysis) = match is_same {
            true => (Arc::clone(&self.prepared), Arc::clone(&self.analysis)),
            false => {
                let mut prepared = session.prepared_for_timeline(&self.options, &self.own)?;
                prepared.lanes = numbering.apply(session, std::mem::take(&mut prepared.lanes));
                let analysis = analysis_of(&prepared, self.span.0).with_own(self.own.clone());
                let analysis = if self.all.is_some() { analysis.of_some() } else { analysis };
                (Arc::new(prepared), Arc::new(analysis.after(&self.analysis.numbers())))
            }
        };
        let span = (self.span.0, until.map_or_else(|| self.last_of(&prepared), |until| until - 1));
        let span = (span.0, span.1.max(span.0));
        let before = self.chunks[..kept.chunks].to_vec();
        let kept_of = ExistingChunks { chunks: before, is_alike };
        let chunks = chunks::from(session, &prepared, (span, until), kept_of);
        // The last chunk ends at the watermark and will be longer, so nodes above it stay out of
        // the file.
        let settled = if until.is_some() { chunks.len() - 1 } else { usize::MAX };
        let pyramid = self.pyramid.grown(chunks.len(), kept.chunks, settled);
        self.names.met_lanes(&analysis, true);
        let desk = BuildScheduler::new(&analysis, chunks.len(), self.desk.version() + 1);
        let before = kept.before.map(|mut before| {
            analysis.widen(&mut before);
            before
        });
        if kept.chunks > 0 {
            desk.go_on(kept.chunks, before);
        }
        let parts =
            TimelineParts { session: Arc::clone(session), all, prepared, analysis, span, until, numbering, chunks };
        Ok(self.with(parts, pyramid, desk))
    }

    /// The same chunks, where nothing has happened but that time went by.
    fn longer(&self, all: Option<&Arc<Self>>, until: i64) -> Option<Arc<Self>> {
        let before = self.until?;
        let last = self.prepared.span_ns().map_or(i64::MAX, |span| span.1);
        if last >= before || until < before {
            return None;
        }
        let open = self.desk.take_open_of_complete()?;
        let mut chunks = self.chunks.clone();
        let chunk = chunks.last_mut()?;
        (chunk.span.1, chunk.slice.end) = (until, Some(until));
        let pyramid = self.pyramid.grown(chunks.len(), chunks.len(), chunks.len() - 1);
        let desk = BuildScheduler::complete(chunks.len(), open, self.desk.version() + 1);
        let parts = TimelineParts {
            session: Arc::clone(&self.session),
            all: all.map(Arc::clone),
            prepared: Arc::clone(&self.prepared),
            analysis: Arc::clone(&self.analysis),
            span: (self.span.0, until - 1),
            until: Some(until),
            numbering: self.numbering.clone(),
            chunks,
        };
        Some(self.with(parts, pyramid, desk))
    }

    /// The end of traces that grow no more.
    fn last_of(&self, prepared: &Prepared) -> i64 {
        prepared.span_ns().map_or(self.span.1, |span| span.1)
    }

    /// Ends building, and takes the known state. Without a watermark, no chunk was known to be
    /// whole.
    fn take_kept(&self) -> StableParts {
        match self.desk.take_known().filter(|_| self.until.is_some()) {
            Some((chunks, before)) => StableParts { chunks, before: Some(before) },
            None => StableParts { chunks: 0, before: None },
        }
    }

    /// Whether traces have the same data streams, in the same order, as those of this timeline.
    fn has_streams_of(&self, session: &Session) -> bool {
        let all = |session: &Session| session.streams().into_iter().map(StreamIdentity::of).collect::<Vec<_>>();
        all(&self.session) == all(session)
    }

    fn with(&self, parts: TimelineParts, pyramid: Pyramid, desk: BuildScheduler) -> Arc<Self> {
        let TimelineParts { session, all, prepared, analysis, span, until, numbering, chunks } = parts;
        let progress = Progress::default();
        progress.expect(chunks.iter().map(|chunk: &TimelineChunk| chunk.slice.bytes).sum());
        let built = desk.known();
        progress.add(chunks[..built].iter().map(|chunk| chunk.slice.bytes).sum());
        Arc::new(Self {
            session,
            desk: Arc::new(desk),
            prepared,
            causes: OnceLock::new(),
            analysis,
            span,
            until,
            numbering,
            chunks,
            pyramid,
            names: Arc::clone(&self.names),
            all,
            options: self.options.clone(),
            own: self.own.clone(),
            progress,
            shared: super::exact::SharedChunk::default(),
            asked: AtomicUsize::new(0),
            is_started: AtomicBool::new(false),
            began: Instant::now(),
            home: None,
        })
    }
}

impl Prepared {
    /// From when to when packets are.
    fn span_ns(&self) -> Option<(i64, i64)> {
        kymo_analysis::setup::span_ns(&self.lanes)
    }
}
