//! One trace's files.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use crate::archive::{Archive, join};
use crate::error::Error;
use crate::handles::{File, Handles};

/// The files of one trace.
#[derive(Clone, Debug)]
pub struct TraceFolder {
    path: PathBuf,
    streams: Vec<StreamEntry>,
    place: Place,
}

/// Where the files are.
#[derive(Clone, Debug)]
enum Place {
    Disk(Arc<Handles>),
    /// In this folder of an archive.
    Archive(Arc<Archive>, String),
}

/// A file that holds packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its name in the folder, with U+FFFD for what is no text.
    pub name: String,
    /// Its name as it is.
    file_name: OsString,
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
    pub(crate) fn open(path: &Path, handles: &Arc<Handles>) -> Result<Self, Error> {
        let mut streams = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| Error::new(path, error))? {
            let entry = entry.map_err(|error| Error::new(path, error))?;
            let file_name = entry.file_name();
            let name = file_name.to_string_lossy().into_owned();
            // A pipe or a device would block; a link may lead to a file.
            let facts = fs::metadata(entry.path());
            let Some(facts) = facts.ok().filter(fs::Metadata::is_file) else {
                continue;
            };
            if is_stream(&name) {
                streams.push(StreamEntry { name, file_name, size: facts.len() });
            }
        }
        streams.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { path: path.to_owned(), streams, place: Place::Disk(Arc::clone(handles)) })
    }

    /// The trace in the folder `path`, but only one file of it.
    pub(crate) fn of_one_file(path: &Path, file: &Path, handles: &Arc<Handles>) -> Result<Self, Error> {
        let mut folder = Self::open(path, handles)?;
        folder.streams.retain(|stream| Some(stream.file_name.as_os_str()) == file.file_name());
        Ok(folder)
    }

    /// The trace in a folder of an archive.
    pub(crate) fn in_archive(archive: &Arc<Archive>, folder: &str) -> Self {
        let files = archive.files_in(folder).filter(|(name, _)| is_stream(name));
        let streams = files
            .map(|(name, entry)| StreamEntry { name: name.to_owned(), file_name: name.into(), size: entry.size })
            .collect();
        let path = if folder.is_empty() { archive.path().to_owned() } else { archive.path().join(folder) };
        Self { path, streams, place: Place::Archive(Arc::clone(archive), folder.to_owned()) }
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
        let missing = || Error::new(&path, io::Error::from(io::ErrorKind::NotFound));
        self.bytes("metadata").and_then(|bytes| bytes.ok_or_else(missing))
    }

    /// The bytes of LTTng's index of a file, if there is one.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read.
    pub fn index_file(&self, stream: usize) -> Result<Option<Vec<u8>>, Error> {
        self.bytes(&format!("index/{}.idx", self.streams[stream].name))
    }

    /// The bytes of a file of the trace, if there is one.
    fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        match &self.place {
            Place::Disk(_) => {
                let path = self.path.join(name);
                // Looked at first, because opening a pipe would wait for somebody to write.
                match fs::metadata(&path).and_then(|facts| facts.is_file().then(|| fs::read(&path)).transpose()) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    result => result.map_err(|error| Error::new(&path, error)),
                }
            }
            Place::Archive(archive, folder) => {
                let name = join(folder, name);
                let Some(entry) = archive.entry(&name) else {
                    return Ok(None);
                };
                archive.stream(&name, entry).read_all(entry.size).map(Some)
            }
        }
    }

    /// A file for reading. It is opened when it is first read.
    #[must_use]
    pub fn stream(&self, stream: usize) -> Stream {
        let StreamEntry { name, file_name, .. } = &self.streams[stream];
        match &self.place {
            Place::Disk(handles) => {
                let path = self.path.join(file_name);
                Stream { file: handles.register(path.clone()), path, start: 0, size: u64::MAX }
            }
            Place::Archive(archive, folder) => {
                let name = join(folder, name);
                let entry = archive.entry(&name).expect("the streams are entries of the archive");
                archive.stream(&name, entry)
            }
        }
    }

    /// What tells whether the file is still the same; in an archive, whether that is.
    ///
    /// # Errors
    ///
    /// It cannot be looked at.
    pub fn identity(&self, stream: usize) -> Result<FileIdentity, Error> {
        let path = match &self.place {
            Place::Disk(_) => self.path.join(&self.streams[stream].file_name),
            Place::Archive(archive, _) => archive.path().to_owned(),
        };
        let facts = fs::metadata(&path).map_err(|error| Error::new(&path, error))?;
        let size = match &self.place {
            Place::Disk(_) => facts.len(),
            Place::Archive(..) => self.streams[stream].size,
        };
        let modified = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let (device, inode) = device_and_inode(&facts);
        let modified_ns = modified.map_or(0, |since| since.as_nanos() as i128);
        Ok(FileIdentity { device, inode, size, modified_ns })
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

/// Whether a file of that name holds packets.
fn is_stream(name: &str) -> bool {
    name != "metadata" && !name.starts_with('.')
}

/// A file with packets, or the part of an archive that is one. Cheap to clone; may be read from several threads.
#[derive(Clone, Debug)]
pub struct Stream {
    path: PathBuf,
    file: Arc<File>,
    /// First byte in the file.
    start: u64,
    /// Bytes that may be read; a file of its own ends where it ends.
    size: u64,
}

/// Bytes read at once where a size is only claimed.
const STEP: u64 = 1 << 20;

impl Stream {
    /// The part of `file` that is called `path`.
    pub(crate) fn part(path: PathBuf, file: Arc<File>, start: u64, size: u64) -> Self {
        Self { path, file, start, size }
    }

    /// Reads from `offset` on until `buffer` is full or the file ends; returns how many bytes.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let Some(at) = self.start.checked_add(offset).filter(|_| offset < self.size) else {
            return Ok(0);
        };
        let wanted = (self.size - offset).min(buffer.len() as u64) as usize;
        self.file.read_at(at, &mut buffer[..wanted]).map_err(|error| Error::new(&self.path, error))
    }

    /// All bytes; the file may have fewer than the `size` that it is said to have.
    fn read_all(&self, size: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            let done = bytes.len();
            bytes.resize(done + (size - done as u64).min(STEP) as usize, 0);
            let read = self.read_at(done as u64, &mut bytes[done..])?;
            bytes.truncate(done + read);
            if read == 0 {
                break;
            }
        }
        Ok(bytes)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
