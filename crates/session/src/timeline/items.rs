//! The items at some time on a track, with all that is known of them: the details for a user that
//! points at one.
//!
//! ```text
//! nodes      [ no edge ][ no edge ][ edge ][ ...      say in which chunks something happens to the track
//! chunks                           [ read ]           tell when, to the nanosecond; a few are read at most
//! ```
//!
//! A run is told with its true begin and end, wherever in the trace these are. Events come with all
//! their fields, as `kymo print` writes them as JSON, and states of threads that wait with the
//! reason for it ([`wait`]).

mod owner;
mod wait;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use kymo_analysis::timeline::{Thing, TrackKey};
use serde::Serialize;
use serde_json::Value;

#[cfg(feature = "columns")]
pub(super) use self::owner::begin_of;
use super::arrows::{ArrowFlight, Way, are_messages, runs_at};
use super::catalogue::{ALL_EVENTS, Track, TrackKind, TrackValue, kind, meaning};
use super::exact::{Before, Exactly, TrackRequest, TrackRun, instants, runs, wanted_of};
use super::pyramid::{At, FAN};
use super::tiles::{BEGIN_UNKNOWN, END_UNKNOWN, IN_DOUBT, RECEIVED_FIRST};
use super::{Timeline, TimelineFailure};
use crate::answers::bases::{FieldBase, bases_of_event};
use crate::open::progress::{Cancelled, Progress};
use crate::open::select::Selection;
use crate::print::{PrintFormat, PrintOptions};

pub use self::wait::{WaitCall, WaitReason, WaitRequest, Waker};

/// Items of an answer at most.
pub const ITEMS_MAX: u32 = 1000;
/// Chunks that are read for an answer at most, and more to find where the last item ends. A user
/// that points at a run waits for the answer.
const CHUNKS_MAX: usize = 8;
const ENDS_MAX: usize = 3;

/// A question about the items of a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemQuestion {
    /// Its number.
    pub track: u32,
    /// From when on, in nanoseconds since the clock's origin.
    pub begin_ns: i64,
    /// Before when; an item at `begin_ns` is asked for in any case.
    pub end_ns: i64,
    /// How many items at most: 1 to [`ITEMS_MAX`].
    pub limit: u32,
}

/// The items on a track.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemsFound {
    /// The track.
    pub track: Track,
    /// Everything before was read: unknown values stay unknown.
    pub complete: bool,
    /// In the order of their begins.
    pub items: Vec<TrackItem>,
    /// There are more, from this time on.
    pub next_ns: Option<i64>,
}

/// Something on a track.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum TrackItem {
    /// A value from when to when.
    Run {
        /// When it begins; where that is unknown, it is there since then at least.
        begin_ns: i64,
        /// When it ends; where that is unknown, it is there until then at least.
        end_ns: i64,
        /// How long it takes, where begin and end are known.
        duration_ns: Option<u64>,
        /// Whether the begin is known.
        begin_known: bool,
        /// Whether the end is known.
        end_known: bool,
        /// Whether events are missing around it.
        in_doubt: bool,
        /// Its value.
        value: TrackValue,
        /// Why a thread waits, if it does, in answers with a few items.
        wait: Option<Box<WaitReason>>,
    },
    /// An event.
    Event {
        /// When.
        time_ns: i64,
        /// Its class.
        value: TrackValue,
        /// All that it says, as `kymo print --format json` writes it; absent where it cannot be told which one it is.
        event: Option<Value>,
        /// In which base its integers are written for people, where that is not 10.
        bases: Vec<FieldBase>,
        /// Its thread: the one that it names, otherwise the one that its CPU ran, if that is known.
        thread: Option<TrackValue>,
    },
    /// Something goes from one track to another.
    Arrow {
        /// When it leaves.
        begin_ns: i64,
        /// When it has come: the woken thread runs, or a message is received; the begin, where that
        /// is unknown.
        end_ns: i64,
        /// How long that takes, where the end is known.
        duration_ns: Option<u64>,
        /// Whether the end is known.
        end_known: bool,
        /// A message was received at its begin and sent at its end, as clocks say: they disagree.
        received_first: bool,
        /// From which track.
        from: u32,
        /// To which.
        to: u32,
        /// The woken thread, or the name of a message.
        value: TrackValue,
        /// The thread that ran where it leaves, if that is known.
        waker: Option<TrackValue>,
    },
}

