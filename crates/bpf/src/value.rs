//! Keys, values and records as people read them: types from BTF, and bytes by these types.

use crate::btf::{BtfKind, BtfTypes};

/// Parts of all types of an object at most; the rest is shown as bytes.
const PARTS_MAX: usize = 1 << 16;
/// Structures inside of each other at most.
const NESTED_MAX: usize = 16;

/// The type of a key, value or record.
#[derive(Clone, Debug, PartialEq)]
pub enum BpfValueType {
    /// An integer of 1, 2, 4, 8 or 16 bytes, of which a part can be meant.
    Integer {
        /// Bits.
        bits: u16,
        /// It can be negative.
        is_signed: bool,
    },
    /// `_Bool`
    Bool,
    /// A real number of 4 or 8 bytes.
    Real {
        /// Its size.
        bytes: u8,
    },
    /// An address.
    Pointer,
    /// A number with names.
    Enumeration {
        /// Bits.
        bits: u16,
        /// It can be negative.
        is_signed: bool,
        /// Names of values.
        names: Vec<(i64, Box<str>)>,
    },
    /// Characters up to a zero byte.
    Text {
        /// The size of the array.
        bytes: u32,
    },
    /// An array.
    Array {
        /// The type of an element.
        element: Box<BpfValueType>,
        /// Bytes from an element to the next.
        stride: u32,
        /// How many.
        count: u32,
    },
    /// A structure or union.
    Structure {
        /// Its name in the source; empty if it has none.
        name: Box<str>,
        /// Its members, in their order.
        members: Vec<BpfValueMember>,
    },
    /// Bytes without a known type.
    Bytes {
        /// How many.
        bytes: u32,
    },
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct BpfValueMember {
    /// Its name; empty if it has none.
    pub name: Box<str>,
    /// Bits from the begin of the structure.
    pub bit_offset: u32,
    /// Its type.
    pub value_type: BpfValueType,
}

/// A value of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum BpfValue {
    /// An integer, or an address.
    Integer(i128),
    /// A truth value.
    Bool(bool),
    /// A real number.
    Real(f64),
    /// A number of an enumeration, with its name if it has one.
    Label(i128, Option<Box<str>>),
    /// A text.
    Text(String),
    /// Elements of an array.
    List(Vec<BpfValue>),
    /// Members of a structure, with their names.
    Members(Vec<(Box<str>, BpfValue)>),
    /// Bytes without a known type.
    Bytes(Vec<u8>),
}

impl BpfValueType {
    /// The type with a number; a type that cannot be shown is bytes of its size.
    #[must_use]
    pub fn of(types: &BtfTypes, number: u32) -> Self {
        ValueTypes::new(types).read(number)
    }

    /// The name of the type, as a C programmer writes it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Integer { bits, is_signed } => format!("{}{bits}", if *is_signed { 's' } else { 'u' }),
            Self::Bool => "bool".to_owned(),
            Self::Real { bytes: 4 } => "float".to_owned(),
            Self::Real { .. } => "double".to_owned(),
            Self::Pointer => "pointer".to_owned(),
            Self::Enumeration { .. } => "enum".to_owned(),
            Self::Text { bytes } => format!("char[{bytes}]"),
            Self::Array { element, count, .. } => format!("{}[{count}]", element.name()),
            Self::Structure { name, members } if name.is_empty() => {
                let members = members.iter().map(|member| format!("{} {}", member.value_type.name(), member.name));
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
            Self::Structure { name, .. } => format!("struct {name}"),
            Self::Bytes { bytes } => format!("bytes[{bytes}]"),
        }
    }

    /// The value in bytes; missing bytes count as 0.
    #[must_use]
    pub fn value(&self, bytes: &[u8]) -> BpfValue {
        self.value_at(bytes, 0)
    }

    fn value_at(&self, bytes: &[u8], bit: u64) -> BpfValue {
        let at = (bit / 8) as usize;
        let rest = bytes.get(at..).unwrap_or_default();
        match self {
            Self::Integer { bits, is_signed } => BpfValue::Integer(integer(rest, bit % 8, *bits, *is_signed)),
            Self::Pointer => BpfValue::Integer(integer(rest, 0, 64, false)),
            // A `_Bool` is 0 or 1, and can be one bit among others.
            Self::Bool => BpfValue::Bool(integer(rest, bit % 8, 1, false) == 1),
            Self::Real { bytes: 4 } => BpfValue::Real(f32::from_bits(integer(rest, 0, 32, false) as u32).into()),
            Self::Real { .. } => BpfValue::Real(f64::from_bits(integer(rest, 0, 64, false) as u64)),
            Self::Enumeration { bits, is_signed, names } => {
                let value = integer(rest, bit % 8, *bits, *is_signed);
                let name = names.iter().find(|(known, _)| i128::from(*known) == value).map(|(_, name)| name.clone());
                BpfValue::Label(value, name)
            }
            Self::Text { bytes } => {
                let text = &rest[..rest.len().min(*bytes as usize)];
                let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
                BpfValue::Text(String::from_utf8_lossy(text).into_owned())
            }
            Self::Array { element, stride, count } => {
                // Elements without bytes would make a list as long as the count says.
                let count = if *stride == 0 { 0 } else { (*count as usize).min(rest.len().div_ceil(*stride as usize)) };
                let place = |index: usize| bit + 8 * index as u64 * u64::from(*stride);
                BpfValue::List((0..count).map(|index| element.value_at(bytes, place(index))).collect())
            }
            Self::Structure { members, .. } => {
                let member = |member: &BpfValueMember| {
                    (member.name.clone(), member.value_type.value_at(bytes, bit + u64::from(member.bit_offset)))
                };
                BpfValue::Members(members.iter().map(member).collect())
            }
            Self::Bytes { bytes } => BpfValue::Bytes(rest[..rest.len().min(*bytes as usize)].to_vec()),
        }
    }
}

