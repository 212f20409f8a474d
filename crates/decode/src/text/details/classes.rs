//! Classes in words: the block at the beginning of a trace's details.
//!
//! Readers of packets use some fields for themselves; those are no part of the description, and
//! paths to fields count only the others.

use kymo_format::model::{
    Attributes, ClockClass, DataStreamClass, Dialect, DisplayBase, EnumerationMapping, EventRecordClass, FieldClass,
    FieldKind, FieldPath, FieldPathStep, FixedBits, IntegerMeaning, IntegerRange, Optional, Role, Scope, Structure,
    TraceClass, Variant, display_name,
};
use kymo_schema::level::LogLevel;

use super::{grouped, grouped_unsigned};
use crate::scopes::Scopes;
use crate::text::paint::{Paint, Tone};

/// Facts that are missing from a clock class alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockFacts {
    /// Its times count from the Unix epoch.
    pub is_unix: bool,
    /// How far it is shifted, in nanoseconds.
    pub shift_ns: i64,
}

/// The properties of a data stream's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct StreamTraits {
    /// There is a clock.
    pub clock: bool,
    /// Packets have a begin time.
    pub packet_begin: bool,
    /// Packets have an end time.
    pub packet_end: bool,
    /// Packets count discarded events.
    pub discarded_events: bool,
    /// Packets are numbered.
    pub discarded_packets: bool,
}

impl StreamTraits {
    /// The properties of a data stream class' messages.
    #[must_use]
    pub fn of(stream: &DataStreamClass) -> Self {
        let has = |role| stream.packet_context.as_ref().is_some_and(|class| has_role(class, role));
        let clock = stream.default_clock.is_some();
        Self {
            clock,
            packet_begin: clock && has(Role::DefaultClockTimestamp),
            packet_end: clock && has(Role::PacketEndDefaultClockTimestamp),
            discarded_events: has(Role::DiscardedEventRecordCounterSnapshot),
            discarded_packets: has(Role::PacketSequenceNumber),
        }
    }

    /// Losses have a beginning and an end.
    #[must_use]
    pub fn losses_have_times(self) -> bool {
        self.packet_begin && self.packet_end
    }
}

fn has_role(class: &FieldClass, role: Role) -> bool {
    class.roles().contains(&role)
        || match &class.kind {
            FieldKind::Structure(structure) => structure.members.iter().any(|member| has_role(&member.class, role)),
            _ => false,
        }
}

/// The description of a trace class with everything in it.
#[must_use]
pub fn trace_class(trace: &TraceClass, clocks: &[ClockFacts], paint: Paint) -> String {
    let mut text = ClassDescription { trace, paint, text: String::new(), indent: 0, scopes: Scopes::of_trace(trace) };
    text.push(&paint.text(Tone::BrightYellow, "Trace class"));
    text.push(":\n");
    text.indent = 2;
    text.attributes_line(trace.attributes.as_ref());
    let mut streams: Vec<&DataStreamClass> = trace.stream_classes.iter().collect();
    streams.sort_by_key(|stream| stream.id);
    for stream in streams {
        let clock = stream.default_clock.map(|clock| (&trace.clock_classes[clock], clocks.get(clock)));
        text.stream_class(stream, clock.map(|(class, facts)| (class, facts.copied().unwrap_or_default())));
    }
    text.text
}

struct ClassDescription<'a> {
    trace: &'a TraceClass,
    paint: Paint,
    text: String,
    indent: usize,
    /// The scopes where paths of the described class start.
    scopes: Scopes<'a>,
}

impl<'a> ClassDescription<'a> {
    fn push(&mut self, text: &str) {
        self.text += text;
    }

    fn bold(&mut self, text: &str) {
        self.text += &self.paint.text(Tone::Bold, text);
    }

    fn indented(&mut self, tone: Tone, text: &str) {
        self.text.extend(std::iter::repeat_n(' ', self.indent));
        self.text += &self.paint.text(tone, text);
    }

    fn property(&mut self, name: &str, value: &str) {
        self.indented(Tone::Magenta, name);
        self.push(": ");
        self.bold(value);
        self.push("\n");
    }

