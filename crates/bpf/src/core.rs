//! CO-RE: instructions are changed so that they use fields where another description of the types has them.
//!
//! ```text
//! struct packet { u32 size; u64 id; }         the object's types, and the place "0:1" of `id` in them
//! struct packet { u64 time; u32 size; u64 id; }    the target's: `id` is at byte 16, and the instruction gets a 16
//! ```
//!
//! A structure of the target is one with the same name, without a flavor (`packet___old`); members are found by their names.
//! Instructions that need a field that is not there are replaced, so that the program stops at them if it comes there: programs ask first
//! with `bpf_core_field_exists`.

use std::collections::HashMap;

use kymo_ir::machine::ABSENT_FIELD_CALL;

use crate::btf::{BtfKind, BtfTypes, DEPTH_MAX};
use crate::extension::CoreRelocation;
use crate::problem::LinkProblem;

const FIELD_PLACE: u32 = 0;
const FIELD_SIZE: u32 = 1;
const FIELD_EXISTS: u32 = 2;
const FIELD_SIGNED: u32 = 3;
const FIELD_SHIFT_LEFT: u32 = 4;
const FIELD_SHIFT_RIGHT: u32 = 5;
const TYPE_HERE: u32 = 6;
const TYPE_THERE: u32 = 7;
const TYPE_EXISTS: u32 = 8;
const TYPE_SIZE: u32 = 9;
const ENUMERATOR_EXISTS: u32 = 10;
const ENUMERATOR_VALUE: u32 = 11;
const TYPE_MATCHES: u32 = 12;

/// The types that instructions are changed for.
pub(crate) struct CoreTarget<'t> {
    types: &'t BtfTypes,
    /// Types by their names.
    named: HashMap<&'t str, Vec<u32>>,
}

/// A step from a structure or array into it.
enum AccessStep {
    Member(String),
    Element(u32),
}

/// A field in some description of types.
#[derive(Clone, Copy, Debug)]
struct CorePlace {
    bit: u64,
    type_number: u32,
    /// Bits if it takes not all of its type; else 0.
    bit_size: u32,
}

/// A field as instructions can load it.
struct FieldLoad {
    byte: u64,
    bytes: u64,
    bit: u64,
    bits: u64,
    is_signed: bool,
}

impl<'t> CoreTarget<'t> {
    pub(crate) fn new(types: &'t BtfTypes) -> Self {
        let mut named = HashMap::<&str, Vec<u32>>::new();
        for number in 1..types.types().len() as u32 {
            let name = types.name(number);
            // An object's own flavors say how a target may look, and are none.
            if !name.is_empty() && plain_name(name) == name {
                named.entry(name).or_default().push(number);
            }
        }
        Self { types, named }
    }

    /// Types of the same name and kind.
    fn like<'s>(&'s self, local: &BtfTypes, number: u32) -> impl Iterator<Item = u32> + 's {
        let kind = local.types().get(number as usize).map(|found| std::mem::discriminant(&found.kind));
        let numbers = self.named.get(plain_name(local.name(number))).map_or(&[][..], Vec::as_slice);
        let is_like =
            move |other: &&u32| Some(std::mem::discriminant(&self.types.types()[**other as usize].kind)) == kind;
        numbers.iter().filter(is_like).copied()
    }

    /// Changes an instruction of a program.
    pub(crate) fn apply(
        &self,
        local: &BtfTypes,
        relocation: CoreRelocation,
        code: &mut [[u8; 8]],
    ) -> Result<(), LinkProblem> {
        let CoreRelocation { type_number, kind, .. } = relocation;
        let access = local.text(relocation.access);
        let nonsense = || LinkProblem::Core { type_number, access: access.to_owned(), kind };
        let numbers: Option<Vec<u32>> = access.split(':').map(|number| number.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(nonsense)?;
        if local.types().len() <= type_number as usize {
            return Err(nonsense());
        }
        match kind {
            FIELD_PLACE..=FIELD_SHIFT_RIGHT => {
                let (root, _) = local.plain(type_number).ok_or_else(nonsense)?;
                let (steps, here) = walk(local, root, &numbers).ok_or_else(nonsense)?;
                let mut roots = self.like(local, root);
                let there = roots.find_map(|root| find(self.types, root, &steps));
                let size = (load(local, here).map(|load| load.bytes), there.and_then(|there| load(self.types, there)));
                patch_field(kind, size, code, &|| field_name(local, root, &steps))
            }
            TYPE_HERE => patch(code, type_number.into()),
            TYPE_THERE => patch_found(code, self.like(local, type_number).next().map(u64::from)),
            TYPE_EXISTS | TYPE_MATCHES => patch(code, u64::from(self.like(local, type_number).next().is_some())),
            TYPE_SIZE => {
                let size = self.like(local, type_number).find_map(|found| self.types.size(found));
                patch_found(code, size)
            }
            ENUMERATOR_EXISTS | ENUMERATOR_VALUE => {
                let name = enumerator(local, type_number, numbers[0]).ok_or_else(nonsense)?;
                let value = self.like(local, type_number).find_map(|found| value_of(self.types, found, name));
                match (kind, value) {
                    (ENUMERATOR_EXISTS, value) => patch(code, u64::from(value.is_some())),
                    (_, value) => patch_found(code, value.map(|value| value as u64)),
                }
            }
            _ => Err(nonsense()),
        }
    }
}

