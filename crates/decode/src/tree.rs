//! The plain meaning of the format: a field class and bytes to a tree of values, recursively.
//!
//! ```text
//! read(class, scope, reader) ── structure ── read each member
//!                              ├ array ───── read the element n times
//!                              ├ variant ─── look the selector up, read the option
//!                              └ integer ─── align, take bits, remember the value for who needs it
//! ```
//!
//! It shares no line with the read programs that the rest of this crate compiles, so that the two can
//! be compared; it is for tests, for cutting traces, and for nothing that has to be fast. Input is
//! hostile: lengths are held against the bits that are left before anything is allocated, elements
//! without bits and values in all are counted, and nesting has a limit. [`stream`] reads packets.

pub mod stream;

use kymo_format::earlier::EarlierValues;
use kymo_format::model::{
    DynamicArray, FieldClass, FieldKind, FieldPath, FieldPathStep, FixedBits, IntegerMeaning, IntegerRange, Optional,
    Role, Scope, Structure, TextEncoding, Variant,
};
use kymo_format::value::Value;
use kymo_units::{ByteOrder, Uuid};
use kymo_wire::leb128::{self, Leb128Error};
use kymo_wire::{align_up, clock, get_bits};

/// Structures inside arrays inside structures, at most.
const DEPTH_MAX: usize = 200;
/// Values in one scope of one record, at most.
const VALUES_MAX: u64 = 1 << 22;
/// Elements of arrays that take no bits in one scope of one record, at most.
const EMPTY_ELEMENTS_MAX: u64 = 1 << 16;

/// Why a field cannot be read, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at bit {at}: {kind}")]
pub struct FieldError {
    /// In bits from the beginning of the packet.
    pub at: u64,
    /// The error.
    pub kind: FieldErrorKind,
}

/// An error in a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum FieldErrorKind {
    #[error("the field needs {needed} bits; the packet has {left} left")]
    Short { needed: u64, left: u64 },
    #[error("the text has no end in the {left} bits that the packet has left")]
    Endless { left: u64 },
    #[error("the variable-length integer has more than 64 bits")]
    Oversized,
    #[error("the field has another byte order than the one before it in the same byte")]
    MixedOrder,
    #[error("the real has {length} bits; readable are at most 128")]
    WideReal { length: u32 },
    #[error("the length is {length}, below zero")]
    NegativeLength { length: i128 },
    #[error("no option of the variant has the selector's value {selector}")]
    NoOption { selector: i128 },
    #[error("the field that this one needs was not read before it")]
    NoReference,
    #[error("the clock passes 64 bits")]
    ClockOverflow,
    #[error("more than {DEPTH_MAX} fields lie inside of each other")]
    Deep,
    #[error("one record has more than {VALUES_MAX} values")]
    ManyValues,
    #[error("one record has more than {EMPTY_ELEMENTS_MAX} elements without bits")]
    ManyEmptyElements,
}

/// The read position in one packet, and the values of earlier fields that later ones may need.
#[derive(Clone, Debug)]
pub struct TreeReader<'a> {
    bytes: &'a [u8],
    position: u64,
    end: u64,
    default_clock: Option<usize>,
    clock: u64,
    order: Option<ByteOrder>,
    earlier: EarlierValues,
    roles: Vec<(Role, u64)>,
    uuid: Option<Uuid>,
    here: FieldPath,
    values_left: u64,
    empty_left: u64,
}

