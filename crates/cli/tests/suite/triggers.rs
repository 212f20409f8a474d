//! Triggers: events start and stop sessions, in the program and at that event.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::recorded::{Place, Program, until, words};
use crate::resumed::kill_recorder;

/// Values of an event in a trace.
fn values(place: &Place, trace: &str) -> Vec<u64> {
    place.says(&["check", trace], 0);
    place.values(&place.path(trace), "test:count")
}

fn range(ranges: &[(u64, u64)]) -> Vec<u64> {
    ranges.iter().flat_map(|(first, last)| *first..=*last).collect()
}

/// Begins a session of programs that starts with one value and stops with another one.
fn begin(place: &Place, name: &str, pids: &[&str], more: &[&str]) {
    let mut words = vec!["record", "--detach", "--name", name, "--output", name];
    pids.iter().for_each(|pid| words.extend(["--process", pid]));
    place.says(&[&words[..], more].concat(), 0);
}

fn status(place: &Place, session: &str) -> Value {
    place.json(&["trigger", "--session", session, "--json"])[0].clone()
}

/// Waits until the recorder has heard that a trigger has fired so often.
fn waits_for_firings(place: &Place, session: &str, trigger: usize, firings: u64) {
    until(|| status(place, session)["triggers"][trigger]["firings"] == firings);
}

const START: &str = "start on test:count when value == 100";
const STOP: &str = "stop on test:count when value == 200";

/// A stop at the 50th match since the start, and so on when they repeat: those events are recorded, and no others.
#[test]
fn a_trigger_counts_its_matches() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    begin(&place, "once", &[&pid], &["--trigger", START, "--trigger", "stop on test:count after 50"]);
    let start = "start on test:count repeat when value % 100 == 10";
    let stop = "stop on test:count after 20 repeat when value % 2 == 0";
    begin(&place, "often", &[&pid], &["--trigger", start, "--trigger", stop]);
    program.tell("offer 140");
    until(|| status(&place, "often")["triggers"][1]["firings"] == 1);
    assert_eq!(status(&place, "once")["triggers"][1]["counted"], 40);
    let told = place.says(&["trigger", "--session", "once"], 0);
    assert!(told.contains("stop on test:count, after 50 events\n") && told.contains("armed; 40 counted"), "{told}");
    program.tell("offer 260");
    waits_for_firings(&place, "often", 1, 4);
    waits_for_firings(&place, "once", 1, 1);
    ["once", "often"].iter().for_each(|name| _ = place.says(&["stop", name], 0));
    assert_eq!(values(&place, "once"), range(&[(100, 149)]));
    assert_eq!(values(&place, "often"), range(&[(10, 48), (110, 148), (210, 248), (310, 348)]));
}

/// The program may fire a trigger once more, before it hears that the recorder has found the firing in its first events: that
/// counts for nothing.
#[test]
fn a_stop_of_the_first_instant_is_the_last_event() {
    for round in 0..5 {
        let place = Place::new();
        let words = words();
        let mut command = place.kymo(&["record", "--output", "trace", "--trigger", "stop on test:count", "--"]);
        let mut program = Program::of(command.args(&words).stderr(Stdio::piped()));
        (0..300).for_each(|_| program.tell("offer 3"));
        program.say("exit 0");
        assert_eq!(program.end().status.code(), Some(0));
        assert_eq!(values(&place, "trace"), [0], "round {round}");
    }
}

/// Matches count that the program has recorded before it could judge them.
#[test]
fn the_recorder_counts_the_first_matches() {
    for word in ["offer", "count"] {
        let place = Place::new();
        let words = words();
        let mut command =
            place.kymo(&["record", "--output", "trace", "--trigger", "stop on test:count after 700", "--"]);
        let mut program = Program::of(command.args(&words).stderr(Stdio::piped()));
        (0..100).for_each(|_| program.tell(&format!("{word} 10")));
        program.say("exit 0");
        assert_eq!(program.end().status.code(), Some(0));
        assert_eq!(values(&place, "trace"), range(&[(0, 699)]), "{word}");
    }
}

