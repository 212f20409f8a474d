//! The selected events: patterns for names, and an expression.
//!
//! ```text
//! Selection ── for each data stream class and clock ──> StreamFilter, which is part of how its packets are read
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use kymo_decode::filter::{ClassOutcome, StreamFilter};
use kymo_decode::{ClockConverter, FilterFacts};
use kymo_filter::{Filter, FilterProblem, NamePath, NameStep, Verdict};
use kymo_format::model::EventRecordClass;
use kymo_scan::{DataStream, Trace};
use kymo_schema::glob;

use crate::open::when::When;
use crate::open::zone::Zone;
use crate::open::{Session, trace_name};

/// Which events are wanted; everything by default.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only event record classes with a name that matches one of these patterns, if there are any;
    /// `*` is any text and `?` any character.
    pub events: Vec<String>,
    /// Only events for which this is true.
    pub filter: Option<Filter>,
    /// The zone of times of day in it.
    pub zone: Zone,
}

/// The meaning of an expression for the traces as a whole.
#[derive(Clone, Debug, Default)]
pub struct FilterMeaning {
    /// Event record classes of which some or all events may be kept.
    pub applies: usize,
    /// Classes for which it is never true: they lack the fields that it needs.
    pub never: usize,
    /// Classes for which it cannot be typed.
    pub untyped: Vec<Untyped>,
    /// Names that no class has.
    pub unknown: Vec<UnknownName>,
}

/// An event record class for which an expression cannot be typed.
#[derive(Clone, Debug)]
pub struct Untyped {
    /// Its name.
    pub class: String,
    /// Why.
    pub problems: Vec<FilterProblem>,
}

/// A name in an expression that no event record class has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// Where it stands in the expression, in bytes.
    pub span: Range<usize>,
    /// Names like it that there are, the nearest first.
    pub near: Vec<String>,
}

impl Selection {
    /// Everything is wanted.
    pub(crate) fn is_all(&self) -> bool {
        self.events.is_empty() && self.filter.is_none()
    }

    /// Whether nothing but data streams is chosen: by the environment of their trace, by ids, and by their packets' CPU, as
    /// far as `cpu_id` is that of packets.
    pub(crate) fn is_of_streams(&self) -> bool {
        let is_of_stream = |(path, _): (NamePath, Range<usize>)| {
            let word = |place: usize| match path.steps.get(place) {
                Some(NameStep::Name(name)) => name.as_str(),
                Some(NameStep::Index(_)) | None => "",
            };
            match word(0) {
                "env" | "trace" | "stream" => true,
                "packet" | "ctx" => word(1) == "cpu_id",
                first => first == "cpu_id",
            }
        };
        let paths = self.filter.as_ref().map(Filter::paths).unwrap_or_default();
        self.events.is_empty() && paths.into_iter().all(is_of_stream)
    }

    /// Whether a class has a wanted name.
    pub(crate) fn names(&self, class: &EventRecordClass) -> bool {
        let name = class.name.as_deref().unwrap_or_default();
        self.events.is_empty() || self.events.iter().any(|pattern| glob::matches(pattern, name))
    }
}

impl Session {
    /// For each data stream how its events are chosen; `None` for those of which all are wanted.
    pub(crate) fn filters(&self, selection: &Selection) -> Vec<Option<Arc<StreamFilter>>> {
        self.filters_suggesting(selection, false)
    }

    fn filters_suggesting(&self, selection: &Selection, suggests: bool) -> Vec<Option<Arc<StreamFilter>>> {
        let mut known: Vec<(usize, usize, Option<ClockConverter>, Arc<StreamFilter>)> = Vec::new();
        let mut filters = Vec::new();
        for (number, trace) in self.traces.iter().enumerate() {
            for stream in &trace.streams {
                if selection.is_all() {
                    filters.push(None);
                    continue;
                }
                let is_same = |known: &&(usize, usize, Option<ClockConverter>, _)| {
                    (known.0, known.1, known.2) == (number, stream.class, stream.clock)
                };
                let filter = match known.iter().find(is_same) {
                    Some(known) => Arc::clone(&known.3),
                    None => {
                        let filter = Arc::new(self.stream_filter(trace, stream, selection, suggests));
                        known.push((number, stream.class, stream.clock, Arc::clone(&filter)));
                        filter
                    }
                };
                filters.push(Some(filter));
            }
        }
        filters
    }