impl<'a> TreeReader<'a> {
    /// A reader at the beginning of a packet, of which nothing is known but that it lies in `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            position: 0,
            end: 8 * bytes.len() as u64,
            default_clock: None,
            clock: 0,
            order: None,
            earlier: EarlierValues::default(),
            roles: Vec::new(),
            uuid: None,
            here: FieldPath { scope: Scope::PacketHeader, steps: Vec::new() },
            values_left: 0,
            empty_left: 0,
        }
    }

    /// Sets which clock class' fields move the clock, and the clock's value in cycles.
    pub fn set_clock(&mut self, default_clock: Option<usize>, cycles: u64) {
        self.default_clock = default_clock;
        self.clock = cycles;
    }

    /// Sets where the content ends, in bits; never past the bytes.
    pub fn set_end(&mut self, content_bits: u64) {
        self.end = content_bits.min(8 * self.bytes.len() as u64);
    }

    /// In bits from the beginning of the packet.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Where the content ends, in bits.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The clock in cycles, after all that was read.
    #[must_use]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The last value with that role since [`TreeReader::forget_roles`].
    #[must_use]
    pub fn role(&self, role: Role) -> Option<u64> {
        let found = self.roles.iter().rev().find(|(found, _)| *found == role);
        found.map(|(_, value)| *value)
    }

    /// The UUID of the metadata, if the packet has it.
    #[must_use]
    pub fn uuid(&self) -> Option<Uuid> {
        self.uuid
    }

    /// Begins a new record: values with roles count from here on.
    pub fn forget_roles(&mut self) {
        self.roles.clear();
    }

    /// Moves to a multiple of `alignment`, inside the content.
    pub fn align(&mut self, alignment: u64) -> Result<(), FieldError> {
        let aligned = align_up(self.position, alignment).unwrap_or(u64::MAX);
        self.skip(aligned - self.position)
    }

    fn skip(&mut self, bits: u64) -> Result<(), FieldError> {
        self.need(bits)?;
        self.position += bits;
        Ok(())
    }

    fn need(&self, needed: u64) -> Result<(), FieldError> {
        let left = self.end.saturating_sub(self.position);
        match needed <= left {
            true => Ok(()),
            false => Err(self.error(FieldErrorKind::Short { needed, left })),
        }
    }

    fn error(&self, kind: FieldErrorKind) -> FieldError {
        FieldError { at: self.position, kind }
    }

    fn bits(&mut self, bits: &FixedBits) -> Result<u64, FieldError> {
        self.begin_bits(bits)?;
        self.take_bits(bits)
    }

    fn begin_bits(&mut self, bits: &FixedBits) -> Result<(), FieldError> {
        self.align(bits.alignment)?;
        self.need(u64::from(bits.length))?;
        let order = bits.byte_order;
        if !self.position.is_multiple_of(8) && self.order.is_some_and(|last| last != order) {
            return Err(self.error(FieldErrorKind::MixedOrder));
        }
        self.order = Some(order);
        Ok(())
    }

    fn take_bits(&mut self, bits: &FixedBits) -> Result<u64, FieldError> {
        let length = u64::from(bits.length);
        let value = get_bits(self.bytes, self.position, bits.length, bits.byte_order, bits.reversed)
            .ok_or_else(|| self.error(FieldErrorKind::Short { needed: length, left: self.end - self.position }))?;
        self.position += length;
        Ok(value)
    }

    /// A real of up to 128 bits, in two halves where a value of 64 is too narrow.
    fn real(&mut self, bits: &FixedBits) -> Result<u128, FieldError> {
        self.begin_bits(bits)?;
        if bits.length <= 64 {
            return self.take_bits(bits).map(u128::from);
        }
        if bits.length > 128 {
            return Err(self.error(FieldErrorKind::WideReal { length: bits.length }));
        }
        let high_length = bits.length - 64;
        let high_first = (bits.byte_order == ByteOrder::Big) != bits.reversed;
        let lengths = if high_first { [high_length, 64] } else { [64, high_length] };
        let mut halves = [0; 2];
        for (half, length) in halves.iter_mut().zip(lengths) {
            *half = u128::from(self.take_bits(&FixedBits { length, ..*bits })?);
        }
        Ok(if high_first { halves[0] << 64 | halves[1] } else { halves[1] << 64 | halves[0] })
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], FieldError> {
        self.need(length.saturating_mul(8))?;
        let start = (self.position / 8) as usize;
        self.position += 8 * length;
        Ok(&self.bytes[start..start + length as usize])
    }

    /// The value of the field at `path`, which was read before.
    fn reference(&self, path: &FieldPath) -> Result<i128, FieldError> {
        self.earlier.integer(path).ok_or_else(|| self.error(FieldErrorKind::NoReference))
    }

    fn length(&self, path: &FieldPath) -> Result<u64, FieldError> {
        let length = self.reference(path)?;
        u64::try_from(length).map_err(|_| self.error(FieldErrorKind::NegativeLength { length }))
    }

    /// Remembers an integer under its path and for its roles, and moves the clock.
    fn keep(&mut self, at: u64, value: &Value, width: u32, meaning: &IntegerMeaning) -> Result<(), FieldError> {
        if let Some(integer) = value.integer() {
            self.earlier.keep(&self.here, integer);
        }
        let Value::Unsigned(low) = *value else {
            return Ok(());
        };
        self.roles.extend(meaning.roles.iter().map(|role| (*role, low)));
        let ends = meaning.roles.contains(&Role::PacketEndDefaultClockTimestamp);
        if meaning.clock.is_some() && meaning.clock == self.default_clock && !ends {
            self.clock =
                clock::extend(self.clock, low, width).ok_or(FieldError { at, kind: FieldErrorKind::ClockOverflow })?;
        }
        Ok(())
    }
}

