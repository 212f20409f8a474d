//! Random trace classes for property tests.
//!
//! A list of random numbers is read as choices, one after the other; when it is used up every choice is
//! the first. Shorter lists make simpler trace classes, so proptest's shrinking works:
//!
//! ```text
//! [7, 0, 3, ...] ── Maker ──> TraceClass: sound, in the terms of CTF 2
//!  └ how many streams?
//! ```

use kymo_units::{ByteOrder, Uuid};
use proptest::prelude::{Strategy, any};
use serde_json::json;

use kymo_format::model::{
    Attributes, BitMap, ClockClass, ClockOrigin, DataStreamClass, Dialect, DisplayBase, DynamicArray, DynamicBlob,
    DynamicText, EnumerationMapping, EnvironmentValue, EventRecordClass, FieldClass, FieldKind, FieldPath,
    FieldPathStep, FixedBits, FixedInteger, IntegerMeaning, IntegerRange, Member, Optional, Role, Scope, StaticArray,
    StaticBlob, StaticText, Structure, TextEncoding, TraceClass, VariableInteger, Variant, VariantOption,
};

/// Compound fields inside each other.
const DEPTH_MAX: usize = 4;

/// Any trace class of CTF 2.
pub fn trace_class() -> impl Strategy<Value = TraceClass> {
    proptest::collection::vec(any::<u32>(), 0..600).prop_map(|choices| ClassMaker::new(choices, false).trace())
}

/// Trace classes of CTF 2 without field classes that CTF 1.8 lacks.
pub fn plain_trace_class() -> impl Strategy<Value = TraceClass> {
    proptest::collection::vec(any::<u32>(), 0..600).prop_map(|choices| ClassMaker::new(choices, true).trace())
}

/// A trace class that any bytes are a packet of, and that can be decoded: heads have no sizes and no magic number,
/// event record classes have ids of two bits.
#[must_use]
pub fn trace_class_of_any_bytes(choices: Vec<u32>) -> TraceClass {
    ClassMaker::of_decodable(choices).trace_of_any_bytes()
}

/// A trace class of CTF 2 that can be decoded.
#[must_use]
pub fn decodable_trace_class(choices: Vec<u32>) -> TraceClass {
    ClassMaker::of_decodable(choices).trace()
}

/// A field that later ones may refer to.
#[derive(Clone)]
struct ReferenceTarget {
    path: FieldPath,
    /// `None`: a boolean. Else the values that it can have.
    values: Option<IntegerRange>,
}

struct ClassMaker {
    choices: std::vec::IntoIter<u32>,
    /// Nothing that CTF 1.8 lacks.
    plain: bool,
    /// Nothing that cannot be decoded.
    decodable: bool,
    /// One byte order for all, in which the bits of no field are reversed: orders cannot meet inside a byte.
    order: Option<ByteOrder>,
    scope: Scope,
    steps: Vec<FieldPathStep>,
    /// Fields that are complete, and outside of compounds that are.
    targets: Vec<ReferenceTarget>,
    clock: Option<usize>,
}

impl ClassMaker {
    fn new(choices: Vec<u32>, plain: bool) -> Self {
        let (scope, steps, targets) = (Scope::PacketHeader, Vec::new(), Vec::new());
        Self { choices: choices.into_iter(), plain, decodable: false, order: None, scope, steps, targets, clock: None }
    }

    /// Two of three trace classes have one byte order: in the others much is a fault.
    fn of_decodable(choices: Vec<u32>) -> Self {
        let mut maker = Self { decodable: true, ..Self::new(choices, false) };
        maker.order = maker.one_of(&[Some(ByteOrder::Little), None, Some(ByteOrder::Big)]);
        maker
    }

