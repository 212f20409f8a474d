//! The output of programs as a CTF trace: records of rings, lines, and at the end the entries of maps.
//!
//! ```text
//! ring `events`    ──> events `events`, with the members of their structure as fields
//! bpf_printk       ──> events `bpf_printk`, with `text`
//! map `counts`     ──> events `map:counts`, with `key`, `value` and, where each CPU has a value, `cpu`
//! ```
//!
//! There is one stream, in the order of time. Records of several CPUs do not come in that order: they wait until no earlier one is
//! expected ([`BpfTrace::settle`]), and one that comes later still has the time of the event before it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::Path;

use kymo_bpf::{BpfObject, BpfValue, ObjectMap};
use kymo_format::model::{
    ClockClass, ClockOrigin, DataStreamClass, Dialect, EnvironmentValue, EventRecordClass, FieldClass, Role, TraceClass,
};
use kymo_format::value::Value;
use kymo_format::write::to_tsdl;
use kymo_units::ByteOrder;
use kymo_writer::{EventParts, MetadataSource, StreamWriter, TraceWriter, WriteError, WriterOptions};

use super::BpfMapContents;
use super::fields::{self, number, structure};

/// Bytes of a packet.
const PACKET_BYTES: u64 = 1 << 16;
/// Records that wait for earlier ones at most.
const WAITING_MAX: usize = 1 << 16;
/// The event of a line.
const LINES: &str = "bpf_printk";
const STREAM: &str = "records";

/// The clock of such a trace, which counts nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BpfClock {
    /// From its origin to its zero.
    pub offset_ns: i64,
    /// The origin is the beginning of 1970.
    pub is_unix: bool,
}

/// Why the output of programs does not become a trace.
#[derive(Debug, thiserror::Error)]
pub enum BpfTraceProblem {
    /// The types cannot be expressed.
    #[error("the types of its records cannot be written as metadata: {0}")]
    Metadata(String),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// A trace that is being written.
#[derive(Debug)]
pub struct BpfTrace {
    _trace: TraceWriter,
    stream: StreamWriter,
    /// Event classes of rings and maps, by name.
    classes: HashMap<String, usize>,
    maps: HashMap<String, ObjectMap>,
    waiting: BinaryHeap<Reverse<WaitingEvent>>,
    /// Events until now, which keeps those of one time in their order.
    count: u64,
    last: u64,
    late: u64,
}

/// An event that waits for earlier ones.
#[derive(Debug, PartialEq, Eq)]
struct WaitingEvent {
    cycles: u64,
    number: u64,
    class: usize,
    payload: Value,
}

impl Ord for WaitingEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.cycles, self.number).cmp(&(other.cycles, other.number))
    }
}

impl PartialOrd for WaitingEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl BpfTrace {
    /// Makes a folder for the output of an object's programs.
    ///
    /// # Errors
    ///
    /// It cannot be made, or has a trace already.
    pub fn create(path: &Path, object: &BpfObject, name: &str, clock: BpfClock) -> Result<Self, BpfTraceProblem> {
        let (mut classes, mut events) = (HashMap::new(), Vec::new());
        let mut add = |name: String, payload: FieldClass| {
            classes.insert(name.clone(), events.len());
            events.push(event_class(events.len() as u64, name, payload));
        };
        for map in object.maps().iter().filter(|map| map.is_ring()) {
            add(map.name.clone(), fields::record_class(map.value.as_ref()));
        }
        add(LINES.to_owned(), fields::line_class());
        for map in object.maps().iter().filter(|map| !map.is_ring() && !map.is_constant()) {
            add(map_event(map), fields::entry_class(map));
        }
        let class = trace_class(name, clock, events);
        let text = to_tsdl(&class).map_err(|problem| BpfTraceProblem::Metadata(problem.to_string()))?;
        let options = WriterOptions { metadata: MetadataSource::Text(text), packet_bytes: PACKET_BYTES, index: true };
        let trace = TraceWriter::create(path, &class, options)?;
        let stream = trace.stream(0, Some(0), STREAM)?;
        let maps = object.maps().iter().map(|map| (map.name.clone(), map.clone())).collect();
        let (waiting, count, last, late) = Default::default();
        Ok(Self { _trace: trace, stream, classes, maps, waiting, count, last, late })
    }

    /// A record of a ring, at this time of the clock.
    ///
    /// # Errors
    ///
    /// The trace cannot be written.
    pub fn record(&mut self, cycles: u64, map: &str, value: &BpfValue) -> Result<(), BpfTraceProblem> {
        let (Some(class), Some(map)) = (self.classes.get(map).copied(), self.maps.get(map)) else { return Ok(()) };
        let payload = fields::record(map.value.as_ref(), value);
        self.wait(cycles, class, payload)
    }

