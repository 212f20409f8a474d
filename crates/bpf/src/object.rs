//! An object: its programs, maps and types.

use std::collections::HashMap;

use kymo_ir::machine::{BpfMachine, MachineProgram, MapDefinition};

use crate::attach::AttachPoint;
use crate::btf::BtfTypes;
use crate::elf::ElfParts;
use crate::extension::{BtfExtension, SourceLine};
use crate::link::{self, LinkedProgram};
use crate::maps::{self, ObjectMap};
use crate::parts::{FunctionSpan, ObjectParts};
use crate::problem::ObjectProblem;

/// Bytes of a license at most.
const LICENSE_MAX: usize = 256;
/// Functions of code that programs call.
const SUBPROGRAMS: &str = ".text";

/// Numbers of the helper functions that write lines.
const PRINTING_CALLS: [u32; 2] = [6, 177];

/// A program of an object.
#[derive(Clone, Debug)]
pub struct ObjectProgram {
    /// The name of its function.
    pub name: String,
    /// Its section, which says where it attaches.
    pub section: String,
    /// Where it attaches.
    pub attach: AttachPoint,
    span: FunctionSpan,
}

impl ObjectProgram {
    /// Instructions, without those of functions that it calls.
    #[must_use]
    pub fn instructions(&self) -> usize {
        self.span.count
    }
}

/// An eBPF object file.
#[derive(Debug)]
pub struct BpfObject {
    parts: ObjectParts,
    programs: Vec<ObjectProgram>,
    license: Option<String>,
}

/// Maps that the machine has, of those of an object.
#[derive(Clone, Debug, Default)]
pub struct MachineMaps {
    /// Their definitions, as [`BpfMachine::new`] takes them.
    pub definitions: Vec<MapDefinition>,
    /// For each of them, the object's map.
    pub of_object: Vec<usize>,
    /// Why the machine does not have a map of the object, by its number.
    refusals: HashMap<usize, String>,
}

impl BpfObject {
    /// Reads an object. Only what is read here must be sound: programs are linked when they are asked for.
    ///
    /// # Errors
    ///
    /// It is no eBPF object, or damaged, or without a program.
    ///
    /// ```
    /// let problem = kymo_bpf::BpfObject::read(b"#!/bin/sh").unwrap_err();
    /// let expected = "it begins with [23, 21, 2f, 62], and an object file begins with [7f, 45, 4c, 46] (ELF)";
    /// assert_eq!(problem.to_string(), expected);
    /// ```
    pub fn read(data: &[u8]) -> Result<Self, ObjectProblem> {
        let elf = ElfParts::read(data)?;
        let section = |name: &str| elf.section_named(name).map(|number| &elf.sections[&number].bytes[..]);
        let types = section(".BTF").map(BtfTypes::read).transpose()?;
        let extension = match (&types, section(".BTF.ext")) {
            (Some(types), Some(bytes)) => BtfExtension::read(bytes, types),
            _ => BtfExtension::default(),
        };
        let license = section("license").and_then(|text| text.split(|byte| *byte == 0).next());
        let license = license.map(|text| String::from_utf8_lossy(&text[..text.len().min(LICENSE_MAX)]).into_owned());
        let functions = functions(&elf)?;
        let programs = programs(&elf, &functions);
        if programs.is_empty() {
            return Err(ObjectProblem::NoProgram);
        }
        let maps = maps::read(&elf, types.as_ref());
        let parts = ObjectParts { elf, types, extension, maps, functions };
        Ok(Self { parts, programs, license })
    }

    /// Its programs, in the order of sections and places.
    #[must_use]
    pub fn programs(&self) -> &[ObjectProgram] {
        &self.programs
    }

    /// Its maps.
    #[must_use]
    pub fn maps(&self) -> &[ObjectMap] {
        &self.parts.maps
    }

    /// Its types; none if it was compiled without `-g`.
    #[must_use]
    pub fn types(&self) -> Option<&BtfTypes> {
        self.parts.types.as_ref()
    }

    /// The text of its section `license`.
    #[must_use]
    pub fn license(&self) -> Option<&str> {
        self.license.as_deref()
    }

    /// Whether any of its code writes lines with `bpf_printk`.
    #[must_use]
    pub fn prints(&self) -> bool {
        let code = self.parts.elf.sections.values().filter(|section| section.is_code);
        let mut words = code.flat_map(|section| section.bytes.as_chunks::<8>().0);
        words.any(|word| PRINTING_CALLS.iter().any(|call| word[..2] == [0x85, 0] && word[4..] == call.to_le_bytes()))
    }

    /// Links a program with the functions that it calls. Its fields are where the target's types have them; without a target, as it
    /// was compiled.
    ///
    /// # Errors
    ///
    /// The first instruction that cannot be linked.
    pub fn link(&self, program: &ObjectProgram, target: Option<&BtfTypes>) -> Result<LinkedProgram, ObjectProblem> {
        link::link(&self.parts, program.span, target)
    }

    /// Whether instructions find members of a structure by CO-RE relocations, so that it can be another one elsewhere.
    #[must_use]
    pub fn has_relocations_of(&self, structure: u32) -> bool {
        let Some(types) = &self.parts.types else { return false };
        let is_it = |number: u32| types.plain(number).is_some_and(|(plain, _)| plain == structure);
        self.parts.extension.related_types().any(is_it)
    }