/// An item of a track, with times that count from the timeline's begin.
enum FoundItem {
    Run(TrackRun),
    Instant(i64, u64),
    Arrow(ArrowFlight, Option<u64>),
}

impl FoundItem {
    fn begin(&self) -> i64 {
        match self {
            Self::Run(run) => run.begin,
            Self::Instant(at, _) => *at,
            Self::Arrow(flight, _) => flight.begin,
        }
    }
}

/// A walk over the chunks in which something happens to a track.
struct TrackWalk<'a> {
    timeline: &'a Timeline,
    progress: &'a Progress,
    /// The chunks that have nodes without a gap: of the one behind them all is known that is before it.
    known: usize,
    key: u64,
    /// The tracks that are read together; `None`: all.
    keys: Option<Vec<u64>>,
    window: (i64, i64),
    most: usize,
    found: Vec<FoundItem>,
    /// All that was read was known as a whole.
    is_complete: bool,
}

impl ItemQuestion {
    fn check(&self) -> Result<(), TimelineFailure> {
        match (1..=ITEMS_MAX).contains(&self.limit) {
            true => Ok(()),
            false => Err(TimelineFailure::Bounds {
                name: "limit",
                found: self.limit.into(),
                expected: format!("1 to {ITEMS_MAX} items can be asked for"),
            }),
        }
    }
}

impl Timeline {
    /// The items on a track in a window: runs that reach into it, events and arrows that begin in
    /// it.
    ///
    /// # Errors
    ///
    /// The question is out of bounds, the track counts durations and has no items, or the request
    /// was canceled.
    pub fn items(&self, question: &ItemQuestion, progress: &Progress) -> Result<ItemsFound, TimelineFailure> {
        question.check()?;
        let wrong = |expected: &str| TimelineFailure::Bounds {
            name: "track",
            found: question.track.into(),
            expected: expected.to_owned(),
        };
        let keys = self.names.keys(&[question.track]).map_err(|_| wrong("no track has that number"))?;
        let (key, _asked) = (keys[0], self.ask());
        let since = |at_ns: i64| at_ns.saturating_sub(self.span.0);
        let mut walk = TrackWalk {
            timeline: self,
            progress,
            known: self.desk.known(),
            key,
            keys: wait::keys(self, key).or_else(|| wanted_of(&[key])),
            window: (since(question.begin_ns), since(question.end_ns.max(question.begin_ns.saturating_add(1)))),
            most: question.limit as usize,
            found: Vec::new(),
            is_complete: true,
        };
        let is_inside = 0 < walk.window.1 && walk.window.0 <= walk.behind();
        let next = match kind(key) {
            Some(TrackKind::States | TrackKind::Instants | TrackKind::Arrows) if !is_inside => None,
            Some(TrackKind::States) => walk.states()?,
            Some(TrackKind::Instants | TrackKind::Arrows) => walk.others()?,
            _ => return Err(wrong("this track shows sums and has no items")),
        };
        let waits = walk.waits()?;
        let TrackWalk { found, is_complete, .. } = walk;
        let events = self.events_of(key, &found, progress)?;
        let threads = self.threads_of(&found, &events, progress)?;
        let told = found.iter().zip(events.into_iter().zip(threads)).zip(waits);
        let items = told.filter_map(|((found, event), wait)| self.told(key, found, event, wait)).collect();
        let track = self.track_of(question.track, key).ok_or_else(|| wrong("no track has that number"))?;
        Ok(ItemsFound { track, complete: is_complete, items, next_ns: next.map(|at| self.span.0.saturating_add(at)) })
    }

