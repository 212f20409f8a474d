//! eBPF instructions as plain values: 8 bytes each in the kernel, the text of `bpftool` for people.
//!
//! ```text
//! opcode   destination, source   offset   immediate
//! 8 bits   4 + 4 bits            16 bits  32 bits       constants of 64 bits take two instructions
//! ```
//!
//! Only the instructions that filters need are here: no helper calls, no stores, no jumps back. All
//! arithmetic is of 64 bits.

use std::fmt::{self, Display, Formatter};

use kymo_units::ByteOrder;

/// One instruction, or half of one with a constant of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BpfInstruction {
    /// Class, operation and kind of operand.
    pub opcode: u8,
    /// Register that is written or compared: 0 to 10.
    pub destination: u8,
    /// Register that is read: 0 to 10.
    pub source: u8,
    /// Of a jump, in instructions behind this one; of a load, in bytes.
    pub offset: i16,
    /// A constant.
    pub immediate: i32,
}

/// One of the eleven registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BpfRegister(pub u8);

/// The second operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BpfOperand {
    Register(BpfRegister),
    /// Sign-extended to 64 bits.
    Constant(i32),
}

/// Operations on registers; the values are those of the opcode's upper bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    /// Unsigned.
    Divide = 0x30,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    /// Unsigned.
    Remainder = 0x90,
    Xor = 0xa0,
    Move = 0xb0,
    ShiftRightSigned = 0xc0,
}

/// The condition of a jump on its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum JumpCondition {
    Equal = 0x10,
    NotEqual = 0x50,
    Greater = 0x20,
    GreaterOrEqual = 0x30,
    Less = 0xa0,
    LessOrEqual = 0xb0,
    GreaterSigned = 0x60,
    GreaterOrEqualSigned = 0x70,
    LessSigned = 0xc0,
    LessOrEqualSigned = 0xd0,
}

const CLASS: u8 = 0x07;
const CLASS_LOAD_CONSTANT: u8 = 0x00;
const CLASS_LOAD: u8 = 0x01;
const CLASS_JUMP: u8 = 0x05;
const CLASS_OPERATION: u8 = 0x07;
const CLASS_BYTE_ORDER: u8 = 0x04;
/// The operand is a register; of [`BYTE_SWAP`]: to big-endian.
const BY_REGISTER: u8 = 0x08;
const LOAD_CONSTANT: u8 = 0x18;
const MODE_MEMORY: u8 = 0x60;
const BYTE_SWAP: u8 = 0xd0;
const EXIT: u8 = 0x95;

impl JumpCondition {
    pub(super) fn is_signed(self) -> bool {
        use JumpCondition::{GreaterOrEqualSigned, GreaterSigned, LessOrEqualSigned, LessSigned};
        matches!(self, GreaterSigned | GreaterOrEqualSigned | LessSigned | LessOrEqualSigned)
    }

    /// The condition that holds exactly where this one does not.
    pub(super) fn inverted(self) -> Self {
        match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::GreaterSigned => Self::LessOrEqualSigned,
            Self::GreaterOrEqualSigned => Self::LessSigned,
            Self::LessSigned => Self::GreaterOrEqualSigned,
            Self::LessOrEqualSigned => Self::GreaterSigned,
        }
    }
}

impl BpfInstruction {
    fn new(opcode: u8, destination: BpfRegister, operand: BpfOperand) -> Self {
        let (by, source, immediate) = match operand {
            BpfOperand::Register(BpfRegister(source)) => (BY_REGISTER, source, 0),
            BpfOperand::Constant(value) => (0, 0, value),
        };
        Self { opcode: opcode | by, destination: destination.0, source, offset: 0, immediate }
    }

    pub(super) fn operation(operation: Operation, destination: BpfRegister, operand: BpfOperand) -> Self {
        Self::new(CLASS_OPERATION | operation as u8, destination, operand)
    }

    /// The two instructions that load a constant of 64 bits.
    pub(super) fn constant(destination: BpfRegister, value: u64) -> [Self; 2] {
        let half = |opcode, destination, value| Self { opcode, destination, source: 0, offset: 0, immediate: value };
        [half(LOAD_CONSTANT, destination.0, value as i32), half(CLASS_LOAD_CONSTANT, 0, (value >> 32) as i32)]
    }