/// Barrelfish's rules: the start event is recorded and the stop event too; a trigger fires once, until it is armed again.
#[test]
fn the_start_event_is_the_first_and_the_stop_event_the_last() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    begin(&place, "part", &[&pid], &["--trigger", START, "--trigger", STOP]);
    // `offer` asks the triggers in the program, `count` leaves them to the recorder.
    for (word, round) in [("offer", 1), ("count", 2)] {
        program.tell("from 0");
        program.tell(&format!("{word} 1000"));
        waits_for_firings(&place, "part", 1, round);
        program.tell("from 0");
        program.tell(&format!("{word} 1000"));
        place.says(&["trigger", "--arm", "--session", "part"], 0);
    }
    let told = status(&place, "part");
    assert_eq!((&told["is_on"], &told["triggers"][0]["last"]["event"]), (&false.into(), &"test:count".into()));
    assert_eq!((&told["triggers"][0]["programs"], &told["triggers"][0]["is_armed"]), (&1.into(), &true.into()));
    place.says(&["stop", "part"], 0);
    assert_eq!(values(&place, "part"), range(&[(100, 200), (100, 200)]));
}

/// Events of the first instant count, which a program has recorded before a recorder knew it.
#[test]
fn a_program_that_is_started_is_watched_from_its_first_event_on() {
    for word in ["offer", "count"] {
        let place = Place::new();
        let words = words();
        let mut command =
            place.kymo(&["record", "--output", "trace", "--trigger", "start on test:count when value == 3"]);
        let command = command.args(["--trigger", "stop on test:count when value == 7", "--"]).args(&words);
        let mut program = Program::of(command.stderr(Stdio::piped()));
        program.tell(&format!("{word} 10"));
        program.say("exit 0");
        assert_eq!(program.end().status.code(), Some(0));
        assert_eq!(values(&place, "trace"), range(&[(3, 7)]), "{word}");
    }
}

/// A session that stops leaves another one as it is, whichever of them began first.
#[test]
fn sessions_beside_each_other_stop_alone() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    begin(&place, "first", &[&pid], &["--event", "test:*", "--filter", "value % 2 == 0", "--trigger", STOP]);
    begin(&place, "all", &[&pid], &[]);
    begin(&place, "part", &[&pid], &["--trigger", START, "--trigger", "stop on test:count when value == 150"]);
    program.tell("offer 300");
    waits_for_firings(&place, "first", 0, 1);
    program.tell("offer 300");
    ["part", "all", "first"].iter().for_each(|name| _ = place.says(&["stop", name], 0));
    assert_eq!(values(&place, "all"), range(&[(0, 599)]));
    assert_eq!(values(&place, "part"), range(&[(100, 150)]));
    assert_eq!(values(&place, "first"), (0..=200).step_by(2).collect::<Vec<_>>());
}

/// A trigger acts on all programs of its session, or on its own alone.
#[test]
fn other_programs_follow_through_the_recorder() {
    for (scope, follows) in [("session", true), ("program", false)] {
        let place = Place::new();
        let (mut one, mut other) = (place.program(), place.program());
        let pids = [one.pid.to_string(), other.pid.to_string()];
        begin(&place, "both", &[&pids[0], &pids[1]], &[]);
        let words = ["trigger", "test:count", "--when", "value == 50", "--do", "stop", "--scope", scope];
        let told = place.says(&[&words[..], &["--process", &pids[0]]].concat(), 0);
        assert!(told.contains("armed"), "{told}");
        other.tell("from 1000");
        other.tell("offer 10");
        one.tell("offer 100");
        // Also without a word of the recorder in between: it cuts by time.
        other.tell("offer 10");
        waits_for_firings(&place, "both", 0, 1);
        other.tell("offer 10");
        place.says(&["trigger", "--start"], 0);
        other.tell("from 2000");
        other.tell("offer 1");
        place.says(&["stop", "both"], 0);
        let mut found = values(&place, "both");
        found.sort_unstable();
        let others = if follows { (1000, 1009) } else { (1000, 1029) };
        assert_eq!(found, range(&[(0, 50), others, (2000, 2000)]), "{scope}");
    }
}

#[test]
fn triggers_repeat_but_not_too_often() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let start = "start on test:count repeat when value % 100 == 10";
    begin(
        &place,
        "part",
        &[&pid],
        &["--trigger", start, "--trigger", "stop on test:count repeat when value % 100 == 20"],
    );
    program.tell("offer 1000");
    waits_for_firings(&place, "part", 1, 10);
    place.says(&["stop", "part"], 0);
    let expected: Vec<(u64, u64)> = (0..10).map(|hundred| (100 * hundred + 10, 100 * hundred + 20)).collect();
    assert_eq!(values(&place, "part"), range(&expected));

    let rare = "start on test:count repeat every 1h when value % 100 == 10";
    begin(
        &place,
        "rare",
        &[&pid],
        &["--trigger", rare, "--trigger", "stop on test:count repeat when value % 100 == 20"],
    );
    program.tell("from 0");
    program.tell("offer 1000");
    waits_for_firings(&place, "rare", 1, 1);
    let told = status(&place, "rare");
    assert_eq!((&told["triggers"][0]["firings"], &told["triggers"][0]["suppressed"]), (&1.into(), &9.into()));
    place.says(&["stop", "rare"], 0);
    assert_eq!(values(&place, "rare"), range(&[(10, 20)]));
}

