//! The tracks and the meanings of their values: lists that only grow, so that a viewer that has a
//! part of them asks for the rest.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use kymo_analysis::Comm;
use kymo_analysis::states::{ThreadState, cpu_track, softirq_name, thread_track};
use kymo_analysis::timeline::cells::{OTHERS_AT_REST, is_several};
use kymo_analysis::timeline::marks::{NAMES_MAX, integer_name};
use kymo_analysis::timeline::messages::{ROUTES_MAX, Route};
use kymo_analysis::timeline::node::TimelineNode;
use kymo_analysis::timeline::{Called, Crowd, Latency, Sealed, Thing, TimelineAnalysis, TimelinePart, TrackKey};
use serde::{Deserialize, Serialize};

use super::Timeline;
use crate::cache::hash;

/// Tracks and values, from some number on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Catalogue {
    /// That of [`TimelineStatus`](super::TimelineStatus) when this was said.
    pub version: u64,
    /// Tracks, in the order of their numbers.
    pub tracks: Vec<Track>,
    /// Values, in the order of theirs.
    pub values: Vec<TrackValue>,
}

/// The kinds of a track's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrackKind {
    /// One value at a time.
    States,
    /// Things that take no time, counted by their values.
    Instants,
    /// Durations, counted by how long they are.
    Heat,
    /// From one track to another.
    Arrows,
    /// A number.
    Counter,
}

/// A track.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Track {
    /// Its number here; another one whenever the trace is opened.
    pub number: u32,
    /// Its name everywhere and always.
    pub id: String,
    /// The kind of its items.
    pub kind: TrackKind,
    /// Its name for people.
    pub name: String,
    /// The group that it belongs to.
    pub group: Cow<'static, str>,
    /// The machine, if there are several.
    pub host: Option<String>,
    /// Its CPU.
    pub cpu: Option<u32>,
    /// Its thread.
    pub tid: Option<i32>,
    /// The thread's process.
    pub process: Option<i64>,
    /// How deep its items lie inside others; 0: inside none.
    pub depth: Option<u32>,
    /// The track that it is a detail of.
    pub parent: Option<u32>,
    /// The unit of a counter, if that is known: `bytes`.
    pub unit: Option<String>,
}

/// A value of tracks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrackValue {
    /// Its number here; another one whenever the trace is opened.
    pub number: u32,
    /// Its name for people.
    pub label: String,
    /// Its kind: `thread`, `doing`, `call`, `irq`, `softirq`, `event`, `slice`, `state`, `message`,
    /// `estimate`, `others`.
    pub kind: &'static str,
    /// The same for values that should look the same, wherever they are.
    pub colour: u32,
    /// It means that nothing is done: a CPU is idle, a thread does not run.
    pub is_rest: bool,
    /// The track of the thread that it is.
    pub track: Option<u32>,
    /// The process of the thread that it is, if that is known.
    pub process: Option<i64>,
    /// The name of the process without the part behind a `/`, by which the kernel's threads are
    /// numbered.
    pub application: Option<String>,
    /// The same for the same application, in all traces.
    pub application_colour: Option<u32>,
}

/// The owner and kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ValueMeaning {
    Thread(u16),
    Irq(u16),
    Softirq,
    Doing,
    Call,
    Event,
    /// A duration by its name.
    Slice,
    /// A state that events declare.
    State,
    /// A message by its name.
    Message,
    /// Events that are not read yet.
    Estimate,
}

/// The track of all events, from all recorders: that of no lane. Nodes have none; it is the sum of
/// all lanes'.
pub(super) const ALL_EVENTS: TrackKey = TrackKey { thing: Thing::LaneEvents, host: 0, number: -1, track: 0 };

/// The names of tracks and values.
pub(super) struct TrackNames {
    held: Mutex<CatalogueState>,
    machines: Mutex<Machines>,
}

/// The machines.
#[derive(Default)]
struct Machines {
    /// There are several lanes, whose events have a track together.
    has_all: bool,
    /// Machines' names, if there are several.
    hosts: BTreeMap<u16, Option<String>>,
}

