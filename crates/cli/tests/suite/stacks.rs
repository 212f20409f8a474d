//! `kymo stacks`: the functions of a program that knows its own, and how long it waited.

use std::process::Command;

use serde_json::Value;

use crate::c_programs::compile;
use crate::kernel::{can_record, events, name};
use crate::recorded::Place;

/// Uses 0.2 s of processor time in `spin`, as much in `folded`, which is inlined into `busy`, and in code that it makes itself and
/// names as programs do for perf; rests 50 times.
const KNOWN: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sum;
static void (*made)(int);
__attribute__((noinline)) void spin(int steps) { for (int n = 0; n < steps; n++) sum += n; }
static inline __attribute__((always_inline)) void folded(int steps) { for (int n = 0; n < steps; n++) sum ^= n; }
static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
__attribute__((noinline)) void busy(double until) { while (used() < until) folded(100000); sum++; }
static void make(void) {
#ifdef __x86_64__
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
    void *place = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) return;
    memcpy(place, code, sizeof code);
    char name[64];
    snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(name, "w");
    fprintf(map, "%lx %zx made by the program\n", (unsigned long)place, sizeof code);
    fclose(map);
    made = (void (*)(int))place;
#endif
}
int main(void) {
    make();
    while (used() < 0.2) spin(100000);
    busy(0.4);
    while (made && used() < 0.6) made(100000);
    for (int n = 0; n < 50; n++) usleep(2000);
    printf("%d %d\n", (int)getpid(), made != 0);
    return sum == 1;
}
"#;

/// One thread waits for another one, which writes into a pipe 50 times.
const FEEDS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int ends[2];
static void *feed(void *none) {
    for (int n = 0; n < 50; n++) {
        usleep(2000);
        if (write(ends[1], "x", 1) != 1) return none;
    }
    close(ends[1]);
    return none;
}
int main(void) {
    pthread_t thread;
    char byte;
    if (pipe(ends) || pthread_create(&thread, 0, feed, 0)) return 1;
    while (read(ends[0], &byte, 1) == 1) {}
    pthread_join(thread, 0);
    printf("%d\n", (int)getpid());
    return 0;
}
"#;

/// The rows of a table, as objects.
fn rows(answer: &Value, class: &str) -> Vec<Value> {
    let tables = answer["tables"].as_array().expect("there are tables");
    let table = tables.iter().find(|table| table["class"] == class).unwrap_or_else(|| panic!("no {class}"));
    let names: Vec<&str> = table["columns"]
        .as_array()
        .expect("columns")
        .iter()
        .map(|column| column["name"].as_str().expect("text"))
        .collect();
    let object = |row: &Value| {
        let cells = row.as_array().expect("cells").iter().cloned();
        names.iter().map(|name| (*name).to_owned()).zip(cells).collect()
    };
    table["rows"].as_array().expect("rows").iter().map(|row| Value::Object(object(row))).collect()
}

fn sum(rows: &[Value], column: &str) -> u64 {
    rows.iter().map(|row| row[column].as_u64().unwrap_or_else(|| panic!("{row}"))).sum()
}

