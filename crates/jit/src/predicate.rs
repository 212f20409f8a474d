//! Predicates to Cranelift's intermediate form: labels are its blocks, and [`Assembler`] makes
//! jumps of a predicate, so that registers hold no truth values. A predicate without a machine code
//! form is refused before anything is written: see `refuse`.

mod integer;
mod number;
mod refuse;
mod text;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use std::convert::Infallible;

use cranelift_frontend::{FunctionBuilder, Variable};
use kymo_ir::Predicate;
use kymo_ir::predicate::{Assembler, Fact, Input, Number, Outcomes, Pattern, Relation, Test, TextExpression};

use integer::WideInteger;

use refuse::refuse_test;
pub(crate) use refuse::{SIZE_MAX, refuse, refuse_whole};

/// Where the inputs of a predicate come from: these write the code that gets them.
pub(crate) trait Operands {
    /// The known facts about each input.
    fn facts(&self) -> Vec<Fact>;
    /// Not 0 where the input is there; `None`: it always is. Not asked of inputs of which [`Fact::Missing`] is known.
    fn presence(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Option<Value>;
    /// Its value in 64 bits: an integer, or a double's bits. Asked for where it is there.
    fn number(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> Value;
    /// Its bytes. Asked for where it is there.
    fn text(&mut self, builder: &mut FunctionBuilder<'_>, input: Input) -> ByteSpan;
}

/// Bytes in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ByteSpan {
    /// So many; the address means nothing if there are none.
    Sized { address: Value, length: Value },
    /// Up to the first zero byte, or all of them.
    Ended { address: Value, capacity: u32 },
}

/// Where a predicate leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// If it is true.
    pub(crate) kept: Block,
    /// If it is not.
    pub(crate) dropped: Block,
    /// If a test decides that machine code does not say; without such a place, [`refuse`] must have been asked.
    pub(crate) undecided: Option<Block>,
}

/// Writes code that goes one of the ways. The block in which it begins is the current one; afterwards there is none. The
/// predicate must not be one that [`refuse_whole`] refuses.
pub(crate) fn branch(
    builder: &mut FunctionBuilder<'_>,
    predicate: &Predicate,
    operands: &mut impl Operands,
    ways: Ways,
) {
    let facts = operands.facts();
    let mut writer = PredicateWriter { builder, predicate, operands, facts, undecided: ways.undecided };
    let targets = Targets { on_true: ways.kept, on_false: ways.dropped, on_unknown: ways.dropped, next: ways.kept };
    let Ok(()) = writer.test(&predicate.root, targets);
}

/// Where a test leads. Cranelift puts blocks into an order of its own, so that none is next.
type Targets = kymo_ir::predicate::Targets<Block>;

struct PredicateWriter<'w, 'f, O> {
    builder: &'w mut FunctionBuilder<'f>,
    predicate: &'w Predicate,
    operands: &'w mut O,
    facts: Vec<Fact>,
    undecided: Option<Block>,
}

impl<O: Operands> Assembler for PredicateWriter<'_, '_, O> {
    type Label = Block;
    type Flag = Variable;
    type Integer = WideInteger;
    type Error = Infallible;

    fn outcomes(&self, test: &Test) -> Outcomes {
        self.predicate.may_be(test, &self.facts)
    }

    fn label(&mut self) -> Block {
        self.builder.create_block()
    }

    fn place(&mut self, label: Block) {
        self.builder.switch_to_block(label);
    }

    fn jump(&mut self, label: Block) {
        self.builder.ins().jump(label, &[]);
    }

    fn accepts(&mut self, test: &Test) -> Result<bool, Infallible> {
        let undecided = self.undecided.filter(|_| refuse_test(self.predicate, test).is_err());
        undecided.into_iter().for_each(|undecided| self.jump(undecided));
        Ok(undecided.is_none())
    }

    fn has(&mut self, input: Input, targets: Targets) -> Result<(), Infallible> {
        match self.operands.presence(self.builder, input) {
            None => self.jump(targets.on_true),
            Some(present) => self.branch(present, targets.on_true, targets.on_false),
        }
        Ok(())
    }

    fn compare_numbers(
        &mut self,
        _: &Test,
        relation: Relation,
        left: &Number,
        right: &Number,
        targets: Targets,
    ) -> Result<(), Infallible> {
        self.compare(relation, left, right, targets);
        Ok(())
    }

