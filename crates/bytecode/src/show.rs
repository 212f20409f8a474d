//! Disassembly for people and tests: one instruction per line, with its number; `-> 7` continues
//! with instruction 7.
//!
//! ```text
//! for 24 bytes of arguments
//!   0  u32le[4] != 7 -> 4
//!   1  t0 = text[8..24]
//!   2  t0 does not begin with "kworker" -> 4
//!   3  keep
//!   4  drop
//! ```

use core::fmt::{self, Display, Formatter, Write};

use crate::BytecodeProgram;
use crate::instruction::Instruction;
use crate::operands::{
    ArithmeticOp, BitwiseOp, IntegerCondition, IntegerField, LiteralBytes, OrderSet, RealArithmetic, RegisterSet,
    RightOperand, Signs, TextPattern, TextPlace,
};

impl Display for BytecodeProgram<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "for {} bytes of arguments", self.size)?;
        for (index, bytes) in self.code.iter().enumerate() {
            let Some(instruction) = Instruction::decode(bytes) else { continue };
            write!(f, "{index:>3}  ")?;
            self.show(f, &instruction)?;
            match instruction.skip() {
                Some(skip) => writeln!(f, " -> {}", index + 1 + usize::from(skip))?,
                None => f.write_char('\n')?,
            }
        }
        Ok(())
    }
}

impl BytecodeProgram<'_> {
    fn show(&self, f: &mut Formatter<'_>, instruction: &Instruction) -> fmt::Result {
        match *instruction {
            Instruction::Keep => f.write_str("keep"),
            Instruction::Drop => f.write_str("drop"),
            Instruction::Jump { .. } => f.write_str("jump"),
            Instruction::Test { field, condition, .. } => write!(f, "{field} {condition}"),
            Instruction::Load { to, field } => write!(f, "r{to} = {field}"),
            Instruction::Constant { to, value } => write!(f, "r{to} = {}", ShownConstant(value, false)),
            Instruction::Arithmetic { operation, to, left, right, signs, .. } => {
                let symbol = operation.symbol();
                write!(f, "r{to}:{} = {} {symbol} ", name(signs.result), ShownRegister(left, signs.left))?;
                show_operand(f, right, signs.right)?;
                f.write_str(" or")
            }
            Instruction::Bits { operation, to, left, right, .. } => {
                write!(f, "r{to} = r{left} {} ", operation.symbol())?;
                match right {
                    RightOperand::Register(number) => write!(f, "r{number}")?,
                    RightOperand::Constant(value) => write!(f, "{value:#x}")?,
                }
                f.write_str(if instruction.skip().is_some() { " or" } else { "" })
            }
            Instruction::Scale { to, from, signs, offset, .. } => {
                let (multiply, divide, add) = self.scale(offset).unwrap_or_default();
                let from = ShownRegister(from, signs.left);
                write!(f, "r{to}:{} = {from} * {multiply} / {divide} + {add} or", name(signs.result))
            }
            Instruction::Compare {
                left,
                right,
                signs: Signs { left: left_sign, right: right_sign, .. },
                orders,
                ..
            } => {
                write!(f, "{} {} ", ShownRegister(left, left_sign), orders.symbol_of_ordered())?;
                show_operand(f, right, right_sign)
            }
            _ => self.show_real_or_text(f, instruction),
        }
    }

    fn show_real_or_text(&self, f: &mut Formatter<'_>, instruction: &Instruction) -> fmt::Result {
        match *instruction {
            Instruction::LoadReal { to, is_double, offset } => {
                write!(f, "f{to} = {}[{offset}]", if is_double { "f64" } else { "f32" })
            }
            Instruction::RealConstant { to, bits } => write!(f, "f{to} = {:?}", f64::from_bits(bits)),
            Instruction::ToReal { to, from, is_signed } => write!(f, "f{to} = {}", ShownRegister(from, is_signed)),
            Instruction::Reals { operation, to, left, right } => {
                write!(f, "f{to} = f{left} {} f{right}", operation.symbol())
            }
            Instruction::CompareReals { left, right, orders, .. } => write!(f, "f{left} {} f{right}", orders.symbol()),
            Instruction::LoadText { to, place: TextPlace::Inline { offset, capacity } } => {
                write!(f, "t{to} = text[{offset}..{}]", u64::from(offset) + u64::from(capacity))
            }
            Instruction::LoadText { to, place: TextPlace::Pointer { offset } } => {
                write!(f, "t{to} = text behind [{offset}]")
            }
            Instruction::CompareTexts { left, right, orders, .. } => {
                write!(f, "t{left} {} t{right}", orders.symbol_of_ordered())
            }
            Instruction::CompareLiteral { left, right, orders, .. } => {
                write!(f, "t{left} {} ", orders.symbol_of_ordered())?;
                self.show_literal(f, right)
            }
            Instruction::TestText { text, pattern, jumps_if, .. } => self.show_pattern(f, text, pattern, jumps_if),
            _ => Ok(()),
        }
    }

    fn show_literal(&self, f: &mut Formatter<'_>, literal: LiteralBytes) -> fmt::Result {
        write!(f, "\"{}\"", self.literal(literal).unwrap_or_default().escape_ascii())
    }

    fn show_pattern(&self, f: &mut Formatter<'_>, text: u8, pattern: TextPattern, jumps_if: bool) -> fmt::Result {
        let words = match (pattern, jumps_if) {
            (TextPattern::Is(_), true) => "is",
            (TextPattern::Is(_), false) => "is not",
            (TextPattern::Begins(_), true) => "begins with",
            (TextPattern::Begins(_), false) => "does not begin with",
            (TextPattern::Like { .. }, true) => "is like",
            (TextPattern::Like { .. }, false) => "is not like",
        };
        write!(f, "t{text} {words} ")?;
        let (mut at, parts) = match pattern {
            TextPattern::Is(literal) | TextPattern::Begins(literal) => return self.show_literal(f, literal),
            TextPattern::Like { offset, parts } => (offset, parts),
        };
        f.write_char('"')?;
        for number in 0..parts {
            let part = self.part(&mut at).unwrap_or_default();
            write!(f, "{}{}", if number > 0 { "*" } else { "" }, part.escape_ascii())?;
        }
        f.write_char('"')
    }
}

