//! Guesses: the possible meanings of events that no mapping knows, by their names and fields.
//!
//! ```text
//! service.run.begin  id lcore_id      two names that differ in one word: begin, end
//! service.run.end    id lcore_id      fields that both have: `id` is the key, sought within `lcore_id`
//!
//! task_resumed       from_task to_task     two fields that differ in one word: from, to; and one thread follows another
//! ```
//!
//! A guess is a section of a mapping like any other, with how sure it is, and why, in words. Guessed begins and ends may
//! be used where no mapping has any; other guesses are shown only, for people to keep.

mod words;

use std::collections::HashMap;

use kymo_decode::fields;
use kymo_filter::{NamePath, NameStep};
use kymo_format::TraceClass;
use kymo_format::model::{EventRecordClass, FieldKind as Kind, display_name};

use self::words::{NameWords, is_identity, is_kind_of_length, is_measure};
use crate::bind::StreamClass;
use crate::bind::matching::{FieldMatch, FieldOrigin, Matcher};
use crate::mapping::{NamePattern, RoleMapping, Section, ValueSource};
use crate::roles::{CPU, EventRole, TID, pair, switch};

/// A guess that is as sure as this may be used.
pub const CONFIDENCE_MIN: f64 = 0.5;

/// A possible meaning of events.
#[derive(Clone, Debug)]
pub struct Guess {
    /// Which events, which role, which fields.
    pub section: Section,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// Why, as a sentence without its full stop.
    pub reason: String,
}

/// The possible meanings of events that no mapping names; begins stand before their ends.
#[must_use]
pub fn guesses(streams: &[StreamClass<'_>], mappings: &[RoleMapping]) -> Vec<Guess> {
    let mut guesses: Vec<Guess> = Vec::new();
    for stream in streams {
        for guess in of_stream(stream, mappings) {
            let is_same = |known: &Guess| {
                known.section.role == guess.section.role && known.section.events == guess.section.events
            };
            if !guesses.iter().any(is_same) {
                guesses.push(guess);
            }
        }
    }
    guesses
}

/// The guesses that may be used, as a mapping: begins and ends that are sure enough.
#[must_use]
pub fn usable(guesses: &[Guess]) -> RoleMapping {
    let mut mapping = RoleMapping::new("guessed");
    let is_usable = |guess: &&Guess| {
        matches!(guess.section.role, EventRole::Begin | EventRole::End) && guess.confidence >= CONFIDENCE_MIN
    };
    mapping.sections = guesses.iter().filter(is_usable).map(|guess| guess.section.clone()).collect();
    mapping
}

/// A class of events that no mapping knows.
struct Unknown<'a> {
    name: &'a str,
    words: NameWords,
    fields: Vec<FieldOf>,
}

/// A field with one value, directly in the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldOf {
    name: String,
    is_text: bool,
}

fn of_stream(stream: &StreamClass<'_>, mappings: &[RoleMapping]) -> Vec<Guess> {
    let trace = stream.decoder.trace_class();
    let classes = &stream.decoder.stream_class(stream.stream_class).event_classes;
    let matcher = Matcher::new(mappings, trace, stream.facts.trace_name);
    let mut unknown = Vec::new();
    let mut place = None;
    for (number, class) in classes.iter().enumerate() {
        let Some(name) = class.name.as_deref() else { continue };
        let names = fields::names(stream.decoder, stream.stream_class, number, &stream.facts);
        if !matcher.roles(name, &names, &|_, _| true, &|_, _| false).is_empty() {
            continue;
        }
        // Events are numbered in one thread or on one CPU where they have no key.
        if place.is_none() {
            let context = matcher.context(None, &names, &[TID, CPU]);
            let path = |field: usize| match &context[field] {
                FieldMatch::Chosen(FieldOrigin::Path(path)) => Some(path.clone()),
                _ => None,
            };
            place = Some(path(TID).map(|path| (path, "thread")).or_else(|| path(CPU).map(|path| (path, "CPU"))));
        }
        unknown.push(Unknown { name, words: NameWords::of(name), fields: fields_of(trace, class) });
    }
    let mut guesses = pairs(&unknown, place.flatten().as_ref());
    guesses.extend(unknown.iter().filter_map(switch_like));
    guesses
}

