//! A field class and a value to bits, the exact inverse of reading.
//!
//! The encoder remembers the same values as a reader: integers that later fields refer to, the
//! clock, the last event record class id. Values that a reader could not find again are refused
//! here. A caller takes a [`Encoder::mark`] before a record and goes back to it when the record is
//! refused or too long.

use kymo_format::earlier::EarlierValues;
use kymo_format::model::{
    FieldClass, FieldKind, FieldPath, FieldPathStep, FixedBits, IntegerMeaning, IntegerRange, Role, Scope, Structure,
    TextEncoding,
};
use kymo_format::value::Value;
use kymo_units::ByteOrder;
use kymo_wire::{align_up, clock, leb128, put_bits};

use crate::error::{WriteError, WriteProblem};

/// A field that is known only when its packet closes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patch {
    pub(crate) role: Role,
    position: u64,
    /// None: LEB128 in its longest form.
    bits: Option<FixedBits>,
}

/// One packet as far as it is written.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) bytes: Vec<u8>,
    pub(crate) position: u64,
    pub(crate) clock: u64,
    pub(crate) default_clock: Option<usize>,
    /// Whether a field moved the clock since [`Encoder::begin_record`].
    pub(crate) clock_told: bool,
    pub(crate) event_id: Option<u64>,
    pub(crate) patches: Vec<Patch>,
    order: Option<ByteOrder>,
    earlier: EarlierValues,
    here: FieldPath,
}

/// Where to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RollbackPoint {
    position: u64,
    last_byte: u8,
    clock: u64,
    order: Option<ByteOrder>,
}

impl Encoder {
    pub(crate) fn new(clock: u64) -> Self {
        Self {
            bytes: Vec::new(),
            position: 0,
            clock,
            default_clock: None,
            clock_told: false,
            event_id: None,
            patches: Vec::new(),
            order: None,
            earlier: EarlierValues::default(),
            here: FieldPath { scope: Scope::PacketHeader, steps: Vec::new() },
        }
    }

    pub(crate) fn begin_record(&mut self) {
        self.clock_told = false;
        self.event_id = None;
    }

    pub(crate) fn mark(&self) -> RollbackPoint {
        RollbackPoint {
            position: self.position,
            last_byte: self.bytes.last().copied().unwrap_or(0),
            clock: self.clock,
            order: self.order,
        }
    }

    pub(crate) fn back_to(&mut self, mark: RollbackPoint) {
        self.bytes.truncate(mark.position.div_ceil(8) as usize);
        if let Some(last) = self.bytes.last_mut() {
            *last = mark.last_byte;
        }
        self.position = mark.position;
        self.clock = mark.clock;
        self.order = mark.order;
    }

    /// Writes the structure of a scope.
    pub(crate) fn scope(&mut self, class: &FieldClass, scope: Scope, value: &Value) -> Result<(), WriteError> {
        self.earlier.begin(scope);
        self.here = FieldPath { scope, steps: Vec::new() };
        self.field(class, value)
    }

    pub(crate) fn align(&mut self, alignment: u64) {
        let aligned = align_up(self.position, alignment).expect("packets are far below 2^63 bits");
        self.advance(aligned - self.position);
    }

    fn advance(&mut self, bits: u64) {
        self.position += bits;
        self.bytes.resize(self.position.div_ceil(8) as usize, 0);
    }

    /// Fills a field in that was written as zero.
    pub(crate) fn patch(&mut self, patch: Patch, value: u64) -> Result<(), WriteError> {
        let Some(bits) = patch.bits else {
            let start = (patch.position / 8) as usize;
            self.bytes[start..start + leb128::LENGTH_MAX].copy_from_slice(&longest(value));
            return Ok(());
        };
        let low = clock::low_bits(value, bits.length);
        let partial =
            matches!(patch.role, Role::PacketEndDefaultClockTimestamp | Role::DiscardedEventRecordCounterSnapshot);
        if low != value && !partial {
            return Err(too_wide(i128::from(value), bits.length));
        }
        put_bits(&mut self.bytes, patch.position, bits.length, low, bits.byte_order, bits.reversed);
        Ok(())
    }

