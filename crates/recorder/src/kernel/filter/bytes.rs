//! Values of an event of the kernel, in the bytes that it has in the trace.
//!
//! ```text
//! u32 tid │ comm[16] │ name, a zero │ u32 n, n x u64 │ i32 ret
//! 0: 0..                             1: 0..           2: 0..        stretch: bytes of it
//! ```
//!
//! A *stretch* begins after each field of a length that only the event tells.

use kymo_format::model::{FieldClass, FieldKind};
use kymo_ir::predicate::{Input, Inputs};
use smallvec::SmallVec;

use super::names::{RecordSource, members};

/// An event that is recorded now.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct RecordedRecord<'a> {
    pub(in crate::kernel) cpu: u32,
    pub(in crate::kernel) tid: i32,
    /// Its payload.
    pub(in crate::kernel) payload: &'a [u8],
}

/// Where a filter finds its inputs.
#[derive(Clone, Debug)]
pub(super) struct PayloadLayout {
    places: Vec<PayloadPlace>,
    ends: Vec<StretchEnd>,
}

#[derive(Clone, Copy, Debug)]
enum PayloadPlace {
    Cpu,
    Tid,
    At { stretch: usize, offset: usize, shape: PayloadShape },
}

#[derive(Clone, Copy, Debug)]
enum PayloadShape {
    Integer {
        bytes: usize,
        is_signed: bool,
    },
    /// Text up to a zero byte, of so many bytes at most.
    Fixed(usize),
    /// Text up to a zero byte.
    Text,
    /// An element; the number of elements stands before the first one.
    Element {
        index: u64,
        bytes: usize,
        is_signed: bool,
    },
}

/// The end of a stretch: its last field begins there.
#[derive(Clone, Copy, Debug)]
enum StretchEnd {
    Text {
        at: usize,
    },
    /// Elements of so many bytes; their number is in the four bytes before them.
    Elements {
        at: usize,
        each: usize,
    },
}

impl PayloadLayout {
    pub(super) fn new(payload: &FieldClass, sources: &[RecordSource]) -> Self {
        let mut ends = Vec::new();
        let mut at = 0;
        let mut fields = Vec::new();
        for member in members(payload) {
            fields.push((ends.len(), at));
            match &member.class.kind {
                FieldKind::Integer(integer) => at += integer.bits.length as usize / 8,
                FieldKind::StaticText(text) => at += text.length as usize,
                FieldKind::StaticArray(array) => at += array.length as usize * integer_of(&array.element).0,
                FieldKind::DynamicArray(array) => {
                    ends.push(StretchEnd::Elements { at, each: integer_of(&array.element).0 });
                    at = 0;
                }
                // Plans have no others.
                _ => {
                    ends.push(StretchEnd::Text { at });
                    at = 0;
                }
            }
        }
        let places: Vec<PayloadPlace> = sources.iter().map(|source| place(payload, &fields, *source)).collect();
        let needed = |place: &PayloadPlace| if let PayloadPlace::At { stretch, .. } = place { *stretch } else { 0 };
        ends.truncate(places.iter().map(needed).max().unwrap_or(0));
        Self { places, ends }
    }

    pub(super) fn of<'e>(&'e self, record: &'e RecordedRecord<'e>) -> RecordValues<'e> {
        let mut begins = SmallVec::from_slice(&[0]);
        let mut begin = 0;
        for end in &self.ends {
            let next = match *end {
                StretchEnd::Text { at } => {
                    let text = record.payload.get(begin + at..).unwrap_or_default();
                    text.iter().position(|byte| *byte == 0).map(|length| begin + at + length + 1)
                }
                StretchEnd::Elements { at, each } => {
                    count(record.payload, begin + at).map(|count| begin + at + count * each)
                }
            };
            let Some(next) = next else { break };
            begins.push(next);
            begin = next;
        }
        RecordValues { layout: self, record, begins }
    }
}

