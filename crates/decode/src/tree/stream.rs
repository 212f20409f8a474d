//! The packets of one stream file as trees, one after the other, up to the first fault.
//!
//! ```text
//! packet: header ─> stream class ─> context ─> sizes ─┬─> event: header ─> class ─> contexts, payload
//!                                                     └─> ... until the content ends
//! ```

use kymo_format::model::{DataStreamClass, FieldClass, Role, Scope, TraceClass};
use kymo_format::value::Value;
use kymo_wire::magic;

use super::{FieldError, FieldErrorKind, TreeReader, read};

/// One packet and the event records in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketRecords {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Index into [`TraceClass::stream_classes`].
    pub stream_class: usize,
    /// Its header.
    pub header: Option<Value>,
    /// Its context.
    pub context: Option<Value>,
    /// The data stream, where packets name it.
    pub stream_id: Option<u64>,
    /// Length in bits.
    pub total_bits: u64,
    /// Length of the content in bits.
    pub content_bits: u64,
    /// The clock behind the context, if that has a timestamp.
    pub begin_cycles: Option<u64>,
    /// The end timestamp as written.
    pub end_cycles: Option<u64>,
    /// Snapshot of the counter of discarded event records.
    pub discarded: Option<u64>,
    /// Sequence number.
    pub sequence: Option<u64>,
    /// Its event records before the fault, if there is one.
    pub events: Vec<EventRecord>,
}

/// One event record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// Where it begins, in bits from the beginning of the packet.
    pub at: u64,
    /// The clock behind its header.
    pub cycles: u64,
    /// Index into the data stream class' event record classes.
    pub class: usize,
    /// Its header.
    pub header: Option<Value>,
    /// Common context.
    pub common: Option<Value>,
    /// Specific context.
    pub specific: Option<Value>,
    /// Payload.
    pub payload: Option<Value>,
}

/// A fault that stops the reading of a stream file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// A field cannot be read.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Not a CTF packet.
    #[error("at bit 0: the packet begins with {found:#x}; the magic number is 0xc1fc1fc1")]
    Magic {
        /// The value in the file.
        found: u64,
    },
    /// No data stream class has the id.
    #[error("no data stream class has the id {id}")]
    StreamClass {
        /// The id.
        id: u64,
    },
    /// No event record class has the id.
    #[error("at bit {at}: no event record class has the id {id}")]
    EventClass {
        /// Where the record begins.
        at: u64,
        /// The id.
        id: u64,
    },
    /// The record would repeat forever.
    #[error("at bit {at}: the event record takes no bits")]
    EmptyEvent {
        /// Where the record begins.
        at: u64,
    },
    /// Sizes contradict each other or the bits read.
    #[error("the packet has {total} bits, {content} of them content; {head} are its head and {left} are there")]
    Sizes {
        /// Bits of the packet.
        total: u64,
        /// Bits of content.
        content: u64,
        /// Bits of header and context.
        head: u64,
        /// Bits from the packet's beginning to the end of the file.
        left: u64,
    },
}

/// Reads a whole stream file: its packets, and the fault that stopped the reading before the end.
#[must_use]
pub fn read_file(trace: &TraceClass, bytes: &[u8]) -> (Vec<PacketRecords>, Option<FileFault>) {
    let mut packets = Vec::new();
    let mut clock = 0;
    let mut offset = 0;
    while offset < bytes.len() {
        let mut packet = PacketRecords { offset: offset as u64, ..PacketRecords::default() };
        let result = read_packet(trace, &bytes[offset..], &mut clock, &mut packet, TruncationRule::Refused);
        offset += (packet.total_bits / 8) as usize;
        packets.push(packet);
        if let Err(fault) = result {
            return (packets, Some(fault));
        }
    }
    (packets, None)
}

/// Reads the packet that `bytes` begin with, as far as it goes: of one that is longer than `bytes` there are the events
/// that are whole. `clock`: in cycles, before it and after.
#[must_use]
pub fn read_packet_at(trace: &TraceClass, bytes: &[u8], clock: &mut u64) -> (PacketRecords, Option<FileFault>) {
    let mut packet = PacketRecords::default();
    let fault = read_packet(trace, bytes, clock, &mut packet, TruncationRule::Read).err();
    (packet, fault)
}

/// The treatment of a packet that is longer than its available part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TruncationRule {
    Refused,
    Read,
}

