//! What people meet who type something wrong, press Ctrl-C, close a terminal or have no room, and what programs read of it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::recorded::{Disk, Place, Program, until, words};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn wrong_usage_is_told_with_the_usage_of_its_command() {
    let place = Place::new();
    for (words, expected) in [
        ("record --context nosuch -- true", "there is no context `nosuch`"),
        ("record --context net_n -- true", "did you mean `net_ns`?"),
        ("record --context app. -- true", "as `app.app.`"),
        ("record --context none,pid -- true", "`--context none` stands alone"),
        ("record --keep 1MiB -- true", "--rotate-size or --rotate-time makes parts"),
        ("record --name a/b -- true", "`a/b` is no session's name"),
        ("record --pool-size 1GiB -- true", "a program has at most 128MiB"),
        ("disable a:b --filter x", "`kymo filter` changes it"),
        ("recover trace --output x", "a trace is repaired in place"),
    ] {
        std::fs::create_dir_all(place.path("trace")).expect("there is room");
        let told = place.says(&words.split(' ').collect::<Vec<_>>(), 2);
        let command = words.split(' ').next().expect("a word");
        assert!(told.contains(expected) && told.contains(&format!("Usage: kymo {command} ")), "{words}: {told}");
    }
    for (words, expected) in [
        ("record --event net -- true", "`net:*` is all of a provider"),
        ("record --event !net -- true", "`net:*` is all of a provider"),
        ("enable net", "`net:*` is all of a provider"),
        ("record --pool-size 0 -- true", "0 is none"),
        ("record --rotate-size 0B -- true", "0 is none"),
    ] {
        let told = place.says(&words.split(' ').collect::<Vec<_>>(), 2);
        assert!(told.contains(expected), "{words}: {told}");
    }
    assert!(place.says(&["record", "--process", "", "--", "true"], 2).contains("a program has a name or a number"));
    assert!(!place.path("kymo-traces").exists(), "nothing was recorded");
}

#[test]
fn contexts_of_programs_are_asked_for_by_name_and_told_when_there_are_none() {
    let place = Place::new();
    let words = words();
    let mut command = place.kymo(&["record", "--context", "pid,app.request,$app.tenant", "--output", "trace", "--"]);
    let mut program = Program::of(command.args(&words).stderr(Stdio::piped()));
    program.tell("count 3");
    program.say("exit 0");
    let told = text(&program.end().stderr);
    for name in ["request", "tenant"] {
        assert!(told.contains(&format!("no program that was recorded has a context `{name}`")), "{told}");
    }
    assert!(told.contains("recorded 3 events"), "{told}");
}

#[test]
fn what_cannot_be_started_leaves_nothing_and_a_status_like_a_shells() {
    let place = Place::new();
    let write = |name: &str, bytes: &str, mode| {
        std::fs::write(place.path(name), bytes).expect("there is room");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(place.path(name), mode).expect("it is ours");
    };
    write("plain", "text", 0o644);
    write("text", "text", 0o755);
    write("script", "#!/no/such/interpreter\n", 0o755);
    for (command, status, expected) in [
        ("./nothing", 127, "error: ./nothing: No such file or directory"),
        ("nothing-like-this", 127, "error: nothing-like-this: No such file or directory"),
        ("", 127, "error: '': No such file or directory"),
        ("./plain", 126, "`chmod +x` makes"),
        ("./text", 126, "the first line of a script names its interpreter"),
        ("./script", 127, "its interpreter (first line) or its dynamic loader does not"),
        ("/", 126, "error: /: Permission denied"),
    ] {
        let told = place.says(&["record", "--", command], status);
        assert!(told.contains(expected), "{command}: {told}");
        assert!(!place.path("kymo-traces").exists(), "{command} left something");
        place.says(&["record", "--output", "trace", "--", command], status);
        assert!(!place.path("trace").exists(), "{command} left something");
    }
    // What somebody has made stays, and can be used the next time.
    std::fs::create_dir(place.path("trace")).expect("there is room");
    place.says(&["record", "--output", "trace", "--", "./nothing"], 127);
    place.says(&["record", "--output", "trace", "--", "true"], 0);
    assert!(place.says(&["record", "--output", "trace", "--", "true"], 2).contains("a trace has a folder of its own"));
    assert!(place.says(&["record", "--output", "plain", "--", "true"], 2).contains("that is a file, and a trace is"));
}

