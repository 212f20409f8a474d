//! Events as columns, for Python.
//!
//! ```text
//! Events ─┬─ __arrow_c_stream__   a fresh stream for whoever takes Arrow
//!         ├─ stream               the same, batch by batch
//!         └─ chunk(i)             the rows of one slice of time, on the thread that asks
//! ```
//!
//! Whoever waits for rows on the main thread is heard when he presses Ctrl-C; also in hands that know nothing of us, as long as they
//! ask for rows on the thread that gave them the stream.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use kymo_session::arrow::array::{RecordBatch, RecordBatchReader};
use kymo_session::arrow::datatypes::SchemaRef;
use kymo_session::arrow::error::ArrowError;
use kymo_session::{Chunk, EventPartition, EventStream, EventTable, EventsFailure, Progress, Report, Share, Waited};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::columns::{self, Batch, Schema, stream_capsule};
use crate::errors::{no_columns, not_shared};
use crate::interrupt::{PATIENCE, interruptible, is_main_thread};
use crate::process::{FOREIGN, Owned, detached, foreign};

/// What the last stream that was read to its end says of the trace.
pub(crate) type LastReport = Arc<Mutex<Option<Report>>>;
/// What was raised while somebody else waited for rows, who can only be told that there are none.
type Raised = Arc<Mutex<Option<PyErr>>>;
/// What a stream gives.
type NextBatch = Option<Result<RecordBatch, EventsFailure>>;

/// Events that nobody has read yet.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Events {
    table: Owned<EventTable>,
    schema: SchemaRef,
    last: LastReport,
    raised: Raised,
    chunks: Mutex<Vec<Chunk>>,
    is_short: bool,
}

impl Events {
    pub(crate) fn new(table: EventTable, is_short: bool) -> Self {
        let schema = Arc::clone(table.schema());
        let (last, raised) = (LastReport::default(), Raised::default());
        Self { table: Owned::new(table), schema, last, raised, chunks: Mutex::default(), is_short }
    }
}

#[pymethods]
impl Events {
    #[getter]
    fn schema(&self) -> Schema {
        columns::schema(&self.schema)
    }

    /// What stands between the rows and the whole truth, as JSON; `None` before a stream was read to its end.
    fn report(&self) -> Option<String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(kymo_cli::words::report)
    }

    /// All batches in the order of time.
    fn stream(&self, py: Python<'_>) -> PyResult<Stream> {
        Ok(Stream::new(Rows::All(self.table.get(py)?.stream()), Some(Arc::clone(&self.last)), self.is_short))
    }

    /// How many slices of time there are for so many readers.
    fn cut(&self, py: Python<'_>, readers: usize) -> PyResult<usize> {
        let table = self.table.get(py)?;
        let chunks = detached(py, || table.chunks(readers));
        let mut known = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        *known = chunks;
        Ok(known.len())
    }

    /// The rows of a slice, which `cut` has counted.
    fn chunk(&self, py: Python<'_>, number: usize) -> PyResult<Stream> {
        let table = self.table.get(py)?;
        let known = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = known.get(number).ok_or_else(|| no_columns(py, &EventsFailure::Gone))?;
        Ok(Stream::new(Rows::Part(table.chunk(chunk)), None, self.is_short))
    }

    /// Slices of time for so many readers, to be read by whoever opens the same traces and asks the same.
    fn shares<'py>(&self, py: Python<'py>, readers: usize) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let table = self.table.get(py)?;
        let shares = detached(py, || table.shares(readers));
        Ok(shares.iter().map(|share| PyBytes::new(py, &share.encode())).collect())
    }

    /// The rows of such a slice.
    fn share(&self, py: Python<'_>, share: &[u8]) -> PyResult<Stream> {
        let table = self.table.get(py)?;
        let part = detached(py, || table.share(&Share::decode(share)?)).map_err(|failure| not_shared(py, &failure))?;
        Ok(Stream::new(Rows::Part(part), None, self.is_short))
    }

    /// Raises what was raised while somebody else waited for rows, if that is so.
    fn raise_raised(&self) -> PyResult<()> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let stream = Owned::new(self.table.get(py)?.stream());
        let (schema, last, raised) = (Arc::clone(&self.schema), Arc::clone(&self.last), Arc::clone(&self.raised));
        let asker = (!self.is_short && is_main_thread(py)?).then(|| thread::current().id());
        stream_capsule(py, Box::new(Reader { stream, schema, last, asker, looked: Instant::now(), raised }))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.schema().capsule(py)
    }
}

/// A stream in hands that know nothing of us.
struct Reader {
    stream: Owned<EventStream>,
    schema: SchemaRef,
    last: LastReport,
    /// Who asked for it, if that was the main thread. Only that one looks for signals: nobody who holds the interpreter's lock
    /// can be waiting for it, and it is not there any more when the interpreter ends.
    asker: Option<ThreadId>,
    /// When he looked last.
    looked: Instant,
    raised: Raised,
}

