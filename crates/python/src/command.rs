//! The `kymo` command, as the wheel carries it.

use std::ffi::OsString;
use std::io::Write;

use crate::interpreter::detached;
use pyo3::prelude::*;

/// Runs a command line and ends the process, as the program `kymo` does. Nothing of Python is run
/// after it: a parent that waits for the process waits for the command alone.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>) {
    detached(py, || {
        let status = kymo_cli::run_command(words);
        // Rust's own end of a process does so, too; and cannot do more about it.
        let _ = std::io::stdout().flush();
        std::process::exit(i32::from(status))
    });
}
