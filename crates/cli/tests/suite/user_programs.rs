//! `kymo record --bpf`: users' eBPF programs run in recorded programs, at their events. Their maps agree with the programs' own counts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::bpf::Compiled;
use crate::c_programs::{library, program};
use crate::recorded::Place;

const HELPERS: &str = r#"
typedef unsigned char __u8; typedef unsigned int __u32; typedef unsigned long long __u64;
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *) 1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *) 2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *) 3;
static __u64 (*bpf_ktime_get_ns)(void) = (void *) 5;
static __u64 (*bpf_get_current_pid_tgid)(void) = (void *) 14;
static long (*bpf_get_current_comm)(void *to, __u32 size) = (void *) 16;
static long (*bpf_probe_read_str)(void *to, __u32 size, const void *from) = (void *) 45;
char _license[] SEC("license") = "Dual MIT/GPL";
"#;

/// Counts begins and keeps ends by their begins.
const JOBS: &str = r#"
struct begin { const char *kind; __u64 value; } __attribute__((preserve_access_index));
struct end { char kind[8]; __u64 value; __u32 no_such_field; } __attribute__((preserve_access_index));
struct kind { char name[8]; };
struct total { __u64 begins, ends, ns; };

struct { __uint(type, 1); __uint(max_entries, 64); __type(key, __u64); __type(value, __u64); } begun SEC(".maps");
struct { __uint(type, 1); __uint(max_entries, 8); __type(key, struct kind); __type(value, struct total); } totals SEC(".maps");
struct { __uint(type, 6); __uint(max_entries, 2); __type(key, __u32); __type(value, __u64); } all SEC(".maps");
struct { __uint(type, 9); __uint(max_entries, 4); __type(key, __u64); __type(value, __u32); } last SEC(".maps");
__u64 unknown, process;
const volatile __u64 keeps_each = 2;

static void count(__u32 which) {
    __u64 *number = bpf_map_lookup_elem(&all, &which);
    if (number) ++*number;
}

SEC("kymo/test:begin") int begins(struct begin *event) {
    struct kind kind = {};
    __u64 value = event->value, now = bpf_ktime_get_ns();
    __u32 one = 1;
    bpf_probe_read_str(kind.name, sizeof kind.name, event->kind);
    bpf_map_update_elem(&begun, &value, &now, 0);
    bpf_map_update_elem(&last, &value, &one, 0);
    struct total first = {}, *total = bpf_map_lookup_elem(&totals, &kind);
    if (!total) {
        bpf_map_update_elem(&totals, &kind, &first, 1);
        total = bpf_map_lookup_elem(&totals, &kind);
    }
    if (total) __sync_fetch_and_add(&total->begins, 1);
    process = bpf_get_current_pid_tgid() >> 32;
    count(0);
    return 0;
}

SEC("kymo.filter/test:end") int ends(struct end *event) {
    struct kind kind = {};
    __u64 value = event->value, *since = bpf_map_lookup_elem(&begun, &value);
    count(1);
    if (__builtin_preserve_field_info(event->no_such_field, 2)) return 0;
    if (!since) { unknown++; return 1; }
    __u64 took = bpf_ktime_get_ns() - *since;
    bpf_map_delete_elem(&begun, &value);
    __builtin_memcpy(kind.name, event->kind, sizeof kind.name);
    struct total *total = bpf_map_lookup_elem(&totals, &kind);
    if (total) { __sync_fetch_and_add(&total->ends, 1); __sync_fetch_and_add(&total->ns, took); }
    return value % keeps_each == 0;
}
"#;

fn compiled(source: &str) -> Option<Compiled> {
    Compiled::new(&format!("{HELPERS}{source}"))
}

/// The maps of the first program in a summary, by name.
fn maps(summary: &Value) -> BTreeMap<String, Value> {
    let maps = summary["objects"][0]["maps"].as_array().unwrap_or_else(|| panic!("{summary}"));
    maps.iter().map(|map| (map["name"].as_str().expect("it has one").to_owned(), map["entries"].clone())).collect()
}

