//! A trace class in the terms of CTF 2 as a JSON text sequence: one fragment behind each record separator.

use kymo_units::ByteOrder;

use crate::model::{
    Attributes, ClockClass, ClockOrigin, DataStreamClass, DisplayBase, EnumerationMapping, EnvironmentValue,
    EventRecordClass, FieldClass, FieldKind, FieldPath, FixedBits, IntegerMeaning, IntegerRange, TextEncoding,
    TraceClass, Variant,
};
use crate::write::MetadataPart;
use crate::write::pretty::{self, Json};
use crate::write::walk::{self, ScopeOwner};

type Members = Vec<(&'static str, Json)>;

/// Writes a trace class that CTF 2 can express.
pub(crate) fn text(trace: &TraceClass) -> String {
    let mut out = part(trace, MetadataPart::Beginning);
    (0..trace.stream_classes.len()).for_each(|stream| out.push_str(&part(trace, MetadataPart::Stream(stream))));
    for (index, stream) in trace.stream_classes.iter().enumerate() {
        (0..stream.event_classes.len()).for_each(|event| out.push_str(&part(trace, MetadataPart::Event(index, event))));
    }
    out
}

/// Writes one part of it.
pub(crate) fn part(trace: &TraceClass, part: MetadataPart) -> String {
    let mut out = String::new();
    let mut fragment = |members: Members| {
        out.push('\u{1e}');
        pretty::write(&Json::Object(members), 0, &mut out);
        out.push('\n');
    };
    let writer = |stream, event| JsonWriter { trace, owner: ScopeOwner { stream, event } };
    match part {
        MetadataPart::Beginning => {
            fragment(preamble(trace));
            let class = writer(None, None).trace_class();
            if class.len() > 1 {
                fragment(class);
            }
            trace.clock_classes.iter().for_each(|clock| fragment(clock_class(clock)));
        }
        MetadataPart::Stream(index) => {
            fragment(writer(Some(index), None).data_stream_class(&trace.stream_classes[index]));
        }
        MetadataPart::Event(index, event) => {
            let stream = &trace.stream_classes[index];
            fragment(writer(Some(index), Some(event)).event_record_class(stream, &stream.event_classes[event]));
        }
    }
    out
}

fn preamble(trace: &TraceClass) -> Members {
    let mut members = vec![("type", "preamble".into()), ("version", Json::Integer(2))];
    if let Some(uuid) = trace.uuid {
        members.push(("uuid", Json::Array(uuid.0.iter().map(|byte| Json::from(u64::from(*byte))).collect())));
    }
    members
}

fn clock_class(clock: &ClockClass) -> Members {
    let mut members = vec![("type", "clock-class".into()), ("id", clock.id.as_str().into())];
    texts(&mut members, [("namespace", &clock.namespace), ("name", &clock.name), ("uid", &clock.uid)]);
    texts(&mut members, [("description", &clock.description)]);
    members.push(("frequency", clock.frequency_hz.into()));
    if (clock.offset_s, clock.offset_cycles) != (0, 0) {
        let offset =
            vec![("seconds", Json::Integer(clock.offset_s.into())), ("cycles", Json::Integer(clock.offset_cycles))];
        members.push(("offset-from-origin", Json::Object(offset)));
    }
    match &clock.origin {
        ClockOrigin::Unknown => {}
        ClockOrigin::UnixEpoch => members.push(("origin", "unix-epoch".into())),
        ClockOrigin::Custom { namespace, name, uid } => {
            let mut origin = Vec::new();
            texts(&mut origin, [("namespace", namespace)]);
            origin.extend([("name", name.as_str().into()), ("uid", uid.as_str().into())]);
            members.push(("origin", Json::Object(origin)));
        }
    }
    members.extend(clock.precision_cycles.map(|cycles| ("precision", cycles.into())));
    members.extend(clock.accuracy_cycles.map(|cycles| ("accuracy", cycles.into())));
    attributes(&mut members, clock.attributes.as_ref());
    members
}

/// Writes field classes of one scope's owner: locations need the scopes before.
struct JsonWriter<'t> {
    trace: &'t TraceClass,
    owner: ScopeOwner,
}

