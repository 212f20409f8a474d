//! Programs' own events, while a lane is read: durations that begin and end, counters, states of
//! components, messages that are sent and received.
//!
//! These events are few in some traces and all that there is in others; a class without such a role
//! costs nothing here. The notes of a lane are put in the order of time when the chunk is over; the
//! code that seals chunks derives the rest from them: see [`super::slices`], [`super::changes`],
//! [`super::messages`].

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::called::Called;
use super::changes::{NewValue, TrackChange};
use super::digest::{Digest, NUMBER, NUMBER_BITS};
use super::messages::Post;
use super::numbers;
use super::own::DeclaredTracks;
use super::{Thing, TrackKey};
use crate::declared::{KEY_FIELDS_MAX, RuleAction};
use crate::roles::{EventRole, TID, counter, message, pair, rule, state};
use crate::{AnalysisEvent, BoundClass, BoundRole, EventValue, FieldSlot, LaneFacts, RoleEvent};

/// Set in the value of a name that is an integer; the rest is the integer.
const IS_INTEGER: u64 = 1 << NUMBER_BITS;
/// Set in a key that says nothing but where it holds: an end closes the last begin.
const IS_PLAIN: u64 = 1 << NUMBER_BITS;
/// Names that are told apart.
pub const NAMES_MAX: usize = 1 << 16;
/// Bytes of a name that are remembered.
const NAME_BYTES_MAX: usize = 256;

/// Something of a thread begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadMark {
    /// When.
    pub(super) time: i64,
    /// The track of the thread's outermost durations.
    pub(super) thread: u64,
    /// The key of begins and ends that belong together.
    pub(super) key: u64,
    /// Its name; 0: the event does not say.
    pub(super) name: u64,
    /// It ends.
    pub(super) is_end: bool,
}

impl ThreadMark {
    /// An end closes the last begin, of those that have the same name.
    pub(super) fn is_plain(key: u64) -> bool {
        key & IS_PLAIN != 0
    }
}

/// The notes of lanes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Marks {
    /// Those of a lane in the order of time.
    pub(super) marks: Vec<ThreadMark>,
    /// Names by the values that stand for them.
    pub(super) names: HashMap<u64, String>,
    /// Changes of counters and components; those of a lane in the order of time.
    pub(super) changes: Vec<TrackChange>,
    /// Counters and components by their tracks.
    pub(super) called: HashMap<u64, Called>,
    /// Sends and receives; those of a lane in the order of time.
    pub(super) posts: Vec<Post>,
}

/// For each class of events, whether it has a role that is looked at here.
#[must_use]
pub(super) fn marking(classes: &[BoundClass]) -> Vec<bool> {
    let is_role = |role: EventRole| {
        let is_duration = matches!(role, EventRole::Begin | EventRole::End);
        is_duration
            || matches!(
                role,
                EventRole::Counter | EventRole::State | EventRole::Send | EventRole::Receive | EventRole::Rule
            )
    };
    let is_mark = |class: &BoundClass| class.roles.iter().any(|bound| is_role(bound.role));
    classes.iter().map(is_mark).collect()
}

/// Whether a receive of some class may wait for its send.
#[must_use]
pub(super) fn has_early(classes: &[BoundClass]) -> bool {
    let waits = |bound: &BoundRole| {
        bound.role == EventRole::Receive && bound.slots[message::MESSAGE_EARLY] != FieldSlot::Absent
    };
    classes.iter().any(|class| class.roles.iter().any(waits))
}

/// The name of a value of a track of durations or states, if it is a number.
#[must_use]
pub fn integer_name(value: u64) -> Option<u64> {
    (value & IS_INTEGER != 0).then_some(value & NUMBER)
}

impl Marks {
    /// An event of a class that has a role.
    #[inline(never)]
    pub(super) fn take(
        &mut self,
        event: &AnalysisEvent<'_>,
        (number, facts): (usize, &LaneFacts),
        own: &DeclaredTracks,
    ) {
        let (thing, of) = match event.small_context(TID) {
            Some(tid) => (Thing::Slices, tid),
            None => (Thing::LaneSlices, number as i32),
        };
        let thread = TrackKey { thing, host: facts.host, number: of, track: 0 }.key();
        // An event that is both ends first, then begins.
        for role in [EventRole::End, EventRole::Begin] {
            let Some(meaning) = event.roles().find(|meaning| meaning.role == role) else { continue };
            let (key, is_end) = (key(&meaning, facts.host), role == EventRole::End);
            let name = self.name(&meaning, is_end);
            self.marks.push(ThreadMark { time: event.time, thread, key, name, is_end });
        }
        if let Some(meaning) = event.roles().find(|meaning| meaning.role == EventRole::Counter) {
            self.count(&meaning, facts.host);
        }
        if let Some(meaning) = event.roles().find(|meaning| meaning.role == EventRole::State) {
            self.declare(&meaning, facts.host);
        }
        self.take_posts(event, (number, facts));
        for meaning in event.roles().filter(|meaning| meaning.role == EventRole::Rule) {
            self.fulfil(&meaning, own);
        }
    }

