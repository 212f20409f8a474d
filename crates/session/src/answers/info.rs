//! The contents of a trace, at a glance: from its metadata, its packet index, and a few packets of
//! many.

mod sample;
mod span;

use std::collections::HashMap;
use std::sync::Arc;

use kymo_format::model::EnvironmentValue;
use kymo_scan::{DataStream, PacketRow, StreamFault, StreamFaultKind, Trace};

use self::span::{Stretches, believable, density, of_packets, span};
use crate::answers::count::CountOptions;
use crate::answers::losses::losses;
use crate::open::counters::TraceCounters;
use crate::open::progress::{Cancelled, Progress};
use crate::open::report::Report;
use crate::open::{Session, TimeOrigin, trace_name};

/// The contents of the open traces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// One for each trace.
    pub traces: Vec<TraceInfo>,
    /// From the first event or loss to the last one, in nanoseconds; the extent of packets where a clock was set back.
    /// `None` where no times are known, or where clocks count from different origins.
    pub span_ns: Option<(i64, i64)>,
    /// From the begin of the first packet to the end of the last one, of data streams with believable times: some
    /// writers let all streams begin at cycle 0.
    pub packets_ns: Option<(i64, i64)>,
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
    /// Bits of content in equal stretches of the span.
    pub density: Vec<u64>,
    /// The differences between this and the whole truth.
    pub report: Report,
}

/// The description of one trace by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceInfo {
    /// Its name.
    pub name: String,
    /// Where it is: the folder whose metadata describes it.
    pub path: String,
    /// Other folders with parts of it, such as chunks of a rotated session.
    pub other_paths: Vec<String>,
    /// The recorder, as far as the environment says.
    pub recorded_by: Vec<(String, String)>,
    /// Event record classes that are declared.
    pub classes: usize,
    /// Nanoseconds that its clocks are taken to be ahead of their values in the trace; its times
    /// are so.
    pub clock_shift_ns: i64,
    /// Its clocks: name, cycles per second, the meaning of time 0.
    pub clocks: Vec<ClockInfo>,
    /// The counters of the CPUs that stamped it, if the recorder has compared them.
    pub counters: Option<TraceCounters>,
    /// Data streams.
    pub streams: usize,
    /// Bytes of all packets.
    pub bytes: u64,
    /// From the begin of the first packet to the end of the last one, which may be long before and after the events; of
    /// events, where packets carry no time and all were looked into.
    pub span_ns: Option<(i64, i64)>,
    /// Times count from the Unix epoch.
    pub is_unix: bool,
}

/// The properties of a clock.
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
    /// All readable events were counted, not estimated.
    pub is_exact: bool,
}

impl Session {
    /// The contents of the open traces, without reading all of them.
    #[must_use]
    pub fn info(&self) -> Info {
        let report = Report { thinned: self.thinned().to_vec(), ..self.opening_report().clone() };
        let mut info = Info { report, ..Info::default() };
        let streams = self.streams();
        info.streams = streams.len();
        let origins = self.origins();
        info.is_unix = origins.iter().all(|origin| *origin == TimeOrigin::Unix);
        for (rank, (_, stream)) in streams.iter().enumerate() {
            info.packets += stream.packets.len() as u64;
            info.bytes += bytes(stream);
            losses(stream, 0..stream.packets.len(), &mut info.report);
            self.cut_packets(rank, stream, &mut info.report);
        }
        let sampled = self.sample();
        info.events = sampled.events();
        info.busiest = by_share(sampled.classes, sampled.events);
        info.report.unreadable.extend(sampled.unreadable);
        info.report.assumptions.extend(sampled.assumptions);
        let seen = streams.iter().zip(sampled.stretches);
        let stretches: Vec<Stretches<'_>> = seen.map(|((_, stream), seen)| Stretches::new(stream, seen)).collect();
        info.traces = self.described(&stretches, &origins);
        if TimeOrigin::all_same(&origins) {
            let all = || stretches.iter().flat_map(Stretches::iter);
            info.span_ns = self.event_span().or_else(|| span(all()));
            info.packets_ns = span(streams.iter().filter_map(|(_, stream)| believable(stream)));
            info.density = info.span_ns.map(|(begin, end)| density(all(), begin, end)).unwrap_or_default();
        }
        info
    }

