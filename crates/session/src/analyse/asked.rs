//! Analyses that are told what they are about: which events belong together, or all of it in a file.
//!
//! ```text
//! PairsQuestion ──┐
//!                 ├──> a mapping of its own, before all others ──> Question
//! Declaration ────┘
//! ```

use kymo_analysis::declared::{Declaration, Declared};
use kymo_analysis::pairs::{Events, Pairs, PairsOptions, mapping};
use kymo_analysis::{Role, Setup};

use super::{AnalyseFailure, Analysed, Question, wishes};
use crate::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::progress::Progress;

/// What belongs together.
#[derive(Clone, Debug, Default)]
pub struct PairsQuestion {
    /// What begins; neither this nor an end: what mappings say.
    pub begin: Vec<Events>,
    /// What ends.
    pub end: Vec<Events>,
    /// Keys, groups, and whether beginnings are nested.
    pub pairs: PairsOptions,
}

impl Session {
    /// How long lasts what begins with one event and ends with another.
    ///
    /// # Errors
    ///
    /// No event begins anything, or a mapping is wrong.
    pub fn ask_pairs(
        &self,
        asked: &PairsQuestion,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        let make = |setup: &Setup<'_>| Pairs::new(setup, &asked.pairs);
        let needs = Pairs::needs(&asked.pairs, &wishes(options));
        let mut question = Question::new(needs, &[Role::Begin], &make);
        if !asked.begin.is_empty() || !asked.end.is_empty() {
            question.mapping = Some(mapping(asked.begin.clone(), asked.end.clone()));
        }
        self.analyse(&question, options, progress)
    }

    /// Runs an analysis that somebody declared in a file.
    ///
    /// # Errors
    ///
    /// None of its rules fits an event, or a mapping is wrong.
    pub fn ask_declared(
        &self,
        declaration: &Declaration,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        let make = |setup: &Setup<'_>| Declared::new(setup, declaration);
        let mut question = Question::new(Declaration::needs(&wishes(options)), &[Role::Rule], &make);
        question.mapping = Some(declaration.mapping());
        self.analyse(&question, options, progress)
    }
}
