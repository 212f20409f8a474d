//! Events as analyses see them: a time, the event's meaning, and the requested fields.
//!
//! ```text
//! row      time       class            cells of the class (columns)        packet
//! 0        17.000     sched_switch ──> row 0 of [prev_tid│next_tid]        cpu_id = 3
//! 1        17.004     sys_read     ──> row 0 of [fd]
//! 2        17.009     sched_switch ──> row 1
//! ```

use std::sync::Arc;

use kymo_filter::NamePath;
use kymo_ir::Cells;

use crate::comm::Comm;
use crate::roles::{CONTEXT, CPU, EventRole, FieldIndex};

/// A class of events of a data stream class, and the meaning of its events.
#[derive(Clone, Debug)]
pub struct BoundClass {
    /// The class' name.
    pub name: Arc<str>,
    /// The roles of its events, in the order of the mapping; none, if the analysis asked for all
    /// events.
    pub roles: Vec<BoundRole>,
    /// The question is about its events. Others are only there for what their roles say about threads: see
    /// [`EventRole::tells_of_threads`].
    pub is_selected: bool,
    /// Where the fields of [`CONTEXT`] are.
    pub context: [FieldSlot; CONTEXT.len()],
    /// The path of the field that names the thread of an event, if there is one.
    pub tid_path: Option<NamePath>,
    /// Where the fields are that the analysis asked for by path, in its order.
    pub extra: Vec<FieldSlot>,
}

/// A role, and where the fields are that were asked for.
#[derive(Clone, Debug)]
pub struct BoundRole {
    /// The role.
    pub role: EventRole,
    /// For each field of the role.
    pub slots: Vec<FieldSlot>,
}

/// Where a field's value is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FieldSlot {
    /// It was not requested, or there is no such field.
    #[default]
    Absent,
    /// In a column of the class.
    Column {
        /// The column.
        column: u16,
        /// The kind of its cells.
        kind: ColumnKind,
        /// Events may be without it.
        is_optional: bool,
        /// The base in which people read an integer: 2, 8, 10 or 16.
        base: u8,
    },
    /// The same for all events of a packet.
    Packet(usize),
    /// The same for all events.
    Integer(i64),
    /// The same for all events.
    Text(Arc<[u8]>),
}

impl FieldSlot {
    /// The base in which people read an integer from there.
    #[must_use]
    pub fn base(&self) -> u8 {
        if let Self::Column { base, .. } = self { *base } else { 10 }
    }
}

/// The kinds of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Integers, extended to 64 bits.
    Integer,
    /// The bits of doubles.
    Real,
    /// Spans of bytes.
    Text,
}

/// One value, of any kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventValue<'a> {
    /// An integer; unsigned ones above the highest signed one wrap.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// The bytes of a text.
    Text(&'a [u8]),
}

/// A value that all events of a packet have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketValue {
    /// An integer.
    Integer(i64),
    /// The bytes of a text.
    Text(Vec<u8>),
}

/// Chosen fields of the events of one batch. Its memory is reused.
#[derive(Debug, Default)]
pub struct EventRows {
    /// For each event its time in nanoseconds, never less than the one before; `i64::MIN` where nothing has a time.
    pub times: Vec<i64>,
    /// For each event the number of its class among all that are bound, and its row in the class' cells.
    pub places: Vec<(u32, u32)>,
    /// For each class that is bound.
    pub cells: Vec<Cells>,
    /// Values of the packet.
    pub packet: Arc<[Option<PacketValue>]>,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisEvent<'a> {
    /// When, in nanoseconds since the clock's origin; `i64::MIN` where nothing has a time.
    pub time: i64,
    /// Its class.
    pub class: &'a BoundClass,
    /// The number of the class among all that are bound, for an analysis' own facts about each.
    pub number: usize,
    cells: &'a Cells,
    row: usize,
    packet: &'a [Option<PacketValue>],
    bytes: &'a [u8],
}

impl EventRows {
    /// The event of a row; `bytes`: of the window that the rows were read from.
    #[must_use]
    #[inline]
    pub fn event<'a>(&'a self, row: usize, classes: &'a [BoundClass], bytes: &'a [u8]) -> AnalysisEvent<'a> {
        let (number, place) = self.places[row];
        let number = number as usize;
        AnalysisEvent {
            time: self.times[row],
            class: &classes[number],
            number,
            cells: &self.cells[number],
            row: place as usize,
            packet: &self.packet,
            bytes,
        }
    }
}

