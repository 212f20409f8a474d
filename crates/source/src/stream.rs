//! Streams of packets: a folder's description of one, and its bytes, in any storage.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::SourceError;
use crate::handles::LazyFile;

/// A stream of packets: a file, an entry of an archive, or made of another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its name in the folder, with U+FFFD for bytes that are no text.
    pub name: String,
    /// Its name as it is.
    file_name: OsString,
    /// Its size when the folder was opened.
    pub size: u64,
    /// Its last events are missing, as an importer says.
    pub lacks_end: bool,
}

impl StreamEntry {
    pub(crate) fn new(name: String, file_name: OsString, size: u64) -> Self {
        Self { name, file_name, size, lacks_end: false }
    }

    /// Its name as the system has it.
    pub(crate) fn file_name(&self) -> &OsStr {
        &self.file_name
    }
}

/// Bytes that can be read at any place, by several threads.
pub(crate) trait ReadAt: fmt::Debug + Send + Sync {
    /// Reads from `offset` on until `buffer` is full or the bytes end; returns how many were read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for LazyFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        Self::read_at(self, offset, buffer)
    }
}

/// Bytes that can be read at any place: a file, a part of an archive, or packets made of another file. Cheap to clone; may be read from several threads.
#[derive(Clone, Debug)]
pub struct ByteSource {
    path: PathBuf,
    file: Arc<dyn ReadAt>,
    /// First byte in the file.
    start: u64,
    /// Bytes that may be read; a file of its own ends where it ends.
    size: u64,
}

/// Bytes read at once where a size is only claimed.
const STEP: u64 = 1 << 20;

impl ByteSource {
    /// The part of `file` that is called `path`.
    pub(crate) fn part(path: PathBuf, file: Arc<dyn ReadAt>, start: u64, size: u64) -> Self {
        Self { path, file, start, size }
    }

    /// Reads from `offset` on until `buffer` is full or the file ends; returns how many bytes.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, SourceError> {
        let Some(at) = self.start.checked_add(offset).filter(|_| offset < self.size) else {
            return Ok(0);
        };
        let wanted = (self.size - offset).min(buffer.len() as u64) as usize;
        self.file.read_at(at, &mut buffer[..wanted]).map_err(|error| SourceError::new(&self.path, error))
    }

    /// All bytes; the file may have fewer than the `size` that it is said to have.
    pub(crate) fn read_all(&self, size: u64) -> Result<Vec<u8>, SourceError> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            let done = bytes.len();
            bytes.resize(done + (size - done as u64).min(STEP) as usize, 0);
            let read = self.read_at(done as u64, &mut bytes[done..])?;
            bytes.truncate(done + read);
            if read == 0 {
                break;
            }
        }
        Ok(bytes)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
