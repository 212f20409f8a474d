//! Numbers into registers.
//!
//! Of two operands the one that takes more registers is computed first: then registers suffice for every tree but a very
//! bushy one. A number that turns out to be unknown jumps away.

use kymo_bytecode::{ArithmeticOp, BitwiseOp, INTEGERS, Instruction, REALS, RealArithmetic, RightOperand, Signs};
use kymo_ir::predicate::{Arithmetic, Assembler, Bitwise, Input, InputPlace, Number, Refusal, Test};

use super::code::CodeLabel;
use super::{BytecodeCompiler, TOO_LONG, TOO_WIDE, Targets, signs};

impl BytecodeCompiler<'_> {
    pub(super) fn take_integer(&mut self) -> Option<u8> {
        let number = self.integers.trailing_ones() as u8;
        (number < INTEGERS).then(|| {
            self.integers |= 1 << number;
            number
        })
    }

    pub(super) fn free_integer(&mut self, number: u8) {
        self.integers &= !(1 << number);
    }

    pub(super) fn free_operand(&mut self, operand: RightOperand) {
        if let RightOperand::Register(number) = operand {
            self.free_integer(number);
        }
    }

    fn take_real(&mut self) -> Option<u8> {
        let number = self.reals.trailing_ones() as u8;
        (number < REALS).then(|| {
            self.reals |= 1 << number;
            number
        })
    }

    pub(super) fn free_real(&mut self, number: u8) {
        self.reals &= !(1 << number);
    }

    /// A new register for a number.
    fn register_for(&mut self, number: &Number) -> Result<u8, Refusal> {
        self.take_integer().ok_or_else(|| self.predicate.number_refusal(number, TOO_WIDE))
    }

    /// Two integers: the first in a register, the second in another one or a constant.
    pub(super) fn pair(
        &mut self,
        left: &Number,
        right: &Number,
        unknown: CodeLabel,
    ) -> Result<(u8, RightOperand), Refusal> {
        if let Number::Integer(value) = right {
            return Ok((self.integer(left, unknown)?, RightOperand::Constant(*value as u64)));
        }
        if registers(right) > registers(left) {
            let right = self.integer(right, unknown)?;
            return Ok((self.integer(left, unknown)?, RightOperand::Register(right)));
        }
        let left = self.integer(left, unknown)?;
        Ok((left, RightOperand::Register(self.integer(right, unknown)?)))
    }

    /// An integer in a new register.
    pub(super) fn integer(&mut self, number: &Number, unknown: CodeLabel) -> Result<u8, Refusal> {
        match number {
            Number::Integer(value) => {
                let to = self.register_for(number)?;
                self.code.push(Instruction::Constant { to, value: *value as u64 });
                Ok(to)
            }
            Number::Input(input) => self.load(number, *input, unknown),
            Number::Truth(test) => self.truth(number, test, unknown),
            Number::Arithmetic { operation, left, right } => {
                let operation = arithmetic(*operation);
                let signs = signs(self.predicate.range(left), self.predicate.range(right));
                let signs = Signs { result: self.is_signed(number), ..signs };
                self.combined(left, right, unknown, |to, left, right| Instruction::Arithmetic {
                    operation,
                    to,
                    left,
                    right,
                    signs,
                    skip: 0,
                })
            }
            Number::Bits { operation, left, right } => {
                let operation = bitwise(*operation);
                self.combined(left, right, unknown, |to, left, right| Instruction::Bits {
                    operation,
                    to,
                    left,
                    right,
                    skip: 0,
                })
            }
            Number::Complement(value) => {
                let (to, right) = (self.integer(value, unknown)?, RightOperand::Constant(u64::MAX));
                let operation = BitwiseOp::Xor;
                self.code.push_to(Instruction::Bits { operation, to, left: to, right, skip: 0 }, unknown);
                Ok(to)
            }
            Number::Scaled { value, multiply, divide, add } => {
                let to = self.integer(value, unknown)?;
                let signs = Signs { left: self.is_signed(value), right: false, result: self.is_signed(number) };
                let scale = [multiply.to_le_bytes(), divide.to_le_bytes(), add.to_le_bytes()].concat();
                let Some(scale) = self.code.constant(&scale) else {
                    return Err(self.predicate.number_refusal(number, TOO_LONG));
                };
                self.code.push_to(Instruction::Scale { to, from: to, signs, offset: scale.offset, skip: 0 }, unknown);
                Ok(to)
            }
            Number::Real(_) => unreachable!("the verifier lets no reals be integers"),
        }
    }

    fn is_signed(&self, number: &Number) -> bool {
        !self.predicate.range(number).is_unsigned()
    }

    /// Two integers become one, in the register of the first.
    fn combined(
        &mut self,
        left: &Number,
        right: &Number,
        unknown: CodeLabel,
        instruction: impl Fn(u8, u8, RightOperand) -> Instruction,
    ) -> Result<u8, Refusal> {
        let (left, right) = self.pair(left, right, unknown)?;
        self.free_operand(right);
        self.code.push_to(instruction(left, left, right), unknown);
        Ok(left)
    }

    fn load(&mut self, number: &Number, input: Input, unknown: CodeLabel) -> Result<u8, Refusal> {
        let to = self.register_for(number)?;
        match self.field(input) {
            Some(field) => self.code.push(Instruction::Load { to, field }),
            None => self.code.jump(unknown),
        }
        Ok(to)
    }

    /// The value of a test as 0 or 1.
    fn truth(&mut self, number: &Number, test: &Test, unknown: CodeLabel) -> Result<u8, Refusal> {
        let [on_true, on_false, end] = [(); 3].map(|()| self.code.label());
        self.test(test, Targets { on_true, on_false, on_unknown: unknown, next: on_true })?;
        let to = self.register_for(number)?;
        self.code.place(on_true);
        self.code.push(Instruction::Constant { to, value: 1 });
        self.code.jump(end);
        self.code.place(on_false);
        self.code.push(Instruction::Constant { to, value: 0 });
        self.code.place(end);
        Ok(to)
    }

    /// A number as a real in a new register.
    pub(super) fn real(&mut self, number: &Number, unknown: CodeLabel) -> Result<u8, Refusal> {
        let wide = || self.predicate.number_refusal(number, TOO_WIDE);
        if let Number::Arithmetic { operation, left, right } = number
            && self.predicate.is_real(number)
        {
            return self.combined_reals(*operation, left, right, unknown);
        }
        let to = self.take_real().ok_or_else(wide)?;
        match number {
            Number::Real(value) => {
                self.code.push(Instruction::RealConstant { to, bits: value.value().to_bits() });
            }
            Number::Integer(value) => {
                self.code.push(Instruction::RealConstant { to, bits: (*value as f64).to_bits() });
            }
            Number::Input(input) if self.predicate.is_real(number) => match self.places[usize::from(input.0)] {
                InputPlace::Real { offset, bytes } => {
                    self.code.push(Instruction::LoadReal { to, is_double: bytes == 8, offset: offset as u16 });
                }
                _ => self.code.jump(unknown),
            },
            _ => {
                let from = self.integer(number, unknown)?;
                self.free_integer(from);
                self.code.push(Instruction::ToReal { to, from, is_signed: self.is_signed(number) });
            }
        }
        Ok(to)
    }

    fn combined_reals(
        &mut self,
        operation: Arithmetic,
        left: &Number,
        right: &Number,
        unknown: CodeLabel,
    ) -> Result<u8, Refusal> {
        let (left, right) = if registers(right) > registers(left) {
            let right = self.real(right, unknown)?;
            (self.real(left, unknown)?, right)
        } else {
            (self.real(left, unknown)?, self.real(right, unknown)?)
        };
        self.free_real(right);
        let operation = match operation {
            Arithmetic::Add => RealArithmetic::Add,
            Arithmetic::Subtract => RealArithmetic::Subtract,
            Arithmetic::Multiply => RealArithmetic::Multiply,
            Arithmetic::Divide => RealArithmetic::Divide,
            Arithmetic::Remainder => unreachable!("the verifier takes remainders of integers alone"),
        };
        self.code.push(Instruction::Reals { operation, to: left, left, right });
        Ok(left)
    }
}

