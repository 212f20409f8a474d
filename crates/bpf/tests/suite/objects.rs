//! The contents of objects: programs, maps, types, and the words in which bad ones are refused.

use kymo_bpf::{AttachPoint, BpfObject, BpfValue, BpfValueType, BtfTypes};

use crate::build::{object, object_with};

const SOURCE: &str = r#"
struct key { __u32 port; char name[12]; };
enum state { IDLE, BUSY = 5, GONE = -1 };
struct value { __u64 count; __s32 last; enum state state : 8; __u32 low : 4; __u32 high : 20; double load[2]; union { __u8 tag; void *where; }; };
struct event { __u64 time; char name[16]; };

struct { __uint(type, HASH); __uint(max_entries, 64); __type(key, struct key); __type(value, struct value); } totals SEC(".maps");
struct { __uint(type, RING); __uint(max_entries, 4096); } events SEC(".maps");
struct { __uint(type, STACK_TRACE); __uint(max_entries, 16); __uint(key_size, 4); __uint(value_size, 1016); } stacks SEC(".maps");

const volatile __u64 limit = 7;
__u32 seen, missed;
static __u16 steps[3] = {1, 2, 3};

SEC("kymo/net:packet_sent")
int on_packet(struct event *event) {
    struct key key = {.port = event->time};
    struct value *value = bpf_map_lookup_elem(&totals, &key);
    if (value && event->time > limit) { value->count++; seen += steps[event->time % 3]; steps[0]++; } else missed++;
    struct event *out = bpf_ringbuf_reserve(&events, sizeof *out, 0);
    if (out) bpf_ringbuf_submit(out, 0);
    return 0;
}

SEC("tp_btf/sched_switch") int on_switch(__u64 *context) { return bpf_get_stackid(context, &stacks, 0); }
SEC("?kprobe/vfs_read") int on_read(void *context) { return 0; }
SEC("mystery") int on_what(void *context) { return 0; }

char _license[] SEC("license") = "Dual MIT/GPL";
"#;

#[test]
fn programs_and_where_they_attach() {
    let Some(bytes) = object(SOURCE) else { return };
    let object = BpfObject::read(&bytes).expect("it is an object");
    let programs: Vec<_> = object.programs().iter().map(|program| (&program.name[..], &program.section[..])).collect();
    assert_eq!(
        programs,
        [
            ("on_packet", "kymo/net:packet_sent"),
            ("on_switch", "tp_btf/sched_switch"),
            ("on_read", "?kprobe/vfs_read"),
            ("on_what", "mystery"),
        ]
    );
    let attach = |at: usize| object.programs()[at].attach.clone();
    assert_eq!(attach(0), AttachPoint::Event("net:packet_sent".to_owned()));
    assert!(matches!(attach(1), AttachPoint::Kernel { target, .. } if target == "sched_switch"));
    assert!(matches!(attach(2), AttachPoint::Kernel { target, .. } if target == "vfs_read"));
    assert_eq!(attach(3), AttachPoint::Unknown);
    assert_eq!(object.license(), Some("Dual MIT/GPL"));
}

