//! Exact arithmetic of integers: a result that cannot be held jumps to unknown.
//!
//! Mostly the ranges of the operands prove that nothing can happen, and it is one instruction. Else, with a constant it is
//! a question of the operand alone:
//!
//! ```text
//! x + 5 is held            x <= 2^64 - 6
//! x * 1000 / 3 is held     x <= the highest x for which it is; found by trying, as it never falls where x rises
//! ```
//!
//! Sums of two variables are computed in 128 bits. Products and quotients are computed from magnitudes, and get
//! their sign afterwards, because eBPF divides unsigned numbers only.

use kymo_ir::predicate::{Arithmetic, INTEGER_HIGHEST, INTEGER_LOWEST, Number, Refusal, Relation, ValueRange};

use super::assembly::BpfLabel;
use super::instruction::{BpfOperand, BpfRegister, JumpCondition, Operation};
use super::{ANSWER, BpfCompiler, SCRATCH};

/// An operation of two registers, and their known facts.
struct Pair {
    left: BpfRegister,
    right: BpfRegister,
    of_left: ValueRange,
    of_right: ValueRange,
    /// The range of exact results.
    exact: ValueRange,
    unknown: BpfLabel,
}

impl BpfCompiler<'_> {
    pub(super) fn arithmetic(
        &mut self,
        number: &Number,
        operation: Arithmetic,
        (left, right): (&Number, &Number),
        depth: u8,
        unknown: BpfLabel,
    ) -> Result<(), Refusal> {
        let exact = self.predicate.exact_range(number);
        let divides = matches!(operation, Arithmetic::Divide | Arithmetic::Remainder);
        match (left, right) {
            (_, Number::Integer(constant)) if !divides => {
                self.number(left, depth, unknown)?;
                return self.with_constant(number, operation, (left, *constant), depth, unknown);
            }
            (Number::Integer(constant), _) if matches!(operation, Arithmetic::Add | Arithmetic::Multiply) => {
                self.number(right, depth, unknown)?;
                return self.with_constant(number, operation, (right, *constant), depth, unknown);
            }
            _ => {}
        }
        let (of_left, of_right) = (self.predicate.range(left), self.predicate.range(right));
        let (left, operand) = self.pair(left, right, unknown, depth)?;
        let right = match operand {
            BpfOperand::Register(right) => right,
            BpfOperand::Constant(_) => {
                let register = self.register(number, depth + 1)?;
                self.code.operation(Operation::Move, register, operand);
                register
            }
        };
        let pair = Pair { left, right, of_left, of_right, exact, unknown };
        match operation {
            Arithmetic::Add => self.sum(&pair, Operation::Add),
            Arithmetic::Subtract => self.sum(&pair, Operation::Subtract),
            Arithmetic::Multiply if exact.is_held() => {
                self.code.operation(Operation::Multiply, left, BpfOperand::Register(right));
            }
            Arithmetic::Multiply => self.by_magnitudes(&pair, Operation::Multiply),
            Arithmetic::Divide => self.by_magnitudes(&pair, Operation::Divide),
            Arithmetic::Remainder => self.by_magnitudes(&pair, Operation::Remainder),
        }
        let to = self.register(number, depth)?;
        self.code.copy(to, left);
        Ok(())
    }

    /// The value is in its register already.
    fn with_constant(
        &mut self,
        number: &Number,
        operation: Arithmetic,
        (value, constant): (&Number, i128),
        depth: u8,
        unknown: BpfLabel,
    ) -> Result<(), Refusal> {
        let to = self.register(number, depth)?;
        let exact = self.predicate.exact_range(number);
        if !exact.is_held() {
            let limits = limits(exact);
            let allowed = match operation {
                Arithmetic::Add => (limits.lowest - constant, limits.highest - constant),
                Arithmetic::Subtract => (limits.lowest + constant, limits.highest + constant),
                // The result is not held for some value, so the constant is not 0.
                _ if constant > 0 => (-(-limits.lowest).div_euclid(constant), limits.highest.div_euclid(constant)),
                _ => (-limits.highest.div_euclid(-constant), (-limits.lowest).div_euclid(-constant)),
            };
            let allowed = ValueRange { lowest: allowed.0, highest: allowed.1 };
            self.within(to, self.predicate.range(value), allowed, unknown);
        }
        let operation = match operation {
            Arithmetic::Add => Operation::Add,
            Arithmetic::Subtract => Operation::Subtract,
            _ => Operation::Multiply,
        };
        let operand = self.constant_operand(constant, SCRATCH);
        self.code.operation(operation, to, operand);
        Ok(())
    }

    /// A value outside of the allowed range is unknown.
    fn within(&mut self, value: BpfRegister, of_value: ValueRange, allowed: ValueRange, unknown: BpfLabel) {
        if allowed.lowest > of_value.highest || allowed.highest < of_value.lowest {
            return self.code.jump(unknown);
        }
        let is_signed = !of_value.is_unsigned();
        if allowed.lowest > of_value.lowest {
            let operand = self.constant_operand(allowed.lowest, SCRATCH);
            self.code.jump_if(JumpCondition::of(Relation::Less, is_signed), value, operand, unknown);
        }
        if allowed.highest < of_value.highest {
            let operand = self.constant_operand(allowed.highest, SCRATCH);
            self.code.jump_if(JumpCondition::of(Relation::Greater, is_signed), value, operand, unknown);
        }
    }

    /// A sum or difference of two registers, in 128 bits: the upper half is in the answer's register.
    fn sum(&mut self, pair: &Pair, operation: Operation) {
        let &Pair { left, right, of_left, of_right, exact, unknown } = pair;
        if exact.is_held() {
            return self.code.operation(operation, left, BpfOperand::Register(right));
        }
        self.upper_half(ANSWER, left, of_left);
        self.upper_half(SCRATCH, right, of_right);
        self.code.operation(operation, ANSWER, BpfOperand::Register(SCRATCH));
        let no_carry = self.code.label();
        if operation == Operation::Add {
            self.code.operation(operation, left, BpfOperand::Register(right));
            self.code.jump_if(JumpCondition::GreaterOrEqual, left, BpfOperand::Register(right), no_carry);
        } else {
            // The difference is computed behind: the jump needs the left one as it was.
            self.code.copy(SCRATCH, left);
            self.code.operation(operation, left, BpfOperand::Register(right));
            self.code.jump_if(JumpCondition::GreaterOrEqual, SCRATCH, BpfOperand::Register(right), no_carry);
        }
        self.code.operation(operation, ANSWER, BpfOperand::Constant(1));
        self.code.place(no_carry);
        // It is held if the upper half adds nothing.
        self.upper_half(SCRATCH, left, exact);
        self.code.jump_if(JumpCondition::NotEqual, ANSWER, BpfOperand::Register(SCRATCH), unknown);
    }

    /// The bits above the 64 of a value.
    fn upper_half(&mut self, to: BpfRegister, value: BpfRegister, of_value: ValueRange) {
        if of_value.is_unsigned() {
            return self.code.operation(Operation::Move, to, BpfOperand::Constant(0));
        }
        self.code.copy(to, value);
        self.code.operation(Operation::ShiftRightSigned, to, BpfOperand::Constant(63));
    }

    /// A product, quotient or remainder. The answer's register shows whether it is negative.
    fn by_magnitudes(&mut self, pair: &Pair, operation: Operation) {
        let &Pair { left, right, of_left, of_right, unknown, .. } = pair;
        let is_signed = of_left.lowest < 0 || of_right.lowest < 0;
        if is_signed {
            self.code.operation(Operation::Move, ANSWER, BpfOperand::Constant(0));
            // A remainder has the sign of the left one.
            self.magnitude(left, of_left, true);
            self.magnitude(right, of_right, operation != Operation::Remainder);
        }
        if operation == Operation::Multiply {
            let is_safe = self.code.label();
            self.code.jump_if(JumpCondition::Equal, right, BpfOperand::Constant(0), is_safe);
            self.code.operation(Operation::Move, SCRATCH, BpfOperand::Constant(-1));
            self.code.operation(Operation::Divide, SCRATCH, BpfOperand::Register(right));
            self.code.jump_if(JumpCondition::Greater, left, BpfOperand::Register(SCRATCH), unknown);
            self.code.place(is_safe);
        } else if of_right.lowest <= 0 && of_right.highest >= 0 {
            self.code.jump_if(JumpCondition::Equal, right, BpfOperand::Constant(0), unknown);
        }
        self.code.operation(operation, left, BpfOperand::Register(right));
        if is_signed {
            self.with_sign(pair);
        }
    }

    fn magnitude(&mut self, value: BpfRegister, of_value: ValueRange, counts: bool) {
        if of_value.is_unsigned() {
            return;
        }
        let is_positive = self.code.label();
        self.code.jump_if(JumpCondition::GreaterOrEqualSigned, value, BpfOperand::Constant(0), is_positive);
        self.code.operation(Operation::Multiply, value, BpfOperand::Constant(-1));
        if counts {
            self.code.operation(Operation::Xor, ANSWER, BpfOperand::Constant(1));
        }
        self.code.place(is_positive);
    }

    /// Gives a magnitude its sign, if the result can be held.
    fn with_sign(&mut self, pair: &Pair) {
        let &Pair { left, exact, unknown, .. } = pair;
        let is_checked = !exact.is_held() && !exact.is_unsigned();
        let [is_positive, done] = [self.code.label(), self.code.label()];
        self.code.jump_if(JumpCondition::Equal, ANSWER, BpfOperand::Constant(0), is_positive);
        if is_checked {
            let operand = self.constant_operand(-INTEGER_LOWEST, SCRATCH);
            self.code.jump_if(JumpCondition::Greater, left, operand, unknown);
        }
        self.code.operation(Operation::Multiply, left, BpfOperand::Constant(-1));
        self.code.jump(done);
        self.code.place(is_positive);
        if is_checked {
            self.code.jump_if(JumpCondition::LessSigned, left, BpfOperand::Constant(0), unknown);
        }
        self.code.place(done);
    }

    /// `floor(value * multiply / divide) + add` of the value in the register of this depth.
    pub(super) fn scaled(
        &mut self,
        number: &Number,
        value: &Number,
        (multiply, divide, add): (u64, u64, i64),
        depth: u8,
        unknown: BpfLabel,
    ) -> Result<(), Refusal> {
        let to = self.register(number, depth)?;
        let of_value = self.predicate.range(value);
        let (allowed, common) = (self.scale_allows(number, of_value), common_divisor(multiply, divide));
        let (multiply, divide) = (multiply / common, divide / common);
        if (divide - 1).checked_mul(multiply).is_none() {
            let why = "eBPF has no products of 128 bits, as this scale needs";
            return Err(self.predicate.number_refusal(number, why));
        }
        match allowed {
            None => self.code.jump(unknown),
            Some(allowed) => self.within(to, of_value, allowed, unknown),
        }
        let scratch = self.register(number, depth + 1)?;
        let is_signed = !of_value.is_unsigned();
        // The quotient rounded down: of a negative number, the complement of its complement's.
        self.upper_half(ANSWER, to, of_value);
        self.code.copy(SCRATCH, to);
        if is_signed {
            self.code.operation(Operation::Xor, SCRATCH, BpfOperand::Register(ANSWER));
        }
        let divisor = self.divisor_operand(divide, scratch);
        self.code.operation(Operation::Divide, SCRATCH, divisor);
        if is_signed {
            self.code.operation(Operation::Xor, SCRATCH, BpfOperand::Register(ANSWER));
        }
        // The rest, scaled by itself, fits into 64 bits.
        self.code.copy(ANSWER, SCRATCH);
        self.code.operation(Operation::Multiply, ANSWER, divisor);
        self.code.operation(Operation::Subtract, to, BpfOperand::Register(ANSWER));
        let factor = self.constant_operand(i128::from(multiply), ANSWER);
        self.code.operation(Operation::Multiply, to, factor);
        self.code.operation(Operation::Divide, to, divisor);
        self.code.operation(Operation::Multiply, SCRATCH, factor);
        self.code.operation(Operation::Add, to, BpfOperand::Register(SCRATCH));
        let add = self.constant_operand(i128::from(add), ANSWER);
        self.code.operation(Operation::Add, to, add);
        Ok(())
    }

    /// Constants are sign-extended, which must not happen to divisors.
    fn divisor_operand(&mut self, divisor: u64, scratch: BpfRegister) -> BpfOperand {
        if i32::try_from(divisor).is_err() {
            self.code.constant(scratch, divisor);
            return BpfOperand::Register(scratch);
        }
        BpfOperand::Constant(divisor as i32)
    }

    /// The values with scaled ones that can be held; `None`: there are none. Scaled values never
    /// fall where values rise.
    fn scale_allows(&self, number: &Number, of_value: ValueRange) -> Option<ValueRange> {
        let exact = self.predicate.exact_range(number);
        if exact.is_held() {
            return Some(of_value);
        }
        let limits = limits(exact);
        let scaled = |value| {
            let Number::Scaled { multiply, divide, add, .. } = *number else { unreachable!("it is scaled") };
            let value = Box::new(Number::Integer(value));
            self.predicate.exact_range(&Number::Scaled { value, multiply, divide, add }).lowest
        };
        // The first value that is high enough, and the first one that is too high.
        let lowest = first(of_value, |value| scaled(value) >= limits.lowest);
        let above = first(of_value, |value| scaled(value) > limits.highest);
        (lowest < above).then_some(ValueRange { lowest, highest: above - 1 })
    }
}

/// The first value in a range of which something holds, that holds for all behind it; one beyond the range if for none.
fn first(range: ValueRange, holds: impl Fn(i128) -> bool) -> i128 {
    let (mut low, mut high) = (range.lowest, range.highest + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// The representable results in this range.
fn limits(exact: ValueRange) -> ValueRange {
    if exact.is_unsigned() {
        ValueRange { lowest: 0, highest: INTEGER_HIGHEST }
    } else {
        ValueRange { lowest: INTEGER_LOWEST, highest: i128::from(i64::MAX) }
    }
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
