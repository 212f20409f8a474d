//! Traces that are followed: of one whose recorder has ended, the same comes as without.

use std::fs;

use crate::copies;
use crate::program;

#[test]
fn what_is_over_ends() {
    let folder = tempfile::tempdir().expect("temporary files may be written");
    let trace = folder.path().join("demo");
    copies::copy(&copies::demo(), &trace);
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
