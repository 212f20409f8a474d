//! Changes between two versions of a schema, and their effects on readers.
//!
//! Traces describe themselves, so that they stay readable; the work of people may break: filters,
//! scripts, own analyses and mappings that name events and fields, and dumps that have numbers alone.

use std::fmt;

use crate::model::{
    EventUse, FactValue, Meaning, MeaningFact, Schema, SchemaEnumeration, SchemaEvent, SchemaSubsystem, SchemaType,
};

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
    for enumeration in
        old.enumerations.iter().filter(|known| !new.enumerations.iter().any(|now| now.name == known.name))
    {
        changes.push(ChangeGravity::Breaking, &enumeration.name, "the enumeration is gone, and its constants");
    }
    if old.name != new.name && !new.is_plain {
        let what = format!("the schema is called {} instead of {}: files and constants are, too", new.name, old.name);
        changes.push(ChangeGravity::Breaking, &new.name, what);
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
        for duration in &before.durations {
            // Without its events, that is what is said of them.
            let is_gone = !now.durations.iter().any(|other| other.name == duration.name);
            if is_gone && now.event(&before.events[duration.begin].name).is_some() {
                let about = format!("duration {}.{}", now.name, duration.name);
                self.push(
                    ChangeGravity::Doubtful,
                    &about,
                    "it is no duration: programs that use its scope do not compile",
                );
            }
        }
        self.meanings((old, before), (new, now));
    }

    fn event(&mut self, about: &str, (old, before): (&Schema, &SchemaEvent), (new, now): (&Schema, &SchemaEvent)) {
        if before.id != now.id {
            self.push(ChangeGravity::Numbers, about, format!("the id is {} instead of {}", now.id, before.id));
        }
        if before.level != now.level {
            let name = |level: u8| kymo_schema::level::LogLevel::of(level.into()).map_or("debug", |level| level.name);
            let what =
                format!("the level is {} instead of {}: sessions select by it", name(now.level), name(before.level));
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
                let is_built_in = |kind: &SchemaType| matches!(kind, SchemaType::Scalar(_));
                let is_wider = is_built_in(&field.kind) && is_built_in(&after.kind) && is_wider(&was, &is);
                let (gravity, effect) = match is_wider {
                    true => (ChangeGravity::Doubtful, ": programs in Rust do not compile until they are changed"),
                    false => (ChangeGravity::Breaking, ""),
                };
                self.push(gravity, &about, format!("its type is {is} instead of {was}{effect}"));
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
            let what =
                "fields are in another order: programs that are compiled again give their arguments in the old one";
            self.push(ChangeGravity::Breaking, about, what);
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

    fn meanings(&mut self, (old, before): (&Schema, &SchemaSubsystem), (new, now): (&Schema, &SchemaSubsystem)) {
        let same = |meaning: &Meaning, other: &&Meaning| (other.word, &other.name) == (meaning.word, &meaning.name);
        let about = |meaning: &Meaning| format!("{} {}.{}", meaning.word, now.name, meaning.name);
        for meaning in &before.meanings {
            let about = about(meaning);
            let Some(after) = now.meanings.iter().find(|other| same(meaning, other)) else {
                self.push(ChangeGravity::Breaking, &about, "it is gone: analyses do not know what these events mean");
                continue;
            };
            let (was, is) = (roles(old, meaning), roles(new, after));
            for role in was.iter().filter(|role| !is.contains(role)) {
                self.push(ChangeGravity::Breaking, &about, format!("no more: {role}"));
            }
            for role in is.iter().filter(|role| !was.contains(role)) {
                self.push(ChangeGravity::Compatible, &about, format!("new: {role}"));
            }
        }
        for meaning in now.meanings.iter().filter(|meaning| !before.meanings.iter().any(|other| same(meaning, &other)))
        {
            self.push(ChangeGravity::Compatible, &about(meaning), "it is new");
        }
    }
}

/// The roles of a meaning, each with its facts.
fn roles(schema: &Schema, meaning: &Meaning) -> Vec<String> {
    let role = |used: &EventUse| {
        let (subsystem, event) = schema.event_of(used);
        let fact = |(fact, value): &(MeaningFact, FactValue)| {
            let value = match value {
                FactValue::Field(field) => event.fields[*field].name.clone(),
                FactValue::Text(text) => format!("{text:?}"),
                FactValue::Number(number) => number.to_string(),
                FactValue::Thread => "thread".to_owned(),
                FactValue::Process => "process".to_owned(),
            };
            format!("{} {value}", fact.word())
        };
        let facts: Vec<String> = used.facts.iter().map(fact).collect();
        format!("{} {}.{} ({})", used.role.word(), subsystem.name, event.name, facts.join(", "))
    };
    meaning.events.iter().map(role).collect()
}

/// Whether all values of a type are values of another one that people read alike.
fn is_wider(before: &str, now: &str) -> bool {
    let bits = |word: &str| word.get(1..).and_then(|bits| bits.parse::<u32>().ok());
    let (Some(was), Some(is)) = (bits(before), bits(now)) else { return false };
    before[..1] == now[..1] && was <= is
}
