//! One column being filled.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanArray, BooleanBufferBuilder, DictionaryArray, Int32Array, ListArray, ListBuilder,
    StringArray, StringBuilder, StructArray, make_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Fields, Int32Type};
use kymo_decode::columns::ColumnShape;
use kymo_format::model::{EnumerationMapping, TextEncoding};
use kymo_ir::{Cells, Encoding, TextStyle};

/// Cells, and the bytes that their spans lie in.
#[derive(Clone, Copy, Debug)]
pub struct CellSource<'a> {
    /// The cells.
    pub cells: &'a Cells,
    /// From the first byte of the window that they were read from.
    pub bytes: &'a [u8],
}

/// A column, and its values so far.
#[derive(Debug)]
pub(crate) struct ArrowColumn {
    name: String,
    data: Data,
    valid: Validity,
}

/// Numbers are columns of the cells.
#[derive(Debug)]
enum Data {
    Number {
        cells: u16,
        kind: DataType,
        width: usize,
        bytes: Vec<u8>,
    },
    Boolean {
        cells: u16,
        bits: BooleanBufferBuilder,
    },
    /// 16 bits, which few readers know: written with 32.
    Half {
        cells: u16,
        values: Vec<f32>,
    },
    Label {
        cells: u16,
        labels: Arc<LabelDictionary>,
        keys: Vec<i32>,
    },
    Flags {
        cells: u16,
        labels: Arc<LabelDictionary>,
        lists: ListBuilder<StringBuilder>,
    },
    /// Its validity is checked once for all.
    Text {
        cells: u16,
        encoding: TextEncoding,
        offsets: Vec<i32>,
        bytes: Vec<u8>,
        /// Texts that were not valid.
        replaced: u64,
    },
    /// The bytes of texts that are not valid.
    RawText {
        cells: u16,
        encoding: TextEncoding,
        blobs: BinaryBuilder,
    },
    Blob {
        cells: u16,
        blobs: BinaryBuilder,
    },
    List {
        cells: u16,
        offsets: Vec<i32>,
        element: Box<ArrowColumn>,
    },
    Structure {
        members: Vec<ArrowColumn>,
    },
    /// The names of options by their index.
    Tag {
        cells: u16,
        labels: Arc<LabelDictionary>,
        keys: Vec<i32>,
    },
}

/// Names of values, and their dictionary, which all batches share.
#[derive(Debug)]
struct LabelDictionary {
    signed: bool,
    mappings: Vec<EnumerationMapping>,
    names: ArrayRef,
}

impl LabelDictionary {
    fn new(mappings: &[EnumerationMapping], signed: bool) -> Arc<Self> {
        let names: StringArray = mappings.iter().map(|mapping| Some(mapping.label.as_str())).collect();
        Arc::new(Self { signed, mappings: mappings.to_vec(), names: Arc::new(names) })
    }

    fn of_names(names: Vec<String>) -> Arc<Self> {
        Arc::new(Self { signed: false, mappings: Vec::new(), names: Arc::new(StringArray::from(names)) })
    }

    /// The first mapping that has the value.
    fn key(&self, value: u64) -> Option<i32> {
        let value = if self.signed { i128::from(value as i64) } else { i128::from(value) };
        let found = self.mappings.iter().position(|mapping| holds(mapping, value));
        found.map(|index| index as i32)
    }
}

fn holds(mapping: &EnumerationMapping, value: i128) -> bool {
    mapping.ranges.iter().any(|range| (range.lower..=range.upper).contains(&value))
}

/// Which rows have a value.
#[derive(Debug, Default)]
struct Validity {
    /// Absent while all have.
    bits: Option<BooleanBufferBuilder>,
    rows: usize,
}

impl Validity {
    fn push(&mut self, valid: bool, count: usize) {
        if !valid && self.bits.is_none() {
            let mut bits = BooleanBufferBuilder::new(self.rows + count);
            bits.append_n(self.rows, true);
            self.bits = Some(bits);
        }
        if let Some(bits) = &mut self.bits {
            bits.append_n(count, valid);
        }
        self.rows += count;
    }

