//! `flows`: the latency of messages from one thread to another, by their routes.
//!
//! ```text
//! core 0   send 7 ─────┐           send 8 ─ never received
//! core 1               └ receive 7          receive 9 ─ sent before the trace began
//! core 2                    receive 10 ┐
//! core 3                     send 10 ──┘    received before it was sent: clocks disagree
//! ```
//!
//! The caller names these events by their roles ([`EventRole::Send`], [`EventRole::Receive`]); a
//! receive has the group, key and place of its send. Messages with one key are received in the
//! order in which they were sent, so that a part of a trace can decide nothing until all parts
//! before it have: it keeps its sends and receives, and they are played back when it is merged.

mod report;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::description::{AnalysisDescription, SupportedOptions};
use crate::key::KeyValue;
use crate::queues::{MessageFate, MessageQueue, Posted};
use crate::ranking::Ranking;
use crate::roles::{COMM, CPU, EventRole, PID, TID, message};
use crate::timeline::marks::{message_key, name_number};
use crate::windows::Windows;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, EventValue, Histogram, LaneFacts, LaneNotes, Merge, Needs,
    PartShape, Question, RoleEvent, Setup, SpoolError, Wishes,
};

/// The parts that distinguish one route from another.
#[derive(Clone, Copy, Debug)]
struct RouteParts {
    by_thread: bool,
    by_cpu: bool,
    by_name: bool,
}

/// The analysis.
#[derive(Debug)]
pub struct MessagesAnalysis {
    lanes: Vec<LaneFacts>,
    parts: RouteParts,
    /// For each machine, where events of its lanes may be missing: messages do not leave it.
    holes: Vec<Windows>,
    wishes: Wishes,
}

/// A sender or a receiver, as far as routes tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Endpoint {
    host: u16,
    tid: Option<i32>,
    cpu: Option<u32>,
    /// Where its thread or CPU is wanted and not known.
    lane: Option<u32>,
}

/// A message is sent or received.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MessagePost {
    time: i64,
    key: u64,
    /// Its lane; events of a lane keep their order.
    lane: u32,
    at: Endpoint,
    /// The number that stands for its name, wherever the trace is cut.
    name: u64,
    /// How many are received at most; 0: it is sent.
    receives: u32,
    /// How long a receive waits for its send.
    early_ns: u32,
    /// Its CPU and thread are wanted.
    is_wanted: bool,
}

/// From where to where messages go, and their name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct MessageRoute {
    from: Endpoint,
    to: Endpoint,
    name: u64,
}

/// A message that took long, or that was received first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct LongMessage {
    sent: i64,
    received: i64,
    route: MessageRoute,
}

/// The figures of a route.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RouteSums {
    latencies: Histogram,
    early: u64,
    lost_inside: u64,
}

/// The process and the name of a thread: the last that its events tell, each with its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct PostingThread {
    pid: Option<(i64, i64)>,
    name: Option<(i64, Box<[u8]>)>,
}

/// The state behind a part of the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageState {
    /// Sends and receives that are not decided: of one time, or all where a part comes before.
    posts: Vec<MessagePost>,
    /// Nothing comes before.
    is_first: bool,
    queues: HashMap<u64, MessageQueue<MessagePost, MessagePost>>,
    /// How many wait in queues.
    open: usize,
    /// Names of messages by their numbers; at most [`NAMES_MAX`].
    names: HashMap<u64, KeyValue>,
    threads: HashMap<(u16, i32), PostingThread>,
    sums: MessageSums,
}

/// The decided messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MessageSums {
    routes: HashMap<MessageRoute, RouteSums>,
    /// Routes beyond [`ROUTES_MAX`] together.
    others: RouteSums,
    longest: Ranking<LongMessage>,
    earliest: Ranking<LongMessage>,
    /// Receives that nothing before them sent; those that may have been sent in a hole are apart.
    sent_before: u64,
    unsent_in_holes: u64,
    /// Sends that were given up, or are older than those that are waited for.
    given_up: u64,
    without_key: u64,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct MessageLane<'a> {
    facts: &'a LaneFacts,
    number: u32,
    threads: HashMap<(u16, i32), PostingThread>,
    without_key: u64,
}

