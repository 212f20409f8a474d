//! The columns of a table of events, and where each class' values of them are.
//!
//! Fields of one name are one column, for all classes, data streams and traces; it has the least
//! type that holds all. Only classes that have a wanted field are looked at, as a kernel's trace
//! has a thousand.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use kymo_decode::columns::{ClassColumns, ColumnReader, Projection, ScopeField};
use kymo_decode::filter::StreamFilter;
use kymo_decode::{ClockConverter, Decoder};
use kymo_format::model::{self, Scope};
use kymo_ir::ClassTest;
use kymo_scan::Trace;
use kymo_table::arrow::array::{ArrayRef, StringArray};
use kymo_table::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use kymo_table::{ColumnNames, FieldColumns, common_type};

use super::bases::ColumnBases;
use super::{EventsFailure, EventsQuestion};
use crate::answers::bases;
use crate::open::{Session, is_unix};

/// Columns that tables of one class have besides its fields, and those of several.
const OF_ONE: [&str; 3] = ["time", "cycles", "stream"];
const OF_SEVERAL: [&str; 4] = ["time", "cycles", "stream", "name"];

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventColumn {
    Time,
    Cycles,
    Stream,
    Name,
    /// The number of a field.
    Field(usize),
}

/// The columns of a table.
#[derive(Debug)]
pub(super) struct EventColumns {
    schema: SchemaRef,
    /// The same with metadata.
    schema_to_show: SchemaRef,
    columns: Vec<EventColumn>,
    /// Names and types of the fields.
    fields: Vec<(String, DataType)>,
    /// Times of all streams are counted from the Unix epoch.
    pub(super) is_unix: bool,
    keep_bytes: bool,
    taken: &'static [&'static str],
    /// The names of events, and for each class which.
    names: ArrayRef,
    pub(super) streams: Vec<EventStreamColumns>,
}

/// Facts that all data streams of a class share.
#[derive(Debug)]
pub(super) struct StreamClassPlan {
    decoder: Arc<Decoder>,
    class: usize,
    pub(super) reader: ColumnReader,
    pub(super) packet: Option<ClassColumns>,
    /// The number of its first event record class among those of all.
    first: usize,
    /// Which name each event record class has.
    names: Vec<i32>,
    /// Made when the first event of a class comes.
    sources: Vec<OnceLock<Vec<Option<FieldSource>>>>,
    /// Of each field of the table which column of the packet's context has its name.
    packet_sources: OnceLock<Vec<Option<usize>>>,
    /// Fields of events are wanted.
    reads_events: bool,
    /// Fields of some events are called as one of the packet's context, which is called otherwise then.
    is_shadowed: bool,
}

/// Where a field of the table is for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldSource {
    /// The number of a column of the packet's context.
    Packet(usize),
    /// The number of a column of the event.
    Body(usize),
}

/// A data stream.
#[derive(Debug)]
pub(super) struct EventStreamColumns {
    pub(super) clock: Option<ClockConverter>,
    pub(super) shared: Arc<StreamClassPlan>,
}

impl StreamClassPlan {
    /// The number of a class among those of all streams.
    pub(super) fn number(&self, class: usize) -> usize {
        self.first + class
    }

    /// Which name a class has.
    pub(super) fn name(&self, class: usize) -> i32 {
        self.names[class]
    }

    /// Whether something has to be known of each event besides its class' name.
    pub(super) fn reads_events(&self) -> bool {
        self.reads_events || self.is_shadowed
    }

    /// Whether it depends on the class of an event which column of the packet's context is which of the table.
    pub(super) fn is_shadowed(&self) -> bool {
        self.is_shadowed
    }

    /// Which column of the packet's context is a field of the table, where that is the same for all classes.
    pub(super) fn packet_source(&self, field: usize, columns: &EventColumns) -> Option<usize> {
        let all = self.packet_sources.get_or_init(|| {
            let filler = columns.filler_of_packets(self, 0);
            let names: Vec<String> = filler.fields().map(|field| field.name().clone()).collect();
            columns.fields.iter().map(|(name, _)| names.iter().position(|column| column == name)).collect()
        });
        all[field]
    }

