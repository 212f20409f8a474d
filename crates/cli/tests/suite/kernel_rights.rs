//! The kernel's events for a user other than root: by a buffer that root has prepared for a group, and by single capabilities.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::kernel::{NOBODY, can_record, events, name};
use crate::recorded::Place;

/// A group that nothing else has.
const GROUP: u32 = 64999;
const TRACEFS: &str = "/sys/kernel/tracing";
const INSTANCE: &str = "/sys/kernel/tracing/instances/shared-kymo-test";

/// A folder of the user, with a `kymo` that it can start; `None`: this cannot be run here, which is said.
fn user(place: &Place) -> Option<(PathBuf, PathBuf)> {
    let is_root = std::fs::metadata(place.path(".")).expect("it is there").uid() == 0;
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("NOT TESTED: only root, with setpriv, can act for another user");
        return None;
    }
    if !can_record(place) {
        return None;
    }
    let (kymo, folder) = (place.path("command"), place.path("theirs"));
    std::fs::copy(env!("CARGO_BIN_EXE_kymo"), &kymo).expect("there is room");
    std::fs::create_dir(&folder).expect("there is room");
    chown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may do that");
    std::fs::set_permissions(place.path("."), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    Some((kymo, folder))
}

/// Runs kymo as the user, in these groups and with these capabilities.
fn run((kymo, folder): &(PathBuf, PathBuf), groups: &[&str], capabilities: &[&str], words: &[&str]) -> Output {
    let (user, mut command) = (NOBODY.to_string(), Command::new("setpriv"));
    command.args(["--reuid", &user, "--regid", &user]).args(groups);
    let sets: String = capabilities.iter().map(|name| format!(",+{name}")).collect();
    command.args([format!("--inh-caps=-all{sets}"), format!("--ambient-caps=-all{sets}")]);
    command.arg(kymo).args(words).current_dir(folder).env("XDG_RUNTIME_DIR", folder).env_remove("KYMO_SESSION");
    command.env_remove("SUDO_UID").env_remove("PKEXEC_UID");
    command.output().expect("it starts")
}

/// The output of a command, and the summary of its recording behind it.
fn summary(output: &Output) -> (String, Value) {
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = told.find("{\"").expect("there is a summary");
    (told[..begin].to_owned(), serde_json::from_str(told[begin..].trim_end()).expect("it is JSON"))
}

/// The trace is the user's alone.
fn is_private(folder: &std::path::Path) {
    for path in ["trace/kernel", "trace/kernel/metadata", "trace/kernel/cpu_0"] {
        let found = folder.join(path).metadata().expect("it is there");
        let wanted = if path == "trace/kernel" { 0o700 } else { 0o600 };
        assert_eq!((found.uid(), found.mode() & 0o777), (NOBODY, wanted), "{path}");
    }
}

/// The doctor's finding about a part.
fn finding(findings: &Value, about: &str) -> (String, String) {
    let finding = findings.as_array().expect("a list").iter().find(|finding| finding["about"] == about);
    let finding = finding.unwrap_or_else(|| panic!("no {about}: {findings}"));
    let of = |part: &str| finding[part].as_str().unwrap_or_default().to_owned();
    (of("grade"), of("found"))
}

/// A group that may read tracefs, with a prepared instance.
struct GroupOfTracefs {
    before: std::fs::Metadata,
}

impl GroupOfTracefs {
    fn prepare() -> Option<Self> {
        let before = std::fs::metadata(TRACEFS).expect("it is there");
        let prepared = Self { before };
        let does = |words: &[&str]| Command::new(words[0]).args(&words[1..]).status().is_ok_and(|done| done.success());
        let options = format!("remount,gid={GROUP},mode=750");
        let group = GROUP.to_string();
        let is_done = does(&["mount", "-o", &options, TRACEFS])
            && does(&["mkdir", "-p", INSTANCE])
            && does(&["chgrp", "-R", &group, INSTANCE])
            && does(&["chmod", "-R", "g+rwX", INSTANCE]);
        if !is_done {
            eprintln!("NOT TESTED: tracefs takes no group here");
        }
        is_done.then_some(prepared)
    }
}

