//! Context switches by perf, where tracefs cannot be reached.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::c_programs::compile;
use crate::kernel::{can_record, events, name, read_by_babeltrace};
use crate::recorded::Place;
use crate::resumed::kill_recorder;

/// Rests 200 times, uses two tenths of a second of processor time, and tells its switches and its time.
const RESTS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void print(const char *path) {
    char text[4096];
    FILE *file = fopen(path, "r");
    if (!file) exit(1);
    while (fgets(text, sizeof text, file))
        if (strstr(path, "schedstat") || strstr(text, "ctxt_switches")) fputs(text, stdout);
    fclose(file);
}
int main(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, 0, 0);
    for (int n = 0; n < 200; n++) usleep(500);
    struct timespec time;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    while (time.tv_sec == 0 && time.tv_nsec < 200000000);
    printf("%d %d\n", (int)getpid(), (int)child);
    print("/proc/self/status");
    print("/proc/self/schedstat");
    return 0;
}
"#;

/// Runs a program in a mount namespace without tracefs and debugfs, and without the right to mount them.
const HIDDEN: &str = "for place in /sys/kernel/tracing /sys/kernel/debug; do umount -l $place 2>/dev/null; done
test -e /sys/kernel/tracing/available_events && exit 99
exec setpriv --bounding-set=-sys_admin \"$@\"";

/// Such a program, if it can be run here; otherwise it is said why not.
fn hidden(place: &Place) -> Option<impl Fn(&[&str]) -> Command> {
    let folder = place.command("kymo").get_current_dir().expect("it has one").to_owned();
    let of = move |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", HIDDEN, "sh"]).args(words).current_dir(&folder);
        command.env("XDG_RUNTIME_DIR", &folder).env_remove("KYMO_SESSION");
        command.env_remove("SUDO_UID").env_remove("PKEXEC_UID");
        command
    };
    let is_root = std::fs::metadata(place.path(".")).expect("it is there").uid() == 0;
    let tried = of(&["grep", "CapEff", "/proc/self/status"]).output();
    if !is_root || !tried.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "NO NAMESPACE HERE: context switches by perf are not tested (only root, with unshare and setpriv, can)"
        );
        return None;
    }
    Some(of)
}

fn number(event: &Value, field: &str) -> i64 {
    event["payload"][field].as_i64().unwrap_or_else(|| panic!("no {field}: {event}"))
}

fn of<'e>(events: &'e [Value], wanted: &'static str) -> impl Iterator<Item = &'e Value> {
    events.iter().filter(move |event| name(event) == wanted)
}

/// The facts that a program tells of itself.
struct OwnFacts {
    tid: i64,
    child: i64,
    waits: i64,
    preemptions: i64,
    ran_ns: i64,
}

impl OwnFacts {
    fn read(text: &str) -> Self {
        let numbers: Vec<i64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [tid, child, waits, preemptions, ran_ns, ..] = numbers[..] else { panic!("{text}") };
        Self { tid, child, waits, preemptions, ran_ns }
    }
}

/// Switches of a program, its forks and its end, and what analyses make of them, are as the kernel counts them; a recording by tracefs
/// at the same time has the same switches.
#[test]
fn switches_without_tracefs() {
    let place = Place::new();
    let Some(hidden) = hidden(&place) else { return };
    if !can_record(&place) || Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let program = compile(&place.path("."), "rests", RESTS, &[]);
    let kymo = env!("CARGO_BIN_EXE_kymo");
    let inner = [kymo, "record", "--kernel", "--json", "--name", "inner", "--output", "inner", "--"];
    let inner = hidden(&[&inner[..], &[program.to_str().expect("it is text")]].concat());
    let words = ["record", "--kernel=sched_switch", "--name", "outer", "--output", "outer", "--"];
    let output = place.kymo(&words).arg(inner.get_program()).args(inner.get_args()).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).expect("it is text");
    let (own, summary) = told.split_once("{\"").expect("the summary follows");
    let own = OwnFacts::read(own);
    let summary: Value =
        serde_json::from_str(&format!("{{\"{}", summary.lines().next().expect("a line"))).expect("JSON");
    assert_eq!((&summary["problems"], &summary["kernel"]["lost"]), (&json!([]), &0.into()), "{summary}");
    let why = summary["kernel"]["tracefs_absent"].as_str().unwrap_or_else(|| panic!("{summary}"));
    assert!(why.contains("cannot be used") && why.contains("system calls") && why.contains("are missing"), "{why}");

    let (events, outer) = (events(&place, "inner"), events(&place, "outer"));
    assert_eq!(summary["kernel"]["events"].as_u64(), Some(events.len() as u64), "no event is missing");
    let away: Vec<&Value> = of(&events, "sched_switch").filter(|event| number(event, "prev_tid") == own.tid).collect();
    let state = |event: &Value| event["payload"]["prev_state"].as_i64();
    let preempted = away.iter().filter(|event| state(event) == Some(0)).count() as i64;
    let waits = away.iter().filter(|event| state(event).is_none()).count() as i64;
    // It may be stopped behind its last look at its counts, too. Kernels in some virtual machines leave out single switches.
    assert!((-own.waits / 50..=3).contains(&(waits - own.waits)), "{waits} of {}: {away:?}", own.waits);
    assert!((-own.preemptions / 50..=3).contains(&(preempted - own.preemptions)), "{preempted} of {}", own.preemptions);
    assert!(own.waits >= 200);
    assert!(away.iter().all(|event| event["payload"].get("prev_prio").is_none()), "no field is invented");
    threads(&events, &own);
    same_switches(&away, &outer, own.tid);
    analyses(&place, &own, preempted);
    read_by_babeltrace(&place, "inner");
    let told = place.says(&["check", "inner"], 0);
    assert!(told.contains("no problems"), "{told}");
    assert!(place.says(&["info", "inner"], 0).contains("recorded  by kymo "));
}

