//! SQL over the traces, without an import: every class of events is a table, and so is every analysis.
//!
//! ```text
//! Session ── database ──> Database ── ask ──> SqlQuery ── read ──> SqlAnswer: batches as they are asked for, then a Report
//!                        (views stay)      (its columns)
//!
//! sql::Engine ── what is wanted ──> tables (here) ──> Session::events, indexes of packets, analyses
//! ```
//!
//! The threads that the answer asks with do the reading: those of the asynchronous runtime, which
//! live here, or, where the order of time is wanted, those of
//! [`EventTable::stream`](crate::EventTable::stream).

mod catalog;
mod events;
mod facts;
mod functions;
mod output;
mod selected;
mod shared;
mod states;
mod terms;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt;
use kymo_sql::{EngineOptions, Query, QueryEngine, QueryPlan, QueryProblem};
use kymo_table::RecordBatch;
use kymo_table::arrow::datatypes::SchemaRef;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::catalog::TraceCatalog;
use self::shared::TableContext;
use self::watch::QueryScans;
use crate::open::Session;
use crate::open::progress::{Cancelled, Progress};
use crate::open::report::Report;

pub use self::output::{AnswerFormat, WriteFailure, write_answer};
pub use kymo_sql::FaultyPart as SqlFault;

/// How queries are answered.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    /// Bytes that sorting, grouping and joining may hold in memory; beyond it they write to
    /// temporary files.
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
    /// The query cannot be answered: it is wrong, or the traces do not hold the answer.
    #[error("{0}")]
    Asking(QueryProblem),
    /// Reading the answer cannot go on.
    #[error("{0}")]
    Reading(QueryProblem),
    /// The system has no threads.
    #[error("no thread can be started: {0}")]
    Threads(Arc<std::io::Error>),
    /// The request was canceled.
    #[error("it was cancelled")]
    Cancelled,
}

impl From<Cancelled> for SqlFailure {
    fn from(Cancelled: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl SqlFailure {
    /// Where the fault is; `None`: in the system, or nowhere.
    #[must_use]
    pub fn fault(&self) -> Option<SqlFault> {
        match self {
            Self::Asking(problem) | Self::Reading(problem) => Some(problem.fault),
            Self::Threads(_) | Self::Cancelled => None,
        }
    }

    /// The query is at fault, and not the data that it reads.
    #[must_use]
    pub fn is_in_query(&self) -> bool {
        self.fault() == Some(SqlFault::Query)
    }
}

/// The traces as tables that can be asked several times: views and settings stay.
pub struct SqlDatabase {
    inner: Arc<Inner>,
}

/// The state that a database shares with queries and answers, which may live longer.
struct Inner {
    shared: Arc<TableContext>,
    engine: QueryEngine,
    /// There until the end.
    runtime: Option<Runtime>,
    /// One query is planned at a time.
    planning: Mutex<()>,
}

/// A caller that drops an answer does not wait for its threads to notice.
impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for SqlDatabase {
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
    pub fn database(self: &Arc<Self>, options: &SqlOptions) -> Result<SqlDatabase, SqlFailure> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(self.threads.max(1)).thread_name("kymo-sql").enable_all().build();
        let runtime = runtime.map_err(|error| SqlFailure::Threads(Arc::new(error)))?;
        let shared = Arc::new(TableContext::new(Arc::clone(self), options.is_unordered));
        let engine_options = EngineOptions { memory_bytes: options.memory_bytes, partitions: self.threads };
        let tables = Arc::new(TraceCatalog::new(Arc::clone(&shared)));
        let tables = tables as Arc<dyn kymo_sql::Catalog>;
        let engine = QueryEngine::new(&tables, &engine_options).map_err(SqlFailure::Asking)?;
        let inner = Inner { shared, engine, runtime: Some(runtime), planning: Mutex::default() };
        Ok(SqlDatabase { inner: Arc::new(inner) })
    }

    /// The answer to one query.
    ///
    /// # Errors
    ///
    /// The query is wrong, and where.
    pub fn sql(self: &Arc<Self>, query: &str, options: &SqlOptions) -> Result<SqlAnswer, SqlFailure> {
        self.database(options)?.query(query, &Arc::default())
    }
}

impl SqlDatabase {
    /// Understands one query. Nothing of its answer is read, except for analyses, whose columns are
    /// not known before. A statement that changes something for the next query, such as `create
    /// view`, is done. Not to be called by a task of an asynchronous runtime, and so is nothing
    /// here.
    ///
    /// # Errors
    ///
    /// The query is wrong, and where; or it was canceled.
    pub fn ask(&self, query: &str, progress: &Arc<Progress>) -> Result<SqlQuery, SqlFailure> {
        let inner = Arc::clone(&self.inner);
        let alone = inner.alone();
        let found = inner.shared.watch_with(QueryScans::new(progress));
        let asked = inner.runtime().block_on(inner.engine.ask(query)).map_err(SqlFailure::Asking);
        let query = progress.whole(asked)??;
        let first = inner.planned(&query, &found, &alone)?;
        let schema = first.plan.schema();
        drop(alone);
        Ok(SqlQuery { asked: Arc::new(PendingQuery { inner, query, found }), schema, first: Mutex::new(Some(first)) })
    }

