//! A folder that is one trace: its streams and its metadata, both grown as events need them.
//!
//! ```text
//! lane of a program ── contexts ──> stream class ──> lane_N, in use by one lane at a time
//! event class ── the first event ──> id, metadata of it in that stream class
//! ```
//!
//! A file passes from lane to lane as long as time does not step back in it, so a trace has as many
//! files as lanes at a time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_lane::{ClockSource, WriterThread};
use kymo_schema::definition::EventClass;
use kymo_schema::field::{DefinedField, FieldType, IntegerType, ScalarType};
use kymo_units::Uuid;
use kymo_writer::{HEAD_BYTES, RawClock, RawEvent, RawOptions, RawPacket, RawRest, RawStream, RawTrace, WriteError};

use crate::clock::ClockDescription;
use crate::program::namespaces::{Inodes, NamespaceKinds};
use crate::trace::file_error;
use crate::trace::journal::{Journal, JournalHead, JournalLine};

/// Files of a trace that are open at the same time. The recorder also needs a descriptor for each
/// program, and the limit of both is that of the process.
const OPEN_MAX: usize = 128;
/// Bytes of the fields that identify the thread of a packet, which follow the header that all
/// traces have.
pub(crate) const FURTHER_BYTES: usize = 25;
/// Bytes of a packet before its events, in traces without namespaces.
pub(crate) const BEFORE_EVENTS: usize = HEAD_BYTES + FURTHER_BYTES;
/// Bytes after the events, outside of the packet's content: from here a later recorder continues.
/// Readers skip them as padding.
pub(crate) const BEHIND_EVENTS: usize = 34;

/// The thread that recorded a packet, and the lane's position after the packet, from which a later
/// recorder continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketOrigin {
    pub(crate) pid: u32,
    pub(crate) thread: WriterThread,
    /// Namespaces of the thread; a trace has those that the session has asked for.
    pub(crate) namespaces: Inodes,
    /// The program, its lane, and the fields of the lane's [`Position`](crate::Position).
    pub(crate) program: u64,
    pub(crate) lane: u16,
    pub(crate) sequence: u64,
    pub(crate) bytes: u32,
    pub(crate) discarded: u64,
}

impl PacketOrigin {
    pub(crate) fn fields(namespaces: NamespaceKinds) -> Vec<DefinedField> {
        let integer = |bytes| FieldType::Scalar(ScalarType::Integer(IntegerType::unsigned(bytes)));
        let fields = [
            ("vpid", integer(4)),
            ("vtid", integer(4)),
            ("handler_level", integer(1)),
            ("procname", FieldType::FixedText(16)),
        ];
        let namespaces = namespaces.names().map(|name| (name, integer(4)));
        let all = fields.into_iter().chain(namespaces);
        all.map(|(name, kind)| DefinedField { name: name.to_owned(), kind }).collect()
    }

    /// Writes the bytes before the events.
    fn before(self, namespaces: NamespaceKinds, into: &mut [u8]) {
        let WriterThread { tid, level, name } = self.thread;
        let (before, inodes) = into.split_at_mut(FURTHER_BYTES);
        let told: [u8; FURTHER_BYTES] = joined(&[&self.pid.to_le_bytes(), &tid.to_le_bytes(), &[level], &name]);
        before.copy_from_slice(&told);
        let wanted = namespaces.of(&self.namespaces);
        inodes.chunks_exact_mut(4).zip(wanted).for_each(|(to, inode)| to.copy_from_slice(&inode.to_le_bytes()));
    }

    /// The bytes after the events, of which there are so many.
    fn behind(self, events: u32) -> [u8; BEHIND_EVENTS] {
        joined(&[
            &self.program.to_le_bytes(),
            &self.lane.to_le_bytes(),
            &self.sequence.to_le_bytes(),
            &self.bytes.to_le_bytes(),
            &self.discarded.to_le_bytes(),
            &events.to_le_bytes(),
        ])
    }

