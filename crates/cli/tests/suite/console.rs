//! `kymo record --to`: events go to standard output or to a folder, and `--flush-every` says how often.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::recorded::{Place, Program, until};

/// A session whose standard output is read while it runs.
struct Printing {
    child: Child,
    said: Arc<Mutex<String>>,
    reads: JoinHandle<()>,
}

impl Printing {
    /// Begins a session that records a program.
    fn begin(place: &Place, program: &mut Program, options: &[&str]) -> Self {
        let mut child = recording(place, program, options).spawn().expect("it starts");
        let mut from = BufReader::new(child.stdout.take().expect("it is piped"));
        let said = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&said);
        let reads = std::thread::spawn(move || {
            let mut line = String::new();
            while from.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                into.lock().unwrap_or_else(PoisonError::into_inner).push_str(&std::mem::take(&mut line));
            }
        });
        program.tell("on");
        Self { child, said, reads }
    }

    fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it as Ctrl-C does.
    fn end(self) -> Output {
        interrupt(&self.child);
        let mut output = self.child.wait_with_output().expect("it ends");
        self.reads.join().expect("it reads");
        output.stdout = self.said.lock().expect("nothing has failed").clone().into_bytes();
        output
    }
}

/// A session of a program, with a folder of its own for temporary files.
fn recording(place: &Place, program: &Program, options: &[&str]) -> Command {
    let pid = program.pid.to_string();
    let mut command = place.kymo(&[&["record", "--name", "s", "--process", &pid], options].concat());
    command.env("TMPDIR", temporary(place)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn temporary(place: &Place) -> std::path::PathBuf {
    let folder = place.path("tmp");
    std::fs::create_dir_all(&folder).expect("there is room");
    folder
}

/// Temporary files of sessions.
fn left(place: &Place) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(place.path("tmp"))
        .expect("it is there")
        .map(|entry| entry.expect("it is read").file_name())
        .collect()
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(child.id() as i32).expect("it is a number");
    rustix::process::kill_process(pid, Signal::INT).expect("it runs");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Values of the events `test:count`, as they are printed.
fn values(text: &str) -> Vec<u64> {
    let counts = text.lines().filter(|line| line.contains(" test:count: "));
    let value = |line: &str| line.split_once("value = ")?.1.strip_suffix(" }")?.parse().ok();
    counts.map(|line| value(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

/// Lines without their times: these move when the recorder knows its clock better, at the end.
fn untimed(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split_once(") ").unwrap_or_else(|| panic!("{line}")).1).collect()
}

fn all(count: u64) -> Vec<u64> {
    (0..count).collect()
}

#[test]
fn the_console_has_what_print_prints() {
    let place = Place::new();
    let mut program = place.program();
    let session = Printing::begin(&place, &mut program, &["--to", "console", "--output", "trace"]);
    program.tell("count 100");
    until(|| values(&session.said()) == all(100));
    program.tell("count 50");
    let output = session.end();
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && told.contains("recorded 150 events of 1 program"), "{told}");
    assert!(told.contains("/trace\n") && told.contains("Next:"), "{told}");
    assert_eq!(values(&said), all(150));
    assert_eq!(untimed(&said), untimed(&place.says(&["print", "trace"], 0)));
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}

#[test]
fn without_a_folder_no_trace_is_left() {
    let place = Place::new();
    let mut program = place.program();
    let session = Printing::begin(&place, &mut program, &["--to", "console", "--json", "--flush-every", "10ms"]);
    program.tell("count 100");
    let output = session.end();
    let said = text(&output.stdout);
    let events = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("each event is an object"));
    let counts = events.filter(|event| event["event"] == "test:count").map(|event| event["payload"]["value"].as_u64());
    assert_eq!(counts.collect::<Option<Vec<_>>>(), Some(all(100)));
    let summary: Value = serde_json::from_slice(&output.stderr).expect("standard error has the summary");
    assert_eq!((&summary["events"], &summary["unprinted"]), (&100.into(), &0.into()), "{summary}");
    assert!(output.status.success() && summary["output"].is_null(), "{summary}");
    assert!(left(&place).is_empty() && !place.path("kymo-traces").exists(), "{:?}", left(&place));
}

#[test]
fn events_go_to_the_console_where_no_folder_can_be() {
    let place = Place::new();
    std::fs::write(place.path("file"), "no folder").expect("there is room");
    std::fs::create_dir_all(place.path("full/other")).expect("there is room");
    let mut program = place.program();
    for (folder, why) in [("file", "that is a file"), ("file/trace", "Not a directory"), ("full", "there is something")]
    {
        program.tell("from 0");
        let session = Printing::begin(&place, &mut program, &["--to", "auto", "--output", folder]);
        program.tell("count 10");
        let output = session.end();
        let told = text(&output.stderr);
        assert!(output.status.success() && told.contains("note: events go to standard output, as "), "{told}");
        assert!(told.contains(why) && !told.contains("  trace "), "{told}");
        assert_eq!(values(&text(&output.stdout)), all(10));
        program.tell("off");
    }
    program.tell("from 0");
    let session = Printing::begin(&place, &mut program, &["--to", "auto", "--output", "new/trace"]);
    program.tell("count 10");
    let output = session.end();
    assert!(output.status.success() && output.stdout.is_empty(), "{}", text(&output.stderr));
    assert_eq!(place.values(&place.path("new/trace"), "test:count"), all(10));
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}

#[test]
fn a_flight_recorder_prints_each_event_once() {
    let place = Place::new();
    let mut program = place.program();
    let options = ["--to", "console", "--mode", "overwrite", "--flush-every", "100ms"];
    let session = Printing::begin(&place, &mut program, &options);
    for count in [100, 150, 151] {
        program.tell(&format!("count {}", count - values(&session.said()).len() as u64));
        until(|| values(&session.said()) == all(count));
    }
    program.tell("count 49");
    let output = session.end();
    assert_eq!(values(&text(&output.stdout)), all(200));
    let told = text(&output.stderr);
    assert!(output.status.success() && told.contains("recorded 200 events of 1 program"), "{told}");
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}

/// Without a period, it prints when it is asked, and at the end.
#[test]
fn a_flight_recorder_prints_snapshots() {
    let place = Place::new();
    let mut program = place.program();
    let session = Printing::begin(&place, &mut program, &["--to", "console", "--mode", "overwrite"]);
    program.tell("count 10");
    place.says(&["snapshot", "s"], 0);
    until(|| values(&session.said()) == all(10));
    program.tell("count 10");
    let output = session.end();
    assert_eq!(values(&text(&output.stdout)), all(20));
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}

#[test]
fn snapshots_are_written_again_and_again() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let fixed = ["record", "--detach", "--name", "s", "--process", &pid, "--output", "trace"];
    place.says(&[&fixed[..], &["--mode", "overwrite", "--flush-every", "100ms"]].concat(), 0);
    program.tell("on");
    let trace = place.path("trace");
    program.tell("count 100");
    until(|| trace.join("snapshot-1").exists() && place.values(&trace, "test:count") == all(100));
    program.tell("count 50");
    until(|| place.values(&trace, "test:count") == all(150));
    // What is asked for is not written again.
    program.tell("count 10");
    place.says(&["snapshot", "s", "--output", "asked"], 0);
    program.tell("count 10");
    let said = place.says(&["stop", "s"], 0);
    assert!(said.contains("recorded 170 events of 1 program"), "{said}");
    let asked = place.values(&place.path("asked"), "test:count");
    let mut written = [place.values(&trace, "test:count"), asked].concat();
    written.sort_unstable();
    assert_eq!(written, all(170));
    assert!(!trace.join(".flush").exists());
    place.says(&["check", "trace"], 0);
}

/// Snapshots without events are none, and the oldest ones are deleted.
#[test]
fn snapshots_have_events_and_a_size() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let fixed = ["record", "--detach", "--name", "s", "--process", &pid, "--output", "trace"];
    place.says(&[&fixed[..], &["--mode", "overwrite", "--flush-every", "100ms", "--keep", "20KB"]].concat(), 0);
    program.tell("on");
    let names = || {
        let entries = std::fs::read_dir(place.path("trace")).expect("it is there").flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort_unstable();
        names
    };
    // Events may come while one is written: they are two snapshots then.
    let last = || names().iter().filter_map(|name| name.strip_prefix("snapshot-")?.parse::<u32>().ok()).max();
    let mut before = None;
    for _ in 0..4 {
        program.tell("count 1000");
        until(|| last() > before);
        before = last();
    }
    place.says(&["stop", "s"], 0);
    assert!(names().len() == 1 && last() >= Some(4), "{:?}", names());
}

