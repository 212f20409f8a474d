//! Images of programs for a class of events: the context from the arguments, and the code.

use std::collections::{BTreeSet, HashMap};

use kymo_bpf::{BpfValueMember, BpfValueType, ObjectProgram};
use kymo_bytecode::object::{
    FRAMES_MAX, ImageHead, ImageInstruction, ImageMap, ImageMapKind, ImageMove, ImageMoveKind, ImageOperand,
    KEY_BYTES_MAX, NativeFunctions, ObjectImage, UPDATE_BYTES_MAX, has_helper,
};
use kymo_ir::machine::native::{map_address, value_address};
use kymo_ir::machine::{
    BpfMapType, MachineInstruction, MachineOperand, MachineProgram, MapDefinition, SwapOrder, WideConstant, helper_name,
};
use kymo_ir::predicate::InputPlace;
use kymo_jit::{NativeTarget, TracedPlaces, compile_traced};
use kymo_lane::{OBJECT_HEAD_BYTES, ObjectPlace, SharedMap};
use kymo_schema::definition::EventClass;
use kymo_schema::field::{FieldType, ScalarType};

use super::{UserObject, shared};
use crate::filters::arguments;

/// Bytes of a context in a traced program, at most.
const CONTEXT_BYTES_MAX: u64 = 1024;
/// Instructions of a program in traced programs, at most.
const INSTRUCTIONS_MAX: usize = 4096;

/// A program before it is machine code.
pub(crate) struct ProgramCode<'p> {
    program: &'p MachineProgram,
    maps: &'p [MapDefinition],
    values: &'p [u64],
    moves: &'p [ImageMove],
    context_bytes: u32,
}

impl ProgramCode<'_> {
    /// Compiles it for a traced program with these functions; `None`: its interpreter runs the program.
    pub(crate) fn compile(&self, target: &NativeTarget, functions: NativeFunctions) -> Option<Box<[u8]>> {
        let &Self { program, maps, values, moves, context_bytes } = self;
        compile_traced(target, program, maps, TracedPlaces { functions, values, moves, context_bytes })
    }
}

