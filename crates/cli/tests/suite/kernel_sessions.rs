//! The kernel's events in sessions as programs have them: flight recorders, triggers, parts, recorders that are killed, readers that
//! follow, and other tools beside.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::c_programs;
use crate::kernel::can_record;
use crate::recorded::{Place, until};
use crate::resumed::kill_recorder;

/// Makes calls with numbers from its first argument up to its second one, each between two events with that number. After each
/// hundred of them it rests for the third one in microseconds; the fourth one is a file that it makes before.
const CALLS: &str = r#"
#define _GNU_SOURCE
#include <kymo/kymo.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
KYMO_EVENT(app, before, KYMO_U32(n));
KYMO_EVENT(app, after, KYMO_U32(n));
int main(int count, char **words) {
    unsigned end = atoi(words[2]);
    for (unsigned n = atoi(words[1]); n < end; n++) {
        kymo_app_before(n);
        close(n);
        kymo_app_after(n);
        if (count > 3 && n % 100 == 99) {
            if (count > 4) creat(words[4], 0600);
            usleep(atoi(words[3]));
        }
    }
    return 0;
}
"#;
/// No file has such a number, and each test has so many of its own: they see the calls of all others.
static NEXT: AtomicU64 = AtomicU64::new(50_000_000);
const NUMBERS: u64 = 1_000_000;

/// A place where the kernel can be recorded, and a program that makes calls.
struct Calls {
    place: Place,
    program: PathBuf,
    /// The first number of this test's calls.
    first: u64,
}

impl Calls {
    /// `None`: it is said why not.
    fn begin(place: Place) -> Option<Self> {
        if !can_record(&place) {
            return None;
        }
        let library = c_programs::library()?;
        let program = c_programs::program(&place.path("."), &library, "calls", CALLS);
        Some(Self { place, program, first: NEXT.fetch_add(NUMBERS, Ordering::Relaxed) })
    }

    /// The words that make the program call with these numbers, counted from the first.
    fn words(&self, from: u64, to: u64) -> Vec<String> {
        let program = self.program.display().to_string();
        vec![program, (self.first + from).to_string(), (self.first + to).to_string()]
    }

    fn command(&self, from: u64, to: u64, more: &[&str]) -> Command {
        let words = self.words(from, to);
        let mut command = self.place.command(&words[0]);
        command.args(&words[1..]).args(more);
        command
    }

    fn make(&self, from: u64, to: u64, more: &[&str]) {
        assert!(self.command(from, to, more).status().expect("it starts").success());
    }

    /// Numbers of calls in a trace, counted from the first, as ranges in the order of the trace.
    fn found(&self, trace: &str, (event, field): (&str, &str)) -> Vec<(u64, u64)> {
        let words = ["print", "--format", "json", "--event", event, trace];
        let output = self.place.kymo(&words).output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("it is JSON");
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
        let numbers = events.filter_map(|event| event["payload"][field].as_u64()?.checked_sub(self.first));
        ranges(&numbers.filter(|number| *number < NUMBERS).collect::<Vec<_>>())
    }
}

/// Numbers that follow each other, as ranges: what people can read.
fn ranges(numbers: &[u64]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if last.1 == *number => last.1 += 1,
            _ => ranges.push((*number, number + 1)),
        }
    }
    ranges
}

const CLOSES: (&str, &str) = ("syscall_entry_close", "fd");
const EVENTS: (&str, &str) = ("app:before", "n");

fn summary(place: &Place, words: &[&str]) -> Value {
    let told = place.json(words);
    // Those that stop are told in a list.
    let summary = told.get(0).cloned().unwrap_or(told);
    assert_eq!(summary["problems"], serde_json::json!([]), "{summary}");
    summary
}

/// Each event is in the trace once, and is counted, although two recorders are killed.
#[test]
fn the_next_recorder_goes_on_with_the_kernel() {
    let Some(calls) = Calls::begin(Place::new()) else { return };
    let place = &calls.place;
    place.says(&["record", "--detach", "--kernel=syscalls", "--name", "s", "--output", "trace"], 0);
    let mut made = 0;
    for _ in 0..3 {
        calls.make(made, made + 3000, &["1000"]);
        made += 3000;
        if made < 9000 {
            // A program that begins while no recorder is there would be recorded later only.
            let begun = place.path(&format!("begun-{made}"));
            let words = ["50000", begun.to_str().expect("it is text")];
            let mut child = calls.command(made, made + 2000, &words).spawn().expect("it starts");
            until(|| begun.exists());
            assert!(kill_recorder(place));
            // The command starts the next one.
            place.says(&["sessions"], 0);
            assert!(child.wait().expect("it runs").success());
            made += 2000;
        }
    }
    let summary = summary(place, &["stop", "s", "--json"]);
    assert_eq!(calls.found("trace", CLOSES), [(0, made)], "everything, and nothing twice");
    assert_eq!(calls.found("trace", EVENTS), [(0, made)]);
    let kernel = &summary["kernel"];
    assert_eq!((&kernel["lost"], &kernel["unreadable"]), (&0.into(), &0.into()), "{summary}");
    let counted = |path: &str| place.json(&["count", "--json", path])["events"].as_u64().unwrap_or(0);
    let there = ["trace/kernel", "trace/kernel-2", "trace/kernel-3"].iter().map(|path| counted(path)).sum::<u64>();
    assert_eq!(kernel["events"].as_u64(), Some(there), "{summary}");
    assert!(place.says(&["check", "trace"], 0).contains("no problems"));
    assert!(place.says(&["recover", "trace"], 0).contains("whole"));
}

