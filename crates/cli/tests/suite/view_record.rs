//! `kymo view --record`, and the recorder asked over HTTP: by a page of a session that this command has begun, and of one that somebody
//! else has.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::recorded::{Place, Program, until, words};

/// A viewer that can be asked.
struct Viewer {
    address: String,
    token: String,
}

impl Viewer {
    /// Of what `kymo view` has printed first.
    fn of(line: &str) -> Self {
        let (address, token) = line.trim().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        Self { address: address.to_owned(), token: token.to_owned() }
    }

    /// What is answered, and with which status.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let Self { address, token } = self;
        let length = body.len();
        write!(
            stream,
            "{method} /api/v1/{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
    }

    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    fn change(&self, body: &Value) -> Value {
        let (status, answer) = self.ask("POST", "recording", &body.to_string());
        assert_eq!(status, 200, "{body}: {answer}");
        answer
    }

    fn refused(&self, body: &Value) -> String {
        let (status, answer) = self.ask("POST", "recording", &body.to_string());
        assert_eq!((status, &answer["error"]["code"]), (409, &json!("recording")), "{body}: {answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    }

    /// How the session is.
    fn recording(&self) -> Value {
        let answer = self.get("recording");
        assert_eq!(answer["problem"], Value::Null);
        answer["recording"].clone()
    }

    fn waits_until_open(&self) {
        until(|| self.get("start")["state"] == "open");
    }

    /// States of this name that listeners are told, the first of them being how it is now.
    fn news(&self) -> impl Iterator<Item = Value> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let Self { address, token } = self;
        write!(stream, "GET /api/v1/changes?token={token} HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        std::iter::from_fn(move || {
            lines.find(|line| line == "event: recording")?;
            let data = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned))?;
            Some(serde_json::from_str(&data).unwrap())
        })
    }
}

fn class<'r>(recording: &'r Value, name: &str) -> &'r Value {
    let classes = recording["classes"].as_array().unwrap();
    classes.iter().find(|class| class["name"] == name).unwrap_or_else(|| panic!("{name}: {recording}"))
}

/// A viewer without a program of its own, which ends with its test.
struct Shown(Child);

