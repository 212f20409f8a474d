//! The validator: its rules guarantee that running a program can neither crash, nor loop, nor read
//! outside.
//!
//! Jumps go forward by a count of instructions, so nothing loops and no jump lands inside an
//! instruction. It remains to check that offsets, literals and targets exist, and that registers
//! are written before they are read. The last check usually takes a state for each target of a
//! jump; here each instruction carries its *needs*: the registers that it and the instructions
//! after it read before they write them. Then one look at each instruction and its successors is
//! enough:
//!
//! ```text
//! needs(first) is nothing
//! needs(i)  holds  what i reads,  needs(i + 1) but what i writes,  needs(target of i)
//! ```
//!
//! By induction over the executed path, a register that is read was written before. Registers of
//! integers, reals and texts are separate, so that their types need no proof.

use core::fmt;

use crate::BytecodeProgram;
use crate::instruction::{INSTRUCTION_BYTES, Instruction, needs};
use crate::operands::{IntegerCondition, IntegerKind, LiteralBytes, RegisterSet, TextPattern, TextPlace};

/// First bytes of a program.
pub const MAGIC: [u8; 4] = *b"kyBC";
/// Version of the format.
pub const VERSION: u16 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Maximum number of instructions of a program.
pub const INSTRUCTIONS_MAX: usize = 1 << 14;
/// Maximum bytes of constants.
pub const CONSTANTS_MAX: usize = 1 << 16;
/// Maximum number of parts of a pattern.
pub const PARTS_MAX: u32 = 255;
/// Maximum bytes of an argument structure: the range of a two-byte offset.
pub const ARGUMENTS_MAX: u32 = 1 << 16;

/// Reason why bytes are rejected, and the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateError {
    /// First byte of the invalid header or instruction.
    pub at: usize,
    /// The error at that place.
    pub kind: ValidateErrorKind,
}

/// Kinds of errors in a program's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValidateErrorKind {
    /// There are fewer bytes than a header has.
    Header,
    /// They do not begin with [`MAGIC`].
    Magic([u8; 4]),
    /// They have another version.
    Version(u16),
    /// A count of the header is above its limit: found, limit.
    Limit(u32, u32),
    /// The length does not match the header: expected, found.
    Length(usize, usize),
    /// The operation does not exist.
    Opcode(u8),
    /// An unused byte is not 0, or a register does not exist.
    Operands,
    /// A constant is not a value of the field's kind, a range is inverted, or bits are outside
    /// their mask.
    Constant,
    /// It reads arguments up to this byte, but there are fewer: end, size.
    Arguments(u64, u32),
    /// It reads constants up to this byte, but there are fewer: end, count.
    Constants(u64, usize),
    /// A pattern with fewer than two parts or more than [`PARTS_MAX`].
    Parts(u32),
    /// The program continues past its last instruction.
    End,
    /// These registers are read but not written on every path, according to the needs of the
    /// instructions.
    Registers(RegisterSet),
}

impl fmt::Display for ValidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.at)?;
        match self.kind {
            ValidateErrorKind::Header => write!(f, "the header has {HEADER_BYTES} bytes; there are fewer"),
            ValidateErrorKind::Magic(found) => write!(f, "found {found:02x?}; bytecode begins with {MAGIC:02x?}"),
            ValidateErrorKind::Version(found) => write!(f, "version {found}; version {VERSION} is understood"),
            ValidateErrorKind::Limit(found, limit) => write!(f, "{found} is above the limit, {limit}"),
            ValidateErrorKind::Length(expected, found) => {
                write!(f, "the header speaks of {expected} bytes; there are {found}")
            }
            ValidateErrorKind::Opcode(found) => write!(f, "there is no operation {found:#04x}"),
            ValidateErrorKind::Operands => f.write_str("an operand is not one that the operation takes"),
            ValidateErrorKind::Constant => f.write_str("a constant is not a value of the field's kind"),
            ValidateErrorKind::Arguments(end, size) => {
                write!(f, "reads arguments up to byte {end}; there are {size} bytes")
            }
            ValidateErrorKind::Constants(end, count) => {
                write!(f, "reads constants up to byte {end}; there are {count} bytes")
            }
            ValidateErrorKind::Parts(found) => write!(f, "a pattern of {found} parts; it has 2 to {PARTS_MAX}"),
            ValidateErrorKind::End => f.write_str("the program goes on behind its last instruction"),
            ValidateErrorKind::Registers(set) => write!(f, "read before written: {set}"),
        }
    }
}

