//! Data streams that end before the others of their trace.
//!
//! ```text
//! CPU 0   [        ][        ][    ]
//! CPU 1   [        ][              ]
//! CPU 2   [        ]├──────────────┤   its end is missing: cut at a packet's border, or not written yet
//! ```
//!
//! When a session stops, LTTng closes the current packet of each data stream: the last packets of a trace are partly filled,
//! and end within a millisecond. A data stream lacks its end if its last packet is full, as packets are that another one
//! follows, and ends before the others: its file was cut at the border of a packet. A partly filled one that ends early may
//! be the last one of an idle CPU (switch timer), or of a snapshot. Programs that write a part of a trace, such as `kymo
//! cut`, keep the tracer's name, but their packets have any length, while those of LTTng fill whole pages of memory.

use kymo_format::Assumption;
use kymo_format::model::EnvironmentValue;
use kymo_scan::{DataStream, PacketRow, Trace};

/// A data stream that ends so much earlier than another one of its trace may lack its end, in nanoseconds. A busy machine may
/// need milliseconds to close the last packets of all CPUs.
const APART_NS: i64 = 10_000_000;

/// The missing end of a data stream, in nanoseconds since the clock's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissingEnd {
    /// When its last packet ends.
    pub(crate) after_ns: i64,
    /// When the last packet of the trace ends.
    pub(crate) until_ns: i64,
    cause: EndCause,
}

/// Why an end is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndCause {
    /// The file was cut, or is still written.
    Cut,
    /// The tracer's memory was full, as an importer says.
    Full,
    /// What an importer found behind the last event could not be read.
    Unreadable,
}

impl MissingEnd {
    /// For each data stream of a trace.
    pub(crate) fn of_trace(trace: &Trace) -> Vec<Option<Self>> {
        let full = Self::as_imported(trace);
        if full.iter().any(Option::is_some) {
            return full;
        }
        let name = trace.class.environment("tracer_name");
        let writes_together = matches!(name, Some(EnvironmentValue::Text(name)) if name.starts_with("lttng"));
        let ends: Vec<Option<i64>> =
            trace.streams.iter().map(|stream| end(stream).filter(|_| writes_together)).collect();
        let Some(until_ns) = ends.iter().copied().flatten().max() else { return vec![None; ends.len()] };
        let missing = |(stream, end): (&DataStream, Option<i64>)| {
            let after_ns = end.filter(|end| until_ns.saturating_sub(*end) >= APART_NS)?;
            is_full(trace, stream).then_some(Self { after_ns, until_ns, cause: EndCause::Cut })
        };
        trace.streams.iter().zip(ends).map(missing).collect()
    }

    /// Those that an importer knows of.
    fn as_imported(trace: &Trace) -> Vec<Option<Self>> {
        let end = |stream: &DataStream| Some(stream.clock?.nanos_saturating(stream.packets.last()?.end_cycles?));
        let until_ns = trace.streams.iter().filter_map(end).max();
        // A part that was written as a trace has the environment of the whole: `NAME@CYCLES`, the last event of each stream
        // that lacks its end. If it was cut away, the part has its own end.
        let named = |entry: &str| match trace.class.environment(entry) {
            Some(EnvironmentValue::Text(names)) => names.clone(),
            _ => String::new(),
        };
        let (without_end, cut) = (named("streams_without_end"), named("streams_cut"));
        let cause = |stream: &DataStream| {
            let file = &trace.folder.streams()[*stream.files.last()? as usize];
            let end = stream.packets.last().and_then(|packet| packet.end_cycles);
            let is_named = |names: &str| {
                let mut known = names.split(' ').filter_map(|stream| stream.split_once('@'));
                let last = known.find(|(name, _)| *name == file.name).and_then(|(_, last)| last.parse::<u64>().ok());
                last.is_some_and(|last| end.is_some_and(|end| end >= last))
            };
            match file.lacks_end || is_named(&without_end) {
                true => Some(EndCause::Full),
                false => is_named(&cut).then_some(EndCause::Unreadable),
            }
        };
        let missing =
            |stream: &DataStream| Some(Self { cause: cause(stream)?, after_ns: end(stream)?, until_ns: until_ns? });
        trace.streams.iter().map(missing).collect()
    }

    /// The assumption that it is.
    pub(crate) fn assumption(self) -> Assumption {
        match self.cause {
            EndCause::Cut | EndCause::Unreadable => Assumption::EndsEarly,
            EndCause::Full => Assumption::BufferFull,
        }
    }

    /// The fact in a sentence without a full stop.
    pub(crate) fn sentence(self) -> String {
        match self.cause {
            EndCause::Full => {
                return "the tracer's memory was full, so that later events are missing; it does not count them"
                    .to_owned();
            }
            EndCause::Unreadable => {
                return "what is behind its last event cannot be read, so that later events may be missing".to_owned();
            }
            EndCause::Cut => {}
        }
        let ms = self.after_ns.abs_diff(self.until_ns) / 1_000_000;
        let (whole, ms) = (ms / 1000, ms % 1000);
        format!(
            "the stream ends with a full packet, {whole}.{ms:03} s before others of its trace: LTTng closes all of them \
             together, so that further packets are missing, or not written yet"
        )
    }
}

/// Packets of LTTng fill whole pages, the smallest of which have so many bits.
const PAGE_BITS: u64 = 8 * 4096;

/// Whether the last packet of a data stream is as long as the longest one of its class, and has no room for another event.
fn is_full(trace: &Trace, stream: &DataStream) -> bool {
    let alike = trace.streams.iter().filter(|other| other.class == stream.class);
    let longest = alike.flat_map(|stream| stream.packets.iter()).map(|row| row.total_bits).max();
    let has_no_room =
        |last: &PacketRow| last.total_bits - last.content_bits.min(last.total_bits) <= last.total_bits / 16;
    stream.packets.last().is_some_and(|last| Some(last.total_bits) == longest && has_no_room(&last))
}

/// When the last packet of a stream ends, if LTTng itself wrote it. Packets of a clock that was set back do not say.
fn end(stream: &DataStream) -> Option<i64> {
    let last = stream.packets.last().filter(|last| last.total_bits.is_multiple_of(PAGE_BITS))?;
    let before = stream.packets.len().checked_sub(2).map(|number| stream.packets.get(number));
    let is_behind = before.and_then(|before| before.end_cycles).is_none_or(|end| last.end_cycles >= Some(end));
    Some(stream.clock?.nanos_saturating(last.end_cycles.filter(|_| is_behind)?))
}
