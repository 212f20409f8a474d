//! The second reading: packets of an interface become a packet of CTF.

use std::fmt;

use kymo_packet::{HEADS_MAX, PacketHeads};
use kymo_source::{ByteSource, PacketMaker, SourceError};

use super::file::CaptureRecord;
use super::heads::{number_of, put};
use super::index::{CaptureFacts, SectionIndex, direction};
use super::metadata;
use crate::chunks::ImportChunk;
use crate::packet::PacketBuilder;
use crate::window::FileWindow;

/// The packets of all interfaces.
pub(super) struct CapturePackets {
    pub(super) file: ByteSource,
    pub(super) sections: Vec<SectionIndex>,
    /// Events have the bytes of packets.
    pub(super) has_data: bool,
    /// The class of the data streams.
    pub(super) class: u32,
    /// Nanoseconds by which times in the file are late.
    pub(super) ahead: u64,
    /// For each stream its interface's name, and its chunks.
    pub(super) streams: Vec<(String, Vec<ImportChunk<CaptureFacts>>)>,
}

impl fmt::Debug for CapturePackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} interfaces of {}", self.streams.len(), self.file.path().display())
    }
}

impl PacketMaker for CapturePackets {
    fn make(&self, stream: usize, packet: usize) -> Result<Vec<u8>, SourceError> {
        let (name, chunks) = &self.streams[stream];
        let chunk = &chunks[packet];
        let mut events = PacketBuilder::new(0, chunk.bytes);
        // Where the events begin, with their times.
        let mut begins = Vec::with_capacity(chunk.events as usize);
        self.put_events(stream, chunk, &mut events, &mut begins)?;
        let mut builder = PacketBuilder::new(metadata::head_bytes(name), chunk.bytes);
        metadata::put_head(&mut builder, (self.class, self.ahead), name, chunk);
        if begins.is_sorted_by_key(|(time, _)| *time) {
            builder.bytes(&events.bytes);
            return Ok(builder.bytes);
        }
        let mut ordered: Vec<(u64, usize, usize)> = Vec::with_capacity(begins.len());
        let ends = begins.iter().skip(1).map(|(_, begin)| *begin).chain([events.bytes.len()]);
        ordered.extend(begins.iter().zip(ends).map(|((time, begin), end)| (*time, *begin, end)));
        ordered.sort_by_key(|(time, ..)| *time);
        for (_, begin, end) in ordered {
            builder.bytes(&events.bytes[begin..end]);
        }
        Ok(builder.bytes)
    }
}

impl CapturePackets {
    /// The events of a chunk, in the order of the file.
    fn put_events(
        &self,
        stream: usize,
        chunk: &ImportChunk<CaptureFacts>,
        builder: &mut PacketBuilder,
        begins: &mut Vec<(u64, usize)>,
    ) -> Result<(), SourceError> {
        let section = &self.sections[chunk.facts.section];
        let mut form = section.form;
        let mut window = FileWindow::new(&self.file);
        let (mut at, mut latest) = (chunk.place.start, chunk.facts.time_before);
        while at < chunk.place.end {
            // Errors that the first reading found are outside of a chunk's section.
            let Some(Ok((record, end))) = form.record(&mut window, at)? else { break };
            at = end;
            let CaptureRecord::Packet(packet) = record else { continue };
            let Some(interface) = section.interfaces.get(packet.interface as usize) else { continue };
            if interface.stream != stream {
                continue;
            }
            let data = window.bytes(packet.data, (packet.captured as usize).min(HEADS_MAX))?;
            let heads = PacketHeads::of(interface.facts.link, data);
            let time = packet.time.map_or(latest, |time| interface.facts.ns(section.form, time));
            latest = latest.max(time);
            begins.push((time, builder.bytes.len()));
            builder.u8(number_of(heads.class));
            builder.u64(time.saturating_sub(self.ahead));
            builder.u8(direction(&packet, &heads, interface) as u8);
            builder.u32(packet.captured);
            builder.u32(packet.length);
            put(&heads, builder);
            if self.has_data {
                let captured = packet.captured as usize;
                builder.u16(interface.facts.link);
                builder.u32(packet.captured);
                let end = builder.bytes.len() + captured;
                builder.bytes(window.bytes(packet.data, captured)?);
                // Of a file that has become shorter.
                builder.bytes.resize(end, 0);
            }
        }
        Ok(())
    }
}
