//! The value of a field, as a plain tree parallel to its class.
//!
//! ```text
//! Structure ─┬─ Unsigned 3
//!            └─ Array ─┬─ Text "a"
//!                      └─ Text "b"
//! ```
//!
//! It is for writers, for cutting traces and for comparing readers; it keeps all information of the
//! bytes and is not fast. Names, bases and labels stay with the class.

/// The value of a field. Which variant goes with which class stands in the class' order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of a boolean.
    Boolean(bool),
    /// Of a bit array or a bit map, which are at most 64 bits.
    BitArray(u64),
    /// Of an unsigned integer.
    Unsigned(u64),
    /// Of a signed integer.
    Signed(i64),
    /// The IEEE 754 bits of a real, as they are, in the low bits: comparing is exact, NaN included.
    Real(u128),
    /// The bytes of a text in its own encoding, without the zero code unit that ends it.
    Text(Vec<u8>),
    /// Bytes.
    Blob(Vec<u8>),
    /// Of a structure: its members in order.
    Structure(Vec<Value>),
    /// Of an array: its elements in order.
    Array(Vec<Value>),
    /// Of an optional.
    Optional(Option<Box<Value>>),
    /// Of a variant.
    Variant {
        /// Index into the variant's options.
        option: usize,
        /// The content.
        content: Box<Value>,
    },
}

impl Value {
    /// The value of an integer, or 0 and 1 of a boolean: lengths and selectors use it.
    #[must_use]
    pub fn integer(&self) -> Option<i128> {
        match self {
            Self::Boolean(value) => Some(i128::from(*value)),
            Self::BitArray(value) | Self::Unsigned(value) => Some(i128::from(*value)),
            Self::Signed(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// The name of its kind, for messages.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Boolean(_) => "a boolean",
            Self::BitArray(_) => "a bit array",
            Self::Unsigned(_) => "an unsigned integer",
            Self::Signed(_) => "a signed integer",
            Self::Real(_) => "a real",
            Self::Text(_) => "a text",
            Self::Blob(_) => "a blob",
            Self::Structure(_) => "a structure",
            Self::Array(_) => "an array",
            Self::Optional(_) => "an optional",
            Self::Variant { .. } => "a variant",
        }
    }
}
