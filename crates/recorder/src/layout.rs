//! Names of folders and files in the folder of a session that records the kernel.
//!
//! ```text
//! OUTPUT/kernel/cpu_0 cpu_1 ... state     the kernel's events
//! OUTPUT/kernel/cpu_0_stacks ...          call stacks
//! OUTPUT/kernel/cpu_0_rules ...           events that rules have kept
//! OUTPUT/kernel/counts                    counts beside the events
//! OUTPUT/programs/...                     those of programs
//! ```

/// The folder of the kernel's trace in that of a session.
pub const KERNEL_FOLDER: &str = "kernel";
/// The folder of programs beside it.
pub(crate) const PROGRAMS_FOLDER: &str = "programs";
/// The stream of the system's state.
pub(crate) const STATE_STREAM: &str = "state";

/// The stream of counts beside the events.
pub(crate) const COUNT_STREAM: &str = "counts";

/// The name of the stream of one of a CPU's ring buffers: the first, or that of events that are recorded of all threads.
pub(crate) fn cpu_stream(ring: u8, cpu: u32) -> String {
    if ring == 0 { format!("cpu_{cpu}") } else { format!("cpu_{cpu}_all") }
}

/// The name of the stream of a CPU's call stacks.
pub(crate) fn stack_stream(cpu: u32) -> String {
    format!("cpu_{cpu}_stacks")
}

/// The name of the stream of a CPU's events that rules have kept.
pub(crate) fn rule_stream(cpu: u32) -> String {
    format!("cpu_{cpu}_rules")
}

/// The CPU of a stream with this name, which has events that rules have kept.
pub(crate) fn rule_cpu(name: &str) -> Option<u32> {
    name.strip_prefix("cpu_")?.strip_suffix("_rules")?.parse().ok()
}

/// The CPU whose call stacks are in a stream of this name.
pub(crate) fn stack_cpu(name: &str) -> Option<u32> {
    name.strip_prefix("cpu_")?.strip_suffix("_stacks")?.parse().ok()
}

/// Whether a file in the kernel's folder is a stream.
pub(crate) fn is_kernel_stream(name: &str) -> bool {
    let number = name.strip_prefix("cpu_").and_then(|rest| rest.split('_').next());
    let cpu: Option<u32> = number.and_then(|number| number.parse().ok());
    let is_of = |cpu: u32| {
        [cpu_stream(0, cpu), cpu_stream(1, cpu), stack_stream(cpu), rule_stream(cpu)].iter().any(|own| own == name)
    };
    name == STATE_STREAM || name == COUNT_STREAM || cpu.is_some_and(is_of)
}

#[cfg(test)]
mod tests {
    use super::{cpu_stream, is_kernel_stream, rule_cpu, rule_stream, stack_cpu, stack_stream};

    #[test]
    fn streams_have_these_names_only() {
        let names = [cpu_stream(0, 0), cpu_stream(0, 511), cpu_stream(1, 3), stack_stream(7), rule_stream(8)];
        assert!(names.iter().all(|name| is_kernel_stream(name)));
        assert_eq!(names.each_ref().map(|name| stack_cpu(name)), [None, None, None, Some(7), None]);
        assert_eq!(names.map(|name| rule_cpu(&name)), [None, None, None, None, Some(8)]);
        assert!(is_kernel_stream("state") && is_kernel_stream("counts"));
        let others = ["cpu_", "cpu_01", "cpu_1_none", "cpu_-1", "cpu_1.idx", "states", "metadata"];
        assert!(!others.into_iter().any(is_kernel_stream));
    }
}
