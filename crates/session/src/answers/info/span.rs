//! When things were recorded: stretches of time with bytes in them, from packets or from events.

use kymo_scan::DataStream;

/// Columns of the density.
const COLUMNS: usize = 60;

/// Some content between two times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) begin_ns: i64,
    pub(super) end_ns: i64,
    pub(super) bits: u64,
}

/// The stretches of a data stream. Those of packets are made when they are asked for: there may be millions.
pub(super) enum Stretches<'a> {
    Packets(&'a DataStream),
    Seen(Vec<Stretch>),
}

impl<'a> Stretches<'a> {
    /// Those of packets where packets carry times, else those that were seen in events.
    pub(super) fn new(stream: &'a DataStream, seen: Vec<Stretch>) -> Self {
        if of_packets(stream).next().is_some() { Self::Packets(stream) } else { Self::Seen(seen) }
    }

    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = Stretch> + '_> {
        match self {
            Self::Packets(stream) => Box::new(of_packets(stream)),
            Self::Seen(seen) => Box::new(seen.iter().copied()),
        }
    }
}

/// The packets that carry a beginning; those without an end are only that moment.
pub(super) fn of_packets(stream: &DataStream) -> impl Iterator<Item = Stretch> {
    let stretch = move |packet: kymo_scan::PacketRow| {
        let clock = stream.clock.as_ref()?;
        let begin_ns = clock.nanos(packet.begin_cycles?)?;
        let end_ns = packet.end_cycles.and_then(|end| clock.nanos(end)).unwrap_or(begin_ns).max(begin_ns);
        Some(Stretch { begin_ns, end_ns, bits: packet.content_bits })
    };
    stream.packets.iter().filter_map(stretch)
}

/// From the begin of a data stream's first packet to the end of its last one; `None` where the begin is that of the clock,
/// which no tracer means, or behind the end.
pub(super) fn believable(stream: &DataStream) -> Option<Stretch> {
    let (first, last) = (stream.packets.first()?, stream.packets.last()?);
    let (begin, end) = (first.begin_cycles.filter(|begin| *begin > 0)?, last.end_cycles?);
    let clock = stream.clock.as_ref().filter(|_| begin <= first.end_cycles.unwrap_or(end) && begin <= end)?;
    Some(Stretch { begin_ns: clock.nanos(begin)?, end_ns: clock.nanos(end)?, bits: 0 })
}

pub(super) fn span(stretches: impl Iterator<Item = Stretch>) -> Option<(i64, i64)> {
    let ends = stretches.map(|stretch| (stretch.begin_ns, stretch.end_ns));
    ends.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
}

/// Spreads each stretch's bits evenly over its time between two times: around these it has no events.
pub(super) fn density(stretches: impl Iterator<Item = Stretch>, begin: i64, end: i64) -> Vec<u64> {
    let mut columns = vec![0_u64; COLUMNS];
    let span = (i128::from(end) - i128::from(begin) + 1).max(1);
    let column = |time: i64| ((i128::from(time) - i128::from(begin)) * COLUMNS as i128 / span) as usize;
    for stretch in stretches.filter(|stretch| stretch.begin_ns <= end && begin <= stretch.end_ns) {
        let (first, last) = (column(stretch.begin_ns.max(begin)), column(stretch.end_ns.min(end)));
        // Rounded up: what is there is seen.
        let share = stretch.bits.div_ceil((last - first + 1) as u64);
        columns[first..=last].iter_mut().for_each(|column| *column += share);
    }
    columns
}
