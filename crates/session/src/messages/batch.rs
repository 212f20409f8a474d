//! Messages that were read together, in the order of time.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use kymo_scan::{BatchContent, BatchEvents, Packet, RoundPart, StreamBatch};

use super::columns::{ClassFields, PacketValues, RecordGroup};
use super::facts::{MessageStream, MessagesFacts};
use super::value::FieldRef;

/// Messages in the order of time. Shared by threads; it keeps the bytes that its events lie in.
#[derive(Debug)]
pub struct MessageBatch {
    facts: Arc<MessagesFacts>,
    rows: Vec<MessageRow>,
    parts: Vec<PartOfBatch>,
    marks: Vec<MarkMessage>,
}

/// A message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRow {
    /// An event.
    Event(EventAt),
    /// Something else: see [`MessageBatch::mark`].
    Mark(u32),
}

/// Where an event is in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventAt {
    pub(super) part: u32,
    pub(super) row: u32,
}

/// The kinds of marks beside events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A data stream begins.
    StreamBegin,
    /// A data stream ends.
    StreamEnd,
    /// A packet begins.
    PacketBegin,
    /// A packet ends.
    PacketEnd,
    /// Event records were discarded.
    DiscardedEvents,
    /// Packets are missing.
    DiscardedPackets,
}

/// A message that is not an event.
#[derive(Clone, Debug)]
pub struct MarkMessage {
    /// The kind of the mark.
    pub kind: MarkKind,
    /// Rank of the data stream.
    pub stream: usize,
    /// When, or since when.
    pub cycles: Option<u64>,
    /// Until when, if it lasts.
    pub end_cycles: Option<u64>,
    /// How many were lost, if known.
    pub count: Option<u64>,
    /// The packet, if it is about one.
    pub packet: Option<Arc<Packet>>,
}

/// Events of one stream and packet.
#[derive(Debug)]
pub(super) struct PartOfBatch {
    stream: usize,
    batch: Arc<StreamBatch>,
    rows: Range<usize>,
    groups: Vec<RecordGroup>,
    /// For each row of the part, which group it is of and the how manieth there.
    ranks: Vec<(u32, u32)>,
    packet_values: OnceLock<Option<PacketValues>>,
}

impl PartOfBatch {
    /// Sorts the events of a part by class; one that is a mark has none.
    pub(super) fn new(part: &RoundPart<StreamBatch>, stream: &MessageStream, sorter: &mut Sorter) -> Self {
        let mut of_batch = Self {
            stream: part.stream,
            batch: Arc::clone(&part.batch),
            rows: part.rows.clone(),
            groups: Vec::new(),
            ranks: Vec::new(),
            packet_values: OnceLock::new(),
        };
        if let BatchContent::Events(events) = &part.batch.content {
            let records = &events.records;
            let (classes, positions) = (&records.classes[part.rows.clone()], &records.positions[part.rows.clone()]);
            (of_batch.groups, of_batch.ranks) = sorter.sort(classes, positions, stream);
        }
        of_batch
    }

    fn events(&self) -> &BatchEvents {
        match &self.batch.content {
            BatchContent::Events(events) => events,
            BatchContent::Mark(_) => unreachable!("only rows of events are events"),
        }
    }

    pub(super) fn read_ahead(&self, stream: &MessageStream) {
        let BatchContent::Events(events) = &self.batch.content else { return };
        let place = stream.columns_at(events);
        self.groups.iter().for_each(|group| group.read_ahead(&place));
    }
}

/// Puts records of one class together.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    /// For each class, its group and one more; 0 between calls.
    groups: Vec<u32>,
    present: Vec<u32>,
    positions: Vec<Vec<u64>>,
}