impl core::error::Error for ValidateError {}

/// The header of a program for arguments of `size` bytes: its instructions follow, then its constants.
#[must_use]
pub fn header(size: u32, instructions: u16, constants: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
    bytes[6..8].copy_from_slice(&instructions.to_le_bytes());
    bytes[8..12].copy_from_slice(&size.to_le_bytes());
    bytes[12..].copy_from_slice(&constants.to_le_bytes());
    bytes
}

/// Computes the needs of each instruction, for [`Instruction::encode`], for as many as there is
/// room for. A jump past the end needs nothing.
pub fn find_needs(instructions: &[Instruction], needs: &mut [RegisterSet]) {
    let of = |needs: &[RegisterSet], index: usize| needs.get(index).copied().unwrap_or_default();
    for index in (0..instructions.len().min(needs.len())).rev() {
        let instruction = &instructions[index];
        let mut needed = instruction.reads();
        if instruction.falls_through() {
            needed = needed.or(of(needs, index + 1).without(instruction.writes()));
        }
        if let Some(skip) = instruction.skip() {
            needed = needed.or(of(needs, index + 1 + usize::from(skip)));
        }
        needs[index] = needed;
    }
}

/// Validates bytes and returns the program: it can neither crash nor loop nor read outside of the
/// arguments.
///
/// If other code can write to the bytes, it can make the program invalid afterwards: copy them
/// first.
///
/// # Errors
///
/// The first error found.
pub fn validate(bytes: &[u8]) -> Result<BytecodeProgram<'_>, ValidateError> {
    let program = parts(bytes).map_err(|kind| ValidateError { at: 0, kind })?;
    for index in 0..program.code.len() {
        let at = HEADER_BYTES + index * INSTRUCTION_BYTES;
        check(&program, index).map_err(|kind| ValidateError { at, kind })?;
    }
    Ok(program)
}

/// Checks the header, without the instructions.
fn parts(bytes: &[u8]) -> Result<BytecodeProgram<'_>, ValidateErrorKind> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(ValidateErrorKind::Header)?;
    let [m0, m1, m2, m3, v0, v1, n0, n1, s0, s1, s2, s3, c0, c1, c2, c3] = *header;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(ValidateErrorKind::Magic([m0, m1, m2, m3]));
    }
    let (version, count) = (u16::from_le_bytes([v0, v1]), u16::from_le_bytes([n0, n1]));
    let (size, constants) = (u32::from_le_bytes([s0, s1, s2, s3]), u32::from_le_bytes([c0, c1, c2, c3]));
    if version != VERSION {
        return Err(ValidateErrorKind::Version(version));
    }
    let limits =
        [(u32::from(count), INSTRUCTIONS_MAX as u32), (size, ARGUMENTS_MAX), (constants, CONSTANTS_MAX as u32)];
    for (found, limit) in limits {
        if found > limit {
            return Err(ValidateErrorKind::Limit(found, limit));
        }
    }
    let code_bytes = usize::from(count) * INSTRUCTION_BYTES;
    let expected = code_bytes + constants as usize;
    if rest.len() != expected {
        return Err(ValidateErrorKind::Length(HEADER_BYTES + expected, bytes.len()));
    }
    let (code, constants) = rest.split_at(code_bytes);
    let (code, _) = code.as_chunks::<INSTRUCTION_BYTES>();
    if code.is_empty() {
        return Err(ValidateErrorKind::End);
    }
    Ok(BytecodeProgram { size, code, constants })
}

