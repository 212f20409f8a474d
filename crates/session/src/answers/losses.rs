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
        if let (Some(before), Some(now)) = (last.discarded, row.discarded) {
            report.events_discarded = report.events_discarded.saturating_add(now.saturating_sub(before));
        }
        if let (Some(before), Some(now)) = (last.sequence, row.sequence) {
            let lost = now.saturating_sub(before).saturating_sub(1);
            report.packets_lost = report.packets_lost.saturating_add(lost);
        }
        last = row;
    }
}
