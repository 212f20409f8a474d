//! Integers in registers: loads, constants, bits, and which operand comes first.
//!
//! A value is held according to its range: in unsigned 64 bits if it cannot be negative, else in
//! signed ones. An expression that becomes unknown jumps to a label. Of two operands the one that
//! needs more registers is computed first, so that seven registers are enough for anything that
//! people write.

use kymo_ir::predicate::{Assembler, Bitwise, Input, InputKind, InputPlace, Number, Refusal, Test, ValueRange};
use kymo_units::ByteOrder;

use super::assembly::BpfLabel;
use super::instruction::{BpfInstruction, BpfOperand, BpfRegister, JumpCondition, Operation};
use super::{ANSWER, ARGUMENTS, BpfCompiler, TOO_WIDE, Targets, VALUES_MAX, value_register};

const MACHINE_ORDER: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

impl BpfCompiler<'_> {
    /// Computes a number into the register of this depth; lower ones stay as they are.
    pub(super) fn number(&mut self, number: &Number, depth: u8, unknown: BpfLabel) -> Result<(), Refusal> {
        let to = self.register(number, depth)?;
        match number {
            Number::Integer(value) => self.code.constant(to, *value as u64),
            Number::Real(_) => return Err(self.no_reals(number)),
            Number::Input(input) => return self.input(number, *input, to, unknown),
            Number::Truth(test) => return self.truth(test, to, depth, unknown),
            Number::Arithmetic { operation, left, right } => {
                if self.predicate.is_real(number) {
                    return Err(self.no_reals(number));
                }
                return self.arithmetic(number, *operation, (left, right), depth, unknown);
            }
            Number::Bits { operation, left, right } => {
                return self.bits(number, *operation, (left, right), depth, unknown);
            }
            Number::Complement(value) => {
                self.number(value, depth, unknown)?;
                self.code.operation(Operation::Xor, to, BpfOperand::Constant(-1));
            }
            Number::Scaled { value, multiply, divide, add } => {
                self.number(value, depth, unknown)?;
                return self.scaled(number, value, (*multiply, *divide, *add), depth, unknown);
            }
        }
        Ok(())
    }

    /// Computes two numbers. The first is in the register of this depth or the one above it.
    pub(super) fn pair(
        &mut self,
        left: &Number,
        right: &Number,
        unknown: BpfLabel,
        depth: u8,
    ) -> Result<(BpfRegister, BpfOperand), Refusal> {
        if let Number::Integer(value) = right
            && let Ok(value) = i32::try_from(*value as u64 as i64)
        {
            self.number(left, depth, unknown)?;
            return Ok((self.register(left, depth)?, BpfOperand::Constant(value)));
        }
        let (of_left, of_right) =
            if registers(left) >= registers(right) { (depth, depth + 1) } else { (depth + 1, depth) };
        if of_left < of_right {
            self.number(left, of_left, unknown)?;
            self.number(right, of_right, unknown)?;
        } else {
            self.number(right, of_right, unknown)?;
            self.number(left, of_left, unknown)?;
        }
        Ok((self.register(left, of_left)?, BpfOperand::Register(self.register(right, of_right)?)))
    }

    pub(super) fn register(&self, number: &Number, depth: u8) -> Result<BpfRegister, Refusal> {
        value_register(depth).ok_or_else(|| self.predicate.number_refusal(number, TOO_WIDE))
    }

    pub(super) fn no_reals(&self, number: &Number) -> Refusal {
        self.predicate.number_refusal(number, "eBPF has no real numbers")
    }

    /// A constant as an operand, in `scratch` if it is a wide one.
    pub(super) fn constant_operand(&mut self, value: i128, scratch: BpfRegister) -> BpfOperand {
        let bits = value as u64;
        i32::try_from(bits as i64).map_or_else(
            |_| {
                self.code.constant(scratch, bits);
                BpfOperand::Register(scratch)
            },
            BpfOperand::Constant,
        )
    }

    /// Values in these bounds are compared as signed ones.
    pub(super) fn is_signed_range(&self, bounds: (i128, i128)) -> bool {
        !ValueRange { lowest: bounds.0, highest: bounds.1 }.is_unsigned()
    }

    fn truth(&mut self, test: &Test, to: BpfRegister, depth: u8, unknown: BpfLabel) -> Result<(), Refusal> {
        let [on_true, on_false, done] = std::array::from_fn(|_| self.code.label());
        let outer = std::mem::replace(&mut self.depth, depth);
        self.test(test, Targets { on_true, on_false, on_unknown: unknown, next: on_true })?;
        self.depth = outer;
        self.code.place(on_true);
        self.code.operation(Operation::Move, to, BpfOperand::Constant(1));
        self.code.jump(done);
        self.code.place(on_false);
        self.code.operation(Operation::Move, to, BpfOperand::Constant(0));
        self.code.place(done);
        Ok(())
    }

    fn input(&mut self, number: &Number, input: Input, to: BpfRegister, unknown: BpfLabel) -> Result<(), Refusal> {
        let is_signed = match self.predicate.kind(input) {
            InputKind::Integer { signed, .. } => signed,
            InputKind::Real | InputKind::Text(_) => return Err(self.no_reals(number)),
        };
        match self.places[usize::from(input.0)] {
            InputPlace::Integer { offset, bytes, order } => {
                self.load(to, offset as i16, bytes, order);
                if is_signed && bytes < 8 {
                    let above = BpfOperand::Constant(64 - 8 * i32::from(bytes));
                    self.code.operation(Operation::ShiftLeft, to, above);
                    self.code.operation(Operation::ShiftRightSigned, to, above);
                }
            }
            _ => self.code.jump(unknown),
        }
        Ok(())
    }

    /// Loads an integer; one that is not aligned in pieces that are, as the kernel demands.
    fn load(&mut self, to: BpfRegister, offset: i16, bytes: u8, order: ByteOrder) {
        let mut done = 0;
        while done < bytes {
            let at = offset + i16::from(done);
            let size = piece(at as u32, u32::from(bytes - done)) as u8;
            let piece = if done == 0 { to } else { ANSWER };
            self.code.push(BpfInstruction::load(piece, ARGUMENTS, at, size));
            if order != MACHINE_ORDER && size > 1 {
                self.code.push(BpfInstruction::byte_order(piece, size, order));
            }
            let below = if order == ByteOrder::Little { done } else { bytes - done - size };
            if below > 0 {
                self.code.operation(Operation::ShiftLeft, piece, BpfOperand::Constant(8 * i32::from(below)));
            }
            if done > 0 {
                self.code.operation(Operation::Or, to, BpfOperand::Register(piece));
            }
            done += size;
        }
    }

    fn bits(
        &mut self,
        number: &Number,
        operation: Bitwise,
        (left, right): (&Number, &Number),
        depth: u8,
        unknown: BpfLabel,
    ) -> Result<(), Refusal> {
        let is_shift = matches!(operation, Bitwise::ShiftLeft | Bitwise::ShiftRight);
        if is_shift && matches!(right, Number::Integer(count) if !(0..64).contains(count)) {
            self.code.jump(unknown);
            return Ok(());
        }
        let of_right = self.predicate.range(right);
        let (value, operand) = self.pair(left, right, unknown, depth)?;
        if let (true, BpfOperand::Register(count)) =
            (is_shift && (of_right.lowest < 0 || of_right.highest > 63), operand)
        {
            // A negative count is a very high one as an unsigned number.
            self.code.jump_if(JumpCondition::Greater, count, BpfOperand::Constant(63), unknown);
        }
        let operation = match operation {
            Bitwise::And => Operation::And,
            Bitwise::Or => Operation::Or,
            Bitwise::Xor => Operation::Xor,
            Bitwise::ShiftLeft => Operation::ShiftLeft,
            Bitwise::ShiftRight => Operation::ShiftRight,
        };
        self.code.operation(operation, value, operand);
        let to = self.register(number, depth)?;
        self.code.copy(to, value);
        Ok(())
    }
}

