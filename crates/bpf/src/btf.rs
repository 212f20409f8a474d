//! BTF: how objects of eBPF and the kernel describe their types.
//!
//! ```text
//! head │ types: name, kind and count, size or type │ more of each kind │ ... │ names
//! ```
//!
//! Types are numbers; 0 is `void`. Any bytes are types or are refused: numbers that lead nowhere, and types that are made of
//! themselves, are found when they are followed.

use thiserror::Error;

const MAGIC: u16 = 0xeb9f;
/// Bytes of a name at most, as in Linux.
const NAME_MAX: usize = 512;
/// Types that lead to one another, at most.
pub(crate) const DEPTH_MAX: usize = 32;

/// Why bytes are no types.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BtfProblem {
    /// They begin otherwise.
    #[error("its types (BTF) begin with {found:02x?} instead of [9f, eb]")]
    Magic {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// They end too early.
    #[error("its types (BTF) end inside of a type, at byte {at}")]
    Cut {
        /// The place.
        at: usize,
    },
    /// There is no such kind of type.
    #[error("type {number} of its types (BTF) has the kind {kind}, which does not exist")]
    Kind {
        /// The type.
        number: usize,
        /// Its kind.
        kind: u32,
    },
}

/// A member of a structure or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BtfMember {
    pub(crate) name: u32,
    /// Its type.
    pub type_number: u32,
    /// Bits from the begin of the structure.
    pub bit_offset: u32,
    /// Bits that it takes, if it takes not all of its type; else 0.
    pub bit_size: u8,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BtfKind {
    /// No type: `void`.
    Void,
    /// An integer.
    Integer {
        /// Its size.
        bytes: u32,
        /// It can be negative.
        is_signed: bool,
        /// It is a `_Bool`.
        is_bool: bool,
        /// It is a character.
        is_char: bool,
    },
    /// A pointer to a type.
    Pointer(u32),
    /// An array.
    Array {
        /// The type of its elements.
        element: u32,
        /// How many.
        count: u32,
    },
    /// A structure or union.
    Structure {
        /// Its members lie over each other.
        is_union: bool,
        /// Its size.
        bytes: u32,
        /// Its members.
        members: Vec<BtfMember>,
    },
    /// An enumeration: names, as places in the names, and values.
    Enumeration {
        /// Its size.
        bytes: u32,
        /// Values can be negative.
        is_signed: bool,
        /// Names and values.
        values: Vec<(u32, i64)>,
    },
    /// A structure whose members are not told.
    Forward,
    /// Another name of a type; or it with `const`, `volatile`, `restrict` or a tag.
    Alias {
        /// The type.
        of: u32,
        /// It is a `typedef`.
        is_typedef: bool,
    },
    /// A function, of this prototype.
    Function(u32),
    /// Types of arguments.
    Prototype(Vec<u32>),
    /// A variable of this type.
    Variable(u32),
    /// Variables of a section: type, offset, size.
    Section(Vec<[u32; 3]>),
    /// A real number of so many bytes.
    Float(u32),
    /// A tag of a declaration.
    Tag,
}

/// A type with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BtfType {
    pub(crate) name: u32,
    /// Its kind.
    pub kind: BtfKind,
}

/// Types.
#[derive(Clone, Debug)]
pub struct BtfTypes {
    types: Vec<BtfType>,
    names: Box<[u8]>,
}

/// Words of 4 bytes, one behind the other.
struct Words<'b> {
    bytes: &'b [u8],
    at: usize,
    end: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Result<u32, BtfProblem> {
        let word = self.bytes.get(..self.end).and_then(|bytes| word_at(bytes, self.at));
        self.at += 4;
        word.ok_or(BtfProblem::Cut { at: self.at - 4 })
    }

    /// So many rows of words.
    fn rows<const N: usize, T>(&mut self, count: usize, row: impl Fn([u32; N]) -> T) -> Result<Vec<T>, BtfProblem> {
        // A count that the bytes cannot hold must not ask for memory.
        let mut rows = Vec::with_capacity(count.min(self.end.saturating_sub(self.at) / (4 * N)));
        for _ in 0..count {
            let mut words = [0; N];
            for word in &mut words {
                *word = self.next()?;
            }
            rows.push(row(words));
        }
        Ok(rows)
    }
}

