//! The spool: pages of ring buffers in files, one for each CPU, between reading and conversion.
//!
//! ```text
//! cpu_N    u32 length │ a page, as far as it is used │ u32 length │ ...     converted pages give their memory back
//! ```

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, fallocate};

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
    /// Makes empty files.
    pub(super) fn create(folder: &Path, cpus: impl Iterator<Item = u32>) -> io::Result<Vec<Arc<Self>>> {
        DirBuilder::new().mode(0o700).create(folder)?;
        cpus.map(|cpu| {
            let path = folder.join(format!("cpu_{cpu}"));
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
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

    /// Bytes that wait for conversion.
    pub(super) fn waiting(&self) -> u64 {
        self.written.load(Ordering::Acquire) - self.read.load(Ordering::Relaxed)
    }

    /// Reads pages with their lengths, at most about so many bytes; the caller says how many of them it has used.
    pub(super) fn peek(&self, most: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let bytes = usize::try_from(self.waiting()).unwrap_or(usize::MAX).min(most);
        into.resize(bytes, 0);
        self.file.read_exact_at(into, self.read.load(Ordering::Relaxed))
    }

    /// So many bytes are converted.
    pub(super) fn used(&self, bytes: usize) {
        let read = self.read.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        let freed = self.freed.load(Ordering::Relaxed);
        let whole = (read - freed) & !(HOLE - 1);
        if whole > 0 {
            // Where a file system cannot, the file stays as long as it is.
            let _ = fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, freed, whole);
            self.freed.store(freed + whole, Ordering::Relaxed);
        }
    }
}
