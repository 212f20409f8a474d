//! Events of a stream in the order of a file, cut into pieces that become packets.
//!
//! ```text
//! file     ──e1──e2──e4──e3──e5──e6──e8──│──e9──e7──   e7 belongs to the first chunk: both become one
//! chunks   [        first              ] [ second ]
//! ```

use std::ops::Range;

use kymo_wire::index::{self, IndexEntry};

/// Events of a packet, about.
const CHUNK_EVENTS: u32 = 16 << 10;
/// Bytes of the file that a chunk may lie in.
const CHUNK_SPAN: u64 = 4 << 20;
/// Chunks are put together where an event belongs between those of the last one, up to that many events.
const JOINED_EVENTS: u32 = 256 << 10;

/// Events that become a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportChunk<F> {
    /// Where its events are in the file; between them may be others.
    pub(crate) place: Range<u64>,
    pub(crate) events: u32,
    /// Bytes of the events in the packet.
    pub(crate) bytes: u64,
    /// The first and the last time.
    pub(crate) earliest: u64,
    pub(crate) latest: u64,
    /// Facts that reading them needs.
    pub(crate) facts: F,
}

/// Facts that reading the events of a chunk needs, as they are where the chunk begins.
pub(crate) trait ChunkFacts: Copy {
    /// Whether events with these facts can be in one chunk with earlier ones.
    fn go_on(&self, later: &Self) -> bool;
}

/// The chunks of a stream.
#[derive(Debug)]
pub(crate) struct ImportChunks<F> {
    pub(crate) list: Vec<ImportChunk<F>>,
    /// Events that are in the file behind later ones.
    pub(crate) behind: u64,
    pub(crate) latest: u64,
}

impl<F> Default for ImportChunks<F> {
    fn default() -> Self {
        Self { list: Vec::new(), behind: 0, latest: 0 }
    }
}

impl<F: ChunkFacts> ImportChunks<F> {
    /// Adds an event of `bytes` bytes, which is at `place` in the file.
    #[inline]
    pub(crate) fn add(&mut self, time: u64, place: Range<u64>, bytes: u64, facts: F) {
        self.behind += u64::from(time < self.latest);
        self.latest = self.latest.max(time);
        match self.list.last_mut().filter(|open| open.takes(time, &place, &facts)) {
            Some(open) => open.add(time, place.end, bytes),
            None => self.list.push(ImportChunk { place, events: 1, bytes, earliest: time, latest: time, facts }),
        }
        if time < self.before_last_latest() {
            self.join_last();
        }
    }

    /// The last time of the chunk before the last.
    fn before_last_latest(&self) -> u64 {
        self.list.len().checked_sub(2).map_or(0, |before| self.list[before].latest)
    }

    /// Puts the last chunk and the one before it together, if they can be read as one and are not too large.
    #[cold]
    fn join_last(&mut self) {
        while let [.., before, last] = &mut self.list[..] {
            let can_be_one = before.facts.go_on(&last.facts) && before.events + last.events <= JOINED_EVENTS;
            if !can_be_one || last.earliest >= before.latest {
                return;
            }
            before.place.end = last.place.end;
            before.events += last.events;
            before.bytes += last.bytes;
            before.earliest = before.earliest.min(last.earliest);
            before.latest = before.latest.max(last.latest);
            self.list.pop();
        }
    }
}

impl<F: ChunkFacts> ImportChunk<F> {
    /// Whether the next event of the stream goes into this chunk.
    #[inline]
    fn takes(&self, time: u64, place: &Range<u64>, facts: &F) -> bool {
        let has_room = self.events < CHUNK_EVENTS && place.end - self.place.start < CHUNK_SPAN;
        self.facts.go_on(facts) && (has_room || time < self.latest && self.events < JOINED_EVENTS)
    }

    fn add(&mut self, time: u64, end: u64, bytes: u64) {
        self.place.end = end;
        self.events += 1;
        self.bytes += bytes;
        self.earliest = self.earliest.min(time);
        self.latest = self.latest.max(time);
    }
}

/// LTTng's index of the packets of chunks, each with a head of so many bytes, with times that are `late` by so much;
/// `lost` says how many events were lost up to the end of a packet.
pub(crate) fn packet_index<F>(
    chunks: &[ImportChunk<F>],
    (head, late): (u64, u64),
    stream: u64,
    lost: impl Fn(&F) -> u64,
) -> Vec<u8> {
    let mut bytes = index::header().to_vec();
    let mut offset = 0;
    for chunk in chunks {
        let size = head + chunk.bytes;
        let entry = IndexEntry {
            offset,
            packet_bits: size * 8,
            content_bits: size * 8,
            begin_cycles: chunk.earliest.saturating_sub(late),
            end_cycles: chunk.latest.saturating_sub(late),
            discarded: lost(&chunk.facts),
            stream_id: stream,
            ..IndexEntry::default()
        };
        bytes.extend(entry.to_bytes());
        offset += size;
    }
    bytes
}