/// The child that it makes, its names, and its end.
fn threads(events: &[Value], own: &OwnFacts) {
    let fork = of(events, "sched_process_fork").find(|event| number(event, "child_tid") == own.child);
    let fork = fork.expect("it makes one");
    assert_eq!([number(fork, "parent_pid"), number(fork, "child_pid")], [own.tid, own.child]);
    assert_eq!(fork["payload"]["child_comm"], "rests", "{fork}");
    let rename = of(events, "task_rename").find(|event| number(event, "tid") == own.tid).expect("it was started");
    assert_eq!((&rename["payload"]["newcomm"], &rename["payload"]["oldcomm"]), (&"rests".into(), &"kymo".into()));
    assert!(of(events, "sched_process_exec").any(|event| number(event, "tid") == own.tid));
    for tid in [own.tid, own.child] {
        assert!(of(events, "sched_process_exit").any(|event| number(event, "tid") == tid), "{tid} ends");
    }
}

/// Tracefs tells the same switches away from the program.
fn same_switches(by_perf: &[&Value], outer: &[Value], tid: i64) {
    let by_tracefs: Vec<&Value> = of(outer, "sched_switch").filter(|event| number(event, "prev_tid") == tid).collect();
    let time = |event: &Value| event["time"].as_i64().expect("it has a time");
    // Either may lack one that the other has, and which of several threads that are gone runs next is not told to perf.
    let pairs = |apart: i64| {
        let of = |tracefs: &Value| {
            let is_it = |perf: &&Value| {
                let is_near = (time(perf) - time(tracefs)).abs_diff(apart) < 20_000;
                is_near && perf["payload"]["next_tid"] == tracefs["payload"]["next_tid"]
            };
            by_perf.iter().position(is_it)
        };
        let all = by_tracefs.iter().enumerate();
        all.filter_map(|(at, tracefs)| Some((of(tracefs)?, at))).collect::<Vec<_>>()
    };
    // Each session measures how far its clock is from that of the day.
    let ends = [(by_perf.first(), by_tracefs.first()), (by_perf.last(), by_tracefs.last())];
    let ends = ends.map(|(perf, tracefs)| time(perf.expect("it is there")) - time(tracefs.expect("it is there")));
    let pairs = ends.map(pairs).into_iter().max_by_key(Vec::len).expect("there are two");
    for (perf, tracefs) in pairs.iter().map(|(perf, tracefs)| (by_perf[*perf], by_tracefs[*tracefs])) {
        for field in ["prev_comm", "next_comm"] {
            assert_eq!(perf["payload"][field], tracefs["payload"][field], "{field}: {perf} {tracefs}");
        }
        assert_eq!(perf["packet_context"], tracefs["packet_context"], "{perf} {tracefs}");
        let state = tracefs["payload"]["prev_state"].as_i64().expect("it has one");
        assert_eq!(perf["payload"]["prev_state"] == 0, state == 0, "{perf} {tracefs}");
    }
    let (all, more) = (by_perf.len(), by_tracefs.len());
    assert!(pairs.len() * 50 >= all.max(more) * 49, "{} of {all} by perf and {more} by tracefs", pairs.len());
}

