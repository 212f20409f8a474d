//! Messages from one thread to another: sent here, received there.
//!
//! ```text
//! client    send 7 ──────┐   send 8 ──────────────┐       each key has a queue of what is on its way
//! server                 └── receive 7            └── receive 8
//! ```
//!
//! A receive takes the oldest message that was sent with the same key, or as many of them as it
//! says. It is known then from where to where that went and how long it took: so a message is told
//! of in the bucket in which it arrives. A receive without a send, or a send without a receive, is
//! no message. Where clocks may disagree, a receive waits for its send: see `queues.rs`. Such
//! a message is told of when it is sent, on a route of its own. All queues together hold
//! [`OPEN_MAX`] from one chunk to the next: older messages are given up.
//!
//! Chunks are sealed in order, so that all is known of the chunks before them. For code that reads
//! a chunk alone, nodes know the messages on their way behind them: hidden tracks say of a key how
//! many these are, and of each of these since when and from which track; of receives that wait,
//! their names besides, and until when they wait.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::node::NodeBuilder;
use super::{Thing, TrackKey};
use crate::queues::{EarlyReceive, MessageFate, MessageQueue, Posted, QUEUE_MAX};

/// As much may be on its way at all when a chunk ends.
pub const OPEN_MAX: usize = 1 << 14;
/// Ways, each from a track to another one by a name, that are told apart.
pub const ROUTES_MAX: usize = 1 << 16;
/// The kinds of hidden tracks of a key: how much is on its way; each of these; of a receive that waits, its name, and
/// until when it waits.
const COUNT: u8 = u8::MAX;
const ENTRY: u8 = 0;
const EARLY_NAME: u8 = 1;
/// The value of [`COUNT`] has this bit if receives wait.
const ARE_EARLY: u64 = 1 << 16;

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
    /// How long a receive waits for its send.
    pub(super) early_ns: u32,
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
    /// They are received before they are sent, as clocks say.
    pub is_early: bool,
}

