//! Prints slices of time side by side and puts their text together.
//!
//! ```text
//! slices ──next──> any thread: cursors, merger, lines ──> desk ──in turn──> out, by the caller's thread
//! ```
//!
//! Where slices turn out to be no way to read the traces, printing stops between two events, and the caller goes on in
//! another way.

#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use kymo_decode::text::Moment;
use kymo_scan::{
    Cursor, DataStream, Lengths, Merger, PartRow, Round, RoundPart, Slice, Slices, StreamBatch, Unsliceable,
};

use super::losses::{self, StreamLoss};
use super::span::Span;
use super::{BLOCK_BYTES, LineBlocks, PrintFormat, PrintInput, PrintSink, PrintWork, is_event};
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::Report;
use crate::parallel::desk::{self, SliceReader, SliceScheduler};
use crate::parallel::engine::{RoundSink, RoundWork, used_up};

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
    let desk = SliceScheduler::new(slices(session, work, span)?, session.threads, TEXT_BYTES_MAX);
    std::thread::scope(|scope| {
        for _ in 1..session.threads {
            scope.spawn(|| desk.serve(&mut PrintReader::new(session, work, progress)));
        }
        desk.run(&mut PrintReader::new(session, work, progress), &mut |piece| sink.write(piece, progress));
    });
    let ending = desk.end();
    if ending.is_unsliceable {
        return Err(Unsliceable);
    }
    #[cfg(test)]
    FINISHED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let notes = ending.doubts.into_iter().flat_map(|(stream, doubts)| session.assumptions_of(stream, doubts));
    sink.printed.report.assumptions.extend(notes);
    Ok(())
}

/// Reader of slices of a thread.
struct PrintReader<'a> {
    work: &'a PrintWork<'a>,
    cursors: Vec<Cursor>,
    merger: Merger<StreamBatch>,
}

impl<'a> PrintReader<'a> {
    fn new(session: &Session, work: &'a PrintWork<'a>, progress: &Progress) -> Self {
        // Each slice says which packets to read.
        let cursors = session.cursors_between(true, (None, None), work.filters, progress);
        let merger = Merger::new(cursors.len());
        Self { work, cursors, merger }
    }
}

impl SliceReader<PrintPiece> for PrintReader<'_> {
    fn read(&mut self, slice: &Slice, give: &mut dyn FnMut(PrintPiece) -> ControlFlow<()>) -> ControlFlow<()> {
        self.merger.restart();
        self.cursors.iter_mut().for_each(|cursor| cursor.enter(slice));
        let mut report = Report::default();
        let (mut begun, mut last, mut losses) = (false, None, Vec::new());
        while let Some(mut round) = desk::round(&mut self.cursors, &mut self.merger)? {
            report.count_losses(&round);
            losses::collect(&mut losses, &round);
            self.work.trim(&mut round);
            if !begun && let Some(first) = take_first(&mut round) {
                begun = true;
                last = self.work.last_moment(&first);
                give(PrintPiece::First(first))?;
            }
            let before = PrintInput { previous: last, blocks: Vec::new(), last: false };
            let text = self.work.work(&round, before);
            last = self.work.last_moment(&round).or(last);
            for (stream, batch) in used_up(&mut round) {
                self.cursors[stream].recycle(batch);
            }
            self.merger.recycle(round);
            give(PrintPiece::Text(text))?;
        }
        give(PrintPiece::End(SliceEnd { report, losses, last, bytes: slice.bytes }))
    }

    fn cursors(&self) -> &[Cursor] {
        &self.cursors
    }
}

/// Takes the first event out of a round. Its line says how long after the event before it comes, which is in another
/// slice.
fn take_first(round: &mut Round<StreamBatch>) -> Option<Round<StreamBatch>> {
    let at = round.order.iter().position(|&place| is_event(round, place))?;
    let PartRow { part, row } = round.order.remove(at);
    let part = &round.parts[part as usize];
    let rows = row as usize..row as usize + 1;
    let part = RoundPart { stream: part.stream, batch: Arc::clone(&part.batch), rows };
    Some(Round { parts: vec![part], order: vec![PartRow { part: 0, row }] })
}

/// Parts of a slice, in this order.
enum PrintPiece {
    /// Its first event.
    First(Round<StreamBatch>),
    /// The lines that follow.
    Text(LineBlocks),
    /// All was given.
    End(SliceEnd),
}

impl desk::OrderedPiece for PrintPiece {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.full.len() * BLOCK_BYTES + text.lines.len(),
            Self::First(_) | Self::End(_) => 0,
        }
    }

    fn is_last(&self) -> bool {
        matches!(self, Self::End(_))
    }
}

struct SliceEnd {
    report: Report,
    losses: Vec<StreamLoss>,
    /// The time of the last event.
    last: Option<Moment>,
    bytes: u64,
}

impl PrintSink<'_> {
    fn write(&mut self, piece: PrintPiece, progress: &Progress) -> ControlFlow<()> {
        // After a cancel the remaining slices are empty, but there may be many.
        if progress.is_cancelled() {
            return ControlFlow::Break(());
        }
        match piece {
            PrintPiece::First(round) => {
                let before = PrintInput { previous: self.previous, blocks: Vec::new(), last: false };
                let line = self.work.work(&round, before);
                self.finish(line)?;
            }
            PrintPiece::Text(text) => self.finish(text)?,
            PrintPiece::End(end) => {
                self.previous = end.last.or(self.previous);
                self.printed.report.add_losses(&end.report);
                losses::add(&mut self.losses, end.losses);
                progress.add(end.bytes);
            }
        }
        ControlFlow::Continue(())
    }
}

/// The slices to print.
///
/// # Errors
///
/// There are none, or they would not be worth it.
fn slices(session: &Session, work: &PrintWork<'_>, (begin, end): Span) -> Result<Slices, Unsliceable> {
    let streams = session.streams();
    let filters = work.filters.iter().map(Option::as_deref);
    let wanted = streams.iter().zip(filters);
    let wanted = wanted.map(|((_, stream), filter)| (*stream, stream.packets_for(begin, end, filter)));
    let wanted: Vec<(&DataStream, Range<usize>)> = wanted.collect();
    Slices::new(wanted.iter().cloned(), lengths(&wanted, work.options.format, session)?)
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
    let bytes = desk::bytes(wanted);
    if let Some(least) = session.slice_bytes {
        return Ok(Lengths { all: bytes.0, least, most: least, readers });
    }
    let (least, most) = match format {
        PrintFormat::Silent => SILENT_SLICE_BYTES,
        PrintFormat::Json => (JSON_SLICES_BYTES / readers / SHORTER, JSON_SLICES_BYTES / readers),
        _ => (TEXT_SLICES_BYTES / readers / SHORTER, TEXT_SLICES_BYTES / readers),
    };
    let lengths = desk::lengths(bytes, (least, most), session.threads).ok_or(Unsliceable)?;
    let is_held = format == PrintFormat::Silent || lengths.least <= most;
    if is_held { Ok(lengths) } else { Err(Unsliceable) }
}
