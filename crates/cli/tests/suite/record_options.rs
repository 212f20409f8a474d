//! What `kymo record` is told: each option does what it says, and whatever goes wrong with the disk is told and counted.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::recorded::{Disk, Place, Program, until, words};

/// Bytes of an event `test:count` with the number of its CPU.
const COUNT_BYTES: u64 = 2 + 4 + 2 + 8;

/// Begins a session in the background that records a program.
fn begin(place: &Place, program: &mut Program, options: &[&str]) {
    let pid = program.pid.to_string();
    let fixed = ["record", "--detach", "--name", "s", "--process", &pid, "--output", "trace"];
    place.says(&[&fixed[..], options].concat(), 0);
    program.tell("on");
}

/// Ends it; what it has to say.
fn stop(place: &Place) -> Value {
    let all = place.json(&["stop", "s", "--json"]);
    if all.is_array() { all[0].clone() } else { all }
}

fn recorder(place: &Place) -> Pid {
    let pid = place.json(&["status", "--json"])["pid"].as_u64().expect("it runs");
    Pid::from_raw(pid as i32).expect("it is a number")
}

/// Lets a program do something while its recorder does nothing.
fn alone(place: &Place, program: &mut Program, what: &str) {
    let recorder = recorder(place);
    rustix::process::kill_process(recorder, Signal::STOP).expect("it runs");
    program.tell(what);
    rustix::process::kill_process(recorder, Signal::CONT).expect("it runs");
}

fn number(of: &Value, path: &str) -> u64 {
    of.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} is not in {of}"))
}

/// Bytes that the program may have.
fn limit(place: &Place) -> u64 {
    let status = place.json(&["status", "--json"]);
    let programs = status["programs"].as_array().expect("they are listed");
    let attached = programs.iter().find(|program| program["is_attached"] == true).expect("it is recorded");
    number(attached, "/pool/limit_bytes")
}

/// Events and losses that the trace itself tells; all of it can be read.
fn told(trace: &Path) -> (u64, u64) {
    use kymo_session::{OpenOptions, PrintOptions, Progress, Session};
    let session = Session::open(&[trace.to_owned()], &OpenOptions::default()).expect("it is a trace");
    let mut text = Vec::new();
    let printed = session.print(&PrintOptions::default(), &mut text, &Progress::default()).expect("it is printed");
    assert!(printed.report.is_complete(), "{:?}", printed.report);
    let text = String::from_utf8(text).expect("it is text");
    (text.lines().filter(|line| line.contains(" test:")).count() as u64, printed.report.events_discarded)
}

#[test]
fn a_trace_is_of_the_dialect_that_is_asked_for() {
    let place = Place::new();
    let mut program = place.program();
    begin(&place, &mut program, &["--format", "ctf2"]);
    program.tell("count 100");
    stop(&place);
    let metadata = std::fs::read(place.path("trace/metadata")).expect("it is there");
    assert_eq!(metadata.first(), Some(&0x1e), "fragments of JSON begin with a separator");
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..100).collect::<Vec<_>>());
    place.says(&["check", "trace"], 0);
}

#[test]
fn a_session_ends_after_its_time() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid.to_string();
    let mut command = place.kymo(&["record", "--process", &pid, "--output", "trace", "--duration", "1s"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    program.tell("on");
    program.tell("count 10");
    let output = command.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("recorded 10 events of 1 program"), "{told}");
    program.tell("off");
}

#[test]
fn events_carry_what_is_asked_for() {
    let place = Place::new();
    let mut program = place.program();
    let pid = program.pid;
    for (context, fields) in [
        ("cpu_id", "{ cpu_id = "),
        ("pid", &*format!("{{ vpid = {pid} }}")),
        ("tid", "{ vtid = "),
        ("procname", "{ procname = \"the_program\" }"),
        ("ip", "{ ip = 0x"),
        ("stack", "callstack_user = [ "),
        ("pid,tid,cpu_id", "{ cpu_id = "),
        ("none", "handler_level = 0, procname = \"the_program\" }, { value = "),
    ] {
        begin(&place, &mut program, &["--context", context]);
        program.tell("count 2");
        stop(&place);
        program.tell("off");
        let text = place.says(&["print", "--event", "test:count", "trace"], 0);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(fields)), "{context}: {text}");
        let has_all =
            context != "pid,tid,cpu_id" || lines.iter().all(|line| line.contains(&format!("vpid = {pid}, vtid = ")));
        assert!(has_all, "{text}");
        place.says(&["check", "trace"], 0);
        std::fs::remove_dir_all(place.path("trace")).expect("it is there");
    }
}

