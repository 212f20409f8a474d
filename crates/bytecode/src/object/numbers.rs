//! Arithmetic and comparisons: those of `kymo_ir::machine`, by number.

/// A change of a number in memory that no other thread sees half done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectChange {
    /// The sum is stored.
    Add = 0,
    /// Bits of either are stored.
    Or = 1,
    /// Bits of both are stored.
    And = 2,
    /// Bits of exactly one are stored.
    Xor = 3,
    /// The number is stored.
    Exchange = 4,
    /// The number is stored if the expected one was there.
    CompareExchange = 5,
}

impl ObjectChange {
    /// That of a number.
    #[must_use]
    pub fn of(number: u64) -> Self {
        match number {
            0 => Self::Add,
            1 => Self::Or,
            2 => Self::And,
            3 => Self::Xor,
            4 => Self::Exchange,
            _ => Self::CompareExchange,
        }
    }

    /// The number to store, where another one was.
    #[must_use]
    pub fn after(self, before: u64, value: u64, expected: u64) -> u64 {
        match self {
            Self::Add => before.wrapping_add(value),
            Self::Or => before | value,
            Self::And => before & value,
            Self::Xor => before ^ value,
            Self::Exchange => value,
            Self::CompareExchange => {
                if before == expected {
                    value
                } else {
                    before
                }
            }
        }
    }
}

/// Operations on numbers of 64 bits, in the order of `kymo_ir::machine::AluOperation`.
#[inline(always)]
pub(super) fn alu(operation: u8, left: u64, right: u64) -> u64 {
    let (left_signed, right_signed) = (left.cast_signed(), right.cast_signed());
    match operation {
        0 => left.wrapping_add(right),
        1 => left.wrapping_sub(right),
        2 => left.wrapping_mul(right),
        3 => left.checked_div(right).unwrap_or(0),
        4 if right == 0 => 0,
        4 => left_signed.wrapping_div(right_signed).cast_unsigned(),
        5 => left | right,
        6 => left & right,
        7 => left.wrapping_shl(right as u32),
        8 => left.wrapping_shr(right as u32),
        9 => left.wrapping_neg(),
        10 => left.checked_rem(right).unwrap_or(left),
        11 if right == 0 => left,
        11 => left_signed.wrapping_rem(right_signed).cast_unsigned(),
        12 => left ^ right,
        13 => right,
        _ => left_signed.wrapping_shr(right as u32).cast_unsigned(),
    }
}

/// The same on numbers of 32 bits, with zeros above.
#[inline(always)]
pub(super) fn alu_32(operation: u8, left: u64, right: u64) -> u64 {
    let (left, right) = (left as u32, right as u32);
    let (left_signed, right_signed) = (left.cast_signed(), right.cast_signed());
    let result = match operation {
        3 => left.checked_div(right).unwrap_or(0),
        4 if right == 0 => 0,
        4 => left_signed.wrapping_div(right_signed).cast_unsigned(),
        7 => left.wrapping_shl(right),
        8 => left.wrapping_shr(right),
        10 => left.checked_rem(right).unwrap_or(left),
        11 if right == 0 => left,
        11 => left_signed.wrapping_rem(right_signed).cast_unsigned(),
        14 => left_signed.wrapping_shr(right).cast_unsigned(),
        other => alu(other, left.into(), right.into()) as u32,
    };
    result.into()
}

/// Whether a relation holds, in the order of `kymo_ir::machine::JumpRelation`.
#[inline(always)]
pub(super) fn holds(relation: u8, left: u64, right: u64) -> bool {
    let (left_signed, right_signed) = (left.cast_signed(), right.cast_signed());
    match relation {
        0 => left == right,
        1 => left > right,
        2 => left >= right,
        3 => left & right != 0,
        4 => left != right,
        5 => left_signed > right_signed,
        6 => left_signed >= right_signed,
        7 => left < right,
        8 => left <= right,
        9 => left_signed < right_signed,
        _ => left_signed <= right_signed,
    }
}

/// The same of numbers of 32 bits.
#[inline(always)]
pub(super) fn holds_32(relation: u8, left: u64, right: u64) -> bool {
    let low =
        |number: u64| if matches!(relation, 5 | 6 | 9 | 10) { sign_extended(number, 32) } else { number & 0xffff_ffff };
    holds(relation, low(left), low(right))
}

#[inline(always)]
pub(super) fn sign_extended(value: u64, bits: u8) -> u64 {
    let above = 64 - u32::from(bits);
    ((value << above).cast_signed() >> above).cast_unsigned()
}

pub(super) fn swapped(value: u64, bits: u8, turns: bool) -> u64 {
    match (bits, turns) {
        (16, true) => (value as u16).swap_bytes().into(),
        (16, false) => (value as u16).into(),
        (32, true) => (value as u32).swap_bytes().into(),
        (32, false) => (value as u32).into(),
        (_, true) => value.swap_bytes(),
        _ => value,
    }
}

/// The low bytes of a number; zeros above.
#[inline(always)]
pub(super) fn low(value: u64, bytes: u8) -> u64 {
    value & (u64::MAX >> (64 - 8 * u32::from(bytes)))
}
