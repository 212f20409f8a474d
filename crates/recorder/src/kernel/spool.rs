//! The spool: pages of ring buffers in memory, one for each CPU, between reading and conversion.
//!
//! ```text
//! memory of a file without a name    u32 length │ a page, as far as it is used │ u32 length │ ...
//!                                    └ converted: given back by the reader ┘
//! ```
//!
//! The reader must never wait for the converter, which runs only when a CPU has nothing else to do. So the converter takes no
//! lock that writing needs: it reads, and says how far it is; the reader gives the memory back. On a disk, either could wait for
//! that, too.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

/// Converted bytes that are given back at a time.
const HOLE: u64 = 1 << 20;

/// The pages of a CPU.
#[derive(Debug)]
pub(super) struct PageSpool {
    pub(super) cpu: u32,
    file: File,
    /// Bytes that the reader has written.
    written: AtomicU64,
    /// Bytes that the converter has read, and those that were given back.
    read: AtomicU64,
    freed: AtomicU64,
}

impl PageSpool {
    /// Makes empty ones.
    pub(super) fn create(cpus: impl Iterator<Item = u32>) -> io::Result<Vec<Arc<Self>>> {
        cpus.map(|cpu| {
            let file = File::from(memfd_create("kymo-kernel", MemfdFlags::CLOEXEC)?);
            let (written, read, freed) = Default::default();
            Ok(Arc::new(Self { cpu, file, written, read, freed }))
        })
        .collect()
    }

    /// Adds pages with their lengths.
    pub(super) fn put(&self, pages: &[u8]) -> io::Result<()> {
        let at = self.written.load(Ordering::Relaxed);
        self.file.write_all_at(pages, at)?;
        self.written.store(at + pages.len() as u64, Ordering::Release);
        Ok(())
    }

    /// Gives back memory of converted pages.
    pub(super) fn free(&self) {
        let freed = self.freed.load(Ordering::Relaxed);
        let whole = (self.read.load(Ordering::Acquire) - freed) & !(HOLE - 1);
        if whole > 0 {
            let _ = fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, freed, whole);
            self.freed.store(freed + whole, Ordering::Relaxed);
        }
    }

    /// Bytes that wait for conversion.
    pub(super) fn waiting(&self) -> u64 {
        self.written.load(Ordering::Acquire) - self.read.load(Ordering::Acquire)
    }

    /// Reads pages with their lengths, at most about so many bytes; the caller says how many of them it has used.
    pub(super) fn peek(&self, most: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let bytes = usize::try_from(self.waiting()).unwrap_or(usize::MAX).min(most);
        into.resize(bytes, 0);
        self.file.read_exact_at(into, self.read.load(Ordering::Relaxed))
    }

    /// So many bytes are converted.
    pub(super) fn used(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Release);
    }
}
