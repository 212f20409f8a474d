//! Text with other bytes than its encoding has.

use std::sync::Arc;

use kymo_decode::columns::{ColumnReader, ColumnShape, Projection};
use kymo_format::model::TextEncoding;
use kymo_ir::Cells;
use kymo_scan::groups::ClassGroups;
use kymo_scan::{BatchEvents, Trace};

/// Looks at the texts of a data stream's events.
pub(super) struct TextCheck {
    reader: ColumnReader,
    /// For each event record class the texts that it may have.
    texts: Vec<Vec<TextColumn>>,
    groups: ClassGroups,
    cells: Cells,
}

/// A column of texts.
struct TextColumn {
    /// Its field's name.
    name: String,
    column: u16,
    table: u16,
    encoding: TextEncoding,
}

/// A text that is not valid.
pub(super) struct WrongText<'a> {
    /// The first bit of its event in the packet; `None`: the text is an element, which tells nothing of its event.
    pub(super) position: Option<u64>,
    /// The name of its field.
    pub(super) name: &'a str,
    /// Its fault.
    pub(super) problem: String,
}

impl TextCheck {
    /// `None`: events have no texts.
    pub(super) fn new(trace: &Trace, class: usize) -> Option<Self> {
        let reader = ColumnReader::new(Arc::clone(&trace.decoder), class, Projection::All);
        let texts_of = |event: usize| {
            let mut texts = Vec::new();
            for field in &reader.columns(event).fields {
                collect(&field.name, &field.shape, 0, &mut texts);
            }
            texts
        };
        let events = trace.class.stream_classes[class].event_classes.len();
        let texts: Vec<Vec<TextColumn>> = (0..events).map(texts_of).collect();
        let has_texts = texts.iter().any(|texts| !texts.is_empty());
        has_texts.then(|| Self { reader, texts, groups: ClassGroups::default(), cells: Cells::default() })
    }

    /// Tells each text of these events that is not valid.
    pub(super) fn look(&mut self, events: &BatchEvents, tell: &mut dyn FnMut(WrongText<'_>)) {
        let Self { reader, texts, groups, cells } = self;
        groups.sort(&events.records.classes, &events.records.positions);
        let window = events.window();
        for (class, positions) in groups.iter() {
            let texts = &texts[class as usize];
            // An event that cannot be read is another finding.
            if texts.is_empty() || reader.read(class as usize, window, positions, &mut events.state(), cells).is_err() {
                continue;
            }
            for text in texts {
                let is_there = cells.validity(text.column);
                for row in 0..cells.rows(text.table) {
                    if is_there.is_some_and(|is_there| is_there[row] == 0) {
                        continue;
                    }
                    let (first, length) = cells.span(text.column, row);
                    let bytes = window.bytes().get(first..first + length).unwrap_or_default();
                    if let Some(problem) = problem(bytes, text.encoding) {
                        let position = (text.table == 0).then(|| positions[row]);
                        tell(WrongText { position, name: &text.name, problem });
                    }
                }
            }
        }
    }
}

/// Adds the columns of texts in a field.
fn collect(name: &str, shape: &ColumnShape, table: u16, texts: &mut Vec<TextColumn>) {
    match shape {
        ColumnShape::Text { column, encoding } => {
            texts.push(TextColumn { name: name.to_owned(), column: *column, table, encoding: *encoding });
        }
        ColumnShape::List { table, element, .. } => collect(name, element, *table, texts),
        ColumnShape::Structure { members } => {
            members.iter().for_each(|(member, shape)| collect(&format!("{name}.{member}"), shape, table, texts));
        }
        ColumnShape::Optional { content, .. } => collect(name, content, table, texts),
        ColumnShape::Variant { options, .. } => {
            options.iter().for_each(|(_, shape)| collect(name, shape, table, texts));
        }
        ColumnShape::Integer { .. }
        | ColumnShape::Boolean { .. }
        | ColumnShape::BitArray { .. }
        | ColumnShape::BitMap { .. }
        | ColumnShape::Real { .. }
        | ColumnShape::Blob { .. } => {}
    }
}

/// Why the bytes are no text in that encoding.
fn problem(bytes: &[u8], encoding: TextEncoding) -> Option<String> {
    let units = |size: usize, name: &str| {
        let is_whole = bytes.len().is_multiple_of(size);
        let are = if bytes.len() == 1 { "byte is" } else { "bytes are" };
        (!is_whole).then(|| format!("{} {are} not a whole number of code units of {name}", bytes.len()))
    };
    match encoding {
        TextEncoding::Ascii => {
            let at = bytes.iter().position(|byte| !byte.is_ascii())?;
            Some(format!("byte {at} is 0x{:02x}, which ASCII has not", bytes[at]))
        }
        TextEncoding::Utf8 => {
            let at = std::str::from_utf8(bytes).err()?.valid_up_to();
            Some(format!("byte {at} is 0x{:02x}, which is not valid UTF-8 there", bytes[at]))
        }
        TextEncoding::Utf16Be => units(2, "UTF-16").or_else(|| surrogates(bytes, u16::from_be_bytes)),
        TextEncoding::Utf16Le => units(2, "UTF-16").or_else(|| surrogates(bytes, u16::from_le_bytes)),
        TextEncoding::Utf32Be => units(4, "UTF-32").or_else(|| scalars(bytes, u32::from_be_bytes)),
        TextEncoding::Utf32Le => units(4, "UTF-32").or_else(|| scalars(bytes, u32::from_le_bytes)),
    }
}

fn surrogates(bytes: &[u8], convert: fn([u8; 2]) -> u16) -> Option<String> {
    let units = bytes.as_chunks::<2>().0.iter().map(|unit| convert(*unit));
    let wrong = char::decode_utf16(units).find_map(Result::err)?;
    Some(format!("the surrogate 0x{:04x} has no counterpart beside it", wrong.unpaired_surrogate()))
}

fn scalars(bytes: &[u8], convert: fn([u8; 4]) -> u32) -> Option<String> {
    let mut units = bytes.as_chunks::<4>().0.iter().map(|unit| convert(*unit));
    let wrong = units.find(|unit| char::from_u32(*unit).is_none())?;
    Some(format!("0x{wrong:x} is no character of Unicode"))
}
