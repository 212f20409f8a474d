//! What events mean together: their roles, and where the facts of these are.

use super::Resolver;
use crate::model::{EventUse, FactValue, Meaning, MeaningFact, MeaningRole, SchemaEvent, SchemaSubsystem, SchemaType};
use crate::parse::{FileFact, FileMeaning, FileValue, MEANINGS, Named};
use crate::problem::SchemaPlace;

impl Resolver {
    /// Resolves the meanings of a subsystem.
    pub(super) fn meanings(&mut self, subsystem: &mut SchemaSubsystem, items: Vec<FileMeaning>) {
        for item in items {
            let word = MEANINGS.into_iter().find(|word| *word == item.word.name).expect("the parser knows these words");
            self.check_name(&item.name, "a meaning");
            if subsystem.meanings.iter().any(|known| known.name == item.name.name && known.word == word) {
                self.error(item.name.place, format!("there is a {word} `{}` already", item.name.name));
            }
            let mut meaning = Meaning {
                name: item.name.name.clone(),
                word,
                text: item.text,
                events: Vec::new(),
                place: item.name.place,
            };
            for (role, event, own) in &item.events {
                let Some(used) = self.event_use(subsystem, &meaning, (role, event), own.iter().chain(&item.facts))
                else {
                    continue;
                };
                let other = subsystem.meanings.iter().chain([&meaning]).find(|known| known.has(used.role, used.event));
                let other = other.map(|other| format!("{} `{}`", other.word, other.name));
                if let Some(other) = other {
                    let message = format!("the event `{}` has this role in the {other} already", event.name);
                    self.helped(event.place, message, "analyses take an event's first meaning of a kind");
                }
                meaning.events.push(used);
            }
            self.check_facts_are_used(&item.facts, &meaning);
            self.check_is_whole(&meaning);
            subsystem.meanings.push(meaning);
        }
    }

    fn event_use<'f>(
        &mut self,
        subsystem: &SchemaSubsystem,
        meaning: &Meaning,
        (role, name): (&Named, &Named),
        facts: impl Iterator<Item = &'f FileFact>,
    ) -> Option<EventUse> {
        let known =
            MeaningRole::ALL.into_iter().find(|(word, known)| *word == meaning.word && known.word() == role.name);
        let Some((_, role_of)) = known else {
            let of = MeaningRole::ALL
                .iter()
                .filter(|(word, _)| *word == meaning.word)
                .map(|(_, role)| format!("`{}`", role.word()));
            let help = format!("events of a {} are {}", meaning.word, of.collect::<Vec<_>>().join(" or "));
            self.helped(role.place, format!("a {} has no `{}`", meaning.word, role.name), help);
            return None;
        };
        let Some(place) = subsystem.events.iter().position(|event| event.name == name.name) else {
            let message = format!("there is no event `{}` in `{}`", name.name, subsystem.name);
            self.helped(name.place, message, "a meaning is about events of its own subsystem");
            return None;
        };
        let event = &subsystem.events[place];
        let mut used = EventUse { role: role_of, event: place, facts: Vec::new() };
        for fact in facts {
            let Some(word) = MeaningFact::ALL.into_iter().find(|known| known.word() == fact.word.name) else {
                let words: Vec<&str> = MeaningFact::ALL.iter().map(|fact| fact.word()).collect();
                self.helped(
                    fact.word.place,
                    format!("there is no fact `{}`", fact.word.name),
                    format!("facts are {}", words.join(", ")),
                );
                continue;
            };
            let is_known = used.facts.iter().any(|(known, _)| *known == word);
            // A fact of the meaning is for the events that can have it; that of an event comes first.
            if is_known || !role_of.facts().contains(&word) {
                continue;
            }
            if let Some(value) = self.value(event, word, fact) {
                used.facts.push((word, value));
            }
        }
        for fact in role_of.required() {
            if !used.facts.iter().any(|(known, _)| known == fact) && !self.found.has_errors() {
                let message = format!("`{} {}` lacks its `{}`", role.name, name.name, fact.word());
                self.helped(
                    role.place,
                    message,
                    format!("`{} FIELD`, in the {} or behind the event in parentheses", fact.word(), meaning.word),
                );
            }
        }
        used.facts.extend(defaults(subsystem, meaning, &used));
        Some(used)
    }

    /// Where the value of a fact is.
    fn value(&mut self, event: &SchemaEvent, fact: MeaningFact, of: &FileFact) -> Option<FactValue> {
        let is_text = matches!(
            fact,
            MeaningFact::Name | MeaningFact::Group | MeaningFact::Unit | MeaningFact::State | MeaningFact::Within
        );
        match &of.value {
            FileValue::Text(text) if is_text => Some(FactValue::Text(text.clone())),
            FileValue::Number(number)
                if matches!(fact, MeaningFact::Early | MeaningFact::Count | MeaningFact::State) =>
            {
                Some(FactValue::Number(*number))
            }
            FileValue::Name(name) if fact == MeaningFact::Within && name == "thread" => Some(FactValue::Thread),
            FileValue::Name(name) if fact == MeaningFact::Within && name == "process" => Some(FactValue::Process),
            FileValue::Name(name) => self.field_value(event, fact, (name, of.place)),
            FileValue::Text(_) | FileValue::Number(_) => {
                self.helped(
                    of.place,
                    format!("`{}` is the name of a field", fact.word()),
                    "it differs from event to event",
                );
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
            (_, MeaningFact::Unit) => event.fields[place].kind == SchemaType::Text,
            _ => true,
        };
        if !is_fit {
            self.error(
                at,
                format!(
                    "the field `{name}` of `{}` cannot be a `{}`: it is of the wrong type",
                    event.name,
                    fact.word()
                ),
            );
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

    /// A pair has both ends, a flow too.
    fn check_is_whole(&mut self, meaning: &Meaning) {
        let roles = MeaningRole::ALL.iter().filter(|(word, role)| *word == meaning.word && *role != MeaningRole::Leave);
        for (_, role) in roles {
            if !meaning.events.iter().any(|used| used.role == *role) && !self.found.has_errors() {
                let message = format!("the {} `{}` has no `{}`", meaning.word, meaning.name, role.word());
                self.helped(meaning.place, message, format!("`{} EVENT,` in its braces", role.word()));
            }
        }
    }
}

/// The facts that a use has if nothing else is said.
fn defaults(subsystem: &SchemaSubsystem, meaning: &Meaning, used: &EventUse) -> Vec<(MeaningFact, FactValue)> {
    let lacks =
        |fact: MeaningFact| used.role.facts().contains(&fact) && !used.facts.iter().any(|(known, _)| *known == fact);
    let mut facts = Vec::new();
    if lacks(MeaningFact::Name) {
        facts.push((MeaningFact::Name, FactValue::Text(meaning.name.clone())));
    }
    if lacks(MeaningFact::Group) {
        let group = if meaning.word == "state" {
            subsystem.name.clone()
        } else {
            format!("{}:{}", subsystem.name, meaning.name)
        };
        facts.push((MeaningFact::Group, FactValue::Text(group)));
    }
    // Messages go from process to process.
    if lacks(MeaningFact::Within) && meaning.word != "flow" {
        let is_of_thread = meaning.word == "pair" && lacks(MeaningFact::Key);
        facts.push((MeaningFact::Within, if is_of_thread { FactValue::Thread } else { FactValue::Process }));
    }
    facts
}

fn fields(event: &SchemaEvent) -> String {
    let names: Vec<&str> = event.fields.iter().map(|field| field.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