fn rule<'s>(summary: &'s Value, name: &str) -> &'s Value {
    let rules = summary["rules"].as_array().expect("there are rules");
    rules.iter().find(|rule| rule["options"]["name"] == name).unwrap_or_else(|| panic!("{summary}"))
}

fn counts(rule: &Value) -> [u64; 3] {
    ["kept", "let_go", "unknown"].map(|name| rule[name].as_u64().unwrap_or_else(|| panic!("{rule}")))
}

#[test]
fn programs_of_users_count_and_keep_events_in_the_program() {
    let Some(object) = compiled(JOBS) else { return };
    let place = Place::new();
    let mut program = place.program();
    let (pid, file) = (program.pid.to_string(), object.path("programs.o").display().to_string());
    let words = ["record", "--detach", "--name", "jobs", "--output", "jobs", "--process", &pid, "--bpf", &file];
    place.says(&words, 0);
    for value in 0..40 {
        program.tell(&format!("begin {value}"));
    }
    for value in 0..30 {
        program.tell(&format!("end {value}"));
    }
    program.tell("end-elsewhere 30");
    program.tell("end 77");
    // While the session runs, the maps are the same.
    let now = &place.json(&["status", "--maps", "--json"])[0];
    assert_eq!(now["session"], "jobs", "{now}");
    let live = maps(now);
    assert_eq!(place.json(&["status", "--maps", "--json", "no-such-program"])[0]["objects"], Value::Array(Vec::new()));
    let shown = place.says(&["status", "--maps"], 0);
    assert!(shown.contains("map of programs.o in ") && shown.contains("totals"), "{shown}");
    let summary = &place.json(&["stop", "jobs", "--json"])[0];
    assert_eq!(live, maps(summary));
    let maps = maps(summary);
    // All of them, and the program's own kinds.
    let kind = |name: &str| {
        let all = maps["totals"].as_array().expect("it is a table");
        all.iter().find(|entry| entry["key"]["name"] == name).map(|entry| &entry["value"]).expect("it is there").clone()
    };
    assert_eq!((&kind("even")["begins"], &kind("odd")["begins"]), (&20.into(), &20.into()), "{summary}");
    assert_eq!((&kind("even")["ends"], &kind("odd")["ends"]), (&16.into(), &15.into()), "{summary}");
    assert!(kind("even")["ns"].as_u64().expect("a number") > 16_000, "{summary}");
    // Begins without ends are left, and the last four keys of those that forget.
    let keys = |name: &str| {
        let entries = maps[name].as_array().expect("it is a table");
        let mut keys: Vec<u64> = entries.iter().map(|entry| entry["key"].as_u64().expect("a number")).collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(keys("begun"), (31..40).collect::<Vec<_>>());
    assert_eq!(keys("last"), [36, 37, 38, 39]);
    // Values of each run at the same time add up.
    let sum = |entry: &Value| -> u64 {
        let values = entry["values"].as_array().expect("it has several");
        values.iter().map(|value| value["value"].as_u64().expect("a number")).sum()
    };
    let all: Vec<u64> = maps["all"].as_array().expect("it is a table").iter().map(sum).collect();
    assert_eq!(all, [40, 32]);
    let variables = &maps[".bss"][0]["value"];
    assert_eq!((&variables["unknown"], &variables["process"]), (&1.into(), &program.pid.into()), "{summary}");
    // Begins are kept, ends are filtered.
    assert_eq!(
        (counts(rule(summary, "begins")), counts(rule(summary, "ends"))),
        ([40, 0, 0], [17, 15, 0]),
        "{summary}"
    );
    place.says(&["check", "jobs"], 0);
    assert_eq!(place.values(&place.path("jobs"), "test:begin"), (0..40).collect::<Vec<_>>());
    let kept: Vec<u64> = (0..=30).filter(|value| value % 2 == 0).chain([77]).collect();
    assert_eq!(place.values(&place.path("jobs"), "test:end"), kept);
}

/// Four threads record from the first instant on, without a pause.
const THREADS: &str = r#"
#include <kymo/kymo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

KYMO_EVENT(load, step, KYMO_U32(thread), KYMO_U64(value), KYMO_TEXT(name), KYMO_I16(small));

enum { THREADS = 4, STEPS = 20000 };

static void *work(void *number)
{
    for (uint64_t value = 0; value < STEPS; ++value)
        kymo_load_step((uint32_t)(uintptr_t)number, value, value % 2 ? "odd" : "even", -3);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t number = 0; number < THREADS; ++number)
        pthread_create(&threads[number], NULL, work, (void *)number);
    for (int number = 0; number < THREADS; ++number)
        pthread_join(threads[number], NULL);
    return 0;
}
"#;

