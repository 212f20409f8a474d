//! Pages of memory, and what becomes of them in a child.

#![allow(unsafe_code, reason = "system calls")]

use core::ptr::{NonNull, null_mut};

/// Bytes of a page, at least.
pub(crate) const PAGE: usize = 4096;

/// Pages of this process alone, all zeros; in a child, however it was made, they are zeros again.
pub(crate) fn own(bytes: usize) -> Option<NonNull<u8>> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // Safety: new memory is nobody else's.
    let address = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    let pages = NonNull::new(address.cast::<u8>()).filter(|_| address != libc::MAP_FAILED)?;
    // Safety: these are the pages.
    if unsafe { libc::madvise(address, bytes, libc::MADV_WIPEONFORK) } != 0 {
        unmap(pages, bytes);
        return None;
    }
    Some(pages)
}

/// Gives pages back.
pub(crate) fn unmap(pages: NonNull<u8>, bytes: usize) {
    // Safety: whoever gives them back does not use them any more.
    unsafe { libc::munmap(pages.as_ptr().cast(), bytes) };
}

/// Makes sure that shared pages have memory: what is touched without any would end the program.
pub(crate) fn reserve(address: *mut u8, bytes: u64) -> bool {
    let begin = address as usize & !(PAGE - 1);
    let end = (address as usize + bytes as usize).next_multiple_of(PAGE);
    // Safety: it changes nothing that can be seen. No descriptor is needed, which the program may have closed.
    unsafe { libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_POPULATE_WRITE) == 0 }
}

/// Signals that are kept away while this is there.
pub(crate) struct Quiet {
    before: libc::sigset_t,
}

impl Quiet {
    pub(crate) fn new() -> Self {
        // Safety: sets of signals are plain numbers, and this thread's mask is its own.
        unsafe {
            let mut all: libc::sigset_t = core::mem::zeroed();
            let mut before: libc::sigset_t = core::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self { before }
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Safety: it is what was there.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, null_mut()) };
    }
}
