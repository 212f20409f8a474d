//! One stream file: events go into the open packet; a packet is written when it is full or flushed.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use kymo_format::model::{DataStreamClass, FieldClass, Role, Scope, TraceClass};
use kymo_format::value::Value;
use kymo_wire::{index, magic};

use crate::encode::Encoder;
use crate::error::{WriteError, WriteProblem, file_error};
use crate::head::{FORMS_MAX, HeadValues, build};

/// The parts of an event record that its class has.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventParts<'a> {
    /// For header fields that are neither id nor clock: a structure like the header.
    pub header: Option<&'a Value>,
    /// Common context.
    pub common: Option<&'a Value>,
    /// Specific context.
    pub specific: Option<&'a Value>,
    /// Payload.
    pub payload: Option<&'a Value>,
}

/// Writes one stream file. Dropping it loses the open packet: call [`StreamWriter::flush`].
#[derive(Debug)]
pub struct StreamWriter {
    trace: Arc<TraceClass>,
    class: usize,
    stream_id: Option<u64>,
    packet_bits: u64,
    file: (PathBuf, File),
    index: Option<(PathBuf, File)>,
    offset: u64,
    clock: u64,
    sequence: u64,
    discarded: u64,
    context: Option<Value>,
    header: Option<Value>,
    times: PacketTimes,
    open: Option<OpenPacket>,
}

/// The times that packets give themselves. Without them a packet begins with its first event and
/// ends with its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketTimes {
    /// In cycles.
    pub begin: Option<u64>,
    /// In cycles.
    pub end: Option<u64>,
}

#[derive(Debug)]
struct OpenPacket {
    encoder: Encoder,
    begin: u64,
    end: Option<u64>,
    events: u64,
}

impl StreamWriter {
    pub(crate) fn new(
        trace: Arc<TraceClass>,
        class: usize,
        stream_id: Option<u64>,
        packet_bits: u64,
        file: (PathBuf, File),
        index: Option<(PathBuf, File)>,
    ) -> Self {
        Self {
            trace,
            class,
            stream_id,
            packet_bits,
            file,
            index,
            offset: 0,
            clock: 0,
            sequence: 0,
            discarded: 0,
            context: None,
            header: None,
            times: PacketTimes::default(),
            open: None,
        }
    }

    /// Sets the members of the following packets' contexts that have no role: a structure like the context.
    pub fn packet_context(&mut self, value: &Value) {
        self.context = Some(value.clone());
    }

    /// The same for packet headers.
    pub fn packet_header(&mut self, value: &Value) {
        self.header = Some(value.clone());
    }

    /// Sets the times of the packets that follow.
    pub fn packet_times(&mut self, times: PacketTimes) {
        self.times = times;
    }

    /// Sets the sequence number of the next packet.
    pub fn sequence(&mut self, number: u64) {
        self.sequence = number;
    }

    /// Counts event records that were lost; the open packet's snapshot contains them.
    pub fn discarded(&mut self, count: u64) {
        self.discarded = self.discarded.wrapping_add(count);
    }

    /// Skips `count` sequence numbers after the open packet, which is closed: those packets were lost.
    pub fn lost_packets(&mut self, count: u64) -> Result<(), WriteError> {
        self.flush()?;
        self.sequence = self.sequence.wrapping_add(count);
        Ok(())
    }

    /// Writes one event record of the class with that index. On an error nothing of it is written.
    pub fn event(&mut self, cycles: u64, event_class: usize, event: &EventParts<'_>) -> Result<(), WriteError> {
        if event_class >= self.class().event_classes.len() {
            return Err(WriteProblem::EventClass { index: event_class }.into());
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(cycles)?,
        };
        let mark = open.encoder.mark();
        let written = self.record(&mut open.encoder, cycles, event_class, event);
        let full = open.encoder.position > self.packet_bits && open.events > 0 && self.has_sizes();
        if written.is_err() || full {
            open.encoder.back_to(mark);
        }
        if full && written.is_ok() {
            self.close(open)?;
            return self.event(cycles, event_class, event);
        }
        if written.is_ok() {
            open.events += 1;
            self.clock = open.encoder.clock;
        }
        // A packet that was begun for a refused record is not begun.
        self.open = (open.events > 0).then_some(open);
        written
    }

