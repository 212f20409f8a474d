//! Single events for loops in Python.
//!
//! ```text
//! EventLoop ──next──> Event (batch, row) ──["field"]──> a number, text, list...
//! ```
//!
//! An event is a place in a batch and reads nothing by itself; a field's value becomes a Python object each time it is asked
//! for, from cells that were decoded for the whole batch.

use std::sync::{Arc, Mutex, OnceLock};

use kymo_cli::words;
use kymo_session::messages::model::{EnumerationMapping, Scope, TextEncoding};
use kymo_session::messages::{
    ColumnShape, EventAt, FieldRef, MessageBatch, MessageRow, MessageValue, Messages, MessagesFacts, MessagesQuestion,
};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::errors::{no_messages, refused};
use crate::interpreter::{detached, staying};
use crate::pull::{NameCache, next_batch, pulled};
use crate::session::Session;

/// Events in time order. Reading ends at the last event, or when the iterator is dropped.
#[pyclass(module = "kymograph._native")]
pub(crate) struct EventLoop {
    /// The lock is never contended: the caller has the iterator for itself.
    messages: Mutex<Messages>,
    classes: Arc<KnownClasses>,
    batch: Option<Arc<Shelf>>,
    next: usize,
    /// Called at the end with the report, if the report is not empty.
    at_end: Option<Py<PyAny>>,
}

impl EventLoop {
    pub(crate) fn new(messages: Messages, at_end: Py<PyAny>) -> Self {
        let classes = Arc::new(KnownClasses::new(Arc::clone(messages.facts())));
        Self { messages: Mutex::new(messages), classes, batch: None, next: 0, at_end: Some(at_end) }
    }
}

#[pymethods]
impl EventLoop {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[inline]
    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<Event>>> {
        loop {
            if let Some(shelf) = &self.batch {
                while let Some(&row) = shelf.batch.rows().get(self.next) {
                    self.next += 1;
                    if let MessageRow::Event(at) = row {
                        return Py::new(py, Event { shelf: Arc::clone(shelf), at }).map(Some);
                    }
                }
                self.batch = None;
            }
            let Some(batch) = next_batch(py, pulled(&mut self.messages))? else {
                return self.end(py);
            };
            self.batch = Some(Arc::new(Shelf { batch, classes: Arc::clone(&self.classes) }));
            self.next = 0;
        }
    }
}

impl EventLoop {
    fn end(&mut self, py: Python<'_>) -> PyResult<Option<Py<Event>>> {
        let at_end = self.at_end.take();
        let report = pulled(&mut self.messages).report();
        if let Some(at_end) = at_end.filter(|_| !report.is_complete() || report.has_losses()) {
            staying(|| at_end.call1(py, (words::report(report),))).transpose()?;
        }
        Ok(None)
    }
}

/// A batch, and the known facts about its classes.
struct Shelf {
    batch: Arc<MessageBatch>,
    classes: Arc<KnownClasses>,
}

/// The known facts about the classes of all streams.
struct KnownClasses {
    facts: Arc<MessagesFacts>,
    /// For each stream, by class.
    streams: Vec<Vec<OnceLock<ClassFacts>>>,
}

/// The known facts about a class.
struct ClassFacts {
    name: Option<Py<PyString>>,
    id: u64,
    names: NameCache<FieldFinding>,
}

/// Where a field is.
#[derive(Clone, Copy)]
enum FieldFinding {
    Event(usize),
    Packet(usize),
    Nowhere,
}

impl KnownClasses {
    fn new(facts: Arc<MessagesFacts>) -> Self {
        let streams = facts.streams.iter().map(|stream| {
            let class = &facts.traces[stream.trace].class.stream_classes[stream.class];
            class.event_classes.iter().map(|_| OnceLock::new()).collect()
        });
        let streams = streams.collect();
        Self { facts, streams }
    }

    #[inline]
    fn get(&self, py: Python<'_>, stream: usize, class: usize) -> &ClassFacts {
        self.streams[stream][class].get_or_init(|| {
            let of_stream = &self.facts.streams[stream];
            let trace = &self.facts.traces[of_stream.trace].class;
            let event = &trace.stream_classes[of_stream.class].event_classes[class];
            let name = event.name.as_deref().map(|name| PyString::intern(py, name).unbind());
            ClassFacts { name, id: event.id, names: NameCache::default() }
        })
    }
}

