//! Drives cursors and the merger on one thread or several, and keeps the answers in order.
//!
//! ```text
//! cursors ──refill──> merger ──round──> work (any thread) ──in order──> sink
//!    └ any thread ┘     └ the caller's thread ┘                └ the caller's thread ┘
//! ```
//!
//! Only the merge must happen one after the other; reading and scanning of different streams, and
//! the work on different rounds, run wherever a thread is free. The caller's thread takes part in
//! it. This is the only place where reading starts threads.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use kymo_scan::merge::{KeyedItem, RoundPart};
use kymo_scan::{BatchContent, Cursor, CursorItem, Merger, Round, StreamBatch, StreamFault};

/// Rounds that are being worked on or wait for their turn, for each thread. With one for each
/// thread, a thread that is done would wait for the caller to merge the next. The number also
/// bounds memory: rounds hold decoded events.
const ROUNDS_IN_FLIGHT: u64 = 2;
/// Rounds that the caller's thread makes alone before others start: they are small, and threads
/// that read ahead are of no use to a caller that wants a few events.
const ROUNDS_ALONE: usize = 2;
/// Batches that one refill brings at most: small packets make small batches.
const REFILL_BATCHES: usize = 64;

/// The work on a round, on any thread.
pub(crate) trait RoundWork: Sync {
    /// Its input from the rounds before.
    type Context: Send;
    /// Its output.
    type Output: Send;
    /// Does it.
    fn work(&self, round: &Round<StreamBatch>, context: Self::Context) -> Self::Output;
}

/// The work that is done in order, on the caller's thread.
pub(crate) trait RoundSink<W: RoundWork> {
    /// Before the work on a round; may shorten the round's order.
    fn context(&mut self, round: &mut Round<StreamBatch>) -> W::Context;
    /// After the work on a round.
    fn finish(&mut self, output: W::Output) -> ControlFlow<()>;
    /// Something could not be read; comes when all rounds are over, in the order of streams, then of packets.
    fn fault(&mut self, fault: StreamFault);
}

/// Runs everything the cursors deliver through work and sink. `threads` counts the caller's own.
/// Returns the cursors, for their facts at their end. Batches that no other round needs, with their
/// streams; the rest of the round is of no use but as memory.
pub(crate) fn run<W: RoundWork>(
    mut cursors: Vec<Cursor>,
    threads: usize,
    work: &W,
    sink: &mut impl RoundSink<W>,
) -> Vec<Cursor> {
    let mut merger = Merger::new(cursors.len());
    let mut faults = Vec::new();
    let rounds = if threads <= 1 { usize::MAX } else { ROUNDS_ALONE };
    if run_alone(&mut cursors, &mut merger, rounds, work, sink, &mut faults).is_continue() {
        let shared = RoundQueue::<W>::default();
        cursors = std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| shared.serve(work));
            }
            let _close = CloseOnDrop(&shared);
            Coordinator::new(cursors, merger, threads, &shared, work).run(sink, &mut faults)
        });
    }
    // Several threads find them in any order.
    faults.sort_by_key(|fault| (fault.stream, fault.packet));
    faults.into_iter().for_each(|fault| sink.fault(fault));
    cursors
}

/// Makes so many rounds; breaks when there are no more, or the sink wants none.
fn run_alone<W: RoundWork>(
    cursors: &mut [Cursor],
    merger: &mut Merger<StreamBatch>,
    rounds: usize,
    work: &W,
    sink: &mut impl RoundSink<W>,
    faults: &mut Vec<StreamFault>,
) -> ControlFlow<()> {
    for _ in 0..rounds {
        let Some(mut round) = next_round(cursors, merger, faults) else {
            return ControlFlow::Break(());
        };
        let context = sink.context(&mut round);
        let output = work.work(&round, context);
        sink.finish(output)?;
        for (stream, batch) in used_up(&mut round) {
            cursors[stream].recycle(batch);
        }
        merger.recycle(round);
    }
    ControlFlow::Continue(())
}

/// The next round, read by this thread.
pub(crate) fn next_round(
    cursors: &mut [Cursor],
    merger: &mut Merger<StreamBatch>,
    faults: &mut Vec<StreamFault>,
) -> Option<Round<StreamBatch>> {
    for (stream, cursor) in cursors.iter_mut().enumerate() {
        while merger.is_hungry(stream) {
            match cursor.next_item() {
                Some(CursorItem::Batch(batch)) => merger.push(stream, Arc::new(batch)),
                Some(CursorItem::Fault(fault)) => faults.push(fault),
                None => merger.finish(stream),
            }
        }
    }
    merger.round()
}

