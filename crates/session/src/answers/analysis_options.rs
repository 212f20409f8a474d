//! The options of every analysis: which events, from when to when, of which threads and CPUs, how
//! much of the answer.
//!
//! ```text
//! arguments of a face ──> AnalysisOptions ─┬─ which events count      selection, begin_ns, end_ns
//!                                          └─ which results, and how  wishes
//! ```
//!
//! Each analysis says the names that `by` may have. An analysis ignores options without a meaning
//! for it: a duration bounds no count.

use std::path::PathBuf;

use kymo_analysis::Wishes;
use kymo_analysis::periods::Definitions;

use crate::Selection;

/// The options of an analysis. By default everything.
#[derive(Clone, Debug, Default)]
pub struct AnalysisOptions {
    /// The selected events; the others are as if they had not been recorded.
    pub selection: Selection,
    /// Not before this, in nanoseconds since the clock's origin.
    pub begin_ns: Option<i64>,
    /// Not after this.
    pub end_ns: Option<i64>,
    /// Which results, and how they are laid out.
    pub wishes: Wishes,
    /// Results apart for each period that begins and ends with events; goes before a length of periods.
    pub periods: Option<Definitions>,
    /// A mapping from events to roles that goes before those that are built in.
    pub roles: Option<PathBuf>,
}