/// An event of a trace: its name, its time, and its fields.
///
/// Fields are those of the payload, of the event's contexts, and of its packet's context; if
/// several have the same name, the first of these counts. Values are Python's own: `int`, `float`,
/// `str`, `bool`, `bytes`, `list`, `dict`, and `None` for what an optional does not hold. An
/// enumeration is its number; see `labels`.
#[pyclass(frozen, freelist = 64, module = "kymograph", name = "Event")]
pub(crate) struct Event {
    shelf: Arc<Shelf>,
    at: EventAt,
}

impl Event {
    #[inline]
    fn class(&self, py: Python<'_>) -> &ClassFacts {
        let batch = &self.shelf.batch;
        self.shelf.classes.get(py, batch.stream(self.at), batch.class(self.at))
    }

    #[inline]
    fn field(&self, name: &Bound<'_, PyString>) -> PyResult<Option<FieldRef<'_>>> {
        let batch = &self.shelf.batch;
        let find = |name: &str| {
            let own = batch.class_fields(self.at).position(name).map(FieldFinding::Event);
            let packet = || batch.facts().streams[batch.stream(self.at)].packet_fields.position(name);
            own.or_else(|| packet().map(FieldFinding::Packet)).unwrap_or(FieldFinding::Nowhere)
        };
        Ok(match self.class(name.py()).names.get(name, find)? {
            FieldFinding::Event(field) => batch.field(self.at, field),
            FieldFinding::Packet(field) => batch.packet_field(self.at, field),
            FieldFinding::Nowhere => None,
        })
    }

    /// Every field with its scope and name, in the order of name lookup.
    fn all(&self) -> Vec<(Scope, &str, Option<FieldRef<'_>>)> {
        let batch = &self.shelf.batch;
        let own = batch.class_fields(self.at);
        let mut all = Vec::new();
        // Not through `self`: a class lives as long as the batch.
        let facts = batch.facts();
        for scope in [Scope::EventPayload, Scope::EventSpecificContext, Scope::EventCommonContext] {
            let of_scope = own.fields().iter().enumerate().filter(|(_, field)| field.scope == scope);
            all.extend(of_scope.map(|(index, field)| (scope, field.name.as_str(), batch.field(self.at, index))));
        }
        let packet = facts.streams[batch.stream(self.at)].packet_fields.fields();
        let field = |(index, field)| {
            let field: &kymo_session::messages::ScopeField = field;
            (Scope::PacketContext, field.name.as_str(), batch.packet_field(self.at, index))
        };
        all.extend(packet.iter().enumerate().map(field));
        let mut seen = std::collections::HashSet::new();
        all.retain(|(_, name, _)| seen.insert(*name));
        all
    }
}

#[pymethods]
impl Event {
    /// The name of its class; `None` if the class has no name.
    #[getter]
    #[inline]
    fn name(&self, py: Python<'_>) -> Option<Py<PyString>> {
        self.class(py).name.as_ref().map(|name| name.clone_ref(py))
    }

    /// The id of its class.
    #[getter]
    fn id(&self, py: Python<'_>) -> u64 {
        self.class(py).id
    }

    /// Its time in nanoseconds since the clock's origin; `None` without a clock, or beyond 64 bits.
    #[getter]
    #[inline]
    fn time(&self) -> Option<i64> {
        self.shelf.batch.nanos(self.at)
    }

    /// Its time in cycles of its clock; `None` without a clock.
    #[getter]
    fn cycles(&self) -> Option<u64> {
        let batch = &self.shelf.batch;
        batch.facts().streams[batch.stream(self.at)].clock.map(|_| batch.cycles(self.at))
    }

    /// Number of its data stream, as in `kymo print --format json`.
    #[getter]
    fn stream(&self) -> usize {
        self.shelf.batch.stream(self.at)
    }

    #[inline]
    fn __getitem__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        match self.field(name)? {
            Some(field) => value(py, field),
            None => Err(PyKeyError::new_err(name.clone().unbind())),
        }
    }

    fn __contains__(&self, name: &Bound<'_, PyString>) -> PyResult<bool> {
        Ok(self.field(name)?.is_some())
    }

    fn __len__(&self) -> usize {
        self.all().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.keys(py)?.into_any().call_method0("__iter__")
    }