/// Batches that no other round needs, with their streams; what remains of the round is of no use but as memory.
pub(crate) fn used_up(round: &mut Round<StreamBatch>) -> impl Iterator<Item = (usize, StreamBatch)> {
    let unwrap = |part: RoundPart<StreamBatch>| {
        let is_read = part.rows.end == part.batch.keys().len();
        Arc::try_unwrap(part.batch).ok().filter(|_| is_read).map(|batch| (part.stream, batch))
    };
    round.parts.drain(..).filter_map(unwrap)
}

enum RoundJob<W: RoundWork> {
    Refill { stream: usize, cursor: Box<Cursor>, spare: Vec<StreamBatch> },
    Work { number: u64, round: Round<StreamBatch>, context: W::Context },
}

enum RoundResult<W: RoundWork> {
    Refill { stream: usize, cursor: Box<Cursor>, items: Vec<CursorItem>, ended: bool },
    Work { number: u64, round: Round<StreamBatch>, output: W::Output },
}

struct RoundQueue<W: RoundWork> {
    queues: Mutex<Queues<W>>,
    jobs_changed: Condvar,
    done_changed: Condvar,
}

struct Queues<W: RoundWork> {
    /// Refills go first: everything waits for them.
    refills: VecDeque<RoundJob<W>>,
    works: VecDeque<RoundJob<W>>,
    done: Vec<RoundResult<W>>,
    closed: bool,
}

impl<W: RoundWork> Default for RoundQueue<W> {
    fn default() -> Self {
        let queues = Queues { refills: VecDeque::new(), works: VecDeque::new(), done: Vec::new(), closed: false };
        Self { queues: Mutex::new(queues), jobs_changed: Condvar::new(), done_changed: Condvar::new() }
    }
}

impl<W: RoundWork> RoundQueue<W> {
    fn lock(&self) -> MutexGuard<'_, Queues<W>> {
        self.queues.lock().expect("no thread panics while it holds the queues")
    }

    /// A worker's life: jobs until the queues are closed.
    fn serve(&self, work: &W) {
        let mut queues = self.lock();
        loop {
            if queues.closed {
                return;
            }
            let Some(job) = queues.pop() else {
                queues = self.jobs_changed.wait(queues).expect("no thread panics while it holds the queues");
                continue;
            };
            drop(queues);
            let done = job.run(work);
            queues = self.lock();
            queues.done.push(done);
            // One suffices: only the caller's thread waits for this.
            self.done_changed.notify_one();
        }
    }
}

impl<W: RoundWork> Queues<W> {
    fn pop(&mut self) -> Option<RoundJob<W>> {
        self.refills.pop_front().or_else(|| self.works.pop_front())
    }
}

/// Lets the workers go, also when the caller's thread panics.
struct CloseOnDrop<'a, W: RoundWork>(&'a RoundQueue<W>);

impl<W: RoundWork> Drop for CloseOnDrop<'_, W> {
    fn drop(&mut self) {
        if let Ok(mut queues) = self.0.queues.lock() {
            queues.closed = true;
        }
        self.0.jobs_changed.notify_all();
    }
}

impl<W: RoundWork> RoundJob<W> {
    fn run(self, work: &W) -> RoundResult<W> {
        match self {
            Self::Work { number, round, context } => {
                for part in &round.parts {
                    if let BatchContent::Events(events) = &part.batch.content {
                        events.touch(part.rows.clone());
                    }
                }
                let output = work.work(&round, context);
                RoundResult::Work { number, round, output }
            }
            Self::Refill { stream, mut cursor, spare } => {
                spare.into_iter().for_each(|batch| cursor.recycle(batch));
                let (mut items, mut rows, mut ended) = (Vec::new(), 0, false);
                // Until there are rows for a whole batch: a job for each small packet would cost
                // more than its work.
                let wanted = cursor.batch_rows();
                while !ended && rows < wanted && items.len() < REFILL_BATCHES {
                    match cursor.next_item() {
                        Some(item) => {
                            rows += if let CursorItem::Batch(batch) = &item { batch.keys.len() } else { 0 };
                            items.push(item);
                        }
                        None => ended = true,
                    }
                }
                RoundResult::Refill { stream, cursor, items, ended }
            }
        }
    }
}

