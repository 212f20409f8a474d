//! Decompressed bytes, in a file that has no name and vanishes with the process.
//!
//! A small archive can claim to be endless, so there is a limit: 64 GiB, and a thousand times the archive's
//! size (the most that deflate can do, plus room for small files).

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::Packing;
use crate::error::{SourceError, SourceErrorKind};
use crate::handles::LazyFile;

const BYTES_MAX: u64 = 64 << 30;
const RATIO_MAX: u64 = 1000;
/// The size to which any archive may grow, however small it is.
const BYTES_ALWAYS: u64 = 64 << 20;
/// Bytes copied at once.
const STEP: usize = 256 << 10;

/// A file without a name that is being filled.
pub(super) struct UnnamedFile {
    path: PathBuf,
    file: fs::File,
    size: u64,
    limit: u64,
}

/// The decompressed content of a file, and why that is not all of it.
pub(super) fn unpack(path: &Path, packing: Packing) -> Result<(Arc<LazyFile>, Option<SourceError>), SourceError> {
    let packed = fs::File::open(path).map_err(|error| SourceError::new(path, error))?;
    let packed = BufReader::with_capacity(STEP, packed);
    let mut spool = UnnamedFile::new(path)?;
    let unpacked = match packing {
        Packing::Gzip => spool.append(&mut MultiGzDecoder::new(packed)),
        _ => spool.append(&mut ZstdFrames { packed: Some(packed), frame: None }),
    };
    match unpacked {
        Ok(_) => Ok((spool.finish(), None)),
        Err(error) if matches!(error.kind, SourceErrorKind::Packed { .. }) => Ok((spool.finish(), Some(error))),
        Err(error) => Err(error),
    }
}

impl UnnamedFile {
    /// For the contents of the archive at `path`.
    pub(super) fn new(path: &Path) -> Result<Self, SourceError> {
        let packed = fs::metadata(path).map_err(|error| SourceError::new(path, error))?.len();
        let limit = packed.saturating_mul(RATIO_MAX).saturating_add(BYTES_ALWAYS).min(BYTES_MAX);
        let file = tempfile::tempfile().map_err(|error| SourceError::new(&std::env::temp_dir(), error))?;
        Ok(Self { path: path.to_owned(), file, size: 0, limit })
    }

    /// Adds all bytes of `source`; returns where they begin and how many they are.
    pub(super) fn append(&mut self, source: &mut dyn Read) -> Result<(u64, u64), SourceError> {
        let start = self.size;
        let (mut bytes, mut wanted) = (vec![0; STEP], STEP);
        loop {
            let read = match source.read(&mut bytes[..wanted]) {
                Ok(0) => return Ok((start, self.size - start)),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.raw_os_error().is_some() => return Err(SourceError::new(&self.path, error)),
                // A decompressor that cannot give so much may still give the bytes that it has.
                Err(_) if wanted > 1 => {
                    wanted /= 2;
                    continue;
                }
                // The messages of the decompressors are about their insides.
                Err(_) => {
                    return Err(SourceError::new(&self.path, SourceErrorKind::Packed { bytes: self.size - start }));
                }
            };
            self.size += read as u64;
            if self.size > self.limit {
                return Err(SourceError::new(&self.path, SourceErrorKind::Unpacked { limit: self.limit }));
            }
            self.file.write_all(&bytes[..read]).map_err(|error| SourceError::new(&std::env::temp_dir(), error))?;
        }
    }

    /// The file for reading; its errors name the archive.
    pub(super) fn finish(self) -> Arc<LazyFile> {
        LazyFile::kept(self.path, self.file)
    }
}

/// Zstandard frames, one behind the other, as parallel compressors write them.
struct ZstdFrames {
    /// The remaining packed bytes, between frames.
    packed: Option<BufReader<fs::File>>,
    frame: Option<Box<StreamingDecoder<BufReader<fs::File>, ruzstd::decoding::FrameDecoder>>>,
}

impl Read for ZstdFrames {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(bytes)?;
                if read > 0 {
                    return Ok(read);
                }
            }
            if let Some(frame) = self.frame.take() {
                self.packed = Some(frame.into_inner());
            }
            let Some(mut packed) = self.packed.take() else {
                return Ok(0);
            };
            if packed.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new(packed).map_err(io::Error::other)?;
            self.frame = Some(Box::new(frame));
        }
    }
}
