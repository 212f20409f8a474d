//! The arguments of commands that record.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use kymo_schema::glob::event_pattern;
use kymo_schema::level::LogLevel;

use super::{MetadataDialect, NewFolder};
use crate::quantity;

const RECORD_HELP: &str = "\
Examples:
  kymo record -- ./server --port 8080       record it and its child processes
  kymo record                               record running and new programs until Ctrl-C
  kymo record -e 'net:*' -e '!net:poll*' --level info --process server
  kymo record -e net:sent --filter 'bytes > 4KiB && host == \"10.*\"' --duration 10s
  kymo record --mode overwrite --detach --name flight && sleep 60; kymo snapshot flight
  kymo record --rotate-size 100MiB --keep 1GiB --detach
  kymo record --trigger 'start on bench:begin' --trigger 'stop on bench:end' -- ./bench
  kymo record --only 'slow: http:end over 5ms since http:begin by id' -- ./server
  kymo record --capture-output -- make      record the output lines, with timestamps
  kymo record --packets eth0 --packet-filter 'tcp.destination_port == 443' --duration 5s
  sudo kymo record --kernel -- ./server     record the kernel's events too, on the same clock
  sudo kymo record --kernel=sched,block:* --duration 5s
  sudo kymo record --kernel=sched,block:* --list    list these events and their fields
  sudo kymo record --kernel=syscalls --kernel-filter 'syscall_exit_* when ret < 0' -- ./app
  sudo kymo record --uprobe './app:parse_*' --uprobe './app:parse_*%return' -- ./app
  sudo kymo record --uprobe 'libc.so.6:getenv(arg1:string)' --usdt './app:*:*' --duration 5s
  kymo record --policy policies.toml --output traces    who, what and how: docs/policies.md
  kymo record --to console -e 'net:*' -- ./server    print the events at once, and keep no trace

COMMAND keeps its standard streams, terminal and signals. kymo exits with the status of COMMAND,
or with 128 plus the number of the signal that killed it, 127 if it does not exist, 126 if it
cannot be executed. Without COMMAND, kymo records all programs of this user (of all users if run
by root) until Ctrl-C; a second Ctrl-C does not wait. Several sessions may run at the same time.

A helper with root's rights sets up the kernel's buffers and probes; the command, the recorder and the trace belong
to the user that called sudo (docs/kernel.md).

Exit status: 0 the trace is complete, 1 a part could not be recorded, 2 wrong usage; with
COMMAND, the status of COMMAND.";

#[derive(Args)]
#[command(after_help = RECORD_HELP)]
pub(crate) struct RecordArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Record by the policies in this file: who, what and how. Edits are taken over while it records. In TOML, or Genode's
    /// <config>; see docs/policies.md
    #[arg(long, value_name = "FILE", conflicts_with_all = ["events", "level", "process", "filter", "format", "mode", "lane_size",
        "pool_size", "context", "rotate_size", "rotate_time", "keep", "triggers", "rules", "capture_output", "prepare", "to",
        "flush_every", "detach", "packets", "kernel", "kernel_rules", "watches", "uprobes", "usdt", "kprobes"])]
    pub(crate) policy: Option<PathBuf>,
    /// Where the events go
    #[arg(long, value_enum, value_name = "PLACE", default_value = "file")]
    pub(crate) to: RecordTarget,
    /// With `--to console`, print events in batches, one every TIME; default: 100ms. With `--mode overwrite`, write or
    /// print a snapshot every TIME, with the events that the previous ones lack
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    pub(crate) flush_every: Option<u64>,
    /// Run in the background until `kymo stop`
    #[arg(long, conflicts_with_all = ["command", "packets", "summary"])]
    pub(crate) detach: bool,
    /// Record nothing: list the events that `--kernel` chooses, with their fields, and where these are from
    #[arg(long, requires = "kernel", conflicts_with_all = ["command", "detach"])]
    pub(crate) list: bool,
    /// Record nothing: tell for each event of the kernel which part of `--kernel-filter` the kernel checks, which part the recorder,
    /// and why; of each `--kernel-only`, the programs that would run in the kernel, their keys, and the fields that they may ask
    #[arg(long, conflicts_with_all = ["command", "detach", "list"])]
    pub(crate) explain: bool,
    /// Print one JSON object at the end; with `--to console`, print each event as JSON, and that object on standard error
    #[arg(long, conflicts_with = "summary")]
    pub(crate) json: bool,
}

