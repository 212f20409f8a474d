//! The arguments of `kymo roles`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::ImportArguments;

const ROLES_HELP: &str = "\
Examples:
  kymo roles my-trace
  kymo roles --write mine.toml my-trace      write a mapping to edit
  kymo roles --roles mine.toml my-trace      check the mapping and show its bindings
  kymo cpu --roles mine.toml my-trace        use the mapping
  kymo roles --json my-trace | jq '.bound[] | {role, mapping, classes}'

Analyses use roles of events: `thread_switch`, `syscall_entry`, `begin`. A mapping assigns roles to
events, and fields of the events to fields of the role:

  name = \"my-rtos\"
  [[thread_switch]]
  event = \"task_resumed\"          # `*` matches any text; a list matches any of its names
  when = \"from != to\"             # a filter: only events for which it is true
  prev_tid = \"from\"               # a field; in a list, the first existing field
  next_tid = \"to\"

Mappings for LTTng, perf, ftrace and Genode are built in. docs/roles.md describes the format.

Exit status: 0 a role is bound, 1 no role is bound, 2 wrong usage, or the mapping has an error.";

#[derive(Args)]
#[command(after_help = ROLES_HELP)]
pub(crate) struct RolesArguments {
    /// Traces: folders with a `metadata` file, parent folders of these, single stream files, archives (tar, tar.gz,
    /// tar.zst, zip) of them, captures of packets (pcapng, pcap), dumps of
    /// Barrelfish, or trees of Genode's recorder
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// A mapping from events to roles, which takes precedence over the built-in mappings
    #[arg(long, value_name = "FILE")]
    pub(crate) roles: Option<PathBuf>,
    /// Write the bound and guessed roles as a mapping to a new file; `-`: standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) write: Option<PathBuf>,
    /// Show all classes, guesses and fields instead of some
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) import: ImportArguments,
}
