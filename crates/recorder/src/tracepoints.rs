//! Tracepoints of the kernel: which of them a session records, as patterns of names and ready choices.

use kymo_filter::nearest;
use kymo_ftrace::event_name;
use kymo_schema::glob;
use serde::{Deserialize, Serialize};

use crate::kernel_filter::KernelFilterPlace;
use crate::kernel_pairs::call_of;
pub use crate::presets::{ALL, KernelPreset, PRESETS, PROGRAMS, patterns};
use crate::probes::ProbePlan;
use crate::rule::{RuleOptions, RuleStatus};
use crate::watch_options::WatchOptions;

/// Bytes of each CPU's ring buffer, unless others are asked for.
pub const RING_BYTES: u64 = 8 << 20;

/// The kernel's events that a session records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelOptions {
    /// The name of the helper's socket.
    pub helper: String,
    /// Patterns of names, as `SYSTEM:NAME` or `NAME`; those with `!` before them are left out, and those with `?` before
    /// them need not exist.
    pub events: Vec<String>,
    /// Bytes of each CPU's ring buffer.
    pub ring_bytes: u64,
    /// Texts of system calls, where the kernel gives them.
    #[serde(default)]
    pub texts: bool,
    /// Processes that its events are about; `None`: all.
    #[serde(default)]
    pub scope: Option<KernelScope>,
    /// Dynamic probes.
    #[serde(default)]
    pub probes: ProbePlan,
    /// Call stacks.
    #[serde(default)]
    pub stacks: Option<StackOptions>,
    /// Filters, as [`KernelFilter::parse`](crate::kernel_filter::KernelFilter::parse) reads them: all that are about an event have
    /// to be true of it.
    #[serde(default)]
    pub filters: Vec<String>,
    /// Rules about other events, of which only those are recorded that took long.
    #[serde(default)]
    pub rules: Vec<RuleOptions>,
    /// Questions that are counted beside the events.
    #[serde(default)]
    pub watches: Vec<WatchOptions>,
}

/// Call stacks beside the kernel's events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackOptions {
    /// Samples of each busy CPU in a second of its time; 0: none.
    pub hz: u32,
    /// Patterns of events that have a stack each time.
    pub events: Vec<String>,
}

/// Stacks without words: samples in a second, and events.
const STACKS_HZ: u32 = 99;
/// Samples in a second at most.
const STACKS_HZ_MAX: u32 = 50_000;
const STACK_EVENTS: [&str; 2] = ["?sched:sched_switch", "?sched:sched_waking"];

impl StackOptions {
    /// What words mean: `99Hz`, and patterns of events. No words: the usual samples, and the stacks of threads that begin to wait, or
    /// wake others.
    ///
    /// # Errors
    ///
    /// A rate is none that can be.
    ///
    /// ```
    /// use kymo_recorder::tracepoints::StackOptions;
    /// let some = StackOptions::of(["999Hz", "block:*"].into_iter()).unwrap();
    /// assert_eq!((some.hz, &some.events[..]), (999, &["block:*".to_owned()][..]));
    /// ```
    pub fn of<'w>(words: impl Iterator<Item = &'w str>) -> Result<Self, String> {
        let mut all = Self { hz: 0, events: Vec::new() };
        for word in words {
            match word.strip_suffix("Hz").or_else(|| word.strip_suffix("hz")) {
                Some(rate) => {
                    let rate = rate.trim().parse().ok().filter(|rate| (1..=STACKS_HZ_MAX).contains(rate));
                    all.hz = rate.ok_or_else(|| format!("`{word}` is no rate: 1Hz to {STACKS_HZ_MAX}Hz are"))?;
                }
                None => all.events.push(word.to_owned()),
            }
        }
        if all.hz == 0 && all.events.is_empty() {
            all = Self { hz: STACKS_HZ, events: STACK_EVENTS.map(str::to_owned).to_vec() };
        }
        Ok(all)
    }
}

/// Processes that the kernel's events are about, and all that they start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelScope {
    /// The words that the user chose them with.
    pub said: String,
    /// Their numbers.
    pub processes: Vec<u32>,
}

