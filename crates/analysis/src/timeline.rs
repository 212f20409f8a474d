//! `timeline`: the data that a viewer draws, at any width of a pixel.
//!
//! ```text
//! chunk of the trace ──read──> State ──seal, in order──> Sealed ──node──> Node: cells in buckets of a level
//!                                                                   nodes ──together──> Node of a wider level
//! ```
//!
//! A chunk is read without knowing the state before it. Sealing it tells which runs of values end
//! in it and which go on; that is quick, so that chunks are read by many and sealed by one after
//! the other. A sealed chunk never changes. The same, in buckets of a nanosecond, is the exact
//! answer for the span of a chunk.
//!
//! Tracks have keys: the kind of a thing (a CPU, a thread, a lane of events), the machine, a
//! number, which of its values.

mod called;
pub mod cells;
pub mod changes;
mod digest;
pub mod marks;
pub mod messages;
pub mod node;
pub mod numbers;
pub mod own;
pub mod slices;
mod tally;
mod thinning;
mod tracks;

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::roles::{COMM, PID, TID, counter, message, pair, rule, state};
use crate::runs::StateRun;
use crate::states::{
    self, DOUBT, Entity, EntityKind, FLAGS, StatesAnalysis, StatesNote, StatesSequel, ThreadState, cpu_track,
    thread_track,
};
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, Comm, EventRole, LaneFacts, LaneNotes, Needs, PartShape,
    Question, Setup, SpoolError, Windows,
};
pub use called::Called;
use cells::Level;
use changes::Lasting;
use marks::Marks;
use messages::{PendingMessages, Route};
use node::{NodeBuilder, TimelineNode};
use own::DeclaredTracks;
use slices::OpenSlices;
use tally::OverlapTally;
pub use tracks::{ANYBODY, Crowd, Latency, Thing, TrackKey, bin, bin_begin, is_number, is_rest, values_max, wakeup};
use tracks::{STATE, is_lasting};

/// The analysis, for buckets of a level.
#[derive(Debug)]
pub struct TimelineAnalysis {
    states: StatesAnalysis,
    lanes: Vec<LaneFacts>,
    /// Names of the classes of events, by the numbers that values have.
    classes: Vec<Arc<str>>,
    /// For each class its number.
    class_numbers: Vec<u32>,
    /// For each class whether its events tell of durations.
    marking: Vec<bool>,
    /// Where events of any lane may be missing.
    holes: Windows,
    /// When the first bucket begins.
    origin: i64,
    /// Only some events are there: see [`TimelineAnalysis::of_some`].
    is_of_some: bool,
    /// Messages may be received before they are sent, as clocks say.
    has_early: bool,
    /// The states and counters of own analyses.
    own: DeclaredTracks,
}

/// The state behind a part of the trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimelinePart {
    states: states::StatesPart,
    counts: Vec<BucketCount>,
    wakeups: Vec<(i64, u64, u64)>,
    /// The notes about programs, until it is sealed; then the open durations.
    marks: Marks,
    slices: OpenSlices,
    lasting: Lasting,
    messages: PendingMessages,
    /// The names of threads that say them themselves, and their processes, by machine and number.
    people: BTreeMap<(u16, i32), (Comm, Option<i32>)>,
}

/// Which numbers values have that are no numbers in the traces; those that come later have other ones.
#[derive(Clone, Debug, Default)]
pub struct ValueNumbering {
    /// Names of classes of events.
    classes: Vec<Arc<str>>,
    /// Names of calls.
    calls: Vec<String>,
}

/// Events of a class, one after the other, in a bucket of the finest level that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BucketCount {
    key: u64,
    bucket: u64,
    class: u32,
    count: u32,
}

/// A lane while it is read.
pub struct TimelineLane<'a> {
    timeline: &'a TimelineAnalysis,
    states: states::StatesLane<'a>,
    key: u64,
    level: Level,
    counter: ClassCounter,
    counts: Vec<BucketCount>,
    number: usize,
    marks: Marks,
    people: HashMap<i32, (Comm, Option<i32>)>,
    /// The thread of the event before.
    last: Option<i32>,
}

