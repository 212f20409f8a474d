//! From the first to the last event: the time that a viewer shows.
//!
//! ```text
//! packets   [ empty ][        o  oo][o    ][   empty   ]
//! extent                      ├─────┤
//! ```
//!
//! Packets may begin hours before their first event and end long after their last one: nothing is
//! drawn there. Times with losses and packets that cannot be read are shown, though they have no events.

use kymo_analysis::LaneFacts;
use kymo_scan::index::PacketRow;
use kymo_scan::{BatchContent, Cursor, CursorItem, DataStream, Slice};

use crate::open::Session;
use crate::open::progress::Progress;

/// Packets without events that are looked at of a stream, from its end.
const EMPTY_MAX: usize = 256;
/// Bytes of packets that are read for the last event. With more, packets' own times do.
const READ_MAX: u64 = 32 << 20;

/// The first or the last event of packets.
enum FoundEvent {
    At(i64),
    /// The packets have no events.
    Nothing,
    /// A packet cannot be read: its own times do.
    Unreadable,
}

/// The part of the packets' span of time that has events or losses.
pub(super) fn of(session: &Session, lanes: &[LaneFacts], span: (i64, i64)) -> (i64, i64) {
    let lost = || lanes.iter().flat_map(|lane| lane.holes.inside(i64::MIN, i64::MAX));
    // Of some losses it is not known when they begin or end.
    let first_loss = lost().map(|loss| loss.0).filter(|begin| *begin != i64::MIN).min();
    let last_loss = lost().map(|loss| loss.1).filter(|end| *end != i64::MAX).max();
    let mut cursors = session.cursors(false, &[], &Progress::default());
    let first = first_event(session, &mut cursors, first_loss);
    let last = last_event(session, &mut cursors, last_loss);
    match first.zip(last) {
        Some((first, last)) if first <= last => (first.clamp(span.0, span.1), last.clamp(span.0, span.1)),
        _ => span,
    }
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
    let mut first = known;
    for (begin, number) in order {
        if first.is_some_and(|first| first <= begin) {
            break;
        }
        let found = match event(&mut cursors[number], false) {
            FoundEvent::At(time) => time,
            FoundEvent::Nothing => continue,
            FoundEvent::Unreadable => begin,
        };
        first = Some(first.map_or(found, |first| first.min(found)));
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

/// The first event of a cursor's packets, or their last one.
fn event(cursor: &mut Cursor, is_last: bool) -> FoundEvent {
    let mut found = None;
    while let Some(item) = cursor.next_item() {
        let CursorItem::Batch(batch) = item else { return FoundEvent::Unreadable };
        if matches!(batch.content, BatchContent::Events(_)) {
            // Before anything of a stream had a time, events have none.
            let times = batch.keys.iter().copied().filter(|key| *key != i64::MIN);
            found = if is_last { found.max(times.max()) } else { times.min() };
        }
        cursor.recycle(batch);
        if found.is_some() && !is_last {
            break;
        }
    }
    found.map_or(FoundEvent::Nothing, FoundEvent::At)
}
