//! Walks one data stream from packet to packet and delivers its events in batches, its marks between them.
//!
//! ```text
//! file   ─[head|events.........][head|events...]─     a chunk is what one read brings into memory:
//! chunk    └────────┘└────────┘└───────────┘          part of a packet, or several packets
//! batch    └──┘└────┘└──┘└────┘└────┘ └────┘          at most BATCH_ROWS events of one chunk and packet
//! ```
//!
//! A record that does not end inside its chunk is read again from a new chunk that begins with
//! it. An unreadable part ends its packet: the events before it are delivered, then a fault, then
//! the next packet.

use std::sync::Arc;

use kymo_decode::filter::StreamFilter;
use kymo_decode::{Decoder, PacketHead};
use kymo_ir::{PacketWindow, ReadState, Records, ScanStop};
use kymo_source::{Buffer, BufferPool, ByteSource};

use crate::batch::{BatchContent, BatchEvents, Mark, Packet, StreamBatch};
use crate::fault::{StreamFault, StreamFaultKind};
use crate::index::{HeadReader, PacketRow, PacketRowPlace, Packets};
use crate::keys::KeyMaker;
use crate::losses::{CounterBits, ahead};
use crate::quirks;
use crate::slices::{Slice, SliceBounds};
use crate::stop::StopFlag;

/// Events of a batch at most.
const BATCH_ROWS: usize = 4096;
/// Events of the first batch at most. Each one may have so many times as many as the one before: a
/// caller that wants a few events does not wait for thousands.
const FIRST_ROWS: usize = 64;
const GROWTH: usize = 8;
/// Bytes of the first chunk; the same goes for them.
const FIRST_BYTES: usize = 16 << 10;
/// Bytes of a chunk about where a slice ends.
const LAST_BYTES: usize = 16 << 10;
/// A record that needs more bytes than this is refused.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// The input of a cursor and its options.
#[derive(Debug)]
pub struct CursorSetup {
    /// Reads packets.
    pub decoder: Arc<Decoder>,
    /// The files that its packets lie in, by their number.
    pub files: Vec<(u32, ByteSource)>,
    /// All packets of the stream in the order of time.
    pub packets: Arc<Packets>,
    /// Which of `packets` to read.
    pub wanted: std::ops::Range<usize>,
    /// Rank of the stream.
    pub stream: usize,
    /// Makes merge keys.
    pub keys: KeyMaker,
    /// How the counters of losses wrap.
    pub counters: CounterBits,
    /// Bytes of a chunk, about.
    pub chunk_bytes: usize,
    /// Deliver marks too.
    pub marks: bool,
    /// Which events are delivered; `None`: all are.
    pub filter: Option<Arc<StreamFilter>>,
    /// Ends it before its time.
    pub stop: StopFlag,
}

/// The walk over one data stream.
#[derive(Debug)]
pub struct Cursor {
    setup: CursorSetup,
    pool: BufferPool,
    next_packet: usize,
    /// Where that is in the index.
    place: PacketRowPlace,
    /// The packet before.
    row_before: Option<PacketRow>,
    current: Option<CurrentPacket>,
    chunk: Option<FileChunk>,
    clock: u64,
    heads: HeadReader,
    pending: std::collections::VecDeque<CursorItem>,
    begun: bool,
    ended: bool,
    uuid_differs: bool,
    /// Packets may begin after their first event.
    begins_are_doubtful: bool,
    /// Packets may end before their last event.
    ends_are_doubtful: bool,
    /// The end of the packet that was read last, by its own account.
    end_before: Option<u64>,
    spare: Vec<(Records, Vec<i64>)>,
    batch_rows: usize,
    /// Bytes of the next chunk.
    reach: usize,
    /// The slice that is read, if not everything.
    bounds: Option<SliceBounds>,
    strays: bool,
}

/// The packet that is being read.
#[derive(Debug)]
struct CurrentPacket {
    packet: Arc<Packet>,
    state: ReadState,
    position: u64,
    /// Its beginning is not reported yet.
    owes_begin: bool,
}

