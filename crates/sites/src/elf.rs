//! ELF files: where code is in the file, and the names of functions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;

use object::elf::{ELF_NOTE_GNU, FileHeader32, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{
    Architecture, CompressionFormat, Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags,
    SymbolFlags, SymbolKind,
};

use crate::SiteError;
use crate::machine::Machine;
use crate::note::{self, NoteSurroundings, UsdtSite};

/// Bytes of a section at most, when it is no longer compressed.
const SECTION_MAX: u64 = 1 << 30;
/// Bytes of a name at most; longer ones are no names that people write.
const NAME_MAX: usize = 4096;
/// How deep names of C++ are nested at most.
const NAME_DEPTH_MAX: u32 = 64;
/// The type of a function that tells which function is meant.
const INDIRECT: u8 = 10;
/// Bytes of a build id at most.
const BUILD_ID_MAX: usize = 64;
/// It is in so many bytes from the beginning of the file.
const BUILD_ID_WITHIN: u64 = 64 << 10;
const EXECUTABLE: u32 = 1;

/// A program or library.
#[derive(Debug)]
pub struct ElfFile<'d> {
    file: ElfFile64<'d, Endianness>,
    machine: Machine,
    segments: Vec<LoadedSegment>,
}

/// A part of the file that is mapped into memory.
#[derive(Clone, Copy, Debug)]
struct LoadedSegment {
    address: u64,
    offset: u64,
    /// Bytes of it in the file.
    size: u64,
    is_code: bool,
}

/// A function of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSite {
    /// Its name for the linker, without a version.
    pub symbol: String,
    /// Its name in the source, without its arguments.
    pub name: String,
    /// Its address in the file.
    pub address: u64,
    /// The offset of its first instruction in the file.
    pub offset: u64,
    /// Its bytes; 0: unknown.
    pub size: u64,
    /// It only tells which function is meant, when a program starts.
    pub is_indirect: bool,
    /// Only its own file can call it: a compiler may have changed its arguments.
    pub is_local: bool,
}

impl FunctionSite {
    /// The compiler made it of a part of a function, or for some of its callers: arguments are not those of the source.
    #[must_use]
    pub fn is_clone(&self) -> bool {
        ["isra", "constprop", "part", "cold"].iter().any(|kind| self.has_mark(kind))
    }

    /// It is code that a function jumps to, and no function.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.has_mark("cold")
    }

    /// The name without the compiler's marks, such as `.constprop.0` and `[abi:cxx11]`.
    #[must_use]
    pub fn plain_name(&self) -> &str {
        let marks = ["[abi:", ".isra", ".constprop", ".lto_priv", ".llvm"];
        let end = marks.iter().filter_map(|mark| self.name.find(mark)).min();
        end.map_or(&self.name, |end| &self.name[..end])
    }

    fn has_mark(&self, mark: &str) -> bool {
        self.symbol.split('.').skip(1).any(|part| part == mark)
    }
}

