//! What a trace holds, at a glance: from its metadata, its packet index, and a few packets of many.

use std::collections::HashMap;

use kymo_format::model::EnvironmentValue;
use kymo_ir::Records;
use kymo_scan::{DataStream, PacketRow, Trace};
use kymo_source::BufferPool;

use crate::count::CountOptions;
use crate::open::{Session, is_unix, trace_name};
use crate::progress::Progress;
use crate::report::Report;

/// What the open traces hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// One for each trace.
    pub traces: Vec<TraceInfo>,
    /// Earliest and latest time of any packet, in nanoseconds; `None` where packets carry no time.
    pub span_ns: Option<(i64, i64)>,
    /// Times count from the Unix epoch.
    pub is_unix: bool,
    /// Data streams.
    pub streams: usize,
    /// Packets.
    pub packets: u64,
    /// Bytes of all packets.
    pub bytes: u64,
    /// Event records.
    pub events: Estimate,
    /// Classes of the sampled event records, most frequent first: name and share of all events, 0 to 1.
    pub busiest: Vec<(String, f64)>,
    /// Bytes of content in equal stretches of the span.
    pub density: Vec<u64>,
    /// What stands between this and the whole truth.
    pub report: Report,
}

/// What one trace says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceInfo {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// What recorded it, as far as the environment says.
    pub recorded_by: Vec<(String, String)>,
    /// Event record classes that are declared.
    pub classes: usize,
    /// Its clocks: name, cycles per second, what time 0 means.
    pub clocks: Vec<ClockInfo>,
}

/// What a clock is.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockInfo {
    /// Its name.
    pub name: String,
    /// Cycles per second.
    pub frequency_hz: u64,
    /// Times count from the Unix epoch.
    pub is_unix: bool,
}

/// A number that may be an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: u64,
    /// It was counted, not estimated.
    pub is_exact: bool,
}

/// Packets that are looked into.
const SAMPLES: usize = 48;
/// Bytes of a packet that are looked into.
const SAMPLE_BYTES: u64 = 64 << 10;
/// Events of a packet that are looked into.
const SAMPLE_EVENTS: usize = 1 << 16;
/// Columns of the density.
const DENSITY: usize = 60;

impl Session {
    /// What the open traces hold, without reading all of them.
    #[must_use]
    pub fn info(&self) -> Info {
        let mut info = Info { report: self.opening_report().clone(), is_unix: true, ..Info::default() };
        info.traces = self.traces.iter().map(|trace| trace_info(trace)).collect();
        let streams = self.streams();
        info.streams = streams.len();
        for (trace, stream) in &streams {
            info.packets += stream.packets.len() as u64;
            info.bytes += stream.packets.iter().map(|packet| packet.total_bits / 8).sum::<u64>();
            info.is_unix &= is_unix(trace, stream);
            losses(stream, &mut info.report);
        }
        let times: Vec<(&PacketRow, i64, i64)> = streams.iter().flat_map(|(_, stream)| packet_times(stream)).collect();
        info.span_ns = span(&times);
        if let Some((begin, end)) = info.span_ns {
            info.density = density(&times, begin, end);
        }
        sample(&streams.iter().map(|(trace, stream)| (&***trace, *stream)).collect::<Vec<_>>(), &mut info);
        info
    }

    /// What the open traces hold, with every event counted: reads all of them.
    #[must_use]
    pub fn info_exact(&self, progress: &Progress) -> Info {
        let (mut info, counts) = (self.info(), self.count(CountOptions::default(), progress));
        info.events = Estimate { value: counts.total, is_exact: true };
        let mut events: HashMap<String, u64> = HashMap::new();
        for class in counts.classes {
            *events.entry(class.name.unwrap_or_else(|| format!("<event {}>", class.id))).or_default() += class.events;
        }
        info.busiest = by_share(events, counts.total);
        info.report.assumptions = counts.report.assumptions;
        info.report.unreadable = counts.report.unreadable;
        info
    }

    /// Earliest and latest time of any packet, in nanoseconds; `None` where packets carry no time.
    #[must_use]
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        let streams = self.streams();
        span(&streams.iter().flat_map(|(_, stream)| packet_times(stream)).collect::<Vec<_>>())
    }
}

fn span(times: &[(&PacketRow, i64, i64)]) -> Option<(i64, i64)> {
    times.iter().map(|time| time.1).min().zip(times.iter().map(|time| time.2).max())
}

/// Names with their share of all events, most frequent first.
fn by_share(events: HashMap<String, u64>, total: u64) -> Vec<(String, f64)> {
    let mut shares: Vec<(String, f64)> =
        events.into_iter().map(|(name, count)| (name, count as f64 / total.max(1) as f64)).collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    shares
}

