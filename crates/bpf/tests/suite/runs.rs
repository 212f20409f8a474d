//! Objects run in the machine: maps, variables, functions, records.

use kymo_bpf::{BpfObject, MachineMaps};
use kymo_ir::machine::{BpfMachine, MachineProgram, RunInput, RunMoment};

use crate::build::object;

/// An object with its first program, ready to run.
struct Ready {
    object: BpfObject,
    maps: MachineMaps,
    machine: BpfMachine,
    program: MachineProgram,
}

fn ready(source: &str) -> Option<Ready> {
    let object = BpfObject::read(&object(source)?).expect("it is an object");
    let maps = object.machine_maps();
    let linked = object.link(&object.programs()[0], None).unwrap_or_else(|problem| panic!("{problem}"));
    let program = object.for_machine(&linked, &maps).unwrap_or_else(|problem| panic!("{problem}"));
    let machine = object.machine(&maps).expect("the maps are small");
    Some(Ready { object, maps, machine, program })
}

impl Ready {
    fn run(&mut self, context: &[u64]) -> u64 {
        let mut context: Vec<u8> = context.iter().flat_map(|word| word.to_le_bytes()).collect();
        let moment = RunMoment { nanos: Some(99), process: Some(7), thread: Some(8), ..RunMoment::default() };
        let input = RunInput { context: &mut context, data: b"a name\0", moment: &moment };
        self.machine.run(&self.program, input).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// The entries of a map, as text.
    fn entries(&self, name: &str) -> Vec<String> {
        let number = self.object.maps().iter().position(|map| map.name == name).expect("there is such a map");
        let index = self.maps.of_object.iter().position(|other| *other == number).expect("the machine has it");
        let map = &self.object.maps()[number];
        let shown = self.machine.maps()[index].entries().map(|entry| {
            let (key, value) = (map.key.as_ref().expect("it has a type"), map.value.as_ref().expect("it has a type"));
            let values: Vec<String> =
                entry.values.iter().map(|(_, bytes)| format!("{:?}", value.value(bytes))).collect();
            format!("{:?} = {}", key.value(&entry.key), values.join(", "))
        });
        shown.collect()
    }
}

#[test]
fn functions_call_each_other() {
    let source = r#"
        static noinline int plus(int a, int b) { __asm__ volatile(""); return a + b; }
        noinline int triple(int a) { __asm__ volatile(""); return plus(a, plus(a, a)); }
        static long step(__u32 index, __u64 *sum) { *sum += triple(index); return index == 9; }
        SEC("kymo/a") int a(__u64 *context) {
            __u64 sum = 0;
            long calls = bpf_loop(100, step, &sum, 0);
            return sum * 1000 + calls + triple(context[0]);
        }"#;
    let Some(mut ready) = ready(source) else { return };
    assert_eq!(ready.run(&[5]), 135 * 1000 + 10 + 15);
}

#[test]
fn maps_and_variables_are_kept_between_runs() {
    let source = r#"
        struct key { __u32 port; __u32 kind; };
        struct { __uint(type, HASH); __uint(max_entries, 64); __type(key, struct key); __type(value, __u64); } totals SEC(".maps");
        const volatile __u64 limit = 10;
        __u64 above, below = 100;
        SEC("kymo/a") int a(__u64 *context) {
            struct key key = {.port = context[0]};
            __u64 one = 1, *count = bpf_map_lookup_elem(&totals, &key);
            if (count) __sync_fetch_and_add(count, context[1]); else bpf_map_update_elem(&totals, &key, &context[1], 0);
            if (context[1] > limit) above++; else below++;
            return above * 1000 + below;
        }"#;
    let Some(mut ready) = ready(source) else { return };
    let results = [[80, 5], [443, 20], [80, 30]].map(|context| ready.run(&context));
    assert_eq!(results, [101, 1101, 2101]);
    let key = |port: u32| format!(r#"Members([("port", Integer({port})), ("kind", Integer(0))])"#);
    assert_eq!(ready.entries("totals"), [format!("{} = Integer(35)", key(80)), format!("{} = Integer(20)", key(443))]);
    assert_eq!(ready.entries(".bss"), [r#"Integer(0) = Members([("above", Integer(2))])"#]);
    assert_eq!(ready.entries(".data"), [r#"Integer(0) = Members([("below", Integer(101))])"#]);
}

#[test]
fn records_and_lines_go_out() {
    let source = r#"
        struct event { __u64 time; __u32 thread; char name[12]; };
        struct { __uint(type, RING); __uint(max_entries, 4096); } events SEC(".maps");
        const struct event *shown __attribute__((unused));
        SEC("kymo/a") int a(__u64 *context) {
            struct event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
            if (!event) return 1;
            event->time = bpf_ktime_get_ns();
            event->thread = bpf_get_current_pid_tgid();
            long length = bpf_probe_read_str(event->name, sizeof event->name, (void *) context[0]);
            bpf_ringbuf_submit(event, 0);
            static const char format[] = "%d bytes";
            bpf_trace_printk(format, sizeof format, length);
            return 0;
        }"#;
    let Some(mut ready) = ready(source) else { return };
    assert_eq!(ready.run(&[kymo_ir::machine::data_address(0)]), 0);
    let outputs = ready.machine.take_outputs();
    assert_eq!(outputs.lines, ["7 bytes"]);
    let map = &ready.object.maps()[ready.maps.of_object[outputs.records[0].map]];
    let record = map.value.as_ref().expect("a structure has its name").value(&outputs.records[0].bytes);
    let expected = r#"Members([("time", Integer(99)), ("thread", Integer(8)), ("name", Text("a name"))])"#;
    assert_eq!(format!("{record:?}"), expected);
}

#[test]
fn a_fault_has_the_line_of_the_source() {
    let source = "SEC(\"kymo/a\") int a(__u64 *context) {\n    int more = 1;\n    return *(volatile int *) context[0] + more;\n}";
    let Some(mut ready) = ready(source) else { return };
    let input = RunInput { context: &mut [0; 8], data: &[], moment: &RunMoment::default() };
    let fault = ready.machine.run(&ready.program, input).unwrap_err();
    let linked = ready.object.link(&ready.object.programs()[0], None).expect("it is linked");
    let line = ready.object.line(&linked, fault.at).expect("it was compiled with -g");
    assert!(
        line.file.ends_with("programs.c") && line.text.starts_with("return *(volatile int *) context[0]"),
        "{line}"
    );
}