impl Shown {
    /// What a command of `kymo view` has begun, and where it is.
    fn of(command: &mut Command) -> (Self, Viewer) {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(child), Viewer::of(&line))
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// `kymo view` with these words and this test's program as what it records; and what it says on standard error behind its address.
fn with_command(place: &Place, options: &[&str]) -> (Program, Viewer, BufReader<ChildStderr>) {
    let mut command = place.kymo(&["view", "--record", "--no-browser"]);
    // Not that of a terminal in whose foreground this test may be: its Ctrl-C would have reached the program already.
    command.process_group(0);
    command.args(options).arg("--").args(words()).stderr(Stdio::piped());
    let mut program = Program::of(&mut command);
    let mut said = BufReader::new(program.child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    (program, Viewer::of(&line), said)
}

/// Lines until one begins so.
fn told_until(said: &mut impl BufRead, begin: &str) -> String {
    let mut told = String::new();
    while !told.lines().last().is_some_and(|line| line.starts_with(begin)) {
        assert!(said.read_line(&mut told).unwrap() > 0, "{told}");
    }
    told
}

/// What is told of a session right after its program has begun.
fn is_told_of_the_session(recording: &Value, place: &Place) {
    assert_eq!((&recording["state"], &recording["mode"]), (&json!("recording"), &json!("write")), "{recording}");
    assert_eq!((&recording["programs"], &recording["snapshots"]), (&json!(1), &Value::Null), "{recording}");
    assert!(recording["command"].as_str().unwrap().contains("the_program"), "{recording}");
    assert_eq!(recording["output"], json!(place.path("trace").canonicalize().unwrap()));
    let other = class(recording, "test:other");
    assert_eq!((&other["on"], &other["level"], &other["programs"]), (&json!(true), &json!(14), &json!(1)));
}

/// The limit of a rule.
fn sets_a_limit(place: &Place, viewer: &Viewer, session: &str) {
    place.says(&["limit", "--add", "test:count every 10", "--session", session], 0);
    let changed = viewer.change(&json!({"act": "limit", "rule": "count", "limit": "20"}));
    let rule = &changed["recording"]["rules"][0];
    let found = (&rule["words"], &rule["limit"], &rule["is_set"]);
    assert_eq!(found, (&json!("test:count every 10"), &json!("20"), &json!(true)), "{changed}");
    let refused = viewer.refused(&json!({"act": "limit", "rule": "count", "limit": "soon"}));
    assert!(refused.contains("`soon` is no number of events"), "{refused}");
}

#[test]
fn a_program_is_shown_while_it_is_recorded_and_changed_from_there() {
    let place = Place::new();
    let (mut program, viewer, mut said) = with_command(&place, &["--output", "trace", "--event", "test:*"]);
    let told = told_until(&mut said, "Open the address");
    assert!(told.contains("Ctrl-C is the program's as long as that runs"), "{told}");
    place.waits_for_program();
    program.tell("count 100");
    program.tell("other 5");
    viewer.waits_until_open();
    is_told_of_the_session(&viewer.recording(), &place);

    // Another program that records is none of this session's business, whatever the page asks for.
    let mut stranger = place.program();
    let changed = viewer.change(&json!({"act": "disable", "events": ["test:other"]}));
    assert_eq!(changed["matched"]["sentence"], "1 event of 1 program is not recorded any more", "{changed}");
    assert_eq!(class(&changed["recording"], "test:other")["on"], json!(false));
    program.tell("other 5");
    let changed = viewer.change(&json!({"act": "enable", "events": ["test:otter"], "filter": null}));
    let matched = &changed["matched"];
    assert_eq!((&matched["events"], &matched["all_programs"]), (&json!(0), &json!(1)), "{changed}");
    assert_eq!(matched["unmatched"], json!([{"pattern": "test:otter", "near": ["test:other"]}]));
    assert_eq!(
        matched["warnings"],
        json!(["no event of a program that runs is called `test:otter`; did you mean `test:other`?"])
    );
    viewer.change(&json!({"act": "enable", "events": ["test:*"]}));
    stranger.tell("is 0");
    program.tell("other 5");

    // A filter, which is looked at first.
    let changed = viewer.change(&json!({"act": "filter", "events": ["test:count"], "filter": "value < 150"}));
    let count = class(&changed["recording"], "test:count").clone();
    assert_eq!((&count["on"], &count["filters"]), (&json!(true), &json!(["value < 150"])), "{changed}");
    assert_eq!(count["runs"].as_array().unwrap().len(), 1, "{count}");
    let refused = viewer.refused(&json!({"act": "filter", "events": ["test:count"], "filter": "valeu < 5"}));
    assert!(refused.starts_with("no class of events has `valeu`\n    valeu < 5\n    ^^^^^"), "{refused}");
    program.tell("count 100");
    assert!(viewer.refused(&json!({"act": "snapshot"})).contains("snapshots are of sessions with `--mode overwrite`"));

    sets_a_limit(&place, &viewer, changed["recording"]["session"].as_str().unwrap());

    // The program goes on without being recorded.
    let changed = viewer.change(&json!({"act": "stop"}));
    let ended = changed["recording"].clone();
    assert_eq!(
        (&ended["state"], &ended["events"], &ended["classes"]),
        (&json!("ended"), &json!(160), &json!([])),
        "{ended}"
    );
    program.tell("off");
    program.tell("count 10");
    assert_eq!(viewer.recording(), ended);
    assert!(
        viewer.refused(&json!({"act": "enable", "events": ["*"]})).contains("no recorder of this user writes these")
    );
    program.say("exit 3");
    let told = told_until(&mut said, "The view goes on; Ctrl-C ends it.");
    assert!(told.contains("recorded 160 events of 1 program") && told.contains("losses    none"), "{told}");

    // The page goes on, and the status is the program's.
    until(|| viewer.get("events/count?event=test:*") == json!({"events": 160, "exact": true}));
    interrupt(&program.child);
    assert_eq!(program.end().status.code(), Some(3));
    let counts = place.json(&["count", "--event", "test:*", "--json", "trace"]);
    assert_eq!(counts["events"], json!(160), "{counts}");
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..150).collect::<Vec<_>>());
    assert_eq!(place.values(&place.path("trace"), "test:other"), [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]);
}

