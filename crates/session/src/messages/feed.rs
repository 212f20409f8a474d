//! Reads rounds on threads of its own and hands them over as batches.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use kymo_decode::ClockConverter;
use kymo_decode::filter::StreamFilter;
use kymo_scan::{BatchContent, Cursor, Packet, Round, StreamBatch, StreamFault};

use super::batch::{EventAt, MarkKind, MarkMessage, MessageBatch, MessageRow, PartOfBatch, Sorter};
use super::facts::MessagesFacts;
use super::{MessagesFailure, MessagesQuestion};
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::{Report, ReportProblem};
use crate::open::select::Selection;
use crate::parallel::engine::{self, RoundSink, RoundWork};
use crate::print::details::{MessageBody, message};
use crate::print::span::{Span, around};
use crate::print::trim::{Message, MessageKind, Trimmer};

/// Batches that wait to be asked for.
const BATCHES_AHEAD: usize = 2;

/// The items that the reading thread hands over.
#[derive(Debug)]
pub(super) enum Fed {
    Batch(Arc<MessageBatch>),
    End(Box<Report>),
}

/// Starts the reading thread, which ends when the job is canceled.
pub(super) fn start(
    session: &Arc<Session>,
    question: &MessagesQuestion,
    progress: Arc<Progress>,
) -> Result<(Arc<MessagesFacts>, Receiver<Fed>), MessagesFailure> {
    let spans = session.spans((question.begin_ns, question.end_ns), question.stream_intersection);
    let spans = spans.map_err(MessagesFailure::NoIntersection)?;
    let facts = Arc::new(MessagesFacts::new(session));
    let filters = session.filters(&question.selection);
    let (sender, receiver) = sync_channel(BATCHES_AHEAD);
    let (session, facts_too, marks) = (Arc::clone(session), Arc::clone(&facts), question.marks);
    let job = FeedJob { session, facts: facts_too, spans, marks, filters, progress };
    let thread = std::thread::Builder::new().name("kymo-messages".to_owned());
    thread.spawn(move || job.run(&sender)).map_err(MessagesFailure::NoThread)?;
    Ok((facts, receiver))
}

/// The job of the reading thread.
struct FeedJob {
    session: Arc<Session>,
    facts: Arc<MessagesFacts>,
    /// Of each trace.
    spans: Vec<Span>,
    marks: bool,
    filters: Vec<Option<Arc<StreamFilter>>>,
    progress: Arc<Progress>,
}

impl FeedJob {
    fn run(self, sender: &SyncSender<Fed>) {
        let trims = self.spans.iter().any(|span| *span != (None, None));
        // Streams and packets that were open before a time matter to marks.
        let (begin, end) = if self.marks { (None, None) } else { around(&self.spans) };
        let cursors = self.session.cursors_between(true, (begin, end), &self.filters, &self.progress);
        let trimmers = self.spans.iter().map(|(begin, end)| Trimmer::new(*begin, *end)).collect();
        let work = FeedWork {
            facts: Arc::clone(&self.facts),
            spans: (trims && !self.marks).then_some(&self.spans),
            marks: self.marks,
            sorters: Mutex::default(),
        };
        let mut sink = FeedSink {
            session: &self.session,
            facts: &self.facts,
            trimmers: (trims && self.marks).then_some(trimmers),
            packets: vec![None; self.facts.streams.len()],
            report: self.session.opening_report().clone(),
            sender,
        };
        let cursors = engine::run(cursors, self.session.threads, &work, &mut sink);
        let notes = cursors.iter().flat_map(|cursor: &Cursor| self.session.assumptions(cursor));
        sink.report.assumptions.extend(notes);
        // The receiver may be gone.
        let _ = sender.send(Fed::End(Box::new(sink.report)));
    }
}

/// Hands over all selected events in batches, in the order of time, on the thread that asks. Returns the places that cannot be
/// read.
pub(crate) fn each_batch(
    session: &Session,
    selection: &Selection,
    progress: &Progress,
    take: &mut dyn FnMut(&MessageBatch) -> ControlFlow<()>,
) -> Vec<ReportProblem> {
    let facts = Arc::new(MessagesFacts::new(session));
    let cursors = session.cursors_between(false, (None, None), &session.filters(selection), progress);
    let work = FeedWork { facts, spans: None, marks: false, sorters: Mutex::default() };
    let mut sink = BatchSink { session, take, faults: Vec::new() };
    engine::run(cursors, session.threads, &work, &mut sink);
    sink.faults
}

