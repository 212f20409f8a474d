//! Columns back to values, so that they can be compared with those of the tree reader.

use kymo_decode::columns::ColumnShape;
use kymo_format::value::Value;
use kymo_ir::{CellType, Cells};

/// Where columns and the bytes that they refer to are.
#[derive(Clone, Copy)]
pub(crate) struct Shaped<'a> {
    pub(crate) cells: &'a Cells,
    /// From the window's first byte on.
    pub(crate) bytes: &'a [u8],
}

impl Shaped<'_> {
    /// The value in a row of the table that the shape's columns belong to.
    pub(crate) fn value(self, shape: &ColumnShape, row: usize) -> Value {
        let cell = |column: &u16| self.cells.value(*column, row);
        match shape {
            ColumnShape::Integer { column, cell: width, signed: true, .. } => {
                Value::Signed(extended(cell(column), *width))
            }
            ColumnShape::Integer { column, .. } => Value::Unsigned(cell(column)),
            ColumnShape::Boolean { column } => Value::Boolean(cell(column) != 0),
            ColumnShape::BitArray { column } | ColumnShape::BitMap { column, .. } => Value::BitArray(cell(column)),
            ColumnShape::Real { column, .. } => Value::Real(cell(column).into()),
            ColumnShape::Text { column, .. } => Value::Text(self.span(*column, row)),
            ColumnShape::Blob { column } => Value::Blob(self.span(*column, row)),
            ColumnShape::List { column, element, .. } => {
                let (first, count) = self.cells.span(*column, row);
                Value::Array((first..first + count).map(|row| self.value(element, row)).collect())
            }
            ColumnShape::Structure { members } => {
                Value::Structure(members.iter().map(|(_, member)| self.value(member, row)).collect())
            }
            ColumnShape::Optional { present, content } => {
                let is_present = cell(present) == 1;
                Value::Optional(is_present.then(|| Box::new(self.value(content, row))))
            }
            ColumnShape::Variant { option, options } => {
                let option = cell(option) as usize;
                Value::Variant { option, content: Box::new(self.value(&options[option].1, row)) }
            }
        }
    }

    fn span(self, column: u16, row: usize) -> Vec<u8> {
        let (first, count) = self.cells.span(column, row);
        self.bytes[first..first + count].to_vec()
    }
}

fn extended(value: u64, cell: CellType) -> i64 {
    let unused = 64 - 8 * cell.width();
    (value << unused) as i64 >> unused
}