/// Bytes of a file in memory.
#[derive(Debug)]
struct FileChunk {
    file: u32,
    offset_bytes: u64,
    bytes: Buffer,
}

/// An item that a cursor delivers.
#[derive(Debug)]
pub enum CursorItem {
    /// Events or a mark.
    Batch(StreamBatch),
    /// An unreadable part; the data behind it may still be readable.
    Fault(StreamFault),
}

impl Cursor {
    /// A cursor before the first wanted packet.
    #[must_use]
    pub fn new(setup: CursorSetup, pool: BufferPool) -> Self {
        Self {
            next_packet: setup.wanted.start,
            place: setup.packets.place(setup.wanted.start),
            row_before: setup.wanted.start.checked_sub(1).map(|number| setup.packets.get(number)),
            pool,
            current: None,
            chunk: None,
            clock: 0,
            heads: HeadReader::default(),
            pending: std::collections::VecDeque::new(),
            begun: false,
            ended: false,
            uuid_differs: false,
            begins_are_doubtful: quirks::begins_are_doubtful(setup.decoder.trace_class()),
            ends_are_doubtful: quirks::ends_are_doubtful(setup.decoder.trace_class()),
            end_before: None,
            spare: Vec::new(),
            batch_rows: FIRST_ROWS,
            reach: FIRST_BYTES.min(setup.chunk_bytes),
            bounds: None,
            strays: false,
            setup,
        }
    }

    /// Goes to a slice, to deliver its events and the losses before packets that begin in it; no
    /// other marks.
    pub fn enter(&mut self, slice: &Slice) {
        let wanted = slice.wanted[self.setup.stream].clone();
        self.next_packet = wanted.start;
        self.place = self.setup.packets.place(wanted.start);
        self.row_before = wanted.start.checked_sub(1).map(|number| self.setup.packets.get(number));
        self.setup.wanted = wanted;
        self.setup.keys.restart();
        self.clock = self.row_before.and_then(|row| row.end_cycles).unwrap_or(0);
        (self.current, self.end_before) = (None, None);
        self.pending.clear();
        (self.begun, self.ended) = (true, true);
        self.bounds = Some(SliceBounds { begin: slice.begin, end: slice.end });
        if self.setup.wanted.is_empty() {
            // Others have use for it.
            self.chunk = None;
            self.spare = Vec::new();
        }
    }

    /// Keys of the events from now on are for measuring intervals, or only for order: see
    /// [`KeyMaker`]. Events whose time does not fit are left out then.
    pub fn set_for_intervals(&mut self, is_for_intervals: bool) {
        self.setup.keys.set_for_intervals(is_for_intervals);
    }

    /// Whether they are.
    #[must_use]
    pub fn is_for_intervals(&self) -> bool {
        self.setup.keys.is_for_intervals()
    }

    /// Whether an event was or may have been outside of the time of its packet in the slices so
    /// far: then events may be missing from them.
    #[must_use]
    pub fn strays(&self) -> bool {
        self.strays || self.begins_are_doubtful
    }

    /// Rank of the stream.
    #[must_use]
    pub fn stream(&self) -> usize {
        self.setup.stream
    }

    /// Events of the next batch at most.
    #[must_use]
    pub fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// How often the stream's clock stepped back so far.
    #[must_use]
    pub fn steps_back(&self) -> u64 {
        self.setup.keys.steps_back()
    }

    /// Whether the stream's clock was set back so far.
    #[must_use]
    pub fn clock_was_set_back(&self) -> bool {
        self.setup.keys.was_set_back()
    }

    /// How many events have a time that does not fit 64 bits of nanoseconds.
    #[must_use]
    pub fn times_out_of_range(&self) -> u64 {
        self.setup.keys.out_of_range()
    }

    /// Whether a packet had another UUID than the metadata.
    #[must_use]
    pub fn uuid_differs(&self) -> bool {
        self.uuid_differs
    }