/// Where the events of a session go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordTarget {
    /// To standard output, as `kymo print` prints them; `--output` keeps the trace too
    Console,
    /// To the folder of the trace
    File,
    /// To the folder of the trace if it can be written, else to standard output
    Auto,
}

/// What is recorded, and how.
#[derive(Args)]
pub(crate) struct SessionArguments {
    #[command(flatten)]
    pub(crate) rule: RuleArguments,
    /// Keep only events for which this expression is true, such as `port == 80 && host == "10.*"`; see `kymo filter
    /// --help`
    #[arg(short = 'F', long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Option<String>,
    /// The new folder of the trace; default: `kymo-traces/NAME-DATE-TIME`
    #[arg(short, long, value_name = "DIR", value_parser = NewFolder)]
    pub(crate) output: Option<PathBuf>,
    /// The name of the session, for `kymo stop` and other commands; default: the name of COMMAND
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// The dialect of the trace
    #[arg(long = "format", value_enum, value_name = "FORMAT", default_value = "ctf1.8")]
    pub(crate) format: TraceFormat,
    /// Which events to lose when programs record faster than the disk writes
    #[arg(long, value_enum, default_value = "discard")]
    pub(crate) mode: LossMode,
    /// Buffer memory of each thread; default: all free memory of the program's buffers
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_size)]
    pub(crate) lane_size: Option<u64>,
    /// Buffer memory of each program, at most 128MiB; default: 16MiB, and more when events are lost
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_size)]
    pub(crate) pool_size: Option<u64>,
    /// Context fields of all events: cpu_id, pid, tid, procname, ip, stack, namespaces or single ones (net_ns, pid_ns,
    /// ...), and contexts that programs define, such as `app.request`; `none`
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cpu_id")]
    pub(crate) context: Vec<String>,
    /// Start a new part of the trace when the current part reaches this size
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_size)]
    pub(crate) rotate_size: Option<u64>,
    /// Start a new part of the trace after this time
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    pub(crate) rotate_time: Option<u64>,
    /// Delete the oldest parts, or snapshots of `--flush-every`, when all together exceed this size
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_size)]
    pub(crate) keep: Option<u64>,
    /// Start, stop or snapshot at an event: `stop on net:lost when port == 80`, `start on bench:begin for 5s`; or `open RULE on
    /// EVENT`, `close RULE on EVENT` for one of --kernel-only; see `kymo trigger --help`; repeatable
    #[arg(long = "trigger", value_name = "TRIGGER")]
    pub(crate) triggers: Vec<String>,
    /// Of some events, keep only those that took long, or some of many: `http:end over 5ms since http:begin by id`, `net:poll
    /// every 100`, `net:error at most 10 in 1s by port`; see `kymo limit --help`; repeatable
    #[arg(long = "only", value_name = "RULE")]
    pub(crate) rules: Vec<String>,
    /// Run the programs of an eBPF object in the recorded programs, at events: `SEC("kymo/http:end")`, and those that decide
    /// whether an event is kept: `SEC("kymo.filter/http:end")`; see docs/bpf.md; repeatable
    #[arg(long = "bpf", value_name = "OBJECT")]
    pub(crate) objects: Vec<PathBuf>,
    /// Record the lines of COMMAND's standard output and error as events `output:stdout` and `output:stderr`, regardless
    /// of the selected events
    #[arg(long, requires = "command")]
    pub(crate) capture_output: bool,
    /// Record the packets of these network interfaces, `any`: all, as events `kymo:packet`, regardless of the selected
    /// events; repeatable. This needs the capability CAP_NET_RAW
    #[arg(long, value_name = "INTERFACE", value_delimiter = ',')]
    pub(crate) packets: Vec<String>,
    /// Only packets for which this expression is true, such as `ip.source == "10.*" && udp.destination_port == 53`, with
    /// the fields of captures (docs/packets.md)
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, requires = "packets")]
    pub(crate) packet_filter: Option<String>,
    /// Bytes of each packet that are recorded, at most 16000; default: 2000
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=16000), requires = "packets")]
    pub(crate) snap_length: Option<u32>,
    /// Write the packets into this new file too, as pcapng
    #[arg(long, value_name = "FILE", requires = "packets")]
    pub(crate) pcapng: Option<PathBuf>,
    /// Record events of the kernel, with LTTng's names, regardless of the selected events: choices for a purpose (waiting, sched,
    /// syscalls, irq, io, net, all), and patterns such as `block:*`, `!sched_waking`; default: waiting
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) kernel: Option<Vec<String>>,
    /// Buffer memory of each CPU for the events of the kernel and of probes, and with `--mode overwrite` for those that are kept; default: 8MiB
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_size)]
    pub(crate) kernel_buffer: Option<u64>,
    /// Record the kernel's events of these processes, and of all that they start: `command` (that of this recording), a PID,
    /// `cgroup:PATH`, `container:NAME`; with the threads that wake them, and with interrupts, timers, disks and networks of all
    #[arg(long, value_name = "PROCESSES", value_delimiter = ',')]
    pub(crate) kernel_of: Vec<String>,
    /// Keep only events of the kernel for which this expression is true, such as `prev_prio < 100`, or `EVENTS when EXPR` for some
    /// of them: `syscall_exit_* when ret < 0`; the kernel checks what it can, before it writes the event. Repeatable: all that are
    /// about an event have to be true
    #[arg(long = "kernel-filter", value_name = "EXPR", allow_hyphen_values = true, requires = "kernel")]
    pub(crate) kernel_filters: Vec<String>,
    /// Of some events of the kernel, keep only those that took long (`syscalls over 5ms`, `block_rq_complete over p99 since
    /// block_rq_issue by rq`), that something is true of (`netif_receive_skb when skb->dev->name == "lo"`), or between two others
    /// (`kmalloc between sys_enter and sys_exit`). The kernel decides, and counts the others; `kymo limit` lists and changes the
    /// limits; see docs/kernel.md; repeatable
    #[arg(long = "kernel-only", value_name = "RULE")]
    pub(crate) kernel_rules: Vec<String>,
    /// Count events of the kernel beside those that are recorded, as `kymo watch` does: `syscalls --by name --hist took`. Counts
    /// of each second, and of all at the end, are events `watch:row` and `watch:total` of the trace; a name may stand before the
    /// question: `calls: syscalls --by name`; see docs/watch.md; repeatable
    #[arg(long = "watch", value_name = "QUESTION")]
    pub(crate) watches: Vec<String>,
    /// Record the calls of functions of any program or library, as events `FILE:FUNCTION`, with the arguments that its debug
    /// information (DWARF) describes: `./app:parse_*`, `libc.so.6:getenv`, `./app:0x1139`; `%return` behind it records the
    /// results, `(ARGUMENT[:TYPE],...)` chooses arguments; repeatable. Like `--kernel`, this needs root's rights
    #[arg(long = "uprobe", value_name = "FILE:FUNCTION")]
    pub(crate) uprobes: Vec<String>,
    /// Record USDT probes of any program or library, as events `PROVIDER:NAME` with fields `arg1`, `arg2`...; `*` matches any
    /// text; repeatable
    #[arg(long, value_name = "FILE:PROVIDER:NAME")]
    pub(crate) usdt: Vec<String>,
    /// Record the calls of functions of the kernel, as events `kernel:FUNCTION`; `%return` behind it records the results;
    /// repeatable. Only kernels with CONFIG_KPROBE_EVENTS have such probes
    #[arg(long = "kprobe", value_name = "FUNCTION")]
    pub(crate) kprobes: Vec<String>,
    /// Texts of system calls, such as names of files: read them (where the kernel lets eBPF programs do that), or record their
    /// addresses alone
    #[arg(long, value_enum, value_name = "TEXTS", default_value = "read", requires = "kernel")]
    pub(crate) kernel_texts: KernelTexts,
    /// Record call stacks, of the kernel and of programs: samples of busy CPUs (`99Hz`), and the stacks of events of the kernel
    /// (`sched_switch`, `block:*`); default: 99Hz,sched_switch,sched_waking
    #[arg(long, value_name = "WHEN", value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_value = "",
        requires = "kernel")]
    pub(crate) stacks: Option<Vec<String>>,
    /// First compare the counters of all CPUs, a few milliseconds for each: the trace and the summary tell how far they
    /// are apart
    #[arg(long)]
    pub(crate) prepare: bool,
    /// End after this time
    #[arg(short, long, value_name = "TIME", value_parser = quantity::seconds)]
    pub(crate) duration: Option<u64>,
    /// Write the summary at the end into this file, as one JSON object, and print none
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,
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
            ("--mode", self.mode != LossMode::Discard),
            ("--lane-size", self.lane_size.is_some()),
            ("--pool-size", self.pool_size.is_some()),
            ("--context", self.context != ["cpu_id"]),
            ("--rotate-size", self.rotate_size.is_some()),
            ("--rotate-time", self.rotate_time.is_some()),
            ("--keep", self.keep.is_some()),
            ("--trigger", !self.triggers.is_empty()),
            ("--only", !self.rules.is_empty()),
            ("--bpf", !self.objects.is_empty()),
            ("--capture-output", self.capture_output),
            ("--packets", !self.packets.is_empty()),
            ("--kernel", self.kernel.is_some()),
            ("--kernel-of", !self.kernel_of.is_empty()),
            ("--kernel-filter", !self.kernel_filters.is_empty()),
            ("--kernel-only", !self.kernel_rules.is_empty()),
            ("--watch", !self.watches.is_empty()),
            ("--uprobe", !self.uprobes.is_empty()),
            ("--usdt", !self.usdt.is_empty()),
            ("--kprobe", !self.kprobes.is_empty()),
            ("--kernel-texts", self.kernel_texts != KernelTexts::Read),
            ("--stacks", self.stacks.is_some()),
            ("--prepare", self.prepare),
            ("--duration", self.duration.is_some()),
            ("--summary", self.summary.is_some()),
        ];
        said.iter().find(|(_, is_said)| *is_said).map(|(name, _)| *name)
    }
}

