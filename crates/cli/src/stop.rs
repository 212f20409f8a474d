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
    /// An expression is wrong: lines with the place, the first of which begins with `error: `.
    Expression(String),
}

impl From<io::Error> for StopReason {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl StopReason {
    /// The text after `error: `.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Output(error) => error.to_string(),
            Self::Usage(message) => message.clone(),
            Self::Expression(lines) => lines.strip_prefix("error: ").unwrap_or(lines).trim_end().to_owned(),
        }
    }
}
