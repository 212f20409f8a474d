//! Inputs of predicates in the registers of a read program.

use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::{FunctionBuilder, Variable};
use kymo_ir::Reg;
use kymo_ir::predicate::{Bound, Input, Operand};

use crate::predicate::{Operands, Presence, Span};

/// Registers, and which inputs they hold.
pub(crate) struct Registers<'p> {
    pub(crate) registers: &'p [Variable],
    /// Address of the packet's first byte, if it were in memory.
    pub(crate) base: Value,
    pub(crate) bound: &'p Bound,
}

impl Registers<'_> {
    fn register(&self, builder: &mut FunctionBuilder<'_>, register: Reg) -> Value {
        builder.use_var(self.registers[usize::from(register.0)])
    }

    fn operand(&self, input: Input) -> Operand {
        self.bound.operands[usize::from(input.0)]
    }
}

impl Operands for Registers<'_> {
    fn presence(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Presence {
        let (Operand::Number { present, .. } | Operand::Text { present, .. }) = self.operand(input);
        present.map_or(Presence::Always, |present| Presence::If(self.register(builder, present)))
    }

    fn number(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Value {
        let (Operand::Number { value, .. } | Operand::Text { start: value, .. }) = self.operand(input);
        self.register(builder, value)
    }

    fn text(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Span {
        match self.operand(input) {
            Operand::Text { start, length, .. } => {
                let start = self.register(builder, start);
                // Text that is there on some paths alone begins anywhere on the others, but is empty, and never read.
                let address = builder.ins().iadd(self.base, start);
                Span::Sized { address, length: self.register(builder, length) }
            }
            Operand::Number { .. } => unreachable!("the verifier lets text be in two registers alone"),
        }
    }
}