/// The bytes of the widest load at this offset that is aligned and not beyond `count` bytes.
pub(super) fn piece(offset: u32, count: u32) -> u32 {
    let mut bytes = 8;
    while bytes > count || !offset.is_multiple_of(bytes) {
        bytes /= 2;
    }
    bytes
}

/// How many registers a number takes while it is computed.
fn registers(number: &Number) -> u8 {
    let count = match number {
        Number::Integer(_) | Number::Real(_) | Number::Input(_) => 1,
        Number::Truth(test) => of_test(test),
        Number::Arithmetic { left, right, .. } | Number::Bits { left, right, .. } => of_pair(left, right),
        Number::Complement(value) => registers(value),
        Number::Scaled { value, .. } => registers(value).max(2),
    };
    count.min(VALUES_MAX)
}

fn of_pair(left: &Number, right: &Number) -> u8 {
    if matches!(right, Number::Integer(_)) {
        return registers(left);
    }
    let (left, right) = (registers(left), registers(right));
    if left == right { left + 1 } else { left.max(right) }
}

fn of_test(test: &Test) -> u8 {
    match test {
        Test::Not(test) => of_test(test),
        Test::All(tests) | Test::Any(tests) => 1 + tests.iter().map(of_test).max().unwrap_or(0),
        Test::Compare { left, right, .. } => of_pair(left, right),
        Test::Among { value, .. } => registers(value),
        Test::Constant(_) | Test::Has(_) | Test::CompareText { .. } | Test::Matches { .. } => 1,
    }
}