fn place(payload: &FieldClass, fields: &[(usize, usize)], source: RecordSource) -> PayloadPlace {
    let (number, index) = match source {
        RecordSource::Cpu => return PayloadPlace::Cpu,
        RecordSource::Tid => return PayloadPlace::Tid,
        RecordSource::Field(number) => (number, 0),
        RecordSource::Element(number, index) => (number, index),
    };
    let (stretch, offset) = fields[number];
    let at = |offset, shape| PayloadPlace::At { stretch, offset, shape };
    match &members(payload)[number].class.kind {
        FieldKind::StaticText(text) => at(offset, PayloadShape::Fixed(text.length as usize)),
        FieldKind::NullTerminatedText(_) => at(offset, PayloadShape::Text),
        FieldKind::StaticArray(array) => {
            let (bytes, is_signed) = integer_of(&array.element);
            at(offset + index as usize * bytes, PayloadShape::Integer { bytes, is_signed })
        }
        FieldKind::DynamicArray(array) => {
            let (bytes, is_signed) = integer_of(&array.element);
            at(offset, PayloadShape::Element { index, bytes, is_signed })
        }
        _ => {
            let (bytes, is_signed) = integer_of(&members(payload)[number].class);
            at(offset, PayloadShape::Integer { bytes, is_signed })
        }
    }
}

/// Bytes of an integer, and whether it has a sign.
fn integer_of(class: &FieldClass) -> (usize, bool) {
    match &class.kind {
        FieldKind::Integer(integer) => (integer.bits.length as usize / 8, integer.meaning.signed),
        _ => (1, false),
    }
}

/// The number of elements before the first one.
fn count(payload: &[u8], first: usize) -> Option<usize> {
    let bytes = payload.get(first.checked_sub(4)?..first)?;
    bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize)
}

/// The inputs of one event.
pub(super) struct RecordValues<'e> {
    layout: &'e PayloadLayout,
    record: &'e RecordedRecord<'e>,
    /// Where stretches begin.
    begins: SmallVec<[usize; 4]>,
}

impl Inputs for RecordValues<'_> {
    fn number(&self, input: Input) -> Option<u64> {
        let payload = self.record.payload;
        match *self.layout.places.get(usize::from(input.0))? {
            PayloadPlace::Cpu => Some(self.record.cpu.into()),
            PayloadPlace::Tid => Some(i64::from(self.record.tid) as u64),
            PayloadPlace::At { stretch, offset, shape } => {
                let at = self.begins.get(stretch)? + offset;
                match shape {
                    PayloadShape::Integer { bytes, is_signed } => integer(payload, at, bytes, is_signed),
                    PayloadShape::Element { index, bytes, is_signed } => {
                        let index =
                            usize::try_from(index).ok().filter(|_| index < count(payload, at).unwrap_or(0) as u64)?;
                        integer(payload, at + index * bytes, bytes, is_signed)
                    }
                    PayloadShape::Fixed(_) | PayloadShape::Text => None,
                }
            }
        }
    }

    fn text(&self, input: Input) -> Option<&[u8]> {
        let PayloadPlace::At { stretch, offset, shape } = *self.layout.places.get(usize::from(input.0))? else {
            return None;
        };
        let text = self.record.payload.get(self.begins.get(stretch)? + offset..)?;
        let text = match shape {
            PayloadShape::Fixed(most) => text.get(..most)?,
            PayloadShape::Text => text,
            PayloadShape::Integer { .. } | PayloadShape::Element { .. } => return None,
        };
        text.split(|byte| *byte == 0).next()
    }
}

fn integer(payload: &[u8], at: usize, count: usize, is_signed: bool) -> Option<u64> {
    let bytes = payload.get(at..)?.get(..count)?;
    let mut word = [0; 8];
    word[..count].copy_from_slice(bytes);
    let word = u64::from_le_bytes(word);
    let unused = 64 - 8 * count as u32;
    Some(if is_signed { ((word << unused) as i64 >> unused) as u64 } else { word })
}
