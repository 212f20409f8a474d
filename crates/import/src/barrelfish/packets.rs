//! The second reading: a chunk of a dump becomes a packet.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kymo_source::{ByteSource, PacketMaker, SourceError};

use super::classes::{COMMON_BYTES, DumpArgument, DumpClasses, TEXT_BYTES};
use super::index::{DumpApplication, DumpFacts, RunningDispatcher, shifted};
use super::line::{DumpLine, DumpRecord, event_at};
use super::lines::LineReader;
use crate::chunks::ImportChunk;
use crate::packet::PacketBuilder;

/// The packets of the dumps between two starts of a machine.
pub(super) struct DumpPackets {
    pub(super) file: ByteSource,
    pub(super) classes: Arc<DumpClasses>,
    pub(super) tables: Arc<Vec<HashMap<u32, DumpApplication>>>,
    /// For each stream, the core and its chunks.
    pub(super) cores: Vec<(u32, Vec<ImportChunk<DumpFacts>>)>,
    pub(super) dispatchers: Dispatchers,
    pub(super) has_sequences: bool,
}

/// Numbers of dispatchers: analyses know threads by numbers of 31 bits.
#[derive(Debug, Default)]
pub(super) struct Dispatchers {
    /// By core and the last 32 bits of the DCB.
    pub(super) known: HashMap<(u32, u32), i32>,
    /// By core: for all that it runs before its first switch.
    pub(super) before_first: HashMap<u32, i32>,
}

/// The dispatcher that a core runs, as events say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunDispatcher {
    number: i32,
    name: [u8; TEXT_BYTES],
}

/// No dispatcher.
const NONE: RunDispatcher = RunDispatcher { number: -1, name: [0; TEXT_BYTES] };

impl fmt::Debug for DumpPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cores of {}", self.cores.len(), self.file.path().display())
    }
}

impl PacketMaker for DumpPackets {
    fn make(&self, stream: usize, packet: usize) -> Result<Vec<u8>, SourceError> {
        let (core, chunks) = &self.cores[stream];
        let chunk = &chunks[packet];
        let mut builder = PacketBuilder::new(super::metadata::HEAD, chunk.bytes);
        super::metadata::put_head(&mut builder, *core, chunk);
        let head = builder.bytes.len();
        let mut records = RecordWriter::new(self, *core, chunk);
        let (mut is_ordered, mut latest) = (true, 0);
        self.events(*core, chunk, |event| {
            is_ordered &= event.time >= latest;
            latest = event.time;
            records.put(&mut builder, &event);
        })?;
        if !is_ordered {
            // Rarely: so only now they are kept.
            builder.bytes.truncate(head);
            let mut events = Vec::with_capacity(chunk.events as usize);
            self.events(*core, chunk, |event| events.push(event))?;
            events.sort_by_key(|event| event.time);
            let mut records = RecordWriter::new(self, *core, chunk);
            events.iter().for_each(|event| records.put(&mut builder, event));
        }
        Ok(builder.bytes)
    }
}

impl DumpPackets {
    /// Hands on the events of a chunk in the order of the file.
    #[inline]
    fn events(
        &self,
        core: u32,
        chunk: &ImportChunk<DumpFacts>,
        mut with: impl FnMut(DumpRecord),
    ) -> Result<(), SourceError> {
        let mut lines = LineReader::new(&self.file, chunk.place.clone());
        while let Some(lines) = lines.next()? {
            let mut place = 0;
            while place < lines.bytes.len() {
                let rest = &lines.bytes[place..];
                let (event, length) = match event_at(rest) {
                    Some((event, length)) => (Some(event), length),
                    None => {
                        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
                        let event = match DumpLine::of(line) {
                            DumpLine::Event(event) => Some(event),
                            _ => None,
                        };
                        (event, line.len() + 1)
                    }
                };
                if let Some(event) = event.filter(|event| event.core == core) {
                    with(event);
                }
                place += length;
            }
        }
        Ok(())
    }
}

/// Writes the records of a core.
struct RecordWriter<'p> {
    packets: &'p DumpPackets,
    core: u32,
    chunk: &'p ImportChunk<DumpFacts>,
    running: RunningDispatcher,
    now: RunDispatcher,
    /// Dispatchers that were looked up, at the place of their DCB.
    recent: Vec<Option<(u32, RunDispatcher)>>,
}

/// Places of [`RecordWriter::recent`].
const RECENT: usize = 64;

