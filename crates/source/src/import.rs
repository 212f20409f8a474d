//! Files in formats other than CTF, which become traces of packets that are made when they are read.
//!
//! ```text
//! capture.pcapng ──Importer──> Imported   metadata, sizes of packets, parts that cannot be read
//!                                 │
//!                  PacketMaker <──┴─ read_at of a stream: the bytes of one packet
//! ```

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{SourceError, SourceErrorKind};
use crate::stream::ByteSource;

/// Reads the files of one format.
pub trait Importer: fmt::Debug + Sync {
    /// The format's name in messages, without an article: `dump of Barrelfish`.
    fn format(&self) -> &'static str;

    /// Whether a file is of this format, by its first bytes: [`HEAD_BYTES`] of them; a short file
    /// has fewer. Importers see files that users name, and files in folders that users name.
    fn recognizes(&self, head: &[u8]) -> bool;

    /// Extensions by which a file of this format is told from the streams of a trace in the same
    /// folder, without the dot.
    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// The traces in a file that is recognized; at least one.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or breaks the rules of its format
    /// ([`crate::SourceErrorKind::Import`]).
    fn import(&self, file: &ByteSource, options: &ImportOptions) -> Result<Vec<Imported>, SourceError>;
}

/// Reads trees of folders that are one recording together, though each folder is a trace.
pub trait TreeImporter: fmt::Debug + Sync {
    /// Whether a folder of this name holds one recording and nothing else. Without such a folder, a
    /// tree begins at the first folder that [is a part](Self::recognizes).
    fn is_root(&self, name: &str) -> bool;

    /// The name of the folder that all parts of a tree are in, if there is one: without a
    /// [root](Self::is_root) around it, that is where a tree begins.
    fn top_folder(&self) -> Option<&'static str> {
        None
    }

    /// Whether a folder with such metadata is a part of a tree. Other parts may lie below it.
    fn recognizes(&self, metadata: &[u8]) -> bool;

    /// Whether files that this importer reads are parts of a tree as well.
    fn takes(&self, importer: &dyn Importer) -> bool;

    /// The traces in a tree that has at least one folder, as far as the user named them.
    ///
    /// # Errors
    ///
    /// None of it can be read.
    fn import(&self, tree: &FileTree, options: &ImportOptions) -> Result<Vec<Imported>, SourceError>;
}

/// The parts of a tree.
#[derive(Debug, Default)]
pub struct FileTree {
    /// The name of the folder that all of it is in, if that says so itself
    /// ([`TreeImporter::is_root`]).
    pub root: Option<String>,
    /// Folders with metadata, in the order of their names.
    pub folders: Vec<TreeFolder>,
    /// Files beside them that the tree [takes](TreeImporter::takes), in the order of their names.
    pub files: Vec<TreeFile>,
    /// Files in the part that the user named that begin as data streams do, in folders without metadata.
    pub orphans: Vec<String>,
}

/// A folder that is a trace.
#[derive(Debug)]
pub struct TreeFolder {
    /// Its path below the root, with `/`; may be empty.
    pub name: String,
    /// The bytes of its metadata.
    pub metadata: Vec<u8>,
    /// Its data streams.
    pub streams: Vec<TreeFile>,
    /// It is in the part of the tree that the user named, or has a part that is.
    pub is_named: bool,
}

/// A file of a tree.
#[derive(Debug)]
pub struct TreeFile {
    /// Its path below the root, with `/`.
    pub name: String,
    /// Its bytes.
    pub bytes: ByteSource,
    /// In bytes.
    pub size: u64,
    /// The file on disk that has the bytes: itself, or an archive.
    pub on_disk: PathBuf,
    /// It is in the part of the tree that the user named.
    pub is_named: bool,
}

/// The known formats other than CTF.
#[derive(Clone, Copy, Debug, Default)]
pub struct Importers {
    /// The importers of files; the first that recognizes one has it.
    pub files: &'static [&'static dyn Importer],
    /// The importers of trees.
    pub trees: &'static [&'static dyn TreeImporter],
}

/// Bytes of a file by which importers recognize it.
pub const HEAD_BYTES: usize = 64 << 10;

/// Facts about files that these do not hold themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// A file with the names of events, for formats that have numbers alone.
    pub definitions: Option<PathBuf>,
    /// Cycles per second, for clocks of a frequency that is not in the file.
    pub clock_frequency: Option<u64>,
    /// Events of packets have all bytes of these, and not their heads alone.
    pub packet_data: bool,
}

