//! Events as tables: those of one class, or all.
//!
//! The table of all has their fields as a map from names to texts, as no two classes have the same; it is made of the
//! columns of all classes, which are asked for only where the map is.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kymo_sql::{Batches, Skipped, TableError, TableQuestion, Term, TraceScan, TraceTable};
use kymo_table::RecordBatch;
use kymo_table::arrow::array::{Array, ArrayRef, MapBuilder, RecordBatchOptions, StringBuilder, new_null_array};
use kymo_table::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use kymo_table::arrow::error::ArrowError;
use kymo_table::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::shared::{EVENTS, TableContext};
use super::terms;
use super::watch::{QueryScans, ScanWatch};
use crate::events::{EventPartition, EventStream, EventTable, EventsFailure, EventsQuestion};
use crate::open::report::Report;
use crate::open::select::Selection;
use kymo_filter::Filter;

/// Rows of a batch at most; of those with maps, which are much larger.
const BATCH_ROWS: usize = 16 << 10;
const MAP_ROWS: usize = 4 << 10;
/// The column of all fields.
const FIELDS: &str = "fields";

/// A table of events.
#[derive(Debug)]
pub(super) struct EventRelation {
    shared: Arc<TableContext>,
    name: String,
    /// The names of the events, if it is not all of them.
    events: Vec<String>,
    schema: SchemaRef,
    /// The terms of columns in the filter language.
    terms: OnceLock<Vec<Option<Term>>>,
    /// Filters that were tried.
    tried: Mutex<Vec<(String, bool)>>,
}

impl EventRelation {
    /// Events of one name.
    pub(super) fn of_class(shared: &Arc<TableContext>, name: &str) -> Result<Self, TableError> {
        let events = vec![name.to_owned()];
        let question = EventsQuestion { selection: selection(&events, None), ..EventsQuestion::default() };
        let schema = Arc::clone(shared.session.events(&question)?.schema());
        Ok(Self::new(shared, name, events, schema))
    }

    /// The columns of those events of one name of which a condition may be true.
    pub(super) fn columns_of(
        shared: &Arc<TableContext>,
        name: &str,
        condition: Filter,
    ) -> Result<SchemaRef, TableError> {
        let question =
            EventsQuestion { selection: selection(&[name.to_owned()], Some(condition)), ..EventsQuestion::default() };
        Ok(Arc::clone(shared.session.events(&question)?.schema()))
    }

    /// All events.
    pub(super) fn all(shared: &Arc<TableContext>) -> Result<Self, TableError> {
        let columns = ["time", "cycles", "stream", "name"].map(str::to_owned).to_vec();
        let question = EventsQuestion { columns: Some(columns), ..EventsQuestion::default() };
        let schema = Arc::clone(shared.session.events(&question)?.schema());
        let mut fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        fields.push(Field::new(FIELDS, map_builder().finish().data_type().clone(), false));
        Ok(Self::new(shared, EVENTS, Vec::new(), Arc::new(Schema::new(fields))))
    }

    fn new(shared: &Arc<TableContext>, name: &str, events: Vec<String>, schema: SchemaRef) -> Self {
        let shared = Arc::clone(shared);
        Self { shared, name: name.to_owned(), events, schema, terms: OnceLock::new(), tried: Mutex::default() }
    }

    fn is_all(&self) -> bool {
        self.events.is_empty()
    }
}

impl EventRelation {
    /// The events; columns that no event has for which the filter may be true are left out.
    fn table(&self, mut question: EventsQuestion) -> Result<EventTable, EventsFailure> {
        loop {
            match (self.shared.session.events(&question), &mut question.columns) {
                (Err(EventsFailure::NoSuchColumn { name, .. }), Some(columns)) if columns.contains(&name) => {
                    columns.retain(|column| *column != name);
                }
                (table, _) => return table,
            }
        }
    }
}

fn selection(events: &[String], filter: Option<Filter>) -> Selection {
    Selection { events: events.to_vec(), filter, ..Selection::default() }
}

