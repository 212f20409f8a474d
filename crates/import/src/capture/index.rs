//! The first reading of a capture: where the packets of each interface are.

use std::collections::BTreeMap;

use kymo_packet::{HEADS_MAX, PacketDirection, PacketHeads};
use kymo_source::{ByteSource, ImportProblems, SourceError};

use super::file::{CaptureForm, CaptureInterface, CaptureRecord, PacketRecord, SectionHead};
use super::heads::event_bytes;
use crate::chunks::{ChunkFacts, ImportChunk, ImportChunks};
use crate::window::FileWindow;

/// The content of a file.
#[derive(Debug)]
pub(super) struct CaptureIndex {
    pub(super) sections: Vec<SectionIndex>,
    /// By name.
    pub(super) streams: Vec<CaptureStream>,
    pub(super) problems: ImportProblems,
    /// Packets without a time.
    pub(super) timeless: u64,
}

/// A section, in which interfaces have numbers of their own.
#[derive(Debug)]
pub(super) struct SectionIndex {
    pub(super) form: CaptureForm,
    pub(super) head: SectionHead,
    pub(super) interfaces: Vec<SectionInterface>,
}

/// An interface of a section.
#[derive(Debug)]
pub(super) struct SectionInterface {
    pub(super) facts: CaptureInterface,
    /// Of [`CaptureIndex::streams`].
    pub(super) stream: usize,
    /// As the name says it.
    pub(super) direction: PacketDirection,
    /// The last count of lost packets in this section.
    dropped: u64,
}

/// The packets of the interfaces of one name.
#[derive(Debug)]
pub(super) struct CaptureStream {
    pub(super) name: String,
    pub(super) chunks: ImportChunks<CaptureFacts>,
    /// Lost packets so far.
    dropped: u64,
}

/// Facts that reading packets needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CaptureFacts {
    /// Of [`CaptureIndex::sections`].
    pub(super) section: usize,
    /// Lost packets up to the last one.
    pub(super) dropped: u64,
    /// The time before, for packets without one.
    pub(super) time_before: u64,
}

impl ChunkFacts for CaptureFacts {
    fn go_on(&self, later: &Self) -> bool {
        self.section == later.section
    }
}

/// Reads a whole file; `None`: it is no capture. Events are to have the bytes of packets, or their heads alone.
///
/// # Errors
///
/// The file cannot be read.
pub(super) fn read(file: &ByteSource, has_data: bool) -> Result<Option<CaptureIndex>, SourceError> {
    let mut window = FileWindow::new(file);
    let Some(form) = CaptureForm::of(window.bytes(0, 12)?) else { return Ok(None) };
    let mut reading = CaptureReading::new(form, has_data);
    let (mut at, interface) = reading.form.begin(&mut window)?;
    if let Some(interface) = interface {
        reading.begin_section(SectionHead::default());
        reading.add_interface(interface);
    }
    while let Some(found) = reading.form.record(&mut window, at)? {
        match found {
            Ok((record, end)) => {
                reading.take(record, at..end, &mut window)?;
                at = end;
            }
            Err(what) => {
                let next = reading.form.next_section(&mut window, at + 1)?;
                reading.index.problems.push(|| match next {
                    Some(next) => format!("byte {at}: {what}; reading goes on with the section at byte {next}"),
                    None => format!("byte {at}: {what}; the rest of the file is not read"),
                });
                let Some(next) = next else { break };
                at = next;
            }
        }
    }
    reading.index.streams.iter_mut().for_each(CaptureStream::count_from_zero);
    Ok(Some(reading.index))
}

impl CaptureStream {
    /// Where packets are lost, puts a packet of CTF without events before all others: its counter is zero, so that the
    /// first loss has a size.
    fn count_from_zero(&mut self) {
        if let Some(first) = self.chunks.list.first().filter(|_| self.dropped > 0) {
            let facts = CaptureFacts { dropped: 0, ..first.facts };
            let (place, time) = (first.place.start..first.place.start, first.earliest);
            self.chunks.list.insert(0, ImportChunk { place, events: 0, bytes: 0, earliest: time, latest: time, facts });
        }
    }
}

/// The state of the first reading.
struct CaptureReading {
    form: CaptureForm,
    /// Events have the bytes of packets.
    has_data: bool,
    index: CaptureIndex,
    streams: BTreeMap<String, usize>,
}

impl CaptureReading {
    fn new(form: CaptureForm, has_data: bool) -> Self {
        let problems = ImportProblems::default();
        let index = CaptureIndex { sections: Vec::new(), streams: Vec::new(), problems, timeless: 0 };
        Self { form, has_data, index, streams: BTreeMap::new() }
    }

