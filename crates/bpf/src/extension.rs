//! `.BTF.ext`: lines of the source, and the fields that instructions use (CO-RE), for each section with code.
//!
//! ```text
//! head │ functions │ lines │ CO-RE relocations
//!         each: size of a row │ section, count, rows │ section, count, rows │ ...
//! ```

use std::collections::HashMap;

use crate::btf::{BtfTypes, word_at};

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, as the compiler was told.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
}

/// A field or type that an instruction uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreRelocation {
    /// The instruction, by its index in the section.
    pub(crate) at: usize,
    pub(crate) type_number: u32,
    pub(crate) access: u32,
    pub(crate) kind: u32,
}

/// Rows of sections by their names; rows are in the order of instructions.
#[derive(Debug, Default)]
pub(crate) struct BtfExtension {
    lines: HashMap<String, Vec<[u32; 4]>>,
    relocations: HashMap<String, Vec<CoreRelocation>>,
}

impl BtfExtension {
    /// Reads it; what is cut or makes no sense is left out.
    pub(crate) fn read(bytes: &[u8], types: &BtfTypes) -> Self {
        let part = |at: usize| {
            let head = word_at(bytes, 4)? as usize;
            // Old heads end before the third part.
            let (offset, size) = if at + 8 <= head { (word_at(bytes, at)?, word_at(bytes, at + 4)?) } else { (0, 0) };
            let begin = head.checked_add(offset as usize)?;
            bytes.get(begin..begin.checked_add(size as usize)?)
        };
        let (mut lines, mut relocations) = (HashMap::new(), HashMap::<String, Vec<CoreRelocation>>::new());
        for (section, rows) in part(16).map(|bytes| rows(bytes, types)).unwrap_or_default() {
            lines.entry(section.to_owned()).or_insert_with(Vec::new).extend(rows);
        }
        for (section, rows) in part(24).map(|bytes| rows(bytes, types)).unwrap_or_default() {
            let rows = rows.into_iter().map(|[at, type_number, access, kind]| CoreRelocation {
                at: at as usize / 8,
                type_number,
                access,
                kind,
            });
            relocations.entry(section.to_owned()).or_default().extend(rows);
        }
        lines.values_mut().for_each(|rows| rows.sort_by_key(|row| row[0]));
        relocations.values_mut().for_each(|rows| rows.sort_by_key(|row| row.at));
        Self { lines, relocations }
    }

    /// The line of an instruction of a section.
    pub(crate) fn line(&self, types: &BtfTypes, section: &str, at: usize) -> Option<SourceLine> {
        let rows = self.lines.get(section)?;
        let behind = rows.partition_point(|row| row[0] as usize / 8 <= at);
        let [_, file, text, place] = *rows.get(behind.checked_sub(1)?)?;
        let text = types.line(text).trim().to_owned();
        Some(SourceLine { file: types.line(file).to_owned(), line: place >> 10, text })
    }

    /// Types whose members relocations find.
    pub(crate) fn related_types(&self) -> impl Iterator<Item = u32> {
        self.relocations.values().flatten().map(|relocation| relocation.type_number)
    }

    /// Relocations of so many instructions of a section from one on.
    pub(crate) fn relocations(&self, section: &str, first: usize, count: usize) -> &[CoreRelocation] {
        let Some(rows) = self.relocations.get(section) else { return &[] };
        let begin = rows.partition_point(|row| row.at < first);
        let end = rows.partition_point(|row| row.at < first.saturating_add(count));
        &rows[begin..end]
    }
}

/// Rows of 4 words of each section; more words of a row are ignored.
fn rows<'t>(bytes: &[u8], types: &'t BtfTypes) -> Vec<(&'t str, Vec<[u32; 4]>)> {
    let (mut all, mut at) = (Vec::new(), 4);
    let Some(row_bytes) = word_at(bytes, 0).map(|size| size as usize).filter(|size| *size >= 16) else { return all };
    while let (Some(section), Some(count)) = (word_at(bytes, at), word_at(bytes, at + 4)) {
        at += 8;
        let mut found = Vec::new();
        for _ in 0..count {
            let row = [0, 4, 8, 12].map(|part| word_at(bytes, at + part));
            let [Some(a), Some(b), Some(c), Some(d)] = row else { break };
            found.push([a, b, c, d]);
            at = at.saturating_add(row_bytes);
        }
        all.push((types.text(section), found));
    }
    all
}
