//! The Python package: sessions, answers and events for Python.
//!
//! It must never know the internals of `session`; the meaning of options and the texts for people
//! are `cli`'s business.
//!
//! ```text
//! kymograph (Python: what people import) ──> _native (here) ──> session      answers
//!                                                          └──> cli          the command; the words of its options
//! ```
//!
//! The GIL (the interpreter's lock) is released around all code that reads. Errors become
//! exceptions of `kymograph`, with the text that the command prints.

mod answer;
mod columns;
mod command;
mod compat;
mod errors;
mod event;
mod events;
mod interpreter;
mod interrupt;
mod printing;
mod process;
mod pull;
mod session;
mod shares;
#[cfg(feature = "sql")]
mod sql;
mod stream;

use pyo3::prelude::*;

/// The native part of `kymograph`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::columns::{Batch, Schema};
    #[pymodule_export]
    use super::command::run_command;
    #[pymodule_export]
    use super::compat::bt2;
    #[pymodule_export]
    use super::event::{Event, EventLoop, messages};
    #[pymodule_export]
    use super::events::Events;
    #[pymodule_export]
    use super::interpreter::ends;
    #[pymodule_export]
    use super::printing::Pieces;
    #[pymodule_export]
    use super::session::{Session, cache_folder, findings};
    #[pymodule_export]
    use super::shares::Shares;
    #[cfg(feature = "sql")]
    #[pymodule_export]
    use super::sql::{Database, Rows};
    #[pymodule_export]
    use super::stream::Stream;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // While there is time for that: see there.
        super::interrupt::is_main_thread(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
