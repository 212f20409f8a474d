//! The analyses that there are, for faces that let people name them.
//!
//! ```text
//! registry ── name ──> Analysis ── tables ──> what it can answer with     (no trace needed)
//!                             ── ask ─────> Answer, Report, or why there is none
//! ```

pub(crate) use kymo_session::AnalysisEntry as Analysis;
pub(crate) use kymo_session::find_analysis as find;
use kymo_session::{
    AnalyseFailure, AnalysisDeclaration, AnalysisKind, AnalysisOptions, Answer, PairsProblem, PairsQuestion,
    PeriodsQuestion, Progress, Report, Session, Took, Wishes, WorkKind, Zone,
};

use crate::CommandOutcome;
use crate::answer::words::duration_word;
use crate::answer::{AnswerView, InstantFormat, Manner, show};
use crate::arguments::{
    AnalysisArguments, BreakdownArguments, Command, PairsArguments, PeriodsArguments, SpanArguments,
};
use crate::progress::watched;
use crate::select::understood;
use crate::show::bytes;
use crate::stop::StopReason;

/// The result of a question: the answer and the report of its gaps.
pub(crate) type Asked = Result<(Answer, Report), AnalysisRefusal>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnalysisRefusal {
    /// The question is wrong.
    Question(String),
    /// These traces cannot answer it.
    Traces(String),
}

/// Why an analysis has no answer for these traces, with any options; found without reading events.
pub(crate) fn refusal(analysis: &Analysis, session: &Session, options: &AnalysisOptions) -> Option<AnalysisRefusal> {
    // No event is that late; so none begins a period, without which other analyses answer nothing.
    let (begin_ns, end_ns) = (Some(i64::MAX), Some(i64::MAX));
    let periods = options.periods.clone().filter(|_| matches!(analysis.kind, AnalysisKind::Periods(_)));
    let nothing = AnalysisOptions { begin_ns, end_ns, periods, ..options.clone() };
    ask(analysis, session, &nothing, &Progress::default()).err()
}

/// The answer of an analysis.
pub(crate) fn ask(analysis: &Analysis, session: &Session, options: &AnalysisOptions, progress: &Progress) -> Asked {
    match session.ask(&analysis.kind, options, progress) {
        Ok(analysed) => Ok((analysed.answer, analysed.report)),
        Err(failure @ (AnalyseFailure::NoRole { .. } | AnalyseFailure::NoName(_))) => {
            Err(AnalysisRefusal::Traces(failure.to_string()))
        }
        Err(failure) => Err(AnalysisRefusal::Question(failure.to_string())),
    }
}

/// Rows of a table for people, unless the arguments give a number.
pub(crate) const TOP: usize = 10;

/// Opens traces, asks an analysis and shows its answer, as `kymo cpu TRACE` does.
fn open_and_run(analysis: &Analysis, arguments: &AnalysisArguments) -> Result<CommandOutcome, StopReason> {
    let Some(session) = crate::open(&arguments.common, 0) else { return Ok(CommandOutcome::Incomplete) };
    let outcome = run(analysis, &session, arguments);
    // The process ends now: giving everything back bit by bit would take another millisecond.
    std::mem::forget(session);
    outcome
}

/// The options that the arguments give an analysis, and lines that say where an argument means
/// nothing; `top`: rows if the arguments do not say.
pub(crate) fn asked(
    analysis: &Analysis,
    session: &Session,
    arguments: &AnalysisArguments,
    top: Option<usize>,
) -> Result<(AnalysisOptions, String), StopReason> {
    let (span, wanted) = (&arguments.span, &arguments.wanted);
    let misunderstanding = || wanted.misunderstanding(&analysis.name, &analysis.options);
    if let Some(contradiction) = wanted.contradiction().or_else(misunderstanding) {
        return Err(StopReason::Usage(contradiction));
    }
    let zone = if span.clock_gmt { Zone::Utc } else { Zone::Local };
    let between = span.between.nanos(session, zone)?;
    let times = InstantFormat::new(session.times_are_unix(), zone, span.clock_seconds);
    within_trace(session, between, &times)?;
    let (selection, mut warnings) = understood(session, &[], wanted.filter.as_deref(), zone)?;
    for sentence in session.unmatched_events(&analysis.kind) {
        warnings += &format!("warning: {sentence}\n");
    }
    warnings += without_clock(session);
    Ok((wanted.options(selection, between, top), warnings))
}

