//! The command line's arguments for every analysis, with the words of `lttng-analyses` beside our
//! own.
//!
//! ```text
//! kymo cpu TRACE      Common + SpanArguments + WantedArguments + FaceArguments
//! kymo lami cpu TRACE          nanoseconds   + WantedArguments, see `lami`
//! ```

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use kymo_session::{
    AnalysisOptions, BINS, Definitions, Order, PeriodProblem, Selection, SupportedOptions, Unsupported, When, Wishes,
};

use super::Common;
use super::print::Color;
use super::when::Between;
use crate::quantity::{micros, seconds, size};

/// Which analysis, and what it is told.
#[derive(Args)]
pub(crate) struct NamedAnalysisArguments {
    /// A file that declares the analysis, or the name of a built-in analysis
    #[arg(value_name = "FILE")]
    pub(crate) analysis: String,
    #[command(flatten)]
    pub(crate) told: AnalysisArguments,
}

/// Which events are pairs.
#[derive(Args)]
#[command(after_help = PAIRS_HELP)]
pub(crate) struct PairsArguments {
    #[command(flatten)]
    pub(crate) told: AnalysisArguments,
    /// Events that begin a pair: `NAME` or `NAME if EXPR`; `*` matches any text; repeatable. Default without `--stop`:
    /// events with the roles `begin` and `end`; see `kymo roles`
    #[arg(long, value_name = "EVENT")]
    pub(crate) start: Vec<String>,
    /// Events that end a pair
    #[arg(long, value_name = "EVENT")]
    pub(crate) stop: Vec<String>,
    /// Fields that both events share: `FIELD`, or `FIELD=FIELD` if the end event names it differently
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// Group pairs by this field of the start event
    #[arg(long, value_name = "FIELD")]
    pub(crate) group: Option<String>,
    /// Allow nesting: a second start opens a second pair, and the last started pair ends first
    #[arg(long)]
    pub(crate) nested: bool,
}

const PAIRS_HELP: &str = "\
Examples:
  kymo pairs --start irq_handler_entry --stop irq_handler_exit --key packet.cpu_id,irq my-trace
  kymo pairs --start 'sched_wakeup' --stop sched_switch --key tid=next_tid --top 20 my-trace
  kymo pairs --start 'app:*_begin if size > 4KiB' --stop 'app:*_end' --key id --group name my-trace
  kymo pairs --min 10ms my-trace            use the roles `begin` and `end`

Starts without an end and ends without a start have rows of their own.";

/// Which events are operations, and their steps.
#[derive(Args)]
#[command(after_help = BREAKDOWN_HELP)]
pub(crate) struct BreakdownArguments {
    #[command(flatten)]
    pub(crate) told: AnalysisArguments,
    /// Events that begin an operation: `NAME` or `NAME if EXPR`; `*` matches any text; repeatable. Default: capability
    /// operations of Barrelfish
    #[arg(long, value_name = "EVENT", requires = "stop", requires = "key")]
    pub(crate) start: Vec<String>,
    /// Events that end an operation
    #[arg(long, value_name = "EVENT", requires = "start")]
    pub(crate) stop: Vec<String>,
    /// Fields that all events of an operation share: `FIELD`, or `FIELD=FIELD` if the end event names it differently
    #[arg(long, value_name = "FIELD", value_delimiter = ',', requires = "start")]
    pub(crate) key: Vec<String>,
    /// Only these events are steps; default: every event with the fields of --key
    #[arg(long, value_name = "EVENT", requires = "start")]
    pub(crate) step: Vec<String>,
}

const BREAKDOWN_HELP: &str = "\
Examples:
  kymo breakdown dump.trc                   capability operations of Barrelfish, by their numbers
  kymo breakdown --start server:begin --stop server:end --key id my-trace
  kymo breakdown --start 'app:*_begin' --stop 'app:*_end' --step 'app:*' --key id my-trace

If names of --start and --stop have a `*`, operations are told apart by the text that the first one stands for.
`[[operations]]` of an own analysis says more: docs/own-analyses.md.

Tables: operations, steps (of all operations), longest-operations, breakdown (each step of these), unmatched (events
without an operation), operation-durations. docs/analyses.md defines them.";