impl<'d> ElfFile<'d> {
    /// Reads the tables of a file.
    ///
    /// # Errors
    ///
    /// It is no ELF file, damaged, or for another processor.
    ///
    /// ```
    /// let error = kymo_sites::ElfFile::parse(b"#!/bin/sh").unwrap_err();
    /// assert_eq!(error.to_string(), r"it begins with #!/b, and a program or library begins with `\x7fELF`");
    /// ```
    pub fn parse(data: &'d [u8]) -> Result<Self, SiteError> {
        if !data.starts_with(b"\x7fELF") {
            return Err(SiteError::NotElf { found: data[..data.len().min(4)].to_vec() });
        }
        // The 5th byte tells the width of addresses.
        if data.get(4) == Some(&1) {
            return Err(SiteError::Processor { found: "32 bits".to_owned() });
        }
        let file = ElfFile64::<Endianness>::parse(data)?;
        let machine = match file.architecture() {
            Architecture::X86_64 if file.is_little_endian() => Machine::X86,
            Architecture::Aarch64 if file.is_little_endian() => Machine::Arm,
            other => return Err(SiteError::Processor { found: format!("{other:?}") }),
        };
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            let SegmentFlags::Elf { p_flags } = segment.flags() else {
                return LoadedSegment { address: 0, offset: 0, size: 0, is_code: false };
            };
            LoadedSegment { address: segment.address(), offset, size, is_code: p_flags & EXECUTABLE != 0 }
        });
        let segments = segments.collect();
        Ok(Self { file, machine, segments })
    }

    /// The processor that it is for.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Where in the file an address is; `None`: nowhere.
    #[must_use]
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.offset_in(address, false)
    }

    /// Where in the file an instruction is; `None`: nowhere, or there is no code.
    #[must_use]
    pub fn code_offset_of(&self, address: u64) -> Option<u64> {
        self.offset_in(address, true)
    }

    fn offset_in(&self, address: u64, is_code: bool) -> Option<u64> {
        let has = |segment: &&LoadedSegment| {
            address >= segment.address && address - segment.address < segment.size && (!is_code || segment.is_code)
        };
        let segment = self.segments.iter().find(has)?;
        segment.offset.checked_add(address - segment.address)
    }

    /// All functions, in the order of their addresses; one may have several names. `debug`: the file with the names that were
    /// taken out of this one.
    #[must_use]
    pub fn functions(&self, debug: Option<&ElfFile<'_>>) -> Vec<FunctionSite> {
        let own = self.file.symbols().chain(self.file.dynamic_symbols());
        let mut all: Vec<FunctionSite> = own.filter_map(|symbol| self.function(&symbol)).collect();
        all.extend(debug.iter().flat_map(|debug| debug.file.symbols()).filter_map(|symbol| self.function(&symbol)));
        all.sort_by(|one, other| (one.address, &one.symbol).cmp(&(other.address, &other.symbol)));
        all.dedup();
        all
    }

    fn function<'f>(&self, symbol: &impl ObjectSymbol<'f>) -> Option<FunctionSite> {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { return None };
        let is_indirect = st_info & 0xf == INDIRECT;
        if !(is_indirect || symbol.kind() == SymbolKind::Text) || symbol.is_undefined() {
            return None;
        }
        let name = symbol.name().ok().filter(|name| (1..=NAME_MAX).contains(&name.len()))?;
        let name = name.split_once('@').map_or(name, |(name, _)| name);
        let offset = self.code_offset_of(symbol.address())?;
        let (symbol_name, shown) = (name.to_owned(), source_name(name));
        let (address, size) = (symbol.address(), symbol.size());
        let is_local = symbol.is_local();
        Some(FunctionSite { symbol: symbol_name, name: shown, address, offset, size, is_indirect, is_local })
    }

    /// USDT probes, and the problems of damaged notes.
    #[must_use]
    pub fn usdt(&self) -> (Vec<UsdtSite>, Vec<String>) {
        let Some(notes) = self.section(".note.stapsdt") else { return (Vec::new(), Vec::new()) };
        let base = self.file.section_by_name(".stapsdt.base").map(|section| section.address());
        let mut symbols = None;
        let mut address_of = |name: &str| {
            let symbols: &HashMap<&str, u64> = symbols.get_or_insert_with(|| self.symbols());
            symbols.get(name).copied()
        };
        let mut around = NoteSurroundings {
            machine: self.machine,
            base,
            code_offset_of: &|address| self.code_offset_of(address),
            offset_of: &|address| self.offset_of(address),
            address_of: &mut address_of,
        };
        note::read(&notes, &mut around)
    }

    /// Addresses of all symbols.
    fn symbols(&self) -> HashMap<&str, u64> {
        let all = self.file.symbols().filter(|symbol| !symbol.is_undefined());
        all.filter_map(|symbol| Some((symbol.name().ok()?, symbol.address()))).collect()
    }

    /// The bytes of a section, which may be compressed.
    pub(crate) fn section(&self, name: &str) -> Option<Cow<'d, [u8]>> {
        let compressed = self.file.section_by_name(name)?.compressed_data().ok()?;
        let mut bytes = Vec::new();
        let read = match compressed.format {
            CompressionFormat::None => return Some(Cow::Borrowed(compressed.data)),
            CompressionFormat::Zlib => {
                flate2::read::ZlibDecoder::new(compressed.data).take(SECTION_MAX).read_to_end(&mut bytes)
            }
            CompressionFormat::Zstandard => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(compressed.data).ok()?;
                decoder.take(SECTION_MAX).read_to_end(&mut bytes)
            }
            _ => return None,
        };
        read.ok().map(|_| Cow::Owned(bytes))
    }

    /// Where distributions put the debug information of a file, in a folder for it, such as `.build-id/01/23456789.debug`.
    #[must_use]
    pub fn debug_path(&self) -> Option<String> {
        let id = self.file.build_id().ok()??;
        let (first, rest) = id.split_first().filter(|(_, rest)| (4..=60).contains(&rest.len()))?;
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(format!(".build-id/{first:02x}/{rest}.debug"))
    }
}

