//! Rounds of events become record batches.
//!
//! ```text
//! round ─┬─ time, cycles, stream, name ──────────────────> columns, row by row
//!        └─ records of each class ──read──> its fields ──> gathered in the order of the rows
//! ```

use std::sync::Arc;

use kymo_ir::{Cells, eval};
use kymo_scan::{BatchContent, BatchEvents, Round, StreamBatch};
use kymo_table::arrow::array::{ArrayRef, DictionaryArray, Int32Array, RecordBatchOptions};
use kymo_table::arrow::datatypes::Int32Type;
use kymo_table::arrow::error::ArrowError;
use kymo_table::{CellSource, FieldColumns, RecordBatch, TimeColumns, gather};

use super::EventsPlan;
use super::columns::{EventColumn, FieldSource, StreamClassPlan};

/// Rows of the first batch, and how many times as many each one may have as the one before: a
/// caller that wants a few events does not wait for thousands.
const FIRST_ROWS: usize = 1024;
const GROWTH: usize = 4;
/// Bytes of events that become one batch at most, about.
const BYTES_MAX: u64 = 16 << 20;

/// Makes record batches.
#[derive(Debug)]
pub(super) struct Batches {
    plan: Arc<EventsPlan>,
    /// Rows of the next batch at most, about.
    rows_max: usize,
    moments: TimeColumns,
    names: Vec<i32>,
    /// Of each row, where its fields are: which table, and the row in it.
    order: Vec<(usize, usize)>,
    /// Of each row, where the fields of its packet are.
    packet_order: Vec<(usize, usize)>,
    rows: usize,
    bytes: u64,
    /// For each class of events the number of its table, if it has one yet.
    numbers: Vec<Option<usize>>,
    tables: Vec<ClassTable>,
    /// The contexts of packets, for each class of streams that has come.
    packets: Vec<PacketTable>,
    wants: BuiltinColumns,
    memory: BatchMemory,
    /// Texts that were not valid.
    replaced_texts: u64,
}

/// Which columns there are besides the fields.
#[derive(Clone, Copy, Debug)]
struct BuiltinColumns {
    moments: bool,
    names: bool,
    body: bool,
    packets: bool,
}

/// The fields of a class.
#[derive(Debug)]
struct ClassTable {
    stream: Arc<StreamClassPlan>,
    class: usize,
    fields: FieldColumns,
    rows: usize,
    /// Positions of records of the part that is being read.
    positions: Vec<u64>,
}

/// The contexts of packets of a class of streams; a row for each part of a round.
#[derive(Debug)]
struct PacketTable {
    stream: Arc<StreamClassPlan>,
    fields: FieldColumns,
    rows: usize,
}

/// To be used again.
#[derive(Debug, Default)]
struct BatchMemory {
    body: Cells,
    packet: Cells,
    /// Tables with positions.
    touched: Vec<usize>,
    /// Of each row of each part where its fields are.
    places: Vec<(usize, usize)>,
    /// Where the rows of each part begin in that.
    starts: Vec<usize>,
    /// Of each part where its packet's fields are.
    packet_places: Vec<(usize, usize)>,
}

impl Batches {
    pub(super) fn new(plan: Arc<EventsPlan>) -> Self {
        let columns = plan.columns.columns();
        let has = |wanted: fn(&EventColumn) -> bool| columns.iter().any(wanted);
        let moments =
            [EventColumn::Time, EventColumn::Cycles, EventColumn::Stream].map(|wanted| columns.contains(&wanted));
        let streams = &plan.columns.streams;
        let wants = BuiltinColumns {
            moments: moments.contains(&true),
            names: columns.contains(&EventColumn::Name),
            body: has(|column| matches!(column, EventColumn::Field(_)))
                && streams.iter().any(|it| it.shared.reads_events()),
            packets: streams.iter().any(|stream| stream.shared.packet.is_some()),
        };
        Self {
            rows_max: FIRST_ROWS.min(plan.batch_rows),
            moments: TimeColumns::new(plan.columns.is_unix, moments),
            names: Vec::new(),
            order: Vec::new(),
            packet_order: Vec::new(),
            rows: 0,
            bytes: 0,
            numbers: Vec::new(),
            tables: Vec::new(),
            packets: Vec::new(),
            wants,
            memory: BatchMemory::default(),
            replaced_texts: 0,
            plan,
        }
    }