    /// How the events of one data stream are chosen.
    fn stream_filter(&self, trace: &Trace, stream: &DataStream, selection: &Selection, suggests: bool) -> StreamFilter {
        let first_ns = self.first_ns().unwrap_or(0);
        let instant = |text: &str| text.parse::<When>().ok()?.nanos(first_ns, selection.zone);
        let trace_name = trace_name(trace.folder.path());
        let facts = FilterFacts { clock: stream.clock, trace_name: &trace_name, suggests, instant: &instant };
        let names = |class: &EventRecordClass| selection.names(class);
        let filter = StreamFilter::new(&trace.decoder, stream.class, selection.filter.as_ref(), &names, &facts);
        filter.expect("every class was lowered when the decoder was made")
    }

    /// The meaning of a selection's expression for the event record classes that it chooses from.
    #[must_use]
    pub fn meaning(&self, selection: &Selection) -> FilterMeaning {
        let meaning = self.meaning_suggesting(selection, false);
        if meaning.unknown.is_empty() { meaning } else { self.meaning_suggesting(selection, true) }
    }

    fn meaning_suggesting(&self, selection: &Selection, suggests: bool) -> FilterMeaning {
        let mut meaning = FilterMeaning::default();
        let mut missing: BTreeMap<(usize, usize), AbsentName> = BTreeMap::new();
        let mut seen: Vec<Arc<StreamFilter>> = Vec::new();
        for ((trace, stream), filter) in self.streams().into_iter().zip(self.filters_suggesting(selection, suggests)) {
            let is_new = |filter: &Arc<StreamFilter>| !seen.iter().any(|seen| Arc::ptr_eq(seen, filter));
            let Some(filter) = filter.filter(is_new) else { continue };
            let events = &trace.class.stream_classes[stream.class].event_classes;
            for (class, outcome) in events.iter().zip(filter.outcomes()) {
                match outcome {
                    ClassOutcome::NotSelected | ClassOutcome::Bound(None) => {}
                    ClassOutcome::Untyped(problems) => {
                        let class = class.name.clone().unwrap_or_else(|| format!("<event {}>", class.id));
                        meaning.untyped.push(Untyped { class, problems: problems.clone() });
                    }
                    ClassOutcome::Bound(Some(binding)) => {
                        for name in binding.missing.iter().filter(|name| !name.is_asked_for) {
                            let known = missing.entry((name.span.start, name.span.end)).or_default();
                            known.classes += 1;
                            known.near.extend(name.near.iter().cloned());
                        }
                        let is_never = binding.verdict() == Verdict::NeverTrue;
                        *(if is_never { &mut meaning.never } else { &mut meaning.applies }) += 1;
                    }
                }
            }
            seen.push(filter);
        }
        // Of a class for which it cannot be typed nobody knows which names it has.
        let classes = meaning.applies + meaning.never + meaning.untyped.len();
        let unknown = missing.into_iter().filter(|(_, name)| name.classes == classes);
        meaning.unknown = unknown.map(|((start, end), name)| name.unknown(start..end)).collect();
        meaning
    }
}

/// A name that some classes lack.
#[derive(Default)]
struct AbsentName {
    /// How many of them.
    classes: usize,
    /// Names like it.
    near: Vec<String>,
}

/// Names that are suggested.
const NEAR_MAX: usize = 3;

impl AbsentName {
    /// No class has it: of what is like it, what most classes have.
    fn unknown(self, span: Range<usize>) -> UnknownName {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for name in self.near {
            match counts.iter_mut().find(|known| known.0 == name) {
                Some(known) => known.1 += 1,
                None => counts.push((name, 1)),
            }
        }
        counts.sort_by_key(|(_, count)| Reverse(*count));
        UnknownName { span, near: counts.into_iter().take(NEAR_MAX).map(|(name, _)| name).collect() }
    }
}
