//! Rows that are read on demand: batch by batch, or in libraries that know nothing of us.
//!
//! ```text
//! Rows ─┬─ Stream    an iterator of Python
//!       └─ capsule   an Arrow stream: pyarrow, polars, DuckDB
//! ```
//!
//! A wait for rows on the main thread ends when the user presses Ctrl-C; also inside libraries that
//! know nothing of us, as long as they ask for rows on the thread that gave them the stream.

use std::sync::{Arc, Mutex, PoisonError};
#[cfg(feature = "sql")]
use std::task::Poll;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use kymo_session::arrow::array::{RecordBatch, RecordBatchReader};
use kymo_session::arrow::datatypes::SchemaRef;
use kymo_session::arrow::error::ArrowError;
use kymo_session::{EventPartition, EventStream, EventsFailure, NextBatch, Progress, Report};
#[cfg(feature = "sql")]
use kymo_session::{SqlAnswer, SqlFailure};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::columns::{self, Batch, stream_capsule};
use crate::errors::no_columns;
#[cfg(feature = "sql")]
use crate::errors::not_answered;
use crate::interpreter::detached;
use crate::interrupt::{PATIENCE, interruptible, is_main_thread};
use crate::process::{FOREIGN, ProcessOwned, foreign};

/// How streams of the same rows ended.
#[derive(Clone, Default)]
pub(crate) struct Ends {
    /// The report on the trace of the last stream that was read to its end.
    report: Arc<Mutex<Option<Report>>>,
    /// Why there were no further rows for a consumer that waited for them, and could only be told
    /// in a text.
    why: Arc<Mutex<Option<EndReason>>>,
}

/// Why there are no further rows.
enum EndReason {
    /// A signal raised something.
    Raised(PyErr),
    Failed(StreamFailure),
}

impl Ends {
    /// The report on the differences between the rows and the whole truth, as JSON; `None` before a
    /// stream was read to its end.
    pub(crate) fn report(&self) -> Option<String> {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.as_ref().map(kymo_cli::words::report)
    }

    /// Raises why a consumer had no further rows, if that is so.
    pub(crate) fn raise(&self, py: Python<'_>) -> PyResult<()> {
        match self.why.lock().unwrap_or_else(PoisonError::into_inner).take() {
            None => Ok(()),
            Some(EndReason::Raised(raised)) => Err(raised),
            Some(EndReason::Failed(failure)) => Err(failure.raised(py)),
        }
    }

    fn note(&self, report: Report) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    /// The error for a consumer that waits for rows.
    fn told(&self, why: EndReason) -> ArrowError {
        let text = match &why {
            EndReason::Raised(raised) => Python::attach(|py| {
                raised.get_type(py).name().map_or("interrupted".to_owned(), |name| format!("interrupted by {name}"))
            }),
            EndReason::Failed(failure) => failure.to_string(),
        };
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        ArrowError::ExternalError(text.into())
    }
}

/// Rows that are being read.
pub(crate) enum StreamRows {
    /// Events, in the order of time.
    All(EventStream),
    /// Those of a slice of time.
    Part(EventPartition),
    /// The answer to a query.
    #[cfg(feature = "sql")]
    Answer(SqlAnswer),
}

/// The session's error.
enum StreamFailure {
    Events(EventsFailure),
    #[cfg(feature = "sql")]
    Sql(SqlFailure),
}

impl From<EventsFailure> for StreamFailure {
    fn from(failure: EventsFailure) -> Self {
        Self::Events(failure)
    }
}

#[cfg(feature = "sql")]
impl From<SqlFailure> for StreamFailure {
    fn from(failure: SqlFailure) -> Self {
        Self::Sql(failure)
    }
}

impl StreamFailure {
    fn raised(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Events(failure) => no_columns(py, failure),
            #[cfg(feature = "sql")]
            Self::Sql(failure) => not_answered(py, failure),
        }
    }
}

