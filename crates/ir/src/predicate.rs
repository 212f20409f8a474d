//! A predicate over the values of one event, typed: the meaning behind every form of a filter.
//!
//! It is a tree of tests over *inputs*. The code that evaluates it decides where inputs come from:
//! registers of a read program, arguments of a tracepoint, a row of a table. Some may be missing;
//! then the logic is SQL's, of three values:
//!
//! ```text
//! next_prio < 100 && next_comm == "kworker*"
//!
//! inputs   0 integer signed 32   1 text utf8
//! root     all
//!            less (input 0) 100
//!            matches (input 1) prefix "kworker"
//!
//! missing < 100      unknown          !unknown            unknown
//! unknown && false   false            unknown || true     true           an event is kept only if true
//! ```
//!
//! Integers are mathematical numbers: signed and unsigned ones compare by their mathematical
//! values. Arithmetic is exact; a result that cannot be held is unknown. An expression that cannot
//! be negative ([`Predicate::range`]) is held in unsigned 64 bits, others in signed 64 bits.

mod eval;
mod jumps;
mod possible;
mod range;
mod show;
mod verify;
mod walk;

use std::sync::Arc;

use crate::style::Encoding;

pub use eval::{Datum, Inputs};
pub use jumps::{Assembler, Targets};
pub use possible::{Fact, Outcomes};
pub use range::{INTEGER_HIGHEST, INTEGER_LOWEST, ValueRange};
pub use verify::{DEPTH_MAX, NODES_MAX, PredicateError};

/// Index into [`Predicate::inputs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Input(pub u16);

/// A typed predicate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Predicate {
    /// The inputs that it reads.
    pub inputs: Vec<InputClass>,
    /// An event is kept if this is true, not if it is unknown.
    pub root: Test,
}

/// The knowledge about an input before any event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputClass {
    /// As people write it, for messages and `--explain`.
    pub name: Box<str>,
    /// Its type.
    pub kind: InputKind,
    /// It may be missing from an event.
    pub optional: bool,
}

/// The type of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// An integer, as 64 bits: sign-extended or zero-extended.
    Integer {
        /// Two's complement.
        signed: bool,
        /// 1 to 64: the value lies in the range of such an integer.
        bits: u8,
    },
    /// A real number, as the 64 bits of an IEEE 754 double.
    Real,
    /// Text.
    Text(Encoding),
}

/// A statement that is true, false or unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// Always the same; `None`: unknown.
    Constant(Option<bool>),
    /// Swaps true and false.
    Not(Box<Test>),
    /// False if one is false, else unknown if one is unknown, else true.
    All(Vec<Test>),
    /// True if one is true, else unknown if one is unknown, else false.
    Any(Vec<Test>),
    /// Whether the input is there. Never unknown.
    Has(Input),
    /// Compares numbers. A real with an integer: the integer becomes a real.
    Compare {
        /// How.
        relation: Relation,
        /// Left.
        left: Number,
        /// Right.
        right: Number,
    },
    /// Whether an integer lies in one of the ranges, both ends included, in rising order and apart from each other.
    Among {
        /// An integer.
        value: Number,
        /// Where.
        ranges: Vec<(i128, i128)>,
    },
    /// Compares bytes of text in the order of their unsigned values; a text that another one begins with is less.
    CompareText {
        /// How.
        relation: Relation,
        /// Left.
        left: TextExpression,
        /// Right.
        right: TextExpression,
    },
    /// Whether a text is of a pattern.
    Matches {
        /// The text.
        text: TextExpression,
        /// The pattern.
        pattern: Pattern,
    },
}

/// How values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A number: an integer from -2^63 to 2^64 - 1, or a real.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// An integer.
    Integer(i128),
    /// A real.
    Real(RealBits),
    /// An input that is an integer or a real.
    Input(Input),
    /// 1 for true, 0 for false.
    Truth(Box<Test>),
    /// Of two integers an integer; of two reals, or one and an integer, a real.
    Arithmetic {
        /// Which.
        operation: Arithmetic,
        /// Left.
        left: Box<Number>,
        /// Right.
        right: Box<Number>,
    },
    /// Of the 64 bits of two integers in two's complement.
    Bits {
        /// Which.
        operation: Bitwise,
        /// Left.
        left: Box<Number>,
        /// Right.
        right: Box<Number>,
    },
    /// Of an integer: its 64 bits, each the other way.
    Complement(Box<Number>),
    /// Of an integer: `floor(value * multiply / divide) + add`. This is how times come from cycles.
    Scaled {
        /// The value.
        value: Box<Number>,
        /// Not 0.
        multiply: u64,
        /// Not 0.
        divide: u64,
        /// Added behind.
        add: i64,
    },
}