fn read_packet(
    trace: &TraceClass,
    bytes: &[u8],
    clock: &mut u64,
    packet: &mut PacketRecords,
    short: TruncationRule,
) -> Result<(), FileFault> {
    let mut reader = TreeReader::new(bytes);
    packet.header = scope(trace.packet_header.as_ref(), Scope::PacketHeader, &mut reader)?;
    let found = reader.role(Role::PacketMagicNumber);
    if let Some(found) = found.filter(|found| *found != u64::from(magic::PACKET)) {
        return Err(FileFault::Magic { found });
    }
    packet.stream_id = reader.role(Role::DataStreamId);
    let id = reader.role(Role::DataStreamClassId);
    packet.stream_class = stream_class(trace, id)?;
    let class = &trace.stream_classes[packet.stream_class];
    reader.forget_roles();
    reader.set_clock(class.default_clock, *clock);
    packet.context = scope(class.packet_context.as_ref(), Scope::PacketContext, &mut reader)?;
    note_context(packet, &reader);
    let missing = set_sizes(packet, &mut reader, 8 * bytes.len() as u64, short)?;
    while reader.position() < reader.end() {
        let event = read_event(class, &mut reader)?;
        *clock = event.cycles;
        packet.events.push(event);
    }
    *clock = reader.clock();
    missing.map_or(Ok(()), Err)
}

fn scope(class: Option<&FieldClass>, scope: Scope, reader: &mut TreeReader<'_>) -> Result<Option<Value>, FieldError> {
    class.map(|class| read(class, scope, reader)).transpose()
}

fn stream_class(trace: &TraceClass, id: Option<u64>) -> Result<usize, FileFault> {
    let mut classes = trace.stream_classes.iter();
    let found = match id {
        Some(id) => classes.position(|class| class.id == id),
        None => classes.next().map(|_| 0),
    };
    found.ok_or(FileFault::StreamClass { id: id.unwrap_or(0) })
}

fn note_context(packet: &mut PacketRecords, reader: &TreeReader<'_>) {
    let begins = reader.role(Role::DefaultClockTimestamp).is_some();
    packet.begin_cycles = begins.then(|| reader.clock());
    packet.end_cycles = reader.role(Role::PacketEndDefaultClockTimestamp);
    packet.discarded = reader.role(Role::DiscardedEventRecordCounterSnapshot);
    packet.sequence = reader.role(Role::PacketSequenceNumber);
}

/// Without sizes the packet is all that is left of the file. Returns the fault to report after the
/// available events are read.
fn set_sizes(
    packet: &mut PacketRecords,
    reader: &mut TreeReader<'_>,
    left: u64,
    short: TruncationRule,
) -> Result<Option<FileFault>, FileFault> {
    let total = reader.role(Role::PacketTotalLength);
    let content = reader.role(Role::PacketContentLength);
    let total_bits = total.or(content).unwrap_or(left);
    let content_bits = content.unwrap_or(total_bits);
    let head = reader.position();
    let whole = total_bits.is_multiple_of(8);
    let is_short = total_bits > left;
    let fault = FileFault::Sizes { total: total_bits, content: content_bits, head, left };
    if !whole
        || content_bits > total_bits
        || content_bits < head
        || is_short && short == TruncationRule::Refused
        || total_bits == 0
    {
        return Err(fault);
    }
    packet.total_bits = total_bits.min(left);
    packet.content_bits = content_bits.min(left);
    reader.set_end(packet.content_bits);
    Ok(is_short.then_some(fault))
}

fn read_event(class: &DataStreamClass, reader: &mut TreeReader<'_>) -> Result<EventRecord, FileFault> {
    let start = reader.position();
    if let Some(header) = &class.event_header {
        reader.align(header.alignment())?;
    }
    let at = reader.position();
    reader.forget_roles();
    let header = scope(class.event_header.as_ref(), Scope::EventHeader, reader)?;
    let id = reader.role(Role::EventRecordClassId);
    let cycles = reader.clock();
    let mut classes = class.event_classes.iter();
    let index = match id {
        Some(id) => classes.position(|class| class.id == id),
        // A header without an id: the event is of the only class there is, or of class 0.
        None if class.event_classes.len() == 1 => Some(0),
        None => classes.position(|class| class.id == 0),
    };
    let index = index.ok_or(FileFault::EventClass { at, id: id.unwrap_or(0) })?;
    let event_class = &class.event_classes[index];
    let common = class.event_common_context.as_ref();
    let specific = event_class.specific_context.as_ref();
    let event = EventRecord {
        at,
        cycles,
        class: index,
        header,
        common: scope(common, Scope::EventCommonContext, reader)?,
        specific: scope(specific, Scope::EventSpecificContext, reader)?,
        payload: scope(event_class.payload.as_ref(), Scope::EventPayload, reader)?,
    };
    if reader.position() == start {
        return Err(FileFault::EmptyEvent { at });
    }
    Ok(event)
}

impl FileFault {
    /// The bit of the packet at which reading stopped, if the fault has one.
    #[must_use]
    pub fn at(&self) -> Option<u64> {
        match self {
            Self::Field(FieldError { at, .. }) | Self::EventClass { at, .. } | Self::EmptyEvent { at } => Some(*at),
            Self::Magic { .. } => Some(0),
            Self::StreamClass { .. } | Self::Sizes { .. } => None,
        }
    }

    /// The error in the field, if the fault is one of a field.
    #[must_use]
    pub fn field(&self) -> Option<&FieldErrorKind> {
        match self {
            Self::Field(error) => Some(&error.kind),
            _ => None,
        }
    }
}