/// Which events of which programs.
#[derive(Args)]
pub(crate) struct RuleArguments {
    /// Only events with a matching name `PROVIDER:NAME`; `*` matches any text, `?` any character, `!GLOB` excludes;
    /// repeatable
    #[arg(short, long = "event", value_name = "GLOB", value_parser = event_pattern)]
    pub(crate) events: Vec<String>,
    /// Only events with this log level or a more severe one: a name such as `info`, or 0 (emergency) to 14 (debug)
    #[arg(short, long, value_name = "LEVEL", value_parser = level)]
    pub(crate) level: Option<u8>,
    /// Only programs with a matching name or this PID; `*` matches any text; repeatable
    #[arg(short, long, value_name = "NAME|PID", value_parser = program)]
    pub(crate) process: Vec<String>,
}

/// The dialect of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// CTF 1.8, which all CTF tools read
    #[value(name = "ctf1.8")]
    Ctf18,
    /// CTF 2
    #[value(name = "ctf2")]
    Ctf2,
}

impl From<TraceFormat> for MetadataDialect {
    fn from(format: TraceFormat) -> Self {
        match format {
            TraceFormat::Ctf18 => Self::Tsdl,
            TraceFormat::Ctf2 => Self::Ctf2,
        }
    }
}

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LossMode {
    /// New events, and count them; all other events are written immediately
    Discard,
    /// The oldest events; only `kymo snapshot` writes events (a flight recorder)
    Overwrite,
}

