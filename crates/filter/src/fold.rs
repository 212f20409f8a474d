//! Simplifies a predicate without changing its meaning.
//!
//! ```text
//! !(x < 5)                    x >= 5                   not for reals: what is not a number is neither
//! 300 > u8                    true                     if the input is always there
//! x == 1 || x == 2 || x == 7  x in (1..=2, 7)
//! x > 4 && x < 9              x in (5..=8)
//! scaled(x) < 5000            x < 5                    time: from nanoseconds back to cycles
//! x - 100 < 20                x < 120                  if every difference can be held
//! x < 42.5                    x <= 42                  integers with real constants
//! x > 0  for unsigned ones    x != 0
//! ```
//!
//! Inside, three values are kept apart: a test that is false wherever it is known, but unknown where its input is
//! missing, is a range test with no ranges. Only at the root, where unknown means no, does it become false. There is one
//! exception: a comparison of a scaled input with a constant was unknown where the scaled value could not be held, and
//! becomes known. Numbers keep their form, since the range of a form decides how its value is held.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use kymo_ir::Predicate;
use kymo_ir::predicate::{
    Arithmetic, Datum, INTEGER_HIGHEST, INTEGER_LOWEST, Input, Number, Pattern, Relation, Test, TextExpression,
    ValueRange,
};

use crate::ranges::{self, EVERYTHING, Ranges};

/// The same predicate in fewer words. It has passed [`Predicate::verify`].
pub(crate) fn folded(mut predicate: Predicate) -> Predicate {
    let root = std::mem::replace(&mut predicate.root, Test::Constant(None));
    let folder = Folder { predicate: &predicate };
    let root = folder.test(root);
    let root = folder.kept(root);
    Predicate { root, ..predicate }
}

/// The same test for every event; unlike [`folded`] it may not take unknown for false.
#[cfg(test)]
pub(crate) fn folded_test(predicate: &Predicate) -> Test {
    Folder { predicate }.test(predicate.root.clone())
}

/// Whether it is the same for all events.
pub(crate) fn is_constant(number: &Number) -> bool {
    matches!(number, Number::Integer(_) | Number::Real(_))
}

/// Tests in their order, each once: a repetition adds nothing.
#[derive(Default)]
struct Distinct {
    tests: Vec<Test>,
    /// Places of tests by their hash.
    places: HashMap<u64, Vec<usize>>,
}

impl Distinct {
    fn push(&mut self, test: Test) {
        let places = self.places.entry(hash_of(&test)).or_default();
        if places.iter().all(|&place| self.tests[place] != test) {
            places.push(self.tests.len());
            self.tests.push(test);
        }
    }
}

/// Integers of which tests ask whether they are in a set, each with the places of those tests.
#[derive(Default)]
struct MembershipTests<'t> {
    groups: Vec<(&'t Number, Vec<usize>)>,
    /// Places of groups by the hash of their number.
    places: HashMap<u64, Vec<usize>>,
}

impl<'t> MembershipTests<'t> {
    fn push(&mut self, number: &'t Number, test: usize) {
        let places = self.places.entry(hash_of(number)).or_default();
        match places.iter().find(|&&place| self.groups[place].0 == number) {
            Some(&place) => self.groups[place].1.push(test),
            None => {
                places.push(self.groups.len());
                self.groups.push((number, vec![test]));
            }
        }
    }
}

/// Regular expressions have memory of their own, so tests are no keys of maps: their hashes are.
fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A set of everything, for tests that are true wherever they are known.
const ALWAYS: (i128, i128) = (INTEGER_LOWEST, INTEGER_HIGHEST);

struct Folder<'p> {
    /// Its inputs; the root is of no use.
    predicate: &'p Predicate,
}

