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

use kymo_analysis::timeline::{Sealed, State, Timeline as Analysis};

use super::chunks::{Chunk, level_of};
use super::pyramid::{At, FAN, Key};
use super::{Timeline, TimelineFailure, TimelineState};
use crate::analyse::Reader;
use crate::progress::{Cancelled, Progress};

/// Chunks that may be read before those before them are sealed, for each thread.
const AHEAD: usize = 2;
/// How long a thread waits for those who ask before it reads another chunk.
const YIELDS_MAX: u32 = 50;

/// Where threads meet.
pub(super) struct Desk {
    held: Mutex<Held>,
    changed: Condvar,
    version: AtomicU64,
}

struct Held {
    /// The next chunk to be read, and the next one to be sealed.
    read: usize,
    seal: usize,
    /// Chunks that were read and not sealed.
    waiting: BTreeMap<usize, State>,
    /// All that is before the next chunk to be sealed; absent while somebody seals.
    before: Option<State>,
    /// Chunks that somebody looks at, to be read before it is their turn.
    wanted: Vec<usize>,
    /// How many chunks have nodes, and how many of the first ones: of the chunk behind those, all is known that is before it.
    built: usize,
    known: usize,
    /// Chunks behind those that have nodes.
    scattered: BTreeSet<usize>,
    failure: Option<TimelineFailure>,
    /// Nobody should go on.
    is_stopped: bool,
}

/// What a thread does next.
enum Job {
    Read(usize),
    Seal(usize, Box<(State, State)>),
    Look(usize),
    Wait,
    End,
}

impl Desk {
    pub(super) fn new(analysis: &Analysis) -> Self {
        let held = Held {
            read: 0,
            seal: 0,
            waiting: BTreeMap::new(),
            wanted: Vec::new(),
            before: Some(analysis.begin()),
            built: 0,
            known: 0,
            scattered: BTreeSet::new(),
            failure: None,
            is_stopped: false,
        };
        Self { held: Mutex::new(held), changed: Condvar::new(), version: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, with: impl FnOnce(&mut Held) -> T) -> T {
        let changed = with(&mut self.lock());
        self.version.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
        changed
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// How far it is.
    pub(super) fn state(&self, is_started: bool, chunks: usize) -> (TimelineState, Option<String>) {
        let held = self.lock();
        match &held.failure {
            Some(failure) => (TimelineState::Failed, Some(failure.to_string())),
            None if held.built == chunks => (TimelineState::Complete, None),
            None if is_started && !held.is_stopped => (TimelineState::Building, None),
            None => (TimelineState::Idle, None),
        }
    }

    /// How many of the first chunks have nodes: up to the one behind them, all is known that is before a chunk.
    pub(super) fn known(&self) -> usize {
        self.lock().known
    }

    /// Somebody looks at these chunks, which are not built: they are read next, and those that he looked at before are not.
    pub(super) fn want(&self, mut chunks: Vec<usize>) {
        chunks.reverse();
        let mut held = self.lock();
        if held.wanted != chunks {
            held.wanted = chunks;
        }
    }

    /// All chunks are built already.
    pub(super) fn complete(&self, chunks: usize) {
        self.change(|held| {
            (held.read, held.seal) = (chunks, chunks);
            (held.built, held.known) = (chunks, chunks);
        });
    }

    pub(super) fn stop(&self) {
        self.change(|held| held.is_stopped = true);
    }
}

impl Held {
    fn job(&mut self, chunks: usize, threads: usize) -> Job {
        if self.is_stopped || self.failure.is_some() || self.built == chunks {
            return Job::End;
        }
        if self.waiting.contains_key(&self.seal)
            && let Some(before) = self.before.take()
        {
            let state = self.waiting.remove(&self.seal).expect("it was there");
            self.seal += 1;
            return Job::Seal(self.seal - 1, Box::new((before, state)));
        }
        while let Some(chunk) = self.wanted.pop() {
            if chunk >= self.read {
                return Job::Look(chunk);
            }
        }
        if self.read < chunks && self.read < self.seal + AHEAD * threads {
            self.read += 1;
            return Job::Read(self.read - 1);
        }
        Job::Wait
    }
}

impl Held {
    /// A chunk has its node.
    fn built(&mut self, chunk: usize) {
        self.built += 1;
        self.scattered.insert(chunk);
        while self.scattered.remove(&self.known) {
            self.known += 1;
        }
    }
}

/// Tells those who wait when a thread panics: what it does is never done.
struct Alarm<'a>(&'a Desk);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let broken = || TimelineFailure::Unreadable("a thread that built the timeline is gone".to_owned());
            self.0.change(|held| held.failure = Some(broken()));
        }
    }
}