/// How periods are summed up.
#[derive(Args)]
#[command(after_help = PERIODS_HELP)]
pub(crate) struct PeriodsArguments {
    #[command(flatten)]
    pub(crate) told: AnalysisArguments,
    /// Show the parts of each period of this name: the time within the periods that it contains
    #[arg(long, value_name = "NAME")]
    pub(crate) aggregate_by: Option<String>,
    /// Use only these periods as parts; default: all contained periods
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "aggregate_by")]
    pub(crate) select: Vec<String>,
    /// Group periods by values of --period-captures, of the period or of a containing period: `NAME.WORD`
    #[arg(long, value_name = "NAME.WORD", value_delimiter = ',')]
    pub(crate) group_by: Vec<String>,
    /// Sort order of periods
    #[arg(long, value_enum, value_name = "ORDER", default_value = "duration")]
    pub(crate) order_by: OrderBy,
}

const PERIODS_HELP: &str = "\
Examples:
  kymo periods --period 'frame : app:vsync' my-trace
  kymo periods --period 'call : rpc:begin : rpc:end if id == $begin.id' \\
    --period-captures 'call : peer=peer : status=status' --group-by call.peer,call.status my-trace
  kymo periods --period 'request : begin : end if id == $begin.id' \\
    --period 'phase(request) : phase_begin if id == $parent.id : phase_end if id == $parent.id' \\
    --period-captures 'request : client=client' \\
    --aggregate-by request --group-by request.client my-trace
  kymo periods --period ': irq_handler_entry : irq_handler_exit if irq == $begin.irq' \\
    --min 1ms --top all --order-by time --csv --table periods my-trace

`$begin` is the event that began the period; 'NAME(OTHER) : ...' begins only while a period OTHER
is open, and `$parent` is the first event of that one. Without END, each BEGIN ends the previous
period. Put spaces around the colons. With other analyses, --period separates their results by
period: `kymo cpu --help`.

Tables: statistics, per-part and per-parent (with --aggregate-by; a part without a name is the time
in which no part is open), periods, open (never ended), distribution. docs/analyses.md defines them.";

/// Sort order of periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderBy {
    /// Longest first
    Duration,
    /// By begin
    Time,
    /// By begin, each period after the period that contains it
    Hierarchy,
}

impl From<OrderBy> for Order {
    fn from(order: OrderBy) -> Self {
        match order {
            OrderBy::Duration => Self::Duration,
            OrderBy::Time => Self::Time,
            OrderBy::Hierarchy => Self::Hierarchy,
        }
    }
}

/// At which instant.
#[derive(Args)]
#[command(after_help = STATE_HELP)]
pub(crate) struct StateArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instant: a time of day, a date with one, or seconds since the clock's origin
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) at: When,
    /// Parse and show times in UTC instead of the local time zone
    #[arg(long, visible_alias = "gmt")]
    pub(crate) clock_gmt: bool,
    /// Show times as seconds since the clock's origin
    #[arg(long)]
    pub(crate) clock_seconds: bool,
    /// Maximum number of threads; `all` or 0: no limit; default in tables: 10
    #[arg(long, visible_alias = "limit", value_name = "ROWS")]
    pub(crate) top: Option<Top>,
    /// Only these CPUs, and threads that run on them: `0,2-3`
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub(crate) cpu: Vec<CpuRange>,
    /// Only these threads
    #[arg(long, value_name = "TIDS", value_delimiter = ',')]
    pub(crate) tid: Vec<i64>,
    /// Only threads with a matching name; `*` matches any text, `?` any character
    #[arg(long, visible_alias = "comm", value_name = "GLOBS", value_delimiter = ',')]
    pub(crate) procname: Vec<String>,
    /// Show the states of an own analysis (`kymo analyse`) too: `[[states]]` of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) own: Option<PathBuf>,
    /// A mapping from events to roles, which takes precedence over the built-in mappings
    #[arg(long, value_name = "FILE")]
    pub(crate) roles: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) face: FaceArguments,
}

const STATE_HELP: &str = "\
Examples:
  kymo state --at 17:46:23.5 my-trace
  kymo state --at 17:46:23.5 --comm 'nginx*' --top all my-trace
  kymo state --at 17:46:23.5 --cpu 0-3 --json my-trace | jq '.tables[0].rows'
  kymo state --at 17:46:23.5 --own server.toml --table own-states my-trace

The first run reads the whole trace and caches the states of CPUs and threads; later runs answer
for any instant at once. The states of an own analysis are cached until its file changes.";