pub(super) fn image(
    (user, (program, number)): (&UserObject, (&ObjectProgram, usize)),
    is_filter: bool,
    class: &EventClass,
    place: ObjectPlace,
    put_code: impl FnOnce(ProgramCode<'_>) -> Option<(u32, u32)>,
) -> Result<Vec<u8>, String> {
    let context = ContextMoves::new(user, program, class)?;
    let linked = user.object.link(program, context.types.as_ref()).map_err(|problem| problem.to_string())?;
    let machine = user.object.for_machine(&linked, &user.machine).map_err(|problem| problem.to_string())?;
    let (code, frames) = code(&machine, &user.machine.definitions)?;
    let definitions = &user.machine.definitions;
    let maps_at: Vec<SharedMap> = user.maps_at(place.place).collect();
    let values: Vec<u64> = maps_at.iter().map(SharedMap::values).collect();
    let maps: Vec<ImageMap> =
        maps_at.iter().zip(definitions).map(|(map, definition)| image_map(*map, definition.is_read_only)).collect();
    let native = put_code(ProgramCode {
        program: &machine,
        maps: definitions,
        values: &values,
        moves: &context.moves,
        context_bytes: context.bytes,
    });
    let (size, _) = arguments(class);
    let head = ImageHead {
        size,
        context_bytes: context.bytes,
        frames,
        number: number as u32,
        state: place.place,
        bytes: place.bytes,
        is_filter,
        code: native,
    };
    let mut bytes = Vec::new();
    ObjectImage::write(&head, &maps, &context.moves, &code, |part| bytes.extend_from_slice(part));
    match ObjectImage::read(&bytes) {
        Some(_) => Ok(bytes),
        None => Err("it is too long, or has too many maps, for traced programs".to_owned()),
    }
}

/// The image of a program without moves, for a context of so many bytes, and its maps at a place; for tests.
///
/// # Errors
///
/// Why a traced program cannot run it.
#[doc(hidden)]
pub fn machine_image(
    program: &MachineProgram,
    maps: &[MapDefinition],
    context_bytes: u32,
    place: u64,
) -> Result<(Vec<u8>, Vec<SharedMap>), String> {
    let (code, frames) = code(program, maps)?;
    let mut end = place + OBJECT_HEAD_BYTES;
    let mut places = Vec::new();
    for map in super::places(maps, 1) {
        places.push(SharedMap { place: end, ..map });
        end += map.bytes();
    }
    let image_maps: Vec<ImageMap> =
        places.iter().zip(maps).map(|(map, definition)| image_map(*map, definition.is_read_only)).collect();
    let head = ImageHead { context_bytes, frames, state: place, bytes: end - place, ..ImageHead::default() };
    let mut bytes = Vec::new();
    ObjectImage::write(&head, &image_maps, &[], &code, |part| bytes.extend_from_slice(part));
    Ok((bytes, places))
}

fn image_map(map: SharedMap, is_read_only: bool) -> ImageMap {
    let kind = match (map.is_hash, map.is_lru) {
        (false, _) => ImageMapKind::Array,
        (true, false) => ImageMapKind::Hash,
        (true, true) => ImageMapKind::LruHash,
    };
    let SharedMap { key_bytes, value_bytes, entries, lines, place, .. } = map;
    ImageMap { kind, is_read_only, key_bytes, value_bytes, entries, lines, place }
}

/// The parts of a context, and the object's types with only those members that the class has.
struct ContextMoves {
    bytes: u32,
    moves: Vec<ImageMove>,
    types: Option<kymo_bpf::BtfTypes>,
}

impl ContextMoves {
    fn new(user: &UserObject, program: &ObjectProgram, class: &EventClass) -> Result<Self, String> {
        let none = Self { bytes: 0, moves: Vec::new(), types: None };
        let types = user.object.types();
        let Some((types, number)) = types.and_then(|types| Some((types, types.first_argument(&program.name)?))) else {
            return Ok(none);
        };
        let BpfValueType::Structure { name, members } = BpfValueType::of(types, number) else { return Ok(none) };
        let bytes = types.size(number).unwrap_or(0);
        if bytes > CONTEXT_BYTES_MAX {
            return Err(format!(
                "struct {name} has {bytes} bytes; in a traced program at most {CONTEXT_BYTES_MAX} are allowed"
            ));
        }
        let (_, places) = arguments(class);
        let (mut moves, mut missing) = (Vec::new(), Vec::new());
        for member in members {
            match position(class, &member.name) {
                Some(field) => {
                    let moved = moved(&member, &class.fields[field].kind, places[field]);
                    moves.push(moved.map_err(|why| format!("member {} of struct {name} {why}", member.name))?);
                }
                None => missing.push(member.name),
            }
        }
        if let Some(member) = missing.first().filter(|_| !user.object.has_relocations_of(number)) {
            return Err(format!(
                "struct {name} has a member {member}, and {} has no such field: with \
                 __attribute__((preserve_access_index)) the program can ask with bpf_core_field_exists",
                class.full_name()
            ));
        }
        let kept = types.with_members(number, |name| !missing.iter().any(|missing| **missing == *name));
        Ok(Self { bytes: bytes as u32, moves, types: Some(kept) })
    }
}

/// The field of a member: of that name, or one whose name is that with other characters than C allows.
fn position(class: &EventClass, member: &str) -> Option<usize> {
    let in_c = |name: &str| -> String {
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
    };
    let mut fields = class.fields.iter();
    let same = fields.position(|field| field.name == member);
    same.or_else(|| class.fields.iter().position(|field| in_c(&field.name) == member))
}

/// How a member is filled; else why not, to be put behind its name.
fn moved(member: &BpfValueMember, field: &FieldType, place: InputPlace) -> Result<ImageMove, String> {
    if !member.bit_offset.is_multiple_of(8) {
        let bit = member.bit_offset % 8;
        return Err(format!(
            "begins at bit {bit} of a byte, and members must begin with a byte: declare it without a number of bits"
        ));
    }
    let from = match place {
        InputPlace::Integer { offset, .. }
        | InputPlace::Real { offset, .. }
        | InputPlace::Pointer { offset }
        | InputPlace::Inline { offset, .. } => offset,
        InputPlace::Missing => return Err("is not among the arguments".to_owned()),
    };
    let to = member.bit_offset / 8;
    let plain = ImageMove {
        kind: ImageMoveKind::Number,
        bytes: [1, 1],
        is_signed: false,
        from,
        to,
        count: 1,
        stride: 0,
        length: 0,
    };
    match (&member.value_type, field) {
        (BpfValueType::Pointer, FieldType::Text | FieldType::FixedText(_)) => {
            Ok(ImageMove { kind: ImageMoveKind::TextAddress, ..plain })
        }
        (BpfValueType::Text { bytes }, FieldType::Text | FieldType::FixedText(_)) => {
            Ok(ImageMove { kind: ImageMoveKind::Text, count: *bytes, ..plain })
        }
        (BpfValueType::Array { element, stride, count }, FieldType::Array(scalar, length)) => {
            let (bytes, is_signed, is_real) = number(element, scalar)?;
            let kind = if is_real { ImageMoveKind::Reals } else { ImageMoveKind::Numbers };
            Ok(ImageMove { kind, bytes, is_signed, count: *count, stride: *stride, length: *length, ..plain })
        }
        (BpfValueType::Array { element, stride, count }, FieldType::Sequence(scalar)) => {
            let (bytes, is_signed, is_real) = number(element, scalar)?;
            let kind = if is_real { ImageMoveKind::Reals } else { ImageMoveKind::Numbers };
            Ok(ImageMove { kind, bytes, is_signed, count: *count, stride: *stride, ..plain })
        }
        (member, FieldType::Scalar(scalar)) => {
            let (bytes, is_signed, is_real) = number(member, scalar)?;
            let kind = if is_real { ImageMoveKind::Real } else { ImageMoveKind::Number };
            Ok(ImageMove { kind, bytes, is_signed, ..plain })
        }
        (member, field) => Err(format!("is {}, and the event's field is {}", member.name(), words(field))),
    }
}

/// Bytes of a number and of its member, whether its first bit is a sign, and whether it is a real that becomes longer.
fn number(member: &BpfValueType, scalar: &ScalarType) -> Result<([u8; 2], bool, bool), String> {
    let narrow =
        |bits: u32, found: u8| Err(format!("has {bits} bits, and the event's field has {}", 8 * u32::from(found)));
    let found = scalar.bytes();
    match (member, scalar) {
        (
            BpfValueType::Integer { bits, .. } | BpfValueType::Enumeration { bits, .. },
            ScalarType::Integer(integer) | ScalarType::Enumeration(integer, _),
        ) if matches!(bits, 8 | 16 | 32 | 64) => {
            if *bits < 8 * u16::from(found) {
                return narrow((*bits).into(), found);
            }
            Ok(([found, (*bits / 8) as u8], integer.is_signed, false))
        }
        (BpfValueType::Integer { bits: bits @ (8 | 16 | 32 | 64), .. }, ScalarType::Boolean) => {
            Ok(([1, (*bits / 8) as u8], false, false))
        }
        (BpfValueType::Bool, ScalarType::Boolean) => Ok(([1, 1], false, false)),
        (BpfValueType::Real { bytes }, ScalarType::Real(of)) if bytes == of => Ok(([*of, *of], false, false)),
        (BpfValueType::Real { bytes: 8 }, ScalarType::Real(4)) => Ok(([4, 8], false, true)),
        (BpfValueType::Real { bytes }, ScalarType::Real(_)) => narrow(8 * u32::from(*bytes), found),
        (member, scalar) => {
            let scalar = FieldType::Scalar(scalar.clone());
            Err(format!("is {}, and the event's field is {}", member.name(), words(&scalar)))
        }
    }
}

fn words(field: &FieldType) -> &'static str {
    match field {
        FieldType::Scalar(ScalarType::Integer(_) | ScalarType::Enumeration(..)) => "an integer of at most 64 bits",
        FieldType::Scalar(ScalarType::Boolean) => "a truth value",
        FieldType::Scalar(ScalarType::Real(_)) => "a real number",
        FieldType::Text | FieldType::FixedText(_) => "a text (`const char *` or `char [N]`)",
        FieldType::Array(..) | FieldType::Sequence(_) => "a list (an array)",
    }
}

