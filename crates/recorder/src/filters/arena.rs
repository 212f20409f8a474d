//! Memory of a program that it executes, and to which filters are written: whoever may do that could as well trace it with `ptrace`.
//!
//! ```text
//! /proc/PID/fd/N                  for its user, while it keeps the descriptor
//! /proc/PID/map_files/BEGIN-END   with privileges, also when the descriptor is closed
//!        └── O_PATH ── is it the file that the program has mapped, and nothing else? ── opened to be written
//! ```
//!
//! A program says which descriptor that is, and may lie: a recorder with privileges must not write to whatever file a program names. So nothing
//! is opened but memory files, of the program's user, with the inode that the program says.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use kymo_lane::{Arena, NoArena};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::Errno;

use super::why::Why;

/// Filters begin at pages, which are executed only when they are whole.
const PAGE: u32 = 4096;
/// Pages that a program can offer.
const PAGES_MAX: u32 = 1 << 12;
/// What no filter leads to.
pub(super) const TRAP: u8 = if cfg!(target_arch = "x86_64") { 0xcc } else { 0 };

/// A program's arena, opened.
#[derive(Debug)]
pub(super) struct Code {
    file: File,
    /// How many pages there are, and the first that was never used.
    pages: u32,
    next: u32,
}

/// Whose memory it has to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    /// The program's number here.
    pub(super) pid: Option<u32>,
    /// Its user, who owns its control file.
    pub(super) user: u32,
}

impl Code {
    /// Opens the arena of a program.
    pub(super) fn open(arena: Result<Arena, NoArena>, owner: Owner) -> Result<Self, Why> {
        let arena = arena.map_err(Why::NoArena)?;
        if arena.machine != MACHINE {
            return Err(Why::Machine);
        }
        let pid = owner.pid.ok_or(Why::Number)?;
        let by_descriptor = open(&format!("/proc/{pid}/fd/{}", arena.descriptor), &arena, owner.user);
        let found = by_descriptor.or_else(|why| {
            let end = arena.address.saturating_add(arena.bytes.into());
            open(&format!("/proc/{pid}/map_files/{:x}-{end:x}", arena.address), &arena, owner.user).map_err(|_| why)
        });
        let (file, bytes) = found?;
        Ok(Self {
            file,
            pages: (bytes.min(arena.bytes.into()) / u64::from(PAGE)).min(PAGES_MAX.into()) as u32,
            next: 0,
        })
    }

    /// These bytes were used before, by whoever.
    pub(super) fn was_used(&mut self, offset: u32, bytes: u32) {
        self.next = self.next.max(offset.saturating_add(bytes).div_ceil(PAGE));
    }

    /// Bytes that are left.
    pub(super) fn room(&self) -> usize {
        self.pages.saturating_sub(self.next) as usize * PAGE as usize
    }

    /// Writes whole pages where nothing was executed before; where they begin. They are never written again.
    pub(super) fn write(&mut self, mut bytes: Vec<u8>) -> Result<u32, Why> {
        bytes.resize(bytes.len().next_multiple_of(PAGE as usize), TRAP);
        let at = self.next * PAGE;
        if bytes.len() > self.room() {
            return Err(Why::ArenaFull);
        }
        // Behind its end nothing is written, whatever the program does to its file meanwhile: then it is longer again, and no longer than it was.
        self.next += bytes.len() as u32 / PAGE;
        self.file.write_all_at(&bytes, at.into()).map_err(|_| Why::Unwritable)?;
        Ok(at)
    }
}

/// What ELF calls this machine.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// Opens a file if it is a program's memory; how large it is.
fn open(path: &str, arena: &Arena, user: u32) -> Result<(File, u64), Why> {
    let found = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
        Errno::ACCESS | Errno::PERM => Why::Permission,
        _ => Why::Descriptor,
    })?;
    let bytes = check(&found, arena, user).ok_or(Why::Descriptor)?;
    // What is opened here is what was looked at.
    let again = format!("/proc/self/fd/{}", found.as_raw_fd());
    let file = rustix::fs::open(again, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|_| Why::Permission)?;
    Ok((file.into(), bytes))
}

/// Whether a file is memory of that user's program, the one that it says; how large it is.
fn check(found: &OwnedFd, arena: &Arena, user: u32) -> Option<u64> {
    let found = rustix::fs::fstat(found).ok()?;
    // Memory files lie on a file system of their own, which has nothing else.
    let own = rustix::fs::memfd_create(c"kymo", MemfdFlags::CLOEXEC).ok()?;
    let own = rustix::fs::fstat(own.as_fd()).ok()?;
    let is_it = found.st_ino == arena.inode && found.st_dev == own.st_dev && found.st_uid == user;
    is_it.then_some(found.st_size as u64)
}