/// The state that is kept with the pyramid.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CatalogueFacts {
    /// Keys of tracks, in the order of their numbers.
    pub(super) tracks: Vec<u64>,
    /// The values of tracks when the trace began, as far as that is told later.
    pub(super) initial: BTreeMap<u64, u64>,
    pub(super) comms: BTreeMap<u64, Comm>,
    /// Of threads the digests of their names, and their processes.
    pub(super) names: BTreeMap<(u16, i32), u64>,
    pub(super) processes: BTreeMap<(u16, i32), u64>,
    pub(super) irqs: BTreeMap<(u16, u64), String>,
    /// The names of durations and states.
    pub(super) slices: BTreeMap<u64, String>,
    /// Counters and components, by the keys of their tracks.
    pub(super) called: BTreeMap<u64, Called>,
    /// Where messages go, by the values that stand for that.
    pub(super) routes: BTreeMap<u64, Route>,
    /// The unreadable parts: where and why.
    pub(super) faults: BTreeSet<(String, String)>,
}

#[derive(Default)]
struct CatalogueState {
    known: CatalogueFacts,
    numbers: HashMap<u64, u32>,
    values: Vec<TrackValue>,
    /// The meanings of the values, in their order.
    value_keys: Vec<(ValueMeaning, u64)>,
    value_numbers: HashMap<(ValueMeaning, u64), u32>,
    /// How many threads were counted when the trace began, by tracks.
    crowds: HashMap<u64, u32>,
}

impl CatalogueState {
    /// Sets the value of a track when the trace began.
    fn initial(&mut self, key: u64, value: u64) {
        if let btree_map::Entry::Vacant(entry) = self.known.initial.entry(key) {
            entry.insert(value);
            Crowd::counting(key, value).into_iter().for_each(|crowd| *self.crowds.entry(crowd).or_default() += 1);
        }
    }

    fn learn_routes(&mut self, sealed: &Sealed) {
        for route in sealed.routes() {
            if self.known.routes.len() < ROUTES_MAX {
                self.known.routes.insert(route.value(), route);
            }
        }
    }

    fn track(&mut self, key: u64) -> u32 {
        let Self { known, numbers, .. } = self;
        *numbers.entry(key).or_insert_with(|| {
            known.tracks.push(key);
            known.tracks.len() as u32 - 1
        })
    }
}

fn key(thing: Thing, host: u16, number: i32, track: usize) -> u64 {
    TrackKey { thing, host, number, track: track as u8 }.key()
}

/// The meaning of a track's values; `None`: they are not values of the catalogue.
pub(super) fn meaning(key: u64) -> Option<ValueMeaning> {
    let TrackKey { thing, host, track, .. } = TrackKey::of(key)?;
    Some(match (thing, usize::from(track)) {
        (Thing::Cpu, cpu_track::THREAD) => ValueMeaning::Thread(host),
        (Thing::Cpu, cpu_track::IRQ) => ValueMeaning::Irq(host),
        (Thing::Cpu, cpu_track::SOFTIRQ) => ValueMeaning::Softirq,
        (Thing::Thread, thread_track::STATE) => ValueMeaning::Doing,
        (Thing::Thread, thread_track::CALL) => ValueMeaning::Call,
        (Thing::LaneEvents | Thing::ThreadEvents, _) => ValueMeaning::Event,
        (Thing::Slices | Thing::LaneSlices, _) => ValueMeaning::Slice,
        (Thing::Component, _) => ValueMeaning::State,
        (Thing::Messages, _) => ValueMeaning::Message,
        _ => return None,
    })
}