impl StateArguments {
    /// As plain values; `top` counts where nothing was said.
    pub(crate) fn options(&self, top: Option<usize>) -> AnalysisOptions {
        let wishes = Wishes {
            top: self.top.map_or(top, |top| top.0),
            cpus: cpus(&self.cpu),
            tids: self.tid.clone(),
            comms: self.procname.clone(),
            ..Wishes::default()
        };
        AnalysisOptions { wishes, roles: self.roles.clone(), ..AnalysisOptions::default() }
    }
}

/// What every analysis may be told.
#[derive(Args)]
pub(crate) struct AnalysisArguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) span: SpanArguments,
    #[command(flatten)]
    pub(crate) wanted: WantedArguments,
    #[command(flatten)]
    pub(crate) face: FaceArguments,
}

/// From when to when.
#[derive(Args)]
pub(crate) struct SpanArguments {
    #[command(flatten)]
    pub(crate) between: Between,
    /// Parse and show times in UTC instead of the local time zone
    #[arg(long, visible_alias = "gmt")]
    pub(crate) clock_gmt: bool,
    /// Show times as seconds since the clock's origin
    #[arg(long)]
    pub(crate) clock_seconds: bool,
}

/// Which events and results are wanted, and how they are divided.
#[derive(Args)]
pub(crate) struct WantedArguments {
    /// Use only events for which this expression is true, such as `next_prio < 100 && next_comm == "kworker*"`; see
    /// `kymo filter --help`
    #[arg(short = 'F', long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Option<String>,
    /// Group by these words of the analysis; an unknown word lists them
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Maximum number of rows of each table (of each period), but for courses and distributions; with --json, of ranked tables; `all` or 0: no limit;
    /// default in tables: 10
    #[arg(long, visible_alias = "limit", value_name = "ROWS")]
    pub(crate) top: Option<Top>,
    /// Only durations of at least this length: `3ms`; a bare number is in microseconds
    #[arg(long, alias = "min-duration", value_name = "DURATION", value_parser = micros)]
    pub(crate) min: Option<u64>,
    /// Only durations of at most this length
    #[arg(long, alias = "max-duration", value_name = "DURATION", value_parser = micros)]
    pub(crate) max: Option<u64>,
    /// Only sizes of at least: `4KiB`
    #[arg(long, visible_alias = "minsize", value_name = "SIZE", value_parser = size)]
    pub(crate) min_size: Option<u64>,
    /// Only sizes of at most
    #[arg(long, visible_alias = "maxsize", value_name = "SIZE", value_parser = size)]
    pub(crate) max_size: Option<u64>,
    /// Only on these CPUs: `0,2-3`
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub(crate) cpu: Vec<CpuRange>,
    /// Only these threads
    #[arg(long, value_name = "TIDS", value_delimiter = ',')]
    pub(crate) tid: Vec<i64>,
    /// Only threads with a matching name; `*` matches any text, `?` any character
    #[arg(long, visible_alias = "comm", value_name = "GLOBS", value_delimiter = ',')]
    pub(crate) procname: Vec<String>,
    /// Only system calls, pairs of groups, or messages with a matching name; of `stacks`, those with such a function
    #[arg(long, value_name = "GLOBS", value_delimiter = ',')]
    pub(crate) name: Vec<String>,
    /// Only these interrupts, by number, and the softirqs of --softirq
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) irq: Vec<i64>,
    /// Only these softirqs, by number, and the interrupts of --irq
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) softirq: Vec<i64>,
    /// Of `sched`, the total alone
    #[arg(long, hide = true)]
    pub(crate) total: bool,
    /// As `--by thread`
    #[arg(long, hide = true)]
    pub(crate) per_tid: bool,
    /// As `--by priority`
    #[arg(long, hide = true)]
    pub(crate) per_prio: bool,
    /// Separate results for each interval of this length (a bare number is in seconds), or for periods between events:
    /// `NAME : BEGIN [: END]`, both `EVENT` or `EVENT if CONDITION`; repeatable. See `kymo cpu --help`
    #[arg(long, visible_alias = "refresh", value_name = "DURATION|EVENTS")]
    pub(crate) period: Vec<PeriodArgument>,
    /// Values of periods to show: `NAME : WORD=FIELD, ... [: WORD=FIELD, ...]`, of the begin and the end event
    #[arg(long, value_name = "FIELDS", requires = "period")]
    pub(crate) period_captures: Vec<String>,
    /// Number of bins of distributions
    #[arg(long, visible_alias = "freq-resolution", value_name = "BINS", default_value_t = BINS,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub(crate) bins: usize,
    /// Use the same bins for all distributions of one kind
    #[arg(long)]
    pub(crate) freq_uniform: bool,
    /// Put distributions of one kind into one table, with the same bins
    #[arg(long)]
    pub(crate) freq_series: bool,
    /// A mapping from events to roles, which takes precedence over the built-in mappings
    #[arg(long, value_name = "FILE")]
    pub(crate) roles: Option<PathBuf>,
    /// Is always so: answers of traces with losses say what they do not know
    #[arg(long, hide = true)]
    pub(crate) skip_validation: bool,
    /// Is always so: all the time of all data streams counts
    #[arg(long, hide = true)]
    pub(crate) no_intersection: bool,
}

