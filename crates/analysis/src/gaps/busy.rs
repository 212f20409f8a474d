//! When anything happened at all: of each span of time the first and the last event.

use serde::{Deserialize, Serialize};

/// Spans of time between a trace's begin and end, or its first and its last event: gaps that are shorter than such a
/// span are not looked for across lanes.
pub const SPANS_MAX: u64 = 1 << 18;

/// A span is not longer than half of all time.
const SHIFT_MAX: u32 = 62;

/// First and last events by spans of time, which are 2^`shift` nanoseconds long. As long as they
/// have to be, and not longer: that follows from the events, in any order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Busy {
    shift: u32,
    /// First and last event of each span that has some, in the order of time.
    spans: Vec<(i64, i64)>,
    /// The last event of periods before.
    before: Option<i64>,
}

impl Busy {
    /// Nothing happened, in a trace from one time to another.
    pub(super) fn new(span_ns: Option<(i64, i64)>) -> Self {
        let mut busy = Self { shift: 0, spans: Vec::new(), before: None };
        if let Some((begin, end)) = span_ns {
            while busy.is_too_fine(begin, end) {
                busy.shift += 1;
            }
        }
        busy
    }

    fn is_too_fine(&self, first: i64, last: i64) -> bool {
        (first >> self.shift).abs_diff(last >> self.shift) >= SPANS_MAX
    }

    /// Whether there can be such spans.
    pub(super) fn fits(&self) -> bool {
        self.shift <= SHIFT_MAX && self.spans.len() as u64 <= SPANS_MAX
    }

    /// From when to when the span of a time is.
    pub(super) fn span(&self, time: i64) -> (i64, i64) {
        let begin = time >> self.shift << self.shift;
        (begin, begin.saturating_add(1 << self.shift))
    }

    /// Something happened at these times and maybe in between; both are in one span, which is not before the last one.
    pub(super) fn add(&mut self, first: i64, last: i64) {
        match self.spans.last_mut().filter(|known| known.0 >> self.shift == first >> self.shift) {
            Some(known) => known.1 = known.1.max(last),
            None => self.spans.push((first, last)),
        }
        self.keep_within_bounds();
    }

    /// Adds busy times of another part.
    pub(super) fn merge(&mut self, other: &Self) {
        self.shift = self.shift.max(other.shift.min(SHIFT_MAX));
        let own = std::mem::take(&mut self.spans);
        self.spans.reserve(own.len().max(other.spans.len()));
        let (mut own, mut others) = (own.into_iter().peekable(), other.spans.iter().copied().peekable());
        loop {
            let takes_own = match (own.peek(), others.peek()) {
                (Some(one), Some(other)) => one <= other,
                (one, None) => one.is_some(),
                (None, Some(_)) => false,
            };
            let Some(next) = (if takes_own { own.next() } else { others.next() }) else { break };
            self.put(next);
        }
        self.keep_within_bounds();
    }

    /// Adds a span that does not begin before the last one.
    fn put(&mut self, (first, last): (i64, i64)) {
        match self.spans.last_mut().filter(|known| known.0 >> self.shift == first >> self.shift) {
            Some(known) => known.1 = known.1.max(last),
            None => self.spans.push((first, last)),
        }
    }

    fn keep_within_bounds(&mut self) {
        while let (Some(first), Some(last)) = (self.spans.first(), self.spans.last())
            && self.is_too_fine(first.0, last.0)
        {
            self.shift += 1;
            for span in std::mem::take(&mut self.spans) {
                self.put(span);
            }
        }
    }

    /// A period ends: of its events only the last one matters from now on. How long spans are, the next one says.
    pub(super) fn forget(&mut self) {
        let before = self.spans.last().map(|span| span.1).or(self.before);
        *self = Self { shift: 0, spans: Vec::new(), before };
    }

    /// Times without an event that are not shorter than a span.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (i64, i64)> {
        let first = self.before.zip(self.spans.first().map(|span| span.0));
        let between = self.spans.windows(2).map(|pair| (pair[0].1, pair[1].0));
        first.into_iter().chain(between).filter(|(begin, end)| begin.abs_diff(*end) >= 1 << self.shift)
    }
}
