//! Fields of events by the names that traces have, as paths through the arguments of tracepoints.
//!
//! The kernel describes the arguments of a tracepoint (`prev`, `next`), and no format of tracefs says how its fields come from
//! them. This table does, for events that people know by their fields. All other events have their arguments.

/// A field: its name, and where its value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownField {
    pub(super) name: &'static str,
    /// A path through the arguments: `rq->__data_len`; of system calls, `regs` is not needed.
    pub(super) path: &'static str,
    pub(super) change: ValueChange,
}

/// How the value of a field is made of the one at its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueChange {
    Same,
    /// Real-time priorities do not count.
    Priority,
    /// Sectors of a number of bytes.
    Sectors,
    /// The state of a thread at its switch, which another argument makes 0.
    State,
    /// The number of a system call, whose name people see.
    Call,
}

use ValueChange::{Call, Priority, Same, Sectors, State};

const fn same(name: &'static str, path: &'static str) -> KnownField {
    KnownField { name, path, change: Same }
}

const fn made(name: &'static str, path: &'static str, change: ValueChange) -> KnownField {
    KnownField { name, path, change }
}

/// A thread that is woken.
const WOKEN: &[KnownField] = &[
    same("comm", "p->comm"),
    same("tid", "p->pid"),
    made("prio", "p->prio", Priority),
    same("target_cpu", "p->thread_info.cpu"),
];
/// A thread that begins or ends.
const THREAD: &[KnownField] = &[same("comm", "p->comm"), same("tid", "p->pid"), made("prio", "p->prio", Priority)];
/// A request of a disk.
const REQUEST: &[KnownField] = &[
    same("sector", "rq->__sector"),
    made("nr_sector", "rq->__data_len", Sectors),
    same("bytes", "rq->__data_len"),
    same("disk", "rq->q->disk->disk_name"),
];
/// A packet.
const PACKET: &[KnownField] = &[same("skbaddr", "skb"), same("len", "skb->len"), same("name", "skb->dev->name")];
/// What a timer was.
const TIMER: &[KnownField] = &[same("function", "timer->function"), same("expires", "timer->expires")];

/// Events, and their fields.
const EVENTS: &[(&[&str], &[KnownField])] = &[
    (
        &["sched_switch"],
        &[
            same("prev_comm", "prev->comm"),
            same("prev_tid", "prev->pid"),
            made("prev_prio", "prev->prio", Priority),
            made("prev_state", "prev_state", State),
            same("next_comm", "next->comm"),
            same("next_tid", "next->pid"),
            made("next_prio", "next->prio", Priority),
        ],
    ),
    (&["sched_waking", "sched_wakeup", "sched_wakeup_new"], WOKEN),
    (&["sched_process_exit", "sched_process_free"], THREAD),
    (
        &["sched_process_fork"],
        &[
            same("parent_comm", "parent->comm"),
            same("parent_tid", "parent->pid"),
            same("parent_pid", "parent->tgid"),
            same("child_comm", "child->comm"),
            same("child_tid", "child->pid"),
            same("child_pid", "child->tgid"),
        ],
    ),
    (&["sched_process_exec"], &[same("filename", "bprm->filename"), same("tid", "p->pid"), same("old_tid", "old_pid")]),
    (
        &["sched_migrate_task"],
        &[
            same("comm", "p->comm"),
            same("tid", "p->pid"),
            made("prio", "p->prio", Priority),
            same("orig_cpu", "p->thread_info.cpu"),
        ],
    ),
    (&["sched_stat_runtime"], &[same("comm", "tsk->comm"), same("tid", "tsk->pid")]),
    (&["irq_handler_entry"], &[same("name", "action->name")]),
    (&["softirq_entry", "softirq_exit", "softirq_raise"], &[same("vec", "vec_nr")]),
    (&["block_rq_issue", "block_rq_insert", "block_rq_requeue", "block_rq_merge"], REQUEST),
    (
        &["block_rq_complete"],
        &[
            same("sector", "rq->__sector"),
            made("nr_sector", "nr_bytes", Sectors),
            same("bytes", "nr_bytes"),
            same("disk", "rq->q->disk->disk_name"),
        ],
    ),
    (&["net_dev_queue", "netif_receive_skb", "netif_rx"], PACKET),
    (&["net_dev_xmit"], &[same("skbaddr", "skb"), same("len", "skb_len"), same("name", "dev->name")]),
    (&["kfree_skb"], &[same("skbaddr", "skb")]),
    (&["consume_skb"], &[same("skbaddr", "skb")]),
    (&["timer_start", "timer_expire_entry", "timer_expire_exit", "timer_cancel"], TIMER),
    (&["hrtimer_expire_entry", "hrtimer_start"], &[same("function", "hrtimer->function")]),
    (&["signal_generate"], &[same("comm", "task->comm"), same("pid", "task->pid"), same("res", "result")]),
    (&["task_rename"], &[same("tid", "task->pid"), same("oldcomm", "task->comm"), same("newcomm", "comm")]),
    (&["task_newtask"], &[same("tid", "task->pid"), same("comm", "task->comm")]),
];