    /// Reads both parts: the origin, and the number of events.
    pub(crate) fn of(before: &[u8; FURTHER_BYTES], behind: &[u8; BEHIND_EVENTS]) -> (Self, u32) {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        let name = std::array::from_fn(|byte| before[9 + byte]);
        let thread = WriterThread { tid: number(&before[4..8]) as u32, level: before[8], name };
        let origin = Self {
            pid: number(&before[..4]) as u32,
            thread,
            namespaces: Inodes::default(),
            program: number(&behind[..8]),
            lane: number(&behind[8..10]) as u16,
            sequence: number(&behind[10..18]),
            bytes: number(&behind[18..22]) as u32,
            discarded: number(&behind[22..30]),
        };
        (origin, number(&behind[30..]) as u32)
    }
}

fn joined<const BYTES: usize>(parts: &[&[u8]]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let mut rest = &mut bytes[..];
    for part in parts {
        let (place, behind) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = behind;
    }
    bytes
}

/// Bytes of a packet before its events.
pub(crate) fn before_events(namespaces: NamespaceKinds) -> usize {
    BEFORE_EVENTS + 4 * namespaces.names().count()
}

/// A file, and whether a lane uses it.
#[derive(Debug)]
pub(crate) struct ChunkStream {
    raw: RawStream,
    class: u32,
    is_used: bool,
    /// Events in its file, as far as this recorder has written them.
    events: u64,
    /// Discarded events, and how many of them packets count.
    discarded: u64,
    told: u64,
    /// Discarded events that could not be written: only this count has them.
    unwritten: u64,
    /// Packets that are missing before the next one.
    missing: u64,
    origin: PacketOrigin,
}

/// State of a stream's file that another recorder has left.
#[derive(Debug, Default)]
pub(crate) struct LeftoverStream {
    pub(crate) rest: RawRest,
    pub(crate) discarded: u64,
    pub(crate) packets: u64,
}

/// Number of a stream in a chunk.
pub(crate) type StreamNumber = usize;

/// Times, events and origin of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketSpan {
    /// Cycles of the trace.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) events: u32,
    pub(crate) origin: PacketOrigin,
}

