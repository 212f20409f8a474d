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

/// The first UUID in the bytes of a metadata stream, which is the trace's but for unusual metadata.
/// It is found without parsing: of traces with different ones, nothing more has to be known to say
/// that they are different traces.
///
/// ```
/// # use kymo_format::uuid_at_a_glance;
/// let text = b"/* CTF 1.8 */ trace { uuid = \"01234567-0123-0123-0123-0123456789ab\"; };";
/// assert_eq!(uuid_at_a_glance(text).unwrap().to_string(), "01234567-0123-0123-0123-0123456789ab");
/// assert_eq!(uuid_at_a_glance(b"/* CTF 1.8 */ trace { major = 1; };"), None);
/// ```
#[must_use]
pub fn uuid_at_a_glance(bytes: &[u8]) -> Option<Uuid> {
    stream::packet_uuid(bytes).or_else(|| {
        let mut rest = bytes;
        while let Some(at) = rest.windows(4).position(|word| word == b"uuid") {
            rest = &rest[at + 4..];
            if let Some(uuid) = uuid_behind(rest) {
                return Some(uuid);
            }
        }
        None
    })
}

/// `= "01234567-..."` of TSDL, or `": [1, 35, ...]` of CTF 2.
fn uuid_behind(bytes: &[u8]) -> Option<Uuid> {
    // Sixteen numbers of three digits, with a comma and a few spaces each.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
    let text = text.trim_start();
    if let Some(value) = text.strip_prefix('=') {
        return value.trim_start().strip_prefix('"')?.get(..36)?.parse().ok();
    }
    let list = text.strip_prefix('"')?.trim_start().strip_prefix(':')?.trim_start().strip_prefix('[')?;
    let (list, _) = list.split_once(']')?;
    let numbers: Option<Vec<u8>> = list.split(',').map(|number| number.trim().parse().ok()).collect();
    Some(Uuid(numbers?.try_into().ok()?))
}

/// The result of a parser, and its findings among those of all parts.
fn diagnosed<T, P: Into<MetadataProblem>>((read, findings): (T, Vec<PartFinding<P>>)) -> (T, Vec<Diagnostic>) {
    (read, findings.into_iter().map(Diagnostic::from).collect())
}

/// A finding about the metadata as a whole.
fn whole(severity: Severity, problem: MetadataProblem) -> Diagnostic {
    Diagnostic { severity, span: 0..0, problem }
}