    /// Of the rows of a column of cells.
    fn append(&mut self, cells: &Cells, column: u16, rows: Range<usize>) {
        match cells.validity(column) {
            None => self.push(true, rows.len()),
            Some(validity) => validity[rows].iter().for_each(|&valid| self.push(valid != 0, 1)),
        }
    }

    fn finish(&mut self) -> Option<NullBuffer> {
        self.rows = 0;
        self.bits.take().map(|mut bits| NullBuffer::new(bits.finish()))
    }
}

/// The columns of a field: an enumeration has two; so has a text, if the bytes of invalid texts are
/// kept.
pub(crate) fn columns(name: &str, shape: &ColumnShape, keep_bytes: bool) -> Vec<ArrowColumn> {
    let column = |name: &str, data| ArrowColumn { name: name.to_owned(), data, valid: Validity::default() };
    let number = |cells: u16, kind: DataType| {
        let width = kind.primitive_width().unwrap_or(8);
        column(name, Data::Number { cells, kind, width, bytes: Vec::new() })
    };
    match shape {
        ColumnShape::Integer { column: cells, signed, labels, cell, .. } => {
            let mut columns = vec![number(*cells, integer(cell.width(), *signed))];
            if let Some(mappings) = labels {
                let labels = LabelDictionary::new(mappings, *signed);
                columns.push(column(&format!("{name}_label"), Data::Label { cells: *cells, labels, keys: Vec::new() }));
            }
            columns
        }
        ColumnShape::BitArray { column: cells } => vec![number(*cells, DataType::UInt64)],
        ColumnShape::BitMap { column: cells, flags } => {
            let labels = LabelDictionary::new(flags, false);
            let lists = ListBuilder::new(StringBuilder::new());
            let data = Data::Flags { cells: *cells, labels, lists };
            vec![number(*cells, DataType::UInt64), column(&format!("{name}_labels"), data)]
        }
        ColumnShape::Boolean { column: cells } => {
            vec![column(name, Data::Boolean { cells: *cells, bits: BooleanBufferBuilder::new(0) })]
        }
        ColumnShape::Real { column: cells, cell } => vec![match cell.width() {
            2 => column(name, Data::Half { cells: *cells, values: Vec::new() }),
            4 => number(*cells, DataType::Float32),
            _ => number(*cells, DataType::Float64),
        }],
        ColumnShape::Text { column: cells, encoding } => {
            let (cells, encoding) = (*cells, *encoding);
            let text = Data::Text { cells, encoding, offsets: vec![0], bytes: Vec::new(), replaced: 0 };
            let mut columns = vec![column(name, text)];
            if keep_bytes {
                let raw = Data::RawText { cells, encoding, blobs: BinaryBuilder::new() };
                columns.push(column(&format!("{name}_bytes"), raw));
            }
            columns
        }
        ColumnShape::Blob { column: cells } => {
            vec![column(name, Data::Blob { cells: *cells, blobs: BinaryBuilder::new() })]
        }
        ColumnShape::List { column: cells, element, .. } => {
            let list = |element: ArrowColumn| {
                let name = name.to_owned() + element.name.strip_prefix("item").unwrap_or_default();
                let data = Data::List { cells: *cells, offsets: vec![0], element: Box::new(element) };
                ArrowColumn { name, data, valid: Validity::default() }
            };
            columns("item", element, keep_bytes).into_iter().map(list).collect()
        }
        ColumnShape::Structure { members } => {
            let members: Vec<ArrowColumn> =
                members.iter().flat_map(|(name, shape)| columns(name, shape, keep_bytes)).collect();
            // Parquet knows no structure without members, and there is nothing in it.
            if members.is_empty() { Vec::new() } else { vec![column(name, Data::Structure { members })] }
        }
        ColumnShape::Optional { content, .. } => columns(name, content, keep_bytes),
        ColumnShape::Variant { option, options } => {
            let name_of = |(index, (name, _)): (usize, &(Option<String>, ColumnShape))| {
                name.clone().unwrap_or(format!("option{index}"))
            };
            let names: Vec<String> = options.iter().enumerate().map(name_of).collect();
            let mut members: Vec<ArrowColumn> = Vec::new();
            for (name, (_, shape)) in names.iter().zip(options) {
                members.extend(columns(name, shape, keep_bytes));
            }
            let labels = LabelDictionary::of_names(names);
            members.insert(0, column("tag", Data::Tag { cells: *option, labels, keys: Vec::new() }));
            vec![column(name, Data::Structure { members })]
        }
    }
}

