//! Chunks: spans of time with a few MiB of packets each, of which one is read at a time.

use kymo_analysis::timeline::cells::{LEVEL_MAX, Level};
use kymo_scan::{Lengths, Slice, Slices};

use crate::answers::analyse::Prepared;
use crate::open::Session;

/// Bytes of a chunk, about: as much as is decoded when a viewer looks at less than its node can
/// show.
const CHUNK_BYTES: u64 = 4 << 20;
/// Chunks at most: the data of each that is kept stays in memory.
const CHUNKS_MAX: u64 = 1 << 16;
/// Buckets of a node: between half of this and this.
pub(super) const NODE_BUCKETS: u64 = 512;

/// A span of time.
#[derive(Clone, Debug)]
pub(super) struct TimelineChunk {
    /// The slice to read.
    pub(super) slice: Slice,
    /// From when to when it is.
    pub(super) span: (i64, i64),
    /// The level of its node's buckets.
    pub(super) level: Level,
}

/// The level at which a span has as many buckets as a node.
pub(super) fn level_of(span: (i64, i64)) -> Level {
    let width = span.0.abs_diff(span.1).div_ceil(NODE_BUCKETS).max(1);
    (width.next_power_of_two().trailing_zeros() as Level).min(LEVEL_MAX)
}

/// The level of exact answers, however long a chunk is: in wider buckets, a question for
/// nanoseconds would find events in the wrong place.
pub(super) const EXACT_LEVEL: Level = 0;

/// Chunks that are there already.
#[derive(Debug, Default)]
pub(super) struct ExistingChunks {
    pub(super) chunks: Vec<TimelineChunk>,
    /// The traces had the same data streams then, in the same order.
    pub(super) is_alike: bool,
}

/// All chunks, in the order of time, behind those that are there already; one, if time cannot be cut. Of traces that grow they end where
/// not everything is there yet.
pub(super) fn from(
    session: &Session,
    prepared: &Prepared,
    (span, until): ((i64, i64), Option<i64>),
    before: ExistingChunks,
) -> Vec<TimelineChunk> {
    let ExistingChunks { mut chunks, is_alike } = before;
    for chunk in chunks.iter_mut().filter(|_| !is_alike) {
        let slice =
            prepared.slice(session, Some(chunk.slice.begin).filter(|begin| *begin != i64::MIN), chunk.slice.end);
        chunk.slice.wanted = slice.wanted;
    }
    let whole = prepared.slice(session, chunks.last().map(|chunk| chunk.span.1), until);
    let chunk = |slice: Slice| {
        // Nothing is before the first event, and nothing behind the last one.
        let last = span.1.saturating_add(1);
        let span = (slice.begin.max(span.0), slice.end.map_or(last, |end| end.min(last)));
        TimelineChunk { slice, span, level: level_of(span) }
    };
    let slices = slices(session, whole);
    // Of traces that grow the last one is open, though nothing may be in it yet.
    let open = slices.len().checked_sub(1).filter(|_| until.is_some());
    let has_events = |(number, chunk): &(usize, TimelineChunk)| chunk.span.0 < chunk.span.1 || Some(*number) == open;
    chunks.extend(slices.into_iter().map(chunk).enumerate().filter(has_events).map(|(_, chunk)| chunk));
    chunks
}

/// A slice cut into such as chunks have.
fn slices(session: &Session, whole: Slice) -> Vec<Slice> {
    let streams = session.streams();
    let wanted = streams.iter().enumerate().map(|(number, (_, stream))| (*stream, whole.wanted[number].clone()));
    let bytes =
        |(stream, wanted): (&kymo_scan::DataStream, std::ops::Range<usize>)| stream.packets.packet_bytes(wanted);
    let all: u64 = wanted.clone().map(bytes).sum();
    let most = session.slice_bytes.unwrap_or(CHUNK_BYTES.max(all / CHUNKS_MAX));
    let lengths = Lengths { all, least: most, most, readers: 1 };
    let mut slices = Vec::new();
    let cut = Slices::new(wanted, lengths).and_then(|cut| {
        let mut cut = cut.from(whole.begin);
        while let Some(slice) = cut.next_slice()? {
            slices.push(slice);
        }
        Ok(())
    });
    if cut.is_err() {
        return vec![Slice { bytes: all, ..whole }];
    }
    if let Some(last) = slices.last_mut() {
        last.end = whole.end;
    }
    slices
}