/// The note of a lane: a send or a receive, and the message's name.
#[derive(Debug)]
pub struct MessageNote(MessagePost, KeyValue);

/// Maximum number of routes with figures of their own.
const ROUTES_MAX: usize = 1 << 16;
/// Names of messages, and of threads, that are kept.
const NAMES_MAX: usize = 1 << 16;
/// Messages that may be on their way at all: some 30 MB.
const OPEN_MAX: usize = 1 << 18;
/// The default number of the longest ones that are shown.
const LONGEST: usize = 10;

impl Posted for MessagePost {
    fn time(&self) -> i64 {
        self.time
    }
}

impl RouteParts {
    /// Threads and names, unless the caller asks for others.
    fn new(by: &[String]) -> Self {
        let is_by = |part: &str| by.is_empty() && part != "cpu" || by.iter().any(|by| by == part);
        Self { by_thread: is_by("thread"), by_cpu: is_by("cpu"), by_name: is_by("name") }
    }
}

impl MessagesAnalysis {
    /// Description for help texts, menus and lists.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions =
            SupportedOptions { by: &["thread", "cpu", "name"], names: true, ..SupportedOptions::COMMON };
        const SENTENCE: &str = "Latency of messages from senders to receivers, and messages without either";
        AnalysisDescription::new("flows", "Messages", SENTENCE, OPTIONS)
            .with_view(&["total", "per-route", "longest", "early"], Self::headline)
            .with_examples(
                "kymo flows trace.log --by cpu\nkymo flows trace --name 'lookup*' --min 1ms\n\
                 kymo flows trace --roles roles.toml",
            )
    }

    /// The question that it answers.
    pub(crate) fn question() -> Question<'static> {
        Question::new(Self::needs(), &[EventRole::Send, EventRole::Receive], Self::new)
    }

    /// The roles and fields that it needs.
    fn needs() -> Needs {
        let fields = vec![message::MESSAGE_KEY, message::MESSAGE_WITHIN, message::MESSAGE_GROUP, message::MESSAGE_NAME];
        let of_receive = [fields.clone(), vec![message::MESSAGE_COUNT, message::MESSAGE_EARLY]].concat();
        Needs {
            roles: vec![(EventRole::Send, fields), (EventRole::Receive, of_receive)],
            context: vec![CPU, TID, PID, COMM],
            ..Needs::default()
        }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let parts = RouteParts::new(&setup.wishes.by);
        Self { lanes: setup.lanes.to_vec(), parts, holes: setup.holes_by_host(), wishes: setup.wishes.clone() }
    }

    /// The sender or receiver of an event.
    fn endpoint(&self, lane: &MessageLane<'_>, event: &AnalysisEvent<'_>) -> Endpoint {
        let RouteParts { by_thread, by_cpu, .. } = self.parts;
        let tid = event.small_context(TID).filter(|_| by_thread);
        let cpu = event.cpu().or(lane.facts.cpu).filter(|_| by_cpu);
        let is_unknown = by_thread && tid.is_none() || by_cpu && cpu.is_none();
        Endpoint { host: lane.facts.host, tid, cpu, lane: is_unknown.then_some(lane.number) }
    }

    fn post(&self, lane: &mut MessageLane<'_>, meaning: RoleEvent<'_>) -> Option<MessageNote> {
        let event = meaning.event;
        let is_wanted = self.wishes.wants(lane.facts, event);
        if meaning.value(message::MESSAGE_KEY).is_none() {
            lane.without_key += u64::from(is_wanted);
            return None;
        }
        let is_sent = meaning.role == EventRole::Send;
        let number = |field| meaning.integer(field);
        let at_most = |number: i64, least: i64| number.clamp(least, u32::MAX.into()) as u32;
        let receives = number(message::MESSAGE_COUNT).map_or(1, |count| at_most(count, 1));
        let early_ns = number(message::MESSAGE_EARLY).map_or(0, |early| at_most(early, 0));
        let name = meaning.value(message::MESSAGE_NAME).or_else(|| meaning.value(message::MESSAGE_GROUP));
        let name = name.unwrap_or(EventValue::Text(event.class.name.as_bytes()));
        let post = MessagePost {
            time: event.time,
            key: message_key(&meaning, lane.facts.host),
            lane: lane.number,
            at: self.endpoint(lane, event),
            name: name_number(name),
            receives: if is_sent { 0 } else { receives },
            early_ns: if is_sent { 0 } else { early_ns.max(lane.facts.apart_ns) },
            is_wanted,
        };
        Some(MessageNote(post, KeyValue::from(name)))
    }

    /// Decides the sends and receives of a part that are before a time, behind all that was before it.
    fn play(&self, state: &mut MessageState, until: i64) {
        let MessageState { posts, queues, open, names, sums, .. } = state;
        // A message that is sent at one time and received at that time has arrived. Otherwise lanes come one after the
        // other, wherever the trace is cut.
        posts.sort_by_key(|post| (post.time, post.receives > 0, post.lane));
        let decided = posts.partition_point(|post| post.time < until || until == i64::MAX);
        for post in posts.drain(..decided) {
            let queue = queues.entry(post.key).or_default();
            let before = queue.len();
            let tell = |fate| self.decide(sums, names, fate);
            match post.receives {
                0 => queue.send(post, tell),
                count => queue.receive(post, count, post.early_ns, tell),
            }
            *open = *open + queue.len() - before;
            if queue.is_empty() {
                queues.remove(&post.key);
            }
            if *open > OPEN_MAX {
                *open = self.give_up(queues, sums);
            }
        }
    }

    /// Gives up the older half of all that waits: perhaps no event tells of their receives. Returns
    /// how many wait then.
    fn give_up(
        &self,
        queues: &mut HashMap<u64, MessageQueue<MessagePost, MessagePost>>,
        sums: &mut MessageSums,
    ) -> usize {
        let of_queue = |(key, queue): (&u64, &MessageQueue<MessagePost, MessagePost>)| -> Vec<(i64, u64)> {
            let early = queue.early.iter().map(|early| early.receive.time);
            queue.sent.iter().map(|post| post.time).chain(early).map(|time| (time, *key)).collect()
        };
        // Those of one time are told apart by their keys: otherwise none of them could be given up.
        let mut waiting: Vec<(i64, u64)> = queues.iter().flat_map(of_queue).collect();
        let middle = waiting.len() / 2;
        let (_, &mut since, _) = waiting.select_nth_unstable(middle);
        queues.retain(|key, queue| {
            queue.sent.retain(|post| {
                let is_kept = (post.time, *key) >= since;
                sums.given_up += u64::from(!is_kept && post.is_wanted);
                is_kept
            });
            queue.early.retain(|early| {
                let is_kept = (early.receive.time, *key) >= since;
                if !is_kept {
                    self.unsent(sums, &early.receive);
                }
                is_kept
            });
            !queue.is_empty()
        });
        queues.values().map(MessageQueue::len).sum()
    }

    fn decide(
        &self,
        sums: &mut MessageSums,
        names: &HashMap<u64, KeyValue>,
        fate: MessageFate<MessagePost, MessagePost>,
    ) {
        match fate {
            MessageFate::Arrived(sent, received) => self.message(sums, names, &sent, &received),
            MessageFate::Early(received, sent) => self.message(sums, names, &sent, &received),
            MessageFate::Unsent(received) => self.unsent(sums, &received),
            MessageFate::GivenUp(sent) => sums.given_up += u64::from(sent.is_wanted),
        }
    }

    fn wants_name(&self, names: &HashMap<u64, KeyValue>, number: u64) -> bool {
        self.wishes.names.is_empty()
            || names.get(&number).is_some_and(|name| self.wishes.wants_called(&name.to_string()))
    }

    /// A message whose send and receive are known.
    fn message(
        &self,
        sums: &mut MessageSums,
        names: &HashMap<u64, KeyValue>,
        sent: &MessagePost,
        received: &MessagePost,
    ) {
        // Counters of CPUs may differ by so much: at that distance it cannot be told which was first, and both count as
        // simultaneous.
        let apart_ns = self.lanes.get(received.lane as usize).map_or(0, |lane| u64::from(lane.apart_ns));
        let is_early = received.time < sent.time && sent.time.abs_diff(received.time) > apart_ns;
        let received_at = if is_early { received.time } else { received.time.max(sent.time) };
        let difference = sent.time.abs_diff(received_at);
        let is_wanted = (sent.is_wanted || received.is_wanted) && self.wants_name(names, received.name);
        if !is_wanted || !self.wishes.wants_duration(difference) {
            return;
        }
        let name = if self.parts.by_name { received.name } else { 0 };
        let route = MessageRoute { from: sent.at, to: received.at, name };
        let long = LongMessage { sent: sent.time, received: received_at, route };
        if self.is_lossy(sent.at.host, (sent.time.min(received.time), sent.time.max(received.time))) {
            // The next one with this key may have been received instead.
            sums.route(route).lost_inside += 1;
        } else if is_early {
            sums.route(route).early += 1;
            sums.earliest.push(difference, || long);
        } else {
            sums.route(route).latencies.record(difference);
            sums.longest.push(difference, || long);
        }
    }

    /// Whether events of a machine may be missing between two times.
    fn is_lossy(&self, host: u16, (begin, end): (i64, i64)) -> bool {
        self.holes.get(usize::from(host)).is_some_and(|holes| holes.touch(begin, end))
    }

    /// Nothing that this receives was sent: before the trace began, or in a hole.
    fn unsent(&self, sums: &mut MessageSums, received: &MessagePost) {
        // The name is not asked for: it is counted in `total` alone, where names choose nothing.
        if received.is_wanted && self.wishes.names.is_empty() {
            let is_lost = self.is_lossy(received.at.host, (i64::MIN, received.time));
            *if is_lost { &mut sums.unsent_in_holes } else { &mut sums.sent_before } += 1;
        }
    }
}

