//! The counters of CPUs, if a trace's recorder has compared them, and the streams that they correct.
//!
//! ```text
//! kymo:cpu_clock { cpu, known, offset, error, trip }     first events of the recorder, or of a program
//!   ├─> a stream of one CPU, as its packets say:         its clock is so much ahead
//!   └─> other streams:                                   times stay; the bound is told, and pairs allow for it
//! ```
//!
//! A stream of a thread is not corrected, although its events may carry their CPU. The number of the CPU
//! and the counter are read one after the other, and the thread may move in between: its event would be
//! moved in time without a reason. Where a counter is behind, the recorder has also replaced the stamps of
//! the first events after the move by the one before. And times of a stream would not be in the order of
//! its events, which everything here relies on.

use std::collections::HashSet;

use kymo_decode::ClockConverter;
use kymo_decode::fields::{FieldPlace, FieldReader, FieldValue};
use kymo_filter::NamePath;
use kymo_format::model::EnvironmentValue;
use kymo_scan::{DataStream, PacketRow, Trace};
use kymo_skew::{CounterOffset, CpuCounter};

use crate::open::packet_head::with_packet;
use crate::open::told::{ToldEvents, event_class, facts};

/// The event, and its fields.
const EVENT: &str = "kymo:cpu_clock";
const FIELDS: [&str; 5] = ["cpu", "known", "offset", "error", "trip"];
/// Streams that are looked into, packets of each, and events of these: those of more CPUs than Linux knows.
const STREAMS_MAX: usize = 16;
const PACKETS_MAX: usize = 8;
const EVENTS_MAX: usize = 1 << 14;
/// CPUs that are named in a text.
const NAMES_MAX: usize = 16;

/// The counters of CPUs that stamped a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceCounters {
    /// That of the first CPU is the first one: offsets are relative to it.
    pub cpus: Vec<CpuCounter>,
    /// Ticks of a second.
    pub frequency_hz: u64,
}

impl TraceCounters {
    /// The counters that a trace tells; `None`: its recorder has not compared them.
    pub(crate) fn of(trace: &Trace) -> Option<Self> {
        Self::found(trace).map(|(_, counters)| counters)
    }

    /// The same with the place of the stream that has them.
    fn found(trace: &Trace) -> Option<(usize, Self)> {
        let is_ours =
            matches!(trace.class.environment("tracer_name"), Some(EnvironmentValue::Text(name)) if name == "kymo");
        if !is_ours {
            return None;
        }
        let classes: Vec<_> = trace.class.stream_classes.iter().map(|class| event_class(class, EVENT)).collect();
        let declaring = trace.streams.iter().enumerate().filter(|(_, stream)| classes[stream.class].is_some());
        declaring.take(STREAMS_MAX).find_map(|(at, stream)| {
            let cpus = counters(trace, stream);
            let clock = stream.clock.filter(|_| !cpus.is_empty())?;
            Some((at, Self { cpus, frequency_hz: clock.frequency_hz() }))
        })
    }

    /// Whether all of them may be the same.
    #[must_use]
    pub fn agree(&self) -> bool {
        kymo_skew::agree(&self.cpus)
    }

    /// An upper bound of the difference between any two of them, in nanoseconds. `None`: fewer than two are
    /// known.
    #[must_use]
    pub fn apart_ns(&self) -> Option<u64> {
        kymo_skew::apart(&self.cpus).map(|ticks| kymo_skew::nanos_at_most(ticks, self.frequency_hz))
    }

    /// How far they are apart, in words that go on from "the counters".
    #[must_use]
    pub fn words(&self) -> String {
        let known = self.cpus.iter().filter(|counter| counter.offset.is_some()).count();
        let apart = match self.apart_ns() {
            None => "of one CPU have nothing to be compared with".to_owned(),
            Some(apart_ns) if self.agree() => format!("of {known} CPUs agree within {apart_ns} ns"),
            Some(apart_ns) => format!("of {known} CPUs differ by up to {apart_ns} ns"),
        };
        let silent = self.cpus.iter().filter(|counter| counter.offset.is_none()).map(|counter| counter.cpu.to_string());
        let silent: Vec<String> = silent.collect();
        match (&silent[..], silent.len().saturating_sub(NAMES_MAX)) {
            ([], _) => apart,
            ([cpu], _) => format!("{apart}; CPU {cpu} did not answer"),
            (several, 0) => format!("{apart}; CPUs {} did not answer", several.join(", ")),
            (several, more) => {
                format!("{apart}; CPUs {} and {more} more did not answer", several[..NAMES_MAX].join(", "))
            }
        }
    }

    /// A line for each counter that is not the first one's: how far it is behind or ahead.
    #[must_use]
    pub fn differences(&self) -> Vec<String> {
        let first = self.cpus.first().map_or(0, |counter| counter.cpu);
        let line = |counter: &CpuCounter| {
            let offset = counter.offset.filter(|offset| !offset.agrees())?;
            let behind_ns = kymo_skew::nanos(offset.offset_ticks, self.frequency_hz);
            let error_ns = kymo_skew::nanos_at_most(offset.error_ticks, self.frequency_hz);
            let side = if behind_ns < 0 { "ahead of" } else { "behind" };
            let (cpu, apart_ns) = (counter.cpu, behind_ns.unsigned_abs());
            Some(format!("CPU {cpu} is {apart_ns} ns {side} CPU {first}, give or take {error_ns} ns"))
        };
        let mut lines: Vec<String> = self.cpus.iter().filter_map(line).collect();
        if let Some(more) = lines.len().checked_sub(NAMES_MAX).filter(|more| *more > 0) {
            lines.truncate(NAMES_MAX);
            lines.push(format!("{more} more CPUs"));
        }
        lines
    }

