//! Programs are recorded: commands, programs that run already, sessions side by side, what is changed meanwhile.

use std::process::Stdio;

use crate::recorded::{self, Place, Program, words};

/// Starts `kymo` with this test's program as its command.
fn with_command(place: &Place, options: &[&str]) -> Program {
    let words = words();
    Program::of(place.kymo(&["record"]).args(options).arg("--").args(&words).stderr(Stdio::piped()))
}

#[test]
fn a_command_is_recorded_from_its_first_event_on_and_its_status_is_told() {
    let place = Place::new();
    let mut program = with_command(&place, &["--output", "trace"]);
    program.tell("count 1000");
    program.tell("other 5");
    program.say("exit 3");
    let ended = program.end();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(3), "{told}");
    assert!(told.contains("recorded 1,005 events of 1 program") && told.contains("losses    none"), "{told}");
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..1000).collect::<Vec<_>>());
    assert_eq!(place.values(&place.path("trace"), "test:other"), (0..5).collect::<Vec<_>>());
    place.says(&["check", "trace"], 0);
}

#[test]
fn stamps_of_the_monotonic_clock_are_read_by_who_knows_no_seconds() {
    let place = Place::new();
    let (before, words) = (std::time::SystemTime::now(), words());
    let mut command = place.kymo(&["record", "--output", "trace", "--"]);
    let mut program = Program::of(command.args(&words).env("KYMO_CLOCK", "monotonic").stderr(Stdio::piped()));
    program.tell("count 100");
    program.say("exit 0");
    program.end();
    let metadata = std::fs::read_to_string(place.path("trace/monotonic/metadata")).expect("it is there");
    let number = |name: &str| -> u64 {
        let rest = metadata.split_once(&format!("\t{name} = ")).unwrap_or_else(|| panic!("{name}: {metadata}")).1;
        rest.split_once(';').expect("it ends").0.parse().expect("a number")
    };
    assert_eq!((number("freq"), number("offset_s")), (1_000_000_000, 0));
    let begun = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(number("offset"));
    let distance = begun.duration_since(before).or_else(|_| before.duration_since(begun)).expect("one is later");
    assert!(distance.as_secs() < 60, "{metadata}");
    let ours = place.says(&["print", "--clock-date", "--clock-gmt", "trace"], 0);
    assert_eq!(ours.lines().filter(|line| line.contains(" test:count: ")).count(), 100, "{ours}");
    let Ok(theirs) = place.command("babeltrace2").args(["--clock-date", "--clock-gmt", "trace"]).output() else {
        return eprintln!("NOT TESTED: babeltrace2 is not there");
    };
    assert!(theirs.stderr.is_empty(), "{}", String::from_utf8_lossy(&theirs.stderr));
    let difference = kymo_cases::same::difference(&String::from_utf8_lossy(&theirs.stdout), &ours);
    assert!(difference.is_none(), "babeltrace2 prints something else: {}", difference.unwrap_or_default());
}

