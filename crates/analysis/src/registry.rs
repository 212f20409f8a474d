//! The analyses that people ask for by name: one table, from which every face derives its list.
//!
//! ```text
//! Cpu::description(), Cpu::question ... ─> analyses() ──┬─> commands of `kymo`, their help and manual pages
//! a file that declares an analysis ─> AnalysisEntry ────┼─> functions of SQL
//!                                                       ├─> GET /api/v1/analyses, and with it the viewer's choices
//!                                                       └─> methods of the Python package, which a test compares
//! ```
//!
//! A new analysis is a module with functions `description` and `question`, and a line in
//! [`analyses`]; the test `registry` of the crate `cli` then asks for its documentation.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::block::BlockAnalysis;
use crate::count::CountAnalysis;
use crate::cpu::Cpu;
use crate::declared::{AnalysisDeclaration, breakdown_description};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::gaps::Gaps;
use crate::headline::{Headline, HeadlineMaker, HeadlineTables};
use crate::io::Io;
use crate::irq::Irq;
use crate::memory::MemoryAnalysis;
use crate::messages::MessagesAnalysis;
use crate::pairs::{PairsAnalysis, PairsQuestion};
use crate::periods::{PeriodsAnalysis, PeriodsQuestion};
use crate::rates::Rates;
use crate::roles::EventRole;
use crate::sched::Sched;
use crate::stacks::StackAnalysis;
use crate::syscalls::Syscalls;
use crate::whose::WhoseAnalysis;
use crate::{Answer, Question, Setup, Wishes};

/// All analyses that need no declaration, in the order in which people should see them.
#[must_use]
pub fn analyses() -> &'static [AnalysisEntry] {
    static ALL: LazyLock<Vec<AnalysisEntry>> = LazyLock::new(|| {
        vec![
            AnalysisEntry::plain(Cpu::description(), Cpu::question),
            AnalysisEntry::plain(Syscalls::description(), Syscalls::question),
            AnalysisEntry::plain(Io::description(), Io::question),
            AnalysisEntry::plain(Sched::description(), Sched::question),
            AnalysisEntry::plain(StackAnalysis::description(), StackAnalysis::question),
            AnalysisEntry::plain(Irq::description(), Irq::question),
            AnalysisEntry::plain(BlockAnalysis::description(), BlockAnalysis::question),
            AnalysisEntry::plain(MemoryAnalysis::description(), MemoryAnalysis::question),
            AnalysisEntry::new(PairsAnalysis::description(), AnalysisKind::Pairs(PairsQuestion::by_roles())),
            AnalysisEntry::new(breakdown_description(), AnalysisKind::Own(AnalysisDeclaration::breakdown())),
            AnalysisEntry::plain(MessagesAnalysis::description(), MessagesAnalysis::question),
            AnalysisEntry::new(PeriodsAnalysis::description(), AnalysisKind::Periods(PeriodsQuestion::default())),
            AnalysisEntry::plain(Rates::description(), Rates::question),
            AnalysisEntry::plain(Gaps::description(), Gaps::question),
            AnalysisEntry::plain(WhoseAnalysis::description(), WhoseAnalysis::question),
            AnalysisEntry::plain(CountAnalysis::description(), CountAnalysis::question),
        ]
    });
    &ALL
}

/// The analysis of this name.
#[must_use]
pub fn find_analysis(name: &str) -> Option<&'static AnalysisEntry> {
    analyses().iter().find(|entry| entry.name == name)
}

/// An analysis, with the description that people see before they ask: one of [`analyses`], or one
/// that is made while the program runs.
#[derive(Clone, Debug)]
pub struct AnalysisEntry {
    /// The name that people type.
    pub name: Cow<'static, str>,
    /// The name of its function in SQL: the same, unless SQL has a function of this name.
    pub sql_name: Cow<'static, str>,
    /// Its title in menus.
    pub title: Cow<'static, str>,
    /// Its answer, in a sentence without an end.
    pub sentence: Cow<'static, str>,
    /// Commands that show how it is asked; a line that goes on in the next one ends with a backslash.
    pub examples: &'static str,
    /// Options that change its answer.
    pub options: SupportedOptions,
    /// Classes of the tables that people see unasked, where a screen is small; none: all.
    pub main_tables: &'static [&'static str],
    headline: HeadlineMaker,
    /// The question.
    pub kind: AnalysisKind,
}

/// A question about traces.
#[derive(Clone, Debug)]
pub enum AnalysisKind {
    /// A question that wishes alone make.
    Plain(fn() -> Question<'static>),
    /// Pairs of events.
    Pairs(PairsQuestion),
    /// Periods that begin and end with events; the caller has their definitions.
    Periods(PeriodsQuestion),
    /// An analysis that a declaration describes.
    Own(AnalysisDeclaration),
}

impl AnalysisKind {
    /// The question to ask. That of periods has no definitions.
    #[must_use]
    pub fn question(&self, wishes: &Wishes) -> Question<'_> {
        match self {
            Self::Plain(question) => question(),
            Self::Pairs(pairs) => PairsAnalysis::question(pairs.options(), pairs.mapping(), wishes),
            Self::Periods(_) => PeriodsAnalysis::question(),
            Self::Own(declaration) => declaration.question(wishes),
        }
    }

    /// Whether it is about each change of threads, so that it has no answer without some of them.
    #[must_use]
    pub fn needs_all_switches(&self) -> bool {
        self.question(&Wishes::default()).needs_all_switches()
    }

