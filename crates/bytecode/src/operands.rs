//! Operands of instructions: registers, integer arguments, constants, and comparison results.

/// Number of integer registers.
pub const INTEGERS: u8 = 8;
/// Number of real registers.
pub const REALS: u8 = 4;
/// Number of text registers.
pub const TEXTS: u8 = 4;

/// Representation of an integer argument: width, sign and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntegerKind(pub(crate) u8);

impl IntegerKind {
    /// Names of all kinds, by number, as in disassembly.
    pub(crate) const NAMES: [&'static str; 14] = [
        "u8", "i8", "u16le", "u16be", "i16le", "i16be", "u32le", "u32be", "i32le", "i32be", "u64le", "u64be", "i64le",
        "i64be",
    ];

    /// The kind of an integer of 1, 2, 4 or 8 bytes; `None`: `bytes` is another number.
    #[must_use]
    pub fn new(bytes: u8, is_signed: bool, is_big_endian: bool) -> Option<Self> {
        let (sign, order) = (u8::from(is_signed), u8::from(is_big_endian));
        match bytes {
            1 => Some(Self(sign)),
            2 => Some(Self(2 + 2 * sign + order)),
            4 => Some(Self(6 + 2 * sign + order)),
            8 => Some(Self(10 + 2 * sign + order)),
            _ => None,
        }
    }

    /// The kind with this number.
    pub(crate) fn of(number: u8) -> Option<Self> {
        (usize::from(number) < Self::NAMES.len()).then_some(Self(number))
    }

    /// Size of the integer in bytes.
    #[must_use]
    pub fn bytes(self) -> u8 {
        match self.0 {
            0..2 => 1,
            2..6 => 2,
            6..10 => 4,
            _ => 8,
        }
    }

    /// Whether it is in two's complement.
    #[must_use]
    pub fn is_signed(self) -> bool {
        if self.0 < 2 { self.0 == 1 } else { (self.0 - 2) & 2 != 0 }
    }

    /// Whether its most significant byte comes first.
    #[must_use]
    pub fn is_big_endian(self) -> bool {
        self.0 >= 2 && self.0 & 1 != 0
    }

    /// Its lowest value.
    #[must_use]
    pub fn lowest(self) -> i128 {
        if self.is_signed() { -(1 << (8 * self.bytes() - 1)) } else { 0 }
    }

    /// Its highest value.
    #[must_use]
    pub fn highest(self) -> i128 {
        (1 << (8 * self.bytes() - u8::from(self.is_signed()))) - 1
    }

    /// Whether an instruction can test such integers for a range, or for some of their bits: two
    /// constants must fit.
    #[must_use]
    pub fn has_ranges(self) -> bool {
        self.bytes() <= 4
    }

    /// Name in disassembly.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[usize::from(self.0)]
    }

    /// The number that `bits` represent.
    pub(crate) fn value(self, bits: u64) -> i128 {
        if self.is_signed() { i128::from(bits as i64) } else { i128::from(bits) }
    }

    /// The number that 32 bits of an immediate represent.
    pub(crate) fn half(self, bits: u32) -> i128 {
        if self.is_signed() { i128::from(bits as i32) } else { i128::from(bits) }
    }
}

/// An integer argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntegerField {
    /// Its representation.
    pub kind: IntegerKind,
    /// Offset of its first byte.
    pub offset: u16,
}

/// Condition on an integer argument. Constants are values of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IntegerCondition {
    Equal(i128),
    NotEqual(i128),
    Less(i128),
    AtLeast(i128),
    /// Between the two constants, both included. Not for integers of 8 bytes.
    Within(i128, i128),
    /// Not [`IntegerCondition::Within`].
    Without(i128, i128),
    /// The bits selected by the first constant, a mask, equal the second. Not for integers of 8
    /// bytes.
    BitsEqual(u32, u32),
    /// Not [`IntegerCondition::BitsEqual`].
    BitsDiffer(u32, u32),
}

impl IntegerCondition {
    /// The condition that holds exactly when this one does not.
    #[must_use]
    pub fn inverted(self) -> Self {
        match self {
            Self::Equal(value) => Self::NotEqual(value),
            Self::NotEqual(value) => Self::Equal(value),
            Self::Less(value) => Self::AtLeast(value),
            Self::AtLeast(value) => Self::Less(value),
            Self::Within(lowest, highest) => Self::Without(lowest, highest),
            Self::Without(lowest, highest) => Self::Within(lowest, highest),
            Self::BitsEqual(mask, value) => Self::BitsDiffer(mask, value),
            Self::BitsDiffer(mask, value) => Self::BitsEqual(mask, value),
        }
    }
}