#[test]
fn a_command_that_dies_is_recorded_up_to_its_end() {
    let place = Place::new();
    let mut program = with_command(&place, &["--output", "trace", "--event", "test:*", "--event", "!*:other"]);
    program.tell("count 100");
    program.tell("other 5");
    program.say("die");
    let ended = program.end();
    assert_eq!(ended.status.code(), Some(128 + 6), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(place.values(&place.path("trace"), "test:*"), (0..100).collect::<Vec<_>>());
}

#[test]
fn what_a_command_defines_and_starts_later_is_on_as_long_as_its_session_lasts() {
    let place = Place::new();
    let mut program = with_command(&place, &["--name", "s", "--output", "trace"]);
    place.waits_for_program();
    program.tell("late-is 1");
    program.tell("child-is 1");
    place.says(&["stop", "s"], 0);
    program.tell("off");
    program.tell("child-is 0");
    program.say("exit 0");
    program.end();

    let mut program = with_command(&place, &["--name", "t", "--output", "trace-2"]);
    place.waits_for_program();
    place.says(&["stop", "t"], 0);
    program.tell("late-is 0");
    program.say("exit 0");
    program.end();
}

/// A session that wants other programs than its command leaves that alone.
#[test]
fn a_command_that_its_own_session_does_not_want_is_off() {
    let place = Place::new();
    let mut program = with_command(&place, &["--process", "nothing", "--output", "trace"]);
    program.tell("is 0");
    program.tell("late-is 0");
    program.say("exit 0");
    program.end();
}

#[test]
fn calls_with_a_number_end_anywhere_and_those_without_on_their_thread() {
    let place = Place::new();
    let mut program = with_command(&place, &["--output", "trace"]);
    program.tell("calls");
    program.say("exit 0");
    program.end();
    let said = place.says(&["pairs", "trace"], 0);
    // Intervals and, behind all that is told of their times, those that never ended and those whose begin is missing.
    let all: Vec<&str> = said.lines().nth(2).expect("it is a table").split_whitespace().collect();
    assert!(all.first() == Some(&"4") && all.ends_with(&["0", "0", "0", "0", "0"]), "{said}");
    for name in ["open", "far"] {
        assert!(said.lines().any(|line| line.split_whitespace().take(2).eq([name, "2"])), "{said}");
    }
}

#[test]
fn commands_that_are_not_there_are_not_started() {
    let place = Place::new();
    let said = place.says(&["record", "--", "./nothing"], 127);
    assert!(said.contains("error: ./nothing: No such file"), "{said}");
    let said = place.says(&["record", "--filter", "value ==", "--", "true"], 2);
    assert!(said.contains("error: found the end, expected a value") && said.contains("\n    value ==\n"), "{said}");
}

#[test]
fn what_is_recorded_is_changed_while_it_is() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let words =
        ["record", "--name", "a", "--detach", "--process", &pid, "--event", "test:nothing", "--output", "trace"];
    place.says(&words, 0);
    let said = place.says(&["enable", "test:cuont"], 1);
    assert!(said.contains("did you mean `test:count`?"), "{said}");
    let said = place.says(&["enable", "test:count", "--filter", "vlaue > 3"], 2);
    assert!(said.contains("no class of events has `vlaue`") && said.contains("there is `value`"), "{said}");
    let said = place.says(&["enable", "test:count", "--process", &pid], 0);
    assert!(said.contains("session a: 1 event of 1 program is recorded"), "{said}");
    program.tell("on");
    program.tell("count 10");
    place.says(&["filter", "value >= 15", "--session", "a", "--event", "test:count"], 0);
    program.tell("count 10");
    place.says(&["disable", "test:count"], 0);
    program.tell("off");
    program.tell("count 10");
    place.says(&["enable", "late:*", "--level", "info"], 1);
    program.tell("late 3");
    place.says(&["stop", "a"], 0);
    let expected: Vec<u64> = (0..10).chain(15..20).collect();
    assert_eq!(place.values(&place.path("trace"), "test:count"), expected);
    assert_eq!(place.values(&place.path("trace"), "late:count"), [0, 1, 2]);
}

#[test]
fn sessions_side_by_side_have_each_what_it_selects() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let begin = |name: &str, more: &[&str]| {
        let output = format!("{name}-trace");
        let fixed = ["record", "--detach", "--name", name, "--process", &pid, "--output", &output];
        place.says(&[&fixed[..], more].concat(), 0);
    };
    begin("important", &["--level", "info"]);
    begin("hosts", &["--event", "test:other", "--filter", "host == \"h3\" && $ctx.vpid > 0"]);
    program.tell("on");
    program.tell("others-on");
    program.tell("count 20");
    program.tell("other 20");
    let said = place.says(&["stop"], 2);
    assert!(said.contains("there are several sessions, and one has to be named: important, hosts"), "{said}");
    place.says(&["stop", "important"], 0);
    program.tell("off");
    program.tell("other 10");
    place.says(&["stop", "hosts"], 0);
    assert_eq!(place.values(&place.path("important-trace"), "test:*"), (0..20).collect::<Vec<_>>());
    assert_eq!(place.values(&place.path("hosts-trace"), "test:*"), [3, 13, 23]);
}

