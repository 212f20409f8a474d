//! Batches of events: in the order of time, read ahead by other threads; or in parts, each read by
//! the thread that asks.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kymo_scan::{Slice, Slices, Unsliceable};
use kymo_table::RecordBatch;

use super::reading::{BatchFailure, Ended, EventSliceReader, SlicePiece, SoloReader};
use super::{EventChunk, EventsFailure, EventsPlan};
use crate::open::Doubts;
use crate::open::progress::Progress;
use crate::open::report::Report;
use crate::parallel::desk::{SliceReader, SliceScheduler};

/// Bytes of batches that may wait for their turn.
const WAITING_BYTES: usize = 64 << 20;

/// All rows of a table in the order of time. Dropping it stops the threads that read.
pub struct EventStream {
    plan: Arc<EventsPlan>,
    progress: Arc<Progress>,
    source: BatchSource,
    /// Rows that were given.
    rows: u64,
    known: Ended,
}

enum BatchSource {
    /// Nothing was asked for yet.
    New,
    Threads(ReaderThreads),
    Alone(Box<SoloReader>),
    Over,
}

/// Threads that read slices, and their results.
struct ReaderThreads {
    desk: Arc<SliceScheduler<SlicePiece>>,
    handles: Vec<JoinHandle<()>>,
    pieces: VecDeque<SlicePiece>,
}

impl ReaderThreads {
    fn start(plan: &Arc<EventsPlan>, progress: &Arc<Progress>) -> Result<Self, Unsliceable> {
        let count = plan.session.threads;
        let desk = Arc::new(SliceScheduler::new(plan.slices(count)?, count, WAITING_BYTES));
        let mut threads = Self { desk, handles: Vec::new(), pieces: VecDeque::new() };
        for number in 0..count {
            let (desk, plan, progress) = (Arc::clone(&threads.desk), Arc::clone(plan), Arc::clone(progress));
            let thread = std::thread::Builder::new().name(format!("kymo-events-{number}"));
            match thread.spawn(move || desk.serve(&mut EventSliceReader::new(&plan, &progress))) {
                Ok(handle) => threads.handles.push(handle),
                // Those that there are do all of it.
                Err(_) if !threads.handles.is_empty() => break,
                Err(_) => return Err(Unsliceable),
            }
        }
        Ok(threads)
    }

    /// Lets the threads go; whether one of them panicked.
    fn join(&mut self) -> bool {
        self.desk.stop();
        let ends = self.handles.drain(..).map(|handle| handle.join().is_err());
        ends.fold(false, |any, panicked| any | panicked)
    }
}

impl Drop for ReaderThreads {
    fn drop(&mut self) {
        self.join();
    }
}

impl EventStream {
    pub(super) fn new(plan: Arc<EventsPlan>) -> Self {
        let known = Ended { report: plan.session.opening_report().clone(), replaced_texts: 0 };
        Self { plan, progress: Arc::default(), source: BatchSource::New, rows: 0, known }
    }

