//! The analyses that there are, for faces that let people name them.
//!
//! ```text
//! ALL ── name ──> Analysis ── tables ──> what it can answer with     (no trace needed)
//!                          ── ask ─────> Answer, Report, or why there is none
//! ```

use std::io;

use kymo_session::{
    AnalyseFailure, AnalysisKind, AnalysisOptions, Answer, Bounded, Cell, Class, Column, CountOptions, Counts, Filter,
    Plot, Progress, Report, Selection, Session, Table, Zone,
};

use crate::Outcome;
use crate::answer::show;
use crate::arguments::AnalysisArguments;
use crate::progress::watched;
use crate::select::selection;
use crate::when::{refuse, span as between};

/// An analysis.
pub(crate) struct Analysis {
    /// What people type.
    pub(crate) name: &'static str,
    /// What it is, in a few words.
    pub(crate) title: &'static str,
    /// What it is, in a sentence.
    pub(crate) description: &'static str,
    /// The tables that it can answer with, without rows.
    pub(crate) tables: fn() -> Answer,
    /// Its answer.
    pub(crate) ask: fn(&Session, &AnalysisOptions, &Progress) -> Asked,
}

/// What comes of a question: the answer and what it lacks.
pub(crate) type Asked = Result<(Answer, Report), Refusal>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The question is wrong.
    Question(String),
    /// These traces cannot answer it.
    Traces(String),
}

/// All of them, in the order in which people should see them.
pub(crate) const ALL: &[Analysis] = &[
    Analysis {
        name: "cpu",
        title: "Busy CPUs",
        description: "How long CPUs were busy, and with which threads.",
        tables: || AnalysisKind::Cpu.tables(),
        ask: |session, options, progress| ask(AnalysisKind::Cpu, session, options, progress),
    },
    Analysis {
        name: "syscalls",
        title: "System calls",
        description: "Which calls into the kernel were made, how long they took, and what came of them.",
        tables: || AnalysisKind::Syscalls.tables(),
        ask: |session, options, progress| ask(AnalysisKind::Syscalls, session, options, progress),
    },
    Analysis {
        name: "block",
        title: "Block devices",
        description: "What block devices were asked for, and how long they took.",
        tables: || AnalysisKind::Block.tables(),
        ask: |session, options, progress| ask(AnalysisKind::Block, session, options, progress),
    },
    Analysis {
        name: "pairs",
        title: "What begins and ends",
        description: "How long lasts what begins with one event and ends with another.",
        tables: || AnalysisKind::Pairs.tables(),
        ask: |session, options, progress| ask(AnalysisKind::Pairs, session, options, progress),
    },
    Analysis {
        name: "rates",
        title: "Events over time",
        description: "How many events of each class there are in each period.",
        tables: || AnalysisKind::Rates.tables(),
        ask: |session, options, progress| ask(AnalysisKind::Rates, session, options, progress),
    },
    Analysis {
        name: "gaps",
        title: "Silence",
        description: "The longest times without an event.",
        tables: || AnalysisKind::Gaps.tables(),
        ask: |session, options, progress| ask(AnalysisKind::Gaps, session, options, progress),
    },
    Analysis {
        name: "count",
        title: "Events by class",
        description: "How often events of each class occur.",
        tables: || Answer { tables: vec![count_table()] },
        ask: count,
    },
];

fn ask(kind: AnalysisKind, session: &Session, options: &AnalysisOptions, progress: &Progress) -> Asked {
    match session.ask(kind, options, progress) {
        Ok(analysed) => Ok((analysed.answer, analysed.report)),
        Err(failure @ AnalyseFailure::NoRole { .. }) => Err(Refusal::Traces(failure.to_string())),
        Err(failure) => Err(Refusal::Question(failure.to_string())),
    }
}

impl Analysis {
    /// Why it has no answer for these traces, whatever the options ask; found without reading events.
    pub(crate) fn refusal(&self, session: &Session, options: &AnalysisOptions) -> Option<Refusal> {
        // No event is that late.
        let nothing = AnalysisOptions { begin_ns: Some(i64::MAX), end_ns: Some(i64::MAX), ..options.clone() };
        (self.ask)(session, &nothing, &Progress::default()).err()
    }
}

/// The analysis of this name.
pub(crate) fn find(name: &str) -> Option<&'static Analysis> {
    ALL.iter().find(|analysis| analysis.name == name)
}

/// Rows of a table where people read them, if they do not say.
const TOP: usize = 10;