/// Stops where the requested time has nothing of the trace: a time was mistyped, or is in another zone.
fn within_trace(
    session: &Session,
    (begin_ns, end_ns): (Option<i64>, Option<i64>),
    times: &InstantFormat,
) -> Result<(), StopReason> {
    let Some((first_ns, last_ns)) = session.event_span() else { return Ok(()) };
    let wrong = match (begin_ns, end_ns) {
        (Some(begin), _) if begin > last_ns => "--begin is after the end of the trace",
        (_, Some(end)) if end < first_ns => "--end is before the begin of the trace",
        _ => return Ok(()),
    };
    let times = times.within(None);
    let (first, last) = (times.zoned(first_ns), times.zoned(last_ns));
    Err(StopReason::Usage(format!("{wrong}, which is from {first} to {last}")))
}

/// A line about data streams whose events have no times.
fn without_clock(session: &Session) -> &'static str {
    match session.streams_without_clock() {
        (0, _) => "",
        (without, all) if without == all => {
            "warning: these traces have no clock: all times are unknown, and durations mean nothing\n"
        }
        _ => "warning: some data streams have no clock: the times of their events are unknown\n",
    }
}

/// Asks an analysis and shows its answer.
fn run(analysis: &Analysis, session: &Session, arguments: &AnalysisArguments) -> Result<CommandOutcome, StopReason> {
    let (span, face) = (&arguments.span, &arguments.face);
    let top = face.is_for_people().then_some(TOP);
    let (options, warnings) = asked(analysis, session, arguments, top)?;
    message_text!("{warnings}");
    let progress = face.rehearse.map_or_else(Progress::default, Progress::rehearsing);
    let work = || ask(analysis, session, &options, &progress);
    let asked = if face.no_progress { work() } else { watched(&progress, work) };
    show_rehearsal(&progress);
    match asked {
        Ok((answer, report)) => {
            let SpanArguments { clock_gmt, clock_seconds, .. } = *span;
            let manner = Manner { face, clock_gmt, clock_seconds, strict: arguments.common.strict };
            let view = AnswerView {
                headline: analysis.headline(&answer, is_lossy(&report)),
                nothing: nothing(analysis),
                limits: limits(&options.wishes),
                // Words that select tables select them all.
                main_tables: if options.wishes.by.is_empty() { analysis.main_tables } else { &[] },
                rows: options.wishes.top,
                top: arguments.wanted.top.and_then(|top| top.0),
            };
            show(session, &analysis.kind.tables(), &answer, &report, &view, manner)
        }
        Err(AnalysisRefusal::Question(message)) => Err(StopReason::Usage(message)),
        Err(AnalysisRefusal::Traces(message)) => {
            let hint = if analysis.name == "breakdown" { "; --start, --stop and --key name other events" } else { "" };
            Err(StopReason::unanswerable(&format!("{message}{hint}")))
        }
    }
}

/// The limits of durations and sizes that the answer keeps to, before a sentence.
fn limits(wishes: &Wishes) -> String {
    let limits = [
        wishes.min_ns.map(|ns| format!("--min {}", duration_word(ns as f64))),
        wishes.max_ns.map(|ns| format!("--max {}", duration_word(ns as f64))),
        wishes.min_bytes.map(|size| format!("--min-size {}", bytes(size))),
        wishes.max_bytes.map(|size| format!("--max-size {}", bytes(size))),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if limits.is_empty() { String::new() } else { format!("Within {}: ", limits.join(" and ")) }
}

/// Whether events may be missing in an answer.
pub(crate) fn is_lossy(report: &Report) -> bool {
    report.has_losses() || !report.is_complete() || !report.thinned.is_empty()
}

/// What was looked for where nothing was found, in sentences.
fn nothing(analysis: &Analysis) -> String {
    match analysis.kind.looked_for() {
        Some(events) => format!(
            "Nothing was found. Looked for: {events}, within the chosen time and options. `kymo roles` shows which events \
             have roles, and `kymo count` which events there are."
        ),
        None => "Nothing was found. Looked for: all events within the chosen time and options.".to_owned(),
    }
}

/// Shows the rehearsed behavior of threads, and the duration of the rehearsal, if requested.
fn show_rehearsal(progress: &Progress) {
    let mut told = String::new();
    for Took { work, thread, begin, time } in progress.took() {
        let work = match work {
            WorkKind::Read => "read",
            WorkKind::Merge => "merge",
            WorkKind::Later => "later",
            WorkKind::Leave => "leave",
        };
        told += &format!("{work} {thread} {} {}\n", begin.as_nanos(), time.as_nanos());
    }
    if !told.is_empty() {
        message!("{told}lasted {}", progress.rehearsed().as_nanos());
    }
}

/// Runs a command that is an analysis.
pub(crate) fn run_command(command: &Command) -> Result<CommandOutcome, StopReason> {
    match of_command(command) {
        Some(asked) => asked.and_then(|(analysis, told)| open_and_run(&analysis, told)),
        None => Err(StopReason::Usage(format!("this command is no analysis; there are: {}", names()))),
    }
}

/// The analysis of this name, or the one that a file declares.
fn named(name: &str) -> Result<Analysis, StopReason> {
    find(name).cloned().map_or_else(|| declared(name), Ok)
}

/// The analysis that a file declares.
fn declared(path: &str) -> Result<Analysis, StopReason> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        StopReason::Usage(format!("`{path}` is no analysis ({}), nor a file that declares one: {error}", names()))
    })?;
    let declaration =
        AnalysisDeclaration::parse(&text).map_err(|errors| StopReason::Usage(format!("{path}: {errors}")))?;
    Ok(Analysis::declared(declaration))
}

