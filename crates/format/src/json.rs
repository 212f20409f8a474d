//! CTF 2 metadata: a JSON text sequence.

/// A problem of CTF 2 metadata.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Not written yet.
    #[error("CTF 2 metadata")]
    Unread,
}

use crate::diagnostic::{Diagnostic, Severity};

pub(crate) fn parse(_: &str) -> (Option<crate::TraceClass>, Vec<Diagnostic>) {
    let problem = Problem::Unread.into();
    (None, vec![Diagnostic { severity: Severity::Error, span: 0..0, problem, related: Vec::new(), help: None }])
}
