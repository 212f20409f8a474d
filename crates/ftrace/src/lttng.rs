//! The table of events and fields of LTTng's kernel tracer: which of them are here, changed or absent, with the reasons.
//!
//! This is the only place that says so. A field of which no row speaks is the same in both: name and type. Tests hold the rows
//! true against descriptions of the kernel and the metadata of traces that LTTng's tracer has recorded.

use std::collections::BTreeSet;

use kymo_format::model::{Dialect, EventRecordClass, FieldKind, display_name};

use crate::listing::{ListedEvent, ListedField};
use crate::shape::ListedType;

/// Where a field of LTTng is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LttngSource {
    /// The kernel's record has it: same name, same type, same value.
    Same,
    /// Newer versions of LTTng have another name for it, which is told instead of a reason.
    Renamed,
    /// Its value or its type is another one than that of the kernel's record, or than LTTng's.
    Derived,
    /// Only a program of eBPF can read it.
    Ebpf,
    /// It is not there.
    Absent,
}

impl LttngSource {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Renamed => "renamed",
            Self::Derived => "derived",
            Self::Ebpf => "ebpf",
            Self::Absent => "absent",
        }
    }
}

/// A row: the first one that fits an event and a field speaks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// A pattern of LTTng's names of events: `*` stands for any letters, `|` stands
    /// between several.
    pub event: &'static str,
    /// A pattern of names of fields; `NAME:TYPE` if LTTng's type has to fit, too, `NAME:TYPE>TYPE` with ours. `-`: the event.
    pub field: &'static str,
    /// Where it is from.
    pub source: LttngSource,
    /// The reason, or the new name.
    pub why: &'static str,
}

const fn row(event: &'static str, field: &'static str, source: LttngSource, why: &'static str) -> TableRow {
    TableRow { event, field, source, why }
}

