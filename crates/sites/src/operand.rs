//! Operands of USDT probes, as assemblers write them: `SIZE@OPERAND`.
//!
//! | x86-64 | aarch64 | where |
//! |---|---|---|
//! | `-4@%edi` | `-4@w0` | a register |
//! | `8@$5` | `8@5` | a number |
//! | `4@-20(%rbp)` | `4@[sp, 12]` | memory at a register |
//! | `8@counter+8(%rip)` | | memory at a symbol |
//! | `8f@%xmm0`, `4@(%rax,%rdx,4)` | `8@[x0, x1]` | none that the kernel reads |

use crate::machine::{ARM, Machine};
use crate::{ValueKind, ValuePlace};

/// An argument of a USDT probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandSite {
    /// As the note has it, such as `-4@%edi`.
    pub text: String,
    /// Its type and place; `None`: the kernel cannot read it, such as a floating-point number.
    pub value: Option<(ValueKind, ValuePlace)>,
}

/// Operands at most.
const OPERANDS_MAX: usize = 32;

/// Names of registers of x86-64, and the kernel's name of each.
const X86: [(&str, &[&str]); 16] = [
    ("ax", &["rax", "eax", "ax", "al"]),
    ("bx", &["rbx", "ebx", "bx", "bl"]),
    ("cx", &["rcx", "ecx", "cx", "cl"]),
    ("dx", &["rdx", "edx", "dx", "dl"]),
    ("si", &["rsi", "esi", "si", "sil"]),
    ("di", &["rdi", "edi", "di", "dil"]),
    ("bp", &["rbp", "ebp", "bp", "bpl"]),
    ("sp", &["rsp", "esp", "sp", "spl"]),
    ("r8", &["r8", "r8d", "r8w", "r8b"]),
    ("r9", &["r9", "r9d", "r9w", "r9b"]),
    ("r10", &["r10", "r10d", "r10w", "r10b"]),
    ("r11", &["r11", "r11d", "r11w", "r11b"]),
    ("r12", &["r12", "r12d", "r12w", "r12b"]),
    ("r13", &["r13", "r13d", "r13w", "r13b"]),
    ("r14", &["r14", "r14d", "r14w", "r14b"]),
    ("r15", &["r15", "r15d", "r15w", "r15b"]),
];

/// Where a symbol is in the mapping of the file, so many bytes behind it.
type MappedSymbol<'m> = &'m mut dyn FnMut(&str, i64) -> Option<u64>;

/// The operands of a note.
pub(crate) fn all(machine: Machine, text: &str, mapped: MappedSymbol<'_>) -> Vec<OperandSite> {
    let mut operands = Vec::new();
    for text in words(text).into_iter().take(OPERANDS_MAX) {
        let value = one(machine, text, mapped);
        operands.push(OperandSite { text: text.to_owned(), value });
    }
    operands
}

/// Operands are separated by spaces; those in brackets have spaces, too.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut begin, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => {
                words.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&text[begin..]);
    words.retain(|word| !word.is_empty());
    words
}

fn one(machine: Machine, text: &str, mapped: MappedSymbol<'_>) -> Option<(ValueKind, ValuePlace)> {
    let (size, operand) = text.split_once('@')?;
    let kind = match size {
        "1" | "2" | "4" | "8" => ValueKind::Unsigned(size.as_bytes()[0] - b'0'),
        "-1" | "-2" | "-4" | "-8" => ValueKind::Signed(size.as_bytes()[1] - b'0'),
        _ => return None,
    };
    let place = match machine {
        Machine::X86 => x86(operand, mapped),
        Machine::Arm => arm(operand),
    };
    place.map(|place| (kind, place))
}

