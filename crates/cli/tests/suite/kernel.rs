//! The kernel's events, beside those of programs, recorded by a helper with rights for a user without.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::c_programs;
use crate::recorded::Place;

/// A user without rights.
pub(crate) const NOBODY: u32 = 65534;

/// Makes a call that no other program makes here (tests record each other's, too) between two events of its own, and starts a thread and a process.
const BETWEEN: &str = r#"
#define _GNU_SOURCE
#include <kymo/kymo.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
KYMO_EVENT(app, before, KYMO_U32(n));
KYMO_EVENT(app, after, KYMO_U32(n));
static void *thread(void *nothing) { return nothing; }
int main(void) {
    for (unsigned n = 0; n < 1000; n++) {
        kymo_app_before(n);
        syscall(SYS_timer_getoverrun, 0);
        kymo_app_after(n);
    }
    pthread_t one;
    if (pthread_create(&one, 0, thread, 0) != 0) return 1;
    pthread_join(one, 0);
    pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, 0, 0);
    return 0;
}
"#;

/// Whether the kernel can be recorded here; otherwise it is said why not.
pub fn can_record(place: &Place) -> bool {
    let output =
        place.kymo(&["record", "--kernel=sched", "--output", "try", "--", "true"]).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    let is_possible = output.status.success();
    if !is_possible {
        assert!(told.contains("tracefs") || told.contains("may not read the kernel's events"), "{told}");
        eprintln!("NO TRACEFS HERE: not run ({})", told.trim_end());
    }
    is_possible
}

/// Events of a trace, in order.
pub(crate) fn events(place: &Place, path: &str) -> Vec<Value> {
    let output = place.kymo(&["print", "--format", "json", path]).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it is JSON");
    text.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect()
}

pub(crate) fn name(event: &Value) -> &str {
    event["event"].as_str().unwrap_or_default()
}

/// Each system call of a program lies between two of its events on one clock, and forks distinguish threads from processes.
#[test]
fn calls_lie_between_events_of_a_program() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    let Some(library) = c_programs::library() else { return };
    let program = c_programs::program(&place.path("."), &library, "between", BETWEEN);
    let output = place.kymo(&["record", "--kernel", "--json", "--output", "trace", "--"]).arg(&program).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(summary["problems"], serde_json::json!([]), "{summary}");
    assert_eq!((&summary["kernel"]["lost"], &summary["kernel"]["unreadable"]), (&0.into(), &0.into()), "{summary}");
    let events = events(&place, "trace");
    let is_its = |event: &&Value| {
        let filename = event["payload"]["filename"].as_str();
        name(event) == "sched_process_exec" && filename.is_some_and(|filename| filename.ends_with("/between"))
    };
    let its = events.iter().find(is_its).expect("it was started");
    let own = ["app:before", "syscall_entry_timer_getoverrun", "syscall_exit_timer_getoverrun", "app:after"];
    let exec = its["payload"]["tid"].as_i64().expect("it has a number");
    let (first, last) =
        (events.iter().position(|event| name(event) == own[0]), events.iter().rposition(|event| name(event) == own[3]));
    let between = &events[first.expect("there are some")..=last.expect("there are some")];
    let order: Vec<&str> = between.iter().map(name).filter(|name| own.contains(name)).collect();
    let strange = order.chunks(4).find(|four| *four != own);
    assert_eq!((order.len(), strange), (4000, None), "a call is not between its events");
    let forks: Vec<(i64, i64, i64)> = events
        .iter()
        .filter(|event| name(event) == "sched_process_fork" && event["payload"]["parent_tid"] == exec)
        .map(|event| {
            let of = |field: &str| event["payload"][field].as_i64().expect("it is a number");
            (of("parent_pid"), of("child_tid"), of("child_pid"))
        })
        .collect();
    let [thread, process] = forks[..] else { panic!("{forks:?}") };
    assert_eq!((thread.0, thread.2), (exec, exec), "the thread is of its process");
    assert_eq!((process.0, process.2), (exec, process.1), "the child is a process");
    told_by_lttng(&events);
    read_by_babeltrace(&place, "trace");
}