    /// The answer to one query. Nothing of it is read before its first batch is asked for, except
    /// for analyses. A thread that waits for either gets [`SqlFailure::Cancelled`] soon after the
    /// progress was canceled.
    ///
    /// # Errors
    ///
    /// The query is wrong, and where; or it was canceled.
    pub fn query(&self, query: &str, progress: &Arc<Progress>) -> Result<SqlAnswer, SqlFailure> {
        self.ask(query, progress)?.read(progress)
    }

    /// How a query is answered: the plan, a line for each node.
    ///
    /// # Errors
    ///
    /// The query is wrong, and where.
    pub fn plan(&self, query: &str) -> Result<String, SqlFailure> {
        Ok(self.ask(query, &Arc::default())?.planned()?.plan.to_string())
    }

    /// The names of all tables, their columns, and the functions: the words that can be typed.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        self.catalog().words()
    }

    /// Tables and functions, and their descriptions.
    #[must_use]
    pub fn tables(&self) -> Vec<(String, String)> {
        self.catalog().tables()
    }

    /// The columns of a table; `None`: there is no such table.
    #[must_use]
    pub fn columns(&self, table: &str) -> Option<SchemaRef> {
        self.catalog().columns(table)
    }

    fn catalog(&self) -> TraceCatalog {
        TraceCatalog::new(Arc::clone(&self.inner.shared))
    }
}

impl Inner {
    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it ends with this")
    }

    /// The lock of planning.
    fn alone(&self) -> MutexGuard<'_, ()> {
        self.planning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn planned(&self, query: &Query, found: &QueryScans, _: &MutexGuard<'_, ()>) -> Result<Planned, SqlFailure> {
        let watch = self.shared.watch_with(QueryScans::after(found));
        let plan = self.runtime().block_on(query.plan()).map_err(SqlFailure::Asking)?;
        Ok(Planned { plan, watch })
    }
}

/// A query that was understood, and can be answered several times. Views and settings that change meanwhile do not change it.
pub struct SqlQuery {
    asked: Arc<PendingQuery>,
    schema: SchemaRef,
    /// For the first reader.
    first: Mutex<Option<Planned>>,
}

/// A query and its database.
struct PendingQuery {
    inner: Arc<Inner>,
    query: Query,
    /// The findings of reading that was needed to understand it.
    found: Arc<QueryScans>,
}

/// How it will be read, once.
struct Planned {
    plan: QueryPlan,
    watch: Arc<QueryScans>,
}

impl fmt::Debug for SqlQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlQuery").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PendingQuery {
    fn planned(&self) -> Result<Planned, SqlFailure> {
        self.inner.planned(&self.query, &self.found, &self.inner.alone())
    }
}

impl SqlQuery {
    /// The columns of the answer. There are none where the query only changed something.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The answer, from its beginning. Nothing of it is read before its first batch is asked for, and nothing more when the
    /// progress was canceled.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn read(&self, progress: &Arc<Progress>) -> Result<SqlAnswer, SqlFailure> {
        let Planned { plan, watch } = self.planned()?;
        let (schema, asked, progress) = (plan.schema(), Arc::clone(&self.asked), Arc::clone(progress));
        Ok(SqlAnswer { schema, rows: AnswerRows::Planned(plan), watch, asked, is_first: true, progress })
    }

    fn planned(&self) -> Result<Planned, SqlFailure> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.map_or_else(|| self.asked.planned(), Ok)
    }
}

