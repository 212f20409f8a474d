//! What the recorder of a user does with programs that end, and with those that lie.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use kymo_recorder::protocol::{
    ClassStatus, ClassesStatus, Matched, RecorderReply, RecorderRequest, SessionOptions, SessionSummary, Status,
    VERSION,
};
use kymo_recorder::select::{SelectionRule, SelectionStep, SessionSelection, StepKind};

use crate::recording::{Stage, check, numbers, read, wait};

/// Not a test, but the recorder of the others.
#[test]
fn recorder() {
    if std::env::var_os("KYMO_TEST_RECORDER").is_some() {
        let _ = kymo_recorder::record_for_user();
        std::process::exit(0);
    }
}

/// A recorder that runs, and somebody who talks to it.
struct Recorder {
    child: Child,
    stream: BufReader<UnixStream>,
}

impl Recorder {
    fn begin(stage: &Stage) -> Self {
        let child = Command::new(std::env::current_exe().expect("it is known"))
            .args(["--exact", "daemon::recorder", "--nocapture"])
            .env("KYMO_TEST_RECORDER", "1")
            .env("XDG_RUNTIME_DIR", stage.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("it begins");
        let mut stream = None;
        wait("a recorder", || {
            stream = UnixStream::connect(stage.path("kymo/recorder.sock")).ok();
            stream.is_some()
        });
        let mut recorder = Self { child, stream: BufReader::new(stream.expect("it listens")) };
        recorder.ask(&RecorderRequest::Hello { version: VERSION });
        recorder
    }

    fn ask(&mut self, question: &RecorderRequest) -> RecorderReply {
        let said = serde_json::to_string(question).expect("it can be said");
        writeln!(self.stream.get_mut(), "{said}").expect("it listens");
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("it speaks");
            match serde_json::from_str(&line).expect("it is an answer") {
                RecorderReply::Later { .. } => {}
                RecorderReply::Refused { message } => panic!("{message}"),
                answer => return answer,
            }
        }
    }

    fn start(&mut self, stage: &Stage, name: &str) -> PathBuf {
        let output = stage.path(name);
        let mut selection = SessionSelection::default();
        selection.take(SelectionStep { act: StepKind::Enable, rule: SelectionRule::default() });
        let (name, is_detached) = (name.to_owned(), true);
        let options =
            SessionOptions { name, output: output.clone(), selection, is_detached, ..SessionOptions::default() };
        self.ask(&RecorderRequest::Start { options: Box::new(options) });
        output
    }

    fn stop(&mut self, name: &str) -> SessionSummary {
        match self.ask(&RecorderRequest::Stop { session: Some(name.to_owned()), all: false }) {
            RecorderReply::Stopped { summaries } => summaries.into_iter().next().expect("it was there"),
            other => panic!("{other:?}"),
        }
    }

