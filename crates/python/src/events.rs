//! Events as columns, for Python.
//!
//! ```text
//! Events ─┬─ __arrow_c_stream__   a fresh stream for whoever takes Arrow
//!         ├─ stream               the same, batch by batch
//!         └─ chunk(i)             the rows of one slice of time, on the thread that asks
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use kymo_session::arrow::datatypes::SchemaRef;
use kymo_session::{EventChunk, EventTable, EventsFailure, Share};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::columns::{self, Schema};
use crate::errors::{no_columns, not_shared};
use crate::interpreter::detached;
use crate::process::ProcessOwned;
use crate::stream::{Ends, Stream, StreamRows};

/// Events before reading has begun.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Events {
    table: ProcessOwned<EventTable>,
    schema: SchemaRef,
    ends: Ends,
    chunks: Mutex<Vec<EventChunk>>,
    is_short: bool,
}

impl Events {
    pub(crate) fn new(table: EventTable, is_short: bool) -> Self {
        let schema = Arc::clone(table.schema());
        Self { table: ProcessOwned::new(table), schema, ends: Ends::default(), chunks: Mutex::default(), is_short }
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
        self.ends.report()
    }

    /// All batches in the order of time.
    fn stream(&self, py: Python<'_>) -> PyResult<Stream> {
        Ok(Stream::new(StreamRows::All(self.table.get(py)?.stream()), Some(&self.ends), self.is_short))
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
        Ok(Stream::new(StreamRows::Part(table.chunk(chunk)), None, self.is_short))
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
        let part =
            detached(py, || table.share(&Share::decode(share)?)).map_err(|problem| not_shared(py, &problem.into()))?;
        Ok(Stream::new(StreamRows::Part(part), None, self.is_short))
    }

    /// Raises why somebody else had no further rows, if that is so.
    fn raise_why(&self, py: Python<'_>) -> PyResult<()> {
        self.ends.raise(py)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let rows = StreamRows::All(self.table.get(py)?.stream());
        rows.capsule(py, &self.schema, &self.ends, self.is_short)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.schema().capsule(py)
    }
}