/// The rows.
pub const ROWS: &[TableRow] = {
    use LttngSource::{Absent, Derived, Ebpf, Renamed, Same};
    &[
        // System calls.
        row(
            "exit_syscall",
            "-",
            Absent,
            "one event for all calls, before LTTng 2.5: now each has its syscall_exit_NAME",
        ),
        row(
            "compat_*",
            "-",
            Ebpf,
            "calls of 32-bit programs: the kernel's tracepoints do not tell them apart, eBPF does",
        ),
        row("sys_*", "-", Renamed, "syscall_entry_*"),
        row(
            "syscall_*_init_module|syscall_*_finit_module|syscall_*_delete_module",
            "-",
            Absent,
            "only in kernels with modules",
        ),
        row("syscall_*_kexec_load", "-", Absent, "only in kernels with CONFIG_KEXEC"),
        row(
            "syscall_*_lookup_dcookie|syscall_*_sysctl|syscall_*_nfsservctl|syscall_*_bdflush|syscall_*_uselib",
            "-",
            Absent,
            "newer kernels have no such call",
        ),
        row(
            "syscall_entry_*16|syscall_entry_fcntl64|syscall_entry_*stat64|syscall_entry_stat|syscall_entry_fstat\
                |syscall_entry_lstat|syscall_entry_fstatat64|syscall_entry_*statfs64|syscall_entry_arm_*|syscall_entry_ipc\
                |syscall_entry_llseek|syscall_entry_mmap2|syscall_entry_mmap_pgoff|syscall_entry_nice|syscall_entry_old*\
                |syscall_entry_send|syscall_entry_sendfile|syscall_entry_sgetmask|syscall_entry_ssetmask\
                |syscall_entry_signal|syscall_entry_sigpending|syscall_entry_sigprocmask|syscall_entry_socketcall\
                |syscall_entry_stime|syscall_entry_sync_file_range2|syscall_entry_uname|syscall_entry_waitpid",
            "-",
            Absent,
            "calls of other machines than x86-64",
        ),
        row("syscall_exit_*", "ret", Same, ""),
        row("syscall_exit_unknown", "id", Same, ""),
        row("syscall_exit_*", "*", Absent, "a result in the program's memory; syscall_entry_NAME has its address"),
        row("syscall_entry_unknown", "args", Derived, "seen in hexadecimal here, as decimal numbers in LTTng"),
        row("syscall_entry_unknown", "id:u32>i32", Derived, "with a sign, as newer versions of LTTng have it"),
        row(
            "syscall_entry_accept*",
            "upeer_addrlen:i32>u64 hex",
            Derived,
            "the address of the number, where LTTng has the number",
        ),
        row("syscall_entry_accept*", "v4addr|v6addr", Ebpf, "a part of the address in the program's memory"),
        row(
            "syscall_entry_connect",
            "family|dport|v4addr|v6addr",
            Ebpf,
            "a part of the address in the program's memory",
        ),
        row("syscall_entry_setns", "nstype", Renamed, "flags"),
        row("syscall_entry_vmsplice", "iov", Renamed, "uiov"),
        row("syscall_entry_lseek", "origin", Renamed, "whence"),
        row("syscall_entry_rt_sigpending", "set", Renamed, "uset"),
        row("syscall_entry_getres*", "*id", Renamed, "*idp"),
        row(
            "syscall_entry_*",
            "*:text",
            Ebpf,
            "text in the program's memory; where no eBPF reads it, NAME_address has its place",
        ),
        row("syscall_entry_*", "mode:*32>u16", Derived, "16 bits since Linux 3.3"),
        row("syscall_entry_poll", "timeout_msecs:i64>i32", Derived, "32 bits since Linux 3.3"),
        row(
            "syscall_entry_*",
            "*addr:u64 hex>u64",
            Derived,
            "seen as a decimal number, as newer versions of LTTng have it",
        ),
        row(
            "syscall_entry_*",
            "addr*len:i32 hex>i32",
            Derived,
            "seen as a decimal number, as newer versions of LTTng have it",
        ),
        // Threads.
        row(
            "sched_process_fork",
            "parent_pid",
            Derived,
            "joined with task_newtask; -1 if the parent's process is not known",
        ),
        row(
            "sched_process_fork",
            "child_pid",
            Derived,
            "joined with task_newtask; -1 if the parent's process is not known",
        ),
        row("sched_process_fork", "vtids", Absent, "the kernel's event has no numbers in other namespaces"),
        row("sched_process_fork", "parent_ns_inum|child_ns_inum", Absent, "the kernel's event has no namespaces"),
        row("sched_*", "*prio", Derived, "without the 100 real-time priorities, as LTTng counts"),
        row(
            "sched_switch",
            "prev_state",
            Derived,
            "0 for a preempted thread, 2 for an idle one of the kernel; prev_state_kernel has the kernel's number",
        ),
        row("sched_wakeup*", "success", Absent, "newer kernels have no such field"),
        row("sched_stat_runtime", "vruntime", Absent, "newer kernels have no such field"),
        row(
            "sched_stat_wait|sched_stat_sleep|sched_stat_iowait|sched_stat_blocked",
            "-",
            Absent,
            "only in kernels with CONFIG_SCHEDSTATS",
        ),
        row("sched_ttwu", "-", Absent, "an event of a changed kernel"),
        row("signal_generate", "comm:i8[16]", Derived, "a text, as newer versions of LTTng have it"),
        row("signal_lose_info|signal_overflow_fail", "-", Absent, "signal_generate has the result since Linux 3.4"),
        // Disks.
        row("block_*", "rwbs", Derived, "LTTng's bits, from the kernel's letters"),
        row("block_*", "tid", Derived, "the thread that runs"),
        row("block_rq_*", "cmd", Derived, "the kernel gives a text, which is empty since Linux 4.12"),
        row("block_rq_*", "errors", Absent, "newer kernels have no such field; block_rq_complete has `error`"),
        row("block_bio_bounce|block_rq_abort|block_sleeprq", "-", Absent, "newer kernels have no such event"),
        row("ext3_*|jbd_*", "-", Absent, "newer kernels have ext4 and jbd2 alone"),
        row("scsi_*", "-", Absent, "only in kernels with CONFIG_SCSI"),
        // Memory.
        row("kmem_mm_page_*", "page", Absent, "newer kernels have the number of the page: pfn"),
        row("kmem_mm_page_free_batched", "cold", Absent, "newer kernels have no such field"),
        row(
            "kmem_cache_alloc_node|kmem_kmalloc_node",
            "-",
            Absent,
            "kmem_cache_alloc and kmem_kmalloc have the node since Linux 6.1",
        ),
        row("mm_vmscan_wakeup_kswapd", "zid", Same, ""),
        row(
            "mm_vmscan_*",
            "may_writepage|isolate_mode|file|zid|lru_pgs|pgs_scanned",
            Absent,
            "newer kernels have no such field",
        ),
        row("mm_vmscan_memcg_isolate|mm_vmscan_writepage", "-", Absent, "newer kernels have no such event"),
        // Networks.
        row("udp_fail_queue_rcv_skb", "lport", Absent, "newer kernels have sport and dport"),
        row("sock_exceed_buf_limit", "name", Derived, "a text of 32 bytes"),
        row("inet_sock_local_*", "-", Absent, "an event of a changed kernel"),
        row("rpc_*", "-", Absent, "only in kernels with CONFIG_SUNRPC"),
        // Time, power, devices.
        row("timer_itimer_state", "*_usec", Absent, "newer kernels have nanoseconds"),
        row("timer_hrtimer_init", "-", Absent, "newer kernels have hrtimer_setup"),
        row(
            "power_clock_*|power_domain_target|power_machine_suspend",
            "-",
            Absent,
            "newer kernels have events of clk, and power:suspend_resume",
        ),
        row("gpio_*|regmap_*|regcache_*|regulator_*|snd_soc_*", "-", Absent, "only in kernels with such devices"),
        row("random_*", "-", Absent, "newer kernels have no such event"),
        row("kvm_async_pf_completed", "pfn", Absent, "newer kernels have no such field"),
        row("kvm_age_page|kvm_async_pf_doublefault", "-", Absent, "newer kernels have no such event"),
        // The state of the system, from /proc.
        row(
            "lttng_statedump_process_state",
            "vtid|vpid|vppid|ns_level|ns_inum",
            Absent,
            "lttng_statedump_process_pid_ns has it, as in newer versions of LTTng",
        ),
        row("lttng_statedump_file_descriptor", "flags|fmode", Absent, "it is not read"),
        row("lttng_statedump_network_interface", "address_ipv4", Absent, "it is not read"),
        // Others.
        row("module_*", "-", Absent, "only in kernels with modules"),
        row("workqueue_queue_work", "req_cpu:u32>i32", Derived, "with a sign, as newer versions of LTTng have it"),
        row("rcu_utilization", "s", Derived, "the address of the text"),
        row("printk_console", "msg", Derived, "a text up to a zero byte, without its length"),
        row("lttng_logger", "-", Absent, "texts that programs write to LTTng's own file"),
        row("*", "*:u64>u64 hex", Derived, "an address: seen in hexadecimal here, as a decimal number in LTTng"),
        // Names of older versions of LTTng.
        row("hrtimer_*", "-", Renamed, "timer_hrtimer_*"),
        row("itimer_*", "-", Renamed, "timer_itimer_*"),
        row("softirq_*", "-", Renamed, "irq_softirq_*"),
        row("mm_page_*", "-", Renamed, "kmem_mm_page_*"),
        row("mm_compaction_*", "-", Renamed, "compaction_*"),
        row("mm_shrink_slab_*", "-", Renamed, "mm_vmscan_shrink_slab_*"),
        row("netif_*", "-", Renamed, "net_if_*"),
        row("console", "-", Renamed, "printk_console"),
    ]
};

