//! The known facts about streams and classes while messages are read: the Python objects that
//! belong to them, made once.

use std::sync::{Arc, Mutex, OnceLock};

use kymo_session::messages::model::Scope;
use kymo_session::messages::{ColumnShape, MessageBatch, MessagesFacts};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::pull::NameCache;

/// A batch, and the known facts about its classes.
#[derive(Debug)]
pub(crate) struct PlanShelf {
    pub(super) batch: Arc<MessageBatch>,
    pub(super) known: Arc<StreamPlans>,
}

/// The known facts about all streams.
#[derive(Debug)]
pub(super) struct StreamPlans {
    pub(super) facts: Arc<MessagesFacts>,
    pub(super) maker: Py<PyAny>,
    pub(super) streams: Vec<KnownStream>,
}

#[derive(Debug)]
pub(super) struct KnownStream {
    /// `_StreamConst`
    pub(super) object: Py<PyAny>,
    /// `_ClockClassConst` or `None`.
    pub(super) clock_class: Py<PyAny>,
    pub(super) has_clock: bool,
    classes: Vec<OnceLock<Arc<KnownClass>>>,
    context: OnceLock<Option<Arc<StructurePlan>>>,
    /// The packet that was asked for last.
    pub(super) packet: Mutex<Option<(u64, Py<PyAny>)>>,
}

/// The known facts about an event class.
#[derive(Debug)]
pub(super) struct KnownClass {
    /// `_EventClassConst`
    pub(super) object: Py<PyAny>,
    pub(super) name: Py<PyAny>,
    pub(super) id: Py<PyAny>,
    /// In the order of its fields.
    pub(super) fields: Vec<Arc<FieldPlan>>,
    pub(super) names: NameCache<PlannedField>,
    pub(super) payload: Option<Arc<StructurePlan>>,
    pub(super) specific_context: Option<Arc<StructurePlan>>,
    pub(super) common_context: Option<Arc<StructurePlan>>,
}

/// Where a field is.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlannedField {
    Event(usize),
    Packet(usize),
    Nowhere,
}

/// How a field becomes an object.
#[derive(Debug)]
pub(crate) struct FieldPlan {
    pub(super) cls: Py<PyAny>,
    pub(super) children: Vec<Arc<FieldPlan>>,
    /// Of a structure.
    pub(super) structure: Option<Arc<StructurePlan>>,
}

/// A structure's members.
#[derive(Debug)]
pub(crate) struct StructurePlan {
    pub(super) cls: Py<PyAny>,
    pub(super) members: Vec<Arc<FieldPlan>>,
    pub(super) keys: Vec<String>,
    /// In a scope: index of its first field among all of the event class.
    pub(super) first: usize,
    pub(super) names: NameCache<Option<usize>>,
}

impl StreamPlans {
    pub(super) fn new(py: Python<'_>, facts: Arc<MessagesFacts>, maker: Py<PyAny>) -> PyResult<Self> {
        let description = super::describe::facts(py, &facts)?;
        let objects: Vec<Py<PyAny>> = maker.call_method1(py, intern!(py, "streams"), (description,))?.extract(py)?;
        let mut streams = Vec::with_capacity(objects.len());
        for (object, stream) in objects.into_iter().zip(&facts.streams) {
            let class = &facts.traces[stream.trace].class.stream_classes[stream.class];
            let of_class = object.getattr(py, intern!(py, "cls"))?;
            streams.push(KnownStream {
                clock_class: of_class.getattr(py, intern!(py, "default_clock_class"))?,
                object,
                has_clock: stream.clock.is_some(),
                classes: class.event_classes.iter().map(|_| OnceLock::new()).collect(),
                context: OnceLock::new(),
                packet: Mutex::default(),
            });
        }
        Ok(Self { facts, maker, streams })
    }

    #[inline]
    pub(super) fn class(
        &self,
        py: Python<'_>,
        batch: &MessageBatch,
        at: kymo_session::messages::EventAt,
    ) -> PyResult<&Arc<KnownClass>> {
        let stream = &self.streams[batch.stream(at)];
        let class = &stream.classes[batch.class(at)];
        if let Some(known) = class.get() {
            return Ok(known);
        }
        let made = self.make_class(py, batch, at)?;
        Ok(class.get_or_init(|| Arc::new(made)))
    }

