//! `pairs`: the latency between a begin event and the end event with the same key.
//!
//! ```text
//! CPU 0   ── begin 7 ──────── begin 8 ─────────────────────────
//! CPU 1   ─────────── end 7 ──────────────── begin 9 ────────── end of the trace
//!            └─ 7 ──┘              8 never ended  └─ 9 never ended
//! ```
//!
//! A begin may end anywhere, so that every begin and every end is noted. The caller names these
//! events by their roles ([`EventRole::Begin`], [`EventRole::End`]). A key is that of a mapping (group, key,
//! place), or values of fields that were requested by path. Open begins at the border of two parts
//! are matched when they merge; see [`crate::chains`].

pub(crate) mod question;
mod report;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use kymo_filter::{Filter, NamePath};
use serde::{Deserialize, Serialize};

use crate::answer::Cell;
use crate::chains::{ChainFate, Chains, OPEN_MAX, Timed};
use crate::description::{AnalysisDescription, SupportedOptions};
use crate::key::{Key, KeyValue};
use crate::mapping::{NamePattern, RoleMapping, Section};
use crate::ranking::Ranking;
use crate::roles::{EventRole, FieldIndex, pair};
use crate::windows::Windows;
use crate::{
    Analysis, AnalysisEvent, AnalysisIdentity, Answer, BoundClass, FieldSlot, Histogram, LaneFacts, LaneNotes, Merge,
    Needs, PartShape, Question, RoleEvent, Setup, SpoolError, Wishes,
};

pub use question::{PairsProblem, PairsQuestion};

/// The options of matching pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairsOptions {
    /// Fields that make a key: of the event that begins, and of the one that ends.
    pub keys: Vec<(NamePath, NamePath)>,
    /// A field of the event that begins, by which pairs are grouped; without it, the name that the
    /// mapping gives them.
    pub group: Option<NamePath>,
    /// A key that begins again while it is open is open twice; the last begin ends first.
    pub is_nested: bool,
}

/// Where in [`BoundClass::extra`](crate::BoundClass::extra) the fields are.
#[derive(Clone, Debug, Default)]
struct PairFields {
    paths: Vec<NamePath>,
    begin: Vec<usize>,
    end: Vec<usize>,
    group: Option<usize>,
}

/// The analysis.
#[derive(Debug)]
pub struct PairsAnalysis {
    places: PairFields,
    bases: PairBases,
    is_nested: bool,
    is_by_key: bool,
    lanes: Vec<LaneFacts>,
    has_several_hosts: bool,
    /// Pairs stay on a machine, and there are several.
    is_by_host: bool,
    /// Where events of any lane may be missing.
    holes: Windows,
    /// The same of the lanes of each machine.
    holes_by_host: Vec<Windows>,
    wishes: Wishes,
}

/// Something that is open.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenPair {
    time: i64,
    /// The machine that it does not leave.
    host: Option<u16>,
    group: Key,
    /// It is wanted.
    is_wanted: bool,
}

/// An end that nothing in this part began.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct UnmatchedEnd {
    time: i64,
    host: Option<u16>,
    is_wanted: bool,
}

/// The figures of a group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct PairGroup {
    durations: Histogram,
    never_ended: u64,
    lost_inside: u64,
}

/// A pair that took long: when it began and ended, its key, its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct LongPair {
    begin: i64,
    end: i64,
    key: Key,
    group: Key,
    /// The machine that it does not leave.
    host: Option<u16>,
}

/// The state behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct PairState {
    chains: Chains<Key, OpenPair, UnmatchedEnd>,
    sums: PairSums,
}

/// The decided pairs.
#[derive(Debug, Serialize, Deserialize)]
struct PairSums {
    groups: HashMap<Key, PairGroup>,
    /// Groups beyond [`GROUPS_MAX`] together.
    others: PairGroup,
    longest: Ranking<LongPair>,
    alone: UnmatchedCounts,
    without_key: u64,
    given_up: u64,
}

