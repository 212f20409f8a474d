//! Events that a handler of signals interrupts which calls fork and returns: in the child they go on, where the memory is not there that they
//! write to. They are the parent's, which writes them itself; here, pages that nobody looks at take their bytes.
//!
//! ```text
//! before fork   writes of this thread go on ──> its page, their stacks, where the memory is
//! parent        forgotten
//! child         pages at that place; levels are busy until the writes end, so that handlers keep to the others
//! ```
//!
//! A write that needs a new lane or sub-buffer keeps handlers away, and then looks whether it is in a child: it ends there.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::pages;
use crate::process::Process;
use crate::thread::{self, LEVELS};

/// What a thread that calls fork has interrupted.
struct Writes {
    /// The thread's page; 0: nothing.
    page: AtomicUsize,
    stacks: [AtomicUsize; LEVELS],
    memory: AtomicUsize,
    bytes: AtomicUsize,
}

/// Of threads that call fork in handlers that have interrupted events at the same time.
static WRITES: [Writes; 8] = [const {
    Writes {
        page: AtomicUsize::new(0),
        stacks: [const { AtomicUsize::new(0) }; LEVELS],
        memory: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
    }
}; 8];

pub(crate) extern "C" fn before_fork() {
    let (page, stacks) = thread::writes();
    let Some(process) = Process::now().filter(|_| stacks != [0; LEVELS]) else { return };
    let mine = |writes: &&Writes| writes.page.compare_exchange(0, page, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if let Some(writes) = WRITES.iter().find(mine) {
        writes.stacks.iter().zip(stacks).for_each(|(to, stack)| to.store(stack, Ordering::Relaxed));
        writes.memory.store(process.base() as usize, Ordering::Relaxed);
        writes.bytes.store(process.bytes(), Ordering::Relaxed);
    }
}

fn of_this_thread() -> Option<&'static Writes> {
    let page = thread::page();
    WRITES.iter().find(|writes| page != 0 && writes.page.load(Ordering::Acquire) == page)
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
            Process::replace(memory as *mut u8);
        }
    }
    WRITES.iter().for_each(|writes| writes.page.store(0, Ordering::Relaxed));
}