#[test]
fn maps_have_the_types_of_the_source() {
    let Some(bytes) = object(SOURCE) else { return };
    let object = BpfObject::read(&bytes).expect("it is an object");
    let map = |name: &str| object.maps().iter().find(|map| map.name == name).unwrap_or_else(|| panic!("no map {name}"));
    let totals = map("totals");
    assert_eq!(
        (totals.type_name(), totals.entries_max, totals.key_bytes, totals.value_bytes),
        ("hash".to_owned(), 64, 16, 40)
    );
    assert_eq!(totals.key.as_ref().map(BpfValueType::name).as_deref(), Some("struct key"));
    let bytes: Vec<u8> = [&8_u32.to_le_bytes()[..], b"eth0\0\0\0\0\0\0\0\0"].concat();
    let members = |value: BpfValue| match value {
        BpfValue::Members(members) => members,
        other => panic!("{other:?}"),
    };
    let key = members(totals.key.as_ref().expect("it has a type").value(&bytes));
    assert_eq!(key, [("port".into(), BpfValue::Integer(8)), ("name".into(), BpfValue::Text("eth0".to_owned()))]);

    let mut bytes = vec![0; 40];
    bytes[0] = 3;
    bytes[8..12].copy_from_slice(&(-2_i32).to_le_bytes());
    bytes[12..16].copy_from_slice(&[5, 0x21, 0x43, 0x05]);
    bytes[16..24].copy_from_slice(&1.5_f64.to_le_bytes());
    bytes[32] = 9;
    let value = members(totals.value.as_ref().expect("it has a type").value(&bytes));
    let values: Vec<&BpfValue> = value.iter().map(|(_, value)| value).collect();
    assert_eq!(values[0], &BpfValue::Integer(3));
    assert_eq!(values[1], &BpfValue::Integer(-2));
    assert_eq!(values[2], &BpfValue::Label(5, Some("BUSY".into())));
    assert_eq!(values[3], &BpfValue::Integer(1), "the low 4 bits of 0x21");
    assert_eq!(values[4], &BpfValue::Integer(0x5432), "20 bits from the high 4 bits of 0x21 on");
    assert_eq!(values[5], &BpfValue::List(vec![BpfValue::Real(1.5), BpfValue::Real(0.0)]));
    let inner = [("tag".into(), BpfValue::Integer(9)), ("where".into(), BpfValue::Integer(9))];
    assert_eq!(values[6], &BpfValue::Members(inner.to_vec()));

    assert_eq!(map("events").value.as_ref().map(BpfValueType::name).as_deref(), Some("struct event"), "by its name");
    let stacks = map("stacks");
    assert_eq!(stacks.definition().unwrap_err(), "of the type stack_trace, which only the kernel has");
}

