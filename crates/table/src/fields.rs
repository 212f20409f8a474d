//! The fields of one event record class as columns being filled, and the names of these.

use std::collections::HashMap;

use arrow::array::ArrayRef;
use arrow::datatypes::Field;
use kymo_decode::columns::ScopeField;
use kymo_format::model::Scope;

use crate::column::{ArrowColumn, CellSource, columns};

/// Columns of the fields of a class.
#[derive(Debug)]
pub struct FieldColumns {
    /// Of the packet's context: the same for all events of a packet.
    packet: Vec<ArrowColumn>,
    body: Vec<ArrowColumn>,
}

impl FieldColumns {
    /// Empty columns for the fields with columns that are `wanted` by their names. `keep_bytes`:
    /// texts have a second column with the bytes of those that are not valid.
    #[must_use]
    pub fn new(
        packet: &[ScopeField],
        body: &[ScopeField],
        names: &ColumnNames<'_>,
        keep_bytes: bool,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Self {
        let of = |fields: &[ScopeField]| -> Vec<ArrowColumn> {
            let all = fields.iter().flat_map(|field| {
                let name = names.column(field.scope, &field.name);
                columns(&name, &field.shape, keep_bytes)
            });
            all.filter(|column| wanted(column.name())).collect()
        };
        Self { packet: of(packet), body: of(body) }
    }

    /// Names and types.
    pub fn fields(&self) -> impl Iterator<Item = Field> {
        self.packet.iter().chain(&self.body).map(ArrowColumn::field)
    }

    /// Whether events have to be read for it.
    #[must_use]
    pub fn reads_events(&self) -> bool {
        !self.body.is_empty()
    }

    /// Appends events of one packet: `packet` has one row, `body` one for each event.
    pub fn append(&mut self, rows: usize, packet: Option<CellSource<'_>>, body: CellSource<'_>) {
        if let Some(packet) = packet {
            self.packet.iter_mut().for_each(|column| column.repeat(packet, 0, rows));
        }
        self.body.iter_mut().for_each(|column| column.append(body, 0..rows));
    }

    /// How many texts were not valid and have U+FFFD in their place, in the rows finished since the
    /// last call.
    pub fn replaced(&mut self) -> u64 {
        self.packet.iter_mut().chain(&mut self.body).map(ArrowColumn::replaced).sum()
    }

    /// The appended values, in the order of [`Self::fields`]; the columns are empty again.
    pub fn finish(&mut self) -> impl Iterator<Item = ArrayRef> {
        self.packet.iter_mut().chain(&mut self.body).map(ArrowColumn::finish)
    }
}

/// The names of the columns of the fields of a class: as the field, but a field with the name of
/// one that comes later in the record, or of a column that every table has, gets its scope's before
/// it.
#[derive(Debug)]
pub struct ColumnNames<'a> {
    /// The last scope that has the name.
    last: HashMap<&'a str, Scope>,
    taken: &'a [&'a str],
}

impl<'a> ColumnNames<'a> {
    /// For a class with these fields.
    pub fn new(fields: impl Iterator<Item = (Scope, &'a str)>, taken: &'a [&'a str]) -> Self {
        let mut last: HashMap<&str, Scope> = HashMap::new();
        for (scope, name) in fields {
            let known = last.entry(name).or_insert(scope);
            *known = scope.max(*known);
        }
        Self { last, taken }
    }

    /// The column of a field.
    #[must_use]
    pub fn column(&self, scope: Scope, name: &str) -> String {
        if !self.taken.contains(&name) && self.last.get(name).is_none_or(|last| *last <= scope) {
            return name.to_owned();
        }
        format!("{}.{name}", scope_name(scope))
    }
}

/// The prefix of a scope's fields where their names alone are not enough.
#[must_use]
pub fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "packet_header",
        Scope::PacketContext => "packet_context",
        Scope::EventHeader => "header",
        Scope::EventCommonContext => "common_context",
        Scope::EventSpecificContext => "context",
        Scope::EventPayload => "payload",
    }
}
