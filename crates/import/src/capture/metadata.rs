//! The description of a capture's events, in TSDL.

use std::fmt::Write as _;

use kymo_wire::magic;

use super::heads::CLASSES;
use super::index::{CaptureFacts, CaptureIndex};
use crate::chunks::ImportChunk;
use crate::packet::PacketBuilder;
use crate::tsdl;

const STREAM: &str = "
clock {
\tname = unix;
\tfreq = 1000000000;
\toffset = 0;
\tabsolute = TRUE;
};

typealias integer { size = 64; align = 8; signed = false; map = clock.unix.value; } := cycles;

stream {
\tpacket.context := struct {
\t\tcycles timestamp_begin;
\t\tcycles timestamp_end;
\t\tu64 content_size;
\t\tu64 packet_size;
\t\tu64 events_discarded;
\t\tstring interface;
\t};
\tevent.header := struct { u8 id; cycles timestamp; };
};
";

/// The metadata of a capture.
pub(super) fn metadata(index: &CaptureIndex, format: &str) -> Vec<u8> {
    let mut text = String::from(tsdl::HEAD);
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
    text.push_str(STREAM);
    for class in CLASSES {
        let (name, id, fields) = (tsdl::text(class.name()), class.number(), class.fields());
        let _ = write!(text, "\nevent {{\n\tname = {name};\n\tid = {id};\n\tfields := struct {{ {fields} }};\n}};\n");
    }
    text.into_bytes()
}

/// Bytes of a packet before its events.
pub(super) fn head_bytes(name: &str) -> u64 {
    4 + 5 * 8 + name.len() as u64 + 1
}

/// The head of a chunk's packet.
pub(super) fn put_head(builder: &mut PacketBuilder, name: &str, chunk: &ImportChunk<CaptureFacts>) {
    let bits = (head_bytes(name) + chunk.bytes) * 8;
    builder.u32(magic::PACKET);
    for value in [chunk.earliest, chunk.latest, bits, bits, chunk.facts.dropped] {
        builder.u64(value);
    }
    builder.bytes(name.as_bytes());
    builder.u8(0);
}