    fn truth(&mut self, name: &str, value: bool) {
        self.indented(Tone::Magenta, name);
        let (tone, word) = if value { (Tone::BrightGreen, "Yes") } else { (Tone::BrightRed, "No") };
        self.text += &format!(": {}\n", self.paint.text(tone, word));
    }

    fn stream_class(&mut self, stream: &'a DataStreamClass, clock: Option<(&ClockClass, ClockFacts)>) {
        self.scopes = Scopes::of_stream(self.trace, stream);
        self.indented(Tone::BrightYellow, "Stream class");
        if let Some(name) = &stream.name {
            let name = self.paint.text(Tone::Bold, name);
            self.text += &format!(" `{name}`");
        }
        self.id_line(stream.id);
        self.indent += 2;
        self.attributes_line(stream.attributes.as_ref());
        self.traits(StreamTraits::of(stream));
        if let Some((clock, facts)) = clock {
            self.indented(Tone::Magenta, "Default clock class");
            self.push(":\n");
            self.indent += 2;
            self.clock_class(clock, facts);
            self.indent -= 2;
        }
        self.scope("Packet context field class", Scope::PacketContext);
        self.scope("Event common context field class", Scope::EventCommonContext);
        let mut events: Vec<&EventRecordClass> = stream.event_classes.iter().collect();
        events.sort_by_key(|event| event.id);
        for event in events {
            self.event_class(stream, event);
        }
        self.indent -= 2;
    }

    fn id_line(&mut self, id: u64) {
        let id = self.paint.text(Tone::Bold, &grouped_unsigned(id));
        self.text += &format!(" (ID {id}):\n");
    }

    fn traits(&mut self, traits: StreamTraits) {
        self.truth("Supports packets", true);
        self.truth("Packets have beginning default clock snapshot", traits.packet_begin);
        self.truth("Packets have end default clock snapshot", traits.packet_end);
        self.truth("Supports discarded events", traits.discarded_events);
        if traits.discarded_events {
            self.truth("Discarded events have default clock snapshots", traits.losses_have_times());
        }
        self.truth("Supports discarded packets", traits.discarded_packets);
        if traits.discarded_packets {
            self.truth("Discarded packets have default clock snapshots", traits.losses_have_times());
        }
    }

    fn clock_class(&mut self, clock: &ClockClass, facts: ClockFacts) {
        let name = clock.name.as_ref().or((self.trace.dialect == Dialect::Ctf1).then_some(&clock.id));
        if let Some(name) = name {
            self.property("Name", name);
        }
        self.attributes_line(clock.attributes.as_ref());
        if let Some(description) = &clock.description {
            self.property("Description", description);
        }
        self.property("Frequency (Hz)", &grouped_unsigned(clock.frequency_hz));
        self.property("Precision (cycles)", &grouped_unsigned(clock.precision_cycles.unwrap_or(0)));
        let (seconds, cycles) = clock.offset_ahead(facts.shift_ns);
        self.property("Offset (s)", &grouped(seconds));
        self.property("Offset (cycles)", &grouped_unsigned(cycles));
        self.truth("Origin is Unix epoch", facts.is_unix);
        if let Some(uuid) = clock.uuid {
            self.property("UUID", &uuid.to_string());
        }
    }

    fn event_class(&mut self, stream: &'a DataStreamClass, event: &'a EventRecordClass) {
        self.scopes = Scopes::of_stream(self.trace, stream).of_event(event);
        self.indented(Tone::BrightYellow, "Event class");
        if let Some(name) = &event.name {
            self.text += &format!(" `{}`", self.paint.text(Tone::Green, name));
        }
        self.id_line(event.id);
        self.indent += 2;
        self.attributes_line(event.attributes.as_ref());
        if let Some(level) = event.log_level.and_then(LogLevel::of) {
            self.property("Log level", level.title);
        }
        if let Some(uri) = &event.emf_uri {
            self.property("EMF URI", uri);
        }
        self.scope("Specific context field class", Scope::EventSpecificContext);
        self.scope("Payload field class", Scope::EventPayload);
        self.indent -= 2;
    }

    fn scope(&mut self, name: &str, scope: Scope) {
        let Some(class) = self.scopes.get(scope) else { return };
        let hides_roles = scope == Scope::PacketContext;
        if hides_roles && !shows_any(class) {
            return;
        }
        self.indented(Tone::Magenta, name);
        self.push(": ");
        self.field_class(class, hides_roles);
        self.push("\n");
    }