/// Each way to count: atomic, by run, by key in a table that is changed all the time.
const STEPS: &str = r#"
struct step { __u32 thread; int small; __u64 value; } __attribute__((preserve_access_index));
struct { __uint(type, 1); __uint(max_entries, 16); __type(key, __u32); __type(value, __u64); } by_thread SEC(".maps");
struct { __uint(type, 6); __uint(max_entries, 1); __type(key, __u32); __type(value, __u64); } by_run SEC(".maps");
struct { __uint(type, 5); __uint(max_entries, 16); __type(key, __u32); __type(value, __u64); } by_both SEC(".maps");
struct { __uint(type, 1); __uint(max_entries, 4096); __type(key, __u64); __type(value, __u64); } changing SEC(".maps");
__u64 all, sum_of_small, refused;

SEC("kymo.filter/load:step") int step(struct step *step) {
    __u32 thread = step->thread, zero = 0;
    __u64 none = 0, key = step->value << 8 | thread, *number;
    __sync_fetch_and_add(&all, 1);
    __sync_fetch_and_add(&sum_of_small, (long long)step->small);
    bpf_map_update_elem(&by_thread, &thread, &none, 1);
    if ((number = bpf_map_lookup_elem(&by_thread, &thread))) __sync_fetch_and_add(number, 1);
    if ((number = bpf_map_lookup_elem(&by_run, &zero))) ++*number;
    bpf_map_update_elem(&by_both, &thread, &none, 1);
    if ((number = bpf_map_lookup_elem(&by_both, &thread))) ++*number;
    if (bpf_map_update_elem(&changing, &key, &key, 1)) __sync_fetch_and_add(&refused, 1);
    if (!(number = bpf_map_lookup_elem(&changing, &key)) || *number != key) __sync_fetch_and_add(&refused, 1);
    if (bpf_map_delete_elem(&changing, &key)) __sync_fetch_and_add(&refused, 1);
    return step->value % 1000 == 0;
}
"#;

/// No event is missing in the maps, whatever threads do, and though the program begins at once.
#[test]
fn maps_count_each_event_of_all_threads_from_the_first_one_on() {
    let (Some(object), Some(built)) = (compiled(STEPS), library()) else { return };
    let place = Place::new();
    let load = program(&place.path(""), &built, "load", THREADS).display().to_string();
    let file = object.path("programs.o").display().to_string();
    place.says(&["record", "--output", "load.trace", "--bpf", &file, "--summary", "summary", "--", &load], 0);
    let text = std::fs::read_to_string(place.path("summary")).expect("it was written");
    let summary: Value = serde_json::from_str(&text).expect("it is an object");
    assert_eq!(counts(rule(&summary, "step")), [80, 79_920, 0], "{summary}");
    assert_eq!(place.values(&place.path("load.trace"), "load:step").len(), 80);
    let maps = maps(&summary);
    let variables = &maps[".bss"][0]["value"];
    assert_eq!(variables["all"], 80_000, "{summary}");
    assert_eq!(variables["sum_of_small"].as_u64(), Some((-240_000_i64).cast_unsigned()), "{summary}");
    assert_eq!(variables["refused"], 0, "{summary}");
    assert_eq!(summary["objects"][0]["stopped"], Value::Array(Vec::new()), "{summary}");
    let numbers = |entry: &Value| -> u64 {
        let own = entry["value"].as_u64().into_iter();
        let of_runs = entry["values"].as_array().into_iter().flatten().filter_map(|value| value["value"].as_u64());
        own.chain(of_runs).sum()
    };
    let table = |name: &str| -> Vec<u64> { maps[name].as_array().expect("a table").iter().map(numbers).collect() };
    assert_eq!(table("by_thread"), [20_000; 4], "{summary}");
    assert_eq!(table("by_run"), [80_000], "{summary}");
    assert_eq!(table("by_both"), [20_000; 4], "{summary}");
    assert_eq!(table("changing"), [0; 0], "{summary}");
}

