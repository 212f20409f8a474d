//! Prints slices of time side by side and puts their text together.
//!
//! ```text
//! slices ──next──> any thread: cursors, merger, lines ──> desk ──in turn──> out, by the caller's thread
//! ```
//!
//! Threads that share streams hand every event from core to core; threads that have a slice each share nothing but
//! the bytes of packets that lie across a cut. A slice relies on the times of packets: where those turn out to be
//! wrong, printing stops between two events, and the caller goes on in another way.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use kymo_decode::text::Moment;
use kymo_scan::{Batch, Cursor, DataStream, Item, Lengths, Merger, Part, Place, Round, Slice, Slices, Unsliceable};

use super::span::Span;
use super::{BLOCK_BYTES, Before, PrintFormat, PrintSink, PrintWork, Text, is_event};
use crate::engine::{Sink, Work, used_up};
use crate::open::{Doubts, Session};
use crate::progress::Progress;
use crate::report::Report;

/// Bytes of slices without text, about, at least and at most.
const SILENT_SLICE_BYTES: (u64, u64) = (4 << 20, 64 << 20);
/// Bytes of text that may wait for its turn.
const TEXT_BYTES_MAX: usize = 12 << 20;
/// Bytes of all slices that are read at a time, if they have text.
const TEXT_SLICES_BYTES: u64 = 8 << 20;
const JSON_SLICES_BYTES: u64 = 4 << 20;
/// Towards the end, slices become so many times shorter.
const SHORTER: u64 = 4;

/// How often slices led to the end.
#[cfg(test)]
static FINISHED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Prints everything, or breaks off.
///
/// # Errors
///
/// [`Unsliceable`]: events follow those that the sink has printed.
pub(super) fn print(span: Span, sink: &mut PrintSink<'_>, progress: &Progress) -> Result<(), Unsliceable> {
    let (session, work) = (sink.session, sink.work);
    let is_plain = sink.blocks.is_none() && work.options.limit.is_none();
    if session.threads <= 1 || !is_plain {
        return Err(Unsliceable);
    }
    let desk = Desk::new(session, work, span)?;
    std::thread::scope(|scope| {
        for _ in 1..session.threads {
            scope.spawn(|| desk.serve(Reader::new(session, work)));
        }
        desk.run(Reader::new(session, work), sink, progress);
    });
    let state = desk.state.into_inner().expect("no thread panics while it holds the desk");
    if state.is_unsliceable {
        return Err(Unsliceable);
    }
    #[cfg(test)]
    FINISHED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let notes = state.doubts.into_iter().flat_map(|(stream, doubts)| session.assumptions_of(stream, doubts));
    sink.printed.report.assumptions.extend(notes);
    Ok(())
}

/// What a thread reads slices with.
struct Reader<'a> {
    work: &'a PrintWork<'a>,
    cursors: Vec<Cursor>,
    merger: Merger<Batch>,
}

impl<'a> Reader<'a> {
    fn new(session: &Session, work: &'a PrintWork<'a>) -> Self {
        // Each slice says which packets to read.
        let cursors = session.cursors_between(true, None, None, work.filters);
        let merger = Merger::new(cursors.len());
        Self { work, cursors, merger }
    }

    /// Reads a slice and gives away what there is of it, piece by piece.
    fn read(&mut self, slice: &Slice, mut give: impl FnMut(Piece) -> ControlFlow<()>) -> ControlFlow<()> {
        self.merger.restart();
        self.cursors.iter_mut().for_each(|cursor| cursor.enter(slice));
        let mut report = Report::default();
        let (mut begun, mut last) = (false, None);
        while let Some(mut round) = self.round()? {
            report.count_losses(&round);
            self.work.trim(&mut round);
            if !begun && let Some(first) = take_first(&mut round) {
                begun = true;
                last = self.work.last_moment(&first);
                give(Piece::First(first))?;
            }
            let before = Before { previous: last, blocks: Vec::new(), last: false };
            let text = self.work.work(&round, before);
            last = self.work.last_moment(&round).or(last);
            for (stream, batch) in used_up(&mut round) {
                self.cursors[stream].recycle(batch);
            }
            self.merger.recycle(round);
            give(Piece::Text(text))?;
        }
        give(Piece::End(End { report, last, bytes: slice.bytes }))
    }

    /// The next round; breaks where the slice cannot be relied on.
    fn round(&mut self) -> ControlFlow<(), Option<Round<Batch>>> {
        for (stream, cursor) in self.cursors.iter_mut().enumerate() {
            while self.merger.is_hungry(stream) {
                match cursor.next_item() {
                    _ if cursor.strays() => return ControlFlow::Break(()),
                    Some(Item::Batch(batch)) => self.merger.push(stream, Arc::new(batch)),
                    Some(Item::Fault(_)) => return ControlFlow::Break(()),
                    None => self.merger.finish(stream),
                }
            }
        }
        ControlFlow::Continue(self.merger.round())
    }
}

