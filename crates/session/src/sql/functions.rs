//! Analyses as functions that are tables: `cpu()`, `cpu('per-thread')`, `pairs('start=sched_waking', 'stop=sched_switch')`.
//!
//! An argument without `=` names one of the tables that the analysis answers with; the others are its options, named as on the
//! command line: `min=1ms`, `by=process`, `begin=12:18:50`.

use kymo_analysis::declared::AnalysisDeclaration;
use kymo_analysis::pairs::{PairsProblem, PairsQuestion};
use kymo_analysis::periods::Definitions;
use kymo_analysis::{AnalysisEntry, AnalysisKind, Answer, SupportedOptions, Unsupported, Wishes, analyses};
use kymo_filter::{Dimension, Filter, quantity};
use kymo_sql::{Argument, TableError, WrongArgument};
use kymo_table::RecordBatch;

use super::shared::TableContext;
use super::states::thread_states;
use crate::answers::analyse::{AnalyseFailure, Analysed};
use crate::answers::analysis_options::AnalysisOptions;
use crate::answers::answer_columns::answer_columns;
use crate::open::when::When;
use crate::open::zone::Zone;

/// A function that is a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableFunction {
    /// Its name.
    pub(super) name: &'static str,
    /// Its description, in a sentence.
    pub(super) description: &'static str,
}

/// All of them: analyses, two that are about states, and those that are events.
pub(super) fn table_functions() -> impl Iterator<Item = TableFunction> {
    let of_entry =
        |entry: &'static AnalysisEntry| TableFunction { name: &entry.sql_name, description: &entry.sentence };
    analyses().iter().map(of_entry).chain(OTHERS.iter().copied())
}

const OTHERS: [TableFunction; 4] = [
    TableFunction { name: "map", description: "The entries of a map of eBPF programs, at the end" },
    TableFunction {
        name: "watch",
        description: "Counts of the kernel: of each interval, or `total`, `bucket`, `interval`, `end`",
    },
    TableFunction { name: "state_at", description: "What CPUs and threads do at an instant" },
    TableFunction { name: "thread_states", description: "What each thread did, from when to when" },
];

/// Arguments of a function.
#[derive(Default)]
struct CallArguments {
    /// The table that is wanted.
    table: Option<String>,
    options: AnalysisOptions,
    start: Vec<String>,
    stop: Vec<String>,
    keys: Vec<String>,
    group: Option<String>,
    is_nested: bool,
    periods: Vec<String>,
}

/// The rows of a function.
pub(super) fn call(shared: &TableContext, name: &str, arguments: &[Argument]) -> Result<RecordBatch, TableError> {
    let mut told = CallArguments::default();
    let is_instant = name == "state_at";
    let (instant, rest) = if is_instant { arguments.split_at(arguments.len().min(1)) } else { arguments.split_at(0) };
    for argument in rest {
        told.take(shared, name, argument).map_err(wrong)?;
    }
    let (session, watch) = (&shared.session, shared.watch());
    let progress = watch.progress();
    if is_instant {
        let needs_time = || wrong("state_at() needs a time: state_at('12:18:50.43')".into());
        let at = time(shared, instant.first().ok_or_else(needs_time)?).map_err(wrong)?;
        let roles = told.options.roles;
        let options = AnalysisOptions { roles, ..AnalysisOptions::default() };
        let found = session.state_at(at, None, &options, progress).map_err(refused)?;
        return rows(shared, found, told.table.as_deref());
    }
    if name == "thread_states" {
        let (rows, report) = thread_states(session, &told.options, progress)?;
        watch.add(&report);
        return Ok(rows);
    }
    let kind = kind(name, &told).map_err(wrong)?;
    let found = session.ask(&kind, &told.options, progress).map_err(refused)?;
    rows(shared, found, told.table.as_deref())
}

/// The query is at fault, and not the trace.
#[expect(clippy::needless_pass_by_value, reason = "what `map_err` asks")]
fn wrong(error: TableError) -> TableError {
    WrongArgument(error.to_string()).into()
}

