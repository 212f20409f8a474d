//! The arguments of `kymo print`.

use clap::{Args, ValueEnum};

use super::Common;
use super::when::Between;

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One line per event, byte for byte as `babeltrace2` prints it, but for times that it rounds (see below)
    Text,
    /// A block for each class, packet, event and loss, byte for byte as `babeltrace2`'s `sink.text.details`, but for such times
    Details,
    /// One JSON object per line; numbers are exact, times are nanoseconds since the clock's origin
    Json,
    /// Comma-separated values: one column per field if all events have the same fields, else one JSON column
    Csv,
    /// Nothing, but read everything
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
  kymo print --format details my-trace       print classes, packets and losses too
  kymo print --stream-intersection my-trace  only while all data streams are active
  kymo print --format none my-trace          read everything, print nothing
  kymo print --follow my-trace               continue while it is being recorded

Times are exact. Where a clock does not have 10^9 cycles a second, those of `babeltrace2` are up to
a nanosecond off: it rounds the clock's offset and its cycles one by one.";

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// If the output is a terminal that shows colors
    Auto,
    Always,
    Never,
}

#[derive(Args)]
#[command(after_help = PRINT_EXAMPLES)]
pub(crate) struct PrintArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Continue while the trace is being recorded, until its recorder ends
    #[arg(long)]
    pub(crate) follow: bool,
    /// Print only events with a matching name; `*` matches any text, `?` any character; repeatable
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Print only events for which this expression is true, such as `next_prio < 100 && next_comm == "kworker*"`; see
    /// `kymo filter --help`
    #[arg(short = 'F', long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Option<String>,
    /// Stop after this number of events
    #[arg(long, value_name = "EVENTS")]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) between: Between,
    /// Limit each trace to the time in which all its data streams are active
    #[arg(long)]
    pub(crate) stream_intersection: bool,
    /// Treat all clocks as counting from 1970-01-01, so that their times can be compared
    #[arg(long)]
    pub(crate) clock_force_correlate: bool,
    /// Use the colors of `babeltrace2`; `auto` respects `BABELTRACE_TERM_COLOR` and `NO_COLOR`
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Split an enumeration value without a label into labeled bits
    #[arg(long)]
    pub(crate) print_enum_flags: bool,
    /// Report the number of printed events on standard error
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Hide trace names, in details
    #[arg(long)]
    pub(crate) no_trace_name: bool,
    /// Hide data stream names, in details
    #[arg(long)]
    pub(crate) no_stream_name: bool,
    /// Show clock values in cycles
    #[arg(long)]
    pub(crate) clock_cycles: bool,
    /// Show the date too
    #[arg(long)]
    pub(crate) clock_date: bool,
    /// Show times in UTC instead of the local time zone
    #[arg(long)]
    pub(crate) clock_gmt: bool,
    /// Show times as seconds since the clock's origin
    #[arg(long)]
    pub(crate) clock_seconds: bool,
    /// Shift all clocks by seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) clock_offset: i64,
    /// Shift all clocks by nanoseconds
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) clock_offset_ns: i64,
    /// Hide the time since the previous event
    #[arg(long)]
    pub(crate) no_delta: bool,
    /// Names to show: payload, context, scope, header, all, none
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) names: Vec<NameChoice>,
    /// Fields of trace and event class to show: trace, trace:hostname, trace:domain, trace:procname, trace:vpid,
    /// loglevel, emf, all, none
    #[arg(short, long, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) fields: Vec<FieldChoice>,
}

impl PrintArguments {
    /// How far clocks are shifted.
    pub(crate) fn shift_ns(&self) -> i64 {
        self.clock_offset.saturating_mul(1_000_000_000).saturating_add(self.clock_offset_ns)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NameChoice {
    #[value(aliases = ["arg", "args"])]
    Payload,
    #[value(alias = "ctx")]
    Context,
    Scope,
    Header,
    All,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FieldChoice {
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
