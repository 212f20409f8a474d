//! Instructions of eBPF: 8 bytes each, or twice 8 with a constant of 64 bits; and their form.
//!
//! ```text
//! opcode 8 │ to 4 │ from 4 │ offset 16 │ constant 32          the numbers in the order of a little-endian machine
//! ```

use super::problem::MachineProblemKind;

/// The register with the end of the stack, which programs cannot change.
pub(super) const STACK_POINTER: u8 = 10;

/// The helper function that takes the place of an instruction that needs a field or type that is not there (CO-RE), as in libbpf.
pub const ABSENT_FIELD_CALL: u32 = 195_896_080;

/// Operations on two numbers; the first one is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AluOperation {
    /// The sum, modulo the width.
    Add,
    /// The difference, modulo the width.
    Subtract,
    /// The product, modulo the width.
    Multiply,
    /// The quotient, rounded to zero; 0 if the divisor is 0.
    Divide,
    /// The same of signed numbers; the smallest number by -1 is itself.
    DivideSigned,
    /// Bits of either.
    Or,
    /// Bits of both.
    And,
    /// Moved to higher bits, by the number modulo the width.
    ShiftLeft,
    /// Moved to lower bits, and zeros above.
    ShiftRight,
    /// The negative of the first number.
    Negate,
    /// The remainder; the first number if the divisor is 0.
    Remainder,
    /// The same of signed numbers.
    RemainderSigned,
    /// Bits of exactly one.
    Xor,
    /// The second number.
    Move,
    /// Moved to lower bits, and the sign above.
    ShiftRightSigned,
}

/// Comparisons of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpRelation {
    /// `==`
    Equal,
    /// `>`, unsigned
    Above,
    /// `>=`, unsigned
    AboveOrEqual,
    /// They have a bit in common.
    Overlap,
    /// `!=`
    NotEqual,
    /// `>`, signed
    Greater,
    /// `>=`, signed
    GreaterOrEqual,
    /// `<`, unsigned
    Below,
    /// `<=`, unsigned
    BelowOrEqual,
    /// `<`, signed
    Less,
    /// `<=`, signed
    LessOrEqual,
}

/// Operations on a number in memory that no other CPU sees half done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOperation {
    /// The sum is stored.
    Add,
    /// Bits of either are stored.
    Or,
    /// Bits of both are stored.
    And,
    /// Bits of exactly one are stored.
    Xor,
    /// The register is stored, and gets the number that was there.
    Exchange,
    /// The register is stored if r0 was there; r0 gets the number that was there.
    CompareExchange,
}

/// The order of bytes that a swap makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapOrder {
    /// Little-endian: nothing moves.
    Little,
    /// Big-endian.
    Big,
    /// Bytes turn around on every machine.
    Always,
}

/// The second number of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineOperand {
    /// A register's.
    Register(u8),
    /// A constant, with its sign.
    Constant(i32),
}

/// A constant of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideConstant {
    /// A number.
    Number(u64),
    /// A map, by its index in the list of maps.
    Map(u32),
    /// The address of so many bytes into the first value of a map.
    MapValue {
        /// Its index in the list of maps.
        map: u32,
        /// Bytes from the begin of the value.
        offset: u32,
    },
    /// A function, by the index of its first instruction.
    Function(u32),
}

