//! The analyses that there are, for faces that let people name them.
//!
//! ```text
//! READY ── name ──> Analysis ── tables ──> what it can answer with     (no trace needed)
//!                          ── ask ─────> Answer, Report, or why there is none
//! ```

pub(crate) use kymo_session::ReadyAnalysis as Analysis;
use kymo_session::{
    AnalyseFailure, AnalysisKind, AnalysisOptions, Answer, Declaration, PairsProblem, PairsQuestion, PeriodsQuestion,
    Progress, READY, Report, Session, Took, Work, Zone,
};

use crate::Outcome;
use crate::answer::{Manner, show};
use crate::arguments::{
    AnalysisArguments, Command, NamedAnalysisArguments, PairsArguments, PeriodsArguments, SpanArguments,
};
use crate::progress::watched;
use crate::select::understood;
use crate::stop::Stop;

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

/// Why an analysis has no answer for these traces, whatever the options ask; found without reading events.
pub(crate) fn refusal(analysis: &Analysis, session: &Session, options: &AnalysisOptions) -> Option<Refusal> {
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
        Err(failure @ AnalyseFailure::NoRole { .. }) => Err(Refusal::Traces(failure.to_string())),
        Err(failure) => Err(Refusal::Question(failure.to_string())),
    }
}

/// The analysis of this name.
pub(crate) fn find(name: &str) -> Option<&'static Analysis> {
    READY.iter().find(|analysis| analysis.name == name)
}

/// Rows of a table where people read them, if they do not say.
pub(crate) const TOP: usize = 10;

/// Opens traces, asks an analysis and shows its answer: what `kymo cpu TRACE` does.
pub(crate) fn open_and_run(analysis: &Analysis, arguments: &AnalysisArguments) -> Result<Outcome, Stop> {
    let Some(session) = crate::open(&arguments.common, 0) else { return Ok(Outcome::Incomplete) };
    let outcome = run(analysis, &session, arguments);
    // The process ends now: giving everything back bit by bit would take another millisecond.
    std::mem::forget(session);
    outcome
}

/// What the arguments ask of an analysis, and lines that say where that means nothing; `top`: rows if they do not say.
pub(crate) fn asked(
    analysis: &Analysis,
    session: &Session,
    arguments: &AnalysisArguments,
    top: Option<usize>,
) -> Result<(AnalysisOptions, String), Stop> {
    let (span, wanted) = (&arguments.span, &arguments.wanted);
    let misunderstanding = || wanted.misunderstanding(analysis.name, &analysis.kind.understood());
    if let Some(contradiction) = wanted.contradiction().or_else(misunderstanding) {
        return Err(Stop::Usage(contradiction));
    }
    let zone = if span.clock_gmt { Zone::Utc } else { Zone::Local };
    let between = span.between.nanos(session, zone)?;
    let (selection, warnings) = understood(session, &[], wanted.filter.as_deref(), zone)?;
    Ok((wanted.options(selection, between, top), warnings))
}

/// Asks an analysis and shows its answer.
fn run(analysis: &Analysis, session: &Session, arguments: &AnalysisArguments) -> Result<Outcome, Stop> {
    let (span, face) = (&arguments.span, &arguments.face);
    let top = face.is_for_people().then_some(TOP);
    let (options, warnings) = asked(analysis, session, arguments, top)?;
    eprint!("{warnings}");
    let progress = face.rehearse.map_or_else(Progress::default, Progress::rehearsing);
    let work = || ask(analysis, session, &options, &progress);
    let asked = if face.no_progress { work() } else { watched(&progress, work) };
    show_rehearsal(&progress);
    match asked {
        Ok((answer, report)) => {
            let SpanArguments { clock_gmt, clock_seconds, .. } = *span;
            let manner = Manner { face, clock_gmt, clock_seconds, strict: arguments.common.strict };
            show(session, &analysis.kind.tables(), &answer, &report, manner)
        }
        Err(Refusal::Question(message)) => Err(Stop::Usage(message)),
        Err(Refusal::Traces(message)) => {
            eprintln!("error: {message}");
            Ok(Outcome::Incomplete)
        }
    }
}

