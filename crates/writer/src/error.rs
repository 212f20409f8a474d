//! The errors of a writer, and the field that each is about.

use std::fmt;
use std::path::Path;

/// Why an item is not written. Nothing of it is in the packet then.
#[derive(Debug)]
pub struct WriteError {
    /// Names from the scope down to the field; empty where no field is at fault.
    pub field: Vec<String>,
    /// The problem.
    pub problem: WriteProblem,
}

/// The kinds of problems.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum WriteProblem {
    #[error("{found} stands where the class has {expected}")]
    Kind { found: &'static str, expected: &'static str },
    #[error("{value} does not fit in {bits} bits")]
    Wide { value: i128, bits: u32 },
    #[error("a real of {bits} bits; writable are at most 128")]
    WideReal { bits: u32 },
    #[error("{found} elements or bytes; the length says {expected}")]
    Length { found: u64, expected: i128 },
    #[error("the structure has {found} values; its class has {expected} members")]
    Members { found: usize, expected: usize },
    #[error("the selector's value {selector} does not select the given option")]
    Selector { selector: i128 },
    #[error("the text has a zero code unit or half a code unit")]
    Text,
    #[error("the field that this one needs was not written before it")]
    Reference,
    #[error("the byte order changes inside of a byte")]
    MixedOrder,
    #[error("the clock cannot be found again from {bits} bits")]
    Clock { bits: u32 },
    #[error("no value is given")]
    Missing,
    #[error("no form of the event record header holds the id {id} and the clock {cycles}")]
    Header { id: u64, cycles: u64 },
    #[error("the stream class has no event record class {index}")]
    EventClass { index: usize },
    #[error("the trace class has no data stream class {index}")]
    StreamClass { index: usize },
    #[error("the event record takes no bits")]
    EmptyEvent,
    #[error("packets without sizes in their context: a stream file is one packet, and it is closed")]
    SinglePacket,
    #[error("the content ends inside of a byte, and packets have no place for both sizes")]
    PartByte,
    #[error("{name:?} is no name for a stream file")]
    Name { name: String },
    #[error("a packet from cycle {begin} to {end} does not come behind one that ends at {last}")]
    Time { begin: u64, end: u64, last: u64 },
    #[error("metadata cannot say it: {0}")]
    Metadata(Box<kymo_format::write::Unwritable>),
    #[error("{path}: {error}")]
    File { path: String, error: std::io::Error },
}

impl WriteError {
    pub(crate) fn inside(mut self, name: &str) -> Self {
        self.field.insert(0, name.to_owned());
        self
    }
}

impl From<WriteProblem> for WriteError {
    fn from(problem: WriteProblem) -> Self {
        Self { field: Vec::new(), problem }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field.join("."))?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for WriteError {}

/// A file that cannot be made, read or written.
pub(crate) fn file_error(path: &Path, error: std::io::Error) -> WriteError {
    WriteProblem::File { path: path.display().to_string(), error }.into()
}
