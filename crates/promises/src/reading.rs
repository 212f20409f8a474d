//! A stream file as the compiled side of the decoder reads it: packets, records, columns, text, faults.
//!
//! ```text
//! file ── head ── scan ──┬── columns ──> values, or a fault
//!         packet         └── text ─────> a line, or a fault
//! ```
//!
//! It reads a stream as `kymo` does, without files and threads, and keeps all of it for comparison.

use std::sync::Arc;

use kymo_decode::columns::{ColumnReader, Projection};
use kymo_decode::filter::StreamFilter;
use kymo_decode::text::{LineFormat, Paint, PrettyOptions, Printer, PrinterEvent};
use kymo_decode::{Compile, Decoder, FilterFacts, HeadError, LowerError, PacketHead};
use kymo_filter::Filter;
use kymo_format::TraceClass;
use kymo_format::model::Scope;
use kymo_format::value::Value;
use kymo_ir::{Cells, PacketWindow, ProgramFault, ReadState, Records, SLACK, ScanStop};

use crate::shaped::Shaped;

/// Records of a packet that are checked.
pub const RECORDS_MAX: usize = 300;
/// Packets of a file that are checked.
const PACKETS_MAX: usize = 20;

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileContents {
    /// Packets with readable heads.
    pub packets: Vec<PacketContents>,
    /// The head that could not.
    pub fault: Option<HeadError>,
}

/// One packet.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketContents {
    /// Its head.
    pub head: PacketHead,
    /// Longer than the file.
    pub is_cut: bool,
    /// Its length, as far as the file has it.
    pub size_bytes: usize,
    /// Its event records.
    pub events: Vec<ReadEvent>,
    /// Why there are no more.
    pub stop: ScanStop,
    /// The position and the clock behind them.
    pub behind: (u64, u64),
    /// The common text of its events' lines.
    pub line: Result<Vec<u8>, ProgramFault>,
}

/// The fields of a record by scope, or why they cannot be read.
pub type Fields = Result<Vec<(Scope, Value)>, ProgramFault>;

/// One event record.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadEvent {
    /// The clock behind its header.
    pub cycles: u64,
    /// Index of its class.
    pub class: u32,
    /// Where its fields, or the record, are.
    pub position: u64,
    /// Its fields by scope.
    pub fields: Fields,
    /// Its line.
    pub line: Result<Vec<u8>, ProgramFault>,
}

fn format(number: usize) -> LineFormat {
    let flags = PrettyOptions { enum_flags: true, scope_names: true, ..PrettyOptions::default() };
    let formats = [
        LineFormat::Json,
        LineFormat::Pretty(PrettyOptions::default()),
        LineFormat::Pretty(flags),
        LineFormat::Details(Paint::default()),
        LineFormat::Csv { flat: true },
        LineFormat::Csv { flat: false },
    ];
    formats[number % formats.len()].clone()
}

/// Reads stream files of one trace class.
#[derive(Debug)]
pub struct PlainReader {
    decoder: Arc<Decoder>,
    columns: Vec<ColumnReader>,
    printer: Printer,
    /// The byte behind the end of a file: it must not matter, so the engines get different bytes.
    slack: u8,
    /// Which events are found, by data stream class; empty: all.
    filters: Vec<StreamFilter>,
}

impl PlainReader {
    /// By machine code or the evaluator; `format` chooses a way to print.
    ///
    /// # Errors
    ///
    /// The trace class cannot be decoded.
    pub fn new(trace: &Arc<TraceClass>, compile: Compile, format: usize) -> Result<Self, LowerError> {
        let decoder = Arc::new(Decoder::new(Arc::clone(trace), compile)?);
        let columns = |class| ColumnReader::new(Arc::clone(&decoder), class, Projection::All);
        let columns = (0..trace.stream_classes.len()).map(columns).collect();
        let printer = Printer::new(Arc::clone(&decoder), self::format(format));
        let slack = if compile == Compile::Never { 0xFF } else { 0 };
        Ok(Self { decoder, columns, printer, slack, filters: Vec::new() })
    }

    /// The same, but it finds only events for which an expression is true.
    #[must_use]
    pub fn filtered(mut self, filter: &Filter) -> Self {
        let facts = FilterFacts { clock: None, trace_name: "", suggests: false, instant: &|_| None };
        let of_class = |class| {
            let filter = StreamFilter::new(&self.decoder, class, Some(filter), &|_| true, &facts);
            filter.expect("every class was lowered when the decoder was made")
        };
        self.filters = (0..self.columns.len()).map(of_class).collect();
        self
    }

    /// Reads a whole stream file, `chunk_bytes` of a packet at once, more where a record needs more.
    #[must_use]
    pub fn read(&self, bytes: &[u8], chunk_bytes: usize) -> FileContents {
        let mut reading = FileContents::default();
        let (mut offset, mut clock) = (0, 0);
        while offset < bytes.len() && reading.packets.len() < PACKETS_MAX {
            let left = &bytes[offset..];
            match self.packet(left, clock, chunk_bytes) {
                Ok(packet) => {
                    clock = packet.behind.1;
                    offset += packet.size_bytes;
                    reading.packets.push(packet);
                }
                Err(fault) => {
                    reading.fault = Some(fault);
                    break;
                }
            }
        }
        reading
    }