impl Display for RegisterSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut space = "";
        for bit in (0..16_u8).filter(|bit| self.0 >> bit & 1 != 0) {
            let (bank, number) = match bit {
                0..8 => ('r', bit),
                8..12 => ('f', bit - 8),
                _ => ('t', bit - 12),
            };
            write!(f, "{space}{bank}{number}")?;
            space = " ";
        }
        Ok(())
    }
}

fn name(is_signed: bool) -> &'static str {
    if is_signed { "i64" } else { "u64" }
}

fn show_operand(f: &mut Formatter<'_>, operand: RightOperand, is_signed: bool) -> fmt::Result {
    match operand {
        RightOperand::Register(number) => ShownRegister(number, is_signed).fmt(f),
        RightOperand::Constant(value) => ShownConstant(value, is_signed).fmt(f),
    }
}

/// A register, and whether its integer is in two's complement.
struct ShownRegister(u8, bool);

impl Display for ShownRegister {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "r{}:{}", self.0, name(self.1))
    }
}

/// A constant, and whether it is in two's complement.
struct ShownConstant(u64, bool);

impl Display for ShownConstant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.1 { (self.0 as i64).fmt(f) } else { self.0.fmt(f) }
    }
}

impl Display for IntegerField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.kind.name(), self.offset)
    }
}

impl Display for IntegerCondition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(value) => write!(f, "== {value}"),
            Self::NotEqual(value) => write!(f, "!= {value}"),
            Self::Less(value) => write!(f, "< {value}"),
            Self::AtLeast(value) => write!(f, ">= {value}"),
            Self::Within(lowest, highest) => write!(f, "in {lowest}..={highest}"),
            Self::Without(lowest, highest) => write!(f, "not in {lowest}..={highest}"),
            Self::BitsEqual(mask, value) => write!(f, "& {mask:#x} == {value:#x}"),
            Self::BitsDiffer(mask, value) => write!(f, "& {mask:#x} != {value:#x}"),
        }
    }
}

impl OrderSet {
    /// Symbol for reals.
    fn symbol(self) -> &'static str {
        const SYMBOLS: [&str; 16] = [
            "never",
            "<",
            "==",
            "<=",
            ">",
            "<>",
            ">=",
            "ordered with",
            "unordered with",
            "not >=",
            "not <>",
            "not >",
            "not <=",
            "!=",
            "not <",
            "whatever",
        ];
        SYMBOLS[usize::from(self.0 & 15)]
    }

    /// Symbol for values that always have an order.
    fn symbol_of_ordered(self) -> &'static str {
        const SYMBOLS: [&str; 8] = ["never", "<", "==", "<=", ">", "!=", ">=", "whatever"];
        SYMBOLS[usize::from(self.0 & 7)]
    }
}

impl ArithmeticOp {
    fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

impl BitwiseOp {
    fn symbol(self) -> &'static str {
        match self {
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
        }
    }
}

impl RealArithmetic {
    fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }
}
