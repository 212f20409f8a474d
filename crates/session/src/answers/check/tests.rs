//! The demo trace is sound; copies of it, each damaged in one way, have the finding for it.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Gravity, check};
use crate::Progress;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// The rules that a copy of the demo breaks after `damage` to one file.
fn rules(file: &str, damage: impl FnOnce(&mut Vec<u8>)) -> Vec<(&'static str, Gravity)> {
    let folder = tempfile::tempdir().unwrap();
    copy(&demo(), folder.path());
    let path = folder.path().join(file);
    let mut bytes = fs::read(&path).unwrap();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let found = check(&[folder.path().to_owned()], &crate::ImportOptions::default(), &Progress::default())
        .expect("nobody cancels it");
    found.iter().map(|found| (found.rule, found.gravity)).collect()
}

#[test]
fn the_demo_is_sound() {
    assert_eq!(check(&[demo()], &crate::ImportOptions::default(), &Progress::default()), Ok(vec![]));
}

#[test]
fn a_missing_path_is_an_error() {
    let found = check(&[demo().join("absent")], &crate::ImportOptions::default(), &Progress::default())
        .expect("nobody cancels it");
    assert_eq!((found[0].rule, found[0].gravity), ("unreadable-file", Gravity::Error));
}

#[test]
fn a_file_that_ends_early_has_a_cut_packet() {
    let found = rules("jobs_0", |bytes| bytes.truncate(bytes.len() - 100));
    assert!(found.contains(&("cut-packet", Gravity::Error)), "{found:?}");
}

#[test]
fn a_packet_without_magic_number_is_an_error() {
    let found = rules("jobs_0", |bytes| bytes[0] ^= 1);
    assert!(found.contains(&("packet-head", Gravity::Error)), "{found:?}");
}

#[test]
fn another_uuid_is_an_assumption() {
    let found = rules("jobs_0", |bytes| bytes[4] ^= 1);
    assert_eq!(found, [("uuid-mismatch", Gravity::Assumption)]);
}

#[test]
fn an_index_of_other_packets_is_a_warning() {
    let found = rules("index/jobs_0.idx", |bytes| bytes[16 + 72 + 39] ^= 1);
    assert_eq!(found, [("index-disagrees", Gravity::Warning)]);
}

#[test]
fn metadata_that_is_no_text_of_it_is_an_error() {
    let found = rules("metadata", |bytes| *bytes = b"/* CTF 1.8 */ trace {".to_vec());
    assert!(found.contains(&("metadata", Gravity::Error)), "{found:?}");
}

/// Texts are read as their encoding says, and what is not valid there is told; the answer of `print` shows it.
#[test]
fn a_text_that_is_not_valid_in_its_encoding_is_told() {
    let member = |name: &str, class: &str| format!(r#"{{"name": "{name}", "field-class": {{{class}}}}}"#);
    let byte = r#""type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian""#;
    let location = r#""length-field-location": {"origin": "event-record-payload", "path": ["n"]}"#;
    let wide = format!(r#""type": "dynamic-length-string", "encoding": "utf-16be", {location}"#);
    let narrow = r#""type": "null-terminated-string""#;
    let list =
        r#""type": "static-length-array", "length": 2, "element-field-class": {"type": "null-terminated-string"}"#;
    let members = [member("n", byte), member("wide", &wide), member("narrow", narrow), member("list", list)].join(", ");
    let metadata = format!(
        "\x1e{{\"type\": \"preamble\", \"version\": 2}}\n\x1e{{\"type\": \"data-stream-class\"}}\n\x1e{{\"type\": \
         \"event-record-class\", \"payload-field-class\": {{\"type\": \"structure\", \"member-classes\": [{members}]}}}}\n"
    );
    let found = |stream: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("metadata"), &metadata).unwrap();
        fs::write(folder.path().join("stream"), stream).unwrap();
        let found = check(&[folder.path().to_owned()], &crate::ImportOptions::default(), &Progress::default())
            .expect("nobody cancels it");
        let tell = |found: &crate::CheckFinding| (found.rule, found.message.clone(), found.times);
        found.iter().map(tell).collect::<Vec<_>>()
    };
    let valid = b"\x04\0A\0Bgr\xc3\xbc\xc3\x9fe\0a\0b\0".to_vec();
    assert_eq!(found(&valid), []);
    let event = |problem: &str, times| ("text-encoding", format!("packet at byte 0: {problem}"), times);
    let half = [&valid[..], b"\x03\0A\0a\0a\0b\0", &valid[..], b"\x01\0a\0a\0b\0"].concat();
    let told = "the event at bit 136 has a wrong text `wide`: 3 bytes are not a whole number of code units of UTF-16";
    assert_eq!(found(&half), [event(told, 2)]);
    let told = "the event at bit 0 has a wrong text `wide`: the surrogate 0xd800 has no counterpart beside it";
    assert_eq!(found(b"\x02\xd8\0a\0a\0b\0"), [event(told, 1)]);
    let told = "the event at bit 0 has a wrong text `narrow`: byte 2 is 0xff, which is not valid UTF-8 there";
    assert_eq!(found(b"\0ab\xff\0a\0b\0"), [event(told, 1)]);
    let told = "an event has a wrong text `list`: byte 0 is 0xc3, which is not valid UTF-8 there";
    assert_eq!(found(b"\0a\0a\0\xc3\0"), [event(told, 1)]);
}
