//! From the first to the last event: the time that answers are about.
//!
//! ```text
//! packets   [ empty ][        o  oo][o    ][   empty   ]
//! extent                      ├─────┤
//! ```
//!
//! Packets may begin hours before their first event and end long after their last one: nothing is
//! drawn there. Times with losses and packets that cannot be read are shown, though they have no events.

use std::sync::Arc;

use kymo_scan::index::PacketRow;
use kymo_scan::{BatchContent, Cursor, CursorItem, DataStream, Slice, Trace};

use crate::open::progress::Progress;
use crate::open::{Session, TimeOrigin};

/// Packets without events that are looked at of a stream, from its begin and from its end.
const EMPTY_MAX: usize = 256;
/// Bytes of packets that are read for the first event, and for the last one. With more, packets' own times do.
const READ_MAX: u64 = 32 << 20;

/// The first or the last event of packets.
enum FoundEvent {
    At(i64),
    /// The packets have no events.
    Nothing,
    /// A packet cannot be read, or its clock was set back: its own times do.
    Unreadable,
}

impl Session {
    /// From the first event or loss to the last one; `None`: nothing happens, packets do not say when they begin and end, or
    /// clocks count from different origins.
    ///
    /// The time before and behind belongs to no answer: LTTng begins packets when a session is made, and ends them when it
    /// is destroyed, though nothing was recorded for hours around.
    #[must_use]
    pub fn event_span(&self) -> Option<(i64, i64)> {
        *self.event_span.get_or_init(|| event_span(self))
    }
}

fn event_span(session: &Session) -> Option<(i64, i64)> {
    if !TimeOrigin::all_same(&session.origins()) {
        return None;
    }
    let losses: Vec<LossSpan> = session.streams().iter().map(|(_, stream)| losses(stream)).collect::<Option<_>>()?;
    let mut cursors = session.cursors(false, &[], &Progress::default());
    let first = edge(session, &mut cursors, losses.iter().filter_map(|lost| lost.begin).min(), Edge::First)?;
    let last = edge(session, &mut cursors, losses.iter().filter_map(|lost| lost.end).max(), Edge::Last)?;
    (first <= last).then_some((first, last))
}

/// When the first known loss of a stream begins, and the last one ends: of some losses it is not known.
#[derive(Default)]
struct LossSpan {
    begin: Option<i64>,
    end: Option<i64>,
}

/// The losses of a stream; `None`: packets have no times, or do not begin one after the other. Where a clock was set back, the
/// first event may be anywhere.
fn losses(stream: &DataStream) -> Option<LossSpan> {
    let nanos = |cycles: Option<u64>| Some(stream.clock?.nanos_saturating(cycles?));
    let mut lost = LossSpan::default();
    let mut before: Option<PacketRow> = None;
    for row in stream.packets.iter() {
        let (begin, _) = times(stream, &row)?;
        if before.as_ref().and_then(|before| times(stream, before)).is_some_and(|before| begin < before.0) {
            return None;
        }
        let events = stream.counters.lost_events(before.as_ref(), &row);
        let packets = stream.counters.lost_packets(before.as_ref(), &row);
        for loss in events.iter().chain(&packets) {
            lost.begin = lost.begin.into_iter().chain(nanos(loss.begin_cycles)).min();
            lost.end = lost.end.max(nanos(loss.end_cycles));
        }
        before = Some(row);
    }
    Some(lost)
}

/// When a packet begins and ends.
fn times(stream: &DataStream, row: &PacketRow) -> Option<(i64, i64)> {
    let clock = stream.clock?;
    Some((clock.nanos_saturating(row.begin_cycles?), clock.nanos_saturating(row.end_cycles?)))
}

/// One of the two ends of the time that has events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    First,
    Last,
}

impl Edge {
    /// The one of two times that is farther out.
    fn outer(self, one: i64, other: i64) -> i64 {
        if self == Self::First { one.min(other) } else { one.max(other) }
    }

    /// When a packet begins or ends.
    fn of(self, (begin, end): (i64, i64)) -> i64 {
        if self == Self::First { begin } else { end }
    }
}

/// The first event or the last one, or a time that is farther out. Of each stream, packets are read from the outermost one on, until
/// one has an event, or all others are farther in.
fn edge(session: &Session, cursors: &mut [Cursor], known: Option<i64>, edge: Edge) -> Option<i64> {
    let streams = session.streams();
    let mut slice = Slice { begin: i64::MIN, end: None, wanted: vec![0..0; streams.len()], bytes: 0 };
    let (mut outermost, mut left) = (known, READ_MAX);
    for (number, (_, stream)) in outermost_first(&streams, edge) {
        let packets = &stream.packets;
        for looked in 0..packets.len() {
            let packet = if edge == Edge::First { looked } else { packets.len() - 1 - looked };
            let Some(at) = times(stream, &packets.get(packet)).map(|times| edge.of(times)) else { break };
            if outermost.is_some_and(|known| edge.outer(known, at) == known) {
                break;
            }
            slice.wanted[number] = packet..packet + 1;
            let bytes = packets.packet_bytes(packet..packet + 1);
            let found = if bytes <= left && looked < EMPTY_MAX {
                left -= bytes;
                cursors[number].enter(&slice);
                event(&mut cursors[number], edge)
            } else {
                FoundEvent::Unreadable
            };
            let found = match found {
                FoundEvent::At(time) => time,
                FoundEvent::Nothing => continue,
                FoundEvent::Unreadable => at,
            };
            outermost = Some(outermost.map_or(found, |known| edge.outer(known, found)));
            break;
        }
    }
    outermost
}

type NumberedStream<'s> = (usize, (&'s Arc<Trace>, &'s DataStream));

/// Streams by the begin of their first packet, or from the latest end of a last packet on.
fn outermost_first<'s>(streams: &[(&'s Arc<Trace>, &'s DataStream)], edge: Edge) -> Vec<NumberedStream<'s>> {
    let at = |stream: &DataStream| {
        let packet = if edge == Edge::First { stream.packets.first() } else { stream.packets.last() };
        Some(edge.of(times(stream, &packet?)?))
    };
    let streams = streams.iter().copied().enumerate();
    let mut order: Vec<(i64, NumberedStream<'s>)> =
        streams.filter_map(|(number, stream)| Some((at(stream.1)?, (number, stream)))).collect();
    order.sort_by_key(|(at, _)| *at);
    if edge == Edge::Last {
        order.reverse();
    }
    order.into_iter().map(|(_, stream)| stream).collect()
}

/// The first event of a packet, or its last one.
fn event(cursor: &mut Cursor, edge: Edge) -> FoundEvent {
    let mut found = None;
    while let Some(item) = cursor.next_item() {
        let CursorItem::Batch(batch) = item else { return FoundEvent::Unreadable };
        if matches!(batch.content, BatchContent::Events(_)) {
            // Before anything of a stream had a time, events have none; others have times beyond 64 bits.
            let times = batch.keys.iter().copied().filter(|key| ![i64::MIN, i64::MAX].contains(key));
            found = found.into_iter().chain(times).reduce(|one, other| edge.outer(one, other));
        }
        cursor.recycle(batch);
    }
    // Keys go on from the latest time where the clock was set back: they hide when that was.
    match cursor.clock_was_set_back() {
        true => FoundEvent::Unreadable,
        false => found.map_or(FoundEvent::Nothing, FoundEvent::At),
    }
}
