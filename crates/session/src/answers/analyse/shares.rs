//! Parts of traces that are read elsewhere: the shares that go out, the states that come back, and
//! how these are put together.
//!
//! ```text
//! Shares::split() ──> Share, Share, ...   where to read       a few hundred bytes each
//!    │ any process that opens the same traces
//! Shares::read(Share) ──> bytes           what is known there an encoded state, no events
//!    │ neighbours, in order: a tree
//! Shares::merge(bytes, bytes) ──> bytes
//! Shares::finish(bytes...) ──> Analysed                       what `ask` answers
//! ```
//!
//! The end takes states in any order, and merges while the rest is still being read.
//!
//! No call depends on those before: each can be made again, or somewhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_analysis::{AnalysisKind, AnyAnalysis, AnyState, StateError, in_series};
use kymo_scan::Unsliceable;
use serde::{Deserialize, Serialize};

use super::part::{PartRead, PartReader, Strays};
use super::parts;
use super::prepare::Prepared;
use super::{AnalyseFailure, Analysed, room};
use crate::answers::analysis_options::AnalysisOptions;
use crate::open::identity::TraceIdentity;
use crate::open::progress::{Cancelled, Progress};
use crate::open::share::{Share, ShareProblem};
use crate::open::{Doubts, Session};

const MAGIC: &str = "kymo known 2";

