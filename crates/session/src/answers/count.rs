//! How many event records of each class there are, and how large they are.
//!
//! ```text
//! packet  ├ head ┤ record │ record │ record ┤ padding ├
//!                └ size ──┘                                a record's size: from the end of the one before
//! ```
//!
//! Counting needs no more than where records are. Their sizes need their ends too, which costs a second look at
//! each: that is only done where it is asked for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kymo_decode::filter::StreamFilter;
use kymo_ir::Records;
use kymo_scan::{BatchContent, BatchEvents, Cursor, CursorItem, Mark};

use crate::answers::losses::losses;
use crate::open::progress::{Cancelled, Progress, Steps};
use crate::open::report::{Report, ReportProblem};
use crate::open::select::Selection;
use crate::open::thinned::ThinnedEvents;
use crate::open::{Session, TimeOrigin, trace_name};

/// The options of a count.
#[derive(Clone, Debug, Default)]
pub struct CountOptions {
    /// Only these events.
    pub selection: Selection,
    /// Bits of event records too.
    pub sizes: bool,
}

/// Event records by class and data stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Classes that occur in a stream, most frequent first.
    pub classes: Vec<ClassCount>,
    /// All event records.
    pub total: u64,
    /// Where all bits are, if sizes were asked for.
    pub sizes: Option<Sizes>,
    /// Earliest and latest time of any packet, in nanoseconds, or of any event where packets carry no time; `None`
    /// where clocks count from different origins.
    pub span_ns: Option<(i64, i64)>,
    /// The differences between these numbers and the whole truth.
    pub report: Report,
}

/// Where the bits of packets are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// In event records.
    pub records_bits: u64,
    /// In packets' headers and contexts.
    pub heads_bits: u64,
    /// In all packets; bits that are neither in records nor in heads are padding, or could not be
    /// read.
    pub packets_bits: u64,
}

/// How often one class occurs in one data stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// Where the trace is.
    pub trace: String,
    /// The data stream's place among all.
    pub stream: usize,
    /// The data stream's file; the first of several.
    pub stream_name: String,
    /// The class' id.
    pub id: u64,
    /// The class' name.
    pub name: Option<String>,
    /// How often.
    pub events: u64,
    /// Bits of its records, with the padding before each, if sizes were asked for.
    pub bits: Option<u64>,
}

impl Session {
    /// Counts event records by class and stream. Needs no order, so streams are read side by side.
    ///
    /// # Errors
    ///
    /// It was canceled.
    pub fn count(&self, options: &CountOptions, progress: &Progress) -> Result<Counts, Cancelled> {
        self.expect(progress, None, None);
        let filters = self.filters(&options.selection);
        // A record's size is known from where the one before it ends, be that wanted or not.
        let early = if options.sizes { &[] } else { &filters[..] };
        let cursors = self.cursors(options.sizes || !options.selection.is_all(), early, progress);
        let results = self.side_by_side(cursors, |cursor| {
            let filter = filters[cursor.stream()].as_deref();
            count_stream(self, cursor, filter, options, progress)
        });
        progress.whole(self.counts(options, results))
    }

