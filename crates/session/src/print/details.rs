//! The messages of a round as blocks of text; see `kymo_decode::text::details` for the form of a
//! block.
//!
//! Which messages there are, whether one begins the output or its trace, is decided in order; their text is
//! written on any thread.

use std::sync::Arc;

use kymo_decode::ClockConverter;
use kymo_decode::text::details::{ClockFacts, StreamTraits, grouped, grouped_unsigned, trace_class};
use kymo_decode::text::{Paint, Tone};
use kymo_format::model::EnvironmentValue;
use kymo_ir::IntegerStyle;
use kymo_scan::batch::Packet;
use kymo_scan::{BatchContent, DataStream, Loss, Mark, PartRow, Round, StreamBatch, Trace};

use super::trim::{Message, MessageKind, Trimmer};
use super::{PrintOptions, StreamFacts};
use crate::open::is_unix_clock;

/// The parts that are shown beside the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetailsOptions {
    /// The trace's name.
    pub trace_name: bool,
    /// The names of data streams, which are those of their files.
    pub stream_name: bool,
}

/// Content of a message.
#[derive(Debug, Default)]
pub(crate) enum MessageBody {
    #[default]
    Nothing,
    Packet(Arc<Packet>),
    Event(PartRow),
    Lost {
        events: bool,
        loss: Loss,
    },
}

/// A message and the text before it.
#[derive(Debug)]
pub(crate) struct MessageBlock {
    pub(crate) message: Message<MessageBody>,
    /// Nothing was written before.
    first: bool,
    /// Nothing of its trace was written before.
    introduces: bool,
}

/// Facts that all messages of a stream share.
pub(crate) struct StreamDetails {
    trace: usize,
    paint: Paint,
    introduction: Arc<str>,
    /// `{Trace 0, Stream class ID 0, Stream ID 2}` and a line's end.
    tag: String,
    beginning: String,
    traits: StreamTraits,
}

impl StreamDetails {
    /// Those of all streams of a trace.
    pub(crate) fn of_trace(number: usize, trace: &Trace, options: &PrintOptions) -> Vec<Self> {
        let (paint, shift_ns) = (options.pretty.paint, trace.clock_shift_ns);
        let facts = |clock| ClockFacts { is_unix: options.force_correlate || is_unix_clock(trace, clock), shift_ns };
        let clocks: Vec<ClockFacts> = trace.class.clock_classes.iter().map(facts).collect();
        let introduction: Arc<str> = trace_class(&trace.class, &clocks, paint).into();
        let ids = stream_ids(trace);
        let about_trace = about_trace(trace, &ids, options);
        let stream = |(stream, id): (&DataStream, &u64)| {
            let class = &trace.class.stream_classes[stream.class];
            let mut beginning = paint.text(Tone::BrightYellow, "Stream beginning") + ":\n";
            if let (true, Some(&file)) = (options.details.stream_name, stream.files.first()) {
                let path = trace.folder.stream(file as usize).path().to_owned();
                let path = std::path::absolute(&path).unwrap_or(path);
                beginning += &property(paint, "Name", &path.display().to_string());
            }
            if let Some(name) = &class.name {
                beginning += &property(paint, "Class name", name);
            }
            beginning += &about_trace;
            Self {
                trace: number,
                paint,
                introduction: Arc::clone(&introduction),
                tag: tag(paint, number, class.id, *id),
                beginning,
                traits: StreamTraits::of(class),
            }
        };
        trace.streams.iter().zip(&ids).map(stream).collect()
    }
}

/// `  Name: value`
fn property(paint: Paint, name: &str, value: &str) -> String {
    format!("  {}: {}\n", paint.text(Tone::Magenta, name), paint.text(Tone::Bold, value))
}

fn tag(paint: Paint, trace: usize, class: u64, stream: u64) -> String {
    let (cyan, end) = (paint.start(Tone::Cyan), paint.end());
    let number = |number: u64| paint.text(Tone::BrightCyan, &number.to_string()) + cyan;
    let (trace, class, stream) = (number(trace as u64), number(class), number(stream));
    format!("{cyan}{{Trace {trace}, Stream class ID {class}, Stream ID {stream}}}{end}\n")
}

/// Streams without an id are counted.
pub(crate) fn stream_ids(trace: &Trace) -> Vec<u64> {
    let mut next = 0;
    let id = |stream: &DataStream| {
        stream.id.unwrap_or_else(|| {
            next += 1;
            next - 1
        })
    };
    trace.streams.iter().map(id).collect()
}

/// A trace's name in text that Babeltrace also writes.
pub(crate) fn name(trace: &Trace) -> String {
    kymo_decode::text::trace_name(&trace.class, &trace.folder.below().to_string_lossy())
}

