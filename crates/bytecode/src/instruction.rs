//! Instructions as values, and as their sixteen bytes. Code that writes programs encodes, the
//! validator and the disassembler decode, and the interpreter reads the bytes directly.
//!
//! ```text
//! byte  0   1  2     4      6      8              16
//!       op  a  skip  b  c   needs  immediate
//!                    offset
//! ```
//!
//! Unused bytes of an instruction are 0, so that each instruction has only one encoding.

use crate::operands::{
    ArithmeticOp, BitwiseOp, INTEGERS, IntegerCondition, IntegerField, IntegerKind, LiteralBytes, OrderSet, REALS,
    RealArithmetic, RegisterSet, RightOperand, Signs, TEXTS, TextPattern, TextPlace, arithmetic, bitwise,
    real_arithmetic,
};

/// Bytes of an instruction.
pub const INSTRUCTION_BYTES: usize = 16;

/// An instruction as bytes.
pub(crate) type Bytes = [u8; INSTRUCTION_BYTES];

/// Opcode numbers. Tests of an integer argument are `FIELD | kind << 3 | action`; loads are
/// `LOAD | kind`.
pub(crate) mod opcode {
    pub(crate) const KEEP: u8 = 0x01;
    pub(crate) const DROP: u8 = 0x02;
    pub(crate) const JUMP: u8 = 0x03;
    pub(crate) const CONSTANT: u8 = 0x10;
    pub(crate) const REAL_CONSTANT: u8 = 0x11;
    pub(crate) const TO_REAL: u8 = 0x12;
    pub(crate) const SCALE: u8 = 0x13;
    pub(crate) const LOAD_F32: u8 = 0x14;
    pub(crate) const LOAD_F64: u8 = 0x15;
    pub(crate) const LOAD_INLINE: u8 = 0x16;
    pub(crate) const LOAD_POINTER: u8 = 0x17;
    pub(crate) const COMPARE: u8 = 0x18;
    pub(crate) const COMPARE_CONSTANT: u8 = 0x19;
    pub(crate) const COMPARE_REALS: u8 = 0x1A;
    pub(crate) const COMPARE_TEXTS: u8 = 0x1B;
    pub(crate) const COMPARE_LITERAL: u8 = 0x1C;
    pub(crate) const TEXT_IS: u8 = 0x1D;
    pub(crate) const TEXT_BEGINS: u8 = 0x1E;
    pub(crate) const TEXT_LIKE: u8 = 0x1F;
    pub(crate) const ARITHMETIC: u8 = 0x20;
    pub(crate) const ARITHMETIC_CONSTANT: u8 = 0x28;
    pub(crate) const BITS: u8 = 0x30;
    pub(crate) const BITS_CONSTANT: u8 = 0x38;
    pub(crate) const REALS: u8 = 0x40;
    pub(crate) const LOAD: u8 = 0x50;
    pub(crate) const FIELD: u8 = 0x80;
}