    /// Closes the open packet, if there is one. Losses without records go into [`StreamWriter::empty_packet`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        match self.open.take() {
            Some(open) => self.close(open),
            None => Ok(()),
        }
    }

    /// Writes a packet without event records, which carries the losses and the time up to `cycles`.
    pub fn empty_packet(&mut self, cycles: u64) -> Result<(), WriteError> {
        self.flush()?;
        let open = self.begin(cycles)?;
        self.close(open)
    }

    fn class(&self) -> &DataStreamClass {
        &self.trace.stream_classes[self.class]
    }

    fn has_sizes(&self) -> bool {
        let context = self.class().packet_context.as_ref();
        let has = |role| context.is_some_and(|class| has_role(class, role));
        has(Role::PacketTotalLength) || has(Role::PacketContentLength)
    }

    /// Begins a packet with a first event, or losses, of that time.
    fn begin(&self, cycles: u64) -> Result<OpenPacket, WriteError> {
        let PacketTimes { begin, end } = self.times;
        let cycles = begin.unwrap_or(cycles);
        if self.offset > 0 && !self.has_sizes() {
            return Err(WriteProblem::SinglePacket.into());
        }
        let mut encoder = Encoder::new(self.clock);
        let mut roles =
            vec![(Role::PacketMagicNumber, u64::from(magic::PACKET)), (Role::DataStreamClassId, self.class().id)];
        roles.extend(self.stream_id.map(|id| (Role::DataStreamId, id)));
        let uuid = self.trace.uuid.map(|uuid| uuid.0);
        let given = self.header.as_ref();
        let header = HeadValues { scope: Scope::PacketHeader, roles: &roles, uuid, clock: None, given };
        write_head(self.trace.packet_header.as_ref(), &header, &mut encoder, |_| true)?;
        let default_clock = self.class().default_clock;
        encoder.default_clock = default_clock;
        let roles = [
            (Role::PacketTotalLength, 0),
            (Role::PacketContentLength, 0),
            (Role::PacketEndDefaultClockTimestamp, 0),
            (Role::DiscardedEventRecordCounterSnapshot, 0),
            (Role::PacketSequenceNumber, self.sequence),
        ];
        let clock = default_clock.map(|index| (index, cycles));
        let given = self.context.as_ref();
        let context = HeadValues { scope: Scope::PacketContext, roles: &roles, uuid: None, clock, given };
        encoder.begin_record();
        let understood = |encoder: &Encoder| !encoder.clock_told || encoder.clock == cycles;
        write_head(self.class().packet_context.as_ref(), &context, &mut encoder, understood)?;
        Ok(OpenPacket { encoder, begin: cycles, end, events: 0 })
    }

    fn record(
        &self,
        encoder: &mut Encoder,
        cycles: u64,
        index: usize,
        event: &EventParts<'_>,
    ) -> Result<(), WriteError> {
        let start = encoder.position;
        let class = self.class();
        let event_class = &class.event_classes[index];
        if let Some(header) = &class.event_header {
            encoder.align(header.alignment());
        }
        let roles = [(Role::EventRecordClassId, event_class.id)];
        let clock = class.default_clock.map(|index| (index, cycles));
        let given = event.header;
        let header = HeadValues { scope: Scope::EventHeader, roles: &roles, uuid: None, clock, given };
        encoder.begin_record();
        let understood = |encoder: &Encoder| {
            let id = match encoder.event_id {
                Some(id) => id == event_class.id,
                None => index == 0,
            };
            id && (!encoder.clock_told || encoder.clock == cycles)
        };
        write_head(class.event_header.as_ref(), &header, encoder, understood)?;
        part(class.event_common_context.as_ref(), Scope::EventCommonContext, event.common, encoder)?;
        part(event_class.specific_context.as_ref(), Scope::EventSpecificContext, event.specific, encoder)?;
        part(event_class.payload.as_ref(), Scope::EventPayload, event.payload, encoder)?;
        if encoder.position == start {
            return Err(WriteProblem::EmptyEvent.into());
        }
        Ok(())
    }

    fn close(&mut self, mut open: OpenPacket) -> Result<(), WriteError> {
        let content = open.encoder.position;
        let total = content.next_multiple_of(8);
        let last = self.clock.max(open.begin);
        let end = open.end.unwrap_or(last);
        let patches = std::mem::take(&mut open.encoder.patches);
        let has = |role| patches.iter().any(|patch| patch.role == role);
        let both = has(Role::PacketTotalLength) && has(Role::PacketContentLength);
        if total != content && !both {
            return Err(WriteProblem::PartByte.into());
        }
        for patch in &patches {
            let value = match patch.role {
                Role::PacketTotalLength => total,
                Role::PacketContentLength => content,
                Role::PacketEndDefaultClockTimestamp => end,
                _ => self.discarded,
            };
            open.encoder.patch(*patch, value)?;
        }
        let bytes = &open.encoder.bytes;
        append(&mut self.file, bytes)?;
        let entry = index::IndexEntry {
            offset: self.offset,
            packet_bits: total,
            content_bits: content,
            begin_cycles: open.begin,
            end_cycles: end,
            discarded: self.discarded,
            stream_class_id: self.trace.stream_classes[self.class].id,
            stream_id: self.stream_id.unwrap_or(0),
            sequence: self.sequence,
        };
        if let Some(index) = &mut self.index {
            append(index, &entry.to_bytes())?;
        }
        self.offset += bytes.len() as u64;
        // Readers do not move the clock to the packet's end.
        self.clock = last;
        self.sequence = self.sequence.wrapping_add(1);
        Ok(())
    }
}