/// The folder of a trace is told to the recorder as text.
#[test]
fn names_that_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let name = std::ffi::OsStr::from_bytes(b"n\xff");
    let output = place.kymo(&["record", "--output"]).arg(name).args(["--", "true"]).output().expect("it starts");
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(2) && told.contains("whose names are UTF-8"), "{told}");
    // What is recorded may be called anything.
    std::fs::copy("/bin/true", place.path("n").with_file_name(name)).expect("there is room");
    let program = Path::new(".").join(name);
    let output = place.kymo(&["record", "--output", "trace", "--"]).arg(program).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    place.says(&["check", "trace"], 0);
}

#[test]
fn without_a_session_nothing_is_stopped_or_changed() {
    let place = Place::new();
    for words in [&["stop"][..], &["snapshot"], &["enable", "a:*"], &["filter", "x", "--session", "s"]] {
        assert!(place.says(words, 2).contains("no session is recorded now; `kymo record` begins one"), "{words:?}");
    }
    assert_eq!(place.says(&["stop", "--all"], 0), "no session is recorded now\n");
    assert_eq!(place.json(&["stop", "--all", "--json"]), serde_json::json!([]));
    assert_eq!(place.json(&["status", "--json"]), Value::Null);
    assert_eq!(place.json(&["sessions", "--json"]), serde_json::json!([]));
}

/// Somebody ends the recorder, as a machine that is shut down does: the trace is whole, and the command is waited for.
#[test]
fn a_command_whose_recorder_is_ended_goes_on() {
    let place = Place::new();
    let words = words();
    let end = |trace: &str| {
        until(|| place.json(&["sessions", "--json"])[0]["summary"]["events"] == 5);
        let recorder = place.json(&["status", "--json"])["pid"].as_i64().expect("it runs");
        kill_process(Pid::from_raw(recorder as i32).expect("a number"), Signal::TERM).expect("it runs");
        until(|| place.json(&["sessions", "--json"]) == serde_json::json!([]));
        assert_eq!(place.values(&place.path(trace), "test:count"), (0..5).collect::<Vec<_>>());
        place.says(&["check", trace], 0);
    };
    let mut command = place.kymo(&["record", "--output", "one", "--"]);
    let mut program = Program::of(command.args(&words).stderr(Stdio::piped()));
    program.tell("count 5");
    end("one");
    std::thread::sleep(Duration::from_millis(400));
    program.tell("is 0");
    program.say("exit 9");
    let ended = program.end();
    let told = text(&ended.stderr);
    assert!(told.contains("error: the recorder was ended, and session `") && told.contains("/one"), "{told}");
    assert_eq!(ended.status.code(), Some(9), "{told}");

    let mut program = place.program();
    let pid = program.pid.to_string();
    let mut command = place.kymo(&["record", "--output", "two", "--process", &pid]);
    let child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    program.tell("on");
    program.tell("count 5");
    end("two");
    let (status, told) = ends(child);
    assert!(status == Some(1) && told.contains("the events recorded until then are in "), "{status:?}: {told}");
}

