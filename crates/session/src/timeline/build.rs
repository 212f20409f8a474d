//! Builds the pyramid: chunks are read by all threads and sealed in order.
//!
//! ```text
//! thread 0   read 0 │ seal 0, node 0 │ read 2 │ node 2 ...
//! thread 1   read 1 │ (waits: 1)     │ seal 1, 2, node 1 │ read 3 ...
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use kymo_analysis::timeline::node::TimelineNode;
use kymo_analysis::timeline::{Sealed, TimelineAnalysis, TimelinePart};

use super::chunks::{TimelineChunk, level_of};
use super::pyramid::{At, FAN, PageKey};
use super::{Timeline, TimelineFailure, TimelineState};
use crate::answers::analyse::PartReader;
use crate::open::progress::{Cancelled, Progress};

/// Chunks that may be read before those before them are sealed, for each thread. States of unsealed
/// chunks stay in memory.
const AHEAD: usize = 2;
/// A chunk that is read as soon as so many others is not read before its turn, for each thread.
const SOON: usize = 4;
/// How long a thread waits for questions before it reads another chunk. A limit, so that a viewer
/// that asks all the time does not stop the building.
const YIELDS_MAX: u32 = 50;

/// Where threads meet.
pub(super) struct BuildScheduler {
    held: Mutex<BuildState>,
    changed: Condvar,
    // Only compared with earlier values. The lock orders everything that it stands for.
    version: AtomicU64,
}

struct BuildState {
    /// How many there are.
    chunks: usize,
    /// Threads that do something.
    working: usize,
    /// The next chunk to be read, and the next one to be sealed.
    read: usize,
    seal: usize,
    /// Chunks that were read and not sealed.
    waiting: BTreeMap<usize, TimelinePart>,
    /// The state before the next chunk to be sealed; absent while a thread seals.
    before: Option<TimelinePart>,
    /// Of traces that grow, the state before the last chunk, once that is sealed: it will be sealed
    /// again, when it is longer.
    before_last: Option<TimelinePart>,
    /// Chunks in view, to be read before it is their turn.
    wanted: Vec<usize>,
    /// How many chunks have nodes, and how many of the first ones: of the chunk behind those, all is known that is before it.
    built: usize,
    known: usize,
    /// Chunks behind those that have nodes.
    scattered: BTreeSet<usize>,
    failure: Option<TimelineFailure>,
    /// Threads should not go on.
    is_stopped: bool,
}

/// The next job of a thread.
enum BuildJob {
    Read(usize),
    Seal(usize, Box<(TimelinePart, TimelinePart)>),
    Look(usize),
    Wait,
    End,
}

impl BuildScheduler {
    pub(super) fn new(analysis: &TimelineAnalysis, chunks: usize, version: u64) -> Self {
        Self::of(Some(analysis.begin()), chunks, version)
    }

    /// All chunks have nodes; with the state before the last one.
    pub(super) fn complete(chunks: usize, before_last: TimelinePart, version: u64) -> Self {
        let desk = Self::of(None, chunks, version);
        desk.change(|held| {
            (held.read, held.seal) = (chunks, chunks);
            (held.built, held.known) = (chunks, chunks);
            held.before_last = Some(before_last);
        });
        desk
    }

    fn of(before: Option<TimelinePart>, chunks: usize, version: u64) -> Self {
        let held = BuildState {
            chunks,
            working: 0,
            read: 0,
            seal: 0,
            waiting: BTreeMap::new(),
            wanted: Vec::new(),
            before,
            before_last: None,
            built: 0,
            known: 0,
            scattered: BTreeSet::new(),
            failure: None,
            is_stopped: false,
        };
        Self { held: Mutex::new(held), changed: Condvar::new(), version: AtomicU64::new(version) }
    }

