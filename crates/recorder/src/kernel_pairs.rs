//! Facts about the kernel's events before there is any: which ones begin and end one thing, the fields that both have in common, and other
//! words that people have for them.

use kymo_filter::nearest;
use kymo_ftrace::call_names;

use crate::rule::{KernelTest, KeyField, RuleOptions, RuleTest};

/// All system calls.
pub(crate) const CALLS: &str = "syscalls";

/// An event that ends something, those that begin it, and the key of both, which is not the thread.
struct KernelPair {
    end: &'static str,
    begins: &'static [&'static str],
    key: &'static str,
    /// The reason, which follows "both of them".
    why: &'static str,
}

const OTHER_THREAD: &str = "are mostly of different threads";
const ANY_THREAD: &str = "interrupt any thread, and the idle threads of all CPUs have one number";

const fn pair(end: &'static str, begins: &'static [&'static str], key: &'static str, why: &'static str) -> KernelPair {
    KernelPair { end, begins, key, why }
}

const PAIRS: [KernelPair; 13] = [
    pair("block_rq_complete", &["block_rq_issue", "block_rq_insert"], "rq", OTHER_THREAD),
    pair("block_rq_issue", &["block_rq_insert"], "rq", OTHER_THREAD),
    pair("irq_handler_exit", &["irq_handler_entry"], "cpu_id", ANY_THREAD),
    pair("softirq_exit", &["softirq_entry"], "cpu_id,vec_nr", ANY_THREAD),
    pair("softirq_entry", &["softirq_raise"], "cpu_id,vec_nr", ANY_THREAD),
    pair(
        "workqueue_execute_end",
        &["workqueue_execute_start"],
        "work",
        "are of a thread that does other work between them, too",
    ),
    pair("workqueue_execute_start", &["workqueue_queue_work", "workqueue_activate_work"], "work", OTHER_THREAD),
    pair("hrtimer_expire_exit", &["hrtimer_expire_entry"], "hrtimer", ANY_THREAD),
    pair("hrtimer_expire_entry", &["hrtimer_start"], "hrtimer", OTHER_THREAD),
    pair("timer_expire_exit", &["timer_expire_entry"], "timer", ANY_THREAD),
    pair("timer_expire_entry", &["timer_start"], "timer", OTHER_THREAD),
    pair(
        "io_uring_complete",
        &["io_uring_submit_req", "io_uring_submit_sqe", "io_uring_queue_async_work"],
        "req",
        OTHER_THREAD,
    ),
    pair("sched_switch", &["sched_waking", "sched_wakeup", "sched_wakeup_new"], "next_tid=tid", OTHER_THREAD),
];

/// Subsystems whose events people know by name.
const SYSTEMS: [&str; 18] = [
    "block",
    "io_uring",
    "irq",
    "kmem",
    "lock",
    "napi",
    "net",
    "raw_syscalls",
    "sched",
    "signal",
    "skb",
    "sock",
    "syscalls",
    "task",
    "tcp",
    "timer",
    "workqueue",
    "writeback",
];

/// Whether a pattern is most likely one of the kernel's events.
pub(crate) fn is_of_kernel(pattern: &str) -> bool {
    pattern.split_once(':').is_some_and(|(system, _)| SYSTEMS.contains(&system))
}

fn bare(event: &str) -> &str {
    event.rsplit(':').next().unwrap_or(event)
}

fn pair_of(event: &str) -> Option<&'static KernelPair> {
    PAIRS.iter().find(|pair| pair.end == bare(event))
}

/// The name of the system call that a word means: it, or an event of it alone.
pub(crate) fn call_of(word: &str) -> Option<&'static str> {
    const BEGINS: [&str; 7] = [
        "syscall_entry_",
        "syscall_exit_",
        "sys_enter_",
        "sys_exit_",
        "syscalls:sys_enter_",
        "syscalls:sys_exit_",
        "sys_",
    ];
    // The event `sys_exit` is not that of the call `exit` alone.
    if word == "sys_exit" {
        return None;
    }
    let calls = call_names();
    let mut names = BEGINS.iter().filter_map(|begin| word.strip_prefix(begin)).chain([word]);
    names.find_map(|name| calls.iter().find(|(_, known)| *known == name).map(|(_, name)| *name))
}

/// How to write a rule about the times of these events, where it does not tell the event that begins.
pub(crate) fn since_help(events: &[String], limit: &str) -> Option<String> {
    let [name] = events else { return None };
    if let Some(call) = call_of(name) {
        return Some(format!("`{CALLS} over {limit} when name == \"{call}\"`"));
    }
    if let Some(pair) = pair_of(name) {
        return Some(format!("`{name} over {limit} since {} by {}`", pair.begins[0], pair.key));
    }
    let near = nearest(name, [CALLS]);
    near.first().map(|near| format!("did you mean `{near}`?"))
}

impl RuleOptions {
    /// The fault of a rule that compares threads, though its ends come in others than their begins, in a sentence without a full stop.
    #[must_use]
    pub fn key_note(&self) -> Option<String> {
        let (begins, ends) = match &self.asks.test {
            RuleTest::Over { since, .. } => (since, &self.events),
            RuleTest::OfKernel { test: KernelTest::Between { begin, end, .. }, .. } => (begin, end),
            _ => return None,
        };
        if self.asks.keys != [KeyField::Thread] {
            return None;
        }
        let of = |end: &String| {
            let pair = pair_of(end)?;
            let begin = begins.iter().find(|begin| pair.begins.contains(&bare(begin)))?;
            let (rule, KernelPair { key, why, .. }) = (&self.name, pair);
            Some(format!(
                "rule `{rule}` compares threads, and `{begin}` and `{end}` {why}: `by {key}` tells which belong together"
            ))
        };
        ends.iter().find_map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_calls_are_known() {
        let words = [
            "openat",
            "sys_enter_openat",
            "syscall_exit_openat",
            "sys_exit",
            "sys_enter",
            "raw_syscalls:sys_exit",
            "kmalloc",
        ];
        let known = Some("openat");
        assert_eq!(words.map(call_of), [known, known, known, None, None, None, None]);
    }

    #[test]
    fn rules_by_thread_about_other_things_are_told() {
        let note = |text: &str| RuleOptions::parse_of_kernel(&[text.to_owned()]).expect("it is one")[0].key_note();
        assert_eq!(
            note("disk: block:block_rq_complete over 5ms since block_rq_issue").as_deref(),
            Some(
                "rule `disk` compares threads, and `block_rq_issue` and `block:block_rq_complete` are mostly of different threads: \
                 `by rq` tells which belong together"
            )
        );
        assert!(
            note("kmalloc between irq_handler_entry and irq_handler_exit")
                .is_some_and(|note| note.contains("`by cpu_id`"))
        );
        for fine in [
            "syscalls over 5ms",
            "block_rq_complete over 5ms since block_rq_issue by rq",
            "a over 5ms since b",
            "sched_waking when tid == 3",
        ] {
            assert_eq!(note(fine), None, "{fine}");
        }
    }
}