#[test]
fn a_start_may_say_for_how_long() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    begin(&place, "part", &[&pid], &["--trigger", "start on test:count for 200ms when value == 10"]);
    program.tell("offer 20");
    program.tell("offer 20");
    until(|| status(&place, "part")["is_on"] == true);
    until(|| status(&place, "part")["is_on"] == false);
    program.tell("offer 20");
    place.says(&["stop", "part"], 0);
    let found = values(&place, "part");
    // A machine that is very busy may need 200 ms for the first of them.
    assert!(found.starts_with(&[10, 11]) && found.iter().all(|value| *value < 40), "{found:?}");
}

/// A flight recorder writes what it holds, with the event as the last one, and goes on.
#[test]
fn an_event_takes_a_snapshot() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let trigger = "snapshot on test:count repeat when value % 100 == 50";
    begin(&place, "flight", &[&pid], &["--mode", "overwrite", "--trigger", trigger]);
    program.tell("offer 80");
    until(|| place.path("flight/snapshot-1/metadata").exists() && status(&place, "flight")["is_on"] == true);
    program.tell("offer 80");
    until(|| place.path("flight/snapshot-2/metadata").exists() && status(&place, "flight")["is_on"] == true);
    place.says(&["stop", "flight"], 0);
    assert_eq!(values(&place, "flight/snapshot-1"), range(&[(0, 50)]));
    let firings = |trace| events(&place, trace, "kymo:trigger").len();
    assert_eq!((firings("flight/snapshot-1"), firings("flight/snapshot-2")), (1, 2));
    // Between the event and the snapshot, nothing is recorded.
    let second = values(&place, "flight/snapshot-2");
    assert!(second.starts_with(&range(&[(0, 50)])) && second.ends_with(&range(&[(80, 150)])), "{second:?}");
    let told = place.says(&["record", "--trigger", "snapshot on a:b", "--", "true"], 2);
    assert!(told.contains("--mode overwrite"), "{told}");
}

/// The program acts while its recorder is dead; the next one knows when.
#[test]
fn programs_act_without_a_recorder() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    begin(&place, "part", &[&pid], &["--trigger", START, "--trigger", STOP]);
    begin(&place, "all", &[&pid], &[]);
    program.tell("on");
    assert!(kill_recorder(&place));
    program.tell("offer 1000");
    waits_for_firings(&place, "part", 1, 1);
    program.tell("offer 100");
    ["part", "all"].iter().for_each(|name| _ = place.says(&["stop", name], 0));
    assert_eq!(values(&place, "part"), range(&[(100, 200)]));
    assert_eq!(values(&place, "all"), range(&[(0, 1099)]));
}

/// A program that aborts, or is killed, right after the event.
#[test]
fn the_last_events_of_the_dead_are_cut_too() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    begin(&place, "part", &[&pid], &["--trigger", START, "--trigger", STOP]);
    program.tell("offer 1000");
    program.child.kill().expect("it runs");
    place.says(&["stop", "part"], 0);
    assert_eq!(values(&place, "part"), range(&[(100, 200)]));
}

/// What a flight recorder keeps of a program that is gone is cut by the firings of that program.
#[test]
fn events_of_the_dead_in_a_flight_recorder_are_cut() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let stop = "stop on test:count in program when value == 50";
    begin(&place, "flight", &[&pid], &["--mode", "overwrite", "--trigger", stop]);
    // This session drains the program: the flight recorder keeps the events itself.
    begin(&place, "all", &[&pid], &[]);
    program.tell("offer 100");
    waits_for_firings(&place, "flight", 0, 1);
    program.child.kill().expect("it runs");
    program.child.wait().expect("it is a child");
    let programs = || place.json(&["status", "--json"])["programs"].as_array().expect("they are listed").clone();
    until(|| programs().iter().all(|known| known["pid"] != program.pid));
    place.says(&["snapshot", "flight", "--output", "held"], 0);
    place.says(&["stop", "all"], 0);
    assert_eq!(values(&place, "all"), range(&[(0, 99)]));
    assert_eq!(values(&place, "held"), range(&[(0, 50)]));
}

