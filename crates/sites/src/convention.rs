//! Calling conventions: where each argument is when a function begins.
//!
//! | | x86-64 (System V) | aarch64 |
//! |---|---|---|
//! | integers, addresses | `di si dx cx r8 r9`, then memory at `8(sp)` | `x0` to `x7`, then memory at `0(sp)` |
//! | floating-point numbers | registers of their own | registers of their own |
//! | structures up to 16 bytes | registers, if there are enough for all of it | the same |
//! | larger structures | memory | their address, as an argument |
//! | large results | their address is the first argument | their address in `x8` |
//!
//! Rust's own convention is not fixed. Integers, addresses and slices go as in C; a structure of several numbers does not, and
//! nothing is said of arguments behind one.

use crate::machine::{ARM, Machine, X86_INTEGERS};
use crate::types::{CompoundPart, CompoundShape, SourceLanguage, TypeShape};
use crate::{ValueKind, ValuePlace};

const FLOATS: u64 = 8;

/// Where an argument is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PassedPlace {
    /// There.
    Here(ValuePlace),
    /// Its address is there, and its length.
    Slice(ValuePlace, ValuePlace),
    /// In registers or memory that is not recorded.
    Elsewhere,
    /// Neither it nor the following arguments are known.
    Unknown,
}

/// Registers and memory that the arguments so far have taken.
#[derive(Debug)]
pub(crate) struct CallingConvention {
    machine: Machine,
    language: SourceLanguage,
    integers: usize,
    floats: u64,
    stack: u64,
    is_lost: bool,
}

impl CallingConvention {
    /// Before the first argument of a function with such a result.
    pub(crate) fn new(machine: Machine, language: SourceLanguage, result: &TypeShape) -> Self {
        let mut convention = Self { machine, language, integers: 0, floats: 0, stack: 0, is_lost: false };
        match result {
            TypeShape::Unknown => convention.is_lost = true,
            TypeShape::Compound(shape) if shape.is_doubtful => convention.is_lost = true,
            TypeShape::Compound(shape) if machine == Machine::X86 => {
                let is_large = match language {
                    SourceLanguage::Rust => shape.bytes > 16,
                    _ => shape.by_reference || classes(shape).is_none(),
                };
                convention.integers = usize::from(is_large);
            }
            _ => {}
        }
        convention
    }

    /// Where the next argument is.
    pub(crate) fn next(&mut self, shape: &TypeShape) -> PassedPlace {
        if self.is_lost {
            return PassedPlace::Unknown;
        }
        match shape {
            TypeShape::Value(_) => PassedPlace::Here(self.integer()),
            TypeShape::Slice => PassedPlace::Slice(self.integer(), self.integer()),
            TypeShape::Float { is_x87: true } if self.machine == Machine::X86 => {
                self.memory(16, 16);
                PassedPlace::Elsewhere
            }
            TypeShape::Float { .. } => {
                self.float(1, 8);
                PassedPlace::Elsewhere
            }
            TypeShape::Wide => {
                self.integer_pair();
                PassedPlace::Elsewhere
            }
            TypeShape::Compound(shape) => self.compound(shape),
            TypeShape::Nothing | TypeShape::Unknown => self.lose(),
        }
    }

    fn lose(&mut self) -> PassedPlace {
        self.is_lost = true;
        PassedPlace::Unknown
    }

    fn registers(&self) -> usize {
        match self.machine {
            Machine::X86 => X86_INTEGERS.len(),
            Machine::Arm => 8,
        }
    }

    fn integer(&mut self) -> ValuePlace {
        if self.integers >= self.registers() {
            return self.memory(8, 8);
        }
        let register = match self.machine {
            Machine::X86 => X86_INTEGERS[self.integers],
            Machine::Arm => ARM[self.integers],
        };
        self.integers += 1;
        ValuePlace::Register(register)
    }

    fn memory(&mut self, bytes: u64, alignment: u64) -> ValuePlace {
        let begin = self.stack.next_multiple_of(alignment);
        self.stack = begin + bytes.next_multiple_of(8);
        // On x86-64, the address to return to is there.
        let first = if self.machine == Machine::X86 { 8 } else { 0 };
        ValuePlace::Memory { base: "sp", offset: i64::try_from(begin + first).unwrap_or(i64::MAX) }
    }