/// The build id of a program or library; `None`: it has none in its first 64 KiB, where linkers put it, or is no ELF file.
///
/// ```
/// assert_eq!(kymo_sites::build_id(&b"#!/bin/sh"[..]), None);
/// ```
#[must_use]
pub fn build_id(file: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(BUILD_ID_WITHIN).read_to_end(&mut bytes).ok()?;
    let id = match bytes.get(4)? {
        1 => id_of_segments::<FileHeader32<Endianness>>(&bytes),
        _ => id_of_segments::<FileHeader64<Endianness>>(&bytes),
    };
    id.filter(|id| (1..=BUILD_ID_MAX).contains(&id.len())).map(<[u8]>::to_vec)
}

fn id_of_segments<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<&[u8]> {
    let header = H::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, bytes).ok()? {
        let Ok(Some(mut notes)) = segment.notes(endian, bytes) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.n_type(endian) == NT_GNU_BUILD_ID && note.name() == ELF_NOTE_GNU {
                return Some(note.desc());
            }
        }
    }
    None
}

/// The name of a function in its source, without its arguments.
fn source_name(symbol: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        return format!("{rust:#}");
    }
    let options = cpp_demangle::ParseOptions::default().recursion_limit(NAME_DEPTH_MAX);
    let shown = cpp_demangle::DemangleOptions::new().no_params().no_return_type().recursion_limit(NAME_DEPTH_MAX);
    let is_cpp = symbol.starts_with("_Z");
    let cpp = is_cpp.then(|| cpp_demangle::Symbol::new_with_options(symbol, &options).ok()).flatten();
    cpp.and_then(|name| name.demangle_with_options(&shown).ok()).unwrap_or_else(|| symbol.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(source_name("main"), "main");
        assert_eq!(source_name("_ZN3foo3barEv"), "foo::bar");
        assert_eq!(source_name("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
        assert_eq!(source_name("_Zgarbage"), "_Zgarbage");
    }

    #[test]
    fn marks_of_compilers_are_known() {
        let of = |name: &str| FunctionSite {
            symbol: name.to_owned(),
            name: name.to_owned(),
            address: 0,
            offset: 0,
            size: 0,
            is_indirect: false,
            is_local: false,
        };
        assert_eq!(of("parse.constprop.0").plain_name(), "parse");
        assert_eq!(of("shop::name[abi:cxx11]").plain_name(), "shop::name");
        assert!(of("parse.isra.0").is_clone() && !of("parse").is_clone() && !of("parse.lto_priv.0").is_clone());
        assert!(of("parse.cold").is_fragment() && of("parse.constprop.0.cold").is_fragment());
    }
}
