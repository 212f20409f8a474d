//! `kymo record --policy`: a file says which programs and threads are recorded, and how. It may change meanwhile.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::SystemTime;

use rustix::process::{Pid, Signal};

use crate::recorded::{Place, Program, until, words};

/// `kymo record --policy` that runs.
struct PolicyRun {
    child: Child,
    told: BufReader<ChildStderr>,
}

impl PolicyRun {
    /// Begins it, and waits until the sessions of all policies have begun.
    fn begin(place: &Place, text: &str) -> Self {
        let mut recording = Self::waiting(place, text);
        recording.tells("note: recording to");
        recording
    }

    fn waiting(place: &Place, text: &str) -> Self {
        std::fs::write(place.path("policies"), text).expect("there is room");
        let mut command = place.kymo(&["record", "--policy", "policies", "--output", "traces"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let told = BufReader::new(child.stderr.take().expect("it is piped"));
        Self { child, told }
    }

    /// Waits for a line with this text.
    fn tells(&mut self, wanted: &str) -> String {
        let mut all = String::new();
        loop {
            let from = all.len();
            assert!(self.told.read_line(&mut all).expect("it is text") > 0, "`{wanted}` was not told:\n{all}");
            if all[from..].contains(wanted) {
                return all[from..].to_owned();
            }
        }
    }

    fn edit(place: &Place, text: &str) {
        std::fs::write(place.path("policies"), text).expect("there is room");
    }

    /// Ends it; returns the rest of its lines.
    fn end(mut self) -> String {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, Signal::INT).expect("it runs");
        let mut told = String::new();
        std::io::Read::read_to_string(&mut self.told, &mut told).expect("it is text");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{told}");
        told
    }
}

impl Drop for PolicyRun {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program with a label.
fn labeled(place: &Place, label: &str) -> Program {
    let words = words();
    Program::of(place.command(&words[0]).args(&words[1..]).env("KYMO_LABEL", label))
}

/// The dated folders, in the order of their dates.
fn dated(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("traces")).into_iter().flatten().flatten();
    let mut folders: Vec<_> =
        entries.map(|entry| (entry.metadata().expect("it is there").created().ok(), entry.path())).collect();
    folders.sort();
    folders.into_iter().map(|(_, path)| path).collect()
}

/// Folders with metadata, below one.
fn traces(folder: &Path) -> Vec<String> {
    fn add(root: &Path, folder: &Path, all: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("it is there").flatten() {
            match entry.file_name() == "metadata" {
                true => all.push(folder.strip_prefix(root).expect("it is inside").display().to_string()),
                false if entry.path().is_dir() => add(root, &entry.path(), all),
                false => {}
            }
        }
    }
    let mut all = Vec::new();
    add(folder, folder, &mut all);
    all.sort();
    all
}

#[test]
fn policies_say_which_programs_and_threads_are_recorded() {
    let place = Place::new();
    let mut ping = labeled(&place, "init -> ping");
    let mut other = place.program();
    let recording = PolicyRun::begin(
        &place,
        r#"
        [[policy]]
        name = "ping"
        label = "init -> ping"
        events = "test:count"

        [[policy]]
        name = "workers"
        label_prefix = "init -> "
        label_suffix = "ping"
        thread = "worker"

        [[policy]]
        name = "ping-workers"
        label = "init -> ping"
        thread = "work*"
        events = "test:count"
        filter = "value >= 10"

        [[policy]]
        name = "pong"
        label_glob = "*p?ng"
        context = ["cpu_id", "tid"]

        [[policy]]
        name = "others-pong"
        label_glob = "*p?ng"
        user = 4242
        "#,
    );
    let status = place.says(&["status"], 0);
    let shown = "enable    test:count, label `init -> ping`, thread `work*`, if value >= 10";
    assert!(status.contains(shown), "{status}");
    ping.tell("on");
    ping.tell("count 5");
    // Threads and programs that come later.
    ping.tell("worker 3");
    ping.tell("from 10");
    ping.tell("worker 4");
    let mut pong = labeled(&place, "init -> pong");
    pong.tell("is 1");
    pong.tell("count 7");
    other.tell("is 0");
    other.tell("count 100");
    let told = recording.end();
    assert!(told.contains("recorded 16 events") && told.contains("policy    ping: 5 events of 1 program"), "{told}");
    let folder = dated(&place).pop().expect("there is one");
    assert_eq!(traces(&folder), ["init/ping/ping", "init/ping/ping-workers", "init/pong/pong"]);
    assert_eq!(place.values(&folder.join("init/ping/ping"), "test:count"), [0, 1, 2, 3, 4]);
    assert_eq!(place.values(&folder.join("init/ping/ping-workers"), "test:count"), [10; 4]);
    assert_eq!(place.values(&folder.join("init/pong"), "test:count"), [0, 1, 2, 3, 4, 5, 6]);
    // All of them are one trace.
    assert_eq!(place.values(&folder, "test:count").len(), 16);
    let text = place.says(&["print", "--event", "test:*", &folder.join("init/pong").display().to_string()], 0);
    assert!(text.contains("vtid = "), "{text}");
}

/// The example of the documentation, as it stands there.
#[test]
fn the_example_records() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policies.md");
    let page = std::fs::read_to_string(page).expect("it is there");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("there is one");
    let place = Place::new();
    let recording = PolicyRun::begin(&place, example);
    let (mut ping, mut timer, mut other) =
        (labeled(&place, "init -> ping"), labeled(&place, "init -> timer"), place.program());
    ping.tell("is 1");
    ping.tell("count 3");
    ping.tell("other 2");
    ping.tell("worker 4");
    timer.tell("marks");
    timer.tell("count 5");
    other.tell("count 7");
    let told = recording.end();
    assert!(told.contains("policy    ping: 3 events") && told.contains("policy    ping-workers: 2 events"), "{told}");
    assert!(told.contains("policy    calls: 10 events") && told.contains("policy    service: 0 events"), "{told}");
    let folder = dated(&place).pop().expect("there is one");
    assert_eq!(traces(&folder), ["init/ping/ping", "init/ping/ping-workers", "init/timer"]);
    assert!(folder.join("init/timer/ep").is_file());
    // Traces of both forms are read together.
    let text = place.says(&["print", &folder.display().to_string()], 0);
    assert_eq!(text.lines().filter(|line| line.contains(" test:count: ")).count(), 5, "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" Rpc_call: ")).count(), 1, "{text}");
}

#[test]
fn edits_are_taken_over_while_it_records() {
    let place = Place::new();
    let mut program = labeled(&place, "a");
    let policy =
        |events: &str, more: &str| format!("[[policy]]\nname = \"a\"\nlabel = \"a\"\nevents = \"{events}\"\n{more}");
    let mut recording = PolicyRun::begin(&place, &policy("test:count", ""));
    program.tell("on");
    program.tell("count 3");
    // A wrong edit is told with its place, and the old policy stays.
    PolicyRun::edit(&place, &policy("test:count", "levl = 3\n"));
    let why = recording.tells("levl");
    assert!(why.contains("policies:5:1: a policy has no `levl`; did you mean `level`?"), "{why}");
    program.tell("count 2");
    // Other events, while the session goes on.
    PolicyRun::edit(&place, &policy("test:other", ""));
    recording.tells("is taken over");
    program.tell("off");
    program.tell("others-on");
    program.tell("count 50");
    program.tell("other 4");
    // Another buffer needs another session, and a rule goes into the one that runs.
    PolicyRun::edit(&place, &policy("test:count", "buffer = \"1MiB\"\nonly = [\"test:count every 10\"]\n"));
    recording.tells("is taken over");
    program.tell("on");
    program.tell("from 0");
    program.tell("offer 30");
    PolicyRun::edit(&place, &policy("test:count", "buffer = \"1MiB\"\n"));
    recording.tells("is taken over");
    until(|| {
        let sessions = place.json(&["sessions", "--json"]);
        sessions
            .as_array()
            .is_some_and(|all| all.iter().all(|one| one["summary"]["rules"].as_array().is_none_or(Vec::is_empty)))
    });
    program.tell("offer 5");
    let told = recording.end();
    assert!(told.contains("recorded 17 events"), "{told}");
    let folder = dated(&place).pop().expect("there is one");
    assert_eq!(traces(&folder), ["a/a", "a/a-2"]);
    assert_eq!(place.values(&folder.join("a/a"), "test:count"), [0, 1, 2, 3, 4]);
    assert_eq!(place.values(&folder.join("a/a"), "test:other"), [0, 1, 2, 3]);
    assert_eq!(place.values(&folder.join("a/a-2"), "test:count"), [0, 10, 20, 30, 31, 32, 33, 34]);
}

/// A program records all the time: edits that keep its events lose none, and no event is there twice.
#[test]
fn edits_lose_no_event() {
    let place = Place::new();
    let mut program = labeled(&place, "a");
    let policies = |events: &str, other: &str| {
        format!("[[policy]]\nname = \"a\"\nlabel = \"a\"\nevents = \"{events}\"\n[[policy]]\nname = \"b\"\n{other}\n")
    };
    let mut recording = PolicyRun::begin(&place, &policies("test:count", "label = \"b\""));
    program.tell("on");
    program.say("slowly 800000");
    for (events, other) in [
        ("test:*", "label = \"b\""),
        ("*:count", "label_prefix = \"a\""),
        // Other memory, or another form: a new session, which begins where the old one ends.
        ("*:count\"\nbuffer = \"3MiB", "label = \"b\""),
        ("*:count\"\nformat = \"ctf2", "label_prefix = \"a\""),
        ("test:count", "record = false"),
    ] {
        PolicyRun::edit(&place, &policies(events, other));
        recording.tells("is taken over");
    }
    program.wait();
    let told = recording.end();
    assert!(told.contains("losses    none"), "{told}");
    let values = place.values(&dated(&place)[0], "test:count");
    assert_eq!(traces(&dated(&place)[0]).len(), 4, "{told}");
    assert_eq!(values.len(), 800_000);
    assert!(values.iter().zip(0..).all(|(value, expected)| *value == expected), "each one once");
}

#[test]
fn each_time_it_is_enabled_a_new_folder_begins() {
    let place = Place::new();
    let mut program = labeled(&place, "a");
    let text = |is_enabled: bool| format!("enabled = {is_enabled}\n[[policy]]\nname = \"all\"\nevents = \"test:*\"\n");
    let mut recording = PolicyRun::waiting(&place, &text(false));
    recording.tells("says not to record");
    program.tell("is 0");
    for turn in 1..=2_u64 {
        PolicyRun::edit(&place, &text(true));
        recording.tells("note: recording to");
        program.tell("on");
        program.tell(&format!("count {turn}"));
        PolicyRun::edit(&place, &text(false));
        recording.tells(&format!("recorded {turn} event"));
        program.tell("off");
        program.tell("count 10");
    }
    recording.end();
    let folders = dated(&place);
    assert_eq!(folders.len(), 2, "{folders:?}");
    assert_eq!(place.values(&folders[0], "test:count"), [0]);
    assert_eq!(place.values(&folders[1], "test:count"), [11, 12]);
    for folder in folders {
        let name = folder.file_name().expect("it has one").to_string_lossy().into_owned();
        assert!(!name.contains("-0") && name.split([' ', '-', ':']).count() == 6, "as Genode writes dates: {name}");
    }
}

/// A trigger of a policy that is about a thread watches that thread.
#[test]
fn triggers_of_policies_are_about_their_threads() {
    let place = Place::new();
    let mut program = labeled(&place, "a");
    let policy = |trigger: &str| {
        format!("[[policy]]\nname = \"w\"\nlabel = \"a\"\nthread = \"worker\"\nevents = \"test:count\"\n{trigger}")
    };
    let mut recording = PolicyRun::begin(&place, &policy("triggers = [\"stop on test:count when value == 5\"]\n"));
    program.tell("on");
    program.tell("from 5");
    // The main thread's event is none of the policy.
    program.tell("count 1");
    program.tell("from 4");
    program.tell("worker 3");
    program.tell("from 5");
    program.tell("worker 2");
    program.tell("from 6");
    program.tell("worker 4");
    // Without the trigger, the session records again.
    PolicyRun::edit(&place, &policy(""));
    recording.tells("is taken over");
    until(|| place.json(&["sessions", "--json"])[0]["triggers"].as_array().is_some_and(Vec::is_empty));
    program.tell("from 7");
    program.tell("worker 1");
    recording.end();
    let values = place.values(&dated(&place)[0], "test:count");
    assert_eq!(values, [4, 4, 4, 5, 7]);
}

/// The recorder is killed: the next one goes on with all traces of the tree.
#[test]
fn a_tree_goes_on_with_the_next_recorder() {
    let place = Place::new();
    let (mut ping, mut pong) = (labeled(&place, "init -> ping"), labeled(&place, "init -> pong"));
    let mut recording =
        PolicyRun::begin(&place, "[[policy]]\nname = \"all\"\nevents = \"test:count\"\nlabel_prefix = \"init\"\n");
    ping.tell("on");
    pong.tell("on");
    ping.tell("count 100");
    pong.tell("count 50");
    let pid = place.json(&["status", "--json"])["pid"].as_u64().expect("it runs");
    rustix::process::kill_process(Pid::from_raw(pid as i32).expect("it is a number"), Signal::KILL).expect("it runs");
    recording.tells("the recorder was gone");
    ping.tell("count 20");
    pong.tell("count 10");
    recording.end();
    let folder = dated(&place).pop().expect("there is one");
    assert_eq!(traces(&folder), ["init/ping/all", "init/pong/all"]);
    assert_eq!(place.values(&folder.join("init/ping"), "test:count"), (0..120).collect::<Vec<_>>());
    assert_eq!(place.values(&folder.join("init/pong"), "test:count"), (0..60).collect::<Vec<_>>());
}

/// `kymo` and the recorder are killed: all events are there, also those that were to become a tree of Genode's.
#[test]
fn a_tree_is_recovered() {
    let place = Place::new();
    let mut ping = labeled(&place, "init -> ping");
    let text = "[[policy]]\nname = \"counts\"\nevents = \"test:count\"\nlabel_prefix = \"init\"\n\
                [[policy]]\nname = \"marks\"\nthread = \"ep\"\nlabel = \"init -> ping\"\nformat = \"genode\"\n";
    let mut recording = PolicyRun::begin(&place, text);
    ping.tell("on");
    ping.tell("count 100");
    ping.tell("marks");
    let recorder = place.json(&["status", "--json"])["pid"].as_u64().expect("it runs");
    let recorder = Pid::from_raw(recorder as i32).expect("it is a number");
    rustix::process::kill_process(recorder, Signal::KILL).expect("it runs");
    recording.child.kill().expect("it runs");
    ping.tell("count 20");
    place.says(&["recover"], 0);
    let folder = dated(&place).pop().expect("there is one");
    // A part of a packet, as a machine leaves it that crashes, in a trace of the tree.
    let lane = folder.join("init/ping/counts/lane_1");
    let mut bytes = std::fs::read(&lane).expect("it is there");
    bytes.extend_from_within(..100);
    std::fs::write(&lane, bytes).expect("there is room");
    let told = place.says(&["recover", &folder.display().to_string()], 0);
    assert!(told.contains("100 B of half packets were cut"), "{told}");
    assert_eq!(place.values(&folder.join("init/ping/counts"), "test:count"), (0..120).collect::<Vec<_>>());
    let marks =
        place.says(&["print", "--filter", "$ctx.procname == \"ep\"", &folder.join(".marks").display().to_string()], 0);
    assert_eq!(marks.lines().filter(|line| line.contains(" kymo:")).count(), 10, "{marks}");
}

/// Flight recorders: each component has its events in each snapshot.
#[test]
fn snapshots_of_policies_are_trees() {
    let place = Place::new();
    let (mut ping, mut pong) = (labeled(&place, "init -> ping"), labeled(&place, "init -> pong"));
    let recording = PolicyRun::begin(
        &place,
        "[defaults]\nmode = \"overwrite\"\n[[policy]]\nname = \"last\"\nevents = \"test:count\"\nlabel_prefix = \"init\"\n\
         [[policy]]\nname = \"marks\"\nlabel = \"timer\"\nformat = \"genode\"\n",
    );
    ping.tell("on");
    pong.tell("on");
    ping.tell("count 3");
    pong.tell("count 2");
    let mut timer = labeled(&place, "timer");
    timer.tell("marks");
    recording.end();
    let folder = dated(&place).pop().expect("there is one");
    // In Genode's form there are no snapshots.
    let text = place.says(&["print", &folder.join("timer").display().to_string()], 0);
    assert_eq!(text.lines().filter(|line| line.starts_with('[')).count(), 10, "{text}");
    std::fs::remove_dir_all(folder.join("timer")).expect("it is there");
    assert_eq!(traces(&folder), ["last-snapshot-1/init/ping/last", "last-snapshot-1/init/pong/last"]);
    assert_eq!(place.values(&folder, "test:count").len(), 5);
}

/// With a period, snapshots come while it records; two policies have theirs beside each other.
#[test]
fn snapshots_of_policies_come_periodically() {
    let place = Place::new();
    let (mut ping, mut pong) = (labeled(&place, "ping"), labeled(&place, "pong"));
    let text = "[defaults]\nmode = \"overwrite\"\nperiod = \"200ms\"\nevents = \"test:count\"\n\
                [[policy]]\nname = \"a\"\nlabel = \"ping\"\n[[policy]]\nname = \"b\"\nlabel = \"pong\"\n";
    let recording = PolicyRun::begin(&place, text);
    let folder = dated(&place).pop().expect("there is one");
    ping.tell("on");
    pong.tell("on");
    for turn in 1..=2_u64 {
        ping.tell("count 3");
        pong.tell("count 2");
        let is_there = |name: &str| folder.join(format!("{name}-snapshot-{turn}")).exists();
        until(|| is_there("a") && is_there("b"));
    }
    recording.end();
    let values = |trace: &str| place.values(&folder.join(trace), "test:count");
    assert_eq!([values("a-snapshot-1/ping"), values("a-snapshot-2/ping")], [[0, 1, 2], [3, 4, 5]]);
    assert_eq!([values("b-snapshot-1/pong"), values("b-snapshot-2/pong")], [[0, 1], [2, 3]]);
}

/// A command is recorded as policies say, from its first event on, and its exit status is that of `kymo`.
#[test]
fn a_command_is_recorded_by_policies() {
    let place = Place::new();
    let policy = "[[policy]]\nname = \"workers\"\nthread = \"worker\"\nevents = \"test:count\"\n";
    std::fs::write(place.path("policies"), policy).expect("there is room");
    let words = words();
    let mut command = place.kymo(&["record", "--policy", "policies", "--output", "traces", "--json", "--", &words[0]]);
    let mut child = command
        .args(&words[1..])
        .env("KYMO_TEST_PROGRAM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("it is piped"), b"worker 3\ncount 5\nexit 7\n")
        .expect("it listens");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(7));
    let said = String::from_utf8_lossy(&output.stdout);
    let summary: serde_json::Value =
        serde_json::from_str(said.lines().last().expect("there is one")).expect("it is JSON");
    assert_eq!(summary["policies"]["workers"]["events"], 3, "{said}");
    assert_eq!(place.values(&dated(&place)[0], "test:count"), [0; 3]);
}

/// Names of the files in a folder.
fn files(folder: &Path) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(folder).expect("it is there").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

/// Marks under Genode's names, in its packets: babeltrace2 reads them, and kymo as it reads Genode's own.
#[test]
fn marks_are_written_as_genode_writes_them() {
    let place = Place::new();
    let policies = "[[policy]]\nname = \"marks\"\nformat = \"genode\"\nlabel_prefix = \"init -> \"\n\
                    [[policy]]\nname = \"other\"\nlabel = \"other\"\n";
    let recording = PolicyRun::begin(&place, policies);
    let mut other = labeled(&place, "other");
    other.tell("count 3");
    let (mut ping, mut pong) = (labeled(&place, "init -> ping"), labeled(&place, "init -> runtime -> pong"));
    ping.tell("marks");
    ping.tell("marks");
    pong.tell("marks");
    pong.tell("count 9");
    let told = recording.end();
    assert!(told.contains("recorded 33 events"), "{told}");
    let folder = dated(&place).pop().expect("there is one");
    assert_eq!(traces(&folder), ["init/ping", "init/runtime/pong", "other/other"]);
    assert_eq!(files(&folder.join("init/ping")), ["ep", "ep (2)", "metadata"], "two threads of one name");
    let path = folder.display().to_string();
    let info = place.says(&["info", &path], 0);
    assert!(info.contains("recorded by genode") || info.contains("recorded  by genode"), "{info}");
    let text = place.says(
        &[
            "print",
            &path,
            "--filter",
            "packet.session_label == \"init -> runtime -> pong\" && packet.thread_name == \"ep\"",
        ],
        0,
    );
    assert_eq!(text.lines().filter(|line| line.starts_with('[')).count(), 10, "{text}");
    let pairs = place.says(&["pairs", &path], 0);
    assert!(pairs.contains("submit") && pairs.contains("trigger_once") && pairs.contains("handle"), "{pairs}");
    let Ok(read) = Command::new("babeltrace2").arg(folder.join("init/runtime/pong")).output() else {
        eprintln!("NOT TESTED: babeltrace2 is not installed here");
        return;
    };
    let (said, why) = (String::from_utf8_lossy(&read.stdout), String::from_utf8_lossy(&read.stderr));
    assert!(read.status.success(), "{why}");
    // Both forms have times since 1970: it reads them together.
    let all = Command::new("babeltrace2").arg(&folder).output().expect("it runs");
    assert!(all.status.success(), "{}", String::from_utf8_lossy(&all.stderr));
    assert_eq!(String::from_utf8_lossy(&all.stdout).matches("test:count").count(), 3);
    let payload = |line: &str| {
        let (head, fields) = line.rsplit_once("{ ").expect("it has fields");
        let name = head
            .split_whitespace()
            .find(|word| word.ends_with(':') && word.starts_with(char::is_uppercase))
            .unwrap_or("");
        format!("{name} {}\n", fields.trim_end_matches(" }"))
    };
    expect_test::expect![[r#"
        Signal_receive: number = 2, context = 2130710528
        Checkpoint: data = 32, addr = 0, type = 1, name = "handle"
        Rpc_call: name = "submit"
        Rpc_returned: name = "submit"
        Rpc_dispatch: name = "trigger_once"
        Checkpoint: data = 0, addr = 0, type = 1, name = "part"
        Checkpoint: data = 0, addr = 0, type = 2, name = "part"
        Rpc_reply: name = "trigger_once"
        Checkpoint: data = 32, addr = 0, type = 2, name = "handle"
        Signal_submit: number = 1
    "#]]
    .assert_eq(&said.lines().map(payload).collect::<String>());
    assert!(said.contains("session_label = \"init -> runtime -> pong\", thread_name = \"ep\""), "{said}");
}

/// Genode's macros: checkpoints and durations called like their function, and ticks that are summed up.
#[test]
fn checkpoints_are_called_like_their_function() {
    let place = Place::new();
    let words = words();
    let mut command = place.kymo(&["record", "--output", "trace", "--event", "kymo:*", "--", &words[0]]);
    let command = command.args(&words[1..]).env("KYMO_TEST_PROGRAM", "1").stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("it is piped"), b"durations 2\n").expect("it listens");
    let told = child.wait_with_output().expect("it ends").stderr;
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("TSC durations: ") && told.contains(" (2 calls, last "), "{told}");
    let text = place.says(&["print", "--event", "kymo:checkpoint", "--event", "kymo:log", "trace"], 0);
    let facts = |line: &str| {
        let (_, fields) = line.rsplit_once("{ ").expect("it has fields");
        let value =
            |name: &str| fields.split(", ").find_map(|field| field.split_once(name)).map(|(_, value)| value.to_owned());
        let name = value("name = ").or(value("text = ")).unwrap_or_default();
        let name = name.trim_matches('"').split(": ").next().unwrap_or_default().replace("suite::", "");
        format!("{name} {} {}\n", value("data = ").unwrap_or_default(), value("type = ").unwrap_or_default())
    };
    expect_test::expect![[r#"
        recorded::durations 0 ( "undefined" : container = 0 ) }
        recorded::durations 10 ( "start" : container = 1 ) }
        inside 20 ( "start" : container = 1 ) }
        inside 20 ( "end" : container = 2 ) }
        recorded::durations 10 ( "end" : container = 2 ) }
        recorded::durations 1 ( "undefined" : container = 0 ) }
        recorded::durations 11 ( "start" : container = 1 ) }
        inside 21 ( "start" : container = 1 ) }
        recorded::durations 0 ( "undefined" : container = 0 ) }
        recorded::durations 10 ( "start" : container = 1 ) }
        inside 20 ( "start" : container = 1 ) }
        inside 20 ( "end" : container = 2 ) }
        recorded::durations 10 ( "end" : container = 2 ) }
        inside 21 ( "end" : container = 2 ) }
        recorded::durations 11 ( "end" : container = 2 ) }
        TSC recorded::durations  
    "#]]
    .assert_eq(&text.lines().map(facts).collect::<String>());
}

