//! One trace opened: its metadata understood, its packets found, its data streams known.
//!
//! ```text
//! files      chan_0_0  chan_0_1  chan_1_0         a data stream may lie in several files
//! streams    └── class 0, id 0 ─┘└ class 0, id 1
//! ```

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use kymo_decode::filter::StreamFilter;
use kymo_decode::{ClockConverter, Compile, Decoder, LowerError};
use kymo_format::{ParsedMetadata, TraceClass};
use kymo_source::TraceFolder;

use crate::index::{HopError, PacketRow, Packets, hop_on, rows_of_lttng_index};
use crate::losses::CounterBits;
use crate::quirks;

/// Packets of a file that are remembered from an earlier run.
pub trait KnownPackets {
    /// The packets of file number `file`, if they are known and the file is still the same; only the first
    /// ones if it grew since.
    fn recall(&self, folder: &TraceFolder, file: usize) -> Option<Packets>;
    /// The packets of file number `file` were found.
    fn remember(&self, folder: &TraceFolder, file: usize, packets: &Packets);
    /// Packets of so many more bytes were found; called after each read of a packet's head.
    fn found(&self, _bytes: u64) {}
}

/// No packets are remembered.
#[derive(Debug)]
pub struct NothingKnown;

impl KnownPackets for NothingKnown {
    fn recall(&self, _: &TraceFolder, _: usize) -> Option<Packets> {
        None
    }
    fn remember(&self, _: &TraceFolder, _: usize, _: &Packets) {}
}

/// A trace that is open for reading.
#[derive(Debug)]
pub struct Trace {
    /// Where its bytes are.
    pub folder: TraceFolder,
    /// The trace's class.
    pub class: Arc<TraceClass>,
    /// The metadata with everything that is wrong or doubtful in it.
    pub metadata: ParsedMetadata,
    /// Reads its packets.
    pub decoder: Arc<Decoder>,
    /// Its data streams, in Babeltrace's order for ties in time.
    pub streams: Vec<DataStream>,
    /// Files with packets found only up to a fault.
    pub broken_files: Arc<[BrokenFile]>,
    /// Nanoseconds that its clocks are taken to be ahead of their description; those of its streams
    /// are so already.
    pub clock_shift_ns: i64,
    options: TraceOptions,
    metadata_hash: u64,
}

/// One data stream.
#[derive(Clone, Debug)]
pub struct DataStream {
    /// Index of its class.
    pub class: usize,
    /// Its id, where packets name it.
    pub id: Option<u64>,
    /// Numbers of its files.
    pub files: Vec<u32>,
    /// Its packets, in the order of time.
    pub packets: Arc<Packets>,
    /// Converts its clock; `None` if it has none.
    pub clock: Option<ClockConverter>,
    /// How its counters of losses wrap.
    pub counters: CounterBits,
}

impl DataStream {
    /// The packets that may have events between two times, found by binary search.
    ///
    /// Where packets carry no begin time, all of them may.
    #[must_use]
    pub fn packets_between(&self, begin_ns: Option<i64>, end_ns: Option<i64>) -> Range<usize> {
        let all = 0..self.packets.len();
        if begin_ns.is_none() && end_ns.is_none() {
            return all;
        }
        let Some(clock) = &self.clock else { return all };
        if !self.packets.have_begins() {
            return all;
        }
        let begin_of =
            |packet: &PacketRow| packet.begin_cycles.map_or(i64::MIN, |cycles| clock.nanos_saturating(cycles));
        let end_of = |packet: &PacketRow| packet.end_cycles.map_or(i64::MAX, |cycles| clock.nanos_saturating(cycles));
        let end = end_ns.map_or(all.end, |end| self.packets.partition_point(|packet| begin_of(packet) <= end));
        let Some(begin) = begin_ns else { return 0..end };
        // The packet that begins before may still have events after; so may others before it that end late.
        let mut start = self.packets.partition_point(|packet| begin_of(packet) < begin).saturating_sub(1);
        while start > 0 && end_of(&self.packets.get(start - 1)) >= begin {
            start -= 1;
        }
        start.min(end)..end
    }

    /// The cycles between which the events of a packet are, as far as its tracer can be believed.
    #[must_use]
    pub fn times(&self, class: &TraceClass, packet: usize) -> Option<(u64, u64)> {
        quirks::times(class, &self.packets.get(packet), packet + 1 == self.packets.len())
    }

    /// As [`Self::packets_between`], without the first and the last packets in which the filter finds nothing at their
    /// time.
    #[must_use]
    pub fn packets_for(
        &self,
        begin_ns: Option<i64>,
        end_ns: Option<i64>,
        filter: Option<&StreamFilter>,
    ) -> Range<usize> {
        let wanted = self.packets_between(begin_ns, end_ns);
        let Some(filter) = filter else { return wanted };
        let times = |number: &usize| self.times(filter.decoder().trace_class(), *number);
        let may_match = |number: &usize| times(number).is_none_or(|times| filter.may_match_between(times));
        let start = wanted.clone().find(may_match).unwrap_or(wanted.end);
        let end = (start..wanted.end).rev().find(may_match).map_or(start, |last| last + 1);
        start..end
    }
}