impl std::fmt::Display for StreamFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Events(failure) => failure.fmt(f),
            #[cfg(feature = "sql")]
            Self::Sql(failure) => failure.fmt(f),
        }
    }
}

/// The next rows.
type Next = Option<Result<RecordBatch, StreamFailure>>;

/// The result of waiting for some time.
enum WaitResult {
    Next(Next),
    Nothing,
    /// No other thread reads: there is more for a caller that waits for it, however long that
    /// takes.
    Alone,
}

fn next<E: Into<StreamFailure>>(next: Option<Result<RecordBatch, E>>) -> Next {
    next.map(|batch| batch.map_err(Into::into))
}

impl StreamRows {
    fn next(&mut self) -> Next {
        match self {
            Self::All(stream) => next(stream.next()),
            Self::Part(part) => next(part.next()),
            #[cfg(feature = "sql")]
            Self::Answer(answer) => next(answer.next()),
        }
    }

    fn next_within(&mut self, time: Duration) -> WaitResult {
        match self {
            Self::All(stream) => match stream.next_within(time) {
                NextBatch::Next(batch) => WaitResult::Next(next(batch)),
                NextBatch::Nothing => WaitResult::Nothing,
                NextBatch::Alone => WaitResult::Alone,
            },
            Self::Part(_) => WaitResult::Alone,
            #[cfg(feature = "sql")]
            Self::Answer(answer) => match answer.next_within(time) {
                Poll::Ready(batch) => WaitResult::Next(next(batch)),
                Poll::Pending => WaitResult::Nothing,
            },
        }
    }

    fn progress(&self) -> &Arc<Progress> {
        match self {
            Self::All(stream) => stream.progress(),
            Self::Part(part) => part.progress(),
            #[cfg(feature = "sql")]
            Self::Answer(answer) => answer.progress(),
        }
    }

    fn report(&self) -> Report {
        match self {
            Self::All(stream) => stream.report().clone(),
            Self::Part(part) => part.report().clone(),
            #[cfg(feature = "sql")]
            Self::Answer(answer) => answer.report(),
        }
    }

    /// A stream for a consumer of Arrow.
    pub(crate) fn capsule<'py>(
        self,
        py: Python<'py>,
        schema: &SchemaRef,
        ends: &Ends,
        is_short: bool,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let asker = (!is_short && is_main_thread(py)?).then(|| thread::current().id());
        let (rows, schema, ends) = (ProcessOwned::new(self), Arc::clone(schema), ends.clone());
        stream_capsule(py, Box::new(ForeignReader { rows, schema, ends, asker, looked: Instant::now() }))
    }
}

/// Rows in hands that know nothing of us.
struct ForeignReader {
    rows: ProcessOwned<StreamRows>,
    schema: SchemaRef,
    ends: Ends,
    /// The thread that asked for it, if that was the main thread. Only that one looks for signals:
    /// no other thread that holds the interpreter's lock can be waiting for it, and it is not there
    /// any more when the interpreter ends.
    asker: Option<ThreadId>,
    /// When it looked last.
    looked: Instant,
}

impl ForeignReader {
    /// The next batch for a thread that hears of signals, with or without the interpreter's lock.
    fn next_heard(&mut self) -> Result<Next, ArrowError> {
        let Some(rows) = self.rows.get_mut() else { return Ok(None) };
        let progress = Arc::clone(rows.progress());
        let (looked, ends) = (&mut self.looked, &self.ends);
        loop {
            let waited = rows.next_within(PATIENCE);
            // Batches may come without end, with no look for signals between them.
            if looked.elapsed() >= PATIENCE {
                *looked = Instant::now();
                let heard = Python::attach(|py| py.check_signals().inspect_err(|_| progress.cancel()));
                heard.map_err(|raised| ends.told(EndReason::Raised(raised)))?;
            }
            match waited {
                WaitResult::Next(next) => return Ok(next),
                WaitResult::Nothing => {}
                WaitResult::Alone => {
                    let next = Python::attach(|py| interruptible(py, false, &progress, || rows.next()));
                    return next.map_err(|raised| ends.told(EndReason::Raised(raised)));
                }
            }
        }
    }
}

