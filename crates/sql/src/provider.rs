//! A table of a trace as a DataFusion table.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use crate::filter::{Pushed, pushed};
use crate::scan::TraceExec;
use crate::table::{TableQuestion, TraceTable, external};

/// A table whose rows are read when they are asked for.
#[derive(Debug)]
pub(crate) struct TraceProvider {
    table: Arc<dyn TraceTable>,
}

impl TraceProvider {
    pub(crate) fn new(table: Arc<dyn TraceTable>) -> Self {
        Self { table }
    }

    /// The part of a condition that is asked where events are decoded.
    fn pushed(&self, condition: &Expr) -> Option<Pushed> {
        let schema = self.table.schema();
        let pushed = pushed(condition, &schema, &|column| self.table.term(column));
        pushed.filter(|pushed| self.table.takes(&pushed.filter))
    }
}

#[async_trait]
impl TableProvider for TraceProvider {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, conditions: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |condition: &&Expr| match self.pushed(condition) {
            Some(pushed) if pushed.is_exact => TableProviderFilterPushDown::Exact,
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(conditions.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        conditions: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut question = TableQuestion { columns: projection.cloned(), limit, ..TableQuestion::default() };
        for pushed in conditions.iter().filter_map(|condition| self.pushed(condition)) {
            question.begin = question.begin.max(pushed.begin);
            question.end = [question.end, pushed.end].into_iter().flatten().min();
            question.filters.push(pushed.filter);
        }
        let scan = self.table.scan(&question).map_err(external)?;
        let partitions = state.config().target_partitions();
        Ok(Arc::new(TraceExec::new(Arc::clone(&self.table), question, scan, partitions)))
    }
}
