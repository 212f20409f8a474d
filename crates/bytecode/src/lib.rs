//! Filters as portable bytes for traced programs: their form, validator and interpreter; no standard library, no heap.
//!
//! It must never know the text of expressions, nor where arguments come from.
#![no_std]

mod instruction;
mod machine;
mod operands;
mod run;
mod show;
mod validate;

pub use instruction::{INSTRUCTION_BYTES, Instruction};
pub use operands::{
    Arithmetic, Bitwise, Condition, Field, INTEGERS, Kind, Literal, Operand, Orders, Pattern, Place, REALS,
    RealArithmetic, Registers, Signs, TEXTS,
};
pub use run::{Short, Texts};
pub use validate::{
    ARGUMENTS_MAX, CONSTANTS_MAX, HEADER_BYTES, INSTRUCTIONS_MAX, MAGIC, PARTS_MAX, VERSION, ValidateError,
    ValidateErrorKind, header, validate,
};

/// A sound program: see [`validate`].
#[derive(Clone, Copy, Debug)]
pub struct Program<'p> {
    /// Bytes of the arguments.
    size: u32,
    code: &'p [[u8; INSTRUCTION_BYTES]],
    constants: &'p [u8],
}

impl<'p> Program<'p> {
    /// Bytes of the structure of arguments that it is for.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Bytes of a literal.
    fn literal(&self, literal: Literal) -> Option<&'p [u8]> {
        self.constants.get(literal.offset as usize..)?.get(..literal.length as usize)
    }

    /// The part of a pattern at an offset among the constants, which then is behind it.
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