/// Ends that nothing before them began.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct UnmatchedCounts {
    began_before: u64,
    /// They may have begun in a hole.
    lost_inside: u64,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct PairLane<'a> {
    facts: &'a LaneFacts,
    without_key: u64,
}

/// The notes of a lane.
#[derive(Debug)]
pub enum PairNote {
    /// A pair begins.
    Begin(Key, OpenPair),
    /// Something ends.
    End(Key, UnmatchedEnd),
}

/// Groups that are told apart.
const GROUPS_MAX: usize = 1 << 16;
/// The default number of the longest ones that are shown.
const LONGEST: usize = 10;

/// The events that begin, or end: those of a class with a name like one of these, and for which the
/// condition is true.
#[derive(Clone, Debug)]
pub struct PairEvents {
    /// Names; `*` is any text.
    pub names: Vec<NamePattern>,
    /// All of them, without it.
    pub when: Option<Filter>,
}

/// A mapping that says which events begin and which end, for [`crate::bind::Bindings`]; where an event is chosen several
/// times, the first choice counts.
#[must_use]
pub fn mapping(begin: Vec<PairEvents>, end: Vec<PairEvents>) -> RoleMapping {
    let mut mapping = RoleMapping::new("pairs");
    let sections = |role: EventRole, events: Vec<PairEvents>| {
        events.into_iter().map(move |events| Section { when: events.when, ..Section::new(role, events.names) })
    };
    mapping.sections = sections(EventRole::Begin, begin).chain(sections(EventRole::End, end)).collect();
    mapping
}

impl OpenPair {
    /// One that may end on any machine.
    pub(crate) fn anywhere(time: i64, group: Key, is_wanted: bool) -> Self {
        Self { time, host: None, group, is_wanted }
    }
}

impl UnmatchedEnd {
    /// One that may have begun on any machine.
    pub(crate) fn anywhere(time: i64, is_wanted: bool) -> Self {
        Self { time, host: None, is_wanted }
    }
}

impl Timed for OpenPair {
    fn time(&self) -> i64 {
        self.time
    }
}

impl PairFields {
    fn new(options: &PairsOptions) -> Self {
        let mut places = Self::default();
        places.begin = options.keys.iter().map(|key| places.place(&key.0)).collect();
        places.end = options.keys.iter().map(|key| places.place(&key.1)).collect();
        places.group = options.group.as_ref().map(|group| places.place(group));
        places
    }

    fn place(&mut self, path: &NamePath) -> usize {
        self.paths.iter().position(|known| known == path).unwrap_or_else(|| {
            self.paths.push(path.clone());
            self.paths.len() - 1
        })
    }
}

/// The bases in which people read the values of keys, and a group's.
#[derive(Debug)]
pub(super) struct PairBases {
    key: Vec<u8>,
    group: u8,
}

impl PairBases {
    /// As the first class of events that begin says it.
    fn new(classes: &[BoundClass], places: &PairFields, has_several_hosts: bool) -> Self {
        let begins = |class: &&BoundClass| class.roles.iter().any(|bound| bound.role == EventRole::Begin);
        let Some(class) = classes.iter().find(begins) else { return Self { key: Vec::new(), group: 10 } };
        let bound = class.roles.iter().find(|bound| bound.role == EventRole::Begin).expect("it has that role");
        let is_there = |field: &FieldIndex| bound.slots[*field] != FieldSlot::Absent;
        let of_role = [pair::GROUP, pair::KEY, pair::WITHIN].into_iter().filter(is_there);
        let host = (has_several_hosts && is_there(&pair::WITHIN)).then_some(10);
        let key = host.into_iter().chain(of_role.map(|field| bound.slots[field].base()));
        let key = key.chain(places.begin.iter().map(|place| class.extra[*place].base())).collect();
        Self { key, group: places.group.map_or(10, |place| class.extra[place].base()) }
    }
}