fn trace_info(trace: &Trace) -> TraceInfo {
    let class = &trace.class;
    let environment = |(name, value): &(String, EnvironmentValue)| {
        let value = match value {
            EnvironmentValue::Integer(value) => value.to_string(),
            EnvironmentValue::Text(value) => value.clone(),
        };
        (name.clone(), value)
    };
    let clock = |clock: &kymo_format::ClockClass| ClockInfo {
        name: clock.name.clone().unwrap_or_else(|| clock.id.clone()),
        frequency_hz: clock.frequency_hz,
        is_unix: crate::open::is_unix_clock(trace, clock),
    };
    TraceInfo {
        name: trace_name(trace.folder.path()),
        path: trace.folder.path().display().to_string(),
        recorded_by: class.environment.iter().map(environment).collect(),
        classes: class.stream_classes.iter().map(|stream| stream.event_classes.len()).sum(),
        clocks: class.clock_classes.iter().map(clock).collect(),
    }
}

/// Begin and end of the packets that carry both.
fn packet_times(stream: &DataStream) -> Vec<(&PacketRow, i64, i64)> {
    let Some(clock) = &stream.clock else { return Vec::new() };
    let times = |packet| {
        let packet: &PacketRow = packet;
        let begin = clock.nanos(packet.begin_cycles?)?;
        let end = packet.end_cycles.and_then(|end| clock.nanos(end)).unwrap_or(begin);
        Some((packet, begin, end.max(begin)))
    };
    stream.packets.iter().filter_map(times).collect()
}

/// Spreads each packet's content evenly over its time.
fn density(times: &[(&PacketRow, i64, i64)], begin: i64, end: i64) -> Vec<u64> {
    let mut columns = vec![0_u64; DENSITY];
    let span = (i128::from(end) - i128::from(begin) + 1).max(1);
    let column = |time: i64| ((i128::from(time) - i128::from(begin)) * DENSITY as i128 / span) as usize;
    for (packet, from, to) in times {
        let (first, last) = (column(*from), column(*to));
        let share = packet.content_bits / 8 / (last - first + 1) as u64;
        columns[first..=last].iter_mut().for_each(|column| *column += share);
    }
    columns
}

/// What tracers say they lost, from counters in packets alone.
pub(crate) fn losses(stream: &DataStream, report: &mut Report) {
    if let Some(first) = stream.packets.first().and_then(|packet| packet.discarded) {
        report.discarded_is_lower_bound |= first > 0;
    }
    for pair in stream.packets.windows(2) {
        if let (Some(before), Some(now)) = (pair[0].discarded, pair[1].discarded) {
            report.events_discarded = report.events_discarded.saturating_add(now.saturating_sub(before));
        }
        if let (Some(before), Some(now)) = (pair[0].sequence, pair[1].sequence) {
            let lost = now.saturating_sub(before).saturating_sub(1);
            report.packets_lost = report.packets_lost.saturating_add(lost);
        }
    }
}

/// Looks into some packets, spread over all streams.
fn sample(streams: &[(&Trace, &DataStream)], info: &mut Info) {
    let all: u64 = streams.iter().map(|(_, stream)| stream.packets.len() as u64).sum();
    let step = (all as usize).div_ceil(SAMPLES).max(1);
    let mut seen = Sampled::default();
    let mut skipped = false;
    let mut number = 0;
    for (trace, stream) in streams {
        for packet in stream.packets.iter() {
            if number % step == 0 {
                skipped |= !look_into(trace, stream, packet, &mut seen);
            } else {
                skipped |= packet.content_bits > 0;
            }
            number += 1;
        }
    }
    let content: u64 = streams.iter().flat_map(|(_, stream)| stream.packets.iter()).map(|row| row.content_bits).sum();
    let share = if seen.bits == 0 { 0.0 } else { content as f64 / seen.bits as f64 };
    let value = if skipped { (seen.events as f64 * share) as u64 } else { seen.events };
    info.events = Estimate { value, is_exact: !skipped && info.report.is_complete() };
    info.busiest = by_share(seen.classes, seen.events);
}

#[derive(Default)]
struct Sampled {
    classes: HashMap<String, u64>,
    events: u64,
    bits: u64,
}

/// Counts the events at a packet's beginning; whether it was read to its end.
fn look_into(trace: &Trace, stream: &DataStream, packet: &PacketRow, seen: &mut Sampled) -> bool {
    let file = trace.folder.stream(packet.file as usize);
    let length = (packet.content_bits.div_ceil(8)).min(SAMPLE_BYTES) as usize;
    let Ok(bytes) = BufferPool::default().read(&file, packet.offset_bytes, length) else { return false };
    let end = packet.content_bits.min(bytes.len() as u64 * 8);
    let window = kymo_ir::Window::new(bytes.with_slack(), 0, end);
    let Ok(head) = trace.decoder.head(window, 0) else { return false };
    let mut state = trace.decoder.state(&head, packet.begin_cycles.unwrap_or(0));
    let (mut position, mut records) = (head.body_start, Records::default());
    trace.decoder.scan(stream.class, window, &mut position, &mut state, &mut records, SAMPLE_EVENTS);
    let classes = &trace.class.stream_classes[stream.class].event_classes;
    for &class in &records.classes {
        let class = &classes[class as usize];
        let name = class.name.clone().unwrap_or_else(|| format!("<event {}>", class.id));
        *seen.classes.entry(name).or_default() += 1;
    }
    seen.events += records.len() as u64;
    seen.bits += position;
    position >= packet.content_bits
}
