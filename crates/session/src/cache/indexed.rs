//! Files of blocks with an index behind them, kept in the cache for a next run.
//!
//! ```text
//! block │ block │ … │ index │ trailer: where the index begins, its size, its hash, what the file belongs to, magic number
//! ```
//!
//! A file is written under a temporary name, or none, and gets its own when nothing writes to it
//! any more. It belongs to its sources: a reader that finds another number in it, or anything that
//! is not as it was written, makes it anew.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use kymo_analysis::SpoolError;
use kymo_analysis::SpoolErrorKind::{Changed, Read};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;

use crate::cache::spool::{read_exact_at, unwritten, write_all_at};
use crate::cache::{hash, tidy};

const TRAILER_WORDS: usize = 5;
const WORD_BYTES: usize = 8;

/// A kind of such files.
#[derive(Debug)]
pub(crate) struct FileKind {
    /// The end of the trailer; the last byte is the version of the data before it.
    pub(crate) magic: u64,
    pub(crate) extension: &'static str,
    /// All files of the kind together; the one that is in use may be larger.
    pub(crate) bytes_max: u64,
}

/// A file that is written or read, by any number of threads.
#[derive(Debug)]
pub(crate) struct IndexedFile {
    file: File,
    folder: PathBuf,
    /// Where the next block goes.
    end: AtomicU64,
}

impl IndexedFile {
    /// An empty one: in the cache's folder, where it may get a name, or without one.
    pub(crate) fn new(folder: Option<&Path>) -> io::Result<(Self, Option<NamedTempFile>)> {
        let named = folder.and_then(|folder| {
            fs::create_dir_all(folder).ok()?;
            NamedTempFile::new_in(folder).ok()
        });
        let file = match &named {
            Some(named) => named.as_file().try_clone()?,
            None => tempfile::tempfile()?,
        };
        let folder = folder.filter(|_| named.is_some()).map_or_else(std::env::temp_dir, Path::to_owned);
        Ok((Self { file, folder, end: AtomicU64::new(0) }, named))
    }

    /// One that belongs to something, and its index; `None`: there is none, or it is broken.
    pub(crate) fn open<T: DeserializeOwned>(kind: &FileKind, path: &Path, belongs: u64) -> Option<(Self, T)> {
        let file = File::open(path).ok()?;
        let size = file.metadata().ok()?.len();
        let mut trailer = [0; TRAILER_WORDS * WORD_BYTES];
        let end = size.checked_sub(trailer.len() as u64)?;
        read_exact_at(&file, &mut trailer, end).ok()?;
        let mut words = trailer.as_chunks::<WORD_BYTES>().0.iter().map(|word| u64::from_le_bytes(*word));
        let [at, index_size, check, found, magic] = std::array::from_fn(|_| words.next().unwrap_or(0));
        if (found, magic) != (belongs, kind.magic) || at.checked_add(index_size) != Some(end) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(index_size).ok()?];
        read_exact_at(&file, &mut bytes, at).ok()?;
        let index = (hash(&bytes) == check).then(|| postcard::from_bytes(&bytes).ok())??;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Some((Self { file, folder, end: AtomicU64::new(at) }, index))
    }

    /// The same blocks in a file that can be written.
    pub(crate) fn copied(&self, folder: Option<&Path>) -> io::Result<(Self, Option<NamedTempFile>)> {
        let (copy, named) = Self::new(folder)?;
        let end = self.end();
        let mut bytes = vec![0; 1 << 20];
        let mut at = 0;
        while at < end {
            let some = &mut bytes[..usize::try_from(end - at).unwrap_or(usize::MAX).min(1 << 20)];
            read_exact_at(&self.file, some, at)?;
            write_all_at(&copy.file, some, at)?;
            at += some.len() as u64;
        }
        copy.end.store(end, Ordering::Relaxed);
        Ok((copy, named))
    }

    /// Where the next block goes.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Writes a block behind everything; where that is.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<u64, SpoolError> {
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let failed = |cause| unwritten(at, bytes.len(), self.folder.clone(), cause);
        write_all_at(&self.file, bytes, at).map_err(failed)?;
        Ok(at)
    }

    /// The bytes of a block, as they are.
    pub(crate) fn read(&self, (at, size_bytes): (u64, u64), bytes: &mut Vec<u8>) -> Result<(), SpoolError> {
        let broken = |kind| SpoolError { at, kind };
        let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        if at.checked_add(size_bytes).is_none_or(|end| end > self.end()) {
            return Err(broken(Changed { size_bytes: size }));
        }
        bytes.resize(size, 0);
        read_exact_at(&self.file, bytes, at).map_err(|cause| broken(Read { wanted_bytes: size, cause }))
    }

    /// Writes the index behind all blocks.
    pub(crate) fn finish<T: Serialize>(&self, kind: &FileKind, index: &T, belongs: u64) -> io::Result<()> {
        let mut bytes = postcard::to_allocvec(index).map_err(io::Error::other)?;
        let (at, size) = (self.end(), bytes.len() as u64);
        let trailer = [at, size, hash(&bytes), belongs, kind.magic];
        bytes.extend(trailer.iter().flat_map(|word| word.to_le_bytes()));
        write_all_at(&self.file, &bytes, at)
    }
}

impl FileKind {
    /// The name of a file that belongs to a number for where traces are.
    pub(crate) fn path(&self, folder: &Path, paths: u64) -> PathBuf {
        folder.join(format!("{paths:016x}.{}", self.extension))
    }

    /// Gives a file its name. A cache that cannot be written only costs time.
    pub(crate) fn keep(&self, named: NamedTempFile, path: &Path) {
        let _ = named.persist(path);
        path.parent().into_iter().for_each(|folder| tidy(folder, self.extension, self.bytes_max, Some(path)));
    }
}
