//! The classes of fields of traced programs, with packed bytes: no padding, little-endian.

use std::collections::{HashMap, HashSet};

use kymo_format::model::{
    DisplayBase, DynamicArray, DynamicText, EnumerationMapping, FieldClass, FieldKind, FieldPath, FieldPathStep,
    FixedBits, FixedInteger, IntegerMeaning, IntegerRange, Member, Role, Scope, StaticArray, StaticText, Structure,
    TextEncoding,
};
use kymo_schema::field::{DefinedField, FieldType, IntegerType, ScalarType, ValueLabel};
use kymo_units::ByteOrder;

/// The class of fields one behind the other, with names that people see: identifiers that differ.
pub(crate) fn structure(fields: &[DefinedField], scope: Scope) -> FieldClass {
    let mut members: Vec<Member> = Vec::with_capacity(fields.len());
    let mut names = HashSet::new();
    for field in fields {
        let name = free_name(&field.name, &names);
        let length = || FieldPath { scope, steps: vec![FieldPathStep::Member(members.len())] };
        let (counts, kind) = match &field.kind {
            FieldType::Scalar(scalar) => (false, scalar_class(scalar)),
            FieldType::FixedText(length) => {
                let (length, encoding, alignment) = (u64::from(*length), TextEncoding::Utf8, 8);
                (false, FieldKind::StaticText(StaticText { length, encoding, alignment }))
            }
            FieldType::Text => {
                let (length, encoding, alignment) = (length(), TextEncoding::Utf8, 8);
                (true, FieldKind::DynamicText(DynamicText { length, encoding, alignment }))
            }
            FieldType::Array(element, length) => {
                let (element, length) = (Box::new(FieldClass::new(scalar_class(element))), u64::from(*length));
                (false, FieldKind::StaticArray(StaticArray { length, element, minimum_alignment: 8 }))
            }
            FieldType::Sequence(element) => {
                let (element, length) = (Box::new(FieldClass::new(scalar_class(element))), length());
                (true, FieldKind::DynamicArray(DynamicArray { length, element, minimum_alignment: 8 }))
            }
        };
        if counts {
            let name = free_name(&format!("_{name}_length"), &names);
            names.insert(name.clone());
            members.push(Member { name, class: integer(IntegerType::unsigned(2), None) });
        }
        names.insert(name.clone());
        members.push(Member { name, class: FieldClass::new(kind) });
    }
    FieldClass::new(FieldKind::Structure(Structure { members, minimum_alignment: 8 }))
}

/// An integer, and its role for readers of packets.
pub(crate) fn integer(integer: IntegerType, role: Option<Role>) -> FieldClass {
    let FieldKind::Integer(mut class) = integer_class(integer, &[]) else { unreachable!("it is an integer") };
    let tells_time = matches!(role, Some(Role::DefaultClockTimestamp | Role::PacketEndDefaultClockTimestamp));
    class.meaning.roles.extend(role);
    class.meaning.clock = tells_time.then_some(0);
    FieldClass::new(FieldKind::Integer(class))
}

fn scalar_class(scalar: &ScalarType) -> FieldKind {
    match scalar {
        ScalarType::Integer(integer) => integer_class(*integer, &[]),
        ScalarType::Enumeration(integer, labels) => integer_class(*integer, labels),
        ScalarType::Real(bytes) => FieldKind::Real(bits(*bytes)),
        ScalarType::Boolean => FieldKind::Boolean(bits(1)),
    }
}

fn integer_class(integer: IntegerType, labels: &[ValueLabel]) -> FieldKind {
    let mut mappings: Vec<EnumerationMapping> = Vec::new();
    let mut places = HashMap::new();
    for label in labels {
        let place = *places.entry(label.name.as_str()).or_insert(mappings.len());
        if place == mappings.len() {
            mappings.push(EnumerationMapping { label: label.name.clone(), ranges: Vec::new() });
        }
        mappings[place].ranges.push(IntegerRange::single(label.value));
    }
    let meaning = IntegerMeaning {
        signed: integer.is_signed,
        base: if integer.is_hex { DisplayBase::Hexadecimal } else { DisplayBase::Decimal },
        enumeration: !mappings.is_empty(),
        mappings,
        roles: Vec::new(),
        clock: None,
        encoding: None,
    };
    FieldKind::Integer(FixedInteger { bits: bits(integer.bytes), meaning })
}

fn bits(bytes: u8) -> FixedBits {
    FixedBits { length: 8 * u32::from(bytes), byte_order: ByteOrder::Little, reversed: false, alignment: 8 }
}

/// An identifier like a name, which is not taken.
fn free_name(name: &str, taken: &HashSet<String>) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
    let mut free: String = name.chars().map(plain).collect();
    if !free.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        free.insert(0, '_');
    }
    let begin = free.len();
    for number in 2.. {
        if !taken.contains(&free) {
            break;
        }
        free.truncate(begin);
        free.push_str(&format!("_{number}"));
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_that_differ() {
        let field = |name: &str, kind| DefinedField { name: name.to_owned(), kind };
        let byte = || FieldType::Scalar(ScalarType::Integer(IntegerType::unsigned(1)));
        let fields = [field("a.b", byte()), field("a_b", byte()), field("a b", FieldType::Text), field("1", byte())];
        let FieldKind::Structure(structure) = structure(&fields, Scope::EventPayload).kind else { panic!() };
        let names: Vec<_> = structure.members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["a_b", "a_b_2", "_a_b_3_length", "a_b_3", "_1"]);
    }
}
