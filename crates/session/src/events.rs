//! Events as columns: one table for all that are asked for, in batches, wherever they are wanted.
//!
//! ```text
//! EventsQuestion ──> EventTable ─┬─ stream()      all threads read; rows in the order of time
//!                    (schema)    ├─ partitions(n) each reads by itself; slices of time go to the next caller
//!                                └─ chunks()      slices of time, for callers with their own order
//! ```
//!
//! Nothing is read before the caller asks for batches.

mod bases;
mod batches;
mod columns;
mod pages;
mod reading;
mod stream;
// They compare with files that are exported.
#[cfg(test)]
#[cfg(feature = "export")]
mod tests;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use kymo_decode::filter::StreamFilter;
use kymo_scan::{DataStream, Lengths, Slice, Slices, Unsliceable};
use kymo_table::arrow::datatypes::SchemaRef;
use kymo_table::arrow::error::ArrowError;

use self::columns::EventColumns;
use crate::answers::explain::SkippedPackets;
use crate::open::Session;
use crate::open::identity::TraceIdentity;
use crate::open::progress::Cancelled;
use crate::open::select::Selection;
use crate::open::share::{Share, ShareProblem};
use crate::parallel::desk;
use crate::timeline::TimelineFailure;

pub use self::pages::{EventCount, EventPage, EventPages, NotAPlace, PAGE_ROWS_MAX, PageOf, RowPlace};
pub use self::stream::{EventPartition, EventStream, NextBatch};

/// Rows of a batch.
const BATCH_ROWS: usize = 64 << 10;
/// Bytes of a slice, about.
const SLICE_BYTES: (u64, u64) = (2 << 20, 32 << 20);

/// Which events, as which columns.
#[derive(Clone, Debug)]
pub struct EventsQuestion {
    /// Only these events. Where that is one name, without `*` and `?`, the table has the columns of events of that name;
    /// otherwise it has one that says the name.
    pub selection: Selection,
    /// Not before, in nanoseconds since the clock's origin.
    pub begin_ns: Option<i64>,
    /// Not after.
    pub end_ns: Option<i64>,
    /// Only these columns, in this order; `None`: `time`, `cycles`, `stream`, `name` where there are several, and all fields.
    pub columns: Option<Vec<String>>,
    /// Gives texts a second column, `x_bytes`, with the bytes of those that are not valid.
    pub keep_bytes: bool,
    /// Rows of a batch, about; the first ones are shorter.
    pub batch_rows: usize,
}

/// Everything.
impl Default for EventsQuestion {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            begin_ns: None,
            end_ns: None,
            columns: None,
            keep_bytes: false,
            batch_rows: BATCH_ROWS,
        }
    }
}

/// Why there are no columns.
#[derive(Debug, thiserror::Error)]
pub enum EventsFailure {
    /// No event record class has such a name.
    #[error("no event has a name like {0:?}")]
    NoSuchEvent(String),
    /// No selected event has such a column.
    #[error("no selected event has a column {name:?}{}", suggestion(.near))]
    NoSuchColumn {
        /// The column.
        name: String,
        /// Columns that there are with names like it.
        near: Vec<String>,
    },
    /// Some events have no time by which they could be found.
    #[error("the events of a data stream have no times: paging backwards is impossible")]
    NoTimes,
    /// Packets turned out not to tell the times of their events when part of them was read: a
    /// second request gets one partition, which needs no times.
    #[error("packets do not tell the times of their events: ask again, for one partition")]
    Unsliceable,
    /// Arrow refuses.
    #[error("{0}")]
    Arrow(#[from] ArrowError),
    /// The request was canceled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// It is not known when threads ran.
    #[error(transparent)]
    Timeline(#[from] TimelineFailure),
    /// A thread that read is no more.
    #[error("a thread that read the trace is gone")]
    Gone,
}

fn suggestion(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}

/// A table of events that are not read yet. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct EventTable {
    plan: Arc<EventsPlan>,
}

/// How a question is answered.
#[derive(Debug)]
struct EventsPlan {
    session: Arc<Session>,
    begin_ns: Option<i64>,
    end_ns: Option<i64>,
    batch_rows: usize,
    /// For each data stream, which of its events are wanted.
    filters: Vec<Option<Arc<StreamFilter>>>,
    columns: Arc<EventColumns>,
    /// Slices were found to be no way to read the traces.
    is_unsliceable: AtomicBool,
    /// Requests to readers of shares.
    identity: OnceLock<TraceIdentity>,
}

/// A slice of time as part of a table, or all of it.
#[derive(Clone, Debug)]
pub struct EventChunk {
    slice: Option<Slice>,
}

impl Session {
    /// Events as columns.
    ///
    /// # Errors
    ///
    /// There are no such events or columns.
    pub fn events(self: &Arc<Self>, question: &EventsQuestion) -> Result<EventTable, EventsFailure> {
        let filters = self.filters(&question.selection);
        let columns = Arc::new(EventColumns::new(self, question, &filters)?);
        let plan = EventsPlan {
            session: Arc::clone(self),
            begin_ns: question.begin_ns,
            end_ns: question.end_ns,
            batch_rows: question.batch_rows.max(1),
            filters,
            columns,
            is_unsliceable: AtomicBool::new(false),
            identity: OnceLock::new(),
        };
        Ok(EventTable { plan: Arc::new(plan) })
    }
}

impl EventTable {
    /// Names and types of its columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.plan.columns.schema()
    }

