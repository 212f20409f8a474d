//! Changes between two versions of a schema, and their effects on readers.
//!
//! Traces describe themselves, so that they stay readable; the work of people may break: filters,
//! scripts, own analyses and mappings that name events and fields, and dumps that have numbers alone.

use std::fmt;

use crate::model::{Meaning, Schema, SchemaEnumeration, SchemaEvent, SchemaSubsystem};

/// How much a change breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeGravity {
    /// Nothing.
    Compatible,
    /// Something that is likely a mistake.
    Doubtful,
    /// Dumps with numbers alone have other names under the new definitions.
    Numbers,
    /// Filters, scripts and mappings find an event or a field no more, or find other values.
    Breaking,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// How much it breaks.
    pub gravity: ChangeGravity,
    /// The event, field or label: `cache:look.page`.
    pub about: String,
    /// The change.
    pub what: String,
}

impl ChangeGravity {
    /// A word for people and programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Doubtful => "doubtful",
            Self::Numbers => "numbers",
            Self::Breaking => "breaking",
        }
    }
}

impl fmt::Display for SchemaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.gravity.word(), self.about, self.what)
    }
}

/// All changes from an old schema to a new one, the gravest first.
#[must_use]
pub fn diff(old: &Schema, new: &Schema) -> Vec<SchemaChange> {
    let mut changes = Changes(Vec::new());
    for subsystem in &old.subsystems {
        match new.subsystem(&subsystem.name) {
            Some(now) => changes.subsystem((old, subsystem), (new, now)),
            None => changes.push(ChangeGravity::Breaking, &subsystem.name, "the subsystem is gone, and its events"),
        }
    }
    for subsystem in new.subsystems.iter().filter(|now| old.subsystem(&now.name).is_none()) {
        changes.push(ChangeGravity::Compatible, &subsystem.name, "the subsystem is new");
    }
    for enumeration in &old.enumerations {
        if let Some(now) = new.enumerations.iter().find(|now| now.name == enumeration.name) {
            changes.enumeration(enumeration, now);
        }
    }
    let is_changed = !changes.0.is_empty();
    if new.version < old.version {
        let what = format!("the version goes back from {} to {}", old.version, new.version);
        changes.push(ChangeGravity::Doubtful, &new.name, what);
    } else if is_changed && new.version == old.version && !new.is_plain {
        changes.push(ChangeGravity::Doubtful, &new.name, format!("the version is still {}", old.version));
    }
    changes.0.sort_by_key(|change| std::cmp::Reverse(change.gravity));
    changes.0
}

struct Changes(Vec<SchemaChange>);

impl Changes {
    fn push(&mut self, gravity: ChangeGravity, about: &str, what: impl Into<String>) {
        self.0.push(SchemaChange { gravity, about: about.to_owned(), what: what.into() });
    }

    fn subsystem(&mut self, (old, before): (&Schema, &SchemaSubsystem), (new, now): (&Schema, &SchemaSubsystem)) {
        if before.id != now.id {
            self.push(ChangeGravity::Numbers, &before.name, format!("the id is {} instead of {}", now.id, before.id));
        }
        for event in &before.events {
            let about = format!("{}:{}", before.name, event.name);
            match now.event(&event.name) {
                Some(after) => self.event(&about, (old, event), (new, after)),
                None => self.push(ChangeGravity::Breaking, &about, "the event is gone"),
            }
        }
        for event in now.events.iter().filter(|event| before.event(&event.name).is_none()) {
            let about = format!("{}:{}", now.name, event.name);
            self.push(ChangeGravity::Compatible, &about, "the event is new");
            if old.version > 0 && new.version > old.version && (1..=old.version).contains(&event.since) {
                let what = format!(
                    "it is said to be there since version {}; it is new in version {}",
                    event.since, new.version
                );
                self.push(ChangeGravity::Doubtful, &about, what);
            }
        }
        self.meanings(before, now);
    }

