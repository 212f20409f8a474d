//! Names of data streams of which packets say whose they are, as those of Genode: each stream is of one thread of a
//! component.

use kymo_decode::FilterFacts;
use kymo_decode::fields::{FieldPlace, FieldReader, FieldValue};
use kymo_filter::NamePath;
use kymo_ir::PacketWindow;
use kymo_scan::index::{HeadReader, PacketRow};
use kymo_scan::{DataStream, Trace};

/// Fields of packets that name a stream together: the component, and its thread.
const NAMES: [&str; 2] = ["session_label", "thread_name"];

/// The name of a stream: `init -> timer: ep`. `None`: packets name neither a component nor a thread.
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
    let names: Vec<String> = places.iter().filter_map(text).filter(|name| !name.is_empty()).collect();
    (!names.is_empty()).then(|| names.join(": "))
}

/// Reads the head of a packet.
pub(super) fn with_packet<T>(
    trace: &Trace,
    row: &PacketRow,
    with: impl FnOnce(&kymo_decode::PacketHead, PacketWindow<'_>) -> T,
) -> Option<T> {
    let file = trace.folder.stream(row.file as usize);
    let mut heads = HeadReader::default();
    let head = heads.read(&trace.decoder, &file, row.offset_bytes, 0).ok()?;
    let bytes = kymo_source::Buffer::copy(heads.bytes());
    Some(with(&head, PacketWindow::new(bytes.with_slack(), 0, head.body_start)))
}
