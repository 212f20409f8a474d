//! A schema after all of its names are resolved.

use kymo_schema::field::{FieldType, IntegerType, ScalarType, ValueLabel};

use crate::problem::SchemaPlace;

/// All events of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Its name: an identifier.
    pub name: String,
    /// Its version; 0 if it has none, as files of `pleco` have.
    pub version: u32,
    /// A description.
    pub text: String,
    /// It is written in the language of Barrelfish's `pleco`.
    pub is_plain: bool,
    /// In the order in which they stand.
    pub enumerations: Vec<SchemaEnumeration>,
    /// In the order in which they stand.
    pub subsystems: Vec<SchemaSubsystem>,
}

/// Values that have names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaEnumeration {
    /// Its name.
    pub name: String,
    /// A description.
    pub text: String,
    /// The word of its integer: `u8`.
    pub word: &'static str,
    /// In the order in which they stand.
    pub labels: Vec<SchemaLabel>,
    /// Where it is defined.
    pub place: SchemaPlace,
}

/// A value that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaLabel {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: i128,
    /// Its meaning.
    pub text: String,
}

/// A part of a system that has events: their provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaSubsystem {
    /// Its name.
    pub name: String,
    /// A description.
    pub text: String,
    /// Its number.
    pub id: u16,
    /// In the order in which they stand.
    pub events: Vec<SchemaEvent>,
    /// Durations: programs record both of their events with a scope.
    pub durations: Vec<SchemaDuration>,
    /// Meanings of its events.
    pub meanings: Vec<Meaning>,
    /// Where it is defined.
    pub place: SchemaPlace,
}

/// Something that a thread does from one event to another, with nothing but shorter durations in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaDuration {
    /// Its name, also that of the pair.
    pub name: String,
    /// The place of its begin event in the subsystem; its end event, without fields, is the next one.
    pub begin: usize,
    /// Where it is defined.
    pub place: SchemaPlace,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaEvent {
    /// Its name.
    pub name: String,
    /// A description.
    pub text: String,
    /// Its number within the subsystem.
    pub id: u16,
    /// How important it is: 0 (emergency) to 14 (debug).
    pub level: u8,
    /// The version of the schema that first has it; 0: the file does not say.
    pub since: u32,
    /// In the order of its bytes.
    pub fields: Vec<SchemaField>,
    /// Where it is defined.
    pub place: SchemaPlace,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaField {
    /// Its name.
    pub name: String,
    /// A description.
    pub text: String,
    /// Unit of its numbers: `bytes`.
    pub unit: Option<String>,
    /// Its type.
    pub kind: SchemaType,
    /// Where it is defined.
    pub place: SchemaPlace,
}

/// Type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaType {
    /// One value; the word of its type: `u32`, `pointer`.
    Scalar(&'static str),
    /// One value that has a name: the place of its enumeration.
    Enumeration(usize),
    /// Text.
    Text,
    /// So many values of a type.
    Array(&'static str, u32),
    /// A number of values of a type.
    Sequence(&'static str),
}

/// Meaning of some events: a pair of begin and end, messages, a counter, a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// Its name for people.
    pub name: String,
    /// The word that defines it: `pair`, `flow`, `counter`, `state`.
    pub word: &'static str,
    /// A description.
    pub text: String,
    /// The events, each with its role.
    pub events: Vec<EventUse>,
    /// Where it is defined.
    pub place: SchemaPlace,
}

/// An event in a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventUse {
    /// Its role.
    pub role: MeaningRole,
    /// The place of its subsystem in the schema.
    pub subsystem: usize,
    /// The place of the event in that.
    pub event: usize,
    /// All facts, those of the meaning too.
    pub facts: Vec<(MeaningFact, FactValue)>,
}

/// Role of an event in a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeaningRole {
    /// Something begins.
    Begin,
    /// It ends.
    End,
    /// A message is sent.
    Send,
    /// It is received.
    Receive,
    /// A counter has another value.
    Change,
    /// A component is in a state.
    Enter,
    /// It is in none.
    Leave,
}

/// A property of an event in a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeaningFact {
    /// The number or text that belongs to one pair, or to one message.
    Key,
    /// The name that people see.
    Name,
    /// Where keys, names of counters and of components are unique.
    Within,
    /// Its kind.
    Group,
    /// The number of a counter.
    Value,
    /// Its unit.
    Unit,
    /// The state of a component.
    State,
    /// How many messages are received.
    Count,
    /// How many nanoseconds a receive may come before its send.
    Early,
}

/// Where the value of a fact is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactValue {
    /// In a field of the event, by its place.
    Field(usize),
    /// The same for all events.
    Text(String),
    /// The same for all events.
    Number(i128),
    /// The thread that records the event.
    Thread,
    /// Its process.
    Process,
}

impl Schema {
    /// The subsystem of this name.
    #[must_use]
    pub fn subsystem(&self, name: &str) -> Option<&SchemaSubsystem> {
        self.subsystems.iter().find(|subsystem| subsystem.name == name)
    }

