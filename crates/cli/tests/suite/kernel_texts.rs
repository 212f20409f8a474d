//! Texts of system calls, and callers of 32 bits, as programs in the kernel tell them.

use std::collections::HashMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::c_programs;
use crate::kernel::{NOBODY, can_record, events, name, sudo};
use crate::recorded::Place;
use crate::resumed::kill_recorder;

/// Opens and renames by known names: some of them in a page that is not in memory, one at an address that is none, one of 4000 bytes.
const NAMES: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static void begin(const char *path) { syscall(SYS_openat, AT_FDCWD, path, 0, 0); }
int main(int count, char **words) {
    char path[4096];
    for (int n = 0; n < 500; n++) {
        snprintf(path, sizeof path, "/kymo-known/%d", n);
        begin(path);
    }
    memset(path, 'y', 4000);
    memcpy(path, "/kymo-long/", 11);
    path[4000] = 0;
    begin(path);
    int file = open(words[1], O_RDWR | O_CREAT, 0600);
    char page[4096] = "/kymo-cold";
    if (write(file, page, sizeof page) != sizeof page || fsync(file) != 0) return 1;
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    const char *cold = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    if (cold == MAP_FAILED) return 1;
    begin(cold);
    begin((const char *)8);
    begin("/kymo-behind");
    rename("/kymo-old", "/kymo-new");
    linkat(AT_FDCWD, "/kymo-a", AT_FDCWD, "/kymo-b", 0);
    if (symlink("/kymo-target", "/kymo-nowhere/link") == 0) return 1;
    return 0;
}
"#;

/// Threads open files by names that tell the program, the thread, and the number that is the call's `mode`.
const THREADS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *many(void *thread) {
    char path[64];
    for (int n = 0; n < 3000; n++) {
        snprintf(path, sizeof path, "/kymo-%s/%d/%d", program_invocation_short_name, gettid(), n);
        syscall(SYS_openat, AT_FDCWD, path, 0, n);
    }
    return thread;
}
int main(void) {
    pthread_t all[16];
    for (int n = 0; n < 16; n++) if (pthread_create(&all[n], 0, many, 0) != 0) return 1;
    for (int n = 0; n < 16; n++) pthread_join(all[n], 0);
    return 0;
}
"#;

/// A program of 64 bits that makes calls of 32 bits: `getpid`, and `open` of a text below 4 GiB, between calls that no other
/// program makes here: tests record each other's, too.
#[cfg(target_arch = "x86_64")]
const COMPAT: &str = r#"
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static long compat(long number, long first) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(0), "d"(0)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}
int main(void) {
    char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED) return 1;
    strcpy(low, "/kymo-compat");
    /* Where the kernel has no 32-bit calls, there is nothing to test. */
    if (compat(20, 0) != getpid()) return 3;
    for (int n = 0; n < 100; n++) {
        syscall(SYS_ioprio_get, 0);
        compat(20, 0);
        syscall(SYS_ioprio_get, 0);
    }
    compat(5, (long)low);
    compat(195, (long)low);
    compat(33, 8);
    return 0;
}
"#;

/// Records calls of a program; `None`: there are no texts here, and it was said.
fn recorded(place: &Place, program: &str, code: &str, words: &[&str]) -> Option<(Vec<Value>, Value)> {
    if !can_record(place) {
        return None;
    }
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("NOT TESTED: there is no C compiler");
        return None;
    }
    let program = c_programs::compile(&place.path("."), program, code, &["-pthread"]);
    let options = ["record", "--kernel=syscalls", "--json", "--output", "trace"];
    let output = place.kymo(&options).args(words).arg("--").arg(&program).arg(place.path("cold")).output();
    let output = output.expect("it starts");
    if output.status.code() == Some(3) {
        eprintln!("NO 32-BIT CALLS HERE: not run");
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(summary["problems"], serde_json::json!([]), "{summary}");
    if let Some(why) = summary["kernel"]["texts_absent"].as_str() {
        eprintln!("NO TEXTS OF SYSTEM CALLS HERE: not run ({why})");
        return None;
    }
    Some((events(place, "trace"), summary))
}

fn payload<'a>(events: &'a [Value], of: &'a str, field: &'a str, text: &'a str) -> impl Iterator<Item = &'a Value> {
    let is_it = move |event: &&Value| {
        name(event) == of && event["payload"][field].as_str().is_some_and(|found| found.starts_with(text))
    };
    events.iter().filter(is_it).map(|event| &event["payload"])
}