/// A recorder that ends just now is none: whoever asks meanwhile hears that there is no session, and nothing else.
#[test]
fn a_recorder_that_ends_just_now_is_nobody() {
    let place = Place::new();
    place.says(&["record", "--output", "trace", "--", "true"], 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(900) {
        place.says(&["enable", "a:*"], 2);
        std::thread::sleep(Duration::from_millis(1));
    }
    // It stays for half a second behind the last one.
    for wait in 480..520 {
        if wait % 8 == 0 {
            std::thread::sleep(Duration::from_millis(wait));
        }
        let said = place.says(&["status"], 0);
        assert!(said.contains("recorder  process") || said.contains("no session is recorded now"), "{said}");
    }
}

#[test]
fn a_recorder_that_cannot_listen_says_where_and_what_helps() {
    let place = Place::new();
    let long = place.path(&"x".repeat(100));
    std::fs::create_dir(&long).expect("there is room");
    for words in [&["record", "--", "true"][..], &["status"], &["doctor"]] {
        let output = place.kymo(words).env("XDG_RUNTIME_DIR", &long).output().expect("it starts");
        let told = text(&output.stdout) + &text(&output.stderr);
        assert!(
            !output.status.success() && told.contains("set XDG_RUNTIME_DIR to a folder with a shorter path"),
            "{told}"
        );
    }
    // A folder where the lock is to be is no lock.
    std::fs::create_dir_all(place.path("kymo/recorder.lock")).expect("there is room");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(place.path("kymo"), mode).expect("it is ours");
    let told = place.says(&["record", "--", "true"], 1);
    assert!(
        told.contains("the recorder does not start: ") && told.contains("kymo/recorder.lock: Is a directory"),
        "{told}"
    );
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

fn ends(child: Child) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = child.wait_with_output().expect("it ends");
    (status.code(), text(&stderr))
}

/// As `timeout` does it: at once, to the process and to its group.
#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let place = Place::new();
    let begin = |words: &[&str]| {
        let mut command = place.kymo(words);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        until(|| !place.json(&["sessions", "--json"]).as_array().is_none_or(Vec::is_empty));
        child
    };
    let child = begin(&["record", "--output", "one", "--", "sleep", "60"]);
    // Until it runs, signals are not its own.
    let pid = child.id().to_string();
    until(|| Command::new("pgrep").args(["-P", &pid, "sleep"]).output().is_ok_and(|found| found.status.success()));
    (0..2).for_each(|_| signal(&child, Signal::TERM));
    let (status, told) = ends(child);
    assert!(status == Some(128 + 15) && told.contains("recorded 0 events"), "{status:?}: {told}");

    let child = begin(&["record", "--output", "two"]);
    (0..2).for_each(|_| signal(&child, Signal::INT));
    let (status, told) = ends(child);
    assert!(status == Some(0) && told.contains("recorded 0 events"), "{status:?}: {told}");
}

/// As Ctrl-C on a terminal does it: what has ended the program does not take away what it had written.
#[test]
fn a_signal_that_ends_a_command_leaves_its_last_words() {
    use std::os::unix::process::CommandExt;
    let place = Place::new();
    for number in 0..8 {
        let output = format!("trace-{number}");
        let mut command = place.kymo(&["record", "--capture-output", "--output", &output, "--", "sh", "-c"]);
        command.args(["echo words; : > ready; exec sleep 60"]).process_group(0);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        until(|| place.path("ready").exists());
        std::fs::remove_file(place.path("ready")).expect("it is there");
        rustix::process::kill_process_group(Pid::from_child(&child), Signal::INT).expect("it runs");
        let (status, told) = ends(child);
        assert!(status == Some(128 + 2) && told.contains("output    1 line"), "{status:?}: {told}");
        assert!(!told.contains("problem"), "{told}");
    }
}

/// Whoever asks again a while later does not wait for anything.
#[test]
fn a_second_signal_ends_what_waits() {
    let place = Place::new();
    let mut command = place.kymo(&["record", "--output", "trace"]);
    let child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    until(|| !place.json(&["sessions", "--json"]).as_array().is_none_or(Vec::is_empty));
    let recorder = place.json(&["status", "--json"])["pid"].as_i64().expect("it runs");
    let recorder = Pid::from_raw(recorder as i32).expect("a number");
    kill_process(recorder, Signal::STOP).expect("it runs");
    signal(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(500));
    let began = Instant::now();
    signal(&child, Signal::INT);
    let (status, told) = ends(child);
    kill_process(recorder, Signal::CONT).expect("it runs");
    assert!(status == Some(128 + 2) && began.elapsed() < Duration::from_secs(10), "{status:?}: {told}");
}

/// A program that takes Ctrl-C its own way is not left alone with it.
#[test]
fn signals_are_the_commands_own_as_often_as_they_come() {
    let place = Place::new();
    let script =
        "n=0; trap 'n=$((n+1)); echo $n > got; [ $n -lt 2 ] || exit 7' INT; : > ready; while :; do sleep 0.02; done";
    let mut command = place.kymo(&["record", "--output", "trace", "--", "sh", "-c", script]);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    until(|| place.path("ready").exists());
    signal(&child, Signal::INT);
    until(|| std::fs::read_to_string(place.path("got")).is_ok_and(|got| got == "1\n"));
    std::thread::sleep(Duration::from_millis(400));
    signal(&child, Signal::INT);
    let (status, told) = ends(child);
    assert!(status == Some(7) && told.contains("recorded 0 events"), "{status:?}: {told}");
}

