//! The periods themselves: how long they last, and the parts that they consist of.

use std::sync::Arc;

use kymo_analysis::periods::{PERIODS_MAX, PeriodsAnalysis, PeriodsQuestion};
use kymo_analysis::{Room, in_series};

use super::super::{AnalyseFailure, Analysed, ReadResults, TABLE_BYTES};
use super::events::{NO_BORDERS, given_up, problem, too_many_borders};
use crate::answers::analysis_options::AnalysisOptions;
use crate::cache::spool::FileSpool;
use crate::open::Session;
use crate::open::progress::Progress;

impl Session {
    /// Finds periods and sums them up.
    pub(in crate::answers::analyse) fn ask_periods(
        &self,
        question: &PeriodsQuestion,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        let failure = |message: String| AnalyseFailure::Periods(message);
        let which =
            || failure("which periods? --period 'NAME : BEGIN [: END]' says which events begin and end them".into());
        let definitions = options.periods.as_ref().ok_or_else(which)?;
        let PeriodsQuestion { aggregate_by, select, group_by, order } = question;
        let sums = definitions.sums(select, aggregate_by.as_deref(), group_by, *order);
        let sums = sums.map_err(|problem| failure(problem.to_string()))?;
        let room = Room { spool: Arc::new(FileSpool::default()), budget_bytes: TABLE_BYTES };
        let question = definitions.question(&sums);
        let ReadResults { analysis, state, mut report, .. } = self.find(&question, options, &room, progress)?;
        let analysis: &PeriodsAnalysis = analysis.downcast_ref();
        let found = analysis.found(state.downcast_ref()).ok_or_else(|| failure(too_many_borders()))?;
        if found.is_too_much {
            return Err(failure(format!("there are more than {PERIODS_MAX} periods")));
        }
        let is_nothing = found.periods.is_empty() && found.ended_nothing.iter().all(|count| *count == 0);
        report.assumptions.extend(is_nothing.then(|| problem(NO_BORDERS)));
        report.assumptions.extend(analysis.lacking().map(problem));
        report.assumptions.extend(given_up(found.given_up));
        drop(state);
        Ok(Analysed { answer: in_series(analysis.tables(&found), &options.wishes), report })
    }
}
