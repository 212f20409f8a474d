//! SQL over the traces, without an import: every class of events is a table, and so is every analysis.
//!
//! ```text
//! Session ── database ──> Database ── query ──> SqlAnswer: columns, then batches as they are asked for, then a Report
//!
//! sql::Engine ── what is wanted ──> tables (here) ──> Session::events, indexes of packets, analyses
//! ```
//!
//! What is read is read by the threads that the answer asks with: those of DataFusion's runtime, which live here, or, where
//! the order of time is wanted, those of [`EventTable::stream`](crate::EventTable::stream).

mod catalog;
mod events;
mod facts;
mod functions;
mod output;
mod states;
mod terms;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use kymo_sql::{Engine, EngineOptions, Problem, SendableRecordBatchStream};
use kymo_table::RecordBatch;
use kymo_table::arrow::datatypes::SchemaRef;
use tokio::runtime::Runtime;

use self::catalog::{Shared, TraceCatalog};
use self::watch::Watch;
use crate::open::Session;
use crate::report::Report;

pub use self::functions::FUNCTIONS;
pub use self::output::{AnswerFormat, WriteFailure, write_answer};

/// How queries are answered.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    /// What sorting, grouping and joining may hold in memory; beyond it they write to temporary files.
    pub memory_bytes: usize,
    /// Events may be out of the order of time: clocks that step back are no error then, and `order by time` sorts.
    pub is_unordered: bool,
}

/// 1 GiB, and order is relied on.
impl Default for SqlOptions {
    fn default() -> Self {
        Self { memory_bytes: 1 << 30, is_unordered: false }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SqlFailure {
    /// The query is wrong, or cannot be answered.
    #[error("{0}")]
    Query(#[from] Problem),
    /// The system has no threads.
    #[error("no thread can be started: {0}")]
    Threads(Arc<std::io::Error>),
}

impl SqlFailure {
    /// The query is at fault, and not what it reads.
    #[must_use]
    pub fn is_in_query(&self) -> bool {
        matches!(self, Self::Query(problem) if problem.is_in_query)
    }
}

/// The traces as tables that can be asked several times: views and settings stay.
pub struct Database {
    shared: Arc<Shared>,
    engine: Arc<Engine>,
    runtime: Arc<Runtime>,
    /// One query is planned at a time.
    planning: Mutex<()>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

impl Session {
    /// The traces as tables.
    ///
    /// # Errors
    ///
    /// The system has no threads, or no folder for temporary files.
    pub fn database(self: &Arc<Self>, options: &SqlOptions) -> Result<Database, SqlFailure> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(self.threads.max(1)).thread_name("kymo-sql").enable_all().build();
        let runtime = runtime.map_err(|error| SqlFailure::Threads(Arc::new(error)))?;
        let shared = Arc::new(Shared::new(Arc::clone(self), options.is_unordered));
        let engine_options = EngineOptions { memory_bytes: options.memory_bytes, partitions: self.threads };
        let tables = Arc::new(TraceCatalog::new(Arc::clone(&shared)));
        let engine = Engine::new(&(tables as Arc<dyn kymo_sql::Catalog>), &engine_options)?;
        Ok(Database { shared, engine: Arc::new(engine), runtime: Arc::new(runtime), planning: Mutex::default() })
    }

    /// The answer to one query.
    ///
    /// # Errors
    ///
    /// The query is wrong, and where.
    pub fn sql(self: &Arc<Self>, query: &str, options: &SqlOptions) -> Result<SqlAnswer, SqlFailure> {
        self.database(options)?.query(query)
    }
}

impl Database {
    /// The answer to one query. Nothing of it is read before its first batch is asked for, but what analyses find, whose
    /// columns are not known before. Not to be called by a task of an asynchronous runtime.
    ///
    /// # Errors
    ///
    /// The query is wrong, and where.
    pub fn query(&self, query: &str) -> Result<SqlAnswer, SqlFailure> {
        let (stream, watch) = self.planned(query)?;
        let schema = stream.schema();
        let again =
            Again { query: query.to_owned(), shared: Arc::clone(&self.shared), engine: Arc::clone(&self.engine) };
        Ok(SqlAnswer {
            schema,
            stream: Some(stream),
            watch,
            again: Some(again),
            runtime: Arc::clone(&self.runtime),
            opening: self.shared.session.opening_report().clone(),
        })
    }

    /// How a query is answered: the plan, a line for each node.
    ///
    /// # Errors
    ///
    /// The query is wrong, and where.
    pub fn plan(&self, query: &str) -> Result<String, SqlFailure> {
        let _alone = self.planning.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.runtime.block_on(self.engine.plan(query))?)
    }

    /// The names of all tables, their columns, and the functions: what can be typed.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        TraceCatalog::new(Arc::clone(&self.shared)).words()
    }

    /// Tables and functions, and what they are.
    #[must_use]
    pub fn tables(&self) -> Vec<(String, String)> {
        TraceCatalog::new(Arc::clone(&self.shared)).tables()
    }

    /// The columns of a table; `None`: there is no such table.
    #[must_use]
    pub fn columns(&self, table: &str) -> Option<SchemaRef> {
        TraceCatalog::new(Arc::clone(&self.shared)).columns(table)
    }

    fn planned(&self, query: &str) -> Result<(SendableRecordBatchStream, Arc<Watch>), SqlFailure> {
        let _alone = self.planning.lock().unwrap_or_else(PoisonError::into_inner);
        let watch = self.shared.watch_anew();
        let stream = self.runtime.block_on(self.engine.query(query))?;
        Ok((stream, watch))
    }
}

/// The answer to a query, batch by batch. Dropping it stops whoever reads for it.
pub struct SqlAnswer {
    schema: SchemaRef,
    stream: Option<SendableRecordBatchStream>,
    watch: Arc<Watch>,
    /// To ask again, as long as nothing was given.
    again: Option<Again>,
    runtime: Arc<Runtime>,
    opening: Report,
}

impl fmt::Debug for SqlAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlAnswer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// A query that may have to be asked again.
struct Again {
    query: String,
    shared: Arc<Shared>,
    engine: Arc<Engine>,
}

impl SqlAnswer {
    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What stands between the rows so far and the whole truth; complete when there are no more.
    #[must_use]
    pub fn report(&self) -> Report {
        self.watch.report(&self.opening)
    }

    /// Reads everything in one part each, where packets turned out not to tell the times of their events.
    fn ask_again(&mut self) -> Option<Result<(), SqlFailure>> {
        let again = self.again.take().filter(|_| self.watch.is_unsliceable())?;
        self.stream = None;
        again.shared.give_up_slices();
        self.watch = again.shared.watch_anew();
        Some(match self.runtime.block_on(again.engine.query(&again.query)) {
            Ok(stream) => {
                self.stream = Some(stream);
                Ok(())
            }
            Err(problem) => Err(problem.into()),
        })
    }
}

impl Iterator for SqlAnswer {
    type Item = Result<RecordBatch, SqlFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let stream = self.stream.as_mut()?;
            match self.runtime.block_on(stream.next()) {
                Some(Ok(batch)) => {
                    self.again = None;
                    return Some(Ok(batch));
                }
                Some(Err(error)) => match self.ask_again() {
                    Some(Ok(())) => {}
                    Some(Err(failure)) => return Some(Err(failure)),
                    None => {
                        self.stream = None;
                        return Some(Err(SqlFailure::Query(Problem::new(&error, ""))));
                    }
                },
                None => {
                    self.stream = None;
                    return None;
                }
            }
        }
    }
}
