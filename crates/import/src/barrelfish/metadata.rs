//! The description of a dump's packets, in TSDL.

use std::fmt::Write as _;

use kymo_wire::magic;

use super::classes::DumpClasses;
use super::index::{Boot, CoreIndex, DumpFacts};
use crate::chunks::ImportChunk;
use crate::packet::PacketBuilder;
use crate::tsdl;

/// Bytes of a packet before its events.
pub(super) const HEAD: u64 = 4 + 4 * 8 + 4 + 8;

/// Cycles per second where that is unknown: a cycle is shown as a nanosecond.
pub(super) const UNKNOWN_FREQUENCY: u64 = 1_000_000_000;

const STREAM: &str = "
typealias integer { size = 64; align = 8; signed = false; map = clock.tsc.value; } := cycles;

stream {
\tpacket.context := struct {
\t\tcycles timestamp_begin;
\t\tcycles timestamp_end;
\t\tu64 content_size;
\t\tu64 packet_size;
\t\tu32 cpu_id;
\t\tu64 events_discarded;
\t};
\tevent.header := struct { u16 id; cycles timestamp; };
\tevent.context := struct { i32 dispatcher; text application[10]; };
};
";

/// The metadata of a boot's dumps.
pub(super) fn metadata(
    boot: &Boot,
    classes: &DumpClasses,
    environment: &[(&str, &str)],
    frequency: Option<u64>,
) -> Vec<u8> {
    let mut text = [tsdl::BEGINNING, tsdl::TYPES, &tsdl::trace("u32 magic;")].concat();
    text.push_str("env {\n\ttracer_name = \"barrelfish\";\n");
    for (name, value) in environment {
        let _ = writeln!(text, "\t{name} = {};", tsdl::text(value));
    }
    let messages = if boot.has_sequences { "numbered" } else { "not numbered" };
    let _ = writeln!(text, "\tmessages = {};", tsdl::text(messages));
    if frequency.is_none() {
        text.push_str("\tclock_frequency = \"unknown\";\n");
    }
    for (number, dump) in boot.dumps.iter().enumerate() {
        let (start, duration, stop) = (dump.start, dump.duration, dump.stop);
        let _ = writeln!(text, "\tdump_{number} = \"start {start} duration {duration} stop {stop}\";");
    }
    let last = |index: &CoreIndex| index.chunks.list.last().map_or(0, |chunk| chunk.latest);
    let mut streams = |name: &str, lack_end: fn(&CoreIndex) -> bool| {
        let named = boot.cores.iter().filter(|(_, index)| lack_end(index));
        let named: Vec<String> = named.map(|(core, index)| format!("core{core}@{}", last(index))).collect();
        if !named.is_empty() {
            let _ = writeln!(text, "\t{name} = {};", tsdl::text(&named.join(" ")));
        }
    };
    streams("streams_without_end", |index| index.is_full);
    streams("streams_cut", |index| index.is_cut && !index.is_full);
    for (core, index) in &boot.cores {
        let offsets: Vec<String> = index.offsets.iter().map(i64::to_string).collect();
        if index.offsets.iter().any(|offset| *offset != 0) {
            let _ = writeln!(text, "\toffset_of_core_{core} = \"{}\";", offsets.join(", "));
        }
    }
    let frequency = frequency.unwrap_or(UNKNOWN_FREQUENCY);
    let _ = write!(text, "}};\n\nclock {{\n\tname = tsc;\n\tfreq = {frequency};\n}};\n{STREAM}");
    for (id, class) in classes.all.iter().enumerate() {
        let (name, fields) = (tsdl::text(&class.name), class.argument.fields());
        let _ = write!(text, "\nevent {{\n\tname = {name};\n\tid = {id};\n\tfields := struct {{ {fields} }};\n}};\n");
    }
    text.into_bytes()
}

/// The head of a chunk's packet.
pub(super) fn put_head(builder: &mut PacketBuilder, core: u32, chunk: &ImportChunk<DumpFacts>) {
    let bits = size(chunk) * 8;
    builder.u32(magic::PACKET);
    for value in [chunk.earliest, chunk.latest, bits, bits] {
        builder.u64(value);
    }
    builder.u32(core);
    builder.u64(chunk.facts.lost);
}

/// Bytes of a chunk's packet.
pub(super) fn size(chunk: &ImportChunk<DumpFacts>) -> u64 {
    HEAD + chunk.bytes
}
