//! The names of the kernel's events and fields in LTTng, and which values it encodes otherwise.
//!
//! | LTTng | here |
//! |---|---|
//! | names of events and fields | the same, by the rules of this module |
//! | priorities | without the 100 real-time priorities, as LTTng counts them |
//! | `prev_state` | as LTTng had it when analyses learned it: a preempted thread is in state 0, an idle one of the kernel in 2; `prev_state_kernel` has the kernel's own number |
//! | `rwbs` | the bits that its letters mean |
//! | `parent_pid`, `child_pid` of forks | joined with `task_newtask` |
//! | heads of packets in `net_*` | absent |

/// How a field's value is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldMaking {
    /// As it is.
    Same,
    /// A priority, of which LTTng subtracts this.
    Priority,
    /// The state of a thread that no longer runs.
    State,
    /// Letters that mean bits.
    Letters,
    /// The address of code.
    Code,
    /// The kernel's flags for memory, 32 bits that newer kernels record as 64.
    MemoryFlags,
}

impl FieldMaking {
    /// The value is another one than the kernel's.
    pub(crate) fn changes_value(self) -> bool {
        matches!(self, Self::Priority | Self::State | Self::Letters)
    }
}

/// Prefixes that LTTng puts before names of a subsystem's events. Those that have it stay as they are.
const PREFIXES: [(&str, &[&str], &str); 15] = [
    ("irq", &["softirq_"], "irq_"),
    ("timer", &["hrtimer_", "itimer_"], "timer_"),
    ("kmem", &["kmalloc", "kfree", "mm_page_"], "kmem_"),
    ("power", &["cpu_idle", "cpu_frequency", "machine_suspend", "clock_", "wakeup_source_"], "power_"),
    ("irq_vectors", &[""], "x86_irq_vectors_"),
    ("exceptions", &[""], "x86_exceptions_"),
    ("preemptirq", &["irq_", "preempt_"], "preemptirq_"),
    ("printk", &["console"], "printk_"),
    ("random", &[""], "random_"),
    ("asoc", &["snd_soc_"], "asoc_"),
    ("net", &["napi_gro_"], "net_"),
    ("writeback", &["balance_dirty_pages", "bdi_dirty_ratelimit", "global_dirty_state", "wbc_"], "writeback_"),
    ("btrfs", &["add_delayed_", "run_delayed_"], "btrfs_"),
    ("kvm", &["vcpu_match_mmio"], "kvm_x86_"),
    ("kvmmmu", &["fast_page_fault", "handle_mmio_", "mark_mmio_", "check_mmio_"], "kvm_mmu_"),
];

/// Other names that LTTng changes, with the part that it replaces.
const RENAMED: [(&str, &str, &str); 8] = [
    ("net", "netif_", "net_if_"),
    ("skb", "kfree_skb", "skb_kfree"),
    ("skb", "consume_skb", "skb_consume"),
    ("kvm", "kvm_", "kvm_x86_"),
    ("vmscan", "mm_shrink_slab_", "mm_vmscan_shrink_slab_"),
    ("writeback", "folio_wait_writeback", "writeback_folio_wait"),
    ("compaction", "mm_compaction_isolate_", "compaction_isolate_"),
    ("compaction", "mm_compaction_migratepages", "compaction_migratepages"),
];

/// Events of `kvm` that all architectures have: they keep their names.
const OF_ALL_MACHINES: [&str; 14] = [
    "kvm_userspace_exit",
    "kvm_vcpu_wakeup",
    "kvm_set_irq",
    "kvm_ioapic_",
    "kvm_msi_set_irq",
    "kvm_ack_irq",
    "kvm_mmio",
    "kvm_fpu",
    "kvm_try_async_get_page",
    "kvm_async_pf_",
    "kvm_halt_poll_ns",
    "kvm_dirty_ring_",
    "kvm_unmap_hva_range",
    "kvm_age_",
];

/// Fields of `sched` with a thread's number: what the kernel calls a pid.
const THREADS: [(&str, &str); 6] = [
    ("pid", "tid"),
    ("prev_pid", "prev_tid"),
    ("next_pid", "next_tid"),
    ("parent_pid", "parent_tid"),
    ("child_pid", "child_tid"),
    ("old_pid", "old_tid"),
];