/// Counts events by class until the bucket is over.
#[derive(Debug, Default)]
struct ClassCounter {
    bucket: u64,
    /// By class.
    counts: Vec<u32>,
    /// Classes with events in the bucket.
    seen: Vec<u32>,
}

impl ClassCounter {
    #[inline]
    fn add(&mut self, bucket: u64, class: u32, (key, counts): (u64, &mut Vec<BucketCount>)) {
        if bucket != self.bucket {
            self.flush(key, counts);
            self.bucket = bucket;
        }
        if self.counts.len() <= class as usize {
            self.counts.resize(class as usize + 1, 0);
        }
        let count = &mut self.counts[class as usize];
        if *count == 0 {
            self.seen.push(class);
        }
        *count += 1;
    }

    fn flush(&mut self, key: u64, counts: &mut Vec<BucketCount>) {
        for class in self.seen.drain(..) {
            let count = std::mem::take(&mut self.counts[class as usize]);
            counts.push(BucketCount { key, bucket: self.bucket, class, count });
        }
    }
}

impl TimelinePart {
    /// Threads' names by their digest.
    #[must_use]
    pub fn names(&self) -> &HashMap<u64, Comm> {
        self.states.names()
    }

    /// The names of threads in the events of a chunk that was read, and their processes, by machine
    /// and number.
    #[must_use]
    pub fn people(&self) -> &BTreeMap<(u16, i32), (Comm, Option<i32>)> {
        &self.people
    }

    /// Interrupts' names, by machine and number.
    #[must_use]
    pub fn irqs(&self) -> &BTreeMap<(u16, u64), String> {
        self.states.irqs()
    }

    /// The names of durations and states, by the values that stand for them.
    #[must_use]
    pub fn slice_names(&self) -> &HashMap<u64, String> {
        &self.marks.names
    }

    /// Counters and components that events told of, by the keys of their tracks.
    #[must_use]
    pub fn called(&self) -> &HashMap<u64, Called> {
        &self.marks.called
    }
}

/// A chunk that was sealed.
#[derive(Debug)]
pub struct Sealed {
    sequel: StatesSequel,
    slices: slices::SlicesSequel,
    changes: changes::ChangesSequel,
    messages: messages::MessagesSequel,
    crowds: Vec<(u64, i64, OverlapTally)>,
    counts: Vec<BucketCount>,
    wakeups: Vec<(i64, u64, u64)>,
    /// The names that threads have in the moment of their death: when, the key, and the value.
    last_names: Vec<(i64, u64, u64)>,
    begin: i64,
}

/// The analysis with the level that chunks are read with.
#[derive(Clone, Copy, Debug)]
pub struct ChunkReading<'a> {
    timeline: &'a TimelineAnalysis,
    level: Level,
}

