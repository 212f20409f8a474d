//! Questions that are answered in shares, for Python: shares and their states are `bytes`.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::Builder;

use kymo_cli::words;
use kymo_session::{Progress, Share, Shares as Inner};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::answer::{Said, said};
use crate::errors::{not_shared, refused};
use crate::interpreter::detached;
use crate::interrupt::{interruptible, is_short};
use crate::process::ProcessOwned;

/// A question to an analysis of the command, to be answered in shares.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Shares {
    asked: ProcessOwned<Inner>,
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
        Ok((Self { asked: ProcessOwned::new(asked), session: Arc::clone(session) }, warnings))
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

    /// The answer, from what is known of all `count` shares in whatever order it comes: other threads put it together meanwhile.
    fn finish(&self, states: &Bound<'_, PyAny>, count: usize) -> PyResult<Said> {
        let py = states.py();
        let asked = self.asked.get(py)?;
        let progress = Progress::default();
        std::thread::scope(|scope| {
            let (give, given) = channel::<PyBackedBytes>();
            let finish = || {
                let finished = asked.finish(given.into_iter(), count, &progress)?;
                Ok(said(&self.session, words::answered(&self.session, finished), &progress))
            };
            let finishing = Builder::new().name("kymo-finish".to_owned()).spawn_scoped(scope, finish)?;
            let feed = || -> PyResult<()> {
                for state in states.try_iter()? {
                    // A receiver that does not take it has found an error.
                    if give.send(state?.extract()?).is_err() {
                        break;
                    }
                }
                Ok(())
            };
            let fed = feed().inspect_err(|_| progress.cancel());
            drop(give);
            let finished = interruptible(py, is_short(&self.session), &progress, || finishing.join());
            fed?;
            finished?.unwrap_or_else(|panic| resume_unwind(panic)).map_err(|failure| not_shared(py, &failure))
        })
    }
}