/// The word at a place, of a little-endian machine.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

impl BtfTypes {
    /// Reads types, as they are in a section `.BTF` or in `/sys/kernel/btf`.
    ///
    /// # Errors
    ///
    /// The place at which they are no types.
    ///
    /// ```
    /// let problem = kymo_bpf::BtfTypes::read(b"\x7fELF").unwrap_err();
    /// assert_eq!(problem.to_string(), "its types (BTF) begin with [7f, 45] instead of [9f, eb]");
    /// ```
    pub fn read(bytes: &[u8]) -> Result<Self, BtfProblem> {
        if bytes.first_chunk() != Some(&MAGIC.to_le_bytes()) {
            return Err(BtfProblem::Magic { found: bytes[..bytes.len().min(2)].to_vec() });
        }
        let mut head = Words { bytes, at: 4, end: bytes.len() };
        let [head_bytes, types, type_bytes, names, name_bytes] =
            [head.next()?, head.next()?, head.next()?, head.next()?, head.next()?].map(|word| word as usize);
        let begin = head_bytes.saturating_add(types);
        let end = begin.saturating_add(type_bytes);
        if end > bytes.len() {
            return Err(BtfProblem::Cut { at: bytes.len() });
        }
        let names = head_bytes.saturating_add(names);
        let names = bytes.get(names..names.saturating_add(name_bytes)).ok_or(BtfProblem::Cut { at: bytes.len() })?;
        let mut words = Words { bytes, at: begin, end };
        let mut all = vec![BtfType { name: 0, kind: BtfKind::Void }];
        while words.at < end {
            all.push(read_type(&mut words, all.len())?);
        }
        Ok(Self { types: all, names: names.into() })
    }

    /// Every type, by its number.
    #[must_use]
    pub fn types(&self) -> &[BtfType] {
        &self.types
    }

    /// The text at a place in the names; nothing if it is not there, or no text, or has more than 512 bytes: many names can be one.
    #[must_use]
    pub fn text(&self, at: u32) -> &str {
        match self.begin_of_text(at) {
            (text, true) => std::str::from_utf8(text).unwrap_or_default(),
            (_, false) => "",
        }
    }

    /// The same for a line of a source or the name of a file, of which 512 bytes are enough.
    pub(crate) fn line(&self, at: u32) -> &str {
        let (text, _) = self.begin_of_text(at);
        match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
        }
    }

    /// The text at a place, as far as names go, and whether that is all of it.
    fn begin_of_text(&self, at: u32) -> (&[u8], bool) {
        let rest = self.names.get(at as usize..).unwrap_or_default();
        let some = &rest[..rest.len().min(NAME_MAX + 1)];
        let end = some.iter().position(|byte| *byte == 0).unwrap_or(some.len());
        (&some[..end.min(NAME_MAX)], end <= NAME_MAX)
    }

    /// The name of a type.
    #[must_use]
    pub fn name(&self, number: u32) -> &str {
        self.types.get(number as usize).map_or("", |found| self.text(found.name))
    }

    /// The name of a member.
    #[must_use]
    pub fn member_name(&self, member: &BtfMember) -> &str {
        self.text(member.name)
    }

    /// The kind of a type, as it is without other names, and its number; `None`: it leads nowhere.
    #[must_use]
    pub fn plain(&self, mut number: u32) -> Option<(u32, &BtfKind)> {
        for _ in 0..DEPTH_MAX {
            match &self.types.get(number as usize)?.kind {
                BtfKind::Alias { of, .. } => number = *of,
                kind => return Some((number, kind)),
            }
        }
        None
    }

    /// The size of a type.
    #[must_use]
    pub fn size(&self, number: u32) -> Option<u64> {
        let (mut number, mut count) = (number, 1_u64);
        for _ in 0..DEPTH_MAX {
            let size = match self.plain(number)?.1 {
                BtfKind::Integer { bytes, .. }
                | BtfKind::Structure { bytes, .. }
                | BtfKind::Enumeration { bytes, .. }
                | BtfKind::Float(bytes) => u64::from(*bytes),
                BtfKind::Pointer(_) => 8,
                BtfKind::Array { element, count: more } => {
                    count = count.checked_mul((*more).into())?;
                    number = *element;
                    continue;
                }
                _ => return None,
            };
            return size.checked_mul(count);
        }
        None
    }

    /// Members of a structure, union, or another name of one.
    #[must_use]
    pub fn members(&self, number: u32) -> Option<&[BtfMember]> {
        match self.plain(number)?.1 {
            BtfKind::Structure { members, .. } => Some(members),
            _ => None,
        }
    }

    /// The structure that the first argument of a function points to.
    #[must_use]
    pub fn first_argument(&self, function: &str) -> Option<u32> {
        let prototype = self.types.iter().find_map(|found| match found.kind {
            BtfKind::Function(prototype) if self.text(found.name) == function => Some(prototype),
            _ => None,
        })?;
        let BtfKind::Prototype(arguments) = &self.types.get(prototype as usize)?.kind else { return None };
        let (_, BtfKind::Pointer(to)) = self.plain(*arguments.first()?)? else { return None };
        let (number, kind) = self.plain(*to)?;
        matches!(kind, BtfKind::Structure { .. }).then_some(number)
    }

    /// The same types, with only those members of a structure that a caller wants.
    #[must_use]
    pub fn with_members(&self, number: u32, wants: impl Fn(&str) -> bool) -> Self {
        let mut types = self.clone();
        if let Some(BtfKind::Structure { members, .. }) =
            types.types.get_mut(number as usize).map(|found| &mut found.kind)
        {
            members.retain(|member| wants(self.text(member.name)));
        }
        types
    }
}