/// Genode's own configuration, as far as it has a meaning.
#[test]
fn a_configuration_of_genode_records() {
    let place = Place::new();
    let config = |enable: &str| {
        format!(
            "<config period_ms=\"5000\" target_root=\"/\" enable=\"{enable}\">\n  <vfs> <fs/> </vfs>\n  \
             <policy label_suffix=\"ping\" thread=\"ep\" policy=\"ctf0\"> <ctf/> </policy>\n  \
             <policy label=\"init -> pong\" policy=\"null\"> <ctf/> </policy>\n  \
             <default-policy policy=\"rpc_name\"> <ctf/> </default-policy>\n</config>\n"
        )
    };
    let mut recording = PolicyRun::waiting(&place, &config("no"));
    let note = recording.tells("period_ms");
    assert!(note.starts_with("note: policies:1:9: `period_ms` has no meaning here"), "{note}");
    recording.tells("says not to record");
    PolicyRun::edit(&place, &config("yes"));
    recording.tells("note: recording to");
    for label in ["init -> ping", "init -> pong", "init -> timer"] {
        labeled(&place, label).tell("marks");
    }
    recording.end();
    let folder = dated(&place).pop().expect("there is one").display().to_string();
    assert_eq!(traces(Path::new(&folder)), ["init/ping", "init/timer"]);
    let count = |filter: &str| {
        place.says(&["print", &folder, "--filter", filter], 0).lines().filter(|line| line.starts_with('[')).count()
    };
    assert_eq!(count("packet.session_label == \"init -> ping\""), 10);
    assert_eq!(count("packet.session_label == \"init -> timer\""), 4, "calls alone");
}

