//! Ready choices of the kernel's events: patterns of names, by a word.

/// Events for a purpose.
#[derive(Clone, Copy, Debug)]
pub struct KernelPreset {
    /// Its name.
    pub name: &'static str,
    /// The facts that its events tell.
    pub sentence: &'static str,
    /// Patterns of events, separated by spaces.
    patterns: &'static str,
}

/// Events that tell which process a thread belongs to, and its name: with probes and nothing else.
pub const PROGRAMS: &str =
    "?sched:sched_process_fork ?sched:sched_process_exec ?sched:sched_process_exit ?task:task_rename";

/// Ready choices of events.
pub const PRESETS: [KernelPreset; 6] = [
    KernelPreset {
        name: "waiting",
        sentence: "the reasons of waiting: sched, syscalls, interrupts, timers, disks, networks, locks",
        patterns: "sched syscalls irq ?block:block_rq_insert ?block:block_rq_issue ?block:block_rq_complete \
            ?workqueue:workqueue_queue_work ?workqueue:workqueue_execute_* ?timer:hrtimer_expire_* ?timer:timer_expire_* \
            ?net:net_dev_queue ?net:net_dev_xmit ?net:netif_receive_skb ?napi:napi_poll ?io_uring:* ?lock:contention_* \
            ?signal:signal_generate ?signal:signal_deliver",
    },
    KernelPreset {
        name: "sched",
        sentence: "which thread runs where, and which one wakes it",
        patterns: "?sched:sched_switch ?sched:sched_waking ?sched:sched_wakeup ?sched:sched_wakeup_new ?sched:sched_migrate_task \
            ?sched:sched_process_fork ?sched:sched_process_exec ?sched:sched_process_exit ?sched:sched_process_free \
            ?sched:sched_pi_setprio ?task:task_rename",
    },
    KernelPreset {
        name: "syscalls",
        sentence: "system calls with their arguments and results",
        patterns: "?raw_syscalls:sys_enter ?raw_syscalls:sys_exit",
    },
    KernelPreset {
        name: "irq",
        sentence: "interrupts and their deferred work",
        patterns: "?irq:irq_handler_* ?irq:softirq_*",
    },
    KernelPreset {
        name: "io",
        sentence: "system calls, disks and io_uring",
        patterns: "sched syscalls ?block:* ?io_uring:*",
    },
    KernelPreset {
        name: "net",
        sentence: "packets, sockets and TCP",
        patterns: "sched ?net:* ?napi:* ?skb:* ?tcp:* ?sock:* ?udp:* ?qdisc:*",
    },
];
/// All events.
pub const ALL: &str = "all";

/// The patterns that words mean: names of presets, `all`, and patterns themselves. No words: the first preset.
///
/// ```
/// let patterns = kymo_recorder::tracepoints::patterns(["irq", "sched_switch"]);
/// assert_eq!(patterns, ["?irq:irq_handler_*", "?irq:softirq_*", "sched_switch"]);
/// ```
pub fn patterns<'w>(words: impl IntoIterator<Item = &'w str>) -> Vec<String> {
    let mut words = words.into_iter().peekable();
    let mut all = Vec::new();
    if words.peek().is_none_or(|word| word.starts_with('!')) {
        add(PRESETS[0].name, &mut all);
    }
    words.for_each(|word| add(word, &mut all));
    all
}

/// Patterns in words again: those of a preset are its name, and others of presets are without the mark that they need not exist.
pub(crate) fn shown(patterns: &[String]) -> String {
    let of = |preset: &KernelPreset| {
        let mut all = Vec::new();
        add(preset.name, &mut all);
        all
    };
    if let Some(preset) = PRESETS.iter().find(|preset| of(preset) == patterns) {
        return preset.name.to_owned();
    }
    let is_of_preset = |pattern: &&str| PRESETS.iter().any(|preset| of(preset).iter().any(|its| its == pattern));
    let shown = patterns.iter().map(|pattern| match Some(pattern.as_str()).filter(is_of_preset) {
        Some(pattern) => pattern.trim_start_matches('?'),
        None => pattern,
    });
    shown.collect::<Vec<_>>().join(",")
}

fn add(word: &str, all: &mut Vec<String>) {
    match PRESETS.iter().find(|preset| preset.name == word) {
        Some(preset) => preset.patterns.split_ascii_whitespace().for_each(|pattern| add(pattern, all)),
        None if word == ALL => all.push("*:*".to_owned()),
        None if all.iter().any(|known| known == word) => {}
        None => all.push(word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_words_mean_the_first_preset() {
        assert_eq!(patterns([]), patterns(["waiting"]));
        let without = patterns(["!sched_waking"]);
        assert_eq!(without.last().map(String::as_str), Some("!sched_waking"));
        assert!(without.contains(&"?sched:sched_switch".to_owned()));
        assert_eq!(patterns(["all"]), ["*:*"]);
    }
}
