//! Events begin to be written: room where the thread's last one went, else whatever it takes.
//!
//! ```text
//! enter   busy = stack ── clock ── room? same contexts? ──> id, ticks, CPU ──> where fields go
//!            └ anything else: slowly(): no lane yet, a handler of signals, the next sub-buffer, other contexts
//! ```
//!
//! What was written is published by `Write::leave`. Headers for C do what `enter` does, line by line: what changes here changes there.

#![allow(unsafe_code, reason = "each thread has memory of its own")]

use core::ptr::NonNull;
use core::sync::atomic::{Ordering, compiler_fence};

use kymo_lane::{Slot, Thread, contexts};

use crate::begin::here;
use crate::clock::{counter, ticks};
use crate::context::{Carried, there_are};
use crate::event::Event;
use crate::pages::{Errno, Quiet};
use crate::thread::{self, Level};
use crate::write::Write;

/// Bytes of each event: id, low half of the ticks.
const HEAD_BYTES: u64 = 6;

impl Event {
    /// Begins to record it, with so many bytes of fields. `None`: it is lost, and was counted.
    #[inline]
    pub fn enter(&self, bytes: u64) -> Option<Write> {
        enter(self, bytes)
    }

    /// Records it, if somebody wants it, with the bytes that its definition says; no filter is asked.
    #[inline]
    pub fn record(&self, bytes: &[u8]) {
        if self.is_on() {
            self.put(bytes);
        }
    }

    #[inline(never)]
    fn put(&self, bytes: &[u8]) {
        if let Some(mut write) = self.enter(bytes.len() as u64) {
            write.put(bytes);
            write.leave();
        }
    }
}

/// Begins to write an event. Its id is there once it is on.
#[inline]
pub(crate) fn enter(event: &Event, bytes: u64) -> Option<Write> {
    let here = thread::word::get().cast::<Level>();
    let Some(level) = NonNull::new(here) else { return slowly(event, bytes, thread::place(), thread::stack()) };
    // Safety: the page is the thread's, and handlers of signals find that it is busy.
    unsafe {
        if (&raw const (*here).busy).read_volatile() == 0 {
            (&raw mut (*here).busy).write_volatile(thread::stack());
            compiler_fence(Ordering::SeqCst);
            let fast = (*here).fast;
            let total = HEAD_BYTES + 2 * (fast & 1) + bytes;
            let [at, end, begin] = (*here).places();
            // In a child the page is zeros: there is no room, and nothing else is looked at.
            if end - at >= total && (*here).wanted() == fast {
                let ticks = counter();
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

/// The same as [`enter`], whatever it takes. `site` is where the event is, and `frame` the frame of whoever called.
#[cold]
#[inline(never)]
pub(crate) fn slowly(event: &Event, bytes: u64, [site, frame]: [*const u8; 2], stack: usize) -> Option<Write> {
    let _errno = Errno::keep();
    let (level, number) = thread::take(stack)?;
    // Safety: it was taken, and is given back unless something is written there.
    unsafe {
        let write = begin(&mut *level.as_ptr(), number, event, bytes, [site, frame]);
        if write.is_none() {
            thread::give_back(level);
        }
        write
    }
}

fn begin(level: &mut Level, number: u8, event: &Event, bytes: u64, [site, frame]: [*const u8; 2]) -> Option<Write> {
    let process = here()?;
    let program = process.program();
    let this = NonNull::from(&mut *level);
    let lane = level.lane_mut(process, number)?;
    let asked = program.contexts();
    let wanted = there_are(asked);
    let carried = Carried::gather(wanted, site, frame);
    let total = HEAD_BYTES + carried.bytes() + bytes;
    let slot = match program.room_here(lane, total, ticks()).filter(|_| lane.contexts() == wanted) {
        Some(slot) => slot,
        None => {
            let _quiet = Quiet::new();
            if !process.is_own() {
                return None;
            }
            // Threads may be called something else since.
            lane.rename(thread::name());
            program.room(lane, wanted, total, ticks)?
        }
    };
    let Thread { tid, name, .. } = lane.thread();
    level.fast = if is_fast(asked) { asked } else { u64::MAX };
    let Slot { at, ticks, end } = slot;
    // Safety: the room is there.
    let mut write = Write { level: this, end, ticks, to: unsafe { level.memory.add(at as usize) } };
    // A child has other ids than its parent; it has begun by now.
    write.put(&event.id().to_le_bytes());
    write.put(&(ticks as u32).to_le_bytes());
    carried.put(&mut write, process.pid(), tid, &name);
    Some(write)
}

/// Whether events that carry this can be written without more ado.
fn is_fast(wanted: u64) -> bool {
    let has_cpu = wanted & contexts::CPU == 0 || thread::knows_cpu();
    wanted & !contexts::CPU == 0 && has_cpu && crate::clock::is_counter()
}

/// For headers for C: [`slowly`], with the frame of whoever calls.
///
/// # Safety
///
/// The event lives; the write has room for one.
unsafe extern "C" fn for_c(
    to: *mut ForC,
    event: *const Event,
    bytes: u64,
    site: *const u8,
    frame: *const u8,
) -> *mut u8 {
    // Safety: it lives.
    let Some(write) = slowly(unsafe { &*event }, bytes, [site, frame], frame as usize) else {
        return core::ptr::null_mut();
    };
    // Safety: there is room.
    unsafe { to.write(ForC { level: write.level, end: write.end, ticks: write.ticks }) };
    write.to
}

/// What headers for C know of a [`Write`].
#[derive(Debug)]
#[repr(C)]
pub struct ForC {
    level: NonNull<Level>,
    end: u64,
    ticks: u64,
}

impl ForC {
    pub(crate) fn was_cut(&self) {
        Write { level: self.level, end: self.end, ticks: self.ticks, to: core::ptr::null_mut() }.was_cut();
    }
}

/// Begins to write an event, whatever it takes: where its fields go, or NULL. What it needs at most of whoever calls is the register that
/// tells its frame, before anything else is done with it.
///
/// # Safety
///
/// As for [`for_c`], but the frame.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn kymo_enter_slowly(to: *mut ForC, event: *const Event, bytes: u64, site: *const u8) -> *mut u8 {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("mov r8, rbp", "jmp {}", sym for_c);
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov x4, x29", "b {}", sym for_c);
}