impl MessageSums {
    fn new(wishes: &Wishes) -> Self {
        let longest = || Ranking::new(Some(wishes.top.unwrap_or(LONGEST)));
        Self {
            routes: HashMap::new(),
            others: RouteSums::default(),
            longest: longest(),
            earliest: longest(),
            sent_before: 0,
            unsent_in_holes: 0,
            given_up: 0,
            without_key: 0,
        }
    }

    fn route(&mut self, route: MessageRoute) -> &mut RouteSums {
        let is_full = self.routes.len() >= ROUTES_MAX && !self.routes.contains_key(&route);
        if is_full { &mut self.others } else { self.routes.entry(route).or_default() }
    }
}

impl Merge for RouteSums {
    fn merge(&mut self, later: Self) {
        self.latencies.merge(later.latencies);
        self.early += later.early;
        self.lost_inside += later.lost_inside;
    }
}

impl MessageState {
    /// Remembers facts of a thread. Of each kind the latest counts; at one time the greatest, however parts are merged.
    fn meet(threads: &mut HashMap<(u16, i32), PostingThread>, thread: (u16, i32), facts: PostingThread) {
        let has_room = threads.len() < NAMES_MAX;
        match threads.get_mut(&thread) {
            Some(known) => {
                known.pid = known.pid.max(facts.pid);
                known.name = known.name.take().max(facts.name);
            }
            None if has_room => drop(threads.insert(thread, facts)),
            None => {}
        }
    }

