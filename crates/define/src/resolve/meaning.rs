//! Meanings of events: their roles, and where the facts of these are.

use std::collections::HashMap;

use super::Resolver;
use crate::model::{EventUse, FactValue, Meaning, MeaningFact, MeaningRole, SchemaEvent, SchemaType};
use crate::parse::{FileFact, FileMeaning, FileValue, MEANINGS, Named};
use crate::problem::SchemaPlace;

/// Meanings of a schema.
const MEANINGS_MAX: usize = 4096;

/// Events by their names, `subsystem.event`, with their places.
type EventPlaces = HashMap<String, (usize, usize)>;

impl Resolver {
    /// Resolves the meanings of all subsystems, once these are known.
    pub(super) fn all_meanings(&mut self) {
        let mut places = EventPlaces::new();
        for (number, subsystem) in self.schema.subsystems.iter().enumerate() {
            let event =
                |(event, of): (usize, &SchemaEvent)| (format!("{}.{}", subsystem.name, of.name), (number, event));
            places.extend(subsystem.events.iter().enumerate().map(event));
        }
        let mut count = 0;
        for (subsystem, items) in std::mem::take(&mut self.meanings) {
            for item in items {
                count += 1;
                if count > MEANINGS_MAX {
                    let message = format!("a schema has at most {MEANINGS_MAX} pairs, flows, counters and states");
                    return self.error(item.name.place, message);
                }
                let meaning = self.meaning(subsystem, item, &places);
                self.schema.subsystems[subsystem].meanings.push(meaning);
            }
        }
    }

    fn meaning(&mut self, subsystem: usize, item: FileMeaning, places: &EventPlaces) -> Meaning {
        let word = MEANINGS.into_iter().find(|word| *word == item.word.name).expect("the parser knows these words");
        self.check_name(&item.name, "a meaning");
        let known = &self.schema.subsystems[subsystem].meanings;
        if known.iter().any(|known| known.name == item.name.name && known.word == word) {
            self.error(item.name.place, format!("there is a {word} `{}` already", item.name.name));
        }
        let (name, text, place) = (item.name.name, item.text, item.name.place);
        let mut meaning = Meaning { name, word, text, events: Vec::new(), place };
        self.check_twice(&item.facts);
        for (role, event, own) in &item.events {
            let Some(used) = self.event_use(subsystem, &meaning, (role, event), (own, &item.facts), places) else {
                continue;
            };
            let at = (used.subsystem, used.event);
            let others = self.schema.subsystems.iter().flat_map(|subsystem| &subsystem.meanings);
            let other = others.chain([&meaning]).find(|known| known.has(used.role, at));
            if let Some(other) = other.map(|other| format!("{} `{}`", other.word, other.name)) {
                let message = format!("the event `{}` has this role in the {other} already", event.name);
                self.helped(event.place, message, "analyses take an event's first meaning of a kind");
            }
            meaning.events.push(used);
        }
        self.check_facts_are_used(&item.facts, &meaning);
        self.check_is_whole(&meaning, item.events.is_empty());
        self.check_keys_meet(&meaning);
        meaning
    }

    fn event_use(
        &mut self,
        own: usize,
        meaning: &Meaning,
        (role, name): (&Named, &Named),
        (facts, shared): (&[FileFact], &[FileFact]),
        places: &EventPlaces,
    ) -> Option<EventUse> {
        let is_known = |(word, known): &(&str, MeaningRole)| *word == meaning.word && known.word() == role.name;
        let Some((_, role_of)) = MeaningRole::ALL.into_iter().find(is_known) else {
            let of = MeaningRole::ALL.iter().filter(|(word, _)| *word == meaning.word);
            let of: Vec<String> = of.map(|(_, role)| format!("`{}`", role.word())).collect();
            let help = format!("events of a {} are {}", meaning.word, of.join(" or "));
            self.helped(role.place, format!("a {} has no `{}`", meaning.word, role.name), help);
            return None;
        };
        let own_name = self.schema.subsystems[own].name.clone();
        let full = if name.name.contains('.') { name.name.clone() } else { format!("{own_name}.{}", name.name) };
        let Some(&(subsystem, event)) = places.get(&full) else {
            let message = format!("there is no event `{}` in `{own_name}`", name.name);
            self.helped(name.place, message, "those of other subsystems are called `SUBSYSTEM.EVENT`");
            return None;
        };
        let event_of = self.schema.subsystems[subsystem].events[event].clone();
        let mut used = EventUse { role: role_of, subsystem, event, facts: Vec::new() };
        self.check_twice(facts);
        for (place, fact) in facts.iter().chain(shared).enumerate() {
            let Some(word) = self.fact_word(fact) else { continue };
            if !role_of.facts().contains(&word) {
                // A fact of the meaning is for the events that can have it.
                if place < facts.len() {
                    self.error(fact.word.place, format!("`{}` has no `{}`", role.name, word.word()));
                }
                continue;
            }
            // That of an event comes first.
            if used.facts.iter().any(|(known, _)| *known == word) {
                continue;
            }
            if let Some(value) = self.value(&event_of, word, fact) {
                used.facts.push((word, value));
            }
        }
        for fact in role_of.required() {
            let is_said = |said: &FileFact| said.word.name == fact.word();
            if !facts.iter().chain(shared).any(is_said) {
                let message = format!("`{} {}` lacks its `{}`", role.name, name.name, fact.word());
                let help =
                    format!("`{} FIELD`, in the {} or behind the event in parentheses", fact.word(), meaning.word);
                self.helped(role.place, message, help);
            }
        }
        used.facts.extend(defaults(&own_name, meaning, &used, shared));
        Some(used)
    }

