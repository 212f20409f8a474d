//! The arguments of the command line.

mod analyses;
mod bpf;
mod groups;
mod lami;
mod print;
mod reading;
mod record;
mod registered;
mod roles;
mod schema;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "view")]
mod view;
mod watch;
mod when;

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kymo_session::AnalysisEntry;

pub(crate) use analyses::{
    AnalysisArguments, BreakdownArguments, FaceArguments, NamedAnalysisArguments, PairsArguments, PeriodsArguments,
    SpanArguments, StateArguments, Top, WantedArguments,
};
pub(crate) use bpf::{BpfArguments, BpfCommand, BpfRunArguments, BpfShowArguments};
pub(crate) use lami::LamiArguments;
pub(crate) use print::{Color, FieldChoice, Format, NameChoice, PrintArguments};
pub(crate) use reading::{ImportArguments, ReadingArguments};
#[cfg(any(target_os = "linux", feature = "view"))]
pub(crate) use record::SessionArguments;
pub(crate) use record::{
    DoctorArguments, LimitArguments, RecordArguments, RecoverArguments, SessionsArguments, SnapshotArguments,
    StatusArguments, StopArguments, SwitchArguments, TriggerArguments,
};
#[cfg(target_os = "linux")]
pub(crate) use record::{KernelTexts, LossMode, RecordTarget, RuleArguments, TriggerDoes, TriggerPrograms};
pub(crate) use registered::AnyCommand;
pub(crate) use roles::RolesArguments;
pub(crate) use schema::{
    SchemaArguments, SchemaBuildArguments, SchemaCheckArguments, SchemaCommand, SchemaDiffArguments,
    SchemaFormatArguments, SchemaTarget,
};
#[cfg(feature = "sql")]
pub(crate) use sql::{SqlArguments, SqlFormat};
#[cfg(feature = "view")]
pub(crate) use view::{Listen, ViewArguments};
pub(crate) use watch::WatchArguments;
use when::Between;