#[test]
fn a_trace_is_followed_while_it_is_recorded_up_to_its_end() {
    let place = Place::new();
    let mut program = with_command(&place, &["--output", "trace"]);
    program.tell("count 100");
    recorded::until(|| place.path("trace/.kymo-live").exists());
    let mut follow = place.kymo(&["print", "--follow", "trace"]);
    let follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    program.tell("count 900");
    program.say("exit 0");
    program.end();
    let followed = follow.wait_with_output().expect("it ends");
    assert!(followed.status.success(), "{}", String::from_utf8_lossy(&followed.stderr));
    let followed = String::from_utf8_lossy(&followed.stdout).into_owned();
    assert_eq!(followed, place.says(&["print", "trace"], 0));
    assert_eq!(followed.matches("test:count").count(), 1000);
}

#[test]
fn the_last_of_a_command_is_written_when_it_dies() {
    let place = Place::new();
    let mut program = with_command(&place, &["--mode", "overwrite", "--output", "last"]);
    program.tell("count 100");
    program.say("die");
    let ended = program.end();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(128 + 6) && told.contains("recorded 100 events of 1 program"), "{told}");
    assert_eq!(place.values(&place.path("last"), "test:*"), (0..100).collect::<Vec<_>>());
    // Nobody wants its memory any more.
    let files = std::fs::read_dir(place.path("kymo")).expect("it is there").filter_map(Result::ok);
    let memory: Vec<_> = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "ctl")).collect();
    assert!(memory.is_empty(), "{memory:?}");
}

#[test]
fn a_flight_recorder_writes_when_it_is_asked() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    place.says(&["record", "--mode", "overwrite", "--detach", "--name", "flight", "--process", &pid], 0);
    program.tell("on");
    program.tell("count 100");
    place.says(&["snapshot", "--output", "first"], 0);
    program.tell("count 50");
    let said = place.says(&["snapshot", "flight", "--output", "second"], 0);
    assert!(said.contains("recorded 150 events of 1 program"), "{said}");
    // What the dead have left is what a flight recorder is for.
    program.say("die");
    program.end();
    place.says(&["snapshot", "--output", "third"], 0);
    place.says(&["stop", "flight"], 0);
    for (trace, count) in [("first", 100), ("second", 150), ("third", 150)] {
        assert_eq!(place.values(&place.path(trace), "test:*"), (0..count).collect::<Vec<_>>(), "{trace}");
    }
}

#[test]
fn a_flight_recorder_goes_on_while_others_write_everything() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let begin = |name: &str, mode: &str| {
        place.says(&["record", "--detach", "--name", name, "--mode", mode, "--process", &pid, "--output", name], 0);
    };
    let snapshot = |name: &str| {
        place.says(&["snapshot", "flight", "--output", name], 0);
        place.says(&["check", name], 0);
        place.values(&place.path(name), "test:*")
    };
    begin("flight", "overwrite");
    program.tell("on");
    program.tell("count 100");
    begin("all", "discard");
    program.tell("count 100");
    assert_eq!(snapshot("beside"), (0..200).collect::<Vec<_>>());
    program.tell("count 50");
    place.says(&["stop", "all"], 0);
    assert_eq!(place.values(&place.path("all"), "test:*"), (100..250).collect::<Vec<_>>());
    program.tell("count 50");
    assert_eq!(snapshot("behind"), (0..300).collect::<Vec<_>>());
    assert_eq!(snapshot("again"), (0..300).collect::<Vec<_>>());
    begin("next", "discard");
    program.tell("count 10");
    program.say("die");
    program.end();
    place.says(&["stop", "next"], 0);
    assert_eq!(place.values(&place.path("next"), "test:*"), (300..310).collect::<Vec<_>>());
    assert_eq!(snapshot("dead"), (0..310).collect::<Vec<_>>());
    place.says(&["stop", "flight"], 0);
}

