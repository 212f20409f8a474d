//! Exceptions of `kymograph`: their classes are Python's, so that they have docstrings and can be sent to other processes.

use pyo3::prelude::*;

/// Which exception.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Nothing can be opened.
    Open,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "OpenError",
        }
    }
}

/// The exception, with what the command prints after `error: `.
pub(crate) fn error(py: Python<'_>, kind: Kind, text: &str) -> PyErr {
    let text = text.trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let made = || py.import("kymograph._errors")?.getattr(kind.name())?.call1((text,));
    made().map_or_else(|error| error, PyErr::from_value)
}