impl Route {
    /// The value that stands for it.
    #[must_use]
    pub fn value(self) -> u64 {
        let digest = Digest::default().word(self.from).word(self.to).word(self.name);
        if self.is_early { digest.word(1).number() } else { digest.number() }
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

/// A receive, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Received {
    to: u64,
    at: i64,
    name: u64,
}

impl Posted for Sent {
    fn time(&self) -> i64 {
        self.since
    }
}

impl Posted for Received {
    fn time(&self) -> i64 {
        self.at
    }
}

/// The messages on their way behind a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PendingMessages(HashMap<u64, MessageQueue<Sent, Received>>);

/// A message that has come: when it was sent and received, the earlier first.
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

/// The hidden track of how much is on its way with a key; several keys may share one.
fn counting(key: u64) -> u64 {
    TrackKey { thing: Thing::MessageQueues, host: (key >> 32) as u16, number: key as i32, track: COUNT }.key()
}

/// A hidden track of something that is on its way, by the track of its key's [`COUNT`] and its place in the queue.
fn hidden(counting: u64, place: u32, kind: u8) -> u64 {
    let number = Digest::default().word(counting).word(place.into()).number();
    TrackKey { thing: Thing::MessageQueues, host: (number >> 32) as u16, number: number as i32, track: kind }.key()
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
            let tell = |fate| sequel.arrivals.extend(Arrival::of(fate));
            match post.receives {
                0 => queue.send(Sent { from: post.track, since: post.time }, tell),
                count => {
                    let receive = Received { to: post.track, at: post.time, name: post.name };
                    queue.receive(receive, count, post.early_ns, tell);
                }
            }
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
            let count =
                |queue: &MessageQueue<_, _>| queue.len() as u64 | if queue.early.is_empty() { 0 } else { ARE_EARLY };
            told.push((counting(key), queue.map(|queue| (count(queue), at))));
        }
        let Some(MessageQueue { sent, early }) = queue else { return };
        let hidden = |place, kind| hidden(counting(key), place, kind);
        told.extend((0..).zip(sent).map(|(place, sent)| (hidden(place, ENTRY), Some((sent.from, sent.since)))));
        for (place, EarlyReceive { receive: Received { to, at, name }, until }) in (0..).zip(early) {
            told.push((hidden(place, ENTRY), Some((*to, *at))));
            told.push((hidden(place, EARLY_NAME), Some((*name, *until))));
        }
    }

    /// Gives up the oldest messages where too many are on their way: perhaps no event tells their
    /// receive.
    fn give_up(&mut self, touched: &mut HashMap<u64, bool>) {
        let open: usize = self.0.values().map(MessageQueue::len).sum();
        if open <= OPEN_MAX {
            return;
        }
        let of_queue = |(key, queue): (&u64, &MessageQueue<Sent, Received>)| -> Vec<(i64, u64)> {
            let early = queue.early.iter().map(|early| early.receive.at);
            queue.sent.iter().map(|sent| sent.since).chain(early).map(|time| (time, *key)).collect()
        };
        let mut waiting: Vec<(i64, u64)> = self.0.iter().flat_map(of_queue).collect();
        let (_, &mut since, _) = waiting.select_nth_unstable(open - OPEN_MAX / 2);
        for (&key, queue) in &mut self.0 {
            let before = queue.len();
            queue.sent.retain(|sent| (sent.since, key) >= since);
            queue.early.retain(|early| (early.receive.at, key) >= since);
            if queue.len() < before {
                touched.entry(key).or_insert(true);
            }
        }
    }

    /// The keys of tracks that say how much is on its way before a chunk, for all keys of which it receives something;
    /// and those of which it sends something, if receives may wait for that.
    pub(super) fn asked(posts: &[Post], has_early: bool) -> Vec<u64> {
        let met = posts.iter().filter(|post| has_early || post.receives > 0);
        let mut asked: Vec<u64> = met.map(|post| counting(post.key)).collect();
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    /// The keys that have to be asked besides, after those.
    pub(super) fn asked_next(known: &Known) -> impl Iterator<Item = u64> + '_ {
        counts(known).flat_map(|(key, count, are_early)| {
            let names = (0..if are_early { count } else { 0 }).map(move |place| hidden(key, place, EARLY_NAME));
            (0..count).map(move |place| hidden(key, place, ENTRY)).chain(names)
        })
    }

    /// The messages on their way, from others' findings: by the keys of a chunk's sends and
    /// receives.
    pub(super) fn before(posts: &[Post], known: &Known) -> Self {
        let now = |key: u64| known.get(&key).copied().flatten();
        let mut messages = Self::default();
        for key in posts.iter().map(|post| post.key) {
            let Some((count, _)) = now(counting(key)) else { continue };
            messages.0.entry(key).or_insert_with(|| {
                let (places, are_early) = counted(count);
                let mut queue = MessageQueue::default();
                for place in 0..places {
                    let hidden = |kind| hidden(counting(key), place, kind);
                    let Some((track, time)) = now(hidden(ENTRY)) else { continue };
                    match now(hidden(EARLY_NAME)).filter(|_| are_early) {
                        Some((name, until)) => {
                            let receive = Received { to: track, at: time, name };
                            queue.early.push_back(EarlyReceive { receive, until });
                        }
                        None => queue.sent.push_back(Sent { from: track, since: time }),
                    }
                }
                queue
            });
        }
        messages
    }
}

/// Of the value of a hidden track [`COUNT`], how many there are, and whether these are receives.
fn counted(value: u64) -> (u32, bool) {
    ((value & !ARE_EARLY).min(QUEUE_MAX as u64) as u32, value & ARE_EARLY != 0)
}

/// Of hidden tracks that say how much is on its way, how much that is, and whether these are receives.
fn counts(known: &Known) -> impl Iterator<Item = (u64, u32, bool)> + '_ {
    known.iter().filter_map(|(&key, now)| {
        let TrackKey { thing, track, .. } = TrackKey::of(key)?;
        let is_count = (thing, track) == (Thing::MessageQueues, COUNT);
        let (count, are_early) = counted((*now).filter(|_| is_count)?.0);
        Some((key, count, are_early))
    })
}

impl Arrival {
    /// The message, if there is one.
    fn of(fate: MessageFate<Sent, Received>) -> Option<Self> {
        let (sent, received, is_early) = match fate {
            MessageFate::Arrived(sent, received) => (sent, received, false),
            MessageFate::Early(received, sent) => (sent, received, true),
            MessageFate::Unsent(_) | MessageFate::GivenUp(_) => return None,
        };
        let route = Route { from: sent.from, to: received.to, name: received.name, is_early };
        let (begin, end) = (sent.since.min(received.at), sent.since.max(received.at));
        Some(Self { begin, end, route })
    }
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
