//! Removes files of programs that ended without recording anything. Where no recorder runs, nothing
//! else removes them.
//!
//! A program removes its own file when it exits normally, and a few files of other programs when it
//! begins.

#![allow(unsafe_code, reason = "system calls")]

use core::sync::atomic::{AtomicBool, Ordering};

use kymo_lane::READY_AT;

use crate::interrupted;
use crate::lease::nobody_has;
use crate::place::Descriptor;
use crate::process::ProcessState;

/// Maximum number of files that a program checks when it begins, to keep the start fast.
const FILES_MAX: usize = 16;
/// Bytes before the name in a directory entry: inode, offset, length of the entry, type.
const ENTRY_HEAD_BYTES: usize = 19;

/// Whether this process has children that may not have their own memory yet; they share its file.
static HAS_CHILDREN: AtomicBool = AtomicBool::new(false);

pub(crate) extern "C" fn in_parent() {
    HAS_CHILDREN.store(true, Ordering::Relaxed);
    interrupted::in_parent();
}

/// Checks files of a folder.
pub(crate) fn sweep(folder: &Descriptor) {
    let mut buffer = [0_u64; 256];
    let mut left = FILES_MAX;
    while left > 0 {
        // Safety: the buffer has that length.
        let length =
            unsafe { libc::syscall(libc::SYS_getdents64, folder.0, buffer.as_mut_ptr(), size_of_val(&buffer)) };
        // Safety: the kernel has written that many bytes.
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

/// Removes a file if nothing is recorded in it and no process uses it.
fn look(folder: &Descriptor, name: &core::ffi::CStr) {
    let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // Safety: the name is NUL-terminated.
    unsafe {
        let Some(file) = Descriptor::open_in(folder.0, name, flags) else { return };
        // A program may record its first events and end between two of these lines, so the answer
        // that counts is the one after its end. The one before spares most files a lease.
        if is_empty(&file) && nobody_has(file.0) && is_empty(&file) {
            libc::unlinkat(folder.0, name.as_ptr(), 0);
        }
    }
}

/// Whether no lane of this file has ever had a sub-buffer.
fn is_empty(file: &Descriptor) -> bool {
    let mut ready = 0_u64;
    let (bytes, at) = (size_of_val(&ready), READY_AT as libc::off_t);
    // Safety: `ready` has room for the result.
    let read = unsafe { libc::syscall(libc::SYS_pread64, file.0, &raw mut ready, bytes, at) };
    read == bytes as libc::c_long && ready == 0
}

/// Runs when the process exits normally.
extern "C" fn at_exit() {
    if let Some(process) = ProcessState::now().filter(|process| !process.program().has_recorded())
        && !HAS_CHILDREN.load(Ordering::Relaxed)
    {
        process.remove();
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
