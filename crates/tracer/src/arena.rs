//! Memory that this process can execute, and to which others who may do that write machine code of filters.
//!
//! It is mapped once, when the process begins; a child has its own, and keeps its parent's for what it found there.

#![allow(unsafe_code, reason = "memory that can be executed")]

use core::ptr::{NonNull, null_mut};

use kymo_lane::{Arena, NoArena};

use crate::pages;
use crate::place::{Descriptor, is_privileged, secure_variable};

/// 64 pages, one for each filter; those that nobody uses have no memory.
const ARENA_BYTES: usize = 64 << 12;

/// The least number that it has while it is open.
const NUMBER_MIN: libc::c_int = 100;

/// What ELF calls this machine.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

pub(crate) fn map() -> Result<Arena, NoArena> {
    if is_privileged() {
        return Err(NoArena::Privileged);
    }
    if secure_variable(c"KYMO_NATIVE").is_some_and(|value| value.to_bytes() == b"off") {
        return Err(NoArena::Off);
    }
    // Older systems do not know that the file is to be executed, newer ones may want to be told.
    let file = [libc::MFD_EXEC, 0].into_iter().find_map(|executable| {
        // Safety: the name ends with a zero.
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | executable;
        Descriptor::new(unsafe { libc::memfd_create(c"kymo".as_ptr(), flags) })
    });
    let file = file.filter(|_| pages::file_bytes_max() >= ARENA_BYTES as u64).ok_or(NoArena::Refused)?;
    // It stays open: where programs do not look for files of theirs, if there are so many numbers.
    let file = file.numbered(NUMBER_MIN).unwrap_or(file);
    // Safety: the file is ours, what is filled in is there, and what is mapped is nobody else's.
    let (found, address) = unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        // Who gets hold of it by mistake cannot take away what is mapped.
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
    // Recorders without privileges find it by its number.
    core::mem::forget(file);
    let (inode, address, bytes) = (found.st_ino, address as u64, ARENA_BYTES as u32);
    Ok(Arena { inode, address, bytes, descriptor, machine: MACHINE })
}

pub(crate) fn unmap(arena: Option<Arena>) {
    let Some(arena) = arena else { return };
    drop(Descriptor::new(arena.descriptor as libc::c_int));
    NonNull::new(arena.address as *mut u8).into_iter().for_each(|address| pages::unmap(address, arena.bytes as usize));
}
