//! The assumptions that importers make, as documentation calls them.

use kymo_source::ImportNote;

/// A clock counts cycles of unknown length.
pub(crate) const UNKNOWN_FREQUENCY: &str = "unknown-frequency";
/// Names of events are those of another file than the trace's own.
pub(crate) const GUESSED_DEFINITIONS: &str = "guessed-definitions";
/// Parts of a file are of something else.
pub(crate) const OTHER_LINES: &str = "other-lines";
/// Events of a stream are not in the order of time.
pub(crate) const UNORDERED_EVENTS: &str = "unordered-events";
/// A tracer had no room for more events, and did not count them.
pub(crate) const BUFFER_FULL: &str = "buffer-full";

/// Events have no time of their own.
pub(crate) const NO_TIME: &str = "no-time";

pub(crate) fn note(assumption: &'static str, what: impl Into<String>) -> ImportNote {
    ImportNote { assumption, what: what.into() }
}
