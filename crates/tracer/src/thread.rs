//! What a thread has: a page of its own, with a lane for each level of handlers that interrupt each other.
//!
//! The page is found by one word of the thread, which is reached without a call. In a child the page is zeros, and everything begins anew.

#![allow(unsafe_code, reason = "each thread has memory of its own")]

use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicIsize, AtomicU32, AtomicU64, Ordering, compiler_fence};

use kymo_lane::{CONTEXTS_AT, Lane, Thread};

use crate::pages::{self, PAGE, Quiet};
use crate::process::Process;
use crate::stack::Stack;

/// Handlers that may interrupt each other's writes, and the write that they interrupt.
pub(crate) const LEVELS: usize = 3;

/// All zeros: a new one.
struct Block {
    levels: [Level; LEVELS],
    /// Where its stack lies, for those who look for return addresses.
    stack: Stack,
}

/// A level of handlers. Headers for C know the first words of it, those of the lane included.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Level {
    /// Where the stack of the write is that goes on; 0: none does.
    pub(crate) busy: usize,
    /// Where the process' memory is mapped.
    pub(crate) memory: *mut u8,
    /// What events have to carry so that they can be written without more ado; another number than there is: none can.
    pub(crate) fast: u64,
    lane: MaybeUninit<Lane>,
    has_lane: bool,
}

const _: () = {
    let [at, end, begin, base, published, contexts] = Lane::WORDS;
    assert!(at == 0 && end == 8 && begin == 16 && base == 24 && published == 32 && contexts == 40);
    assert!(core::mem::offset_of!(Level, lane) == 24, "headers for C know it");
};

impl Level {
    fn word(&self, number: usize) -> u64 {
        // Safety: a lane begins with six words; without one, they are zeros.
        unsafe { self.lane.as_ptr().cast::<u64>().add(number).read() }
    }

    /// Where the next event goes, where the sub-buffer ends, and when it began.
    #[inline]
    pub(crate) fn places(&self) -> [u64; 3] {
        [self.word(0), self.word(1), self.word(2)]
    }

    /// What a write ends with: the place of `at`, where the sub-buffer begins, and where the word is that publishes.
    #[inline]
    pub(crate) fn ends(&mut self) -> (*mut u64, u64, u64) {
        (self.lane.as_mut_ptr().cast(), self.word(3), self.word(4))
    }

    /// What events are to carry.
    ///
    /// # Safety
    ///
    /// There is a lane with room.
    #[inline]
    pub(crate) unsafe fn wanted(&self) -> u64 {
        // Safety: so the memory is mapped.
        unsafe { AtomicU64::from_ptr(self.memory.add(CONTEXTS_AT as usize).cast()).load(Ordering::Relaxed) }
    }

    /// Its lane.
    ///
    /// # Safety
    ///
    /// It has one.
    pub(crate) unsafe fn lane(&self) -> &Lane {
        // Safety: it has one.
        unsafe { self.lane.assume_init_ref() }
    }

    /// Its lane, a new one if it has none. `None`: all are taken, and that was counted.
    pub(crate) fn lane_mut(&mut self, process: &Process, level: u8) -> Option<&mut Lane> {
        if !self.has_lane {
            let _quiet = Quiet::new();
            if !process.is_own() {
                return None;
            }
            let program = process.program();
            let Some(lane) = program.lane(Thread { tid: holder(process), level, name: name() }) else {
                program.discard();
                return None;
            };
            self.lane.write(lane);
            self.memory = process.base();
            self.has_lane = true;
        }
        // Safety: it has one.
        Some(unsafe { self.lane.assume_init_mut() })
    }
}

/// The level at which this thread can write, which is busy from now on: by whoever writes where the stack is `stack`. `None`: it was counted
/// as lost.
pub(crate) fn take(stack: usize) -> Option<(NonNull<Level>, u8)> {
    let Some(block) = block() else {
        lose();
        return None;
    };
    // Safety: the page is the thread's, and handlers of signals keep to the levels behind those that are busy.
    unsafe {
        let Some(number) = free_level(block, stack) else {
            lose();
            return None;
        };
        let level = (&raw mut (*block.as_ptr()).levels).cast::<Level>().add(number);
        (&raw mut (*level).busy).write_volatile(stack);
        compiler_fence(Ordering::SeqCst);
        Some((NonNull::new_unchecked(level), number as u8))
    }
}

