//! Random tests and numbers.

use super::{PredicateOptions, edge, piece, real};
use crate::numbers::RandomNumbers;
use kymo_ir::predicate::{
    Arithmetic, Bitwise, Input, InputClass, InputKind, Number, Pattern, Regex, Relation, Test, TextExpression,
};

/// Tests inside each other, at most.
const DEPTH: usize = 5;

/// A test over inputs.
pub(super) fn root(random: &mut RandomNumbers, options: &PredicateOptions, inputs: &[InputClass]) -> Test {
    let nodes = options.nodes;
    PredicateMaker { random, options, inputs, nodes }.test(DEPTH)
}

struct PredicateMaker<'a> {
    random: &'a mut RandomNumbers,
    options: &'a PredicateOptions,
    inputs: &'a [InputClass],
    /// The remaining nodes; without any there are leaves alone.
    nodes: usize,
}

/// The types of numbers.
#[derive(Clone, Copy, PartialEq)]
enum NumberType {
    Integer,
    Real,
}

impl PredicateMaker<'_> {
    fn below(&mut self, count: usize) -> usize {
        self.random.below(count)
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Whether there may be a node inside.
    fn spend(&mut self, depth: usize) -> bool {
        self.nodes = self.nodes.saturating_sub(1);
        depth > 0 && self.nodes > 0
    }

    fn test(&mut self, depth: usize) -> Test {
        let inner = self.spend(depth);
        match self.below(16) {
            0..=2 if inner => Test::All(self.tests(depth - 1)),
            3..=5 if inner => Test::Any(self.tests(depth - 1)),
            6 if inner => Test::Not(Box::new(self.test(depth - 1))),
            7 if self.coin() => Test::Constant([Some(true), Some(false), None][self.below(3)]),
            7 => Test::Has(Input(self.below(self.inputs.len()) as u16)),
            8 | 9 => Test::Among { value: self.number(depth, NumberType::Integer), ranges: self.ranges() },
            10..=12 if self.options.text => self.text_test(),
            _ => self.compare(depth),
        }
    }

    fn tests(&mut self, depth: usize) -> Vec<Test> {
        (0..self.below(5)).map(|_| self.test(depth)).collect()
    }

    fn relation(&mut self) -> Relation {
        use Relation::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual][self.below(6)]
    }

    fn compare(&mut self, depth: usize) -> Test {
        let class = self.class();
        let other = self.beside(class);
        let (left, right) = (self.number(depth, class), self.number(depth, other));
        Test::Compare { relation: self.relation(), left, right }
    }

    fn class(&mut self) -> NumberType {
        if self.options.reals && self.below(4) == 0 { NumberType::Real } else { NumberType::Integer }
    }

    /// The class of a number beside one of this class.
    fn beside(&mut self, class: NumberType) -> NumberType {
        if self.options.mixed { self.class() } else { class }
    }

    fn ranges(&mut self) -> Vec<(i128, i128)> {
        let few = if self.below(8) == 0 { 40 } else { 5 };
        let mut ends: Vec<i128> = (0..2 * self.below(few)).map(|_| edge(self.random)).collect();
        ends.sort_unstable();
        let mut ranges: Vec<(i128, i128)> = Vec::new();
        for pair in ends.chunks_exact(2) {
            // A range that touches the one before would not be apart from it.
            if ranges.last().is_none_or(|last| last.1 < pair[0]) {
                let single = self.random.below(3) > 0;
                ranges.push((pair[0], if single { pair[0] } else { pair[1] }));
            }
        }
        ranges
    }

    /// An input of a kind.
    fn input(&mut self, is_wanted: impl Fn(InputKind) -> bool) -> Option<Input> {
        let first = self.below(self.inputs.len());
        let mut numbers = (0..self.inputs.len()).map(|number| (number + first) % self.inputs.len());
        numbers.find(|&number| is_wanted(self.inputs[number].kind)).map(|number| Input(number as u16))
    }

    fn number(&mut self, depth: usize, class: NumberType) -> Number {
        let inner = self.spend(depth);
        match class {
            NumberType::Real => self.real(depth, inner),
            NumberType::Integer if inner && self.options.arithmetic && self.coin() => self.computed(depth - 1),
            NumberType::Integer if inner && self.options.scaled && self.below(8) == 0 => self.scaled(depth - 1),
            NumberType::Integer => {
                let input = self.input(|kind| matches!(kind, InputKind::Integer { .. }));
                let constant = Number::Integer(edge(self.random));
                input.filter(|_| self.below(3) > 0).map_or(constant, Number::Input)
            }
        }
    }

    fn real(&mut self, depth: usize, inner: bool) -> Number {
        if inner && self.options.arithmetic && self.below(3) == 0 {
            let operations = [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply, Arithmetic::Divide];
            let operation = operations[self.below(if self.options.products { 4 } else { 2 })];
            let (one, beside) = (NumberType::Real, self.beside(NumberType::Real));
            let (left, right) = if self.coin() { (one, beside) } else { (beside, one) };
            let (left, right) = (self.number(depth - 1, left), self.number(depth - 1, right));
            return Number::Arithmetic { operation, left: Box::new(left), right: Box::new(right) };
        }
        let input = self.input(|kind| kind == InputKind::Real);
        let constant = Number::Real(real(self.random).into());
        input.filter(|_| self.coin()).map_or(constant, Number::Input)
    }

    fn integer(&mut self, depth: usize) -> Box<Number> {
        Box::new(self.number(depth, NumberType::Integer))
    }

    fn computed(&mut self, depth: usize) -> Number {
        use Arithmetic::{Add, Divide, Multiply, Remainder, Subtract};
        use Bitwise::{And, Or, ShiftLeft, ShiftRight, Xor};
        match self.below(8) {
            0 => Number::Truth(Box::new(self.test(depth))),
            1 => Number::Complement(self.integer(depth)),
            2 | 3 => {
                let operation = [And, Or, Xor, ShiftLeft, ShiftRight][self.below(5)];
                let shifts = matches!(operation, ShiftLeft | ShiftRight);
                let left = self.integer(depth);
                let right = if shifts && self.coin() {
                    Box::new(Number::Integer(self.below(66) as i128))
                } else {
                    self.integer(depth)
                };
                Number::Bits { operation, left, right }
            }
            _ => {
                let operation = [Add, Subtract, Multiply, Divide, Remainder];
                let operation = operation[self.below(if self.options.products { 5 } else { 2 })];
                Number::Arithmetic { operation, left: self.integer(depth), right: self.integer(depth) }
            }
        }
    }

    fn scaled(&mut self, depth: usize) -> Number {
        let mut factor = || match self.random.below(4) {
            0 => 1,
            1 => 1_000_000_000,
            2 => 1 + self.random.below(10) as u64,
            _ => self.random.any().max(1),
        };
        let (multiply, divide) = (factor(), factor());
        let add = if self.coin() { self.random.any() as i64 } else { self.below(5) as i64 - 2 };
        Number::Scaled { value: self.integer(depth), multiply, divide, add }
    }

    fn text(&mut self) -> TextExpression {
        let input = self.input(|kind| matches!(kind, InputKind::Text(_))).filter(|_| self.below(8) > 0);
        input.map_or_else(|| TextExpression::Literal(piece(self.random).into()), TextExpression::Input)
    }

    fn text_test(&mut self) -> Test {
        let text = self.text();
        if self.options.text_order && self.below(4) == 0 {
            return Test::CompareText { relation: self.relation(), left: text, right: self.text() };
        }
        Test::Matches { text, pattern: self.pattern() }
    }

    fn pattern(&mut self) -> Pattern {
        match self.below(8) {
            0 if self.options.regex => {
                let source = ["a+b", "^a*$", "b.a", "(?-u)\\xFF", "^[ab]{2,5}c?"][self.below(5)];
                Pattern::Regex(Regex::new(source).expect("it is a regular expression"))
            }
            1..=4 if self.options.globs => self.glob(),
            5 => Pattern::Prefix(piece(self.random).into()),
            _ => Pattern::Exactly(piece(self.random).into()),
        }
    }

    fn glob(&mut self) -> Pattern {
        let mut parts: Vec<Box<[u8]>> = vec![piece(self.random).into()];
        let middle = (0..self.below(4)).map(|_| piece(self.random));
        parts.extend(middle.filter(|part| !part.is_empty()).map(Box::from));
        parts.push(Box::from(piece(self.random)));
        let last = parts.len() - 1;
        for end in [0, last] {
            if self.coin() {
                parts[end] = Box::default();
            }
        }
        Pattern::Glob(parts)
    }
}
