//! TSDL, the metadata language of CTF 1.8.
//!
//! ```text
//! text ──lexer──> tokens ──parser──> syntax tree ──lower──> trace class
//!                                     types: names to types ┘  └ build: references to fields
//! ```

mod ast;
mod build;
mod lexer;
mod literal;
mod lower;
mod parser;
mod problem;
mod types;

pub(crate) use build::label_ranges;
pub use problem::TsdlProblem;
pub(crate) use types::RESERVED;

use kymo_wire::magic::TSDL_SIGNATURE;

use crate::budget::{ClassPlaces, first_of};
use crate::finding::{Assumption, PartFinding, Severity};
use crate::model::TraceClass;

/// Reads TSDL. Packets of metadata have their own magic number; plain text has a signature.
pub(crate) fn parse(
    text: &str,
    in_packets: bool,
) -> (Option<(TraceClass, ClassPlaces)>, Vec<PartFinding<TsdlProblem>>) {
    let (tokens, mut errors) = lexer::tokens(text);
    let (items, syntax_errors) = parser::parse(&tokens);
    errors.extend(syntax_errors);
    let mut found = lower::LoweringFindings::default();
    if !in_packets && !text.trim_start().starts_with(TSDL_SIGNATURE) {
        found.doubts.push((0..0, TsdlProblem::Signature));
    }
    if let Some(at) = text.find('\0') {
        found.doubts.push((at..at + 1, TsdlProblem::Nul));
    }
    let trace = lower::lower(&items, text.len(), &mut found);
    errors.append(&mut found.errors);
    let sound = errors.is_empty();
    let mut findings: Vec<PartFinding<TsdlProblem>> = Vec::new();
    let (errors, doubts) = (first_of(errors, TsdlProblem::More), first_of(found.doubts, TsdlProblem::More));
    findings.extend(errors.into_iter().map(|(span, problem)| PartFinding { severity: Severity::Error, span, problem }));
    findings.extend(doubts.into_iter().map(|(span, problem)| {
        let severity = Severity::Assumption(assumption(&problem));
        PartFinding { severity, span, problem }
    }));
    findings.sort_by_key(|finding| finding.span.start);
    (sound.then_some(trace), findings)
}

/// The assumption under which reading goes on in spite of a doubt.
fn assumption(problem: &TsdlProblem) -> Assumption {
    match problem {
        TsdlProblem::Signature => Assumption::MissingSignature,
        TsdlProblem::Nul => Assumption::NulCharacters,
        TsdlProblem::ImplicitClock(_) => Assumption::ImplicitClock,
        TsdlProblem::UnmappedTimestamp { .. } => Assumption::UnmappedTimestamp,
        TsdlProblem::SignedSpecialField(..) | TsdlProblem::SpecialField(..) => Assumption::SpecialFieldType,
        TsdlProblem::ReservedWord(_) => Assumption::ReservedWord,
        TsdlProblem::Enumerator { .. } => Assumption::LabelOutOfRange,
        TsdlProblem::AmbiguousName { .. } => Assumption::AmbiguousName,
        _ => Assumption::UnknownAttribute,
    }
}