const SWITCH_HELP: &str = "\
Examples:
  kymo enable 'net:*' --level info
  kymo enable disk:read --filter 'bytes > 4KiB' --process 'server*'
  kymo disable net:poll

Later commands override earlier ones, for running programs and for programs that start later. If
an event was enabled with several filters, one of them has to be true.

Exit status: 0 events of running programs match, 1 no event matches yet, 2 wrong usage.";

#[derive(Args)]
#[command(after_help = SWITCH_HELP)]
pub(crate) struct SwitchArguments {
    /// Events with a matching name `PROVIDER:NAME`; `*` matches any text, `?` any character, `!GLOB` excludes; default: all
    #[arg(value_name = "GLOB", value_parser = event_pattern)]
    pub(crate) events: Vec<String>,
    /// Only events with this log level or a more severe one: a name such as `info`, or 0 (emergency) to 14 (debug)
    #[arg(short, long, value_name = "LEVEL", value_parser = level)]
    pub(crate) level: Option<u8>,
    /// Only in programs with a matching name or this PID; `*` matches any text; repeatable
    #[arg(short, long, value_name = "NAME|PID", value_parser = program)]
    pub(crate) process: Vec<String>,
    /// Keep only events for which this expression is true (with `enable`)
    #[arg(short = 'F', long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) filter: Option<String>,
    /// The session; required if there are several
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

const TRIGGER_HELP: &str = "\
Examples:
  kymo trigger net:lost --when 'port == 80' --do stop
  kymo trigger 'stop on net:lost when port == 80'
  kymo trigger bench:begin --do start --for 5s
  kymo trigger server:error --do snapshot --repeat --every 1min --session flight
  kymo trigger                              list the triggers of the session
  kymo trigger --arm                        arm those that have fired anew
  kymo trigger --start                      start the session now

A trigger acts in the program, at the event, in all of its threads. The event that starts a session
is the first one of it, the event that stops it the last one; later events are not in the trace. A
trigger fires once, until it is armed again, or with --repeat each time. A session with a trigger that
starts it waits for that event. With --scope session, the default, other programs follow through the
recorder: they stop at the same time, as far as the trace shows, and start some milliseconds later.

Exit status: 0 events of running programs match, 1 no event matches yet, 2 wrong usage.";

#[derive(Args)]
#[command(after_help = TRIGGER_HELP, group = ArgGroup::new("turn").multiple(false))]
pub(crate) struct TriggerArguments {
    /// Events with a matching name `PROVIDER:NAME`, with `--do`; `*` matches any text, `?` any character, `!GLOB`
    /// excludes. Without `--do`: a trigger in the words of `kymo record --trigger`, such as `stop on net:lost`
    #[arg(value_name = "GLOB|TRIGGER", conflicts_with = "turn")]
    pub(crate) events: Vec<String>,
    /// What happens at the event
    #[arg(long = "do", id = "effect", value_enum, value_name = "EFFECT", requires = "events", conflicts_with = "turn")]
    pub(crate) effect: Option<TriggerDoes>,
    /// Only events for which this expression is true, such as `port == 80`; see `kymo filter --help`
    #[arg(short, long, value_name = "EXPR", allow_hyphen_values = true, requires = "effect")]
    pub(crate) when: Option<String>,
    /// Only events of programs with a matching name or this PID; `*` matches any text; repeatable
    #[arg(short, long, value_name = "NAME|PID", value_parser = program, requires = "effect")]
    pub(crate) process: Vec<String>,
    /// Stay armed: fire at each such event
    #[arg(long, requires = "effect")]
    pub(crate) repeat: bool,
    /// Fire at most once in this time
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds, requires = "repeat")]
    pub(crate) every: Option<u64>,
    /// Fire at this match of a program, and not at the first one
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), requires = "effect")]
    pub(crate) after: Option<u32>,
    /// Write this many events, the last ones (with `--do snapshot`)
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), requires = "effect")]
    pub(crate) last: Option<u32>,
    /// Record for this time (with `--do start`)
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::seconds, requires = "effect")]
    pub(crate) length: Option<u64>,
    /// Programs that start or stop
    #[arg(long, value_enum, default_value = "session")]
    pub(crate) scope: TriggerPrograms,
    /// Name of the trigger; one of the same name is replaced; default: the effect
    #[arg(short, long, value_name = "NAME", requires = "effect")]
    pub(crate) name: Option<String>,
    /// Arm a trigger that has fired, or all
    #[arg(long, value_name = "TRIGGER", num_args = 0..=1, group = "turn")]
    pub(crate) arm: Option<Option<String>>,
    /// Disarm a trigger, or all
    #[arg(long, value_name = "TRIGGER", num_args = 0..=1, group = "turn")]
    pub(crate) disarm: Option<Option<String>>,
    /// Remove a trigger; a session without triggers records
    #[arg(long, value_name = "TRIGGER", group = "turn")]
    pub(crate) remove: Option<String>,
    /// Start the session now
    #[arg(long, group = "turn")]
    pub(crate) start: bool,
    /// Stop recording now; the session stays, `kymo stop` ends it
    #[arg(long, group = "turn")]
    pub(crate) stop: bool,
    /// The session; required if there are several
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

