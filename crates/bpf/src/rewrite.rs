//! Objects with other sections than their files have.
//!
//! ```text
//! file ── header │ sections │ table        the table, with sections that changed or are new, comes behind all
//!     ──> header │ sections │ table │ changed sections │ new sections │ new table
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use crate::btf::BtfTypes;

const HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const RELOCATION_BYTES: usize = 16;
const TYPE_SYMBOLS: u32 = 2;
pub(crate) const TYPE_PROGBITS: u32 = 1;
pub(crate) const TYPE_RELOCATIONS: u32 = 9;
pub(crate) const FLAG_CODE: u64 = 4;
/// Sections of programs for events of traces begin so.
const EVENTS: &str = "kymo/";

/// An entry of the table of sections.
#[derive(Clone, Copy, Default)]
pub(crate) struct SectionHead {
    pub(crate) name: u32,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    pub(crate) alignment: u64,
    pub(crate) entry_bytes: u64,
}

impl SectionHead {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| word(bytes, at);
        let long = |at: usize| long(bytes, at);
        Some(Self {
            name: word(0)?,
            kind: word(4)?,
            flags: long(8)?,
            address: long(16)?,
            offset: long(24)?,
            size: long(32)?,
            link: word(40)?,
            info: word(44)?,
            alignment: long(48)?,
            entry_bytes: long(56)?,
        })
    }

    fn write(&self, into: &mut Vec<u8>) {
        [self.name, self.kind].iter().for_each(|word| into.extend(word.to_le_bytes()));
        [self.flags, self.address, self.offset, self.size].iter().for_each(|long| into.extend(long.to_le_bytes()));
        [self.link, self.info].iter().for_each(|word| into.extend(word.to_le_bytes()));
        [self.alignment, self.entry_bytes].iter().for_each(|long| into.extend(long.to_le_bytes()));
    }

    fn range(&self) -> Option<Range<usize>> {
        let begin = usize::try_from(self.offset).ok()?;
        Some(begin..begin.checked_add(usize::try_from(self.size).ok()?)?)
    }
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// An object that gets more sections.
pub(crate) struct ChangedObject<'d> {
    data: &'d [u8],
    pub(crate) heads: Vec<SectionHead>,
    /// Sections with other bytes than those of the file.
    pub(crate) changed: BTreeMap<usize, Vec<u8>>,
    /// The section with names of sections, and that with symbols.
    names: usize,
    symbols: usize,
    /// The first symbol that is added.
    pub(crate) first_symbol: u64,
}

impl<'d> ChangedObject<'d> {
    pub(crate) fn read(data: &'d [u8]) -> Option<Self> {
        let table = usize::try_from(long(data, 0x28)?).ok()?;
        let half = |at: usize| data.get(at..)?.first_chunk().map(|bytes| usize::from(u16::from_le_bytes(*bytes)));
        if half(0x3a)? != HEADER_BYTES {
            return None;
        }
        let heads = (0..half(0x3c)?).map(|index| {
            let begin = table.checked_add(index * HEADER_BYTES)?;
            SectionHead::read(data.get(begin..begin.checked_add(HEADER_BYTES)?)?)
        });
        let heads: Vec<SectionHead> = heads.collect::<Option<_>>()?;
        let symbols = heads.iter().position(|head| head.kind == TYPE_SYMBOLS)?;
        let (changed, first_symbol) = (BTreeMap::new(), heads[symbols].size / SYMBOL_BYTES as u64);
        Some(Self { data, heads, changed, names: half(0x3e)?, symbols, first_symbol })
    }