#[test]
fn variables_are_maps_with_contents() {
    let Some(bytes) = object(SOURCE) else { return };
    let object = BpfObject::read(&bytes).expect("it is an object");
    let variables = object.maps().iter().filter(|map| map.is_variables());
    let shown = variables.map(|map| {
        let value = map.value.as_ref().expect("it has a type").value(map.contents.as_ref().expect("it has contents"));
        format!("{} {}: {value:?}", map.name, if map.is_read_only { "read only" } else { "" })
    });
    let shown: Vec<String> = shown.collect();
    let has = |text: &str| shown.iter().any(|line| line.contains(text));
    assert!(has(r#".rodata read only: Members([("limit", Integer(7))])"#), "{shown:?}");
    assert!(has(r#"("steps", List([Integer(1), Integer(2), Integer(3)]))"#), "{shown:?}");
    assert!(has(r#"("seen", Integer(0))"#) && has(r#"("missed", Integer(0))"#), "{shown:?}");
}

#[test]
fn programs_that_need_the_kernel_are_refused() {
    let Some(bytes) = object(SOURCE) else { return };
    let object = BpfObject::read(&bytes).expect("it is an object");
    let maps = object.machine_maps();
    let linked = object.link(&object.programs()[1], None).expect("it is linked");
    let problem = object.for_machine(&linked, &maps).unwrap_err();
    assert_eq!(problem.to_string(), "it uses map stacks, of the type stack_trace, which only the kernel has");

    let source = r#"extern int CONFIG_HZ SEC(".kconfig"); int other(void);
        SEC("kymo/a") int a(void *context) { return CONFIG_HZ; }
        SEC("kymo/b") int b(void *context) { return bpf_get_stackid(context, context, 0); }
        SEC("kymo/c") int c(void *context) { return other(); }"#;
    let Some(bytes) = crate::build::object(source) else { return };
    let object = BpfObject::read(&bytes).expect("it is an object");
    let maps = object.machine_maps();
    let problem = |at: usize| {
        let linked = object.link(&object.programs()[at], None);
        let problem = linked.and_then(|linked| object.for_machine(&linked, &maps)).unwrap_err().to_string();
        problem.replace(|letter: char| letter.is_ascii_digit(), "#")
    };
    let outside =
        "is outside of the object: a variable or function of the kernel, or another object that should be linked";
    assert_eq!(problem(0), format!("section kymo/a, instruction #: CONFIG_HZ {outside}"));
    assert!(
        problem(1).starts_with(
            "instruction #: it calls bpf_get_stackid (helper function ##), which only the kernel can do ("
        )
    );
    assert!(problem(1).ends_with("return bpf_get_stackid(context, context, #); }`)"), "{}", problem(1));
    assert_eq!(problem(2), format!("section kymo/c, instruction #: other {outside}"));
}

#[test]
fn objects_without_types_have_no_maps_but_programs() {
    let Some(bytes) = object_with(SOURCE, &["-O2"]) else { return };
    let object = BpfObject::read(&bytes).expect("it is an object");
    assert!(object.types().is_none());
    assert_eq!(object.programs().len(), 4);
    let problem = object.link(&object.programs()[0], None).unwrap_err().to_string();
    assert!(problem.contains("no map is at byte 0 of the section with maps"), "{problem}");
}

#[test]
fn bits_of_structures_are_read_one_by_one() {
    let source = r#"struct flags { _Bool first : 1, second : 1, third : 1; _Bool whole; };
        struct { __uint(type, HASH); __uint(max_entries, 4); __type(key, __u32); __type(value, struct flags); } all SEC(".maps");
        SEC("kymo/a") int a(void *context) { __u32 key = 0; return bpf_map_lookup_elem(&all, &key) != 0; }"#;
    let Some(bytes) = object(source) else { return };
    let object = BpfObject::read(&bytes).expect("it is an object");
    let value = object.maps()[0].value.as_ref().expect("it has a type").value(&[0b010, 1]);
    let expected = [("first", false), ("second", true), ("third", false), ("whole", true)];
    assert_eq!(value, BpfValue::Members(expected.map(|(name, bit)| (name.into(), BpfValue::Bool(bit))).to_vec()));
}

#[test]
fn all_sections_together_have_a_limit() {
    let two = r#"char first[160 << 20] SEC(".bss.first"); char second[160 << 20] SEC(".bss.second");"#;
    let program = "SEC(\"kymo/a\") int a(void *context) { return 0; }";
    let Some(bytes) = object_with(&format!("{two}{program}"), &["-O2"]) else { return };
    assert!(bytes.len() < 1 << 20, "zeros take no room in the file");
    let problem = BpfObject::read(&bytes).unwrap_err().to_string();
    let expected =
        "it is damaged: section .bss.second has contents of 167772160 bytes, and all parts may have 268435456 together";
    assert_eq!(problem, expected);
    // Sections that are no variables are left out.
    let mut other = bytes;
    for at in 0..other.len() - 5 {
        if other[at..].starts_with(b".bss.") {
            other[at + 1] = b'x';
        }
    }
    assert_eq!(BpfObject::read(&other).map(|object| object.programs().len()), Ok(1));
}

#[test]
fn names_of_types_have_a_limit() {
    let types = |name: usize| {
        let names = [&[0][..], &vec![b'n'; name], &[0]].concat();
        let head = [0_u32, 24, 0, 16, 16, names.len() as u32];
        // An integer of 4 bytes, whose name is that at byte 1.
        let words = head.into_iter().chain([1, 1 << 24, 4, 32]);
        let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).chain(names).collect();
        bytes[..4].copy_from_slice(&[0x9f, 0xeb, 1, 0]);
        BtfTypes::read(&bytes).expect("they are types")
    };
    assert_eq!(types(512).name(1).len(), 512);
    assert_eq!((types(513).name(1), types(1 << 20).name(1)), ("", ""));
}

#[test]
fn other_files_are_refused() {
    let check = |bytes: &[u8], expected: &str| {
        assert_eq!(BpfObject::read(bytes).map(|_| ()).unwrap_err().to_string(), expected);
    };
    check(b"", "it begins with [], and an object file begins with [7f, 45, 4c, 46] (ELF)");
    let own = std::fs::read(std::env::current_exe().expect("this test runs")).expect("it can be read");
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        check(&own, "it is for X86_64 (machine 62), and not for eBPF: compile it with `clang --target=bpf`");
    }
    if let Some(bytes) = object("int helper(void) { return 0; }") {
        check(
            &bytes,
            "it has no program: programs are functions with `SEC(\"kymo/EVENT\")`, or another section of libbpf",
        );
    }
    if let Some(bytes) = object_with("SEC(\"kymo/a\") int a(void) { return 0; }", &["-O2", "--target=bpfeb"]) {
        check(&bytes, "it is for big-endian machines: compile it with `clang --target=bpfel`");
    }
}
