//! Pages of memory, and their behavior in child processes.

#![allow(unsafe_code, reason = "system calls")]

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use kymo_lane::MemoryLayout;

use crate::place::Descriptor;

/// Minimum size of a page in bytes.
pub(crate) const PAGE: usize = 4096;

/// Private zeroed pages. In a child process, however it was made, they are zeros again.
pub(crate) fn own(bytes: usize) -> Option<NonNull<u8>> {
    let pages = plain(bytes)?;
    // Safety: the pages were just mapped.
    if unsafe { libc::madvise(pages.as_ptr().cast(), bytes, libc::MADV_WIPEONFORK) } != 0 {
        unmap(pages, bytes);
        return None;
    }
    Some(pages)
}

/// Pages that threads have left. They cost a new thread less than a mapping of its own, which would
/// be most of the time of its first event.
static SPARE: [AtomicPtr<u8>; SPARES] = [const { AtomicPtr::new(null_mut()) }; SPARES];
const SPARES: usize = 64;
/// Pages that are mapped at a time.
const BATCH: usize = 8;

/// A page of its own for a thread: so many words of it are zeros, and all are in a child process.
/// Signals are blocked, or a handler could take a page that its thread never gets.
pub(crate) fn of_thread(words: usize) -> Option<NonNull<u8>> {
    let taken = |place: &AtomicPtr<u8>| {
        let is_there = !place.load(Ordering::Relaxed).is_null();
        NonNull::new(if is_there { place.swap(null_mut(), Ordering::Acquire) } else { null_mut() })
    };
    if let Some(page) = SPARE.iter().find_map(taken) {
        // One by one, because race detectors see `memset`, and not the hand-over between threads.
        // Safety: no other thread has the page.
        (0..words).for_each(|word| unsafe { page.cast::<usize>().add(word).write_volatile(0) });
        return Some(page);
    }
    let pages = own(BATCH * PAGE)?;
    // Safety: all of them were just mapped.
    (1..BATCH).for_each(|number| give_back(unsafe { pages.add(number * PAGE) }));
    Some(pages)
}

/// Takes the page of a thread that needs it no more.
pub(crate) fn give_back(page: NonNull<u8>) {
    let keeps = |place: &AtomicPtr<u8>| {
        place.compare_exchange(null_mut(), page.as_ptr(), Ordering::Release, Ordering::Relaxed).is_ok()
    };
    if !SPARE.iter().any(keeps) {
        unmap(page, PAGE);
    }
}

/// Private pages, which a child process has copies of.
pub(crate) fn plain(bytes: usize) -> Option<NonNull<u8>> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // Safety: a new mapping overlaps no other memory.
    let address = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
    NonNull::new(address.cast::<u8>()).filter(|_| address != libc::MAP_FAILED)
}

/// Maps private memory at an address where nothing is mapped; returns whether it is there.
/// Untouched pages cost nothing.
pub(crate) fn fill(at: usize, bytes: usize) -> bool {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let at = at as *mut libc::c_void;
    // Safety: the call never replaces a mapping; older kernels take the address as a hint.
    let address = unsafe { libc::mmap(at, bytes, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0) };
    address == at
}

/// Unmaps pages.
pub(crate) fn unmap(pages: NonNull<u8>, bytes: usize) {
    // Safety: the caller no longer uses the pages.
    unsafe { libc::munmap(pages.as_ptr().cast(), bytes) };
}