fn integer(width: usize, signed: bool) -> DataType {
    match (width, signed) {
        (1, false) => DataType::UInt8,
        (1, true) => DataType::Int8,
        (2, false) => DataType::UInt16,
        (2, true) => DataType::Int16,
        (4, false) => DataType::UInt32,
        (4, true) => DataType::Int32,
        (_, false) => DataType::UInt64,
        (_, true) => DataType::Int64,
    }
}

impl ArrowColumn {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its name and type.
    pub(crate) fn field(&self) -> Field {
        let kind = match &self.data {
            Data::Number { kind, .. } => kind.clone(),
            Data::Boolean { .. } => DataType::Boolean,
            Data::Half { .. } => DataType::Float32,
            Data::Label { .. } | Data::Tag { .. } => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Data::Flags { .. } => DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))),
            Data::Text { .. } => DataType::Utf8,
            Data::Blob { .. } | Data::RawText { .. } => DataType::Binary,
            Data::List { element, .. } => DataType::List(Arc::new(element.field().with_name("item"))),
            Data::Structure { members } => DataType::Struct(members.iter().map(Self::field).collect()),
        };
        Field::new(&self.name, kind, true)
    }

    /// Appends rows.
    pub(crate) fn append(&mut self, source: CellSource<'_>, rows: Range<usize>) {
        let cells = source.cells;
        if let Some(column) = self.data.cells() {
            self.valid.append(cells, column, rows.clone());
        }
        match &mut self.data {
            Data::Number { cells: column, width, bytes, .. } => {
                bytes.extend_from_slice(&cells.bytes(*column)[rows.start * *width..rows.end * *width]);
            }
            Data::Boolean { cells: column, bits } => {
                rows.for_each(|row| bits.append(cells.value(*column, row) != 0));
            }
            Data::Half { cells: column, values } => {
                values.extend(rows.map(|row| half(cells.value(*column, row) as u16)));
            }
            Data::Label { cells: column, labels, keys } => {
                for row in rows {
                    let key = if has_value(cells, *column, row) {
                        labels.key(signed(cells, *column, row, labels))
                    } else {
                        None
                    };
                    // The integer has a value here, its label may not.
                    keys.push(key.unwrap_or(-1));
                }
            }
            Data::Tag { cells: column, keys, .. } => {
                keys.extend(rows.map(|row| cells.value(*column, row) as i32));
            }
            Data::Flags { cells: column, labels, lists } => {
                for row in rows {
                    let value = cells.value(*column, row);
                    let is_set =
                        |mapping: &&EnumerationMapping| (0..64).any(|bit| value >> bit & 1 == 1 && holds(mapping, bit));
                    labels
                        .mappings
                        .iter()
                        .filter(is_set)
                        .for_each(|mapping| lists.values().append_value(&mapping.label));
                    lists.append(has_value(cells, *column, row));
                }
            }
            Data::Text { cells: column, encoding, offsets, bytes, replaced } => {
                for row in rows {
                    let text = span(source, *column, row).unwrap_or_default();
                    // Bytes of UTF-8 are checked once for all.
                    *replaced += u64::from(!is_bytewise(*encoding) && !is_text(text, *encoding));
                    append_text(bytes, text, *encoding);
                    offsets.push(bytes.len() as i32);
                }
            }
            Data::RawText { cells: column, encoding, blobs } => {
                for row in rows {
                    blobs.append_option(span(source, *column, row).filter(|text| !is_text(text, *encoding)));
                }
            }
            Data::Blob { cells: column, blobs } => {
                for row in rows {
                    blobs.append_option(span(source, *column, row));
                }
            }
            Data::List { cells: column, offsets, element } => append_list(source, *column, rows, offsets, element),
            Data::Structure { members } => {
                members.iter_mut().for_each(|member| member.append(source, rows.clone()));
            }
        }
    }

    /// Appends the same row several times.
    pub(crate) fn repeat(&mut self, source: CellSource<'_>, row: usize, count: usize) {
        if let Data::Number { cells: column, width, bytes, .. } = &mut self.data
            && has_value(source.cells, *column, row)
        {
            let cell = &source.cells.bytes(*column)[row * *width..(row + 1) * *width];
            (0..count).for_each(|_| bytes.extend_from_slice(cell));
            return self.valid.push(true, count);
        }
        (0..count).for_each(|_| self.append(source, row..row + 1));
    }

    /// The appended values; the column is empty again.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        let nulls = self.valid.finish();
        match &mut self.data {
            Data::Number { kind, width, bytes, .. } => {
                let rows = bytes.len() / *width;
                let data = arrow::array::ArrayData::builder(kind.clone())
                    .len(rows)
                    .add_buffer(Buffer::from_vec(std::mem::take(bytes)))
                    .nulls(nulls)
                    .align_buffers(true);
                make_array(data.build().expect("the buffer has a cell for each row"))
            }
            Data::Boolean { bits, .. } => Arc::new(BooleanArray::new(bits.finish(), nulls)),
            Data::Half { values, .. } => {
                Arc::new(arrow::array::Float32Array::new(ScalarBuffer::from(std::mem::take(values)), nulls))
            }
            Data::Label { labels, keys, .. } | Data::Tag { labels, keys, .. } => {
                let keys: Int32Array = std::mem::take(keys).into_iter().map(|key| (key >= 0).then_some(key)).collect();
                Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::clone(&labels.names)))
            }
            Data::Flags { lists, .. } => Arc::new(lists.finish()),
            Data::Text { offsets, bytes, replaced, .. } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(offsets, vec![0])));
                Arc::new(texts(&offsets, &Buffer::from_vec(std::mem::take(bytes)), nulls.as_ref(), replaced))
            }
            Data::Blob { blobs, .. } | Data::RawText { blobs, .. } => Arc::new(blobs.finish()),
            Data::List { offsets, element, .. } => {
                let offsets = std::mem::replace(offsets, vec![0]);
                let field = Arc::new(element.field().with_name("item"));
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                Arc::new(ListArray::new(field, offsets, element.finish(), nulls))
            }
            Data::Structure { members } => {
                let fields: Fields = members.iter().map(Self::field).collect();
                let arrays: Vec<ArrayRef> = members.iter_mut().map(Self::finish).collect();
                Arc::new(StructArray::new(fields, arrays, None))
            }
        }
    }
}

