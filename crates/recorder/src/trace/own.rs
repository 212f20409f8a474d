//! Events of the recorder itself: samples of its clocks, counters of CPUs, processes and their executable
//! mappings, and losses that no lane can report.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use kymo_schema::definition::EventClass;
use kymo_schema::field::{DefinedField, FieldType, IntegerType, ScalarType, ValueLabel};
use kymo_skew::CpuCounter;
use kymo_writer::EVENT_HEAD_BYTES;

use crate::clock::ClockSample;
use crate::program::ProgramIdentity;
use crate::program::objects::ExecutableObject;
use crate::rule::{RuleTotals, ToldRuleWords};
use crate::trace::chunk::{PacketOrigin, PacketSpan};

/// Why events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossCause {
    /// A program had no lane for a thread.
    NoLane,
    /// So many bytes of a program are not events.
    Unreadable,
    /// Events of a program have impossible times.
    OtherTime,
    /// Metadata, or a packet of a lane, could not be written.
    Unwritten,
    /// The definition of the events cannot be used. Packets of the lane count these.
    Undefined,
    /// There was no room for events of a lane that has no packet.
    Full,
}

/// A loss that no packet of a lane can report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceLoss {
    pub(crate) program: u64,
    /// `u16::MAX`: a thread had none.
    pub(crate) lane: u16,
    pub(crate) why: LossCause,
    pub(crate) events: u64,
    /// Events that the lane, or the program without a lane, had lost in total by then; 0: unknown.
    pub(crate) events_ever: u64,
    /// Bytes that are not events.
    pub(crate) bytes: u64,
}

/// Losses in a packet of the recorder's own, with events that [`OwnEvents`] has written with ids
/// from 0 on.
pub(crate) fn read(mut events: &[u8]) -> Vec<TraceLoss> {
    let mut losses = Vec::new();
    while let Some(loss) = event(&mut events) {
        losses.extend(loss);
    }
    losses
}

/// The next event; `Some(None)`: an event of another kind. `None`: there is none.
fn event(rest: &mut &[u8]) -> Option<Option<TraceLoss>> {
    let head = take(rest, EVENT_HEAD_BYTES)?;
    match u16::from_le_bytes([head[0], head[1]]) {
        0 => take(rest, 24).map(|_| None),
        kind @ (1 | 3) => {
            // Numbers of a program, or of an object, and two texts.
            take(rest, if kind == 1 { 40 } else { 32 })?;
            take_texts(rest, 2).map(|()| None)
        }
        2 => {
            let (program, lane) = (next_number(rest)?, next_number(rest)? as u16);
            let why = match take(rest, 1)?[0] {
                0 => LossCause::NoLane,
                1 => LossCause::Unreadable,
                2 => LossCause::OtherTime,
                3 => LossCause::Unwritten,
                4 => LossCause::Undefined,
                _ => LossCause::Full,
            };
            let (events, events_ever, bytes) = (next_number(rest)?, next_number(rest)?, next_number(rest)?);
            Some(Some(TraceLoss { program, lane, why, events, events_ever, bytes }))
        }
        4 => {
            take(rest, 40)?;
            take_texts(rest, 4).map(|()| None)
        }
        5 => take(rest, 33).map(|_| None),
        _ => None,
    }
}

fn take<'b>(rest: &mut &'b [u8], bytes: usize) -> Option<&'b [u8]> {
    let (taken, behind) = rest.split_at_checked(bytes)?;
    *rest = behind;
    Some(taken)
}

fn take_texts(rest: &mut &[u8], count: usize) -> Option<()> {
    for _ in 0..count {
        let length = take(rest, 2)?;
        take(rest, u16::from_le_bytes([length[0], length[1]]).into())?;
    }
    Some(())
}

fn next_number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, behind) = rest.split_first_chunk::<8>()?;
    *rest = behind;
    Some(u64::from_le_bytes(*bytes))
}