    /// The next batch or fault; `None` at the stream's end, or when it was stopped.
    pub fn next_item(&mut self) -> Option<CursorItem> {
        loop {
            // Not only where records are found: a filter may drop everything.
            if self.setup.stop.is_raised() {
                return None;
            }
            if let Some(item) = self.pending.pop_front() {
                return Some(item);
            }
            if !self.begun {
                self.begun = true;
                self.mark(Mark::StreamBegin, None);
            } else if self.current.is_some() {
                self.read_events();
            } else if self.next_packet < self.setup.wanted.end {
                self.open_packet();
            } else if self.ended {
                return None;
            } else {
                self.ended = true;
                self.mark(Mark::StreamEnd, None);
            }
        }
    }

    /// Gives memory back for later batches.
    pub fn recycle(&mut self, batch: StreamBatch) {
        if let BatchContent::Events(events) = batch.content {
            self.spare.push((events.records, batch.keys));
        }
    }

    fn mark(&mut self, mark: Mark, cycles: Option<u64>) {
        let is_wanted = self.bounds.is_none() || matches!(mark, Mark::DiscardedEvents(_) | Mark::DiscardedPackets(_));
        if self.setup.marks && is_wanted {
            let keys = vec![self.setup.keys.mark(cycles)];
            self.pending.push_back(CursorItem::Batch(StreamBatch {
                stream: self.setup.stream,
                content: BatchContent::Mark(mark),
                keys,
            }));
        }
    }

    fn fault(&mut self, row: &PacketRow, kind: StreamFaultKind) {
        let number = self.next_packet as u64 - 1;
        let fault = StreamFault {
            stream: self.setup.stream,
            file: row.file,
            packet: number,
            offset_bytes: row.offset_bytes,
            kind,
        };
        self.pending.push_back(CursorItem::Fault(fault));
    }

    /// Reads the head of the next packet.
    fn open_packet(&mut self) {
        let number = self.next_packet;
        let mut row = self.setup.packets.step(&mut self.place);
        let before = self.row_before.replace(row);
        self.next_packet += 1;
        let begin = self.setup.keys.time(row.begin_cycles);
        let (head, head_bytes) = match self.head(&row) {
            Ok(head) => head,
            Err(kind) => return self.fault(&row, kind),
        };
        // Rows may come from an index file of another program, of which opening compares a few with the packets.
        if let Some(packet_bits) = head.content_bits
            && !row.cut
            && packet_bits != row.content_bits
            && packet_bits <= row.total_bits
        {
            self.fault(&row, StreamFaultKind::IndexSize { index_bits: row.content_bits, packet_bits });
            row.content_bits = packet_bits;
        }
        if let Some(kind) = self.other_fact(&row, &head) {
            self.fault(&row, kind);
        }
        self.uuid_differs |= head.uuid_differs;
        self.strays |= head.end_cycles > row.end_cycles;
        let body = head.body_start;
        self.clock = row.begin_cycles.unwrap_or(self.clock);
        let state = self.setup.decoder.state(&head, self.clock);
        let packet = Arc::new(Packet { number: number as u64, row, head, head_bytes });
        let (state, position) = self.enter_filter(&packet, state, body);
        if self.bounds.is_none_or(|bounds| bounds.contain(begin)) {
            self.losses(before, &packet);
        }
        if self.bounds.is_some() && !(self.begins_are_doubtful && self.setup.keys.is_for_intervals()) {
            // Without a mark of the packet's beginning, which nothing in it comes before.
            self.setup.keys.mark(row.begin_cycles);
        }
        let owes_begin = self.begins_are_doubtful;
        if !owes_begin {
            self.begin_packet(&packet, row.begin_cycles);
        }
        self.current = Some(CurrentPacket { packet, state, position, owes_begin });
    }

