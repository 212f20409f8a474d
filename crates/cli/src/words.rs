//! The meaning and the text of the command's words, for a face in another language: one question
//! has one answer there too.
//!
//! ```text
//! ["cpu", "--by=process"] ──clap──> arguments ──> what to ask of the session ──> tables, report, text
//!                            └──────────┴──> why not, as the command says it after `error: `
//! ```

use std::io;
#[cfg(feature = "export")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches};
use kymo_session::{
    AnalyseFailure, Analysed, CheckFinding, CountOptions, Info, PrintOptions, Progress, Report, Selection, Session,
    ShareFailure, Shares, Table, Zone, json,
};
use serde_json::Value;

use crate::analyses::{self, AnalysisRefusal, TOP};
use crate::answer::screen::Screen;
use crate::answer::table::TableLook;
use crate::answer::words::{CellDetail, CellFormatter};
use crate::answer::{InstantFormat, table};
use crate::arguments::{Arguments, Command};
use crate::select::understood;
use crate::stop::StopReason;
use crate::{check, count, info, print, state};

/// An answer for people and for programs.
pub struct WordedAnswer {
    /// The output of the command.
    pub text: String,
    /// Its output with `--json`.
    pub json: String,
}

/// An answer in tables.
pub struct TableAnswer {
    /// With all rows that were asked for.
    pub tables: Vec<Table>,
    /// The losses and assumptions behind them.
    pub report: Report,
    /// The command's output with the default number of rows.
    pub text: String,
    /// Lines about parts of the question that mean nothing.
    pub warnings: String,
}

/// Why there is no answer: the command's text after `error: `.
#[derive(Debug)]
pub enum CommandError {
    /// The question is wrong.
    Question(String),
    /// These traces cannot answer it.
    Traces(String),
    /// Nothing more can be written.
    Output(io::Error),
    /// The caller no longer waits for the answer.
    Cancelled,
}

impl From<StopReason> for CommandError {
    fn from(stop: StopReason) -> Self {
        match stop {
            StopReason::Output(error) => Self::Output(error),
            stop => Self::Question(stop.text()),
        }
    }
}

impl From<ShareFailure> for CommandError {
    fn from(failure: ShareFailure) -> Self {
        match failure {
            ShareFailure::Analyse(AnalyseFailure::NoRole { .. } | AnalyseFailure::NoName(_))
            | ShareFailure::Whole(_) => Self::Traces(failure.to_string()),
            failure => Self::Question(failure.to_string()),
        }
    }
}

impl From<AnalysisRefusal> for CommandError {
    fn from(refusal: AnalysisRefusal) -> Self {
        match refusal {
            AnalysisRefusal::Question(message) => Self::Question(message),
            AnalysisRefusal::Traces(message) => Self::Traces(message),
        }
    }
}

/// The contents of traces.
#[must_use]
pub fn info(info: &Info, paths: &[PathBuf]) -> WordedAnswer {
    let mut text = Vec::new();
    info::screen(info, paths, Screen { width: None, colours: false, unicode: true }, &mut text)
        .expect("memory takes all bytes");
    WordedAnswer { text: String::from_utf8_lossy(&text).into_owned(), json: json::info(info).to_string() }
}

/// The contents of traces, in a few words.
#[must_use]
pub fn summary(info: &Info) -> String {
    info::summary(info)
}

/// The report of losses and assumptions behind an answer, as JSON.
#[must_use]
pub fn report(report: &Report) -> String {
    json::report(report).to_string()
}

/// The problems of traces, as JSON: an array of findings.
#[must_use]
pub fn findings(findings: &[CheckFinding]) -> String {
    findings
        .iter()
        .map(|found| kymo_session::json::finding(found, check::is_error(found, false)))
        .collect::<Value>()
        .to_string()
}

/// Answers a command that asks: an analysis, `count` or `state`; the words are without traces.
///
/// # Errors
///
/// The words make no sense, the traces cannot answer, or it was canceled.
pub fn ask(session: &Session, words: &[String], progress: &Progress) -> Result<TableAnswer, CommandError> {
    let answered = answer(session, words, progress);
    // This is the reason, before any other.
    if progress.is_cancelled() { Err(CommandError::Cancelled) } else { answered }
}

