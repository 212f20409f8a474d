//! Slips of people on the command line: mistyped commands, names and times, and the exit status that says so.

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

#[test]
fn a_mistyped_command_has_a_suggestion() {
    let near = expect![[r"
        error: there is no command and no file `shced`
        help: did you mean `kymo sched`?
        exit status 2
    "]];
    refused(&["shced", "DEMO"], &near);
    refused(&["help", "shced"], &near);
    refused(&["man", "shced"], &near);
    refused(
        &["inf", "DEMO"],
        &expect![[r"
            error: there is no command and no file `inf`
            help: did you mean `kymo info`?
            exit status 2
        "]],
    );
    // Other tracers have it.
    refused(
        &["start", "flight"],
        &expect![[r"
            error: there is no command and no file `start`
            help: `kymo record` begins a session; `kymo trigger --start --session NAME` goes on with one that records nothing now
            exit status 2
        "]],
    );
    // Nothing is like it: it is taken for a trace.
    let (_, errors, status) = run(&["some-trace"], "UTC");
    assert!(errors.contains("some-trace") && !errors.contains("did you mean"), "{errors}");
    assert_eq!(status, 1);
}

/// A trace may be called like a command.
#[test]
fn a_file_is_no_mistyped_command() {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    std::fs::write(folder.path().join("cpuu"), "no trace").expect("temporary files may be written");
    let done = program::kymo().arg("cpuu").current_dir(folder.path()).output().expect("the program is there");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(errors.contains("cpuu") && !errors.contains("did you mean"), "{errors}");
}

#[test]
fn mistyped_events_and_fields_of_pairs_are_named() {
    refused(
        &["pairs", "--start", "jobs:begn", "--stop", "jobs:end", "--key", "id", "DEMO"],
        &expect![[r"
            error: no event record class is called `jobs:begn`; there is `jobs:begin`
            exit status 2
        "]],
    );
    refused(
        &["pairs", "--start", "jobs:begin", "--stop", "jobs:end", "--key", "idd", "DEMO"],
        &expect![[r"
            error: no event `jobs:begin` or `jobs:end` has a field `idd`; there is `id`
            exit status 2
        "]],
    );
    refused(
        &["pairs", "--start", "jobs:begin", "--stop", "jobs:end", "--key", "id", "--group", "nothing_like_it", "DEMO"],
        &expect![[r"
            error: no event `jobs:begin` or `jobs:end` has a field `nothing_like_it`
            exit status 2
        "]],
    );
}

/// A part of the question has an answer; the other part is named.
#[test]
fn an_event_that_is_missing_beside_others_is_a_warning() {
    let words = ["pairs", "--start", "jobs:begin", "--stop", "jobs:edn", "--stop", "jobs:end", "--key", "id", "--csv"];
    let (out, errors, status) = run(&[&words[..], &["DEMO"]].concat(), "UTC");
    assert!(out.lines().count() > 1, "{out}");
    assert_eq!(errors, "warning: no event record class is called `jobs:edn`; there is `jobs:end`\n");
    assert_eq!(status, 0);
    let (_, errors, _) = run(&["count", "--event", "jobs:edn", "--event", "jobs:end", "DEMO"], "UTC");
    assert_eq!(errors, "warning: no event record class is called `jobs:edn`; there is `jobs:end`\n");
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

/// Metadata alone: no event came, and everything was read. The answer is the same with a stream that has no packet.
#[test]
fn a_trace_without_streams_has_an_answer() {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let metadata = "/* CTF 1.8 */
        typealias integer { size = 32; align = 8; signed = true; } := i32;
        trace { major = 1; minor = 8; byte_order = le; };
        event { name = \"sched_switch\"; fields := struct { i32 prev_tid; i32 next_tid; }; };";
    std::fs::write(folder.path().join("metadata"), metadata).expect("temporary files may be written");
    let asked = || {
        let done = program::kymo().args(["cpu", "--json"]).arg(folder.path()).output().expect("the program is there");
        let tables: serde_json::Value = serde_json::from_slice(&done.stdout).expect("it is JSON");
        assert!(tables["tables"].as_array().is_some_and(|tables| !tables.is_empty()), "{tables}");
        done.status.code()
    };
    assert_eq!(asked(), Some(0));
    std::fs::write(folder.path().join("stream"), "").expect("temporary files may be written");
    assert_eq!(asked(), Some(0));
}

/// The times that `info` shows name their zone, and mean the same in each.
#[test]
fn times_of_info_can_be_typed() {
    for (zone, begin, end) in [
        ("UTC", "2026-11-21T00:02:52.255263261Z", "2026-11-21T00:02:52.321931298Z"),
        ("America/New_York", "2026-11-20T19:02:52.255263261-05:00", "2026-11-20T19:02:52.321931298-05:00"),
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
    let from = "2026-11-20 19:02:52.255263261-05:00 to 19:02:52.321931298-05:00";
    assert!(title(&["threads"], "America/New_York").contains(from), "{}", title(&["threads"], "America/New_York"));
    let from = "2026-11-21 00:02:52.255263261Z to 00:02:52.321931298Z";
    assert!(title(&["threads", "--gmt"], "America/New_York").contains(from));
    let from = "2026-11-21 00:02:52.255263261 to 00:02:52.321931298";
    assert!(title(&["threads"], "UTC").contains(from), "{}", title(&["threads"], "UTC"));
}

/// A time that the trace does not reach is mistyped, and not the answer that nothing happened.
#[test]
fn times_outside_of_the_trace_are_refused() {
    let message = |option: &str, time: &str| {
        let (out, errors, status) = run(&["threads", option, time, "--csv", "DEMO"], "UTC");
        assert_eq!((out.as_str(), status), ("", 2), "{errors}");
        errors.lines().next().unwrap_or_default().to_owned()
    };
    let span = "which is from 2026-11-21 00:02:52.255263261 to 2026-11-21 00:02:52.321931298";
    assert_eq!(message("--begin", "00:03"), format!("error: --begin is after the end of the trace, {span}"));
    assert_eq!(message("--end", "00:02"), format!("error: --end is before the begin of the trace, {span}"));
    // Each end of the trace is within.
    for (option, time) in [("--begin", "00:02:52.321931298"), ("--end", "00:02:52.255263261")] {
        assert_eq!(run(&["threads", option, time, "--csv", "DEMO"], "UTC").2, 0, "{time}");
    }
}

/// Nothing of a trace without a clock has a time: a warning says so, and no number of 64 bits is shown for it.
#[test]
fn a_trace_without_a_clock_has_no_times() {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let metadata = "/* CTF 1.8 */
        typealias integer { size = 32; align = 8; signed = true; } := i32;
        trace { major = 1; minor = 8; byte_order = le; };
        event { name = \"sched_switch\"; fields := struct { i32 prev_tid; i32 next_tid; }; };";
    std::fs::write(folder.path().join("metadata"), metadata).expect("temporary files may be written");
    let words: Vec<u8> = [0_i32, 7, 7, 8, 8, 0].into_iter().flat_map(i32::to_le_bytes).collect();
    std::fs::write(folder.path().join("stream"), words).expect("temporary files may be written");
    for name in ["cpu", "gaps", "rates", "threads"] {
        let done = program::kymo().arg(name).arg(folder.path()).env("LC_ALL", "C.UTF-8").output().expect("it starts");
        let (out, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(errors.contains("warning: these traces have no clock"), "{name}: {errors}");
        assert!(!out.contains("9223372036"), "{name}: {out}");
    }
}

/// Help lists the options that an analysis takes; others are rejected with the reason.
#[test]
fn help_lists_the_options_that_mean_something() {
    let help = |name: &str| run(&[name, "--help"], "UTC").0;
    let sched = help("sched");
    for option in ["--irq", "--softirq", "--min-size", "--max-size"] {
        assert!(!sched.contains(&format!("{option} ")), "{option}: {sched}");
    }
    assert!(sched.contains("--tid ") && sched.contains("--min ") && help("irq").contains("--softirq "));
    let (_, errors, status) = run(&["sched", "--irq", "3", "DEMO"], "UTC");
    assert!(errors.contains("`sched` has nothing that --irq could choose"), "{errors}");
    assert_eq!(status, 2);
    assert!(!help("cpu").contains("See `kymo cpu --help`") && help("pairs").contains("See `kymo cpu --help`"));
}
