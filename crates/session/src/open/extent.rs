//! From the first to the last event: the time that answers are about.
//!
//! ```text
//! packets   [ empty ][        o  oo][o    ][   empty   ]
//! extent                      ├─────┤
//! ```
//!
//! Packets may begin hours before their first event and end long after their last one: nothing is
//! drawn there. Times with losses and packets that cannot be read are shown, though they have no events.

use kymo_scan::index::PacketRow;
use kymo_scan::{BatchContent, Cursor, CursorItem, DataStream, Slice};

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
    let streams = session.streams();
    if !streams.iter().all(|(_, stream)| is_in_order(stream)) || !TimeOrigin::all_same(&session.origins()) {
        return None;
    }
    let lost: Vec<(i64, i64)> = streams.iter().flat_map(|(_, stream)| losses(stream)).collect();
    // Of some losses it is not known when they begin or end.
    let first_loss = lost.iter().map(|loss| loss.0).filter(|begin| *begin != i64::MIN).min();
    let last_loss = lost.iter().map(|loss| loss.1).filter(|end| *end != i64::MAX).max();
    let mut cursors = session.cursors(false, &[], &Progress::default());
    let first = first_event(session, &mut cursors, first_loss)?;
    let last = last_event(session, &mut cursors, last_loss)?;
    (first <= last).then_some((first, last))
}

/// Whether the packets of a stream have times and begin one after the other: where a clock was set back, the first event may be
/// anywhere.
fn is_in_order(stream: &DataStream) -> bool {
    let begins = || stream.packets.iter().map(|row| times(stream, &row).map(|times| times.0));
    begins().all(|begin| begin.is_some()) && begins().is_sorted()
}

/// When events of a stream were lost.
fn losses(stream: &DataStream) -> Vec<(i64, i64)> {
    let Some(clock) = stream.clock else { return Vec::new() };
    let nanos = |cycles: Option<u64>, else_ns| cycles.map_or(else_ns, |cycles| clock.nanos_saturating(cycles));
    let mut before = None;
    let mut found = Vec::new();
    for row in stream.packets.range(0..stream.packets.len()) {
        let events = stream.counters.lost_events(before.as_ref(), &row);
        let packets = stream.counters.lost_packets(before.as_ref(), &row);
        let lost = events.iter().chain(&packets);
        found.extend(lost.map(|loss| (nanos(loss.begin_cycles, i64::MIN), nanos(loss.end_cycles, i64::MAX))));
        before = Some(row);
    }
    found
}

/// When a packet begins and ends.
fn times(stream: &DataStream, row: &PacketRow) -> Option<(i64, i64)> {
    let clock = stream.clock?;
    Some((clock.nanos_saturating(row.begin_cycles?), clock.nanos_saturating(row.end_cycles?)))
}

/// The earlier one of a time and the first event.
fn first_event(session: &Session, cursors: &mut [Cursor], known: Option<i64>) -> Option<i64> {
    let streams = session.streams();
    let begin = |number: usize| Some(times(streams[number].1, &streams[number].1.packets.first()?)?.0);
    let mut order: Vec<(i64, usize)> = (0..streams.len()).filter_map(|number| Some((begin(number)?, number))).collect();
    order.sort_unstable();
    let mut slice = Slice { begin: i64::MIN, end: None, wanted: vec![0..0; streams.len()], bytes: 0 };
    let (mut first, mut left) = (known, READ_MAX);
    for (_, number) in order {
        let packets = &streams[number].1.packets;
        for packet in 0..packets.len() {
            let Some((begin, _)) = times(streams[number].1, &packets.get(packet)) else { break };
            if first.is_some_and(|first| first <= begin) {
                break;
            }
            slice.wanted[number] = packet..packet + 1;
            let bytes = packets.packet_bytes(packet..packet + 1);
            let found = if bytes <= left && packet < EMPTY_MAX {
                left -= bytes;
                cursors[number].enter(&slice);
                event(&mut cursors[number], false)
            } else {
                FoundEvent::Unreadable
            };
            let found = match found {
                FoundEvent::At(time) => time,
                FoundEvent::Nothing => continue,
                FoundEvent::Unreadable => begin,
            };
            first = Some(first.map_or(found, |first| first.min(found)));
            break;
        }
    }
    first
}

/// The later one of a time and the last event.
fn last_event(session: &Session, cursors: &mut [Cursor], known: Option<i64>) -> Option<i64> {
    let streams = session.streams();
    let end = |number: usize| Some(times(streams[number].1, &streams[number].1.packets.last()?)?.1);
    let mut order: Vec<(i64, usize)> = (0..streams.len()).filter_map(|number| Some((end(number)?, number))).collect();
    order.sort_unstable();
    let mut slice = Slice { begin: i64::MIN, end: None, wanted: vec![0..0; streams.len()], bytes: 0 };
    let (mut last, mut left) = (known, READ_MAX);
    for (_, number) in order.into_iter().rev() {
        let packets = &streams[number].1.packets;
        let oldest = packets.len().saturating_sub(EMPTY_MAX);
        for packet in (oldest..packets.len()).rev() {
            let Some((_, end)) = times(streams[number].1, &packets.get(packet)) else { break };
            if last.is_some_and(|last| end <= last) {
                break;
            }
            slice.wanted[number] = packet..packet + 1;
            let bytes = packets.packet_bytes(packet..packet + 1);
            // Packets before the oldest one may have events.
            let found = if bytes <= left && (packet > oldest || oldest == 0) {
                left -= bytes;
                cursors[number].enter(&slice);
                event(&mut cursors[number], true)
            } else {
                FoundEvent::Unreadable
            };
            let found = match found {
                FoundEvent::At(time) => time,
                FoundEvent::Nothing => continue,
                FoundEvent::Unreadable => end,
            };
            last = Some(last.map_or(found, |last| last.max(found)));
            break;
        }
    }
    last
}

/// The first event of a packet, or its last one.
fn event(cursor: &mut Cursor, is_last: bool) -> FoundEvent {
    let mut found = None;
    while let Some(item) = cursor.next_item() {
        let CursorItem::Batch(batch) = item else { return FoundEvent::Unreadable };
        if matches!(batch.content, BatchContent::Events(_)) {
            // Before anything of a stream had a time, events have none; others have times beyond 64 bits.
            let times = batch.keys.iter().copied().filter(|key| ![i64::MIN, i64::MAX].contains(key));
            found = if is_last { found.max(times.max()) } else { found.into_iter().chain(times).min() };
        }
        cursor.recycle(batch);
    }
    // Keys go on from the latest time where the clock was set back: they hide when that was.
    match cursor.clock_was_set_back() {
        true => FoundEvent::Unreadable,
        false => found.map_or(FoundEvent::Nothing, FoundEvent::At),
    }
}