/// Analyses count as the kernel does.
fn analyses(place: &Place, own: &OwnFacts, preempted: i64) {
    let row = |words: &[&str], class: &str| {
        let all = place.json(&[words, &["--top", "all", "--json", "inner"]].concat());
        let tables = all["tables"].as_array().expect("tables");
        let table = tables.iter().find(|table| table["class"] == class).unwrap_or_else(|| panic!("no {class}: {all}"));
        let columns: Vec<String> =
            table["columns"].as_array().expect("columns").iter().map(|column| column["name"].to_string()).collect();
        let rows = table["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row[0]["tid"] == own.tid).unwrap_or_else(|| panic!("no row: {table}")).clone();
        move |name: &str| {
            let at = columns.iter().position(|column| column.trim_matches('"') == name).expect("it has the column");
            // With bounds, if a switch is missing.
            let value = if row[at].is_object() { &row[at]["value"] } else { &row[at] };
            value.as_i64().unwrap_or_else(|| panic!("no {name}: {row}"))
        }
    };
    let cpu = row(&["cpu"], "per-thread");
    // It was made before the recording began, and it ends behind its own look.
    let more_ns = cpu("run_time") - own.ran_ns;
    assert!((-own.ran_ns / 20..own.ran_ns / 20).contains(&more_ns), "{} ns of {}", cpu("run_time"), own.ran_ns);
    assert!(cpu("preemptions").abs_diff(preempted) <= 2, "{} of {preempted}", cpu("preemptions"));
    // Who wakes it is not known.
    let sched = row(&["sched"], "per-thread");
    assert!(sched("count") == 0 && sched("unseen") >= own.waits * 49 / 50, "{} of {}", sched("unseen"), own.waits);
}

/// Events that need tracefs are refused by name, ready choices do without, and the doctor says so.
#[test]
fn the_rest_needs_tracefs() {
    let place = Place::new();
    let Some(hidden) = hidden(&place) else { return };
    let kymo = env!("CARGO_BIN_EXE_kymo");
    let says = |words: &[&str], status: i32| {
        let output = hidden(&[&[kymo], words].concat()).output().expect("it starts");
        let told = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(status), "{words:?} {told}");
        told
    };
    let record =
        |words: &[&str], status| says(&[&["record", "--output", "trace"], words, &["--", "true"]].concat(), status);
    for (words, why) in [
        (&["--kernel=sched,block:*"][..], "`block:*` cannot be recorded"),
        (&["--kernel=irq"], "none of these events can be recorded without tracefs"),
        (&["--kernel", "--mode", "overwrite"], "a flight recorder keeps no events of the kernel without tracefs"),
        (&["--kernel", "--stacks=sched_switch"], "`sched_switch` has no call stacks without tracefs"),
        (&["--uprobe", "libc.so.6:getenv"], "there are no probes without tracefs"),
    ] {
        let told = record(words, 2);
        assert!(told.contains(why) && told.contains("\nhelp: "), "{told}");
        assert!(!place.path("trace").exists(), "{told}");
    }
    let told = record(&["--kernel=!sched_waking", "--stacks", "--rotate-time", "50ms"], 0);
    assert!(told.contains("  tracefs   cannot be used: ") && told.contains("of 5 kinds"), "{told}");
    assert!(told.contains("  losses    none"), "{told}");
    let mut parts = Path::new(&place.path("trace/kernel")).read_dir().expect("it is there").flatten();
    let part = parts.next().expect("there is one").path().join("metadata");
    let metadata = std::fs::read(part).expect("it can be read");
    assert!(String::from_utf8_lossy(&metadata).contains("kernel_events"), "its environment says so");
    let told = says(&["record", "--kernel", "--list"], 0);
    assert!(told.contains("sched_switch  (sched:sched_switch)\n  prev_comm   text[16]  kernel\n"), "{told}");
    assert!(says(&["record", "--kernel=irq_handler_entry", "--list"], 2).contains("without tracefs"));
    let findings: Value = serde_json::from_str(&says(&["doctor", "--json"], 0)).expect("it is JSON");
    let of =
        |about: &str| findings.as_array().expect("a list").iter().find(|finding| finding["about"] == about).cloned();
    assert_eq!(of("kernel: tracefs").expect("it was looked at")["grade"], "note");
    let switches = of("kernel: context switches").expect("they were looked at");
    assert!(switches["grade"] == "good" && switches["found"].to_string().contains("system calls"), "{switches}");
}