impl Drop for GroupOfTracefs {
    fn drop(&mut self) {
        let options = format!("remount,gid={},mode={:o}", self.before.gid(), self.before.mode() & 0o777);
        let _ = Command::new("mount").args(["-o", &options, TRACEFS]).status();
        let _ = std::fs::remove_dir(INSTANCE);
    }
}

/// A member of a group records tracepoints in an instance that root has prepared, with no other right; with capabilities, texts, stacks and
/// the state are there, too.
#[test]
fn a_group_records_in_a_prepared_buffer() {
    let place = Place::alone();
    let Some(user) = user(&place) else { return };
    let Some(_prepared) = GroupOfTracefs::prepare() else { return };
    let groups = [&format!("--groups={GROUP}")[..]];
    let words = ["record", "--kernel=sched,syscalls", "--stacks", "--json", "--output", "trace", "--", "id", "-u"];
    let (said, told) = summary(&run(&user, &groups, &[], &words));
    assert_eq!(said.trim(), NOBODY.to_string());
    assert_eq!((&told["problems"], &told["kernel"]["unreadable"]), (&json!([]), &0.into()), "{told}");
    assert_eq!(
        (&told["kernel"]["tracefs_absent"], &told["kernel"]["state"]),
        (&Value::Null, &"/proc".into()),
        "{told}"
    );
    // The rest is said.
    for part in ["texts_absent", "stacks_absent", "state_absent"] {
        assert!(told["kernel"][part].is_string(), "{part}: {told}");
    }
    let trace = user.1.join("trace").display().to_string();
    let all = events(&place, &trace);
    let has = |wanted: &str| all.iter().any(|event| name(event) == wanted);
    assert!(has("sched_switch") && has("syscall_entry_execve") && has("lttng_statedump_process_state"));
    is_private(&user.1);
    // The instance is as it was, for the next one.
    let read = |file: &str| std::fs::read_to_string(format!("{INSTANCE}/{file}")).expect("it is there");
    assert_eq!((read("tracing_on").trim(), read("events/enable").trim()), ("0", "0"));
    let enabled = run(&user, &groups, &[], &["record", "--uprobe", "libc.so.6:getenv", "--output", "no", "--", "true"]);
    let told = String::from_utf8_lossy(&enabled.stderr).into_owned();
    assert!(!enabled.status.success() && told.contains("uprobe_events: Permission denied"), "{told}");

    std::fs::remove_dir_all(&trace).expect("it is there");
    let (_, told) = summary(&run(&user, &groups, &["perfmon", "bpf"], &words));
    for part in ["texts_absent", "stacks_absent", "state_absent", "tracefs_absent"] {
        assert_eq!(told["kernel"][part], Value::Null, "{part}: {told}");
    }
    assert!(told["kernel"]["texts"].as_u64() > Some(0) && told["kernel"]["stacks"].as_u64() > Some(0), "{told}");

    // Those of some threads and those of all need an instance each, and there is one.
    let words = ["record", "--kernel", "--kernel-of", "command", "--output", "no", "--", "true"];
    let output = run(&user, &groups, &[], &words);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("no instance that was prepared, `shared-kymo...`, is free"), "{told}");

    let output = run(&user, &groups, &[], &["doctor", "--json"]);
    let findings: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let (grade, found) = finding(&findings, "kernel: tracefs");
    assert!(grade == "good" && found.contains("root has prepared there: 1"), "{findings}");
    let (grade, found) = finding(&findings, "kernel: rights");
    assert!(grade == "good" && found.contains("has no capability"), "{findings}");
    assert_eq!(finding(&findings, "kernel: perf events").0, "note", "{findings}");
    assert_eq!(finding(&findings, "kernel: eBPF").0, "note", "{findings}");
}