/// The recorder is late: the program has overwritten events that no snapshot has.
#[test]
fn overwritten_events_are_told() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let fixed = ["record", "--detach", "--name", "s", "--process", &pid, "--output", "trace", "--mode", "overwrite"];
    place.says(&[&fixed[..], &["--flush-every", "100ms", "--pool-size", "64KiB"]].concat(), 0);
    program.tell("on");
    program.tell("count 10");
    until(|| place.path("trace/snapshot-1").exists());
    let summaries = |words: &[&str]| place.json(words);
    let pid = summaries(&["status", "--json"])["pid"].as_u64().and_then(|pid| Pid::from_raw(pid as i32));
    let pid = pid.expect("it runs");
    rustix::process::kill_process(pid, Signal::STOP).expect("it runs");
    program.tell("count 100000");
    rustix::process::kill_process(pid, Signal::CONT).expect("it runs");
    let summary = summaries(&["stop", "s", "--json"])[0].clone();
    let number = |name: &str| summary[name].as_u64().unwrap_or_else(|| panic!("{name} is not in {summary}"));
    let written = place.values(&place.path("trace"), "test:count");
    assert!(number("overwritten") > 10 && number("events") == written.len() as u64, "{summary}");
    assert!(written.starts_with(&all(10)) && written.ends_with(&[100_008, 100_009]), "{}", written.len());
    assert!(written.is_sorted_by(|one, next| one < next), "each event is there once");
}