/// Hands over batches.
struct BatchSink<'a> {
    session: &'a Session,
    take: &'a mut dyn FnMut(&MessageBatch) -> ControlFlow<()>,
    faults: Vec<ReportProblem>,
}

impl<'w> RoundSink<FeedWork<'w>> for BatchSink<'_> {
    fn context(&mut self, _: &mut Round<StreamBatch>) -> FeedInput {
        FeedInput::default()
    }

    fn finish(&mut self, read: FeedOutput) -> ControlFlow<()> {
        if read.batch.rows().is_empty() { ControlFlow::Continue(()) } else { (self.take)(&read.batch) }
    }

    fn fault(&mut self, fault: StreamFault) {
        self.faults.push(self.session.problem(&fault));
    }
}

struct FeedWork<'a> {
    facts: Arc<MessagesFacts>,
    /// Of each trace, where events alone are left out.
    spans: Option<&'a [Span]>,
    marks: bool,
    sorters: Mutex<Vec<Sorter>>,
}

/// The input of a round from those before.
#[derive(Default)]
struct FeedInput {
    /// The rest of the round, where marks are kept and something is left out.
    messages: Option<Vec<Message<MessageBody>>>,
    /// Nothing follows.
    last: bool,
}

struct FeedOutput {
    batch: MessageBatch,
    last: bool,
}

impl RoundWork for FeedWork<'_> {
    type Context = FeedInput;
    type Output = FeedOutput;

    fn work(&self, round: &Round<StreamBatch>, before: FeedInput) -> FeedOutput {
        let mut sorter = self.sorters.lock().ok().and_then(|mut sorters| sorters.pop()).unwrap_or_default();
        let streams = &self.facts.streams;
        let part = |part| PartOfBatch::new(part, &streams[part.stream], &mut sorter);
        let parts: Vec<PartOfBatch> = round.parts.iter().map(part).collect();
        for (part, from) in parts.iter().zip(&round.parts) {
            part.read_ahead(&streams[from.stream]);
        }
        if let Ok(mut sorters) = self.sorters.lock() {
            sorters.push(sorter);
        }
        let (rows, marks) = match before.messages {
            Some(messages) => self.rows_of_messages(messages),
            None => self.rows_of_round(round),
        };
        FeedOutput { batch: MessageBatch::new(Arc::clone(&self.facts), rows, parts, marks), last: before.last }
    }
}

impl FeedWork<'_> {
    fn rows_of_round(&self, round: &Round<StreamBatch>) -> (Vec<MessageRow>, Vec<MarkMessage>) {
        let mut marks = Vec::new();
        let mut rows = Vec::with_capacity(round.order.len());
        for &place in &round.order {
            let part = &round.parts[place.part as usize];
            match &part.batch.content {
                BatchContent::Events(events) => {
                    if self.is_inside(part.stream, events.records.cycles[place.row as usize]) {
                        rows.push(MessageRow::Event(EventAt { part: place.part, row: place.row }));
                    }
                }
                BatchContent::Mark(_) if self.marks => {
                    rows.push(MessageRow::Mark(marks.len() as u32));
                    let clock = self.facts.streams[part.stream].clock;
                    marks.extend(mark(message(round, place, clock), clock));
                }
                BatchContent::Mark(_) => {}
            }
        }
        (rows, marks)
    }

    #[inline]
    fn is_inside(&self, stream: usize, cycles: u64) -> bool {
        let Some(spans) = self.spans else { return true };
        let stream = &self.facts.streams[stream];
        let (begin, end) = spans[stream.trace];
        let inside = |nanos: i64| begin.is_none_or(|begin| begin <= nanos) && end.is_none_or(|end| nanos <= end);
        stream.clock.and_then(|clock| clock.nanos(cycles)).is_none_or(inside)
    }

    fn rows_of_messages(&self, messages: Vec<Message<MessageBody>>) -> (Vec<MessageRow>, Vec<MarkMessage>) {
        let mut marks = Vec::new();
        let rows = messages.into_iter().filter_map(|message| match message.body {
            MessageBody::Event(place) => Some(MessageRow::Event(EventAt { part: place.part, row: place.row })),
            _ => {
                let clock = self.facts.streams[message.stream].clock;
                marks.push(mark(message, clock)?);
                Some(MessageRow::Mark(marks.len() as u32 - 1))
            }
        });
        (rows.collect(), marks)
    }
}