/// The state of the system is there, and fields have the names and values that analyses know.
fn told_by_lttng(events: &[Value]) {
    let of = |wanted: &str| events.iter().find(|event| name(event) == wanted).unwrap_or_else(|| panic!("no {wanted}"));
    let own = i64::from(std::process::id());
    let is_own = |event: &&Value| name(event) == "lttng_statedump_process_state" && event["payload"]["pid"] == own;
    assert!(events.iter().any(|event| is_own(&event)), "this process is not told");
    assert!(of("lttng_statedump_end")["time"].as_u64() >= of("lttng_statedump_start")["time"].as_u64());
    let switch = &of("sched_switch")["payload"];
    // As LTTng counts priorities: the usual one is 20.
    let priorities = events.iter().filter(|event| name(event) == "sched_switch");
    assert!(priorities.clone().any(|event| event["payload"]["next_prio"] == 20), "{switch}");
    assert!(switch["prev_comm"].is_string() && switch["next_tid"].is_i64(), "{switch}");
}

/// Babeltrace reads it without a word of complaint.
pub(crate) fn read_by_babeltrace(place: &Place, path: &str) {
    let Ok(output) = place.command("babeltrace2").arg(path).output() else {
        eprintln!("BABELTRACE2 ABSENT: it has not read the kernel's trace");
        return;
    };
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout).lines().count();
    let counted = place.json(&["count", "--json", path])["events"].as_u64();
    assert_eq!(Some(lines as u64), counted);
}

/// Only the events that were asked for are there, and analyses answer from them.
#[test]
fn events_are_chosen() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    place.says(&["record", "--kernel=sched_switch,syscalls,!sys_exit", "--output", "trace", "--", "true"], 0);
    for event in events(&place, "trace") {
        let name = name(&event);
        let is_chosen = name == "sched_switch" || name.starts_with("syscall_entry_");
        let is_state = name.starts_with("lttng_statedump_") || name.starts_with("kymo_statedump_");
        assert!(is_chosen || is_state || name.starts_with("kymo:"), "{name}");
    }
    assert!(place.says(&["check", "trace"], 0).contains("no problems"));
    assert!(place.says(&["info", "trace"], 0).contains("recorded  by kymo "));
    let told = place.says(&["record", "--kernel=shced_switch", "--output", "none", "--", "true"], 2);
    assert!(told.contains("the kernel has no event `shced_switch`; did you mean `sched_switch`?"), "{told}");
    assert!(!place.path("none").exists());
}

/// The kernel has no buffer of ours any more when the command has ended.
#[test]
fn nothing_is_left_in_the_kernel() {
    let place = Place::alone();
    if !can_record(&place) {
        return;
    }
    let instances = || {
        let entries = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with("kymo-")).count()
    };
    let before = instances();
    place.says(&["record", "--kernel=sched", "--output", "trace", "--", "true"], 0);
    // Those of helpers that were killed before are gone, too.
    assert!(instances() <= before);
}

/// A command that root began for another user: the program, the recorder and the trace are that user's.
#[test]
fn a_user_is_served_by_sudo() {
    let place = Place::new();
    if std::fs::metadata(place.path(".")).expect("it is there").uid() != 0 {
        eprintln!("NOT TESTED: only root can act for another user");
        return;
    }
    if !can_record(&place) {
        return;
    }
    // The user has to reach both.
    let (kymo, folder) = (place.path("command"), place.path("theirs"));
    std::fs::copy(env!("CARGO_BIN_EXE_kymo"), &kymo).expect("there is room");
    std::fs::create_dir(&folder).expect("there is room");
    std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may do that");
    std::fs::set_permissions(place.path("."), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let output = sudo(&kymo, &folder, &["record", "--kernel=sched", "--output", "trace", "--", "id", "-u"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), NOBODY.to_string());
    for path in ["trace", "trace/kernel", "trace/kernel/metadata"] {
        let found = folder.join(path).metadata().expect("it is there");
        assert_eq!(found.uid(), NOBODY, "{path}");
        let wanted = if path == "trace/kernel/metadata" { 0o600 } else { 0o700 };
        assert!(path == "trace" || found.mode() & 0o777 == wanted, "{path}: {:o}", found.mode());
    }
    // Without the helper, the same user may not.
    let mut alone = place.command("setpriv");
    alone.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&kymo).current_dir(&folder);
    alone.args(["record", "--kernel", "--output", "other", "--", "true"]).env_remove("XDG_RUNTIME_DIR");
    let Ok(output) = alone.output() else {
        eprintln!("NOT TESTED: there is no setpriv");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("may not read the kernel's events") && told.contains("sudo kymo record --kernel"), "{told}");
    assert!(!folder.join("other").exists());
}