#[test]
fn a_number_of_nobody_is_told() {
    let place = Place::new();
    let mut other = Command::new("sleep").arg("60").spawn().expect("it starts");
    let pid = other.id().to_string();
    for (number, expected) in [
        ("4194305", "warning: no process has the number 4194305"),
        (&pid, &format!("warning: process {pid} (sleep) has no memory for events")),
    ] {
        let told = place.says(&["record", "--process", number, "--duration", "1ms", "--output", number], 0);
        assert!(told.contains(expected) && told.contains("is called so, or has that number"), "{told}");
    }
    other.kill().and_then(|()| other.wait()).expect("it runs");
    let program = place.program();
    let told = place.says(&["record", "--process", &program.pid.to_string(), "--duration", "1ms"], 0);
    assert!(!told.contains("warning: "), "{told}");
}

/// What was recorded is there, and the status is the program's, when nobody hears of it: a terminal that was closed, a full disk.
#[test]
fn a_status_is_the_commands_whoever_reads_of_it() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().expect("pipes can be made");
    drop(reader);
    let mut command = place.kymo(&["record", "--output", "one", "--", "sh", "-c", "exit 7"]);
    assert_eq!(command.stderr(writer).status().expect("it starts").code(), Some(7));
    place.says(&["check", "one"], 0);
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let mut command = place.kymo(&["record", "--json", "--output", "two", "--", "sh", "-c", "exit 7"]);
    let output = command.stdout(full()).stderr(Stdio::piped()).spawn().expect("it starts").wait_with_output();
    let output = output.expect("it ends");
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(7) && told.contains("standard output: No space left"), "{told}");
    place.says(&["check", "two"], 0);
    let mut command = place.kymo(&["record", "--json", "--duration", "10ms", "--output", "three"]);
    assert_eq!(command.stdout(full()).stderr(full()).status().expect("it starts").code(), Some(1));
}

#[test]
fn a_program_that_goes_on_behind_its_command_is_told() {
    let place = Place::new();
    let script = "exec 3<&0; \"$@\" <&3 & while [ ! -e go ]; do sleep 0.01; done; exit 3";
    let words = words();
    let mut command = place.kymo(&["record", "--output", "trace", "--", "sh", "-c", script, "sh"]);
    let mut program = Program::of(command.args(&words).stderr(Stdio::piped()));
    program.tell("count 5");
    place.waits_for_program();
    std::fs::write(place.path("go"), []).expect("there is room");
    program.child.wait().expect("it ends, and the program does not");
    let told = program.end();
    let (status, told) = (told.status.code(), text(&told.stderr));
    assert!(told.contains("recorded 5 events of 1 program"), "{told}");
    assert!(told.contains("1 program that `sh` has started goes on, and is not recorded any more"), "{told}");
    assert_eq!(status, Some(3), "{told}");
    // A session that somebody has ended before knows nothing of its end.
    let mut command = place.kymo(&["record", "--name", "s", "--output", "stopped", "--"]);
    let mut program = Program::of(command.args(self::words()).stderr(Stdio::piped()));
    program.tell("count 5");
    place.says(&["stop", "s"], 0);
    program.say("exit 0");
    let told = text(&program.end().stderr);
    assert!(told.contains("recorded 5 events") && !told.contains("goes on"), "{told}");
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..5).collect::<Vec<_>>());
}

#[test]
fn a_flight_recorder_that_ends_says_what_it_has_written() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let begin = || {
        place.says(&["record", "--mode", "overwrite", "--detach", "-n", "s", "-p", &pid, "--output", "trace"], 0);
    };
    begin();
    program.tell("on");
    program.tell("count 5");
    let told = place.says(&["stop", "s"], 0);
    assert!(
        told.contains("kept the events of 1 program in memory for ") && told.contains("0 snapshots taken"),
        "{told}"
    );
    assert!(told.contains("`kymo snapshot` does") && !told.contains("trace"), "{told}");
    begin();
    program.tell("on");
    program.tell("count 5");
    std::thread::sleep(Duration::from_millis(20));
    std::fs::write(place.path("file"), []).expect("there is room");
    let told = place.says(&["snapshot", "s", "--output", "file"], 2);
    assert!(told.contains("/file: that is a file, and a trace is a folder"), "{told}");
    let snapshot = place.json(&["snapshot", "s", "--json"]);
    assert!(snapshot["milliseconds"].as_u64() >= Some(20) && snapshot["snapshots"].is_null(), "{snapshot}");
    let stopped = place.json(&["stop", "s", "--json"]);
    assert_eq!((&stopped[0]["snapshots"], &stopped[0]["running"]), (&1.into(), &1.into()), "{stopped}");
}

