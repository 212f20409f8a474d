//! Arguments and results of functions, from debug information (DWARF).

use std::borrow::Cow;
use std::collections::HashMap;

use gimli::{AttributeValue, DwarfSections, EndianSlice, LittleEndian, Operation, constants as dw};

use crate::convention::{CallingConvention, PassedPlace, kind};
use crate::elf::ElfFile;
use crate::entries::{DebugEntries, DebugEntry, EntryPlace};
use crate::machine::{ARM, Machine};
use crate::types::{SourceLanguage, TypeReader, TypeShape};
use crate::{ValueKind, ValuePlace};

/// Arguments of a function at most.
const ARGUMENTS_MAX: usize = 64;
/// The numbers of DWARF for registers of x86-64.
const X86: [&str; 16] =
    ["ax", "dx", "cx", "bx", "si", "di", "bp", "sp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// The debug information of a file.
#[derive(Debug)]
pub struct DebugData<'d> {
    sections: DwarfSections<Cow<'d, [u8]>>,
    machine: Machine,
}

/// The arguments and the result of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its arguments that can be recorded.
    pub arguments: Vec<FunctionArgument>,
    /// Names of the others, such as floating-point numbers; `ret`: of the result.
    pub absent: Vec<String>,
    /// Its result.
    pub result: ResultKind,
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionArgument {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ValueKind,
    /// Where it is when the function begins.
    pub place: ValuePlace,
}

/// The result of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// Nothing, or a value that is not in the register for results of integers.
    Nothing,
    /// A value.
    Value(ValueKind),
    /// It is not known.
    Unknown,
}

impl<'d> DebugData<'d> {
    /// The debug information in a file; `None`: there is none.
    #[must_use]
    pub fn of(file: &ElfFile<'d>) -> Option<Self> {
        file.section(".debug_info")?;
        let load = |id: gimli::SectionId| Ok::<_, gimli::Error>(file.section(id.name()).unwrap_or_default());
        let sections = DwarfSections::load(load).ok()?;
        Some(Self { sections, machine: file.machine() })
    }

    /// The signatures of functions at these addresses, as far as they are known; with each, whether only its own file can call it.
    #[must_use]
    pub fn signatures(&self, functions: &[(u64, bool)]) -> HashMap<u64, Signature> {
        let addresses: Vec<u64> = functions.iter().map(|(address, _)| *address).collect();
        let dwarf = self.sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        let entries = DebugEntries::of(dwarf);
        let mut all = HashMap::new();
        for unit in 0..entries.count() {
            if all.len() == addresses.len() {
                break;
            }
            let (found, is_optimized) = functions_at(&entries, unit, &addresses);
            for (address, place) in found {
                let is_changeable = is_optimized && functions.contains(&(address, true));
                let signature = self.signature(&entries, place, address, is_changeable);
                all.extend(signature.map(|signature| (address, signature)));
            }
            entries.forget();
        }
        all
    }

    fn signature(
        &self,
        entries: &DebugEntries<'_>,
        place: EntryPlace,
        address: u64,
        is_changeable: bool,
    ) -> Option<Signature> {
        let language = language(entries, place.unit)?;
        let types = TypeReader::new(entries, language);
        let kind_of = |place| {
            let (unit, value) = entries.inherited(place, dw::DW_AT_type)?;
            entries.referred(unit, value)
        };
        let result = types.shape(kind_of(place));
        let mut convention = CallingConvention::new(self.machine, language, &result);
        let mut signature = Signature { arguments: Vec::new(), absent: Vec::new(), result: result_kind(&result) };
        for (number, parameter) in parameters(entries, place).into_iter().enumerate() {
            let name = entries.inherited(parameter, dw::DW_AT_name).and_then(|(unit, name)| entries.text(unit, name));
            let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("arg{}", number + 1));
            let shape = types.shape(kind_of(parameter));
            let told = self.told(entries, parameter, address);
            let (passed, kind) = (convention.next(&shape), kind(&shape));
            if !signature.add(&name, (&shape, kind), passed, told, is_changeable) {
                signature.absent.push(name);
            }
        }
        // LLVM also leaves out results that no caller uses.
        if is_changeable && signature.result != ResultKind::Nothing {
            signature.result = ResultKind::Nothing;
            signature.absent.push("ret".to_owned());
        }
        Some(signature)
    }

    /// The register that has an argument when its function begins, if the debug information says so.
    fn told(&self, entries: &DebugEntries<'_>, parameter: EntryPlace, address: u64) -> Option<&'static str> {
        let unit = entries.unit(parameter.unit)?;
        let value = entries.entry(parameter)?.attr_value(dw::DW_AT_location)?;
        let expression = match value {
            AttributeValue::Exprloc(expression) => expression,
            other => {
                let mut all = entries.dwarf.attr_locations(&unit, other).ok()??;
                let mut found = None;
                while let Ok(Some(entry)) = all.next() {
                    if entry.range.begin <= address && address < entry.range.end {
                        found = Some(entry.data);
                        break;
                    }
                }
                found?
            }
        };
        let mut operations = expression.operations(unit.encoding());
        let first = operations.next().ok()??;
        let is_all = matches!(operations.next(), Ok(None));
        let Operation::Register { register } = first else { return None };
        let number = usize::from(register.0);
        let name = match self.machine {
            Machine::X86 => X86.get(number),
            Machine::Arm => ARM.get(number),
        };
        name.copied().filter(|_| is_all)
    }
}

