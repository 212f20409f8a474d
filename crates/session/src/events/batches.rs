//! Rounds of events become record batches.
//!
//! ```text
//! round ─┬─ time, cycles, stream, name ──────────────────> columns, row by row
//!        └─ records of each class ──read──> its fields ──> gathered in the order of the rows
//! ```

use std::sync::Arc;

use kymo_ir::{Cells, eval};
use kymo_scan::{Batch, Content, Events, Round};
use kymo_table::arrow::array::{ArrayRef, DictionaryArray, Int32Array, RecordBatchOptions};
use kymo_table::arrow::datatypes::Int32Type;
use kymo_table::arrow::error::ArrowError;
use kymo_table::{Fields, Moments, RecordBatch, Source, gather};

use super::Plan;
use super::columns::{Column, StreamClass};

/// Rows of the first batch, and how many times as many each one may have as the one before: whoever wants a few events does
/// not wait for thousands.
const FIRST_ROWS: usize = 1024;
const GROWTH: usize = 4;
/// Bytes of events that become one batch at most, about.
const BYTES_MAX: u64 = 16 << 20;

/// Makes record batches.
#[derive(Debug)]
pub(super) struct Batches {
    plan: Arc<Plan>,
    /// Rows of the next batch at most, about.
    rows_max: usize,
    moments: Moments,
    names: Vec<i32>,
    /// Of each row, where its fields are: which table, and the row in it.
    order: Vec<(usize, usize)>,
    rows: usize,
    bytes: u64,
    /// For each class of events the number of its table, if it has one yet.
    numbers: Vec<Option<usize>>,
    tables: Vec<Table>,
    wants: Wants,
    memory: Memory,
    /// Texts that were not valid.
    replaced_texts: u64,
}

/// Which columns there are besides the fields.
#[derive(Clone, Copy, Debug)]
struct Wants {
    moments: bool,
    names: bool,
    fields: bool,
}

/// The fields of a class.
#[derive(Debug)]
struct Table {
    stream: Arc<StreamClass>,
    class: usize,
    fields: Fields,
    rows: usize,
    /// Positions of records of the part that is being read.
    positions: Vec<u64>,
}

/// To be used again.
#[derive(Debug, Default)]
struct Memory {
    body: Cells,
    packet: Cells,
    /// Tables with positions.
    touched: Vec<usize>,
    /// Of each row of each part where its fields are.
    places: Vec<(usize, usize)>,
    /// Where the rows of each part begin in that.
    starts: Vec<usize>,
}

