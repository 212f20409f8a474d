//! One part of a trace on its way to a state: lanes step on their own, their notes are put in order of time.
//!
//! ```text
//! while a lane is hungry:  step its events, flush
//! settle:                  notes that no unread event can precede go to the state
//! ```
//!
//! The driver decides which lane is read next; [`TracePart::is_hungry`] says which ones the others wait
//! for. A driver that does not know the type of the analysis drives an [`AnyPart`].

use std::ops::Range;
use std::sync::Arc;

use kymo_scan::Merger;
use kymo_scan::merge::{KeyedItem, PartRow};

use crate::{Analysis, AnalysisEvent, BoundClass, EventRows, LaneNotes};

/// A part of a trace being read.
pub struct TracePart<'a, A: Analysis> {
    analysis: &'a A,
    state: A::State,
    lanes: Vec<A::Lane<'a>>,
    /// Puts the times of notes in order; notes themselves wait in `notes`, as those of a lane come in its order.
    merger: Merger<NoteTimes>,
    /// For each lane its notes, and the times of those that the merger has not yet.
    notes: Vec<LaneNotes<A::Note>>,
    /// Memory of times that are behind.
    spare: Vec<Vec<i64>>,
}

/// Notes of a round at most, about: they wait in the second-level cache, beside what is read. With four times as many,
/// `kymo cpu` is 2 % slower on k400.
const ROUND_NOTES: usize = 2048;

/// When a lane noted something.
struct NoteTimes(Vec<i64>);

impl KeyedItem for NoteTimes {
    fn keys(&self) -> &[i64] {
        &self.0
    }
}

impl<'a, A: Analysis> TracePart<'a, A> {
    /// A part with so many lanes.
    pub fn new(analysis: &'a A, lanes: usize) -> Self {
        Self {
            analysis,
            state: analysis.init(),
            lanes: (0..lanes).map(|lane| analysis.enter(lane)).collect(),
            merger: Merger::of_rounds(lanes, ROUND_NOTES),
            notes: std::iter::repeat_with(LaneNotes::default).take(lanes).collect(),
            spare: Vec::new(),
        }
    }

    /// The same for the first part of a trace.
    pub fn first(analysis: &'a A, lanes: usize) -> Self {
        let mut part = Self::new(analysis, lanes);
        analysis.anchor(&mut part.state);
        part
    }

    /// Reads a part: makes it, lets `feed` give it all of its events, and ends it. `None`: `feed` did not give all.
    pub fn read(analysis: &'a A, lanes: usize, is_first: bool, feed: &mut Feed<'_>) -> Option<A::State> {
        let mut part = if is_first { Self::first(analysis, lanes) } else { Self::new(analysis, lanes) };
        feed(&mut part).then(|| part.end())
    }

    /// Whether more events of the lane are needed before the next notes can be settled.
    #[must_use]
    pub fn is_hungry(&self, lane: usize) -> bool {
        self.merger.is_hungry(lane)
    }

    /// An event of the lane.
    #[inline]
    pub fn step(&mut self, lane: usize, event: &AnalysisEvent<'_>) {
        self.analysis.step(&mut self.lanes[lane], event, &mut self.notes[lane]);
    }

    /// The events of a batch of the lane: its rows, all classes that are bound, the bytes of its window.
    pub fn steps(&mut self, lane: usize, batch: (&EventRows, &[BoundClass], &[u8])) {
        self.analysis.steps(&mut self.lanes[lane], batch, &mut self.notes[lane]);
    }

    /// Hands over the lane's notes so far.
    pub fn flush(&mut self, lane: usize) {
        let times = &mut self.notes[lane].times;
        if !times.is_empty() {
            // The merger takes only the times. Notes stay here, because those of a lane come out in
            // the order in which they went in.
            let times = std::mem::replace(times, self.spare.pop().unwrap_or_default());
            self.merger.push(lane, Arc::new(NoteTimes(times)));
        }
    }

    /// No more events of the lane are in this part.
    pub fn finish(&mut self, lane: usize) {
        self.flush(lane);
        self.merger.finish(lane);
    }

    /// Gives notes to the state when no lane is hungry; false when all lanes are finished and no notes are left.
    pub fn settle(&mut self) -> bool {
        let Some(mut round) = self.merger.round() else { return false };
        for place in &round.order {
            let part = &round.parts[place.part as usize];
            let note = self.notes[part.stream].notes.pop_front().expect("every time is that of a note");
            self.analysis.note(&mut self.state, part.stream, part.batch.0[place.row as usize], note);
        }
        for part in round.parts.drain(..) {
            // Times that the merger holds on to are not over.
            if let Ok(NoteTimes(mut times)) = Arc::try_unwrap(part.batch) {
                times.clear();
                self.spare.push(times);
            }
        }
        self.merger.recycle(round);
        true
    }

    /// The state when everything was settled.
    pub fn end(self) -> A::State {
        let Self { analysis, mut state, lanes, .. } = self;
        for (number, lane) in lanes.into_iter().enumerate() {
            analysis.leave(&mut state, number, lane);
        }
        state
    }
}

/// Events of a batch: their rows, all classes that are bound, the bytes of the window that they were read from.
pub type RowsOf<'a> = (&'a EventRows, &'a [BoundClass], &'a [u8]);

/// A part of a trace being read: see [`TracePart`], which has these methods.
pub trait AnyPart {
    /// See [`TracePart::is_hungry`].
    fn is_hungry(&self, lane: usize) -> bool;

    /// Some rows of a batch of the lane; then the lane's notes are handed over.
    fn steps_within(&mut self, lane: usize, rows: Range<usize>, batch: RowsOf<'_>);

    /// Rows of several batches of the lane in the order of `order`; its parts are indexes into
    /// `batches`, and each batch counts rows from the number beside it. Then the lane's notes are
    /// handed over.
    fn steps_merged(&mut self, lane: usize, order: &[PartRow], batches: &[(usize, RowsOf<'_>)]);

    /// See [`TracePart::finish`].
    fn finish(&mut self, lane: usize);

    /// See [`TracePart::settle`].
    fn settle(&mut self) -> bool;
}

impl<A: Analysis> AnyPart for TracePart<'_, A> {
    fn is_hungry(&self, lane: usize) -> bool {
        TracePart::is_hungry(self, lane)
    }

    fn steps_within(&mut self, lane: usize, rows: Range<usize>, (all, classes, bytes): RowsOf<'_>) {
        // Only a whole batch goes to `steps`, which may work column by column.
        if rows.len() == all.times.len() {
            self.steps(lane, (all, classes, bytes));
        } else {
            rows.for_each(|row| self.step(lane, &all.event(row, classes, bytes)));
        }
        self.flush(lane);
    }

    fn steps_merged(&mut self, lane: usize, order: &[PartRow], batches: &[(usize, RowsOf<'_>)]) {
        for place in order {
            let (first, (rows, classes, bytes)) = batches[place.part as usize];
            self.step(lane, &rows.event(first + place.row as usize, classes, bytes));
        }
        self.flush(lane);
    }

    fn finish(&mut self, lane: usize) {
        TracePart::finish(self, lane);
    }

    fn settle(&mut self) -> bool {
        TracePart::settle(self)
    }
}

/// Feeds a part until all of its events are read; returns whether it did.
pub type Feed<'a> = dyn FnMut(&mut dyn AnyPart) -> bool + 'a;
