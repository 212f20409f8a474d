//! The words of definitions are those of the C header, and each word has one meaning.

#![cfg(feature = "std")]

use std::collections::BTreeSet;

use crate::definition::{CONTEXTS_MAX, Definition, DefinitionRole, parse};
use crate::field::{FieldType, ScalarType};
use crate::level::LogLevel;

/// The headers that programs in C include.
const HEADERS: [&str; 2] =
    [include_str!("../../../include/kymo/kymo.h"), include_str!("../../../include/kymo/event.h")];

/// Types of one value, as the parser reads them.
fn scalars() -> BTreeSet<String> {
    let letters = ["u", "i", "x"].iter().flat_map(|letter| [8, 16, 32, 64].map(|bits| format!("{letter}{bits}")));
    letters.chain(["pointer", "f32", "f64", "bool"].map(str::to_owned)).collect()
}

/// The values of macros of the C header whose names begin so: `#define PREFIX_NAME "VALUE"`.
fn macros(prefix: &str) -> Vec<(&'static str, &'static str)> {
    let lines = HEADERS.iter().flat_map(|header| header.lines());
    let of_prefix = lines.filter_map(|line| line.strip_prefix("#define ")?.strip_prefix(prefix)?.split_once(' '));
    of_prefix.map(|(name, value)| (name, value.trim_matches('"'))).collect()
}

#[test]
fn words_are_types_and_types_are_words() {
    for word in scalars() {
        let scalar = ScalarType::named(&word).unwrap_or_else(|| panic!("{word} is no type"));
        let said = scalar.to_string();
        assert!(said == word || (said.as_str(), word.as_str()) == ("x64", "pointer"), "{word} becomes {said}");
    }
    assert_eq!(ScalarType::named("u24"), None);
    let types = ["text", "array 3 i16", "sequence x8", "enum u8(idle=0, busy=1, not here=255)"];
    for class in types {
        let Ok(Definition::Event(event)) = parse(format!("event a:b\nfield {class} c\n").as_bytes()) else {
            panic!("{class} is not understood");
        };
        assert_eq!(event.fields[0].kind.to_string(), class);
    }
    assert_eq!(FieldType::FixedText(16).to_string(), "text");
}

/// The type of each macro `KYMO_NAME(name) (kymo_scalar, "WORD", CTYPE, name)` is one that recorders understand, of as many bytes as
/// the type in C has, and none is missing.
#[test]
fn the_c_header_has_these_types() {
    let mut found = BTreeSet::new();
    for (name, value) in macros("KYMO_") {
        let Some(parts) = value.strip_prefix("(kymo_scalar, \"") else { continue };
        let (word, rest) = parts.split_once("\", ").expect("a word and a type of C");
        let class = rest.split(',').next().expect("a type of C");
        let bytes = match class {
            "bool" | "uint8_t" | "int8_t" => 1,
            "uint16_t" | "int16_t" => 2,
            "uint32_t" | "int32_t" | "float" => 4,
            "uint64_t" | "int64_t" | "double" | "const void *" => 8,
            other => panic!("{name} is of a type that is not known here: {other}"),
        };
        let scalar = ScalarType::named(word).unwrap_or_else(|| panic!("{name}: `{word}` is no type"));
        assert_eq!(scalar.bytes(), bytes, "{name} is {class}");
        found.insert(word.to_owned());
    }
    assert_eq!(found, scalars());
    let elements: BTreeSet<String> = macros("KYMO_INNER_C_").iter().map(|(word, _)| (*word).to_owned()).collect();
    assert_eq!(elements, scalars(), "types of elements");
}

#[test]
fn the_c_header_has_these_levels_and_roles() {
    let levels = macros("KYMO_INNER_LEVEL_");
    assert_eq!(levels.len(), 15);
    for (name, number) in levels {
        assert_eq!(LogLevel::number(name).map(|number| number.to_string()).as_deref(), Some(number), "{name}");
    }
    let roles = macros("KYMO_INNER_ROLE_");
    assert_eq!(roles.len(), DefinitionRole::ALL.len());
    for (name, word) in roles {
        assert!(DefinitionRole::ALL.iter().any(|role| role.word() == word), "{name} is `{word}`");
    }
}

#[test]
fn contexts_have_numbers_below_the_limit() {
    let context = |number: u32| parse(format!("context user {number}\nfield u8 x\n").as_bytes());
    assert!(context(CONTEXTS_MAX - 1).is_ok() && context(CONTEXTS_MAX).is_err());
}
