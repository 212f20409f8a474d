//! Nodes of all heights: where they are in the file, and those that were looked at last.
//!
//! ```text
//! height 2   [                  0                   ]
//! height 1   [        0         ][        1         ]   [2 ...        four make one
//! height 0   [ 0 ][ 1 ][ 2 ][ 3 ][ 4 ][ 5 ][ 6 ][ 7 ]   [ 8 ][ 9 ]    one for each chunk
//! ```
//!
//! A node above is made as soon as those below it are there; the last one of each height of what there is.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use kymo_analysis::timeline::cells::{Cell, Level};
use kymo_analysis::timeline::node::{Child, Node};
use kymo_analysis::timeline::values_max;
use kymo_analysis::{SpoolError, SpoolErrorKind};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::cache::hash;
use crate::indexed::IndexedFile;
use crate::spool::unwritten;

/// Nodes that make one above.
pub(super) const FAN: usize = 4;
/// Memory for nodes that were looked at last, if nobody says how much.
const CACHE_BYTES: usize = 48 << 20;

/// Which node: its height, and its place among those of that height.
pub(super) type At = (usize, usize);

/// Where a node's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) at: u64,
    pub(super) size_bytes: u64,
    pub(super) hash: u64,
    /// The level of its buckets.
    pub(super) level: u8,
}

/// All nodes.
pub(super) struct Pyramid {
    /// By height.
    places: Mutex<Vec<Vec<Option<Place>>>>,
    pub(super) file: Arc<IndexedFile>,
    /// The file's name, until it is kept.
    named: Arc<Mutex<Option<NamedTempFile>>>,
    cache: Mutex<Cache>,
    /// So many of the first chunks will never change; nodes of others are here, and not in the file.
    settled: usize,
    unsettled: Mutex<HashMap<At, Arc<Node>>>,
}

/// Nodes that were looked at last; those of height `None` are exact.
#[derive(Default)]
struct Cache {
    nodes: HashMap<Key, Arc<Node>>,
    /// The last one was looked at last.
    order: VecDeque<Key>,
    bytes: usize,
    /// Less than [`CACHE_BYTES`], or more.
    bytes_max: Option<usize>,
}

/// A node of the pyramid, or the exact one of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Node(At),
    Exact(usize),
    /// The one of a chunk that was looked at before it was its turn.
    Early(usize),
}

impl Cache {
    fn get(&mut self, key: Key) -> Option<Arc<Node>> {
        let node = Arc::clone(self.nodes.get(&key)?);
        if self.order.back() != Some(&key) {
            self.order.retain(|other| *other != key);
            self.order.push_back(key);
        }
        Some(node)
    }

    /// The same with some nodes only.
    fn kept(&self, stays: impl Fn(Key) -> bool) -> Self {
        let order: VecDeque<Key> = self.order.iter().copied().filter(|key| stays(*key)).collect();
        let nodes: HashMap<Key, Arc<Node>> =
            order.iter().filter_map(|key| Some((*key, Arc::clone(self.nodes.get(key)?)))).collect();
        let bytes = nodes.values().map(|node| node.size_bytes()).sum();
        Self { nodes, order, bytes, bytes_max: self.bytes_max }
    }

