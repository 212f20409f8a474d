//! Messages from one thread to another: sent here, received there.
//!
//! ```text
//! client    send 7 ──────┐   send 8 ──────────────┐       each key has a queue of what is on its way
//! server                 └── receive 7            └── receive 8
//! ```
//!
//! A receive takes the oldest message that was sent with the same key, or as many of them as it
//! says. It is known then from where to where that went and how long it took: so a message is told
//! of in the bucket in which it arrives. A receive before its send, or a send without a receive, is
//! no message. A queue holds 32, all of them together [`OPEN_MAX`] from one chunk to the next:
//! older messages are given up.
//!
//! Chunks are sealed in order, so that all is known of the chunks before them. For code that reads
//! a chunk alone, nodes know the messages on their way behind them: hidden tracks say of a key how
//! many these are, and of each of these since when and from which track.

use std::collections::VecDeque;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::node::NodeBuilder;
use super::{Thing, TrackKey};

/// As much may be on its way with a key.
const QUEUE_MAX: usize = 32;
/// As much may be on its way at all when a chunk ends.
pub const OPEN_MAX: usize = 1 << 14;
/// Ways, each from a track to another one by a name, that are told apart.
pub const ROUTES_MAX: usize = 1 << 16;
/// Where the hidden track is that says how much is on its way with a key: beside those of each of them.
const COUNT: u8 = u8::MAX;

/// The known values of some tracks: the value and since when.
type Known = HashMap<u64, Option<(u64, i64)>>;

/// Something is sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// When.
    pub(super) time: i64,
    /// A receive has the key of its send.
    pub(super) key: u64,
    /// The track of events of the thread or the lane that does it.
    pub(super) track: u64,
    /// The name of the message, if it is received.
    pub(super) name: u64,
    /// How many are received at most; 0: it is sent.
    pub(super) receives: u32,
}

/// From where to where messages go, and their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// From which track.
    pub from: u64,
    /// To which.
    pub to: u64,
    /// By which name, as a value of [`super::marks::integer_name`] or of a chunk's names.
    pub name: u64,
}

impl Route {
    /// The value that stands for it.
    #[must_use]
    pub fn value(self) -> u64 {
        Digest::default().word(self.from).word(self.to).word(self.name).number()
    }

    /// The track of messages on this route: that of the machine where they arrive.
    fn track(self) -> u64 {
        let host = TrackKey::of(self.to).map_or(0, |key| key.host);
        TrackKey { thing: Thing::Messages, host, number: 0, track: 0 }.key()
    }
}

/// Something that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sent {
    from: u64,
    since: i64,
}

/// The messages on their way behind a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PendingMessages(HashMap<u64, VecDeque<Sent>>);

/// A message that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    begin: i64,
    end: i64,
    route: Route,
}

/// The results of a chunk.
#[derive(Debug, Default)]
pub struct MessagesSequel {
    arrivals: Vec<Arrival>,
    /// The values of hidden tracks behind it.
    hidden: Vec<(u64, Option<(u64, i64)>)>,
}

/// The hidden track of something that is on its way with a key, by its place in the queue, or of [`COUNT`]; several keys may share one.
fn hidden(key: u64, place: u8) -> u64 {
    TrackKey { thing: Thing::MessageQueues, host: (key >> 32) as u16, number: key as i32, track: place }.key()
}

impl PendingMessages {
    /// Puts sends and receives, in the order of time, behind all that was before.
    pub(super) fn follow(&mut self, posts: &[Post]) -> MessagesSequel {
        let Some(last) = posts.last() else { return MessagesSequel::default() };
        let mut sequel = MessagesSequel::default();
        // A key without messages on their way before or behind it is of no interest.
        let mut touched: HashMap<u64, bool> = HashMap::new();
        for post in posts {
            let queue = self.0.entry(post.key).or_default();
            touched.entry(post.key).or_insert(!queue.is_empty());
            if post.receives == 0 {
                if queue.len() == QUEUE_MAX {
                    queue.pop_front();
                }
                queue.push_back(Sent { from: post.track, since: post.time });
            }
            let taken = queue.len().min(post.receives as usize);
            sequel.arrivals.extend(queue.drain(..taken).map(|sent| {
                let route = Route { from: sent.from, to: post.track, name: post.name };
                Arrival { begin: sent.since, end: post.time, route }
            }));
        }
        self.give_up(&mut touched);
        for (&key, &was_open) in &touched {
            self.tell(key, (was_open, last.time), &mut sequel.hidden);
        }
        self.0.retain(|_, queue| !queue.is_empty());
        sequel
    }

