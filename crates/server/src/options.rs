//! The options of an analysis, as JSON: plain numbers, nanoseconds and bytes. They mean the same as
//! the options of the command.
//!
//! ```text
//! {"kind": "cpu", "options": {"by": ["process"], "top": 20, "filter": "prio < 100"}} ──> AnalysisKind, AnalysisOptions
//! ```

use std::path::Path;

use kymo_session::{
    AnalysisDeclaration, AnalysisEntry, AnalysisKind, AnalysisOptions, BINS, Definitions, Order, PairsProblem,
    PairsQuestion, PeriodsQuestion, Session, Unsupported, Wishes, analyses, find_analysis,
};
use serde::{Deserialize, Serialize};

use crate::body::{object, perhaps_object};
use crate::refusal::RequestRefusal;
use crate::selection::selection;

/// An analysis to be run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asks {
    /// The analysis, by its name; `own`: the analysis in `declaration`.
    pub(crate) kind: String,
    #[serde(default, deserialize_with = "object")]
    pub(crate) options: Options,
}

/// The options of the analysis.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Options {
    begin_ns: Option<i64>,
    end_ns: Option<i64>,
    filter: Option<String>,
    by: Vec<String>,
    top: Option<usize>,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    min_bytes: Option<u64>,
    max_bytes: Option<u64>,
    cpus: Vec<u32>,
    tids: Vec<i64>,
    comms: Vec<String>,
    irqs: Vec<i64>,
    softirqs: Vec<i64>,
    names: Vec<String>,
    period_ns: Option<u64>,
    periods: Vec<String>,
    period_captures: Vec<String>,
    bins: Option<usize>,
    uniform_bins: bool,
    series: bool,
    #[serde(deserialize_with = "perhaps_object")]
    pairs: Option<Pairs>,
    #[serde(deserialize_with = "perhaps_object")]
    sums: Option<Sums>,
    declaration: Option<String>,
}

/// Which events are pairs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Pairs {
    start: Vec<String>,
    stop: Vec<String>,
    keys: Vec<String>,
    group: Option<String>,
    nested: bool,
}

/// How periods are summed up.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
struct Sums {
    aggregate_by: Option<String>,
    select: Vec<String>,
    group_by: Vec<String>,
    order: OrderName,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum OrderName {
    #[default]
    Duration,
    Time,
    Hierarchy,
}

/// The analysis of operations, whose events are named as those of pairs.
const BREAKDOWN: &str = "breakdown";
/// More bins than a user looks at.
const BINS_MAX: usize = 100_000;

impl Asks {
    /// As the session understands it.
    pub(crate) fn question(
        &self,
        session: &Session,
        roles: Option<&Path>,
    ) -> Result<(AnalysisKind, AnalysisOptions), RequestRefusal> {
        let entry = self.entry()?;
        let options = &self.options;
        options.check(&entry)?;
        let periods = match &options.periods[..] {
            [] => None,
            texts => Some(
                Definitions::parse(texts, &options.period_captures)
                    .map_err(|problem| RequestRefusal::parameter("periods", problem))?,
            ),
        };
        let selection = selection(session, Vec::new(), options.filter.as_deref())?;
        let asked = AnalysisOptions {
            selection,
            begin_ns: options.begin_ns,
            end_ns: options.end_ns,
            wishes: options.wishes(),
            periods,
            roles: roles.map(Path::to_owned),
        };
        Ok((entry.kind, asked))
    }

    /// The analysis, with its own options.
    fn entry(&self) -> Result<AnalysisEntry, RequestRefusal> {
        let (name, options) = (self.kind.as_str(), &self.options);
        let only = |member: &str, is_there: bool, of: &str| match is_there && name != of {
            true => Err(RequestRefusal::parameter(member, format!("`{member}` says something to `{of}` alone"))),
            false => Ok(()),
        };
        if name != BREAKDOWN {
            only("pairs", options.pairs.is_some(), "pairs")?;
        }
        only("sums", options.sums.is_some(), "periods")?;
        only("declaration", options.declaration.is_some(), "own")?;
        if name == "own" {
            let missing = || RequestRefusal::parameter("declaration", "`own` requires `declaration`, which is missing");
            let text = options.declaration.as_ref().ok_or_else(missing)?;
            let declared = AnalysisDeclaration::parse(text);
            let refused = |errors: kymo_session::MappingErrors| RequestRefusal::parameter("declaration", errors);
            return Ok(AnalysisEntry::declared(declared.map_err(refused)?));
        }
        let names = || analyses().iter().map(|entry| &*entry.name).collect::<Vec<_>>().join(", ");
        let absent =
            || RequestRefusal::parameter("kind", format!("there is no analysis `{name}`; there are: {}, own", names()));
        let mut entry = find_analysis(name).ok_or_else(absent)?.clone();
        match (&options.pairs, &options.sums) {
            (Some(operations), _) if name == BREAKDOWN => entry.kind = AnalysisKind::Own(operations.operations()?),
            (Some(pairs), _) => entry.kind = AnalysisKind::Pairs(pairs.question()?),
            (_, Some(sums)) => entry.kind = AnalysisKind::Periods(sums.question()),
            (None, None) => {}
        }
        Ok(entry)
    }
}

impl Pairs {
    fn question(&self) -> Result<PairsQuestion, RequestRefusal> {
        let parsed = PairsQuestion::parse(&self.start, &self.stop, &self.keys, self.group.as_deref(), self.nested);
        parsed.map_err(|problem| Self::refusal(problem, "`start` needs `stop`, and `stop` needs `start`"))
    }