impl TimelineAnalysis {
    /// The question of a timeline about events. It makes [`StatesAnalysis`]; chunks are read by
    /// [`TimelineAnalysis::reading`].
    #[must_use]
    pub fn question() -> Question<'static> {
        Question {
            is_of_programs: true,
            reads_threads: false,
            ..Question::new(Self::needs(), &[], StatesAnalysis::new)
        }
    }

    fn needs() -> Needs {
        let fields = vec![pair::KEY, pair::PAIR_NAME, pair::WITHIN, pair::GROUP];
        let mut needs = Needs { all: true, ..StatesAnalysis::needs() };
        needs.context.push(COMM);
        needs.roles.extend([(EventRole::Begin, fields.clone()), (EventRole::End, fields)]);
        let fields =
            vec![counter::COUNTER_NAME, counter::COUNTER_VALUE, counter::COUNTER_WITHIN, counter::COUNTER_UNIT];
        needs.roles.push((EventRole::Counter, fields));
        let fields = vec![state::COMPONENT, state::STATE, state::STATE_WITHIN, state::STATE_GROUP];
        needs.roles.push((EventRole::State, fields));
        let fields = vec![message::MESSAGE_KEY, message::MESSAGE_WITHIN, message::MESSAGE_GROUP];
        needs.roles.push((EventRole::Send, fields.clone()));
        needs.roles.push((
            EventRole::Receive,
            [fields, vec![message::MESSAGE_NAME, message::MESSAGE_COUNT, message::MESSAGE_EARLY]].concat(),
        ));
        needs.roles.push((EventRole::Rule, (0..rule::KEY_8 + 1).collect()));
        needs
    }

    /// The timeline of these lanes; its buckets are counted from `origin`.
    #[must_use]
    pub fn new(setup: &Setup<'_>, origin: i64) -> Self {
        let classes: Vec<Arc<str>> = setup.classes.iter().map(|class| class.name.clone()).collect();
        let class_numbers = (0..classes.len() as u32).collect();
        let (marking, holes) = (marks::marking(setup.classes), setup.holes());
        let has_early = marks::has_early(setup.classes) || setup.lanes.iter().any(|lane| lane.apart_ns > 0);
        Self {
            states: StatesAnalysis::new(setup),
            lanes: setup.lanes.to_vec(),
            classes,
            class_numbers,
            marking,
            holes,
            origin,
            is_of_some: false,
            has_early,
            own: DeclaredTracks::default(),
        }
    }

    /// The same with numbers that an earlier timeline has given, of which there are fewer: classes
    /// of one name have one number, and so have calls. So the state behind a part of traces goes on
    /// to mean the same when they have grown.
    #[must_use]
    pub fn after(self, earlier: &ValueNumbering) -> Self {
        let mut classes = earlier.classes.clone();
        let mut known: HashMap<Arc<str>, u32> = classes.iter().cloned().zip(0..).collect();
        let mut number = |name: &Arc<str>| {
            *known.entry(Arc::clone(name)).or_insert_with(|| {
                classes.push(Arc::clone(name));
                classes.len() as u32 - 1
            })
        };
        let class_numbers = self.class_numbers.iter().map(|class| number(&self.classes[*class as usize])).collect();
        Self { classes, class_numbers, states: self.states.after(&earlier.calls), ..self }
    }

    /// The numbers of values that depend on which traces these are.
    #[must_use]
    pub fn numbers(&self) -> ValueNumbering {
        ValueNumbering { classes: self.classes.clone(), calls: self.states.call_names().to_vec() }
    }

    /// With own analyses; [`DeclaredTracks::mapping`] binds their rules.
    #[must_use]
    pub fn with_own(self, own: DeclaredTracks) -> Self {
        Self { own, ..self }
    }

    /// The same for traces with only some of the events. These say how many they are, the latency
    /// between two of them that begin and end, the woken threads and the messages that are sent and
    /// received; only all events together say the states in between.
    #[must_use]
    pub fn of_some(self) -> Self {
        Self { is_of_some: true, states: self.states.of_some(), ..self }
    }

    /// For reading a chunk in buckets of a level.
    #[must_use]
    pub fn reading(&self, level: Level) -> ChunkReading<'_> {
        ChunkReading { timeline: self, level }
    }

    /// Lanes of events.
    #[must_use]
    pub fn lanes(&self) -> &[LaneFacts] {
        &self.lanes
    }

    /// The name of a class of events.
    #[must_use]
    pub fn class(&self, number: u64) -> Option<&str> {
        self.classes.get(usize::try_from(number).ok()?).map(|name| &**name)
    }

    /// The state before the first chunk.
    #[must_use]
    pub fn begin(&self) -> TimelinePart {
        TimelinePart { states: self.states.begin(), ..self.empty() }
    }

    fn empty(&self) -> TimelinePart {
        TimelinePart {
            states: self.states.init(),
            counts: Vec::new(),
            wakeups: Vec::new(),
            marks: Marks::default(),
            slices: OpenSlices::default(),
            lasting: Lasting::default(),
            messages: PendingMessages::default(),
            people: BTreeMap::new(),
        }
    }

    /// Widens the state behind a part of the traces when these had fewer lanes, of which the first
    /// ones are the same.
    pub fn widen(&self, state: &mut TimelinePart) {
        self.states.widen(&mut state.states);
    }

    /// A chunk was read as a whole: work that needs nothing else is done, so that it is sealed
    /// quickly.
    pub fn settle(&self, chunk: &mut TimelinePart) {
        chunk.marks.put_in_order();
    }

    /// The keys of all tracks before a chunk that it needs.
    #[must_use]
    pub fn asked(&self, chunk: &TimelinePart) -> Vec<u64> {
        let mut asked = self.states.asked(&chunk.states);
        asked.extend(OpenSlices::asked(&chunk.marks.marks));
        asked.extend(chunk.marks.called.keys());
        asked.extend(PendingMessages::asked(&chunk.marks.posts, self.has_early));
        if !self.is_of_some {
            asked.extend((0..self.hosts()).flat_map(|host| Crowd::ALL.map(|crowd| crowd.key(host))));
        }
        asked
    }

    /// The keys that have to be asked besides, after the first ones: of threads that run when it
    /// begins, of intervals that are open then.
    #[must_use]
    pub fn asked_next(&self, known: &HashMap<u64, Option<(u64, i64)>>) -> Vec<u64> {
        let running = known.iter().filter_map(|(key, now)| {
            let (kind, host, _, track) = Entity::of_key(*key)?;
            let is_thread = (kind, track) == (EntityKind::Cpu, cpu_track::THREAD);
            let tid = (now.filter(|_| is_thread)?.0 as u32).cast_signed();
            (tid != 0).then(|| Entity::new(EntityKind::Thread, host, tid))
        });
        running
            .flat_map(states::keys)
            .chain(OpenSlices::asked_next(known))
            .chain(PendingMessages::asked_next(known))
            .collect()
    }

    /// The name of a system call.
    #[must_use]
    pub fn call(&self, value: u64) -> String {
        self.states.call(value)
    }

    /// The state before a chunk, from the nodes: for the keys that were asked, their values there
    /// and since when.
    #[must_use]
    pub fn before(&self, chunk: &TimelinePart, known: &HashMap<u64, Option<(u64, i64)>>) -> TimelinePart {
        TimelinePart {
            states: self.states.before(&chunk.states, known),
            slices: OpenSlices::before(known),
            lasting: Lasting::before(known),
            messages: PendingMessages::before(&chunk.marks.posts, known),
            ..self.empty()
        }
    }

    /// Puts a chunk behind all that is before it; it begins at `begin`.
    pub fn seal(&self, before: &mut TimelinePart, chunk: TimelinePart, begin: i64) -> Sealed {
        let TimelinePart { mut states, counts, wakeups, marks, .. } = chunk;
        let last_names = states.take_last_names();
        let sequel = self.states.follow(&mut before.states, states, begin);
        let slices = before.slices.follow(&marks.marks, &self.holes);
        let changes = before.lasting.follow(marks.changes);
        let messages = before.messages.follow(&marks.posts);
        let crowds = if self.is_of_some { Vec::new() } else { self.crowds(&mut before.lasting, &sequel, begin) };
        Sealed { sequel, slices, changes, messages, crowds, counts, wakeups, last_names, begin }
    }

    /// Machines are numbered: how many there are.
    fn hosts(&self) -> u16 {
        self.lanes.iter().map(|lane| lane.host + 1).max().unwrap_or(0)
    }

    /// When threads of a chunk that begins at `since` come and go that are counted; and how many more there were before than when the trace
    /// began.
    fn crowds(&self, lasting: &mut Lasting, sequel: &StatesSequel, since: i64) -> Vec<(u64, i64, OverlapTally)> {
        let mut hosts: Vec<[OverlapTally; 2]> = (0..self.hosts()).map(|_| Default::default()).collect();
        let mut add = |run: &StateRun| {
            let Some((crowd, host)) = Crowd::of(run.key, run.value) else { return };
            let tally = &mut hosts[usize::from(host)][crowd as usize];
            // As [`TimelineAnalysis::run`] draws it.
            if run.end < since {
                return;
            }
            if since <= run.begin {
                tally.begins.push(run.begin);
            }
            if run.end != i64::MAX {
                tally.ends.push(run.end);
            }
        };
        sequel.inner.each(|run| add(&run)).expect("runs of a chunk are in memory");
        sequel.ended.iter().chain(&sequel.open).for_each(&mut add);
        let keys = (0..self.hosts()).flat_map(|host| Crowd::ALL.map(|crowd| crowd.key(host)));
        let tallies = keys.zip(hosts.into_iter().flatten());
        let before = |(key, tally): (u64, OverlapTally)| (key, lasting.tally(key, tally.net()), tally);
        tallies.filter(|(_, tally)| !tally.is_empty()).map(before).collect()
    }

    /// The cells of a chunk in buckets of the level that it was read with; with all values, of
    /// which those that end in doubt say so (see [`told`]), or with the most important ones and
    /// without the woken threads.
    #[must_use]
    pub fn node(&self, sealed: Sealed, level: Level, is_whole: bool) -> TimelineNode {
        let node = NodeBuilder::new(self.origin, level);
        self.drawn(sealed, if is_whole { node } else { node.thinned(values_max) }, is_whole)
    }

    /// The same with all values, of some tracks only.
    #[must_use]
    pub fn node_of(&self, sealed: Sealed, level: Level, keys: &[u64]) -> TimelineNode {
        self.drawn(sealed, NodeBuilder::new(self.origin, level).only(keys), true)
    }

    fn drawn(&self, sealed: Sealed, mut node: NodeBuilder, is_whole: bool) -> TimelineNode {
        let Sealed { sequel, slices, changes, messages, crowds, counts, wakeups, begin, .. } = sealed;
        match self.is_of_some {
            true => self.durations(&mut node, sequel, begin),
            false => self.runs(&mut node, sequel, (begin, is_whole)),
        }
        for BucketCount { key, bucket, class, count } in counts {
            node.count(key, bucket, self.class_numbers[class as usize].into(), count);
        }
        for (at, key, value) in wakeups {
            let bucket = node.bucket(at);
            node.count(key, bucket, if is_whole { value } else { value | ANYBODY }, 1);
        }
        slices.draw(&mut node, is_whole);
        changes.draw(&mut node);
        messages.draw(&mut node);
        for (key, before, tally) in crowds {
            tally.sequel(key, before).draw(&mut node);
        }
        node.build()
    }

    /// The states of CPUs and threads in a chunk, from when to when, and the durations of those
    /// that end in it.
    fn runs(&self, node: &mut NodeBuilder, sequel: StatesSequel, (begin, is_whole): (i64, bool)) {
        let is_drawn = |run: &StateRun| !is_name(run.key);
        let mut add = |run: StateRun| self.run(node, run, (begin, is_whole));
        sequel.inner.into_memory().into_iter().filter(is_drawn).for_each(&mut add);
        sequel.ended.into_iter().filter(is_drawn).for_each(add);
        let open = sequel.open.into_iter().filter(is_drawn);
        open.for_each(|run| node.open(run.key, run.begin, shown(run.key, run.value)));
    }

    /// The durations that end in a chunk; and the open ones behind it, for code that reads the next
    /// one alone.
    fn durations(&self, node: &mut NodeBuilder, sequel: StatesSequel, since: i64) {
        let is_drawn = |run: &StateRun| !is_name(run.key);
        let lasted = |node: &mut NodeBuilder, run: &StateRun| {
            if since <= run.end {
                Self::lasted(node, run);
            }
        };
        sequel.inner.into_memory().iter().filter(|run| is_drawn(run)).for_each(|run| lasted(node, run));
        for run in sequel.ended.iter().filter(|run| is_drawn(run)) {
            lasted(node, run);
            node.known(run.key, None);
        }
        let open = sequel.open.iter().filter(|run| is_drawn(run));
        open.for_each(|run| node.known(run.key, Some((run.value, run.begin))));
    }

    /// A run that ends in a chunk that begins at `since`; and whether its value tells that it is in doubt.
    fn run(&self, node: &mut NodeBuilder, run: StateRun, (since, is_whole): (i64, bool)) {
        let StateRun { key, begin, end, value } = run;
        if end < since {
            return;
        }
        let doubt = if is_whole { value & DOUBT } else { 0 };
        let value = shown(key, value);
        if since <= begin {
            node.run(key, (begin, end), value | doubt);
        } else {
            node.end(key, end, value | doubt);
        }
        Self::lasted(node, &run);
    }

    /// Counts how long a run took, where its begin is known and it ends with the value that it
    /// began with, as analyses have it: a run in doubt or cut has no end among the events that are
    /// there.
    fn lasted(node: &mut NodeBuilder, run: &StateRun) {
        if run.begin != i64::MIN
            && run.value & FLAGS == 0
            && let Some(latency) = latency(run.key, run.value)
        {
            let bucket = node.bucket(run.end);
            node.count(latency, bucket, bin(run.begin.abs_diff(run.end)).into(), 1);
        }
    }
}

