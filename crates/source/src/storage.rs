//! Where the files of one trace are kept: the boundary behind which folders, archives and imported files are alike.
//!
//! ```text
//! Storage   what a trace consists of    bytes of its small files, streams of packets, opened when they are first read
//!                                       (several storages may hold parts of one trace: Joined)
//!           whether it is still itself  device, inode, size and time of each stream
//!           whether it grows            what its recorder says
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use crate::archive::{Archive, join};
use crate::error::SourceError;
use crate::handles::Handles;
use crate::live::LiveState;
use crate::made::{MadePackets, MadeStream};
use crate::stream::{ByteSource, StreamEntry};

/// The properties that tell whether a file is still the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device, 0 where there are none.
    pub device: u64,
    /// Inode, 0 where there are none.
    pub inode: u64,
    /// In bytes.
    pub size: u64,
    /// Nanoseconds since the Unix epoch.
    pub modified_ns: i128,
}

/// Where the files of one trace are kept.
pub(crate) trait Storage: fmt::Debug + Send + Sync {
    /// The bytes of the metadata; `None`: there is none.
    fn metadata(&self) -> Result<Option<Vec<u8>>, SourceError>;

    /// The size of that, in bytes.
    fn metadata_size(&self) -> u64 {
        self.metadata().ok().flatten().map_or(0, |bytes| bytes.len() as u64)
    }

    /// The bytes of LTTng's index of a stream; `None`: there is none.
    fn index(&self, entry: &StreamEntry) -> Result<Option<Vec<u8>>, SourceError>;

    /// A stream of packets.
    fn stream(&self, entry: &StreamEntry) -> ByteSource;

    /// The identity that tells whether a stream is still the same.
    fn identity(&self, entry: &StreamEntry) -> Result<FileIdentity, SourceError>;

    /// The state that a recorder reports of the trace that it writes; `None`: it is not written by
    /// one of ours.
    fn live(&self) -> Option<LiveState> {
        None
    }
}

/// In a folder on disk.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) path: PathBuf,
    pub(crate) handles: Arc<Handles>,
}

impl Disk {
    /// The bytes of a file below the folder, if there is one.
    fn bytes(&self, name: impl AsRef<Path>) -> Result<Option<Vec<u8>>, SourceError> {
        let path = self.path.join(name);
        // Inspected first, because opening a pipe would wait for a writer.
        match fs::metadata(&path).and_then(|facts| facts.is_file().then(|| fs::read(&path)).transpose()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            result => result.map_err(|error| SourceError::new(&path, error)),
        }
    }
}

impl Storage for Disk {
    fn metadata(&self) -> Result<Option<Vec<u8>>, SourceError> {
        self.bytes("metadata")
    }

    fn metadata_size(&self) -> u64 {
        fs::metadata(self.path.join("metadata")).map_or(0, |facts| facts.len())
    }

    fn index(&self, entry: &StreamEntry) -> Result<Option<Vec<u8>>, SourceError> {
        let mut name = entry.file_name().to_owned();
        name.push(".idx");
        self.bytes(Path::new("index").join(name))
    }

    fn stream(&self, entry: &StreamEntry) -> ByteSource {
        let path = self.path.join(entry.file_name());
        ByteSource::part(path.clone(), self.handles.register(path), 0, u64::MAX)
    }

    fn identity(&self, entry: &StreamEntry) -> Result<FileIdentity, SourceError> {
        FileIdentity::of(&self.path.join(entry.file_name()))
    }

    fn live(&self) -> Option<LiveState> {
        LiveState::of(&self.path)
    }
}

/// In a folder of an archive.
#[derive(Debug)]
pub(crate) struct InArchive {
    pub(crate) archive: Arc<Archive>,
    pub(crate) folder: String,
}

impl InArchive {
    /// The bytes of a file below the folder, by its name with `/` between folders, if there is one.
    fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let name = join(&self.folder, name);
        let Some(entry) = self.archive.entry(&name) else { return Ok(None) };
        self.archive.stream(&name, entry).read_all(entry.size).map(Some)
    }
}

impl Storage for InArchive {
    fn metadata(&self) -> Result<Option<Vec<u8>>, SourceError> {
        self.bytes("metadata")
    }

    fn index(&self, entry: &StreamEntry) -> Result<Option<Vec<u8>>, SourceError> {
        self.bytes(&format!("index/{}.idx", entry.name))
    }

    fn stream(&self, entry: &StreamEntry) -> ByteSource {
        let name = join(&self.folder, &entry.name);
        let entry = self.archive.entry(&name).expect("the streams are entries of the archive");
        self.archive.stream(&name, entry)
    }

