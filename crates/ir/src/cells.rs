//! The memory that programs write columns into, reused from batch to batch.
//!
//! ```text
//! table 0   one row per record: its size is known beforehand
//! table n   one row per element: grows while records are read
//! column    cells side by side, and for a nullable one a byte per row that says whether there is a value
//! ```
//!
//! Memory is never given back and, except for validity, never cleared: every row writes all its cells.

use crate::program::{CellType, ReadProgram};

/// The tables of one program.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    tables: Vec<TableRows>,
    columns: Vec<RowMemory>,
    /// So many of `columns` belong to the program; the others' memory waits for a program that has more.
    used: usize,
}

/// Rows of a table. Machine code reads and writes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TableRows {
    /// Complete ones.
    pub complete: usize,
    /// For how many the columns have room.
    pub capacity: usize,
}

#[derive(Clone, Debug, Default)]
struct RowMemory {
    table: u16,
    width: u8,
    nullable: bool,
    bytes: Vec<u8>,
    validity: Vec<u8>,
}

/// Rows of a child table that stay at hand from batch to batch.
const ROWS_KEPT: usize = 4096;

impl CellType {
    /// Bytes of a cell.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
            Self::U64 | Self::Span => 8,
        }
    }
}

impl Cells {
    /// Makes room for `rows` rows of table 0 and forgets everything that was there. A child table has room for at
    /// least one row.
    pub fn reset(&mut self, program: &ReadProgram, rows: usize) {
        self.tables.clear();
        self.tables.resize(program.tables.len(), TableRows { complete: 0, capacity: ROWS_KEPT });
        if self.columns.len() < program.columns.len() {
            self.columns.resize_with(program.columns.len(), RowMemory::default);
        }
        self.used = program.columns.len();
        if let Some(records) = self.tables.first_mut() {
            records.capacity = rows;
        }
        for (memory, column) in self.columns.iter_mut().zip(&program.columns) {
            memory.table = column.table;
            memory.width = column.cell.width() as u8;
            memory.nullable = column.nullable;
            let table = &mut self.tables[usize::from(column.table)];
            if column.table != 0 {
                table.capacity = table.capacity.min(memory.rows()).max(1);
            }
        }
        for memory in &mut self.columns[..self.used] {
            memory.make_room(self.tables[usize::from(memory.table)].capacity, 0);
        }
    }

    /// Makes room for `rows` rows of a table.
    pub fn grow(&mut self, table: u16, rows: usize) {
        let state = &mut self.tables[usize::from(table)];
        if rows <= state.capacity {
            return;
        }
        // Table 0 gets exactly its needed rows; others grow to twice their size, as vectors do.
        let before = state.capacity;
        state.capacity = if table == 0 { rows } else { rows.max(state.capacity * 2) };
        for memory in self.columns[..self.used].iter_mut().filter(|memory| memory.table == table) {
            memory.make_room(state.capacity, before);
        }
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.used
    }

    /// Complete rows and room.
    #[must_use]
    pub fn table(&self, table: u16) -> TableRows {
        self.tables[usize::from(table)]
    }

    /// Number of complete rows of a table.
    #[must_use]
    pub fn rows(&self, table: u16) -> usize {
        self.table(table).complete
    }

    /// Sets the number of complete rows.
    ///
    /// # Panics
    ///
    /// If the memory has no room for that many.
    pub fn set_rows(&mut self, table: u16, rows: usize) {
        let state = &mut self.tables[usize::from(table)];
        assert!(rows <= state.capacity, "{rows} rows in a table with room for {}", state.capacity);
        state.complete = rows;
    }

    /// Writes the low bytes of `value` into the row after the complete ones.
    pub(crate) fn store(&mut self, column: u16, value: u64) {
        let memory = &mut self.columns[usize::from(column)];
        let row = self.tables[usize::from(memory.table)].complete;
        let width = usize::from(memory.width);
        let cell = &mut memory.bytes[row * width..(row + 1) * width];
        match cell.len() {
            1 => cell.copy_from_slice(&(value as u8).to_ne_bytes()),
            2 => cell.copy_from_slice(&(value as u16).to_ne_bytes()),
            4 => cell.copy_from_slice(&(value as u32).to_ne_bytes()),
            _ => cell.copy_from_slice(&value.to_ne_bytes()),
        }
        if memory.nullable {
            memory.validity[row] = 1;
        }
    }

    /// Writes a span into the row after the complete ones.
    pub(crate) fn store_span(&mut self, column: u16, first: u32, count: u32) {
        let mut cell = [0; 8];
        cell[..4].copy_from_slice(&first.to_ne_bytes());
        cell[4..].copy_from_slice(&count.to_ne_bytes());
        self.store(column, u64::from_ne_bytes(cell));
    }

