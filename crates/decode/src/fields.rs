//! Chosen fields of the events of a data stream class as columns: those that an analysis needs, and
//! no more.
//!
//! ```text
//! ask(sched_switch, [prev_tid, next_comm, packet.cpu_id, event.name, bytes])
//!
//!   place 0   column 0 of numbers           the program of the class:     need ...
//!   place 1   column 1 of spans                                           r0 = read ...   store 0 r0
//!   place 2   number 0 of the packet                                      r1 = bytes ...  span 1 r1 r2
//!   place 3   the constant "sched_switch"                                 (ends behind the last of them)
//!   place 4   missing
//!
//! per packet        packet(head)                 [cpu_id]
//! per run of rows   read(class, positions)       column 0 │ column 1
//! ```
//!
//! Programs leave out everything behind the last wanted field, and unneeded lengths, so most
//! classes that have the same fields in front share one program and its machine code.
//!
//! `names` defines the meaning of paths; grouping the records of a class together is a task of the
//! caller.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_filter::{Constant, FieldResolver, FilterField, NamePath, PathMeaning, Unit};
use kymo_format::model::Scope;
use kymo_ir::predicate::InputKind;
use kymo_ir::{Cells, PacketWindow, ProgramTable, ReadProgram, ReadState, RowFault, eval};
use kymo_jit::CompiledRows;

use crate::builder::ProgramBuilder;
use crate::columns::COMPILE_AFTER;
use crate::decoder::Decoder;
use crate::head::PacketHead;
use crate::hot::Hot;
use crate::lower::{Face, FreshValue, LowerError};
use crate::names::{EventClassFields, FilterFacts, NameSource, ScopePath};
use crate::plan::BodyFace;
use crate::walk::FieldWalk;

/// Reads chosen fields of the events of one data stream class. Threads share it once all fields are
/// requested.
#[derive(Debug)]
pub struct FieldReader {
    decoder: Arc<Decoder>,
    stream_class: usize,
    classes: Vec<ClassReader>,
    programs: Vec<SharedProgram>,
    /// Indexes into `programs`.
    known: HashMap<Arc<ReadProgram>, usize>,
    packet: PacketReader,
}

/// A requested field of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedField {
    /// Where it is.
    pub place: FieldPlace,
    /// Labels of an integer and the ranges of values that have them, both ends included.
    pub labels: Vec<(String, Vec<(i128, i128)>)>,
    /// The unit of its values, if its class has one.
    pub unit: Option<Unit>,
    /// The base in which people read an integer: 2, 8, 10 or 16.
    pub base: u8,
}

/// Where a field is.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldPlace {
    /// The class lacks the field.
    Missing {
        /// Names like it that there are, the nearest first; looked for if [`FilterFacts::suggests`].
        near: Vec<String>,
    },
    /// The field has no single value.
    Compound(&'static str),
    /// All events of the class have this value.
    Constant(Constant),
    /// All events of a packet have the same.
    Packet {
        /// Index into the result of [`FieldReader::packet`].
        index: usize,
        /// Its type.
        kind: InputKind,
    },
    /// Each event has its own.
    Column {
        /// Of the cells that [`FieldReader::read`] fills. Text: spans of the window's bytes. Numbers: 8 bytes; integers
        /// extended to 64 bits by their sign or by zeros, reals as the bits of a double; see [`FieldValue::number`].
        column: u16,
        /// Its type.
        kind: InputKind,
        /// Events may be without it: the column has validity.
        optional: bool,
    },
    /// The event's clock in cycles, which scans find.
    Cycles,
    /// The same in nanoseconds.
    Time,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// An integer.
    Integer(i128),
    /// A real number.
    Real(f64),
    /// The bytes of a text, encoded according to its kind.
    Text(Vec<u8>),
}

/// A field that programs look for.
#[derive(Clone, Debug, PartialEq)]
struct RequestedField {
    /// Of which one at most is there.
    places: Vec<ScopePath>,
    kind: InputKind,
    optional: bool,
}

/// The fields asked of a class.
#[derive(Debug, Default)]
struct ClassReader {
    asked: Vec<AskedField>,
    /// By column.
    wanted: Vec<RequestedField>,
    /// Index into the programs, if there are columns.
    program: Option<usize>,
}

/// A program of one or more classes.
#[derive(Debug)]
struct SharedProgram {
    program: Arc<ReadProgram>,
    compiled: Hot<CompiledRows>,
}

/// The fields asked of packets.
#[derive(Debug, Default)]
struct PacketReader {
    asked: Vec<OfPacket>,
    /// By column.
    wanted: Vec<RequestedField>,
    program: Option<ReadProgram>,
}

/// The source of a packet's value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum OfPacket {
    StreamId,
    Column(u16, InputKind),
}

/// The meaning of names for the events of a class, for callers who choose before they ask.
#[must_use]
pub fn names<'a>(
    decoder: &'a Decoder,
    stream_class: usize,
    event_class: usize,
    facts: &'a FilterFacts<'a>,
) -> impl FieldResolver + 'a {
    let stream = decoder.stream_class(stream_class);
    EventClassFields::new(decoder.trace_class(), stream, &stream.event_classes[event_class], facts)
}

