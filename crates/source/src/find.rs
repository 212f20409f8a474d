//! Finds the traces in the path that the user named: a trace, a tree of traces, one stream's file,
//! an archive, a file in another format, a tree that is read as one.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::archive::{Archive, Packing, outermost};
use crate::error::{FolderContents, SourceError, SourceErrorKind};
use crate::folder::TraceFolder;
use crate::handles::Handles;
use crate::import::{HEAD_BYTES, ImportOptions, Importer, Importers, TreeImporter};
use crate::live::UNFINISHED_FOLDER;
use crate::storage::FileIdentity;
use crate::tree::{
    self, DEPTH_MAX, PackedTree, TreePlace, file_importer, file_source, part_importer, root_importer, top_importer,
};

/// Finds traces. The files of one finder share one limit of open files.
#[derive(Debug, Default)]
pub struct TraceFinder {
    handles: Arc<Handles>,
    importers: Importers,
    options: ImportOptions,
    imported: ImportedFiles,
    skipped: Vec<SourceError>,
}

/// Files and trees that were imported: those that are as they were are not read again.
#[derive(Clone, Debug, Default)]
pub struct ImportedFiles(HashMap<PathBuf, (Vec<FileIdentity>, Vec<TraceFolder>)>);

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
    /// Links to folders are not followed below `path`, so that none is seen twice or forever. A snapshot that a recorder
    /// still writes is not found below `path`.
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
        let tree = self.tree_around(path, path, &mut found);
        self.walk(path, (0, tree), &mut found);
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
        let formats = self.importers.files.iter().map(|importer| importer.format()).collect();
        let contents = FolderContents { formats, ..FolderContents::new(names.into_iter()) };
        Err(SourceError::new(path, SourceErrorKind::NoTrace(contents)))
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
        let is_metadata = path.file_name().is_some_and(|name| name == "metadata");
        let mut found = Vec::new();
        if self.tree_of_file(folder, if is_metadata { folder } else { path }, &mut found)? {
            return Ok(found);
        }
        if is_metadata {
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
        let now = vec![FileIdentity::of(path)?];
        if let Some((_, folders)) = self.imported.0.get(path).filter(|(then, _)| *then == now) {
            return Ok(folders.clone());
        }
        let imported = importer.import(&file_source(path, &self.handles), &self.options)?;
        if imported.is_empty() {
            let what = format!("this is a {}, and there is no trace in it", importer.format());
            return Err(SourceError::new(path, SourceErrorKind::Import(what)));
        }
        let folders: Result<Vec<_>, _> = imported.into_iter().map(|trace| TraceFolder::imported(path, trace)).collect();
        let folders = folders?;
        self.imported.0.insert(path.to_owned(), (now, folders.clone()));
        Ok(folders)
    }

    /// Adds the traces of the tree around a folder, `part` of which the user names; returns its importer if there is
    /// one.
    fn tree_around(
        &mut self,
        folder: &Path,
        part: &Path,
        found: &mut Vec<TraceFolder>,
    ) -> Option<&'static dyn TreeImporter> {
        if self.importers.trees.is_empty() {
            return None;
        }
        let (folder, named) = (folder.canonicalize().ok()?, part.canonicalize().ok()?);
        let is_part = || part_importer(&self.importers, &folder).is_some();
        let dated = folder.ancestors().find_map(|above| Some((above, root_importer(&self.importers, above)?)));
        // Of several folders called so, the tree begins at the outermost.
        let top = || {
            let tops = folder.ancestors().filter_map(|above| Some((above, top_importer(&self.importers, above)?)));
            tops.last().filter(|_| is_part())
        };
        let (root, importer) = dated.or_else(top)?;
        let place = TreePlace { importer, root, named: &named };
        self.import_tree(place, part, found).then_some(place.importer)
    }

    /// The same for a file in a folder: where that is a part of a tree, the rest of the tree tells when it was.
    fn tree_of_file(&mut self, folder: &Path, part: &Path, found: &mut Vec<TraceFolder>) -> Result<bool, SourceError> {
        let Some(importer) = part_importer(&self.importers, folder) else { return Ok(false) };
        if part != folder && self.importer(part, true).is_some() {
            return Ok(false);
        }
        let skipped = self.skipped.len();
        if self.tree_around(folder, part, found).is_none() {
            self.import_tree(TreePlace { importer, root: folder, named: part }, folder, found);
        }
        match self.skipped.len() > skipped {
            true => Err(self.skipped.swap_remove(skipped)),
            false => Ok(true),
        }
    }

    /// Adds the traces of a tree; whether there is one.
    fn import_tree(&mut self, place: TreePlace<'_>, path: &Path, found: &mut Vec<TraceFolder>) -> bool {
        let tree = place.on_disk(&self.importers, &self.handles);
        if tree.folders.is_empty() {
            return false;
        }
        let now = tree.identities();
        let known = self.imported.0.get(path).filter(|(then, _)| now.as_ref().is_ok_and(|now| then == now));
        if let Some((_, folders)) = known {
            found.extend(folders.iter().cloned());
            return true;
        }
        match now.and_then(|now| Ok((now, tree::import(place.importer, &tree, &self.options, path)?))) {
            Ok((now, folders)) => {
                found.extend(folders.iter().cloned());
                self.imported.0.insert(path.to_owned(), (now, folders));
            }
            Err(error) => self.skipped.push(error),
        }
        true
    }

    /// The first bytes of a file, by which its format is recognized.
    fn head(&self, path: &Path) -> Result<Vec<u8>, SourceError> {
        let mut head = vec![0; HEAD_BYTES];
        let size = file_source(path, &self.handles).read_at(0, &mut head)?;
        head.truncate(size);
        Ok(head)
    }

    fn in_archive(&mut self, mut archive: Archive) -> Result<Vec<TraceFolder>, SourceError> {
        let broken = archive.take_broken();
        let (trees, folders) = tree::in_archive(&archive, &self.importers);
        if folders.is_empty() && trees.is_empty() {
            let seen = || SourceErrorKind::NoTrace(FolderContents::new(archive.names().map(str::to_owned)));
            return Err(broken.unwrap_or_else(|| SourceError::new(archive.path(), seen())));
        }
        self.skipped.extend(broken);
        let (archive, mut found) = (Arc::new(archive), Vec::new());
        for PackedTree { root, importer, tree } in trees {
            match tree::import(importer, &tree, &self.options, &archive.path().join(root)) {
                Ok(traces) => found.extend(traces),
                Err(error) => self.skipped.push(error),
            }
        }
        found.extend(outermost(&folders).map(|folder| TraceFolder::in_archive(&archive, folder)));
        found.sort_by(|one, other| one.path().cmp(other.path()));
        Ok(found)
    }

    /// Adds the traces at or below a folder, `depth` folders below the named one; the parts of a tree that encloses it are
    /// there already.
    fn walk(
        &mut self,
        path: &Path,
        (depth, tree): (usize, Option<&'static dyn TreeImporter>),
        found: &mut Vec<TraceFolder>,
    ) {
        let in_trace = path.join("metadata").is_file();
        let part = part_importer(&self.importers, path);
        // A root within a tree is a tree of its own.
        let tree = tree.filter(|_| depth == 0 || root_importer(&self.importers, path).is_none());
        let tree = tree.or_else(|| {
            let begins = root_importer(&self.importers, path).or_else(|| top_importer(&self.importers, path));
            let importer = begins.or(part)?;
            self.import_tree(TreePlace { importer, root: path, named: path }, path, found).then_some(importer)
        });
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => return self.skipped.push(SourceError::new(path, error)),
        };
        let mut entries: Vec<_> =
            entries.flatten().filter_map(|entry| Some((entry.path(), entry.file_type().ok()?))).collect();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        let files = entries.iter().filter(|(_, kind)| kind.is_file()).map(|(file, _)| &**file);
        let importers: Vec<_> = files.filter_map(|file| Some((file, self.importer(file, in_trace)?))).collect();
        let is_part = tree.is_some() && part.is_some();
        if in_trace && !is_part {
            let others: Vec<&Path> = importers.iter().map(|(file, _)| *file).collect();
            match TraceFolder::without_files(path, &others, &self.handles) {
                Ok(folder) => found.push(folder),
                Err(error) => self.skipped.push(error),
            }
        }
        for (file, importer) in importers.into_iter().filter(|(_, by)| !tree.is_some_and(|tree| tree.takes(*by))) {
            match self.import(file, importer) {
                Ok(imported) => found.extend(imported),
                Err(error) => self.skipped.push(error),
            }
        }
        if depth < DEPTH_MAX && (!in_trace || is_part) {
            // It may have another name the next moment.
            let is_finished = |folder: &Path| folder.file_name().is_none_or(|name| name != UNFINISHED_FOLDER);
            let folders = entries.iter().filter(|(folder, kind)| kind.is_dir() && is_finished(folder));
            folders.for_each(|(folder, _)| self.walk(folder, (depth + 1, tree), found));
        }
    }

    /// The importer of a file in a folder.
    fn importer(&self, file: &Path, in_trace: bool) -> Option<&'static dyn Importer> {
        let name = file.file_name()?.to_string_lossy();
        file_importer(&self.importers, &file_source(file, &self.handles), &name, in_trace)
    }
}

fn is_named_archive(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("tar" | "gz" | "tgz" | "zst" | "tzst" | "zip"))
}
