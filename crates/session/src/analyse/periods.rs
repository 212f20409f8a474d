//! An answer for each period.
//!
//! ```text
//! threads   ├─ 0 ─┤├─ 1 ─┤├─ 2 ─┤├─ 3 ─┤         periods are read side by side
//! merged    0 ── answer, forget ── 1 ── answer, forget ── 2 ...   one after the other
//! ```
//!
//! What began in one period and ends in a later one belongs to that in which it ends: the state goes on from period to
//! period, and only what was counted is forgotten between them. See [`Analysis::forget`].

use kymo_analysis::setup::span_ns;
use kymo_analysis::windows::Windows;
use kymo_analysis::{Analysis, Answer, Cell, Class, Column, Plot, Room, Table};

use super::parts::{Read, read_whole};
use super::prepare::Prepared;
use super::{AnalyseFailure, Analysed, Question, READS_MAX};
use crate::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::progress::Progress;

/// More than anybody looks at.
const PERIODS_MAX: u64 = 100_000;

/// From when to when; the end is not in it.
type Span = (i64, i64);

/// A period to be read.
struct Period {
    span: Span,
    /// Nothing goes on from the one before.
    is_first: bool,
    prepared: Prepared,
}

impl Session {
    /// Runs an analysis of each period.
    pub(super) fn analyse_periods<A: Analysis>(
        &self,
        question: &Question<'_, A>,
        options: &AnalysisOptions,
        period_ns: u64,
        (room, progress): (&Room, &Progress),
    ) -> Result<Analysed, AnalyseFailure> {
        let prepared = self.prepare(question, options)?;
        let make = |prepared: &Prepared| (question.make)(&prepared.setup(&options.wishes, room));
        let span = span_ns(&prepared.lanes);
        let spans = spans(span, period_ns)?;
        let first = spans[0];
        prepared.expect(self, progress);
        let whole = make(&prepared);
        let mut answer = whole.finish(&whole.init())?;
        let goes_on = whole.forget(&mut whole.init(), 0);
        answer.tables.iter_mut().for_each(|table| with_period(table, span));
        let (mut report, mut known) = (self.opening_report().clone(), None::<A::State>);
        let mut lanes = prepared.lanes.clone();
        // Holes of one period count in those that follow, not in those before.
        lanes.iter_mut().for_each(|lane| lane.holes = Windows::default());
        for spans in spans.chunks(self.threads.max(1)) {
            let within = |span: &Span| {
                let period = prepared.within(self, *span, &lanes);
                lanes.clone_from(&period.lanes);
                Period { span: *span, is_first: !goes_on || *span == first, prepared: period }
            };
            let batch = spans.iter().map(within).collect();
            for (Period { span, prepared, .. }, read) in self.read_batch(&make, batch, progress) {
                let of_period = prepared.report(self, &read);
                report.add_losses(&of_period);
                report.add_problems(&of_period);
                for (lane, known) in lanes.iter_mut().zip(&prepared.lanes) {
                    lane.holes.extend(&known.holes);
                }
                let analysis = make(&prepared);
                let mut state = match known.take() {
                    Some(mut before) => {
                        analysis.merge(&mut before, read.state);
                        before
                    }
                    None => read.state,
                };
                add(&mut answer, analysis.finish(&state)?, span);
                known = analysis.forget(&mut state, span.1).then_some(state);
            }
        }
        Ok(Analysed { answer, report })
    }

    /// Reads some periods, each on a thread.
    fn read_batch<A: Analysis>(
        &self,
        make: &(dyn Fn(&Prepared) -> A + Sync),
        periods: Vec<Period>,
        progress: &Progress,
    ) -> Vec<(Period, Read<A::State>)> {
        std::thread::scope(|scope| {
            let read = |period| scope.spawn(move || self.read_period(make, period, progress));
            let threads: Vec<_> = periods.into_iter().map(read).collect();
            threads.into_iter().map(|thread| thread.join().expect("reading does not panic")).collect()
        })
    }

    fn read_period<A: Analysis>(
        &self,
        make: &(dyn Fn(&Prepared) -> A + Sync),
        mut period: Period,
        progress: &Progress,
    ) -> (Period, Read<A::State>) {
        let mut reads = 0;
        loop {
            let Period { is_first, prepared, .. } = &mut period;
            let read = read_whole(self, prepared, &make(prepared), *is_first, progress);
            reads += 1;
            if !prepared.add_holes(&read.faults) || reads == READS_MAX {
                return (period, read);
            }
        }
    }
}

/// Periods from the beginning to the end; the last one may be shorter.
fn spans(span: Option<Span>, period_ns: u64) -> Result<Vec<Span>, AnalyseFailure> {
    let failure = |message: &str| AnalyseFailure::Periods(message.to_owned());
    let (begin, end) = span.ok_or_else(|| failure("packets do not say when they are: there are no periods"))?;
    let count = (begin.abs_diff(end) + 1).div_ceil(period_ns.max(1));
    if count > PERIODS_MAX {
        let message = format!("that would be {count} periods; {PERIODS_MAX} are possible");
        return Err(AnalyseFailure::Periods(message));
    }
    let at = |number: u64| begin.saturating_add_unsigned(number.saturating_mul(period_ns)).min(end + 1);
    Ok((0..count).map(|number| (at(number), at(number + 1))).collect())
}

/// Rows say of which period they are.
fn with_period(table: &mut Table, span: Option<Span>) {
    table.columns.insert(0, Column::new("period", "Period", Class::TimeRange));
    table.rows.clear();
    table.omitted = 0;
    table.span_ns = span;
    let moved = |column: usize| column + 1;
    table.plot = match table.plot.take() {
        // Bins of one period have nothing to do with those of another.
        Some(Plot::Histogram { .. }) | None => None,
        Some(Plot::Course { time, series, value }) => {
            Some(Plot::Course { time: moved(time), series: series.map(moved), value: moved(value) })
        }
        Some(Plot::Bars { value }) => Some(Plot::Bars { value: moved(value) }),
    };
}

/// Adds the rows of a period.
fn add(answer: &mut Answer, of_period: Answer, (begin, end): Span) {
    for (number, table) in of_period.tables.into_iter().enumerate() {
        let at = answer.tables.iter().position(|known| known.class == table.class && known.title == table.title);
        let at = at.unwrap_or_else(|| {
            let mut empty = table.clone();
            with_period(&mut empty, answer.tables.first().and_then(|first| first.span_ns));
            let at = number.min(answer.tables.len());
            answer.tables.insert(at, empty);
            at
        });
        let known = &mut answer.tables[at];
        known.omitted += table.omitted;
        for row in table.rows {
            let period = Cell::TimeRange(Some(begin), Some(end));
            known.rows.push([period].into_iter().chain(row).collect());
        }
    }
}

#[cfg(test)]
mod tests;
