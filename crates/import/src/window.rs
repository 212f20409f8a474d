//! A file through a window that moves on.

use kymo_source::{ByteSource, SourceError};

/// Bytes read at once.
const STEP: usize = 1 << 20;

/// Bytes of a file at any place; going on is cheap.
pub(crate) struct FileWindow<'f> {
    file: &'f ByteSource,
    bytes: Vec<u8>,
    at: u64,
}

impl<'f> FileWindow<'f> {
    pub(crate) fn new(file: &'f ByteSource) -> Self {
        Self { file, bytes: Vec::new(), at: 0 }
    }

    /// `count` bytes at a place; fewer where the file ends.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    #[inline]
    pub(crate) fn bytes(&mut self, at: u64, count: usize) -> Result<&[u8], SourceError> {
        let has_all = at >= self.at && at - self.at <= self.bytes.len() as u64;
        if !has_all || self.bytes.len() - ((at - self.at) as usize) < count {
            self.fill(at, count)?;
        }
        let rest = &self.bytes[(at - self.at) as usize..];
        Ok(&rest[..count.min(rest.len())])
    }

    #[cold]
    fn fill(&mut self, at: u64, count: usize) -> Result<(), SourceError> {
        self.bytes.resize(STEP.max(count), 0);
        let read = self.file.read_at(at, &mut self.bytes)?;
        self.bytes.truncate(read);
        self.at = at;
        Ok(())
    }
}
