//! Random trace classes with random values: what is written is read back equal.
//!
//! A seed makes the class and, beside it, two values of it; lengths and selectors are members just
//! before their users. All fields share one byte and bit order, or are aligned to bytes.

use std::fs;

use kymo_decode::tree::stream::read_file;
use kymo_format::model::*;
use kymo_format::value::Value;
use kymo_units::ByteOrder;
use kymo_writer::{EventParts, MetadataSource, TraceWriter, WriterOptions};
use proptest::prelude::*;

struct Random {
    state: u64,
    /// One order for all, or none: then alignment 8.
    order: Option<(ByteOrder, bool)>,
}

impl Random {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn bits(&mut self, length: u32) -> FixedBits {
        let order = [ByteOrder::Little, ByteOrder::Big][self.below(2) as usize];
        let reversed = self.below(4) == 0;
        let shift = self.below(6);
        let (byte_order, reversed) = self.order.unwrap_or((order, reversed));
        let alignment = if self.order.is_some() { 1 << shift } else { 8 << (shift / 2) };
        FixedBits { length, byte_order, reversed, alignment }
    }

    fn text(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| self.below(255) as u8 + 1).collect()
    }
}

fn meaning(signed: bool, roles: Vec<Role>) -> IntegerMeaning {
    IntegerMeaning {
        signed,
        base: DisplayBase::Decimal,
        enumeration: false,
        mappings: Vec::new(),
        roles,
        clock: None,
        encoding: None,
    }
}

fn integer(bits: FixedBits, signed: bool, roles: Vec<Role>) -> FieldClass {
    FieldClass::new(FieldKind::Integer(FixedInteger { bits, meaning: meaning(signed, roles) }))
}

fn scalar(random: &mut Random) -> (FieldClass, Value) {
    let length = 1 + random.below(64) as u32;
    let bits = random.bits(length);
    let raw = random.next() >> (64 - length);
    let signed = (random.next() as i64) >> (64 - length);
    let kind_and_value = match random.below(9) {
        0 => (FieldKind::BitArray(bits), Value::BitArray(raw)),
        1 => (FieldKind::Boolean(bits), Value::Boolean(raw & 1 == 1)),
        2 => return (integer(bits, false, Vec::new()), Value::Unsigned(raw)),
        3 => return (integer(bits, true, Vec::new()), Value::Signed(signed)),
        4 => {
            (FieldKind::VariableInteger(VariableInteger { meaning: meaning(false, Vec::new()) }), Value::Unsigned(raw))
        }
        5 => {
            (FieldKind::VariableInteger(VariableInteger { meaning: meaning(true, Vec::new()) }), Value::Signed(signed))
        }
        6 => {
            let length = [16, 32, 64, 96, 128][random.below(5) as usize];
            let value = u128::from(random.next()) << 64 | u128::from(random.next());
            (FieldKind::Real(random.bits(length)), Value::Real(value >> (128 - length)))
        }
        7 => {
            let encoding = [TextEncoding::Utf8, TextEncoding::Utf16Be, TextEncoding::Utf32Le];
            let encoding = encoding[random.below(3) as usize];
            let length = 4 * random.below(5);
            (FieldKind::NullTerminatedText(encoding), Value::Text(random.text(length)))
        }
        _ => {
            let length = random.below(9);
            let text = StaticText { length: length + random.below(3), encoding: TextEncoding::Utf8, alignment: 8 };
            (FieldKind::StaticText(text), Value::Text(random.text(length)))
        }
    };
    (FieldClass::new(kind_and_value.0), kind_and_value.1)
}

/// A class that needs the member before it, whose value is `selector`.
fn dependent(
    random: &mut Random,
    path: FieldPath,
    selector: u64,
    depth: u32,
    at: &[FieldPathStep],
) -> (FieldClass, Value) {
    let below = |step| [at, &[step]].concat();
    let single = |value: u64| vec![IntegerRange::single(i128::from(value))];
    let (kind, value) = match random.below(5) {
        0 => {
            let text = DynamicText { length: path, encoding: TextEncoding::Utf8, alignment: 8 };
            (FieldKind::DynamicText(text), Value::Text(random.text(selector)))
        }
        1 => {
            let blob = DynamicBlob { length: path, media_type: String::new() };
            (FieldKind::DynamicBlob(blob), Value::Blob(random.text(selector)))
        }
        2 => {
            let (element, value) = scalar(random);
            let array = DynamicArray { length: path, element: Box::new(element), minimum_alignment: 1 };
            (FieldKind::DynamicArray(array), Value::Array(vec![value; selector as usize]))
        }
        3 => {
            let (content, value) = field(random, depth, &below(FieldPathStep::Content));
            let present = random.below(2) == 0;
            let ranges = Some(single(if present { selector } else { selector + 1 }));
            let value = Value::Optional(present.then(|| Box::new(value)));
            (FieldKind::Optional(Box::new(Optional { selector: path, ranges, content })), value)
        }
        _ => {
            let (other, _) = field(random, depth, &below(FieldPathStep::Option(0)));
            let (chosen, value) = field(random, depth, &below(FieldPathStep::Option(1)));
            let option = |ranges, class| VariantOption { name: None, ranges, class };
            let options = vec![option(single(selector + 1), other), option(single(selector), chosen)];
            let value = Value::Variant { option: 1, content: Box::new(value) };
            (FieldKind::Variant(Variant { selector: path, options }), value)
        }
    };
    (FieldClass::new(kind), value)
}

