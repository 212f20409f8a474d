//! The possible answers of a predicate when its inputs are only partly known: whole packets and
//! classes are skipped by it.
//!
//! ```text
//! facts     time 100..=200    cpu_id 3
//! time > 500 && next_prio < 5      {false}          the packet is skipped
//! time > 150 || cpu_id == 1        {true, false}    it is read
//! ```

use super::range::{arithmetic_range, bits_range, scaled};
use super::{Arithmetic, Input, InputKind, Number, Predicate, Relation, Test, TextExpression, ValueRange};
use crate::style::Encoding;

/// A fact about an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Nothing.
    Anything,
    /// It is missing.
    Missing,
    /// It is there, an integer of this range.
    Integer(ValueRange),
    /// It is there, this text as UTF-8.
    Text(Box<[u8]>),
    /// It is there.
    Present,
}

/// The values that a test may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcomes {
    /// It may be true.
    pub is_true: bool,
    /// It may be false.
    pub is_false: bool,
    /// It may be unknown.
    pub is_unknown: bool,
}

impl Outcomes {
    /// Nothing is known.
    pub const ANY: Self = Self { is_true: true, is_false: true, is_unknown: true };

    /// Of one value.
    #[must_use]
    pub fn of(value: Option<bool>) -> Self {
        Self { is_true: value == Some(true), is_false: value == Some(false), is_unknown: value.is_none() }
    }

    /// The only value, if there is one.
    #[must_use]
    pub fn constant(self) -> Option<Option<bool>> {
        match self {
            Self { is_true: true, is_false: false, is_unknown: false } => Some(Some(true)),
            Self { is_true: false, is_false: true, is_unknown: false } => Some(Some(false)),
            Self { is_true: false, is_false: false, is_unknown: true } => Some(None),
            _ => None,
        }
    }

    fn inverted(self) -> Self {
        Self { is_true: self.is_false, is_false: self.is_true, ..self }
    }

    /// All of both: false if one is, else unknown if one is, else true.
    fn and(self, other: Self) -> Self {
        Self {
            is_true: self.is_true && other.is_true,
            is_false: self.is_false || other.is_false,
            is_unknown: self.is_unknown && (other.is_unknown || other.is_true) || other.is_unknown && self.is_true,
        }
    }
}

/// The knowledge about an expression's value.
#[derive(Clone, Copy, Debug)]
struct ValueEstimate {
    /// It may be unknown.
    may_be_unknown: bool,
    /// It may be known.
    may_be_known: bool,
    /// If it is an integer.
    range: Option<ValueRange>,
}

impl Predicate {
    /// The values that the predicate may have, given a fact for each input; inputs without one may be anything. It never
    /// leaves out one that is possible.
    #[must_use]
    pub fn outcomes(&self, facts: &[Fact]) -> Outcomes {
        self.may_be(&self.root, facts)
    }

    /// The values that one of its tests may have.
    #[must_use]
    pub fn may_be(&self, test: &Test, facts: &[Fact]) -> Outcomes {
        match test {
            Test::Constant(value) => Outcomes::of(*value),
            Test::Not(test) => self.may_be(test, facts).inverted(),
            Test::All(tests) => {
                let all = tests.iter().map(|test| self.may_be(test, facts));
                all.fold(Outcomes::of(Some(true)), Outcomes::and)
            }
            Test::Any(tests) => {
                let all = tests.iter().map(|test| self.may_be(test, facts).inverted());
                all.fold(Outcomes::of(Some(true)), Outcomes::and).inverted()
            }
            Test::Has(input) => self.may_have(*input, facts),
            Test::Compare { relation, left, right } => {
                let (left, right) = (self.estimate(left, facts), self.estimate(right, facts));
                compared(*relation, left, right)
            }
            Test::Among { value, ranges } => among(self.estimate(value, facts), ranges),
            Test::CompareText { relation, left, right } => match (self.known(left, facts), self.known(right, facts)) {
                (Some(left), Some(right)) => Outcomes::of(Some(relation.holds(left.cmp(right)))),
                _ => self.of_texts([Some(left), Some(right)], facts),
            },
            Test::Matches { text, pattern } => match self.known(text, facts) {
                Some(text) => Outcomes::of(Some(pattern.matches(text))),
                None => self.of_texts([Some(text), None], facts),
            },
        }
    }

