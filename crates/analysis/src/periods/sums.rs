//! The sums of periods: by name, by their captures, and within each period of another name.
//!
//! ```text
//! request 0  ├──────────────────────────────────┤   10    parts of it: parse   1, total 2, share 20 %
//! parse        ├─┤                                 2                     query   2, total 8, share 80 %, covered 60 %
//! query             ├─────┤                        4                     no part             2, share 20 %
//! query                ├─────┤                     4
//! ```

use std::collections::HashMap;

use super::{CAPTURES_MAX, Definitions, FoundPeriods, PeriodEnd, PeriodProblem};
use crate::Histogram;
use crate::key::KeyValue;
use crate::setup::Wishes;
use crate::windows::Windows;

/// Resolved options for sums; by default, periods are grouped by name alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeriodGrouping {
    /// The periods with parts to sum up.
    pub(super) parent: Option<usize>,
    /// Which periods are parts, in the order of definitions.
    pub(super) parts: Vec<usize>,
    /// Captures that distinguish groups: the definition, and the index among all captures.
    pub(super) groups: Vec<(usize, usize)>,
    pub(super) order: Order,
}

/// Options for sums. By default periods are grouped by name alone, the longest first.
#[derive(Clone, Debug, Default)]
pub struct PeriodsQuestion {
    /// Name of the periods with parts to sum up: parts are the periods within them.
    pub aggregate_by: Option<String>,
    /// Names of the periods that are parts; all that are within, if empty.
    pub select: Vec<String>,
    /// Captures that distinguish groups, as `NAME.WORD`.
    pub group_by: Vec<String>,
    /// Order of the rows.
    pub order: Order,
}

/// Order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The longest first.
    #[default]
    Duration,
    /// In the order in which they began.
    Time,
    /// The same, but each behind the period that it is within.
    Hierarchy,
}

/// Maximum number of groups.
pub(super) const GROUPS_MAX: usize = 1 << 16;

/// Values that identify a group; `None`: all groups beyond [`GROUPS_MAX`].
pub(super) type GroupKey<'a> = Option<Vec<Option<&'a KeyValue>>>;

/// Periods of a name and a group.
#[derive(Debug, Default)]
pub(super) struct NamedPeriods {
    pub(super) durations: Histogram,
    pub(super) never_ended: u64,
    pub(super) lost_inside: u64,
    pub(super) ended_nothing: u64,
}

/// Parts of one name in one period; or the time that no part covers.
#[derive(Debug, Default)]
pub(super) struct PeriodPart {
    /// `None`: no part is open.
    pub(super) definition: Option<usize>,
    pub(super) durations: Histogram,
    /// Time of the period that at least one of them covers.
    pub(super) covered: u64,
    pub(super) never_ended: u64,
}

/// Parts of one name in all periods of a group.
#[derive(Debug, Default)]
pub(super) struct NamedParts {
    pub(super) definition: Option<usize>,
    /// Their duration in a period, for all periods.
    pub(super) times: Histogram,
    /// Periods that have such a part.
    pub(super) with: u64,
    pub(super) count: u64,
    pub(super) covered: u128,
    pub(super) never_ended: u64,
}

/// All periods of a group.
#[derive(Debug, Default)]
pub(super) struct GroupPeriods {
    /// Periods that are certain, and how long all of them are.
    pub(super) count: u64,
    pub(super) total: u128,
    pub(super) lost_inside: u64,
    pub(super) parts: Vec<NamedParts>,
}

