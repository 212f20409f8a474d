//! Writes interrupted by a signal handler that calls fork and returns. In the child, such a write
//! continues, but the memory that it writes to is not mapped there. The event belongs to the
//! parent, which writes it itself; in the child, private pages that are never read take its bytes.
//!
//! ```text
//! before fork   writes of this thread go on ──> its page, their stacks, where the memory is
//! parent        forgotten
//! child         pages at that place; levels are busy until the writes end, so that handlers keep to the others
//! ```
//!
//! A write that needs a new lane or sub-buffer blocks signals, and then checks whether it runs in a
//! child. If so, it ends there.

#![allow(unsafe_code, reason = "each thread has memory of its own")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

use crate::pages;
use crate::process::ProcessState;
use crate::thread::{self, LEVELS};

/// Interrupted writes of a thread that calls fork.
struct InterruptedWrites {
    /// The thread, see `this_thread`; 0: the entry is free.
    page: AtomicUsize,
    stacks: [AtomicUsize; LEVELS],
    memory: AtomicUsize,
    bytes: AtomicUsize,
}

/// Room for eight threads that call fork at the same time, in handlers that have interrupted
/// writes.
static WRITES: [InterruptedWrites; 8] = [const {
    InterruptedWrites {
        page: AtomicUsize::new(0),
        stacks: [const { AtomicUsize::new(0) }; LEVELS],
        memory: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
    }
}; 8];

/// Runs of users' programs, which use the memory, too, in threads without a page.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// A run of a user's program in this thread.
pub(crate) struct RunMark(Option<NonNull<usize>>);

impl RunMark {
    /// It begins.
    #[inline]
    pub(crate) fn begin() -> Self {
        let runs = thread::runs();
        match runs {
            // Safety: the page is this thread's. Handlers have given back what they took when they return; those that jump away
            // leave a number that is too high, and a fork keeps more than it needs.
            Some(runs) => unsafe { runs.write_volatile(runs.read_volatile() + 1) },
            None => _ = RUNS.fetch_add(1, Ordering::Relaxed),
        }
        compiler_fence(Ordering::SeqCst);
        Self(runs)
    }

    /// It has come to its end.
    #[inline]
    pub(crate) fn end(self) {
        compiler_fence(Ordering::SeqCst);
        match self.0 {
            // Safety: see above. In a child, the page begins afresh.
            Some(runs) => unsafe { runs.write_volatile(runs.read_volatile().saturating_sub(1)) },
            None => _ = RUNS.fetch_sub(1, Ordering::Relaxed),
        }
    }

    /// Whether there is one.
    fn is_any() -> bool {
        // Safety: the page is this thread's.
        let here = thread::known_runs().is_some_and(|runs| unsafe { runs.read_volatile() } != 0);
        here || RUNS.load(Ordering::Relaxed) != 0
    }
}

/// A number of this thread that it has in a child, too.
fn this_thread() -> usize {
    match thread::page() {
        0 => thread::pointer(),
        page => page,
    }
}

pub(crate) extern "C" fn before_fork() {
    let (page, stacks) = (this_thread(), thread::writes().1);
    let is_interrupted = stacks != [0; LEVELS] || RunMark::is_any();
    let Some(process) = ProcessState::now().filter(|_| is_interrupted) else { return };
    let mine = |writes: &&InterruptedWrites| {
        writes.page.compare_exchange(0, page, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    if let Some(writes) = WRITES.iter().find(mine) {
        writes.stacks.iter().zip(stacks).for_each(|(to, stack)| to.store(stack, Ordering::Relaxed));
        writes.memory.store(process.base() as usize, Ordering::Relaxed);
        writes.bytes.store(process.bytes(), Ordering::Relaxed);
    }
}

fn of_this_thread() -> Option<&'static InterruptedWrites> {
    // The page's address identifies the thread in the child too, where its thread ID is another
    // one.
    let page = this_thread();
    WRITES.iter().find(|writes| writes.page.load(Ordering::Acquire) == page)
}

pub(crate) fn in_parent() {
    of_this_thread().into_iter().for_each(|writes| writes.page.store(0, Ordering::Release));
}

pub(crate) fn in_child() {
    if let Some(writes) = of_this_thread() {
        let memory = writes.memory.load(Ordering::Relaxed);
        if pages::fill(memory, writes.bytes.load(Ordering::Relaxed)) {
            let stacks = [0, 1, 2].map(|level: usize| writes.stacks[level].load(Ordering::Relaxed));
            thread::go_on(stacks, memory as *mut u8);
            ProcessState::replace(memory as *mut u8);
        }
    }
    RUNS.store(0, Ordering::Relaxed);
    // The other entries belong to threads that exist only in the parent.
    WRITES.iter().for_each(|writes| writes.page.store(0, Ordering::Relaxed));
}
