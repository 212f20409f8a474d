//! What the command line may say.

mod analyses;
mod lami;
mod print;
mod record;
mod registered;
mod roles;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "view")]
mod view;
mod when;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kymo_session::{AnalysisEntry, TraceOffset};

use crate::quantity::trace_offset;

pub(crate) use analyses::{
    AnalysisArguments, FaceArguments, NamedAnalysisArguments, PairsArguments, PeriodsArguments, SpanArguments,
    StateArguments, WantedArguments,
};
pub(crate) use lami::LamiArguments;
pub(crate) use print::{Color, Fields, Format, Names, PrintArguments};
#[cfg(any(target_os = "linux", feature = "view"))]
pub(crate) use record::SessionArguments;
pub(crate) use record::{
    DoctorArguments, RecordArguments, RecoverArguments, SessionsArguments, SnapshotArguments, StatusArguments,
    StopArguments, SwitchArguments,
};
#[cfg(target_os = "linux")]
pub(crate) use record::{Mode, RuleArguments};
pub(crate) use registered::AnyCommand;
pub(crate) use roles::RolesArguments;
#[cfg(feature = "sql")]
pub(crate) use sql::{SqlArguments, SqlFormat};
#[cfg(feature = "view")]
pub(crate) use view::{Listen, ViewArguments};
use when::Between;

/// Records, reads and shows traces.
#[derive(Parser)]
#[command(
    name = "kymo",
    version,
    override_usage = "kymo [OPTIONS] <TRACE>...    the same as `kymo info`\n       kymo <COMMAND>",
    about = "Opens any CTF trace, at memory speed",
    after_help = "Examples:\n  kymo my-trace                    what is in it, at a glance\n  \
                  kymo view my-trace               the same in the browser, on a timeline\n  \
                  kymo print my-trace | less       events as text, in the order of time\n  \
                  kymo count my-trace              events by class\n\n\
                  Exit status: 0 everything was read, with `--strict` without assumptions; 1 something could \
                  not be\nread, what could be was shown; 2 wrong usage."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: AnyCommand,
}

