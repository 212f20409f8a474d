//! The trace's description of itself: metadata bytes to a [`TraceClass`], and back to text.
//!
//! It must never know event bytes: it describes their layout and reads none of them.
//!
//! ```text
//! bytes ──stream──> text ──tsdl──┐
//!                        ──json──┴─> TraceClass ──check──> the same, proven sound, + diagnostics
//!                                        └──write──> CTF 2 JSON, TSDL
//! ```

mod budget;
pub mod check;
mod diagnostic;
pub mod earlier;
mod finding;
pub mod json;
pub mod model;
mod said;
mod seen;
pub mod stream;
pub mod tsdl;
pub mod value;
pub mod write;

pub use diagnostic::{Diagnostic, LineColumn, MetadataProblem, line_column};
pub use finding::{Assumption, Severity};
pub use model::{
    ClockClass, ClockOrigin, DataStreamClass, Dialect, EnvironmentValue, EventRecordClass, FieldClass, FieldKind,
    TraceClass,
};

use kymo_units::Uuid;

use crate::finding::PartFinding;

/// The contents of a trace's metadata, and all its errors.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedMetadata {
    /// There if no diagnostic is an error.
    pub trace_class: Option<TraceClass>,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The text that `span`s of diagnostics point into: without packet headers, if there were any.
    pub text: String,
    /// The UUID of the metadata packets, if it was packetized.
    pub packet_uuid: Option<Uuid>,
}

/// Reads the bytes of a metadata stream: TSDL or CTF 2, plain or packetized.
#[must_use]
pub fn parse(bytes: &[u8]) -> ParsedMetadata {
    let stream::StreamText { text, uuid, problems, doubts } = stream::read(bytes);
    let broken = !problems.is_empty();
    let mut diagnostics: Vec<Diagnostic> =
        problems.into_iter().map(|problem| whole(Severity::Error, problem.into())).collect();
    diagnostics.extend(doubts.into_iter().map(|problem| {
        let assumption = match problem {
            stream::MetadataStreamProblem::ByteOrderMark => Assumption::ByteOrderMark,
            _ => Assumption::MetadataEncoding,
        };
        whole(Severity::Assumption(assumption), problem.into())
    }));
    let is_json = text.trim_start().starts_with(['\u{1e}', '{']);
    let (trace_class, found) = match is_json {
        _ if broken && text.is_empty() => (None, Vec::new()),
        true => diagnosed(json::parse(&text)),
        false => diagnosed(tsdl::parse(&text, uuid.is_some())),
    };
    diagnostics.extend(found);
    let wrong = trace_class.as_ref().map(|(trace, places)| check::check(trace, places)).unwrap_or_default();
    let trace_class = trace_class.map(|(trace, _)| trace).filter(|_| !broken && wrong.is_empty());
    let wrong = budget::first_of(wrong, check::TraceClassProblem::More);
    diagnostics
        .extend(wrong.into_iter().map(|(span, problem)| Diagnostic { span, ..whole(Severity::Error, problem.into()) }));
    ParsedMetadata { trace_class, diagnostics, text, packet_uuid: uuid }
}

/// The result of a parser, and its findings among those of all parts.
fn diagnosed<T, P: Into<MetadataProblem>>((read, findings): (T, Vec<PartFinding<P>>)) -> (T, Vec<Diagnostic>) {
    (read, findings.into_iter().map(Diagnostic::from).collect())
}

/// A finding about the metadata as a whole.
fn whole(severity: Severity, problem: MetadataProblem) -> Diagnostic {
    Diagnostic { severity, span: 0..0, problem }
}
