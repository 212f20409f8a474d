//! State of a thread: one page of its own, with one lane for each level of nested signal handlers.
//!
//! A thread-local word points to the page and is read without a function call. In a child process
//! the page is all zeros, and the child starts afresh.

#![allow(unsafe_code, reason = "each thread has memory of its own")]

use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicIsize, AtomicU32, AtomicU64, Ordering, compiler_fence};

use kymo_lane::{CONTEXTS_AT, Lane, WriterThread};

use crate::pages::{self, PAGE, Quiet};
use crate::process::ProcessState;
use crate::stack::StackBounds;

/// Levels of writes on one thread: one write, and the handlers that may interrupt it and each
/// other. Each level costs a lane, and with it a sub-buffer. Deeper nesting is rare; its events are
/// counted as lost.
pub(crate) const LEVELS: usize = 3;

/// All zeros is a valid new block.
struct ThreadBlock {
    levels: [NestingLevel; LEVELS],
    /// Bounds of the thread's stack, for walking return addresses.
    stack: StackBounds,
    /// Runs of users' programs inside of each other: handlers have theirs.
    runs: usize,
}

/// One level of nested writes. The C headers depend on its first words, including those of the
/// lane.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct NestingLevel {
    /// Stack pointer of the write in progress; 0: none.
    pub(crate) busy: usize,
    /// Address where the process' memory is mapped.
    pub(crate) memory: *mut u8,
    /// Contexts for which the fast path writes events. An event takes the fast path only if this
    /// equals the wanted contexts.
    pub(crate) fast: u64,
    lane: MaybeUninit<Lane>,
    has_lane: bool,
}

const _: () = {
    let [at, end, begin, base, published, contexts] = Lane::WORDS;
    assert!(at == 0 && end == 8 && begin == 16 && base == 24 && published == 32 && contexts == 40);
    assert!(core::mem::offset_of!(NestingLevel, lane) == 24, "headers for C know it");
};

impl NestingLevel {
    fn word(&self, number: usize) -> u64 {
        // Safety: a lane begins with six words; without a lane they are zeros.
        unsafe { self.lane.as_ptr().cast::<u64>().add(number).read() }
    }

    /// Place of the next event, end of the sub-buffer, and its begin in ticks.
    #[inline]
    pub(crate) fn places(&self) -> [u64; 3] {
        [self.word(0), self.word(1), self.word(2)]
    }

    /// Values that finish a write: pointer to `at`, base of the sub-buffer, and place of the word
    /// that publishes.
    #[inline]
    pub(crate) fn ends(&mut self) -> (*mut u64, u64, u64) {
        (self.lane.as_mut_ptr().cast(), self.word(3), self.word(4))
    }

    /// Contexts that the recorder currently wants.
    ///
    /// # Safety
    ///
    /// The level has a lane with room.
    #[inline]
    pub(crate) unsafe fn wanted(&self) -> u64 {
        // Safety: a lane with room implies that the memory is mapped.
        unsafe { AtomicU64::from_ptr(self.memory.add(CONTEXTS_AT as usize).cast()).load(Ordering::Relaxed) }
    }

    /// The level's lane.
    ///
    /// # Safety
    ///
    /// The level has a lane.
    pub(crate) unsafe fn lane(&self) -> &Lane {
        // Safety: the level has a lane.
        unsafe { self.lane.assume_init_ref() }
    }

    /// Whether the level has a lane.
    pub(crate) fn has_lane(&self) -> bool {
        self.has_lane
    }

    /// The level's lane; takes a new one if it has none. `None`: all lanes are taken, and the lost
    /// event was counted. `quiet`: signals are blocked already.
    pub(crate) fn lane_mut(&mut self, process: &ProcessState, level: u8, quiet: Option<Quiet>) -> Option<&mut Lane> {
        if !self.has_lane {
            let _quiet = quiet.unwrap_or_else(Quiet::new);
            // Checked with signals blocked: no handler can fork from here until the lane is stored.
            if !process.is_own() {
                return None;
            }
            let program = process.program();
            let Some(lane) = program.lane(WriterThread { tid: holder(process), level, name: name() }) else {
                program.discard();
                return None;
            };
            self.lane.write(lane);
            self.memory = process.base();
            // Last: the thread's destructor reads `lane` only if this is set.
            self.has_lane = true;
        }
        // Safety: the level has a lane now.
        Some(unsafe { self.lane.assume_init_mut() })
    }
}

