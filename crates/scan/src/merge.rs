//! Puts the events of many streams into one time order, without moving them.
//!
//! Each stream queues batches. A *round* takes all rows that no unread row can precede any more,
//! and orders references to it:
//!
//! ```text
//! stream 0   ──o─o──o───o|o                 horizon: the earliest last event of all streams that
//! stream 1   ───o──o────o|───o─o            may still deliver; ties go to the stream of lower rank,
//! stream 2   ─o───────o──|──o               as in Babeltrace's muxer
//!                      horizon
//! ```
//!
//! Ordering a round is a counting sort by time into about as many buckets as there are events, then
//! one insertion pass over the nearly sorted result. On k400 this costs about a third of a k-way
//! merge, with runs of three events there. Time is not spread evenly in every trace: buckets that
//! hold many events are sorted by the standard library, which finds the runs in them.
//!
//! The sort key is one number for each row, time above place: a round is short enough for both to
//! fit into 64 bits almost always. Where they do not, the number has 128.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// An item that a stream queues: rows with keys that never decrease within the stream.
pub trait KeyedItem {
    /// The key of each row, not decreasing.
    fn keys(&self) -> &[i64];
}

/// Rows of one batch that take part in a round.
#[derive(Debug)]
pub struct RoundPart<B> {
    /// The stream's rank: ties in time go to the lower one.
    pub stream: usize,
    /// The batch.
    pub batch: Arc<B>,
    /// Rows of it.
    pub rows: Range<usize>,
}

/// A row of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRow {
    /// Index into [`Round::parts`].
    pub part: u32,
    /// Row of the part's batch.
    pub row: u32,
}

/// Rows of all streams, in time order, that nothing unread precedes.
#[derive(Debug)]
pub struct Round<B> {
    /// In the order of streams, then of time.
    pub parts: Vec<RoundPart<B>>,
    /// Every row of every part, in time order.
    pub order: Vec<PartRow>,
}

/// The queues of all streams.
#[derive(Debug)]
pub struct Merger<B> {
    streams: Vec<StreamQueue<B>>,
    /// Rows that an unfinished stream should have queued before a round.
    rows_wanted: usize,
    /// Rows of a round at most, about.
    round_rows: usize,
    scratch: Scratch,
}

#[derive(Debug)]
struct StreamQueue<B> {
    batches: VecDeque<Arc<B>>,
    /// First row of the front batch that was not given out.
    next: usize,
    /// Rows that were not given out.
    rows: usize,
    finished: bool,
}

#[derive(Debug, Default)]
struct Scratch {
    starts: Vec<u32>,
    short: Vec<u64>,
    long: Vec<u128>,
    /// Memory of rounds that are over.
    orders: Vec<Vec<PartRow>>,
}

/// Rows of a round at most, about; keeps a round's keys and references in the second-level cache.
const ROUND_ROWS: usize = 8 * 1024;
/// The same of the first round, and how many times as many each one may have as the one before: a
/// caller that wants a few events does not wait for thousands.
const FIRST_ROUND_ROWS: usize = 512;
/// The cost of a batch beside its rows, in rows: packets of one event would otherwise be queued by
/// the thousands.
const BATCH_COST_ROWS: usize = 32;
const GROWTH: usize = 8;

impl<B: KeyedItem> Merger<B> {
    /// A merger of `streams` streams, in the order of their rank.
    #[must_use]
    pub fn new(streams: usize) -> Self {
        Self::of_rounds(streams, ROUND_ROWS)
    }

    /// The same with rounds of about that many rows at most.
    #[must_use]
    pub fn of_rounds(streams: usize, round_rows: usize) -> Self {
        let queue = || StreamQueue { batches: VecDeque::new(), next: 0, rows: 0, finished: false };
        Self {
            streams: std::iter::repeat_with(queue).take(streams).collect(),
            rows_wanted: (FIRST_ROUND_ROWS / streams.max(1)).max(1),
            round_rows,
            scratch: Scratch::default(),
        }
    }

    /// Forgets the queue: all streams begin anew.
    pub fn restart(&mut self) {
        for queue in &mut self.streams {
            queue.batches.clear();
            (queue.next, queue.rows, queue.finished) = (0, 0, false);
        }
    }

