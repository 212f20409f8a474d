//! Reads one part of the trace on one thread.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use kymo_analysis::project::Projector;
use kymo_analysis::{
    Analysis, AnyAnalysis, AnyPart, AnyState, BoundClass, EventRole, EventRows, Feed, RowsOf, TracePart, Windows, roles,
};
use kymo_scan::merge::KeyedItem;
use kymo_scan::{BatchContent, Cursor, CursorItem, Merger, Slice, StreamBatch, StreamFault};

use super::prepare::Prepared;
use crate::open::progress::{Progress, Steps};
use crate::open::{Doubts, Session};

/// Something that could not be read.
#[derive(Debug)]
pub(crate) struct ReadFault {
    /// The fault.
    pub(crate) fault: StreamFault,
    /// Events behind this time may be missing.
    pub(crate) after_ns: i64,
    /// Not behind this time.
    pub(crate) until_ns: i64,
}

/// The reader of parts of a thread.
pub(crate) struct PartReader<'a> {
    session: &'a Session,
    prepared: &'a Prepared,
    progress: &'a Progress,
    cursors: Vec<Cursor>,
    projectors: Vec<Option<Projector<'a>>>,
    steps: Vec<Steps>,
    /// The first and the last time that was seen of each stream.
    first_ns: Vec<i64>,
    last_ns: Vec<i64>,
    /// For each lane of several data streams the merger that puts them in order.
    mergers: Vec<Option<Merger<Projected>>>,
    rows: Vec<EventRows>,
    /// From when to when events are wanted, where that is less than the cursors deliver.
    span: Option<(i64, i64)>,
    /// Of each stream the events behind that.
    behind: Vec<Option<Projected>>,
    /// For each stream that names no CPU, its lane and the last switch there.
    unnamed: Vec<Option<UnnamedCpu>>,
    /// Those of them with switches of several CPUs.
    mixed: BTreeSet<usize>,
}

/// A stream that is taken for one CPU's, though nothing says so.
struct UnnamedCpu {
    lane: usize,
    /// When its last switch was, and the thread that ran from then on.
    last: Option<(i64, i64)>,
}

impl UnnamedCpu {
    /// Whether these events show that several CPUs recorded them: a thread goes that the CPU did not run.
    fn is_refuted_by(&mut self, rows: &EventRows, classes: &[BoundClass], bytes: &[u8], holes: &Windows) -> bool {
        let mut is_refuted = false;
        for row in 0..rows.times.len() {
            let event = rows.event(row, classes, bytes);
            for switch in event.roles().filter(|event| event.role == EventRole::Switch) {
                let going = switch.integer(roles::switch::PREV_TID);
                if let (Some((since, running)), Some(going)) = (self.last, going) {
                    is_refuted |= running != going && !holes.touch(since, event.time);
                }
                self.last = switch.integer(roles::switch::NEXT_TID).map(|coming| (event.time, coming));
            }
        }
        is_refuted
    }
}

/// Events of a batch, projected.
struct Decoded {
    batch: StreamBatch,
    rows: EventRows,
}

/// Some of them, by their rows.
struct Projected {
    decoded: Arc<Decoded>,
    rows: Range<usize>,
}

impl Projected {
    /// The first of its rows, and the batch that they are in.
    fn rows<'a>(&'a self, classes: &'a [BoundClass]) -> (usize, RowsOf<'a>) {
        let Decoded { batch, rows } = &*self.decoded;
        match &batch.content {
            BatchContent::Events(events) => (self.rows.start, (rows, classes, events.window().bytes())),
            _ => unreachable!("only events are projected"),
        }
    }
}

impl KeyedItem for Projected {
    fn keys(&self) -> &[i64] {
        &self.decoded.rows.times[self.rows.clone()]
    }
}

/// A part, and its unreadable places.
pub(crate) struct PartRead<S> {
    pub(crate) state: S,
    pub(crate) faults: Vec<ReadFault>,
}

/// A part of a run: its analysis, from when to when it goes, whether it is the first one.
pub(super) type RunPart = (Box<dyn AnyAnalysis>, (i64, i64), bool);

/// Packets are not where their times say.
pub(crate) struct Strays;

