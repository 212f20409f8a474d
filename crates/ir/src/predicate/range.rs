//! The ranges that integer expressions lie in: they decide how a value is held, and spare checks.

use super::{Arithmetic, Bitwise, Input, InputKind, Number, Predicate};

/// The lowest integer that can be held.
pub const INTEGER_LOWEST: i128 = i64::MIN as i128;
/// The highest integer that can be held.
pub const INTEGER_HIGHEST: i128 = u64::MAX as i128;

/// The values that an integer expression may have, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueRange {
    /// Lowest.
    pub lowest: i128,
    /// Highest.
    pub highest: i128,
}

/// The range of signed 64 bits.
const SIGNED: ValueRange = ValueRange { lowest: INTEGER_LOWEST, highest: i64::MAX as i128 };
/// The range of unsigned 64 bits.
const UNSIGNED: ValueRange = ValueRange { lowest: 0, highest: INTEGER_HIGHEST };

impl ValueRange {
    /// Of one value.
    #[must_use]
    pub fn single(value: i128) -> Self {
        Self { lowest: value, highest: value }
    }

    /// Values are held in unsigned 64 bits; otherwise in signed ones. Where both would do it is the same bits.
    #[must_use]
    pub fn is_unsigned(self) -> bool {
        self.lowest >= 0
    }

    /// Some values are too high for signed 64 bits.
    #[must_use]
    pub fn needs_unsigned(self) -> bool {
        self.highest > SIGNED.highest
    }

    /// The part of an exact result's range that can be held; where there is none, the value nearest
    /// to it.
    #[must_use]
    pub fn held(self) -> Self {
        let limits = if self.is_unsigned() { UNSIGNED } else { SIGNED };
        let near = |value: i128| value.clamp(limits.lowest, limits.highest);
        Self { lowest: near(self.lowest), highest: near(self.highest) }
    }

    /// Whether every exact result in this range can be held: nothing needs to be checked.
    #[must_use]
    pub fn is_held(self) -> bool {
        self == self.held()
    }

    /// The 64 bits that hold the value, as a number of this range.
    #[must_use]
    pub fn of_bits(self, bits: u64) -> i128 {
        if self.is_unsigned() { i128::from(bits) } else { i128::from(bits as i64) }
    }

    /// Whether the value can be the result of an expression with this exact range.
    #[must_use]
    pub fn holds(self, value: i128) -> bool {
        let limits = if self.is_unsigned() { UNSIGNED } else { SIGNED };
        (limits.lowest..=limits.highest).contains(&value)
    }

    fn around(values: impl IntoIterator<Item = i128>) -> Self {
        let (mut lowest, mut highest) = (i128::MAX, i128::MIN);
        for value in values {
            (lowest, highest) = (lowest.min(value), highest.max(value));
        }
        Self { lowest, highest }
    }
}

impl Predicate {
    /// Whether the number is a real.
    #[must_use]
    pub fn is_real(&self, number: &Number) -> bool {
        match number {
            Number::Real(_) => true,
            Number::Input(input) => self.kind(*input) == InputKind::Real,
            Number::Arithmetic { left, right, .. } => self.is_real(left) || self.is_real(right),
            _ => false,
        }
    }

    /// The type of an input.
    #[must_use]
    pub fn kind(&self, input: Input) -> InputKind {
        self.inputs[usize::from(input.0)].kind
    }

    /// The values that an integer expression may have.
    #[must_use]
    pub fn range(&self, number: &Number) -> ValueRange {
        match number {
            Number::Complement(value) if self.range(value).needs_unsigned() => UNSIGNED,
            Number::Complement(_) => SIGNED,
            _ => self.exact_range(number).held(),
        }
    }

