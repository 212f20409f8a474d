//! What a trace says of itself: metadata bytes to a [`TraceClass`], and back to text.
//!
//! It must never know event bytes: it says how they are laid out and reads none of them.
//!
//! ```text
//! bytes ──stream──> text ──tsdl──┐
//!                        ──json──┴─> TraceClass ──check──> the same, proven sound, + diagnostics
//!                                        └──write──> CTF 2 JSON, TSDL
//! ```

mod check;
mod diagnostic;
pub mod json;
pub mod model;
mod stream;
pub mod tsdl;

pub use diagnostic::{Assumption, Diagnostic, LineColumn, Problem, Severity, line_column};
pub use model::{
    ClockClass, ClockOrigin, DataStreamClass, Dialect, EnvironmentValue, EventRecordClass,
    FieldClass, FieldKind, TraceClass,
};

use kymo_units::Uuid;

/// What the metadata of a trace says, and everything that is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// There if no diagnostic is an error.
    pub trace_class: Option<TraceClass>,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The text that `span`s of diagnostics point into: without packet headers, if there were any.
    pub text: String,
    /// The UUID of the metadata packets, if it was packetised.
    pub packet_uuid: Option<Uuid>,
}

/// Reads the bytes of a metadata stream: TSDL or CTF 2, plain or packetised.
#[must_use]
pub fn parse(bytes: &[u8]) -> Metadata {
    let _ = bytes;
    Metadata {
        trace_class: None,
        diagnostics: Vec::new(),
        text: String::new(),
        packet_uuid: None,
    }
}
