//! Periods that begin and end with events.
//!
//! ```text
//! trace     ──────────────────────────────────────────>
//! layer 0     (before) ├─ 0 ─┤ (between) ├─ 2 ─┤          what began between two periods may end in one
//! layer 1     (before)    ├─ 1 ──┤                        overlaps others
//! ```

use kymo_analysis::key::KeyValue;
use kymo_analysis::periods;
use kymo_analysis::periods::{BORDERS_MAX, Borders, CAPTURES, Definitions, OPEN_PERIODS_MAX};
use kymo_analysis::windows::Windows;
use kymo_analysis::{Analysis, Cell, CellClass, Column, Room, Wishes};

use super::super::{AnalyseFailure, ReadResults};
use super::{PERIODS_MAX, PeriodPlan, PeriodSegment};
use crate::Selection;
use crate::answers::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::ReportProblem;

/// Each layer is read by itself.
const LAYERS_MAX: usize = 64;

impl Session {
    /// Finds periods that begin and end with events.
    pub(super) fn event_plan(
        &self,
        definitions: &Definitions,
        options: &AnalysisOptions,
        room: &Room,
        progress: &Progress,
    ) -> Result<PeriodPlan, AnalyseFailure> {
        let question = definitions.borders();
        // The events of an analysis are independent of the begins and ends of periods.
        let all = AnalysisOptions {
            selection: Selection { zone: options.selection.zone, ..Selection::default() },
            wishes: Wishes::default(),
            ..options.clone()
        };
        let ReadResults { analysis, state, span_ns, .. } = self.find(&question, &all, room, progress)?;
        let failure = |message: String| AnalyseFailure::Periods(message);
        let analysis: &Borders = analysis.downcast_ref();
        let state: &<Borders as Analysis>::State = state.downcast_ref();
        let borders = state.borders().ok_or_else(|| failure(too_many_borders()))?;
        let found = definitions.periods(borders);
        let count = found.ended().count();
        let never_ended = found.periods.len() - count;
        if count == 0 {
            let mut what = match (borders.len(), never_ended) {
                (0, _) => NO_BORDERS.to_owned(),
                (_, never_ended) => format!("no period has begun and ended; {never_ended} never ended"),
            };
            analysis.lacking().for_each(|lacking| what += &format!("; {lacking}"));
            return Err(failure(what));
        }
        if count as u64 > PERIODS_MAX || found.is_too_much {
            return Err(failure(format!("that would be {count} periods; {PERIODS_MAX} are possible")));
        }
        let open = "never ended, or not before their parent: these periods are left out";
        let notes = [note(never_ended as u64, open), given_up(found.given_up)].into_iter().flatten();
        let notes = notes.chain(analysis.lacking().map(problem)).collect();
        let begin = span_ns.map_or(i64::MIN, |span| span.0);
        let layers = layers(definitions, &found, begin, analysis.holes())?;
        Ok(PeriodPlan { span: span_ns, columns: columns(definitions), layers, notes })
    }
}

/// The note where there are no such events.
pub(super) const NO_BORDERS: &str = "no event begins or ends a period";

/// More than a user looks at.
pub(super) fn too_many_borders() -> String {
    format!("more than {BORDERS_MAX} events begin or end periods")
}

/// Something that is to be said of periods.
pub(super) fn problem(message: &str) -> ReportProblem {
    ReportProblem { place: "--period".to_owned(), message: message.to_owned() }
}

/// A note about some periods, if there are any.
fn note(count: u64, message: &str) -> Option<ReportProblem> {
    (count > 0).then(|| problem(&format!("{count} {message}")))
}

/// A note about those that did not begin.
pub(super) fn given_up(count: u64) -> Option<ReportProblem> {
    note(count, &format!("began while {OPEN_PERIODS_MAX} were open: these periods are left out"))
}

/// Whether periods are told apart by name.
fn are_named(definitions: &Definitions) -> bool {
    definitions.names().any(|name| !name.is_empty())
}

fn columns(definitions: &Definitions) -> Vec<Column> {
    let mut columns = vec![Column::new("period", "Period", CellClass::TimeRange)];
    if are_named(definitions) {
        columns.push(Column::new("period_name", "Name", CellClass::Text));
    }
    let captures = CAPTURES.into_iter().zip(definitions.captures());
    columns.extend(captures.map(|(name, title)| Column::new(name, title, CellClass::Mixed)));
    columns.push(Column::new("period_uncertain", "Uncertain", CellClass::Flag));
    columns
}

/// Periods that do not overlap, with the time before and between them.
fn layers(
    definitions: &Definitions,
    found: &periods::FoundPeriods,
    begin: i64,
    holes: &Windows,
) -> Result<Vec<Vec<PeriodSegment>>, AnalyseFailure> {
    let names: Vec<&str> = definitions.names().collect();
    let mut layers: Vec<Vec<PeriodSegment>> = Vec::new();
    // In one nanosecond, nothing lasts.
    let mut periods: Vec<_> = found.ended().filter(|(period, end)| period.begin < *end).collect();
    periods.sort_by_key(|(period, end)| (period.begin, period.definition, *end));
    for (period, end) in periods {
        let is_free = |layer: &Vec<PeriodSegment>| layer.last().is_none_or(|last| last.span.1 <= period.begin);
        let at = layers.iter().position(is_free).unwrap_or_else(|| {
            layers.push(Vec::new());
            layers.len() - 1
        });
        if layers.len() > LAYERS_MAX {
            let message = format!("more than {LAYERS_MAX} periods overlap");
            return Err(AnalyseFailure::Periods(message));
        }
        let layer = &mut layers[at];
        let before = layer.last().map_or(begin, |last| last.span.1);
        if before < period.begin {
            layer.push(PeriodSegment { span: (before, period.begin), label: None });
        }
        let mut label = vec![Cell::TimeRange(Some(period.begin), Some(end))];
        label.extend(are_named(definitions).then(|| Cell::Text(names[period.definition].to_owned())));
        label.extend(period.captures.iter().map(|value| value.as_ref().map_or(Cell::Empty, KeyValue::cell)));
        label.push(Cell::Flag(holes.touch(period.begin, end)));
        layer.push(PeriodSegment { span: (period.begin, end), label: Some(label) });
    }
    Ok(layers)
}
