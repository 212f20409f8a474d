//! The changes in a span of time, of all tracks: a node of the pyramid.
//!
//! ```text
//! level up      [        parent        ]     buckets four times as wide, or as wide as it takes
//! chunks        [ node ][ node ][ node ]     each with about as many buckets
//! ```
//!
//! A node is bytes with a directory, so that it costs memory and time only for the tracks that are
//! asked for. Where little happens to a track, wider buckets have as many cells as those below:
//! then the parent says only below which of its nodes they are.

mod code;
mod packed;

use std::ops::Range;

use hashbrown::HashMap;

use self::code::{EncodedCells, unit};
use super::cells::{Level, TrackCell, add_up};
use super::thinning::thin;
use super::tracks::is_rest;

/// The changes in a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineNode {
    /// How wide its buckets are.
    level: Level,
    /// No cell is in a bucket before this one.
    base: u64,
    /// By key.
    tracks: Vec<NodeTrack>,
    /// Data that few of them have.
    extras: Vec<Extra>,
    bytes: Vec<u8>,
    /// The only keys that it knows anything of, in their order, if there are others.
    only: Option<Box<[u64]>>,
}

/// A track in which something happened. There are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeTrack {
    key: u64,
    /// Where the bytes of its cells end; they begin where those before end.
    end: u32,
    /// Where its other data stands; [`NO_EXTRA`]: nothing.
    extra: u32,
    /// A bit for each node below that has the cells, if it is not this one.
    below: u8,
    /// Nothing of it takes time.
    is_plain: bool,
}

/// The other data of some tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extra {
    /// The value behind all changes, and since when.
    last: Option<(u64, i64)>,
    /// How often something happened, if nothing of it takes time.
    begins: u64,
}

const NO_EXTRA: u32 = u32::MAX;

/// How many values of a bucket are told apart at most, by the key of its track.
pub type Most = fn(u64) -> usize;

/// Collects changes.
#[derive(Clone, Debug)]
pub struct NodeBuilder {
    /// How wide buckets are, and the time at which the first one begins.
    level: Level,
    origin: i64,
    /// How many values of a bucket of a track are told apart at most.
    most: Option<Most>,
    places: HashMap<u64, usize>,
    tracks: Vec<Building>,
    /// The track that was there last: it often comes again.
    at: usize,
    /// The only keys that are collected, in their order, if there are others.
    only: Option<Box<[u64]>>,
}

#[derive(Clone, Debug, Default)]
struct Building {
    key: u64,
    last: Option<(u64, i64)>,
    cells: Vec<TrackCell>,
}

/// Cells before a new one that may be of the same bucket and value: repeated changes are added up
/// at once.
const LOOK_BACK: usize = 4;

impl Building {
    #[inline]
    fn add(&mut self, cell: TrackCell) {
        let from = self.cells.len().saturating_sub(LOOK_BACK);
        let is_same = |known: &&mut TrackCell| (known.bucket, known.value) == (cell.bucket, cell.value);
        match self.cells[from..].iter_mut().find(is_same) {
            Some(known) => known.add(&cell),
            None => self.cells.push(cell),
        }
    }
}

impl NodeBuilder {
    /// Buckets of a level, the first of which begins at the origin.
    #[must_use]
    pub fn new(origin: i64, level: Level) -> Self {
        Self { level, origin, most: None, places: HashMap::new(), tracks: Vec::new(), at: 0, only: None }
    }

    /// The same of some tracks only.
    #[must_use]
    pub fn only(mut self, keys: &[u64]) -> Self {
        let mut only = keys.to_vec();
        only.sort_unstable();
        only.dedup();
        self.places.extend(only.iter().copied().zip(0..));
        self.tracks.extend(only.iter().map(|&key| Building { key, ..Building::default() }));
        Self { only: Some(only.into()), ..self }
    }