#[test]
fn a_program_that_stops_is_told_with_its_line_and_keeps_the_event() {
    let source = r#"
struct count { __u64 value; };
SEC("kymo.filter/test:count") int stops(struct count *count) {
    if (count->value % 2) return 0;
    return *(volatile __u64 *)count->value; /* no pointer */
}
SEC("kymo/test:count") int runs_on(struct count *count) { volatile __u64 steps = 0; for (;;) ++steps; return 0; }
"#;
    let Some(object) = compiled(source) else { return };
    let place = Place::new();
    let mut program = place.program();
    let (pid, file) = (program.pid.to_string(), object.path("programs.o").display().to_string());
    place.says(&["record", "--detach", "--name", "a", "--output", "a", "--process", &pid, "--bpf", &file], 0);
    program.tell("offer 10");
    let told = place.says(&["stop", "a"], 0);
    assert!(told.contains("stops: kept 5 of 10 events (test:count filtered by stops of programs.o)"), "{told}");
    assert!(told.contains("runs_on: ran for 5 events (test:count seen by runs_on of programs.o)"), "{told}");
    assert!(told.contains("stops of programs.o in ") && told.contains(": 5 runs before its end"), "{told}");
    assert!(
        told.contains("an access outside of memory, at ")
            && told.contains("programs.c:")
            && told.contains("no pointer"),
        "{told}"
    );
    assert!(told.contains("more than 65,536 steps"), "{told}");
    assert_eq!(place.values(&place.path("a"), "test:count"), [0, 2, 4, 6, 8]);
}

#[test]
fn objects_that_cannot_be_in_programs_are_refused_with_the_reason() {
    let begin = "struct c { __u64 value; };\n";
    let place = Place::new();
    for (source, words) in [
        (
            "struct { __uint(type, 27); __uint(max_entries, 4096); } ring SEC(\".maps\");\n\
             static long (*output)(void *, void *, __u64, __u64) = (void *) 130;\n\
             SEC(\"kymo/a:b\") int p(struct c *c) { __u64 v = c->value; return output(&ring, &v, 8, 0); }",
            "program p: map ring: its records have no way out of a traced program",
        ),
        (
            "static __u64 (*task)(void) = (void *) 35;\nSEC(\"kymo/a:b\") int p(struct c *c) { return task(); }",
            "bpf_get_current_task",
        ),
        (
            "SEC(\"tp_btf/sched_switch\") int p(struct c *c) { return 0; }",
            "no program of the object is for events of programs",
        ),
        (
            "struct { __uint(type, 2); __uint(max_entries, 4000000); __type(key, __u32); __type(value, __u64); } big SEC(\".maps\");\n\
             SEC(\"kymo/a:b\") int p(struct c *c) { __u32 k = 0; return bpf_map_lookup_elem(&big, &k) != 0; }",
            "the maps of the object need 32",
        ),
    ] {
        let Some(object) = compiled(&format!("{begin}{source}\n")) else { return };
        let file = object.path("programs.o").display().to_string();
        let told = place.says(&["record", "--bpf", &file, "--", "true"], 2).replace("\n  ", " ");
        assert!(told.contains(words), "{words}\n{told}");
    }
    let told = place.says(&["record", "--bpf", "/nowhere.o", "--", "true"], 2);
    assert!(told.contains("/nowhere.o"), "{told}");
}