impl<'a> AnalysisEvent<'a> {
    /// The meanings of the event; an event may mean several things.
    #[inline]
    pub fn roles(&self) -> impl Iterator<Item = RoleEvent<'_>> {
        self.class.roles.iter().map(move |bound| RoleEvent { role: bound.role, event: self, slots: &bound.slots })
    }

    /// An integer, if the event has one there.
    #[must_use]
    #[inline(always)]
    pub fn integer(&self, slot: &FieldSlot) -> Option<i64> {
        // Almost all slots are like that, and this is asked of every event several times.
        if let FieldSlot::Column { column, kind: ColumnKind::Integer, is_optional: false, .. } = slot {
            return Some(self.cells.word(*column, self.row).cast_signed());
        }
        self.integer_elsewhere(slot)
    }

    #[inline(never)]
    fn integer_elsewhere(&self, slot: &FieldSlot) -> Option<i64> {
        match slot {
            FieldSlot::Column { column, kind: ColumnKind::Integer, is_optional, .. } => {
                self.has(*column, *is_optional).then(|| self.cells.word(*column, self.row).cast_signed())
            }
            FieldSlot::Integer(value) => Some(*value),
            FieldSlot::Packet(place) => match self.packet.get(*place)? {
                Some(PacketValue::Integer(value)) => Some(*value),
                _ => None,
            },
            FieldSlot::Absent | FieldSlot::Text(_) | FieldSlot::Column { .. } => None,
        }
    }

    /// The bytes of a text, if the event has one there.
    #[must_use]
    #[inline]
    pub fn text(&self, slot: &'a FieldSlot) -> Option<&'a [u8]> {
        match slot {
            FieldSlot::Column { column, kind: ColumnKind::Text, is_optional, .. } => {
                self.has(*column, *is_optional).then_some(())?;
                let (first, length) = self.cells.span(*column, self.row);
                self.bytes.get(first..first + length)
            }
            FieldSlot::Text(text) => Some(text),
            FieldSlot::Packet(place) => match self.packet.get(*place)? {
                Some(PacketValue::Text(text)) => Some(text),
                _ => None,
            },
            FieldSlot::Absent | FieldSlot::Integer(_) | FieldSlot::Column { .. } => None,
        }
    }

    /// A thread's name; the empty one if the event has none there.
    #[must_use]
    #[inline]
    pub fn comm(&self, slot: &FieldSlot) -> Comm {
        if let FieldSlot::Column { column, kind: ColumnKind::Text, is_optional: false, .. } = slot {
            return Comm::of_span(self.bytes, self.cells.span(*column, self.row));
        }
        self.text(slot).map_or(Comm::default(), Comm::new)
    }

    /// The value that the event has there, of any kind.
    #[must_use]
    pub fn value(&self, slot: &'a FieldSlot) -> Option<EventValue<'a>> {
        if let FieldSlot::Column { column, kind: ColumnKind::Real, is_optional, .. } = slot {
            let real = || EventValue::Real(f64::from_bits(self.cells.value(*column, self.row)));
            return self.has(*column, *is_optional).then(real);
        }
        self.integer(slot).map(EventValue::Integer).or_else(|| self.text(slot).map(EventValue::Text))
    }

    #[inline]
    fn has(&self, column: u16, is_optional: bool) -> bool {
        !is_optional || self.cells.validity(column).is_none_or(|validity| validity[self.row] != 0)
    }

    /// A field of [`CONTEXT`] that is an integer.
    #[must_use]
    #[inline]
    pub fn context(&self, field: FieldIndex) -> Option<i64> {
        self.integer(&self.class.context[field])
    }

    /// A field of [`CONTEXT`] that is an integer and fits into 32 bits.
    #[must_use]
    #[inline]
    pub fn small_context(&self, field: FieldIndex) -> Option<i32> {
        small(self.context(field))
    }

    /// A field of [`CONTEXT`] that is a text.
    #[must_use]
    pub fn context_text(&self, field: FieldIndex) -> Option<&'a [u8]> {
        self.text(&self.class.context[field])
    }

    /// The CPU that recorded it.
    #[must_use]
    #[inline]
    pub fn cpu(&self) -> Option<u32> {
        self.context(CPU).and_then(|cpu| u32::try_from(cpu).ok())
    }
}

fn small(number: Option<i64>) -> Option<i32> {
    number.and_then(|number| i32::try_from(number).ok())
}

/// An event in one of its roles.
#[derive(Clone, Copy, Debug)]
pub struct RoleEvent<'a> {
    /// The role.
    pub role: EventRole,
    /// The event.
    pub event: &'a AnalysisEvent<'a>,
    slots: &'a [FieldSlot],
}

impl<'a> RoleEvent<'a> {
    /// An integer field of the role, if the event has it.
    #[must_use]
    #[inline(always)]
    pub fn integer(&self, field: FieldIndex) -> Option<i64> {
        self.event.integer(&self.slots[field])
    }

    /// An integer field of the role that fits into 32 bits, as numbers of threads do.
    #[must_use]
    #[inline]
    pub fn small(&self, field: FieldIndex) -> Option<i32> {
        small(self.integer(field))
    }

    /// A field of the role that is a thread's name; the empty one if the event has none there.
    #[must_use]
    #[inline]
    pub fn comm(&self, field: FieldIndex) -> Comm {
        self.event.comm(&self.slots[field])
    }

    /// A text field of the role, if the event has it.
    #[must_use]
    #[inline]
    pub fn text(&self, field: FieldIndex) -> Option<&'a [u8]> {
        self.event.text(&self.slots[field])
    }

    /// A field of the role, of any kind.
    #[must_use]
    #[inline]
    pub fn value(&self, field: FieldIndex) -> Option<EventValue<'a>> {
        self.event.value(&self.slots[field])
    }
}