#[test]
fn what_was_overwritten_before_a_session_is_none_of_its_losses() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let flight = ["record", "--detach", "--name", "flight", "--mode", "overwrite", "--pool-size", "32KiB"];
    place.says(&[&flight[..], &["--process", &pid, "--output", "flight"]].concat(), 0);
    program.tell("on");
    let begin = |name: &str| {
        place.says(&["record", "--detach", "--name", name, "--process", &pid, "--output", name], 0);
    };
    begin("before");
    program.tell("count 10");
    place.says(&["stop", "before"], 0);
    program.tell("count 99990");
    begin("all");
    program.tell("count 1000");
    let said = place.says(&["stop", "all"], 0);
    assert!(said.contains("recorded 1,000 events") && said.contains("losses    none"), "{said}");
    place.says(&["snapshot", "flight", "--output", "last"], 0);
    let last = place.values(&place.path("last"), "test:*");
    assert!((100..5000).contains(&last.len()) && last.ends_with(&[100_998, 100_999]), "{}", last.len());
    assert!(last.windows(2).all(|two| two[0] + 1 == two[1]), "there is a hole");
    place.says(&["stop", "flight"], 0);
}

#[test]
fn a_thread_that_begins_when_all_is_full_has_room_in_a_flight_recorder() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let flight = ["record", "--detach", "--name", "flight", "--mode", "overwrite", "--pool-size", "256KiB"];
    place.says(&[&flight[..], &["--process", &pid, "--output", "flight"]].concat(), 0);
    program.tell("on");
    program.tell("count 100000");
    program.tell("thread 1000");
    let said = place.says(&["snapshot", "flight", "--output", "last"], 0);
    let last = place.values(&place.path("last"), "test:*");
    let expected: Vec<u64> = (100_000..101_000).collect();
    assert!(last.ends_with(&expected) && last.len() > 5000, "{} of 1000 and {}", last.len(), said);
    place.says(&["stop", "flight"], 0);
}

#[test]
fn programs_that_begin_later_are_recorded_too() {
    let place = Place::new();
    // A name that no other test's programs have.
    let words = words();
    let own = place.path("begins-later");
    std::fs::copy(&words[0], &own).expect("it can be copied");
    place.says(&["record", "--detach", "--process", "begins-*", "--output", "trace", "--name", "later"], 0);
    for _ in 0..2 {
        let mut program = Program::of(place.command(&own).args(&words[1..]));
        program.tell("on");
        program.tell("count 10");
        program.end();
    }
    let said = place.says(&["stop"], 0);
    assert!(said.contains("recorded 20 events of 2 programs"), "{said}");
}

#[test]
fn who_records_and_is_gone_leaves_nothing_on() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let mut recording = place.kymo(&["record", "--process", &pid, "--output", "trace"]).spawn().expect("it starts");
    program.tell("on");
    program.tell("count 10");
    recording.kill().expect("it runs");
    recording.wait().expect("it ends");
    program.tell("off");
    recorded::until(|| !place.says(&["sessions"], 0).contains("session kymo"));
    assert_eq!(place.values(&place.path("trace"), "test:*"), (0..10).collect::<Vec<_>>());
}

#[test]
fn status_says_what_is_on_and_which_filter_runs_where() {
    let place = Place::new();
    assert_eq!(place.says(&["sessions"], 0), "no session is recorded now\n");
    assert_eq!(place.says(&["stop"], 2), "error: no session is recorded now; `kymo record` begins one\n");
    let mut program = place.program();
    let pid = program.pid.to_string();
    let words = ["record", "--detach", "--name", "s", "--process", &pid, "--event", "*:count", "--filter", "value > 3"];
    place.says(&words, 0);
    program.tell("on");
    let status = place.json(&["status", "--json", &pid]);
    let of = &status["programs"][0];
    assert_eq!((of["pid"].as_u64(), of["own_pid"].as_u64()), (Some(program.pid.into()), Some(program.pid.into())));
    let event = |name: &str| {
        let events = of["events"].as_array().expect("they are listed");
        events.iter().find(|event| event["name"] == name).expect("it is there").clone()
    };
    assert_eq!(event("test:count")["is_on"], true);
    assert_eq!(event("test:count")["sessions"]["s"][0], "value > 3");
    assert_eq!(event("test:other")["is_on"], false);
    let said = place.says(&["status", "--events", &pid], 0);
    assert!(said.contains("on   test:count  s if value > 3  [filter: "), "{said}");
    let said = place.says(&["stop", "t"], 2);
    assert!(said.contains("there is no session `t`"), "{said}");
}