/// A file with packets that cannot all be found.
#[derive(Debug)]
pub struct BrokenFile {
    /// Its number.
    pub file: usize,
    /// The error that ended it.
    pub error: HopError,
}

/// Why a trace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its files cannot be read.
    #[error("{0}")]
    Source(#[from] kymo_source::SourceError),
    /// Its metadata has errors.
    #[error("the metadata has errors")]
    Metadata(Box<ParsedMetadata>),
    /// A field class cannot be decoded.
    #[error("{0}")]
    Class(#[from] LowerError),
}

/// How a trace is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Nanoseconds that every clock is ahead.
    pub clock_shift_ns: i64,
    /// Whether programs may become machine code.
    pub compile: Compile,
}

impl Trace {
    /// Whether a stream ends with the last event of its last packet, regardless of that packet's
    /// end.
    #[must_use]
    pub fn ends_with_last_event(&self, last: &PacketRow) -> bool {
        quirks::last_end_is_doubtful(&self.class, last)
    }

    /// The same trace, with more packets known for some of its streams, given by their numbers.
    #[must_use]
    pub fn with_packets(&self, packets: Vec<(usize, Packets)>) -> Self {
        let mut streams = self.streams.clone();
        packets.into_iter().for_each(|(stream, packets)| streams[stream].packets = Arc::new(packets));
        let (folder, class, metadata) = (self.folder.clone(), Arc::clone(&self.class), self.metadata.clone());
        let (decoder, broken_files) = (Arc::clone(&self.decoder), Arc::clone(&self.broken_files));
        Self { folder, class, metadata, decoder, streams, broken_files, ..*self }
    }

    /// Opens a trace.
    ///
    /// # Errors
    ///
    /// An error that makes every event of it unreadable; one that makes only some unreadable stands
    /// in [`Trace::broken_files`] or comes up in reading.
    pub fn open(folder: TraceFolder, options: TraceOptions, known: &dyn KnownPackets) -> Result<Self, OpenError> {
        Self::open_again(folder, options, known, None)
    }

    /// Opens a trace that was open before: as long as its metadata is the same, the decoder of its
    /// packets is the same, too, with its machine code.
    ///
    /// # Errors
    ///
    /// As [`Trace::open`].
    pub fn open_again(
        folder: TraceFolder,
        options: TraceOptions,
        known: &dyn KnownPackets,
        before: Option<&Self>,
    ) -> Result<Self, OpenError> {
        let bytes = folder.metadata()?;
        let metadata_hash = hash(&bytes);
        let same = before.filter(|before| (before.options, before.metadata_hash) == (options, metadata_hash));
        let (class, metadata, decoder) = match same {
            Some(same) => (Arc::clone(&same.class), same.metadata.clone(), Arc::clone(&same.decoder)),
            None => {
                let mut metadata = kymo_format::parse(&bytes);
                let Some(class) = metadata.trace_class.take() else {
                    return Err(OpenError::Metadata(Box::new(metadata)));
                };
                let class = Arc::new(class);
                let decoder = Arc::new(Decoder::new(Arc::clone(&class), options.compile)?);
                (class, metadata, decoder)
            }
        };
        let mut broken_files = Vec::new();
        let files = index(&folder, &decoder, known, &mut broken_files)?;
        let mut streams = group(files);
        for stream in &mut streams {
            let clock = class.stream_classes[stream.class].default_clock;
            stream.counters = CounterBits::of(&class.stream_classes[stream.class]);
            stream.clock = clock.map(|clock| ClockConverter::new(&class.clock_classes[clock], options.clock_shift_ns));
            let packets = Arc::unwrap_or_clone(std::mem::take(&mut stream.packets));
            stream.packets = Arc::new(quirks::mend(&class, packets));
        }
        let (clock_shift_ns, broken_files) = (options.clock_shift_ns, broken_files.into());
        Ok(Self { folder, class, metadata, decoder, streams, broken_files, clock_shift_ns, options, metadata_hash })
    }
}

