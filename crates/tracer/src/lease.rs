//! Tests whether any process has a file mapped or open. This tells a recorder that a program is
//! gone, independent of its process ID, and even if the program has closed its descriptors or now
//! runs another executable.

#![allow(unsafe_code, reason = "system calls")]

use core::ffi::c_int;

/// Sets the signal that reports an open of a leased file.
const F_SETSIG: c_int = 10;

/// Whether only the caller uses a file: it is open once, by this descriptor, and mapped nowhere.
/// The caller must own the file, or have the privilege to lease any file.
#[must_use]
pub fn nobody_has(descriptor: c_int) -> bool {
    // Safety: it changes nothing that memory safety depends on.
    unsafe {
        // If another process opens the file meanwhile, the kernel sends a signal; SIGURG is ignored
        // by default.
        libc::fcntl(descriptor, F_SETSIG, libc::SIGURG);
        let is_granted = libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_WRLCK) == 0;
        if is_granted {
            libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK);
        }
        is_granted
    }
}