/// A folder that is one trace.
#[derive(Debug)]
pub(crate) struct TraceChunk {
    trace: RawTrace,
    namespaces: NamespaceKinds,
    journal: Journal,
    classes: HashMap<Vec<DefinedField>, u32>,
    ids: HashMap<Arc<EventClass>, u16>,
    /// Event classes in the metadata, with the stream class.
    said: HashSet<(u32, u16)>,
    streams: Vec<ChunkStream>,
    open: usize,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl TraceChunk {
    pub(crate) fn create(path: &Path, beginning: &JournalHead) -> Result<Self, WriteError> {
        let trace = RawTrace::create(path, raw_options(beginning))?;
        let journal = Journal::create(path, beginning).map_err(|error| file_error(path, error))?;
        Ok(Self::of(trace, journal, beginning.namespaces))
    }

    /// Continues a chunk whose recorder was killed, with the lines of its journal and the state of
    /// its files, by number.
    pub(crate) fn go_on(
        path: &Path,
        (beginning, lines, journal): (&JournalHead, Vec<JournalLine>, Journal),
        left: BTreeMap<u32, LeftoverStream>,
    ) -> Result<Self, WriteError> {
        let mut chunk = Self::of(RawTrace::go_on(path, raw_options(beginning))?, journal, beginning.namespaces);
        chunk.say_again(lines)?;
        // The old metadata may end in the middle of a class.
        chunk.trace.put()?;
        chunk.bytes = chunk.trace.metadata_bytes();
        if !left.contains_key(&0) {
            let raw = chunk.trace.stream(&stream_name(0), 0, 0);
            chunk.streams.push(ChunkStream::new(raw, 0));
        }
        for (number, left) in left {
            while chunk.streams.len() < number as usize {
                // No packet could be written to this stream.
                // The list needs this entry, because streams are found by number. No class has the
                // number `u32::MAX`, so no lane gets it.
                let raw = chunk.trace.stream("", 0, 0);
                chunk.streams.push(ChunkStream::new(raw, u32::MAX));
            }
            chunk.bytes += left.rest.offset;
            chunk.packets += left.packets;
            let class = left.rest.stream_class;
            let raw = chunk.trace.go_on_with(&stream_name(number as usize), left.rest)?;
            let (is_used, discarded, told) = (number == 0, left.discarded, left.discarded);
            chunk.streams.push(ChunkStream { is_used, discarded, told, ..ChunkStream::new(raw, class) });
        }
        Ok(chunk)
    }

    /// Metadata of a trace from its journal, and the length of the part before the first class.
    pub(crate) fn metadata(
        path: &Path,
        beginning: &JournalHead,
        lines: Vec<JournalLine>,
    ) -> Result<(String, usize), WriteError> {
        let journal = Journal::nowhere();
        let mut chunk = Self::of(RawTrace::go_on(path, raw_options(beginning))?, journal, beginning.namespaces);
        chunk.say_again(lines)?;
        Ok(chunk.trace.into_metadata())
    }

    /// Of lines for one id the last one holds: a class that could not be written to the metadata
    /// has no id.
    fn say_again(&mut self, lines: Vec<JournalLine>) -> Result<(), WriteError> {
        let (mut streams, mut events) = (HashMap::new(), HashMap::new());
        for line in &lines {
            match line {
                JournalLine::Stream { id, contexts } => _ = streams.insert(*id, contexts.clone()),
                JournalLine::Event { id, class, .. } => _ = events.insert(*id, Arc::new(class.clone())),
            }
        }
        for line in lines {
            match line {
                JournalLine::Stream { id, contexts }
                    if streams[&id] == contexts && !self.classes.contains_key(&contexts) =>
                {
                    let class = self.trace.stream_class(&contexts)?;
                    self.classes.insert(contexts, class);
                }
                JournalLine::Event { stream_class, id, class }
                    if *events[&id] == class
                        && (stream_class as usize) < self.classes.len()
                        && self.said.insert((stream_class, id)) =>
                {
                    self.say_event(stream_class, id, &class)?;
                    self.ids.insert(Arc::clone(&events[&id]), id);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn of(trace: RawTrace, journal: Journal, namespaces: NamespaceKinds) -> Self {
        let bytes = trace.metadata_bytes();
        Self {
            trace,
            namespaces,
            journal,
            classes: HashMap::new(),
            ids: HashMap::new(),
            said: HashSet::new(),
            streams: Vec::new(),
            open: 0,
            packets: 0,
            bytes,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.trace.path()
    }

    /// Bytes of a packet before its events.
    pub(crate) fn before_events(&self) -> usize {
        before_events(self.namespaces)
    }

    pub(crate) fn files(&self) -> usize {
        self.streams.len()
    }

    /// The stream class of events that carry these contexts.
    pub(crate) fn class(&mut self, contexts: &[DefinedField]) -> Result<u32, WriteError> {
        if let Some(class) = self.classes.get(contexts) {
            return Ok(*class);
        }
        let before = self.trace.metadata_bytes();
        self.note(&JournalLine::Stream { id: self.classes.len() as u32, contexts: contexts.to_vec() })?;
        let class = self.trace.stream_class(contexts)?;
        self.bytes += self.trace.metadata_bytes() - before;
        self.classes.insert(contexts.to_vec(), class);
        Ok(class)
    }

    /// The id of events of a class in a stream class; `None`: there are no more ids.
    pub(crate) fn event(&mut self, stream_class: u32, class: &Arc<EventClass>) -> Result<Option<u16>, WriteError> {
        let next = u16::try_from(self.ids.len());
        let id = match (self.ids.get(class), next) {
            (Some(id), _) => *id,
            (None, Ok(next)) => next,
            // The caller then begins another trace.
            (None, Err(_)) => return Ok(None),
        };
        if !self.said.contains(&(stream_class, id)) {
            let before = self.trace.metadata_bytes();
            self.note(&JournalLine::Event { stream_class, id, class: class.as_ref().clone() })?;
            self.say_event(stream_class, id, class)?;
            self.bytes += self.trace.metadata_bytes() - before;
            self.said.insert((stream_class, id));
            self.ids.insert(Arc::clone(class), id);
        }
        Ok(Some(id))
    }

    fn say_event(&mut self, stream_class: u32, id: u16, class: &EventClass) -> Result<(), WriteError> {
        let (name, uri) = (class.full_name(), class.uri());
        let (level, uri) = (Some(class.level), uri.as_deref());
        self.trace.event_class(stream_class, &RawEvent { id, name: &name, level, uri, fields: &class.fields })
    }

    /// Writes the journal before the metadata, so that no packet has an id without a record of its
    /// class.
    fn note(&mut self, line: &JournalLine) -> Result<(), WriteError> {
        let noted = self.journal.say(line);
        noted.map_err(|error| file_error(self.journal.path(), error))
    }

    /// A stream of a class for a lane with events at or after `begin`: a free one, or a new one.
    pub(crate) fn stream(&mut self, class: u32, begin: u64) -> StreamNumber {
        // Readers require that packets of a file do not step back in time.
        let is_free = |stream: &ChunkStream| !stream.is_used && stream.class == class && stream.raw.end() <= begin;
        if let Some(free) = self.streams.iter().position(is_free) {
            self.streams[free].is_used = true;
            return free;
        }
        let number = self.streams.len();
        let raw = self.trace.stream(&stream_name(number), class, number as u64);
        self.streams.push(ChunkStream::new(raw, class));
        number
    }

    /// When the last packet of a stream ends.
    pub(crate) fn end(&self, stream: StreamNumber) -> u64 {
        self.streams[stream].raw.end()
    }

    /// Counts events that could not be written.
    pub(crate) fn lose_unwritten(&mut self, stream: StreamNumber, events: u64) {
        self.lose(stream, events, 0);
        let stream = &mut self.streams[stream];
        stream.unwritten = stream.unwritten.saturating_add(events);
    }

    /// Events that could not be written, as far as no packet counts them.
    pub(crate) fn untold(&self) -> u64 {
        self.streams.iter().fold(0, |sum, stream| sum.saturating_add(stream.unwritten))
    }

    /// Counts losses of a stream: events, and packets with an unknown number of events.
    pub(crate) fn lose(&mut self, stream: StreamNumber, events: u64, packets: u64) {
        let stream = &mut self.streams[stream];
        stream.discarded = stream.discarded.wrapping_add(events);
        stream.missing = stream.missing.wrapping_add(packets);
    }

    /// Writes a packet, with its events after [`TraceChunk::before_events`]; adds the bytes that
    /// follow them.
    pub(crate) fn packet(
        &mut self,
        stream: StreamNumber,
        bytes: &mut Vec<u8>,
        span: &PacketSpan,
    ) -> Result<(), WriteError> {
        let before = self.before_events();
        let this = &mut self.streams[stream];
        let was_open = this.raw.is_open();
        if this.raw.bytes() == 0 && (this.discarded, this.missing) != (0, 0) {
            // Readers cannot tell losses before the first packet, so an empty packet before it
            // reports that none were lost until then.
            let mut first = vec![0; before];
            let origin = PacketOrigin { sequence: 0, bytes: 0, discarded: 0, ..span.origin };
            origin.before(self.namespaces, &mut first[HEAD_BYTES..]);
            first.extend(origin.behind(0));
            let packet =
                RawPacket { begin: span.begin, end: span.begin, discarded: 0, missing: 0, padding: BEHIND_EVENTS };
            this.raw.packet(&mut first, &packet)?;
            self.bytes += first.len() as u64;
            self.packets += 1;
        }
        span.origin.before(self.namespaces, &mut bytes[HEAD_BYTES..before]);
        bytes.extend(span.origin.behind(span.events));
        let (discarded, missing) = (this.discarded, this.missing);
        let packet = RawPacket { begin: span.begin, end: span.end, discarded, missing, padding: BEHIND_EVENTS };
        let written = this.raw.packet(bytes, &packet);
        // Counters change only with the packet that reports them. After a failed write the next
        // packet reports the same losses.
        if written.is_ok() {
            (this.told, this.unwritten, this.missing, this.origin) = (this.discarded, 0, 0, span.origin);
            this.events += u64::from(span.events);
            self.bytes += bytes.len() as u64;
            self.packets += 1;
        }
        self.open += usize::from(this.raw.is_open() && !was_open);
        // Closing all of them needs no record of their use, and a file is opened again by its next
        // packet.
        if self.open > OPEN_MAX {
            self.release();
        }
        written
    }

    /// Writes a packet without events: it tells that no event came until then, and the losses.
    pub(crate) fn say(&mut self, stream: StreamNumber, until: u64) -> Result<(), WriteError> {
        let this = &self.streams[stream];
        let at = until.max(this.raw.end());
        let span = PacketSpan { begin: this.raw.end().min(at), end: at, events: 0, origin: this.origin };
        // The beginning of a stream without packets is unknown.
        let begin = if this.raw.bytes() == 0 { at } else { span.begin };
        self.packet(stream, &mut vec![0; self.before_events()], &PacketSpan { begin, ..span })
    }

    /// Whether a stream has losses that no packet counts.
    pub(crate) fn has_secrets(&self, stream: StreamNumber) -> bool {
        let stream = &self.streams[stream];
        stream.discarded != stream.told || stream.missing > 0
    }

    /// Writes packets for losses that no packet counts yet.
    pub(crate) fn tell(&mut self) -> Result<(), WriteError> {
        let mut done = Ok(());
        for stream in 0..self.streams.len() {
            if self.has_secrets(stream) {
                // `and` evaluates its argument first, so a failing stream does not keep the others
                // from reporting.
                done = done.and(self.say(stream, 0));
            }
        }
        done
    }

    /// The lane that used the stream does not use it any more.
    pub(crate) fn leave(&mut self, stream: StreamNumber) {
        self.streams[stream].is_used = false;
    }

    /// Origin of its last packet.
    pub(crate) fn origin(&self, stream: StreamNumber) -> PacketOrigin {
        self.streams[stream].origin
    }

    /// Sets the origin of its packets.
    pub(crate) fn comes_from(&mut self, stream: StreamNumber, origin: PacketOrigin) {
        self.streams[stream].origin = origin;
    }

    /// Streams with truncated files, as paths and missing bytes.
    pub(crate) fn truncated(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        let missing = self.streams.iter().filter_map(|stream| Some((&stream.raw, stream.raw.missing_bytes()?)));
        missing.filter(|(_, bytes)| *bytes > 0).map(|(raw, bytes)| (raw.path().to_owned(), bytes))
    }

    /// Streams with removed files, with their paths, and the number of events that
    /// they had. Their next packets begin new files, which count these events as lost.
    pub(crate) fn removed(&mut self) -> Vec<(StreamNumber, PathBuf, u64)> {
        let mut removed = Vec::new();
        for (number, stream) in self.streams.iter_mut().enumerate() {
            if stream.raw.missing_bytes().is_some() {
                continue;
            }
            let path = stream.raw.path().to_owned();
            self.open -= usize::from(stream.raw.is_open());
            stream.raw = self.trace.stream(&stream_name(number), stream.class, number as u64);
            let events = std::mem::take(&mut stream.events);
            stream.discarded = stream.discarded.wrapping_add(events);
            stream.unwritten = stream.unwritten.saturating_add(events);
            removed.push((number, path, events));
        }
        removed
    }

    /// Closes files: the next write opens them again, if they still exist.
    pub(crate) fn release(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.raw.release());
        self.open = 0;
    }

    /// Whether its folder is where it was.
    pub(crate) fn is_there(&self) -> Result<(), WriteError> {
        self.trace.is_there()
    }

    /// Ends the trace: counts all losses, completes the indexes, and writes the clock again if it
    /// is known better now.
    pub(crate) fn finish(mut self, clock: Option<&RawClock>) -> Result<(u64, u64), WriteError> {
        // Also if a stream could not be written: the others are closed, and the metadata is
        // completed.
        let done = self.tell();
        self.streams.drain(..).for_each(|stream| stream.raw.close());
        let said = clock.map_or(Ok(()), |clock| self.trace.say_clock(clock));
        done.and(said).map(|()| (self.packets, self.bytes))
    }
}

impl ChunkStream {
    fn new(raw: RawStream, class: u32) -> Self {
        let origin = PacketOrigin::default();
        Self { raw, class, is_used: true, events: 0, discarded: 0, told: 0, unwritten: 0, missing: 0, origin }
    }
}

/// Stream 0 is the recorder's own; the name of a lane's stream has its number.
pub(crate) fn stream_name(number: StreamNumber) -> String {
    if number == 0 { "kymo".to_owned() } else { format!("lane_{number}") }
}

/// The number of the stream with this name.
pub(crate) fn stream_number(name: &str) -> Option<u32> {
    let digits = match name {
        "kymo" => return Some(0),
        name => name.strip_prefix("lane_")?,
    };
    digits.parse().ok().filter(|number| stream_name(*number as usize) == name && *number > 0)
}

fn raw_options(beginning: &JournalHead) -> RawOptions {
    RawOptions {
        format: beginning.format,
        uuid: Uuid(beginning.uuid),
        clock: raw_clock(beginning.source(), &beginning.facts),
        environment: beginning.environment(),
        packet_fields: PacketOrigin::fields(beginning.namespaces),
        is_private: false,
    }
}

/// Description of a clock in the metadata.
pub(crate) fn raw_clock(source: ClockSource, facts: &ClockDescription) -> RawClock {
    let (name, description) = match source {
        ClockSource::Counter => ("counter", "the processor's counter"),
        ClockSource::Monotonic => ("monotonic", "CLOCK_MONOTONIC"),
    };
    // In 128 bits: nanoseconds times a frequency of some GHz exceed 64 bits after a few seconds.
    let error = u128::from(facts.error_ns) * u128::from(facts.frequency) / 1_000_000_000;
    let (offset_s, offset_cycles) = match source {
        ClockSource::Counter => (facts.offset_seconds, facts.offset_ticks),
        // Written as LTTng does: Trace Compass knows no `offset_s`.
        ClockSource::Monotonic => match u64::try_from(facts.offset_seconds) {
            Ok(seconds) => (0, seconds.saturating_mul(facts.frequency).saturating_add(facts.offset_ticks)),
            Err(_) => (facts.offset_seconds, facts.offset_ticks),
        },
    };
    RawClock {
        name: name.to_owned(),
        description: description.to_owned(),
        frequency_hz: facts.frequency,
        precision_cycles: error as u64,
        offset_s,
        offset_cycles,
        is_absolute: facts.is_absolute,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_a_packet_is_read_again() {
        let thread = WriterThread { tid: 7, level: 2, name: *b"0123456789abcdef" };
        let namespaces = Inodes::default();
        let (program, lane, sequence) = (u64::MAX - 1, 65_535, 1 << 40);
        let origin = PacketOrigin { pid: 6, thread, namespaces, program, lane, sequence, bytes: 9, discarded: 11 };
        let mut before = [0; FURTHER_BYTES];
        origin.before(NamespaceKinds::default(), &mut before);
        assert_eq!(PacketOrigin::of(&before, &origin.behind(u32::MAX)), (origin, u32::MAX));
        let bytes: u32 = PacketOrigin::fields(NamespaceKinds::default())
            .iter()
            .map(|field| match &field.kind {
                FieldType::Scalar(scalar) => scalar.bytes().into(),
                FieldType::FixedText(bytes) => *bytes,
                _ => panic!("sizes are fixed"),
            })
            .sum();
        assert_eq!(bytes as usize, FURTHER_BYTES);
    }
}