impl Timeline {
    /// Builds what is not there yet, in the background, until it is stopped or nobody holds the timeline any more.
    pub fn start(self: &Arc<Self>) {
        if self.is_started.swap(true, Ordering::Relaxed) {
            return;
        }
        for _ in 0..self.session.threads {
            let timeline = Arc::downgrade(self);
            std::thread::spawn(move || Self::serve(&timeline));
        }
    }

    /// Ends building. What was built stays.
    pub fn stop(&self) {
        self.progress.cancel();
        self.desk.stop();
    }

    /// Waits until everything is built.
    ///
    /// # Errors
    ///
    /// Building failed or was stopped, or nobody waits any more.
    pub fn wait(&self, progress: &Progress) -> Result<(), TimelineFailure> {
        let mut held = self.desk.lock();
        while held.built < self.chunks.len() {
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

    /// A thread's life. It holds the timeline only while it works.
    fn serve(timeline: &Weak<Self>) {
        crate::priority::background();
        while let Some(timeline) = timeline.upgrade() {
            let _alarm = Alarm(&timeline.desk);
            let job = timeline.desk.lock().job(timeline.chunks.len(), timeline.session.threads);
            let done = match job {
                Job::Read(chunk) => timeline.build_read(chunk),
                Job::Seal(chunk, states) => timeline.build_seal(chunk, *states),
                Job::Look(chunk) => timeline.build_early(chunk),
                Job::Wait => {
                    let held = timeline.desk.lock();
                    let _ = timeline.desk.changed.wait_timeout(held, Duration::from_millis(5));
                    Ok(())
                }
                Job::End => return,
            };
            match done {
                // It is the end of that job, and of all others.
                Ok(()) | Err(TimelineFailure::Cancelled(_)) => {}
                Err(failure) => timeline.desk.change(|held| held.failure = Some(failure)),
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

    /// What a chunk says, read in buckets of a level.
    pub(super) fn read_chunk(&self, chunk: usize, level: u8, progress: &Progress) -> Result<State, TimelineFailure> {
        let slice = &self.chunks[chunk].slice;
        let reading = self.analysis.reading(level);
        let reader = &mut Reader::new(&self.session, &self.prepared, progress);
        // Where its packets are not as their times say, or cannot be read, what can be is there.
        let read = match reader.read(&reading, slice, false, true) {
            Ok(read) => read,
            Err(_) => {
                reader.read(&reading, slice, false, false).unwrap_or_else(|_| unreachable!("nothing is relied on"))
            }
        };
        let mut state = progress.whole(read.state)?;
        self.analysis.settle(&mut state);
        self.names.learn_texts(&state);
        Ok(state)
    }

    /// Reads a chunk that somebody looks at before what is before it.
    fn build_early(&self, chunk: usize) -> Result<(), TimelineFailure> {
        if self.pyramid.looked_at(Key::Early(chunk)).is_none() {
            let node = Arc::new(self.look(chunk, self.chunks[chunk].level, false, &self.progress)?);
            self.names.meet(&node);
            self.pyramid.remember(Key::Early(chunk), &node);
        }
        Ok(())
    }

    fn build_seal(&self, chunk: usize, (mut before, state): (State, State)) -> Result<(), TimelineFailure> {
        let Chunk { span, level, .. } = self.chunks[chunk];
        let sealed = self.analysis.seal(&mut before, state, span.0);
        self.names.learn(&before, &sealed);
        self.desk.change(|held| held.before = Some(before));
        self.build_node(chunk, sealed, level)
    }

    fn build_node(&self, chunk: usize, sealed: Sealed, level: u8) -> Result<(), TimelineFailure> {
        let node = Arc::new(self.analysis.node(sealed, level, false));
        self.names.meet(&node);
        self.pyramid.put((0, chunk), &node, &|at| self.level_at(at))?;
        let is_complete = self.desk.change(|held| {
            held.built(chunk);
            held.built == self.chunks.len()
        });
        if is_complete {
            self.keep();
        }
        Ok(())
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
