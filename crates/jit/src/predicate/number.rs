//! Numbers: integers in 64 bits, checked only where their ranges do not show that the result can be held; reals in a
//! register of their own.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use kymo_ir::predicate::{Arithmetic, Assembler, Bitwise, InputKind, Number, Relation, Test, ValueRange};

use super::integer::WideInteger;
use super::refuse::factors;
use super::{Operands, PredicateWriter, Targets};

/// A number that is known.
#[derive(Clone, Copy)]
pub(super) enum HeldNumber {
    Integer(WideInteger),
    /// A double.
    Real(Value),
}

impl<O: Operands> PredicateWriter<'_, '_, O> {
    pub(super) fn compare(&mut self, relation: Relation, left: &Number, right: &Number, targets: Targets) {
        match (self.number(left, targets.on_unknown), self.number(right, targets.on_unknown)) {
            (HeldNumber::Integer(left), HeldNumber::Integer(right)) => {
                self.compare_integers(relation, left, right, targets);
            }
            (left, right) => {
                let (left, right) = (self.real(left), self.real(right));
                // A NaN is neither less nor greater, and differs.
                let condition = match relation {
                    Relation::Equal => FloatCC::Equal,
                    Relation::NotEqual => FloatCC::NotEqual,
                    Relation::Less => FloatCC::LessThan,
                    Relation::LessOrEqual => FloatCC::LessThanOrEqual,
                    Relation::Greater => FloatCC::GreaterThan,
                    Relation::GreaterOrEqual => FloatCC::GreaterThanOrEqual,
                };
                let holds = self.builder.ins().fcmp(condition, left, right);
                self.branch(holds, targets.on_true, targets.on_false);
            }
        }
    }

    /// The value; where it is unknown, goes to `unknown`.
    pub(super) fn number(&mut self, number: &Number, unknown: Block) -> HeldNumber {
        match number {
            Number::Integer(value) => {
                let range = ValueRange::single(*value);
                HeldNumber::Integer(WideInteger { value: self.constant(*value as u64), range })
            }
            Number::Real(value) => HeldNumber::Real(self.double(value.value())),
            Number::Input(input) => {
                self.require(*input, unknown);
                let value = self.operands.number(self.builder, *input);
                if self.predicate.kind(*input) == InputKind::Real {
                    return HeldNumber::Real(self.builder.ins().bitcast(types::F64, MemFlagsData::new(), value));
                }
                self.integer(number, value)
            }
            Number::Truth(test) => {
                let value = self.truth(test, unknown);
                self.integer(number, value)
            }
            Number::Arithmetic { operation, left, right } => {
                match (self.number(left, unknown), self.number(right, unknown)) {
                    (HeldNumber::Integer(left), HeldNumber::Integer(right)) => {
                        let exact = self.predicate.exact_range(number);
                        let value = self.arithmetic(*operation, left, right, exact, unknown);
                        self.integer(number, value)
                    }
                    (left, right) => {
                        let (left, right) = (self.real(left), self.real(right));
                        HeldNumber::Real(self.reals(*operation, left, right))
                    }
                }
            }
            Number::Bits { operation, left, right } => {
                let (left, right) = (self.whole(left, unknown), self.whole(right, unknown));
                let value = self.bits(*operation, left.value, right, unknown);
                self.integer(number, value)
            }
            Number::Complement(value) => {
                let of = self.whole(value, unknown);
                let value = self.builder.ins().bnot(of.value);
                self.integer(number, value)
            }
            Number::Scaled { value, multiply, divide, add } => {
                let of = self.whole(value, unknown);
                let exact = self.predicate.exact_range(number);
                let value = self.scaled(of, factors(*multiply, *divide), *add, exact, unknown);
                self.integer(number, value)
            }
        }
    }

    /// A number that the verifier let be an integer alone.
    pub(super) fn whole(&mut self, number: &Number, unknown: Block) -> WideInteger {
        match self.number(number, unknown) {
            HeldNumber::Integer(integer) => integer,
            HeldNumber::Real(_) => unreachable!("the verifier refuses reals here"),
        }
    }

    fn integer(&mut self, number: &Number, value: Value) -> HeldNumber {
        HeldNumber::Integer(WideInteger { value, range: self.predicate.range(number) })
    }

    fn truth(&mut self, test: &Test, unknown: Block) -> Value {
        let (is_true, is_false, behind) =
            (self.builder.create_block(), self.builder.create_block(), self.builder.create_block());
        let value = self.builder.append_block_param(behind, types::I64);
        let Ok(()) =
            self.test(test, Targets { on_true: is_true, on_false: is_false, on_unknown: unknown, next: is_true });
        for (block, value) in [(is_true, 1), (is_false, 0)] {
            self.builder.switch_to_block(block);
            let value = self.constant(value);
            self.builder.ins().jump(behind, &[value.into()]);
        }
        self.builder.switch_to_block(behind);
        value
    }

