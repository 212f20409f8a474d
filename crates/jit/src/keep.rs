//! Programs that ask whether to keep a record: predicates over registers.
//!
//! A test that machine code does not cover is stuck: the evaluator reads that record.

use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use kymo_ir::predicate::{Fact, Input};
use kymo_ir::{BoundInputs, InputOperand, Reg};

use crate::predicate::{self, ByteSpan, Operands, Ways};
use crate::translate::Translator;

impl Translator<'_, '_> {
    /// A real's bits as a double's; those of 16 bits are left to the evaluator.
    pub(crate) fn double(&mut self, to: u16, from: u16, width: u8) -> Option<()> {
        let mut value = self.register(from);
        if width == 32 {
            let bits = self.builder.ins().ireduce(types::I32, value);
            let single = self.builder.ins().bitcast(types::F32, MemFlagsData::new(), bits);
            let double = self.builder.ins().fpromote(types::F64, single);
            value = self.builder.ins().bitcast(types::I64, MemFlagsData::new(), double);
        }
        self.builder.def_var(self.registers[usize::from(to)], value);
        (width >= 32).then_some(())
    }

    /// Goes on only where the predicate is true.
    pub(crate) fn keep(&mut self, predicate: usize) -> Option<()> {
        let (dropped, bound) = (self.dropped?, &self.predicates[predicate]);
        self.asked += predicate::refuse_whole(&bound.predicate).ok()?;
        if self.asked > predicate::SIZE_MAX {
            return None;
        }
        let next = self.builder.create_block();
        let mut registers = InputRegisters { registers: &self.registers, base: self.base, bound };
        let ways = Ways { kept: next, dropped, undecided: Some(self.stuck) };
        predicate::branch(self.builder, &bound.predicate, &mut registers, ways);
        self.builder.switch_to_block(next);
        Some(())
    }
}

/// Registers, and which inputs they hold.
pub(crate) struct InputRegisters<'p> {
    pub(crate) registers: &'p [Variable],
    /// Address of the packet's first byte, if it were in memory.
    pub(crate) base: Value,
    pub(crate) bound: &'p BoundInputs,
}

impl InputRegisters<'_> {
    fn register(&self, builder: &mut FunctionBuilder<'_>, register: Reg) -> Value {
        builder.use_var(self.registers[usize::from(register.0)])
    }

    fn operand(&self, input: Input) -> InputOperand {
        self.bound.operands[usize::from(input.0)]
    }
}

impl Operands for InputRegisters<'_> {
    fn facts(&self) -> Vec<Fact> {
        let fact = |operand: &InputOperand| if present(*operand).is_some() { Fact::Anything } else { Fact::Present };
        self.bound.operands.iter().map(fact).collect()
    }

    fn presence(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Option<Value> {
        present(self.operand(input)).map(|present| self.register(builder, present))
    }

    fn number(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Value {
        let (InputOperand::Number { value, .. } | InputOperand::Text { start: value, .. }) = self.operand(input);
        self.register(builder, value)
    }

    fn text(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> ByteSpan {
        match self.operand(input) {
            InputOperand::Text { start, length, .. } => {
                let start = self.register(builder, start);
                // Text that is there on some paths alone begins anywhere on the others, but is empty, and never read.
                let address = builder.ins().iadd(self.base, start);
                ByteSpan::Sized { address, length: self.register(builder, length) }
            }
            InputOperand::Number { .. } => unreachable!("the verifier lets text be in two registers alone"),
        }
    }
}

/// The register that is not 0 where an input is there, unless it always is.
fn present(operand: InputOperand) -> Option<Reg> {
    let (InputOperand::Number { present, .. } | InputOperand::Text { present, .. }) = operand;
    present
}
