//! What `kymo sql` may be told.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use kymo_session::{SqlOptions, TraceOffset, analyses};

use crate::quantity::{size, trace_offset};
use crate::stop::Stop;

const HELP: &str = "\
Examples:
  kymo sql my-trace 'select next_comm, count(*) from sched_switch group by 1 order by 2 desc'
  kymo sql my-trace \"select * from sched_switch where next_tid = 1234 and time >= '2016-03-04 17:46:23'\"
  kymo sql my-trace \"select name, count(*) from events where name like 'syscall_%' group by name\"
  kymo sql my-trace \"select comm, state, sum(duration) from thread_states() group by all\"
  kymo sql my-trace 'select * from sched_switch' --output switches.parquet
  kymo sql my-trace 'explain select * from sched_switch where prev_prio < 100'
  kymo sql my-trace                    a shell, with history and completion by TAB
  kymo sql my-trace < queries.sql

Tables     one for each class of events, by its name; events (all of them: fields['x'] is a
           text), streams, packets, losses, fields
Functions  FUNCTIONS
           state_at('12:18:50') thread_states(); a text names one of the tables of an
           analysis, or an option: cpu('per-process', 'period=100ms')

Names are as the trace has them; those with other signs stand in double quotes:
\"my_app:request\". Times are UTC. Conditions on time, names and fields are asked where
events are decoded, and packets of other times are not read: `explain` shows that. Rows
without `order by` come in the order of time where nothing changes it.

Exit status: 0 all that was asked for was read, 1 something could not be read, 2 the query
is wrong.";

/// The help with the functions that analyses are, seven in a line.
fn help() -> String {
    let names: Vec<String> = analyses().iter().map(|entry| format!("{}()", entry.sql_name)).collect();
    let lines: Vec<String> = names.chunks(7).map(|names| names.join(" ")).collect();
    HELP.replace("FUNCTIONS", &lines.join("\n           "))
}

#[derive(Args)]
#[command(after_help = help(), override_usage = "kymo sql [OPTIONS] <TRACE>... [QUERY]")]
pub(crate) struct SqlArguments {
    /// Traces, and behind them a query: what has a space in it and is no file
    #[arg(required = true, value_name = "TRACE")]
    words: Vec<OsString>,
    /// How answers are written; by default as the name of the output says, else as a table
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<SqlFormat>,
    /// The same as `--format csv`
    #[arg(long, conflicts_with_all = ["format", "json"])]
    csv: bool,
    /// The same as `--format json`: an object in a line for each row
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The file to write the answer to
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What sorting, grouping and joining may hold in memory; beyond it, they write to temporary files
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub(crate) memory: u64,
    /// Does not rely on events being in the order of time: for clocks that step back
    #[arg(long)]
    pub(crate) unordered: bool,
    /// Sets the clocks of one trace, or of all below a folder, ahead by a time, which may be negative; may be repeated: of
    /// several, the nearest to a trace counts
    #[arg(long, value_name = "PATH=TIME", value_parser = trace_offset)]
    pub(crate) trace_offset: Vec<TraceOffset>,
    /// Threads to use; 0 means one for each core
    #[arg(long, default_value_t = 0, env = "KYMO_THREADS", hide_env_values = true)]
    pub(crate) threads: usize,
    /// Counts what has to be assumed as errors
    #[arg(long)]
    pub(crate) strict: bool,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    /// For people
    Table,
    /// Comma-separated values, with a line of names
    Csv,
    /// An object in a line for each row
    Json,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file; without an output, a stream
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
    pub(crate) fn chosen_format(&self) -> Result<SqlFormat, Stop> {
        match self {
            Self { csv: true, .. } => Ok(SqlFormat::Csv),
            Self { json: true, .. } => Ok(SqlFormat::Json),
            Self { format: Some(format), .. } => Ok(*format),
            Self { output: Some(output), .. } => of_name(output),
            _ => Ok(SqlFormat::Table),
        }
    }
}

fn of_name(output: &Path) -> Result<SqlFormat, Stop> {
    let Some(end) = output.extension() else { return Ok(SqlFormat::Table) };
    match end.to_str().unwrap_or_default() {
        "txt" => Ok(SqlFormat::Table),
        "csv" => Ok(SqlFormat::Csv),
        "json" | "jsonl" | "ndjson" => Ok(SqlFormat::Json),
        "parquet" => Ok(SqlFormat::Parquet),
        "arrow" | "feather" => Ok(SqlFormat::Arrow),
        _ => Err(Stop::Usage(format!(
            "the name `{}` says no format: it ends in .txt, .csv, .json, .parquet or .arrow, or `--format` says what to write",
            output.display()
        ))),
    }
}