/// Takes the first free level and marks it busy with the caller's stack pointer, `stack`. `None`:
/// no level is free, and the lost event was counted. Signals stay blocked if the thread is new.
pub(crate) fn take(stack: usize) -> Option<(NonNull<NestingLevel>, u8, Option<Quiet>)> {
    let quiet = (page() == 0).then(Quiet::new);
    let Some(block) = block() else {
        lose();
        return None;
    };
    // Safety: the page belongs to this thread, and signal handlers use only the levels after the
    // busy ones.
    unsafe {
        let Some(number) = free_level(block, stack) else {
            lose();
            return None;
        };
        let level = (&raw mut (*block.as_ptr()).levels).cast::<NestingLevel>().add(number);
        // A handler that ran after `free_level` has given this level back before it returned, so
        // the level is still free. A compiler fence suffices here and below: handlers run on this
        // thread, and a thread sees its own stores in program order.
        (&raw mut (*level).busy).write_volatile(stack);
        compiler_fence(Ordering::SeqCst);
        Some((NonNull::new_unchecked(level), number as u8, quiet))
    }
}

/// Ends the write at a level.
///
/// # Safety
///
/// The caller has [taken](take) the level.
pub(crate) unsafe fn give_back(level: NonNull<NestingLevel>) {
    compiler_fence(Ordering::SeqCst);
    // Safety: the level belongs to this thread.
    unsafe { (&raw mut (*level.as_ptr()).busy).write_volatile(0) };
}

/// Current instruction address, and current frame pointer, if functions keep frame pointers.
#[inline(always)]
pub(crate) fn place() -> [*const u8; 2] {
    let (site, frame): (*const u8, *const u8);
    // Safety: it only reads registers.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("lea {}, [rip]", "mov {}, rbp", out(reg) site, out(reg) frame, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("adr {}, .", "mov {}, x29", out(reg) site, out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    [site, frame]
}

/// Bounds of this thread's stack as found so far.
pub(crate) fn known_stack() -> Option<&'static mut StackBounds> {
    // Safety: the page belongs to this thread, only this thread uses it here, and it stays mapped
    // meanwhile.
    NonNull::new(word::get().cast::<ThreadBlock>()).map(|block| unsafe { &mut (*block.as_ptr()).stack })
}

/// Current stack pointer.
#[inline(always)]
pub(crate) fn stack() -> usize {
    let stack: usize;
    #[cfg(target_arch = "x86_64")]
    // Safety: it only reads a register.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) stack, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // Safety: it only reads a register.
    unsafe {
        core::arch::asm!("mov {}, sp", out(reg) stack, options(nomem, nostack, preserves_flags));
    }
    stack
}

/// Offset of the CPU number from the thread pointer; 0: unavailable. The C headers depend on it.
#[unsafe(no_mangle)]
pub static kymo_cpu_offset: AtomicIsize = AtomicIsize::new(0);

/// Looks up where the C library registered `rseq`: the kernel keeps the CPU number there.
pub(crate) fn find_cpu() {
    // Safety: the names are NUL-terminated, and the symbols have had these types since the C
    // library introduced them.
    unsafe {
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        // The size is 0 if the kernel or the C library has not registered the area. `cpu_id` is the
        // second 4-byte word of it.
        if !size.is_null() && !offset.is_null() && *size > 0 {
            kymo_cpu_offset.store(*offset + 4, Ordering::Relaxed);
        }
    }
}

pub(crate) fn knows_cpu() -> bool {
    kymo_cpu_offset.load(Ordering::Relaxed) != 0
}