#[test]
fn wrong_policies_are_wrong_usage() {
    let place = Place::new();
    let wrong = |text: &str, why: &str| {
        std::fs::write(place.path("policies"), text).expect("there is room");
        let told = place.says(&["record", "--policy", "policies", "--output", "traces"], 2);
        assert!(told.contains(why), "{told}");
    };
    wrong("[[policy]]\nproces = \"a\"\n", "policies:2:1: a policy has no `proces`; did you mean `process`?");
    wrong("<config enabled=\"yes\"/>", "policies:1:9: <config> has no `enabled`; did you mean `enable`?");
    wrong("config | period_ms: 5000 | enable: no\n", "policies:1:1: this is Genode's node syntax");
    let told = place.says(&["record", "--policy", "missing"], 2);
    assert!(told.contains("missing: No such file"), "{told}");
    let told = place.says(&["record", "--policy", "policies", "--level", "info"], 2);
    assert!(told.contains("cannot be used with"), "{told}");
    assert!(!place.path("traces").exists());
}

/// Edits that take a program away from a flight recorder, or change its period, keep what it has recorded until then.
#[test]
fn edits_keep_the_memory_of_flight_recorders() {
    let place = Place::new();
    let mut program = labeled(&place, "ping");
    let text = |label: &str, period: &str| {
        format!(
            "[[policy]]\nname = \"fl\"\nlabel = \"{label}\"\nevents = \"test:count\"\nmode = \"overwrite\"\nperiod = \"{period}\"\n"
        )
    };
    let recording = PolicyRun::begin(&place, &text("ping", "10min"));
    let folder = dated(&place).pop().expect("there is one");
    program.tell("on");
    program.tell("count 3");
    PolicyRun::edit(&place, &text("ping", "20min"));
    until(|| folder.join("fl-snapshot-1").exists());
    // The next session begins a moment later.
    until(|| {
        program.tell("count 1");
        let status = place.says(&["status", "--json"], 0);
        status.contains("\"flush_ms\":1200000")
    });
    program.tell("on");
    program.tell("count 2");
    PolicyRun::edit(&place, &text("other", "20min"));
    until(|| folder.join("fl-snapshot-2").exists());
    let told = recording.end();
    assert!(!told.contains("problem"), "{told}");
    let values = place.values(&folder, "test:count");
    assert_eq!(
        (&values[..3], traces(&folder).join(" ")),
        (&[0, 1, 2][..], "fl-snapshot-1/ping/fl fl-snapshot-2/ping/fl".to_owned())
    );
    assert!(told.contains(&format!("recorded {} events", values.len())), "{told}");
}