impl Iterator for ForeignReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let foreign = || Some(Err(ArrowError::CDataInterface(FOREIGN.to_owned())));
        let Some(rows) = self.rows.get_mut() else { return foreign() };
        let next = match self.asker == Some(thread::current().id()) {
            true => match self.next_heard() {
                Ok(next) => next,
                Err(interrupted) => return Some(Err(interrupted)),
            },
            false => rows.next(),
        };
        let Some(rows) = self.rows.get_mut() else { return foreign() };
        if next.is_none() {
            self.ends.note(rows.report());
        }
        next.map(|batch| batch.map_err(|failure| self.ends.told(EndReason::Failed(failure))))
    }
}

impl RecordBatchReader for ForeignReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Batches, one after the other.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Stream {
    /// `None`: it is over.
    rows: Mutex<Option<ProcessOwned<StreamRows>>>,
    /// Beside the lock, which a thread that waits for rows holds.
    progress: Arc<Progress>,
    ends: Option<Ends>,
    is_short: bool,
}

/// Another process has begun it.
struct Foreign;

impl Stream {
    /// Notes how it ends, if `ends` is there.
    pub(crate) fn new(rows: StreamRows, ends: Option<&Ends>, is_short: bool) -> Self {
        let progress = Arc::clone(rows.progress());
        Self { rows: Mutex::new(Some(ProcessOwned::new(rows))), progress, ends: ends.cloned(), is_short }
    }

    /// The next rows, within a time if one is given. Another thread of ours may hold the lock for
    /// long.
    fn pull(&self, time: Option<Duration>) -> Result<WaitResult, Foreign> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(owned) = rows.as_mut() else { return Ok(WaitResult::Next(None)) };
        let all = owned.get_mut().ok_or(Foreign)?;
        let waited = match time {
            Some(time) => all.next_within(time),
            None => WaitResult::Next(all.next()),
        };
        if let (WaitResult::Next(None), Some(ends)) = (&waited, &self.ends) {
            ends.note(all.report());
        }
        Ok(waited)
    }

    /// The same for a thread that hears of signals.
    fn pull_heard(&self, py: Python<'_>) -> PyResult<Result<WaitResult, Foreign>> {
        if self.is_short || !is_main_thread(py)? {
            return Ok(detached(py, || self.pull(None)));
        }
        loop {
            match detached(py, || self.pull(Some(PATIENCE))) {
                Ok(WaitResult::Nothing) => py.check_signals().inspect_err(|_| self.progress.cancel())?,
                Ok(WaitResult::Alone) => return interruptible(py, false, &self.progress, || self.pull(None)),
                waited => return Ok(waited),
            }
        }
    }
}

#[pymethods]
impl Stream {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        match self.pull_heard(py)? {
            Ok(WaitResult::Next(None) | WaitResult::Nothing | WaitResult::Alone) => Ok(None),
            Ok(WaitResult::Next(Some(Ok(batch)))) => Ok(Some(columns::batch(batch))),
            Ok(WaitResult::Next(Some(Err(failure)))) => Err(failure.raised(py)),
            Err(Foreign) => Err(foreign(py)),
        }
    }

    /// What stands between the rows so far and the whole truth, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let report = detached(py, || {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = rows.as_mut().and_then(ProcessOwned::get_mut);
            rows.map(|rows| kymo_cli::words::report(&rows.report()))
        });
        report.ok_or_else(|| foreign(py))
    }

    /// Stops reading, also for whoever waits for rows.
    fn close(&self, py: Python<'_>) {
        self.progress.cancel();
        detached(py, || {
            let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(rows);
        });
    }
}
