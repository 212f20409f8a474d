//! Cuts time into slices that can be read side by side, each by a set of cursors of its own.
//!
//! ```text
//! stream 0   [   p   ][   p   ][   p   ][ p ]      a cut is where some packet begins; packets that lie
//! stream 1    [  p ][   p     ][     p     ]       across it are read twice, by the slice on either side
//! slice      ─────0─────┤├────1─────┤├──2───
//! ```
//!
//! This relies on the times of packets. The reader of a slice checks them: each event against its
//! packet ([`Cursor::strays`](crate::Cursor::strays)). Where they are wrong, slices are no way to
//! read the trace: but those before are good, as no event comes before its packet begins, at any
//! time of its own.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use kymo_decode::ClockConverter;
use kymo_ir::Records;

use crate::index::{PacketRow, PacketRowPlace, Packets};
use crate::trace::DataStream;

/// A part of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its first nanosecond.
    pub begin: i64,
    /// The first nanosecond behind it; `None`: it has no end.
    pub end: Option<i64>,
    /// Of each stream the packets that have a part in it.
    pub wanted: Vec<Range<usize>>,
    /// Bytes of the packets that begin in it.
    pub bytes: u64,
}

/// Packets have no times, or contradict each other: time cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsliceable;

/// How long slices are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Bytes of all packets, about.
    pub all: u64,
    /// Bytes of a slice at least, about.
    pub least: u64,
    /// Bytes of a slice at most, about.
    pub most: u64,
    /// How many read at the same time. Slices become shorter toward the end, so that all end
    /// together.
    pub readers: u64,
}

impl Lengths {
    /// Bytes of a slice when that many are left.
    fn at(&self, left: u64) -> u64 {
        (left / (2 * self.readers.max(1))).min(self.most).max(self.least)
    }
}

/// The slices of a set of streams, one after the other.
#[derive(Debug)]
pub struct Slices {
    lanes: Vec<StreamPackets>,
    /// When the next packet of each lane begins.
    begins: BinaryHeap<Reverse<(i64, usize)>>,
    lengths: Lengths,
    /// Bytes of the packets before the next slice.
    behind: u64,
    begin: i64,
    over: bool,
}

/// The packets of one stream.
#[derive(Debug)]
struct StreamPackets {
    packets: Arc<Packets>,
    clock: Option<ClockConverter>,
    place: PacketRowPlace,
    /// The packet at `place`.
    row: Option<PacketRow>,
    /// The number of that.
    next: usize,
    /// Behind the last packet to be read.
    end: usize,
    /// When the packets before `next` end that may have a part in the slice.
    ends: VecDeque<i64>,
}

impl Slices {
    /// Slices over some packets of each stream.
    ///
    /// # Errors
    ///
    /// [`Unsliceable`], as far as the first packets show it.
    pub fn new<'a>(
        streams: impl Iterator<Item = (&'a DataStream, Range<usize>)>,
        lengths: Lengths,
    ) -> Result<Self, Unsliceable> {
        let mut lanes: Vec<StreamPackets> =
            streams.map(|(stream, wanted)| StreamPackets::new(stream, wanted)).collect();
        let mut begins = BinaryHeap::new();
        for (number, lane) in lanes.iter_mut().enumerate() {
            begins.extend(lane.advance()?.map(|begin| Reverse((begin, number))));
        }
        Ok(Self { lanes, begins, lengths, behind: 0, begin: i64::MIN, over: false })
    }

    /// The same from a time on: of packets that begin before it, the part before it is in no slice.
    #[must_use]
    pub fn from(self, begin: i64) -> Self {
        Self { begin, ..self }
    }