/// The version. Builds for packages also name the commit and the platform that they were built for.
const VERSION: &str = match option_env!("KYMO_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Records, reads and shows traces.
#[derive(Parser)]
#[command(
    name = "kymo",
    version,
    long_version = VERSION,
    override_usage = "kymo [OPTIONS] <TRACE>...    same as `kymo info`\n       kymo <COMMAND>",
    about = "Record programs, and read, analyze and view CTF traces of any size",
    after_help = "Examples:\n  kymo my-trace                    summarize the trace\n  \
                  kymo view my-trace               open it in the browser, on a timeline\n  \
                  kymo print my-trace | less       print events in time order\n  \
                  kymo count my-trace              count events by class\n\n\
                  Exit status: 0 everything was read (with `--strict`, without assumptions);\n1 a part could not be \
                  read (the readable part is shown); 2 wrong usage, or a question\nthat these traces cannot answer."
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
    /// Record the events of user-space programs as a trace
    Record(RecordArguments),
    /// Enable more events in a running session
    Enable(SwitchArguments),
    /// Disable events in a running session
    Disable(SwitchArguments),
    /// Start, stop or snapshot a session at events, at once and in the program
    Trigger(TriggerArguments),
    /// List and set limits: which events programs keep of those that took long, or of many
    Limit(LimitArguments),
    /// Count events of the kernel there, without recording them: sums, distributions
    Watch(WatchArguments),
    /// Write the current contents of a flight recorder as a trace
    Snapshot(SnapshotArguments),
    /// End a session
    Stop(StopArguments),
    /// Show recorded programs and events, and where filters run
    Status(StatusArguments),
    /// List the running sessions
    Sessions(SessionsArguments),
    /// Find problems that keep programs from being recorded, with remedies
    Doctor(DoctorArguments),
    /// Recover traces after a crash of a recorder, a program or the machine
    Recover(RecoverArguments),
    /// Summarize a trace (same as `kymo TRACE`)
    Info(InfoArguments),
    /// Open traces in the browser, on a timeline (same as `kymo TRACE --view`)
    #[cfg(feature = "view")]
    View(ViewArguments),
    /// Print events as text, in time order
    Print(PrintArguments),
    /// Count events by class, data stream or trace
    Count(CountArguments),
    /// Build, refresh or remove the packet index, with which other commands start at once
    Index(IndexArguments),
    /// List all problems of traces, with places and remedies
    Check(CheckArguments),
    /// Write a part of a trace as a new trace
    Cut(CutArguments),
    /// Write events as tables for pandas, DuckDB, Polars and similar tools
    #[cfg(feature = "export")]
    Export(ExportArguments),
    /// Run SQL queries over traces, without an import
    #[cfg(feature = "sql")]
    Sql(SqlArguments),
    /// Run SQL queries over traces (not in this build; run it to see how to get it)
    #[cfg(not(feature = "sql"))]
    #[command(disable_help_flag = true)]
    Sql(Absent),
    /// Explain a filter expression, and report its errors
    Filter(FilterArguments),
    /// Show eBPF objects of clang, and run their programs over the events of a trace
    Bpf(BpfArguments),
    /// Show how analyses interpret the events of a trace, and write the mapping to a file
    Roles(RolesArguments),
    /// Define events once: make headers, modules, metadata and documentation from a schema
    Schema(SchemaArguments),
    /// Print the metadata of a trace, unchanged or in another dialect
    Metadata(MetadataArguments),
    // The registry has the sentences of these.
    Pairs(PairsArguments),
    Breakdown(BreakdownArguments),
    Periods(PeriodsArguments),
    /// An analysis of the registry: see `registered`.
    #[command(skip)]
    Analysis(&'static AnalysisEntry, AnalysisArguments),
    /// Show the state of all CPUs and threads at one instant, with begin, end and reason
    State(StateArguments),
    /// Run an analysis that you declare in a file
    #[command(after_help = "Examples:\n  kymo analyse requests.toml my-trace\n  \
                            kymo analyse requests.toml --min 10ms --json my-trace\n\n\
                            A file declares which events begin and end a duration, set a state or change a counter:\n\n  \
                            name = \"server\"\n  [[pairs]]\n  name = \"request\"\n  begin = \"server:request_begin\"\n  \
                            end = \"server:request_end\"\n  key = \"id\"")]
    Analyse(NamedAnalysisArguments),
    /// Run an analysis for other programs, such as Trace Compass, with the LAMI 1.0 protocol
    Lami(LamiArguments),
    /// Write shell completions to standard output
    #[command(after_help = "Example:\n  kymo completions bash > ~/.local/share/bash-completion/completions/kymo")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write manual pages to standard output or to a folder
    #[command(after_help = "Examples:\n  kymo man | man -l -\n  kymo man print | man -l -\n  \
                            kymo man --output ~/.local/share/man/man1    a page for each command")]
    Man {
        /// The command to document; default: all of `kymo`
        #[arg(value_name = "COMMAND")]
        page: Option<String>,
        /// Write one page for each command to this folder, which is created if necessary
        #[arg(long, short, value_name = "FOLDER", conflicts_with = "page")]
        output: Option<PathBuf>,
    },
}

#[derive(Args)]
pub(crate) struct Common {
    /// Traces: folders with a `metadata` file, parent folders of these, single stream files, archives (tar, tar.gz,
    /// tar.zst, zip) of them, captures of packets (pcapng, pcap), dumps of
    /// Barrelfish, or trees of Genode's recorder
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
    /// Number of threads; 0: one for each core
    #[arg(long, default_value_t = 0, env = "KYMO_THREADS", hide_env_values = true)]
    pub(crate) threads: usize,
    /// Count assumptions as errors
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo metadata my-trace\n  kymo metadata --as ctf2 my-trace")]
pub(crate) struct MetadataArguments {
    /// A trace, or a folder or archive of traces
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Convert the metadata to this dialect
    #[arg(long = "as", value_enum, value_name = "DIALECT")]
    pub(crate) dialect: Option<MetadataDialect>,
    /// Count assumptions as errors
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) import: ImportArguments,
}

/// A language of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetadataDialect {
    /// CTF 2, JSON
    Ctf2,
    /// CTF 1.8, TSDL
    Tsdl,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo info my-trace\n  kymo info --exact my-trace    count every event")]
