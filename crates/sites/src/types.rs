//! Types of arguments and results: as much of each as a calling convention asks for.

use std::cell::Cell;

use gimli::{AttributeValue, DwAte, constants as dw};

use crate::ValueKind;
use crate::entries::{DebugEntries, EntryPlace};

/// Types that refer to each other: so deep at most.
const DEPTH_MAX: usize = 32;
/// Entries that are read for a signature at most.
const STEPS_MAX: u32 = 20_000;
/// Members of a structure that calls may pass in registers.
const PARTS_MAX: usize = 16;
const MEMBERS_MAX: usize = 4096;

/// A type, as a calling convention sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypeShape {
    /// There is no value.
    Nothing,
    /// An integer or an address.
    Value(ValueKind),
    /// A floating-point number or a vector, in registers that the kernel does not keep.
    Float { is_x87: bool },
    /// An integer of 16 bytes.
    Wide,
    /// An address and a length: Rust's slices and strings.
    Slice,
    /// A structure, union or class.
    Compound(CompoundShape),
    /// None of these.
    Unknown,
}

/// A structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompoundShape {
    pub(crate) bytes: u64,
    /// Its numbers; empty if there are many.
    pub(crate) parts: Vec<CompoundPart>,
    /// Its class has a copy constructor or a destructor: calls pass its address.
    pub(crate) by_reference: bool,
    /// Whether it is passed by its address was not told, and it may be a class.
    pub(crate) is_doubtful: bool,
}

/// A number in a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompoundPart {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) is_float: bool,
}

/// Languages whose calling conventions are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceLanguage {
    C,
    Cpp,
    Rust,
}

/// Reads the types of a signature.
pub(crate) struct TypeReader<'e, 'd> {
    pub(crate) entries: &'e DebugEntries<'d>,
    pub(crate) language: SourceLanguage,
    steps: Cell<u32>,
}

impl<'e, 'd> TypeReader<'e, 'd> {
    pub(crate) fn new(entries: &'e DebugEntries<'d>, language: SourceLanguage) -> Self {
        Self { entries, language, steps: Cell::new(0) }
    }

    /// The shape of a type; no type is `void`.
    pub(crate) fn shape(&self, place: Option<EntryPlace>) -> TypeShape {
        place.map_or(TypeShape::Nothing, |place| self.known(place, 0).unwrap_or(TypeShape::Unknown))
    }

    fn step(&self) -> Option<()> {
        self.steps.set(self.steps.get() + 1);
        (self.steps.get() < STEPS_MAX).then_some(())
    }