    /// Something that was found, as it is told.
    fn told(
        &self,
        key: u64,
        found: &FoundItem,
        (event, thread): (Option<Value>, Option<TrackValue>),
        wait: Option<Box<WaitReason>>,
    ) -> Option<TrackItem> {
        let at_ns = |at: i64| self.span.0.saturating_add(at);
        let value = |value: u64| self.names.told(self.names.value(&self.analysis, meaning(key)?, value));
        Some(match *found {
            FoundItem::Run(run) => {
                let (begin_known, end_known) = (run.flags & BEGIN_UNKNOWN == 0, run.flags & END_UNKNOWN == 0);
                TrackItem::Run {
                    begin_ns: at_ns(run.begin),
                    end_ns: at_ns(run.end),
                    duration_ns: (begin_known && end_known).then(|| run.begin.abs_diff(run.end)),
                    begin_known,
                    end_known,
                    in_doubt: run.flags & IN_DOUBT != 0,
                    value: value(run.value)?,
                    wait,
                }
            }
            FoundItem::Instant(at, class) => {
                let bases = event.as_ref().map(|event| self.bases_of(event)).unwrap_or_default();
                TrackItem::Event { time_ns: at_ns(at), value: value(class)?, event, bases, thread }
            }
            FoundItem::Arrow(flight, waker) => {
                let Way { from, to } = self.way_of(key, flight.value);
                let end_known = flight.flags & END_UNKNOWN == 0;
                let going = |value: u64| self.names.told(self.going(key, value));
                TrackItem::Arrow {
                    begin_ns: at_ns(flight.begin),
                    end_ns: at_ns(flight.end),
                    duration_ns: end_known.then(|| flight.begin.abs_diff(flight.end)),
                    end_known,
                    received_first: flight.flags & RECEIVED_FIRST != 0,
                    from: from?,
                    to: to?,
                    value: going(flight.value)?,
                    waker: waker.and_then(going),
                }
            }
        })
    }

    /// The chunk of a time: the last one that does not begin behind it.
    pub(super) fn chunk_at(&self, at: i64) -> usize {
        let at_ns = self.span.0.saturating_add(at);
        self.chunks.partition_point(|chunk| chunk.span.0 <= at_ns).saturating_sub(1)
    }

    /// The first chunk from one on with a change of a track, or where that is unknown; as nodes
    /// say, the widest first.
    fn next_with(&self, key: u64, from: usize) -> Result<Option<usize>, TimelineFailure> {
        let (mut at, mut height_max) = (from, usize::MAX);
        while at < self.chunks.len() {
            let mut node: At = (0, at);
            while node.0 < height_max {
                let above = (node.0 + 1, node.1 / FAN);
                let is_there = above.0 < self.pyramid.heights() && self.pyramid.level(above).is_some();
                if !is_there || self.chunks_of(above).start != at {
                    break;
                }
                node = above;
            }
            let Some(found) = self.pyramid.node(node, key)? else { return Ok(Some(at)) };
            match (found.track(key).is_some() || key == ALL_EVENTS.key(), node.0) {
                (true, 0) => return Ok(Some(at)),
                (true, height) => height_max = height - 1,
                (false, _) => (at, height_max) = (self.chunks_of(node).end, usize::MAX),
            }
        }
        Ok(None)
    }
}

