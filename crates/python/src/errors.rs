//! Exceptions of `kymograph`: their classes are Python's, so that they have docstrings and can be sent to other processes.

use kymo_cli::words::CommandError;
use kymo_session::messages::MessagesFailure;
use kymo_session::{AnalyseFailure, Cancelled, EventsFailure, ShareFailure, ShareProblem};
#[cfg(feature = "sql")]
use kymo_session::{SqlFailure, SqlFault};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::interpreter::staying;

/// Which exception.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExceptionKind {
    /// Nothing can be opened.
    Open,
    /// The question is wrong.
    Question,
    /// The traces cannot answer.
    Unanswerable,
    /// Reading cannot go on.
    Read,
    /// Parts of a trace cannot be read by themselves.
    Unsliceable,
    /// A share of a trace is of another one.
    OtherTrace,
    /// A file cannot be written.
    Write,
    /// Something belongs to another process.
    Fork,
    /// A query needs more memory than it may have.
    #[cfg(feature = "sql")]
    Memory,
}

impl ExceptionKind {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "OpenError",
            Self::Question => "QuestionError",
            Self::Unanswerable => "UnanswerableError",
            Self::Read => "ReadError",
            Self::Unsliceable => "UnsliceableError",
            Self::OtherTrace => "OtherTraceError",
            Self::Write => "WriteError",
            Self::Fork => "ForkError",
            #[cfg(feature = "sql")]
            Self::Memory => "MemoryLimitError",
        }
    }
}

/// The exception, with the text that the command prints after `error: `.
pub(crate) fn error(py: Python<'_>, kind: ExceptionKind, text: &str) -> PyErr {
    let text = text.trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let made = || py.import("kymograph._errors")?.getattr(kind.name())?.call1((text,));
    match staying(made) {
        Some(made) => made.map_or_else(|error| error, PyErr::from_value),
        None => PyRuntimeError::new_err(text.to_owned()),
    }
}

/// Why there is no answer.
pub(crate) fn refused(py: Python<'_>, refused: CommandError) -> PyErr {
    match refused {
        CommandError::Question(text) => error(py, ExceptionKind::Question, &text),
        CommandError::Traces(text) => error(py, ExceptionKind::Unanswerable, &text),
        CommandError::Output(cause) => error(py, ExceptionKind::Write, &cause.to_string()),
        CommandError::Cancelled => cancelled(py, Cancelled),
    }
}

/// The exception for an answer that was canceled.
pub(crate) fn cancelled(py: Python<'_>, cancelled: Cancelled) -> PyErr {
    error(py, ExceptionKind::Read, &cancelled.to_string())
}

/// Why a share cannot be read, or shares not be put together.
pub(crate) fn not_shared(py: Python<'_>, failure: &ShareFailure) -> PyErr {
    let kind = match failure {
        ShareFailure::Share(ShareProblem::OtherTrace { .. }) => ExceptionKind::OtherTrace,
        ShareFailure::Whole(_) => ExceptionKind::Unsliceable,
        ShareFailure::Analyse(AnalyseFailure::NoRole { .. } | AnalyseFailure::NoName(_)) => ExceptionKind::Unanswerable,
        ShareFailure::Analyse(_) => ExceptionKind::Question,
        _ => ExceptionKind::Read,
    };
    error(py, kind, &failure.to_string())
}

/// Why there are no columns.
pub(crate) fn no_columns(py: Python<'_>, failure: &EventsFailure) -> PyErr {
    let kind = match failure {
        EventsFailure::NoSuchEvent(_) | EventsFailure::NoSuchColumn { .. } | EventsFailure::NoTimes => {
            ExceptionKind::Question
        }
        EventsFailure::Unsliceable => ExceptionKind::Unsliceable,
        EventsFailure::Arrow(_) | EventsFailure::Cancelled(_) | EventsFailure::Timeline(_) | EventsFailure::Gone => {
            ExceptionKind::Read
        }
    };
    error(py, kind, &failure.to_string())
}

/// Why a query has no answer, or no further rows.
#[cfg(feature = "sql")]
pub(crate) fn not_answered(py: Python<'_>, failure: &SqlFailure) -> PyErr {
    let kind = match (failure, failure.fault()) {
        (_, Some(SqlFault::Query)) => ExceptionKind::Question,
        (_, Some(SqlFault::Memory)) => ExceptionKind::Memory,
        (SqlFailure::Asking(_), _) => ExceptionKind::Unanswerable,
        _ => ExceptionKind::Read,
    };
    error(py, kind, &failure.to_string())
}

/// Why there are no further messages.
pub(crate) fn no_messages(py: Python<'_>, failure: &MessagesFailure) -> PyErr {
    let kind = match failure {
        MessagesFailure::NoIntersection(_) => ExceptionKind::Unanswerable,
        MessagesFailure::Forked => ExceptionKind::Fork,
        MessagesFailure::NoThread(_) | MessagesFailure::Stopped => ExceptionKind::Read,
    };
    error(py, kind, &failure.to_string())
}
