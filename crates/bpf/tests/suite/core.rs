//! CO-RE: programs find fields where other types have them.

use kymo_bpf::{BpfObject, BtfTypes};
use kymo_ir::machine::{RunInput, RunMoment};

use crate::build::object;

const PROGRAM: &str = r#"
    struct inner { __u32 a; __u32 b; } core;
    enum color { RED, GREEN = 5 };
    struct packet { __u32 size; __u16 port; struct inner parts[2]; __u8 flag : 3; __u64 gone; __u32 wide; } core;
    struct packet___new { __u64 added; } core;
    SEC("kymo/a") int a(struct packet *packet) {
        __u64 sum = packet->size + packet->port * 1000ull + packet->parts[1].b * 1000000ull;
        if (__builtin_preserve_field_info(packet->gone, 2)) sum += packet->gone;
        struct packet___new *new = (void *) packet;
        if (__builtin_preserve_field_info(new->added, 2)) sum += new->added * 10000000ull;
        sum += __builtin_preserve_enum_value(*(enum color *) GREEN, 1) * 100000000ull;
        sum += __builtin_preserve_type_info(*(struct packet *) 0, 1) * 1000000000ull;
        sum += packet->wide * 1000000000000ull;
        return sum >> (__builtin_preserve_type_info(*(struct missing *) 0, 0) * 60);
    }
    SEC("kymo/b") int b(struct packet *packet) { return packet->gone; }
    SEC("kymo/c") int c(struct packet *packet) {
        __u64 value = 0;
        __u32 place = __builtin_preserve_field_info(packet->flag, 0), bytes = __builtin_preserve_field_info(packet->flag, 1);
        for (int index = 0; index < bytes && index < 8; index++) value |= (__u64) ((__u8 *) packet)[place + index] << 8 * index;
        value <<= __builtin_preserve_field_info(packet->flag, 4);
        return value >> __builtin_preserve_field_info(packet->flag, 5);
    }
"#;

/// A kernel, or an event, that has the fields at other places.
const TARGET: &str = r#"
    enum color { BLUE, GREEN = 9 };
    struct packet { __u64 before; __u64 wide; struct { __u16 other; __u16 port; }; __u32 flag : 7;
        struct { __u64 x; __u32 b; __u32 a; } parts[3]; __u64 added; __u32 size; };
    struct inner { __u64 x; __u32 b; __u32 a; };
    struct packet packet; enum color color = GREEN;
    SEC("kymo/a") int a(void *context) { return packet.size + color; }
"#;

/// What a program makes of a context, with its fields where a target has them.
fn run(object: &BpfObject, at: usize, target: Option<&BtfTypes>, context: &[u8]) -> Result<u64, String> {
    let maps = object.machine_maps();
    let linked = object.link(&object.programs()[at], target).map_err(|problem| problem.to_string())?;
    let program = object.for_machine(&linked, &maps).map_err(|problem| problem.to_string())?;
    let input = RunInput { context: &mut context.to_vec(), data: &[], moment: &RunMoment::default() };
    object.machine(&maps).expect("it has no maps").run(&program, input).map_err(|fault| fault.to_string())
}

fn put(context: &mut [u8], at: usize, value: &[u8]) {
    context[at..at + value.len()].copy_from_slice(value);
}

#[test]
fn fields_are_found_where_the_target_has_them() {
    let source =
        PROGRAM.replace("return sum >> (__builtin_preserve_type_info(*(struct missing *) 0, 0) * 60);", "return sum;");
    let source =
        source.replace("int a(", "__u64 a(").replace("__builtin_preserve_enum_value(*(enum color *) GREEN, 1)", "5");
    let (Some(bytes), Some(other)) = (object(&source), object(TARGET)) else { return };
    let object = BpfObject::read(&bytes).expect("it is an object");
    let target = BpfObject::read(&other).expect("it is an object").types().expect("it has types").clone();

    let mut here = [0; 64];
    put(&mut here, 0, &7_u32.to_le_bytes());
    put(&mut here, 4, &3_u16.to_le_bytes());
    put(&mut here, 20, &2_u32.to_le_bytes());
    put(&mut here, 32, &9_u64.to_le_bytes());
    put(&mut here, 40, &1_u32.to_le_bytes());
    // It has no `added`, and 48 bytes.
    let expected = 7 + 3_000 + 2_000_000 + 9 + 5 * 100_000_000 + 48 * 1_000_000_000 + 1_000_000_000_000;
    assert_eq!(run(&object, 0, None, &here), Ok(expected));

    let mut there = [0; 96];
    put(&mut there, 8, &1_u64.to_le_bytes());
    put(&mut there, 18, &3_u16.to_le_bytes());
    put(&mut there, 24 + 16 + 8, &2_u32.to_le_bytes());
    put(&mut there, 72, &4_u64.to_le_bytes());
    put(&mut there, 80, &7_u32.to_le_bytes());
    // It has no `gone`, and 88 bytes.
    let expected = 7 + 3_000 + 2_000_000 + 4 * 10_000_000 + 5 * 100_000_000 + 88 * 1_000_000_000 + 1_000_000_000_000;
    assert_eq!(run(&object, 0, Some(&target), &there), Ok(expected));

    let stopped = run(&object, 1, Some(&target), &there).unwrap_err();
    assert!(
        stopped.ends_with("it needs a field or type that is not there: ask with bpf_core_field_exists before"),
        "{stopped}"
    );

    put(&mut here, 24, &[0b1111_1101]);
    assert_eq!(run(&object, 2, None, &here), Ok(5), "3 bits");
    put(&mut there, 20, &[0b1101_0101]);
    assert_eq!(run(&object, 2, Some(&target), &there), Ok(0b101_0101), "7 bits");
}

#[test]
fn fields_of_the_kernel_are_found() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
        println!("NO BTF HERE: not run");
        return;
    };
    let kernel = BtfTypes::read(&bytes).expect("the kernel describes its types");
    let source = r#"
        struct task_struct { __s32 pid; __s32 tgid; char comm[16]; struct task_struct *real_parent; void *no_such_field; } core;
        SEC("kymo/a") int a(struct task_struct *task) {
            __u64 place = __builtin_preserve_field_info(task->tgid, 0);
            return place << 16 | __builtin_preserve_field_info(task->comm, 1) << 8
                | __builtin_preserve_field_info(task->real_parent, 2) << 1 | __builtin_preserve_field_info(task->no_such_field, 2);
        }"#;
    let Some(bytes) = object(&source.replace("int a(", "__u64 a(")) else { return };
    let object = BpfObject::read(&bytes).expect("it is an object");
    let place = {
        let number = (1..kernel.types().len() as u32).find(|number| {
            kernel.name(*number) == "task_struct" && kernel.members(*number).is_some_and(|members| !members.is_empty())
        });
        let members = number.and_then(|number| kernel.members(number)).expect("the kernel has tasks");
        members.iter().find(|member| kernel.member_name(member) == "tgid").expect("they have a tgid").bit_offset / 8
    };
    assert_eq!(run(&object, 0, Some(&kernel), &[]), Ok(u64::from(place) << 16 | 16 << 8 | 1 << 1));
    // A member behind `pid`, and far from where the object has it.
    assert!(place > 100);
}
