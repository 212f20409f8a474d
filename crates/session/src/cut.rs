//! A part of a trace as a trace of its own: some span of time, some classes of events.
//!
//! ```text
//! packet ──decode::tree──> values of its events ── in the span? of the classes? ──writer──> packet
//! ```
//!
//! The metadata stays as it is, or says the same in another dialect; where clocks are shifted, it
//! says so of them. Packets stay packets: one that is kept as a whole says what it said, one of
//! which some events are kept has times of its own, and one of which none is kept is left out.
//! Losses in the span stay told.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_decode::filter::StreamFilter;
use kymo_decode::tree::stream::{EventRecord, FileFault, PacketRecords, read_packet_at};
use kymo_format::{Dialect, TraceClass};
use kymo_ir::{PacketWindow, Records, SLACK, ScanStop};
use kymo_scan::{DataStream, PacketRow, Trace};
use kymo_writer::{EventParts, MetadataSource, PacketTimes, StreamWriter, TraceWriter, WriteProblem, WriterOptions};

use crate::answers::losses::losses;
use crate::open::metadata::MetadataForm;
use crate::open::progress::{Cancelled, Progress};
use crate::open::report::{Report, ReportProblem};
use crate::open::select::Selection;
use crate::open::{Session, trace_name};

/// The part to keep.
#[derive(Clone, Debug, Default)]
pub struct CutOptions {
    /// Nothing before this time.
    pub begin_ns: Option<i64>,
    /// Nothing after this time.
    pub end_ns: Option<i64>,
    /// Only these events.
    pub selection: Selection,
    /// In which dialect the metadata are written; the bytes of packets mean the same in each.
    pub form: MetadataForm,
}

/// The kept part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cut {
    /// Events.
    pub events: u64,
    /// The unreadable parts of the original.
    pub report: Report,
}

/// Why nothing can be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct CutFailure {
    /// The folder.
    pub path: PathBuf,
    /// The problem.
    pub problem: CutProblem,
}

/// A problem that keeps a part of a trace from being written.
#[derive(Debug, thiserror::Error)]
pub enum CutProblem {
    /// Nothing is written over.
    #[error("there is a trace already: choose another folder, or remove this one")]
    Exists,
    /// The writer's error.
    #[error("{0}")]
    Writer(kymo_writer::WriteError),
    /// The request was canceled; data that is written already stays.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The dialect has no words for this trace class.
    #[error("the metadata cannot be written in this dialect: {0}")]
    Dialect(Box<kymo_format::write::Unwritable>),
}

impl From<kymo_writer::WriteError> for CutProblem {
    fn from(error: kymo_writer::WriteError) -> Self {
        match &error.problem {
            WriteProblem::File { error, .. } if error.kind() == io::ErrorKind::AlreadyExists => Self::Exists,
            _ => Self::Writer(error),
        }
    }
}

impl Session {
    /// Writes a part of the trace into the folder; several traces go into folders below it, which are called as those
    /// that the traces are in.
    ///
    /// # Errors
    ///
    /// The folder has a trace already, or cannot be written; or it was canceled.
    pub fn cut(&self, options: &CutOptions, output: &Path, progress: &Progress) -> Result<Cut, CutFailure> {
        self.expect(progress, options.begin_ns, options.end_ns);
        let mut cut = Cut { events: 0, report: self.opening_report().clone() };
        let mut filters = self.filters(&options.selection).into_iter();
        for (trace, folder) in self.traces.iter().zip(folders(&self.traces)) {
            let path = output.join(folder);
            cut_trace(trace, options, &mut filters, &path, &mut cut, progress)
                .map_err(|problem| CutFailure { path, problem })?;
        }
        Ok(cut)
    }
}

