//! What commands that record are told.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kymo_schema::level::Level;

use super::Dialect;
use crate::quantity;

const RECORD_HELP: &str = "\
Examples:
  kymo record -- ./server --port 8080       what it and what it starts record
  kymo record                               everything that records now, and what begins meanwhile, until Ctrl-C
  kymo record -e 'net:*' -e '!net:poll*' --level info --process server
  kymo record -e net:sent --filter 'bytes > 4KiB && host == \"10.*\"' --duration 10s
  kymo record --mode overwrite --detach --name flight && sleep 60; kymo snapshot flight
  kymo record --rotate-size 100MiB --keep 1GiB --detach
  kymo record --capture-output -- make      the lines that a program writes, with the time of each

COMMAND's standard streams, terminal and signals are its own, and kymo ends with its exit
status, or 128 and the number of the signal that it died of; 127 when it is not there, 126 when
it cannot be executed. Without COMMAND everything of this user is recorded, and of all users when
root asks, until Ctrl-C; a second one does not wait. Several sessions may run side by side.

Exit status: 0 the trace is whole, 1 something could not be recorded, 2 wrong usage; with
COMMAND, its own.";

#[derive(Args)]
#[command(after_help = RECORD_HELP)]
pub(crate) struct RecordArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Goes on in the background until `kymo stop`
    #[arg(long, conflicts_with_all = ["command"])]
    pub(crate) detach: bool,
    /// Prints one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is recorded, and how.
#[derive(Args)]
pub(crate) struct SessionArguments {
    #[command(flatten)]
    pub(crate) rule: RuleArguments,
    /// Keeps only events for which this expression is true, such as `port == 80 && host == "10.*"`; see `kymo filter
    /// --help`
    #[arg(short = 'F', long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// The folder of the trace, which is made; without it, `kymo-traces/NAME-DATE-TIME`
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// What the session is called, for `kymo stop` and its like; without it, as COMMAND is
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// The dialect of the trace
    #[arg(long = "format", value_enum, value_name = "FORMAT", default_value = "ctf1.8")]
    pub(crate) format: TraceFormat,
    /// What is lost where programs record faster than the disk writes
    #[arg(long, value_enum, default_value = "discard")]
    pub(crate) mode: Mode,
    /// Memory that a thread may have; without it, as much as is free
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_size)]
    pub(crate) lane_size: Option<u64>,
    /// Memory that a program may have, at most 128MiB; without it, 16MiB, and more when events are lost
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_size)]
    pub(crate) pool_size: Option<u64>,
    /// What events carry: cpu_id, pid, tid, procname, ip, stack, namespaces or single ones (net_ns, pid_ns, ...), and contexts
    /// that programs define, such as `app.request`; `none`
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cpu_id")]
    pub(crate) context: Vec<String>,
    /// Begins a new part of the trace when one has this size
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_size)]
    pub(crate) rotate_size: Option<u64>,
    /// Begins a new part of the trace after this time
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    pub(crate) rotate_time: Option<u64>,
    /// Deletes the oldest parts when all have more than this size
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_size)]
    pub(crate) keep: Option<u64>,
    /// Records the lines that COMMAND writes to its standard output and error as events `output:stdout` and
    /// `output:stderr`, whatever else is selected
    #[arg(long, requires = "command")]
    pub(crate) capture_output: bool,
    /// Ends after this time
    #[arg(short, long, value_name = "TIME", value_parser = quantity::seconds)]
    pub(crate) duration: Option<u64>,
    /// The program to start and record, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl SessionArguments {
    /// The first of all that was said, if anything was.
    #[cfg(feature = "view")]
    pub(crate) fn first_said(&self) -> Option<&'static str> {
        let said = [
            ("COMMAND", !self.command.is_empty()),
            ("--event", !self.rule.events.is_empty()),
            ("--level", self.rule.level.is_some()),
            ("--process", !self.rule.process.is_empty()),
            ("--filter", self.filter.is_some()),
            ("--output", self.output.is_some()),
            ("--name", self.name.is_some()),
            ("--format", self.format != TraceFormat::Ctf18),
            ("--mode", self.mode != Mode::Discard),
            ("--lane-size", self.lane_size.is_some()),
            ("--pool-size", self.pool_size.is_some()),
            ("--context", self.context != ["cpu_id"]),
            ("--rotate-size", self.rotate_size.is_some()),
            ("--rotate-time", self.rotate_time.is_some()),
            ("--keep", self.keep.is_some()),
            ("--capture-output", self.capture_output),
            ("--duration", self.duration.is_some()),
        ];
        said.iter().find(|(_, is_said)| *is_said).map(|(name, _)| *name)
    }
}

/// Which events of which programs.
#[derive(Args)]
pub(crate) struct RuleArguments {
    /// Only events `PROVIDER:NAME` of such a name; `*` is any text, `?` any character, `!GLOB` takes out; may be
    /// repeated
    #[arg(short, long = "event", value_name = "GLOB", value_parser = events)]
    pub(crate) events: Vec<String>,
    /// Only events that are at least as important: a name such as `info`, or a number from 0 (emergency) to 14 (debug)
    #[arg(short, long, value_name = "LEVEL", value_parser = level)]
    pub(crate) level: Option<u8>,
    /// Only programs of such a name, or this number; `*` is any text; may be repeated
    #[arg(short, long, value_name = "NAME|PID", value_parser = program)]
    pub(crate) process: Vec<String>,
}

/// The dialect of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// CTF 1.8, which every tool reads
    #[value(name = "ctf1.8")]
    Ctf18,
    /// CTF 2
    #[value(name = "ctf2")]
    Ctf2,
}