impl<'a> PartReader<'a> {
    pub(crate) fn new(session: &'a Session, prepared: &'a Prepared, progress: &'a Progress) -> Self {
        // Each part says which packets to read.
        let cursors = session.cursors_between(false, (None, None), &prepared.filters, progress);
        let projector = |stream: &Option<usize>| stream.map(|stream| Projector::new(&prepared.bindings, stream));
        let merger = |streams: usize| (streams > 1).then(|| Merger::new(streams));
        let unnamed = |stream: usize| {
            if !prepared.reads_all_switches {
                return None;
            }
            let lane = prepared.lanes.iter().position(|lane| lane.names_no_cpu && lane.streams.contains(&stream))?;
            Some(UnnamedCpu { lane, last: None })
        };
        Self {
            session,
            prepared,
            progress,
            projectors: prepared.streams.iter().map(projector).collect(),
            steps: vec![Steps::default(); cursors.len()],
            first_ns: vec![i64::MAX; cursors.len()],
            last_ns: vec![i64::MIN; cursors.len()],
            mergers: prepared.lanes.iter().map(|lane| merger(lane.streams.len())).collect(),
            behind: cursors.iter().map(|_| None).collect(),
            unnamed: (0..cursors.len()).map(unnamed).collect(),
            mixed: BTreeSet::new(),
            cursors,
            rows: Vec::new(),
            span: None,
        }
    }

    /// How far it is, with others.
    pub(super) fn progress(&self) -> &Progress {
        self.progress
    }

    /// Reads a part; the first one or another one. Where `relies`, its packets must be where their times say, and all must be
    /// readable.
    pub(crate) fn read<A: Analysis>(
        &mut self,
        analysis: &A,
        slice: &Slice,
        is_first: bool,
        relies: bool,
    ) -> Result<PartRead<A::State>, Strays> {
        self.enter(slice);
        self.read_with(relies, |lanes, feed| TracePart::read(analysis, lanes, is_first, feed))
    }

    /// Keys measure intervals from now on, also where the clock is set back. All that is read must be one part then.
    pub(super) fn measure_intervals(&mut self) {
        self.cursors.iter_mut().for_each(|cursor| cursor.set_for_intervals(true));
    }

    /// The same, of an analysis of any type.
    pub(super) fn read_any(
        &mut self,
        analysis: &dyn AnyAnalysis,
        slice: &Slice,
        is_first: bool,
        relies: bool,
    ) -> Result<PartRead<AnyState>, Strays> {
        self.enter(slice);
        let read = self.read_with(relies, |lanes, feed| analysis.read(lanes, is_first, feed))?;
        if relies && !self.mixed.is_empty() { Err(Strays) } else { Ok(read) }
    }

    /// The streams that name no CPU and have switches of several ones.
    pub(super) fn mixed(&self) -> BTreeSet<usize> {
        self.mixed.clone()
    }

    /// The streams with a clock that was set back, each with its first and last time as analyses saw them; `None`: they
    /// saw no times behind that.
    pub(super) fn set_back(&self) -> BTreeMap<usize, Option<(i64, i64)>> {
        let is_set_back = |stream: &usize| self.cursors[*stream].clock_was_set_back();
        let seen = |stream: usize| {
            let span = (self.first_ns[stream], self.last_ns[stream]);
            (stream, self.cursors[stream].is_for_intervals().then_some(span))
        };
        (0..self.cursors.len()).filter(is_set_back).map(seen).collect()
    }

    /// Reads parts of a slice one after the other, without going back in between: each has its own analysis, goes from when
    /// to when, and may be the first one. `None`: not everything can be read.
    pub(super) fn read_run(&mut self, slice: &Slice, parts: &[RunPart]) -> Option<Vec<AnyState>> {
        self.enter(slice);
        let read = |(analysis, span, is_first): &RunPart| {
            self.span = Some(*span);
            let read = self.read_with(false, |lanes, feed| analysis.read(lanes, *is_first, feed)).ok()?;
            (read.faults.is_empty() && self.mixed.is_empty()).then_some(read.state)
        };
        parts.iter().map(read).collect()
    }