    /// Streams that should deliver another batch before the next round.
    pub fn hungry(&self) -> impl Iterator<Item = usize> {
        let is_hungry = |queue: &StreamQueue<B>| !queue.finished && queue.filling() < self.rows_wanted;
        self.streams.iter().enumerate().filter(move |(_, queue)| is_hungry(queue)).map(|(stream, _)| stream)
    }

    /// Whether the stream should deliver another batch before the next round.
    #[must_use]
    pub fn is_hungry(&self, stream: usize) -> bool {
        let queue = &self.streams[stream];
        !queue.finished && queue.filling() < self.rows_wanted
    }

    /// Whether the stream should be refilled soon: before it keeps a round waiting.
    #[must_use]
    pub fn wants_more(&self, stream: usize) -> bool {
        let queue = &self.streams[stream];
        !queue.finished && queue.filling() < self.rows_wanted * 2
    }

    /// Whether no stream is hungry, so that a round can be made.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.hungry().next().is_none()
    }

    /// Queues a batch of the stream.
    pub fn push(&mut self, stream: usize, batch: Arc<B>) {
        let queue = &mut self.streams[stream];
        if !batch.keys().is_empty() {
            queue.rows += batch.keys().len();
            queue.batches.push_back(batch);
        }
    }

    /// The stream will deliver no more.
    pub fn finish(&mut self, stream: usize) {
        self.streams[stream].finished = true;
    }

    /// The next round; `None` when all streams are finished and everything was given out.
    ///
    /// # Panics
    ///
    /// If an unfinished stream has nothing queued.
    pub fn round(&mut self) -> Option<Round<B>> {
        let horizon = self.horizon();
        self.rows_wanted = (self.rows_wanted * GROWTH).min((self.round_rows / self.streams.len().max(1)).max(1));
        let mut parts = Vec::new();
        for (stream, queue) in self.streams.iter_mut().enumerate() {
            queue.take(stream, horizon, &mut parts);
        }
        if parts.is_empty() {
            return None;
        }
        let order = order(&parts, &mut self.scratch);
        Some(Round { parts, order })
    }

    /// Gives a round's memory back for later rounds.
    pub fn recycle(&mut self, round: Round<B>) {
        self.scratch.orders.push(round.order);
    }

    /// The earliest (last key, rank) of the streams that may deliver more.
    fn horizon(&self) -> Option<(i64, usize)> {
        let unfinished = self.streams.iter().enumerate().filter(|(_, queue)| !queue.finished);
        unfinished.map(|(stream, queue)| (queue.last_key(), stream)).min()
    }
}

impl<B: KeyedItem> StreamQueue<B> {
    /// How full it is, in rows.
    fn filling(&self) -> usize {
        self.rows + BATCH_COST_ROWS * self.batches.len()
    }

    fn last_key(&self) -> i64 {
        let last = self.batches.back().and_then(|batch| batch.keys().last());
        *last.expect("an unfinished stream has a batch queued before a round")
    }

    /// Moves the rows before the horizon into `parts`.
    fn take(&mut self, stream: usize, horizon: Option<(i64, usize)>, parts: &mut Vec<RoundPart<B>>) {
        while let Some(batch) = self.batches.front() {
            let keys = batch.keys();
            let end = match horizon {
                None => keys.len(),
                Some((key, rank)) if stream <= rank => keys.partition_point(|&row| row <= key),
                Some((key, _)) => keys.partition_point(|&row| row < key),
            };
            if end > self.next {
                self.rows -= end - self.next;
                parts.push(RoundPart { stream, batch: Arc::clone(batch), rows: self.next..end });
                self.next = end;
            }
            if end < keys.len() {
                return;
            }
            self.batches.pop_front();
            self.next = 0;
        }
    }
}

