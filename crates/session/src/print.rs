//! Events as text, in the order of time.

pub(crate) mod details;
mod losses;
mod sliced;
pub(crate) mod span;
pub(crate) mod trim;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use kymo_decode::columns::{ColumnReader, Projection};
use kymo_decode::filter::StreamFilter;
use kymo_decode::text::{LineFormat, Moment, PacketText, Printer, PrinterEvent, Stamp, StampOptions, ZoneOffset};
use kymo_ir::emit::{decimal, decimal_signed};
use kymo_ir::{Cells, ClassTest, Encoding, TextStyle};
use kymo_scan::batch::ReadState;
use kymo_scan::groups::ClassGroups;
use kymo_scan::{BatchContent, BatchEvents, PartRow, Round, StreamBatch, StreamFault, Trace};

pub use details::DetailsOptions;
pub use kymo_decode::text::{PrettyFields, PrettyOptions};
pub use losses::PrintedLoss;

use self::details::{BlockSelector, MessageBlock, MessageBody, StreamDetails};
use self::losses::StreamLoss;
use self::span::Span;
use crate::open::progress::{Follower, Progress};
use crate::open::report::Report;
use crate::open::select::Selection;
use crate::open::{Session, trace_name};
use crate::parallel::engine::{self, RoundSink, RoundWork};

/// Bytes of a block of lines, about. Rounds differ by far in length; blocks of one size can be used again by any of them.
const BLOCK_BYTES: usize = 256 << 10;

/// The options of printing.
#[derive(Clone, Debug)]
pub struct PrintOptions {
    /// The parts of a line.
    pub pretty: PrettyOptions,
    /// How its time is shown.
    pub stamp: StampOptions,
    /// Local time.
    pub zone: ZoneOffset,
    /// The format of a line.
    pub format: PrintFormat,
    /// The parts of details.
    pub details: DetailsOptions,
    /// All clocks count from the Unix epoch.
    pub force_correlate: bool,
    /// Of each trace only the time in which all its data streams are active.
    pub stream_intersection: bool,
    /// Only these events.
    pub selection: Selection,
    /// Stop after so many events.
    pub limit: Option<u64>,
    /// Not before, in nanoseconds since the clock's origin.
    pub begin_ns: Option<i64>,
    /// Not after.
    pub end_ns: Option<i64>,
    /// Of each trace not before this, either; of those that are not here, everything.
    pub begins_ns: Vec<Option<i64>>,
    /// The text before this, which goes on with it.
    pub continued: Option<Continued>,
}

/// How text ended that is to be gone on with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Continued(Option<Moment>);

/// Everything as text, in UTC.
impl Default for PrintOptions {
    fn default() -> Self {
        Self {
            pretty: PrettyOptions::default(),
            stamp: StampOptions::default(),
            zone: |_| 0,
            format: PrintFormat::Text,
            details: DetailsOptions { trace_name: true, stream_name: true },
            force_correlate: false,
            stream_intersection: false,
            selection: Selection::default(),
            limit: None,
            begin_ns: None,
            end_ns: None,
            begins_ns: Vec::new(),
            continued: None,
        }
    }
}

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrintFormat {
    /// As Babeltrace writes it.
    #[default]
    Text,
    /// Not a line, but a block for everything that Babeltrace's `sink.text.details` shows.
    Details,
    /// A JSON object.
    Json,
    /// Comma-separated values, below a line of names.
    Csv,
    /// Nothing: everything is read, nothing written.
    Silent,
}

/// The result of printing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    /// Events.
    pub events: u64,
    /// The state that more text may go on with.
    pub ended: Continued,
    /// The differences between the text and the whole truth.
    pub report: Report,
    /// The first losses that tracers report in the printed packets.
    pub losses: Vec<PrintedLoss>,
}