    /// The next slice; `None` behind the last one.
    ///
    /// # Errors
    ///
    /// [`Unsliceable`]: what comes cannot be cut.
    pub fn next_slice(&mut self) -> Result<Option<Slice>, Unsliceable> {
        if self.over {
            return Ok(None);
        }
        let wanted_bytes = self.lengths.at(self.lengths.all.saturating_sub(self.behind));
        let mut bytes = 0;
        let mut end = None;
        while let Some(&Reverse((begin, number))) = self.begins.peek() {
            if bytes >= wanted_bytes && begin > self.begin {
                end = Some(begin);
                break;
            }
            self.begins.pop();
            let lane = &mut self.lanes[number];
            bytes += lane.take()?;
            self.begins.extend(lane.advance()?.map(|begin| Reverse((begin, number))));
        }
        let wanted = self.lanes.iter().map(StreamPackets::wanted).collect();
        let slice = Slice { begin: self.begin, end, wanted, bytes };
        self.over = end.is_none();
        self.behind += bytes;
        self.begin = end.unwrap_or(self.begin);
        self.lanes.iter_mut().for_each(|lane| lane.leave(self.begin));
        Ok(Some(slice))
    }
}

impl StreamPackets {
    fn new(stream: &DataStream, wanted: Range<usize>) -> Self {
        let place = stream.packets.place(wanted.start);
        let packets = Arc::clone(&stream.packets);
        let clock = stream.clock;
        Self { packets, clock, place, row: None, next: wanted.start, end: wanted.end, ends: VecDeque::new() }
    }

    /// Moves to the packet at `next`: returns its begin time.
    fn advance(&mut self) -> Result<Option<i64>, Unsliceable> {
        self.row = (self.next < self.end).then(|| self.packets.step(&mut self.place));
        let Some(row) = &self.row else { return Ok(None) };
        let begin = self.nanos(row.begin_cycles)?;
        if row.begin_cycles > row.end_cycles || self.ends.back().is_some_and(|&end| end > begin) {
            return Err(Unsliceable);
        }
        Ok(Some(begin))
    }

    /// Takes that packet into the slice: its bytes.
    fn take(&mut self) -> Result<u64, Unsliceable> {
        let row = self.row.take().ok_or(Unsliceable)?;
        self.ends.push_back(self.nanos(row.end_cycles)?);
        self.next += 1;
        Ok(row.total_bits / 8)
    }

    fn wanted(&self) -> Range<usize> {
        self.next - self.ends.len()..self.next
    }

    /// The next slice begins at that time.
    fn leave(&mut self, begin: i64) {
        while self.ends.front().is_some_and(|&end| end < begin) {
            self.ends.pop_front();
        }
    }

    fn nanos(&self, cycles: Option<u64>) -> Result<i64, Unsliceable> {
        let (cycles, clock) = cycles.zip(self.clock).ok_or(Unsliceable)?;
        clock.nanos(cycles).ok_or(Unsliceable)
    }
}

/// The part of a slice that a cursor keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceBounds {
    /// See [`Slice::begin`].
    pub(crate) begin: i64,
    /// See [`Slice::end`].
    pub(crate) end: Option<i64>,
}

impl SliceBounds {
    /// Whether the slice contains this time.
    pub(crate) fn contain(&self, key: i64) -> bool {
        self.begin <= key && !self.are_before(key)
    }

    /// Whether the time is behind the slice.
    pub(crate) fn are_before(&self, key: i64) -> bool {
        self.end.is_some_and(|end| end <= key)
    }

    /// Leaves out records outside; whether a record was behind.
    pub(crate) fn keep(&self, records: &mut Records, keys: &mut Vec<i64>) -> bool {
        let from = keys.partition_point(|&key| key < self.begin);
        let to = keys.partition_point(|&key| !self.are_before(key)).max(from);
        let is_over = to < keys.len();
        records.cycles.truncate(to);
        records.classes.truncate(to);
        records.positions.truncate(to);
        keys.truncate(to);
        records.cycles.drain(..from);
        records.classes.drain(..from);
        records.positions.drain(..from);
        keys.drain(..from);
        is_over
    }
}
