//! The analyses that people ask for by name: one table, from which every face derives what it shows.
//!
//! ```text
//! cpu::entry(), syscalls::entry(), ... ──> analyses() ──┬─> commands of `kymo`, their help and manual pages
//! a file that declares an analysis ─> AnalysisEntry ────┼─> functions of SQL
//!                                                       ├─> GET /api/v1/analyses, and with it the viewer's choices
//!                                                       └─> methods of the Python package, which a test compares
//! ```
//!
//! A new analysis is a module with a function `entry` and a line in [`analyses`]; the test `registry` of the crate `cli` then asks for what
//! documents say of it.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::block::Block;
use crate::count::Count;
use crate::cpu::Cpu;
use crate::declared::Declaration;
use crate::gaps::Gaps;
use crate::io::Io;
use crate::irq::Irq;
use crate::memory::Memory;
use crate::pairs::{Pairs, PairsQuestion};
use crate::periods::{Periods, PeriodsQuestion};
use crate::rates::Rates;
use crate::sched::Sched;
use crate::syscalls::Syscalls;
use crate::whose::Whose;
use crate::{Answer, Question, Setup, Wishes};

/// All analyses that need no declaration, in the order in which people should see them.
#[must_use]
pub fn analyses() -> &'static [AnalysisEntry] {
    static ALL: LazyLock<Vec<AnalysisEntry>> = LazyLock::new(|| {
        vec![
            Cpu::entry(),
            Syscalls::entry(),
            Io::entry(),
            Sched::entry(),
            Irq::entry(),
            Block::entry(),
            Memory::entry(),
            Pairs::entry(),
            Periods::entry(),
            Rates::entry(),
            Gaps::entry(),
            Whose::entry(),
            Count::entry(),
        ]
    });
    &ALL
}

/// The analysis of this name.
#[must_use]
pub fn find_analysis(name: &str) -> Option<&'static AnalysisEntry> {
    analyses().iter().find(|entry| entry.name == name)
}

/// An analysis, with what people see of it before they ask: one of [`analyses`], or one that is made while the program runs.
#[derive(Clone, Debug)]
pub struct AnalysisEntry {
    /// What people type.
    pub name: Cow<'static, str>,
    /// What its function in SQL is called: as it is, unless SQL has a function of this name.
    pub sql_name: Cow<'static, str>,
    /// What it is called in menus.
    pub title: Cow<'static, str>,
    /// What it answers, in a sentence without an end.
    pub sentence: Cow<'static, str>,
    /// Commands that show how it is asked; a line that goes on in the next one ends with a backslash.
    pub examples: &'static str,
    /// Options that change its answer.
    pub options: SupportedOptions,
    /// What is asked.
    pub kind: AnalysisKind,
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
    /// This word of what to tell apart.
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

/// What is asked of traces.
#[derive(Clone, Debug)]
pub enum AnalysisKind {
    /// A question that wishes alone make.
    Plain(fn() -> Question<'static>),
    /// Pairs of events.
    Pairs(PairsQuestion),
    /// Periods that begin and end with events; the caller has their definitions.
    Periods(PeriodsQuestion),
    /// An analysis that a declaration describes.
    Own(Declaration),
}

impl AnalysisKind {
    /// The question to ask. That of periods has no definitions.
    #[must_use]
    pub fn question(&self, wishes: &Wishes) -> Question<'_> {
        match self {
            Self::Plain(question) => question(),
            Self::Pairs(pairs) => Pairs::question(pairs.options(), pairs.mapping(), wishes),
            Self::Periods(_) => Periods::question(),
            Self::Own(declaration) => declaration.question(wishes),
        }
    }

    /// The tables of its answer, without rows.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "an analysis that has read nothing has put no rows aside")]
    pub fn tables(&self) -> Answer {
        let wishes = Wishes::default();
        let question = self.question(&wishes);
        let analysis = (question.make)(&Setup { classes: &[], lanes: &[], wishes: &wishes, room: None });
        analysis.finish(&analysis.init()).expect("nothing was put aside")
    }
}

impl AnalysisEntry {
    /// An entry without examples, whose function in SQL is called as it is itself.
    pub(crate) fn new(
        name: &'static str,
        title: &'static str,
        sentence: &'static str,
        options: SupportedOptions,
        kind: AnalysisKind,
    ) -> Self {
        let (name, title, sentence) = (name.into(), title.into(), sentence.into());
        Self { sql_name: Cow::clone(&name), name, title, sentence, examples: "", options, kind }
    }

    pub(crate) fn with_examples(self, examples: &'static str) -> Self {
        Self { examples, ..self }
    }

    pub(crate) fn with_sql_name(self, name: &'static str) -> Self {
        Self { sql_name: name.into(), ..self }
    }

    /// The entry of an analysis that a declaration describes.
    #[must_use]
    pub fn declared(declaration: Declaration) -> Self {
        let options = SupportedOptions { by: &["key", "value"], ..SupportedOptions::COMMON };
        let title = declaration.name.clone().into();
        let kind = AnalysisKind::Own(declaration);
        Self { title, ..Self::new("own", "", "What a file declares", options, kind) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_sentences_have_no_end() {
        let mut names = BTreeSet::new();
        for entry in analyses() {
            assert!(names.insert(&entry.name), "{} stands twice", entry.name);
            assert!(entry.name.bytes().all(|byte| byte.is_ascii_lowercase()), "{}", entry.name);
            assert!(!entry.sentence.ends_with('.') && !entry.sentence.is_empty(), "{}: {}", entry.name, entry.sentence);
            assert!(entry.sentence.starts_with(|first: char| first.is_ascii_uppercase()), "{}", entry.sentence);
            for line in entry.examples.lines() {
                assert!(line.starts_with(&format!("kymo {} ", entry.name)) || line.starts_with(' '), "{line}");
            }
        }
        let sql_names: BTreeSet<_> = analyses().iter().map(|entry| &entry.sql_name).collect();
        assert_eq!(sql_names.len(), names.len(), "functions of SQL are unique");
        assert_eq!(find_analysis("cpu").map(|entry| &*entry.title), Some("Busy CPUs"));
        assert!(find_analysis("own").is_none(), "it is declared");
    }

    #[test]
    fn options_that_would_change_nothing_are_named() {
        let of = |name: &str| find_analysis(name).expect("there is this analysis").options;
        let by = Wishes { by: vec!["cpu".to_owned(), "file".to_owned()], min_ns: Some(1), ..Wishes::default() };
        assert_eq!(of("cpu").unsupported(&by), Some(Unsupported::By("file")));
        assert_eq!(of("count").unsupported(&by), Some(Unsupported::Min));
        let sizes = Wishes { min_bytes: Some(1), tids: vec![1], ..Wishes::default() };
        assert_eq!(of("io").unsupported(&sizes), None);
        assert_eq!(of("irq").unsupported(&sizes), Some(Unsupported::MinSize));
    }

    #[test]
    fn every_analysis_has_tables_before_it_is_asked() {
        for entry in analyses() {
            let Answer { tables } = entry.kind.tables();
            assert!(!tables.is_empty() && tables.iter().all(|table| !table.columns.is_empty()), "{}", entry.name);
        }
    }
}