/// Whether runs of a key say the name of a thread: lists say that, and it is not drawn.
fn is_name(key: u64) -> bool {
    let track = (key >> 56) as usize;
    let is_thread = key >> 48 & 0xff == EntityKind::Thread as u64;
    is_thread && matches!(track, thread_track::NAME | thread_track::PROCESS)
}

/// A run's value as it is shown: where a thread runs, the CPUs' tracks say.
fn shown(key: u64, value: u64) -> u64 {
    let value = value & !FLAGS;
    if key >> 48 == STATE { value >> 32 << 32 } else { value }
}

/// The meaning of a value of a chunk's cells: which value it is, and whether events are missing
/// around its run. Only CPUs, threads and durations have such values, in nodes with all values.
#[must_use]
pub fn told(key: u64, value: u64) -> (u64, bool) {
    match TrackKey::of(key).map(|key| key.thing) {
        Some(Thing::Cpu | Thing::Thread | Thing::Slices | Thing::LaneSlices) => (value & !DOUBT, value & DOUBT != 0),
        _ => (value, false),
    }
}

/// The track of how long runs of a value take, if there is one.
fn latency(key: u64, value: u64) -> Option<u64> {
    let (kind, host, _, track) = Entity::of_key(key)?;
    let latency = match (kind, track) {
        (EntityKind::Cpu, cpu_track::IRQ) => Latency::Irqs,
        (EntityKind::Cpu, cpu_track::SOFTIRQ) => Latency::Softirqs,
        (EntityKind::Thread, thread_track::CALL) => Latency::Calls,
        (EntityKind::Thread, thread_track::STATE) => {
            matches!(ThreadState::of(value)?.0, ThreadState::Preempted | ThreadState::Woken | ThreadState::New)
                .then_some(Latency::Waiting)?
        }
        _ => return None,
    };
    Some(TrackKey { thing: Thing::Latency, host, number: latency as i32, track: 0 }.key())
}

