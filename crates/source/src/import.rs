//! Files in formats other than CTF, which become traces in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::error::{SourceError, SourceErrorKind};
use crate::stream::ByteSource;

/// Reads the files of one format.
pub trait Importer: fmt::Debug + Sync {
    /// Whether a file is of this format, by its name and its first 512 bytes; a short file has
    /// fewer. Importers see only files that users name: neither files below a folder that users
    /// name, nor streams beside a file `metadata`.
    fn recognizes(&self, name: &Path, head: &[u8]) -> bool;

    /// The traces in a file that is recognized; at least one.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or breaks the rules of its format
    /// ([`crate::SourceErrorKind::Import`]).
    fn import(&self, file: &ByteSource) -> Result<Vec<Imported>, SourceError>;
}

/// A trace that was made of a file.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Its name below the file's path, without `/`; empty where the file holds one trace.
    pub name: String,
    /// Its metadata, in any dialect of CTF.
    pub metadata: Vec<u8>,
    /// Its streams of packets, each with its name, which is unique and has no `/`.
    pub streams: Vec<(String, Vec<u8>)>,
    /// Parts of the file that could not be read and are not in the trace, each with its place in the
    /// file: `line 7: ...`. The first hundred are reported, and the number of the others.
    pub problems: Vec<String>,
}

/// Problems of a file that are reported one by one.
const PROBLEMS_MAX: usize = 100;

impl Imported {
    /// The problems to report, taken out.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        let mut problems = std::mem::take(&mut self.problems);
        let more = problems.len().saturating_sub(PROBLEMS_MAX);
        if more > 0 {
            problems.truncate(PROBLEMS_MAX);
            problems.push(format!("and {more} more parts that could not be read"));
        }
        problems
    }

    /// Its streams by name, or the error in it.
    pub(crate) fn streams_by_name(self, path: &Path) -> Result<BTreeMap<String, Vec<u8>>, SourceError> {
        let wrong = |what: String| SourceError::new(path, SourceErrorKind::Import(what));
        let mut streams = BTreeMap::new();
        for (name, bytes) in self.streams {
            if name.is_empty() || name.contains('/') || streams.insert(name.clone(), bytes).is_some() {
                return Err(wrong(format!("its importer names a stream {name:?}, which is no name of its own")));
            }
        }
        match self.name.contains('/') {
            true => Err(wrong(format!("its importer names a trace {:?}, which is no name", self.name))),
            false => Ok(streams),
        }
    }
}