    fn field_class(&mut self, class: &'a FieldClass, hides_roles: bool) {
        let name = self.paint.text(Tone::Blue, &type_name(class, self.scopes));
        self.push(&name);
        match &class.kind {
            FieldKind::Integer(integer) => self.integer(integer.bits.length, &integer.meaning),
            FieldKind::VariableInteger(integer) => self.integer(64, &integer.meaning),
            FieldKind::BitMap(map) => {
                self.push(" (");
                self.bold(&format!("{}-bit", map.bits.length));
                self.count(", ", map.flags.len(), "flag");
                self.push(")");
                self.mappings(&map.flags);
            }
            FieldKind::Structure(structure) => self.structure(structure, hides_roles),
            FieldKind::StaticArray(array) => {
                let length = self.paint.text(Tone::Bold, &grouped_unsigned(array.length));
                self.text += &format!(" (Length {length})");
                self.part("Element", &array.element);
            }
            FieldKind::DynamicArray(array) => {
                if names_field(&array.length) {
                    self.push(" (Length field path ");
                    self.path(&array.length);
                    self.push(")");
                }
                self.part("Element", &array.element);
            }
            FieldKind::Optional(optional) => self.optional(optional),
            FieldKind::Variant(variant) => self.variant(variant),
            _ => {}
        }
    }

    fn integer(&mut self, bits: u32, meaning: &IntegerMeaning) {
        let base = match meaning.base {
            DisplayBase::Binary => "2",
            DisplayBase::Octal => "8",
            DisplayBase::Decimal => "10",
            DisplayBase::Hexadecimal => "16",
        };
        let bits = self.paint.text(Tone::Bold, &format!("{bits}-bit"));
        let base = self.paint.text(Tone::Bold, base);
        self.text += &format!(" ({bits}, Base {base}");
        if !meaning.enumeration {
            return self.push(")");
        }
        let mappings = merged(&meaning.mappings);
        self.count(", ", mappings.len(), "mapping");
        self.push(")");
        self.mappings(&mappings);
    }

    /// `3 mappings`
    fn count(&mut self, before: &str, count: usize, what: &str) {
        self.push(before);
        self.bold(&grouped_unsigned(count as u64));
        let plural = if count == 1 { "" } else { "s" };
        self.text += &format!(" {what}{plural}");
    }

    /// Labels in their own order, each with its ranges.
    fn mappings(&mut self, mappings: &[EnumerationMapping]) {
        let mut mappings: Vec<&EnumerationMapping> = mappings.iter().collect();
        mappings.sort_by(|one, other| one.label.cmp(&other.label));
        if !mappings.is_empty() {
            self.push(":");
        }
        self.indent += 2;
        for mapping in mappings {
            self.push("\n");
            self.indented(Tone::Magenta, &mapping.label);
            self.push(":");
            self.ranges(&mapping.ranges);
        }
        self.indent -= 2;
    }

    fn ranges(&mut self, ranges: &[IntegerRange]) {
        let mut ranges = ranges.to_vec();
        ranges.sort_by_key(|range| (range.lower, range.upper));
        for range in ranges {
            // Babeltrace shows them as signed numbers in every case.
            let lower = self.paint.text(Tone::Bold, &grouped(range.lower as i64));
            self.text += &format!(" [{lower}");
            if range.upper != range.lower {
                let upper = self.paint.text(Tone::Bold, &grouped(range.upper as i64));
                self.text += &format!(", {upper}");
            }
            self.push("]");
        }
    }

    fn structure(&mut self, structure: &'a Structure, hides_roles: bool) {
        let shown = |class: &FieldClass| !hides_roles || class.roles().is_empty();
        let members: Vec<_> = structure.members.iter().filter(|member| shown(&member.class)).collect();
        self.count(" (", members.len(), "member");
        self.push(if members.is_empty() { ")" } else { "):" });
        self.indent += 2;
        for member in members {
            self.push("\n");
            self.indented(Tone::Cyan, display_name(self.trace.dialect, &member.name));
            self.push(": ");
            self.field_class(&member.class, false);
        }
        self.indent -= 2;
    }

