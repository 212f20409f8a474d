//! The fragments of CTF 2 metadata, one after the other.

use std::collections::{HashMap, HashSet};

use kymo_units::Uuid;

use crate::budget::{Budget, ClassPlaces, StreamPlaces};
use crate::json::fields::{Aliases, JsonFieldReader};
use crate::json::location::Frames;
use crate::json::object::{JsonObject, Result, Span, array, integer, text, unsigned, wrong};
use crate::json::problem::JsonProblem;
use crate::json::reader::{JsonKind, JsonValue};
use crate::model::{
    ClockClass, ClockOrigin, DataStreamClass, Dialect, EnvironmentValue, EventRecordClass, FieldClass, Scope,
    TraceClass,
};
use crate::said;

/// The understood fragments, and the problems of the others.
pub(crate) fn read(values: &[JsonValue]) -> (TraceClass, ClassPlaces, Vec<(Span, JsonProblem)>) {
    let mut reader = FragmentReader {
        trace: TraceClass::empty(Dialect::Ctf2),
        aliases: Aliases::new(),
        trace_seen: false,
        clocks: HashMap::new(),
        streams: HashMap::new(),
        events: HashSet::new(),
        budget: Budget::default(),
        places: ClassPlaces::default(),
    };
    let mut errors = Vec::new();
    if values.is_empty() {
        errors.push((0..0, JsonProblem::Empty));
    }
    for (index, value) in values.iter().enumerate() {
        if let Err(problem) = reader.fragment(value, index) {
            errors.push(problem);
        }
    }
    if reader.trace.stream_classes.is_empty() {
        reader.trace.stream_classes.push(DataStreamClass::empty(0));
        reader.places.streams.push(StreamPlaces::default());
    }
    (reader.trace, reader.places, errors)
}

struct FragmentReader<'v> {
    trace: TraceClass,
    aliases: Aliases<'v>,
    trace_seen: bool,
    /// Places of clock classes and data stream classes by their ids; ids of event record classes by stream.
    clocks: HashMap<String, usize>,
    streams: HashMap<u64, usize>,
    events: HashSet<(usize, u64)>,
    budget: Budget,
    places: ClassPlaces,
}

impl<'v> FragmentReader<'v> {
    fn fragment(&mut self, value: &'v JsonValue, index: usize) -> Result<()> {
        let mut object = JsonObject::new(value, "fragment")?;
        let kind_value = object.need("type")?;
        let kind = text(kind_value, "type")?;
        object.what.clone_from(&kind);
        if index == 0 && kind != "preamble" {
            return Err((kind_value.span.clone(), JsonProblem::NoPreamble(kind)));
        }
        match kind.as_str() {
            "preamble" if index == 0 => self.preamble(&object)?,
            "preamble" => return Err((value.span.clone(), JsonProblem::Twice("the preamble".into()))),
            "field-class-alias" => self.alias(&object)?,
            "trace-class" => self.trace_class(&object)?,
            "clock-class" => self.clock_class(&object)?,
            "data-stream-class" => self.data_stream_class(&object)?,
            "event-record-class" => self.event_record_class(&object)?,
            _ => return wrong(kind_value, "type", "the type of a fragment"),
        }
        object.finish()
    }

    fn preamble(&mut self, object: &JsonObject<'v>) -> Result<()> {
        let version = object.need("version")?;
        if !matches!(version.kind, JsonKind::Integer(2)) {
            return wrong(version, "version", "2");
        }
        self.trace.uuid = object.get("uuid").map(uuid).transpose()?;
        object.attributes().map(drop)
    }

    fn alias(&mut self, object: &JsonObject<'v>) -> Result<()> {
        let name_value = object.need("name")?;
        let name = text(name_value, "name")?;
        let class = object.need("field-class")?;
        // It is refused here even if it is never used.
        let mut fields = JsonFieldReader::new(&self.aliases, Frames::new(None, Vec::new(), &self.budget), None);
        fields.class(class)?;
        if fields.candidate {
            self.trace.dialect = Dialect::Ctf2Candidate;
        }
        object.attributes()?;
        if self.aliases.insert(name.clone(), class).is_some() {
            return Err((name_value.span.clone(), JsonProblem::Twice(format!("the field class alias `{name}`"))));
        }
        Ok(())
    }

    fn trace_class(&mut self, object: &JsonObject<'v>) -> Result<()> {
        if std::mem::replace(&mut self.trace_seen, true) {
            return Err((object.span.clone(), JsonProblem::Twice("the trace class".into())));
        }
        self.trace.namespace = object.text("namespace")?;
        self.trace.name = object.text("name")?;
        self.trace.uid = object.text("uid")?;
        if let Some(value) = object.get("uuid") {
            self.trace.uuid = Some(uuid(value)?);
            self.trace.dialect = Dialect::Ctf2Candidate;
        }
        if let Some(value) = object.get("environment") {
            for member in JsonObject::new(value, "environment")?.members() {
                let entry = match &member.value.kind {
                    JsonKind::Integer(number) => EnvironmentValue::Integer(*number),
                    JsonKind::Text(text) => EnvironmentValue::Text(text.clone()),
                    _ => return wrong(&member.value, &member.name, "an integer or a string"),
                };
                self.trace.environment.push((member.name.clone(), entry));
            }
        }
        self.trace.attributes = object.attributes()?;
        if let Some(value) = object.get("packet-header-field-class") {
            self.places.packet_header = value.span.clone();
            self.trace.packet_header =
                Some(self.scope(value, "packet-header-field-class", Scope::PacketHeader, Vec::new(), None)?.0);
        }
        Ok(())
    }

