//! Where the filters of a recording run, for all of its events, and the conditions that the kernel is asked to check.

use std::collections::{BTreeMap, BTreeSet};

use kymo_filter::{FieldResolver, FilterProblem, PathMeaning, Verdict, nearest};
use kymo_format::model::FieldClass;
use kymo_ftrace::CallTable;
use kymo_ftrace::listing::PlannedEvent;
use kymo_ftrace::perf_sched::PERF_EVENTS;
use kymo_probe::record_test::{RecordFilter, RecordRelation, RecordTest, RecordValue, UnfilteredEvent};

use super::names::{RecordNames, members};
use super::push::{PushedTest, push};
use super::{BoundFilter, EventFilters};
use crate::kernel_filter::{FilterRuns, KernelFilter, KernelFilterPlace};

/// What the kernel is asked, and where filters run.
#[derive(Debug, Default)]
pub(in crate::kernel) struct AskedOfKernel {
    pub(in crate::kernel) filters: Vec<RecordFilter>,
    /// For each event of the kernel.
    pub(in crate::kernel) places: Vec<KernelFilterPlace>,
}

/// The events of one description of the kernel.
struct DescribedGroup<'p, 'f> {
    kernel: &'p str,
    planned: Vec<&'p PlannedEvent<'f>>,
}

/// By description, in the order of the first ones.
fn grouped<'p, 'f>(planned: &'p [PlannedEvent<'f>]) -> Vec<DescribedGroup<'p, 'f>> {
    let mut groups: Vec<DescribedGroup<'p, 'f>> = Vec::new();
    for event in planned {
        match groups.last_mut().filter(|group| group.kernel == event.plan.kernel) {
            Some(group) => group.planned.push(event),
            None => groups.push(DescribedGroup { kernel: &event.plan.kernel, planned: vec![event] }),
        }
    }
    groups
}

