//! Archives as virtual folders: nothing is ever extracted by name, so a hostile name has nothing to harm.
//!
//! ```text
//! .tar, stored in .zip       entry = (offset, size) in the archive itself, read in place
//! .tar.gz, .tar.zst          decompressed once into a file without a name; entries lie in that
//! deflated in .zip           the same, one entry behind the other
//! ```
//!
//! Finding traces among the entries is `find`'s duty.

mod spool;
mod tar;
mod zip;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{SourceError, SourceErrorKind};
use crate::handles::{Handles, LazyFile};
use crate::stream::ByteSource;

/// Entries of one archive.
pub(crate) const ENTRIES_MAX: usize = 1 << 20;

/// The packing of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Tar,
    Gzip,
    Zstd,
    Zip,
}

/// An archive whose entries can be read.
#[derive(Debug)]
pub(crate) struct Archive {
    path: PathBuf,
    /// By path inside, parts joined with `/`.
    entries: BTreeMap<String, ArchiveEntry>,
    /// Why there may be more entries than were found.
    broken: Option<SourceError>,
}

/// Where the bytes of an entry lie.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveEntry {
    file: Arc<LazyFile>,
    start: u64,
    pub(crate) size: u64,
}

impl Packing {
    /// The packing that the first bytes of a file announce.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1F, 0x8B, ..] => Some(Self::Gzip),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Self::Zstd),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Self::Zip),
            block if tar::is_header(block) => Some(Self::Tar),
            _ => None,
        }
    }
}

impl Archive {
    /// The archive at `path`; compressed data is decompressed here. If it was cut short or damaged,
    /// it has the part before the damage.
    pub(crate) fn open(path: &Path, packing: Packing, handles: &Arc<Handles>) -> Result<Self, SourceError> {
        let file = handles.register(path.to_owned());
        let mut archive = Self { path: path.to_owned(), entries: BTreeMap::new(), broken: None };
        match packing {
            Packing::Tar => archive.broken = tar::read(&file, &mut archive).err(),
            Packing::Gzip | Packing::Zstd => {
                let (file, broken) = spool::unpack(path, packing)?;
                let end = tar::read(&file, &mut archive).err();
                archive.broken = broken.or(end);
            }
            Packing::Zip => zip::read(&file, &mut archive)?,
        }
        Ok(archive)
    }

    /// Why there may be more entries than were found; reported once.
    pub(crate) fn take_broken(&mut self) -> Option<SourceError> {
        self.broken.take()
    }

    /// Adds an entry; a later one of the same name wins, as in unpacking.
    fn add(&mut self, name: &str, file: &Arc<LazyFile>, start: u64, size: u64) -> Result<(), SourceError> {
        if self.entries.len() >= ENTRIES_MAX {
            return Err(SourceError::new(&self.path, SourceErrorKind::ManyEntries(ENTRIES_MAX)));
        }
        // An archive that was cut short holds less of its last entry than its header claims.
        let there = file.size().map_err(|error| SourceError::new(&self.path, error))?.saturating_sub(start);
        let size = size.min(there);
        if let Some(name) = inside(name) {
            self.entries.insert(name, ArchiveEntry { file: Arc::clone(file), start, size });
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The entry of that name.
    pub(crate) fn entry(&self, name: &str) -> Option<&ArchiveEntry> {
        self.entries.get(name)
    }

    /// The entries that lie in a folder, not in one below it, by the last part of their names.
    pub(crate) fn files_in(&self, folder: &str) -> impl Iterator<Item = (&str, &ArchiveEntry)> {
        let prefix = join(folder, "");
        let length = prefix.len();
        let below = self.entries.range(prefix.clone()..).take_while(move |(name, _)| name.starts_with(&prefix));
        below.map(move |(name, entry)| (&name[length..], entry)).filter(|(name, _)| !name.contains('/'))
    }

    /// The entries that lie in a folder or in one below it.
    pub(crate) fn files_below(&self, folder: &str) -> impl Iterator<Item = (&str, &ArchiveEntry)> {
        let prefix = join(folder, "");
        let below = self.entries.range(prefix.clone()..).take_while(move |(name, _)| name.starts_with(&prefix));
        below.map(|(name, entry)| (&**name, entry))
    }

    /// All folders that hold a file named `metadata`.
    pub(crate) fn metadata_folders(&self) -> BTreeSet<String> {
        let folder = |name: &str| match name.rsplit_once('/') {
            Some((folder, "metadata")) => Some(folder.to_owned()),
            None if name == "metadata" => Some(String::new()),
            _ => None,
        };
        self.entries.keys().filter_map(|name| folder(name)).collect()
    }

    /// The names of the first entries.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// An entry for reading.
    pub(crate) fn stream(&self, name: &str, entry: &ArchiveEntry) -> ByteSource {
        ByteSource::part(self.path.join(name), Arc::<LazyFile>::clone(&entry.file), entry.start, entry.size)
    }
}

/// The path of `name` in `folder`.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Those of some folders that are not below another one of them.
pub(crate) fn outermost(folders: &[String]) -> impl Iterator<Item = &String> {
    let all: BTreeSet<&str> = folders.iter().map(String::as_str).collect();
    folders.iter().filter(move |folder| {
        let mut above = folder.match_indices('/').map(|(at, _)| &folder[..at]);
        (folder.is_empty() || !all.contains("")) && above.all(|above| !all.contains(above))
    })
}

/// A name as a path inside the archive; `None` if it leads out of it or nowhere.
fn inside(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.is_empty() && !parts.contains(&"..")).then(|| parts.join("/"))
}
