//! What events are made of whose bytes are packed: no padding, little-endian, as traced programs write them.
//!
//! It is what a writer of raw packets has to know of them: how to say in metadata what the bytes mean.

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name; the metadata makes an identifier of it.
    pub name: String,
    /// What its bytes are.
    pub kind: Kind,
}

/// What bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One value.
    Scalar(Scalar),
    /// `u16`: how many bytes, then those, in UTF-8.
    Text,
    /// So many bytes of text, zeros behind.
    FixedText(u32),
    /// So many values.
    Array(Scalar, u32),
    /// `u16`: how many, then those values.
    Sequence(Scalar),
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// An integer.
    Integer(Integer),
    /// One whose values have names.
    Enumeration(Integer, Vec<Label>),
    /// IEEE 754, so many bytes: 4 or 8.
    Real(u8),
    /// A byte, 0 or 1.
    Boolean,
}

/// An integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// How many: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Whether it may be negative.
    pub is_signed: bool,
    /// Whether people want to see it in hexadecimal.
    pub is_hex: bool,
}

/// A value that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// The name.
    pub name: String,
    /// The value.
    pub value: i128,
}

impl Integer {
    /// One without a sign.
    #[must_use]
    pub const fn unsigned(bytes: u8) -> Self {
        Self { bytes, is_signed: false, is_hex: false }
    }
}

impl Scalar {
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