#[test]
fn a_program_without_room_for_its_memory_is_not_called_one_without_events() {
    let place = Place::new();
    let Some(memory) = Disk::mount(place.path("memory")) else { return };
    memory.fill();
    let mut command = place.kymo(&["record", "--output", "trace", "--", "sh", "-c", "exit 4"]);
    let ended = command.env("XDG_RUNTIME_DIR", &memory.0).output().expect("it starts");
    let told = text(&ended.stderr);
    assert!(!told.contains("nor what it started has events"), "{told}");
    let before = told.split("recorded 0 events").next().expect("it begins");
    assert!(
        before.contains("warning: programs may have no room for their events, 0.0 KiB of 1.0 MiB are free"),
        "{told}"
    );
    assert!(
        told.contains("note: programs may have had no room") && told.contains("mount -o remount,size=1G"),
        "{told}"
    );
    assert!(told.contains(&format!("remount,size=1G {},", memory.0.display())), "where it is mounted: {told}");
    assert_eq!(ended.status.code(), Some(4), "{told}");
}

/// All names of members.
fn members(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                all.insert(name.clone());
                // Names of sessions, and what is written down for ever.
                if name != "sessions" || !value.is_object() {
                    members(value, all);
                }
            }
        }
        Value::Array(array) => array.iter().for_each(|value| members(value, all)),
        _ => {}
    }
}

/// The reference names all that machines are told, and people are told the same.
#[test]
fn what_machines_are_told_is_written_down_and_is_what_people_are_told() {
    let place = Place::new();
    let mut program = place.program();
    let begun =
        place.json(&["record", "--detach", "--name", "s", "-e", "test:*", "-F", "value < 5", "--json", "-o", "trace"]);
    program.tell("on");
    program.tell("count 10");
    until(|| place.json(&["sessions", "--json"])[0]["summary"]["events"] == 5);
    let sessions = place.json(&["sessions", "--json"]);
    let (status, told) = (place.json(&["status", "--json"]), place.says(&["status", "--events"], 0));
    let taken = place.json(&["enable", "test:cuont", "--json"]);
    let stopped = place.json(&["stop", "--json"]);
    let recorded = place.json(&["record", "--json", "--capture-output", "--", "sh", "-c", "echo line >&2"]);
    let doctor = place.json(&["doctor", "--json"]);
    let recovered = place.json(&["recover", "trace", "--json"]);

    let program_status = &status["programs"][0];
    let text_of = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for fact in [
        &status["pid"],
        &status["folder"],
        &sessions[0]["summary"]["session"],
        &sessions[0]["options"]["output"],
        &program_status["pid"],
        &program_status["name"],
        &program_status["path"],
        &program_status["lanes"],
    ] {
        assert!(told.contains(&text_of(fact)), "{fact}: {told}");
    }
    let events = program_status["events"].as_array().expect("it has some");
    for event in events {
        let state = if event["is_on"] == true { "on " } else { "off" };
        assert!(told.contains(&format!("{state}  {}", text_of(&event["name"]))), "{event}: {told}");
    }
    let rule = &sessions[0]["options"]["selection"]["steps"][0];
    assert_eq!((&rule["act"], &rule["rule"]["filter"]), (&"enable".into(), &"value < 5".into()));
    assert!(told.contains("enable    test:*, if value < 5"), "{told}");
    assert_eq!(taken["unmatched"], serde_json::json!([["test:cuont", ["test:count"]]]));
    assert_eq!(recorded["captured"], serde_json::json!({"lines": 1, "cut": 0}));

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/record.md");
    let page = std::fs::read_to_string(page).expect("it is there");
    let (_, page) = page.split_once("\n## For machines\n").expect("it says so");
    let mut all = BTreeSet::new();
    for said in [&begun, &sessions, &status, &taken, &stopped, &recorded, &doctor, &recovered["sessions"]] {
        members(said, &mut all);
    }
    all.extend(recovered.as_object().expect("one").keys().cloned());
    assert!(all.len() > 60, "{all:?}");
    let missing: Vec<_> = all.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/record.md does not name {missing:?}");
}
