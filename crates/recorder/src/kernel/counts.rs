//! Counts beside the kernel's events: programs in the kernel count, a thread reads the counts each second, and converters make events of
//! them.
//!
//! ```text
//! words ── watch::asked ──> request for the helper, and columns
//! each second    counts since the beginning ──> those of the second ──> kept
//! converter      kept ──> `watch:row`, `watch:interval`; at the end `watch:total`, `watch:bucket`, `watch:end`
//! ```
//!
//! A converter takes the counts that are kept. Of a flight recorder the newest stay, and each snapshot has them.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kymo_ftrace::fields::FieldList;
use kymo_lane::ClockSource;
use kymo_probe::helper::KnownEvents;
use kymo_probe::watch::WatchRequest;
use kymo_writer::WriteError;

use crate::clock;
use crate::kernel::KernelShared;
use crate::kernel::output::KernelOutput;
use crate::kernel::state::{SharedHelper, lock};
use crate::kernel::wanted::WantedTimes;
use crate::tracepoints::WatchSummary;
use crate::watch::events::CountEvents;
use crate::watch::{self, CountedColumns, WatchOptions, WatchTotals};

/// Between two readings of counts.
const EACH: Duration = Duration::from_secs(1);
/// Between two looks whether the recording is over.
const LOOK: Duration = Duration::from_millis(20);
/// Rows that wait for the converter, or that a flight recorder keeps, at most; and times of a flight recorder.
const ROWS_KEPT: usize = 1 << 16;
const TIMES_KEPT: usize = 1 << 10;

/// A question of a recording.
#[derive(Clone, Debug)]
pub(super) struct CountedQuestion {
    options: WatchOptions,
    pub(super) request: WatchRequest,
    columns: CountedColumns,
    notes: Vec<String>,
}

/// Looks up the names of questions.
pub(super) fn asked(options: &[WatchOptions], known: &KnownEvents) -> Result<Vec<CountedQuestion>, String> {
    let names = known.tracefs_absent.is_none().then_some(&known.events[..]);
    let of = |options: &WatchOptions| {
        let about = |why: String| format!("watch `{}`: {}", options.name, why.trim_end());
        let (request, columns, notes) = watch::asked(options, names).map_err(about)?;
        Ok(CountedQuestion { options: options.clone(), request, columns, notes })
    };
    options.iter().map(of).collect()
}

/// Counts that are read for converters.
#[derive(Debug)]
pub(super) struct CountSource {
    helper: SharedHelper,
    clock: ClockSource,
    questions: Vec<CountedQuestion>,
    /// Snapshots convert.
    is_flight: bool,
    kept: Mutex<KeptCounts>,
}

#[derive(Debug, Default)]
struct KeptCounts {
    times: VecDeque<CountedTime>,
    /// Rows of all times.
    rows: usize,
    /// By question: the last counts since its beginning, and whether the last reading has brought them.
    totals: Vec<(Arc<WatchTotals>, bool)>,
}

/// Counts of a question in a time that ended at these ticks.
#[derive(Clone, Debug)]
struct CountedTime {
    question: usize,
    ticks: u64,
    counts: Arc<WatchTotals>,
}

impl CountSource {
    /// Begins; counts from before, by a recorder that was killed, are only in those of the end.
    pub(super) fn new(
        questions: Vec<CountedQuestion>,
        helper: &SharedHelper,
        clock: ClockSource,
        (is_flight, is_resumed): (bool, bool),
    ) -> Result<Self, String> {
        let mut kept = KeptCounts::default();
        for (number, question) in questions.iter().enumerate() {
            let before = is_resumed.then(|| lock(helper).counts_beside(number));
            let before = before.transpose().map_err(|problem| problem.to_string())?;
            let before = before.map(|counts| WatchTotals::new(counts, &question.columns));
            kept.totals.push((Arc::new(before.unwrap_or_default()), true));
        }
        Ok(Self { helper: Arc::clone(helper), clock, questions, is_flight, kept: Mutex::new(kept) })
    }

