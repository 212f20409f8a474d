//! The analyses that there are, by name.

use kymo_analysis::block::Block;
use kymo_analysis::count::Count;
use kymo_analysis::cpu::Cpu;
use kymo_analysis::declared::{Declaration, Declared};
use kymo_analysis::gaps::Gaps;
use kymo_analysis::io::Io;
use kymo_analysis::irq::Irq;
use kymo_analysis::memory::Memory;
use kymo_analysis::pairs::Pairs;
use kymo_analysis::periods::{Definitions, Periods, Sums};
use kymo_analysis::rates::Rates;
use kymo_analysis::sched::Sched;
use kymo_analysis::syscalls::Syscalls;
use kymo_analysis::whose::Whose;
use kymo_analysis::{Analysis, Answer, Role, Setup, Wishes};

use super::pairs::PairsQuestion;
use super::periods::PeriodsQuestion;
use super::{AnalyseFailure, Analysed, Question};
use crate::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::progress::Progress;

/// A ready-made analysis.
#[derive(Clone, Debug)]
pub enum AnalysisKind {
    /// How many events of each class there are.
    Count,
    /// How many events each thread, process, application and CPU has.
    Threads,
    /// How long CPUs were busy, and with which threads.
    Cpu,
    /// How long system calls took, and which failed.
    Syscalls,
    /// Who read and wrote how much, of which files and devices.
    Io,
    /// How long threads waited for a CPU, and what they did else.
    Sched,
    /// How long CPUs served interrupts, and how long softirqs waited.
    Irq,
    /// How long requests to block devices took.
    Block,
    /// Who takes pages of memory, and who gives them back.
    Memory,
    /// How many events there are over time.
    Rates,
    /// When nothing was recorded.
    Gaps,
    /// How long lasts what begins with one event and ends with another.
    Pairs(PairsQuestion),
    /// How long periods last, and of what they consist; which ones is said by [`AnalysisOptions::periods`].
    Periods(PeriodsQuestion),
    /// What somebody declared.
    Own(Declaration),
}

/// What of wishes an analysis understands; the rest would change nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Understood {
    /// Words that say what to tell apart.
    pub by: &'static [&'static str],
    /// How long something lasts at least and at most.
    pub durations: bool,
    /// How large something is.
    pub sizes: bool,
    /// Which CPUs.
    pub cpus: bool,
    /// Which threads, by number and by name.
    pub threads: bool,
    /// Which interrupts.
    pub interrupts: bool,
    /// What is called so: which calls, pairs of which groups.
    pub names: bool,
}

/// What is done with an analysis, whichever it is.
pub(super) trait Visit {
    type Output;
    fn visit<A: Analysis>(self, question: &Question<'_, A>) -> Self::Output;
}

impl AnalysisKind {
    /// The tables that it answers with, without rows.
    #[must_use]
    pub fn tables(&self) -> Answer {
        self.visit(&Wishes::default(), Tables)
    }

    /// What of wishes it understands.
    #[must_use]
    pub fn understood(&self) -> Understood {
        const CALLS: &[&str] = &["syscall", "thread", "error", "slowest", "distribution"];
        const IO: &[&str] = &["thread", "process", "file", "category", "disk", "interface", "slowest", "distribution"];
        const SCHED: &[&str] = &["total", "thread", "priority", "top", "waker", "run", "state"];
        let all = Understood { durations: true, cpus: true, threads: true, ..Understood::default() };
        match self {
            Self::Count => Understood::default(),
            Self::Threads => Understood { by: &["thread", "process", "application", "cpu"], durations: false, ..all },
            Self::Cpu => Understood { by: &["cpu", "thread", "process"], ..all },
            Self::Syscalls => Understood { by: CALLS, names: true, ..all },
            Self::Io => Understood { by: IO, sizes: true, ..all },
            Self::Sched => Understood { by: SCHED, ..all },
            Self::Irq => Understood { by: &["hard", "soft", "top", "irq"], threads: false, interrupts: true, ..all },
            Self::Block => Understood { durations: true, ..Understood::default() },
            Self::Memory => Understood { by: &["thread", "process", "cpu"], durations: false, ..all },
            Self::Rates => Understood { by: &["class", "name", "cpu", "stream"], cpus: true, ..Understood::default() },
            Self::Gaps => Understood { threads: false, ..all },
            Self::Pairs(_) => Understood { by: &["key"], names: true, ..all },
            Self::Periods(_) => Understood { durations: true, ..Understood::default() },
            Self::Own(_) => Understood { by: &["key", "value"], ..all },
        }
    }

