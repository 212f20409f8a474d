//! Files in memory.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Memory that is mapped from a file.
#[derive(Debug)]
pub(crate) struct Mapped {
    begin: NonNull<u8>,
    bytes: usize,
}

#[allow(unsafe_code)]
// SAFETY: it is memory like any other, and its owner alone uses it.
unsafe impl Send for Mapped {}

impl Mapped {
    pub(crate) fn new(file: &OwnedFd, from: usize, bytes: usize, protection: i32) -> io::Result<Self> {
        Self::of(file, from, bytes, (protection, libc::MAP_SHARED))
    }

    #[allow(unsafe_code)]
    fn of(file: &OwnedFd, from: usize, bytes: usize, (protection, sharing): (i32, i32)) -> io::Result<Self> {
        let from = i64::try_from(from).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at a place of the kernel's choice, of a file that is open.
        let begin = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, sharing, file.as_raw_fd(), from) };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = NonNull::new(begin.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { begin, bytes })
    }

    /// The number at a place.
    #[allow(unsafe_code)]
    pub(crate) fn long(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes, "{at} is no place of a number");
        // SAFETY: it is inside of the mapping, which lives as long as `self`, and aligned; the kernel may change it, so it is atomic.
        unsafe { AtomicU64::from_ptr(self.begin.as_ptr().add(at).cast()) }
    }

    #[allow(unsafe_code)]
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes, "{at} is no place of a number");
        // SAFETY: as of `long`.
        unsafe { AtomicU32::from_ptr(self.begin.as_ptr().add(at).cast()) }
    }

    /// Copies bytes that the kernel does not change.
    #[allow(unsafe_code)]
    pub(crate) fn copy(&self, at: usize, bytes: usize, into: &mut Vec<u8>) {
        assert!(at + bytes <= self.bytes, "{bytes} bytes at {at} are outside");
        // SAFETY: it is inside of the mapping, which lives as long as `self`. A record that is not busy stays as it is until the
        // reader's position says that it was read.
        into.extend_from_slice(unsafe { std::slice::from_raw_parts(self.begin.as_ptr().add(at), bytes) });
    }
}

impl Drop for Mapped {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this address and length, and no reference to it is left.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}

/// The bytes of a file of the kernel's own that never change, mapped.
#[derive(Debug)]
pub(crate) struct ConstantBytes(Mapped);

#[allow(unsafe_code)]
// SAFETY: it is only read.
unsafe impl Sync for ConstantBytes {}

impl ConstantBytes {
    /// Maps so many bytes from the begin of a file.
    ///
    /// # Safety
    ///
    /// The file has as many, and nothing ever changes them.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn map(file: &OwnedFd, bytes: usize) -> io::Result<Self> {
        Mapped::of(file, 0, bytes, (libc::PROT_READ, libc::MAP_PRIVATE)).map(Self)
    }
}

impl Deref for ConstantBytes {
    type Target = [u8];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[u8] {
        let Mapped { begin, bytes } = &self.0;
        // SAFETY: the mapping lives as long as `self`, and nothing writes it: `map` was promised that.
        unsafe { std::slice::from_raw_parts(begin.as_ptr(), *bytes) }
    }
}
