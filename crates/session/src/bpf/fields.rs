//! Fields of events for values of programs: the same names and values that are shown, as CTF has them.
//!
//! | type | field |
//! |---|---|
//! | integer, `enum`, `bool`, real, address | the same; of 128 bits: text |
//! | `char name[N]` | text |
//! | array, structure | the same; without those that have no bytes |
//! | bytes without a type | an array of bytes |

use std::collections::{HashMap, HashSet};

use kymo_bpf::{BpfValue, BpfValueMember, BpfValueType, ObjectMap};
use kymo_format::model::{
    DisplayBase, DynamicArray, EnumerationMapping, FieldClass, FieldKind, FieldPath, FieldPathStep, FixedBits,
    FixedInteger, IntegerMeaning, IntegerRange, Member, Role, Scope, StaticArray, Structure, TextEncoding,
};
use kymo_format::value::Value;
use kymo_units::ByteOrder;

use super::BpfMapContents;

/// The field of a value that is no structure.
const VALUE: &str = "value";

/// A structure of fields with these names, which differ.
pub(super) fn structure(fields: Vec<(&str, FieldClass)>) -> FieldClass {
    let members = fields.into_iter().map(|(name, class)| Member { name: name.to_owned(), class }).collect();
    FieldClass::new(FieldKind::Structure(Structure { members, minimum_alignment: 8 }))
}

/// An unsigned integer, perhaps with a role for readers of packets.
pub(super) fn number(bits: u32, role: Option<Role>) -> FieldClass {
    let tells_time = matches!(role, Some(Role::DefaultClockTimestamp | Role::PacketEndDefaultClockTimestamp));
    let clock = tells_time.then_some(0);
    integer(bits, IntegerMeaning { roles: role.into_iter().collect(), clock, ..IntegerMeaning::plain() })
}

fn integer(bits: u32, meaning: IntegerMeaning) -> FieldClass {
    FieldClass::new(FieldKind::Integer(FixedInteger { bits: fixed(bits), meaning }))
}

fn fixed(length: u32) -> FixedBits {
    FixedBits { length, byte_order: ByteOrder::Little, reversed: false, alignment: 8 }
}

/// The fields of a record of a ring: the members of its structure.
pub(super) fn record_class(value_type: Option<&BpfValueType>) -> FieldClass {
    match value_type {
        Some(value_type @ BpfValueType::Structure { .. }) => class(value_type),
        Some(value_type) => structure(vec![(VALUE, class(value_type))]),
        None => {
            let length = FieldPath { scope: Scope::EventPayload, steps: vec![FieldPathStep::Member(0)] };
            let bytes = DynamicArray { length, element: Box::new(byte()), minimum_alignment: 8 };
            structure(vec![("length", number(32, None)), ("bytes", FieldClass::new(FieldKind::DynamicArray(bytes)))])
        }
    }
}

/// The fields of a line.
pub(super) fn line_class() -> FieldClass {
    structure(vec![("text", text_class())])
}

/// The fields of an entry of a map.
pub(super) fn entry_class(map: &ObjectMap) -> FieldClass {
    let part = |value_type: &Option<BpfValueType>, bytes| match value_type {
        Some(value_type) => class(value_type),
        None => class(&BpfValueType::Bytes { bytes }),
    };
    let key = (!map.is_variables()).then(|| ("key", part(&map.key, map.key_bytes)));
    let cpu = map.type_name().contains("percpu").then(|| ("cpu", number(32, None)));
    structure(key.into_iter().chain(cpu).chain([(VALUE, part(&map.value, map.value_bytes))]).collect())
}

/// The payload of a record.
pub(super) fn record(value_type: Option<&BpfValueType>, found: &BpfValue) -> Value {
    match (value_type, found) {
        (Some(value_type @ BpfValueType::Structure { .. }), found) => value(value_type, Some(found)),
        (Some(value_type), found) => Value::Structure(vec![value(value_type, Some(found))]),
        (None, BpfValue::Bytes(bytes)) => {
            Value::Structure(vec![Value::Unsigned(bytes.len() as u64), Value::Array(bytes_of(bytes, bytes.len()))])
        }
        (None, _) => Value::Structure(vec![Value::Unsigned(0), Value::Array(Vec::new())]),
    }
}

/// Payloads of the entries of a map, one for each CPU that has a value.
pub(super) fn entries(contents: &BpfMapContents) -> impl Iterator<Item = Value> {
    let map = &contents.map;
    let part = |value_type: &Option<BpfValueType>, bytes, found: &BpfValue| match value_type {
        Some(value_type) => value(value_type, Some(found)),
        None => value(&BpfValueType::Bytes { bytes }, Some(found)),
    };
    let is_per_cpu = map.type_name().contains("percpu");
    contents.entries.iter().flat_map(move |entry| {
        entry.values.iter().map(move |(cpu, found)| {
            let key = (!map.is_variables()).then(|| part(&map.key, map.key_bytes, &entry.key));
            let cpu = is_per_cpu.then_some(Value::Unsigned(*cpu as u64));
            Value::Structure(key.into_iter().chain(cpu).chain([part(&map.value, map.value_bytes, found)]).collect())
        })
    })
}

/// A text.
pub(super) fn text(text: &str) -> Value {
    // A zero byte would end it.
    Value::Text(text.bytes().filter(|byte| *byte != 0).collect())
}

fn text_class() -> FieldClass {
    FieldClass::new(FieldKind::NullTerminatedText(TextEncoding::Utf8))
}

fn byte() -> FieldClass {
    integer(8, IntegerMeaning { base: DisplayBase::Hexadecimal, ..IntegerMeaning::plain() })
}

