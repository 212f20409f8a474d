//! What happened in a span of time, to all tracks: a node of the pyramid.
//!
//! ```text
//! level up      [        parent        ]     buckets four times as wide, or as wide as it takes
//! chunks        [ node ][ node ][ node ]     each with about as many buckets
//! ```
//!
//! A node is bytes with a directory, so that it costs memory and time for those tracks only that somebody asks for.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::cells::{Cell, Level, add_up};

/// What happened in a span of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// How wide its buckets are.
    level: Level,
    /// All values that its cells have.
    values: Vec<u64>,
    /// By key.
    tracks: Vec<Entry>,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

/// A track in which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    key: u64,
    /// What it is behind all that happened, and since when.
    last: Option<(u64, i64)>,
    /// How many values begin.
    begins: u64,
    /// Where the bytes of its cells end; they begin where those before end.
    end: u32,
}

/// Collects what happens.
#[derive(Clone, Debug)]
pub struct NodeBuilder {
    /// How wide buckets are, and the time at which the first one begins.
    level: Level,
    origin: i64,
    tracks: HashMap<u64, Building>,
}

#[derive(Clone, Debug, Default)]
struct Building {
    last: Option<(u64, i64)>,
    cells: Vec<Cell>,
}

impl NodeBuilder {
    /// Buckets of a level, the first of which begins at the origin.
    #[must_use]
    pub fn new(origin: i64, level: Level) -> Self {
        Self { level, origin, tracks: HashMap::new() }
    }

    fn edge(&mut self, key: u64, at: i64, value: u64, (begins, net): (u32, i32)) -> &mut Building {
        let since = at.saturating_sub(self.origin).max(0).cast_unsigned();
        let bucket = since >> self.level;
        let rest = (((bucket + 1) << self.level) - since).cast_signed();
        let building = self.tracks.entry(key).or_default();
        building.cells.push(Cell { bucket, value, begins, net, time: i64::from(net) * rest });
        building
    }

    /// A value begins.
    pub fn begin(&mut self, key: u64, at: i64, value: u64) {
        self.edge(key, at, value, (1, 1));
    }

    /// A value begins that is there still when the node's span ends.
    pub fn open(&mut self, key: u64, at: i64, value: u64) {
        self.edge(key, at, value, (1, 1)).last = Some((value, at));
    }

    /// A value ends.
    pub fn end(&mut self, key: u64, at: i64, value: u64) {
        self.edge(key, at, value, (0, -1));
    }

    /// Something happens that takes no time, so many times.
    pub fn count(&mut self, key: u64, bucket: u64, value: u64, begins: u32) {
        let building = self.tracks.entry(key).or_default();
        building.cells.push(Cell { bucket, value, begins, net: 0, time: 0 });
    }

    /// The bucket of a time.
    #[must_use]
    pub fn bucket(&self, at: i64) -> u64 {
        at.saturating_sub(self.origin).max(0).cast_unsigned() >> self.level
    }

    /// When a bucket ends.
    #[must_use]
    pub fn bucket_end(&self, bucket: u64) -> i64 {
        self.origin.saturating_add_unsigned((bucket + 1) << self.level)
    }

    /// What happened.
    #[must_use]
    pub fn build(self) -> Node {
        let mut tracks: Vec<(u64, Building)> = self.tracks.into_iter().collect();
        tracks.sort_unstable_by_key(|(key, _)| *key);
        let mut writer = Writer::new(self.level);
        for (key, mut building) in tracks {
            add_up(&mut building.cells);
            writer.track(key, building.last, &building.cells);
        }
        writer.node
    }
}

/// What does not fit into two bits of a cell's head stands behind it.
const MANY: u32 = 3;

/// Writes a node.
struct Writer {
    node: Node,
    places: HashMap<u64, u64>,
}

impl Writer {
    fn new(level: Level) -> Self {
        let node = Node { level, values: Vec::new(), tracks: Vec::new(), bytes: Vec::new() };
        Self { node, places: HashMap::new() }
    }

