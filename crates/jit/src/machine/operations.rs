//! Arithmetic and comparisons of eBPF in Cranelift's intermediate form.
//!
//! Both numbers have the width of the operation. Cranelift's shifts are by a number modulo the width, too; its divisions end the
//! process where eBPF has results, so divisors that do so are replaced first.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use cranelift_frontend::FunctionBuilder;
use kymo_ir::machine::{AluOperation, JumpRelation, SwapOrder};

/// The type of numbers of an operation.
pub(super) fn width(is_wide: bool) -> Type {
    if is_wide { types::I64 } else { types::I32 }
}

pub(super) fn number(builder: &mut FunctionBuilder<'_>, width: Type, number: i64) -> Value {
    let number = if width == types::I64 { number } else { number & ((1 << width.bits()) - 1) };
    builder.ins().iconst(width, number)
}

/// The result of an operation; `divisor`: the second number, if it is a constant.
pub(super) fn calculated(
    builder: &mut FunctionBuilder<'_>,
    operation: AluOperation,
    [left, right]: [Value; 2],
    divisor: Option<i32>,
) -> Value {
    let divides = Division { left, right, divisor };
    match operation {
        AluOperation::Add => builder.ins().iadd(left, right),
        AluOperation::Subtract => builder.ins().isub(left, right),
        AluOperation::Multiply => builder.ins().imul(left, right),
        AluOperation::Or => builder.ins().bor(left, right),
        AluOperation::And => builder.ins().band(left, right),
        AluOperation::Xor => builder.ins().bxor(left, right),
        AluOperation::ShiftLeft => builder.ins().ishl(left, right),
        AluOperation::ShiftRight => builder.ins().ushr(left, right),
        AluOperation::ShiftRightSigned => builder.ins().sshr(left, right),
        AluOperation::Negate => builder.ins().ineg(left),
        AluOperation::Move => right,
        AluOperation::Divide => divides.unsigned(builder, false),
        AluOperation::Remainder => divides.unsigned(builder, true),
        AluOperation::DivideSigned => divides.signed(builder, false),
        AluOperation::RemainderSigned => divides.signed(builder, true),
    }
}

struct Division {
    left: Value,
    right: Value,
    divisor: Option<i32>,
}

impl Division {
    /// The divisor, or 1 where it is one of these numbers; and whether it is the first of them.
    fn safe(&self, builder: &mut FunctionBuilder<'_>, unsafe_numbers: &[i64]) -> (Value, Vec<Value>) {
        let width = builder.func.dfg.value_type(self.left);
        let one = number(builder, width, 1);
        let (mut divisor, mut found) = (self.right, Vec::new());
        for unsafe_number in unsafe_numbers {
            let unsafe_number = number(builder, width, *unsafe_number);
            let is_it = builder.ins().icmp(IntCC::Equal, self.right, unsafe_number);
            divisor = builder.ins().select(is_it, one, divisor);
            found.push(is_it);
        }
        (divisor, found)
    }

    fn unsigned(&self, builder: &mut FunctionBuilder<'_>, wants_remainder: bool) -> Value {
        let (left, width) = (self.left, builder.func.dfg.value_type(self.left));
        let divided = |builder: &mut FunctionBuilder<'_>, divisor| match wants_remainder {
            true => builder.ins().urem(left, divisor),
            false => builder.ins().udiv(left, divisor),
        };
        if self.divisor.is_some_and(|divisor| divisor != 0) {
            return divided(builder, self.right);
        }
        let (divisor, found) = self.safe(builder, &[0]);
        let result = divided(builder, divisor);
        let by_zero = if wants_remainder { left } else { number(builder, width, 0) };
        builder.ins().select(found[0], by_zero, result)
    }

    fn signed(&self, builder: &mut FunctionBuilder<'_>, wants_remainder: bool) -> Value {
        let (left, width) = (self.left, builder.func.dfg.value_type(self.left));
        let divided = |builder: &mut FunctionBuilder<'_>, divisor| match wants_remainder {
            true => builder.ins().srem(left, divisor),
            false => builder.ins().sdiv(left, divisor),
        };
        if self.divisor.is_some_and(|divisor| !matches!(divisor, 0 | -1)) {
            return divided(builder, self.right);
        }
        let (divisor, found) = self.safe(builder, &[0, -1]);
        let result = divided(builder, divisor);
        let zero = number(builder, width, 0);
        let (by_zero, by_one) = if wants_remainder { (left, zero) } else { (zero, builder.ins().ineg(left)) };
        let result = builder.ins().select(found[1], by_one, result);
        builder.ins().select(found[0], by_zero, result)
    }
}

/// Whether a relation holds.
pub(super) fn holds(builder: &mut FunctionBuilder<'_>, relation: JumpRelation, left: Value, right: Value) -> Value {
    let condition = match relation {
        JumpRelation::Equal => IntCC::Equal,
        JumpRelation::NotEqual => IntCC::NotEqual,
        JumpRelation::Above => IntCC::UnsignedGreaterThan,
        JumpRelation::AboveOrEqual => IntCC::UnsignedGreaterThanOrEqual,
        JumpRelation::Below => IntCC::UnsignedLessThan,
        JumpRelation::BelowOrEqual => IntCC::UnsignedLessThanOrEqual,
        JumpRelation::Greater => IntCC::SignedGreaterThan,
        JumpRelation::GreaterOrEqual => IntCC::SignedGreaterThanOrEqual,
        JumpRelation::Less => IntCC::SignedLessThan,
        JumpRelation::LessOrEqual => IntCC::SignedLessThanOrEqual,
        JumpRelation::Overlap => {
            let common = builder.ins().band(left, right);
            let width = builder.func.dfg.value_type(left);
            let zero = number(builder, width, 0);
            return builder.ins().icmp(IntCC::NotEqual, common, zero);
        }
    };
    builder.ins().icmp(condition, left, right)
}

/// The low bits of a number in an order of bytes, and zeros above.
pub(super) fn swapped(builder: &mut FunctionBuilder<'_>, value: Value, order: SwapOrder, bits: u8) -> Value {
    let width = match bits {
        16 => types::I16,
        32 => types::I32,
        _ => types::I64,
    };
    let low = if bits < 64 { builder.ins().ireduce(width, value) } else { value };
    let low = if order == SwapOrder::Little { low } else { builder.ins().bswap(low) };
    if bits < 64 { builder.ins().uextend(types::I64, low) } else { low }
}

/// The low bits as a signed number.
pub(super) fn sign_extended(builder: &mut FunctionBuilder<'_>, value: Value, bits: u8) -> Value {
    let width = match bits {
        8 => types::I8,
        16 => types::I16,
        _ => types::I32,
    };
    let low = builder.ins().ireduce(width, value);
    builder.ins().sextend(types::I64, low)
}

/// The integer with so many bytes.
pub(super) fn integer(bytes: u8) -> Type {
    match bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}
