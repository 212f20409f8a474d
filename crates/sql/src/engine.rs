//! DataFusion set up for traces: names as traces have them, order by time relied on, memory limited.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::CatalogProviderList;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use datafusion::prelude::{DataFrame, SQLOptions, SessionConfig, SessionContext};

use crate::catalog::{self, Catalog, CatalogFunction};
use crate::ordered::ReadInOrder;
use crate::problem::QueryProblem;
use crate::yielding::JoinsYield;

/// How queries are answered.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The memory that sorting, grouping and joining may hold at a time; beyond it they write to
    /// temporary files.
    pub memory_bytes: usize,
    /// Partitions of tables: as many as there are threads.
    pub partitions: usize,
}

/// Consumers of memory that are named when there is too little.
const CONSUMERS_NAMED: NonZeroUsize = NonZeroUsize::new(3).expect("three is not zero");
/// The memory that a sort keeps for merging its own files, at most.
const MERGE_BYTES: usize = 10 << 20;

/// Answers queries. Views and settings that a query makes are there for the next.
pub struct QueryEngine {
    context: SessionContext,
}

impl fmt::Debug for QueryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl QueryEngine {
    /// An engine over the tables of a trace.
    ///
    /// # Errors
    ///
    /// There is no folder for temporary files.
    pub fn new(tables: &Arc<dyn Catalog>, options: &EngineOptions) -> Result<Self, QueryProblem> {
        let schemas = tables.schemas();
        let default = schemas.first().map_or("trace", String::as_str);
        let mut config = SessionConfig::new()
            .with_target_partitions(options.partitions.max(1))
            .with_information_schema(true)
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(CATALOG, default);
        let settings = config.options_mut();
        settings.sql_parser.enable_ident_normalization = false;
        settings.sql_parser.map_string_types_to_utf8view = false;
        settings.sql_parser.collect_spans = true;
        settings.optimizer.prefer_existing_sort = true;
        settings.explain.physical_plan_only = true;
        // A sixteenth was too little to merge with 28 MiB the data that 24 MiB could merge; a third
        // left too little to sort with.
        let merge_bytes = options.memory_bytes / (2 * options.partitions.max(2));
        settings.execution.sort_spill_reservation_bytes = MERGE_BYTES.min(merge_bytes);
        let pool = TrackConsumersPool::new(FairSpillPool::new(options.memory_bytes), CONSUMERS_NAMED);
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc();
        let runtime = runtime.map_err(|error| QueryProblem::new(&error, ""))?;
        let catalogs = catalog::list();
        catalogs.register_catalog(CATALOG.to_owned(), catalog::provider(tables));
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_catalog_list(catalogs)
            .with_physical_optimizer_rule(Arc::new(ReadInOrder))
            .with_physical_optimizer_rule(Arc::new(JoinsYield))
            .build();
        let context = SessionContext::new_with_state(state);
        for function in tables.functions() {
            let catalog = Arc::clone(tables);
            context.register_udtf(&function.name, Arc::new(CatalogFunction { catalog, name: function.name.clone() }));
        }
        Ok(Self { context })
    }

    /// Understands a query. A statement with an effect, such as `create view`, takes effect here.
    ///
    /// # Errors
    ///
    /// The query is wrong, and where.
    pub async fn ask(&self, query: &str) -> Result<Query, QueryProblem> {
        // Files are no business of a trace.
        let allowed = SQLOptions::new().with_allow_dml(false);
        let answer = self.context.sql_with_options(query, allowed).await;
        let answer = answer.map_err(|error| QueryProblem::asking(&error, query))?;
        Ok(Query { answer, text: query.to_owned() })
    }
}

/// A query that was understood: the names in it keep their meaning of that time.
#[derive(Clone, Debug)]
pub struct Query {
    answer: DataFrame,
    text: String,
}

impl Query {
    /// How it is answered, once: nothing is computed yet.
    ///
    /// # Errors
    ///
    /// It cannot be answered, and which part of it.
    pub async fn plan(&self) -> Result<QueryPlan, QueryProblem> {
        let context = Arc::new(self.answer.task_ctx());
        let plan = self.answer.clone().create_physical_plan().await;
        let plan = plan.map_err(|error| QueryProblem::new(&error, &self.text))?;
        Ok(QueryPlan { plan, context, text: self.text.clone() })
    }
}

/// How a query is answered, a line for each node.
pub struct QueryPlan {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    text: String,
}

impl fmt::Debug for QueryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("text", &self.text).finish_non_exhaustive()
    }
}

impl fmt::Display for QueryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        displayable(&*self.plan).indent(false).fmt(f)
    }
}

impl QueryPlan {
    /// The columns of the answer.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// The answer: nothing of it is computed before it is asked for. To be called within an asynchronous runtime.
    ///
    /// # Errors
    ///
    /// It cannot be answered.
    pub fn stream(self) -> Result<SendableRecordBatchStream, QueryProblem> {
        let stream = execute_stream(self.plan, self.context);
        stream.map_err(|error| QueryProblem::new(&error, &self.text))
    }
}

const CATALOG: &str = "kymo";
