//! Filtering early equals filtering late: events that a filter in the scan finds are those of which the values, read
//! by another way, make it true.
//!
//! ```text
//! file ── every event, as values ── predicate over them ──> kept     ┐
//!      └─ scan with tests, by each engine ─────────────────> found   ┘ the same events
//! ```

use std::cell::RefCell;
use std::sync::Arc;

use kymo_decode::Compile;
use kymo_filter::{FieldResolver, Filter, FilterField, NamePath, NameStep, PathMeaning};
use kymo_format::model::{
    Dialect, EnumerationMapping, EventRecordClass, FieldClass, FieldKind, Scope, TextEncoding, VariantOption,
    display_name,
};
use kymo_format::value::Value;
use kymo_format::{DataStreamClass, TraceClass};
use kymo_ir::Encoding;
use kymo_ir::emit::double;
use kymo_ir::predicate::{Datum, InputKind};

use crate::random::RandomNumbers;
use crate::reading::{FileContents, PlainReader, RECORDS_MAX, ReadEvent};

/// Names of the scopes that are asked for, and the words for them.
const SCOPES: [(Scope, &str); 3] =
    [(Scope::EventPayload, "payload"), (Scope::EventSpecificContext, "ctx"), (Scope::EventCommonContext, "ctx")];
/// Names that are chosen from.
const NAMES_MAX: usize = 60;
/// Steps of a name.
const DEPTH_MAX: usize = 6;

/// The promise for the bytes of a stream file; how many events it was tried on, and how many of them were kept.
///
/// # Panics
///
/// If it is broken.
pub fn hold(trace: &Arc<TraceClass>, bytes: &[u8], random: &mut RandomNumbers) -> (usize, usize) {
    let Ok(reader) = PlainReader::new(trace, Compile::Never, 0) else { return (0, 0) };
    let reading = reader.read(bytes, bytes.len());
    let events: Vec<(usize, &ReadEvent)> = reading
        .packets
        .iter()
        .flat_map(|packet| packet.events.iter().map(|event| (packet.head.stream_class, event)))
        .collect();
    let Some(&(stream, some)) = events.get(random.below(events.len().max(1))) else { return (0, 0) };
    let (stream, class) = (&trace.stream_classes[stream], some.class as usize);
    let text = expression(trace.dialect, stream, &stream.event_classes[class], some, random);
    let Some((text, filter)) = text.and_then(|text| Some((text.clone(), Filter::parse(&text).ok()?))) else {
        return (0, 0);
    };
    let kept = reading.packets.iter().map(|packet| {
        let stream = &trace.stream_classes[packet.head.stream_class];
        packet.events.iter().filter(|event| is_kept(trace.dialect, stream, event, &filter)).collect::<Vec<_>>()
    });
    let kept: Vec<Vec<&ReadEvent>> = kept.collect();
    for (compile, chunk_bytes) in
        [(Compile::Never, bytes.len()), (Compile::AtOnce, bytes.len()), (Compile::AtOnce, 1 + random.below(60))]
    {
        let reader = PlainReader::new(trace, compile, 0).expect("it was decoded just now").filtered(&filter);
        same(&reading, &kept, &reader.read(bytes, chunk_bytes), &text, compile);
    }
    (events.len(), kept.iter().map(Vec::len).sum())
}

fn same(all: &FileContents, kept: &[Vec<&ReadEvent>], found: &FileContents, text: &str, compile: Compile) {
    for ((all, kept), found) in all.packets.iter().zip(kept).zip(&found.packets) {
        if all.events.len() >= RECORDS_MAX {
            return;
        }
        // Passing over a record may be possible where reading all of it is not: a filter may not need the rest.
        let found_events: Vec<&ReadEvent> = found.events.iter().filter(|event| event.fields.is_ok()).collect();
        let places = |events: &[&ReadEvent]| events.iter().map(|event| event.position).collect::<Vec<_>>();
        assert_eq!(places(kept), places(&found_events), "`{text}` by {compile:?}: {:?}", all.stop);
        assert_eq!(*kept, found_events, "`{text}` by {compile:?}");
        assert_eq!((all.stop, all.behind), (found.stop, found.behind), "`{text}` by {compile:?}");
    }
}