pub(crate) struct InfoArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Count every event instead of estimating from a few packets (reads the whole trace)
    #[arg(long)]
    pub(crate) exact: bool,
    /// Print one JSON object
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
  kymo analyse count --period 1s --csv my-trace    count as an analysis, with its options

Rates divide by the time from the first packet to the end of the last packet of all traces.
The size of an event is the size of its record: header, contexts, payload, and the padding
before it.";

#[derive(Args)]
#[command(after_help = COUNT_HELP)]
pub(crate) struct CountArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Group by these properties
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', default_value = "class")]
    pub(crate) by: Vec<By>,
    /// Count only events with a matching name; `*` matches any text, `?` any character; repeatable
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Count only events for which this expression is true, such as `next_prio < 100 && next_comm == "kworker*"`; see
    /// `kymo filter --help`
    #[arg(short = 'F', long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Option<String>,
    /// Show the sizes of events too; takes longer
    #[arg(long)]
    pub(crate) sizes: bool,
    /// Maximum number of rows on a terminal; `all` or 0: no limit; default: 10
    #[arg(long, visible_alias = "limit", value_name = "ROWS")]
    pub(crate) top: Option<Top>,
    /// Show everything, as in a pipe
    #[arg(long)]
    pub(crate) wide: bool,
    /// Continue while the trace is being recorded, until its recorder ends; counts are exact up to the printed time
    #[arg(long)]
    pub(crate) follow: bool,
    /// Print one JSON object
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
  kymo index my-trace            then `kymo print --begin` and `kymo info` start at once
  kymo index --remove my-trace   free the space
  kymo index --json my-trace | jq '.traces[].streams[] | {name, state, reason}'

Other commands build and use the same index automatically. It is stored outside of the trace,
in $XDG_CACHE_HOME/kymograph or ~/.cache/kymograph, and you may delete it at any time. It is
valid while device, inode, size, modification time, first and last packet and metadata of a
stream are unchanged; if a stream has only grown, the packets in the index stay valid.

Exit status: 0 all packets were found, 1 some packets could not be found or an index could not
be written, 2 wrong usage.";

#[derive(Args)]
#[command(after_help = INDEX_HELP)]
pub(crate) struct IndexArguments {
    /// Traces: folders with a `metadata` file, parent folders of these, single stream files, archives (tar, tar.gz,
    /// tar.zst, zip) of them, captures of packets (pcapng, pcap), dumps of
    /// Barrelfish, or trees of Genode's recorder
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Delete the index
    #[arg(long)]
    pub(crate) remove: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) import: ImportArguments,
}

const CHECK_HELP: &str = "\
Examples:
  kymo check my-trace
  kymo check --strict my-traces && echo sound
  kymo check --json my-trace | jq -r '.findings[] | [.rule, .place] | @tsv'

Exit status: 0 everything can be read, 1 a part cannot be read, 2 wrong usage.";

#[derive(Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckArguments {
    /// Traces: folders with a `metadata` file, parent folders of these, single stream files, archives (tar, tar.gz,
    /// tar.zst, zip) of them, captures of packets (pcapng, pcap), dumps of
    /// Barrelfish, or trees of Genode's recorder
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Count assumptions as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) import: ImportArguments,
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
    /// Keep only events with a matching name; `*` matches any text, `?` any character; repeatable
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Keep only events for which this expression is true, such as `next_prio < 100 && next_comm == "kworker*"`; see
    /// `kymo filter --help`
    #[arg(short = 'F', long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Option<String>,
    /// Convert the metadata to this dialect
    #[arg(long = "as", value_enum, value_name = "DIALECT")]
    pub(crate) dialect: Option<MetadataDialect>,
    /// The folder to create
    #[arg(short, long, value_name = "DIR", value_parser = NewFolder)]
    pub(crate) output: PathBuf,
}

const FILTER_HELP: &str = "\
Examples:
  kymo filter 'next_prio < 100 && next_comm == \"kworker*\"' my-trace
  kymo filter --explain 'ret < 0 && event.name == \"syscall_exit_*\"' my-trace
  kymo filter 'bytes > 4KiB' --session server --event 'disk:*'    change a running session
  kymo count --filter 'time >= @12:18:50.43 && cpu_id in (1, 3)' my-trace

