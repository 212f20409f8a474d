//! Programs that start while a session runs are recorded from their first event on; all other reasons why a trace lacks events are in the summary.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::recorded::{Place, Program, until, words};

fn recorder(place: &Place) -> Pid {
    let recorder = place.json(&["status", "--json"])["pid"].as_i64().expect("it runs");
    Pid::from_raw(recorder as i32).expect("a number")
}

fn stop(place: &Place) -> Value {
    let summaries = place.json(&["stop", "--all", "--json"]);
    summaries[0].clone()
}

/// As short as programs can be: they are over before any recorder has seen them.
#[test]
fn short_programs_lose_nothing() {
    let place = Place::new();
    place.says(&["record", "--detach", "--output", "trace"], 0);
    for number in 0..10 {
        let mut program = place.program();
        program.tell("is 1");
        program.tell(&format!("from {}", 2000 * number));
        program.tell("count 2000");
        program.say("exit 0");
        program.end();
    }
    let mut program = place.program();
    program.tell("late-is 1");
    program.tell("child-is 1");
    drop(program);
    let summary = stop(&place);
    assert_eq!((&summary["events"], &summary["late_programs"]), (&20_000.into(), &0.into()), "{summary}");
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..20_000).collect::<Vec<_>>());
    // The published selection is gone with the session.
    let mut program = place.program();
    program.tell("is 0");
}

/// A program has as much memory as its session wants from the first event on, also before the recorder knows it.
#[test]
fn memory_is_as_large_as_the_session_wants_it_at_once() {
    let place = Place::new();
    for (number, (size, loses)) in [("64MiB", false), ("1MiB", true)].into_iter().enumerate() {
        let output = format!("trace-{number}");
        place.says(&["record", "--detach", "--output", &output, "--pool-size", size], 0);
        let recorder = recorder(&place);
        kill_process(recorder, Signal::STOP).expect("it runs");
        // More than 16 MiB, which a program has if no session says anything.
        let mut program = place.program();
        program.tell("is 1");
        program.tell("count 1500000");
        program.say("exit 0");
        program.end();
        kill_process(recorder, Signal::CONT).expect("it is there");
        let summary = stop(&place);
        let counts = [&summary["events"], &summary["lost"]["full"]].map(|count| count.as_u64().expect("a number"));
        assert_eq!((counts.iter().sum::<u64>(), counts[1] > 0), (1_500_000, loses), "{size}: {summary}");
        // Where memory is small, it is small from the begin on.
        assert!(!loses || counts[0] < 200_000, "{summary}");
    }
}

/// A program begins with the events on that the session wants, and no others.
#[test]
fn programs_begin_as_sessions_want_them() {
    let place = Place::new();
    for (words, is_on, is_late_on) in [
        (&["--event", "late:*"][..], 0, 1),
        (&["--event", "*", "--event", "!late:*"], 1, 0),
        (&["--level", "info"], 1, 1),
        (&["--level", "warning"], 0, 0),
        (&["--event", "*:count", "--filter", "value > 3"], 1, 1),
        (&["--process", "missing-*"], 0, 0),
        (&["--process", "missing-*", "--process", "*suite*"], 1, 1),
    ] {
        let output = format!("trace-{}", words.join("").replace(['*', '!', ':', ','], ""));
        place.says(&[&["record", "--detach", "--output", &output][..], words].concat(), 0);
        let mut program = place.program();
        program.tell(&format!("is {is_on}"));
        program.tell(&format!("late-is {is_late_on}"));
        drop(program);
        place.says(&["stop", "--all"], 0);
    }
    // A selection that has changed is published too.
    place.says(&["record", "--detach", "--output", "changed", "--event", "late:*"], 0);
    // A warning: no program has the event yet.
    place.says(&["enable", "test:count"], 1);
    let mut program = place.program();
    program.tell("is 1");
    place.says(&["disable", "late:*"], 1);
    let mut program = place.program();
    program.tell("late-is 0");
}