impl ArrowColumn {
    /// How many texts were not valid, since it was asked last.
    pub(crate) fn replaced(&mut self) -> u64 {
        match &mut self.data {
            Data::Text { replaced, .. } => std::mem::take(replaced),
            Data::List { element, .. } => element.replaced(),
            Data::Structure { members } => members.iter_mut().map(Self::replaced).sum(),
            _ => 0,
        }
    }
}

impl Data {
    /// The column of cells with the presence of values by row.
    fn cells(&self) -> Option<u16> {
        match self {
            Self::Number { cells, .. }
            | Self::Boolean { cells, .. }
            | Self::Half { cells, .. }
            | Self::Text { cells, .. }
            | Self::List { cells, .. } => Some(*cells),
            // These know by themselves, and a structure by its members.
            _ => None,
        }
    }
}

fn append_list(
    source: CellSource<'_>,
    column: u16,
    rows: Range<usize>,
    offsets: &mut Vec<i32>,
    element: &mut ArrowColumn,
) {
    let mut pending = 0..0;
    for row in rows {
        let (first, count) =
            if has_value(source.cells, column, row) { source.cells.span(column, row) } else { (pending.end, 0) };
        let before = *offsets.last().expect("offsets begin with 0");
        offsets.push(before + count as i32);
        if first != pending.end {
            element.append(source, std::mem::replace(&mut pending, first..first));
        }
        pending.end += count;
    }
    element.append(source, pending);
}