/// Names of functions, also of inlined and of made ones; the waits of each thread are those that the scheduler's events have.
#[test]
fn functions_and_waits_of_a_program() {
    let place = Place::new();
    if !can_record(&place) || Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let words = ["-O2", "-g", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-Wl,--build-id=0x123456789a"];
    let program = compile(&place.path("."), "known", KNOWN, &words);
    let words = ["record", "--kernel=sched", "--stacks=999Hz,sched_switch", "--output", "trace", "--json", "--"];
    let output = place.kymo(&words).arg(&program).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let (told, summary) = std::str::from_utf8(&output.stdout).expect("it is text").split_once('\n').expect("two lines");
    let summary: Value = serde_json::from_str(summary).expect("it is JSON");
    if let Some(why) = summary["kernel"]["stacks_absent"].as_str() {
        return eprintln!("NO PERF EVENTS HERE: not run ({why})");
    }
    assert_eq!(summary["kernel"]["stacks_lost"], 0);
    let (pid, has_made) = told.split_once(' ').expect("two numbers");
    let answer = place.json(&["stacks", "trace", "--tid", pid, "--top", "all", "--json"]);
    let functions = rows(&answer, "functions");
    let all = sum(&functions, "self");
    let of = |function: &str, column: &str| {
        let row = functions.iter().find(|row| row["function"] == function);
        row.map_or(0, |row| row[column].as_u64().expect("a count")) as f64 / all as f64
    };
    let third = 0.2..0.45;
    let expected = if has_made == "1" { &third } else { &(0.35..0.65) };
    assert!(expected.contains(&of("spin", "self")) && expected.contains(&of("folded", "self")), "{functions:#?}");
    assert!(of("folded", "total") <= of("busy", "total") && of("busy", "self") < 0.1, "{functions:#?}");
    // Compilers leave the frame of `spin` out.
    assert!(of("main", "total") > 0.5, "{functions:#?}");
    if has_made == "1" {
        assert!(third.contains(&of("made by the program", "self")), "{functions:#?}");
    }
    let _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));

    let waits = rows(&answer, "waits");
    let rests: Vec<Value> =
        waits.iter().filter(|row| row["kernel"].as_str() == Some("do_nanosleep")).cloned().collect();
    assert!(rests.iter().all(|row| row["stack"].as_str().is_some_and(|stack| stack.contains("main;"))), "{waits:#?}");
    // Before its program begins, it waits in the kernel alone.
    let both = |classes: [&str; 2], column| classes.map(|class| sum(&rows(&answer, class), column)).iter().sum::<u64>();
    let (waited, preempted) =
        (both(["waits", "kernel-waits"], "waited"), both(["preempted", "kernel-preempted"], "waited"));
    let (expected, without_end) = switched_away(&place, pid.parse().expect("a number"));
    assert_eq!([preempted, waited], expected, "{:#?}", rows(&answer, "per-thread"));
    assert!(sum(&rests, "waits") + without_end >= 50, "{waits:#?}");
    let threads = rows(&answer, "per-thread");
    let of_thread = (threads.len(), sum(&threads, "samples"), sum(&threads, "waits"));
    assert_eq!(of_thread, (1, all, both(["waits", "kernel-waits"], "waits")));
    assert_eq!((&threads[0]["without_stack"], &threads[0]["without_end"]), (&0.into(), &without_end.into()));

    one_function(&place, pid);
    another_program(&place, &program, pid);
}

/// How long a thread did not run though it could, and as it waited, by the events of the scheduler, in nanoseconds; and how often
/// it went without coming back: kernels of some virtual machines leave events out.
fn switched_away(place: &Place, tid: u64) -> ([u64; 2], u64) {
    let (mut sums, mut since, mut without_end) = ([0; 2], None, 0);
    for event in events(place, "trace").iter().filter(|event| name(event) == "sched_switch") {
        let field = |name: &str| event["payload"][name].as_u64().unwrap_or_else(|| panic!("{event}"));
        let now = event["time"].as_u64().unwrap_or_else(|| panic!("{event}"));
        if field("prev_tid") == tid {
            without_end += u64::from(since.is_some());
            since = Some((now, usize::from(field("prev_state") != 0)));
        } else if field("next_tid") == tid
            && let Some((begin, kind)) = since.take()
        {
            sums[kind] += now - begin;
        }
    }
    (sums, without_end)
}

/// Stacks with a function, and their waits.
fn one_function(place: &Place, pid: &str) {
    let answer = place.json(&["stacks", "trace", "--tid", pid, "--name", "folde?", "--json"]);
    let samples = rows(&answer, "samples");
    assert!(!samples.is_empty() && samples.iter().all(|row| row["stack"].as_str().expect("text").contains(";folded")));
    assert!(rows(&answer, "waits").is_empty());
    let periods = place.json(&["stacks", "trace", "--tid", pid, "--period", "100ms", "--top", "all", "--json"]);
    let whole = place.json(&["stacks", "trace", "--tid", pid, "--top", "all", "--json"]);
    for (class, column) in [("functions", "self"), ("waits", "waits"), ("waits", "waited"), ("preempted", "waited")] {
        assert_eq!(sum(&rows(&periods, class), column), sum(&rows(&whole, class), column), "{class} {column}");
    }
}

