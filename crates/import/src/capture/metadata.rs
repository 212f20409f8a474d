//! The description of a capture's events, in TSDL.

use std::fmt::Write as _;

use kymo_packet::CLASSES;
use kymo_wire::magic;

use super::heads::{DATA_FIELDS, fields_of, number_of};
use super::index::{CaptureFacts, CaptureIndex};
use crate::chunks::ImportChunk;
use crate::packet::PacketBuilder;
use crate::tsdl;

const CLOCK: &str = "
clock {
\tname = unix;
\tfreq = 1000000000;
\toffset = 0;
\tabsolute = TRUE;
};

typealias integer { size = 64; align = 8; signed = false; map = clock.unix.value; } := unix_ns;
";

const STREAM: &str = "
\tpacket.context := struct {
\t\tunix_ns timestamp_begin;
\t\tunix_ns timestamp_end;
\t\tu64 content_size;
\t\tu64 packet_size;
\t\tu64 events_discarded;
\t\tstring interface;
\t};
\tevent.header := struct { u8 id; unix_ns timestamp; };
};
";

/// The metadata of a capture.
pub(super) fn metadata(index: &CaptureIndex, format: &str, has_data: bool) -> Vec<u8> {
    let mut text = [tsdl::BEGINNING, tsdl::TYPES, &tsdl::trace("u32 magic; u32 stream_id;")].concat();
    let _ = writeln!(text, "env {{\n\ttracer_name = {};", tsdl::text(format));
    if let Some(section) = index.sections.first() {
        let facts = [
            ("hardware", &section.head.hardware),
            ("os", &section.head.system),
            ("application", &section.head.application),
        ];
        for (name, value) in facts {
            if let Some(value) = value {
                let _ = writeln!(text, "\t{name} = {};", tsdl::text(value));
            }
        }
    }
    let _ = writeln!(text, "\tsections = {};", index.sections.len());
    text.push_str("};\n");
    text.push_str(&stream_text(0, has_data));
    text.into_bytes()
}

/// The part that describes a class of data streams of that id. It needs [`tsdl::TYPES`].
pub(crate) fn stream_text(stream_id: u32, has_data: bool) -> String {
    let data = if has_data { DATA_FIELDS } else { "" };
    let mut text = format!("{CLOCK}\nstream {{\n\tid = {stream_id};{STREAM}");
    for class in CLASSES {
        let (name, id, fields) = (tsdl::text(class.name()), number_of(class), fields_of(class));
        let _ = write!(text, "\nevent {{\n\tname = {name};\n\tid = {id};\n\tstream_id = {stream_id};\n");
        let _ = write!(text, "\tfields := struct {{ {fields}{data} }};\n}};\n");
    }
    text
}

/// Bytes of a packet before its events.
pub(super) fn head_bytes(name: &str) -> u64 {
    2 * 4 + 5 * 8 + name.len() as u64 + 1
}

/// The head of a chunk's packet; its times are said to be `ahead` nanoseconds late.
pub(super) fn put_head(
    builder: &mut PacketBuilder,
    (stream_id, ahead): (u32, u64),
    name: &str,
    chunk: &ImportChunk<CaptureFacts>,
) {
    let bits = (head_bytes(name) + chunk.bytes) * 8;
    builder.u32(magic::PACKET);
    builder.u32(stream_id);
    let (earliest, latest) = (chunk.earliest.saturating_sub(ahead), chunk.latest.saturating_sub(ahead));
    for value in [earliest, latest, bits, bits, chunk.facts.dropped] {
        builder.u64(value);
    }
    builder.bytes(name.as_bytes());
    builder.u8(0);
}
