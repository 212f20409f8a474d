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
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use kymo_analysis::timeline::node::Node;
use kymo_analysis::timeline::values_max;
use kymo_analysis::{SpoolError, SpoolErrorKind};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::cache::hash;
use crate::spool::{read_exact_at, unwritten, write_all_at};

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
    file: File,
    /// The file's name, until it is kept.
    named: Mutex<Option<NamedTempFile>>,
    folder: PathBuf,
    pub(super) end: AtomicU64,
    cache: Mutex<Cache>,
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

    fn put(&mut self, key: Key, node: &Arc<Node>) {
        if self.nodes.insert(key, Arc::clone(node)).is_some() {
            return;
        }
        self.order.push_back(key);
        self.bytes += node.size_bytes();
        while self.bytes > self.bytes_max.unwrap_or(CACHE_BYTES) && self.order.len() > 1 {
            let oldest = self.order.pop_front().expect("there are two");
            self.bytes -= self.nodes.remove(&oldest).map_or(0, |node| node.size_bytes());
        }
    }
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
    /// Without any nodes, in a file in the cache's folder if there is one.
    pub(super) fn new(cache: Option<&Path>, chunks: usize) -> Result<Self, SpoolError> {
        let named = cache.and_then(|folder| {
            fs::create_dir_all(folder).ok()?;
            NamedTempFile::new_in(folder).ok()
        });
        let file = match &named {
            Some(named) => named.as_file().try_clone(),
            None => tempfile::tempfile(),
        };
        let folder = cache.map_or_else(std::env::temp_dir, Path::to_owned);
        let file = file.map_err(|cause| unwritten(0, 0, folder.clone(), cause))?;
        let places = heights(chunks).into_iter().map(|count| vec![None; count]).collect();
        Ok(Self::of(file, named, folder, (places, 0)))
    }

    /// With the nodes that a file has up to an end.
    pub(super) fn of(
        file: File,
        named: Option<NamedTempFile>,
        folder: PathBuf,
        (places, end): (Vec<Vec<Option<Place>>>, u64),
    ) -> Self {
        let (places, named) = (Mutex::new(places), Mutex::new(named));
        Self { places, file, named, folder, end: AtomicU64::new(end), cache: Mutex::default() }
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

    /// Where a node is, if it is there already.
    pub(super) fn place(&self, (height, place): At) -> Option<Place> {
        lock(&self.places).get(height)?.get(place).copied().flatten()
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
        let Some(place) = self.place(at) else { return Ok(None) };
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
        let broken = |kind| SpoolError { at, kind };
        let size_bytes =
            usize::try_from(size_bytes).map_err(|_| broken(SpoolErrorKind::Changed { size_bytes: usize::MAX }))?;
        let mut bytes = vec![0; size_bytes];
        let read = read_exact_at(&self.file, &mut bytes, at);
        read.map_err(|cause| broken(SpoolErrorKind::Read { wanted_bytes: size_bytes, cause }))?;
        if hash(&bytes) != place.hash {
            return Err(broken(SpoolErrorKind::Changed { size_bytes }));
        }
        Node::decode(&bytes).ok_or(broken(SpoolErrorKind::Changed { size_bytes }))
    }

    /// Puts a node where it belongs, and those above it that can be made then. `widest`: the level of the node above.
    pub(super) fn put(&self, at: At, node: &Arc<Node>, level_above: &dyn Fn(At) -> u8) -> Result<(), SpoolError> {
        let (mut at, mut node) = (at, Arc::clone(node));
        loop {
            let place = self.write(&node)?;
            lock(&self.cache).put(Key::Node(at), &node);
            let mut places = lock(&self.places);
            places[at.0][at.1] = Some(place);
            let above = (at.0 + 1, at.1 / FAN);
            let below = above.1 * FAN..((above.1 + 1) * FAN).min(places[at.0].len());
            let is_made = above.0 < places.len() && places[at.0][below.clone()].iter().all(Option::is_some);
            drop(places);
            if !is_made {
                return Ok(());
            }
            let mut nodes = Vec::new();
            for place in below {
                nodes.extend(self.node((at.0, place))?);
            }
            let nodes: Vec<&Node> = nodes.iter().map(|node| &**node).collect();
            node = Arc::new(Node::together(&nodes, level_above(above), values_max));
            at = above;
        }
    }

    fn write(&self, node: &Node) -> Result<Place, SpoolError> {
        let bytes = node.encode();
        let at = self.append(&bytes)?;
        Ok(Place { at, size_bytes: bytes.len() as u64, hash: hash(&bytes), level: node.level() })
    }

    /// Writes behind everything; where that is.
    pub(super) fn append(&self, bytes: &[u8]) -> Result<u64, SpoolError> {
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let failed = |cause: io::Error| unwritten(at, bytes.len(), self.folder.clone(), cause);
        write_all_at(&self.file, bytes, at).map_err(failed)?;
        Ok(at)
    }
}
