//! The layout of the recorder's packets, and whether metadata describes it.

use kymo_format::model::Member;
use kymo_format::{FieldClass, FieldKind, TraceClass};
use kymo_units::ByteOrder;

/// Members of a scope: their names, and their sizes in bits; 0: a text that ends with a zero.
type Layout = &'static [(&'static str, u32)];

const HEADER: Layout = &[("magic", 32), ("stream_id", 32)];
const CONTEXT: Layout = &[
    ("timestamp_begin", 64),
    ("timestamp_end", 64),
    ("packet_size", 32),
    ("hdrsz", 16),
    ("xpos", 4),
    ("ypos", 4),
    ("width", 4),
    ("height", 4),
    ("priority", 8),
    ("session_label", 0),
    ("thread_name", 0),
];
const EVENT_HEADER: Layout = &[("id", 8), ("timestamp", 64)];

/// Bytes of an event before its payload.
const EVENT_HEADER_BYTES: usize = 9;
/// Where an event's time is.
pub(super) const EVENT_TIME: usize = 1;

/// The class of metadata that the recorder wrote; `None`: another tracer's.
pub(super) fn class(metadata: &[u8]) -> Option<TraceClass> {
    // Metadata of others, which may be long, is not parsed.
    for word in [&b"session_label"[..], b"thread_name", b"hdrsz"] {
        memchr::memmem::find(metadata, word)?;
    }
    let class = kymo_format::parse(metadata).trace_class?;
    let [stream] = &class.stream_classes[..] else { return None };
    let is_one_of = class.native_byte_order == Some(ByteOrder::Little)
        && class.clock_classes.len() == 1
        && has_layout(class.packet_header.as_ref(), HEADER)
        && has_layout(stream.packet_context.as_ref(), CONTEXT)
        && has_layout(stream.event_header.as_ref(), EVENT_HEADER)
        && stream.event_common_context.is_none()
        && stream.id == 0;
    is_one_of.then_some(class)
}

fn has_layout(scope: Option<&FieldClass>, layout: Layout) -> bool {
    let Some(FieldClass { kind: FieldKind::Structure(structure), .. }) = scope else { return false };
    let is_like = |member: &Member, (name, bits): &(&str, u32)| {
        member.name.trim_start_matches('_') == *name && bits_of(&member.class) == Some(*bits)
    };
    structure.members.len() == layout.len()
        && structure.members.iter().zip(layout).all(|(one, other)| is_like(one, other))
}

/// The bits of a field without gaps before it; 0: a text that ends with a zero.
fn bits_of(class: &FieldClass) -> Option<u32> {
    match &class.kind {
        FieldKind::Integer(integer) if integer.bits.byte_order == ByteOrder::Little && integer.bits.alignment <= 8 => {
            Some(integer.bits.length)
        }
        FieldKind::NullTerminatedText(_) => Some(0),
        _ => None,
    }
}

/// The layouts of events, for finding out where each begins.
#[derive(Debug)]
pub(super) struct EventLayouts(Vec<(u64, Option<Vec<PayloadPart>>)>);

/// A part of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadPart {
    Bytes(usize),
    Text,
}

impl EventLayouts {
    pub(super) fn new(class: &TraceClass) -> Self {
        let events = class.stream_classes.iter().flat_map(|stream| &stream.event_classes);
        let layout = |event: &kymo_format::EventRecordClass| {
            let payload = match &event.payload {
                Some(FieldClass { kind: FieldKind::Structure(structure), .. }) => &structure.members[..],
                None => &[],
                Some(_) => return None,
            };
            let part = |member: &Member| match bits_of(&member.class)? {
                0 => Some(PayloadPart::Text),
                bits if bits % 8 == 0 => Some(PayloadPart::Bytes(bits as usize / 8)),
                _ => None,
            };
            payload.iter().map(part).collect::<Option<Vec<PayloadPart>>>().filter(|_| event.specific_context.is_none())
        };
        Self(events.map(|event| (event.id, layout(event))).collect())
    }

    /// Where the events of a packet begin, as far as they are whole and known; `bytes` are those behind its head. Also where
    /// the last of them ends.
    pub(super) fn walk(&self, bytes: &[u8]) -> (Vec<usize>, usize) {
        let (mut begins, mut at) = (Vec::new(), 0);
        while let Some(end) = self.end_of(bytes, at) {
            begins.push(at);
            at = end;
        }
        (begins, at)
    }

    /// The end of the event that begins there.
    fn end_of(&self, bytes: &[u8], begin: usize) -> Option<usize> {
        let id = u64::from(*bytes.get(begin)?);
        let (_, layout) = self.0.iter().find(|(known, _)| *known == id)?;
        let mut end = begin + EVENT_HEADER_BYTES;
        for part in layout.as_ref()? {
            end += match part {
                PayloadPart::Bytes(count) => *count,
                PayloadPart::Text => memchr::memchr(0, bytes.get(end..)?)? + 1,
            };
        }
        (end <= bytes.len()).then_some(end)
    }
}