/// Whether the values of an event make the filter true.
fn is_kept(dialect: Dialect, stream: &DataStreamClass, event: &ReadEvent, filter: &Filter) -> bool {
    let class = &stream.event_classes[event.class as usize];
    let late = Late { dialect, stream, class, known: RefCell::default() };
    // Fields that cannot be read are not asked for by scans either, unless the filter needs them.
    let (Ok(binding), Ok(fields)) = (filter.bind(&late), &event.fields) else { return false };
    let known = late.known.borrow();
    let data: Vec<Datum> = binding.keys.iter().map(|&key| known[key as usize].datum(fields)).collect();
    binding.predicate.keeps(&data[..])
}

/// A step down to a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Down {
    Member(usize),
    Option(usize),
    Content,
    Element(u64),
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq)]
struct TargetField {
    scope: Scope,
    /// At most one of them leads to a field in an event.
    ways: Vec<Vec<Down>>,
    /// Bits, if it is a real.
    real_bits: Option<u32>,
}

impl TargetField {
    fn datum(&self, fields: &[(Scope, Value)]) -> Datum {
        let value = self.ways.iter().find_map(|downs| {
            let mut downs = downs.iter();
            let Some(Down::Member(first)) = downs.next() else { return None };
            let (_, value) = fields.iter().filter(|(scope, _)| *scope == self.scope).nth(*first)?;
            downs.try_fold(value, |value, down| match (value, down) {
                (Value::Structure(members), Down::Member(index)) => members.get(*index),
                (Value::Variant { option, content }, Down::Option(index)) if option == index => Some(&**content),
                (Value::Optional(content), Down::Content) => content.as_deref(),
                (Value::Array(elements), Down::Element(index)) => elements.get(*index as usize),
                _ => None,
            })
        });
        match value {
            Some(Value::Boolean(value)) => Datum::Number(u64::from(*value)),
            Some(Value::BitArray(value) | Value::Unsigned(value)) => Datum::Number(*value),
            Some(Value::Signed(value)) => Datum::Number(*value as u64),
            Some(Value::Real(bits)) => {
                let width = self.real_bits.unwrap_or(64) as u8;
                Datum::Number(double(*bits as u64, width).to_bits())
            }
            Some(Value::Text(bytes)) => Datum::Text(bytes.as_slice().into()),
            _ => Datum::Missing,
        }
    }
}

/// The meaning of names, found in the classes by a way of its own.
struct Late<'a> {
    dialect: Dialect,
    stream: &'a DataStreamClass,
    class: &'a EventRecordClass,
    known: RefCell<Vec<TargetField>>,
}