/// Facts about the trace in a stream's beginning.
fn about_trace(trace: &Trace, ids: &[u64], options: &PrintOptions) -> String {
    let paint = options.pretty.paint;
    let mut lines = Vec::new();
    if let Some(uuid) = trace.class.uuid {
        lines.push(format!("  {}", property(paint, "UUID", &uuid.to_string())));
    }
    let mut entries: Vec<_> = trace.class.environment.iter().collect();
    if !entries.is_empty() {
        entries.sort_by_key(|(name, _)| name);
        let count = paint.text(Tone::Bold, &grouped_unsigned(entries.len() as u64));
        let ending = if entries.len() == 1 { "y" } else { "ies" };
        let name = paint.text(Tone::Magenta, "Environment");
        lines.push(format!("    {name} ({count} entr{ending}):\n"));
    }
    for (name, value) in entries {
        let value = match value {
            EnvironmentValue::Text(text) => text.clone(),
            EnvironmentValue::Integer(number) => grouped(*number as i64),
        };
        lines.push(format!("      {}: {}\n", paint.text(Tone::Cyan, name), paint.text(Tone::Bold, &value)));
    }
    let class_id = |stream: &DataStream| trace.class.stream_classes[stream.class].id;
    let mut streams: Vec<_> = ids.iter().copied().zip(trace.streams.iter().map(class_id)).collect();
    streams.sort_unstable();
    for (id, class) in streams {
        let [id, class] = [id, class].map(|number| paint.text(Tone::Bold, &grouped_unsigned(number)));
        lines.push(format!("    {} (ID {id}, Class ID {class})\n", paint.text(Tone::BrightYellow, "Stream")));
    }
    let mut text = format!("  {}", paint.text(Tone::BrightYellow, "Trace"));
    if options.details.trace_name {
        text += &format!(" `{}`", paint.text(Tone::Bold, &name(trace)));
    }
    text += if lines.is_empty() { "\n" } else { ":\n" };
    text + &lines.concat()
}

/// Decides which blocks there are.
pub(crate) struct BlockSelector {
    /// One for each trace: it may have a span of its own.
    trimmers: Vec<Trimmer<MessageBody>>,
    introduced: Vec<bool>,
    anything: bool,
}

impl BlockSelector {
    /// With the span of each trace.
    pub(crate) fn new(spans: &[(Option<i64>, Option<i64>)]) -> Self {
        let trimmers = spans.iter().map(|(begin, end)| Trimmer::new(*begin, *end)).collect();
        Self { trimmers, introduced: vec![false; spans.len()], anything: false }
    }

    /// Nothing more will come.
    pub(crate) fn are_complete(&self) -> bool {
        self.trimmers.iter().all(Trimmer::is_finished)
    }

    /// The blocks of a round, up to so many events.
    pub(super) fn of_round(
        &mut self,
        round: &Round<StreamBatch>,
        streams: &[StreamFacts],
        left: &mut u64,
    ) -> Vec<MessageBlock> {
        let mut messages = Vec::with_capacity(round.order.len());
        for &place in &round.order {
            let clock = streams[round.parts[place.part as usize].stream].clock;
            let message = message(round, place, clock);
            if let Some(details) = &streams[message.stream].details {
                self.trimmers[details.trace].push(message, &mut messages);
            }
        }
        let mut blocks = Vec::with_capacity(messages.len());
        for message in messages {
            if *left == 0 {
                break;
            }
            *left -= u64::from(message.step == MessageKind::Event);
            let trace = streams[message.stream].details.as_ref().map_or(0, |details| details.trace);
            let introduces = !std::mem::replace(&mut self.introduced[trace], true);
            let first = !std::mem::replace(&mut self.anything, true);
            blocks.push(MessageBlock { message, first, introduces });
        }
        blocks
    }
}

/// A row of a round as a message of a stream with that clock.
pub(crate) fn message(
    round: &Round<StreamBatch>,
    place: PartRow,
    clock: Option<ClockConverter>,
) -> Message<MessageBody> {
    let part = &round.parts[place.part as usize];
    let nanos_of = |cycles: Option<u64>| clock.zip(cycles).map(|(clock, cycles)| clock.nanos_saturating(cycles));
    let message = |step, cycles: Option<u64>, body| Message {
        stream: part.stream,
        step,
        nanos: nanos_of(cycles),
        cycles,
        until: None,
        body,
    };
    match &part.batch.content {
        BatchContent::Events(events) => {
            message(MessageKind::Event, Some(events.records.cycles[place.row as usize]), MessageBody::Event(place))
        }
        BatchContent::Mark(Mark::StreamBegin) => message(MessageKind::StreamBegin, None, MessageBody::Nothing),
        BatchContent::Mark(Mark::StreamEnd) => message(MessageKind::StreamEnd, None, MessageBody::Nothing),
        BatchContent::Mark(Mark::PacketBegin { packet, cycles }) => {
            message(MessageKind::PacketBegin, *cycles, MessageBody::Packet(Arc::clone(packet)))
        }
        BatchContent::Mark(Mark::PacketEnd { packet, cycles }) => {
            message(MessageKind::PacketEnd, *cycles, MessageBody::Packet(Arc::clone(packet)))
        }
        BatchContent::Mark(Mark::DiscardedEvents(loss)) => {
            let body = MessageBody::Lost { events: true, loss: *loss };
            Message { until: nanos_of(loss.end_cycles), ..message(MessageKind::Loss, loss.begin_cycles, body) }
        }
        BatchContent::Mark(Mark::DiscardedPackets(loss)) => {
            let body = MessageBody::Lost { events: false, loss: *loss };
            Message { until: nanos_of(loss.end_cycles), ..message(MessageKind::Loss, loss.begin_cycles, body) }
        }
    }
}