#[test]
fn memory_of_programs_grows_when_events_are_lost() {
    let place = Place::new();
    let mut program = place.program();
    begin(&place, &mut program, &[]);
    let pool = limit(&place);
    let room = pool / COUNT_BYTES;
    let first = room + room / 4;
    alone(&place, &mut program, &format!("count {first}"));
    until(|| limit(&place) > pool);
    assert_eq!(limit(&place), 2 * pool, "twice as much");
    // What was not enough is.
    alone(&place, &mut program, &format!("count {first}"));
    let summary = stop(&place);
    let (events, lost) = (number(&summary, "/events"), number(&summary, "/lost/full"));
    assert_eq!(events + lost, 2 * first, "{summary}");
    assert!(lost > 0 && lost <= first - room + room / 100, "{lost} of {first} are lost, {room} have room");
    assert_eq!(told(&place.path("trace")), (events, lost));
}

#[test]
fn memory_is_as_large_as_is_said_and_no_larger() {
    let place = Place::new();
    let mut program = place.program();
    begin(&place, &mut program, &["--pool-size", "1MiB"]);
    assert_eq!(limit(&place), 1 << 20);
    let room = (1 << 20) / COUNT_BYTES;
    alone(&place, &mut program, &format!("count {}", 2 * room));
    let summary = stop(&place);
    let (events, lost) = (number(&summary, "/events"), number(&summary, "/lost/full"));
    assert_eq!((events + lost, told(&place.path("trace"))), (2 * room, (events, lost)));
    assert!(events <= room && events > room - room / 20, "{events} of {room}");
}

#[test]
fn a_thread_has_as_much_memory_as_is_said() {
    let place = Place::new();
    let mut program = place.program();
    begin(&place, &mut program, &["--pool-size", "4MiB", "--lane-size", "128KiB"]);
    let room = (128 << 10) / COUNT_BYTES;
    alone(&place, &mut program, &format!("count {}", 4 * room));
    let summary = stop(&place);
    let (events, lost) = (number(&summary, "/events"), number(&summary, "/lost/full"));
    assert_eq!((events + lost, told(&place.path("trace"))), (4 * room, (events, lost)));
    assert!(events <= room && events > room - room / 20, "{events} of {room}");
}

#[test]
fn parts_of_a_trace_are_as_long_as_is_said() {
    let place = Place::new();
    let mut program = place.program();
    begin(&place, &mut program, &["--rotate-time", "1s"]);
    let mut counted = 0;
    until(|| {
        program.tell("count 10");
        counted += 10;
        place.path("trace/000003").exists()
    });
    stop(&place);
    assert_eq!(place.values(&place.path("trace"), "test:count"), (0..counted).collect::<Vec<_>>());
    place.says(&["check", "trace"], 0);
}

/// Where the filter of an event runs.
fn runs(place: &Place) -> String {
    let status = place.json(&["status", "--json"]);
    let programs = status["programs"].as_array().expect("they are listed");
    let attached = programs.iter().find(|program| program["is_attached"] == true).expect("it is recorded");
    let events = attached["events"].as_array().expect("they are listed");
    let event = events.iter().find(|event| event["name"] == "test:count").expect("it is there");
    event["runs"].as_str().unwrap_or("nowhere").to_owned()
}

