//! Registers, and the instructions that use them: integers, reals, texts.
//!
//! Integers have 64 bits; each instruction says which of its operands are in two's complement.
//! Arithmetic uses 128 bits, which hold every exact result except a product, which is checked
//! separately; then the result is checked against its 64 bits.

use crate::instruction::{Bytes, half, immediate, opcode, read};
use crate::operands::{
    ArithmeticOp, BitwiseOp, INTEGERS, OrderSet, REALS, RealArithmetic, Signs, TEXTS, arithmetic, bitwise,
    real_arithmetic,
};
use crate::texts::Texts;
use crate::{BytecodeProgram, LiteralBytes};

/// The state of a program that has registers.
#[derive(Debug)]
pub(crate) struct RegisterMachine<'a> {
    program: BytecodeProgram<'a>,
    arguments: &'a [u8],
    integers: [u64; INTEGERS as usize],
    reals: [f64; REALS as usize],
    texts: [&'a [u8]; TEXTS as usize],
}

/// The exact number that 64 bits represent.
fn exact(bits: u64, is_signed: bool) -> i128 {
    if is_signed { i128::from(bits as i64) } else { i128::from(bits) }
}

/// The 64 bits that represent a number, if it fits.
fn held(value: i128, is_signed: bool) -> Option<u64> {
    if is_signed { i64::try_from(value).ok().map(|value| value as u64) } else { u64::try_from(value).ok() }
}

impl<'a> RegisterMachine<'a> {
    pub(crate) fn new(program: BytecodeProgram<'a>, arguments: &'a [u8]) -> Self {
        let (integers, reals) = ([0; INTEGERS as usize], [0.0; REALS as usize]);
        Self { program, arguments, integers, reals, texts: [&[]; TEXTS as usize] }
    }

    fn integer(&self, number: u8) -> u64 {
        self.integers[usize::from(number % INTEGERS)]
    }

    fn real(&self, number: u8) -> f64 {
        self.reals[usize::from(number % REALS)]
    }