/// How the answer is shown.
#[derive(Args)]
pub(crate) struct FaceArguments {
    /// Print one JSON object
    #[arg(long, conflicts_with_all = ["csv", "lami"])]
    pub(crate) json: bool,
    /// Print comma-separated values: the first table, or the tables of --table
    #[arg(long, conflicts_with = "lami")]
    pub(crate) csv: bool,
    /// Print the results object of LAMI 1.0, which Trace Compass reads; see `kymo lami --help`
    #[arg(long)]
    pub(crate) lami: bool,
    /// Show only these tables, by their class; `all`
    #[arg(long, value_name = "CLASSES", value_delimiter = ',')]
    pub(crate) table: Vec<String>,
    /// Show everything, as wide as it is: all tables and columns, without a headline, as in a pipe
    #[arg(long)]
    pub(crate) wide: bool,
    /// Show all bounds of numbers; on a terminal, bounds that differ by less than 1 % are left out by default
    #[arg(long)]
    pub(crate) exact: bool,
    /// Show numbers only, without bars and time series
    #[arg(long)]
    pub(crate) no_plot: bool,
    /// When to use colors; `auto`: on a terminal, unless `NO_COLOR` is set
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Do not use colors, as `--color never`
    #[arg(long, conflicts_with = "color")]
    pub(crate) no_color: bool,
    /// Do not show progress
    #[arg(long)]
    pub(crate) no_progress: bool,
    /// Does one after the other what so many threads would do, and says on standard error what: read, merge or leave, by which
    /// thread, when it would begin and how long it took, in nanoseconds; and how long all of it lasted
    #[arg(long, value_name = "THREADS", hide = true)]
    pub(crate) rehearse: Option<usize>,
}

impl FaceArguments {
    /// When to use colors.
    pub(crate) fn color(&self) -> Color {
        if self.no_color { Color::Never } else { self.color }
    }

    /// Whether no program reads it.
    pub(crate) fn is_for_people(&self) -> bool {
        !(self.csv || self.json || self.lami)
    }
}

/// How long periods are, or which events begin and end them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeriodArgument {
    /// In nanoseconds.
    Length(u64),
    /// As it is said.
    Events(String),
}

impl FromStr for PeriodArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match seconds(text) {
            Ok(length) => Ok(Self::Length(length)),
            Err(_) if text.contains(" : ") || text.trim_start().starts_with(':') => Ok(Self::Events(text.to_owned())),
            Err(_) => Err("it is a length of time such as `1.5ms`, or events: `NAME : BEGIN [: END]`"),
        }
    }
}

impl PeriodArgument {
    fn length(&self) -> Option<u64> {
        if let Self::Length(length) = self { Some(*length) } else { None }
    }

    fn events(&self) -> Option<String> {
        if let Self::Events(text) = self { Some(text.clone()) } else { None }
    }
}

/// Rows of a table at most; `None`: all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Top(pub(crate) Option<usize>);

impl FromStr for Top {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" | "unlimited" | "0" => Ok(Self(None)),
            number => number.parse().map(|rows| Self(Some(rows))).map_err(|_| "it is a number of rows, or `all`"),
        }
    }
}

/// CPUs that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuRange {
    first: u32,
    last: u32,
}

/// More CPUs than any machine has are a slip of a finger.
const CPUS_MAX: u32 = 1 << 16;

