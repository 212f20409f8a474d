//! `kymo lami ANALYSIS`: the protocol of LAMI 1.0, by which programs such as Trace Compass run analyses.
//!
//! ```text
//! --mi-version                    1.0
//! --metadata                      what tables there can be
//! --test-compatibility TRACE      nothing, if the trace can be analysed
//! [--begin NS] [--end NS] ...     progress, if asked for; then the results
//! ```
//!
//! All output goes to standard output, errors too: the calling program may have mixed the two.
//! Trace Compass asks the version of the program alone, `kymo --mi-version`. `answer::lami` decides
//! the form of the objects.

use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use kymo_session::{AnalysisOptions, Filter, Progress, Selection, Session, Table, Zone};
use serde_json::Value;

use crate::CommandOutcome;
use crate::analyses::{self, Analysis, AnalysisRefusal};
use crate::answer::lami::{LamiDescription, VERSION, error, metadata, write};
use crate::arguments::LamiArguments;
use crate::show::bytes;

/// Time between two lines of progress.
const TICK: Duration = Duration::from_millis(200);

/// The code of a wrong question.
const QUESTION: u8 = 2;
/// The code of traces that cannot answer it.
const TRACES: u8 = 1;

/// Answers as the protocol wants it.
pub(crate) fn run(arguments: &LamiArguments) -> io::Result<CommandOutcome> {
    let mut out = BufWriter::new(io::stdout());
    match answer(arguments, &mut out)? {
        Ok(()) => out.flush().map(|()| CommandOutcome::Complete),
        Err(refusal) => {
            let (message, code) = match &refusal {
                AnalysisRefusal::Question(message) => (message, QUESTION),
                AnalysisRefusal::Traces(message) => (message, TRACES),
            };
            writeln!(out, "{}", error(message.strip_prefix("error: ").unwrap_or(message), code))?;
            out.flush().map(|()| CommandOutcome::Incomplete)
        }
    }
}

/// The parser of arguments rejects the typed words.
pub(crate) fn wrong_usage(message: &str) -> Value {
    error(message.strip_prefix("error: ").unwrap_or(message), QUESTION)
}

fn answer(arguments: &LamiArguments, out: &mut impl Write) -> io::Result<Result<(), AnalysisRefusal>> {
    if arguments.mi_version {
        return writeln!(out, "{VERSION}").map(Ok);
    }
    let analysis = match named(arguments) {
        Ok(analysis) => analysis,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if arguments.metadata {
        let description =
            LamiDescription { name: &analysis.name, title: &analysis.title, description: &analysis.sentence };
        return writeln!(out, "{}", metadata(description, &analysis.kind.tables())).map(Ok);
    }
    match opened(analysis, arguments) {
        Err(refusal) => Ok(Err(refusal)),
        Ok((session, options)) if arguments.test_compatibility => {
            Ok(analyses::refusal(analysis, &session, &options).map_or(Ok(()), Err))
        }
        Ok((session, options)) => results(&session, analysis, &options, arguments, out),
    }
}

/// The traces, and the options of the analysis.
fn opened(analysis: &Analysis, arguments: &LamiArguments) -> Result<(Session, AnalysisOptions), AnalysisRefusal> {
    if arguments.traces.is_empty() {
        return Err(AnalysisRefusal::Question("which trace?".to_owned()));
    }
    if let Some(misunderstanding) = arguments.wanted.misunderstanding(&analysis.name, &analysis.options) {
        return Err(AnalysisRefusal::Question(misunderstanding));
    }
    let session = crate::session(&arguments.traces, arguments.threads, arguments.reading.options());
    let session = session.map_err(|failure| AnalysisRefusal::Traces(failure.render()))?;
    let selection = selection(&session, arguments).map_err(AnalysisRefusal::Question)?;
    let options = arguments.wanted.options(selection, (arguments.begin, arguments.end), None);
    Ok((session, options))
}

fn named(arguments: &LamiArguments) -> Result<&'static Analysis, AnalysisRefusal> {
    let message = match arguments.analysis.as_deref() {
        None => format!("which analysis? There are: {}", analyses::names()),
        Some(name) => match analyses::find(name) {
            Some(analysis) => return Ok(analysis),
            None => format!("there is no analysis `{name}`; there are: {}", analyses::names()),
        },
    };
    Err(AnalysisRefusal::Question(message))
}

/// The selection, or the error in it.
fn selection(session: &Session, arguments: &LamiArguments) -> Result<Selection, String> {
    if let Some(contradiction) = arguments.wanted.contradiction() {
        return Err(contradiction);
    }
    if arguments.begin.zip(arguments.end).is_some_and(|(begin, end)| begin > end) {
        return Err("--begin is after --end".to_owned());
    }
    let Some(text) = arguments.wanted.filter.as_deref() else { return Ok(Selection::default()) };
    let rendered = |problems: Vec<kymo_session::FilterProblem>| {
        problems.iter().map(|problem| problem.render(text)).collect::<String>()
    };
    let filter = Filter::parse(text).map_err(rendered)?;
    let selection = Selection { events: Vec::new(), filter: Some(filter), zone: Zone::Local };
    match session.meaning(&selection).applies {
        0 => Err(format!("no event class matches `{text}`")),
        _ => Ok(selection),
    }
}

fn results(
    session: &Session,
    analysis: &Analysis,
    options: &AnalysisOptions,
    arguments: &LamiArguments,
    out: &mut impl Write,
) -> io::Result<Result<(), AnalysisRefusal>> {
    let progress = Progress::default();
    let work = || analyses::ask(analysis, session, options, &progress);
    let asked = if arguments.output_progress { told(&progress, work)? } else { work() };
    match asked {
        Ok((mut answer, report)) => {
            // The limit holds for every table, also for those that our own options leave whole.
            answer.tables.iter_mut().for_each(|table| table.rows.truncate(options.wishes.top.unwrap_or(usize::MAX)));
            let tables: Vec<&Table> = answer.tables.iter().collect();
            write(&tables, &analysis.kind.tables(), &report, out).map(Ok)
        }
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Does the work, and meanwhile reports its progress in lines.
fn told<R>(progress: &Progress, work: impl FnOnce() -> R) -> io::Result<R> {
    let (done, is_done) = mpsc::channel::<()>();
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            while is_done.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let (done, total) = progress.bytes();
                let share = if total == 0 { 0.0 } else { done as f64 / total as f64 };
                // A program that does not read this may still read the results.
                let _ = writeln!(io::stdout(), "{share:.3} {} of {}", bytes(done), bytes(total));
            }
        });
        let result = work();
        // The thread ends when this end of the channel is gone.
        drop(done);
        result
    });
    writeln!(io::stdout(), "1").map(|()| result)
}
