//! Where the entries of a zip file lie; compressed ones are decompressed one behind the other.

use std::sync::Arc;

use zip::{CompressionMethod, ZipArchive};

use super::Archive;
use super::spool::Spool;
use crate::error::{Error, ErrorKind};
use crate::handles::File;

/// Adds the entries of a zip file.
pub(super) fn read(file: &Arc<File>, archive: &mut Archive) -> Result<(), Error> {
    let path = file.path();
    let fail = |error: zip::result::ZipError| Error::new(path, ErrorKind::Zip(Box::new(error)));
    let packed = std::fs::File::open(path).map_err(|error| Error::new(path, error))?;
    let mut entries = ZipArchive::new(packed).map_err(fail)?;
    if entries.len() > super::ENTRIES_MAX {
        return Err(Error::new(path, ErrorKind::ManyEntries(super::ENTRIES_MAX)));
    }
    let mut spool: Option<Spool> = None;
    let mut compressed = Vec::new();
    for index in 0..entries.len() {
        let entry = entries.by_index_raw(index).map_err(fail)?;
        let name = entry.name().to_owned();
        if !entry.is_file() {
            continue;
        }
        if entry.encrypted() {
            return Err(Error::new(path, ErrorKind::Encrypted(name)));
        }
        if entry.compression() == CompressionMethod::Stored {
            archive.add(&name, file, entry.data_start(), entry.size())?;
            continue;
        }
        drop(entry);
        let spool = match &mut spool {
            Some(spool) => spool,
            empty => empty.insert(Spool::new(path)?),
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
