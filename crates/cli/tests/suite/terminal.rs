//! Answers on a terminal: the trace that the project ships, on terminals of several widths.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::program;

/// A terminal of this width: the first end reads everything that is written to the second.
pub(crate) fn terminal(columns: u16) -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let from = openpt(flags).expect("there are some");
    unlockpt(&from).expect("it is ours");
    let size = Winsize { ws_row: 30, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&from, size).expect("it is a terminal");
    let to = ioctl_tiocgptpeer(&from, flags).expect("it is ours");
    (from, to)
}

fn command(arguments: &str) -> Command {
    let mut command = program::kymo();
    command
        .args(arguments.split_whitespace())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .envs([("TZ", "UTC"), ("LC_ALL", "C.UTF-8"), ("TERM", "xterm"), ("NO_COLOR", "1")])
        .env("XDG_CACHE_HOME", std::env::temp_dir().join("kymo-cli-tests"))
        .env_remove("COLUMNS");
    command
}

/// The output of a command on a terminal.
fn shown(mut command: Command, columns: u16) -> String {
    let (from, to) = terminal(columns);
    let mut kymo = command.stdout(to).stderr(std::process::Stdio::null()).spawn().expect("the program is there");
    // The command holds the other end, too.
    drop(command);
    let mut seen = Vec::new();
    // It ends with an error: no process has the terminal open any more.
    let _ = File::from(from).read_to_end(&mut seen);
    kymo.wait().expect("it ends");
    String::from_utf8(seen).expect("it is text").replace("\r\n", "\n")
}

fn at(columns: u16, arguments: &str) -> String {
    shown(command(arguments), columns)
}

fn piped(arguments: &str) -> String {
    String::from_utf8(command(arguments).output().expect("the program is there").stdout).expect("it is text")
}

fn check(columns: u16, arguments: &str, expected: &Expect) {
    expected.assert_eq(&at(columns, arguments));
}

