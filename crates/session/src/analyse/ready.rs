//! The ready-made analyses, with names and words for faces that let people choose.

use kymo_analysis::periods::Order;

use super::{AnalysisKind, PairsQuestion, PeriodsQuestion};

/// An analysis that needs no declaration.
#[derive(Clone, Debug)]
pub struct ReadyAnalysis {
    /// What people type.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What it is, in a sentence.
    pub description: &'static str,
    /// What is asked.
    pub kind: AnalysisKind,
}

/// By name alone.
const PERIODS: PeriodsQuestion =
    PeriodsQuestion { aggregate_by: None, select: Vec::new(), group_by: Vec::new(), order: Order::Duration };

/// All ready-made analyses, in the order in which people should see them.
pub const READY: &[ReadyAnalysis] = &[
    ReadyAnalysis {
        name: "cpu",
        title: "Busy CPUs",
        description: "How long CPUs were busy, and with which threads.",
        kind: AnalysisKind::Cpu,
    },
    ReadyAnalysis {
        name: "syscalls",
        title: "System calls",
        description: "How long system calls took, and which failed.",
        kind: AnalysisKind::Syscalls,
    },
    ReadyAnalysis {
        name: "io",
        title: "Input and output",
        description: "Who read and wrote how much, of which files and devices.",
        kind: AnalysisKind::Io,
    },
    ReadyAnalysis {
        name: "sched",
        title: "Scheduling",
        description: "How long threads waited for a CPU once they were woken, ran, and were blocked in what.",
        kind: AnalysisKind::Sched,
    },
    ReadyAnalysis {
        name: "irq",
        title: "Interrupts",
        description: "How long CPUs served interrupts and softirqs, and how long softirqs waited.",
        kind: AnalysisKind::Irq,
    },
    ReadyAnalysis {
        name: "block",
        title: "Block devices",
        description: "How long requests to block devices took.",
        kind: AnalysisKind::Block,
    },
    ReadyAnalysis {
        name: "memory",
        title: "Pages of memory",
        description: "Who takes pages of memory from the kernel, and who gives them back.",
        kind: AnalysisKind::Memory,
    },
    ReadyAnalysis {
        name: "pairs",
        title: "Pairs of events",
        description: "How long lasts what begins with one event and ends with another.",
        kind: AnalysisKind::Pairs(PairsQuestion::by_roles()),
    },
    ReadyAnalysis {
        name: "periods",
        title: "Periods",
        description: "How long periods last that begin and end with events, and of what they consist.",
        kind: AnalysisKind::Periods(PERIODS),
    },
    ReadyAnalysis {
        name: "rates",
        title: "Events over time",
        description: "How many events there are over time.",
        kind: AnalysisKind::Rates,
    },
    ReadyAnalysis {
        name: "gaps",
        title: "Gaps",
        description: "When nothing was recorded for longest.",
        kind: AnalysisKind::Gaps,
    },
    ReadyAnalysis {
        name: "threads",
        title: "Events by thread",
        description: "How many events each thread, process, application and CPU has.",
        kind: AnalysisKind::Threads,
    },
    ReadyAnalysis {
        name: "count",
        title: "Events by class",
        description: "How often events of each class occur.",
        kind: AnalysisKind::Count,
    },
];
