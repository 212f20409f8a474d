//! The losses of tracers in sentences of their own, as Babeltrace writes them: scripts look for them.

use std::sync::Arc;

use kymo_decode::text::{Moment, Stamp};
use kymo_scan::{BatchContent, DataStream, Loss, Mark, Round, StreamBatch, Trace};

use super::PrintOptions;
use super::details::{name, stream_ids};
use crate::open::Session;

/// So many are kept; the report counts all of them.
const LOSSES_MAX: usize = 10_000;

/// A loss that a tracer reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedLoss {
    /// How many events or packets, when, and of which stream.
    pub sentence: String,
    /// Packets, not events.
    pub of_packets: bool,
    /// How many, if known.
    pub count: Option<u64>,
}

/// A loss in a data stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamLoss {
    stream: usize,
    of_packets: bool,
    loss: Loss,
}

/// Adds the losses of a round, as long as there are not too many.
pub(super) fn collect(losses: &mut Vec<StreamLoss>, round: &Round<StreamBatch>) {
    for part in &round.parts {
        let (of_packets, loss) = match &part.batch.content {
            BatchContent::Mark(Mark::DiscardedEvents(loss)) => (false, *loss),
            BatchContent::Mark(Mark::DiscardedPackets(loss)) => (true, *loss),
            _ => continue,
        };
        if losses.len() < LOSSES_MAX {
            losses.push(StreamLoss { stream: part.batch.stream, of_packets, loss });
        }
    }
}

/// Adds those of the next part of the trace.
pub(super) fn add(losses: &mut Vec<StreamLoss>, part: Vec<StreamLoss>) {
    losses.extend(part.into_iter().take(LOSSES_MAX - losses.len()));
}

impl Session {
    /// The sentences about losses.
    pub(super) fn loss_sentences(&self, losses: &[StreamLoss], options: &PrintOptions) -> Vec<PrintedLoss> {
        let mut stamp = Stamp::new(options.stamp, options.zone);
        let streams = self.streams();
        let ids: Vec<u64> = self.traces.iter().flat_map(|trace| stream_ids(trace)).collect();
        let sentence = |StreamLoss { stream, of_packets, loss }: &StreamLoss| {
            let range = range(loss, streams[*stream].1, &mut stamp);
            let place = self.stream_in_words(streams[*stream], *stream, ids[*stream]);
            let sentence = format!("Tracer {}{range} {place}.", lost(*of_packets, loss.count));
            PrintedLoss { sentence, of_packets: *of_packets, count: loss.count }
        };
        losses.iter().map(sentence).collect()
    }

    /// `in trace "a" (no UUID) within stream "/x/a/s" (stream class ID: 0, stream ID: 0)`
    fn stream_in_words(&self, (trace, stream): (&Arc<Trace>, &DataStream), rank: usize, id: u64) -> String {
        let uuid = trace.class.uuid.map_or_else(|| "no UUID".to_owned(), |uuid| format!("UUID: {uuid}"));
        let place = self.place(rank);
        let file = std::path::absolute(&place).map_or(place, |path| path.display().to_string());
        let class = trace.class.stream_classes[stream.class].id;
        let name = name(trace);
        format!("in trace \"{name}\" ({uuid}) within stream \"{file}\" (stream class ID: {class}, stream ID: {id})")
    }
}

/// `discarded 3 events`
fn lost(of_packets: bool, count: Option<u64>) -> String {
    let what = if of_packets { "packet" } else { "event" };
    match count {
        None => format!("may have discarded {what}s"),
        Some(1) => format!("discarded 1 {what}"),
        Some(count) => format!("discarded {count} {what}s"),
    }
}

/// ` between [12:00:00.000000000] and [12:00:01.000000000]`
fn range(loss: &Loss, stream: &DataStream, stamp: &mut Stamp) -> String {
    let moment = |cycles: Option<u64>| {
        let (cycles, clock) = cycles.zip(stream.clock)?;
        Some(Moment { cycles, nanos: clock.nanos(cycles) })
    };
    let Some((begin, end)) = moment(loss.begin_cycles).zip(moment(loss.end_cycles)) else {
        return " (unknown time range)".to_owned();
    };
    let mut text = b" between [".to_vec();
    stamp.time(&mut text, begin);
    text.extend_from_slice(b"] and [");
    stamp.time(&mut text, end);
    text.push(b']');
    String::from_utf8_lossy(&text).into_owned()
}
