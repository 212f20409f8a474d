//! What happened in a span of time, to all tracks: a node of the pyramid.
//!
//! ```text
//! level up      [        parent        ]     buckets four times as wide, or as wide as it takes
//! chunks        [ node ][ node ][ node ]     each with about as many buckets
//! ```
//!
//! A node is bytes with a directory, so that it costs memory and time for those tracks only that somebody asks for.

use hashbrown::HashMap;

use super::cells::{Cell, LEVEL_MAX, Level, add_up, thin};

/// What happened in a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// How wide its buckets are.
    level: Level,
    /// All values that its cells have.
    values: Vec<u64>,
    /// By key.
    tracks: Vec<Entry>,
    bytes: Vec<u8>,
}

/// A track in which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    key: u64,
    /// What it is behind all that happened, and since when.
    last: Option<(u64, i64)>,
    /// How many values begin.
    begins: u64,
    /// Where the bytes of its cells end; they begin where those before end.
    end: u32,
}

/// How many values of a bucket are told apart at most, by the key of its track.
pub type Most = fn(u64) -> usize;

/// Collects what happens.
#[derive(Clone, Debug)]
pub struct NodeBuilder {
    /// How wide buckets are, and the time at which the first one begins.
    level: Level,
    origin: i64,
    /// How many values of a bucket of a track are told apart at most.
    most: Option<Most>,
    tracks: HashMap<u64, Building>,
}

#[derive(Clone, Debug, Default)]
struct Building {
    last: Option<(u64, i64)>,
    cells: Vec<Cell>,
}

/// Cells before a new one that may be of the same bucket and value: what happens again and again is added up at once.
const LOOK_BACK: usize = 4;

impl Building {
    #[inline]
    fn add(&mut self, cell: Cell) {
        let from = self.cells.len().saturating_sub(LOOK_BACK);
        let is_same = |known: &&mut Cell| (known.bucket, known.value) == (cell.bucket, cell.value);
        match self.cells[from..].iter_mut().find(is_same) {
            Some(known) => known.add(&cell),
            None => self.cells.push(cell),
        }
    }
}

/// Times are kept in units of `1 << unit(level)` nanoseconds: a 256th of a bucket.
fn unit(level: Level) -> u32 {
    u32::from(level.saturating_sub(8))
}

impl NodeBuilder {
    /// Buckets of a level, the first of which begins at the origin.
    #[must_use]
    pub fn new(origin: i64, level: Level) -> Self {
        Self { level, origin, most: None, tracks: HashMap::new() }
    }

    /// The same, of which so many values of each bucket are told apart.
    #[must_use]
    pub fn thinned(self, most: Most) -> Self {
        Self { most: Some(most), ..self }
    }

    fn edge(&mut self, key: u64, at: i64, value: u64, (begins, net): (u32, i32)) -> &mut Building {
        let since = at.saturating_sub(self.origin).max(0).cast_unsigned();
        let bucket = since >> self.level;
        let unit = unit(self.level);
        let rest = (((bucket + 1) << self.level) - since + (1 << unit >> 1)) >> unit << unit;
        let time = i64::from(net) * rest.cast_signed();
        let building = self.tracks.entry(key).or_default();
        building.add(Cell { bucket, value, begins, net, time });
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
        self.tracks.entry(key).or_default().add(Cell { bucket, value, begins, net: 0, time: 0 });
    }

    /// What a track is that has no cells, and since when; `None`: nothing.
    pub fn known(&mut self, key: u64, now: Option<(u64, i64)>) {
        self.tracks.entry(key).or_default().last = now;
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
            if let Some(most) = self.most {
                thin(&mut building.cells, most(key));
            }
            writer.track(key, building.last, &building.cells);
        }
        writer.node
    }
}

