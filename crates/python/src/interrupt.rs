//! Long work, done so that Ctrl-C ends it.
//!
//! ```text
//! main thread  ├ waits, looks for signals ─ waits, looks ─> an exception: cancels, waits for the end, raises it
//! another one  ├────────── the work ──────────────────────> what it found
//! ```
//!
//! Python only notes that a signal came; the main thread handles it, as soon as it looks. Other
//! threads never hear of signals, and do their work themselves. So no thread but the main one comes
//! back to the interpreter before it is done: one that did while the interpreter ends would end the
//! process. The main thread also does work itself that is over before a user could press Ctrl-C: to
//! begin a thread and wake two of them takes a quarter of a millisecond, as long as an answer about
//! our demo.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use crate::interpreter::detached;
use kymo_session::{Progress, Session};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Time between two looks.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// Traces of up to so many bytes are read at once.
const SHORT_BYTES: u64 = 16 << 20;

/// Whether the traces are read at once.
pub(crate) fn is_short(session: &Session) -> bool {
    session.bytes() <= SHORT_BYTES
}

/// Does work that ends when the progress is cancelled, with the interpreter's lock given back.
///
/// # Errors
///
/// The exception that a signal raised meanwhile; the work has ended then, and its result is
/// dropped.
pub(crate) fn interruptible<R: Send>(
    py: Python<'_>,
    is_short: bool,
    progress: &Progress,
    work: impl FnOnce() -> R + Send,
) -> PyResult<R> {
    if is_short || !is_main_thread(py)? {
        return Ok(detached(py, work));
    }
    std::thread::scope(|scope| {
        let (done, mut found) = channel();
        let thread = Builder::new().name("kymo-asked".to_owned());
        let thread = thread.spawn_scoped(scope, move || drop(done.send(work())))?;
        loop {
            let waiting = &mut found;
            match detached(py, move || waiting.recv_timeout(PATIENCE)) {
                Ok(found) => return Ok(found),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = detached(py, || thread.join());
                    resume_unwind(ended.expect_err("only a panic keeps it from telling what it found"));
                }
            }
            if let Err(raised) = py.check_signals() {
                progress.cancel();
                // The result is not needed, nor is a panic.
                let _ = detached(py, || thread.join());
                return Err(raised);
            }
        }
    })
}

/// Whether this is the thread that hears of signals. Runs nothing of Python's own code: others could have their turn there.
pub(crate) fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = MAIN.get_or_try_init(py, || -> PyResult<u64> {
        threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?.extract()
    })?;
    Ok(*main == threading.call_method0(intern!(py, "get_ident"))?.extract::<u64>()?)
}

static MAIN: PyOnceLock<u64> = PyOnceLock::new();