/// The analysis that a command asks, and its arguments; `None`: the command is no analysis.
pub(crate) fn of_command(command: &Command) -> Option<Result<(Analysis, &AnalysisArguments), StopReason>> {
    match command {
        Command::Analysis(entry, told) => Some(Ok(((*entry).clone(), told))),
        Command::Pairs(arguments) => Some(pairs(arguments).map(|analysis| (analysis, &arguments.told))),
        Command::Breakdown(arguments) => Some(breakdown(arguments).map(|analysis| (analysis, &arguments.told))),
        Command::Periods(arguments) => Some(Ok((periods(arguments), &arguments.told))),
        Command::Analyse(arguments) => Some(named(&arguments.analysis).map(|analysis| (analysis, &arguments.told))),
        _ => None,
    }
}

/// Which pairs.
fn pairs(arguments: &PairsArguments) -> Result<Analysis, StopReason> {
    let group = arguments.group.as_deref();
    let question = PairsQuestion::parse(&arguments.start, &arguments.stop, &arguments.key, group, arguments.nested);
    Ok(known("pairs", AnalysisKind::Pairs(question.map_err(refused_pairs)?)))
}

/// Which operations: those that the registry knows, if the arguments name none.
fn breakdown(arguments: &BreakdownArguments) -> Result<Analysis, StopReason> {
    let BreakdownArguments { start, stop, key, step, .. } = arguments;
    let declaration = match start.is_empty() {
        true => AnalysisDeclaration::breakdown(),
        false => AnalysisDeclaration::of_operations(start, step, stop, key).map_err(refused_pairs)?,
    };
    Ok(known("breakdown", AnalysisKind::Own(declaration)))
}

/// Why events and keys cannot be understood.
fn refused_pairs(problem: PairsProblem) -> StopReason {
    StopReason::Usage(match problem {
        PairsProblem::Half => "--start needs --stop, and --stop needs --start".to_owned(),
        PairsProblem::Expression(text, problems) => problems.iter().map(|problem| problem.render(&text)).collect(),
    })
}

/// Which sums of periods.
fn periods(arguments: &PeriodsArguments) -> Analysis {
    let question = PeriodsQuestion {
        aggregate_by: arguments.aggregate_by.clone(),
        select: arguments.select.clone(),
        group_by: arguments.group_by.clone(),
        order: arguments.order_by.into(),
    };
    known("periods", AnalysisKind::Periods(question))
}

/// The analysis of a command that has arguments of its own.
fn known(name: &str, kind: AnalysisKind) -> Analysis {
    let mut analysis = find(name).expect("the registry has the analyses that are commands").clone();
    analysis.kind = kind;
    analysis
}

/// The names that people may use.
pub(crate) fn names() -> String {
    kymo_session::analyses().iter().map(|analysis| &*analysis.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_named() {
        assert_eq!(limits(&Wishes::default()), "");
        let wishes = Wishes { min_ns: Some(30_000), max_bytes: Some(4096), ..Wishes::default() };
        assert_eq!(limits(&wishes), "Within --min 30.0 us and --max-size 4.0 KiB: ");
    }
}
