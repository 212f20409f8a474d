//! An answer for each period.
//!
//! ```text
//! threads   ├0┤├1┤├─ 2 ─┤   ├3┤├─ 4 ─┤├5┤         runs of periods are read side by side
//! merged    0 ── answer, forget ── 1 ── answer, forget ── 2 ...   one after the other
//! ```
//!
//! A period may be shorter than a packet of each stream, and packets are decoded from their begin: a thread reads the periods
//! of a run without going back, so that packets are only decoded again where a run begins. Read each by itself, 2492 periods
//! of a microsecond made `kymo cpu` read k32 400 times.
//!
//! An interval that begins in one period and ends in a later one belongs to that in which it ends:
//! the state goes on from period to period, and only the counts are forgotten between them. See
//! [`Analysis::forget`]. Periods that begin and end with events (`events`) may overlap: those that
//! do not are a layer, and each layer is read by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use kymo_analysis::setup::span_ns;
use kymo_analysis::windows::Windows;
use kymo_analysis::{Answer, AnyAnalysis, AnyState, Cell, CellClass, Column, Plot, Room, Table, in_series};
use kymo_scan::Slice;

use super::part::PartReader;
use super::parts::{PartsResult, read_whole};
use super::prepare::Prepared;
use super::{AnalyseFailure, Analysed, Question, READS_MAX};
use crate::answers::analysis_options::AnalysisOptions;
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::{Report, ReportProblem};

/// More than a user looks at.
const PERIODS_MAX: u64 = 100_000;

/// From when to when; the end is not in it.
type Span = (i64, i64);

/// Which periods are asked for.
struct PeriodPlan {
    /// From when to when all of them are.
    span: Option<Span>,
    /// The columns about a period, before all else.
    columns: Vec<Column>,
    /// Periods that do not overlap, in the order of time.
    layers: Vec<Vec<PeriodSegment>>,
    /// Notes about them.
    notes: Vec<ReportProblem>,
}

/// A period, or the time between two of them.
#[derive(Clone)]
struct PeriodSegment {
    span: Span,
    /// Its cells; nothing, if they are not wanted: but something may begin there.
    label: Option<Vec<Cell>>,
}

/// Makes the analysis of a period.
type Make<'a> = dyn Fn(&Prepared) -> Box<dyn AnyAnalysis> + Sync + 'a;

/// A period to be read.
struct ReadPeriod {
    segment: PeriodSegment,
    /// Nothing goes on from the one before.
    is_first: bool,
    prepared: Prepared,
}

impl Session {
    /// Runs an analysis of each period.
    pub(super) fn analyse_periods(
        &self,
        question: &Question<'_>,
        options: &AnalysisOptions,
        room: &Room,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        let mut prepared = self.prepare(question, options)?;
        prepared.read_stacks(self, progress);
        let make = |prepared: &Prepared| (question.make)(&prepared.setup(&options.wishes, room));
        if prepared.reads_all_switches && prepared.lanes.iter().any(|lane| lane.names_no_cpu) {
            // Whether switches are of several CPUs shows only from the begin to the end.
            read_whole(self, &prepared, &*make(&prepared), true, progress).mark_mixed(&mut prepared.lanes);
        }
        let plan = match (&options.periods, options.wishes.period_ns) {
            (Some(definitions), _) => self.event_plan(definitions, options, room, progress)?,
            (None, period_ns) => length_plan(span_ns(&prepared.lanes), period_ns.unwrap_or(u64::MAX))?,
        };
        let whole = make(&prepared);
        let mut answer = whole.finish(&whole.init())?;
        let goes_on = whole.forget(&mut whole.init(), 0);
        answer.tables.iter_mut().for_each(|table| with_period(table, &plan));
        let mut report = prepared.losses(self);
        report.assumptions.extend(plan.notes.iter().cloned());
        for layer in &plan.layers {
            prepared.expect(self, progress);
            let layer: Vec<PeriodSegment> =
                layer.iter().filter(|segment| goes_on || segment.label.is_some()).cloned().collect();
            let mut periods = PeriodSequence { prepared: &prepared, make: &make, goes_on, progress, known: None };
            periods.layer(self, &layer, &mut report, |segment, of_period| {
                if let Some(label) = &segment.label {
                    add(&mut answer, in_series(of_period, &options.wishes), label, &plan);
                }
            })?;
        }
        report.assumptions.extend(prepared.stack_problems());
        if plan.layers.len() > 1 {
            let order = |row: &Vec<Cell>| match row[0] {
                Cell::TimeRange(begin, end) => (begin, end),
                _ => (None, None),
            };
            answer.tables.iter_mut().for_each(|table| table.rows.sort_by_key(order));
        }
        Ok(Analysed { answer, report })
    }
}

/// Periods one after the other.
struct PeriodSequence<'a> {
    /// All of them together.
    prepared: &'a Prepared,
    make: &'a Make<'a>,
    goes_on: bool,
    progress: &'a Progress,
    /// The state that goes on from the one before.
    known: Option<AnyState>,
}

