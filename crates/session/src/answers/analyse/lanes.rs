//! Lanes: which data streams one CPU recorded, from when to when, and where something is missing.

use std::ops::Range;
use std::sync::Arc;

use kymo_analysis::bind::Bindings;
use kymo_analysis::roles::CPU;
use kymo_analysis::{FieldSlot, LaneFacts};
use kymo_decode::fields::FieldValue;
use kymo_format::model::EnvironmentValue;
use kymo_scan::index::PacketRow;
use kymo_scan::{DataStream, Slice, Trace};

use super::rank;
use super::stream_names;
use crate::open::Session;
use crate::open::counters::apart_ns;
use crate::open::ends::MissingEnd;
use crate::open::packet_head::with_packet;

/// Where the CPU of a stream's events is told.
enum CpuOf {
    /// All events are of this one.
    Stream(u32),
    /// Each event tells.
    Event,
    /// Unknown.
    Nobody,
}

/// The lanes of all data streams with events that are asked for.
pub(super) fn lanes(
    streams: &[(&Arc<Trace>, &DataStream)],
    bound: &[Option<usize>],
    bindings: &Bindings,
    whole: &Slice,
    session: &Session,
) -> Vec<LaneFacts> {
    let mut hosts: Vec<(Option<String>, usize)> = Vec::new();
    let mut lanes: Vec<(bool, LaneFacts)> = Vec::new();
    // Streams of a trace follow each other.
    let mut of_trace: Option<(*const Trace, u32)> = None;
    for (number, (trace, stream)) in streams.iter().enumerate() {
        let Some(kind) = bound[number] else { continue };
        let host = host(trace, &mut hosts);
        let cpu = cpu(trace, stream, bindings, kind);
        let names_no_cpu = matches!(cpu, CpuOf::Nobody);
        let (cpu, is_mixed) = match cpu {
            CpuOf::Stream(cpu) => (Some(cpu), false),
            CpuOf::Event => (None, true),
            CpuOf::Nobody => (None, false),
        };
        let known = of_trace.filter(|(known, _)| *known == Arc::as_ptr(trace));
        let (_, apart_ns) = *of_trace.insert(known.unwrap_or_else(|| (Arc::as_ptr(trace), apart_ns(trace))));
        let is_same = |(known_mixed, known): &&mut (bool, LaneFacts)| {
            known.host == host && (known.cpu.is_some() && known.cpu == cpu || *known_mixed && is_mixed)
        };
        let at = match lanes.iter_mut().find(is_same) {
            Some((_, lane)) => lane,
            None => {
                let lane = LaneFacts {
                    host,
                    host_name: hosts[usize::from(host)].0.clone(),
                    cpu,
                    names_no_cpu,
                    name: if cpu.is_none() && !is_mixed { stream_names::name(trace, stream) } else { None },
                    kernel: kernel(trace),
                    lost: Some(0),
                    ..LaneFacts::default()
                };
                lanes.push((is_mixed, lane));
                &mut lanes.last_mut().expect("just pushed").1
            }
        };
        at.streams.push(number);
        at.apart_ns = at.apart_ns.max(apart_ns);
        add_packets(at, stream, whole.wanted[number].clone());
        add_missing_end(at, session.missing_ends.get(number), whole);
    }
    let mut lanes: Vec<LaneFacts> = lanes.into_iter().map(|(_, lane)| lane).collect();
    let span = (whole.begin, whole.end.map_or(i64::MAX, |end| end - 1));
    for lane in &mut lanes {
        session.event_span().iter().for_each(|events| clamp(lane, *events));
        clamp(lane, span);
    }
    // The order of files in a folder must not change answers.
    lanes.sort_by_key(rank);
    lanes
}

/// These lanes in a span of time within theirs. Known earlier losses, in `before`, stay.
pub(super) fn within(lanes: &[LaneFacts], before: &[LaneFacts], session: &Session, whole: &Slice) -> Vec<LaneFacts> {
    let streams = session.streams();
    let mut before = before.to_vec();
    // Where it ends, another one begins.
    let (begin, end) = (whole.begin, whole.end.unwrap_or(i64::MAX));
    for (lane, known) in before.iter_mut().zip(lanes) {
        lane.lost = Some(0);
        for stream in lane.streams.clone() {
            add_packets(lane, streams[stream].1, whole.wanted[stream].clone());
            add_missing_end(lane, session.missing_ends.get(stream), whole);
        }
        // Also where there is no packet: a CPU that sleeps writes none.
        let is_there = |span: &(i64, i64)| span.0 <= end && begin <= span.1;
        lane.span_ns = known.span_ns.filter(is_there);
        clamp(lane, (begin, end));
        if lane.mixes_cpus {
            lane.holes.add(i64::MIN, i64::MAX);
        }
    }
    before
}