    /// The packet that `bytes` begin with.
    fn packet(&self, bytes: &[u8], clock: u64, chunk_bytes: usize) -> Result<PacketContents, HeadError> {
        let slack = [bytes, &[self.slack; SLACK]].concat();
        let left_bits = 8 * bytes.len() as u64;
        let whole = PacketWindow::new(&slack, 0, left_bits);
        let head = self.decoder.head(whole, clock)?;
        let total = head.total_bits.or(head.content_bits.map(|bits| bits.next_multiple_of(8))).unwrap_or(left_bits);
        let content = head.content_bits.unwrap_or(total).min(left_bits);
        if total == 0 {
            return Err(HeadError::Sizes { total, content, head: head.body_start });
        }
        let line = self.printer.packet(&head, whole);
        let text = line.clone().unwrap_or_default();
        let mut state = self.decoder.state(&head, head.begin_cycles.unwrap_or(clock));
        if let Some(filter) = self.filters.get(head.stream_class) {
            filter.enter(&head, whole, &mut state);
        }
        let mut walk =
            RecordWalk { reader: self, head: &head, text: &text, slack: &slack, content, state, events: Vec::new() };
        let mut position = head.body_start;
        let stop = walk.events(&mut position, chunk_bytes.max(1));
        let (events, clock) = (walk.events, walk.state.clock);
        let line = line.map(|text| text.as_bytes().to_vec());
        let is_cut = total > left_bits;
        let size_bytes = (total.min(left_bits) / 8) as usize;
        Ok(PacketContents { head, is_cut, size_bytes, events, stop, behind: (position, clock), line })
    }
}

/// The walk over the records of one packet.
struct RecordWalk<'a> {
    reader: &'a PlainReader,
    head: &'a PacketHead,
    text: &'a kymo_decode::text::PacketText,
    /// From the packet's beginning to the end of the file, and slack.
    slack: &'a [u8],
    content: u64,
    state: ReadState,
    events: Vec<ReadEvent>,
}

impl RecordWalk<'_> {
    fn events(&mut self, position: &mut u64, mut chunk_bytes: usize) -> ScanStop {
        let mut records = Records::default();
        loop {
            let origin = *position / 8;
            let end = self.content.min(8 * origin.saturating_add(chunk_bytes as u64)).max(origin * 8);
            let behind = end.div_ceil(8) as usize + SLACK;
            let window = PacketWindow::new(&self.slack[origin as usize..behind], origin, end);
            records.clear();
            let limit = (RECORDS_MAX - self.events.len()).min(chunk_bytes);
            let decoder = &self.reader.decoder;
            let class = self.head.stream_class;
            let before = *position;
            let stop = match self.reader.filters.get(class) {
                Some(filter) => filter.scan(window, position, &mut self.state, &mut records, limit),
                None => decoder.scan(class, window, position, &mut self.state, &mut records, limit),
            };
            self.append(&records, window);
            match stop {
                ScanStop::Fault(fault) if fault.kind.wants_more() && end < self.content => {
                    chunk_bytes *= if *position == before { 4 } else { 1 };
                }
                ScanStop::Fault(_) => return stop,
                _ if self.events.len() >= RECORDS_MAX => return ScanStop::Full,
                _ if *position >= self.content => return ScanStop::End,
                _ => {}
            }
        }
    }

    fn append(&mut self, records: &Records, window: PacketWindow<'_>) {
        let mut classes: Vec<u32> = records.classes.clone();
        classes.sort_unstable();
        classes.dedup();
        let mut fields: Vec<Option<Fields>> = vec![None; records.len()];
        for class in classes {
            let rows: Vec<usize> = (0..records.len()).filter(|&row| records.classes[row] == class).collect();
            for (row, found) in rows.iter().zip(self.columns(class, records, &rows, window)) {
                fields[*row] = Some(found);
            }
        }
        for (row, fields) in fields.into_iter().enumerate() {
            let (class, position) = (records.classes[row], records.positions[row]);
            let line = self.line(class, position, window);
            let fields = fields.expect("every class of the records was read");
            self.events.push(ReadEvent { cycles: records.cycles[row], class, position, fields, line });
        }
    }

    /// The fields of records of one class.
    fn columns(&self, class: u32, records: &Records, rows: &[usize], window: PacketWindow<'_>) -> Vec<Fields> {
        let reader = &self.reader.columns[self.head.stream_class];
        let mut positions: Vec<u64> = rows.iter().map(|&row| records.positions[row]).collect();
        let mut found = Vec::new();
        while !positions.is_empty() {
            let mut cells = Cells::default();
            let mut state = self.reader.decoder.state(self.head, 0);
            let result = reader.read(class as usize, window, &positions, &mut state, &mut cells);
            let complete = result.as_ref().map_or_else(|fault| fault.row, |()| positions.len());
            let shaped = Shaped { cells: &cells, bytes: window.bytes() };
            let fields = &reader.columns(class as usize).fields;
            found.extend((0..complete).map(|row| {
                let value = |field: &kymo_decode::columns::ScopeField| (field.scope, shaped.value(&field.shape, row));
                Ok(fields.iter().map(value).collect())
            }));
            positions.drain(..complete);
            if let Err(fault) = result {
                found.push(Err(fault.fault));
                positions.remove(0);
            }
        }
        found
    }

    fn line(&self, class: u32, position: u64, window: PacketWindow<'_>) -> Result<Vec<u8>, ProgramFault> {
        let stream_class = self.head.stream_class;
        let event = PrinterEvent { stream_class, event_class: class as usize, position, window, packet: self.text };
        let mut state = self.reader.decoder.state(self.head, 0);
        let mut out = Vec::new();
        self.reader.printer.event(&event, &mut state, &mut out).map(|()| out)
    }
}
