//! Packets of traces as a capture, in pcapng.
//!
//! ```text
//! kymo:packet                        programs, kymo record --packets ──┐
//! packet:udp and so on, with `data`  imported captures ────────────────┼──> one section, an interface for each name and link
//! kymo:packet_counts, lost events    drops of interfaces ──────────────┘
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use kymo_packet::PacketFilter;
use kymo_packet::pcapng::{InterfaceCounts, PcapngPacket, PcapngWriter};
use kymo_packet::{PacketDirection, PacketFacts};

use crate::messages::{
    ClassFields, EventAt, FieldRef, MarkKind, MarkMessage, MessageBatch, MessageRow, MessageValue, MessagesFailure,
    MessagesQuestion,
};
use crate::open::Session;
use crate::open::progress::{Cancelled, Progress};
use crate::open::report::Report;
use crate::open::select::Selection;

/// The packets to write, and where.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// The new file.
    pub output: PathBuf,
    /// Only these events.
    pub selection: Selection,
    /// Only packets of which this is true.
    pub packet_filter: Option<PacketFilter>,
    /// Not before, in nanoseconds since the clock's origin.
    pub begin_ns: Option<i64>,
    /// Not after.
    pub end_ns: Option<i64>,
}

/// A capture that was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenCapture {
    /// Packets in it.
    pub packets: u64,
    /// Those of them of which only the beginning is there.
    pub cut: u64,
    /// Packets that interfaces dropped, as the trace says.
    pub dropped: u64,
    /// Packets by the names of interfaces.
    pub interfaces: BTreeMap<String, u64>,
    /// Packets that the filter of packets has kept out of it.
    pub filtered: u64,
    /// Packets in the traces without their bytes: they are not in the capture.
    pub without_bytes: u64,
    /// Packets without a time, or with one before 1970: they have the time of the packet before.
    pub timeless: u64,
    /// The differences between the capture and the whole truth.
    pub report: Report,
}

/// Why no capture was written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureFailure {
    /// The file cannot be written.
    #[error("{path}: {error}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The traces cannot be read.
    #[error(transparent)]
    Messages(#[from] MessagesFailure),
    /// The request was canceled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl Session {
    /// Writes the packets that the traces have, as a capture.
    ///
    /// # Errors
    ///
    /// The file is there already, or cannot be written; the traces cannot be read; it was canceled. Nothing stays, then.
    pub fn write_capture(
        self: &Arc<Self>,
        options: &CaptureOptions,
        progress: &Progress,
    ) -> Result<WrittenCapture, CaptureFailure> {
        let failure = |error: io::Error| CaptureFailure::File { path: options.output.clone(), error };
        let unfinished = UnfinishedCapture::create(&options.output).map_err(failure)?;
        let written = self.write_packets(&unfinished, options, progress);
        match written {
            Ok(written) => unfinished.keep(&options.output).map_err(failure).map(|()| written),
            Err(error) => Err(error),
        }
    }

    fn write_packets(
        self: &Arc<Self>,
        unfinished: &UnfinishedCapture,
        options: &CaptureOptions,
        progress: &Progress,
    ) -> Result<WrittenCapture, CaptureFailure> {
        let failure = |error: io::Error| CaptureFailure::File { path: options.output.clone(), error };
        let out = BufWriter::with_capacity(1 << 18, &unfinished.file);
        let application = concat!("kymo ", env!("CARGO_PKG_VERSION"));
        let mut sink = CaptureSink {
            // Each packet says how much of it is there.
            capture: PcapngWriter::begin(out, application, 0).map_err(failure)?,
            filter: options.packet_filter.clone(),
            classes: HashMap::new(),
            drops: BTreeMap::new(),
            streams: HashMap::new(),
            lost: BTreeMap::new(),
            latest: 0,
            written: WrittenCapture::default(),
        };
        let question = MessagesQuestion {
            selection: options.selection.clone(),
            begin_ns: options.begin_ns,
            end_ns: options.end_ns,
            stream_intersection: false,
            marks: true,
        };
        let mut messages = self.messages(&question)?;
        for batch in messages.by_ref() {
            progress.whole(())?;
            let batch = batch?;
            for &row in batch.rows() {
                match row {
                    MessageRow::Event(at) => sink.event(&batch, at).map_err(failure)?,
                    MessageRow::Mark(mark) => sink.mark(batch.mark(mark)),
                }
            }
        }
        let report = messages.report().clone();
        sink.finish(report).map_err(failure)
    }
}

