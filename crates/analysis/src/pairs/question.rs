//! Which events are pairs, as people say it.
//!
//! ```text
//! --start 'sched_waking if target_cpu == 0'  --stop sched_switch  --key tid=next_tid
//! ```

use kymo_filter::{Filter, FilterProblem, NamePath};

use super::{PairEvents, PairsOptions, mapping};
use crate::mapping::{NamePattern, RoleMapping};

/// The events that begin and end pairs, and the fields by which they belong together.
#[derive(Clone, Debug, Default)]
pub struct PairsQuestion {
    start: Vec<PairEvents>,
    stop: Vec<PairEvents>,
    keys: Vec<(NamePath, NamePath)>,
    group: Option<NamePath>,
    is_nested: bool,
}

/// A part of the question cannot be understood.
#[derive(Clone, Debug, PartialEq)]
pub enum PairsProblem {
    /// A condition or a path is wrong: the text, and the errors in it.
    Expression(String, Vec<FilterProblem>),
    /// A start without a stop, or the other way round.
    Half,
}

impl PairsQuestion {
    /// Pairs of events that have the roles of beginning and ending something; they may be nested, as functions are.
    #[must_use]
    pub const fn by_roles() -> Self {
        Self { start: Vec::new(), stop: Vec::new(), keys: Vec::new(), group: None, is_nested: true }
    }

    /// Parses a question: events are `NAME` or `NAME if EXPRESSION`, where `*` in a name is any
    /// text; keys are `FIELD`, or `FIELD=FIELD` where it has another name in the event that ends.
    ///
    /// # Errors
    ///
    /// The error.
    pub fn parse(
        start: &[String],
        stop: &[String],
        keys: &[String],
        group: Option<&str>,
        is_nested: bool,
    ) -> Result<Self, PairsProblem> {
        if start.is_empty() != stop.is_empty() {
            return Err(PairsProblem::Half);
        }
        let all = |texts: &[String]| texts.iter().map(|text| events(text)).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            start: all(start)?,
            stop: all(stop)?,
            keys: keys.iter().map(|text| key(text)).collect::<Result<_, _>>()?,
            group: group.map(path).transpose()?,
            is_nested,
        })
    }

    pub(crate) fn options(&self) -> PairsOptions {
        PairsOptions { keys: self.keys.clone(), group: self.group.clone(), is_nested: self.is_nested }
    }

    pub(crate) fn mapping(&self) -> Option<RoleMapping> {
        (!self.start.is_empty()).then(|| mapping(self.start.clone(), self.stop.clone()))
    }
}

pub(crate) fn events(text: &str) -> Result<PairEvents, PairsProblem> {
    let (name, when) = match text.split_once(" if ") {
        Some((name, when)) => (name, Some(when)),
        None => (text, None),
    };
    let wrong = |problems| PairsProblem::Expression(when.unwrap_or_default().to_owned(), problems);
    let when = when.map(Filter::parse).transpose().map_err(wrong)?;
    Ok(PairEvents { names: vec![NamePattern::new(name.trim())], when })
}

pub(crate) fn key(text: &str) -> Result<(NamePath, NamePath), PairsProblem> {
    let (start, stop) = text.split_once('=').unwrap_or((text, text));
    Ok((path(start)?, path(stop)?))
}

fn path(text: &str) -> Result<NamePath, PairsProblem> {
    NamePath::parse(text.trim()).map_err(|problem| PairsProblem::Expression(text.to_owned(), vec![problem]))
}
