//! Queries for Python: answers as columns, read when somebody asks for them.
//!
//! ```text
//! Database ── sql ──> Rows ─┬─ __arrow_c_stream__   a fresh answer for whoever takes Arrow
//! (views stay)              ├─ stream               the same, batch by batch
//!                           └─ collect              all of it
//! ```
//!
//! Where the main thread waits for rows, it looks now and then whether somebody wants to interrupt it.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use kymo_cli::words;
use kymo_session::arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use kymo_session::arrow::datatypes::SchemaRef;
use kymo_session::arrow::error::ArrowError;
use kymo_session::{SqlAnswer, SqlFailure, SqlQuery, sql_statements};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::columns::{self, Batch, Schema, stream_capsule};
use crate::errors::{not_answered, refused};
use crate::events::{LastReport, note};
use crate::process::{FOREIGN, Owned, detached, foreign};
use crate::session::Session;

/// How often the interpreter looks for signals while it waits.
const SIGNALS: Duration = Duration::from_millis(50);

/// The tables of open traces. Views and settings stay.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Database {
    inner: Owned<kymo_session::Database>,
}

#[pymethods]
impl Database {
    /// The words are those of the command.
    #[new]
    fn new(py: Python<'_>, session: &Session, line: Vec<String>) -> PyResult<Self> {
        let options = words::sql_options(&line).map_err(|why| refused(py, why))?;
        let database = detached(py, || session.inner().database(&options));
        Ok(Self { inner: Owned::new(database.map_err(|failure| not_answered(py, &failure))?) })
    }

    /// Does what the statements of a text say; the rows are those of the last.
    fn sql(&self, py: Python<'_>, text: &str) -> PyResult<Rows> {
        let database = self.inner.get(py)?;
        let asked = detached(py, || {
            let statements = sql_statements(text).0;
            // Of no statement at all, the engine says what is wrong.
            let (last, before) = statements.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
            before.iter().try_for_each(|statement| database.ask(statement).map(drop))?;
            database.ask(last)
        });
        Ok(Rows::new(asked.map_err(|failure| not_answered(py, &failure))?))
    }

    /// Tables and functions, and what they are.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let database = self.inner.get(py)?;
        Ok(detached(py, || database.tables()))
    }
}

/// Rows that nobody has read yet.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Rows {
    query: Owned<SqlQuery>,
    schema: SchemaRef,
    last: LastReport,
}

impl Rows {
    fn new(query: SqlQuery) -> Self {
        let schema = Arc::clone(query.schema());
        Self { query: Owned::new(query), schema, last: LastReport::default() }
    }

    /// The answer, from its beginning.
    fn read(&self, py: Python<'_>) -> PyResult<SqlAnswer> {
        let query = self.query.get(py)?;
        detached(py, || query.read()).map_err(|failure| not_answered(py, &failure))
    }
}

#[pymethods]
impl Rows {
    #[getter]
    fn schema(&self) -> Schema {
        columns::schema(&self.schema)
    }

    /// What stands between the rows and the whole truth, as JSON; `None` before they were read to their end.
    fn report(&self) -> Option<String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(words::report)
    }

    /// All batches.
    fn stream(&self, py: Python<'_>) -> PyResult<RowStream> {
        let answer = self.read(py)?;
        Ok(RowStream { answer: Mutex::new(Some(Owned::new(answer))), last: Arc::clone(&self.last) })
    }

    /// All batches, read already, for whoever takes Arrow; and what stands between them and the whole truth, as JSON.
    fn collect(&self, py: Python<'_>) -> PyResult<(Collected, String)> {
        let (mut answer, mut batches) = (self.read(py)?, Vec::new());
        while let Some(batch) = next(py, || answer.next_within(SIGNALS))? {
            batches.push(batch);
        }
        let report = answer.report();
        note(&self.last, &report);
        detached(py, || drop(answer));
        Ok((Collected { schema: Arc::clone(&self.schema), batches }, words::report(&report)))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let answer = Owned::new(self.read(py)?);
        let (schema, last) = (Arc::clone(&self.schema), Arc::clone(&self.last));
        stream_capsule(py, Box::new(Reader { answer, schema, last }))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.schema().capsule(py)
    }
}

/// Waits for a batch; the main thread, which alone hears of signals, for these too. Others do not come back to the interpreter
/// before they have something: it may have ended.
fn next(
    py: Python<'_>,
    mut next_soon: impl FnMut() -> Poll<Option<Result<RecordBatch, SqlFailure>>> + Send,
) -> PyResult<Option<RecordBatch>> {
    let hears = is_main_thread(py)?;
    loop {
        let next = detached(py, || {
            loop {
                let next = next_soon();
                if hears || next.is_ready() {
                    return next;
                }
            }
        });
        match next {
            Poll::Ready(batch) => return batch.transpose().map_err(|failure| not_answered(py, &failure)),
            Poll::Pending => py.check_signals()?,
        }
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
    main.eq(threading.call_method0(intern!(py, "get_ident"))?)
}

/// An answer in hands that know nothing of us.
struct Reader {
    answer: Owned<SqlAnswer>,
    schema: SchemaRef,
    last: LastReport,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(answer) = self.answer.get_mut() else {
            return Some(Err(ArrowError::CDataInterface(FOREIGN.to_owned())));
        };
        let next = answer.next();
        if next.is_none() {
            note(&self.last, &answer.report());
        }
        next.map(|batch| batch.map_err(|failure| ArrowError::ExternalError(Box::new(failure))))
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Rows that were read.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Collected {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Collected {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema))))
    }
}

/// Batches, one after the other.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct RowStream {
    /// `None`: it is over.
    answer: Mutex<Option<Owned<SqlAnswer>>>,
    last: LastReport,
}

#[pymethods]
impl RowStream {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let is_foreign = Mutex::new(false);
        let batch = next(py, || {
            // Another thread of ours may hold it, for no longer than it waits.
            let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(owned) = answer.as_mut() else { return Poll::Ready(None) };
            let Some(answer) = owned.get_mut() else {
                *is_foreign.lock().unwrap_or_else(PoisonError::into_inner) = true;
                return Poll::Ready(None);
            };
            let next = answer.next_within(SIGNALS);
            if matches!(next, Poll::Ready(None)) {
                note(&self.last, &answer.report());
            }
            next
        })?;
        if is_foreign.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(foreign(py));
        }
        Ok(batch.map(columns::batch))
    }

    /// What stands between the rows so far and the whole truth, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let report = detached(py, || {
            let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
            let answer = answer.as_mut().and_then(Owned::get_mut);
            answer.map(|answer| words::report(&answer.report()))
        });
        report.ok_or_else(|| foreign(py))
    }

    /// Stops reading.
    fn close(&self, py: Python<'_>) {
        detached(py, || {
            let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(answer);
        });
    }
}