/// Plugins that a program loads later, after selections have changed: their first events are recorded as the sessions want
/// them now, in programs that began before a session, with it, and for it.
#[test]
fn plugins_begin_as_sessions_want_them_now() {
    let place = Place::new();
    let mut before = place.program();
    place.says(&["record", "--detach", "--name", "one", "--output", "one", "--event", "test:*"], 0);
    let mut with = place.program();
    let mut command = place.kymo(&["record", "--output", "own", "--"]);
    let mut own = Program::of(command.args(words()).stderr(Stdio::null()));
    [&mut before, &mut with, &mut own].into_iter().for_each(|program| program.tell("on"));
    // Another session wants the plugin, and the first ones do not.
    place.says(&["record", "--detach", "--name", "two", "--output", "two", "--event", "late:*"], 0);
    [&mut before, &mut with, &mut own].into_iter().for_each(|program| program.tell("late-is 1"));
    own.say("exit 0");
    own.end();
    place.says(&["stop", "two"], 0);
    // Of the sessions that are left, none does.
    let mut other = place.program();
    other.tell("late-is 0");
    place.says(&["stop", "--all"], 0);
}

/// Two sessions cannot have one folder, also while neither has a file there.
#[test]
fn two_sessions_have_two_folders() {
    let place = Place::new();
    place.says(&["record", "--detach", "--name", "one", "--output", "trace"], 0);
    for output in ["trace", "trace/inside", "."] {
        let told = place.says(&["record", "--detach", "--name", "two", "--output", output], 2);
        assert!(told.contains("session `one` writes to") || told.contains("there is something in it"), "{told}");
    }
    place.says(&["record", "--detach", "--name", "two", "--output", "other"], 0);
}

/// A filter decides on the events that a program records before the recorder has put it there.
#[test]
fn filters_hold_from_the_first_event_on() {
    let place = Place::new();
    place.says(&["record", "--detach", "--output", "trace", "--filter", "value >= 1990 && cpu_id < 4096"], 0);
    let mut program = place.program();
    program.tell("count 2000");
    program.say("exit 0");
    program.end();
    assert_eq!(stop(&place)["events"], 10);
    assert_eq!(place.values(&place.path("trace"), "test:count"), (1990..2000).collect::<Vec<_>>());
}

#[test]
fn a_program_that_cannot_read_the_selection_is_told() {
    let place = Place::new();
    place.says(&["record", "--detach", "--output", "trace"], 0);
    std::fs::remove_file(place.path("kymo/own.selection")).expect("it is published");
    let mut program = place.program();
    program.tell("on");
    program.tell("count 5");
    program.say("exit 0");
    program.end();
    let told = place.says(&["stop"], 0);
    assert!(told.contains("what 1 program did before the recorder found them is not known"), "{told}");
}

/// After a recorder was killed, no process drains programs: they begin as without a session.
#[test]
fn a_dead_recorders_selection_counts_for_nothing() {
    let place = Place::new();
    place.says(&["record", "--detach", "--output", "trace"], 0);
    let recorder = recorder(&place);
    kill_process(recorder, Signal::KILL).expect("it runs");
    // Its lock is gone once all of its threads are: the first one may be a zombie before the others have closed their files.
    let process = format!("/proc/{}", recorder.as_raw_nonzero());
    let is_zombie = || std::fs::read_to_string(format!("{process}/stat")).map_or(true, |stat| stat.contains(") Z "));
    let is_alone = || std::fs::read_dir(format!("{process}/task")).map_or(true, |threads| threads.count() <= 1);
    until(|| is_zombie() && is_alone());
    assert!(place.path("kymo/own.selection").exists());
    let mut program = place.program();
    program.tell("is 0");
    // The next recorder goes on, and publishes it again.
    place.says(&["status"], 0);
    program.tell("on");
    program.tell("count 5");
    let mut other = place.program();
    other.tell("is 1");
    drop((program, other));
    let summary = stop(&place);
    assert_eq!((&summary["events"], &summary["late_programs"]), (&5.into(), &1.into()), "{summary}");
}