/// An integer of so many bits, from a bit of the first byte on.
fn integer(bytes: &[u8], bit: u64, bits: u16, is_signed: bool) -> i128 {
    let bits = u32::from(bits).clamp(1, 128);
    let mut number = 0_u128;
    for (index, byte) in bytes.iter().take(16).enumerate() {
        number |= u128::from(*byte) << (8 * index);
    }
    let above = 128 - bits;
    let number = (number >> bit) << above;
    if is_signed { (number as i128) >> above } else { (number >> above) as i128 }
}

/// Reads types, of which there are only so many in an object.
pub(crate) struct ValueTypes<'t> {
    types: &'t BtfTypes,
    parts: usize,
}

impl<'t> ValueTypes<'t> {
    pub(crate) fn new(types: &'t BtfTypes) -> Self {
        Self { types, parts: 0 }
    }

    pub(crate) fn read(&mut self, number: u32) -> BpfValueType {
        self.read_inside(number, 0)
    }

    fn read_inside(&mut self, number: u32, depth: usize) -> BpfValueType {
        self.parts += 1;
        let size = self.types.size(number).unwrap_or(0);
        let unknown = BpfValueType::Bytes { bytes: u32::try_from(size).unwrap_or(0) };
        if depth > NESTED_MAX || self.parts > PARTS_MAX {
            return unknown;
        }
        let Some((_, kind)) = self.types.plain(number) else { return unknown };
        match kind {
            BtfKind::Integer { is_bool: true, bytes: 1, .. } => BpfValueType::Bool,
            BtfKind::Integer { bytes, is_signed, .. } if (1..=16).contains(bytes) => {
                BpfValueType::Integer { bits: 8 * *bytes as u16, is_signed: *is_signed }
            }
            BtfKind::Float(bytes @ (4 | 8)) => BpfValueType::Real { bytes: *bytes as u8 },
            BtfKind::Pointer(_) => BpfValueType::Pointer,
            BtfKind::Enumeration { bytes: bytes @ (1 | 2 | 4 | 8), is_signed, values } => {
                self.parts += values.len();
                let names = values.iter().map(|(name, value)| (*value, self.types.text(*name).into()));
                BpfValueType::Enumeration { bits: 8 * *bytes as u16, is_signed: *is_signed, names: names.collect() }
            }
            BtfKind::Array { element, count } => self.array(*element, *count, depth),
            BtfKind::Structure { members, .. } => {
                let name = self.types.plain(number).map_or("", |(plain, _)| self.types.name(plain)).into();
                let members = members.clone();
                let members = members.iter().map(|member| {
                    let value_type = match self.read_inside(member.type_number, depth + 1) {
                        BpfValueType::Integer { is_signed, .. } if member.bit_size > 0 => {
                            BpfValueType::Integer { bits: member.bit_size.into(), is_signed }
                        }
                        BpfValueType::Enumeration { is_signed, names, .. } if member.bit_size > 0 => {
                            BpfValueType::Enumeration { bits: member.bit_size.into(), is_signed, names }
                        }
                        other => other,
                    };
                    let name = self.types.member_name(member).into();
                    BpfValueMember { name, bit_offset: member.bit_offset, value_type }
                });
                BpfValueType::Structure { name, members: members.collect() }
            }
            _ => unknown,
        }
    }

    fn array(&mut self, element: u32, count: u32, depth: usize) -> BpfValueType {
        let is_text = match self.types.plain(element) {
            Some((plain, BtfKind::Integer { bytes: 1, is_char, .. })) => *is_char || self.types.name(plain) == "char",
            _ => false,
        };
        if is_text {
            return BpfValueType::Text { bytes: count };
        }
        let stride = self.types.size(element).and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
        BpfValueType::Array { element: Box::new(self.read_inside(element, depth + 1)), stride, count }
    }
}
