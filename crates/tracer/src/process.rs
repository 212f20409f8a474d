//! The memory of this process that a recorder finds. A child process, however it was made, creates
//! its own memory with its first event.
//!
//! ```text
//! window   control bytes    the same place in a child; shared with the parent until it begins, then its own
//! all      everything       not there in a child
//! ```
//!
//! So every read of a control byte finds one. A recorder's switches of the parent also apply to a
//! child until the child has its own file.

#![allow(unsafe_code, reason = "memory that is shared")]

use core::ffi::CStr;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use kymo_lane::{Arena, Mapped, MemoryLayout, ProgramSide};

use crate::place::{PathBuffer, has_more_than_its_user};
use crate::selection::{StartFacts, StartSelection};
use crate::{bell, clock, pages};

/// Nanoseconds that a process waits for recorders, at most.
const WAIT_NS: u64 = 1_000_000_000;

/// State of a process' memory; all zeros in a child.
pub(crate) struct ProcessState {
    /// Not 0: the other fields are valid.
    pub(crate) is_there: AtomicU32,
    pub(crate) pid: u32,
    pub(crate) memory: Mapped,
    pub(crate) base: NonNull<u8>,
    /// Address of the control bytes.
    pub(crate) window: NonNull<u8>,
    pub(crate) layout: MemoryLayout,
    pub(crate) path: PathBuffer,
    pub(crate) arena: Option<Arena>,
    /// The selections of recorders when it began.
    pub(crate) selection: Option<&'static StartSelection>,
    /// Its name then, and the session that it belongs to.
    pub(crate) facts: StartFacts,
}

pub(crate) static PROCESS: AtomicPtr<ProcessState> = AtomicPtr::new(null_mut());
/// Address of the control bytes, once there are any.
pub(crate) static WINDOW: AtomicPtr<u8> = AtomicPtr::new(null_mut());

impl ProcessState {
    pub(crate) fn program(&self) -> ProgramSide<'_, Mapped> {
        ProgramSide::of(&self.memory, self.layout)
    }

    /// Address of the memory.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Whether the memory still belongs to this process: a handler may have called fork and
    /// returned in the child.
    pub(crate) fn is_own(&self) -> bool {
        self.is_there.load(Ordering::Acquire) != 0
    }

    /// In a child, replaces the parent's memory, so that writes that still use it find zeroed pages
    /// at that address.
    pub(crate) fn replace(memory: *mut u8) {
        // Safety: a stored `ProcessState` is never removed, the child has no other thread yet, and the
        // memory is mapped.
        unsafe {
            let process = PROCESS.load(Ordering::Acquire);
            (&raw mut (*process).memory).write(Mapped::new(memory, pages::reserve, bell::ring));
        }
    }

    /// Size of the memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.bytes() as usize
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Memory for machine code of filters.
    pub(crate) fn arena(&self) -> Option<Arena> {
        self.arena
    }

    /// Address and size of the bytecode of filters.
    pub(crate) fn filters(&self) -> (*const u8, u32) {
        // Safety: the memory is mapped.
        (unsafe { self.base.as_ptr().add(self.layout.filters() as usize) }, self.layout.filter_bytes)
    }

    /// Whether an event that is defined now is on from the start, because a session wants it.
    pub(crate) fn begins_on(&self, definition: &[u8]) -> bool {
        let applying = self.program().applying();
        match self.selection.filter(|selection| selection.has(applying)) {
            Some(selection) => selection.wants(definition, applying),
            None if applying == [0; 2] => false,
            // A recorder has published another one since.
            None => StartSelection::read_again(self.path.as_c_str(), &self.facts)
                .is_some_and(|selection| selection.wants(definition, applying)),
        }
    }

    /// Waits until a recorder has switched an event of this process that it wants to have from the first one on: users' programs run at
    /// events, and no recorder can run them later. It waits for at most a second in all.
    pub(crate) fn wait_for(&self, id: u16, definition: &[u8]) {
        /// Nanoseconds that this process has waited.
        static WAITED: AtomicU64 = AtomicU64::new(0);
        let is_waited_for = |selection: &StartSelection| {
            // A recorder that has other sessions by now is not waited for.
            selection.has(self.program().applying()) && selection.waits_for(definition)
        };
        if self.program().applying() == [0; 2] || !self.selection.is_some_and(is_waited_for) {
            return;
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
        let (begin, before) = (clock::monotonic(), WAITED.load(Ordering::Relaxed));
        while self.program().settled() <= id.into() {
            let waited = clock::monotonic().saturating_sub(begin) + before;
            if waited >= WAIT_NS {
                WAITED.store(waited, Ordering::Relaxed);
                return;
            }
            // Safety: `pause` is a time; a signal ends the pause early. The function of the C library could end the thread.
            unsafe { libc::syscall(libc::SYS_nanosleep, &raw const pause, null_mut::<libc::timespec>()) };
        }
        WAITED.fetch_add(clock::monotonic().saturating_sub(begin), Ordering::Relaxed);
    }

    /// Address of an event's control byte.
    pub(crate) fn control(&self, id: u16) -> *mut u8 {
        // Through the window and not through `base`: callsites keep this address, and only the
        // window stays mapped in a child.
        self.window.as_ptr().wrapping_add(self.layout.control(id) as usize)
    }

    /// The memory of this process, if it exists.
    pub(crate) fn now() -> Option<&'static Self> {
        // Safety: a stored `ProcessState` is never removed, and `is_there` says whether its fields are
        // valid.
        let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() }?;
        // In a child the page is zeros again, so the parent's values never count there.
        (process.is_there.load(Ordering::Acquire) != 0).then_some(process)
    }

    pub(crate) fn remove(&self) {
        // Safety: the path is NUL-terminated.
        unsafe { libc::unlink(self.path.as_c_str().as_ptr()) };
    }
}

/// Path of the socket where this user's recorder listens, if one runs; returns its length, without the zero
/// behind it. `None`: this program is not recorded, because it has more rights than its user.
pub fn recorder_socket(into: &mut [u8; 256]) -> Option<usize> {
    if has_more_than_its_user() {
        return None;
    }
    let mut path = PathBuffer::folder()?;
    path.push(b"/recorder.sock")?;
    let bytes = path.as_c_str().to_bytes_with_nul();
    into[..bytes.len()].copy_from_slice(bytes);
    Some(bytes.len() - 1)
}

/// Path of the file that this process records to; `None`: there is none yet.
#[must_use]
pub fn control_file() -> Option<&'static CStr> {
    ProcessState::now().map(|process| process.path.as_c_str())
}