/// As with `env -i`: the variables of `kymo record` are gone from the environment of its command.
#[test]
fn descendants_belong_to_a_session_whatever_their_environment() {
    let place = Place::new();
    let all = ["record", "--output", "trace", "--", "sh", "-c", "\"$@\"; exit $?", "sh", "env"];
    let cleared = ["-u", "KYMO_SESSION", "-u", "KYMO_SESSIONS", "-u", "KYMO_CONTEXTS"];
    let mut command = place.kymo(&[&all[..], &cleared].concat());
    let mut program = Program::of(command.args(words()).stderr(Stdio::piped()));
    program.tell("is 1");
    program.tell("count 7");
    program.say("exit 0");
    let told = String::from_utf8_lossy(&program.end().stderr).into_owned();
    assert!(told.contains("recorded 7 events of 1 program") && told.contains("losses    none"), "{told}");
    // Others are none of its business.
    place.says(&["record", "--detach", "--output", "tagged", "--event", "no:such"], 0);
    let mut other = place.program();
    other.tell("is 0");
}

/// Every command says within seconds that the recorder has been stopped, and ends.
#[test]
fn a_stopped_recorder_is_told_and_not_waited_for() {
    let place = Place::new();
    place.says(&["record", "--detach", "--output", "trace"], 0);
    let recorder = recorder(&place);
    kill_process(recorder, Signal::STOP).expect("it runs");
    let began = Instant::now();
    let all: Vec<_> = [
        &["status"][..],
        &["sessions"],
        &["stop"],
        &["stop", "--all"],
        &["enable", "a:b"],
        &["disable", "a:b"],
        &["filter", "x == 1", "--session", "kymo"],
        &["snapshot"],
        &["record", "--output", "other", "--", "true"],
        &["record", "--detach", "--output", "another"],
    ]
    .map(|words| {
        let mut command = place.kymo(words);
        (words, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"))
    })
    .into();
    for (words, child) in all {
        let output = child.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let pid = recorder.as_raw_nonzero();
        assert!(told.contains(&format!("process {pid} has been stopped")), "{words:?}: {told}");
        assert!(output.status.code().is_some_and(|code| code != 0), "{words:?}: {told}");
    }
    // Not a limit of time, but far from all that would be a wait without an end.
    assert!(began.elapsed() < Duration::from_secs(100));
    kill_process(recorder, Signal::CONT).expect("it is there");
    assert_eq!(stop(&place)["has_ended"], true);
}

/// A file of the trace is removed while it is written: its events are counted as lost.
#[test]
fn removed_files_are_told() {
    let place = Place::new();
    place.says(&["record", "--detach", "--output", "trace"], 0);
    let mut program = place.program();
    program.tell("count 100");
    until(|| place.json(&["sessions", "--json"])[0]["summary"]["events"] == 100);
    std::fs::remove_file(place.path("trace/lane_1")).expect("it is there");
    until(|| place.json(&["sessions", "--json"])[0]["summary"]["lost"]["unwritten"] == 100);
    program.tell("count 50");
    drop(program);
    let summary = stop(&place);
    assert_eq!((&summary["events"], &summary["lost"]["unwritten"]), (&50.into(), &100.into()), "{summary}");
    let problems = summary["problems"].to_string();
    assert!(
        problems.contains("lane_1") && problems.contains("with 100 events, which are counted as lost"),
        "{summary}"
    );
    assert_eq!(place.values(&place.path("trace"), "test:count"), (100..150).collect::<Vec<_>>());
    assert!(place.says(&["info", "trace"], 0).contains("100"), "the trace says it too");
    // Without its metadata no trace can be read, which is a problem, and no loss of events.
    place.says(&["record", "--detach", "--output", "metadata"], 0);
    let mut program = place.program();
    program.tell("count 20");
    until(|| place.json(&["sessions", "--json"])[0]["summary"]["events"] == 20);
    std::fs::remove_file(place.path("metadata/metadata")).expect("it is there");
    drop(program);
    assert!(stop(&place)["problems"].to_string().contains("metadata: No such file"));
    // The whole folder.
    place.says(&["record", "--detach", "--output", "folder"], 0);
    let mut program = place.program();
    program.tell("count 30");
    until(|| place.json(&["sessions", "--json"])[0]["summary"]["events"] == 30);
    std::fs::remove_dir_all(place.path("folder")).expect("it is there");
    program.tell("count 10");
    drop(program);
    let summary = stop(&place);
    assert_eq!((&summary["events"], &summary["lost"]["unwritten"]), (&0.into(), &40.into()), "{summary}");
}

/// A definition that no recorder can use costs its own events and no others, and the summary names it.
#[test]
fn a_refused_definition_costs_no_other_events() {
    let place = Place::new();
    let mut command = place.kymo(&["record", "--json", "--output", "trace", "--"]);
    let mut program = Program::of(command.args(words()).stderr(Stdio::piped()));
    program.tell("count 10");
    program.tell("twice 1000");
    program.tell("count 1990");
    program.say("exit 0");
    let output = program.end();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{output:?}"));
    let summary: Value = serde_json::from_str(json).expect("it is JSON");
    assert_eq!((&summary["events"], &summary["damaged_bytes"]), (&2000.into(), &0.into()), "{summary}");
    let lost = summary["lost"]["undefined"].as_u64().expect("a number");
    assert!((1..=1000).contains(&lost), "{summary}");
    let problem = "event `test:twice`: line 4, column 7: there is a field of that name";
    assert!(summary["problems"].to_string().contains(problem), "{summary}");
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..2000).collect::<Vec<_>>());
    assert!(place.says(&["print", "--event", "kymo:lost", "trace"], 0).contains("undefined"));
}

