//! Names of data streams of which packets say whose they are: those of Genode are of one thread of a component each,
//! those of captures of an interface.

use kymo_decode::FilterFacts;
use kymo_decode::fields::{FieldPlace, FieldReader, FieldValue};
use kymo_filter::NamePath;
use kymo_scan::{DataStream, Trace};

use crate::open::packet_head::with_packet;

/// Fields of packets: a name of its own, of the component and its thread, or the name of an interface.
const NAMES: [&str; 4] = ["thread", "session_label", "thread_name", "interface"];
/// The first of these of which a packet has one names the stream, with all that it has.
const CHOICES: [std::ops::Range<usize>; 3] = [0..1, 1..3, 3..4];

/// The name of a stream: `init -> timer: ep`. `None`: packets have no such field.
pub(super) fn name(trace: &Trace, stream: &DataStream) -> Option<String> {
    let class = &trace.class.stream_classes[stream.class];
    if class.event_classes.is_empty() || class.packet_context.is_none() {
        return None;
    }
    let facts = FilterFacts { clock: None, trace_name: "", suggests: false, instant: &|_| None };
    let paths = NAMES.map(|name| NamePath::parse(&format!("packet.{name}")).expect("it is a path"));
    let mut reader = FieldReader::new(&trace.decoder, stream.class);
    let places: Vec<FieldPlace> = reader.ask(0, &paths, &facts).ok()?.iter().map(|field| field.place.clone()).collect();
    if !places.iter().any(|place| matches!(place, FieldPlace::Packet { .. })) {
        return None;
    }
    let values = with_packet(trace, &stream.packets.first()?, |head, window| reader.packet(head, window))?;
    let text = |place: &FieldPlace| match place {
        FieldPlace::Packet { index, .. } => match values.get(*index)? {
            Some(FieldValue::Text(bytes)) => Some(String::from_utf8_lossy(bytes).trim().to_owned()),
            _ => None,
        },
        _ => None,
    };
    let texts: Vec<Option<String>> = places.iter().map(|place| text(place).filter(|name| !name.is_empty())).collect();
    let mut choices = CHOICES.into_iter().map(|choice| texts[choice].iter().flatten().cloned().collect::<Vec<_>>());
    choices.find(|names| !names.is_empty()).map(|names| names.join(": "))
}
