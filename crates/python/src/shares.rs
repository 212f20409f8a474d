//! Questions that are answered in shares, for Python: shares and what is known of them are `bytes`.

use std::sync::Arc;

use kymo_cli::words;
use kymo_session::{Progress, Share, Shares as Inner};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::errors::{not_shared, refused};
use crate::interrupt::{interruptible, is_short};
use crate::process::{Owned, detached};
use crate::session::{Said, said};

/// A question to an analysis of the command, to be answered in shares.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Shares {
    asked: Owned<Inner>,
    session: Arc<kymo_session::Session>,
}

impl Shares {
    /// From the words of a command, and warnings.
    pub(crate) fn new(
        py: Python<'_>,
        session: &Arc<kymo_session::Session>,
        line: &[String],
    ) -> PyResult<(Self, String)> {
        let asked = detached(py, || words::shares(session, line));
        let (asked, warnings) = asked.map_err(|why| refused(py, why))?;
        Ok((Self { asked: Owned::new(asked), session: Arc::clone(session) }, warnings))
    }
}

#[pymethods]
impl Shares {
    /// Shares for so many readers, in order.
    fn split<'py>(&self, py: Python<'py>, readers: usize) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let asked = self.asked.get(py)?;
        let shares = detached(py, || asked.split(readers)).map_err(|failure| not_shared(py, &failure))?;
        Ok(shares.iter().map(|share| PyBytes::new(py, &share.encode())).collect())
    }

    /// What is known of a share.
    fn read<'py>(&self, py: Python<'py>, share: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let asked = self.asked.get(py)?;
        let progress = Progress::default();
        let read =
            interruptible(py, is_short(&self.session), &progress, || asked.read(&Share::decode(share)?, &progress))?;
        read.map(|state| PyBytes::new(py, &state)).map_err(|failure| not_shared(py, &failure))
    }

    /// What is known of shares that follow each other.
    fn merge<'py>(&self, py: Python<'py>, states: Vec<PyBackedBytes>) -> PyResult<Bound<'py, PyBytes>> {
        let asked = self.asked.get(py)?;
        let states: Vec<&[u8]> = states.iter().map(|state| &**state).collect();
        let progress = Progress::default();
        let merged = interruptible(py, is_short(&self.session), &progress, || asked.merge(&states, &progress))?;
        merged.map(|state| PyBytes::new(py, &state)).map_err(|failure| not_shared(py, &failure))
    }

    /// The answer, from what is known of all `count` shares in order.
    fn finish(&self, py: Python<'_>, states: Vec<PyBackedBytes>, count: usize) -> PyResult<Said> {
        let asked = self.asked.get(py)?;
        let states: Vec<&[u8]> = states.iter().map(|state| &**state).collect();
        let progress = Progress::default();
        let finish = || {
            let finished = asked.finish(&states, count, &progress)?;
            Ok(said(&self.session, words::answered(&self.session, finished), &progress))
        };
        interruptible(py, is_short(&self.session), &progress, finish)?.map_err(|failure| not_shared(py, &failure))
    }
}