    /// A class inside another one, on a line of its own.
    fn part(&mut self, name: &str, class: &'a FieldClass) {
        self.push(":\n");
        self.indent += 2;
        self.indented(Tone::Magenta, name);
        self.push(": ");
        self.field_class(class, false);
        self.indent -= 2;
    }

    fn optional(&mut self, optional: &'a Optional) {
        if names_field(&optional.selector) {
            self.push(" (Selector field path ");
            self.path(&optional.selector);
            self.push(")");
        }
        self.push(":\n");
        self.indent += 2;
        match &optional.ranges {
            None => self.truth("Selector is reversed", false),
            Some(ranges) => {
                self.indented(Tone::Magenta, "Selector ranges");
                self.push(":");
                self.ranges(ranges);
                self.push("\n");
            }
        }
        self.indented(Tone::Magenta, "Content");
        self.push(": ");
        self.field_class(&optional.content, false);
        self.indent -= 2;
    }

    fn variant(&mut self, variant: &'a Variant) {
        let selected = names_field(&variant.selector);
        self.count(" (", variant.options.len(), "option");
        if selected {
            self.push(", Selector field path ");
            self.path(&variant.selector);
        }
        self.push(if variant.options.is_empty() { ")" } else { "):" });
        self.indent += 2;
        for option in &variant.options {
            self.push("\n");
            let name = option.name.as_deref().unwrap_or_default();
            self.indented(Tone::Cyan, display_name(self.trace.dialect, name));
            self.push(":");
            if selected {
                self.ranges(&option.ranges);
                self.push(":");
            }
            self.push(" ");
            self.field_class(&option.class, false);
        }
        self.indent -= 2;
    }

    fn path(&mut self, path: &FieldPath) {
        let scope = match path.scope {
            Scope::PacketHeader => "Packet header",
            Scope::PacketContext => "Packet context",
            Scope::EventHeader => "Event header",
            Scope::EventCommonContext => "Event common context",
            Scope::EventSpecificContext => "Event specific context",
            Scope::EventPayload => "Event payload",
        };
        self.push("[");
        self.bold(scope);
        self.push(": ");
        for (index, step) in path.steps.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            let text = match step {
                FieldPathStep::Member(member) if index == 0 && path.scope == Scope::PacketContext => {
                    grouped_unsigned(self.shown_before(*member))
                }
                FieldPathStep::Member(index) | FieldPathStep::Option(index) => grouped_unsigned(*index as u64),
                FieldPathStep::Element | FieldPathStep::Selected(_) | FieldPathStep::Content => "<current>".to_owned(),
            };
            self.bold(&text);
        }
        self.push("]");
    }

    /// Members of the packet's context that are described before this one.
    fn shown_before(&self, member: usize) -> u64 {
        match self.scopes.get(Scope::PacketContext).map(|class| &class.kind) {
            Some(FieldKind::Structure(structure)) => {
                let before = structure.members.iter().take(member);
                before.filter(|member| member.class.roles().is_empty()).count() as u64
            }
            _ => member as u64,
        }
    }

    fn attributes_line(&mut self, attributes: Option<&Attributes>) {
        if let Some(attributes) =
            attributes.filter(|attributes| attributes.as_object().is_none_or(|map| !map.is_empty()))
        {
            self.indented(Tone::Magenta, "User attributes");
            self.push(":");
            self.attribute(attributes);
            self.push("\n");
        }
    }

    /// JSON nests no deeper than the metadata's parser allows.
    fn attribute(&mut self, value: &Attributes) {
        match value {
            Attributes::Array(values) if !values.is_empty() => {
                self.push(" Length ");
                self.bold(&grouped_unsigned(values.len() as u64));
                self.push(":");
                self.indent += 2;
                for (index, value) in values.iter().enumerate() {
                    self.push("\n");
                    self.indented(Tone::Magenta, &format!("[{}]", grouped_unsigned(index as u64)));
                    self.push(":");
                    self.attribute(value);
                }
                self.indent -= 2;
            }
            Attributes::Object(entries) if !entries.is_empty() => {
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_by_key(|(name, _)| *name);
                self.indent += 2;
                for (name, value) in entries {
                    self.push("\n");
                    self.indented(Tone::Magenta, name);
                    self.push(":");
                    self.attribute(value);
                }
                self.indent -= 2;
            }
            value => {
                let (tone, text) = scalar(value);
                self.text += &format!(" {}", self.paint.text(tone, &text));
            }
        }
    }
}

