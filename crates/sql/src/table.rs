//! A table of a trace for DataFusion: columns, their words in the filter language, and scans.
//!
//! ```text
//! TraceTable ── Question: columns, filters, time, limit ──> TraceScan ── partitions(n) ──> n iterators, slices of time each
//!                                                                     ── in_order() ─────> one iterator, read by all threads
//! ```

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;

/// An error below a table.
pub type TableError = Box<dyn std::error::Error + Send + Sync>;

/// An error below a table, as DataFusion carries it.
pub(crate) fn external(error: TableError) -> DataFusionError {
    DataFusionError::External(error)
}

/// Rows, in the order of time where the table declares one. Dropping it stops the threads that read
/// for it.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch, TableError>> + Send>;

/// A table whose rows are read when they are asked for.
pub trait TraceTable: Debug + Send + Sync {
    /// Its name, for `EXPLAIN`.
    fn name(&self) -> &str;

    /// Its columns.
    fn schema(&self) -> SchemaRef;

    /// The column that orders the rows, if there is one without nulls: a time.
    fn order(&self) -> Option<usize>;

    /// The term of a column in the filter language; `None`: it has none there.
    fn term(&self, column: usize) -> Option<Term>;

    /// Whether a filter can be asked of all events of the table.
    fn takes(&self, filter: &str) -> bool;

    /// A scan; nothing is read yet.
    ///
    /// # Errors
    ///
    /// The question cannot be answered.
    fn scan(&self, question: &TableQuestion) -> Result<Arc<dyn TraceScan>, TableError>;
}

/// A question to a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableQuestion {
    /// These columns, in this order; `None`: all.
    pub columns: Option<Vec<usize>>,
    /// Only rows for which all of these are true, in the filter language.
    pub filters: Vec<String>,
    /// Rows before are not asked for, in the unit of the table's times. The filters say so, too.
    pub begin: Option<i64>,
    /// Nor those after.
    pub end: Option<i64>,
    /// No more rows than that are needed.
    pub limit: Option<usize>,
}

/// Rows that can be read, once or several times.
pub trait TraceScan: Debug + Send + Sync {
    /// The columns that were asked for.
    fn schema(&self) -> SchemaRef;

    /// Readers that share the rows, at most `count`: slices of time go to the reader that asks.
    /// Each reads on the thread that asks it.
    fn partitions(&self, count: usize) -> Vec<Batches>;

    /// All rows in the order of time, read by all threads.
    fn in_order(&self) -> Batches;

    /// The packets that are not read, if the table consists of packets.
    fn skipped(&self) -> Option<Skipped>;
}

/// How much of a table is not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Packets that are not read.
    pub packets: u64,
    /// Packets that there are.
    pub of: u64,
}

/// A column in the filter language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The name, as it is written there.
    pub text: String,
    /// The kind of its values.
    pub kind: TermKind,
}

/// The kind of a column's values in the filter language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// Integers; null where the field is missing.
    Integer,
    /// True and false: an integer there; null where it is missing.
    Boolean,
    /// Reals; null where the field is missing.
    Real,
    /// Texts, with U+FFFD for invalid bytes; null where the field is missing.
    Text,
    /// Texts that are always there, and valid.
    Name,
    /// Names of an integer's values; null where the field is missing or its value has no name.
    Label(Arc<[ValueName]>),
    /// Nanoseconds, where they fit into 64 bits; null elsewhere.
    Time,
}

/// A name of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueName {
    /// The name.
    pub name: String,
    /// The values for which a row has it, from and to. No two labels share a value.
    pub ranges: Vec<(i128, i128)>,
}