impl Late<'_> {
    fn scope(&self, scope: Scope) -> Option<&FieldClass> {
        scope_of(self.stream, self.class, scope)
    }

    fn field(&self, scope: Scope, steps: &[NameStep], name: &str) -> Option<PathMeaning> {
        let mut ways = Vec::new();
        let mut optional = false;
        self.ways(self.scope(scope)?, steps, &mut Vec::new(), &mut optional, &mut ways);
        // A name without a single value hides fields of that name further outside.
        let compound = Some(PathMeaning::Compound { what: "a compound" });
        let (_, first, labels) = ways.first()?;
        let Some((mut common, real_bits)) = *first else { return compound };
        let labels = if ways.iter().all(|(_, _, other)| other == labels) { labels.clone() } else { Vec::new() };
        for (_, kind, _) in &ways {
            match kind.map(|(kind, _)| joined(common, kind)) {
                Some(Some(kind)) => common = kind,
                _ => return compound,
            }
        }
        let target = TargetField { scope, ways: ways.into_iter().map(|(downs, ..)| downs).collect(), real_bits };
        let mut known = self.known.borrow_mut();
        let place = known.iter().position(|known| *known == target).unwrap_or_else(|| {
            known.push(target);
            known.len() - 1
        });
        let name = name.to_owned();
        let key = place as u32;
        Some(PathMeaning::Field(FilterField { key, name, kind: common, optional, labels, unit: None, base: 10 }))
    }

    /// Every possible way of the steps, and the type of the field there.
    fn ways(
        &self,
        class: &FieldClass,
        steps: &[NameStep],
        downs: &mut Vec<Down>,
        optional: &mut bool,
        into: &mut Vec<Way>,
    ) {
        let depth = downs.len();
        match (&class.kind, steps.split_first()) {
            (FieldKind::Optional(inner), _) => {
                *optional = true;
                downs.push(Down::Content);
                self.ways(&inner.content, steps, downs, optional, into);
            }
            (FieldKind::Variant(variant), first) => {
                *optional = true;
                let is_named = |option: &VariantOption| match (&option.name, first) {
                    (Some(own), Some((NameStep::Name(name), _))) => display_name(self.dialect, own) == name,
                    _ => false,
                };
                let named = variant.options.iter().position(is_named);
                for (index, option) in variant.options.iter().enumerate() {
                    if named.is_none_or(|named| named == index) {
                        downs.push(Down::Option(index));
                        self.ways(&option.class, &steps[usize::from(named.is_some())..], downs, optional, into);
                        downs.truncate(depth);
                    }
                }
            }
            (_, None) => into.push((downs.clone(), kind(class), labels(class))),
            (FieldKind::Structure(structure), Some((NameStep::Name(name), rest))) => {
                let mut members = structure.members.iter();
                if let Some(index) = members.position(|member| display_name(self.dialect, &member.name) == name) {
                    downs.push(Down::Member(index));
                    self.ways(&structure.members[index].class, rest, downs, optional, into);
                }
            }
            (FieldKind::StaticArray(array), Some((NameStep::Index(index), rest))) if *index < array.length => {
                downs.push(Down::Element(*index));
                self.ways(&array.element, rest, downs, optional, into);
            }
            (FieldKind::DynamicArray(array), Some((NameStep::Index(index), rest))) => {
                *optional = true;
                downs.push(Down::Element(*index));
                self.ways(&array.element, rest, downs, optional, into);
            }
            (
                FieldKind::StaticText(_)
                | FieldKind::DynamicText(_)
                | FieldKind::NullTerminatedText(_)
                | FieldKind::StaticBlob(_)
                | FieldKind::DynamicBlob(_),
                Some((NameStep::Index(_), _)),
            ) => into.push((downs.clone(), None, Vec::new())),
            _ => {}
        }
        downs.truncate(depth);
    }
}

/// Labels and the ranges of values that have them.
type Labels = Vec<(String, Vec<(i128, i128)>)>;

/// A way down, and the type and the labels of the field there.
type Way = (Vec<Down>, Kind, Labels);

fn labels(class: &FieldClass) -> Labels {
    let mappings = class.integer_meaning().map(|meaning| &meaning.mappings[..]).unwrap_or_default();
    let ranges = |mapping: &EnumerationMapping| mapping.ranges.iter().map(|range| (range.lower, range.upper)).collect();
    mappings.iter().map(|mapping| (mapping.label.clone(), ranges(mapping))).collect()
}

/// The type of a field's values, if it has any, and the bits of a real.
type Kind = Option<(InputKind, Option<u32>)>;

/// A type for values of both.
fn joined(one: InputKind, other: InputKind) -> Option<InputKind> {
    let (InputKind::Integer { signed, bits }, InputKind::Integer { signed: other_signed, bits: other_bits }) =
        (one, other)
    else {
        return (one == other).then_some(one);
    };
    let unsigned_bits = if signed { other_bits } else { bits };
    match signed == other_signed {
        true => Some(InputKind::Integer { signed, bits: bits.max(other_bits) }),
        false => (unsigned_bits < 64).then_some(InputKind::Integer { signed: true, bits: 64 }),
    }
}