    pub(super) fn visit<V: Visit>(&self, wishes: &Wishes, visit: V) -> V::Output {
        match self {
            Self::Count => visit.visit(&Question::new(Count::needs(), &[], &|setup| Count::new(setup))),
            Self::Threads => visit.visit(&Question::new(Whose::needs(), &[], &|setup| Whose::new(setup))),
            Self::Cpu => visit.visit(&Question::new(Cpu::needs(), &[Role::Switch], &|setup| Cpu::new(setup))),
            Self::Syscalls => {
                let make = |setup: &Setup<'_>| Syscalls::new(setup);
                visit.visit(&Question::new(Syscalls::needs(), &[Role::SyscallEntry], &make))
            }
            Self::Io => {
                let make = |setup: &Setup<'_>| Io::new(setup);
                let question = Question::new(Io::needs(), &[Role::SyscallEntry], &make);
                visit.visit(&Question { wanted: &Io::wants, ..question })
            }
            Self::Sched => visit.visit(&Question::new(Sched::needs(), &[Role::Switch], &|setup| Sched::new(setup))),
            Self::Irq => {
                let roles = [Role::IrqEntry, Role::SoftirqEntry];
                visit.visit(&Question::new(Irq::needs(), &roles, &|setup| Irq::new(setup)))
            }
            Self::Block => visit.visit(&Question::new(Block::needs(), &[Role::BlockIssue], &|setup| Block::new(setup))),
            Self::Memory => {
                let roles = [Role::PageAlloc, Role::PageFree];
                visit.visit(&Question::new(Memory::needs(), &roles, &|setup| Memory::new(setup)))
            }
            Self::Rates => {
                let make = |setup: &Setup<'_>| Rates::new(setup);
                visit.visit(&Question { has_periods: true, ..Question::new(Rates::needs(), &[], &make) })
            }
            Self::Gaps => visit.visit(&Question::new(Gaps::needs(), &[], &|setup| Gaps::new(setup))),
            Self::Pairs(pairs) => {
                let options = pairs.options();
                let make = |setup: &Setup<'_>| Pairs::new(setup, &options);
                let question = Question::new(Pairs::needs(&options, wishes), &[Role::Begin], &make);
                visit.visit(&Question { mapping: pairs.mapping(), ..question })
            }
            // Without any: `Session::ask_periods` knows them.
            Self::Periods(_) => {
                let (definitions, sums) = (Definitions::default(), Sums::default());
                let make = |setup: &Setup<'_>| Periods::new(setup, &definitions, &sums);
                visit.visit(&Question::new(Definitions::needs(), &[], &make))
            }
            Self::Own(declaration) => {
                let make = |setup: &Setup<'_>| Declared::new(setup, declaration);
                let question = Question::new(Declaration::needs(wishes), &[Role::Rule], &make);
                visit.visit(&Question { mapping: Some(declaration.mapping()), has_periods: true, ..question })
            }
        }
    }
}

struct Tables;

impl Visit for Tables {
    type Output = Answer;
    fn visit<A: Analysis>(self, question: &Question<'_, A>) -> Answer {
        let wishes = Wishes::default();
        let analysis = (question.make)(&Setup { classes: &[], lanes: &[], wishes: &wishes, room: None });
        analysis.finish(&analysis.init()).expect("nothing was put aside")
    }
}

struct Ask<'a> {
    session: &'a Session,
    options: &'a AnalysisOptions,
    progress: &'a Progress,
}

impl Visit for Ask<'_> {
    type Output = Result<Analysed, AnalyseFailure>;
    fn visit<A: Analysis>(self, question: &Question<'_, A>) -> Self::Output {
        self.session.analyse(question, self.options, self.progress)
    }
}

impl Session {
    /// Answers a question about the traces.
    ///
    /// # Errors
    ///
    /// There are no events that it could be about, a mapping is wrong, or it was cancelled.
    pub fn ask(
        &self,
        kind: &AnalysisKind,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        let asked = match kind {
            AnalysisKind::Periods(question) => self.ask_periods(question, options, progress),
            kind => kind.visit(&options.wishes, Ask { session: self, options, progress }),
        };
        progress.whole(asked)?
    }
}