impl FromStr for CpuRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "it is a CPU's number or a range of them, `0,2-3`; none is above 65535";
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|cpu| *cpu < CPUS_MAX).ok_or(EXPECTED);
        let range = Self { first: number(first)?, last: number(last)? };
        if range.first <= range.last { Ok(range) } else { Err(EXPECTED) }
    }
}

/// Each CPU of these ranges once.
fn cpus(ranges: &[CpuRange]) -> Vec<u32> {
    let mut cpus: Vec<u32> = ranges.iter().flat_map(|range| range.first..=range.last).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

impl WantedArguments {
    /// As plain values; `top` counts where nothing was said.
    pub(crate) fn options(
        &self,
        selection: Selection,
        (begin_ns, end_ns): (Option<i64>, Option<i64>),
        top: Option<usize>,
    ) -> AnalysisOptions {
        let periods = self.periods().ok().flatten();
        let roles = self.roles.clone();
        AnalysisOptions { selection, begin_ns, end_ns, wishes: self.wishes(top), periods, roles }
    }

    /// Which results are wanted; `top` counts where nothing was said.
    fn wishes(&self, top: Option<usize>) -> Wishes {
        Wishes {
            by: self.by(),
            top: self.top.map_or(top, |top| top.0),
            min_ns: self.min,
            max_ns: self.max,
            min_bytes: self.min_size,
            max_bytes: self.max_size,
            cpus: cpus(&self.cpu),
            tids: self.tid.clone(),
            irqs: self.irq.clone(),
            softirqs: self.softirq.clone(),
            names: self.name.clone(),
            comms: self.procname.clone(),
            period_ns: self.period.iter().find_map(PeriodArgument::length),
            bins: self.bins,
            // Distributions in one table have the same bins.
            uniform_bins: self.freq_uniform || self.freq_series,
            series: self.freq_series,
        }
    }

    /// What is told apart, also in the words of `lttng-schedstats`.
    fn by(&self) -> Vec<String> {
        let words = [(self.total, "total"), (self.per_tid, "thread"), (self.per_prio, "priority")];
        let said = words.into_iter().filter(|word| word.0).map(|word| word.1.to_owned());
        self.by.iter().cloned().chain(said).collect()
    }

    /// Periods that begin and end with events, if there are any.
    fn periods(&self) -> Result<Option<Definitions>, PeriodProblem> {
        let texts: Vec<String> = self.period.iter().filter_map(PeriodArgument::events).collect();
        (!texts.is_empty()).then(|| Definitions::parse(&texts, &self.period_captures)).transpose()
    }

    /// What cannot be, in a sentence.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let is_more = |min: Option<u64>, max: Option<u64>| min.zip(max).is_some_and(|(min, max)| min > max);
        if is_more(self.min, self.max) {
            Some("--min is longer than --max".to_owned())
        } else if is_more(self.min_size, self.max_size) {
            Some("--min-size is larger than --max-size".to_owned())
        } else if self.period.len() > 1 && self.period.iter().any(|period| period.length().is_some()) {
            Some("--period with a length of time stands alone".to_owned())
        } else if !self.period_captures.is_empty() && self.period.iter().all(|period| period.length().is_some()) {
            Some("--period-captures tells of periods that begin and end with events".to_owned())
        } else {
            self.periods().err().map(|problem| format!("--period: {problem}"))
        }
    }

    /// What an analysis would not look at, in a sentence.
    pub(crate) fn misunderstanding(&self, name: &str, supported: &SupportedOptions) -> Option<String> {
        let wishes = self.wishes(None);
        let option = match supported.unsupported(&wishes)? {
            Unsupported::Min => "--min",
            Unsupported::Max => "--max",
            Unsupported::MinSize => "--min-size",
            Unsupported::MaxSize => "--max-size",
            Unsupported::Cpus => "--cpu",
            Unsupported::Tids => "--tid",
            Unsupported::Comms => "--procname",
            Unsupported::Irqs => "--irq",
            Unsupported::Softirqs => "--softirq",
            Unsupported::Names => "a name",
            Unsupported::By(_) if supported.by.is_empty() => {
                return Some(format!("`{name}` tells nothing apart: --by has no words for it"));
            }
            Unsupported::By(word) => {
                return Some(format!("`{name}` does not tell `{word}` apart; it knows {}", supported.by.join(", ")));
            }
        };
        Some(format!("`{name}` has nothing that {option} could choose"))
    }
}
