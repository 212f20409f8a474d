//! `kymo bpf`: objects of clang are shown, and their programs run over the events of a trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program;

/// Latencies of the demo's jobs by their kind, from submission to end; and records of a few jobs.
const LATENCIES: &str = r#"
typedef unsigned int __u32; typedef unsigned long long __u64;
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *) 1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *) 2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *) 3;
static __u64 (*bpf_ktime_get_ns)(void) = (void *) 5;
static __u64 (*bpf_get_current_pid_tgid)(void) = (void *) 14;
static long (*bpf_probe_read_str)(void *to, __u32 size, const void *from) = (void *) 45;
static void *(*bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *) 131;
static void (*bpf_ringbuf_submit)(void *record, __u64 flags) = (void *) 132;

struct job { __u32 id; __u32 kind; const char *name; } __attribute__((preserve_access_index));
struct end { __u32 id; __u32 no_such_field; } __attribute__((preserve_access_index));
struct begun { __u64 time; __u32 kind; };
struct latency { __u64 count, sum, max; };
struct sample { __u32 id, process; char name[16]; };

struct { __uint(type, 1); __uint(max_entries, 4096); __type(key, __u32); __type(value, struct begun); } running SEC(".maps");
struct { __uint(type, 1); __uint(max_entries, 64); __type(key, __u32); __type(value, struct latency); } latencies SEC(".maps");
struct { __uint(type, 6); __uint(max_entries, 8); __type(key, __u32); __type(value, __u64); } ends SEC(".maps");
struct { __uint(type, 27); __uint(max_entries, 4096); } samples SEC(".maps");
const struct sample *shown __attribute__((unused));
__u64 unknown;

SEC("kymo/jobs:submit") int submitted(struct job *job) {
    struct begun begun = {.time = bpf_ktime_get_ns(), .kind = job->kind};
    __u32 id = job->id;
    bpf_map_update_elem(&running, &id, &begun, 0);
    if (id % 100) return 0;
    struct sample *sample = bpf_ringbuf_reserve(&samples, sizeof *sample, 0);
    if (!sample) return 0;
    sample->id = id;
    sample->process = bpf_get_current_pid_tgid() >> 32;
    bpf_probe_read_str(sample->name, sizeof sample->name, job->name);
    bpf_ringbuf_submit(sample, 0);
    return 0;
}

SEC("kymo/jobs:end") int ended(struct end *end) {
    __u32 id = end->id, zero = 0;
    struct begun *begun = bpf_map_lookup_elem(&running, &id);
    if (!begun) { unknown++; return 0; }
    __u64 took = bpf_ktime_get_ns() - begun->time, *count = bpf_map_lookup_elem(&ends, &zero);
    if (count) ++*count;
    if (__builtin_preserve_field_info(end->no_such_field, 2)) took = end->no_such_field;
    struct latency first = {}, *latency = bpf_map_lookup_elem(&latencies, &begun->kind);
    if (!latency) {
        bpf_map_update_elem(&latencies, &begun->kind, &first, 0);
        latency = bpf_map_lookup_elem(&latencies, &begun->kind);
        if (!latency) return 0;
    }
    latency->count++;
    latency->sum += took;
    if (took > latency->max) latency->max = took;
    bpf_map_delete_elem(&running, &id);
    return 0;
}
SEC("tp_btf/sched_switch") int switched(__u64 *context) { return 0; }
char _license[] SEC("license") = "Dual MIT/GPL";
"#;

pub(crate) fn demo() -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo");
    path.to_str().expect("the path is text").to_owned()
}

/// An object in a folder of its own.
pub(crate) struct Compiled {
    folder: tempfile::TempDir,
}

impl Compiled {
    /// `None`: no clang writes eBPF here, which is said.
    pub(crate) fn new(source: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        std::fs::write(folder.path().join("programs.c"), source).expect("there is room for a file");
        let mut clang = Command::new("clang");
        clang.args(["--target=bpfel", "-mcpu=v3", "-O2", "-g", "-c", "programs.c", "-o", "programs.o"]);
        let Ok(done) = clang.current_dir(folder.path()).output() else {
            println!("NO CLANG HERE: not run");
            return None;
        };
        let words = String::from_utf8_lossy(&done.stderr);
        if words.contains("No available targets are compatible") || words.contains("unknown target triple") {
            println!("NO CLANG FOR EBPF HERE: not run");
            return None;
        }
        assert!(done.status.success(), "{words}");
        Some(Self { folder })
    }

    /// A file in the folder.
    #[cfg(target_os = "linux")]
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn kymo(&self, words: &[&str]) -> Output {
        let mut kymo = program::kymo();
        kymo.args(words).current_dir(self.folder.path()).env("TZ", "UTC");
        kymo.output().expect("the program is there")
    }

