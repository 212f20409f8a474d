//! A trace of packets that come with their events as bytes: the form that recorders write.
//!
//! ```text
//! RawTrace ── DIR/metadata: grows by what is in the packets from then on
//!   └ RawStream ── header │ who wrote it │ bytes ── DIR/NAME
//!                                              └── DIR/index/NAME.idx, when the stream is closed
//! ```
//!
//! Nothing half is left: incomplete writes are taken back, so that readers find a trace of the
//! existing data at any time. An index is there when it is whole, as readers believe it: while a
//! stream is written, packets tell where they are.
//!
//! Each packet has a header and a context of fixed sizes, with the names that LTTng gives them:
//!
//! ```text
//! 0      4     20         24                  32               40             48            56           64
//! magic  uuid  stream_id  stream_instance_id  timestamp_begin  timestamp_end  content_size  packet_size  packet_seq_num
//! 72                80
//! events_discarded  further fields, which are the caller's
//! ```
//!
//! Behind the events there may be bytes that are no content: readers pass over them.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use kymo_format::model::{
    ClockClass, ClockOrigin, DataStreamClass, Dialect, EnvironmentValue, EventRecordClass, FieldClass, FieldKind,
    Member, Role, Scope, StaticBlob, Structure, TraceClass,
};
use kymo_format::write::{MetadataPart, to_json_part, to_tsdl_part};
use kymo_schema::field::{DefinedField, IntegerType};
use kymo_units::{ByteOrder, Uuid};
use kymo_wire::{index, magic};
use serde::{Deserialize, Serialize};

use crate::error::{WriteError, WriteProblem, file_error};
use crate::packed;

/// Bytes of a packet before the caller's fields.
pub const HEAD_BYTES: usize = 80;
/// Bytes of the header of events: `u16` id, `u32` low half of the clock.
pub const EVENT_HEAD_BYTES: usize = 6;
/// Entries of an index that are kept in memory.
const ENTRIES: usize = 64;

/// A version of CTF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CtfVersion {
    /// 1.8, which every tool reads.
    #[default]
    Ctf18,
    /// 2.
    Ctf2,
}

/// How a trace begins.
#[derive(Clone, Debug)]
pub struct RawOptions {
    /// Which version of CTF.
    pub format: CtfVersion,
    /// Of the trace.
    pub uuid: Uuid,
    /// Its clock.
    pub clock: RawClock,
    /// Where it was recorded.
    pub environment: Vec<(String, EnvironmentValue)>,
    /// Further fields of packets, of fixed sizes.
    pub packet_fields: Vec<DefinedField>,
    /// Only its user may read its files, where a system can tell users apart.
    pub is_private: bool,
}

/// The clock of a trace. Its zero lies at its offset behind the beginning of 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawClock {
    /// Its name, an identifier.
    pub name: String,
    /// For people.
    pub description: String,
    /// Cycles of a second.
    pub frequency_hz: u64,
    /// How far off it may be.
    pub precision_cycles: u64,
    /// Whole seconds of its offset.
    pub offset_s: i64,
    /// The rest of it.
    pub offset_cycles: u64,
    /// Its zero is known; otherwise its times only give the time between events.
    pub is_absolute: bool,
}

/// A class of events.
#[derive(Clone, Copy, Debug)]
pub struct RawEvent<'a> {
    /// Its id.
    pub id: u16,
    /// Its name.
    pub name: &'a str,
    /// Its level, as LTTng counts them.
    pub level: Option<u8>,
    /// A URI with more information about it.
    pub uri: Option<&'a str>,
    /// Its fields.
    pub fields: &'a [DefinedField],
}

/// A folder that becomes a trace.
#[derive(Debug)]
pub struct RawTrace {
    path: PathBuf,
    metadata: PathBuf,
    format: CtfVersion,
    /// With its stream classes, without events.
    class: TraceClass,
    packet_fields: Vec<DefinedField>,
    is_private: bool,
    /// Bytes of the metadata up to the first stream class, and of all of it.
    beginning: u64,
    bytes: u64,
    /// The metadata, until its final content is known: see [`RawTrace::go_on`].
    held: Option<String>,
}

impl RawTrace {
    /// Makes a folder, and the metadata's beginning in it.
    ///
    /// # Errors
    ///
    /// It cannot be made, or has metadata already.
    pub fn create(path: &Path, options: RawOptions) -> Result<Self, WriteError> {
        make_folder(path, options.is_private).map_err(|error| file_error(path, error))?;
        let mut this = Self::of(path, options);
        new_file(&this.metadata, this.is_private).map_err(|error| file_error(&this.metadata, error))?;
        this.begin()?;
        Ok(this)
    }

