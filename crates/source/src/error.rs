//! What can go wrong with files.

use std::io;
use std::path::{Path, PathBuf};

/// Something could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct Error {
    /// What it was about.
    pub path: PathBuf,
    /// What happened.
    pub kind: ErrorKind,
}

/// What happened.
#[derive(Debug, thiserror::Error)]
pub enum ErrorKind {
    /// The operating system says no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// No trace is there.
    #[error("there is no trace here: neither this folder nor one below it has a file named `metadata`")]
    NoTrace,
    /// A file that is no stream of a trace.
    #[error("this file is no trace: its folder has no file named `metadata`")]
    NotInTrace,
}

impl Error {
    pub(crate) fn new(path: &Path, kind: impl Into<ErrorKind>) -> Self {
        Self { path: path.to_owned(), kind: kind.into() }
    }
}
