//! The second reading: a chunk of a dump becomes a packet.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kymo_source::{ByteSource, PacketMaker, SourceError};

use super::classes::{DumpArgument, DumpClasses, TEXT_BYTES};
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
        let events = self.events(*core, chunk)?;
        let mut builder = PacketBuilder::new(super::metadata::HEAD, chunk.bytes);
        super::metadata::put_head(&mut builder, *core, chunk);
        let mut records = RecordWriter::new(self, *core, chunk);
        for event in &events {
            records.put(&mut builder, event);
        }
        Ok(builder.bytes)
    }
}

impl DumpPackets {
    /// The events of a chunk in the order of time.
    fn events(&self, core: u32, chunk: &ImportChunk<DumpFacts>) -> Result<Vec<DumpRecord>, SourceError> {
        let mut events = Vec::with_capacity(chunk.events as usize);
        let mut lines = LineReader::new(&self.file, chunk.place.clone());
        let mut is_ordered = true;
        let mut latest = 0;
        let mut add = |event: DumpRecord| {
            if event.core == core {
                is_ordered &= event.time >= latest;
                latest = event.time;
                events.push(event);
            }
        };
        while let Some(lines) = lines.next()? {
            let mut place = 0;
            while place < lines.bytes.len() {
                let rest = &lines.bytes[place..];
                if let Some((event, length)) = event_at(rest) {
                    add(event);
                    place += length;
                    continue;
                }
                let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
                if let DumpLine::Event(event) = DumpLine::of(line) {
                    add(event);
                }
                place += line.len() + 1;
            }
        }
        if !is_ordered {
            events.sort_by_key(|event| event.time);
        }
        Ok(events)
    }
}

/// Writes the records of a core.
struct RecordWriter<'p> {
    packets: &'p DumpPackets,
    core: u32,
    chunk: &'p ImportChunk<DumpFacts>,
    running: RunningDispatcher,
    now: RunDispatcher,
}

impl<'p> RecordWriter<'p> {
    fn new(packets: &'p DumpPackets, core: u32, chunk: &'p ImportChunk<DumpFacts>) -> Self {
        let mut records = Self { packets, core, chunk, running: RunningDispatcher::default(), now: NONE };
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
        builder.u16(class);
        builder.u64(time);
        builder.u32(self.now.number as u32);
        builder.bytes(&self.now.name);
        match argument {
            DumpArgument::Absent => {}
            DumpArgument::Switch => self.put_dispatcher(builder, number, before),
            DumpArgument::RunDispatcher => self.put_dispatcher(builder, number, self.dispatcher(number)),
            DumpArgument::DispatcherOrNumber => {
                let known = self.packets.dispatchers.known.contains_key(&(self.core, number));
                self.put_dispatcher(builder, number, if known { self.dispatcher(number) } else { NONE });
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

    fn put_dispatcher(&self, builder: &mut PacketBuilder, dcb: u32, dispatcher: RunDispatcher) {
        builder.u32(dcb);
        builder.u32(dispatcher.number as u32);
        builder.bytes(&dispatcher.name);
    }

    /// The dispatcher of a DCB; 0 is none: the core is idle.
    fn dispatcher(&self, dcb: u32) -> RunDispatcher {
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

/// A name in the place for it.
fn text(name: &[u8]) -> [u8; TEXT_BYTES] {
    let mut text = [0; TEXT_BYTES];
    let length = name.len().min(TEXT_BYTES);
    text[..length].copy_from_slice(&name[..length]);
    text
}
