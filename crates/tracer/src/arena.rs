//! The arena: memory that this process can execute, and to which other processes with sufficient
//! permission write the machine code of filters.
//!
//! It is mapped once, when the process begins. A child has its own, and keeps its parent's for the
//! filters that it inherited.

#![allow(unsafe_code, reason = "memory that can be executed")]

use core::ptr::{NonNull, null_mut};

use kymo_lane::{Arena, NoArena};

use crate::pages;
use crate::place::{Descriptor, is_privileged, secure_variable};

/// 64 pages, one for each filter; unused pages have no memory.
const ARENA_BYTES: usize = 64 << 12;

/// Minimum file descriptor number of the arena.
const NUMBER_MIN: libc::c_int = 100;

/// ELF machine number.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

pub(crate) fn map() -> Result<Arena, NoArena> {
    if is_privileged() {
        return Err(NoArena::Privileged);
    }
    if secure_variable(c"KYMO_NATIVE").is_some_and(|value| value.to_bytes() == b"off") {
        return Err(NoArena::Off);
    }
    // Older kernels do not know the flag for executable files; newer ones may require it.
    let file = [libc::MFD_EXEC, 0].into_iter().find_map(|executable| {
        // Safety: the name is NUL-terminated.
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | executable;
        Descriptor::new(unsafe { libc::memfd_create(c"kymo".as_ptr(), flags) })
    });
    let file = file.filter(|_| pages::file_bytes_max() >= ARENA_BYTES as u64).ok_or(NoArena::Refused)?;
    // The file stays open, under a number where programs do not expect their own files, if so many
    // numbers are available.
    let file = file.numbered(NUMBER_MIN).unwrap_or(file);
    // Safety: the file belongs to this function, `found` has room for the result, and the mapping
    // is new.
    let (found, address) = unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        // The seals prevent the file from being truncated under the mapping, even by code that gets
        // hold of the descriptor by mistake.
        let is_there = libc::ftruncate(file.0, ARENA_BYTES as libc::off_t) == 0
            && libc::fcntl(file.0, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) == 0
            && libc::fstat(file.0, &raw mut found) == 0;
        let access = libc::PROT_READ | libc::PROT_EXEC;
        let address = match is_there {
            true => libc::mmap(null_mut(), ARENA_BYTES, access, libc::MAP_SHARED, file.0, 0),
            false => libc::MAP_FAILED,
        };
        (found, address)
    };
    if address == libc::MAP_FAILED {
        return Err(NoArena::Refused);
    }
    let descriptor = file.0 as u32;
    // Recorders without privileges find the file by its descriptor number.
    core::mem::forget(file);
    let (inode, address, bytes) = (found.st_ino, address as u64, ARENA_BYTES as u32);
    Ok(Arena { inode, address, bytes, descriptor, machine: MACHINE })
}

pub(crate) fn unmap(arena: Option<Arena>) {
    let Some(arena) = arena else { return };
    drop(Descriptor::new(arena.descriptor as libc::c_int));
    NonNull::new(arena.address as *mut u8).into_iter().for_each(|address| pages::unmap(address, arena.bytes as usize));
}