/// Arithmetic. A quotient by the integer 0 is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`; of integers toward zero.
    Divide,
    /// `%`; of integers only; has the sign of the left one.
    Remainder,
}

/// Operations on bits. Shifts by less than 0 or more than 63 are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bitwise {
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>`; zeros come in, for any sign.
    ShiftRight,
}

/// A real number by its bits, so that predicates can be compared and hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RealBits(u64);

/// A text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TextExpression {
    /// Bytes in the predicate, UTF-8 unless its author wrote other ones.
    Literal(Box<[u8]>),
    /// An input that is text. Text of other encodings is compared as the UTF-8 it stands for, with
    /// U+FFFD for bytes that stand for nothing.
    Input(Input),
}

/// The pattern that texts are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The very bytes.
    Exactly(Box<[u8]>),
    /// Texts that begin with these bytes.
    Prefix(Box<[u8]>),
    /// Parts with any bytes between them: the text begins with the first part, ends with the last one, and has the
    /// others between them in this order, none overlapping. At least two parts; only the first and the last may be empty.
    Glob(Vec<Box<[u8]>>),
    /// A regular expression that matches somewhere in the text.
    Regex(Regex),
}

/// A regular expression. Compared by its source.
#[derive(Clone)]
pub struct Regex(Arc<regex::bytes::Regex>);

/// Memory of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

impl Regex {
    /// Compiles it.
    ///
    /// # Errors
    ///
    /// The error of `regex`: in its language, or that it would take too much memory.
    pub fn new(source: &str) -> Result<Self, regex::Error> {
        let compiled = regex::bytes::RegexBuilder::new(source).size_limit(REGEX_BYTES_MAX).build()?;
        Ok(Self(Arc::new(compiled)))
    }

    /// As it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it matches somewhere in the text.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }
}

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Regex({:?})", self.source())
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source()
    }
}

impl Eq for Regex {}

impl std::hash::Hash for Regex {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.source().hash(state);
    }
}

impl RealBits {
    /// The number.
    #[must_use]
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl From<f64> for RealBits {
    fn from(value: f64) -> Self {
        Self(value.to_bits())
    }
}

impl Relation {
    /// The relation that holds of the values the other way around.
    #[must_use]
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }

    /// Whether it holds of values in this order.
    #[must_use]
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }

    /// As it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl Pattern {
    /// Whether the text is of this pattern.
    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Exactly(bytes) => **bytes == *text,
            Self::Prefix(bytes) => text.starts_with(bytes),
            Self::Glob(parts) => glob_matches(parts, text),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Taking each part as early as possible leaves most to the ones behind it.
fn glob_matches(parts: &[Box<[u8]>], text: &[u8]) -> bool {
    let [first, middle @ .., last] = parts else { return false };
    let Some(rest) = text.strip_prefix(&**first) else { return false };
    let Some(mut rest) = rest.strip_suffix(&**last) else { return false };
    for part in middle {
        let Some(at) = memchr::memmem::find(rest, part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Where the inputs of a predicate are in the arguments of a tracepoint: a structure of fixed size in memory.
/// Bytecode, native code and eBPF for tracers are made for a layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgumentLayout {
    /// Bytes of the structure.
    pub size: u32,
    /// For each input.
    pub places: Vec<InputPlace>,
}

/// Where an input lies in a structure. Offsets are in bytes; nothing needs alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputPlace {
    /// This class of events does not have it.
    Missing,
    /// An integer of 1, 2, 4 or 8 bytes; the input's kind decides whether it is signed.
    Integer {
        /// First byte.
        offset: u32,
        /// 1, 2, 4 or 8.
        bytes: u8,
        /// Byte order.
        order: kymo_units::ByteOrder,
    },
    /// A real number of 4 or 8 bytes in the machine's order.
    Real {
        /// First byte.
        offset: u32,
        /// 4 or 8.
        bytes: u8,
    },
    /// Text inside the structure: up to its first zero byte, or all of it.
    Inline {
        /// First byte.
        offset: u32,
        /// Bytes.
        capacity: u32,
    },
    /// Text elsewhere: an address of 8 bytes, then its length in bytes as 8 bytes, in the machine's order.
    Pointer {
        /// First byte of the address.
        offset: u32,
    },
}

/// Why a form of code cannot express a predicate. Nothing is weakened: the whole predicate is
/// refused there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}: {part}")]
pub struct Refusal {
    /// The part of the predicate that it cannot express, as [`Predicate`] is displayed.
    pub part: String,
    /// The reason.
    pub why: &'static str,
}

impl ArgumentLayout {
    /// A structure that holds the inputs of a predicate one behind the other, in little-endian
    /// order, each at a multiple of its own size up to 8 bytes. Texts lie inside it with that
    /// many bytes, or behind pointers.
    #[must_use]
    pub fn packed(predicate: &Predicate, text_bytes: Option<u32>) -> Self {
        let mut size = 0_u32;
        let mut places = Vec::new();
        for input in &predicate.inputs {
            let (bytes, alignment) = match (input.kind, text_bytes) {
                (InputKind::Integer { bits, .. }, _) => (u32::from(bits).div_ceil(8).next_power_of_two(), None),
                (InputKind::Real, _) => (8, None),
                (InputKind::Text(_), Some(bytes)) => (bytes, Some(8)),
                (InputKind::Text(_), None) => (16, Some(8)),
            };
            let offset = size.next_multiple_of(alignment.unwrap_or(bytes));
            let order = kymo_units::ByteOrder::Little;
            places.push(match (input.kind, text_bytes) {
                (InputKind::Integer { .. }, _) => InputPlace::Integer { offset, bytes: bytes as u8, order },
                (InputKind::Real, _) => InputPlace::Real { offset, bytes: bytes as u8 },
                (InputKind::Text(_), Some(capacity)) => InputPlace::Inline { offset, capacity },
                (InputKind::Text(_), None) => InputPlace::Pointer { offset },
            });
            size = offset + bytes;
        }
        Self { size: size.next_multiple_of(8), places }
    }

    /// The facts about each input that follow from its place.
    #[must_use]
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |place: &InputPlace| if *place == InputPlace::Missing { Fact::Missing } else { Fact::Present };
        self.places.iter().map(fact).collect()
    }

    /// Checks that the inputs of the predicate can lie in these places.
    ///
    /// # Errors
    ///
    /// The first input without a place that suits it.
    pub fn check(&self, predicate: &Predicate) -> Result<(), Refusal> {
        let refuse = |name: &str, why| Err(Refusal { part: name.to_owned(), why });
        if self.places.len() != predicate.inputs.len() {
            return refuse("all inputs", "the layout has a place for each input");
        }
        for (input, place) in predicate.inputs.iter().zip(&self.places) {
            if place.end() > u64::from(self.size) {
                return refuse(&input.name, "the place is not inside of the structure");
            }
            if !place.suits(input.kind) {
                return refuse(&input.name, "the place is not one for the input's type");
            }
        }
        Ok(())
    }
}

impl InputPlace {
    /// Whether an input of this type can lie there.
    #[must_use]
    pub fn suits(&self, kind: InputKind) -> bool {
        match (kind, self) {
            (_, Self::Missing) => true,
            (InputKind::Integer { .. }, Self::Integer { bytes, .. }) => matches!(bytes, 1 | 2 | 4 | 8),
            (InputKind::Real, Self::Real { bytes, .. }) => matches!(bytes, 4 | 8),
            (InputKind::Text(_), Self::Inline { .. } | Self::Pointer { .. }) => true,
            _ => false,
        }
    }

    /// The first byte behind it; 0 where it is missing.
    #[must_use]
    pub fn end(&self) -> u64 {
        match *self {
            Self::Missing => 0,
            Self::Integer { offset, bytes, .. } | Self::Real { offset, bytes } => u64::from(offset) + u64::from(bytes),
            Self::Inline { offset, capacity } => u64::from(offset) + u64::from(capacity),
            Self::Pointer { offset } => u64::from(offset) + 16,
        }
    }
}

#[cfg(test)]
mod tests;