fn answer(session: &Session, words: &[String], progress: &Progress) -> Result<TableAnswer, CommandError> {
    let command = parsed(words)?;
    let (answer, report, warnings) = match &command {
        Command::Count(arguments) => {
            let events = &arguments.event;
            let (selection, warnings) = understood(session, events, arguments.filter.as_deref(), Zone::Local)?;
            let counts = session.count(&CountOptions { selection, sizes: arguments.sizes }, progress);
            let counts = counts.map_err(|_| CommandError::Cancelled)?;
            let (table, text) = count::as_table(&counts, &arguments.by);
            return Ok(TableAnswer { tables: vec![table], report: counts.report, text, warnings });
        }
        Command::State(arguments) => {
            let asked = state::StateQuestion::new(session, arguments, None)?.ask(session, progress);
            let found = asked.map_err(|failure| state::refusal(session, arguments, failure))?;
            (found.answer, found.report, String::new())
        }
        command => {
            let Some(analysis) = analyses::of_command(command) else {
                return Err(CommandError::Question(format!(
                    "`{}` asks nothing",
                    words.first().map_or("", |word| word)
                )));
            };
            let (analysis, arguments) = analysis?;
            let (options, warnings) = analyses::asked(&analysis, session, arguments, None)?;
            let (answer, report) = analyses::ask(&analysis, session, &options, progress)?;
            (answer, report, warnings)
        }
    };
    let text = shown(&answer.tables, session.times_are_unix());
    Ok(TableAnswer { tables: answer.tables, report, text, warnings })
}

/// The same question to be answered in shares, by this process and others, and lines about parts
/// that mean nothing.
///
/// # Errors
///
/// The words make no sense, are no analysis, or the traces cannot answer in parts.
pub fn shares(session: &Arc<Session>, words: &[String]) -> Result<(Shares, String), CommandError> {
    let command = parsed(words)?;
    let name = words.first().map_or("", |word| word);
    let (analysis, options, warnings) = match analyses::of_command(&command) {
        Some(analysis) => {
            let (analysis, arguments) = analysis?;
            let (options, warnings) = analyses::asked(&analysis, session, arguments, None)?;
            (analysis, options, warnings)
        }
        None => return Err(CommandError::Question(format!("`{name}` is no analysis"))),
    };
    let shares = Shares::new(Arc::clone(session), analysis.kind, options)?;
    Ok((shares, warnings))
}

/// An answer that was put together from shares.
#[must_use]
pub fn answered(session: &Session, analysed: Analysed) -> TableAnswer {
    let Analysed { answer, report } = analysed;
    let text = shown(&answer.tables, session.times_are_unix());
    TableAnswer { tables: answer.tables, report, text, warnings: String::new() }
}