impl Sealed {
    /// The names of threads, in the order of time: keys of their names and processes, and their
    /// values. Also of threads that have ended: a user that looks at the runs of CPUs wants to know
    /// their threads.
    ///
    /// # Panics
    ///
    /// Never: runs of a chunk are in memory.
    #[must_use]
    pub fn names(&self) -> Vec<(TrackKey, u64)> {
        let mut names = Vec::new();
        let mut add = |run: &StateRun| {
            if is_name(run.key) {
                names.push((run.begin, run.key, run.value & !FLAGS));
            }
        };
        self.sequel.ended.iter().for_each(&mut add);
        self.sequel.inner.each(|run| add(&run)).expect("runs of a chunk are in memory");
        self.sequel.open.iter().for_each(add);
        names.extend(&self.last_names);
        names.sort_by_key(|(begin, ..)| *begin);
        names.into_iter().filter_map(|(_, key, value)| Some((TrackKey::of(key)?, value))).collect()
    }

    /// The ways that messages went which arrived.
    pub fn routes(&self) -> impl Iterator<Item = Route> + '_ {
        self.messages.routes()
    }

    /// Runs that began before the begin of reading: the values of tracks at the trace's begin.
    pub fn initial(&self) -> impl Iterator<Item = (u64, u64)> {
        let is_old = |run: &&StateRun| run.begin == i64::MIN && !is_name(run.key);
        self.sequel.ended.iter().filter(is_old).map(|run| (run.key, shown(run.key, run.value)))
    }
}