/// The kind of a track's items; `None`: it holds names of things, or other data about them, and is
/// not shown.
pub(super) fn kind(key: u64) -> Option<TrackKind> {
    let TrackKey { thing, track, .. } = TrackKey::of(key)?;
    Some(match (thing, usize::from(track)) {
        (Thing::Thread, thread_track::NAME | thread_track::PROCESS) => return None,
        (Thing::Cpu | Thing::Thread, _) => TrackKind::States,
        (Thing::LaneEvents | Thing::ThreadEvents, _) => TrackKind::Instants,
        (Thing::Latency, _) => TrackKind::Heat,
        (Thing::Wakeups | Thing::Messages, _) => TrackKind::Arrows,
        (Thing::Slices | Thing::LaneSlices | Thing::Component, _) => TrackKind::States,
        (Thing::Counter | Thing::Crowd, _) => TrackKind::Counter,
        (Thing::SliceKeys | Thing::LaneSliceKeys | Thing::SliceOwners | Thing::MessageQueues, _) => return None,
    })
}

impl TrackNames {
    /// Lanes have tracks before anything is read.
    pub(super) fn new(analysis: &TimelineAnalysis, may_grow: bool) -> Self {
        let names = Self { held: Mutex::default(), machines: Mutex::default() };
        names.met_lanes(analysis, may_grow);
        names
    }

    /// So many lanes there are now; of traces that grow there may be others later.
    pub(super) fn met_lanes(&self, analysis: &TimelineAnalysis, may_grow: bool) {
        let mut held = self.lock();
        let mut hosts = BTreeMap::new();
        for (number, lane) in analysis.lanes().iter().enumerate() {
            held.track(key(Thing::LaneEvents, lane.host, number as i32, 0));
            hosts.insert(lane.host, lane.host_name.clone());
        }
        let several = hosts.len() > 1;
        let name = |(host, name): (u16, Option<String>)| {
            (host, several.then(|| name.unwrap_or_else(|| format!("host {host}"))))
        };
        let has_all = analysis.lanes().len() > 1 || may_grow;
        if has_all {
            held.track(ALL_EVENTS.key());
        }
        drop(held);
        *self.machines() = Machines { has_all, hosts: hosts.into_iter().map(name).collect() };
    }

    fn machines(&self) -> MutexGuard<'_, Machines> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, CatalogueState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many tracks and values there are.
    pub(super) fn count(&self) -> (u32, u32) {
        let held = self.lock();
        (held.known.tracks.len() as u32, held.values.len() as u32)
    }

    /// Learns a chunk's facts about the time before it, and its names.
    pub(super) fn learn(&self, before: &TimelinePart, sealed: &Sealed) {
        let mut held = self.lock();
        for (key, value) in sealed.initial() {
            held.initial(key, value);
        }
        for (&digest, &comm) in before.names() {
            held.known.comms.entry(digest).or_insert(comm);
        }
        for (TrackKey { host, number, track, .. }, value) in sealed.names() {
            let is_name = usize::from(track) == thread_track::NAME;
            let list = if is_name { &mut held.known.names } else { &mut held.known.processes };
            list.insert((host, number), value);
        }
        held.known.irqs.extend(before.irqs().iter().map(|(irq, name)| (*irq, name.clone())));
        held.learn_routes(sealed);
    }

    /// Where messages go that arrive in a chunk.
    pub(super) fn learn_routes(&self, sealed: &Sealed) {
        self.lock().learn_routes(sealed);
    }

    /// From where to where messages go, and their names, by the value that stands for that.
    pub(super) fn route(&self, value: u64) -> Option<Route> {
        self.lock().known.routes.get(&value).copied()
    }

    /// Learns the names in a chunk that was read, before they are shown.
    pub(super) fn learn_texts(&self, read: &TimelinePart) {
        let mut held = self.lock();
        for (&key, called) in read.called() {
            if held.known.called.len() < NAMES_MAX {
                held.known.called.entry(key).or_insert_with(|| called.clone());
            }
        }
        for (&thread, &(name, process)) in read.people() {
            // The kernel's name goes before.
            held.known.names.entry(thread).or_insert_with(|| name.digest());
            held.known.comms.entry(name.digest()).or_insert(name);
            if let Some(process) = process {
                held.known.processes.entry(thread).or_insert_with(|| i64::from(process).cast_unsigned());
            }
        }
        for (&number, name) in read.slice_names() {
            if held.known.slices.len() < NAMES_MAX {
                held.known.slices.entry(number).or_insert_with(|| name.clone());
            }
        }
    }