/// Kills the recorder of a place.
fn kill_recorder(place: &Place) {
    let pid = place.json(&["status", "--json"])["pid"].as_u64().expect("it runs");
    let pid = rustix::process::Pid::from_raw(pid as i32).expect("it is a number");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    recorded::until(|| rustix::process::test_kill_process(pid).is_err() || is_dead(pid.as_raw_nonzero().get()));
}

/// It is a zombie, whose parent is this test's system.
fn is_dead(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'))
}

#[test]
fn a_session_goes_on_when_its_recorder_is_killed() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    place.says(&["record", "--detach", "--name", "s", "--process", &pid, "--output", "trace"], 0);
    program.tell("on");
    program.tell("count 1000");
    kill_recorder(&place);
    program.tell("count 1000");
    assert!(place.says(&["sessions"], 0).contains("session s"));
    program.tell("count 1000");
    kill_recorder(&place);
    program.tell("count 10");
    place.says(&["stop", "s"], 0);
    program.tell("off");
    let all = place.values(&place.path("trace"), "test:*");
    assert_eq!(all, (0..3010).collect::<Vec<_>>(), "everything, and nothing twice");
}

#[test]
fn who_waits_for_a_session_gets_the_next_recorder() {
    let place = Place::new();
    let mut program = with_command(&place, &["--output", "trace"]);
    program.tell("count 1000");
    place.waits_for_program();
    kill_recorder(&place);
    program.tell("count 1000");
    place.waits_for_program();
    program.say("exit 0");
    let ended = program.end();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success() && told.contains("warning: the recorder was gone"), "{told}");
    assert!(told.contains("recorded 2,000 events of 1 program") && told.contains("losses    none"), "{told}");
    let all = place.values(&place.path("trace"), "test:*");
    assert_eq!(all, (0..2000).collect::<Vec<_>>(), "everything, and nothing twice");
}

#[test]
fn parts_of_a_trace_are_made_and_old_ones_deleted() {
    let place = Place::new();
    let mut program = with_command(&place, &["--output", "trace", "--rotate-size", "64KiB", "--keep", "256KiB"]);
    let mut counted = 0;
    let mut count_until = |is_true: &dyn Fn() -> bool| {
        recorded::until(|| {
            program.tell("count 2000");
            counted += 2000;
            is_true()
        });
    };
    // On a busy machine, a part comes and goes between two looks.
    let has_part = |number: u32| {
        let parts = std::fs::read_dir(place.path("trace")).into_iter().flatten().flatten();
        let numbers = parts.filter_map(|part| part.file_name().to_str()?.parse::<u32>().ok());
        numbers.max().is_some_and(|newest| number <= newest)
    };
    count_until(&|| has_part(1));
    count_until(&|| has_part(2) && !place.path("trace/000001").exists());
    program.say("exit 0");
    let told = String::from_utf8_lossy(&program.end().stderr).into_owned();
    assert!(told.contains("losses    none"), "{told}");
    let values = place.values(&place.path("trace"), "test:*");
    let (first, last) = (values.first().copied(), values.last().copied());
    assert!(values.is_sorted(), "parts are out of order");
    assert!(
        last == Some(counted - 1) && values.len() < counted as usize,
        "{first:?} to {last:?}, {counted} {}",
        values.len()
    );
}

/// What only root may do; says loudly that it was not tried.
fn is_root(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("NOT TESTED: {what}, as this is not root");
    }
    is_root
}

