//! Events of the recorder itself: how its clocks relate, which processes there are and what they execute, what was lost where no lane can say
//! so.

use std::sync::{Arc, LazyLock};

use kymo_writer::packed::{Field, Integer, Kind, Label, Scalar};

use crate::clock::Sample;
use crate::definition::EventClass;
use crate::objects::Object;
use crate::program::Identity;

/// Why something was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A program had no lane for a thread.
    NoLane,
    /// What a program says is no event: so many bytes.
    Unreadable,
    /// What it says is of another time.
    OtherTime,
    /// Metadata could not be written.
    Unwritten,
}

/// All classes, in the order of [`Kinds`].
pub(crate) static CLASSES: LazyLock<[Arc<EventClass>; 4]> = LazyLock::new(|| {
    let number = |name: &str, is_signed, is_hex| {
        field(name, Kind::Scalar(Scalar::Integer(Integer { bytes: 8, is_signed, is_hex })))
    };
    let text = |name: &str| field(name, Kind::Text);
    let labels = ["no_lane", "unreadable", "other_time", "unwritten"].into_iter().zip(0..);
    let labels = labels.map(|(name, value)| Label { name: name.to_owned(), value }).collect();
    let why = Kind::Scalar(Scalar::Enumeration(Integer::unsigned(1), labels));
    let class = |name: &str, fields| {
        let (provider, name) = ("kymo".to_owned(), name.to_owned());
        Arc::new(EventClass { provider, name, level: 6, source: None, role: None, fields })
    };
    let clock = vec![number("monotonic", true, false), number("realtime", true, false), number("width", false, false)];
    let process = vec![
        number("program", false, true),
        number("vpid", false, false),
        number("pid", false, false),
        number("pid_namespace", false, false),
        number("started", false, false),
        text("name"),
        text("path"),
    ];
    let lost = vec![
        number("program", false, true),
        number("lane", false, false),
        field("why", why),
        number("events", false, false),
        number("bytes", false, false),
    ];
    let object = vec![
        number("program", false, true),
        number("address", false, true),
        number("size", false, false),
        number("offset", false, true),
        text("path"),
        text("build_id"),
    ];
    [class("clock", clock), class("process", process), class("lost", lost), class("object", object)]
});

fn field(name: &str, kind: Kind) -> Field {
    Field { name: name.to_owned(), kind }
}

/// Events that wait for their packet.
#[derive(Debug)]
pub(crate) struct Own {
    /// Their ids.
    ids: [u16; 4],
    /// Bytes of a packet before its events.
    before: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: u64,
    /// Cycles of the first and of the last one.
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl Own {
    pub(crate) fn new(ids: [u16; 4], before: usize, now: u64) -> Self {
        Self { ids, before, bytes: vec![0; before], events: 0, begin: now, end: now }
    }

    /// Its packet is written.
    pub(crate) fn clear(&mut self) {
        self.bytes.truncate(self.before);
        (self.events, self.begin) = (0, self.end);
    }

    pub(crate) fn clock(&mut self, cycles: u64, sample: &Sample) {
        let fields =
            [sample.monotonic_ns.to_le_bytes(), sample.realtime_ns.to_le_bytes(), sample.width_ticks.to_le_bytes()];
        self.put(0, cycles, &fields.concat());
    }

    pub(crate) fn process(&mut self, cycles: u64, identity: &Identity, pid_outside: Option<u32>) {
        let mut fields = Vec::new();
        let pid = pid_outside.map_or(0, u64::from);
        for number in [identity.key, identity.pid.into(), pid, identity.pid_namespace, identity.started] {
            fields.extend(number.to_le_bytes());
        }
        add_texts(&mut fields, [&identity.name, &identity.path]);
        self.put(1, cycles, &fields);
    }

    pub(crate) fn object(&mut self, cycles: u64, program: u64, object: &Object) {
        let numbers = [program, object.address, object.bytes, object.offset];
        let mut fields = numbers.map(u64::to_le_bytes).concat();
        add_texts(&mut fields, [&object.path, &object.build_id]);
        self.put(3, cycles, &fields);
    }

    pub(crate) fn lost(&mut self, cycles: u64, program: u64, lane: u16, why: Why, events: u64, bytes: u64) {
        let mut fields = [program.to_le_bytes(), u64::from(lane).to_le_bytes()].concat();
        fields.push(why as u8);
        fields.extend([events.to_le_bytes(), bytes.to_le_bytes()].concat());
        self.put(2, cycles, &fields);
    }

    fn put(&mut self, class: usize, cycles: u64, fields: &[u8]) {
        let cycles = cycles.max(self.end);
        if self.events == 0 {
            self.begin = cycles;
        }
        self.bytes.extend(self.ids[class].to_le_bytes());
        self.bytes.extend((cycles as u32).to_le_bytes());
        self.bytes.extend(fields);
        (self.end, self.events) = (cycles, self.events + 1);
    }
}

fn add_texts(fields: &mut Vec<u8>, texts: [&str; 2]) {
    for text in texts {
        let length = (0..=text.len().min(4096)).rev().find(|length| text.is_char_boundary(*length)).unwrap_or(0);
        fields.extend((length as u16).to_le_bytes());
        fields.extend(&text.as_bytes()[..length]);
    }
}
