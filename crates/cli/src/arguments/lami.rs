//! What the command line may say to `kymo lami`.

use std::path::PathBuf;

use clap::Args;
use kymo_session::TraceOffset;

use super::WantedArguments;
use crate::quantity::trace_offset;

const HELP: &str = "\
Examples:
  kymo lami count --metadata
  kymo lami count --begin 1457113582794565804 --limit 10 my-trace

In Trace Compass: External Analyses > Add External Analysis, and `kymo lami cpu` as command.

Exit status: 0 the output is what was asked for, else the output is an object with
`error-message` and `error-code`.";

#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct LamiArguments {
    /// Which analysis
    #[arg(value_name = "ANALYSIS")]
    pub(crate) analysis: Option<String>,
    /// Traces to analyse
    #[arg(value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Prints the version of the protocol
    #[arg(long)]
    pub(crate) mi_version: bool,
    /// Prints what the analysis is and which tables it answers with
    #[arg(long)]
    pub(crate) metadata: bool,
    /// Only says whether the trace can be analysed
    #[arg(long)]
    pub(crate) test_compatibility: bool,
    /// Begins at this time, in nanoseconds
    #[arg(long, value_name = "NS", allow_hyphen_values = true)]
    pub(crate) begin: Option<i64>,
    /// Ends at this time, in nanoseconds
    #[arg(long, value_name = "NS", allow_hyphen_values = true)]
    pub(crate) end: Option<i64>,
    /// Says how far it is, before the results
    #[arg(long)]
    pub(crate) output_progress: bool,
    #[command(flatten)]
    pub(crate) wanted: WantedArguments,
    /// Sets the clocks of one trace, or of all below a folder, ahead by a time, which may be negative; may be repeated
    #[arg(long, value_name = "PATH=TIME", value_parser = trace_offset)]
    pub(crate) trace_offset: Vec<TraceOffset>,
    /// Threads to use; 0 means one for each core
    #[arg(long, default_value_t = 0, env = "KYMO_THREADS", hide_env_values = true)]
    pub(crate) threads: usize,
}