    fn among(&mut self, value: &Number, ranges: &[(i128, i128)], targets: Targets) -> Result<(), Infallible> {
        let value = self.whole(value, targets.on_unknown);
        self.search(value, (value.range.lowest, value.range.highest), ranges, targets);
        Ok(())
    }

    fn compare_texts(
        &mut self,
        _: &Test,
        relation: Relation,
        left: &TextExpression,
        right: &TextExpression,
        targets: Targets,
    ) -> Result<(), Infallible> {
        self.compare_text(relation, left, right, targets);
        Ok(())
    }

    fn match_text(
        &mut self,
        _: &Test,
        text: &TextExpression,
        pattern: &Pattern,
        targets: Targets,
    ) -> Result<(), Infallible> {
        self.matches(text, pattern, targets);
        Ok(())
    }

    fn new_flag(&mut self, _: &Test) -> Result<Variable, Infallible> {
        let flag = self.builder.declare_var(types::I8);
        self.define_flag(flag, 0);
        Ok(flag)
    }

    fn set_flag(&mut self, flag: Variable) {
        self.define_flag(flag, 1);
    }

    fn test_flag(&mut self, flag: Variable, targets: Targets) {
        let is_set = self.builder.use_var(flag);
        self.branch(is_set, targets.on_true, targets.on_false);
    }

    fn jump_if_less(&mut self, integer: WideInteger, _: (i128, i128), limit: i128, label: Block) {
        let limit = self.constant(limit as u64);
        let less = if integer.range.is_unsigned() { IntCC::UnsignedLessThan } else { IntCC::SignedLessThan };
        let is_less = self.builder.ins().icmp(less, integer.value, limit);
        self.leave_if(is_less, label);
    }

    fn within(&mut self, integer: WideInteger, _: (i128, i128), (lowest, highest): (i128, i128), targets: Targets) {
        let first = self.constant(lowest as u64);
        let holds = if lowest == highest {
            self.builder.ins().icmp(IntCC::Equal, integer.value, first)
        } else {
            // integer - lowest <= highest - lowest, unsigned, holds for both kinds of order.
            let distance = self.builder.ins().isub(integer.value, first);
            let width = self.constant((highest - lowest) as u64);
            self.builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, distance, width)
        };
        self.branch(holds, targets.on_true, targets.on_false);
    }
}

impl<O: Operands> PredicateWriter<'_, '_, O> {
    fn branch(&mut self, condition: Value, to: Block, otherwise: Block) {
        self.builder.ins().brif(condition, to, &[], otherwise, &[]);
    }

    fn define_flag(&mut self, flag: Variable, value: i64) {
        let value = self.builder.ins().iconst(types::I8, value);
        self.builder.def_var(flag, value);
    }

    /// Goes on only where the condition does not hold.
    fn leave_if(&mut self, condition: Value, to: Block) {
        let next = self.builder.create_block();
        self.branch(condition, to, next);
        self.builder.switch_to_block(next);
    }

    fn constant(&mut self, bits: u64) -> Value {
        self.builder.ins().iconst(types::I64, bits as i64)
    }

    /// Where the input is missing, goes to `unknown`.
    fn require(&mut self, input: Input, unknown: Block) {
        if let Some(present) = self.operands.presence(self.builder, input) {
            let next = self.builder.create_block();
            self.branch(present, next, unknown);
            self.builder.switch_to_block(next);
        }
    }
}

fn signed(relation: Relation) -> IntCC {
    match relation {
        Relation::Equal => IntCC::Equal,
        Relation::NotEqual => IntCC::NotEqual,
        Relation::Less => IntCC::SignedLessThan,
        Relation::LessOrEqual => IntCC::SignedLessThanOrEqual,
        Relation::Greater => IntCC::SignedGreaterThan,
        Relation::GreaterOrEqual => IntCC::SignedGreaterThanOrEqual,
    }
}

fn unsigned(relation: Relation) -> IntCC {
    signed(relation).unsigned()
}

/// The type of an integer of 1, 2, 4 or 8 bytes.
pub(crate) fn integer(bytes: usize) -> Type {
    match bytes {
        8 => types::I64,
        4 => types::I32,
        2 => types::I16,
        _ => types::I8,
    }
}

/// Bytes of an input, at any address, in little-endian order.
pub(crate) fn little() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_endianness(Endianness::Little)
}
