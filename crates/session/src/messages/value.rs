//! One field of one record, and its value.

use kymo_decode::columns::ColumnShape;
use kymo_format::model::{EnumerationMapping, TextEncoding};
use kymo_ir::emit::double;
use kymo_ir::{CellType, Cells};

/// A field of a record: where its value is.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef<'a> {
    pub(super) shape: &'a ColumnShape,
    pub(super) cells: &'a Cells,
    pub(super) bytes: &'a [u8],
    pub(super) row: usize,
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub enum MessageValue<'a> {
    /// An integer, or an enumeration.
    Unsigned(u64),
    /// The same with a sign.
    Signed(i64),
    /// True or false.
    Boolean(bool),
    /// Bits, with or without names.
    Bits(u64),
    /// A real.
    Real(f64),
    /// Bytes of text, up to a zero code unit at most.
    Text(&'a [u8], TextEncoding),
    /// Bytes.
    Blob(&'a [u8]),
    /// Elements; see [`FieldRef::elements`].
    List(usize),
    /// Members; see [`FieldRef::members`].
    Structure,
    /// Content or nothing.
    Optional(Option<FieldRef<'a>>),
    /// The option that is there, and its index.
    Variant(usize, FieldRef<'a>),
}

impl<'a> FieldRef<'a> {
    /// The shape of the field.
    #[must_use]
    pub fn shape(&self) -> &'a ColumnShape {
        self.shape
    }

    /// Its value.
    #[must_use]
    #[inline]
    pub fn value(&self) -> MessageValue<'a> {
        match *self.shape {
            ColumnShape::Integer { column, signed: true, cell, .. } => {
                let unused = 64 - 8 * cell.width() as u32;
                MessageValue::Signed((self.number(column) << unused) as i64 >> unused)
            }
            ColumnShape::Integer { column, .. } => MessageValue::Unsigned(self.number(column)),
            ColumnShape::Boolean { column } => MessageValue::Boolean(self.number(column) != 0),
            ColumnShape::BitArray { column } | ColumnShape::BitMap { column, .. } => {
                MessageValue::Bits(self.number(column))
            }
            ColumnShape::Real { column, cell } => {
                MessageValue::Real(double(self.number(column), 8 * cell.width() as u8))
            }
            ColumnShape::Text { column, encoding } => MessageValue::Text(self.span(column), encoding),
            ColumnShape::Blob { column } => MessageValue::Blob(self.span(column)),
            ColumnShape::List { column, .. } => MessageValue::List(self.cells.span(column, self.row).1),
            ColumnShape::Structure { .. } => MessageValue::Structure,
            ColumnShape::Optional { present, ref content } => {
                let is_there = self.number(present) != 0;
                MessageValue::Optional(is_there.then(|| self.of(content, self.row)))
            }
            ColumnShape::Variant { option, ref options } => {
                let option = self.number(option) as usize;
                MessageValue::Variant(option, self.of(&options[option].1, self.row))
            }
        }
    }

    #[inline]
    fn number(&self, column: u16) -> u64 {
        self.cells.value(column, self.row)
    }

    fn span(&self, column: u16) -> &'a [u8] {
        let (start, count) = self.cells.span(column, self.row);
        &self.bytes[start..start + count]
    }

    fn of(&self, shape: &'a ColumnShape, row: usize) -> Self {
        Self { shape, row, ..*self }
    }

    /// The bytes of a blob, or of a list of numbers of 8 bits.
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.shape {
            ColumnShape::Blob { column } => Some(self.span(*column)),
            ColumnShape::List { column, element, .. } => match **element {
                ColumnShape::Integer { column: element, cell: CellType::U8, .. } => {
                    let (first, count) = self.cells.span(*column, self.row);
                    self.cells.bytes(element).get(first..first + count)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The elements of a list; nothing for other fields.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = Self> + use<'a> {
        let (rows, element) = match self.shape {
            ColumnShape::List { column, element, .. } => {
                let (first, count) = self.cells.span(*column, self.row);
                (first..first + count, &**element)
            }
            _ => (0..0, self.shape),
        };
        let list = *self;
        rows.map(move |row| list.of(element, row))
    }

    /// The members of a structure with their names; nothing for other fields.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (&'a str, Self)> + use<'a> {
        let members: &'a [(String, ColumnShape)] = match self.shape {
            ColumnShape::Structure { members } => members,
            _ => &[],
        };
        let structure = *self;
        members.iter().map(move |(name, shape)| (name.as_str(), structure.of(shape, structure.row)))
    }

    /// The labels of its value, if it is an enumeration; of each mapping that has it, in their order.
    pub fn labels(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let value = match self.value() {
            MessageValue::Unsigned(value) => i128::from(value),
            MessageValue::Signed(value) => i128::from(value),
            _ => 0,
        };
        let mappings: &'a [EnumerationMapping] = match self.shape {
            ColumnShape::Integer { labels: Some(mappings), .. } => mappings,
            _ => &[],
        };
        let has = move |mapping: &&EnumerationMapping| mapping.ranges.iter().any(|range| range.contains(value));
        mappings.iter().filter(has).map(|mapping| mapping.label.as_str())
    }
}