    /// The meanings of an event, each with the event's role: by the places of its subsystem and itself.
    pub fn uses(&self, subsystem: usize, event: usize) -> impl Iterator<Item = (&Meaning, &EventUse)> {
        let meanings = self.subsystems.iter().flat_map(|subsystem| &subsystem.meanings);
        meanings.flat_map(move |meaning| {
            let is_it = move |used: &&EventUse| (used.subsystem, used.event) == (subsystem, event);
            meaning.events.iter().filter(is_it).map(move |used| (meaning, used))
        })
    }

    /// The event that has a role, with its subsystem.
    #[must_use]
    pub fn event_of(&self, used: &EventUse) -> (&SchemaSubsystem, &SchemaEvent) {
        let subsystem = &self.subsystems[used.subsystem];
        (subsystem, &subsystem.events[used.event])
    }

    /// The type of a field as definitions of programs have it.
    #[must_use]
    pub fn field_type(&self, kind: &SchemaType) -> FieldType {
        let scalar = |word: &str| ScalarType::named(word).expect("words of types are those of definitions");
        match kind {
            SchemaType::Scalar(word) => FieldType::Scalar(scalar(word)),
            SchemaType::Enumeration(place) => FieldType::Scalar(self.enumerations[*place].scalar()),
            SchemaType::Text => FieldType::Text,
            SchemaType::Array(word, count) => FieldType::Array(scalar(word), *count),
            SchemaType::Sequence(word) => FieldType::Sequence(scalar(word)),
        }
    }

    /// The type of a field as the language writes it: `u32`, `outcome`, `u8[16]`, `text`.
    #[must_use]
    pub fn type_word(&self, kind: &SchemaType) -> String {
        match kind {
            SchemaType::Scalar(word) => (*word).to_owned(),
            SchemaType::Enumeration(place) => self.enumerations[*place].name.clone(),
            SchemaType::Text => "text".to_owned(),
            SchemaType::Array(word, count) => format!("{word}[{count}]"),
            SchemaType::Sequence(word) => format!("{word}[]"),
        }
    }
}

impl SchemaEnumeration {
    /// Its integer.
    #[must_use]
    pub fn integer(&self) -> IntegerType {
        match ScalarType::named(self.word) {
            Some(ScalarType::Integer(integer)) => integer,
            _ => unreachable!("enumerations have integers"),
        }
    }

    fn scalar(&self) -> ScalarType {
        let label = |label: &SchemaLabel| ValueLabel { name: label.name.clone(), value: label.value };
        ScalarType::Enumeration(self.integer(), self.labels.iter().map(label).collect())
    }
}

impl SchemaSubsystem {
    /// The event of this name.
    #[must_use]
    pub fn event(&self, name: &str) -> Option<&SchemaEvent> {
        self.events.iter().find(|event| event.name == name)
    }
}

impl Meaning {
    /// Whether it is about an event in a role of mappings.
    pub(crate) fn has(&self, role: MeaningRole, (subsystem, event): (usize, usize)) -> bool {
        let is_it = |used: &EventUse| (used.subsystem, used.event, used.role.role()) == (subsystem, event, role.role());
        self.events.iter().any(is_it)
    }
}

impl MeaningRole {
    /// All of them, by the words of the meanings in which they may stand.
    pub(crate) const ALL: [(&'static str, Self); 7] = [
        ("pair", Self::Begin),
        ("pair", Self::End),
        ("flow", Self::Send),
        ("flow", Self::Receive),
        ("counter", Self::Change),
        ("state", Self::Enter),
        ("state", Self::Leave),
    ];

    /// The word of the language.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Begin => "begin",
            Self::End => "end",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Change => "change",
            Self::Enter => "enter",
            Self::Leave => "leave",
        }
    }

    /// The role of mappings that it is (docs/roles.md).
    #[must_use]
    pub fn role(self) -> &'static str {
        match self {
            Self::Change => "counter",
            Self::Enter | Self::Leave => "state",
            other => other.word(),
        }
    }

    /// The facts that it may have.
    pub(crate) fn facts(self) -> &'static [MeaningFact] {
        use MeaningFact::{Count, Early, Group, Key, Name, State, Unit, Value, Within};
        match self {
            Self::Begin | Self::End | Self::Send => &[Key, Name, Within, Group],
            Self::Receive => &[Key, Name, Within, Group, Count, Early],
            Self::Change => &[Value, Name, Within, Unit],
            Self::Enter => &[State, Name, Within, Group],
            Self::Leave => &[Name, Within, Group],
        }
    }

    /// The facts that it must have.
    pub(crate) fn required(self) -> &'static [MeaningFact] {
        match self {
            Self::Begin | Self::End | Self::Leave => &[],
            Self::Send | Self::Receive => &[MeaningFact::Key],
            Self::Change => &[MeaningFact::Value],
            Self::Enter => &[MeaningFact::State],
        }
    }
}

impl MeaningFact {
    /// All of them.
    pub(crate) const ALL: [Self; 9] = [
        Self::Key,
        Self::Name,
        Self::Within,
        Self::Group,
        Self::Value,
        Self::Unit,
        Self::State,
        Self::Count,
        Self::Early,
    ];

    /// The word of the language, and of mappings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Name => "name",
            Self::Within => "within",
            Self::Group => "group",
            Self::Value => "value",
            Self::Unit => "unit",
            Self::State => "state",
            Self::Count => "count",
            Self::Early => "early",
        }
    }
}
