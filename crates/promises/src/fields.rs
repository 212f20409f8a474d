//! Reading chosen fields yields the same values as reading all of them, by each engine.
//!
//! ```text
//! file ── every event, as values ── what a name means in them ──────────────────> value ┐
//!      └─ classes asked for some names ── records of each class, by each engine ─> cell  ┘ the same
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use kymo_decode::fields::{FieldPlace, FieldReader, FieldValue};
use kymo_decode::{Compile, Decoder, FilterFacts};
use kymo_filter::NamePath;
use kymo_format::TraceClass;
use kymo_ir::predicate::Datum;
use kymo_ir::{Cells, PacketWindow, SLACK};

use crate::filtering;
use crate::random::RandomNumbers;
use crate::reading::{PacketContents, PlainReader, ReadEvent};

/// Names that a class is asked for.
const NAMES_MAX: usize = 5;

/// The promise for the bytes of a stream file; how many values were compared, and how many of them were there.
///
/// # Panics
///
/// If it is broken.
pub fn hold(trace: &Arc<TraceClass>, bytes: &[u8], random: &mut RandomNumbers) -> (usize, usize) {
    let Ok(reader) = PlainReader::new(trace, Compile::Never, 0) else { return (0, 0) };
    let reading = reader.read(bytes, bytes.len());
    let seed = random.any();
    let mut counts = (0, 0);
    for (compile, slack) in [(Compile::Never, 0xFF), (Compile::AtOnce, 0)] {
        let decoder = Arc::new(Decoder::new(Arc::clone(trace), compile).expect("it was decoded just now"));
        let random = &mut RandomNumbers::new(seed);
        let asked = (0..trace.stream_classes.len()).map(|stream| FieldRequests::new(&decoder, stream, random));
        let asked: Vec<FieldRequests> = asked.collect();
        let (mut offset, mut compared) = (0, (0, 0));
        for packet in &reading.packets {
            let bytes = [&bytes[offset..], &[slack; SLACK]].concat();
            let (count, there) = asked[packet.head.stream_class].same(&decoder, packet, &bytes);
            compared = (compared.0 + count, compared.1 + there);
            offset += packet.size_bytes;
        }
        counts = compared;
    }
    counts
}

/// The fields asked of the classes of a data stream class.
struct FieldRequests {
    reader: FieldReader,
    stream: usize,
    /// By event record class.
    names: Vec<Vec<String>>,
}

impl FieldRequests {
    fn new(decoder: &Arc<Decoder>, stream: usize, random: &mut RandomNumbers) -> Self {
        let (trace, mut reader) = (decoder.trace_class(), FieldReader::new(decoder, stream));
        let facts = FilterFacts { clock: None, trace_name: "", suggests: false, instant: &|_| None };
        let of_stream = &trace.stream_classes[stream];
        let mut all = Vec::new();
        for (number, class) in of_stream.event_classes.iter().enumerate() {
            let known = filtering::names(trace.dialect, of_stream, class, random);
            let count = random.below(NAMES_MAX + 1);
            let name = |_| known.get(random.below(known.len().max(1))).map(|(name, _)| name.clone());
            let names: Vec<String> = (0..count).filter_map(name).collect();
            // Some at once, the others later.
            let (first, second) = names.split_at(names.len() / 2);
            for part in [first, second] {
                let paths: Vec<NamePath> =
                    part.iter().map(|name| NamePath::parse(name).expect("it is a name")).collect();
                reader.ask(number, &paths, &facts).expect("every class was lowered when the decoder was made");
            }
            all.push(names);
        }
        Self { reader, stream, names: all }
    }

    /// The records of a packet, which has these bytes and this slack, have the values that they had
    /// before; how many there are, and how many are not missing.
    fn same(&self, decoder: &Decoder, packet: &PacketContents, bytes: &[u8]) -> (usize, usize) {
        let window = PacketWindow::new(bytes, 0, 8 * (bytes.len() - SLACK) as u64);
        let mut classes: BTreeMap<u32, Vec<&ReadEvent>> = BTreeMap::new();
        for event in packet.events.iter().filter(|event| event.fields.is_ok()) {
            classes.entry(event.class).or_default().push(event);
        }
        let (mut count, mut there, mut cells) = (0, 0, Cells::default());
        for (class, events) in classes {
            let class = class as usize;
            let positions: Vec<u64> = events.iter().map(|event| event.position).collect();
            let mut state = decoder.state(&packet.head, 0);
            let read = self.reader.read(class, window, &positions, &mut state, &mut cells);
            read.expect("all of its fields can be read");
            for (name, field) in self.names[class].iter().zip(self.reader.fields(class)) {
                for (row, event) in events.iter().enumerate() {
                    let found = match &field.place {
                        FieldPlace::Column { column, kind, .. } => {
                            FieldValue::of_row(&cells, *column, row, *kind, window)
                        }
                        FieldPlace::Compound(_) | FieldPlace::Missing { .. } => None,
                        other => panic!("{name} is at {other:?}"),
                    };
                    there += usize::from(found.is_some());
                    count += 1;
                    let expected = self.expected(decoder, name, event);
                    let program = self.reader.program(class);
                    assert!(is_same(found.as_ref(), &expected), "{name}: {found:?}, not {expected:?}: {program:?}");
                }
            }
        }
        (count, there)
    }

    fn expected(&self, decoder: &Decoder, name: &str, event: &ReadEvent) -> Datum {
        let trace = decoder.trace_class();
        filtering::value_of(trace.dialect, &trace.stream_classes[self.stream], name, event).unwrap_or(Datum::Missing)
    }
}

fn is_same(found: Option<&FieldValue>, expected: &Datum) -> bool {
    match (found, expected) {
        (None, Datum::Missing) => true,
        (Some(FieldValue::Integer(value)), Datum::Number(bits)) => {
            *value == i128::from(*bits) || *value < 0 && *value == i128::from(bits.cast_signed())
        }
        (Some(FieldValue::Real(value)), Datum::Number(bits)) => value.to_bits() == *bits,
        (Some(FieldValue::Text(value)), Datum::Text(text)) => **value == **text,
        _ => false,
    }
}
