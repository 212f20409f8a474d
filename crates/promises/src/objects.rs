//! Any bytes are an eBPF object or are refused; each of its programs is linked and checked, or refused with a reason, and one that is not
//! refused runs to its end or stops, inside of its memory and its limit of instructions, in machine code as in the evaluator.

use kymo_bpf::{BpfObject, BtfTypes, LinkedProgram, MachineMaps, ObjectProblem, counting_object, kernel_object};
use kymo_ir::machine::{BpfMachine, MachineProgram, RunInput, RunMoment};
use kymo_random::machine::MachineTrial;

use crate::machine::same_by_both;

/// Programs of an object that are run.
const PROGRAMS_MAX: usize = 8;
/// Instructions of a run.
const STEPS: u64 = 5_000;
/// Entries of a map that are shown.
const ENTRIES_MAX: usize = 64;

/// The promise; how many programs came to their end.
///
/// # Panics
///
/// If it is broken.
pub fn hold(data: &[u8], target: Option<&BtfTypes>) -> u64 {
    let object = match BpfObject::read(data) {
        Ok(object) => object,
        Err(problem) => {
            assert!(!problem.to_string().is_empty());
            return 0;
        }
    };
    assert!(!object.programs().is_empty());
    for changed in [counting_object(data), kernel_object(data)].into_iter().flatten() {
        // Hidden programs are in no section with code any more; an object without others has none.
        let programs = BpfObject::read(&changed).map_or(0, |changed| changed.programs().len());
        assert!(programs <= object.programs().len(), "no program is added");
    }
    let maps = object.machine_maps();
    for map in object.maps() {
        let value = map.value.as_ref().map(|value| (value.name(), value.value(&[0xff; 64])));
        assert!(value.is_none_or(|(name, _)| name.len() <= 2 * data.len() + 64));
    }
    let Ok(machine) = object.machine(&maps) else { return 0 };
    let targets = [None, target, object.types()];
    let tries = object.programs().iter().take(PROGRAMS_MAX).flat_map(|program| targets.map(|target| (program, target)));
    let mut ended = 0;
    for (program, target) in tries {
        let linked = object.link(program, target);
        match linked.and_then(|linked| Ok((object.for_machine(&linked, &maps)?, linked))) {
            Ok((program, linked)) => ended += u64::from(run(&object, &maps, machine.clone(), &program, &linked)),
            Err(problem) => refused(&problem),
        }
    }
    ended
}

fn refused(problem: &ObjectProblem) {
    assert!(!problem.to_string().is_empty());
}

/// Whether a program comes to its end.
fn run(
    object: &BpfObject,
    maps: &MachineMaps,
    machine: BpfMachine,
    program: &MachineProgram,
    linked: &LinkedProgram,
) -> bool {
    let mut machine = machine.with_steps_max(STEPS);
    let before = machine.clone();
    let moment = RunMoment { nanos: Some(1), cpu: Some(1), process: Some(2), thread: Some(3), thread_name: None };
    let mut is_end = false;
    for _ in 0..2 {
        let input = RunInput { context: &mut [0x11; 64], data: b"a text\0", moment: &moment };
        match machine.run(program, input) {
            Ok(_) => is_end = true,
            Err(fault) => {
                assert!(fault.at < linked.code.len() && !fault.to_string().is_empty());
                let _ = object.line(linked, fault.at).map(|line| line.to_string());
            }
        }
    }
    let trial = MachineTrial::new(vec![0x11; 64], moment);
    same_by_both(&before, program, &[trial.clone(), trial], "an object");
    for (map, number) in machine.maps().iter().zip(&maps.of_object) {
        let map_types = &object.maps()[*number];
        for entry in map.entries().take(ENTRIES_MAX) {
            let _ = map_types.key.as_ref().map(|key| key.value(&entry.key));
            for (_, bytes) in entry.values {
                let _ = map_types.value.as_ref().map(|value| value.value(bytes));
            }
        }
    }
    for record in machine.take_outputs().records {
        assert!(record.map < maps.of_object.len());
    }
    is_end
}

/// Objects with maps, variables, functions, records, and fields of other types; none: no clang here writes eBPF.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    const SOURCE: &str = r#"
typedef unsigned int u32; typedef unsigned long long u64;
#define SEC(name) __attribute__((section(name), used))
static void *(*lookup)(void *map, const void *key) = (void *) 1;
static long (*update)(void *map, const void *key, const void *value, u64 flags) = (void *) 2;
static long (*print)(const char *format, u32 size, ...) = (void *) 6;
static void *(*reserve)(void *ring, u64 size, u64 flags) = (void *) 131;
static void (*submit)(void *record, u64 flags) = (void *) 132;
static long (*loop)(u32 count, void *function, void *argument, u64 flags) = (void *) 181;
struct key { u32 port; char name[4]; };
enum state { IDLE, BUSY = 5 };
struct value { u64 count; enum state state : 8; u32 low : 4; double load[2]; union { char tag; void *where; }; };
struct { int (*type)[1]; int (*max_entries)[16]; struct key *key; struct value *value; } totals SEC(".maps");
struct { int (*type)[6]; int (*max_entries)[4]; u32 *key; u64 *value; } counts SEC(".maps");
struct { int (*type)[27]; int (*max_entries)[4096]; } events SEC(".maps");
struct event { u64 time; u32 size; struct { u32 a, b; } parts[2]; } __attribute__((preserve_access_index));
const volatile u64 limit = 7; u64 seen; u32 steps[3] = {1, 2, 3};
static long step(u32 index, u64 *sum) { *sum += steps[index % 3]; return index == 9; }
__attribute__((noinline)) int twice(int a) { __asm__ volatile(""); return a + a; }
SEC("kymo/a") int a(struct event *event) {
    struct key key = {.port = event->size, .name = "abc"}; struct value first = {.count = 1};
    struct value *value = lookup(&totals, &key);
    if (value) __sync_fetch_and_add(&value->count, twice(event->parts[1].b)); else update(&totals, &key, &first, 0);
    if (event->time > limit) seen++;
    u32 index = 1; u64 *count = lookup(&counts, &index); if (count) ++*count;
    struct event *out = reserve(&events, sizeof *out, 0);
    if (out) { out->time = event->time; submit(out, 0); }
    return 0;
}
SEC("kymo/b") int b(struct event *event) {
    u64 sum = 0; static const char format[] = "%d";
    loop(12, step, &sum, 0); print(format, 3, sum);
    return sum / (twice(event->size) - 1);
}
char _license[] SEC("license") = "MIT";
"#;
    ["-mcpu=v2", "-mcpu=v3"].into_iter().filter_map(|cpu| compiled(SOURCE, cpu)).collect()
}

fn compiled(source: &str, cpu: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().ok()?;
    let (text, built) = (folder.path().join("seed.c"), folder.path().join("seed.o"));
    std::fs::write(&text, source).ok()?;
    let mut clang = std::process::Command::new("clang");
    clang.args(["--target=bpfel", cpu, "-O2", "-g", "-w", "-c", "-o"]).arg(&built).arg(&text);
    let output = clang.output().ok()?;
    output.status.success().then(|| std::fs::read(&built).ok())?
}