    fn lock(&self) -> MutexGuard<'_, BuildState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, with: impl FnOnce(&mut BuildState) -> T) -> T {
        let changed = with(&mut self.lock());
        self.version.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
        changed
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// How far it is.
    pub(super) fn state(&self, is_started: bool) -> (TimelineState, Option<String>) {
        let held = self.lock();
        match &held.failure {
            Some(failure) => (TimelineState::Failed, Some(failure.to_string())),
            None if held.built == held.chunks => (TimelineState::Complete, None),
            None if is_started && !held.is_stopped => (TimelineState::Building, None),
            None => (TimelineState::Idle, None),
        }
    }

    /// How many of the first chunks have nodes: up to the one behind them, all is known that is before a chunk.
    pub(super) fn known(&self) -> usize {
        self.lock().known
    }

    /// These chunks are in view and not built: they are read next, and those that were in view
    /// before are not.
    pub(super) fn want(&self, mut chunks: Vec<usize>) {
        // Threads take the last one first.
        chunks.reverse();
        let mut held = self.lock();
        if held.wanted != chunks {
            held.wanted = chunks;
            self.changed.notify_all();
        }
    }

    /// So many of the first chunks are built already; with the state behind these, if there are
    /// others.
    pub(super) fn go_on(&self, built: usize, before: Option<TimelinePart>) {
        self.change(|held| {
            (held.read, held.seal) = (built, built);
            (held.built, held.known) = (built, built);
            held.before = before;
        });
    }

    /// The next job, as soon as there is one; `None`: there are none any more.
    fn next(&self, threads: usize) -> Option<BuildJob> {
        let mut held = self.lock();
        loop {
            match held.job(threads) {
                BuildJob::End => return None,
                BuildJob::Wait => held = self.changed.wait(held).unwrap_or_else(PoisonError::into_inner),
                job => {
                    held.working += 1;
                    return Some(job);
                }
            }
        }
    }

    /// Waits until no thread works any more.
    fn idle(&self) -> MutexGuard<'_, BuildState> {
        let is_busy = |held: &mut BuildState| held.working > 0;
        self.changed.wait_while(self.lock(), is_busy).unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop(&self) {
        self.change(|held| held.is_stopped = true);
    }

    /// Ends building. How many of the first chunks will never change, and the state behind these,
    /// which is taken; `None`: there is none.
    pub(super) fn take_known(&self) -> Option<(usize, TimelinePart)> {
        self.stop();
        let mut held = self.idle();
        // A chunk behind a gap has a node, but the state behind the gap is unknown.
        if held.built != held.known || held.known != held.seal {
            return None;
        }
        match held.before_last.take() {
            Some(before) => Some((held.chunks - 1, before)),
            None => held.before.take().map(|before| (held.known, before)),
        }
    }

    /// The state before the last chunk, which is taken, if all chunks have nodes.
    pub(super) fn take_open_of_complete(&self) -> Option<TimelinePart> {
        let mut held = self.idle();
        if held.built == held.chunks { held.before_last.take() } else { None }
    }
}

impl BuildState {
    fn job(&mut self, threads: usize) -> BuildJob {
        if self.is_stopped || self.failure.is_some() || self.built == self.chunks {
            return BuildJob::End;
        }
        // Sealing comes first: it is the only step that goes chunk by chunk, and others wait for
        // it. `before` is absent while a thread seals, so no two threads seal at the same time.
        if self.waiting.contains_key(&self.seal)
            && let Some(before) = self.before.take()
        {
            let state = self.waiting.remove(&self.seal).expect("it was there");
            self.seal += 1;
            return BuildJob::Seal(self.seal - 1, Box::new((before, state)));
        }
        while let Some(chunk) = self.wanted.pop() {
            // Chunks that are read soon anyway are not read twice.
            if chunk >= self.read + SOON * threads {
                return BuildJob::Look(chunk);
            }
        }
        if self.read < self.chunks && self.read < self.seal + AHEAD * threads {
            self.read += 1;
            return BuildJob::Read(self.read - 1);
        }
        BuildJob::Wait
    }
}

