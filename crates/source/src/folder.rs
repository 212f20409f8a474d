//! One trace's files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use crate::error::Error;
use crate::handles::Handles;

/// The files of one trace.
#[derive(Clone, Debug)]
pub struct TraceFolder {
    path: PathBuf,
    streams: Vec<StreamEntry>,
    handles: Arc<Handles>,
}

/// A file that holds packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its name in the folder.
    pub name: String,
    /// Its size when the folder was opened.
    pub size: u64,
}

/// What tells whether a file is still the same.
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

impl TraceFolder {
    /// The trace in the folder `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut streams = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| Error::new(path, error))? {
            let entry = entry.map_err(|error| Error::new(path, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // A pipe or a device would block; a link may lead to a file.
            let facts = fs::metadata(entry.path());
            let Some(facts) = facts.ok().filter(fs::Metadata::is_file) else {
                continue;
            };
            if name != "metadata" && !name.starts_with('.') {
                streams.push(StreamEntry { name, size: facts.len() });
            }
        }
        streams.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { path: path.to_owned(), streams, handles: Arc::default() })
    }

    /// The trace in the folder `path`, but only one file of it.
    pub(crate) fn of_one_file(path: &Path, file: &Path) -> Result<Self, Error> {
        let mut folder = Self::open(path)?;
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        folder.streams.retain(|stream| Some(&stream.name) == name.as_ref());
        Ok(folder)
    }

    /// Where it is, as the user named it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its files with packets, in the order of their names.
    #[must_use]
    pub fn streams(&self) -> &[StreamEntry] {
        &self.streams
    }

    /// The bytes of its metadata.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn metadata(&self) -> Result<Vec<u8>, Error> {
        let path = self.path.join("metadata");
        fs::read(&path).map_err(|error| Error::new(&path, error))
    }

    /// The bytes of LTTng's index of a file, if there is one.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read.
    pub fn index_file(&self, stream: usize) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path.join("index").join(format!("{}.idx", self.streams[stream].name));
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::new(&path, error)),
        }
    }

    /// A file for reading. It is opened when it is first read.
    #[must_use]
    pub fn stream(&self, stream: usize) -> Stream {
        let path = self.path.join(&self.streams[stream].name);
        Stream { file: self.handles.register(path) }
    }

    /// What tells whether the file is still the same.
    ///
    /// # Errors
    ///
    /// It cannot be looked at.
    pub fn identity(&self, stream: usize) -> Result<FileIdentity, Error> {
        let path = self.path.join(&self.streams[stream].name);
        let facts = fs::metadata(&path).map_err(|error| Error::new(&path, error))?;
        let modified = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let (device, inode) = device_and_inode(&facts);
        let modified_ns = modified.map_or(0, |since| since.as_nanos() as i128);
        Ok(FileIdentity { device, inode, size: facts.len(), modified_ns })
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

/// A file with packets. Cheap to clone; may be read from several threads.
#[derive(Clone, Debug)]
pub struct Stream {
    file: Arc<crate::handles::File>,
}

impl Stream {
    /// Reads from `offset` on until `buffer` is full or the file ends; returns how many bytes.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.file.read_at(offset, buffer).map_err(|error| Error::new(self.file.path(), error))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}