/// Events are listed with their fields, and nothing is recorded.
#[test]
fn events_are_listed() {
    let place = Place::new();
    if !can_record(&place) {
        return;
    }
    let events = place.json(&["record", "--kernel=sched_switch,syscalls,filemap:*", "--list", "--json"]);
    let field = |event: &str, name: &str| {
        let event = events.as_array().expect("a list").iter().find(|one| one["event"] == event);
        let fields = event.expect("it is chosen")["fields"].as_array().expect("a list");
        fields.iter().find(|field| field["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    assert_eq!(field("sched_switch", "prev_tid")["note"], "prev_pid");
    assert_eq!(field("sched_switch", "prev_prio")["source"], "derived");
    assert_eq!(field("syscall_entry_openat", "filename")["source"], "ebpf");
    assert_eq!(field("syscall_exit_openat", "ret")["type"], "i64");
    let told = place.says(&["record", "--kernel=sched_switch", "--list"], 0);
    assert!(told.starts_with("sched_switch  (sched:sched_switch)\n"), "{told}");
    assert!(!place.path("kymo-traces").exists());
}

/// The doctor looks at the kernel's part, with and without rights, and says so where it may not look.
#[test]
fn the_doctor_looks_at_the_kernel() {
    let place = Place::new();
    if std::fs::metadata(place.path(".")).expect("it is there").uid() != 0 || !can_record(&place) {
        eprintln!("NOT TESTED: only root sees the kernel's part");
        return;
    }
    let of = |findings: &Value, about: &str| {
        let finding = findings.as_array().expect("a list").iter().find(|finding| finding["about"] == about);
        finding.map(|finding| (finding["grade"].clone(), finding["found"].to_string(), finding["help"].to_string()))
    };
    let findings = place.json(&["doctor", "--json"]);
    assert_eq!(of(&findings, "kernel: tracefs").expect("it was looked at").0, "good", "{findings}");
    for about in ["rights", "clock", "system calls", "kprobes", "uprobes", "buffers", "eBPF", "processes of others"] {
        assert!(of(&findings, &format!("kernel: {about}")).is_some(), "{about}: {findings}");
    }
    // A missing part has a remedy.
    let parts = findings.as_array().expect("a list").iter().filter(|finding| finding["grade"] != "good");
    assert!(parts.clone().all(|finding| finding["help"].is_string()), "{findings}");
    let folder = place.path("theirs");
    std::fs::create_dir(&folder).expect("there is room");
    std::fs::copy(env!("CARGO_BIN_EXE_kymo"), folder.join("kymo")).expect("there is room");
    std::fs::set_permissions(place.path("."), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut alone = place.command("setpriv");
    alone.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "./kymo", "doctor", "--json"]);
    let Ok(output) = alone.current_dir(&folder).env_remove("XDG_RUNTIME_DIR").output() else {
        eprintln!("NOT TESTED: there is no setpriv");
        return;
    };
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let (grade, found, help) = of(&findings, "kernel: tracefs").expect("it was looked at");
    assert!(grade == "note" && found.contains("were not looked at") && help.contains("sudo kymo doctor"), "{findings}");
    assert_eq!(of(&findings, "kernel: rights").expect("it was looked at").0, "note");
    // Parts that this user may not look at are not claimed.
    for about in ["clock", "system calls", "kprobes", "uprobes", "buffers"] {
        assert!(of(&findings, &format!("kernel: {about}")).is_none(), "{about}: {findings}");
    }
}

/// The environment that `sudo` gives.
pub(crate) fn sudo(kymo: &Path, folder: &Path, words: &[&str]) -> Output {
    let user = NOBODY.to_string();
    let mut command = Command::new(kymo);
    command.args(words).current_dir(folder).env_remove("XDG_RUNTIME_DIR").env_remove("KYMO_SESSION");
    command.env("SUDO_UID", &user).env("SUDO_GID", &user).env("SUDO_USER", "nobody");
    command.output().expect("it starts")
}