/// With two capabilities and nothing else, perf and the iterators of the kernel work; the rest is said, and only the helper has them.
#[test]
fn capabilities_give_their_part() {
    let place = Place::new();
    let Some(user) = user(&place) else { return };
    let record = |capabilities: &[&str], more: &[&str], command: &[&str]| {
        let _ = std::fs::remove_dir_all(user.1.join("trace"));
        let words = [&["record", "--kernel", "--json", "--output", "trace"], more, &["--"], command].concat();
        run(&user, &["--clear-groups"], capabilities, &words)
    };
    let script = "grep -h Cap /proc/self/status /proc/$(pgrep -u 65534 -f recorder-of-this-user | head -1)/status; \
        n=0; while [ $n -lt 20000 ]; do n=$((n+1)); done";
    let (said, told) = summary(&record(&["perfmon", "bpf", "syslog"], &["--stacks"], &["sh", "-c", script]));
    assert_eq!((&told["problems"], &told["kernel"]["lost"]), (&json!([]), &0.into()), "{told}");
    let why = told["kernel"]["tracefs_absent"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert!(why.contains("Permission denied") && why.contains("are missing"), "{why}");
    assert_eq!((&told["kernel"]["state"], &told["kernel"]["stacks_absent"]), (&"eBPF".into(), &Value::Null), "{told}");
    assert!(told["kernel"]["stacks"].as_u64() > Some(0), "{told}");
    let sets: Vec<&str> = said.lines().filter(|line| !line.starts_with("CapBnd:")).collect();
    let is_empty = |line: &&str| line.trim_end().ends_with("\t0000000000000000");
    assert!(sets.len() == 8 && sets.iter().all(is_empty), "the command and the recorder have none: {said}");
    let trace = user.1.join("trace").display().to_string();
    let all = events(&place, &trace);
    let switches = all.iter().filter(|event| name(event) == "sched_switch");
    assert!(switches.clone().any(|event| event["payload"]["next_comm"] == "sh"));
    // Iterators tell root's own processes with their files.
    let own = i64::from(std::process::id());
    let is_file = |event: &&Value| name(event) == "lttng_statedump_file_descriptor" && event["payload"]["pid"] == own;
    assert!(all.iter().any(|event| is_file(&event)), "files of process {own}");
    is_private(&user.1);

    let (_, told) = summary(&record(&["perfmon"], &["--stacks"], &["true"]));
    assert_eq!(told["kernel"]["state"], "/proc", "{told}");
    // Without `CAP_SYSLOG`, the kernel may hide its addresses.
    let is_said = |problem: &Value| problem.as_str().is_some_and(|text| text.contains("hides the addresses"));
    assert!(told["problems"].as_array().expect("a list").iter().all(is_said), "{told}");
    assert!(told["kernel"]["state_absent"].is_string() && told["kernel"]["tracefs_absent"].is_string(), "{told}");
    // With the right to pass over permissions of files, it makes a buffer as root does.
    let (_, told) = summary(&record(&["perfmon", "bpf", "dac_override"], &["--stacks"], &["true"]));
    for part in ["texts_absent", "stacks_absent", "state_absent", "tracefs_absent"] {
        assert_eq!(told["kernel"][part], Value::Null, "{part}: {told}");
    }
    is_private(&user.1);
    let output = record(&["bpf"], &[], &["true"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("may not read the kernel's events") && told.contains("perf tells no context switches"),
        "{told}"
    );

    let output = run(&user, &["--clear-groups"], &["perfmon", "bpf"], &["doctor", "--json"]);
    let findings: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let (grade, found) = finding(&findings, "kernel: rights");
    assert!(grade == "good" && found.contains("CAP_PERFMON, CAP_BPF"), "{findings}");
    assert_eq!(finding(&findings, "kernel: tracefs").0, "note");
    for about in ["kernel: context switches", "kernel: perf events", "kernel: eBPF"] {
        assert_eq!(finding(&findings, about).0, "good", "{about}: {findings}");
    }
    assert!(finding(&findings, "kernel: processes of others").1.contains("eBPF"), "{findings}");
}