    /// The same with facts about columns that are shown to people: in which bases their integers
    /// are written, as `kymo.bases`.
    #[must_use]
    pub fn schema_to_show(&self) -> &SchemaRef {
        self.plan.columns.schema_to_show()
    }

    /// All rows in the order of time, read by as many threads as the session has. They begin with the first batch that is
    /// asked for, and end when it is dropped.
    #[must_use]
    pub fn stream(&self) -> EventStream {
        EventStream::new(Arc::clone(&self.plan))
    }

    /// All rows in so many parts at most, of which each is in the order of time and reads by
    /// itself, on the thread that asks it. A request for more parts gets more.
    #[must_use]
    pub fn partitions(&self, count: usize) -> Vec<EventPartition> {
        EventPartition::all(&self.plan, count)
    }

    /// Slices of time for so many readers, in order. It depends on nothing but the trace and this number.
    #[must_use]
    pub fn chunks(&self, readers: usize) -> Vec<EventChunk> {
        let slices = self.plan.slices(readers).and_then(|mut slices| {
            let mut all = Vec::new();
            while let Some(slice) = slices.next_slice()? {
                all.push(EventChunk { slice: Some(slice) });
            }
            Ok(all)
        });
        slices.unwrap_or_else(|Unsliceable| vec![EventChunk { slice: None }])
    }

    /// The rows of a chunk in the order of time, read by the thread that asks.
    #[must_use]
    pub fn chunk(&self, chunk: &EventChunk) -> EventPartition {
        EventPartition::of_chunk(&self.plan, chunk)
    }

    /// The same slices, to be read by any session that opens the same traces and asks the same.
    #[must_use]
    pub fn shares(&self, readers: usize) -> Vec<Share> {
        let share =
            |(number, chunk): (usize, &EventChunk)| Share::new(self.plan.identity(), number, chunk.slice.as_ref());
        self.chunks(readers).iter().enumerate().map(share).collect()
    }

    /// The rows of a share, as [`Self::chunk`] reads them.
    ///
    /// # Errors
    ///
    /// It is of other traces.
    pub fn share(&self, share: &Share) -> Result<EventPartition, ShareProblem> {
        let session = &self.plan.session;
        share.check(self.plan.identity())?;
        Ok(self.chunk(&EventChunk { slice: share.slice(session)? }))
    }

    /// How many packets are not read.
    #[must_use]
    pub fn skipped(&self) -> SkippedPackets {
        let mut skipped = SkippedPackets::default();
        for (rank, filter) in self.plan.filters.iter().enumerate() {
            let span = (self.plan.begin_ns, self.plan.end_ns);
            self.plan.session.packets_skipped(rank, filter.as_deref(), span, &mut skipped);
        }
        skipped
    }
}

impl EventsPlan {
    fn identity(&self) -> &TraceIdentity {
        self.identity.get_or_init(|| self.session.identity())
    }

    /// The same between other times.
    fn between(&self, (begin_ns, end_ns): (Option<i64>, Option<i64>)) -> Arc<Self> {
        Arc::new(Self {
            session: Arc::clone(&self.session),
            begin_ns,
            end_ns,
            batch_rows: self.batch_rows,
            filters: self.filters.clone(),
            columns: Arc::clone(&self.columns),
            is_unsliceable: AtomicBool::new(self.is_unsliceable.load(Ordering::Relaxed)),
            identity: OnceLock::new(),
        })
    }

    /// The packets of each stream that are read.
    fn wanted(&self) -> Vec<(&DataStream, Range<usize>)> {
        let streams = self.session.streams().into_iter().zip(&self.filters);
        let wanted = streams.map(|((_, stream), filter)| {
            let packets = stream.packets_for(self.begin_ns, self.end_ns, filter.as_deref());
            let is_never = filter.as_ref().is_some_and(|filter| filter.is_never());
            (stream, if is_never { packets.start..packets.start } else { packets })
        });
        wanted.collect()
    }

    /// Slices for so many readers.
    fn slices(&self, readers: usize) -> Result<Slices, Unsliceable> {
        if readers <= 1 || self.is_unsliceable.load(Ordering::Relaxed) {
            return Err(Unsliceable);
        }
        let wanted = self.wanted();
        let bytes = desk::bytes(&wanted);
        let lengths = match self.session.slice_bytes {
            Some(least) => Lengths { all: bytes.0, least, most: least, readers: readers as u64 },
            None => desk::lengths(bytes, SLICE_BYTES, readers).ok_or(Unsliceable)?,
        };
        Slices::new(wanted.into_iter(), lengths)
    }

    fn is_inside(&self, nanos: Option<i64>) -> bool {
        let is_after = |nanos| self.begin_ns.is_none_or(|begin| begin <= nanos);
        let is_before = |nanos| self.end_ns.is_none_or(|end| nanos <= end);
        nanos.is_none_or(|nanos| is_after(nanos) && is_before(nanos))
    }
}
