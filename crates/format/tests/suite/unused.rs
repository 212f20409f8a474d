//! Metadata that violate the specification are refused even when nothing uses the wrong part; what only its users
//! could make right is left to them.

use kymo_format::parse;

/// The text lies beside sound metadata that do not use it; expected is the message, or nothing where it may stay.
#[track_caller]
fn check_tsdl(text: &str, expected: &str) {
    let text = format!(
        "/* CTF 1.8 */\ntrace {{ major = 1; minor = 8; byte_order = le; }};\n\
         typealias integer {{ size = 8; align = 8; }} := u8;\n\
         typealias integer {{ size = 8; align = 8; signed = true; }} := s8;\n\
         typealias enum : u8 {{ A, B }} := e;\n{text}\n\
         event {{ name = \"event\"; fields := struct {{ u8 field; }}; }};\n"
    );
    check(&text, expected);
}

/// The field class is that of an alias that nothing uses.
#[track_caller]
fn check_json(field_class: &str, expected: &str) {
    let text = format!(
        "\u{1e}{{\"type\": \"preamble\", \"version\": 2}}\n\
         \u{1e}{{\"type\": \"field-class-alias\", \"name\": \"alias\", \"field-class\": {field_class}}}\n\
         \u{1e}{{\"type\": \"data-stream-class\"}}\n\
         \u{1e}{{\"type\": \"event-record-class\", \"payload-field-class\": {{\"type\": \"structure\", \
         \"member-classes\": [{}]}}}}\n",
        member("field", UNSIGNED)
    );
    check(&text, expected);
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let found: Vec<String> = parse(text.as_bytes()).diagnostics.iter().map(|found| found.problem.to_string()).collect();
    assert_eq!(found.join("; "), expected, "{text}");
}

const UNSIGNED: &str = r#"{"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"}"#;
const SIGNED: &str = r#"{"type": "fixed-length-signed-integer", "length": 8, "byte-order": "little-endian"}"#;
const BOOLEAN: &str = r#"{"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian"}"#;
const TEXT: &str = r#"{"type": "null-terminated-string"}"#;

