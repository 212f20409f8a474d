//! Keys of events that belong together: values of fields, one or several, as they are in the trace.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::answer::Cell;
use crate::{AnalysisEvent, EventValue, FieldSlot};

/// A value that is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum KeyValue {
    /// An integer.
    Integer(i64),
    /// The bits of a double.
    Real(u64),
    /// The bytes of a text.
    Text(Box<[u8]>),
}

/// Values, in an order that both ends agree on. Two keys are equal if all their values are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Key {
    /// No value: everything has the same key.
    #[default]
    Empty,
    /// One integer: the usual case takes no memory of its own.
    Integer(i64),
    /// Other values.
    Labels(Box<[KeyValue]>),
}

impl From<EventValue<'_>> for KeyValue {
    fn from(value: EventValue<'_>) -> Self {
        match value {
            EventValue::Integer(integer) => Self::Integer(integer),
            EventValue::Real(real) => Self::Real(real.to_bits()),
            EventValue::Text(text) => Self::Text(text.into()),
        }
    }
}

impl From<Vec<KeyValue>> for Key {
    fn from(labels: Vec<KeyValue>) -> Self {
        match *labels.as_slice() {
            [] => Self::Empty,
            [KeyValue::Integer(integer)] => Self::Integer(integer),
            _ => Self::Labels(labels.into()),
        }
    }
}

impl KeyValue {
    /// The value of an event there.
    #[must_use]
    pub fn of(event: &AnalysisEvent<'_>, slot: &FieldSlot) -> Option<Self> {
        event.value(slot).map(Self::from)
    }

    /// For a table, where people read integers in that base.
    #[must_use]
    pub fn cell_in(&self, base: u8) -> Cell {
        match self {
            Self::Integer(integer) if base != 10 => Cell::Based(*integer, base),
            _ => self.cell(),
        }
    }

    /// For a table.
    #[must_use]
    pub fn cell(&self) -> Cell {
        match self {
            Self::Integer(integer) => Cell::Integer(*integer),
            Self::Real(bits) => Cell::Number(f64::from_bits(*bits)),
            Self::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        }
    }
}

impl Key {
    /// The key of one label.
    #[must_use]
    pub fn one(label: KeyValue) -> Self {
        match label {
            KeyValue::Integer(integer) => Self::Integer(integer),
            label => Self::Labels(Box::new([label])),
        }
    }

    /// The values of an event in these places; `None` if it lacks one of them.
    #[must_use]
    pub fn of(event: &AnalysisEvent<'_>, slots: &[FieldSlot]) -> Option<Self> {
        match slots {
            [slot] => KeyValue::of(event, slot).map(Self::one),
            _ => slots.iter().map(|slot| KeyValue::of(event, slot)).collect::<Option<Vec<KeyValue>>>().map(Self::from),
        }
    }

    /// The same, where people read integers in these bases, one for each value.
    #[must_use]
    pub fn cell_in(&self, bases: &[u8]) -> Cell {
        match (self, bases) {
            (Self::Integer(integer), [base]) => KeyValue::Integer(*integer).cell_in(*base),
            (Self::Labels(labels), _) if labels.len() == bases.len() && labels.len() > 1 => {
                let word = |(label, base): (&KeyValue, &u8)| match label {
                    KeyValue::Integer(integer) => in_base(*integer, *base),
                    label => label.to_string(),
                };
                Cell::Text(labels.iter().zip(bases).map(word).collect::<Vec<_>>().join(", "))
            }
            _ => self.cell(),
        }
    }

    /// For a table: a value as it is, several as a text.
    #[must_use]
    pub fn cell(&self) -> Cell {
        match self {
            Self::Empty => Cell::Empty,
            Self::Integer(integer) => Cell::Integer(*integer),
            Self::Labels(labels) => match &**labels {
                [label] => label.cell(),
                _ => Cell::Text(self.to_string()),
            },
        }
    }
}

/// An integer as people read it in a base: with a prefix unless that is 10, and then without a sign.
#[must_use]
pub fn in_base(integer: i64, base: u8) -> String {
    match base {
        2 => format!("{integer:#b}"),
        8 => format!("{integer:#o}"),
        16 => format!("0x{integer:X}"),
        _ => integer.to_string(),
    }
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Real(bits) => write!(f, "{}", f64::from_bits(*bits)),
            Self::Text(text) => f.write_str(&String::from_utf8_lossy(text)),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => Ok(()),
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Labels(labels) => {
                for (place, label) in labels.iter().enumerate() {
                    write!(f, "{}{label}", if place > 0 { ", " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}
