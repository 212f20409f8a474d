//! So many rows from a place on, or before it; and how many there are.
//!
//! ```text
//! packets   [  ][  ][    ][ ][  ][   ]|        the place
//!                        4│   1│              windows of packets back from it, each of more bytes than the one before,
//!                         └────┴── read ──>   are read forwards; of each the last rows are kept
//! ```
//!
//! So rows near the place are found quickly in a trace of any size, and no more is kept than was
//! asked for.
//!
//! Several events may be of one time. A place is behind so many rows of its time, in the order in which rows come: for the same
//! question it is always the same one.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::str::FromStr;
use std::sync::Arc;

use kymo_scan::DataStream;
use kymo_table::RecordBatch;
use kymo_table::arrow::array::{Array, AsArray, BooleanArray};
use kymo_table::arrow::compute::filter_record_batch;
use kymo_table::arrow::datatypes::{DataType, Int64Type, SchemaRef, TimestampNanosecondType, UInt32Type};

use super::stream::EventPartition;
use super::{EventTable, EventsFailure, EventsPlan, EventsQuestion};
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::ReportProblem;
use crate::timeline::EventsOfThreads;

/// Rows of a page at most.
pub const PAGE_ROWS_MAX: u64 = 10_000;
/// Bytes of packets of the first window, and of the last ones.
const WINDOW_BYTES: u64 = 1 << 20;
const WINDOW_BYTES_MAX: u64 = 64 << 20;
/// The column that a place is found by.
const TIME: &str = "time";
/// The column by which it is known on which CPU an event happened.
const STREAM: &str = "stream";

/// A place between two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPlace {
    /// When, in nanoseconds since the clock's origin.
    pub time_ns: i64,
    /// Behind so many rows of that time.
    pub behind: u64,
}

/// As text: the time, and behind a point the number if it is not 0.
impl fmt::Display for RowPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.behind {
            0 => write!(f, "{}", self.time_ns),
            behind => write!(f, "{}.{behind}", self.time_ns),
        }
    }
}

/// The text is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a place is a time in nanoseconds, or with a point behind it how many rows of that time are before it: `1500.2`"
)]
pub struct NotAPlace;

impl FromStr for RowPlace {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (time, behind) = text.split_once('.').unwrap_or((text, "0"));
        let is_plain = !time.starts_with('+') && behind.bytes().all(|byte| byte.is_ascii_digit());
        let place = time.parse().ok().zip(behind.parse().ok()).filter(|_| is_plain);
        place.map(|(time_ns, behind)| Self { time_ns, behind }).ok_or(NotAPlace)
    }
}

/// Which rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOf {
    /// The first ones behind a place.
    From(RowPlace),
    /// The last ones before it.
    Before(RowPlace),
}

/// Rows in the order of time.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The rows.
    pub batches: Vec<RecordBatch>,
    /// The place before the first row: the page before goes on there.
    pub before: RowPlace,
    /// The place behind the last row.
    pub after: RowPlace,
    /// There are no more rows in the direction that was asked for.
    pub is_end: bool,
    /// Files of which rows may be missing: they were removed or truncated while the traces were open.
    pub missing: Vec<ReportProblem>,
    /// No rows of wanted threads are missing because the timeline, which knows when threads ran, is still being read.
    pub is_complete: bool,
}

/// How many events there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCount {
    /// So many, or about so many.
    pub events: u64,
    /// All of them were counted.
    pub is_exact: bool,
}

/// A table of events for looking at a few of them.
#[derive(Clone, Debug)]
pub struct EventPages {
    plan: Arc<EventsPlan>,
    /// The columns that are asked for.
    shown: Vec<usize>,
    schema: SchemaRef,
    schema_to_show: SchemaRef,
    time: usize,
    stream: usize,
    /// Only events of these threads.
    threads: Option<Arc<EventsOfThreads>>,
}

/// Rows with the place before each of them.
type Placed = (RecordBatch, Vec<RowPlace>);

/// Rows of a window, of which the last ones are kept.
struct WindowRows {
    batches: VecDeque<Placed>,
    rows: usize,
    most: usize,
}

impl WindowRows {
    fn push(&mut self, batch: RecordBatch, places: Vec<RowPlace>) {
        self.rows += places.len();
        self.batches.push_back((batch, places));
        while self.batches.front().is_some_and(|(_, places)| self.rows - places.len() >= self.most) {
            self.rows -= self.batches.pop_front().map_or(0, |(_, places)| places.len());
        }
    }

    /// The last rows and their places.
    fn finish(mut self) -> Vec<Placed> {
        let more = self.rows.saturating_sub(self.most);
        if let Some((batch, places)) = self.batches.front_mut() {
            *batch = batch.slice(more, batch.num_rows() - more);
            places.drain(..more);
        }
        self.batches.into()
    }
}

