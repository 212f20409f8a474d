//! One trace's files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::archive::Archive;
use crate::error::SourceError;
use crate::handles::Handles;
use crate::import::{ImportNote, Imported, ImportedStream};
use crate::live::LiveState;
use crate::made::MadePackets;
use crate::storage::{Disk, FileIdentity, FromFile, InArchive, Joined, Storage, StreamFromFile};
use crate::stream::{ByteSource, StreamEntry};

/// The files of one trace.
#[derive(Clone, Debug)]
pub struct TraceFolder {
    path: PathBuf,
    /// Other folders with parts of the trace.
    others: Vec<PathBuf>,
    /// Where it is below what the user named.
    below: PathBuf,
    streams: Vec<StreamEntry>,
    problems: Arc<[String]>,
    notes: Arc<[ImportNote]>,
    storage: Arc<dyn Storage>,
}

impl TraceFolder {
    /// The trace in the folder `path`.
    pub(crate) fn open(path: &Path, handles: &Arc<Handles>) -> Result<Self, SourceError> {
        let mut streams = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| SourceError::new(path, error))? {
            let entry = entry.map_err(|error| SourceError::new(path, error))?;
            let file_name = entry.file_name();
            let name = file_name.to_string_lossy().into_owned();
            // A pipe or a device would block; a link may lead to a file.
            let facts = fs::metadata(entry.path());
            let Some(facts) = facts.ok().filter(fs::Metadata::is_file) else {
                continue;
            };
            if is_stream(&name) {
                streams.push(StreamEntry::new(name, file_name, facts.len()));
            }
        }
        streams.sort_by(|one, other| one.name.cmp(&other.name));
        let storage = Disk { path: path.to_owned(), handles: Arc::clone(handles) };
        Ok(Self {
            path: path.to_owned(),
            others: Vec::new(),
            below: PathBuf::new(),
            streams,
            problems: Arc::default(),
            notes: Arc::default(),
            storage: Arc::new(storage),
        })
    }

    /// The trace in the folder `path`, of which some files are no streams.
    pub(crate) fn without_files(path: &Path, files: &[&Path], handles: &Arc<Handles>) -> Result<Self, SourceError> {
        let mut folder = Self::open(path, handles)?;
        folder.streams.retain(|stream| !files.iter().any(|file| file.file_name() == Some(stream.file_name())));
        Ok(folder)
    }

    /// The trace in the folder `path`, but only one file of it.
    pub(crate) fn of_one_file(path: &Path, file: &Path, handles: &Arc<Handles>) -> Result<Self, SourceError> {
        let mut folder = Self::open(path, handles)?;
        folder.streams.retain(|stream| Some(stream.file_name()) == file.file_name());
        Ok(folder)
    }

    /// The trace in a folder of an archive.
    pub(crate) fn in_archive(archive: &Arc<Archive>, folder: &str) -> Self {
        let files = archive.files_in(folder).filter(|(name, _)| is_stream(name));
        let streams = files.map(|(name, entry)| StreamEntry::new(name.to_owned(), name.into(), entry.size)).collect();
        let path = if folder.is_empty() { archive.path().to_owned() } else { archive.path().join(folder) };
        let storage = InArchive { archive: Arc::clone(archive), folder: folder.to_owned() };
        Self {
            path,
            others: Vec::new(),
            below: PathBuf::new(),
            streams,
            problems: Arc::default(),
            notes: Arc::default(),
            storage: Arc::new(storage),
        }
    }

    /// The trace that an importer makes of the file `path`.
    pub(crate) fn imported(path: &Path, trace: Imported) -> Result<Self, SourceError> {
        trace.check_names(path)?;
        let packets = Arc::new(MadePackets::new(path, &trace));
        let problems = trace.problems.told().into();
        let lacking: BTreeSet<String> =
            trace.streams.iter().filter(|stream| stream.lacks_end).map(|stream| stream.name.clone()).collect();
        let of = |(number, stream): (usize, ImportedStream)| {
            (stream.name, StreamFromFile { number, index: stream.index, file: stream.file })
        };
        let files: BTreeMap<String, StreamFromFile> = trace.streams.into_iter().enumerate().map(of).collect();
        let entry = |(name, stream): (&String, &StreamFromFile)| {
            let mut entry = StreamEntry::new(name.clone(), name.into(), packets.size(stream.number));
            entry.lacks_end = lacking.contains(name);
            entry
        };
        let streams = files.iter().map(entry).collect();
        let storage = FromFile { path: path.to_owned(), metadata: trace.metadata, streams: files, packets };
        let path = if trace.name.is_empty() { path.to_owned() } else { path.join(trace.name) };
        let (others, below, notes) = (Vec::new(), PathBuf::new(), trace.notes.into());
        Ok(Self { path, others, below, streams, problems, notes, storage: Arc::new(storage) })
    }

    /// One trace in several folders: chunks of a session that was rotated, snapshots, files that
    /// users name one by one. The metadata of the first describes all of them. A file that is named
    /// twice is there once.
    ///
    /// Streams are called by their path below the folder that all parts are in.
    #[must_use]
    pub fn joined(first: &Self, others: &[Self]) -> Self {
        let parts = || std::iter::once(first).chain(others);
        let above = parts().fold(first.path.clone(), |above, part| common(&above, &part.path));
        let (mut streams, mut known) = (BTreeMap::new(), BTreeSet::new());
        for part in parts() {
            let below = part.path.strip_prefix(&above).unwrap_or(&part.path);
            for entry in &part.streams {
                let path = part.storage.stream(entry).path().to_owned();
                if known.insert(path.canonicalize().unwrap_or(path)) {
                    let name = below.join(&entry.name).to_string_lossy().into_owned();
                    streams.insert(name, (Arc::clone(&part.storage), entry.clone()));
                }
            }
        }
        let entries = streams.iter().map(|(name, (_, entry))| StreamEntry::new(name.clone(), name.into(), entry.size));
        let entries = entries.collect();
        let mut paths: Vec<PathBuf> = others.iter().map(|other| other.path.clone()).collect();
        paths.retain(|path| *path != first.path);
        paths.dedup();
        let problems = parts().flat_map(|part| part.problems.iter().cloned()).collect();
        let notes = parts().flat_map(|part| part.notes.iter().cloned()).collect();
        let (described_by, parts) = (&first.storage, parts().map(|part| Arc::clone(&part.storage)).collect());
        let storage = Joined { described_by: Arc::clone(described_by), streams, parts };
        Self {
            path: first.path.clone(),
            others: paths,
            below: PathBuf::new(),
            streams: entries,
            problems,
            notes,
            storage: Arc::new(storage),
        }
    }

    /// Where it is, as the user named it: the folder whose metadata describes the trace.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same, found below something that the user named.
    pub(crate) fn found_below(mut self, named: &Path) -> Self {
        self.below = self.path.strip_prefix(named).unwrap_or(Path::new("")).to_owned();
        self
    }

    /// Where it is below the folder or the archive that the user named; empty: it is that itself, or it is in several
    /// folders.
    #[must_use]
    pub fn below(&self) -> &Path {
        &self.below
    }

    /// Where other parts of it are, as the user named them.
    #[must_use]
    pub fn other_paths(&self) -> &[PathBuf] {
        &self.others
    }

    /// Its files with packets, in the order of their names.
    #[must_use]
    pub fn streams(&self) -> &[StreamEntry] {
        &self.streams
    }

    /// Parts of an imported file that are not in the trace, with their places.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// What had to be assumed of an imported file.
    #[must_use]
    pub fn notes(&self) -> &[ImportNote] {
        &self.notes
    }

    /// The bytes of its metadata.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn metadata(&self) -> Result<Vec<u8>, SourceError> {
        let path = self.path.join("metadata");
        let missing = || SourceError::new(&path, io::Error::from(io::ErrorKind::NotFound));
        self.storage.metadata().and_then(|bytes| bytes.ok_or_else(missing))
    }

    /// The size of its metadata in bytes, for telling whether that has grown.
    #[must_use]
    pub fn metadata_size(&self) -> u64 {
        self.storage.metadata_size()
    }

    /// The bytes of LTTng's index of a file, if there is one.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read.
    pub fn index_file(&self, stream: usize) -> Result<Option<Vec<u8>>, SourceError> {
        self.storage.index(&self.streams[stream])
    }

    /// A file for reading. It is opened when it is first read.
    #[must_use]
    pub fn stream(&self, stream: usize) -> ByteSource {
        self.storage.stream(&self.streams[stream])
    }

    /// The identity that tells whether the stream is still the same; in an archive or in memory,
    /// that of the file that it came from.
    ///
    /// # Errors
    ///
    /// It cannot be inspected.
    pub fn identity(&self, stream: usize) -> Result<FileIdentity, SourceError> {
        self.storage.identity(&self.streams[stream])
    }

    /// The state that a recorder of ours reports of the trace that it writes; `None`: no recorder
    /// reports anything.
    #[must_use]
    pub fn live(&self) -> Option<LiveState> {
        self.storage.live()
    }
}

/// The folder that both paths are in, or that one of them is.
fn common(one: &Path, other: &Path) -> PathBuf {
    one.components().zip(other.components()).map_while(|(one, other)| (one == other).then_some(one)).collect()
}

/// Whether a file of that name holds packets.
pub(crate) fn is_stream(name: &str) -> bool {
    name != "metadata" && !name.starts_with('.')
}