    /// A line of `bpf_printk`.
    ///
    /// # Errors
    ///
    /// The trace cannot be written.
    pub fn line(&mut self, cycles: u64, text: &str) -> Result<(), BpfTraceProblem> {
        let class = self.classes[LINES];
        self.wait(cycles, class, Value::Structure(vec![fields::text(text)]))
    }

    fn wait(&mut self, cycles: u64, class: usize, payload: Value) -> Result<(), BpfTraceProblem> {
        self.count += 1;
        self.waiting.push(Reverse(WaitingEvent { cycles, number: self.count, class, payload }));
        if self.waiting.len() > WAITING_MAX { self.write_first() } else { Ok(()) }
    }

    /// Writes all that is not later than this time: no earlier record is expected any more.
    ///
    /// # Errors
    ///
    /// The trace cannot be written.
    pub fn settle(&mut self, cycles: u64) -> Result<(), BpfTraceProblem> {
        while self.waiting.peek().is_some_and(|Reverse(event)| event.cycles <= cycles) {
            self.write_first()?;
        }
        Ok(())
    }

    fn write_first(&mut self) -> Result<(), BpfTraceProblem> {
        let Some(Reverse(event)) = self.waiting.pop() else { return Ok(()) };
        if event.cycles < self.last {
            self.late += 1;
        }
        self.last = self.last.max(event.cycles);
        let parts = EventParts { payload: Some(&event.payload), ..EventParts::default() };
        Ok(self.stream.event(self.last, event.class, &parts)?)
    }

    /// Writes the rest, and the entries of maps at this time; how many records had to get the time of the event before them.
    ///
    /// # Errors
    ///
    /// The trace cannot be written.
    pub fn finish(mut self, cycles: u64, contents: &[BpfMapContents], lost: u64) -> Result<u64, BpfTraceProblem> {
        self.settle(u64::MAX)?;
        let cycles = self.last.max(cycles);
        for found in contents {
            let Some(class) = self.classes.get(&map_event(&found.map)).copied() else { continue };
            for payload in fields::entries(found) {
                let parts = EventParts { payload: Some(&payload), ..EventParts::default() };
                self.stream.event(cycles, class, &parts)?;
            }
        }
        self.stream.discarded(lost);
        self.stream.flush()?;
        if self.count == 0 || lost > 0 {
            // A trace without events has a packet, too, and losses are in one of their own.
            self.stream.empty_packet(cycles)?;
        }
        Ok(self.late)
    }
}

/// The name of the events of a map.
fn map_event(map: &ObjectMap) -> String {
    format!("map:{}", map.name)
}

fn event_class(id: u64, name: String, payload: FieldClass) -> EventRecordClass {
    EventRecordClass {
        id,
        namespace: None,
        name: Some(name),
        uid: None,
        log_level: None,
        emf_uri: None,
        specific_context: None,
        payload: Some(payload),
        attributes: None,
    }
}

fn trace_class(object: &str, clock: BpfClock, events: Vec<EventRecordClass>) -> TraceClass {
    let role = |bits, role| number(bits, Some(role));
    let header = vec![("magic", role(32, Role::PacketMagicNumber)), ("stream_id", role(32, Role::DataStreamClassId))];
    let context = vec![
        ("timestamp_begin", role(64, Role::DefaultClockTimestamp)),
        ("timestamp_end", role(64, Role::PacketEndDefaultClockTimestamp)),
        ("content_size", role(64, Role::PacketContentLength)),
        ("packet_size", role(64, Role::PacketTotalLength)),
        ("packet_seq_num", role(64, Role::PacketSequenceNumber)),
        ("events_discarded", role(64, Role::DiscardedEventRecordCounterSnapshot)),
    ];
    let head = vec![("id", role(32, Role::EventRecordClassId)), ("timestamp", role(64, Role::DefaultClockTimestamp))];
    let stream = DataStreamClass {
        default_clock: Some(0),
        packet_context: Some(structure(context)),
        event_header: Some(structure(head)),
        event_classes: events,
        ..DataStreamClass::empty(0)
    };
    let (offset_s, rest_ns) = (clock.offset_ns.div_euclid(1_000_000_000), clock.offset_ns.rem_euclid(1_000_000_000));
    let clock = ClockClass {
        id: "monotonic".to_owned(),
        description: Some("Monotonic clock".to_owned()),
        offset_s,
        offset_cycles: rest_ns.into(),
        origin: if clock.is_unix { ClockOrigin::UnixEpoch } else { ClockOrigin::Unknown },
        ..ClockClass::default()
    };
    let text = |text: &str| EnvironmentValue::Text(text.to_owned());
    TraceClass {
        dialect: Dialect::Ctf2,
        uuid: None,
        namespace: None,
        name: None,
        uid: None,
        native_byte_order: Some(ByteOrder::Little),
        environment: vec![("tracer_name".to_owned(), text("kymo-bpf")), ("object".to_owned(), text(object))],
        packet_header: Some(structure(header)),
        clock_classes: vec![clock],
        stream_classes: vec![stream],
        attributes: None,
    }
}
