//! The meaning of names in an expression for the events of one class.
//!
//! ```text
//! next_tid          payload, then specific context, common context, packet context; then words of the language
//! $ctx.vtid         contexts alone          $payload.time    the payload alone
//! event.name        event.id, event.log_level, event.emf_uri, event.namespace, event.uid
//! time  cycles      the event's time in nanoseconds, its clock in cycles
//! packet.cpu_id     stream.id, stream.class_id, stream.name     trace.name     env.hostname, trace.env.hostname
//! ```

use std::cell::RefCell;

use kymo_filter::{Constant, Dimension, FieldResolver, FilterField, NamePath, NameStep, PathMeaning, Unit, nearest};
use kymo_format::model::{
    self, DataStreamClass, DisplayBase, EnvironmentValue, EventRecordClass, FieldClass, FieldKind, IntegerMeaning,
    Scope, TraceClass,
};
use kymo_ir::predicate::InputKind;

use crate::clock::ClockConverter;

/// Facts about a data stream beside its classes.
pub struct FilterFacts<'a> {
    /// Its clock, with the shift that its times are shown with.
    pub clock: Option<ClockConverter>,
    /// Name of its trace.
    pub trace_name: &'a str,
    /// Names that are like a missing one are looked for, which takes longer than all else.
    pub suggests: bool,
    /// The point in time that the text behind an `@` means: see [`kymo_filter::FieldResolver::instant`].
    pub instant: &'a dyn Fn(&str) -> Option<i64>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NameSource {
    /// The event's clock.
    Cycles,
    /// The data stream's id, from packets.
    StreamId,
    /// A field of the packet's context, or of the event; several where it is whichever option of a variant is there.
    Fields(Vec<ScopePath>),
    /// The result of a test about the packet alone, by its number.
    Settled(usize),
}

impl NameSource {
    /// The same for all events of a packet.
    pub(crate) fn is_of_packet(&self) -> bool {
        match self {
            Self::Cycles => false,
            Self::StreamId | Self::Settled(_) => true,
            Self::Fields(places) => places.iter().all(|place| place.scope == Scope::PacketContext),
        }
    }
}

/// A field, from the structure of its scope downwards.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ScopePath {
    pub(crate) scope: Scope,
    pub(crate) parts: Vec<ScopePathPart>,
}

/// One step down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ScopePathPart {
    Member(usize),
    Option(usize),
    Content,
    Element(u64),
}

/// One class of events.
pub(crate) struct EventClassFields<'a> {
    trace: &'a TraceClass,
    stream: &'a DataStreamClass,
    event: &'a EventRecordClass,
    facts: &'a FilterFacts<'a>,
    /// The requested sources, by key.
    known: RefCell<Vec<NameSource>>,
}

/// A field that was found.
struct FoundField<'a> {
    class: &'a FieldClass,
    place: ScopePath,
    optional: bool,
}

impl FoundField<'_> {
    /// The content that may be there instead of nothing.
    fn content(mut self) -> Self {
        while let FieldKind::Optional(optional) = &self.class.kind {
            self.place.parts.push(ScopePathPart::Content);
            (self.class, self.optional) = (&optional.content, true);
        }
        self
    }
}

/// Contexts, from the innermost outwards.
/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;
const CONTEXTS: [Scope; 3] = [Scope::EventSpecificContext, Scope::EventCommonContext, Scope::PacketContext];
const PLACES: [Scope; 4] =
    [Scope::EventPayload, Scope::EventSpecificContext, Scope::EventCommonContext, Scope::PacketContext];

impl<'a> EventClassFields<'a> {
    pub(crate) fn new(
        trace: &'a TraceClass,
        stream: &'a DataStreamClass,
        event: &'a EventRecordClass,
        facts: &'a FilterFacts<'a>,
    ) -> Self {
        Self { trace, stream, event, facts, known: RefCell::default() }
    }

    /// Where the values with these keys come from.
    pub(crate) fn sources(&self, keys: &[u32]) -> Vec<NameSource> {
        let known = self.known.borrow();
        keys.iter().map(|&key| known[key as usize].clone()).collect()
    }

    /// Where the value with this key comes from.
    pub(crate) fn source(&self, key: u32) -> NameSource {
        self.known.borrow()[key as usize].clone()
    }

