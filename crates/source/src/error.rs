//! Errors with files.

use std::io;
use std::path::{Path, PathBuf};

/// An error of reading.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct SourceError {
    /// The path that it is about.
    pub path: PathBuf,
    /// The kind of error.
    pub kind: SourceErrorKind,
}

/// The kind of error.
#[derive(Debug, thiserror::Error)]
pub enum SourceErrorKind {
    /// The operating system reports an error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// No trace is there.
    #[error("there is no trace here: neither this folder nor one below it has a file named `metadata`; {0}")]
    NoTrace(FolderContents),
    /// A file that is no stream of a trace.
    #[error(
        "this file is no trace: it is no tar, gzip, zstd or zip archive, {}and its folder has no file named `metadata`",
        .formats.iter().map(|format| format!("no {format}, ")).collect::<String>()
    )]
    NotInTrace {
        /// The formats that importers know.
        formats: Vec<&'static str>,
    },
    /// Neither a folder nor a file.
    #[error("expected a folder or a file, found a pipe, socket or device")]
    NoFile,
    /// A tar file is broken.
    #[error("at byte {offset}: expected the header of a tar entry")]
    TarHeader {
        /// Where the header should be.
        offset: u64,
    },
    /// A tar file has no end.
    #[error("the archive ends at byte {bytes} without its end mark: it was cut short")]
    TarEnd {
        /// Its size.
        bytes: u64,
    },
    /// Compressed bytes are broken.
    #[error("the compressed data can be unpacked to byte {bytes} only: it was cut short or is damaged")]
    Packed {
        /// The number of unpacked bytes.
        bytes: u64,
    },
    /// An entry that leaves out zeros.
    #[error("the entry {0} is stored with holes (GNU sparse), which cannot be read in place: unpack the archive")]
    Sparse(String),
    /// An entry that needs a password.
    #[error("the entry {0} is encrypted: unpack the archive")]
    Encrypted(String),
    /// A zip file is broken.
    #[error("{0}")]
    Zip(Box<zip::result::ZipError>),
    /// An archive has too many entries.
    #[error("the archive has more than {0} entries: unpack it")]
    ManyEntries(usize),
    /// A file in another format breaks its rules.
    #[error("{0}")]
    Import(String),
    /// An archive becomes too large.
    #[error("the archive unpacks to more than {limit} bytes, which is suspicious: unpack it yourself if it is meant")]
    Unpacked {
        /// The most that is unpacked.
        limit: u64,
    },
}

/// The contents of a folder without a trace.
#[derive(Debug)]
pub struct FolderContents {
    /// The first names.
    pub names: Vec<String>,
    /// All of them.
    pub count: usize,
    /// The formats of other files that were looked for.
    pub formats: Vec<&'static str>,
}

/// Names that a message shows.
const NAMES_SHOWN: usize = 4;

impl FolderContents {
    pub(crate) fn new(names: impl Iterator<Item = String>) -> Self {
        let mut seen = Self { names: Vec::new(), count: 0, formats: Vec::new() };
        for name in names {
            if seen.count < NAMES_SHOWN {
                seen.names.push(name);
            }
            seen.count += 1;
        }
        seen
    }
}

impl std::fmt::Display for FolderContents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.names.is_empty() {
            return write!(formatter, "it is empty");
        }
        if !self.formats.is_empty() {
            write!(formatter, "no file is a {}; ", self.formats.join(" or a "))?;
        }
        write!(formatter, "it holds {}", self.names.join(", "))?;
        match self.count - self.names.len() {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

impl SourceError {
    pub(crate) fn new(path: &Path, kind: impl Into<SourceErrorKind>) -> Self {
        Self { path: path.to_owned(), kind: kind.into() }
    }
}
