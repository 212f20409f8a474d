//! Filters of the kernel's events: a trace has the same events as one of all events that is read with the filter.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::c_programs::compile;
use crate::kernel::{can_record, name};
use crate::recorded::Place;

/// Two threads of an odd name hand each other bytes, and calls fail in several ways; names tell the begin and the end.
const LOAD: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
static int ends[2];
static void *feed(void *none) {
    prctl(PR_SET_NAME, "fed [thread]");
    for (int n = 0; n < 100; n++) {
        if (write(ends[1], "x", 1) != 1) return none;
        usleep(100);
    }
    close(ends[1]);
    return none;
}
int main(void) {
    pthread_t thread;
    char byte;
    if (pipe(ends)) return 1;
    prctl(PR_SET_NAME, "filter-begin");
    if (pthread_create(&thread, 0, feed, 0)) return 1;
    for (int n = 0; n < 100; n++) {
        close(-1);
        getppid();
        if (open("/nonexistent/file", O_RDONLY) >= 0 || open("/dev/nonexistent", O_WRONLY) >= 0) return 2;
    }
    while (read(ends[0], &byte, 1) == 1) {}
    pthread_join(thread, 0);
    prctl(PR_SET_NAME, "filter-end");
    return 0;
}
"#;

/// Filters: the events, the expression, how reading names these events, and where it runs.
const FILTERS: [(&str, &str, &str, &str); 14] = [
    ("sys_exit", "ret < 0 && ret != -11", "syscall_exit_*|compat_syscall_exit_*", "kernel"),
    ("syscall_entry_*", "filename == \"*nonexist*\" || fd == -1", "syscall_entry_*|compat_syscall_entry_*", "both"),
    ("sched_switch", "next_comm == \"fed*\" || prev_prio < 20 && next_tid != 0", "sched_switch", "kernel"),
    ("sched_switch", "!(prev_tid == 0 || next_comm == \"fed*\")", "sched_switch", "kernel"),
    ("sched_waking,sched_wakeup", "target_cpu == 0 || comm == \"fed*rea*\"", "sched_waking|sched_wakeup", "kernel"),
    ("sched_waking,sched_wakeup", "!(comm == \"f*d*rea*\") && comm != \"*ead]\"", "sched_waking|sched_wakeup", "both"),
    ("sched_switch", "next_comm == \"*d [t*\" && prev_comm != \"7z*\"", "sched_switch", "recorder"),
    ("softirq_*", "vec & 6", "irq_softirq_*", "kernel"),
    ("softirq_*", "!(vec & 6) && vec <= 9000000000", "irq_softirq_*", "kernel"),
    ("irq:*", "(cpu_id & 1 || vec == 9) && vec != 1", "irq_*", "both"),
    ("!sched_*,!task_*", "event.name == \"syscall_*_read\" || event.name == \"irq*\"", "", "both"),
    // The kernel is asked as in a search of these numbers.
    (
        "sys_exit",
        "ret in (-9223372036854775808..-4094, -2, -9, -13, 0..1, 3..4, 7, 9, 11, 32..64, 9223372036854775807) && ret != 4",
        "syscall_exit_*|compat_syscall_exit_*",
        "kernel",
    ),
    (
        "sched_switch",
        "!(next_tid in (0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) || prev_tid in (0..3, 5, 7, 9, 11))",
        "sched_switch",
        "kernel",
    ),
    ("irq:*,sched_switch", "cpu_id == 0 && (prev_state == 0 || irq > 3)", "", "both"),
];

/// Each of two buffers reads the clock by itself: an event this near to the first or the last may be on the other side there.
const EDGE_NS: i64 = 1_000_000;

/// Events between the two names, without their times: each as a line, with its times.
type EventTimes = BTreeMap<String, Vec<i64>>;

/// Those events, and the times of the two names.
fn between(place: &Place, path: &str, filter: &str) -> (EventTimes, [i64; 2]) {
    let mut words = vec!["print", "--format", "json", path];
    if !filter.is_empty() {
        words.extend(["--filter", filter]);
    }
    let output = place.kymo(&words).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it is JSON");
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let time = |event: &Value| event["time"].as_i64().expect("it has a time");
    let edges = ["filter-begin", "filter-end"].map(|wanted| {
        let is_it = |event: &&Value| name(event) == "task_rename" && event["payload"]["newcomm"] == wanted;
        time(events.iter().find(is_it).expect("the load tells it"))
    });
    let mut times = EventTimes::new();
    // The state of the system at the beginning of the inner one is left out.
    let inside = |event: &&Value| (edges[0]..=edges[1]).contains(&time(event)) && !name(event).contains("_statedump_");
    for event in events.iter().filter(inside) {
        let mut payload = event["payload"].clone();
        // A fork tells the process of a thread that was made in the same instant on another CPU, or -1.
        for process in ["parent_pid", "child_pid"] {
            payload.as_object_mut().expect("it has fields").remove(process);
        }
        let line = format!("{} {} {payload}", name(event), event["packet_context"]["cpu_id"]);
        times.entry(line).or_default().push(time(event));
    }
    (times, edges)
}

