//! The behavior of a bytecode program, from its instructions as values: no speed, and nothing taken
//! for granted. It panics where a program that was accepted reads a register that was not written,
//! or leaves its arguments or constants.

use std::cmp::Ordering;

use kymo_bytecode::{
    ArithmeticOp, BitwiseOp, BytecodeProgram, Instruction, IntegerCondition, IntegerField, LiteralBytes,
    RealArithmetic, RightOperand, TextPattern, TextPlace, Texts,
};

/// Texts behind any pointers.
#[derive(Debug)]
pub(crate) struct TextMemory(pub(crate) Vec<u8>);

impl Texts for TextMemory {
    fn text(&self, address: u64, length: u64) -> &[u8] {
        let start = address as usize % (self.0.len() + 1);
        let rest = &self.0[start..];
        &rest[..length as usize % (rest.len() + 1)]
    }
}

pub(crate) struct PlainMachine<'a> {
    instructions: Vec<Instruction>,
    constants: &'a [u8],
    arguments: &'a [u8],
    memory: &'a TextMemory,
    integers: [Option<u64>; 8],
    reals: [Option<f64>; 4],
    texts: [Option<&'a [u8]>; 4],
}

const WRITTEN: &str = "a register is written before it is read";

/// The number that 64 bits are.
fn number(bits: u64, is_signed: bool) -> i128 {
    if is_signed { i128::from(bits as i64) } else { i128::from(bits) }
}

/// The bits of a number, if 64 of them can hold it.
fn bits(value: Option<i128>, is_signed: bool) -> Option<u64> {
    let value = value?;
    let fits = if is_signed { i64::try_from(value).is_ok() } else { u64::try_from(value).is_ok() };
    fits.then_some(value as u64)
}

impl<'a> PlainMachine<'a> {
    pub(crate) fn new(program: &BytecodeProgram<'a>, arguments: &'a [u8], memory: &'a TextMemory) -> Self {
        Self {
            instructions: program.instructions().collect(),
            constants: program.constants(),
            arguments,
            memory,
            integers: [None; 8],
            reals: [None; 4],
            texts: [None; 4],
        }
    }

    /// Whether the event is kept.
    pub(crate) fn run(mut self) -> bool {
        let mut index = 0;
        loop {
            let instruction = self.instructions[index];
            index += 1;
            let jumps = match instruction {
                Instruction::Keep => return true,
                Instruction::Drop => return false,
                Instruction::Jump { .. } => true,
                _ => self.step(&instruction),
            };
            if jumps {
                index += usize::from(instruction.skip().expect("only what has a place to go to jumps"));
            }
        }
    }

    /// Whether it jumps.
    fn step(&mut self, instruction: &Instruction) -> bool {
        match *instruction {
            Instruction::Test { field, condition, .. } => holds(condition, self.field(field)),
            Instruction::Load { to, field } => self.set(to, Some(self.field(field) as u64)),
            Instruction::Constant { to, value } => self.set(to, Some(value)),
            Instruction::Arithmetic { operation, to, left, right, signs, .. } => {
                let (left, right) = (number(self.integer(left), signs.left), number(self.operand(right), signs.right));
                self.set(to, bits(arithmetic(operation, left, right), signs.result))
            }
            Instruction::Bits { operation, to, left, right, .. } => {
                let (left, right) = (self.integer(left), self.operand(right));
                self.set(to, bitwise(operation, left, right))
            }
            Instruction::Scale { to, from, signs, offset, .. } => {
                let word = |index: usize| {
                    let bytes = &self.constants[offset as usize + 8 * index..][..8];
                    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
                };
                let (multiply, divide, add) = (word(0), word(1), word(2) as i64);
                let value = scaled(number(self.integer(from), signs.left), multiply, divide, add);
                self.set(to, bits(value, signs.result))
            }
            Instruction::Compare { left, right, signs, orders, .. } => {
                let (left, right) = (number(self.integer(left), signs.left), number(self.operand(right), signs.right));
                orders.has(Some(left.cmp(&right)))
            }
            _ => self.step_of_reals_and_texts(instruction),
        }
    }

    fn step_of_reals_and_texts(&mut self, instruction: &Instruction) -> bool {
        match *instruction {
            Instruction::LoadReal { to, is_double, offset } => {
                let bytes = &self.arguments[usize::from(offset)..];
                let single = || f32::from_ne_bytes(bytes[..4].try_into().expect("4 bytes")).into();
                let double = || f64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes"));
                self.set_real(to, if is_double { double() } else { single() })
            }
            Instruction::RealConstant { to, bits } => self.set_real(to, f64::from_bits(bits)),
            Instruction::ToReal { to, from, is_signed } => {
                let value = self.integer(from);
                self.set_real(to, if is_signed { value as i64 as f64 } else { value as f64 })
            }
            Instruction::Reals { operation, to, left, right } => {
                let (left, right) = (self.real(left), self.real(right));
                let value = match operation {
                    RealArithmetic::Add => left + right,
                    RealArithmetic::Subtract => left - right,
                    RealArithmetic::Multiply => left * right,
                    RealArithmetic::Divide => left / right,
                };
                self.set_real(to, value)
            }
            Instruction::CompareReals { left, right, orders, .. } => {
                orders.has(self.real(left).partial_cmp(&self.real(right)))
            }
            Instruction::LoadText { to, place } => {
                self.texts[usize::from(to)] = Some(self.place(place));
                false
            }
            Instruction::CompareTexts { left, right, orders, .. } => {
                orders.has(Some(self.text(left).cmp(self.text(right))))
            }
            Instruction::CompareLiteral { left, right, orders, .. } => {
                orders.has(Some(self.text(left).cmp(self.literal(right))))
            }
            Instruction::TestText { text, pattern, jumps_if, .. } => self.is_of(text, pattern) == jumps_if,
            _ => unreachable!("the others are integers"),
        }
    }

