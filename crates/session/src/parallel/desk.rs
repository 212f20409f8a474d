//! The desk gives out slices of time to threads, and their results wait there for their turn.
//!
//! ```text
//! slices ──next──> any thread: pieces of its slice ──> desk ──in turn──> consumer
//! ```
//!
//! Threads that share streams hand every event from core to core; threads that have a slice each share nothing but
//! the bytes of packets that lie across a cut. A slice relies on the times of packets: where those turn out to be
//! wrong, all stop between two pieces, and the caller goes on in another way.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(feature = "columns")]
use std::time::Duration;

use kymo_scan::{Cursor, CursorItem, DataStream, Lengths, Merger, Round, Slice, Slices, StreamBatch, Unsliceable};

use crate::open::Doubts;

/// Slices that each thread may be ahead of the one in turn.
const SLICES_AHEAD: u64 = 2;

/// A piece of a slice.
pub(crate) trait OrderedPiece: Send {
    /// Bytes that it takes while it waits.
    fn bytes(&self) -> usize;
    /// Whether nothing follows of its slice.
    fn is_last(&self) -> bool;
}

/// Gives out slices and keeps pieces in turn.
pub(crate) struct SliceScheduler<P> {
    state: Mutex<SchedulerState<P>>,
    changed: Condvar,
}

struct SchedulerState<P> {
    slices: Slices,
    /// Slices that are given out and not taken at most.
    slices_max: u64,
    /// Bytes of pieces that wait, and how many may before threads do.
    bytes: usize,
    bytes_max: usize,
    /// Number of the next slice.
    next: u64,
    /// Number of the slice that pieces are taken from.
    turn: u64,
    /// Pieces that wait, of each slice.
    pieces: BTreeMap<u64, VecDeque<P>>,
    /// There are no more slices.
    is_over: bool,
    /// Threads should not go on.
    is_stopped: bool,
    is_unsliceable: bool,
    /// The doubts about each stream.
    doubts: BTreeMap<usize, Doubts>,
}

/// How it ended.
pub(crate) struct WorkEnd {
    /// Slices are no way to read the traces: the taken pieces are good, but not all.
    pub(crate) is_unsliceable: bool,
    /// The doubts about each stream.
    pub(crate) doubts: BTreeMap<usize, Doubts>,
}

impl<P: OrderedPiece> SchedulerState<P> {
    /// Whether another slice may be read now.
    fn gives(&self) -> bool {
        !self.is_over && !self.is_stopped && self.next - self.turn < self.slices_max
    }

    fn give(&mut self) -> Option<(u64, Slice)> {
        if !self.gives() {
            return None;
        }
        match self.slices.next_slice() {
            Ok(Some(slice)) => {
                let number = self.next;
                self.next += 1;
                self.pieces.insert(number, VecDeque::new());
                return Some((number, slice));
            }
            Ok(None) => self.is_over = true,
            Err(Unsliceable) => (self.is_unsliceable, self.is_stopped) = (true, true),
        }
        None
    }

    /// Whether a slice has to wait for its turn.
    fn is_full(&self, number: u64) -> bool {
        // The slice in turn never waits: the consumer waits for its pieces, and only they make
        // room.
        !self.is_stopped && number != self.turn && self.bytes > self.bytes_max
    }

    /// Whether something can be taken, or nothing more will be.
    fn is_due(&self) -> bool {
        let is_filled = |pieces: &VecDeque<P>| !pieces.is_empty();
        self.is_stopped || self.is_done() || self.pieces.get(&self.turn).is_some_and(is_filled)
    }

    fn is_done(&self) -> bool {
        self.is_over && self.turn == self.next
    }

    /// Adds a reader's doubts.
    fn doubt(&mut self, cursors: &[Cursor]) {
        for cursor in cursors {
            self.doubts.entry(cursor.stream()).or_default().add(Doubts::of(cursor));
        }
    }

    fn put(&mut self, number: u64, piece: P) {
        self.bytes += piece.bytes();
        self.pieces.entry(number).or_default().push_back(piece);
    }