const PRIORITIES: [&str; 5] = ["prio", "prev_prio", "next_prio", "oldprio", "newprio"];

/// Subsystems of the kernel whose events LTTng has, or some of them.
const SYSTEMS: [&str; 38] = [
    "9p",
    "asoc",
    "block",
    "btrfs",
    "compaction",
    "dma_fence",
    "exceptions",
    "ext3",
    "ext4",
    "gpio",
    "i2c",
    "irq",
    "irq_vectors",
    "jbd",
    "jbd2",
    "kmem",
    "kvm",
    "kvmmmu",
    "lock",
    "module",
    "napi",
    "net",
    "power",
    "preemptirq",
    "printk",
    "random",
    "raw_syscalls",
    "rcu",
    "regmap",
    "regulator",
    "rpm",
    "sched",
    "scsi",
    "signal",
    "skb",
    "sock",
    "sunrpc",
    "syscalls",
];
const MORE_SYSTEMS: [&str; 6] = ["timer", "udp", "v4l2", "vmscan", "workqueue", "writeback"];

/// Whether LTTng has events of a subsystem: readers know their fields as LTTng has them.
#[must_use]
pub fn has_system(system: &str) -> bool {
    SYSTEMS.contains(&system) || MORE_SYSTEMS.contains(&system)
}

/// LTTng's name of an event.
///
/// ```
/// assert_eq!(kymo_ftrace::event_name("irq", "softirq_entry"), "irq_softirq_entry");
/// assert_eq!(kymo_ftrace::event_name("sched", "sched_switch"), "sched_switch");
/// ```
#[must_use]
pub fn event_name(system: &str, name: &str) -> String {
    let is_its = |(of, begins, prefix): &&(&str, &[&str], &str)| {
        *of == system && !name.starts_with(prefix) && begins.iter().any(|begin| name.starts_with(begin))
    };
    if let Some((_, _, prefix)) = PREFIXES.iter().find(is_its) {
        return format!("{prefix}{name}");
    }
    let is_common = system == "kvm" && OF_ALL_MACHINES.iter().any(|begin| name.starts_with(begin));
    for (of, old, new) in RENAMED {
        if of == system
            && !is_common
            && !name.starts_with(new)
            && let Some(rest) = name.strip_prefix(old)
        {
            return format!("{new}{rest}");
        }
    }
    name.to_owned()
}

/// LTTng's name of a field, and how its value is made.
pub(crate) fn field_name<'a>(system: &str, name: &'a str) -> (&'a str, FieldMaking) {
    match system {
        "sched" | "task" => {
            if PRIORITIES.contains(&name) {
                return (name, FieldMaking::Priority);
            }
            if name == "prev_state" {
                return (name, FieldMaking::State);
            }
            let thread = THREADS.iter().find(|(kernel, _)| *kernel == name);
            (thread.map_or(name, |(_, ours)| ours), FieldMaking::Same)
        }
        "block" if name == "rwbs" => (name, FieldMaking::Letters),
        "kmem" if name == "call_site" => (name, FieldMaking::Code),
        "kmem" | "vmscan" | "compaction" if name == "gfp_flags" => (name, FieldMaking::MemoryFlags),
        _ => (name, FieldMaking::Same),
    }
}

/// The state of a thread that no longer runs, as LTTng tells it, from the kernel's number.
#[inline]
pub(crate) fn thread_state(kernel: i64) -> i64 {
    const IDLE: i64 = 0x80;
    const PREEMPTED: i64 = 0x100;
    const UNINTERRUPTIBLE: i64 = 2;
    match kernel {
        PREEMPTED => 0,
        IDLE => UNINTERRUPTIBLE,
        other => other,
    }
}