/// An instruction. Targets are indexes of instructions, where a constant of 64 bits takes two.
#[expect(missing_docs, reason = "the text of a variant shows its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineInstruction {
    /// `to = to OPERATION from`. Results of 32 bits have zeros above.
    Alu { operation: AluOperation, is_wide: bool, to: u8, from: MachineOperand },
    /// `to = from`, of which the low bits are a signed number.
    SignExtend { to: u8, from: u8, bits: u8, is_wide: bool },
    /// The low bits of `to` in another order of bytes; zeros above.
    ByteSwap { to: u8, order: SwapOrder, bits: u8 },
    /// `to = *(base + offset)`
    Load { to: u8, base: u8, offset: i16, bytes: u8, is_signed: bool },
    /// `*(base + offset) = from`
    Store { base: u8, offset: i16, bytes: u8, from: MachineOperand },
    /// Changes a number in memory; `fetches`: `from` gets the number that was there.
    Atomic { operation: AtomicOperation, base: u8, offset: i16, bytes: u8, from: u8, fetches: bool },
    /// Goes on there.
    Jump { target: u32 },
    /// Goes on there if the relation holds.
    JumpIf { relation: JumpRelation, is_wide: bool, left: u8, right: MachineOperand, target: u32 },
    /// Calls a function of the program.
    Call { target: u32 },
    /// Calls a helper function, by its number.
    CallHelper { number: u32 },
    /// `to` is a constant of 64 bits, and this takes two instructions.
    LoadConstant { to: u8, value: WideConstant },
    /// The second half of such a constant.
    SecondHalf,
    /// Stops: the program needs a field or type that is not there.
    Absent,
    /// Ends the function, with r0 as its result.
    Exit,
}

/// The parts of 8 bytes.
#[derive(Clone, Copy)]
struct Word {
    opcode: u8,
    to: u8,
    from: u8,
    offset: i16,
    constant: i32,
}

impl Word {
    fn of(bytes: [u8; 8]) -> Self {
        let [opcode, registers, o0, o1, c0, c1, c2, c3] = bytes;
        Self {
            opcode,
            to: registers & 0xf,
            from: registers >> 4,
            offset: i16::from_le_bytes([o0, o1]),
            constant: i32::from_le_bytes([c0, c1, c2, c3]),
        }
    }

    fn uses_register(self) -> bool {
        self.opcode & 8 != 0
    }

    fn operand(self) -> MachineOperand {
        if self.uses_register() { MachineOperand::Register(self.from) } else { MachineOperand::Constant(self.constant) }
    }

    /// Bytes of memory that it is about.
    fn bytes(self) -> u8 {
        match self.opcode & 0x18 {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        }
    }

    /// Fails unless fields without a meaning are 0.
    fn has_only(self, is_so: bool) -> Result<(), MachineProblemKind> {
        if is_so { Ok(()) } else { Err(MachineProblemKind::UnusedField { opcode: self.opcode }) }
    }

    fn unknown(self) -> MachineProblemKind {
        MachineProblemKind::UnknownOpcode { opcode: self.opcode }
    }
}

/// Reads the instruction at an index, and the second half of a constant that it begins.
pub(super) fn decode(code: &[[u8; 8]], at: usize) -> Result<MachineInstruction, MachineProblemKind> {
    let word = Word::of(code[at]);
    match word.opcode & 7 {
        0 => constant(word, at, code.get(at + 1).copied()),
        1 => load(word),
        2 | 3 => store(word),
        4 | 7 => alu(word, word.opcode & 7 == 7),
        _ => jump(word, at, word.opcode & 7 == 5),
    }
}

fn constant(word: Word, at: usize, next: Option<[u8; 8]>) -> Result<MachineInstruction, MachineProblemKind> {
    match word.opcode {
        0x18 => {}
        0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 => return Err(MachineProblemKind::PacketLoad),
        _ => return Err(word.unknown()),
    }
    let next = Word::of(next.ok_or(MachineProblemKind::HalfConstant)?);
    let is_half = (next.opcode, next.to, next.from, next.offset) == (0, 0, 0, 0);
    if !is_half {
        return Err(MachineProblemKind::HalfConstant);
    }
    word.has_only(word.offset == 0)?;
    let (low, high) = (word.constant as u32, next.constant as u32);
    let value = match word.from {
        0 => WideConstant::Number(u64::from(high) << 32 | u64::from(low)),
        1 | 2 => return Err(MachineProblemKind::MapFile),
        3 => return Err(MachineProblemKind::KernelVariable),
        4 => WideConstant::Function(target_of(at, word.constant.into())?),
        5 => WideConstant::Map(low),
        6 => WideConstant::MapValue { map: low, offset: high },
        _ => return Err(word.unknown()),
    };
    Ok(MachineInstruction::LoadConstant { to: word.to, value })
}