    fn field(&mut self, class: &FieldClass, value: &Value) -> Result<(), WriteError> {
        match (&class.kind, value) {
            (FieldKind::BitArray(bits), Value::BitArray(value)) => self.bits(bits, *value),
            (FieldKind::BitMap(map), Value::BitArray(value)) => self.bits(&map.bits, *value),
            (FieldKind::Boolean(bits), Value::Boolean(value)) => {
                self.earlier.keep(&self.here, i128::from(*value));
                self.bits(bits, u64::from(*value))
            }
            (FieldKind::Integer(integer), value) => self.integer(&integer.bits, &integer.meaning, value),
            (FieldKind::VariableInteger(integer), value) => self.variable(&integer.meaning, value),
            (FieldKind::Real(bits), Value::Real(value)) => self.real(bits, *value),
            (FieldKind::NullTerminatedText(encoding), Value::Text(text)) => self.terminated(*encoding, text),
            (FieldKind::StaticText(class), Value::Text(text)) => {
                self.sized(i128::from(class.length), class.encoding, class.alignment, text)
            }
            (FieldKind::DynamicText(class), Value::Text(text)) => {
                let length = self.reference(&class.length)?;
                self.sized(length, class.encoding, class.alignment, text)
            }
            (FieldKind::StaticBlob(class), Value::Blob(blob)) => self.blob(i128::from(class.length), blob),
            (FieldKind::DynamicBlob(class), Value::Blob(blob)) => {
                let length = self.reference(&class.length)?;
                self.blob(length, blob)
            }
            (FieldKind::Structure(structure), Value::Structure(values)) => self.members(structure, values),
            (FieldKind::StaticArray(array), Value::Array(values)) => {
                self.elements(i128::from(array.length), class.alignment(), &array.element, values)
            }
            (FieldKind::DynamicArray(array), Value::Array(values)) => {
                let length = self.reference(&array.length)?;
                self.elements(length, class.alignment(), &array.element, values)
            }
            (FieldKind::Optional(class), Value::Optional(value)) => {
                let selector = self.reference(&class.selector)?;
                if is_present(class.ranges.as_deref(), selector) != value.is_some() {
                    return Err(WriteProblem::Selector { selector }.into());
                }
                match value {
                    Some(value) => self.below(FieldPathStep::Content, &class.content, value),
                    None => Ok(()),
                }
            }
            (FieldKind::Variant(class), Value::Variant { option, content }) => {
                let selector = self.reference(&class.selector)?;
                let mut options = class.options.iter();
                if options.position(|option| holds(&option.ranges, selector)) != Some(*option) {
                    return Err(WriteProblem::Selector { selector }.into());
                }
                self.earlier.select(&self.here, *option);
                self.below(FieldPathStep::Option(*option), &class.options[*option].class, content)
            }
            (kind, value) => Err(wrong_kind(kind, value)),
        }
    }

    fn bits(&mut self, bits: &FixedBits, value: u64) -> Result<(), WriteError> {
        if bits.length < 64 && value >> bits.length != 0 {
            return Err(too_wide(i128::from(value), bits.length));
        }
        self.begin_bits(bits)?;
        self.put(bits, value);
        Ok(())
    }

    fn begin_bits(&mut self, bits: &FixedBits) -> Result<(), WriteError> {
        self.align(bits.alignment);
        let order = bits.byte_order;
        if !self.position.is_multiple_of(8) && self.order.is_some_and(|last| last != order) {
            return Err(WriteProblem::MixedOrder.into());
        }
        self.order = Some(order);
        Ok(())
    }

    fn put(&mut self, bits: &FixedBits, value: u64) {
        let start = self.position;
        self.advance(u64::from(bits.length));
        put_bits(&mut self.bytes, start, bits.length, value, bits.byte_order, bits.reversed);
    }

    fn real(&mut self, bits: &FixedBits, value: u128) -> Result<(), WriteError> {
        if bits.length > 128 {
            return Err(WriteProblem::WideReal { bits: bits.length }.into());
        }
        if bits.length < 128 && value >> bits.length != 0 {
            let value = i128::try_from(value).unwrap_or(i128::MAX);
            return Err(too_wide(value, bits.length));
        }
        self.begin_bits(bits)?;
        let low = (64.min(bits.length), value as u64);
        let high = (bits.length - low.0, (value >> 64) as u64);
        let high_first = (bits.byte_order == ByteOrder::Big) != bits.reversed;
        for (length, value) in if high_first { [high, low] } else { [low, high] } {
            self.put(&FixedBits { length, ..*bits }, value);
        }
        Ok(())
    }