impl FieldReader {
    /// A reader of no fields.
    #[must_use]
    pub fn new(decoder: &Arc<Decoder>, stream_class: usize) -> Self {
        let classes = decoder.stream_class(stream_class).event_classes.iter().map(|_| ClassReader::default()).collect();
        let (programs, known, packet) = (Vec::new(), HashMap::new(), PacketReader::default());
        Self { decoder: Arc::clone(decoder), stream_class, classes, programs, known, packet }
    }

    /// Asks for fields of an event record class; returns one answer for each path. Another caller
    /// may ask for more of the same class later: given places stay right, and the same field has
    /// the same place.
    ///
    /// # Errors
    ///
    /// A field class that cannot be decoded.
    pub fn ask(
        &mut self,
        event_class: usize,
        paths: &[NamePath],
        facts: &FilterFacts<'_>,
    ) -> Result<&[AskedField], LowerError> {
        let decoder = Arc::clone(&self.decoder);
        let stream = decoder.stream_class(self.stream_class);
        let names = EventClassFields::new(decoder.trace_class(), stream, &stream.event_classes[event_class], facts);
        let first = self.classes[event_class].asked.len();
        let columns = (self.classes[event_class].wanted.len(), self.packet.wanted.len());
        for path in paths {
            let asked = self.asked(event_class, names.find(path), &names);
            self.classes[event_class].asked.push(asked);
        }
        if self.classes[event_class].wanted.len() > columns.0 {
            self.write_program(event_class)?;
        }
        if self.packet.wanted.len() > columns.1 {
            let mut face = FieldFace::new(&self.packet.wanted);
            self.packet.program = Some(decoder.packet_context(self.stream_class, &mut face)?);
        }
        Ok(&self.classes[event_class].asked[first..])
    }

    fn asked(&mut self, event_class: usize, found: PathMeaning, names: &EventClassFields<'_>) -> AskedField {
        let bare = |place| AskedField { place, labels: Vec::new(), unit: None, base: 10 };
        match found {
            PathMeaning::Missing { near } => bare(FieldPlace::Missing { near }),
            PathMeaning::Compound { what } => bare(FieldPlace::Compound(what)),
            PathMeaning::Constant(constant) => bare(FieldPlace::Constant(constant)),
            // Nothing is measured in another unit but the clock.
            PathMeaning::Scaled { field, .. } => {
                AskedField { place: FieldPlace::Time, labels: field.labels, unit: field.unit, base: 10 }
            }
            PathMeaning::Field(field) => {
                let place = self.place(event_class, &field, names.source(field.key));
                AskedField { place, labels: field.labels, unit: field.unit, base: field.base }
            }
        }
    }

    fn place(&mut self, event_class: usize, field: &FilterField, source: NameSource) -> FieldPlace {
        let (kind, optional, is_of_packet) = (field.kind, field.optional, source.is_of_packet());
        match source {
            NameSource::Cycles => FieldPlace::Cycles,
            NameSource::Fields(places) if !is_of_packet => {
                let column = column(&mut self.classes[event_class].wanted, RequestedField { places, kind, optional });
                FieldPlace::Column { column, kind, optional }
            }
            NameSource::Fields(places) => {
                let column = column(&mut self.packet.wanted, RequestedField { places, kind, optional });
                FieldPlace::Packet { index: self.packet.index(OfPacket::Column(column, kind)), kind }
            }
            NameSource::StreamId | NameSource::Settled(_) => {
                FieldPlace::Packet { index: self.packet.index(OfPacket::StreamId), kind }
            }
        }
    }

    fn write_program(&mut self, event_class: usize) -> Result<(), LowerError> {
        let mut face = FieldFace::new(&self.classes[event_class].wanted);
        let program = Arc::new(self.decoder.body(self.stream_class, event_class, &mut face)?.trimmed());
        let index = *self.known.entry(program).or_insert_with_key(|program| {
            self.programs.push(SharedProgram { program: Arc::clone(program), compiled: Hot::default() });
            self.programs.len() - 1
        });
        self.classes[event_class].program = Some(index);
        Ok(())
    }

    /// All requested fields of a class, in the order of the requests.
    #[must_use]
    pub fn fields(&self, event_class: usize) -> &[AskedField] {
        &self.classes[event_class].asked
    }

    /// Whether events of the class have columns: without any, there is nothing to [`FieldReader::read`].
    #[must_use]
    pub fn reads(&self, event_class: usize) -> bool {
        self.classes[event_class].program.is_some()
    }

    /// How many programs all classes have together: each is compiled once at most.
    #[must_use]
    pub fn programs(&self) -> usize {
        let mut used: Vec<usize> = self.classes.iter().filter_map(|class| class.program).collect();
        used.sort_unstable();
        used.dedup();
        used.len()
    }

    /// The program that reads a class, if it has columns.
    #[must_use]
    pub fn program(&self, event_class: usize) -> Option<&Arc<ReadProgram>> {
        self.classes[event_class].program.map(|index| &self.programs[index].program)
    }