/// The kernel's part of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelSummary {
    /// Events in the trace.
    pub events: u64,
    /// Bytes of the trace.
    pub bytes: u64,
    /// Events that were lost because a ring was full.
    pub lost: u64,
    /// Events that were read from rings.
    pub read: u64,
    /// Events of those that could not be understood, or not be written.
    pub unreadable: u64,
    /// Events of the kernel that are recorded.
    pub classes: u64,
    /// Events of probes that are recorded.
    pub probes: u64,
    /// CPUs with events.
    pub cpus: u64,
    /// Where the state of the system at the beginning is from: `eBPF` (iterators of the kernel), `/proc`, or `mixed`.
    pub state: String,
    /// Why it is not from iterators alone.
    pub state_absent: Option<String>,
    /// Nanoseconds of processor time that reading and converting took.
    pub cpu_ns: u64,
    /// Records of texts of system calls.
    pub texts: u64,
    /// Texts that were lost because their ring was full.
    pub texts_lost: u64,
    /// Texts of calls that are empty in the trace, because they could not be read, or were lost.
    pub texts_unknown: u64,
    /// Why there are no texts; `None`: they are there, or were not wanted.
    pub texts_absent: Option<String>,
    /// Call stacks in the trace.
    pub stacks: u64,
    /// Records of call stacks that were lost because their ring was full.
    pub stacks_lost: u64,
    /// Why there are no call stacks; `None`: they are there, or were not wanted.
    pub stacks_absent: Option<String>,
    /// What is missing as tracefs cannot be used, and why; `None`: it is used. The events are those that perf tells.
    pub tracefs_absent: Option<String>,
    /// Where filters run, for each event of the kernel; none: there are no filters.
    pub filters: Vec<KernelFilterPlace>,
    /// Events that were read, and that filters did not keep.
    pub filtered: u64,
    /// Events that rules have kept, of those in the trace.
    pub ruled: u64,
    /// Events that rules have kept, and that were lost because a ring was full.
    pub ruled_lost: u64,
    /// Times that the kernel did not ask a rule about an event, because it was asking already on that CPU.
    pub unasked: u64,
    /// Counts beside the events.
    pub watches: Vec<WatchSummary>,
    /// Rules that the kernel asks. A session tells them with its others.
    #[serde(skip)]
    pub rules: Vec<RuleStatus>,
}

/// Counts of a question beside a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchSummary {
    /// The name of the question.
    pub name: String,
    /// The question with its columns, as it was written.
    pub words: String,
    /// Events that were counted.
    pub events: u64,
    /// Rows with events.
    pub rows: u64,
    /// Events without a row, because the map was full.
    pub map_full: u64,
    /// Times that a program did not run, because it ran already on that CPU.
    pub interrupted: u64,
    /// Events that end something of which no begin is known; `None`: the question is about single events.
    pub unbegun: Option<u64>,
    /// All counts were read; otherwise those are the last that could be.
    pub is_complete: bool,
    /// Remarks for people.
    pub notes: Vec<String>,
}

/// Whether a tracepoint has this name in traces.
fn is_called(name: &str, event: &str) -> bool {
    let (system, own) = event.split_once(':').unwrap_or(("", event));
    !name.contains(['*', '?']) && event_name(system, own) == name
}

/// The events that patterns mean.
pub(crate) fn chosen(patterns: &[String], known: &[String]) -> Result<Vec<String>, String> {
    let name = |event: &str| event.split_once(':').map_or("", |(_, name)| name).to_owned();
    let takes = |pattern: &str, event: &str| {
        let pattern = pattern.trim_start_matches(['!', '?']);
        glob::matches(pattern, event)
            || !pattern.contains(':') && (glob::matches(pattern, &name(event)) || is_called(pattern, event))
    };
    for pattern in patterns.iter().filter(|pattern| !pattern.starts_with('?')) {
        if !known.iter().any(|event| takes(pattern, event)) {
            let pattern = pattern.trim_start_matches('!');
            let names: Vec<String> = known.iter().map(|event| name(event)).collect();
            let near = nearest(pattern, names.iter().chain(known).map(String::as_str));
            let help = match (call_of(pattern), near.first()) {
                (Some(call), _) => {
                    format!(": `{call}` is a system call, and all of them are `sys_enter` and `sys_exit`")
                }
                (None, Some(near)) => format!("; did you mean `{near}`?"),
                (None, None) => String::new(),
            };
            return Err(format!("the kernel has no event `{pattern}`{help}"));
        }
    }
    let (not, wanted): (Vec<&String>, Vec<&String>) = patterns.iter().partition(|pattern| pattern.starts_with('!'));
    let all = known.iter().filter(|event| {
        wanted.iter().any(|pattern| takes(pattern, event)) && !not.iter().any(|pattern| takes(pattern, event))
    });
    // System calls are taken from the events that all of them have in common.
    let all: Vec<String> = all.filter(|event| !event.starts_with("syscalls:")).cloned().collect();
    if all.is_empty() { Err("these patterns leave no event of the kernel".to_owned()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_chosen_by_patterns() {
        let known = ["sched:sched_switch", "sched:sched_wakeup", "irq:softirq_entry", "syscalls:sys_enter_read"];
        let known = known.map(str::to_owned);
        let of =
            |patterns: &[&str]| chosen(&patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>(), &known);
        assert_eq!(of(&["sched_*", "!sched_wakeup"]), Ok(vec!["sched:sched_switch".to_owned()]));
        assert_eq!(of(&["irq:*", "?nothing:*"]), Ok(vec!["irq:softirq_entry".to_owned()]));
        assert_eq!(of(&["*:*"]).map(|all| all.len()), Ok(3));
        assert_eq!(
            of(&["shced_switch"]),
            Err("the kernel has no event `shced_switch`; did you mean `sched_switch`?".to_owned())
        );
        assert_eq!(of(&["irq_softirq_entry"]), Ok(vec!["irq:softirq_entry".to_owned()]), "its name in traces");
        let told = of(&["openat"]).expect_err("it is a call");
        assert_eq!(
            told,
            "the kernel has no event `openat`: `openat` is a system call, and all of them are `sys_enter` and `sys_exit`"
        );
        assert_eq!(of(&["?nothing"]), Err("these patterns leave no event of the kernel".to_owned()));
    }
}
