//! The analyses that there are, by name.

use kymo_analysis::block::Block;
use kymo_analysis::count::Count;
use kymo_analysis::cpu::Cpu;
use kymo_analysis::gaps::Gaps;
use kymo_analysis::pairs::{Pairs, PairsOptions};
use kymo_analysis::rates::Rates;
use kymo_analysis::syscalls::Syscalls;
use kymo_analysis::{Analysis, Answer, Role, Setup, Wishes};

use super::{AnalyseFailure, Analysed, PairsQuestion, Question};
use crate::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::progress::Progress;

/// A ready-made analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnalysisKind {
    /// How long CPUs were busy, and with which threads.
    Cpu,
    /// Which calls into the kernel were made, how long they took, and what came of them.
    Syscalls,
    /// What block devices were asked for, and how long they took.
    Block,
    /// How long lasts what mappings say begins and ends; see [`Session::ask_pairs`] for what somebody says.
    Pairs,
    /// How many events there are in each period.
    Rates,
    /// The longest times without an event.
    Gaps,
    /// Events by class and CPU: what driving an analysis costs. [`Session::count`] is faster.
    Count,
}

impl AnalysisKind {
    /// The tables that it answers with, without rows.
    #[must_use]
    pub fn tables(self) -> Answer {
        let wishes = Wishes::default();
        let setup = Setup { classes: &[], lanes: &[], wishes: &wishes };
        match self {
            Self::Cpu => tables(&Cpu::new(&setup)),
            Self::Syscalls => tables(&Syscalls::new(&setup)),
            Self::Block => tables(&Block::new(&setup)),
            Self::Pairs => tables(&Pairs::new(&setup, &PairsOptions::default())),
            Self::Rates => tables(&Rates::new(&setup)),
            Self::Gaps => tables(&Gaps::new(&setup)),
            Self::Count => tables(&Count::new(&setup)),
        }
    }
}

fn tables<A: Analysis>(analysis: &A) -> Answer {
    analysis.finish(&analysis.init())
}

impl Session {
    /// Answers a question about the traces.
    ///
    /// # Errors
    ///
    /// There are no events that it could be about, or a mapping is wrong.
    pub fn ask(
        &self,
        kind: AnalysisKind,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        macro_rules! ask {
            ($needs:expr, $essential:expr, $make:expr) => {{ self.analyse(&Question::new($needs, $essential, &$make), options, progress) }};
        }
        match kind {
            AnalysisKind::Cpu => ask!(Cpu::needs(), &[Role::Switch], |setup: &Setup<'_>| Cpu::new(setup)),
            AnalysisKind::Syscalls => {
                ask!(Syscalls::needs(), &[Role::SyscallEntry], |setup: &Setup<'_>| Syscalls::new(setup))
            }
            AnalysisKind::Block => ask!(Block::needs(), &[Role::BlockIssue], |setup: &Setup<'_>| Block::new(setup)),
            // What mappings say begins and ends may be nested, as functions are.
            AnalysisKind::Pairs => {
                let pairs = PairsOptions { is_nested: true, ..PairsOptions::default() };
                self.ask_pairs(&PairsQuestion { pairs, ..PairsQuestion::default() }, options, progress)
            }
            AnalysisKind::Rates => ask!(Rates::needs(), &[], |setup: &Setup<'_>| Rates::new(setup)),
            AnalysisKind::Gaps => ask!(Gaps::needs(), &[], |setup: &Setup<'_>| Gaps::new(setup)),
            AnalysisKind::Count => ask!(Count::needs(), &[], |setup: &Setup<'_>| Count::new(setup)),
        }
    }
}
