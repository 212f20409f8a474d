//! Every engine reads the writer's traces; all engines read damaged copies alike.
//!
//! ```text
//! seed ── trace class ── values ── writer ──> file ──┬── every engine: the same values
//!                                                    └── damaged ── every engine: the same, whatever it is
//! ```

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kymo_decode::Compile;
use kymo_format::model::{DataStreamClass, FieldClass, Role, Scope};
use kymo_format::value::Value;
use kymo_format::{EventRecordClass, TraceClass};
use kymo_random::classes::decodable_trace_class;
use kymo_writer::{EventParts, MetadataSource, StreamWriter, TraceWriter, WriterOptions};

use crate::filtering;
use crate::packets::same_by_all;
use crate::random::RandomNumbers;
use crate::reading::PlainReader;
use crate::values::ScopeValues;

/// An event that was written: clock, class, contexts and payload.
type Written = (u64, usize, [Option<Value>; 3]);

const MAGIC: u64 = 0xC1FC_1FC1;

/// The promise for a trace class made of `choices` and values made by `random`; how many events it could be tried on.
///
/// # Panics
///
/// If it is broken, or a temporary folder cannot be written.
pub fn hold(choices: Vec<u32>, random: &mut RandomNumbers) -> usize {
    let trace = Arc::new(decodable_trace_class(choices));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let packet_bytes = random.below(300) as u64;
    let options = WriterOptions { metadata: MetadataSource::Text(String::new()), packet_bytes, index: false };
    let writer = TraceWriter::create(&folder.path().join("trace"), &trace, options).expect("the folder is empty");
    let mut count = 0;
    for class in 0..trace.stream_classes.len() {
        let name = format!("s{class}");
        let stream = writer.stream(class, None, &name).expect("the class and the name are fine");
        let written = write(&trace, class, stream, random);
        count += written.len();
        found_again(&trace, &folder.path().join("trace").join(name), class, &written, random);
    }
    count
}

/// Writes some events; those that the writer did not refuse.
fn write(trace: &TraceClass, class: usize, mut stream: StreamWriter, random: &mut RandomNumbers) -> Vec<Written> {
    let of_stream = &trace.stream_classes[class];
    let mut written = Vec::new();
    let mut cycles = 0;
    for _ in 0..if of_stream.event_classes.is_empty() { 0 } else { 6 } {
        cycles += random.below(1000) as u64;
        let index = random.below(of_stream.event_classes.len());
        let Some(parts) = parts(trace, of_stream, &of_stream.event_classes[index], cycles, random) else { continue };
        let [packet_header, packet_context, header, body @ ..] = &parts;
        // Without sizes there is one packet, and so one head.
        if packet_context.is_none() && !written.is_empty() {
            break;
        }
        if let Some(value) = packet_header {
            stream.packet_header(value);
        }
        if let Some(value) = packet_context {
            stream.packet_context(value);
        }
        let [common, specific, payload] = body;
        let (common, specific, payload) = (common.as_ref(), specific.as_ref(), payload.as_ref());
        let event = EventParts { header: header.as_ref(), common, specific, payload };
        // Bodies may refer to the head of the packet, so each event has a packet of its own if the head has values.
        if (packet_header.is_some() || packet_context.is_some()) && stream.flush().is_err() {
            return Vec::new();
        }
        if stream.event(cycles, index, &event).is_ok() {
            written.push((cycles, index, [common.cloned(), specific.cloned(), payload.cloned()]));
        }
    }
    // A packet without sizes is whole bytes; if this one is not, nothing was written.
    if stream.flush().is_err() { Vec::new() } else { written }
}

/// Values of all scopes of an event and its packet.
fn parts(
    trace: &TraceClass,
    stream: &DataStreamClass,
    event: &EventRecordClass,
    cycles: u64,
    random: &mut RandomNumbers,
) -> Option<[Option<Value>; 6]> {
    let classes: [(Scope, Option<&FieldClass>); 6] = [
        (Scope::PacketHeader, trace.packet_header.as_ref()),
        (Scope::PacketContext, stream.packet_context.as_ref()),
        (Scope::EventHeader, stream.event_header.as_ref()),
        (Scope::EventCommonContext, stream.event_common_context.as_ref()),
        (Scope::EventSpecificContext, event.specific_context.as_ref()),
        (Scope::EventPayload, event.payload.as_ref()),
    ];
    let mut values = ScopeValues::new(random, classes.iter().filter_map(|(_, class)| *class));
    let mut roles = vec![
        (Role::PacketMagicNumber, MAGIC),
        (Role::DataStreamClassId, stream.id),
        (Role::EventRecordClassId, event.id),
    ];
    roles.extend(stream.default_clock.map(|_| (Role::DefaultClockTimestamp, cycles)));
    let mut parts = [const { None }; 6];
    for (part, (scope, class)) in parts.iter_mut().zip(classes) {
        if let Some(class) = class {
            *part = Some(values.scope(class, scope, &roles)?);
        }
    }
    Some(parts)
}

fn found_again(trace: &Arc<TraceClass>, path: &Path, class: usize, written: &[Written], random: &mut RandomNumbers) {
    let bytes = fs::read(path).expect("the writer made the file");
    if written.is_empty() {
        return;
    }
    let number = random.below(256);
    same_by_all(trace, &bytes, number).expect("such trace classes can be decoded");
    let reader = PlainReader::new(trace, Compile::Never, 0).expect("it was decoded just now");
    let reading = reader.read(&bytes, bytes.len());
    assert_eq!(reading.fault, None, "a packet that was written");
    let events: Vec<_> = reading.packets.iter().flat_map(|packet| &packet.events).collect();
    assert!(reading.packets.iter().all(|packet| packet.head.stream_class == class), "packets of another class");
    let stops: Vec<_> = reading.packets.iter().map(|packet| packet.stop).collect();
    assert_eq!(events.len(), written.len(), "events that were written: {stops:?}");
    let clocked = trace.stream_classes[class].default_clock.is_some();
    for (event, (cycles, class, [common, specific, payload])) in events.iter().zip(written) {
        assert_eq!((event.class as usize, event.cycles), (*class, if clocked { *cycles } else { 0 }));
        let scopes = [
            (Scope::EventCommonContext, common),
            (Scope::EventSpecificContext, specific),
            (Scope::EventPayload, payload),
        ];
        let fields = event.fields.as_ref().expect("an event that was written");
        for (scope, value) in scopes {
            let members = fields.iter().filter(|(of, _)| *of == scope).map(|(_, value)| value.clone());
            let found = Value::Structure(members.collect());
            assert_eq!(&found, value.as_ref().unwrap_or(&Value::Structure(Vec::new())), "{scope:?}");
        }
    }
    same_by_all(trace, &random.damaged(&bytes), number).expect("it was decoded just now");
    filtering::hold(trace, &bytes, random);
}
