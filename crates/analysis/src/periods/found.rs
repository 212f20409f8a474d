//! Makes periods from the events that begin or end them, in one pass.
//!
//! ```text
//! borders   +frame   +draw   -draw   +draw   -frame,+frame   ...
//! open      frame    frame   frame   frame   frame
//!                    draw            draw    └ draw ends with its parent
//! periods   0 frame (ended)  1 draw of 0 (ended)  2 draw of 0 (with its parent)  3 frame (never)
//! ```

use super::{Capture, Definitions, PeriodBorder, PeriodDefinition};
use crate::key::KeyValue;

/// A period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its definition, counted from 0.
    pub definition: usize,
    /// Its begin, inclusive.
    pub begin: i64,
    /// Its end.
    pub end: PeriodEnd,
    /// The period that it is within, as an earlier index into [`FoundPeriods::periods`].
    pub parent: Option<usize>,
    /// Values of [`Definitions::captures`]; those of its last event only if it has ended.
    pub captures: Box<[Option<KeyValue>]>,
}

/// How a period ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodEnd {
    /// An event ended it at this time, exclusive.
    At(i64),
    /// Its parent ended at this time, before the period did.
    WithParent(i64),
    /// It did not end.
    Never,
}

/// Periods, and counts of those that are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundPeriods {
    /// All periods, in the order of their begins.
    pub periods: Vec<Period>,
    /// Number of periods that did not begin, because too many were open.
    pub given_up: u64,
    /// More than [`PERIODS_MAX`] have begun: later events were not looked at.
    pub is_too_much: bool,
    /// For each definition, the number of end events without an open period.
    pub ended_nothing: Vec<u64>,
}

/// A period that is open.
#[derive(Debug)]
pub(super) struct OpenPeriod {
    definition: usize,
    /// Values of its first event.
    pub(super) values: Vec<Option<KeyValue>>,
    /// Index among all periods.
    place: usize,
    parent: Option<usize>,
}

/// Maximum number of open periods.
pub const OPEN_PERIODS_MAX: usize = 1024;

/// Maximum number of periods: they stay in memory.
pub const PERIODS_MAX: usize = 1 << 20;

impl Period {
    /// Time of the event that ended it, if any.
    #[must_use]
    pub fn ended(&self) -> Option<i64> {
        if let PeriodEnd::At(end) = self.end { Some(end) } else { None }
    }
}

impl FoundPeriods {
    /// Periods that an event has ended, each with the time of that event.
    pub fn ended(&self) -> impl Iterator<Item = (&Period, i64)> {
        self.periods.iter().filter_map(|period| Some((period, period.ended()?)))
    }

    /// A period and those that it is within, the innermost first.
    pub fn chain(&self, place: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(place), |at| self.periods[*at].parent)
    }
}

/// State of the pass over the borders.
struct BorderWalk<'a> {
    definitions: &'a [PeriodDefinition],
    /// For each definition, the source of each of [`Definitions::captures`].
    captures: Vec<Vec<Option<&'a Capture>>>,
    open: Vec<OpenPeriod>,
    found: FoundPeriods,
}

impl Definitions {
    /// All periods; `borders`: in the order of events.
    #[must_use]
    pub fn periods(&self, borders: &[PeriodBorder]) -> FoundPeriods {
        let names = self.captures();
        let sources = |definition: &'_ PeriodDefinition| -> Vec<Option<usize>> {
            names.iter().map(|name| definition.captures.iter().position(|capture| capture.name == *name)).collect()
        };
        let captures = self.definitions.iter().map(|definition| {
            sources(definition).into_iter().map(|at| at.map(|at| &definition.captures[at])).collect()
        });
        let found = FoundPeriods { ended_nothing: vec![0; self.definitions.len()], ..FoundPeriods::default() };
        let captures = captures.collect();
        let mut walk = BorderWalk { definitions: &self.definitions, captures, open: Vec::new(), found };
        for border in borders {
            let Some(&(definition, is_begin)) = self.rules.get(border.rule as usize) else { continue };
            if is_begin {
                walk.begin(definition, border);
            } else {
                walk.end(definition, border);
            }
            if walk.found.is_too_much {
                break;
            }
        }
        walk.found
    }
}

impl BorderWalk<'_> {
    /// Captures of a period from its first event, or its last one.
    fn tell(&self, definition: usize, border: &PeriodBorder, of_end: bool, captures: &mut [Option<KeyValue>]) {
        for (told, capture) in captures.iter_mut().zip(&self.captures[definition]) {
            if let Some(capture) = capture.filter(|capture| capture.of_end == of_end) {
                *told = border.values.get(capture.field).cloned().flatten();
            }
        }
    }

    /// An event begins a period; a child one in each of the parents that are open.
    fn begin(&mut self, definition: usize, border: &PeriodBorder) {
        let PeriodDefinition { begin, parent, .. } = &self.definitions[definition];
        let parents: Vec<Option<usize>> = match parent {
            None if begin.fits(&border.values, None, None) => vec![None],
            None => Vec::new(),
            Some(parent) => {
                let of_parent = self.open.iter().filter(|known| known.definition == *parent);
                of_parent
                    .filter(|known| begin.fits(&border.values, None, Some(known)))
                    .map(|known| Some(known.place))
                    .collect()
            }
        };
        for parent in parents {
            let place = self.found.periods.len();
            if self.open.len() >= OPEN_PERIODS_MAX {
                self.found.given_up += 1;
                continue;
            }
            if place >= PERIODS_MAX {
                self.found.is_too_much = true;
                return;
            }
            let mut captures = vec![None; self.captures[definition].len()].into_boxed_slice();
            self.tell(definition, border, false, &mut captures);
            let period = Period { definition, begin: border.time, end: PeriodEnd::Never, parent, captures };
            self.found.periods.push(period);
            self.open.push(OpenPeriod { definition, values: border.values.clone(), place, parent });
        }
    }

    /// An event ends periods, and with them the open periods inside.
    fn end(&mut self, definition: usize, border: &PeriodBorder) {
        let PeriodDefinition { end, is_chain, .. } = &self.definitions[definition];
        let parent = |known: &OpenPeriod| self.open.iter().find(|other| Some(other.place) == known.parent);
        let ends = |known: &&OpenPeriod| {
            known.definition == definition && end.fits(&border.values, Some(known), parent(known))
        };
        let mut ended: Vec<usize> = self.open.iter().filter(ends).map(|known| known.place).collect();
        if ended.is_empty() {
            self.found.ended_nothing[definition] += u64::from(!is_chain);
            return;
        }
        for &place in &ended {
            let mut captures = std::mem::take(&mut self.found.periods[place].captures);
            self.tell(definition, border, true, &mut captures);
            self.found.periods[place].captures = captures;
            self.found.periods[place].end = PeriodEnd::At(border.time);
        }
        let mut next = 0;
        while next < ended.len() {
            let children = self.open.iter().filter(|known| known.parent == Some(ended[next])).map(|known| known.place);
            let children: Vec<usize> = children.filter(|place| !ended.contains(place)).collect();
            for &child in &children {
                self.found.periods[child].end = PeriodEnd::WithParent(border.time);
            }
            ended.extend(children);
            next += 1;
        }
        self.open.retain(|known| !ended.contains(&known.place));
    }
}