/// Events that one side has more often than the other, but for those at the edges.
fn more((one, edges): &(EventTimes, [i64; 2]), (other, _): &(EventTimes, [i64; 2])) -> Vec<String> {
    let is_at_edge = |time: &&i64| edges.iter().any(|edge| edge.abs_diff(**time) <= EDGE_NS.unsigned_abs());
    let more = one.iter().filter(|(line, times)| {
        let others = other.get(*line).map_or(0, Vec::len);
        times.len() > others + times.iter().filter(is_at_edge).count()
    });
    more.map(|(line, _)| line.clone()).collect()
}

/// The filter for reading: a filter is about events of these names.
fn as_read(events: &str, expression: &str, names: &str) -> String {
    let is_one = |name: &str| format!("event.name == \"{name}\"");
    let about = match (names, events) {
        ("", "!sched_*,!task_*") => "event.name != \"sched_*\" && event.name != \"task_*\"".to_owned(),
        ("", _) => "event.name == \"irq_*\" || event.name == \"sched_switch\"".to_owned(),
        _ => names.split('|').map(is_one).collect::<Vec<_>>().join(" || "),
    };
    // A comparison with a missing field is not true.
    format!("!({about}) || (({expression}) && ({about}))").replace("cpu_id", "packet.context.cpu_id")
}

/// A recording with a filter beside one without: between the same moments they have the same events.
#[test]
fn what_is_kept_is_what_reading_keeps() {
    let place = Place::new();
    if !can_record(&place) || Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let load = compile(&place.path("."), "load", LOAD, &["-O1", "-pthread"]);
    let kymo = place.kymo(&[]).get_program().to_owned();
    let mut telling = 0;
    for (at, (events, expression, names, runs)) in FILTERS.iter().enumerate() {
        let (all, some) = (format!("all{at}"), format!("some{at}"));
        let filter = format!("{events} when {expression}");
        let words = ["record", "--kernel=sched,syscalls,irq", "--kernel-buffer", "32MiB", "--output"];
        let mut outer = place.kymo(&words);
        outer.args([all.as_str(), "--"]).arg(&kymo).args(words).args([some.as_str(), "--json", "--kernel-filter"]);
        let output = outer.args([filter.as_str(), "--"]).arg(&load).output().expect("it starts");
        assert!(output.status.success(), "{filter}: {output:?}");
        let text = String::from_utf8(output.stdout).expect("it is text");
        let summary = text.lines().find(|line| line.starts_with('{')).expect("there is a summary");
        let summary: Value = serde_json::from_str(summary).expect("it is JSON");
        let kernel = &summary["kernel"];
        assert_eq!((&kernel["lost"], &kernel["unreadable"]), (&0.into(), &0.into()), "{filter}");
        let places = kernel["filters"].as_array().expect("there are places");
        assert!(places.iter().any(|place| place["runs"] == *runs), "{filter}: {places:#?}");
        let (kept, wanted) = (between(&place, &some, ""), between(&place, &all, &as_read(events, expression, names)));
        let (missing, besides) = (more(&wanted, &kept), more(&kept, &wanted));
        assert!(missing.is_empty() && besides.is_empty(), "{filter}: missing {missing:#?}, besides {besides:#?}");
        let count = |(times, _): &(EventTimes, _)| times.values().map(Vec::len).sum::<usize>();
        let (kept, all) = (count(&kept), count(&between(&place, &all, "")));
        assert!(kept > 100, "{filter}: {kept} of {all}");
        telling += usize::from(kept < all);
    }
    // Of some events, a machine has those alone that a filter keeps.
    assert!(telling > FILTERS.len() / 2, "{telling} filters have let go of events");
}