/// Reads the field of a scope at the reader's position: alignment, bits, and everything inside.
///
/// The scopes before it, if it refers to them, were read with the same reader.
pub fn read(class: &FieldClass, scope: Scope, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    reader.earlier.begin(scope);
    reader.here = FieldPath { scope, steps: Vec::new() };
    reader.values_left = VALUES_MAX;
    reader.empty_left = EMPTY_ELEMENTS_MAX;
    field(class, reader)
}

fn field(class: &FieldClass, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    if reader.here.steps.len() > DEPTH_MAX {
        return Err(reader.error(FieldErrorKind::Deep));
    }
    reader.values_left = match reader.values_left.checked_sub(1) {
        Some(left) => left,
        None => return Err(reader.error(FieldErrorKind::ManyValues)),
    };
    match &class.kind {
        FieldKind::BitArray(bits) => bit_array(bits, reader),
        FieldKind::BitMap(map) => bit_array(&map.bits, reader),
        FieldKind::Boolean(bits) => boolean(bits, reader),
        FieldKind::Integer(integer) => fixed_integer(&integer.bits, &integer.meaning, reader),
        FieldKind::VariableInteger(integer) => variable_integer(&integer.meaning, reader),
        FieldKind::Real(bits) => reader.real(bits).map(Value::Real),
        FieldKind::NullTerminatedText(encoding) => terminated_text(*encoding, reader),
        FieldKind::StaticText(text) => sized_text(text.length, text.encoding, text.alignment, reader),
        FieldKind::DynamicText(text) => {
            let length = reader.length(&text.length)?;
            sized_text(length, text.encoding, text.alignment, reader)
        }
        FieldKind::StaticBlob(blob) => {
            let bytes = blob_bytes(blob.length, reader)?;
            if blob.roles.contains(&Role::MetadataStreamUuid) {
                reader.uuid = bytes.as_slice().try_into().ok().map(Uuid);
            }
            Ok(Value::Blob(bytes))
        }
        FieldKind::DynamicBlob(blob) => {
            let length = reader.length(&blob.length)?;
            blob_bytes(length, reader).map(Value::Blob)
        }
        FieldKind::Structure(structure) => members(structure, reader),
        FieldKind::StaticArray(array) => {
            reader.align(class.alignment())?;
            elements(array.length, &array.element, reader)
        }
        FieldKind::DynamicArray(array) => dynamic_array(class.alignment(), array, reader),
        FieldKind::Optional(optional) => optional_content(optional, reader),
        FieldKind::Variant(variant) => option(variant, reader),
    }
}

fn bit_array(bits: &FixedBits, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    reader.bits(bits).map(Value::BitArray)
}

fn boolean(bits: &FixedBits, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    let value = reader.bits(bits)? != 0;
    reader.earlier.keep(&reader.here, i128::from(value));
    Ok(Value::Boolean(value))
}

fn fixed_integer(bits: &FixedBits, meaning: &IntegerMeaning, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    let raw = reader.bits(bits)?;
    let unused = 64 - bits.length;
    let value = match meaning.signed {
        true => Value::Signed((raw << unused) as i64 >> unused),
        false => Value::Unsigned(raw),
    };
    let at = reader.position - u64::from(bits.length);
    reader.keep(at, &value, bits.length, meaning)?;
    Ok(value)
}

fn variable_integer(meaning: &IntegerMeaning, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    reader.align(8)?;
    let at = reader.position;
    let left = reader.end - at;
    let rest = &reader.bytes[(at / 8) as usize..(reader.end / 8) as usize];
    let found = match meaning.signed {
        true => leb128::decode_signed(rest).map(|(value, length)| (Value::Signed(value), length)),
        false => leb128::decode_unsigned(rest).map(|(value, length)| (Value::Unsigned(value), length)),
    };
    let (value, length) = found.map_err(|error| {
        reader.error(match error {
            Leb128Error::Oversized => FieldErrorKind::Oversized,
            Leb128Error::Short => FieldErrorKind::Short { needed: left / 8 * 8 + 8, left },
        })
    })?;
    reader.position += 8 * length as u64;
    reader.keep(at, &value, 7 * length as u32, meaning)?;
    Ok(value)
}