    /// That of the archive, with the size of the stream.
    fn identity(&self, entry: &StreamEntry) -> Result<FileIdentity, SourceError> {
        Ok(FileIdentity { size: entry.size, ..FileIdentity::of(self.archive.path())? })
    }
}

/// Made of a file in another format.
#[derive(Debug)]
pub(crate) struct FromFile {
    /// The file that it is made of.
    pub(crate) path: PathBuf,
    pub(crate) metadata: Vec<u8>,
    /// By the names of streams.
    pub(crate) streams: BTreeMap<String, StreamFromFile>,
    pub(crate) packets: Arc<MadePackets>,
}

/// A stream of a trace that was made of a file.
#[derive(Debug)]
pub(crate) struct StreamFromFile {
    /// Its number among the packets.
    pub(crate) number: usize,
    /// LTTng's index of it.
    pub(crate) index: Vec<u8>,
    /// The file that has its packets, if it is another one.
    pub(crate) file: Option<PathBuf>,
}

impl FromFile {
    fn of(&self, entry: &StreamEntry) -> &StreamFromFile {
        self.streams.get(&entry.name).expect("the entries are those of these streams")
    }
}

impl Storage for FromFile {
    fn metadata(&self) -> Result<Option<Vec<u8>>, SourceError> {
        Ok(Some(self.metadata.clone()))
    }

    fn index(&self, entry: &StreamEntry) -> Result<Option<Vec<u8>>, SourceError> {
        let index = &self.of(entry).index;
        Ok((!index.is_empty()).then(|| index.clone()))
    }

    fn stream(&self, entry: &StreamEntry) -> ByteSource {
        let stream = self.of(entry).number;
        let made = MadeStream { packets: Arc::clone(&self.packets), stream };
        ByteSource::part(self.path.join(&entry.name), Arc::new(made), 0, self.packets.size(stream))
    }

    /// That of the file that it is made of, with the size of the stream.
    fn identity(&self, entry: &StreamEntry) -> Result<FileIdentity, SourceError> {
        let file = self.of(entry).file.as_ref().unwrap_or(&self.path);
        Ok(FileIdentity { size: entry.size, ..FileIdentity::of(file)? })
    }
}

/// In several folders, which are parts of one trace.
#[derive(Debug)]
pub(crate) struct Joined {
    /// That which describes them all.
    pub(crate) described_by: Arc<dyn Storage>,
    /// By the names of streams here: the storage, and the stream's entry there.
    pub(crate) streams: BTreeMap<String, (Arc<dyn Storage>, StreamEntry)>,
    /// All of them.
    pub(crate) parts: Vec<Arc<dyn Storage>>,
}

impl Joined {
    fn part(&self, entry: &StreamEntry) -> (&dyn Storage, &StreamEntry) {
        let (storage, entry) = self.streams.get(&entry.name).expect("the entries are those of these streams");
        (&**storage, entry)
    }
}

impl Storage for Joined {
    fn metadata(&self) -> Result<Option<Vec<u8>>, SourceError> {
        self.described_by.metadata()
    }

    fn metadata_size(&self) -> u64 {
        self.described_by.metadata_size()
    }

    fn index(&self, entry: &StreamEntry) -> Result<Option<Vec<u8>>, SourceError> {
        let (storage, entry) = self.part(entry);
        storage.index(entry)
    }

    fn stream(&self, entry: &StreamEntry) -> ByteSource {
        let (storage, entry) = self.part(entry);
        storage.stream(entry)
    }

    fn identity(&self, entry: &StreamEntry) -> Result<FileIdentity, SourceError> {
        let (storage, entry) = self.part(entry);
        storage.identity(entry)
    }

    fn live(&self) -> Option<LiveState> {
        self.parts.iter().find_map(|part| part.live())
    }
}

impl FileIdentity {
    /// That of a file.
    pub(crate) fn of(path: &Path) -> Result<Self, SourceError> {
        let facts = fs::metadata(path).map_err(|error| SourceError::new(path, error))?;
        let modified = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let (device, inode) = device_and_inode(&facts);
        let modified_ns = modified.map_or(0, |since| since.as_nanos() as i128);
        Ok(Self { device, inode, size: facts.len(), modified_ns })
    }
}

#[cfg(unix)]
fn device_and_inode(facts: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (facts.dev(), facts.ino())
}

#[cfg(not(unix))]
fn device_and_inode(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}