    /// The sources of all requested values, by key.
    pub(crate) fn all_sources(&self) -> Vec<NameSource> {
        self.known.borrow().clone()
    }

    fn key(&self, source: NameSource) -> u32 {
        let mut known = self.known.borrow_mut();
        let place = known.iter().position(|have| *have == source).unwrap_or_else(|| {
            known.push(source);
            known.len() - 1
        });
        place as u32
    }

    fn scope(&self, scope: Scope) -> Option<&'a FieldClass> {
        match scope {
            Scope::PacketContext => self.stream.packet_context.as_ref(),
            Scope::EventCommonContext => self.stream.event_common_context.as_ref(),
            Scope::EventSpecificContext => self.event.specific_context.as_ref(),
            Scope::EventPayload => self.event.payload.as_ref(),
            Scope::PacketHeader | Scope::EventHeader => None,
        }
    }

    /// The field in the first of these scopes that has it.
    fn field_in(&self, scopes: &[Scope], steps: &[NameStep], name: &str) -> Option<PathMeaning> {
        scopes.iter().find_map(|&scope| {
            let start = FoundField {
                class: self.scope(scope)?,
                place: ScopePath { scope, parts: Vec::new() },
                optional: false,
            };
            let mut targets = Vec::new();
            match self.descend(start, steps, &mut targets) {
                Ok(()) if targets.is_empty() => None,
                Ok(()) => Some(self.found(&targets, name)),
                Err(what) => Some(PathMeaning::Compound { what }),
            }
        })
    }

    /// Goes down some steps to their targets: several fields where a variant is left open. `Err`:
    /// there is something, but it cannot be asked that way.
    fn descend(
        &self,
        target: FoundField<'a>,
        steps: &[NameStep],
        into: &mut Vec<FoundField<'a>>,
    ) -> Result<(), &'static str> {
        let mut target = target.content();
        if let FieldKind::Variant(variant) = &target.class.kind {
            let is_named = |option: &model::VariantOption| match (&option.name, steps.first()) {
                (Some(own), Some(NameStep::Name(name))) => self.is_named(own, name),
                _ => false,
            };
            let named = variant.options.iter().position(is_named);
            let rest = if named.is_some() { &steps[1..] } else { steps };
            for (index, option) in variant.options.iter().enumerate() {
                if named.is_none_or(|named| named == index) {
                    let mut place = target.place.clone();
                    place.parts.push(ScopePathPart::Option(index));
                    self.descend(FoundField { class: &option.class, place, optional: true }, rest, into)?;
                }
            }
            return Ok(());
        }
        let Some((step, rest)) = steps.split_first() else {
            into.push(target);
            let is_fine = into.len() <= TARGETS_MAX;
            return if is_fine { Ok(()) } else { Err("a variant of very many options") };
        };
        let (part, class, optional) = match (&target.class.kind, step) {
            (FieldKind::Structure(structure), NameStep::Name(name)) => {
                let index = structure.members.iter().position(|member| self.is_named(&member.name, name));
                let Some(index) = index else { return Ok(()) };
                (ScopePathPart::Member(index), &structure.members[index].class, false)
            }
            (FieldKind::StaticArray(array), NameStep::Index(index)) if *index < array.length => {
                (ScopePathPart::Element(*index), &*array.element, false)
            }
            (FieldKind::DynamicArray(array), NameStep::Index(index)) => {
                (ScopePathPart::Element(*index), &*array.element, true)
            }
            (
                FieldKind::StaticText(_) | FieldKind::DynamicText(_) | FieldKind::NullTerminatedText(_),
                NameStep::Index(_),
            ) => return Err("a character of text"),
            (FieldKind::StaticBlob(_) | FieldKind::DynamicBlob(_), NameStep::Index(_)) => {
                return Err("a byte of a blob");
            }
            _ => return Ok(()),
        };
        target.place.parts.push(part);
        self.descend(FoundField { class, optional: target.optional || optional, ..target }, rest, into)
    }

    fn is_named(&self, own: &str, name: &str) -> bool {
        model::display_name(self.trace.dialect, own) == name
    }

    /// One field, or those of a variant's options if all have a value of one type.
    fn found(&self, targets: &[FoundField<'a>], name: &str) -> PathMeaning {
        let mut fields: Vec<(&FoundField<'a>, InputKind)> = Vec::new();
        let mut what = None;
        for target in targets {
            match kind(&target.class.kind) {
                Ok(kind) => fields.push((target, kind)),
                Err(compound) => what = what.or(Some(compound)),
            }
        }
        let (Some(&(first, kind)), None) = (fields.first(), what) else {
            return PathMeaning::Compound { what: what.unwrap_or("a variant without options") };
        };
        let kind = fields[1..].iter().try_fold(kind, |kind, (_, other)| common_kind(kind, *other));
        let Some(kind) = kind else {
            return PathMeaning::Compound { what: "a variant whose options are of several types" };
        };
        let labels_of = |target: &FoundField<'a>| target.class.integer_meaning().map(labels).unwrap_or_default();
        let unit_of = |target: &FoundField<'a>| target.class.attributes.as_deref().and_then(unit);
        let (labels, unit) = (labels_of(first), unit_of(first));
        let is_common = fields.iter().all(|(target, _)| labels_of(target) == labels && unit_of(target) == unit);
        let (labels, unit) = if is_common { (labels, unit) } else { (Vec::new(), None) };
        let base_of =
            |target: &FoundField<'a>| target.class.integer_meaning().map_or(10, |meaning| radix(meaning.base));
        let base = Some(base_of(first)).filter(|base| fields.iter().all(|(target, _)| base_of(target) == *base));
        let optional = fields.iter().any(|(target, _)| target.optional);
        let key = self.key(NameSource::Fields(fields.iter().map(|(target, _)| target.place.clone()).collect()));
        let base = base.unwrap_or(10);
        PathMeaning::Field(FilterField { key, name: name.to_owned(), kind, optional, labels, unit, base })
    }

    /// One of the language's own words.
    fn word(&self, word: &str, rest: &[NameStep], name: &str) -> PathMeaning {
        let only = |found: Option<PathMeaning>| match rest {
            [] => found.unwrap_or_else(|| self.missing(name)),
            _ => self.missing(name),
        };
        match (word, rest) {
            ("time", _) => only(self.time()),
            ("cycles", _) => only(self.stream.default_clock.map(|_| PathMeaning::Field(self.cycles(name)))),
            ("payload", [_, ..]) => self.or_missing(self.field_in(&[Scope::EventPayload], rest, name), name),
            ("ctx", [NameStep::Name(first), further @ ..]) => {
                let written = [&[NameStep::Name(plain(first))], further].concat();
                let found = self.field_in(&CONTEXTS, rest, name);
                self.or_missing(found.or_else(|| self.field_in(&CONTEXTS, &written, name)), name)
            }
            ("app", [NameStep::Name(first), further @ ..]) => {
                let written = [&[NameStep::Name(plain(&format!("app.{first}")))], further].concat();
                self.or_missing(self.field_in(&CONTEXTS, &written, name), name)
            }
            ("packet", [NameStep::Name(context), further @ ..]) if context == "context" && !further.is_empty() => {
                self.or_missing(self.field_in(&[Scope::PacketContext], further, name), name)
            }
            ("packet", [_, ..]) => self.or_missing(self.field_in(&[Scope::PacketContext], rest, name), name),
            ("trace", [NameStep::Name(env), NameStep::Name(entry)]) if env == "env" => self.environment(entry, name),
            ("env", [NameStep::Name(entry)]) => self.environment(entry, name),
            ("event", [NameStep::Name(what)]) => self.of_event(what, name),
            ("stream", [NameStep::Name(what)]) => self.of_stream(what, name),
            ("trace", [NameStep::Name(what)]) => self.of_trace(what, name),
            _ => self.missing(name),
        }
    }

    fn or_missing(&self, found: Option<PathMeaning>, name: &str) -> PathMeaning {
        found.unwrap_or_else(|| self.missing(name))
    }

    fn cycles(&self, name: &str) -> FilterField {
        let kind = InputKind::Integer { signed: false, bits: 64 };
        let key = self.key(NameSource::Cycles);
        FilterField { key, name: name.to_owned(), kind, optional: false, labels: Vec::new(), unit: None, base: 10 }
    }

    fn time(&self) -> Option<PathMeaning> {
        let clock = self.facts.clock?;
        let (mut before, mut add) = (clock.rest_cycles(), clock.base_ns());
        if clock.frequency_hz() == NANOS {
            // The same, and comparisons need no sum.
            (before, add) = (0, add.saturating_add(i128::from(before)));
        }
        let add = i64::try_from(add).ok()?;
        let mut field = self.cycles("cycles");
        field.unit = Some(Unit { dimension: Dimension::Time, multiply: 1, divide: 1 });
        Some(PathMeaning::Scaled { field, before, multiply: NANOS, divide: clock.frequency_hz(), add })
    }

    fn environment(&self, entry: &str, name: &str) -> PathMeaning {
        match self.trace.environment(entry) {
            Some(EnvironmentValue::Integer(value)) => PathMeaning::Constant(Constant::Integer(*value)),
            Some(EnvironmentValue::Text(text)) => PathMeaning::Constant(Constant::Text(text.clone())),
            None => {
                if !self.facts.suggests {
                    return PathMeaning::Missing { near: Vec::new() };
                }
                let entries: Vec<String> =
                    self.trace.environment.iter().map(|(entry, _)| format!("env.{entry}")).collect();
                PathMeaning::Missing { near: near(name, &entries) }
            }
        }
    }

    fn of_event(&self, what: &str, name: &str) -> PathMeaning {
        let event = self.event;
        let text = |text: &Option<String>| text.clone().map(Constant::Text);
        let constant = match what {
            "name" => text(&event.name),
            "id" => Some(Constant::Integer(i128::from(event.id))),
            "log_level" | "loglevel" => event.log_level.map(|level| Constant::Integer(i128::from(level))),
            "emf_uri" => text(&event.emf_uri),
            "namespace" => text(&event.namespace),
            "uid" => text(&event.uid),
            _ => {
                let words =
                    ["event.name", "event.id", "event.log_level", "event.emf_uri", "event.namespace", "event.uid"];
                return PathMeaning::Missing { near: nearest(name, words) };
            }
        };
        constant.map_or(PathMeaning::Missing { near: Vec::new() }, PathMeaning::Constant)
    }

    fn of_stream(&self, what: &str, name: &str) -> PathMeaning {
        match what {
            "class_id" => PathMeaning::Constant(Constant::Integer(i128::from(self.stream.id))),
            "name" => {
                let name = self.stream.name.clone().map(Constant::Text);
                name.map_or(PathMeaning::Missing { near: Vec::new() }, PathMeaning::Constant)
            }
            "id" => {
                let kind = InputKind::Integer { signed: false, bits: 64 };
                let key = self.key(NameSource::StreamId);
                PathMeaning::Field(FilterField {
                    key,
                    name: name.to_owned(),
                    kind,
                    optional: true,
                    labels: Vec::new(),
                    unit: None,
                    base: 10,
                })
            }
            _ => PathMeaning::Missing { near: nearest(name, ["stream.id", "stream.class_id", "stream.name"]) },
        }
    }

    fn of_trace(&self, what: &str, name: &str) -> PathMeaning {
        match what {
            "name" => PathMeaning::Constant(Constant::Text(self.facts.trace_name.to_owned())),
            "uuid" => match &self.trace.uuid {
                Some(uuid) => PathMeaning::Constant(Constant::Text(uuid.to_string())),
                None => PathMeaning::Missing { near: Vec::new() },
            },
            _ => PathMeaning::Missing { near: nearest(name, ["trace.name", "trace.uuid", "trace.env"]) },
        }
    }

    fn missing(&self, name: &str) -> PathMeaning {
        if !self.facts.suggests {
            return PathMeaning::Missing { near: Vec::new() };
        }
        let mut names = Vec::new();
        for scope in PLACES {
            if let Some(class) = self.scope(scope) {
                self.names(class, "", &mut names);
            }
        }
        PathMeaning::Missing { near: near(name.trim_start_matches('$'), &names) }
    }

    /// Names of the fields below a structure.
    fn names(&self, class: &FieldClass, before: &str, into: &mut Vec<String>) {
        let FieldKind::Structure(structure) = &class.kind else { return };
        for member in &structure.members {
            if into.len() >= NAMES_MAX {
                return;
            }
            let name = format!("{before}{}", model::display_name(self.trace.dialect, &member.name));
            self.names(&member.class, &format!("{name}."), into);
            into.push(name);
        }
    }
}

fn near(name: &str, candidates: &[String]) -> Vec<String> {
    nearest(name, candidates.iter().map(String::as_str))
}

/// Fields that one name may mean.
const TARGETS_MAX: usize = 64;

/// Names that are compared with one that is missing.
const NAMES_MAX: usize = 1000;

/// As LTTng writes names of contexts into metadata.
fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

impl FieldResolver for EventClassFields<'_> {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let name = written(path);
        let Some((NameStep::Name(word), rest)) = path.steps.split_first() else { return self.missing(&name) };
        if path.is_global {
            return self.word(word, rest, &name);
        }
        match self.field_in(&PLACES, &path.steps, &name) {
            Some(found) => found,
            None if matches!(word.as_str(), "ctx" | "app" | "payload") => self.missing(&name),
            None => self.word(word, rest, &name),
        }
    }

    fn instant(&self, text: &str) -> Option<i64> {
        (self.facts.instant)(text)
    }
}

