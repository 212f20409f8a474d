//! Periods that begin and end with events: requests, frames, phases, by any name.
//!
//! ```text
//! --period 'frame : vsync'                                                   from each vsync to the next one
//! --period 'draw(frame) : draw_begin : draw_end if id == $begin.id'          only while a frame is open
//!
//! frame    ├──────────── 0 ───────────┤├──────────── 1 ────────────┤
//! draw 7        ├──────────┤              ├───── (ends with its frame: dropped)
//! draw 8            ├──────────┤
//! ```
//!
//! Periods mean the same as in lttng-analyses, in another language: conditions on one event are
//! expressions of the filter language, and become part of the decoder. Conditions that compare with
//! the event that began a period, or its parent, are evaluated here. [`Borders`] finds the events
//! that begin or end anything, on all cores; then [`Definitions::periods`] goes through them once.
//! Other analyses answer for each of these periods; [`PeriodsAnalysis`] is the analysis of the periods
//! themselves.

mod analysis;
mod borders;
mod found;
mod read;
mod report;
mod sums;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use kymo_filter::{Filter, NamePath};

use crate::key::KeyValue;
use crate::mapping::{NamePattern, RoleMapping, Section, ValueSource};
use crate::roles::{EventRole, rule};
use crate::{BoundClass, BoundRole, FieldSlot, Needs, Question};
use found::OpenPeriod;

pub use analysis::PeriodsAnalysis;
pub use borders::{BORDERS_MAX, Borders, PeriodBorder};
pub use found::{FoundPeriods, OPEN_PERIODS_MAX, PERIODS_MAX, Period, PeriodEnd};
pub use read::PeriodProblem;
pub use report::CAPTURES;
pub use sums::{Order, PeriodGrouping, PeriodsQuestion};

/// The definitions of periods; by default none.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    definitions: Vec<PeriodDefinition>,
    /// For each rule, the definition that begins or ends by it: ends before begins, children before
    /// parents.
    rules: Vec<(usize, bool)>,
}

/// Rules for the begin and end of the periods of one name.
#[derive(Clone, Debug)]
struct PeriodDefinition {
    name: String,
    /// Without a period of this definition, none begins.
    parent: Option<usize>,
    begin: Side,
    end: Side,
    /// The event that begins a period ends the one before: the definition has no end.
    is_chain: bool,
    captures: Vec<Capture>,
}

/// A rule for events that begin or end a period.
#[derive(Clone, Debug)]
struct Side {
    events: NamePattern,
    when: Option<Filter>,
    /// Fields to read from these events.
    fields: Vec<NamePath>,
    /// Comparisons of their fields with fields of an earlier event.
    comparisons: Vec<Comparison>,
}

/// A field of an event, compared with one of the event that began the period, or its parent.
#[derive(Clone, Debug)]
struct Comparison {
    field: usize,
    is: Is,
    /// `true`: the other field is of the parent's first event.
    of_parent: bool,
    other: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Equal,
    Unequal,
    Less,
    NotMore,
    More,
    NotLess,
}

/// A captured value of a period: a field of the event that begins or ends it.
#[derive(Clone, Debug)]
struct Capture {
    name: String,
    of_end: bool,
    field: usize,
}

/// Maximum number of captures of all definitions together.
pub const CAPTURES_MAX: usize = 8;

impl Is {
    fn holds(self, one: &KeyValue, other: &KeyValue) -> bool {
        let number = |label: &KeyValue| match label {
            KeyValue::Integer(integer) => Some(*integer as f64),
            KeyValue::Real(bits) => Some(f64::from_bits(*bits)),
            KeyValue::Text(_) => None,
        };
        let order = match (one, other) {
            (KeyValue::Integer(one), KeyValue::Integer(other)) => Some(one.cmp(other)),
            (KeyValue::Text(one), KeyValue::Text(other)) => Some(one.cmp(other)),
            _ => number(one).zip(number(other)).and_then(|(one, other)| one.partial_cmp(&other)),
        };
        order.is_some_and(|order| match self {
            Self::Equal => order == Ordering::Equal,
            Self::Unequal => order != Ordering::Equal,
            Self::Less => order == Ordering::Less,
            Self::NotMore => order != Ordering::Greater,
            Self::More => order == Ordering::Greater,
            Self::NotLess => order != Ordering::Less,
        })
    }

    /// The same with both sides swapped.
    fn swapped(self) -> Self {
        match self {
            Self::Equal | Self::Unequal => self,
            Self::Less => Self::More,
            Self::More => Self::Less,
            Self::NotMore => Self::NotLess,
            Self::NotLess => Self::NotMore,
        }
    }
}

impl Side {
    /// The place of a field.
    fn place(&mut self, path: NamePath) -> usize {
        self.fields.iter().position(|known| *known == path).unwrap_or_else(|| {
            self.fields.push(path);
            self.fields.len() - 1
        })
    }