fn refused(failure: AnalyseFailure) -> TableError {
    match failure {
        AnalyseFailure::File { .. }
        | AnalyseFailure::Mapping { .. }
        | AnalyseFailure::Periods(_)
        | AnalyseFailure::NotAllSwitches { .. } => wrong(failure.into()),
        failure => failure.into(),
    }
}

fn kind(name: &str, told: &CallArguments) -> Result<AnalysisKind, TableError> {
    let absent = || TableError::from(format!("there is no function {name}()"));
    let entry = analyses().iter().find(|entry| entry.sql_name == name).ok_or_else(absent)?;
    if let Some(unsupported) = entry.options.unsupported(&told.options.wishes) {
        return Err(refused_option(name, &entry.options, unsupported));
    }
    match entry.kind {
        AnalysisKind::Pairs(_) if !(told.start.is_empty() && told.stop.is_empty()) => {
            let question =
                PairsQuestion::parse(&told.start, &told.stop, &told.keys, told.group.as_deref(), told.is_nested);
            Ok(AnalysisKind::Pairs(question.map_err(pairs_problem)?))
        }
        AnalysisKind::Own(_) if !(told.start.is_empty() && told.stop.is_empty()) => {
            let operations = AnalysisDeclaration::of_operations(&told.start, &[], &told.stop, &told.keys);
            operations.map(AnalysisKind::Own).map_err(|problem| match problem {
                PairsProblem::Half => "breakdown() needs all: breakdown('start=NAME', 'stop=NAME', 'key=FIELD')".into(),
                problem @ PairsProblem::Expression(..) => pairs_problem(problem),
            })
        }
        AnalysisKind::Periods(_) if told.options.periods.is_none() => {
            Err("periods() needs one: periods('period=frame : app:vsync')".into())
        }
        _ => Ok(entry.kind.clone()),
    }
}

/// Why an option means nothing to a function.
fn refused_option(name: &str, supported: &SupportedOptions, unsupported: Unsupported<'_>) -> TableError {
    let option = match unsupported {
        Unsupported::Min => "min",
        Unsupported::Max => "max",
        Unsupported::MinSize => "min-size",
        Unsupported::MaxSize => "max-size",
        Unsupported::Cpus => "cpu",
        Unsupported::Tids => "tid",
        Unsupported::Comms => "comm",
        Unsupported::Irqs => "irq",
        Unsupported::Softirqs => "softirq",
        Unsupported::Names => "name",
        Unsupported::By(_) if supported.by.is_empty() => {
            return format!("{name}() tells nothing apart: `by` has no words for it").into();
        }
        Unsupported::By(word) => {
            return format!("{name}() does not tell {word:?} apart; it knows {}", supported.by.join(", ")).into();
        }
    };
    format!("{name}() has nothing that `{option}` could choose").into()
}

fn pairs_problem(problem: PairsProblem) -> TableError {
    match problem {
        PairsProblem::Half => "pairs() needs both: pairs('start=NAME', 'stop=NAME')".into(),
        PairsProblem::Expression(text, problems) => {
            let said: String = problems.iter().map(|problem| problem.render(&text)).collect();
            said.trim_end().to_owned().into()
        }
    }
}

/// The wanted table of an answer.
fn rows(shared: &TableContext, found: Analysed, wanted: Option<&str>) -> Result<RecordBatch, TableError> {
    shared.watch().add(&found.report);
    let Answer { tables } = found.answer;
    let table = match wanted {
        None => tables.first(),
        Some(wanted) => tables.iter().find(|table| is_called(table.class, wanted)),
    };
    let Some(table) = table else {
        let mut names: Vec<&str> = tables.iter().map(|table| table.class).collect();
        names.dedup();
        let wanted = wanted.unwrap_or("");
        return Err(wrong(format!("the answer has no table {wanted:?}; it has {}", names.join(", ")).into()));
    };
    Ok(answer_columns(table, shared.session.times_are_unix()))
}