Fields        next_tid   msg.header.id   stack[0]   $ctx.vtid   packet.cpu_id
Of the event  event.name  event.id  event.log_level  time  cycles
Of its trace  stream.id  stream.name  trace.name  env.hostname
Operators     || && == != < <= > >= in(...) =~ | ^ & << >> + - * / % ! ~   has(field)
Literals      12  0xff  1.5  5ms  10MiB  @12:18:50.43  \"text\"  \"kworker*\" (a pattern with == and !=)

`&`, `|` and `^` bind tighter than comparisons. A comparison with a field that the event does
not have is unknown; a filter keeps an event only if the expression is true. docs/filter.md
describes the language.

Exit status: 0 the filter may keep events, 1 it keeps no event, 2 it has an error.";

#[derive(Args)]
#[command(after_help = FILTER_HELP)]
pub(crate) struct FilterArguments {
    /// The expression
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) expression: String,
    /// Traces whose event classes the expression is checked against; default: check the syntax only
    #[arg(value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
    /// Replace the filters of events of this session; `kymo enable` removes the filter
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["traces", "explain"])]
    pub(crate) session: Option<String>,
    /// Only in programs with a matching name or this PID; `*` matches any text; repeatable (with `--session`)
    #[arg(short, long, value_name = "NAME|PID", requires = "session")]
    pub(crate) process: Vec<String>,
    /// Show the compiled forms: tree, typed predicate, read program, bytecode
    #[arg(long)]
    pub(crate) explain: bool,
    /// Only event classes with a matching name; `*` matches any text, `?` any character; repeatable
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A format of files that are made of traces.
#[cfg(feature = "export")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// Parquet: compressed columns
    Parquet,
    /// Arrow IPC files: memory-mappable columns
    Arrow,
    /// A capture of the packets in the traces; the output is a new file
    Pcapng,
}

#[cfg(feature = "export")]
#[derive(Args)]
#[command(after_help = "Examples:\n  kymo export my-trace --output tables\n  \
                        kymo export my-trace --event sched_switch --format arrow --output tables\n  \
                        kymo export my-trace --format pcapng --output packets.pcapng\n  \
                        duckdb -c \"select next_comm, count(*) from 'tables/sched_switch.parquet' group by 1\"\n\n\
                        Rows are in time order. `time` is in nanoseconds; null if it does not fit 64 bits.")]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The file format
    #[arg(long, value_enum, default_value_t = TableFormat::Parquet)]
    pub(crate) format: TableFormat,
    /// Add a column `x_bytes` to each text column `x`, with the bytes of invalid texts
    #[arg(long)]
    pub(crate) keep_bytes: bool,
    #[command(flatten)]
    pub(crate) between: Between,
    /// Write only events with a matching name; `*` matches any text, `?` any character; repeatable
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Write only events for which this expression is true, such as `next_prio < 100 && next_comm == "kworker*"`; see
    /// `kymo filter --help`
    #[arg(short = 'F', long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Option<String>,
    /// With `--format pcapng`: write only packets for which this expression about their heads is true, such as
    /// `udp.destination_port == 53` (docs/packets.md)
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) packet_filter: Option<String>,
    /// The output folder; with `--format pcapng`, the new file
    #[arg(short, long, value_name = "DIR", value_parser = NewFolder)]
    pub(crate) output: PathBuf,
}

/// The parser of a folder to be made. A trace is a folder of this machine: standard output and other machines can hold none.
#[derive(Clone)]
pub(crate) struct NewFolder;

impl TypedValueParser for NewFolder {
    type Value = PathBuf;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<PathBuf, clap::Error> {
        PathBufValueParser::new().try_map(new_folder).parse_ref(command, argument, value)
    }
}

fn new_folder(path: PathBuf) -> Result<PathBuf, String> {
    let text = path.to_string_lossy();
    if text == "-" {
        return Err(
            "this is a folder of files, which standard output cannot hold; `./-` is a folder of that name".to_owned()
        );
    }
    match text.split_once("://") {
        Some((scheme, _)) if !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            Err("this is a folder of this machine, and cannot be a URL".to_owned())
        }
        _ => Ok(path),
    }
}