impl TrackWalk<'_> {
    /// The request for a chunk when it was read, with the value of a track before it.
    fn wanted(&self, chunk: usize) -> TrackRequest {
        let span = self.timeline.chunks[chunk].span;
        let since = |at_ns: i64| at_ns.saturating_sub(self.timeline.span.0);
        TrackRequest { key: self.key, read: (since(span.0), since(span.1)), window: self.window, most: usize::MAX }
    }

    fn exactly<T>(
        &mut self,
        chunk: usize,
        with: impl FnOnce(&Exactly<'_>) -> Result<T, TimelineFailure>,
    ) -> Result<T, TimelineFailure> {
        self.is_complete &= chunk <= self.known;
        let node = self.timeline.exact(chunk, self.keys.as_deref(), self.known, self.progress)?;
        let read = self.wanted(chunk).read;
        let Self { timeline, progress, .. } = *self;
        with(&Exactly { timeline, nodes: vec![&*node], first_chunk: chunk, read, progress })
    }

    /// The runs of a chunk that reach into a window.
    fn runs(&mut self, chunk: usize, before: Before, wanted: TrackRequest) -> Result<Vec<TrackRun>, TimelineFailure> {
        self.exactly(chunk, |exactly| Ok(runs(exactly.cells(wanted.key), before, wanted).unwrap_or_default()))
    }

    fn before(&mut self, key: u64, chunk: usize) -> Result<Before, TimelineFailure> {
        self.is_complete &= chunk <= self.known;
        let known = self.timeline.known_before(vec![key], chunk)?;
        Ok(self.timeline.before_of(known.get(&key).copied().flatten()))
    }

    /// Runs of values; returned is where to go on.
    fn states(&mut self) -> Result<Option<i64>, TimelineFailure> {
        let mut chunk = self.timeline.chunk_at(self.window.0);
        let mut before = self.before(self.key, chunk)?;
        // A value that goes on from one chunk to the next, as far as it is known.
        let mut open = before.map(|(value, since)| self.begun(value, since));
        for _ in 0..CHUNKS_MAX {
            let next = self.timeline.next_with(self.key, chunk)?;
            let Some(next) = next.filter(|next| self.wanted(*next).read.0 < self.window.1) else {
                return self.end_of(open, chunk);
            };
            let mut found = self.runs(next, before, self.wanted(next))?;
            open = found.pop_if(|run| run.flags & END_UNKNOWN != 0);
            for run in found {
                if self.found.len() >= self.most {
                    return Ok(Some(run.begin));
                }
                self.found.push(FoundItem::Run(run));
            }
            before = open.map(|run| (run.value, (run.flags & BEGIN_UNKNOWN == 0).then_some(run.begin)));
            chunk = next + 1;
        }
        let ends = self.wanted(chunk - 1).read.1;
        match ends < self.window.1 {
            true => Ok(Some(open.map_or(ends, |run| run.begin))),
            false => self.end_of(open, chunk),
        }
    }

    fn begun(&self, value: u64, since: Option<i64>) -> TrackRun {
        let flags = if since.is_some() { 0 } else { BEGIN_UNKNOWN };
        TrackRun { begin: since.unwrap_or(0), end: self.behind(), value, flags }
    }

    /// The end of the trace.
    fn behind(&self) -> i64 {
        self.timeline.span.1.saturating_sub(self.timeline.span.0)
    }

    /// Finds where the last run ends, in chunks behind the window if need be.
    fn end_of(&mut self, open: Option<TrackRun>, mut chunk: usize) -> Result<Option<i64>, TimelineFailure> {
        let Some(open) = open else { return Ok(None) };
        if self.found.len() >= self.most {
            return Ok(Some(open.begin));
        }
        let since = (open.flags & BEGIN_UNKNOWN == 0).then_some(open.begin);
        let mut run = TrackRun { end: self.behind().max(open.begin), flags: open.flags | END_UNKNOWN, ..open };
        // A long run may end hundreds of chunks later, but nodes skip those without a change of the
        // track.
        for _ in 0..ENDS_MAX {
            let Some(next) = self.timeline.next_with(self.key, chunk)? else { break };
            let wanted = TrackRequest { window: (i64::MIN, i64::MAX), ..self.wanted(next) };
            let first = self.runs(next, Some((open.value, since)), wanted)?.into_iter().next();
            if let Some(first) = first.filter(|first| first.value == open.value) {
                run = TrackRun { flags: open.flags & !END_UNKNOWN | first.flags, ..first };
            }
            if run.flags & END_UNKNOWN == 0 {
                break;
            }
            chunk = next + 1;
        }
        self.found.push(FoundItem::Run(run));
        Ok(None)
    }

    /// Instants and arrows; returned is where to go on.
    fn others(&mut self) -> Result<Option<i64>, TimelineFailure> {
        let mut chunk = self.timeline.chunk_at(self.window.0);
        // A message is told of where it comes, which may be behind the window.
        let mut behind = if are_messages(self.key) { ENDS_MAX } else { 0 };
        for _ in 0..CHUNKS_MAX {
            let next = self.timeline.next_with(self.key, chunk)?;
            let is_in = |walk: &Self, next: usize| walk.wanted(next).read.0 < walk.window.1;
            let Some(next) = next.filter(|next| is_in(self, *next) || behind > 0) else { return Ok(None) };
            behind -= usize::from(!is_in(self, next));
            // One more than is wanted, to know whether there are more.
            let room = self.most + 1 - self.found.len();
            let found = match kind(self.key) {
                Some(TrackKind::Arrows) if are_messages(self.key) => self.messages(next)?,
                Some(TrackKind::Arrows) => self.arrows(next, room)?,
                _ => self.instants(next, room)?,
            };
            self.found.extend(found);
            self.found.sort_by_key(FoundItem::begin);
            if self.found.len() > self.most {
                return Ok(self.cut());
            }
            chunk = next + 1;
        }
        Ok(Some(self.wanted(chunk - 1).read.1).filter(|at| *at < self.window.1))
    }

    /// Leaves as many as are wanted, of whole instants if there are several: the next request
    /// misses none. Returned is where.
    fn cut(&mut self) -> Option<i64> {
        let more = self.found.get(self.most)?.begin();
        self.found.truncate(self.most);
        if self.found.first()?.begin() < more {
            self.found.retain(|found| found.begin() < more);
            return Some(more);
        }
        // More happens at this instant than is wanted.
        Some(more + 1)
    }

    fn instants(&mut self, chunk: usize, room: usize) -> Result<Vec<FoundItem>, TimelineFailure> {
        let wanted = self.wanted(chunk);
        self.exactly(chunk, |exactly| {
            let all = instants(exactly.cells(wanted.key), wanted).unwrap_or_default();
            Ok(all.into_iter().take(room).map(|(at, class)| FoundItem::Instant(at, class)).collect())
        })
    }

    /// Messages that come in a chunk and leave in the window.
    fn messages(&mut self, chunk: usize) -> Result<Vec<FoundItem>, TimelineFailure> {
        let wanted = self.wanted(chunk);
        let flights = self.exactly(chunk, |exactly| exactly.flights(wanted))?;
        let leaves = |flight: &ArrowFlight| wanted.window.0 <= flight.begin;
        Ok(flights.into_iter().filter(leaves).map(|flight| FoundItem::Arrow(flight, None)).collect())
    }

    fn arrows(&mut self, chunk: usize, room: usize) -> Result<Vec<FoundItem>, TimelineFailure> {
        let wanted = self.wanted(chunk);
        let mut flights = self.exactly(chunk, |exactly| exactly.flights(wanted))?;
        flights.truncate(room);
        let mut found = Vec::new();
        let (mut ends, mut ran) = (ENDS_MAX, BTreeMap::new());
        for mut flight in flights {
            if flight.flags & END_UNKNOWN != 0 && ends > 0 {
                ends -= 1;
                self.arrive(&mut flight, chunk)?;
            }
            let cpu = flight.value >> 32;
            let ran: &mut Vec<TrackRun> = match ran.entry(cpu) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(self.who_ran(cpu, chunk)?),
            };
            // A thread that begins with the wakeup came behind it.
            let is_there = |run: &&TrackRun| run.begin <= flight.begin && flight.begin < run.end;
            found.push(FoundItem::Arrow(flight, ran.iter().find(is_there).map(|run| run.value)));
        }
        Ok(found)
    }

    /// When the woken thread runs, if that is in a chunk behind.
    fn arrive(&mut self, flight: &mut ArrowFlight, chunk: usize) -> Result<(), TimelineFailure> {
        let thread = super::arrows::thread(self.key, flight.value);
        let Some(next) = self.timeline.next_with(thread, chunk + 1)? else { return Ok(()) };
        let wanted = TrackRequest { key: thread, window: (i64::MIN, i64::MAX), ..self.wanted(next) };
        let before = self.before(thread, next)?;
        let states = self.runs(next, before, wanted)?;
        if let Some(end) = runs_at(&states, flight.begin) {
            (flight.end, flight.flags) = (end, 0);
        }
        Ok(())
    }

    /// The threads that ran on a CPU, as far as a chunk tells.
    fn who_ran(&mut self, cpu: u64, chunk: usize) -> Result<Vec<TrackRun>, TimelineFailure> {
        let host = TrackKey::of(self.key).map_or(0, |key| key.host);
        let key = TrackKey { thing: Thing::Cpu, host, number: cpu as i32, track: 0 }.key();
        let before = self.before(key, chunk)?;
        self.runs(chunk, before, TrackRequest { key, ..self.wanted(chunk) })
    }
}

