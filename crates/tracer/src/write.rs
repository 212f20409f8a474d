//! An event that is being written: its fields go where there is room for them, and then it is published.
//!
//! ```text
//! leave   at = end ── published (release) ── busy = 0
//! ```
//!
//! Headers for C do the same, line by line: what changes here changes there.

#![allow(unsafe_code, reason = "each thread has memory of its own")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use crate::process::Process;
use crate::thread::Level;

/// An event that is being written.
#[derive(Debug)]
#[repr(C)]
pub struct Write {
    pub(crate) level: NonNull<Level>,
    /// Where it ends.
    pub(crate) end: u64,
    pub(crate) ticks: u64,
    /// Where the next byte goes.
    pub(crate) to: *mut u8,
}

impl Write {
    /// Bytes of fields. All of an event's together are as many as it was begun with.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        debug_assert!(
            // Safety: the level is the thread's.
            unsafe { self.to.add(bytes.len()) <= self.level.as_ref().memory.add(self.end as usize) },
            "an event has the bytes that it was begun with"
        );
        // Safety: there is room, and nobody else writes there.
        unsafe {
            self.to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.to = self.to.add(bytes.len());
        }
    }

    /// Something of the event was cut, because it would have been too long.
    pub fn was_cut(&self) {
        if let Some(process) = Process::now() {
            // Safety: the level is the thread's, and has a lane as long as something is written there.
            process.program().cut(unsafe { self.level.as_ref().lane() });
        }
    }

    /// It is there: others see it from now on.
    #[inline]
    pub fn leave(self) {
        // Safety: the level is the thread's.
        unsafe {
            let level = self.level.as_ptr();
            let (at, base, published) = (*level).ends();
            at.write(self.end);
            compiler_fence(Ordering::SeqCst);
            let word = (*level).memory.add(published as usize).cast();
            AtomicU64::from_ptr(word).store((self.end - base) << 32 | self.ticks & 0xffff_ffff, Ordering::Release);
            compiler_fence(Ordering::SeqCst);
            (&raw mut (*level).busy).write_volatile(0);
        }
    }
}