impl BuildState {
    /// A chunk has its node.
    fn built(&mut self, chunk: usize) {
        self.built += 1;
        self.scattered.insert(chunk);
        while self.scattered.remove(&self.known) {
            self.known += 1;
        }
    }
}

/// A thread that works. When it panics, waiting threads are told: its job is never done.
struct Working<'a>(&'a BuildScheduler);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let mut held = self.0.lock();
        held.working -= 1;
        if std::thread::panicking() {
            held.failure = Some(TimelineFailure::Unreadable("a thread that built the timeline is gone".to_owned()));
        }
        self.0.changed.notify_all();
    }
}

impl Timeline {
    /// Builds the missing parts, in the background, until it is stopped or the timeline is dropped.
    pub fn start(self: &Arc<Self>) {
        if self.is_started.swap(true, Ordering::Relaxed) {
            return;
        }
        for _ in 0..self.session.threads {
            let (timeline, desk, threads) = (Arc::downgrade(self), Arc::clone(&self.desk), self.session.threads);
            std::thread::spawn(move || Self::serve(&timeline, &desk, threads));
        }
    }

    /// Ends building, and waits for that. The built parts stay, and are left in the cache: the next
    /// one goes on from there.
    pub fn stop(&self) {
        self.cancel();
        let held = self.desk.idle();
        let is_some = 0 < held.known && held.known < held.chunks && held.failure.is_none();
        // Nothing is scattered, and the state before the next chunk is known.
        if is_some && held.built == held.known && held.known == held.seal && held.before.is_some() {
            self.keep(held.before.as_ref());
        }
    }

    /// Ends building as soon as may be, without waiting for that; nothing is left in the cache.
    pub fn cancel(&self) {
        self.progress.cancel();
        self.desk.stop();
    }

