//! When things were recorded: stretches of time with bytes in them, from packets or from events.

use kymo_scan::DataStream;

use crate::open::{Origin, Session};

/// Columns of the density.
const COLUMNS: usize = 60;

/// Some content between two times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) begin_ns: i64,
    pub(super) end_ns: i64,
    pub(super) bits: u64,
}

impl Session {
    /// Earliest and latest time of any packet, in nanoseconds; `None` where packets carry no time, or where clocks
    /// count from different origins.
    pub(crate) fn span_ns(&self) -> Option<(i64, i64)> {
        let all: Vec<Stretch> = self.streams().iter().flat_map(|(_, stream)| of_packets(stream)).collect();
        span(&all).filter(|_| Origin::all_same(&self.origins()))
    }
}

/// The packets that carry a beginning; those without an end are only that moment.
pub(super) fn of_packets(stream: &DataStream) -> Vec<Stretch> {
    let Some(clock) = &stream.clock else { return Vec::new() };
    let stretch = |packet: &kymo_scan::PacketRow| {
        let begin_ns = clock.nanos(packet.begin_cycles?)?;
        let end_ns = packet.end_cycles.and_then(|end| clock.nanos(end)).unwrap_or(begin_ns).max(begin_ns);
        Some(Stretch { begin_ns, end_ns, bits: packet.content_bits })
    };
    stream.packets.iter().filter_map(stretch).collect()
}

pub(super) fn span(stretches: &[Stretch]) -> Option<(i64, i64)> {
    let begin = stretches.iter().map(|stretch| stretch.begin_ns).min();
    begin.zip(stretches.iter().map(|stretch| stretch.end_ns).max())
}

/// Spreads each stretch's bits evenly over its time.
pub(super) fn density(stretches: &[Stretch], begin: i64, end: i64) -> Vec<u64> {
    let mut columns = vec![0_u64; COLUMNS];
    let span = (i128::from(end) - i128::from(begin) + 1).max(1);
    let column = |time: i64| ((i128::from(time) - i128::from(begin)) * COLUMNS as i128 / span) as usize;
    for stretch in stretches {
        let (first, last) = (column(stretch.begin_ns), column(stretch.end_ns));
        // Rounded up: what is there is seen.
        let share = stretch.bits.div_ceil((last - first + 1) as u64);
        columns[first..=last].iter_mut().for_each(|column| *column += share);
    }
    columns
}
