//! `kymo bpf run --kernel`: objects of clang run in the kernel; their counts are those of a program with known behavior, and their records
//! those of user space.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::bpf::{Compiled, demo, lines_of_json};
use crate::kernel::{NOBODY, sudo};
use crate::recorded::Place;

/// Definitions of libbpf and of the kernel that the programs here use.
const HEAD: &str = r#"
typedef unsigned int __u32; typedef unsigned long long __u64; typedef unsigned short __u16; typedef long long __s64;
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *) 1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *) 2;
static __u64 (*bpf_ktime_get_ns)(void) = (void *) 5;
static long (*bpf_trace_printk)(const char *format, __u32 size, ...) = (void *) 6;
static long (*bpf_get_current_comm)(void *to, __u32 size) = (void *) 16;
static long (*bpf_perf_event_output)(void *context, void *map, __u64 flags, void *data, __u64 size) = (void *) 25;
static long (*bpf_ringbuf_output)(void *ring, void *data, __u64 size, __u64 flags) = (void *) 130;
static void *(*bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *) 131;
static void (*bpf_ringbuf_submit)(void *record, __u64 flags) = (void *) 132;
#define CURRENT_CPU 0xffffffffULL
static __attribute__((always_inline)) int is_copy(void) {
    char comm[16] = {};
    bpf_get_current_comm(comm, sizeof comm);
    for (int at = 0; at < sizeof NAME; at++) if (comm[at] != NAME[at]) return 0;
    return 1;
}
char LICENSE[] SEC("license") = "Dual MIT/GPL";
"#;

/// A count of system calls, and a record of the first ones.
const CALLS: &str = r#"
enum outcome { WORKED = 0, FAILED = 7 };
struct point { int x; short y; };
struct event {
    __u64 ts; __u32 id; enum outcome outcome; _Bool is_odd; char text[8]; __u16 pair[2]; struct point point; __s64 less;
    unsigned low : 3; unsigned high : 5;
};
const struct event *event_is_shown __attribute__((unused));
struct sample { __u32 number; };
const struct sample *sample_is_shown __attribute__((unused));
struct { __uint(type, 27); __uint(max_entries, 65536); } events SEC(".maps");
struct { __uint(type, 4); __uint(key_size, 4); __uint(value_size, 4); } samples SEC(".maps");
struct { __uint(type, 1); __uint(max_entries, 1024); __type(key, __u32); __type(value, __u64); } calls SEC(".maps");
struct { __uint(type, 5); __uint(max_entries, 1024); __type(key, __u32); __type(value, __u64); } by_cpu SEC(".maps");
struct { __uint(type, 2); __uint(max_entries, 4); __type(key, __u32); __type(value, __u64); } array SEC(".maps");
__u64 total;
const volatile int limit = 4;

static __attribute__((noinline)) int tell(void *context, __u32 id) {
    struct event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
    if (!event) return 0;
    event->ts = bpf_ktime_get_ns();
    event->id = id;
    event->outcome = id & 1 ? FAILED : WORKED;
    event->is_odd = id & 1;
    __builtin_memcpy(event->text, "four\0ish", 8);
    event->pair[0] = 1; event->pair[1] = 65535;
    event->point.x = -5; event->point.y = 7;
    event->less = -(__s64) id - 1;
    event->low = 5; event->high = 17;
    bpf_ringbuf_submit(event, 0);
    struct sample sample = { .number = id };
    bpf_perf_event_output(context, &samples, CURRENT_CPU, &sample, sizeof sample);
    static const char format[] = "told of %d";
    bpf_trace_printk(format, sizeof format, id);
    return 0;
}

SEC("tp_btf/sys_enter") int entered(__u64 *context) {
    if (!is_copy()) return 0;
    __u32 id = context[1], two = 2;
    __u64 one = 1, *count = bpf_map_lookup_elem(&calls, &id);
    if (count) __sync_fetch_and_add(count, 1); else bpf_map_update_elem(&calls, &id, &one, 0);
    count = bpf_map_lookup_elem(&by_cpu, &id);
    if (count) ++*count; else bpf_map_update_elem(&by_cpu, &id, &one, 0);
    if (id == WRITE && (count = bpf_map_lookup_elem(&array, &two))) __sync_fetch_and_add(count, 1);
    if (id == WRITE && total < limit) tell(context, __sync_fetch_and_add(&total, 1));
    return 0;
}