#[test]
fn headlines_come_first() {
    check(
        80,
        "count examples/traces/demo",
        &expect![[r#"
            2,400 events, 35,999 per second. jobs:chunk is most frequent: 50.0%.

            Event        Events  Share  Per second
            jobs:chunk    1,200  50.0%      18,000  ██████████████████████████████
            jobs:begin      400  16.7%       6,000  ██████████
            jobs:end        400  16.7%       6,000  ██████████
            jobs:submit     400  16.7%       6,000  ██████████
        "#]],
    );
    check(
        80,
        "threads examples/traces/demo",
        &expect![[r#"
            There are 2,400 events. Thread demo (29836 of 29832) has most events: 805.
            2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)

            Threads
            Thread                 Events
            demo (29836 of 29832)     805  ██████████████████████████████
            demo (29837 of 29832)     735  ███████████████████████████▍
            demo (29838 of 29832)     460  █████████████████▏
            demo (29832)              400  ██████████████▉
            all 0 or empty: Life (--wide)

            Applications
            Application  Processes  Threads  Events
            demo                 1        4   2,400  ██████████████████████████████

            More tables: per-process, per-cpu, total (--table per-process, or --wide for
            all)
        "#]],
    );
    check(
        80,
        "gaps --top 3 examples/traces/demo",
        &expect![[r#"
            No event came for 1.90 ms, from 00:02:52.320033281 on. CPU 1 had none for
            longest: 3.10 ms.
            2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)

            The longest times without an event: of all lanes, and of each
            Stream  CPU               Begin                 End   Length  Kind
            -         -  00:02:52.320033281  00:02:52.321931298  1.90 ms  quiet  ██████▊
            1         1  00:02:52.315295125  00:02:52.318396353  3.10 ms  quiet  ███████████
            1         1  00:02:52.318851311  00:02:52.321931298  3.08 ms  quiet  ██████████▉
            ... and 6 more rows (--top all)
        "#]],
    );
}

#[test]
fn courses_are_drawn() {
    check(
        60,
        "rates --top 3 examples/traces/demo",
        &expect![[r#"
            Event jobs:chunk is most frequent: 1,200 times, and 69 in
            its busiest period.
            2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668
            ms)

            Events in a period
            Event       Events  Min  Average  Max
            jobs:chunk   1,200   57       60   69
            jobs:begin     400   19       20   23
            jobs:end       400   19       20   22
            ... and 1 more row (--top all)

            Events over time
            jobs:begin  ▃▃▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▃▂▂▂▂▂▂▂▁  at most 23
            jobs:chunk  ██▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇█▇▇▇▇▇▇▅▂  at most 69
            jobs:end    ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▃▂▂▂▂▂▂▂▁  at most 22
                        0          33.3 ms   66.7 ms
        "#]],
    );
}

#[test]
fn pairs_and_periods() {
    check(
        80,
        "pairs --start jobs:begin --stop jobs:end --key id --top 3 examples/traces/demo",
        &expect![[r#"
            Of 400 pairs, 99 % took at most 3.08 ms. The longest took 3.19 ms, from
            00:02:52.261964542 on.
            2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)

            All pairs
            Intervals   Total     Min  Average      Max  Deviation    50 %    90 %     99 %
                  400  194 ms  186 us   486 us  3.19 ms     828 us  220 us  242 us  3.08 ms
            left out: 99.9 %; all 0 or empty: Never ended, Lost inside, Began before,
            Without key, Given up (--wide)

            The longest
            Duration               Begin                 End  Key
             3.19 ms  00:02:52.261964542  00:02:52.265151332  44   █████████████████████████
             3.11 ms  00:02:52.255297979  00:02:52.258410634  0    ████████████████████████▍
             3.10 ms  00:02:52.315294824  00:02:52.318396353  374  ████████████████████████▍
            all 0 or empty: Group (--wide)

            More tables: per-group, distribution (--table per-group, or --wide for all)
        "#]],
    );
    check(
        80,
        "pairs --start jobs:begin --stop jobs:nothing examples/traces/demo",
        &expect![[r#"
            No pair has both ends: 400 never ended, 0 began before.
            2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)

            All pairs
            Intervals  Total  Never ended
                    0   0 ns          400
            all 0 or empty: Min, Average, Max, Deviation, 50 %, 90 %, 99 %, 99.9 %, Lost
            inside, Began before, Without key, Given up (--wide)

            More tables: per-group, open (--table per-group, or --wide for all)
        "#]],
    );
    let mut command = command("periods --top 3");
    command.args(["--period", "job : jobs:begin : jobs:end if id == $begin.id", "examples/traces/demo"]);
    expect![[r#"
        Of 400 periods, 99 % took at most 3.08 ms, and the longest 3.19 ms.
        2026-11-21 00:02:52.255263261 to 00:02:52.321931298 (66.668 ms)

        Periods by name
        Name  Intervals   Total     Min  Average      Max  Deviation     99 %
        job         400  194 ms  186 us   486 us  3.19 ms     828 us  3.08 ms  █████████
        left out: 50 %, 90 %, 99.9 %; all 0 or empty: Never ended, Lost inside, Ended
        nothing (--wide)

        The longest periods
        Duration               Begin                 End  Name
         3.19 ms  00:02:52.261964542  00:02:52.265151332  job   ████████████████████████
         3.11 ms  00:02:52.255297979  00:02:52.258410634  job   ███████████████████████▌
         3.10 ms  00:02:52.315294824  00:02:52.318396353  job   ███████████████████████▍
        ... and 397 more rows (--top all)
        0 or empty in these rows: Within that of, Uncertain (--wide)

        More tables: distribution (--table distribution, or --wide for all)
    "#]]
    .assert_eq(&shown(command, 80));
}

/// A narrow terminal shows less, and no line is wider than it is.
#[test]
fn lines_fit() {
    let questions =
        ["count", "count --sizes", "threads", "gaps", "rates", "pairs --start jobs:begin --stop jobs:end --key id"];
    for columns in [20, 26, 32, 40, 80, 120, 200] {
        for question in questions {
            let text = at(columns, &format!("{question} examples/traces/demo"));
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(!text.is_empty() && widest <= usize::from(columns), "{question} at {columns}:\n{text}");
        }
    }
}

/// `--wide` shows the same as a pipe gets, and programs get the same on a terminal as in a pipe.
#[test]
fn wide_is_as_in_a_pipe() {
    for question in ["count", "threads", "rates", "gaps", "pairs --start jobs:begin --stop jobs:end --key id"] {
        let piped_text = piped(&format!("{question} examples/traces/demo"));
        assert_eq!(at(50, &format!("{question} --wide examples/traces/demo")), piped_text, "{question}");
        assert_ne!(at(50, &format!("{question} examples/traces/demo")), piped_text, "{question}");
        let json = format!("{question} --json examples/traces/demo");
        assert_eq!(at(50, &json), piped(&json), "{question}");
    }
    let csv = "threads --csv examples/traces/demo";
    assert_eq!(at(50, csv), piped(csv));
}

#[test]
fn the_environment_says_how_wide_and_how_colorful() {
    let mut narrow = command("threads examples/traces/demo");
    narrow.env("COLUMNS", "40");
    assert_eq!(shown(narrow, 120), at(40, "threads examples/traces/demo"));
    let colored = |change: &dyn Fn(&mut Command), arguments: &str| {
        let mut command = command(&format!("{arguments} examples/traces/demo"));
        change(&mut command);
        shown(command, 80).contains('\x1b')
    };
    let allow = |command: &mut Command| {
        command.env_remove("NO_COLOR");
    };
    let keep = |_: &mut Command| {};
    assert!(colored(&allow, "threads") && !colored(&keep, "threads"));
    assert!(!colored(&allow, "threads --color never") && !colored(&allow, "threads --no-color"));
    assert!(colored(&keep, "threads --color always"));
    assert!(piped("threads --color always examples/traces/demo").contains('\x1b'));
}

#[test]
fn a_trace_without_the_events_says_what_was_looked_for() {
    let text = at(80, "threads --filter id<0 examples/traces/demo");
    assert_eq!(text, "Nothing was found. Looked for: all events within the chosen time and options.\n");
}

/// `kymo info` shows its classes as wide as the terminal.
#[test]
fn the_summary_fits() {
    let text = at(60, "info examples/traces/demo");
    let classes = text.lines().skip_while(|line| !line.contains("busiest")).skip(1).take_while(|line| !line.is_empty());
    let classes: Vec<&str> = classes.map(|line| line.strip_prefix("    ").expect("it is indented")).collect();
    expect![[r#"
        Event        Share
        jobs:chunk   50.0%  ██████████████████████████████
        jobs:begin   16.7%  ██████████
        jobs:end     16.7%  ██████████
        jobs:submit  16.7%  ██████████
    "#]]
    .assert_eq(&format!("{}\n", classes.join("\n")));
}

/// A number of rows means the same on a terminal, in a pipe, and as CSV; courses stay whole.
#[test]
fn top_means_the_same_everywhere() {
    let csv = piped("threads --top 1 --csv --table per-cpu examples/traces/demo");
    assert_eq!(csv.lines().count(), 2, "{csv}");
    assert!(piped("threads --csv --table per-cpu examples/traces/demo").lines().count() > 2);
    // An object is the one of the HTTP API.
    let json: serde_json::Value =
        serde_json::from_str(&piped("threads --top 1 --json examples/traces/demo")).expect("it is JSON");
    let cpus = json["tables"].as_array().and_then(|all| all.iter().find(|table| table["class"] == "per-cpu"));
    let cpus = cpus.expect("there is that table");
    assert!(cpus["rows"].as_array().is_some_and(|rows| rows.len() > 1), "{cpus}");
    let text = piped("threads --top 1 --table per-cpu examples/traces/demo");
    assert!(text.contains("more row"), "{text}");
    let course = |top: &str| piped(&format!("rates --csv --table course {top} examples/traces/demo")).lines().count();
    assert!(course("--top 1") > 3, "{}", course("--top 1"));
}

/// Standard error of a command on a terminal.
fn errors_at(columns: u16, arguments: &str) -> String {
    let (from, to) = terminal(columns);
    let mut command = command(arguments);
    let mut kymo = command.stdout(std::process::Stdio::null()).stderr(to).spawn().expect("the program is there");
    drop(command);
    let mut seen = Vec::new();
    let _ = File::from(from).read_to_end(&mut seen);
    kymo.wait().expect("it ends");
    String::from_utf8(seen).expect("it is text").replace("\r\n", "\n")
}

/// Lines that are wider than the terminal, but for commands to copy.
fn too_wide(text: &str, width: u16) -> Vec<&str> {
    let is_too_wide = |line: &&str| line.chars().count() > usize::from(width) && !line.contains("  kymo ");
    text.lines().filter(is_too_wide).collect()
}

/// Facts and messages end between words; pipes get them as they are.
#[test]
fn facts_and_messages_fit() {
    for width in [44, 60, 80] {
        let info = at(width, "info examples/traces/demo");
        assert_eq!(too_wide(&info, width), [""; 0], "{info}");
        let missing = errors_at(width, "cpu examples/traces/demo");
        assert_eq!(too_wide(&missing, width), [""; 0], "{missing}");
        let late = errors_at(width, "threads --begin 23:00 examples/traces/demo");
        let message: String =
            late.lines().take_while(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
        assert_eq!(too_wide(&message, width), [""; 0], "{message}");
    }
    let info = at(60, "info examples/traces/demo");
    let span =
        "  span      66.668 ms  from 2026-11-21T00:02:52.255263261Z\n            to 2026-11-21T00:02:52.321931298Z\n";
    assert!(info.contains(span), "{info}");
    assert!(piped("info examples/traces/demo").contains("ms  from 2026-11-21T00:02:52.255263261Z to 2026-11-21T00"));
}
