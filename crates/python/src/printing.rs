//! Events as text, for Python.
//!
//! Another thread makes it, in pieces that Python asks for. Nothing here calls Python: a callback
//! while the interpreter ends would never come back, and the process would be aborted.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use kymo_session::{PrintOptions, Progress, Report};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::interpreter::detached;
use crate::interrupt::PATIENCE;
use crate::process::{ProcessOwned, foreign};

/// Bytes of one chunk.
const CHUNK_BYTES: usize = 1 << 16;
/// Maximum number of chunks that wait for the reader.
const CHUNKS_WAITING: usize = 4;

/// Pieces of text that another thread makes on demand. That thread does not use Python.
#[pyclass(frozen, module = "kymograph._native")]
pub(crate) struct Pieces {
    pieces: Mutex<ProcessOwned<Receiver<PrintedPiece>>>,
    progress: Arc<Progress>,
}

/// That thread ends also where it never has anything to say.
impl Drop for Pieces {
    fn drop(&mut self) {
        self.progress.cancel();
    }
}

enum PrintedPiece {
    Text(Vec<u8>),
    End(Report),
}

impl Pieces {
    pub(crate) fn start(session: Arc<kymo_session::Session>, options: PrintOptions) -> io::Result<Self> {
        let (sender, pieces) = sync_channel(CHUNKS_WAITING);
        let progress = Arc::<Progress>::default();
        let own = Arc::clone(&progress);
        std::thread::Builder::new().name("kymo-print".to_owned()).spawn(move || {
            let mut out = ToChannel { sender, text: Vec::with_capacity(CHUNK_BYTES) };
            // It ends early if the receiver is gone.
            if let Ok(printed) = session.print(&options, &mut out, &own)
                && out.flush().is_ok()
            {
                let _ = out.sender.send(PrintedPiece::End(printed.report));
            }
        })?;
        Ok(Self { pieces: Mutex::new(ProcessOwned::new(pieces)), progress })
    }
}

#[pymethods]
impl Pieces {
    /// The next piece of text, or the report as JSON behind the last one, or `None` behind that.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<(Option<Bound<'py, PyBytes>>, Option<String>)> {
        loop {
            let piece = detached(py, || {
                let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
                pieces.get_mut().map(|pieces| pieces.recv_timeout(PATIENCE))
            });
            match piece.ok_or_else(|| foreign(py))? {
                Ok(PrintedPiece::Text(text)) => return Ok((Some(PyBytes::new(py, &text)), None)),
                Ok(PrintedPiece::End(report)) => return Ok((None, Some(kymo_cli::words::report(&report)))),
                Err(RecvTimeoutError::Disconnected) => return Ok((None, None)),
                // The user may have pressed Ctrl-C.
                Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| self.progress.cancel())?,
            }
        }
    }
}

struct ToChannel {
    sender: SyncSender<PrintedPiece>,
    text: Vec<u8>,
}

impl Write for ToChannel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        if self.text.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = std::mem::replace(&mut self.text, Vec::with_capacity(CHUNK_BYTES));
        self.sender.send(PrintedPiece::Text(text)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
