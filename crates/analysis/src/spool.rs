//! Where tables put rows that do not fit into memory: blocks of bytes, written once, read back, given up.
//!
//! This crate knows no files. The driver hands in a [`Spool`]; the spool's target is its own
//! affair.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A block of bytes that a [`Spool`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolBlock {
    /// Where it begins: for the spool to find it, and for messages.
    pub at: u64,
    /// How long it is.
    pub size_bytes: usize,
}

/// Keeps blocks of bytes outside of memory. Any thread may write and read at any time.
pub trait Spool: fmt::Debug + Send + Sync {
    /// Keeps these bytes.
    ///
    /// # Errors
    ///
    /// There is no space, or writing does not work.
    fn write(&self, bytes: &[u8]) -> Result<SpoolBlock, SpoolError>;

    /// Replaces the content of `bytes` by that of a block.
    ///
    /// # Errors
    ///
    /// Reading does not work.
    fn read(&self, block: SpoolBlock, bytes: &mut Vec<u8>) -> Result<(), SpoolError>;

    /// This block will not be read again.
    fn release(&self, block: SpoolBlock);
}

/// A spool, and how much memory a table may take before it uses it.
#[derive(Clone, Debug)]
pub struct Room {
    /// Where rows go.
    pub spool: Arc<dyn Spool>,
    /// The memory that one table may use. It takes up to half as much again for a moment, while it
    /// grows or spills.
    pub budget_bytes: usize,
}

/// Rows cannot be put aside, or do not come back as they were.
#[derive(Debug, thiserror::Error)]
#[error("at byte {at} of the spool for tables: {kind}")]
pub struct SpoolError {
    /// Where in the spool.
    pub at: u64,
    /// The problem.
    pub kind: SpoolErrorKind,
}

/// The problems of a spool.
#[derive(Debug, thiserror::Error)]
pub enum SpoolErrorKind {
    /// The spool's target has no space left.
    #[error("there is no space for {needed_bytes} more bytes in {}", folder.display())]
    Full {
        /// The size of the block that was to be written.
        needed_bytes: usize,
        /// The full target, as the spool calls it.
        folder: PathBuf,
    },
    /// A block could not be written.
    #[error("{needed_bytes} bytes cannot be written to {}: {cause}", folder.display())]
    Write {
        /// The size of the block.
        needed_bytes: usize,
        /// The target of the write, as the spool calls it.
        folder: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A block could not be read.
    #[error("{wanted_bytes} bytes cannot be read: {cause}")]
    Read {
        /// The size of the block.
        wanted_bytes: usize,
        /// The system's error.
        cause: io::Error,
    },
    /// A block differs from the written one.
    #[error("a block of {size_bytes} bytes differs from the written block")]
    Changed {
        /// The size of the block.
        size_bytes: usize,
    },
    /// A row cannot be read.
    #[error("a row cannot be read: {0}")]
    Row(postcard::Error),
    /// A row cannot be written.
    #[error("a row cannot be written: {0}")]
    Unwritable(postcard::Error),
    /// Keys do not ascend, so they are ordered in another way than when they were written.
    #[error("rows are not in the order of their keys")]
    Order,
}

/// A spool in memory: for tests, and where there is no place to write to.
#[derive(Debug, Default)]
pub struct MemorySpool {
    blocks: Mutex<MemoryBlocks>,
}

#[derive(Debug, Default)]
struct MemoryBlocks {
    /// By where they begin; released ones are empty.
    kept: std::collections::BTreeMap<u64, Box<[u8]>>,
    end: u64,
}

impl MemorySpool {
    /// The size of all blocks that are not released.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.lock().kept.values().map(|block| block.len()).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, MemoryBlocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spool for MemorySpool {
    fn write(&self, bytes: &[u8]) -> Result<SpoolBlock, SpoolError> {
        let mut blocks = self.lock();
        let block = SpoolBlock { at: blocks.end, size_bytes: bytes.len() };
        blocks.end += bytes.len() as u64;
        blocks.kept.insert(block.at, bytes.into());
        Ok(block)
    }

    fn read(&self, block: SpoolBlock, bytes: &mut Vec<u8>) -> Result<(), SpoolError> {
        bytes.clear();
        match self.lock().kept.get(&block.at) {
            Some(kept) => bytes.extend_from_slice(kept),
            None => {
                let kind = SpoolErrorKind::Changed { size_bytes: block.size_bytes };
                return Err(SpoolError { at: block.at, kind });
            }
        }
        Ok(())
    }

    fn release(&self, block: SpoolBlock) {
        self.lock().kept.remove(&block.at);
    }
}
