//! The errors in a user's text, a mapping or an own analysis, and their places.
//!
//! ```text
//! my-roles.toml:7:1: thread_switch has no field `nxt_tid`; did you mean `next_tid`?
//! ```

use std::fmt;

/// All that is wrong with a text; at least one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct MappingErrors {
    /// In the order of the text.
    pub problems: Vec<MappingProblem>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{line}:{column}: {kind}")]
pub struct MappingProblem {
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
    /// The kind of the error.
    pub kind: MappingProblemKind,
}

/// The kinds of errors.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum MappingProblemKind {
    #[error("this is no TOML: {0}")]
    Toml(String),
    #[error("found {found}, expected {expected}")]
    Found { found: &'static str, expected: &'static str },
    #[error("there is no role `{name}`{}", did_you_mean(near))]
    Role { name: String, near: Vec<String> },
    #[error("{role} has no field `{name}`{}", did_you_mean(near))]
    Field { role: &'static str, name: String, near: Vec<String> },
    #[error("context has no field `{name}`{}", did_you_mean(near))]
    Context { name: String, near: Vec<String> },
    #[error("`{name}` says nothing of a field; `value` and `capture` do")]
    Source { name: String },
    #[error("{place} has no `{name}`{}", did_you_mean(near))]
    Word { place: &'static str, name: String, near: Vec<String> },
    #[error("{place} lacks `{word}`: {meaning}")]
    Lacks { place: &'static str, word: &'static str, meaning: &'static str },
    #[error("fields of this key: {found}; of another one that it shall meet: {expected}")]
    KeyFields { found: usize, expected: usize },
    #[error("a key of {0} fields; 8 are the most")]
    KeyFieldsMax(usize),
    #[error("a change either adds (`add`) or sets (`to`)")]
    Change,
    #[error("the mapping has no `name`")]
    NoName,
    #[error("{0} has no `event`: the name of its events, or a pattern of it")]
    NoEvent(&'static str),
    #[error("{role} needs `{field}`: without it an event has not the role")]
    Required { role: &'static str, field: &'static str },
    #[error("there is no star number {wanted}: patterns of this event have {stars}")]
    Capture { wanted: i64, stars: usize },
    #[error("{0} is above 9223372036854775807, the highest integer")]
    Integer(String),
    #[error("{0}")]
    Expression(String),
}

fn did_you_mean(near: &[String]) -> String {
    match near.first() {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

impl fmt::Display for MappingErrors {
    /// A line for each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if number > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for MappingErrors {}

impl MappingErrors {
    /// For people: a line for each, with the file's name.
    #[must_use]
    pub fn render(&self, file: &str) -> String {
        self.problems.iter().map(|problem| format!("{file}:{problem}\n")).collect()
    }
}
