//! Finds the traces in what the user named: a trace, a tree of traces, one stream's file.

use std::path::Path;

use crate::error::{Error, ErrorKind};
use crate::folder::TraceFolder;

/// Folders inside of folders.
const DEPTH_MAX: usize = 32;

/// The traces at or below `path`, in the order of their names.
///
/// A file means the one stream that it holds; its folder's metadata says how to read it.
///
/// # Errors
///
/// Nothing is there, or it cannot be read.
pub fn find(path: &Path) -> Result<Vec<TraceFolder>, Error> {
    let facts = std::fs::metadata(path).map_err(|error| Error::new(path, error))?;
    if facts.is_file() {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.join("metadata").is_file() {
            return Err(Error::new(path, ErrorKind::NotInTrace));
        }
        return Ok(vec![TraceFolder::of_one_file(folder, path)?]);
    }
    let mut found = Vec::new();
    walk(path, 0, &mut found)?;
    if found.is_empty() {
        return Err(Error::new(path, ErrorKind::NoTrace));
    }
    Ok(found)
}

fn walk(path: &Path, depth: usize, found: &mut Vec<TraceFolder>) -> Result<(), Error> {
    if path.join("metadata").is_file() {
        found.push(TraceFolder::open(path)?);
        return Ok(());
    }
    if depth >= DEPTH_MAX {
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(|error| Error::new(path, error))?;
    let mut folders: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    for folder in folders {
        walk(&folder, depth + 1, found)?;
    }
    Ok(())
}
