//! The shapes of types: the content of memory where a value of a type is.

use std::collections::HashMap;

use super::{ABOUT_ANOTHER, DEPTH_MAX, FUNCTION, KernelTypes, STRUCTURE, UNION, word};

const INTEGER: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const ENUMERATION: u32 = 6;
const PROTOTYPE: u32 = 13;
const WIDE_ENUMERATION: u32 = 19;
/// Bits of the encoding of integers.
const SIGNED: u32 = 1;
const BOOLEAN: u32 = 4;

/// The content of memory where a value of a type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BtfShape {
    Integer {
        bytes: u8,
        is_signed: bool,
        is_boolean: bool,
        is_letter: bool,
    },
    /// An integer whose values have names.
    Enumeration {
        bytes: u8,
        is_signed: bool,
        number: u32,
    },
    /// The address of a value of this type; 0: of anything.
    Pointer(u32),
    /// A structure or a union.
    Structure(u32),
    Array {
        element: u32,
        count: u32,
    },
    /// A function, a floating-point number, or a type that another one only names.
    Other,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeMember {
    /// Empty: a structure or a union without a name.
    pub(crate) name: Vec<u8>,
    /// The number of its type.
    pub(crate) kind: u32,
    /// Where it begins.
    pub(crate) place_bits: u32,
    /// Bits of it; 0: all of its type.
    pub(crate) bits: u32,
}

impl KernelTypes {
    /// The type itself: behind typedefs, `const` and the like.
    fn resolved(&self, mut number: u32) -> Option<u32> {
        for _ in 0..DEPTH_MAX {
            let at = self.at(number)?;
            match self.kind(at)? {
                kind if ABOUT_ANOTHER.contains(&kind) => number = self.word(at + 8)?,
                _ => return Some(number),
            }
        }
        None
    }

    pub(super) fn at(&self, number: u32) -> Option<usize> {
        // Type 0 is none.
        self.places.get(number as usize).filter(|_| number > 0).map(|at| *at as usize)
    }

