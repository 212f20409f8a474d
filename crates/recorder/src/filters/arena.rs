//! Executable memory of a program, to which the recorder writes filters: a process that may do that
//! could as well trace the program with `ptrace`.
//!
//! ```text
//! /proc/PID/fd/N                  for its user, while it keeps the descriptor
//! /proc/PID/map_files/BEGIN-END   with privileges, also when the descriptor is closed
//!        └── O_PATH ── is it the file that the program has mapped, and nothing else? ── opened to be written
//! ```
//!
//! A program tells the recorder the descriptor, and may lie: a recorder with privileges must not
//! write to any file that a program names. So it opens only memory files, of the program's user,
//! with the inode that the program tells.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use kymo_lane::{Arena, FilterCode, FilterCodeKind, NoArena};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::Errno;

use super::why::FallbackReason;

/// Filters begin at pages; programs execute only complete ones.
const PAGE: u32 = 4096;
/// Alignment of code in its page: cache lines.
const CODE_ALIGNMENT: usize = 64;
/// Pages that a program can offer.
const PAGES_MAX: u32 = 1 << 12;
/// Pages that users' programs leave to filters.
const PAGES_OF_FILTERS: u32 = 24;
/// Fills bytes that no filter jumps to.
const TRAP: u8 = if cfg!(target_arch = "x86_64") { 0xcc } else { 0 };

/// A program's arena, opened.
#[derive(Debug)]
pub(super) struct ProgramArena {
    file: File,
    /// Number of pages, and the first one that was never used.
    pages: u32,
    next: u32,
    /// It has written code.
    has_written: bool,
}

/// The program that the memory has to belong to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArenaOwner {
    /// The program's PID here.
    pub(super) pid: Option<u32>,
    /// Its user, the owner of its control file.
    pub(super) user: u32,
}

impl ProgramArena {
    /// Opens the arena of a program.
    pub(super) fn open(arena: Result<Arena, NoArena>, owner: ArenaOwner) -> Result<Self, FallbackReason> {
        let arena = arena.map_err(FallbackReason::NoArena)?;
        if arena.machine != MACHINE {
            return Err(FallbackReason::Machine);
        }
        let pid = owner.pid.ok_or(FallbackReason::Number)?;
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
            has_written: false,
        })
    }

    /// Marks bytes as used, also by another recorder.
    pub(super) fn was_used(&mut self, offset: u32, bytes: u32) {
        self.next = self.next.max(offset.saturating_add(bytes).div_ceil(PAGE));
    }

    /// Bytes that have had code; `None`: it has written none, and knows only what the program's slots say.
    pub(super) fn used(&self) -> Option<u64> {
        self.has_written.then(|| u64::from(self.next) * u64::from(PAGE))
    }

    /// Writes functions in one piece, and returns where each is, or why it is not there.
    pub(super) fn write_pieces(&mut self, pieces: &[&[u8]]) -> Vec<Result<FilterCode, FallbackReason>> {
        let mut bytes = Vec::new();
        let mut said = Vec::new();
        for piece in pieces {
            let begin = bytes.len().next_multiple_of(CODE_ALIGNMENT);
            if begin + piece.len() > self.room() {
                said.push(Err(FallbackReason::ArenaFull));
                continue;
            }
            bytes.resize(begin, TRAP);
            bytes.extend_from_slice(piece);
            let (offset, bytes) = (begin as u32, piece.len() as u32);
            said.push(Ok(FilterCode { kind: FilterCodeKind::Native, offset, bytes }));
        }
        if bytes.is_empty() {
            return said;
        }
        match self.write(bytes) {
            Ok(at) => said.iter_mut().flatten().for_each(|code| code.offset += at),
            Err(why) => said.iter_mut().filter(|said| said.is_ok()).for_each(|said| *said = Err(why.clone())),
        }
        said
    }

    /// The rest is for filters: each has pages of its own, and so has each user's program for each event.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.pages.saturating_sub(self.next) < PAGES_OF_FILTERS
    }

    /// Free bytes.
    fn room(&self) -> usize {
        self.pages.saturating_sub(self.next) as usize * PAGE as usize
    }

    /// Writes whole pages where no code was executed before, and returns their offset. They are
    /// never written again.
    fn write(&mut self, mut bytes: Vec<u8>) -> Result<u32, FallbackReason> {
        bytes.resize(bytes.len().next_multiple_of(PAGE as usize), TRAP);
        let at = self.next * PAGE;
        if bytes.len() > self.room() {
            return Err(FallbackReason::ArenaFull);
        }
        // The write never passes the checked end: if the program truncates its file meanwhile, the
        // file becomes longer again, and no longer than it was.
        self.next += bytes.len() as u32 / PAGE;
        self.has_written = true;
        self.file.write_all_at(&bytes, at.into()).map_err(|_| FallbackReason::Unwritable)?;
        Ok(at)
    }
}

/// ELF's number of this machine.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// Opens a file if it is a program's memory; returns its size too.
fn open(path: &str, arena: &Arena, user: u32) -> Result<(File, u64), FallbackReason> {
    let found = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
        Errno::ACCESS | Errno::PERM => FallbackReason::Permission,
        _ => FallbackReason::Descriptor,
    })?;
    let bytes = check(&found, arena, user).ok_or(FallbackReason::Descriptor)?;
    // Opens the very file that was checked.
    let again = format!("/proc/self/fd/{}", found.as_raw_fd());
    let file = rustix::fs::open(again, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|_| FallbackReason::Permission)?;
    Ok((file.into(), bytes))
}

/// Checks that a file is the memory file that the program tells, of that user; returns its size.
fn check(found: &OwnedFd, arena: &Arena, user: u32) -> Option<u64> {
    let found = rustix::fs::fstat(found).ok()?;
    // Memory files are on a file system of their own, which has no other files.
    let own = rustix::fs::memfd_create(c"kymo", MemfdFlags::CLOEXEC).ok()?;
    let own = rustix::fs::fstat(own.as_fd()).ok()?;
    let is_it = found.st_ino == arena.inode && found.st_dev == own.st_dev && found.st_uid == user;
    is_it.then_some(found.st_size as u64)
}