    /// Remembers the name of a message.
    fn call(&mut self, number: u64, name: KeyValue) {
        if self.names.len() < NAMES_MAX {
            self.names.entry(number).or_insert(name);
        }
    }
}

impl MessageLane<'_> {
    /// Remembers the names of the thread of an event.
    fn meet(&mut self, event: &AnalysisEvent<'_>) {
        let Some(tid) = event.small_context(TID) else { return };
        let name = event.context_text(COMM).filter(|name| !name.is_empty());
        let pid = event.context(PID).map(|pid| (event.time, pid));
        let thread = (self.facts.host, tid);
        if let Some(PostingThread { pid: known_pid, name: Some((time, known)) }) = self.threads.get_mut(&thread)
            && name == Some(&**known)
        {
            // Almost always: the same name again, which needs no memory.
            *time = event.time;
            *known_pid = pid.max(*known_pid);
            return;
        }
        let facts = PostingThread { pid, name: name.map(|name| (event.time, name.into())) };
        MessageState::meet(&mut self.threads, thread, facts);
    }
}

impl Analysis for MessagesAnalysis {
    type State = MessageState;
    type Lane<'a> = MessageLane<'a>;
    type Note = MessageNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "flows", version: 1 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> MessageState {
        MessageState {
            posts: Vec::new(),
            is_first: false,
            queues: HashMap::new(),
            open: 0,
            names: HashMap::new(),
            threads: HashMap::new(),
            sums: MessageSums::new(&self.wishes),
        }
    }