impl MessageBlock {
    /// Writes everything but an event's fields.
    pub(super) fn write(&self, stream: &StreamFacts, out: &mut Vec<u8>) {
        let Some(details) = &stream.details else { return };
        if !self.first {
            out.push(b'\n');
        }
        if self.introduces {
            out.extend_from_slice(details.introduction.as_bytes());
            out.push(b'\n');
        }
        let message = &self.message;
        let name = |name: &str| details.paint.text(Tone::BrightYellow, name);
        details.times(stream, message, out);
        out.extend_from_slice(details.tag.as_bytes());
        match (&message.body, message.step) {
            (_, MessageKind::StreamBegin) => out.extend_from_slice(details.beginning.as_bytes()),
            (_, MessageKind::StreamEnd) => out.extend_from_slice(name("Stream end\n").as_bytes()),
            (_, MessageKind::PacketEnd) => out.extend_from_slice((name("Packet end") + "\n").as_bytes()),
            (MessageBody::Packet(packet), _) => {
                let context = stream.printer.packet(&packet.head, packet.head_window()).unwrap_or_default();
                out.extend_from_slice(name("Packet beginning").as_bytes());
                out.extend_from_slice(if context.as_bytes().is_empty() { b"\n" } else { b":\n" });
                out.extend_from_slice(context.as_bytes());
            }
            (MessageBody::Lost { events, loss }, _) => {
                let what = if *events { "events" } else { "packets" };
                let mut line = name("Discarded ") + &name(what);
                // How many of them lie in the part that is left is unknown.
                if let Some(count) = loss.count.filter(|_| message.cycles == loss.begin_cycles) {
                    let count = details.paint.text(Tone::Bold, &grouped_unsigned(count));
                    line += &format!(" ({count} {what})");
                }
                out.extend_from_slice((line + "\n").as_bytes());
            }
            (MessageBody::Event(_) | MessageBody::Nothing, _) => {}
        }
    }
}

impl StreamDetails {
    fn times(&self, stream: &StreamFacts, message: &Message<MessageBody>, out: &mut Vec<u8>) {
        let shown = match (message.step, &message.body) {
            (MessageKind::StreamBegin | MessageKind::StreamEnd | MessageKind::Event, _) => self.traits.clock,
            (MessageKind::PacketBegin, _) => self.traits.packet_begin,
            (MessageKind::PacketEnd, _) => self.traits.packet_end,
            (MessageKind::Loss, _) => self.traits.losses_have_times(),
        };
        if !shown {
            return;
        }
        self.time(stream, message.cycles, message.nanos, out);
        if let MessageBody::Lost { loss, .. } = &message.body {
            let whole = loss.end_cycles.zip(stream.clock).map(|(cycles, clock)| clock.nanos_saturating(cycles));
            let cycles = loss.end_cycles.filter(|_| message.until == whole);
            self.time(stream, cycles, message.until, out);
        }
    }

    /// `[1,017 cycles, 1,457,111,225,177,517,006 ns from origin]`
    fn time(&self, stream: &StreamFacts, cycles: Option<u64>, nanos: Option<i64>, out: &mut Vec<u8>) {
        let cut = || stream.clock.zip(nanos).and_then(|(clock, nanos)| clock.cycles_from(nanos));
        let Some(cycles) = cycles.or_else(cut) else {
            let unknown = self.paint.text(Tone::BrightBlue, "Unknown");
            return out.extend_from_slice(format!("[{unknown}]\n").as_bytes());
        };
        // Every event has a time: nothing is allocated for it.
        let number = |out: &mut Vec<u8>, value: u64, signed: bool| {
            out.extend_from_slice(self.paint.start(Tone::BrightBlue).as_bytes());
            kymo_ir::emit::integer(out, value, signed, IntegerStyle::Grouped);
            out.extend_from_slice(self.paint.end().as_bytes());
        };
        out.push(b'[');
        number(out, cycles, false);
        out.extend_from_slice(b" cycles");
        if let Some(nanos) = stream.clock.and_then(|clock| clock.nanos(cycles)) {
            out.extend_from_slice(b", ");
            number(out, nanos as u64, true);
            out.extend_from_slice(b" ns from origin");
        }
        out.extend_from_slice(b"]\n");
    }
}
