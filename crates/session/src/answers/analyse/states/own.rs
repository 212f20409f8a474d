//! In which states of an own analysis things are at an instant.

use std::path::{Path, PathBuf};

use kymo_analysis::declared::{AnalysisDeclaration, History, HistoryTexts};
use kymo_analysis::mapping::MappingErrors;
use kymo_analysis::runs::StateRun;
use kymo_analysis::{Answer, Setup, Table, Wishes};

use super::super::{AnalyseFailure, Analysed};
use super::{RunMeanings, RunRequest, into_runs};
use crate::answers::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::open::progress::Progress;

/// The states of an own analysis.
#[derive(Clone, Debug)]
pub struct OwnStates {
    path: PathBuf,
    text: String,
    states: AnalysisDeclaration,
}

impl OwnStates {
    /// Those of a file, from its text.
    ///
    /// # Errors
    ///
    /// All that is wrong with it.
    pub fn parse(path: &Path, text: &str) -> Result<Self, MappingErrors> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Self { path, text: text.to_owned(), states: AnalysisDeclaration::parse(text)?.states() })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.items.is_empty()
    }

    /// The tables that they are shown in, without rows.
    pub(super) fn tables(&self) -> Vec<Table> {
        let (wishes, traces, stacks) = (&Wishes::default(), &[], None);
        let setup = Setup { classes: &[], lanes: &[], wishes, room: None, traces, stacks };
        let history = History::new(&setup, &self.states);
        let (_, texts) = history.into_runs(kymo_analysis::Analysis::init(&history));
        texts.at(0, &Wishes::default(), &[]).tables
    }
}

impl RunMeanings for HistoryTexts {
    fn at(&self, at: i64, wishes: &Wishes, runs: &[StateRun]) -> Answer {
        Self::at(self, at, wishes, runs)
    }
}

impl Session {
    pub(super) fn own_states_at(
        &self,
        at_ns: i64,
        own: &OwnStates,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        let question = own.states.history();
        let into_runs = into_runs(History::into_runs);
        let wanted = RunRequest {
            question: &question,
            into_runs: &into_runs,
            name: own.path.as_os_str().as_encoded_bytes(),
            text: own.text.as_bytes(),
        };
        // Keys are no CPUs or threads.
        let wishes = Wishes { top: options.wishes.top, ..Wishes::default() };
        self.runs_at(at_ns, &wanted, &AnalysisOptions { wishes, ..options.clone() }, progress)
    }
}

/// What CPUs and threads do, then own states; of traces that tell one of them, that.
pub(super) fn both(
    all: Result<Analysed, AnalyseFailure>,
    own: Result<Analysed, AnalyseFailure>,
) -> Result<Analysed, AnalyseFailure> {
    match (all, own) {
        (Ok(mut all), Ok(own)) => {
            all.answer.tables.extend(own.answer.tables);
            all.report.add_problems(&own.report);
            all.report.raise_losses(&own.report);
            Ok(all)
        }
        // No event tells who runs, or those that do are of another time.
        (Err(AnalyseFailure::NoRole { .. } | AnalyseFailure::Outside { .. }), own) => own,
        (Ok(all), Err(AnalyseFailure::Outside { .. })) => Ok(all),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}
