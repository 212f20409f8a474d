//! A rule for plans: joins let others run now and then.
//!
//! ```text
//! CrossJoinExec        ->      CooperativeExec
//!                                CrossJoinExec
//! ```
//!
//! A task that is not wanted any more ends where it lets others run. Tables do so between batches, but of two batches a join may
//! make a million.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

/// The rule.
#[derive(Debug)]
pub(crate) struct JoinsYield;

impl PhysicalOptimizerRule for JoinsYield {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let wrapped = |plan: Arc<dyn ExecutionPlan>| {
            Ok(match plan.name().ends_with("JoinExec") {
                true => Transformed::yes(Arc::new(CooperativeExec::new(plan)) as Arc<dyn ExecutionPlan>),
                false => Transformed::no(plan),
            })
        };
        plan.transform_up(wrapped).data()
    }

    fn name(&self) -> &'static str {
        "joins_yield"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
