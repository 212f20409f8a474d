//! Why a command ends without an answer; the caller decides the consequence: the program ends,
//! another face goes on.

use std::io;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum StopReason {
    /// Nothing more can be written.
    Output(io::Error),
    /// The typed words make no sense together, or with these traces: a sentence.
    Usage(String),
    /// The question is wrong, or these traces cannot answer it: lines, perhaps with the place of the error, the first
    /// of which begins with `error: `.
    Expression(String),
}

impl From<io::Error> for StopReason {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl StopReason {
    /// These traces cannot answer the question, though everything can be read.
    pub(crate) fn unanswerable(sentence: &str) -> Self {
        Self::Expression(format!("error: {sentence}\n"))
    }

    /// The text after `error: `.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Output(error) => error.to_string(),
            Self::Usage(message) => message.clone(),
            Self::Expression(lines) => lines.strip_prefix("error: ").unwrap_or(lines).trim_end().to_owned(),
        }
    }
}