    /// Something could not be read. So many are kept.
    pub(super) fn meet_fault(&self, place: String, message: String, most: usize) {
        let faults = &mut self.lock().known.faults;
        if faults.len() < most {
            faults.insert((place, message));
        }
    }

    /// The parts that could not be read, as far as they were met.
    pub(super) fn faults(&self) -> BTreeSet<(String, String)> {
        self.lock().known.faults.clone()
    }

    /// The names of the machines, if there are several.
    pub(super) fn machine_names(&self) -> Vec<String> {
        self.machines().hosts.values().flatten().cloned().collect()
    }

    /// The tracks of a node.
    pub(super) fn meet(&self, node: &TimelineNode) {
        let mut held = self.lock();
        for part in node.tracks().filter(|part| kind(part.key).is_some()) {
            held.track(part.key);
        }
    }

    /// The values of tracks when the trace began.
    pub(super) fn initial(&self, key: u64) -> Option<u64> {
        self.lock().known.initial.get(&key).copied()
    }

    pub(super) fn known(&self) -> CatalogueFacts {
        self.lock().known.clone()
    }

    /// Restores the state that was kept with a pyramid.
    pub(super) fn recall(&self, known: CatalogueFacts) {
        let mut held = self.lock();
        held.numbers = known.tracks.iter().enumerate().map(|(number, key)| (*key, number as u32)).collect();
        held.crowds.clear();
        for crowd in known.initial.iter().filter_map(|(key, value)| Crowd::counting(*key, *value)) {
            *held.crowds.entry(crowd).or_default() += 1;
        }
        held.known = known;
        if self.machines().has_all {
            held.track(ALL_EVENTS.key());
        }
    }

    /// The count of a track from before the trace began, as far as that is known.
    pub(super) fn crowd(&self, key: u64) -> u32 {
        self.lock().crowds.get(&key).copied().unwrap_or(0)
    }

    /// The keys of tracks; `None`: there is no such track.
    pub(super) fn keys(&self, numbers: &[u32]) -> Result<Vec<u64>, u32> {
        let held = self.lock();
        numbers.iter().map(|&number| held.known.tracks.get(number as usize).copied().ok_or(number)).collect()
    }

    /// The CPUs of a machine that are known to have run threads.
    pub(super) fn cpus(&self, host: u16) -> Vec<i32> {
        let held = self.lock();
        let keys = held.known.tracks.iter().filter_map(|key| TrackKey::of(*key));
        let is_cpu =
            |key: &TrackKey| (key.thing, key.host, usize::from(key.track)) == (Thing::Cpu, host, cpu_track::THREAD);
        keys.filter(is_cpu).map(|key| key.number).collect()
    }

    /// The number of a track; an unknown track gets one.
    pub(super) fn number(&self, key: u64) -> u32 {
        self.lock().track(key)
    }

    /// The number of a value; it gets one at the first request.
    pub(super) fn value(&self, analysis: &TimelineAnalysis, meaning: ValueMeaning, value: u64) -> u32 {
        let mut held = self.lock();
        if let Some(number) = held.value_numbers.get(&(meaning, value)) {
            return *number;
        }
        let number = held.values.len() as u32;
        let described = describe(&mut held, analysis, meaning, value);
        held.values.push(TrackValue { number, ..described });
        held.value_keys.push((meaning, value));
        held.value_numbers.insert((meaning, value), number);
        number
    }

    /// The value of a number that was told.
    pub(super) fn told(&self, number: u32) -> Option<TrackValue> {
        self.lock().values.get(number as usize).cloned()
    }

    fn host(&self, host: u16) -> Option<String> {
        self.machines().hosts.get(&host).cloned().flatten()
    }
}