    /// The pieces of the slice in turn. With the last ones of a slice, the next one's turn comes.
    fn take(&mut self) -> VecDeque<P> {
        let pieces = self.pieces.get_mut(&self.turn).map(std::mem::take).unwrap_or_default();
        if pieces.back().is_some_and(P::is_last) {
            self.pieces.remove(&self.turn);
            self.turn += 1;
        }
        self.bytes -= pieces.iter().map(P::bytes).sum::<usize>();
        pieces
    }
}

impl<P: OrderedPiece> SliceScheduler<P> {
    /// A desk for so many readers; they wait while pieces of so many bytes do.
    pub(crate) fn new(slices: Slices, readers: usize, bytes_max: usize) -> Self {
        let state = SchedulerState {
            slices,
            slices_max: SLICES_AHEAD * readers as u64,
            bytes: 0,
            bytes_max,
            next: 0,
            turn: 0,
            pieces: BTreeMap::new(),
            is_over: false,
            is_stopped: false,
            is_unsliceable: false,
            doubts: BTreeMap::new(),
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, SchedulerState<P>> {
        self.state.lock().expect("no thread panics while it holds the desk")
    }

    fn wait_until(&self, holds: impl Fn(&SchedulerState<P>) -> bool) -> MutexGuard<'_, SchedulerState<P>> {
        let waited = self.changed.wait_while(self.lock(), |state| !holds(state));
        waited.expect("no thread panics while it holds the desk")
    }

    /// Changes the state that other threads may wait for.
    fn change<T>(
        &self,
        mut state: MutexGuard<'_, SchedulerState<P>>,
        with: impl FnOnce(&mut SchedulerState<P>) -> T,
    ) -> T {
        let changed = with(&mut state);
        // Readers and the consumer wait for different conditions on one variable, so all of them
        // look.
        self.changed.notify_all();
        changed
    }

    /// Stops all threads.
    pub(crate) fn stop(&self) {
        self.change(self.lock(), |state| state.is_stopped = true);
    }

    /// A thread's life.
    pub(crate) fn serve(&self, reader: &mut impl SliceReader<P>) {
        let _stop = StopOnPanic(self);
        loop {
            let state = self.wait_until(|state| state.gives() || state.is_over || state.is_stopped);
            let Some((number, slice)) = self.change(state, SchedulerState::give) else { break };
            let read = reader.read(&slice, &mut |piece| {
                self.change(self.lock(), |state| state.put(number, piece));
                let is_stopped = self.wait_until(|state| !state.is_full(number)).is_stopped;
                if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            self.leave(read);
        }
        self.lock().doubt(reader.cursors());
    }

    /// The part of a caller that takes all pieces, and reads slices while there are none.
    pub(crate) fn run(&self, reader: &mut impl SliceReader<P>, take: &mut impl FnMut(P) -> ControlFlow<()>) {
        let _stop = StopOnPanic(self);
        loop {
            let state = self.wait_until(|state| state.gives() || state.is_due());
            if state.is_stopped || state.is_done() {
                break;
            }
            if state.is_due() {
                drop(state);
                match self.pass_on(take) {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(()) => break,
                }
            }
            let Some((number, slice)) = self.change(state, SchedulerState::give) else { continue };
            let read = reader.read(&slice, &mut |piece| {
                self.change(self.lock(), |state| state.put(number, piece));
                self.pass_on(take)?;
                // This thread is the only one that takes pieces. Waiting without taking any would
                // stop all.
                while self.lock().is_full(number) {
                    drop(self.wait_until(|state| state.is_due() || !state.is_full(number)));
                    self.pass_on(take)?;
                }
                ControlFlow::Continue(())
            });
            self.leave(read);
        }
        self.stop();
        self.lock().doubt(reader.cursors());
    }

    /// The part of a caller that only takes: the next pieces, none if there are none before so much
    /// time is over; `None` when there are no more.
    #[cfg(feature = "columns")]
    pub(crate) fn wait(&self, time: Duration) -> Option<VecDeque<P>> {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |state| !state.is_due());
        let (state, timeout) = waited.expect("no thread panics while it holds the desk");
        if timeout.timed_out() {
            return Some(VecDeque::new());
        }
        if state.is_stopped || state.is_done() {
            return None;
        }
        Some(self.change(state, SchedulerState::take))
    }

    /// A slice was read, or not.
    fn leave(&self, read: ControlFlow<()>) {
        let stop = |state: &mut SchedulerState<P>| {
            // Otherwise it was left because all stop.
            state.is_unsliceable |= !state.is_stopped;
            state.is_stopped = true;
        };
        if read.is_break() {
            self.change(self.lock(), stop);
        }
    }

    /// Passes on all pieces in turn; breaks if threads should not go on.
    fn pass_on(&self, take: &mut impl FnMut(P) -> ControlFlow<()>) -> ControlFlow<()> {
        loop {
            let state = self.lock();
            if state.is_stopped {
                return ControlFlow::Break(());
            }
            let pieces = self.change(state, SchedulerState::take);
            if pieces.is_empty() {
                return ControlFlow::Continue(());
            }
            for piece in pieces {
                if take(piece).is_break() {
                    self.stop();
                    return ControlFlow::Break(());
                }
            }
        }
    }

    /// How it ended; all threads must have.
    pub(crate) fn end(&self) -> WorkEnd {
        let mut state = self.lock();
        WorkEnd { is_unsliceable: state.is_unsliceable, doubts: std::mem::take(&mut state.doubts) }
    }
}

/// The reader of slices of a thread.
pub(crate) trait SliceReader<P> {
    /// Reads a slice and gives it away, piece by piece; breaks where the slice cannot be relied on,
    /// or no more is wanted.
    fn read(&mut self, slice: &Slice, give: &mut dyn FnMut(P) -> ControlFlow<()>) -> ControlFlow<()>;
    /// For their doubts.
    fn cursors(&self) -> &[Cursor];
}

/// The next round of a slice that all cursors entered; breaks where the slice cannot be relied on.
pub(crate) fn round(
    cursors: &mut [Cursor],
    merger: &mut Merger<StreamBatch>,
) -> ControlFlow<(), Option<Round<StreamBatch>>> {
    for (stream, cursor) in cursors.iter_mut().enumerate() {
        while merger.is_hungry(stream) {
            match cursor.next_item() {
                _ if cursor.strays() => return ControlFlow::Break(()),
                Some(CursorItem::Batch(batch)) => merger.push(stream, Arc::new(batch)),
                Some(CursorItem::Fault(_)) => return ControlFlow::Break(()),
                None => merger.finish(stream),
            }
        }
    }
    ControlFlow::Continue(merger.round())
}

/// Bytes of all packets that are wanted, and of those that would be read twice at each cut, about.
pub(crate) fn bytes(wanted: &[(&DataStream, Range<usize>)]) -> (u64, u64) {
    let (mut all, mut waste) = (0, 0);
    for (stream, wanted) in wanted.iter().filter(|(_, wanted)| !wanted.is_empty()) {
        let (first, last) = (stream.packets.get(wanted.start), stream.packets.get(wanted.end - 1));
        // Packets resemble each other.
        let of_one = (first.total_bits + last.total_bits) / 2 / 8;
        all += of_one * wanted.len() as u64;
        // Half a packet lies behind a cut.
        waste += of_one / 2;
    }
    (all, waste)
}

/// How long slices should be, from so many to so many bytes, if that is worth it.
pub(crate) fn lengths((all, waste): (u64, u64), (least, most): (u64, u64), readers: usize) -> Option<Lengths> {
    let readers = readers as u64;
    // Packets that lie across a cut are read twice.
    let lengths = Lengths { all, least: least.max(2 * waste), most: most.max(2 * waste), readers };
    (all >= 2 * readers * lengths.least).then_some(lengths)
}

/// Lets the others go when a thread panics.
struct StopOnPanic<'a, P: OrderedPiece>(&'a SliceScheduler<P>);

impl<P: OrderedPiece> Drop for StopOnPanic<'_, P> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(state) = self.0.state.lock()
        {
            self.0.change(state, |state| state.is_stopped = true);
        }
    }
}