/// Clamps a lane's span to the requested one.
fn clamp(lane: &mut LaneFacts, (begin, end): (i64, i64)) {
    lane.span_ns = lane.span_ns.map(|span| (span.0.clamp(begin, end), span.1.clamp(begin, end)));
}

/// The number of a trace's machine. Traces of the same host name are of one machine.
fn host(trace: &Arc<Trace>, hosts: &mut Vec<(Option<String>, usize)>) -> u16 {
    let name = match trace.class.environment("hostname") {
        Some(EnvironmentValue::Text(name)) => Some(name.clone()),
        _ => None,
    };
    // Without a host name, each trace counts as a machine: two unknown machines may use the same
    // thread numbers.
    let itself = Arc::as_ptr(trace) as usize;
    let is_same = |known: &(Option<String>, usize)| match &name {
        Some(name) => known.0.as_ref() == Some(name),
        None => known.1 == itself,
    };
    let at = hosts.iter().position(is_same).unwrap_or_else(|| {
        hosts.push((name.clone(), itself));
        hosts.len() - 1
    });
    u16::try_from(at).unwrap_or(u16::MAX)
}

/// `4.4.3-1-ARCH`: 4.4.
fn kernel(trace: &Trace) -> Option<(u32, u32)> {
    let Some(EnvironmentValue::Text(release)) = trace.class.environment("kernel_release") else { return None };
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn cpu(trace: &Trace, stream: &DataStream, bindings: &Bindings, kind: usize) -> CpuOf {
    let slots = bindings.classes_of(kind).iter().map(|class| &class.context[CPU]);
    let mut of_packet = None;
    for slot in slots {
        match slot {
            FieldSlot::Column { .. } => return CpuOf::Event,
            FieldSlot::Packet(place) => of_packet = Some(*place),
            FieldSlot::Integer(cpu) => return u32::try_from(*cpu).map_or(CpuOf::Nobody, CpuOf::Stream),
            FieldSlot::Absent | FieldSlot::Text(_) => {}
        }
    }
    let first = of_packet.zip(stream.packets.first());
    let cpu = first.and_then(|(place, row)| first_value(trace, bindings, kind, place, &row));
    cpu.map_or(CpuOf::Nobody, CpuOf::Stream)
}

/// A value of a stream's first packet.
fn first_value(trace: &Trace, bindings: &Bindings, kind: usize, place: usize, row: &PacketRow) -> Option<u32> {
    let values = with_packet(trace, row, |head, window| bindings.streams[kind].reader().packet(head, window))?;
    match values.into_iter().nth(place)?? {
        FieldValue::Integer(value) => u32::try_from(value).ok(),
        _ => None,
    }
}

/// Adds the end that a stream lacks, as far as it is within the requested time.
fn add_missing_end(lane: &mut LaneFacts, missing: Option<&Option<MissingEnd>>, whole: &Slice) {
    let Some(Some(MissingEnd { after_ns, until_ns, .. })) = missing else { return };
    if whole.end.is_none_or(|end| *after_ns < end) && whole.begin <= *until_ns {
        // The CPU goes on, unseen: otherwise its times would end with its last packet, without doubt.
        let (first, last) = lane.span_ns.unwrap_or((*after_ns, *until_ns));
        lane.span_ns = Some((first, last.max(*until_ns)));
        // The last event before it is there.
        lane.holes.add(after_ns.saturating_add(1), *until_ns);
        lane.lost = None;
    }
}

/// Adds the facts of packets: their span of time, and their losses.
fn add_packets(lane: &mut LaneFacts, stream: &DataStream, wanted: Range<usize>) {
    let Some(clock) = stream.clock else { return };
    let nanos = |cycles: Option<u64>| cycles.map(|cycles| clock.nanos_saturating(cycles));
    let mut before = wanted.start.checked_sub(1).map(|number| stream.packets.get(number));
    for row in stream.packets.range(wanted) {
        if let (Some(begin), Some(end)) = (nanos(row.begin_cycles), nanos(row.end_cycles)) {
            let (first, last) = lane.span_ns.unwrap_or((begin, end));
            lane.span_ns = Some((first.min(begin), last.max(end)));
        }
        let events = stream.counters.lost_events(before.as_ref(), &row);
        let packets = stream.counters.lost_packets(before.as_ref(), &row);
        for loss in events.iter().chain(&packets) {
            let begin = nanos(loss.begin_cycles).unwrap_or(i64::MIN);
            lane.holes.add(begin, nanos(loss.end_cycles).unwrap_or(i64::MAX));
        }
        if packets.is_some() {
            // A lost packet has an unknown number of events, and so has the sum from here on.
            lane.lost = None;
        } else if let Some(events) = events {
            lane.lost = lane.lost.zip(events.count).map(|(sum, count)| sum.saturating_add(count));
        }
        before = Some(row);
    }
}
