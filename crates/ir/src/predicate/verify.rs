//! The limits of a predicate, so that evaluating it takes bounded time and stack: depth, size,
//! types.

use super::{Input, InputKind, Number, Pattern, Predicate, Test, TextExpression};

/// Tests and numbers inside each other, at most.
pub const DEPTH_MAX: usize = 256;
/// Tests, numbers and ranges of a predicate, at most.
pub const NODES_MAX: usize = 1 << 16;

/// Why a predicate is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PredicateError {
    /// Too deep.
    #[error("the predicate is nested more than {DEPTH_MAX} deep")]
    Depth,
    /// Too large.
    #[error("the predicate has more than {NODES_MAX} parts")]
    Nodes,
    /// An input that is not there.
    #[error("there is no input {0}")]
    Input(u16),
    /// A number where there is text, or the other way around; a real where integers alone are taken.
    #[error("an operand is not of the type that its operation takes")]
    Kind,
    /// An integer that 64 bits do not hold; ranges out of order; a scale with 0; a pattern without parts.
    #[error("a constant is not one that its operation takes")]
    Constant,
}

impl Predicate {
    /// Checks it.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn verify(&self) -> Result<(), PredicateError> {
        if self.inputs.len() > usize::from(u16::MAX) {
            return Err(PredicateError::Nodes);
        }
        let bits_are_fine = |kind| !matches!(kind, InputKind::Integer { bits, .. } if bits == 0 || bits > 64);
        if !self.inputs.iter().all(|input| bits_are_fine(input.kind)) {
            return Err(PredicateError::Constant);
        }
        PredicateVerifier { predicate: self, nodes: 0 }.test(&self.root, 0)
    }
}

struct PredicateVerifier<'p> {
    predicate: &'p Predicate,
    nodes: usize,
}

impl PredicateVerifier<'_> {
    fn enter(&mut self, depth: usize, nodes: usize) -> Result<(), PredicateError> {
        self.nodes += nodes;
        if depth > DEPTH_MAX {
            return Err(PredicateError::Depth);
        }
        if self.nodes > NODES_MAX { Err(PredicateError::Nodes) } else { Ok(()) }
    }

    fn test(&mut self, test: &Test, depth: usize) -> Result<(), PredicateError> {
        self.enter(depth, 1)?;
        match test {
            Test::Constant(_) => Ok(()),
            Test::Not(test) => self.test(test, depth + 1),
            Test::All(tests) | Test::Any(tests) => tests.iter().try_for_each(|test| self.test(test, depth + 1)),
            Test::Has(input) => self.kind(*input).map(drop),
            Test::Compare { left, right, .. } => {
                self.number(left, depth + 1)?;
                self.number(right, depth + 1)?;
                Ok(())
            }
            Test::Among { value, ranges } => {
                self.enter(depth, ranges.len())?;
                let is_sound = ranges.iter().all(|(lowest, highest)| lowest <= highest)
                    && ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
                if !is_sound {
                    return Err(PredicateError::Constant);
                }
                self.integer(value, depth + 1)
            }
            Test::CompareText { left, right, .. } => {
                self.text(left)?;
                self.text(right)
            }
            Test::Matches { text, pattern } => {
                self.text(text)?;
                self.pattern(pattern, depth)
            }
        }
    }

    fn pattern(&mut self, pattern: &Pattern, depth: usize) -> Result<(), PredicateError> {
        let Pattern::Glob(parts) = pattern else { return Ok(()) };
        self.enter(depth, parts.len())?;
        let inner = parts.get(1..parts.len().saturating_sub(1)).unwrap_or_default();
        if parts.len() < 2 || inner.iter().any(|part| part.is_empty()) {
            return Err(PredicateError::Constant);
        }
        Ok(())
    }

    fn kind(&self, input: Input) -> Result<InputKind, PredicateError> {
        let class = self.predicate.inputs.get(usize::from(input.0));
        class.map(|class| class.kind).ok_or(PredicateError::Input(input.0))
    }

    fn text(&self, text: &TextExpression) -> Result<(), PredicateError> {
        let TextExpression::Input(input) = text else { return Ok(()) };
        if matches!(self.kind(*input)?, InputKind::Text(_)) { Ok(()) } else { Err(PredicateError::Kind) }
    }

    fn integer(&mut self, number: &Number, depth: usize) -> Result<(), PredicateError> {
        self.number(number, depth)?;
        if self.predicate.is_real(number) { Err(PredicateError::Kind) } else { Ok(()) }
    }

    fn number(&mut self, number: &Number, depth: usize) -> Result<(), PredicateError> {
        self.enter(depth, 1)?;
        match number {
            Number::Integer(value) => {
                let is_held = (super::INTEGER_LOWEST..=super::INTEGER_HIGHEST).contains(value);
                if is_held { Ok(()) } else { Err(PredicateError::Constant) }
            }
            Number::Real(_) => Ok(()),
            Number::Input(input) => match self.kind(*input)? {
                InputKind::Text(_) => Err(PredicateError::Kind),
                InputKind::Integer { .. } | InputKind::Real => Ok(()),
            },
            Number::Truth(test) => self.test(test, depth + 1),
            Number::Arithmetic { operation: super::Arithmetic::Remainder, left, right }
            | Number::Bits { left, right, .. } => {
                self.integer(left, depth + 1)?;
                self.integer(right, depth + 1)
            }
            Number::Arithmetic { left, right, .. } => {
                self.number(left, depth + 1)?;
                self.number(right, depth + 1)
            }
            Number::Complement(value) => self.integer(value, depth + 1),
            Number::Scaled { value, multiply, divide, .. } => {
                if *multiply == 0 || *divide == 0 {
                    return Err(PredicateError::Constant);
                }
                self.integer(value, depth + 1)
            }
        }
    }
}