/// Snapshots have the newest events, also those that a snapshot before them has; what was overwritten is no loss.
#[test]
fn a_flight_recorder_keeps_the_newest_events() {
    let Some(calls) = Calls::begin(Place::alone()) else { return };
    let place = &calls.place;
    let begin = |name: &str, bytes: &str| {
        let words = ["record", "--detach", "--kernel=syscalls", "--mode", "overwrite", "--kernel-buffer", bytes];
        place.says(&[&words[..], &["--name", name, "--output", name]].concat(), 0);
    };
    begin("s", "64MiB");
    calls.make(0, 500, &[]);
    let first = summary(place, &["snapshot", "s", "--json"]);
    calls.make(500, 1000, &[]);
    let second = summary(place, &["snapshot", "s", "--json"]);
    let path = |summary: &Value| summary["output"].as_str().expect("it is told").to_owned();
    let newest = |summary: &Value| calls.found(&path(summary), CLOSES);
    assert_eq!(newest(&first), [(0, 500)]);
    assert_eq!(newest(&second), [(0, 1000)], "also those of the first");
    place.says(&["stop", "s"], 0);
    // More than there is room for.
    begin("t", "2MiB");
    calls.make(0, 80_000, &[]);
    let third = summary(place, &["snapshot", "t", "--json"]);
    let kept = newest(&third);
    // A CPU that rested may have older ones.
    assert!(matches!(kept.last(), Some((1.., 80_000))), "the newest ones, without a gap: {kept:?}");
    assert_eq!(third["kernel"]["lost"], 0, "{third}");
    assert!(place.says(&["check", &path(&third)], 0).contains("no problems"));
    place.says(&["stop", "t"], 0);
}

/// A program starts and stops the session at its events, and the kernel's events are those between.
#[test]
fn triggers_cut_the_events_of_the_kernel() {
    let Some(calls) = Calls::begin(Place::new()) else { return };
    let place = &calls.place;
    let start = format!("start on app:before when n == {}", calls.first + 300);
    let stop = format!("stop on app:after when n == {}", calls.first + 499);
    let words = ["record", "--kernel=syscalls", "--json", "--output", "trace", "--trigger", &start, "--trigger", &stop];
    let output = place.kymo(&words).arg("--").args(calls.words(0, 1000)).arg("1000").output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(summary["problems"], serde_json::json!([]), "{summary}");
    assert_eq!(calls.found("trace", EVENTS), [(300, 500)], "{summary}");
    assert_eq!(calls.found("trace", CLOSES), [(300, 500)], "{summary}");
    assert_eq!((&summary["kernel"]["lost"], &summary["kernel"]["unreadable"]), (&0.into(), &0.into()), "{summary}");
    let there = place.json(&["count", "--json", "trace/kernel"])["events"].clone();
    assert_eq!(summary["kernel"]["events"], there, "{summary}");
}

/// Parts follow each other without a gap, and each can be read alone.
#[test]
fn the_trace_of_the_kernel_has_parts() {
    let Some(calls) = Calls::begin(Place::new()) else { return };
    let place = &calls.place;
    let words = ["record", "--kernel=syscalls", "--json", "--output", "trace", "--rotate-size", "128KiB", "--"];
    let output = place.kymo(&words).args(calls.words(0, 20_000)).arg("500").output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(calls.found("trace", CLOSES), [(0, 20_000)]);
    let entries = std::fs::read_dir(place.path("trace/kernel")).expect("it is there").flatten();
    let parts: Vec<String> = entries.map(|entry| entry.path().display().to_string()).collect();
    assert!(parts.len() > 3, "{parts:?}");
    for part in &parts {
        assert!(place.says(&["check", part], 0).contains("no problems"), "{part}");
        let told = place.says(&["print", "--event", "lttng_statedump_start", part], 0);
        assert_eq!(told.lines().count(), 1, "{part}: {told}");
    }
    // A ring has the newest parts.
    let words = ["record", "--kernel=syscalls", "--output", "ring", "--rotate-size", "128KiB", "--keep", "2MiB", "--"];
    let output = place.kymo(&words).args(calls.words(0, 40_000)).arg("500").output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let kept = calls.found("ring", CLOSES);
    // Parts begin where the page of a CPU does: the oldest one may lack some of the other CPUs.
    assert!(matches!(kept[..], [(1.., _), ..]), "nothing was deleted: {kept:?}");
    assert!(kept.last().is_some_and(|last| last.1 == 40_000), "{kept:?}");
}

