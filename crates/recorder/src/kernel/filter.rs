//! Filters of the kernel's events: conditions that the kernel asks of its records, and those that the recorder asks of the events it writes.
//!
//! ```text
//! text ── event ──> BoundFilter ──┬── push ──> a condition of tracefs, true wherever the filter may be
//!                                 └── keeps(bytes of the event in the trace)
//! ```
//!
//! The recorder asks all of a filter, also where the kernel asks the same: so a filter means one thing, whatever the kernel took.

mod bytes;
mod names;
mod places;
mod push;

use std::collections::HashMap;

use kymo_filter::{Binding, FieldResolver, FilterProblem, PathMeaning, ProblemKind, Verdict};
use kymo_format::model::FieldClass;
use kymo_ftrace::format::EventFormat;
use kymo_ftrace::{CallTable, EventPlan, PlanNumber, listing, perf_sched};
use kymo_ir::predicate::Predicate;

use bytes::PayloadLayout;
pub(super) use bytes::RecordedRecord;
use names::{RecordNames, RecordSource};
pub(super) use places::AskedOfKernel;
use places::{NamedEvent, asked_of_kernel, check};

use crate::filters::is_of_traces;
use crate::kernel_filter::KernelFilter;

/// The filters of a recording.
#[derive(Debug, Default)]
pub(super) struct EventFilters {
    filters: Vec<KernelFilter>,
    /// By the number of the plan, and by the name and variant of other events: bound when the first of their records comes.
    plans: Vec<Option<BoundFilters>>,
    named: HashMap<(&'static str, u8), BoundFilters>,
}

/// Conditions for the kernel, and where filters run, after a look at all events that are recorded: those of the kernel's
/// descriptions, or those of perf. Probes may have any fields.
///
/// # Errors
///
/// One of the filters is about none of the events, or asks for a name that none of them has; lines for people.
pub(super) fn asked(
    texts: &[String],
    formats: Option<&[EventFormat]>,
    (has_texts, has_probes): (bool, bool),
) -> Result<AskedOfKernel, String> {
    let filters = EventFilters::parse(texts)?;
    let Some(formats) = formats else {
        let classes = perf_sched::classes();
        let named = classes.iter().map(|(kernel, name, payload)| NamedEvent { name, kernel, payload });
        return check(&filters, &named.collect::<Vec<_>>()).map(|()| AskedOfKernel::of_perf());
    };
    let planned = listing::planned(formats, has_texts, tables());
    if !has_probes {
        check(&filters, &planned.iter().map(NamedEvent::from).collect::<Vec<_>>())?;
    }
    Ok(asked_of_kernel(&filters, &planned))
}

/// The numberings of calls that programs here may use.
fn tables() -> &'static [CallTable] {
    if cfg!(target_arch = "x86_64") { &[CallTable::Native, CallTable::Compat] } else { &[CallTable::Native] }
}

/// The filters of one event: all of them have to be true.
#[derive(Clone, Debug)]
pub(super) struct BoundFilters {
    verdict: Verdict,
    parts: Vec<(Predicate, PayloadLayout)>,
}

/// A filter for one event.
#[derive(Debug)]
struct BoundFilter {
    verdict: Verdict,
    predicate: Predicate,
    sources: Vec<RecordSource>,
    /// The first name that the event does not have, in words.
    missing: Option<String>,
}

impl EventFilters {
    /// Filters by their texts.
    pub(super) fn parse(texts: &[String]) -> Result<Self, String> {
        let filters = texts.iter().map(|text| KernelFilter::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self { filters, ..Self::default() })
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// The filters of a plan's event.
    #[inline]
    pub(super) fn of_plan(&mut self, number: PlanNumber, plan: &EventPlan) -> &BoundFilters {
        let at = usize::from(number);
        if self.plans.len() <= at {
            self.plans.resize(at + 1, None);
        }
        let filters = &self.filters;
        self.plans[at].get_or_insert_with(|| BoundFilters::of(filters, (&plan.name, &plan.kernel), &plan.payload))
    }

    /// The filters of an event that is no tracepoint, by its name and variant.
    pub(super) fn of_named(
        &mut self,
        name: (&'static str, u8),
        kernel: &str,
        payload: impl FnOnce() -> FieldClass,
    ) -> &BoundFilters {
        let filters = &self.filters;
        self.named.entry(name).or_insert_with(|| BoundFilters::of(filters, (name.0, kernel), &payload()))
    }
}

impl BoundFilters {
    fn of(filters: &[KernelFilter], (name, kernel): (&str, &str), payload: &FieldClass) -> Self {
        let about = filters.iter().filter(|filter| filter.is_about(name, kernel));
        let bound =
            about.map(|filter| BoundFilter::new(filter, name, payload).unwrap_or_else(|_| BoundFilter::never()));
        let (mut verdict, mut parts) = (Verdict::AlwaysTrue, Vec::new());
        for bound in bound {
            verdict = match (verdict, bound.verdict) {
                (Verdict::NeverTrue, _) | (_, Verdict::NeverTrue) => Verdict::NeverTrue,
                (Verdict::Depends, _) | (_, Verdict::Depends) => Verdict::Depends,
                (Verdict::AlwaysTrue, Verdict::AlwaysTrue) => Verdict::AlwaysTrue,
            };
            if bound.verdict == Verdict::Depends {
                parts.push((bound.predicate, PayloadLayout::new(payload, &bound.sources)));
            }
        }
        Self { verdict, parts }
    }

    /// Its result for all events of the class.
    #[inline]
    pub(super) fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether it keeps an event.
    #[inline]
    pub(super) fn keeps(&self, record: &RecordedRecord<'_>) -> bool {
        match self.verdict {
            Verdict::AlwaysTrue => true,
            Verdict::NeverTrue => false,
            Verdict::Depends => self.parts.iter().all(|(predicate, layout)| predicate.keeps(&layout.of(record))),
        }
    }
}

impl BoundFilter {
    fn new(filter: &KernelFilter, name: &str, payload: &FieldClass) -> Result<Self, Vec<FilterProblem>> {
        let names = RecordNames::new(name, payload);
        let of_traces = filter.expression().paths().into_iter().filter_map(|(path, span)| {
            let PathMeaning::Missing { near } = names.find(&path) else { return None };
            let help = near.first().map(|near| format!("there is `{near}`"));
            is_of_traces(&path).then(|| FilterProblem {
                span,
                kind: ProblemKind::NotWhileRecorded(path.to_string()),
                help,
            })
        });
        let of_traces: Vec<FilterProblem> = of_traces.collect();
        if !of_traces.is_empty() {
            return Err(of_traces);
        }
        let binding = filter.expression().bind(&names)?;
        let verdict = binding.verdict();
        let Binding { predicate, keys, missing, .. } = binding;
        let missing = missing.iter().find(|missing| !missing.is_asked_for).map(|missing| missing.render(filter.text()));
        Ok(Self { verdict, predicate, sources: names.sources(&keys), missing })
    }

    /// A filter that cannot be evaluated on an event is never true of it.
    fn never() -> Self {
        let predicate = Predicate { inputs: Vec::new(), root: kymo_ir::predicate::Test::Constant(Some(false)) };
        Self { verdict: Verdict::NeverTrue, predicate, sources: Vec::new(), missing: None }
    }
}
