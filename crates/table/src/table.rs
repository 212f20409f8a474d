//! The table of one event record class being filled.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use kymo_decode::columns::ScopeField;

use crate::column::CellSource;
use crate::fields::{ColumnNames, FieldColumns};
use crate::moments::TimeColumns;

/// Names that fields cannot have: columns of every table do.
const TAKEN: [&str; 3] = ["time", "cycles", "stream"];

/// Events of one class.
#[derive(Debug)]
pub struct ArrowTable {
    schema: SchemaRef,
    moments: TimeColumns,
    fields: FieldColumns,
}

/// Events of one packet, in their order.
#[derive(Clone, Copy, Debug)]
pub struct PacketEvents<'a> {
    /// The data stream's place among all.
    pub stream: usize,
    /// Nanoseconds since the clock's origin, for each event.
    pub times: &'a [Option<i64>],
    /// The clock, for each event.
    pub cycles: &'a [Option<u64>],
    /// One row: the packet's context.
    pub packet: Option<CellSource<'a>>,
    /// A row for each event.
    pub body: CellSource<'a>,
}

impl ArrowTable {
    /// An empty table. `is_unix`: times are counted from the Unix epoch; `keep_bytes`: texts have a second column
    /// with the bytes of those that are not valid.
    #[must_use]
    pub fn new(packet: &[ScopeField], body: &[ScopeField], is_unix: bool, keep_bytes: bool) -> Self {
        let names = ColumnNames::new(body.iter().map(|field| (field.scope, field.name.as_str())), &TAKEN);
        let fields = FieldColumns::new(packet, body, &names, keep_bytes, &|_| true);
        let moments = TimeColumns::new(is_unix, [true; 3]);
        let columns: Vec<Field> = moments.fields().into_iter().chain(fields.fields()).collect();
        Self { schema: Arc::new(Schema::new(columns)), moments, fields }
    }

    /// Names and types of its columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Appends events.
    pub fn append(&mut self, part: &PacketEvents<'_>) {
        for (time, cycles) in part.times.iter().zip(part.cycles) {
            self.moments.push(part.stream, *time, *cycles);
        }
        self.fields.append(part.cycles.len(), part.packet, part.body);
    }

    /// How many texts were not valid and have U+FFFD in their place, in the rows finished since the
    /// last call.
    pub fn replaced(&mut self) -> u64 {
        self.fields.replaced()
    }

    /// The appended rows, the row `order[i]` as row `i` where an order is given; the table is empty
    /// again.
    #[must_use]
    pub fn finish(&mut self, order: Option<Vec<u32>>) -> RecordBatch {
        let mut arrays: Vec<ArrayRef> = self.moments.finish().into_iter().flatten().collect();
        arrays.extend(self.fields.finish());
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays).expect("every column has the same rows");
        match order {
            Some(order) => take_record_batch(&batch, &UInt32Array::from(order)).expect("the order names its rows"),
            None => batch,
        }
    }
}