    /// The class of a scope, and whether it is written as in the release candidate.
    fn scope(
        &self,
        value: &'v JsonValue,
        property: &str,
        scope: Scope,
        before: Vec<(Scope, &FieldClass)>,
        clock: Option<usize>,
    ) -> Result<(FieldClass, bool)> {
        let mut fields = JsonFieldReader::new(&self.aliases, Frames::new(Some(scope), before, &self.budget), clock);
        let class = fields.scope(value, property)?;
        Ok((class, fields.candidate))
    }

    fn clock_class(&mut self, object: &JsonObject<'v>) -> Result<()> {
        let name = object.text("name")?;
        let id = match object.get("id") {
            Some(value) => text(value, "id")?,
            // The release candidate named clocks and gave them no ids.
            None => match name.clone() {
                Some(name) => {
                    self.trace.dialect = Dialect::Ctf2Candidate;
                    name
                }
                None => {
                    return Err((
                        object.span.clone(),
                        JsonProblem::Missing { what: object.what.clone(), property: "id" },
                    ));
                }
            },
        };
        if self.clocks.contains_key(&id) {
            return Err((object.span.clone(), JsonProblem::Twice(format!("the clock class `{id}`"))));
        }
        let frequency = object.need("frequency")?;
        let frequency_hz = unsigned(frequency, "frequency")?;
        if frequency_hz == 0 {
            return wrong(frequency, "frequency", "1 or more");
        }
        let (offset_s, offset_cycles) = offset(object, frequency_hz)?;
        let clock = ClockClass {
            id,
            namespace: object.text("namespace")?,
            name,
            uid: object.text("uid")?,
            uuid: self.candidate_uuid(object)?,
            description: object.text("description")?,
            frequency_hz,
            precision_cycles: object.unsigned("precision")?,
            accuracy_cycles: object.unsigned("accuracy")?,
            offset_s,
            offset_cycles,
            origin: origin(object)?,
            attributes: object.attributes()?,
        };
        self.clocks.insert(clock.id.clone(), self.trace.clock_classes.len());
        self.trace.clock_classes.push(clock);
        Ok(())
    }

    /// The release candidate's clocks had UUIDs; the final specification gives them a `uid`.
    fn candidate_uuid(&mut self, object: &JsonObject<'v>) -> Result<Option<Uuid>> {
        let Some(value) = object.get("uuid") else { return Ok(None) };
        self.trace.dialect = Dialect::Ctf2Candidate;
        uuid(value).map(Some)
    }

    fn data_stream_class(&mut self, object: &JsonObject<'v>) -> Result<()> {
        let mut stream = DataStreamClass::empty(object.unsigned("id")?.unwrap_or(0));
        if self.streams.contains_key(&stream.id) {
            let what = format!("the data stream class with the id {}", stream.id);
            return Err((object.span.clone(), JsonProblem::Twice(what)));
        }
        stream.namespace = object.text("namespace")?;
        stream.name = object.text("name")?;
        stream.uid = object.text("uid")?;
        let old = object.get("default-clock-class-name");
        if let Some(value) = object.get("default-clock-class-id").or(old) {
            let id = text(value, "default-clock-class-id")?;
            let found = self.clocks.get(&id).copied();
            let unknown = || (value.span.clone(), JsonProblem::Unknown { what: "clock class", name: id.clone() });
            stream.default_clock = Some(found.ok_or_else(unknown)?);
        }
        stream.attributes = object.attributes()?;
        let mut candidate = old.is_some();
        for (property, scope) in STREAM_SCOPES {
            let Some(value) = object.get(property) else { continue };
            let before = self.before(&stream);
            let (class, is_candidate) = self.scope(value, property, scope, before, stream.default_clock)?;
            candidate |= is_candidate;
            match scope {
                Scope::PacketContext => stream.packet_context = Some(class),
                Scope::EventHeader => stream.event_header = Some(class),
                _ => stream.event_common_context = Some(class),
            }
        }
        if candidate {
            self.trace.dialect = Dialect::Ctf2Candidate;
        }
        self.streams.insert(stream.id, self.trace.stream_classes.len());
        self.places.streams.push(StreamPlaces { own: object.span.clone(), events: Vec::new() });
        self.trace.stream_classes.push(stream);
        Ok(())
    }

