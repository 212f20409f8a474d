//! Trees of folders that one importer reads together: their parts, on disk and in an archive.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::archive::{Archive, join};
use crate::error::SourceError;
use crate::folder::{TraceFolder, is_stream};
use crate::handles::Handles;
use crate::import::{FileTree, HEAD_BYTES, ImportOptions, Importer, Importers, TreeFile, TreeFolder, TreeImporter};
use crate::storage::FileIdentity;
use crate::stream::ByteSource;

/// Folders inside folders.
pub(crate) const DEPTH_MAX: usize = 32;

/// Where a tree is, and the part of it that the user named.
#[derive(Clone, Copy)]
pub(crate) struct TreePlace<'p> {
    pub(crate) importer: &'static dyn TreeImporter,
    pub(crate) root: &'p Path,
    pub(crate) named: &'p Path,
}

/// The importer of trees that begin at a folder of this name.
pub(crate) fn root_importer(importers: &Importers, path: &Path) -> Option<&'static dyn TreeImporter> {
    let name = path.file_name()?.to_str()?;
    importers.trees.iter().copied().find(|importer| importer.is_root(name))
}

/// The importer of trees that begin at a folder of this name where no folder around it is their root.
pub(crate) fn top_importer(importers: &Importers, path: &Path) -> Option<&'static dyn TreeImporter> {
    let name = path.file_name()?.to_str()?;
    importers.trees.iter().copied().find(|importer| importer.top_folder() == Some(name))
}

/// Whether a file begins as packets of CTF do, in either byte order.
fn has_magic(file: &ByteSource) -> bool {
    let mut head = [0; 4];
    const MAGIC: u32 = 0xC1FC_1FC1;
    let is_read = file.read_at(0, &mut head).is_ok_and(|size| size == head.len());
    is_read && [MAGIC.to_le_bytes(), MAGIC.to_be_bytes()].contains(&head)
}

/// The importer of trees of which a folder is a part.
pub(crate) fn part_importer(importers: &Importers, folder: &Path) -> Option<&'static dyn TreeImporter> {
    let path = folder.join("metadata");
    if importers.trees.is_empty() || !path.is_file() {
        return None;
    }
    let metadata = fs::read(path).ok()?;
    importers.trees.iter().copied().find(|importer| importer.recognizes(&metadata))
}

/// The importer of a file in a folder, which may be a trace. A file that cannot be read is none of theirs.
pub(crate) fn file_importer(
    importers: &Importers,
    file: &ByteSource,
    name: &str,
    in_trace: bool,
) -> Option<&'static dyn Importer> {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    let is_named = |importer: &dyn Importer| extension.is_some_and(|known| importer.extensions().contains(&known));
    // In a trace, a file with any bytes is a stream, unless its extension is that of another format.
    let mut candidates = importers.files.iter().filter(|importer| !in_trace || is_named(**importer)).peekable();
    candidates.peek()?;
    let mut head = vec![0; HEAD_BYTES];
    let size = file.read_at(0, &mut head).ok()?;
    candidates.find(|importer| importer.recognizes(&head[..size])).copied()
}

/// A file on disk.
pub(crate) fn file_source(path: &Path, handles: &Arc<Handles>) -> ByteSource {
    ByteSource::part(path.to_owned(), handles.register(path.to_owned()), 0, u64::MAX)
}

impl TreePlace<'_> {
    /// The parts of a tree on disk. Those that cannot be read are left out: the walk through the same folders tells of them.
    pub(crate) fn on_disk(&self, importers: &Importers, handles: &Arc<Handles>) -> FileTree {
        let mut tree = FileTree { root: root_name(self.importer, self.root), ..FileTree::default() };
        self.collect(self.root, 0, (importers, handles), &mut tree);
        tree
    }

    fn collect(&self, folder: &Path, depth: usize, with: (&Importers, &Arc<Handles>), tree: &mut FileTree) {
        let (importers, handles) = with;
        let in_trace = folder.join("metadata").is_file();
        let metadata = in_trace.then(|| fs::read(folder.join("metadata")).ok()).flatten();
        let metadata = metadata.filter(|metadata| self.importer.recognizes(metadata));
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        let mut streams = Vec::new();
        for path in &entries {
            // A pipe or a device would block; a link may lead to a file.
            let Some(facts) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else { continue };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let bytes = file_source(path, handles);
            let importer = file_importer(importers, &bytes, &name, in_trace);
            let file = || self.file(path, bytes.clone(), facts.len());
            match importer {
                Some(importer) if self.importer.takes(importer) => tree.files.push(file()),
                None if metadata.is_some() && is_stream(&name) => streams.push(file()),
                None if !in_trace && path.starts_with(self.named) && has_magic(&bytes) => {
                    tree.orphans.push(self.name(path));
                }
                _ => {}
            }
        }
        if let Some(metadata) = metadata {
            let is_named = folder.starts_with(self.named) || streams.iter().any(|file| file.is_named);
            tree.folders.push(TreeFolder { name: self.name(folder), metadata, streams, is_named });
        }
        // Folders that are roots themselves are trees of their own.
        let is_other = |path: &Path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| self.importer.is_root(name))
        };
        let is_folder =
            |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir()) && !is_other(path);
        if depth < DEPTH_MAX {
            entries.iter().filter(is_folder).for_each(|path| self.collect(path, depth + 1, with, tree));
        }
    }

    fn file(&self, path: &Path, bytes: ByteSource, size: u64) -> TreeFile {
        let is_named = path.starts_with(self.named);
        TreeFile { name: self.name(path), bytes, size, on_disk: path.to_owned(), is_named }
    }

    /// A path below the root, with `/`.
    fn name(&self, path: &Path) -> String {
        let below = path.strip_prefix(self.root).unwrap_or(path);
        below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
    }
}