    /// A fact in which a row of an index file differs from the packet, as far as the packet's field
    /// goes. Times that are mended differ on purpose.
    fn other_fact(&self, row: &PacketRow, head: &PacketHead) -> Option<StreamFaultKind> {
        let bits = self.setup.counters;
        let begin = row.begin_cycles.filter(|_| !self.begins_are_doubtful);
        let end = row.end_cycles.filter(|_| !self.ends_are_doubtful && head.end_cycles != Some(0));
        let facts = [
            ("begin", begin, head.begin_cycles, bits.begin),
            ("end", end, head.end_cycles, bits.end),
            ("count of discarded events", row.discarded, head.discarded, bits.discarded),
            ("sequence number", row.sequence, head.sequence, bits.sequence),
        ];
        let differs = |(what, index, packet, bits): (&'static str, Option<u64>, Option<u64>, u32)| {
            let (index, packet) = index.zip(packet)?;
            (ahead(index, packet, bits) != 0).then_some(StreamFaultKind::IndexFact { what, index, packet })
        };
        facts.into_iter().find_map(differs)
    }

    /// Prepares the state for the filter. A packet without wanted events is at its end.
    fn enter_filter(&self, packet: &Packet, mut state: ReadState, body: u64) -> (ReadState, u64) {
        let Some(filter) = &self.setup.filter else { return (state, body) };
        let is_last = packet.number + 1 == self.setup.packets.len() as u64;
        let times = || quirks::times(self.setup.decoder.trace_class(), &packet.row, is_last);
        filter.enter(&packet.head, packet.head_window(), &mut state);
        if filter.may_match(&state, times) {
            return (state, body);
        }
        (state, packet.row.content_bits)
    }

    /// Bytes of a chunk that begins there.
    fn chunk_bytes(&self, row: &PacketRow, position: u64) -> usize {
        let usual = self.reach;
        let Some(end) = self.bounds.and_then(|bounds| bounds.end) else { return usual };
        let (first, last) = (self.setup.keys.time(row.begin_cycles), self.setup.keys.time(row.end_cycles));
        if last < end {
            return usual;
        }
        // Events are spread evenly in most packets.
        let part = (end.abs_diff(first) as f64 / last.abs_diff(first).max(1) as f64).min(1.0);
        let left = ((row.content_bits as f64 * part) as u64).saturating_sub(position) / 8;
        (left as usize + LAST_BYTES / 2).max(LAST_BYTES).min(usual)
    }

    /// Leaves out records outside of the slice; whether that is over.
    fn keep_slice(&mut self, row: &PacketRow, records: &mut Records, keys: &mut Vec<i64>) -> bool {
        let Some(bounds) = &self.bounds else { return false };
        self.strays |= keys.last().is_some_and(|&last| last > self.setup.keys.time(row.end_cycles));
        let is_over = bounds.keep(records, keys);
        self.setup.keys.only(&records.cycles);
        is_over
    }

    fn begin_packet(&mut self, packet: &Arc<Packet>, cycles: Option<u64>) {
        self.setup.keys.packet(cycles);
        self.mark(Mark::PacketBegin { packet: Arc::clone(packet), cycles }, cycles);
    }

    /// A packet's head and the bytes it lies in: those that its events will be read from, where that suffices.
    fn head(&mut self, row: &PacketRow) -> Result<(PacketHead, Buffer), StreamFaultKind> {
        // In an index, a packet may be empty, without a head.
        if row.content_bits > 0 {
            let (bytes, origin, end) = self.at_hand(row, 0, self.chunk_bytes(row, 0))?;
            let window = PacketWindow::new(bytes.with_slack(), origin, end);
            if let Ok(head) = self.setup.decoder.head(window, self.clock) {
                return Ok((head, bytes));
            }
        }
        let stream = self.file(row.file).clone();
        let head = self.heads.read(&self.setup.decoder, &stream, row.offset_bytes, self.clock);
        let head = head.map_err(StreamFaultKind::Head)?;
        Ok((head, Buffer::copy(self.heads.bytes())))
    }

