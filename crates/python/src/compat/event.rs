//! Event messages, events and the packets that they lie in, clock snapshots.

use std::sync::Arc;

use kymo_session::messages::{EventAt, Packet};
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use super::plan::{FieldPlan, KnownClass, PlanShelf, PlannedField, StreamPlans, StructurePlan};
use super::structure::{MemberSource, Structure, string};
use super::unreadable;

/// A message with an event.
#[pyclass(frozen, subclass, freelist = 64, name = "_EventMessageConst", module = "kymograph.compat.bt2")]
pub(crate) struct EventMessage {
    pub(super) shelf: Arc<PlanShelf>,
    pub(super) at: EventAt,
}

#[pymethods]
impl EventMessage {
    #[getter]
    fn addr(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize
    }

    #[getter]
    #[inline]
    fn event(&self, py: Python<'_>) -> PyResult<Py<Event>> {
        Py::new(py, Event { shelf: Arc::clone(&self.shelf), at: self.at })
    }

    #[getter]
    #[inline]
    fn default_clock_snapshot(&self, py: Python<'_>) -> PyResult<Py<ClockSnapshot>> {
        let batch = &self.shelf.batch;
        let stream = batch.stream(self.at);
        if !self.shelf.known.streams[stream].has_clock {
            return Err(no_clock());
        }
        let (value, nanos) = (batch.cycles(self.at), batch.nanos(self.at));
        Py::new(py, ClockSnapshot { known: Arc::clone(&self.shelf.known), stream, value, nanos })
    }
}

fn no_clock() -> PyErr {
    pyo3::exceptions::PyValueError::new_err(
        "cannot get default clock snapshot: stream class has no default clock class",
    )
}

impl StreamPlans {
    /// `_PacketConst`
    pub(super) fn packet(&self, py: Python<'_>, stream: usize, packet: &Arc<Packet>) -> PyResult<Py<PyAny>> {
        let known = &self.streams[stream];
        let lock = || known.packet.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((number, object)) = &*lock()
            && *number == packet.number
        {
            return Ok(object.clone_ref(py));
        }
        let fields = &self.facts.streams[stream].packet_fields;
        let context = match self.context(py, stream)? {
            None => None,
            Some(plan) => {
                let values = fields.read(packet);
                let member = |(index, plan): (usize, &Arc<FieldPlan>)| {
                    let values = values.as_ref().ok_or_else(unreadable)?;
                    plan.object(py, self, fields.field(values, index))
                };
                let members: PyResult<Vec<Py<PyAny>>> = plan.members.iter().enumerate().map(member).collect();
                Some(Py::new(py, Structure::new(py, Arc::clone(plan), MemberSource::Members(members?)))?)
            }
        };
        let object = self.maker.call_method1(py, intern!(py, "packet"), (&known.object, context))?;
        *lock() = Some((packet.number, object.clone_ref(py)));
        Ok(object)
    }
}

/// An event.
#[pyclass(frozen, subclass, freelist = 64, name = "_EventConst", module = "kymograph.compat.bt2")]
pub(crate) struct Event {
    shelf: Arc<PlanShelf>,
    at: EventAt,
}

impl Event {
    #[inline]
    fn known(&self, py: Python<'_>) -> PyResult<&Arc<KnownClass>> {
        self.shelf.known.class(py, &self.shelf.batch, self.at)
    }

    fn scope(
        &self,
        py: Python<'_>,
        of: impl Fn(&KnownClass) -> Option<&Arc<StructurePlan>>,
    ) -> PyResult<Option<Py<Structure>>> {
        let Some(plan) = of(self.known(py)?) else { return Ok(None) };
        let content = MemberSource::Scope { shelf: Arc::clone(&self.shelf), at: self.at };
        Py::new(py, Structure::new(py, Arc::clone(plan), content)).map(Some)
    }
}

#[pymethods]
impl Event {
    #[getter]
    fn addr(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize
    }

