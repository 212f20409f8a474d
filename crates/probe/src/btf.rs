//! BTF: the kernel's description of its own types, as far as a program needs places of members and numbers of tracepoints.
//!
//! ```text
//! head │ types: name, kind and count, size or type │ more of each kind │ ... │ names
//! ```

mod shapes;

use std::collections::HashMap;

pub(crate) use shapes::{BtfShape, TypeMember};

const MAGIC: u16 = 0xeb9f;
/// Types that another one leads to at most.
const DEPTH_MAX: usize = 8;

const STRUCTURE: u32 = 4;
const UNION: u32 = 5;
const TYPEDEF: u32 = 8;
const FUNCTION: u32 = 12;
/// Typedef, volatile, const, restrict, a tag of a type: each is about one other type.
const ABOUT_ANOTHER: [u32; 5] = [TYPEDEF, 9, 10, 11, 18];

/// Where the kernel describes its types.
pub(crate) const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Types of the kernel.
#[derive(Debug)]
pub(crate) struct KernelTypes {
    bytes: Vec<u8>,
    names: usize,
    /// Where each type begins, by its number.
    places: Vec<usize>,
    structures: HashMap<Vec<u8>, u32>,
    typedefs: HashMap<Vec<u8>, u32>,
}

impl KernelTypes {
    /// Those of the kernel that runs.
    ///
    /// # Errors
    ///
    /// Why there are none, in a sentence.
    pub(crate) fn of_this_kernel() -> Result<Self, String> {
        let bytes = std::fs::read(TYPES).map_err(|error| format!("{TYPES}: {error}"))?;
        Self::read(bytes).ok_or_else(|| format!("{TYPES} is no description of types"))
    }

    /// Reads them; `None`: these bytes are no description.
    pub(crate) fn read(bytes: Vec<u8>) -> Option<Self> {
        let magic = u16::from_ne_bytes(*bytes.first_chunk()?);
        let word = |at: usize| word(&bytes, at).map(|word| word as usize);
        if magic != MAGIC {
            return None;
        }
        let (head, types, type_bytes, names) = (word(4)?, word(8)?, word(12)?, word(16)?);
        let (begin, names) = (head.checked_add(types)?, head.checked_add(names)?);
        let end = begin.checked_add(type_bytes).filter(|end| *end <= bytes.len())?;
        // Type 0 is none.
        let mut all = Self { bytes, names, places: vec![begin], structures: HashMap::new(), typedefs: HashMap::new() };
        let mut at = begin;
        while at < end {
            let number = all.places.len() as u32;
            let kind = all.kind(at)?;
            // There are ten times as many others.
            if matches!(kind, STRUCTURE | TYPEDEF) {
                let name = all.name(all.word(at)? as usize)?.to_vec();
                let named = if kind == STRUCTURE { &mut all.structures } else { &mut all.typedefs };
                named.entry(name).or_insert(number);
            }
            all.places.push(at);
            at += 12 + more_bytes(kind, all.count(at)?)?;
        }
        Some(all)
    }

    /// The number of a typedef.
    pub(crate) fn typedef(&self, name: &str) -> Option<u32> {
        self.typedefs.get(name.as_bytes()).copied()
    }

