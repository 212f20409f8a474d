//! Puts the tests of a predicate in their best order.
//!
//! ```text
//! comm =~ "^kw" && flags & 4 && prio != 3 && cpu == 1
//! cpu == 1 && prio != 3 && flags & 4 && comm =~ "^kw"      cheap before costly, likely to decide before the rest
//! ```
//!
//! Among equals the order is the author's.

use kymo_ir::predicate::{Arithmetic, Input, InputClass, InputKind, Number, Pattern, Relation, Test, TextExpression};
use kymo_ir::{Encoding, Predicate};

/// The same predicate with its tests in order.
pub(crate) fn ordered(predicate: Predicate) -> Predicate {
    let Predicate { inputs, root } = predicate;
    let (root, _) = Costs { inputs: &inputs }.test(root);
    Predicate { inputs, root }
}

/// Costs are in something like nanoseconds; only their order matters.
struct Costs<'p> {
    inputs: &'p [InputClass],
}

impl Costs<'_> {
    /// The test in order, and its cost.
    fn test(&self, test: Test) -> (Test, u32) {
        match test {
            Test::Constant(_) => (test, 0),
            Test::Has(_) => (test, 1),
            Test::Not(inner) => {
                let (inner, cost) = self.test(*inner);
                (Test::Not(Box::new(inner)), cost)
            }
            Test::All(tests) => {
                let (tests, cost) = self.tests(tests, true);
                (Test::All(tests), cost)
            }
            Test::Any(tests) => {
                let (tests, cost) = self.tests(tests, false);
                (Test::Any(tests), cost)
            }
            Test::Compare { relation, left, right } => {
                let ((left, of_left), (right, of_right)) = (self.number(left), self.number(right));
                (Test::Compare { relation, left, right }, 2_u32.saturating_add(of_left).saturating_add(of_right))
            }
            Test::Among { value, ranges } => {
                let (value, cost) = self.number(value);
                let steps = ranges.len().max(1).ilog2();
                (Test::Among { value, ranges }, cost.saturating_add(3 + steps))
            }
            Test::CompareText { ref left, ref right, .. } => {
                let cost = 12 + self.text(left) + self.text(right);
                (test, cost)
            }
            Test::Matches { ref text, ref pattern } => {
                let cost = self.text(text) + of_pattern(pattern);
                (test, cost)
            }
        }
    }

    fn tests(&self, tests: Vec<Test>, is_all: bool) -> (Vec<Test>, u32) {
        let mut tests: Vec<(Test, u32)> = tests.into_iter().map(|test| self.test(test)).collect();
        tests.sort_by_key(|(test, cost)| (*cost, if is_all { likelihood(test) } else { 2 - likelihood(test) }));
        let cost = tests.iter().fold(0_u32, |sum, (_, cost)| sum.saturating_add(*cost));
        (tests.into_iter().map(|(test, _)| test).collect(), cost)
    }

    fn number(&self, number: Number) -> (Number, u32) {
        match number {
            Number::Integer(_) | Number::Real(_) => (number, 0),
            Number::Input(input) => (number, u32::from(self.kind(input) == InputKind::Real)),
            Number::Truth(test) => {
                let (test, cost) = self.test(*test);
                (Number::Truth(Box::new(test)), cost)
            }
            Number::Arithmetic { operation, left, right } => {
                let own = if matches!(operation, Arithmetic::Divide | Arithmetic::Remainder) { 8 } else { 1 };
                let (left, right, cost) = self.pair(*left, *right);
                (Number::Arithmetic { operation, left, right }, cost.saturating_add(own))
            }
            Number::Bits { operation, left, right } => {
                let (left, right, cost) = self.pair(*left, *right);
                (Number::Bits { operation, left, right }, cost.saturating_add(1))
            }
            Number::Complement(value) => {
                let (value, cost) = self.number(*value);
                (Number::Complement(Box::new(value)), cost.saturating_add(1))
            }
            Number::Scaled { value, multiply, divide, add } => {
                let (value, cost) = self.number(*value);
                let own = if divide == 1 { 2 } else { 10 };
                (Number::Scaled { value: Box::new(value), multiply, divide, add }, cost.saturating_add(own))
            }
        }
    }

    fn pair(&self, left: Number, right: Number) -> (Box<Number>, Box<Number>, u32) {
        let ((left, of_left), (right, of_right)) = (self.number(left), self.number(right));
        (Box::new(left), Box::new(right), of_left.saturating_add(of_right))
    }

    /// Text that is not UTF-8 is translated first.
    fn text(&self, text: &TextExpression) -> u32 {
        match text {
            TextExpression::Input(input) if self.kind(*input) != InputKind::Text(Encoding::Utf8) => 40,
            _ => 0,
        }
    }

    fn kind(&self, input: Input) -> InputKind {
        self.inputs[usize::from(input.0)].kind
    }
}

fn of_pattern(pattern: &Pattern) -> u32 {
    match pattern {
        Pattern::Exactly(_) | Pattern::Prefix(_) => 10,
        Pattern::Glob(_) => 20,
        Pattern::Regex(_) => 60,
    }
}

/// How often a test may be true: 0 seldom, 2 mostly.
fn likelihood(test: &Test) -> u8 {
    match test {
        Test::Compare { relation: Relation::Equal, .. } | Test::CompareText { relation: Relation::Equal, .. } => 0,
        Test::Among { .. } | Test::Matches { .. } => 0,
        Test::Compare { relation: Relation::NotEqual, .. } | Test::CompareText { relation: Relation::NotEqual, .. } => {
            2
        }
        Test::Not(_) => 2,
        _ => 1,
    }
}

/// Tests and numbers that a test is made of, and its ranges.
pub(crate) fn size_of_test(test: &Test) -> usize {
    1 + match test {
        Test::Not(test) => size_of_test(test),
        Test::All(tests) | Test::Any(tests) => tests.iter().map(size_of_test).sum(),
        Test::Compare { left, right, .. } => size_of_number(left) + size_of_number(right),
        Test::Among { value, ranges } => size_of_number(value) + ranges.len(),
        _ => 0,
    }
}

/// Tests and numbers that a number is made of.
pub(crate) fn size_of_number(number: &Number) -> usize {
    1 + match number {
        Number::Truth(test) => size_of_test(test),
        Number::Arithmetic { left, right, .. } | Number::Bits { left, right, .. } => {
            size_of_number(left) + size_of_number(right)
        }
        Number::Complement(value) | Number::Scaled { value, .. } => size_of_number(value),
        _ => 0,
    }
}
