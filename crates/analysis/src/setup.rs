//! The input of an analysis before it begins.

use std::sync::Arc;

use kymo_schema::glob;

use crate::resolve::StackResolver;
use crate::roles::{COMM, CPU, FieldIndex, TID};
use crate::windows::Windows;
use crate::{AnalysisEvent, BoundClass, LaneFacts, Room};

/// The setup of an analysis.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Classes of events that it will see.
    pub classes: &'a [BoundClass],
    /// Lanes that it will see.
    pub lanes: &'a [LaneFacts],
    /// The options of the answer.
    pub wishes: &'a Wishes,
    /// Where its tables put rows that do not fit into memory; `None`: they keep all.
    pub room: Option<&'a Room>,
    /// For each class the trace that it is of, numbered.
    pub traces: &'a [u32],
    /// Knows the functions of call stacks; `None`: stacks have none.
    pub stacks: Option<&'a Arc<dyn StackResolver>>,
}

/// The default number of bins of a distribution.
pub const BINS: usize = 20;

/// The options of an answer. By default everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Wishes {
    /// The groups to tell apart, most general first, in the words of the analysis: `process`,
    /// `cpu`. Empty: as the analysis does by itself.
    pub by: Vec<String>,
    /// How many rows a table has at most; the rest is counted as omitted. `None`: all.
    pub top: Option<usize>,
    /// The minimum duration, in nanoseconds.
    pub min_ns: Option<u64>,
    /// The maximum duration.
    pub max_ns: Option<u64>,
    /// The minimum size, in bytes.
    pub min_bytes: Option<u64>,
    /// The maximum size.
    pub max_bytes: Option<u64>,
    /// Only on these CPUs, if any are named.
    pub cpus: Vec<u32>,
    /// Only of these threads, if any are named.
    pub tids: Vec<i64>,
    /// Only these interrupts, by number; where softirqs are named and no interrupts, none.
    pub irqs: Vec<i64>,
    /// Only these softirqs, by vector; where interrupts are named and no softirqs, none.
    pub softirqs: Vec<i64>,
    /// Only of threads with a name that matches one of these patterns, if there are any; `*` is any
    /// text and `?` any character.
    pub comms: Vec<String>,
    /// Only with a name like one of these patterns, if there are any: calls by their names, pairs
    /// by their groups.
    pub names: Vec<String>,
    /// Results apart for each span of time of this length, in nanoseconds, counted from the beginning; never zero.
    pub period_ns: Option<u64>,
    /// Into how many bins distributions are divided; never zero.
    pub bins: usize,
    /// All distributions of one kind have the same bins, so that they can be compared.
    pub uniform_bins: bool,
    /// Distributions of one kind are one table with a column for each, instead of a table each; their bins are alike.
    pub series: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            by: Vec::new(),
            top: None,
            min_ns: None,
            max_ns: None,
            min_bytes: None,
            max_bytes: None,
            cpus: Vec::new(),
            tids: Vec::new(),
            irqs: Vec::new(),
            softirqs: Vec::new(),
            comms: Vec::new(),
            names: Vec::new(),
            period_ns: None,
            bins: BINS,
            uniform_bins: false,
            series: false,
        }
    }
}

impl Wishes {
    /// Fields of [`CONTEXT`](crate::roles::CONTEXT) that [`Wishes::wants`] looks at.
    #[must_use]
    pub fn context(&self) -> Vec<FieldIndex> {
        let mut context = Vec::new();
        context.extend((!self.cpus.is_empty()).then_some(CPU));
        context.extend((!self.tids.is_empty()).then_some(TID));
        context.extend((!self.comms.is_empty()).then_some(COMM));
        context
    }

    /// Whether a thread, or a process, of that name is wanted.
    #[must_use]
    pub fn wants_name(&self, name: Option<&str>) -> bool {
        let matches = |name: &str| self.comms.iter().any(|pattern| glob::matches(pattern, name));
        self.comms.is_empty() || name.is_some_and(matches)
    }

    /// Whether items of this name are wanted.
    #[must_use]
    pub fn wants_called(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|pattern| glob::matches(pattern, name))
    }

    /// Whether a thread is wanted by its number.
    #[must_use]
    pub fn wants_tid(&self, tid: i32) -> bool {
        self.tids.is_empty() || self.tids.contains(&i64::from(tid))
    }

    /// Whether a thread is wanted; its name is only asked for if it matters.
    #[must_use]
    pub fn wants_thread(&self, tid: i32, name: impl FnOnce() -> Option<String>) -> bool {
        self.wants_tid(tid) && (self.comms.is_empty() || self.wants_name(name().as_deref()))
    }

    /// Whether an interrupt, or a softirq, is wanted.
    #[must_use]
    pub fn wants_irq(&self, is_hard: bool, number: i64) -> bool {
        let of_kind = if is_hard { &self.irqs } else { &self.softirqs };
        self.irqs.is_empty() && self.softirqs.is_empty() || of_kind.contains(&number)
    }

    /// Whether this duration is wanted.
    #[must_use]
    #[inline]
    pub fn wants_duration(&self, duration_ns: u64) -> bool {
        self.min_ns.is_none_or(|min| min <= duration_ns) && self.max_ns.is_none_or(|max| duration_ns <= max)
    }

    /// Whether a CPU is wanted.
    #[must_use]
    #[inline]
    pub fn wants_cpu(&self, cpu: Option<u32>) -> bool {
        self.cpus.is_empty() || cpu.is_some_and(|cpu| self.cpus.contains(&cpu))
    }

    /// Whether CPUs are wanted that a lane may have events of.
    #[must_use]
    pub fn wants_lane(&self, lane: &LaneFacts) -> bool {
        lane.cpu.is_none() || self.wants_cpu(lane.cpu)
    }

    /// Whether an event is of a CPU, a thread, and a name that are wanted, as far as its own context tells.
    #[must_use]
    pub fn wants(&self, lane: &LaneFacts, event: &AnalysisEvent<'_>) -> bool {
        let Self { cpus, tids, comms, .. } = self;
        let is_on = || event.cpu().or(lane.cpu).is_some_and(|cpu| cpus.contains(&cpu));
        let is_of = || event.context(TID).is_some_and(|tid| tids.contains(&tid));
        let is_named = || self.wants_name(event.context_text(COMM).map(String::from_utf8_lossy).as_deref());
        (cpus.is_empty() || is_on()) && (tids.is_empty() || is_of()) && (comms.is_empty() || is_named())
    }
}

impl Setup<'_> {
    /// Where events of any lane may be missing.
    #[must_use]
    pub fn holes(&self) -> Windows {
        let mut holes = Windows::default();
        self.lanes.iter().for_each(|lane| holes.extend(&lane.holes));
        holes
    }

    /// The same of each machine, by its number.
    #[must_use]
    pub fn holes_by_host(&self) -> Vec<Windows> {
        let mut holes: Vec<Windows> = Vec::new();
        for lane in self.lanes {
            let host = usize::from(lane.host);
            holes.resize_with(holes.len().max(host + 1), Windows::default);
            holes[host].extend(&lane.holes);
        }
        holes
    }

    /// When the first lane begins and the last one ends.
    #[must_use]
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        span_ns(self.lanes)
    }
}

/// When the first lane begins and the last one ends.
#[must_use]
pub fn span_ns(lanes: &[LaneFacts]) -> Option<(i64, i64)> {
    let spans = || lanes.iter().filter_map(|lane| lane.span_ns);
    Some((spans().map(|span| span.0).min()?, spans().map(|span| span.1).max()?))
}