fn x86(operand: &str, mapped: MappedSymbol<'_>) -> Option<ValuePlace> {
    if let Some(number) = operand.strip_prefix('$') {
        return number_of(number).map(ValuePlace::Constant);
    }
    if let Some(register) = operand.strip_prefix('%') {
        return x86_register(register).map(ValuePlace::Register);
    }
    let (before, base) = operand.strip_suffix(')')?.split_once("(%")?;
    if base == "rip" {
        let at = before.rfind(['+', '-']).filter(|at| *at > 0).unwrap_or(before.len());
        let (symbol, more) = before.split_at(at);
        let more = if more.is_empty() { 0 } else { number_of(more.strip_prefix('+').unwrap_or(more))? };
        return mapped(symbol, more).map(ValuePlace::Mapped);
    }
    let offset = if before.is_empty() { 0 } else { number_of(before)? };
    Some(ValuePlace::Memory { base: x86_register(base)?, offset })
}

fn x86_register(name: &str) -> Option<&'static str> {
    X86.iter().find(|(_, names)| names.contains(&name)).map(|(kernel, _)| *kernel)
}

fn arm(operand: &str) -> Option<ValuePlace> {
    if let Some(inner) = operand.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        let (base, offset) = inner.split_once(',').map_or((inner, None), |(base, offset)| (base, Some(offset.trim())));
        let offset = offset.map_or(Some(0), |offset| number_of(offset.strip_prefix('#').unwrap_or(offset)))?;
        return Some(ValuePlace::Memory { base: arm_register(base.trim())?, offset });
    }
    arm_register(operand).map(ValuePlace::Register).or_else(|| number_of(operand).map(ValuePlace::Constant))
}

fn arm_register(name: &str) -> Option<&'static str> {
    if matches!(name, "sp" | "wsp") {
        return Some("sp");
    }
    let number = name.strip_prefix(['x', 'w'])?;
    ARM.iter().find(|known| &known[1..] == number).copied()
}

/// A number, decimal or hexadecimal.
fn number_of(text: &str) -> Option<i64> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?.cast_signed(),
        None => digits.parse::<i64>().or_else(|_| digits.parse::<u64>().map(u64::cast_signed)).ok()?,
    };
    Some(if is_negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(machine: Machine, text: &str) -> Vec<Option<(ValueKind, ValuePlace)>> {
        let mut mapped = |symbol: &str, more: i64| (symbol == "counter").then(|| 0x4000_u64.wrapping_add_signed(more));
        all(machine, text, &mut mapped).into_iter().map(|operand| operand.value).collect()
    }

    #[test]
    fn operands_of_x86() {
        use ValueKind::{Signed, Unsigned};
        use ValuePlace::{Constant, Mapped, Memory, Register};
        assert_eq!(
            of(Machine::X86, "-4@%edi 8@%rax 1@%r9b 4@$-7 8@$0x10 -4@-20(%rbp) 8@(%rsp) 8@counter+8(%rip)"),
            [
                Some((Signed(4), Register("di"))),
                Some((Unsigned(8), Register("ax"))),
                Some((Unsigned(1), Register("r9"))),
                Some((Unsigned(4), Constant(-7))),
                Some((Unsigned(8), Constant(16))),
                Some((Signed(4), Memory { base: "bp", offset: -20 })),
                Some((Unsigned(8), Memory { base: "sp", offset: 0 })),
                Some((Unsigned(8), Mapped(0x4008))),
            ]
        );
        let absent = "8f@%xmm0 4@(%rax,%rdx,4) 8@%ah 16@%rax 8@other(%rip) 8@ @ x 4@8(%ip)";
        assert!(of(Machine::X86, absent).iter().all(Option::is_none));
    }

    #[test]
    fn operands_of_arm() {
        use ValueKind::{Signed, Unsigned};
        use ValuePlace::{Constant, Memory, Register};
        assert_eq!(
            of(Machine::Arm, "-4@w0 8@x30 8@sp 4@5 -4@[sp, 12] 8@[x29, -16] 8@[x1] 8@[x0, x1]"),
            [
                Some((Signed(4), Register("x0"))),
                Some((Unsigned(8), Register("x30"))),
                Some((Unsigned(8), Register("sp"))),
                Some((Unsigned(4), Constant(5))),
                Some((Signed(4), Memory { base: "sp", offset: 12 })),
                Some((Unsigned(8), Memory { base: "x29", offset: -16 })),
                Some((Unsigned(8), Memory { base: "x1", offset: 0 })),
                None,
            ]
        );
    }
}
