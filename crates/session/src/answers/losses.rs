//! The losses that tracers report.

use std::ops::Range;

use kymo_scan::DataStream;

use crate::open::report::Report;

/// Losses that tracers report in some packets of a stream, from their counters alone. The count in
/// the stream's first packet tells was lost before it.
pub(crate) fn losses(stream: &DataStream, packets: Range<usize>, report: &mut Report) {
    if packets.start == 0
        && let Some(first) = stream.packets.first().and_then(|packet| packet.discarded)
    {
        report.discarded_is_lower_bound |= first > 0;
    }
    let mut rows = stream.packets.range(packets.start.saturating_sub(1).min(packets.end)..packets.end);
    let Some(mut last) = rows.next() else { return };
    for row in rows {
        if let Some(loss) = stream.counters.lost_events(Some(&last), &row) {
            report.events_discarded = report.events_discarded.saturating_add(loss.count.unwrap_or(0));
            report.discarded_is_lower_bound |= loss.count.is_none();
        }
        let lost = stream.counters.lost_packets(Some(&last), &row).and_then(|loss| loss.count);
        report.packets_lost = report.packets_lost.saturating_add(lost.unwrap_or(0));
        last = row;
    }
}

#[cfg(test)]
mod tests;