/// A file that is not whole: it has another name, and is removed unless it becomes whole.
struct UnfinishedCapture {
    path: PathBuf,
    file: File,
    is_whole: std::cell::Cell<bool>,
}

impl UnfinishedCapture {
    fn create(output: &Path) -> io::Result<Self> {
        if output.exists() {
            let why = "there is such a file already, and a capture is a new one";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        let name = output.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let path = output.with_file_name(format!(".{name}.part"));
        let file = File::create(&path)?;
        Ok(Self { path, file, is_whole: std::cell::Cell::new(false) })
    }

    /// Gives it its name.
    fn keep(&self, output: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, output)?;
        self.is_whole.set(true);
        Ok(())
    }
}

impl Drop for UnfinishedCapture {
    fn drop(&mut self) {
        if !self.is_whole.get() {
            // It may be gone.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The events of a class, as far as they concern captures.
#[derive(Clone, Copy, Debug)]
enum PacketClass {
    /// A packet.
    Packet(PacketPlaces),
    /// A packet without its bytes.
    Bare,
    /// How many packets an interface dropped: places of its name and the counts.
    Counts([usize; 3]),
    /// Something else.
    Other,
}

/// The places of a packet's fields in its class.
#[derive(Clone, Copy, Debug)]
struct PacketPlaces {
    /// `None`: the packet's context has it.
    interface: Option<usize>,
    direction: usize,
    link: usize,
    length: usize,
    received: Option<usize>,
    data: usize,
}

impl PacketClass {
    fn of(name: &str, fields: &ClassFields) -> Self {
        let at = |field: &str| fields.position(field);
        let all = |fields: [&str; 3]| match fields.map(at) {
            [Some(first), Some(second), Some(third)] => Some([first, second, third]),
            _ => None,
        };
        if name == "kymo:packet_counts" {
            return all(["interface", "received", "dropped"]).map_or(Self::Other, Self::Counts);
        }
        let is_imported = name.starts_with("packet:");
        if name != "kymo:packet" && !is_imported {
            return Self::Other;
        }
        let interface = at("interface");
        match (all(["direction", "length", "link"]), at("data")) {
            (Some([direction, length, link]), Some(data)) if is_imported || interface.is_some() => {
                Self::Packet(PacketPlaces { interface, direction, link, length, received: at("received"), data })
            }
            _ if is_imported && at("captured").is_some() => Self::Bare,
            _ => Self::Other,
        }
    }
}

struct CaptureSink<W: Write> {
    capture: PcapngWriter<W>,
    filter: Option<PacketFilter>,
    /// By trace, class of data streams and class of events.
    classes: HashMap<(usize, usize, usize), PacketClass>,
    /// Drops by the names of interfaces, as events have counted them.
    drops: BTreeMap<String, InterfaceCounts>,
    /// The interface of a data stream that is one of an imported capture.
    streams: HashMap<usize, String>,
    /// Lost events by data stream.
    lost: BTreeMap<usize, u64>,
    latest: u64,
    written: WrittenCapture,
}

impl<W: Write> CaptureSink<W> {
    fn event(&mut self, batch: &MessageBatch, at: EventAt) -> io::Result<()> {
        let stream = &batch.facts().streams[batch.stream(at)];
        let key = (stream.trace, stream.class, batch.class(at));
        let class = *self.classes.entry(key).or_insert_with(|| {
            let class = &batch.facts().traces[key.0].class.stream_classes[key.1].event_classes[key.2];
            PacketClass::of(class.name.as_deref().unwrap_or_default(), batch.class_fields(at))
        });
        match class {
            PacketClass::Other => Ok(()),
            PacketClass::Bare => {
                self.written.without_bytes += 1;
                Ok(())
            }
            PacketClass::Counts([interface, received, dropped]) => {
                let name = text(batch.field(at, interface));
                let counts = InterfaceCounts {
                    received: Some(number(batch.field(at, received))),
                    dropped: number(batch.field(at, dropped)),
                };
                self.drops.insert(name.into_owned(), counts);
                Ok(())
            }
            PacketClass::Packet(places) => self.packet(batch, at, &places),
        }
    }

    fn packet(&mut self, batch: &MessageBatch, at: EventAt, places: &PacketPlaces) -> io::Result<()> {
        let of_stream = || {
            let fields = &batch.facts().streams[batch.stream(at)].packet_fields;
            fields.position("interface").and_then(|field| batch.packet_field(at, field))
        };
        let interface = match places.interface {
            Some(field) => text(batch.field(at, field)),
            None => text(of_stream()),
        };
        if places.interface.is_none() {
            self.streams.entry(batch.stream(at)).or_insert_with(|| interface.clone().into_owned());
        }
        let data = batch.field(at, places.data).and_then(|field| field.bytes()).unwrap_or_default();
        let length = number(batch.field(at, places.length)) as u32;
        let direction = match number(batch.field(at, places.direction)) {
            1 => PacketDirection::Inbound,
            2 => PacketDirection::Outbound,
            _ => PacketDirection::Unknown,
        };
        let link = number(batch.field(at, places.link)) as u16;
        let facts = PacketFacts { interface: &interface, direction, link, length, data };
        if self.filter.as_ref().is_some_and(|filter| !filter.keeps(&facts)) {
            self.written.filtered += 1;
            return Ok(());
        }
        let received = places.received.map(|field| number(batch.field(at, field))).filter(|time| *time > 0);
        let time = received.or_else(|| batch.nanos(at).and_then(|nanos| u64::try_from(nanos).ok()));
        self.written.timeless += u64::from(time.is_none());
        self.latest = time.unwrap_or(self.latest);
        self.written.packets += 1;
        self.written.cut += u64::from((data.len() as u64) < u64::from(length));
        match self.written.interfaces.get_mut(&*interface) {
            Some(count) => *count += 1,
            None => _ = self.written.interfaces.insert(interface.clone().into_owned(), 1),
        }
        self.capture.packet(&PcapngPacket { interface: &interface, link, direction, time: self.latest, length, data })
    }

    fn mark(&mut self, mark: &MarkMessage) {
        if mark.kind == MarkKind::DiscardedEvents {
            let lost = self.lost.entry(mark.stream).or_default();
            *lost = lost.saturating_add(mark.count.unwrap_or(0));
        }
    }

    fn finish(mut self, report: Report) -> io::Result<WrittenCapture> {
        // Lost events of an imported capture are packets that its interface dropped.
        for (stream, lost) in &self.lost {
            if let Some(interface) = self.streams.get(stream) {
                self.drops.entry(interface.clone()).or_default().dropped += lost;
            }
        }
        self.written.dropped = self.drops.values().map(|counts| counts.dropped).sum();
        for (interface, counts) in &self.drops {
            if counts.dropped > 0 || self.written.interfaces.contains_key(interface) {
                self.capture.counts(interface, *counts)?;
            }
        }
        self.capture.finish()?;
        self.written.report = report;
        Ok(self.written)
    }
}

fn number(field: Option<FieldRef<'_>>) -> u64 {
    match field.map(|field| field.value()) {
        Some(MessageValue::Unsigned(value)) => value,
        Some(MessageValue::Signed(value)) => value as u64,
        _ => 0,
    }
}

fn text(field: Option<FieldRef<'_>>) -> std::borrow::Cow<'_, str> {
    match field.map(|field| field.value()) {
        Some(MessageValue::Text(bytes, _)) => String::from_utf8_lossy(bytes),
        _ => std::borrow::Cow::Borrowed(""),
    }
}