/// The folders of traces: several are as they are below the folder or the archive that the user named, of which each has a
/// folder if there are several.
fn folders(traces: &[Arc<Trace>]) -> Vec<PathBuf> {
    if traces.len() == 1 {
        return vec![PathBuf::new()];
    }
    let named = |trace: &Arc<Trace>| {
        let below = trace.folder.below().components().count();
        trace.folder.path().ancestors().nth(below).unwrap_or(Path::new("")).to_owned()
    };
    let is_one = traces.windows(2).all(|pair| named(&pair[0]) == named(&pair[1]));
    let (mut names, mut known) = (FolderNames::default(), BTreeMap::new());
    let folder = |trace: &Arc<Trace>| {
        let below = trace.folder.below();
        let mut own = || PathBuf::from(names.unlike(&trace_name(&named(trace))));
        match below.as_os_str().is_empty() {
            true => own(),
            false if is_one => below.to_owned(),
            false => known.entry(named(trace)).or_insert_with(own).join(below),
        }
    };
    traces.iter().map(folder).collect()
}

/// `filters`: for each stream of this trace and of those behind it.
fn cut_trace(
    trace: &Trace,
    options: &CutOptions,
    filters: &mut impl Iterator<Item = Option<Arc<StreamFilter>>>,
    path: &Path,
    cut: &mut Cut,
    progress: &Progress,
) -> Result<(), CutProblem> {
    let metadata = MetadataSource::Text(metadata_text(trace, options.form)?);
    let writing = WriterOptions { metadata, packet_bytes: u64::MAX, index: true };
    let writer = TraceWriter::create(path, &trace.class, writing)?;
    let mut names = FolderNames::default();
    for stream in &trace.streams {
        let filter = filters.next().flatten();
        let Some(&file) = stream.files.first() else { continue };
        let name = names.unlike(&trace_name(trace.folder.stream(file as usize).path()));
        let into = writer.stream(stream.class, stream.id, &name)?;
        StreamCut { trace, stream, options, filter, into, clock: 0, last: 0, owed: false, begun: false }
            .run(cut, progress)?;
    }
    Ok(())
}

/// The metadata of the part. Its events have the times that they have here, also where clocks are shifted, but for less than a cycle.
fn metadata_text(trace: &Trace, form: MetadataForm) -> Result<String, CutProblem> {
    let form = match (form, trace.class.dialect) {
        (MetadataForm::AsIs, _) if trace.clock_shift_ns == 0 => return Ok(as_it_is(trace)),
        (MetadataForm::AsIs, Dialect::Ctf1) => MetadataForm::Tsdl,
        (MetadataForm::AsIs, Dialect::Ctf2 | Dialect::Ctf2Candidate) => MetadataForm::Ctf2,
        (form, _) => form,
    };
    let mut class = TraceClass::clone(&trace.class);
    if trace.clock_shift_ns != 0 {
        for clock in &mut class.clock_classes {
            let (seconds, cycles) = clock.offset_ahead(trace.clock_shift_ns);
            (clock.offset_s, clock.offset_cycles) = (seconds, cycles.into());
        }
    }
    let text = if form == MetadataForm::Tsdl {
        kymo_format::write::to_tsdl(&class)
    } else {
        kymo_format::write::to_json(&class)
    };
    text.map_err(|error| CutProblem::Dialect(Box::new(error)))
}

/// The text of the metadata. Metadata packets do without the signature, by which text on its own is known.
fn as_it_is(trace: &Trace) -> String {
    let (text, signature) = (&trace.metadata.text, "/* CTF 1.8 */\n");
    let is_known = trace.class.dialect != Dialect::Ctf1 || text.starts_with(signature.trim_end_matches(" */\n"));
    if is_known { text.clone() } else { [signature, text].concat() }
}

/// Names in a folder.
#[derive(Default)]
struct FolderNames(BTreeSet<String>);

impl FolderNames {
    /// The name, with a number behind it where there is such a one already.
    fn unlike(&mut self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let fresh = std::iter::once(name.to_owned()).chain(numbered).find(|name| !self.0.contains(name));
        let fresh = fresh.expect("there are more numbers than names");
        self.0.insert(fresh.clone());
        fresh
    }
}

/// Packets are cut as a whole: their values take some fifty times as much memory.
const PACKET_BYTES_MAX: u64 = 128 << 20;

/// Records that are found in one go.
const ROWS: usize = 4096;