    fn event(&mut self, about: &str, (old, before): (&Schema, &SchemaEvent), (new, now): (&Schema, &SchemaEvent)) {
        if before.id != now.id {
            self.push(ChangeGravity::Numbers, about, format!("the id is {} instead of {}", now.id, before.id));
        }
        if before.level != now.level {
            let what = format!("the level is {} instead of {}: sessions select by it", now.level, before.level);
            self.push(ChangeGravity::Doubtful, about, what);
        }
        for field in &before.fields {
            let about = format!("{about}.{}", field.name);
            let Some(after) = now.fields.iter().find(|after| after.name == field.name) else {
                self.push(ChangeGravity::Breaking, &about, "the field is gone");
                continue;
            };
            let (was, is) = (old.type_word(&field.kind), new.type_word(&after.kind));
            if was != is {
                let gravity = if is_wider(&was, &is) { ChangeGravity::Compatible } else { ChangeGravity::Breaking };
                self.push(gravity, &about, format!("its type is {is} instead of {was}"));
            }
            if field.unit != after.unit {
                let unit = |unit: &Option<String>| unit.clone().unwrap_or_else(|| "none".to_owned());
                let what = format!("its unit is {} instead of {}", unit(&after.unit), unit(&field.unit));
                self.push(ChangeGravity::Breaking, &about, what);
            }
        }
        for field in now.fields.iter().filter(|field| !before.fields.iter().any(|known| known.name == field.name)) {
            let what = "the field is new: programs that call the event do not compile until they give it";
            self.push(ChangeGravity::Doubtful, &format!("{about}.{}", field.name), what);
        }
        let order = |event: &SchemaEvent, other: &SchemaEvent| -> Vec<String> {
            let is_common = |name: &String| other.fields.iter().any(|field| field.name == *name);
            event.fields.iter().map(|field| field.name.clone()).filter(is_common).collect()
        };
        if order(before, now) != order(now, before) {
            self.push(
                ChangeGravity::Doubtful,
                about,
                "fields are in another order: programs give their arguments in that order",
            );
        }
    }

    fn enumeration(&mut self, before: &SchemaEnumeration, now: &SchemaEnumeration) {
        if before.word != now.word {
            let gravity =
                if is_wider(before.word, now.word) { ChangeGravity::Compatible } else { ChangeGravity::Breaking };
            self.push(gravity, &before.name, format!("its integer is {} instead of {}", now.word, before.word));
        }
        for label in &before.labels {
            let about = format!("{}.{}", before.name, label.name);
            match now.labels.iter().find(|after| after.name == label.name) {
                Some(after) if after.value == label.value => {}
                Some(after) => {
                    self.push(
                        ChangeGravity::Breaking,
                        &about,
                        format!("its value is {} instead of {}", after.value, label.value),
                    );
                }
                None => self.push(ChangeGravity::Breaking, &about, "the label is gone"),
            }
        }
        for label in now.labels.iter().filter(|label| !before.labels.iter().any(|known| known.name == label.name)) {
            self.push(ChangeGravity::Compatible, &format!("{}.{}", now.name, label.name), "the label is new");
        }
    }

    fn meanings(&mut self, before: &SchemaSubsystem, now: &SchemaSubsystem) {
        let same = |meaning: &Meaning, other: &&Meaning| (other.word, &other.name) == (meaning.word, &meaning.name);
        for meaning in &before.meanings {
            let about = format!("{} {}", meaning.word, meaning.name);
            let Some(after) = now.meanings.iter().find(|other| same(meaning, other)) else {
                self.push(ChangeGravity::Breaking, &about, "it is gone: analyses do not know what these events mean");
                continue;
            };
            let shown = |meaning: &Meaning, of: &SchemaSubsystem| {
                let shown = |used: &crate::model::EventUse| {
                    let event = &of.events[used.event];
                    let facts: Vec<String> = used
                        .facts
                        .iter()
                        .map(|(fact, value)| match value {
                            crate::model::FactValue::Field(field) => {
                                format!("{}={}", fact.word(), event.fields[*field].name)
                            }
                            other => format!("{}={other:?}", fact.word()),
                        })
                        .collect();
                    format!("{} {} {}", used.role.word(), event.name, facts.join(" "))
                };
                meaning.events.iter().map(shown).collect::<Vec<_>>()
            };
            if shown(meaning, before) != shown(after, now) {
                self.push(ChangeGravity::Doubtful, &about, "it is made of other events or facts");
            }
        }
        for meaning in now.meanings.iter().filter(|meaning| !before.meanings.iter().any(|other| same(meaning, &other)))
        {
            self.push(ChangeGravity::Compatible, &format!("{} {}", meaning.word, meaning.name), "it is new");
        }
    }
}

/// Whether all values of a type are values of another one that people read alike.
fn is_wider(before: &str, now: &str) -> bool {
    let bits = |word: &str| word.get(1..).and_then(|bits| bits.parse::<u32>().ok());
    let (Some(was), Some(is)) = (bits(before), bits(now)) else { return false };
    before[..1] == now[..1] && was <= is
}