struct job { __u32 id; } __attribute__((preserve_access_index));
SEC("kymo/jobs:submit") int submitted(struct job *job) {
    if (job->id < limit) tell(job, job->id);
    return 0;
}
"#;

const COPY: [&str; 5] = ["if=/dev/zero", "of=/dev/null", "bs=7", "count=1000", "status=none"];

/// Numbers of system calls.
const READ: u64 = if cfg!(target_arch = "x86_64") { 0 } else { 63 };
const WRITE: u64 = READ + 1;

/// Programs that are about threads of a command with a name of its own: other tests copy, too.
fn compile(source: &str) -> Option<Compiled> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("kb{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let compiled = Compiled::new(&format!("#define NAME \"{name}\"\n#define WRITE {WRITE}\n{HEAD}{source}"))?;
    std::fs::copy("/bin/dd", compiled.path(&name)).expect("there is room");
    std::fs::write(compiled.path("name"), format!("./{name}")).expect("there is room");
    Some(compiled)
}

/// Runs an object in the kernel during a copy; `None`: that is not possible here, which is said.
fn in_kernel(compiled: &Compiled, words: &[&str]) -> Option<Output> {
    let copy = std::fs::read_to_string(compiled.path("name")).expect("it was written");
    let words = [&["bpf", "run", "programs.o", "--kernel"], words, &["--", &copy], &COPY].concat();
    let output = compiled.kymo(&words);
    let told = String::from_utf8_lossy(&output.stderr);
    if told.contains("`kymo doctor` says") || told.contains("does not describe its types") {
        eprintln!("NO EBPF HERE: not run ({})", told.trim_end());
        return None;
    }
    Some(output)
}

fn of_kind<'l>(lines: &'l [Value], kind: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

