//! BTF: the kernel's description of its own types, as far as a program needs places of members and numbers of tracepoints.
//!
//! ```text
//! head │ types: name, kind and count, size or type │ more of each kind │ ... │ names
//! ```
//!
//! A kernel has more than 100,000 types, and a question asks for a few: one pass finds where each type begins, and no name is copied
//! but those of typedefs, among which tracepoints are. Newer kernels let the description be mapped; others are asked for it in pages.

mod shapes;

use std::collections::HashMap;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::OwnedFd;

pub(crate) use shapes::{BtfShape, TypeMember};

use crate::mapped::ConstantBytes;

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

/// Bytes of a description.
#[derive(Debug)]
pub(crate) enum TypeBytes {
    Read(Vec<u8>),
    Mapped(ConstantBytes),
}

impl Deref for TypeBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(bytes) => bytes,
            Self::Mapped(bytes) => bytes,
        }
    }
}

impl TypeBytes {
    /// Those of the kernel that runs.
    #[allow(unsafe_code)]
    fn of_this_kernel() -> std::io::Result<Self> {
        let file = File::open(TYPES)?;
        let bytes = file.metadata()?.len() as usize;
        // SAFETY: the kernel has made the description when it was built, and the file has the size of it.
        match unsafe { ConstantBytes::map(&OwnedFd::from(file), bytes) } {
            Ok(bytes) => Ok(Self::Mapped(bytes)),
            // Kernels before 6.16 do not let it be mapped.
            Err(_) => std::fs::read(TYPES).map(Self::Read),
        }
    }
}

/// Types of the kernel.
#[derive(Debug)]
pub(crate) struct KernelTypes {
    bytes: TypeBytes,
    names: usize,
    /// Where each type begins, by its number.
    places: Vec<u32>,
    /// Numbers of structures.
    structures: Vec<u32>,
    typedefs: HashMap<Vec<u8>, u32>,
}

impl KernelTypes {
    /// Those of the kernel that runs.
    ///
    /// # Errors
    ///
    /// Why there are none, in a sentence.
    pub(crate) fn of_this_kernel() -> Result<Self, String> {
        let bytes = TypeBytes::of_this_kernel().map_err(|error| format!("{TYPES}: {error}"))?;
        Self::read(bytes).ok_or_else(|| format!("{TYPES} is no description of types"))
    }

    /// Reads them; `None`: these bytes are no description.
    pub(crate) fn read(bytes: TypeBytes) -> Option<Self> {
        let magic = u16::from_ne_bytes(*bytes.first_chunk()?);
        let head = |at: usize| word(&bytes, at).map(|word| word as usize);
        if magic != MAGIC {
            return None;
        }
        let (begin, types, type_bytes, names) = (head(4)?, head(8)?, head(12)?, head(16)?);
        let (begin, names) = (begin.checked_add(types)?, begin.checked_add(names)?);
        let end = begin.checked_add(type_bytes).filter(|end| *end <= bytes.len())?;
        // Type 0 is none.
        let mut places = vec![u32::try_from(begin).ok()?];
        let (mut structures, mut typedefs) = (Vec::new(), HashMap::new());
        let all: &[u8] = bytes.get(..end)?;
        let mut at = begin;
        while at < end {
            let kind_and_count = word(all, at + 4)?;
            let (number, kind) = (places.len() as u32, kind_and_count >> 24 & 0x1f);
            match kind {
                STRUCTURE => structures.push(number),
                TYPEDEF => {
                    let name = name(&bytes, names.checked_add(word(all, at)? as usize)?)?.to_vec();
                    typedefs.entry(name).or_insert(number);
                }
                _ => {}
            }
            places.push(u32::try_from(at).ok()?);
            at += 12 + more_bytes(kind, kind_and_count as usize & 0xffff)?;
        }
        Some(Self { bytes, names, places, structures, typedefs })
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
        let places = self.places.iter().skip(1).map(|at| *at as usize).filter(|at| self.kind(*at) == Some(FUNCTION));
        let names = places.filter_map(|at| self.name(self.word(at)? as usize));
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// The number of a function.
    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        let is_it = |number: &u32| self.is_named(*number, name) && self.kind_of(*number) == Some(FUNCTION);
        (1..self.places.len() as u32).find(is_it)
    }

    fn is_named(&self, number: u32, name: &str) -> bool {
        let at = self.at(number).and_then(|at| self.names.checked_add(self.word(at)? as usize));
        let rest = at.and_then(|at| self.bytes.get(at..)?.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    fn kind_of(&self, number: u32) -> Option<u32> {
        self.kind(self.at(number)?)
    }

    /// Where a member of a member of a structure is, in bytes.
    pub(crate) fn place(&self, structure: &str, members: &[&str]) -> Option<u32> {
        let mut number = *self.structures.iter().find(|number| self.is_named(**number, structure))?;
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
        name(&self.bytes, self.names.checked_add(at)?)
    }
}

/// The text at a place, up to its zero byte.
fn name(bytes: &[u8], at: usize) -> Option<&[u8]> {
    bytes.get(at..)?.split(|byte| *byte == 0).next()
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

    fn read(bytes: Vec<u8>) -> Option<KernelTypes> {
        KernelTypes::read(TypeBytes::Read(bytes))
    }

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
        let types = read(sample()).expect("it is one");
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
            let _ = read(bytes).map(|types| (types.place("a", &["b", "y"]), types.typedef("t")));
            let _ = read(sample()[..at].to_vec());
        }
    }

    #[test]
    fn the_kernel_describes_itself() {
        let Ok(bytes) = std::fs::read(TYPES) else {
            println!("NO BTF HERE: not run");
            return;
        };
        let types = KernelTypes::of_this_kernel().expect("it is one");
        assert_eq!(&types.bytes[..], &bytes[..], "mapped or read");
        assert!(types.typedef("btf_trace_sys_enter").is_some());
        assert!(types.place("task_struct", &["thread_info", "flags"]).is_some());
        assert!(types.place("vm_area_struct", &["vm_start"]).is_some());
    }
}