#[test]
fn names_are_those_of_the_program() {
    let place = Place::new();
    let Some((events, summary)) = recorded(&place, "names", NAMES, &[]) else { return };
    assert_eq!((&summary["kernel"]["texts_lost"], &summary["kernel"]["lost"]), (&0.into(), &0.into()), "{summary}");
    let openat = "syscall_entry_openat";
    let known: Vec<&str> =
        payload(&events, openat, "filename", "/kymo-known/").filter_map(|event| event["filename"].as_str()).collect();
    let wanted: Vec<String> = (0..500).map(|number| format!("/kymo-known/{number}")).collect();
    assert_eq!(known, wanted);
    let long = payload(&events, openat, "filename", "/kymo-long/").next().expect("it is there");
    assert_eq!(long["filename"].as_str().map(str::len), Some(4000));
    let cold = payload(&events, openat, "filename", "/kymo-cold").next().expect("it was read at the end of the call");
    assert_eq!((&cold["filename"], &cold["unreadable"]), (&"/kymo-cold".into(), &0.into()));
    // The call between these two has an address that is none.
    let calls: Vec<&Value> = events.iter().filter(|event| name(event) == openat).map(|it| &it["payload"]).collect();
    let cold = calls.iter().position(|event| event["filename"] == "/kymo-cold").expect("it is there");
    let its = calls[cold..].iter().find(|event| event["unreadable"] != 0).expect("it says that it is unreadable");
    assert_eq!((&its["filename"], &its["unreadable"]), (&"".into(), &2.into()));
    assert!(payload(&events, openat, "filename", "/kymo-behind").next().is_some());
    assert!(calls[0].get("filename_address").is_none());
    for (call, first, second) in [
        ("rename", ("oldname", "/kymo-old"), ("newname", "/kymo-new")),
        ("linkat", ("oldname", "/kymo-a"), ("newname", "/kymo-b")),
        ("symlink", ("oldname", "/kymo-target"), ("newname", "/kymo-nowhere/link")),
    ] {
        // The C library may make another call of it.
        let of = |event: &&Value| name(event).starts_with(&format!("syscall_entry_{call}"));
        let found = events.iter().filter(of).find(|event| event["payload"][first.0] == first.1);
        let found = found.unwrap_or_else(|| panic!("no {call}"));
        assert_eq!(found["payload"][second.0], second.1, "{found}");
    }
    let exec = events.iter().filter(|event| name(event) == "syscall_entry_execve");
    let is_own = |event: &Value| event["payload"]["filename"].as_str().is_some_and(|path| path.ends_with("/names"));
    assert!(exec.into_iter().any(is_own), "the program was started");
}

/// Whatever runs where: each text is that of its own call.
#[test]
fn texts_of_many_threads_are_not_mixed_up() {
    let place = Place::new();
    let Some((events, summary)) = recorded(&place, "threads", THREADS, &[]) else { return };
    let (mut known, mut threads) = (0, HashMap::<&str, usize>::new());
    for event in payload(&events, "syscall_entry_openat", "filename", "/kymo-threads/") {
        let path = event["filename"].as_str().expect("it is text");
        let mut parts = path.split('/').skip(2);
        let (thread, number) = (parts.next().expect("it is there"), parts.next().expect("it is there"));
        assert_eq!(Some(number.to_owned()), event["mode"].as_u64().map(|mode| mode.to_string()), "{event}");
        *threads.entry(thread).or_default() += 1;
        known += 1;
    }
    let lost = &summary["kernel"];
    if (lost["lost"].as_u64(), lost["texts_lost"].as_u64()) == (Some(0), Some(0)) {
        assert_eq!((known, threads.len()), (48_000, 16), "{summary}");
    }
}

