//! Keeps the messages between two times, so that the rest is a whole story again.
//!
//! ```text
//! stream  ─B──[─e──e──]──[─e──────e─]──E─      B, E: it begins, ends; [ ]: a packet
//! kept           ├─────────────┤
//! becomes        B[e──]──[─e───]E
//! ```
//!
//! A stream or packet that began before the first time and is still open then begins at that time;
//! one that is open at the second time ends there. Babeltrace's `filter.utils.trimmer` does the
//! same. A message without a time passes.

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    StreamBegin,
    StreamEnd,
    PacketBegin,
    PacketEnd,
    Event,
    Loss,
}

/// Something that happens in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message<B> {
    /// Rank of the stream.
    pub(crate) stream: usize,
    pub(crate) step: MessageKind,
    /// When, in nanoseconds since the origin.
    pub(crate) nanos: Option<i64>,
    /// The clock's value; `None` where the time is none of the trace, but where something was cut.
    pub(crate) cycles: Option<u64>,
    /// Until when, if it lasts.
    pub(crate) until: Option<i64>,
    pub(crate) body: B,
}

/// Does it for streams with messages in the order of time.
#[derive(Debug)]
pub(crate) struct Trimmer<B> {
    begin: Option<i64>,
    end: Option<i64>,
    begun: bool,
    finished: bool,
    /// In the order of their ranks.
    streams: Vec<(usize, OpenStream<B>)>,
}

/// A stream that began and did not end yet.
#[derive(Debug)]
struct OpenStream<B> {
    /// Not given out before anything is.
    stream: Option<Message<B>>,
    packet: Option<Message<B>>,
    in_packet: bool,
    /// Something in it had a time.
    timed: bool,
}

impl<B> Default for OpenStream<B> {
    fn default() -> Self {
        Self { stream: None, packet: None, in_packet: false, timed: false }
    }
}

impl<B: Default> Trimmer<B> {
    pub(crate) fn new(begin: Option<i64>, end: Option<i64>) -> Self {
        Self { begin, end, begun: begin.is_none(), finished: false, streams: Vec::new() }
    }

    /// Nothing more will come out.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Takes the next message, and gives out the messages to keep.
    pub(crate) fn push(&mut self, mut message: Message<B>, out: &mut Vec<Message<B>>) {
        if self.finished {
            return;
        }
        if !self.begun {
            let begin = self.begin.unwrap_or(i64::MIN);
            let reaches = |time: Option<i64>| time.is_some_and(|time| time >= begin);
            let lasts = message.step == MessageKind::Loss && reaches(message.until);
            if !reaches(message.nanos) && !lasts {
                return self.hold(message);
            }
            self.release(begin, out);
            if !reaches(message.nanos) {
                (message.nanos, message.cycles) = (Some(begin), None);
            }
        }
        match self.end {
            Some(end) if message.nanos.is_some_and(|time| time > end) => self.finish(end, out),
            end => {
                if let (Some(end), Some(until)) = (end, message.until.as_mut()) {
                    *until = end.min(*until);
                }
                self.note(&message);
                out.push(message);
            }
        }
    }

    fn open(&mut self, stream: usize) -> &mut OpenStream<B> {
        let at = self.streams.partition_point(|(rank, _)| *rank < stream);
        if self.streams.get(at).is_none_or(|(rank, _)| *rank != stream) {
            self.streams.insert(at, (stream, OpenStream::default()));
        }
        &mut self.streams[at].1
    }

    fn note(&mut self, message: &Message<B>) {
        let open = self.open(message.stream);
        open.timed |= message.nanos.is_some();
        match message.step {
            MessageKind::PacketBegin => open.in_packet = true,
            MessageKind::PacketEnd => open.in_packet = false,
            MessageKind::StreamEnd => self.streams.retain(|(rank, _)| *rank != message.stream),
            MessageKind::StreamBegin | MessageKind::Event | MessageKind::Loss => {}
        }
    }

    /// Before the first time: only open streams and packets matter.
    fn hold(&mut self, message: Message<B>) {
        self.note(&message);
        if message.step == MessageKind::StreamEnd {
            return;
        }
        let open = self.open(message.stream);
        match message.step {
            MessageKind::StreamBegin => open.stream = Some(message),
            MessageKind::PacketBegin => open.packet = Some(message),
            MessageKind::PacketEnd => open.packet = None,
            MessageKind::StreamEnd | MessageKind::Event | MessageKind::Loss => {}
        }
    }

    /// At the first time: open streams and packets begin.
    fn release(&mut self, begin: i64, out: &mut Vec<Message<B>>) {
        self.begun = true;
        // Messages without a time go first.
        for (_, open) in self.streams.iter_mut().filter(|(_, open)| !open.timed) {
            out.extend(open.stream.take());
        }
        for (_, open) in &mut self.streams {
            if let Some(mut stream) = open.stream.take() {
                (stream.nanos, stream.cycles) = (Some(begin), None);
                out.push(stream);
            }
            if let Some(packet) = open.packet.take() {
                out.push(Message { nanos: Some(begin), cycles: None, ..packet });
            }
        }
    }

    /// At the second time: open streams and packets end.
    fn finish(&mut self, end: i64, out: &mut Vec<Message<B>>) {
        self.finished = true;
        for (stream, open) in std::mem::take(&mut self.streams) {
            let close = |step, nanos| Message { stream, step, nanos, cycles: None, until: None, body: B::default() };
            if open.in_packet {
                out.push(close(MessageKind::PacketEnd, Some(end)));
            }
            out.push(close(MessageKind::StreamEnd, open.timed.then_some(end)));
        }
    }
}

#[cfg(test)]
mod tests;