/// CPU on which the thread runs.
#[inline]
pub(crate) fn cpu() -> u16 {
    let offset = kymo_cpu_offset.load(Ordering::Relaxed);
    if offset == 0 {
        // Safety: the call has no side effects.
        return unsafe { libc::sched_getcpu() } as u16;
    }
    let cpu: u32;
    // Safety: the C library guarantees that the number is at this offset.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov {:e}, dword ptr fs:[{}]", out(reg) cpu, in(reg) offset, options(nostack, readonly, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "mrs {thread}, tpidr_el0",
            "ldr {cpu:w}, [{thread}, {offset}]",
            thread = out(reg) _,
            cpu = out(reg) cpu,
            offset = in(reg) offset,
            options(nostack, readonly, preserves_flags)
        );
    }
    cpu as u16
}

/// Counts a lost event without a lane.
#[cold]
fn lose() {
    if let Some(process) = ProcessState::now() {
        process.program().discard();
    }
}

/// The first level without a write in progress.
///
/// # Safety
///
/// The block belongs to this thread.
#[inline]
unsafe fn free_level(block: NonNull<ThreadBlock>, stack: usize) -> Option<usize> {
    // Safety: see above.
    let levels = unsafe { (&raw mut (*block.as_ptr()).levels).cast::<NestingLevel>() };
    (0..LEVELS).find(|level| {
        // Safety: the block has `LEVELS` levels.
        let busy = unsafe { &raw mut (*levels.add(*level)).busy };
        // Safety: the level belongs to this thread.
        match unsafe { busy.read_volatile() } {
            0 => true,
            other if is_abandoned(other, stack) => {
                // A handler jumped out of this write, so it was not published; neither were the
                // writes that had interrupted it. All these levels are free again.
                (*level..LEVELS).for_each(|level| unsafe { (&raw mut (*levels.add(level)).busy).write_volatile(0) });
                true
            }
            _ => false,
        }
    })
}

/// Whether the write that began at stack pointer `busy` is over because a handler jumped out of it.
/// The stack grows downward: a handler that interrupts a write runs below it, so a write at the
/// same place or above proves that the old write is gone.
#[cold]
fn is_abandoned(busy: usize, stack: usize) -> bool {
    // Two stack pointers are comparable only on one stack. The kernel says where the alternate stack
    // is, and whether this code runs on it now.
    //
    // Safety: it only queries the alternate signal stack.
    let (begin, end, is_there) = unsafe {
        let mut found: libc::stack_t = core::mem::zeroed();
        libc::sigaltstack(core::ptr::null(), &raw mut found);
        let begin = found.ss_sp as usize;
        (begin, begin + found.ss_size, found.ss_flags & libc::SS_ONSTACK != 0)
    };
    let was_there = (begin..end).contains(&busy);
    match (was_there, is_there) {
        // The handler runs on the alternate stack, and may have interrupted the write on the other
        // one.
        (false, true) => false,
        // The thread has left the alternate stack, and with it the handler that wrote there.
        (true, false) => true,
        (true, true) => stack >= busy,
        // Handlers may run on a stack that the kernel does not report meanwhile (SS_AUTODISARM).
        // Comparing addresses is meaningful only within one stack.
        (false, false) => stack >= busy && known_stack().is_some_and(|known| known.has(busy, stack)),
    }
}

/// Thread ID to record as the owner of a lane. Lanes that a vfork child, or a thread in it, takes
/// belong to the parent, which keeps them after the child is gone. So the parent's ID is recorded;
/// otherwise a recorder would take the lane away when the child ends.
fn holder(process: &ProcessState) -> u32 {
    // Safety: it cannot fail.
    let pid = unsafe { libc::getpid() } as u32;
    if pid == process.pid() { tid() } else { process.pid() }
}

/// An address that only this thread has, while it lives.
#[inline]
pub(crate) fn pointer() -> usize {
    let pointer;
    // Safety: the instruction reads the thread pointer; on x86-64 its first word is its own address.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, readonly, pure, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, pure, preserves_flags));
    }
    pointer
}