#[test]
fn a_filter_means_the_same_wherever_it_runs() {
    let filter = "(value >= 15 && value < 40) || value == 77";
    let expected: Vec<u64> = (15..40).chain([77]).collect();
    let in_recorder = format!("({filter}) && $ctx.vtid > 0");
    for (native, filter, place_of) in
        [("on", filter, "native"), ("off", filter, "interpreter"), ("on", &in_recorder, "recorder")]
    {
        let place = Place::new();
        let words = words();
        let mut command = place.command(&words[0]);
        command.args(&words[1..]);
        if native == "off" {
            command.env("KYMO_NATIVE", "off");
        }
        let mut program = Program::of(&mut command);
        begin(&place, &mut program, &["--event", "test:count", "--filter", filter]);
        let found = runs(&place);
        if place_of == "native" && found == "interpreter" {
            eprintln!("NOT TESTED: filters as machine code, which programs cannot have here");
        } else {
            assert_eq!(found, place_of, "{filter}");
        }
        program.tell("count 100");
        let summary = stop(&place);
        assert_eq!(place.values(&place.path("trace"), "test:count"), expected, "{place_of}: {summary}");
        assert_eq!((number(&summary, "/lost/full"), number(&summary, "/events")), (0, 26), "{place_of}: {summary}");
    }
}