impl TraceTable for EventRelation {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn order(&self) -> Option<usize> {
        let session = &self.shared.session;
        let has_times = || session.streams().iter().all(|(_, stream)| stream.clock.is_some());
        let is_ordered = !self.shared.is_unordered && session.times_are_comparable() && has_times();
        is_ordered.then(|| self.schema.index_of("time").ok()).flatten()
    }

    fn term(&self, column: usize) -> Option<Term> {
        let terms = self.terms.get_or_init(|| terms::terms(&self.shared.session, &self.events, &self.schema));
        terms[column].clone()
    }

    fn takes(&self, filter: &str) -> bool {
        // All events have what can be said of all.
        if self.is_all() {
            return true;
        }
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, takes)) = tried.iter().find(|(known, _)| known == filter) {
            return *takes;
        }
        let takes = Filter::parse(filter).is_ok_and(|filter| {
            let meaning = self.shared.session.meaning(&selection(&self.events, Some(filter)));
            meaning.untyped.is_empty() && meaning.unknown.is_empty()
        });
        tried.push((filter.to_owned(), takes));
        takes
    }

    fn scan(&self, question: &TableQuestion) -> Result<Arc<dyn TraceScan>, TableError> {
        let all = || (0..self.schema.fields().len()).collect();
        let columns: Vec<usize> = question.columns.clone().unwrap_or_else(all);
        let schema = Arc::new(self.schema.project(&columns)?);
        let filter = match &question.filters[..] {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(several.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join(" && ")),
        };
        let filter =
            filter.map(|text| Filter::parse(&text).map_err(|problems| problem(&text, &problems))).transpose()?;
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let has_map = self.is_all() && names.iter().any(|name| name == FIELDS);
        let rows_max = if has_map { MAP_ROWS } else { BATCH_ROWS };
        let events = EventsQuestion {
            selection: selection(&self.events, filter),
            begin_ns: question.begin,
            end_ns: question.end,
            columns: (!has_map).then_some(names),
            keep_bytes: false,
            batch_rows: question.limit.map_or(rows_max, |limit| limit.clamp(1, rows_max)),
        };
        let table = self.table(events)?;
        let watch = self.shared.watch();
        let shape = if has_map {
            Some(BatchShape::Map(MapShape::new(&schema, table.schema())))
        } else {
            (*table.schema() != schema).then(|| BatchShape::Widened(Arc::clone(&schema)))
        };
        let shape = shape.map(Arc::new);
        let is_unsliceable = self.shared.is_unsliceable();
        Ok(Arc::new(EventScan { table, schema, shape, scan: watch.scan(), watch, is_unsliceable }))
    }
}

fn problem(text: &str, problems: &[kymo_filter::FilterProblem]) -> String {
    problems.iter().map(|problem| problem.render(text)).collect()
}

/// Events that are wanted.
#[derive(Debug)]
struct EventScan {
    table: EventTable,
    schema: SchemaRef,
    /// How batches become those of the table, if they are not.
    shape: Option<Arc<BatchShape>>,
    watch: Arc<QueryScans>,
    scan: Arc<ScanWatch>,
    is_unsliceable: bool,
}

impl EventScan {
    fn reader<R: Reads>(&self, rows: R) -> Batches {
        let (watch, scan, shape) = (Arc::clone(&self.watch), Arc::clone(&self.scan), self.shape.clone());
        Box::new(BatchReader { rows, shape, watch, scan, is_told: false })
    }
}

impl TraceScan for EventScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn partitions(&self, count: usize) -> Vec<Batches> {
        if self.is_unsliceable {
            return vec![self.in_order()];
        }
        self.table.partitions(count).into_iter().map(|part| self.reader(part)).collect()
    }

    fn in_order(&self) -> Batches {
        self.reader(self.table.stream())
    }

    fn skipped(&self) -> Option<Skipped> {
        let skipped = self.table.skipped();
        Some(Skipped { packets: skipped.unread + skipped.by_context, of: skipped.all })
    }
}

/// Rows, and their losses.
trait Reads: Iterator<Item = Result<RecordBatch, EventsFailure>> + Send + 'static {
    fn found(&self) -> &Report;
}