const LIMIT_HELP: &str = "\
Examples:
  kymo record --only 'slow: http:end over 5ms since http:begin by id per route' -- ./server
  kymo limit                                list the rules of sessions, and what they have kept
  kymo limit slow 20ms                      set a limit while programs run
  kymo limit slow 1s --kind /report         that of one kind of its events
  kymo limit slow --reset                   the limit of its words again
  kymo limit --add 'net:poll every 100'     another rule
  kymo limit --remove slow

A rule is about events of programs, which remember what it needs:
  EVENTS over TIME since EVENTS             events that come later than this after those that begin
  EVENTS over p99 since EVENTS              the same, later than the running percentile of all
  EVENTS every N                            the first one, and each N-th after it
  EVENTS at most N in TIME                  the first N, again after each such time
with `by FIELD[,FIELD]`, for each value apart (`by id=request`: `id` of the event, `request` of the begin; `by
thread`), and `per FIELD`, for kinds of events with limits of their own. `NAME:` before it names it.
Events that begin are not recorded, unless `with begins` says so. Events that are kept have the field `took_ns`, the time since their begin. An event whose begin is not
known is kept.

Rules about events of the kernel (`kymo record --kernel-only`) are listed, and have their limits set, in the same way; those without a limit are opened and closed:
  kymo limit slow 20ms --kind openat        the limit of one system call, of a rule `per name`
  kymo limit gate open                      it keeps events from now on; `closed` ends that

