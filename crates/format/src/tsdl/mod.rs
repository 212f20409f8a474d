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
pub use problem::Problem;

use kymo_wire::magic::TSDL_SIGNATURE;

use crate::budget::{Places, first_of};
use crate::finding::{Assumption, Finding, Severity};
use crate::model::TraceClass;

/// Reads TSDL. Packets of metadata have their own magic number; plain text has a signature.
pub(crate) fn parse(text: &str, in_packets: bool) -> (Option<(TraceClass, Places)>, Vec<Finding<Problem>>) {
    let (tokens, mut errors) = lexer::tokens(text);
    let (items, syntax_errors) = parser::parse(&tokens);
    errors.extend(syntax_errors);
    let mut found = lower::Findings::default();
    if !in_packets && !text.trim_start().starts_with(TSDL_SIGNATURE) {
        found.doubts.push((0..0, Problem::Signature));
    }
    if let Some(at) = text.find('\0') {
        found.doubts.push((at..at + 1, Problem::Nul));
    }
    let trace = lower::lower(&items, text.len(), &mut found);
    errors.append(&mut found.errors);
    let sound = errors.is_empty();
    let mut findings: Vec<Finding<Problem>> = Vec::new();
    let (errors, doubts) = (first_of(errors, Problem::More), first_of(found.doubts, Problem::More));
    findings.extend(errors.into_iter().map(|(span, problem)| Finding { severity: Severity::Error, span, problem }));
    findings.extend(doubts.into_iter().map(|(span, problem)| {
        let assumption = match problem {
            Problem::Signature => Assumption::MissingSignature,
            Problem::Nul => Assumption::NulCharacters,
            _ => Assumption::UnknownAttribute,
        };
        Finding { severity: Severity::Assumption(assumption), span, problem }
    }));
    findings.sort_by_key(|finding| finding.span.start);
    (sound.then_some(trace), findings)
}