    /// The descriptions of the open traces by themselves. Packets are looked into only where they
    /// carry no times.
    #[must_use]
    pub fn trace_infos(&self) -> Vec<TraceInfo> {
        let streams = self.streams();
        let timed = || streams.iter().all(|(_, stream)| of_packets(stream).next().is_some());
        let seen = if timed() { vec![Vec::new(); streams.len()] } else { self.sample().stretches };
        let stretches: Vec<Stretches<'_>> =
            streams.iter().zip(seen).map(|((_, stream), seen)| Stretches::new(stream, seen)).collect();
        self.described(&stretches, &self.origins())
    }

    /// The contents of the open traces, with every event counted: reads all of them.
    ///
    /// # Errors
    ///
    /// It was canceled.
    pub fn info_exact(&self, progress: &Progress) -> Result<Info, Cancelled> {
        let (mut info, counts) = (self.info(), self.count(&CountOptions::default(), progress)?);
        info.events = Estimate { value: counts.total, is_exact: true };
        let mut events: HashMap<String, u64> = HashMap::new();
        for class in counts.classes {
            *events.entry(class.name.unwrap_or_else(|| format!("<event {}>", class.id))).or_default() += class.events;
        }
        info.busiest = by_share(events, counts.total);
        info.span_ns = info.span_ns.or(counts.span_ns);
        info.report = counts.report;
        Ok(info)
    }

    fn described(&self, stretches: &[Stretches<'_>], origins: &[TimeOrigin]) -> Vec<TraceInfo> {
        let mut rank = 0;
        let mut describe = |trace: &Arc<Trace>| {
            let ranks = rank..rank + trace.streams.len();
            rank = ranks.end;
            let all = stretches[ranks.clone()].iter().flat_map(Stretches::iter);
            let comparable = TimeOrigin::all_same(&origins[ranks.clone()]);
            TraceInfo {
                streams: trace.streams.len(),
                bytes: trace.streams.iter().map(bytes).sum(),
                span_ns: span(all).filter(|_| comparable),
                is_unix: origins[ranks].iter().all(|origin| *origin == TimeOrigin::Unix),
                ..trace_info(trace)
            }
        };
        self.traces.iter().map(&mut describe).collect()
    }

    /// Packets that are longer than their files.
    fn cut_packets(&self, rank: usize, stream: &DataStream, report: &mut Report) {
        for (number, row) in stream.packets.iter().enumerate().filter(|(_, row)| row.cut) {
            let kind = StreamFaultKind::Cut { left_bits: row.total_bits };
            report.unreadable.push(self.problem(&fault_at(rank, number, &row, kind)));
        }
    }
}

fn bytes(stream: &DataStream) -> u64 {
    stream.packets.packet_bytes(0..stream.packets.len())
}

/// What cannot be read of a packet.
fn fault_at(stream: usize, number: usize, row: &PacketRow, kind: StreamFaultKind) -> StreamFault {
    StreamFault { stream, file: row.file, packet: number as u64, offset_bytes: row.offset_bytes, kind }
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
        other_paths: trace.folder.other_paths().iter().map(|path| path.display().to_string()).collect(),
        recorded_by: class.environment.iter().map(environment).collect(),
        classes: class.stream_classes.iter().map(|stream| stream.event_classes.len()).sum(),
        clock_shift_ns: trace.clock_shift_ns,
        clocks: class.clock_classes.iter().map(clock).collect(),
        counters: TraceCounters::of(trace),
        ..TraceInfo::default()
    }
}
