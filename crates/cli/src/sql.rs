//! `kymo sql`: one query, several of standard input, or a shell.

mod shell;

use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use kymo_session::{AnswerFormat, Database, Progress, SqlFailure, WriteFailure, sql_statements, write_answer};

use crate::arguments::{SqlArguments, SqlFormat};
use crate::stop::Stop;
use crate::{Clocks, Outcome, open_paths, show};

/// Answers the query, or those typed in the shell.
pub(crate) fn run(arguments: &SqlArguments) -> Result<Outcome, Stop> {
    let (traces, query) = arguments.traces_and_query();
    let format = answer_format(arguments.chosen_format()?);
    let clocks = Clocks::of_traces(&arguments.trace_offset);
    let Some(session) = open_paths(&traces, arguments.threads, clocks) else { return Ok(Outcome::Incomplete) };
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
    let mut outcome = Outcome::Complete;
    for query in sql_statements(&text).0 {
        match asking.answer(query, format, arguments.output.as_deref()) {
            Ok(Answered { is_complete: true, .. }) => {}
            Ok(_) => outcome = Outcome::Incomplete,
            Err(WriteFailure::Sql(failure)) => return refused(&failure),
            Err(WriteFailure::File(error)) => return Err(into_io(error).into()),
        }
    }
    Ok(outcome)
}

/// An error in a query ends the command.
fn refused(failure: &SqlFailure) -> Result<Outcome, Stop> {
    if failure.is_in_query() {
        return Err(Stop::Expression(format!("error: {failure}\n")));
    }
    eprintln!("error: {failure}");
    Ok(Outcome::Incomplete)
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
    database: &'a Database,
    arguments: &'a SqlArguments,
    /// Cancels a query, where that does not end the command.
    interrupted: Option<Arc<AtomicBool>>,
}

/// The result of a query.
struct Answered {
    rows: u64,
    took: std::time::Duration,
    /// Everything could be read.
    is_complete: bool,
}

impl Asking<'_> {
    /// Shows the answer to a query, and the losses behind it.
    fn answer(&self, query: &str, format: AnswerFormat, output: Option<&Path>) -> Result<Answered, WriteFailure> {
        let began = Instant::now();
        let progress = self.interrupted.clone().map(Progress::ended_by).unwrap_or_default();
        let mut answer = self.database.query(query, &Arc::new(progress))?;
        let written = write_answer(&mut answer, format, output);
        let is_complete = matches!(show::report(&answer.report(), self.arguments.strict), Outcome::Complete);
        Ok(Answered { rows: written?, took: began.elapsed(), is_complete })
    }
}