/// Why an analysis of a share has no result, or results cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum ShareFailure {
    /// The request was canceled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The analysis has no answer.
    #[error(transparent)]
    Analyse(#[from] AnalyseFailure),
    /// It is no share of these traces.
    #[error(transparent)]
    Share(#[from] ShareProblem),
    /// The bytes are not the state of a share.
    #[error(transparent)]
    State(#[from] StateError),
    /// The state cannot be written down.
    #[error("the state of a share cannot be encoded: {0}")]
    Written(postcard::Error),
    /// States do not follow each other.
    #[error("share {wanted} is missing: the next state begins with share {found}")]
    Gap {
        /// The expected number.
        wanted: u32,
        /// The actual number.
        found: u32,
    },
    /// The state of a share was given a second time.
    #[error("share {0} is there twice")]
    Twice(u32),
    /// Shares at the end are missing.
    #[error("{found} of {wanted} shares are there")]
    Missing {
        /// How many there are.
        found: u32,
        /// How many there should be.
        wanted: u32,
    },
    /// The traces cannot be read in parts.
    #[error("these traces cannot be read in parts: {0}")]
    Whole(&'static str),
}

impl From<Strays> for ShareFailure {
    fn from(Strays: Strays) -> Self {
        Self::Whole("packets do not tell the times of their events, or cannot be read")
    }
}

/// The head of the state of shares that follow each other; the state's bytes are behind it. Several
/// of these that follow each other are the state of all their shares.
#[derive(Serialize, Deserialize)]
struct SharesHeader {
    magic: String,
    first: u32,
    end: u32,
    streams: StreamGaps,
    state_bytes: u64,
}

/// The other facts about data streams.
#[derive(Clone, Default, Serialize, Deserialize)]
struct StreamGaps {
    doubts: BTreeMap<usize, Doubts>,
    left_out: BTreeMap<usize, u64>,
}

impl StreamGaps {
    fn add(&mut self, others: Self) {
        for (stream, others) in others.doubts {
            self.doubts.entry(stream).or_default().add(others);
        }
        for (stream, others) in others.left_out {
            *self.left_out.entry(stream).or_default() += others;
        }
    }
}

/// A state and which shares it is of.
struct SharesState {
    first: u32,
    end: u32,
    state: AnyState,
    streams: StreamGaps,
}

impl SharesState {
    fn encode(&self, analysis: &dyn AnyAnalysis, asked: &Shares) -> Result<Vec<u8>, ShareFailure> {
        let room = room();
        let setup = asked.prepared.setup(&asked.options.wishes, &room);
        let state = analysis.encode(&setup, &self.state).map_err(ShareFailure::Written)?;
        let (first, end, streams) = (self.first, self.end, self.streams.clone());
        let head = SharesHeader { magic: MAGIC.to_owned(), first, end, streams, state_bytes: state.len() as u64 };
        let mut bytes = postcard::to_allocvec(&head).map_err(ShareFailure::Written)?;
        bytes.extend(state);
        Ok(bytes)
    }

    /// The first of the states, and the bytes of the others.
    fn decode<'a>(
        analysis: &dyn AnyAnalysis,
        asked: &Shares,
        bytes: &'a [u8],
    ) -> Result<(Self, &'a [u8]), ShareFailure> {
        let (head, rest) = postcard::take_from_bytes::<SharesHeader>(bytes).map_err(|_| ShareProblem::NoShare)?;
        // The bytes come from another process, and each number in them is checked before it is
        // used.
        let state_bytes = usize::try_from(head.state_bytes).map_err(|_| ShareProblem::NoShare)?;
        let (state, rest) = rest.split_at_checked(state_bytes).ok_or(ShareProblem::NoShare)?;
        if head.magic != MAGIC || head.first >= head.end {
            return Err(ShareProblem::NoShare.into());
        }
        let room = room();
        let setup = asked.prepared.setup(&asked.options.wishes, &room);
        let state = analysis.decode(&setup, state)?;
        let streams = asked.session.streams().len();
        // Later code finds streams by these numbers.
        let is_stream = |stream: &usize| *stream < streams;
        if !head.streams.doubts.keys().chain(head.streams.left_out.keys()).all(is_stream) {
            return Err(ShareProblem::NoShare.into());
        }
        let SharesHeader { first, end, streams, .. } = head;
        Ok((Self { first, end, state, streams }, rest))
    }
}

/// A question about traces, to be answered in shares: by this process or others that open the same traces and ask the same.
pub struct Shares {
    session: Arc<Session>,
    kind: AnalysisKind,
    options: AnalysisOptions,
    identity: TraceIdentity,
    prepared: Prepared,
}

impl Shares {
    /// A question to be shared out.
    ///
    /// # Errors
    ///
    /// There is no answer, or it cannot be had in parts.
    pub fn new(session: Arc<Session>, kind: AnalysisKind, options: AnalysisOptions) -> Result<Self, ShareFailure> {
        if matches!(kind, AnalysisKind::Periods(_)) || options.periods.is_some() {
            return Err(ShareFailure::Whole(OF_PERIODS));
        }
        let question = kind.question(&options.wishes);
        if options.wishes.period_ns.is_some() && !question.has_periods {
            return Err(ShareFailure::Whole(OF_PERIODS));
        }
        let prepared = session.prepare(&question, &options)?;
        drop(question);
        Ok(Self { identity: session.identity(), session, kind, options, prepared })
    }

    /// Parts for so many readers in the order of time, several for each.
    ///
    /// # Errors
    ///
    /// The traces cannot be read in parts.
    pub fn split(&self, readers: usize) -> Result<Vec<Share>, ShareFailure> {
        let slices = parts::all(&self.session, &self.prepared, &*self.make(), readers);
        let slices = match slices {
            Ok(slices) if !slices.is_empty() => slices,
            Ok(_) | Err(Unsliceable) => {
                return Err(ShareFailure::Whole("they are short, or packets do not tell their times"));
            }
        };
        let share = |(number, slice)| Share::new(&self.identity, number, Some(slice));
        Ok(slices.iter().enumerate().map(share).collect())
    }

    /// Reads a share of these traces on this thread; returns its state, as bytes.
    ///
    /// # Errors
    ///
    /// The share is of other traces, or it cannot be read; or it was canceled.
    pub fn read(&self, share: &Share, progress: &Progress) -> Result<Vec<u8>, ShareFailure> {
        share.check(&self.identity)?;
        progress.whole(self.read_whole(share, progress))?
    }

    /// Merges the states of shares that follow each other.
    ///
    /// # Errors
    ///
    /// They do not, or the bytes are not the state of a share; or it was canceled.
    pub fn merge(&self, states: &[&[u8]], progress: &Progress) -> Result<Vec<u8>, ShareFailure> {
        let analysis = &*self.make();
        let mut bytes = Vec::new();
        let mut merged: Option<SharesState> = None;
        in_order(analysis, self, states, progress, |known| {
            match &mut merged {
                // Only a state that is the first part is merged with later ones where these were
                // condensed.
                Some(left) if left.first == 0 || !analysis.merges_in_order() => {
                    analysis.merge(&mut left.state, known.state);
                    left.streams.add(known.streams);
                    left.end = known.end;
                }
                _ => {
                    let behind = merged.replace(known);
                    bytes.extend(behind.map(|known| known.encode(analysis, self)).transpose()?.unwrap_or_default());
                }
            }
            Ok(())
        })?;
        bytes.extend(merged.ok_or(ShareProblem::NoShare)?.encode(analysis, self)?);
        Ok(bytes)
    }

    /// The answer, from the states of all `count` shares, in any order. All threads of the session
    /// work for it while there may be more.
    ///
    /// # Errors
    ///
    /// Some are missing or there twice, or the bytes are not the state of a share; or it was
    /// canceled.
    pub fn finish<B: AsRef<[u8]> + Send>(
        &self,
        states: impl Iterator<Item = B>,
        count: usize,
        progress: &Progress,
    ) -> Result<Analysed, ShareFailure> {
        progress.whole(self.finish_whole(states, count as u32, progress))?
    }

    fn make(&self) -> Box<dyn AnyAnalysis> {
        let wishes = &self.options.wishes;
        (self.kind.question(wishes).make)(&self.prepared.setup(wishes, &room()))
    }

    /// The state of a share; of all of it, unless it was canceled.
    fn read_whole(&self, share: &Share, progress: &Progress) -> Result<Vec<u8>, ShareFailure> {
        let (number, slice) = (share.number(), share.slice(&self.session)?.ok_or(ShareProblem::NoShare)?);
        let analysis = &*self.make();
        let mut reader = PartReader::new(&self.session, &self.prepared, progress);
        let PartRead { mut state, .. } = reader.read_any(analysis, &slice, number == 0, true)?;
        analysis.condense(&mut state);
        let mut streams = StreamGaps::default();
        reader.doubt(&mut streams.doubts, &mut streams.left_out);
        let end = number.checked_add(1).ok_or(ShareProblem::NoShare)?;
        SharesState { first: number, end, state, streams }.encode(analysis, self)
    }

    /// The answer, unless it was canceled.
    fn finish_whole<B: AsRef<[u8]> + Send>(
        &self,
        states: impl Iterator<Item = B>,
        count: u32,
        progress: &Progress,
    ) -> Result<Analysed, ShareFailure> {
        self.prepared.read_stacks(&self.session, progress);
        let analysis = &*self.make();
        let arrived = Mutex::new(Arrived::default());
        let given = states.map(|bytes| -> parts::Given<'_> {
            let arrived = &arrived;
            Box::new(move || Arrived::take(arrived, analysis, self, bytes.as_ref()))
        });
        let state = parts::together(&self.session, &self.prepared, analysis, given, progress);
        progress.whole(())?;
        let Arrived { shares, given, streams, failure } = arrived.into_inner().unwrap_or_else(PoisonError::into_inner);
        match failure {
            // Which of them was refused depends on the thread that came first.
            Some(ShareFailure::Twice(share)) => return Err(ShareFailure::Twice(first_twice(given).unwrap_or(share))),
            failure => failure.map_or(Ok(()), Err)?,
        }
        all_there(&shares, count)?;
        let state = state.ok_or(ShareProblem::NoShare)?;
        if analysis.is_odd(&state) {
            return Err(ShareFailure::Whole("one part contradicts an earlier part"));
        }
        let StreamGaps { doubts, left_out } = streams;
        let read = parts::PartsResult {
            state,
            faults: Vec::new(),
            doubts,
            left_out,
            mixed: BTreeSet::new(),
            set_back: BTreeMap::new(),
        };
        let answer = analysis.finish(&read.state).map_err(AnalyseFailure::from)?;
        let mut report = read.report(&self.session, &self.prepared);
        report.assumptions.extend(self.prepared.stack_problems());
        Ok(Analysed { answer: in_series(answer, &self.options.wishes), report })
    }
}

const OF_PERIODS: &str = "periods are told apart by one reader";

/// The states of shares, as far as they follow each other: which ones these are.
fn in_order(
    analysis: &dyn AnyAnalysis,
    asked: &Shares,
    states: &[&[u8]],
    progress: &Progress,
    mut take: impl FnMut(SharesState) -> Result<(), ShareFailure>,
) -> Result<Option<(u32, u32)>, ShareFailure> {
    let mut span: Option<(u32, u32)> = None;
    for mut bytes in states.iter().copied() {
        loop {
            progress.whole(())?;
            let (known, rest) = SharesState::decode(analysis, asked, bytes)?;
            let (first, wanted) = span.unwrap_or((known.first, known.first));
            if known.first != wanted {
                return Err(ShareFailure::Gap { wanted, found: known.first });
            }
            span = Some((first, known.end));
            take(known)?;
            bytes = rest;
            if bytes.is_empty() {
                break;
            }
        }
    }
    Ok(span)
}

/// The states of shares that have come so far.
#[derive(Default)]
struct Arrived {
    /// The first ones of those that follow each other, and those behind them.
    shares: BTreeMap<u32, u32>,
    /// All that came, also those with shares that had come already.
    given: Vec<(u32, u32)>,
    streams: StreamGaps,
    /// Why something is of no use.
    failure: Option<ShareFailure>,
}

impl Arrived {
    /// Understands some of it; `None`: it is of no use.
    fn take(
        arrived: &Mutex<Self>,
        analysis: &dyn AnyAnalysis,
        asked: &Shares,
        mut bytes: &[u8],
    ) -> Option<Vec<(u64, u64, AnyState)>> {
        let lock = || -> MutexGuard<'_, Self> { arrived.lock().unwrap_or_else(PoisonError::into_inner) };
        let mut runs = Vec::new();
        loop {
            let known = SharesState::decode(analysis, asked, bytes).and_then(|(known, rest)| {
                bytes = rest;
                // Locked only for this: decoding a state takes long, and other threads decode
                // theirs.
                lock().add(known.first, known.end, known.streams)?;
                Ok((known.first.into(), known.end.into(), known.state))
            });
            match known {
                Ok(known) => runs.push(known),
                Err(failure) => {
                    lock().failure.get_or_insert(failure);
                    return None;
                }
            }
            if bytes.is_empty() {
                return Some(runs);
            }
        }
    }

    fn add(&mut self, first: u32, end: u32, streams: StreamGaps) -> Result<(), ShareFailure> {
        self.given.push((first, end));
        let (before, behind) = (self.shares.range(..first).next_back(), self.shares.range(first..end).next());
        let twice = before.filter(|(_, end)| **end > first).map(|_| first).or(behind.map(|(first, _)| *first));
        twice.map_or(Ok(()), |share| Err(ShareFailure::Twice(share)))?;
        self.shares.insert(first, end);
        self.streams.add(streams);
        Ok(())
    }
}

/// The first share that is in two of these.
fn first_twice(mut given: Vec<(u32, u32)>) -> Option<u32> {
    given.sort_unstable();
    let mut known = 0;
    given.into_iter().find_map(|(first, end)| {
        let is_known = first < known;
        known = known.max(end);
        is_known.then_some(first)
    })
}

/// Whether these are all shares.
fn all_there(shares: &BTreeMap<u32, u32>, count: u32) -> Result<(), ShareFailure> {
    let mut wanted = 0;
    for (&found, &end) in shares {
        if found != wanted {
            return Err(ShareFailure::Gap { wanted, found });
        }
        wanted = end;
    }
    if wanted == count { Ok(()) } else { Err(ShareFailure::Missing { found: wanted, wanted: count }) }
}

impl std::fmt::Debug for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shares").field("kind", &self.kind).field("traces", &self.identity).finish_non_exhaustive()
    }
}
