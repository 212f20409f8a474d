//! What `kymo print` makes of every kind of field: a trace of one event, made here, as text.

use std::path::PathBuf;

use expect_test::{expect, expect_file};

use crate::program;

/// Members of the payload: name and class.
const MEMBERS: &str = r#"
    {"name": "hexadecimal", "field-class": {"type": "fixed-length-unsigned-integer", "length": 32,
        "byte-order": "little-endian", "alignment": 8, "preferred-display-base": 16}},
    {"name": "octal", "field-class": {"type": "fixed-length-signed-integer", "length": 16,
        "byte-order": "little-endian", "alignment": 8, "preferred-display-base": 8}},
    {"name": "count", "field-class": {"type": "variable-length-unsigned-integer"}},
    {"name": "yes", "field-class": {"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian",
        "alignment": 8}},
    {"name": "bits", "field-class": {"type": "fixed-length-bit-array", "length": 8, "byte-order": "little-endian",
        "alignment": 8}},
    {"name": "kind", "field-class": {"type": "fixed-length-unsigned-integer", "length": 8,
        "byte-order": "little-endian", "alignment": 8,
        "mappings": {"zebra": [[1, 1], [7, 9]], "ant": [[2, 2]]}}},
    {"name": "real", "field-class": {"type": "fixed-length-floating-point-number", "length": 32,
        "byte-order": "little-endian", "alignment": 8}},
    {"name": "text", "field-class": {"type": "null-terminated-string"}},
    {"name": "nothing", "field-class": {"type": "structure"}},
    {"name": "none", "field-class": {"type": "static-length-array", "length": 0,
        "element-field-class": {"type": "null-terminated-string"}}},
    {"name": "some", "field-class": {"type": "dynamic-length-array", "length-field-location": {"path": ["count"]},
        "element-field-class": {"type": "structure", "member-classes": [
            {"name": "text", "field-class": {"type": "null-terminated-string"}}]}}},
    {"name": "present", "field-class": {"type": "optional", "selector-field-location": {"path": ["yes"]},
        "field-class": {"type": "null-terminated-string"}}},
    {"name": "absent", "field-class": {"type": "optional", "selector-field-location": {"path": ["kind"]},
        "selector-field-ranges": [[10, 20]], "field-class": {"type": "null-terminated-string"}}},
    {"name": "chosen", "field-class": {"type": "variant", "selector-field-location": {"path": ["kind"]},
        "options": [
            {"name": "one", "selector-field-ranges": [[0, 2]], "field-class": {"type": "null-terminated-string"}},
            {"name": "other", "selector-field-ranges": [[3, 255]],
                "field-class": {"type": "variable-length-signed-integer"}}]}},
    {"name": "blob", "field-class": {"type": "static-length-blob", "length": 3}}
"#;

/// What the members hold.
const RECORD: &[&[u8]] = &[
    &0x1_2345_u32.to_le_bytes(),
    &(-8_i16).to_le_bytes(),
    &[2, 1, 0xa5, 8],
    &1.5_f32.to_le_bytes(),
    b"it's \"so\"\0",
    b"a\0b\0",
    b"here\0",
    &[0xfb, 0x00],
    &[1, 2, 0xff],
];

fn trace(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("kymo-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("temporary files may be written");
    let fragments = [
        r#"{"type": "preamble", "version": 2}"#.to_owned(),
        r#"{"type": "trace-class", "environment": {"zone": "north", "answer": 12345}}"#.to_owned(),
        r#"{"type": "data-stream-class", "name": "all", "attributes": {"org": {"list": [1, null], "on": true}}}"#
            .to_owned(),
        format!(
            r#"{{"type": "event-record-class", "name": "every:kind",
                "payload-field-class": {{"type": "structure", "member-classes": [{MEMBERS}]}}}}"#
        ),
    ];
    let metadata: String = fragments.iter().map(|fragment| format!("\x1e{fragment}\n")).collect();
    std::fs::write(folder.join("metadata"), metadata).expect("temporary files may be written");
    std::fs::write(folder.join("stream"), RECORD.concat()).expect("temporary files may be written");
    folder
}

/// Standard output, then standard error.
fn printed(name: &str, arguments: &[&str]) -> String {
    let folder = trace(name);
    let done = program::kymo().arg("print").args(arguments).arg(&folder).output().expect("the program is there");
    std::fs::remove_dir_all(&folder).expect("it was made before");
    let text = String::from_utf8_lossy(&done.stdout).replace('\x1b', "^");
    text + &String::from_utf8_lossy(&done.stderr)
}

#[test]
fn details_of_every_kind_of_field() {
    let text = printed("details", &["--format", "details", "--no-stream-name", "--no-trace-name"]);
    expect_file!["../details.txt"].assert_eq(&text);
}

#[test]
fn text_of_every_kind_of_field() {
    expect![[r#"
        every:kind: { hexadecimal = 0x12345, octal = 0777770, count = 2, yes = true, bits = 0xA5, kind = ( "zebra" : container = 8 ), real = 1.5, text = "it\'s \"so\"", nothing = { }, none = [ ], some = [ [0] = { text = "a" }, [1] = { text = "b" } ], present = { "here" }, absent = <none>, chosen = { 123 }, blob = 0x0102ff }
    "#]].assert_eq(&printed("text", &[]));
}

#[test]
fn colours_of_every_kind_of_field() {
    expect![[r#"
        ^[1m^[1m^[35mevery:kind^[0m: { ^[1m0x12345^[0m, ^[1m0777770^[0m, ^[1m2^[0m, ^[1mtrue^[0m, ^[1m0xA5^[0m, ( ^[1m"zebra"^[0m : container = ^[1m8^[0m ), ^[1m1.5^[0m, ^[1m"it\'s \"so\""^[0m, { }, [ ], [ { ^[1m"a"^[0m }, { ^[1m"b"^[0m } ], { ^[1m"here"^[0m }, <none>, { ^[1m123^[0m }, ^[1m0x0102ff^[0m }
    "#]].assert_eq(&printed("colours", &["--color=always", "--names=none"]));
}
