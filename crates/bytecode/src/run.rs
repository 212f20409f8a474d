//! Runs a program on the arguments of one event.
//!
//! ```text
//! run ──> fields: tests of integers in the arguments, jumps           most filters are nothing else
//!           │ ^
//!           v │ an instruction with registers
//!         general: registers, arithmetic, reals, texts
//! ```
//!
//! The first loop has no registers to initialize, and stays inside an instruction as long as the
//! next one is of the same operation. The processor then sees a separate loop for each operation,
//! instead of one indirect jump with many targets. The documentation of the crate states the gain.
//!
//! This code does not rely on the validator for safety: if data that the validator guarantees are
//! missing, it drops the event.

use crate::BytecodeProgram;
use crate::instruction::{Bytes, half, immediate, opcode, read, skip};
use crate::machine::RegisterMachine;
use crate::texts::Texts;

/// The arguments have fewer bytes than the structure that the program expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortArguments {
    /// Bytes found.
    pub found: usize,
    /// Bytes expected.
    pub expected: u32,
}

impl core::fmt::Display for ShortArguments {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the arguments have {} bytes; the program is for {}", self.found, self.expected)
    }
}

impl core::error::Error for ShortArguments {}

impl BytecodeProgram<'_> {
    /// Whether to keep the event with these arguments. Bytes after the structure's size are
    /// ignored.
    ///
    /// # Errors
    ///
    /// The arguments have fewer bytes than the program expects.
    #[inline]
    pub fn run<T: Texts + ?Sized>(&self, arguments: &[u8], texts: &T) -> Result<bool, ShortArguments> {
        let short = ShortArguments { found: arguments.len(), expected: self.size };
        let arguments = arguments.get(..self.size as usize).ok_or(short)?;
        let rest = fields(self.code, arguments);
        Ok(match operation(rest) {
            opcode::KEEP => true,
            opcode::DROP => false,
            _ => self.general(rest, arguments, texts),
        })
    }

    /// Runs from an instruction that uses registers.
    #[inline(never)]
    fn general<T: Texts + ?Sized>(&self, mut code: &[Bytes], arguments: &[u8], texts: &T) -> bool {
        let mut machine = RegisterMachine::new(*self, arguments);
        while let Some((instruction, behind)) = code.split_first() {
            let jumps = match instruction[0] {
                opcode::KEEP => return true,
                opcode::JUMP | opcode::FIELD.. => {
                    let rest = fields(code, arguments);
                    if rest.len() == code.len() {
                        return false;
                    }
                    code = rest;
                    continue;
                }
                opcode::LOAD..0x60 => load(instruction, arguments).map(|value| machine.set(instruction[1], value)),
                _ => machine.step(instruction, texts),
            };
            code = match jumps {
                Some(false) => behind,
                Some(true) => behind.get(skip(instruction)..).unwrap_or_default(),
                None => return false,
            };
        }
        false
    }
}

/// Opcode of the first instruction; a program that continued past its end would drop the event.
fn operation(code: &[Bytes]) -> u8 {
    code.first().map_or(opcode::DROP, |instruction| instruction[0])
}

/// Opcodes of a kind of field.
macro_rules! kinds {
    ($($module:ident = $number:literal;)*) => {
        $(mod $module {
            use crate::instruction::opcode::FIELD;
            pub(super) const EQUAL: u8 = FIELD | $number << 3;
            pub(super) const NOT_EQUAL: u8 = EQUAL + 1;
            pub(super) const LESS: u8 = EQUAL + 2;
            pub(super) const AT_LEAST: u8 = EQUAL + 3;
            #[allow(dead_code, reason = "wide kinds have none")]
            pub(super) const WITHIN: u8 = EQUAL + 4;
            #[allow(dead_code, reason = "wide kinds have none")]
            pub(super) const WITHOUT: u8 = EQUAL + 5;
            #[allow(dead_code, reason = "wide kinds have none")]
            pub(super) const BITS_EQUAL: u8 = EQUAL + 6;
            #[allow(dead_code, reason = "wide kinds have none")]
            pub(super) const BITS_DIFFER: u8 = EQUAL + 7;
            pub(super) const LOAD: u8 = crate::instruction::opcode::LOAD | $number;
        })*
    };
}

kinds! {
    u8_ = 0; i8_ = 1; u16_le = 2; u16_be = 3; i16_le = 4; i16_be = 5; u32_le = 6; u32_be = 7; i32_le = 8; i32_be = 9;
    u64_le = 10; u64_be = 11; i64_le = 12; i64_be = 13;
}