/// Text rings of the smallest size overflow: the summary counts the lost texts, and no text is that of another call.
#[test]
fn lost_texts_are_told() {
    let place = Place::new();
    let Some((events, summary)) = recorded(&place, "lost", THREADS, &["--kernel-buffer", "64KiB"]) else { return };
    let kernel = &summary["kernel"];
    if kernel["texts_lost"] == 0 {
        // A fast reader keeps up with 64 KiB.
        eprintln!("NO TEXT WAS LOST: not tested ({summary})");
    }
    for event in payload(&events, "syscall_entry_openat", "filename", "/kymo-lost/") {
        let number = event["filename"].as_str().and_then(|path| path.rsplit('/').next()).expect("it is text");
        assert_eq!(Some(number.to_owned()), event["mode"].as_u64().map(|mode| mode.to_string()), "{event}");
    }
    if kernel["texts_lost"] != 0 {
        let unknown = events.iter().filter(|event| event["payload"]["unreadable"].as_u64() > Some(0)).count();
        assert!(unknown > 0 && kernel["texts_unknown"].as_u64() >= Some(1), "{summary}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn callers_of_32_bits_are_told_apart() {
    let place = Place::new();
    let Some((events, summary)) = recorded(&place, "compat", COMPAT, &[]) else { return };
    assert_eq!((&summary["kernel"]["texts_lost"], &summary["kernel"]["lost"]), (&0.into(), &0.into()), "{summary}");
    let between = ["syscall_entry_ioprio_get", "compat_syscall_entry_getpid", "compat_syscall_exit_getpid"];
    let calls: Vec<&str> = events.iter().map(name).filter(|name| between.contains(name)).collect();
    let first = calls.iter().position(|name| *name == between[0]).expect("it is there");
    let wanted = [between[0], between[1], between[2], between[0]];
    let calls = &calls[first..];
    assert!(calls.len() == 400 && calls.chunks(4).all(|four| four == wanted), "{calls:?}");
    for call in ["compat_syscall_entry_open", "compat_syscall_entry_stat64"] {
        let found = payload(&events, call, "filename", "/kymo-compat").next();
        assert_eq!(found.unwrap_or_else(|| panic!("no {call}"))["unreadable"], 0);
    }
    let bad = events.iter().find(|event| name(event) == "compat_syscall_entry_access").expect("it is there");
    assert_eq!((&bad["payload"]["filename"], &bad["payload"]["unreadable"]), (&"".into(), &1.into()));
}

/// Without texts, or where the user does not want them, there are addresses, and the trace says so.
#[test]
fn addresses_where_texts_are_not_wanted() {
    let place = Place::new();
    let Some((events, _)) = recorded(&place, "names", NAMES, &["--kernel-texts", "none"]) else { return };
    let call = events.iter().find(|event| name(event) == "syscall_entry_openat").expect("it is there");
    let payload = &call["payload"];
    assert!(payload.get("filename").is_none() && payload["filename_address"].is_u64(), "{payload}");
    let told = place.says(&["info", "trace"], 0);
    assert!(told.contains("texts     of system calls are addresses: texts were not wanted"), "{told}");
}

/// Texts are read of the calls of the chosen processes alone; parts of a trace have them, too.
#[test]
fn texts_of_some_processes_are_in_parts() {
    let place = Place::new();
    let words = ["--kernel-of", "command", "--rotate-size", "64KiB"];
    let others = "while :; do cat /kymo-other; sleep 0.01; done 2> /dev/null";
    let mut others = Command::new("sh").args(["-c", others]).process_group(0).spawn().expect("it starts");
    let found = recorded(&place, "few", THREADS, &words);
    let group = rustix::process::Pid::from_child(&others);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("it runs");
    others.wait().expect("it ran");
    let Some((events, summary)) = found else { return };
    let kernel = &summary["kernel"];
    let openat: Vec<&Value> = payload(&events, "syscall_entry_openat", "filename", "/kymo-few/").collect();
    for event in &openat {
        let number = event["filename"].as_str().and_then(|path| path.rsplit('/').next()).expect("it is text");
        assert_eq!(Some(number.to_owned()), event["mode"].as_u64().map(|mode| mode.to_string()), "{event}");
    }
    if (kernel["lost"].as_u64(), kernel["texts_lost"].as_u64()) == (Some(0), Some(0)) {
        assert_eq!(openat.len(), 48_000, "{summary}");
        // Those that start the program open some libraries.
        let read = kernel["texts"].as_u64().expect("it is told");
        assert!((48_000..48_200).contains(&read), "{summary}");
    }
    let parts = std::fs::read_dir(place.path("trace/kernel")).expect("it is there").count();
    assert!(parts > 3, "{parts}");
}

/// Every snapshot of a flight recorder has the texts of its calls, also after another recorder.
#[test]
fn snapshots_have_texts() {
    let place = Place::alone();
    if !can_record(&place) {
        return;
    }
    let words = ["record", "--detach", "--kernel=syscalls", "--mode", "overwrite", "--name", "s", "--output", "s"];
    place.says(&words, 0);
    for number in 0..3 {
        let calls: Vec<String> =
            (100 * number..100 * (number + 1)).map(|name| format!("/kymo-flight/{name}")).collect();
        assert!(!Command::new("cat").args(&calls).output().expect("it starts").status.success());
        let snapshot = place.json(&["snapshot", "s", "--json"]);
        if let Some(why) = snapshot["kernel"]["texts_absent"].as_str() {
            place.says(&["stop", "s"], 0);
            return eprintln!("NO TEXTS OF SYSTEM CALLS HERE: not run ({why})");
        }
        let path = snapshot["output"].as_str().expect("it is told");
        let all = events(&place, path);
        let found = payload(&all, "syscall_entry_openat", "filename", "/kymo-flight/").count();
        assert_eq!((found, &snapshot["problems"]), (100 * (number + 1), &serde_json::json!([])), "{snapshot}");
        assert!(place.says(&["check", path], 0).contains("no problems"));
        if number == 1 {
            // The next one goes on with what this one kept.
            assert!(kill_recorder(&place));
            place.says(&["sessions"], 0);
        }
    }
    place.says(&["stop", "s"], 0);
}

/// A recorder that goes on after another one has the texts of calls before, between and behind.
#[test]
fn the_next_recorder_has_texts() {
    let place = Place::alone();
    if !can_record(&place) {
        return;
    }
    place.says(&["record", "--detach", "--kernel=syscalls", "--name", "s", "--output", "trace"], 0);
    let open = |name: &str| {
        let calls: Vec<String> = (0..100).map(|number| format!("/kymo-{name}/{number}")).collect();
        assert!(!Command::new("cat").args(&calls).output().expect("it starts").status.success());
    };
    open("before");
    // Where the last pages wait for their texts.
    assert!(kill_recorder(&place));
    open("between");
    // The command starts the next one.
    place.says(&["sessions"], 0);
    open("after");
    let told = place.json(&["stop", "s", "--json"]);
    let summary = told.get(0).unwrap_or(&told);
    if let Some(why) = summary["kernel"]["texts_absent"].as_str() {
        return eprintln!("NO TEXTS OF SYSTEM CALLS HERE: not run ({why})");
    }
    assert_eq!(summary["problems"], serde_json::json!([]), "{summary}");
    let all: Vec<Value> = ["trace/kernel", "trace/kernel-2"].iter().flat_map(|path| events(&place, path)).collect();
    for name in ["before", "between", "after"] {
        let wanted = format!("/kymo-{name}/");
        assert_eq!(payload(&all, "syscall_entry_openat", "filename", &wanted).count(), 100, "{name}: {summary}");
    }
    assert!(place.says(&["check", "trace"], 0).contains("no problems"));
}

/// A user without rights maps the rings that the helper hands over.
#[test]
fn a_user_gets_texts_by_sudo() {
    let place = Place::new();
    if std::fs::metadata(place.path(".")).expect("it is there").uid() != 0 || !can_record(&place) {
        eprintln!("NOT TESTED: only root can act for another user");
        return;
    }
    let (kymo, folder) = (place.path("command"), place.path("theirs"));
    std::fs::copy(env!("CARGO_BIN_EXE_kymo"), &kymo).expect("there is room");
    std::fs::create_dir(&folder).expect("there is room");
    std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may do that");
    std::fs::set_permissions(place.path("."), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let words = ["record", "--kernel=syscalls", "--output", "trace", "--", "cat", "/kymo-nothing"];
    let output = sudo(&kymo, &folder, &words);
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if told.contains("are addresses") {
        eprintln!("NO TEXTS OF SYSTEM CALLS HERE: not run ({told})");
        return;
    }
    let mut print = Command::new(&kymo);
    let printed = print.args(["print", "--format", "json", "trace"]).current_dir(&folder).output().expect("it starts");
    assert!(String::from_utf8_lossy(&printed.stdout).contains("/kymo-nothing"), "{told}");
}