fn read_type(words: &mut Words<'_>, number: usize) -> Result<BtfType, BtfProblem> {
    let (name, info, size) = (words.next()?, words.next()?, words.next()?);
    let (kind, count, flag) = (info >> 24 & 0x1f, info as usize & 0xffff, info >> 31 == 1);
    let kind = match kind {
        1 => {
            let encoding = words.next()? >> 24;
            let [is_signed, is_char, is_bool] = [1, 2, 4].map(|bit| encoding & bit != 0);
            BtfKind::Integer { bytes: size, is_signed, is_bool, is_char }
        }
        2 => BtfKind::Pointer(size),
        3 => {
            let (element, _, count) = (words.next()?, words.next()?, words.next()?);
            BtfKind::Array { element, count }
        }
        4 | 5 => {
            let member = |[name, type_number, place]: [u32; 3]| {
                let (bit_offset, bit_size) = if flag { (place & 0xff_ffff, (place >> 24) as u8) } else { (place, 0) };
                BtfMember { name, type_number, bit_offset, bit_size }
            };
            BtfKind::Structure { is_union: kind == 5, bytes: size, members: words.rows(count, member)? }
        }
        6 => {
            let value = |[name, value]: [u32; 2]| (name, if flag { i64::from(value as i32) } else { value.into() });
            BtfKind::Enumeration { bytes: size, is_signed: flag, values: words.rows(count, value)? }
        }
        7 => BtfKind::Forward,
        8..=11 | 18 => BtfKind::Alias { of: size, is_typedef: kind == 8 },
        12 => BtfKind::Function(size),
        13 => BtfKind::Prototype(words.rows(count, |[_, argument]: [u32; 2]| argument)?),
        14 => {
            words.next()?;
            BtfKind::Variable(size)
        }
        15 => BtfKind::Section(words.rows(count, |variable: [u32; 3]| variable)?),
        16 => BtfKind::Float(size),
        17 => {
            words.next()?;
            BtfKind::Tag
        }
        19 => {
            let value = |[name, low, high]: [u32; 3]| (name, (u64::from(high) << 32 | u64::from(low)) as i64);
            BtfKind::Enumeration { bytes: size, is_signed: flag, values: words.rows(count, value)? }
        }
        kind => return Err(BtfProblem::Kind { number, kind }),
    };
    Ok(BtfType { name, kind })
}
