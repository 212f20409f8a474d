//! DataFusion set up for traces: names as traces have them, order by time relied on, memory limited.

use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::catalog::CatalogProviderList;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};

use crate::catalog::{self, Catalog, CatalogFunction};
use crate::ordered::ReadInOrder;
use crate::problem::Problem;

/// How queries are answered.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// What sorting, grouping and joining may hold in memory at a time; beyond it they write to temporary files.
    pub memory_bytes: usize,
    /// Partitions of tables: as many as there are threads.
    pub partitions: usize,
}

/// Consumers of memory that are named when there is too little.
const CONSUMERS_NAMED: NonZeroUsize = NonZeroUsize::new(3).expect("three is not zero");
/// What a sort keeps for merging what it wrote, at most.
const MERGE_BYTES: usize = 10 << 20;

/// Answers queries. Views and settings that a query makes are there for the next.
pub struct Engine {
    context: SessionContext,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine over the tables of a trace.
    ///
    /// # Errors
    ///
    /// There is no folder for temporary files.
    pub fn new(tables: &Arc<dyn Catalog>, options: &EngineOptions) -> Result<Self, Problem> {
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
        settings.execution.sort_spill_reservation_bytes = MERGE_BYTES.min(options.memory_bytes / 16);
        let pool = TrackConsumersPool::new(FairSpillPool::new(options.memory_bytes), CONSUMERS_NAMED);
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc();
        let runtime = runtime.map_err(|error| Problem::new(&error, ""))?;
        let catalogs = catalog::list();
        catalogs.register_catalog(CATALOG.to_owned(), catalog::provider(tables));
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_catalog_list(catalogs)
            .with_physical_optimizer_rule(Arc::new(ReadInOrder))
            .build();
        let context = SessionContext::new_with_state(state);
        for function in tables.functions() {
            let catalog = Arc::clone(tables);
            context.register_udtf(&function.name, Arc::new(CatalogFunction { catalog, name: function.name.clone() }));
        }
        Ok(Self { context })
    }

    /// The answer to one query: nothing of it is computed before it is asked for.
    ///
    /// # Errors
    ///
    /// The query is wrong, and where.
    pub async fn query(&self, query: &str) -> Result<SendableRecordBatchStream, Problem> {
        // Files are no business of a trace.
        let allowed = SQLOptions::new().with_allow_dml(false);
        let problem = |error| Problem::new(&error, query);
        let answer = self.context.sql_with_options(query, allowed).await.map_err(problem)?;
        answer.execute_stream().await.map_err(problem)
    }

    /// How a query is answered: the plan, a line for each node.
    ///
    /// # Errors
    ///
    /// As for [`query`](Self::query).
    pub async fn plan(&self, query: &str) -> Result<String, Problem> {
        let problem = |error| Problem::new(&error, query);
        let answer = self.context.sql(query).await.map_err(problem)?;
        let plan = answer.create_physical_plan().await.map_err(problem)?;
        Ok(displayable(&*plan).indent(false).to_string())
    }
}

const CATALOG: &str = "kymo";