/// The bits that the letters of a request mean.
pub(crate) fn request_bits(letters: &[u8]) -> u32 {
    const WRITE: u32 = 1;
    const DISCARD: u32 = 1 << 1;
    const READ: u32 = 1 << 2;
    const AHEAD: u32 = 1 << 3;
    const SYNC: u32 = 1 << 5;
    const META: u32 = 1 << 6;
    const SECURE: u32 = 1 << 7;
    const FLUSH: u32 = 1 << 8;
    const FUA: u32 = 1 << 9;
    const PREFLUSH: u32 = 1 << 10;
    let (mut bits, mut has_operation) = (0, false);
    let mut letters = letters.iter().copied().take_while(|letter| *letter != 0).peekable();
    while let Some(letter) = letters.next() {
        bits |= match letter {
            b'W' => WRITE,
            b'D' if letters.next_if_eq(&b'E').is_some() => DISCARD | SECURE,
            b'D' => DISCARD,
            b'R' => READ,
            b'F' if has_operation => FUA,
            // A flush before the operation that follows, or the operation itself.
            b'F' if letters.peek().is_some_and(|next| is_operation(*next)) => {
                bits |= PREFLUSH;
                continue;
            }
            b'F' => FLUSH,
            b'A' => AHEAD,
            b'S' => SYNC,
            b'M' => META,
            _ => 0,
        };
        has_operation = true;
    }
    bits
}

fn is_operation(letter: u8) -> bool {
    matches!(letter, b'W' | b'D' | b'F' | b'R' | b'N' | b'Z')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_lttng() {
        let names = [
            ("irq", "irq_handler_entry", "irq_handler_entry"),
            ("irq", "softirq_raise", "irq_softirq_raise"),
            ("timer", "hrtimer_start", "timer_hrtimer_start"),
            ("timer", "timer_start", "timer_start"),
            ("kmem", "kmem_cache_alloc", "kmem_cache_alloc"),
            ("kmem", "kmalloc", "kmem_kmalloc"),
            ("net", "netif_receive_skb", "net_if_receive_skb"),
            ("net", "napi_gro_receive_entry", "net_napi_gro_receive_entry"),
            ("net", "net_dev_queue", "net_dev_queue"),
            ("power", "cpu_idle", "power_cpu_idle"),
            ("skb", "kfree_skb", "skb_kfree"),
            ("irq_vectors", "local_timer_entry", "x86_irq_vectors_local_timer_entry"),
            ("exceptions", "page_fault_user", "x86_exceptions_page_fault_user"),
            ("vmscan", "mm_shrink_slab_start", "mm_vmscan_shrink_slab_start"),
            ("vmscan", "mm_vmscan_kswapd_wake", "mm_vmscan_kswapd_wake"),
            ("writeback", "balance_dirty_pages", "writeback_balance_dirty_pages"),
            ("writeback", "writeback_start", "writeback_start"),
            ("writeback", "folio_wait_writeback", "writeback_folio_wait"),
            ("btrfs", "run_delayed_ref_head", "btrfs_run_delayed_ref_head"),
            ("compaction", "mm_compaction_isolate_freepages", "compaction_isolate_freepages"),
            ("compaction", "mm_compaction_begin", "mm_compaction_begin"),
            ("kvm", "kvm_exit", "kvm_x86_exit"),
            ("kvm", "vcpu_match_mmio", "kvm_x86_vcpu_match_mmio"),
            ("kvm", "kvm_userspace_exit", "kvm_userspace_exit"),
            ("kvmmmu", "mark_mmio_spte", "kvm_mmu_mark_mmio_spte"),
            ("kvmmmu", "kvm_mmu_sync_page", "kvm_mmu_sync_page"),
        ];
        for (system, kernel, lttng) in names {
            assert_eq!(event_name(system, kernel), lttng);
        }
    }

    #[test]
    fn letters_of_requests() {
        let of = |letters: &str| request_bits(letters.as_bytes());
        assert_eq!(of("R"), 1 << 2);
        assert_eq!(of("WS\0\0"), 1 | 1 << 5);
        assert_eq!(of("RA"), 1 << 2 | 1 << 3);
        assert_eq!(of("FF"), 1 << 8 | 1 << 10);
        assert_eq!(of("FS"), 1 << 8 | 1 << 5);
        assert_eq!(of("F"), 1 << 8);
        assert_eq!(of("FWFSM"), 1 << 10 | 1 | 1 << 9 | 1 << 5 | 1 << 6);
        assert_eq!(of("DE"), 1 << 1 | 1 << 7);
        assert_eq!(of("N"), 0);
    }
}