    /// The losses between the packet before and this one.
    fn losses(&mut self, before: Option<PacketRow>, packet: &Packet) {
        let as_written = |mut row: PacketRow, end: Option<u64>| {
            row.end_cycles = end.or(row.end_cycles);
            row
        };
        let row = as_written(packet.row, packet.head.end_cycles);
        let before = before.map(|before| as_written(before, self.end_before));
        self.end_before = packet.head.end_cycles;
        if let Some(loss) = self.setup.counters.lost_events(before.as_ref(), &row) {
            self.mark(Mark::DiscardedEvents(loss), loss.begin_cycles);
        }
        if let Some(loss) = self.setup.counters.lost_packets(before.as_ref(), &row) {
            self.mark(Mark::DiscardedPackets(loss), loss.begin_cycles);
        }
    }

    fn file(&self, file: u32) -> &ByteSource {
        let found = self.setup.files.iter().find(|(number, _)| *number == file);
        &found.expect("a stream's packets lie in its files").1
    }

    /// Delivers a batch of the current packet, or leaves it.
    fn read_events(&mut self) {
        let mut current = self.current.take().expect("called inside of a packet");
        let row = current.packet.row;
        if current.position >= row.content_bits {
            return self.close_packet(&current);
        }
        let (mut records, mut keys) = self.spare.pop().unwrap_or_default();
        records.clear();
        let mut chunk_bytes = self.chunk_bytes(&row, current.position);
        loop {
            let (bytes, origin, end) = match self.at_hand(&row, current.position, chunk_bytes) {
                Ok(at_hand) => at_hand,
                Err(kind) => return self.abandon_packet(&current, kind),
            };
            let window = PacketWindow::new(bytes.with_slack(), origin, end);
            let decoder = &self.setup.decoder;
            let class = row.stream_class as usize;
            let CurrentPacket { state, position, .. } = &mut current;
            let before = *position;
            let stop = match &self.setup.filter {
                Some(filter) => filter.scan(window, position, state, &mut records, self.batch_rows),
                None => decoder.scan(class, window, position, state, &mut records, self.batch_rows),
            };
            // Records that the filter drops are behind too.
            let moved = *position != before;
            let found = !records.is_empty();
            let mut is_over = false;
            if found {
                let (packet, records) = (Arc::clone(&current.packet), std::mem::take(&mut records));
                let events = BatchEvents { packet, bytes, origin, end, records };
                is_over = self.deliver(&mut current, events, std::mem::take(&mut keys));
            }
            self.clock = current.state.clock;
            // The dropped records may be behind the slice too.
            let now = self.setup.keys.time(Some(self.clock));
            is_over |= moved && self.bounds.is_some_and(|bounds| bounds.are_before(now));
            match stop {
                _ if is_over => {
                    self.next_packet = self.setup.wanted.end;
                    return;
                }
                ScanStop::End | ScanStop::Full => {
                    if !found {
                        self.spare.push((records, keys));
                    }
                    self.batch_rows = (self.batch_rows * GROWTH).min(BATCH_ROWS);
                    self.current = Some(current);
                    return;
                }
                ScanStop::Fault(fault) if fault.kind.wants_more() && end < row.content_bits => {
                    self.chunk = None;
                    if moved {
                        if !found {
                            self.spare.push((records, keys));
                        }
                        self.current = Some(current);
                        return;
                    }
                    if chunk_bytes >= RECORD_BYTES_MAX {
                        let kind = StreamFaultKind::LongRecord { at: current.position, bytes: chunk_bytes as u64 };
                        return self.abandon_packet(&current, kind);
                    }
                    chunk_bytes *= 4;
                }
                ScanStop::Fault(fault) => {
                    let kind = StreamFaultKind::Record { record: current.position, fault };
                    return self.abandon_packet(&current, kind);
                }
            }
        }
    }