/// Conditions for the kernel, for all of these events.
pub(in crate::kernel) fn asked_of_kernel(filters: &EventFilters, planned: &[PlannedEvent<'_>]) -> AskedOfKernel {
    let mut asked = AskedOfKernel::default();
    for DescribedGroup { kernel, planned } in grouped(planned) {
        let is_about =
            |event: &&PlannedEvent<'_>| filters.filters.iter().any(|one| one.is_about(&event.plan.name, kernel));
        let pushed = match planned[..] {
            [one] if one.call.is_none() => pushed(filters, one),
            _ => of_calls(filters, &planned),
        };
        let tells = planned.iter().any(|event| event.plan.tells_of_threads()) || kernel == super::super::NEW_TASK;
        let searched = pushed.test.searched(planned[0].format).ok();
        let is_contradicted = pushed.test.constant().is_none() && searched == Some(RecordTest::never());
        let (mut test, mut why) = (searched.unwrap_or(pushed.test), pushed.why);
        let text = match test.constant() {
            Some(true) => None,
            // Even if none of them is kept.
            _ if tells => {
                (test, why) = (RecordTest::always(), Some("it tells which process a thread belongs to".to_owned()));
                None
            }
            Some(false) => None,
            None => match test.text(planned[0].format) {
                Ok(text) => Some(text),
                Err(problem) => {
                    (test, why) = (RecordTest::always(), Some(problem.to_string()));
                    None
                }
            },
        };
        let runs = match (test.constant(), &why) {
            _ if !planned.iter().any(is_about) => FilterRuns::Always,
            (Some(false), _) => FilterRuns::Never,
            (Some(true), None) => FilterRuns::Always,
            (Some(true), Some(_)) => FilterRuns::Recorder,
            (None, None) => FilterRuns::Kernel,
            (None, Some(_)) => FilterRuns::Both,
        };
        if text.is_some() {
            asked.filters.push(RecordFilter { event: kernel.to_owned(), test });
        }
        let why = match runs {
            FilterRuns::Never if is_contradicted => Some("no number is as the filter wants it".to_owned()),
            FilterRuns::Never => why_never(filters, &planned),
            FilterRuns::Always => None,
            _ => why,
        };
        asked.places.push(KernelFilterPlace { tracepoint: kernel.to_owned(), runs, kernel: text, why });
    }
    asked
}

/// The condition of an event: of all filters that are about it.
fn pushed(filters: &EventFilters, event: &PlannedEvent<'_>) -> PushedTest {
    let (name, kernel) = (&event.plan.name, &event.plan.kernel);
    let mut all = PushedTest { test: RecordTest::always(), why: None };
    for filter in filters.filters.iter().filter(|filter| filter.is_about(name, kernel)) {
        let Ok(bound) = BoundFilter::new(filter, name, &event.plan.payload) else {
            return PushedTest { test: RecordTest::never(), why: None };
        };
        let own = match bound.verdict {
            Verdict::AlwaysTrue => continue,
            Verdict::NeverTrue => return PushedTest { test: RecordTest::never(), why: None },
            Verdict::Depends => push(&bound.predicate, &bound.sources, (event.format, &event.plan)),
        };
        all.test = RecordTest::all([all.test, own.test]);
        all.why = all.why.or(own.why);
    }
    all
}

/// The condition of all system calls, which have one event in the kernel: which number has which condition.
fn of_calls(filters: &EventFilters, planned: &[&PlannedEvent<'_>]) -> PushedTest {
    let mut tables: BTreeMap<bool, BTreeMap<u64, RecordTest>> = BTreeMap::new();
    let mut why = None;
    for event in planned {
        let Some((table, number)) = event.call else { continue };
        let pushed = pushed(filters, event);
        why = why.or(pushed.why);
        tables.entry(table == CallTable::Compat).or_default().insert(number, pushed.test);
    }
    let others: Vec<&RecordTest> = tables.values().filter_map(|table| table.get(&u64::MAX)).collect();
    let other = RecordTest::any(others.iter().copied().cloned());
    let numbers: BTreeSet<u64> = tables.values().flat_map(|table| table.keys().copied()).collect();
    let mut listed = CallRanges::default();
    let mut conditions: BTreeMap<RecordTest, CallRanges> = BTreeMap::new();
    for number in numbers.into_iter().filter(|number| *number != u64::MAX) {
        let of = |table: &BTreeMap<u64, RecordTest>| table.get(&number).or_else(|| table.get(&u64::MAX)).cloned();
        let of: Vec<RecordTest> = tables.values().filter_map(of).collect();
        if of.iter().any(|test| *test != of[0]) {
            why.get_or_insert_with(|| "a number may be another call of a program of 32 bits".to_owned());
        }
        let test = RecordTest::any(of);
        if test != other {
            listed.add(number);
            conditions.entry(test).or_default().add(number);
        }
    }
    let of_listed = conditions.into_iter().map(|(test, ranges)| RecordTest::all([ranges.has(), test]));
    let of_others = RecordTest::all([listed.lacks(), other]);
    let test = RecordTest::any(std::iter::once(of_others).chain(of_listed.collect::<Vec<_>>()));
    PushedTest { test, why }
}

/// Numbers of calls, as ranges with both ends.
#[derive(Clone, Debug, Default)]
struct CallRanges(Vec<(u64, u64)>);

impl CallRanges {
    /// Adds a number above all others.
    fn add(&mut self, number: u64) {
        match self.0.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => self.0.push((number, number)),
        }
    }

    /// The number of a call is among these.
    fn has(&self) -> RecordTest {
        RecordTest::any(self.0.iter().map(|&(first, last)| match first == last {
            true => number(RecordRelation::Equal, first),
            false => RecordTest::all([
                number(RecordRelation::GreaterOrEqual, first),
                number(RecordRelation::LessOrEqual, last),
            ]),
        }))
    }

    /// It is not.
    fn lacks(&self) -> RecordTest {
        RecordTest::all(self.0.iter().map(|&(first, last)| match first == last {
            true => number(RecordRelation::NotEqual, first),
            false => RecordTest::any([number(RecordRelation::Less, first), number(RecordRelation::Greater, last)]),
        }))
    }
}

fn number(relation: RecordRelation, value: u64) -> RecordTest {
    RecordTest::Number { field: "id".to_owned(), relation, value: RecordValue::Signed(value as i64) }
}

/// Why no event of a description is recorded.
fn why_never(filters: &EventFilters, planned: &[&PlannedEvent<'_>]) -> Option<String> {
    let first = planned.first()?;
    let (name, kernel) = (&first.plan.name, &first.plan.kernel);
    let mut about = filters.filters.iter().filter(|filter| filter.is_about(name, kernel));
    about.find_map(|filter| match BoundFilter::new(filter, name, &first.plan.payload) {
        Ok(bound) => bound.missing.as_deref().and_then(|text| text.lines().next()).map(str::to_owned),
        Err(problems) => {
            problems.first().and_then(|problem| problem.render(filter.text()).lines().next().map(str::to_owned))
        }
    })
}

impl AskedOfKernel {
    /// Perf has no conditions: the recorder asks all filters.
    pub(super) fn of_perf() -> Self {
        let why = "perf asks no conditions";
        let place = |event: &&str| KernelFilterPlace {
            tracepoint: (*event).to_owned(),
            runs: FilterRuns::Recorder,
            kernel: None,
            why: Some(why.to_owned()),
        };
        Self { filters: Vec::new(), places: PERF_EVENTS.iter().map(place).collect() }
    }

    /// The events of these of which some may be kept.
    pub(in crate::kernel) fn kept(&self, events: Vec<String>) -> Result<Vec<String>, String> {
        let is_never = |event: &String| {
            self.places.iter().any(|place| place.tracepoint == *event && place.runs == FilterRuns::Never)
        };
        let kept: Vec<String> = events.into_iter().filter(|event| !is_never(event)).collect();
        if kept.is_empty() { Err("these filters keep no event of the kernel".to_owned()) } else { Ok(kept) }
    }

    /// The kernel has not taken some conditions.
    pub(in crate::kernel) fn refused(&mut self, events: &[UnfilteredEvent]) {
        for place in &mut self.places {
            if let Some(refused) = events.iter().find(|refused| refused.event == place.tracepoint) {
                (place.runs, place.kernel, place.why) = (FilterRuns::Recorder, None, Some(refused.why.clone()));
            }
        }
    }
}

/// An event that filters may be about.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct NamedEvent<'a> {
    pub(in crate::kernel) name: &'a str,
    /// The kernel's name, as `SYSTEM:NAME`.
    pub(in crate::kernel) kernel: &'a str,
    pub(in crate::kernel) payload: &'a FieldClass,
}

impl<'a> From<&'a PlannedEvent<'_>> for NamedEvent<'a> {
    fn from(event: &'a PlannedEvent<'_>) -> Self {
        Self { name: &event.plan.name, kernel: &event.plan.kernel, payload: &event.plan.payload }
    }
}

/// Checks filters against all events that are recorded.
///
/// # Errors
///
/// One is about no event, can be evaluated on none of those that it is about, or uses a name that none of them has; lines for
/// people.
pub(in crate::kernel) fn check(filters: &EventFilters, events: &[NamedEvent<'_>]) -> Result<(), String> {
    filters.filters.iter().try_for_each(|filter| check_one(filter, events))
}

fn check_one(filter: &KernelFilter, events: &[NamedEvent<'_>]) -> Result<(), String> {
    let about: Vec<&NamedEvent<'_>> = events.iter().filter(|event| filter.is_about(event.name, event.kernel)).collect();
    if about.is_empty() {
        return Err(about_none(filter, events));
    }
    let mut wrong = Vec::new();
    let mut can_be_asked = |event: &NamedEvent<'_>| match BoundFilter::new(filter, event.name, event.payload) {
        Ok(_) => true,
        Err(problems) => {
            wrong = problems;
            false
        }
    };
    if !about.iter().copied().any(&mut can_be_asked) {
        return Err(rendered(&wrong, filter));
    }
    let has = |event: &NamedEvent<'_>, path: &_| {
        !matches!(RecordNames::new(event.name, event.payload).find(path), PathMeaning::Missing { .. })
    };
    let names = filter.expression().paths().into_iter();
    let unknown = names.filter(|(path, _)| !about.iter().any(|event| has(event, path))).map(|(path, span)| {
        let fields = about.iter().flat_map(|event| members(event.payload)).map(|member| &member.name[..]);
        filter.expression().unknown_name(span, &nearest(&path.to_string(), fields))
    });
    let unknown: Vec<FilterProblem> = unknown.collect();
    if unknown.is_empty() { Ok(()) } else { Err(rendered(&unknown, filter)) }
}

fn rendered(problems: &[FilterProblem], filter: &KernelFilter) -> String {
    let text: String = problems.iter().map(|problem| problem.render(filter.text())).collect();
    text.trim_end().to_owned()
}

fn about_none(filter: &KernelFilter, events: &[NamedEvent<'_>]) -> String {
    let patterns = filter.events();
    let wanted = patterns.iter().find(|pattern| !pattern.starts_with('!')).or(patterns.first());
    let wanted = wanted.map_or("", String::as_str);
    let names = events.iter().flat_map(|event| [event.name, event.kernel]);
    let near = nearest(wanted, names).into_iter().next();
    let help = near.map_or_else(String::new, |near| format!("\nhelp: there is `{near}`"));
    format!("the filter `{}` is about no event of the kernel that is recorded{help}", filter_words(filter))
}

fn filter_words(filter: &KernelFilter) -> String {
    format!("{} when {}", filter.events().join(","), filter.text().trim())
}
