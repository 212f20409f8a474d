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
pub(crate) use lower::empty_trace_class;
pub use problem::Problem;

use crate::budget::{Places, first_of};
use crate::diagnostic::{Assumption, Diagnostic, Severity};
use crate::model::TraceClass;

/// Reads TSDL. Packets of metadata have their own magic number; plain text has a signature.
pub(crate) fn parse(text: &str, in_packets: bool) -> (Option<(TraceClass, Places)>, Vec<Diagnostic>) {
    let (tokens, mut errors) = lexer::tokens(text);
    let (items, syntax_errors) = parser::parse(&tokens);
    errors.extend(syntax_errors);
    let mut findings = lower::Findings::default();
    if !in_packets && !text.trim_start().starts_with("/* CTF 1.8") {
        findings.doubts.push((0..0, Problem::Signature));
    }
    if let Some(at) = text.find('\0') {
        findings.doubts.push((at..at + 1, Problem::Nul));
    }
    let trace = lower::lower(&items, text.len(), &mut findings);
    errors.append(&mut findings.errors);
    let sound = errors.is_empty();
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    let (errors, doubts) = (first_of(errors, Problem::More), first_of(findings.doubts, Problem::More));
    diagnostics.extend(errors.into_iter().map(|(span, problem)| diagnostic(Severity::Error, span, problem)));
    diagnostics.extend(doubts.into_iter().map(|(span, problem)| {
        let assumption = match problem {
            Problem::Signature => Assumption::MissingSignature,
            Problem::Nul => Assumption::NulCharacters,
            _ => Assumption::UnknownAttribute,
        };
        diagnostic(Severity::Assumption(assumption), span, problem)
    }));
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.start);
    (sound.then_some(trace), diagnostics)
}

fn diagnostic(severity: Severity, span: std::ops::Range<usize>, problem: Problem) -> Diagnostic {
    Diagnostic { severity, span, problem: problem.into() }
}