/// Bytes of one code unit.
pub(crate) fn unit_length(encoding: TextEncoding) -> usize {
    match encoding {
        TextEncoding::Ascii | TextEncoding::Utf8 => 1,
        TextEncoding::Utf16Be | TextEncoding::Utf16Le => 2,
        TextEncoding::Utf32Be | TextEncoding::Utf32Le => 4,
    }
}

/// Where the first zero code unit begins, in bytes.
fn zero_unit(bytes: &[u8], unit: usize) -> Option<usize> {
    let mut units = bytes.chunks_exact(unit);
    let index = units.position(|unit| unit.iter().all(|byte| *byte == 0))?;
    Some(index * unit)
}

fn terminated_text(encoding: TextEncoding, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    reader.align(8)?;
    let unit = unit_length(encoding);
    let rest = &reader.bytes[(reader.position / 8) as usize..(reader.end / 8) as usize];
    let Some(length) = zero_unit(rest, unit) else {
        let left = reader.end - reader.position;
        return Err(reader.error(FieldErrorKind::Endless { left }));
    };
    reader.position += 8 * (length + unit) as u64;
    Ok(Value::Text(rest[..length].to_vec()))
}

fn sized_text(
    length: u64,
    encoding: TextEncoding,
    alignment: u64,
    reader: &mut TreeReader<'_>,
) -> Result<Value, FieldError> {
    reader.align(alignment.max(8))?;
    let bytes = reader.bytes(length)?;
    let end = zero_unit(bytes, unit_length(encoding)).unwrap_or(bytes.len());
    Ok(Value::Text(bytes[..end].to_vec()))
}

fn blob_bytes(length: u64, reader: &mut TreeReader<'_>) -> Result<Vec<u8>, FieldError> {
    reader.align(8)?;
    reader.bytes(length).map(<[u8]>::to_vec)
}

/// Reads a field one step further down.
fn below(step: FieldPathStep, class: &FieldClass, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    reader.here.steps.push(step);
    let value = field(class, reader);
    reader.here.steps.pop();
    value
}

fn members(structure: &Structure, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    reader.align(structure.alignment())?;
    let mut values = Vec::with_capacity(structure.members.len());
    for (index, member) in structure.members.iter().enumerate() {
        values.push(below(FieldPathStep::Member(index), &member.class, reader)?);
    }
    Ok(Value::Structure(values))
}

fn dynamic_array(alignment: u64, array: &DynamicArray, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    let length = reader.length(&array.length)?;
    reader.align(alignment)?;
    elements(length, &array.element, reader)
}

/// Grows as elements are read: a length alone allocates nothing.
fn elements(length: u64, class: &FieldClass, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    let mut values = Vec::new();
    for _ in 0..length {
        let start = reader.position;
        values.push(below(FieldPathStep::Element, class, reader)?);
        if reader.position == start {
            reader.empty_left = match reader.empty_left.checked_sub(1) {
                Some(left) => left,
                None => return Err(reader.error(FieldErrorKind::ManyEmptyElements)),
            };
        }
    }
    Ok(Value::Array(values))
}

fn optional_content(optional: &Optional, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    let selector = reader.reference(&optional.selector)?;
    if !is_present(optional, selector) {
        return Ok(Value::Optional(None));
    }
    let content = below(FieldPathStep::Content, &optional.content, reader)?;
    Ok(Value::Optional(Some(Box::new(content))))
}

fn option(variant: &Variant, reader: &mut TreeReader<'_>) -> Result<Value, FieldError> {
    let selector = reader.reference(&variant.selector)?;
    let found = variant.options.iter().position(|option| holds(&option.ranges, selector));
    let Some(option) = found else {
        return Err(reader.error(FieldErrorKind::NoOption { selector }));
    };
    reader.earlier.select(&reader.here, option);
    let content = below(FieldPathStep::Option(option), &variant.options[option].class, reader)?;
    Ok(Value::Variant { option, content: Box::new(content) })
}

fn is_present(optional: &Optional, selector: i128) -> bool {
    match &optional.ranges {
        Some(ranges) => holds(ranges, selector),
        None => selector != 0,
    }
}

fn holds(ranges: &[IntegerRange], value: i128) -> bool {
    ranges.iter().any(|range| range.contains(value))
}
