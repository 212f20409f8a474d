//! Objects that belong to the process that made them: threads do not live on in a child, so that a
//! child must neither ask nor wait for its parent's threads.

use pyo3::prelude::*;

use crate::errors::{ExceptionKind, error};

/// Something that only the process that made it may use. A child forgets it: giving it back could wait for ever.
pub(crate) struct ProcessOwned<T> {
    process: u32,
    inner: Option<T>,
}

impl<T> ProcessOwned<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { process: std::process::id(), inner: Some(inner) }
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// The inner object, if it is ours.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        match &self.inner {
            Some(inner) if self.is_ours() => Ok(inner),
            _ => Err(foreign(py)),
        }
    }

    /// The same, to change it.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        if self.is_ours() { self.inner.as_mut() } else { None }
    }
}

impl<T> Drop for ProcessOwned<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            std::mem::forget(self.inner.take());
        }
    }
}

/// The message about an object of another process.
pub(crate) const FOREIGN: &str = "it was begun by another process: a child of it must begin anew";

pub(crate) fn foreign(py: Python<'_>) -> PyErr {
    error(py, ExceptionKind::Fork, FOREIGN)
}