    /// Loads 1, 2, 4 or 8 bytes, with zeros above them.
    pub(super) fn load(destination: BpfRegister, base: BpfRegister, offset: i16, bytes: u8) -> Self {
        let size = match bytes {
            1 => 0x10,
            2 => 0x08,
            4 => 0x00,
            _ => 0x18,
        };
        let opcode = CLASS_LOAD | MODE_MEMORY | size;
        Self { opcode, destination: destination.0, source: base.0, offset, immediate: 0 }
    }

    /// Makes a number of 2, 4 or 8 bytes in this order one of the machine.
    pub(super) fn byte_order(destination: BpfRegister, bytes: u8, order: ByteOrder) -> Self {
        let to_big = if order == ByteOrder::Big { BY_REGISTER } else { 0 };
        let opcode = CLASS_BYTE_ORDER | BYTE_SWAP | to_big;
        Self { opcode, destination: destination.0, source: 0, offset: 0, immediate: i32::from(bytes) * 8 }
    }

    /// Its target is not known yet.
    pub(super) fn jump_if(condition: JumpCondition, left: BpfRegister, right: BpfOperand) -> Self {
        Self::new(CLASS_JUMP | condition as u8, left, right)
    }

    pub(super) fn jump() -> Self {
        Self::new(CLASS_JUMP, BpfRegister(0), BpfOperand::Constant(0))
    }

    pub(super) fn exit() -> Self {
        Self::new(EXIT, BpfRegister(0), BpfOperand::Constant(0))
    }

    /// The instruction behind it is not run after it.
    pub(super) fn is_end(self) -> bool {
        self.opcode == EXIT || self.opcode == CLASS_JUMP
    }

    /// The instruction behind it is its second half.
    pub(super) fn is_first_half(self) -> bool {
        self.opcode == LOAD_CONSTANT
    }

    /// As the kernel of this machine takes it.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 8] {
        let is_big = cfg!(target_endian = "big");
        let (low, high) = if is_big { (self.source, self.destination) } else { (self.destination, self.source) };
        let [offset_0, offset_1] = self.offset.to_ne_bytes();
        let [immediate_0, immediate_1, immediate_2, immediate_3] = self.immediate.to_ne_bytes();
        let registers = low | high << 4;
        [self.opcode, registers, offset_0, offset_1, immediate_0, immediate_1, immediate_2, immediate_3]
    }
}

impl Display for BpfInstruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { opcode, destination, source, offset, immediate } = *self;
        match opcode & CLASS {
            CLASS_LOAD_CONSTANT if self.is_first_half() => write!(f, "r{destination} = {immediate:#x} ll"),
            CLASS_LOAD_CONSTANT => write!(f, "     {immediate:#x} above"),
            CLASS_LOAD => {
                let bits = [32, 16, 8, 64][usize::from(opcode >> 3 & 3)];
                write!(f, "r{destination} = *(u{bits} *)(r{source} + {offset})")
            }
            CLASS_BYTE_ORDER => {
                let order = if opcode & BY_REGISTER == 0 { "le" } else { "be" };
                write!(f, "r{destination} = {order}{immediate} r{destination}")
            }
            CLASS_JUMP if opcode == EXIT => f.write_str("exit"),
            CLASS_JUMP if opcode == CLASS_JUMP => write!(f, "goto {offset:+}"),
            CLASS_JUMP => {
                write!(f, "if r{destination} {} ", condition_symbol(opcode & 0xf0))?;
                self.write_operand(f)?;
                write!(f, " goto {offset:+}")
            }
            _ => {
                write!(f, "r{destination} {} ", operation_symbol(opcode & 0xf0))?;
                self.write_operand(f)
            }
        }
    }
}

impl BpfInstruction {
    fn write_operand(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.opcode & BY_REGISTER == 0 { self.immediate.fmt(f) } else { write!(f, "r{}", self.source) }
    }
}

/// Comparisons of signed numbers have an `s` before them, as `bpftool` writes them.
fn condition_symbol(bits: u8) -> &'static str {
    match bits {
        0x10 => "==",
        0x20 => ">",
        0x30 => ">=",
        0x50 => "!=",
        0x60 => "s>",
        0x70 => "s>=",
        0xa0 => "<",
        0xb0 => "<=",
        0xc0 => "s<",
        _ => "s<=",
    }
}

fn operation_symbol(bits: u8) -> &'static str {
    match bits {
        0x00 => "+=",
        0x10 => "-=",
        0x20 => "*=",
        0x30 => "/=",
        0x40 => "|=",
        0x50 => "&=",
        0x60 => "<<=",
        0x70 => ">>=",
        0x90 => "%=",
        0xa0 => "^=",
        0xb0 => "=",
        _ => "s>>=",
    }
}
