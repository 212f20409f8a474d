//! One part of a trace on its way to a state: lanes step on their own, their notes are put in order of time.
//!
//! ```text
//! while a lane is hungry:  step its events, flush
//! settle:                  notes that no unread event can precede go to the state
//! ```
//!
//! Whoever drives it decides which lane is read next; [`Part::is_hungry`] says which ones the others wait for.

use std::sync::Arc;

use kymo_scan::Merger;
use kymo_scan::merge::Keyed;

use crate::{Analysis, Event, Notes};

/// A part of a trace being read.
pub struct Part<'a, A: Analysis> {
    analysis: &'a A,
    state: A::State,
    lanes: Vec<A::Lane<'a>>,
    merger: Merger<Notes<A::Note>>,
    /// Notes of each lane that the merger has not yet.
    pending: Vec<Notes<A::Note>>,
    /// Memory of notes that are behind.
    spare: Vec<Notes<A::Note>>,
}

impl<N> Keyed for Notes<N> {
    fn keys(&self) -> &[i64] {
        &self.times
    }
}

impl<'a, A: Analysis> Part<'a, A> {
    /// A part with so many lanes.
    pub fn new(analysis: &'a A, lanes: usize) -> Self {
        Self {
            analysis,
            state: analysis.init(),
            lanes: (0..lanes).map(|lane| analysis.enter(lane)).collect(),
            merger: Merger::new(lanes),
            pending: std::iter::repeat_with(Notes::default).take(lanes).collect(),
            spare: Vec::new(),
        }
    }

    /// Whether more events of the lane are needed before the next notes can be settled.
    #[must_use]
    pub fn is_hungry(&self, lane: usize) -> bool {
        self.merger.is_hungry(lane)
    }

    /// An event of the lane.
    #[inline]
    pub fn step(&mut self, lane: usize, event: &Event<'_>) {
        self.analysis.step(&mut self.lanes[lane], event, &mut self.pending[lane]);
    }

    /// Hands over what the lane noted so far.
    pub fn flush(&mut self, lane: usize) {
        if !self.pending[lane].times.is_empty() {
            let notes = std::mem::replace(&mut self.pending[lane], self.spare.pop().unwrap_or_default());
            self.merger.push(lane, Arc::new(notes));
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
            let row = place.row as usize;
            self.analysis.note(&mut self.state, part.stream, part.batch.times[row], &part.batch.notes[row]);
        }
        for part in round.parts.drain(..) {
            // Notes that the merger holds on to are not over.
            if let Ok(mut notes) = Arc::try_unwrap(part.batch) {
                notes.times.clear();
                notes.notes.clear();
                self.spare.push(notes);
            }
        }
        self.merger.recycle(round);
        true
    }

    /// What is known when everything was settled.
    pub fn end(self) -> A::State {
        let Self { analysis, mut state, lanes, .. } = self;
        for (number, lane) in lanes.into_iter().enumerate() {
            analysis.leave(&mut state, number, lane);
        }
        state
    }
}