/// Number of [`CLASSES`].
pub(crate) const CLASSES_MAX: usize = 5;

/// Classes that every trace has, in the order of their ids.
pub(crate) static CLASSES: LazyLock<[Arc<EventClass>; CLASSES_MAX]> = LazyLock::new(|| {
    let text = |name: &str| field(name, FieldType::Text);
    let labels = ["no_lane", "unreadable", "other_time", "unwritten", "undefined", "full"].into_iter().zip(0..);
    let labels = labels.map(|(name, value)| ValueLabel { name: name.to_owned(), value }).collect();
    let why = FieldType::Scalar(ScalarType::Enumeration(IntegerType::unsigned(1), labels));
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
        number("events_ever", false, false),
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
    let rule = vec![
        number("program", false, true),
        number("kept", false, false),
        number("let_go", false, false),
        number("unknown", false, false),
        number("forgotten", false, false),
        text("rule"),
        text("words"),
        text("events"),
        text("without"),
    ];
    [("clock", clock), ("process", process), ("lost", lost), ("object", object), ("rule", rule)]
        .map(|(name, fields)| class(name, fields))
});

/// The class of counters of CPUs, which only prepared sessions have. Its id follows those of [`CLASSES`].
pub(crate) static CPU_CLOCK: LazyLock<Arc<EventClass>> = LazyLock::new(|| {
    let known = field("known", FieldType::Scalar(ScalarType::Boolean));
    let offset = number("offset", true, false);
    let [cpu, error, trip] = ["cpu", "error", "trip"].map(|name| number(name, false, false));
    class("cpu_clock", vec![cpu, known, offset, error, trip])
});

pub(super) fn class(name: &str, fields: Vec<DefinedField>) -> Arc<EventClass> {
    let (provider, name) = ("kymo".to_owned(), name.to_owned());
    Arc::new(EventClass { level: 6, fields, ..EventClass::new(provider, name) })
}

pub(super) fn number(name: &str, is_signed: bool, is_hex: bool) -> DefinedField {
    field(name, FieldType::Scalar(ScalarType::Integer(IntegerType { bytes: 8, is_signed, is_hex })))
}

pub(super) fn field(name: &str, kind: FieldType) -> DefinedField {
    DefinedField { name: name.to_owned(), kind }
}

/// Bytes of packets that wait until they can be written; newer packets are lost.
const WAITING_BYTES: usize = 1 << 20;

/// Events that wait for their packet, and packets that wait for room on the disk.
#[derive(Debug)]
pub(crate) struct OwnEvents {
    /// Ids of the event classes.
    ids: [u16; CLASSES_MAX],
    /// Bytes of a packet before its events.
    before: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: u64,
    /// Cycles of the first and of the last event.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    waiting: VecDeque<(PacketSpan, Vec<u8>)>,
}

/// Result of a write.
#[derive(Debug)]
pub(crate) struct Put<E> {
    /// So many events were written.
    pub(crate) written: u64,
    /// So many are lost, because too many wait.
    pub(crate) lost: u64,
    /// Why some wait.
    pub(crate) error: Option<E>,
}

impl OwnEvents {
    pub(crate) fn new(ids: [u16; CLASSES_MAX], before: usize, now: u64) -> Self {
        Self { ids, before, bytes: vec![0; before], events: 0, begin: now, end: now, waiting: VecDeque::new() }
    }

