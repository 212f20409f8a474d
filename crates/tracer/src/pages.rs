//! Pages of memory, and what becomes of them in a child.

#![allow(unsafe_code, reason = "system calls")]

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};

use kymo_lane::Layout;

use crate::place::Descriptor;

/// Bytes of a page, at least.
pub(crate) const PAGE: usize = 4096;

/// Pages of this process alone, all zeros; in a child, however it was made, they are zeros again.
pub(crate) fn own(bytes: usize) -> Option<NonNull<u8>> {
    let pages = plain(bytes)?;
    // Safety: these are the pages.
    if unsafe { libc::madvise(pages.as_ptr().cast(), bytes, libc::MADV_WIPEONFORK) } != 0 {
        unmap(pages, bytes);
        return None;
    }
    Some(pages)
}

/// Pages of this process, which a child has copies of.
pub(crate) fn plain(bytes: usize) -> Option<NonNull<u8>> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // Safety: new memory is nobody else's.
    let address = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    NonNull::new(address.cast::<u8>()).filter(|_| address != libc::MAP_FAILED)
}

/// Memory of this process alone where there is none; whether it is there. What nobody touches costs nothing.
pub(crate) fn fill(at: usize, bytes: usize) -> bool {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let at = at as *mut libc::c_void;
    // Safety: nothing else is there, or nothing happens; older systems take the place for a wish.
    let address = unsafe { libc::mmap(at, bytes, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0) };
    address == at
}

/// Gives pages back.
pub(crate) fn unmap(pages: NonNull<u8>, bytes: usize) {
    // Safety: whoever gives them back does not use them any more.
    unsafe { libc::munmap(pages.as_ptr().cast(), bytes) };
}

/// Maps a file of so many bytes, which is as long as that from then on.
pub(crate) fn share(file: libc::c_int, bytes: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // Safety: the file is ours, and what is mapped is nobody else's.
    unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        let is_long = libc::fstat(file, &raw mut found) == 0
            && (found.st_size as usize >= bytes || libc::ftruncate(file, bytes as libc::off_t) == 0);
        if !is_long {
            return None;
        }
        let address = libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, file, 0);
        NonNull::new(address.cast::<u8>()).filter(|_| address != libc::MAP_FAILED)
    }
}

/// Bytes that files may have: who makes one larger is ended by a signal.
pub(crate) fn file_bytes_max() -> u64 {
    // Safety: what is filled in is there.
    unsafe {
        let mut limit: libc::rlimit = core::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0 { limit.rlim_cur } else { 0 }
    }
}

/// How large everything is: as many sub-buffers as a file may have. `None`: not even a few.
pub(crate) fn layout() -> Option<Layout> {
    let all = Layout::default();
    let room = file_bytes_max().checked_sub(all.bytes() - pool_bytes(&all))? / u64::from(all.sub_buffer_bytes);
    let sub_buffers = u32::try_from(room).map_or(all.sub_buffers, |room| room.min(all.sub_buffers));
    (sub_buffers >= SUB_BUFFERS_MIN).then_some(Layout { sub_buffers, ..all })
}

fn pool_bytes(layout: &Layout) -> u64 {
    u64::from(layout.sub_buffers) * u64::from(layout.sub_buffer_bytes)
}

/// Of less, a program of some threads would lose nearly everything.
const SUB_BUFFERS_MIN: u32 = 16;

/// Moves what is mapped to where something else is, which is gone then; nobody finds nothing there meanwhile.
pub(crate) fn move_to(from: NonNull<u8>, to: NonNull<u8>, bytes: usize) {
    // Safety: both are ours.
    unsafe {
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        libc::mremap(from.as_ptr().cast(), bytes, bytes, how, to.as_ptr().cast::<libc::c_void>());
    }
}

/// Nothing but zeros is seen there from now on.
pub(crate) fn make_zero(window: NonNull<u8>, bytes: usize) {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // Safety: it is ours.
    unsafe { libc::mmap(window.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0) };
}

/// Where memory ends that was there from the begin, on systems that cannot give more later.
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// Whether a file has memory, or gets it when it is needed. Where that cannot be, it gets all that a pool has by itself.
pub(crate) fn reserve_first(file: &Descriptor, base: *mut u8, layout: &Layout) -> bool {
    if reserve(base, PAGE as u64) {
        return true;
    }
    // Before Linux 5.14, memory is only given by who has the file.
    let all = layout.sub_buffer(layout.sub_buffers.min(POOL_MAX));
    // Safety: it is our file.
    let is_given = unsafe { libc::syscall(libc::SYS_fallocate, file.0, 0, 0, all as libc::off_t) } == 0;
    if is_given {
        GIVEN.store(base as usize + all as usize, Ordering::Relaxed);
    }
    is_given
}

/// Sub-buffers that are there from the begin where they cannot be later: 16 MiB.
const POOL_MAX: u32 = 512;

/// Makes sure that shared pages have memory: what is touched without any would end the program.
pub(crate) fn reserve(address: *mut u8, bytes: u64) -> bool {
    let begin = address as usize & !(PAGE - 1);
    let end = (address as usize + bytes as usize).next_multiple_of(PAGE);
    if end <= GIVEN.load(Ordering::Relaxed) {
        return true;
    }
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

/// What the last call of the system said, to programs that ask: it is what it was when this goes.
pub(crate) struct Errno(libc::c_int);

impl Errno {
    pub(crate) fn keep() -> Self {
        // Safety: each thread has one.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // Safety: each thread has one.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