/// What is said to a command that is not in this build.
#[cfg(not(feature = "sql"))]
#[derive(Args)]
pub(crate) struct Absent {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<std::ffi::OsString>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Records what programs tell of themselves, as a trace
    Record(RecordArguments),
    /// Records events too from now on, in a session that runs
    Enable(SwitchArguments),
    /// Does not record events any more, in a session that runs
    Disable(SwitchArguments),
    /// Writes what a flight recorder has now, as a trace
    Snapshot(SnapshotArguments),
    /// Ends a session
    Stop(StopArguments),
    /// Says what is recorded now, of which programs, and where filters run
    Status(StatusArguments),
    /// Says which sessions run
    Sessions(SessionsArguments),
    /// Says what keeps programs from being recorded, and how to mend it
    Doctor(DoctorArguments),
    /// Makes traces of what a crash has left: of recorders, of programs, of machines
    Recover(RecoverArguments),
    /// Says what is in a trace, at a glance (the same as `kymo TRACE`)
    Info(InfoArguments),
    /// Opens traces in the browser, on a timeline (the same as `kymo TRACE --view`)
    #[cfg(feature = "view")]
    View(ViewArguments),
    /// Prints events as text, in the order of time
    Print(PrintArguments),
    /// Counts events by class, data stream or trace
    Count(CountArguments),
    /// Makes, refreshes or removes the packet index that lets other commands begin at once
    Index(IndexArguments),
    /// Says everything that is wrong with traces, where, and what to do
    Check(CheckArguments),
    /// Writes a part of a trace as a trace of its own
    Cut(CutArguments),
    /// Writes events as tables for pandas, DuckDB, Polars and their like
    #[cfg(feature = "export")]
    Export(ExportArguments),
    /// Answers SQL queries over traces, without an import
    #[cfg(feature = "sql")]
    Sql(SqlArguments),
    /// Answers SQL queries over traces; not in this build, which says how to get it
    #[cfg(not(feature = "sql"))]
    #[command(disable_help_flag = true)]
    Sql(Absent),
    /// Says what a filter expression means, and what is wrong with it
    Filter(FilterArguments),
    /// Says what the events of a trace mean to analyses, and writes that as a file to edit
    Roles(RolesArguments),
    /// Prints what a trace says of itself, as it is or in another dialect
    Metadata(MetadataArguments),
    // The registry has the sentences of these two.
    Pairs(PairsArguments),
    Periods(PeriodsArguments),
    /// An analysis of the registry: see `registered`.
    #[command(skip)]
    Analysis(&'static AnalysisEntry, AnalysisArguments),
    /// Says what CPUs and threads do at an instant: who runs where, who waits for what, since when and until when
    State(StateArguments),
    /// Runs an analysis that you declare in a file, without a program
    #[command(after_help = "Examples:\n  kymo analyse requests.toml my-trace\n  \
                            kymo analyse requests.toml --min 10ms --json my-trace\n\n\
                            A file says which events begin and end something, set a state or change a counter:\n\n  \
                            name = \"server\"\n  [[pairs]]\n  name = \"request\"\n  begin = \"server:request_begin\"\n  \
                            end = \"server:request_end\"\n  key = \"id\"")]
    Analyse(NamedAnalysisArguments),
    /// Runs an analysis for another program, such as Trace Compass, by the protocol LAMI 1.0
    Lami(LamiArguments),
    /// Writes shell completions to standard output
    #[command(after_help = "Example:\n  kymo completions bash > ~/.local/share/bash-completion/completions/kymo")]
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Writes the manual page to standard output
    #[command(after_help = "Examples:\n  kymo man | man -l -\n  kymo man print | man -l -")]
    Man {
        /// The command whose page it is; without one, all of `kymo`
        #[arg(value_name = "COMMAND")]
        page: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct Common {
    /// Traces: folders with a `metadata` file, folders above such, single stream files, or archives (tar,
    /// tar.gz, tar.zst, zip) of them
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
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

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo metadata my-trace\n  kymo metadata --as ctf2 my-trace")]
pub(crate) struct MetadataArguments {
    /// A trace, or a folder or archive of traces
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Writes it in this dialect instead of as it is
    #[arg(long = "as", value_enum, value_name = "DIALECT")]
    pub(crate) dialect: Option<Dialect>,
    /// Counts what has to be assumed as errors
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A language of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    /// CTF 2, JSON
    Ctf2,
    /// CTF 1.8, TSDL
    Tsdl,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo info my-trace\n  kymo info --exact my-trace    counts every event")]
pub(crate) struct InfoArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Counts every event instead of estimating from a few packets: reads the whole trace
    #[arg(long)]
    pub(crate) exact: bool,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

const COUNT_HELP: &str = "\
Examples:
  kymo count my-trace
  kymo count --by trace,class my-traces
  kymo count --by stream --sizes my-trace
  kymo count --filter 'ret < 0' my-trace
  kymo count --sizes --json my-trace | jq '.groups[0]'
  kymo analyse count --period 1s --csv my-trace    as an analysis, with the options of analyses

Rates are events over the time from the first packet to the end of the last, of all traces.
The size of an event is that of its whole record: header, contexts, payload, and the
padding before it.";

#[derive(Args)]
#[command(after_help = COUNT_HELP)]
pub(crate) struct CountArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to count apart
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', default_value = "class")]
    pub(crate) by: Vec<By>,
    /// Counts only events with such a name; `*` is any text, `?` any character; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Counts only events for which this expression is true, such as `next_prio < 100 && next_comm == "kworker*"`; see
    /// `kymo filter --help`
    #[arg(short = 'F', long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Says how large events are too; takes longer
    #[arg(long)]
    pub(crate) sizes: bool,
    /// Counts on while the trace is being recorded, until its recorder ends; what is counted is exact up to the time that is told
    #[arg(long)]
    pub(crate) follow: bool,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What events have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Name of the event record class
    Class,
    /// Data stream
    Stream,
    /// Trace
    Trace,
}

const INDEX_HELP: &str = "\
Examples:
  kymo index my-trace            afterwards `kymo print --begin` and `kymo info` begin at once
  kymo index --remove my-trace   gives the room back
  kymo index --json my-trace | jq '.traces[].streams[] | {name, state, reason}'

Other commands make and use the same index by themselves. It lies outside of the trace, in
$XDG_CACHE_HOME/kymograph or ~/.cache/kymograph, and may be deleted at any time. It is
believed while a stream's device, inode, size, time of change, first and last packet and
metadata are what they were; of a stream that only grew, known packets stay known.

Exit status: 0 all packets were found, 1 some could not be found or an index could not be
written, 2 wrong usage.";

#[derive(Args)]
#[command(after_help = INDEX_HELP)]
pub(crate) struct IndexArguments {
    /// Traces: folders with a `metadata` file, folders above such, single stream files, or archives (tar,
    /// tar.gz, tar.zst, zip) of them
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Deletes the index instead
    #[arg(long)]
    pub(crate) remove: bool,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

const CHECK_HELP: &str = "\
Examples:
  kymo check my-trace
  kymo check --strict my-traces && echo sound
  kymo check --json my-trace | jq -r '.findings[] | [.rule, .place] | @tsv'

Exit status: 0 everything can be read, 1 something cannot be read, 2 wrong usage.";

#[derive(Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckArguments {
    /// Traces: folders with a `metadata` file, folders above such, single stream files, or archives (tar,
    /// tar.gz, tar.zst, zip) of them
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Counts what has to be assumed as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo cut my-trace --begin 12:18:50 --end 12:18:50.5 --output part\n  \
                  kymo cut my-trace --event 'sched_*' --output part\n  \
                        kymo cut my-trace --as ctf2 --output converted")]
pub(crate) struct CutArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) between: Between,
    /// Keeps only events with such a name; `*` is any text, `?` any character; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Keeps only events for which this expression is true, such as `next_prio < 100 && next_comm == "kworker*"`; see
    /// `kymo filter --help`
    #[arg(short = 'F', long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Writes the metadata in this dialect instead of as it is
    #[arg(long = "as", value_enum, value_name = "DIALECT")]
    pub(crate) dialect: Option<Dialect>,
    /// The folder to make
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

const FILTER_HELP: &str = "\
Examples:
  kymo filter 'next_prio < 100 && next_comm == \"kworker*\"' my-trace
  kymo filter --explain 'ret < 0 && event.name == \"syscall_exit_*\"' my-trace
  kymo filter 'bytes > 4KiB' --session server --event 'disk:*'    what a session that runs keeps from now on
  kymo count --filter 'time >= @12:18:50.43 && cpu_id in (1, 3)' my-trace

Fields        next_tid   msg.header.id   stack[0]   $ctx.vtid   packet.cpu_id
Of the event  event.name  event.id  event.log_level  time  cycles
Of its trace  stream.id  stream.name  trace.name  env.hostname
Operators     || && == != < <= > >= in(...) =~ | ^ & << >> + - * / % ! ~   has(field)
Literals      12  0xff  1.5  5ms  10MiB  @12:18:50.43  \"text\"  \"kworker*\" (a pattern with == and !=)

`&`, `|` and `^` bind tighter than comparisons. What is asked of a field that an event does
not have is unknown; an event is kept only if the whole is true. The whole language stands
in docs/filter.md.

Exit status: 0 it may keep events, 1 it keeps none, 2 it is wrong.";

#[derive(Args)]
#[command(after_help = FILTER_HELP)]
pub(crate) struct FilterArguments {
    /// The expression
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) expression: String,
    /// Traces to ask for their classes of events; without any, only the expression is looked at
    #[arg(value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Sets the clocks of one trace, or of all below a folder, ahead by a time, which may be negative; may be repeated: of
    /// several, the nearest to a trace counts
    #[arg(long, value_name = "PATH=TIME", value_parser = trace_offset, requires = "traces")]
    pub(crate) trace_offset: Vec<TraceOffset>,
    /// Makes it the filter of events that this session records, instead of what they had; `kymo enable` takes it away
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["traces", "explain"])]
    pub(crate) session: Option<String>,
    /// Only in programs of such a name, or this number; `*` is any text; may be repeated (with `--session`)
    #[arg(short, long, value_name = "NAME|PID", requires = "session")]
    pub(crate) process: Vec<String>,
    /// Shows what becomes of it: tree, typed predicate, read program, bytecode
    #[arg(long)]
    pub(crate) explain: bool,
    /// Only classes of events with such a name; `*` is any text, `?` any character; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A file format of tables.
#[cfg(feature = "export")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Parquet: small
    Parquet,
    /// Arrow IPC files: read as they are
    Arrow,
}

#[cfg(feature = "export")]
#[derive(Args)]
#[command(after_help = "Examples:\n  kymo export my-trace --output tables\n  \
                        kymo export my-trace --event sched_switch --format arrow --output tables\n  \
                        duckdb -c \"select next_comm, count(*) from 'tables/sched_switch.parquet' group by 1\"\n\n\
                        Rows are in the order of time. `time` is in nanoseconds; null where 64 bits do not hold it.")]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// What files to write
    #[arg(long, value_enum, default_value_t = TableFormat::Parquet)]
    pub(crate) format: TableFormat,
    /// Gives every text `x` a second column `x_bytes`, with the bytes of those that are not valid text
    #[arg(long)]
    pub(crate) keep_bytes: bool,
    #[command(flatten)]
    pub(crate) between: Between,
    /// Writes only events with such a name; `*` is any text, `?` any character; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Writes only events for which this expression is true, such as `next_prio < 100 && next_comm == "kworker*"`; see
    /// `kymo filter --help`
    #[arg(short = 'F', long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}