fn arithmetic(operation: Arithmetic) -> ArithmeticOp {
    match operation {
        Arithmetic::Add => ArithmeticOp::Add,
        Arithmetic::Subtract => ArithmeticOp::Subtract,
        Arithmetic::Multiply => ArithmeticOp::Multiply,
        Arithmetic::Divide => ArithmeticOp::Divide,
        Arithmetic::Remainder => ArithmeticOp::Remainder,
    }
}

fn bitwise(operation: Bitwise) -> BitwiseOp {
    match operation {
        Bitwise::And => BitwiseOp::And,
        Bitwise::Or => BitwiseOp::Or,
        Bitwise::Xor => BitwiseOp::Xor,
        Bitwise::ShiftLeft => BitwiseOp::ShiftLeft,
        Bitwise::ShiftRight => BitwiseOp::ShiftRight,
    }
}

/// How many registers a number takes, about: the order of operands hangs on it, nothing else.
fn registers(number: &Number) -> u32 {
    match number {
        Number::Integer(_) | Number::Real(_) | Number::Input(_) => 1,
        Number::Truth(_) => 2,
        Number::Complement(value) | Number::Scaled { value, .. } => registers(value),
        Number::Arithmetic { left, right, .. } | Number::Bits { left, right, .. } => {
            let (left, right) = (registers(left), registers(right));
            if left == right { left + 1 } else { left.max(right) }
        }
    }
}
