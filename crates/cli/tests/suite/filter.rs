//! `--filter` from the outside: every command keeps the same events, and messages teach.

use std::path::{Path, PathBuf};
use std::process::Output;

use expect_test::{Expect, expect};

use crate::program;

fn demo() -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    path.to_str().expect("the path is text").to_owned()
}

fn kymo(arguments: &[&str]) -> Output {
    program::kymo().args(arguments).env("TZ", "UTC").output().expect("the program is there")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(&demo(), "demo")
}

/// How many events `kymo count` finds.
fn counted(arguments: &[&str]) -> u64 {
    let done = kymo(&[&["count", "--json"], arguments].concat());
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
    json["events"].as_u64().expect("a number of events")
}

/// What is told of an expression: exit status and standard error.
fn check_told(expression: &str, expected: &Expect) {
    let done = kymo(&["count", "--filter", expression, &demo()]);
    expected.assert_eq(&format!("{}\n{}", done.status.code().unwrap_or(-1), text(&done.stderr)));
}

/// Lines of the whole are what is printed with the filter, but for the time since the line before.
#[test]
fn what_is_printed_is_what_another_reads_out_of_all_lines() {
    let all = kymo(&["print", "--no-delta", &demo()]);
    for (filter, part) in [
        ("queue_depth == 2", "queue_depth = 2 }"),
        ("name == \"frame*\"", "name = \"frame"),
        ("kind == \"CUSTOM\"", "kind = ( \"CUSTOM\" "),
        ("event.name == \"jobs:end\"", " jobs:end: "),
        ("cpu_id == 1", "{ cpu_id = 1 }"),
        ("sizes[2] == 3 || has(worker)", "jobs:begin"),
    ] {
        let all = text(&all.stdout);
        let wanted: Vec<&str> = all.lines().filter(|line| line.contains(part)).collect();
        for threads in ["1", "2", "3"] {
            let some = kymo(&["print", "--no-delta", "--threads", threads, "--filter", filter, &demo()]);
            let some = text(&some.stdout);
            let found: Vec<&str> = some.lines().collect();
            assert!(!wanted.is_empty() && found.len() >= wanted.len(), "{filter}");
            if !filter.contains("||") {
                assert_eq!(found, wanted, "{filter}");
            }
        }
    }
}

#[test]
fn every_command_keeps_the_same_events() {
    for filter in
        ["queue_depth > 2 && name != \"*.raw\"", "id % 3 == 1", "$ctx.vtid != $ctx.vpid", "time < @00:02:52.27"]
    {
        let count = counted(&["--filter", filter, &demo()]);
        assert!(count > 0 && count < 2400, "{filter}: {count}");
        assert_eq!(counted(&["--sizes", "--filter", filter, &demo()]), count, "{filter}");
        let printed = kymo(&["print", "--filter", filter, "--format", "json", &demo()]);
        assert_eq!(text(&printed.stdout).lines().count() as u64, count, "{filter}");
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let part = folder.path().join("part");
        let part = part.to_str().expect("the path is text");
        let done = kymo(&["cut", "--filter", filter, "--output", part, &demo()]);
        assert!(done.status.success(), "{done:?}");
        assert_eq!(counted(&[part]), count, "{filter}");
        let not = format!("!({filter})");
        assert_eq!(counted(&["--filter", &not, part]), 0, "{filter}");
    }
}

/// A class without a field is neither for nor against what is asked of it.
#[test]
fn what_is_missing_is_unknown() {
    let all = counted(&[&demo()]);
    let with = counted(&["--filter", "has(queue_depth)", &demo()]);
    let small = counted(&["--filter", "queue_depth < 3", &demo()]);
    let large = counted(&["--filter", "!(queue_depth < 3)", &demo()]);
    assert_eq!(small + large, with);
    assert_eq!(counted(&["--filter", "queue_depth < 3 || 1", &demo()]), all);
    assert_eq!(counted(&["--filter", "!has(queue_depth)", &demo()]), all - with);
}

/// Packets of another time are not read at all; of those of another processor only the head is.
#[test]
fn packets_are_skipped() {
    let packets = |filter: &str| {
        let done = kymo(&["filter", "--json", filter, &demo()]);
        let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"));
        let number = |name: &str| json["packets"][name].as_u64().expect("a number of packets");
        (number("all"), number("not_read"), number("head_only"))
    };
    assert_eq!(packets("id > 5"), (17, 0, 0));
    let (_, not_read, _) = packets("id > 5 && time > @00:02:52.31");
    assert!(not_read > 8, "{not_read}");
    let (_, _, head_only) = packets("cpu_id == 1 && id > 5");
    assert!(head_only > 3, "{head_only}");
    assert_eq!(packets("cpu_id == 1 || id > 5").2, 0);
    assert_eq!(packets("has(nothing)").1, 17);
}