    fn kept(&self) -> MutexGuard<'_, KeptCounts> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads counts each second until the recording is over, and then the last ones.
    pub(super) fn run(&self, shared: &KernelShared) {
        let mut read = Instant::now();
        loop {
            let is_over = shared.is_over.load(Ordering::Acquire);
            if is_over || read.elapsed() >= EACH && self.has_room() {
                read = Instant::now();
                self.read(shared);
            }
            if is_over {
                break;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether the converter has taken most of the counts before; otherwise the time lasts longer, and no count is lost.
    fn has_room(&self) -> bool {
        self.is_flight || self.kept().rows < ROWS_KEPT
    }

    /// Reads the counts until now.
    pub(super) fn read(&self, shared: &KernelShared) {
        // All the time: counts of one time are the difference of two readings.
        let mut kept = self.kept();
        for (number, question) in self.questions.iter().enumerate() {
            match lock(&self.helper).counts_beside(number) {
                Ok(counts) => {
                    let totals = Arc::new(WatchTotals::new(counts, &question.columns));
                    let counts = Arc::new(totals.since(&kept.totals[number].0));
                    kept.rows += counts.groups.len();
                    // Converters have all that ended before they look.
                    kept.times.push_back(CountedTime { question: number, ticks: clock::ticks(self.clock), counts });
                    kept.totals[number] = (totals, true);
                }
                Err(problem) => {
                    kept.totals[number].1 = false;
                    shared.problem(format!("counts of `{}` cannot be read: {problem}", question.options.name));
                }
            }
        }
        while self.is_flight && (kept.rows > ROWS_KEPT || kept.times.len() > TIMES_KEPT) {
            let Some(oldest) = kept.times.pop_front() else { break };
            kept.rows -= oldest.counts.groups.len();
        }
        let told = self.summaries(&kept);
        drop(kept);
        shared.count(|summary| summary.watches = told);
    }

    /// The counts for the summary, until now.
    pub(super) fn summary(&self) -> Vec<WatchSummary> {
        self.summaries(&self.kept())
    }

    fn summaries(&self, kept: &KeptCounts) -> Vec<WatchSummary> {
        self.questions.iter().zip(&kept.totals).map(|(question, totals)| question.summary(totals)).collect()
    }

    /// Counts as they are added; of a flight recorder, those that are kept now.
    pub(super) fn feed(self: &Arc<Self>) -> CountFeed {
        let events = self.questions.iter().map(|question| {
            let WatchOptions { name, words, .. } = &question.options;
            CountEvents::new(name, words, question.columns.clone())
        });
        let times = if self.is_flight { self.kept().times.clone() } else { VecDeque::new() };
        CountFeed { source: Arc::clone(self), events: events.collect(), times, written: 0 }
    }
}

impl CountedQuestion {
    fn summary(&self, (totals, is_complete): &(Arc<WatchTotals>, bool)) -> WatchSummary {
        WatchSummary {
            name: self.options.name.clone(),
            words: self.options.words.clone(),
            events: totals.count(),
            rows: totals.groups.len() as u64,
            map_full: totals.unplaced,
            interrupted: totals.missed,
            unbegun: self.columns.is_pair.then_some(totals.unbegun),
            is_complete: *is_complete,
            notes: self.notes.clone(),
        }
    }
}

/// Counts for a converter.
#[derive(Debug)]
pub(super) struct CountFeed {
    source: Arc<CountSource>,
    events: Vec<CountEvents>,
    /// Those that are not in the trace yet.
    times: VecDeque<CountedTime>,
    /// Events in the trace.
    pub(super) written: u64,
}

impl CountFeed {
    /// Takes the counts that were read since the last time.
    fn take(&mut self) {
        if !self.source.is_flight {
            let mut kept = self.source.kept();
            self.times.append(&mut kept.times);
            kept.rows = 0;
        }
    }

    /// Writes the counts of times of which it is known whether they are wanted; returns whether there were any.
    pub(super) fn convert(&mut self, output: &mut KernelOutput, wanted: &WantedTimes) -> Result<bool, WriteError> {
        self.take();
        let mut is_busy = false;
        while let Some(time) = self.times.pop_front_if(|time| time.ticks <= wanted.known_until) {
            is_busy = true;
            if wanted.has(time.ticks) {
                let (number, written) = (time.question, &mut self.written);
                let name = &self.source.questions[number].options.name;
                let put = |event, fields: &FieldList| {
                    *written += 1;
                    output.count_event(time.ticks, (number, name), (event, fields))
                };
                self.events[number].interval(&time.counts, time.counts.counted_ns, put)?;
            }
        }
        if is_busy { output.flush_beside().map(|()| true) } else { Ok(false) }
    }

    /// Whether counts wait for conversion.
    pub(super) fn waits(&self) -> bool {
        !self.times.is_empty() || !self.source.is_flight && !self.source.kept().times.is_empty()
    }

    /// The trace ends: it tells all counts since the beginning.
    pub(super) fn end(&mut self, output: &mut KernelOutput, wanted: &WantedTimes) -> Result<(), WriteError> {
        self.convert(output, wanted)?;
        let totals = self.source.kept().totals.clone();
        let ticks = clock::ticks(self.source.clock);
        for (number, (events, (counts, is_complete))) in self.events.iter().zip(totals).enumerate() {
            let written = &mut self.written;
            let name = &self.source.questions[number].options.name;
            events.end(&counts, (counts.counted_ns, is_complete), |event, fields| {
                *written += 1;
                output.count_event(ticks, (number, name), (event, fields))
            })?;
        }
        output.flush_beside()
    }
}