    #[getter]
    fn cls(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.known(py)?.object.clone_ref(py))
    }

    #[getter]
    #[inline]
    fn name(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.known(py)?.name.clone_ref(py))
    }

    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.known(py)?.id.clone_ref(py))
    }

    #[getter]
    fn packet(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let batch = &self.shelf.batch;
        self.shelf.known.packet(py, batch.stream(self.at), batch.packet(self.at))
    }

    #[getter]
    fn stream(&self, py: Python<'_>) -> Py<PyAny> {
        self.shelf.known.streams[self.shelf.batch.stream(self.at)].object.clone_ref(py)
    }

    #[getter]
    fn common_context_field(&self, py: Python<'_>) -> PyResult<Option<Py<Structure>>> {
        self.scope(py, |class| class.common_context.as_ref())
    }

    #[getter]
    fn specific_context_field(&self, py: Python<'_>) -> PyResult<Option<Py<Structure>>> {
        self.scope(py, |class| class.specific_context.as_ref())
    }

    #[getter]
    #[inline]
    fn payload_field(&self, py: Python<'_>) -> PyResult<Option<Py<Structure>>> {
        self.scope(py, |class| class.payload.as_ref())
    }

    #[inline]
    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let name = string(key)?;
        let (batch, known) = (&self.shelf.batch, &self.shelf.known);
        let class = self.known(py)?;
        let find = |name: &str| {
            let own = batch.class_fields(self.at).position(name).map(PlannedField::Event);
            let packet = || known.facts.streams[batch.stream(self.at)].packet_fields.position(name);
            own.or_else(|| packet().map(PlannedField::Packet)).unwrap_or(PlannedField::Nowhere)
        };
        match class.names.get(name, find)? {
            PlannedField::Event(index) => {
                let field = batch.field(self.at, index).ok_or_else(unreadable)?;
                class.fields[index].object(py, known, field)
            }
            PlannedField::Packet(index) => {
                let plan = known.context(py, batch.stream(self.at))?.ok_or_else(unreadable)?;
                let field = batch.packet_field(self.at, index).ok_or_else(unreadable)?;
                plan.members[index].object(py, known, field)
            }
            PlannedField::Nowhere => Err(PyKeyError::new_err(name.clone().unbind())),
        }
    }
}

/// A clock's value at some time.
#[pyclass(frozen, subclass, freelist = 64, name = "_ClockSnapshotConst", module = "kymograph.compat.bt2")]
pub(crate) struct ClockSnapshot {
    pub(super) known: Arc<StreamPlans>,
    pub(super) stream: usize,
    pub(super) value: u64,
    pub(super) nanos: Option<i64>,
}

impl ClockSnapshot {
    /// That of a stream at these cycles.
    pub(super) fn at(known: &Arc<StreamPlans>, stream: usize, value: u64) -> Self {
        let nanos = known.facts.streams[stream].clock.and_then(|clock| clock.nanos(value));
        Self { known: Arc::clone(known), stream, value, nanos }
    }
}

#[pymethods]
impl ClockSnapshot {
    #[getter]
    fn addr(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize
    }

    #[getter]
    fn clock_class(&self, py: Python<'_>) -> Py<PyAny> {
        self.known.streams[self.stream].clock_class.clone_ref(py)
    }

    #[getter]
    #[inline]
    fn value(&self) -> u64 {
        self.value
    }

    #[getter]
    #[inline]
    fn ns_from_origin(&self, py: Python<'_>) -> PyResult<i64> {
        match self.nanos {
            Some(nanos) => Ok(nanos),
            None => Err(PyErr::from_value(self.known.maker.bind(py).call_method1("too_large", (self.value,))?)),
        }
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let integral = py.import("numbers")?.getattr("Integral")?;
        if !other.is_instance(&integral)? {
            return Ok(py.NotImplemented());
        }
        let other = py.get_type::<pyo3::types::PyInt>().call1((other,))?;
        let value = pyo3::types::PyInt::new(py, self.value);
        value.rich_compare(other, op).map(Bound::unbind)
    }
}
