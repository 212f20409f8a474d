//! Memory that this program, the recorder and the kernel have in common.

#![allow(unsafe_code, reason = "others write to the memory")]

use core::sync::atomic::AtomicU64;

use crate::{ControlError, ControlErrorKind, socket};

/// Memory of a file, which others have, too.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    begin: *mut u8,
    bytes: usize,
}

// Safety: it is memory of the process, and only read and written by atomic operations.
unsafe impl Send for SharedMemory {}
// Safety: see above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps a file, and closes it.
    pub(crate) fn map(file: Option<i32>, bytes: usize) -> Result<Self, ControlError> {
        let begin = file.and_then(|file| {
            let begin = socket::map(file, bytes);
            socket::close(file);
            begin
        });
        let none = || ControlError::new(ControlErrorKind::Failed, "the kernel does not map the memory of the rule");
        Ok(Self { begin: begin.ok_or_else(none)?, bytes })
    }

    /// The word at a place; `None`: there is none.
    pub(crate) fn word(&self, at: usize) -> Option<&AtomicU64> {
        let is_there = at.is_multiple_of(8) && at.checked_add(8).is_some_and(|end| end <= self.bytes);
        // Safety: it is inside of the mapping, which lives as long as this value, and aligned; others change it, so it is atomic.
        is_there.then(|| unsafe { AtomicU64::from_ptr(self.begin.add(at).cast()) })
    }

    /// The memory is that of the caller from now on.
    pub(crate) fn into_raw(self) -> (*mut u8, usize) {
        let raw = (self.begin, self.bytes);
        core::mem::forget(self);
        raw
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // Safety: the memory was mapped with this address and length, and no reference to it is left.
        unsafe { socket::unmap(self.begin, self.bytes) };
    }
}
