//! Files of programs that are gone, and in which nothing was ever recorded: where no recorder runs, nobody else takes them away.
//!
//! A program takes its own when it ends in good order, and those of others, a few at a time, when it begins.

#![allow(unsafe_code, reason = "system calls")]

use core::sync::atomic::{AtomicBool, Ordering};

use kymo_lane::READY_AT;

use crate::interrupted;
use crate::lease::nobody_has;
use crate::place::Descriptor;
use crate::process::Process;

/// Files that a program looks at when it begins, so that it does not take long.
const FILES_MAX: usize = 16;
/// Bytes before the name in an entry of a folder: inode, offset, length of the entry, type.
const ENTRY_HEAD_BYTES: usize = 19;

/// Whether this process has children that may have no memory of their own yet: its file is theirs too.
static HAS_CHILDREN: AtomicBool = AtomicBool::new(false);

pub(crate) extern "C" fn in_parent() {
    HAS_CHILDREN.store(true, Ordering::Relaxed);
    interrupted::in_parent();
}

/// Looks at files of a folder.
pub(crate) fn sweep(folder: &Descriptor) {
    let mut buffer = [0_u64; 256];
    let mut left = FILES_MAX;
    while left > 0 {
        // Safety: so many bytes are there.
        let length =
            unsafe { libc::syscall(libc::SYS_getdents64, folder.0, buffer.as_mut_ptr(), size_of_val(&buffer)) };
        // Safety: the system has written so many.
        let mut entries: &[u8] = match usize::try_from(length).unwrap_or(0) {
            0 => return,
            length => unsafe { core::slice::from_raw_parts(buffer.as_ptr().cast(), length) },
        };
        while let Some(bytes) = entries.get(16..18).map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))) {
            let (entry, rest) = entries.split_at(bytes.clamp(ENTRY_HEAD_BYTES, entries.len()));
            entries = rest;
            let name = core::ffi::CStr::from_bytes_until_nul(&entry[ENTRY_HEAD_BYTES..]).unwrap_or(c"");
            if name.to_bytes().ends_with(b".ctl") && left > 0 {
                left -= 1;
                look(folder, name);
            }
        }
    }
}

/// Takes a file away if nothing is in it and nobody has it.
fn look(folder: &Descriptor, name: &core::ffi::CStr) {
    let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // Safety: the name ends with a zero, and what is filled in is there.
    unsafe {
        let Some(file) = Descriptor::open_in(folder.0, name, flags) else { return };
        let mut ready = 0_u64;
        let at = READY_AT as libc::off_t;
        let read = libc::syscall(libc::SYS_pread64, file.0, &raw mut ready, size_of_val(&ready), at);
        if read == size_of_val(&ready) as libc::c_long && ready == 0 && nobody_has(file.0) {
            libc::unlinkat(folder.0, name.as_ptr(), 0);
        }
    }
}

/// The process ends in good order.
extern "C" fn at_exit() {
    if let Some(process) = Process::now().filter(|process| !process.program().has_recorded())
        && !HAS_CHILDREN.load(Ordering::Relaxed)
    {
        process.remove();
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