/// Checks the instruction with this index, in constant time except for the parts of a pattern.
fn check(program: &BytecodeProgram<'_>, index: usize) -> Result<(), ValidateErrorKind> {
    let bytes = &program.code[index];
    let needed = needs(bytes);
    let instruction = Instruction::decode(bytes).ok_or(ValidateErrorKind::Opcode(bytes[0]))?;
    if instruction.encode(needed) != *bytes {
        return Err(ValidateErrorKind::Operands);
    }
    check_operands(program, &instruction)?;
    let behind = |skip: usize| program.code.get(index + 1 + skip).map(needs).ok_or(ValidateErrorKind::End);
    let mut wanted = instruction.reads();
    if instruction.falls_through() {
        wanted = wanted.or(behind(0)?.without(instruction.writes()));
    }
    if let Some(skip) = instruction.skip() {
        wanted = wanted.or(behind(usize::from(skip))?);
    }
    // No register is written before the first instruction.
    let missing = if index == 0 { needed.or(wanted) } else { wanted.without(needed) };
    if missing == RegisterSet::default() { Ok(()) } else { Err(ValidateErrorKind::Registers(missing)) }
}

fn check_operands(program: &BytecodeProgram<'_>, instruction: &Instruction) -> Result<(), ValidateErrorKind> {
    let arguments = |offset: u16, bytes: u32| {
        let end = u64::from(offset) + u64::from(bytes);
        if end <= u64::from(program.size) { Ok(()) } else { Err(ValidateErrorKind::Arguments(end, program.size)) }
    };
    match *instruction {
        Instruction::Test { field, condition, .. } => {
            if !suits(field.kind, condition) {
                return Err(ValidateErrorKind::Constant);
            }
            arguments(field.offset, field.kind.bytes().into())
        }
        Instruction::Load { field, .. } => arguments(field.offset, field.kind.bytes().into()),
        Instruction::LoadReal { is_double, offset, .. } => arguments(offset, if is_double { 8 } else { 4 }),
        Instruction::LoadText { place: TextPlace::Inline { offset, capacity }, .. } => arguments(offset, capacity),
        Instruction::LoadText { place: TextPlace::Pointer { offset }, .. } => arguments(offset, 16),
        Instruction::Scale { offset, .. } => match program.scale(offset) {
            Some((_, 0, _)) => Err(ValidateErrorKind::Constant),
            Some(_) => Ok(()),
            None => Err(ValidateErrorKind::Constants(u64::from(offset) + 24, program.constants.len())),
        },
        Instruction::CompareLiteral { right: literal, .. }
        | Instruction::TestText { pattern: TextPattern::Is(literal) | TextPattern::Begins(literal), .. } => {
            constants(program, literal)
        }
        Instruction::TestText { pattern: TextPattern::Like { offset, parts }, .. } => {
            check_parts(program, offset, parts)
        }
        _ => Ok(()),
    }
}

/// Whether the constants of a condition are values of the kind, a range is not inverted, and bits
/// are inside their mask.
fn suits(kind: IntegerKind, condition: IntegerCondition) -> bool {
    let (lowest, highest) = match condition {
        IntegerCondition::Equal(value)
        | IntegerCondition::NotEqual(value)
        | IntegerCondition::Less(value)
        | IntegerCondition::AtLeast(value) => (value, value),
        IntegerCondition::Within(lowest, highest) | IntegerCondition::Without(lowest, highest) => (lowest, highest),
        IntegerCondition::BitsEqual(mask, value) | IntegerCondition::BitsDiffer(mask, value) => {
            return value & !mask == 0 && u64::from(mask) < 1 << (8 * kind.bytes());
        }
    };
    kind.lowest() <= lowest && lowest <= highest && highest <= kind.highest()
}

fn constants(program: &BytecodeProgram<'_>, literal: LiteralBytes) -> Result<(), ValidateErrorKind> {
    let end = u64::from(literal.offset) + u64::from(literal.length);
    let count = program.constants.len();
    if end <= count as u64 { Ok(()) } else { Err(ValidateErrorKind::Constants(end, count)) }
}

fn check_parts(program: &BytecodeProgram<'_>, offset: u32, parts: u32) -> Result<(), ValidateErrorKind> {
    if !(2..=PARTS_MAX).contains(&parts) {
        return Err(ValidateErrorKind::Parts(parts));
    }
    let mut at = offset;
    for _ in 0..parts {
        constants(program, LiteralBytes { offset: at, length: 2 })?;
        let part = program.part(&mut at).ok_or(ValidateErrorKind::Constants(at.into(), program.constants.len()))?;
        debug_assert!(part.len() <= program.constants.len(), "a part lies among the constants");
    }
    Ok(())
}