    #[cold]
    fn make_class(
        &self,
        py: Python<'_>,
        batch: &MessageBatch,
        at: kymo_session::messages::EventAt,
    ) -> PyResult<KnownClass> {
        let of_stream = self.streams[batch.stream(at)].object.getattr(py, intern!(py, "cls"))?;
        let object = of_stream.call_method1(py, intern!(py, "_event_class"), (batch.class(at),))?;
        let fields = batch.class_fields(at).fields();
        let mut plans = Vec::with_capacity(fields.len());
        let mut scope = |scope: Scope, class: Py<PyAny>| -> PyResult<Option<Arc<StructurePlan>>> {
            if class.is_none(py) {
                return Ok(None);
            }
            let of_scope: Vec<_> = fields.iter().filter(|field| field.scope == scope).collect();
            let members = of_scope.iter().map(|field| (field.name.as_str(), &field.shape));
            let plan = StructurePlan::new(class.bind(py), members, plans.len())?;
            plans.extend(plan.members.iter().cloned());
            Ok(Some(Arc::new(plan)))
        };
        let common_context =
            scope(Scope::EventCommonContext, of_stream.getattr(py, "event_common_context_field_class")?)?;
        let specific_context = scope(Scope::EventSpecificContext, object.getattr(py, "specific_context_field_class")?)?;
        let payload = scope(Scope::EventPayload, object.getattr(py, "payload_field_class")?)?;
        Ok(KnownClass {
            name: object.getattr(py, "name")?,
            id: object.getattr(py, "id")?,
            object,
            fields: plans,
            names: NameCache::default(),
            payload,
            specific_context,
            common_context,
        })
    }

    /// The fields of packets' contexts; `None` if they have none.
    pub(super) fn context(&self, py: Python<'_>, stream: usize) -> PyResult<Option<&Arc<StructurePlan>>> {
        let known = &self.streams[stream];
        if known.context.get().is_none() {
            let class = known.object.getattr(py, "cls")?.getattr(py, "packet_context_field_class")?;
            let made = if class.is_none(py) {
                None
            } else {
                let fields = self.facts.streams[stream].packet_fields.fields();
                let members = fields.iter().map(|field| (field.name.as_str(), &field.shape));
                Some(Arc::new(StructurePlan::new(class.bind(py), members, 0)?))
            };
            let _ = known.context.set(made);
        }
        Ok(known.context.get().and_then(Option::as_ref))
    }
}

impl StructurePlan {
    fn new<'a>(
        cls: &Bound<'_, PyAny>,
        members: impl Iterator<Item = (&'a str, &'a ColumnShape)>,
        first: usize,
    ) -> PyResult<Self> {
        let classes: Vec<Bound<'_, PyAny>> = cls.getattr("_children")?.extract()?;
        let (mut plans, mut keys) = (Vec::new(), Vec::new());
        for ((name, shape), class) in members.zip(classes) {
            keys.push(name.to_owned());
            plans.push(Arc::new(FieldPlan::new(&class, shape)?));
        }
        Ok(Self { cls: cls.clone().unbind(), members: plans, keys, first, names: NameCache::default() })
    }

    /// Index of the member of that name.
    #[inline]
    pub(super) fn position(&self, name: &Bound<'_, PyString>) -> PyResult<Option<usize>> {
        self.names.get(name, |name| self.keys.iter().position(|key| key == name))
    }
}

impl FieldPlan {
    fn new(cls: &Bound<'_, PyAny>, shape: &ColumnShape) -> PyResult<Self> {
        let mut structure = None;
        let shapes: Vec<&ColumnShape> = match shape {
            ColumnShape::Structure { members } => {
                let members = members.iter().map(|(name, shape)| (name.as_str(), shape));
                structure = Some(Arc::new(StructurePlan::new(cls, members, 0)?));
                Vec::new()
            }
            ColumnShape::List { element, .. } => vec![element],
            ColumnShape::Optional { content, .. } => vec![content],
            ColumnShape::Variant { options, .. } => options.iter().map(|(_, shape)| shape).collect(),
            _ => Vec::new(),
        };
        let mut children = Vec::new();
        if !shapes.is_empty() {
            let classes: Vec<Bound<'_, PyAny>> = cls.getattr("_children")?.extract()?;
            for (shape, class) in shapes.into_iter().zip(classes) {
                children.push(Arc::new(Self::new(&class, shape)?));
            }
        }
        Ok(Self { cls: cls.clone().unbind(), children, structure })
    }
}
