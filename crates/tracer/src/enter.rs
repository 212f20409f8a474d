//! Starts writing an event: a fast path reserves room after the thread's last event; a slow path
//! does everything else.
//!
//! ```text
//! enter   busy = stack ── clock ── room? same contexts? ──> id, ticks, CPU ──> where fields go
//!            └ anything else: slowly(): no lane yet, a handler of signals, the next sub-buffer, other contexts
//! ```
//!
//! `Write::leave` publishes the event. The C headers do what `enter` does, line by line; change
//! both together.

#![allow(unsafe_code, reason = "each thread has memory of its own")]

use core::ptr::NonNull;
use core::sync::atomic::{Ordering, compiler_fence};

use kymo_lane::{Reservation, WriterThread, contexts};

use crate::begin::here;
use crate::clock::{counter, ticks};
use crate::context::{EventContexts, there_are};
use crate::event::Event;
use crate::judge;
use crate::pages::{Errno, Quiet};
use crate::thread::{self, NestingLevel};
use crate::write::Write;

/// Bytes of each event's head: ID, low half of the ticks.
const HEAD_BYTES: u64 = 6;

impl Event {
    /// Starts recording an event with `bytes` bytes of fields. `None`: the event is lost and
    /// counted.
    #[inline]
    pub fn enter(&self, bytes: u64) -> Option<Write> {
        enter(self, bytes)
    }

    /// Records the event if it is on, with the field bytes that its definition describes. Filters
    /// are not evaluated.
    #[inline]
    pub fn record(&self, bytes: &[u8]) {
        match self.control() {
            0 => {}
            1 => self.put(bytes),
            slot => self.put_unfiltered(slot, bytes),
        }
    }

    /// The recorder evaluates the filter, and watches for triggers.
    #[cold]
    fn put_unfiltered(&self, slot: u8, bytes: &[u8]) {
        judge::tell_unjudged(slot, self.id());
        self.put(bytes);
    }

    #[inline(never)]
    fn put(&self, bytes: &[u8]) {
        if let Some(mut write) = self.enter(bytes.len() as u64) {
            write.put(bytes);
            write.leave();
        }
    }
}

/// Starts writing an event. An event has an ID once it is on.
#[inline]
pub(crate) fn enter(event: &Event, bytes: u64) -> Option<Write> {
    let here = thread::word::get().cast::<NestingLevel>();
    // The page begins with level 0, the only one that the fast path uses. A write inside a handler
    // that interrupts this level goes the slow way.
    let Some(level) = NonNull::new(here) else { return slowly(event, bytes, thread::place(), thread::stack()) };
    // Safety: the page belongs to this thread, and signal handlers see that the level is busy.
    unsafe {
        // A handler between this read and the next write may use the level too, but it gives the
        // level back before it returns.
        if (&raw const (*here).busy).read_volatile() == 0 {
            (&raw mut (*here).busy).write_volatile(thread::stack());
            compiler_fence(Ordering::SeqCst);
            // Read after the level is busy: a handler that came before may have moved `at`, and a
            // stale value would let this event overwrite the handler's published one.
            let fast = (*here).fast;
            let total = HEAD_BYTES + 2 * (fast & 1) + bytes;
            let [at, end, begin] = (*here).places();
            // In a child process the page is zeros, so there is no room, and `&&` does not read the
            // memory, which is not mapped there.
            if end - at >= total && (*here).wanted() == fast {
                // The clock is read when the room is certain, so that times never decrease in a
                // lane.
                let ticks = counter();
                // Events hold the low 32 bits, so a sub-buffer must not span more. A counter that
                // is behind `begin` wraps to a large difference, and takes the slow path too.
                if ticks.wrapping_sub(begin) >> 32 == 0 {
                    let mut write = Write { level, end: at + total, ticks, to: (*here).memory.add(at as usize) };
                    write.put(&event.id().to_le_bytes());
                    write.put(&(ticks as u32).to_le_bytes());
                    if fast & contexts::CPU != 0 {
                        write.put(&thread::cpu().to_le_bytes());
                    }
                    return Some(write);
                }
            }
            compiler_fence(Ordering::SeqCst);
            (&raw mut (*here).busy).write_volatile(0);
        }
    }
    slowly(event, bytes, thread::place(), thread::stack())
}

