/* Two programs at all system calls that only read the clock. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 last;

SEC("raw_tp/sys_enter")
int begins(void *context) {
    last = bpf_ktime_get_ns();
    return 0;
}

SEC("raw_tp/sys_exit")
int ends(void *context) {
    last = bpf_ktime_get_ns();
    return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