/// Takes those lines of events that are of some instants.
struct EventLines {
    times: BTreeSet<i64>,
    rest: Vec<u8>,
    events: Vec<Value>,
}

impl Write for EventLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                let time = time_of(&line).filter(|time| self.times.contains(time));
                self.events.extend(time.and_then(|_| serde_json::from_slice(&line).ok()));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time that a line begins with.
fn time_of(line: &[u8]) -> Option<i64> {
    let text = line.strip_prefix(b"{\"time\":")?;
    let end = text.iter().position(|byte| *byte == b',')?;
    std::str::from_utf8(&text[..end]).ok()?.parse().ok()
}

impl Timeline {
    /// For each thing that was found its event, if it is one: those of a track's instants, in their order.
    fn events_of(
        &self,
        key: u64,
        found: &[FoundItem],
        progress: &Progress,
    ) -> Result<Vec<Option<Value>>, TimelineFailure> {
        let at_ns = |at: i64| self.span.0.saturating_add(at);
        let instant =
            |found: &FoundItem| if let FoundItem::Instant(at, class) = found { Some((*at, *class)) } else { None };
        let times: BTreeSet<i64> = found.iter().filter_map(instant).map(|(at, _)| at_ns(at)).collect();
        let (Some(&first), Some(&last)) = (times.first(), times.last()) else { return Ok(vec![None; found.len()]) };
        let classes: BTreeSet<u64> = found.iter().filter_map(instant).map(|(_, class)| class).collect();
        let events = classes.iter().filter_map(|class| self.analysis.class(*class)).map(ToOwned::to_owned).collect();
        let options = PrintOptions {
            format: PrintFormat::Json,
            selection: Selection { events, ..Selection::default() },
            begin_ns: Some(first),
            end_ns: Some(last),
            ..PrintOptions::default()
        };
        let mut lines = EventLines { times, rest: Vec::new(), events: Vec::new() };
        // Memory takes all lines: only a cancellation ends this.
        self.session.print(&options, &mut lines, progress).map_err(|_| Cancelled)?;
        let mut events: BTreeMap<(i64, String), Vec<Value>> = BTreeMap::new();
        for event in lines.events.into_iter().filter(|event| self.is_of(key, event)) {
            let time = event["time"].as_i64().unwrap_or_default();
            let name = event["event"].as_str().unwrap_or_default().to_owned();
            events.entry((time, name)).or_default().push(event);
        }
        events.values_mut().for_each(|alike| alike.reverse());
        let event = |found: &FoundItem| {
            let (at, class) = instant(found)?;
            events.get_mut(&(at_ns(at), self.analysis.class(class)?.to_owned()))?.pop()
        };
        Ok(found.iter().map(event).collect())
    }