fn member(name: &str, class: &str) -> String {
    format!(r#"{{"name": "{name}", "field-class": {class}}}"#)
}

fn structure(members: &[(&str, &str)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, class)| member(name, class)).collect();
    format!(r#"{{"type": "structure", "member-classes": [{}]}}"#, members.join(", "))
}

#[test]
fn lengths_of_the_wrong_type() {
    check_tsdl("struct q { s8 n; u8 a[n]; };", "the length `n` is not an unsigned integer");
    check_tsdl("struct q { string n; u8 a[n]; };", "the length `n` is not an unsigned integer");
    check_tsdl(
        "typealias struct { struct { s8 m; } n; u8 a[n.m]; } := q;",
        "the length `n.m` is not an unsigned integer",
    );
    check_tsdl("typedef struct { s8 n; struct { u8 a[n]; } b[3]; } q;", "the length `n` is not an unsigned integer");
    check_tsdl(
        "stream { x := struct { s8 n; u8 a[n]; }; };",
        "the stream has no attribute `x` in CTF 1.8; \
                the length `n` is not an unsigned integer",
    );
}

#[test]
fn tags_of_the_wrong_type() {
    check_tsdl("struct q { u8 t; variant <t> { u8 A; } v; };", "the tag `t` is not an enumeration");
    check_tsdl("variant v { struct { u8 t; variant <t> { u8 A; } v; } A; };", "the tag `t` is not an enumeration");
    check_tsdl("variant w { u8 A; }; struct q { variant w v; };", "the variant has no tag");
}

/// Whoever uses such a type may have what it refers to.
#[test]
fn what_the_surroundings_may_have() {
    check_tsdl("struct q { u8 a[n]; };", "");
    check_tsdl("struct q { u8 a[n]; s8 n; };", "");
    check_tsdl("struct q { u8 a[event.fields.n]; s8 n; };", "");
    check_tsdl("variant w { u8 A; string B; }; struct q { variant <t> { u8 A; u8 B; } v; };", "");
    check_tsdl("struct q { e t; variant <t> { u8 A; string B; } v; };", "");
}

/// One mistake is told once, although two events and the declaration come by it.
#[test]
fn mistakes_are_told_where_they_are() {
    check_tsdl(
        "struct q { s8 n; u8 a[n]; };\nevent { name = \"a\"; id = 1; fields := struct { struct q q; }; };",
        "the length `n` is not an unsigned integer",
    );
}

#[test]
fn locations_inside_of_an_alias() {
    let array = |location| {
        format!(
            r#"{{"type": "dynamic-length-array", "element-field-class": {UNSIGNED}, "length-field-location": {{{location}}}}}"#
        )
    };
    let here = array(r#""path": ["n"]"#);
    check_json(&structure(&[("n", UNSIGNED), ("a", &here)]), "");
    check_json(
        &structure(&[("n", SIGNED), ("a", &here)]),
        "the location leads to a field that is not an unsigned integer",
    );
    check_json(
        &structure(&[("n", TEXT), ("a", &here)]),
        "the location leads to a field that is not an unsigned integer",
    );
    check_json(&structure(&[("a", &here)]), "the location leads to no field that is read before this one");
    // Only the users of the alias have what is outside of it.
    check_json(&here, "");
    check_json(&structure(&[("a", &array(r#""path": [null, "n"]"#))]), "");
    check_json(&structure(&[("a", &array(r#""origin": "packet-header", "path": ["n"]"#))]), "");
}

#[test]
fn selectors_inside_of_an_alias() {
    let location = r#""selector-field-location": {"path": ["n"]}"#;
    let optional = |ranges| format!(r#"{{"type": "optional", {location}, {ranges} "field-class": {UNSIGNED}}}"#);
    let ranges = r#""selector-field-ranges": [[1, 1]],"#;
    check_json(&structure(&[("n", BOOLEAN), ("o", &optional(""))]), "");
    check_json(
        &structure(&[("n", BOOLEAN), ("o", &optional(ranges))]),
        "`selector-field-ranges` must be absent where the selector is a boolean",
    );
    check_json(
        &structure(&[("n", UNSIGNED), ("o", &optional(""))]),
        "the `optional` has no property `selector-field-ranges`",
    );
    let variant = format!(
        r#"{{"type": "variant", {location}, "options": [{{"selector-field-ranges": [[-1, 1]], "field-class": {UNSIGNED}}}]}}"#
    );
    check_json(&structure(&[("n", SIGNED), ("v", &variant)]), "");
    check_json(
        &structure(&[("n", UNSIGNED), ("v", &variant)]),
        "`selector-field-ranges` must be of 0 or more for an unsigned selector",
    );
}

/// What is said of the trace block is not said again of every type.
#[test]
fn a_wrong_trace_block_is_no_fault_of_types() {
    let rest = "typealias integer { size = 8; } := u8;\nevent { name = \"event\"; fields := struct { u8 field; }; };\n";
    let with = |trace: &str| format!("/* CTF 1.8 */\n{trace}\n{rest}");
    check(&with("trace { major = 1; minor = 8; byte_order = big; };"), "`byte_order` must be `le`, `be` or `network`");
    check(
        &with("trace { minor = 8; uuid = \"5\"; byte_order = le; };"),
        "the trace has no `major`; `uuid` must be a UUID: xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
    );
    check(&with("trace { major = 1; minor = 8; };"), "the trace has no `byte_order`");
    check(&with("trace { major = 2; minor = 0; byte_order = le; };"), "the version is 2.0; this reader knows 1.8");
    check(&with(""), "the metadata has no `trace`");
}

/// Writers of C strings keep the character that ends them.
#[test]
fn nul_characters_are_an_assumption() {
    check("/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };\0", "there is a NUL character in the text");
}
