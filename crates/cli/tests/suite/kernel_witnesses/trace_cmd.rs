//! trace-cmd reads a second buffer of the kernel, which has the same events of the same CPU.
//!
//! ```text
//! marks of the load, on one CPU   0 ── 1 ── 2 ···················· 3 ── 4 ── 5
//! inner events                              └────────────────────────┘
//! outer events                    └────────────────────────────────────────────┘
//! ```
//!
//! An interrupt between the two writes of a mark is before it in one buffer, and behind it in the other one. So the inner events of each
//! have to be among the outer ones of the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::{first_mark, has_tool, load_in, told};
use crate::kernel::{events, name};
use crate::recorded::Place;

/// Stays on the first CPU that it may use; makes calls, rests, and wakes a thread, between marks.
const LOAD: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int to[2], from[2];
static void mark(long number) { syscall(SYS_timer_getoverrun, number); }
static void *answer(void *nothing) {
    char byte;
    while (read(to[0], &byte, 1) == 1 && byte != 'e')
        if (write(from[1], &byte, 1) != 1) abort();
    return nothing;
}
int main(int count, char **words) {
    cpu_set_t all, one;
    pthread_t thread;
    char byte;
    int cpu = 0;
    long first = atol(words[count - 1]);
    if (sched_getaffinity(0, sizeof all, &all)) return 1;
    while (!CPU_ISSET(cpu, &all)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) || pipe(to) || pipe(from)) return 1;
    if (pthread_create(&thread, 0, answer, 0)) return 1;
    for (int n = 0; n < 3; n++) mark(first + n);
    for (int n = 0; n < 2000; n++) {
        syscall(SYS_getppid);
        close(900000 + n);
        if (n % 10 == 0) usleep(50);
        if (n % 20 == 0 && (write(to[1], "x", 1) != 1 || read(from[0], &byte, 1) != 1)) return 1;
    }
    for (int n = 3; n < 6; n++) mark(first + n);
    if (write(to[1], "e", 1) != 1) return 1;
    pthread_join(thread, 0);
    return 0;
}
"#;
/// Events of the second buffer.
const RECORDED: [&str; 12] = [
    "raw_syscalls/sys_enter",
    "raw_syscalls/sys_exit",
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_migrate_task",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq/irq_handler_entry",
    "timer/hrtimer_start",
    "timer/hrtimer_expire_entry",
    "timer/hrtimer_cancel",
];
/// How often an event with these facts was recorded.
type EventCounts = BTreeMap<String, u64>;

/// An instance of tracefs, which trace-cmd reads; it removes it, too. It gives up when events come or go while it reads their descriptions,
/// so no test with probes may run beside.
struct SecondBuffer {
    path: PathBuf,
    name: String,
}

/// About the calls of the burst alone.
const FILTER: [&str; 2] = ["--kernel-filter", "event.name == \"syscall_entry_io_destroy\""];

