//! Reads slices of time, or everything, into batches.

use std::ops::ControlFlow;
use std::sync::Arc;

use kymo_scan::{Cursor, Merger, Round, Slice, StreamBatch, StreamFault, Unsliceable};
use kymo_table::RecordBatch;
use kymo_table::arrow::error::ArrowError;

use super::EventsPlan;
use super::batches::Batches;
use crate::open::progress::Progress;
use crate::open::report::Report;
use crate::parallel::desk::{self, SliceReader};
use crate::parallel::engine::{next_round, used_up};

/// A piece of a slice.
#[derive(Debug)]
pub(super) enum SlicePiece {
    Batch(RecordBatch),
    Failed(ArrowError),
    /// All was given.
    End(Ended),
}

/// The facts that are known behind the last row.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) report: Report,
    pub(super) replaced_texts: u64,
}

impl Ended {
    /// Adds the facts about further rows.
    pub(super) fn add(&mut self, more: &Self) {
        self.report.add_losses(&more.report);
        self.report.add_problems(&more.report);
        self.replaced_texts += more.replaced_texts;
    }
}

impl desk::OrderedPiece for SlicePiece {
    fn bytes(&self) -> usize {
        match self {
            Self::Batch(batch) => batch.get_array_memory_size(),
            Self::Failed(_) | Self::End(_) => 0,
        }
    }

    fn is_last(&self) -> bool {
        matches!(self, Self::End(_))
    }
}

/// The reader of slices of a thread.
#[derive(Debug)]
pub(super) struct EventSliceReader {
    cursors: Vec<Cursor>,
    merger: Merger<StreamBatch>,
    batches: Batches,
    report: Report,
    /// Texts replaced in slices before.
    replaced_before: u64,
}

impl EventSliceReader {
    pub(super) fn new(plan: &Arc<EventsPlan>, progress: &Progress) -> Self {
        // Each slice says which packets to read.
        let cursors = plan.session.cursors_between(true, (None, None), &plan.filters, progress);
        let merger = Merger::new(cursors.len());
        let batches = Batches::new(Arc::clone(plan));
        Self { cursors, merger, batches, report: Report::default(), replaced_before: 0 }
    }

    /// Goes to a slice.
    pub(super) fn enter(&mut self, slice: &Slice) {
        self.merger.restart();
        self.cursors.iter_mut().for_each(|cursor| cursor.enter(slice));
    }

    /// The next batch of the slice; `None` at its end.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, BatchFailure> {
        while !self.batches.is_full() {
            let round = match desk::round(&mut self.cursors, &mut self.merger) {
                ControlFlow::Continue(Some(round)) => round,
                ControlFlow::Continue(None) => break,
                ControlFlow::Break(()) => return Err(BatchFailure::Unsliceable),
            };
            self.report.count_losses(&round);
            self.batches.add(&round, &mut 0);
            self.recycle(round);
        }
        take(&mut self.batches)
    }

    fn recycle(&mut self, mut round: Round<StreamBatch>) {
        for (stream, batch) in used_up(&mut round) {
            self.cursors[stream].recycle(batch);
        }
        self.merger.recycle(round);
    }

    /// The facts since the last call.
    pub(super) fn ended(&mut self) -> Ended {
        let replaced = self.batches.replaced_texts();
        let replaced_texts = replaced - std::mem::replace(&mut self.replaced_before, replaced);
        Ended { report: std::mem::take(&mut self.report), replaced_texts }
    }
}

/// Why there is no batch.
#[derive(Debug)]
pub(super) enum BatchFailure {
    /// See [`Unsliceable`].
    Unsliceable,
    Arrow(ArrowError),
}

impl From<Unsliceable> for BatchFailure {
    fn from(Unsliceable: Unsliceable) -> Self {
        Self::Unsliceable
    }
}

fn take(batches: &mut Batches) -> Result<Option<RecordBatch>, BatchFailure> {
    if batches.is_empty() {
        return Ok(None);
    }
    batches.take().map(Some).map_err(BatchFailure::Arrow)
}

impl SliceReader<SlicePiece> for EventSliceReader {
    fn read(&mut self, slice: &Slice, give: &mut dyn FnMut(SlicePiece) -> ControlFlow<()>) -> ControlFlow<()> {
        self.enter(slice);
        loop {
            match self.next() {
                Ok(Some(batch)) => give(SlicePiece::Batch(batch))?,
                Ok(None) => return give(SlicePiece::End(self.ended())),
                Err(BatchFailure::Unsliceable) => return ControlFlow::Break(()),
                Err(BatchFailure::Arrow(error)) => {
                    give(SlicePiece::Failed(error))?;
                    return give(SlicePiece::End(self.ended()));
                }
            }
        }
    }

    fn cursors(&self) -> &[Cursor] {
        &self.cursors
    }
}

/// Reads everything by itself.
#[derive(Debug)]
pub(super) struct SoloReader {
    reader: EventSliceReader,
    faults: Vec<StreamFault>,
    /// Rows that were given before.
    skip: u64,
}

impl SoloReader {
    /// Reads the rows behind the first `skip` rows.
    pub(super) fn new(plan: &Arc<EventsPlan>, skip: u64, progress: &Progress) -> Self {
        let mut reader = EventSliceReader::new(plan, progress);
        let span = (plan.begin_ns, plan.end_ns);
        reader.cursors = plan.session.cursors_between(true, span, &plan.filters, progress);
        Self { reader, faults: Vec::new(), skip }
    }

    /// The next batch; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, BatchFailure> {
        let reader = &mut self.reader;
        while !reader.batches.is_full() {
            let round = next_round(&mut reader.cursors, &mut reader.merger, &mut self.faults);
            let Some(round) = round else { break };
            reader.report.count_losses(&round);
            reader.batches.add(&round, &mut self.skip);
            reader.recycle(round);
        }
        take(&mut reader.batches)
    }

    /// The facts so far.
    pub(super) fn ended(&mut self, plan: &EventsPlan) -> Ended {
        let mut ended = self.reader.ended();
        let mut faults = std::mem::take(&mut self.faults);
        faults.sort_by_key(|fault| (fault.stream, fault.packet));
        ended.report.unreadable.extend(faults.iter().map(|fault| plan.session.problem(fault)));
        let notes = self.reader.cursors.iter().flat_map(|cursor| plan.session.assumptions(cursor));
        ended.report.assumptions.extend(notes);
        ended
    }
}