    /// The sends and receives of an event of a class that has a role. One that is both receives
    /// first, then sends.
    pub(super) fn take_posts(&mut self, event: &AnalysisEvent<'_>, (number, facts): (usize, &LaneFacts)) {
        for role in [EventRole::Receive, EventRole::Send] {
            if let Some(meaning) = event.roles().find(|meaning| meaning.role == role) {
                self.post(&meaning, (number, facts));
            }
        }
    }

    /// A counter has another value. A value that is no number is none.
    fn count(&mut self, meaning: &RoleEvent<'_>, host: u16) -> Option<()> {
        let number = match meaning.value(counter::COUNTER_VALUE)? {
            EventValue::Integer(integer) => integer as f64,
            EventValue::Real(real) => Some(real).filter(|real| real.is_finite())?,
            EventValue::Text(_) => return None,
        };
        let (name, within) = (meaning.value(counter::COUNTER_NAME)?, meaning.value(counter::COUNTER_WITHIN));
        let digest = within.into_iter().fold(Digest::default().with(name), Digest::with).number();
        let key = TrackKey { thing: Thing::Counter, host, number: digest as i32, track: (digest >> 32) as u8 }.key();
        let called = || Called {
            name: text(name),
            within: within.map(text),
            unit: meaning.text(counter::COUNTER_UNIT).map(|unit| text(EventValue::Text(unit))),
            ..Called::default()
        };
        self.call(key, called)?;
        self.changes.push(TrackChange { time: meaning.event.time, key, to: NewValue::Value(numbers::value(number)) });
        Some(())
    }

    /// A component is in another state, or in none.
    fn declare(&mut self, meaning: &RoleEvent<'_>, host: u16) -> Option<()> {
        let name = meaning.value(state::COMPONENT)?;
        let [within, group] = [state::STATE_WITHIN, state::STATE_GROUP].map(|field| meaning.value(field));
        let with =
            |digest: Digest, value: Option<EventValue<'_>>| value.map_or(digest.word(0), |value| digest.with(value));
        let digest = [group, within].into_iter().fold(Digest::default().with(name), with).number();
        let key = TrackKey { thing: Thing::Component, host, number: digest as i32, track: (digest >> 32) as u8 }.key();
        let called =
            || Called { name: text(name), within: within.map(text), group: group.map(text), ..Called::default() };
        self.call(key, called)?;
        let to = meaning.value(state::STATE).map_or(NewValue::Nothing, |state| NewValue::Value(self.named(state)));
        self.changes.push(TrackChange { time: meaning.event.time, key, to });
        Some(())
    }

    /// Something is sent or received, by a thread, or a lane where events tell of no thread: their rows of events are where arrows end.
    fn post(&mut self, meaning: &RoleEvent<'_>, (lane, facts): (usize, &LaneFacts)) {
        let host = facts.host;
        let (thing, of) = match meaning.event.small_context(TID) {
            Some(tid) => (Thing::ThreadEvents, tid),
            None => (Thing::LaneEvents, lane as i32),
        };
        let track = TrackKey { thing, host, number: of, track: 0 }.key();
        let key = message_key(meaning, host);
        let is_sent = meaning.role == EventRole::Send;
        let receives =
            meaning.integer(message::MESSAGE_COUNT).map_or(1, |count| count.clamp(1, i64::from(u32::MAX)) as u32);
        let early_ns =
            meaning.integer(message::MESSAGE_EARLY).map_or(0, |early| early.clamp(0, u32::MAX.into()) as u32);
        let event = || EventValue::Text(meaning.event.class.name.as_bytes());
        let name = meaning.value(message::MESSAGE_NAME).or_else(|| meaning.value(message::MESSAGE_GROUP));
        let name = if is_sent { 0 } else { self.named(name.unwrap_or_else(event)) };
        self.posts.push(Post {
            time: meaning.event.time,
            key,
            track,
            name,
            receives: if is_sent { 0 } else { receives },
            early_ns: if is_sent { 0 } else { early_ns.max(facts.apart_ns) },
        });
    }