impl SecondBuffer {
    /// With these events, and so many KiB for each CPU.
    fn of(events: &[&str], size: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("witness-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new("/sys/kernel/tracing/instances").join(&name);
        std::fs::create_dir(&path).expect("root may do that");
        let this = Self { path, name };
        this.set("trace_clock", "mono");
        this.set("buffer_size_kb", size);
        events.iter().for_each(|event| this.set(&format!("events/{event}/enable"), "1"));
        this
    }

    fn set(&self, file: &str, word: &str) {
        std::fs::write(self.path.join(file), word).unwrap_or_else(|error| panic!("{file}: {error}"));
    }

    /// Records of all CPUs, and how many the kernel has overwritten or dropped, as trace-cmd tells them.
    fn end(self, place: &Place) -> (String, u64) {
        self.set("events/enable", "0");
        let cpus = std::fs::read_dir(self.path.join("per_cpu")).expect("it is there").flatten();
        let lost =
            cpus.map(|cpu| std::fs::read_to_string(cpu.path().join("stats")).expect("it is there")).map(|stats| {
                let lines = stats.lines().filter_map(|line| line.split_once(": "));
                let lines = lines.filter(|(fact, _)| ["overrun", "commit overrun", "dropped events"].contains(fact));
                lines.map(|(_, number)| number.trim().parse::<u64>().expect("a number")).sum::<u64>()
            });
        let lost = lost.sum();
        // It keeps the names of the kernel's functions, and gives up when these change meanwhile, as they do when a program is loaded.
        std::fs::write(place.path("no-names"), "").expect("there is room");
        let script = "mount --bind no-names /proc/kallsyms; exec trace-cmd \"$@\"";
        let run = |words: &[&str]| {
            let mut command = place.command("unshare");
            let output = command.args(["--mount", "sh", "-c", script, "sh"]).args(words).output();
            let output = output.expect("it starts");
            assert!(output.status.success(), "{words:?}: {output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        run(&["extract", "-B", &self.name, "-o", "second.dat"]);
        (run(&["report", "-t", "-N", "second.dat"]), lost)
    }
}

impl Drop for SecondBuffer {
    fn drop(&mut self) {
        // trace-cmd has removed it, unless the test has failed.
        let _ = std::fs::write(self.path.join("events/enable"), "0");
        let _ = std::fs::remove_dir(&self.path);
    }
}

#[test]
fn events_of_a_cpu_are_those_of_trace_cmd() {
    let Some((place, program)) = load_in(Place::alone(), "witnessed", LOAD, &[]) else { return };
    if !has_tool("trace-cmd", "--version") {
        return;
    }
    let first = first_mark();
    let second = SecondBuffer::of(&RECORDED, "16384");
    let words =
        ["record", "--kernel=sched,syscalls,irq,timer:*", "--kernel-buffer", "16MiB", "--json", "--output", "trace"];
    let mut command = place.kymo(&words);
    let output = command.arg("--").arg(&program).arg(first.to_string()).output().expect("it starts");
    let (report, lost) = second.end(&place);
    // The losses of both: none.
    told(&output);
    assert_eq!(lost, 0, "trace-cmd's buffer lost events");
    let events = events(&place, "trace");
    let ours = |begin, end| of_kymo(&events, first + begin, first + end);
    let theirs = |begin, end| of_trace_cmd(&report, first + begin, first + end);
    let (inner, outer) = (ours(1, 4), ours(0, 5));
    let (their_inner, their_outer) = (theirs(1, 4), theirs(0, 5));
    is_among("kymo has more", &inner, &their_outer);
    is_among("trace-cmd has more", &their_inner, &outer);
    // What the load did itself is there, so that equal counts are not those of nothing.
    let of = |start: &str| inner.iter().filter(|(key, _)| key.starts_with(start)).map(|(_, count)| count).sum::<u64>();
    assert!(of("sys_enter") >= 4000 + 200 + 300 && of("sys_exit") >= 4500, "{inner:?}");
    assert!(of("sched_switch") >= 400 && of("sched_waking") >= 300 && of("hrtimer_expire_entry") >= 200, "{inner:?}");
}

/// Makes as many calls as it has to, which nothing else here makes, without a rest.
const BURST: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    for (long n = count > 1 ? atol(words[1]) : 0; n > 0; n--) syscall(SYS_io_destroy, n);
    return 0;
}
"#;
const CALLS: u64 = 200_000;

/// Buffers that are too small for a load: in each, its events and those that were lost are all that there were.
#[test]
fn losses_are_counted_to_the_last() {
    let Some((place, program)) = load_in(Place::alone(), "burst", BURST, &[]) else { return };
    if !has_tool("trace-cmd", "--version") {
        return;
    }
    let second = SecondBuffer::of(&[], "64");
    let explained =
        place.json(&["record", "--kernel=raw_syscalls:sys_enter", FILTER[0], FILTER[1], "--explain", "--json"]);
    let condition = explained[0]["kernel"].as_str().expect("the kernel asks for the call").to_owned();
    second.set("events/raw_syscalls/sys_enter/filter", &condition);
    second.set("events/raw_syscalls/sys_enter/enable", "1");
    let words =
        ["record", "--kernel=raw_syscalls:sys_enter", FILTER[0], FILTER[1], "--kernel-buffer", "64KiB", "--json"];
    let mut command = place.kymo(&words);
    let output = command.args(["--output", "trace", "--"]).arg(&program).arg(CALLS.to_string()).output();
    let (report, their_lost) = second.end(&place);
    let output = output.expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let lost = summary["kernel"]["lost"].as_u64().expect("it is a number");
    let events = place.json(&["count", "--json", "--event", "syscall_entry_io_destroy", "trace"]);
    assert_eq!(events["events"].as_u64().map(|events| events + lost), Some(CALLS), "{lost} lost: {summary}");
    // Its packets tell the same.
    assert_eq!(events["events_discarded"], lost, "{summary}");
    let theirs = report.lines().filter_map(record).filter(|record| record.1 == "sys_enter").count() as u64;
    assert_eq!(theirs + their_lost, CALLS, "{their_lost} lost");
    // Otherwise nothing was tested.
    assert!(lost > 0 && their_lost > 0, "{lost} and {their_lost} lost");
}

fn is_among(what: &str, inner: &EventCounts, outer: &EventCounts) {
    let of = |key: &String| outer.get(key).copied().unwrap_or(0);
    let more: Vec<_> =
        inner.iter().filter(|(key, count)| **count > of(key)).map(|(key, count)| (key, count, of(key))).collect();
    assert!(more.is_empty(), "{what}: {more:?}");
}

/// Events of the load's CPU between two marks, by facts that both tell.
fn of_kymo(events: &[Value], begin: u64, end: u64) -> EventCounts {
    let cpu = |event: &Value| event["packet_context"]["cpu_id"].as_u64();
    let is_mark = |event: &Value, mark: u64| name(event) == super::MARK && event["payload"]["timer_id"] == mark;
    let mark = |mark| events.iter().position(|event| is_mark(event, mark)).unwrap_or_else(|| panic!("no mark {mark}"));
    let (begin, end) = (mark(begin), mark(end));
    let of_cpu = events[begin + 1..end].iter().filter(|event| cpu(event) == cpu(&events[begin]));
    let mut counts = EventCounts::new();
    for key in of_cpu.filter_map(of_event) {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

fn of_event(event: &Value) -> Option<String> {
    let field = |field: &str| event["payload"][field].as_i64().unwrap_or_else(|| panic!("no {field}: {event}"));
    Some(match name(event) {
        entry if entry.starts_with("syscall_entry_") || entry.starts_with("compat_syscall_entry_") => {
            "sys_enter".to_owned()
        }
        exit if exit.starts_with("syscall_exit_") || exit.starts_with("compat_syscall_exit_") => {
            format!("sys_exit {}", field("ret"))
        }
        "sched_switch" => format!("sched_switch {} {}", field("prev_tid"), field("next_tid")),
        waking @ ("sched_waking" | "sched_wakeup") => format!("{waking} {} {}", field("tid"), field("target_cpu")),
        "sched_migrate_task" => format!("sched_migrate_task {} {}", field("orig_cpu"), field("dest_cpu")),
        "irq_softirq_entry" => format!("softirq_entry {}", field("vec")),
        "irq_softirq_exit" => format!("softirq_exit {}", field("vec")),
        "irq_handler_entry" => format!("irq_handler_entry {}", field("irq")),
        timer if timer.starts_with("timer_hrtimer_") => match &timer["timer_".len()..] {
            "hrtimer_start" => "hrtimer_start".to_owned(),
            "hrtimer_expire_entry" => format!("hrtimer_expire_entry {}", event["payload"]["now"]),
            "hrtimer_cancel" => "hrtimer_cancel".to_owned(),
            _ => return None,
        },
        _ => return None,
    })
}

/// The same of lines of trace-cmd: `NAME: TASK-TID [CPU] TIME: EVENT: FACTS`.
fn of_trace_cmd(report: &str, begin: u64, end: u64) -> EventCounts {
    let records: Vec<(&str, &str, &str)> = report.lines().filter_map(record).collect();
    let mark = |mark: u64| {
        let facts = format!("({mark:x},");
        let is_it = |record: &(&str, &str, &str)| record.1 == "sys_enter" && record.2.contains(&facts);
        records.iter().position(is_it).unwrap_or_else(|| panic!("no mark {mark}"))
    };
    let (begin, end) = (mark(begin), mark(end));
    let of_cpu = records[begin + 1..end].iter().filter(|record| record.0 == records[begin].0);
    let mut counts = EventCounts::new();
    for key in of_cpu.map(|(_, event, facts)| of_record(event, facts)) {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// The CPU, the event and its facts.
fn record(line: &str) -> Option<(&str, &str, &str)> {
    let (_, behind) = line.split_once(" [")?;
    let (cpu, behind) = behind.split_once("] ")?;
    let (_, behind) = behind.split_once(": ")?;
    let (event, facts) = behind.split_once(':')?;
    Some((cpu, event.trim(), facts.trim()))
}

fn of_record(event: &str, facts: &str) -> String {
    // The word behind another one, up to a space or comma.
    let fact = |before: &str| {
        let at = facts.rfind(before).unwrap_or_else(|| panic!("no {before} in {event}: {facts}")) + before.len();
        facts[at..].split([' ', ',']).next().unwrap_or_default()
    };
    match event {
        "sys_enter" => event.to_owned(),
        "sys_exit" => format!("sys_exit {}", facts.rsplit(' ').next().unwrap_or_default()),
        "sched_switch" => format!("sched_switch {} {}", fact("prev_pid="), fact("next_pid=")),
        "sched_waking" | "sched_wakeup" => {
            format!("{event} {} {}", fact("pid="), fact("target_cpu=").trim_start_matches('0').parse().unwrap_or(0_u64))
        }
        "sched_migrate_task" => format!("{event} {} {}", fact("orig_cpu="), fact("dest_cpu=")),
        "softirq_entry" | "softirq_exit" => format!("{event} {}", fact("vec=")),
        "irq_handler_entry" => format!("{event} {}", fact("irq=")),
        "hrtimer_expire_entry" => format!("{event} {}", fact("now=")),
        _ => event.to_owned(),
    }
}
