//! The tables and functions that there are.

use std::collections::BTreeSet;
use std::sync::Arc;

use kymo_sql::{Argument, Catalog, Function, NamedRelation, TableError};
use kymo_table::arrow::datatypes::SchemaRef;

use super::events::EventRelation;
use super::functions::{self, table_functions};
use super::shared::{EVENTS, TableContext};
use super::{facts, selected, terms};

/// Where names are looked for that say nothing else.
const TRACE: &str = "trace";
/// Schema of event record classes, even if other tables have their names.
const EVENT: &str = "event";

/// The tables and functions of a session.
#[derive(Debug)]
pub(super) struct TraceCatalog {
    shared: Arc<TableContext>,
}

impl TraceCatalog {
    pub(super) fn new(shared: Arc<TableContext>) -> Self {
        Self { shared }
    }

    /// Words for completion: tables, functions, columns.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words: BTreeSet<String> = self.names(TRACE).into_iter().collect();
        words.extend(table_functions().map(|function| function.name.to_owned()));
        words.extend(terms::all_fields(&self.shared.session));
        for table in self.names(TRACE).iter().filter(|name| facts::TABLES.contains(&name.as_str())) {
            let columns = self.columns(table);
            words.extend(columns.iter().flat_map(|schema| schema.fields()).map(|field| field.name().clone()));
        }
        words.into_iter().collect()
    }

    /// Tables and functions, each with its description.
    pub(super) fn tables(&self) -> Vec<(String, String)> {
        let what = |name: &str| match name {
            EVENTS => "all events",
            "streams" => "data streams",
            "packets" => "packets",
            "losses" => "when events and packets were lost",
            "fields" => "which fields events have",
            _ => "events",
        };
        let mut tables: Vec<(String, String)> =
            self.names(TRACE).into_iter().map(|name| (name.clone(), what(&name).to_owned())).collect();
        tables.extend(table_functions().map(|it| (format!("{}()", it.name), it.description.to_owned())));
        tables
    }

    /// The columns of a table.
    pub(super) fn columns(&self, table: &str) -> Option<SchemaRef> {
        match self.relation(TRACE, table).ok()?? {
            NamedRelation::Read(table) => Some(table.schema()),
            NamedRelation::Rows(schema, _) => Some(schema),
        }
    }
}

impl Catalog for TraceCatalog {
    fn schemas(&self) -> Vec<String> {
        vec![TRACE.to_owned(), EVENT.to_owned()]
    }

    fn names(&self, schema: &str) -> Vec<String> {
        let own = |name: &str| name == EVENTS || facts::TABLES.contains(&name);
        let classes = self.shared.names().iter();
        if schema == EVENT {
            // Those that have another name are not told twice.
            return classes.filter(|name| own(name)).cloned().collect();
        }
        let classes = classes.filter(|name| !own(name)).cloned();
        [EVENTS].iter().chain(facts::TABLES).map(|name| (*name).to_owned()).chain(classes).collect()
    }

    fn relation(&self, schema: &str, name: &str) -> Result<Option<NamedRelation>, TableError> {
        if schema == TRACE {
            if name == EVENTS {
                return Ok(Some(NamedRelation::Read(Arc::new(EventRelation::all(&self.shared)?))));
            }
            if let Some(rows) = facts::table(&self.shared.session, name)? {
                return Ok(Some(NamedRelation::Rows(rows.schema(), vec![rows])));
            }
        }
        if !self.shared.names().contains(name) {
            return Ok(None);
        }
        Ok(Some(NamedRelation::Read(Arc::new(EventRelation::of_class(&self.shared, name)?))))
    }

    fn functions(&self) -> Vec<Function> {
        let function = |it: functions::TableFunction| Function {
            name: it.name.to_owned(),
            description: it.description.to_owned(),
        };
        table_functions().map(function).collect()
    }

    fn call(&self, function: &str, arguments: &[Argument]) -> Result<NamedRelation, TableError> {
        if let Some(events) = selected::call(&self.shared, function, arguments)? {
            return Ok(NamedRelation::Read(Arc::new(events)));
        }
        let rows = functions::call(&self.shared, function, arguments)?;
        Ok(NamedRelation::Rows(rows.schema(), vec![rows]))
    }
}