/// Takes the first event out of a round. Its line says how long after the event before it comes, which is in another
/// slice.
fn take_first(round: &mut Round<Batch>) -> Option<Round<Batch>> {
    let at = round.order.iter().position(|&place| is_event(round, place))?;
    let Place { part, row } = round.order.remove(at);
    let part = &round.parts[part as usize];
    let rows = row as usize..row as usize + 1;
    let part = Part { stream: part.stream, batch: Arc::clone(&part.batch), rows };
    Some(Round { parts: vec![part], order: vec![Place { part: 0, row }] })
}

/// What there is of a slice, in this order.
enum Piece {
    /// Its first event.
    First(Round<Batch>),
    /// The lines that follow.
    Text(Text),
    /// All was given.
    End(End),
}

impl Piece {
    fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.full.len() * BLOCK_BYTES + text.lines.len(),
            Self::First(_) | Self::End(_) => 0,
        }
    }
}

struct End {
    report: Report,
    /// The time of the last event.
    last: Option<Moment>,
    bytes: u64,
}

/// Where slices are given out and their pieces wait for their turn.
struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    slices: Slices,
    /// Slices that are given out and not written at most.
    slices_max: u64,
    /// Bytes of text that waits.
    text_bytes: usize,
    /// Number of the next slice.
    next: u64,
    /// Number of the slice that is written.
    turn: u64,
    /// Pieces that wait, of each slice.
    pieces: BTreeMap<u64, VecDeque<Piece>>,
    /// There are no more slices.
    is_over: bool,
    /// Nobody should go on.
    is_stopped: bool,
    is_unsliceable: bool,
    /// What is doubtful of each stream.
    doubts: BTreeMap<usize, Doubts>,
}

impl State {
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
        !self.is_stopped && number != self.turn && self.text_bytes > TEXT_BYTES_MAX
    }

    /// Whether something can be written, or nothing more will be.
    fn is_due(&self) -> bool {
        let is_filled = |pieces: &VecDeque<Piece>| !pieces.is_empty();
        self.is_stopped || self.is_done() || self.pieces.get(&self.turn).is_some_and(is_filled)
    }

    fn is_done(&self) -> bool {
        self.is_over && self.turn == self.next
    }

    /// Adds what a reader doubts.
    fn doubt(&mut self, cursors: &[Cursor]) {
        for cursor in cursors {
            self.doubts.entry(cursor.stream()).or_default().add(Doubts::of(cursor));
        }
    }

    fn put(&mut self, number: u64, piece: Piece) {
        self.text_bytes += piece.text_bytes();
        self.pieces.entry(number).or_default().push_back(piece);
    }

    /// The pieces that can be written. With the last ones of a slice, the next one's turn comes.
    fn take(&mut self) -> VecDeque<Piece> {
        let pieces = self.pieces.get_mut(&self.turn).map(std::mem::take).unwrap_or_default();
        if matches!(pieces.back(), Some(Piece::End(_))) {
            self.pieces.remove(&self.turn);
            self.turn += 1;
        }
        self.text_bytes -= pieces.iter().map(Piece::text_bytes).sum::<usize>();
        pieces
    }
}

impl Desk {
    fn new(session: &Session, work: &PrintWork<'_>, (begin, end): Span) -> Result<Self, Unsliceable> {
        let streams = session.streams();
        let filters = work.filters.iter().map(Option::as_deref);
        let wanted = streams.iter().zip(filters);
        let wanted = wanted.map(|((_, stream), filter)| (*stream, stream.packets_for(begin, end, filter)));
        let wanted: Vec<(&DataStream, Range<usize>)> = wanted.collect();
        let readers = session.threads as u64;
        let state = State {
            slices: Slices::new(wanted.iter().cloned(), lengths(&wanted, work.options.format, session)?)?,
            slices_max: readers * 2,
            text_bytes: 0,
            next: 0,
            turn: 0,
            pieces: BTreeMap::new(),
            is_over: false,
            is_stopped: false,
            is_unsliceable: false,
            doubts: BTreeMap::new(),
        };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the desk")
    }

    fn wait_until(&self, holds: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_while(self.lock(), |state| !holds(state));
        waited.expect("no thread panics while it holds the desk")
    }

    /// Changes what others may wait for.
    fn change<T>(&self, mut state: MutexGuard<'_, State>, with: impl FnOnce(&mut State) -> T) -> T {
        let changed = with(&mut state);
        self.changed.notify_all();
        changed
    }