    /// Lines on standard output, after checking the exit status.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str], status: i32) -> String {
        let done = self.kymo(words);
        assert_eq!(done.status.code(), Some(status), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("the answer is text")
    }
}

pub(crate) fn lines_of_json(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Count, sum and maximum of the latencies of each kind, out of the printed events.
fn latencies_of_printed_events() -> BTreeMap<u64, [u64; 3]> {
    let done = program::kymo().args(["print", "--no-delta", "--clock-seconds", &demo()]).output();
    let text = String::from_utf8(done.expect("the program is there").stdout).expect("events are text");
    let behind = |line: &str, words: &str| -> Option<u64> {
        let rest = line.split_once(words)?.1;
        rest[..rest.find(|letter: char| !letter.is_ascii_digit())?].parse().ok()
    };
    let (mut begun, mut found) = (BTreeMap::new(), BTreeMap::<u64, [u64; 3]>::new());
    for line in text.lines() {
        let time: String =
            line.chars().skip(1).take_while(|letter| *letter != ']').filter(char::is_ascii_digit).collect();
        let time: u64 = time.parse().expect("a line begins with its time");
        if line.contains(" jobs:submit: ") {
            let id = behind(line, "{ id = ").expect("it has an id");
            begun.insert(id, (time, behind(line, "container = ").expect("it has a kind")));
        } else if line.contains(" jobs:end: ") {
            let Some((begin, kind)) = begun.remove(&behind(line, "{ id = ").expect("it has an id")) else { continue };
            let [count, sum, max] = found.entry(kind).or_default();
            (*count, *sum, *max) = (*count + 1, *sum + time - begin, (*max).max(time - begin));
        }
    }
    found
}

#[test]
fn programs_see_the_events_that_are_printed() {
    let Some(compiled) = Compiled::new(LATENCIES) else { return };
    let lines = lines_of_json(&compiled.says(&["bpf", "run", "--json", "programs.o", &demo()], 0));
    let of = |kind: &str| -> Vec<&serde_json::Value> { lines.iter().filter(|line| line["kind"] == kind).collect() };
    let map = |name: &str| of("map").into_iter().find(|map| map["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let entries = map("latencies")["entries"].as_array().expect("a list").clone();
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("{value}"));
    let found: BTreeMap<u64, [u64; 3]> = entries
        .iter()
        .map(|entry| (number(&entry["key"]), ["count", "sum", "max"].map(|name| number(&entry["value"][name]))))
        .collect();
    let expected = latencies_of_printed_events();
    assert!(expected.len() > 2 && expected.values().all(|[count, ..]| *count > 10), "{expected:?}");
    assert_eq!(found, expected);

    let records: Vec<&serde_json::Value> = of("record").into_iter().map(|record| &record["value"]).collect();
    let ids: Vec<u64> = records.iter().map(|record| number(&record["id"])).collect();
    assert_eq!(ids, [0, 100, 200, 300]);
    assert!(records.iter().all(|record| number(&record["process"]) == 29832), "{records:?}");
    assert!(records.iter().any(|record| record["name"] == "config.toml"), "{records:?}");

    assert_eq!(map(".bss")["entries"][0]["value"]["unknown"], 0);
    let ends = map("ends")["entries"][0]["values"].as_array().expect("a list").clone();
    let all: u64 = ends.iter().map(|end| number(&end["value"])).sum();
    assert_eq!(all, expected.values().map(|[count, ..]| count).sum::<u64>());
    let runs: Vec<u64> = of("program").into_iter().map(|program| number(&program["runs"])).collect();
    assert_eq!(runs, [400, 400]);
}

#[test]
fn a_filter_chooses_among_their_events() {
    let Some(compiled) = Compiled::new(LATENCIES) else { return };
    let text = compiled.says(&["bpf", "run", "programs.o", &demo(), "--filter", "id < 250"], 0);
    assert!(text.contains("\nprograms ran: submitted 250 times, ended 250 times\n"), "{text}");
    assert!(text.contains("samples: { id = 200, process = 29832, name = "), "{text}");
    let head = "\nlatencies (hash)\n  key  count";
    assert!(text.contains(head) && text.contains("\nrunning (hash)\n  no entries\n"), "{text}");
}

#[test]
fn an_object_is_shown_with_its_types() {
    let Some(compiled) = Compiled::new(LATENCIES) else { return };
    let text = compiled.says(&["bpf", "show", "programs.o"], 0);
    for part in [
        "license: Dual MIT/GPL\n",
        "\nprogram submitted: kymo/jobs:submit, ",
        "  context: struct job { u32 id, u32 kind, pointer name }\n  runs in user space: yes, over events of traces\n  runs in recorded programs: ",
        "  runs in recorded programs: yes, by `kymo record --bpf`\n",
        "  runs in recorded programs: no, map samples: its records have no way out of a traced program",
        "  runs in user space: no, it attaches to a tracepoint of the kernel, with its arguments by BTF\n",
        "\nmap latencies: hash, at most 64 entries, keys of 4 B and values of 24 B\n  key: u32\n",
        "  value: struct latency { u64 count, u64 sum, u64 max }\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let json = lines_of_json(&compiled.says(&["bpf", "show", "--json", "programs.o"], 0)).remove(0);
    assert_eq!(json["programs"][1]["target"], "jobs:end");
    assert_eq!((&json["programs"][2]["user_space"], &json["programs"][0]["user_space"]), (&false.into(), &true.into()));
}

#[test]
fn programs_that_do_not_fit_or_stop_are_told() {
    let source = r#"
        #define SEC(name) __attribute__((section(name), used))
        struct other { unsigned id; char name; };
        struct end { unsigned id; };
        struct more { unsigned id; unsigned missing; };
        SEC("kymo/jobs:b*") int lacks(struct more *event) { return event->missing; }
        SEC("kymo/jobs:submit") int wrong(struct other *event) { return event->name; }
        SEC("kymo/jobs:end") int stops(struct end *event) {
            return event->id % 2 ? 0 : *(volatile int *) 8;
        }"#;
    let Some(compiled) = Compiled::new(source) else { return };
    let done = compiled.kymo(&["bpf", "run", "programs.o", &demo()]);
    let told = String::from_utf8_lossy(&done.stderr).replace("\n  ", " ");
    assert_eq!(done.status.code(), Some(1), "{told}");
    let unfit = "program wrong does not run over `jobs:submit`: member name of struct other is s8, and the event's field is a text";
    assert!(told.contains(unfit), "{told}");
    let unfit = "program lacks does not run over `jobs:begin`: struct more has a member missing, and the event has no such field: with ";
    assert!(told.contains(unfit), "{told}");
    assert!(told.contains("program stops stopped 200 of 400 times before its end, first at instruction "), "{told}");
    assert!(told.contains("a null pointer") && told.contains("programs.c:9: `return event->id % 2"), "{told}");

    let none =
        Compiled::new("__attribute__((section(\"xdp\"), used)) int a(void *x) { return 0; }").expect("clang is here");
    let done = none.kymo(&["bpf", "run", "programs.o", &demo()]);
    let told = String::from_utf8_lossy(&done.stderr).replace("\n  ", " ");
    assert_eq!(done.status.code(), Some(2), "{told}");
    assert!(
        told.contains("no program of the object is for events of traces") && told.contains("help: `kymo bpf show"),
        "{told}"
    );
    let done = none.kymo(&["bpf", "show", "programs.c"]);
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(2) && told.contains("programs.c: it begins with "), "{told}");
}

/// Entries of maps are rows: keys and values are columns, and structures are structures.
#[cfg(feature = "sql")]
#[test]
fn maps_are_tables() {
    let Some(compiled) = Compiled::new(LATENCIES) else { return };
    compiled.says(&["bpf", "run", "programs.o", &demo(), "--output", "trace"], 0);
    let lines = lines_of_json(&compiled.says(&["bpf", "run", "programs.o", &demo(), "--json"], 0));
    let map = lines.iter().find(|line| line["kind"] == "map" && line["name"] == "latencies").expect("it is there");
    let mut wanted: Vec<String> = map["entries"]
        .as_array()
        .expect("it has some")
        .iter()
        .map(|entry| {
            let value = &entry["value"];
            format!("{},{},{},{}", entry["key"], value["count"], value["sum"], value["max"])
        })
        .collect();
    wanted.sort();
    let query = "select key, value['count'] as count, value['sum'] as sum, value['max'] as max from map('latencies') order by key";
    let told = compiled.says(&["sql", "trace", query, "--csv"], 0);
    let mut rows: Vec<&str> = told.lines().skip(1).collect();
    rows.sort_unstable();
    assert_eq!(rows, wanted);
    assert!(!rows.is_empty());
    let all = compiled.says(&["sql", "trace", "select * from map('latencies') limit 1", "--csv"], 0);
    assert_eq!(all.lines().next(), Some("key,value"));
    let done = compiled.kymo(&["sql", "trace", "select * from map('latencie')"]);
    let told = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{told}");
    assert!(told.contains("there is no map `latencie`; did you mean `latencies`?; the trace has "), "{told}");
}
