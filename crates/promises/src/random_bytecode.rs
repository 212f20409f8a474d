//! Random instructions of bytecode, most of which the validator accepts: registers are all written first, and offsets,
//! literals and jumps lie inside more often than not.

use kymo_bytecode::{
    ArithmeticOp, BitwiseOp, INTEGERS, Instruction, IntegerCondition, IntegerField, IntegerKind, LiteralBytes,
    OrderSet, REALS, RealArithmetic, RightOperand, Signs, TEXTS, TextPattern, TextPlace,
};

use crate::random::RandomNumbers;

/// Instructions behind those that write registers, at most.
const COUNT_MAX: usize = 24;

/// A scale, the parts of a pattern, any bytes.
pub(crate) fn random_constants(random: &mut RandomNumbers) -> Vec<u8> {
    let mut constants = Vec::new();
    let factor = |random: &mut RandomNumbers| {
        if random.below(2) == 0 { 1 + random.below(9) as u64 } else { random.any().max(1) }
    };
    for word in [factor(random), factor(random), random.any()] {
        constants.extend(word.to_le_bytes());
    }
    for _ in 0..PARTS {
        let part = random.below(3);
        constants.extend((part as u16).to_le_bytes());
        constants.extend(random.bytes(part));
    }
    let count = random.below(20);
    constants.extend(random.bytes(count));
    constants
}

/// Where the pattern is among the constants, and of how many parts.
const PATTERN: u32 = 24;
const PARTS: u32 = 4;

/// Instructions for arguments of a size, with that many bytes of constants.
pub(crate) fn random_instructions(random: &mut RandomNumbers, size: u32, constants: u32) -> Vec<Instruction> {
    let mut maker = BytecodeMaker { random, size, constants };
    let mut instructions: Vec<Instruction> =
        (0..INTEGERS).map(|to| Instruction::Constant { to, value: maker.random.any() }).collect();
    instructions.extend((0..REALS).map(|to| Instruction::RealConstant { to, bits: maker.random.any() }));
    let none = TextPlace::Inline { offset: 0, capacity: 0 };
    instructions.extend((0..TEXTS).map(|to| Instruction::LoadText { to, place: none }));
    let count = maker.below(COUNT_MAX);
    for left in (1..=count).rev() {
        let mut instruction = maker.instruction();
        if instruction.skip().is_some() {
            instruction.set_skip(maker.below(left + 1) as u16);
        }
        instructions.push(instruction);
    }
    instructions.extend([Instruction::Keep, Instruction::Drop]);
    instructions
}

struct BytecodeMaker<'a> {
    random: &'a mut RandomNumbers,
    size: u32,
    constants: u32,
}

