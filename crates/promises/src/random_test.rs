//! Random programs that drop records, most of which the verifier lets through.

use std::sync::Arc;

use kymo_ir::predicate::InputKind;
use kymo_ir::{BoundInputs, Encoding, InputOperand, NumberSource, Op, ReadProgram, Reg};
use kymo_random::predicates::{PredicateOptions, predicate};

use crate::random::RandomNumbers;
use crate::random_program::random_program;
use crate::stripped::bare;

/// A program that reads the fields of a body, and asks once or twice whether to go on.
pub(crate) fn random_test(random: &mut RandomNumbers) -> ReadProgram {
    let mut program = bare(&random_program(random, false));
    for _ in 0..1 + random.below(2) {
        let options = if random.below(4) == 0 { PredicateOptions::ALL } else { PredicateOptions::PLAIN };
        let (mut predicate, _) = predicate(random, &options);
        for input in &mut predicate.inputs {
            // Registers hold anything.
            if let InputKind::Integer { bits, .. } = &mut input.kind {
                *bits = 64;
            }
        }
        let reads = 1 + random.below(program.body.len());
        let text = spans(&program.body[..reads]).collect();
        let mut ask = Ask { random, program: &mut program, text, before: Vec::new() };
        ask.derive();
        let inputs = predicate.inputs.iter().map(|input| (input.kind, input.optional));
        let operands = inputs.map(|(kind, optional)| ask.operand(kind, optional)).collect();
        let Ask { before, .. } = ask;
        let keep = Op::Keep { predicate: program.predicates.len() as u16 };
        program.predicates.push(BoundInputs { predicate: Arc::new(predicate), operands });
        program.body.splice(reads..reads, before.into_iter().chain([keep]));
    }
    program
}

/// Registers that hold bytes, as far as the outermost block shows.
fn spans(block: &[Op]) -> impl Iterator<Item = (Reg, Reg)> {
    block.iter().filter_map(|op| match *op {
        Op::Text { start, length, .. } | Op::Bytes { start, length: NumberSource::Register(length) } => {
            Some((start, length))
        }
        _ => None,
    })
}

struct Ask<'a> {
    random: &'a mut RandomNumbers,
    program: &'a mut ReadProgram,
    text: Vec<(Reg, Reg)>,
    /// The operations before the question.
    before: Vec<Op>,
}

impl Ask<'_> {
    fn register(&mut self) -> Reg {
        Reg(self.random.below(usize::from(self.program.registers)) as u16)
    }

    /// Adds operations that only programs like this one need.
    fn derive(&mut self) {
        let (to, from) = (self.register(), self.register());
        match self.random.below(4) {
            0 => self.before.push(Op::Cycles { to }),
            1 => self.before.push(Op::Double { to, from, width: 16 << self.random.below(3) }),
            _ => {}
        }
    }

    fn operand(&mut self, kind: InputKind, optional: bool) -> InputOperand {
        let present = optional.then(|| self.register());
        match kind {
            InputKind::Text(encoding) => {
                let (start, length) = self.span(encoding);
                InputOperand::Text { start, length, present }
            }
            InputKind::Real | InputKind::Integer { .. } => InputOperand::Number { value: self.register(), present },
        }
    }

    /// Bytes that are there, mostly ones that are read for this.
    fn span(&mut self, encoding: Encoding) -> (Reg, Reg) {
        if let Some(&span) = self.text.get(self.random.below(2 * self.text.len())) {
            return span;
        }
        let (start, length) = (Reg(self.program.registers), Reg(self.program.registers + 1));
        self.program.registers += 2;
        let unit = if encoding == Encoding::Utf8 { 1 } else { 2 };
        self.before.push(Op::Align { log2: 3 });
        let count = self.random.below(4) as u64;
        self.before.push(match self.random.below(3) {
            0 => Op::Text { start, length, unit },
            _ => Op::Bytes { start, length: NumberSource::Constant(count) },
        });
        self.before.extend(
            matches!(self.before.last(), Some(Op::Bytes { .. })).then_some(Op::Set { to: length, value: count }),
        );
        (start, length)
    }
}
