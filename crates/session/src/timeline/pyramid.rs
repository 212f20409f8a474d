//! Nodes of all heights: where they are in the file, and the most recently used ones.
//!
//! ```text
//! height 2   [                  0                   ]
//! height 1   [        0         ][        1         ]   [2 ...        four make one
//! height 0   [ 0 ][ 1 ][ 2 ][ 3 ][ 4 ][ 5 ][ 6 ][ 7 ]   [ 8 ][ 9 ]    one for each chunk
//! ```
//!
//! A node above is made as soon as those below it are there; the last one of each height of what there is.
//!
//! Nodes are in pages, each with tracks of one kind and of some bytes: a question about a few
//! tracks reads no others, and making a node takes memory for a few pages, however many tracks
//! there are.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use kymo_analysis::timeline::cells::{Level, TrackCell};
use kymo_analysis::timeline::node::{ChildNode, TimelineNode, kind};
use kymo_analysis::timeline::values_max;
use kymo_analysis::{SpoolError, SpoolErrorKind};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::cache::hash;
use crate::cache::indexed::IndexedFile;
use crate::cache::spool::unwritten;

/// Nodes that make one above.
pub(super) const FAN: usize = 4;
/// Memory for nodes that were looked at last, if nobody says how much.
const CACHE_BYTES: usize = 48 << 20;
/// Bytes of a page in memory: such a one is read and unpacked in about a millisecond.
const PAGE_BYTES: usize = 128 << 10;

/// Which node: its height, and its place among those of that height.
pub(super) type At = (usize, usize);

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodePlace {
    /// The level of its buckets.
    pub(super) level: Level,
    /// The bucket from which they are counted.
    base: u64,
    /// In the order of their keys.
    pages: Vec<NodePage>,
}

/// Tracks of a node from a key on: where their bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NodePage {
    from: u64,
    at: u64,
    size_bytes: u64,
    hash: u64,
}

impl NodePlace {
    /// The page of a key; `None`: the node has no such track.
    fn page(&self, key: u64) -> Option<usize> {
        self.pages.partition_point(|page| page.from <= key).checked_sub(1)
    }

    /// Where the page of a key ends; `None`: it is the last one.
    fn end(&self, key: u64) -> Option<u64> {
        Some(self.pages.get(self.pages.partition_point(|page| page.from <= key))?.from)
    }
}

/// A node that is there.
#[derive(Clone)]
enum StoredNode {
    /// In pages of the file.
    File(Arc<NodePlace>),
    /// Here, as a whole: it is above chunks that may change.
    Memory(Arc<TimelineNode>),
}

impl StoredNode {
    fn head(&self) -> (Level, u64) {
        match self {
            Self::File(place) => (place.level, place.base),
            Self::Memory(node) => (node.level(), node.base()),
        }
    }

    /// Where the page of a key ends; `None`: it is the last one.
    fn end(&self, key: u64) -> Option<u64> {
        match self {
            Self::File(place) => place.end(key),
            Self::Memory(_) => None,
        }
    }
}

/// All nodes that are there, by height.
type Places = Vec<Vec<Option<StoredNode>>>;

/// All nodes.
pub(super) struct Pyramid {
    places: Mutex<Places>,
    pub(super) file: Arc<IndexedFile>,
    /// The file's name, until it is kept.
    named: Arc<Mutex<Option<NamedTempFile>>>,
    cache: Mutex<Cache>,
    /// So many of the first chunks will never change; nodes of others are not in the file.
    settled: usize,
}

/// Pages and other nodes that were looked at last.
#[derive(Default)]
struct Cache {
    /// With when they were looked at, by a clock that goes on with each look.
    nodes: HashMap<PageKey, (Arc<TimelineNode>, u64)>,
    now: u64,
    bytes: usize,
    /// Less than [`CACHE_BYTES`], or more.
    bytes_max: Option<usize>,
}

/// A page of the pyramid, or a node of a chunk that is in no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PageKey {
    Page(At, usize),
    /// The exact one.
    Exact(usize),
    /// The one of a chunk that was looked at before it was its turn.
    Early(usize),
}

impl Cache {
    fn get(&mut self, key: PageKey) -> Option<Arc<TimelineNode>> {
        let (node, looked) = self.nodes.get_mut(&key)?;
        self.now += 1;
        *looked = self.now;
        Some(Arc::clone(node))
    }

    /// The same with some nodes only.
    fn kept(&self, stays: impl Fn(PageKey) -> bool) -> Self {
        let nodes = self.nodes.iter().filter(|(key, _)| stays(**key));
        let nodes: HashMap<PageKey, (Arc<TimelineNode>, u64)> = nodes.map(|(key, held)| (*key, held.clone())).collect();
        let bytes = nodes.values().map(|(node, _)| node.size_bytes()).sum();
        Self { nodes, bytes, now: self.now, bytes_max: self.bytes_max }
    }