    /// The requested values of a packet, at the index of [`FieldPlace::Packet`]; `None`: it has
    /// none there. `window` holds the packet's head, from its first byte on.
    #[must_use]
    pub fn packet(&self, head: &PacketHead, window: PacketWindow<'_>) -> Vec<Option<FieldValue>> {
        let mut cells = Cells::default();
        let is_read = self.packet.program.as_ref().is_some_and(|program| {
            let mut state = self.decoder.state(head, 0);
            eval::rows(program, window, &[head.context_start], &mut state, &mut cells).is_ok()
        });
        let value = |asked: &OfPacket| match *asked {
            OfPacket::StreamId => head.stream_id.map(|id| FieldValue::Integer(id.into())),
            OfPacket::Column(column, kind) if is_read => FieldValue::of_row(&cells, column, 0, kind, window),
            OfPacket::Column(..) => None,
        };
        self.packet.asked.iter().map(value).collect()
    }

    /// Fills `cells` with the fields of the records of one class at `positions`, which a scan found: row `i` of table 0
    /// is the record at `positions[i]`. The state is one of [`Decoder::state`].
    ///
    /// # Errors
    ///
    /// The first record that could not be read; rows before it are complete.
    pub fn read(
        &self,
        event_class: usize,
        window: PacketWindow<'_>,
        positions: &[u64],
        state: &mut ReadState,
        cells: &mut Cells,
    ) -> Result<(), RowFault> {
        let Some(index) = self.classes[event_class].program else {
            cells.reset(&ReadProgram::default(), 0);
            return Ok(());
        };
        let shared = &self.programs[index];
        match shared.compiled(&self.decoder, positions.len()) {
            Some(rows) => rows.run(window, positions, state, cells),
            None => eval::rows(&shared.program, window, positions, state, cells),
        }
    }
}

impl SharedProgram {
    /// Machine code for that many more records, once it pays off.
    fn compiled(&self, decoder: &Decoder, records: usize) -> Option<&CompiledRows> {
        let engine = decoder.engine()?;
        let after = if decoder.compiles_at_once() { 0 } else { COMPILE_AFTER };
        self.compiled.get(records, after, || CompiledRows::new(engine, &self.program))
    }
}

impl PacketReader {
    fn index(&mut self, asked: OfPacket) -> usize {
        self.asked.iter().position(|known| *known == asked).unwrap_or_else(|| {
            self.asked.push(asked);
            self.asked.len() - 1
        })
    }
}

impl FieldValue {
    /// The number in a cell of this type.
    #[must_use]
    pub fn number(kind: InputKind, cell: u64) -> Self {
        match kind {
            InputKind::Real => Self::Real(f64::from_bits(cell)),
            InputKind::Integer { signed: true, .. } => Self::Integer(i128::from(cell.cast_signed())),
            InputKind::Integer { .. } | InputKind::Text(_) => Self::Integer(i128::from(cell)),
        }
    }

    /// The value in a row of cells that [`FieldReader::read`] filled from this window; `None`: it is not there.
    #[must_use]
    pub fn of_row(cells: &Cells, column: u16, row: usize, kind: InputKind, window: PacketWindow<'_>) -> Option<Self> {
        if cells.validity(column).is_some_and(|validity| validity[row] == 0) {
            return None;
        }
        Some(match kind {
            InputKind::Text(_) => {
                let (first, count) = cells.span(column, row);
                Self::Text(window.bytes()[first..first + count].to_vec())
            }
            kind => Self::number(kind, cells.value(column, row)),
        })
    }
}

/// The column of a field, a new one for the first request.
fn column(columns: &mut Vec<RequestedField>, wanted: RequestedField) -> u16 {
    let place = columns.iter().position(|known| *known == wanted).unwrap_or_else(|| {
        columns.push(wanted);
        columns.len() - 1
    });
    place as u16
}

/// Writes the program that stores fields.
struct FieldFace<'a> {
    wanted: &'a [RequestedField],
    walk: FieldWalk,
}

impl<'a> FieldFace<'a> {
    fn new(wanted: &'a [RequestedField]) -> Self {
        Self { wanted, walk: FieldWalk::new() }
    }
}

/// The walk itself is the face of the fields: only the scopes concern this one.
impl Face for FieldFace<'_> {
    fn value(&mut self, builder: &mut ProgramBuilder, value: FreshValue<'_>) {
        Face::value(&mut self.walk, builder, value);
    }
}

impl BodyFace for FieldFace<'_> {
    fn begin(&mut self, builder: &mut ProgramBuilder) {
        builder.program.tables.push(ProgramTable { parent: None });
        for wanted in self.wanted {
            self.walk.store(builder, &wanted.places, wanted.kind, wanted.optional);
        }
    }

    fn scope(&mut self, builder: &mut ProgramBuilder, scope: Scope) {
        self.walk.scope(builder, scope);
    }

    fn as_face(&mut self) -> &mut dyn Face {
        &mut self.walk
    }
}