impl PairsAnalysis {
    /// The key in the base that its fields say.
    fn key_cell(&self, key: &Key) -> Cell {
        key.cell_in(&self.bases.key)
    }

    /// The same without the machine, which has a column of its own.
    fn key_cell_of(&self, key: &Key, host: Option<u16>) -> Cell {
        match key {
            Key::Labels(labels) if host.is_some() && self.has_several_hosts && labels.len() > 1 => {
                Key::from(labels[1..].to_vec()).cell_in(self.bases.key.get(1..).unwrap_or_default())
            }
            key => self.key_cell(key),
        }
    }

    /// The description that people see before they ask.
    pub(crate) fn description() -> AnalysisDescription {
        const OPTIONS: SupportedOptions = SupportedOptions { by: &["key"], names: true, ..SupportedOptions::COMMON };
        const SENTENCE: &str = "Latency between a start event and its matching end event";
        AnalysisDescription::new("pairs", "Pairs of events", SENTENCE, OPTIONS)
            .with_view(&["total", "per-group", "longest"], Self::headline)
    }

    /// The question that it answers.
    pub(crate) fn question(options: PairsOptions, mapping: Option<RoleMapping>, wishes: &Wishes) -> Question<'static> {
        let needs = Self::needs(&options, wishes);
        let question = Question::new(needs, &[EventRole::Begin], move |setup| Self::new(setup, &options));
        Question { mapping, ..question }
    }

    /// The roles and fields that it needs.
    fn needs(options: &PairsOptions, wishes: &Wishes) -> Needs {
        let fields = vec![pair::KEY, pair::PAIR_NAME, pair::WITHIN, pair::GROUP];
        Needs {
            roles: vec![(EventRole::Begin, fields.clone()), (EventRole::End, fields)],
            context: wishes.context(),
            extra: PairFields::new(options).paths,
            ..Needs::default()
        }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>, options: &PairsOptions) -> Self {
        let lanes = setup.lanes.to_vec();
        let (holes, holes_by_host) = (setup.holes(), setup.holes_by_host());
        let places = PairFields::new(options);
        let has_several_hosts = lanes.iter().any(|lane| lane.host != lanes[0].host);
        let bases = PairBases::new(setup.classes, &places, has_several_hosts);
        Self {
            places,
            bases,
            is_nested: options.is_nested,
            is_by_key: setup.wishes.by.iter().any(|by| by == "key"),
            has_several_hosts,
            is_by_host: has_several_hosts && has_within(setup.classes),
            lanes,
            holes,
            holes_by_host,
            wishes: setup.wishes.clone(),
        }
    }

    /// The key of an event: the fields of the role, then those that were requested; `None` if it
    /// lacks some of that.
    fn key(&self, lane: &PairLane<'_>, meaning: RoleEvent<'_>, places: &[usize]) -> Option<Key> {
        let extra = &meaning.event.class.extra;
        let at = |place: &usize| extra.get(*place).unwrap_or(&FieldSlot::Absent);
        let of_role = [pair::GROUP, pair::KEY, pair::WITHIN].map(|field| meaning.value(field));
        if let ([None, None, None], [place]) = (of_role, places) {
            return KeyValue::of(meaning.event, at(place)).map(Key::one);
        }
        let host = of_role[2].filter(|_| self.has_several_hosts).map(|_| KeyValue::Integer(i64::from(lane.facts.host)));
        let mut labels: Vec<KeyValue> =
            host.into_iter().chain(of_role.into_iter().flatten().map(KeyValue::from)).collect();
        for place in places {
            labels.push(KeyValue::of(meaning.event, at(place))?);
        }
        Some(Key::from(labels))
    }

    /// The field that the user names; otherwise the mapping's name, behind the group that it is in, if that says more.
    fn group(&self, meaning: RoleEvent<'_>, key: &Key) -> Key {
        if self.is_by_key {
            return key.clone();
        }
        if let Some(place) = self.places.group {
            let label = meaning.event.class.extra.get(place).and_then(|slot| KeyValue::of(meaning.event, slot));
            return label.map_or(Key::Empty, Key::one);
        }
        let [group, name] = [pair::GROUP, pair::PAIR_NAME].map(|field| meaning.value(field).map(KeyValue::from));
        match name {
            Some(name) if group.as_ref() != Some(&name) => {
                Key::from(group.into_iter().chain([name]).collect::<Vec<_>>())
            }
            name => group.or(name).map_or(Key::Empty, Key::one),
        }
    }

    /// By all of it, or by its name.
    fn wants_group(&self, group: &Key) -> bool {
        let by_name = || match group {
            Key::Labels(labels) if !self.is_by_key => {
                labels.last().is_some_and(|name| self.wishes.wants_called(&name.to_string()))
            }
            _ => false,
        };
        self.wishes.names.is_empty() || self.wishes.wants_called(&group.to_string()) || by_name()
    }

    /// Counts the fate of a beginning or an end.
    fn decide(&self, sums: &mut PairSums, key: &Key, fate: ChainFate<OpenPair, UnmatchedEnd>) {
        match fate {
            ChainFate::Pair(begin, end) => self.pair(sums, key, begin, end.time),
            ChainFate::Alone(end) => self.ended_alone(&mut sums.alone, end),
            ChainFate::Replaced(open) if open.is_wanted => self.left_open(sums.group(open.group.clone()), &open),
            ChainFate::GivenUp(open) if open.is_wanted => {
                sums.given_up += 1;
                self.left_open(sums.group(open.group.clone()), &open);
            }
            ChainFate::Replaced(_) | ChainFate::GivenUp(_) => {}
        }
    }

    fn ended_alone(&self, alone: &mut UnmatchedCounts, end: UnmatchedEnd) {
        let is_lost = self.is_lossy(end.host, (i64::MIN, end.time));
        *if is_lost { &mut alone.lost_inside } else { &mut alone.began_before } += u64::from(end.is_wanted);
    }

    /// Whether events may be missing between two times: of a machine, if the pair is one's.
    fn is_lossy(&self, host: Option<u16>, (begin, end): (i64, i64)) -> bool {
        let of_host = host.map(|host| self.holes_by_host.get(usize::from(host)));
        of_host.map_or(Some(&self.holes), |holes| holes).is_some_and(|holes| holes.touch(begin, end))
    }

    /// The end of a pair that began then was not seen: it has none, or in a hole.
    fn left_open(&self, group: &mut PairGroup, open: &OpenPair) {
        *if self.is_lossy(open.host, (open.time, i64::MAX)) {
            &mut group.lost_inside
        } else {
            &mut group.never_ended
        } += 1;
    }

    fn pair(&self, sums: &mut PairSums, key: &Key, begin: OpenPair, end: i64) {
        let duration = begin.time.abs_diff(end);
        if !begin.is_wanted || !self.wishes.wants_duration(duration) {
            return;
        }
        if self.is_lossy(begin.host, (begin.time, end)) {
            sums.group(begin.group).lost_inside += 1;
            return;
        }
        let long =
            || LongPair { begin: begin.time, end, key: key.clone(), group: begin.group.clone(), host: begin.host };
        sums.longest.push(duration, long);
        sums.group(begin.group).durations.record(duration);
    }
}