/// The answer to a query, batch by batch. Dropping it stops the threads that read for it.
pub struct SqlAnswer {
    schema: SchemaRef,
    rows: AnswerRows,
    watch: Arc<QueryScans>,
    asked: Arc<PendingQuery>,
    /// It was not asked again, and nothing was given.
    is_first: bool,
    progress: Arc<Progress>,
}

/// How far an answer is.
enum AnswerRows {
    /// No rows were requested yet.
    Planned(QueryPlan),
    /// A task computes them.
    Running(RowTask),
    /// There are no more.
    Over,
}

/// A task that computes rows, a batch ahead of the caller: a caller that waits for it can do
/// something else now and then.
struct RowTask {
    batches: mpsc::Receiver<Result<RecordBatch, QueryProblem>>,
    task: JoinHandle<()>,
}

impl Drop for RowTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(plan: QueryPlan, batches: mpsc::Sender<Result<RecordBatch, QueryProblem>>) {
    let mut stream = match plan.stream() {
        Ok(stream) => stream,
        // Where the receiver is gone, the error is dropped.
        Err(problem) => return drop(batches.send(Err(problem)).await),
    };
    while let Some(batch) = stream.next().await {
        if batches.send(batch.map_err(|error| QueryProblem::new(&error, ""))).await.is_err() {
            break;
        }
    }
    // A caller that finds that there is no more finds all losses, too.
    drop(stream);
}

impl fmt::Debug for SqlAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlAnswer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl SqlAnswer {
    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The differences between the rows so far and the whole truth; complete when there are no
    /// more.
    #[must_use]
    pub fn report(&self) -> Report {
        self.watch.report(self.asked.inner.shared.session.opening_report())
    }

    /// A thread that waits for a batch gets [`SqlFailure::Cancelled`] soon after this was canceled.
    #[must_use]
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// The next batch, if it comes in such a time; `Pending`: it did not, and may be asked for again.
    pub fn next_within(&mut self, patience: Duration) -> Poll<Option<Result<RecordBatch, SqlFailure>>> {
        if self.progress.is_cancelled() && !matches!(self.rows, AnswerRows::Over) {
            self.rows = AnswerRows::Over;
            return Poll::Ready(Some(Err(SqlFailure::Cancelled)));
        }
        let asked = Arc::clone(&self.asked);
        let runtime = asked.inner.runtime();
        if matches!(self.rows, AnswerRows::Planned(_))
            && let AnswerRows::Planned(plan) = std::mem::replace(&mut self.rows, AnswerRows::Over)
        {
            let (out, batches) = mpsc::channel(1);
            self.rows = AnswerRows::Running(RowTask { batches, task: runtime.spawn(run(plan, out)) });
        }
        let AnswerRows::Running(RowTask { batches, task }) = &mut self.rows else { return Poll::Ready(None) };
        let next = runtime.block_on(async { tokio::time::timeout(patience, batches.recv()).await });
        match next {
            Err(_too_long) => return Poll::Pending,
            Ok(Some(Ok(batch))) => {
                self.is_first = false;
                return Poll::Ready(Some(Ok(batch)));
            }
            Ok(Some(Err(problem))) => {
                self.rows = AnswerRows::Over;
                return self
                    .ask_again(SqlFailure::Reading(problem))
                    .map_or_else(|it| Poll::Ready(Some(Err(it))), |()| Poll::Pending);
            }
            Ok(None) => {}
        }
        if let Err(error) = runtime.block_on(task)
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
        self.rows = AnswerRows::Over;
        Poll::Ready(None)
    }

    /// Reads everything in one part each, where packets turned out not to tell the times of their events.
    fn ask_again(&mut self, failure: SqlFailure) -> Result<(), SqlFailure> {
        if !std::mem::take(&mut self.is_first) || !self.watch.is_unsliceable() {
            return Err(failure);
        }
        self.asked.inner.shared.give_up_slices();
        let Planned { plan, watch } = self.asked.planned()?;
        (self.rows, self.watch) = (AnswerRows::Planned(plan), watch);
        Ok(())
    }
}

/// How often a waiting thread looks whether it should go on.
const PATIENCE: Duration = Duration::from_millis(50);

impl Iterator for SqlAnswer {
    type Item = Result<RecordBatch, SqlFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Poll::Ready(next) = self.next_within(PATIENCE) {
                return next;
            }
        }
    }
}