    /// The line of the source that an instruction of a linked program was made of.
    #[must_use]
    pub fn line(&self, linked: &LinkedProgram, at: usize) -> Option<SourceLine> {
        let (section, at) = linked.place(at)?;
        self.parts.extension.line(self.parts.types.as_ref()?, self.parts.elf.section_name(section), at)
    }

    /// Those of its maps that the machine has.
    #[must_use]
    pub fn machine_maps(&self) -> MachineMaps {
        let mut maps = MachineMaps::default();
        for (number, map) in self.parts.maps.iter().enumerate() {
            // A map that cannot be made must not keep programs without it from running.
            let definition = map.definition().and_then(|definition| {
                let made = BpfMachine::new(std::slice::from_ref(&definition));
                made.map(|_| definition).map_err(|problem| format!("which cannot be made: {}", problem.kind))
            });
            match definition {
                Ok(definition) => {
                    maps.definitions.push(definition);
                    maps.of_object.push(number);
                }
                Err(why) => {
                    maps.refusals.insert(number, why);
                }
            }
        }
        maps
    }

    /// A linked program for the machine.
    ///
    /// # Errors
    ///
    /// The first instruction that cannot run, or a map that the machine does not have.
    pub fn for_machine(&self, linked: &LinkedProgram, maps: &MachineMaps) -> Result<MachineProgram, ObjectProblem> {
        let mut code = linked.code.clone();
        let mut at = 0;
        while at < code.len() {
            let names_map = code[at][0] == 0x18 && matches!(code[at][1] >> 4, 5 | 6);
            if names_map {
                let number = u32::from_le_bytes([code[at][4], code[at][5], code[at][6], code[at][7]]) as usize;
                if let Some(why) = maps.refusals.get(&number) {
                    return Err(ObjectProblem::MapRefused {
                        name: self.parts.maps[number].name.clone(),
                        why: why.clone(),
                    });
                }
                let index = maps.of_object.iter().position(|map| *map == number).unwrap_or(usize::MAX);
                code[at][4..].copy_from_slice(&(index as u32).to_le_bytes());
            }
            at += if code[at][0] == 0x18 { 2 } else { 1 };
        }
        MachineProgram::new(&code, &maps.definitions).map_err(|problem| {
            let line = self.line(linked, problem.at).map_or_else(String::new, |line| line.to_string());
            ObjectProblem::Program { problem, line }
        })
    }

    /// A machine with the maps, and the variables of the program as they are at the start.
    ///
    /// # Errors
    ///
    /// The maps take too much memory together.
    pub fn machine(&self, maps: &MachineMaps) -> Result<BpfMachine, ObjectProblem> {
        let mut machine = BpfMachine::new(&maps.definitions)?;
        for (index, number) in maps.of_object.iter().enumerate() {
            if let Some(contents) = &self.parts.maps[*number].contents {
                machine.fill(index, contents);
            }
        }
        Ok(machine)
    }
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}: `{}`", self.file, self.line, self.text)
    }
}

/// Functions of all sections with code.
fn functions(elf: &ElfParts) -> Result<HashMap<(usize, usize), FunctionSpan>, ObjectProblem> {
    let mut functions = HashMap::new();
    for symbol in elf.symbols.values().filter(|symbol| symbol.is_function) {
        let Some((number, section)) = symbol.section.and_then(|number| Some((number, elf.sections.get(&number)?)))
        else {
            continue;
        };
        if !section.is_code {
            continue;
        }
        let (begin, end) = (symbol.value, symbol.value.saturating_add(symbol.size));
        let is_inside = end <= section.bytes.len() as u64 && begin % 8 == 0 && symbol.size % 8 == 0;
        if !is_inside {
            let (name, section_name) = (symbol.name.clone(), section.name.clone());
            let bytes = section.bytes.len();
            return Err(ObjectProblem::OutsideSection { name, section: section_name, begin, end, bytes });
        }
        let span = FunctionSpan { section: number, first: (begin / 8) as usize, count: (symbol.size / 8) as usize };
        functions.insert((number, span.first), span);
    }
    Ok(functions)
}

/// Functions that others can see, in sections that say where they attach.
fn programs(elf: &ElfParts, functions: &HashMap<(usize, usize), FunctionSpan>) -> Vec<ObjectProgram> {
    let symbols = elf.symbols.values().filter(|symbol| symbol.is_function && symbol.is_global);
    let program = |symbol: &crate::elf::CodeSymbol| {
        let number = symbol.section?;
        let section = elf.sections.get(&number)?;
        let span = *functions.get(&(number, (symbol.value / 8) as usize))?;
        let is_program = section.is_code && section.name != SUBPROGRAMS;
        is_program.then(|| ObjectProgram {
            name: symbol.name.clone(),
            section: section.name.clone(),
            attach: AttachPoint::of(&section.name),
            span,
        })
    };
    let mut programs: Vec<ObjectProgram> = symbols.filter_map(program).collect();
    programs.sort_by(|a, b| (a.span.section, a.span.first, &a.name).cmp(&(b.span.section, b.span.first, &b.name)));
    programs
}