    fn float(&mut self, count: u64, bytes: u64) {
        if self.floats + count <= FLOATS {
            self.floats += count;
        } else {
            self.floats = if self.machine == Machine::Arm { FLOATS } else { self.floats };
            self.memory(bytes * count, 8);
        }
    }

    /// An integer of 16 bytes.
    fn integer_pair(&mut self) {
        if self.machine == Machine::Arm {
            self.integers = self.integers.next_multiple_of(2);
        }
        self.several(2, 16, 16);
    }

    /// Takes registers if there are enough, else memory.
    fn several(&mut self, count: usize, bytes: u64, alignment: u64) {
        if self.integers + count <= self.registers() {
            self.integers += count;
            return;
        }
        if self.machine == Machine::Arm {
            self.integers = self.registers();
        }
        self.memory(bytes, alignment);
    }

    fn compound(&mut self, shape: &CompoundShape) -> PassedPlace {
        if shape.is_doubtful || shape.bytes > 1 << 24 {
            return self.lose();
        }
        if self.language == SourceLanguage::Rust {
            return self.rust_compound(shape);
        }
        if shape.by_reference {
            self.integer();
            return PassedPlace::Elsewhere;
        }
        if shape.parts.is_empty() && shape.bytes <= 16 {
            // An empty class.
            return PassedPlace::Elsewhere;
        }
        match self.machine {
            Machine::X86 => self.x86_compound(shape),
            Machine::Arm => self.arm_compound(shape),
        }
        PassedPlace::Elsewhere
    }

    fn x86_compound(&mut self, shape: &CompoundShape) {
        match classes(shape) {
            Some((integers, floats))
                if self.integers + integers <= self.registers() && self.floats + floats <= FLOATS =>
            {
                self.integers += integers;
                self.floats += floats;
            }
            _ => {
                let is_wide = shape.parts.iter().any(|part| part.bytes == 16);
                self.memory(shape.bytes, if is_wide { 16 } else { 8 });
            }
        }
    }

    fn arm_compound(&mut self, shape: &CompoundShape) {
        if let Some((count, bytes)) = equal_floats(&shape.parts) {
            self.float(count, bytes);
        } else if shape.bytes > 16 {
            self.integer();
        } else if shape.parts.iter().any(|part| part.bytes == 16) {
            self.integer_pair();
        } else {
            self.several(shape.bytes.div_ceil(8) as usize, shape.bytes, 8);
        }
    }

    /// Structures of one number are passed as that number, and those of none not at all.
    fn rust_compound(&mut self, shape: &CompoundShape) -> PassedPlace {
        match shape.parts[..] {
            [] if shape.bytes == 0 => PassedPlace::Elsewhere,
            [CompoundPart { bytes, is_float, .. }] if bytes == shape.bytes && bytes <= 8 => {
                if is_float {
                    self.float(1, 8);
                    return PassedPlace::Elsewhere;
                }
                PassedPlace::Here(self.integer())
            }
            _ => self.lose(),
        }
    }
}

/// The type with which an argument is recorded.
pub(crate) fn kind(shape: &TypeShape) -> Option<ValueKind> {
    match shape {
        TypeShape::Value(kind) => Some(*kind),
        TypeShape::Slice => Some(ValueKind::Address),
        TypeShape::Compound(shape) => {
            u8::try_from(shape.bytes).ok().filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8)).map(ValueKind::Unsigned)
        }
        _ => None,
    }
}

/// Registers for integers and for floating-point numbers that a structure needs; `None`: it is passed in memory.
fn classes(shape: &CompoundShape) -> Option<(usize, u64)> {
    if shape.bytes > 16 || shape.parts.is_empty() && shape.bytes > 1 {
        return None;
    }
    // Of each 8 bytes: whether all of them are floating-point numbers.
    let mut words: [Option<bool>; 2] = [None; 2];
    for part in &shape.parts {
        let is_whole = part.bytes > 0 && part.offset.is_multiple_of(part.bytes);
        if !is_whole || part.is_float && part.bytes > 8 {
            return None;
        }
        let last = part.offset.checked_add(part.bytes - 1)? / 8;
        for word in words.get_mut((part.offset / 8) as usize..=last as usize)? {
            *word = Some(word.unwrap_or(true) && part.is_float);
        }
    }
    let integers = words.iter().filter(|word| **word == Some(false)).count();
    Some((integers, words.iter().filter(|word| **word == Some(true)).count() as u64))
}

