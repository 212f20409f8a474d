//! In which base the integers of a column are written for people: fields of several classes of events may be one column.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kymo_format::model::{Dialect, FieldClass};
use serde::Serialize;

use crate::answers::bases::{FieldBase, bases_of_field};

/// Of all columns of a table, by their numbers; events are the numbers of their names.
#[derive(Debug, Default)]
pub(super) struct ColumnBases(Vec<OfColumn>);

#[derive(Debug, Default)]
struct OfColumn {
    /// All events that have the column.
    events: BTreeSet<i32>,
    /// Those of which it has a base.
    known: BTreeMap<FieldBase, BTreeSet<i32>>,
}

/// A base of those events that are named, or of all.
#[derive(Debug, Serialize)]
struct EventBase<'a> {
    #[serde(flatten)]
    base: &'a FieldBase,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<&'a str>>,
}

impl ColumnBases {
    /// Adds a field of a class of events.
    pub(super) fn add(&mut self, column: usize, event: i32, dialect: Dialect, class: &FieldClass) {
        if self.0.len() <= column {
            self.0.resize_with(column + 1, OfColumn::default);
        }
        let of = &mut self.0[column];
        of.events.insert(event);
        for base in bases_of_field(dialect, class) {
            of.known.entry(base).or_default().insert(event);
        }
    }

    /// The metadata of a column in a schema; empty where all integers are written in base 10.
    pub(super) fn metadata(&self, column: usize, names: &[String]) -> HashMap<String, String> {
        let Some(of) = self.0.get(column).filter(|of| !of.known.is_empty()) else { return HashMap::new() };
        let name = |event: &i32| names[*event as usize].as_str();
        let told = of.known.iter().map(|(base, events)| EventBase {
            base,
            events: (*events != of.events).then(|| events.iter().map(name).collect()),
        });
        let text = serde_json::to_string(&told.collect::<Vec<_>>()).expect("names and numbers are JSON");
        HashMap::from([("kymo.bases".to_owned(), text)])
    }
}
