//! Tiny traces in the form of LTTng's kernel tracer, made of packets and events that a test lists.
//!
//! ```text
//! packet   magic u32 │ stream u32 │ begin, end, content, size, sequence, lost u64 │ cpu u32 │ events
//! event    class u16 │ time u64 │ fields: i64, or bytes up to a 0
//! ```
//!
//! `tests/analyses/events.txt` lists the classes; fields that are not given are 0, texts `-`. Bytes are put together by
//! hand, so that a mistake of our own writer is not made up for by our reader.

use std::collections::BTreeMap;
use std::path::Path;

/// One packet, and the events in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    pub(crate) cpu: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Events lost up to its end, since the trace began.
    pub(crate) discarded: u64,
    /// Its number, if it is not the next one.
    pub(crate) sequence: Option<u64>,
    /// It fills whole pages of memory, as packets that LTTng itself wrote.
    pub(crate) in_pages: bool,
    pub(crate) events: Vec<Event>,
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) time: u64,
    pub(crate) name: String,
    pub(crate) values: Vec<(String, String)>,
}

/// A class of events.
#[derive(Debug)]
pub(super) struct EventClass {
    pub(super) name: &'static str,
    /// Its fields, and which of them are texts.
    pub(super) fields: Vec<(&'static str, bool)>,
}

/// The classes of events that there are.
pub(super) fn classes() -> Vec<EventClass> {
    let text = include_str!("../../../../../../tests/analyses/events.txt");
    let (_, list) = text.split_once("\n\n").expect("a heading stands above the list");
    let field = |word: &'static str| (word.trim_end_matches('$'), word.ends_with('$'));
    let class = |line: &'static str| {
        let mut words = line.split_whitespace();
        Some(EventClass { name: words.next()?, fields: words.map(field).collect() })
    };
    list.lines().filter_map(class).collect()
}

/// Makes a trace of packets, those of each CPU in order.
pub(crate) fn write(folder: &Path, packets: &[Packet]) {
    let classes = classes();
    std::fs::write(folder.join("metadata"), metadata(&classes)).expect("the folder is there");
    let mut streams: BTreeMap<u32, (u64, Vec<u8>)> = BTreeMap::new();
    for packet in packets {
        let (next_sequence, bytes) = streams.entry(packet.cpu).or_default();
        let sequence = packet.sequence.unwrap_or(*next_sequence);
        *next_sequence = sequence + 1;
        bytes.extend(packet_bytes(&classes, packet, sequence));
    }
    for (cpu, (_, bytes)) in streams {
        std::fs::write(folder.join(format!("channel0_{cpu}")), bytes).expect("the folder is there");
    }
}

fn metadata(classes: &[EventClass]) -> String {
    let mut text = "/* CTF 1.8 */
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 16; align = 8; signed = false; } := u16;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
env {
    domain = \"kernel\"; sysname = \"Linux\"; kernel_release = \"4.4.0\"; tracer_name = \"lttng-modules\";
    tracer_major = 2; tracer_minor = 13; tracer_patchlevel = 0;
};
clock { name = monotonic; freq = 1000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time64;
stream {
    id = 0;
    packet.context := struct {
        time64 timestamp_begin; time64 timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num;
        u64 events_discarded; u32 cpu_id;
    };
    event.header := struct { u16 id; time64 timestamp; };
};
"
    .to_owned();
    for (id, class) in classes.iter().enumerate() {
        let member = |(name, is_text): &(&str, bool)| format!("{} _{name}; ", if *is_text { "string" } else { "i64" });
        let members: String = class.fields.iter().map(member).collect();
        let name = class.name;
        text +=
            &format!("event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := struct {{ {members}}}; }};\n");
    }
    text
}

fn packet_bytes(classes: &[EventClass], packet: &Packet, sequence: u64) -> Vec<u8> {
    let events: Vec<u8> = packet.events.iter().flat_map(|event| event_bytes(classes, event)).collect();
    let head_bytes = 2 * 4 + 6 * 8 + 4;
    let content = head_bytes + events.len() as u64;
    let size = if packet.in_pages { content.next_multiple_of(4096) } else { content };
    let mut bytes = [0xC1FC_1FC1_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat();
    for number in [packet.begin, packet.end, 8 * content, 8 * size, sequence, packet.discarded] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(packet.cpu.to_le_bytes());
    bytes.extend(events);
    bytes.resize(size as usize, 0);
    bytes
}

fn event_bytes(classes: &[EventClass], event: &Event) -> Vec<u8> {
    let is_named = |class: &EventClass| class.name == event.name;
    let id = classes.iter().position(is_named).unwrap_or_else(|| panic!("there is no event `{}`", event.name));
    let fields = &classes[id].fields;
    let is_field = |name: &String| fields.iter().any(|field| field.0 == name);
    assert!(event.values.iter().all(|(name, _)| is_field(name)), "{event:?} has a field that there is not");
    let mut bytes = (id as u16).to_le_bytes().to_vec();
    bytes.extend(event.time.to_le_bytes());
    for (name, is_text) in fields {
        let value = event.values.iter().find(|value| value.0 == *name).map(|value| value.1.as_str());
        if *is_text {
            bytes.extend(value.unwrap_or("-").bytes().chain([0]));
        } else {
            let number: i64 = value.map_or(0, |value| value.parse().expect("the field is a number"));
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes
}