/// Whether a field with that role is somewhere in the class.
pub(crate) fn has_role(class: &FieldClass, role: Role) -> bool {
    use kymo_format::model::FieldKind;
    match &class.kind {
        FieldKind::Structure(structure) => structure.members.iter().any(|member| has_role(&member.class, role)),
        _ => class.roles().contains(&role),
    }
}

/// Writes the first form of a header that `understood` accepts.
fn write_head(
    class: Option<&FieldClass>,
    known: &HeadValues<'_>,
    encoder: &mut Encoder,
    understood: impl Fn(&Encoder) -> bool,
) -> Result<(), WriteError> {
    let Some(class) = class else {
        return if understood(encoder) { Ok(()) } else { Err(no_form(known)) };
    };
    let mark = encoder.mark();
    let patches = encoder.patches.len();
    let mut refused = None;
    for form in 0..FORMS_MAX {
        let Some(value) = build(class, known, form) else {
            break;
        };
        let written = value.and_then(|value| encoder.scope(class, known.scope, &value));
        match written {
            Ok(()) if understood(encoder) => return Ok(()),
            Ok(()) => {}
            Err(error) => refused = Some(error),
        }
        encoder.back_to(mark);
        encoder.patches.truncate(patches);
        encoder.begin_record();
    }
    Err(refused.unwrap_or_else(|| no_form(known)))
}

fn no_form(known: &HeadValues<'_>) -> WriteError {
    let id = known.roles.first().map_or(0, |(_, id)| *id);
    let cycles = known.clock.map_or(0, |(_, cycles)| cycles);
    WriteProblem::Header { id, cycles }.into()
}

fn part(
    class: Option<&FieldClass>,
    scope: Scope,
    value: Option<&Value>,
    encoder: &mut Encoder,
) -> Result<(), WriteError> {
    match (class, value) {
        (Some(class), Some(value)) => encoder.scope(class, scope, value),
        (None, None) => Ok(()),
        (Some(_), None) => Err(WriteProblem::Missing.into()),
        (None, Some(value)) => Err(WriteProblem::Kind { found: value.kind_name(), expected: "nothing" }.into()),
    }
}

fn append(file: &mut (PathBuf, File), bytes: &[u8]) -> Result<(), WriteError> {
    let (path, file) = file;
    file.write_all(bytes).map_err(|error| file_error(path, error))
}
