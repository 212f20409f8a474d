//! The node of a plan that reads a table.
//!
//! ```text
//! TraceExec: table=sched_switch, filter=next_tid == 1234, columns=[time, next_comm], packets=12 of 400 (388 skipped), ...
//! ```
//!
//! Its partitions share the rows: each takes the next slice of time when it has none. Read like
//! this they are quickest, and each is in the order of time. Where a plan needs them as one
//! sequence, [`ordered`](crate::ordered) asks for that instead.

use std::fmt;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{AsArray, Int64Array};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, SchemaRef, TimeUnit, TimestampNanosecondType};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};

use futures::StreamExt;

use crate::table::{Batches, TableQuestion, TraceScan, TraceTable, external};

/// Batches that are read before they are asked for, where all threads read them.
const BATCHES_AHEAD: usize = 2;

/// Reads a table.
pub(crate) struct TraceExec {
    table: Arc<dyn TraceTable>,
    question: TableQuestion,
    scan: Arc<dyn TraceScan>,
    shape: RowShape,
    properties: Arc<PlanProperties>,
    /// Readers that are not taken yet. A second caller that takes the same partition has another
    /// set.
    readers: Arc<Mutex<Vec<Vec<Option<Batches>>>>>,
    metrics: ExecutionPlanMetricsSet,
}

/// How the rows are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowShape {
    /// Slices of time to each of that many.
    Shared(usize),
    /// To one, in the order of time.
    InOrder,
}

impl TraceExec {
    /// For that many partitions, or fewer where the table cannot be cut.
    pub(crate) fn new(
        table: Arc<dyn TraceTable>,
        question: TableQuestion,
        scan: Arc<dyn TraceScan>,
        partitions: usize,
    ) -> Self {
        let readers: Vec<Option<Batches>> = scan.partitions(partitions.max(1)).into_iter().map(Some).collect();
        let count = readers.len();
        Self::shaped(table, question, scan, RowShape::Shared(count), vec![readers])
    }

    fn shaped(
        table: Arc<dyn TraceTable>,
        question: TableQuestion,
        scan: Arc<dyn TraceScan>,
        shape: RowShape,
        readers: Vec<Vec<Option<Batches>>>,
    ) -> Self {
        let schema = scan.schema();
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        if let Some(order) = order(&*table, &question) {
            let column = Arc::new(Column::new(schema.field(order).name(), order));
            let options = SortOptions { descending: false, nulls_first: false };
            equivalence.add_ordering([PhysicalSortExpr::new(column, options)]);
        }
        let count = match shape {
            RowShape::Shared(count) => count,
            RowShape::InOrder => 1,
        };
        let partitioning = Partitioning::UnknownPartitioning(count);
        let properties =
            PlanProperties::new(equivalence, partitioning, EmissionType::Incremental, Boundedness::Bounded)
                .with_scheduling_type(SchedulingType::Cooperative);
        Self {
            table,
            question,
            scan,
            shape,
            properties: Arc::new(properties),
            readers: Arc::new(Mutex::new(readers)),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same rows as one sequence in the order of time, read by all threads.
    pub(crate) fn in_order(&self) -> Self {
        let (table, scan) = (Arc::clone(&self.table), Arc::clone(&self.scan));
        Self::shaped(table, self.question.clone(), scan, RowShape::InOrder, Vec::new())
    }

    /// The reader of a partition.
    fn reader(&self, partition: usize) -> Batches {
        let RowShape::Shared(count) = self.shape else { return self.scan.in_order() };
        let mut sets = self.readers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(reader) = sets.iter_mut().find_map(|set| set.get_mut(partition)?.take()) {
            return reader;
        }
        let mut set: Vec<Option<Batches>> = self.scan.partitions(count).into_iter().map(Some).collect();
        set.resize_with(count, || None);
        // Where there are fewer this time, the others have all rows.
        let reader = set[partition].take().unwrap_or_else(|| Box::new(std::iter::empty()));
        sets.retain(|set| set.iter().any(Option::is_some));
        sets.push(set);
        reader
    }
}

/// The place of the column that orders the rows, among those that are asked for.
fn order(table: &dyn TraceTable, question: &TableQuestion) -> Option<usize> {
    let order = table.order()?;
    match &question.columns {
        None => Some(order),
        Some(columns) => columns.iter().position(|&column| column == order),
    }
}

impl fmt::Debug for TraceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceExec").field("table", &self.table.name()).field("question", &self.question).finish()
    }
}

