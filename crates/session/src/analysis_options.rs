//! What may be asked of every analysis: which events, from when to when, of whom, how much of the answer.
//!
//! ```text
//! arguments of a face ──> AnalysisOptions ─┬─ which events count      selection, begin_ns, end_ns, cpus, tids, comms
//!                                          ├─ which results count     min_ns ... max_bytes
//!                                          └─ how they are laid out   by, top, period_ns, bins
//! ```
//!
//! What `by` may name is said by each analysis. An analysis ignores what has no meaning for it: a duration bounds no
//! count.

use std::path::PathBuf;

use crate::Selection;

/// Into how many bins a distribution is divided if nobody says otherwise.
pub const BINS: usize = 20;

/// What is asked of an analysis. By default everything.
#[derive(Clone, Debug)]
pub struct AnalysisOptions {
    /// Which events are looked at. State is still followed through the others where an analysis needs it.
    pub selection: Selection,
    /// Not before this, in nanoseconds since the clock's origin.
    pub begin_ns: Option<i64>,
    /// Not after this.
    pub end_ns: Option<i64>,
    /// What is told apart, most general first, in the words of the analysis: `process`, `cpu`. Empty: as the analysis
    /// does by itself.
    pub by: Vec<String>,
    /// How many rows a table has at most; the rest is counted as omitted. `None`: all.
    pub top: Option<usize>,
    /// Only what lasts so long, in nanoseconds.
    pub min_ns: Option<u64>,
    /// Only what lasts no longer.
    pub max_ns: Option<u64>,
    /// Only what is so large, in bytes.
    pub min_bytes: Option<u64>,
    /// Only what is no larger.
    pub max_bytes: Option<u64>,
    /// Only on these CPUs, if any are named.
    pub cpus: Vec<u32>,
    /// Only of these threads, if any are named.
    pub tids: Vec<i64>,
    /// Only of threads whose name matches one of these patterns, if there are any; `*` is any text and `?` any
    /// character.
    pub comms: Vec<String>,
    /// Results apart for each span of time of this length, in nanoseconds, counted from the beginning; never zero.
    pub period_ns: Option<u64>,
    /// Into how many bins distributions are divided; never zero.
    pub bins: usize,
    /// All distributions of one kind have the same bins, so that they can be compared.
    pub uniform_bins: bool,
    /// Distributions of one kind are one table with a column for each, instead of a table each; their bins are alike.
    pub series: bool,
    /// A mapping from events to roles that goes before those that are built in.
    pub roles: Option<PathBuf>,
}

impl Default for AnalysisOptions {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            begin_ns: None,
            end_ns: None,
            by: Vec::new(),
            top: None,
            min_ns: None,
            max_ns: None,
            min_bytes: None,
            max_bytes: None,
            cpus: Vec::new(),
            tids: Vec::new(),
            comms: Vec::new(),
            period_ns: None,
            bins: BINS,
            uniform_bins: false,
            series: false,
            roles: None,
        }
    }
}