impl FieldResolver for Late<'_> {
    fn find(&self, path: &NamePath) -> PathMeaning {
        let Some((NameStep::Name(word), steps)) = path.steps.split_first() else {
            return PathMeaning::Missing { near: Vec::new() };
        };
        let scopes = SCOPES.iter().filter(|(_, name)| name == word);
        let found = scopes.filter_map(|(scope, _)| self.field(*scope, steps, word)).next();
        found.unwrap_or(PathMeaning::Missing { near: Vec::new() })
    }

    fn instant(&self, _: &str) -> Option<i64> {
        None
    }
}

fn scope_of<'a>(stream: &'a DataStreamClass, class: &'a EventRecordClass, scope: Scope) -> Option<&'a FieldClass> {
    match scope {
        Scope::EventCommonContext => stream.event_common_context.as_ref(),
        Scope::EventSpecificContext => class.specific_context.as_ref(),
        Scope::EventPayload => class.payload.as_ref(),
        Scope::PacketHeader | Scope::PacketContext | Scope::EventHeader => None,
    }
}

fn kind(class: &FieldClass) -> Kind {
    let unsigned = |bits: u32| InputKind::Integer { signed: false, bits: bits.min(64) as u8 };
    let encoding = |encoding: &TextEncoding| {
        InputKind::Text(match encoding {
            TextEncoding::Ascii | TextEncoding::Utf8 => Encoding::Utf8,
            TextEncoding::Utf16Be => Encoding::Utf16Be,
            TextEncoding::Utf16Le => Encoding::Utf16Le,
            TextEncoding::Utf32Be => Encoding::Utf32Be,
            TextEncoding::Utf32Le => Encoding::Utf32Le,
        })
    };
    Some(match &class.kind {
        FieldKind::Integer(integer) => {
            (InputKind::Integer { signed: integer.meaning.signed, bits: integer.bits.length as u8 }, None)
        }
        FieldKind::VariableInteger(integer) => (InputKind::Integer { signed: integer.meaning.signed, bits: 64 }, None),
        FieldKind::Boolean(_) => (unsigned(1), None),
        FieldKind::BitArray(bits) => (unsigned(bits.length), None),
        FieldKind::BitMap(map) => (unsigned(map.bits.length), None),
        FieldKind::Real(bits) => (InputKind::Real, Some(bits.length)),
        FieldKind::NullTerminatedText(of) => (encoding(of), None),
        FieldKind::StaticText(text) => (encoding(&text.encoding), None),
        FieldKind::DynamicText(text) => (encoding(&text.encoding), None),
        _ => return None,
    })
}

/// An expression about some fields of a class, most often one that the event makes true.
fn expression(
    dialect: Dialect,
    stream: &DataStreamClass,
    class: &EventRecordClass,
    event: &ReadEvent,
    random: &mut RandomNumbers,
) -> Option<String> {
    let names = names(dialect, stream, class, random);
    let mut parts = Vec::new();
    for _ in 0..1 + random.below(4) {
        let (name, _) = names.get(random.below(names.len().max(1)))?;
        let value = value_of(dialect, stream, name, event);
        parts.push(match value {
            _ if random.below(8) == 0 => format!("has({name})"),
            Some(Datum::Text(text)) => text_test(name, &text, random),
            value => number_test(name, value.as_ref(), names.iter().any(|(own, real)| own == name && *real), random),
        });
        if random.below(5) == 0 {
            let last = parts.pop().unwrap_or_default();
            parts.push(format!("!({last})"));
        }
    }
    Some(parts.join(if random.below(3) == 0 { " || " } else { " && " }))
}

/// Names of fields of a class that have one value, and whether it is a real.
pub(crate) fn names(
    dialect: Dialect,
    stream: &DataStreamClass,
    class: &EventRecordClass,
    random: &mut RandomNumbers,
) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    for (scope, word) in SCOPES {
        if let Some(class) = scope_of(stream, class, scope) {
            leaves(dialect, class, &format!("${word}"), 0, random, &mut names);
        }
    }
    // Contexts of packets are contexts too, but not checked here.
    let of_packet = |name: &str| {
        let Some(FieldKind::Structure(structure)) = stream.packet_context.as_ref().map(|class| &class.kind) else {
            return false;
        };
        let first = name.strip_prefix("$ctx.").and_then(|name| name.split(['.', '[']).next());
        structure.members.iter().any(|member| Some(display_name(dialect, &member.name)) == first)
    };
    names.retain(|(name, _)| !of_packet(name));
    names
}

