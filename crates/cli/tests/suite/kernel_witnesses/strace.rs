//! `strace -f -c` counts the same calls of the same run.

use std::collections::BTreeMap;

use super::{has_tool, load, range, rows, told, value};
use crate::kernel::{events, name};

/// Makes calls, many of which fail, in its first thread, in a second one and in a child.
const LOAD: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void calls(int times) {
    char bytes[16];
    int ends[2];
    struct stat found;
    for (int n = 0; n < times; n++) {
        syscall(SYS_getppid);
        syscall(SYS_close, 1000000 + n);
        if (n % 3 == 0) syscall(SYS_openat, AT_FDCWD, "/nowhere/nothing", 0, 0);
        if (n % 5 == 0) syscall(SYS_faccessat, AT_FDCWD, "/", F_OK);
        if (n % 7 == 0 && syscall(SYS_pipe2, ends, 0) == 0) {
            syscall(SYS_write, ends[1], "0123456789", 10);
            syscall(SYS_read, ends[0], bytes, 10);
            syscall(SYS_read, ends[1], bytes, 10);
            syscall(SYS_close, ends[0]);
            syscall(SYS_close, ends[1]);
        }
        if (n % 11 == 0) syscall(SYS_newfstatat, AT_FDCWD, "/nowhere", &found, 0);
    }
}
static void *thread(void *times) { calls((int)(long)times); return 0; }
int main(void) {
    pthread_t one;
    calls(200);
    if (pthread_create(&one, 0, thread, (void *)100L) || pthread_join(one, 0)) return 1;
    pid_t child = fork();
    if (child == 0) { calls(50); _exit(3); }
    waitpid(child, 0, 0);
    return 0;
}
"#;

#[test]
fn calls_and_errors_are_those_of_strace() {
    let Some((place, program)) = load("determined", LOAD, &[]) else { return };
    if !has_tool("strace", "-V") {
        return;
    }
    let words = ["record", "--kernel=sched,syscalls", "--json", "--output", "trace"];
    let strace = ["--", "strace", "-f", "-c", "-U", "name,calls,errors", "-o", "counted"];
    let output = place.kymo(&words).args(strace).arg(&program).output().expect("it starts");
    if String::from_utf8_lossy(&output.stderr).contains("PTRACE") {
        eprintln!("NO PTRACE HERE: not run ({})", String::from_utf8_lossy(&output.stderr));
        return;
    }
    told(&output);
    let counted = std::fs::read_to_string(place.path("counted")).expect("strace has written it");
    // Lines of three columns; calls without errors have two.
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at).map_or(Some(0), |word| word.parse::<u64>().ok());
        Some((words.first()?.to_string(), (number(1)?, number(2)?)))
    };
    let mut theirs: BTreeMap<String, (u64, u64)> = counted.lines().filter_map(line).collect();
    theirs.remove("total");
    // It began when strace had started it.
    assert_eq!(theirs.remove("execve"), Some((1, 0)), "{counted}");

    // Calls of strace's child before that are not the program's.
    let events = events(&place, "trace");
    let is_start = |event: &&serde_json::Value| {
        let path = event["payload"]["filename"].as_str();
        name(event) == "sched_process_exec" && path.is_some_and(|path| path.ends_with("/determined"))
    };
    let time = |event: &serde_json::Value| event["time"].as_u64().expect("it has a time");
    let begin = time(events.iter().find(is_start).expect("it was started"));
    let range = range(begin, time(events.last().expect("there are some")));
    let its = place.json(&["syscalls", "--json", "--procname", "determined", "--timerange", &range, "trace"]);
    let mut ours = BTreeMap::new();
    for row in rows(&its, "per-syscall") {
        let call = row["syscall"].as_str().expect("it has a name").to_owned();
        let of = |column: &str| value(&row[column]);
        assert_eq!(of("lost_inside"), 0, "{row:?}");
        match call.as_str() {
            // They do not return, and strace leaves them out.
            "exit" | "exit_group" => assert_eq!(of("count"), 0, "{row:?}"),
            "execve" => assert_eq!((of("count"), of("began_before")), (0, 1), "{row:?}"),
            _ => _ = ours.insert(call, (of("count"), of("errors"))),
        }
    }
    assert_eq!(ours, theirs);
    assert_eq!(ours["getppid"], (350, 0));
}
