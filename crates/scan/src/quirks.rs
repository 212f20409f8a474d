//! Known errors of tracers in the times of packets, mended as Babeltrace mends them.
//!
//! | tracer | error | remedy |
//! |---|---|---|
//! | lttng-crash | the last packets end at time 0 | end where the next one begins |
//! | LTTng-UST before 2.11.0, LTTng-modules before 2.9.13 and 2.10.0 to 2.10.9 | events after their packet's end | end where the next one begins |
//! | barectf before 2.3.1 | events before their packet's begin | begin at the first event, end there before |
//! | any that reserves the fields | packets begin and end at time 0, their events later | neither is known |
//!
//! The last remedy needs the first event of each packet: [`crate::cursor`] applies it when it has read that. The last
//! packet of a stream ends with its last event, which is read only where that matters ([`last_end_is_doubtful`]).

use kymo_format::TraceClass;
use kymo_format::model::EnvironmentValue;

use crate::index::{PacketRow, Packets};

/// The packets with their times mended.
pub(crate) fn mend(class: &TraceClass, packets: Packets) -> Packets {
    let all = ends_are_doubtful(class);
    if !all && !packets.iter().any(|packet| ends_at_zero(&packet) || has_no_times(&packet)) {
        return packets;
    }
    let mut mended = Packets::default();
    let mut rows = packets.iter().peekable();
    while let Some(mut packet) = rows.next() {
        let next = rows.peek().and_then(|next| next.begin_cycles);
        if let Some(next) = next.filter(|_| all || ends_at_zero(&packet)) {
            packet.end_cycles = Some(next);
        }
        if has_no_times(&packet) {
            (packet.begin_cycles, packet.end_cycles) = (None, None);
        }
        mended.push(packet);
    }
    mended
}

/// Whether a stream's last packet may end before or after the end that the index gives: no packet
/// follows that begins there.
pub(crate) fn last_end_is_doubtful(class: &TraceClass, last: &PacketRow) -> bool {
    ends_are_doubtful(class) || ends_at_zero(last)
}

fn ends_at_zero(packet: &PacketRow) -> bool {
    packet.end_cycles == Some(0) && packet.begin_cycles.is_some_and(|begin| begin != 0)
}

/// The tracer did not set the fields of its times: searching by them would find none of its events.
pub(crate) fn has_no_times(packet: &PacketRow) -> bool {
    packet.begin_cycles == Some(0) && packet.end_cycles == Some(0)
}

pub(crate) fn ends_are_doubtful(class: &TraceClass) -> bool {
    let Some(EnvironmentValue::Text(tracer)) = class.environment("tracer_name") else {
        return false;
    };
    let version = [part(class, "tracer_major"), part(class, "tracer_minor"), patch(class)];
    match tracer.as_str() {
        "lttng-ust" => version < [2, 11, 0],
        "lttng-modules" => version < [2, 9, 13] || ([2, 10, 0]..[2, 10, 10]).contains(&version),
        _ => false,
    }
}

/// Whether packets may begin after their first event.
pub(crate) fn begins_are_doubtful(class: &TraceClass) -> bool {
    let version = [part(class, "tracer_major"), part(class, "tracer_minor"), patch(class)];
    matches!(class.environment("tracer_name"), Some(EnvironmentValue::Text(name)) if name == "barectf")
        && version < [2, 3, 1]
}

/// The cycles between which the events of a packet are, as far as its tracer can be believed.
pub(crate) fn times(class: &TraceClass, packet: &PacketRow, is_last: bool) -> Option<(u64, u64)> {
    let (begin, end) = packet.begin_cycles.zip(packet.end_cycles)?;
    let end = if is_last && last_end_is_doubtful(class, packet) { u64::MAX } else { end };
    (!begins_are_doubtful(class)).then_some((begin, end))
}

fn part(class: &TraceClass, name: &str) -> i128 {
    match class.environment(name) {
        Some(EnvironmentValue::Integer(value)) => *value,
        _ => 0,
    }
}

fn patch(class: &TraceClass) -> i128 {
    part(class, "tracer_patchlevel").max(part(class, "tracer_patch"))
}
