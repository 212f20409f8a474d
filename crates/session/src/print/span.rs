//! The time of each trace that is printed: the times that the caller wants, and where all data
//! streams are active.

use std::io;

use kymo_decode::tree::stream::read_packet_at;
use kymo_scan::{DataStream, PacketRow, Trace};

use crate::open::{Session, trace_name};

/// Not before, not after; in nanoseconds since the clock's origin.
pub(crate) type Span = (Option<i64>, Option<i64>);

impl Session {
    /// The span of each trace.
    ///
    /// # Errors
    ///
    /// The streams of a trace are never active together, or their packets do not say when they are.
    pub(crate) fn spans(&self, wanted: Span, stream_intersection: bool) -> io::Result<Vec<Span>> {
        if !stream_intersection {
            return Ok(vec![wanted; self.traces.len()]);
        }
        self.traces.iter().map(|trace| intersection(trace).map(|span| overlap(wanted, span))).collect()
    }

    /// From when to when each data stream is active, in nanoseconds since its clock's origin, where its packets say so.
    #[must_use]
    pub fn stream_spans(&self) -> Vec<Option<(i64, i64)>> {
        self.streams().into_iter().map(|(trace, stream)| active(trace, stream)).collect()
    }
}

/// From the first time to the last one in any of the spans.
pub(crate) fn around(spans: &[Span]) -> Span {
    let begin = spans.iter().map(|span| span.0).min().flatten();
    let end =
        if spans.iter().any(|span| span.1.is_none()) { None } else { spans.iter().filter_map(|span| span.1).max() };
    (begin, end)
}

fn overlap(one: Span, other: Span) -> Span {
    let end = one.1.into_iter().chain(other.1).min();
    (one.0.max(other.0), end)
}

/// When all data streams of the trace are active.
fn intersection(trace: &Trace) -> io::Result<Span> {
    let trouble = |what: &str| io::Error::other(format!("{}: {what}", trace_name(trace.folder.path())));
    if trace.streams.is_empty() {
        return Err(trouble("it has no data streams, which could be active at the same time"));
    }
    let spans: Option<Vec<(i64, i64)>> = trace.streams.iter().map(|stream| active(trace, stream)).collect();
    let spans = spans.ok_or_else(|| trouble("packets do not say when they begin and end: no common time is known"))?;
    let begin = spans.iter().map(|span| span.0).max();
    let end = spans.iter().map(|span| span.1).min();
    if begin.zip(end).is_none_or(|(begin, end)| begin > end) {
        return Err(trouble("its data streams are never active at the same time"));
    }
    Ok((begin, end))
}

/// From when to when a data stream is active, in nanoseconds since its clock's origin, if its packets say so.
fn active(trace: &Trace, stream: &DataStream) -> Option<(i64, i64)> {
    let clock = stream.clock?;
    let (first, last) = (stream.packets.first()?, stream.packets.last()?);
    let end =
        if trace.ends_with_last_event(&last) { last_event(trace, &last).or(last.end_cycles) } else { last.end_cycles };
    Some((clock.nanos_saturating(first.begin_cycles?), clock.nanos_saturating(end?)))
}

/// Larger packets are taken at their word: all values of a packet are in memory here.
const PACKET_BYTES_MAX: u64 = 64 << 20;

/// The clock at the last event of a packet, at its beginning where it has none.
fn last_event(trace: &Trace, row: &PacketRow) -> Option<u64> {
    let size = Some(row.total_bits / 8).filter(|size| *size <= PACKET_BYTES_MAX)?;
    let mut bytes = vec![0; size as usize];
    let there = trace.folder.stream(row.file as usize).read_at(row.offset_bytes, &mut bytes).ok()?;
    let mut clock = row.begin_cycles?;
    let (packet, _) = read_packet_at(&trace.class, &bytes[..there], &mut clock);
    Some(packet.events.last().map_or(clock, |event| event.cycles))
}