impl Folder<'_> {
    /// Recurses as deep as the test, which was verified.
    fn test(&self, test: Test) -> Test {
        match test {
            Test::Constant(value) => Test::Constant(value),
            Test::Not(test) => self.not(self.test(*test)),
            Test::All(tests) => self.combined(tests.into_iter().map(|test| self.test(test)), true),
            Test::Any(tests) => self.combined(tests.into_iter().map(|test| self.test(test)), false),
            Test::Has(input) if !self.is_optional(input) => Test::Constant(Some(true)),
            Test::Compare { relation, left, right } => self.compare(relation, self.number(left), self.number(right)),
            Test::Among { value, ranges } => self.within(self.number(value), ranges),
            Test::CompareText { relation, left: TextExpression::Literal(left), right } => {
                Test::CompareText { relation: relation.mirrored(), left: right, right: TextExpression::Literal(left) }
            }
            Test::Matches { text: TextExpression::Input(input), pattern }
                if takes_all(&pattern) && !self.is_optional(input) =>
            {
                Test::Constant(Some(true))
            }
            test @ (Test::Has(_) | Test::CompareText { .. } | Test::Matches { .. }) => test,
        }
    }

    /// Only statements inside a number are simplified.
    fn number(&self, number: Number) -> Number {
        let inner = |number: Box<Number>| Box::new(self.number(*number));
        match number {
            Number::Integer(_) | Number::Real(_) | Number::Input(_) => number,
            Number::Truth(test) => Number::Truth(Box::new(self.test(*test))),
            Number::Arithmetic { operation, left, right } => {
                Number::Arithmetic { operation, left: inner(left), right: inner(right) }
            }
            Number::Bits { operation, left, right } => {
                Number::Bits { operation, left: inner(left), right: inner(right) }
            }
            Number::Complement(value) => Number::Complement(inner(value)),
            Number::Scaled { value, multiply, divide, add } => {
                Number::Scaled { value: inner(value), multiply, divide, add }
            }
        }
    }

    fn is_optional(&self, input: Input) -> bool {
        self.predicate.inputs[usize::from(input.0)].optional
    }

    /// The opposite of a test that is simplified.
    fn not(&self, test: Test) -> Test {
        match test {
            Test::Constant(value) => Test::Constant(value.map(|value| !value)),
            Test::Not(test) => *test,
            Test::All(tests) => self.combined(tests.into_iter().map(|test| self.not(test)), false),
            Test::Any(tests) => self.combined(tests.into_iter().map(|test| self.not(test)), true),
            Test::Compare { relation, left, right } => {
                let is_real = self.predicate.is_real(&left) || self.predicate.is_real(&right);
                if is_real && !matches!(relation, Relation::Equal | Relation::NotEqual) {
                    return Test::Not(Box::new(Test::Compare { relation, left, right }));
                }
                Test::Compare { relation: opposite(relation), left, right }
            }
            Test::CompareText { relation, left, right } => {
                Test::CompareText { relation: opposite(relation), left, right }
            }
            Test::Among { value, ranges } if ranges.is_empty() => Test::Among { value, ranges: vec![ALWAYS] },
            Test::Among { value, ranges } if ranges == [ALWAYS] => Test::Among { value, ranges: Vec::new() },
            test => Test::Not(Box::new(test)),
        }
    }

    /// A comparison of numbers that are simplified.
    fn compare(&self, relation: Relation, left: Number, right: Number) -> Test {
        let (relation, left, right) =
            if is_constant(&left) { (relation.mirrored(), right, left) } else { (relation, left, right) };
        let is_integer = !self.predicate.is_real(&left);
        match right {
            Number::Integer(constant) if is_integer => {
                let set = ranges::of_relation(relation, constant);
                as_written(relation, self.within(left, set))
            }
            Number::Real(constant) if is_integer => {
                let range = self.predicate.range(&left);
                self.within(left, of_real(relation, constant.value(), range))
            }
            right if is_constant(&left) => {
                let nothing: &[Datum] = &[];
                Test::Constant(self.predicate.test(&Test::Compare { relation, left, right }, nothing))
            }
            right => {
                let test = Test::Compare { relation, left, right };
                self.predicate.may_be(&test, &[]).constant().map_or(test, Test::Constant)
            }
        }
    }

    /// Whether an integer lies in a set.
    fn within(&self, value: Number, set: Ranges) -> Test {
        let (mut value, mut set) = (value, set);
        while let Some((inner, of_inner)) = self.undone(&value, &set) {
            (value, set) = (inner, of_inner);
        }
        let test = match value {
            Number::Integer(constant) => return Test::Constant(Some(ranges::contains(&set, constant))),
            Number::Truth(test) => {
                return match (ranges::contains(&set, 1), ranges::contains(&set, 0)) {
                    (true, false) => *test,
                    (false, true) => self.not(*test),
                    (same, _) => self.decided(Number::Truth(test), same),
                };
            }
            value => value,
        };
        let range = self.predicate.range(&test);
        let inside = ranges::clip(&set, range);
        let outside = ranges::complement(&inside, range);
        self.in_words(test, range, inside, outside)
    }

    /// The operand of a value, and for which of its values the result is in the set. Sums are left
    /// as they are where some cannot be held.
    fn undone(&self, value: &Number, set: &[(i128, i128)]) -> Option<(Number, Ranges)> {
        let (operation, left, right) = match value {
            Number::Scaled { value, multiply, divide, add } => {
                return Some(((**value).clone(), unscaled(set, *multiply, *divide, *add)));
            }
            Number::Arithmetic { operation, left, right } => (operation, &**left, &**right),
            _ => return None,
        };
        let exact = self.predicate.exact_range(value);
        if !exact.is_held() {
            return None;
        }
        let set = ranges::clip(set, exact);
        let moved = |by: i128| set.iter().map(|&(lowest, highest)| (lowest + by, highest + by)).collect();
        match (operation, left, right) {
            (Arithmetic::Add, Number::Integer(constant), inner)
            | (Arithmetic::Add, inner, Number::Integer(constant)) => Some((inner.clone(), moved(-constant))),
            (Arithmetic::Subtract, inner, Number::Integer(constant)) => Some((inner.clone(), moved(*constant))),
            (Arithmetic::Subtract, Number::Integer(constant), inner) => {
                let mirrored = set.iter().rev().map(|&(lowest, highest)| (constant - highest, constant - lowest));
                Some((inner.clone(), mirrored.collect()))
            }
            _ => None,
        }
    }

    /// The plainest test for a set within the range of a value, given the values outside, too.
    fn in_words(&self, left: Number, range: ValueRange, inside: Ranges, outside: Ranges) -> Test {
        let compare = |left, relation, constant| Test::Compare { relation, left, right: Number::Integer(constant) };
        match (&inside[..], &outside[..]) {
            ([], _) => self.decided(left, false),
            (_, []) => self.decided(left, true),
            (&[(lowest, highest)], _) if lowest == highest => compare(left, Relation::Equal, lowest),
            (_, &[(lowest, highest)]) if lowest == highest => compare(left, Relation::NotEqual, lowest),
            (&[(lowest, highest)], _) if lowest == range.lowest => compare(left, Relation::LessOrEqual, highest),
            (&[(lowest, highest)], _) if highest == range.highest => compare(left, Relation::GreaterOrEqual, lowest),
            _ if outside.len() < inside.len() => Test::Not(Box::new(Test::Among { value: left, ranges: outside })),
            _ => Test::Among { value: left, ranges: inside },
        }
    }

    /// A test that is the same wherever the value is known.
    fn decided(&self, value: Number, truth: bool) -> Test {
        let test = Test::Among { value, ranges: if truth { vec![ALWAYS] } else { Vec::new() } };
        self.predicate.may_be(&test, &[]).constant().map_or(test, Test::Constant)
    }

    /// All or any of tests that are simplified.
    fn combined(&self, tests: impl Iterator<Item = Test>, is_all: bool) -> Test {
        let mut distinct = Distinct::default();
        for test in tests {
            match test {
                Test::All(inner) if is_all => inner.into_iter().for_each(|test| distinct.push(test)),
                Test::Any(inner) if !is_all => inner.into_iter().for_each(|test| distinct.push(test)),
                test => distinct.push(test),
            }
        }
        let mut tests = self.merged(distinct.tests, is_all);
        if tests.contains(&Test::Constant(Some(!is_all))) {
            return Test::Constant(Some(!is_all));
        }
        tests.retain(|test| *test != Test::Constant(Some(is_all)));
        match tests.len() {
            0 => Test::Constant(Some(is_all)),
            1 => tests.swap_remove(0),
            _ if is_all => Test::All(tests),
            _ => Test::Any(tests),
        }
    }

    /// Several tests of one integer become one, where that is simpler.
    fn merged(&self, tests: Vec<Test>, is_all: bool) -> Vec<Test> {
        let mut groups = MembershipTests::default();
        for (index, test) in tests.iter().enumerate() {
            if let Some(value) = self.asked(test) {
                groups.push(value, index);
            }
        }
        let mut replaced: Vec<(usize, Option<Test>)> = Vec::new();
        for (value, members) in groups.groups.into_iter().filter(|(_, members)| members.len() > 1) {
            let sets = members.iter().flat_map(|&index| set(&tests[index], is_all));
            let joined = ranges::union(sets.collect());
            let joined = if is_all { ranges::complement(&joined, EVERYTHING) } else { joined };
            let merged = self.within(value.clone(), joined);
            let is_one_range = match &merged {
                Test::Among { ranges, .. } => ranges.len() <= 1,
                other => !matches!(other, Test::Not(_)),
            };
            let has_ranges = members.iter().any(|&index| !matches!(tests[index], Test::Compare { .. }));
            if members.len() > 2 || is_one_range || has_ranges {
                replaced.extend(members[1..].iter().map(|&index| (index, None)));
                replaced.push((members[0], Some(merged)));
            }
        }
        let mut tests: Vec<Option<Test>> = tests.into_iter().map(Some).collect();
        for (index, test) in replaced {
            tests[index] = test;
        }
        tests.into_iter().flatten().collect()
    }

    /// The integer of which a test asks whether it is in a set.
    fn asked<'t>(&self, test: &'t Test) -> Option<&'t Number> {
        match test {
            Test::Compare { left, right: Number::Integer(_), .. } if !self.predicate.is_real(left) => Some(left),
            Test::Among { value, .. } => Some(value),
            Test::Not(test) if matches!(**test, Test::Among { .. }) => self.asked(test),
            _ => None,
        }
    }

    /// The same test where unknown is as good as false.
    fn kept(&self, test: Test) -> Test {
        let never = Test::Constant(Some(false));
        match test {
            Test::Constant(None) => never,
            Test::All(tests) => self.combined(tests.into_iter().map(|test| self.kept(test)), true),
            Test::Any(tests) => self.combined(tests.into_iter().map(|test| self.kept(test)), false),
            Test::Among { ranges, .. } if ranges.is_empty() => never,
            Test::Among { value: Number::Input(input), ranges } if ranges == [ALWAYS] => Test::Has(input),
            Test::Matches { text: TextExpression::Input(input), pattern } if takes_all(&pattern) => Test::Has(input),
            Test::Not(test) if matches!(&*test, Test::Matches { pattern, .. } if takes_all(pattern)) => never,
            test => test,
        }
    }
}

