//! The memory of this process that a recorder finds. A child of it, however it was made, begins memory of its own with its first event.
//!
//! ```text
//! window   control bytes    the same place in a child; shared with the parent until it begins, then its own
//! all      everything       not there in a child
//! ```
//!
//! So whoever looks at a control byte always finds one, and a child is switched by what switches its parent until it has a file.

#![allow(unsafe_code, reason = "memory that is shared")]

use core::ffi::CStr;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use kymo_lane::{Arena, Layout, Mapped, Program};

use crate::place::Path;
use crate::{bell, pages};

/// What a process knows of its memory; all zeros in a child.
pub(crate) struct Process {
    /// Not 0: the rest is there.
    pub(crate) is_there: AtomicU32,
    pub(crate) pid: u32,
    pub(crate) memory: Mapped,
    pub(crate) base: NonNull<u8>,
    /// Where control bytes are seen.
    pub(crate) window: NonNull<u8>,
    pub(crate) layout: Layout,
    pub(crate) path: Path,
    pub(crate) arena: Option<Arena>,
}

pub(crate) static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());
/// Where control bytes are seen, once there are any.
pub(crate) static WINDOW: AtomicPtr<u8> = AtomicPtr::new(null_mut());

impl Process {
    pub(crate) fn program(&self) -> Program<'_, Mapped> {
        Program::of(&self.memory, self.layout)
    }

    /// Where the memory is.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Whether it is still this process': a handler may have called fork, and be back in the child.
    pub(crate) fn is_own(&self) -> bool {
        self.is_there.load(Ordering::Acquire) != 0
    }

    /// In a child, whoever still has its parent's finds nothing but zeros at that place.
    pub(crate) fn replace(memory: *mut u8) {
        // Safety: what was put there stays, nobody else is there yet, and the memory is mapped.
        unsafe {
            let process = PROCESS.load(Ordering::Acquire);
            (&raw mut (*process).memory).write(Mapped::new(memory, pages::reserve, bell::ring));
        }
    }

    /// How much there is.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.bytes() as usize
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Where machine code of filters is.
    pub(crate) fn arena(&self) -> Option<Arena> {
        self.arena
    }

    /// Where bytecode of filters is.
    pub(crate) fn filters(&self) -> (*const u8, u32) {
        // Safety: it is mapped.
        (unsafe { self.base.as_ptr().add(self.layout.filters() as usize) }, self.layout.filter_bytes)
    }

    /// The control byte of an event.
    pub(crate) fn control(&self, id: u16) -> *mut u8 {
        self.window.as_ptr().wrapping_add(self.layout.control(id) as usize)
    }

    /// The memory of this process, if it has begun.
    pub(crate) fn now() -> Option<&'static Self> {
        // Safety: what was put there once stays, and is there when it says so.
        let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() }?;
        (process.is_there.load(Ordering::Acquire) != 0).then_some(process)
    }

    pub(crate) fn remove(&self) {
        // Safety: the path ends with a zero.
        unsafe { libc::unlink(self.path.as_c_str().as_ptr()) };
    }
}

/// The file that this process records to; `None`: there is none yet.
#[must_use]
pub fn control_file() -> Option<&'static CStr> {
    Process::now().map(|process| process.path.as_c_str())
}
