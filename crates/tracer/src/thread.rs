//! What a thread has: a page of its own, with a lane for each level of handlers that interrupt each other.
//!
//! The page is found by one word of the thread, which is reached without a call. In a child the page is zeros, and everything begins anew.

#![allow(unsafe_code, reason = "each thread has memory of its own")]

use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use kymo_lane::{Lane, Thread};

use crate::clock::ticks;
use crate::pages::{self, PAGE, Quiet};
use crate::process::Process;

/// Handlers that may interrupt each other's writes, and the write that they interrupt.
const LEVELS: usize = 3;
/// Bytes before an event's own: id, low half of the ticks.
const HEAD_BYTES: u64 = 6;

/// All zeros: a new one.
struct Block {
    levels: [Level; LEVELS],
}

struct Level {
    /// Where the stack of the write is that goes on; 0: none does.
    busy: usize,
    has_lane: bool,
    lane: MaybeUninit<Lane>,
}

/// Records an event on the thread that is here.
pub(crate) fn record(id: u16, bytes: &[u8]) {
    let Some(block) = block() else { return lose() };
    let marker = 0_u8;
    let stack = (&raw const marker) as usize;
    // Safety: the page is the thread's, and handlers of signals keep to the levels behind those that are busy.
    unsafe {
        let Some(level) = free_level(block, stack) else { return lose() };
        let levels = &raw mut (*block.as_ptr()).levels;
        let this = levels.cast::<Level>().add(level);
        (&raw mut (*this).busy).write_volatile(stack);
        compiler_fence(Ordering::SeqCst);
        write(&mut *this, level, id, bytes);
        compiler_fence(Ordering::SeqCst);
        (&raw mut (*this).busy).write_volatile(0);
    }
}

fn write(this: &mut Level, level: usize, id: u16, bytes: &[u8]) {
    let Some(process) = Process::here() else { return };
    let program = process.program();
    if !this.has_lane {
        let _quiet = Quiet::new();
        match program.lane(Thread { tid: tid(), level: level as u8, name: name() }) {
            Some(lane) => _ = this.lane.write(lane),
            None => return program.discard(),
        }
        this.has_lane = true;
    }
    // Safety: it has one.
    let lane = unsafe { this.lane.assume_init_mut() };
    let all = HEAD_BYTES + bytes.len() as u64;
    let slot = program.room_here(lane, all, ticks()).or_else(|| {
        let _quiet = Quiet::new();
        program.room(lane, |_| all, ticks)
    });
    if let Some(slot) = slot {
        program.put(slot.at, &id.to_le_bytes());
        program.put(slot.at + 2, &(slot.ticks as u32).to_le_bytes());
        program.put(slot.at + HEAD_BYTES, bytes);
        program.publish(lane, slot);
    }
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

/// Whether the write that began where the stack was `busy` is over, because a handler has jumped out of it.
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
        _ => stack >= busy,
    }
}

fn tid() -> u32 {
    // Safety: it cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

fn name() -> [u8; 16] {
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
    let page = pages::own(PAGE)?;
    word::set(page.as_ptr());
    if let Some(key) = key() {
        // Safety: the key is there, and `leave` knows what to do with a page.
        unsafe { libc::pthread_setspecific(key, page.as_ptr().cast::<libc::c_void>()) };
    }
    Some(page.cast())
}

/// The thread has nothing any more: it is a child's.
pub(crate) fn forget() {
    if let Some(block) = NonNull::new(word::get()) {
        // Safety: a whole page is there, and all zeros are a new block.
        unsafe { block.write_bytes(0, PAGE) };
    }
}

/// What tells that a thread ends.
fn key() -> Option<libc::pthread_key_t> {
    /// One more than the key.
    static KEY: AtomicU32 = AtomicU32::new(0);
    let known = KEY.load(Ordering::Acquire);
    if known > 0 {
        return Some(known - 1);
    }
    let mut key = 0;
    // Safety: `leave` may be called when a thread ends.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(leave)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(key),
        Err(other) => {
            // Safety: nobody has used it.
            unsafe { libc::pthread_key_delete(key) };
            Some(other - 1)
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
mod word {
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
    pub(super) fn get() -> *mut u8 {
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
    pub(super) fn get() -> *mut u8 {
        // Safety: it is the thread's; handlers of signals may change it.
        unsafe { place().read_volatile() }
    }

    #[cfg(target_arch = "aarch64")]
    pub(super) fn set(word: *mut u8) {
        // Safety: it is the thread's.
        unsafe { place().write_volatile(word) };
    }
}
