//! What of queries is asked of a table: its columns, conditions in the filter language, time, limits.

use std::sync::Arc;

use kymo_sql::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use kymo_sql::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use kymo_sql::{
    Argument, Batches, Catalog, EngineOptions, Function, NamedRelation, QueryEngine, Skipped, TableError,
    TableQuestion, Term, TermKind, TraceScan, TraceTable, ValueName,
};

/// Numbers as they come, on any number of partitions.
#[derive(Debug)]
struct Numbers {
    schema: SchemaRef,
    rows: i64,
}

#[derive(Debug)]
struct NumberScan {
    schema: SchemaRef,
    columns: Vec<usize>,
    rows: i64,
}

impl Numbers {
    fn new(rows: i64) -> Self {
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let fields = vec![
            Field::new("time", DataType::Int64, true),
            Field::new("prio", DataType::Int32, true),
            Field::new("big", DataType::UInt64, true),
            Field::new("load", DataType::Float64, true),
            Field::new("comm", DataType::Utf8, true),
            Field::new("state", DataType::UInt8, true),
            Field::new("state_label", dictionary, true),
            Field::new("stack", DataType::Int64, true),
        ];
        Self { schema: Arc::new(Schema::new(fields)), rows }
    }
}

impl TraceTable for Numbers {
    fn name(&self) -> &'static str {
        "numbers"
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn order(&self) -> Option<usize> {
        Some(0)
    }

    fn term(&self, column: usize) -> Option<Term> {
        let name = self.schema.field(column).name();
        let label = |name: &str, ranges: &[(i128, i128)]| ValueName { name: name.to_owned(), ranges: ranges.to_vec() };
        let labels = || Arc::from([label("RUN", &[(0, 0)]), label("SLEEP", &[(1, 3), (8, 8)])]);
        let (text, kind) = match name.as_str() {
            "time" => ("$time", TermKind::Time),
            "load" => ("load", TermKind::Real),
            "comm" => ("comm", TermKind::Text),
            "state_label" => ("state", TermKind::Label(labels())),
            "stack" => return None,
            name => (name, TermKind::Integer),
        };
        Some(Term { text: text.to_owned(), kind })
    }

    fn takes(&self, filter: &str) -> bool {
        !filter.contains("refused")
    }

    fn scan(&self, question: &TableQuestion) -> Result<Arc<dyn TraceScan>, TableError> {
        let all = || (0..self.schema.fields().len()).collect();
        let columns: Vec<usize> = question.columns.clone().unwrap_or_else(all);
        let schema = Arc::new(self.schema.project(&columns)?);
        Ok(Arc::new(NumberScan { schema, columns, rows: self.rows }))
    }
}

impl NumberScan {
    fn batch(&self, times: &[i64]) -> Result<RecordBatch, TableError> {
        let column = |column: &usize| -> ArrayRef {
            match column {
                0 | 7 => Arc::new(Int64Array::from(times.to_vec())),
                2 => Arc::new(times.iter().map(|time| Some(*time as u64)).collect::<UInt64Array>()),
                _ => Arc::new(times.iter().map(|time| Some(format!("t{time}"))).collect::<StringArray>()),
            }
        };
        let options = kymo_sql::arrow::array::RecordBatchOptions::new().with_row_count(Some(times.len()));
        let columns = self.columns.iter().map(column).collect();
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl TraceScan for NumberScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn partitions(&self, count: usize) -> Vec<Batches> {
        let (all, count) = (self.rows, count as i64);
        let part = |part: i64| -> Batches {
            let times: Vec<i64> = (0..all).filter(|time| time / 10 % count == part).collect();
            let batches: Vec<_> = times.chunks(10).map(|times| self.batch(times)).collect();
            Box::new(batches.into_iter())
        };
        (0..count).map(part).collect()
    }

    fn in_order(&self) -> Batches {
        let times: Vec<i64> = (0..self.rows).collect();
        let batches: Vec<_> = times.chunks(7).map(|times| self.batch(times)).collect();
        Box::new(batches.into_iter())
    }

    fn skipped(&self) -> Option<Skipped> {
        Some(Skipped { packets: 3, of: 5 })
    }
}

#[derive(Debug)]
struct One;

impl Catalog for One {
    fn schemas(&self) -> Vec<String> {
        vec!["trace".to_owned()]
    }

    fn names(&self, _: &str) -> Vec<String> {
        vec!["numbers".to_owned()]
    }

    fn relation(&self, _: &str, name: &str) -> Result<Option<NamedRelation>, TableError> {
        Ok((name == "numbers").then(|| NamedRelation::Read(Arc::new(Numbers::new(100)))))
    }

    fn functions(&self) -> Vec<Function> {
        vec![Function { name: "first".to_owned(), description: "The first numbers.".to_owned() }]
    }

