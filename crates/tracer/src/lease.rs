//! Whether anybody has a file mapped or open, which tells a recorder that a program is gone: whatever its number was, and whether it has
//! closed its descriptors or runs something else now.

#![allow(unsafe_code, reason = "system calls")]

use core::ffi::c_int;

/// Which signal tells of a file.
const F_SETSIG: c_int = 10;

/// Whether nobody but the caller has a file: it is open once, by this descriptor, and mapped nowhere. The caller owns the file, or may do
/// what it likes.
#[must_use]
pub fn nobody_has(descriptor: c_int) -> bool {
    // Safety: it changes nothing that memory depends on.
    unsafe {
        // Who opens the file meanwhile makes the system tell us, by a signal that nobody minds.
        libc::fcntl(descriptor, F_SETSIG, libc::SIGURG);
        let is_granted = libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_WRLCK) == 0;
        if is_granted {
            libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK);
        }
        is_granted
    }
}
