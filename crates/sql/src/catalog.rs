//! Lists the tables and functions, found by name: a trace may have a thousand classes of events.
//!
//! ```text
//! sched_switch, events, streams     the tables by their names
//! event.sched_switch                a class of events, whatever else has its name
//! cpu('process')                    a function that is a table
//! ```

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemoryCatalogProviderList, SchemaProvider, TableFunctionArgs,
    TableFunctionImpl, TableProvider,
};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion::datasource::{MemTable, TableType};
use datafusion::logical_expr::Expr;

use crate::provider::TraceProvider;
use crate::table::{TableError, TraceTable, external};

/// The tables and functions of a trace.
pub trait Catalog: Debug + Send + Sync {
    /// The schemas that names can begin with; the first is meant where a name has none.
    fn schemas(&self) -> Vec<String>;

    /// The names of a schema's tables.
    fn names(&self, schema: &str) -> Vec<String>;

    /// A table.
    ///
    /// # Errors
    ///
    /// The relation exists, but it cannot be read.
    fn relation(&self, schema: &str, name: &str) -> Result<Option<NamedRelation>, TableError>;

    /// The functions that are tables.
    fn functions(&self) -> Vec<Function>;

    /// The rows of a function.
    ///
    /// # Errors
    ///
    /// The arguments are wrong, or there is no answer.
    fn call(&self, function: &str, arguments: &[Argument]) -> Result<NamedRelation, TableError>;
}

/// The relation that a name stands for.
#[derive(Clone, Debug)]
pub enum NamedRelation {
    /// Rows that are read when they are asked for.
    Read(Arc<dyn TraceTable>),
    /// Rows that are there.
    Rows(SchemaRef, Vec<RecordBatch>),
}

/// A function that is a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its description, in a sentence.
    pub description: String,
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A text.
    Text(String),
    /// An integer.
    Integer(i64),
    /// Yes or no.
    Boolean(bool),
}

/// All schemas of a catalog.
pub(crate) fn provider(catalog: &Arc<dyn Catalog>) -> Arc<dyn CatalogProvider> {
    let provider = MemoryCatalogProvider::new();
    for name in catalog.schemas() {
        let schema = TraceSchema { catalog: Arc::clone(catalog), name: name.clone(), own: Default::default() };
        provider.register_schema(&name, Arc::new(schema)).expect("a catalog in memory takes any schema");
    }
    Arc::new(provider)
}

/// A list with nothing in it yet.
pub(crate) fn list() -> Arc<MemoryCatalogProviderList> {
    Arc::new(MemoryCatalogProviderList::new())
}

/// The tables of a schema, and views that a query made.
#[derive(Debug)]
struct TraceSchema {
    catalog: Arc<dyn Catalog>,
    name: String,
    own: datafusion::catalog::MemorySchemaProvider,
}

#[async_trait]
impl SchemaProvider for TraceSchema {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.own.table_names();
        names.extend(self.catalog.names(&self.name));
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(own) = self.own.table(name).await? {
            return Ok(Some(own));
        }
        self.catalog.relation(&self.name, name).map_err(external)?.map(into_provider).transpose()
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        match self.own.table_type(name).await? {
            Some(own) => Ok(Some(own)),
            None => Ok(self.table_exist(name).then_some(TableType::Base)),
        }
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.table_exist(&name) {
            return plan_err!("there is a table `{name}` already");
        }
        self.own.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if !self.own.table_exist(name) && self.table_exist(name) {
            return plan_err!("`{name}` is of the trace: it cannot be dropped");
        }
        self.own.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.own.table_exist(name) || self.catalog.names(&self.name).iter().any(|known| known == name)
    }
}

fn into_provider(relation: NamedRelation) -> Result<Arc<dyn TableProvider>> {
    Ok(match relation {
        NamedRelation::Read(table) => Arc::new(TraceProvider::new(table)),
        NamedRelation::Rows(schema, batches) => Arc::new(MemTable::try_new(schema, vec![batches])?),
    })
}

/// A function of a catalog.
#[derive(Debug)]
pub(crate) struct CatalogFunction {
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) name: String,
}

impl TableFunctionImpl for CatalogFunction {
    fn call_with_args(&self, arguments: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let told: Vec<Argument> = arguments.exprs().iter().map(argument).collect::<Result<_>>()?;
        into_provider(self.catalog.call(&self.name, &told).map_err(external)?)
    }
}

fn argument(expression: &Expr) -> Result<Argument> {
    let told = match expression {
        Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) => {
            Some(Argument::Text(text.clone()))
        }
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => Some(Argument::Integer(*number)),
        Expr::Literal(ScalarValue::Boolean(Some(value)), _) => Some(Argument::Boolean(*value)),
        Expr::Negative(inner) => match argument(inner)? {
            Argument::Integer(number) => number.checked_neg().map(Argument::Integer),
            _ => None,
        },
        _ => None,
    };
    told.ok_or_else(|| exec_datafusion_err!("`{expression}` is no constant that a table function takes"))
}
