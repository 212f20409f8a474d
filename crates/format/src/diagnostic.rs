//! What is wrong or doubtful in metadata, and where.

use std::fmt;
use std::ops::Range;

/// One finding in metadata: where, what, and how bad.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Bytes of [`crate::Metadata::text`] it is about.
    pub span: Range<usize>,
    /// What was found and expected.
    pub problem: Problem,
    /// Other places that explain it, with a note on each.
    pub related: Vec<(Range<usize>, String)>,
    /// What the author of the metadata can do, if there is something.
    pub help: Option<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The metadata cannot be used.
    Error,
    /// The metadata violates the specification but is understood: this was assumed.
    Assumption(Assumption),
}

/// The problems of each part of this crate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {}

/// The closed list of what is assumed where metadata or data violate the specification.
/// Anything not listed here is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Assumption {}

impl Assumption {
    /// The name by which `--strict` and the documentation call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {}
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A line and a column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Where byte `offset` of `text` is.
#[must_use]
pub fn line_column(text: &str, offset: usize) -> LineColumn {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    LineColumn {
        line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
        column: String::from_utf8_lossy(&before[line_start..])
            .chars()
            .count()
            + 1,
    }
}
