//! The analysis of periods themselves: how long they last, and the parts that they consist of.
//!
//! [`Borders`] finds the events that begin and end periods, on all cores; everything else follows
//! at the end.

use super::borders::State;
use super::{Border, Borders, Definitions, Found, Sums};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::{Analysis, Answer, Event, Identity, Notes, Question, Setup, Shape, SpoolError, Wishes};

/// The analysis.
#[derive(Debug)]
pub struct Periods {
    pub(super) borders: Borders,
    pub(super) definitions: Definitions,
    pub(super) sums: Sums,
    pub(super) wishes: Wishes,
    /// Begin and end of the lanes.
    pub(super) span_ns: Option<(i64, i64)>,
}

impl Periods {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions { durations: true, ..SupportedOptions::NONE };
        const SENTENCE: &str = "Durations of periods between events, and of the parts that they consist of";
        AnalysisDescription::new("periods", "Periods", SENTENCE, OPTIONS)
    }

    /// The question without definitions: its tables are those of all others.
    pub(crate) fn question() -> Question<'static> {
        let make = |setup: &Setup<'_>| Self::new(setup, &Definitions::default(), &Sums::default());
        Question::new(Definitions::needs(), &[], make)
    }

    /// The analysis of these lanes; its classes are bound by [`Definitions::mapping`].
    #[must_use]
    pub fn new(setup: &Setup<'_>, definitions: &Definitions, sums: &Sums) -> Self {
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

    /// The periods, for [`Periods::tables`]; `None`: too many events begin or end some.
    #[must_use]
    pub fn found(&self, state: &State) -> Option<Found> {
        let borders: &[Border] = state.borders()?;
        Some(self.definitions.periods(borders))
    }
}

impl Analysis for Periods {
    type State = State;
    type Lane<'a> = ();
    type Note = <Borders as Analysis>::Note;

    fn identity(&self) -> Identity {
        Identity { name: "periods", version: 1 }
    }

    fn shape(&self) -> Shape {
        self.borders.shape()
    }

    fn init(&self) -> State {
        self.borders.init()
    }

    fn enter(&self, _: usize) {}

    fn step(&self, (): &mut (), event: &Event<'_>, notes: &mut Notes<Self::Note>) {
        self.borders.step(&mut (), event, notes);
    }

    fn note(&self, state: &mut State, lane: usize, time: i64, note: Self::Note) {
        self.borders.note(state, lane, time, note);
    }

    fn leave(&self, _: &mut State, _: usize, (): ()) {}

    fn merge(&self, left: &mut State, right: State) {
        self.borders.merge(left, right);
    }

    /// No tables if there are too many periods: see [`Periods::found`].
    fn finish(&self, state: &State) -> Result<Answer, SpoolError> {
        Ok(self.tables(&self.found(state).unwrap_or_default()))
    }
}
