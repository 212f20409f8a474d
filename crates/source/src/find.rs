//! Finds the traces in the path that the user named: a trace, a tree of traces, one stream's file,
//! an archive, a file in another format.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::archive::{Archive, Packing};
use crate::error::{FolderContents, SourceError, SourceErrorKind};
use crate::folder::TraceFolder;
use crate::handles::Handles;
use crate::import::{HEAD_BYTES, ImportOptions, Importer, Importers};
use crate::storage::FileIdentity;
use crate::stream::ByteSource;

/// Folders inside folders.
const DEPTH_MAX: usize = 32;

/// Finds traces. The files of one finder share one limit of open files.
#[derive(Debug, Default)]
pub struct TraceFinder {
    handles: Arc<Handles>,
    importers: Importers,
    options: ImportOptions,
    imported: ImportedFiles,
    skipped: Vec<SourceError>,
}

/// Files that were imported: those that are as they were are not read again.
#[derive(Clone, Debug, Default)]
pub struct ImportedFiles(HashMap<PathBuf, (FileIdentity, Vec<TraceFolder>)>);

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
    /// A finder that also asks these importers: for a file that the user names, and for the files of
    /// folders that are no trace.
    #[must_use]
    pub fn with_importers(importers: Importers, options: ImportOptions) -> Self {
        Self { importers, options, ..Self::default() }
    }

    /// The same, where these files were imported before, with the same options.
    #[must_use]
    pub fn remembering(self, imported: ImportedFiles) -> Self {
        Self { imported, ..self }
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

    /// The same, where the finder is not needed any more, and the files that it imported.
    #[must_use]
    pub fn into_parts(self) -> (Vec<SourceError>, ImportedFiles) {
        (self.skipped, self.imported)
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
        }
        if let Some(importer) = self.importer(path, in_trace) {
            return self.import(path, importer);
        }
        if !in_trace {
            let formats = self.importers.files.iter().map(|importer| importer.format()).collect();
            return Err(SourceError::new(path, SourceErrorKind::NotInTrace { formats }));
        }
        Ok(vec![TraceFolder::of_one_file(folder, path, &self.handles)?])
    }

    /// The traces that an importer makes of a file.
    fn import(&mut self, path: &Path, importer: &dyn Importer) -> Result<Vec<TraceFolder>, SourceError> {
        let now = FileIdentity::of(path)?;
        if let Some((_, folders)) = self.imported.0.get(path).filter(|(then, _)| *then == now) {
            return Ok(folders.clone());
        }
        let file = ByteSource::part(path.to_owned(), self.handles.register(path.to_owned()), 0, u64::MAX);
        let imported = importer.import(&file, &self.options)?;
        if imported.is_empty() {
            let what = format!("this is a {}, and there is no trace in it", importer.format());
            return Err(SourceError::new(path, SourceErrorKind::Import(what)));
        }
        let folders: Result<Vec<_>, _> = imported.into_iter().map(|trace| TraceFolder::imported(path, trace)).collect();
        let folders = folders?;
        self.imported.0.insert(path.to_owned(), (now, folders.clone()));
        Ok(folders)
    }

    /// The first bytes of a file, by which its format is recognized.
    fn head(&self, path: &Path) -> Result<Vec<u8>, SourceError> {
        let mut head = vec![0; HEAD_BYTES];
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
        let in_trace = path.join("metadata").is_file();
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => return self.skipped.push(SourceError::new(path, error)),
        };
        let mut entries: Vec<_> =
            entries.flatten().filter_map(|entry| Some((entry.path(), entry.file_type().ok()?))).collect();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        // In a trace, a file with any bytes is a stream, unless its extension is that of another format.
        let files = entries.iter().filter(|(_, kind)| kind.is_file()).map(|(file, _)| &**file);
        let importers: Vec<_> = files.filter_map(|file| Some((file, self.importer(file, in_trace)?))).collect();
        if in_trace {
            let others: Vec<&Path> = importers.iter().map(|(file, _)| *file).collect();
            match TraceFolder::without_files(path, &others, &self.handles) {
                Ok(folder) => found.push(folder),
                Err(error) => self.skipped.push(error),
            }
        }
        for (file, importer) in importers {
            match self.import(file, importer) {
                Ok(imported) => found.extend(imported),
                Err(error) => self.skipped.push(error),
            }
        }
        if depth < DEPTH_MAX && (!in_trace || self.nests(path)) {
            entries
                .iter()
                .filter(|(_, kind)| kind.is_dir())
                .for_each(|(folder, _)| self.walk(folder, depth + 1, found));
        }
    }

    /// Whether other traces may lie below the folder of a trace.
    fn nests(&self, path: &Path) -> bool {
        let metadata = || fs::read(path.join("metadata")).unwrap_or_default();
        self.importers.nests.is_some_and(|nests| nests(&metadata()))
    }

    /// The importer of a file in a folder. A file that cannot be read is none of theirs.
    fn importer(&self, file: &Path, in_trace: bool) -> Option<&'static dyn Importer> {
        let extension = file.extension().and_then(|extension| extension.to_str());
        let is_named = |importer: &dyn Importer| extension.is_some_and(|known| importer.extensions().contains(&known));
        let mut importers = self.importers.files.iter().filter(|importer| !in_trace || is_named(**importer)).peekable();
        importers.peek()?;
        let head = self.head(file).ok()?;
        importers.find(|importer| importer.recognizes(&head)).copied()
    }
}

fn is_named_archive(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("tar" | "gz" | "tgz" | "zst" | "tzst" | "zip"))
}