/// Buckets of any level that there may be: their times fit into 64 bits at every level that is wider.
const BUCKETS_MAX: u64 = 1 << 62;

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
        let Self { node: Node { values, bytes, level, .. }, places } = self;
        let unit = unit(*level);
        let mut place = |value: u64| {
            *places.entry(value).or_insert_with(|| {
                values.push(value);
                values.len() as u64 - 1
            })
        };
        // It need not have a cell.
        if let Some((value, _)) = last {
            place(value);
        }
        let (mut before, mut begins) = (0, 0);
        for cell in cells {
            let place = place(cell.value);
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
            put(bytes, zigzag(cell.time >> unit));
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

    /// As bytes: numbers of the directory as steps from those before, as tracks of a kind have keys that follow each other.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 8 * self.tracks.len());
        let first = self.tracks.iter().filter_map(|entry| entry.last).map(|last| last.1).min().unwrap_or(0);
        put(&mut bytes, self.level.into());
        put(&mut bytes, zigzag(first));
        put(&mut bytes, self.values.len() as u64);
        self.values.iter().for_each(|&value| put(&mut bytes, value));
        put(&mut bytes, self.tracks.len() as u64);
        let (mut key, mut end) = (0, 0);
        let places: HashMap<u64, u64> = self.values.iter().copied().zip(1..).collect();
        for entry in &self.tracks {
            put(&mut bytes, entry.key - std::mem::replace(&mut key, entry.key));
            put(&mut bytes, u64::from(entry.end - std::mem::replace(&mut end, entry.end)));
            put(&mut bytes, entry.begins);
            put(&mut bytes, entry.last.map_or(0, |(value, _)| places[&value]));
            if let Some((_, since)) = entry.last {
                put(&mut bytes, first.abs_diff(since));
            }
        }
        bytes.extend_from_slice(&self.bytes);
        bytes
    }

    /// From bytes that [`Node::encode`] made; `None`: they are something else.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let level = Level::try_from(take(bytes)?).ok().filter(|level| *level <= LEVEL_MAX)?;
        let first = unzigzag(take(bytes)?);
        // As many as there are bytes at most, so that a number alone takes no memory.
        let count = |bytes: &mut &[u8]| usize::try_from(take(bytes)?).ok().filter(|count| *count <= bytes.len());
        let values: Vec<u64> = (0..count(bytes)?).map(|_| take(bytes)).collect::<Option<_>>()?;
        let count = count(bytes)?;
        let (mut tracks, mut key, mut end) = (Vec::with_capacity(count), 0u64, 0u32);
        for _ in 0..count {
            key = key.checked_add(take(bytes)?)?;
            end = end.checked_add(u32::try_from(take(bytes)?).ok()?)?;
            let begins = take(bytes)?;
            let last = match take(bytes)? {
                0 => None,
                place => {
                    let value = *values.get(usize::try_from(place - 1).ok()?)?;
                    Some((value, first.checked_add_unsigned(take(bytes)?)?))
                }
            };
            tracks.push(Entry { key, last, begins, end });
        }
        (end as usize == bytes.len()).then(|| Self { level, values, tracks, bytes: bytes.to_vec() })
    }

    fn at(&self, place: usize) -> TrackPart<'_> {
        let Entry { key, last, begins, end } = self.tracks[place];
        let begin = place.checked_sub(1).map_or(0, |before| self.tracks[before].end);
        let bytes = self.bytes.get(begin as usize..end as usize).unwrap_or_default();
        TrackPart { key, last, begins, node: self, bytes }
    }

    /// What happened in these spans, which follow each other, in buckets of a level that is no finer than theirs.
    #[must_use]
    pub fn together(nodes: &[&Self], level: Level, most: Most) -> Self {
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
            thin(&mut cells, most(key));
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
        let unit = unit(from);
        std::iter::from_fn(move || {
            bucket = bucket.checked_add(take(&mut bytes)?).filter(|bucket| *bucket < BUCKETS_MAX)?;
            let head = take(&mut bytes)?;
            let value = *values.get(usize::try_from(head >> 4).ok()?)?;
            let begins = match head >> 2 & 3 {
                few if few < MANY.into() => few as u32,
                _ => u32::try_from(take(&mut bytes)?.checked_add(MANY.into())?).ok()?,
            };
            let net = if head & 3 < MANY.into() { head & 3 } else { take(&mut bytes)? };
            let net = i32::try_from(unzigzag(net)).ok()?;
            let time = unzigzag(take(&mut bytes)?).checked_mul(1 << unit)?;
            Some(Cell { bucket, value, begins, net, time }.widened(from, level.max(from)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Cells in the order of buckets and values, whose times are whole units.
    fn cells(random: &mut Random, level: Level) -> Vec<Cell> {
        let cell = |_| {
            let time = (random.below(1 << 20) as i64 - (1 << 19)) << unit(level);
            let begins = [0, 1, 2, 3, 70, u32::MAX][random.below(6)];
            let net = [0, 1, -1, 2, -2, i32::MAX, i32::MIN + 1][random.below(7)];
            Cell {
                bucket: random.below(1 << 30) as u64,
                value: random.below(9) as u64 * 0x1234_5678_9abc,
                begins,
                net,
                time,
            }
        };
        let mut cells: Vec<Cell> = (0..50).map(cell).collect();
        cells.sort_unstable();
        cells.dedup_by_key(|cell| (cell.bucket, cell.value));
        cells
    }

    #[test]
    fn a_node_says_what_was_written() {
        for seed in 0..100 {
            let random = &mut Random(seed);
            let level = random.below(30) as Level;
            let mut writer = Writer::new(level);
            let tracks: Vec<(u64, Vec<Cell>)> = (0..5).map(|key| (key * 7, cells(random, level))).collect();
            tracks.iter().for_each(|(key, cells)| writer.track(*key, Some((cells[0].value, 5)), cells));
            let bytes = writer.node.encode();
            let node = Node::decode(&bytes).unwrap();
            assert_eq!(node, writer.node);
            assert!((0..bytes.len()).all(|cut| Node::decode(&bytes[..cut]).is_none()), "{seed}");
            for (key, cells) in &tracks {
                let part = node.track(*key).unwrap();
                assert_eq!(part.cells(level).collect::<Vec<_>>(), *cells, "{seed}");
                assert_eq!(part.last, Some((cells[0].value, 5)));
            }
            assert!(node.track(1).is_none());
        }
    }

    /// A node of two spans says what a node of both says at once.
    #[test]
    fn nodes_side_by_side_are_one() {
        for seed in 0..100 {
            let random = &mut Random(seed);
            let builder = || NodeBuilder::new(0, 3);
            let (mut left, mut right, mut whole) = (builder(), builder(), builder());
            let (mut at, mut is_open) = (0, false);
            for _ in 0..60 {
                let value = random.below(3) as u64;
                for node in [if at < 500 { &mut left } else { &mut right }, &mut whole] {
                    if is_open {
                        node.end(1, at, 1);
                    } else {
                        node.begin(1, at, 1);
                    }
                    node.count(2, node.bucket(at), value, 1);
                }
                is_open = !is_open;
                at += 1 + random.below(30) as i64;
            }
            let nodes = [&left.build(), &right.build()];
            let (together, whole) = (Node::together(&nodes, 6, |_| 99), Node::together(&[&whole.build()], 6, |_| 99));
            let said = |node: &Node| node.tracks().map(|part| part.cells(6).collect()).collect::<Vec<Vec<_>>>();
            assert_eq!(said(&together), said(&whole), "{seed}");
        }
    }

    /// Bytes that nobody wrote end cells, and break nothing.
    #[test]
    fn broken_bytes_end_cells() {
        for seed in 0..300 {
            let random = &mut Random(seed);
            let mut writer = Writer::new(3);
            writer.track(1, None, &cells(random, 3));
            let mut node = writer.node;
            let at = random.below(node.bytes.len());
            node.bytes[at] = random.below(256) as u8;
            node.bytes.truncate(node.bytes.len() - random.below(5));
            assert!(node.track(1).is_none_or(|part| part.cells(20).count() <= 51));
        }
    }
}