/// Kilobytes that the recorder has in memory.
fn resident_kib(place: &Place) -> u64 {
    let pid = recorder(place).as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is told");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
fn a_full_disk_is_told_and_what_is_lost_is_counted() {
    let place = Place::new();
    let Some(disk) = Disk::mount(place.path("disk")) else { return };
    let mut program = place.program();
    let pid = program.pid.to_string();
    place.says(&["record", "--detach", "--name", "s", "--process", &pid, "--output", "disk/trace"], 0);
    program.tell("on");
    let mut counted = 0;
    let mut count = |program: &mut Program| {
        program.tell("count 20000");
        counted += 20_000;
    };
    let unwritten = || number(&place.json(&["sessions", "--json"])[0], "/summary/lost/unwritten");
    until(|| {
        count(&mut program);
        unwritten() > 0
    });
    let before = resident_kib(&place);
    for _ in 0..50 {
        count(&mut program);
    }
    until(|| place.json(&["status", "--json"])["programs"][0]["pool"]["used_bytes"].as_u64() < Some(1 << 20));
    let after = resident_kib(&place);
    assert!(after < before + (16 << 10), "{before} KiB become {after}");
    // What went wrong is told some ten times in a second.
    until(|| place.says(&["sessions"], 0).contains("No space left"));
    // What is there so far can be read, and when there is room again, it goes on.
    let (so_far, _) = told(&place.path("disk/trace"));
    assert!(so_far > 1000, "{so_far}");
    assert!(Command::new("mount").args(["-o", "remount,size=64m"]).arg(&disk.0).status().expect("it starts").success());
    let written = || number(&place.json(&["sessions", "--json"])[0], "/summary/events");
    let least = written();
    until(|| {
        count(&mut program);
        written() > least
    });
    let output = place.kymo(&["stop", "s", "--json"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "something is missing: {output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let summary = if summary.is_array() { summary[0].clone() } else { summary };
    let (events, lost) = told(&place.path("disk/trace"));
    assert_eq!((events + lost, number(&summary, "/events")), (counted, events), "{summary}");
    place.says(&["check", "disk/trace"], 0);
}

/// Where a trace cannot even begin, what programs record meanwhile is counted; it begins when there is room.
#[test]
fn a_disk_that_is_full_from_the_begin_is_told_and_what_is_lost_is_counted() {
    let place = Place::new();
    let Some(disk) = Disk::mount(place.path("disk")) else { return };
    let record = |name: &str, count: u64| {
        let mut program = place.program();
        let pid = program.pid.to_string();
        let (output, only) = (format!("disk/{name}"), "test:count");
        place.says(&["record", "--detach", "-n", name, "-p", &pid, "-e", only, "-F", "value < 1000", "-o", &output], 0);
        program.tell("on");
        program.tell("other 10");
        program.tell(&format!("count {count}"));
        program
    };
    let lost = |summary: &Value| {
        let number = |name: &str| number(summary, name);
        (number("/events"), number("/lost/unwritten"), number("/lost/full") + number("/lost/no_lane"))
    };
    let stop = |name: &str| {
        let output = place.kymo(&["stop", name, "--json"]).output().expect("it starts");
        assert_eq!(output.status.code(), Some(1), "something is missing: {output:?}");
        serde_json::from_slice::<Value>(&output.stdout).expect("it is JSON")[0].clone()
    };
    disk.fill();
    drop(record("never", 2000));
    let summary = stop("never");
    assert_eq!(lost(&summary), (0, 1000, 0), "{summary}");
    assert!(summary["problems"].to_string().contains("No space left"), "{summary}");

    let mut program = record("later", 100);
    until(|| number(&place.json(&["sessions", "--json"])[0], "/summary/lost/unwritten") == 100);
    std::fs::remove_file(disk.0.join("fill")).expect("it is there");
    program.tell("count 50");
    let summary = stop("later");
    assert_eq!(lost(&summary), (50, 100, 0), "{summary}");
    assert_eq!(told(&place.path("disk/later")), (50, 100), "{summary}");
    place.says(&["check", "disk/later"], 0);
}

#[test]
fn a_folder_that_is_removed_is_told() {
    let place = Place::new();
    let mut program = place.program();
    begin(&place, &mut program, &[]);
    program.tell("count 1000");
    until(|| number(&place.json(&["sessions", "--json"])[0], "/summary/events") == 1000);
    std::fs::remove_dir_all(place.path("trace")).expect("it is there");
    let mut counted = 1000;
    until(|| {
        program.tell("count 1000");
        counted += 1000;
        number(&place.json(&["sessions", "--json"])[0], "/summary/lost/unwritten") > 0
    });
    let said = place.says(&["sessions"], 0);
    assert!(said.contains("No such file"), "{said}");
    let output = place.kymo(&["stop", "s", "--json"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "something is missing: {output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let summary = if summary.is_array() { summary[0].clone() } else { summary };
    // Files that were open went on to nowhere until that was noticed: what they got counts as written.
    let all = number(&summary, "/events") + number(&summary, "/lost/unwritten") + number(&summary, "/lost/full");
    assert_eq!(all, counted, "{summary}");
}

/// Counters of all CPUs are compared, as far as they answer, and all faces tell the same.
#[test]
fn counters_are_compared_before_a_session_that_is_prepared() {
    let place = Place::new();
    let words = ["record", "--prepare", "--json", "--duration", "10ms", "--output", "trace"];
    let summary = place.json(&words);
    let counters = &summary["counters"];
    let cpus = counters["cpus"].as_array().expect("they are listed");
    let threads = std::thread::available_parallelism().expect("it is known").get();
    assert!(cpus.len() >= threads, "{counters}");
    assert_eq!((number(&cpus[0], "/error_ns"), cpus[0]["offset_ns"].as_i64()), (0, Some(0)));
    let known = cpus.iter().filter(|cpu| !cpu["offset_ns"].is_null()).count();
    assert_eq!(counters["apart_ns"].is_null(), known < 2, "{counters}");
    for cpu in cpus[1..].iter().filter(|cpu| !cpu["offset_ns"].is_null()) {
        assert_eq!(number(cpu, "/error_ticks"), number(cpu, "/trip_ticks") / 2 + 1);
    }
    // The frequency of the trace is another measurement; ticks are the same.
    let info = place.json(&["info", "trace", "--json"]);
    let told = &info["traces"][0]["counters"];
    let ticks = |of: &Value| {
        of["cpus"].as_array().map(|cpus| cpus.iter().map(|cpu| cpu["offset_ticks"].clone()).collect::<Vec<_>>())
    };
    assert_eq!(ticks(told), ticks(counters));
    assert_eq!(told["agree"], counters["agree"]);
    let text = place.says(&["info", "trace"], 0);
    assert!(text.contains("  counters  of "), "{text}");

    place.says(&["record", "--duration", "10ms", "--output", "other"], 0);
    assert_eq!(place.json(&["info", "other", "--json"])["traces"][0]["counters"], Value::Null);
    let begun = place.json(&["record", "--prepare", "--detach", "--json", "--name", "s", "--output", "detached"]);
    assert_eq!(begun["counters"]["cpus"].as_array().map(Vec::len), Some(cpus.len()));
    stop(&place);
}