/// An attribute without parts.
fn scalar(value: &Attributes) -> (Tone, String) {
    match value {
        Attributes::Null => (Tone::BrightMagenta, "Null".to_owned()),
        Attributes::Bool(true) => (Tone::BrightGreen, "Yes".to_owned()),
        Attributes::Bool(false) => (Tone::BrightRed, "No".to_owned()),
        Attributes::Number(number) => {
            let text = match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(number), ..) => grouped(number),
                (_, Some(number), _) => grouped_unsigned(number),
                (.., number) => format!("{:.6}", number.unwrap_or_default()),
            };
            (Tone::Bold, text)
        }
        Attributes::String(text) => (Tone::Bold, text.clone()),
        Attributes::Array(_) | Attributes::Object(_) => (Tone::BrightMagenta, "Empty".to_owned()),
    }
}

/// Whether anything of a packet's context is described; one that is empty by itself is.
fn shows_any(class: &FieldClass) -> bool {
    match &class.kind {
        FieldKind::Structure(structure) => {
            structure.members.is_empty() || structure.members.iter().any(|member| member.class.roles().is_empty())
        }
        _ => true,
    }
}

/// Whether the field of the path is described too: those of headers are not.
fn names_field(path: &FieldPath) -> bool {
    !matches!(path.scope, Scope::PacketHeader | Scope::EventHeader)
}

fn type_name(class: &FieldClass, scopes: Scopes<'_>) -> String {
    match &class.kind {
        FieldKind::BitArray(_) | FieldKind::BitMap(_) => "Bit array".to_owned(),
        FieldKind::Boolean(_) => "Boolean".to_owned(),
        FieldKind::Integer(integer) => integer_name(&integer.meaning),
        FieldKind::VariableInteger(integer) => integer_name(&integer.meaning),
        FieldKind::Real(FixedBits { length: 32, .. }) => "Single-precision real".to_owned(),
        FieldKind::Real(_) => "Double-precision real".to_owned(),
        FieldKind::NullTerminatedText(_) | FieldKind::StaticText(_) | FieldKind::DynamicText(_) => "String".to_owned(),
        FieldKind::StaticBlob(_) => "Static BLOB".to_owned(),
        FieldKind::DynamicBlob(_) => "Dynamic BLOB (with length field)".to_owned(),
        FieldKind::Structure(_) => "Structure".to_owned(),
        FieldKind::StaticArray(_) => "Static array".to_owned(),
        FieldKind::DynamicArray(array) => {
            let with = if names_field(&array.length) { "with" } else { "no" };
            format!("Dynamic array ({with} length field)")
        }
        FieldKind::Optional(optional) if optional.ranges.is_none() => "Option (boolean selector)".to_owned(),
        FieldKind::Optional(optional) => format!("Option ({})", selector(&optional.selector, scopes)),
        FieldKind::Variant(variant) => format!("Variant ({})", selector(&variant.selector, scopes)),
    }
}

fn integer_name(meaning: &IntegerMeaning) -> String {
    let sign = if meaning.signed { "Signed" } else { "Unsigned" };
    let what = if meaning.enumeration { "enumeration" } else { "integer" };
    format!("{sign} {what}")
}

fn selector(path: &FieldPath, scopes: Scopes<'_>) -> &'static str {
    if !names_field(path) {
        return "no selector";
    }
    let meaning = scopes.field(path).and_then(FieldClass::integer_meaning);
    if meaning.is_some_and(|meaning| meaning.signed) { "signed integer selector" } else { "unsigned integer selector" }
}

/// A label that occurs twice has the ranges of both.
fn merged(mappings: &[EnumerationMapping]) -> Vec<EnumerationMapping> {
    let mut merged: Vec<EnumerationMapping> = Vec::with_capacity(mappings.len());
    let mut places = std::collections::HashMap::new();
    for mapping in mappings {
        let place = *places.entry(mapping.label.as_str()).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(known) => known.ranges.extend_from_slice(&mapping.ranges),
            None => merged.push(mapping.clone()),
        }
    }
    merged
}