/// All rows of the parts in time order; ties in the order of the parts.
fn order<B: KeyedItem>(parts: &[RoundPart<B>], scratch: &mut Scratch) -> Vec<PartRow> {
    let mut order = scratch.orders.pop().unwrap_or_default();
    order.clear();
    if parts.iter().all(|part| part.stream == parts[0].stream) {
        order.extend(places(parts));
        return order;
    }
    let rows: usize = parts.iter().map(|part| part.rows.len()).sum();
    let (lowest, highest) = extent(parts);
    let span = highest.wrapping_sub(lowest) as u64;
    let row_max = parts.iter().map(|part| part.rows.end as u64).max().unwrap_or(0);
    let packing =
        RowPacking { lowest, row_bits: bits_of(row_max), place_bits: bits_of(row_max) + bits_of(parts.len() as u64) };
    let buckets = TimeBuckets::new(span, rows);
    if bits_of(span) + packing.place_bits <= u64::BITS {
        sort(parts, &buckets, &packing, &mut scratch.starts, &mut scratch.short);
        order.extend(scratch.short.iter().map(|&packed| packing.place(packed)));
    } else {
        sort(parts, &buckets, &packing, &mut scratch.starts, &mut scratch.long);
        order.extend(scratch.long.iter().map(|&packed| packing.place(packed)));
    }
    order
}