    /// The same, of which so many values of each bucket are told apart.
    #[must_use]
    pub fn thinned(self, most: Most) -> Self {
        Self { most: Some(most), ..self }
    }

    #[inline]
    fn building(&mut self, key: u64) -> Option<&mut Building> {
        if self.tracks.get(self.at).is_none_or(|building| building.key != key) {
            self.at = match self.only {
                Some(_) => *self.places.get(&key)?,
                None => *self.places.entry(key).or_insert_with(|| {
                    self.tracks.push(Building { key, ..Building::default() });
                    self.tracks.len() - 1
                }),
            };
        }
        self.tracks.get_mut(self.at)
    }

    #[inline]
    fn add(&mut self, key: u64, cell: TrackCell) {
        if let Some(building) = self.building(key) {
            building.add(cell);
        }
    }

    /// The cell of a value that begins or ends.
    #[inline]
    fn edge(&self, at: i64, value: u64, (begins, net): (u32, i32)) -> TrackCell {
        let since = at.saturating_sub(self.origin).max(0).cast_unsigned();
        let bucket = since >> self.level;
        let unit = unit(self.level);
        let rest = (((bucket + 1) << self.level) - since + (1 << unit >> 1)) >> unit << unit;
        TrackCell { bucket, value, begins, net, time: i64::from(net) * rest.cast_signed() }
    }

    /// A value begins.
    pub fn begin(&mut self, key: u64, at: i64, value: u64) {
        let cell = self.edge(at, value, (1, 1));
        self.add(key, cell);
    }

    /// A value begins that is there still when the node's span ends.
    pub fn open(&mut self, key: u64, at: i64, value: u64) {
        let cell = self.edge(at, value, (1, 1));
        if let Some(building) = self.building(key) {
            building.add(cell);
            building.last = Some((value, at));
        }
    }

    /// A value ends.
    pub fn end(&mut self, key: u64, at: i64, value: u64) {
        let cell = self.edge(at, value, (0, -1));
        self.add(key, cell);
    }

    /// A value begins and ends.
    #[inline]
    pub fn run(&mut self, key: u64, (begin, end): (i64, i64), value: u64) {
        let (mut first, last) = (self.edge(begin, value, (1, 1)), self.edge(end, value, (0, -1)));
        let Some(building) = self.building(key) else { return };
        if first.bucket == last.bucket {
            first.add(&last);
        } else {
            building.add(last);
        }
        building.add(first);
    }

    /// Something happens that takes no time, so many times.
    pub fn count(&mut self, key: u64, bucket: u64, value: u64, begins: u32) {
        self.add(key, TrackCell { bucket, value, begins, net: 0, time: 0 });
    }

    /// Something arrives: it is counted when it does, with how long it took, to as much as times are kept.
    pub fn arrival(&mut self, key: u64, (begin, end): (i64, i64), value: u64) {
        let (bucket, unit) = (self.bucket(end), unit(self.level));
        let took = end.saturating_sub(begin) >> unit << unit;
        self.add(key, TrackCell { bucket, value, begins: 1, net: 0, time: took });
    }

    /// The value of a track without cells, and since when; `None`: nothing.
    pub fn known(&mut self, key: u64, now: Option<(u64, i64)>) {
        if let Some(building) = self.building(key) {
            building.last = now;
        }
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

    /// The changes.
    #[must_use]
    pub fn build(self) -> TimelineNode {
        let Self { mut tracks, most, level, only, .. } = self;
        // Tracks without changes are not there, even if they were asked for.
        tracks.retain(|building| only.is_none() || building.last.is_some() || !building.cells.is_empty());
        let mut order: Vec<(u64, usize)> = tracks.iter().map(|building| building.key).zip(0..).collect();
        order.sort_unstable();
        for Building { key, cells, .. } in &mut tracks {
            add_up(cells);
            if let Some(most) = most {
                thin(cells, most(*key), |value| is_rest(*key, value));
            }
        }
        let first = tracks.iter().filter_map(|building| Some(building.cells.first()?.bucket)).min();
        let mut node = TimelineNode { only, ..TimelineNode::new(level, first.unwrap_or(0)) };
        for (key, place) in order {
            node.push(key, tracks[place].last, &tracks[place].cells);
        }
        node
    }
}

/// A track of a node.
#[derive(Clone, Copy, Debug)]
pub struct TrackPart<'a> {
    /// Which one.
    pub key: u64,
    /// The value behind all changes in the node, and since when.
    pub last: Option<(u64, i64)>,
    /// How often something happened, if nothing of it takes time.
    pub begins: u64,
    /// A bit for each node below that has the cells, if it is not this one.
    pub below: u8,
    written: &'a [u8],
    head: (Level, u64, bool),
}

