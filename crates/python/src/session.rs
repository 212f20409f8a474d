//! Open traces, for Python.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors::{Kind, error};

/// Open traces; `kymograph.Trace` knows how to open them again.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Session {
    inner: Arc<kymo_session::Session>,
    paths: Vec<PathBuf>,
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (paths, threads, clock_shift_ns, cache))]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        threads: usize,
        clock_shift_ns: i64,
        cache: Option<PathBuf>,
    ) -> PyResult<Self> {
        let opened = py.detach(|| kymo_cli::open_with(&paths, threads, clock_shift_ns, cache));
        match opened {
            Ok(session) => Ok(Self { inner: Arc::new(session), paths }),
            Err(failure) => Err(error(py, Kind::Open, &failure.render())),
        }
    }

    /// What the traces hold: for people as `kymo info` shows it, and as its JSON.
    fn info(&self, py: Python<'_>, exact: bool) -> (String, String, String) {
        let progress = kymo_session::Progress::default();
        let info = py.detach(|| if exact { self.inner.info_exact(&progress) } else { self.inner.info() });
        let words = kymo_cli::words::info(&info, &self.paths);
        (words.text, words.json, kymo_cli::words::report(&info.report))
    }

    /// What the traces hold, in a few words.
    fn summary(&self, py: Python<'_>) -> String {
        kymo_cli::words::summary(&py.detach(|| self.inner.info()))
    }
}

/// Where the command remembers what it found.
#[pyfunction]
pub(crate) fn cache_folder() -> Option<PathBuf> {
    kymo_session::cache_folder()
}