Exit status: 0 events of running programs match, 1 no event matches yet, 2 wrong usage.";

#[derive(Args)]
#[command(after_help = LIMIT_HELP, group = ArgGroup::new("change").multiple(false))]
pub(crate) struct LimitArguments {
    /// The rule
    #[arg(value_name = "RULE")]
    pub(crate) rule: Option<String>,
    /// Its new limit: a time, or a number of events
    #[arg(value_name = "LIMIT", group = "change")]
    pub(crate) limit: Option<String>,
    /// Of this kind of its events alone
    #[arg(short, long, value_name = "KIND", requires = "rule")]
    pub(crate) kind: Option<String>,
    /// Its limit is that of its words again
    #[arg(long, group = "change", requires = "rule")]
    pub(crate) reset: bool,
    /// Add a rule; one of the same name is replaced
    #[arg(long, value_name = "RULE", group = "change", conflicts_with = "rule")]
    pub(crate) add: Option<String>,
    /// Remove a rule
    #[arg(long, value_name = "RULE", group = "change", conflicts_with = "rule")]
    pub(crate) remove: Option<String>,
    /// The session; required if there are several
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Effect of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TriggerDoes {
    /// Record from this event on
    Start,
    /// Record no more after this event
    Stop,
    /// Write the events that programs hold, with this one (with `--mode overwrite`)
    Snapshot,
}

/// Programs that a trigger acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TriggerPrograms {
    /// All of the session
    Session,
    /// That of the event
    Program,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo snapshot\n  kymo snapshot flight --output crash\n\n\
                        A snapshot has all events that are in the memory of the programs, and keeps them there: snapshots may overlap.\n\n\
                        Exit status: 0 the snapshot is complete, 1 a part could not be written, 2 wrong usage, or no such session.")]
pub(crate) struct SnapshotArguments {
    /// The session; required if there are several
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// The new folder of the trace; default: `snapshot-1` and so on in the folder of the session
    #[arg(short, long, value_name = "DIR", value_parser = NewFolder)]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo stop\n  kymo stop flight\n  kymo stop --all\n\n\
                        Exit status: 0 the trace is complete, 1 a part could not be recorded, 2 wrong usage, or no such session.")]
pub(crate) struct StopArguments {
    /// The session; required if there are several
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// End all sessions
    #[arg(long, conflicts_with = "session")]
    pub(crate) all: bool,
    /// Print one JSON array: an object for each session that was stopped
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo status\n  kymo status --events server\n  \
                        kymo status --json | jq '.programs[].events[] | select(.is_on) | .name'")]
pub(crate) struct StatusArguments {
    /// Only programs with a matching name or this PID; `*` matches any text
    #[arg(value_name = "NAME|PID")]
    pub(crate) process: Vec<String>,
    /// Show each event of each program: whether it is enabled, for which session, and where its filter runs
    #[arg(long)]
    pub(crate) events: bool,
    /// Show what the maps of users' eBPF programs (`kymo record --bpf`) have now, in programs that run and in those that ended
    #[arg(long, conflicts_with = "events")]
    pub(crate) maps: bool,
    /// Print one JSON object; with --maps, an array of sessions
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo sessions\n  kymo sessions --json | jq -r '.[].summary.output'")]
pub(crate) struct SessionsArguments {
    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  kymo doctor\n  kymo doctor --json | jq '.[] | select(.grade == \"wrong\")'\n\n\
                        Exit status: 0 no problem, 1 a problem was found, 2 wrong usage.")]
pub(crate) struct DoctorArguments {
    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  kymo recover                              end sessions of killed recorders, with the events in memory\n  \
                        kymo recover my-trace                     repair a trace whose recorder was killed, on any machine\n  \
                        kymo recover saved/*.ctl --output rescued   write copies of programs' memory as a trace\n\n\
                        Without a path, kymo ends sessions of killed recorders; their traces get the events that programs, dead or\n\
                        alive, recorded since. Memory of dead programs that belongs to no session becomes a new trace, and is\n\
                        deleted when the trace is complete. Sessions of a running recorder continue; `kymo stop` ends them.\n\n\
                        With a trace, kymo cuts an incomplete packet, repairs incomplete metadata, and writes index files. It does\n\
                        not change a complete trace or a trace that is being recorded.\n\n\
                        Exit status: 0 everything was recovered, or there was nothing to recover; 1 a part could not be recovered; 2 wrong usage."
)]
pub(crate) struct RecoverArguments {
    /// Traces to repair, or copies of programs' memory (`.ctl`)
    #[arg(value_name = "TRACE|FILE.ctl")]
    pub(crate) paths: Vec<PathBuf>,
    /// The new folder for events found in memory; default: `kymo-traces/recovered-DATE-TIME`
    #[arg(short, long, value_name = "DIR", value_parser = NewFolder)]
    pub(crate) output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn level(text: &str) -> Result<u8, String> {
    let number = || text.parse().ok().filter(|level| LogLevel::of(i64::from(*level)).is_some());
    let wrong = || format!("a level is a number up to 14, or one of {}", LogLevel::names());
    LogLevel::number(text).or_else(number).ok_or_else(wrong)
}

fn program(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a program has a name or a number; without `--process`, all are meant".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Which texts of system calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelTexts {
    /// The texts
    Read,
    /// Their addresses
    None,
}