    /// Queues the events found, as far as they are wanted; whether the slice is over.
    fn deliver(&mut self, current: &mut CurrentPacket, mut events: BatchEvents, mut keys: Vec<i64>) -> bool {
        let row = current.packet.row;
        let records = &mut events.records;
        if std::mem::take(&mut current.owes_begin) {
            let first = records.cycles.first();
            let begin = row.begin_cycles.map(|begin| first.map_or(begin, |first| begin.min(*first)));
            self.begin_packet(&current.packet, begin);
        }
        self.setup.keys.events(&records.cycles, &mut keys);
        if self.setup.keys.is_for_intervals() {
            self.setup.keys.in_range_only(records, &mut keys);
        }
        let is_over = self.keep_slice(&row, records, &mut keys);
        if records.is_empty() {
            self.spare.push((events.records, keys));
        } else {
            let batch = StreamBatch { stream: self.setup.stream, content: BatchContent::Events(events), keys };
            self.pending.push_back(CursorItem::Batch(batch));
        }
        is_over
    }

    /// The rest of the packet cannot be read.
    fn abandon_packet(&mut self, current: &CurrentPacket, kind: StreamFaultKind) {
        self.fault(&current.packet.row, kind);
        self.close_packet(current);
    }

    fn close_packet(&mut self, current: &CurrentPacket) {
        let row = current.packet.row;
        if current.owes_begin {
            self.begin_packet(&current.packet, row.begin_cycles);
        }
        if row.cut {
            self.fault(&row, StreamFaultKind::Cut { left_bits: row.total_bits });
        }
        // Some tracers let packets end before their last event; then it is that event's time, as in Babeltrace.
        let cycles = current.packet.head.end_cycles.map(|end| end.max(current.state.clock));
        self.mark(Mark::PacketEnd { packet: Arc::clone(&current.packet), cycles }, cycles);
    }

    /// Bytes of the packet from the byte of `position` on: (bytes, their first byte in the packet, end in bits).
    fn at_hand(
        &mut self,
        row: &PacketRow,
        position: u64,
        chunk_bytes: usize,
    ) -> Result<(Buffer, u64, u64), StreamFaultKind> {
        let from = row.offset_bytes + position / 8;
        let packet_end = row.offset_bytes + row.content_bits.div_ceil(8);
        let fits = |chunk: &FileChunk| {
            chunk.file == row.file && chunk.offset_bytes <= from && from < chunk.offset_bytes + chunk.bytes.len() as u64
        };
        if !self.chunk.as_ref().is_some_and(fits) {
            let wanted = chunk_bytes as u64;
            let whole = (packet_end - from).min(wanted) as usize;
            let length = self.read_ahead(row, from, whole, chunk_bytes);
            let stream = self.file(row.file).clone();
            let bytes = self.pool.read(&stream, from, length).map_err(StreamFaultKind::Source)?;
            if bytes.is_empty() {
                return Err(StreamFaultKind::Shrank { offset_bytes: from });
            }
            self.chunk = Some(FileChunk { file: row.file, offset_bytes: from, bytes });
            self.reach = (self.reach * GROWTH).min(self.setup.chunk_bytes);
        }
        let chunk = self.chunk.as_ref().expect("just read");
        let skipped = from - chunk.offset_bytes;
        let here = (packet_end - from).min(chunk.bytes.len() as u64 - skipped);
        let origin = position / 8;
        let end = ((origin + here) * 8).min(row.content_bits);
        Ok((chunk.bytes.slice(skipped as usize, here as usize), origin, end))
    }

    /// Reads further packets too where they are small and follow each other in the file.
    fn read_ahead(&self, row: &PacketRow, from: u64, whole: usize, chunk_bytes: usize) -> usize {
        let mut length = whole;
        let mut end = row.end_bytes();
        for next in self.setup.packets.range_from(self.place.clone(), self.setup.wanted.end) {
            if next.file != row.file || next.offset_bytes != end {
                break;
            }
            end = next.end_bytes();
            let reach = (next.offset_bytes + next.content_bits.div_ceil(8) - from) as usize;
            if reach > chunk_bytes {
                break;
            }
            length = length.max(reach);
        }
        length
    }
}