impl TimelineNode {
    /// In which nothing happens, in buckets of a level from some bucket on.
    #[must_use]
    pub fn new(level: Level, base: u64) -> Self {
        Self { level, base, tracks: Vec::new(), extras: Vec::new(), bytes: Vec::new(), only: None }
    }

    /// Whether it says all that happened to tracks; `None`: to all of them.
    #[must_use]
    pub fn knows(&self, keys: Option<&[u64]>) -> bool {
        let Some(only) = &self.only else { return true };
        keys.is_some_and(|keys| keys.iter().all(|key| only.binary_search(key).is_ok()))
    }

    /// Adds a track. They come in the order of their keys, cells in theirs.
    fn push(&mut self, key: u64, last: Option<(u64, i64)>, cells: &[TrackCell]) {
        let is_plain = code::are_plain(cells);
        code::write(&mut self.bytes, cells, (self.level, self.base, is_plain));
        let begins = if is_plain { cells.iter().map(|cell| u64::from(cell.begins)).sum() } else { 0 };
        self.enter((key, is_plain), 0, Extra { last, begins });
    }

    /// Adds an entry for the bytes that have no one yet.
    fn enter(&mut self, (key, is_plain): (u64, bool), below: u8, extra: Extra) {
        let end = u32::try_from(self.bytes.len()).expect("a node is made of a few megabytes");
        let mut entry = NodeTrack { key, end, extra: NO_EXTRA, below, is_plain };
        if extra != Extra::default() {
            entry.extra = self.extras.len() as u32;
            self.extras.push(extra);
        }
        self.tracks.push(entry);
    }

    fn extra(&self, entry: &NodeTrack) -> Extra {
        self.extras.get(entry.extra as usize).copied().unwrap_or_default()
    }

    /// How wide its buckets are.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// No cell is in a bucket before this one.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The first track, if there is one.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.tracks.first().map(|entry| entry.key)
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let extras = self.extras.len() * size_of::<Extra>();
        let only = self.only.as_ref().map_or(0, |only| size_of_val(&**only));
        size_of::<Self>() + self.tracks.len() * size_of::<NodeTrack>() + extras + self.bytes.len() + only
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

    /// Whether cells of some track are in nodes below.
    #[must_use]
    pub fn has_below(&self) -> bool {
        self.tracks.iter().any(|entry| entry.below != 0)
    }