    /// Does the same with each cursor, with some at a time; in any order.
    pub(crate) fn side_by_side<T: Send>(&self, cursors: Vec<Cursor>, work: impl Fn(Cursor) -> T + Sync) -> Vec<T> {
        let cursors: Vec<_> = cursors.into_iter().map(|cursor| Mutex::new(Some(cursor))).collect();
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let work = || {
            while let Some(slot) = cursors.get(next.fetch_add(1, Ordering::Relaxed)) {
                let cursor = slot.lock().ok().and_then(|mut cursor| cursor.take());
                let Some(cursor) = cursor else { continue };
                let result = work(cursor);
                if let Ok(mut results) = results.lock() {
                    results.push(result);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads.min(cursors.len()) {
                scope.spawn(work);
            }
            work();
        });
        results.into_inner().unwrap_or_default()
    }

    fn counts(&self, options: &CountOptions, mut streams: Vec<StreamCounts>) -> Counts {
        streams.sort_by_key(|stream| stream.stream);
        let names = &options.selection.events;
        let is_about = |rule: &&ThinnedEvents| names.is_empty() || rule.is_about_some(names);
        let thinned = self.thinned().iter().filter(is_about).cloned().collect();
        let mut counts = Counts { report: Report { thinned, ..self.opening_report().clone() }, ..Counts::default() };
        let (mut sizes, mut events_ns) = (Sizes::default(), None);
        for counted in streams {
            events_ns = join(events_ns, counted.span_ns);
            self.add_stream(&counted, options, &mut counts);
            let (_, stream) = self.streams()[counted.stream];
            sizes.heads_bits += counted.heads_bits;
            sizes.records_bits += counted.bits.iter().sum::<u64>();
            sizes.packets_bits += stream.packets.iter().map(|packet| packet.total_bits).sum::<u64>();
            losses(stream, 0..stream.packets.len(), &mut counts.report);
            counts.report.assumptions.extend(counted.assumptions);
            counts.report.unreadable.extend(counted.faults.iter().map(|fault| self.problem(fault)));
        }
        let same = TimeOrigin::all_same(&self.origins());
        counts.span_ns = self.event_span().or(events_ns.filter(|_| same));
        counts.sizes = options.sizes.then_some(sizes);
        counts.classes.sort_by_key(|class| std::cmp::Reverse(class.events));
        counts
    }

    fn add_stream(&self, counted: &StreamCounts, options: &CountOptions, counts: &mut Counts) {
        let (trace, stream) = self.streams()[counted.stream];
        let first = stream.files.first().map(|&file| trace_name(trace.folder.stream(file as usize).path()));
        let classes = &trace.class.stream_classes[stream.class].event_classes;
        for (dense, &events) in counted.events.iter().enumerate().filter(|(_, events)| **events > 0) {
            counts.total += events;
            counts.classes.push(ClassCount {
                trace: trace.folder.path().display().to_string(),
                stream: counted.stream,
                stream_name: first.clone().unwrap_or_default(),
                id: classes[dense].id,
                name: classes[dense].name.clone(),
                events,
                bits: options.sizes.then(|| counted.bits[dense]),
            });
        }
    }
}

#[derive(Default)]
struct StreamCounts {
    stream: usize,
    /// By dense class index.
    events: Vec<u64>,
    /// By dense class index, if sizes were asked for.
    bits: Vec<u64>,
    heads_bits: u64,
    /// Times of the first and the last event.
    span_ns: Option<(i64, i64)>,
    faults: Vec<kymo_scan::StreamFault>,
    assumptions: Vec<ReportProblem>,
}

fn count_stream(
    session: &Session,
    mut cursor: Cursor,
    filter: Option<&StreamFilter>,
    options: &CountOptions,
    progress: &Progress,
) -> StreamCounts {
    let mut counts = StreamCounts { stream: cursor.stream(), ..StreamCounts::default() };
    let (mut ruler, mut steps) = (Ruler::default(), Steps::default());
    while let Some(item) = cursor.next_item() {
        match item {
            CursorItem::Fault(fault) => counts.faults.push(fault),
            CursorItem::Batch(batch) => {
                steps.behind(progress, &batch, batch.keys.len());
                match &batch.content {
                    BatchContent::Events(events) => {
                        if options.sizes {
                            ruler.measure(session, &mut counts, events, &batch.keys, filter);
                        } else {
                            counts.add(events, &batch.keys);
                        }
                    }
                    BatchContent::Mark(Mark::PacketBegin { packet, .. }) => counts.heads_bits += packet.head.body_start,
                    BatchContent::Mark(_) => {}
                }
                cursor.recycle(batch);
            }
        }
    }
    counts.assumptions = session.assumptions(&cursor);
    counts
}

impl StreamCounts {
    fn add(&mut self, events: &BatchEvents, keys: &[i64]) {
        // Keys do not decrease; before the first time of a stream they are below all times.
        let times = keys.first().copied().zip(keys.last().copied());
        self.span_ns = join(self.span_ns, times.filter(|(first, _)| *first != i64::MIN));
        for &class in &events.records.classes {
            self.add_one(class as usize);
        }
    }

    fn add_one(&mut self, class: usize) {
        if class >= self.events.len() {
            self.events.resize(class + 1, 0);
        }
        self.events[class] += 1;
    }
}

/// The span that covers both.
fn join(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

/// Finds the end of every record, one after the other: the first begins where the packet's head ends.
#[derive(Default)]
struct Ruler {
    packet: Option<u64>,
    /// The end of the record before.
    position: u64,
    record: Records,
}

impl Ruler {
    fn measure(
        &mut self,
        session: &Session,
        counts: &mut StreamCounts,
        events: &BatchEvents,
        keys: &[i64],
        filter: Option<&StreamFilter>,
    ) {
        let (trace, stream) = session.streams()[counts.stream];
        if self.packet.replace(events.packet.number) != Some(events.packet.number) {
            self.position = events.packet.head.body_start;
        }
        let classes = trace.class.stream_classes[stream.class].event_classes.len();
        counts.bits.resize(classes, 0);
        let (mut state, window) = (events.state(), events.window());
        let mut asked = events.state();
        if let Some(filter) = filter {
            filter.enter(&events.packet.head, events.packet.head_window(), &mut asked);
        }
        let stream_class = events.packet.row.stream_class as usize;
        let records = &events.records;
        for (row, &class) in records.classes.iter().enumerate() {
            let begin = self.position;
            self.record.clear();
            // It was read before, so it can be read again.
            trace.decoder.scan(stream_class, window, &mut self.position, &mut state, &mut self.record, 1);
            let class = class as usize;
            let keeps = |filter: &StreamFilter| {
                filter.keeps(class, window, records.positions[row], records.cycles[row], &mut asked).unwrap_or(false)
            };
            if filter.is_none_or(keeps) {
                counts.bits[class] += self.position - begin;
                counts.add_one(class);
                let time = Some(keys[row]).filter(|time| *time != i64::MIN);
                counts.span_ns = join(counts.span_ns, time.zip(time));
            }
        }
    }
}
