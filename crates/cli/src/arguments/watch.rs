//! The arguments of `kymo watch`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::Top;
use crate::quantity::seconds;

const WATCH_HELP: &str = "\
Examples:
  kymo watch sched_switch --by next_comm                 a live table on a terminal, until Ctrl-C
  kymo watch syscalls --by name --hist took              how long system calls take, by call
  kymo watch syscalls --by comm,name --duration 5s --json | jq .rows
  kymo watch syscalls --by name --output counts          the counts of each second as a trace, for SQL and the viewer
  kymo watch 'net:netif_receive_skb when skb->dev->name == \"lo\"' --sum len
  kymo watch 'block_rq_complete since block_rq_issue by rq' --hist took
  kymo watch 'sched_switch over 1ms since sched_waking by next_tid=tid' --by next_comm
  kymo watch 'sys_exit when name == \"read\" && ret > 0' --hist ret -- ./app

The kernel counts for root (sudo) and for processes with CAP_BPF and CAP_PERFMON; kymo goes on as the user.

The question: EVENTS [[over TIME] since EVENTS [by FIELD[,FIELD]]] [when EXPRESSION]
  EVENTS     patterns of tracepoints as `kymo record --kernel` takes them; `syscalls` is the pair of a call and its return
  since      the event ends what those begin: `took` is the time between. `by rq` pairs those with the same `rq`,
             `by next_tid=tid` `next_tid` of the end with `tid` of the begin; without it, the same thread
  when       an expression as filters have it: `kymo filter --help`

Fields are those of the trace (`next_tid`, `bytes`), arguments of the tracepoint and all that they lead to
(`prev->prio`, `skb->dev->name`), and of the thread that runs: `tid`, `pid`, `comm`, `cpu_id`. docs/watch.md lists them.

Exit status: that of the command, else 0; 1 counting broke off, 2 wrong usage or missing rights.";

#[derive(Args)]
#[command(after_help = WATCH_HELP)]
pub(crate) struct WatchArguments {
    /// The events, and what is asked of them
    #[arg(value_name = "QUESTION", required = true)]
    pub(crate) question: String,
    /// A row for each value of this field, or for each combination of several
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Add up this field
    #[arg(long, value_name = "FIELD")]
    pub(crate) sum: Option<String>,
    /// Count the distribution of this field; `took` is the time since the begin
    #[arg(long, value_name = "FIELD")]
    pub(crate) hist: Option<String>,
    /// Maximum number of rows to show; `all` or 0: no limit; default: 10 for people, all with --json
    #[arg(long, value_name = "ROWS")]
    pub(crate) top: Option<Top>,
    /// Show counts of each such time; default: 1s on a terminal, else only at the end
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) every: Option<u64>,
    /// Count this long; default: until the command ends, or Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) duration: Option<u64>,
    /// Rows that the kernel keeps; default: 16384, with --hist 65536, of which each bucket takes one
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) rows: Option<u32>,
    /// Show all columns, as in a pipe
    #[arg(long)]
    pub(crate) wide: bool,
    /// Print one JSON object for each time, and one at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the counts of each `--every` (default: 1s) and the totals as events of a trace, too
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Count while this command runs: all of the system
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
