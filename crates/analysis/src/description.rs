//! The description of an analysis that people see before they ask: its names, its answers, and the
//! options that change them.
//!
//! Each analysis describes itself; the registry makes its table of that.

use crate::Wishes;

/// What people see of an analysis before they ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnalysisDescription {
    /// What people type.
    pub(crate) name: &'static str,
    /// What its function in SQL is called: as it is, unless SQL has a function of this name.
    pub(crate) sql_name: &'static str,
    /// What it is called in menus.
    pub(crate) title: &'static str,
    /// What it answers, in a sentence without an end.
    pub(crate) sentence: &'static str,
    /// Commands that show how it is asked; a line that goes on in the next one ends with a backslash.
    pub(crate) examples: &'static str,
    /// Options that change its answer.
    pub(crate) options: SupportedOptions,
}

impl AnalysisDescription {
    /// A description without examples, of an analysis whose function in SQL is called as it is itself.
    pub(crate) fn new(
        name: &'static str,
        title: &'static str,
        sentence: &'static str,
        options: SupportedOptions,
    ) -> Self {
        Self { name, sql_name: name, title, sentence, examples: "", options }
    }

    pub(crate) fn with_examples(self, examples: &'static str) -> Self {
        Self { examples, ..self }
    }

    pub(crate) fn with_sql_name(self, sql_name: &'static str) -> Self {
        Self { sql_name, ..self }
    }
}

/// Which options of [`Wishes`] change the answer of an analysis. Every face refuses the others: see [`SupportedOptions::unsupported`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SupportedOptions {
    /// Words of [`Wishes::by`].
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
    /// Those of most analyses: durations, CPUs and threads.
    pub const COMMON: Self =
        Self { by: &[], durations: true, sizes: false, cpus: true, threads: true, interrupts: false, names: false };
    /// None.
    pub const NONE: Self =
        Self { by: &[], durations: false, sizes: false, cpus: false, threads: false, interrupts: false, names: false };
}

/// An option that an analysis does not support. Each face has a name of its own for it.
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
    /// This word of `by`.
    By(&'a str),
}

impl SupportedOptions {
    /// The first option that is set and would change nothing.
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