    /// Adds the events of a round, without the first `skip` of them; takes from that as many as were left out.
    pub(super) fn add(&mut self, round: &Round<StreamBatch>, skip: &mut u64) {
        if self.wants.body {
            self.read_bodies(round);
        }
        if self.wants.packets {
            self.read_packets(round);
        }
        self.reserve(round.order.len());
        let plan = Arc::clone(&self.plan);
        let is_cut = plan.begin_ns.is_some() || plan.end_ns.is_some();
        for place in &round.order {
            let at = place.part as usize;
            let part = &round.parts[at];
            let BatchContent::Events(events) = &part.batch.content else { continue };
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
            if self.wants.body {
                self.order.push(self.memory.places[self.memory.starts[at] + row - part.rows.start]);
            }
            if self.wants.packets {
                self.packet_order.push(self.memory.packet_places[at]);
            }
            self.rows += 1;
        }
    }

    /// Makes room for rows of a round; the first time for those of a whole batch.
    fn reserve(&mut self, rows: usize) {
        let rows = if self.rows == 0 { self.rows_max + rows } else { rows };
        self.moments.reserve(rows);
        self.names.reserve(if self.wants.names { rows } else { 0 });
        self.order.reserve(if self.wants.body { rows } else { 0 });
        self.packet_order.reserve(if self.wants.packets { rows } else { 0 });
    }