    fn double(&mut self, value: f64) -> Value {
        let bits = self.constant(value.to_bits());
        self.builder.ins().bitcast(types::F64, MemFlagsData::new(), bits)
    }

    fn real(&mut self, number: HeldNumber) -> Value {
        match number {
            HeldNumber::Real(value) => value,
            HeldNumber::Integer(of) if of.fits_signed() => self.builder.ins().fcvt_from_sint(types::F64, of.value),
            HeldNumber::Integer(of) => self.builder.ins().fcvt_from_uint(types::F64, of.value),
        }
    }

    fn reals(&mut self, operation: Arithmetic, left: Value, right: Value) -> Value {
        match operation {
            Arithmetic::Add => self.builder.ins().fadd(left, right),
            Arithmetic::Subtract => self.builder.ins().fsub(left, right),
            Arithmetic::Multiply => self.builder.ins().fmul(left, right),
            Arithmetic::Divide => self.builder.ins().fdiv(left, right),
            Arithmetic::Remainder => unreachable!("remainders are of integers"),
        }
    }

    fn bits(&mut self, operation: Bitwise, left: Value, right: WideInteger, unknown: Block) -> Value {
        let is_shift = matches!(operation, Bitwise::ShiftLeft | Bitwise::ShiftRight);
        if is_shift && !(right.range.lowest >= 0 && right.range.highest < 64) {
            // As bits, a negative count is far too high, as it must be.
            let too_far = self.builder.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, right.value, 63);
            self.leave_if(too_far, unknown);
        }
        match operation {
            Bitwise::And => self.builder.ins().band(left, right.value),
            Bitwise::Or => self.builder.ins().bor(left, right.value),
            Bitwise::Xor => self.builder.ins().bxor(left, right.value),
            Bitwise::ShiftLeft => self.builder.ins().ishl(left, right.value),
            Bitwise::ShiftRight => self.builder.ins().ushr(left, right.value),
        }
    }

    /// The low 64 bits of the exact result; where that cannot be held, goes to `unknown`.
    fn arithmetic(
        &mut self,
        operation: Arithmetic,
        left: WideInteger,
        right: WideInteger,
        exact: ValueRange,
        unknown: Block,
    ) -> Value {
        if matches!(operation, Arithmetic::Divide | Arithmetic::Remainder) {
            return self.divided(operation, left, right, exact, unknown);
        }
        if exact.is_held() {
            return match operation {
                Arithmetic::Add => self.builder.ins().iadd(left.value, right.value),
                Arithmetic::Subtract => self.builder.ins().isub(left.value, right.value),
                _ => self.builder.ins().imul(left.value, right.value),
            };
        }
        let are_unsigned = left.range.is_unsigned() && right.range.is_unsigned();
        let (one, other) = (left.value, right.value);
        if operation == Arithmetic::Multiply && are_unsigned {
            let high = self.builder.ins().umulhi(one, other);
            self.leave_if(high, unknown);
            return self.builder.ins().imul(one, other);
        }
        if operation == Arithmetic::Add && are_unsigned {
            let sum = self.builder.ins().iadd(one, other);
            // A sum that wrapped is less than each of its addends.
            let wrapped = self.builder.ins().icmp(IntCC::UnsignedLessThan, sum, one);
            self.leave_if(wrapped, unknown);
            return sum;
        }
        let (one, other) = (self.wide(left), self.wide(right));
        let result = match operation {
            Arithmetic::Add => self.builder.ins().iadd(one, other),
            Arithmetic::Subtract => self.builder.ins().isub(one, other),
            _ => self.builder.ins().imul(one, other),
        };
        self.fitting(result, exact, unknown)
    }

    /// In 128 bits. A product fits unless both are above 2^63, which is looked after elsewhere.
    fn wide(&mut self, of: WideInteger) -> Value {
        if of.range.is_unsigned() {
            self.builder.ins().uextend(types::I128, of.value)
        } else {
            self.builder.ins().sextend(types::I128, of.value)
        }
    }

    /// The low 64 bits of 128, if a result of this exact range is held in them.
    fn fitting(&mut self, value: Value, exact: ValueRange, unknown: Block) -> Value {
        let (low, high) = self.builder.ins().isplit(value);
        if exact.is_unsigned() {
            self.leave_if(high, unknown);
        } else {
            let sign = self.builder.ins().sshr_imm_u(low, 63);
            let differs = self.builder.ins().icmp(IntCC::NotEqual, sign, high);
            self.leave_if(differs, unknown);
        }
        low
    }

    /// Quotients and remainders toward zero: of magnitudes, and then the sign.
    fn divided(
        &mut self,
        operation: Arithmetic,
        left: WideInteger,
        right: WideInteger,
        exact: ValueRange,
        unknown: Block,
    ) -> Value {
        if right.range.lowest <= 0 && right.range.highest >= 0 {
            let is_zero = self.builder.ins().icmp_imm_u(IntCC::Equal, right.value, 0);
            self.leave_if(is_zero, unknown);
        }
        let (dividend, minus) = self.magnitude(left);
        let (divisor, other_minus) = self.magnitude(right);
        if operation == Arithmetic::Remainder {
            let rest = self.builder.ins().urem(dividend, divisor);
            return minus.map_or(rest, |minus| self.with_sign(rest, minus));
        }
        let quotient = self.builder.ins().udiv(dividend, divisor);
        let minus = match (minus, other_minus) {
            (Some(one), Some(other)) => Some(self.builder.ins().bxor(one, other)),
            (one, other) => one.or(other),
        };
        let Some(minus) = minus else { return quotient };
        let value = self.with_sign(quotient, minus);
        // A result of the wrong sign is one that does not fit; 0 has both signs.
        if !exact.is_held() {
            let wrong = self.builder.ins().bxor(value, minus);
            let wrong = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, wrong, 0);
            let is_something = self.builder.ins().icmp_imm_u(IntCC::NotEqual, quotient, 0);
            let wrong = self.builder.ins().band(wrong, is_something);
            self.leave_if(wrong, unknown);
        }
        value
    }

    /// The magnitude, and all bits set if it is negative; `None`: it never is.
    fn magnitude(&mut self, of: WideInteger) -> (Value, Option<Value>) {
        if of.range.is_unsigned() {
            return (of.value, None);
        }
        let minus = self.builder.ins().sshr_imm_u(of.value, 63);
        (self.with_sign(of.value, minus), Some(minus))
    }

    /// The negative number where all bits of `minus` are set, the same where none is.
    fn with_sign(&mut self, value: Value, minus: Value) -> Value {
        let flipped = self.builder.ins().bxor(value, minus);
        self.builder.ins().isub(flipped, minus)
    }

    /// `floor(value * multiply / divide) + add`; the rest times `multiply` fits in 64 bits, or it would be refused.
    fn scaled(
        &mut self,
        of: WideInteger,
        (multiply, divide): (u64, u64),
        add: i64,
        exact: ValueRange,
        unknown: Block,
    ) -> Value {
        if (multiply, divide) == (1, 1) {
            let add = WideInteger { value: self.constant(add as u64), range: ValueRange::single(i128::from(add)) };
            return self.arithmetic(Arithmetic::Add, of, add, exact, unknown);
        }
        let (whole, part) = self.quotient(of, divide);
        let factor = self.constant(multiply);
        let part = part.map(|rest| {
            let product = self.builder.ins().imul(rest, factor);
            let divisor = self.constant(divide);
            self.builder.ins().udiv(product, divisor)
        });
        let add = self.constant(add as u64);
        if exact.is_held() {
            let mut value = self.builder.ins().imul(whole, factor);
            if let Some(part) = part {
                value = self.builder.ins().iadd(value, part);
            }
            return self.builder.ins().iadd(value, add);
        }
        let mut value = self.product(whole, of.range.is_unsigned(), factor, unknown);
        if let Some(part) = part {
            let part = self.builder.ins().uextend(types::I128, part);
            value = self.builder.ins().iadd(value, part);
        }
        let add = self.builder.ins().sextend(types::I128, add);
        let value = self.builder.ins().iadd(value, add);
        self.fitting(value, exact, unknown)
    }

    /// The quotient rounded down, and the rest if there may be one.
    fn quotient(&mut self, of: WideInteger, divide: u64) -> (Value, Option<Value>) {
        if divide == 1 {
            return (of.value, None);
        }
        let divisor = self.constant(divide);
        let quotient = if of.range.is_unsigned() {
            self.builder.ins().udiv(of.value, divisor)
        } else {
            // floor(v / d) = -1 - floor((-1 - v) / d), and -1 - v is v with all its bits the other way.
            let minus = self.builder.ins().sshr_imm_u(of.value, 63);
            let flipped = self.builder.ins().bxor(of.value, minus);
            let quotient = self.builder.ins().udiv(flipped, divisor);
            self.builder.ins().bxor(quotient, minus)
        };
        let whole = self.builder.ins().imul(quotient, divisor);
        (quotient, Some(self.builder.ins().isub(of.value, whole)))
    }

    /// In 128 bits; where it is so high that nothing added to it could be held, goes to `unknown`.
    fn product(&mut self, whole: Value, is_unsigned: bool, factor: Value, unknown: Block) -> Value {
        if !is_unsigned {
            let whole = self.builder.ins().sextend(types::I128, whole);
            let factor = self.builder.ins().uextend(types::I128, factor);
            return self.builder.ins().imul(whole, factor);
        }
        let high = self.builder.ins().umulhi(whole, factor);
        let too_high = self.builder.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, high, 1);
        self.leave_if(too_high, unknown);
        let low = self.builder.ins().imul(whole, factor);
        self.builder.ins().iconcat(low, high)
    }
}
