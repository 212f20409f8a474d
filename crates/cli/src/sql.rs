//! `kymo sql`: one query, several of standard input, or a shell.

mod shell;

use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kymo_session::{AnswerFormat, Progress, SqlDatabase, SqlFailure, WriteFailure, sql_statements, write_answer};

use crate::arguments::{SqlArguments, SqlFormat};
use crate::stop::StopReason;
use crate::{CommandOutcome, open_paths, show};

/// Answers the query, or those typed in the shell.
pub(crate) fn run(arguments: &SqlArguments) -> Result<CommandOutcome, StopReason> {
    let (traces, query) = arguments.traces_and_query();
    let format = answer_format(arguments.chosen_format()?);
    let reading = arguments.reading.options();
    let Some(session) = open_paths(&traces, arguments.threads, reading) else { return Ok(CommandOutcome::Incomplete) };
    let database = Arc::new(session).database(&arguments.options()).map_err(io::Error::other)?;
    let mut asking = Asking { database: &database, arguments, interrupted: None };
    let text = match query {
        Some(query) => query,
        None if io::stdin().is_terminal() => {
            asking.interrupted = Some(shell::interrupts()?);
            return Ok(shell::run(&asking, format)?);
        }
        None => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            text
        }
    };
    let mut outcome = CommandOutcome::Complete;
    for query in sql_statements(&text).0 {
        match asking.answer(query, format, arguments.output.as_deref()) {
            Ok(QueryResult { is_complete: true, .. }) => {}
            Ok(_) => outcome = CommandOutcome::Incomplete,
            Err(WriteFailure::Sql(failure)) => return refused(&failure),
            Err(WriteFailure::File(error)) => return Err(into_io(error).into()),
        }
    }
    Ok(outcome)
}

/// An error in a query ends the command.
fn refused(failure: &SqlFailure) -> Result<CommandOutcome, StopReason> {
    if failure.is_in_query() {
        return Err(StopReason::Expression(format!("error: {failure}\n")));
    }
    message!("error: {failure}");
    Ok(CommandOutcome::Incomplete)
}

fn into_io(error: kymo_session::FileError) -> io::Error {
    match error {
        kymo_session::FileError::Io(error) => error,
        error => io::Error::other(error),
    }
}

fn answer_format(format: SqlFormat) -> AnswerFormat {
    match format {
        SqlFormat::Table => AnswerFormat::Table,
        SqlFormat::Csv => AnswerFormat::Csv,
        SqlFormat::Json => AnswerFormat::Json,
        SqlFormat::Parquet => AnswerFormat::Parquet,
        SqlFormat::Arrow => AnswerFormat::Arrow,
    }
}

/// The context of a query.
struct Asking<'a> {
    database: &'a SqlDatabase,
    arguments: &'a SqlArguments,
    /// Cancels a query, where that does not end the command.
    interrupted: Option<Arc<AtomicBool>>,
}

/// The result of a query.
struct QueryResult {
    rows: u64,
    took: std::time::Duration,
    /// Everything could be read.
    is_complete: bool,
}

impl Asking<'_> {
    /// Shows the answer to a query, and the losses behind it.
    fn answer(&self, query: &str, format: AnswerFormat, output: Option<&Path>) -> Result<QueryResult, WriteFailure> {
        let began = Instant::now();
        let progress = self.interrupted.clone().map(Progress::ended_by).unwrap_or_default();
        let mut answer = self.database.query(query, &Arc::new(progress))?;
        let written = write_answer(&mut answer, format, output);
        let is_complete = matches!(show::report(&answer.report(), self.arguments.strict), CommandOutcome::Complete);
        Ok(QueryResult { rows: written?, took: began.elapsed(), is_complete })
    }
}