    /// A thread's life.
    fn serve(&self, mut reader: Reader<'_>) {
        let _stop = StopOnPanic(self);
        loop {
            let state = self.wait_until(|state| state.gives() || state.is_over || state.is_stopped);
            let Some((number, slice)) = self.change(state, State::give) else { break };
            let read = reader.read(&slice, |piece| {
                self.change(self.lock(), |state| state.put(number, piece));
                let is_stopped = self.wait_until(|state| !state.is_full(number)).is_stopped;
                if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            self.leave(read);
        }
        self.lock().doubt(&reader.cursors);
    }

    /// The caller's part: it reads slices too, and writes everything.
    fn run(&self, mut reader: Reader<'_>, sink: &mut PrintSink<'_>, progress: &Progress) {
        let _stop = StopOnPanic(self);
        loop {
            let state = self.wait_until(|state| state.gives() || state.is_due());
            if state.is_stopped || state.is_done() {
                break;
            }
            if state.is_due() {
                drop(state);
                match self.write(sink, progress) {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(()) => break,
                }
            }
            let Some((number, slice)) = self.change(state, State::give) else { continue };
            let read = reader.read(&slice, |piece| {
                self.change(self.lock(), |state| state.put(number, piece));
                self.write(sink, progress)?;
                while self.lock().is_full(number) {
                    drop(self.wait_until(|state| state.is_due() || !state.is_full(number)));
                    self.write(sink, progress)?;
                }
                ControlFlow::Continue(())
            });
            self.leave(read);
        }
        self.change(self.lock(), |state| state.is_stopped = true);
        self.lock().doubt(&reader.cursors);
    }

    /// A slice was read, or not.
    fn leave(&self, read: ControlFlow<()>) {
        let stop = |state: &mut State| {
            // Otherwise it was left because all stop.
            state.is_unsliceable |= !state.is_stopped;
            state.is_stopped = true;
        };
        if read.is_break() {
            self.change(self.lock(), stop);
        }
    }

    /// Writes everything whose turn has come; breaks if nobody should go on.
    fn write(&self, sink: &mut PrintSink<'_>, progress: &Progress) -> ControlFlow<()> {
        loop {
            let state = self.lock();
            if state.is_stopped {
                return ControlFlow::Break(());
            }
            let pieces = self.change(state, State::take);
            if pieces.is_empty() {
                return ControlFlow::Continue(());
            }
            for piece in pieces {
                if sink.write(piece, progress).is_break() {
                    self.change(self.lock(), |state| state.is_stopped = true);
                    return ControlFlow::Break(());
                }
            }
        }
    }
}

impl PrintSink<'_> {
    fn write(&mut self, piece: Piece, progress: &Progress) -> ControlFlow<()> {
        match piece {
            Piece::First(round) => {
                let before = Before { previous: self.previous, blocks: Vec::new(), last: false };
                let line = self.work.work(&round, before);
                self.finish(line)?;
            }
            Piece::Text(text) => self.finish(text)?,
            Piece::End(end) => {
                self.previous = end.last.or(self.previous);
                self.printed.report.add_losses(&end.report);
                progress.add(end.bytes);
            }
        }
        ControlFlow::Continue(())
    }
}

/// How long slices should be.
///
/// # Errors
///
/// They would not be worth it.
fn lengths(
    wanted: &[(&DataStream, Range<usize>)],
    format: PrintFormat,
    session: &Session,
) -> Result<Lengths, Unsliceable> {
    let readers = session.threads as u64;
    let (mut all, mut waste) = (0, 0);
    for (stream, wanted) in wanted.iter().filter(|(_, wanted)| !wanted.is_empty()) {
        let (first, last) = (stream.packets.get(wanted.start), stream.packets.get(wanted.end - 1));
        // Packets resemble each other.
        let of_one = (first.total_bits + last.total_bits) / 2 / 8;
        all += of_one * wanted.len() as u64;
        // Half a packet lies behind a cut.
        waste += of_one / 2;
    }
    let (least, most) = match format {
        PrintFormat::Silent => SILENT_SLICE_BYTES,
        PrintFormat::Json => (JSON_SLICES_BYTES / readers / SHORTER, JSON_SLICES_BYTES / readers),
        _ => (TEXT_SLICES_BYTES / readers / SHORTER, TEXT_SLICES_BYTES / readers),
    };
    if let Some(least) = session.slice_bytes {
        return Ok(Lengths { all, least, most: least, readers });
    }
    // Packets that lie across a cut are read twice.
    let lengths = Lengths { all, least: least.max(2 * waste), most: most.max(2 * waste), readers };
    let is_held = format == PrintFormat::Silent || lengths.least <= most;
    if is_held && all >= 2 * readers * lengths.least { Ok(lengths) } else { Err(Unsliceable) }
}

/// Lets the others go when a thread panics.
struct StopOnPanic<'a>(&'a Desk);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(state) = self.0.state.lock()
        {
            self.0.change(state, |state| state.is_stopped = true);
        }
    }
}