impl JsonWriter<'_> {
    fn trace_class(&self) -> Members {
        let trace = self.trace;
        let mut members = vec![("type", "trace-class".into())];
        texts(&mut members, [("namespace", &trace.namespace), ("name", &trace.name), ("uid", &trace.uid)]);
        if !trace.environment.is_empty() {
            let entry = |(name, value): &(String, EnvironmentValue)| match value {
                EnvironmentValue::Integer(number) => (name.clone(), Json::Integer(*number)),
                EnvironmentValue::Text(text) => (name.clone(), text.as_str().into()),
            };
            members.push(("environment", Json::Map(trace.environment.iter().map(entry).collect())));
        }
        self.scope(&mut members, "packet-header-field-class", trace.packet_header.as_ref());
        attributes(&mut members, trace.attributes.as_ref());
        members
    }

    fn data_stream_class(&self, stream: &DataStreamClass) -> Members {
        let mut members = vec![("type", "data-stream-class".into()), ("id", stream.id.into())];
        texts(&mut members, [("namespace", &stream.namespace), ("name", &stream.name), ("uid", &stream.uid)]);
        if let Some(clock) = stream.default_clock {
            members.push(("default-clock-class-id", self.trace.clock_classes[clock].id.as_str().into()));
        }
        self.scope(&mut members, "packet-context-field-class", stream.packet_context.as_ref());
        self.scope(&mut members, "event-record-header-field-class", stream.event_header.as_ref());
        self.scope(&mut members, "event-record-common-context-field-class", stream.event_common_context.as_ref());
        attributes(&mut members, stream.attributes.as_ref());
        members
    }

    fn event_record_class(&self, stream: &DataStreamClass, event: &EventRecordClass) -> Members {
        let mut members = vec![
            ("type", "event-record-class".into()),
            ("id", event.id.into()),
            ("data-stream-class-id", stream.id.into()),
        ];
        texts(&mut members, [("namespace", &event.namespace), ("name", &event.name), ("uid", &event.uid)]);
        self.scope(&mut members, "specific-context-field-class", event.specific_context.as_ref());
        self.scope(&mut members, "payload-field-class", event.payload.as_ref());
        attributes(&mut members, event.attributes.as_ref());
        members
    }

    fn scope(&self, members: &mut Members, property: &'static str, class: Option<&FieldClass>) {
        members.extend(class.map(|class| (property, self.class(class))));
    }

    fn class(&self, class: &FieldClass) -> Json {
        let mut members = Vec::new();
        match &class.kind {
            FieldKind::BitArray(bits) => fixed(&mut members, "fixed-length-bit-array", bits),
            FieldKind::Boolean(bits) => fixed(&mut members, "fixed-length-boolean", bits),
            FieldKind::Real(bits) => fixed(&mut members, "fixed-length-floating-point-number", bits),
            FieldKind::BitMap(map) => {
                fixed(&mut members, "fixed-length-bit-map", &map.bits);
                members.push(("flags", mappings(&map.flags)));
            }
            FieldKind::Integer(integer) => {
                let signed = integer.meaning.signed;
                let name = if signed { "fixed-length-signed-integer" } else { "fixed-length-unsigned-integer" };
                fixed(&mut members, name, &integer.bits);
                meaning(&mut members, &integer.meaning);
            }
            FieldKind::VariableInteger(integer) => {
                let signed = integer.meaning.signed;
                let name = if signed { "variable-length-signed-integer" } else { "variable-length-unsigned-integer" };
                members.push(("type", name.into()));
                meaning(&mut members, &integer.meaning);
            }
            FieldKind::NullTerminatedText(encoding) => string(&mut members, "null-terminated-string", *encoding),
            FieldKind::StaticText(text) => {
                string(&mut members, "static-length-string", text.encoding);
                members.push(("length", text.length.into()));
            }
            FieldKind::DynamicText(text) => {
                string(&mut members, "dynamic-length-string", text.encoding);
                members.push(("length-field-location", self.location(&text.length)));
            }
            _ => self.compound(&mut members, &class.kind),
        }
        attributes(&mut members, class.attributes.as_deref());
        Json::Object(members)
    }

    fn compound(&self, members: &mut Members, kind: &FieldKind) {
        match kind {
            FieldKind::StaticBlob(blob) => {
                members.extend([("type", "static-length-blob".into()), ("length", blob.length.into())]);
                media_type(members, &blob.media_type);
                roles(members, &blob.roles);
            }
            FieldKind::DynamicBlob(blob) => {
                members.push(("type", "dynamic-length-blob".into()));
                members.push(("length-field-location", self.location(&blob.length)));
                media_type(members, &blob.media_type);
            }
            FieldKind::Structure(structure) => {
                members.push(("type", "structure".into()));
                minimum_alignment(members, structure.minimum_alignment);
                let member = |member: &crate::model::Member| {
                    let name = member.name.as_str().into();
                    Json::Object(vec![("name", name), ("field-class", self.class(&member.class))])
                };
                if !structure.members.is_empty() {
                    members.push(("member-classes", Json::Array(structure.members.iter().map(member).collect())));
                }
            }
            FieldKind::StaticArray(array) => {
                members.extend([("type", "static-length-array".into()), ("length", array.length.into())]);
                minimum_alignment(members, array.minimum_alignment);
                members.push(("element-field-class", self.class(&array.element)));
            }
            FieldKind::DynamicArray(array) => {
                members.push(("type", "dynamic-length-array".into()));
                members.push(("length-field-location", self.location(&array.length)));
                minimum_alignment(members, array.minimum_alignment);
                members.push(("element-field-class", self.class(&array.element)));
            }
            FieldKind::Optional(optional) => {
                members.push(("type", "optional".into()));
                members.push(("selector-field-location", self.location(&optional.selector)));
                members.extend(optional.ranges.as_ref().map(|it| ("selector-field-ranges", ranges(it))));
                members.push(("field-class", self.class(&optional.content)));
            }
            FieldKind::Variant(variant) => self.variant(members, variant),
            _ => unreachable!("the other kinds have no fields inside"),
        }
    }

    fn variant(&self, members: &mut Members, variant: &Variant) {
        members.push(("type", "variant".into()));
        members.push(("selector-field-location", self.location(&variant.selector)));
        let mut options = Vec::with_capacity(variant.options.len());
        for option in &variant.options {
            let mut one = Vec::new();
            texts(&mut one, [("name", &option.name)]);
            one.push(("selector-field-ranges", ranges(&option.ranges)));
            one.push(("field-class", self.class(&option.class)));
            options.push(Json::Object(one));
        }
        members.push(("options", Json::Array(options)));
    }

    fn location(&self, path: &FieldPath) -> Json {
        let names = walk::root(self.trace, self.owner, path.scope).and_then(|root| walk::names(root, &path.steps));
        let names = names.expect("every path of a trace class leads to a field");
        let names = names.into_iter().map(Json::from).collect();
        Json::Object(vec![("origin", walk::scope_name(path.scope).into()), ("path", Json::Array(names))])
    }
}

