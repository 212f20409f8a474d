//! Slips of people on the command line: times that are typed again.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use crate::{platform, program};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo")
}

/// The last word is `DEMO` where the trace stands. In a folder of its own.
fn run(words: &[&str], zone: &str) -> (String, String, i32) {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let demo = demo();
    let words = words.iter().map(|word| if *word == "DEMO" { demo.as_os_str() } else { std::ffi::OsStr::new(word) });
    let mut kymo = program::kymo();
    kymo.args(words).current_dir(folder.path()).env("TZ", zone).env("LC_ALL", "C.UTF-8");
    kymo.env("XDG_CACHE_HOME", folder.path());
    let done = kymo.output().expect("the program is there");
    let text = |bytes: &[u8]| platform::as_on_linux(&String::from_utf8_lossy(bytes));
    (text(&done.stdout), text(&done.stderr), done.status.code().unwrap_or(-1))
}

/// Standard error and the exit status.
fn refused(words: &[&str], expected: &Expect) {
    let (out, errors, status) = run(words, "UTC");
    assert_eq!(out, "", "{words:?}");
    expected.assert_eq(&format!("{errors}exit status {status}\n"));
}

/// Everything was read; the question is the fault.
#[test]
fn a_question_without_an_answer_is_wrong_usage() {
    refused(
        &["cpu", "DEMO"],
        &expect![[r"
            error: no event of these traces has the role `thread_switch`: a CPU stops running one thread and runs another; `kymo roles` shows the roles of events
            exit status 2
        "]],
    );
    let (_, errors, status) = run(&["state", "--at", "00:02:52.3", "DEMO"], "UTC");
    assert!(errors.starts_with("error: no event of these traces has the role"), "{errors}");
    assert_eq!(status, 2);
}

/// The times that `info` shows name their zone, and mean the same in each.
#[test]
fn times_of_info_can_be_typed() {
    for (zone, begin, end) in [
        ("UTC", "2026-11-21T00:02:52.253260578Z", "2026-11-21T00:02:52.324470096Z"),
        ("America/New_York", "2026-11-20T19:02:52.253260578-05:00", "2026-11-20T19:02:52.324470096-05:00"),
    ] {
        let (info, _, _) = run(&["info", "DEMO"], zone);
        assert!(info.contains(&format!("from {begin} to {end}")), "{info}");
        let all = run(&["print", "DEMO"], "UTC").0;
        for other in ["UTC", "Asia/Kolkata"] {
            let words = ["print", "--clock-gmt", "--begin", begin, "--end", end, "DEMO"];
            assert_eq!(run(&words, other).0.lines().count(), all.lines().count(), "{zone} {other}");
        }
        let range = run(&["print", "--clock-gmt", "--timerange", &format!("{begin},{end}"), "DEMO"], "UTC");
        assert_eq!(range.0, all);
        // The time of day alone, of the last event.
        let last = all.lines().last().and_then(|line| line.get(1..19)).expect("there is an event");
        let words = ["print", "--clock-gmt", "--begin", &format!("{last}Z"), "DEMO"];
        assert_eq!(run(&words, "Asia/Kolkata").0.lines().count(), 1, "{last}");
    }
}

/// Spans of answers name a zone that is not obvious, and agree with `info`.
#[test]
fn spans_name_the_zone() {
    let title = |words: &[&str], zone| {
        let out = run(&[words, &["DEMO"]].concat(), zone).0;
        out.lines().next().unwrap_or_default().to_owned()
    };
    let from = "2026-11-20 19:02:52.253260578-05:00 to 19:02:52.324470096-05:00";
    assert!(title(&["threads"], "America/New_York").contains(from), "{}", title(&["threads"], "America/New_York"));
    let from = "2026-11-21 00:02:52.253260578Z to 00:02:52.324470096Z";
    assert!(title(&["threads", "--gmt"], "America/New_York").contains(from));
    let from = "2026-11-21 00:02:52.253260578 to 00:02:52.324470096";
    assert!(title(&["threads"], "UTC").contains(from), "{}", title(&["threads"], "UTC"));
}