/// A name without its flavor: `task_struct___old` is a `task_struct`.
fn plain_name(name: &str) -> &str {
    match name.split_once("___") {
        Some((plain, _)) if !plain.is_empty() => plain,
        _ => name,
    }
}

fn field_name(types: &BtfTypes, root: u32, steps: &[AccessStep]) -> String {
    let steps = steps.iter().skip(1).map(|step| match step {
        AccessStep::Member(name) => format!(".{name}"),
        AccessStep::Element(index) => format!("[{index}]"),
    });
    types.name(root).to_owned() + &steps.collect::<String>()
}

/// Follows numbers: an element of an array of roots, then members and elements.
fn walk(types: &BtfTypes, root: u32, numbers: &[u32]) -> Option<(Vec<AccessStep>, CorePlace)> {
    let (first, rest) = numbers.split_first()?;
    let mut place = CorePlace { bit: first_bit(types, root, *first)?, type_number: root, bit_size: 0 };
    let mut steps = vec![AccessStep::Element(*first)];
    for number in rest {
        match types.plain(place.type_number)?.1 {
            BtfKind::Structure { members, .. } => {
                let member = members.get(*number as usize)?;
                let name = types.member_name(member);
                place = member_place(place, member)?;
                // Structures without a name are looked through.
                if !name.is_empty() {
                    steps.push(AccessStep::Member(name.to_owned()));
                }
            }
            BtfKind::Array { element, .. } => {
                place = element_place(types, place, *element, *number)?;
                steps.push(AccessStep::Element(*number));
            }
            _ => return None,
        }
    }
    Some((steps, place))
}

/// Follows names.
fn find(types: &BtfTypes, root: u32, steps: &[AccessStep]) -> Option<CorePlace> {
    let mut place = CorePlace { bit: 0, type_number: root, bit_size: 0 };
    for (index, step) in steps.iter().enumerate() {
        place = match step {
            AccessStep::Element(number) if index == 0 => CorePlace { bit: first_bit(types, root, *number)?, ..place },
            AccessStep::Element(number) => match types.plain(place.type_number)?.1 {
                // The last member of a structure may be an array of any length.
                BtfKind::Array { element, count } if number < count || *count == 0 => {
                    element_place(types, place, *element, *number)?
                }
                _ => return None,
            },
            AccessStep::Member(name) => named_member(types, place, name, 0)?,
        };
    }
    Some(place)
}

fn bits_of(types: &BtfTypes, number: u32) -> Option<u64> {
    types.size(number)?.checked_mul(8)
}

/// A bit of a type that can be: sums of a few of these are numbers.
fn possible(bit: u64) -> Option<u64> {
    (bit < 1 << 40).then_some(bit)
}

/// Where an element of an array of structures begins.
fn first_bit(types: &BtfTypes, root: u32, number: u32) -> Option<u64> {
    if number == 0 { Some(0) } else { possible(bits_of(types, root)?.checked_mul(number.into())?) }
}

fn element_place(types: &BtfTypes, place: CorePlace, element: u32, number: u32) -> Option<CorePlace> {
    let more = bits_of(types, element)?.checked_mul(number.into())?;
    Some(CorePlace { bit: possible(place.bit.checked_add(more)?)?, type_number: element, bit_size: 0 })
}

fn member_place(place: CorePlace, member: &crate::btf::BtfMember) -> Option<CorePlace> {
    let bit = possible(place.bit + u64::from(member.bit_offset))?;
    Some(CorePlace { bit, type_number: member.type_number, bit_size: member.bit_size.into() })
}

/// A member by its name, also in structures without a name.
fn named_member(types: &BtfTypes, place: CorePlace, name: &str, depth: usize) -> Option<CorePlace> {
    let members = types.members(place.type_number)?;
    let found = members.iter().find(|member| types.member_name(member) == name);
    if let Some(member) = found {
        return member_place(place, member);
    }
    if depth >= DEPTH_MAX {
        return None;
    }
    let mut inner = members.iter().filter(|member| types.member_name(member).is_empty());
    inner.find_map(|member| named_member(types, member_place(place, member)?, name, depth + 1))
}

fn enumerator(types: &BtfTypes, number: u32, index: u32) -> Option<&str> {
    match types.plain(number)?.1 {
        BtfKind::Enumeration { values, .. } => values.get(index as usize).map(|(name, _)| types.text(*name)),
        _ => None,
    }
}