fn map<'l>(lines: &'l [Value], name: &str) -> &'l Value {
    let found = lines.iter().find(|line| line["kind"] == "map" && line["name"] == name);
    found.unwrap_or_else(|| panic!("no map {name}: {lines:?}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The count of a call in a map.
fn count(map: &Value, key: u64) -> u64 {
    let entries = map["entries"].as_array().expect("a list");
    let entry = entries.iter().find(|entry| entry["key"] == key).unwrap_or_else(|| panic!("no {key}: {map}"));
    match entry["values"].as_array() {
        Some(values) => values.iter().map(|of| number(&of["value"])).sum(),
        None => number(&entry["value"]),
    }
}

#[test]
fn calls_of_a_program_are_counted_to_the_last() {
    let Some(compiled) = compile(CALLS) else { return };
    let Some(output) = in_kernel(&compiled, &["--json"]) else { return };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("note: program submitted is for events of traces, and does not run here"), "{told}");
    assert!(!told.contains("warning"), "{told}");
    let lines = lines_of_json(&String::from_utf8_lossy(&output.stdout));
    for name in ["calls", "by_cpu"] {
        assert_eq!(count(map(&lines, name), WRITE), 1000, "{lines:?}");
        assert!((1000..1010).contains(&count(map(&lines, name), READ)), "its loader reads, too: {lines:?}");
    }
    let array = map(&lines, "array");
    assert_eq!((count(array, 2), number(&array["zero_entries"]), &array["type"]), (1000, 3, &"array".into()));
    assert_eq!(map(&lines, ".bss")["entries"][0]["value"]["total"], 4);
    let program = of_kind(&lines, "program")[0];
    assert_eq!((&program["name"], &program["section"]), (&"entered".into(), &"tp_btf/sys_enter".into()));
    assert!(number(&program["runs"]) >= 2000 && number(&program["run_ns"]) > 2000, "{program}");
    assert!(lines.iter().all(|line| line["name"] != ".data.kymo" && line["name"] != ".rodata"), "{lines:?}");

    // People see the same, and the status of the command.
    let output = in_kernel(&compiled, &[]).expect("it ran a moment ago");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("\narray (array)\n  key  value\n    2   1000\n  3 more values with 0 are not shown\n"),
        "{text}"
    );
    assert!(text.contains("\nprograms ran: entered "), "{text}");
    let output = compiled.kymo(&["bpf", "run", "programs.o", "--kernel", "--", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}

/// Records of the kernel and of user space have the same types, on the terminal and in traces.
#[test]
fn records_are_those_of_user_space() {
    let Some(compiled) = compile(CALLS) else { return };
    let user_space = lines_of_json(&compiled.says(&["bpf", "run", "--json", "programs.o", &demo()], 0));
    let values = |lines: &[Value], ring: &str| -> Vec<Value> {
        let records = of_kind(lines, "record").into_iter().filter(|record| record["map"] == ring);
        let without_time = records.map(|record| {
            let mut value = record["value"].clone();
            let time = value["ts"].take();
            assert!(ring != "events" || time.as_u64() > Some(0), "{record}");
            value
        });
        without_time.collect()
    };
    let expected = values(&user_space, "events");
    assert_eq!((expected.len(), &expected[3]["outcome"], &expected[3]["less"]), (4, &"FAILED".into(), &(-4).into()));
    let Some(output) = in_kernel(&compiled, &["--json"]) else { return };
    let kernel = lines_of_json(&String::from_utf8_lossy(&output.stdout));
    for ring in ["events", "samples"] {
        assert_eq!(values(&kernel, ring), values(&user_space, ring), "{ring}");
    }
    let texts =
        |lines: &[Value]| of_kind(lines, "line").into_iter().map(|line| line["text"].clone()).collect::<Vec<_>>();
    if String::from_utf8_lossy(&output.stderr).contains("lines of bpf_printk are not shown") {
        eprintln!("NO TRACEFS HERE: lines are not compared");
    } else {
        assert_eq!(texts(&user_space), ["told of 0", "told of 1", "told of 2", "told of 3"]);
        // Other programs of the system may write lines, too.
        let mut told = texts(&kernel);
        told.retain(|text| text.as_str().is_some_and(|text| text.starts_with("told of ")));
        assert_eq!(told, texts(&user_space));
    }
    // A member tells the time of a record.
    let offset = |record: &&Value| number(&record["time_ns"]).wrapping_sub(number(&record["value"]["ts"]));
    let offsets: Vec<u64> =
        of_kind(&kernel, "record").iter().filter(|record| record["map"] == "events").map(offset).collect();
    assert!(offsets.len() == 4 && offsets.iter().all(|offset| *offset == offsets[0]), "{offsets:?}");

    let fields = |folder: &str| {
        let printed = compiled.says(&["print", "--no-delta", "--clock-seconds", folder], 0);
        let events = printed.lines().filter(|line| line.contains(" events: ")).map(|line| {
            let (_, fields) = line.split_once(", id = ").expect("it has one");
            fields.to_owned()
        });
        events.collect::<Vec<_>>()
    };
    compiled.says(&["bpf", "run", "programs.o", &demo(), "--output", "of-user-space"], 0);
    let output = in_kernel(&compiled, &["--output", "of-kernel"]).expect("it ran a moment ago");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected = fields("of-user-space");
    let first = "0, outcome = ( \"WORKED\" : container = 0 ), is_odd = 0, text = \"four\", pair = [ [0] = 1, [1] = 65535 ], \
                 point = { x = -5, y = 7 }, less = -1, low = 5, high = 17 }";
    assert_eq!((expected.len(), &expected[0][..]), (4, first));
    assert_eq!(fields("of-kernel"), expected);
}

#[test]
fn traces_of_output_are_read_by_others() {
    let Some(compiled) = compile(CALLS) else { return };
    let Some(output) = in_kernel(&compiled, &["--output", "trace"]) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !said.contains("events: ") && said.contains("calls (hash)\n"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("records and maps are in trace"), "{output:?}");
    let printed = compiled.says(&["print", "--clock-seconds", "trace"], 0);
    let of = |name: &str| printed.lines().filter(|line| line.contains(&format!(" {name}: {{"))).collect::<Vec<_>>();
    assert_eq!((of("events").len(), of("samples").len(), of("map:array").len()), (4, 4, 1), "{printed}");
    assert!(of("map:array")[0].ends_with("map:array: { key = 2, value = 1000 }"), "{printed}");
    assert!(
        of("map:calls").iter().any(|line| line.ends_with(&format!("{{ key = {WRITE}, value = 1000 }}"))),
        "{printed}"
    );
    assert!(of("map:by_cpu")[0].contains(", cpu = "), "{printed}");
    compiled.says(&["check", "trace"], 0);
    let mode = compiled.path("trace").metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "it tells of other users, too");
    // The folder has a trace: a second one does not go there.
    let again = in_kernel(&compiled, &["--output", "trace"]).expect("it ran a moment ago");
    assert_eq!(again.status.code(), Some(2), "{again:?}");

    let folder = compiled.path("trace");
    let Ok(others) = Command::new("babeltrace2").arg("--clock-seconds").arg(folder).output() else {
        println!("NO BABELTRACE2 HERE: not compared");
        return;
    };
    assert_eq!((&*String::from_utf8_lossy(&others.stderr), others.status.code()), ("", Some(0)));
    assert_eq!(String::from_utf8_lossy(&others.stdout), printed);
}

/// Bursts that no ring has room for, from one run of a program: the losses are those that the program was told of.
#[test]
fn records_without_room_are_counted() {
    let source = r#"
        struct event { __u64 number; char filler[56]; };
        struct sample { __u64 number; char filler[248]; };
        struct { __uint(type, 27); __uint(max_entries, 4096); } events SEC(".maps");
        struct { __uint(type, 4); __uint(key_size, 4); __uint(value_size, 4); } samples SEC(".maps");
        __u64 wrote, refused, put_out, not_put_out; int is_done;
        static __attribute__((noinline)) void one(__u64 number) {
            struct event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
            if (!event) { refused++; return; }
            event->number = number; wrote++;
            bpf_ringbuf_submit(event, 0);
        }
        SEC("tp_btf/sys_enter") int entered(__u64 *context) {
            if (!is_copy() || is_done) return 0;
            is_done = 1;
            for (int number = 0; number < 100; number++) one(number);
            struct event event = {};
            for (int number = 0; number < 3; number++)
                if (bpf_ringbuf_output(&events, &event, sizeof event, 0)) refused++; else wrote++;
            struct sample sample = {};
            for (int number = 0; number < 2000; number++)
                if (bpf_perf_event_output(context, &samples, CURRENT_CPU, &sample, sizeof sample)) not_put_out++;
                else put_out++;
            return 0;
        }"#;
    let Some(compiled) = compile(source) else { return };
    let Some(output) = in_kernel(&compiled, &["--json"]) else { return };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let lines = lines_of_json(&String::from_utf8_lossy(&output.stdout));
    let variables = &map(&lines, ".bss")["entries"][0]["value"];
    let records =
        |ring: &str| of_kind(&lines, "record").into_iter().filter(|record| record["map"] == ring).count() as u64;
    let lost = |ring: &str| {
        let lost = of_kind(&lines, "lost").into_iter().find(|lost| lost["map"] == ring);
        number(&lost.unwrap_or_else(|| panic!("no loss in {ring}: {told}"))["records"])
    };
    assert!(number(&variables["refused"]) > 3, "{variables}");
    assert_eq!((records("events"), lost("events")), (number(&variables["wrote"]), number(&variables["refused"])));
    assert_eq!(
        (records("samples"), lost("samples")),
        (number(&variables["put_out"]), number(&variables["not_put_out"]))
    );
    assert!(
        told.contains(&format!("warning: {} records found no room in events", number(&variables["refused"]))),
        "{told}"
    );

    // The trace tells of them, too.
    let output = in_kernel(&compiled, &["--output", "trace"]).expect("it ran a moment ago");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let info: Value = serde_json::from_str(&compiled.says(&["info", "--json", "trace"], 0)).expect("an object");
    assert!(info.to_string().contains("discarded"), "{info}");
}

#[test]
fn refusals_are_in_the_words_of_the_verifier() {
    let source = r#"
        struct { __uint(type, 1); __uint(max_entries, 8); __type(key, __u32); __type(value, __u64); } counts SEC(".maps");
        SEC("tp_btf/sys_enter") int wrong(__u64 *context) {
            __u32 key = 1;
            __u64 *count = bpf_map_lookup_elem(&counts, &key);
            return *count;
        }"#;
    let Some(compiled) = compile(source) else { return };
    let Some(output) = in_kernel(&compiled, &[]) else { return };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.starts_with("error: programs.o: program wrong: the kernel's verifier refuses it: "), "{told}");
    assert!(told.contains("R0 invalid mem access 'map_value_or_null'"), "{told}");
    assert!(told.contains("return *count;") && !told.contains("processed "), "{told}");
    assert!(told.lines().count() < 40, "{told}");

    let variable = "extern int LINUX_KERNEL_VERSION SEC(\".kconfig\"); int version; SEC(\"tp_btf/sys_enter\") int program(void *context) \
                    { version = LINUX_KERNEL_VERSION; return 0; }";
    let compiled = compile(variable).expect("clang is here");
    let output = in_kernel(&compiled, &[]).expect("it ran a moment ago");
    let told = String::from_utf8_lossy(&output.stderr).replace("\n  ", " ");
    assert!(
        output.status.code() == Some(2) && told.contains("variables or functions of the kernel (`__kconfig`"),
        "{told}"
    );

    for (section, words) in [
        ("tp_btf/sched_swich", "the kernel has no tracepoint `sched_swich`\nhelp: the kernel has `sched_switch`"),
        ("raw_tp/sys_entr", "the kernel has no tracepoint `sys_entr`\nhelp: the kernel has `sys_enter`"),
        ("fentry/vfs_raed", "the kernel has no function `vfs_raed`\nhelp: the kernel has `vfs_read`"),
        ("uprobe//bin/sh:no_such_function", "the file has no function `no_such_function` among its symbols"),
        ("iter/task", "section iter/task is for lists of the kernel: they run when a program reads a file"),
        ("perf_event", "section perf_event is for samples of perf: the section does not say which counter"),
        ("xdp", "only programs that trace are attached"),
        ("usdt//bin/sh:a:b", "section usdt//bin/sh:a:b is for USDT probes"),
        ("nonsense", "section nonsense is none that programs of the kernel have"),
    ] {
        let source = format!("SEC(\"{section}\") int program(void *context) {{ return 0; }}");
        let compiled = compile(&source).expect("clang is here");
        let output = in_kernel(&compiled, &[]).expect("it ran a moment ago");
        let told = String::from_utf8_lossy(&output.stderr).replace("\n  ", " ");
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(words) && told.starts_with("error: programs.o: program program: "), "{section}: {told}");
    }
}