fn comm(known: &CatalogueFacts, host: u16, tid: i32) -> Option<String> {
    known.comms.get(known.names.get(&(host, tid))?)?.text()
}

fn colour(text: &str) -> u32 {
    hash(text.as_bytes()) as u32
}

/// The name of a process' application. Threads of the kernel are named by their task, and behind
/// that by their number: `kworker/0:1`.
fn application(known: &CatalogueFacts, host: u16, process: Option<i64>) -> Option<String> {
    let name = comm(known, host, i32::try_from(process?).ok()?)?;
    let kind = name.split('/').next().filter(|kind| !kind.is_empty());
    Some(kind.unwrap_or(&name).to_owned())
}

/// Describes a value.
fn describe(held: &mut CatalogueState, analysis: &TimelineAnalysis, meaning: ValueMeaning, value: u64) -> TrackValue {
    let of = |kind, label: String, colour| TrackValue {
        number: 0,
        label,
        kind,
        colour,
        is_rest: false,
        track: None,
        process: None,
        application: None,
        application_colour: None,
    };
    match meaning {
        _ if is_several(value) => {
            TrackValue { is_rest: value == OTHERS_AT_REST, ..of("others", "others".to_owned(), 0) }
        }
        ValueMeaning::Thread(_) if value == 0 => TrackValue { is_rest: true, ..of("thread", "idle".to_owned(), 0) },
        ValueMeaning::Thread(host) => {
            let tid = (value as u32).cast_signed();
            let name = comm(&held.known, host, tid);
            let track = Some(held.track(key(Thing::Thread, host, tid, thread_track::STATE)));
            let label = name.as_ref().map_or_else(|| format!("thread {tid}"), |name| format!("{name} ({tid})"));
            // Threads of the same name are of one application, and look alike.
            let colour = colour(name.as_deref().unwrap_or(&label));
            let process = held.known.processes.get(&(host, tid)).map(|pid| pid.cast_signed());
            let application = application(&held.known, host, process);
            let application_colour = application.as_deref().map(self::colour);
            TrackValue { track, process, application, application_colour, ..of("thread", label, colour) }
        }
        ValueMeaning::Irq(host) => {
            let name = held.known.irqs.get(&(host, value));
            let label = name.map_or_else(|| format!("irq {value}"), |name| format!("irq {value} {name}"));
            let colour = colour(&label);
            of("irq", label, colour)
        }
        ValueMeaning::Softirq => {
            let label = softirq_name(value.cast_signed()).map_or_else(|| format!("softirq {value}"), ToOwned::to_owned);
            let colour = colour(&label);
            of("softirq", label, colour)
        }
        ValueMeaning::Doing => match ThreadState::of(value) {
            Some((state, _)) => TrackValue {
                is_rest: state != ThreadState::Running,
                ..of("doing", state.name().to_owned(), state as u32)
            },
            None => of("doing", format!("state {value}"), 0),
        },
        ValueMeaning::Call => {
            let label = analysis.call(value);
            let colour = colour(&label);
            of("call", label, colour)
        }
        ValueMeaning::Event => {
            let label = analysis.class(value).unwrap_or_default().to_owned();
            let colour = colour(&label);
            of("event", label, colour)
        }
        ValueMeaning::Slice | ValueMeaning::State | ValueMeaning::Message => {
            let label = match (integer_name(value), held.known.slices.get(&value)) {
                (Some(number), _) => number.to_string(),
                (None, Some(name)) => name.clone(),
                (None, None) => "one of too many names".to_owned(),
            };
            let colour = colour(&label);
            let kind = match meaning {
                ValueMeaning::State => "state",
                ValueMeaning::Message => "message",
                _ => "slice",
            };
            of(kind, label, colour)
        }
        ValueMeaning::Estimate => of("estimate", "events (estimated)".to_owned(), 0),
    }
}