pub(crate) fn tid() -> u32 {
    // Safety: it cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

pub(crate) fn name() -> [u8; 16] {
    let mut name = [0; 16];
    // Safety: the call writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// The thread's page; a new one if it has none, and then signals are blocked.
#[inline]
fn block() -> Option<NonNull<ThreadBlock>> {
    NonNull::new(word::get().cast()).or_else(new_block)
}

#[cold]
fn new_block() -> Option<NonNull<ThreadBlock>> {
    const { assert!(size_of::<ThreadBlock>() <= PAGE, "it fits into a page") };
    let page = pages::of_thread(size_of::<ThreadBlock>().div_ceil(size_of::<usize>()))?;
    // If this fails, only the page leaks: the recorder finds out by itself that the thread is gone.
    word::set(page.as_ptr());
    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        // Safety: the key exists, and its destructor `leave` expects a page.
        unsafe { libc::pthread_setspecific(key, page.as_ptr().cast::<libc::c_void>()) };
    }
    Some(page.cast())
}

/// Address of this thread's page, 0 if it has none, and the stack pointers of its writes in
/// progress.
pub(crate) fn writes() -> (usize, [usize; LEVELS]) {
    let page = page();
    let mut writes = [0; LEVELS];
    if let Some(block) = NonNull::new(page as *mut ThreadBlock) {
        for (level, write) in writes.iter_mut().enumerate() {
            // Safety: the page belongs to this thread, and has `LEVELS` levels.
            *write = unsafe { (&raw const (*block.as_ptr()).levels[level].busy).read_volatile() };
        }
    }
    (page, writes)
}

/// The number of this thread's runs of users' programs, which its handlers change, too. `None`: there is no page.
#[inline]
pub(crate) fn runs() -> Option<NonNull<usize>> {
    if page() == 0 {
        let _quiet = Quiet::new();
        block()?;
    }
    known_runs()
}

/// The same of a thread that has a page.
#[inline]
pub(crate) fn known_runs() -> Option<NonNull<usize>> {
    let block = NonNull::new(word::get().cast::<ThreadBlock>())?;
    // Safety: the page belongs to this thread.
    NonNull::new(unsafe { &raw mut (*block.as_ptr()).runs })
}

/// Address of this thread's page; 0: it has none.
pub(crate) fn page() -> usize {
    word::get() as usize
}

/// Lets writes in progress continue in a forked child, into memory that is never read.
pub(crate) fn go_on(writes: [usize; LEVELS], memory: *mut u8) {
    let Some(block) = NonNull::new(word::get().cast::<ThreadBlock>()) else { return };
    for (number, write) in writes.into_iter().enumerate().filter(|(_, write)| *write != 0) {
        // Safety: the page belongs to this thread, and has `LEVELS` levels.
        let level = unsafe { &mut (*block.as_ptr()).levels[number] };
        (level.busy, level.memory) = (write, memory);
        // The end of the write stores `at` in a level without a lane, where `end - at` then looks
        // like room. No event carries these contexts, so no event takes the fast path into it.
        level.fast = u64::MAX;
    }
}

/// Clears the thread's state in a child process.
pub(crate) fn forget() {
    if let Some(block) = NonNull::new(word::get()) {
        // Safety: a whole page is mapped, and all zeros is a valid new block.
        unsafe { block.write_bytes(0, PAGE) };
    }
}

/// The `pthread` key whose destructor runs when a thread ends, plus one; 0: none.
static KEY: AtomicU32 = AtomicU32::new(0);
/// The C library has room for this many keys in each thread, and allocates memory for more, which
/// an event must not do. Without a key, the recorder finds out by itself that a thread is gone.
const KEYS_MAX: u32 = 32;

/// Creates the key, before any thread has events.
pub(crate) fn make_key() {
    let mut key = 0;
    // Safety: `leave` is a valid destructor, and a deleted key was never used.
    unsafe {
        if libc::pthread_key_create(&raw mut key, Some(leave)) == 0
            // Another thread may have stored its key first: the second key is deleted.
            && (key >= KEYS_MAX || KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire).is_err())
        {
            libc::pthread_key_delete(key);
        }
    }
}

