//! Conditions as they go to the helper: the tests that programs of the kernel can make, and no others.
//!
//! ```text
//! ir::predicate::Test ── ConditionTree::of ──> message ── ConditionTree::test ──> ir::predicate::Test ── verify, compile
//! ```
//!
//! Types of inputs do not go with it: the helper finds out itself what the names mean.

use kymo_ir::predicate::{Arithmetic, Bitwise, Input, Number, Pattern, Predicate, Relation, Test, TextExpression};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A test, as [`Test`]; but for regular expressions and real numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ConditionTree {
    Constant(Option<bool>),
    Not(Box<ConditionTree>),
    All(Vec<ConditionTree>),
    Any(Vec<ConditionTree>),
    Has(u16),
    Compare(RelationWord, ConditionNumber, ConditionNumber),
    Among(ConditionNumber, Vec<(AnyInteger, AnyInteger)>),
    CompareText(RelationWord, ConditionText, ConditionText),
    /// Texts that are of these parts with any bytes between them. One part: that very text.
    Glob(ConditionText, Vec<Vec<u8>>),
}

/// A number, as [`Number`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ConditionNumber {
    Integer(AnyInteger),
    Input(u16),
    Truth(Box<ConditionTree>),
    Arithmetic(ArithmeticWord, Box<ConditionNumber>, Box<ConditionNumber>),
    Bits(BitsWord, Box<ConditionNumber>, Box<ConditionNumber>),
    Complement(Box<ConditionNumber>),
    /// Multiplied, divided, added.
    Scaled(Box<ConditionNumber>, u64, u64, i64),
}

/// An integer of any width, which messages have as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyInteger(pub i128);

impl Serialize for AnyInteger {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AnyInteger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| D::Error::custom("this is no integer"))
    }
}

/// A text, as [`TextExpression`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ConditionText {
    Literal(Vec<u8>),
    Input(u16),
}

/// A part of a condition that programs of the kernel cannot test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InexpressibleTest {
    /// A real number.
    #[error("programs in the kernel have no real numbers")]
    Real,
    /// A regular expression.
    #[error("programs in the kernel have no regular expressions")]
    Regex,
}

/// Words for the variants of a type of `ir`.
macro_rules! words {
    ($word:ident, $type:ident, $sentence:literal, $($variant:ident)*) => {
        #[doc = $sentence]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[allow(missing_docs)]
        pub enum $word { $($variant),* }

        impl From<$type> for $word {
            fn from(value: $type) -> Self {
                match value { $($type::$variant => Self::$variant),* }
            }
        }

        impl From<$word> for $type {
            fn from(word: $word) -> Self {
                match word { $($word::$variant => Self::$variant),* }
            }
        }
    };
}

words!(RelationWord, Relation, "How values compare.", Equal NotEqual Less LessOrEqual Greater GreaterOrEqual);
words!(ArithmeticWord, Arithmetic, "Arithmetic.", Add Subtract Multiply Divide Remainder);
words!(BitsWord, Bitwise, "Operations on bits.", And Or Xor ShiftLeft ShiftRight);

impl ConditionTree {
    /// The tests of a predicate.
    ///
    /// # Errors
    ///
    /// The first part that programs in the kernel cannot test.
    pub fn of(predicate: &Predicate) -> Result<Self, InexpressibleTest> {
        tree(&predicate.root)
    }

    /// The test itself. It may be one that is not sound: `Predicate::verify` knows.
    #[must_use]
    pub fn test(&self) -> Test {
        let all = |tests: &[Self]| tests.iter().map(Self::test).collect();
        match self {
            Self::Constant(value) => Test::Constant(*value),
            Self::Not(test) => Test::Not(Box::new(test.test())),
            Self::All(tests) => Test::All(all(tests)),
            Self::Any(tests) => Test::Any(all(tests)),
            Self::Has(input) => Test::Has(Input(*input)),
            Self::Compare(relation, left, right) => {
                Test::Compare { relation: (*relation).into(), left: left.number(), right: right.number() }
            }
            Self::Among(value, ranges) => {
                let ranges = ranges.iter().map(|(from, to)| (from.0, to.0)).collect();
                Test::Among { value: value.number(), ranges }
            }
            Self::CompareText(relation, left, right) => {
                Test::CompareText { relation: (*relation).into(), left: left.text(), right: right.text() }
            }
            Self::Glob(text, parts) => Test::Matches { text: text.text(), pattern: pattern(parts) },
        }
    }
}

fn tree(test: &Test) -> Result<ConditionTree, InexpressibleTest> {
    let all = |tests: &[Test]| tests.iter().map(tree).collect::<Result<Vec<_>, _>>();
    Ok(match test {
        Test::Constant(value) => ConditionTree::Constant(*value),
        Test::Not(test) => ConditionTree::Not(Box::new(tree(test)?)),
        Test::All(tests) => ConditionTree::All(all(tests)?),
        Test::Any(tests) => ConditionTree::Any(all(tests)?),
        Test::Has(input) => ConditionTree::Has(input.0),
        Test::Compare { relation, left, right } => {
            ConditionTree::Compare((*relation).into(), number(left)?, number(right)?)
        }
        Test::Among { value, ranges } => {
            let ranges = ranges.iter().map(|(from, to)| (AnyInteger(*from), AnyInteger(*to))).collect();
            ConditionTree::Among(number(value)?, ranges)
        }
        Test::CompareText { relation, left, right } => {
            ConditionTree::CompareText((*relation).into(), text(left), text(right))
        }
        Test::Matches { text: of, pattern } => ConditionTree::Glob(text(of), parts(pattern)?),
    })
}

