//! What belongs to the process that made it: threads do not live on in a child, so that a child must neither ask nor wait for
//! what its parent's threads do. And what threads do when the interpreter ends, which ends threads that come back to it: the process
//! would go with them, as ours have more than Python on their stacks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::{Kind, error};

/// Something that only the process that made it may use. A child forgets it: giving it back could wait for ever.
pub(crate) struct Owned<T> {
    process: u32,
    inner: Option<T>,
}

impl<T> Owned<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { process: std::process::id(), inner: Some(inner) }
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// What it is, if it is ours.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        match &self.inner {
            Some(inner) if self.is_ours() => Ok(inner),
            _ => Err(foreign(py)),
        }
    }

    /// The same, to change it.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        if self.is_ours() { self.inner.as_mut() } else { None }
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            std::mem::forget(self.inner.take());
        }
    }
}

/// What is said of something that is another process'.
pub(crate) const FOREIGN: &str = "it was begun by another process: a child of it must begin anew";

pub(crate) fn foreign(py: Python<'_>) -> PyErr {
    error(py, Kind::Fork, FOREIGN)
}

/// Threads that are about to come back to the interpreter or run its code, of this process.
static RETURNING: AtomicUsize = AtomicUsize::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The interpreter ends, and who ends it.
static ENDS: AtomicBool = AtomicBool::new(false);
static ENDED_BY: OnceLock<ThreadId> = OnceLock::new();

/// Works with the interpreter's lock given back. Does not come back when the interpreter ends.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    let result = py.detach(|| {
        let result = work();
        forget_the_parents();
        RETURNING.fetch_add(1, Ordering::SeqCst);
        if ENDS.load(Ordering::SeqCst) && ENDED_BY.get() != Some(&std::thread::current().id()) {
            RETURNING.fetch_sub(1, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        }
        result
    });
    RETURNING.fetch_sub(1, Ordering::SeqCst);
    result
}

/// Runs Python's own code, where other threads can have their turn: the interpreter does not end meanwhile. `None`: it ends already.
pub(crate) fn staying<R>(work: impl FnOnce() -> R) -> Option<R> {
    forget_the_parents();
    RETURNING.fetch_add(1, Ordering::SeqCst);
    let ends = ENDS.load(Ordering::SeqCst) && ENDED_BY.get() != Some(&std::thread::current().id());
    let result = (!ends).then(work);
    RETURNING.fetch_sub(1, Ordering::SeqCst);
    result
}

/// The interpreter is about to end: waits for the threads that are coming back to it, or run code for us. No others will.
#[pyfunction]
pub(crate) fn ends(py: Python<'_>) {
    forget_the_parents();
    let _ = ENDED_BY.set(std::thread::current().id());
    ENDS.store(true, Ordering::SeqCst);
    py.detach(|| {
        while RETURNING.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    });
}

/// The threads that were coming back in the parent are not in its child.
fn forget_the_parents() {
    let process = std::process::id();
    if PROCESS.swap(process, Ordering::SeqCst) != process {
        RETURNING.store(0, Ordering::SeqCst);
    }
}