#[test]
fn programs_in_other_namespaces_are_found_and_known_by_both_numbers() {
    if !is_root("programs in containers") {
        return;
    }
    // Recorders of other tests would see them, too.
    let place = Place::alone();
    let mut words = words();
    let own = place.path("contained");
    std::fs::copy(&words[0], &own).expect("it can be copied");
    words[0] = own.display().to_string();
    // A container has its own /dev/shm, its own numbers of processes, and no variable of this test's.
    let script =
        format!("mount -t tmpfs tmpfs /dev/shm && exec setpriv --reuid 0 env -u XDG_RUNTIME_DIR {}", words.join(" "));
    let mut command = place.command("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", &script]);
    let mut program = Program::of(&mut command);
    assert!(program.pid < 10, "it has a number of its own: {}", program.pid);
    place.says(&["record", "--detach", "--name", "c", "--process", "contained", "--output", "trace"], 0);
    program.tell("on");
    program.tell("count 100");
    let status = place.json(&["status", "--json"]);
    let programs = status["programs"].as_array().expect("they are listed");
    let found = programs.iter().find(|found| found["is_contained"] == true && found["is_attached"] == true);
    let found = found.expect("it is found");
    assert_eq!(found["own_pid"].as_u64(), Some(program.pid.into()));
    let outer = found["pid"].as_u64().expect("it is seen");
    let status = std::fs::read_to_string(format!("/proc/{outer}/status")).expect("it is there");
    assert!(status.lines().any(|line| line.starts_with("NSpid:") && line.ends_with(&format!("\t{}", program.pid))));
    program.end();
    let said = place.says(&["stop", "c"], 0);
    assert!(said.contains("recorded 100 events of 1 program"), "{said}");
    assert_eq!(place.values(&place.path("trace"), "test:*"), (0..100).collect::<Vec<_>>());
}

#[test]
fn root_records_programs_of_other_users_who_do_not_see_roots() {
    if !is_root("programs of other users") {
        return;
    }
    // Recorders of other tests would see them, too.
    let place = Place::alone();
    let words = words();
    let (user, group) = ("65533", "65533");
    let copy = std::env::temp_dir().join(format!("kymo-other-user-{}", std::process::id()));
    std::fs::copy(&words[0], &copy).expect("it can be copied");
    let mut command = place.command("setpriv");
    command.args(["--reuid", user, "--regid", group, "--clear-groups", "env", "-u", "XDG_RUNTIME_DIR"]);
    let mut program = Program::of(command.current_dir("/").arg(&copy).args(&words[1..]));
    let pid = program.pid.to_string();
    place.says(&["record", "--detach", "--name", "u", "--process", &pid, "--output", "trace"], 0);
    program.tell("on");
    program.tell("count 100");
    // Another recorder has it.
    let kymo = env!("CARGO_BIN_EXE_kymo");
    let mut doctor = place.command("setpriv");
    doctor.args(["--reuid", user, "--regid", group, "--clear-groups", "env", "-u", "XDG_RUNTIME_DIR", kymo, "doctor"]);
    let said = doctor.current_dir("/").output().expect("it starts");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let _ = std::fs::remove_file(&copy);
    place.says(&["stop", "u"], 0);
    program.tell("off");
    program.end();
    let _ = std::fs::remove_dir_all(format!("/dev/shm/kymo-{user}"));
    assert_eq!(place.values(&place.path("trace"), "test:*"), (0..100).collect::<Vec<_>>());
    if said.is_empty() {
        eprintln!("NOT TESTED: what another user is told, who may not start {kymo}");
    } else {
        assert!(said.contains("another recorder has it"), "{said}");
    }
}

#[test]
fn the_doctor_says_what_is_wrong() {
    let place = Place::new();
    let said = place.says(&["doctor"], 0);
    assert!(said.contains("good   folder of programs") && said.contains("good   recorder: none runs"), "{said}");
    std::fs::set_permissions(place.path("kymo"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap_or_else(
        |_| {
            std::fs::create_dir(place.path("kymo")).expect("it can be made");
            std::fs::set_permissions(place.path("kymo"), std::os::unix::fs::PermissionsExt::from_mode(0o777))
                .expect("it is ours");
        },
    );
    let said = place.says(&["doctor"], 1);
    assert!(said.contains("WRONG  folder of programs") && said.contains("help: chmod 700"), "{said}");
    let said = place.says(&["record", "--", "true"], 1);
    assert!(said.contains("has mode 777"), "{said}");
}