impl DisplayAs for TraceExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_tree = matches!(format, DisplayFormatType::TreeRender);
        let mut facts = vec![("table", self.table.name().to_owned())];
        if !self.question.filters.is_empty() {
            facts.push(("filter", self.question.filters.join(" && ")));
        }
        let schema = self.scan.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        facts.push(("columns", format!("[{}]", names.join(", "))));
        for (name, bound) in [("begin", self.question.begin), ("end", self.question.end)] {
            facts.extend(bound.map(|bound| (name, bound.to_string())));
        }
        if let Some(limit) = self.question.limit {
            facts.push(("limit", limit.to_string()));
        }
        if let Some(skipped) = self.scan.skipped() {
            let read = skipped.of.saturating_sub(skipped.packets);
            facts.push(("packets", format!("{read} of {} ({} skipped)", skipped.of, skipped.packets)));
        }
        facts.push(match self.shape {
            RowShape::Shared(count) => ("partitions", count.to_string()),
            RowShape::InOrder => ("in order", "by all threads".to_owned()),
        });
        if is_tree {
            return facts.iter().try_for_each(|(name, value)| writeln!(f, "{name}={value}"));
        }
        let facts: Vec<String> = facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "TraceExec: {}", facts.join(", "))
    }
}

impl ExecutionPlan for TraceExec {
    fn name(&self) -> &'static str {
        "TraceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn fetch(&self) -> Option<usize> {
        self.question.limit
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let question = TableQuestion { limit, ..self.question.clone() };
        let scan = self.table.scan(&question).ok()?;
        Some(Arc::new(match self.shape {
            RowShape::Shared(count) => Self::new(Arc::clone(&self.table), question, scan, count),
            RowShape::InOrder => Self::shaped(Arc::clone(&self.table), question, scan, RowShape::InOrder, Vec::new()),
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = ScanRows {
            reader: self.reader(partition),
            left: self.question.limit.unwrap_or(usize::MAX),
            order: order(&*self.table, &self.question),
            last: i64::MIN,
            table: Arc::clone(&self.table),
        };
        let schema = self.scan.schema();
        match self.shape {
            RowShape::Shared(_) => {
                let timed = rows.inspect(move |rows| {
                    if let Ok(rows) = rows {
                        metrics.record_output(rows.num_rows());
                    }
                });
                let stream = RecordBatchStreamAdapter::new(schema, futures::stream::iter(timed));
                Ok(Box::pin(cooperative(stream)))
            }
            // Its threads are awaited, which no thread of the runtime should do.
            RowShape::InOrder => Ok(ahead(schema, rows, metrics)),
        }
    }
}

/// Rows that a thread of its own asks for; nothing before the first request here.
fn ahead(schema: SchemaRef, rows: ScanRows, metrics: BaselineMetrics) -> SendableRecordBatchStream {
    let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), BATCHES_AHEAD);
    let begun = async move {
        let out = builder.tx();
        builder.spawn_blocking(move || {
            for batch in rows {
                if let Ok(batch) = &batch {
                    metrics.record_output(batch.num_rows());
                }
                // The receiver is gone.
                if out.blocking_send(batch).is_err() {
                    break;
                }
            }
            Ok(())
        });
        builder.build()
    };
    Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(begun).flatten()))
}

/// The rows of one reader, up to a limit. The order that the plan relies on is checked: times never
/// go back.
struct ScanRows {
    reader: Batches,
    left: usize,
    order: Option<usize>,
    last: i64,
    table: Arc<dyn TraceTable>,
}

impl Iterator for ScanRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            let batch = match self.reader.next()? {
                Ok(batch) if batch.num_rows() == 0 => continue,
                Ok(batch) => batch,
                Err(error) => {
                    self.left = 0;
                    return Some(Err(external(error)));
                }
            };
            if let Some(order) = self.order
                && !self.is_in_order(&batch, order)
            {
                self.left = 0;
                let name = self.table.name();
                return Some(Err(exec_datafusion_err!("{}", out_of_order(name))));
            }
            let count = batch.num_rows().min(self.left);
            self.left -= count;
            return Some(Ok(if count < batch.num_rows() { batch.slice(0, count) } else { batch }));
        }
        None
    }
}

fn out_of_order(table: &str) -> String {
    format!("events of `{table}` are not in the order of time: a clock steps back; `--unordered` does not rely on it")
}

impl ScanRows {
    fn is_in_order(&mut self, batch: &RecordBatch, order: usize) -> bool {
        let column = batch.column(order);
        if column.null_count() > 0 {
            return false;
        }
        let times = match column.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => column.as_primitive::<TimestampNanosecondType>().values(),
            DataType::Int64 => match column.as_any().downcast_ref::<Int64Array>() {
                Some(times) => times.values(),
                None => return true,
            },
            _ => return true,
        };
        let first = times.first().is_none_or(|&first| self.last <= first);
        self.last = times.last().copied().unwrap_or(self.last);
        first && times.is_sorted()
    }
}