/// A program that was built before there were triggers is recorded as before; the recorder watches its events.
#[test]
fn an_old_program_is_recorded_and_watched() {
    if !cfg!(target_arch = "x86_64") {
        return eprintln!("NOT TESTED: the old program is one for x86-64");
    }
    let place = Place::new();
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/old/program-x86_64.gz");
    let unpacked = Command::new("gzip").arg("-dc").arg(packed).output().expect("it starts");
    let path = place.path("old-program");
    std::fs::write(&path, unpacked.stdout).expect("there is room");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("it is ours");
    begin(&place, "part", &["old-program"], &["--trigger", START, "--trigger", STOP]);
    begin(&place, "all", &["old-program"], &[]);
    let mut program = place.command(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = [0; 5];
    program.stdout.as_mut().expect("it is piped").read_exact(&mut said).expect("it says that it is done");
    waits_for_firings(&place, "part", 1, 1);
    let told = status(&place, "part");
    assert_eq!((&told["triggers"][0]["programs"], &told["triggers"][0]["watched"]), (&0.into(), &1.into()));
    assert!(told["triggers"][0]["why"][0].as_str().is_some_and(|why| why.contains("older than triggers")), "{told}");
    assert_eq!(told["triggers"][1]["last"]["is_late"], true);
    ["part", "all"].iter().for_each(|name| _ = place.says(&["stop", name], 0));
    let _ = program.kill();
    program.wait().expect("it ends");
    assert_eq!(values(&place, "part"), range(&[(100, 200)]));
    assert_eq!(values(&place, "all"), range(&[(0, 999)]));
}

/// Lines of a command's output are events like others.
#[test]
fn a_line_of_output_stops_a_session() {
    let place = Place::new();
    let words =
        ["record", "--capture-output", "--output", "trace", "--trigger", "stop on output:stdout when line == \"two*\""];
    let output =
        place.kymo(&words).args(["--", "sh", "-c", "echo one; echo two and; echo three"]).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let lines = place.says(&["print", "--event", "output:*", "trace"], 0);
    assert!(lines.contains("\"one\"") && lines.contains("\"two and\"") && !lines.contains("three"), "{lines}");
}

#[test]
fn triggers_are_added_changed_and_removed() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    begin(&place, "part", &[&pid], &[]);
    let told = place.says(&["trigger", "test:nothing", "--do", "stop"], 1);
    assert!(told.contains("armed") && told.contains("test:nothing"), "{told}");
    place.says(&["trigger", "test:count", "--when", "vlaue == 5", "--do", "stop"], 2);
    place.says(&["trigger", "test:count", "--do", "snapshot"], 2);
    place.says(&["trigger", "test:count", "--do", "stop", "--for", "5s"], 2);
    place.says(&["trigger", "test:count", "--do", "stop", "--every", "5s"], 2);
    place.says(&["trigger", "--remove", "start"], 2);
    let told = place.says(&["trigger", "stop on test:count when vlaue == 5"], 2);
    assert!(told.contains("did you mean `value`?") || told.contains("there is `value`"), "{told}");
    // The shell may have cut the words.
    for words in [&["stop on test:count for 5s"][..], &["stop", "on", "test:count", "for", "5s"]] {
        let told = place.says(&[&["trigger"], words].concat(), 2);
        let lines = "for how long\n    stop on test:count for 5s\n                       ^^^\nhelp: ";
        assert!(told.contains(lines), "{told}");
    }
    let told = place.says(
        &["record", "--trigger", "stop on test:count", "--trigger", "start on test:count for 0s", "--", "true"],
        2,
    );
    let lines = "error: --trigger: a time is more than 0\n    start on test:count for 0s\n                            ^^\nhelp: ";
    assert!(told.contains(lines), "{told}");
    let told = place.says(&["trigger", "test:count"], 2);
    assert!(told.contains("found `test:count`") && told.contains("help: `stop on test:count`"), "{told}");
    place.says(&["trigger", "count", "--do", "stop"], 2);
    let told = place.says(&["trigger", "stop on test:count, test:count when value == 5"], 0);
    assert!(
        told.contains("session part: recording") && told.contains("stop on test:count test:count, if value == 5"),
        "{told}"
    );
    program.tell("offer 10");
    waits_for_firings(&place, "part", 0, 1);
    let told = place.says(&["status"], 0);
    assert!(told.contains("has fired 1 time") && told.contains("not recording"), "{told}");
    place.says(&["trigger", "--disarm"], 0);
    place.says(&["trigger", "--start"], 0);
    program.tell("from 0");
    program.tell("offer 10");
    place.says(&["trigger", "--stop"], 0);
    program.tell("offer 10");
    // Without triggers, a session records.
    let told = place.says(&["trigger", "--remove", "stop"], 0);
    assert!(told.contains("session part: recording, without triggers"), "{told}");
    program.tell("offer 10");
    place.says(&["stop", "part"], 0);
    assert_eq!(values(&place, "part"), range(&[(0, 5), (0, 9), (20, 29)]));
}

