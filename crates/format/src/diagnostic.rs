//! The errors and doubts in metadata, and their places: the findings of all parts of this crate,
//! and how they are shown.

use std::ops::Range;

use crate::finding::{PartFinding, Severity};

/// One finding in metadata: its place, its problem, and its severity.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Bytes of [`crate::ParsedMetadata::text`] it is about.
    pub span: Range<usize>,
    /// The found and the expected value.
    pub problem: MetadataProblem,
}

impl<P: Into<MetadataProblem>> From<PartFinding<P>> for Diagnostic {
    fn from(PartFinding { severity, span, problem }: PartFinding<P>) -> Self {
        Self { severity, span, problem: problem.into() }
    }
}

/// The problems of each part of this crate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MetadataProblem {
    /// Of a metadata stream's packets or encoding.
    #[error("{0}")]
    Stream(#[from] crate::stream::MetadataStreamProblem),
    /// Of the trace class as a whole.
    #[error("{0}")]
    Check(#[from] crate::check::TraceClassProblem),
    /// Of TSDL.
    #[error("{0}")]
    Tsdl(#[from] crate::tsdl::TsdlProblem),
    /// Of CTF 2 JSON.
    #[error("{0}")]
    Json(#[from] crate::json::JsonProblem),
}

impl MetadataProblem {
    /// Help for the author of the metadata, where the message does not have it.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Stream(problem) => problem.help(),
            Self::Check(problem) => problem.help(),
            Self::Tsdl(problem) => problem.help(),
            Self::Json(problem) => problem.help(),
        }
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
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    LineColumn {
        line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
        column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
    }
}

/// Characters of a line that are shown, at most; generated metadata may be a single one.
const LINE_MAX: usize = 200;

/// The shown part of a line, and how many characters of that stand before the one of interest.
fn around(line: &str, before: usize) -> (String, usize) {
    let count = line.chars().count();
    if count <= LINE_MAX {
        return (line.to_owned(), before);
    }
    let first = before.saturating_sub(LINE_MAX / 2).min(count - LINE_MAX);
    let mut shown: String = line.chars().skip(first).take(LINE_MAX).collect();
    if first + LINE_MAX < count {
        shown.push('…');
    }
    if first == 0 { (shown, before) } else { (format!("…{shown}"), before - first + 1) }
}

/// A control character would move the cursor or change colors: its picture takes one column, as it
/// did.
fn pictured(character: char) -> char {
    match character {
        '\t' => '\t',
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        control if control.is_control() => '\u{fffd}',
        other => other,
    }
}

/// A message may quote a name, and a name may be of any length.
fn clipped(message: String) -> String {
    match message.char_indices().nth(2 * LINE_MAX) {
        Some((end, _)) => message[..end].to_owned() + "…",
        None => message,
    }
}

impl Diagnostic {
    /// The finding as text: place, message, the line with a caret, help.
    #[must_use]
    pub fn render_plain(&self, text: &str, file_name: &str) -> String {
        let place = line_column(text, self.span.start);
        let severity = match self.severity {
            Severity::Error => "error".to_owned(),
            Severity::Assumption(assumption) => format!("warning[{assumption}]"),
        };
        let problem = clipped(self.problem.to_string());
        let mut out = format!("{file_name}:{}:{}: {severity}: {problem}\n", place.line, place.column);
        if let Some(line) = text.lines().nth(place.line - 1) {
            let (line, before) = around(line, place.column - 1);
            let indent: String =
                line.chars().take(before).map(|character| if character == '\t' { '\t' } else { ' ' }).collect();
            let line: String = line.chars().map(pictured).collect();
            let width = self.span.len().clamp(1, line.chars().count().saturating_sub(before).max(1));
            out.push_str(&format!("  {line}\n  {indent}{}\n", "^".repeat(width)));
        }
        if let Some(help) = self.problem.help() {
            out.push_str(&format!("  help: {help}\n"));
        }
        out
    }
}