fn load(word: Word) -> Result<MachineInstruction, MachineProblemKind> {
    let (is_signed, bytes) = (word.opcode & 0xe0 == 0x80, word.bytes());
    if !is_signed && word.opcode & 0xe0 != 0x60 || is_signed && bytes == 8 {
        return Err(word.unknown());
    }
    word.has_only(word.constant == 0)?;
    Ok(MachineInstruction::Load { to: word.to, base: word.from, offset: word.offset, bytes, is_signed })
}

fn store(word: Word) -> Result<MachineInstruction, MachineProblemKind> {
    let by_register = word.opcode & 7 == 3;
    let (base, offset, bytes) = (word.to, word.offset, word.bytes());
    match (word.opcode & 0xe0, by_register) {
        (0x60, true) => {
            word.has_only(word.constant == 0)?;
            Ok(MachineInstruction::Store { base, offset, bytes, from: MachineOperand::Register(word.from) })
        }
        (0x60, false) => {
            word.has_only(word.from == 0)?;
            Ok(MachineInstruction::Store { base, offset, bytes, from: MachineOperand::Constant(word.constant) })
        }
        (0xc0, true) => atomic(word),
        _ => Err(word.unknown()),
    }
}

fn atomic(word: Word) -> Result<MachineInstruction, MachineProblemKind> {
    let (bytes, offset) = (word.bytes(), word.offset);
    match word.constant {
        // Loads and stores that are ordered: here no other CPU is there to see the order.
        0x100 => return Ok(MachineInstruction::Load { to: word.to, base: word.from, offset, bytes, is_signed: false }),
        0x110 => {
            return Ok(MachineInstruction::Store {
                base: word.to,
                offset,
                bytes,
                from: MachineOperand::Register(word.from),
            });
        }
        _ => {}
    }
    let operation = match word.constant & !1 {
        0x00 => AtomicOperation::Add,
        0x40 => AtomicOperation::Or,
        0x50 => AtomicOperation::And,
        0xa0 => AtomicOperation::Xor,
        0xe0 if word.constant & 1 == 1 => AtomicOperation::Exchange,
        0xf0 if word.constant & 1 == 1 => AtomicOperation::CompareExchange,
        _ => return Err(MachineProblemKind::UnknownAtomic { operation: word.constant }),
    };
    if bytes < 4 {
        return Err(word.unknown());
    }
    let fetches = word.constant & 1 == 1;
    Ok(MachineInstruction::Atomic { operation, base: word.to, offset, bytes, from: word.from, fetches })
}

fn alu(word: Word, is_wide: bool) -> Result<MachineInstruction, MachineProblemKind> {
    let (to, from) = (word.to, word.operand());
    let is_signed = word.offset == 1;
    let operation = match word.opcode >> 4 {
        0x0 => AluOperation::Add,
        0x1 => AluOperation::Subtract,
        0x2 => AluOperation::Multiply,
        0x3 if is_signed => AluOperation::DivideSigned,
        0x3 => AluOperation::Divide,
        0x4 => AluOperation::Or,
        0x5 => AluOperation::And,
        0x6 => AluOperation::ShiftLeft,
        0x7 => AluOperation::ShiftRight,
        0x8 => AluOperation::Negate,
        0x9 if is_signed => AluOperation::RemainderSigned,
        0x9 => AluOperation::Remainder,
        0xa => AluOperation::Xor,
        0xb => AluOperation::Move,
        0xc => AluOperation::ShiftRightSigned,
        0xd => return swap(word, is_wide),
        _ => return Err(word.unknown()),
    };
    if operation == AluOperation::Move && word.offset != 0 {
        let bits = word.offset;
        word.has_only(word.uses_register() && word.constant == 0 && (matches!(bits, 8 | 16) || bits == 32 && is_wide))?;
        return Ok(MachineInstruction::SignExtend { to, from: word.from, bits: bits as u8, is_wide });
    }
    let divides = matches!(word.opcode >> 4, 0x3 | 0x9);
    word.has_only(word.offset == 0 || divides && is_signed)?;
    word.has_only(if word.uses_register() { word.constant == 0 } else { word.from == 0 })?;
    if operation == AluOperation::Negate {
        word.has_only(!word.uses_register() && word.constant == 0)?;
    }
    if let MachineOperand::Constant(constant) = from {
        if divides && constant == 0 {
            return Err(MachineProblemKind::DividesByZero);
        }
        let shifts = matches!(word.opcode >> 4, 0x6 | 0x7 | 0xc);
        if shifts && !(0..if is_wide { 64 } else { 32 }).contains(&constant) {
            return Err(MachineProblemKind::WideShift { bits: constant });
        }
    }
    Ok(MachineInstruction::Alu { operation, is_wide, to, from })
}

