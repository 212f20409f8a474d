//! Traces, streams and classes as plain dictionaries, from which Python's part makes its objects.

use kymo_session::messages::model::{
    Attributes, ClockClass, DataStreamClass, Dialect, DisplayBase, EnumerationMapping, EnvironmentValue,
    EventRecordClass, FieldClass, FieldKind, FieldPath, FieldPathStep, IntegerMeaning, IntegerRange, Scope,
    display_name,
};
use kymo_session::messages::{MessageTrace, MessagesFacts, StreamTraits};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::unreadable;
use crate::session::Session;

/// Descriptions of the traces of a session, with their metadata texts and the times of their
/// streams.
#[pyfunction]
pub(super) fn describe<'py>(py: Python<'py>, session: &Session) -> Dict<'py> {
    let session = session.inner();
    let all = facts(py, &session.messages_facts())?;
    let traces = all.as_any().get_item("traces")?;
    for number in 0..traces.len()? {
        traces.get_item(number)?.set_item("text", session.metadata_text(number))?;
    }
    let streams = all.as_any().get_item("streams")?;
    for (number, span) in session.stream_spans().into_iter().enumerate() {
        let stream = streams.get_item(number)?;
        stream.set_item("begin_ns", span.map(|span| span.0))?;
        stream.set_item("end_ns", span.map(|span| span.1))?;
    }
    Ok(all)
}

type Dict<'py> = PyResult<Bound<'py, PyDict>>;

/// All traces and all streams.
pub(super) fn facts<'py>(py: Python<'py>, facts: &MessagesFacts) -> Dict<'py> {
    let traces: PyResult<Vec<_>> = facts.traces.iter().map(|trace| self::trace(py, trace)).collect();
    let mut streams = Vec::new();
    for stream in &facts.streams {
        let made = PyDict::new(py);
        made.set_item("trace", stream.trace)?;
        made.set_item("class", stream.class)?;
        made.set_item("id", stream.id)?;
        made.set_item("has_id", stream.has_id)?;
        made.set_item("path", stream.path.display().to_string())?;
        streams.push(made);
    }
    let all = PyDict::new(py);
    all.set_item("traces", traces?)?;
    all.set_item("streams", streams)?;
    Ok(all)
}

fn trace<'py>(py: Python<'py>, trace: &MessageTrace) -> Dict<'py> {
    let class = &trace.class;
    let made = PyDict::new(py);
    made.set_item("path", trace.path.display().to_string())?;
    made.set_item("name", &trace.host_and_folder)?;
    made.set_item("uuid", class.uuid.map(|uuid| uuid.to_string()))?;
    let environment = PyList::empty(py);
    for (name, value) in &class.environment {
        match value {
            EnvironmentValue::Integer(number) => environment.append((name, *number))?,
            EnvironmentValue::Text(text) => environment.append((name, text))?,
        }
    }
    made.set_item("environment", environment)?;
    made.set_item("attributes", attributes(py, class.attributes.as_ref())?)?;
    let clocks = class.clock_classes.iter().zip(&trace.unix_clocks);
    let clocks: PyResult<Vec<_>> =
        clocks.map(|(clock, unix)| self::clock(py, class.dialect, clock, *unix, trace.clock_shift_ns)).collect();
    made.set_item("clocks", clocks?)?;
    let streams: PyResult<Vec<_>> =
        class.stream_classes.iter().map(|stream| stream_class(py, class.dialect, stream)).collect();
    made.set_item("stream_classes", streams?)?;
    Ok(made)
}

fn clock<'py>(py: Python<'py>, dialect: Dialect, clock: &ClockClass, is_unix: bool, shift_ns: i64) -> Dict<'py> {
    let made = PyDict::new(py);
    let name = clock.name.as_ref().or((dialect == Dialect::Ctf1).then_some(&clock.id));
    made.set_item("name", name)?;
    made.set_item("description", &clock.description)?;
    made.set_item("frequency", clock.frequency_hz)?;
    made.set_item("precision", clock.precision_cycles.unwrap_or(0))?;
    let (seconds, cycles) = clock.offset_ahead(shift_ns);
    made.set_item("offset_s", seconds)?;
    made.set_item("offset_cycles", cycles)?;
    made.set_item("unix", is_unix)?;
    made.set_item("uuid", clock.uuid.map(|uuid| uuid.to_string()))?;
    made.set_item("attributes", attributes(py, clock.attributes.as_ref())?)?;
    Ok(made)
}

/// As JSON, which Python reads.
fn attributes<'py>(py: Python<'py>, attributes: Option<&Attributes>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let parse = |attributes: &Attributes| py.import("json")?.call_method1("loads", (attributes.to_string(),));
    attributes.map(parse).transpose()
}