    /// Of each field of the table where it is for a class.
    pub(super) fn sources(&self, class: usize, columns: &EventColumns) -> &[Option<FieldSource>] {
        self.sources[class].get_or_init(|| {
            let names =
                |fields: FieldColumns| fields.fields().map(|field| field.name().clone()).collect::<Vec<String>>();
            let (packet, body) = (names(columns.filler_of_packets(self, class)), names(columns.filler(self, class)));
            let at = |names: &[String], name: &str| names.iter().position(|column| column == name);
            let source = |(name, _): &(String, DataType)| {
                let body = at(&body, name).map(FieldSource::Body);
                body.or_else(|| at(&packet, name).map(FieldSource::Packet))
            };
            columns.fields.iter().map(source).collect()
        })
    }
}

impl EventColumns {
    pub(super) fn new(
        session: &Session,
        question: &EventsQuestion,
        filters: &[Option<Arc<StreamFilter>>],
    ) -> Result<Self, EventsFailure> {
        let patterns = &question.selection.events;
        if let Some(pattern) = session.unmatched(patterns).first() {
            return Err(EventsFailure::NoSuchEvent((*pattern).to_owned()));
        }
        let is_one = matches!(&patterns[..], [name] if !name.contains(['*', '?']));
        let taken: &'static [&'static str] = if is_one { &OF_ONE } else { &OF_SEVERAL };
        let wanted = question.columns.as_deref();
        let mut making = ColumnsBuilder::new(question, taken);
        for (number, trace) in session.traces.iter().enumerate() {
            for (rank, stream) in session.streams_of(number) {
                making.add(trace, stream.class, filters[rank].as_deref(), number);
            }
        }
        let is_unix = session.streams().iter().all(|(trace, stream)| is_unix(trace, stream));
        let stream = |number: usize, class: usize| Arc::clone(&making.classes[&(number, class)]);
        let streams = (0..session.traces.len())
            .flat_map(|number| session.streams_of(number).map(move |(_, stream)| (number, stream.class, stream.clock)));
        let streams = streams.map(|(number, class, clock)| EventStreamColumns { clock, shared: stream(number, class) });
        let streams: Vec<EventStreamColumns> = streams.collect();
        let names: Vec<&str> = making.names.iter().map(String::as_str).collect();
        let mut columns = Self {
            schema: Arc::new(Schema::empty()),
            schema_to_show: Arc::new(Schema::empty()),
            columns: Vec::new(),
            fields: making.fields,
            is_unix,
            keep_bytes: question.keep_bytes,
            taken,
            names: Arc::new(StringArray::from(names)),
            streams,
        };
        let all =
            || taken.iter().map(|name| (*name).to_owned()).chain(columns.fields.iter().map(|(name, _)| name.clone()));
        let wanted: Vec<String> = wanted.map_or_else(|| all().collect(), <[String]>::to_vec);
        columns.choose(&wanted, |field| making.bases.metadata(field, &making.names))?;
        Ok(columns)
    }

    /// Makes these the table's columns; `metadata` describes the fields.
    fn choose(
        &mut self,
        wanted: &[String],
        metadata: impl Fn(usize) -> HashMap<String, String>,
    ) -> Result<(), EventsFailure> {
        let moments = kymo_table::TimeColumns::new(self.is_unix, [true; 3]).fields();
        let (mut schema, mut to_show) = (Vec::new(), Vec::new());
        for name in wanted {
            let field = self.fields.iter().position(|(field, _)| field == name);
            let column = match name.as_str() {
                "time" => EventColumn::Time,
                "cycles" => EventColumn::Cycles,
                "stream" => EventColumn::Stream,
                // Where all events have one name, a field may have that.
                "name" if field.is_none() => EventColumn::Name,
                _ => EventColumn::Field(field.ok_or_else(|| self.no_such_column(name))?),
            };
            let found = match column {
                EventColumn::Time => moments[0].clone(),
                EventColumn::Cycles => moments[1].clone(),
                EventColumn::Stream => moments[2].clone(),
                EventColumn::Name => Field::new("name", name_type(), true),
                EventColumn::Field(field) => Field::new(name, self.fields[field].1.clone(), true),
            };
            let told = if let EventColumn::Field(field) = column { metadata(field) } else { HashMap::new() };
            to_show.push(found.clone().with_metadata(told));
            schema.push(found);
            self.columns.push(column);
        }
        (self.schema, self.schema_to_show) = (Arc::new(Schema::new(schema)), Arc::new(Schema::new(to_show)));
        Ok(())
    }

    fn no_such_column(&self, name: &str) -> EventsFailure {
        // Fields were only looked for by the names that are wanted.
        let near = self.near(name);
        EventsFailure::NoSuchColumn { name: name.to_owned(), near }
    }

    /// Names of columns like this one.
    fn near(&self, name: &str) -> Vec<String> {
        let mut all: Vec<String> = self.taken.iter().map(|name| (*name).to_owned()).collect();
        for stream in &self.streams {
            let trace = stream.shared.decoder.trace_class();
            let class = &trace.stream_classes[stream.shared.class];
            for event in 0..class.event_classes.len() {
                all.extend(fields_of(trace, class, event).map(|(_, name)| name.to_owned()));
            }
            all.sort_unstable();
            all.dedup();
        }
        kymo_filter::nearest(name, all.iter().map(String::as_str))
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn schema_to_show(&self) -> &SchemaRef {
        &self.schema_to_show
    }

    pub(super) fn columns(&self) -> &[EventColumn] {
        &self.columns
    }

    /// The type of a field of the table.
    pub(super) fn field_type(&self, field: usize) -> &DataType {
        &self.fields[field].1
    }

    pub(super) fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// The names of events.
    pub(super) fn names(&self) -> &ArrayRef {
        &self.names
    }

    /// Columns to be filled with events of a class.
    pub(super) fn filler(&self, stream: &StreamClassPlan, class: usize) -> FieldColumns {
        self.fields_of(stream, class, &[], &stream.reader.columns(class).fields, true)
    }

    /// Columns to be filled with the contexts of the packets of a stream, called as they are for a class. Which ones they are
    /// does not depend on it.
    pub(super) fn filler_of_packets(&self, stream: &StreamClassPlan, class: usize) -> FieldColumns {
        let packet = stream.packet.as_ref().map(|packet| &packet.fields[..]).unwrap_or_default();
        self.fields_of(stream, class, packet, &[], false)
    }

    fn fields_of(
        &self,
        stream: &StreamClassPlan,
        class: usize,
        packet: &[ScopeField],
        body: &[ScopeField],
        only_wanted: bool,
    ) -> FieldColumns {
        let trace = stream.decoder.trace_class();
        let fields = fields_of(trace, &trace.stream_classes[stream.class], class);
        let names = ColumnNames::new(fields.filter(|(scope, _)| *scope != Scope::PacketContext), self.taken);
        let is_wanted = |name: &str| !only_wanted || self.fields.iter().any(|(field, _)| field == name);
        FieldColumns::new(packet, body, &names, self.keep_bytes, &is_wanted)
    }
}