impl Definitions {
    /// Resolves options for sums: the parts of these names (all, if none are named) of each period
    /// of the name `aggregate_by`; grouped by captures, as `NAME.WORD`, or `WORD` if only one
    /// definition has it.
    ///
    /// # Errors
    ///
    /// There is no such period, or it has no such capture.
    ///
    /// ```
    /// use kymo_analysis::periods::{Definitions, Order};
    /// let texts = ["request : begin : end", "parse(request) : parse_begin : parse_end"].map(str::to_owned);
    /// let definitions = Definitions::parse(&texts, &["request : client=peer".to_owned()])?;
    /// let by = ["request.client".to_owned()];
    /// assert!(definitions.sums(&[], Some("request"), &by, Order::default()).is_ok());
    /// assert!(definitions.sums(&[], Some("parse"), &by, Order::default()).is_err());
    /// # Ok::<(), kymo_analysis::periods::PeriodProblem>(())
    /// ```
    pub fn sums(
        &self,
        select: &[String],
        aggregate_by: Option<&str>,
        group_by: &[String],
        order: Order,
    ) -> Result<PeriodGrouping, PeriodProblem> {
        let place = |name: &str| {
            let at = self.definitions.iter().position(|known| known.name == name);
            at.ok_or_else(|| PeriodProblem::Name(name.to_owned()))
        };
        let parent = aggregate_by.map(place).transpose()?;
        let is_within = |of: usize| {
            let mut above = std::iter::successors(self.definitions[of].parent, |at| self.definitions[*at].parent);
            above.any(|at| Some(at) == parent)
        };
        for name in select {
            if !is_within(place(name)?) {
                let parent = aggregate_by.unwrap_or_default().to_owned();
                return Err(PeriodProblem::NotWithin { child: name.clone(), parent });
            }
        }
        let is_part =
            |of: &usize| is_within(*of) && (select.is_empty() || select.contains(&self.definitions[*of].name));
        let parts: Vec<usize> = (0..self.definitions.len()).filter(is_part).collect();
        match aggregate_by {
            Some(name) if parts.is_empty() => return Err(PeriodProblem::Childless(name.to_owned())),
            _ => {}
        }
        let mut groups = Vec::new();
        for text in group_by {
            let group = self.group(text)?;
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        if groups.len() > CAPTURES_MAX {
            return Err(PeriodProblem::Words(groups.len()));
        }
        Ok(PeriodGrouping { parent, parts, groups, order })
    }

    /// The definition of a capture, and its index among all captures.
    fn group(&self, text: &str) -> Result<(usize, usize), PeriodProblem> {
        let captures = self.captures();
        let mut found = None;
        for (of, definition) in self.definitions.iter().enumerate() {
            let said = text.strip_prefix(definition.name.as_str()).and_then(|rest| rest.strip_prefix('.'));
            for (word, is_whole) in [(said, true), (Some(text), false)] {
                let has = definition.captures.iter().any(|capture| Some(capture.name.as_str()) == word);
                let at = captures.iter().position(|name| Some(*name) == word).filter(|_| has);
                match (at, found) {
                    (Some(at), _) if is_whole => return Ok((of, at)),
                    (Some(_), Some(_)) => return Err(PeriodProblem::Word(text.to_owned())),
                    (Some(at), None) => found = Some((of, at)),
                    (None, _) => {}
                }
            }
        }
        found.ok_or_else(|| PeriodProblem::Word(text.to_owned()))
    }
}

/// The periods to sum up, and the reasons for doubt.
#[derive(Clone, Copy)]
pub(super) struct PeriodView<'a> {
    pub(super) found: &'a FoundPeriods,
    pub(super) sums: &'a PeriodGrouping,
    pub(super) holes: &'a Windows,
    pub(super) wishes: &'a Wishes,
}

impl<'a> PeriodView<'a> {
    /// Duration of a period, if it has ended and its duration is wanted.
    pub(super) fn duration(&self, place: usize) -> Option<u64> {
        let period = &self.found.periods[place];
        let duration = period.begin.abs_diff(period.ended()?);
        self.wishes.wants_duration(duration).then_some(duration)
    }

    /// Whether events of it may be missing.
    pub(super) fn is_uncertain(&self, place: usize) -> bool {
        let period = &self.found.periods[place];
        let until = match period.end {
            PeriodEnd::At(end) | PeriodEnd::WithParent(end) => end,
            PeriodEnd::Never => i64::MAX,
        };
        self.holes.touch(period.begin, until)
    }

