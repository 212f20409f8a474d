//! What a session counts of the kernel's events: questions with the columns of their answers.

use serde::{Deserialize, Serialize};

/// The columns of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchColumns {
    /// Fields: a row for each combination of their values.
    pub by: Vec<String>,
    /// A field that is added up.
    pub sum: Option<String>,
    /// A field whose distribution is counted.
    pub histogram: Option<String>,
    /// Rows that the kernel keeps, at most.
    pub rows: Option<u32>,
}

/// Events of the kernel that are counted beside a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchOptions {
    /// Its name, which no other one of the session has.
    pub name: String,
    /// The question and its columns, as they were written.
    pub words: String,
    /// The question alone.
    pub question: String,
    /// The columns.
    pub columns: WatchColumns,
}