    /// The shape of a type; `None`: there is no such type.
    pub(crate) fn shape(&self, number: u32) -> Option<BtfShape> {
        let number = self.resolved(number)?;
        let at = self.at(number)?;
        let bytes = || u8::try_from(self.word(at + 8)?).ok().filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8));
        let is_signed = self.word(at + 4)? >> 31 == 1;
        Some(match self.kind(at)? {
            INTEGER => {
                let encoding = self.word(at + 12)? >> 24;
                let is_letter = self.name(self.word(at)? as usize)? == b"char";
                let (is_signed, is_boolean) = (encoding & SIGNED != 0, encoding & BOOLEAN != 0);
                bytes().map_or(BtfShape::Other, |bytes| BtfShape::Integer { bytes, is_signed, is_boolean, is_letter })
            }
            ENUMERATION | WIDE_ENUMERATION => {
                bytes().map_or(BtfShape::Other, |bytes| BtfShape::Enumeration { bytes, is_signed, number })
            }
            POINTER => BtfShape::Pointer(self.word(at + 8)?),
            STRUCTURE | UNION => BtfShape::Structure(number),
            ARRAY => BtfShape::Array { element: self.word(at + 12)?, count: self.word(at + 20)? },
            _ => BtfShape::Other,
        })
    }

    /// Bytes of a value of a type, as far as programs go from one to the next.
    pub(crate) fn bytes_of(&self, number: u32) -> Option<u32> {
        match self.shape(number)? {
            BtfShape::Integer { bytes, .. } | BtfShape::Enumeration { bytes, .. } => Some(bytes.into()),
            BtfShape::Pointer(_) => Some(8),
            BtfShape::Structure(number) => self.word(self.at(number)? + 8),
            BtfShape::Array { .. } | BtfShape::Other => None,
        }
    }

    /// Members of a structure; `None`: it is none.
    pub(crate) fn members(&self, number: u32) -> Option<Vec<TypeMember>> {
        let Some(BtfShape::Structure(number)) = self.shape(number) else { return None };
        let at = self.at(number)?;
        let has_sizes = self.word(at + 4)? >> 31 == 1;
        let member = |member: usize| {
            let at = at + 12 + 12 * member;
            let (name, kind, place) =
                (self.name(self.word(at)? as usize)?.to_vec(), self.word(at + 4)?, self.word(at + 8)?);
            let (place_bits, bits) = if has_sizes { (place & 0xff_ffff, place >> 24) } else { (place, 0) };
            Some(TypeMember { name, kind, place_bits, bits })
        };
        (0..self.count(at)?).map(member).collect()
    }

    /// A member of a structure, or of structures without a name in it.
    pub(crate) fn named_member(&self, number: u32, name: &str) -> Option<TypeMember> {
        self.member(number, name, 0)
    }

    /// Names of values, of an enumeration.
    pub(crate) fn labels(&self, number: u32) -> Vec<(String, i64)> {
        let Some((at, count)) = self.at(number).and_then(|at| Some((at, self.count(at)?))) else { return Vec::new() };
        let is_signed = self.word(at + 4).is_some_and(|word| word >> 31 == 1);
        let is_wide = self.kind(at) == Some(WIDE_ENUMERATION);
        let label = |label: usize| {
            let at = at + 12 + label * if is_wide { 12 } else { 8 };
            let name = String::from_utf8(self.name(self.word(at)? as usize)?.to_vec()).ok()?;
            let low = self.word(at + 4)?;
            let value = match (is_wide, is_signed) {
                (true, _) => (u64::from(self.word(at + 8)?) << 32 | u64::from(low)) as i64,
                (false, true) => i64::from(low as i32),
                (false, false) => i64::from(low),
            };
            Some((name, value))
        };
        (0..count).map_while(label).collect()
    }

    /// Numbers of functions by the rest of their names, of all that begin so.
    pub(crate) fn functions_named(&self, prefix: &str) -> HashMap<String, u32> {
        let bytes: &[u8] = &self.bytes;
        let named = |(number, at): (u32, &u32)| {
            let at = *at as usize;
            (word(bytes, at + 4)? >> 24 & 0x1f == FUNCTION).then_some(())?;
            let text = bytes.get(self.names.checked_add(word(bytes, at)? as usize)?..)?;
            let rest = text.strip_prefix(prefix.as_bytes())?.split(|byte| *byte == 0).next()?;
            Some((String::from_utf8(rest.to_vec()).ok()?, number))
        };
        (0..).zip(&self.places).skip(1).filter_map(named).collect()
    }

    /// Names and types of the arguments of the function with this number.
    pub(crate) fn arguments(&self, function: u32) -> Option<Vec<(String, u32)>> {
        let at = self.at(function)?;
        let prototype = self.at(self.word(at + 8)?).filter(|at| self.kind(*at) == Some(PROTOTYPE))?;
        let argument = |argument: usize| {
            let at = prototype + 12 + 8 * argument;
            let name = String::from_utf8(self.name(self.word(at)? as usize)?.to_vec()).ok()?;
            Some((name, self.word(at + 4)?))
        };
        (0..self.count(prototype)?).map(argument).collect()
    }

    /// Names of typedefs that begin so, without that.
    pub(crate) fn typedefs_named(&self, prefix: &str) -> Vec<&str> {
        let name = |name: &'_ Vec<u8>| name.strip_prefix(prefix.as_bytes()).map(<[u8]>::len);
        let names = self.typedefs.keys().filter_map(|known| {
            let length = name(known)?;
            std::str::from_utf8(&known[known.len() - length..]).ok()
        });
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types of the kernel that runs have the shapes that its source says.
    #[test]
    fn the_kernel_has_shapes() {
        let Ok(types) = KernelTypes::of_this_kernel() else { return println!("NO BTF HERE: not run") };
        let functions = types.functions_named("__traceiter_");
        let arguments = types.arguments(functions["sched_switch"]).expect("the kernel has the tracepoint");
        let names: Vec<&str> = arguments.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(&names[..4], ["__data", "preempt", "prev", "next"]);
        assert!(matches!(types.shape(arguments[1].1), Some(BtfShape::Integer { bytes: 1, is_boolean: true, .. })));
        let Some(BtfShape::Pointer(task)) = types.shape(arguments[2].1) else { panic!("it is an address") };
        let comm = types.named_member(task, "comm").expect("threads have names");
        let Some(BtfShape::Array { element, count: 16 }) = types.shape(comm.kind) else { panic!("{comm:?}") };
        assert!(matches!(types.shape(element), Some(BtfShape::Integer { bytes: 1, is_letter: true, .. })));
        let pid = types.named_member(task, "pid").expect("threads have numbers");
        assert!(matches!(types.shape(pid.kind), Some(BtfShape::Integer { bytes: 4, is_signed: true, .. })));
        let bits = types.named_member(task, "in_execve").expect("threads have bits");
        assert_eq!(bits.bits, 1);
        assert!(types.typedefs_named("btf_trace_").contains(&"sched_switch"));
        assert!(types.bytes_of(task).is_some_and(|bytes| bytes > 1000));
    }

    #[test]
    fn enumerations_have_labels() {
        let Ok(types) = KernelTypes::of_this_kernel() else { return println!("NO BTF HERE: not run") };
        let number = (1..types.places.len() as u32).find(|number| {
            let label = |(name, value): &(String, i64)| name == "HRTIMER_NORESTART" && *value == 0;
            matches!(types.shape(*number), Some(BtfShape::Enumeration { number: own, .. }) if own == *number)
                && types.labels(*number).iter().any(label)
        });
        assert!(number.is_some(), "timers end or go on");
    }
}