impl From<TraceFormat> for Dialect {
    fn from(format: TraceFormat) -> Self {
        match format {
            TraceFormat::Ctf18 => Self::Tsdl,
            TraceFormat::Ctf2 => Self::Ctf2,
        }
    }
}

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// New events, which are counted; everything else is written as it comes
    Discard,
    /// The oldest events; nothing is written before `kymo snapshot` (a flight recorder)
    Overwrite,
}

const SWITCH_HELP: &str = "\
Examples:
  kymo enable 'net:*' --level info
  kymo enable disk:read --filter 'bytes > 4KiB' --process 'server*'
  kymo disable net:poll

What comes later has its say over what came before, for programs that run and for those that
begin later. Of several filters that an event was enabled with, one has to be true.

Exit status: 0 it matches events of programs that run, 1 it matches none yet, 2 wrong usage.";

#[derive(Args)]
#[command(after_help = SWITCH_HELP)]
pub(crate) struct SwitchArguments {
    /// Events `PROVIDER:NAME` of such a name; `*` is any text, `?` any character, `!GLOB` takes out; without any, all
    #[arg(value_name = "GLOB", value_parser = events)]
    pub(crate) events: Vec<String>,
    /// Only events that are at least as important: a name such as `info`, or a number from 0 (emergency) to 14 (debug)
    #[arg(short, long, value_name = "LEVEL", value_parser = level)]
    pub(crate) level: Option<u8>,
    /// Only in programs of such a name, or this number; `*` is any text; may be repeated
    #[arg(short, long, value_name = "NAME|PID", value_parser = program)]
    pub(crate) process: Vec<String>,
    /// Keeps only events for which this expression is true (with `enable`)
    #[arg(short = 'F', long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// The session; needed where there are several
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo snapshot\n  kymo snapshot flight --output crash\n\n\
                        Everything that programs still have in memory is written, and stays there: snapshots may overlap.\n\n\
                        Exit status: 0 it is written, 1 something could not be, 2 wrong usage, or no such session.")]
pub(crate) struct SnapshotArguments {
    /// The session; needed where there are several
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// The folder of the trace, which is made; without it, `snapshot-1` and so on in the session's folder
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo stop\n  kymo stop flight\n  kymo stop --all\n\n\
                        Exit status: 0 what was recorded is whole, 1 something could not be, 2 wrong usage, or no such session.")]
pub(crate) struct StopArguments {
    /// The session; needed where there are several
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Ends all of them
    #[arg(long, conflicts_with = "session")]
    pub(crate) all: bool,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo status\n  kymo status --events server\n  \
                        kymo status --json | jq '.programs[].events[] | select(.is_on) | .name'")]
pub(crate) struct StatusArguments {
    /// Only programs of such a name, or this number; `*` is any text
    #[arg(value_name = "NAME|PID")]
    pub(crate) process: Vec<String>,
    /// Shows each event of each program: whether it is on, for which session, and where its filter runs
    #[arg(long)]
    pub(crate) events: bool,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo sessions\n  kymo sessions --json | jq -r '.[].summary.output'")]
pub(crate) struct SessionsArguments {
    /// Prints one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo doctor\n  kymo doctor --json | jq '.[] | select(.grade == \"wrong\")'\n\n\
                        Exit status: 0 nothing is wrong, 1 something is, 2 wrong usage.")]
pub(crate) struct DoctorArguments {
    /// Prints one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  kymo recover                              ends sessions whose recorder was killed, with what programs still have\n  \
                        kymo recover my-trace                     mends a trace whose recorder was killed, wherever it is now\n  \
                        kymo recover saved/*.ctl --output rescued   writes copies of programs' memory as a trace\n\n\
                        Without a path: a session whose recorder was killed ends; what its programs, dead or alive, had recorded\n\
                        meanwhile is in its trace. Memory of dead programs that no session knows becomes a trace of its own and is\n\
                        deleted when that is written. While a recorder runs, its sessions go on; `kymo stop` ends them.\n\n\
                        A trace: half of a packet is cut, half of the metadata mended, and index files are made. One that is whole\n\
                        stays as it is; one that is being recorded is left alone.\n\n\
                        Exit status: 0 everything was recovered, or there was nothing to recover; 1 a part could not be; 2 wrong usage."
)]
pub(crate) struct RecoverArguments {
    /// Traces to mend, or copies of programs' memory (`.ctl`)
    #[arg(value_name = "TRACE|FILE.ctl")]
    pub(crate) paths: Vec<PathBuf>,
    /// The folder of the trace of what lies in memory, which is made; without it `kymo-traces/recovered-DATE-TIME`
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn level(text: &str) -> Result<u8, String> {
    let number = || text.parse().ok().filter(|level| Level::of(i64::from(*level)).is_some());
    let wrong = || format!("a level is a number up to 14, or one of {}", Level::names());
    Level::number(text).or_else(number).ok_or_else(wrong)
}

/// Names of events, all of which have a provider.
fn events(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('!').unwrap_or(text);
    match name {
        "" => Err("an event is called PROVIDER:NAME; all are `*`".to_owned()),
        name if !name.contains([':', '*', '?']) => Err(format!(
            "an event is called PROVIDER:NAME; `{name}:*` is all of a provider, `*:{name}` one of this name of any"
        )),
        _ => Ok(text.to_owned()),
    }
}

fn program(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a program has a name or a number; without `--process`, all are meant".to_owned()),
        _ => Ok(text.to_owned()),
    }
}