    /// The same in parts that have tracks of one kind each, and no more bytes than this unless a single track has.
    #[must_use]
    pub fn parts(&self, bytes_max: usize) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut from = 0;
        while from < self.tracks.len() {
            let rest = &self.tracks[from..];
            let begin = from.checked_sub(1).map_or(0, |before| self.tracks[before].end);
            let fits = |entry: &NodeTrack| (entry.end - begin) as usize <= bytes_max;
            let is_alike = |entry: &NodeTrack| kind(entry.key) == kind(rest[0].key);
            let count = rest.iter().take_while(|entry| is_alike(entry) && fits(entry)).count().max(1);
            let mut part = Self::new(self.level, self.base);
            part.extend_by(self, from..from + count);
            parts.push(part);
            from += count;
        }
        parts
    }

    /// Adds tracks of another one, all of which are behind those that are here; both are of one level and count from one base.
    pub fn extend(&mut self, other: &Self) {
        self.extend_by(other, 0..other.tracks.len());
    }

    fn extend_by(&mut self, other: &Self, places: Range<usize>) {
        debug_assert_eq!((self.level, self.base), (other.level, other.base));
        for part in places.map(|place| other.at(place)) {
            debug_assert!(self.tracks.last().is_none_or(|last| last.key < part.key));
            self.bytes.extend_from_slice(part.written);
            self.enter((part.key, part.head.2), part.below, Extra { last: part.last, begins: part.begins });
        }
    }

    /// As bytes of a file: see `packed`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        packed::pack(self)
    }

    /// From bytes that [`TimelineNode::encode`] made; `None`: they are something else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        packed::unpack(bytes)
    }

    fn at(&self, place: usize) -> TrackPart<'_> {
        let entry = &self.tracks[place];
        let (NodeTrack { key, end, below, is_plain, .. }, Extra { last, begins }) = (*entry, self.extra(entry));
        let begin = place.checked_sub(1).map_or(0, |before| self.tracks[before].end);
        let written = self.bytes.get(begin as usize..end as usize).unwrap_or_default();
        TrackPart { key, last, begins, below, written, head: (self.level, self.base, is_plain) }
    }
}

/// A node that others are made of: with those below it that have cells of its tracks.
#[derive(Clone, Copy, Debug)]
pub struct ChildNode<'a> {
    /// The node.
    pub node: &'a TimelineNode,
    /// Those below it, in their order; empty if it has all cells itself.
    pub below: &'a [&'a TimelineNode],
}

impl<'a> ChildNode<'a> {
    /// A node that has all of its cells.
    #[must_use]
    pub fn alone(node: &'a TimelineNode) -> Self {
        Self { node, below: &[] }
    }
}

/// The common part of the keys of tracks of a kind.
#[must_use]
pub fn kind(key: u64) -> u64 {
    key >> 48
}

/// A track of several nodes that follow each other.
#[derive(Default)]
struct JoinedTrack {
    cells: Vec<TrackCell>,
    last: Option<(u64, i64)>,
    begins: u64,
    /// Which children have it, and whether they all have its cells themselves.
    children: u8,
    are_own: bool,
    is_plain: bool,
}

impl JoinedTrack {
    fn clear(&mut self) {
        self.cells.clear();
        (self.last, self.begins, self.children, self.are_own, self.is_plain) = (None, 0, 0, true, true);
    }