impl Session {
    /// Events of which a few are looked at, at any place.
    ///
    /// # Errors
    ///
    /// There are no such events or columns, or some events have no time.
    pub fn event_pages(self: &Arc<Self>, question: &EventsQuestion) -> Result<EventPages, EventsFailure> {
        if self.streams().iter().any(|(_, stream)| stream.clock.is_none()) {
            return Err(EventsFailure::NoTimes);
        }
        let mut question = question.clone();
        let asked = question.columns.as_ref().map(Vec::len);
        for needed in [TIME, STREAM] {
            if let Some(columns) =
                question.columns.as_mut().filter(|columns| !columns.iter().any(|name| name == needed))
            {
                columns.push(needed.to_owned());
            }
        }
        let plan = self.events(&question)?.plan;
        let schema = plan.columns.schema();
        let (time, stream) = (schema.index_of(TIME)?, schema.index_of(STREAM)?);
        let shown: Vec<usize> = (0..asked.unwrap_or(schema.fields().len())).collect();
        let schema_to_show = Arc::new(plan.columns.schema_to_show().project(&shown)?);
        let schema = Arc::new(schema.project(&shown)?);
        Ok(EventPages { plan, shown, schema, schema_to_show, time, stream, threads: None })
    }
}

impl EventPages {
    /// Only those events that are of some threads.
    #[must_use]
    pub fn of_threads(self, threads: EventsOfThreads) -> Self {
        Self { threads: Some(Arc::new(threads)), ..self }
    }