    /// The rest of the names of typedefs that begin so.
    pub(crate) fn typedefs_behind(&self, begin: &str) -> Vec<String> {
        let names = self.typedefs.keys().filter_map(|name| std::str::from_utf8(name).ok()?.strip_prefix(begin));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// Names of all functions.
    pub(crate) fn functions(&self) -> Vec<String> {
        let places = self.places.iter().skip(1).filter(|at| self.kind(**at) == Some(FUNCTION));
        let names = places.filter_map(|at| self.name(self.word(*at)? as usize));
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// The number of a function.
    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        let is_named = |at: u32| {
            let text = self.names.checked_add(at as usize).and_then(|at| self.bytes.get(at..));
            text.and_then(|text| text.strip_prefix(name.as_bytes())).is_some_and(|rest| rest.first() == Some(&0))
        };
        let is_it = |at: &usize| self.kind(*at) == Some(FUNCTION) && self.word(*at).is_some_and(is_named);
        // Type 0 has the place of type 1.
        self.places.iter().skip(1).position(is_it).map(|at| at as u32 + 1)
    }

    /// Where a member of a member of a structure is, in bytes.
    pub(crate) fn place(&self, structure: &str, members: &[&str]) -> Option<u32> {
        let mut number = *self.structures.get(structure.as_bytes())?;
        let mut bits = 0_u32;
        for name in members {
            let member = self.member(number, name, 0)?;
            bits = bits.checked_add(member.place_bits)?;
            number = member.kind;
        }
        bits.is_multiple_of(8).then_some(bits / 8)
    }

    /// A member of a structure, or of structures without a name in it.
    fn member(&self, number: u32, name: &str, depth: usize) -> Option<TypeMember> {
        for member in self.members(number)? {
            if member.name == name.as_bytes() {
                return Some(member);
            }
            if member.name.is_empty() && depth < DEPTH_MAX {
                let inner = self.member(member.kind, name, depth + 1);
                let place = inner.as_ref().and_then(|inner| member.place_bits.checked_add(inner.place_bits));
                if let (Some(inner), Some(place_bits)) = (inner, place) {
                    return Some(TypeMember { place_bits, ..inner });
                }
            }
        }
        None
    }

    fn word(&self, at: usize) -> Option<u32> {
        word(&self.bytes, at)
    }

    fn kind(&self, at: usize) -> Option<u32> {
        Some(self.word(at + 4)? >> 24 & 0x1f)
    }

    fn count(&self, at: usize) -> Option<usize> {
        Some(self.word(at + 4)? as usize & 0xffff)
    }

    fn name(&self, at: usize) -> Option<&[u8]> {
        let text = self.bytes.get(self.names.checked_add(at)?..)?;
        text.split(|byte| *byte == 0).next()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// Bytes behind the head of a type; `None`: there is no such kind.
fn more_bytes(kind: u32, count: usize) -> Option<usize> {
    match kind {
        1 | 14 | 17 => Some(4),
        3 => Some(12),
        STRUCTURE | UNION | 15 | 19 => Some(12 * count),
        6 | 13 => Some(8 * count),
        2 | 7..=12 | 16 | 18 => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct a { int x; struct { int y; } b; struct { int y; }; }`, `typedef struct a t`, and a function `y`.
    fn sample() -> Vec<u8> {
        let names = b"\0a\0x\0b\0y\0t\0";
        let kind = |kind: u32, count: u32| kind << 24 | count;
        let types: Vec<u32> = [
            &[0, kind(1, 0), 4, 32][..],
            &[0, kind(STRUCTURE, 1), 4, 7, 1, 0],
            &[1, kind(STRUCTURE, 3), 12, 3, 1, 0, 5, 2, 32, 0, 2, 64],
            &[9, kind(TYPEDEF, 0), 3],
            &[7, kind(FUNCTION, 0), 1],
        ]
        .concat();
        let head = [24, 0, types.len() as u32 * 4, types.len() as u32 * 4, names.len() as u32];
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        head.iter().chain(&types).for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(names);
        bytes
    }

    #[test]
    fn places_of_members() {
        let types = KernelTypes::read(sample()).expect("it is one");
        assert_eq!(types.place("a", &["x"]), Some(0));
        assert_eq!(types.place("a", &["b", "y"]), Some(4));
        assert_eq!(types.place("a", &["y"]), Some(8), "the structure around it has no name");
        assert_eq!((types.function("y"), types.function("a")), (Some(5), None));
        assert_eq!((types.place("a", &["z"]), types.place("b", &["x"])), (None, None));
        assert_eq!((types.typedef("t"), types.typedef("a")), (Some(4), None));
    }

    #[test]
    fn any_bytes_are_types_or_none() {
        for at in 0..sample().len() {
            let mut bytes = sample();
            bytes[at] ^= 0xff;
            let _ = KernelTypes::read(bytes).map(|types| (types.place("a", &["b", "y"]), types.typedef("t")));
            let _ = KernelTypes::read(sample()[..at].to_vec());
        }
    }

    #[test]
    fn the_kernel_describes_itself() {
        let Ok(bytes) = std::fs::read(TYPES) else {
            println!("NO BTF HERE: not run");
            return;
        };
        let types = KernelTypes::read(bytes).expect("it is one");
        assert!(types.typedef("btf_trace_sys_enter").is_some());
        assert!(types.place("task_struct", &["thread_info", "flags"]).is_some());
        assert!(types.place("vm_area_struct", &["vm_start"]).is_some());
    }
}