/// A set of comparison results: bit 0 less, bit 1 equal, bit 2 greater, bit 3 unordered, as for
/// NaN. The jump is taken if the result is in the set, so that "not less" and "greater or equal"
/// can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OrderSet(pub u8);

#[allow(missing_docs)]
impl OrderSet {
    pub const LESS: Self = Self(1);
    pub const EQUAL: Self = Self(2);
    pub const GREATER: Self = Self(4);
    pub const NONE: Self = Self(8);

    /// Union of two sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Complement of the set.
    #[must_use]
    pub const fn inverted(self) -> Self {
        Self(!self.0 & 15)
    }

    /// Whether a result is in the set; `None`: unordered.
    #[must_use]
    pub fn has(self, order: Option<core::cmp::Ordering>) -> bool {
        let bit = order.map_or(3, |order| order as i8 + 1);
        self.0 >> bit & 1 != 0
    }
}

/// Exact integer arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    /// Rounds toward zero.
    Divide,
    /// The result has the sign of the left operand.
    Remainder,
}

/// Operations on 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BitwiseOp {
    And,
    Or,
    Xor,
    /// Counts above 63 have no result; the same holds for the right shift.
    ShiftLeft,
    /// Shifts in zeros.
    ShiftRight,
}

/// Arithmetic of reals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum RealArithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A right operand of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RightOperand {
    /// A register.
    Register(u8),
    /// A constant.
    Constant(u64),
}

/// Which integers are in two's complement; others are unsigned. This determines the number that 64
/// bits represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Signs {
    pub left: bool,
    pub right: bool,
    pub result: bool,
}

impl Signs {
    pub(crate) fn bits(self) -> u8 {
        u8::from(self.left) | u8::from(self.right) << 1 | u8::from(self.result) << 2
    }

    pub(crate) fn of(bits: u8) -> Self {
        Self { left: bits & 1 != 0, right: bits & 2 != 0, result: bits & 4 != 0 }
    }
}

/// Location of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextPlace {
    /// In the arguments, up to its first zero byte or the end of its place.
    Inline {
        /// Offset of its first byte.
        offset: u16,
        /// Size of the place in bytes.
        capacity: u32,
    },
    /// Outside the arguments: an address of 8 bytes and a length of 8 bytes, in the machine's byte
    /// order.
    Pointer {
        /// Offset of the address.
        offset: u16,
    },
}

/// Bytes among the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LiteralBytes {
    /// Offset from the beginning of the constants.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}

/// Condition on a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextPattern {
    /// It equals these bytes.
    Is(LiteralBytes),
    /// It begins with these bytes.
    Begins(LiteralBytes),
    /// It consists of parts with any bytes between them.
    Like {
        /// Offset of the first part among the constants. Each part is its length as 2 bytes, then
        /// its bytes; the next one follows.
        offset: u32,
        /// Number of parts, at least 2: the first one begins the text, the last one ends it.
        parts: u32,
    },
}

/// A set of registers: bits 0 to 7 integers, 8 to 11 reals, 12 to 15 texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegisterSet(pub u16);

impl RegisterSet {
    pub(crate) fn integer(number: u8) -> Self {
        Self(1 << (number % INTEGERS))
    }

    pub(crate) fn real(number: u8) -> Self {
        Self(1 << (8 + number % REALS))
    }

    pub(crate) fn text(number: u8) -> Self {
        Self(1 << (12 + number % TEXTS))
    }

    /// Union of two sets.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Set difference.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

pub(crate) fn arithmetic(number: u8) -> Option<ArithmeticOp> {
    use ArithmeticOp::{Add, Divide, Multiply, Remainder, Subtract};
    [Add, Subtract, Multiply, Divide, Remainder].get(usize::from(number)).copied()
}

pub(crate) fn bitwise(number: u8) -> Option<BitwiseOp> {
    use BitwiseOp::{And, Or, ShiftLeft, ShiftRight, Xor};
    [And, Or, Xor, ShiftLeft, ShiftRight].get(usize::from(number)).copied()
}

pub(crate) fn real_arithmetic(number: u8) -> Option<RealArithmetic> {
    use RealArithmetic::{Add, Divide, Multiply, Subtract};
    [Add, Subtract, Multiply, Divide].get(usize::from(number)).copied()
}