impl Reads for EventPartition {
    fn found(&self) -> &Report {
        self.report()
    }
}

impl Reads for EventStream {
    fn found(&self) -> &Report {
        self.report()
    }
}

/// Batches for DataFusion.
struct BatchReader<R: Reads> {
    rows: R,
    shape: Option<Arc<BatchShape>>,
    watch: Arc<QueryScans>,
    scan: Arc<ScanWatch>,
    /// The losses of the rows were told.
    is_told: bool,
}

impl<R: Reads> Iterator for BatchReader<R> {
    type Item = Result<RecordBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.rows.next()?;
        if matches!(batch, Err(EventsFailure::Unsliceable)) {
            self.watch.refuse_slices();
        }
        Some(match (batch, &self.shape) {
            (Ok(batch), Some(shape)) => shape.shaped(&batch).map_err(TableError::from),
            (batch, _) => batch.map_err(TableError::from),
        })
    }
}

impl<R: Reads> Drop for BatchReader<R> {
    fn drop(&mut self) {
        if !std::mem::replace(&mut self.is_told, true) {
            self.scan.add(self.rows.found());
        }
    }
}

/// How batches become those of the table.
#[derive(Debug)]
enum BatchShape {
    /// Fields become a map.
    Map(MapShape),
    /// Where a filter is true of some classes of events only, columns are of these: narrower, or not there.
    Widened(SchemaRef),
}

impl BatchShape {
    fn shaped(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        match self {
            Self::Map(map) => map.shaped(batch),
            Self::Widened(schema) => widened(batch, schema),
        }
    }
}

fn widened(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let array = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
        Some(array) if array.data_type() == field.data_type() => Ok(Arc::clone(array)),
        Some(array) => kymo_table::convert(array, field.data_type()),
        None => Ok(new_null_array(field.data_type(), batch.num_rows())),
    };
    let arrays = schema.fields().iter().map(array).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
}

/// Where the columns of a table with a map come from.
#[derive(Debug)]
struct MapShape {
    schema: SchemaRef,
    /// For each column the one that it is; `None`: it is the map.
    columns: Vec<Option<usize>>,
    /// The content of the map: names and columns.
    fields: Vec<(String, usize)>,
}

impl MapShape {
    fn new(schema: &SchemaRef, wide: &SchemaRef) -> Self {
        let of_event = |name: &str| matches!(name, "time" | "cycles" | "stream" | "name");
        let columns =
            schema.fields().iter().map(|field| wide.index_of(field.name()).ok().filter(|_| of_event(field.name())));
        let fields =
            wide.fields().iter().enumerate().filter(|(_, field)| !of_event(field.name())).map(|(place, field)| {
                let name = field.name().strip_prefix("payload.").unwrap_or(field.name());
                (name.to_owned(), place)
            });
        Self { schema: Arc::clone(schema), columns: columns.collect(), fields: fields.collect() }
    }

    fn shaped(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let map = Arc::new(self.map(batch)?) as ArrayRef;
        let array = |column: &Option<usize>| column.map_or_else(|| Arc::clone(&map), |at| Arc::clone(batch.column(at)));
        let arrays = self.columns.iter().map(array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }

    fn map(&self, batch: &RecordBatch) -> Result<kymo_table::arrow::array::MapArray, ArrowError> {
        let options = FormatOptions::default();
        let mut present = Vec::new();
        for (name, place) in &self.fields {
            let column = batch.column(*place);
            if column.null_count() < column.len() {
                present.push((name, column, ArrayFormatter::try_new(column.as_ref(), &options)?));
            }
        }
        let mut map = map_builder();
        for row in 0..batch.num_rows() {
            for (name, column, text) in &present {
                if column.is_valid(row) {
                    map.keys().append_value(name);
                    map.values().append_value(text.value(row).to_string());
                }
            }
            map.append(true)?;
        }
        Ok(map.finish())
    }
}

fn map_builder() -> MapBuilder<StringBuilder, StringBuilder> {
    MapBuilder::new(None, StringBuilder::new(), StringBuilder::new()).with_values_field(Field::new(
        "values",
        DataType::Utf8,
        true,
    ))
}