    /// Its values of the captures that distinguish groups: its own, or those of a period that it is
    /// within.
    fn group(&self, place: usize) -> Vec<Option<&'a KeyValue>> {
        let value = |&(definition, capture): &(usize, usize)| {
            let of = self.found.chain(place).find(|at| self.found.periods[*at].definition == definition)?;
            self.found.periods[of].captures[capture].as_ref()
        };
        self.sums.groups.iter().map(value).collect()
    }

    /// Periods by name and group.
    pub(super) fn named(&self) -> HashMap<(usize, GroupKey<'a>), NamedPeriods> {
        let mut all: HashMap<(usize, GroupKey<'a>), NamedPeriods> = HashMap::new();
        for (place, period) in self.found.periods.iter().enumerate() {
            let duration = self.duration(place);
            if period.ended().is_some() && duration.is_none() {
                continue;
            }
            let named = entry(&mut all, (period.definition, self.group(place)));
            match duration {
                _ if self.is_uncertain(place) => named.lost_inside += 1,
                Some(duration) => named.durations.record(duration),
                None => named.never_ended += 1,
            }
        }
        for (definition, &count) in self.found.ended_nothing.iter().enumerate().filter(|(_, count)| **count > 0) {
            entry(&mut all, (definition, vec![None; self.sums.groups.len()])).ended_nothing += count;
        }
        all
    }

    /// Parts of all periods, each with the period that it is within; in the order of these, then in which they began.
    pub(super) fn within(&self) -> Vec<(usize, usize)> {
        let is_part = |place: &usize| self.sums.parts.contains(&self.found.periods[*place].definition);
        let of = |place: usize| {
            let mut chain = self.found.chain(place);
            chain.find(|at| Some(self.found.periods[*at].definition) == self.sums.parent)
        };
        let mut all: Vec<(usize, usize)> =
            (0..self.found.periods.len()).filter(is_part).filter_map(|place| Some((of(place)?, place))).collect();
        all.sort_unstable();
        all
    }

    /// Parts of a period by name, then the time that no part covers.
    pub(super) fn parts(&self, place: usize, within: &[(usize, usize)]) -> Vec<PeriodPart> {
        let from = within.partition_point(|(of, _)| *of < place);
        let mine: Vec<usize> =
            within[from..].iter().take_while(|(of, _)| *of == place).map(|(_, part)| *part).collect();
        let period = &self.found.periods[place];
        let duration = period.ended().map_or(0, |end| period.begin.abs_diff(end));
        let mut parts: Vec<PeriodPart> =
            self.sums.parts.iter().map(|of| PeriodPart { definition: Some(*of), ..PeriodPart::default() }).collect();
        for part in &mut parts {
            let named = || mine.iter().filter(|at| Some(self.found.periods[**at].definition) == part.definition);
            let ended =
                || named().filter_map(|at| Some((self.found.periods[*at].begin, self.found.periods[*at].ended()?)));
            part.never_ended = (named().count() - ended().count()) as u64;
            part.covered = covered(ended());
            ended().for_each(|(begin, end)| part.durations.record(begin.abs_diff(end)));
        }
        let all = mine.iter().map(|at| &self.found.periods[*at]);
        let covered = covered(all.filter_map(|part| Some((part.begin, part.ended()?))));
        parts.push(PeriodPart { covered: duration - covered, ..PeriodPart::default() });
        parts
    }

    /// Parts in all periods of each group.
    pub(super) fn wholes(&self, within: &[(usize, usize)]) -> HashMap<(usize, GroupKey<'a>), GroupPeriods> {
        let mut all: HashMap<(usize, GroupKey<'a>), GroupPeriods> = HashMap::new();
        for (place, period) in self.found.periods.iter().enumerate() {
            let duration = self.duration(place).filter(|_| Some(period.definition) == self.sums.parent);
            let Some(duration) = duration else { continue };
            let whole = entry(&mut all, (period.definition, self.group(place)));
            if self.is_uncertain(place) {
                whole.lost_inside += 1;
                continue;
            }
            whole.count += 1;
            whole.total += u128::from(duration);
            let parts = self.parts(place, within);
            whole.parts.resize_with(parts.len(), NamedParts::default);
            for (sum, part) in whole.parts.iter_mut().zip(parts) {
                sum.add(&part);
            }
        }
        all
    }
}

impl PeriodPart {
    /// Sum of their durations.
    pub(super) fn total(&self) -> u128 {
        if self.definition.is_some() { self.durations.sum() } else { u128::from(self.covered) }
    }
}

impl NamedParts {
    fn add(&mut self, part: &PeriodPart) {
        self.definition = part.definition;
        self.times.record(u64::try_from(part.total()).unwrap_or(u64::MAX));
        self.with += u64::from(if part.definition.is_some() { !part.durations.is_empty() } else { part.covered > 0 });
        self.count += part.durations.count();
        self.covered += u128::from(part.covered);
        self.never_ended += part.never_ended;
    }
}

/// The sums of a group, or of all beyond [`GROUPS_MAX`].
fn entry<'m, 'a, T: Default>(
    all: &'m mut HashMap<(usize, GroupKey<'a>), T>,
    (definition, group): (usize, Vec<Option<&'a KeyValue>>),
) -> &'m mut T {
    let key = (definition, Some(group));
    let is_full = all.len() >= GROUPS_MAX && !all.contains_key(&key);
    all.entry(if is_full { (definition, None) } else { key }).or_default()
}

/// Time that spans cover together, if they overlap; they come in the order of their begins.
fn covered(spans: impl Iterator<Item = (i64, i64)>) -> u64 {
    let (mut sum, mut until) = (0, i64::MIN);
    for (begin, end) in spans {
        if end > until {
            sum += begin.max(until).abs_diff(end);
            until = end;
        }
    }
    sum
}