    fn status(&mut self) -> Status {
        match self.ask(&RecorderRequest::Status) {
            RecorderReply::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    /// It ends when nobody needs it any more.
    fn end(mut self) {
        drop(self.stream);
        self.child.wait().expect("it ran");
    }
}

fn wait_for_events(recorder: &mut Recorder, session: &str, count: u64) {
    wait("all events", || {
        let question = RecorderRequest::Progress { session: session.to_owned() };
        matches!(recorder.ask(&question), RecorderReply::Progress { summary } if summary.events >= count)
    });
}

fn taken(recorder: &mut Recorder, act: StepKind, rule: SelectionRule) -> Matched {
    let step = Box::new(SelectionStep { act, rule });
    match recorder.ask(&RecorderRequest::Take { session: Some("a".to_owned()), step }) {
        RecorderReply::Taken { matched } => matched,
        other => panic!("{other:?}"),
    }
}

fn classes(recorder: &mut Recorder) -> Vec<ClassStatus> {
    match recorder.ask(&RecorderRequest::Classes { session: "a".to_owned() }) {
        RecorderReply::Classes(ClassesStatus { classes, more: 0 }) => classes,
        other => panic!("{other:?}"),
    }
}

/// Whoever shows a session asks for its events alone, and changes what is recorded of its programs alone.
#[test]
fn events_of_a_session_are_those_of_its_programs() {
    let stage = Stage::new();
    let (ours, other) = (stage.program(1), stage.program(1));
    let mut recorder = Recorder::begin(&stage);
    let rule = SelectionRule {
        processes: vec![ours.child.id().to_string()],
        events: vec!["no:*".into()],
        ..SelectionRule::default()
    };
    let mut selection = SessionSelection::default();
    selection.take(SelectionStep { act: StepKind::Enable, rule });
    let (output, is_detached) = (stage.path("a"), true);
    let options = SessionOptions { name: "a".to_owned(), output, selection, is_detached, ..SessionOptions::default() };
    recorder.ask(&RecorderRequest::Start { options: Box::new(options) });
    let RecorderReply::Sessions { sessions } = recorder.ask(&RecorderRequest::Sessions) else {
        panic!("an answer to something else")
    };
    let names: Vec<_> = sessions.iter().map(|session| session.options.name.as_str()).collect();
    assert_eq!((names, sessions[0].options.selection.steps().len()), (vec!["a"], 0));

    let all = classes(&mut recorder);
    assert!(all.len() > 1 && all.is_sorted_by_key(|class| &class.name), "{all:?}");
    assert!(all.iter().all(|class| class.programs == 1 && !class.is_on), "{all:?}");
    let name = all[0].name.clone();
    let within = SelectionRule { events: vec![name.clone()], is_within: true, ..SelectionRule::default() };
    let matched = taken(&mut recorder, StepKind::Enable, within.clone());
    assert_eq!((matched.events, matched.programs, matched.all_programs), (1, 1, 1));
    let after = classes(&mut recorder);
    assert!(after[0].is_on && after[1..].iter().all(|class| !class.is_on), "{after:?}");
    let is_on = |status: &Status, pid| {
        let program = status.programs.iter().find(|program| program.pid == Some(pid)).expect("it runs");
        program.events.iter().any(|event| event.name == name && event.is_on)
    };
    let status = recorder.status();
    assert!(is_on(&status, ours.child.id()) && !is_on(&status, other.child.id()));

    let filtered = SelectionRule { filter: Some("pid > 1".to_owned()), ..within.clone() };
    taken(&mut recorder, StepKind::Filter, filtered);
    let class = classes(&mut recorder).swap_remove(0);
    assert_eq!((class.filters.as_slice(), class.runs.len()), (["pid > 1".to_owned()].as_slice(), 1), "{class:?}");
    taken(&mut recorder, StepKind::Disable, within.clone());
    assert!(classes(&mut recorder).iter().all(|class| !class.is_on && class.filters.is_empty()));
    // The same said of all programs is about the other one, too.
    let matched = taken(&mut recorder, StepKind::Enable, SelectionRule { is_within: false, ..within });
    // The superuser's recorder also sees programs of other folders, for example of tests that run meanwhile.
    assert_eq!((matched.events, matched.programs), (2, 2));
    assert!(matched.all_programs >= 2, "{matched:?}");
    assert!(is_on(&recorder.status(), other.child.id()));
    recorder.stop("a");
    recorder.end();
}

#[test]
fn what_a_program_leaves_that_outlives_its_session_is_deleted() {
    let stage = Stage::new();
    let (mut first, mut second, mut third) = (stage.program(1), stage.program(1), stage.program(1));
    let mut recorder = Recorder::begin(&stage);
    recorder.start(&stage, "a");
    for running in [&mut first, &mut second, &mut third] {
        running.tell("numbers 1000");
        running.wait_for("done");
    }
    wait_for_events(&mut recorder, "a", 3000);
    // Its last sub-buffers are open, and everything of them is taken. One program ends while a recorder is there, one when it is gone.
    assert_eq!(recorder.stop("a").events, 3000);
    first.child.kill().expect("it runs");
    first.child.wait().expect("it ran");
    wait("its end", || !first.control.exists());
    recorder.end();
    second.child.kill().expect("it runs");
    second.child.wait().expect("it ran");
    assert!(second.control.exists() && third.control.exists());
    let mut recorder = Recorder::begin(&stage);
    let output = recorder.start(&stage, "b");
    wait("its end", || !second.control.exists());
    // What goes on is recorded.
    third.tell("numbers 500");
    third.wait_for("done");
    assert_eq!(recorder.stop("b").events, 500);
    assert_eq!(numbers(&read(&output).0)[&1].len(), 500);
    check(&output);
    recorder.end();
}

#[test]
fn what_a_program_left_whose_recorder_was_killed_stays() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let mut recorder = Recorder::begin(&stage);
    recorder.start(&stage, "a");
    running.tell("numbers 1000");
    running.wait_for("done");
    recorder.child.kill().expect("it runs");
    recorder.child.wait().expect("it ran");
    running.tell("numbers 1000");
    running.wait_for("done");
    running.child.kill().expect("it runs");
    running.child.wait().expect("it ran");
    // Nobody goes on with the session.
    fs::remove_file(stage.path("kymo/a.session")).expect("it is there");
    let mut recorder = Recorder::begin(&stage);
    recorder.start(&stage, "b");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(recorder.stop("b").events, 0);
    assert!(running.control.exists(), "somebody may come back for it");
    recorder.end();
}

/// A registry of 4 MiB of definitions that say nothing, and sizes that are too large.
#[test]
fn a_program_that_lies_costs_little() {
    let stage = Stage::new();
    let mut running = stage.program(1);
    let path = stage.path("kymo/00000000abcdef01.ctl");
    let file = File::create_new(&path).expect("there is room");
    let layout = kymo_lane::MemoryLayout { registry_bytes: 4 << 20, ..kymo_lane::MemoryLayout::default() };
    file.set_len(layout.bytes()).expect("it is sparse");
    let registry: Vec<u8> = (0..1_u64 << 19).flat_map(|id| (1 << 63 | (id & 0xffff) << 32).to_le_bytes()).collect();
    let page = |bytes: u64| bytes.next_multiple_of(4096);
    file.write_all_at(&registry, layout.filters() + page(layout.filter_bytes.into())).expect("there is room");
    let words: [u64; 7] = [kymo_lane::ABI, 65_536, 4096, 4096, 32 << 10, 4 << 20, std::process::id().into()];
    for (word, at) in words.into_iter().zip((8..).step_by(8)) {
        file.write_all_at(&word.to_le_bytes(), at).expect("there is room");
    }
    file.write_all_at(&u64::from(layout.filter_bytes).to_le_bytes(), 72).expect("there is room");
    file.write_all_at(b"kymoLANE", 0).expect("there is room");
    let mut recorder = Recorder::begin(&stage);
    recorder.start(&stage, "a");
    let status = recorder.status();
    let liar = status.programs.iter().find(|program| program.file == path);
    let liar = liar.unwrap_or_else(|| panic!("{path:?}: {:?}", status.unreachable));
    assert!(liar.unusable.len() < 110, "{}", liar.unusable.len());
    assert!(liar.unusable.iter().any(|said| said.contains("definitions more")), "{:?}", &liar.unusable[90..]);
    assert!(
        liar.unusable.iter().any(|said| said.contains("more definitions than are read")),
        "{:?}",
        &liar.unusable[90..]
    );
    let memory = fs::read_to_string(format!("/proc/{}/status", recorder.child.id())).expect("it runs");
    let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is told");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < 300 << 10, "{peak} KiB");
    running.tell("numbers 1000");
    running.wait_for("done");
    assert_eq!(recorder.stop("a").events, 1000);
    recorder.end();
}

/// Its stamps would be far from those of others; what is not recorded is told.
#[test]
fn a_program_whose_clock_is_another_one_is_refused() {
    let offset = "1000";
    let unshared = Command::new("unshare").args(["--time", "--fork", "--monotonic", offset, "true"]).status();
    if !unshared.is_ok_and(|status| status.success()) {
        eprintln!("no time namespace can be made here: programs in others are not tested");
        return;
    }
    let stage = Stage::new();
    let mut command = Command::new("unshare");
    command.args(["--time", "--fork", "--kill-child", "--monotonic", offset]);
    command.arg(std::env::current_exe().expect("it is known")).args(["--exact", "recording::child", "--nocapture"]);
    command.env("KYMO_TEST_CHILD", "1").env("KYMO_CLOCK", "monotonic");
    let monotonic = stage.started(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut recorder = Recorder::begin(&stage);
    recorder.start(&stage, "a");
    let status = recorder.status();
    let refused = status.unreachable.iter().find(|refused| refused.path == monotonic.control);
    let refused = refused.unwrap_or_else(|| panic!("{status:?}"));
    assert!(refused.why.contains("1000.000 s later"), "{refused:?}");
    assert!(status.programs.iter().all(|program| program.file != monotonic.control));
    recorder.stop("a");
    recorder.end();
}