    /// The values of a key's hidden tracks.
    fn tell(&self, key: u64, (was_open, at): (bool, i64), told: &mut Vec<(u64, Option<(u64, i64)>)>) {
        let queue = self.0.get(&key).filter(|queue| !queue.is_empty());
        if queue.is_some() || was_open {
            told.push((hidden(key, COUNT), queue.map(|queue| (queue.len() as u64, at))));
        }
        let sent = queue.into_iter().flatten().enumerate();
        told.extend(sent.map(|(place, sent)| (hidden(key, place as u8), Some((sent.from, sent.since)))));
    }

    /// Gives up the oldest messages where too many are on their way: perhaps no event tells their
    /// receive.
    fn give_up(&mut self, touched: &mut HashMap<u64, bool>) {
        let open: usize = self.0.values().map(VecDeque::len).sum();
        if open <= OPEN_MAX {
            return;
        }
        let mut times: Vec<i64> = self.0.values().flatten().map(|sent| sent.since).collect();
        let (_, &mut since, _) = times.select_nth_unstable(open - OPEN_MAX / 2);
        for (&key, queue) in &mut self.0 {
            let before = queue.len();
            queue.retain(|sent| sent.since >= since);
            if queue.len() < before {
                touched.entry(key).or_insert(true);
            }
        }
    }

    /// The keys of tracks that say how much is on its way before a chunk, for all keys of which it receives something.
    pub(super) fn asked(posts: &[Post]) -> Vec<u64> {
        let received = posts.iter().filter(|post| post.receives > 0);
        let mut asked: Vec<u64> = received.map(|post| hidden(post.key, COUNT)).collect();
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    /// The keys that have to be asked besides, after those.
    pub(super) fn asked_next(known: &Known) -> impl Iterator<Item = u64> + '_ {
        counts(known).flat_map(|(key, count)| (0..count).map(move |place| key & !(0xff << 56) | u64::from(place) << 56))
    }

    /// The messages on their way, from others' findings: by the keys of a chunk's sends and
    /// receives.
    pub(super) fn before(posts: &[Post], known: &Known) -> Self {
        let now = |key: u64| known.get(&key).copied().flatten();
        let mut messages = Self::default();
        for key in posts.iter().map(|post| post.key) {
            let Some((count, _)) = now(hidden(key, COUNT)) else { continue };
            if !messages.0.contains_key(&key) {
                let places = 0..count.min(QUEUE_MAX as u64) as u8;
                let sent = places.filter_map(|place| now(hidden(key, place)));
                messages.0.insert(key, sent.map(|(from, since)| Sent { from, since }).collect());
            }
        }
        messages
    }
}

/// Of hidden tracks that say how much is on its way, how much that is.
fn counts(known: &Known) -> impl Iterator<Item = (u64, u8)> + '_ {
    known.iter().filter_map(|(&key, now)| {
        let TrackKey { thing, track, .. } = TrackKey::of(key)?;
        let is_count = (thing, track) == (Thing::MessageQueues, COUNT);
        Some((key, (*now).filter(|_| is_count)?.0.min(QUEUE_MAX as u64) as u8))
    })
}

impl MessagesSequel {
    /// The ways that messages went.
    pub fn routes(&self) -> impl Iterator<Item = Route> + '_ {
        self.arrivals.iter().map(|arrival| arrival.route)
    }

    /// Puts everything into a node.
    pub(super) fn draw(self, node: &mut NodeBuilder) {
        for Arrival { begin, end, route } in self.arrivals {
            node.arrival(route.track(), (begin, end), route.value());
        }
        self.hidden.into_iter().for_each(|(key, now)| node.known(key, now));
    }
}

#[cfg(test)]
mod tests;
