//! How threads give the interpreter's lock back and take it again, also when the interpreter ends, which ends threads that come back to
//! it: the process would go with them, as ours have more than Python on their stacks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use pyo3::prelude::*;

/// Threads that are about to come back to the interpreter or run its code, of this process.
static RETURNING: AtomicUsize = AtomicUsize::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The interpreter ends, and the thread that ends it.
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