    fn enter(&self, lane: usize) -> MessageLane<'_> {
        MessageLane { facts: &self.lanes[lane], number: lane as u32, threads: HashMap::new(), without_key: 0 }
    }

    fn step(&self, lane: &mut MessageLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<MessageNote>) {
        // An event that is both receives first, then sends.
        for role in [EventRole::Receive, EventRole::Send] {
            let Some(meaning) = event.roles().find(|meaning| meaning.role == role) else { continue };
            if let Some(note) = self.post(lane, meaning) {
                lane.meet(event);
                notes.push(event.time, note);
            }
        }
    }

    fn note(&self, state: &mut MessageState, _: usize, time: i64, MessageNote(post, name): MessageNote) {
        if state.is_first && state.posts.last().is_some_and(|last| last.time < time) {
            self.play(state, time);
        }
        state.call(post.name, name);
        state.posts.push(post);
    }

    fn leave(&self, state: &mut MessageState, _: usize, end: MessageLane<'_>) {
        state.sums.without_key += end.without_key;
        end.threads.into_iter().for_each(|(thread, facts)| MessageState::meet(&mut state.threads, thread, facts));
    }

    fn merge(&self, left: &mut MessageState, right: MessageState) {
        left.posts.extend(right.posts);
        right.names.into_iter().for_each(|(number, name)| left.call(number, name));
        right.threads.into_iter().for_each(|(thread, facts)| MessageState::meet(&mut left.threads, thread, facts));
        left.sums.without_key += right.sums.without_key;
        // The next part may have more of the last time.
        if let Some(last) = left.posts.iter().map(|post| post.time).max().filter(|_| left.is_first) {
            self.play(left, last);
        }
    }

    fn merges_in_order(&self) -> bool {
        true
    }

    fn anchor(&self, state: &mut MessageState) {
        state.is_first = true;
    }

    fn forget(&self, state: &mut MessageState, _: i64) -> bool {
        self.play(state, i64::MAX);
        state.is_first = true;
        // Receives that wait were counted in the period that ends.
        state.queues.retain(|_, queue| {
            queue.early.clear();
            !queue.is_empty()
        });
        state.open = state.queues.values().map(MessageQueue::len).sum();
        state.sums = MessageSums::new(&self.wishes);
        true
    }

    fn finish(&self, state: &MessageState) -> Result<Answer, SpoolError> {
        if state.posts.is_empty() {
            return Ok(self.report(state));
        }
        let mut state = state.clone();
        self.play(&mut state, i64::MAX);
        Ok(self.report(&state))
    }
}
