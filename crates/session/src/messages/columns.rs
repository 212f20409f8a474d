//! The fields of classes, and their reading: one field of all records of a class at a time, or all
//! fields where several are asked for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use kymo_decode::Decoder;
use kymo_decode::columns::{ClassColumns, ColumnReader, ColumnShape, Projection, ScopeField};
use kymo_format::model::Scope;
use kymo_ir::{Cells, PacketWindow, eval};
use kymo_scan::{BatchEvents, Packet};

use super::value::FieldRef;

/// From so many different fields on, all are read together.
const MANY: usize = 4;

/// Reads records of one data stream class. Shared by threads.
#[derive(Debug)]
pub(super) struct StreamColumns {
    decoder: Arc<Decoder>,
    stream_class: usize,
    all: Arc<ColumnReader>,
    classes: Vec<OnceLock<Arc<ClassFields>>>,
    /// Readers of one field each.
    single: Mutex<HashMap<(Scope, String), Arc<ColumnReader>>>,
}

/// The fields of one event record class.
#[derive(Debug)]
pub struct ClassFields {
    event_class: usize,
    all: Arc<ColumnReader>,
    fields: Vec<ClassField>,
    /// The payload's before those of contexts.
    by_name: HashMap<String, usize>,
    /// How many different ones were asked for.
    asked: AtomicUsize,
}

#[derive(Debug)]
struct ClassField {
    scope: Scope,
    name: String,
    is_asked: AtomicBool,
    reader: OnceLock<Arc<ColumnReader>>,
}

impl StreamColumns {
    pub(super) fn new(decoder: &Arc<Decoder>, stream_class: usize) -> Self {
        let all = Arc::new(ColumnReader::new(Arc::clone(decoder), stream_class, Projection::All));
        let classes = decoder.stream_class(stream_class).event_classes.iter().map(|_| OnceLock::new()).collect();
        Self { decoder: Arc::clone(decoder), stream_class, all, classes, single: Mutex::default() }
    }

    pub(super) fn class(&self, event_class: usize) -> &Arc<ClassFields> {
        self.classes[event_class].get_or_init(|| Arc::new(ClassFields::new(&self.all, event_class)))
    }

    fn single(&self, scope: Scope, name: &str) -> Arc<ColumnReader> {
        let mut readers = self.single.lock().expect("no thread panics while it holds the readers");
        let reader = readers.entry((scope, name.to_owned())).or_insert_with(|| {
            let projection = Projection::Fields(vec![(scope, name.to_owned())]);
            Arc::new(ColumnReader::new(Arc::clone(&self.decoder), self.stream_class, projection))
        });
        Arc::clone(reader)
    }
}

impl ClassFields {
    fn new(all: &Arc<ColumnReader>, event_class: usize) -> Self {
        let columns = &all.columns(event_class).fields;
        let mut by_name = HashMap::new();
        for scope in [Scope::EventPayload, Scope::EventSpecificContext, Scope::EventCommonContext] {
            for (index, field) in columns.iter().enumerate().filter(|(_, field)| field.scope == scope) {
                by_name.entry(field.name.clone()).or_insert(index);
            }
        }
        let field = |field: &ScopeField| ClassField {
            scope: field.scope,
            name: field.name.clone(),
            is_asked: AtomicBool::new(false),
            reader: OnceLock::new(),
        };
        let fields = columns.iter().map(field).collect();
        Self { event_class, all: Arc::clone(all), fields, by_name, asked: AtomicUsize::new(0) }
    }

    /// Its fields: the members of the contexts and of the payload, in the order of the bytes.
    #[must_use]
    pub fn fields(&self) -> &[ScopeField] {
        &self.all.columns(self.event_class).fields
    }

    /// Index of the field of that name: of the payload, else of the specific context, else of the common context.
    #[must_use]
    #[inline]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Fields that a caller requested.
    fn asked(&self) -> impl Iterator<Item = usize> {
        let is_asked = |index: &usize| self.fields[*index].is_asked.load(Ordering::Relaxed);
        (0..self.fields.len()).filter(is_asked)
    }