/// Asks an analysis and shows its answer: what `kymo cpu TRACE` does.
pub(crate) fn run(analysis: &Analysis, session: &Session, arguments: &AnalysisArguments) -> io::Result<Outcome> {
    let (span, wanted, face) = (&arguments.span, &arguments.wanted, &arguments.face);
    if let Some(contradiction) = wanted.contradiction() {
        refuse(contradiction);
    }
    let zone = if span.clock_gmt { Zone::Utc } else { Zone::Local };
    let (begin, end) = match &span.timerange {
        Some(range) => (Some(&range.begin), Some(&range.end)),
        None => (span.begin.as_ref(), span.end.as_ref()),
    };
    let between = between(session, begin, end, zone);
    let selection = selection(session, &[], wanted.filter.as_deref(), zone);
    let top = if face.csv || face.json || face.lami { None } else { Some(TOP) };
    let options = wanted.options(selection, between, top);
    let progress = Progress::default();
    let work = || (analysis.ask)(session, &options, &progress);
    let asked = if face.no_progress { work() } else { watched(&progress, work) };
    match asked {
        Ok((answer, report)) => show(session, analysis, &answer, &report, arguments),
        Err(Refusal::Question(message)) => refuse(&message),
        Err(Refusal::Traces(message)) => {
            eprintln!("error: {message}");
            Ok(Outcome::Incomplete)
        }
    }
}

/// What people may name.
pub(crate) fn names() -> String {
    ALL.iter().map(|analysis| analysis.name).collect::<Vec<_>>().join(", ")
}

fn count_table() -> Table {
    let columns = vec![
        Column::new("name", "Event", Class::Text),
        Column::of("count", "Count", "events"),
        Column::new("share", "Share", Class::Ratio),
        Column::of("rate", "Rate", "events/s"),
    ];
    Table { plot: Some(Plot::Bars { value: 1 }), ..Table::new("per-class", "Events by class", columns) }
}

fn count(session: &Session, options: &AnalysisOptions, progress: &Progress) -> Asked {
    let is_asked = [
        ("--by", !options.by.is_empty()),
        ("--tid", !options.tids.is_empty()),
        ("--procname", !options.comms.is_empty()),
        ("--period", options.period_ns.is_some()),
    ];
    if let Some((option, _)) = is_asked.into_iter().find(|(_, is_asked)| *is_asked) {
        return Err(Refusal::Question(format!("`count` has no {option}; --filter may say it")));
    }
    let selection = within(options)?;
    let counts = session.count(&CountOptions { selection, sizes: false }, progress);
    let mut table = count_table();
    let asked = |span: (i64, i64)| (options.begin_ns.unwrap_or(span.0), options.end_ns.unwrap_or(span.1));
    table.span_ns = counts.span_ns.map(asked);
    let classes = by_name(&counts);
    let shown = options.top.unwrap_or(classes.len()).min(classes.len());
    table.omitted = (classes.len() - shown) as u64;
    let length = table.span_ns.map(|(begin, end)| i128::from(end) - i128::from(begin)).filter(|length| *length > 0);
    let row = |(name, events): (String, u64)| {
        let rate = length.map_or(Cell::Unknown, |length| Cell::Number(events as f64 * 1e9 / length as f64));
        let share = events as f64 / counts.total.max(1) as f64;
        vec![Cell::Text(name), Cell::Count(Bounded::exact(events)), Cell::Ratio(Bounded::exact(share)), rate]
    };
    table.rows = classes.into_iter().take(shown).map(row).collect();
    Ok((Answer { tables: vec![table] }, counts.report))
}

/// The most frequent first.
fn by_name(counts: &Counts) -> Vec<(String, u64)> {
    let mut names = std::collections::BTreeMap::<String, u64>::new();
    for class in &counts.classes {
        let name = class.name.clone().unwrap_or_else(|| format!("<event {}>", class.id));
        *names.entry(name).or_default() += class.events;
    }
    let mut names: Vec<(String, u64)> = names.into_iter().collect();
    names.sort_by_key(|(_, events)| std::cmp::Reverse(*events));
    names
}

/// The selection, with span and CPUs as parts of its expression: packets beyond them are not read.
fn within(options: &AnalysisOptions) -> Result<Selection, Refusal> {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(options.begin_ns.map(|begin| format!("$time >= {begin}")));
    parts.extend(options.end_ns.map(|end| format!("$time <= {end}")));
    if !options.cpus.is_empty() {
        let cpus: Vec<String> = options.cpus.iter().map(u32::to_string).collect();
        parts.push(format!("$packet.cpu_id in ({})", cpus.join(", ")));
    }
    parts.extend(options.selection.filter.as_ref().map(|filter| format!("({})", filter.text())));
    let mut selection = options.selection.clone();
    if !parts.is_empty() {
        let text = parts.join(" && ");
        let problems = |problems: Vec<kymo_session::FilterProblem>| {
            Refusal::Question(problems.iter().map(|problem| problem.render(&text)).collect())
        };
        selection.filter = Some(Filter::parse(&text).map_err(problems)?);
    }
    Ok(selection)
}
