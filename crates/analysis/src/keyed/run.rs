//! A run: rows in the order of their keys, in a spool, as blocks that are read one at a time.
//!
//! ```text
//! run    block  block  block ...          the first key of each is remembered, so that one key is found by one read
//! block  check: u64   row  row  row ...   about 64 KiB; whole rows
//! row    size: u32   key and value, in postcard's form
//! ```
//!
//! Rows that come back are checked (the block's check, sizes, order), because the alternative is a
//! wrong answer. The check tells damage, not malice.

use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use super::{TableKey, TableValue};
use crate::spool::{Spool, SpoolBlock, SpoolError, SpoolErrorKind};

/// Blocks are written when they have reached this size.
const BLOCK_BYTES: usize = 64 << 10;
const CHECK_BYTES: usize = size_of::<u64>();
const SIZE_BYTES: usize = size_of::<u32>();

/// Sorted rows in a spool, given up when dropped.
#[derive(Debug)]
pub(super) struct SpoolRun<K> {
    spool: Arc<dyn Spool>,
    /// Each block and its first key.
    blocks: Vec<(K, SpoolBlock)>,
    checks: Checks,
}

/// Checks blocks; only this process reads them, so it may draw a hash function of its own.
type Checks = hashbrown::DefaultHashBuilder;

fn check(checks: &Checks, rows: &[u8]) -> u64 {
    let mut hasher = checks.build_hasher();
    hasher.write(rows);
    hasher.finish()
}

impl<K> SpoolRun<K> {
    pub(super) fn size_bytes(&self) -> u64 {
        self.blocks.iter().map(|(_, block)| block.size_bytes as u64).sum()
    }

    /// What it takes in memory.
    pub(super) fn weight(&self) -> usize {
        self.blocks.capacity() * size_of::<(K, SpoolBlock)>()
    }
}

impl<K> Drop for SpoolRun<K> {
    fn drop(&mut self) {
        self.blocks.iter().for_each(|(_, block)| self.spool.release(*block));
    }
}

/// Writes a run.
pub(super) struct SpoolRunWriter<K> {
    run: SpoolRun<K>,
    /// The block that is being filled, and its first key.
    buffer: Vec<u8>,
    first: Option<K>,
}

impl<K: TableKey> SpoolRunWriter<K> {
    pub(super) fn new(spool: Arc<dyn Spool>) -> Self {
        let run = SpoolRun { spool, blocks: Vec::new(), checks: Checks::default() };
        Self { run, buffer: Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 8), first: None }
    }

    /// Adds a row; keys ascend.
    pub(super) fn push<V: TableValue>(&mut self, key: &K, value: &V) -> Result<(), SpoolError> {
        if self.buffer.is_empty() {
            self.buffer.resize(CHECK_BYTES, 0);
            self.first = Some(key.clone());
        }
        let start = self.buffer.len();
        self.buffer.resize(start + SIZE_BYTES, 0);
        self.buffer = postcard::to_extend(&(key, value), std::mem::take(&mut self.buffer))
            .map_err(|error| SpoolError { at: 0, kind: SpoolErrorKind::Unwritable(error) })?;
        let size = u32::try_from(self.buffer.len() - start - SIZE_BYTES).map_err(|_| SpoolError {
            at: 0,
            kind: SpoolErrorKind::Unwritable(postcard::Error::SerializeBufferFull),
        })?;
        self.buffer[start..start + SIZE_BYTES].copy_from_slice(&size.to_le_bytes());
        if self.buffer.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), SpoolError> {
        if let Some(first) = self.first.take() {
            let check = check(&self.run.checks, &self.buffer[CHECK_BYTES..]);
            self.buffer[..CHECK_BYTES].copy_from_slice(&check.to_le_bytes());
            let block = self.run.spool.write(&self.buffer)?;
            self.run.blocks.push((first, block));
            self.buffer.clear();
        }
        Ok(())
    }

    /// The run, complete.
    pub(super) fn finish(mut self) -> Result<SpoolRun<K>, SpoolError> {
        self.flush()?;
        self.run.blocks.shrink_to_fit();
        Ok(self.run)
    }
}

/// Reads a run from its beginning, or one block of it.
pub(super) struct RunReader<K, V> {
    run: Arc<SpoolRun<K>>,
    /// Blocks that are still to be read.
    blocks: std::ops::Range<usize>,
    /// The block that is being read, and how far it was.
    bytes: Vec<u8>,
    position: usize,
    last: Option<K>,
    values: PhantomData<fn() -> V>,
}

impl<K: TableKey, V: TableValue> RunReader<K, V> {
    pub(super) fn new(run: Arc<SpoolRun<K>>) -> Self {
        let blocks = 0..run.blocks.len();
        Self { run, blocks, bytes: Vec::new(), position: 0, last: None, values: PhantomData }
    }

    /// The value of one key.
    pub(super) fn find(run: &Arc<SpoolRun<K>>, key: &K) -> Result<Option<V>, SpoolError> {
        let Some(block) = run.blocks.partition_point(|(first, _)| first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let mut reader = Self { blocks: block..block + 1, ..Self::new(Arc::clone(run)) };
        while let Some((found, value)) = reader.next_row()? {
            if found >= *key {
                return Ok((found == *key).then_some(value));
            }
        }
        Ok(None)
    }

    /// The next row.
    pub(super) fn next_row(&mut self) -> Result<Option<(K, V)>, SpoolError> {
        if self.position == self.bytes.len() && !self.next_block()? {
            return Ok(None);
        }
        let block = self.run.blocks[self.blocks.start - 1].1;
        let at = block.at + self.position as u64;
        let (key, value) = self.row().map_err(|kind| SpoolError { at, kind })?;
        if self.last.as_ref().is_some_and(|last| *last >= key) {
            return Err(SpoolError { at, kind: SpoolErrorKind::Order });
        }
        self.last = Some(key.clone());
        Ok(Some((key, value)))
    }

    fn next_block(&mut self) -> Result<bool, SpoolError> {
        let Some(place) = self.blocks.next() else { return Ok(false) };
        let block = self.run.blocks[place].1;
        self.run.spool.read(block, &mut self.bytes)?;
        let changed = SpoolErrorKind::Changed { size_bytes: block.size_bytes };
        match self.bytes.split_first_chunk::<CHECK_BYTES>() {
            Some((wanted, rows)) if check(&self.run.checks, rows).to_le_bytes() == *wanted && !rows.is_empty() => {
                self.position = CHECK_BYTES;
                Ok(true)
            }
            _ => Err(SpoolError { at: block.at, kind: changed }),
        }
    }

    fn row(&mut self) -> Result<(K, V), SpoolErrorKind> {
        let end = SpoolErrorKind::Row(postcard::Error::DeserializeUnexpectedEnd);
        let Some((size, rest)) = self.bytes[self.position..].split_first_chunk::<SIZE_BYTES>() else {
            return Err(end);
        };
        let size = u32::from_le_bytes(*size) as usize;
        let Some(row) = rest.get(..size) else { return Err(end) };
        let (row, behind) = postcard::take_from_bytes(row).map_err(SpoolErrorKind::Row)?;
        if !behind.is_empty() {
            return Err(SpoolErrorKind::Row(postcard::Error::DeserializeBadEncoding));
        }
        self.position += SIZE_BYTES + size;
        Ok(row)
    }
}
