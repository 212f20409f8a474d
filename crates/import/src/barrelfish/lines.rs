//! A part of a file in pieces of whole lines.

use std::ops::Range;

use kymo_source::{ByteSource, SourceError};

/// Bytes read at once.
const STEP: usize = 1 << 20;
/// Bytes of a line. Longer ones are no lines of a dump, and are left out.
pub(super) const LINE_MAX: usize = 64 << 10;

/// Hands out the part from its beginning on.
pub(super) struct LineReader<'f> {
    file: &'f ByteSource,
    bytes: Vec<u8>,
    /// Where `bytes` begins in the file, and where the part ends.
    place: Range<u64>,
    /// Bytes at the beginning of `bytes` that were handed out.
    done: usize,
    is_at_end: bool,
    /// Inside of a line that is too long.
    is_skipping: bool,
    /// Such lines before the next piece.
    skipped: u64,
}

/// Whole lines.
pub(super) struct WholeLines<'r> {
    /// With their newlines; only the last line of the part may be without one.
    pub(super) bytes: &'r [u8],
    /// Where they begin in the file.
    pub(super) at: u64,
    /// Lines that are too long, before these and behind the piece before.
    pub(super) skipped: u64,
}

impl<'f> LineReader<'f> {
    /// For a part that begins where a line does.
    pub(super) fn new(file: &'f ByteSource, place: Range<u64>) -> Self {
        Self { file, bytes: Vec::new(), place, done: 0, is_at_end: false, is_skipping: false, skipped: 0 }
    }

    /// The next lines.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<WholeLines<'_>>, SourceError> {
        self.drop_first(self.done);
        while !self.is_at_end {
            self.read()?;
            if self.is_skipping {
                let newline = memchr::memchr(b'\n', &self.bytes);
                self.drop_first(newline.map_or(self.bytes.len(), |newline| newline + 1));
                self.is_skipping = newline.is_none();
            }
            if let Some(newline) = memchr::memrchr(b'\n', &self.bytes) {
                return Ok(Some(self.hand_out(newline + 1)));
            }
            if self.bytes.len() > LINE_MAX {
                (self.is_skipping, self.skipped) = (true, self.skipped + 1);
                self.drop_first(self.bytes.len());
            }
        }
        let rest = self.bytes.len();
        Ok((rest > 0 || self.skipped > 0).then(|| self.hand_out(rest)))
    }

    /// The end of the bytes that were read.
    pub(super) fn end(&self) -> u64 {
        self.place.start + self.bytes.len() as u64
    }

    fn read(&mut self) -> Result<(), SourceError> {
        let left = self.bytes.len();
        let wanted = (self.place.end - self.end()).min(STEP as u64) as usize;
        self.bytes.resize(left + wanted, 0);
        let read = self.file.read_at(self.place.start + left as u64, &mut self.bytes[left..])?;
        self.bytes.truncate(left + read);
        self.is_at_end = read == 0;
        Ok(())
    }

    fn drop_first(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.place.start += count as u64;
        self.done = 0;
    }

    fn hand_out(&mut self, count: usize) -> WholeLines<'_> {
        self.done = count;
        let skipped = std::mem::take(&mut self.skipped);
        WholeLines { bytes: &self.bytes[..count], at: self.place.start, skipped }
    }
}
