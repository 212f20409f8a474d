//! The facts that are known without reading events: data streams, packets, losses, fields.

use std::sync::Arc;

use kymo_decode::ClockConverter;
use kymo_format::model::{self, FieldKind, Scope};
use kymo_sql::TableError;
use kymo_table::RecordBatch;
use kymo_table::arrow::array::{ArrayRef, Int64Array, StringArray, TimestampNanosecondArray, UInt32Array, UInt64Array};
use kymo_table::arrow::datatypes::{Field, Schema};

use crate::open::{Session, trace_name};

/// Their names.
pub(super) const TABLES: &[&str] = &["streams", "packets", "losses", "fields"];

/// A table of this name.
pub(super) fn table(session: &Session, name: &str) -> Result<Option<RecordBatch>, TableError> {
    Ok(Some(match name {
        "streams" => streams(session)?,
        "packets" => packets(session)?,
        "losses" => losses(session)?,
        "fields" => fields(session)?,
        _ => return Ok(None),
    }))
}

/// Columns of a table.
#[derive(Default)]
struct FactColumns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl FactColumns {
    fn add(&mut self, name: &str, array: ArrayRef) {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(array);
    }

    fn numbers(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        self.add(name, Arc::new(values.collect::<UInt64Array>()));
    }

    fn texts<T: AsRef<str>>(&mut self, name: &str, values: impl Iterator<Item = Option<T>>) {
        self.add(name, Arc::new(values.collect::<StringArray>()));
    }

    /// Nanoseconds as what they mean.
    fn times(&mut self, name: &str, values: impl Iterator<Item = Option<i64>>, are_unix: bool) {
        self.add(
            name,
            if are_unix {
                Arc::new(values.collect::<TimestampNanosecondArray>().with_timezone("UTC"))
            } else {
                Arc::new(values.collect::<Int64Array>())
            },
        );
    }

    fn finish(self) -> Result<RecordBatch, TableError> {
        Ok(RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)?)
    }
}

fn nanos(clock: Option<ClockConverter>, cycles: Option<u64>) -> Option<i64> {
    clock?.nanos(cycles?)
}

/// A row for each data stream.
fn streams(session: &Session) -> Result<RecordBatch, TableError> {
    let all = session.streams();
    let are_unix = session.times_are_unix();
    let count = all.len() as u32;
    let mut columns = FactColumns::default();
    columns.add("stream", Arc::new((0..count).collect::<UInt32Array>()));
    columns.texts("trace", all.iter().map(|(trace, _)| Some(trace_name(trace.folder.path()))));
    let class = |trace: &kymo_scan::Trace, class: usize| trace.class.stream_classes[class].id;
    columns.numbers("class", all.iter().map(|(trace, stream)| Some(class(trace, stream.class))));
    columns.numbers("id", all.iter().map(|(_, stream)| stream.id));
    columns.texts("file", (0..all.len()).map(|stream| Some(session.place(stream))));
    let clock = |(trace, stream): &(&Arc<kymo_scan::Trace>, &kymo_scan::DataStream)| {
        let clock = trace.class.stream_classes[stream.class].default_clock?;
        let clock = &trace.class.clock_classes[clock];
        Some(clock.name.clone().unwrap_or_else(|| clock.id.clone()))
    };
    columns.texts("clock", all.iter().map(clock));
    let first = |stream: &kymo_scan::DataStream| nanos(stream.clock, stream.packets.first()?.begin_cycles);
    let last = |stream: &kymo_scan::DataStream| {
        stream.packets.iter().filter_map(|packet| nanos(stream.clock, packet.end_cycles)).max()
    };
    columns.times("begin", all.iter().map(|(_, stream)| first(stream)), are_unix);
    columns.times("end", all.iter().map(|(_, stream)| last(stream)), are_unix);
    columns.numbers("packets", all.iter().map(|(_, stream)| Some(stream.packets.len() as u64)));
    let bytes = |stream: &kymo_scan::DataStream| stream.packets.packet_bytes(0..stream.packets.len());
    columns.numbers("bytes", all.iter().map(|(_, stream)| Some(bytes(stream))));
    columns.finish()
}

/// A row for each packet, by stream and in the order of time.
fn packets(session: &Session) -> Result<RecordBatch, TableError> {
    let all = session.streams();
    let rows: Vec<_> = all
        .iter()
        .enumerate()
        .flat_map(|(rank, (_, stream))| {
            stream.packets.iter().enumerate().map(move |(number, row)| (rank, number, stream.clock, row))
        })
        .collect();
    let are_unix = session.times_are_unix();
    let mut columns = FactColumns::default();
    columns.add("stream", Arc::new(rows.iter().map(|row| row.0 as u32).collect::<UInt32Array>()));
    columns.numbers("packet", rows.iter().map(|row| Some(row.1 as u64)));
    columns.times("begin", rows.iter().map(|row| nanos(row.2, row.3.begin_cycles)), are_unix);
    columns.times("end", rows.iter().map(|row| nanos(row.2, row.3.end_cycles)), are_unix);
    columns.numbers("begin_cycles", rows.iter().map(|row| row.3.begin_cycles));
    columns.numbers("end_cycles", rows.iter().map(|row| row.3.end_cycles));
    let file = |rank: usize, file: u32| all[rank].0.folder.stream(file as usize).path().display().to_string();
    columns.texts("file", rows.iter().map(|row| Some(file(row.0, row.3.file))));
    columns.numbers("offset", rows.iter().map(|row| Some(row.3.offset_bytes)));
    columns.numbers("bytes", rows.iter().map(|row| Some(row.3.total_bits / 8)));
    columns.numbers("content_bits", rows.iter().map(|row| Some(row.3.content_bits)));
    columns.numbers("sequence", rows.iter().map(|row| row.3.sequence));
    columns.numbers("discarded", rows.iter().map(|row| row.3.discarded));
    columns.finish()
}

