//! Events as columns, for Python.
//!
//! ```text
//! Events ─┬─ __arrow_c_stream__   a fresh stream for whoever takes Arrow
//!         ├─ stream               the same, batch by batch
//!         └─ chunk(i)             the rows of one slice of time, on the thread that asks
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use kymo_session::arrow::array::{RecordBatch, RecordBatchReader};
use kymo_session::arrow::datatypes::SchemaRef;
use kymo_session::arrow::error::ArrowError;
use kymo_session::{Chunk, EventPartition, EventStream, EventTable, EventsFailure, Report, Share};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::columns::{self, Batch, Schema, stream_capsule};
use crate::errors::{no_columns, not_shared};
use crate::process::{FOREIGN, Owned, foreign};

/// What the last stream that was read to its end says of the trace.
pub(crate) type LastReport = Arc<Mutex<Option<Report>>>;

/// Events that nobody has read yet.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Events {
    table: Owned<EventTable>,
    schema: SchemaRef,
    last: LastReport,
    chunks: Mutex<Vec<Chunk>>,
}

impl Events {
    pub(crate) fn new(table: EventTable) -> Self {
        let schema = Arc::clone(table.schema());
        Self { table: Owned::new(table), schema, last: LastReport::default(), chunks: Mutex::default() }
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
        let rows = Rows::All(self.table.get(py)?.stream());
        Ok(Stream { rows: Mutex::new(Some(Owned::new(rows))), last: Some(Arc::clone(&self.last)) })
    }

    /// How many slices of time there are for so many readers.
    fn cut(&self, py: Python<'_>, readers: usize) -> PyResult<usize> {
        let table = self.table.get(py)?;
        let chunks = py.detach(|| table.chunks(readers));
        let mut known = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        *known = chunks;
        Ok(known.len())
    }

    /// The rows of a slice, which `cut` has counted.
    fn chunk(&self, py: Python<'_>, number: usize) -> PyResult<Stream> {
        let table = self.table.get(py)?;
        let known = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = known.get(number).ok_or_else(|| no_columns(py, &EventsFailure::Gone))?;
        Ok(Stream { rows: Mutex::new(Some(Owned::new(Rows::Part(table.chunk(chunk))))), last: None })
    }

    /// Slices of time for so many readers, to be read by whoever opens the same traces and asks the same.
    fn shares<'py>(&self, py: Python<'py>, readers: usize) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let table = self.table.get(py)?;
        let shares = py.detach(|| table.shares(readers));
        Ok(shares.iter().map(|share| PyBytes::new(py, &share.encode())).collect())
    }

    /// The rows of such a slice.
    fn share(&self, py: Python<'_>, share: &[u8]) -> PyResult<Stream> {
        let table = self.table.get(py)?;
        let part = py.detach(|| table.share(&Share::decode(share)?)).map_err(|failure| not_shared(py, &failure))?;
        Ok(Stream { rows: Mutex::new(Some(Owned::new(Rows::Part(part)))), last: None })
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let stream = Owned::new(self.table.get(py)?.stream());
        let (schema, last) = (Arc::clone(&self.schema), Arc::clone(&self.last));
        stream_capsule(py, Box::new(Reader { stream, schema, last }))
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
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(stream) = self.stream.get_mut() else {
            return Some(Err(ArrowError::CDataInterface(FOREIGN.to_owned())));
        };
        let next = stream.next();
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
    fn next(&mut self) -> Option<Result<RecordBatch, EventsFailure>> {
        match self {
            Self::All(stream) => stream.next(),
            Self::Part(part) => part.next(),
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
    last: Option<LastReport>,
}

#[pymethods]
impl Stream {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        // Another thread of ours may hold it for long.
        let next = py.detach(|| {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(owned) = rows.as_mut() else { return Ok(None) };
            let Some(all) = owned.get_mut() else { return Err(None) };
            match all.next() {
                Some(batch) => batch.map(Some).map_err(Some),
                None => {
                    if let Some(last) = &self.last {
                        note(last, all.report());
                    }
                    Ok(None)
                }
            }
        });
        match next {
            Ok(batch) => Ok(batch.map(columns::batch)),
            Err(Some(failure)) => Err(no_columns(py, &failure)),
            Err(None) => Err(foreign(py)),
        }
    }

    /// What stands between the rows so far and the whole truth, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let report = py.detach(|| {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = rows.as_mut().and_then(Owned::get_mut);
            rows.map(|rows| kymo_cli::words::report(rows.report()))
        });
        report.ok_or_else(|| foreign(py))
    }

    /// Stops reading.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(rows);
        });
    }
}
