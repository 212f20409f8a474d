//! The problems of an expression, and their form for people: a sentence, the line with the place
//! underlined, and help.
//!
//! ```text
//! `stringfield` is text and `4` is a number: they cannot be compared
//!     stringfield == 4
//!     ^^^^^^^^^^^^^^^^
//! help: write the number in quotes to compare text with text
//! ```

use std::ops::Range;

use kymo_ir::predicate::PredicateError;

use crate::limits::{DEPTH_MAX, REGEXES_MAX, TEXT_BYTES_MAX};

/// Bytes of an expression.
pub(crate) type Span = Range<usize>;

/// A problem of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterProblem {
    /// The bytes of the text that it is about.
    pub span: Range<usize>,
    /// The error.
    pub kind: ProblemKind,
    /// A hint that may help.
    pub help: Option<String>,
}

/// The kind of error.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ProblemKind {
    #[error("the filter has {0} bytes; {TEXT_BYTES_MAX} are the most")]
    TextTooLong(usize),
    #[error("the filter is empty")]
    Empty,
    #[error("`{0}` means nothing here")]
    Character(char),
    #[error("the text that begins here has no closing {0}")]
    UnclosedText(char),
    #[error("the name that begins here has no closing `")]
    UnclosedName,
    #[error("the comment that begins here has no closing `*/`")]
    UnclosedComment,
    #[error("`\\{0}` is not an escape")]
    Escape(char),
    #[error("`\\{0}` is not followed by the hexadecimal digits of a character")]
    EscapeDigits(char),
    #[error("`{0}` is above 18446744073709551615, the highest integer")]
    IntegerTooHigh(String),
    #[error("`{0}` is out of range for a 64-bit real number")]
    RealTooHigh(String),
    #[error("`{0}` begins with 0 and so is octal, but has a digit above 7")]
    OctalDigit(String),
    #[error("`{suffix}` behind `{number}` is neither a unit nor a suffix of numbers")]
    Suffix { number: String, suffix: String },
    #[error("`{0}` has a unit; units go behind decimal numbers")]
    UnitBehindRadix(String),
    #[error("`{number}` is not a whole number of {base}")]
    NotWhole { number: String, base: &'static str },
    #[error("`{number}` is beyond 64 bits of {base}")]
    QuantityTooHigh { number: String, base: &'static str },
    #[error("`@` is not followed by a time")]
    NoInstant,
    #[error("found {found}, expected {expected}")]
    Unexpected { found: String, expected: &'static str },
    #[error("this {0} is never closed")]
    Unclosed(&'static str),
    #[error("this `)` closes nothing")]
    Unopened,
    #[error("`${0}` is not a word of the language")]
    UnknownWord(String),
    #[error("`${0}` is no value; a name follows it, as in `${0}.{1}`")]
    WordAlone(String, &'static str),
    #[error("found {0}, expected a plain number as index")]
    Index(String),
    #[error("ranges stand in `in (...)` only")]
    RangeOutsideList,
    #[error("operators are nested more than {DEPTH_MAX} deep")]
    Depth,
    #[error("the filter has more than {REGEXES_MAX} regular expressions")]
    Regexes,
    #[error("the regular expression cannot be used: {0}")]
    Regex(String),
    #[error("`{0}` is text, not a statement that is true or false")]
    TextAsTruth(String),
    #[error("`{operator}` takes numbers; `{operand}` is text")]
    TextOperand { operator: &'static str, operand: String },
    #[error("`{operator}` takes integers; `{operand}` is a real number")]
    RealOperand { operator: &'static str, operand: String },
    #[error("`{operator}` takes text; `{operand}` is a number")]
    NumberOperand { operator: &'static str, operand: String },
    #[error("`{text}` is text and `{number}` is a number: they cannot be compared")]
    Mixed { text: String, number: String },
    #[error("`{0}` has a `*` that stands for any text: it compares with `==` and `!=` only")]
    PatternOrder(String),
    #[error("two patterns cannot be compared")]
    TwoPatterns,
    #[error("a filter that is a text alone is never true or false")]
    RootText,
    #[error("a filter that is a real number alone is the same for every event")]
    RootReal,
    #[error("`{left}` is {left_dimension} and `{right}` is {right_dimension}: they have no common unit")]
    Dimensions { left: String, left_dimension: &'static str, right: String, right_dimension: &'static str },
    #[error("`{0}` is too large in the unit that it is compared in")]
    UnitRange(String),
    #[error("`{name}` is {what}, which has no single value")]
    Compound { name: String, what: &'static str },
    #[error("the labels of `{0}` have no order")]
    LabelOrder(String),
    #[error("`{name}` has no label {label}")]
    Label { name: String, label: String },
    #[error("`@{0}` is not a time of this trace")]
    Instant(String),
    #[error(
        "`{0}` is text of packets, which is asked for before events: it cannot be compared with something of an event"
    )]
    TextOfPacket(String),
    #[error("no class of events has `{0}`")]
    UnknownName(String),
    #[error("`{0}` is known of traces, not while events are recorded")]
    NotWhileRecorded(String),
    #[error("{0}")]
    Predicate(#[from] PredicateError),
}

/// A name that a class of events does not have. A question about it is unknown; `has(name)` is
/// false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingName {
    /// The name, as it would be written.
    pub path: String,
    /// The bytes of its first place in the text.
    pub span: Range<usize>,
    /// Names like it that there are, the nearest first.
    pub near: Vec<String>,
    /// It occurs in `has(...)` only: its author knows that it may be missing.
    pub is_asked_for: bool,
}

/// A note about the interpretation of an expression, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterNote {
    /// The bytes of the text that it is about.
    pub span: Range<usize>,
    /// A sentence without its full stop.
    pub text: String,
}

impl FilterProblem {
    pub(crate) fn new(span: Span, kind: ProblemKind) -> Self {
        Self { span, kind, help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Lists those names that may be meant, if there are any.
    pub(crate) fn near(self, names: &[String]) -> Self {
        match did_you_mean(names) {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// For people: the error, the line of the text with the place underlined, and help; lines end
    /// with `\n`. `text` is the one that was parsed.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        with_place(&self.kind.to_string(), text, &self.span, self.help.as_deref())
    }
}

impl MissingName {
    /// For people, as problems are.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        let is_quoted = self.path.contains('`');
        let message =
            if is_quoted { format!("there is no {}", self.path) } else { format!("there is no `{}`", self.path) };
        with_place(&message, text, &self.span, did_you_mean(&self.near).as_deref())
    }
}

impl FilterNote {
    /// For people, as problems are.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        with_place(&self.text, text, &self.span, None)
    }
}

fn did_you_mean(names: &[String]) -> Option<String> {
    let (last, others) = names.split_last()?;
    let others: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
    let or = if others.is_empty() { "" } else { " or " };
    Some(format!("did you mean {}{or}`{last}`?", others.join(", ")))
}

/// A message about a place in a text, for people: lines with the place underlined, and with help.
///
/// ```
/// let lines = kymo_filter::with_place("`soon` is no time", "for soon", &(4..8), Some("`for 5s`"));
/// assert_eq!(lines, "`soon` is no time\n    for soon\n        ^^^^\nhelp: `for 5s`\n");
/// ```
#[must_use]
pub fn with_place(message: &str, text: &str, span: &Range<usize>, help: Option<&str>) -> String {
    let (line, underline) = excerpt(text, span);
    let mut shown = format!("{message}\n    {line}\n    {underline}\n");
    if let Some(help) = help {
        shown += &format!("help: {help}\n");
    }
    shown
}

/// Characters of a line that are shown.
const LINE_COLUMNS_MAX: usize = 100;
/// Characters that are shown before a place far into a line.
const BEFORE_COLUMNS: usize = 40;

/// The line where the span begins, cut around it, and the underline.
fn excerpt(text: &str, span: &Span) -> (String, String) {
    let begin = floor_boundary(text, span.start);
    let end = floor_boundary(text, span.end).max(begin);
    let line_begin = text[..begin].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[begin..].find('\n').map_or(text.len(), |at| begin + at);
    let line: Vec<char> = text[line_begin..line_end].chars().map(printable).collect();
    let first = text[line_begin..begin].chars().count();
    let marked = text[begin..end.min(line_end)].chars().count().max(1);

    let skipped = if line.len() > LINE_COLUMNS_MAX { first.saturating_sub(BEFORE_COLUMNS) } else { 0 };
    let shown = &line[skipped.min(line.len())..(skipped + LINE_COLUMNS_MAX).min(line.len())];
    let (before, behind) =
        (if skipped > 0 { "..." } else { "" }, if skipped + shown.len() < line.len() { "..." } else { "" });
    let column = before.len() + first - skipped;
    let marked = marked.min((LINE_COLUMNS_MAX + before.len()).saturating_sub(column)).max(1);
    let shown: String = shown.iter().collect();
    (format!("{before}{shown}{behind}"), format!("{}{}", " ".repeat(column), "^".repeat(marked)))
}

/// One column of a terminal for each.
fn printable(character: char) -> char {
    match character {
        '\t' => ' ',
        control if control.is_control() => '\u{FFFD}',
        other => other,
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Quoted characters of an expression in a message, at most.
const QUOTED_CHARACTERS_MAX: usize = 60;

/// A piece of the text for a message.
pub(crate) fn quoted(text: &str, span: &Span) -> String {
    let piece = text.get(span.clone()).unwrap_or_default();
    let mut characters = piece.chars().map(printable);
    let mut shown: String = characters.by_ref().take(QUOTED_CHARACTERS_MAX).collect();
    if characters.next().is_some() {
        shown += "...";
    }
    shown
}