impl Session {
    /// Prints events in the order of time.
    ///
    /// # Errors
    ///
    /// `out` does not take the text, or it was canceled: the cause is [`Cancelled`](crate::Cancelled).
    pub fn print(&self, options: &PrintOptions, out: &mut dyn Write, progress: &Progress) -> io::Result<Printed> {
        let filters = self.filters(&options.selection);
        let columns = if options.format == PrintFormat::Csv { self.common_columns(&filters) } else { None };
        if options.format == PrintFormat::Csv && options.continued.is_none() {
            let names = columns.clone().unwrap_or_else(|| vec!["fields".to_owned()]);
            write_names(out, &names)?;
        }
        let mut spans = self.spans((options.begin_ns, options.end_ns), options.stream_intersection)?;
        spans.iter_mut().zip(&options.begins_ns).for_each(|(span, begin)| span.0 = span.0.max(*begin));
        let streams: Vec<StreamFacts> = self.stream_facts(options, &spans, columns.is_some());
        let work = PrintWork { streams: &streams, options, filters: &filters, spare: Mutex::default() };
        let report = self.opening_report().clone();
        let ended = options.continued.unwrap_or_default();
        let printed = Printed { events: 0, ended, report, losses: Vec::new() };
        let left = options.limit.unwrap_or(u64::MAX);
        let blocks = (options.format == PrintFormat::Details).then(|| BlockSelector::new(&spans));
        // Streams and packets that were open before a time matter to details.
        let (begin, end) = if blocks.is_some() { (None, None) } else { span::around(&spans) };
        let follower = Follower::new(self, progress);
        let mut sink = PrintSink {
            session: self,
            work: &work,
            out,
            printed,
            skip: 0,
            left,
            previous: ended.0,
            blocks,
            follower,
            losses: Vec::new(),
            error: None,
        };
        if left > 0 {
            // It is not known where in the trace the last wanted event is.
            if options.limit.is_none() {
                self.expect(progress, begin, end);
            }
            if sliced::print((begin, end), &mut sink, progress).is_err() {
                sink.begin_again();
                let cursors = self.cursors_between(true, (begin, end), &filters, progress);
                let cursors = engine::run(cursors, self.threads, &work, &mut sink);
                let notes = cursors.iter().flat_map(|cursor| self.assumptions(cursor));
                sink.printed.report.assumptions.extend(notes);
            }
        }
        sink.printed.ended = Continued(sink.previous);
        sink.printed.losses = self.loss_sentences(&sink.losses, options);
        match sink.error {
            Some(error) => Err(error),
            None => progress.whole(sink.printed).map_err(io::Error::other),
        }
    }

    /// The names of the fields of all events, where those are the same for all.
    fn common_columns(&self, filters: &[Option<Arc<StreamFilter>>]) -> Option<Vec<String>> {
        let mut common: Option<Vec<String>> = None;
        for (rank, (trace, stream)) in self.streams().into_iter().enumerate() {
            let classes = &trace.class.stream_classes[stream.class].event_classes;
            let filter = &filters[rank];
            let may_occur =
                |class: &usize| filter.as_ref().is_none_or(|filter| filter.class_tests()[*class] != ClassTest::Never);
            for class in (0..classes.len()).filter(may_occur) {
                let columns = Printer::columns(&trace.decoder, stream.class, class);
                if common.get_or_insert_with(|| columns.clone()) != &columns {
                    return None;
                }
            }
        }
        common
    }

    fn stream_facts(&self, options: &PrintOptions, spans: &[Span], flat: bool) -> Vec<StreamFacts> {
        let format = |trace: &Trace| match options.format {
            PrintFormat::Text | PrintFormat::Silent => {
                LineFormat::Pretty(PrettyOptions { trace_name: details::name(trace), ..options.pretty.clone() })
            }
            PrintFormat::Details => LineFormat::Details(options.pretty.paint),
            PrintFormat::Json => LineFormat::Json,
            PrintFormat::Csv => LineFormat::Csv { flat },
        };
        let mut streams = Vec::new();
        for (number, (trace, &span)) in self.traces.iter().zip(spans).enumerate() {
            let details = match options.format {
                PrintFormat::Details => StreamDetails::of_trace(number, trace, options),
                _ => Vec::new(),
            };
            let mut details = details.into_iter();
            let printer = Arc::new(Printer::new(Arc::clone(&trace.decoder), format(trace)));
            let readers: Vec<Arc<ColumnReader>> = (0..trace.class.stream_classes.len())
                .map(|class| Arc::new(ColumnReader::new(Arc::clone(&trace.decoder), class, Projection::All)))
                .collect();
            for stream in &trace.streams {
                let (printer, columns) = (Arc::clone(&printer), Arc::clone(&readers[stream.class]));
                let origin = origin(options.format, &trace_name(trace.folder.path()), streams.len());
                streams.push(StreamFacts {
                    origin,
                    details: details.next(),
                    span,
                    class: stream.class,
                    columns,
                    clock: stream.clock,
                    printer,
                    packet: Mutex::default(),
                });
            }
        }
        streams
    }
}