    fn add(&mut self, (number, child): (usize, &ChildNode<'_>), part: &TrackPart<'_>, level: Level) {
        (self.last, self.begins) = (part.last, self.begins + part.begins);
        self.children |= 1 << number;
        self.is_plain &= part.head.2;
        self.are_own &= part.below == 0;
        self.cells.extend(part.cells(level));
        for below in part.numbers_below().filter_map(|number| child.below.get(number)) {
            self.cells.extend(below.track(part.key).into_iter().flat_map(|part| part.cells(level)));
        }
    }
}

/// Children whose places fit into the bits of a byte.
const CHILDREN_MAX: usize = 8;

impl TimelineNode {
    /// The changes in the spans of up to eight nodes, which follow each other, of tracks from one
    /// key to before another, in buckets of a level that is no finer than theirs; none of them is
    /// before `base`.
    #[must_use]
    pub fn together(children: &[ChildNode<'_>], (level, base): (Level, u64), most: Most, keys: Range<u64>) -> Self {
        debug_assert!(children.len() <= CHILDREN_MAX, "{} children", children.len());
        let mut node = Self::new(level, base);
        let mut places = [0; CHILDREN_MAX];
        for (child, place) in children.iter().zip(&mut places) {
            *place = child.node.tracks.partition_point(|entry| entry.key < keys.start);
        }
        let mut gathered = JoinedTrack::default();
        loop {
            let heads = children.iter().zip(&places).filter_map(|(child, place)| child.node.tracks.get(*place));
            let next = heads.map(|entry| entry.key).min().filter(|key| *key < keys.end);
            let Some(key) = next else { return node };
            gathered.clear();
            for (number, (child, place)) in children.iter().zip(&mut places).enumerate() {
                if child.node.tracks.get(*place).is_some_and(|entry| entry.key == key) {
                    gathered.add((number, child), &child.node.at(*place), level);
                    *place += 1;
                }
            }
            node.adopt(key, &mut gathered, most);
        }
    }

    /// Adds a track of children: its cells, or where they are.
    fn adopt(&mut self, key: u64, gathered: &mut JoinedTrack, most: Most) {
        let all = gathered.cells.len();
        add_up(&mut gathered.cells);
        thin(&mut gathered.cells, most(key), |value| is_rest(key, value));
        // No further down than one step, so that few nodes are looked at.
        if gathered.are_own && gathered.cells.len() * 2 > all && all > 0 {
            let JoinedTrack { last, begins, children, is_plain, .. } = *gathered;
            self.enter((key, is_plain), children, Extra { last, begins });
        } else {
            self.push(key, gathered.last, &gathered.cells);
        }
    }
}

impl<'a> TrackPart<'a> {
    /// Its cells in buckets of a level that is no finer than the node's, in the order of buckets;
    /// those of one bucket may be several of a value. Bytes that the writer never made end them.
    pub fn cells(&self, level: Level) -> impl Iterator<Item = TrackCell> + use<'a> {
        let from = self.head.0;
        EncodedCells::new(self.written, self.head).map(move |cell| cell.widened(from, level.max(from)))
    }