    fn field(&self, IntegerField { kind, offset }: IntegerField) -> i128 {
        let mut bytes = self.arguments[usize::from(offset)..][..usize::from(kind.bytes())].to_vec();
        if !kind.is_big_endian() {
            bytes.reverse();
        }
        let value = bytes.iter().fold(0, |value: i128, byte| value << 8 | i128::from(*byte));
        if value > kind.highest() { value - (1 << (8 * kind.bytes())) } else { value }
    }

    fn integer(&self, register: u8) -> u64 {
        self.integers[usize::from(register)].expect(WRITTEN)
    }

    fn operand(&self, operand: RightOperand) -> u64 {
        match operand {
            RightOperand::Register(register) => self.integer(register),
            RightOperand::Constant(value) => value,
        }
    }

    fn real(&self, register: u8) -> f64 {
        self.reals[usize::from(register)].expect(WRITTEN)
    }

    fn text(&self, register: u8) -> &'a [u8] {
        self.texts[usize::from(register)].expect(WRITTEN)
    }

    /// Jumps if there is no value.
    fn set(&mut self, register: u8, value: Option<u64>) -> bool {
        if value.is_some() {
            self.integers[usize::from(register)] = value;
        }
        value.is_none()
    }

    fn set_real(&mut self, register: u8, value: f64) -> bool {
        self.reals[usize::from(register)] = Some(value);
        false
    }

    fn place(&self, place: TextPlace) -> &'a [u8] {
        match place {
            TextPlace::Inline { offset, capacity } => {
                let bytes = &self.arguments[usize::from(offset)..][..capacity as usize];
                bytes.split(|&byte| byte == 0).next().expect("there is a first piece")
            }
            TextPlace::Pointer { offset } => {
                let word =
                    |offset: usize| u64::from_ne_bytes(self.arguments[offset..][..8].try_into().expect("8 bytes"));
                self.memory.text(word(offset.into()), word(usize::from(offset) + 8))
            }
        }
    }

    fn literal(&self, LiteralBytes { offset, length }: LiteralBytes) -> &'a [u8] {
        &self.constants[offset as usize..][..length as usize]
    }

    fn is_of(&self, text: u8, pattern: TextPattern) -> bool {
        let text = self.text(text);
        let (offset, count) = match pattern {
            TextPattern::Is(literal) => return text == self.literal(literal),
            TextPattern::Begins(literal) => return text.starts_with(self.literal(literal)),
            TextPattern::Like { offset, parts } => (offset as usize, parts),
        };
        let mut rest = &self.constants[offset..];
        let mut parts = Vec::new();
        for _ in 0..count {
            let (length, behind) = rest.split_at(2);
            let (part, behind) = behind.split_at(u16::from_le_bytes([length[0], length[1]]).into());
            parts.push(part);
            rest = behind;
        }
        // Which ends of a prefix of the text the parts so far can have: nothing clever, all of them.
        let mut ends: Vec<usize> = if text.starts_with(parts[0]) { vec![parts[0].len()] } else { Vec::new() };
        for part in &parts[1..] {
            let first = ends.iter().copied().min().unwrap_or(text.len() + 1);
            let starts = first..=text.len();
            ends = starts.filter(|&at| text[at..].starts_with(part)).map(|at| at + part.len()).collect();
        }
        ends.contains(&text.len())
    }
}

fn holds(condition: IntegerCondition, value: i128) -> bool {
    match condition {
        IntegerCondition::Equal(other) => value == other,
        IntegerCondition::NotEqual(other) => value != other,
        IntegerCondition::Less(other) => value.cmp(&other) == Ordering::Less,
        IntegerCondition::AtLeast(other) => value.cmp(&other) != Ordering::Less,
        IntegerCondition::Within(lowest, highest) => (lowest..=highest).contains(&value),
        IntegerCondition::Without(lowest, highest) => !(lowest..=highest).contains(&value),
        IntegerCondition::BitsEqual(mask, bits) => value as u32 & mask == bits,
        IntegerCondition::BitsDiffer(mask, bits) => value as u32 & mask != bits,
    }
}

fn arithmetic(operation: ArithmeticOp, left: i128, right: i128) -> Option<i128> {
    match operation {
        ArithmeticOp::Add => Some(left + right),
        ArithmeticOp::Subtract => Some(left - right),
        ArithmeticOp::Multiply => left.checked_mul(right),
        ArithmeticOp::Divide => left.checked_div(right),
        ArithmeticOp::Remainder => left.checked_rem(right),
    }
}

fn bitwise(operation: BitwiseOp, left: u64, right: u64) -> Option<u64> {
    match operation {
        BitwiseOp::And => Some(left & right),
        BitwiseOp::Or => Some(left | right),
        BitwiseOp::Xor => Some(left ^ right),
        BitwiseOp::ShiftLeft => (right < 64).then(|| left << right),
        BitwiseOp::ShiftRight => (right < 64).then(|| left >> right),
    }
}

/// `floor(value * multiply / divide) + add`, if 128 bits suffice.
fn scaled(value: i128, multiply: u64, divide: u64, add: i64) -> Option<i128> {
    let (multiply, divide) = (i128::from(multiply), i128::from(divide));
    if let Some(product) = value.checked_mul(multiply) {
        return product.div_euclid(divide).checked_add(add.into());
    }
    // Then the quotient is beyond 64 bits, unless the divisor is as large: in parts.
    let whole = value.div_euclid(divide).checked_mul(multiply)?;
    let rest = value.rem_euclid(divide).unsigned_abs() * multiply.unsigned_abs() / divide.unsigned_abs();
    whole.checked_add_unsigned(rest)?.checked_add(add.into())
}
