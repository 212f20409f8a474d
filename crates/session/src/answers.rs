//! Questions about whole traces: analyses, counts, what traces consist of, what is wrong with them.
//!
//! ```text
//! analyse    an analysis, read by parts on several threads, and what it needs to know of events (roles)
//! count      events by class                  info       streams, clocks, environment
//! check      what violates the specification  explain    what a filter means for each class of events
//! json       answers as JSON                  losses     what tracers say they lost
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