    /// The bytes of a section as they are in the file.
    pub(crate) fn bytes(&self, section: usize) -> Option<&'d [u8]> {
        self.data.get(self.heads.get(section)?.range()?)
    }

    /// Those of a section that changes.
    pub(crate) fn change(&mut self, section: usize) -> Option<&mut Vec<u8>> {
        if !self.changed.contains_key(&section) {
            let bytes = self.bytes(section)?.to_vec();
            self.changed.insert(section, bytes);
        }
        self.changed.get_mut(&section)
    }

    pub(crate) fn section(&self, name: &str) -> Option<usize> {
        let names = self.bytes(self.names)?;
        let is_it = |head: &SectionHead| {
            let text = names.get(head.name as usize..).and_then(|text| text.strip_prefix(name.as_bytes()));
            text.is_some_and(|rest| rest.first() == Some(&0))
        };
        self.heads.iter().position(is_it)
    }

    pub(crate) fn add(&mut self, name: &str, head: SectionHead, bytes: Vec<u8>) -> Option<usize> {
        let names = self.change(self.names)?;
        let place = u32::try_from(names.len()).ok()?;
        names.extend(name.bytes().chain([0]));
        self.heads.push(SectionHead { name: place, ..head });
        self.changed.insert(self.heads.len() - 1, bytes);
        Some(self.heads.len() - 1)
    }

    pub(crate) fn add_relocations(&mut self, section: usize, bytes: Vec<u8>) -> Option<usize> {
        let head = SectionHead {
            kind: TYPE_RELOCATIONS,
            link: self.symbols as u32,
            info: section as u32,
            alignment: 8,
            entry_bytes: RELOCATION_BYTES as u64,
            ..SectionHead::default()
        };
        self.add(&format!(".rel.kymo{section}"), head, bytes)
    }

    pub(crate) fn add_symbol(&mut self, (name, kind, section, value, size): (&str, u8, usize, u64, u64)) -> Option<()> {
        let names = self.change(self.heads[self.symbols].link as usize)?;
        let place = u32::try_from(names.len()).ok()?;
        names.extend(name.bytes().chain([0]));
        let section = u16::try_from(section).ok()?;
        let symbols = self.change(self.symbols)?;
        symbols.extend(place.to_le_bytes());
        symbols.extend([kind, 0]);
        symbols.extend(section.to_le_bytes());
        symbols.extend(value.to_le_bytes());
        symbols.extend(size.to_le_bytes());
        Some(())
    }

    pub(crate) fn finish(mut self) -> Option<Vec<u8>> {
        let mut file = self.data.to_vec();
        for (section, bytes) in self.changed {
            file.resize(file.len().next_multiple_of(8), 0);
            let head = &mut self.heads[section];
            (head.offset, head.size) = (file.len() as u64, bytes.len() as u64);
            file.extend(bytes);
        }
        file.resize(file.len().next_multiple_of(8), 0);
        let table = file.len() as u64;
        file.get_mut(0x28..0x30)?.copy_from_slice(&table.to_le_bytes());
        let count = u16::try_from(self.heads.len()).ok()?;
        file.get_mut(0x3c..0x3e)?.copy_from_slice(&count.to_le_bytes());
        self.heads.iter().for_each(|head| head.write(&mut file));
        Some(file)
    }
}

/// The same object without its programs for events of traces, which loaders of the kernel do not know; `None`: it has none.
#[must_use]
pub fn kernel_object(data: &[u8]) -> Option<Vec<u8>> {
    let mut object = ChangedObject::read(data)?;
    let names = object.bytes(object.names)?;
    let is_event = |head: &SectionHead| {
        let name = names.get(head.name as usize..);
        head.flags & FLAG_CODE != 0 && name.is_some_and(|name| name.starts_with(EVENTS.as_bytes()))
    };
    let hidden: Vec<usize> = (0..object.heads.len()).filter(|section| is_event(&object.heads[*section])).collect();
    if hidden.is_empty() {
        return None;
    }
    hidden.iter().for_each(|section| object.heads[*section].flags &= !FLAG_CODE);
    if let (Some(types), Some(extension)) = (object.section(".BTF"), object.section(".BTF.ext")) {
        let types = BtfTypes::read(object.bytes(types)?).ok()?;
        let kept = |section: u32| !types.text(section).starts_with(EVENTS);
        let mut parts = ExtensionParts::read(object.bytes(extension)?)?;
        for part in [&mut parts.functions, &mut parts.lines, &mut parts.fields] {
            *part = kept_rows(part, kept)?;
        }
        object.changed.insert(extension, parts.write(object.bytes(extension)?)?);
    }
    object.finish()
}

/// Rows of a part, of those sections that are kept.
fn kept_rows(part: &[u8], kept: impl Fn(u32) -> bool) -> Option<Vec<u8>> {
    let Some(row_bytes) = word(part, 0) else { return Some(Vec::new()) };
    let (mut all, mut at) = (part[..4].to_vec(), 4);
    while let (Some(section), Some(rows)) = (word(part, at), word(part, at + 4)) {
        let end = at.checked_add(8)?.checked_add((row_bytes as usize).checked_mul(rows as usize)?)?;
        let block = part.get(at..end)?;
        if kept(section) {
            all.extend(block);
        }
        at = end;
    }
    Some(all)
}

/// The parts of `.BTF.ext`: functions, lines, and fields that instructions use.
pub(crate) struct ExtensionParts {
    pub(crate) functions: Vec<u8>,
    pub(crate) lines: Vec<u8>,
    pub(crate) fields: Vec<u8>,
}

impl ExtensionParts {
    pub(crate) fn read(old: &[u8]) -> Option<Self> {
        let head_bytes = word(old, 4)? as usize;
        let part = |at: usize| {
            // Old heads end before the third part.
            let (offset, size) = if at + 8 <= head_bytes { (word(old, at)?, word(old, at + 4)?) } else { (0, 0) };
            old.get(head_bytes.checked_add(offset as usize)?..)?.get(..size as usize)
        };
        let (functions, lines, fields) = (part(8)?.to_vec(), part(16)?.to_vec(), part(24)?.to_vec());
        Some(Self { functions, lines, fields })
    }

    /// The section with these parts, and the begin of an old one.
    pub(crate) fn write(&self, old: &[u8]) -> Option<Vec<u8>> {
        let mut section = old.get(..4)?.to_vec();
        let parts = [&self.functions, &self.lines, &self.fields];
        section.extend((8 + 8 * parts.len() as u32).to_le_bytes());
        let mut offset = 0;
        for part in parts {
            [offset, part.len() as u32].iter().for_each(|word| section.extend(word.to_le_bytes()));
            offset += part.len() as u32;
        }
        parts.iter().for_each(|part| section.extend(*part));
        Some(section)
    }
}