/// Another program of that name has other functions.
fn another_program(place: &Place, program: &std::path::Path, pid: &str) {
    std::fs::remove_file(program).expect("it is there");
    let other = KNOWN.replace("spin", "other_name");
    compile(&place.path("."), "known", &other, &["-O0", "-Wl,--build-id=0xaaaaaaaaaa"]);
    let output = place.kymo(&["stacks", "trace", "--tid", pid, "--json"]).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    let why = "it is another file than the one that was recorded, with build id 123456789a";
    assert!(output.status.success() && told.contains(why), "{output:?}");
    let functions = rows(&serde_json::from_slice(&output.stdout).expect("it is JSON"), "functions");
    let has = |text: &str| functions.iter().any(|row| row["function"].as_str().is_some_and(|name| name.contains(text)));
    assert!(has("known+0x") && !has("other_name") && !functions.iter().any(|row| row["function"] == "spin"));
}

/// The stack that ends a wait is that of the thread that writes.
#[test]
fn waits_end_where_others_wake() {
    let place = Place::new();
    if !can_record(&place) || Command::new("cc").arg("--version").output().is_err() {
        return;
    }
    let program = compile(&place.path("."), "feeds", FEEDS, &["-O1", "-g", "-pthread"]);
    for scope in ["all", "command"] {
        let output = if scope == "all" { "trace" } else { "limited" };
        let mut words =
            vec!["record", "--kernel=sched", "--stacks=sched_switch,sched_waking", "--output", output, "--json"];
        words.extend(if scope == "all" { &[][..] } else { &["--kernel-of", "command"] });
        let recorded = place.kymo(&words).arg("--").arg(&program).output().expect("it starts");
        assert!(recorded.status.success(), "{recorded:?}");
        let text = std::str::from_utf8(&recorded.stdout).expect("it is text");
        let (pid, summary) = text.split_once('\n').expect("two lines");
        let summary: Value = serde_json::from_str(summary).expect("it is JSON");
        if let Some(why) = summary["kernel"]["stacks_absent"].as_str() {
            return eprintln!("NO PERF EVENTS HERE: not run ({why})");
        }
        let answer = place.json(&["stacks", output, "--tid", pid, "--top", "all", "--json"]);
        let has = |row: &Value, column: &str, text: &str| row[column].as_str().is_some_and(|cell| cell.contains(text));
        let (wakers, waits) = (rows(&answer, "wakers"), rows(&answer, "waits"));
        let fed: Vec<Value> = wakers.iter().filter(|row| has(row, "kernel", "pipe_write")).cloned().collect();
        let read: Vec<Value> = waits.iter().filter(|row| has(row, "kernel", "pipe_read")).cloned().collect();
        // Kernels of some virtual machines leave out single switches; and who comes late to a byte does not wait for it, which
        // happens where other programs have the processors.
        let threads = rows(&answer, "per-thread");
        let missed = sum(&threads, "without_end") + sum(&threads, "without_stack");
        assert!(!fed.is_empty(), "{scope}: {wakers:#?} {waits:#?} {threads:#?}");
        assert!(sum(&fed, "waits") + missed >= 25, "{scope}: {wakers:#?} {waits:#?} {threads:#?}");
        assert!(fed.iter().all(|row| has(row, "waker", "write") && has(row, "function", "read")), "{fed:#?}");
        assert!(
            fed.iter().all(|row| has(row, "stack", "pipe_read") && has(row, "waker_stack", "pipe_write")),
            "{fed:#?}"
        );
        assert!(sum(&fed, "waited") <= sum(&read, "waited"), "{fed:#?} {read:#?}");
    }
}
