//! The start of a server: traces that are open, traces that may grow, or a choice of traces.

use std::path::PathBuf;
use std::sync::Arc;

use kymo_session::{OpenOptions, Session};

/// The start of a server.
#[derive(Debug)]
pub enum Begin {
    /// Traces that are open.
    Traces(Arc<Session>),
    /// The viewer's user chooses the traces.
    Choice(TraceChoice),
    /// Traces that are open and may be recorded right now: the server follows them as long as it
    /// runs.
    Growing(Growing),
}

/// Traces that may grow.
#[derive(Debug)]
pub struct Growing {
    /// As they are open; `None`: there is no event yet.
    pub session: Option<Arc<Session>>,
    /// The paths that the user named.
    pub paths: Vec<PathBuf>,
    /// How they are opened.
    pub open: OpenOptions,
}

impl Begin {
    /// Where the traces are, as far as that is known: by these paths the server finds the recorder
    /// that writes them.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Growing(growing) => growing.paths.clone(),
            Self::Traces(_) | Self::Choice(_) => Vec::new(),
        }
    }
}

impl From<Growing> for Begin {
    fn from(growing: Growing) -> Self {
        Self::Growing(growing)
    }
}

impl From<Arc<Session>> for Begin {
    fn from(session: Arc<Session>) -> Self {
        Self::Traces(session)
    }
}

impl From<TraceChoice> for Begin {
    fn from(choice: TraceChoice) -> Self {
        Self::Choice(choice)
    }
}

/// The traces and hints that a user can choose from.
#[derive(Clone, Debug, Default)]
pub struct TraceChoice {
    /// How to open traces. Recent ones are known where these have a cache.
    pub open: OpenOptions,
    /// A trace to look at for a user without traces.
    pub sample: Option<SampleTrace>,
    /// How to record traces.
    pub record: &'static [RecordHint],
    /// Maximum bytes of all uploaded files together; 0: uploads are not allowed.
    pub upload_bytes_max: u64,
}

/// A trace as the bytes of an archive.
#[derive(Clone, Copy, Debug)]
pub struct SampleTrace {
    /// The archive's name; its extension says which kind of archive it is.
    pub name: &'static str,
    /// The bytes of the archive.
    pub bytes: &'static [u8],
}

/// One way to record a trace.
#[derive(Clone, Copy, Debug)]
pub struct RecordHint {
    /// The command to type.
    pub command: &'static str,
    /// The result of the command.
    pub what: &'static str,
}