/// The mark of a message that is not an event.
fn mark(message: Message<MessageBody>, clock: Option<ClockConverter>) -> Option<MarkMessage> {
    let whole_end = |end: Option<u64>| clock.zip(end).map(|(clock, cycles)| clock.nanos_saturating(cycles));
    let (packet, count, mut end_cycles, lost_events) = match message.body {
        MessageBody::Packet(packet) => (Some(packet), None, None, false),
        // How many of them lie in the part that is left is unknown.
        MessageBody::Lost { events, loss } => {
            let count = loss.count.filter(|_| message.cycles == loss.begin_cycles);
            (None, count, loss.end_cycles.filter(|_| whole_end(loss.end_cycles) == message.until), events)
        }
        MessageBody::Nothing | MessageBody::Event(_) => (None, None, None, false),
    };
    let kind = match (message.step, lost_events) {
        (MessageKind::StreamBegin, _) => MarkKind::StreamBegin,
        (MessageKind::StreamEnd, _) => MarkKind::StreamEnd,
        (MessageKind::PacketBegin, _) => MarkKind::PacketBegin,
        (MessageKind::PacketEnd, _) => MarkKind::PacketEnd,
        (MessageKind::Loss, true) => MarkKind::DiscardedEvents,
        (MessageKind::Loss, false) => MarkKind::DiscardedPackets,
        (MessageKind::Event, _) => return None,
    };
    // Messages are cut at a time, not at cycles.
    let cut = |nanos: Option<i64>| clock.zip(nanos).and_then(|(clock, nanos)| clock.cycles_from(nanos));
    end_cycles = end_cycles.or_else(|| cut(message.until));
    let cycles = message.cycles.or_else(|| cut(message.nanos));
    Some(MarkMessage { kind, stream: message.stream, cycles, end_cycles, count, packet })
}

struct FeedSink<'a> {
    session: &'a Session,
    facts: &'a MessagesFacts,
    /// One for each trace, where marks are kept and something is left out.
    trimmers: Option<Vec<Trimmer<MessageBody>>>,
    /// Of each stream the packet that is open.
    packets: Vec<Option<Arc<Packet>>>,
    report: Report,
    sender: &'a SyncSender<Fed>,
}

impl<'a> RoundSink<FeedWork<'a>> for FeedSink<'_> {
    fn context(&mut self, round: &mut Round<StreamBatch>) -> FeedInput {
        self.report.count_losses(round);
        let Some(trimmers) = &mut self.trimmers else { return FeedInput::default() };
        let mut messages = Vec::with_capacity(round.order.len());
        for &place in &round.order {
            let stream = round.parts[place.part as usize].stream;
            let facts = &self.facts.streams[stream];
            let message = message(round, place, facts.clock);
            if let (MessageKind::PacketBegin, MessageBody::Packet(packet)) = (message.step, &message.body) {
                self.packets[stream] = Some(Arc::clone(packet));
            }
            trimmers[facts.trace].push(message, &mut messages);
        }
        for message in messages.iter_mut().filter(|message| message.step == MessageKind::PacketEnd) {
            if let (MessageBody::Nothing, Some(packet)) = (&message.body, &self.packets[message.stream]) {
                message.body = MessageBody::Packet(Arc::clone(packet));
            }
        }
        FeedInput { messages: Some(messages), last: trimmers.iter().all(Trimmer::is_finished) }
    }

    fn finish(&mut self, read: FeedOutput) -> ControlFlow<()> {
        if !read.batch.rows().is_empty() && self.sender.send(Fed::Batch(Arc::new(read.batch))).is_err() {
            return ControlFlow::Break(());
        }
        if read.last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn fault(&mut self, fault: StreamFault) {
        self.report.unreadable.push(self.session.problem(&fault));
    }
}