    /// A number below `count`.
    fn choose(&mut self, count: usize) -> usize {
        self.choices.next().unwrap_or(0) as usize % count
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.choose(values.len())]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.choose(3) == 1).then(|| make(self))
    }

    fn text(&mut self) -> String {
        let texts = ["a", "", "two words", "\"quoted\" \\ back", "line\nfeed\tand\u{7}bell", "é 日本 𝄞", "string"];
        self.one_of(&texts).to_owned()
    }

    fn attributes(&mut self) -> Option<Attributes> {
        self.maybe(|maker| {
            let text = maker.text();
            json!({ "example.org": { "text": text, "list": [1, -2, 1.5, null, true], "big": u64::MAX } })
        })
    }

    fn trace(mut self) -> TraceClass {
        let clock_classes = (0..self.choose(3)).map(|index| self.clock_class(index)).collect::<Vec<_>>();
        let mut environment = Vec::new();
        for index in 0..self.choose(3) {
            let value = match self.choose(2) {
                0 => EnvironmentValue::Integer(self.one_of(&[0, -1, i128::from(i64::MIN), i128::from(u64::MAX)])),
                _ => EnvironmentValue::Text(self.text()),
            };
            environment.push((format!("entry_{index}"), value));
        }
        let mut trace = TraceClass {
            dialect: Dialect::Ctf2,
            uuid: self.maybe(|maker| Uuid([maker.choose(256) as u8; 16])),
            namespace: self.maybe(Self::text),
            name: self.maybe(Self::text),
            uid: self.maybe(Self::text),
            native_byte_order: None,
            environment,
            packet_header: None,
            clock_classes,
            stream_classes: Vec::new(),
            attributes: self.attributes(),
        };
        let head = vec![("magic number", Role::PacketMagicNumber, 32), ("stream class", Role::DataStreamClassId, 64)];
        trace.packet_header = Some(self.scope(Scope::PacketHeader, head));
        let shared = self.targets.len();
        for id in 0..=self.choose(2) {
            let clocks = trace.clock_classes.len();
            self.clock = (clocks > 0).then(|| self.choose(clocks));
            let stream = self.stream_class(id as u64);
            trace.stream_classes.push(stream);
            self.targets.truncate(shared);
        }
        trace
    }

    fn trace_of_any_bytes(mut self) -> TraceClass {
        let clock_classes = vec![self.clock_class(0)];
        self.clock = Some(0);
        let mut trace = TraceClass {
            dialect: Dialect::Ctf2,
            uuid: None,
            namespace: None,
            name: None,
            uid: None,
            native_byte_order: None,
            environment: Vec::new(),
            packet_header: None,
            clock_classes,
            stream_classes: Vec::new(),
            attributes: None,
        };
        trace.packet_header = self.maybe(|maker| maker.scope(Scope::PacketHeader, Vec::new()));
        let mut stream = DataStreamClass::empty(0);
        stream.default_clock = self.clock;
        stream.packet_context = self.maybe(|maker| maker.scope(Scope::PacketContext, Vec::new()));
        let time = self.one_of(&[8, 27, 64, 1, 32]);
        let header = vec![("class", Role::EventRecordClassId, 2), ("time", Role::DefaultClockTimestamp, time)];
        stream.event_header = Some(self.scope(Scope::EventHeader, header));
        stream.event_common_context = self.maybe(|maker| maker.scope(Scope::EventCommonContext, Vec::new()));
        let shared = self.targets.len();
        for id in 0..4 - self.choose(2) as u64 {
            stream.event_classes.push(self.event_class(id));
            self.targets.truncate(shared);
        }
        trace.stream_classes.push(stream);
        trace
    }

    fn clock_class(&mut self, index: usize) -> ClockClass {
        let frequency_hz = self.one_of(&[1_000_000_000, 1, 32_768, u64::MAX]);
        let origin = match self.choose(3) {
            0 => ClockOrigin::Unknown,
            1 => ClockOrigin::UnixEpoch,
            _ => ClockOrigin::Custom { namespace: self.maybe(Self::text), name: self.text(), uid: self.text() },
        };
        ClockClass {
            id: if self.choose(4) == 3 { format!("clock number {index}") } else { format!("clock{index}") },
            namespace: self.maybe(Self::text),
            name: self.maybe(Self::text),
            uid: self.maybe(Self::text),
            uuid: None,
            description: self.maybe(Self::text),
            frequency_hz,
            precision_cycles: self.maybe(|maker| maker.choose(1000) as u64),
            accuracy_cycles: self.maybe(|maker| maker.choose(1000) as u64),
            offset_s: self.one_of(&[0, 1_700_000_000, i64::MIN, i64::MAX]),
            offset_cycles: i128::from(self.one_of(&[0, 1, u64::MAX]) % frequency_hz),
            origin,
            attributes: self.attributes(),
        }
    }

    fn stream_class(&mut self, id: u64) -> DataStreamClass {
        let mut stream = DataStreamClass::empty(id);
        (stream.namespace, stream.name, stream.uid) =
            (self.maybe(Self::text), self.maybe(Self::text), self.maybe(Self::text));
        stream.default_clock = self.clock;
        stream.attributes = self.attributes();
        let context = vec![
            ("size", Role::PacketTotalLength, 64),
            ("content", Role::PacketContentLength, 64),
            ("begin", Role::DefaultClockTimestamp, 64),
            ("end", Role::PacketEndDefaultClockTimestamp, 64),
            ("discarded", Role::DiscardedEventRecordCounterSnapshot, 64),
            ("number", Role::PacketSequenceNumber, 64),
        ];
        stream.packet_context = self.maybe(|maker| maker.scope(Scope::PacketContext, context));
        let header = vec![("class", Role::EventRecordClassId, 64), ("time", Role::DefaultClockTimestamp, 64)];
        stream.event_header = Some(self.scope(Scope::EventHeader, header));
        stream.event_common_context = self.maybe(|maker| maker.scope(Scope::EventCommonContext, Vec::new()));
        let shared = self.targets.len();
        for id in 0..self.choose(4) {
            stream.event_classes.push(self.event_class(id as u64));
            self.targets.truncate(shared);
        }
        stream
    }

    fn event_class(&mut self, id: u64) -> EventRecordClass {
        let mut event = EventRecordClass {
            id,
            namespace: self.maybe(Self::text),
            name: self.maybe(Self::text),
            uid: self.maybe(Self::text),
            log_level: self.maybe(|maker| maker.one_of(&[0, 4, 14, 99, -1])),
            emf_uri: self.maybe(Self::text),
            specific_context: self.maybe(|maker| maker.scope(Scope::EventSpecificContext, Vec::new())),
            payload: Some(self.scope(Scope::EventPayload, Vec::new())),
            attributes: self.attributes(),
        };
        event.fill_attributes();
        event
    }

    /// The structure of a scope; the fields that readers need come first.
    fn scope(&mut self, scope: Scope, roles: Vec<(&str, Role, u32)>) -> FieldClass {
        self.scope = scope;
        let mut members = Vec::new();
        for (index, (name, role, length)) in roles.into_iter().enumerate() {
            let name = name.replace(' ', "_");
            let mut bits = self.bits(length);
            // Other readers of CTF 1.8 know no reversed identity of a stream either.
            bits.reversed &= !self.plain;
            let clock = match role {
                Role::DefaultClockTimestamp | Role::PacketEndDefaultClockTimestamp => self.clock,
                _ => None,
            };
            let meaning = IntegerMeaning { roles: vec![role], clock, ..IntegerMeaning::plain() };
            self.steps.push(FieldPathStep::Member(index));
            let is_id = matches!(role, Role::EventRecordClassId | Role::DataStreamClassId);
            // Decoded values should mostly be possible: sizes and magic numbers are no lengths.
            if !self.decodable || is_id || scope == Scope::EventHeader && length < 64 {
                self.target(Some(range(&bits, false)));
            }
            self.steps.pop();
            members.push(Member { name, class: FieldClass::new(FieldKind::Integer(FixedInteger { bits, meaning })) });
        }
        let structure = self.structure(members, 0);
        FieldClass { kind: FieldKind::Structure(structure), attributes: self.attributes().map(Box::new) }
    }

    fn target(&mut self, values: Option<IntegerRange>) {
        let path = FieldPath { scope: self.scope, steps: self.steps.clone() };
        self.targets.push(ReferenceTarget { path, values });
    }

    fn structure(&mut self, mut members: Vec<Member>, depth: usize) -> Structure {
        for _ in 0..self.choose(5) {
            let index = members.len();
            let stems = ["field", "_field", "string", "timestamp_begin", "id", "uuid", "field"];
            let mut name = self.one_of(&stems).to_owned();
            if members.iter().any(|member| member.name == name) {
                name.push_str(&format!("_{index}"));
            }
            self.steps.push(FieldPathStep::Member(index));
            let class = self.field(depth);
            self.steps.pop();
            members.push(Member { name, class });
        }
        Structure { members, minimum_alignment: self.one_of(&[1, 8, 64]) }
    }

    fn field(&mut self, depth: usize) -> FieldClass {
        let kind = if depth < DEPTH_MAX && self.choose(3) == 1 { self.compound(depth) } else { self.simple() };
        FieldClass { kind, attributes: self.attributes().map(Box::new) }
    }

    fn bits(&mut self, length: u32) -> FixedBits {
        FixedBits {
            length,
            byte_order: self.order.unwrap_or_else(|| self.one_of(&[ByteOrder::Little, ByteOrder::Big])),
            reversed: !self.plain && self.order.is_none() && self.choose(8) == 7,
            alignment: self.one_of(&[1, 8, 32]),
        }
    }

    fn any_bits(&mut self) -> FixedBits {
        let length = self.one_of(&[8, 1, 5, 16, 32, 63, 64]);
        self.bits(length)
    }

    fn meaning(&mut self, values: IntegerRange) -> IntegerMeaning {
        let mut mappings = Vec::new();
        for index in 0..self.choose(4) {
            let label = if index == 0 { "none".to_owned() } else { format!("label {index}") };
            let mut ranges = vec![self.range(values)];
            ranges.extend(self.maybe(|maker| maker.range(values)));
            mappings.push(EnumerationMapping { label, ranges });
        }
        let base =
            self.one_of(&[DisplayBase::Decimal, DisplayBase::Binary, DisplayBase::Octal, DisplayBase::Hexadecimal]);
        let enumeration = !mappings.is_empty();
        IntegerMeaning { signed: values.lower < 0, base, enumeration, mappings, ..IntegerMeaning::plain() }
    }

    fn range(&mut self, values: IntegerRange) -> IntegerRange {
        let width = values.upper - values.lower + 1;
        let lower = values.lower + self.choose(1 << 16) as i128 % width;
        let upper = (lower + self.choose(5) as i128).min(values.upper);
        IntegerRange { lower, upper }
    }

    fn encoding(&mut self) -> TextEncoding {
        let encodings = [
            TextEncoding::Utf8,
            TextEncoding::Utf16Be,
            TextEncoding::Utf16Le,
            TextEncoding::Utf32Be,
            TextEncoding::Utf32Le,
        ];
        if self.plain { TextEncoding::Utf8 } else { self.one_of(&encodings) }
    }

    fn simple(&mut self) -> FieldKind {
        match self.choose(if self.plain { 9 } else { 10 }) {
            0 => {
                let (bits, signed) = (self.any_bits(), self.choose(2) == 1);
                let values = range(&bits, signed);
                let meaning = self.meaning(values);
                self.target(Some(values));
                FieldKind::Integer(FixedInteger { bits, meaning })
            }
            1 => {
                self.target(None);
                FieldKind::Boolean(self.any_bits())
            }
            2 => FieldKind::BitArray(self.any_bits()),
            3 => {
                let flags =
                    vec![EnumerationMapping { label: self.text(), ranges: vec![IntegerRange { lower: 0, upper: 0 }] }];
                FieldKind::BitMap(BitMap { bits: self.any_bits(), flags })
            }
            4 => {
                let length = if self.decodable { self.one_of(&[32, 64, 16]) } else { self.one_of(&[32, 64, 16, 128]) };
                FieldKind::Real(self.bits(length))
            }
            5 => FieldKind::NullTerminatedText(self.encoding()),
            6 => {
                let (length, encoding) = (self.choose(20) as u64, self.encoding());
                FieldKind::StaticText(StaticText { length, encoding, alignment: 8 })
            }
            7 => {
                let media_type = self.one_of(&["application/octet-stream", "image/png"]).to_owned();
                FieldKind::StaticBlob(StaticBlob { length: self.choose(20) as u64, media_type, roles: Vec::new() })
            }
            8 => self.dynamic(),
            _ => {
                let signed = self.choose(2) == 1;
                let bits = FixedBits { length: 64, byte_order: ByteOrder::Little, reversed: false, alignment: 8 };
                let values = range(&bits, signed);
                let meaning = self.meaning(values);
                self.target(Some(values));
                FieldKind::VariableInteger(VariableInteger { meaning })
            }
        }
    }

    /// Text or bytes with a length elsewhere.
    fn dynamic(&mut self) -> FieldKind {
        let Some(length) = self.length() else { return FieldKind::NullTerminatedText(TextEncoding::Utf8) };
        match self.choose(2) {
            0 => FieldKind::DynamicText(DynamicText { length, encoding: self.encoding(), alignment: 8 }),
            _ => FieldKind::DynamicBlob(DynamicBlob { length, media_type: "application/octet-stream".to_owned() }),
        }
    }

    fn find(&mut self, fits: impl Fn(&ReferenceTarget) -> bool) -> Option<ReferenceTarget> {
        let fitting: Vec<ReferenceTarget> = self.targets.iter().filter(|target| fits(target)).cloned().collect();
        (!fitting.is_empty()).then(|| fitting[self.choose(fitting.len())].clone())
    }

    fn length(&mut self) -> Option<FieldPath> {
        self.find(|target| target.values.is_some_and(|values| values.lower == 0)).map(|target| target.path)
    }

    /// A field inside something that the path to it does not lead out of again.
    fn inside(&mut self, step: FieldPathStep, depth: usize) -> FieldClass {
        let before = self.targets.len();
        self.steps.push(step);
        let class = self.field(depth + 1);
        self.steps.pop();
        self.targets.truncate(before);
        class
    }

    fn compound(&mut self, depth: usize) -> FieldKind {
        match self.choose(5) {
            0 => FieldKind::Structure(self.structure(Vec::new(), depth + 1)),
            1 => {
                let element = Box::new(self.inside(FieldPathStep::Element, depth));
                let minimum_alignment = if self.plain { 1 } else { self.one_of(&[1, 16]) };
                FieldKind::StaticArray(StaticArray { length: self.choose(4) as u64, element, minimum_alignment })
            }
            2 => {
                let Some(length) = self.length() else { return self.simple() };
                let element = Box::new(self.inside(FieldPathStep::Element, depth));
                FieldKind::DynamicArray(DynamicArray { length, element, minimum_alignment: 1 })
            }
            3 => {
                let Some(selector) = self.find(|_| true) else { return self.simple() };
                let ranges = selector.values.map(|values| vec![self.range(values)]);
                let content = self.inside(FieldPathStep::Content, depth);
                FieldKind::Optional(Box::new(Optional { selector: selector.path, ranges, content }))
            }
            _ => self.variant(depth),
        }
    }

    fn variant(&mut self, depth: usize) -> FieldKind {
        let Some(selector) = self.find(|target| target.values.is_some()) else { return self.simple() };
        let values = selector.values.expect("asked for above");
        let mut options: Vec<VariantOption> = Vec::new();
        for index in 0..=self.choose(3) {
            let lower = values.lower + 10 * index as i128;
            if index > 0 && lower + 9 > values.upper {
                break;
            }
            let ranges = vec![IntegerRange { lower, upper: (lower + self.choose(9) as i128).min(values.upper) }];
            let name = (self.choose(4) > 0).then(|| format!("option{index}_of_{}", self.targets.len()));
            options.push(VariantOption { name, ranges, class: self.inside(FieldPathStep::Option(index), depth) });
        }
        FieldKind::Variant(Variant { selector: selector.path, options })
    }
}

fn range(bits: &FixedBits, signed: bool) -> IntegerRange {
    let length = bits.length - u32::from(signed);
    IntegerRange { lower: if signed { -(1 << length) } else { 0 }, upper: (1 << length) - 1 }
}
