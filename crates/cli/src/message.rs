//! Messages on standard error: warnings, errors, help.
//!
//! A message may quote names of traces and files, which may contain anything: control characters
//! are escaped. Standard error may be full or closed. That ends no command; but where a message
//! was lost, the exit status says so. [`PlainOutput`] does the same for answers on standard output
//! that have no colors of their own.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::answer::screen::Screen;
use crate::answer::words::escaped_lines;

/// Columns before the rest of a message's line that a terminal has no room for.
pub(crate) const INDENT: usize = 2;

static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Writes a line.
macro_rules! message {
    ($($words:tt)*) => {
        $crate::message::write_line(&format!($($words)*))
    };
}

/// Writes lines with their ends, or nothing.
macro_rules! message_text {
    ($($words:tt)*) => {
        $crate::message::write(format_args!($($words)*))
    };
}

/// Writes lines, and the end of the last one.
pub(crate) fn write_line(lines: &str) {
    write(format_args!("{lines}\n"));
}

/// Writes text as it is, but for control characters; a terminal gets lines that fit.
pub(crate) fn write(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    let text = Screen::of_messages().hung(&text, INDENT);
    if io::stderr().write_all(escaped_lines(&text).as_bytes()).is_err() {
        IS_LOST.store(true, Ordering::Relaxed);
    }
}

/// Whether a message could not be written since the last call.
pub(crate) fn is_lost() -> bool {
    IS_LOST.swap(false, Ordering::Relaxed)
}

/// Standard output, with control characters and the like escaped.
pub(crate) struct PlainOutput(io::StdoutLock<'static>);

/// Standard output for an answer that may quote names, and has no colors.
pub(crate) fn plain_output() -> PlainOutput {
    PlainOutput(io::stdout().lock())
}

impl Write for PlainOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // `write!` hands over whole texts.
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(escaped_lines(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