    fn fact<'f>(&self, input: Input, facts: &'f [Fact]) -> &'f Fact {
        match facts.get(usize::from(input.0)).unwrap_or(&Fact::Anything) {
            Fact::Anything if !self.inputs[usize::from(input.0)].optional => &Fact::Present,
            fact => fact,
        }
    }

    fn may_have(&self, input: Input, facts: &[Fact]) -> Outcomes {
        match self.fact(input, facts) {
            Fact::Anything => Outcomes { is_unknown: false, ..Outcomes::ANY },
            Fact::Missing => Outcomes::of(Some(false)),
            Fact::Integer(_) | Fact::Text(_) | Fact::Present => Outcomes::of(Some(true)),
        }
    }

    /// The text, if it is known.
    fn known<'a>(&self, text: &'a TextExpression, facts: &'a [Fact]) -> Option<&'a [u8]> {
        match text {
            TextExpression::Literal(bytes) => Some(bytes),
            TextExpression::Input(input) => match facts.get(usize::from(input.0)) {
                Some(Fact::Text(bytes)) => Some(bytes),
                _ => None,
            },
        }
    }

    fn of_texts(&self, texts: [Option<&TextExpression>; 2], facts: &[Fact]) -> Outcomes {
        let mut outcomes = Outcomes { is_unknown: false, ..Outcomes::ANY };
        for text in texts.into_iter().flatten() {
            let TextExpression::Input(input) = text else { continue };
            match self.fact(*input, facts) {
                Fact::Missing => return Outcomes::of(None),
                Fact::Anything => outcomes.is_unknown = true,
                _ => {}
            }
        }
        outcomes
    }

    fn estimate(&self, number: &Number, facts: &[Fact]) -> ValueEstimate {
        let known = |range| ValueEstimate { may_be_unknown: false, may_be_known: true, range };
        match number {
            Number::Integer(value) => known(Some(ValueRange::single(*value))),
            Number::Real(_) => known(None),
            Number::Input(input) => self.of_input(*input, facts),
            Number::Truth(test) => {
                let outcomes = self.may_be(test, facts);
                let range =
                    ValueRange { lowest: i128::from(!outcomes.is_false), highest: i128::from(outcomes.is_true) };
                let may_be_known = outcomes.is_true || outcomes.is_false;
                ValueEstimate {
                    may_be_unknown: outcomes.is_unknown,
                    may_be_known,
                    range: may_be_known.then_some(range),
                }
            }
            Number::Arithmetic { operation, left, right } => {
                let (left, right) = (self.estimate(left, facts), self.estimate(right, facts));
                match (left.range, right.range) {
                    (Some(of_left), Some(of_right)) => {
                        let exact = arithmetic_range(*operation, of_left, of_right);
                        let divides = matches!(operation, Arithmetic::Divide | Arithmetic::Remainder);
                        let by_zero = divides && of_right.lowest <= 0 && of_right.highest >= 0;
                        self.result(number, left.and(right), exact, by_zero)
                    }
                    _ => ValueEstimate { range: None, ..left.and(right) },
                }
            }
            Number::Bits { operation, left, right } => {
                let (left, right) = (self.estimate(left, facts), self.estimate(right, facts));
                let (Some(of_left), Some(of_right)) = (left.range, right.range) else { return left.and(right) };
                let shifts = matches!(operation, super::Bitwise::ShiftLeft | super::Bitwise::ShiftRight);
                let may_fail = shifts && (of_right.lowest < 0 || of_right.highest > 63);
                // The bits stay the same; as a number of another sign they may be anything.
                let (bits, class) = (bits_range(*operation, of_left, of_right), self.range(number));
                let is_kept = class.lowest <= bits.lowest && bits.highest <= class.highest;
                self.result(number, left.and(right), if is_kept { bits } else { class }, may_fail)
            }
            Number::Complement(value) => {
                ValueEstimate { range: Some(self.range(number)), ..self.estimate(value, facts) }
            }
            Number::Scaled { value, multiply, divide, add } => {
                let estimate = self.estimate(value, facts);
                let Some(range) = estimate.range else { return estimate };
                let ends = [range.lowest, range.highest].map(|value| scaled(value, *multiply, *divide, *add));
                self.result(number, estimate, ValueRange { lowest: ends[0], highest: ends[1] }, false)
            }
        }
    }

    /// An integer result in a range, if it can be held.
    fn result(&self, number: &Number, of: ValueEstimate, exact: ValueRange, may_fail: bool) -> ValueEstimate {
        let limits = self.range(number);
        let range = ValueRange { lowest: exact.lowest.max(limits.lowest), highest: exact.highest.min(limits.highest) };
        let fits = range == exact;
        let is_possible = range.lowest <= range.highest;
        ValueEstimate {
            may_be_unknown: of.may_be_unknown || !fits || may_fail,
            may_be_known: of.may_be_known && is_possible,
            range: is_possible.then_some(range),
        }
    }

    fn of_input(&self, input: Input, facts: &[Fact]) -> ValueEstimate {
        let is_integer = matches!(self.kind(input), InputKind::Integer { .. });
        let class = is_integer.then(|| self.range(&Number::Input(input)));
        match self.fact(input, facts) {
            Fact::Missing => ValueEstimate { may_be_unknown: true, may_be_known: false, range: None },
            Fact::Anything => ValueEstimate { may_be_unknown: true, may_be_known: true, range: class },
            Fact::Integer(range) if is_integer => {
                ValueEstimate { may_be_unknown: false, may_be_known: true, range: Some(*range) }
            }
            _ => ValueEstimate { may_be_unknown: false, may_be_known: true, range: class },
        }
    }

    /// Whether text of an input is UTF-8, so that the facts about it can be compared directly.
    #[must_use]
    pub fn is_utf8(&self, input: Input) -> bool {
        self.kind(input) == InputKind::Text(Encoding::Utf8)
    }
}

