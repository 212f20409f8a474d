//! The parts of an ELF file that objects of eBPF have: sections, symbols, relocations.

use std::collections::HashMap;

use object::elf::{EM_BPF, SHF_EXECINSTR, SHT_NOBITS};
use object::read::elf::{ElfFile64, FileHeader};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags, SectionIndex, SymbolKind,
    SymbolSection,
};

use crate::problem::ObjectProblem;

/// Bytes of all sections, names and relocations at most: in a file, several of them can lie over each other.
const BYTES_MAX: u64 = 1 << 28;
/// Bytes of a section's name at most.
const SECTION_NAME_MAX: usize = 512;
/// Bytes that a relocation takes, about.
const RELOCATION_BYTES: u64 = 32;

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
        let mut room = ElfRoom { left: BYTES_MAX };
        let sections = sections(&file, &mut room)?;
        let mut symbols = HashMap::new();
        for symbol in file.symbols() {
            room.take(symbol.name_bytes().map_or(0, <[u8]>::len) as u64, || "its symbols have names".to_owned())?;
            symbols.insert(symbol.index().0, code_symbol(&symbol));
        }
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

/// Memory that parts of a file may still take.
struct ElfRoom {
    left: u64,
}

impl ElfRoom {
    /// Takes some for a part, which the words name with their verb: `section .bss has`.
    fn take(&mut self, bytes: u64, words: impl Fn() -> String) -> Result<(), ObjectProblem> {
        let why = || format!("{} of {bytes} bytes, and all parts may have {BYTES_MAX} together", words());
        self.left = self.left.checked_sub(bytes).ok_or_else(|| ObjectProblem::Damaged { why: why() })?;
        Ok(())
    }
}

fn section_name(bytes: &[u8]) -> Result<String, ObjectProblem> {
    if bytes.len() > SECTION_NAME_MAX {
        let why = format!("a section has a name of {} bytes; at most {SECTION_NAME_MAX} are allowed", bytes.len());
        return Err(ObjectProblem::Damaged { why });
    }
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn sections(
    file: &ElfFile64<'_, Endianness>,
    room: &mut ElfRoom,
) -> Result<HashMap<usize, CodeSection>, ObjectProblem> {
    let mut sections = HashMap::new();
    for section in file.sections() {
        let name = section_name(section.name_bytes().map_err(damaged)?)?;
        let is_code =
            matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & u64::from(SHF_EXECINSTR) != 0);
        let is_empty = section.elf_section_header().sh_type.get(file.endian()) == SHT_NOBITS;
        let is_wanted = is_wanted(&name, is_code);
        if is_wanted {
            room.take(section.size(), || format!("section {name} has contents"))?;
        }
        let bytes = match (is_wanted, is_empty) {
            (true, true) => vec![0; section.size() as usize],
            (true, false) => section.data().map_err(damaged)?.to_vec(),
            (false, _) => Vec::new(),
        };
        if is_code && bytes.len() % 8 != 0 {
            return Err(ObjectProblem::CodeSize { section: name, bytes: bytes.len() });
        }
        let mut relocations = HashMap::new();
        if is_wanted {
            for (at, relocation) in section.relocations() {
                room.take(RELOCATION_BYTES, || format!("section {name} has a relocation"))?;
                if let RelocationTarget::Symbol(symbol) = relocation.target() {
                    relocations.insert(at, symbol.0);
                }
            }
        }
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
