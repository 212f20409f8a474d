//! Filters as portable bytecode for traced programs: format, validator and interpreter, without the
//! standard library and without a heap.
//!
//! It must never know the text of expressions, nor the origin of arguments.
//!
//! ```text
//! recorder   predicate, layout ── filter::bytecode ──> bytes ─┐
//! program                       bytes ── copied ── validate ──┴─> Program ── run(arguments of an event) ──> keep or drop
//! ```
//!
//! # The form, version 1
//!
//! All numbers are little-endian. A program is a header of 16 bytes, then instructions of 16 bytes
//! each, then constants; nothing follows.
//!
//! ```text
//! header       0       4        6              8      12           16
//!              "kyBC"  version  instructions   size   constants
//!                                              of the arguments, in bytes
//! instruction  0   1  2     4      6      8                        16
//!              op  a  skip  b  c   needs  immediate
//!                           offset
//! ```
//!
//! `skip` is the number of instructions that a jump skips, so programs only go forward. `needs` is
//! the set of registers that this instruction and the ones after it read before they write them:
//! bits 0 to 7 for the integers `r0` to `r7`, 8 to 11 for the reals `f0` to `f3`, 12 to 15 for the
//! texts `t0` to `t3`. The interpreter ignores it; the validator uses it to prove a program correct
//! without memory of its own. Unused bytes of an instruction are 0.
//!
//! | op | meaning | a | b | c | immediate |
//! |---|---|---|---|---|---|
//! | 01, 02 | keep, drop the event: the end | | | | |
//! | 03 | jump | | | | |
//! | 10 | r\[a\] = immediate | to | | | 64 bits |
//! | 11 | f\[a\] = immediate | to | | | bits of a double |
//! | 12 | f\[a\] = r\[b\] | to, signs << 4 | from | | |
//! | 13 | r\[a\] = floor(r\[b\] * multiply / divide) + add; jump if it does not fit | to, signs << 4 | from | | offset of the three among the constants, 8 bytes each |
//! | 14, 15 | f\[a\] = real of 4, of 8 bytes at the offset | to | offset | | |
//! | 16 | t\[a\] = text at the offset, to its first zero byte or its capacity | to | offset | | capacity |
//! | 17 | t\[a\] = text behind an address and a length, 8 bytes each, at the offset | to | offset | | |
//! | 18, 19 | jump if the order of r\[b\] and r\[c\], the immediate is one of the set | orders, signs << 4 | left | right | constant |
//! | 1A, 1B | jump if the order of two reals, of two texts is one of the set | orders | left | right | |
//! | 1C | jump if the order of t\[b\] and a literal is one of the set | orders | left | | offset, length |
//! | 1D, 1E | jump if t\[b\] is, begins with a literal (a = 1), or if not (a = 0) | 0, 1 | text | | offset, length |
//! | 1F | the same for parts with anything between them: length of 2 bytes and bytes of each | 0, 1 | text | | offset, parts |
//! | 20 to 24 | r\[a\] = r\[b\] `+ - * / %` r\[c\]; jump if it does not fit or divides by 0 | to, signs << 4 | left | right | |
//! | 28 to 2C | the same with a constant | to, signs << 4 | left | | right |
//! | 30 to 34 | r\[a\] = r\[b\] `& \| ^ << >>` r\[c\]; jump if a count is above 63 | to | left | right | |
//! | 38 to 3C | the same with a constant | to | left | | right |
//! | 40 to 43 | f\[a\] = f\[b\] `+ - * /` f\[c\] | to | left | right | |
//! | 50 + kind | r\[a\] = the integer at the offset | to | offset | | |
//! | 80 + 8 * kind + action | jump if the integer at the offset is as the action says | | offset | | constants |
//!
//! - *kind*: 0 `u8`, 1 `i8`, then for each of 16, 32 and 64 bits `u` little-endian, `u` big-endian, `i` little-endian, `i`
//!   big-endian: 2 to 13.
//! - *action*: 0 it is equal to the constant, 1 it is not, 2 it is less, 3 it is not; 4 it lies between two constants, both
//!   included, 5 it does not; 6 its bits of the first constant are the second, 7 they are not. Kinds below 64 bits have
//!   constants of 4 bytes, extended by their sign (masks and bits by zeros); kinds of 64 bits one of 8 bytes, and no actions
//!   above 3.
//! - *signs*: bit 0 the left operand is in two's complement, bit 1 the right one, bit 2 the result; else they are unsigned.
//! - *orders*: bit 0 less, bit 1 equal, bit 2 greater, bit 3 none of the three.
//! - Reals, addresses and lengths are in the byte order of the machine that runs the program, integers as their kind says.
//!
//! ```
//! use kymo_bytecode::{Instruction, IntegerCondition, IntegerField, IntegerKind, RegisterSet, header, validate};
//!
//! let field = IntegerField { kind: IntegerKind::new(2, false, true).expect("16 bits"), offset: 4 };
//! let mut bytes = header(6, 3, 0).to_vec();
//! for instruction in [
//!     Instruction::Test { field, condition: IntegerCondition::NotEqual(443), skip: 1 },
//!     Instruction::Keep,
//!     Instruction::Drop,
//! ] {
//!     bytes.extend(instruction.encode(RegisterSet::default()));
//! }
//! let program = validate(&bytes).expect("it is sound");
//! assert_eq!(program.run(&[0, 0, 0, 0, 0x01, 0xBB], &()), Ok(true));
//! assert_eq!(program.to_string(), "\
//! for 6 bytes of arguments
//!   0  u16be[4] != 443 -> 2
//!   1  keep
//!   2  drop
//! ");
//! ```
//!
//! No value has three states: a compiler gives each test a target for true, false and unknown. A
//! text is a sequence of bytes, compared as unsigned ones.
//!
//! # What it costs
//!
//! `examples/interpreter_speed.rs`, medians on a shared virtual machine (Xeon, 2.3 GHz nominal), in nanoseconds per event:
//!
//! | predicates `field == constant` | all `u32` | five kinds in turn |
//! |---|---|---|
//! | 1 true | 2.0 | 2.1 |
//! | 10 true | 6 | 11 to 14 |
//! | 50 true | 27 | 51 to 67 |
//! | first of 50 false | 2.3 | 2.3 |
//! | last of 50 false | 28 | 54 to 68 |
//!
//! A first instruction with registers costs 5 more, each of them 1 to 2; a text of 16 bytes in a place of 24 is compared in
//! 11 together with them, and searched for four letters in 24.
//!
//! The interpreter is safe code: it checks offsets again when it uses them, although the validator
//! has checked them; each check costs two predicted instructions. See `run` for the reason why a
//! sequence of instructions of the same operation is faster.
#![no_std]