    /// The cells of a column in native byte order, `rows * width` bytes.
    #[must_use]
    pub fn bytes(&self, column: u16) -> &[u8] {
        let memory = &self.columns[usize::from(column)];
        &memory.bytes[..self.rows(memory.table) * usize::from(memory.width)]
    }

    /// Bytes of a column's cells.
    #[must_use]
    pub fn width(&self, column: u16) -> usize {
        usize::from(self.columns[usize::from(column)].width)
    }

    /// One byte per row, 1 where there is a value; `None` for a column that is not nullable.
    #[must_use]
    #[inline]
    pub fn validity(&self, column: u16) -> Option<&[u8]> {
        let memory = &self.columns[usize::from(column)];
        let rows = self.rows(memory.table);
        memory.nullable.then(|| &memory.validity[..rows])
    }

    /// A cell, zero-extended.
    #[must_use]
    #[inline]
    pub fn value(&self, column: u16, row: usize) -> u64 {
        let memory = &self.columns[usize::from(column)];
        let width = usize::from(memory.width);
        let cell = &memory.bytes[row * width..(row + 1) * width];
        match *cell {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => u64::from_ne_bytes(cell.try_into().expect("a cell has 1, 2, 4 or 8 bytes")),
        }
    }

    /// A cell of 8 bytes.
    ///
    /// # Panics
    ///
    /// If the column's cells are narrower, or there is no such row.
    #[must_use]
    #[inline]
    pub fn word(&self, column: u16, row: usize) -> u64 {
        let cell = self.columns[usize::from(column)].bytes[row * 8..].first_chunk();
        u64::from_ne_bytes(*cell.expect("rows of the column have 8 bytes each"))
    }

    /// The cells of a column of 8 bytes each, for callers that want many: those of all rows, and of
    /// further ones that mean nothing.
    ///
    /// # Panics
    ///
    /// If the column's cells are narrower.
    #[must_use]
    #[inline]
    pub fn words(&self, column: u16) -> &[[u8; 8]] {
        let memory = &self.columns[usize::from(column)];
        assert_eq!(memory.width, 8, "rows of the column have 8 bytes each");
        memory.bytes.as_chunks().0
    }

    /// A span cell: first and count.
    #[must_use]
    #[inline]
    pub fn span(&self, column: u16, row: usize) -> (usize, usize) {
        Self::span_of(self.word(column, row).to_ne_bytes())
    }

    /// The meaning of a span cell: first and count.
    #[must_use]
    #[inline]
    pub fn span_of(cell: [u8; 8]) -> (usize, usize) {
        let half = |at: usize| u32::from_ne_bytes(cell[at..at + 4].try_into().expect("four bytes of eight"));
        (half(0) as usize, half(4) as usize)
    }

    /// Memory of a column for machine code: (cells, validity).
    pub fn column_mut(&mut self, column: u16) -> (&mut [u8], Option<&mut [u8]>) {
        let memory = &mut self.columns[usize::from(column)];
        (&mut memory.bytes, memory.nullable.then_some(&mut memory.validity[..]))
    }

    /// The tables' rows for machine code.
    pub fn tables_mut(&mut self) -> &mut [TableRows] {
        &mut self.tables
    }
}

impl RowMemory {
    /// For how many rows there is room.
    fn rows(&self) -> usize {
        let rows = self.bytes.len() / usize::from(self.width);
        if self.nullable { rows.min(self.validity.len()) } else { rows }
    }

    /// Makes room for `rows` rows; those from `empty_from` on have no value.
    fn make_room(&mut self, rows: usize, empty_from: usize) {
        let bytes = rows * usize::from(self.width);
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
        if self.nullable {
            self.validity.truncate(empty_from);
            self.validity.resize(rows, 0);
        }
    }
}

/// The same rows; cells that hold no value, and memory behind the rows, do not count.
impl PartialEq for Cells {
    fn eq(&self, other: &Self) -> bool {
        let columns = || 0..self.used as u16;
        let cell = |cells: &Self, column: u16, row: usize| {
            let has_value = cells.validity(column).is_none_or(|validity| validity[row] != 0);
            has_value.then(|| cells.value(column, row))
        };
        let rows = |cells: &Self| cells.tables.iter().map(|table| table.complete).collect::<Vec<usize>>();
        self.used == other.used
            && rows(self) == rows(other)
            && columns().all(|column| {
                let rows = 0..self.rows(self.columns[usize::from(column)].table);
                rows.into_iter().all(|row| cell(self, column, row) == cell(other, column, row))
            })
    }
}

impl Eq for Cells {}