/// The match of [`fields`]: for each kind of field, its type, the conversion from bytes and, for
/// kinds with ranges, its unsigned type.
macro_rules! fields_match {
    ($code:ident, $arguments:ident;
     { $($narrow:ident $type:ident $unsigned:ident $from:ident;)* }
     { $($wide:ident $wide_type:ident $wide_from:ident;)* }) => {
        match operation($code) {
            $($narrow::EQUAL => stay($code, $arguments, $type::$from, |v, i| v == half::<8>(i) as $type),
            $narrow::NOT_EQUAL => stay($code, $arguments, $type::$from, |v, i| v != half::<8>(i) as $type),
            $narrow::LESS => stay($code, $arguments, $type::$from, |v, i| v < half::<8>(i) as $type),
            $narrow::AT_LEAST => stay($code, $arguments, $type::$from, |v, i| v >= half::<8>(i) as $type),
            // With wrapping subtraction, an integer's unsigned distance from the lowest value is
            // exact, also in two's complement. So one comparison tests both bounds.
            $narrow::WITHIN => stay($code, $arguments, $unsigned::$from, |v, i| {
                let (lowest, highest) = (half::<8>(i) as $unsigned, half::<12>(i) as $unsigned);
                v.wrapping_sub(lowest) <= highest.wrapping_sub(lowest)
            }),
            $narrow::WITHOUT => stay($code, $arguments, $unsigned::$from, |v, i| {
                let (lowest, highest) = (half::<8>(i) as $unsigned, half::<12>(i) as $unsigned);
                v.wrapping_sub(lowest) > highest.wrapping_sub(lowest)
            }),
            $narrow::BITS_EQUAL => stay($code, $arguments, $unsigned::$from, |v, i| {
                v & half::<8>(i) as $unsigned == half::<12>(i) as $unsigned
            }),
            $narrow::BITS_DIFFER => stay($code, $arguments, $unsigned::$from, |v, i| {
                v & half::<8>(i) as $unsigned != half::<12>(i) as $unsigned
            }),)*
            $($wide::EQUAL => stay($code, $arguments, $wide_type::$wide_from, |v, i| v == immediate(i) as $wide_type),
            $wide::NOT_EQUAL => stay($code, $arguments, $wide_type::$wide_from, |v, i| v != immediate(i) as $wide_type),
            $wide::LESS => stay($code, $arguments, $wide_type::$wide_from, |v, i| v < immediate(i) as $wide_type),
            $wide::AT_LEAST => stay($code, $arguments, $wide_type::$wide_from, |v, i| v >= immediate(i) as $wide_type),)*
            opcode::JUMP => jump($code),
            _ => return $code,
        }
    };
}

/// Runs tests of fields and jumps; returns the code from the first other instruction on.
#[inline]
fn fields<'p>(mut code: &'p [Bytes], arguments: &[u8]) -> &'p [Bytes] {
    loop {
        code = fields_match! { code, arguments; {
            u8_ u8 u8 from_le_bytes; i8_ i8 u8 from_le_bytes;
            u16_le u16 u16 from_le_bytes; u16_be u16 u16 from_be_bytes;
            i16_le i16 u16 from_le_bytes; i16_be i16 u16 from_be_bytes;
            u32_le u32 u32 from_le_bytes; u32_be u32 u32 from_be_bytes;
            i32_le i32 u32 from_le_bytes; i32_be i32 u32 from_be_bytes;
        } {
            u64_le u64 from_le_bytes; u64_be u64 from_be_bytes; i64_le i64 from_le_bytes; i64_be i64 from_be_bytes;
        } };
    }
}

/// Runs a test, and the following ones of the same operation until one jumps.
#[inline(always)]
fn stay<'p, const N: usize, V>(
    mut code: &'p [Bytes],
    arguments: &[u8],
    value: fn([u8; N]) -> V,
    holds: impl Fn(V, &Bytes) -> bool,
) -> &'p [Bytes] {
    let op = operation(code);
    loop {
        let Some((instruction, behind)) = code.split_first() else { return &[] };
        let Some(bytes) = read(instruction, arguments) else { return &[] };
        if holds(value(bytes), instruction) {
            return behind.get(skip(instruction)..).unwrap_or_default();
        }
        if operation(behind) != op {
            return behind;
        }
        code = behind;
    }
}

fn jump(code: &[Bytes]) -> &[Bytes] {
    let Some((instruction, behind)) = code.split_first() else { return &[] };
    behind.get(skip(instruction)..).unwrap_or_default()
}

/// An integer argument, extended to 64 bits.
#[inline(always)]
fn load(instruction: &Bytes, arguments: &[u8]) -> Option<u64> {
    let (i, a) = (instruction, arguments);
    Some(match instruction[0] {
        u8_::LOAD => u8::from_le_bytes(read(i, a)?).into(),
        i8_::LOAD => i64::from(i8::from_le_bytes(read(i, a)?)) as u64,
        u16_le::LOAD => u16::from_le_bytes(read(i, a)?).into(),
        u16_be::LOAD => u16::from_be_bytes(read(i, a)?).into(),
        i16_le::LOAD => i64::from(i16::from_le_bytes(read(i, a)?)) as u64,
        i16_be::LOAD => i64::from(i16::from_be_bytes(read(i, a)?)) as u64,
        u32_le::LOAD => u32::from_le_bytes(read(i, a)?).into(),
        u32_be::LOAD => u32::from_be_bytes(read(i, a)?).into(),
        i32_le::LOAD => i64::from(i32::from_le_bytes(read(i, a)?)) as u64,
        i32_be::LOAD => i64::from(i32::from_be_bytes(read(i, a)?)) as u64,
        u64_le::LOAD | i64_le::LOAD => u64::from_le_bytes(read(i, a)?),
        u64_be::LOAD | i64_be::LOAD => u64::from_be_bytes(read(i, a)?),
        _ => return None,
    })
}