/// Tables as the command shows them with the default number of rows.
fn shown(tables: &[Table], times_are_unix: bool) -> String {
    let times = InstantFormat::new(times_are_unix, Zone::Local, false);
    let screen = Screen { width: None, colours: false, unicode: true };
    let mut text = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let mut top = head(table);
        top.rows = table.rows.iter().take(TOP).cloned().collect();
        top.omitted += (table.rows.len() - top.rows.len()) as u64;
        let times = times.within(table.span_ns);
        let words = CellFormatter { times, unicode: true, detail: CellDetail::Plain };
        let gap: &[u8] = if number > 0 { b"\n" } else { b"" };
        text.extend_from_slice(gap);
        table::show(&top, &words, screen, TableLook::WHOLE, &mut text).expect("memory takes all bytes");
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The table without its rows.
fn head(table: &Table) -> Table {
    let Table { class, title, span_ns, columns, omitted, plot, .. } = table;
    let (title, columns, plot) = (title.clone(), columns.clone(), plot.clone());
    Table { class, title, span_ns: *span_ns, columns, rows: Vec::new(), omitted: *omitted, plot }
}

/// The options of `kymo print`, without traces, and lines about options that mean nothing.
///
/// # Errors
///
/// The words make no sense.
pub fn print_options(session: &Session, words: &[String]) -> Result<(PrintOptions, String), CommandError> {
    let words: Vec<String> = std::iter::once("print".to_owned()).chain(words.iter().cloned()).collect();
    let Command::Print(arguments) = parsed(&words)? else { unreachable!("the first word says so") };
    let (options, mut warnings) = print::asked(session, &arguments)?;
    if !options.force_correlate && !session.times_are_comparable() {
        warnings = warnings + print::ORIGINS + "\n";
    }
    Ok((options, warnings))
}

/// The options of `kymo export`, without traces and folder, and lines about options that mean
/// nothing.
///
/// # Errors
///
/// The words make no sense.
#[cfg(feature = "export")]
pub fn export_options(
    session: &Session,
    output: &Path,
    words: &[String],
) -> Result<(kymo_session::ExportOptions, String), CommandError> {
    let fixed = ["export".to_owned(), format!("--output={}", output.display())];
    let words: Vec<String> = fixed.into_iter().chain(words.iter().cloned()).collect();
    let Command::Export(arguments) = parsed(&words)? else { unreachable!("the first word says so") };
    let (mut options, warnings) = crate::export::asked(session, &arguments)?;
    // As it is, with any bytes.
    options.output = output.to_owned();
    Ok((options, warnings))
}

/// The options of `kymo sql`, without traces and query.
///
/// # Errors
///
/// The words make no sense.
#[cfg(feature = "sql")]
pub fn sql_options(words: &[String]) -> Result<kymo_session::SqlOptions, CommandError> {
    let words: Vec<String> = std::iter::once("sql".to_owned()).chain(words.iter().cloned()).collect();
    let Command::Sql(arguments) = parsed(&words)? else { unreachable!("the first word says so") };
    Ok(arguments.options())
}

/// Which events.
pub struct EventChoice {
    /// By name and by properties.
    pub selection: Selection,
    /// Not before this.
    pub begin_ns: Option<i64>,
    /// Not after this.
    pub end_ns: Option<i64>,
    /// Lines about words that mean nothing.
    pub warnings: String,
}

/// Which events are meant by `--event`, `--filter`, `--begin` and their like.
///
/// # Errors
///
/// The words make no sense.
pub fn chosen(session: &Session, words: &[String]) -> Result<EventChoice, CommandError> {
    let (PrintOptions { selection, begin_ns, end_ns, .. }, warnings) = print_options(session, words)?;
    Ok(EventChoice { selection, begin_ns, end_ns, warnings })
}

/// A command line without traces.
fn parsed(words: &[String]) -> Result<Command, CommandError> {
    let (name, said) = words.split_first().map_or(("", &[][..]), |(name, said)| (name.as_str(), said));
    let (files, options): (Vec<&String>, Vec<&String>) = said.iter().partition(|word| !word.starts_with("--"));
    let line = ["kymo", name].into_iter().chain(options.into_iter().map(String::as_str)).chain(["--"]);
    let line = line.chain(files.into_iter().map(String::as_str)).chain(["."]);
    let matches = Arguments::command().try_get_matches_from(line);
    let parsed = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    parsed.map(|arguments| arguments.command.0).map_err(|error| CommandError::Question(sentence(&error.to_string())))
}

/// The message of an error of the parser, without its hints.
fn sentence(error: &str) -> String {
    let text = error.strip_prefix("error: ").unwrap_or(error);
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|rest| text.find(rest)).min();
    text[..end.unwrap_or(text.len())].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_parser_are_sentences() {
        let refused = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            match parsed(&words) {
                Err(CommandError::Question(text)) => text,
                other => panic!("{:?}", other.err()),
            }
        };
        assert_eq!(
            refused(&["cpu", "--top=many"]),
            "invalid value 'many' for '--top <ROWS>': it is a number of rows, or `all`"
        );
        assert!(refused(&["cpu", "--topp=1"]).starts_with("unexpected argument '--topp' found"));
        assert!(!refused(&["cpu", "--topp=1"]).contains("Usage"));
    }
}