impl<'p> RecordWriter<'p> {
    fn new(packets: &'p DumpPackets, core: u32, chunk: &'p ImportChunk<DumpFacts>) -> Self {
        let mut records =
            Self { packets, core, chunk, running: RunningDispatcher::default(), now: NONE, recent: vec![None; RECENT] };
        records.now = match chunk.facts.running {
            Some(dcb) => records.dispatcher(dcb),
            None => records.before_first(),
        };
        records
    }

    fn put(&mut self, builder: &mut PacketBuilder, event: &DumpRecord) {
        let DumpRecord { raw, .. } = *event;
        let time = shifted(event.time, self.chunk.facts.shift);
        let class = self.packets.classes.of(raw);
        let argument = self.packets.classes.argument(class);
        let (before, number) = (self.now, raw as u32);
        if argument == DumpArgument::Switch {
            self.running.switch(time, number);
            self.now = self.dispatcher(number);
        }
        let mut common = [0; COMMON_BYTES as usize];
        common[..2].copy_from_slice(&class.to_le_bytes());
        common[2..10].copy_from_slice(&time.to_le_bytes());
        common[10..14].copy_from_slice(&self.now.number.to_le_bytes());
        common[14..].copy_from_slice(&self.now.name);
        builder.bytes(&common);
        match argument {
            DumpArgument::Absent => {}
            DumpArgument::Switch => put_dispatcher(builder, number, before),
            DumpArgument::RunDispatcher => {
                let dispatcher = self.dispatcher(number);
                put_dispatcher(builder, number, dispatcher);
            }
            DumpArgument::DispatcherOrNumber => {
                let known = self.packets.dispatchers.known.contains_key(&(self.core, number));
                let dispatcher = if known { self.dispatcher(number) } else { NONE };
                put_dispatcher(builder, number, dispatcher);
            }
            DumpArgument::Message => {
                let message = raw & 0x00FF_FFFF_FFFF_FFFF;
                let (mask, sequence) = if self.packets.has_sequences { (0xFFFF, raw as u16) } else { (0xFFF, 0) };
                builder.u64(message);
                builder.u64(message & !mask);
                builder.u16(sequence);
            }
            DumpArgument::Event => {
                builder.u16((raw >> 32) as u16);
                builder.u32(number);
            }
            DumpArgument::Subsystem => {
                builder.u16((raw >> 48) as u16);
                builder.u16((raw >> 32) as u16);
                builder.u32(number);
            }
            _ => builder.u32(number),
        }
    }

    /// The dispatcher of a DCB.
    #[inline]
    fn dispatcher(&mut self, dcb: u32) -> RunDispatcher {
        let place = (dcb >> 9) as usize % RECENT;
        match self.recent[place] {
            Some((known, dispatcher)) if known == dcb => dispatcher,
            _ => {
                let dispatcher = self.find_dispatcher(dcb);
                self.recent[place] = Some((dcb, dispatcher));
                dispatcher
            }
        }
    }

    /// 0 is none: the core is idle.
    #[cold]
    fn find_dispatcher(&self, dcb: u32) -> RunDispatcher {
        if dcb == 0 {
            return RunDispatcher { number: 0, name: text(b"(idle)") };
        }
        let number = self.packets.dispatchers.known.get(&(self.core, dcb)).copied().unwrap_or(NONE.number);
        let application = self.packets.tables[self.chunk.facts.table].get(&dcb).filter(|known| !known.name.is_empty());
        let name = application.map_or_else(|| text(format!("{dcb:#x}").as_bytes()), |known| text(&known.name));
        RunDispatcher { number, name }
    }

    /// For all that runs before the first switch.
    fn before_first(&self) -> RunDispatcher {
        let number = self.packets.dispatchers.before_first.get(&self.core).copied().unwrap_or(NONE.number);
        RunDispatcher { number, name: text(b"(unknown)") }
    }
}

fn put_dispatcher(builder: &mut PacketBuilder, dcb: u32, dispatcher: RunDispatcher) {
    builder.u32(dcb);
    builder.u32(dispatcher.number as u32);
    builder.bytes(&dispatcher.name);
}

/// A name in the place for it.
fn text(name: &[u8]) -> [u8; TEXT_BYTES] {
    let mut text = [0; TEXT_BYTES];
    let length = name.len().min(TEXT_BYTES);
    text[..length].copy_from_slice(&name[..length]);
    text
}