impl Reader {
    /// The next batch for whoever hears of signals, with or without the interpreter's lock.
    fn next_heard(&mut self) -> Result<NextBatch, ArrowError> {
        let Some(stream) = self.stream.get_mut() else { return Ok(None) };
        let progress = Arc::clone(stream.progress());
        let (looked, slot) = (&mut self.looked, &self.raised);
        let told = |raised: PyErr| Python::attach(|py| told(py, raised, slot));
        loop {
            let waited = stream.next_within(PATIENCE);
            // Batches may come without end, and nobody look for signals between them.
            if looked.elapsed() >= PATIENCE {
                *looked = Instant::now();
                Python::attach(|py| py.check_signals().inspect_err(|_| progress.cancel())).map_err(told)?;
            }
            match waited {
                Waited::Next(next) => return Ok(next),
                Waited::Nothing => {}
                Waited::Alone => {
                    let next = Python::attach(|py| interruptible(py, false, &progress, || stream.next()));
                    return next.map_err(told);
                }
            }
        }
    }
}

/// What somebody is told who waits for rows while something is raised.
fn told(py: Python<'_>, raised: PyErr, slot: &Raised) -> ArrowError {
    let text = raised.get_type(py).name().map_or("interrupted".to_owned(), |name| format!("interrupted by {name}"));
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
    ArrowError::ExternalError(text.into())
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let foreign = || Some(Err(ArrowError::CDataInterface(FOREIGN.to_owned())));
        let Some(stream) = self.stream.get_mut() else { return foreign() };
        let next = match self.asker == Some(thread::current().id()) {
            true => match self.next_heard() {
                Ok(next) => next,
                Err(interrupted) => return Some(Err(interrupted)),
            },
            false => stream.next(),
        };
        let Some(stream) = self.stream.get_mut() else { return foreign() };
        if next.is_none() {
            note(&self.last, stream.report());
        }
        next.map(|batch| batch.map_err(|failure| ArrowError::ExternalError(Box::new(failure))))
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

pub(crate) fn note(last: &LastReport, report: &Report) {
    *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(report.clone());
}

enum Rows {
    All(EventStream),
    Part(EventPartition),
}

impl Rows {
    fn next(&mut self) -> NextBatch {
        match self {
            Self::All(stream) => stream.next(),
            Self::Part(part) => part.next(),
        }
    }

    fn next_within(&mut self, time: Duration) -> Waited {
        match self {
            Self::All(stream) => stream.next_within(time),
            Self::Part(_) => Waited::Alone,
        }
    }

    fn report(&self) -> &Report {
        match self {
            Self::All(stream) => stream.report(),
            Self::Part(part) => part.report(),
        }
    }
}

/// Batches, one after the other.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Stream {
    /// `None`: it is over.
    rows: Mutex<Option<Owned<Rows>>>,
    /// Beside the lock, which whoever waits for rows holds.
    progress: Arc<Progress>,
    last: Option<LastReport>,
    is_short: bool,
}

/// Another process has begun it.
struct Foreign;

impl Stream {
    fn new(rows: Rows, last: Option<LastReport>, is_short: bool) -> Self {
        let progress = match &rows {
            Rows::All(stream) => Arc::clone(stream.progress()),
            Rows::Part(part) => Arc::clone(part.progress()),
        };
        Self { rows: Mutex::new(Some(Owned::new(rows))), progress, last, is_short }
    }

    /// What comes next, before so much time is over if somebody says so. Another thread of ours may hold the lock for long.
    fn pull(&self, time: Option<Duration>) -> Result<Waited, Foreign> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(owned) = rows.as_mut() else { return Ok(Waited::Next(None)) };
        let all = owned.get_mut().ok_or(Foreign)?;
        let waited = match time {
            Some(time) => all.next_within(time),
            None => Waited::Next(all.next()),
        };
        if let (Waited::Next(None), Some(last)) = (&waited, &self.last) {
            note(last, all.report());
        }
        Ok(waited)
    }

    /// The same for whoever hears of signals.
    fn pull_heard(&self, py: Python<'_>) -> PyResult<Result<Waited, Foreign>> {
        if self.is_short || !is_main_thread(py)? {
            return Ok(detached(py, || self.pull(None)));
        }
        loop {
            match detached(py, || self.pull(Some(PATIENCE))) {
                Ok(Waited::Nothing) => py.check_signals().inspect_err(|_| self.progress.cancel())?,
                Ok(Waited::Alone) => return interruptible(py, false, &self.progress, || self.pull(None)),
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
            Ok(Waited::Next(None) | Waited::Nothing | Waited::Alone) => Ok(None),
            Ok(Waited::Next(Some(Ok(batch)))) => Ok(Some(columns::batch(batch))),
            Ok(Waited::Next(Some(Err(failure)))) => Err(no_columns(py, &failure)),
            Err(Foreign) => Err(foreign(py)),
        }
    }

    /// What stands between the rows so far and the whole truth, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let report = detached(py, || {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = rows.as_mut().and_then(Owned::get_mut);
            rows.map(|rows| kymo_cli::words::report(rows.report()))
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
