//! A shell for queries: lines are edited, kept, and completed with names of the trace.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kymo_session::{AnswerFormat, SqlDatabase, SqlFailure, WriteFailure, cache_folder, sql_statements};
use rustyline::completion::Completer;
use rustyline::config::{CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use super::{Asking, into_io};
use crate::{CommandOutcome, show};

const HELP: &str = "\
A query ends with a semicolon and may have several lines. TAB completes names.
  \\d            tables and functions        \\d NAME    the columns of a table
  \\f FORMAT     table, csv or json          \\q         ends (as does Ctrl-D)
  Ctrl-C        cancels a query
  explain ...   how a query is answered, and which packets are not read";

/// Asks for queries until the user ends the shell.
pub(super) fn run(asking: &Asking<'_>, mut format: AnswerFormat) -> io::Result<CommandOutcome> {
    let config = Config::builder().completion_type(CompletionType::List).max_history_size(5000);
    let config = config.map_err(io::Error::other)?.auto_add_history(true).build();
    let mut editor: Editor<Completions, DefaultHistory> = Editor::with_config(config).map_err(io::Error::other)?;
    editor.set_helper(Some(Completions::new(asking.database)));
    let history = history();
    if let Some(path) = &history {
        // The first time there is none.
        let _ = editor.load_history(path);
    }
    println!("Queries end with `;`, \\? helps, \\q ends.");
    loop {
        match editor.readline("kymo> ") {
            Ok(line) if line.trim() == "\\q" => break,
            Ok(line) => match line.trim().strip_prefix('\\') {
                Some(command) => obey(command, asking.database, &mut format),
                None => answer_all(&line, asking, format)?,
            },
            // Drops the typed text.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    if let Some(path) = &history {
        path.parent().map(std::fs::create_dir_all);
        // A shell without a memory is one all the same.
        let _ = editor.save_history(path);
    }
    Ok(CommandOutcome::Complete)
}

/// Becomes true with Ctrl-C, which ends the answer and not the shell. A second one before the first
/// has an effect ends both.
pub(super) fn interrupts() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&interrupted))?;
    flag::register(SIGINT, Arc::clone(&interrupted))?;
    Ok(interrupted)
}

fn history() -> Option<PathBuf> {
    Some(cache_folder()?.join("sql-history"))
}

fn answer_all(text: &str, asking: &Asking<'_>, format: AnswerFormat) -> io::Result<()> {
    if let Some(interrupted) = &asking.interrupted {
        interrupted.store(false, Ordering::Relaxed);
    }
    for query in sql_statements(text).0 {
        match asking.answer(query, format, asking.arguments.output.as_deref()) {
            Ok(answered) => {
                let took = show::duration(i128::try_from(answered.took.as_nanos()).unwrap_or(i128::MAX));
                println!("({}, {took})", show::counted(answered.rows, "row"));
            }
            Err(WriteFailure::Sql(SqlFailure::Cancelled)) => {
                message!("cancelled");
                break;
            }
            Err(WriteFailure::Sql(failure)) => message!("error: {failure}"),
            Err(WriteFailure::File(error)) => return Err(into_io(error)),
        }
    }
    Ok(())
}

/// Handles a line that begins with a backslash, which is for the shell.
fn obey(command: &str, database: &SqlDatabase, format: &mut AnswerFormat) {
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    match (name, rest.trim().trim_end_matches(';')) {
        ("d", "") => database.tables().iter().for_each(|(name, what)| println!("{name:<40}  {what}")),
        ("d", table) => match database.columns(table) {
            Some(schema) => {
                let fields = schema.fields().iter();
                fields.for_each(|field| println!("{:<40}  {}", field.name(), field.data_type()));
            }
            None => message!("error: there is no table `{table}`"),
        },
        ("f", "table") => *format = AnswerFormat::Table,
        ("f", "csv") => *format = AnswerFormat::Csv,
        ("f", "json") => *format = AnswerFormat::Json,
        ("f", _) => message!("error: a format is table, csv or json"),
        _ => println!("{HELP}"),
    }
}

/// The words that can be typed.
struct Completions {
    words: Vec<String>,
}

const KEYWORDS: &[&str] = &[
    "select",
    "distinct",
    "from",
    "where",
    "group by",
    "order by",
    "having",
    "limit",
    "offset",
    "join",
    "left join",
    "on",
    "using",
    "union all",
    "with",
    "as",
    "and",
    "or",
    "not",
    "in",
    "is null",
    "is not null",
    "like",
    "between",
    "case",
    "when",
    "then",
    "else",
    "end",
    "asc",
    "desc",
    "over",
    "partition by",
    "explain",
    "explain analyze",
    "describe",
    "show tables",
    "create view",
    "count(*)",
    "sum",
    "min",
    "max",
    "avg",
    "median",
    "approx_percentile_cont",
    "lag",
    "lead",
    "row_number",
    "date_bin",
    "date_trunc",
    "starts_with",
    "cast",
    "interval",
    "coalesce",
    "set",
];

impl Completions {
    fn new(database: &SqlDatabase) -> Self {
        let mut words: Vec<String> = KEYWORDS.iter().map(|word| (*word).to_owned()).collect();
        words.extend(database.words());
        words.sort_unstable();
        words.dedup();
        Self { words }
    }

    /// The words that complete the text before the cursor, and the position where that begins.
    fn completed(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let before = &line[..at];
        let mut start = before.rfind(|letter| !is_part(letter)).map_or(0, |end| end + 1);
        // Line ends and the like are longer than a byte, if they are letters of others.
        while !before.is_char_boundary(start) {
            start += 1;
        }
        let (is_quoted, begun) = (before[..start].ends_with('"'), &before[start..]);
        if begun.is_empty() && !is_quoted {
            return (at, Vec::new());
        }
        let candidates = self.words.iter().filter(|word| word.starts_with(begun)).map(|word| {
            let is_plain = word.chars().all(|letter| is_part(letter) || " *()".contains(letter));
            match (is_quoted, is_plain) {
                (true, _) => format!("{word}\""),
                (false, true) => word.clone(),
                (false, false) => format!("\"{word}\""),
            }
        });
        (start, candidates.collect())
    }
}

impl Completer for Completions {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.completed(line, at))
    }
}

impl Validator for Completions {
    /// A query ends with a semicolon.
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let is_complete = text.trim_start().starts_with('\\') || sql_statements(text).1;
        Ok(if is_complete { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Completions {
    type Hint = String;
}

impl Highlighter for Completions {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Borrowed(hint)
    }
}

impl Helper for Completions {}

#[cfg(test)]
mod tests {
    use super::Completions;

    #[test]
    fn words_are_completed_where_they_begin() {
        let words = ["sched_switch", "sched_wakeup", "my:event", "select"].map(str::to_owned).to_vec();
        let words = Completions { words };
        let check = |line: &str, expected: (usize, &[&str])| {
            let (start, found) = words.completed(line, line.len());
            assert_eq!((start, found), (expected.0, expected.1.iter().map(|it| (*it).to_owned()).collect()), "{line}");
        };
        check("select * from sched_s", (14, &["sched_switch"]));
        check("se", (0, &["select"]));
        check("select m", (7, &["\"my:event\""]));
        check("select \"m", (8, &["my:event\""]));
        check("ä.sched_w", (3, &["sched_wakeup"]));
        check("select ", (7, &[]));
    }
}