    /// The range of the exact results, before one asks whether they can be held. Whether its lowest value is negative
    /// decides how results are held.
    #[must_use]
    pub fn exact_range(&self, number: &Number) -> ValueRange {
        match number {
            Number::Integer(value) => ValueRange::single(*value),
            Number::Real(_) => SIGNED,
            Number::Input(input) => input_range(self.kind(*input)),
            Number::Truth(_) => ValueRange { lowest: 0, highest: 1 },
            Number::Arithmetic { operation, left, right } => {
                arithmetic_range(*operation, self.range(left), self.range(right))
            }
            Number::Bits { operation, left, right } => bits_range(*operation, self.range(left), self.range(right)),
            Number::Complement(_) => self.range(number),
            Number::Scaled { value, multiply, divide, add } => {
                let range = self.range(value);
                ValueRange::around([range.lowest, range.highest].map(|value| scaled(value, *multiply, *divide, *add)))
            }
        }
    }
}

/// `floor(value * multiply / divide) + add`; the factors have 64 bits, so that nothing overflows.
pub(super) fn scaled(value: i128, multiply: u64, divide: u64, add: i64) -> i128 {
    // The product as a whole might not fit: the rest is below 2^64, so that its product is below 2^128.
    let (whole, rest) = (value.div_euclid(i128::from(divide)), value.rem_euclid(i128::from(divide)));
    let part = rest as u128 * u128::from(multiply) / u128::from(divide);
    whole.saturating_mul(i128::from(multiply)).saturating_add(part as i128).saturating_add(i128::from(add))
}

fn input_range(kind: InputKind) -> ValueRange {
    match kind {
        InputKind::Integer { signed: false, bits } => {
            ValueRange { lowest: 0, highest: (1_i128 << bits.clamp(1, 64)) - 1 }
        }
        InputKind::Integer { signed: true, bits } => {
            let half = 1_i128 << (bits.clamp(1, 64) - 1);
            ValueRange { lowest: -half, highest: half - 1 }
        }
        InputKind::Real | InputKind::Text(_) => SIGNED,
    }
}

pub(super) fn arithmetic_range(operation: Arithmetic, left: ValueRange, right: ValueRange) -> ValueRange {
    let corners = |combine: fn(i128, i128) -> i128| {
        ValueRange::around([
            combine(left.lowest, right.lowest),
            combine(left.lowest, right.highest),
            combine(left.highest, right.lowest),
            combine(left.highest, right.highest),
        ])
    };
    match operation {
        Arithmetic::Add => corners(|left, right| left + right),
        Arithmetic::Subtract => corners(|left, right| left - right),
        // Both are below 2^64: the product may be 2^128, which is cut, and is outside of anything held in any case.
        Arithmetic::Multiply => corners(i128::saturating_mul),
        Arithmetic::Divide => {
            let most = left.lowest.abs().max(left.highest.abs());
            let lowest = if left.lowest < 0 || right.lowest < 0 { -most } else { 0 };
            ValueRange { lowest, highest: most }
        }
        Arithmetic::Remainder => {
            let most = (right.lowest.abs().max(right.highest.abs()) - 1).max(0);
            let lowest = if left.lowest < 0 { -most.min(left.lowest.abs()) } else { 0 };
            ValueRange { lowest, highest: most.min(left.highest.max(0)) }
        }
    }
}

pub(super) fn bits_range(operation: Bitwise, left: ValueRange, right: ValueRange) -> ValueRange {
    let filled = |value: i128| (1_i128 << (128 - value.leading_zeros())) - 1;
    match operation {
        Bitwise::And if left.is_unsigned() && right.is_unsigned() => {
            ValueRange { lowest: 0, highest: left.highest.min(right.highest) }
        }
        Bitwise::And if left.is_unsigned() => ValueRange { lowest: 0, highest: left.highest },
        Bitwise::And if right.is_unsigned() => ValueRange { lowest: 0, highest: right.highest },
        Bitwise::Or | Bitwise::Xor if left.is_unsigned() && right.is_unsigned() => {
            ValueRange { lowest: 0, highest: filled(left.highest.max(right.highest)) }
        }
        Bitwise::ShiftRight if left.is_unsigned() => ValueRange { lowest: 0, highest: left.highest },
        Bitwise::ShiftLeft if left.is_unsigned() => UNSIGNED,
        _ => SIGNED,
    }
}