/// The type of a field's values.
fn kind(kind: &FieldKind) -> Result<InputKind, &'static str> {
    Ok(match kind {
        FieldKind::Integer(integer) => {
            InputKind::Integer { signed: integer.meaning.signed, bits: integer.bits.length.min(64) as u8 }
        }
        FieldKind::VariableInteger(integer) => InputKind::Integer { signed: integer.meaning.signed, bits: 64 },
        FieldKind::Boolean(_) => InputKind::Integer { signed: false, bits: 1 },
        FieldKind::BitArray(bits) => InputKind::Integer { signed: false, bits: bits.length.min(64) as u8 },
        FieldKind::BitMap(map) => InputKind::Integer { signed: false, bits: map.bits.length.min(64) as u8 },
        FieldKind::Real(_) => InputKind::Real,
        FieldKind::NullTerminatedText(encoding) => InputKind::Text(crate::text::encoding(*encoding)),
        FieldKind::StaticText(text) => InputKind::Text(crate::text::encoding(text.encoding)),
        FieldKind::DynamicText(text) => InputKind::Text(crate::text::encoding(text.encoding)),
        FieldKind::StaticBlob(_) | FieldKind::DynamicBlob(_) => return Err("a blob"),
        FieldKind::Structure(_) => return Err("a structure"),
        FieldKind::StaticArray(_) | FieldKind::DynamicArray(_) => return Err("an array"),
        FieldKind::Variant(_) | FieldKind::Optional(_) => return Err("a variant"),
    })
}