    /// The scopes that are read before an event's own.
    fn before<'s>(&'s self, stream: &'s DataStreamClass) -> Vec<(Scope, &'s FieldClass)> {
        let scopes = [
            (Scope::PacketHeader, &self.trace.packet_header),
            (Scope::PacketContext, &stream.packet_context),
            (Scope::EventHeader, &stream.event_header),
            (Scope::EventCommonContext, &stream.event_common_context),
        ];
        scopes.into_iter().filter_map(|(scope, class)| Some((scope, class.as_ref()?))).collect()
    }

    fn event_record_class(&mut self, object: &JsonObject<'v>) -> Result<()> {
        let id = object.unsigned("id")?.unwrap_or(0);
        let stream_value = object.get("data-stream-class-id");
        let stream_id = stream_value.map(|value| unsigned(value, "data-stream-class-id")).transpose()?.unwrap_or(0);
        let unknown = || {
            let span = stream_value.map_or_else(|| object.span.clone(), |value| value.span.clone());
            (span, JsonProblem::Unknown { what: "data stream class with the id", name: stream_id.to_string() })
        };
        let place = self.streams.get(&stream_id).copied().ok_or_else(unknown)?;
        let stream = &self.trace.stream_classes[place];
        if self.events.contains(&(place, id)) {
            let what = format!("the event record class with the id {id}");
            return Err((object.span.clone(), JsonProblem::Twice(what)));
        }
        let mut event = EventRecordClass {
            id,
            namespace: object.text("namespace")?,
            name: object.text("name")?,
            uid: object.text("uid")?,
            log_level: None,
            emf_uri: None,
            specific_context: None,
            payload: None,
            attributes: object.attributes()?,
        };
        event.log_level = said::log_level(event.attributes.as_ref());
        event.emf_uri = said::emf_uri(event.attributes.as_ref());
        let mut before = self.before(stream);
        let mut candidate = false;
        if let Some(value) = object.get("specific-context-field-class") {
            let property = "specific-context-field-class";
            let (class, old) = self.scope(value, property, Scope::EventSpecificContext, before.clone(), None)?;
            event.specific_context = Some(class);
            candidate |= old;
        }
        if let Some(class) = &event.specific_context {
            before.push((Scope::EventSpecificContext, class));
        }
        if let Some(value) = object.get("payload-field-class") {
            let (class, old) = self.scope(value, "payload-field-class", Scope::EventPayload, before, None)?;
            event.payload = Some(class);
            candidate |= old;
        }
        if candidate {
            self.trace.dialect = Dialect::Ctf2Candidate;
        }
        self.events.insert((place, id));
        self.places.streams[place].events.push(object.span.clone());
        self.trace.stream_classes[place].event_classes.push(event);
        Ok(())
    }
}

const STREAM_SCOPES: [(&str, Scope); 3] = [
    ("packet-context-field-class", Scope::PacketContext),
    ("event-record-header-field-class", Scope::EventHeader),
    ("event-record-common-context-field-class", Scope::EventCommonContext),
];

fn uuid(value: &JsonValue) -> Result<Uuid> {
    let expected = "16 integers from 0 to 255";
    let values = array(value, "uuid")?;
    let mut bytes = [0; 16];
    if values.len() != bytes.len() {
        return wrong(value, "uuid", expected);
    }
    for (byte, value) in bytes.iter_mut().zip(values) {
        *byte = u8::try_from(integer(value, "uuid")?).or_else(|_| wrong(value, "uuid", expected))?;
    }
    Ok(Uuid(bytes))
}

fn offset(object: &JsonObject<'_>, frequency_hz: u64) -> Result<(i64, i128)> {
    let Some(value) = object.get("offset-from-origin") else { return Ok((0, 0)) };
    let offset = JsonObject::new(value, "offset-from-origin")?;
    let seconds = match offset.get("seconds") {
        None => 0,
        Some(value) => {
            let seconds = integer(value, "seconds")?;
            i64::try_from(seconds).or_else(|_| wrong(value, "seconds", "a signed 64-bit integer"))?
        }
    };
    let cycles = match offset.get("cycles") {
        None => 0,
        Some(value) => match unsigned(value, "cycles")? {
            cycles if cycles >= frequency_hz => return wrong(value, "cycles", "below the frequency"),
            cycles => i128::from(cycles),
        },
    };
    offset.finish()?;
    Ok((seconds, cycles))
}

fn origin(object: &JsonObject<'_>) -> Result<ClockOrigin> {
    let Some(value) = object.get("origin") else { return Ok(ClockOrigin::Unknown) };
    if let JsonKind::Text(name) = &value.kind {
        return if name == "unix-epoch" {
            Ok(ClockOrigin::UnixEpoch)
        } else {
            wrong(value, "origin", "`unix-epoch` or an object")
        };
    }
    let origin = JsonObject::new(value, "origin")?;
    let custom = ClockOrigin::Custom {
        namespace: origin.text("namespace")?,
        name: text(origin.need("name")?, "name")?,
        uid: text(origin.need("uid")?, "uid")?,
    };
    origin.finish()?;
    Ok(custom)
}