/// A program that defines more than there is room for: the summary says so, and its other events are there.
#[test]
fn too_many_definitions_are_told() {
    let place = Place::new();
    let mut command = place.kymo(&["record", "--output", "trace", "--"]);
    let mut program = Program::of(command.args(words()).stderr(Stdio::piped()));
    program.tell("fill 80");
    program.tell("count 5");
    program.say("exit 0");
    let told = String::from_utf8_lossy(&program.end().stderr).into_owned();
    assert!(told.contains("recorded 5 events") && told.contains("more events than there is room for"), "{told}");
}

/// A flight recorder keeps the events of programs that have ended; it does not say that those go on.
#[test]
fn what_has_ended_does_not_go_on() {
    let place = Place::new();
    let mut command = place.kymo(&["record", "--json", "--mode", "overwrite", "--output", "trace", "--"]);
    let mut program = Program::of(command.args(words()).stderr(Stdio::piped()));
    program.tell("count 10");
    program.say("exit 0");
    let output = program.end();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{output:?}"));
    let summary: Value = serde_json::from_str(json).expect("it is JSON");
    assert_eq!((&summary["events"], &summary["running"]), (&10.into(), &0.into()), "{summary}");
}

/// Programs of another user, whose folder is there or not.
#[test]
fn programs_of_other_users_lose_nothing() {
    if !rustix::process::geteuid().is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("NOT TESTED: programs of another user, as this is not root or there is no `setpriv`");
        return;
    }
    // It shows programs to the recorders of all places.
    let place = Place::alone();
    let user = "54321";
    let _ = std::fs::remove_dir_all(format!("/dev/shm/kymo-{user}"));
    let begin = |words: &[String]| {
        let mut command = Command::new("setpriv");
        let user_arguments = [format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()];
        command
            .args(user_arguments)
            .args(words)
            .current_dir("/")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("KYMO_SESSION");
        command.stderr(Stdio::null());
        Program::of(&mut command)
    };
    // The user has a process, so that root's recorder makes the folder.
    let Ok(mut present) = Command::new("setpriv")
        .args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()])
        .args(["sleep", "1000"])
        .spawn()
    else {
        return;
    };
    until(|| {
        std::fs::metadata(format!("/proc/{}", present.id()))
            .is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found).to_string() == user)
    });
    place.says(&["record", "--detach", "--output", "trace", "--process", "*suite*"], 0);
    for number in 0..3 {
        let mut program = begin(&words());
        program.tell("is 1");
        program.tell(&format!("from {}", 1000 * number));
        program.tell("count 1000");
        program.say("exit 0");
        program.end();
    }
    let summary = stop(&place);
    let _ = (present.kill(), present.wait());
    let _ = std::fs::remove_dir_all(format!("/dev/shm/kymo-{user}"));
    assert_eq!((&summary["events"], &summary["late_programs"]), (&3000.into(), &0.into()), "{summary}");
    assert_eq!(summary["problems"], serde_json::json!([]), "{summary}");
}