/// The members of a structure that have a field, and the name of each.
fn members(members: &[BpfValueMember]) -> impl Iterator<Item = (usize, String)> {
    let mut taken = HashSet::new();
    members.iter().enumerate().filter(|(_, member)| has_field(&member.value_type)).map(move |(index, member)| {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let mut name: String = member.name.chars().map(plain).collect();
        if name.is_empty() {
            name = format!("member_{index}");
        }
        while !taken.insert(name.clone()) {
            name.push('_');
        }
        (index, name)
    })
}

/// Arrays and structures may be empty.
fn has_field(value_type: &BpfValueType) -> bool {
    match value_type {
        BpfValueType::Array { element, stride, count } => *stride > 0 && *count > 0 && has_field(element),
        BpfValueType::Structure { members, .. } => members.iter().any(|member| has_field(&member.value_type)),
        BpfValueType::Bytes { bytes } => *bytes > 0,
        _ => true,
    }
}

fn class(value_type: &BpfValueType) -> FieldClass {
    match value_type {
        BpfValueType::Integer { bits: 65.., .. } | BpfValueType::Text { .. } => text_class(),
        BpfValueType::Integer { bits, is_signed } => {
            integer((*bits).into(), IntegerMeaning { signed: *is_signed, ..IntegerMeaning::plain() })
        }
        BpfValueType::Bool => FieldClass::new(FieldKind::Boolean(fixed(8))),
        BpfValueType::Real { bytes } => FieldClass::new(FieldKind::Real(fixed(8 * u32::from(*bytes)))),
        BpfValueType::Pointer => {
            integer(64, IntegerMeaning { base: DisplayBase::Hexadecimal, ..IntegerMeaning::plain() })
        }
        BpfValueType::Enumeration { bits, is_signed, names } => {
            let mappings = mappings(names, *is_signed);
            let enumeration = !mappings.is_empty();
            let meaning = IntegerMeaning { signed: *is_signed, enumeration, mappings, ..IntegerMeaning::plain() };
            integer((*bits).into(), meaning)
        }
        BpfValueType::Array { element, count, .. } => array(class(element), *count),
        BpfValueType::Structure { members: of, .. } => {
            let fields = members(of).map(|(index, name)| Member { name, class: class(&of[index].value_type) });
            let (members, minimum_alignment) = (fields.collect(), 8);
            FieldClass::new(FieldKind::Structure(Structure { members, minimum_alignment }))
        }
        BpfValueType::Bytes { bytes } => array(byte(), *bytes),
    }
}

fn array(element: FieldClass, length: u32) -> FieldClass {
    let (element, length) = (Box::new(element), length.into());
    FieldClass::new(FieldKind::StaticArray(StaticArray { length, element, minimum_alignment: 8 }))
}

/// Names of values; a name can have several.
fn mappings(names: &[(i64, Box<str>)], is_signed: bool) -> Vec<EnumerationMapping> {
    let mut mappings: Vec<EnumerationMapping> = Vec::new();
    let mut places = HashMap::new();
    for (number, name) in names {
        let place = *places.entry(&**name).or_insert(mappings.len());
        if place == mappings.len() {
            mappings.push(EnumerationMapping { label: name.to_string(), ranges: Vec::new() });
        }
        let number = if is_signed { i128::from(*number) } else { i128::from(*number as u64) };
        mappings[place].ranges.push(IntegerRange::single(number));
    }
    mappings
}

/// A value as a field; missing ones are 0.
fn value(value_type: &BpfValueType, found: Option<&BpfValue>) -> Value {
    let number = match found {
        Some(BpfValue::Integer(number) | BpfValue::Label(number, _)) => *number,
        _ => 0,
    };
    match value_type {
        BpfValueType::Integer { bits: 65.., .. } => text(&number.to_string()),
        BpfValueType::Integer { is_signed: true, .. } | BpfValueType::Enumeration { is_signed: true, .. } => {
            Value::Signed(number as i64)
        }
        BpfValueType::Integer { .. } | BpfValueType::Enumeration { .. } | BpfValueType::Pointer => {
            Value::Unsigned(number as u64)
        }
        BpfValueType::Bool => Value::Boolean(matches!(found, Some(BpfValue::Bool(true)))),
        BpfValueType::Real { bytes } => {
            let real = if let Some(BpfValue::Real(real)) = found { *real } else { 0.0 };
            Value::Real(if *bytes == 4 { (real as f32).to_bits().into() } else { real.to_bits().into() })
        }
        BpfValueType::Text { .. } => text(if let Some(BpfValue::Text(text)) = found { text } else { "" }),
        BpfValueType::Array { element, count, .. } => {
            let items = if let Some(BpfValue::List(items)) = found { &items[..] } else { &[] };
            Value::Array((0..*count as usize).map(|index| value(element, items.get(index))).collect())
        }
        BpfValueType::Structure { members: of, .. } => {
            let values = if let Some(BpfValue::Members(values)) = found { &values[..] } else { &[] };
            let of_member = |index: usize| value(&of[index].value_type, values.get(index).map(|(_, value)| value));
            Value::Structure(members(of).map(|(index, _)| of_member(index)).collect())
        }
        BpfValueType::Bytes { bytes } => {
            let found = if let Some(BpfValue::Bytes(found)) = found { &found[..] } else { &[] };
            Value::Array(bytes_of(found, *bytes as usize))
        }
    }
}

fn bytes_of(bytes: &[u8], count: usize) -> Vec<Value> {
    let all = bytes.iter().copied().chain(std::iter::repeat(0)).take(count);
    all.map(|byte| Value::Unsigned(byte.into())).collect()
}