/// The first line of CSV.
fn write_names(out: &mut dyn Write, fields: &[String]) -> io::Result<()> {
    let mut line = b"time,cycles,trace,stream,event".to_vec();
    for field in fields {
        line.push(b',');
        kymo_ir::emit::text(&mut line, field.as_bytes(), Encoding::Utf8, TextStyle::Csv);
    }
    line.push(b'\n');
    out.write_all(&line)
}

/// Where events of a stream come from, as its lines say it.
fn origin(format: PrintFormat, trace: &str, stream: usize) -> Vec<u8> {
    let mut name = Vec::new();
    let style = if format == PrintFormat::Json { TextStyle::Json } else { TextStyle::Csv };
    kymo_ir::emit::text(&mut name, trace.as_bytes(), Encoding::Utf8, style);
    let name = String::from_utf8_lossy(&name);
    match format {
        PrintFormat::Json => format!("\"trace\":{name},\"stream\":{stream},"),
        _ => format!("{name},{stream},"),
    }
    .into_bytes()
}

struct StreamFacts {
    origin: Vec<u8>,
    details: Option<StreamDetails>,
    span: Span,
    class: usize,
    columns: Arc<ColumnReader>,
    clock: Option<kymo_decode::ClockConverter>,
    printer: Arc<Printer>,
    /// The text of the packet that was printed last.
    packet: Mutex<Option<(u64, Arc<PacketText>)>>,
}

impl StreamFacts {
    fn moment(&self, cycles: u64) -> Option<Moment> {
        self.clock.map(|clock| Moment { cycles, nanos: clock.nanos(cycles) })
    }

    /// The begin of a line for machines: exact time, and where the event comes from.
    fn begin_line(&self, format: PrintFormat, out: &mut Vec<u8>, moment: Option<Moment>) {
        let nanos = moment.and_then(|moment| moment.nanos);
        if format == PrintFormat::Json {
            out.push(b'{');
            if let Some(moment) = moment {
                out.extend_from_slice(b"\"time\":");
                match nanos {
                    Some(nanos) => decimal_signed(out, nanos),
                    None => out.extend_from_slice(b"null"),
                }
                out.extend_from_slice(b",\"cycles\":");
                decimal(out, moment.cycles);
                out.push(b',');
            }
        } else {
            if let Some(nanos) = nanos {
                decimal_signed(out, nanos);
            }
            out.push(b',');
            if let Some(moment) = moment {
                decimal(out, moment.cycles);
            }
            out.push(b',');
        }
        out.extend_from_slice(&self.origin);
    }

    fn packet_text(&self, events: &BatchEvents) -> Arc<PacketText> {
        let number = events.packet.number;
        if let Ok(Some((known, text))) = self.packet.lock().as_deref()
            && *known == number
        {
            return Arc::clone(text);
        }
        let text = self.printer.packet(&events.packet.head, events.packet.head_window());
        let text = Arc::new(text.unwrap_or_default());
        if let Ok(mut packet) = self.packet.lock() {
            *packet = Some((number, Arc::clone(&text)));
        }
        text
    }
}

struct PrintWork<'a> {
    /// For each data stream, which of its events are wanted.
    filters: &'a [Option<Arc<StreamFilter>>],
    streams: &'a [StreamFacts],
    options: &'a PrintOptions,
    /// Memory for blocks, to be used again: fresh memory would cost more in page faults than text does.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// Lines, in blocks of about [`BLOCK_BYTES`].
#[derive(Default)]
struct LineBlocks {
    full: Vec<Vec<u8>>,
    lines: Vec<u8>,
    events: u64,
    /// Nothing follows.
    last: bool,
}

/// The input of a round from those before.
struct PrintInput {
    /// The last event.
    previous: Option<Moment>,
    /// Where details are wanted: the blocks to write.
    blocks: Vec<MessageBlock>,
    /// Nothing follows.
    last: bool,
}

