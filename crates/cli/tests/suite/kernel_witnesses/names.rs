//! Odd names of threads and programs: each is in the trace as it is, and all readers go on.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{load, told};
use crate::kernel::{events, name, read_by_babeltrace};
use crate::recorded::Place;

/// Threads take the names of its arguments, one each, and tell their numbers. Whenever a line comes from the pipe `go`, each rests ten times,
/// and then a line goes to the pipe `done`.
const LOAD: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
static pthread_barrier_t all;
static char **names;
static void *named(void *number) {
    if (prctl(PR_SET_NAME, names[(long)number], 0, 0, 0)) return 0;
    printf("%ld %d\n", (long)number, gettid());
    fflush(stdout);
    for (;;) {
        pthread_barrier_wait(&all);
        for (int n = 0; n < 10; n++) usleep(500);
        pthread_barrier_wait(&all);
    }
}
int main(int count, char **words) {
    pthread_t one;
    char line[16];
    names = words;
    pthread_barrier_init(&all, 0, count);
    for (long n = 1; n < count; n++) if (pthread_create(&one, 0, named, (void *)n)) return 1;
    for (;;) {
        FILE *go = fopen("go", "r");
        if (!go || !fgets(line, sizeof line, go)) return 1;
        fclose(go);
        pthread_barrier_wait(&all);
        pthread_barrier_wait(&all);
        FILE *done = fopen("done", "w");
        if (!done || fputs("done\n", done) < 0 || fclose(done)) return 1;
    }
}
"#;
/// Names have 15 bytes at most.
const NAMES: [&[u8]; 14] = [
    b"two  words",
    b" ",
    b"\"quoted\" 'too'",
    b"new\nline",
    b"tab\treturn\r",
    b"escape\x1b[31m",
    b"back\\slash\\n",
    "\u{fc}n\u{ef}c\u{f6}d\u{e9} \u{20ac}".as_bytes(),
    b"\xff\xfe\x80 bytes",
    b"exactly 15 byte",
    b") R 1 (2 3 4",
    b"{ a = 1 }, [0]",
    b"100%s%n,;|<&>",
    b"",
];

/// A program that is killed at the end.
struct Loaded(Child);

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn odd_names_are_told_as_they_are() {
    let Some((place, program)) = load("odd-names", LOAD, &[]) else { return };
    let (_child, numbers) = begin(&place, &program);
    let script = "echo go > go; read line < done";
    let words = ["record", "--kernel=sched", "--json", "--output", "trace", "--", "sh", "-c", script];
    let (_, summary) = told(&place.kymo(&words).output().expect("it starts"));
    compare(&place, "trace", &numbers);
    if summary["kernel"]["state"] != "eBPF" {
        return eprintln!("NO ITERATORS HERE: /proc alone was read ({})", summary["kernel"]["state_absent"]);
    }
    // The same where the state is read in `/proc`.
    let hide = "mount -t tmpfs none /sys/kernel/btf || exit 77; exec \"$0\" \"$@\"";
    let mut hidden = place.command("unshare");
    hidden.args(["--mount", "sh", "-c", hide, env!("CARGO_BIN_EXE_kymo"), "record", "--kernel=sched", "--json"]);
    let output = hidden.args(["--output", "other", "--", "sh", "-c", script]).output();
    let Some(output) = output.ok().filter(|output| output.status.code() != Some(77)) else {
        return eprintln!("NOT TESTED: nothing can be mounted");
    };
    let (_, summary) = told(&output);
    assert_eq!(summary["kernel"]["state"], "/proc", "{summary}");
    compare(&place, "other", &numbers);
}

/// The program, when all of its threads have their names, and their numbers.
fn begin(place: &Place, program: &Path) -> (Loaded, Vec<u64>) {
    let pipes = ["go", "done"].map(|name| place.path(name));
    assert!(Command::new("mkfifo").args(pipes).status().expect("it starts").success());
    // A program with an odd name, too, in a folder with one.
    let folder = place.path("a\"b\n c");
    std::fs::create_dir(&folder).expect("there is room");
    let odd = folder.join(OsStr::from_bytes(b"odd \xff\n'name'"));
    std::fs::rename(program, &odd).expect("there is room");
    let names = NAMES.map(OsStr::from_bytes);
    let mut child = place.command(&odd).args(names).stdout(Stdio::piped()).spawn().expect("it starts");
    let told = BufReader::new(child.stdout.take().expect("it is piped"));
    let child = Loaded(child);
    let line = |line: std::io::Result<String>| -> (usize, u64) {
        let line = line.expect("it is text");
        let (number, tid) = line.split_once(' ').expect("two numbers");
        (number.parse().expect("a number"), tid.parse().expect("a number"))
    };
    let all: BTreeMap<usize, u64> = told.lines().take(NAMES.len()).map(line).collect();
    assert_eq!(all.len(), NAMES.len());
    (child, all.into_values().collect())
}

/// Names of the threads in the state at the beginning and in switches, by the reader that tells bytes as they are.
fn compare(place: &Place, trace: &str, numbers: &[u64]) {
    let all = events(place, trace);
    let told = |wanted: &str, number: &str, text: &str, tid: u64| -> BTreeSet<String> {
        let its = all.iter().filter(|event| name(event) == wanted && event["payload"][number] == tid);
        its.map(|event: &Value| event["payload"][text].as_str().expect("it is text").to_owned()).collect()
    };
    for (bytes, tid) in NAMES.iter().zip(numbers) {
        let wanted = BTreeSet::from([String::from_utf8_lossy(bytes).into_owned()]);
        for (event, number, text) in [
            ("lttng_statedump_process_state", "tid", "name"),
            ("sched_switch", "prev_tid", "prev_comm"),
            ("sched_switch", "next_tid", "next_comm"),
            ("sched_waking", "tid", "comm"),
        ] {
            assert_eq!(told(event, number, text, *tid), wanted, "{event} of {tid} in {trace}");
        }
    }
    // `kymo check` tells the one name that is no UTF-8, and nothing else.
    let checked = place.says(&["check", trace], 0);
    let warnings = checked.lines().filter(|line| line.contains("warning[") || line.contains("error["));
    assert!(checked.contains("0 errors") && warnings.clone().count() > 0, "{checked}");
    assert!(warnings.into_iter().all(|line| line.contains("warning[text-encoding]")), "{checked}");
    // `kymo print` has one line for each event, also where names have line ends.
    let lines = place.says(&["print", trace], 0).lines().count();
    assert_eq!(lines, all.len());
    read_by_babeltrace(place, trace);
}
