//! The meaning of a predicate, as plainly as possible: integers are mathematical numbers, unknown
//! is `None`.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::range::scaled;
use super::{Arithmetic, Bitwise, Input, InputKind, Number, Predicate, Relation, Test, TextExpression};
use crate::emit;
use crate::style::{Encoding, TextStyle};

/// The inputs of one event.
pub trait Inputs {
    /// The value of an input that is a number: an integer as 64 bits, a real as a double's; `None`: it is missing.
    fn number(&self, input: Input) -> Option<u64>;
    /// The bytes of an input that is text; `None`: it is missing.
    fn text(&self, input: Input) -> Option<&[u8]>;
}

/// A value of an input, for callers that have them at hand: see the implementation of [`Inputs`]
/// for slices.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// It is not there.
    Missing,
    /// An integer as 64 bits, or a real as a double's bits.
    Number(u64),
    /// Text.
    Text(Box<[u8]>),
}

impl Inputs for [Datum] {
    fn number(&self, input: Input) -> Option<u64> {
        match self.get(usize::from(input.0))? {
            Datum::Number(value) => Some(*value),
            _ => None,
        }
    }

    fn text(&self, input: Input) -> Option<&[u8]> {
        match self.get(usize::from(input.0))? {
            Datum::Text(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// A number that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
enum KnownNumber {
    Integer(i128),
    Real(f64),
}

impl KnownNumber {
    fn real(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Real(value) => value,
        }
    }
}

impl Predicate {
    /// Whether the event is kept.
    #[must_use]
    pub fn keeps<I: Inputs + ?Sized>(&self, inputs: &I) -> bool {
        self.test(&self.root, inputs) == Some(true)
    }

    /// The value of a test; `None`: unknown.
    pub fn test<I: Inputs + ?Sized>(&self, test: &Test, inputs: &I) -> Option<bool> {
        match test {
            Test::Constant(value) => *value,
            Test::Not(test) => self.test(test, inputs).map(|value| !value),
            Test::All(tests) => self.combined(tests, inputs, false),
            Test::Any(tests) => self.combined(tests, inputs, true),
            Test::Has(input) => Some(self.has(*input, inputs)),
            Test::Compare { relation, left, right } => {
                compare(*relation, self.number(left, inputs)?, self.number(right, inputs)?)
            }
            Test::Among { value, ranges } => match self.number(value, inputs)? {
                KnownNumber::Integer(value) => {
                    Some(ranges.iter().any(|&(lowest, highest)| (lowest..=highest).contains(&value)))
                }
                KnownNumber::Real(_) => None,
            },
            Test::CompareText { relation, left, right } => {
                let (left, right) = (self.text(left, inputs)?, self.text(right, inputs)?);
                Some(relation.holds(left.cmp(&right)))
            }
            Test::Matches { text, pattern } => Some(pattern.matches(&self.text(text, inputs)?)),
        }
    }

    /// The value of a number that has no inputs, as a number again; `None`: unknown.
    #[must_use]
    pub fn computed(&self, number: &Number) -> Option<Number> {
        let nothing: &[Datum] = &[];
        Some(match self.number(number, nothing)? {
            KnownNumber::Integer(value) => Number::Integer(value),
            KnownNumber::Real(value) => Number::Real(value.into()),
        })
    }

    /// `decisive` decides, regardless of the others; otherwise one that is unknown makes it
    /// unknown.
    fn combined<I: Inputs + ?Sized>(&self, tests: &[Test], inputs: &I, decisive: bool) -> Option<bool> {
        let mut is_known = true;
        for test in tests {
            match self.test(test, inputs) {
                Some(value) if value == decisive => return Some(decisive),
                Some(_) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(!decisive)
    }

    fn has<I: Inputs + ?Sized>(&self, input: Input, inputs: &I) -> bool {
        match self.kind(input) {
            InputKind::Text(_) => inputs.text(input).is_some(),
            InputKind::Integer { .. } | InputKind::Real => inputs.number(input).is_some(),
        }
    }

    fn text<'a, I: Inputs + ?Sized>(&'a self, text: &'a TextExpression, inputs: &'a I) -> Option<Cow<'a, [u8]>> {
        let input = match text {
            TextExpression::Literal(bytes) => return Some(Cow::Borrowed(bytes)),
            TextExpression::Input(input) => *input,
        };
        let bytes = inputs.text(input)?;
        match self.kind(input) {
            InputKind::Text(Encoding::Utf8) => Some(Cow::Borrowed(bytes)),
            InputKind::Text(encoding) => {
                let mut utf8 = Vec::new();
                emit::text(&mut utf8, bytes, encoding, TextStyle::Raw);
                Some(Cow::Owned(utf8))
            }
            InputKind::Integer { .. } | InputKind::Real => None,
        }
    }

    fn number<I: Inputs + ?Sized>(&self, number: &Number, inputs: &I) -> Option<KnownNumber> {
        match number {
            Number::Integer(value) => Some(KnownNumber::Integer(*value)),
            Number::Real(value) => Some(KnownNumber::Real(value.value())),
            Number::Input(input) => {
                let bits = inputs.number(*input)?;
                match self.kind(*input) {
                    InputKind::Integer { signed: true, .. } => Some(KnownNumber::Integer(i128::from(bits as i64))),
                    InputKind::Integer { signed: false, .. } => Some(KnownNumber::Integer(i128::from(bits))),
                    InputKind::Real => Some(KnownNumber::Real(f64::from_bits(bits))),
                    InputKind::Text(_) => None,
                }
            }
            Number::Truth(test) => self.test(test, inputs).map(|value| KnownNumber::Integer(i128::from(value))),
            Number::Arithmetic { operation, left, right } => {
                let (left, right) = (self.number(left, inputs)?, self.number(right, inputs)?);
                match (left, right) {
                    (KnownNumber::Integer(left), KnownNumber::Integer(right)) => {
                        let value = integers(*operation, left, right)?;
                        self.exact_range(number).holds(value).then_some(KnownNumber::Integer(value))
                    }
                    _ => reals(*operation, left.real(), right.real()).map(KnownNumber::Real),
                }
            }
            Number::Bits { operation, left, right } => {
                let (left, right) = (self.bits(left, inputs)?, self.bits(right, inputs)?);
                let value = bits(*operation, left, right)?;
                Some(KnownNumber::Integer(self.range(number).of_bits(value)))
            }
            Number::Complement(value) => {
                let bits = !self.bits(value, inputs)?;
                Some(KnownNumber::Integer(self.range(number).of_bits(bits)))
            }
            Number::Scaled { value, multiply, divide, add } => {
                let KnownNumber::Integer(value) = self.number(value, inputs)? else { return None };
                let value = scaled(value, *multiply, *divide, *add);
                self.exact_range(number).holds(value).then_some(KnownNumber::Integer(value))
            }
        }
    }

    /// The 64 bits of an integer.
    fn bits<I: Inputs + ?Sized>(&self, number: &Number, inputs: &I) -> Option<u64> {
        match self.number(number, inputs)? {
            KnownNumber::Integer(value) => Some(value as u64),
            KnownNumber::Real(_) => None,
        }
    }
}

fn compare(relation: Relation, left: KnownNumber, right: KnownNumber) -> Option<bool> {
    let order = match (left, right) {
        (KnownNumber::Integer(left), KnownNumber::Integer(right)) => Some(left.cmp(&right)),
        _ => left.real().partial_cmp(&right.real()),
    };
    // A NaN differs from everything and is neither less nor greater.
    Some(order.map_or(relation == Relation::NotEqual, |order: Ordering| relation.holds(order)))
}

fn integers(operation: Arithmetic, left: i128, right: i128) -> Option<i128> {
    match operation {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Remainder => left.checked_rem(right),
    }
}

fn reals(operation: Arithmetic, left: f64, right: f64) -> Option<f64> {
    match operation {
        Arithmetic::Add => Some(left + right),
        Arithmetic::Subtract => Some(left - right),
        Arithmetic::Multiply => Some(left * right),
        Arithmetic::Divide => Some(left / right),
        Arithmetic::Remainder => None,
    }
}

/// A shift count is a number, not bits: a negative one is far above 63 as bits, as it must be.
fn bits(operation: Bitwise, left: u64, right: u64) -> Option<u64> {
    let count = u32::try_from(right).ok();
    match operation {
        Bitwise::And => Some(left & right),
        Bitwise::Or => Some(left | right),
        Bitwise::Xor => Some(left ^ right),
        Bitwise::ShiftLeft => left.checked_shl(count?),
        Bitwise::ShiftRight => left.checked_shr(count?),
    }
}