impl Batches {
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        let columns = plan.columns.columns();
        let has = |wanted: fn(&Column) -> bool| columns.iter().any(wanted);
        let wants = Wants {
            moments: has(|column| matches!(column, Column::Time | Column::Cycles | Column::Stream)),
            names: has(|column| matches!(column, Column::Name)),
            fields: has(|column| matches!(column, Column::Field(_))),
        };
        Self {
            rows_max: FIRST_ROWS.min(plan.batch_rows),
            moments: Moments::new(plan.columns.is_unix),
            names: Vec::new(),
            order: Vec::new(),
            rows: 0,
            bytes: 0,
            numbers: Vec::new(),
            tables: Vec::new(),
            wants,
            memory: Memory::default(),
            replaced_texts: 0,
            plan,
        }
    }

    /// Adds the events of a round, without the first `skip` of them; takes from that as many as were left out.
    pub(super) fn add(&mut self, round: &Round<Batch>, skip: &mut u64) {
        if self.wants.fields {
            self.read_fields(round);
        }
        let plan = Arc::clone(&self.plan);
        let is_cut = plan.begin_ns.is_some() || plan.end_ns.is_some();
        for place in &round.order {
            let part = &round.parts[place.part as usize];
            let Content::Events(events) = &part.batch.content else { continue };
            let stream = &plan.columns.streams[part.stream];
            let row = place.row as usize;
            if self.wants.moments || is_cut {
                let cycles = events.records.cycles[row];
                let nanos = stream.clock.and_then(|clock| clock.nanos(cycles));
                if is_cut && !plan.is_inside(nanos) {
                    continue;
                }
                if *skip == 0 && self.wants.moments {
                    self.moments.push(part.stream, nanos, stream.clock.is_some().then_some(cycles));
                }
            }
            if *skip > 0 {
                *skip -= 1;
                continue;
            }
            if self.wants.names {
                self.names.push(stream.shared.name(events.records.classes[row] as usize));
            }
            if self.wants.fields {
                let start = self.memory.starts[place.part as usize];
                self.order.push(self.memory.places[start + row - part.rows.start]);
            }
            self.rows += 1;
        }
    }

    /// Reads the fields of all events of a round.
    fn read_fields(&mut self, round: &Round<Batch>) {
        self.memory.places.clear();
        self.memory.starts.clear();
        for part in &round.parts {
            self.memory.starts.push(self.memory.places.len());
            let Content::Events(events) = &part.batch.content else { continue };
            let shared = Arc::clone(&self.plan.columns.streams[part.stream].shared);
            let records = &events.records;
            for row in part.rows.clone() {
                let number = self.table(&shared, records.classes[row] as usize);
                let table = &mut self.tables[number];
                if table.positions.is_empty() {
                    self.memory.touched.push(number);
                }
                self.memory.places.push((number, table.rows + table.positions.len()));
                table.positions.push(records.positions[row]);
            }
            let (first, last) = (part.rows.start, part.rows.end - 1);
            self.bytes += (records.positions[last] - records.positions[first]) / 8;
            self.read_part(&shared, events);
        }
    }

    /// The number of the table of a class.
    fn table(&mut self, stream: &Arc<StreamClass>, class: usize) -> usize {
        let number = stream.number(class);
        if let Some(Some(known)) = self.numbers.get(number) {
            return *known;
        }
        if self.numbers.len() <= number {
            self.numbers.resize(number + 1, None);
        }
        let fields = self.plan.columns.filler(stream, class);
        self.tables.push(Table { stream: Arc::clone(stream), class, fields, rows: 0, positions: Vec::new() });
        *self.numbers[number].insert(self.tables.len() - 1)
    }

    /// Reads the records whose positions tables have.
    fn read_part(&mut self, shared: &StreamClass, events: &Events) {
        let memory = &mut self.memory;
        let window = events.window();
        let packet = shared.packet.as_ref().map(|packet| {
            let mut state = events.state();
            let (window, start) = (events.packet.head_window(), events.packet.head.context_start);
            let read = eval::rows(&packet.program, window, &[start], &mut state, &mut memory.packet);
            debug_assert!(read.is_ok(), "{read:?}");
            Source { cells: &memory.packet, bytes: window.bytes() }
        });
        let mut state = events.state();
        for number in memory.touched.drain(..) {
            let table = &mut self.tables[number];
            if table.fields.reads_events() {
                let read = shared.reader.read(table.class, window, &table.positions, &mut state, &mut memory.body);
                // The scan read the records before: what it accepted can be read again.
                debug_assert!(read.is_ok(), "{read:?}");
            }
            let packet = packet.filter(|_| table.fields.reads_packets());
            let body = Source { cells: &memory.body, bytes: window.bytes() };
            table.fields.append(table.positions.len(), packet, body);
            table.rows += table.positions.len();
            table.positions.clear();
        }
    }

    /// Whether there is enough for a batch.
    pub(super) fn is_full(&self) -> bool {
        self.rows >= self.rows_max || self.bytes >= BYTES_MAX
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// What was added.
    pub(super) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows_max = (self.rows_max * GROWTH).min(self.plan.batch_rows);
        self.bytes = 0;
        let plan = Arc::clone(&self.plan);
        let moments = self.wants.moments.then(|| self.moments.finish());
        let names = self.wants.names.then(|| {
            let keys = Int32Array::from(std::mem::take(&mut self.names));
            let names = DictionaryArray::<Int32Type>::new(keys, Arc::clone(plan.columns.names()));
            Arc::new(names) as ArrayRef
        });
        let fields = self.take_fields()?;
        let array = |column: &Column| match (column, &moments, &names) {
            (Column::Time, Some(moments), _) => Arc::clone(&moments[0]),
            (Column::Cycles, Some(moments), _) => Arc::clone(&moments[1]),
            (Column::Stream, Some(moments), _) => Arc::clone(&moments[2]),
            (Column::Name, _, Some(names)) => Arc::clone(names),
            (Column::Field(field), ..) => Arc::clone(&fields[*field]),
            _ => unreachable!("what is wanted was made"),
        };
        let arrays = plan.columns.columns().iter().map(array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(Arc::clone(plan.columns.schema()), arrays, &options)
    }

    /// The columns of fields.
    fn take_fields(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        let columns = &self.plan.columns;
        let order = std::mem::take(&mut self.order);
        let mut arrays: Vec<Vec<ArrayRef>> = Vec::with_capacity(self.tables.len());
        for table in &mut self.tables {
            arrays.push(table.fields.finish().collect());
            self.replaced_texts += table.fields.replaced();
        }
        let is_in_order = match &self.tables[..] {
            [table] => table.rows == order.len() && order.iter().enumerate().all(|(at, (_, row))| at == *row),
            _ => false,
        };
        let of_field = |field: usize| {
            let source = |(table, arrays): (&Table, &Vec<ArrayRef>)| {
                let source = table.stream.sources(table.class, columns)[field]?;
                Some(Arc::clone(&arrays[source]))
            };
            let sources: Vec<Option<ArrayRef>> = self.tables.iter().zip(&arrays).map(source).collect();
            match &sources[..] {
                [Some(only)] if is_in_order && only.data_type() == columns.field_type(field) => Ok(Arc::clone(only)),
                sources => gather(sources, &order, columns.field_type(field)),
            }
        };
        let fields = (0..columns.field_count()).map(of_field).collect();
        self.tables.iter_mut().for_each(|table| table.rows = 0);
        fields
    }

    /// How many texts of what was taken were not valid: they have U+FFFD where they are not.
    pub(super) fn replaced_texts(&self) -> u64 {
        self.replaced_texts
    }
}
