//! The table of one event record class being filled.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, TimestampNanosecondArray, UInt32Array, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use kymo_decode::columns::ScopeField;
use kymo_format::model::Scope;

use crate::column::{Column, Source, columns};

/// Events of one class.
#[derive(Debug)]
pub struct Table {
    schema: SchemaRef,
    /// Times are counted from the Unix epoch.
    is_unix: bool,
    times: Vec<Option<i64>>,
    cycles: Vec<Option<u64>>,
    streams: Vec<u32>,
    /// Of the packet's context: the same for all events of a packet.
    packet: Vec<Column>,
    body: Vec<Column>,
}

/// Events of one packet, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The data stream's place among all.
    pub stream: usize,
    /// Nanoseconds since the clock's origin, for each event.
    pub times: &'a [Option<i64>],
    /// The clock, for each event.
    pub cycles: &'a [Option<u64>],
    /// One row: the packet's context.
    pub packet: Option<Source<'a>>,
    /// A row for each event.
    pub body: Source<'a>,
}

impl Table {
    /// An empty table. `is_unix`: times are counted from the Unix epoch; `keep_bytes`: texts have a second column
    /// with the bytes of those that are not valid.
    #[must_use]
    pub fn new(packet: &[ScopeField], body: &[ScopeField], is_unix: bool, keep_bytes: bool) -> Self {
        let all = |fields: &[ScopeField]| -> Vec<Column> {
            fields.iter().flat_map(|field| columns(&name(field, body), &field.shape, keep_bytes)).collect()
        };
        let (packet, body) = (all(packet), all(body));
        let time =
            if is_unix { DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())) } else { DataType::Int64 };
        let mut fields = vec![
            Field::new("time", time, true),
            Field::new("cycles", DataType::UInt64, true),
            Field::new("stream", DataType::UInt32, false),
        ];
        fields.extend(packet.iter().chain(&body).map(Column::field));
        let schema = Arc::new(Schema::new(fields));
        Self { schema, is_unix, times: Vec::new(), cycles: Vec::new(), streams: Vec::new(), packet, body }
    }

    /// Names and types of its columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Appends events.
    pub fn append(&mut self, part: &Part<'_>) {
        let rows = part.cycles.len();
        self.times.extend_from_slice(part.times);
        self.cycles.extend_from_slice(part.cycles);
        self.streams.resize(self.streams.len() + rows, part.stream as u32);
        if let Some(packet) = part.packet {
            self.packet.iter_mut().for_each(|column| column.repeat(packet, 0, rows));
        }
        self.body.iter_mut().for_each(|column| column.append(part.body, 0..rows));
    }

    /// How many texts were not valid and have U+FFFD in their place, in what was finished since it was asked last.
    pub fn replaced(&mut self) -> u64 {
        self.packet.iter_mut().chain(&mut self.body).map(Column::replaced).sum()
    }

    /// What was appended, the row `order[i]` as row `i` where an order is given; the table is empty again.
    #[must_use]
    pub fn finish(&mut self, order: Option<Vec<u32>>) -> RecordBatch {
        let times = std::mem::take(&mut self.times);
        let times: ArrayRef = if self.is_unix {
            Arc::new(TimestampNanosecondArray::from(times).with_timezone("UTC"))
        } else {
            Arc::new(Int64Array::from(times))
        };
        let cycles = Arc::new(UInt64Array::from(std::mem::take(&mut self.cycles)));
        let streams = Arc::new(UInt32Array::from(std::mem::take(&mut self.streams)));
        let mut arrays: Vec<ArrayRef> = vec![times, cycles, streams];
        arrays.extend(self.packet.iter_mut().chain(&mut self.body).map(Column::finish));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays).expect("every column has the same rows");
        match order {
            Some(order) => take_record_batch(&batch, &UInt32Array::from(order)).expect("the order names its rows"),
            None => batch,
        }
    }
}

/// Payload fields have their own name; what has the name of one already gets its scope's before it.
fn name(field: &ScopeField, body: &[ScopeField]) -> String {
    const TAKEN: [&str; 3] = ["time", "cycles", "stream"];
    let same = |other: &&ScopeField| other.name == field.name && other.scope > field.scope;
    if !TAKEN.contains(&field.name.as_str()) && !body.iter().any(|other| same(&other)) {
        return field.name.clone();
    }
    let scope = match field.scope {
        Scope::PacketHeader => "packet_header",
        Scope::PacketContext => "packet_context",
        Scope::EventHeader => "header",
        Scope::EventCommonContext => "common_context",
        Scope::EventSpecificContext => "context",
        Scope::EventPayload => "payload",
    };
    format!("{scope}.{}", field.name)
}
