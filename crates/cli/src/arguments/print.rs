//! What the command line may say to `kymo print`.

use clap::{Args, ValueEnum};

use super::Common;
use super::when::Between;

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One line per event, byte for byte as `babeltrace2` prints it
    Text,
    /// A block for everything that is in a trace, byte for byte as `babeltrace2`'s `sink.text.details` prints it
    Details,
    /// One JSON object per line; numbers are exact, times are nanoseconds since the clock's origin
    Json,
    /// Comma-separated values: a column for each field where the events have the same fields, else JSON in one
    Csv,
    /// Nothing: everything is read all the same
    None,
}

const PRINT_EXAMPLES: &str = "\
Examples:
  kymo print my-trace
  kymo print --clock-date --names all my-trace
  kymo print --limit 10 my-trace
  kymo print --color always my-trace | less -R
  kymo print --event 'sched_*' --format json my-trace | jq .payload
  kymo print --event sched_switch --format csv my-trace > switches.csv
  kymo print --filter 'next_tid == 4297' my-trace
  kymo print --begin 12:18:50 --end 12:18:50.5 my-trace
  kymo print --format details my-trace       classes, packets and losses too
  kymo print --stream-intersection my-trace  only while all data streams are active
  kymo print --format none my-trace          reads everything, prints nothing
  kymo print --follow my-trace               while it is being recorded, too";

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// Where a terminal shows it
    Auto,
    Always,
    Never,
}

#[derive(Args)]
#[command(after_help = PRINT_EXAMPLES)]
pub(crate) struct PrintArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Goes on while the trace is being recorded, until its recorder ends
    #[arg(long)]
    pub(crate) follow: bool,
    /// Prints only events with such a name; `*` is any text, `?` any character; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Prints only events for which this expression is true, such as `next_prio < 100 && next_comm == "kworker*"`; see
    /// `kymo filter --help`
    #[arg(short = 'F', long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Stops after so many events
    #[arg(long, value_name = "EVENTS")]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) between: Between,
    /// Shows of each trace only the time in which all its data streams are active
    #[arg(long)]
    pub(crate) stream_intersection: bool,
    /// Takes the times of all clocks as counted from 1970-01-01, so that they can be compared
    #[arg(long)]
    pub(crate) clock_force_correlate: bool,
    /// Colours, as `babeltrace2` uses them; `auto` also asks `BABELTRACE_TERM_COLOR` and `NO_COLOR`
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Splits a value of an enumeration that has no label into bits that have one
    #[arg(long)]
    pub(crate) print_enum_flags: bool,
    /// Says on standard error how many events were printed
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Shows no names of traces, in details
    #[arg(long)]
    pub(crate) no_trace_name: bool,
    /// Shows no names of data streams, in details
    #[arg(long)]
    pub(crate) no_stream_name: bool,
    /// Shows clock values in cycles
    #[arg(long)]
    pub(crate) clock_cycles: bool,
    /// Shows the date too
    #[arg(long)]
    pub(crate) clock_date: bool,
    /// Shows times in UTC instead of the local zone
    #[arg(long)]
    pub(crate) clock_gmt: bool,
    /// Shows times as seconds since the clock's origin
    #[arg(long)]
    pub(crate) clock_seconds: bool,
    /// Shifts all clocks by seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) clock_offset: i64,
    /// Shifts all clocks by nanoseconds
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) clock_offset_ns: i64,
    /// Hides the time since the event before
    #[arg(long)]
    pub(crate) no_delta: bool,
    /// Which names to show: payload, context, scope, header, all, none
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) names: Vec<Names>,
    /// What to show of trace and event class: trace, trace:hostname, trace:domain, trace:procname, trace:vpid,
    /// loglevel, emf, all, none
    #[arg(short, long, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) fields: Vec<Fields>,
}

impl PrintArguments {
    /// How far clocks are shifted.
    pub(crate) fn shift_ns(&self) -> i64 {
        self.clock_offset.saturating_mul(1_000_000_000).saturating_add(self.clock_offset_ns)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Names {
    Payload,
    Context,
    Scope,
    Header,
    All,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fields {
    Trace,
    #[value(name = "trace:hostname")]
    Hostname,
    #[value(name = "trace:domain")]
    Domain,
    #[value(name = "trace:procname")]
    Procname,
    #[value(name = "trace:vpid")]
    Vpid,
    Loglevel,
    Emf,
    Callsite,
    All,
    None,
}