/// Bits that hold the number.
fn bits_of(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// A time since the round's lowest above a place, so that numbers are ordered as rows are.
trait Packed: Copy + Ord + Default {
    fn pack(since: u64, place: u64, place_bits: u32) -> Self;
    fn place(self, place_bits: u32) -> u64;
}

impl Packed for u64 {
    fn pack(since: u64, place: u64, place_bits: u32) -> Self {
        since << place_bits | place
    }

    fn place(self, place_bits: u32) -> u64 {
        self & !(u64::MAX << place_bits)
    }
}

impl Packed for u128 {
    fn pack(since: u64, place: u64, place_bits: u32) -> Self {
        Self::from(since) << place_bits | Self::from(place)
    }

    fn place(self, place_bits: u32) -> u64 {
        (self & !(Self::MAX << place_bits)) as u64
    }
}

/// How a row becomes a number.
struct RowPacking {
    lowest: i64,
    row_bits: u32,
    place_bits: u32,
}

impl RowPacking {
    fn since(&self, key: i64) -> u64 {
        key.wrapping_sub(self.lowest) as u64
    }

    fn place(&self, packed: impl Packed) -> PartRow {
        let place = packed.place(self.place_bits);
        PartRow { part: (place >> self.row_bits) as u32, row: (place & !(u64::MAX << self.row_bits)) as u32 }
    }
}

/// A bucket with more rows is sorted by the standard library before the insertion pass.
const CROWDED: u32 = 24;

fn sort<B: KeyedItem, P: Packed>(
    parts: &[RoundPart<B>],
    buckets: &TimeBuckets,
    packing: &RowPacking,
    starts: &mut Vec<u32>,
    sorted: &mut Vec<P>,
) {
    starts.clear();
    starts.resize(buckets.count + 1, 0);
    for part in parts {
        for &key in &part.batch.keys()[part.rows.clone()] {
            starts[buckets.of(packing.since(key)) + 1] += 1;
        }
    }
    let mut crowded = Vec::new();
    let mut sum = 0;
    for start in &mut starts[..] {
        if *start > CROWDED {
            crowded.push(sum as usize..(sum + *start) as usize);
        }
        sum += *start;
        *start = sum;
    }
    sorted.resize(sum as usize, P::default());
    scatter(parts, buckets, packing, starts, sorted);
    for bucket in crowded {
        sorted[bucket].sort();
    }
    insertion_pass(sorted);
}

fn places<B>(parts: &[RoundPart<B>]) -> impl Iterator<Item = PartRow> {
    let of_part = |(index, part): (usize, &RoundPart<B>)| {
        part.rows.clone().map(move |row| PartRow { part: index as u32, row: row as u32 })
    };
    parts.iter().enumerate().flat_map(of_part)
}

fn extent<B: KeyedItem>(parts: &[RoundPart<B>]) -> (i64, i64) {
    let lowest = parts.iter().map(|part| part.batch.keys()[part.rows.start]).min();
    let highest = parts.iter().map(|part| part.batch.keys()[part.rows.end - 1]).max();
    (lowest.expect("a round has parts"), highest.expect("a round has parts"))
}

/// Equal stretches of time.
struct TimeBuckets {
    shift: u32,
    count: usize,
}

impl TimeBuckets {
    fn new(span: u64, rows: usize) -> Self {
        let wanted = rows.next_power_of_two().trailing_zeros();
        let shift = bits_of(span).saturating_sub(wanted);
        Self { shift, count: (span >> shift) as usize + 1 }
    }

    fn of(&self, since: u64) -> usize {
        (since >> self.shift) as usize
    }
}

/// Puts every row into its bucket. `starts[b]` is where bucket `b` begins.
fn scatter<B: KeyedItem, P: Packed>(
    parts: &[RoundPart<B>],
    buckets: &TimeBuckets,
    packing: &RowPacking,
    starts: &mut [u32],
    sorted: &mut [P],
) {
    for (part, index) in parts.iter().zip(0_u64..) {
        let keys = &part.batch.keys()[part.rows.clone()];
        let first = (index << packing.row_bits) + part.rows.start as u64;
        for (&key, place) in keys.iter().zip(first..) {
            let since = packing.since(key);
            let next = &mut starts[buckets.of(since)];
            sorted[*next as usize] = P::pack(since, place, packing.place_bits);
            *next += 1;
        }
    }
}

/// Sorts a nearly sorted slice.
fn insertion_pass(sorted: &mut [impl Packed]) {
    for at in 1..sorted.len() {
        let item = sorted[at];
        let mut to = at;
        while to > 0 && sorted[to - 1] > item {
            sorted[to] = sorted[to - 1];
            to -= 1;
        }
        if to != at {
            sorted[to] = item;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Keys(Vec<i64>);

    impl KeyedItem for Keys {
        fn keys(&self) -> &[i64] {
            &self.0
        }
    }

    /// Merges streams of batches with the given keys; every batch is queued as late as possible.
    fn merged(streams: &[Vec<Vec<i64>>]) -> Vec<(i64, usize)> {
        let mut merger = Merger::new(streams.len());
        let mut queues: Vec<VecDeque<Vec<i64>>> = streams.iter().cloned().map(VecDeque::from).collect();
        let mut out = Vec::new();
        loop {
            while let Some(stream) = { merger.hungry().next() } {
                match queues[stream].pop_front() {
                    Some(keys) => merger.push(stream, Arc::new(Keys(keys))),
                    None => merger.finish(stream),
                }
            }
            let Some(round) = merger.round() else {
                return out;
            };
            for place in &round.order {
                let part = &round.parts[place.part as usize];
                out.push((part.batch.0[place.row as usize], part.stream));
            }
        }
    }

    fn sorted(streams: &[Vec<Vec<i64>>]) -> Vec<(i64, usize)> {
        let mut all: Vec<(i64, usize)> = Vec::new();
        for (stream, batches) in streams.iter().enumerate() {
            all.extend(batches.iter().flatten().map(|&key| (key, stream)));
        }
        all.sort_by_key(|&(key, stream)| (key, stream));
        all
    }

    #[test]
    fn ties_go_to_the_lower_rank() {
        let streams = [vec![vec![1, 5, 5], vec![5, 9]], vec![vec![0, 5], vec![5, 5, 6]]];
        assert_eq!(merged(&streams), sorted(&streams));
    }

    #[test]
    fn keys_at_the_edges_of_the_range() {
        let streams = [vec![vec![i64::MIN, 0, i64::MAX]], vec![vec![i64::MIN], vec![i64::MAX, i64::MAX]]];
        assert_eq!(merged(&streams), sorted(&streams));
    }

    #[test]
    fn random_streams_come_out_sorted() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for round in 0..200 {
            let streams: Vec<Vec<Vec<i64>>> = (0..1 + random(9))
                .map(|_| {
                    let mut key = random(50) as i64;
                    let spread = 1 + random(if round % 3 == 0 { 3 } else { 1_000_000 });
                    (0..random(6))
                        .map(|_| {
                            (0..random(900))
                                .map(|_| {
                                    key += random(spread) as i64;
                                    key
                                })
                                .collect()
                        })
                        .collect()
                })
                .collect();
            assert_eq!(merged(&streams), sorted(&streams));
        }
    }
}