/// A reader that follows the trace gets the kernel's events while they are recorded, although all CPUs are busy.
#[test]
fn readers_follow_the_kernel() {
    let Some(calls) = Calls::begin(Place::alone()) else { return };
    let place = &calls.place;
    place.says(&["record", "--detach", "--kernel=syscalls", "--name", "s", "--output", "trace"], 0);
    let cpus = std::thread::available_parallelism().map_or(1, Into::into);
    let loads = (0..cpus).map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("it starts"));
    let mut loads: Vec<_> = loads.collect();
    until(|| place.path("trace/kernel/metadata").exists());
    let words = ["print", "--follow", "--event", "syscall_entry_close", "--format", "json", "trace/kernel"];
    let file = std::fs::File::create(place.path("followed")).expect("there is room");
    let mut reader = place.kymo(&words).stdout(file).stderr(Stdio::null()).spawn().expect("it starts");
    calls.make(0, 1000, &[]);
    let last = format!("{}", calls.first + 999);
    until(|| std::fs::read_to_string(place.path("followed")).is_ok_and(|text| text.contains(&last)));
    loads.iter_mut().for_each(|load| _ = load.kill().and_then(|()| load.wait().map(drop)));
    place.says(&["stop", "s"], 0);
    assert!(reader.wait().expect("it runs").success());
}

/// Two recordings, trace-cmd and bpftrace see all calls at the same time, and none disturbs another.
#[test]
fn other_tools_record_beside() {
    let Some(calls) = Calls::begin(Place::alone()) else { return };
    let place = &calls.place;
    let own = format!("/sys/kernel/tracing/instances/other-{}", std::process::id());
    std::fs::create_dir(&own).expect("root may do that");
    let set = |file: &str, word: &str| std::fs::write(Path::new(&own).join(file), word).expect("it is there");
    set("events/syscalls/sys_enter_close/filter", &format!("fd >= {} && fd < {}", calls.first, calls.first + NUMBERS));
    set("events/syscalls/sys_enter_close/enable", "1");
    let expression = format!(
        "tracepoint:syscalls:sys_enter_close /args->fd >= {} && args->fd < {}/ {{ @ = count(); }} BEGIN {{ printf(\"on\\n\"); }}",
        calls.first,
        calls.first + NUMBERS
    );
    let file = std::fs::File::create(place.path("bpf")).expect("there is room");
    let bpftrace = Command::new("bpftrace").args(["-e", &expression]).stdout(file).stderr(Stdio::null()).spawn();
    if bpftrace.is_err() {
        eprintln!("BPFTRACE ABSENT: it has not traced beside");
    }
    let told = || std::fs::read_to_string(place.path("bpf")).unwrap_or_default();
    if bpftrace.is_ok() {
        until(|| told().contains("on\n"));
    }
    for name in ["a", "b"] {
        place.says(&["record", "--detach", "--kernel=syscalls", "--name", name, "--output", name], 0);
    }
    calls.make(0, 5000, &["100"]);
    for name in ["a", "b"] {
        summary(place, &["stop", name, "--json"]);
        assert_eq!(calls.found(name, CLOSES), [(0, 5000)], "{name}");
    }
    let theirs = std::fs::read_to_string(Path::new(&own).join("trace")).expect("it can be read");
    assert_eq!(theirs.lines().filter(|line| line.contains("sys_close(")).count(), 5000, "the other instance");
    set("events/enable", "0");
    std::fs::remove_dir(&own).expect("it is ours");
    if let Ok(mut bpftrace) = bpftrace {
        let pid = rustix::process::Pid::from_child(&bpftrace);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        bpftrace.wait().expect("it runs");
        assert!(told().contains("@: 5000"), "{}", told());
    }
}

