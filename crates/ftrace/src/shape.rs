//! What a field is, apart from where its bytes lie: for comparing ours with LTTng's, and for showing it to people.

use std::fmt::{self, Display, Formatter};

use kymo_format::model::{DisplayBase, FieldClass, FieldKind};

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListedType {
    /// An integer.
    Integer {
        /// Its bits.
        bits: u32,
        /// Whether it has a sign.
        is_signed: bool,
        /// Whether people see it in hexadecimal.
        is_hex: bool,
        /// Whether its values have names.
        has_names: bool,
    },
    /// Text up to a zero byte.
    Text,
    /// Text of so many bytes at most.
    TextOf(u64),
    /// So many equal elements.
    Array(Box<ListedType>, u64),
    /// Equal elements, their number before them.
    Sequence(Box<ListedType>),
    /// Text of which the number of bytes stands before it.
    TextSequence,
    /// Something that the kernel's events have not.
    Other,
}

impl ListedType {
    /// The shape of a field.
    #[must_use]
    pub fn of(class: &FieldClass) -> Self {
        match &class.kind {
            FieldKind::Integer(integer) => Self::Integer {
                bits: integer.bits.length,
                is_signed: integer.meaning.signed,
                is_hex: integer.meaning.base == DisplayBase::Hexadecimal,
                has_names: integer.meaning.enumeration,
            },
            FieldKind::NullTerminatedText(_) => Self::Text,
            FieldKind::StaticText(text) => Self::TextOf(text.length),
            FieldKind::DynamicText(_) => Self::TextSequence,
            FieldKind::StaticArray(array) => Self::Array(Box::new(Self::of(&array.element)), array.length),
            FieldKind::DynamicArray(array) => Self::Sequence(Box::new(Self::of(&array.element))),
            _ => Self::Other,
        }
    }

    /// This shape, with integers of 32 bits as wide as those of the other one.
    pub(crate) fn as_wide_as(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Integer { bits: 32, is_signed, is_hex, has_names }, Self::Integer { bits: 64, .. }) => {
                Self::Integer { bits: 64, is_signed: *is_signed, is_hex: *is_hex, has_names: *has_names }
            }
            (Self::Array(own, length), Self::Array(others, _)) => {
                Self::Array(Box::new(own.as_wide_as(others)), *length)
            }
            (Self::Sequence(own), Self::Sequence(others)) => Self::Sequence(Box::new(own.as_wide_as(others))),
            _ => self.clone(),
        }
    }
}

impl Display for ListedType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { bits, is_signed, is_hex, has_names } => {
                let (kind, base) = (if *has_names { "enum " } else { "" }, if *is_hex { " hex" } else { "" });
                write!(f, "{kind}{}{bits}{base}", if *is_signed { "i" } else { "u" })
            }
            Self::Text => f.write_str("text"),
            Self::TextOf(bytes) => write!(f, "text[{bytes}]"),
            Self::Array(element, length) => write!(f, "{element}[{length}]"),
            Self::Sequence(element) => write!(f, "{element}[]"),
            Self::TextSequence => f.write_str("text[]"),
            Self::Other => f.write_str("structure"),
        }
    }
}