/// Like [`enter`], for all cases that the fast path does not handle. `site` is the address of the
/// callsite, and `frame` is the frame of the calling function.
#[cold]
#[inline(never)]
pub(crate) fn slowly(event: &Event, bytes: u64, [site, frame]: [*const u8; 2], stack: usize) -> Option<Write> {
    // The slow path makes system calls, and the program may read `errno` after the event.
    let _errno = Errno::keep();
    let (level, number, quiet) = thread::take(stack)?;
    // Safety: the level was taken, and is given back unless a write is in progress there.
    unsafe {
        let write = begin((&mut *level.as_ptr(), number, quiet), event, bytes, [site, frame]);
        if write.is_none() {
            thread::give_back(level);
        }
        write
    }
}

fn begin(
    (level, number, quiet): (&mut NestingLevel, u8, Option<Quiet>),
    event: &Event,
    bytes: u64,
    [site, frame]: [*const u8; 2],
) -> Option<Write> {
    let process = here()?;
    let program = process.program();
    let this = NonNull::from(&mut *level);
    let has_name = !level.has_lane();
    // Signals are blocked no longer than this: functions of the program may gather contexts.
    let lane = level.lane_mut(process, number, quiet)?;
    let asked = program.contexts();
    let wanted = there_are(asked);
    // Before the room, because the contexts determine the event's size.
    let carried = EventContexts::gather(wanted, site, frame);
    let total = HEAD_BYTES + carried.bytes() + bytes;
    // All events of a sub-buffer carry the same contexts: its packet describes them once.
    let slot = match program.room_here(lane, total, ticks()).filter(|_| lane.contexts() == wanted) {
        Some(slot) => slot,
        None => {
            let _quiet = Quiet::new();
            if !process.is_own() {
                return None;
            }
            // The thread may have another name since its last sub-buffer.
            if !has_name {
                lane.rename(thread::name());
            }
            program.room(lane, wanted, total, ticks)?
        }
    };
    let WriterThread { tid, name, .. } = lane.thread();
    // The fast path compares with the recorder's word, so this is `asked`, not the subset `wanted`.
    level.fast = if is_fast(asked) { asked } else { u64::MAX };
    let Reservation { at, ticks, end } = slot;
    // Safety: the room is reserved.
    let mut write = Write { level: this, end, ticks, to: unsafe { level.memory.add(at as usize) } };
    // Valid in a child too: its memory has begun, and defines its parent's events with the same IDs.
    write.put(&event.id().to_le_bytes());
    write.put(&(ticks as u32).to_le_bytes());
    carried.put(&mut write, process.pid(), tid, &name);
    Some(write)
}

/// Whether the fast path can write events with these contexts.
fn is_fast(wanted: u64) -> bool {
    let has_cpu = wanted & contexts::CPU == 0 || thread::knows_cpu();
    // The fast path adds at most the CPU number, and makes no call. The CPU number needs one without
    // `rseq`, and so does any clock but the counter.
    wanted & !contexts::CPU == 0 && has_cpu && crate::clock::is_counter()
}

/// [`slowly`] for the C headers, with the frame of the caller.
///
/// # Safety
///
/// The event is alive; `to` has room for a [`ForC`].
unsafe extern "C" fn for_c(
    to: *mut ForC,
    event: *const Event,
    bytes: u64,
    site: *const u8,
    frame: *const u8,
) -> *mut u8 {
    // The frame stands for the stack pointer: handlers that interrupt this write run below it.
    //
    // Safety: the event is alive.
    let Some(write) = slowly(unsafe { &*event }, bytes, [site, frame], frame as usize) else {
        return core::ptr::null_mut();
    };
    // Safety: the caller guarantees the room.
    unsafe { to.write(ForC { level: write.level, end: write.end, ticks: write.ticks }) };
    write.to
}

/// The part of a [`Write`] that the C headers know.
#[derive(Debug)]
#[repr(C)]
pub struct ForC {
    level: NonNull<NestingLevel>,
    end: u64,
    ticks: u64,
}

impl ForC {
    pub(crate) fn was_cut(&self) {
        Write { level: self.level, end: self.end, ticks: self.ticks, to: core::ptr::null_mut() }.was_cut();
    }
}

/// Starts writing an event on the slow path. Returns the address for its fields, or NULL. The
/// function is naked, because it must read the caller's frame pointer before a prologue of its own
/// changes the register.
///
/// # Safety
///
/// The same as for [`for_c`], except for the frame.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn kymo_enter_slowly(to: *mut ForC, event: *const Event, bytes: u64, site: *const u8) -> *mut u8 {
    // A jump instead of a call keeps the caller's return address and alignment of the stack. The
    // register already holds the caller's frame: the header asks for its frame address, so the
    // compiler keeps a frame pointer there in any build.
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("mov r8, rbp", "jmp {}", sym for_c);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov x4, x29", "b {}", sym for_c);
}
