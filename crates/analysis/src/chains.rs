//! Begins and ends, by key, in any part of a trace.
//!
//! ```text
//! part k      begin 7 ────────────────── open ┐                         one key
//! part k+1    ┌ end without begin     begin 7 ┴─ open
//!             └──> meets what is open in part k
//! ```
//!
//! For each key a part keeps the facts that it could not decide itself: ends that nothing before
//! them began, whether something was begun at all (which replaces the beginning that was open
//! before, unless beginnings are nested), and the open beginnings. Merging decides these in the
//! order of time. In the first part of a trace there is nothing to wait for: see
//! [`Chains::anchor`].

use std::collections::HashMap;
use std::hash::Hash;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The fate of a beginning or an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainFate<B, E> {
    /// They belong together.
    Pair(B, E),
    /// The same key began again, though beginnings are not nested.
    Replaced(B),
    /// Nothing was open.
    Alone(E),
    /// Too much is open: this one is as old as half of it, and was given up.
    GivenUp(B),
}

/// When something happened.
pub trait Timed {
    /// In nanoseconds.
    fn time(&self) -> i64;
}

/// Open and undecided pairs, by key. Keys come from traces: the hash function is drawn at random.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    bound = "K: Serialize + DeserializeOwned + Eq + Hash, B: Serialize + DeserializeOwned, E: Serialize + DeserializeOwned"
)]
pub struct Chains<K, B, E> {
    chains: HashMap<K, Chain<B, E>>,
    is_nested: bool,
    /// Nothing comes before.
    is_anchored: bool,
    /// How many are open.
    open: usize,
    open_max: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Chain<B, E> {
    /// Ends that nothing in this part began.
    ends: Vec<E>,
    /// The first thing that happened was a beginning, which is not nested.
    is_replacing: bool,
    /// The last one is on top.
    open: Vec<B>,
}

impl<B, E> Default for Chain<B, E> {
    fn default() -> Self {
        Self { ends: Vec::new(), is_replacing: false, open: Vec::new() }
    }
}

/// How much may be open in usual cases: some 40 MB.
pub const OPEN_MAX: usize = 1 << 18;

impl<K: Eq + Hash + Clone, B: Timed, E> Chains<K, B, E> {
    /// Nothing is open. `is_nested`: a key that begins again while it is open is open twice.
    #[must_use]
    pub fn new(is_nested: bool, open_max: usize) -> Self {
        Self { chains: HashMap::new(), is_nested, is_anchored: false, open: 0, open_max: open_max.max(1) }
    }

    /// A key begins.
    pub fn begin(&mut self, key: K, begin: B, mut tell: impl FnMut(&K, ChainFate<B, E>)) {
        self.clear_the_way(&key, &mut tell);
        let chain = self.chains.entry(key).or_default();
        chain.open.push(begin);
        self.open += 1;
        if self.open > self.open_max {
            self.give_up(tell);
        }
    }

    /// A new begin replaces the open one, unless pairs are nested.
    fn clear_the_way(&mut self, key: &K, tell: &mut impl FnMut(&K, ChainFate<B, E>)) {
        if self.is_nested {
            return;
        }
        match self.chains.get_mut(key) {
            Some(chain) => {
                for open in chain.open.drain(..) {
                    self.open = self.open.saturating_sub(1);
                    tell(key, ChainFate::Replaced(open));
                }
            }
            None if self.is_anchored => {}
            None => {
                self.chains.insert(key.clone(), Chain { is_replacing: true, ..Chain::default() });
            }
        }
    }

    /// A key ends.
    pub fn end(&mut self, key: &K, end: E, mut tell: impl FnMut(&K, ChainFate<B, E>)) {
        let Some(chain) = self.chains.get_mut(key) else {
            if self.is_anchored {
                tell(key, ChainFate::Alone(end));
            } else {
                self.chains.insert(key.clone(), Chain { ends: vec![end], ..Chain::default() });
            }
            return;
        };
        match chain.open.pop() {
            Some(begin) => {
                self.open = self.open.saturating_sub(1);
                let is_over = chain.open.is_empty() && chain.ends.is_empty() && !chain.is_replacing;
                if is_over {
                    self.chains.remove(key);
                }
                tell(key, ChainFate::Pair(begin, end));
            }
            None if self.is_nested && !self.is_anchored => chain.ends.push(end),
            None => tell(key, ChainFate::Alone(end)),
        }
    }

