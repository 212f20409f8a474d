//! Open traces, for Python: questions go in as the command's words or as plain values, answers come out as columns.

use std::path::PathBuf;
use std::sync::Arc;

use kymo_cli::{ReadingOptions, words};
use kymo_session::{EventsQuestion, ImportOptions, Progress, TraceOffset};
use pyo3::prelude::*;

use crate::answer::{Said, said};
use crate::errors::{ExceptionKind, cancelled, error, no_columns, refused};
use crate::events::Events;
use crate::interpreter::detached;
use crate::interrupt::{interruptible, is_short};
use crate::printing::Pieces;
use crate::shares::Shares;

/// A file with a table: path, rows, texts that are not valid.
type ExportedTable = (PathBuf, u64, u64);

/// Open traces; `kymograph.Trace` knows how to open them again.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Session {
    pub(crate) inner: Arc<kymo_session::Session>,
    paths: Vec<PathBuf>,
}

impl Session {
    /// The session itself.
    pub(crate) fn inner(&self) -> &Arc<kymo_session::Session> {
        &self.inner
    }
}

#[pymethods]
impl Session {
    #[new]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        threads: usize,
        clock_shift_ns: i64,
        trace_offsets: Vec<(PathBuf, i64)>,
        import: (Option<PathBuf>, Option<u64>),
        cache: Option<PathBuf>,
    ) -> PyResult<Self> {
        let offset = |(path, offset_ns)| TraceOffset { path, offset_ns };
        let trace_offsets = trace_offsets.into_iter().map(offset).collect();
        let reading = ReadingOptions { clock_shift_ns, trace_offsets, import: import_options(import) };
        let opened = detached(py, || kymo_cli::open_with(&paths, threads, reading, cache));
        match opened {
            Ok(session) => Ok(Self { inner: Arc::new(session), paths }),
            Err(failure) => Err(error(py, ExceptionKind::Open, &failure.render())),
        }
    }

    /// Overview of the traces: as text of `kymo info`, as its JSON, and the report.
    fn info(&self, py: Python<'_>, exact: bool) -> PyResult<(String, String, String)> {
        let progress = Progress::default();
        let info = match exact {
            true => interruptible(py, is_short(&self.inner), &progress, || self.inner.info_exact(&progress))?
                .map_err(|it| cancelled(py, it))?,
            false => detached(py, || self.inner.info()),
        };
        let said = words::info(&info, &self.paths);
        Ok((said.text, said.json, words::report(&info.report)))
    }

    /// Overview of the traces in a few words.
    fn summary(&self, py: Python<'_>) -> String {
        words::summary(&detached(py, || self.inner.info()))
    }

    #[getter]
    fn times_are_unix(&self) -> bool {
        self.inner.times_are_unix()
    }

    /// The answer to a command: its tables, the report, text for people, and warnings.
    fn ask(&self, py: Python<'_>, line: Vec<String>) -> PyResult<Said> {
        let progress = Progress::default();
        let ask = || words::ask(&self.inner, &line, &progress).map(|answered| said(&self.inner, answered, &progress));
        // Periods may be many.
        let is_short = is_short(&self.inner) && !line.iter().any(|word| word.starts_with("--period"));
        interruptible(py, is_short, &progress, ask)?.map_err(|why| refused(py, why))
    }

    /// The same question, to be answered in shares, and warnings.
    fn shares(&self, py: Python<'_>, line: Vec<String>) -> PyResult<(Shares, String)> {
        Shares::new(py, &self.inner, &line)
    }

    /// Begin and end that the words select, in nanoseconds.
    fn span(&self, py: Python<'_>, line: Vec<String>) -> PyResult<(Option<i64>, Option<i64>)> {
        let chosen = words::chosen(&self.inner, &line).map_err(|why| refused(py, why))?;
        Ok((chosen.begin_ns, chosen.end_ns))
    }

    /// The printed text that the words select, in pieces on demand; and warnings.
    fn pieces(&self, py: Python<'_>, line: Vec<String>) -> PyResult<(Pieces, String)> {
        let asked = detached(py, || words::print_options(&self.inner, &line));
        let (options, warnings) = asked.map_err(|why| refused(py, why))?;
        let pieces = Pieces::start(Arc::clone(&self.inner), options)?;
        Ok((pieces, warnings))
    }

    /// Writes tables to files; returns them, the report and warnings.
    fn export(
        &self,
        py: Python<'_>,
        output: PathBuf,
        line: Vec<String>,
    ) -> PyResult<(Vec<ExportedTable>, String, String)> {
        let asked = detached(py, || words::export_options(&self.inner, &output, &line));
        let (options, warnings) = asked.map_err(|why| refused(py, why))?;
        let progress = Progress::default();
        let exported = interruptible(py, false, &progress, || self.inner.export(&options, &progress))?;
        let exported = exported.map_err(|failure| error(py, ExceptionKind::Write, &failure.to_string()))?;
        let tables = exported.tables.into_iter().map(|table| (table.path, table.rows, table.replaced_texts));
        Ok((tables.collect(), words::report(&exported.report), warnings))
    }

    /// Events as columns, selected by the words; and warnings.
    fn events(
        &self,
        py: Python<'_>,
        line: Vec<String>,
        columns: Option<Vec<String>>,
        keep_bytes: bool,
    ) -> PyResult<(Events, String)> {
        let chosen = detached(py, || words::chosen(&self.inner, &line)).map_err(|why| refused(py, why))?;
        let question = EventsQuestion {
            selection: chosen.selection,
            begin_ns: chosen.begin_ns,
            end_ns: chosen.end_ns,
            columns,
            keep_bytes,
            ..EventsQuestion::default()
        };
        let table = detached(py, || self.inner.events(&question)).map_err(|failure| no_columns(py, &failure))?;
        Ok((Events::new(table, is_short(&self.inner)), chosen.warnings))
    }
}

fn import_options((definitions, clock_frequency): (Option<PathBuf>, Option<u64>)) -> ImportOptions {
    ImportOptions { definitions, clock_frequency, ..ImportOptions::default() }
}

/// Problems of traces, as JSON.
#[pyfunction]
pub(crate) fn findings(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    import: (Option<PathBuf>, Option<u64>),
) -> PyResult<String> {
    let (progress, options) = (Progress::default(), import_options(import));
    let findings = interruptible(py, false, &progress, || kymo_session::check(&paths, &options, &progress))?;
    Ok(words::findings(&findings.map_err(|it| cancelled(py, it))?))
}

/// The cache folder of the command.
#[pyfunction]
pub(crate) fn cache_folder() -> Option<PathBuf> {
    kymo_session::cache_folder()
}