/// An instruction. `skip` is the number of instructions that a jump skips: jumps only go forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Instruction {
    /// The event is kept.
    Keep,
    /// The event is not kept.
    Drop,
    /// Jumps.
    Jump { skip: u16 },
    /// Jumps if an integer argument satisfies the condition.
    Test { field: IntegerField, condition: IntegerCondition, skip: u16 },
    /// Loads an integer argument, extended to 64 bits.
    Load { to: u8, field: IntegerField },
    /// Loads a constant.
    Constant { to: u8, value: u64 },
    /// Jumps if the result does not fit into 64 bits of its signedness, or a divisor is 0.
    Arithmetic { operation: ArithmeticOp, to: u8, left: u8, right: RightOperand, signs: Signs, skip: u16 },
    /// Jumps if a shift count is above 63; other bitwise operations never jump.
    Bits { operation: BitwiseOp, to: u8, left: u8, right: RightOperand, skip: u16 },
    /// `floor(from * multiply / divide) + add`; the three operands are 8-byte constants. Uses
    /// `left` and `result` of the signs. Jumps like arithmetic.
    Scale { to: u8, from: u8, signs: Signs, offset: u32, skip: u16 },
    /// Jumps if the order of two integers is one of the set; `left` and `right` of the signs.
    Compare { left: u8, right: RightOperand, signs: Signs, orders: OrderSet, skip: u16 },
    /// Loads a real of 4 or 8 bytes in the machine's byte order.
    LoadReal { to: u8, is_double: bool, offset: u16 },
    /// Loads the bits of a double.
    RealConstant { to: u8, bits: u64 },
    /// The real nearest to an integer.
    ToReal { to: u8, from: u8, is_signed: bool },
    /// Arithmetic of doubles.
    Reals { operation: RealArithmetic, to: u8, left: u8, right: u8 },
    /// Jumps if the order of two reals is one of the set.
    CompareReals { left: u8, right: u8, orders: OrderSet, skip: u16 },
    /// Loads the address and length of a text.
    LoadText { to: u8, place: TextPlace },
    /// Jumps if the order of two texts is one of the set.
    CompareTexts { left: u8, right: u8, orders: OrderSet, skip: u16 },
    /// Jumps if the order of a text and a literal is one of the set.
    CompareLiteral { left: u8, right: LiteralBytes, orders: OrderSet, skip: u16 },
    /// Jumps if a text matches the pattern, or if it does not.
    TestText { text: u8, pattern: TextPattern, jumps_if: bool, skip: u16 },
}

/// The parts of an encoded instruction.
#[derive(Clone, Copy, Debug, Default)]
struct InstructionParts {
    op: u8,
    a: u8,
    skip: u16,
    b: u8,
    c: u8,
    immediate: u64,
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn halves(immediate: u64) -> (u32, u32) {
    (immediate as u32, (immediate >> 32) as u32)
}

impl InstructionParts {
    fn at(self, offset: u16) -> Self {
        let [b, c] = offset.to_le_bytes();
        Self { b, c, ..self }
    }

    fn offset(self) -> u16 {
        u16::from_le_bytes([self.b, self.c])
    }

    /// Adds a right operand, with one opcode for registers and one for constants.
    fn with(self, right: RightOperand, op: u8, op_constant: u8) -> Self {
        match right {
            RightOperand::Register(number) => Self { op, c: number, ..self },
            RightOperand::Constant(immediate) => Self { op: op_constant, immediate, ..self },
        }
    }

    /// Bit 3 of the opcode distinguishes constants from registers.
    fn right(self) -> RightOperand {
        if self.op & 8 == 0 {
            RightOperand::Register(self.c % INTEGERS)
        } else {
            RightOperand::Constant(self.immediate)
        }
    }