/// The value that an event has under a name; `None`: unknown.
pub(crate) fn value_of(dialect: Dialect, stream: &DataStreamClass, name: &str, event: &ReadEvent) -> Option<Datum> {
    let class = &stream.event_classes[event.class as usize];
    let late = Late { dialect, stream, class, known: RefCell::default() };
    let PathMeaning::Field(field) = late.find(&NamePath::parse(name).ok()?) else { return None };
    let target = late.known.borrow()[field.key as usize].clone();
    Some(target.datum(event.fields.as_ref().ok()?))
}

fn text_test(name: &str, text: &[u8], random: &mut RandomNumbers) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric();
    let start: String = text.iter().copied().take_while(is_plain).take(6).map(char::from).collect();
    match random.below(5) {
        0 => format!("{name} == \"{start}\""),
        1 => format!("{name} == \"*{start}*\""),
        2 => format!("{name} =~ \"^{start}\""),
        3 => format!("{name} < \"{start}m\""),
        _ => format!("{name} == \"{start}*\""),
    }
}

fn number_test(name: &str, value: Option<&Datum>, is_real: bool, random: &mut RandomNumbers) -> String {
    let operators = ["==", "!=", "<", "<=", ">", ">="];
    let operator = operators[random.below(operators.len())];
    let seen = match value {
        Some(Datum::Number(bits)) if !is_real => *bits as i64,
        _ => 0,
    };
    let literal = [seen, seen.wrapping_add(1), 0, -1, 255, i64::MAX][random.below(6)];
    // `-9223372036854775808` is no literal, and its magnitude is none of 64 bits with a sign.
    let literal = literal.max(-i64::MAX);
    match random.below(6) {
        0 if !is_real => format!("({name} & 0xf) {operator} {}", literal & 15),
        1 if !is_real => format!("{name} + 1 {operator} {literal}"),
        2 if !is_real => format!("{name} in (1, {literal}, 7)"),
        3 => name.to_owned(),
        _ => format!("{name} {operator} {literal}"),
    }
}

/// Names of fields below a class that have one value, and whether it is a real.
fn leaves(
    dialect: Dialect,
    class: &FieldClass,
    name: &str,
    depth: usize,
    random: &mut RandomNumbers,
    into: &mut Vec<(String, bool)>,
) {
    if depth > DEPTH_MAX || into.len() >= NAMES_MAX {
        return;
    }
    let is_word = |own: &str| {
        let mut letters = own.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let mut below = |own: &str, class: &FieldClass, random: &mut RandomNumbers| {
        let own = display_name(dialect, own);
        if is_word(own) {
            leaves(dialect, class, &format!("{name}.{own}"), depth + 1, random, into);
        }
    };
    match &class.kind {
        FieldKind::Structure(structure) => {
            structure.members.iter().for_each(|member| below(&member.name, &member.class, random));
        }
        FieldKind::Variant(variant) => variant.options.iter().for_each(|option| {
            if let Some(own) = &option.name {
                below(own, &option.class, random);
            }
        }),
        FieldKind::Optional(optional) => leaves(dialect, &optional.content, name, depth + 1, random, into),
        FieldKind::StaticArray(array) => {
            let index = random.below(array.length.clamp(1, 9) as usize);
            leaves(dialect, &array.element, &format!("{name}[{index}]"), depth + 1, random, into);
        }
        FieldKind::DynamicArray(array) => {
            let index = random.below(4);
            leaves(dialect, &array.element, &format!("{name}[{index}]"), depth + 1, random, into);
        }
        FieldKind::Real(_) => into.push((name.to_owned(), true)),
        _ => {
            if kind(class).is_some() {
                into.push((name.to_owned(), false));
            }
        }
    }
}