fn stream_class<'py>(py: Python<'py>, dialect: Dialect, stream: &DataStreamClass) -> Dict<'py> {
    let scopes = [stream.packet_context.as_ref(), stream.event_common_context.as_ref(), None, None];
    let say = Describer { py, dialect, scopes };
    let made = PyDict::new(py);
    made.set_item("id", stream.id)?;
    made.set_item("name", &stream.name)?;
    made.set_item("clock", stream.default_clock)?;
    let traits = StreamTraits::of(stream);
    made.set_item("packet_begin", traits.packet_begin)?;
    made.set_item("packet_end", traits.packet_end)?;
    made.set_item("discarded_events", traits.discarded_events)?;
    made.set_item("discarded_packets", traits.discarded_packets)?;
    made.set_item("losses_have_times", traits.losses_have_times())?;
    let context = stream.packet_context.as_ref().filter(|class| shows_any(class));
    made.set_item("packet_context", context.map(|class| say.field_class(class, true)).transpose()?)?;
    made.set_item("common_context", say.optional(stream.event_common_context.as_ref())?)?;
    let events: PyResult<Vec<_>> = stream.event_classes.iter().map(|event| event_class(&say, event)).collect();
    made.set_item("events", events?)?;
    made.set_item("attributes", attributes(py, stream.attributes.as_ref())?)?;
    Ok(made)
}

fn event_class<'py>(of_stream: &Describer<'py, '_>, event: &EventRecordClass) -> Dict<'py> {
    let [packet, common, ..] = of_stream.scopes;
    let scopes = [packet, common, event.specific_context.as_ref(), event.payload.as_ref()];
    let say = Describer { scopes, ..*of_stream };
    let made = PyDict::new(say.py);
    made.set_item("id", event.id)?;
    made.set_item("name", &event.name)?;
    made.set_item("log_level", event.log_level)?;
    made.set_item("emf_uri", &event.emf_uri)?;
    made.set_item("specific_context", say.optional(event.specific_context.as_ref())?)?;
    made.set_item("payload", say.optional(event.payload.as_ref())?)?;
    made.set_item("attributes", attributes(say.py, event.attributes.as_ref())?)?;
    Ok(made)
}

