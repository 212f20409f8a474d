//! Data streams that end before the others of their trace.
//!
//! ```text
//! CPU 0   [        ][        ][    ]
//! CPU 1   [        ][              ]
//! CPU 2   [        ]├──────────────┤   its end is missing: cut at a packet's border, or not written yet
//! ```
//!
//! LTTng writes the last packets of all streams of a trace together when a session stops, in less than a millisecond, also
//! those of idle CPUs. A stream that ends earlier lacks its end, whatever the reason: nothing in its packets shows that.
//! Programs that write a part of a trace, such as `kymo cut`, keep the tracer's name and end each stream with its last event:
//! their packets have any length, while those of LTTng fill whole pages of memory.

use kymo_format::model::EnvironmentValue;
use kymo_scan::{DataStream, Trace};

/// A stream that ends so much earlier than another one of its trace lacks its end, in nanoseconds. A busy machine may need
/// milliseconds to write the last packets of all CPUs.
const APART_NS: i64 = 10_000_000;

/// The missing end of a data stream, in nanoseconds since the clock's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissingEnd {
    /// When its last packet ends.
    pub(crate) after_ns: i64,
    /// When the last packet of the trace ends.
    pub(crate) until_ns: i64,
}

impl MissingEnd {
    /// For each data stream of a trace.
    pub(crate) fn of_trace(trace: &Trace) -> Vec<Option<Self>> {
        let name = trace.class.environment("tracer_name");
        let writes_together = matches!(name, Some(EnvironmentValue::Text(name)) if name.starts_with("lttng"));
        let ends: Vec<Option<i64>> =
            trace.streams.iter().map(|stream| end(stream).filter(|_| writes_together)).collect();
        let Some(until_ns) = ends.iter().copied().flatten().max() else { return vec![None; ends.len()] };
        let missing = |after_ns: i64| Self { after_ns, until_ns };
        let is_early = |end: &i64| until_ns.saturating_sub(*end) >= APART_NS;
        ends.into_iter().map(|end| end.filter(is_early).map(missing)).collect()
    }

    /// The fact in a sentence without a full stop.
    pub(crate) fn sentence(self) -> String {
        let ms = self.after_ns.abs_diff(self.until_ns) / 1_000_000;
        let (whole, ms) = (ms / 1000, ms % 1000);
        format!(
            "the stream ends {whole}.{ms:03} s before others of its trace, though LTTng ends all of them together: its last \
             packets are missing, or not written yet, and events of that time may be"
        )
    }
}

/// Packets of LTTng fill whole pages, the smallest of which have so many bits.
const PAGE_BITS: u64 = 8 * 4096;

/// When the last packet of a stream ends, if LTTng itself wrote it. Packets of a clock that was set back do not say.
fn end(stream: &DataStream) -> Option<i64> {
    let last = stream.packets.last().filter(|last| last.total_bits.is_multiple_of(PAGE_BITS))?;
    let before = stream.packets.len().checked_sub(2).map(|number| stream.packets.get(number));
    let is_behind = before.and_then(|before| before.end_cycles).is_none_or(|end| last.end_cycles >= Some(end));
    Some(stream.clock?.nanos_saturating(last.end_cycles.filter(|_| is_behind)?))
}