    fn bytes(self, needs: RegisterSet) -> [u8; INSTRUCTION_BYTES] {
        let mut bytes = [0; INSTRUCTION_BYTES];
        (bytes[0], bytes[1], bytes[4], bytes[5]) = (self.op, self.a, self.b, self.c);
        bytes[2..4].copy_from_slice(&self.skip.to_le_bytes());
        bytes[6..8].copy_from_slice(&needs.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.immediate.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8; INSTRUCTION_BYTES]) -> Self {
        let [op, a, s0, s1, b, c, _, _, i0, i1, i2, i3, i4, i5, i6, i7] = *bytes;
        let immediate = u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
        Self { op, a, skip: u16::from_le_bytes([s0, s1]), b, c, immediate }
    }
}

/// The set of registers that an instruction's bytes name as needed.
pub(crate) fn needs(bytes: &[u8; INSTRUCTION_BYTES]) -> RegisterSet {
    RegisterSet(u16::from_le_bytes([bytes[6], bytes[7]]))
}

/// Number of instructions that a jump skips.
#[inline]
pub(crate) fn skip(instruction: &Bytes) -> usize {
    u16::from_le_bytes([instruction[2], instruction[3]]).into()
}

/// The four bytes at a place of the instruction.
#[inline]
pub(crate) fn half<const AT: usize>(instruction: &Bytes) -> u32 {
    u32::from_le_bytes([instruction[AT], instruction[AT + 1], instruction[AT + 2], instruction[AT + 3]])
}

/// The immediate as one number.
#[inline]
pub(crate) fn immediate(instruction: &Bytes) -> u64 {
    let [_, _, _, _, _, _, _, _, bytes @ ..] = *instruction;
    u64::from_le_bytes(bytes)
}

/// The bytes at the instruction's offset.
#[inline(always)]
pub(crate) fn read<const N: usize>(instruction: &Bytes, arguments: &[u8]) -> Option<[u8; N]> {
    let offset = usize::from(u16::from_le_bytes([instruction[4], instruction[5]]));
    arguments.get(offset..)?.first_chunk().copied()
}

impl Instruction {
    /// Encodes the instruction. `needs` is the set of registers that it and the instructions after
    /// it read before they write them.
    #[must_use]
    pub fn encode(&self, needs: RegisterSet) -> [u8; INSTRUCTION_BYTES] {
        self.parts().bytes(needs)
    }

    fn parts(&self) -> InstructionParts {
        let parts = InstructionParts { skip: self.skip().unwrap_or(0), ..InstructionParts::default() };
        match *self {
            Self::Keep => InstructionParts { op: opcode::KEEP, ..parts },
            Self::Drop => InstructionParts { op: opcode::DROP, ..parts },
            Self::Jump { .. } => InstructionParts { op: opcode::JUMP, ..parts },
            Self::Test { field, condition, .. } => test_parts(parts, field, condition),
            Self::Load { to, field } => {
                InstructionParts { op: opcode::LOAD | field.kind.0, a: to, ..parts }.at(field.offset)
            }
            Self::Constant { to, value } => InstructionParts { op: opcode::CONSTANT, a: to, immediate: value, ..parts },
            Self::Arithmetic { operation, to, left, right, signs, .. } => {
                let (op, op_constant) = (opcode::ARITHMETIC, opcode::ARITHMETIC_CONSTANT);
                let parts = InstructionParts { a: to | signs.bits() << 4, b: left, ..parts };
                parts.with(right, op | operation as u8, op_constant | operation as u8)
            }
            Self::Bits { operation, to, left, right, .. } => {
                let (op, op_constant) = (opcode::BITS, opcode::BITS_CONSTANT);
                InstructionParts { a: to, b: left, ..parts }.with(
                    right,
                    op | operation as u8,
                    op_constant | operation as u8,
                )
            }
            Self::Scale { to, from, signs, offset, .. } => InstructionParts {
                op: opcode::SCALE,
                a: to | signs.bits() << 4,
                b: from,
                immediate: offset.into(),
                ..parts
            },
            Self::Compare { left, right, signs, orders, .. } => {
                InstructionParts { a: orders.0 | signs.bits() << 4, b: left, ..parts }.with(
                    right,
                    opcode::COMPARE,
                    opcode::COMPARE_CONSTANT,
                )
            }
            _ => self.parts_of_reals_and_texts(parts),
        }
    }

