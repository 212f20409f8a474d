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
pub use problem::Problem;

use crate::budget::{Places, first_of};
use crate::diagnostic::{Assumption, Diagnostic, Severity};
use crate::model::{Dialect, TraceClass};

/// Reads CTF 2 metadata.
pub(crate) fn parse(text: &str) -> (Option<(TraceClass, Places)>, Vec<Diagnostic>) {
    let sequence = reader::sequence(text);
    let (trace, places, mut errors) = fragments::read(&sequence.values);
    errors.extend(sequence.broken);
    let comma = |span| diagnostic(Severity::Assumption(Assumption::TrailingComma), span, Problem::Comma);
    let mut diagnostics: Vec<Diagnostic> = sequence.commas.into_iter().take(1).map(comma).collect();
    if trace.dialect == Dialect::Ctf2Candidate {
        let severity = Severity::Assumption(Assumption::ReleaseCandidateDialect);
        diagnostics.push(diagnostic(severity, 0..0, Problem::Candidate));
    }
    let sound = errors.is_empty();
    let errors = first_of(errors, Problem::More);
    diagnostics.extend(errors.into_iter().map(|(span, problem)| diagnostic(Severity::Error, span, problem)));
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    (sound.then_some((trace, places)), diagnostics)
}

fn diagnostic(severity: Severity, span: std::ops::Range<usize>, problem: Problem) -> Diagnostic {
    Diagnostic { severity, span, problem: problem.into() }
}
