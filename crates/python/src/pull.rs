//! Batches of messages, pulled with the interpreter's lock given back, and the names that fields are asked for by.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kymo_session::messages::{MessageBatch, Messages, Pulled};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::no_messages;
use crate::interpreter::detached;
use crate::interrupt::PATIENCE;

/// The next batch; `None` at the end.
pub(crate) fn next_batch(py: Python<'_>, messages: &mut Messages) -> PyResult<Option<Arc<MessageBatch>>> {
    loop {
        match detached(py, || messages.next_within(PATIENCE)) {
            Ok(Pulled::Batch(batch)) => return Ok(Some(batch)),
            Ok(Pulled::End) => return Ok(None),
            Ok(Pulled::Nothing) => py.check_signals()?,
            Err(failure) => return Err(no_messages(py, &failure)),
        }
    }
}

/// The messages of a caller that has them for itself.
pub(crate) fn pulled(messages: &mut Mutex<Messages>) -> &mut Messages {
    messages.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// Names that are remembered.
const NAMES: usize = 8;

/// The finding for a name. A loop asks with the same string object again and again, which is known
/// by its address.
#[derive(Debug)]
pub(crate) struct NameCache<T> {
    known: [OnceLock<(Py<PyString>, T)>; NAMES],
}

impl<T> Default for NameCache<T> {
    fn default() -> Self {
        Self { known: [const { OnceLock::new() }; NAMES] }
    }
}

impl<T: Copy> NameCache<T> {
    /// The result of `find` for the name.
    #[inline]
    pub(crate) fn get(&self, name: &Bound<'_, PyString>, find: impl FnOnce(&str) -> T) -> PyResult<T> {
        for (known, found) in self.known.iter().map_while(OnceLock::get) {
            if known.as_ptr() == name.as_ptr() {
                return Ok(*found);
            }
        }
        // Names with characters that are no text are no field's.
        let found = find(&name.to_string_lossy());
        for slot in &self.known {
            if slot.set((name.clone().unbind(), found)).is_ok() {
                break;
            }
        }
        Ok(found)
    }
}
