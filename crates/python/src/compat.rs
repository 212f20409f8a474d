//! `bt2`, Babeltrace 2's Python interface, over our messages: the objects that a loop over events touches.
//!
//! ```text
//! here    iterator, event messages, events, clock snapshots; fields that are numbers, texts, structures
//! Python  (kymograph.compat.bt2) everything else: classes, streams, traces, other messages, other fields
//! ```
//!
//! Python's part is handed in as one object, the *maker*, which makes its objects from plain descriptions.

mod describe;
mod event;
mod fields;
mod iterator;
mod plan;
mod structure;

use pyo3::prelude::*;

/// The classes that `kymograph.compat.bt2` shows.
#[pymodule]
pub(crate) mod bt2 {
    #[pymodule_export]
    use super::describe::describe;
    #[pymodule_export]
    use super::event::{ClockSnapshot, Event, EventMessage};
    #[pymodule_export]
    use super::fields::{
        Bool, Double, Field, Integer, Integral, Numeric, Real, Signed, SignedEnumeration, Single, Text, Unsigned,
        UnsignedEnumeration,
    };
    #[pymodule_export]
    use super::iterator::MessageIterator;
    #[pymodule_export]
    use super::structure::Structure;
}

/// Does not happen: a field that the scan read can be read again.
fn unreadable() -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err("a field cannot be read that was read before: this is a bug")
}
