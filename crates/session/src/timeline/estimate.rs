//! The packet index's estimate of unread chunks: where events are, about.

use kymo_analysis::timeline::cells::Level;
use kymo_analysis::timeline::node::{NodeBuilder, TimelineNode};
use kymo_analysis::timeline::{Thing, TrackKey};

use super::Timeline;
use super::ask::ESTIMATE;

/// Bits of an event, about, as long as nothing was read.
const EVENT_BITS: u64 = 8 * 32;

impl Timeline {
    /// Where the events of a chunk are in a window, if packets are as full everywhere as they are on the whole.
    pub(super) fn estimate(&self, chunk: usize, level: Level, window: (i64, i64)) -> TimelineNode {
        let mut node = NodeBuilder::new(self.span.0, level);
        if self.all.is_some() {
            return node.build();
        }
        let span = self.chunks[chunk].span;
        let (from, to) = (span.0.max(window.0), span.1.min(window.1));
        let streams = self.session.streams();
        for (number, lane) in self.analysis.lanes().iter().enumerate() {
            let key = TrackKey { thing: Thing::LaneEvents, host: lane.host, number: number as i32, track: 0 }.key();
            for &stream in &lane.streams {
                let wanted = self.chunks[chunk].slice.wanted[stream].clone();
                let stream = streams[stream].1;
                let Some(clock) = stream.clock else { continue };
                for packet in stream.packets.range(wanted) {
                    let (Some(begin), Some(end)) = (packet.begin_cycles, packet.end_cycles) else { continue };
                    let packet_span = (clock.nanos_saturating(begin), clock.nanos_saturating(end));
                    spread(&mut node, key, packet.content_bits / EVENT_BITS, packet_span, (from, to));
                }
            }
        }
        node.build()
    }
}

/// Spreads so many events of a span evenly over the buckets of the part of it that lies in another one.
fn spread(node: &mut NodeBuilder, key: u64, events: u64, span: (i64, i64), within: (i64, i64)) {
    let (from, to) = (span.0.max(within.0), span.1.max(span.0 + 1).min(within.1));
    if from >= to {
        return;
    }
    let length = u128::from(span.0.abs_diff(span.1.max(span.0 + 1)));
    // What is before an instant, so that parts add up to the whole.
    let before = |at: i64| (u128::from(events) * u128::from(span.0.abs_diff(at)) / length) as u64;
    let (mut at, mut counted) = (from, before(from));
    while at < to {
        let bucket = node.bucket(at);
        let end = node.bucket_end(bucket).min(to);
        let count = before(end) - counted;
        counted += count;
        if count > 0 {
            node.count(key, bucket, ESTIMATE, count as u32);
        }
        at = end;
    }
}