    fn put(&mut self, key: PageKey, node: &Arc<TimelineNode>) {
        self.now += 1;
        self.bytes += node.size_bytes();
        if let Some((before, _)) = self.nodes.insert(key, (Arc::clone(node), self.now)) {
            self.bytes -= before.size_bytes();
        }
        let most = self.bytes_max.unwrap_or(CACHE_BYTES);
        if self.bytes > most {
            // Down to seven eighths, so that the search through all nodes is not made for each new
            // one.
            self.shrink(most - most / 8);
        }
    }

    /// Lets go of those that were looked at longest ago, but of the last one: of many at a time, as all have to be looked through.
    fn shrink(&mut self, most: usize) {
        let mut all: Vec<(u64, PageKey)> = self.nodes.iter().map(|(key, (_, looked))| (*looked, *key)).collect();
        all.sort_unstable_by_key(|(looked, _)| *looked);
        all.pop();
        for (_, key) in all {
            if self.bytes <= most {
                return;
            }
            self.bytes -= self.nodes.remove(&key).map_or(0, |(node, _)| node.size_bytes());
        }
    }
}

/// Behind the last chunk that a node may ever be above.
fn reach((height, place): At) -> usize {
    FAN.saturating_pow(height as u32).saturating_mul(place + 1)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here panics half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many nodes there are of each height above so many chunks.
pub(super) fn heights(chunks: usize) -> Vec<usize> {
    let mut heights = vec![chunks];
    while heights.last().is_some_and(|&count| count > 1) {
        heights.push(heights[heights.len() - 1].div_ceil(FAN));
    }
    heights
}

impl Pyramid {
    /// Without any nodes, in a file in the cache's folder if there is one, above chunks
    /// of which so many of the first ones will never change.
    pub(super) fn new(cache: Option<&Path>, chunks: usize, settled: usize) -> Result<Self, SpoolError> {
        let file = IndexedFile::new(cache);
        let (file, named) = file.map_err(|cause| unwritten(0, 0, std::env::temp_dir(), cause))?;
        let places = heights(chunks).into_iter().map(|count| vec![None; count]).collect();
        Ok(Self { settled, ..Self::of(file, named, places) })
    }

    /// The same above more chunks, of which so many of the first ones are as they were, and so many will never change.
    pub(super) fn grown(&self, chunks: usize, kept: usize, settled: usize) -> Self {
        let stays = |at: At| reach(at) <= kept;
        // Where nothing has come, all nodes stay, those that may change, too.
        let is_same = kept == chunks;
        let before = lock(&self.places);
        let place = |at: At| {
            before.get(at.0)?.get(at.1)?.clone().filter(|stored| match stored {
                StoredNode::File(_) => stays(at),
                StoredNode::Memory(_) => is_same,
            })
        };
        let counts = heights(chunks).into_iter().enumerate();
        let places = counts.map(|(height, count)| (0..count).map(|number| place((height, number))).collect()).collect();
        let cache = lock(&self.cache).kept(|key| match key {
            PageKey::Page(at, _) => is_same || stays(at),
            PageKey::Exact(chunk) => chunk < kept,
            PageKey::Early(_) => false,
        });
        Self {
            places: Mutex::new(places),
            file: Arc::clone(&self.file),
            named: Arc::clone(&self.named),
            cache: Mutex::new(cache),
            settled,
        }
    }

    /// With the nodes that a file has.
    pub(super) fn of(file: IndexedFile, named: Option<NamedTempFile>, places: Vec<Vec<Option<NodePlace>>>) -> Self {
        let stored = |place: Option<NodePlace>| place.map(|place| StoredNode::File(Arc::new(place)));
        let places = places.into_iter().map(|of_height| of_height.into_iter().map(stored).collect());
        Self {
            places: Mutex::new(places.collect()),
            file: Arc::new(file),
            named: Arc::new(Mutex::new(named)),
            cache: Mutex::default(),
            settled: usize::MAX,
        }
    }

    /// So much memory is for nodes that were looked at last.
    pub(super) fn hold(&self, bytes_max: usize) {
        lock(&self.cache).bytes_max = Some(bytes_max);
    }

    /// The file that may get a name, once.
    pub(super) fn take_named(&self) -> Option<NamedTempFile> {
        lock(&self.named).take()
    }

    /// Nodes of the file by height and place.
    pub(super) fn places(&self) -> Vec<Vec<Option<NodePlace>>> {
        let in_file = |stored: &Option<StoredNode>| match stored {
            Some(StoredNode::File(place)) => Some(NodePlace::clone(place)),
            _ => None,
        };
        lock(&self.places).iter().map(|of_height| of_height.iter().map(in_file).collect()).collect()
    }

    /// A node, if it is there already.
    fn stored(&self, (height, place): At) -> Option<StoredNode> {
        lock(&self.places).get(height)?.get(place).cloned().flatten()
    }

    /// The level of a node's buckets, if it is there already.
    pub(super) fn level(&self, at: At) -> Option<Level> {
        Some(self.stored(at)?.head().0)
    }

    /// How many heights there are.
    pub(super) fn heights(&self) -> usize {
        lock(&self.places).len()
    }

    /// What a node says of a track and some others; `None`: it is not there yet.
    pub(super) fn node(&self, at: At, key: u64) -> Result<Option<Arc<TimelineNode>>, SpoolError> {
        self.stored(at).map(|stored| self.page(at, &stored, key)).transpose()
    }

    /// The page of a key.
    fn page(&self, at: At, stored: &StoredNode, key: u64) -> Result<Arc<TimelineNode>, SpoolError> {
        let place = match stored {
            StoredNode::File(place) => place,
            StoredNode::Memory(node) => return Ok(Arc::clone(node)),
        };
        // No page begins before the key: the node has nothing of the track.
        let Some(number) = place.page(key) else { return Ok(Arc::new(TimelineNode::new(place.level, place.base))) };
        if let Some(node) = lock(&self.cache).get(PageKey::Page(at, number)) {
            return Ok(node);
        }
        // Without the lock: two threads may read the same page, but none waits for another's file.
        let node = Arc::new(self.read(place.pages[number])?);
        lock(&self.cache).put(PageKey::Page(at, number), &node);
        Ok(node)
    }

    /// A node that is in no file, if it was looked at lately.
    pub(super) fn looked_at(&self, key: PageKey) -> Option<Arc<TimelineNode>> {
        lock(&self.cache).get(key)
    }

    /// Keeps a node for a while.
    pub(super) fn remember(&self, key: PageKey, node: &Arc<TimelineNode>) {
        lock(&self.cache).put(key, node);
    }

    fn read(&self, page: NodePage) -> Result<TimelineNode, SpoolError> {
        let NodePage { at, size_bytes, .. } = page;
        let mut bytes = Vec::new();
        self.file.read((at, size_bytes), &mut bytes)?;
        // Other processes can write to the cache's folder, so bytes are not trusted.
        let node = (hash(&bytes) == page.hash).then(|| TimelineNode::decode(&bytes)).flatten();
        node.ok_or(SpoolError { at, kind: SpoolErrorKind::Changed { size_bytes: bytes.len() } })
    }

    /// Puts a node where it belongs, and those above it that can be made then. `level_above`: the level of the node above.
    pub(super) fn put(&self, at: At, node: &TimelineNode, level_above: &dyn Fn(At) -> Level) -> Result<(), SpoolError> {
        let mut writing = NodeWriter::new(self, at, (node.level(), node.base()));
        writing.add(node)?;
        let (mut at, mut stored) = (at, writing.finish()?);
        loop {
            let above = (at.0 + 1, at.1 / FAN);
            let Some(below) = self.settle(at, stored) else { return Ok(()) };
            stored = self.together(above, below, level_above(above))?;
            at = above;
        }
    }

    /// Puts a node where it belongs; of which nodes the one above it can be made now, if any.
    fn settle(&self, at: At, stored: StoredNode) -> Option<Range<usize>> {
        // Of threads that come to neighbors, the last one sees all of them.
        let mut places = lock(&self.places);
        places[at.0][at.1] = Some(stored);
        let below = at.1 / FAN * FAN..(at.1 / FAN * FAN + FAN).min(places[at.0].len());
        let is_made = at.0 + 1 < places.len() && places[at.0][below.clone()].iter().all(Option::is_some);
        is_made.then_some(below)
    }

    /// Makes the node above some, a few pages at a time.
    fn together(&self, above: At, places: Range<usize>, level: Level) -> Result<StoredNode, SpoolError> {
        let height = above.0 - 1;
        let families: Vec<Family> = places.map(|place| Family::new(self, (height, place))).collect();
        let base = families.iter().map(|family| family.node.head()).map(|(finer, base)| base >> (level - finer)).min();
        let mut writing = NodeWriter::new(self, above, (level, base.unwrap_or(0)));
        let mut from = 0;
        loop {
            let end = families.iter().filter_map(|family| family.end(from)).min();
            let nodes = families.iter().map(|family| family.nodes(self, from)).collect::<Result<Vec<_>, _>>()?;
            let mut below: Vec<Vec<&TimelineNode>> = Vec::new();
            for (_, nodes) in &nodes {
                below.push(nodes.iter().map(|node| &**node).collect());
            }
            let mut children = Vec::new();
            for ((node, _), below) in nodes.iter().zip(&below) {
                children.push(ChildNode { node, below });
            }
            let keys = from..end.unwrap_or(u64::MAX);
            writing.add(&TimelineNode::together(&children, writing.head, values_max, keys))?;
            match end {
                Some(end) => from = end,
                None => return writing.finish(),
            }
        }
    }

    /// How many nodes a height has.
    fn count(&self, height: usize) -> usize {
        lock(&self.places).get(height).map_or(0, Vec::len)
    }

    /// Hands out the cells of a track of a node, in buckets of a level that is no finer than the node's, in the order of time: its
    /// own, or those of nodes below it.
    pub(super) fn cells(
        &self,
        at: At,
        key: u64,
        level: Level,
        each: &mut dyn FnMut(TrackCell),
    ) -> Result<(), SpoolError> {
        let node = self.node(at, key)?.expect("it is in its place");
        let Some(part) = node.track(key) else { return Ok(()) };
        part.cells(level).for_each(&mut *each);
        for number in part.numbers_below() {
            self.cells((at.0 - 1, at.1 * FAN + number), key, level, each)?;
        }
        Ok(())
    }
}

/// A node that another one is made of, and those below it.
struct Family {
    at: At,
    node: StoredNode,
    below: Vec<(At, StoredNode)>,
}

impl Family {
    fn new(pyramid: &Pyramid, at: At) -> Self {
        let present = |at: At| pyramid.stored(at).expect("it is in its place");
        let count = at.0.checked_sub(1).map_or(0, |height| pyramid.count(height));
        let below = at.1 * FAN..((at.1 + 1) * FAN).min(count);
        let below = below.map(|place| (at.0 - 1, place)).map(|at| (at, present(at))).collect();
        Self { at, node: present(at), below }
    }

    /// Where the first page ends of those that have a key.
    fn end(&self, key: u64) -> Option<u64> {
        self.below.iter().map(|(_, node)| node).chain([&self.node]).filter_map(|node| node.end(key)).min()
    }

    /// The pages of a key: its own, and those below it if it says that they have cells.
    fn nodes(&self, pyramid: &Pyramid, key: u64) -> Result<(Arc<TimelineNode>, Vec<Arc<TimelineNode>>), SpoolError> {
        let node = pyramid.page(self.at, &self.node, key)?;
        let below = if node.has_below() { &self.below[..] } else { &[] };
        let below = below.iter().map(|(at, node)| pyramid.page(*at, node, key)).collect::<Result<_, _>>()?;
        Ok((node, below))
    }
}

/// A node while it is written.
struct NodeWriter<'a> {
    pyramid: &'a Pyramid,
    at: At,
    /// The level of its buckets, and from which one they are counted.
    head: (Level, u64),
    pages: Vec<NodePage>,
    /// The next page, as far as it is there; of what may change, all of it.
    held: TimelineNode,
    is_settled: bool,
}