    fn ask(&self, field: usize) {
        if !self.fields[field].is_asked.swap(true, Ordering::Relaxed) {
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn wants_all(&self) -> bool {
        self.asked.load(Ordering::Relaxed) >= MANY
    }
}

/// Records of one class in a part of a batch, as far as their fields were read.
#[derive(Debug)]
pub(super) struct RecordGroup {
    pub(super) class: Arc<ClassFields>,
    pub(super) positions: Box<[u64]>,
    all: OnceLock<Option<Cells>>,
    single: OnceLock<Box<[OnceLock<Option<Cells>>]>>,
}

/// Where records lie.
pub(super) struct RecordPlace<'a> {
    pub(super) columns: &'a StreamColumns,
    pub(super) window: PacketWindow<'a>,
    pub(super) events: &'a BatchEvents,
}

impl RecordGroup {
    pub(super) fn new(class: Arc<ClassFields>, positions: &[u64]) -> Self {
        Self { class, positions: positions.into(), all: OnceLock::new(), single: OnceLock::new() }
    }

    /// The cells of a field and the position in them; reads the field on first use.
    #[inline]
    pub(super) fn cells<'a>(
        &'a self,
        place: impl FnOnce() -> RecordPlace<'a>,
        field: usize,
    ) -> Option<(&'a Cells, &'a ColumnShape)> {
        self.found(field).unwrap_or_else(|| {
            self.class.ask(field);
            self.read(&place(), field);
            self.found(field).flatten()
        })
    }

    /// The same, if it was read already; that may have failed.
    #[inline]
    fn found(&self, field: usize) -> Option<Option<(&Cells, &ColumnShape)>> {
        if let Some(single) = self.single.get().and_then(|single| single[field].get()) {
            let reader = self.class.fields[field].reader.get()?;
            let columns = reader.columns(self.class.event_class);
            return Some(single.as_ref().zip(columns.fields.first().map(|field| &field.shape)));
        }
        let all = self.all.get()?;
        Some(all.as_ref().map(|cells| (cells, &self.class.fields()[field].shape)))
    }

    /// Reads the fields that were requested so far.
    pub(super) fn read_ahead(&self, place: &RecordPlace<'_>) {
        if self.class.wants_all() {
            return self.read_all(place);
        }
        self.class.asked().for_each(|field| self.read(place, field));
    }

    fn read_all(&self, place: &RecordPlace<'_>) {
        self.all.get_or_init(|| self.run(&self.class.all, place));
    }

    fn read(&self, place: &RecordPlace<'_>, field: usize) {
        if self.class.wants_all() {
            return self.read_all(place);
        }
        let class = &self.class.fields[field];
        let reader = class.reader.get_or_init(|| place.columns.single(class.scope, &class.name));
        let single = self.single.get_or_init(|| self.class.fields.iter().map(|_| OnceLock::new()).collect());
        single[field].get_or_init(|| self.run(reader, place));
    }

    /// The scan read the records before: those that it accepted can be read again.
    fn run(&self, reader: &ColumnReader, place: &RecordPlace<'_>) -> Option<Cells> {
        let mut cells = Cells::default();
        let mut state = place.events.state();
        let read = reader.read(self.class.event_class, place.window, &self.positions, &mut state, &mut cells);
        debug_assert!(read.is_ok(), "{read:?}");
        read.is_ok().then_some(cells)
    }
}

/// The fields of a packet's context, but for those that are there for readers of packets alone.
#[derive(Debug)]
pub struct PacketFields {
    columns: ClassColumns,
    decoder: Arc<Decoder>,
}

/// The values of columns in one packet.
#[derive(Debug)]
pub struct PacketValues {
    packet: Arc<Packet>,
    cells: Cells,
}

impl PacketFields {
    pub(super) fn new(decoder: &Arc<Decoder>, stream_class: usize) -> Self {
        let columns = decoder.packet_columns(stream_class);
        let columns = columns.expect("every class was lowered when the decoder was made");
        Self { columns, decoder: Arc::clone(decoder) }
    }

    /// The fields.
    #[must_use]
    pub fn fields(&self) -> &[ScopeField] {
        &self.columns.fields
    }

    /// Index of the field of that name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.fields.iter().position(|field| field.name == name)
    }

    /// Reads them.
    #[must_use]
    pub fn read(&self, packet: &Arc<Packet>) -> Option<PacketValues> {
        let mut cells = Cells::default();
        let mut state = self.decoder.state(&packet.head, 0);
        let start = packet.head.context_start;
        let read = eval::rows(&self.columns.program, packet.head_window(), &[start], &mut state, &mut cells);
        read.is_ok().then(|| PacketValues { packet: Arc::clone(packet), cells })
    }

    /// One of them.
    #[must_use]
    pub fn field<'a>(&'a self, values: &'a PacketValues, field: usize) -> FieldRef<'a> {
        let bytes = values.packet.head_window().bytes();
        FieldRef { shape: &self.columns.fields[field].shape, cells: &values.cells, bytes, row: 0 }
    }
}