    /// Reads the fields of all events of a round.
    fn read_bodies(&mut self, round: &Round<StreamBatch>) {
        self.memory.places.clear();
        self.memory.starts.clear();
        for part in &round.parts {
            self.memory.starts.push(self.memory.places.len());
            let BatchContent::Events(events) = &part.batch.content else { continue };
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

    /// Reads the contexts of the packets of a round.
    fn read_packets(&mut self, round: &Round<StreamBatch>) {
        self.memory.packet_places.clear();
        for part in &round.parts {
            let shared = &self.plan.columns.streams[part.stream].shared;
            let number = self.packets.iter().position(|table| Arc::ptr_eq(&table.stream, shared));
            let number = number.unwrap_or_else(|| {
                let fields = self.plan.columns.filler_of_packets(shared, 0);
                self.packets.push(PacketTable { stream: Arc::clone(shared), fields, rows: 0 });
                self.packets.len() - 1
            });
            let table = &mut self.packets[number];
            self.memory.packet_places.push((number, table.rows));
            let (BatchContent::Events(events), Some(packet)) = (&part.batch.content, &shared.packet) else { continue };
            let (window, start) = (events.packet.head_window(), events.packet.head.context_start);
            let read = eval::rows(&packet.program, window, &[start], &mut events.state(), &mut self.memory.packet);
            debug_assert!(read.is_ok(), "{read:?}");
            let cells = CellSource { cells: &self.memory.packet, bytes: window.bytes() };
            table.fields.append(1, Some(cells), cells);
            table.rows += 1;
        }
    }

    /// The number of the table of a class.
    fn table(&mut self, stream: &Arc<StreamClassPlan>, class: usize) -> usize {
        let number = stream.number(class);
        if let Some(Some(known)) = self.numbers.get(number) {
            return *known;
        }
        if self.numbers.len() <= number {
            self.numbers.resize(number + 1, None);
        }
        let fields = self.plan.columns.filler(stream, class);
        self.tables.push(ClassTable { stream: Arc::clone(stream), class, fields, rows: 0, positions: Vec::new() });
        *self.numbers[number].insert(self.tables.len() - 1)
    }

    /// Reads the records at the positions of tables.
    fn read_part(&mut self, shared: &StreamClassPlan, events: &BatchEvents) {
        let memory = &mut self.memory;
        let window = events.window();
        let mut state = events.state();
        for number in memory.touched.drain(..) {
            let table = &mut self.tables[number];
            if table.fields.reads_events() {
                let read = shared.reader.read(table.class, window, &table.positions, &mut state, &mut memory.body);
                // The scan read the records before: records that it accepted can be read again.
                debug_assert!(read.is_ok(), "{read:?}");
            }
            let body = CellSource { cells: &memory.body, bytes: window.bytes() };
            table.fields.append(table.positions.len(), None, body);
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

    /// The rows that were added.
    pub(super) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows_max = (self.rows_max * GROWTH).min(self.plan.batch_rows);
        self.bytes = 0;
        let plan = Arc::clone(&self.plan);
        let [times, cycles, streams] = self.moments.finish();
        let names = self.wants.names.then(|| {
            let keys = Int32Array::from(std::mem::take(&mut self.names));
            let names = DictionaryArray::<Int32Type>::new(keys, Arc::clone(plan.columns.names()));
            Arc::new(names) as ArrayRef
        });
        let fields = self.take_fields()?;
        let array = |column: &EventColumn| match column {
            EventColumn::Time => times.clone(),
            EventColumn::Cycles => cycles.clone(),
            EventColumn::Stream => streams.clone(),
            EventColumn::Name => names.clone(),
            EventColumn::Field(field) => Some(Arc::clone(&fields[*field])),
        };
        let arrays = plan.columns.columns().iter().map(|column| array(column).expect("what is wanted was made"));
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(Arc::clone(plan.columns.schema()), arrays.collect(), &options)
    }

    /// The columns of fields.
    fn take_fields(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        let columns = &self.plan.columns;
        let mut bodies: Vec<Vec<ArrayRef>> = Vec::with_capacity(self.tables.len());
        for table in &mut self.tables {
            bodies.push(table.fields.finish().collect());
            self.replaced_texts += table.fields.replaced();
        }
        let mut packets: Vec<Vec<ArrayRef>> = Vec::with_capacity(self.packets.len());
        for table in &mut self.packets {
            packets.push(table.fields.finish().collect());
            self.replaced_texts += table.fields.replaced();
        }
        let is_in_order = match &self.tables[..] {
            [table] => table.rows == self.order.len() && self.order.iter().enumerate().all(|(at, (_, row))| at == *row),
            _ => false,
        };
        let of_field = |field: usize| {
            let kind = columns.field_type(field);
            let sources = self.tables.iter().map(|table| table.stream.sources(table.class, columns)[field]);
            let sources: Vec<Option<FieldSource>> = sources.collect();
            let body = |(source, arrays): (&Option<FieldSource>, &Vec<ArrayRef>)| match source {
                Some(FieldSource::Body(at)) => Some(Arc::clone(&arrays[*at])),
                _ => None,
            };
            let mut arrays: Vec<Option<ArrayRef>> = sources.iter().zip(&bodies).map(body).collect();
            if let [Some(only)] = &arrays[..]
                && is_in_order
                && only.data_type() == kind
            {
                return Ok(Arc::clone(only));
            }
            let is_own = arrays.iter().any(Option::is_some);
            let of_packet = |stream: &StreamClassPlan, source: Option<FieldSource>| match source {
                Some(FieldSource::Packet(at)) => Some(at),
                _ => stream.packet_source(field, columns).filter(|_| !stream.is_shadowed()),
            };
            if !self.wants.packets || is_own && !sources.iter().any(|it| matches!(it, Some(FieldSource::Packet(_)))) {
                return gather(&arrays, &self.order, kind);
            }
            let packet = |(table, arrays): (&PacketTable, &Vec<ArrayRef>)| {
                let own = self.tables.iter().zip(&sources).find(|(own, source)| {
                    Arc::ptr_eq(&own.stream, &table.stream) && matches!(source, Some(FieldSource::Packet(_)))
                });
                of_packet(&table.stream, own.and_then(|(_, source)| *source)).map(|at| Arc::clone(&arrays[at]))
            };
            let of_packets: Vec<Option<ArrayRef>> = self.packets.iter().zip(&packets).map(packet).collect();
            if !is_own && !self.packets.iter().any(|table| table.stream.is_shadowed()) {
                return gather(&of_packets, &self.packet_order, kind);
            }
            // Some classes have a field of their own that is called as one of the packet's.
            let behind = arrays.len();
            arrays.extend(of_packets);
            let place = |(own, packet): (&(usize, usize), &(usize, usize))| match sources[own.0] {
                Some(FieldSource::Packet(_)) => (behind + packet.0, packet.1),
                _ => *own,
            };
            let order: Vec<(usize, usize)> = self.order.iter().zip(&self.packet_order).map(place).collect();
            gather(&arrays, &order, kind)
        };
        let fields = (0..columns.field_count()).map(of_field).collect();
        self.tables.iter_mut().for_each(|table| table.rows = 0);
        self.packets.iter_mut().for_each(|table| table.rows = 0);
        self.order.clear();
        self.packet_order.clear();
        fields
    }

    /// How many texts of the taken rows were not valid: they have U+FFFD where they are not.
    pub(super) fn replaced_texts(&self) -> u64 {
        self.replaced_texts
    }
}
