//! The parts of an ELF file that objects of eBPF have: sections, symbols, relocations.

use std::collections::HashMap;

use object::elf::{EM_BPF, SHF_EXECINSTR, SHT_NOBITS};
use object::read::elf::{ElfFile64, FileHeader};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags, SectionIndex, SymbolKind,
    SymbolSection,
};

use crate::problem::ObjectProblem;

/// Bytes of variables without contents at most.
const ZEROS_MAX: u64 = 1 << 28;

/// A section.
#[derive(Debug)]
pub(crate) struct CodeSection {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_code: bool,
    /// Symbols that places name, by place.
    pub(crate) relocations: HashMap<u64, usize>,
}

impl CodeSection {
    /// The instruction at an index.
    pub(crate) fn instruction(&self, at: usize) -> Option<[u8; 8]> {
        self.bytes.get(at.checked_mul(8)?..)?.first_chunk().copied()
    }
}

/// A symbol.
#[derive(Debug)]
pub(crate) struct CodeSymbol {
    pub(crate) name: String,
    /// Its section, by its number; none: it is outside of the object.
    pub(crate) section: Option<usize>,
    pub(crate) value: u64,
    pub(crate) size: u64,
    pub(crate) is_function: bool,
    /// Other objects see it.
    pub(crate) is_global: bool,
}

/// Sections and symbols, by their numbers in the file.
#[derive(Debug)]
pub(crate) struct ElfParts {
    pub(crate) sections: HashMap<usize, CodeSection>,
    pub(crate) symbols: HashMap<usize, CodeSymbol>,
    /// Places of symbols, by section and name.
    places: HashMap<(usize, String), u64>,
}

impl ElfParts {
    pub(crate) fn read(data: &[u8]) -> Result<Self, ObjectProblem> {
        if !data.starts_with(b"\x7fELF") {
            return Err(ObjectProblem::NotElf { found: data[..data.len().min(4)].to_vec() });
        }
        // The 5th byte tells the width of addresses.
        if data.get(4) == Some(&1) {
            return Err(ObjectProblem::NotBpf { found: "a processor of 32 bits".to_owned() });
        }
        let file = ElfFile64::<Endianness>::parse(data).map_err(damaged)?;
        let machine = file.elf_header().e_machine(file.endian());
        if machine != EM_BPF {
            return Err(ObjectProblem::NotBpf { found: format!("{:?} (machine {machine})", file.architecture()) });
        }
        if !file.is_little_endian() {
            return Err(ObjectProblem::BigEndian);
        }
        let sections = sections(&file)?;
        let symbols: HashMap<usize, CodeSymbol> =
            file.symbols().map(|symbol| (symbol.index().0, code_symbol(&symbol))).collect();
        let places = symbols.values().filter_map(|symbol| Some(((symbol.section?, symbol.name.clone()), symbol.value)));
        let places = places.collect();
        Ok(Self { sections, symbols, places })
    }

    /// The place of the symbol with a name in a section.
    pub(crate) fn place_of(&self, section: usize, name: &str) -> Option<u64> {
        self.places.get(&(section, name.to_owned())).copied()
    }

    /// The number of the section with a name.
    pub(crate) fn section_named(&self, name: &str) -> Option<usize> {
        self.sections.iter().filter(|(_, section)| section.name == name).map(|(number, _)| *number).min()
    }

    pub(crate) fn section_name(&self, number: usize) -> &str {
        self.sections.get(&number).map_or("", |section| &section.name)
    }
}

fn damaged(error: impl std::fmt::Display) -> ObjectProblem {
    ObjectProblem::Damaged { why: error.to_string() }
}

fn sections(file: &ElfFile64<'_, Endianness>) -> Result<HashMap<usize, CodeSection>, ObjectProblem> {
    let mut sections = HashMap::new();
    for section in file.sections() {
        let name = String::from_utf8_lossy(section.name_bytes().map_err(damaged)?).into_owned();
        let is_code =
            matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & u64::from(SHF_EXECINSTR) != 0);
        let is_empty = section.elf_section_header().sh_type.get(file.endian()) == SHT_NOBITS;
        let bytes = if is_empty {
            if section.size() > ZEROS_MAX {
                let why = format!("section {name} has {} bytes; at most {ZEROS_MAX} are allowed", section.size());
                return Err(ObjectProblem::Damaged { why });
            }
            vec![0; section.size() as usize]
        } else if is_wanted(&name, is_code) {
            section.data().map_err(damaged)?.to_vec()
        } else {
            Vec::new()
        };
        if is_code && bytes.len() % 8 != 0 {
            return Err(ObjectProblem::CodeSize { section: name, bytes: bytes.len() });
        }
        let relocations = if is_wanted(&name, is_code) {
            let relocations = section.relocations().filter_map(|(at, relocation)| match relocation.target() {
                RelocationTarget::Symbol(symbol) => Some((at, symbol.0)),
                _ => None,
            });
            relocations.collect()
        } else {
            HashMap::new()
        };
        sections.insert(section.index().0, CodeSection { name, bytes, is_code, relocations });
    }
    Ok(sections)
}

/// The contents of a section matter; others are debug information and tables.
fn is_wanted(name: &str, is_code: bool) -> bool {
    is_code || is_variables(name) || matches!(name, ".BTF" | ".BTF.ext" | ".maps" | "maps" | "license")
}

/// A section with variables of the program.
pub(crate) fn is_variables(name: &str) -> bool {
    [".data", ".rodata", ".bss"]
        .iter()
        .any(|begin| name.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

fn code_symbol<'d>(symbol: &impl ObjectSymbol<'d>) -> CodeSymbol {
    let section = match symbol.section() {
        SymbolSection::Section(SectionIndex(number)) => Some(number),
        _ => None,
    };
    CodeSymbol {
        name: symbol.name_bytes().map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default(),
        section,
        value: symbol.address(),
        size: symbol.size(),
        is_function: symbol.kind() == SymbolKind::Text && section.is_some(),
        is_global: symbol.is_global(),
    }
}
