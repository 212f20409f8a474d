//! A program with the functions that it calls: one list of instructions, in which maps and functions have numbers.
//!
//! ```text
//! SEC("kymo/tick")     call helper ──┐          program │ helper
//!    .text                helper  <──┘    ──>     call ────^        places of pieces are kept, for lines of the source
//! ```

use std::collections::HashMap;

use kymo_ir::machine::INSTRUCTIONS_MAX;

use crate::btf::BtfTypes;
use crate::core::CoreTarget;
use crate::elf::CodeSymbol;
use crate::parts::{FunctionSpan, ObjectParts};
use crate::problem::{LinkProblem, ObjectProblem};

const CALL: u8 = 0x85;
const WIDE_CONSTANT: u8 = 0x18;
/// Meanings of the second register of calls and wide constants.
const LOCAL_CALL: u8 = 1;
const FUNCTION: u8 = 4;
const MAP: u8 = 5;
const MAP_VALUE: u8 = 6;

/// A program that is linked.
#[derive(Clone, Debug)]
pub struct LinkedProgram {
    /// Instructions; maps are numbers of the object's maps.
    pub code: Vec<[u8; 8]>,
    /// Where each function begins, and the place where it was.
    pieces: Vec<(usize, FunctionSpan)>,
}

impl LinkedProgram {
    /// The place of an instruction in the object: its section and its index there.
    pub(crate) fn place(&self, at: usize) -> Option<(usize, usize)> {
        let behind = self.pieces.partition_point(|(begin, _)| *begin <= at);
        let (begin, span) = self.pieces.get(behind.checked_sub(1)?)?;
        Some((span.section, span.first + at - begin))
    }
}

/// Links a function and those that it calls; fields are those of the target's types.
pub(crate) fn link(
    object: &ObjectParts,
    program: FunctionSpan,
    target: Option<&BtfTypes>,
) -> Result<LinkedProgram, ObjectProblem> {
    let target = target.or(object.types.as_ref()).map(CoreTarget::new);
    let mut linker = Linker {
        object,
        target,
        linked: LinkedProgram { code: Vec::new(), pieces: Vec::new() },
        begins: HashMap::new(),
        waiting: vec![program],
        calls: Vec::new(),
    };
    while let Some(span) = linker.waiting.pop() {
        if !linker.begins.contains_key(&span) {
            linker.append(span)?;
        }
    }
    for (at, span) in std::mem::take(&mut linker.calls) {
        let distance = linker.begins[&span] as i64 - at as i64 - 1;
        // Programs are shorter than numbers of 32 bits.
        linker.linked.code[at][4..].copy_from_slice(&(distance as i32).to_le_bytes());
    }
    Ok(linker.linked)
}

struct Linker<'o> {
    object: &'o ObjectParts,
    target: Option<CoreTarget<'o>>,
    linked: LinkedProgram,
    /// Where functions begin.
    begins: HashMap<FunctionSpan, usize>,
    waiting: Vec<FunctionSpan>,
    /// Instructions that call functions or take their addresses.
    calls: Vec<(usize, FunctionSpan)>,
}

fn constant(word: [u8; 8]) -> i32 {
    i32::from_le_bytes([word[4], word[5], word[6], word[7]])
}

fn set_second_register(word: &mut [u8; 8], meaning: u8) {
    word[1] = word[1] & 0xf | meaning << 4;
}

