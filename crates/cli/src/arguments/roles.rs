//! What `kymo roles` may be told.

use std::path::PathBuf;

use clap::Args;

const ROLES_HELP: &str = "\
Examples:
  kymo roles my-trace
  kymo roles --write mine.toml my-trace      writes a mapping to edit
  kymo roles --roles mine.toml my-trace      says what it binds, and what is wrong with it
  kymo cpu --roles mine.toml my-trace        uses it
  kymo roles --json my-trace | jq '.bound[] | {role, mapping, classes}'

Analyses ask for roles of events: `thread_switch`, `syscall_entry`, `begin`. A mapping says which
events have them, and which of their fields are the role's:

  name = \"my-rtos\"
  [[thread_switch]]
  event = \"task_resumed\"          # `*` is any text; a list is any of them
  when = \"from != to\"             # a filter: of which of these events
  prev_tid = \"from\"               # a field; of a list the first that exists
  next_tid = \"to\"

Those of LTTng, perf, ftrace and Genode are built in. The whole format stands in docs/roles.md.

Exit status: 0 something is bound, 1 nothing is, or the mapping is wrong, 2 wrong usage.";

#[derive(Args)]
#[command(after_help = ROLES_HELP)]
pub(crate) struct RolesArguments {
    /// Traces: folders with a `metadata` file, folders above such, single stream files, or archives (tar,
    /// tar.gz, tar.zst, zip) of them
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// A mapping from events to roles that goes before those that are built in
    #[arg(long, value_name = "FILE")]
    pub(crate) roles: Option<PathBuf>,
    /// Writes what is bound and guessed as a mapping to a new file, or to standard output if it is `-`
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) write: Option<PathBuf>,
    /// Shows all classes, guesses and fields instead of some
    #[arg(long)]
    pub(crate) all: bool,
    /// Prints one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