    fn known(&self, place: EntryPlace, depth: usize) -> Option<TypeShape> {
        self.step()?;
        if depth > DEPTH_MAX {
            return None;
        }
        let entry = self.entries.entry(place)?;
        let below = self.entries.reference(place, dw::DW_AT_type);
        let bytes = entry.attr_value(dw::DW_AT_byte_size).and_then(|size| size.udata_value());
        match entry.tag() {
            dw::DW_TAG_base_type => self.base(place, bytes?),
            dw::DW_TAG_typedef
            | dw::DW_TAG_const_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_restrict_type
            | dw::DW_TAG_atomic_type => below.map_or(Some(TypeShape::Nothing), |below| self.known(below, depth + 1)),
            dw::DW_TAG_pointer_type => {
                let is_text = below.is_some_and(|below| self.is_character(below, depth));
                Some(TypeShape::Value(if is_text { ValueKind::Text } else { ValueKind::Address }))
            }
            dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type | dw::DW_TAG_unspecified_type => {
                Some(TypeShape::Value(ValueKind::Address))
            }
            dw::DW_TAG_enumeration_type => {
                let bytes = u8::try_from(bytes?).ok().filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8))?;
                let is_signed = self.is_signed(place, below, depth);
                Some(TypeShape::Value(if is_signed { ValueKind::Signed(bytes) } else { ValueKind::Unsigned(bytes) }))
            }
            dw::DW_TAG_array_type if entry.has_attr(dw::DW_AT_GNU_vector) => Some(TypeShape::Float { is_x87: false }),
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                self.compound(place, bytes, depth)
            }
            _ => None,
        }
    }

    fn base(&self, place: EntryPlace, bytes: u64) -> Option<TypeShape> {
        let encoding = self.encoding(place)?;
        let size = u8::try_from(bytes).ok().filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8));
        match (encoding, size) {
            (dw::DW_ATE_signed | dw::DW_ATE_signed_char, Some(size)) => Some(TypeShape::Value(ValueKind::Signed(size))),
            (
                dw::DW_ATE_unsigned
                | dw::DW_ATE_unsigned_char
                | dw::DW_ATE_boolean
                | dw::DW_ATE_UTF
                | dw::DW_ATE_address,
                Some(size),
            ) => Some(TypeShape::Value(ValueKind::Unsigned(size))),
            (dw::DW_ATE_signed | dw::DW_ATE_unsigned, None) if bytes == 16 => Some(TypeShape::Wide),
            // Rust's `()`.
            (_, None) if bytes == 0 => Some(TypeShape::Compound(CompoundShape::default())),
            (dw::DW_ATE_float, _) => {
                let name = self
                    .entries
                    .inherited(place, dw::DW_AT_name)
                    .and_then(|(unit, name)| self.entries.text(unit, name));
                Some(TypeShape::Float { is_x87: name.is_some_and(|name| name == "long double") })
            }
            (dw::DW_ATE_complex_float, _) => {
                let half = bytes / 2;
                let parts = [0, half].map(|offset| CompoundPart { offset, bytes: half, is_float: true }).to_vec();
                Some(TypeShape::Compound(CompoundShape { bytes, parts, ..CompoundShape::default() }))
            }
            _ => None,
        }
    }

    fn encoding(&self, place: EntryPlace) -> Option<DwAte> {
        match self.entries.entry(place)?.attr_value(dw::DW_AT_encoding)? {
            AttributeValue::Encoding(encoding) => Some(encoding),
            _ => None,
        }
    }

    /// A character of text: `char`, and not an integer of its size, such as `unsigned char`.
    fn is_character(&self, place: EntryPlace, depth: usize) -> bool {
        if self.step().is_none() || depth > DEPTH_MAX || self.language == SourceLanguage::Rust {
            return false;
        }
        let Some(entry) = self.entries.entry(place) else { return false };
        match entry.tag() {
            dw::DW_TAG_base_type => {
                let name = entry.attr_value(dw::DW_AT_name).and_then(|name| self.entries.text(place.unit, name));
                name.is_some_and(|name| name == "char")
            }
            dw::DW_TAG_const_type | dw::DW_TAG_volatile_type | dw::DW_TAG_typedef => {
                let below = self.entries.reference(place, dw::DW_AT_type);
                below.is_some_and(|below| self.is_character(below, depth + 1))
            }
            _ => false,
        }
    }

    /// Whether an enumeration has negative values.
    fn is_signed(&self, place: EntryPlace, below: Option<EntryPlace>, depth: usize) -> bool {
        if let Some(TypeShape::Value(kind)) = below.and_then(|below| self.known(below, depth + 1)) {
            // C's enumerations have an `int` below them, or an `unsigned int` where no value is negative.
            return matches!(kind, ValueKind::Signed(_));
        }
        let values = self.entries.children(place, MEMBERS_MAX).into_iter();
        let mut values = values.filter_map(|value| value.attr_value(dw::DW_AT_const_value));
        values.any(|value| match value {
            AttributeValue::Sdata(value) => value < 0,
            _ => false,
        })
    }

    fn compound(&self, place: EntryPlace, bytes: Option<u64>, depth: usize) -> Option<TypeShape> {
        let entry = self.entries.entry(place)?;
        let bytes = bytes.filter(|_| !entry.has_attr(dw::DW_AT_declaration))?;
        if self.language == SourceLanguage::Rust && bytes == 16 && self.is_slice(place, &entry) {
            return Some(TypeShape::Slice);
        }
        let convention = match entry.attr_value(dw::DW_AT_calling_convention) {
            Some(AttributeValue::CallingConvention(convention)) => Some(convention),
            _ => None,
        };
        let by_reference = convention == Some(dw::DW_CC_pass_by_reference);
        let is_doubtful = self.language == SourceLanguage::Cpp && convention.is_none();
        let mut parts = Vec::new();
        if bytes <= 64 {
            self.add_parts(place, 0, depth, &mut parts)?;
        }
        if parts.len() > PARTS_MAX {
            return None;
        }
        Some(TypeShape::Compound(CompoundShape { bytes, parts, by_reference, is_doubtful }))
    }

    fn is_slice(&self, place: EntryPlace, entry: &crate::entries::DebugEntry<'_>) -> bool {
        let name = self.entries.entry(place).and_then(|entry| entry.attr_value(dw::DW_AT_name));
        let name = name.and_then(|name| self.entries.text(place.unit, name)).unwrap_or_default();
        let names = self.entries.children(place, 4).into_iter();
        let names: Vec<String> =
            names.filter_map(|member| self.entries.text(place.unit, member.attr_value(dw::DW_AT_name)?)).collect();
        entry.tag() == dw::DW_TAG_structure_type && name.starts_with(['&', '*']) && names == ["data_ptr", "length"]
    }

    /// Adds the numbers of a structure that begins at `base`.
    fn add_parts(&self, place: EntryPlace, base: u64, depth: usize, parts: &mut Vec<CompoundPart>) -> Option<()> {
        for member in self.entries.children(place, MEMBERS_MAX) {
            let is_member = matches!(member.tag(), dw::DW_TAG_member | dw::DW_TAG_inheritance);
            if member.tag() == dw::DW_TAG_variant_part {
                return None;
            }
            // A static member of a class is no part of it.
            if !is_member || member.has_attr(dw::DW_AT_external) || member.has_attr(dw::DW_AT_declaration) {
                continue;
            }
            let offset = match member.attr_value(dw::DW_AT_data_member_location) {
                Some(value) => value.udata_value()?,
                // Bits: their integer is where they are.
                None => match member.attr_value(dw::DW_AT_data_bit_offset) {
                    Some(bits) => bits.udata_value()? / 8,
                    None => 0,
                },
            };
            let kind = self.entries.referred(place.unit, member.attr_value(dw::DW_AT_type)?)?;
            if member.has_attr(dw::DW_AT_bit_size) {
                parts.push(CompoundPart { offset: base.checked_add(offset)?, bytes: 1, is_float: false });
                continue;
            }
            self.add_type(kind, base.checked_add(offset)?, depth + 1, parts)?;
        }
        Some(())
    }

    fn add_type(&self, place: EntryPlace, base: u64, depth: usize, parts: &mut Vec<CompoundPart>) -> Option<()> {
        self.step()?;
        if depth > DEPTH_MAX || parts.len() > PARTS_MAX {
            return (depth <= DEPTH_MAX).then_some(());
        }
        let entry = self.entries.entry(place)?;
        let below = || self.entries.reference(place, dw::DW_AT_type);
        match entry.tag() {
            dw::DW_TAG_typedef | dw::DW_TAG_const_type | dw::DW_TAG_volatile_type | dw::DW_TAG_atomic_type => {
                return self.add_type(below()?, base, depth + 1, parts);
            }
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                return self.add_parts(place, base, depth, parts);
            }
            dw::DW_TAG_array_type => {
                let mut counts = self.entries.children(place, 8).into_iter();
                let count = counts.try_fold(1_u64, |all, range| all.checked_mul(count_of(&range)?))?;
                let element = below()?;
                let mut one = Vec::new();
                self.add_type(element, 0, depth + 1, &mut one)?;
                let end = one.iter().map(|part| part.offset.saturating_add(part.bytes)).max().unwrap_or(0);
                for at in 0..count.min(PARTS_MAX as u64 + 1) {
                    if parts.len() > PARTS_MAX {
                        break;
                    }
                    let begin = base.checked_add(at.checked_mul(end)?)?;
                    parts.extend(
                        one.iter().map(|part| CompoundPart { offset: begin.saturating_add(part.offset), ..*part }),
                    );
                }
                return Some(());
            }
            _ => {}
        }
        let part = |bytes, is_float| CompoundPart { offset: base, bytes, is_float };
        match self.known(place, depth + 1)? {
            TypeShape::Value(ValueKind::Signed(bytes) | ValueKind::Unsigned(bytes)) => {
                parts.push(part(bytes.into(), false));
            }
            TypeShape::Value(_) => parts.push(part(8, false)),
            TypeShape::Wide => parts.push(part(16, false)),
            TypeShape::Float { is_x87: true } => parts.push(part(16, true)),
            TypeShape::Float { .. } => {
                let bytes = entry.attr_value(dw::DW_AT_byte_size)?.udata_value()?;
                parts.push(part(bytes, true));
            }
            TypeShape::Slice => {
                parts.extend([part(8, false), CompoundPart { offset: base.saturating_add(8), ..part(8, false) }]);
            }
            TypeShape::Compound(shape) => parts.extend(
                shape.parts.iter().map(|part| CompoundPart { offset: base.saturating_add(part.offset), ..*part }),
            ),
            TypeShape::Nothing | TypeShape::Unknown => return None,
        }
        Some(())
    }
}

fn count_of(range: &crate::entries::DebugEntry<'_>) -> Option<u64> {
    if let Some(count) = range.attr_value(dw::DW_AT_count) {
        return count.udata_value();
    }
    range.attr_value(dw::DW_AT_upper_bound)?.udata_value()?.checked_add(1)
}