    /// Goes on with a trace after its writer was killed, where any part of the metadata may be
    /// half: the caller states its content again, in the same order. [`RawTrace::put`] writes it
    /// then.
    ///
    /// # Errors
    ///
    /// Metadata cannot express it.
    pub fn go_on(path: &Path, options: RawOptions) -> Result<Self, WriteError> {
        let mut this = Self { held: Some(String::new()), ..Self::of(path, options) };
        this.begin()?;
        Ok(this)
    }

    fn of(path: &Path, options: RawOptions) -> Self {
        Self {
            path: path.to_owned(),
            metadata: path.join("metadata"),
            format: options.format,
            class: trace_class(&options),
            packet_fields: options.packet_fields,
            is_private: options.is_private,
            beginning: 0,
            bytes: 0,
            held: None,
        }
    }

    fn begin(&mut self) -> Result<(), WriteError> {
        self.append(&self.part(&self.class, MetadataPart::Beginning)?)?;
        self.beginning = self.bytes;
        Ok(())
    }

    /// Writes metadata that was [said again](RawTrace::go_on), if the file has other bytes: whether
    /// it had. A concurrent reader finds the old or the new.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old stays.
    pub fn put(&mut self) -> Result<bool, WriteError> {
        let Some(text) = &self.held else { return Ok(false) };
        let is_other = fs::read(&self.metadata).ok().is_none_or(|found| found != text.as_bytes());
        if is_other {
            self.replace(text.as_bytes())?;
        }
        self.held = None;
        Ok(is_other)
    }

    /// Metadata that was [said again](RawTrace::go_on) and is not [written](RawTrace::put), and bytes of its beginning, before the first
    /// class.
    #[must_use]
    pub fn into_metadata(self) -> (String, usize) {
        (self.held.unwrap_or_default(), self.beginning as usize)
    }