impl Timeline {
    /// Tracks and values from these numbers on.
    #[must_use]
    pub fn catalogue(&self, tracks_from: u32, values_from: u32) -> Catalogue {
        let version = self.status().version;
        let mut held = self.names.lock();
        let all = held.known.tracks.clone();
        let tracks = all.iter().enumerate().skip(tracks_from as usize);
        let tracks = tracks.filter_map(|(number, key)| self.track(&mut held, number as u32, *key)).collect();
        // Names and processes may have become known since the first request.
        for number in values_from as usize..held.values.len() {
            let (meaning, value) = held.value_keys[number];
            let described = describe(&mut held, &self.analysis, meaning, value);
            held.values[number] = TrackValue { number: number as u32, ..described };
        }
        let values = held.values.get(values_from as usize..).unwrap_or_default().to_vec();
        Catalogue { version, tracks, values }
    }

    /// A track of the catalogue.
    pub(super) fn track_of(&self, number: u32, key: u64) -> Option<Track> {
        self.track(&mut self.names.lock(), number, key)
    }

    fn track(&self, held: &mut CatalogueState, number: u32, raw: u64) -> Option<Track> {
        let TrackKey { thing, host, number: of, track } = TrackKey::of(raw)?;
        let track_kind = kind(raw)?;
        let detail = usize::from(track);
        let cpu = || Some(of.cast_unsigned());
        let (id, name, group, cpu) = match (thing, detail) {
            (Thing::Cpu, cpu_track::THREAD) => (format!("cpu/{host}/{of}/thread"), format!("CPU {of}"), "CPUs", cpu()),
            (Thing::Cpu, cpu_track::IRQ) => (format!("cpu/{host}/{of}/irq"), "interrupts".into(), "CPUs", cpu()),
            (Thing::Cpu, _) => (format!("cpu/{host}/{of}/softirq"), "softirqs".into(), "CPUs", cpu()),
            (Thing::Thread, thread_track::STATE) => {
                let name =
                    comm(&held.known, host, of).map_or_else(|| format!("thread {of}"), |name| format!("{name} ({of})"));
                (format!("thread/{host}/{of}/state"), name, "Threads", None)
            }
            (Thing::Thread, _) => (format!("thread/{host}/{of}/calls"), "system calls".into(), "Threads", None),
            (Thing::LaneEvents, _) if raw == ALL_EVENTS.key() => {
                ("all/events".into(), "all events".into(), "Events", None)
            }
            (Thing::LaneEvents, _) => {
                let lane = self.analysis.lanes().get(of as usize)?;
                let stream = || lane.name.clone().unwrap_or_else(|| format!("stream {of}"));
                let name = lane.cpu.map_or_else(stream, |cpu| format!("events of CPU {cpu}"));
                (format!("events/{host}/{of}"), name, "Events", lane.cpu)
            }
            (Thing::ThreadEvents, _) => (format!("thread/{host}/{of}/events"), "events".into(), "Threads", None),
            (Thing::Latency, _) => {
                let (id, name) = latency(of)?;
                (format!("latency/{host}/{id}"), name.to_owned(), "Latencies", None)
            }
            (Thing::Wakeups, _) => (format!("wakeups/{host}"), "wakeups".into(), "Arrows", None),
            (Thing::Messages, _) => (format!("messages/{host}"), "messages".into(), "Arrows", None),
            (Thing::Slices, depth) => {
                (format!("thread/{host}/{of}/slices/{depth}"), slices_name(depth), "Threads", None)
            }
            (Thing::LaneSlices, depth) => {
                (format!("events/{host}/{of}/slices/{depth}"), slices_name(depth), "Events", None)
            }
            (Thing::Counter | Thing::Component, _) => return self.named_track(held, number, raw),
            (Thing::Crowd, _) => {
                let (id, name) = crowd(of)?;
                (format!("threads/{host}/{id}"), name.to_owned(), "CPUs", None)
            }
            (Thing::SliceKeys | Thing::LaneSliceKeys | Thing::SliceOwners | Thing::MessageQueues, _) => return None,
        };
        let is_thread = matches!(thing, Thing::Thread | Thing::ThreadEvents | Thing::Slices);
        // Where a thread has no row of its own, those of its details name the thread.
        let is_alone = parent(raw).is_some_and(|parent| !held.numbers.contains_key(&parent));
        let of_whom = comm(&held.known, host, of).filter(|_| is_thread && is_alone);
        let name =
            of_whom.map_or(name.clone(), |comm| format!("{comm} ({of}): {}", name.trim_start_matches("durations, ")));
        Some(Track {
            number,
            id,
            kind: track_kind,
            name,
            group: Cow::Borrowed(group),
            host: self.names.host(host),
            cpu,
            tid: is_thread.then_some(of),
            process: is_thread.then(|| Some(held.known.processes.get(&(host, of))?.cast_signed())).flatten(),
            depth: matches!(thing, Thing::Slices | Thing::LaneSlices).then_some(track.into()),
            parent: parent(raw).and_then(|parent| held.numbers.get(&parent).copied()),
            unit: (thing == Thing::Crowd).then(|| "threads".to_owned()),
        })
    }
}