    /// Writes all packets, the oldest first; those that cannot be written wait.
    pub(crate) fn write<E>(
        &mut self,
        origin: PacketOrigin,
        mut write: impl FnMut(&mut Vec<u8>, &PacketSpan) -> Result<(), E>,
    ) -> Put<E> {
        if self.events > 0 {
            let span = PacketSpan { begin: self.begin, end: self.end, events: self.events as u32, origin };
            let bytes = std::mem::replace(&mut self.bytes, vec![0; self.before]);
            self.waiting.push_back((span, bytes));
            (self.events, self.begin) = (0, self.end);
        }
        let mut put = Put { written: 0, lost: 0, error: None };
        while let Some((span, bytes)) = self.waiting.front_mut() {
            let whole = bytes.len();
            if let Err(error) = write(bytes, span) {
                // The next attempt appends the bytes after the events again.
                bytes.truncate(whole);
                put.error = Some(error);
                break;
            }
            put.written += u64::from(span.events);
            self.waiting.pop_front();
        }
        while self.waiting.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > WAITING_BYTES {
            put.lost += self.waiting.pop_back().map_or(0, |(span, _)| u64::from(span.events));
        }
        put
    }

    /// Gives up the waiting packets: so many events are lost.
    pub(crate) fn give_up(&mut self) -> u64 {
        self.waiting.drain(..).map(|(span, _)| u64::from(span.events)).sum()
    }

    pub(crate) fn clock(&mut self, cycles: u64, sample: &ClockSample) {
        let fields =
            [sample.monotonic_ns.to_le_bytes(), sample.realtime_ns.to_le_bytes(), sample.width_ticks.to_le_bytes()];
        self.put(self.ids[0], cycles, &fields.concat());
    }

    /// `id`: that of [`CPU_CLOCK`].
    pub(crate) fn cpu_clock(&mut self, id: u16, cycles: u64, counter: &CpuCounter) {
        let offset = counter.offset.unwrap_or_default();
        let mut fields = u64::from(counter.cpu).to_le_bytes().to_vec();
        fields.push(counter.offset.is_some().into());
        fields.extend(offset.offset_ticks.to_le_bytes());
        [offset.error_ticks, offset.trip_ticks].iter().for_each(|ticks| fields.extend(ticks.to_le_bytes()));
        self.put(id, cycles, &fields);
    }

    pub(crate) fn process(&mut self, cycles: u64, identity: &ProgramIdentity, pid_outside: Option<u32>) {
        let mut fields = Vec::new();
        let pid = pid_outside.map_or(0, u64::from);
        for number in [identity.key, identity.pid.into(), pid, identity.pid_namespace, identity.started] {
            fields.extend(number.to_le_bytes());
        }
        add_texts(&mut fields, [&identity.name, &identity.path]);
        self.put(self.ids[1], cycles, &fields);
    }

    pub(crate) fn object(&mut self, cycles: u64, program: u64, object: &ExecutableObject) {
        let numbers = [program, object.address, object.bytes, object.offset];
        let mut fields = numbers.map(u64::to_le_bytes).concat();
        add_texts(&mut fields, [&object.path, &object.build_id]);
        self.put(self.ids[3], cycles, &fields);
    }

    /// What a program has kept and let go for a rule of the session so far.
    pub(crate) fn rule(&mut self, cycles: u64, program: u64, rule: &ToldRuleWords, counts: &RuleTotals) {
        let RuleTotals { kept, let_go, unknown, forgotten } = *counts;
        let mut fields = [program, kept, let_go, unknown, forgotten].map(u64::to_le_bytes).concat();
        add_texts(&mut fields, [&rule.name, &rule.words, &rule.events, &rule.without]);
        self.put(self.ids[4], cycles, &fields);
    }

    pub(crate) fn lost(&mut self, cycles: u64, loss: &TraceLoss) {
        let mut fields = [loss.program.to_le_bytes(), u64::from(loss.lane).to_le_bytes()].concat();
        fields.push(loss.why as u8);
        [loss.events, loss.events_ever, loss.bytes].iter().for_each(|number| fields.extend(number.to_le_bytes()));
        self.put(self.ids[2], cycles, &fields);
    }

    /// An event with an ID, not before the one before.
    pub(super) fn put(&mut self, id: u16, cycles: u64, fields: &[u8]) {
        let cycles = cycles.max(self.end);
        if self.events == 0 {
            self.begin = cycles;
        }
        self.bytes.extend(id.to_le_bytes());
        self.bytes.extend((cycles as u32).to_le_bytes());
        self.bytes.extend(fields);
        (self.end, self.events) = (cycles, self.events + 1);
    }
}

