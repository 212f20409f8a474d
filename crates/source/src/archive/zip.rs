//! Where the entries of a zip file lie; compressed ones are decompressed one behind the other.

use std::sync::Arc;

use zip::{CompressionMethod, ZipArchive};

use super::Archive;
use super::spool::UnnamedFile;
use crate::error::{SourceError, SourceErrorKind};
use crate::handles::LazyFile;

/// Adds the entries of a zip file.
pub(super) fn read(file: &Arc<LazyFile>, archive: &mut Archive) -> Result<(), SourceError> {
    let path = file.path();
    let fail = |error: zip::result::ZipError| SourceError::new(path, SourceErrorKind::Zip(Box::new(error)));
    let packed = std::fs::File::open(path).map_err(|error| SourceError::new(path, error))?;
    let mut entries = ZipArchive::new(packed).map_err(fail)?;
    if entries.len() > super::ENTRIES_MAX {
        return Err(SourceError::new(path, SourceErrorKind::ManyEntries(super::ENTRIES_MAX)));
    }
    let mut spool: Option<UnnamedFile> = None;
    let mut compressed = Vec::new();
    for index in 0..entries.len() {
        let entry = entries.by_index_raw(index).map_err(fail)?;
        let name = entry.name().to_owned();
        if !entry.is_file() {
            continue;
        }
        if entry.encrypted() {
            return Err(SourceError::new(path, SourceErrorKind::Encrypted(name)));
        }
        if entry.compression() == CompressionMethod::Stored {
            archive.add(&name, file, entry.data_start(), entry.size())?;
            continue;
        }
        drop(entry);
        let spool = match &mut spool {
            Some(spool) => spool,
            empty => empty.insert(UnnamedFile::new(path)?),
        };
        let mut entry = entries.by_index(index).map_err(fail)?;
        let (start, size) = spool.append(&mut entry)?;
        compressed.push((name, start, size));
    }
    if let Some(spool) = spool {
        let unpacked = spool.finish();
        for (name, start, size) in compressed {
            archive.add(&name, &unpacked, start, size)?;
        }
    }
    Ok(())
}