/// The type of the column of events' names.
pub(super) fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// State while classes are visited.
struct ColumnsBuilder<'a> {
    question: &'a EventsQuestion,
    taken: &'static [&'static str],
    classes: BTreeMap<(usize, usize), Arc<StreamClassPlan>>,
    /// Event record classes so far.
    count: usize,
    fields: Vec<(String, DataType)>,
    known: HashMap<String, usize>,
    names: Vec<String>,
    numbers: HashMap<String, i32>,
    bases: ColumnBases,
}

impl<'a> ColumnsBuilder<'a> {
    fn new(question: &'a EventsQuestion, taken: &'static [&'static str]) -> Self {
        Self {
            question,
            taken,
            classes: BTreeMap::new(),
            count: 0,
            fields: Vec::new(),
            known: HashMap::new(),
            names: Vec::new(),
            numbers: HashMap::new(),
            bases: ColumnBases::default(),
        }
    }

    /// Whether a field's columns may be wanted.
    fn may_want(&self, scope: Scope, name: &str) -> bool {
        let Some(wanted) = &self.question.columns else { return true };
        // A column may be of the field's labels or bytes.
        let is_of =
            |column: &str| column.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        let scoped = |column: &'a str| column.strip_prefix(kymo_table::scope_name(scope))?.strip_prefix('.');
        wanted.iter().any(|column| is_of(column) || scoped(column).is_some_and(is_of))
    }

    /// Adds a data stream class.
    fn add(&mut self, trace: &Arc<Trace>, class: usize, filter: Option<&StreamFilter>, number: usize) {
        if self.classes.contains_key(&(number, class)) {
            return;
        }
        let stream = &trace.class.stream_classes[class];
        let events = &stream.event_classes;
        let may_occur = |event: &usize| filter.is_none_or(|filter| filter.class_tests()[*event] != ClassTest::Never);
        let mut projected: Vec<(Scope, String)> = Vec::new();
        let mut with_fields: Vec<usize> = Vec::new();
        for event in (0..events.len()).filter(may_occur) {
            let mut has_own = false;
            for (scope, name) in fields_of(&trace.class, stream, event) {
                if self.may_want(scope, name) {
                    has_own |= with_fields.is_empty() || scope > Scope::EventCommonContext;
                    if !projected.iter().any(|known| known.0 == scope && known.1 == name) {
                        projected.push((scope, name.to_owned()));
                    }
                }
            }
            // All classes have the same common context.
            if has_own {
                with_fields.push(event);
            }
        }
        let in_packet = |(scope, _): &&(Scope, String)| *scope == Scope::PacketContext;
        let has_packet = projected.iter().any(|field| in_packet(&field));
        let reads_events = !projected.iter().all(|field| in_packet(&field));
        let is_shadowed = projected.iter().filter(in_packet).any(|(_, name)| {
            let mut fields = (0..events.len()).flat_map(|event| fields_of(&trace.class, stream, event));
            fields.any(|(scope, field)| scope != Scope::PacketContext && field == name)
        });
        let projection = if self.question.columns.is_none() { Projection::All } else { Projection::Fields(projected) };
        let packet = has_packet.then(|| trace.decoder.packet_columns(class));
        let names = events.iter().map(|event| self.name(event)).collect();
        let shared = Arc::new(StreamClassPlan {
            reader: ColumnReader::new(Arc::clone(&trace.decoder), class, projection),
            decoder: Arc::clone(&trace.decoder),
            class,
            packet: packet.transpose().expect("every class was lowered when the decoder was made"),
            first: self.count,
            names,
            sources: events.iter().map(|_| OnceLock::new()).collect(),
            packet_sources: OnceLock::new(),
            reads_events,
            is_shadowed,
        });
        self.count += events.len();
        for event in with_fields {
            self.add_fields(&shared, event);
        }
        self.classes.insert((number, class), shared);
    }

    /// The number of a class' name.
    fn name(&mut self, event: &model::EventRecordClass) -> i32 {
        let name = event.name.clone().unwrap_or_else(|| format!("event-{}", event.id));
        let next = self.names.len() as i32;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }

    /// Adds the fields of a class to those of the table.
    fn add_fields(&mut self, stream: &StreamClassPlan, event: usize) {
        let trace = stream.decoder.trace_class();
        let fields = fields_of(trace, &trace.stream_classes[stream.class], event);
        let names = ColumnNames::new(fields.filter(|(scope, _)| *scope != Scope::PacketContext), self.taken);
        let packet = stream.packet.as_ref().map(|packet| &packet.fields[..]).unwrap_or_default();
        let wanted = self.question.columns.as_ref();
        let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|column| column == name));
        let body = &stream.reader.columns(event).fields;
        let filler = FieldColumns::new(packet, body, &names, self.question.keep_bytes, &is_wanted);
        for field in filler.fields() {
            match self.known.get(field.name()) {
                Some(&known) => {
                    let both = common_type(&self.fields[known].1, field.data_type());
                    self.fields[known].1 = both;
                }
                None => {
                    self.known.insert(field.name().clone(), self.fields.len());
                    self.fields.push((field.name().clone(), field.data_type().clone()));
                }
            }
        }
        for (scope, member) in bases::fields(&trace.stream_classes[stream.class], event) {
            let column = names.column(scope, model::display_name(trace.dialect, &member.name));
            if let Some(&known) = self.known.get(&column) {
                self.bases.add(known, stream.name(event), trace.dialect, &member.class);
            }
        }
    }
}

/// The fields of an event record class that may be columns, with the names that people see.
fn fields_of<'a>(
    trace: &'a model::TraceClass,
    stream: &'a model::DataStreamClass,
    event: usize,
) -> impl Iterator<Item = (Scope, &'a str)> {
    bases::fields(stream, event).map(|(scope, member)| (scope, model::display_name(trace.dialect, &member.name)))
}