/// The code of an image, and the functions that are called inside of each other; else why a traced program cannot run it.
pub(super) fn code(program: &MachineProgram, maps: &[MapDefinition]) -> Result<(Vec<ImageInstruction>, u32), String> {
    let all = program.instructions();
    if all.len() > INSTRUCTIONS_MAX {
        return Err(format!("{} instructions; in a traced program, at most {INSTRUCTIONS_MAX} are allowed", all.len()));
    }
    let mut code = Vec::with_capacity(all.len());
    for instruction in all {
        code.push(encoded(instruction, maps)?);
    }
    Ok((code, frames(all)?))
}

fn operand(operand: MachineOperand) -> ImageOperand {
    match operand {
        MachineOperand::Register(register) => ImageOperand::Register(register),
        MachineOperand::Constant(constant) => ImageOperand::Constant(constant),
    }
}

fn encoded(instruction: &MachineInstruction, maps: &[MapDefinition]) -> Result<ImageInstruction, String> {
    use MachineInstruction as I;
    Ok(match *instruction {
        I::Alu { operation, is_wide, to, from } => ImageInstruction::alu(operation as u8, is_wide, to, operand(from)),
        I::SignExtend { to, from, bits, is_wide } => ImageInstruction::extend(to, from, bits, is_wide),
        I::ByteSwap { to, order, bits } => ImageInstruction::swap(to, bits, order != SwapOrder::Little),
        I::Load { to, base, offset, bytes, is_signed } => ImageInstruction::load(to, (base, offset), bytes, is_signed),
        I::Store { base, offset, bytes, from } => ImageInstruction::store((base, offset), bytes, operand(from)),
        I::Atomic { operation, base, offset, bytes, from, fetches } => {
            ImageInstruction::atomic((base, offset), bytes, from, operation as u8, fetches)
        }
        I::Jump { target } => ImageInstruction::jump(target),
        I::JumpIf { relation, is_wide, left, right, target } => {
            ImageInstruction::jump_if(relation as u8, is_wide, (left, operand(right)), target)
        }
        I::Call { target } => ImageInstruction::call(target),
        I::CallHelper { number } if has_helper(number) => ImageInstruction::helper(number),
        I::CallHelper { number } => {
            let name = helper_name(number).unwrap_or("a helper function");
            return Err(format!("{name} is not there in a traced program"));
        }
        I::LoadConstant { to, value } => ImageInstruction::constant(
            to,
            match value {
                WideConstant::Number(number) => number,
                WideConstant::Map(map) => {
                    may_have(&maps[map as usize])?;
                    map_address(map)
                }
                WideConstant::MapValue { map, offset } => {
                    let MapDefinition { name, map_type, entries_max, .. } = &maps[map as usize];
                    // As in the kernel.
                    if *map_type != BpfMapType::Array || *entries_max != 1 {
                        return Err(format!("map {name} has no variables: values are found by bpf_map_lookup_elem"));
                    }
                    value_address(map as usize, 0, offset)
                }
                WideConstant::Function(_) => return Err("functions have no addresses in a traced program".to_owned()),
            },
        ),
        I::SecondHalf => ImageInstruction::nothing(),
        I::Absent => ImageInstruction::absent(),
        I::Exit => ImageInstruction::exit(),
    })
}