/// While the program runs, Ctrl-C is its own; what asks for the end of the process ends the view with it.
#[test]
fn signals_are_the_programs_first() {
    let place = Place::new();
    let (mut program, viewer, mut said) = with_command(&place, &["--output", "trace"]);
    program.tell("count 3");
    assert_eq!(viewer.recording()["state"], "recording");
    interrupt(&program.child);
    // It is passed on, as there is no terminal here, and ends the program.
    told_until(&mut said, "The view goes on; Ctrl-C ends it.");
    assert_eq!(viewer.recording()["state"], "ended");
    interrupt(&program.child);
    assert_eq!(program.end().status.code(), Some(128 + 2));
    assert_eq!(place.values(&place.path("trace"), "test:count"), [0, 1, 2]);

    let (mut program, _, _said) = with_command(&place, &["--output", "trace-2"]);
    program.tell("count 3");
    kill_process(Pid::from_child(&program.child), Signal::TERM).unwrap();
    // The program is still told things then: nothing but the signal ends it.
    assert_eq!(program.child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(place.values(&place.path("trace-2"), "test:count"), [0, 1, 2]);
}

/// Without a command, what runs is recorded until Ctrl-C, and another one ends the view.
#[test]
fn what_runs_already_is_recorded_and_shown() {
    let place = Place::new();
    let mut program = place.program();
    let number = program.pid.to_string();
    let mut command = place.kymo(&["view", "--record", "--no-browser", "--output", "trace", "--process", &number]);
    let (mut shown, viewer) = Shown::of(&mut command);
    place.waits_for_program();
    program.tell("count 7");
    until(|| viewer.recording()["events"] == 7);
    let mut said = BufReader::new(shown.0.stderr.take().unwrap());
    interrupt(&shown.0);
    let told = told_until(&mut said, "The view goes on; Ctrl-C ends it.");
    assert!(told.contains("Ctrl-C ends the recording, and another one the view."), "{told}");
    assert!(told.contains("recorded 7 events of 1 program"), "{told}");
    until(|| viewer.recording()["state"] == "ended");
    interrupt(&shown.0);
    assert_eq!(shown.0.wait().unwrap().code(), Some(0));
}

/// A flight recorder has nothing to show before a snapshot, which the page takes.
#[test]
fn a_flight_recorder_is_shown_from_its_first_snapshot_on() {
    let place = Place::new();
    let options = ["--output", "trace", "--mode", "overwrite"];
    let (mut program, viewer, mut said) = with_command(&place, &options);
    place.waits_for_program();
    program.tell("count 5");
    assert_eq!(viewer.get("start")["state"], "waiting");
    let recording = viewer.recording();
    assert_eq!((&recording["mode"], &recording["snapshots"]), (&json!("overwrite"), &json!(0)), "{recording}");
    let taken = viewer.change(&json!({"act": "snapshot"}));
    assert_eq!((&taken["snapshot"]["events"], &taken["snapshot"]["problems"]), (&json!(5), &json!([])), "{taken}");
    assert_eq!(taken["snapshot"]["output"], json!(place.path("trace/snapshot-1").canonicalize().unwrap()));
    assert_eq!(taken["recording"]["snapshots"], json!(1));
    viewer.waits_until_open();
    assert!(viewer.get("info").to_string().contains("test:count"));
    program.tell("count 5");
    program.say("exit 0");
    // What was left when it ended stands beside the snapshot before.
    let told = told_until(&mut said, "The view goes on; Ctrl-C ends it.");
    assert!(told.contains("recorded 10 events") && told.contains("trace/snapshot-2"), "{told}");
    interrupt(&program.child);
    assert_eq!(program.end().status.code(), Some(0));
}

/// A session that somebody else has begun, shown by its folder; and a recorder that is stopped, killed and followed by another one.
#[test]
fn a_session_of_somebody_else_is_changed_too() {
    let place = Place::new();
    let mut program = place.program();
    place.says(&["record", "--detach", "--name", "day", "--output", "all/day", "--event", "test:count"], 0);
    place.waits_for_program();
    program.tell("count 3");
    let mut command = place.kymo(&["view", "--no-browser", "all"]);
    until(|| place.json(&["sessions", "--json"])[0]["summary"]["events"] == 3);
    let (mut shown, viewer) = Shown::of(&mut command);
    viewer.waits_until_open();
    let mut news = viewer.news();
    let is_on = |told: &Value| {
        told["recording"]["classes"]
            .as_array()
            .is_some_and(|all| all.iter().any(|class| class["name"] == "test:other" && class["on"] == true))
    };
    let first = news.find(|told| told["recording"].is_object()).unwrap();
    assert!(first["recording"]["session"] == "day" && !is_on(&first), "{first}");
    // Whoever changes it, listeners are told.
    place.says(&["enable", "test:other"], 0);
    assert!(news.any(|told| is_on(&told)));

    let recorder = Pid::from_raw(place.json(&["status", "--json"])["pid"].as_i64().unwrap() as i32).unwrap();
    kill_process(recorder, Signal::STOP).unwrap();
    let (status, answer) = viewer.ask("GET", "recording", "");
    assert!(status == 200 && answer["problem"].as_str().unwrap().contains("has been stopped"), "{answer}");
    assert_eq!(answer["recording"]["session"], "day", "what was known is told still");
    assert_eq!(viewer.get("health")["status"], "ok");
    kill_process(recorder, Signal::CONT).unwrap();
    until(|| viewer.get("recording")["problem"].is_null());

    kill_process(recorder, Signal::KILL).unwrap();
    until(|| viewer.recording()["problems"].to_string().contains("the recorder was killed; programs go on"));
    assert!(viewer.refused(&json!({"act": "stop"})).contains("the recorder was killed"));
    place.says(&["status"], 0);
    until(|| viewer.recording()["problems"] == json!([]));
    place.says(&["stop", "day"], 0);
    assert!(news.any(|told| told["recording"]["state"] == "ended"));
    // A recorder that nobody needs ends, whoever looks.
    until(|| !place.path("kymo/recorder.sock").exists());
    assert_eq!(viewer.recording()["state"], "ended");
    interrupt(&shown.0);
    assert_eq!(shown.0.wait().unwrap().code(), Some(0));
}

#[test]
fn what_makes_no_sense_is_told() {
    let place = Place::new();
    let said = place.says(&["view", "--record", "./app"], 2);
    assert!(said.contains("`kymo view --record -- ./app` records a program"), "{said}");
    let said = place.says(&["view", "--event", "net:*", "trace"], 2);
    assert!(said.contains("--event selects events to record: use `kymo view --record"), "{said}");
    let said = place.says(&["view", "--", "./app"], 2);
    assert!(said.contains("COMMAND selects events to record: use `kymo view --record"), "{said}");
    let said = place.says(&["view", "--record", "--no-browser", "--", "./nothing"], 127);
    assert!(said.contains("error: ./nothing: No such file") && !place.path("kymo-traces").exists(), "{said}");
    let said = place.says(&["view", "--record", "--no-browser", "--filter", "value ==", "--", "true"], 2);
    assert!(said.contains("error: found the end, expected a value"), "{said}");
    let output = Command::new(env!("CARGO_BIN_EXE_kymo")).args(["view", "--help"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("kymo view --record -- ./app"));
}