/// Events of a trace as JSON.
fn events(place: &Place, trace: &str, event: &str) -> Vec<Value> {
    let text = place.says(&["print", "--format", "json", "--event", event, trace], 0);
    text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

/// The summary tells of each trigger whether it has fired, when, and what it could not match; the trace tells each firing.
#[test]
fn summaries_and_traces_tell_of_firings() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let typo = "typo: stop on test:cuont";
    begin(&place, "part", &[&pid], &["--trigger", START, "--trigger", STOP, "--trigger", typo]);
    program.tell("offer 1000");
    waits_for_firings(&place, "part", 1, 1);
    // Another recorder goes on: the firings in the trace are no events of the program.
    until(|| events(&place, "part", "kymo:trigger").len() == 2);
    // The next one knows the times from this file.
    let saved = || std::fs::read_to_string(place.path("kymo/part.session")).unwrap_or_default();
    until(|| saved().matches("\"is_exact\":true").count() == 2);
    assert!(kill_recorder(&place));
    let text = place.says(&["stop", "part"], 0);
    let found = format!("test:count of {}", program_name(&place, "part"));
    let typo = "typo: stop on test:cuont\n            has not fired\n            no event of the session's programs is called \
                `test:cuont`; did you mean `test:count`?\n";
    assert!(text.contains(typo), "{text}");
    assert_eq!(text.matches("            has fired 1 time\n            last at ").count(), 2, "{text}");
    assert_eq!(text.matches(&found).count(), 2, "{text}");
    let summary = place.json(&["stop", "part", "--json"])[0].clone();
    assert_eq!(summary["events"], 101);
    let (fired, counted) = (events(&place, "part", "kymo:trigger"), events(&place, "part", "test:count"));
    for (at, (name, event)) in [("start", counted.first()), ("stop", counted.last())].into_iter().enumerate() {
        let (told, firing) = (&summary["triggers"][at], &fired[at]["payload"]);
        let last = &told["last"];
        assert_eq!((&told["firings"], &last["is_exact"]), (&1.into(), &true.into()), "{told}");
        assert_eq!(Some(&last["ns"]), event.map(|event| &event["time"]), "the time of the event, to the nanosecond");
        let expected = [name.into(), "test:count".into(), last["pid"].clone(), last["tid"].clone(), 0.into()];
        assert_eq!(["trigger", "event", "pid", "vtid", "watched"].map(|field| firing[field].clone()), expected);
        assert_eq!(firing["effect"]["labels"][0], name);
        assert!(fired[at]["time"].as_u64() <= last["ns"].as_u64(), "{firing}");
    }
    assert_eq!(summary["triggers"][2]["unmatched"], serde_json::json!([["test:cuont", ["test:count"]]]));
}

/// The name of the program of a trace, as its firings tell it.
fn program_name(place: &Place, trace: &str) -> String {
    events(place, trace, "kymo:trigger")[0]["payload"]["name"].as_str().expect("it is text").to_owned()
}

