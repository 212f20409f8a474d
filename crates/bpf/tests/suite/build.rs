//! Objects are compiled by the clang of this machine.

use std::process::Command;

/// The parts of libbpf's headers that the programs need.
const PRELUDE: &str = r#"
typedef unsigned char __u8; typedef unsigned short __u16; typedef unsigned int __u32; typedef int __s32;
typedef unsigned long long __u64; typedef long long __s64;
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define core __attribute__((preserve_access_index))
#define noinline __attribute__((noinline))
enum { HASH = 1, ARRAY = 2, PERF = 4, PERCPU_ARRAY = 6, STACK_TRACE = 7, LRU_HASH = 9, RING = 27 };
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *) 1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *) 2;
static __u64 (*bpf_ktime_get_ns)(void) = (void *) 5;
static long (*bpf_trace_printk)(const char *format, __u32 size, ...) = (void *) 6;
static __u64 (*bpf_get_current_pid_tgid)(void) = (void *) 14;
static long (*bpf_get_stackid)(void *context, void *map, __u64 flags) = (void *) 27;
static long (*bpf_probe_read_str)(void *to, __u32 size, const void *from) = (void *) 45;
static void *(*bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *) 131;
static void (*bpf_ringbuf_submit)(void *record, __u64 flags) = (void *) 132;
static long (*bpf_loop)(__u32 count, void *function, void *argument, __u64 flags) = (void *) 181;
"#;

/// The object of a source; `None`: there is no clang that writes eBPF here, which is said.
pub fn object(source: &str) -> Option<Vec<u8>> {
    object_with(source, &["-O2", "-g"])
}

/// The same with other options.
pub fn object_with(source: &str, options: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (text, built) = (folder.path().join("programs.c"), folder.path().join("programs.o"));
    std::fs::write(&text, PRELUDE.to_owned() + source).expect("there is room for a file");
    let mut clang = Command::new("clang");
    clang.args(["--target=bpf", "-mcpu=v3"]).args(options).arg("-c").arg(&text).arg("-o").arg(&built);
    let output = match clang.output() {
        Ok(output) => output,
        Err(error) => {
            println!("NO CLANG HERE: not run ({error})");
            return None;
        }
    };
    let words = String::from_utf8_lossy(&output.stderr);
    if words.contains("No available targets are compatible") || words.contains("unknown target triple") {
        println!("NO CLANG FOR EBPF HERE: not run");
        return None;
    }
    assert!(output.status.success(), "{words}");
    Some(std::fs::read(&built).expect("clang has written it"))
}