    /// Which nodes below have the cells: their places among those below.
    pub fn numbers_below(&self) -> impl Iterator<Item = usize> + use<> {
        let below = self.below;
        (0..CHILDREN_MAX).filter(move |number| below >> number & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Cells in the order of buckets and values, with times that are whole units.
    fn cells(random: &mut Random, level: Level) -> Vec<TrackCell> {
        let cell = |_| {
            let time = (random.below(1 << 20) as i64 - (1 << 19)) << unit(level);
            let begins = [0, 1, 2, 3, 70, u32::MAX][random.below(6)];
            let net = [0, 1, -1, 2, -2, i32::MAX, i32::MIN + 1][random.below(7)];
            TrackCell {
                bucket: random.below(1 << 30) as u64,
                value: random.below(9) as u64 * 0x1234_5678_9abc,
                begins,
                net,
                time,
            }
        };
        let mut cells: Vec<TrackCell> = (0..50).map(cell).collect();
        cells.sort_unstable();
        cells.dedup_by_key(|cell| (cell.bucket, cell.value));
        cells
    }

    #[test]
    fn a_node_says_what_was_written() {
        for seed in 0..100 {
            let random = &mut Random(seed);
            let level = random.below(30) as Level;
            let mut written = TimelineNode::new(level, 0);
            let tracks: Vec<(u64, Vec<TrackCell>)> = (0..5).map(|key| (key * 7, cells(random, level))).collect();
            tracks.iter().for_each(|(key, cells)| written.push(*key, Some((cells[0].value, 5)), cells));
            let bytes = written.encode();
            let node = TimelineNode::decode(&bytes).unwrap();
            assert_eq!(node, written);
            assert!((0..bytes.len()).all(|cut| TimelineNode::decode(&bytes[..cut]).is_none()), "{seed}");
            for (key, cells) in &tracks {
                let part = node.track(*key).unwrap();
                assert_eq!(part.cells(level).collect::<Vec<_>>(), *cells, "{seed}");
                assert_eq!(part.last, Some((cells[0].value, 5)));
            }
            assert!(node.track(1).is_none());
        }
    }

    /// The cells of a node's track, wherever they are.
    fn said(child: &ChildNode<'_>, key: u64, level: Level) -> Vec<TrackCell> {
        let Some(part) = child.node.track(key) else { return Vec::new() };
        let mut cells: Vec<TrackCell> = part.cells(level).collect();
        for number in part.numbers_below() {
            cells.extend(said(&ChildNode::alone(child.below[number]), key, level));
        }
        add_up(&mut cells);
        cells
    }

    /// Sixteen spans with a track that changes often (1), and some that seldom do (10..20), or of which something happens (20..30):
    /// nodes of four of them, and one of those four, say what a node of all says at once.
    #[test]
    fn nodes_side_by_side_are_one() {
        let most = |_| 99;
        let mut were_below = [0; 3];
        for seed in 0..100 {
            let random = &mut Random(seed);
            let builder = || NodeBuilder::new(0, 3);
            let (mut spans, mut whole) = (vec![builder(); 16], builder());
            let mut open = [false; 40];
            for at in (0..16 * 512).step_by(8) {
                let key = [1, 10 + random.below(10), 20 + random.below(10)][random.below(6).saturating_sub(3)];
                let value = random.below(3) as u64;
                for node in [&mut spans[at / 512], &mut whole] {
                    let (at, bucket) = (at as i64, node.bucket(at as i64));
                    match (key, open[key]) {
                        (20.., _) => node.count(key as u64, bucket, value, 1),
                        (_, true) => node.end(key as u64, at, 1),
                        (_, false) => node.begin(key as u64, at, 1),
                    }
                }
                open[key] = !open[key];
            }
            let spans: Vec<TimelineNode> = spans.into_iter().map(NodeBuilder::build).collect();
            let below: Vec<Vec<&TimelineNode>> = spans.chunks(4).map(|four| four.iter().collect()).collect();
            let above = |four: &Vec<&TimelineNode>| {
                let children: Vec<ChildNode<'_>> = four.iter().map(|node| ChildNode::alone(node)).collect();
                TimelineNode::decode(&TimelineNode::together(&children, (5, 0), most, 0..u64::MAX).encode()).unwrap()
            };
            let parents: Vec<TimelineNode> = below.iter().map(above).collect();
            let children: Vec<ChildNode<'_>> =
                parents.iter().zip(&below).map(|(node, below)| ChildNode { node, below }).collect();
            let top = TimelineNode::together(&children, (7, 0), most, 0..u64::MAX);
            let whole = whole.build();
            let parents: Vec<&TimelineNode> = parents.iter().collect();
            let top = ChildNode { node: &top, below: &parents };
            for part in whole.tracks() {
                assert_eq!(
                    said(&top, part.key, 7),
                    said(&ChildNode::alone(&whole), part.key, 7),
                    "{seed}: {}",
                    part.key
                );
                assert_eq!(top.node.track(part.key).unwrap().begins, part.begins);
            }
            for (number, node) in [&whole, parents[0], top.node].into_iter().enumerate() {
                were_below[number] += node.tracks().filter(|part| part.below != 0).count();
            }
        }
        let [whole, parents, top] = were_below;
        assert!(whole == 0 && parents > 500 && top < parents, "{were_below:?}");
    }

    /// Bytes that the writer never made end cells, and break nothing.
    #[test]
    fn broken_bytes_end_cells() {
        for seed in 0..300 {
            let random = &mut Random(seed);
            let mut node = TimelineNode::new(3, 0);
            node.push(1, None, &cells(random, 3));
            let at = random.below(node.bytes.len());
            node.bytes[at] = random.below(256) as u8;
            node.bytes.truncate(node.bytes.len() - random.below(5));
            assert!(node.track(1).is_none_or(|part| part.cells(20).count() <= 51));
        }
    }
}
