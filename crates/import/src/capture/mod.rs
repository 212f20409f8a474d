//! Captures of packets: pcapng and pcap.
//!
//! ```text
//! file       a record ──> section, interface, packet, statistics
//! heads      a packet's bytes ──> class of event, its values
//! index      first reading: where the packets of each interface are
//! packets    second reading: packets of an interface ──> a packet of CTF
//! metadata   the description of these
//! ```
//!
//! The interfaces of one name are a data stream, in whichever section they are. Events have the heads of packets, not
//! the data behind these, unless an option asks for all bytes.

mod file;
mod heads;
mod index;
mod metadata;
mod packets;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kymo_format::Assumption;
use kymo_source::{
    ByteSource, ImportNote, ImportOptions, ImportProblems, Imported, ImportedStream, Importer, PacketMaker,
    SourceError, SourceErrorKind,
};

use file::CaptureForm;
use index::{CaptureIndex, CaptureStream};
pub(crate) use metadata::stream_text;
use packets::CapturePackets;

use crate::chunks::packet_index;
use crate::notes;

/// Reads captures.
#[derive(Debug)]
pub struct PacketCapture;

impl Importer for PacketCapture {
    fn format(&self) -> &'static str {
        "capture of packets (pcapng, pcap)"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["pcapng", "pcap", "cap"]
    }

    fn recognizes(&self, head: &[u8]) -> bool {
        CaptureForm::of(head).is_some()
    }

    fn import(&self, file: &ByteSource, options: &ImportOptions) -> Result<Vec<Imported>, SourceError> {
        let Some(read) = CaptureStreams::read(file, options.packet_data)? else {
            let what = "this is no capture of packets any more".to_owned();
            return Err(SourceError { path: file.path().to_owned(), kind: SourceErrorKind::Import(what) });
        };
        let mut magic = [0; 4];
        file.read_at(0, &mut magic)?;
        let format = if magic == [0x0A, 0x0D, 0x0D, 0x0A] { "pcapng" } else { "pcap" };
        let metadata = metadata::metadata(&read.index, format, read.has_data);
        let ClassStreams { list: streams, maker, problems, notes } = read.in_class(0, 0);
        Ok(vec![Imported { name: String::new(), metadata, streams, maker, problems, notes }])
    }
}

/// A capture after its first reading.
#[derive(Debug)]
pub(crate) struct CaptureStreams {
    file: ByteSource,
    index: CaptureIndex,
    has_data: bool,
}

/// A capture's interfaces as data streams of a class.
#[derive(Debug)]
pub(crate) struct ClassStreams {
    pub(crate) list: Vec<ImportedStream>,
    pub(crate) maker: Arc<dyn PacketMaker>,
    pub(crate) problems: ImportProblems,
    pub(crate) notes: Vec<ImportNote>,
}

impl CaptureStreams {
    /// Reads a whole file; `None`: it is no capture. With `has_data`, events have the bytes of packets.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) fn read(file: &ByteSource, has_data: bool) -> Result<Option<Self>, SourceError> {
        Ok(index::read(file, has_data)?.map(|index| Self { file: file.clone(), index, has_data }))
    }

    /// The first time of a packet, since 1970.
    pub(crate) fn earliest_ns(&self) -> Option<u64> {
        self.index.streams.iter().filter_map(|stream| Some(stream.chunks.list.first()?.earliest)).min()
    }

    /// As data streams of a class ([`stream_text`]), with times that are `ahead` nanoseconds earlier than in the file.
    pub(crate) fn in_class(self, class: u32, ahead: u64) -> ClassStreams {
        let Self { file, index, has_data } = self;
        let notes = notes_of(&index);
        let names = stream_names(&index.streams);
        let streams = index.streams.iter().zip(names).enumerate().map(|(number, (stream, name))| {
            let (head, chunks) = (metadata::head_bytes(&stream.name), &stream.chunks.list);
            ImportedStream {
                name,
                packets: chunks.iter().map(|chunk| head + chunk.bytes).collect(),
                index: packet_index(chunks, (head, ahead), number as u64, |facts| facts.dropped),
                ..ImportedStream::default()
            }
        });
        let list = streams.collect();
        let streams = index.streams.into_iter().map(|stream| (stream.name, stream.chunks.list)).collect();
        let maker = Arc::new(CapturePackets { file, sections: index.sections, has_data, class, ahead, streams });
        ClassStreams { list, maker, problems: index.problems, notes }
    }
}

/// Names of streams: those of interfaces, which may have any character, and behind that a number where one is taken.
fn stream_names(streams: &[CaptureStream]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for stream in streams {
        let name = stream.name.replace(['/', '\0'], "_");
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

fn notes_of(index: &CaptureIndex) -> Vec<ImportNote> {
    let mut found = Vec::new();
    for stream in index.streams.iter().filter(|stream| stream.chunks.behind > 0) {
        let (name, behind) = (&stream.name, stream.chunks.behind);
        let packets = if behind == 1 { "1 packet is".to_owned() } else { format!("{behind} packets are") };
        let what = format!("{name}: {packets} behind later ones in the file, and here in the order of time");
        found.push(notes::note(Assumption::UnorderedEvents, what));
    }
    if index.timeless > 0 {
        let packets =
            if index.timeless == 1 { "1 packet has".to_owned() } else { format!("{} packets have", index.timeless) };
        let what = format!("{packets} no time: here the time of the packet before");
        found.push(notes::note(Assumption::NoTime, what));
    }
    found
}