fn fields_of(trace: &TraceClass, class: &EventRecordClass) -> Vec<FieldOf> {
    let Some(Kind::Structure(payload)) = class.payload.as_ref().map(|payload| &payload.kind) else {
        return Vec::new();
    };
    let field = |member: &kymo_format::model::Member| {
        let is_text = match member.class.kind {
            Kind::Integer(_) | Kind::VariableInteger(_) => false,
            Kind::NullTerminatedText(_) | Kind::StaticText(_) | Kind::DynamicText(_) => true,
            _ => return None,
        };
        let name = display_name(trace.dialect, &member.name);
        (!is_kind_of_length(name)).then(|| FieldOf { name: name.to_owned(), is_text })
    };
    payload.members.iter().filter_map(field).collect()
}

/// Names that differ in one word, of which one begins what the other ends.
fn pairs(unknown: &[Unknown<'_>], place: Option<&(NamePath, &str)>) -> Vec<Guess> {
    let mut by_rest: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
    for (number, class) in unknown.iter().enumerate() {
        for word in class.words.ends() {
            by_rest.entry(class.words.without(word)).or_default().push((number, word));
        }
    }
    let mut found = Vec::new();
    for (number, class) in unknown.iter().enumerate() {
        for (word, meaning) in class.words.begins() {
            let ends = by_rest.get(&class.words.without(word)).into_iter().flatten();
            for &(end, end_word) in ends.filter(|(end, _)| *end != number) {
                if let Some(sure) = meaning.ended_by(unknown[end].words.get(end_word)) {
                    found.push((sure, number, end, (word, meaning.is_of_object())));
                }
            }
        }
    }
    // An event begins one kind of pair, but an end may belong to several begins.
    found.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)).then(one.2.cmp(&other.2)));
    let mut begun = vec![false; unknown.len()];
    let mut ended: Vec<Option<Pairing>> = vec![None; unknown.len()];
    let mut guesses = Vec::new();
    for (sure, begin, end, (word, is_of_object)) in found {
        if begun[begin] || ended[begin].is_some() || begun[end] {
            continue;
        }
        let pairing = Pairing::new(&unknown[begin], &unknown[end], place, (sure, is_of_object));
        // All begins of this end have the same key.
        if ended[end].as_ref().is_some_and(|known| !known.has_same_key(&pairing)) {
            continue;
        }
        begun[begin] = true;
        let is_first = ended[end].is_none();
        guesses.push(pairing.guess(EventRole::Begin, &unknown[begin], &unknown[end], word));
        if is_first {
            guesses.push(pairing.guess(EventRole::End, &unknown[end], &unknown[begin], word));
            ended[end] = Some(pairing);
        }
    }
    guesses
}

/// How a begin is known again by its end.
#[derive(Clone, Debug)]
struct Pairing {
    key: Option<FieldOf>,
    within: Option<NamePath>,
    confidence: f64,
    why: String,
}