    fn call(&self, _: &str, arguments: &[Argument]) -> Result<NamedRelation, TableError> {
        match arguments {
            [Argument::Integer(rows)] => Ok(NamedRelation::Read(Arc::new(Numbers::new(*rows)))),
            _ => Err("first() takes a number".into()),
        }
    }
}

fn engine() -> QueryEngine {
    let tables: Arc<dyn Catalog> = Arc::new(One);
    QueryEngine::new(&tables, &EngineOptions { memory_bytes: 64 << 20, partitions: 3 }).expect("there is a folder")
}

fn plan(query: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("there is a thread");
    let plan = async { engine().ask(query).await?.plan().await };
    runtime.block_on(plan).unwrap_or_else(|problem| panic!("{problem}")).to_string()
}

/// What is asked of the table for a condition, and whether SQL asks again.
fn asked(condition: &str) -> String {
    let plan = plan(&format!("select time from numbers where {condition}"));
    let filter =
        plan.split_once("filter=").map_or("nothing", |(_, rest)| rest.split_once(", columns=").expect("they follow").0);
    format!("{filter}{}", if plan.contains("FilterExec") { "  and SQL" } else { "" })
}

#[test]
fn conditions_in_the_filter_language() {
    let check = |condition: &str, expected: &str| assert_eq!(asked(condition), expected, "{condition}");
    check("prio < 100", "prio < 100");
    check("100 > prio", "prio < 100");
    check("prio < 100 and big = 7", "prio < 100 && big == 7");
    check("prio < 100 or big is null", "(prio < 100) || (!has(big))");
    check("not (prio < 100 or comm = 'x')", "prio >= 100 && comm != \"x\"");
    check("prio in (1, 2, 30, 400)", "prio in (1, 2, 30, 400)");
    check("prio not in (1, 2, 30, 400)", "!(prio in (1, 2, 30, 400))");
    check("prio = big", "prio == big");
    check("big > -1", "big > (-1)");
    check("prio + 1 > 7", "(prio + 1) > 7");
    check("big + 1 > 7", "nothing  and SQL");
    check("prio & 4 = 4", "(prio & 4) == 4");
    check("comm = 'a*\"b'", "comm == \"a\\*\\\"b\"");
    check("comm like 'kworker%'", "comm == \"kworker*\"");
    check("comm like 'a_b%'", "comm == \"a*b*\"  and SQL");
    check("comm not like 'a_b%'", "nothing  and SQL");
    check("comm ilike 'a%'", "nothing  and SQL");
    check("starts_with(comm, 'a%')", "comm == \"a%*\"");
    check("comm < 'b'", "comm < \"b\"");
    check("comm < '\u{e9}'", "nothing  and SQL");
    check("comm = '\u{fffd}'", "nothing  and SQL");
    check("load > 1.5", "!(load <= 1.5)  and SQL");
    check("state_label = 'SLEEP'", "state in (1..=3, 8)");
    check("state_label <> 'SLEEP'", "state in (0)");
    check("state_label like '%E%'", "state in (1..=3, 8)");
    check("state_label = 'nothing'", "0 == 1");
    check("state_label is null", "!has(state) || !(state in (0, 1..=3, 8))");
    check("stack = 3 and prio = 1", "prio == 1  and SQL");
    check("stack = 3 or prio = 1", "nothing  and SQL");
    check("upper(comm) = 'X' and prio = 1", "prio == 1  and SQL");
    check("comm = 'refused'", "nothing  and SQL");
    check("(prio = 1) is true", "prio == 1");
    check("(prio = 1) is not true", "nothing  and SQL");
}

#[test]
fn time_is_for_packets_too() {
    let plan = |condition: &str| plan(&format!("select time from numbers where {condition}"));
    assert!(plan("time >= 10 and time < 20 and prio = 1").contains("begin=10, end=19, packets=2 of 5 (3 skipped)"));
    assert!(plan("time between 10 and 20").contains("begin=10, end=20"));
    assert!(plan("time = 10 and (prio = 1 or time < 3)").contains("begin=10, end=10"));
    assert!(!plan("time >= 10 or prio = 1").contains("begin="));
    assert!(!plan("not (time >= 10)").contains("begin="));
}

#[test]
fn order_and_partitions() {
    let ordered =
        "TraceExec: table=numbers, columns=[time, comm], packets=2 of 5 (3 skipped), in order=by all threads\n";
    assert_eq!(plan("select time, comm from numbers order by time"), ordered);
    assert_eq!(plan("select time, comm from numbers"), ordered);
    assert!(plan("select time from numbers limit 5").contains("limit=5"));
    let grouped = plan("select comm, count(*) from numbers group by comm");
    assert!(
        grouped.contains("columns=[comm]") && grouped.contains("partitions=3") && !grouped.contains("in order"),
        "{grouped}"
    );
    let sorted = plan("select time from numbers order by time desc");
    assert!(sorted.contains("SortExec"), "{sorted}");
    assert!(plan("select time from first(5)").contains("TraceExec"));
}

/// Rows of all partitions, once or several times.
#[test]
fn rows_are_all_rows() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("there are threads");
    let engine = engine();
    let all = |query: &str| -> Vec<RecordBatch> {
        runtime.block_on(async {
            let asked = engine.ask(query).await.unwrap_or_else(|problem| panic!("{problem}"));
            let plan = asked.plan().await.unwrap_or_else(|problem| panic!("{problem}"));
            let stream = plan.stream().unwrap_or_else(|problem| panic!("{problem}"));
            futures::TryStreamExt::try_collect(stream).await.expect("it can be read")
        })
    };
    let number = |query: &str| {
        let batches = all(query);
        let column = batches[0].column(0);
        kymo_sql::arrow::compute::cast(column, &DataType::Int64)
            .map(|array| array.as_any().downcast_ref::<Int64Array>().expect("it was cast").value(0))
            .expect("it is a number")
    };
    assert_eq!(number("select sum(time) from numbers"), 4950);
    assert_eq!(number("select count(*) from numbers as a, numbers as b where a.time = b.time"), 100);
    assert_eq!(number("select count(*) from numbers as a, numbers as b where a.time < b.time"), 4950);
    assert_eq!(number("select sum(stack) from (select time, stack from numbers order by time limit 10)"), 45);
    assert_eq!(
        number(
            "with recursive r(n) as (select 0 union all select n + 1 from r where n < 9) select count(*) from r, numbers where n = time"
        ),
        10
    );
    let times: Vec<i64> = all("select time from numbers")
        .iter()
        .flat_map(|batch| {
            batch.column(0).as_any().downcast_ref::<Int64Array>().expect("times are numbers").values().to_vec()
        })
        .collect();
    assert_eq!(times, (0..100).collect::<Vec<_>>());
}
