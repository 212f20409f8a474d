//! The problem of a query, and its place.
//!
//! ```text
//! no field named nxt_comm
//!     select nxt_comm from sched_switch
//!            ^^^^^^^^
//! ```

use std::fmt;
use std::ops::Range;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Span};

/// A problem of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryProblem {
    /// The message.
    pub message: String,
    /// Where, in bytes of the query, if that is known.
    pub at: Option<Range<usize>>,
    /// The query.
    pub query: String,
    /// Hints that may help.
    pub help: Vec<String>,
    /// The part at fault.
    pub fault: FaultyPart,
}

/// The part at fault where there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultyPart {
    /// The query.
    Query,
    /// It needs more memory than it may have.
    Memory,
    /// The data that it reads.
    Source,
}

/// An argument of a function makes no sense: the query is at fault.
#[derive(Debug)]
pub struct WrongArgument(pub String);

impl fmt::Display for WrongArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongArgument {}

impl QueryProblem {
    /// The problem that an error of a query describes.
    #[must_use]
    pub fn new(error: &DataFusionError, query: &str) -> Self {
        let root = error.find_root();
        let diagnostic = error.diagnostic();
        let (mut message, mut at) = (said(root), None);
        let mut help = Vec::new();
        if let Some((rest, line, column)) = parser_position(&message) {
            at = offset(query, line, column).map(|start| start..word_end(query, start));
            message = rest;
        }
        if message.ends_with("found: EOF") {
            at = Some(query.trim_end().len()..query.trim_end().len());
        }
        if let Some(diagnostic) = diagnostic {
            at = diagnostic.span.and_then(|span| range(query, span)).or(at);
            help.extend(diagnostic.helps.iter().map(|help| help.message.clone()));
            help.extend(diagnostic.notes.iter().map(|note| note.message.clone()));
        }
        Self { message, at, query: query.to_owned(), help, fault: fault(root) }
    }
}

fn fault(root: &DataFusionError) -> FaultyPart {
    match root {
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Configuration(_) => FaultyPart::Query,
        // A computation on values, such as a division by zero.
        DataFusionError::ArrowError(error, _) => match **error {
            ArrowError::DivideByZero
            | ArrowError::ArithmeticOverflow(_)
            | ArrowError::CastError(_)
            | ArrowError::ParseError(_)
            | ArrowError::ComputeError(_)
            | ArrowError::InvalidArgumentError(_) => FaultyPart::Query,
            _ => FaultyPart::Source,
        },
        DataFusionError::External(inner) if inner.is::<WrongArgument>() => FaultyPart::Query,
        DataFusionError::ResourcesExhausted(_) => FaultyPart::Memory,
        _ => FaultyPart::Source,
    }
}

impl QueryProblem {
    /// The problem from an error in understanding a query: nothing was computed yet, but it may be
    /// that a view cannot be made.
    pub(crate) fn asking(error: &DataFusionError, query: &str) -> Self {
        let problem = Self::new(error, query);
        let is_refused = matches!(error.find_root(), DataFusionError::Execution(_));
        if is_refused { Self { fault: FaultyPart::Query, ..problem } } else { problem }
    }
}

impl std::error::Error for QueryProblem {}

impl fmt::Display for QueryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(at) = &self.at {
            let start = self.query[..at.start].rfind('\n').map_or(0, |end| end + 1);
            let end = self.query[at.start..].find('\n').map_or(self.query.len(), |end| at.start + end);
            let line = &self.query[start..end];
            let before = line[..at.start - start].chars().map(|letter| if letter == '\t' { '\t' } else { ' ' });
            let marked = self.query[at.start..at.end.min(end)].chars().count().max(1);
            write!(f, "\n    {line}\n    {}{}", before.collect::<String>(), "^".repeat(marked))?;
        }
        self.help.iter().try_for_each(|help| write!(f, "\nhelp: {help}"))
    }
}

/// The sentence of an error, without the kind of error and the place where DataFusion found it.
fn said(error: &DataFusionError) -> String {
    let text = match error {
        DataFusionError::Plan(text)
        | DataFusionError::Execution(text)
        | DataFusionError::NotImplemented(text)
        | DataFusionError::Configuration(text)
        | DataFusionError::ResourcesExhausted(text) => text.clone(),
        DataFusionError::External(inner) => inner.to_string(),
        DataFusionError::SQL(inner, _) => {
            let text = inner.to_string();
            text.strip_prefix("sql parser error: ").map_or_else(|| text.clone(), str::to_owned)
        }
        DataFusionError::Context(_, inner) => said(inner),
        DataFusionError::Diagnostic(_, inner) => said(inner),
        other => {
            let text = other.strip_backtrace();
            let prefixes = ["Schema error: ", "Error during planning: ", "Arrow error: ", "Optimizer rule "];
            prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)).map_or_else(|| text.clone(), str::to_owned)
        }
    };
    text.split("\n\nbacktrace: ").next().unwrap_or_default().trim_end().to_owned()
}

/// The place that the parser writes at the end of its sentence.
fn parser_position(message: &str) -> Option<(String, usize, usize)> {
    let (rest, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some((rest.to_owned(), line.trim().parse().ok()?, column.trim().parse().ok()?))
}

fn range(query: &str, span: Span) -> Option<Range<usize>> {
    let place = |line: u64, column: u64| offset(query, usize::try_from(line).ok()?, usize::try_from(column).ok()?);
    let start = place(span.start.line, span.start.column)?;
    let end = place(span.end.line, span.end.column).unwrap_or(start);
    Some(start..end.max(start))
}

/// The byte at a line and a column, from 1.
fn offset(query: &str, line: usize, column: usize) -> Option<usize> {
    let (line, column) = (line.checked_sub(1)?, column.checked_sub(1)?);
    let start = match line {
        0 => 0,
        _ => query.match_indices('\n').nth(line - 1)?.0 + 1,
    };
    let rest = &query[start..];
    let places = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    places.clone().nth(column).map(|at| start + at).filter(|&at| at <= query.len())
}

fn word_end(query: &str, start: usize) -> usize {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let length = query[start..].find(|letter| !is_part(letter)).unwrap_or(query.len() - start);
    (start + length.max(1)).min(query.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_texts_of_several_lines() {
        let query = "select\n  ä, b\nfrom t";
        assert_eq!(offset(query, 2, 6).map(|at| &query[at..]), Some("b\nfrom t"));
        assert_eq!(offset(query, 3, 7), Some(query.len()));
        assert_eq!([offset(query, 4, 1), offset(query, 0, 0), offset(query, 3, 9)], [None; 3]);
    }

    #[test]
    fn a_problem_shows_its_line() {
        let query = "select a\n\tfrom täble";
        let at = Some(query.find("täble").expect("it is there")..query.len());
        let problem = QueryProblem {
            message: "no".into(),
            at,
            query: query.into(),
            help: vec!["try".into()],
            fault: FaultyPart::Query,
        };
        assert_eq!(problem.to_string(), "no\n    \tfrom täble\n    \t     ^^^^^\nhelp: try");
    }
}
