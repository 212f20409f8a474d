//! The memory that programs write columns into.

use crate::program::Program;

/// The tables of one program: columns of cells, reused from batch to batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {}

impl Cells {
    /// Makes room for `rows` rows of table 0 and forgets everything that was there.
    pub fn reset(&mut self, program: &Program, rows: usize) {
        let _ = (program, rows);
    }

    /// Number of complete rows of a table.
    #[must_use]
    pub fn rows(&self, table: u16) -> usize {
        let _ = table;
        0
    }

    /// The cells of a column in native byte order, `rows * width` bytes.
    #[must_use]
    pub fn bytes(&self, column: u16) -> &[u8] {
        let _ = column;
        &[]
    }

    /// One byte per row, 1 where there is a value; `None` for a column that is not nullable.
    #[must_use]
    pub fn validity(&self, column: u16) -> Option<&[u8]> {
        let _ = column;
        None
    }
}
