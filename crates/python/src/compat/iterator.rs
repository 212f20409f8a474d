//! The iterator over messages.

use std::sync::{Arc, Mutex};

use kymo_session::messages::{MarkKind, MarkMessage, MessageRow, Messages, MessagesQuestion};
use pyo3::exceptions::PyStopIteration;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::event::{ClockSnapshot, EventMessage};
use super::plan::{PlanShelf, StreamPlans};
use crate::errors::no_messages;
use crate::interpreter::{detached, staying};
use crate::pull::{next_batch, pulled};
use crate::session::Session;

/// The native part of `TraceCollectionMessageIterator`.
#[pyclass(subclass, module = "kymograph._native")]
pub(crate) struct MessageIterator {
    begun: Option<IteratorState>,
    shelf: Option<Arc<PlanShelf>>,
    next: usize,
}

struct IteratorState {
    /// The lock is never contended: the caller has the iterator for itself.
    messages: Mutex<Messages>,
    known: Arc<StreamPlans>,
}

#[pymethods]
impl MessageIterator {
    #[new]
    #[pyo3(signature = (*_arguments, **_names))]
    fn new(_arguments: &Bound<'_, PyTuple>, _names: Option<&Bound<'_, PyDict>>) -> Self {
        Self { begun: None, shelf: None, next: 0 }
    }

    /// Begins to read; the maker makes all other objects.
    #[pyo3(signature = (session, maker, begin_ns, end_ns, stream_intersection))]
    fn _begin(
        &mut self,
        py: Python<'_>,
        session: &Session,
        maker: Py<PyAny>,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
        stream_intersection: bool,
    ) -> PyResult<()> {
        let question =
            MessagesQuestion { begin_ns, end_ns, stream_intersection, marks: true, ..MessagesQuestion::default() };
        let messages = detached(py, || session.inner().messages(&question));
        let messages = messages.map_err(|failure| no_messages(py, &failure))?;
        let known = Arc::new(StreamPlans::new(py, Arc::clone(messages.facts()), maker)?);
        self.begun = Some(IteratorState { messages: Mutex::new(messages), known });
        Ok(())
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[inline]
    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            if let Some(shelf) = &self.shelf {
                if let Some(&row) = shelf.batch.rows().get(self.next) {
                    self.next += 1;
                    return match row {
                        MessageRow::Event(at) => {
                            let message = EventMessage { shelf: Arc::clone(shelf), at };
                            Py::new(py, message).map(|message| Some(message.into_any()))
                        }
                        MessageRow::Mark(mark) => shelf.mark(py, shelf.batch.mark(mark)).map(Some),
                    };
                }
                self.shelf = None;
            }
            let Some(begun) = &mut self.begun else { return Ok(None) };
            let Some(batch) = next_batch(py, pulled(&mut begun.messages))? else {
                return Err(begun.end(py));
            };
            self.shelf = Some(Arc::new(PlanShelf { batch, known: Arc::clone(&begun.known) }));
            self.next = 0;
        }
    }
}

impl IteratorState {
    /// The exception at the end: unreadable parts are reported after all the rest was given out.
    fn end(&mut self, py: Python<'_>) -> PyErr {
        let unreadable = pulled(&mut self.messages).report().unreadable.iter();
        let unreadable: Vec<_> = unreadable.map(|problem| (problem.place.clone(), problem.message.clone())).collect();
        match staying(|| self.known.maker.bind(py).call_method1(intern!(py, "end"), (unreadable,))) {
            Some(end) => end.map_or_else(|error| error, PyErr::from_value),
            None => PyStopIteration::new_err(()),
        }
    }
}

impl PlanShelf {
    /// A message that is not an event.
    fn mark(&self, py: Python<'_>, mark: &MarkMessage) -> PyResult<Py<PyAny>> {
        let known = &self.known;
        let stream = &known.streams[mark.stream];
        let snapshot = |cycles: Option<u64>| {
            let cycles = cycles.filter(|_| stream.has_clock);
            cycles.map(|cycles| Py::new(py, ClockSnapshot::at(known, mark.stream, cycles))).transpose()
        };
        let kind = match mark.kind {
            MarkKind::StreamBegin => "stream_beginning",
            MarkKind::StreamEnd => "stream_end",
            MarkKind::PacketBegin => "packet_beginning",
            MarkKind::PacketEnd => "packet_end",
            MarkKind::DiscardedEvents => "discarded_events",
            MarkKind::DiscardedPackets => "discarded_packets",
        };
        let subject = match &mark.packet {
            Some(packet) => known.packet(py, mark.stream, packet)?,
            None => stream.object.clone_ref(py),
        };
        let arguments = (kind, subject, snapshot(mark.cycles)?, snapshot(mark.end_cycles)?, mark.count);
        let made = staying(|| known.maker.call_method1(py, intern!(py, "mark"), arguments));
        made.unwrap_or_else(|| Err(PyStopIteration::new_err(())))
    }
}
