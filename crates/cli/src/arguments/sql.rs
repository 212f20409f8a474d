//! The arguments of `kymo sql`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use kymo_session::{SqlOptions, analyses};

use crate::arguments::ReadingArguments;
use crate::quantity::size;
use crate::stop::StopReason;

const HELP: &str = "\
Examples:
  kymo sql my-trace 'select next_comm, count(*) from sched_switch group by 1 order by 2 desc'
  kymo sql my-trace \"select * from sched_switch where next_tid = 1234 and time >= '2016-03-04 17:46:23'\"
  kymo sql my-trace \"select name, count(*) from events where name like 'syscall_%' group by name\"
  kymo sql my-trace \"select comm, state, sum(duration) from thread_states() group by all\"
  kymo sql my-trace 'select * from sched_switch' --output switches.parquet
  kymo sql my-trace 'explain select * from sched_switch where prev_prio < 100'
  kymo sql my-trace                    open a shell, with history and TAB completion
  kymo sql my-trace < queries.sql

Tables     one for each event class, by its name; events (all events: fields['x'] is
           text), streams, packets, losses, fields
Functions  FUNCTIONS
           state_at('12:18:50') thread_states(); an argument names a table of the analysis
           or an option: cpu('per-process', 'period=100ms')

Names are the names of the trace; quote names with special characters:
\"my_app:request\". Times are UTC. The decoder evaluates conditions on time, names and fields,
and skips packets of other times: `explain` shows this. Without `order by`, rows are in time
order unless the query changes it.

Exit status: 0 everything was read, 1 a part could not be read, 2 the query has an error.";

/// The help with the functions that analyses are, seven in a line.
fn help() -> String {
    let names: Vec<String> = analyses().iter().map(|entry| format!("{}()", entry.sql_name)).collect();
    let lines: Vec<String> = names.chunks(7).map(|names| names.join(" ")).collect();
    HELP.replace("FUNCTIONS", &lines.join("\n           "))
}

#[derive(Args)]
#[command(after_help = help(), override_usage = "kymo sql [OPTIONS] <TRACE>... [QUERY]")]
pub(crate) struct SqlArguments {
    /// Traces, followed by a query: an argument that contains a space and is not a file
    #[arg(required = true, value_name = "TRACE")]
    words: Vec<OsString>,
    /// Output format; default: by the extension of the output file, else a table
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<SqlFormat>,
    /// Same as `--format csv`
    #[arg(long, conflicts_with_all = ["format", "json"])]
    csv: bool,
    /// Same as `--format json`: one object per line and row
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The output file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Memory for sorting, grouping and joining; larger data goes to temporary files
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub(crate) memory: u64,
    /// Do not rely on time order: for clocks that step back
    #[arg(long)]
    pub(crate) unordered: bool,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
    /// Number of threads; 0: one for each core
    #[arg(long, default_value_t = 0, env = "KYMO_THREADS", hide_env_values = true)]
    pub(crate) threads: usize,
    /// Count assumptions as errors
    #[arg(long)]
    pub(crate) strict: bool,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    /// A table with aligned columns
    Table,
    /// Comma-separated values, with a header line
    Csv,
    /// One object per line and row
    Json,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file; on standard output, a stream
    Arrow,
}

impl SqlArguments {
    /// The traces, and the query if there is one.
    pub(crate) fn traces_and_query(&self) -> (Vec<PathBuf>, Option<String>) {
        let paths = |words: &[OsString]| words.iter().map(PathBuf::from).collect();
        if let [traces @ .., last] = &self.words[..]
            && !traces.is_empty()
            && let Some(query) = last.to_str()
            && query.contains(char::is_whitespace)
            && !PathBuf::from(last).exists()
        {
            return (paths(traces), Some(query.to_owned()));
        }
        (paths(&self.words), None)
    }

    /// How queries are answered.
    pub(crate) fn options(&self) -> SqlOptions {
        let memory_bytes = usize::try_from(self.memory).unwrap_or(usize::MAX);
        SqlOptions { memory_bytes, is_unordered: self.unordered }
    }

    /// How answers are written.
    ///
    /// # Errors
    ///
    /// The name of the output ends as no format does.
    pub(crate) fn chosen_format(&self) -> Result<SqlFormat, StopReason> {
        match self {
            Self { csv: true, .. } => Ok(SqlFormat::Csv),
            Self { json: true, .. } => Ok(SqlFormat::Json),
            Self { format: Some(format), .. } => Ok(*format),
            Self { output: Some(output), .. } => of_name(output),
            _ => Ok(SqlFormat::Table),
        }
    }
}

fn of_name(output: &Path) -> Result<SqlFormat, StopReason> {
    let Some(end) = output.extension() else { return Ok(SqlFormat::Table) };
    match end.to_str().unwrap_or_default() {
        "txt" => Ok(SqlFormat::Table),
        "csv" => Ok(SqlFormat::Csv),
        "json" | "jsonl" | "ndjson" => Ok(SqlFormat::Json),
        "parquet" => Ok(SqlFormat::Parquet),
        "arrow" | "feather" => Ok(SqlFormat::Arrow),
        _ => Err(StopReason::Usage(format!(
            "the name `{}` has no known extension: use .txt, .csv, .json, .parquet or .arrow, or `--format`",
            output.display()
        ))),
    }
}