impl PeriodSequence<'_> {
    fn layer(
        &mut self,
        session: &Session,
        layer: &[PeriodSegment],
        report: &mut Report,
        mut tell: impl FnMut(&PeriodSegment, Answer),
    ) -> Result<(), AnalyseFailure> {
        let Some(first) = layer.first().map(|segment| segment.span) else { return Ok(()) };
        let mut lanes = self.prepared.lanes.clone();
        // Holes of one period count in those that follow, not in those before.
        lanes.iter_mut().for_each(|lane| lane.holes = Windows::default());
        let most = (layer.len() / RUNS_MIN).clamp(1, RUN_PERIODS_MAX);
        let (mut segments, mut next) = (layer.iter(), None);
        loop {
            self.progress.whole(())?;
            let mut runs: Vec<PeriodRun> = next.take().into_iter().collect();
            for segment in segments.by_ref() {
                let prepared = self.prepared.within(session, segment.span, &lanes);
                lanes.clone_from(&prepared.lanes);
                let is_first = !self.goes_on || segment.span == first;
                let period = ReadPeriod { segment: segment.clone(), is_first, prepared };
                let run = runs.last_mut().filter(|run| run.periods.len() < most);
                match run.and_then(|run| Some((run.with(session, &period)?, run))) {
                    Some(((wanted, bytes), run)) => {
                        (run.wanted, run.bytes) = (wanted, bytes);
                        run.periods.push(period);
                    }
                    None => runs.push(PeriodRun::new(session, period)),
                }
                // One run more than threads shows that the last one of these is complete. It waits
                // for the next round.
                if runs.len() > session.threads.max(1) {
                    next = runs.pop();
                    break;
                }
            }
            if runs.is_empty() {
                return Ok(());
            }
            for (ReadPeriod { segment, prepared, .. }, read) in session.read_runs(self.make, runs, self.progress) {
                self.progress.whole(())?;
                if !(read.faults.is_empty() && read.doubts.is_empty() && read.left_out.is_empty()) {
                    report.add_problems(&read.report(session, &prepared));
                }
                for (lane, known) in lanes.iter_mut().zip(&prepared.lanes) {
                    lane.holes.extend(&known.holes);
                }
                let analysis = (self.make)(&prepared);
                let mut state = match self.known.take() {
                    Some(mut before) => {
                        analysis.merge(&mut before, read.state);
                        before
                    }
                    None => read.state,
                };
                tell(&segment, analysis.finish(&state)?);
                self.known = analysis.forget(&mut state, segment.span.1).then_some(state);
            }
        }
    }
}

/// Periods that a thread reads one after the other.
struct PeriodRun {
    periods: Vec<ReadPeriod>,
    /// The packets of each stream that have a part in them, and how long these are.
    wanted: Vec<Range<usize>>,
    bytes: u64,
}

/// A layer is divided into so many runs at least, that all threads have something to do. Not by the number of threads: no
/// answer may depend on that.
const RUNS_MIN: usize = 8;

/// Periods of a run at most: their states wait for those before.
const RUN_PERIODS_MAX: usize = 128;

/// Bytes of the packets of a run at most.
const RUN_BYTES_MAX: u64 = 8 << 20;

impl PeriodRun {
    fn new(session: &Session, period: ReadPeriod) -> Self {
        let wanted = period.prepared.whole.wanted.clone();
        let streams = session.streams();
        let of = |(number, range): (usize, &Range<usize>)| streams[number].1.packets.packet_bytes(range.clone());
        let bytes = wanted.iter().enumerate().map(of).sum();
        Self { periods: vec![period], wanted, bytes }
    }

    /// The packets of these and of another period, and how long they are; `None`: it is better read
    /// by itself, as there is more in between than both need.
    fn with(&self, session: &Session, period: &ReadPeriod) -> Option<(Vec<Range<usize>>, u64)> {
        let (mut shared, mut between, mut more) = (0, 0, 0);
        let mut wanted = self.wanted.clone();
        for ((known, new), (_, stream)) in wanted.iter_mut().zip(&period.prepared.whole.wanted).zip(session.streams()) {
            let of = |range: Range<usize>| if range.is_empty() { 0 } else { stream.packets.packet_bytes(range) };
            if new.is_empty() {
                continue;
            }
            if Range::is_empty(known) {
                known.clone_from(new);
                more += of(new.clone());
                continue;
            }
            shared += of(new.start.max(known.start)..known.end.min(new.end));
            between += of(known.end..new.start);
            more += of(known.end.max(new.start)..new.end);
            *known = known.start.min(new.start)..known.end.max(new.end);
        }
        let total = self.bytes + between + more;
        let most = session.slice_bytes.unwrap_or(RUN_BYTES_MAX);
        // Reading on pays off only if the packets that both need outweigh those in between.
        (between <= shared && total <= most).then_some((wanted, total))
    }
}