    fn parts_of_reals_and_texts(&self, parts: InstructionParts) -> InstructionParts {
        match *self {
            Self::LoadReal { to, is_double, offset } => {
                let op = if is_double { opcode::LOAD_F64 } else { opcode::LOAD_F32 };
                InstructionParts { op, a: to, ..parts }.at(offset)
            }
            Self::RealConstant { to, bits } => {
                InstructionParts { op: opcode::REAL_CONSTANT, a: to, immediate: bits, ..parts }
            }
            Self::ToReal { to, from, is_signed } => {
                InstructionParts { op: opcode::TO_REAL, a: to | u8::from(is_signed) << 4, b: from, ..parts }
            }
            Self::Reals { operation, to, left, right } => {
                InstructionParts { op: opcode::REALS | operation as u8, a: to, b: left, c: right, ..parts }
            }
            Self::CompareReals { left, right, orders, .. } => {
                InstructionParts { op: opcode::COMPARE_REALS, a: orders.0, b: left, c: right, ..parts }
            }
            Self::LoadText { to, place: TextPlace::Inline { offset, capacity } } => {
                InstructionParts { op: opcode::LOAD_INLINE, a: to, immediate: capacity.into(), ..parts }.at(offset)
            }
            Self::LoadText { to, place: TextPlace::Pointer { offset } } => {
                InstructionParts { op: opcode::LOAD_POINTER, a: to, ..parts }.at(offset)
            }
            Self::CompareTexts { left, right, orders, .. } => {
                InstructionParts { op: opcode::COMPARE_TEXTS, a: orders.0, b: left, c: right, ..parts }
            }
            Self::CompareLiteral { left, right, orders, .. } => {
                let immediate = pair(right.offset, right.length);
                InstructionParts { op: opcode::COMPARE_LITERAL, a: orders.0, b: left, immediate, ..parts }
            }
            Self::TestText { text, pattern, jumps_if, .. } => {
                let (op, immediate) = match pattern {
                    TextPattern::Is(literal) => (opcode::TEXT_IS, pair(literal.offset, literal.length)),
                    TextPattern::Begins(literal) => (opcode::TEXT_BEGINS, pair(literal.offset, literal.length)),
                    TextPattern::Like { offset, parts } => (opcode::TEXT_LIKE, pair(offset, parts)),
                };
                InstructionParts { op, a: u8::from(jumps_if), b: text, immediate, ..parts }
            }
            _ => parts,
        }
    }

    /// Decodes an instruction. Unused bytes are ignored, and register numbers are reduced to
    /// existing registers; encoding the result again reveals both.
    pub(crate) fn decode(bytes: &[u8; INSTRUCTION_BYTES]) -> Option<Self> {
        let parts = InstructionParts::of(bytes);
        let InstructionParts { op, a, skip, b, immediate, .. } = parts;
        let (to, left, right, signs) = (a % INTEGERS, b % INTEGERS, parts.right(), Signs::of(a >> 4));
        Some(match op {
            opcode::KEEP => Self::Keep,
            opcode::DROP => Self::Drop,
            opcode::JUMP => Self::Jump { skip },
            opcode::FIELD.. => return field_instruction(parts),
            opcode::LOAD..0x60 => Self::Load {
                to,
                field: IntegerField { kind: IntegerKind::of(op - opcode::LOAD)?, offset: parts.offset() },
            },
            opcode::CONSTANT => Self::Constant { to, value: immediate },
            0x20..0x30 => Self::Arithmetic { operation: arithmetic(op & 7)?, to, left, right, signs, skip },
            0x30..0x40 => Self::Bits { operation: bitwise(op & 7)?, to, left, right, skip },
            opcode::SCALE => Self::Scale { to, from: left, signs, offset: immediate as u32, skip },
            opcode::COMPARE | opcode::COMPARE_CONSTANT => {
                let right = if op == opcode::COMPARE { RightOperand::Register(parts.c % INTEGERS) } else { right };
                Self::Compare { left, right, signs, orders: OrderSet(a & 15), skip }
            }
            opcode::TO_REAL => Self::ToReal { to: a % REALS, from: left, is_signed: a >> 4 != 0 },
            _ => return real_instruction(parts).or_else(|| text_instruction(parts)),
        })
    }

    /// Number of instructions that its jump skips; `None`: it never jumps.
    #[must_use]
    pub fn skip(&self) -> Option<u16> {
        match *self {
            Self::Jump { skip }
            | Self::Test { skip, .. }
            | Self::Arithmetic { skip, .. }
            | Self::Bits { operation: BitwiseOp::ShiftLeft | BitwiseOp::ShiftRight, skip, .. }
            | Self::Scale { skip, .. }
            | Self::Compare { skip, .. }
            | Self::CompareReals { skip, .. }
            | Self::CompareTexts { skip, .. }
            | Self::CompareLiteral { skip, .. }
            | Self::TestText { skip, .. } => Some(skip),
            _ => None,
        }
    }