/// Nothing is written at that level any more.
///
/// # Safety
///
/// It was [taken](take) by whoever calls.
pub(crate) unsafe fn give_back(level: NonNull<Level>) {
    compiler_fence(Ordering::SeqCst);
    // Safety: it is the thread's.
    unsafe { (&raw mut (*level.as_ptr()).busy).write_volatile(0) };
}

/// Where the program is, and the frame of the function that it is in, if functions keep frames.
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

/// Where this thread's stack lies, as far as anybody has asked.
pub(crate) fn known_stack() -> Option<&'static mut Stack> {
    // Safety: the page is the thread's, which alone asks, and stays while it does.
    NonNull::new(word::get().cast::<Block>()).map(|block| unsafe { &mut (*block.as_ptr()).stack })
}

/// Where the stack is.
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

/// Where a thread's memory says on which CPU it is, behind what points to the thread; 0: nowhere. Headers for C know it.
#[unsafe(no_mangle)]
pub static kymo_cpu_offset: AtomicIsize = AtomicIsize::new(0);

/// Looks where the C library has the CPU's number, which the system keeps there.
pub(crate) fn find_cpu() {
    // Safety: the names end with zeros, and what is found is of these types since the C library has it.
    unsafe {
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        if !size.is_null() && !offset.is_null() && *size > 0 {
            kymo_cpu_offset.store(*offset + 4, Ordering::Relaxed);
        }
    }
}

pub(crate) fn knows_cpu() -> bool {
    kymo_cpu_offset.load(Ordering::Relaxed) != 0
}

