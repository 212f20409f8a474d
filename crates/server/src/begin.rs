//! What a server begins with: traces that are open, traces that may grow, or a choice of some.

use std::path::PathBuf;
use std::sync::Arc;

use kymo_session::{OpenOptions, Session};

/// What a server begins with.
#[derive(Debug)]
pub enum Begin {
    /// Traces that are open.
    Traces(Arc<Session>),
    /// Whoever looks chooses some.
    Choice(Choice),
    /// Traces that are open, and may be recorded right now: they are looked at as long as the server runs.
    Growing(Growing),
}

/// Traces that may grow.
#[derive(Debug)]
pub struct Growing {
    /// As they are open; `None`: there is no event yet.
    pub session: Option<Arc<Session>>,
    /// What was named.
    pub paths: Vec<PathBuf>,
    /// How they are opened.
    pub open: OpenOptions,
}

impl Begin {
    /// Where the traces are, as far as that is known: whoever records them is asked by that.
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

impl From<Choice> for Begin {
    fn from(choice: Choice) -> Self {
        Self::Choice(choice)
    }
}

/// What there is to choose from.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// How traces are opened. Recent ones are known where these have a cache.
    pub open: OpenOptions,
    /// A trace that whoever has none can look at.
    pub sample: Option<Sample>,
    /// How to get traces of one's own.
    pub record: &'static [RecordHint],
    /// Bytes of all files together that may be sent; 0: none may.
    pub upload_bytes_max: u64,
}

/// A trace as the bytes of an archive.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The archive's name, whose end says of what kind it is.
    pub name: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
}

/// One way to record a trace.
#[derive(Clone, Copy, Debug)]
pub struct RecordHint {
    /// What is typed.
    pub command: &'static str,
    /// What becomes of that.
    pub what: &'static str,
}
