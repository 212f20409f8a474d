//! The arguments of `kymo schema`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const SCHEMA_HELP: &str = "\
Examples:
  kymo schema check shop.kymo
  kymo schema build shop.kymo --output gen            all files that can be made
  kymo schema build shop.kymo --only c --output -     the header for C, on standard output
  kymo schema build trace_defs.pleco --output gen     Barrelfish's header and JSON, and the others
  kymo schema diff shop-1.kymo shop.kymo              for CI: exit status 1 if something breaks
  kymo schema format shop.kymo

A schema says what the events of a system are, for programs and for readers of traces:

  schema shop 1;
  subsystem cache \"The cache of pages\" {
      event fetch_begin \"A page is fetched\" level info { u64 id, text page },
      event fetch_end { u64 id, u32 size unit \"bytes\" },
      pair fetch { begin fetch_begin, end fetch_end, key id },
  };

docs/define.md describes the language.";

#[derive(Args)]
#[command(after_help = SCHEMA_HELP)]
pub(crate) struct SchemaArguments {
    #[command(subcommand)]
    pub(crate) command: SchemaCommand,
}

#[derive(Subcommand)]
pub(crate) enum SchemaCommand {
    /// Make headers, modules, metadata, a mapping and documentation from a schema
    Build(SchemaBuildArguments),
    /// List all mistakes in schemas, with places and remedies
    Check(SchemaCheckArguments),
    /// Tell what changes between two versions of a schema, and for whom
    Diff(SchemaDiffArguments),
    /// Put the layout of schemas right
    Format(SchemaFormatArguments),
}

#[derive(Args)]
#[command(after_help = "\
Files, for the schema `shop`:
  c       shop_events.h     events for C11 and C++17 on: include it, and call kymo_cache_look(...)
  rust    shop_events.rs    events for Rust: include! it, and call cache::look(...)
  json    shop_schema.json  all of it, for tools
  ctf     shop.tsdl, shop.ctf2.json    metadata as a recorder writes it
  roles   shop_roles.toml   a mapping for traces that do not carry it, for `--roles`
  page    shop.md           documentation
  pleco   shop.h, shop.json    as Barrelfish's tool `pleco` writes them; unasked of .pleco files alone

A file that is as it should be is not touched. Exit status: 0 all is made, 1 the schema has mistakes, 2 wrong usage.")]
pub(crate) struct SchemaBuildArguments {
    /// The schema, or a .pleco file of Barrelfish
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The folder to write to, which is created if necessary; `-`: standard output, for one file
    #[arg(long, short, value_name = "FOLDER", default_value = ".")]
    pub(crate) output: PathBuf,
    /// Make only these
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TARGETS")]
    pub(crate) only: Vec<SchemaTarget>,
}

/// Something that is made from a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaTarget {
    /// Header for C and C++
    C,
    /// Module for Rust
    Rust,
    /// The schema as JSON
    Json,
    /// Metadata of CTF 1.8 and 2
    Ctf,
    /// Mapping for analyses
    Roles,
    /// Documentation in Markdown
    Page,
    /// Barrelfish's header and JSON
    Pleco,
}

#[derive(Args)]
#[command(after_help = "Exit status: 0 no mistakes, 1 mistakes (with `--strict`, warnings too), 2 wrong usage.")]
pub(crate) struct SchemaCheckArguments {
    /// Schemas, or .pleco files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Count warnings as mistakes
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Changes are:
  breaking    filters, scripts, analyses or mappings that people wrote find an event, a field or a value no more
  numbers     ids change: dumps that have numbers alone need the definitions of their time
  doubtful    likely a mistake, or programs do not compile until they are changed
  compatible  nothing breaks

Traces describe themselves: those that exist stay readable in any case.
Exit status: 0 nothing breaks, 1 a change is breaking, or of numbers (with `--strict`, doubtful ones too), 2 wrong usage, or a schema has \
mistakes.")]
pub(crate) struct SchemaDiffArguments {
    /// The schema as it was
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,
    /// As it is now
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,
    /// Count doubtful changes too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(
    after_help = "Exit status: 0 all are tidy now, 1 a file has mistakes (with `--check`, or is not tidy), 2 wrong usage."
)]
pub(crate) struct SchemaFormatArguments {
    /// Schemas
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write nothing; list files that are not tidy
    #[arg(long)]
    pub(crate) check: bool,
}