impl Sorter {
    fn sort(
        &mut self,
        classes: &[u32],
        positions: &[u64],
        stream: &MessageStream,
    ) -> (Vec<RecordGroup>, Vec<(u32, u32)>) {
        let mut ranks = Vec::with_capacity(classes.len());
        for (&class, &position) in classes.iter().zip(positions) {
            let index = class as usize;
            if index >= self.groups.len() {
                self.groups.resize(index + 1, 0);
            }
            if self.groups[index] == 0 {
                self.present.push(class);
                self.groups[index] = self.present.len() as u32;
                if self.positions.len() < self.present.len() {
                    self.positions.push(Vec::new());
                }
            }
            let group = self.groups[index] - 1;
            let of_group = &mut self.positions[group as usize];
            ranks.push((group, of_group.len() as u32));
            of_group.push(position);
        }
        let mut groups = Vec::with_capacity(self.present.len());
        for (class, positions) in self.present.drain(..).zip(&mut self.positions) {
            self.groups[class as usize] = 0;
            groups.push(RecordGroup::new(Arc::clone(stream.columns.class(class as usize)), positions));
            positions.clear();
        }
        (groups, ranks)
    }
}

impl MessageBatch {
    pub(super) fn new(
        facts: Arc<MessagesFacts>,
        rows: Vec<MessageRow>,
        parts: Vec<PartOfBatch>,
        marks: Vec<MarkMessage>,
    ) -> Self {
        Self { facts, rows, parts, marks }
    }

    /// Its messages in the order of time.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> &[MessageRow] {
        &self.rows
    }

    /// The traces and streams that its messages are of.
    #[must_use]
    pub fn facts(&self) -> &Arc<MessagesFacts> {
        &self.facts
    }

    /// A message that is not an event.
    #[must_use]
    pub fn mark(&self, mark: u32) -> &MarkMessage {
        &self.marks[mark as usize]
    }

    /// Rank of an event's data stream: index into [`MessagesFacts::streams`].
    #[must_use]
    #[inline]
    pub fn stream(&self, at: EventAt) -> usize {
        self.parts[at.part as usize].stream
    }

    /// Index of an event's class in its data stream class.
    #[must_use]
    #[inline]
    pub fn class(&self, at: EventAt) -> usize {
        self.parts[at.part as usize].events().records.classes[at.row as usize] as usize
    }

    /// When it was, in cycles of its clock; without a clock it means nothing.
    #[must_use]
    #[inline]
    pub fn cycles(&self, at: EventAt) -> u64 {
        self.parts[at.part as usize].events().records.cycles[at.row as usize]
    }

    /// When it was, in nanoseconds since the clock's origin; `None` without a clock, or if they do not fit.
    #[must_use]
    #[inline]
    pub fn nanos(&self, at: EventAt) -> Option<i64> {
        let part = &self.parts[at.part as usize];
        self.facts.streams[part.stream].clock?.nanos(part.events().records.cycles[at.row as usize])
    }

    /// The packet that it lies in.
    #[must_use]
    pub fn packet(&self, at: EventAt) -> &Arc<Packet> {
        &self.parts[at.part as usize].events().packet
    }

    /// The fields of its class.
    #[must_use]
    #[inline]
    pub fn class_fields(&self, at: EventAt) -> &Arc<ClassFields> {
        &self.group(at).0.class
    }

    #[inline]
    fn group(&self, at: EventAt) -> (&RecordGroup, usize) {
        let part = &self.parts[at.part as usize];
        let (group, rank) = part.ranks[at.row as usize - part.rows.start];
        (&part.groups[group as usize], rank as usize)
    }

    /// A field of an event, by its index in [`ClassFields::fields`].
    #[must_use]
    #[inline]
    pub fn field(&self, at: EventAt, field: usize) -> Option<FieldRef<'_>> {
        let part = &self.parts[at.part as usize];
        let (group, row) = self.group(at);
        let events = part.events();
        let (cells, shape) = group.cells(|| self.facts.streams[part.stream].columns_at(events), field)?;
        Some(FieldRef { shape, cells, bytes: events.window().bytes(), row })
    }

    /// A field of its packet's context, by its index in [`super::PacketFields::fields`].
    #[must_use]
    pub fn packet_field(&self, at: EventAt, field: usize) -> Option<FieldRef<'_>> {
        let part = &self.parts[at.part as usize];
        let fields = &self.facts.streams[part.stream].packet_fields;
        let values = part.packet_values.get_or_init(|| fields.read(&part.events().packet));
        Some(fields.field(values.as_ref()?, field))
    }
}