/// The same for the same bytes, as long as this program runs.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// The packets of every file.
fn index(
    folder: &TraceFolder,
    decoder: &Decoder,
    known: &dyn KnownPackets,
    broken: &mut Vec<BrokenFile>,
) -> Result<Vec<Packets>, OpenError> {
    let mut files = Vec::new();
    for (file, entry) in folder.streams().iter().enumerate() {
        let recalled = known.recall(folder, file);
        if recalled.as_ref().is_some_and(|rows| rows.last().map_or(0, |row| row.end_bytes()) == entry.size) {
            files.extend(recalled);
            continue;
        }
        let stream = folder.stream(file);
        let begun = recalled.or_else(|| {
            // An index that cannot be read or does not agree with the data is no loss: the data is
            // complete.
            let index = folder.index_file(file).ok()??;
            rows_of_lttng_index(decoder, &stream, file as u32, entry.size, &index).ok().map(Packets::from_iter)
        });
        let (rows, error) = hop_on(decoder, &stream, file as u32, entry.size, begun.unwrap_or_default(), &|row| {
            known.found(row.total_bits / 8);
        });
        match error {
            Some(error) => broken.push(BrokenFile { file, error }),
            None => known.remember(folder, file, &rows),
        }
        files.push(rows);
    }
    Ok(files)
}

/// Puts packets of one data stream together, in any files.
fn group(files: Vec<Packets>) -> Vec<DataStream> {
    // Without an id each file is a stream of its own, after those with ids, in the order of names.
    type Key = (u32, bool, u64);
    let mut groups: BTreeMap<Key, Vec<OfFile>> = BTreeMap::new();
    for (file, packets) in files.into_iter().enumerate() {
        let key = |row: &PacketRow| (row.stream_class, row.stream_id.is_none(), row.stream_id.unwrap_or(file as u64));
        let Some(first) = packets.first() else { continue };
        // Thousands of packets are checked only once.
        let (mut is_one, mut is_sorted, mut before) = (true, true, first);
        for row in &packets {
            is_one &= key(&row) == key(&first);
            // A packet without times lies where its file has it.
            if !quirks::has_no_times(&row) {
                is_sorted &= time(&before) <= time(&row);
                before = row;
            }
        }
        if is_one {
            groups.entry(key(&first)).or_default().push(OfFile { packets, is_sorted });
            continue;
        }
        let mut parts: BTreeMap<Key, Packets> = BTreeMap::new();
        packets.iter().for_each(|row| parts.entry(key(&row)).or_default().push(row));
        for (key, packets) in parts {
            groups.entry(key).or_default().push(OfFile { packets, is_sorted });
        }
    }
    let of_group = |((class, nameless, id), files): (Key, Vec<OfFile>)| {
        let id = (!nameless).then_some(id);
        streams(files).into_iter().map(move |packets| stream(class, id, packets))
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// The part of a data stream in a file.
struct OfFile {
    packets: Packets,
    /// They lie in the order of time.
    is_sorted: bool,
}

fn time(row: &PacketRow) -> (Option<u64>, Option<u64>) {
    (row.begin_cycles, row.sequence)
}

/// The packets of several files in the order of time. Files with packets of the same time are no
/// parts of one stream, even if they give it the same id.
fn streams(files: Vec<OfFile>) -> Vec<Packets> {
    let is_sorted = matches!(&files[..], [OfFile { is_sorted: true, .. }]);
    let mut files: Vec<Packets> = files.into_iter().map(|file| file.packets).collect();
    if is_sorted {
        return files;
    }
    let mut rows: Vec<PacketRow> = files.iter().flat_map(Packets::iter).collect();
    rows.sort_by_key(time);
    let overlap = |pair: &[PacketRow]| {
        let overlaps = matches!((pair[0].end_cycles, pair[1].begin_cycles), (Some(end), Some(begin)) if begin < end);
        pair[0].file != pair[1].file && overlaps && !same_packet(&pair[0], &pair[1])
    };
    if !rows.windows(2).any(overlap) {
        rows.dedup_by(|row, before| same_packet(row, before));
        return vec![rows.into_iter().collect()];
    }
    for file in &mut files {
        let mut rows: Vec<PacketRow> = file.iter().collect();
        rows.sort_by_key(time);
        *file = rows.into_iter().collect();
    }
    files
}

fn stream(class: u32, id: Option<u64>, packets: Packets) -> DataStream {
    let mut files: Vec<u32> = Vec::new();
    for row in &packets {
        if files.last() != Some(&row.file) {
            files.push(row.file);
        }
    }
    files.sort_unstable();
    files.dedup();
    DataStream {
        class: class as usize,
        id,
        files,
        packets: Arc::new(packets),
        clock: None,
        counters: CounterBits::default(),
    }
}

/// Overlapping snapshots hold the same packet several times.
fn same_packet(row: &PacketRow, other: &PacketRow) -> bool {
    row.file != other.file
        && row.begin_cycles.is_some()
        && (row.begin_cycles, row.end_cycles, row.total_bits, row.content_bits, row.sequence, row.discarded)
            == (
                other.begin_cycles,
                other.end_cycles,
                other.total_bits,
                other.content_bits,
                other.sequence,
                other.discarded,
            )
}