/// Whether events say that their pairs stay somewhere, which is on one machine.
fn has_within(classes: &[BoundClass]) -> bool {
    let mut bound = classes.iter().flat_map(|class| &class.roles);
    bound.any(|bound| bound.role == EventRole::Begin && bound.slots[pair::WITHIN] != FieldSlot::Absent)
}

impl PairState {
    /// So many events lack a field of their key.
    pub(crate) fn lack_key(&mut self, count: u64) {
        self.sums.without_key += count;
    }
}

impl PairSums {
    fn group(&mut self, group: Key) -> &mut PairGroup {
        let is_full = self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&group);
        if is_full { &mut self.others } else { self.groups.entry(group).or_default() }
    }

    fn merge(&mut self, later: Self) {
        for (key, group) in later.groups {
            self.group(key).merge(group);
        }
        self.others.merge(later.others);
        self.longest.merge(later.longest);
        self.alone.began_before += later.alone.began_before;
        self.alone.lost_inside += later.alone.lost_inside;
        self.without_key += later.without_key;
        self.given_up += later.given_up;
    }
}

impl Merge for PairGroup {
    fn merge(&mut self, later: Self) {
        self.durations.merge(later.durations);
        self.never_ended += later.never_ended;
        self.lost_inside += later.lost_inside;
    }
}