    fn put(&mut self, key: Key, node: &Arc<Node>) {
        self.bytes += node.size_bytes();
        if let Some(before) = self.nodes.insert(key, Arc::clone(node)) {
            self.bytes -= before.size_bytes();
        } else {
            self.order.push_back(key);
        }
        while self.bytes > self.bytes_max.unwrap_or(CACHE_BYTES) && self.order.len() > 1 {
            let oldest = self.order.pop_front().expect("there are two");
            self.bytes -= self.nodes.remove(&oldest).map_or(0, |node| node.size_bytes());
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
        let before = self.places();
        let place = |at: At| before.get(at.0)?.get(at.1).copied().flatten().filter(|_| stays(at));
        let counts = heights(chunks).into_iter().enumerate();
        let places = counts.map(|(height, count)| (0..count).map(|number| place((height, number))).collect()).collect();
        // Where nothing has come, all nodes stay, those that may change, too.
        let is_same = kept == chunks;
        let unsettled = if is_same { lock(&self.unsettled).clone() } else { HashMap::new() };
        let cache = lock(&self.cache).kept(|key| match key {
            Key::Node(at) => is_same || stays(at),
            Key::Exact(chunk) => chunk < kept,
            Key::Early(_) => false,
        });
        Self {
            places: Mutex::new(places),
            file: Arc::clone(&self.file),
            named: Arc::clone(&self.named),
            cache: Mutex::new(cache),
            settled,
            unsettled: Mutex::new(unsettled),
        }
    }

    /// With the nodes that a file has.
    pub(super) fn of(file: IndexedFile, named: Option<NamedTempFile>, places: Vec<Vec<Option<Place>>>) -> Self {
        Self {
            places: Mutex::new(places),
            file: Arc::new(file),
            named: Arc::new(Mutex::new(named)),
            cache: Mutex::default(),
            settled: usize::MAX,
            unsettled: Mutex::default(),
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

    /// Nodes by height and place.
    pub(super) fn places(&self) -> Vec<Vec<Option<Place>>> {
        lock(&self.places).clone()
    }

    /// Where a node is, if it is in the file.
    fn place(&self, (height, place): At) -> Option<Place> {
        lock(&self.places).get(height)?.get(place).copied().flatten()
    }

    /// The level of a node's buckets, if it is there already.
    pub(super) fn level(&self, at: At) -> Option<Level> {
        let unsettled = || lock(&self.unsettled).get(&at).map(|node| node.level());
        self.place(at).map(|place| place.level).or_else(unsettled)
    }

    /// How many heights there are.
    pub(super) fn heights(&self) -> usize {
        lock(&self.places).len()
    }

    /// A node that is there.
    pub(super) fn node(&self, at: At) -> Result<Option<Arc<Node>>, SpoolError> {
        if let Some(node) = lock(&self.cache).get(Key::Node(at)) {
            return Ok(Some(node));
        }
        let Some(place) = self.place(at) else { return Ok(lock(&self.unsettled).get(&at).cloned()) };
        let node = Arc::new(self.read(place)?);
        lock(&self.cache).put(Key::Node(at), &node);
        Ok(Some(node))
    }

    /// A node that is in no file, if it was looked at lately.
    pub(super) fn looked_at(&self, key: Key) -> Option<Arc<Node>> {
        lock(&self.cache).get(key)
    }

    /// Keeps a node for a while.
    pub(super) fn remember(&self, key: Key, node: &Arc<Node>) {
        lock(&self.cache).put(key, node);
    }

    fn read(&self, place: Place) -> Result<Node, SpoolError> {
        let Place { at, size_bytes, .. } = place;
        let mut bytes = Vec::new();
        self.file.read((at, size_bytes), &mut bytes)?;
        let node = (hash(&bytes) == place.hash).then(|| Node::decode(&bytes)).flatten();
        node.ok_or(SpoolError { at, kind: SpoolErrorKind::Changed { size_bytes: bytes.len() } })
    }

    /// Puts a node where it belongs, and those above it that can be made then. `widest`: the level of the node above.
    pub(super) fn put(&self, at: At, node: &Arc<Node>, level_above: &dyn Fn(At) -> u8) -> Result<(), SpoolError> {
        let (mut at, mut node) = (at, Arc::clone(node));
        loop {
            let above = (at.0 + 1, at.1 / FAN);
            let Some(below) = self.settle(at, &node)? else { return Ok(()) };
            node = Arc::new(self.together(at.0, below, level_above(above))?);
            at = above;
        }
    }

    /// Puts a node where it belongs; of which nodes the one above it can be made now, if any.
    fn settle(&self, at: At, node: &Arc<Node>) -> Result<Option<Range<usize>>, SpoolError> {
        let place =
            if reach(at) <= self.settled || self.settled == usize::MAX { Some(self.write(node)?) } else { None };
        if place.is_some() {
            lock(&self.cache).put(Key::Node(at), node);
        }
        // Of threads that come to neighbours, the last one sees all of them.
        let mut places = lock(&self.places);
        let mut unsettled = lock(&self.unsettled);
        match place {
            Some(place) => places[at.0][at.1] = Some(place),
            None => drop(unsettled.insert(at, Arc::clone(node))),
        }
        let below = at.1 / FAN * FAN..(at.1 / FAN * FAN + FAN).min(places[at.0].len());
        let is_there = |number: usize| places[at.0][number].is_some() || unsettled.contains_key(&(at.0, number));
        let is_made = at.0 + 1 < places.len() && below.clone().all(is_there);
        Ok(is_made.then_some(below))
    }

    /// The node above some of a height.
    fn together(&self, height: usize, places: Range<usize>, level: u8) -> Result<Node, SpoolError> {
        let mut families = Vec::new();
        for place in places {
            let node = self.present((height, place))?;
            let mut below = Vec::new();
            if node.has_below() {
                let count = self.count(height - 1);
                for place in place * FAN..((place + 1) * FAN).min(count) {
                    below.push(self.present((height - 1, place))?);
                }
            }
            families.push((node, below));
        }
        let mut below: Vec<Vec<&Node>> = Vec::new();
        for (_, nodes) in &families {
            below.push(nodes.iter().map(|node| &**node).collect());
        }
        let mut children = Vec::new();
        for ((node, _), below) in families.iter().zip(&below) {
            children.push(Child { node, below });
        }
        Ok(Node::together(&children, level, values_max))
    }

    /// A node that is known to be there.
    fn present(&self, at: At) -> Result<Arc<Node>, SpoolError> {
        Ok(self.node(at)?.expect("it is in its place"))
    }

    /// How many nodes a height has.
    fn count(&self, height: usize) -> usize {
        lock(&self.places).get(height).map_or(0, Vec::len)
    }

    /// Hands out the cells of a track of a node, in buckets of a level that is no finer than the node's, in the order of time: its
    /// own, or those of nodes below it.
    pub(super) fn cells(&self, at: At, key: u64, level: Level, each: &mut dyn FnMut(Cell)) -> Result<(), SpoolError> {
        let node = self.present(at)?;
        let Some(part) = node.track(key) else { return Ok(()) };
        part.cells(level).for_each(&mut *each);
        for number in part.numbers_below() {
            self.cells((at.0 - 1, at.1 * FAN + number), key, level, each)?;
        }
        Ok(())
    }

    fn write(&self, node: &Node) -> Result<Place, SpoolError> {
        let bytes = node.encode();
        let at = self.file.append(&bytes)?;
        Ok(Place { at, size_bytes: bytes.len() as u64, hash: hash(&bytes), level: node.level() })
    }
}
