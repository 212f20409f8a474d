//! Events that begin or end periods, found in parts of the trace on all cores. These are few
//! compared with all events.

use serde::{Deserialize, Serialize};

use super::Definitions;
use crate::key::KeyValue;
use crate::roles::{EventRole, rule};
use crate::windows::Windows;
use crate::{Analysis, AnalysisEvent, AnalysisIdentity, Answer, LaneNotes, PartShape, Setup, SpoolError};

/// An event that may begin or end a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodBorder {
    /// Its time.
    pub time: i64,
    /// Number of the rule.
    pub rule: u32,
    /// Values of the rule's fields.
    pub values: Vec<Option<KeyValue>>,
}

/// The analysis.
#[derive(Debug)]
pub struct Borders {
    /// Number of fields that each rule needs.
    fields: Vec<usize>,
    holes: Windows,
    lacking: Vec<String>,
}

/// The state behind a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PeriodState {
    borders: Vec<PeriodBorder>,
    is_too_much: bool,
}

/// Maximum number of events that begin or end periods: they stay in memory.
pub const BORDERS_MAX: usize = 1 << 20;

impl Borders {
    /// The analysis of these lanes; its classes are bound by [`Definitions::mapping`].
    #[must_use]
    pub fn new(setup: &Setup<'_>, definitions: &Definitions) -> Self {
        Self { fields: definitions.fields(), holes: setup.holes(), lacking: definitions.lacking(setup.classes) }
    }

    /// Messages about fields that no event has.
    pub fn lacking(&self) -> impl Iterator<Item = &str> {
        self.lacking.iter().map(String::as_str)
    }

    /// Where events may be missing.
    #[must_use]
    pub fn holes(&self) -> &Windows {
        &self.holes
    }
}

impl PeriodState {
    /// The borders, in the order of events; `None`: more than [`BORDERS_MAX`].
    #[must_use]
    pub fn borders(&self) -> Option<&[PeriodBorder]> {
        (!self.is_too_much).then_some(&self.borders)
    }

    fn tidy(&mut self) {
        if self.borders.len() > BORDERS_MAX {
            *self = Self { borders: Vec::new(), is_too_much: true };
        }
    }
}

impl Analysis for Borders {
    type State = PeriodState;
    type Lane<'a> = ();
    type Note = (u32, Vec<Option<KeyValue>>);

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "borders", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> PeriodState {
        PeriodState::default()
    }

    fn enter(&self, _: usize) {}

    fn step(&self, (): &mut (), event: &AnalysisEvent<'_>, notes: &mut LaneNotes<Self::Note>) {
        if event.time == i64::MIN {
            return;
        }
        for meaning in event.roles().filter(|meaning| meaning.role == EventRole::Rule) {
            let number = meaning.integer(rule::NUMBER).and_then(|number| u32::try_from(number).ok());
            let fields = number.and_then(|number| self.fields.get(number as usize));
            if let Some((number, fields)) = number.zip(fields) {
                let values = (0..*fields).map(|place| meaning.value(rule::KEY_1 + place).map(KeyValue::from)).collect();
                notes.push(event.time, (number, values));
            }
        }
    }

    fn note(&self, state: &mut PeriodState, _: usize, time: i64, (rule, values): Self::Note) {
        if !state.is_too_much {
            state.borders.push(PeriodBorder { time, rule, values });
            state.tidy();
        }
    }

    fn leave(&self, _: &mut PeriodState, _: usize, (): ()) {}

    fn merge(&self, left: &mut PeriodState, right: PeriodState) {
        left.is_too_much |= right.is_too_much;
        left.borders.extend(right.borders);
        if left.is_too_much {
            left.borders.clear();
        }
        left.tidy();
    }

    fn finish(&self, _: &PeriodState) -> Result<Answer, SpoolError> {
        Ok(Answer::default())
    }
}