    fn integer(&mut self, bits: &FixedBits, meaning: &IntegerMeaning, value: &Value) -> Result<(), WriteError> {
        let raw = match (meaning.signed, value) {
            (false, Value::Unsigned(value)) => *value,
            (true, Value::Signed(value)) => {
                let unused = 64 - bits.length;
                if *value << unused >> unused != *value {
                    return Err(too_wide(i128::from(*value), bits.length));
                }
                clock::low_bits(*value as u64, bits.length)
            }
            _ => return Err(wrong_integer(meaning, value)),
        };
        self.bits(bits, raw)?;
        let position = self.position - u64::from(bits.length);
        self.note(meaning, value, bits.length, position, Some(*bits))
    }

    fn variable(&mut self, meaning: &IntegerMeaning, value: &Value) -> Result<(), WriteError> {
        self.align(8);
        let position = self.position;
        let (bytes, length) = match (meaning.signed, value) {
            (false, Value::Unsigned(_)) if meaning.roles.iter().any(|role| is_patched(*role)) => {
                (longest(0), leb128::LENGTH_MAX)
            }
            (false, Value::Unsigned(value)) => leb128::encode_unsigned(*value),
            (true, Value::Signed(value)) => leb128::encode_signed(*value),
            _ => return Err(wrong_integer(meaning, value)),
        };
        self.put_bytes(&bytes[..length]);
        self.note(meaning, value, 7 * length as u32, position, None)
    }

    /// The knowledge that a reader gains from an integer.
    fn note(
        &mut self,
        meaning: &IntegerMeaning,
        value: &Value,
        width: u32,
        position: u64,
        bits: Option<FixedBits>,
    ) -> Result<(), WriteError> {
        if let Some(integer) = value.integer() {
            self.earlier.keep(&self.here, integer);
        }
        let Value::Unsigned(value) = *value else {
            return Ok(());
        };
        for &role in &meaning.roles {
            if role == Role::EventRecordClassId {
                self.event_id = Some(value);
            }
            if is_patched(role) {
                self.patches.push(Patch { role, position, bits });
            }
        }
        if moves_clock(meaning, self.default_clock) {
            self.clock = clock::extend(self.clock, value, width).ok_or(WriteProblem::Clock { bits: width })?;
            self.clock_told = true;
        }
        Ok(())
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.position += 8 * bytes.len() as u64;
    }

    fn terminated(&mut self, encoding: TextEncoding, text: &[u8]) -> Result<(), WriteError> {
        check_text(encoding, text)?;
        self.align(8);
        self.put_bytes(text);
        self.put_bytes(&[0; 4][..unit_length(encoding)]);
        Ok(())
    }

    fn sized(&mut self, length: i128, encoding: TextEncoding, alignment: u64, text: &[u8]) -> Result<(), WriteError> {
        let found = text.len() as u64;
        // A shorter text is ended by a zero code unit, which must find room.
        let spare = length - i128::from(found);
        if spare < 0 || (spare > 0 && spare < unit_length(encoding) as i128) || spare > 1 << 32 {
            return Err(WriteProblem::Length { found, expected: length }.into());
        }
        check_text(encoding, text)?;
        self.align(alignment.max(8));
        self.put_bytes(text);
        self.advance(8 * spare as u64);
        Ok(())
    }

    fn blob(&mut self, length: i128, blob: &[u8]) -> Result<(), WriteError> {
        let found = blob.len() as u64;
        if i128::from(found) != length {
            return Err(WriteProblem::Length { found, expected: length }.into());
        }
        self.align(8);
        self.put_bytes(blob);
        Ok(())
    }

    fn members(&mut self, structure: &Structure, values: &[Value]) -> Result<(), WriteError> {
        let (found, expected) = (values.len(), structure.members.len());
        if found != expected {
            return Err(WriteProblem::Members { found, expected }.into());
        }
        self.align(structure.alignment());
        for (index, (member, value)) in structure.members.iter().zip(values).enumerate() {
            let written = self.below(FieldPathStep::Member(index), &member.class, value);
            written.map_err(|error| error.inside(&member.name))?;
        }
        Ok(())
    }