/// The count and size of up to four equal floating-point numbers.
fn equal_floats(parts: &[CompoundPart]) -> Option<(u64, u64)> {
    let first = parts.first()?;
    let is_equal = parts.iter().all(|part| part.is_float && part.bytes == first.bytes);
    (is_equal && parts.len() <= 4).then_some((parts.len() as u64, first.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: TypeShape = TypeShape::Value(ValueKind::Signed(4));
    const DOUBLE: TypeShape = TypeShape::Float { is_x87: false };

    fn compound(bytes: u64, parts: &[(u64, u64, bool)]) -> TypeShape {
        let parts = parts.iter().map(|&(offset, bytes, is_float)| CompoundPart { offset, bytes, is_float }).collect();
        TypeShape::Compound(CompoundShape { bytes, parts, ..CompoundShape::default() })
    }

    /// Where integers are among these arguments.
    fn places(machine: Machine, language: SourceLanguage, result: &TypeShape, shapes: &[TypeShape]) -> Vec<String> {
        let mut convention = CallingConvention::new(machine, language, result);
        let shown = |place: ValuePlace| match place {
            ValuePlace::Register(name) => name.to_owned(),
            ValuePlace::Memory { base, offset } => format!("{offset}({base})"),
            other => format!("{other:?}"),
        };
        let place = |shape| match convention.next(shape) {
            PassedPlace::Here(place) => shown(place),
            PassedPlace::Slice(address, length) => format!("{}+{}", shown(address), shown(length)),
            PassedPlace::Elsewhere => "-".to_owned(),
            PassedPlace::Unknown => "?".to_owned(),
        };
        shapes.iter().map(place).collect()
    }

    #[test]
    fn x86_takes_registers_in_order() {
        let of = |result: &TypeShape, shapes: &[TypeShape]| places(Machine::X86, SourceLanguage::C, result, shapes);
        let large = compound(32, &[]);
        let pair = compound(16, &[(0, 8, false), (8, 8, true)]);
        let seven = [INT, DOUBLE, INT, large.clone(), INT, pair.clone(), INT, INT, INT, INT];
        // The pair takes one integer and one floating-point register; the large structure 32 bytes of the stack.
        assert_eq!(of(&TypeShape::Nothing, &seven), ["di", "-", "si", "-", "dx", "-", "r8", "r9", "40(sp)", "48(sp)"]);
        assert_eq!(of(&large, &[INT, INT]), ["si", "dx"]);
        assert_eq!(of(&pair, &[INT]), ["di"]);
        assert_eq!(of(&INT, &[TypeShape::Wide, INT, TypeShape::Unknown, INT]), ["-", "dx", "?", "?"]);
        // Two words that do not fit into one register leave it for the next argument.
        let two = compound(16, &[(0, 8, false), (8, 8, false)]);
        assert_eq!(of(&INT, &[INT, INT, INT, INT, INT, two, INT]), ["di", "si", "dx", "cx", "r8", "-", "r9"]);
        assert_eq!(of(&INT, &[TypeShape::Float { is_x87: true }, INT]), ["-", "di"]);
    }

    #[test]
    fn arm_passes_addresses_of_large_structures() {
        let of = |result: &TypeShape, shapes: &[TypeShape]| places(Machine::Arm, SourceLanguage::C, result, shapes);
        let large = compound(32, &[]);
        assert_eq!(of(&large, &[INT, large.clone(), DOUBLE, INT]), ["x0", "-", "-", "x2"]);
        let floats = compound(24, &[(0, 8, true), (8, 8, true), (16, 8, true)]);
        assert_eq!(of(&INT, &[floats, INT, TypeShape::Wide, INT]), ["-", "x0", "-", "x4"]);
        let nine = vec![INT; 10];
        assert_eq!(of(&INT, &nine)[7..], ["x7", "0(sp)", "8(sp)"]);
    }

    #[test]
    fn rust_has_slices_and_doubts() {
        let of = |shapes: &[TypeShape]| places(Machine::X86, SourceLanguage::Rust, &TypeShape::Nothing, shapes);
        let newtype = compound(4, &[(0, 4, false)]);
        let pair = compound(16, &[(0, 8, false), (8, 4, false)]);
        assert_eq!(of(&[TypeShape::Slice, newtype, INT, pair, INT]), ["di+si", "dx", "cx", "?", "?"]);
    }
}
