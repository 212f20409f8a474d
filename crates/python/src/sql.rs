//! Queries for Python: answers as columns, read on demand.
//!
//! ```text
//! Database ── sql ──> Rows ─┬─ __arrow_c_stream__   a fresh answer for whoever takes Arrow
//! (views stay)              └─ stream               the same, batch by batch
//! ```

use std::sync::Arc;

use kymo_cli::words;
use kymo_session::arrow::datatypes::SchemaRef;
use kymo_session::{Progress, SqlQuery, sql_statements};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::columns::{self, Schema};
use crate::errors::{not_answered, refused};
use crate::interpreter::detached;
use crate::interrupt::{interruptible, is_short};
use crate::process::ProcessOwned;
use crate::session::Session;
use crate::stream::{self, Ends, Stream};

/// The tables of open traces, with views and settings that stay for later queries.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Database {
    inner: ProcessOwned<kymo_session::SqlDatabase>,
    is_short: bool,
}

#[pymethods]
impl Database {
    /// The words are those of the command.
    #[new]
    fn new(py: Python<'_>, session: &Session, line: Vec<String>) -> PyResult<Self> {
        let options = words::sql_options(&line).map_err(|why| refused(py, why))?;
        let database = detached(py, || session.inner().database(&options));
        let inner = ProcessOwned::new(database.map_err(|failure| not_answered(py, &failure))?);
        Ok(Self { inner, is_short: is_short(session.inner()) })
    }

    /// Does what the statements of a text say; the rows are those of the last.
    fn sql(&self, py: Python<'_>, text: &str) -> PyResult<Rows> {
        let database = self.inner.get(py)?;
        let progress = Arc::new(Progress::default());
        let asked = interruptible(py, self.is_short, &progress, || {
            let statements = sql_statements(text).0;
            // For no statement at all, the engine reports the error.
            let (last, before) = statements.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
            before.iter().try_for_each(|statement| database.ask(statement, &progress).map(drop))?;
            database.ask(last, &progress)
        });
        Ok(Rows::new(asked?.map_err(|failure| not_answered(py, &failure))?))
    }

    /// Tables and functions, each with its description.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let database = self.inner.get(py)?;
        Ok(detached(py, || database.tables()))
    }
}

/// Rows before reading has begun.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Rows {
    query: ProcessOwned<SqlQuery>,
    schema: SchemaRef,
    ends: Ends,
}

impl Rows {
    fn new(query: SqlQuery) -> Self {
        let schema = Arc::clone(query.schema());
        Self { query: ProcessOwned::new(query), schema, ends: Ends::default() }
    }

    /// The answer, from its beginning.
    fn read(&self, py: Python<'_>) -> PyResult<stream::StreamRows> {
        let query = self.query.get(py)?;
        let answer = detached(py, || query.read(&Arc::default()));
        Ok(stream::StreamRows::Answer(answer.map_err(|failure| not_answered(py, &failure))?))
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
        self.ends.report()
    }

    /// All batches.
    fn stream(&self, py: Python<'_>) -> PyResult<Stream> {
        // Rows that are short to read may take long to join.
        Ok(Stream::new(self.read(py)?, Some(&self.ends), false))
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
        self.read(py)?.capsule(py, &self.schema, &self.ends, false)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        self.schema().capsule(py)
    }
}