fn value_of(types: &BtfTypes, number: u32, name: &str) -> Option<i64> {
    match types.plain(number)?.1 {
        BtfKind::Enumeration { values, .. } => {
            let mut values = values.iter();
            values.find(|(known, _)| plain_name(types.text(*known)) == plain_name(name)).map(|(_, value)| *value)
        }
        _ => None,
    }
}

/// How a field is loaded: from its byte on, or, of some bits, from a multiple of its size on.
fn load(types: &BtfTypes, place: CorePlace) -> Option<FieldLoad> {
    let mut bytes = possible(types.size(place.type_number)?)?;
    let is_signed = match types.plain(place.type_number)?.1 {
        BtfKind::Integer { is_signed, .. } | BtfKind::Enumeration { is_signed, .. } => *is_signed,
        _ => false,
    };
    if place.bit_size == 0 {
        let byte = place.bit / 8;
        return Some(FieldLoad { byte, bytes, bit: byte * 8, bits: bytes * 8, is_signed });
    }
    let bits = u64::from(place.bit_size);
    loop {
        let byte = place.bit / 8 / bytes.max(1) * bytes;
        if place.bit + bits <= (byte + bytes) * 8 {
            return Some(FieldLoad { byte, bytes, bit: place.bit, bits, is_signed });
        }
        if bytes == 0 || bytes >= 8 {
            return None;
        }
        bytes *= 2;
    }
}

fn patch_field(
    kind: u32,
    (here, there): (Option<u64>, Option<FieldLoad>),
    code: &mut [[u8; 8]],
    name: &dyn Fn() -> String,
) -> Result<(), LinkProblem> {
    let Some(there) = there else {
        return if kind == FIELD_EXISTS { patch(code, 0) } else { absent(code) };
    };
    match kind {
        FIELD_PLACE => {
            if here != Some(there.bytes) {
                resize(code, here, &there, name)?;
            }
            patch(code, there.byte)
        }
        FIELD_SIZE => patch(code, there.bytes),
        FIELD_EXISTS => patch(code, 1),
        FIELD_SIGNED => patch(code, there.is_signed.into()),
        // The load begins at a byte, and the field's bits may end before the load's.
        FIELD_SHIFT_LEFT => patch(code, 64_u64.wrapping_sub(there.bit + there.bits - there.byte * 8)),
        _ => patch(code, 64_u64.wrapping_sub(there.bits)),
    }
}

/// The class of an instruction.
fn class(code: &[[u8; 8]]) -> u8 {
    code[0][0] & 7
}

/// A load or store of a field takes as many bytes as the field has.
fn resize(
    code: &mut [[u8; 8]],
    here: Option<u64>,
    there: &FieldLoad,
    name: &dyn Fn() -> String,
) -> Result<(), LinkProblem> {
    if !(1..=3).contains(&class(code)) {
        return Ok(());
    }
    let bytes = match code[0][0] & 0x18 {
        0x00 => 4,
        0x08 => 2,
        0x10 => 1,
        _ => 8,
    };
    let size = match there.bytes {
        1 => 0x10,
        2 => 0x08,
        4 => 0x00,
        8 => 0x18,
        _ => u8::MAX,
    };
    // The object may load a part of a field: that part has no place in another one.
    if here != Some(bytes) || size == u8::MAX || there.is_signed && there.bytes < bytes {
        return Err(LinkProblem::FieldSize { field: name(), found: there.bytes, bytes });
    }
    code[0][0] = code[0][0] & !0x18 | size;
    Ok(())
}

/// Puts a value into an instruction.
fn patch(code: &mut [[u8; 8]], value: u64) -> Result<(), LinkProblem> {
    let too_big = |_| LinkProblem::CoreValue { value };
    match class(code) {
        1..=3 => {
            let offset = i16::try_from(value).map_err(too_big)?;
            code[0][2..4].copy_from_slice(&offset.to_le_bytes());
        }
        0 if code.len() > 1 => {
            code[0][4..].copy_from_slice(&(value as u32).to_le_bytes());
            code[1][4..].copy_from_slice(&((value >> 32) as u32).to_le_bytes());
        }
        4 | 7 if code[0][0] & 8 == 0 => {
            let constant = i32::try_from(value as i64).map_err(too_big)?;
            code[0][4..].copy_from_slice(&constant.to_le_bytes());
        }
        _ => return Err(LinkProblem::CoreValue { value }),
    }
    Ok(())
}

fn patch_found(code: &mut [[u8; 8]], value: Option<u64>) -> Result<(), LinkProblem> {
    match value {
        Some(value) => patch(code, value),
        None => absent(code),
    }
}

/// Replaces an instruction that needs something that is not there.
fn absent(code: &mut [[u8; 8]]) -> Result<(), LinkProblem> {
    let words = if class(code) == 0 { 2 } else { 1 };
    for word in code.iter_mut().take(words) {
        *word = [0x85, 0, 0, 0, 0, 0, 0, 0];
        word[4..].copy_from_slice(&ABSENT_FIELD_CALL.to_le_bytes());
    }
    Ok(())
}