/// With `--kernel-of`, switches are those of the chosen threads; in a PID namespace, it is said that others have no number.
#[test]
fn some_threads_without_tracefs() {
    let place = Place::new();
    let Some(hidden) = hidden(&place) else { return };
    let kymo = env!("CARGO_BIN_EXE_kymo");
    let words = [kymo, "record", "--kernel", "--kernel-of", "command", "--output", "some", "--", "sh", "-c"];
    let script = "for n in 1 2 3; do sleep 0.01; done";
    let output = hidden(&[&words[..], &[script]].concat()).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let events = events(&place, "some");
    let own = ["sh", "sleep", "kymo"];
    let has = |event: &Value, field: &str| own.iter().any(|own| event["payload"][field] == *own);
    let mut all = of(&events, "sched_switch").peekable();
    assert!(all.peek().is_some());
    assert!(all.all(|event| has(event, "prev_comm") || has(event, "next_comm")));
    assert_eq!(of(&events, "sched_process_exit").filter(|event| event["payload"]["comm"] == "sleep").count(), 3);

    // The right to mount is taken where no more namespace has to be made. A recorder of its own is in this one.
    let inside = "for place in /sys/kernel/tracing /sys/kernel/debug; do umount -l $place 2>/dev/null; done; exec unshare --fork --pid --mount-proc setpriv --bounding-set=-sys_admin \"$@\"";
    let other = Place::new();
    let mut command = other.command("unshare");
    command.args(["-m", "sh", "-c", inside, "sh", kymo, "record", "--kernel", "--output", "inside", "--", "true"]);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("threads outside of this PID namespace have the number of an idle CPU"), "{told}");
}

/// Each switch is in the trace once, and is counted, although two recorders are killed.
#[test]
fn the_next_recorder_goes_on_without_tracefs() {
    let place = Place::new();
    let Some(hidden) = hidden(&place) else { return };
    if Command::new("cc").arg("--version").output().is_err() {
        return eprintln!("NO COMPILER HERE: not run");
    }
    let program = compile(&place.path("."), "rests", RESTS, &[]);
    let kymo = env!("CARGO_BIN_EXE_kymo");
    let words = [kymo, "record", "--detach", "--kernel", "--name", "s", "--output", "trace"];
    let output = hidden(&words).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let programs: Vec<OwnFacts> = (0..3)
        .map(|number| {
            let child = Command::new(&program).stdout(Stdio::piped()).spawn().expect("it starts");
            if number < 2 {
                std::thread::sleep(Duration::from_millis(50));
                assert!(kill_recorder(&place));
                // The command starts the next one.
                place.says(&["sessions"], 0);
            }
            OwnFacts::read(&String::from_utf8_lossy(&child.wait_with_output().expect("it ends").stdout))
        })
        .collect();
    let summary = &place.json(&["stop", "s", "--json"])[0];
    assert_eq!(summary["kernel"]["lost"], 0, "{summary}");
    let parts = ["trace/kernel", "trace/kernel-2", "trace/kernel-3"].map(|path| events(&place, path));
    let count: usize = parts.iter().map(Vec::len).sum();
    assert_eq!(summary["kernel"]["events"].as_u64(), Some(count as u64), "{summary}");
    let switches: Vec<&Value> = parts.iter().flat_map(|part| of(part, "sched_switch")).collect();
    let unique: HashSet<String> = switches
        .iter()
        .map(|event| format!("{} {} {}", event["time"], event["packet_context"], event["payload"]))
        .collect();
    assert_eq!(unique.len(), switches.len(), "nothing twice");
    for own in &programs {
        let away = switches.iter().filter(|event| number(event, "prev_tid") == own.tid);
        let waits = away.filter(|event| event["payload"]["prev_state"].is_null()).count() as i64;
        assert!((-own.waits / 50..=3).contains(&(waits - own.waits)), "{waits} of {}", own.waits);
    }
    assert!(place.says(&["check", "trace"], 0).contains("no problems"));
}

/// Filters are the recorder's, and it says so.
#[test]
fn filters_without_tracefs() {
    let place = Place::new();
    let Some(hidden) = hidden(&place) else { return };
    if Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let program = compile(&place.path("."), "rests", RESTS, &[]);
    let kymo = env!("CARGO_BIN_EXE_kymo");
    let filter = "sched_switch when prev_comm == \"rest*\" && tid == prev_tid";
    let words = [kymo, "record", "--kernel", "--json", "--output", "trace", "--kernel-filter", filter, "--"];
    let mut recording = hidden(&[&words[..], &[program.to_str().expect("it is text")]].concat());
    let output = recording.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).expect("it is text");
    let summary = told.lines().find(|line| line.starts_with("{\"")).expect("the summary");
    let summary: Value = serde_json::from_str(summary).expect("JSON");
    let places = summary["kernel"]["filters"].as_array().expect("there are places");
    assert!(places.iter().all(|place| place["runs"] == "recorder"), "{places:?}");
    assert_ne!(summary["kernel"]["filtered"], 0, "{summary}");
    let events = events(&place, "trace");
    assert_eq!(summary["kernel"]["events"].as_u64(), Some(events.len() as u64), "no event is missing");
    assert!(of(&events, "sched_switch").count() >= 150, "{summary}");
    assert!(of(&events, "sched_switch").all(|event| event["payload"]["prev_comm"] == "rests"));
    assert!(of(&events, "task_rename").count() > 0, "others are recorded");
}