    fn replace(&self, bytes: &[u8]) -> Result<(), WriteError> {
        let new = self.path.join("metadata.new");
        let _ = fs::remove_file(&new);
        let written = new_file(&new, self.is_private).and_then(|file| write_at(&file, bytes, 0));
        written.and_then(|()| fs::rename(&new, &self.metadata)).map_err(|error| {
            let _ = fs::remove_file(&new);
            file_error(&self.metadata, error)
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the metadata is where it was.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn is_there(&self) -> Result<(), WriteError> {
        match fs::metadata(&self.metadata) {
            Ok(found) if found.len() >= self.bytes => Ok(()),
            Ok(_) => Err(file_error(&self.metadata, ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(file_error(&self.metadata, error)),
        }
    }

    /// Bytes of its metadata.
    #[must_use]
    pub fn metadata_bytes(&self) -> u64 {
        self.bytes
    }

    /// Another class of streams, with these fields in its events; its id.
    ///
    /// # Errors
    ///
    /// The metadata cannot be written; nothing of it is.
    pub fn stream_class(&mut self, contexts: &[DefinedField]) -> Result<u32, WriteError> {
        let id = self.class.stream_classes.len();
        let class = stream_class(id as u64, &self.packet_fields, contexts);
        let mut small = self.with_one(class.clone());
        self.append(&self.part(&small, MetadataPart::Stream(0))?)?;
        self.class.stream_classes.append(&mut small.stream_classes);
        Ok(id as u32)
    }

    /// A class of events in streams of a class.
    ///
    /// # Errors
    ///
    /// The metadata cannot be written; nothing of it is.
    ///
    /// # Panics
    ///
    /// If there is no such stream class.
    pub fn event_class(&mut self, stream_class: u32, event: &RawEvent<'_>) -> Result<(), WriteError> {
        let class = EventRecordClass {
            id: event.id.into(),
            namespace: None,
            name: Some(event.name.to_owned()),
            uid: None,
            log_level: event.level.map(i64::from),
            emf_uri: event.uri.map(str::to_owned),
            specific_context: None,
            payload: Some(packed::structure(event.fields, Scope::EventPayload)),
            attributes: None,
        };
        self.event_record_class(stream_class, class)
    }

    /// The same, of a class with any fields.
    ///
    /// # Errors
    ///
    /// The metadata cannot be written; nothing of it is.
    ///
    /// # Panics
    ///
    /// If there is no such stream class.
    pub fn event_record_class(&mut self, stream_class: u32, event: EventRecordClass) -> Result<(), WriteError> {
        let mut class = self.class.stream_classes[stream_class as usize].clone();
        class.event_classes.push(event);
        let small = self.with_one(class);
        self.append(&self.part(&small, MetadataPart::Event(0, 0))?)
    }

    /// Writes the clock again, as it is known better now. A concurrent reader of the metadata finds
    /// the old one or the new one.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old one stays.
    pub fn say_clock(&mut self, clock: &RawClock) -> Result<(), WriteError> {
        let fault = |error| file_error(&self.metadata, error);
        let old = fs::read(&self.metadata).map_err(fault)?;
        let rest = old.get(self.beginning as usize..self.bytes as usize);
        let rest = rest.ok_or_else(|| fault(ErrorKind::UnexpectedEof.into()))?;
        let mut class = TraceClass { stream_classes: Vec::new(), ..self.class.clone() };
        class.clock_classes = vec![clock_class(clock)];
        let beginning = self.part(&class, MetadataPart::Beginning)?;
        self.replace(&[beginning.as_bytes(), rest].concat())?;
        self.bytes = (beginning.len() + rest.len()) as u64;
        self.beginning = beginning.len() as u64;
        self.class.clock_classes = class.clock_classes;
        Ok(())
    }

    /// Begins a stream: its file, which has this name, is made with its first packet.
    #[must_use]
    pub fn stream(&self, name: &str, stream_class: u32, id: u64) -> RawStream {
        RawStream {
            path: self.path.join(name),
            index_path: self.path.join("index").join(format!("{name}.idx")),
            uuid: self.class.uuid.expect("it has one"),
            class: stream_class,
            id,
            is_private: self.is_private,
            file: None,
            is_there: false,
            offset: 0,
            has_rest: false,
            sequence: 0,
            end: 0,
            entries: Vec::new(),
            index_bytes: Some(0),
            truncated: 0,
        }
    }

    /// Goes on with a stream's file behind its packets. Its index begins again: that of a stream which grows is none.
    ///
    /// # Errors
    ///
    /// The old index cannot be deleted.
    pub fn go_on_with(&self, name: &str, rest: RawRest) -> Result<RawStream, WriteError> {
        let stream = self.stream(name, rest.stream_class, rest.id);
        match fs::remove_file(&stream.index_path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(file_error(&stream.index_path, error)),
            _ => {}
        }
        let RawRest { offset, sequence, end, entries, .. } = rest;
        let mut stream = RawStream { is_there: true, has_rest: true, offset, sequence, end, entries, ..stream };
        if stream.entries.len() >= ENTRIES * index::ENTRY_LENGTH_1_1 {
            stream.put_entries();
        }
        Ok(stream)
    }

    /// The same trace with one stream class only: the metadata of one does not depend on others.
    fn with_one(&self, class: DataStreamClass) -> TraceClass {
        let TraceClass { dialect, uuid, native_byte_order, .. } = self.class;
        TraceClass {
            dialect,
            uuid,
            native_byte_order,
            namespace: None,
            name: None,
            uid: None,
            environment: Vec::new(),
            packet_header: self.class.packet_header.clone(),
            clock_classes: self.class.clock_classes.clone(),
            stream_classes: vec![class],
            attributes: None,
        }
    }

    fn part(&self, class: &TraceClass, part: MetadataPart) -> Result<String, WriteError> {
        let text = match self.format {
            CtfVersion::Ctf18 => to_tsdl_part(class, part),
            CtfVersion::Ctf2 => to_json_part(class, part),
        };
        text.map_err(|unwritable| WriteProblem::Metadata(Box::new(unwritable)).into())
    }

    fn append(&mut self, text: &str) -> Result<(), WriteError> {
        if let Some(held) = &mut self.held {
            held.push_str(text);
            self.bytes += text.len() as u64;
            return Ok(());
        }
        let file = File::options().write(true).open(&self.metadata);
        let written = file.and_then(|file| write_at(&file, text.as_bytes(), self.bytes));
        written.map_err(|error| file_error(&self.metadata, error))?;
        self.bytes += text.len() as u64;
        Ok(())
    }
}

/// The known state of a stream's file that another writer has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawRest {
    /// Its class.
    pub stream_class: u32,
    /// Its id.
    pub id: u64,
    /// Bytes of its whole packets.
    pub offset: u64,
    /// The number of the next packet.
    pub sequence: u64,
    /// When its last packet ends.
    pub end: u64,
    /// Its index, as far as it is known, without the header.
    pub entries: Vec<u8>,
}

/// A stream's file.
#[derive(Debug)]
pub struct RawStream {
    path: PathBuf,
    index_path: PathBuf,
    uuid: Uuid,
    class: u32,
    id: u64,
    is_private: bool,
    file: Option<File>,
    is_there: bool,
    offset: u64,
    /// Behind the last packet may be a part of one.
    has_rest: bool,
    sequence: u64,
    end: u64,
    entries: Vec<u8>,
    /// Bytes of the index that are written; `None`: it could not be.
    index_bytes: Option<u64>,
    /// Bytes that were missing when the last packet was written.
    truncated: u64,
}

/// The values that a packet gives besides its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPacket {
    /// Cycles when it begins, not before the end of the one before it, and when it ends.
    pub begin: u64,
    /// See [`RawPacket::begin`].
    pub end: u64,
    /// Events that the stream has lost altogether.
    pub discarded: u64,
    /// Packets that are missing before it.
    pub missing: u64,
    /// Its last bytes that are no content.
    pub padding: usize,
}

impl RawStream {
    /// Bytes of its packets.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// When its last packet ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Path of its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of its packets that its file no longer has, because it was truncated; `None`: it was
    /// removed.
    #[must_use]
    pub fn missing_bytes(&self) -> Option<u64> {
        match fs::metadata(&self.path) {
            Ok(found) => Some(self.offset.saturating_sub(found.len()).max(self.truncated)),
            Err(error) if error.kind() == ErrorKind::NotFound && self.offset > 0 => None,
            Err(_) => Some(0),
        }
    }

    /// Whether its file is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Closes its file; it is opened again when it is needed.
    pub fn release(&mut self) {
        self.file = None;
    }

    /// Writes a packet: [`HEAD_BYTES`] that are filled in here, the further fields, the events.
    ///
    /// # Errors
    ///
    /// It cannot be written, or begins before the last one ended; nothing of it is there.
    ///
    /// # Panics
    ///
    /// If there is no room for the head.
    pub fn packet(&mut self, bytes: &mut [u8], packet: &RawPacket) -> Result<(), WriteError> {
        let RawPacket { begin, end, .. } = *packet;
        if begin < self.end || end < begin {
            return Err(WriteProblem::Time { begin, end, last: self.end }.into());
        }
        let sequence = self.sequence.wrapping_add(packet.missing);
        let (bits, content_bits) = (8 * bytes.len() as u64, 8 * (bytes.len() - packet.padding) as u64);
        let numbers = [self.id, packet.begin, packet.end, content_bits, bits, sequence, packet.discarded];
        bytes[..4].copy_from_slice(&magic::PACKET.to_le_bytes());
        bytes[4..20].copy_from_slice(&self.uuid.0);
        bytes[20..24].copy_from_slice(&self.class.to_le_bytes());
        for (place, number) in bytes[24..HEAD_BYTES].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        self.put(bytes).map_err(|error| file_error(&self.path, error))?;
        let entry = index::IndexEntry {
            offset: self.offset,
            packet_bits: bits,
            content_bits,
            begin_cycles: packet.begin,
            end_cycles: packet.end,
            discarded: packet.discarded,
            stream_class_id: self.class.into(),
            stream_id: self.id,
            sequence,
        };
        self.entries.extend(entry.to_bytes());
        if self.entries.len() >= ENTRIES * index::ENTRY_LENGTH_1_1 {
            self.put_entries();
        }
        self.offset += bytes.len() as u64;
        self.end = packet.end;
        self.sequence = sequence.wrapping_add(1);
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None if self.is_there => File::options().write(true).open(&self.path)?,
            None => new_file(&self.path, self.is_private)?,
        };
        self.is_there = true;
        if self.has_rest {
            file.set_len(self.offset)?;
            self.has_rest = false;
        }
        // A write behind the end of the file leaves a hole, after which its length hides the missing bytes.
        self.truncated = self.truncated.max(self.offset.saturating_sub(file.metadata()?.len()));
        let written = write_at(&file, bytes, self.offset);
        self.has_rest = written.is_err();
        self.file = Some(file);
        written
    }

    /// Readers do without an index that could not be written.
    fn put_entries(&mut self) {
        let Some(at) = self.index_bytes else { return };
        let mut bytes = if at == 0 { index::header().to_vec() } else { Vec::new() };
        bytes.append(&mut self.entries);
        let part = self.part_path();
        let folder = self.index_path.parent().expect("it is in a folder");
        let file = if at == 0 {
            let _ = fs::remove_file(&part);
            make_folder(folder, self.is_private).and_then(|()| new_file(&part, self.is_private))
        } else {
            File::options().write(true).open(&part)
        };
        let written = file.and_then(|file| write_at(&file, &bytes, at));
        self.index_bytes = written.is_ok().then_some(at + bytes.len() as u64);
        if self.index_bytes.is_none() {
            let _ = fs::remove_file(&part);
        }
    }

    fn part_path(&self) -> PathBuf {
        self.index_path.with_extension("idx.part")
    }

    /// Ends the stream: its index is there from now on.
    pub fn close(mut self) {
        self.file = None;
        if self.has_rest {
            // The meaning of a part of a packet is unknown, and readers of indexes do not see it.
            let _ = File::options().write(true).open(&self.path).and_then(|file| file.set_len(self.offset));
        }
        if self.offset > 0 && !self.entries.is_empty() {
            self.put_entries();
        }
        if self.index_bytes.is_some_and(|bytes| bytes > 0) {
            let _ = fs::rename(self.part_path(), &self.index_path);
        }
    }
}

fn make_folder(path: &Path, is_private: bool) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    builder.create(path)
}

fn new_file(path: &Path, is_private: bool) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    options.open(path)
}