    fn enter(&mut self, slice: &Slice) {
        self.cursors.iter_mut().for_each(|cursor| cursor.enter(slice));
        self.unnamed.iter_mut().flatten().for_each(|unnamed| unnamed.last = None);
    }

    /// Reads on from where cursors are; `read` makes a part with so many lanes, has it fed, and ends it.
    fn read_with<S>(
        &mut self,
        relies: bool,
        read: impl FnOnce(usize, &mut Feed<'_>) -> Option<S>,
    ) -> Result<PartRead<S>, Strays> {
        let (lanes, mut faults) = (self.prepared.lanes.len(), Vec::new());
        let state = read(lanes, &mut |part| self.feed_all(part, relies, &mut faults)).ok_or(Strays)?;
        Ok(PartRead { state, faults })
    }

    /// Feeds a part until all of its events are read. False: something is not as it should be that is relied on.
    fn feed_all(&mut self, part: &mut dyn AnyPart, relies: bool, faults: &mut Vec<ReadFault>) -> bool {
        // A reader reads many parts: streams that were finished in the last one have events again.
        self.mergers.iter_mut().flatten().for_each(Merger::restart);
        loop {
            for lane in 0..self.prepared.lanes.len() {
                while part.is_hungry(lane) {
                    if self.feed(lane, part, faults).is_break() {
                        part.finish(lane);
                    }
                    // Whether times of packets are right shows only when their events are read, so
                    // this is asked all the time.
                    if relies && (!faults.is_empty() || self.strays(lane)) {
                        return false;
                    }
                }
            }
            if !part.settle() {
                return true;
            }
        }
    }

    /// The doubts about the streams that were read.
    pub(super) fn doubt(&self, doubts: &mut BTreeMap<usize, Doubts>, left_out: &mut BTreeMap<usize, u64>) {
        for cursor in &self.cursors {
            doubts.entry(cursor.stream()).or_default().add(Doubts::of(cursor));
        }
        for (stream, projector) in self.projectors.iter().enumerate() {
            let unreadable = projector.as_ref().map_or(0, Projector::unreadable);
            if unreadable > 0 {
                *left_out.entry(stream).or_default() += unreadable;
            }
        }
    }

    /// Whether times cannot be relied on: events are not where their packets say, the clock is set back, or times
    /// are unknown.
    fn strays(&self, lane: usize) -> bool {
        let strays =
            |cursor: &Cursor| cursor.strays() || cursor.clock_was_set_back() || cursor.times_out_of_range() > 0;
        self.prepared.lanes[lane].streams.iter().any(|&stream| strays(&self.cursors[stream]))
    }

    /// Steps through some events of a lane; breaks when there are no more.
    fn feed(&mut self, lane: usize, part: &mut dyn AnyPart, faults: &mut Vec<ReadFault>) -> ControlFlow<()> {
        if self.mergers[lane].is_some() {
            return self.feed_merged(lane, part, faults);
        }
        let Some(&stream) = self.prepared.lanes[lane].streams.first() else { return ControlFlow::Break(()) };
        let Some(projected) = self.next(stream, faults) else { return ControlFlow::Break(()) };
        let (_, batch) = projected.rows(&self.prepared.bindings.classes);
        part.steps_within(lane, projected.rows.clone(), batch);
        self.recycle(stream, projected.decoded);
        ControlFlow::Continue(())
    }

    /// Gives memory back, unless some of its events are still to come.
    fn recycle(&mut self, stream: usize, decoded: Arc<Decoded>) {
        if let Ok(Decoded { batch, rows }) = Arc::try_unwrap(decoded) {
            self.cursors[stream].recycle(batch);
            self.rows.push(rows);
        }
    }

    /// The same for a lane of several streams.
    fn feed_merged(&mut self, lane: usize, part: &mut dyn AnyPart, faults: &mut Vec<ReadFault>) -> ControlFlow<()> {
        let prepared = self.prepared;
        let mut merger = self.mergers[lane].take().expect("asked before");
        let streams = &prepared.lanes[lane].streams;
        for (place, &stream) in streams.iter().enumerate() {
            while merger.is_hungry(place) {
                match self.next(stream, faults) {
                    Some(projected) => merger.push(place, Arc::new(projected)),
                    None => merger.finish(place),
                }
            }
        }
        let round = merger.round();
        let Some(mut round) = round else {
            self.mergers[lane] = Some(merger);
            return ControlFlow::Break(());
        };
        let batches: Vec<_> = round.parts.iter().map(|part| part.batch.rows(&prepared.bindings.classes)).collect();
        part.steps_merged(lane, &round.order, &batches);
        drop(batches);
        for used in round.parts.drain(..) {
            // Batches that the merger holds on to have further rows.
            if let Ok(Projected { decoded, .. }) = Arc::try_unwrap(used.batch) {
                self.recycle(streams[used.stream], decoded);
            }
        }
        merger.recycle(round);
        self.mergers[lane] = Some(merger);
        ControlFlow::Continue(())
    }

    /// The next events of a stream that are asked for.
    fn next(&mut self, stream: usize, faults: &mut Vec<ReadFault>) -> Option<Projected> {
        let Some((begin, end)) = self.span else { return self.decode(stream, faults) };
        loop {
            let Projected { decoded, rows } = match self.behind[stream].take() {
                Some(known) => known,
                None => self.decode(stream, faults)?,
            };
            let before = |time: i64| rows.start + decoded.rows.times[rows.clone()].partition_point(|&at| at < time);
            // Times of a batch are in order, so its wanted rows are one range.
            let (from, to) = (before(begin), before(end));
            if to < rows.end {
                self.behind[stream] = Some(Projected { decoded: Arc::clone(&decoded), rows: to..rows.end });
            }
            if from < to {
                return Some(Projected { decoded, rows: from..to });
            }
            if to < rows.end {
                return None;
            }
            self.recycle(stream, decoded);
        }
    }

    /// The next events of a stream.
    fn decode(&mut self, stream: usize, faults: &mut Vec<ReadFault>) -> Option<Projected> {
        loop {
            match self.cursors[stream].next_item()? {
                CursorItem::Fault(fault) => faults.push(self.fault(fault)),
                CursorItem::Batch(batch) => {
                    self.steps[stream].behind(self.progress, &batch, batch.keys.len());
                    self.first_ns[stream] = batch.keys.first().copied().unwrap_or(i64::MAX).min(self.first_ns[stream]);
                    self.last_ns[stream] = batch.keys.last().copied().unwrap_or(self.last_ns[stream]);
                    let mut rows = self.rows.pop().unwrap_or_default();
                    if let (BatchContent::Events(events), Some(projector)) =
                        (&batch.content, &mut self.projectors[stream])
                    {
                        projector.project(events, &batch.keys, &mut rows);
                        if let Some(unnamed) = &mut self.unnamed[stream] {
                            let (classes, bytes) = (&self.prepared.bindings.classes, events.window());
                            let holes = &self.prepared.lanes[unnamed.lane].holes;
                            if unnamed.is_refuted_by(&rows, classes, bytes.bytes(), holes) {
                                self.mixed.insert(stream);
                            }
                        }
                        let rows_all = 0..rows.times.len();
                        return Some(Projected { decoded: Arc::new(Decoded { batch, rows }), rows: rows_all });
                    }
                }
            }
        }
    }

    fn fault(&self, fault: StreamFault) -> ReadFault {
        let (_, stream) = self.session.streams()[fault.stream];
        let row = (fault.packet < stream.packets.len() as u64).then(|| stream.packets.get(fault.packet as usize));
        let nanos = |cycles: Option<u64>| Some(stream.clock?.nanos_saturating(cycles?));
        let begin = row.as_ref().and_then(|row| nanos(row.begin_cycles)).unwrap_or(i64::MIN);
        let until_ns = row.as_ref().and_then(|row| nanos(row.end_cycles)).unwrap_or(i64::MAX);
        // No time tells where events are missing if the clock was set back.
        if self.cursors[fault.stream].clock_was_set_back() {
            return ReadFault { fault, after_ns: i64::MIN, until_ns: i64::MAX };
        }
        // Events of the packet that were read are there.
        let after_ns = self.last_ns[fault.stream].max(begin).min(until_ns);
        ReadFault { fault, after_ns, until_ns }
    }
}