impl RoundWork for PrintWork<'_> {
    type Context = PrintInput;
    type Output = LineBlocks;

    fn work(&self, round: &Round<StreamBatch>, before: PrintInput) -> LineBlocks {
        if self.options.format == PrintFormat::Silent {
            return self.read_columns(round);
        }
        let mut text = LineBlocks { lines: self.block(), last: before.last, ..LineBlocks::default() };
        if self.options.format == PrintFormat::Details {
            self.write_blocks(round, &before.blocks, &mut text);
            return text;
        }
        let mut stamp = Stamp::new(self.options.stamp, self.options.zone);
        let packets: Vec<Option<Arc<PacketText>>> = round
            .parts
            .iter()
            .map(|part| match &part.batch.content {
                BatchContent::Events(events) => Some(self.streams[part.stream].packet_text(events)),
                _ => None,
            })
            .collect();
        let mut states: Vec<_> = round.parts.iter().map(|part| state(&part.batch)).collect();
        let mut previous = before.previous;
        for place in &round.order {
            let part = &round.parts[place.part as usize];
            let BatchContent::Events(events) = &part.batch.content else {
                continue;
            };
            text.events += 1;
            let Some(packet) = &packets[place.part as usize] else {
                continue;
            };
            let row = place.row as usize;
            let stream = &self.streams[part.stream];
            let moment = stream.moment(events.records.cycles[row]);
            if self.options.format != PrintFormat::Text {
                stream.begin_line(self.options.format, &mut text.lines, moment);
            } else if let Some(moment) = moment {
                stamp.write(&mut text.lines, moment, previous);
                previous = Some(moment);
            }
            let event = PrinterEvent {
                stream_class: stream.class,
                event_class: events.records.classes[row] as usize,
                position: events.records.positions[row],
                window: events.window(),
                packet,
            };
            // The scan read the record before: records that it accepted can be read again.
            let printed = stream.printer.event(&event, &mut states[place.part as usize], &mut text.lines);
            debug_assert!(printed.is_ok(), "{printed:?}");
            if text.lines.len() >= BLOCK_BYTES {
                text.full.push(std::mem::replace(&mut text.lines, self.block()));
            }
        }
        text
    }
}

impl PrintWork<'_> {
    /// Memory for a block.
    fn block(&self) -> Vec<u8> {
        let spare = self.spare.lock().ok().and_then(|mut spare| spare.pop());
        spare.unwrap_or_else(|| Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 8))
    }

    fn moment(&self, round: &Round<StreamBatch>, place: PartRow) -> Option<Moment> {
        let part = &round.parts[place.part as usize];
        let BatchContent::Events(events) = &part.batch.content else {
            return None;
        };
        self.streams[part.stream].moment(events.records.cycles[place.row as usize])
    }

    /// Leaves out events that are not in their trace's span.
    fn trim(&self, round: &mut Round<StreamBatch>) {
        if self.streams.iter().all(|stream| stream.span == (None, None)) {
            return;
        }
        let mut order = std::mem::take(&mut round.order);
        order.retain(|&place| {
            let (begin, end) = self.streams[round.parts[place.part as usize].stream].span;
            let nanos = self.moment(round, place).and_then(|moment| moment.nanos);
            let inside = |nanos: i64| begin.is_none_or(|begin| begin <= nanos) && end.is_none_or(|end| nanos <= end);
            nanos.is_none_or(inside)
        });
        round.order = order;
    }

    /// The last event of a round that has a time.
    fn last_moment(&self, round: &Round<StreamBatch>) -> Option<Moment> {
        round.order.iter().rev().find_map(|&place| self.moment(round, place))
    }

    fn write_blocks(&self, round: &Round<StreamBatch>, blocks: &[MessageBlock], text: &mut LineBlocks) {
        let mut states: Vec<_> = round.parts.iter().map(|part| state(&part.batch)).collect();
        let packet = PacketText::default();
        for block in blocks {
            let stream = &self.streams[block.message.stream];
            block.write(stream, &mut text.lines);
            let MessageBody::Event(place) = block.message.body else { continue };
            let BatchContent::Events(events) = &round.parts[place.part as usize].batch.content else { continue };
            let row = place.row as usize;
            let event = PrinterEvent {
                stream_class: stream.class,
                event_class: events.records.classes[row] as usize,
                position: events.records.positions[row],
                window: events.window(),
                packet: &packet,
            };
            text.events += 1;
            let printed = stream.printer.event(&event, &mut states[place.part as usize], &mut text.lines);
            debug_assert!(printed.is_ok(), "{printed:?}");
        }
    }

    /// Reads every field of every event into columns, which are not used.
    fn read_columns(&self, round: &Round<StreamBatch>) -> LineBlocks {
        let mut groups = ClassGroups::default();
        let mut cells = Cells::default();
        let mut text = LineBlocks::default();
        for part in &round.parts {
            let BatchContent::Events(events) = &part.batch.content else { continue };
            let mut state = events.state();
            let records = &events.records;
            groups.sort(&records.classes[part.rows.clone()], &records.positions[part.rows.clone()]);
            for (class, positions) in groups.iter() {
                let columns = &self.streams[part.stream].columns;
                let read = columns.read(class as usize, events.window(), positions, &mut state, &mut cells);
                debug_assert!(read.is_ok(), "{read:?}");
            }
        }
        text.events = count_events(round);
        text
    }
}