/// Says what threads would have done, and how long rehearsing it lasted, if that was asked.
fn show_rehearsal(progress: &Progress) {
    let mut told = String::new();
    for Took { work, thread, begin, time } in progress.took() {
        let work = match work {
            Work::Read => "read",
            Work::Merge => "merge",
            Work::Later => "later",
            Work::Leave => "leave",
        };
        told += &format!("{work} {thread} {} {}\n", begin.as_nanos(), time.as_nanos());
    }
    if !told.is_empty() {
        eprintln!("{told}lasted {}", progress.rehearsed().as_nanos());
    }
}

/// The analysis of this name, which there is.
pub(crate) fn known(name: &str) -> &'static Analysis {
    find(name).expect("commands are named as their analyses")
}

/// Runs an analysis by its name, or one that somebody declared in a file.
pub(crate) fn run_named(arguments: &NamedAnalysisArguments) -> Result<Outcome, Stop> {
    open_and_run(&named(&arguments.analysis)?, &arguments.told)
}

/// The analysis of this name, or the one that a file declares.
fn named(name: &str) -> Result<Analysis, Stop> {
    find(name).cloned().map_or_else(|| declared(name), Ok)
}

/// The analysis that a file declares.
fn declared(path: &str) -> Result<Analysis, Stop> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Stop::Usage(format!("`{path}` is no analysis ({}), nor a file that declares one: {error}", names()))
    })?;
    let declaration = Declaration::parse(&text).map_err(|errors| Stop::Usage(format!("{path}: {errors}")))?;
    let description = "What a file declares.";
    Ok(Analysis { name: "own", title: "Own analysis", description, kind: AnalysisKind::Own(declaration) })
}

/// Which analysis a command asks, and what it is told; `None`: the command is no analysis.
pub(crate) fn of_command(command: &Command) -> Option<Result<(Analysis, &AnalysisArguments), Stop>> {
    let (name, told) = match command {
        Command::Cpu(told) => ("cpu", told),
        Command::Syscalls(told) => ("syscalls", told),
        Command::Io(told) => ("io", told),
        Command::Sched(told) => ("sched", told),
        Command::Irq(told) => ("irq", told),
        Command::Block(told) => ("block", told),
        Command::Memory(told) => ("memory", told),
        Command::Threads(told) => ("threads", told),
        Command::Rates(told) => ("rates", told),
        Command::Gaps(told) => ("gaps", told),
        Command::Pairs(arguments) => return Some(pairs(arguments).map(|analysis| (analysis, &arguments.told))),
        Command::Periods(arguments) => return Some(Ok((periods(arguments), &arguments.told))),
        Command::Analyse(arguments) => {
            return Some(named(&arguments.analysis).map(|analysis| (analysis, &arguments.told)));
        }
        _ => return None,
    };
    Some(Ok((known(name).clone(), told)))
}

/// Asks for pairs and shows them.
pub(crate) fn run_pairs(session: &Session, arguments: &PairsArguments) -> Result<Outcome, Stop> {
    run(&pairs(arguments)?, session, &arguments.told)
}

/// Which pairs.
fn pairs(arguments: &PairsArguments) -> Result<Analysis, Stop> {
    let group = arguments.group.as_deref();
    let question = PairsQuestion::parse(&arguments.start, &arguments.stop, &arguments.key, group, arguments.nested);
    let question = question.map_err(|problem| {
        Stop::Usage(match problem {
            PairsProblem::Half => "--start needs --stop, and --stop needs --start".to_owned(),
            PairsProblem::Expression(text, problems) => problems.iter().map(|problem| problem.render(&text)).collect(),
        })
    })?;
    Ok(Analysis { kind: AnalysisKind::Pairs(question), ..known("pairs").clone() })
}

/// Finds periods and sums them up.
pub(crate) fn run_periods(session: &Session, arguments: &PeriodsArguments) -> Result<Outcome, Stop> {
    run(&periods(arguments), session, &arguments.told)
}

/// Which sums of periods.
fn periods(arguments: &PeriodsArguments) -> Analysis {
    let question = PeriodsQuestion {
        aggregate_by: arguments.aggregate_by.clone(),
        select: arguments.select.clone(),
        group_by: arguments.group_by.clone(),
        order: arguments.order_by.into(),
    };
    Analysis { kind: AnalysisKind::Periods(question), ..known("periods").clone() }
}

/// What people may name.
pub(crate) fn names() -> String {
    READY.iter().map(|analysis| analysis.name).collect::<Vec<_>>().join(", ")
}