impl ValueEstimate {
    /// Of an expression that needs both.
    fn and(self, other: Self) -> Self {
        Self {
            may_be_unknown: self.may_be_unknown || other.may_be_unknown,
            may_be_known: self.may_be_known && other.may_be_known,
            range: self.range.and(other.range),
        }
    }
}

fn compared(relation: Relation, left: ValueEstimate, right: ValueEstimate) -> Outcomes {
    let both = left.and(right);
    if !both.may_be_known {
        return Outcomes::of(None);
    }
    let (Some(left), Some(right)) = (left.range, right.range) else {
        return Outcomes { is_unknown: both.may_be_unknown, ..Outcomes::ANY };
    };
    let less = left.lowest < right.highest;
    let greater = left.highest > right.lowest;
    let equal = left.lowest <= right.highest && right.lowest <= left.highest;
    let orders =
        [(less, std::cmp::Ordering::Less), (equal, std::cmp::Ordering::Equal), (greater, std::cmp::Ordering::Greater)];
    let possible = |wanted: bool| orders.iter().any(|&(may_be, order)| may_be && relation.holds(order) == wanted);
    Outcomes { is_true: possible(true), is_false: possible(false), is_unknown: both.may_be_unknown }
}

fn among(value: ValueEstimate, ranges: &[(i128, i128)]) -> Outcomes {
    let Some(range) = value.range.filter(|_| value.may_be_known) else { return Outcomes::of(None) };
    let is_true = ranges.iter().any(|&(lowest, highest)| lowest <= range.highest && range.lowest <= highest);
    let is_inside = ranges.iter().any(|&(lowest, highest)| lowest <= range.lowest && range.highest <= highest);
    Outcomes { is_true, is_false: !is_inside, is_unknown: value.may_be_unknown }
}
