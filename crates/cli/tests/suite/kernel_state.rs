//! The state of the system at the beginning of the kernel's trace: also of processes that the user may not inspect.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::Value;

use crate::kernel::{NOBODY, can_record, events, name, sudo};
use crate::recorded::Place;

/// Whether a recording's state is from iterators of the kernel; otherwise it is said why not.
fn is_complete(summary: &Value) -> bool {
    let kernel = &summary["kernel"];
    let is_complete = kernel["state"] == "eBPF";
    if !is_complete {
        assert!(kernel["state_absent"].is_string(), "{summary}");
        eprintln!("NO ITERATORS HERE: not run ({kernel})");
    }
    is_complete
}

/// A user's trace begins with threads, open files, namespaces and code of root's processes.
#[test]
fn a_user_is_told_of_processes_of_root() {
    let place = Place::new();
    if fs::metadata(place.path(".")).expect("it is there").uid() != 0 {
        eprintln!("NOT TESTED: only root can act for another user");
        return;
    }
    if !can_record(&place) {
        return;
    }
    // The user has to reach both.
    let (kymo, folder) = (place.path("command"), place.path("theirs"));
    fs::copy(env!("CARGO_BIN_EXE_kymo"), &kymo).expect("there is room");
    fs::create_dir(&folder).expect("there is room");
    std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may do that");
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = place.path("a b\u{e4}");
    let open = File::create(&path).expect("it can be made");
    let output = sudo(&kymo, &folder, &["record", "--kernel=sched", "--json", "--output", "trace", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(summary["problems"], serde_json::json!([]), "{summary}");
    if !is_complete(&summary) {
        return;
    }
    let metadata = fs::read(folder.join("trace/kernel/metadata")).expect("it is there");
    let metadata = String::from_utf8_lossy(&metadata);
    assert!(metadata.contains("state_source") && metadata.contains("eBPF"), "{metadata}");
    let (own, events) = (i64::from(std::process::id()), events(&place, "theirs/trace"));
    let of = |wanted: &str, number: &str| {
        let is_it = |event: &&Value| name(event) == wanted && event["payload"][number] == own;
        events.iter().filter(is_it).map(|event| &event["payload"]).collect::<Vec<_>>()
    };
    let threads = of("lttng_statedump_process_state", "pid");
    assert!(threads.iter().any(|thread| thread["tid"] == own), "{threads:?}");
    let files = of("lttng_statedump_file_descriptor", "pid");
    let path = path.display().to_string();
    assert!(files.iter().any(|file| file["fd"] == open.as_raw_fd() && file["filename"] == path), "{files:?}");
    let code = of("lttng_statedump_vm_map", "pid");
    let program = std::env::current_exe().expect("it is known").display().to_string();
    assert!(code.iter().any(|map| map["filename"] == program), "{code:?}");
    for namespace in ["cgroup", "ipc", "mnt", "net", "uts", "user"] {
        let told = of(&format!("lttng_statedump_process_{namespace}_ns"), "tid");
        assert!(told.len() == 1 && told[0]["ns_inum"].as_u64() > Some(0), "{namespace}: {told:?}");
    }
}

/// Parts and snapshots begin with the state of their own time, from the same source.
#[test]
fn parts_and_snapshots_begin_with_a_state() {
    let place = Place::alone();
    if !can_record(&place) {
        return;
    }
    place.says(
        &["record", "--detach", "--kernel=sched", "--mode", "overwrite", "--name", "newest", "--output", "newest"],
        0,
    );
    let mut counts = Vec::new();
    for _ in 0..2 {
        let path = place.path("opened between");
        let _open = (!counts.is_empty()).then(|| File::create(path).expect("it can be made"));
        let snapshot = place.json(&["snapshot", "newest", "--json"]);
        if !is_complete(&snapshot) {
            return;
        }
        let events = events(&place, snapshot["output"].as_str().expect("it is told"));
        let is_open = |event: &&Value| {
            let filename = event["payload"]["filename"].as_str();
            name(event) == "lttng_statedump_file_descriptor"
                && filename.is_some_and(|filename| filename.ends_with("/opened between"))
        };
        counts.push(events.iter().filter(is_open).count());
    }
    place.says(&["stop", "newest"], 0);
    assert_eq!(counts, [0, 1]);
    let words = ["record", "--kernel=syscalls", "--json", "--output", "parts", "--rotate-size", "128KiB", "--"];
    let calls = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=20000", "status=none"];
    let summary = place.json(&[&words[..], &calls].concat());
    assert!(is_complete(&summary), "{summary}");
    let parts = fs::read_dir(place.path("parts/kernel")).expect("it is there").flatten();
    let begun = parts.filter(|part| part.path().join("metadata").exists()).map(|part| {
        let path = format!("parts/kernel/{}", part.file_name().display());
        let events = events(&place, &path);
        let own = i64::from(std::process::id());
        let is_own = |event: &&Value| name(event) == "lttng_statedump_process_state" && event["payload"]["tid"] == own;
        assert_eq!(events.iter().filter(is_own).count(), 1, "{path}");
    });
    assert!(begun.count() >= 2);
}

/// Without the kernel's description of its types, `/proc` is read with the rights of the user, and the summary says why.
#[test]
fn proc_is_read_where_there_are_no_iterators() {
    let place = Place::alone();
    if fs::metadata(place.path(".")).expect("it is there").uid() != 0 || !can_record(&place) {
        eprintln!("NOT TESTED: only root hides the kernel's types");
        return;
    }
    let in_hiding = |words: &[&str]| {
        let script = "mount -t tmpfs none /sys/kernel/btf || exit 77; exec \"$0\" \"$@\"";
        let mut command = place.command("unshare");
        command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_kymo")]).args(words);
        command.output().ok().filter(|output| output.status.code() != Some(77))
    };
    let Some(output) = in_hiding(&["record", "--kernel=sched", "--output", "trace", "--", "true"]) else {
        eprintln!("NOT TESTED: nothing can be mounted");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let line = "  state     at the beginning is from /proc: /sys/kernel/btf/vmlinux: No such file";
    assert!(output.status.success() && told.contains(line), "{told}");
    let events = events(&place, "trace");
    let own = i64::from(std::process::id());
    for (wanted, number) in [("lttng_statedump_process_state", "pid"), ("lttng_statedump_vm_map", "pid")] {
        let is_own = |event: &Value| name(event) == wanted && event["payload"][number] == own;
        assert!(events.iter().any(is_own), "{wanted}");
    }
    let output = in_hiding(&["doctor"]).expect("it could be done before");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(!told.contains("eBPF tells all"), "{told}");
}

/// A recorder in a container tells the container's processes with their numbers in it, and no others.
#[test]
fn a_container_has_its_own_numbers() {
    let place = Place::alone();
    if fs::metadata(place.path(".")).expect("it is there").uid() != 0 || !can_record(&place) {
        eprintln!("NOT TESTED: only root makes a container");
        return;
    }
    let mut command = place.command("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", "\"$0\" \"$@\"; exit $?", env!("CARGO_BIN_EXE_kymo")]);
    command.args(["record", "--kernel=sched", "--output", "trace", "--json", "--", "true"]);
    let Some(output) = command.output().ok().filter(|output| output.status.success()) else {
        eprintln!("NOT TESTED: there are no namespaces");
        return;
    };
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    if !is_complete(&summary) {
        return;
    }
    let events = events(&place, "trace");
    let threads = events.iter().filter(|event| name(event) == "lttng_statedump_process_state");
    let numbers: Vec<i64> = threads.filter_map(|event| event["payload"]["tid"].as_i64()).collect();
    let shell =
        events.iter().find(|event| name(event) == "lttng_statedump_process_state" && event["payload"]["tid"] == 1);
    let shell = &shell.expect("it is told")["payload"];
    assert_eq!((&shell["name"], &shell["ppid"]), (&"sh".into(), &0.into()), "{shell}");
    assert!(numbers.iter().all(|number| *number < 1000), "these are numbers of others: {numbers:?}");
    let is_inner = |event: &&Value| name(event) == "lttng_statedump_process_pid_ns";
    let levels = events.iter().filter(is_inner).map(|event| event["payload"]["ns_level"].clone());
    assert!(levels.clone().count() > 0 && levels.clone().all(|level| level == 0), "{levels:?}");
}
