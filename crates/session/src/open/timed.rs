//! Packets that do not say when they are, as those of some tracers do not, or of streams without packets: they are read once, and are as long
//! as from their first event to their last one then.

use std::sync::Arc;

use kymo_scan::{BatchContent, Cursor, CursorItem, DataStream, Packets, Trace};

use crate::open::Session;
use crate::open::progress::Progress;

/// From when to when the events of a packet are, in cycles; `None`: it has none.
type Cycles = Option<(u64, u64)>;

impl Session {
    /// The same traces with times in all packets, as far as there is a clock. Where they do not say
    /// it themselves their streams are read.
    pub(crate) fn timed(self: &Arc<Self>) -> Arc<Self> {
        let lacks: Vec<bool> = self.streams().iter().map(|(_, stream)| lacks_times(stream)).collect();
        if !lacks.contains(&true) {
            return Arc::clone(self);
        }
        let mut cursors = self.cursors(false, &[], &Progress::default());
        cursors.retain(|cursor| lacks[cursor.stream()]);
        let mut seen: Vec<Option<Vec<Cycles>>> = vec![None; lacks.len()];
        for (stream, times) in self.side_by_side(cursors, |cursor| (cursor.stream(), times_of_events(cursor))) {
            seen[stream] = Some(times);
        }
        let mut seen = seen.into_iter();
        let timed = |trace: &Arc<Trace>| {
            let seen = trace.streams.iter().enumerate().zip(seen.by_ref());
            let packets =
                seen.filter_map(|((number, stream), seen)| Some((number, with_times(&stream.packets, &seen?))));
            Arc::new(trace.with_packets(packets.collect()))
        };
        let traces = self.traces.iter().map(timed).collect();
        Arc::new(self.with_traces(traces))
    }
}

fn lacks_times(stream: &DataStream) -> bool {
    stream.clock.is_some() && stream.packets.iter().any(|row| row.begin_cycles.is_none() || row.end_cycles.is_none())
}

fn times_of_events(mut cursor: Cursor) -> Vec<Cycles> {
    let mut times: Vec<Cycles> = Vec::new();
    while let Some(item) = cursor.next_item() {
        // The job that reads these events reports unreadable places.
        let CursorItem::Batch(batch) = item else { continue };
        if let BatchContent::Events(events) = &batch.content {
            let number = events.packet.number as usize;
            times.resize(times.len().max(number + 1), None);
            // Before anything of a stream had a time, events have none.
            let untimed = batch.keys.partition_point(|&key| key == i64::MIN);
            let cycles = &events.records.cycles[untimed..];
            let found = cycles.iter().min().copied().zip(cycles.iter().max().copied());
            times[number] = match (times[number], found) {
                (Some((first, last)), Some(found)) => Some((first.min(found.0), last.max(found.1))),
                (known, found) => known.or(found),
            };
        }
        cursor.recycle(batch);
    }
    times
}

/// The packets with facts about their events; one without events is where the one before ends.
fn with_times(packets: &Packets, seen: &[Cycles]) -> Packets {
    let Some((first, _)) = seen.iter().copied().flatten().next() else { return packets.clone() };
    let mut at = packets.first().and_then(|row| row.begin_cycles).unwrap_or(first);
    let timed = packets.iter().enumerate().map(|(number, mut row)| {
        let (first, last) = seen.get(number).copied().flatten().unwrap_or((at, at));
        let begin = row.begin_cycles.map_or(first, |begin| begin.min(first));
        let end = row.end_cycles.unwrap_or(last).max(last).max(begin);
        (row.begin_cycles, row.end_cycles, at) = (Some(begin), Some(end), end);
        row
    });
    timed.collect()
}