/// System calls: where registers have the number and the arguments.
#[cfg(target_arch = "x86_64")]
mod registers {
    use super::*;
    pub(super) const ENTRY: &[KnownField] = &[
        made("name", "id", Call),
        same("args[0]", "regs->di"),
        same("args[1]", "regs->si"),
        same("args[2]", "regs->dx"),
        same("args[3]", "regs->r10"),
        same("args[4]", "regs->r8"),
        same("args[5]", "regs->r9"),
    ];
    pub(super) const EXIT: &[KnownField] = &[
        made("name", "regs->orig_ax", Call),
        same("id", "regs->orig_ax"),
        same("args[0]", "regs->di"),
        same("args[1]", "regs->si"),
        same("args[2]", "regs->dx"),
        same("args[3]", "regs->r10"),
        same("args[4]", "regs->r8"),
        same("args[5]", "regs->r9"),
    ];
}

#[cfg(target_arch = "aarch64")]
mod registers {
    use super::*;
    pub(super) const ENTRY: &[KnownField] = &[
        made("name", "id", Call),
        same("args[0]", "regs->orig_x0"),
        same("args[1]", "regs->regs[1]"),
        same("args[2]", "regs->regs[2]"),
        same("args[3]", "regs->regs[3]"),
        same("args[4]", "regs->regs[4]"),
        same("args[5]", "regs->regs[5]"),
    ];
    pub(super) const EXIT: &[KnownField] = &[
        made("name", "regs->syscallno", Call),
        same("id", "regs->syscallno"),
        same("args[0]", "regs->orig_x0"),
        same("args[1]", "regs->regs[1]"),
        same("args[2]", "regs->regs[2]"),
        same("args[3]", "regs->regs[3]"),
        same("args[4]", "regs->regs[4]"),
        same("args[5]", "regs->regs[5]"),
    ];
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod registers {
    use super::*;
    pub(super) const ENTRY: &[KnownField] = &[made("name", "id", Call)];
    pub(super) const EXIT: &[KnownField] = &[];
}

/// The fields of an event that the table knows.
pub(super) fn fields_of(event: &str) -> &'static [KnownField] {
    match event {
        "sys_enter" => registers::ENTRY,
        "sys_exit" => registers::EXIT,
        event => EVENTS.iter().find(|(names, _)| names.contains(&event)).map_or(&[], |(_, fields)| fields),
    }
}

/// Whether an argument of a tracepoint is never null, so that a program may look behind it at once. The kernel promises it for
/// these; others are read in a way that finds nothing behind null.
pub(super) fn is_never_null(event: &str, argument: &str) -> bool {
    match argument {
        "regs" => matches!(event, "sys_enter" | "sys_exit"),
        "prev" | "next" => event == "sched_switch",
        "p" => matches!(event, "sched_waking" | "sched_wakeup" | "sched_wakeup_new" | "sched_migrate_task"),
        "rq" => event.starts_with("block_rq_"),
        "skb" => matches!(event, "net_dev_queue" | "netif_receive_skb" | "net_dev_xmit"),
        _ => false,
    }
}