    /// The progress, which cancels it, from any thread: a thread that waits for a batch gets
    /// [`EventsFailure::Cancelled`] soon, instead of the remaining batches.
    #[must_use]
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// The differences between the rows so far and the whole truth; complete when there are no
    /// more.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.known.report
    }

    /// Texts so far that were not valid: they have U+FFFD where they are not.
    #[must_use]
    pub fn replaced_texts(&self) -> u64 {
        self.known.replaced_texts
    }

    fn start(&self) -> BatchSource {
        match ReaderThreads::start(&self.plan, &self.progress) {
            Ok(threads) => BatchSource::Threads(threads),
            Err(Unsliceable) => BatchSource::Alone(Box::new(SoloReader::new(&self.plan, 0, &self.progress))),
        }
    }

    /// Reads everything anew, to give the rows that follow those that were given.
    fn begin_again(&mut self) {
        self.plan.is_unsliceable.store(true, Ordering::Relaxed);
        self.known = Ended { report: self.plan.session.opening_report().clone(), replaced_texts: 0 };
        self.source = BatchSource::Alone(Box::new(SoloReader::new(&self.plan, self.rows, &self.progress)));
    }

    fn add_doubts(&mut self, doubts: BTreeMap<usize, Doubts>) {
        let session = Arc::clone(&self.plan.session);
        let notes = doubts.into_iter().flat_map(|(stream, doubts)| session.assumptions_of(stream, doubts));
        self.known.report.assumptions.extend(notes);
    }

    /// The next piece from the threads, if it comes soon, or their end.
    fn next_of_threads(&mut self, time: Duration) -> Option<Result<RecordBatch, EventsFailure>> {
        let BatchSource::Threads(threads) = &mut self.source else { return None };
        let Some(piece) = threads.pieces.pop_front() else {
            match threads.desk.wait(time) {
                Some(pieces) => threads.pieces = pieces,
                None => return self.end_threads(),
            }
            return None;
        };
        match piece {
            SlicePiece::Batch(batch) => return Some(Ok(batch)),
            SlicePiece::Failed(error) => {
                self.source = BatchSource::Over;
                return Some(Err(error.into()));
            }
            SlicePiece::End(ended) => self.known.add(&ended),
        }
        None
    }

    /// All threads have ended.
    fn end_threads(&mut self) -> Option<Result<RecordBatch, EventsFailure>> {
        let BatchSource::Threads(mut threads) = std::mem::replace(&mut self.source, BatchSource::Over) else {
            return None;
        };
        let has_panicked = threads.join();
        let ending = threads.desk.end();
        if has_panicked {
            return Some(Err(EventsFailure::Gone));
        }
        if ending.is_unsliceable {
            self.begin_again();
        } else {
            self.add_doubts(ending.doubts);
        }
        None
    }
}

impl Iterator for EventStream {
    type Item = Result<RecordBatch, EventsFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_within(LONG) {
                NextBatch::Next(next) => return next,
                NextBatch::Nothing => {}
                NextBatch::Alone => return self.whole(Self::next_alone),
            }
        }
    }
}

/// How long an iterator waits before it looks again; it has nothing else to do.
const LONG: Duration = Duration::from_secs(60);

/// The result of [`EventStream::next_within`].
#[derive(Debug)]
pub enum NextBatch {
    /// The result of [`EventStream::next`].
    Next(Option<Result<RecordBatch, EventsFailure>>),
    /// Nothing yet.
    Nothing,
    /// No other thread reads: only [`EventStream::next`] has more, however long that takes.
    Alone,
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.progress.cancel();
    }
}

impl EventStream {
    /// The next batch, if other threads read and it comes before so much time is over.
    pub fn next_within(&mut self, time: Duration) -> NextBatch {
        if matches!(self.source, BatchSource::New) {
            self.source = self.start();
        }
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match &self.source {
                BatchSource::Threads(_) if left.is_zero() => return NextBatch::Nothing,
                BatchSource::Threads(_) => {}
                BatchSource::Over => return NextBatch::Next(None),
                BatchSource::New | BatchSource::Alone(_) => return NextBatch::Alone,
            }
            let next = self.whole(|stream| stream.next_of_threads(left));
            if next.is_some() {
                return NextBatch::Next(next);
            }
        }
    }

    /// The next batch that is read here.
    fn next_alone(&mut self) -> Option<Result<RecordBatch, EventsFailure>> {
        let BatchSource::Alone(alone) = &mut self.source else { return None };
        match alone.next() {
            Ok(Some(batch)) => Some(Ok(batch)),
            Ok(None) => {
                let ended = alone.ended(&self.plan);
                self.source = BatchSource::Over;
                self.known.add(&ended);
                None
            }
            Err(failure) => {
                self.source = BatchSource::Over;
                Some(Err(failure.into()))
            }
        }
    }

    /// The next result; not if it was canceled meanwhile: rows may be missing.
    fn whole(
        &mut self,
        next: impl FnOnce(&mut Self) -> Option<Result<RecordBatch, EventsFailure>>,
    ) -> Option<Result<RecordBatch, EventsFailure>> {
        let next = next(self);
        if let Err(cancelled) = self.progress.whole(()) {
            self.source = BatchSource::Over;
            return Some(Err(cancelled.into()));
        }
        if let Some(Ok(batch)) = &next {
            self.rows += batch.num_rows() as u64;
        }
        next
    }
}