/// The caller's side.
struct Coordinator<'a, W: RoundWork> {
    shared: &'a RoundQueue<W>,
    work: &'a W,
    merger: Merger<StreamBatch>,
    /// Cursors that are not being refilled.
    cursors: Vec<Option<Box<Cursor>>>,
    /// For each stream, memory that its cursor can use again.
    spare: Vec<Vec<StreamBatch>>,
    ended: Vec<bool>,
    outputs: BTreeMap<u64, W::Output>,
    /// Number of the next round to be made.
    made: u64,
    /// Number of the next round to be finished.
    finished: u64,
    in_flight_max: u64,
    all_made: bool,
}

impl<'a, W: RoundWork> Coordinator<'a, W> {
    fn new(
        cursors: Vec<Cursor>,
        merger: Merger<StreamBatch>,
        threads: usize,
        shared: &'a RoundQueue<W>,
        work: &'a W,
    ) -> Self {
        Self {
            shared,
            work,
            merger,
            ended: vec![false; cursors.len()],
            spare: cursors.iter().map(|_| Vec::new()).collect(),
            cursors: cursors.into_iter().map(|cursor| Some(Box::new(cursor))).collect(),
            outputs: BTreeMap::new(),
            made: 0,
            finished: 0,
            in_flight_max: ROUNDS_IN_FLIGHT * threads as u64,
            all_made: false,
        }
    }

    fn run(mut self, sink: &mut impl RoundSink<W>, faults: &mut Vec<StreamFault>) -> Vec<Cursor> {
        loop {
            self.collect(faults);
            while let Some(output) = self.outputs.remove(&self.finished) {
                self.finished += 1;
                if sink.finish(output).is_break() {
                    return self.cursors.into_iter().flatten().map(|cursor| *cursor).collect();
                }
            }
            self.order_refills();
            self.make_rounds(sink);
            if self.all_made && self.finished == self.made {
                return self.cursors.into_iter().flatten().map(|cursor| *cursor).collect();
            }
            self.help();
        }
    }

    /// Takes the finished work.
    fn collect(&mut self, faults: &mut Vec<StreamFault>) {
        // All at once, so that workers need not wait for the lock while the merger takes them.
        let done = std::mem::take(&mut self.shared.lock().done);
        for done in done {
            self.take(done, faults);
        }
    }

    fn take(&mut self, done: RoundResult<W>, faults: &mut Vec<StreamFault>) {
        match done {
            RoundResult::Work { number, mut round, output } => {
                self.outputs.insert(number, output);
                used_up(&mut round).for_each(|(stream, batch)| self.spare[stream].push(batch));
                self.merger.recycle(round);
            }
            RoundResult::Refill { stream, cursor, items, ended } => {
                self.cursors[stream] = Some(cursor);
                for item in items {
                    match item {
                        CursorItem::Batch(batch) => self.merger.push(stream, Arc::new(batch)),
                        CursorItem::Fault(fault) => faults.push(fault),
                    }
                }
                if ended {
                    self.ended[stream] = true;
                    self.merger.finish(stream);
                }
            }
        }
    }

    /// Has streams refilled before they run dry.
    fn order_refills(&mut self) {
        let wanted = |stream: &usize| !self.ended[*stream] && self.merger.wants_more(*stream);
        let streams: Vec<usize> =
            (0..self.cursors.len()).filter(|stream| self.cursors[*stream].is_some()).filter(wanted).collect();
        if streams.is_empty() {
            return;
        }
        let mut queues = self.shared.lock();
        for stream in streams {
            if let Some(cursor) = self.cursors[stream].take() {
                let spare = std::mem::take(&mut self.spare[stream]);
                queues.refills.push_back(RoundJob::Refill { stream, cursor, spare });
            }
        }
        self.shared.jobs_changed.notify_all();
    }

    fn make_rounds(&mut self, sink: &mut impl RoundSink<W>) {
        while !self.all_made && self.made - self.finished < self.in_flight_max && self.merger.is_ready() {
            let Some(mut round) = self.merger.round() else {
                self.all_made = true;
                return;
            };
            let context = sink.context(&mut round);
            let number = self.made;
            self.made += 1;
            self.shared.lock().works.push_back(RoundJob::Work { number, round, context });
            self.shared.jobs_changed.notify_one();
            self.order_refills();
        }
    }

    /// Does a job, or waits until one is done.
    fn help(&mut self) {
        let mut queues = self.shared.lock();
        if !queues.done.is_empty() {
            return;
        }
        // The caller's thread counts as one of `threads`, so it works too while nothing is done.
        if let Some(job) = queues.pop() {
            drop(queues);
            let done = job.run(self.work);
            self.shared.lock().done.push(done);
            return;
        }
        let waited = self.shared.done_changed.wait_while(queues, |queues| queues.done.is_empty());
        drop(waited.expect("no thread panics while it holds the queues"));
    }
}
