//! Where the entries of a tar file lie.
//!
//! ```text
//! header 512 B │ content, padded to 512 B │ header │ content │ … │ zeros
//!    └ a header of kind L or x only tells the name or the size of the next one
//! ```

use std::sync::Arc;

use tar::{EntryType, Header, PaxExtensions};

use super::Archive;
use crate::error::{SourceError, SourceErrorKind};
use crate::handles::LazyFile;

const BLOCK: usize = 512;
/// Names and attributes of one entry; real ones are below a few kilobytes.
const ATTRIBUTES_MAX: u64 = 1 << 20;

/// The properties of an entry that the entries before it give.
#[derive(Default)]
struct EntryOverrides {
    name: Option<String>,
    size: Option<u64>,
}

/// Whether the bytes are a header: its checksum must be right.
pub(super) fn is_header(block: &[u8]) -> bool {
    let Some((block, _)) = block.split_first_chunk::<BLOCK>() else {
        return false;
    };
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    // The checksum counts its own place as eight spaces.
    let expected = sum(&block[..148]) + 8 * u32::from(b' ') + sum(&block[156..]);
    Header::from_byte_slice(block).cksum().is_ok_and(|found| found == expected)
}

/// Adds the entries of a tar file up to its end mark; entries behind a broken header cannot be
/// found, which is an error.
pub(super) fn read(file: &Arc<LazyFile>, archive: &mut Archive) -> Result<(), SourceError> {
    let fail = |kind: SourceErrorKind| SourceError::new(file.path(), kind);
    let mut told = EntryOverrides::default();
    let mut offset = 0u64;
    loop {
        let mut block = [0; BLOCK];
        let size = file.read_at(offset, &mut block).map_err(|error| fail(error.into()))?;
        if size < BLOCK {
            let bytes = file.size().map_err(|error| fail(error.into()))?;
            return Err(fail(SourceErrorKind::TarEnd { bytes }));
        }
        if block.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        if !is_header(&block) {
            return Err(fail(SourceErrorKind::TarHeader { offset }));
        }
        let header = Header::from_byte_slice(&block);
        let kind = header.entry_type();
        let own_size = header.entry_size().map_err(|_| fail(SourceErrorKind::TarHeader { offset }))?;
        let start = offset + BLOCK as u64;
        let mut length = own_size;
        match kind {
            EntryType::GNULongName => told.name = Some(text(&attributes(file, start, own_size)?)),
            EntryType::XHeader => tell(&attributes(file, start, own_size)?, &mut told),
            EntryType::XGlobalHeader | EntryType::GNULongLink => {}
            _ => {
                let told = std::mem::take(&mut told);
                length = told.size.unwrap_or(own_size);
                let name = told.name.unwrap_or_else(|| text(&header.path_bytes()));
                if kind == EntryType::GNUSparse {
                    return Err(fail(SourceErrorKind::Sparse(name)));
                }
                if matches!(kind, EntryType::Regular | EntryType::Continuous) && !name.ends_with('/') {
                    archive.add(&name, file, start, length)?;
                }
            }
        }
        let next = length.checked_next_multiple_of(BLOCK as u64).and_then(|length| start.checked_add(length));
        offset = next.ok_or_else(|| fail(SourceErrorKind::TarHeader { offset }))?;
    }
}

/// The content of an entry that describes the next one.
fn attributes(file: &Arc<LazyFile>, start: u64, size: u64) -> Result<Vec<u8>, SourceError> {
    if size > ATTRIBUTES_MAX {
        return Err(SourceError::new(file.path(), SourceErrorKind::TarHeader { offset: start }));
    }
    let mut bytes = vec![0; size as usize];
    let read = file.read_at(start, &mut bytes).map_err(|error| SourceError::new(file.path(), error))?;
    bytes.truncate(read);
    Ok(bytes)
}

fn tell(bytes: &[u8], told: &mut EntryOverrides) {
    for extension in PaxExtensions::new(bytes).flatten() {
        match (extension.key(), extension.value()) {
            (Ok("path"), Ok(value)) => told.name = Some(value.to_owned()),
            (Ok("size"), Ok(value)) => told.size = value.parse().ok(),
            _ => {}
        }
    }
}

/// A name up to its first zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