/// Each session has maps of its own, also one that has the name of another that was before it.
#[test]
fn sessions_have_maps_of_their_own() {
    let source = r#"
struct count { __u64 value; };
struct { __uint(type, 2); __uint(max_entries, 2); __type(key, __u32); __type(value, __u64); } parts SEC(".maps");
__u64 all = 1000;
SEC("kymo/test:count") int counts(struct count *count) {
    __u32 part = count->value % 2;
    __u64 *number = bpf_map_lookup_elem(&parts, &part);
    if (number) __sync_fetch_and_add(number, 1);
    __sync_fetch_and_add(&all, 1);
    return 0;
}
"#;
    let Some(object) = compiled(source) else { return };
    let place = Place::new();
    let mut program = place.program();
    let (pid, file) = (program.pid.to_string(), object.path("programs.o").display().to_string());
    let begin = |name: &str, output: &str| {
        place.says(&["record", "--detach", "--name", name, "--output", output, "--process", &pid, "--bpf", &file], 0);
    };
    let counted = |name: &str| {
        let summary = &place.json(&["stop", name, "--json"])[0];
        let maps = maps(summary);
        let part = |part: usize| maps["parts"][part]["value"].as_u64().unwrap_or_default();
        (part(0), part(1), maps[".data"][0]["value"]["all"].as_u64().expect("a number"))
    };
    begin("a", "first");
    program.tell("offer 3");
    begin("b", "beside");
    program.tell("offer 4");
    assert_eq!(counted("a"), (4, 3, 1007));
    begin("a", "second");
    program.tell("offer 2");
    assert_eq!(counted("a"), (1, 1, 1002));
    assert_eq!(counted("b"), (3, 3, 1006));
}

/// Records in a loop, and in a handler that comes all the time; with an argument, the handler jumps out of each third signal.
const SIGNALS: &str = r#"
#include <kymo/kymo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

KYMO_EVENT(load, step, KYMO_U64(value));

static uint64_t made;
static volatile uint64_t signals;
static sigjmp_buf place;
static volatile int jumps, is_ready;

static void handle(int signal)
{
    (void)signal;
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    kymo_load_step(7);
    if (jumps && is_ready && ++signals % 3 == 0)
        siglongjmp(place, 1);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = handle};
    struct itimerval time = {{0, 300}, {0, 300}};
    (void)argv;
    jumps = argc > 1;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &time, NULL);
    for (volatile uint64_t value = 0; value < 200000; ++value) {
        if (sigsetjmp(place, 1) == 0) {
            is_ready = 1;
            __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
            kymo_load_step(value);
        }
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    printf("made %llu\n", (unsigned long long)made);
    return 0;
}
"#;

const CHANGES: &str = r#"
struct step { __u64 value; };
struct { __uint(type, 1); __uint(max_entries, 64); __type(key, __u64); __type(value, __u64); } table SEC(".maps");
struct { __uint(type, 5); __uint(max_entries, 4); __type(key, __u32); __type(value, __u64); } by_run SEC(".maps");
__u64 changed, refused;
SEC("kymo.filter/load:step") int step(struct step *step) {
    __u64 key = step->value % 64, none = 0, *number;
    __u32 zero = 0;
    if (step->value % 3 == 0) bpf_map_delete_elem(&table, &key);
    if (bpf_map_update_elem(&table, &key, &key, 0)) __sync_fetch_and_add(&refused, 1);
    else __sync_fetch_and_add(&changed, 1);
    if (!bpf_map_lookup_elem(&by_run, &zero)) bpf_map_update_elem(&by_run, &zero, &none, 1);
    if ((number = bpf_map_lookup_elem(&by_run, &zero))) ++*number;
    return 0;
}
"#;

