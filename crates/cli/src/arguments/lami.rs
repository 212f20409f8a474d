//! The arguments of `kymo lami`.

use std::path::PathBuf;

use clap::Args;

use super::WantedArguments;
use crate::arguments::ReadingArguments;

const HELP: &str = "\
Examples:
  kymo lami count --metadata
  kymo lami count --begin 1457113582794565804 --limit 10 my-trace

In Trace Compass: External Analyses > Add External Analysis, with `kymo lami cpu` as the command.

Exit status: 0 success; otherwise the output is an object with `error-message` and `error-code`.";

#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct LamiArguments {
    /// The analysis
    #[arg(value_name = "ANALYSIS")]
    pub(crate) analysis: Option<String>,
    /// Traces to analyze
    #[arg(value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Print the version of the protocol
    #[arg(long)]
    pub(crate) mi_version: bool,
    /// Print a description of the analysis and its tables
    #[arg(long)]
    pub(crate) metadata: bool,
    /// Only check whether the trace can be analyzed
    #[arg(long)]
    pub(crate) test_compatibility: bool,
    /// Begin at this time, in nanoseconds
    #[arg(long, value_name = "NS", allow_hyphen_values = true)]
    pub(crate) begin: Option<i64>,
    /// End at this time, in nanoseconds
    #[arg(long, value_name = "NS", allow_hyphen_values = true)]
    pub(crate) end: Option<i64>,
    /// Print progress before the results
    #[arg(long)]
    pub(crate) output_progress: bool,
    #[command(flatten)]
    pub(crate) wanted: WantedArguments,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
    /// Number of threads; 0: one for each core
    #[arg(long, default_value_t = 0, env = "KYMO_THREADS", hide_env_values = true)]
    pub(crate) threads: usize,
}