/// The first row about a field of LTTng, if its type and ours are these.
#[must_use]
pub fn row_of(event: &str, field: &str, shape: Option<&ListedType>, ours: Option<&ListedType>) -> Option<usize> {
    ROWS.iter().position(|row| fits(row.event, event) && field_fits(row.field, field, shape, ours))
}

/// The first row about an event.
#[must_use]
pub fn row_of_event(event: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.field == "-" && fits(row.event, event))
}

fn field_fits(pattern: &str, field: &str, shape: Option<&ListedType>, ours: Option<&ListedType>) -> bool {
    let (name, types) = pattern.split_once(':').map_or((pattern, None), |(name, types)| (name, Some(types)));
    let Some(types) = types else { return name != "-" && fits(name, field) };
    let (theirs, wanted) = types.split_once('>').map_or((types, None), |(theirs, ours)| (theirs, Some(ours)));
    let is = |pattern: &str, shape: Option<&ListedType>| shape.is_some_and(|shape| fits(pattern, &shape.to_string()));
    fits(name, field) && is(theirs, shape) && wanted.is_none_or(|wanted| is(wanted, ours))
}

/// Whether one of the patterns between `|`, in which each `*` stands for any letters, fits a text.
fn fits(patterns: &str, text: &str) -> bool {
    patterns.split('|').any(|pattern| one_fits(pattern, text))
}

fn one_fits(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(begin) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or("");
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.len() >= last.len() && text.ends_with(last)
}

/// An event as a trace of LTTng describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LttngEvent {
    /// Its name.
    pub name: String,
    /// Names and types of its fields, lengths of sequences left out.
    pub fields: Vec<(String, ListedType)>,
}