fn swap(word: Word, is_wide: bool) -> Result<MachineInstruction, MachineProblemKind> {
    let order = match (is_wide, word.uses_register()) {
        (false, false) => SwapOrder::Little,
        (false, true) => SwapOrder::Big,
        (true, false) => SwapOrder::Always,
        (true, true) => return Err(word.unknown()),
    };
    word.has_only(word.from == 0 && word.offset == 0 && matches!(word.constant, 16 | 32 | 64))?;
    Ok(MachineInstruction::ByteSwap { to: word.to, order, bits: word.constant as u8 })
}

/// The index that a jump at an index leads to.
fn target_of(at: usize, distance: i64) -> Result<u32, MachineProblemKind> {
    let target = at as i64 + 1 + distance;
    u32::try_from(target).map_err(|_| MachineProblemKind::JumpOutside { target })
}

fn jump(word: Word, at: usize, is_wide: bool) -> Result<MachineInstruction, MachineProblemKind> {
    let target = |distance: i64| target_of(at, distance);
    let relation = match word.opcode >> 4 {
        0x0 if !word.uses_register() => {
            word.has_only(word.to == 0 && word.from == 0)?;
            word.has_only(if is_wide { word.constant == 0 } else { word.offset == 0 })?;
            let distance = if is_wide { i64::from(word.offset) } else { i64::from(word.constant) };
            return Ok(MachineInstruction::Jump { target: target(distance)? });
        }
        0x8 if is_wide => return call(word, target),
        0x9 if word.opcode == 0x95 => {
            word.has_only((word.to, word.from, word.offset, word.constant) == (0, 0, 0, 0))?;
            return Ok(MachineInstruction::Exit);
        }
        0x1 => JumpRelation::Equal,
        0x2 => JumpRelation::Above,
        0x3 => JumpRelation::AboveOrEqual,
        0x4 => JumpRelation::Overlap,
        0x5 => JumpRelation::NotEqual,
        0x6 => JumpRelation::Greater,
        0x7 => JumpRelation::GreaterOrEqual,
        0xa => JumpRelation::Below,
        0xb => JumpRelation::BelowOrEqual,
        0xc => JumpRelation::Less,
        0xd => JumpRelation::LessOrEqual,
        _ => return Err(word.unknown()),
    };
    word.has_only(if word.uses_register() { word.constant == 0 } else { word.from == 0 })?;
    let (left, right, target) = (word.to, word.operand(), target(word.offset.into())?);
    Ok(MachineInstruction::JumpIf { relation, is_wide, left, right, target })
}

fn call(
    word: Word,
    target: impl Fn(i64) -> Result<u32, MachineProblemKind>,
) -> Result<MachineInstruction, MachineProblemKind> {
    if word.uses_register() {
        return Err(MachineProblemKind::IndirectCall);
    }
    match word.from {
        0 if word.constant as u32 == ABSENT_FIELD_CALL => Ok(MachineInstruction::Absent),
        0 => {
            word.has_only(word.to == 0 && word.offset == 0)?;
            Ok(MachineInstruction::CallHelper { number: word.constant as u32 })
        }
        1 => {
            word.has_only(word.to == 0 && word.offset == 0)?;
            Ok(MachineInstruction::Call { target: target(word.constant.into())? })
        }
        2 => Err(MachineProblemKind::KernelCall),
        _ => Err(word.unknown()),
    }
}