    /// The same events as begins and ends of operations with steps.
    fn operations(&self) -> Result<AnalysisDeclaration, RequestRefusal> {
        const NEEDED: &str = "`breakdown` needs `start`, `stop` and `keys`, and has neither `group` nor `nested`";
        if self.group.is_some() || self.nested {
            return Err(RequestRefusal::parameter("pairs", NEEDED));
        }
        let parsed = AnalysisDeclaration::of_operations(&self.start, &[], &self.stop, &self.keys);
        parsed.map_err(|problem| Self::refusal(problem, NEEDED))
    }

    fn refusal(problem: PairsProblem, half: &str) -> RequestRefusal {
        match problem {
            PairsProblem::Half => RequestRefusal::parameter("pairs", half),
            PairsProblem::Expression(text, problems) => {
                let lines: String = problems.iter().map(|problem| problem.render(&text)).collect();
                RequestRefusal::parameter("pairs", lines.trim_end())
            }
        }
    }
}

impl Sums {
    fn question(&self) -> PeriodsQuestion {
        let order = match self.order {
            OrderName::Duration => Order::Duration,
            OrderName::Time => Order::Time,
            OrderName::Hierarchy => Order::Hierarchy,
        };
        let Self { aggregate_by, select, group_by, .. } = self.clone();
        PeriodsQuestion { aggregate_by, select, group_by, order }
    }
}

impl Options {
    fn wishes(&self) -> Wishes {
        let Self { by, cpus, tids, irqs, softirqs, comms, names, .. } = self.clone();
        Wishes {
            by,
            top: self.top,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            min_bytes: self.min_bytes,
            max_bytes: self.max_bytes,
            cpus,
            tids,
            irqs,
            softirqs,
            comms,
            names,
            period_ns: self.period_ns,
            bins: self.bins.unwrap_or(BINS),
            uniform_bins: self.uniform_bins || self.series,
            series: self.series,
        }
    }

    /// Refuses impossible values, and options that the analysis would not look at.
    fn check(&self, entry: &AnalysisEntry) -> Result<(), RequestRefusal> {
        let is_more = |min: Option<u64>, max: Option<u64>| min.zip(max).is_some_and(|(min, max)| min > max);
        let is_turned = self.begin_ns.zip(self.end_ns).is_some_and(|(begin, end)| begin > end);
        let wrong = [
            ("end_ns", is_turned, "`end_ns` is before `begin_ns`"),
            ("max_ns", is_more(self.min_ns, self.max_ns), "`max_ns` is less than `min_ns`"),
            ("max_bytes", is_more(self.min_bytes, self.max_bytes), "`max_bytes` is less than `min_bytes`"),
            ("period_ns", self.period_ns == Some(0), "a period lasts at least a nanosecond"),
            ("periods", self.period_ns.is_some() && !self.periods.is_empty(), "`period_ns` stands without `periods`"),
            ("period_captures", self.periods.is_empty() && !self.period_captures.is_empty(), "it tells of `periods`"),
            ("bins", self.bins.is_some_and(|bins| !(1..=BINS_MAX).contains(&bins)), "`bins` is from 1 to 100000"),
            ("top", self.top == Some(0), "`top` is at least 1; without it, all rows are given"),
        ];
        if let Some((member, _, message)) = wrong.into_iter().find(|wrong| wrong.1) {
            return Err(RequestRefusal::parameter(member, message));
        }
        self.check_supported(entry)
    }

    /// Refuses options that the analysis would not look at.
    fn check_supported(&self, entry: &AnalysisEntry) -> Result<(), RequestRefusal> {
        let AnalysisEntry { name, options, .. } = entry;
        let wishes = self.wishes();
        let member = match options.unsupported(&wishes) {
            None => return Ok(()),
            Some(Unsupported::By(_)) if options.by.is_empty() => {
                return Err(RequestRefusal::parameter("by", format!("`{name}` tells nothing apart")));
            }
            Some(Unsupported::By(word)) => {
                let message = format!("`{name}` does not tell `{word}` apart; it knows {}", options.by.join(", "));
                return Err(RequestRefusal::parameter("by", message));
            }
            Some(Unsupported::Min) => "min_ns",
            Some(Unsupported::Max) => "max_ns",
            Some(Unsupported::MinSize) => "min_bytes",
            Some(Unsupported::MaxSize) => "max_bytes",
            Some(Unsupported::Cpus) => "cpus",
            Some(Unsupported::Tids) => "tids",
            Some(Unsupported::Comms) => "comms",
            Some(Unsupported::Irqs) => "irqs",
            Some(Unsupported::Softirqs) => "softirqs",
            Some(Unsupported::Names) => "names",
        };
        Err(RequestRefusal::parameter(member, format!("`{name}` has nothing that `{member}` could choose")))
    }
}