    /// An event fulfills a rule of an own analysis. Without a field it does nothing.
    fn fulfil(&mut self, meaning: &RoleEvent<'_>, own: &DeclaredTracks) -> Option<()> {
        let rule = own.rule(usize::try_from(meaning.integer(rule::NUMBER)?).ok()?)?;
        let mut of_key = [None; KEY_FIELDS_MAX];
        for (place, value) in of_key[..rule.key_fields].iter_mut().enumerate() {
            *value = Some(meaning.value(rule::KEY_1 + place)?);
        }
        let of_key = || of_key.into_iter().flatten();
        let digest = of_key().fold(rule.digest, Digest::with).number();
        let key = TrackKey { thing: rule.thing, host: 0, number: digest as i32, track: (digest >> 32) as u8 }.key();
        let number = || match meaning.value(rule::VALUE)? {
            EventValue::Integer(integer) => Some(integer),
            _ => None,
        };
        let to = match rule.act {
            RuleAction::Set => NewValue::Value(self.named(meaning.value(rule::VALUE)?)),
            RuleAction::Clear => NewValue::Nothing,
            RuleAction::Add => NewValue::More(number()?),
            RuleAction::To => NewValue::Value(numbers::value(number()? as f64)),
            RuleAction::Begin | RuleAction::Step | RuleAction::End => return None,
        };
        self.call(key, || own.called(rule, &of_key().map(text).collect::<Vec<_>>()))?;
        self.changes.push(TrackChange { time: meaning.event.time, key, to });
        Some(())
    }

    /// Keeps the name of a track. Beyond the maximum of names there are no tracks.
    fn call(&mut self, key: u64, called: impl FnOnce() -> Called) -> Option<()> {
        if !self.called.contains_key(&key) {
            (self.called.len() < NAMES_MAX).then_some(())?;
            self.called.insert(key, called());
        }
        Some(())
    }

    /// The name that the mapping gives it; otherwise a begin is named like its event.
    fn name(&mut self, meaning: &RoleEvent<'_>, is_end: bool) -> u64 {
        let value = match meaning.value(pair::PAIR_NAME) {
            Some(value) => value,
            None if is_end => return 0,
            None => EventValue::Text(meaning.event.class.name.as_bytes()),
        };
        self.named(value)
    }

    /// The value that stands for a name.
    fn named(&mut self, value: EventValue<'_>) -> u64 {
        if let EventValue::Integer(integer @ 0..) = value
            && integer.cast_unsigned() <= NUMBER
        {
            return IS_INTEGER | integer.cast_unsigned();
        }
        let number = Digest::default().with(value).number();
        if !self.names.contains_key(&number) && self.names.len() < NAMES_MAX {
            self.names.insert(number, text(value));
        }
        number
    }

    /// Adds the notes of other lanes.
    pub(super) fn extend(&mut self, other: Self) {
        self.marks.extend(other.marks);
        self.names.extend(other.names);
        self.changes.extend(other.changes);
        self.called.extend(other.called);
        self.posts.extend(other.posts);
    }

    /// All lanes have told: puts their notes in the order of time, at one time in the order of
    /// lanes.
    pub(super) fn put_in_order(&mut self) {
        self.marks.sort_by_key(|mark| mark.time);
        self.changes.sort_by_key(|change| change.time);
        // A message that is sent at one time and received at that time arrives.
        self.posts.sort_by_key(|post| (post.time, post.receives > 0));
    }
}

fn text(value: EventValue<'_>) -> String {
    match value {
        EventValue::Integer(integer) => integer.to_string(),
        EventValue::Real(real) => real.to_string(),
        EventValue::Text(text) => String::from_utf8_lossy(&text[..text.len().min(NAME_BYTES_MAX)]).into_owned(),
    }
}

/// The key that an end must share with its begin: as [`crate::pairs`] says.
fn key(meaning: &RoleEvent<'_>, host: u16) -> u64 {
    let with = |digest: Digest, field| match meaning.value(field) {
        Some(value) => digest.with(value),
        None => digest.word(0),
    };
    let own = meaning.value(pair::KEY);
    let digest = [pair::GROUP, pair::WITHIN].into_iter().fold(Digest::default().word(host.into()), with);
    match own {
        Some(own) => digest.with(own).number(),
        None => digest.number() | IS_PLAIN,
    }
}

/// A number that stands for the name of a message.
pub(crate) fn name_number(name: EventValue<'_>) -> u64 {
    Digest::default().with(name).number()
}

/// The key that a receive must share with its send.
pub(crate) fn message_key(meaning: &RoleEvent<'_>, host: u16) -> u64 {
    let fields = [message::MESSAGE_GROUP, message::MESSAGE_WITHIN, message::MESSAGE_KEY];
    let with = |digest: Digest, field| match meaning.value(field) {
        Some(value) => digest.with(value),
        None => digest.word(0),
    };
    fields.into_iter().fold(Digest::default().word(host.into()), with).number()
}