/// The type of values that are of one type or the other; registers hold both alike.
fn common_kind(one: InputKind, other: InputKind) -> Option<InputKind> {
    match (one, other) {
        (InputKind::Integer { signed, bits }, InputKind::Integer { signed: other_signed, bits: other_bits }) => {
            let unsigned = [(signed, bits), (other_signed, other_bits)].into_iter().find(|(signed, _)| !signed);
            match unsigned {
                Some((_, 64)) if signed != other_signed => None,
                _ if signed != other_signed => Some(InputKind::Integer { signed: true, bits: 64 }),
                _ => Some(InputKind::Integer { signed, bits: bits.max(other_bits) }),
            }
        }
        (one, other) => (one == other).then_some(one),
    }
}

fn labels(meaning: &IntegerMeaning) -> Vec<(String, Vec<(i128, i128)>)> {
    let ranges =
        |mapping: &model::EnumerationMapping| mapping.ranges.iter().map(|range| (range.lower, range.upper)).collect();
    meaning.mappings.iter().map(|mapping| (mapping.label.clone(), ranges(mapping))).collect()
}

/// The unit of `{"kymograph": {"unit": "ms"}}` among the attributes of a field class.
fn unit(attributes: &model::Attributes) -> Option<Unit> {
    let name = attributes.get("kymograph")?.get("unit")?.as_str()?;
    kymo_filter::unit(name)
}

/// A path as people write it.
fn written(path: &NamePath) -> String {
    let mut text = if path.is_global { "$".to_owned() } else { String::new() };
    for (number, step) in path.steps.iter().enumerate() {
        match step {
            NameStep::Name(name) => {
                text.push_str(if number > 0 { "." } else { "" });
                text.push_str(name);
            }
            NameStep::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// A base as a number.
fn radix(base: DisplayBase) -> u8 {
    match base {
        DisplayBase::Binary => 2,
        DisplayBase::Octal => 8,
        DisplayBase::Decimal => 10,
        DisplayBase::Hexadecimal => 16,
    }
}