/// A comparison with the relation that people wrote, where the meaning is the same.
fn as_written(written: Relation, test: Test) -> Test {
    let Test::Compare { relation, left, right: Number::Integer(constant) } = test else { return test };
    let (relation, constant) = match (relation, written) {
        (Relation::LessOrEqual, Relation::Less) if constant < INTEGER_HIGHEST => (written, constant + 1),
        (Relation::GreaterOrEqual, Relation::Greater) if constant > INTEGER_LOWEST => (written, constant - 1),
        _ => (relation, constant),
    };
    Test::Compare { relation, left, right: Number::Integer(constant) }
}

fn takes_all(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::Prefix(prefix) if prefix.is_empty())
}

fn opposite(relation: Relation) -> Relation {
    match relation {
        Relation::Equal => Relation::NotEqual,
        Relation::NotEqual => Relation::Equal,
        Relation::Less => Relation::GreaterOrEqual,
        Relation::LessOrEqual => Relation::Greater,
        Relation::Greater => Relation::LessOrEqual,
        Relation::GreaterOrEqual => Relation::Less,
    }
}

/// The set that a test asks for, or its complement.
fn set(test: &Test, is_complement: bool) -> Ranges {
    let (set, is_complement) = match test {
        Test::Compare { relation, right: Number::Integer(constant), .. } => {
            let relation = if is_complement { opposite(*relation) } else { *relation };
            return ranges::of_relation(relation, *constant);
        }
        Test::Among { ranges, .. } => (ranges, is_complement),
        Test::Not(test) => match &**test {
            Test::Among { ranges, .. } => (ranges, !is_complement),
            _ => return Ranges::new(),
        },
        _ => return Ranges::new(),
    };
    if is_complement { ranges::complement(set, EVERYTHING) } else { set.clone() }
}