    /// Those rows of a batch that are of the wanted threads.
    fn of_wanted(&self, batch: RecordBatch, progress: &Progress) -> Result<RecordBatch, EventsFailure> {
        let Some(threads) = &self.threads else { return Ok(batch) };
        let streams = batch.column(self.stream).as_primitive::<UInt32Type>().iter();
        let are_of = threads.are_of(streams.zip(times(&batch, self.time)), progress)?;
        Ok(filter_record_batch(&batch, &BooleanArray::from(are_of))?)
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same with facts about columns that are shown to people, as
    /// [`EventTable::schema_to_show`] has it.
    ///
    /// [`EventTable::schema_to_show`]: super::EventTable::schema_to_show
    #[must_use]
    pub fn schema_to_show(&self) -> &SchemaRef {
        &self.schema_to_show
    }

    /// So many rows at a place, [`PAGE_ROWS_MAX`] at most.
    ///
    /// # Errors
    ///
    /// The request was canceled.
    pub fn page(&self, of: PageOf, limit: u64, progress: &Arc<Progress>) -> Result<EventPage, EventsFailure> {
        let limit = limit.min(PAGE_ROWS_MAX) as usize;
        let (found, is_end, place) = match of {
            PageOf::From(place) => {
                let (found, is_end) = self.from(place, limit, progress)?;
                (found, is_end, place)
            }
            PageOf::Before(place) => {
                let (found, is_end) = self.back(place, limit, progress)?;
                (found, is_end, place)
            }
        };
        let behind = |place: &RowPlace| RowPlace { behind: place.behind + 1, ..*place };
        let mut places = found.iter().flat_map(|(_, places)| places);
        let first = places.next().copied();
        let last = places.last().or(first.as_ref()).map(behind);
        let batches = found.iter().map(|(batch, _)| batch.project(&self.shown)).collect::<Result<_, _>>()?;
        let (before, after) = (first.unwrap_or(place), last.unwrap_or(place));
        let missing = self.missing();
        Ok(EventPage { batches, before, after, is_end, missing, is_complete: self.is_complete() })
    }

    /// How many events there are: counted if that takes no more than so many bytes of packets, else as many as there are about, if
    /// they are everywhere as often as where they were counted.
    ///
    /// # Errors
    ///
    /// The request was canceled.
    pub fn count(&self, bytes_max: u64, progress: &Arc<Progress>) -> Result<EventCount, EventsFailure> {
        let all = bytes(&self.plan.wanted());
        if all <= bytes_max {
            let events = self.count_between((self.plan.begin_ns, self.plan.end_ns), progress)?;
            return Ok(EventCount { events, is_exact: self.is_complete() && self.missing().is_empty() });
        }
        // Slices at even distances, as many as may be read.
        let table = EventTable { plan: Arc::clone(&self.plan) };
        let chunks = table.chunks(2);
        let step = usize::try_from(all.div_ceil(bytes_max.max(1))).unwrap_or(usize::MAX).min(chunks.len());
        let (mut read, mut events) = (0, 0);
        for chunk in chunks.iter().skip(step / 2).step_by(step) {
            let Some(slice) = &chunk.slice else {
                let events = self.count_between((self.plan.begin_ns, self.plan.end_ns), progress)?;
                return Ok(EventCount { events, is_exact: self.is_complete() && self.missing().is_empty() });
            };
            let mut partition = EventPartition::of_chunk(&self.plan, chunk).cancelled_by(progress);
            events += self.rows(&mut partition, progress)?;
            read += slice.bytes;
        }
        let about = u128::from(events) * u128::from(all) / u128::from(read.max(1));
        Ok(EventCount { events: about as u64, is_exact: false })
    }

    /// Whether it was known for all rows so far which threads they are of.
    fn is_complete(&self) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.is_complete())
    }

    fn missing(&self) -> Vec<ReportProblem> {
        self.plan.session.gone_files()
    }

    fn count_between(&self, span: (Option<i64>, Option<i64>), progress: &Arc<Progress>) -> Result<u64, EventsFailure> {
        let mut partition = EventPartition::alone(&self.plan.between(span)).cancelled_by(progress);
        self.rows(&mut partition, progress)
    }

    fn rows(&self, partition: &mut EventPartition, progress: &Progress) -> Result<u64, EventsFailure> {
        partition.try_fold(0, |sum, batch| Ok(sum + self.of_wanted(batch?, progress)?.num_rows() as u64))
    }

    /// The first rows behind a place; whether there are no more.
    fn from(
        &self,
        place: RowPlace,
        limit: usize,
        progress: &Arc<Progress>,
    ) -> Result<(Vec<Placed>, bool), EventsFailure> {
        let begin = self.plan.begin_ns.map_or(place.time_ns, |begin| begin.max(place.time_ns));
        let (mut found, mut left) = (Vec::new(), limit);
        self.read((Some(begin), self.plan.end_ns), progress, |batch, places| {
            let skip = places.partition_point(|at| *at < place);
            let rows = left.min(places.len() - skip);
            if rows > 0 {
                found.push((batch.slice(skip, rows), places[skip..skip + rows].to_vec()));
            }
            left -= rows;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok((found, left > 0))
    }

    /// The last rows before a place; whether there are none before them.
    fn back(
        &self,
        place: RowPlace,
        limit: usize,
        progress: &Arc<Progress>,
    ) -> Result<(Vec<Placed>, bool), EventsFailure> {
        let lower = self.plan.begin_ns.unwrap_or(i64::MIN);
        let mut end = place.time_ns;
        if place.behind == 0 {
            let Some(before) = end.checked_sub(1) else { return Ok((Vec::new(), true)) };
            end = before;
        }
        end = self.plan.end_ns.map_or(end, |last| last.min(end));
        let (mut windows, mut left, mut size_bytes) = (Vec::new(), limit, WINDOW_BYTES);
        while left > 0 && lower <= end {
            let begin = self.window(end, size_bytes).max(lower);
            let mut kept = WindowRows { batches: VecDeque::new(), rows: 0, most: left };
            self.read((Some(begin), Some(end)), progress, |batch, places| {
                let rows = places.partition_point(|at| *at < place);
                let is_over = rows < places.len();
                kept.push(batch.slice(0, rows), places[..rows].to_vec());
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            left -= kept.rows.min(left);
            windows.push(kept.finish());
            if begin <= lower {
                return Ok((windows.into_iter().rev().flatten().collect(), left > 0));
            }
            end = begin - 1;
            size_bytes = (size_bytes * 2).min(WINDOW_BYTES_MAX);
        }
        Ok((windows.into_iter().rev().flatten().collect(), lower > end))
    }

    /// When a window begins whose packets have about so many bytes, up to a time; [`i64::MIN`]: it has all that there are.
    fn window(&self, end: i64, size_bytes: u64) -> i64 {
        let plan = self.plan.between((self.plan.begin_ns, Some(end)));
        let wanted = plan.wanted();
        let share = size_bytes / wanted.len().max(1) as u64;
        let begin = |(stream, packets): (&DataStream, Range<usize>)| {
            let mut bytes = 0;
            for number in packets.clone().rev() {
                let row = stream.packets.get(number);
                bytes += row.total_bits / 8;
                if bytes >= share && number > packets.start {
                    return Some(stream.clock?.nanos_saturating(row.begin_cycles?));
                }
            }
            None
        };
        wanted.into_iter().filter_map(begin).max().map_or(i64::MIN, |begin| begin.min(end))
    }

    /// Reads what is between two times, both of them inside, with the place before each row.
    fn read(
        &self,
        span: (Option<i64>, Option<i64>),
        progress: &Arc<Progress>,
        mut with: impl FnMut(RecordBatch, &[RowPlace]) -> ControlFlow<()>,
    ) -> Result<(), EventsFailure> {
        let mut last: Option<RowPlace> = None;
        for batch in EventPartition::alone(&self.plan.between(span)).cancelled_by(progress) {
            let batch = self.of_wanted(batch?, progress)?;
            let times = times(&batch, self.time);
            let place = |time: Option<i64>| {
                // A time that is beyond 64 bits is as late as the one before.
                let time_ns = time.or(last.map(|last| last.time_ns)).unwrap_or(i64::MIN);
                let behind = last.filter(|last| last.time_ns == time_ns).map_or(0, |last| last.behind + 1);
                *last.insert(RowPlace { time_ns, behind })
            };
            let places: Vec<RowPlace> = times.into_iter().map(place).collect();
            if with(batch, &places).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn bytes(wanted: &[(&DataStream, Range<usize>)]) -> u64 {
    wanted.iter().map(|(stream, packets)| stream.packets.packet_bytes(packets.clone())).sum()
}

fn times(batch: &RecordBatch, column: usize) -> Vec<Option<i64>> {
    let column = batch.column(column);
    match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().collect(),
        DataType::Timestamp(..) => column.as_primitive::<TimestampNanosecondType>().iter().collect(),
        _ => vec![None; column.len()],
    }
}

#[cfg(test)]
mod tests;