/// Writes all of it, or nothing that stays.
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    let mut place = file;
    let written = place.seek(SeekFrom::Start(at)).and_then(|_| place.write_all(bytes));
    if written.is_err() {
        let _ = file.set_len(at);
    }
    written
}

fn trace_class(options: &RawOptions) -> TraceClass {
    let integer = |bytes, role| packed::integer(IntegerType::unsigned(bytes), Some(role));
    let uuid = StaticBlob {
        length: 16,
        media_type: "application/octet-stream".to_owned(),
        roles: vec![Role::MetadataStreamUuid],
    };
    let header = [
        ("magic", integer(4, Role::PacketMagicNumber)),
        ("uuid", FieldClass::new(FieldKind::StaticBlob(uuid))),
        ("stream_id", integer(4, Role::DataStreamClassId)),
        ("stream_instance_id", integer(8, Role::DataStreamId)),
    ];
    TraceClass {
        dialect: Dialect::Ctf2,
        uuid: Some(options.uuid),
        namespace: None,
        name: None,
        uid: None,
        native_byte_order: Some(ByteOrder::Little),
        environment: options.environment.clone(),
        packet_header: Some(structure(header, &[])),
        clock_classes: vec![clock_class(&options.clock)],
        stream_classes: Vec::new(),
        attributes: None,
    }
}