/// An expression that is true of no event is refused where the events are known; else the summary tells it.
#[test]
fn expressions_that_cannot_be_true_are_told() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let record = |words: &[&str], status| {
        let all = ["record", "--detach", "--name", "part", "--output", "part", "--process", &pid];
        place.says(&[&all[..], words].concat(), status)
    };
    let told = record(&["--trigger", "stop on test:count when quantity == 1"], 2);
    let why = "test:count: there is no `quantity`\n    quantity == 1\n    ^^^^^^^^\n";
    assert!(told.contains(&format!("error: trigger `stop`: {why}")), "{told}");
    let told = record(&["--trigger", "stop on test:count when value == \"many\""], 2);
    assert!(told.contains("`value` is a number") || told.contains("cannot be compared"), "{told}");
    // Another event that matches the pattern may have it.
    let wide = "a: stop on test:* when quantity == 1";
    let unit = "c: stop on test:count when value > 1ms";
    let told = record(&["--trigger", wide, "--trigger", "b: stop on tset:count", "--trigger", unit], 0);
    assert!(told.contains("note: trigger `c`: `value` has no unit"), "{told}");
    assert!(told.contains("note: trigger `a`: its expression is never true: "), "{told}");
    assert!(told.contains("note: trigger `b`: no event of the session's programs is called `tset:count`"), "{told}");
    let told = place.says(&["trigger", "test:count", "--when", "quantity == 1", "--do", "stop"], 2);
    assert!(told.contains(why), "{told}");
    program.tell("offer 10");
    let told = place.says(&["stop", "part"], 0);
    let indented = "there is no `quantity`\n                quantity == 1\n                ^^^^^^^^\n";
    assert!(told.contains("its expression is never true: test:") && told.contains(indented), "{told}");
    assert!(told.contains("            `value` has no unit"), "{told}");
    drop(program);

    // The programs come later.
    let words = words();
    let trigger = "stop on test:count when value == \"many\"";
    let mut command = place.kymo(&["record", "--output", "later", "--trigger", trigger, "--"]);
    let mut program = Program::of(command.args(&words).stderr(Stdio::piped()));
    program.tell("offer 10");
    program.say("exit 0");
    let told = String::from_utf8(program.end().stderr).expect("it is text");
    assert!(told.contains("has not fired\n            its expression is never true: test:count: "), "{told}");
}

/// A session that records nothing says how it goes on, and a trigger that starts one says that it has stopped it.
#[test]
fn a_stopped_session_says_how_it_goes_on() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    begin(&place, "part", &[&pid], &["--trigger", "stop on test:count when value == 5"]);
    program.tell("offer 10");
    waits_for_firings(&place, "part", 0, 1);
    let state = || place.says(&["trigger"], 0).lines().next().unwrap_or_default().to_owned();
    let word = "session part: not recording: ";
    assert_eq!(state(), format!("{word}no trigger starts it, `kymo trigger --start` does"));
    place.says(&["trigger", "--start"], 0);
    assert_eq!(state(), "session part: recording");
    let told = place.says(&["trigger", "start on test:count when value == 15"], 0);
    assert!(told.contains("note: the session has stopped recording: it waits for this trigger"), "{told}");
    let told = place.says(&["trigger", "other: start on test:nothing"], 1);
    assert!(!told.contains("has stopped recording"), "it had before: {told}");
    assert!(state().contains("it waits for one of the triggers `start`, `other`; "), "{}", state());
    place.says(&["trigger", "--disarm", "other"], 0);
    let waits = "it waits for trigger `start`; `kymo trigger --start` starts it now";
    assert_eq!(state(), format!("{word}{waits}"));
    let told = place.says(&["status"], 0);
    assert!(told.contains(&format!("  state     not recording: {waits}\n")), "{told}");
    place.says(&["trigger", "--disarm"], 0);
    assert!(state().contains("no trigger that starts it is armed: `kymo trigger --arm` arms them"), "{}", state());
    place.says(&["stop", "part"], 0);
}

/// The event that stops belongs to the session: the next one is the first that the next start counts. In the first instant
/// of a program, the recorder finds these events, and keeps them, too.
#[test]
fn events_that_start_and_stop_are_recorded_and_count_once() {
    let place = Place::new();
    let mut program = place.program();
    let triggers =
        ["--trigger", "start on test:count after 10 repeat", "--trigger", "stop on test:count after 3 repeat"];
    let pid = program.pid.to_string();
    let begin = ["record", "--detach", "--name", "some", "--output", "some", "--process", &pid];
    place.says(&[&begin[..], &triggers].concat(), 0);
    program.tell("offer 50");
    place.says(&["stop", "some"], 0);
    let wanted: Vec<u64> = [9, 21, 33, 45].iter().flat_map(|first| *first..first + 3).collect();
    assert_eq!(place.values(&place.path("some"), "test:count"), wanted);
    // `count` leaves the triggers to the recorder; the session selects others than the events of these.
    let triggers =
        ["--trigger", "start on test:count when value == 60", "--trigger", "stop on test:count when value == 70"];
    let begin =
        ["record", "--detach", "--name", "late", "--output", "late", "--process", &pid, "--event", "test:other"];
    place.says(&[&begin[..], &triggers].concat(), 0);
    program.tell("count 25");
    place.says(&["stop", "late"], 0);
    assert_eq!(place.values(&place.path("late"), "test:count"), [60, 70]);
}