/// Events of tracefs, and functions of libraries.
#[test]
fn other_places_are_attached() {
    let source = r#"
        __u64 events, functions;
        SEC("tracepoint/raw_syscalls/sys_enter") int event(void *context) {
            if (is_copy()) __sync_fetch_and_add(&events, 1);
            return 0;
        }
        SEC("uprobe/libc:read") int function(void *context) {
            if (is_copy()) __sync_fetch_and_add(&functions, 1);
            return 0;
        }"#;
    let Some(compiled) = compile(source) else { return };
    let Some(output) = in_kernel(&compiled, &["--json"]) else { return };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if told.contains("it cannot be attached to") {
        println!("NO PERF EVENTS HERE: not run ({told})");
        return;
    }
    let lines = lines_of_json(&String::from_utf8_lossy(&output.stdout));
    let variables = &map(&lines, ".bss")["entries"][0]["value"];
    assert!(number(&variables["events"]) >= 2000 && number(&variables["functions"]) >= 1000, "{variables} {told}");
}

/// The helper has root's rights, and the command those of the user that called `sudo`.
#[test]
fn the_command_goes_on_as_the_user() {
    let Some(compiled) = compile(CALLS) else { return };
    if in_kernel(&compiled, &[]).is_none() {
        return;
    }
    let place = Place::new();
    std::fs::set_permissions(place.path("."), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let (kymo, object) = (place.path("command"), place.path("programs.o"));
    std::fs::copy(env!("CARGO_BIN_EXE_kymo"), &kymo).expect("there is room");
    std::fs::copy(compiled.path("programs.o"), &object).expect("there is room");
    std::fs::set_permissions(&object, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let words =
        ["bpf", "run", "programs.o", "--kernel", "--json", "--", "sh", "-c", "id -u; exec dd if=/dev/null status=none"];
    let output = sudo(&kymo, &place.path("."), &words);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains(&format!("{NOBODY}\n")), "{output:?}");
    assert!(said.contains("{\"kind\":\"map\",\"name\":\"calls\""), "{said}");
    // An object that only root may read is not read.
    std::fs::set_permissions(&object, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let output = sudo(&kymo, &place.path("."), &words);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains("programs.o: Permission denied"), "{told}");

    std::fs::set_permissions(&object, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let mut alone = place.command("setpriv");
    let user = NOBODY.to_string();
    alone.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--inh-caps=-all"]).arg(&kymo);
    let Ok(output) = alone.args(words).env_remove("XDG_RUNTIME_DIR").output() else {
        eprintln!("NOT TESTED: there is no setpriv");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("`sudo kymo bpf run ... --kernel` has the rights"), "{told}");
}