    /// Waits until everything is built.
    ///
    /// # Errors
    ///
    /// Building failed or was stopped, or the request was canceled.
    pub fn wait(&self, progress: &Progress) -> Result<(), TimelineFailure> {
        let mut held = self.desk.lock();
        // The thread that has built the last chunk leaves everything in the cache then.
        while held.built < self.chunks.len() || held.working > 0 {
            if let Some(failure) = &held.failure {
                return Err(failure.clone());
            }
            if held.is_stopped || progress.is_cancelled() {
                return Err(Cancelled.into());
            }
            let waited = self.desk.changed.wait_timeout(held, Duration::from_millis(20));
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// Waits until everything is built, or it was enough.
    pub(super) fn wait_some(&self, at_most: Duration) {
        let is_busy = |held: &mut BuildState| held.failure.is_none() && (held.built < held.chunks || held.working > 0);
        drop(self.desk.changed.wait_timeout_while(self.desk.lock(), at_most, is_busy));
    }

    /// A thread's life. It holds the timeline only while it works.
    fn serve(timeline: &Weak<Self>, desk: &BuildScheduler, threads: usize) {
        crate::parallel::priority::background();
        while let Some(job) = desk.next(threads) {
            let _working = Working(desk);
            // A weak reference: building ends when the last user of the timeline lets go of it.
            let Some(timeline) = timeline.upgrade() else { return };
            let done = match job {
                BuildJob::Read(chunk) => timeline.build_read(chunk),
                BuildJob::Seal(chunk, states) => timeline.build_seal(chunk, *states),
                BuildJob::Look(chunk) => timeline.build_early(chunk),
                BuildJob::Wait | BuildJob::End => return,
            };
            match done {
                // It is the end of that job, and of all others.
                Ok(()) | Err(TimelineFailure::Cancelled(_)) => {}
                Err(failure) => desk.change(|held| held.failure = Some(failure)),
            }
        }
    }

    fn build_read(&self, chunk: usize) -> Result<(), TimelineFailure> {
        for _ in 0..YIELDS_MAX {
            if self.asked.load(Ordering::Relaxed) == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let level = &self.chunks[chunk].level;
        let state = self.read_chunk(chunk, *level, &self.progress)?;
        self.desk.change(|held| held.waiting.insert(chunk, state));
        Ok(())
    }

    /// The content of a chunk, read in buckets of a level.
    pub(super) fn read_chunk(
        &self,
        chunk: usize,
        level: u8,
        progress: &Progress,
    ) -> Result<TimelinePart, TimelineFailure> {
        let slice = &self.chunks[chunk].slice;
        let reading = self.analysis.reading(level);
        let reader = &mut PartReader::new(&self.session, &self.prepared, progress);
        // Where its packets are not as their times say, or cannot be read, the readable ones are
        // there.
        let read = match reader.read(&reading, slice, false, true) {
            Ok(read) => read,
            Err(_) => {
                reader.read(&reading, slice, false, false).unwrap_or_else(|_| unreachable!("nothing is relied on"))
            }
        };
        let mut state = progress.whole(read.state)?;
        self.meet_faults(&read.faults);
        self.analysis.settle(&mut state);
        self.names.learn_texts(&state);
        Ok(state)
    }

    /// Reads a chunk in view before the chunks before it.
    fn build_early(&self, chunk: usize) -> Result<(), TimelineFailure> {
        if self.pyramid.looked_at(PageKey::Early(chunk)).is_none() {
            let level = self.chunks[chunk].level;
            let (analysis, sealed) = (&self.analysis, self.look(chunk, level, &self.progress)?);
            let node = Arc::new(analysis.node(sealed, level, false));
            self.meet(&node);
            self.pyramid.remember(PageKey::Early(chunk), &node);
        }
        Ok(())
    }

    fn build_seal(
        &self,
        chunk: usize,
        (mut before, state): (TimelinePart, TimelinePart),
    ) -> Result<(), TimelineFailure> {
        let TimelineChunk { span, level, .. } = self.chunks[chunk];
        if self.until.is_some() && chunk + 1 == self.chunks.len() {
            let before = before.clone();
            self.desk.change(|held| held.before_last = Some(before));
        }
        let sealed = self.analysis.seal(&mut before, state, span.0);
        match self.all {
            None => self.names.learn(&before, &sealed),
            Some(_) => self.names.learn_routes(&sealed),
        }
        // Before the node is made: another thread can seal the next chunk meanwhile.
        self.desk.change(|held| held.before = Some(before));
        self.build_node(chunk, sealed, level)
    }

    fn build_node(&self, chunk: usize, sealed: Sealed, level: u8) -> Result<(), TimelineFailure> {
        let node = Arc::new(self.analysis.node(sealed, level, false));
        self.meet(&node);
        self.pyramid.put((0, chunk), &node, &|at| self.level_at(at))?;
        // Under one lock, so that exactly one thread sees the last node come.
        let is_complete = self.desk.change(|held| {
            held.built(chunk);
            held.built == self.chunks.len()
        });
        if is_complete {
            self.keep(None);
        }
        Ok(())
    }

    /// The tracks of a node are met. Those of some events are among those of all, and the other
    /// known facts there are for reading chunks.
    pub(super) fn meet(&self, node: &TimelineNode) {
        if self.all.is_none() {
            self.names.meet(node);
        }
    }

    /// The chunks of a node.
    pub(super) fn chunks_of(&self, (height, place): At) -> std::ops::Range<usize> {
        let width = FAN.pow(height as u32);
        place * width..((place + 1) * width).min(self.chunks.len())
    }

    /// The level of a node's buckets; no finer than those of any below it.
    fn level_at(&self, at: At) -> u8 {
        let chunks = &self.chunks[self.chunks_of(at)];
        let span = (chunks[0].span.0, chunks[chunks.len() - 1].span.1);
        chunks.iter().map(|chunk| chunk.level).fold(level_of(span), u8::max)
    }
}