mod instruction;
mod machine;
pub mod object;
mod operands;
mod run;
mod show;
mod texts;
mod validate;

pub use instruction::{INSTRUCTION_BYTES, Instruction};
pub use operands::{
    ArithmeticOp, BitwiseOp, INTEGERS, IntegerCondition, IntegerField, IntegerKind, LiteralBytes, OrderSet, REALS,
    RealArithmetic, RegisterSet, RightOperand, Signs, TEXTS, TextPattern, TextPlace,
};
pub use run::ShortArguments;
pub use texts::Texts;
pub use validate::{
    ARGUMENTS_MAX, CONSTANTS_MAX, HEADER_BYTES, INSTRUCTIONS_MAX, MAGIC, PARTS_MAX, VERSION, ValidateError,
    ValidateErrorKind, find_needs, header, validate,
};

/// A validated program: see [`validate`].
#[derive(Clone, Copy, Debug)]
pub struct BytecodeProgram<'p> {
    /// Bytes of the arguments.
    size: u32,
    code: &'p [[u8; INSTRUCTION_BYTES]],
    constants: &'p [u8],
}

impl<'p> BytecodeProgram<'p> {
    /// Bytes of the argument structure that the program expects.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Its instructions.
    pub fn instructions(&self) -> impl Iterator<Item = Instruction> + use<'p> {
        self.code.iter().filter_map(Instruction::decode)
    }

    /// Constants that literals, patterns and scales refer to.
    #[must_use]
    pub fn constants(&self) -> &'p [u8] {
        self.constants
    }

    /// Bytes of a literal.
    fn literal(&self, literal: LiteralBytes) -> Option<&'p [u8]> {
        self.constants.get(literal.offset as usize..)?.get(..literal.length as usize)
    }

    /// The pattern part at offset `at` among the constants; moves `at` behind it.
    fn part(&self, at: &mut u32) -> Option<&'p [u8]> {
        let (length, rest) = self.constants.get(*at as usize..)?.split_first_chunk::<2>()?;
        let length = u16::from_le_bytes(*length);
        *at += 2 + u32::from(length);
        rest.get(..usize::from(length))
    }

    /// The factor, divisor and summand of a scale.
    fn scale(&self, offset: u32) -> Option<(u64, u64, i64)> {
        let (chunks, _) = self.constants.get(offset as usize..)?.get(..24)?.as_chunks::<8>();
        let [multiply, divide, add] = chunks else { return None };
        Some((u64::from_le_bytes(*multiply), u64::from_le_bytes(*divide), i64::from_le_bytes(*add)))
    }
}