/// Whether a program may name a map.
fn may_have(map: &MapDefinition) -> Result<(), String> {
    let refuse = |why: String| Err(format!("map {}: {why}", map.name));
    match shared(map.map_type) {
        Err(why) => refuse(why.to_owned()),
        Ok((true, ..)) if map.key_bytes as usize > KEY_BYTES_MAX => {
            refuse(format!("keys of {} bytes; in a traced program they have at most {KEY_BYTES_MAX}", map.key_bytes))
        }
        Ok((true, ..)) if map.value_bytes as usize > UPDATE_BYTES_MAX => refuse(format!(
            "values of {} bytes; in a traced program those of a hash table have at most {UPDATE_BYTES_MAX}",
            map.value_bytes
        )),
        Ok(_) => Ok(()),
    }
}

/// The functions that are called inside of each other, at most.
fn frames(code: &[MachineInstruction]) -> Result<u32, String> {
    let target = |instruction: &MachineInstruction| match instruction {
        MachineInstruction::Call { target } => Some(*target as usize),
        _ => None,
    };
    let starts: BTreeSet<usize> = code.iter().filter_map(target).chain([0]).collect();
    let calls = |start: usize| -> BTreeSet<usize> {
        let end = starts.range(start + 1..).next().copied().unwrap_or(code.len());
        code[start..end].iter().filter_map(target).collect()
    };
    let (mut known, mut open) = (HashMap::<usize, u32>::new(), vec![0]);
    while let Some(start) = open.last().copied() {
        let called = calls(start);
        match called.iter().find(|target| !known.contains_key(target)) {
            // One that waits for itself makes this longer and longer.
            Some(_) if open.len() >= FRAMES_MAX => break,
            Some(target) => open.push(*target),
            None => {
                let deepest = called.iter().map(|target| known[target]).max().unwrap_or(0);
                known.insert(start, deepest + 1);
                open.pop();
            }
        }
    }
    let found = known.get(&0).copied().filter(|frames| *frames as usize <= FRAMES_MAX);
    found.ok_or_else(|| format!("functions call each other more than {FRAMES_MAX} deep"))
}