    /// Nothing comes before: an end without a beginning never had one.
    pub fn anchor(&mut self, mut tell: impl FnMut(&K, ChainFate<B, E>)) {
        self.is_anchored = true;
        self.chains.retain(|key, chain| {
            chain.is_replacing = false;
            chain.ends.drain(..).for_each(|end| tell(key, ChainFate::Alone(end)));
            !chain.open.is_empty()
        });
    }

    /// Adds the part after this.
    pub fn merge(&mut self, later: Self, mut tell: impl FnMut(&K, ChainFate<B, E>)) {
        for (key, chain) in later.chains {
            for end in chain.ends {
                self.end(&key, end, &mut tell);
            }
            if chain.is_replacing {
                self.clear_the_way(&key, &mut tell);
            }
            if !chain.open.is_empty() {
                self.open += chain.open.len();
                self.chains.entry(key).or_default().open.extend(chain.open);
            }
        }
        if self.open > self.open_max {
            self.give_up(tell);
        }
    }

    /// The open beginnings, in no particular order.
    pub fn open(&self) -> impl Iterator<Item = (&K, &B)> {
        self.chains.iter().flat_map(|(key, chain)| chain.open.iter().map(move |open| (key, open)))
    }

    /// Ends that nothing before them began, in no particular order.
    pub fn alone(&self) -> impl Iterator<Item = (&K, &E)> {
        self.chains.iter().flat_map(|(key, chain)| chain.ends.iter().map(move |end| (key, end)))
    }

    /// Forgets the older half of the open pairs.
    #[cold]
    fn give_up(&mut self, mut tell: impl FnMut(&K, ChainFate<B, E>)) {
        let mut times: Vec<i64> = self.open().map(|(_, open)| open.time()).collect();
        let middle = times.len() / 2;
        let (_, &mut border, _) = times.select_nth_unstable(middle);
        let mut open = 0;
        self.chains.retain(|key, chain| {
            // Those of one key are in the order of time.
            let old = chain.open.partition_point(|open| open.time() <= border);
            chain.open.drain(..old).for_each(|begin| tell(key, ChainFate::GivenUp(begin)));
            open += chain.open.len();
            !chain.open.is_empty() || !chain.ends.is_empty() || chain.is_replacing
        });
        self.open = open;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct At(i64);

    impl Timed for At {
        fn time(&self) -> i64 {
            self.0
        }
    }

    fn chains(is_nested: bool, events: &str) -> (Chains<u8, At, At>, String) {
        let mut chains = Chains::new(is_nested, 100);
        let mut told = String::new();
        let mut tell = |_: &u8, fate| told += &format!("{fate:?} ");
        for (time, event) in events.bytes().enumerate() {
            match event {
                b'(' => chains.begin(0, At(time as i64), &mut tell),
                _ => chains.end(&0, At(time as i64), &mut tell),
            }
        }
        (chains, told)
    }

    #[test]
    fn ends_meet_what_is_open() {
        let (chains, told) = chains(false, ")((");
        assert_eq!(told, "Replaced(At(1)) ");
        assert_eq!(chains.open().map(|open| open.1.0).collect::<Vec<_>>(), [2]);
        assert_eq!(chains.alone().map(|end| end.1.0).collect::<Vec<_>>(), [0]);
        let (chains, told) = self::chains(true, "))(()");
        assert_eq!(told, "Pair(At(3), At(4)) ");
        assert_eq!(chains.alone().count(), 2);
    }

    /// A begin that has ended still replaces the open one of the part before.
    #[test]
    fn what_is_over_replaces() {
        let (mut left, _) = chains(false, "(");
        let (right, _) = chains(false, "()");
        let mut told = String::new();
        left.merge(right, |_, fate| told += &format!("{fate:?} "));
        assert_eq!(told, "Replaced(At(0)) ");
        assert_eq!(left.open().count(), 0);
    }

    #[test]
    fn the_first_part_remembers_only_what_is_open() {
        let (mut left, _) = chains(false, ")()");
        let mut told = String::new();
        left.anchor(|_, fate| told += &format!("{fate:?} "));
        assert_eq!((told.as_str(), left.chains.len()), ("Alone(At(0)) ", 0));
    }

    #[test]
    fn too_much_is_given_up() {
        let mut chains: Chains<u64, At, At> = Chains::new(false, 10);
        let mut given = Vec::new();
        for time in 0..11 {
            chains.begin(time as u64, At(time), |_, fate| {
                if let ChainFate::GivenUp(begin) = fate {
                    given.push(begin.0);
                }
            });
        }
        given.sort_unstable();
        assert_eq!(given, [0, 1, 2, 3, 4, 5]);
        assert_eq!(chains.open().count(), 5);
    }
}