/// Gives the lanes of an ending thread back. Events that it still records afterwards start with new
/// state, like those of a new thread.
unsafe extern "C" fn leave(page: *mut libc::c_void) {
    let _quiet = Quiet::new();
    let Some(block) = NonNull::new(page.cast::<ThreadBlock>()) else { return };
    // First, so that an event in a later destructor gets a new page, and does not write to a lane
    // that another thread owns by then.
    word::set(core::ptr::null_mut());
    if let Some(process) = ProcessState::now() {
        // Safety: the page belongs to this thread, which no longer points to it.
        let levels = unsafe { &mut (*block.as_ptr()).levels };
        // In a child process the page is zeros, so the child gives back no lane of its parent.
        for level in levels.iter_mut().filter(|level| level.has_lane) {
            level.has_lane = false;
            // Safety: the level had a lane.
            process.program().leave(unsafe { level.lane.assume_init_read() });
        }
    }
    pages::give_back(block.cast());
}

/// A thread-local word in the initial-exec model, like the thread-local storage of libraries that
/// are loaded at program start. Access to it calls no function that might allocate.
pub(crate) mod word {
    core::arch::global_asm!(
        ".pushsection .tbss.kymo_block,\"awT\",@nobits",
        ".p2align 3",
        ".hidden kymo_block",
        ".globl kymo_block",
        ".type kymo_block, @object",
        ".size kymo_block, 8",
        "kymo_block:",
        ".zero 8",
        ".popsection",
    );

    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn get() -> *mut u8 {
        let word;
        // Safety: the word belongs to this thread.
        unsafe {
            core::arch::asm!(
                "mov {word}, qword ptr [rip + kymo_block@GOTTPOFF]",
                "mov {word}, qword ptr fs:[{word}]",
                word = out(reg) word,
                options(nostack, readonly, preserves_flags)
            );
        }
        word
    }

    /// Offset of the word from the thread pointer.
    pub(crate) fn offset() -> isize {
        let offset: isize;
        // Safety: the instructions only read the word's offset.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!("mov {}, qword ptr [rip + kymo_block@GOTTPOFF]", out(reg) offset, options(nostack, readonly));
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!(
                "adrp {place}, :gottprel:kymo_block",
                "ldr {place}, [{place}, :gottprel_lo12:kymo_block]",
                place = out(reg) offset,
                options(nostack, readonly)
            );
        }
        offset
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn set(word: *mut u8) {
        // Safety: the word belongs to this thread.
        unsafe {
            core::arch::asm!(
                "mov {place}, qword ptr [rip + kymo_block@GOTTPOFF]",
                "mov qword ptr fs:[{place}], {word}",
                place = out(reg) _,
                word = in(reg) word,
                options(nostack, preserves_flags)
            );
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn place() -> *mut *mut u8 {
        let place;
        // Safety: the result is the address of the thread's word.
        unsafe {
            core::arch::asm!(
                "mrs {base}, tpidr_el0",
                "adrp {place}, :gottprel:kymo_block",
                "ldr {place}, [{place}, :gottprel_lo12:kymo_block]",
                "add {place}, {place}, {base}",
                base = out(reg) _,
                place = out(reg) place,
                options(nostack, readonly, preserves_flags)
            );
        }
        place
    }

    #[cfg(target_arch = "aarch64")]
    #[inline]
    pub(crate) fn get() -> *mut u8 {
        // Safety: the word belongs to this thread; signal handlers may change it.
        unsafe { place().read_volatile() }
    }

    #[cfg(target_arch = "aarch64")]
    pub(super) fn set(word: *mut u8) {
        // Safety: the word belongs to this thread.
        unsafe { place().write_volatile(word) };
    }
}