    /// A field's value, or `default` if there is no such field.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &Bound<'py, PyString>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.field(name)? {
            Some(field) => value(py, field),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// The names of its fields.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.all().into_iter().map(|(_, name, _)| name))
    }

    /// The values of its fields.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.all().into_iter().filter_map(|(.., field)| Some(value(py, field?))).collect()
    }

    /// Its fields as (name, value).
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let pair = |(_, name, field): (Scope, &str, Option<FieldRef<'_>>)| {
            Some(value(py, field?).map(|value| (name.to_owned(), value)))
        };
        self.all().into_iter().filter_map(pair).collect()
    }

    /// The labels of an enumeration's value, or the names of the set bits of a bit map.
    fn labels(&self, name: &Bound<'_, PyString>) -> PyResult<Vec<String>> {
        match self.field(name)? {
            Some(field) => Ok(labels(field)),
            None => Err(PyKeyError::new_err(name.clone().unbind())),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.class(py).name.as_ref().map_or("event".to_owned(), ToString::to_string);
        let time = self.time().map_or(String::new(), |time| format!(" at {time}"));
        let mut fields = Vec::new();
        for (_, name, field) in self.all() {
            if let Some(field) = field {
                fields.push(format!("{name}={}", value(py, field)?.repr()?));
            }
        }
        Ok(format!("<{name}{time}: {}>", fields.join(", ")))
    }
}

/// The labels of an enumeration's value, or the names of bits that are set.
fn labels(field: FieldRef<'_>) -> Vec<String> {
    let mut labels: Vec<String> = match (field.shape(), field.value()) {
        (ColumnShape::BitMap { flags, .. }, MessageValue::Bits(bits)) => {
            let is_set = |flag: &&EnumerationMapping| {
                let mut set = (0..64_i128).filter(|bit| bits >> bit & 1 == 1);
                set.any(|bit| flag.ranges.iter().any(|range| range.contains(bit)))
            };
            flags.iter().filter(is_set).map(|flag| flag.label.clone()).collect()
        }
        _ => field.labels().map(ToOwned::to_owned).collect(),
    };
    let mut seen = std::collections::HashSet::new();
    labels.retain(|label| seen.insert(label.clone()));
    labels
}

/// A field's value as Python's own.
pub(crate) fn value<'py>(py: Python<'py>, field: FieldRef<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match field.value() {
        MessageValue::Unsigned(number) | MessageValue::Bits(number) => PyInt::new(py, number).into_any(),
        MessageValue::Signed(number) => PyInt::new(py, number).into_any(),
        MessageValue::Real(number) => PyFloat::new(py, number).into_any(),
        MessageValue::Boolean(is_true) => PyBool::new(py, is_true).to_owned().into_any(),
        MessageValue::Text(bytes, encoding) => text(py, bytes, encoding)?,
        MessageValue::Blob(bytes) => PyBytes::new(py, bytes).into_any(),
        MessageValue::List(_) => {
            let elements: PyResult<Vec<Bound<'py, PyAny>>> = field.elements().map(|field| value(py, field)).collect();
            PyList::new(py, elements?)?.into_any()
        }
        MessageValue::Structure => {
            let members = PyDict::new(py);
            for (name, member) in field.members() {
                members.set_item(name, value(py, member)?)?;
            }
            members.into_any()
        }
        MessageValue::Optional(None) => py.None().into_bound(py),
        MessageValue::Optional(Some(content)) => value(py, content)?,
        MessageValue::Variant(_, option) => value(py, option)?,
    })
}

/// Text; bytes that are not valid become surrogates, so that `os.fsencode` gives them back.
pub(crate) fn text<'py>(py: Python<'py>, bytes: &[u8], encoding: TextEncoding) -> PyResult<Bound<'py, PyAny>> {
    let (codec, errors) = match encoding {
        TextEncoding::Ascii | TextEncoding::Utf8 => match std::str::from_utf8(bytes) {
            Ok(text) => return Ok(PyString::new(py, text).into_any()),
            Err(_) => ("utf-8", "surrogateescape"),
        },
        TextEncoding::Utf16Be => ("utf-16-be", "replace"),
        TextEncoding::Utf16Le => ("utf-16-le", "replace"),
        TextEncoding::Utf32Be => ("utf-32-be", "replace"),
        TextEncoding::Utf32Le => ("utf-32-le", "replace"),
    };
    PyBytes::new(py, bytes).call_method1("decode", (codec, errors))
}

/// Begins a loop over the events that the words select; returns it with warnings. `at_end` is
/// called with the report, as JSON.
#[pyfunction]
pub(crate) fn messages(
    py: Python<'_>,
    session: &Session,
    line: Vec<String>,
    at_end: Py<PyAny>,
) -> PyResult<(EventLoop, String)> {
    let chosen = words::chosen(session.inner(), &line).map_err(|why| refused(py, why))?;
    let question = MessagesQuestion {
        selection: chosen.selection,
        begin_ns: chosen.begin_ns,
        end_ns: chosen.end_ns,
        ..MessagesQuestion::default()
    };
    let messages = detached(py, || session.inner().messages(&question));
    let messages = messages.map_err(|failure| no_messages(py, &failure))?;
    Ok((EventLoop::new(messages, at_end), chosen.warnings))
}