/// Describes fields.
struct Describer<'py, 'a> {
    py: Python<'py>,
    dialect: Dialect,
    /// The scopes that paths start from: packet context, common context, specific context, payload.
    scopes: [Option<&'a FieldClass>; 4],
}

impl<'py> Describer<'py, '_> {
    fn optional(&self, class: Option<&FieldClass>) -> PyResult<Option<Bound<'py, PyDict>>> {
        class.map(|class| self.field_class(class, false)).transpose()
    }

    fn field_class(&self, class: &FieldClass, hides_roles: bool) -> Dict<'py> {
        let made = PyDict::new(self.py);
        made.set_item("attributes", attributes(self.py, class.attributes.as_deref())?)?;
        let kind = match &class.kind {
            FieldKind::BitArray(bits) => {
                made.set_item("length", bits.length)?;
                "bit_array"
            }
            FieldKind::BitMap(map) => {
                made.set_item("length", map.bits.length)?;
                made.set_item("mappings", self.mappings(&map.flags)?)?;
                "bit_array"
            }
            FieldKind::Boolean(_) => "bool",
            FieldKind::Integer(integer) => self.integer(&made, integer.bits.length, &integer.meaning)?,
            FieldKind::VariableInteger(integer) => self.integer(&made, 64, &integer.meaning)?,
            FieldKind::Real(bits) if bits.length == 32 => "single_real",
            FieldKind::Real(_) => "double_real",
            FieldKind::NullTerminatedText(_) | FieldKind::StaticText(_) | FieldKind::DynamicText(_) => "string",
            FieldKind::StaticBlob(blob) => {
                made.set_item("length", blob.length)?;
                made.set_item("media_type", &blob.media_type)?;
                "static_blob"
            }
            FieldKind::DynamicBlob(blob) => {
                made.set_item("path", self.path(&blob.length)?)?;
                made.set_item("media_type", &blob.media_type)?;
                "dynamic_blob"
            }
            _ => self.compound(&made, &class.kind, hides_roles)?,
        };
        made.set_item("kind", kind)?;
        Ok(made)
    }

    /// A class that consists of others.
    fn compound(&self, made: &Bound<'py, PyDict>, kind: &FieldKind, hides_roles: bool) -> PyResult<&'static str> {
        Ok(match kind {
            FieldKind::Structure(structure) => {
                let members = PyList::empty(self.py);
                for member in structure.members.iter().filter(|member| !hides_roles || !has_roles(&member.class)) {
                    let name = display_name(self.dialect, &member.name);
                    members.append((name, self.field_class(&member.class, false)?))?;
                }
                made.set_item("members", members)?;
                "structure"
            }
            FieldKind::StaticArray(array) => {
                made.set_item("length", array.length)?;
                made.set_item("element", self.field_class(&array.element, false)?)?;
                "static_array"
            }
            FieldKind::DynamicArray(array) => {
                made.set_item("path", self.path(&array.length)?)?;
                made.set_item("element", self.field_class(&array.element, false)?)?;
                "dynamic_array"
            }
            FieldKind::Optional(optional) => {
                made.set_item("path", self.path(&optional.selector)?)?;
                made.set_item("signed", self.is_signed(&optional.selector))?;
                made.set_item("ranges", optional.ranges.as_ref().map(|ranges| self.ranges(ranges)).transpose()?)?;
                made.set_item("content", self.field_class(&optional.content, false)?)?;
                "option"
            }
            FieldKind::Variant(variant) => {
                made.set_item("path", self.path(&variant.selector)?)?;
                made.set_item("signed", self.is_signed(&variant.selector))?;
                let options = PyList::empty(self.py);
                for option in &variant.options {
                    let name = option.name.as_deref().map(|name| display_name(self.dialect, name));
                    options.append((name, self.field_class(&option.class, false)?, self.ranges(&option.ranges)?))?;
                }
                made.set_item("options", options)?;
                "variant"
            }
            _ => return Err(unreadable()),
        })
    }

    fn integer(&self, made: &Bound<'py, PyDict>, bits: u32, meaning: &IntegerMeaning) -> PyResult<&'static str> {
        made.set_item("range", bits)?;
        let base = match meaning.base {
            DisplayBase::Binary => 2,
            DisplayBase::Octal => 8,
            DisplayBase::Decimal => 10,
            DisplayBase::Hexadecimal => 16,
        };
        made.set_item("base", base)?;
        if meaning.enumeration {
            made.set_item("mappings", self.mappings(&meaning.mappings)?)?;
        }
        Ok(match (meaning.signed, meaning.enumeration) {
            (false, false) => "unsigned_integer",
            (true, false) => "signed_integer",
            (false, true) => "unsigned_enumeration",
            (true, true) => "signed_enumeration",
        })
    }

    fn mappings(&self, mappings: &[EnumerationMapping]) -> PyResult<Bound<'py, PyList>> {
        let made = PyList::empty(self.py);
        for mapping in mappings {
            made.append((&mapping.label, self.ranges(&mapping.ranges)?))?;
        }
        Ok(made)
    }

    fn ranges(&self, ranges: &[IntegerRange]) -> PyResult<Bound<'py, PyList>> {
        PyList::new(self.py, ranges.iter().map(|range| (range.lower, range.upper)))
    }

    /// Whether the field of a path is a signed integer.
    fn is_signed(&self, path: &FieldPath) -> bool {
        let scope = match path.scope {
            Scope::PacketContext => self.scopes[0],
            Scope::EventCommonContext => self.scopes[1],
            Scope::EventSpecificContext => self.scopes[2],
            Scope::EventPayload => self.scopes[3],
            Scope::PacketHeader | Scope::EventHeader => None,
        };
        let field = scope.and_then(|class| class.at(&path.steps));
        field.and_then(FieldClass::integer_meaning).is_some_and(|meaning| meaning.signed)
    }

    /// A path to a field as (scope, steps): a number, or the name of the part that is entered;
    /// `None` where the field is not visible.
    fn path(&self, path: &FieldPath) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let scope = match path.scope {
            Scope::PacketHeader | Scope::EventHeader => return Ok(None),
            Scope::PacketContext => "packet_context",
            Scope::EventCommonContext => "event_common_context",
            Scope::EventSpecificContext => "event_specific_context",
            Scope::EventPayload => "event_payload",
        };
        let steps = PyList::empty(self.py);
        for step in &path.steps {
            match step {
                FieldPathStep::Member(index) | FieldPathStep::Option(index) => steps.append(index)?,
                FieldPathStep::Content => steps.append("content")?,
                FieldPathStep::Element => steps.append("element")?,
                FieldPathStep::Selected(_) => break,
            }
        }
        Ok(Some((scope, steps).into_pyobject(self.py)?))
    }
}

/// Whether readers of packets use the field for themselves.
fn has_roles(class: &FieldClass) -> bool {
    !class.roles().is_empty()
}

/// Whether packets' contexts of that class have anything to show; those that are empty by themselves do.
fn shows_any(class: &FieldClass) -> bool {
    match &class.kind {
        FieldKind::Structure(structure) => {
            structure.members.is_empty() || structure.members.iter().any(|member| !has_roles(&member.class))
        }
        _ => true,
    }
}
