//! Walks over the inputs of predicates.

use super::{Input, Number, Predicate, Test, TextExpression};

impl Test {
    /// Calls `visit` for every input, as often as it occurs, in the order of the text.
    pub fn each_input(&mut self, visit: &mut impl FnMut(&mut Input)) {
        match self {
            Self::Constant(_) => {}
            Self::Not(test) => test.each_input(visit),
            Self::All(tests) | Self::Any(tests) => tests.iter_mut().for_each(|test| test.each_input(visit)),
            Self::Has(input) => visit(input),
            Self::Compare { left, right, .. } => {
                left.each_input(visit);
                right.each_input(visit);
            }
            Self::Among { value, .. } => value.each_input(visit),
            Self::CompareText { left, right, .. } => {
                left.each_input(visit);
                right.each_input(visit);
            }
            Self::Matches { text, .. } => text.each_input(visit),
        }
    }
}

impl Number {
    /// Calls `visit` for every input, as often as it occurs, in the order of the text.
    pub fn each_input(&mut self, visit: &mut impl FnMut(&mut Input)) {
        match self {
            Self::Integer(_) | Self::Real(_) => {}
            Self::Input(input) => visit(input),
            Self::Truth(test) => test.each_input(visit),
            Self::Arithmetic { left, right, .. } | Self::Bits { left, right, .. } => {
                left.each_input(visit);
                right.each_input(visit);
            }
            Self::Complement(value) | Self::Scaled { value, .. } => value.each_input(visit),
        }
    }
}

impl TextExpression {
    fn each_input(&mut self, visit: &mut impl FnMut(&mut Input)) {
        if let Self::Input(input) = self {
            visit(input);
        }
    }
}

impl Predicate {
    /// The same predicate with only the inputs that it asks for, and which of them those are.
    #[must_use]
    pub fn part_of_root(&self) -> (Self, Vec<Input>) {
        self.part(self.root.clone())
    }

    /// A test over some of these inputs as a predicate over those alone, and which they are.
    #[must_use]
    pub fn part(&self, mut test: Test) -> (Self, Vec<Input>) {
        let mut used = Vec::new();
        let mut places = vec![None; self.inputs.len()];
        test.each_input(&mut |input| {
            let place = &mut places[usize::from(input.0)];
            let number = *place.get_or_insert_with(|| {
                used.push(*input);
                used.len() as u16 - 1
            });
            *input = Input(number);
        });
        let inputs = used.iter().map(|input| self.inputs[usize::from(input.0)].clone()).collect();
        (Self { inputs, root: test }, used)
    }
}