/// Nothing is lost when a CPU goes and comes while the kernel is recorded.
#[test]
fn a_cpu_goes_and_comes() {
    let Some(calls) = Calls::begin(Place::alone()) else { return };
    let place = &calls.place;
    let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{last}/online"));
    if last == 0 || std::fs::write(&switch, "1").is_err() {
        eprintln!("NOT TESTED: no CPU can be taken offline here");
        return;
    }
    place.says(&["record", "--detach", "--kernel=syscalls", "--name", "s", "--output", "trace"], 0);
    for (number, word) in [(0, "0"), (1, "1"), (2, "0"), (3, "1")] {
        calls.make(2000 * number, 2000 * (number + 1), &["100"]);
        if let Err(error) = std::fs::write(&switch, word) {
            assert_eq!(word, "0", "{error}");
            eprintln!("NOT TESTED: CPU {last} stays online: {error}");
        }
    }
    calls.make(8000, 10_000, &[]);
    let summary = summary(place, &["stop", "s", "--json"]);
    assert_eq!(calls.found("trace", CLOSES), [(0, 10_000)], "{summary}");
    assert!(place.says(&["check", "trace"], 0).contains("no problems"));
}

/// Only the chosen processes and those that they start have events, with the threads that wake them.
#[test]
fn some_processes_are_recorded() {
    let Some(calls) = Calls::begin(Place::new()) else { return };
    let place = &calls.place;
    let shell = |from: u64, to: u64| calls.words(from, to).join(" ");
    // Another program makes calls all the time.
    let other = format!("while :; do {} 100; done", shell(500_000, 501_000));
    let mut other = place.command("sh").args(["-c", &other]).process_group(0).spawn().expect("it starts");
    let ours = format!("{} 100 & {} 100; wait; sleep 0.01; {}", shell(0, 1000), shell(1000, 2000), shell(2000, 3000));
    let words =
        ["record", "--kernel=sched,syscalls,irq", "--kernel-of", "command", "--output", "trace", "--", "sh", "-c"];
    let output = place.kymo(&words).arg(&ours).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let group = rustix::process::Pid::from_child(&other);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("it runs");
    other.wait().expect("it runs");
    let mut found: Vec<u64> = calls.found("trace", CLOSES).into_iter().flat_map(|(first, end)| first..end).collect();
    found.sort_unstable();
    assert_eq!(ranges(&found), [(0, 3000)], "those of the command, and no others");
    let told = place.says(&["info", "trace/kernel"], 0);
    assert!(told.contains(", only of command "), "{told}");
    // Interrupts and the threads that wake it are those of all.
    let count = place.json(&["count", "--json", "--by", "class", "trace/kernel"]);
    let groups = count["groups"].as_array().expect("they are listed");
    let has = |name: &str| groups.iter().any(|group| group["class"] == name);
    assert!(has("sched_waking") && has("sched_switch") && has("irq_softirq_entry"), "{count}");
    assert!(place.says(&["check", "trace"], 0).contains("no problems"));
}

/// A container is known by the control group that its ID is part of.
#[test]
fn a_container_is_recorded() {
    let Some(calls) = Calls::begin(Place::new()) else { return };
    let place = &calls.place;
    let root = ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"]
        .into_iter()
        .find(|root| std::path::Path::new(root).join("cgroup.procs").exists());
    let id = format!("{:064x}", u128::from(std::process::id()) << 64 | 0xfeed);
    let group = root.map(|root| format!("{root}/kymo-test-{}", std::process::id()));
    let Some(group) = group.filter(|group| std::fs::create_dir(group).is_ok()) else {
        eprintln!("NOT TESTED: no control group can be made here");
        return;
    };
    let inner = format!("{group}/docker-{id}.scope");
    std::fs::create_dir(&inner).expect("it is ours");
    let file = place.path("go");
    // A shell in the container, which waits until it is recorded.
    let inside = format!(
        "echo $$ > {inner}/cgroup.procs; while ! test -e {}; do sleep 0.01; done; {} 100",
        file.display(),
        calls.words(0, 1000).join(" ")
    );
    let mut container = place.command("sh").args(["-c", &inside]).spawn().expect("it starts");
    let has_moved = || std::fs::read_to_string(format!("{inner}/cgroup.procs")).is_ok_and(|text| !text.is_empty());
    until(has_moved);
    let scope = format!("container:{}", &id[..40]);
    let words = ["record", "--detach", "--kernel=syscalls", "--kernel-of", &scope, "--name", "s", "--output", "trace"];
    place.says(&words, 0);
    std::fs::write(&file, "").expect("there is room");
    calls.make(5000, 6000, &["100"]);
    assert!(container.wait().expect("it runs").success());
    summary(place, &["stop", "s", "--json"]);
    assert_eq!(calls.found("trace", CLOSES), [(0, 1000)], "those of the container, and no others");
    let told = place.says(&["record", "--kernel", "--kernel-of", &scope, "--output", "none", "--", "true"], 2);
    assert!(told.contains("there is no container"), "{told}");
    std::fs::remove_dir(&inner).and_then(|()| std::fs::remove_dir(&group)).expect("they are empty");
}