    fn fact_word(&mut self, fact: &FileFact) -> Option<MeaningFact> {
        let known = MeaningFact::ALL.into_iter().find(|known| known.word() == fact.word.name);
        if known.is_none() {
            let words: Vec<&str> = MeaningFact::ALL.iter().map(|fact| fact.word()).collect();
            let help = format!("facts are {}", words.join(", "));
            self.helped(fact.word.place, format!("there is no fact `{}`", fact.word.name), help);
        }
        known
    }

    /// No fact stands twice at one place.
    fn check_twice(&mut self, facts: &[FileFact]) {
        for (place, fact) in facts.iter().enumerate() {
            if facts[..place].iter().any(|known| known.word.name == fact.word.name) {
                self.error(fact.word.place, format!("`{}` stands twice", fact.word.name));
            }
        }
    }

    /// Where the value of a fact is.
    fn value(&mut self, event: &SchemaEvent, fact: MeaningFact, of: &FileFact) -> Option<FactValue> {
        use MeaningFact::{Count, Early, Group, Name, State, Unit, Within};
        let word = fact.word();
        match (&of.value, fact) {
            (FileValue::Text(text), Name | Group | Unit | State) => Some(FactValue::Text(text.clone())),
            (FileValue::Number(number), State) => match i64::try_from(*number) {
                Ok(_) => Some(FactValue::Number(*number)),
                Err(_) => {
                    self.error(of.place, format!("{number} does not fit into a signed integer of 64 bits"));
                    None
                }
            },
            (FileValue::Number(number), Early | Count) => {
                let is_fit = u32::try_from(*number).is_ok_and(|number| number > 0);
                if !is_fit {
                    self.error(of.place, format!("`{word}` is a number from 1 to {}, not {number}", u32::MAX));
                }
                is_fit.then_some(FactValue::Number(*number))
            }
            (FileValue::Name(name), Within) if name == "thread" => Some(FactValue::Thread),
            (FileValue::Name(name), Within) if name == "process" => Some(FactValue::Process),
            (FileValue::Name(name), _) => self.field_value(event, fact, (name, of.place)),
            (FileValue::Text(_) | FileValue::Number(_), _) => {
                let help = match fact {
                    Name | Group | Unit => "a field, or a text in quotes",
                    Count | Early => "a field with a number, or a number",
                    Within => "a field, `thread` or `process`",
                    _ => "the name of a field",
                };
                self.helped(of.place, format!("this is no `{word}`"), help);
                None
            }
        }
    }

    fn field_value(
        &mut self,
        event: &SchemaEvent,
        fact: MeaningFact,
        (name, at): (&str, SchemaPlace),
    ) -> Option<FactValue> {
        let Some(place) = event.fields.iter().position(|field| field.name == name) else {
            let help = match fact {
                MeaningFact::Name | MeaningFact::Group | MeaningFact::Unit | MeaningFact::State => {
                    format!("a text that is always the same stands in quotes: \"{name}\"")
                }
                MeaningFact::Within => "it may also be `thread` or `process`".to_owned(),
                _ => format!("the event's fields are {}", fields(event)),
            };
            self.helped(at, format!("the event `{}` has no field `{name}`", event.name), help);
            return None;
        };
        let is_fit = match (&event.fields[place].kind, fact) {
            (SchemaType::Array(..) | SchemaType::Sequence(_), _) => false,
            (SchemaType::Text, MeaningFact::Value | MeaningFact::Count | MeaningFact::Early) => false,
            (SchemaType::Scalar("f32" | "f64"), _) => fact == MeaningFact::Value,
            (kind, MeaningFact::Unit) => *kind == SchemaType::Text,
            _ => true,
        };
        if !is_fit {
            let message = format!(
                "the field `{name}` of `{}` cannot be a `{}`: it is of the wrong type",
                event.name,
                fact.word()
            );
            self.error(at, message);
        }
        is_fit.then_some(FactValue::Field(place))
    }