impl Linker<'_> {
    fn append(&mut self, span: FunctionSpan) -> Result<(), ObjectProblem> {
        let elf = &self.object.elf;
        let section = &elf.sections[&span.section];
        let fault = |at: usize, kind| ObjectProblem::Link { section: section.name.clone(), at, kind };
        let begin = self.linked.code.len();
        if begin + span.count > INSTRUCTIONS_MAX {
            return Err(fault(span.first, LinkProblem::TooLong { limit: INSTRUCTIONS_MAX }));
        }
        self.begins.insert(span, begin);
        self.linked.pieces.push((begin, span));
        let words = span.first..span.first + span.count;
        self.linked.code.extend(words.clone().filter_map(|at| section.instruction(at)));
        for at in words {
            let index = begin + at - span.first;
            match section.relocations.get(&(at as u64 * 8)) {
                Some(symbol) => self.relocate(index, *symbol).map_err(|kind| fault(at, kind))?,
                None => self.local_call(span, at, index).map_err(|kind| fault(at, kind))?,
            }
        }
        for relocation in self.object.extension.relocations(&section.name, span.first, span.count) {
            let (Some(target), Some(types)) = (&self.target, &self.object.types) else { continue };
            let code = &mut self.linked.code[begin + relocation.at - span.first..];
            target.apply(types, *relocation, code).map_err(|kind| fault(relocation.at, kind))?;
        }
        Ok(())
    }

    /// A call inside of a section needs no relocation.
    fn local_call(&mut self, span: FunctionSpan, at: usize, index: usize) -> Result<(), LinkProblem> {
        let word = self.linked.code[index];
        if word[0] != CALL || word[1] >> 4 != LOCAL_CALL {
            return Ok(());
        }
        self.call(index, span.section, at as i64 + 1 + i64::from(constant(word)))
    }

    fn call(&mut self, index: usize, section: usize, target: i64) -> Result<(), LinkProblem> {
        let found = usize::try_from(target).ok().and_then(|first| self.object.function_at(section, first));
        let section = || self.object.elf.section_name(section).to_owned();
        let span = found.ok_or_else(|| LinkProblem::NoFunction { section: section(), target })?;
        self.calls.push((index, span));
        self.waiting.push(span);
        Ok(())
    }

    fn relocate(&mut self, index: usize, number: usize) -> Result<(), LinkProblem> {
        let elf = &self.object.elf;
        let symbol = elf.symbols.get(&number).ok_or(LinkProblem::NoSymbol { symbol: number })?;
        let word = self.linked.code[index];
        let Some(section) = symbol.section.filter(|section| elf.sections.contains_key(section)) else {
            return Err(LinkProblem::Extern { name: symbol.name.clone() });
        };
        match word[0] {
            CALL if elf.sections[&section].is_code => {
                let target = (symbol.value / 8) as i64 + i64::from(constant(word)) + 1;
                set_second_register(&mut self.linked.code[index], LOCAL_CALL);
                self.call(index, section, target)
            }
            WIDE_CONSTANT if index + 1 < self.linked.code.len() => self.constant(index, symbol, section),
            WIDE_CONSTANT => Err(LinkProblem::HalfConstant),
            opcode => Err(LinkProblem::OtherInstruction { opcode, name: symbol.name.clone() }),
        }
    }

    /// A constant that is the address of a function, a map or a variable.
    fn constant(&mut self, index: usize, symbol: &CodeSymbol, section: usize) -> Result<(), LinkProblem> {
        let offset = constant(self.linked.code[index]);
        if self.object.elf.sections[&section].is_code {
            set_second_register(&mut self.linked.code[index], FUNCTION);
            return self.call(index, section, (symbol.value / 8) as i64 + i64::from(offset / 8));
        }
        let is_maps = self.object.elf.section_name(section) == ".maps";
        let found = self.object.maps.iter().position(|map| {
            map.section == section && (!is_maps || map.offset == symbol.value.wrapping_add_signed(offset.into()))
        });
        let Some(map) = found else {
            return Err(match is_maps {
                true => LinkProblem::NoMap { at: symbol.value },
                false => LinkProblem::OtherSection {
                    name: symbol.name.clone(),
                    section: self.object.elf.section_name(section).to_owned(),
                },
            });
        };
        let place = if is_maps { 0 } else { symbol.value.wrapping_add_signed(offset.into()) as u32 };
        set_second_register(&mut self.linked.code[index], if is_maps { MAP } else { MAP_VALUE });
        self.linked.code[index][4..].copy_from_slice(&(map as u32).to_le_bytes());
        self.linked.code[index + 1][4..].copy_from_slice(&place.to_le_bytes());
        Ok(())
    }
}