fn has_value(cells: &Cells, column: u16, row: usize) -> bool {
    cells.validity(column).is_none_or(|validity| validity[row] != 0)
}

/// A cell extended as its integer's sign demands.
fn signed(cells: &Cells, column: u16, row: usize, labels: &LabelDictionary) -> u64 {
    let value = cells.value(column, row);
    let bits = 8 * cells.width(column) as u32;
    if labels.signed && bits < 64 { ((value << (64 - bits)) as i64 >> (64 - bits)) as u64 } else { value }
}

fn span(source: CellSource<'_>, column: u16, row: usize) -> Option<&[u8]> {
    has_value(source.cells, column, row).then(|| {
        let (first, length) = source.cells.span(column, row);
        &source.bytes[first..first + length]
    })
}

/// As UTF-8, as far as it is valid.
fn append_text(out: &mut Vec<u8>, bytes: &[u8], encoding: TextEncoding) {
    let encoding = match encoding {
        TextEncoding::Ascii | TextEncoding::Utf8 => return out.extend_from_slice(bytes),
        TextEncoding::Utf16Be => Encoding::Utf16Be,
        TextEncoding::Utf16Le => Encoding::Utf16Le,
        TextEncoding::Utf32Be => Encoding::Utf32Be,
        TextEncoding::Utf32Le => Encoding::Utf32Le,
    };
    kymo_ir::emit::text(out, bytes, encoding, TextStyle::Raw);
}

fn is_bytewise(encoding: TextEncoding) -> bool {
    matches!(encoding, TextEncoding::Ascii | TextEncoding::Utf8)
}

/// Whether a reader of the table finds the written text.
fn is_text(bytes: &[u8], encoding: TextEncoding) -> bool {
    let of_16 = |unit: fn([u8; 2]) -> u16| {
        let (units, rest) = bytes.as_chunks();
        rest.is_empty() && char::decode_utf16(units.iter().map(|it| unit(*it))).all(|character| character.is_ok())
    };
    let of_32 = |unit: fn([u8; 4]) -> u32| {
        let (units, rest) = bytes.as_chunks();
        rest.is_empty() && units.iter().all(|it| char::from_u32(unit(*it)).is_some())
    };
    match encoding {
        TextEncoding::Ascii | TextEncoding::Utf8 => std::str::from_utf8(bytes).is_ok(),
        TextEncoding::Utf16Be => of_16(u16::from_be_bytes),
        TextEncoding::Utf16Le => of_16(u16::from_le_bytes),
        TextEncoding::Utf32Be => of_32(u32::from_be_bytes),
        TextEncoding::Utf32Le => of_32(u32::from_le_bytes),
    }
}

/// Texts, with U+FFFD for invalid bytes.
fn texts(offsets: &OffsetBuffer<i32>, bytes: &Buffer, nulls: Option<&NullBuffer>, replaced: &mut u64) -> StringArray {
    match StringArray::try_new(offsets.clone(), bytes.clone(), nulls.cloned()) {
        Ok(texts) => texts,
        Err(_) => {
            let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
            let mut text = |(row, ends): (usize, &[i32])| {
                is_valid(row).then(|| {
                    let text = String::from_utf8_lossy(&bytes[ends[0] as usize..ends[1] as usize]);
                    *replaced += u64::from(matches!(text, Cow::Owned(_)));
                    text
                })
            };
            offsets.windows(2).enumerate().map(&mut text).collect()
        }
    }
}

fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f32.powi(exponent - 15),
    }
}