/// No trace is in the folder of another one.
#[test]
fn components_below_others_have_folders_of_their_own() {
    let place = Place::new();
    let policies =
        "[[policy]]\nname = \"ping\"\nlabel = \"init\"\n[[policy]]\nname = \"x\"\nlabel = \"init -> ping\"\n";
    let recording = PolicyRun::begin(&place, policies);
    let mut init = labeled(&place, "init");
    init.tell("count 5");
    until(|| dated(&place)[0].join("init/ping").exists());
    let mut ping = labeled(&place, "init -> ping");
    ping.tell("count 2");
    let told = recording.end();
    assert!(told.contains("recorded 7 events"), "{told}");
    let folder = dated(&place).pop().expect("there is one");
    assert_eq!(traces(&folder), ["init/ping", "init/ping-2/x"]);
    assert_eq!(place.values(&folder, "test:count").len(), 7);
}

/// A policy may be called like a component: its trace, and the files in Genode's form, have folders of their own.
#[test]
fn policies_may_be_called_like_components() {
    let place = Place::new();
    let recording = PolicyRun::begin(
        &place,
        "[[policy]]\nname = \"ping\"\nlabel = \"init\"\nevents = \"test:count\"\n\
         [[policy]]\nname = \"pong\"\nlabel = \"init -> pong\"\nformat = \"genode\"\nwriters = [\"ctf\", \"pcapng\"]\n\
         [[policy]]\nname = \"gen\"\nlabel = \"init -> ping\"\nformat = \"genode\"\n",
    );
    let (mut init, mut ping, mut pong) =
        (labeled(&place, "init"), labeled(&place, "init -> ping"), labeled(&place, "init -> pong"));
    init.tell("count 5");
    let now = || u64::try_from(SystemTime::UNIX_EPOCH.elapsed().expect("it is later").as_nanos()).expect("it fits");
    let before = now();
    ping.tell("marks");
    let after = now();
    pong.tell("packets 2");
    let told = recording.end();
    assert!(told.contains("losses    none") && !told.contains("problem"), "{told}");
    let folder = dated(&place).pop().expect("there is one");
    assert_eq!(traces(&folder), ["init/ping", "init/ping-2"]);
    assert!(folder.join("init/pong.pcapng").exists());
    let text = place.says(&["print", &folder.display().to_string()], 0);
    assert_eq!(text.matches(" test:count: ").count(), 5, "{text}");
    assert!(text.contains("Rpc_call") && text.contains("packet:"), "{text}");
    // Times are true, and not those of the folder's name.
    let text = place.says(&["print", "--format", "json", &folder.join("init/ping-2").display().to_string()], 0);
    for line in text.lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        let time = event["time"].as_u64().expect("it has a time");
        // Clocks of programs are compared with that of the system.
        assert!((before - 1_000_000..after + 1_000_000).contains(&time), "{before} {after} {line}");
    }
}

