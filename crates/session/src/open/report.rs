//! The parts that a job could not read, and its assumptions.

use std::fmt;

use serde::{Deserialize, Serialize};

use kymo_scan::{BatchContent, Loss, Mark, Round, StreamBatch};

use crate::open::thinned::ThinnedEvents;

/// Everything that stands between an answer and the whole truth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The unreadable parts: the answer lacks them.
    pub unreadable: Vec<ReportProblem>,
    /// The assumptions: the answer relies on them.
    pub assumptions: Vec<ReportProblem>,
    /// Event records that tracers say they discarded; at least so many where `discarded_is_lower_bound`.
    pub events_discarded: u64,
    /// Some stream lost events before its first packet and does not say how many.
    pub discarded_is_lower_bound: bool,
    /// Packets that are missing by their sequence numbers.
    pub packets_lost: u64,
    /// Data streams that lack their end: see the assumptions.
    pub ends_missing: u64,
    /// Rules that have kept only some of the events that the answer is about.
    #[serde(default)]
    pub thinned: Vec<ThinnedEvents>,
}

/// A place and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportProblem {
    /// The file.
    pub place: String,
    /// The problem.
    pub message: String,
}

impl fmt::Display for ReportProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl Report {
    /// Whether everything was read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unreadable.is_empty()
    }

    /// Whether events are missing, as far as tracers and packets say.
    #[must_use]
    pub fn has_losses(&self) -> bool {
        self.events_discarded > 0 || self.discarded_is_lower_bound || self.packets_lost > 0 || self.ends_missing > 0
    }

    /// Adds the losses of another part of the job.
    pub(crate) fn add_losses(&mut self, part: &Self) {
        self.events_discarded = self.events_discarded.saturating_add(part.events_discarded);
        self.discarded_is_lower_bound |= part.discarded_is_lower_bound;
        self.packets_lost = self.packets_lost.saturating_add(part.packets_lost);
    }

    /// Adds the new problems and assumptions of another part of the job.
    pub(crate) fn add_problems(&mut self, part: &Self) {
        for (known, new) in [(&mut self.unreadable, &part.unreadable), (&mut self.assumptions, &part.assumptions)] {
            for problem in new {
                if !known.contains(problem) {
                    known.push(problem.clone());
                }
            }
        }
    }

    /// Adds the losses of another job that read some of the same streams: at least the larger of
    /// both.
    pub(crate) fn raise_losses(&mut self, other: &Self) {
        let is_same = self.events_discarded == other.events_discarded;
        self.discarded_is_lower_bound |= other.discarded_is_lower_bound || !is_same;
        self.events_discarded = self.events_discarded.max(other.events_discarded);
        self.packets_lost = self.packets_lost.max(other.packets_lost);
    }

    /// Adds the losses that the streams report.
    pub(crate) fn count_losses(&mut self, round: &Round<StreamBatch>) {
        for part in &round.parts {
            match &part.batch.content {
                BatchContent::Mark(Mark::DiscardedEvents(Loss { count, .. })) => {
                    self.events_discarded = self.events_discarded.saturating_add(count.unwrap_or(0));
                    self.discarded_is_lower_bound |= count.is_none();
                }
                BatchContent::Mark(Mark::DiscardedPackets(Loss { count, .. })) => {
                    self.packets_lost = self.packets_lost.saturating_add(count.unwrap_or(0));
                }
                _ => {}
            }
        }
    }
}