fn stream_class(id: u64, packet_fields: &[DefinedField], contexts: &[DefinedField]) -> DataStreamClass {
    let integer = |bytes, role| packed::integer(IntegerType::unsigned(bytes), Some(role));
    let context = [
        ("timestamp_begin", integer(8, Role::DefaultClockTimestamp)),
        ("timestamp_end", integer(8, Role::PacketEndDefaultClockTimestamp)),
        ("content_size", integer(8, Role::PacketContentLength)),
        ("packet_size", integer(8, Role::PacketTotalLength)),
        ("packet_seq_num", integer(8, Role::PacketSequenceNumber)),
        ("events_discarded", integer(8, Role::DiscardedEventRecordCounterSnapshot)),
    ];
    let header = [("id", integer(2, Role::EventRecordClassId)), ("timestamp", integer(4, Role::DefaultClockTimestamp))];
    let has_contexts = !contexts.is_empty();
    DataStreamClass {
        id,
        namespace: None,
        name: None,
        uid: None,
        default_clock: Some(0),
        packet_context: Some(structure(context, packet_fields)),
        event_header: Some(structure(header, &[])),
        event_common_context: has_contexts.then(|| packed::structure(contexts, Scope::EventCommonContext)),
        event_classes: Vec::new(),
        attributes: None,
    }
}

/// Fields that readers know, and further ones, which have fixed sizes.
fn structure<const N: usize>(known: [(&str, FieldClass); N], further: &[DefinedField]) -> FieldClass {
    let mut members: Vec<_> = known.into_iter().map(|(name, class)| Member { name: name.to_owned(), class }).collect();
    if let FieldKind::Structure(mut more) = packed::structure(further, Scope::PacketContext).kind {
        members.append(&mut more.members);
    }
    FieldClass::new(FieldKind::Structure(Structure { members, minimum_alignment: 8 }))
}

fn clock_class(clock: &RawClock) -> ClockClass {
    ClockClass {
        id: clock.name.clone(),
        namespace: None,
        name: None,
        uid: None,
        uuid: None,
        description: Some(clock.description.clone()),
        frequency_hz: clock.frequency_hz,
        precision_cycles: Some(clock.precision_cycles),
        accuracy_cycles: None,
        offset_s: clock.offset_s,
        offset_cycles: clock.offset_cycles.into(),
        origin: if clock.is_absolute { ClockOrigin::UnixEpoch } else { ClockOrigin::Unknown },
        attributes: None,
    }
}
