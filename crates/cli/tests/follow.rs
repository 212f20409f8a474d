//! Traces that are followed: of one whose recorder has ended, the same comes as without.

mod program;

use std::fs;
use std::path::{Path, PathBuf};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("temporary files may be written");
    for entry in fs::read_dir(from).expect("it is there") {
        let path = entry.expect("it can be read").path();
        let to = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("it can be copied");
        }
    }
}

#[test]
fn what_is_over_ends() {
    let folder = tempfile::tempdir().expect("temporary files may be written");
    let trace = folder.path().join("demo");
    copy(&demo(), &trace);
    fs::write(trace.join(".kymo-live"), "kymo-live 1 ended 5 1\n").expect("temporary files may be written");
    let run = |words: &[&str]| {
        let output = program::kymo().args(words).arg(&trace).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run(&["print", "--follow"]), run(&["print"]));
    assert_eq!(run(&["print", "--follow", "--limit", "7"]), run(&["print", "--limit", "7"]));
    assert_eq!(run(&["count", "--follow", "--json"]), run(&["count", "--json"]));
    assert_eq!(run(&["count", "--follow"]), run(&["count"]) + "the recording has ended\n");
}
