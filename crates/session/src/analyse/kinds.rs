//! The analyses that there are, by name.

use kymo_analysis::cpu::Cpu;
use kymo_analysis::{Analysis, Answer, Role, Setup, Wishes};

use super::{AnalyseFailure, Analysed, Question};
use crate::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::progress::Progress;

/// A ready-made analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnalysisKind {
    /// How long CPUs were busy, and with which threads.
    Cpu,
}

impl AnalysisKind {
    /// The tables that it answers with, without rows.
    #[must_use]
    pub fn tables(self) -> Answer {
        let wishes = Wishes::default();
        let setup = Setup { classes: &[], lanes: &[], wishes: &wishes };
        match self {
            Self::Cpu => tables(&Cpu::new(&setup)),
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
        let all = |_: Role, _: &str| true;
        match kind {
            AnalysisKind::Cpu => {
                let make = |setup: &Setup<'_>| Cpu::new(setup);
                let question = Question { needs: Cpu::needs(), essential: &[Role::Switch], wanted: &all, make: &make };
                self.analyse(&question, options, progress)
            }
        }
    }
}