    /// Facts of a meaning that no event of it can have.
    fn check_facts_are_used(&mut self, facts: &[FileFact], meaning: &Meaning) {
        for fact in facts {
            let known = MeaningFact::ALL.into_iter().find(|known| known.word() == fact.word.name);
            let is_used = |known: MeaningFact| meaning.events.iter().any(|used| used.role.facts().contains(&known));
            if known.is_some_and(|known| !is_used(known)) && !meaning.events.is_empty() {
                self.error(fact.word.place, format!("a {} has no `{}`", meaning.word, fact.word.name));
            }
        }
    }

    /// A pair has both ends, a flow too. Where an event was refused, that is said already.
    fn check_is_whole(&mut self, meaning: &Meaning, is_empty: bool) {
        if meaning.events.is_empty() && !is_empty {
            return;
        }
        let roles = MeaningRole::ALL.iter().filter(|(word, role)| *word == meaning.word && *role != MeaningRole::Leave);
        for (_, role) in roles {
            if !meaning.events.iter().any(|used| used.role == *role) && (is_empty || !self.found.has_errors()) {
                let message = format!("the {} `{}` has no `{}`", meaning.word, meaning.name, role.word());
                self.helped(meaning.place, message, format!("`{} EVENT,` in its braces", role.word()));
            }
        }
    }

    /// Both ends of a pair or flow need keys, groups and places that can be equal.
    fn check_keys_meet(&mut self, meaning: &Meaning) {
        let Some((first, others)) = meaning.events.split_first() else { return };
        if !matches!(meaning.word, "pair" | "flow") || self.found.has_errors() {
            return;
        }
        let kind = |used: &EventUse, fact: MeaningFact| {
            let (_, event) = self.schema.event_of(used);
            let value = used.facts.iter().find(|(known, _)| *known == fact).map(|(_, value)| value);
            value.map(|value| match value {
                FactValue::Field(field) if event.fields[*field].kind == SchemaType::Text => "a text".to_owned(),
                FactValue::Field(_) | FactValue::Number(_) => "a number".to_owned(),
                FactValue::Text(text) if fact == MeaningFact::Group => format!("the text \"{text}\""),
                FactValue::Text(_) => "a text".to_owned(),
                FactValue::Thread => "the thread".to_owned(),
                FactValue::Process => "the process".to_owned(),
            })
        };
        let mut problems = Vec::new();
        for fact in [MeaningFact::Key, MeaningFact::Group, MeaningFact::Within] {
            let begin = kind(first, fact);
            if let Some(other) = others.iter().map(|used| kind(used, fact)).find(|other| *other != begin) {
                let word = |kind: Option<String>| kind.unwrap_or_else(|| "none".to_owned());
                problems.push(format!(
                    "the events of the {} `{}` never meet: their `{}` is {} and {}",
                    meaning.word,
                    meaning.name,
                    fact.word(),
                    word(begin),
                    word(other)
                ));
            }
        }
        for problem in problems {
            self.warning(meaning.place, problem, "facts in the braces of the meaning are those of all its events");
        }
    }
}

/// The facts that a use has if nothing else is said.
fn defaults(subsystem: &str, meaning: &Meaning, used: &EventUse, shared: &[FileFact]) -> Vec<(MeaningFact, FactValue)> {
    let lacks =
        |fact: MeaningFact| used.role.facts().contains(&fact) && !used.facts.iter().any(|(known, _)| *known == fact);
    let mut facts = Vec::new();
    if lacks(MeaningFact::Name) {
        facts.push((MeaningFact::Name, FactValue::Text(meaning.name.clone())));
    }
    if lacks(MeaningFact::Group) {
        let group =
            if meaning.word == "state" { subsystem.to_owned() } else { format!("{subsystem}:{}", meaning.name) };
        facts.push((MeaningFact::Group, FactValue::Text(group)));
    }
    // Messages go from process to process.
    if lacks(MeaningFact::Within) && meaning.word != "flow" {
        let has_key = !lacks(MeaningFact::Key) || shared.iter().any(|fact| fact.word.name == "key");
        let is_of_thread = meaning.word == "pair" && !has_key;
        facts.push((MeaningFact::Within, if is_of_thread { FactValue::Thread } else { FactValue::Process }));
    }
    facts
}

fn fields(event: &SchemaEvent) -> String {
    let names: Vec<&str> = event.fields.iter().map(|field| field.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