/// Maps `bytes` bytes of a file, and extends the file to that length if necessary.
pub(crate) fn share(file: libc::c_int, bytes: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // Safety: the caller owns the file, and a new mapping overlaps no other memory.
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

/// Maximum file size of this process: the kernel sends a signal that ends a process that extends a
/// file beyond it.
pub(crate) fn file_bytes_max() -> u64 {
    // Safety: `limit` has room for the result.
    unsafe {
        let mut limit: libc::rlimit = core::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0 { limit.rlim_cur } else { 0 }
    }
}

/// Sizes of all regions: as many sub-buffers as the maximum file size allows, and no room for users' objects where that leaves
/// fewer than a program has at first. `None`: too few.
pub(crate) fn layout() -> Option<MemoryLayout> {
    let all = MemoryLayout::default();
    let bare = MemoryLayout { object_bytes: 0, ..all };
    let fit = |layout: MemoryLayout, least: u32| {
        let rest = layout.bytes() - pool_bytes(&layout);
        let room = file_bytes_max().checked_sub(rest)? / u64::from(layout.sub_buffer_bytes);
        let sub_buffers = u32::try_from(room).map_or(layout.sub_buffers, |room| room.min(layout.sub_buffers));
        (sub_buffers >= least).then_some(MemoryLayout { sub_buffers, ..layout })
    };
    fit(all, POOL_MAX).or_else(|| fit(bare, SUB_BUFFERS_MIN))
}

fn pool_bytes(layout: &MemoryLayout) -> u64 {
    u64::from(layout.sub_buffers) * u64::from(layout.sub_buffer_bytes)
}

/// Minimum number of sub-buffers. With fewer, a program with some threads would lose nearly all
/// events.
const SUB_BUFFERS_MIN: u32 = 16;

/// Moves a mapping to the place of another, which it replaces. The place is mapped at all times.
pub(crate) fn move_to(from: NonNull<u8>, to: NonNull<u8>, bytes: usize) {
    // Safety: both mappings belong to the caller.
    unsafe {
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        libc::mremap(from.as_ptr().cast(), bytes, bytes, how, to.as_ptr().cast::<libc::c_void>());
    }
}

/// Replaces a mapping with zeroed pages.
pub(crate) fn make_zero(window: NonNull<u8>, bytes: usize) {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // Safety: the mapping belongs to the caller.
    unsafe { libc::mmap(window.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0) };
}

/// Memory that was allocated at the start, on systems that cannot allocate more later: its end, and that of
/// triggers behind the pool.
static GIVEN: AtomicUsize = AtomicUsize::new(0);
static GIVEN_TRIGGERS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Ensures that a file has memory, or gets it on demand. Where it cannot get it on demand,
/// allocates the pool's default size at once.
pub(crate) fn reserve_first(file: &Descriptor, base: *mut u8, layout: &MemoryLayout) -> bool {
    if reserve(base, PAGE as u64) {
        return true;
    }
    // Before Linux 5.14, only a process with a descriptor of the file can allocate memory for it.
    let all = layout.sub_buffer(layout.sub_buffers.min(POOL_MAX));
    // Users' objects have no memory there.
    let [first, end] = [layout.triggers(), layout.objects()];
    let is_given = allocate(file, 0, all) && allocate(file, first, end);
    if is_given {
        GIVEN.store(base as usize + all as usize, Ordering::Relaxed);
        GIVEN_TRIGGERS[0].store(base as usize + first as usize, Ordering::Relaxed);
        GIVEN_TRIGGERS[1].store(base as usize + end as usize, Ordering::Relaxed);
    }
    is_given
}

fn allocate(file: &Descriptor, first: u64, end: u64) -> bool {
    let (first, bytes) = (first as libc::off_t, (end - first) as libc::off_t);
    // Safety: the file belongs to the caller.
    unsafe { libc::syscall(libc::SYS_fallocate, file.0, 0, first, bytes) == 0 }
}

/// Number of sub-buffers that are allocated at the start where they cannot be allocated later: 16
/// MiB.
const POOL_MAX: u32 = 512;

/// Ensures that shared pages have memory: an access to a page that cannot get any would end the
/// program.
pub(crate) fn reserve(address: *mut u8, bytes: u64) -> bool {
    let begin = address as usize & !(PAGE - 1);
    let end = (address as usize + bytes as usize).next_multiple_of(PAGE);
    let [first, last] = [0, 1].map(|at: usize| GIVEN_TRIGGERS[at].load(Ordering::Relaxed));
    if end <= GIVEN.load(Ordering::Relaxed) || first <= begin && end <= last {
        return true;
    }
    // Safety: the call has no visible effect on the content. It needs no descriptor, which the
    // program may have closed.
    unsafe { libc::madvise(begin as *mut libc::c_void, end - begin, libc::MADV_POPULATE_WRITE) == 0 }
}

/// Blocks all signals while this value exists.
pub(crate) struct Quiet {
    before: libc::sigset_t,
}

impl Quiet {
    pub(crate) fn new() -> Self {
        // Safety: signal sets are plain numbers, and the call changes only this thread's mask.
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
        // Safety: it restores the previous mask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, null_mut()) };
    }
}

/// Saves `errno`, and restores it when this value is dropped.
pub(crate) struct Errno(libc::c_int);

impl Errno {
    pub(crate) fn keep() -> Self {
        // Safety: each thread has its own `errno`.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // Safety: each thread has its own `errno`.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
