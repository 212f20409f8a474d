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
    let found = check(&[folder.path().to_owned()], &Progress::default()).expect("nobody cancels it");
    found.iter().map(|found| (found.rule, found.gravity)).collect()
}

#[test]
fn the_demo_is_sound() {
    assert_eq!(check(&[demo()], &Progress::default()), Ok(vec![]));
}

#[test]
fn a_missing_path_is_an_error() {
    let found = check(&[demo().join("absent")], &Progress::default()).expect("nobody cancels it");
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