fn root_name(importer: &dyn TreeImporter, root: &Path) -> Option<String> {
    root.file_name().map(|name| name.to_string_lossy().into_owned()).filter(|name| importer.is_root(name))
}

impl FileTree {
    /// The identities of all its files.
    pub(crate) fn identities(&self) -> Result<Vec<FileIdentity>, SourceError> {
        let streams = self.folders.iter().flat_map(|folder| &folder.streams);
        streams.chain(&self.files).map(|file| FileIdentity::of(&file.on_disk)).collect()
    }
}

/// The traces that an importer makes of the parts.
pub(crate) fn import(
    importer: &dyn TreeImporter,
    tree: &FileTree,
    options: &ImportOptions,
    path: &Path,
) -> Result<Vec<TraceFolder>, SourceError> {
    importer.import(tree, options)?.into_iter().map(|trace| TraceFolder::imported(path, trace)).collect()
}

/// A tree in an archive.
pub(crate) struct PackedTree {
    /// The path of its root.
    pub(crate) root: String,
    pub(crate) importer: &'static dyn TreeImporter,
    pub(crate) tree: FileTree,
}

/// The trees in an archive, and the folders of all other traces.
pub(crate) fn in_archive(archive: &Archive, importers: &Importers) -> (Vec<PackedTree>, Vec<String>) {
    let mut trees: BTreeMap<String, (&'static dyn TreeImporter, FileTree)> = BTreeMap::new();
    let mut others = Vec::new();
    for folder in archive.metadata_folders() {
        let metadata = read(archive, &join(&folder, "metadata"));
        let importer = importers.trees.iter().copied().find(|importer| importer.recognizes(&metadata));
        let Some(importer) = importer else {
            others.push(folder);
            continue;
        };
        let root = root_in_archive(&folder, importer, trees.keys().next_back());
        let (_, tree) = trees.entry(root.clone()).or_insert_with(|| {
            let name = root_name(importer, &archive.path().join(&root));
            (importer, FileTree { root: name, ..FileTree::default() })
        });
        let name = below(&folder, &root).to_owned();
        tree.folders.push(TreeFolder { name, metadata, streams: Vec::new(), is_named: true });
    }
    for (root, (importer, tree)) in &mut trees {
        add_files(archive, importers, (root, *importer), tree);
    }
    let packed = |(root, (importer, tree))| PackedTree { root, importer, tree };
    (trees.into_iter().map(packed).collect(), others)
}

/// The root of a tree that a folder is a part of: one that says so by its name, or the outermost part. `last` is the
/// root before in the order of names.
fn root_in_archive(folder: &str, importer: &dyn TreeImporter, last: Option<&String>) -> String {
    let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
    let mut above = ends.clone().map(|end| &folder[..end]);
    let named = above.find(|path| importer.is_root(path.rsplit('/').next().unwrap_or_default()));
    let is_in = |root: &&String| root.is_empty() || below(folder, root) != folder;
    let mut parts = ends.map(|end| &folder[..end]);
    let top = parts.find(|path| importer.top_folder() == path.rsplit('/').next());
    named.or(top).map(str::to_owned).or_else(|| last.filter(is_in).cloned()).unwrap_or_else(|| folder.to_owned())
}

/// A path below a root; the same path if it is not below, and nothing for the root itself.
fn below<'p>(path: &'p str, root: &str) -> &'p str {
    match path.strip_prefix(root) {
        Some("") => "",
        Some(rest) if !root.is_empty() => rest.strip_prefix('/').unwrap_or(path),
        _ => path,
    }
}

/// Adds the entries below a root that are parts of its tree.
fn add_files(archive: &Archive, importers: &Importers, (root, by): (&str, &dyn TreeImporter), tree: &mut FileTree) {
    let folders: BTreeMap<String, usize> =
        tree.folders.iter().enumerate().map(|(number, folder)| (folder.name.clone(), number)).collect();
    for (path, entry) in archive.files_below(root) {
        let name = below(path, root);
        let (folder, last) = name.rsplit_once('/').unwrap_or(("", name));
        let bytes = archive.stream(path, entry);
        let in_trace = archive.entry(&join(root, &join(folder, "metadata"))).is_some();
        let importer = file_importer(importers, &bytes, last, in_trace);
        let file = TreeFile {
            name: name.to_owned(),
            bytes,
            size: entry.size,
            on_disk: archive.path().to_owned(),
            is_named: true,
        };
        match (importer, folders.get(folder)) {
            (Some(importer), _) if by.takes(importer) => tree.files.push(file),
            (None, Some(folder)) if is_stream(last) => tree.folders[*folder].streams.push(file),
            (None, None) if !in_trace && has_magic(&file.bytes) => tree.orphans.push(file.name),
            _ => {}
        }
    }
}

fn read(archive: &Archive, name: &str) -> Vec<u8> {
    let bytes = archive.entry(name).map(|entry| archive.stream(name, entry).read_all(entry.size));
    bytes.and_then(Result::ok).unwrap_or_default()
}