/// `per_thread` is `per-thread`.
fn is_called(class: &str, wanted: &str) -> bool {
    class.len() == wanted.len()
        && class.bytes().zip(wanted.bytes()).all(|(one, other)| one == other || one == b'-' && other == b'_')
}

impl CallArguments {
    fn take(&mut self, shared: &TableContext, function: &str, argument: &Argument) -> Result<(), TableError> {
        let Argument::Text(text) = argument else {
            return Err(format!("{function}() takes texts: a table's name, or options such as 'min=1ms'").into());
        };
        let Some((option, value)) = text.split_once('=') else {
            self.table = Some(text.trim().to_owned());
            return Ok(());
        };
        let (option, value) = (option.trim(), value.trim());
        let wishes: &mut Wishes = &mut self.options.wishes;
        let wrong = || TableError::from(format!("{function}(): {option}={value} cannot be understood"));
        let list = || value.split(',').map(|item| item.trim().to_owned());
        let duration = || quantity(value, Dimension::Time, None).ok_or_else(wrong);
        let size = || quantity(value, Dimension::Size, None).ok_or_else(wrong);
        let at = || time(shared, &Argument::Text(value.to_owned()));
        match option {
            "by" => wishes.by = list().collect(),
            "min" => wishes.min_ns = Some(duration()?),
            "max" => wishes.max_ns = Some(duration()?),
            "min-size" => wishes.min_bytes = Some(size()?),
            "max-size" => wishes.max_bytes = Some(size()?),
            "cpu" => wishes.cpus = list().map(|it| it.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?,
            "tid" => wishes.tids = list().map(|it| it.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?,
            "comm" => wishes.comms = list().collect(),
            "name" => wishes.names = list().collect(),
            "begin" => self.options.begin_ns = Some(at()?),
            "end" => self.options.end_ns = Some(at()?),
            "event" => self.options.selection.events = list().collect(),
            "where" | "filter" => self.options.selection.filter = Some(filter(value)?),
            "roles" => self.options.roles = Some(value.into()),
            "start" => self.start.push(value.to_owned()),
            "stop" => self.stop.push(value.to_owned()),
            "key" => self.keys.push(value.to_owned()),
            "group" => self.group = Some(value.to_owned()),
            "nested" => self.is_nested = value == "true",
            "period" => match quantity(value, Dimension::Time, None).filter(|nanos| *nanos > 0) {
                Some(nanos) => wishes.period_ns = Some(nanos),
                None => {
                    self.periods.push(value.to_owned());
                    self.options.periods = Some(periods(&self.periods)?);
                }
            },
            _ => return Err(format!("{function}() has no option {option:?}; it has {OPTIONS}").into()),
        }
        Ok(())
    }
}

const OPTIONS: &str = "by, min, max, min-size, max-size, cpu, tid, comm, name, begin, end, event, filter, roles, period; pairs() also \
                       start, stop, key, group, nested; breakdown() start, stop, key";

fn filter(text: &str) -> Result<Filter, TableError> {
    let said = |problems: Vec<kymo_filter::FilterProblem>| -> TableError {
        let said: String = problems.iter().map(|problem| problem.render(text)).collect();
        said.trim_end().to_owned().into()
    };
    Filter::parse(text).map_err(said)
}

fn periods(texts: &[String]) -> Result<Definitions, TableError> {
    Definitions::parse(texts, &[]).map_err(|problem| problem.to_string().into())
}

/// A time in nanoseconds.
fn time(shared: &TableContext, argument: &Argument) -> Result<i64, TableError> {
    let text = match argument {
        Argument::Integer(nanos) => return Ok(*nanos),
        Argument::Text(text) => text,
        Argument::Boolean(_) => return Err("a time is a text, or nanoseconds".into()),
    };
    let when: When = text.parse().map_err(|error: crate::open::when::NotATime| TableError::from(error.to_string()))?;
    let first_ns = shared.session.first_ns().unwrap_or(0);
    when.nanos(first_ns, Zone::Utc).ok_or_else(|| format!("{text} is out of range").into())
}
