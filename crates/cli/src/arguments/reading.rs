//! How traces are read where they do not say it themselves.

use std::path::PathBuf;

use clap::Args;
use kymo_session::{ImportOptions, TraceOffset};

use crate::ReadingOptions;
use crate::quantity::{frequency, trace_offset};

/// Options for files in other formats.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ImportArguments {
    /// Names of events, for traces with numbers alone (dumps of Barrelfish): a `.pleco` file, or the JSON made of it;
    /// default: a file beside the trace, otherwise built-in names
    #[arg(long, value_name = "FILE")]
    pub(crate) definitions: Option<PathBuf>,
    /// Cycles per second, for traces that do not say it (dumps of Barrelfish), as `2.8GHz`; default: 1 cycle is shown
    /// as 1 ns
    #[arg(long, value_name = "FREQUENCY", value_parser = frequency)]
    pub(crate) clock_frequency: Option<u64>,
    /// Give packets of captures all their bytes, as the field `data`, and not their heads alone
    #[arg(long)]
    pub(crate) packet_data: bool,
}

/// The same, and how far clocks are ahead.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReadingArguments {
    /// Set the clocks of one trace, or of all traces below a folder, ahead by a time (negative: back); repeatable. The
    /// longest matching path applies
    #[arg(long, value_name = "PATH=TIME", value_parser = trace_offset)]
    pub(crate) trace_offset: Vec<TraceOffset>,
    #[command(flatten)]
    pub(crate) import: ImportArguments,
}

impl ImportArguments {
    /// For opening.
    pub(crate) fn options(&self) -> ImportOptions {
        ImportOptions {
            definitions: self.definitions.clone(),
            clock_frequency: self.clock_frequency,
            packet_data: self.packet_data,
        }
    }

    /// For opening, with clocks as they are.
    pub(crate) fn reading(&self) -> ReadingOptions {
        ReadingOptions { import: self.options(), ..ReadingOptions::default() }
    }

    /// The first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        match (&self.definitions, self.clock_frequency) {
            (Some(_), _) => Some("--definitions"),
            (None, Some(_)) => Some("--clock-frequency"),
            (None, None) => self.packet_data.then_some("--packet-data"),
        }
    }
}

impl ReadingArguments {
    /// For opening.
    pub(crate) fn options(&self) -> ReadingOptions {
        ReadingOptions { trace_offsets: self.trace_offset.clone(), ..self.import.reading() }
    }

    /// The first option that was given: they are of traces that are named.
    pub(crate) fn given(&self) -> Option<&'static str> {
        if self.trace_offset.is_empty() { self.import.given() } else { Some("--trace-offset") }
    }
}
