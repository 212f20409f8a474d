//! CTF 2 metadata: a JSON text sequence of fragments.
//!
//! ```text
//! text ──reader──> values with places ──fragments──> trace class
//!                                       fields: field classes; location: references between them
//! ```

mod fields;
mod fragments;
mod location;
mod object;
mod problem;
mod reader;

pub(crate) use fields::role_name;
pub use problem::JsonProblem;

use crate::budget::{ClassPlaces, first_of};
use crate::finding::{Assumption, PartFinding, Severity};
use crate::model::{Dialect, TraceClass};

/// Reads CTF 2 metadata.
pub(crate) fn parse(text: &str) -> (Option<(TraceClass, ClassPlaces)>, Vec<PartFinding<JsonProblem>>) {
    let sequence = reader::sequence(text);
    let (trace, places, mut errors) = fragments::read(&sequence.values);
    errors.extend(sequence.broken);
    let comma = |span| PartFinding {
        severity: Severity::Assumption(Assumption::TrailingComma),
        span,
        problem: JsonProblem::Comma,
    };
    let mut findings: Vec<PartFinding<JsonProblem>> = sequence.commas.into_iter().take(1).map(comma).collect();
    if trace.dialect == Dialect::Ctf2Candidate {
        let severity = Severity::Assumption(Assumption::ReleaseCandidateDialect);
        findings.push(PartFinding { severity, span: 0..0, problem: JsonProblem::Candidate });
    }
    let sound = errors.is_empty();
    let errors = first_of(errors, JsonProblem::More);
    findings.extend(errors.into_iter().map(|(span, problem)| PartFinding { severity: Severity::Error, span, problem }));
    findings.sort_by_key(|finding| finding.span.start);
    (sound.then_some((trace, places)), findings)
}