/// Genode's own files; `None`: they are not here, which is said.
fn corpus(missing: &str) -> Option<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/genode");
    let corpus = std::env::var_os("KYMO_CORPUS").map_or(corpus, |path| Path::new(&path).join("genode"));
    if !corpus.is_dir() {
        eprintln!("NOT TESTED: {missing}, as {} is not there", corpus.display());
        return None;
    }
    Some(corpus)
}

/// The events and fields that Genode's analyses for Trace Compass name are there, under these names.
#[test]
fn analyses_of_genode_find_their_fields() {
    let Some(corpus) = corpus("Genode's analyses") else { return };
    let place = Place::new();
    let recording = PolicyRun::begin(&place, "[[policy]]\nname = \"marks\"\nformat = \"genode\"\nlabel = \"init\"\n");
    labeled(&place, "init").tell("marks");
    recording.end();
    let folder = dated(&place).pop().expect("there is one");
    let text = place.says(&["print", &folder.join("init").display().to_string()], 0);
    let named = |page: &str, before: &str| -> Vec<String> {
        let rest = page.split(before).skip(1);
        rest.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    };
    for file in ["componentanalysis.xml", "checkpointanalysis.xml"] {
        let page = std::fs::read_to_string(corpus.join(file)).expect("the corpus has it");
        let events = [named(&page, "eventName=\""), named(&page, " event=\"")].concat();
        for event in events.iter().flat_map(|names| names.split('|')).map(|name| name.trim().trim_end_matches('*')) {
            assert!(text.contains(&format!(" {event}")), "{file}: {event} is not there:\n{text}");
        }
        let fields = named(&page, "type=\"eventField\" value=\"");
        assert!(fields.len() > 5 && !events.is_empty(), "{file} names some");
        // Each event has a time.
        for field in fields.iter().filter(|field| *field != "timestamp") {
            let name = field.trim_start_matches("context.");
            assert!(text.contains(&format!(" {name} = ")), "{file}: {field} is not there:\n{text}");
        }
    }
}

/// The configurations in Genode's own files.
#[test]
fn configurations_of_the_corpus_are_understood() {
    let Some(corpus) = corpus("Genode's own configurations") else { return };
    let place = Place::new();
    let mut count = 0;
    for file in ["run/trace_recorder.run", "run/trace_recorder_ctf.run", "run/trace_recorder_pcapng.run", "README"] {
        let text = std::fs::read_to_string(corpus.join(file)).expect("the corpus has it");
        let text = text.replace("\n!", "\n");
        for (at, _) in text.match_indices("<config period_ms") {
            let end = text[at..].find("</config>").expect("it ends") + "</config>".len();
            std::fs::write(place.path("policies"), &text[at..at + end]).expect("there is room");
            let command = ["record", "--policy", "policies", "--output", "traces", "--duration", "10ms"];
            let told = place.says(&command, 0);
            assert!(told.contains("`period_ms` has no meaning here"), "{file}: {told}");
            count += 1;
        }
    }
    assert!(count >= 3, "{count} configurations");
}