impl Signature {
    /// Adds an argument; whether it is known where that is. LLVM passes arguments of functions that only one file calls as it
    /// likes, or leaves them out: if it may have done so, the debug information has to say where they are. GCC makes a copy of
    /// another name for that.
    fn add(
        &mut self,
        name: &str,
        (shape, kind): (&TypeShape, Option<ValueKind>),
        passed: PassedPlace,
        told: Option<&'static str>,
        is_changeable: bool,
    ) -> bool {
        let Some(kind) = kind else { return false };
        let mut push = |name: String, kind, place| self.arguments.push(FunctionArgument { name, kind, place });
        match (passed, told) {
            (PassedPlace::Here(_), Some(place)) => push(name.to_owned(), kind, ValuePlace::Register(place)),
            (PassedPlace::Here(place), None) if !is_changeable => push(name.to_owned(), kind, place),
            (PassedPlace::Slice(address, length), _) if !is_changeable => {
                push(name.to_owned(), kind, address);
                push(format!("{name}_length"), ValueKind::Unsigned(8), length);
            }
            (PassedPlace::Unknown, Some(place)) if matches!(shape, TypeShape::Value(_)) => {
                push(name.to_owned(), kind, ValuePlace::Register(place));
            }
            _ => return false,
        }
        true
    }
}

/// Whether GCC made a unit.
fn is_of_gcc(entries: &DebugEntries<'_>, unit: usize) -> bool {
    let producer = || {
        let root = entries.unit(unit)?;
        let root = root.entry(root.header.root_offset()).ok()?;
        entries.text(unit, root.attr_value(dw::DW_AT_producer)?)
    };
    producer().is_some_and(|producer| producer.starts_with("GNU "))
}

fn result_kind(shape: &TypeShape) -> ResultKind {
    match (shape, kind(shape)) {
        (TypeShape::Unknown, _) => ResultKind::Unknown,
        (TypeShape::Value(_) | TypeShape::Slice, Some(kind)) => ResultKind::Value(kind),
        _ => ResultKind::Nothing,
    }
}

fn language(entries: &DebugEntries<'_>, unit: usize) -> Option<SourceLanguage> {
    let unit = entries.unit(unit)?;
    let root = unit.entry(unit.header.root_offset()).ok()?;
    let AttributeValue::Language(language) = root.attr_value(dw::DW_AT_language)? else { return None };
    match language {
        dw::DW_LANG_C | dw::DW_LANG_C89 | dw::DW_LANG_C99 | dw::DW_LANG_C11 | dw::DW_LANG_C17 | dw::DW_LANG_ObjC => {
            Some(SourceLanguage::C)
        }
        // The assembler's functions have no arguments there.
        dw::DW_LANG_Mips_Assembler => Some(SourceLanguage::C),
        dw::DW_LANG_C_plus_plus
        | dw::DW_LANG_C_plus_plus_03
        | dw::DW_LANG_C_plus_plus_11
        | dw::DW_LANG_C_plus_plus_14
        | dw::DW_LANG_C_plus_plus_17
        | dw::DW_LANG_C_plus_plus_20 => Some(SourceLanguage::Cpp),
        dw::DW_LANG_Rust => Some(SourceLanguage::Rust),
        _ => None,
    }
}