    fn elements(
        &mut self,
        length: i128,
        alignment: u64,
        class: &FieldClass,
        values: &[Value],
    ) -> Result<(), WriteError> {
        let found = values.len() as u64;
        if i128::from(found) != length {
            return Err(WriteProblem::Length { found, expected: length }.into());
        }
        self.align(alignment);
        for (index, value) in values.iter().enumerate() {
            let written = self.below(FieldPathStep::Element, class, value);
            written.map_err(|error| error.inside(&format!("[{index}]")))?;
        }
        Ok(())
    }

    fn below(&mut self, step: FieldPathStep, class: &FieldClass, value: &Value) -> Result<(), WriteError> {
        self.here.steps.push(step);
        let written = self.field(class, value);
        self.here.steps.pop();
        written
    }

    fn reference(&self, path: &FieldPath) -> Result<i128, WriteError> {
        self.earlier.integer(path).ok_or_else(|| WriteProblem::Reference.into())
    }
}

/// Whether readers move the stream's clock to the value of such a field.
pub(crate) fn moves_clock(meaning: &IntegerMeaning, default_clock: Option<usize>) -> bool {
    let ends = meaning.roles.contains(&Role::PacketEndDefaultClockTimestamp);
    meaning.clock.is_some() && meaning.clock == default_clock && !ends && !meaning.signed
}

fn is_patched(role: Role) -> bool {
    matches!(
        role,
        Role::PacketTotalLength
            | Role::PacketContentLength
            | Role::PacketEndDefaultClockTimestamp
            | Role::DiscardedEventRecordCounterSnapshot
    )
}

pub(crate) fn is_present(ranges: Option<&[IntegerRange]>, selector: i128) -> bool {
    match ranges {
        Some(ranges) => holds(ranges, selector),
        None => selector != 0,
    }
}

pub(crate) fn holds(ranges: &[IntegerRange], value: i128) -> bool {
    ranges.iter().any(|range| range.contains(value))
}

fn unit_length(encoding: TextEncoding) -> usize {
    match encoding {
        TextEncoding::Ascii | TextEncoding::Utf8 => 1,
        TextEncoding::Utf16Be | TextEncoding::Utf16Le => 2,
        TextEncoding::Utf32Be | TextEncoding::Utf32Le => 4,
    }
}

/// A zero code unit would end the text early, half a unit would move its end.
fn check_text(encoding: TextEncoding, text: &[u8]) -> Result<(), WriteError> {
    let units = text.chunks_exact(unit_length(encoding));
    let whole = units.remainder().is_empty();
    let mut units = units;
    let zero = units.any(|unit| unit.iter().all(|byte| *byte == 0));
    if zero || !whole { Err(WriteProblem::Text.into()) } else { Ok(()) }
}

/// LEB128 in ten bytes, so that any value can be put in its place later.
fn longest(value: u64) -> [u8; leb128::LENGTH_MAX] {
    let mut bytes = [0x80; leb128::LENGTH_MAX];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte |= (value >> (7 * index) & 0x7F) as u8;
    }
    bytes[leb128::LENGTH_MAX - 1] &= 0x7F;
    bytes
}

fn too_wide(value: i128, bits: u32) -> WriteError {
    WriteProblem::Wide { value, bits }.into()
}

fn wrong_integer(meaning: &IntegerMeaning, value: &Value) -> WriteError {
    let expected = if meaning.signed { "a signed integer" } else { "an unsigned integer" };
    WriteProblem::Kind { found: value.kind_name(), expected }.into()
}

fn wrong_kind(kind: &FieldKind, value: &Value) -> WriteError {
    let expected = match kind {
        FieldKind::BitArray(_) | FieldKind::BitMap(_) => "a bit array",
        FieldKind::Boolean(_) => "a boolean",
        FieldKind::Integer(_) | FieldKind::VariableInteger(_) => "an integer",
        FieldKind::Real(_) => "a real",
        FieldKind::NullTerminatedText(_) | FieldKind::StaticText(_) | FieldKind::DynamicText(_) => "a text",
        FieldKind::StaticBlob(_) | FieldKind::DynamicBlob(_) => "a blob",
        FieldKind::Structure(_) => "a structure",
        FieldKind::StaticArray(_) | FieldKind::DynamicArray(_) => "an array",
        FieldKind::Optional(_) => "an optional",
        FieldKind::Variant(_) => "a variant",
    };
    WriteProblem::Kind { found: value.kind_name(), expected }.into()
}