impl Timeline {
    /// A counter or a component with a name that programs say.
    fn named_track(&self, held: &CatalogueState, number: u32, raw: u64) -> Option<Track> {
        let TrackKey { host, .. } = TrackKey::of(raw)?;
        let Called { name, within, group, unit, is_own } = held.known.called.get(&raw)?;
        let track_kind = kind(raw)?;
        let (kind_id, plain_group) = match track_kind {
            TrackKind::Counter => ("counter", "Counters"),
            _ => ("state", "States"),
        };
        let place: String =
            [group, within].into_iter().flatten().flat_map(|part| ["/", part.as_str()]).chain(["/", name]).collect();
        let id = if *is_own { format!("own{place}") } else { format!("{kind_id}/{host}{place}") };
        let group = group.clone().map_or(Cow::Borrowed(plain_group), Cow::Owned);
        Some(Track {
            number,
            id,
            kind: track_kind,
            name: name.clone(),
            group,
            host: if *is_own { None } else { self.names.host(host) },
            cpu: None,
            tid: None,
            process: within.as_ref().and_then(|within| within.parse().ok()),
            depth: None,
            parent: None,
            unit: unit.clone(),
        })
    }
}

/// The track that one is a detail of.
fn parent(raw: u64) -> Option<u64> {
    let TrackKey { thing, host, number: of, track } = TrackKey::of(raw)?;
    let state = || key(Thing::Thread, host, of, thread_track::STATE);
    match (thing, usize::from(track)) {
        (Thing::Cpu, detail) if detail != cpu_track::THREAD => Some(key(thing, host, of, cpu_track::THREAD)),
        (Thing::ThreadEvents | Thing::Slices, _) => Some(state()),
        (Thing::LaneSlices, _) => Some(key(Thing::LaneEvents, host, of, 0)),
        (Thing::Thread, detail) if detail != thread_track::STATE => Some(state()),
        _ => None,
    }
}

fn slices_name(depth: usize) -> String {
    if depth == 0 { "durations".to_owned() } else { format!("durations, depth {depth}") }
}

fn crowd(number: i32) -> Option<(&'static str, &'static str)> {
    let crowd = *Crowd::ALL.get(usize::try_from(number).ok()?)?;
    Some(match crowd {
        Crowd::Running => ("running", "threads that run"),
        Crowd::Waiting => ("waiting", "threads that wait for a CPU"),
    })
}

fn latency(number: i32) -> Option<(&'static str, &'static str)> {
    let latency = *Latency::ALL.get(usize::try_from(number).ok()?)?;
    Some(match latency {
        Latency::Calls => ("calls", "system calls"),
        Latency::Irqs => ("irqs", "interrupts"),
        Latency::Softirqs => ("softirqs", "softirqs"),
        Latency::Waiting => ("waiting", "waiting for a CPU"),
    })
}