    /// Sets the number of instructions that its jump skips; does nothing if it never jumps.
    pub fn set_skip(&mut self, count: u16) {
        match self {
            Self::Jump { skip }
            | Self::Test { skip, .. }
            | Self::Arithmetic { skip, .. }
            | Self::Bits { skip, .. }
            | Self::Scale { skip, .. }
            | Self::Compare { skip, .. }
            | Self::CompareReals { skip, .. }
            | Self::CompareTexts { skip, .. }
            | Self::CompareLiteral { skip, .. }
            | Self::TestText { skip, .. } => *skip = count,
            _ => {}
        }
    }

    /// The test that jumps exactly when this one does not; `None`: it is not a test.
    #[must_use]
    pub fn inverted(mut self) -> Option<Self> {
        match &mut self {
            Self::Test { condition, .. } => *condition = condition.inverted(),
            Self::Compare { orders, .. }
            | Self::CompareReals { orders, .. }
            | Self::CompareTexts { orders, .. }
            | Self::CompareLiteral { orders, .. } => *orders = orders.inverted(),
            Self::TestText { jumps_if, .. } => *jumps_if = !*jumps_if,
            _ => return None,
        }
        Some(self)
    }

    /// Whether execution may continue with the next instruction.
    #[must_use]
    pub fn falls_through(&self) -> bool {
        !matches!(self, Self::Keep | Self::Drop | Self::Jump { .. })
    }

    /// Registers that it reads.
    #[must_use]
    pub fn reads(&self) -> RegisterSet {
        let operand = |right: RightOperand| match right {
            RightOperand::Register(number) => RegisterSet::integer(number),
            RightOperand::Constant(_) => RegisterSet::default(),
        };
        match *self {
            Self::Arithmetic { left, right, .. }
            | Self::Bits { left, right, .. }
            | Self::Compare { left, right, .. } => RegisterSet::integer(left).or(operand(right)),
            Self::Scale { from, .. } | Self::ToReal { from, .. } => RegisterSet::integer(from),
            Self::Reals { left, right, .. } | Self::CompareReals { left, right, .. } => {
                RegisterSet::real(left).or(RegisterSet::real(right))
            }
            Self::CompareTexts { left, right, .. } => RegisterSet::text(left).or(RegisterSet::text(right)),
            Self::CompareLiteral { left, .. } => RegisterSet::text(left),
            Self::TestText { text, .. } => RegisterSet::text(text),
            _ => RegisterSet::default(),
        }
    }