impl<'a> NodeWriter<'a> {
    fn new(pyramid: &'a Pyramid, at: At, (level, base): (Level, u64)) -> Self {
        let is_settled = reach(at) <= pyramid.settled || pyramid.settled == usize::MAX;
        Self { pyramid, at, head: (level, base), pages: Vec::new(), held: TimelineNode::new(level, base), is_settled }
    }

    /// Adds tracks, which come in the order of their keys.
    fn add(&mut self, node: &TimelineNode) -> Result<(), SpoolError> {
        if !self.is_settled {
            self.held.extend(node);
            return Ok(());
        }
        for part in node.parts(PAGE_BYTES) {
            let is_alike = self.held.first().map(kind) == part.first().map(kind);
            if !is_alike || self.held.size_bytes() + part.size_bytes() > PAGE_BYTES {
                self.flush()?;
            }
            self.held.extend(&part);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SpoolError> {
        let Some(first) = self.held.first() else { return Ok(()) };
        // Pages of a kind begin with it, so that those of several nodes begin alike.
        let is_new = self.pages.last().is_none_or(|page| kind(page.from) != kind(first));
        let from = if is_new { kind(first) << 48 } else { first };
        let node = Arc::new(std::mem::replace(&mut self.held, TimelineNode::new(self.head.0, self.head.1)));
        let bytes = node.encode();
        let at = self.pyramid.file.append(&bytes)?;
        // The node above reads these pages soon.
        lock(&self.pyramid.cache).put(PageKey::Page(self.at, self.pages.len()), &node);
        self.pages.push(NodePage { from, at, size_bytes: bytes.len() as u64, hash: hash(&bytes) });
        Ok(())
    }

    fn finish(mut self) -> Result<StoredNode, SpoolError> {
        if !self.is_settled {
            return Ok(StoredNode::Memory(Arc::new(self.held)));
        }
        self.flush()?;
        Ok(StoredNode::File(Arc::new(NodePlace { level: self.head.0, base: self.head.1, pages: self.pages })))
    }
}
