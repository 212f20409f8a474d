//! Types of fields: from the words of definitions and back, and the bytes that events have.
//!
//! Bytes are packed, without padding, little-endian.
//!
//! ```
//! use kymo_schema::field::{ByteCount, FieldType, ScalarType};
//! let port = ScalarType::named("u16").unwrap();
//! let ports = FieldType::Sequence(port);
//! assert_eq!((ports.to_string().as_str(), ports.byte_count()), ("sequence u16", ByteCount::Counted(2)));
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::word;

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DefinedField {
    /// Its name; the metadata makes an identifier of it.
    pub name: String,
    /// What its bytes are.
    pub kind: FieldType,
}

/// What bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FieldType {
    /// One value.
    Scalar(ScalarType),
    /// `u16`: how many bytes, then those, in UTF-8.
    Text,
    /// So many bytes of text, zeros behind.
    FixedText(u32),
    /// So many values.
    Array(ScalarType, u32),
    /// `u16`: how many, then those values.
    Sequence(ScalarType),
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScalarType {
    /// An integer.
    Integer(IntegerType),
    /// One whose values have names.
    Enumeration(IntegerType, Vec<ValueLabel>),
    /// IEEE 754, so many bytes: 4 or 8.
    Real(u8),
    /// A byte, 0 or 1.
    Boolean,
}

/// An integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IntegerType {
    /// How many: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Whether it may be negative.
    pub is_signed: bool,
    /// Whether people want to see it in hexadecimal.
    pub is_hex: bool,
}

/// A value that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ValueLabel {
    /// The name.
    pub name: String,
    /// The value.
    pub value: i128,
}

/// How many bytes a field has in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteCount {
    /// Always so many.
    Fixed(u32),
    /// A `u16` that counts elements, then those, of so many bytes each.
    Counted(u32),
}

/// All types of one value that have one word.
const SCALARS: [(&str, ScalarType); 16] = [
    (word::U8, ScalarType::unsigned(1)),
    (word::U16, ScalarType::unsigned(2)),
    (word::U32, ScalarType::unsigned(4)),
    (word::U64, ScalarType::unsigned(8)),
    (word::I8, ScalarType::signed(1)),
    (word::I16, ScalarType::signed(2)),
    (word::I32, ScalarType::signed(4)),
    (word::I64, ScalarType::signed(8)),
    (word::X8, ScalarType::hexadecimal(1)),
    (word::X16, ScalarType::hexadecimal(2)),
    (word::X32, ScalarType::hexadecimal(4)),
    (word::X64, ScalarType::hexadecimal(8)),
    // It reads as an `x64`, and is shown as one.
    (word::POINTER, ScalarType::hexadecimal(8)),
    (word::F32, ScalarType::Real(4)),
    (word::F64, ScalarType::Real(8)),
    (word::BOOL, ScalarType::Boolean),
];

impl IntegerType {
    /// One without a sign.
    #[must_use]
    pub const fn unsigned(bytes: u8) -> Self {
        Self { bytes, is_signed: false, is_hex: false }
    }

    /// The values that it can have.
    #[must_use]
    pub fn range(self) -> std::ops::RangeInclusive<i128> {
        let bits = 8 * u32::from(self.bytes);
        if self.is_signed { -(1 << (bits - 1))..=(1 << (bits - 1)) - 1 } else { 0..=(1 << bits) - 1 }
    }
}

impl ScalarType {
    const fn unsigned(bytes: u8) -> Self {
        Self::Integer(IntegerType::unsigned(bytes))
    }

    const fn signed(bytes: u8) -> Self {
        Self::Integer(IntegerType { bytes, is_signed: true, is_hex: false })
    }

    const fn hexadecimal(bytes: u8) -> Self {
        Self::Integer(IntegerType { bytes, is_signed: false, is_hex: true })
    }

    /// The type that a word means; enumerations have no word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        SCALARS.iter().find(|(name, _)| *name == word).map(|(_, scalar)| scalar.clone())
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u8 {
        match self {
            Self::Integer(integer) | Self::Enumeration(integer, _) => integer.bytes,
            Self::Real(bytes) => *bytes,
            Self::Boolean => 1,
        }
    }
}

impl FieldType {
    /// How many bytes a field of this type has.
    #[must_use]
    pub fn byte_count(&self) -> ByteCount {
        match self {
            Self::Scalar(scalar) => ByteCount::Fixed(scalar.bytes().into()),
            Self::FixedText(bytes) => ByteCount::Fixed(*bytes),
            Self::Array(element, count) => ByteCount::Fixed(u32::from(element.bytes()) * count),
            Self::Text => ByteCount::Counted(1),
            Self::Sequence(element) => ByteCount::Counted(element.bytes().into()),
        }
    }
}

impl fmt::Display for ScalarType {
    /// As definitions say it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Enumeration(integer, labels) = self {
            write!(f, "{} {}(", word::ENUM, Self::Integer(*integer))?;
            for (at, label) in labels.iter().enumerate() {
                write!(f, "{}{}={}", if at == 0 { "" } else { ", " }, label.name, label.value)?;
            }
            return f.write_str(")");
        }
        let word = SCALARS.iter().find(|(_, scalar)| scalar == self).map_or("", |(word, _)| word);
        f.write_str(word)
    }
}

impl fmt::Display for FieldType {
    /// As definitions say it, which have no word for text of fixed size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => scalar.fmt(f),
            Self::Text | Self::FixedText(_) => f.write_str(word::TEXT),
            Self::Array(element, count) => write!(f, "{} {count} {element}", word::ARRAY),
            Self::Sequence(element) => write!(f, "{} {element}", word::SEQUENCE),
        }
    }
}