    /// The events that it looks for, as people call them; `None`: all.
    #[must_use]
    pub fn looked_for(&self) -> Option<String> {
        let wishes = Wishes::default();
        let Question { needs, essential, mapping, .. } = self.question(&wishes);
        match self {
            Self::Periods(_) => return Some("events that begin and end the periods of `--period`".to_owned()),
            Self::Own(declaration) => return Some(declaration.looked_for()),
            Self::Pairs(_) if mapping.is_some() => return Some("the events of `--start` and `--stop`".to_owned()),
            _ => {}
        }
        let of_needs = needs.roles.iter().map(|(role, _)| *role);
        let roles: Vec<EventRole> = if essential.is_empty() { of_needs.collect() } else { essential.to_vec() };
        let names: Vec<String> = roles.iter().map(|role| format!("`{}`", role.name())).collect();
        let kind = if names.len() == 1 { "role" } else { "roles" };
        (!needs.all && !names.is_empty()).then(|| format!("events with the {kind} {}", names.join(", ")))
    }

    /// The tables of its answer, without rows.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "an analysis that has read nothing has put no rows aside")]
    pub fn tables(&self) -> Answer {
        let wishes = Wishes::default();
        let question = self.question(&wishes);
        let analysis = (question.make)(&Setup {
            classes: &[],
            lanes: &[],
            wishes: &wishes,
            room: None,
            traces: &[],
            stacks: None,
        });
        analysis.finish(&analysis.init()).expect("nothing was put aside")
    }
}

impl AnalysisEntry {
    fn new(description: AnalysisDescription, kind: AnalysisKind) -> Self {
        let AnalysisDescription { name, sql_name, title, sentence, examples, options, main_tables, headline } =
            description;
        let [name, sql_name, title, sentence] = [name, sql_name, title, sentence].map(Cow::Borrowed);
        Self { name, sql_name, title, sentence, examples, options, main_tables, headline, kind }
    }

    /// What stands out in its answer, in a sentence or two; empty where it found nothing. `is_lossy`: events may be
    /// missing.
    #[must_use]
    pub fn headline(&self, answer: &Answer, is_lossy: bool) -> Headline {
        (self.headline)(&HeadlineTables::new(answer, is_lossy))
    }

    /// The entry of an analysis whose question wishes alone make.
    fn plain(description: AnalysisDescription, question: fn() -> Question<'static>) -> Self {
        Self::new(description, AnalysisKind::Plain(question))
    }

    /// The entry of an analysis that a declaration describes.
    #[must_use]
    pub fn declared(declaration: AnalysisDeclaration) -> Self {
        let title = declaration.name.clone().into();
        Self { title, ..Self::new(AnalysisDeclaration::description(), AnalysisKind::Own(declaration)) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Unsupported;
    use crate::answer::{ColumnRank, Plot};

    #[test]
    fn names_are_unique_and_sentences_have_no_end() {
        let mut names = BTreeSet::new();
        for entry in analyses() {
            assert!(names.insert(&entry.name), "{} stands twice", entry.name);
            let is_word = entry.name.bytes().all(|byte| byte.is_ascii_lowercase());
            assert!(
                is_word,
                "{}: a method of Python and a function of SQL have this name: one word of a-z",
                entry.name
            );
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
    fn main_tables_exist_and_empty_answers_have_no_headline() {
        // It needs periods that contain others.
        const SOMETIMES: &str = "per-part";
        for entry in analyses() {
            let answer = entry.kind.tables();
            let is_known = |class: &&&str| answer.tables.iter().any(|table| table.class == **class);
            let unknown: Vec<_> =
                entry.main_tables.iter().filter(|class| !is_known(class) && **class != SOMETIMES).collect();
            assert!(unknown.is_empty(), "{}: {unknown:?}", entry.name);
            assert!(entry.headline(&answer, false).is_empty(), "{}", entry.name);
            assert!(entry.kind.looked_for().is_none_or(|events| !events.is_empty()), "{}", entry.name);
        }
        let looked_for = |name: &str| find_analysis(name).and_then(|entry| entry.kind.looked_for());
        assert_eq!(looked_for("cpu").as_deref(), Some("events with the role `thread_switch`"));
        assert_eq!(looked_for("gaps"), None);
    }

    #[test]
    fn every_analysis_has_tables_before_it_is_asked() {
        let mut with_rows = Vec::new();
        for entry in analyses() {
            let Answer { tables } = entry.kind.tables();
            assert!(!tables.is_empty() && tables.iter().all(|table| !table.columns.is_empty()), "{}", entry.name);
            with_rows.extend(tables.into_iter().filter(|table| !table.rows.is_empty()).map(|table| table.title));
        }
        let totals = [
            "Wakeup to run, all threads",
            "All call stacks",
            "Pages of memory",
            "All pairs",
            "All messages",
            "All events",
            "All events",
        ];
        assert_eq!(with_rows, totals, "only totals have a row where there are no events");
    }

    /// Bars show both directions, and a file that has no path has its number beside the numbers.
    #[test]
    fn bars_of_both_directions() {
        const BYTES: [&str; 2] = ["read", "write"];
        const PAGES: [&str; 2] = ["allocated", "freed"];
        let check = |analysis: &str, class: &str, names: [&str; 2]| {
            let answer = find_analysis(analysis).expect("it is registered").kind.tables();
            let table = answer.tables.into_iter().find(|table| table.class == class).expect("it has this table");
            let Some(Plot::Sums { values }) = table.plot else { panic!("{class} of {analysis}: {:?}", table.plot) };
            assert_eq!(values.map(|value| table.columns[value].name), names, "{class} of {analysis}");
            table
        };
        check("io", "per-thread", BYTES);
        check("io", "per-process", BYTES);
        check("io", "per-interface", ["sent_bytes", "received_bytes"]);
        let files = check("io", "per-file", BYTES);
        assert!(files.columns.iter().any(|column| column.name == "fd" && column.rank == ColumnRank::Main));
        for class in ["per-thread", "per-process", "per-cpu"] {
            check("memory", class, PAGES);
        }
    }
}