    /// In which bases the integers of an event are written.
    fn bases_of(&self, event: &Value) -> Vec<FieldBase> {
        let streams = self.session.streams();
        let stream = event["stream"].as_u64().and_then(|stream| streams.get(stream as usize));
        let (Some((trace, stream)), Some(id)) = (stream, event["id"].as_u64()) else { return Vec::new() };
        let classes = &trace.class.stream_classes[stream.class].event_classes;
        let class = classes.iter().position(|class| class.id == id);
        class.map(|class| bases_of_event(&trace.class, stream.class, class)).unwrap_or_default()
    }

    /// Whether an event is of a track of instants: of its lane, or of its thread as far as it says of which one it is.
    fn is_of(&self, key: u64, event: &Value) -> bool {
        let Some(TrackKey { thing, number, host, .. }) = TrackKey::of(key) else { return false };
        let stream = event["stream"].as_u64().unwrap_or(u64::MAX) as usize;
        let lane = self.analysis.lanes().iter().position(|lane| lane.streams.contains(&stream));
        match thing {
            Thing::LaneEvents if key == ALL_EVENTS.key() => true,
            Thing::LaneEvents => lane.is_some_and(|lane| lane == number as usize),
            _ => {
                let is_of_host = lane.is_some_and(|lane| self.analysis.lanes()[lane].host == host);
                is_of_host && self.told_tid(event).is_none_or(|tid| tid == number)
            }
        }
    }
}

#[cfg(test)]
mod tests;