/// The event of a trigger is kept at any time, but in one snapshot.
#[test]
fn the_event_of_a_trigger_is_printed_once() {
    let place = Place::new();
    let mut program = place.program();
    let trigger = "snapshot on test:count repeat when value % 100 == 50";
    let options = ["--to", "console", "--mode", "overwrite", "--trigger", trigger];
    let session = Printing::begin(&place, &mut program, &options);
    program.tell("offer 51");
    until(|| values(&session.said()) == all(51));
    let is_on = || place.json(&["sessions", "--json"])[0]["is_on"] == true;
    until(is_on);
    program.tell("on");
    program.tell("offer 100");
    until(|| values(&session.said()).last() == Some(&150));
    until(is_on);
    let output = session.end();
    let printed = values(&text(&output.stdout));
    assert!(printed.is_sorted_by(|one, next| one < next) && printed.len() > 100, "{printed:?}");
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}

#[test]
fn a_closed_pipe_ends_the_session() {
    let place = Place::new();
    let mut program = place.program();
    let mut child = recording(&place, &program, &["--to", "console"]).spawn().expect("it starts");
    program.tell("on");
    program.tell("count 10");
    let mut from = BufReader::new(child.stdout.take().expect("it is piped"));
    from.read_line(&mut String::new()).expect("it prints");
    drop(from);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && text(&output.stderr).contains("recorded 10 events"), "{output:?}");
    program.tell("off");
    // A command that prints nothing ends too.
    let mut command = place.kymo(&["record", "--to", "console", "--", "sleep", "1000"]);
    command.env("TMPDIR", temporary(&place)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}

/// A reader that is too slow: the trace is bounded, and deleted events are counted.
#[test]
fn deleted_events_are_told() {
    let place = Place::new();
    let mut program = place.program();
    let options = ["--to", "console", "--json", "--rotate-size", "32KiB", "--keep", "128KiB"];
    let mut child = recording(&place, &program, &options).spawn().expect("it starts");
    program.tell("on");
    // Standard output takes the first ones only.
    program.tell("count 5000");
    let has = |part: &str| {
        let console = std::fs::read_dir(temporary(&place)).expect("it is there").flatten().next();
        console.is_some_and(|console| Path::new(&console.path()).join("trace").join(part).exists())
    };
    until(|| has("000001"));
    until(|| {
        program.tell("count 5000");
        !has("000001")
    });
    interrupt(&child);
    let mut said = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut said).expect("it is text");
    let output = child.wait_with_output().expect("it ends");
    let told = text(&output.stderr);
    let summary = told.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{told}"));
    let summary: Value = serde_json::from_str(summary).expect("it is an object");
    let number = |name: &str| summary[name].as_u64().unwrap_or_else(|| panic!("{name} is not in {summary}"));
    assert!(number("unprinted") > 0 && output.status.code() == Some(1), "{told}");
    assert_eq!(said.lines().count() as u64 + number("unprinted"), number("events") + number("own_events"), "{told}");
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}

#[test]
fn a_command_that_cannot_be_started_leaves_nothing() {
    let place = Place::new();
    let mut command = place.kymo(&["record", "--to", "console", "--", "./nothing"]);
    let output = command.env("TMPDIR", temporary(&place)).output().expect("it starts");
    assert!(output.status.code() == Some(127) && output.stdout.is_empty(), "{output:?}");
    assert!(left(&place).is_empty(), "{:?}", left(&place));
}

#[test]
fn options_without_a_meaning_are_refused() {
    let place = Place::new();
    for (options, why) in [
        (&["--to", "console", "--detach"][..], "`kymo print --follow` prints the trace"),
        (&["--to", "auto", "--detach"], "`kymo print --follow` prints the trace"),
        (&["--flush-every", "1s", "--", "true"], "`--flush-every` is for `--to console` and for `--mode overwrite`"),
        (&["--mode", "overwrite", "--flush-every", "1ms", "--", "true"], "is at least 100ms"),
        (&["--keep", "1MiB", "--to", "console", "--flush-every", "1s", "--", "true"], "--rotate-size"),
    ] {
        let told = place.says(&[&["record"], options].concat(), 2);
        assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(why), "{told}");
    }
}
