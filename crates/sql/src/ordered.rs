//! A rule for plans: where partitions of a table are put together again, in order or not, the table is read in the order of
//! time instead.
//!
//! ```text
//! SortPreservingMergeExec: [time]          FilterExec
//!   FilterExec                       ->      TraceExec: in order, by all threads
//!     TraceExec: partitions=2
//! ```
//!
//! Partitions take slices of time in turn. A merge of them waits for one while the others may be
//! only a batch ahead; reading in order uses all threads. And the answer to a query without an
//! order has one: that of time.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::scan::TraceExec;

/// The rule.
#[derive(Debug)]
pub(crate) struct ReadInOrder;

impl PhysicalOptimizerRule for ReadInOrder {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = rewritten(plan)?;
        // The caller that runs the plan puts its partitions together.
        let several = plan.output_partitioning().partition_count() > 1;
        Ok(if several { in_order(&plan)?.unwrap_or(plan) } else { plan })
    }

    fn name(&self) -> &'static str {
        "read_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn rewritten(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if is_merge(&*plan)
        && let [child] = plan.children()[..]
        && child.output_partitioning().partition_count() > 1
        && let Some(ordered) = in_order(child)?
    {
        return Ok(match plan.fetch() {
            Some(fetch) => Arc::new(GlobalLimitExec::new(ordered, 0, Some(fetch))),
            None => ordered,
        });
    }
    let children: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().cloned().collect();
    let changed = children.iter().cloned().map(rewritten).collect::<Result<Vec<_>>>()?;
    if children.iter().zip(&changed).all(|(before, after)| Arc::ptr_eq(before, after)) {
        return Ok(plan);
    }
    plan.replace_children(changed, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

fn is_merge(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<SortPreservingMergeExec>() || plan.is::<CoalescePartitionsExec>()
}

/// The plan over one partition, if it leads down to a table and keeps its order on the way.
fn in_order(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(table) = plan.downcast_ref::<TraceExec>() {
        return Ok(Some(Arc::new(table.in_order())));
    }
    // Operators that take rows as they come, and little time for them. Groups are better made by
    // all.
    if !["FilterExec", "ProjectionExec", "CoalesceBatchesExec", "CooperativeExec", "LocalLimitExec"]
        .contains(&plan.name())
    {
        return Ok(None);
    }
    let [child] = plan.children()[..] else { return Ok(None) };
    let Some(child) = in_order(child)? else { return Ok(None) };
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(vec![child], options).map(Some)
}