/// Something that was lost.
struct LossRow {
    stream: usize,
    packet: usize,
    what: &'static str,
    /// `None`: nobody knows how many.
    count: Option<u64>,
    /// From when to when.
    between: (Option<i64>, Option<i64>),
}

/// A row for each time when a stream lost events or packets, by the counters of its packets.
fn losses(session: &Session) -> Result<RecordBatch, TableError> {
    let mut rows: Vec<LossRow> = Vec::new();
    for (rank, (_, stream)) in session.streams().into_iter().enumerate() {
        let mut before: Option<kymo_scan::PacketRow> = None;
        for (packet, row) in stream.packets.iter().enumerate() {
            let at = |cycles| nanos(stream.clock, cycles);
            let began = match &before {
                Some(before) => at(before.end_cycles.or(before.begin_cycles)),
                None => None,
            };
            let mut add = |what, count, between| rows.push(LossRow { stream: rank, packet, what, count, between });
            if let Some(loss) = stream.counters.lost_events(before.as_ref(), &row) {
                let between = if before.is_some() { (began, at(row.end_cycles)) } else { (None, at(row.begin_cycles)) };
                add("events", loss.count, between);
            }
            if let Some(loss) = stream.counters.lost_packets(before.as_ref(), &row) {
                add("packets", loss.count, (began, at(row.begin_cycles)));
            }
            before = Some(row);
        }
    }
    let are_unix = session.times_are_unix();
    let mut columns = FactColumns::default();
    columns.add("stream", Arc::new(rows.iter().map(|row| row.stream as u32).collect::<UInt32Array>()));
    columns.numbers("packet", rows.iter().map(|row| Some(row.packet as u64)));
    columns.texts("what", rows.iter().map(|row| Some(row.what)));
    columns.numbers("count", rows.iter().map(|row| row.count));
    columns.times("begin", rows.iter().map(|row| row.between.0), are_unix);
    columns.times("end", rows.iter().map(|row| row.between.1), are_unix);
    columns.finish()
}

/// A field that events declare.
struct DeclaredField {
    trace: String,
    stream_class: u64,
    event: Option<String>,
    event_id: u64,
    scope: &'static str,
    field: String,
    kind: &'static str,
}

/// A row for each field of each event record class.
fn fields(session: &Session) -> Result<RecordBatch, TableError> {
    let mut rows: Vec<DeclaredField> = Vec::new();
    for trace in &session.traces {
        let name = trace_name(trace.folder.path());
        for stream in &trace.class.stream_classes {
            for event in &stream.event_classes {
                let scopes = [
                    (Scope::PacketContext, &stream.packet_context),
                    (Scope::EventCommonContext, &stream.event_common_context),
                    (Scope::EventSpecificContext, &event.specific_context),
                    (Scope::EventPayload, &event.payload),
                ];
                for (scope, class) in scopes {
                    let Some(FieldKind::Structure(structure)) = class.as_ref().map(|class| &class.kind) else {
                        continue;
                    };
                    let members = structure.members.iter();
                    let is_shown = |it: &&model::Member| scope != Scope::PacketContext || it.class.roles().is_empty();
                    rows.extend(members.filter(is_shown).map(|member| DeclaredField {
                        trace: name.clone(),
                        stream_class: stream.id,
                        event: event.name.clone(),
                        event_id: event.id,
                        scope: kymo_table::scope_name(scope),
                        field: model::display_name(trace.class.dialect, &member.name).to_owned(),
                        kind: kind_name(&member.class.kind),
                    }));
                }
            }
        }
    }
    let mut columns = FactColumns::default();
    columns.texts("trace", rows.iter().map(|row| Some(&row.trace)));
    columns.numbers("stream_class", rows.iter().map(|row| Some(row.stream_class)));
    columns.texts("event", rows.iter().map(|row| row.event.as_deref()));
    columns.numbers("event_id", rows.iter().map(|row| Some(row.event_id)));
    columns.texts("scope", rows.iter().map(|row| Some(row.scope)));
    columns.texts("field", rows.iter().map(|row| Some(&row.field)));
    columns.texts("type", rows.iter().map(|row| Some(row.kind)));
    columns.finish()
}

fn kind_name(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::BitArray(_) => "bit array",
        FieldKind::BitMap(_) => "bit map",
        FieldKind::Boolean(_) => "boolean",
        FieldKind::Integer(_) | FieldKind::VariableInteger(_) => "integer",
        FieldKind::Real(_) => "real",
        FieldKind::NullTerminatedText(_) | FieldKind::StaticText(_) | FieldKind::DynamicText(_) => "text",
        FieldKind::StaticBlob(_) | FieldKind::DynamicBlob(_) => "blob",
        FieldKind::Structure(_) => "structure",
        FieldKind::StaticArray(_) | FieldKind::DynamicArray(_) => "array",
        FieldKind::Optional(_) => "optional",
        FieldKind::Variant(_) => "variant",
    }
}
