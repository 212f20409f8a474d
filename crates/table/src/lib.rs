//! Event records as tables: Arrow record batches from decoded columns, and files of them.
//!
//! ```text
//! cells of one class ──column──> arrays ──table──> record batch ──file──> .arrow, .parquet
//! ```
//!
//! | field | columns |
//! |---|---|
//! | integer, bit array | integer of its width and sign |
//! | enumeration `x` | the integer, and `x_label`: a dictionary |
//! | bit map `x` | the integer, and `x_labels`: a list of text |
//! | boolean, real, blob | the same in Arrow |
//! | text `x` | text, with U+FFFD for what is not valid; on demand `x_bytes`: the bytes of those that are not |
//! | array `x` | a list |
//! | structure | a structure; nothing if it has no members |
//! | optional | its content, or null |
//! | variant | a structure: `tag`, and a member for each option, of which one is not null |
//!
//! Classes of one name may be one table: columns of like names get the type that holds all.
//!
//! It must never know files of traces, threads, or callers.

mod column;
mod fields;
#[cfg(feature = "files")]
mod file;
mod gather;
mod moments;
mod table;

pub use arrow;
pub use arrow::record_batch::RecordBatch;
pub use column::CellSource;
pub use fields::{ColumnNames, FieldColumns, scope_name};
#[cfg(feature = "files")]
pub use file::{FileError, FileFormat, TableFile, together};
pub use gather::{common_type, convert, gather};
pub use moments::TimeColumns;
pub use table::{ArrowTable, PacketEvents};