/// The values for which `floor(value * multiply / divide) + add` is in a set. Sets that reach to the lowest or highest
/// integer that can be held reach beyond.
fn unscaled(set: &[(i128, i128)], multiply: u64, divide: u64, add: i64) -> Ranges {
    // The lowest value whose scaled value is not below a bound.
    let first = |bound: i128| {
        let (multiply, divide) = (i128::from(multiply), u128::from(divide));
        let bound = bound - i128::from(add);
        let (whole, rest) = (bound.div_euclid(multiply), bound.rem_euclid(multiply));
        let part = (rest as u128 * divide).div_ceil(multiply as u128);
        whole.saturating_mul(divide as i128).saturating_add(part as i128)
    };
    let of_range = |&(lowest, highest): &(i128, i128)| {
        let lowest = if lowest <= INTEGER_LOWEST { INTEGER_LOWEST } else { first(lowest) };
        let highest = if highest >= INTEGER_HIGHEST { INTEGER_HIGHEST } else { first(highest + 1).saturating_sub(1) };
        (lowest, highest)
    };
    ranges::clip(&ranges::union(set.iter().map(of_range).collect()), EVERYTHING)
}

/// The integers of a range of which a relation to a real constant holds; as reals they rise with themselves.
fn of_real(relation: Relation, constant: f64, range: ValueRange) -> Ranges {
    let first = |is_behind: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (range.lowest, range.highest + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_behind(middle as f64) { high = middle } else { low = middle + 1 }
        }
        low
    };
    let equal = (first(&|value| value >= constant), first(&|value| value > constant) - 1);
    let (lowest, highest) = (range.lowest, range.highest);
    if constant.is_nan() {
        return if relation == Relation::NotEqual { vec![(lowest, highest)] } else { Ranges::new() };
    }
    ranges::union(match relation {
        Relation::Equal => vec![equal],
        Relation::NotEqual => vec![(lowest, equal.0 - 1), (equal.1 + 1, highest)],
        Relation::Less => vec![(lowest, equal.0 - 1)],
        Relation::LessOrEqual => vec![(lowest, equal.1)],
        Relation::Greater => vec![(equal.1 + 1, highest)],
        Relation::GreaterOrEqual => vec![(equal.0, highest)],
    })
}