/// Makes the packets of imported streams; several threads ask.
pub trait PacketMaker: fmt::Debug + Send + Sync {
    /// The bytes of a packet of a stream, by their numbers in [`Imported::streams`] and
    /// [`ImportedStream::packets`]; as many as announced there.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is another one now.
    fn make(&self, stream: usize, packet: usize) -> Result<Vec<u8>, SourceError>;
}

/// A trace that was made of a file.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Its name below the file's path, without `/`; empty where the file holds one trace.
    pub name: String,
    /// Its metadata, in any dialect of CTF.
    pub metadata: Vec<u8>,
    /// Its data streams.
    pub streams: Vec<ImportedStream>,
    /// The bytes of their packets.
    pub maker: Arc<dyn PacketMaker>,
    /// Parts of the file that could not be read and are not in the trace.
    pub problems: ImportProblems,
    /// Assumptions, and facts that are unknown.
    pub notes: Vec<ImportNote>,
}

/// A data stream of an imported file.
#[derive(Clone, Debug, Default)]
pub struct ImportedStream {
    /// Its name, which is unique: words with `/` between them.
    pub name: String,
    /// The sizes of its packets in bytes.
    pub packets: Vec<u64>,
    /// LTTng's index of them, so that no packet is made for its head alone; may be empty.
    pub index: Vec<u8>,
    /// Its last events are missing, as the tracer had no room for them.
    pub lacks_end: bool,
    /// The file that has its packets, if that is not the trace's own.
    pub file: Option<PathBuf>,
}

/// Something assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// The name of the assumption, as documentation has it.
    pub assumption: &'static str,
    /// The assumption in a sentence, with its place.
    pub what: String,
}

/// Parts of a file that could not be read, each with its place in the file: `line 7: ...`. The first
/// hundred are kept, and the number of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportProblems {
    first: Vec<String>,
    more: usize,
}

/// Problems of a file that are reported one by one.
const PROBLEMS_MAX: usize = 100;

impl ImportProblems {
    /// Adds one.
    pub fn push(&mut self, what: impl FnOnce() -> String) {
        if self.first.len() < PROBLEMS_MAX {
            self.first.push(what());
        } else {
            self.more += 1;
        }
    }

    /// The problems as they are reported.
    #[must_use]
    pub fn told(mut self) -> Vec<String> {
        match self.more {
            0 => {}
            1 => self.first.push("and 1 more part that could not be read".to_owned()),
            more => self.first.push(format!("and {more} more parts that could not be read")),
        }
        self.first
    }
}

impl FromIterator<String> for ImportProblems {
    fn from_iter<I: IntoIterator<Item = String>>(problems: I) -> Self {
        let mut all = Self::default();
        problems.into_iter().for_each(|problem| all.push(|| problem));
        all
    }
}

impl Imported {
    /// A trace without a name that has its streams already, one packet each.
    #[must_use]
    pub fn ready(metadata: Vec<u8>, streams: Vec<(String, Vec<u8>)>) -> Self {
        let (names, packets): (Vec<String>, Vec<Vec<u8>>) = streams.into_iter().unzip();
        let streams = names.into_iter().zip(&packets).map(|(name, packet)| ImportedStream {
            name,
            packets: vec![packet.len() as u64],
            ..ImportedStream::default()
        });
        let (name, streams, maker) = (String::new(), streams.collect(), Arc::new(ReadyPackets(packets)));
        Self { name, metadata, streams, maker, problems: ImportProblems::default(), notes: Vec::new() }
    }

    /// The error in its names, if there is one.
    pub(crate) fn check_names(&self, path: &Path) -> Result<(), SourceError> {
        let wrong = |what: String| Err(SourceError::new(path, SourceErrorKind::Import(what)));
        let mut names: Vec<&str> = self.streams.iter().map(|stream| &*stream.name).collect();
        names.sort_unstable();
        let is_bad = |(place, name): (usize, &&str)| {
            name.split('/').any(|part| matches!(part, "" | "." | "..")) || place > 0 && names[place - 1] == *name
        };
        if let Some(place) = names.iter().enumerate().position(is_bad) {
            return wrong(format!("its importer names a stream {:?}, which is no name of its own", names[place]));
        }
        match self.name.contains('/') {
            true => wrong(format!("its importer names a trace {:?}, which is no name", self.name)),
            false => Ok(()),
        }
    }
}

/// Packets that are there already.
struct ReadyPackets(Vec<Vec<u8>>);

impl fmt::Debug for ReadyPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets", self.0.len())
    }
}

impl PacketMaker for ReadyPackets {
    fn make(&self, stream: usize, _: usize) -> Result<Vec<u8>, SourceError> {
        Ok(self.0[stream].clone())
    }
}