impl Pairing {
    /// `sure`: how much the names look like a pair, and whether they are about an object.
    fn new(
        begin: &Unknown<'_>,
        end: &Unknown<'_>,
        place: Option<&(NamePath, &str)>,
        (sure, is_of_object): (f64, bool),
    ) -> Self {
        let is_common = |field: &&FieldOf| end.fields.contains(field) && !is_measure(&field.name);
        let mut both: Vec<&FieldOf> = begin.fields.iter().filter(is_common).collect();
        // A stable sort: of equally good ones, the first one.
        both.sort_by_key(|field| std::cmp::Reverse(is_identity(&field.name)));
        let key = both.first().copied().cloned();
        let second = both.get(1).filter(|field| is_identity(&field.name) > 0);
        let (confidence, why) = match &key {
            Some(key) if is_identity(&key.name) > 0 => ((sure + 0.05).min(0.95), format!("both have `{}`", key.name)),
            Some(key) => (sure - 0.1, format!("both have `{}`, though it does not look like a key", key.name)),
            None => match place {
                Some((_, place)) if is_of_object => (
                    sure - 0.4,
                    format!("nothing tells which object it is; each end ends the last begin of the {place}"),
                ),
                Some((_, "thread")) => (sure - 0.1, "each end ends the last begin of the thread".to_owned()),
                Some((_, place)) => (sure - 0.4, format!("each end ends the last begin of the {place}")),
                None => (sure - 0.5, "nothing tells which end belongs to which begin".to_owned()),
            },
        };
        let within = match &key {
            Some(_) => second.map(|field| path(&field.name)),
            None => place.map(|(path, _)| path.clone()),
        };
        let confidence = (confidence.max(0.05) * 100.0).round() / 100.0;
        Self { key, within, confidence, why }
    }

    fn has_same_key(&self, other: &Self) -> bool {
        self.key == other.key && self.within == other.within
    }

    fn guess(&self, role: EventRole, class: &Unknown<'_>, other: &Unknown<'_>, word: usize) -> Guess {
        let mut section = Section::new(role, vec![NamePattern::new(class.name)]);
        let (begin, end) = if role == EventRole::Begin { (class, other) } else { (other, class) };
        if let Some(key) = &self.key {
            section.fields[pair::KEY] = vec![ValueSource::Path(path(&key.name))];
        }
        section.fields[pair::WITHIN] = self.within.iter().cloned().map(ValueSource::Path).collect();
        section.fields[pair::GROUP] = vec![ValueSource::Text(end.name.to_owned())];
        let text = class.fields.iter().find(|field| field.is_text && self.key.as_ref() != Some(field));
        section.fields[pair::PAIR_NAME] = match text {
            Some(text) if role == EventRole::Begin => vec![ValueSource::Path(path(&text.name))],
            _ => vec![ValueSource::Text(begin.words.title(word))],
        };
        let acts = if role == EventRole::Begin { "ended by" } else { "begun by" };
        let reason = format!("{acts} `{}` by their names; {}", other.name, self.why);
        Guess { section, confidence: self.confidence, reason }
    }
}

fn path(name: &str) -> NamePath {
    NamePath { is_global: false, steps: vec![NameStep::Name(name.to_owned())] }
}

/// One thread after another: two fields that differ in a word.
fn switch_like(class: &Unknown<'_>) -> Option<Guess> {
    let numbers: Vec<(&FieldOf, NameWords)> =
        class.fields.iter().filter(|field| !field.is_text).map(|field| (field, NameWords::of(&field.name))).collect();
    let of_thread = |words: &NameWords, at: usize| words.others(at).all(words::is_of_thread);
    let find = |first: &str, then: &str| {
        let (prev, words) = numbers.iter().find(|(_, words)| words.at(first).is_some_and(|at| of_thread(words, at)))?;
        let rest = words.without(words.at(first)?);
        let is_next = |words: &NameWords| words.at(then).is_some_and(|at| words.without(at) == rest);
        let (next, _) = numbers.iter().find(|(_, words)| is_next(words))?;
        Some((prev.name.clone(), next.name.clone()))
    };
    let (prev, next) = words::SUCCESSIONS.iter().find_map(|(first, then)| find(first, then))?;
    let is_named =
        ["switch", "switched", "sched", "schedule", "resumed"].iter().any(|word| class.words.at(word).is_some());
    let confidence = if is_named { 0.8 } else { 0.4 };
    let mut section = Section::new(EventRole::Switch, vec![NamePattern::new(class.name)]);
    section.fields[switch::PREV_TID] = vec![ValueSource::Path(path(&prev))];
    section.fields[switch::NEXT_TID] = vec![ValueSource::Path(path(&next))];
    let reason = format!("`{prev}` and `{next}` look like threads of which one follows the other");
    Some(Guess { section, confidence, reason })
}