    /// Register that it writes if it does not jump.
    #[must_use]
    pub fn writes(&self) -> RegisterSet {
        match *self {
            Self::Load { to, .. }
            | Self::Constant { to, .. }
            | Self::Arithmetic { to, .. }
            | Self::Bits { to, .. }
            | Self::Scale { to, .. } => RegisterSet::integer(to),
            Self::LoadReal { to, .. }
            | Self::RealConstant { to, .. }
            | Self::ToReal { to, .. }
            | Self::Reals { to, .. } => RegisterSet::real(to),
            Self::LoadText { to, .. } => RegisterSet::text(to),
            _ => RegisterSet::default(),
        }
    }
}

fn test_parts(parts: InstructionParts, field: IntegerField, condition: IntegerCondition) -> InstructionParts {
    let IntegerField { kind, offset } = field;
    let one = |value: i128| if kind.has_ranges() { u64::from(value as u32) } else { value as u64 };
    let two = |lowest: i128, highest: i128| pair(lowest as u32, highest as u32);
    let (action, immediate) = match condition {
        IntegerCondition::Equal(value) => (0, one(value)),
        IntegerCondition::NotEqual(value) => (1, one(value)),
        IntegerCondition::Less(value) => (2, one(value)),
        IntegerCondition::AtLeast(value) => (3, one(value)),
        IntegerCondition::Within(lowest, highest) => (4, two(lowest, highest)),
        IntegerCondition::Without(lowest, highest) => (5, two(lowest, highest)),
        IntegerCondition::BitsEqual(mask, value) => (6, pair(mask, value)),
        IntegerCondition::BitsDiffer(mask, value) => (7, pair(mask, value)),
    };
    InstructionParts { op: opcode::FIELD | kind.0 << 3 | action, immediate, ..parts }.at(offset)
}

fn field_instruction(parts: InstructionParts) -> Option<Instruction> {
    let kind = IntegerKind::of((parts.op & 0x7F) >> 3)?;
    let (first, second) = halves(parts.immediate);
    let one = if kind.has_ranges() { kind.half(first) } else { kind.value(parts.immediate) };
    let (lowest, highest) = (kind.half(first), kind.half(second));
    let field = IntegerField { kind, offset: parts.offset() };
    let condition = match parts.op & 7 {
        0 => IntegerCondition::Equal(one),
        1 => IntegerCondition::NotEqual(one),
        2 => IntegerCondition::Less(one),
        3 => IntegerCondition::AtLeast(one),
        4 if kind.has_ranges() => IntegerCondition::Within(lowest, highest),
        5 if kind.has_ranges() => IntegerCondition::Without(lowest, highest),
        6 if kind.has_ranges() => IntegerCondition::BitsEqual(first, second),
        7 if kind.has_ranges() => IntegerCondition::BitsDiffer(first, second),
        _ => return None,
    };
    Some(Instruction::Test { field, condition, skip: parts.skip })
}

fn real_instruction(parts: InstructionParts) -> Option<Instruction> {
    let InstructionParts { op, a, skip, b, c, immediate } = parts;
    let (to, left, right) = (a % REALS, b % REALS, c % REALS);
    Some(match op {
        opcode::LOAD_F32 => Instruction::LoadReal { to, is_double: false, offset: parts.offset() },
        opcode::LOAD_F64 => Instruction::LoadReal { to, is_double: true, offset: parts.offset() },
        opcode::REAL_CONSTANT => Instruction::RealConstant { to, bits: immediate },
        0x40..0x44 => Instruction::Reals { operation: real_arithmetic(op & 7)?, to, left, right },
        opcode::COMPARE_REALS => Instruction::CompareReals { left, right, orders: OrderSet(a & 15), skip },
        _ => return None,
    })
}

fn text_instruction(parts: InstructionParts) -> Option<Instruction> {
    let InstructionParts { op, a, skip, b, c, immediate } = parts;
    let (to, left, right, orders) = (a % TEXTS, b % TEXTS, c % TEXTS, OrderSet(a & 15));
    let (first, second) = halves(immediate);
    let literal = LiteralBytes { offset: first, length: second };
    let test = |pattern| Instruction::TestText { text: left, pattern, jumps_if: a & 1 != 0, skip };
    Some(match op {
        opcode::LOAD_INLINE => {
            Instruction::LoadText { to, place: TextPlace::Inline { offset: parts.offset(), capacity: first } }
        }
        opcode::LOAD_POINTER => Instruction::LoadText { to, place: TextPlace::Pointer { offset: parts.offset() } },
        opcode::COMPARE_TEXTS => Instruction::CompareTexts { left, right, orders, skip },
        opcode::COMPARE_LITERAL => Instruction::CompareLiteral { left, right: literal, orders, skip },
        opcode::TEXT_IS => test(TextPattern::Is(literal)),
        opcode::TEXT_BEGINS => test(TextPattern::Begins(literal)),
        opcode::TEXT_LIKE => test(TextPattern::Like { offset: first, parts: second }),
        _ => return None,
    })
}
