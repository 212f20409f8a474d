//! The arguments of `kymo bpf`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Common;
use crate::quantity::seconds;

const BPF_HELP: &str = "\
Examples:
  clang --target=bpf -O2 -g -c count.c -o count.o
  kymo bpf show count.o                     programs, maps and their types
  kymo bpf run count.o my-trace             run its SEC(\"kymo/EVENT\") programs over the events
  kymo bpf run count.o my-trace --filter 'size > 1000' --json
  kymo record --bpf count.o -- ./server     run them inside of a recorded program, at its events
  sudo kymo bpf run opens.o --kernel        run its other programs in the kernel, until Ctrl-C

count.c counts packets by port:

  struct packet { unsigned port; } __attribute__((preserve_access_index));
  struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1024);
           __type(key, __u32); __type(value, __u64); } packets SEC(\".maps\");
  SEC(\"kymo/net:packet_sent\") int sent(struct packet *packet) { ... }

docs/bpf.md describes the programs.";

#[derive(Args)]
#[command(after_help = BPF_HELP)]
pub(crate) struct BpfArguments {
    #[command(subcommand)]
    pub(crate) command: BpfCommand,
}

#[derive(Subcommand)]
pub(crate) enum BpfCommand {
    /// Show the programs, maps and types of an eBPF object, and which programs run in user space
    Show(BpfShowArguments),
    /// Run the programs of an eBPF object over the events of traces or in the kernel, and show their maps
    Run(BpfRunArguments),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  kymo bpf show count.o
  kymo bpf show count.o --json

Exit status: 0 every program for events of traces can run; 1 one cannot; 2 wrong usage, or the
object cannot be read.")]
pub(crate) struct BpfShowArguments {
    /// The object: a file that clang has written for eBPF
    #[arg(value_name = "OBJECT")]
    pub(crate) object: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  kymo bpf run count.o my-trace
  kymo bpf run count.o my-trace --filter 'size > 1000'
  kymo bpf run count.o my-trace --json | jq 'select(.kind == \"map\")'
  kymo bpf run count.o my-trace --output records      records and maps as a trace
  sudo kymo bpf run opens.o --kernel -- ./app         in the kernel, while a command runs

Records of rings and lines of bpf_printk are printed in the order of time, then the maps.
Programs run over all traces together, in one order of time. In the kernel, an object is your own
code with root's power, bounded by the verifier alone.

Exit status: 0 everything was read and every run came to its end; 1 a part could not be read, a
program stopped, it does not fit an event, or records were lost; 2 wrong usage, missing rights, or the
object cannot be read or run; in the kernel that of the command, if it is not 0.")]
pub(crate) struct BpfRunArguments {
    /// The object: a file that clang has written for eBPF
    #[arg(value_name = "OBJECT")]
    pub(crate) object: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
    /// Run its programs for places in the kernel there: no trace is read. Needs root (sudo); kymo goes on as the user
    #[arg(long, conflicts_with_all = ["traces", "filter"])]
    pub(crate) kernel: bool,
    /// In the kernel: run this long; default: until the command ends, or Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = seconds, requires = "kernel")]
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "other systems have no eBPF in their kernels"))]
    pub(crate) duration: Option<u64>,
    /// Write records and lines to a new trace in this folder instead of showing them, and the entries of maps
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Only events for which this expression is true; see `kymo filter --help`
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Print one JSON object on each line
    #[arg(long)]
    pub(crate) json: bool,
    /// In the kernel: run while this command runs; programs see all of the system
    #[arg(last = true, value_name = "COMMAND", requires = "kernel")]
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "other systems have no eBPF in their kernels"))]
    pub(crate) command: Vec<OsString>,
}