/// The CPU that the thread is on.
#[inline]
pub(crate) fn cpu() -> u16 {
    let offset = kymo_cpu_offset.load(Ordering::Relaxed);
    if offset == 0 {
        // Safety: it only asks.
        return unsafe { libc::sched_getcpu() } as u16;
    }
    let cpu: u32;
    // Safety: the C library says that it is there.
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

/// An event is lost for which there is no lane.
#[cold]
fn lose() {
    if let Some(process) = Process::now() {
        process.program().discard();
    }
}

/// The first level at which nothing is written.
///
/// # Safety
///
/// The block is this thread's.
#[inline]
unsafe fn free_level(block: NonNull<Block>, stack: usize) -> Option<usize> {
    // Safety: see above.
    let levels = unsafe { (&raw mut (*block.as_ptr()).levels).cast::<Level>() };
    (0..LEVELS).find(|level| {
        // Safety: there are so many.
        let busy = unsafe { &raw mut (*levels.add(*level)).busy };
        // Safety: it is this thread's.
        match unsafe { busy.read_volatile() } {
            0 => true,
            other if is_abandoned(other, stack) => {
                // What was jumped over was not published, and so were those that had interrupted it.
                (*level..LEVELS).for_each(|level| unsafe { (&raw mut (*levels.add(level)).busy).write_volatile(0) });
                true
            }
            _ => false,
        }
    })
}

/// Whether the write that began where the stack was `busy` is over, because a handler has jumped out of it: whoever writes at the same place
/// again has the same stack, and a handler that interrupts a write has less of it.
#[cold]
fn is_abandoned(busy: usize, stack: usize) -> bool {
    // Safety: it only says where the stack for handlers is.
    let (begin, end, is_there) = unsafe {
        let mut found: libc::stack_t = core::mem::zeroed();
        libc::sigaltstack(core::ptr::null(), &raw mut found);
        let begin = found.ss_sp as usize;
        (begin, begin + found.ss_size, found.ss_flags & libc::SS_ONSTACK != 0)
    };
    let was_there = (begin..end).contains(&busy);
    match (was_there, is_there) {
        (false, true) => false,
        (true, false) => true,
        (true, true) => stack >= busy,
        // Handlers may be on a stack that the system does not tell of while they are (SS_AUTODISARM): order says something on one stack alone.
        (false, false) => stack >= busy && known_stack().is_some_and(|known| known.has(busy, stack)),
    }
}

/// Whose a lane is. What a child of vfork records, and a thread in it, is its parent's, which has the lane when the child is gone: no
/// recorder may take it away then.
fn holder(process: &Process) -> u32 {
    // Safety: it cannot fail.
    let pid = unsafe { libc::getpid() } as u32;
    if pid == process.pid() { tid() } else { process.pid() }
}

pub(crate) fn tid() -> u32 {
    // Safety: it cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

pub(crate) fn name() -> [u8; 16] {
    let mut name = [0; 16];
    // Safety: so many bytes are filled in.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// The thread's page.
#[inline]
fn block() -> Option<NonNull<Block>> {
    NonNull::new(word::get().cast()).or_else(new_block)
}

#[cold]
fn new_block() -> Option<NonNull<Block>> {
    const { assert!(size_of::<Block>() <= PAGE, "it fits into a page") };
    let _quiet = Quiet::new();
    // A handler may have made one.
    if let Some(block) = NonNull::new(word::get().cast()) {
        return Some(block);
    }
    let page = pages::own(PAGE)?;
    word::set(page.as_ptr());
    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        // Safety: the key is there, and `leave` knows what to do with a page.
        unsafe { libc::pthread_setspecific(key, page.as_ptr().cast::<libc::c_void>()) };
    }
    Some(page.cast())
}

/// Where this thread's page is, if it has one, and where the stacks of writes are that go on.
pub(crate) fn writes() -> (usize, [usize; LEVELS]) {
    let page = page();
    let mut writes = [0; LEVELS];
    if let Some(block) = NonNull::new(page as *mut Block) {
        for (level, write) in writes.iter_mut().enumerate() {
            // Safety: the page is the thread's, and there are so many levels.
            *write = unsafe { (&raw const (*block.as_ptr()).levels[level].busy).read_volatile() };
        }
    }
    (page, writes)
}

/// Where this thread's page is; 0: it has none.
pub(crate) fn page() -> usize {
    word::get() as usize
}

/// Lets writes go on in a child of fork, into memory that nobody ever looks at.
pub(crate) fn go_on(writes: [usize; LEVELS], memory: *mut u8) {
    let Some(block) = NonNull::new(word::get().cast::<Block>()) else { return };
    for (number, write) in writes.into_iter().enumerate().filter(|(_, write)| *write != 0) {
        // Safety: the page is the thread's, and there are so many levels.
        let level = unsafe { &mut (*block.as_ptr()).levels[number] };
        (level.busy, level.memory) = (write, memory);
        // What its end leaves behind looks like room; no event carries that.
        level.fast = u64::MAX;
    }
}

/// The thread has nothing any more: it is a child's.
pub(crate) fn forget() {
    if let Some(block) = NonNull::new(word::get()) {
        // Safety: a whole page is there, and all zeros are a new block.
        unsafe { block.write_bytes(0, PAGE) };
    }
}

/// One more than the key that tells that a thread ends; 0: there is none.
static KEY: AtomicU32 = AtomicU32::new(0);
/// The C library has room for so many keys in each thread, and allocates for more: an event must not. Without a key, the recorder finds out
/// that the thread is gone.
const KEYS_MAX: u32 = 32;

/// Makes the key, before any thread has events.
pub(crate) fn make_key() {
    let mut key = 0;
    // Safety: `leave` may be called when a thread ends; nobody has used a key that is deleted.
    unsafe {
        if libc::pthread_key_create(&raw mut key, Some(leave)) == 0
            && (key >= KEYS_MAX || KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire).is_err())
        {
            libc::pthread_key_delete(key);
        }
    }
}

/// A thread ends: its lanes are others' from now on. What it still records, it does as a new one.
unsafe extern "C" fn leave(page: *mut libc::c_void) {
    let _quiet = Quiet::new();
    let Some(block) = NonNull::new(page.cast::<Block>()) else { return };
    word::set(core::ptr::null_mut());
    if let Some(process) = Process::now() {
        // Safety: the page is the thread's, and nobody finds it any more.
        let levels = unsafe { &mut (*block.as_ptr()).levels };
        for level in levels.iter_mut().filter(|level| level.has_lane) {
            level.has_lane = false;
            // Safety: it had one.
            process.program().leave(unsafe { level.lane.assume_init_read() });
        }
    }
    pages::unmap(block.cast(), PAGE);
}

/// A word of each thread. It is reached as those of a program's first libraries are, so that nothing is called that might allocate.
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
        // Safety: it is the thread's.
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

    /// Where it lies behind what points to the thread.
    pub(crate) fn offset() -> isize {
        let offset: isize;
        // Safety: it only reads where the word is.
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
        // Safety: it is the thread's.
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
        // Safety: it is where the thread's word is.
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
        // Safety: it is the thread's; handlers of signals may change it.
        unsafe { place().read_volatile() }
    }

    #[cfg(target_arch = "aarch64")]
    pub(super) fn set(word: *mut u8) {
        // Safety: it is the thread's.
        unsafe { place().write_volatile(word) };
    }
}