impl Analysis for ChunkReading<'_> {
    type State = TimelinePart;
    type Lane<'a>
        = TimelineLane<'a>
    where
        Self: 'a;
    type Note = StatesNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "timeline", version: 6 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> TimelinePart {
        self.timeline.empty()
    }

    fn enter(&self, lane: usize) -> TimelineLane<'_> {
        let timeline = self.timeline;
        let host = timeline.lanes[lane].host;
        let key = TrackKey { thing: Thing::LaneEvents, host, number: lane as i32, track: 0 }.key();
        let states = timeline.states.enter(lane);
        let (counter, marks) = (ClassCounter::default(), Marks::default());
        let (people, last) = (HashMap::new(), None);
        TimelineLane {
            timeline,
            states,
            key,
            level: self.level,
            counter,
            counts: Vec::new(),
            number: lane,
            marks,
            people,
            last,
        }
    }

    fn step(&self, lane: &mut TimelineLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<StatesNote>) {
        let since = event.time.saturating_sub(lane.timeline.origin).max(0).cast_unsigned();
        let (bucket, class) = (since >> lane.level, event.number as u32);
        lane.counter.add(bucket, class, (lane.key, &mut lane.counts));
        if let Some(tid) = event.small_context(TID) {
            lane.of_thread(tid, bucket, class);
            if lane.last != Some(tid) {
                lane.meet(event, tid);
            }
        }
        if self.timeline.marking[event.number] {
            let of = (lane.number, &self.timeline.lanes[lane.number]);
            match self.timeline.is_of_some {
                true => lane.marks.take_posts(event, of),
                false => lane.marks.take(event, of, &self.timeline.own),
            }
        }
        self.timeline.states.step(&mut lane.states, event, notes);
    }

    fn note(&self, state: &mut TimelinePart, lane: usize, time: i64, note: StatesNote) {
        if let (StatesNote::Wake(tid, _), Some(cpu)) = (&note, self.timeline.lanes[lane].cpu) {
            let key = TrackKey { thing: Thing::Wakeups, host: self.timeline.lanes[lane].host, number: 0, track: 0 };
            state.wakeups.push((time, key.key(), wakeup(cpu, *tid)));
        }
        self.timeline.states.note(&mut state.states, lane, time, note);
    }

    fn leave(&self, state: &mut TimelinePart, lane: usize, end: TimelineLane<'_>) {
        let TimelineLane { states, key, mut counter, mut counts, marks, people, .. } = end;
        let host = self.timeline.lanes[lane].host;
        state.people.extend(people.into_iter().map(|(tid, called)| ((host, tid), called)));
        state.marks.extend(marks);
        counter.flush(key, &mut counts);
        state.counts.extend(counts);
        self.timeline.states.leave(&mut state.states, lane, states);
    }

    /// Chunks are not merged but sealed: see [`TimelineAnalysis::seal`].
    fn merge(&self, left: &mut TimelinePart, right: TimelinePart) {
        left.counts.extend(right.counts);
        left.wakeups.extend(right.wakeups);
        left.marks.extend(right.marks);
        left.people.extend(right.people);
        self.timeline.states.merge(&mut left.states, right.states);
    }

    fn finish(&self, state: &TimelinePart) -> Result<Answer, SpoolError> {
        self.timeline.states.finish(&state.states)
    }
}

impl TimelineLane<'_> {
    /// Another thread than before recorded an event, which may say its name and its process.
    #[inline(never)]
    fn meet(&mut self, event: &AnalysisEvent<'_>, tid: i32) {
        self.last = Some(tid);
        let name = event.comm(&event.class.context[COMM]);
        if !name.is_empty() {
            self.people.insert(tid, (name, event.small_context(PID)));
        }
    }

    /// An event of a thread: where the one before it is alike, there is one more of that.
    #[inline]
    fn of_thread(&mut self, tid: i32, bucket: u64, class: u32) {
        let host = (self.key >> 32) as u16;
        let key = TrackKey { thing: Thing::ThreadEvents, host, number: tid, track: 0 }.key();
        match self.counts.last_mut() {
            Some(last) if (last.key, last.bucket, last.class) == (key, bucket, class) => last.count += 1,
            _ => self.counts.push(BucketCount { key, bucket, class, count: 1 }),
        }
    }
}
