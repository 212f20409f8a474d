//! The current values and since when, and runs of the earlier values.
//!
//! ```text
//! part k     thread 7, state:   ?? ─── blocked ──── running ─ …         ??: as the part before says
//! part k+1                      ?? ──────── preempted ── running ─ …
//! merged                        ?? ─── blocked ──── running ─┴──── preempted ── …
//! ```
//!
//! The first value that a part gives to something is not yet a run: it may go on with the run
//! before. It, and the time before it, are told to the part before when the two are merged; later
//! values do not depend on that.

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};

use crate::runs::{RunWriter, StateRun};

/// Set in the value of a run with an end that does not agree with its value: events were lost.
pub const DOUBT: u64 = 1 << 63;
/// Set in the value of a run that does not end by itself: its owner is gone, such as a thread that
/// dies in a call.
const CUT: u64 = 1 << 62;
/// The flags in values beside their meanings.
pub const FLAGS: u64 = DOUBT | CUT;

/// Kinds of things.
pub(super) const KINDS: usize = 2;
/// Values that a thing has at a time.
pub(super) const TRACKS: usize = 4;

/// Something that has values: a CPU, or a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entity(u64);

/// The kinds of entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityKind {
    /// A CPU.
    Cpu,
    /// A thread.
    Thread,
}

impl Entity {
    /// A CPU or a thread of a machine, by its number.
    #[must_use]
    pub fn new(kind: EntityKind, host: u16, number: i32) -> Self {
        Self((kind as u64) << 48 | u64::from(host) << 32 | u64::from(number.cast_unsigned()))
    }

    /// The key of one of its runs.
    #[must_use]
    pub fn key(self, track: usize) -> u64 {
        (track as u64) << 56 | self.0
    }

    /// The entity of a key; `None`: not of anything.
    #[must_use]
    pub fn of_key(key: u64) -> Option<(EntityKind, u16, i32, usize)> {
        let kind = match key >> 48 & 0xff {
            0 => EntityKind::Cpu,
            1 => EntityKind::Thread,
            _ => return None,
        };
        let track = (key >> 56) as usize;
        (track < TRACKS).then_some((kind, (key >> 32) as u16, (key as u32).cast_signed(), track))
    }
}

const _: () = assert!(EntityKind::Thread as usize + 1 == KINDS, "keys have a number for each kind");

/// A value before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PriorValue {
    /// Nothing.
    Unknown,
    /// It was this; `None`: there was none.
    Was(Option<u64>),
    /// Its upper half was not this.
    Not(u32),
    /// Nothing, as the entity of the value is gone.
    Gone,
}

/// How a value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttributeChange {
    /// It has this value from now on, even if it had it before: a new run begins.
    Begin(Option<u64>),
    /// It has this value, maybe since long.
    Is(u64),
    /// It has this value, unless it has one of those below `than` (of the upper half of their bits).
    Unless {
        /// The value.
        value: u64,
        /// Values with an upper half less than this are kept.
        than: u32,
    },
}

/// The first changes of a value in a part.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct FirstChanges {
    at: i64,
    before: PriorValue,
    change: AttributeChange,
    /// Time and value of its next change; and the value before that.
    next: Option<(i64, PriorValue)>,
}

/// One value of a thing.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct AttributeTrack {
    first: Option<FirstChanges>,
    /// Its value, and since when.
    now: Option<(Option<u64>, i64)>,
}

/// The values of entities.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Attributes {
    entities: HashMap<Entity, [AttributeTrack; TRACKS]>,
    /// Things that had values and have none: numbers of dead threads are used again.
    gone: HashSet<Entity>,
    is_anchored: bool,
}

impl AttributeChange {
    /// The value after it, and whether that is a new run; `None`: nothing changes.
    fn after(self, now: Option<Option<u64>>) -> Option<Option<u64>> {
        match self {
            Self::Begin(None) if now == Some(None) => None,
            Self::Begin(value) => Some(value),
            Self::Is(value) if now == Some(Some(value)) => None,
            Self::Unless { than, .. } if now.flatten().is_some_and(|now| ((now >> 32) as u32) < than) => None,
            Self::Is(value) | Self::Unless { value, .. } => Some(Some(value)),
        }
    }
}

impl AttributeTrack {
    fn set(&mut self, key: u64, time: i64, (before, change): (PriorValue, AttributeChange), runs: &mut RunWriter) {
        let Some((now, since)) = self.now else {
            self.first = Some(FirstChanges { at: time, before, change, next: None });
            self.now = change.after(None).map(|value| (value, time));
            return;
        };
        let Some(value) = change.after(Some(now)) else { return };
        match &mut self.first {
            Some(first) if first.next.is_none() => first.next = Some((time, before)),
            _ => end(key, (now, since), (time, before), runs),
        }
        self.now = Some((value, time));
    }

    /// Whether it had a value and has none.
    fn is_over(&self) -> bool {
        self.now.is_some_and(|(value, _)| value.is_none())
    }

    /// Nothing was before it.
    fn anchor(&mut self, key: u64, runs: &mut RunWriter) {
        let Some(first) = self.first.take() else { return };
        if let PriorValue::Was(Some(value)) = first.before {
            runs.push(StateRun { key, begin: i64::MIN, end: first.at, value });
        }
        if let Some(next) = first.next {
            let value = first.change.after(None).flatten();
            end(key, (value, first.at), next, runs);
        }
    }