/// A handler may come in the middle of a change, and may never come back to it: the program goes on, and each run is told.
#[test]
fn signal_handlers_neither_wait_for_their_own_thread_nor_leave_tables_in_use() {
    let (Some(object), Some(built)) = (compiled(CHANGES), library()) else { return };
    let place = Place::new();
    let signals = program(&place.path(""), &built, "signals", SIGNALS).display().to_string();
    let file = object.path("programs.o").display().to_string();
    for (output, word) in [("returns", None), ("jumps", Some("jumps"))] {
        let words = ["record", "--output", output, "--bpf", &file, "--summary", "summary", "--", &signals];
        let said = place.says(&words.into_iter().chain(word).collect::<Vec<_>>(), 0);
        let made: u64 = said.trim().rsplit(' ').next().and_then(|number| number.parse().ok()).expect(&said);
        let text = std::fs::read_to_string(place.path("summary")).expect("it was written");
        let summary: Value = serde_json::from_str(&text).expect("it is an object");
        let maps = maps(&summary);
        let variable = |name: &str| maps[".bss"][0]["value"][name].as_u64().unwrap_or_else(|| panic!("{summary}"));
        let (changed, refused) = (variable("changed"), variable("refused"));
        // Of runs that a jump ended nothing is known.
        assert!(changed + refused <= made && changed > made * 9 / 10, "{changed} and {refused} of {made}: {summary}");
        if word.is_none() {
            let lost: u64 = counts(rule(&summary, "step"))[2];
            assert_eq!(changed + refused + lost, made, "{summary}");
        }
        let stopped = summary["objects"][0]["stopped"].as_array().expect("it is a list");
        assert!(stopped.iter().all(|stopped| stopped["runs"] == 0), "{summary}");
    }
}

/// A session that ends by itself tells maps as one that is stopped does.
#[test]
fn sessions_that_end_by_themselves_tell_their_maps() {
    let Some(object) = compiled(JOBS) else { return };
    let place = Place::new();
    let mut program = place.program();
    let (pid, file) = (program.pid.to_string(), object.path("programs.o").display().to_string());
    let words =
        ["record", "--output", "t", "--process", &pid, "--bpf", &file, "--duration", "1s", "--summary", "summary"];
    let recording = place.kymo(&words).spawn().expect("it starts");
    crate::recorded::until(|| {
        program.tell("begin 4");
        place.json(&["status", "--json"])["sessions"].as_array().is_some_and(|sessions| !sessions.is_empty())
    });
    program.tell("begin 5");
    assert!(recording.wait_with_output().expect("it ends").status.success());
    let text = std::fs::read_to_string(place.path("summary")).expect("it was written");
    let summary: Value = serde_json::from_str(&text).expect("it is an object");
    assert!(maps(&summary).contains_key("totals"), "{summary}");
}

/// A recorder that was killed has had the maps of programs that ended before. The next one has those of programs that go on.
#[test]
fn maps_that_went_with_a_recorder_are_told() {
    let Some(object) = compiled(JOBS) else { return };
    let place = Place::new();
    let (mut first, mut second) = (place.program(), place.program());
    let file = object.path("programs.o").display().to_string();
    let pids = [first.pid, second.pid].map(|pid| pid.to_string());
    let words = [
        "record",
        "--detach",
        "--name",
        "kept",
        "--output",
        "t",
        "--bpf",
        &file,
        "--process",
        &pids[0],
        "--process",
        &pids[1],
    ];
    place.says(&words, 0);
    first.tell("begin 2");
    second.tell("begin 3");
    let pid = pids[0].clone();
    assert!(first.end().status.success());
    let is_there =
        || place.json(&["status", "--json", &pid])["programs"].as_array().is_some_and(|found| !found.is_empty());
    crate::recorded::until(|| !is_there());
    assert_eq!(place.json(&["status", "--maps", "--json", &pid])[0]["objects"].as_array().map(Vec::len), Some(1));
    // Its state is kept ten times a second.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(crate::resumed::kill_recorder(&place));
    assert!(place.says(&["sessions"], 0).contains("session kept"));
    second.tell("begin 5");
    let summary = &place.json(&["stop", "kept", "--json"])[0];
    assert_eq!(summary["objects"].as_array().map(Vec::len), Some(1), "{summary}");
    let totals = maps(summary)["totals"].clone();
    assert_eq!(totals[0]["value"]["begins"], 2, "{totals}");
    assert_eq!(summary["more_objects"], 1, "{summary}");
    let problems = summary["problems"].as_array().expect("a list");
    let told = problems
        .iter()
        .filter(|problem| problem.as_str().is_some_and(|text| text.contains("of 1 recorded programs that had ended")));
    assert_eq!(told.count(), 1, "{summary}");
}
