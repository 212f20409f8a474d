//! Values that last until others follow: numbers of counters, states of components.
//!
//! ```text
//! changes of a chunk     to 7      add 2     to nothing
//! known before: 3   3 ───┤ 7 ──────┤ 9 ──────┤ (nothing)
//! ```
//!
//! Events say the value from now on, or by how much it changes. The code that seals chunks in order
//! knows the value before a chunk; for code that reads a chunk alone, nodes know the values behind
//! them.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::node::NodeBuilder;
use super::numbers;

/// Something is something else from now on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackChange {
    /// When.
    pub(super) time: i64,
    /// The track.
    pub(super) key: u64,
    /// Its new value.
    pub(super) to: NewValue,
}

/// The new value of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NewValue {
    /// This value of its track.
    Value(u64),
    /// Nothing.
    Nothing,
    /// A number that is so much more; of nothing, this.
    More(i64),
}

impl NewValue {
    /// The new value, for things that had this one before.
    fn value(self, was: Option<u64>) -> Option<u64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Nothing => None,
            Self::More(more) => Some(numbers::value(was.map_or(0.0, numbers::number) + more as f64)),
        }
    }
}

/// All values behind a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lasting(HashMap<u64, u64>);

/// The results of a chunk: changes in the order of time, and the values of their tracks before it.
#[derive(Debug, Default)]
pub struct ChangesSequel {
    pub(super) changes: Vec<TrackChange>,
    pub(super) before: HashMap<u64, Option<u64>>,
}

impl Lasting {
    /// Puts changes, in the order of time, behind all that were before them.
    pub(super) fn follow(&mut self, changes: Vec<TrackChange>) -> ChangesSequel {
        let mut before = HashMap::new();
        for TrackChange { key, to, .. } in &changes {
            let was = self.0.get(key).copied();
            match to.value(was) {
                Some(value) => self.0.insert(*key, value),
                None => self.0.remove(key),
            };
            before.entry(*key).or_insert(was);
        }
        ChangesSequel { changes, before }
    }

    /// Values that exist, from those that are known of chunks before.
    pub(super) fn before(known: &HashMap<u64, Option<(u64, i64)>>) -> Self {
        let lasting = known.iter().filter(|(key, _)| super::is_lasting(**key));
        Self(lasting.filter_map(|(key, now)| Some((*key, now.as_ref()?.0))).collect())
    }

    /// So many more are counted; how many were before.
    pub(super) fn tally(&mut self, key: u64, net: i64) -> i64 {
        let now = self.0.entry(key).or_insert_with(|| numbers::value(0.0));
        let before = numbers::number(*now) as i64;
        *now = numbers::value((before + net) as f64);
        before
    }
}

impl ChangesSequel {
    /// Puts everything into a node.
    pub(super) fn draw(self, node: &mut NodeBuilder) {
        let Self { mut changes, before } = self;
        // Those of a track stay in the order of time.
        changes.sort_by_key(|change| change.key);
        for of_track in changes.chunk_by(|a, b| a.key == b.key) {
            let key = of_track[0].key;
            let mut now = before.get(&key).copied().flatten();
            for TrackChange { time, to, .. } in of_track {
                let was = now;
                now = to.value(was);
                if let Some(was) = was {
                    node.end(key, *time, was);
                }
                if let Some(value) = now {
                    node.begin(key, *time, value);
                }
            }
            node.known(key, now.zip(of_track.last().map(|last| last.time)));
        }
    }
}

#[cfg(test)]
mod tests;