impl Analysis for PairsAnalysis {
    type State = PairState;
    type Lane<'a> = PairLane<'a>;
    type Note = PairNote;

    fn identity(&self) -> AnalysisIdentity {
        AnalysisIdentity { name: "pairs", version: 4 }
    }

    fn shape(&self) -> PartShape {
        PartShape::Slice
    }

    fn init(&self) -> PairState {
        let sums = PairSums {
            groups: HashMap::new(),
            others: PairGroup::default(),
            longest: Ranking::new(Some(self.wishes.top.unwrap_or(LONGEST))),
            alone: UnmatchedCounts::default(),
            without_key: 0,
            given_up: 0,
        };
        PairState { chains: Chains::new(self.is_nested, OPEN_MAX), sums }
    }

    fn enter(&self, lane: usize) -> PairLane<'_> {
        PairLane { facts: &self.lanes[lane], without_key: 0 }
    }

    fn step(&self, lane: &mut PairLane<'_>, event: &AnalysisEvent<'_>, notes: &mut LaneNotes<PairNote>) {
        // An event that is both ends first, then begins.
        for role in [EventRole::End, EventRole::Begin] {
            let Some(meaning) = event.roles().find(|meaning| meaning.role == role) else { continue };
            let places = if role == EventRole::Begin { &self.places.begin } else { &self.places.end };
            let is_wanted = self.wishes.wants(lane.facts, event);
            let Some(key) = self.key(lane, meaning, places) else {
                lane.without_key += u64::from(is_wanted);
                return;
            };
            let host = meaning.value(pair::WITHIN).map(|_| lane.facts.host);
            let note = match role {
                EventRole::Begin => {
                    let group = self.group(meaning, &key);
                    let is_wanted = is_wanted && self.wants_group(&group);
                    PairNote::Begin(key, OpenPair { time: event.time, host, group, is_wanted })
                }
                // The group of an end without a begin is unknown.
                _ => {
                    let is_wanted = is_wanted && self.wishes.names.is_empty();
                    PairNote::End(key, UnmatchedEnd { time: event.time, host, is_wanted })
                }
            };
            notes.push(event.time, note);
        }
    }

    fn note(&self, state: &mut PairState, _: usize, _: i64, note: PairNote) {
        let PairState { chains, sums } = state;
        let tell = |key: &Key, fate| self.decide(sums, key, fate);
        match note {
            PairNote::Begin(key, begin) => chains.begin(key, begin, tell),
            PairNote::End(key, end) => chains.end(&key, end, tell),
        }
    }

    fn leave(&self, state: &mut PairState, _: usize, end: PairLane<'_>) {
        state.sums.without_key += end.without_key;
    }

    fn merge(&self, left: &mut PairState, right: PairState) {
        let PairState { chains, sums } = left;
        sums.merge(right.sums);
        chains.merge(right.chains, |key, fate| self.decide(sums, key, fate));
    }

    fn anchor(&self, state: &mut PairState) {
        let PairState { chains, sums } = state;
        chains.anchor(|key, fate| self.decide(sums, key, fate));
    }

    fn forget(&self, state: &mut PairState, _: i64) -> bool {
        state.sums = self.init().sums;
        true
    }

    fn finish(&self, state: &PairState) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