impl LttngEvent {
    /// The event that a trace of LTTng describes.
    #[must_use]
    pub fn of(class: &EventRecordClass) -> Self {
        let members = match class.payload.as_ref().map(|payload| &payload.kind) {
            Some(FieldKind::Structure(structure)) => &structure.members[..],
            _ => &[],
        };
        let name = |name: &str| display_name(Dialect::Ctf1, name).to_owned();
        let is_length = |name: &str| name.starts_with('_') && name.ends_with("_length");
        let fields = members.iter().map(|member| (name(&member.name), ListedType::of(&member.class)));
        Self {
            name: class.name.clone().unwrap_or_default(),
            fields: fields.filter(|(name, _)| !is_length(name)).collect(),
        }
    }
}

/// Compares an event of LTTng with ours of the same name, and both with the table. Returns untrue claims, in sentences; rows
/// that were needed are added to `used`. `has_short_words`: the machine has words of 32 bits.
pub fn compare<'o>(
    event: &LttngEvent,
    ours: impl Fn(&str) -> Option<&'o ListedEvent>,
    has_short_words: bool,
    used: &mut BTreeSet<usize>,
) -> Vec<String> {
    let mut name = event.name.clone();
    let mut about = row_of_event(&name);
    if let Some(row) = about.filter(|row| ROWS[*row].source == LttngSource::Renamed) {
        used.insert(row);
        name = renamed(&ROWS[row], &name);
        about = row_of_event(&name);
    }
    let ours = ours(&name);
    match (ours, about.map(|row| (row, ROWS[row].source))) {
        (None, Some((row, LttngSource::Ebpf | LttngSource::Absent))) => {
            used.insert(row);
            Vec::new()
        }
        (None, _) => vec![format!("{name}: LTTng has it, it is not here, and no row says so")],
        (Some(_), Some((row, _))) => vec![format!("{name}: it is here, but a row says `{}`", ROWS[row].why)],
        (Some(ours), None) => {
            let fields = event.fields.iter();
            fields.filter_map(|(field, shape)| of_field(ours, field, shape, has_short_words, used)).collect()
        }
    }
}

/// An untrue claim about a field.
fn of_field(
    event: &ListedEvent,
    field: &str,
    shape: &ListedType,
    has_short_words: bool,
    used: &mut BTreeSet<usize>,
) -> Option<String> {
    let find = |name: &str| event.fields.iter().find(|ours| ours.name == name);
    let ours = find(field);
    // A number of one word is as wide as the machine's words.
    let widened = |ours: Option<&ListedField>| match ours {
        Some(ours) if has_short_words => shape.as_wide_as(&ours.shape),
        _ => shape.clone(),
    };
    let theirs = widened(ours);
    let row = row_of(&event.name, field, Some(&theirs), ours.map(|ours| &ours.shape));
    used.extend(row);
    let (source, why) = row.map_or((LttngSource::Same, ""), |row| (ROWS[row].source, ROWS[row].why));
    if let (LttngSource::Renamed, Some(row)) = (source, row) {
        return of_field(event, &renamed(&ROWS[row], field), shape, has_short_words, used);
    }
    let at = format!("{}.{field}: LTTng has {shape}", event.name);
    match (source, ours) {
        (LttngSource::Same, None) => Some(format!("{at}; it is not here, and no row says so")),
        (LttngSource::Same, Some(ours)) if ours.shape != theirs => Some(format!("{at}, here it is {}", ours.shape)),
        (LttngSource::Same, Some(ours)) if ours.is_converted => Some(format!("{at}; here it is converted")),
        (LttngSource::Derived, None) => Some(format!("{at}; it is not here, but a row says `{why}`")),
        (LttngSource::Derived, Some(ours)) if ours.shape == theirs && !ours.is_converted => {
            Some(format!("{at}; it is the same here, but a row says `{why}`"))
        }
        (LttngSource::Ebpf | LttngSource::Absent, Some(_)) => Some(format!("{at}; it is here, but a row says `{why}`")),
        _ => None,
    }
}

/// The new name of something that a row renames; the part that `*` stands for stays.
fn renamed(row: &TableRow, name: &str) -> String {
    let pattern = if row.field == "-" { row.event } else { row.field.split(':').next().unwrap_or("") };
    let kept = pattern.split_once('*').and_then(|(begin, end)| name.strip_prefix(begin)?.strip_suffix(end));
    row.why.replace('*', kept.unwrap_or(""))
}