    fn take(
        &mut self,
        record: CaptureRecord,
        place: std::ops::Range<u64>,
        window: &mut FileWindow<'_>,
    ) -> Result<(), SourceError> {
        match record {
            CaptureRecord::Section(head) => self.begin_section(head),
            CaptureRecord::CaptureInterface(interface) => self.add_interface(interface),
            CaptureRecord::Packet(packet) => self.packet(&packet, place, window)?,
            CaptureRecord::Statistics(loss) => self.lose(loss.interface, loss.dropped),
            CaptureRecord::Other => {}
        }
        Ok(())
    }

    fn begin_section(&mut self, head: SectionHead) {
        self.index.sections.push(SectionIndex { form: self.form, head, interfaces: Vec::new() });
    }

    fn add_interface(&mut self, facts: CaptureInterface) {
        let Some(section) = self.index.sections.last_mut() else { return };
        // A zero would end the name in packets.
        let name = facts.name.as_ref().map(|name| name.replace('\0', " ")).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| format!("interface {}", section.interfaces.len()));
        let (name, direction) = match facts.is_of_genode {
            true => genode_name(&name),
            false => (&*name, PacketDirection::Unknown),
        };
        let next = self.index.streams.len();
        let stream = *self.streams.entry(name.to_owned()).or_insert(next);
        if stream == next {
            let stream = CaptureStream { name: name.to_owned(), chunks: ImportChunks::default(), dropped: 0 };
            self.index.streams.push(stream);
        }
        section.interfaces.push(SectionInterface { facts, stream, direction, dropped: 0 });
    }

    fn packet(
        &mut self,
        packet: &PacketRecord,
        place: std::ops::Range<u64>,
        window: &mut FileWindow<'_>,
    ) -> Result<(), SourceError> {
        let number = self.index.sections.len().saturating_sub(1);
        let section = self.index.sections.get(number);
        let Some(interface) = section.and_then(|section| section.interfaces.get(packet.interface as usize)) else {
            let count = section.map_or(0, |section| section.interfaces.len());
            let (at, interface) = (place.start, packet.interface);
            self.index.problems.push(|| {
                format!("byte {at}: a packet of interface {interface}, though the section has described {count}")
            });
            return Ok(());
        };
        let data = window.bytes(packet.data, (packet.captured as usize).min(HEADS_MAX))?;
        let class = PacketHeads::of(interface.facts.link, data).class;
        let stream = &mut self.index.streams[interface.stream];
        let time_before = stream.chunks.latest;
        let time = packet.time.map(|time| interface.facts.ns(self.form, time));
        self.index.timeless += u64::from(time.is_none());
        let facts = CaptureFacts { section: number, dropped: stream.dropped, time_before };
        stream.chunks.add(
            time.unwrap_or(time_before),
            place,
            event_bytes(class, self.has_data.then_some(packet.captured)),
            facts,
        );
        Ok(())
    }

    /// Counts packets that an interface of the section has lost so far.
    fn lose(&mut self, interface: u32, dropped: u64) {
        let section = self.index.sections.last_mut();
        let Some(interface) = section.and_then(|section| section.interfaces.get_mut(interface as usize)) else {
            return;
        };
        let more = dropped.saturating_sub(interface.dropped);
        interface.dropped = interface.dropped.max(dropped);
        let stream = &mut self.index.streams[interface.stream];
        stream.dropped = stream.dropped.saturating_add(more);
        if let Some(last) = stream.chunks.list.last_mut() {
            last.facts.dropped = stream.dropped;
        }
    }
}

/// The name of an interface without the direction that Genode's recorder puts behind it.
fn genode_name(name: &str) -> (&str, PacketDirection) {
    match (name.strip_suffix("_in"), name.strip_suffix("_out")) {
        (Some(name), _) => (name, PacketDirection::Inbound),
        (_, Some(name)) => (name, PacketDirection::Outbound),
        _ => (name, PacketDirection::Unknown),
    }
}

/// Which way a packet of an interface went: as its own flags say, else its head, else the interface's name.
pub(super) fn direction(
    packet: &PacketRecord,
    heads: &PacketHeads<'_>,
    interface: &SectionInterface,
) -> PacketDirection {
    match packet.flags.map(|flags| flags & 3) {
        Some(1) => PacketDirection::Inbound,
        Some(2) => PacketDirection::Outbound,
        _ if heads.direction != PacketDirection::Unknown => heads.direction,
        _ => interface.direction,
    }
}