    /// Adds the part that follows.
    fn then(&mut self, key: u64, later: Self, runs: &mut RunWriter) {
        let Some(first) = later.first else { return };
        if self.now.is_none() {
            *self = later;
            return;
        }
        self.set(key, first.at, (first.before, first.change), runs);
        if let (Some(next), Some((value, since))) = (first.next, later.now) {
            let now = self.now.expect("it was set just now");
            match &mut self.first {
                Some(first) if first.next.is_none() => first.next = Some(next),
                _ => end(key, now, next, runs),
            }
            self.now = Some((value, since));
        }
    }
}

/// Writes the run of a value that ends; `before` is the value before the end, as the event names
/// it.
fn end(key: u64, (value, begin): (Option<u64>, i64), (end, before): (i64, PriorValue), runs: &mut RunWriter) {
    if let Some(value) = value {
        let flags = match before {
            PriorValue::Unknown => 0,
            PriorValue::Gone => CUT,
            PriorValue::Was(was) if was == Some(value) => 0,
            PriorValue::Not(upper) if (value >> 32) as u32 != upper => 0,
            PriorValue::Was(_) | PriorValue::Not(_) => DOUBT,
        };
        runs.push(StateRun { key, begin, end, value: value | flags });
    }
}

impl Attributes {
    /// Something has another value.
    #[inline]
    pub fn set(
        &mut self,
        entity: Entity,
        track: usize,
        time: i64,
        change: (PriorValue, AttributeChange),
        runs: &mut RunWriter,
    ) {
        let key = entity.key(track);
        let is_anchored = self.is_anchored;
        let track = &mut self.tracks(entity)[track];
        track.set(key, time, change, runs);
        if is_anchored && track.first.is_some() {
            track.anchor(key, runs);
        }
    }

    /// Nothing was before.
    pub fn anchor(&mut self, runs: &mut RunWriter) {
        self.is_anchored = true;
        for (entity, tracks) in &mut self.entities {
            tracks.iter_mut().enumerate().for_each(|(number, track)| track.anchor(entity.key(number), runs));
        }
    }

    /// Adds the later part.
    pub fn merge(&mut self, right: Self, runs: &mut RunWriter) {
        let is_anchored = self.is_anchored;
        for (entity, later) in right.entities {
            let tracks = self.tracks(entity);
            for (number, later) in later.into_iter().enumerate() {
                let (key, track) = (entity.key(number), &mut tracks[number]);
                track.then(key, later, runs);
                if is_anchored && track.first.is_some() {
                    track.anchor(key, runs);
                }
            }
            if is_anchored && tracks.iter().all(AttributeTrack::is_over) {
                self.entities.remove(&entity);
                self.gone.insert(entity);
            }
        }
    }

    /// Something has a value, or none, since when; it is known from elsewhere.
    pub(super) fn put(&mut self, key: u64, (value, since): (Option<u64>, i64)) {
        if let Some((kind, host, number, track)) = Entity::of_key(key) {
            self.tracks(Entity::new(kind, host, number))[track].now = Some((value, since));
        }
    }

    /// Takes the value that a thing has since a time or later, and says since when.
    pub(super) fn take(&mut self, entity: Entity, track: usize, from: i64) -> Option<(i64, u64)> {
        let track = &mut self.entities.get_mut(&entity)?[track];
        let (value, since) = track.now.filter(|(_, since)| from <= *since)?;
        track.now = Some((None, since));
        Some((since, value?))
    }

    /// Since when a thing has its value; the least, if that is not known.
    pub(super) fn since_when(&self, entity: Entity, track: usize) -> i64 {
        let known = self.entities.get(&entity).and_then(|tracks| tracks[track].now);
        known.map_or(i64::MIN, |(_, since)| since)
    }

    /// All things that have or had values.
    pub(super) fn entities(&self) -> Vec<Entity> {
        self.entities.keys().copied().collect()
    }

    /// Runs of a thing that began at a time or later, and have not ended.
    pub(super) fn since(&self, entity: Entity, at: i64) -> impl Iterator<Item = StateRun> {
        let tracks = self.entities.get(&entity).into_iter().flatten().enumerate();
        tracks.filter_map(move |(number, track)| {
            let (value, begin) = track.now.filter(|(_, begin)| at <= *begin)?;
            Some(StateRun { key: entity.key(number), begin, end: i64::MAX, value: value? })
        })
    }

    fn tracks(&mut self, entity: Entity) -> &mut [AttributeTrack; TRACKS] {
        let gone = &self.gone;
        self.entities.entry(entity).or_insert_with(|| match gone.contains(&entity) {
            true => [AttributeTrack { first: None, now: Some((None, i64::MIN)) }; TRACKS],
            false => Default::default(),
        })
    }

    /// Runs that are not over, and runs with an unknown begin.
    pub fn open(&self, runs: &mut RunWriter) {
        for (entity, tracks) in &self.entities {
            for (number, track) in tracks.iter().enumerate() {
                let (key, mut track) = (entity.key(number), *track);
                track.anchor(key, runs);
                if let Some((Some(value), begin)) = track.now {
                    runs.push(StateRun { key, begin, end: i64::MAX, value });
                }
            }
        }
    }
}