/// A filter for a thread, by the number that every record has.
#[test]
fn threads_are_told_by_every_record() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    let load = "mkfifo in out; python3 -c '
import os
open(\"pid\", \"w\").write(str(os.getpid()))
open(\"in\").read()
for n in range(300):
    try: os.close(987654)
    except OSError: pass
open(\"out\", \"w\").write(\"done\")' & while ! test -s pid; do sleep 0.01; done";
    let folder = place.path(".");
    let started = Command::new("sh").args(["-c", load]).current_dir(&folder).status().expect("it starts");
    assert!(started.success());
    let pid = std::fs::read_to_string(folder.join("pid")).expect("it is there");
    let filter = format!("tid == {pid} && (ret == -9 || fd == 987654)");
    let words = ["record", "--kernel=syscalls", "--output", "trace", "--json", "--kernel-filter", &filter, "--"];
    let output = place.kymo(&words).args(["sh", "-c", "echo > in; cat out"]).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let counted = place.json(&["count", "trace", "--json"]);
    let text = counted.to_string();
    let of = |event: &str| text.contains(&format!("{event:?}"));
    assert!(of("syscall_exit_close") && of("syscall_entry_close"), "{text}");
    let events = crate::kernel::events(&place, "trace");
    let calls: Vec<&Value> = events.iter().filter(|event| name(event).starts_with("syscall_")).collect();
    assert_eq!(calls.len(), 600, "{text}");
    assert!(calls.iter().all(|call| name(call).ends_with("_close")), "{text}");
}

/// Places of filters are told, and words that are no filter of these events are refused.
#[test]
fn places_are_told_and_mistakes_refused() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    let explain = |filter: &str, more: &[&str]| {
        let words = ["record", "--kernel=sched,syscalls", "--kernel-filter", filter, "--explain"];
        let output = place.kymo(&words).args(more).output().expect("it starts");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (status, text, _) = explain("sched_switch when prev_prio < 20 && prev_comm == \"k*r\"", &[]);
    assert_eq!(status, Some(0));
    assert!(text.starts_with("13 tracepoints: 1 filtered by the kernel, 12 recorded whole\n"), "{text}");
    assert!(text.contains("\nsched:sched_switch  kernel  prev_prio < 120 && prev_comm ~ \"k*r\"\n"), "{text}");
    let (_, text, _) = explain("sched_switch when next_tid in (2, 4, 6, 8, 10) && next_tid > 3", &[]);
    let searched = "next_pid >= 4 && next_pid <= 10 && (next_pid >= 8 || next_pid == 4 || next_pid == 6) && \
                    (next_pid <= 7 || next_pid == 8 || next_pid == 10)";
    assert!(text.contains(&format!("\nsched:sched_switch  kernel  {searched}\n")), "{text}");
    let other = ["--kernel-filter", "sched_switch when next_tid < 5"];
    let (_, text, _) = explain("sched_switch when next_tid > 4", &other);
    let never = "1 never recorded, because no number is as the filter wants it: sched:sched_switch";
    assert!(text.contains(never), "{text}");
    let (_, text, _) = explain("ret < -1 && event.name == \"syscall_exit_getppid\"", &["--json"]);
    let places: Value = serde_json::from_str(&text).expect("it is JSON");
    let of = |event: &str| {
        let place = places.as_array().expect("a list").iter().find(|place| place["tracepoint"] == event);
        place.unwrap_or_else(|| panic!("no {event}: {places}")).clone()
    };
    let exits = of("raw_syscalls:sys_exit");
    if cfg!(target_arch = "x86_64") {
        // 110 is `iopl` of programs of 32 bits.
        assert_eq!((&exits["runs"], &exits["kernel"]), (&"both".into(), &"id == 110 && ret < -1".into()), "{exits}");
    }
    assert_eq!(of("sched:sched_switch")["runs"], "never", "{places}");
    assert!(of("sched:sched_switch")["why"].as_str().is_some_and(|why| why.contains("`ret`")), "{places}");
    let wrong = [
        ("prev_prio <", "expected a value"),
        ("prev_prioo < 3", "help: there is `prev_prio`"),
        ("shced_switch when prev_prio < 3", "help: there is `sched_switch`"),
        ("sched_switch when prev_comm < 3", "cannot be compared"),
        ("sched_switch when time > 3", "not while events are recorded"),
    ];
    for (filter, expected) in wrong {
        let (status, _, told) = explain(filter, &[]);
        assert!(status == Some(2) && told.contains(expected), "{filter}: {status:?} {told}");
        let words = ["record", "--kernel=sched,syscalls", "--kernel-filter", filter, "--output", "none", "--", "true"];
        let output = place.kymo(&words).output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(expected), "{filter}: {told}");
    }
    let words = [
        "record",
        "--kernel=sched_switch",
        "--kernel-filter",
        "prev_prio > 9000000000",
        "--output",
        "none",
        "--",
        "true",
    ];
    let output = place.kymo(&words).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("keep no event of the kernel"), "{told}");
}