    /// The same between streams with corrected times.
    pub(crate) fn apart_corrected_ns(&self) -> Option<u64> {
        kymo_skew::apart_corrected(&self.cpus).map(|ticks| kymo_skew::nanos_at_most(ticks, self.frequency_hz))
    }

    /// Nanoseconds to add to times of a CPU; 0 if its counter may be the same as the first one's.
    fn shift_ns(&self, cpu: u32) -> i64 {
        let known = self.cpus.iter().find(|counter| counter.cpu == cpu).and_then(|counter| counter.offset);
        let offset = known.filter(|offset| !offset.agrees());
        offset.map_or(0, |offset| kymo_skew::nanos(offset.offset_ticks, self.frequency_hz))
    }
}

/// The trace with the times of streams of one CPU corrected.
pub(crate) fn corrected(mut trace: Trace) -> Trace {
    let Some(counters) = TraceCounters::of(&trace).filter(|counters| !counters.agree()) else { return trace };
    for at in 0..trace.streams.len() {
        let Some(cpu) = cpu_of(&trace, &trace.streams[at]) else { continue };
        let shift_ns = trace.clock_shift_ns.saturating_add(counters.shift_ns(cpu));
        let clock = trace.class.stream_classes[trace.streams[at].class].default_clock;
        trace.streams[at].clock = clock.map(|clock| ClockConverter::new(&trace.class.clock_classes[clock], shift_ns));
    }
    trace
}

/// Times of two CPUs in a trace may differ by so many nanoseconds at one instant; 0: unknown.
pub(crate) fn apart_ns(trace: &Trace) -> u32 {
    let Some((told_by, counters)) = TraceCounters::found(trace) else { return 0 };
    let mut others = trace.streams.iter().enumerate().filter(|(at, _)| *at != told_by);
    let mut are_corrected = || others.all(|(_, stream)| cpu_of(trace, stream).is_some());
    let apart_ns = match !counters.agree() && are_corrected() {
        true => counters.apart_corrected_ns(),
        false => counters.apart_ns(),
    };
    apart_ns.map_or(0, |apart_ns| u32::try_from(apart_ns).unwrap_or(u32::MAX))
}

/// The CPU of a stream, if its packets say that all its events are of one.
fn cpu_of(trace: &Trace, stream: &DataStream) -> Option<u32> {
    let class = &trace.class.stream_classes[stream.class];
    if class.event_classes.is_empty() || class.packet_context.is_none() {
        return None;
    }
    let paths = [NamePath::parse("packet.cpu_id").expect("it is a path")];
    let mut reader = FieldReader::new(&trace.decoder, stream.class);
    let place = reader.ask(0, &paths, &facts()).ok()?[0].place.clone();
    let FieldPlace::Packet { index, .. } = place else { return None };
    let cpu = |row: PacketRow| match with_packet(trace, &row, |head, window| reader.packet(head, window))?.get(index)? {
        Some(FieldValue::Integer(cpu)) => u32::try_from(*cpu).ok(),
        _ => None,
    };
    // A stream without ids in its packets may be those of several CPUs, one after the other.
    let (first, last) = (cpu(stream.packets.first()?)?, cpu(stream.packets.last()?)?);
    (first == last).then_some(first)
}

/// The counters that the first packets of a stream tell. Of a CPU that is told twice the first one counts.
fn counters(trace: &Trace, stream: &DataStream) -> Vec<CpuCounter> {
    let mut cpus = Vec::new();
    let Some(told) = ToldEvents::of(trace, stream, EVENT, &FIELDS) else { return cpus };
    for row in stream.packets.iter().take(PACKETS_MAX) {
        let before = cpus.len();
        told.packet(&row, EVENTS_MAX, |fields| cpus.extend(counter(fields)));
        if row.content_bits > 0 && cpus.len() == before {
            break;
        }
    }
    let mut told = HashSet::new();
    cpus.retain(|counter| told.insert(counter.cpu));
    cpus
}

/// The counter that an event tells; `None`: a field is absent, or is none of a counter.
fn counter(fields: &[Option<FieldValue>]) -> Option<CpuCounter> {
    let value = |field: usize| match fields.get(field)? {
        Some(FieldValue::Integer(value)) => Some(*value),
        _ => None,
    };
    let is_known = value(1)? != 0;
    let offset = CounterOffset {
        offset_ticks: i64::try_from(value(2)?).ok()?,
        error_ticks: u64::try_from(value(3)?).ok()?,
        trip_ticks: u64::try_from(value(4)?).ok()?,
    };
    Some(CpuCounter { cpu: u32::try_from(value(0)?).ok()?, offset: is_known.then_some(offset) })
}
