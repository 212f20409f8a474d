//! An event in progress: its fields go into the reserved room, then it is published.
//!
//! ```text
//! leave   at = end ── published (release) ── busy = 0
//! ```
//!
//! The C headers do the same, line by line; change both together.

#![allow(unsafe_code, reason = "each thread has memory of its own")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use crate::process::ProcessState;
use crate::thread::NestingLevel;

/// An event in progress.
#[derive(Debug)]
#[repr(C)]
pub struct Write {
    pub(crate) level: NonNull<NestingLevel>,
    /// Place after the event's last byte.
    pub(crate) end: u64,
    pub(crate) ticks: u64,
    /// Address of the next byte.
    pub(crate) to: *mut u8,
}

impl Write {
    /// Appends bytes of fields. All bytes of an event together must be as many as it was begun
    /// with.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        debug_assert!(
            // Safety: the level belongs to this thread.
            unsafe { self.to.add(bytes.len()) <= self.level.as_ref().memory.add(self.end as usize) },
            "an event has the bytes that it was begun with"
        );
        // Safety: the room is reserved, and only this write uses it.
        unsafe {
            self.to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.to = self.to.add(bytes.len());
        }
    }

    /// Counts that part of the event was truncated because it was too long.
    pub fn was_cut(&self) {
        if let Some(process) = ProcessState::now() {
            // Safety: the level belongs to this thread, and has a lane while a write is in
            // progress.
            process.program().cut(unsafe { self.level.as_ref().lane() });
        }
    }

    /// Publishes the event: other processes see it from now on. `at` moves first: if a handler
    /// jumps out between the two stores, the next event publishes this one too. `busy` is reset
    /// last, so that a handler that interrupts the write keeps to another level until the end.
    #[inline]
    pub fn leave(self) {
        // Safety: the level belongs to this thread.
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