impl Session {
    /// Reads runs of periods, each on a thread.
    fn read_runs(&self, make: &Make<'_>, runs: Vec<PeriodRun>, progress: &Progress) -> Vec<(ReadPeriod, PartsResult)> {
        std::thread::scope(|scope| {
            let read = |run| scope.spawn(move || self.read_run(make, run, progress));
            let threads: Vec<_> = runs.into_iter().map(read).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("reading does not panic")).collect()
        })
    }

    /// Reads periods one after the other; each by itself, if not everything can be read.
    fn read_run(&self, make: &Make<'_>, run: PeriodRun, progress: &Progress) -> Vec<(ReadPeriod, PartsResult)> {
        let PeriodRun { periods, wanted, .. } = run;
        if let [first, .., last] = &*periods {
            let (begin, end) = (first.segment.span.0, Some(last.segment.span.1));
            let part = |period: &ReadPeriod| (make(&period.prepared), period.segment.span, period.is_first);
            let parts: Vec<_> = periods.iter().map(part).collect();
            let mut reader = PartReader::new(self, &first.prepared, progress);
            if let Some(states) = reader.read_run(&Slice { begin, end, wanted, bytes: 0 }, &parts) {
                let of = |state| PartsResult {
                    state,
                    faults: Vec::new(),
                    doubts: BTreeMap::new(),
                    left_out: BTreeMap::new(),
                    mixed: BTreeSet::new(),
                    set_back: BTreeMap::new(),
                };
                let mut reads: Vec<PartsResult> = states.into_iter().map(of).collect();
                if let Some(last) = reads.last_mut() {
                    reader.doubt(&mut last.doubts, &mut last.left_out);
                }
                drop(reader);
                return periods.into_iter().zip(reads).collect();
            }
        }
        periods.into_iter().map(|period| self.read_period(make, period, progress)).collect()
    }

    fn read_period(&self, make: &Make<'_>, mut period: ReadPeriod, progress: &Progress) -> (ReadPeriod, PartsResult) {
        let mut reads = 0;
        loop {
            let ReadPeriod { is_first, prepared, .. } = &mut period;
            let read = read_whole(self, prepared, &*make(prepared), *is_first, progress);
            reads += 1;
            if !read.add_holes(&mut prepared.lanes) || reads == READS_MAX {
                return (period, read);
            }
        }
    }
}

/// Periods from the beginning to the end; the last one may be shorter.
fn length_plan(span: Option<Span>, period_ns: u64) -> Result<PeriodPlan, AnalyseFailure> {
    let failure = |message: &str| AnalyseFailure::Periods(message.to_owned());
    let (begin, end) = span.ok_or_else(|| failure("packets do not say when they are: there are no periods"))?;
    let count = begin.abs_diff(end).saturating_add(1).div_ceil(period_ns.max(1));
    if count > PERIODS_MAX {
        let message = format!("that would be {count} periods; {PERIODS_MAX} are possible");
        return Err(AnalyseFailure::Periods(message));
    }
    let at = |number: u64| begin.saturating_add_unsigned(number.saturating_mul(period_ns)).min(end.saturating_add(1));
    let segment = |number| {
        let span: Span = (at(number), at(number + 1));
        PeriodSegment { span, label: Some(vec![Cell::TimeRange(Some(span.0), Some(span.1))]) }
    };
    let columns = vec![Column::new("period", "Period", CellClass::TimeRange)];
    Ok(PeriodPlan { span, columns, layers: vec![(0..count).map(segment).collect()], notes: Vec::new() })
}

/// Rows say of which period they are.
fn with_period(table: &mut Table, plan: &PeriodPlan) {
    table.columns.splice(0..0, plan.columns.iter().cloned());
    table.rows.clear();
    table.omitted = 0;
    table.span_ns = plan.span;
    let moved = |column: usize| column + plan.columns.len();
    table.plot = match table.plot.take() {
        // Bins of one period have nothing to do with those of another.
        Some(Plot::Histogram { .. }) | None => None,
        Some(Plot::Course { time, series, value }) => {
            Some(Plot::Course { time: moved(time), series: series.map(moved), value: moved(value) })
        }
        Some(Plot::Bars { value }) => Some(Plot::Bars { value: moved(value) }),
        Some(Plot::Sums { values }) => Some(Plot::Sums { values: values.map(moved) }),
    };
}

/// Adds the rows of a period.
fn add(answer: &mut Answer, of_period: Answer, label: &[Cell], plan: &PeriodPlan) {
    for (number, table) in of_period.tables.into_iter().enumerate() {
        let at = answer.tables.iter().position(|known| known.class == table.class && known.title == table.title);
        let at = at.unwrap_or_else(|| {
            let mut empty = table.clone();
            with_period(&mut empty, plan);
            let at = number.min(answer.tables.len());
            answer.tables.insert(at, empty);
            at
        });
        let known = &mut answer.tables[at];
        known.omitted += table.omitted;
        for row in table.rows {
            known.rows.push(label.iter().cloned().chain(row).collect());
        }
    }
}

mod events;
mod sums;
#[cfg(test)]
mod tests;