    fn text(&self, number: u8) -> &'a [u8] {
        self.texts[usize::from(number % TEXTS)]
    }

    /// Sets an integer register; does not jump.
    pub(crate) fn set(&mut self, number: u8, value: u64) -> bool {
        self.integers[usize::from(number % INTEGERS)] = value;
        false
    }

    fn set_real(&mut self, number: u8, value: f64) -> bool {
        self.reals[usize::from(number % REALS)] = value;
        false
    }

    fn set_text(&mut self, number: u8, value: &'a [u8]) -> bool {
        self.texts[usize::from(number % TEXTS)] = value;
        false
    }

    /// Sets an integer register, or jumps if there is no value.
    fn set_or_jump(&mut self, number: u8, value: Option<u64>) -> bool {
        value.is_none_or(|value| self.set(number, value))
    }

    /// Executes one instruction. Returns whether it jumps; `None`: there is no such instruction.
    /// Inlined into its loop: 9.7 instead of 11 ns for three instructions (`interpreter.registers`
    /// of the speed example).
    #[inline(always)]
    pub(crate) fn step<T: Texts + ?Sized>(&mut self, instruction: &Bytes, texts: &'a T) -> Option<bool> {
        let &[op, a, _, _, b, c, ..] = instruction;
        Some(match op {
            opcode::CONSTANT => self.set(a, immediate(instruction)),
            opcode::REAL_CONSTANT => self.set_real(a, f64::from_bits(immediate(instruction))),
            opcode::TO_REAL => self.set_real(a, exact(self.integer(b), a >> 4 != 0) as f64),
            opcode::SCALE => self.scale(a, b, half::<8>(instruction))?,
            opcode::LOAD_F32 => self.set_real(a, f32::from_ne_bytes(read(instruction, self.arguments)?).into()),
            opcode::LOAD_F64 => self.set_real(a, f64::from_ne_bytes(read(instruction, self.arguments)?)),
            opcode::LOAD_INLINE => self.load_inline(instruction)?,
            opcode::LOAD_POINTER => self.load_pointer(instruction, texts)?,
            opcode::COMPARE => self.compare(a, b, self.integer(c)),
            opcode::COMPARE_CONSTANT => self.compare(a, b, immediate(instruction)),
            opcode::COMPARE_REALS => OrderSet(a).has(self.real(b).partial_cmp(&self.real(c))),
            opcode::COMPARE_TEXTS => OrderSet(a).has(Some(self.text(b).cmp(self.text(c)))),
            opcode::COMPARE_LITERAL => OrderSet(a).has(Some(self.text(b).cmp(self.literal(instruction)?))),
            opcode::TEXT_IS => (self.text(b) == self.literal(instruction)?) == (a != 0),
            opcode::TEXT_BEGINS => self.text(b).starts_with(self.literal(instruction)?) == (a != 0),
            opcode::TEXT_LIKE => self.is_like(b, half::<8>(instruction), half::<12>(instruction))? == (a != 0),
            0x20..0x28 => self.arithmetic(op, a, b, self.integer(c))?,
            0x28..0x30 => self.arithmetic(op, a, b, immediate(instruction))?,
            0x30..0x38 => self.bits(op, a, b, self.integer(c))?,
            0x38..0x40 => self.bits(op, a, b, immediate(instruction))?,
            0x40..0x44 => self.arithmetic_of_reals(op, a, b, c)?,
            _ => return None,
        })
    }

    fn compare(&self, a: u8, left: u8, right: u64) -> bool {
        let signs = Signs::of(a >> 4);
        OrderSet(a & 15).has(Some(exact(self.integer(left), signs.left).cmp(&exact(right, signs.right))))
    }

    fn arithmetic(&mut self, op: u8, a: u8, left: u8, right: u64) -> Option<bool> {
        let signs = Signs::of(a >> 4);
        let (left, right) = (exact(self.integer(left), signs.left), exact(right, signs.right));
        let value = match arithmetic(op & 7)? {
            ArithmeticOp::Add => left.checked_add(right),
            ArithmeticOp::Subtract => left.checked_sub(right),
            ArithmeticOp::Multiply => left.checked_mul(right),
            ArithmeticOp::Divide => left.checked_div(right),
            ArithmeticOp::Remainder => left.checked_rem(right),
        };
        Some(self.set_or_jump(a & 15, value.and_then(|value| held(value, signs.result))))
    }

    fn bits(&mut self, op: u8, to: u8, left: u8, right: u64) -> Option<bool> {
        let (left, count) = (self.integer(left), u32::try_from(right).unwrap_or(u32::MAX));
        let value = match bitwise(op & 7)? {
            BitwiseOp::And => Some(left & right),
            BitwiseOp::Or => Some(left | right),
            BitwiseOp::Xor => Some(left ^ right),
            BitwiseOp::ShiftLeft => left.checked_shl(count),
            BitwiseOp::ShiftRight => left.checked_shr(count),
        };
        Some(self.set_or_jump(to, value))
    }

    fn arithmetic_of_reals(&mut self, op: u8, to: u8, left: u8, right: u8) -> Option<bool> {
        let (left, right) = (self.real(left), self.real(right));
        let value = match real_arithmetic(op & 7)? {
            RealArithmetic::Add => left + right,
            RealArithmetic::Subtract => left - right,
            RealArithmetic::Multiply => left * right,
            RealArithmetic::Divide => left / right,
        };
        Some(self.set_real(to, value))
    }

    /// The full product might not fit into 128 bits, so quotient and remainder are multiplied
    /// separately. The remainder is below 2^64, so its product is below 2^128.
    fn scale(&mut self, a: u8, from: u8, offset: u32) -> Option<bool> {
        let (multiply, divide, add) = self.program.scale(offset)?;
        let signs = Signs::of(a >> 4);
        let value = exact(self.integer(from), signs.left);
        let (whole, rest) =
            (value.checked_div_euclid(divide.into())?, value.checked_rem_euclid(divide.into())?.unsigned_abs());
        let part = (rest * u128::from(multiply)).checked_div(divide.into())?;
        let value = whole.checked_mul(multiply.into()).and_then(|whole| whole.checked_add_unsigned(part));
        let value = value.and_then(|value| value.checked_add(add.into()));
        Some(self.set_or_jump(a & 15, value.and_then(|value| held(value, signs.result))))
    }

    fn load_inline(&mut self, instruction: &Bytes) -> Option<bool> {
        let offset = usize::from(u16::from_le_bytes([instruction[4], instruction[5]]));
        let place = self.arguments.get(offset..)?.get(..half::<8>(instruction) as usize)?;
        let length = memchr::memchr(0, place).unwrap_or(place.len());
        Some(self.set_text(instruction[1], place.get(..length)?))
    }

    fn load_pointer<T: Texts + ?Sized>(&mut self, instruction: &Bytes, texts: &'a T) -> Option<bool> {
        let [address, length] = *read::<16>(instruction, self.arguments)?.as_chunks::<8>().0 else { return None };
        let text = texts.text(u64::from_ne_bytes(address), u64::from_ne_bytes(length));
        Some(self.set_text(instruction[1], text))
    }

    fn literal(&self, instruction: &Bytes) -> Option<&'a [u8]> {
        self.program.literal(LiteralBytes { offset: half::<8>(instruction), length: half::<12>(instruction) })
    }

    /// Greedy match: matching each part as early as possible leaves the most text for the later
    /// ones.
    fn is_like(&self, text: u8, mut at: u32, parts: u32) -> Option<bool> {
        let mut rest = self.text(text);
        let first = self.program.part(&mut at)?;
        let Some(behind) = rest.strip_prefix(first) else { return Some(false) };
        rest = behind;
        for _ in 2..parts {
            let part = self.program.part(&mut at)?;
            let Some(found) = memchr::memmem::find(rest, part) else { return Some(false) };
            rest = rest.get(found + part.len()..)?;
        }
        Some(rest.ends_with(self.program.part(&mut at)?))
    }
}