    /// Tracks come in the order of their keys, cells in theirs.
    fn track(&mut self, key: u64, last: Option<(u64, i64)>, cells: &[Cell]) {
        let Node { values, bytes, .. } = &mut self.node;
        let mut before = 0;
        let mut begins = 0;
        for cell in cells {
            let place = *self.places.entry(cell.value).or_insert_with(|| {
                values.push(cell.value);
                values.len() as u64 - 1
            });
            put(bytes, cell.bucket - before);
            before = cell.bucket;
            // Of almost all cells the net is 0, 1 or -1, and many begin once or never.
            let net = zigzag(cell.net.into());
            put(bytes, place << 4 | u64::from(cell.begins.min(MANY)) << 2 | net.min(MANY.into()));
            if cell.begins >= MANY {
                put(bytes, u64::from(cell.begins - MANY));
            }
            if net >= MANY.into() {
                put(bytes, net);
            }
            put(bytes, zigzag(cell.time));
            begins += u64::from(cell.begins);
        }
        let end = u32::try_from(bytes.len()).expect("a node is made of a few megabytes");
        self.node.tracks.push(Entry { key, last, begins, end });
    }
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A track of a node.
#[derive(Clone, Copy, Debug)]
pub struct TrackPart<'a> {
    /// Which one.
    pub key: u64,
    /// What it is behind all that happened in the node, and since when.
    pub last: Option<(u64, i64)>,
    /// How many values begin.
    pub begins: u64,
    node: &'a Node,
    bytes: &'a [u8],
}

impl Node {
    /// How wide its buckets are.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.values.len() * 8 + self.tracks.len() * size_of::<Entry>() + self.bytes.len()
    }

    /// The tracks in which something happened, in the order of their keys.
    pub fn tracks(&self) -> impl Iterator<Item = TrackPart<'_>> {
        (0..self.tracks.len()).map(|place| self.at(place))
    }

    /// A track; `None`: nothing happened to it.
    #[must_use]
    pub fn track(&self, key: u64) -> Option<TrackPart<'_>> {
        self.tracks.binary_search_by_key(&key, |entry| entry.key).ok().map(|place| self.at(place))
    }

    /// All values that tracks have.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    fn at(&self, place: usize) -> TrackPart<'_> {
        let Entry { key, last, begins, end } = self.tracks[place];
        let begin = place.checked_sub(1).map_or(0, |before| self.tracks[before].end);
        let bytes = self.bytes.get(begin as usize..end as usize).unwrap_or_default();
        TrackPart { key, last, begins, node: self, bytes }
    }

    /// What happened in these spans, which follow each other, in buckets of a level that is no finer than theirs.
    #[must_use]
    pub fn together(nodes: &[&Self], level: Level) -> Self {
        let mut keys: Vec<u64> = nodes.iter().flat_map(|node| node.tracks.iter().map(|entry| entry.key)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut writer = Writer::new(level);
        let mut cells = Vec::new();
        for key in keys {
            cells.clear();
            let mut last = None;
            for part in nodes.iter().filter_map(|node| node.track(key)) {
                cells.extend(part.cells(level));
                last = part.last;
            }
            add_up(&mut cells);
            writer.track(key, last, &cells);
        }
        writer.node
    }
}

impl TrackPart<'_> {
    /// Its cells in buckets of a level that is no finer than the node's, in the order of buckets; those of one bucket may be
    /// several of a value. Bytes that nobody wrote end them.
    pub fn cells(&self, level: Level) -> impl Iterator<Item = Cell> {
        let (mut bytes, mut bucket, values, from) = (self.bytes, 0u64, &self.node.values, self.node.level);
        std::iter::from_fn(move || {
            bucket = bucket.checked_add(take(&mut bytes)?)?;
            let head = take(&mut bytes)?;
            let value = *values.get(usize::try_from(head >> 4).ok()?)?;
            let begins = match head >> 2 & 3 {
                few if few < MANY.into() => few as u32,
                _ => u32::try_from(take(&mut bytes)?.checked_add(MANY.into())?).ok()?,
            };
            let net = if head & 3 < MANY.into() { head & 3 } else { take(&mut bytes)? };
            let net = i32::try_from(unzigzag(net)).ok()?;
            let time = unzigzag(take(&mut bytes)?);
            Some(Cell { bucket, value, begins, net, time }.widened(from, level.max(from)))
        })
    }
}