#[test]
fn mistakes_are_shown_where_they_are() {
    check_told(
        "queue_dept > 2",
        &expect![[r#"
            2
            error: no class of events has `queue_dept`
                queue_dept > 2
                ^^^^^^^^^^
            help: there is `queue_depth`
        "#]],
    );
    check_told(
        "id == \"3\"",
        &expect![[r#"
            2
            error: in jobs:submit, jobs:begin, jobs:chunk and 1 more: `"3"` is text and `id` is a number: they cannot be compared
                id == "3"
                ^^^^^^^^^
        "#]],
    );
    check_told(
        "id == ",
        &expect![[r#"
        2
        error: found the end, expected a value: a field, a number, a text, or `(`
            id == 
                  ^
    "#]],
    );
    check_told(
        "kind == \"RENDR\"",
        &expect![[r#"
        2
        error: in jobs:submit: `kind` has no label "RENDR"
            kind == "RENDR"
                    ^^^^^^^
        help: did you mean `"RENDER"`?
    "#]],
    );
    check_told(
        "sizes > 1 || worker == 1",
        &expect![[r#"
        0
        warning: in jobs:chunk: `sizes` is an array, which has no single value
            sizes > 1 || worker == 1
            ^^^^^
        help: name one of its members, as in `sizes.member` or `sizes[0]`
    "#]],
    );
}

#[test]
fn what_it_means_is_said_for_each_class() {
    let done = kymo(&["filter", "worker == 1 || result > 5 && id < 5ms", &demo()]);
    expect![[r#"
        applies: jobs:begin
            note: `id` has no unit: `5ms` is taken as 5000000, in nanoseconds
        applies: jobs:end
            note: `id` has no unit: `5ms` is taken as 5000000, in nanoseconds
        never applies: jobs:submit, jobs:chunk
        of 17 packets (132.0 KiB), 0 packets (0 B) are not read, of 0 packets (0 B) only the head
    "#]]
    .assert_eq(&text(&done.stdout));
    let done = kymo(&["filter", "--explain", "worker == 1", &demo()]);
    let shown = text(&done.stdout);
    for part in ["expression", "typed", "read program", "bytecode for programs", "machine code for programs", "eBPF"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

/// A class that declares a unit is compared in it, exactly.
#[test]
fn units_of_fields_are_heeded() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let trace = folder.path().join("trace");
    let name = trace.to_str().expect("the path is text");
    let done = kymo(&["cut", "--as", "ctf2", "--output", name, &demo()]);
    assert!(done.status.success(), "{done:?}");
    let metadata = std::fs::read_to_string(trace.join("metadata")).expect("CTF 2 metadata are text");
    let (before, behind) = metadata.split_once("\"queue_depth\"").expect("the field is there");
    let unit = "\"attributes\": {\"kymograph\": {\"unit\": \"us\"}}, \"type\"";
    let with_unit = format!("{before}\"queue_depth\"{}", behind.replacen("\"type\"", unit, 1));
    std::fs::write(trace.join("metadata"), with_unit).expect("the folder is ours");
    assert_eq!(
        counted(&["--filter", "queue_depth > 2999ns", name]),
        counted(&["--filter", "queue_depth >= 3", &demo()])
    );
    assert_eq!(counted(&["--filter", "queue_depth == 2500ns", name]), 0);
    let told = kymo(&["count", "--filter", "queue_depth > 3KiB", name]);
    assert_eq!(told.status.code(), Some(2));
    assert!(text(&told.stderr).contains("no common unit"), "{}", text(&told.stderr));
}

/// Thousands of parts are nothing special, and what is beyond the limits is told.
#[test]
fn long_filters_work() {
    let chain = |count: usize| vec!["id!=9"; count].join("&&");
    assert_eq!(counted(&["--filter", &chain(9000), &demo()]), counted(&["--filter", "id != 9", &demo()]));
    let nested = format!("{}id{}", "(".repeat(20_000), ")".repeat(20_000));
    assert_eq!(counted(&["--filter", &nested, &demo()]), counted(&["--filter", "id != 0", &demo()]));
    let done = kymo(&["count", "--filter", &chain(10_000), &demo()]);
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr).chars().take(200).collect::<String>());
}