pub(super) fn add_texts<const COUNT: usize>(fields: &mut Vec<u8>, texts: [&str; COUNT]) {
    for text in texts {
        let length = (0..=text.len().min(4096)).rev().find(|length| text.is_char_boundary(*length)).unwrap_or(0);
        fields.extend((length as u16).to_le_bytes());
        fields.extend(&text.as_bytes()[..length]);
    }
}

#[cfg(test)]
mod tests {
    use kymo_skew::CounterOffset;

    use super::*;
    use crate::rule::RuleOptions;
    use crate::trace::chunk::BEFORE_EVENTS;

    #[test]
    fn what_was_said_is_read_again() {
        let mut own = OwnEvents::new([0, 1, 2, 3, 4], BEFORE_EVENTS, 5);
        let sample = crate::clock::TickSource::begin(kymo_lane::ClockSource::Monotonic).watched();
        let text = || "of a program".to_owned();
        let identity = ProgramIdentity { key: 7, pid: 8, name: text(), path: text(), ..ProgramIdentity::default() };
        let loss = TraceLoss { program: 7, lane: 3, why: LossCause::NoLane, events: 4, events_ever: 6, bytes: 0 };
        own.clock(6, &sample);
        let offset = CounterOffset { offset_ticks: -5, error_ticks: 6, trip_ticks: 11 };
        let slow = RuleOptions::parse("slow: a:end over 5ms since a:begin").expect("it is one");
        own.rule(6, 7, &ToldRuleWords::of(&slow), &RuleTotals { kept: 1, let_go: 2, unknown: 3, forgotten: 4 });
        own.cpu_clock(5, 6, &CpuCounter { cpu: 1, offset: Some(offset) });
        own.cpu_clock(5, 6, &CpuCounter { cpu: 2, offset: None });
        own.process(7, &identity, None);
        own.lost(8, &loss);
        own.clock(9, &sample);
        let events = &own.bytes[BEFORE_EVENTS..];
        assert_eq!(read(events), [loss]);
        assert_eq!(read(&events[..events.len() - 40]), [], "half of one is none");
    }

    #[test]
    fn what_cannot_be_written_waits_and_is_lost_where_too_much_waits() {
        let mut own = OwnEvents::new([0, 1, 2, 3, 4], BEFORE_EVENTS, 5);
        let loss = TraceLoss { program: 7, lane: 3, why: LossCause::NoLane, events: 4, events_ever: 6, bytes: 0 };
        own.lost(8, &loss);
        let put = own.write(PacketOrigin::default(), |bytes, _| {
            bytes.push(0);
            Err("full")
        });
        assert_eq!((put.written, put.lost, put.error), (0, 0, Some("full")));
        own.lost(9, &loss);
        let mut found = Vec::new();
        let put = own.write(PacketOrigin::default(), |bytes, span| {
            found.push((span.begin, span.events, read(&bytes[BEFORE_EVENTS..]), bytes.len()));
            Ok::<(), &str>(())
        });
        assert_eq!((put.written, put.lost, put.error), (2, 0, None));
        assert_eq!(found, [8, 9].map(|begin| (begin, 1, vec![loss], BEFORE_EVENTS + EVENT_HEAD_BYTES + 41)));

        for _ in 0..WAITING_BYTES / 40 {
            own.lost(10, &loss);
        }
        let put = own.write(PacketOrigin::default(), |_, _| Err("full"));
        assert_eq!((put.lost, own.give_up()), ((WAITING_BYTES / 40) as u64, 0));
        own.lost(11, &loss);
        assert_eq!(own.write(PacketOrigin::default(), |_, _| Err("full")).lost, 0);
        assert_eq!(own.give_up(), 1);
    }
}