fn number(of: &Number) -> Result<ConditionNumber, InexpressibleTest> {
    let boxed = |of: &Number| number(of).map(Box::new);
    Ok(match of {
        Number::Integer(value) => ConditionNumber::Integer(AnyInteger(*value)),
        Number::Real(_) => return Err(InexpressibleTest::Real),
        Number::Input(input) => ConditionNumber::Input(input.0),
        Number::Truth(test) => ConditionNumber::Truth(Box::new(tree(test)?)),
        Number::Arithmetic { operation, left, right } => {
            ConditionNumber::Arithmetic((*operation).into(), boxed(left)?, boxed(right)?)
        }
        Number::Bits { operation, left, right } => {
            ConditionNumber::Bits((*operation).into(), boxed(left)?, boxed(right)?)
        }
        Number::Complement(value) => ConditionNumber::Complement(boxed(value)?),
        Number::Scaled { value, multiply, divide, add } => {
            ConditionNumber::Scaled(boxed(value)?, *multiply, *divide, *add)
        }
    })
}

fn text(of: &TextExpression) -> ConditionText {
    match of {
        TextExpression::Literal(bytes) => ConditionText::Literal(bytes.to_vec()),
        TextExpression::Input(input) => ConditionText::Input(input.0),
    }
}

/// Parts of a pattern with any bytes between them.
fn parts(pattern: &Pattern) -> Result<Vec<Vec<u8>>, InexpressibleTest> {
    Ok(match pattern {
        Pattern::Exactly(text) => vec![text.to_vec()],
        Pattern::Prefix(text) => vec![text.to_vec(), Vec::new()],
        Pattern::Glob(parts) => parts.iter().map(|part| part.to_vec()).collect(),
        Pattern::Regex(_) => return Err(InexpressibleTest::Regex),
    })
}

fn pattern(parts: &[Vec<u8>]) -> Pattern {
    match parts {
        [text] => Pattern::Exactly(text.as_slice().into()),
        [text, end] if end.is_empty() => Pattern::Prefix(text.as_slice().into()),
        parts => Pattern::Glob(parts.iter().map(|part| part.as_slice().into()).collect()),
    }
}

impl ConditionNumber {
    fn number(&self) -> Number {
        let boxed = |number: &Self| Box::new(number.number());
        match self {
            Self::Integer(value) => Number::Integer(value.0),
            Self::Input(input) => Number::Input(Input(*input)),
            Self::Truth(test) => Number::Truth(Box::new(test.test())),
            Self::Arithmetic(operation, left, right) => {
                Number::Arithmetic { operation: (*operation).into(), left: boxed(left), right: boxed(right) }
            }
            Self::Bits(operation, left, right) => {
                Number::Bits { operation: (*operation).into(), left: boxed(left), right: boxed(right) }
            }
            Self::Complement(value) => Number::Complement(boxed(value)),
            Self::Scaled(value, multiply, divide, add) => {
                Number::Scaled { value: boxed(value), multiply: *multiply, divide: *divide, add: *add }
            }
        }
    }
}

impl ConditionText {
    fn text(&self) -> TextExpression {
        match self {
            Self::Literal(bytes) => TextExpression::Literal(bytes.as_slice().into()),
            Self::Input(input) => TextExpression::Input(Input(*input)),
        }
    }
}

#[cfg(test)]
mod tests {
    use kymo_random::RandomNumbers;
    use kymo_random::predicates::{self, PredicateOptions};

    use super::*;

    /// A message gives the same tests again.
    #[test]
    fn tests_go_there_and_back() {
        let (mut taken, mut refused) = (0, 0);
        for seed in 0..500 {
            let random = &mut RandomNumbers::new(seed);
            let options =
                PredicateOptions { nodes: 1 + random.below(40), regex: seed % 5 == 0, ..PredicateOptions::ALL };
            let (predicate, _) = predicates::predicate(random, &options);
            let Ok(tree) = ConditionTree::of(&predicate) else {
                refused += 1;
                continue;
            };
            let message = serde_json::to_vec(&tree).expect("it is one");
            let Ok(again) = serde_json::from_slice::<ConditionTree>(&message) else {
                // As deep as no message may be.
                continue;
            };
            // Some patterns are another one's other form.
            let root = again.test();
            assert_eq!(
                (&again, ConditionTree::of(&Predicate { root, ..predicate })),
                (&tree, Ok(tree.clone())),
                "{seed}"
            );
            taken += 1;
        }
        assert!(taken > 150 && refused > 20, "{taken} {refused}: the test has become weak");
    }
}
