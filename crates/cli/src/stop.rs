//! Why a command ends without an answer, so that whoever asks decides what comes of it: the program ends, another face goes on.

use std::io::{self, Write};

use clap::CommandFactory;
use clap::error::ErrorKind;

use crate::arguments::Arguments;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Nothing more can be written.
    Output(io::Error),
    /// What was typed makes no sense together, or with these traces: a sentence.
    Usage(String),
    /// An expression is wrong: lines that say where, the first of which begins with `error: `.
    Expression(String),
}

/// Writes lines to standard error. That may be a terminal that was closed, which is no reason to end otherwise.
pub(crate) fn say(lines: &str) {
    let _ = writeln!(io::stderr(), "{lines}");
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Stop {
    /// Says so on standard error; the status with which the process should end. `command` is the one that was asked.
    pub(crate) fn tell(self, command: Option<&str>) -> u8 {
        match self {
            // Whoever read our output has seen enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Output(error) => {
                say(&format!("error: {error}"));
                1
            }
            Self::Usage(message) => {
                let mut all = Arguments::command();
                all.build();
                let asked = command.and_then(|name| all.find_subcommand(name)).cloned();
                asked.unwrap_or(all).error(ErrorKind::ValueValidation, message).exit()
            }
            Self::Expression(lines) => {
                say(lines.trim_end());
                2
            }
        }
    }

    /// What is said after `error: `.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Output(error) => error.to_string(),
            Self::Usage(message) => message.clone(),
            Self::Expression(lines) => lines.strip_prefix("error: ").unwrap_or(lines).trim_end().to_owned(),
        }
    }
}
