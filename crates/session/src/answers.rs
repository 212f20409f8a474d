//! Questions about whole traces: analyses, counts, contents, problems.
//!
//! ```text
//! analyse    an analysis, read by parts on several threads, and the roles of events that it needs
//! count      events by class                  info       streams, clocks, environment
//! check      violations of the specification  explain    meaning of a filter for each class of events
//! json       answers as JSON                  losses     losses that tracers report
//! ```

pub(crate) mod analyse;
pub(crate) mod analysis_options;
#[cfg(feature = "columns")]
pub(crate) mod answer_columns;
pub(crate) mod bases;
pub(crate) mod check;
pub(crate) mod count;
pub(crate) mod explain;
pub(crate) mod info;
pub mod json;
pub(crate) mod losses;
pub(crate) mod roles;