/// Why nothing of a packet is read.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("{}", .0.kind)]
    Source(#[from] kymo_source::SourceError),
    #[error("the packet has {0} bytes; those of more than {PACKET_BYTES_MAX} are not cut")]
    Large(u64),
}

/// A packet as far as it can be read.
struct ReadPacket {
    packet: PacketRecords,
    /// What ended it early.
    fault: Option<FileFault>,
    /// The numbers of its events that the filter keeps; `None`: all.
    chosen: Option<HashSet<usize>>,
}

struct StreamCut<'a> {
    trace: &'a Trace,
    stream: &'a DataStream,
    options: &'a CutOptions,
    filter: Option<Arc<StreamFilter>>,
    into: StreamWriter,
    clock: u64,
    /// Time of the last event that was written or of the last losses, in cycles.
    last: u64,
    /// Losses are not told yet.
    owed: bool,
    /// A packet was written.
    begun: bool,
}

impl StreamCut<'_> {
    fn run(mut self, cut: &mut Cut, progress: &Progress) -> Result<(), CutProblem> {
        let wanted = self.stream.packets_between(self.options.begin_ns, self.options.end_ns);
        losses(self.stream, wanted.clone(), &mut cut.report);
        for number in wanted {
            progress.whole(())?;
            let row = self.stream.packets.get(number);
            let before = number.checked_sub(1).map(|before| self.stream.packets.get(before));
            self.losses(before, &row)?;
            match self.read(&row) {
                Ok(read) => {
                    cut.events += self.write(&row, &read)?;
                    if let Some(fault) = read.fault {
                        cut.report.unreadable.push(self.problem(&row, &fault));
                    }
                }
                Err(error) => cut.report.unreadable.push(self.problem(&row, &error)),
            }
            progress.add(row.total_bits / 8);
        }
        if self.owed {
            self.into.packet_times(PacketTimes::default());
            self.into.empty_packet(self.last)?;
        }
        Ok(())
    }

    fn losses(&mut self, before: Option<PacketRow>, row: &PacketRow) -> Result<(), kymo_writer::WriteError> {
        let counters = self.stream.counters;
        // What a stream's first packet tells was lost before it or in it; its sequence number tells nothing.
        let Some(before) = before else {
            self.discarded(row.discarded.unwrap_or(0), row);
            return Ok(());
        };
        if let Some(lost) = counters.lost_packets(Some(&before), row).and_then(|loss| loss.count) {
            self.into.lost_packets(lost)?;
        }
        self.discarded(counters.lost_events(Some(&before), row).and_then(|loss| loss.count).unwrap_or(0), row);
        Ok(())
    }

    /// Counts losses; should no event that is kept follow, they are told at the packet's beginning.
    fn discarded(&mut self, count: u64, row: &PacketRow) {
        self.into.discarded(count);
        if count > 0 {
            self.owed = true;
            self.last = self.last.max(row.begin_cycles.unwrap_or(0));
        }
    }

    fn read(&mut self, row: &PacketRow) -> Result<ReadPacket, Unread> {
        let size = row.total_bits / 8;
        if size > PACKET_BYTES_MAX {
            return Err(Unread::Large(size));
        }
        let mut bytes = vec![0; size as usize];
        let got = self.trace.folder.stream(row.file as usize).read_at(row.offset_bytes, &mut bytes)?;
        bytes.truncate(got);
        self.clock = row.begin_cycles.unwrap_or(self.clock);
        let clock = self.clock;
        let (packet, fault) = read_packet_at(&self.trace.class, &bytes, &mut self.clock);
        let chosen = self.filter.as_ref().map(|filter| self.chosen(filter, row, bytes, clock));
        Ok(ReadPacket { packet, fault, chosen })
    }

    /// The numbers of the events in a packet that the filter keeps.
    fn chosen(&self, filter: &StreamFilter, row: &PacketRow, mut bytes: Vec<u8>, clock: u64) -> HashSet<usize> {
        let bits = bytes.len() as u64 * 8;
        bytes.resize(bytes.len() + SLACK, 0);
        let decoder = &self.trace.decoder;
        let Ok(head) = decoder.head(PacketWindow::new(&bytes, 0, bits), clock) else { return HashSet::new() };
        // The row may be of an index file that is wrong.
        let window = PacketWindow::new(&bytes, 0, head.content_bits.unwrap_or(row.content_bits).min(bits));
        let mut state = decoder.state(&head, clock);
        let mut asked = decoder.state(&head, clock);
        filter.enter(&head, window, &mut asked);
        let (mut position, mut records) = (head.body_start, Records::default());
        loop {
            let limit = records.len() + ROWS;
            let stop = decoder.scan(head.stream_class, window, &mut position, &mut state, &mut records, limit);
            if stop != ScanStop::Full {
                break;
            }
        }
        let mut keeps = |record: &usize| {
            let (class, at) = (records.classes[*record] as usize, records.positions[*record]);
            filter.keeps(class, window, at, records.cycles[*record], &mut asked).unwrap_or(false)
        };
        (0..records.len()).filter(|record| keeps(record)).collect()
    }

    fn problem(&self, row: &PacketRow, what: &dyn std::fmt::Display) -> ReportProblem {
        let place = self.trace.folder.stream(row.file as usize).path().display().to_string();
        ReportProblem { place, message: format!("packet at byte {}: {what}", row.offset_bytes) }
    }

    fn write(&mut self, row: &PacketRow, read: &ReadPacket) -> Result<u64, kymo_writer::WriteError> {
        let ReadPacket { packet, chosen, fault } = read;
        let is_kept = |(number, record): (usize, &EventRecord)| {
            self.is_in_span(record) && chosen.as_ref().is_none_or(|chosen| chosen.contains(&number))
        };
        let kept: Vec<bool> = packet.events.iter().enumerate().map(is_kept).collect();
        let is_whole = fault.is_none() && kept.iter().all(|is_kept| *is_kept);
        let times = PacketTimes { begin: row.begin_cycles, end: row.end_cycles };
        self.into.packet_times(if is_whole { times } else { PacketTimes::default() });
        // The numbers of the copy begin where those of the original do.
        if let (false, Some(sequence)) = (self.begun, row.sequence) {
            self.into.sequence(sequence);
        }
        if let Some(header) = &packet.header {
            self.into.packet_header(header);
        }
        if let Some(context) = &packet.context {
            self.into.packet_context(context);
        }
        let mut events = 0;
        for (record, _) in packet.events.iter().zip(&kept).filter(|(_, is_kept)| **is_kept) {
            let event = EventParts {
                header: record.header.as_ref(),
                common: record.common.as_ref(),
                specific: record.specific.as_ref(),
                payload: record.payload.as_ref(),
            };
            // Where events between were left out the clock leaps, and the header may need its longer form,
            // which the original header is none of. A file that cannot be written is no matter of the header.
            match self.into.event(record.cycles, record.class, &event) {
                Err(error) if !matches!(error.problem, WriteProblem::File { .. } | WriteProblem::SinglePacket) => {
                    self.into.event(record.cycles, record.class, &EventParts { header: None, ..event })?;
                }
                written => written?,
            }
            self.last = record.cycles;
            events += 1;
        }
        // A packet that never had events is one of the whole, and not of some events.
        let is_empty = packet.events.is_empty() && is_whole && self.filter.is_none();
        if is_empty {
            self.into.empty_packet(row.begin_cycles.unwrap_or(self.last))?;
        }
        self.owed &= events == 0 && !is_empty;
        self.begun |= events > 0 || is_empty;
        self.into.flush()?;
        Ok(events)
    }

    fn is_in_span(&self, record: &EventRecord) -> bool {
        let time = self.stream.clock.map(|clock| clock.nanos_saturating(record.cycles));
        let begins = || self.options.begin_ns.zip(time).is_none_or(|(begin, time)| time >= begin);
        let ends = || self.options.end_ns.zip(time).is_none_or(|(end, time)| time <= end);
        begins() && ends()
    }
}

#[cfg(test)]
mod tests;