/// A class at the path `at` of the payload, and a value of it.
fn field(random: &mut Random, depth: u32, at: &[FieldPathStep]) -> (FieldClass, Value) {
    if depth == 0 || random.below(3) == 0 {
        return scalar(random);
    }
    if random.below(4) == 0 {
        let (element, value) = field(random, depth - 1, &[at, &[FieldPathStep::Element]].concat());
        let length = random.below(4);
        let array = StaticArray { length, element: Box::new(element), minimum_alignment: 1 << random.below(5) };
        let values = vec![value; length as usize];
        return (FieldClass::new(FieldKind::StaticArray(array)), Value::Array(values));
    }
    structure(random, depth - 1, at)
}

fn structure(random: &mut Random, depth: u32, at: &[FieldPathStep]) -> (FieldClass, Value) {
    let (mut members, mut values) = (Vec::new(), Vec::new());
    let mut push = |(class, value): (FieldClass, Value)| {
        let name = format!("m{}", members.len());
        members.push(Member { name, class });
        values.push(value);
    };
    for pair in 0..1 + random.below(3) as usize {
        let (first, second) = (FieldPathStep::Member(2 * pair), FieldPathStep::Member(2 * pair + 1));
        let selector = random.below(6);
        let length = 3 + random.below(20) as u32;
        push((integer(random.bits(length), false, Vec::new()), Value::Unsigned(selector)));
        let steps = [at, &[first]].concat();
        let path = FieldPath { scope: Scope::EventPayload, steps };
        let here = [at, &[second]].concat();
        push(match random.below(2) {
            0 => dependent(random, path, selector, depth, &here),
            _ => field(random, depth, &here),
        });
    }
    let minimum_alignment = 1 << random.below(6);
    let structure = Structure { members, minimum_alignment };
    (FieldClass::new(FieldKind::Structure(structure)), Value::Structure(values))
}

fn head(fields: &[(&str, Role)], random: &mut Random) -> FieldClass {
    let member = |(name, role): &(&str, Role)| {
        let bits = FixedBits { alignment: 8, ..random.bits(32) };
        Member { name: (*name).to_owned(), class: integer(bits, false, vec![*role]) }
    };
    let members = fields.iter().map(member).collect();
    FieldClass::new(FieldKind::Structure(Structure { members, minimum_alignment: 8 }))
}

/// A trace class to begin with; the payload is replaced.
const TEXT: &str = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; \
                    event { name = e; fields := struct { string s; }; };";

fn trace_class(random: &mut Random, payload: FieldClass) -> TraceClass {
    let mut class = kymo_format::parse(TEXT.as_bytes()).trace_class.expect("the text is sound");
    class.packet_header = Some(head(&[("magic", Role::PacketMagicNumber)], random));
    let stream = &mut class.stream_classes[0];
    let sizes = [("total", Role::PacketTotalLength), ("content", Role::PacketContentLength)];
    stream.packet_context = Some(head(&sizes, random));
    stream.event_header = Some(head(&[("id", Role::EventRecordClassId)], random));
    stream.event_classes[0].payload = Some(payload);
    class
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn what_is_written_is_read(seed: u64, one_order: bool, big: bool, reversed: bool, packet_bytes in 0_u64..400) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let mut random = Random { state: seed, order: one_order.then_some((order, reversed)) };
        let (payload, value) = structure(&mut random, 3, &[]);
        let class = trace_class(&mut random, payload);
        let folder = std::env::temp_dir().join(format!("kymo-random-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        let options = WriterOptions { metadata: MetadataSource::Text(String::new()), packet_bytes, index: false };
        let trace = TraceWriter::create(&folder, &class, options).unwrap();
        let mut stream = trace.stream(0, None, "s").unwrap();
        for _ in 0..5 {
            stream.event(0, 0, &EventParts { payload: Some(&value), ..EventParts::default() }).unwrap();
            // A refused event leaves nothing behind.
            stream.event(0, 0, &EventParts::default()).unwrap_err();
        }
        stream.flush().unwrap();
        let (packets, fault) = read_file(&class, &fs::read(folder.join("s")).unwrap());
        fs::remove_dir_all(&folder).ok();
        prop_assert_eq!(fault, None);
        let events: Vec<_> = packets.iter().flat_map(|packet| &packet.events).collect();
        prop_assert_eq!(events.len(), 5);
        for event in events {
            prop_assert_eq!(event.payload.as_ref(), Some(&value));
        }
    }
}