    /// Whether comparisons hold for an event with these values. A missing value compares as false.
    fn fits(&self, values: &[Option<KeyValue>], begin: Option<&OpenPeriod>, parent: Option<&OpenPeriod>) -> bool {
        self.comparisons.iter().all(|comparison| {
            let other = if comparison.of_parent { parent } else { begin };
            let one = values.get(comparison.field).and_then(Option::as_ref);
            let other = other.and_then(|open| open.values.get(comparison.other)?.as_ref());
            one.zip(other).is_some_and(|(one, other)| comparison.is.holds(one, other))
        })
    }
}

impl Definitions {
    /// Parses definitions: `NAME : EVENT [if CONDITION] [: EVENT [if CONDITION]]`, and captured
    /// fields: `NAME : WORD=FIELD, WORD=FIELD [: WORD=FIELD]`, of the event that begins, then of
    /// the one that ends.
    ///
    /// # Errors
    ///
    /// A definition has an error.
    ///
    /// ```
    /// use kymo_analysis::periods::Definitions;
    /// let text = ["call : rpc_begin : rpc_end if id == $begin.id".to_owned()];
    /// assert!(Definitions::parse(&text, &["call : peer=peer".to_owned()]).is_ok());
    /// assert!(Definitions::parse(&["call(x) : rpc_begin".to_owned()], &[]).is_err());
    /// ```
    pub fn parse(definitions: &[String], captures: &[String]) -> Result<Self, PeriodProblem> {
        read::definitions(definitions, captures)
    }

    fn new(definitions: Vec<PeriodDefinition>) -> Self {
        let mut order: Vec<usize> = (0..definitions.len()).collect();
        let depth = |place: usize| std::iter::successors(Some(place), |at: &usize| definitions[*at].parent).count();
        order.sort_by_key(|place| std::cmp::Reverse(depth(*place)));
        let rules = order.iter().map(|place| (*place, false)).chain(order.iter().map(|place| (*place, true))).collect();
        Self { definitions, rules }
    }

    /// Names of definitions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.iter().map(|definition| definition.name.as_str())
    }

    /// The names of captures, of all definitions.
    #[must_use]
    pub fn captures(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for capture in self.definitions.iter().flat_map(|definition| &definition.captures) {
            if !names.contains(&capture.name.as_str()) {
                names.push(capture.name.as_str());
            }
        }
        names
    }

    /// The events that begin and end periods, for [`crate::bind::Bindings`].
    #[must_use]
    pub fn mapping(&self) -> RoleMapping {
        let mut mapping = RoleMapping::new("periods");
        let sections = self.rules.iter().enumerate().map(|(number, &(definition, is_begin))| {
            let side = self.side(definition, is_begin);
            let mut section = Section::new(EventRole::Rule, vec![side.events.clone()]);
            section.when = side.when.clone();
            section.fields[rule::NUMBER] = vec![ValueSource::Integer(number as i64)];
            for (place, path) in side.fields.iter().enumerate() {
                section.fields[rule::KEY_1 + place] = vec![ValueSource::Path(path.clone())];
            }
            section
        });
        mapping.sections = sections.collect();
        mapping
    }

    fn side(&self, definition: usize, is_begin: bool) -> &Side {
        let PeriodDefinition { begin, end, .. } = &self.definitions[definition];
        if is_begin { begin } else { end }
    }

    /// Number of fields that each rule needs.
    fn fields(&self) -> Vec<usize> {
        self.rules.iter().map(|&(definition, is_begin)| self.side(definition, is_begin).fields.len()).collect()
    }

    /// One message for each needed field that none of the rule's events has.
    fn lacking(&self, classes: &[BoundClass]) -> Vec<String> {
        let mut lacking = Vec::new();
        for (number, &(definition, is_begin)) in self.rules.iter().enumerate() {
            let is_its = |role: &&BoundRole| {
                role.role == EventRole::Rule
                    && matches!(role.slots[rule::NUMBER], FieldSlot::Integer(of) if of == number as i64)
            };
            let bound: Vec<&BoundRole> = classes.iter().flat_map(|class| &class.roles).filter(is_its).collect();
            let side = self.side(definition, is_begin);
            for (place, path) in side.fields.iter().enumerate() {
                if !bound.is_empty() && bound.iter().all(|role| role.slots[rule::KEY_1 + place] == FieldSlot::Absent) {
                    lacking.push(format!("no event that `{}` fits has `{path}`", side.events));
                }
            }
        }
        lacking
    }

    /// The question that [`Borders`] answers: the begins and ends of periods.
    #[must_use]
    pub fn borders(&self) -> Question<'_> {
        let question = Question::new(Self::needs(), &[], |setup| Borders::new(setup, self));
        Question { mapping: Some(self.mapping()), ..question }
    }

    /// The question that [`PeriodsAnalysis`] answers: the durations of periods.
    #[must_use]
    pub fn question<'a>(&'a self, sums: &'a PeriodGrouping) -> Question<'a> {
        let question = Question::new(Self::needs(), &[], |setup| PeriodsAnalysis::new(setup, self, sums));
        Question { mapping: Some(self.mapping()), ..question }
    }

    /// Roles and fields that [`Borders`] needs.
    fn needs() -> Needs {
        let fields = (0..EventRole::Rule.facts().fields.len()).collect();
        Needs { roles: vec![(EventRole::Rule, fields)], ..Needs::default() }
    }
}
