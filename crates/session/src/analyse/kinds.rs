//! The analyses that there are, by name.

use kymo_analysis::block::Block;
use kymo_analysis::count::Count;
use kymo_analysis::cpu::Cpu;
use kymo_analysis::declared::Declaration;
use kymo_analysis::gaps::Gaps;
use kymo_analysis::io::Io;
use kymo_analysis::irq::Irq;
use kymo_analysis::memory::Memory;
use kymo_analysis::pairs::Pairs;
use kymo_analysis::periods::Periods;
use kymo_analysis::rates::Rates;
use kymo_analysis::sched::Sched;
use kymo_analysis::syscalls::Syscalls;
use kymo_analysis::whose::Whose;
use kymo_analysis::{Answer, Question, Setup, Wishes};

use super::pairs::PairsQuestion;
use super::periods::PeriodsQuestion;
use super::{AnalyseFailure, Analysed};
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

impl AnalysisKind {
    /// The tables that it answers with, without rows.
    #[must_use]
    pub fn tables(&self) -> Answer {
        let wishes = Wishes::default();
        let question = self.question(&wishes);
        let analysis = (question.make)(&Setup { classes: &[], lanes: &[], wishes: &wishes, room: None });
        analysis.finish(&analysis.init()).expect("nothing was put aside")
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

    /// What is asked of traces.
    pub(super) fn question(&self, wishes: &Wishes) -> Question<'_> {
        match self {
            Self::Count => Count::question(),
            Self::Threads => Whose::question(),
            Self::Cpu => Cpu::question(),
            Self::Syscalls => Syscalls::question(),
            Self::Io => Io::question(),
            Self::Sched => Sched::question(),
            Self::Irq => Irq::question(),
            Self::Block => Block::question(),
            Self::Memory => Memory::question(),
            Self::Rates => Rates::question(),
            Self::Gaps => Gaps::question(),
            Self::Pairs(pairs) => Pairs::question(pairs.options(), pairs.mapping(), wishes),
            // Without definitions: `Session::ask_periods` has them.
            Self::Periods(_) => Periods::question(),
            Self::Own(declaration) => declaration.question(wishes),
        }
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
            kind => self.analyse(&kind.question(&options.wishes), options, progress),
        };
        progress.whole(asked)?
    }
}
