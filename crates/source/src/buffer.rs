//! Bytes in memory: reused, shared by reference, with slack behind them.
//!
//! ```text
//! Buffer ──> [ bytes that were read │ 16 bytes of slack ]  <── Buffer (a part of the same)
//!                    └ goes back to its pool when the last Buffer is dropped
//! ```

use std::sync::{Arc, Mutex};

use crate::error::SourceError;
use crate::stream::ByteSource;

/// Bytes that may be touched behind a buffer's own, so that wide loads stay inside memory.
pub const SLACK: usize = 16;

/// Memory that a pool keeps for later, at most.
const KEPT_BYTES: usize = 16 << 20;

/// Memory is taken in multiples of this.
const GRAIN_BYTES: usize = 64 << 10;

/// Memory to be reused.
#[derive(Clone, Debug, Default)]
pub struct BufferPool {
    free: Arc<Mutex<Free>>,
}

#[derive(Debug, Default)]
struct Free {
    memory: Vec<Vec<u8>>,
    bytes: usize,
}

/// Some bytes. Cheap to clone and to cut.
#[derive(Clone, Debug)]
pub struct Buffer {
    memory: Arc<BufferMemory>,
    start: usize,
    length: usize,
}

#[derive(Debug)]
struct BufferMemory {
    bytes: Vec<u8>,
    /// Where it goes back to; a copy belongs to no pool.
    pool: Option<Arc<Mutex<Free>>>,
}

impl Drop for BufferMemory {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(pool) = &self.pool
            && let Ok(mut free) = pool.lock()
            && free.bytes + bytes.len() <= KEPT_BYTES
        {
            free.bytes += bytes.len();
            free.memory.push(bytes);
        }
    }
}

impl BufferPool {
    /// Reads up to `length` bytes from `offset` of the stream on; fewer at its end.
    ///
    /// # Errors
    ///
    /// The stream cannot be read.
    pub fn read(&self, stream: &ByteSource, offset: u64, length: usize) -> Result<Buffer, SourceError> {
        let mut bytes = self.take(length + SLACK);
        let read = stream.read_at(offset, &mut bytes[..length])?;
        bytes[read..read + SLACK].fill(0);
        Ok(Buffer::whole(BufferMemory { bytes, pool: Some(Arc::clone(&self.free)) }, read))
    }

    /// Memory of at least `size` bytes, of any content. Few sizes are in use, so that returned
    /// memory fits again.
    fn take(&self, size: usize) -> Vec<u8> {
        let size = size.next_multiple_of(GRAIN_BYTES);
        let mut found = None;
        if let Ok(mut free) = self.free.lock()
            && let Some(index) = free.memory.iter().position(|memory| memory.len() >= size)
        {
            let memory = free.memory.swap_remove(index);
            free.bytes -= memory.len();
            found = Some(memory);
        }
        found.unwrap_or_else(|| vec![0; size])
    }
}

impl Buffer {
    /// A copy of `bytes`.
    #[must_use]
    pub fn copy(bytes: &[u8]) -> Self {
        let mut memory = Vec::with_capacity(bytes.len() + SLACK);
        memory.extend_from_slice(bytes);
        memory.resize(bytes.len() + SLACK, 0);
        Self::whole(BufferMemory { bytes: memory, pool: None }, bytes.len())
    }

    fn whole(memory: BufferMemory, length: usize) -> Self {
        Self { memory: Arc::new(memory), start: 0, length }
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// No bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory.bytes[self.start..self.start + self.length]
    }

    /// The bytes with [`SLACK`] more of any value.
    #[must_use]
    pub fn with_slack(&self) -> &[u8] {
        &self.memory.bytes[self.start..self.start + self.length + SLACK]
    }

    /// A part of the same bytes.
    ///
    /// # Panics
    ///
    /// If the part is not inside.
    #[must_use]
    pub fn slice(&self, start: usize, length: usize) -> Self {
        assert!(start + length <= self.length, "{start}+{length} of {} bytes", self.length);
        Self { memory: Arc::clone(&self.memory), start: self.start + start, length }
    }
}