impl From<BatchFailure> for EventsFailure {
    fn from(failure: BatchFailure) -> Self {
        match failure {
            BatchFailure::Unsliceable => Self::Unsliceable,
            BatchFailure::Arrow(error) => Self::Arrow(error),
        }
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            BatchSource::New => "not begun",
            BatchSource::Threads(_) => "threads",
            BatchSource::Alone(_) => "alone",
            BatchSource::Over => "over",
        };
        f.debug_struct("EventStream").field("source", &source).field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// Part of the rows of a table, in the order of time, read by the thread that asks.
#[derive(Debug)]
pub struct EventPartition {
    plan: Arc<EventsPlan>,
    progress: Arc<Progress>,
    shared: Arc<Mutex<PartitionsState>>,
    state: PartitionState,
    known: Ended,
}

/// The state that the partitions of a table share.
#[derive(Debug)]
struct PartitionsState {
    slices: UnreadSlices,
    /// How many partitions have begun, and not ended.
    reading: usize,
    /// The doubts about each data stream from the partitions that have ended.
    doubts: BTreeMap<usize, Doubts>,
}

impl PartitionsState {
    fn new(slices: UnreadSlices) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { slices, reading: 0, doubts: BTreeMap::new() }))
    }
}

/// Slices that are not read yet.
#[derive(Debug)]
enum UnreadSlices {
    Many(Slices),
    One(Option<Slice>),
    /// Everything, as there are no slices.
    Whole,
    None,
}

impl UnreadSlices {
    fn next(&mut self) -> Result<Option<Slice>, Unsliceable> {
        match self {
            Self::Many(slices) => slices.next_slice(),
            Self::One(slice) => Ok(slice.take()),
            Self::Whole | Self::None => Ok(None),
        }
    }
}

#[derive(Debug)]
enum PartitionState {
    /// Nothing was asked for yet.
    New,
    /// Between two slices.
    Between(Box<EventSliceReader>),
    In(Box<EventSliceReader>),
    Alone(Box<SoloReader>),
    Over,
}

impl EventPartition {
    pub(super) fn all(plan: &Arc<EventsPlan>, count: usize) -> Vec<Self> {
        let (slices, count) = match plan.slices(count) {
            Ok(slices) => (UnreadSlices::Many(slices), count),
            Err(Unsliceable) => (UnreadSlices::Whole, 1),
        };
        let shared = PartitionsState::new(slices);
        (0..count).map(|_| Self::new(plan, Arc::clone(&shared))).collect()
    }

    /// Everything, read by the calling thread.
    pub(super) fn alone(plan: &Arc<EventsPlan>) -> Self {
        Self::new(plan, PartitionsState::new(UnreadSlices::Whole))
    }

    /// The same, canceled by another progress.
    pub(super) fn cancelled_by(self, progress: &Arc<Progress>) -> Self {
        Self { progress: Arc::clone(progress), ..self }
    }

    pub(super) fn of_chunk(plan: &Arc<EventsPlan>, chunk: &EventChunk) -> Self {
        let slices = match &chunk.slice {
            Some(slice) => UnreadSlices::One(Some(slice.clone())),
            None => UnreadSlices::Whole,
        };
        Self::new(plan, PartitionsState::new(slices))
    }

    fn new(plan: &Arc<EventsPlan>, shared: Arc<Mutex<PartitionsState>>) -> Self {
        let plan = Arc::clone(plan);
        Self { plan, progress: Arc::default(), shared, state: PartitionState::New, known: Ended::default() }
    }

