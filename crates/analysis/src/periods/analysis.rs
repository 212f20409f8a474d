//! The analysis of periods themselves: how long they last, and the parts that they consist of.
//!
//! [`Borders`] finds the events that begin and end periods, on all cores; everything else follows
//! at the end.

use super::borders::PeriodState;
use super::{Borders, Definitions, FoundPeriods, PeriodBorder, PeriodGrouping};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, LaneNotes, PartShape, Question, Setup, SpoolError, Wishes,
};

/// The analysis.
#[derive(Debug)]
pub struct PeriodsAnalysis {
    pub(super) borders: Borders,
    pub(super) definitions: Definitions,
    pub(super) sums: PeriodGrouping,
    pub(super) wishes: Wishes,
    /// Begin and end of the lanes.
    pub(super) span_ns: Option<(i64, i64)>,
}

impl PeriodsAnalysis {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions { durations: true, ..SupportedOptions::NONE };
        const SENTENCE: &str = "Durations of periods between events, and of the parts that they consist of";
        AnalysisDescription::new("periods", "Periods", SENTENCE, OPTIONS)
            .with_view(&["statistics", "per-part", "periods"], Self::headline)
    }

    /// The question without definitions: its tables are those of all others.
    pub(crate) fn question() -> Question<'static> {
        let make = |setup: &Setup<'_>| Self::new(setup, &Definitions::default(), &PeriodGrouping::default());
        Question::new(Definitions::needs(), &[], make)
    }

    /// The analysis of these lanes; its classes are bound by [`Definitions::mapping`].
    #[must_use]
    pub fn new(setup: &Setup<'_>, definitions: &Definitions, sums: &PeriodGrouping) -> Self {
        Self {
            borders: Borders::new(setup, definitions),
            definitions: definitions.clone(),
            sums: sums.clone(),
            wishes: setup.wishes.clone(),
            span_ns: setup.span_ns(),
        }
    }

    /// Messages about fields that no event has.
    pub fn lacking(&self) -> impl Iterator<Item = &str> {
        self.borders.lacking()
    }

    /// The periods, for [`PeriodsAnalysis::tables`]; `None`: too many events begin or end some.
    #[must_use]
    pub fn found(&self, state: &PeriodState) -> Option<FoundPeriods> {
        let borders: &[PeriodBorder] = state.borders()?;
        Some(self.definitions.periods(borders))
    }
}

impl Analysis for PeriodsAnalysis {
    type State = PeriodState;
    type Lane<'a> = ();
    type Note = <Borders as Analysis>::Note;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "periods", version: 1 }
    }

    fn shape(&self) -> PartShape {
        self.borders.shape()
    }

    fn init(&self) -> PeriodState {
        self.borders.init()
    }

    fn enter(&self, _: usize) {}

    fn step(&self, (): &mut (), event: &AnalysisEvent<'_>, notes: &mut LaneNotes<Self::Note>) {
        self.borders.step(&mut (), event, notes);
    }

    fn note(&self, state: &mut PeriodState, lane: usize, time: i64, note: Self::Note) {
        self.borders.note(state, lane, time, note);
    }

    fn leave(&self, _: &mut PeriodState, _: usize, (): ()) {}

    fn merge(&self, left: &mut PeriodState, right: PeriodState) {
        self.borders.merge(left, right);
    }

    /// No tables if there are too many periods: see [`PeriodsAnalysis::found`].
    fn finish(&self, state: &PeriodState) -> Result<Answer, SpoolError> {
        Ok(self.tables(&self.found(state).unwrap_or_default()))
    }
}