fn texts<const N: usize>(members: &mut Members, texts: [(&'static str, &Option<String>); N]) {
    members.extend(texts.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?.into()))));
}

fn attributes(members: &mut Members, attributes: Option<&Attributes>) {
    members.extend(attributes.map(|attributes| ("attributes", Json::Plain(attributes.clone()))));
}

fn fixed(members: &mut Members, name: &'static str, bits: &FixedBits) {
    let little = bits.byte_order == ByteOrder::Little;
    let byte_order = if little { "little-endian" } else { "big-endian" };
    members.extend([("type", name.into()), ("length", u64::from(bits.length).into())]);
    members.push(("byte-order", byte_order.into()));
    if bits.reversed {
        members.push(("bit-order", if little { "last-to-first" } else { "first-to-last" }.into()));
    }
    if bits.alignment > 1 {
        members.push(("alignment", bits.alignment.into()));
    }
}

fn meaning(members: &mut Members, meaning: &IntegerMeaning) {
    let base = match meaning.base {
        DisplayBase::Binary => Some(2),
        DisplayBase::Octal => Some(8),
        DisplayBase::Decimal => None,
        DisplayBase::Hexadecimal => Some(16),
    };
    members.extend(base.map(|base| ("preferred-display-base", Json::Integer(base))));
    if !meaning.mappings.is_empty() {
        members.push(("mappings", mappings(&meaning.mappings)));
    }
    roles(members, &meaning.roles);
}

fn mappings(mappings: &[EnumerationMapping]) -> Json {
    Json::Map(mappings.iter().map(|mapping| (mapping.label.clone(), ranges(&mapping.ranges))).collect())
}

fn ranges(ranges: &[IntegerRange]) -> Json {
    let range = |range: &IntegerRange| Json::Array(vec![Json::Integer(range.lower), Json::Integer(range.upper)]);
    Json::Array(ranges.iter().map(range).collect())
}

fn roles(members: &mut Members, roles: &[crate::model::Role]) {
    if !roles.is_empty() {
        members.push(("roles", Json::Array(roles.iter().map(|role| crate::json::role_name(*role).into()).collect())));
    }
}

fn string(members: &mut Members, name: &'static str, encoding: TextEncoding) {
    members.push(("type", name.into()));
    let encoding = match encoding {
        TextEncoding::Ascii | TextEncoding::Utf8 => return,
        TextEncoding::Utf16Be => "utf-16be",
        TextEncoding::Utf16Le => "utf-16le",
        TextEncoding::Utf32Be => "utf-32be",
        TextEncoding::Utf32Le => "utf-32le",
    };
    members.push(("encoding", encoding.into()));
}

fn media_type(members: &mut Members, media_type: &str) {
    if media_type != "application/octet-stream" {
        members.push(("media-type", media_type.into()));
    }
}

fn minimum_alignment(members: &mut Members, alignment: u64) {
    if alignment > 1 {
        members.push(("minimum-alignment", alignment.into()));
    }
}
