//! Finds the traces in the path that the user named: a trace, a tree of traces, one stream's file,
//! an archive.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::archive::{Archive, MAGIC_BYTES, Packing};
use crate::error::{FolderContents, SourceError, SourceErrorKind};
use crate::folder::TraceFolder;
use crate::handles::Handles;
use crate::import::Importer;
use crate::stream::ByteSource;

/// Folders inside folders.
const DEPTH_MAX: usize = 32;

/// Finds traces. The files of one finder share one limit of open files.
#[derive(Debug, Default)]
pub struct TraceFinder {
    handles: Arc<Handles>,
    importers: &'static [&'static dyn Importer],
    skipped: Vec<SourceError>,
}

/// The traces at or below `path`, as [`TraceFinder::find`] returns them.
///
/// # Errors
///
/// As there; a folder that cannot be listed is an error here.
pub fn find(path: &Path) -> Result<Vec<TraceFolder>, SourceError> {
    let mut finder = TraceFinder::default();
    let found = finder.find(path)?;
    match finder.skipped.pop() {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

impl TraceFinder {
    /// A finder that, where the user names a file, also asks these importers for it.
    #[must_use]
    pub fn with_importers(importers: &'static [&'static dyn Importer]) -> Self {
        Self { importers, ..Self::default() }
    }

    /// The traces at or below `path`, in the order of their names.
    ///
    /// A file means the one stream that it holds (its folder's metadata says how to read it) or an archive.
    /// Links to folders are not followed below `path`, so that none is seen twice or forever.
    ///
    /// # Errors
    ///
    /// Nothing is there, or it cannot be read. Folders below `path` that cannot be listed, and archives that are not whole, are
    /// [skipped](Self::skipped).
    pub fn find(&mut self, path: &Path) -> Result<Vec<TraceFolder>, SourceError> {
        let facts = fs::metadata(path).map_err(|error| SourceError::new(path, error))?;
        if facts.is_file() {
            return Ok(self.file(path)?.into_iter().map(|folder| folder.found_below(path)).collect());
        }
        if !facts.is_dir() {
            return Err(SourceError::new(path, SourceErrorKind::NoFile));
        }
        let skipped = self.skipped.len();
        let mut found = Vec::new();
        self.walk(path, 0, &mut found);
        if !found.is_empty() {
            return Ok(found.into_iter().map(|folder| folder.found_below(path)).collect());
        }
        // An error on the way is the better reason for finding nothing.
        if self.skipped.len() > skipped {
            return Err(self.skipped.swap_remove(skipped));
        }
        let entries = fs::read_dir(path).map_err(|error| SourceError::new(path, error))?;
        let mut names: Vec<_> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Err(SourceError::new(path, SourceErrorKind::NoTrace(FolderContents::new(names.into_iter()))))
    }

    /// Folders that could not be listed and archives that are not whole, and why.
    #[must_use]
    pub fn skipped(&self) -> &[SourceError] {
        &self.skipped
    }

    /// The same, where the finder is not needed any more.
    #[must_use]
    pub fn into_skipped(self) -> Vec<SourceError> {
        self.skipped
    }

    fn file(&mut self, path: &Path) -> Result<Vec<TraceFolder>, SourceError> {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if path.file_name().is_some_and(|name| name == "metadata") {
            return Ok(vec![TraceFolder::open(folder, &self.handles)?]);
        }
        // A stream may begin with any bytes, so that in a trace only the name makes an archive.
        let in_trace = folder.join("metadata").is_file();
        if !in_trace || is_named_archive(path) {
            let head = self.head(path)?;
            if let Some(packing) = Packing::of(&head) {
                return self.in_archive(Archive::open(path, packing, &self.handles)?);
            }
            if let Some(importer) = self.importers.iter().find(|importer| importer.recognizes(path, &head)) {
                let file = ByteSource::part(path.to_owned(), self.handles.register(path.to_owned()), 0, u64::MAX);
                let imported = importer.import(&file)?;
                if imported.is_empty() {
                    return Err(SourceError::new(path, SourceErrorKind::Import("there is no trace in it".to_owned())));
                }
                return imported.into_iter().map(|trace| TraceFolder::imported(path, trace)).collect();
            }
        }
        if !in_trace {
            return Err(SourceError::new(path, SourceErrorKind::NotInTrace));
        }
        Ok(vec![TraceFolder::of_one_file(folder, path, &self.handles)?])
    }

    /// The first bytes of a file, by which its format is recognized.
    fn head(&self, path: &Path) -> Result<Vec<u8>, SourceError> {
        let mut head = vec![0; MAGIC_BYTES];
        let file = self.handles.register(path.to_owned());
        let size = file.read_at(0, &mut head).map_err(|error| SourceError::new(path, error))?;
        head.truncate(size);
        Ok(head)
    }

    fn in_archive(&mut self, mut archive: Archive) -> Result<Vec<TraceFolder>, SourceError> {
        let (folders, broken) = (archive.traces(), archive.take_broken());
        if folders.is_empty() {
            let seen = || SourceErrorKind::NoTrace(FolderContents::new(archive.names().map(str::to_owned)));
            return Err(broken.unwrap_or_else(|| SourceError::new(archive.path(), seen())));
        }
        self.skipped.extend(broken);
        let archive = Arc::new(archive);
        Ok(folders.iter().map(|folder| TraceFolder::in_archive(&archive, folder)).collect())
    }

    fn walk(&mut self, path: &Path, depth: usize, found: &mut Vec<TraceFolder>) {
        if path.join("metadata").is_file() {
            match TraceFolder::open(path, &self.handles) {
                Ok(folder) => found.push(folder),
                Err(error) => self.skipped.push(error),
            }
            return;
        }
        if depth >= DEPTH_MAX {
            return;
        }
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => return self.skipped.push(SourceError::new(path, error)),
        };
        let mut folders: Vec<_> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        folders.sort();
        for folder in folders {
            self.walk(&folder, depth + 1, found);
        }
    }
}

fn is_named_archive(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("tar" | "gz" | "tgz" | "zst" | "tzst" | "zip"))
}