impl BytecodeMaker<'_> {
    fn below(&mut self, count: usize) -> usize {
        self.random.below(count)
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn integer(&mut self) -> u8 {
        self.below(INTEGERS.into()) as u8
    }

    fn real(&mut self) -> u8 {
        self.below(REALS.into()) as u8
    }

    fn text(&mut self) -> u8 {
        self.below(TEXTS.into()) as u8
    }

    /// An offset of that many bytes, now and then outside.
    fn offset(&mut self, bytes: u32) -> u16 {
        let inside = (self.size + 1).saturating_sub(bytes);
        if self.below(32) == 0 { self.random.any() as u16 } else { self.below(inside as usize) as u16 }
    }

    fn field(&mut self) -> IntegerField {
        let bytes = [1, 1, 2, 4, 4, 8][self.below(6)];
        let kind = IntegerKind::new(bytes, self.coin(), self.coin()).expect("integers have so many bytes");
        IntegerField { kind, offset: self.offset(bytes.into()) }
    }

    /// A value of a kind: near its ends or near 0.
    fn value(&mut self, kind: IntegerKind) -> i128 {
        let near = self.below(5) as i128 - 2;
        let value = match self.below(3) {
            0 => near,
            1 => [kind.lowest(), kind.highest()][self.below(2)] + near,
            _ => i128::from(self.random.any() as i64),
        };
        value.clamp(kind.lowest(), kind.highest())
    }

    fn condition(&mut self, kind: IntegerKind) -> IntegerCondition {
        let (one, other) = (self.value(kind), self.value(kind));
        let (lowest, highest) = (one.min(other), one.max(other));
        let mask = (self.random.any() as u32) & (kind.highest() - kind.lowest()) as u32;
        let bits = mask & self.random.any() as u32;
        match self.below(if kind.has_ranges() { 8 } else { 4 }) {
            0 => IntegerCondition::Equal(one),
            1 => IntegerCondition::NotEqual(one),
            2 => IntegerCondition::Less(one),
            3 => IntegerCondition::AtLeast(one),
            4 => IntegerCondition::Within(lowest, highest),
            5 => IntegerCondition::Without(lowest, highest),
            6 => IntegerCondition::BitsEqual(mask, bits),
            _ => IntegerCondition::BitsDiffer(mask, bits),
        }
    }

    fn literal(&mut self) -> LiteralBytes {
        let offset = self.below(self.constants as usize + 1) as u32;
        LiteralBytes { offset, length: self.below((self.constants - offset + 1) as usize) as u32 }
    }

    fn operand(&mut self) -> RightOperand {
        if self.coin() {
            return RightOperand::Register(self.integer());
        }
        let small = self.below(70) as u64;
        RightOperand::Constant([small, small.wrapping_neg(), self.random.any(), 1 << 63][self.below(4)])
    }

    fn signs(&mut self, has_right: bool, has_result: bool) -> Signs {
        Signs { left: self.coin(), right: has_right && self.coin(), result: has_result && self.coin() }
    }

    fn orders(&mut self) -> OrderSet {
        OrderSet(self.below(16) as u8)
    }

    fn instruction(&mut self) -> Instruction {
        let skip = 0;
        match self.below(20) {
            0 => [Instruction::Keep, Instruction::Drop, Instruction::Jump { skip }][self.below(3)],
            1..=5 => {
                let field = self.field();
                Instruction::Test { field, condition: self.condition(field.kind), skip }
            }
            6 => Instruction::Load { to: self.integer(), field: self.field() },
            7 | 8 => {
                use ArithmeticOp::{Add, Divide, Multiply, Remainder, Subtract};
                let operation = [Add, Subtract, Multiply, Divide, Remainder][self.below(5)];
                let (to, left, right) = (self.integer(), self.integer(), self.operand());
                Instruction::Arithmetic { operation, to, left, right, signs: self.signs(true, true), skip }
            }
            9 | 10 => {
                use BitwiseOp::{And, Or, ShiftLeft, ShiftRight, Xor};
                let operation = [And, Or, Xor, ShiftLeft, ShiftRight][self.below(5)];
                Instruction::Bits { operation, to: self.integer(), left: self.integer(), right: self.operand(), skip }
            }
            11 | 12 => {
                let (left, right, signs) = (self.integer(), self.operand(), self.signs(true, false));
                Instruction::Compare { left, right, signs, orders: self.orders(), skip }
            }
            13 => {
                let offset = if self.below(16) == 0 { self.below(self.constants as usize) as u32 } else { 0 };
                Instruction::Scale {
                    to: self.integer(),
                    from: self.integer(),
                    signs: self.signs(false, true),
                    offset,
                    skip,
                }
            }
            14 | 15 => self.instruction_of_reals(),
            _ => self.instruction_of_texts(),
        }
    }

    fn instruction_of_reals(&mut self) -> Instruction {
        use RealArithmetic::{Add, Divide, Multiply, Subtract};
        match self.below(4) {
            0 => {
                let is_double = self.coin();
                let offset = self.offset(if is_double { 8 } else { 4 });
                Instruction::LoadReal { to: self.real(), is_double, offset }
            }
            1 => Instruction::ToReal { to: self.real(), from: self.integer(), is_signed: self.coin() },
            2 => {
                let operation = [Add, Subtract, Multiply, Divide][self.below(4)];
                Instruction::Reals { operation, to: self.real(), left: self.real(), right: self.real() }
            }
            _ => {
                let (left, right) = (self.real(), self.real());
                Instruction::CompareReals { left, right, orders: self.orders(), skip: 0 }
            }
        }
    }

    fn instruction_of_texts(&mut self) -> Instruction {
        let skip = 0;
        match self.below(6) {
            0 => {
                let capacity = self.below(self.size as usize) as u32;
                let place = TextPlace::Inline { offset: self.offset(capacity), capacity };
                Instruction::LoadText { to: self.text(), place }
            }
            1 => Instruction::LoadText { to: self.text(), place: TextPlace::Pointer { offset: self.offset(16) } },
            2 => {
                let (left, right) = (self.text(), self.text());
                Instruction::CompareTexts { left, right, orders: self.orders(), skip }
            }
            3 => {
                let (left, right) = (self.text(), self.literal());
                Instruction::CompareLiteral { left, right, orders: self.orders(), skip }
            }
            kind => {
                let literal = self.literal();
                let pattern = match (kind, self.coin()) {
                    (4, _) if self.below(16) == 0 => TextPattern::Like { offset: literal.offset, parts: 3 },
                    (4, _) => TextPattern::Like { offset: PATTERN, parts: 2 + self.below(PARTS as usize - 1) as u32 },
                    (_, true) => TextPattern::Is(literal),
                    (_, false) => TextPattern::Begins(literal),
                };
                Instruction::TestText { text: self.text(), pattern, jumps_if: self.coin(), skip }
            }
        }
    }
}