    /// The progress, which cancels it, from any thread; see [`EventStream::progress`].
    #[must_use]
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// The differences between the rows so far and the whole truth, without the findings of
    /// opening.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.known.report
    }

    /// Texts so far that were not valid: they have U+FFFD where they are not.
    #[must_use]
    pub fn replaced_texts(&self) -> u64 {
        self.known.replaced_texts
    }

    /// The next slice that is not read yet.
    fn next_slice(&self) -> Result<Option<Slice>, EventsFailure> {
        let mut shared = self.shared.lock().map_err(|_| EventsFailure::Gone)?;
        shared.slices.next().map_err(|Unsliceable| EventsFailure::Unsliceable)
    }

    fn start(&self) -> PartitionState {
        let Ok(mut shared) = self.shared.lock() else { return PartitionState::Over };
        match shared.slices {
            UnreadSlices::Whole => {
                shared.slices = UnreadSlices::None;
                PartitionState::Alone(Box::new(SoloReader::new(&self.plan, 0, &self.progress)))
            }
            UnreadSlices::None => PartitionState::Over,
            UnreadSlices::Many(_) | UnreadSlices::One(_) => {
                shared.reading += 1;
                PartitionState::Between(Box::new(EventSliceReader::new(&self.plan, &self.progress)))
            }
        }
    }

    /// A step towards the next batch.
    fn step(&mut self) -> Result<Option<RecordBatch>, EventsFailure> {
        match std::mem::replace(&mut self.state, PartitionState::Over) {
            PartitionState::New => self.state = self.start(),
            PartitionState::Between(mut reader) => match self.next_slice()? {
                Some(slice) => {
                    reader.enter(&slice);
                    self.state = PartitionState::In(reader);
                }
                None => self.end(&reader),
            },
            PartitionState::In(mut reader) => match reader.next()? {
                Some(batch) => {
                    self.state = PartitionState::In(reader);
                    return Ok(Some(batch));
                }
                None => {
                    self.known.add(&reader.ended());
                    self.state = PartitionState::Between(reader);
                }
            },
            PartitionState::Alone(mut alone) => match alone.next()? {
                Some(batch) => {
                    self.state = PartitionState::Alone(alone);
                    return Ok(Some(batch));
                }
                None => self.known.add(&alone.ended(&self.plan)),
            },
            PartitionState::Over => {}
        }
        Ok(None)
    }

    /// All slices were given. The doubts about a data stream are told once, by the last partition.
    fn end(&mut self, reader: &EventSliceReader) {
        let Ok(mut shared) = self.shared.lock() else { return };
        for cursor in reader.cursors() {
            shared.doubts.entry(cursor.stream()).or_default().add(Doubts::of(cursor));
        }
        shared.reading -= 1;
        if shared.reading > 0 {
            return;
        }
        let session = &self.plan.session;
        let doubts = std::mem::take(&mut shared.doubts).into_iter();
        let notes = doubts.flat_map(|(stream, doubts)| session.assumptions_of(stream, doubts));
        self.known.report.assumptions.extend(notes);
    }
}

impl Iterator for EventPartition {
    type Item = Result<RecordBatch, EventsFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.state, PartitionState::Over) {
            return None;
        }
        loop {
            let step = self.step();
            if let Err(cancelled) = self.progress.whole(()) {
                self.state = PartitionState::Over;
                return Some(Err(cancelled.into()));
            }
            match step {
                Ok(Some(batch)) => return Some(Ok(batch)),
                Err(failure) => {
                    if matches!(failure, EventsFailure::Unsliceable) {
                        self.plan.is_unsliceable.store(true, Ordering::Relaxed);
                    }
                    return Some(Err(failure));
                }
                Ok(None) if matches!(self.state, PartitionState::Over) => return None,
                Ok(None) => {}
            }
        }
    }
}