/// The functions of a unit that begin at these addresses, and whether LLVM optimized it: values change their places then.
fn functions_at(entries: &DebugEntries<'_>, number: usize, addresses: &[u64]) -> (Vec<(u64, EntryPlace)>, bool) {
    let Some(unit) = entries.unit(number) else { return (Vec::new(), false) };
    if let Ok(mut ranges) = entries.dwarf.unit_ranges(&unit) {
        let (mut has_ranges, mut has_some) = (false, false);
        while let Ok(Some(range)) = ranges.next() {
            has_ranges = true;
            has_some |= addresses.iter().any(|address| range.begin <= *address && *address < range.end);
        }
        if has_ranges && !has_some {
            return (Vec::new(), false);
        }
    }
    let (mut found, mut is_optimized, mut depth, mut cursor) = (Vec::new(), false, 0, unit.entries());
    while let Ok(Some(entry)) = cursor.next_dfs() {
        if entry.tag() == dw::DW_TAG_subprogram {
            depth = entry.depth();
        }
        // Without optimization, each argument of a function, which others may have in them, has one place in its memory.
        let is_argument = entry.tag() == dw::DW_TAG_formal_parameter && entry.depth() == depth + 1;
        let place = entry.attr_value(dw::DW_AT_location).filter(|_| is_argument);
        is_optimized |= matches!(
            place,
            Some(
                AttributeValue::LocationListsRef(_)
                    | AttributeValue::DebugLocListsIndex(_)
                    | AttributeValue::SecOffset(_)
            )
        );
        if entry.tag() != dw::DW_TAG_subprogram {
            continue;
        }
        let begin = begin(entries, number, entry).filter(|begin| addresses.contains(begin));
        let place = EntryPlace { unit: number, offset: entry.offset() };
        found.extend(begin.map(|begin| (begin, place)));
    }
    (found, is_optimized && !is_of_gcc(entries, number))
}

/// Where a function begins; `None`: nowhere, as all of it became part of others.
fn begin(entries: &DebugEntries<'_>, unit: usize, entry: &DebugEntry<'_>) -> Option<u64> {
    let unit = entries.unit(unit)?;
    if let Some(low) = entry.attr_value(dw::DW_AT_low_pc) {
        return entries.dwarf.attr_address(&unit, address_form(low)?).ok()?;
    }
    let value = entry.attr_value(dw::DW_AT_ranges)?;
    let offset = match value {
        AttributeValue::RangeListsRef(offset) => entries.dwarf.ranges_offset_from_raw(&unit, offset),
        AttributeValue::DebugRngListsIndex(index) => entries.dwarf.ranges_offset(&unit, index).ok()?,
        _ => return None,
    };
    let mut ranges = entries.dwarf.ranges(&unit, offset).ok()?;
    ranges.next().ok()?.map(|range| range.begin)
}

fn address_form<'d>(
    value: AttributeValue<EndianSlice<'d, LittleEndian>>,
) -> Option<AttributeValue<EndianSlice<'d, LittleEndian>>> {
    matches!(value, AttributeValue::Addr(_) | AttributeValue::DebugAddrIndex(_)).then_some(value)
}

/// The entries of a function's arguments.
fn parameters(entries: &DebugEntries<'_>, function: EntryPlace) -> Vec<EntryPlace> {
    let of = |function: EntryPlace| -> Vec<EntryPlace> {
        let children = entries.children(function, 1 << 12).into_iter();
        let parameters = children.filter(|child| child.tag() == dw::DW_TAG_formal_parameter);
        parameters.take(ARGUMENTS_MAX).map(|child| EntryPlace { unit: function.unit, offset: child.offset() }).collect()
    };
    let own = of(function);
    if !own.is_empty() {
        return own;
    }
    let origin = entries.entry(function).and_then(|entry| entries.origin(function, &entry));
    origin.map(of).unwrap_or_default()
}
