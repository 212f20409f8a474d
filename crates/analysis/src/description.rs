//! Descriptions of analyses: the name, title and summary of each, and its options.
//!
//! Each analysis provides its own description; the registry collects them. Help texts, menus and
//! documents show them.

use crate::Wishes;
use crate::headline::{Headline, HeadlineMaker};

/// Description of an analysis, as help texts and menus show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnalysisDescription {
    /// Name of the command, and of the analysis in every API.
    pub(crate) name: &'static str,
    /// Name of its SQL function: the same, unless SQL already has a function of that name.
    pub(crate) sql_name: &'static str,
    /// Title in menus.
    pub(crate) title: &'static str,
    /// One-line summary, without a final period.
    pub(crate) sentence: &'static str,
    /// Example commands; a line that continues on the next one ends with a backslash.
    pub(crate) examples: &'static str,
    /// Options that it supports.
    pub(crate) options: SupportedOptions,
    /// Classes of the tables that people see unasked; none: all.
    pub(crate) main_tables: &'static [&'static str],
    /// Makes the headline of its answer.
    pub(crate) headline: HeadlineMaker,
}

impl AnalysisDescription {
    /// A description without examples, for an analysis whose SQL function has its own name.
    pub(crate) fn new(
        name: &'static str,
        title: &'static str,
        sentence: &'static str,
        options: SupportedOptions,
    ) -> Self {
        let headline: HeadlineMaker = |_| Headline::default();
        Self { name, sql_name: name, title, sentence, examples: "", options, main_tables: &[], headline }
    }

    /// With the tables that people see unasked, and the headline above them.
    pub(crate) fn with_view(self, main_tables: &'static [&'static str], headline: HeadlineMaker) -> Self {
        Self { main_tables, headline, ..self }
    }

    pub(crate) fn with_examples(self, examples: &'static str) -> Self {
        Self { examples, ..self }
    }

    pub(crate) fn with_sql_name(self, sql_name: &'static str) -> Self {
        Self { sql_name, ..self }
    }
}

/// Options of [`Wishes`] that change the answer of an analysis. Every face refuses the others: see
/// [`SupportedOptions::unsupported`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SupportedOptions {
    /// Values of [`Wishes::by`].
    pub by: &'static [&'static str],
    /// Shortest and longest duration.
    pub durations: bool,
    /// Smallest and largest size.
    pub sizes: bool,
    /// CPUs.
    pub cpus: bool,
    /// Threads, by number and by name.
    pub threads: bool,
    /// Interrupts and softirqs.
    pub interrupts: bool,
    /// Names: of system calls, of groups of pairs.
    pub names: bool,
}

impl SupportedOptions {
    /// Options of most analyses: durations, CPUs and threads.
    pub const COMMON: Self =
        Self { by: &[], durations: true, sizes: false, cpus: true, threads: true, interrupts: false, names: false };
    /// No options.
    pub const NONE: Self =
        Self { by: &[], durations: false, sizes: false, cpus: false, threads: false, interrupts: false, names: false };
}

/// An option that an analysis does not support. Each face has its own name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported<'a> {
    /// Shortest duration.
    Min,
    /// Longest duration.
    Max,
    /// Smallest size.
    MinSize,
    /// Largest size.
    MaxSize,
    /// CPUs.
    Cpus,
    /// Threads by number.
    Tids,
    /// Threads by name.
    Comms,
    /// Interrupts by number.
    Irqs,
    /// Softirqs by vector.
    Softirqs,
    /// Names.
    Names,
    /// This value of `by`.
    By(&'a str),
}

impl SupportedOptions {
    /// The first option that is set but not supported.
    #[must_use]
    pub fn unsupported<'a>(&self, wishes: &'a Wishes) -> Option<Unsupported<'a>> {
        let set = [
            (Unsupported::Min, wishes.min_ns.is_some(), self.durations),
            (Unsupported::Max, wishes.max_ns.is_some(), self.durations),
            (Unsupported::MinSize, wishes.min_bytes.is_some(), self.sizes),
            (Unsupported::MaxSize, wishes.max_bytes.is_some(), self.sizes),
            (Unsupported::Cpus, !wishes.cpus.is_empty(), self.cpus),
            (Unsupported::Tids, !wishes.tids.is_empty(), self.threads),
            (Unsupported::Comms, !wishes.comms.is_empty(), self.threads),
            (Unsupported::Irqs, !wishes.irqs.is_empty(), self.interrupts),
            (Unsupported::Softirqs, !wishes.softirqs.is_empty(), self.interrupts),
            (Unsupported::Names, !wishes.names.is_empty(), self.names),
        ];
        let option = set.into_iter().find(|(_, is_set, is_supported)| *is_set && !is_supported);
        let word = || wishes.by.iter().find(|word| !self.by.contains(&word.as_str()));
        option.map(|(option, ..)| option).or_else(|| word().map(|word| Unsupported::By(word)))
    }
}