fn state(batch: &StreamBatch) -> ReadState {
    match &batch.content {
        BatchContent::Events(events) => events.state(),
        BatchContent::Mark(_) => ReadState::default(),
    }
}

fn count_events(round: &Round<StreamBatch>) -> u64 {
    if round.parts.iter().all(|part| matches!(part.batch.content, BatchContent::Events(_))) {
        return round.order.len() as u64;
    }
    round.order.iter().filter(|place| is_event(round, **place)).count() as u64
}

fn is_event(round: &Round<StreamBatch>, place: PartRow) -> bool {
    matches!(round.parts[place.part as usize].batch.content, BatchContent::Events(_))
}

struct PrintSink<'a> {
    session: &'a Session,
    work: &'a PrintWork<'a>,
    out: &'a mut dyn Write,
    printed: Printed,
    /// Events that were printed before.
    skip: u64,
    left: u64,
    previous: Option<Moment>,
    /// Where details are wanted.
    blocks: Option<BlockSelector>,
    follower: Follower<'a>,
    losses: Vec<StreamLoss>,
    error: Option<io::Error>,
}

impl PrintSink<'_> {
    /// Reads everything anew, to print the events that follow the printed ones.
    fn begin_again(&mut self) {
        self.skip = self.printed.events;
        self.printed.report = self.session.opening_report().clone();
        self.losses.clear();
        self.previous = self.work.options.continued.unwrap_or_default().0;
    }

    /// Leaves out events that were printed before.
    fn skip(&mut self, round: &mut Round<StreamBatch>) {
        let skip = count_events(round).min(self.skip);
        let mut left = skip;
        let skipped = round.order.iter().take_while(|place| {
            let is_before = left > 0;
            left -= u64::from(is_before && is_event(round, **place));
            is_before
        });
        let skipped = skipped.count();
        self.skip -= skip;
        let last = round.order[..skipped].iter().rev().find_map(|&place| self.work.moment(round, place));
        self.previous = last.or(self.previous);
        round.order.drain(..skipped);
    }
}

impl RoundSink<PrintWork<'_>> for PrintSink<'_> {
    fn context(&mut self, round: &mut Round<StreamBatch>) -> PrintInput {
        self.printed.report.count_losses(round);
        losses::collect(&mut self.losses, round);
        self.follower.behind(round);
        if let Some(blocks) = &mut self.blocks {
            let streams = self.work.streams;
            let blocks_of_round = blocks.of_round(round, streams, &mut self.left);
            let last = self.left == 0 || blocks.are_complete();
            return PrintInput { previous: None, blocks: blocks_of_round, last };
        }
        self.work.trim(round);
        self.skip(round);
        let events = count_events(round);
        if events >= self.left {
            let mut left = self.left;
            let cut = round.order.iter().position(|place| {
                left -= u64::from(is_event(round, *place) && left > 0);
                left == 0
            });
            round.order.truncate(cut.map_or(0, |cut| cut + 1));
        }
        self.left -= events.min(self.left);
        let previous = self.previous;
        self.previous = self.work.last_moment(round).or(self.previous);
        PrintInput { previous, blocks: Vec::new(), last: false }
    }

    fn finish(&mut self, text: LineBlocks) -> ControlFlow<()> {
        self.printed.events += text.events;
        for mut lines in text.full.into_iter().chain([text.lines]) {
            if let Err(error) = self.out.write_all(&lines) {
                self.error = Some(error);
                return ControlFlow::Break(());
            }
            lines.clear();
            if let Ok(mut spare) = self.work.spare.lock()
                && lines.capacity() > 0
            {
                spare.push(lines);
            }
        }
        if text.last || self.left == 0 && Some(self.printed.events) >= self.work.options.limit {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn fault(&mut self, fault: StreamFault) {
        self.printed.report.unreadable.push(self.session.problem(&fault));
    }
}
