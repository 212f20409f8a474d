//! Answers a viewer's questions: buckets of some tracks in a window.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use kymo_analysis::LaneFacts;
use kymo_analysis::timeline::cells::{self, Level, TrackCell, add_up};
use kymo_analysis::timeline::node::TimelineNode;
use kymo_analysis::timeline::{Sealed, Thing, TrackKey, is_rest, numbers, told};

use super::arrows::{Way, are_wakeups};
use super::catalogue::{ALL_EVENTS, TrackKind, ValueMeaning, kind, meaning};
use super::chunks::EXACT_LEVEL;
use super::exact::{Exactly, cells_of, take_turn, wanted_of};
use super::pyramid::{At, FAN, PageKey};
use super::spans::{SpanQualities, building_from, not_whole};
use super::tiles::{
    ArrowBucket, CounterBucket, HeatBucket, InstantBucket, Items, Quality, StateBucket, TileQuestion, Tiles, TrackTile,
};
use super::{Timeline, TimelineFailure};
use crate::open::progress::Progress;

/// Buckets of all tracks that are put together at a time.
const GROUP_BUCKETS: usize = 1 << 17;
/// Bytes of a bucket of a track in an answer, as it is put together and as it is sent; and of the cells that it is made of.
const ANSWER_BYTES: u64 = 56;
const CELLS_BYTES: u64 = 7 * size_of::<TrackCell>() as u64;
/// Bytes of memory that a byte of a chunk takes while it is read.
const READ_BYTES: u64 = 4;
/// Chunks that are not built yet and are read at once for a question; where there are more, the
/// question does not wait for them.
const READ_MAX: usize = 3;
/// Chunks that are read before their turn for a question. Reading them twice is for a viewer that
/// looks closely; where there are more, all of the trace is there sooner if they wait for their
/// turn.
const WANTED_MAX: usize = 24;
/// Items of a track that are told one by one where the trace was read, if there are not even so many buckets.
const FEW: usize = 256;

/// A part of the window, and the source that knows it.
enum WindowPart {
    /// A node of the pyramid.
    Node(At),
    /// A chunk that was read before it was its turn.
    Early(usize, Arc<TimelineNode>),
    /// A chunk, which is to be read.
    Read(usize),
    /// A chunk of which only the packet index tells.
    Estimate(usize),
}

/// Says that a question waits, as long as it lives.
pub(super) struct QuestionGuard<'a>(&'a AtomicUsize);

impl<'a> QuestionGuard<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The known values of tracks: the value and since when, or that there is none.
pub(super) type Known = HashMap<u64, Option<(u64, i64)>>;

/// Chunks that were read, by their places.
type Read = HashMap<usize, Arc<TimelineNode>>;

/// The input of buckets: cells of tracks in a window, and the values before them.
struct BucketInput {
    rows: Vec<Vec<TrackCell>>,
    carries: Vec<Option<u64>>,
    spans: SpanQualities,
}

impl Timeline {
    /// Buckets of tracks.
    ///
    /// # Errors
    ///
    /// The question is out of bounds, a file cannot be read, or the request was canceled.
    pub fn tiles(&self, question: &TileQuestion, progress: &Progress) -> Result<Tiles, TimelineFailure> {
        question.check()?;
        let _asked = self.ask();
        let TileQuestion { level, first, count, ref tracks } = *question;
        let unknown = |number: u32| TimelineFailure::Bounds {
            name: "tracks",
            found: number.into(),
            expected: "no track has that number".to_owned(),
        };
        let keys = self.names.keys(tracks).map_err(unknown)?;
        let at = |bucket: u64| self.span.0.saturating_add_unsigned(bucket << level);
        let window = (at(first), at(first + u64::from(count)));
        // Chunks that are built meanwhile are for the next question.
        let known = self.desk.known();
        let told_until = self.all.as_ref().map_or(i64::MAX, |all| all.known_until());
        let parts = self.cover(window, level, known);
        let read = self.read(&parts, &keys, known, progress)?;
        let mut tiles = Tiles { level, first, count, spans: Vec::new(), tracks: Vec::new() };
        // Cells take more memory than the tiles made of them.
        let group = (GROUP_BUCKETS / count as usize).max(1);
        for (numbers, keys) in
            tracks.chunks(group).zip(keys.chunks(group)).chain(tracks.is_empty().then_some((&[][..], &[][..])))
        {
            let before = match parts.first() {
                Some(first) => self.known_before(keys.to_vec(), self.facts(first, known).0)?,
                None => Known::new(),
            };
            let exact = self.exact_items(question, keys, (&parts, &read, &before), progress)?;
            let gathered = self.gather(question, keys, (&parts, &read, &before, &exact, known), progress)?;
            let BucketInput { rows, carries, spans } = gathered;
            tiles.spans = spans.buckets(|at_ns| self.bucket(at_ns, level), (first, count));
            if let Some(until) = self.until {
                not_whole(&mut tiles.spans, self.bucket(until, level).checked_sub(first));
            }
            // The time when the woken thread runs is asked of the timeline of all events.
            let is_asked = |(key, exact): (&u64, &Option<Items>)| exact.is_some() && are_wakeups(*key);
            if told_until != i64::MAX && keys.iter().zip(&exact).any(is_asked) {
                let bucket = (told_until.max(0).cast_unsigned() >> level).saturating_sub(first);
                building_from(&mut tiles.spans, bucket.min(count.into()) as u32);
            }
            let row = |(((number, key), exact), (mut cells, carry))| match exact {
                Some(items) => Some(TrackTile { number, items }),
                None => {
                    add_up(&mut cells);
                    self.track_tile((number, key), (&cells, carry), (level, first))
                }
            };
            let numbers = numbers.iter().copied().zip(keys.iter().copied()).zip(exact);
            tiles.tracks.extend(numbers.zip(rows.into_iter().zip(carries)).filter_map(row));
        }
        Ok(tiles)
    }

    /// Memory that answering a question takes at most, about: reading chunks, and the answer.
    #[must_use]
    pub fn tiles_bytes(&self, question: &TileQuestion) -> u64 {
        if question.check().is_err() {
            return 0;
        }
        let TileQuestion { level, first, count, ref tracks } = *question;
        let at = |bucket: u64| self.span.0.saturating_add_unsigned(bucket << level);
        let parts = self.cover((at(first), at(first + u64::from(count))), level, self.desk.known());
        let keys = self.names.keys(tracks).unwrap_or_default();
        let wanted = wanted_of(&keys);
        let is_read = |chunk: usize| {
            self.pyramid.looked_at(PageKey::Exact(chunk)).is_none_or(|node| !node.knows(wanted.as_deref()))
        };
        let unread = parts.iter().filter_map(|part| match part {
            WindowPart::Read(chunk) if is_read(*chunk) => Some(self.chunks[*chunk].slice.bytes),
            _ => None,
        });
        let buckets = u64::from(count) * tracks.len() as u64;
        let of_all = self.all.as_ref().filter(|_| keys.iter().any(|key| are_wakeups(*key)));
        let of_all = of_all.map_or(0, |all| all.items_bytes());
        of_all
            + unread.sum::<u64>() * READ_BYTES
            + buckets * ANSWER_BYTES
            + buckets.min(GROUP_BUCKETS as u64) * CELLS_BYTES / 4
    }

    /// Memory that finding items takes at most, about: a chunk is read at a time.
    #[must_use]
    pub fn items_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.slice.bytes).max().unwrap_or(0) * READ_BYTES
    }

    /// The items of tracks one by one, where they are few, if all of the window was read.
    fn exact_items(
        &self,
        question: &TileQuestion,
        keys: &[u64],
        (parts, read, known): (&[WindowPart], &Read, &Known),
        progress: &Progress,
    ) -> Result<Vec<Option<Items>>, TimelineFailure> {
        let TileQuestion { level, first, count, .. } = *question;
        let chunk = |part: &WindowPart| if let WindowPart::Read(chunk) = part { Some(*chunk) } else { None };
        let chunks: Option<Vec<usize>> = parts.iter().map(chunk).collect();
        let Some((chunks, &first_chunk)) = chunks.as_ref().and_then(|chunks| Some((chunks, chunks.first()?))) else {
            return Ok(keys.iter().map(|_| None).collect());
        };
        let since = |at_ns: i64| at_ns.saturating_sub(self.span.0);
        let ends = chunks.iter().map(|chunk| self.chunks[*chunk].span.1);
        let span = (self.chunks[first_chunk].span.0, ends.max().unwrap_or(self.span.1));
        let nodes = chunks.iter().map(|chunk| &*read[chunk]).collect();
        let exactly = Exactly { timeline: self, nodes, first_chunk, read: (since(span.0), since(span.1)), progress };
        let window = ((first << level).cast_signed(), ((first + u64::from(count)) << level).cast_signed());
        let items = |key: &u64| {
            let before = self.before_of(known.get(key).copied().flatten());
            exactly.items(*key, before, (window, level, FEW.max(count as usize)))
        };
        keys.iter().map(items).collect()
    }

    /// The cells of tracks in a window, but of those that are told one by one.
    fn gather(
        &self,
        question: &TileQuestion,
        keys: &[u64],
        (parts, read, before, exact, known): (&[WindowPart], &Read, &Known, &[Option<Items>], usize),
        progress: &Progress,
    ) -> Result<BucketInput, TimelineFailure> {
        let TileQuestion { level, first, count, .. } = *question;
        let at = |bucket: u64| self.span.0.saturating_add_unsigned(bucket << level);
        let window = (at(first), at(first + u64::from(count)));
        let is_before = |cell: &TrackCell| cell.bucket < first;
        let is_behind = |cell: &TrackCell| first + u64::from(count) <= cell.bucket;
        let rows = vec![Vec::new(); keys.len()];
        let carries = keys.iter().map(|key| Some(before.get(key).copied()??.0)).collect();
        let mut gathered = BucketInput { rows, carries, spans: SpanQualities::default() };
        if self.chunks.is_empty() {
            gathered.spans.add((self.span.0, self.span.1.saturating_add(1)), Quality::Exact);
        }
        for (place, part) in parts.iter().enumerate() {
            progress.whole(())?;
            let (_, quality) = self.facts(part, known);
            gathered.spans.add(self.span_of(part), quality);
            let node = match part {
                WindowPart::Node(_) => None,
                WindowPart::Early(_, node) => Some(Arc::clone(node)),
                WindowPart::Read(chunk) => Some(Arc::clone(&read[chunk])),
                WindowPart::Estimate(chunk) => Some(Arc::new(self.estimate(*chunk, level, window))),
            };
            let BucketInput { rows, carries, .. } = &mut gathered;
            for (((key, row), carry), exact) in keys.iter().zip(rows).zip(carries).zip(exact) {
                if exact.is_some() {
                    continue;
                }
                let from = row.len();
                self.cells(part, node.as_deref(), (*key, level), &mut |cell| {
                    row.extend((!is_behind(&cell)).then_some(cell));
                })?;
                if row.len() == from {
                    continue;
                }
                if place == 0 {
                    // Cells of one bucket may be several of a value: only together they say whether it is over.
                    add_up(row);
                    let before = row.partition_point(is_before);
                    *carry = cells::last(&row[..before], *carry);
                    row.drain(..before);
                } else {
                    // A bucket across two nodes has cells in both; none is before the window.
                    debug_assert!(row[from..].iter().all(|cell| !is_before(cell)));
                }
            }
        }
        Ok(gathered)
    }

    /// A question is asked until this is dropped.
    pub(super) fn ask(&self) -> QuestionGuard<'_> {
        QuestionGuard::new(&self.asked)
    }

    /// The cells of a track of a part, in the order of buckets. `node`: the part's, if it is not one of the pyramid.
    fn cells(
        &self,
        part: &WindowPart,
        node: Option<&TimelineNode>,
        (key, level): (u64, Level),
        each: &mut dyn FnMut(TrackCell),
    ) -> Result<(), TimelineFailure> {
        let node = match (node, part) {
            (Some(node), _) => node,
            (None, WindowPart::Node(at)) if key == ALL_EVENTS.key() => return self.all_events(*at, level, each),
            (None, WindowPart::Node(at)) => return Ok(self.pyramid.cells(*at, key, level, each)?),
            (None, _) => unreachable!("others have their node"),
        };
        // Chunks that were read mark values in doubt, which are not drawn.
        let is_read = matches!(part, WindowPart::Read(_));
        let plain = |cell: TrackCell| if is_read { TrackCell { value: told(key, cell.value).0, ..cell } } else { cell };
        match node.track(key) {
            Some(track) => track.cells(level).map(plain).for_each(each),
            None => cells_of(node, key, level).into_iter().map(plain).for_each(each),
        }
        Ok(())
    }

    /// The cells of all events of a node together, in the order of buckets.
    fn all_events(&self, at: At, level: Level, each: &mut dyn FnMut(TrackCell)) -> Result<(), TimelineFailure> {
        let mut cells = Vec::new();
        for (number, lane) in self.analysis.lanes().iter().enumerate() {
            let key = TrackKey { thing: Thing::LaneEvents, host: lane.host, number: number as i32, track: 0 };
            self.pyramid.cells(at, key.key(), level, &mut |cell| cells.push(cell))?;
        }
        cells.sort_by_key(|cell| cell.bucket);
        cells.into_iter().for_each(each);
        Ok(())
    }

    fn bucket(&self, at_ns: i64, level: Level) -> u64 {
        at_ns.saturating_sub(self.span.0).max(0).cast_unsigned() >> level
    }

    /// The sources for a window, in the order of time: the widest nodes that are fine enough.
    fn cover(&self, window: (i64, i64), level: Level, known: usize) -> Vec<WindowPart> {
        let mut parts = Vec::new();
        // Where no packet has anything that is selected, there is no chunk.
        if self.chunks.is_empty() {
            return parts;
        }
        let top = self.pyramid.heights() - 1;
        self.cover_below((top, 0), window, level, &mut parts);
        self.put_off(&mut parts, level, known);
        parts
    }

    /// Leaves unbuilt chunks to the builders, if these are many: they read them next, and meanwhile
    /// the content is guessed.
    fn put_off(&self, parts: &mut [WindowPart], level: Level, known: usize) {
        // The chunk at `known` counts as built: the state before it is there, so reading it gives
        // exact values.
        let unbuilt = |part: &WindowPart| matches!(part, WindowPart::Read(chunk) if *chunk > known);
        if parts.iter().filter(|part| unbuilt(part)).count() <= READ_MAX {
            return;
        }
        let mut wanted = Vec::new();
        for part in parts.iter_mut().filter(|part| unbuilt(part)) {
            let WindowPart::Read(chunk) = *part else { continue };
            let early = self.pyramid.looked_at(PageKey::Early(chunk)).filter(|node| node.level() <= level);
            *part = early.map_or(WindowPart::Estimate(chunk), |node| WindowPart::Early(chunk, node));
            if matches!(part, WindowPart::Estimate(_)) {
                wanted.push(chunk);
            }
        }
        self.desk.want(if wanted.len() <= WANTED_MAX { wanted } else { Vec::new() });
    }

    fn cover_below(&self, at: At, window: (i64, i64), level: Level, parts: &mut Vec<WindowPart>) {
        let span = self.span_of(&WindowPart::Node(at));
        if span.1 <= window.0 || window.1 <= span.0 {
            return;
        }
        match self.pyramid.level(at) {
            Some(finest) if finest <= level => parts.push(WindowPart::Node(at)),
            _ if at.0 == 0 => parts.push(WindowPart::Read(at.1)),
            _ => {
                let below = self.chunks_of(at);
                let width = FAN.pow(at.0 as u32 - 1);
                for place in below.start / width..below.end.div_ceil(width) {
                    self.cover_below((at.0 - 1, place), window, level, parts);
                }
            }
        }
    }

    fn span_of(&self, part: &WindowPart) -> (i64, i64) {
        match part {
            WindowPart::Node(at) => {
                let chunks = &self.chunks[self.chunks_of(*at)];
                (chunks[0].span.0, chunks[chunks.len() - 1].span.1)
            }
            WindowPart::Early(chunk, _) | WindowPart::Read(chunk) | WindowPart::Estimate(chunk) => {
                self.chunks[*chunk].span
            }
        }
    }

    /// The first chunk of a part, and how true its content is.
    fn facts(&self, part: &WindowPart, known: usize) -> (usize, Quality) {
        match part {
            WindowPart::Node(at) if self.chunks_of(*at).start <= known => (self.chunks_of(*at).start, Quality::Exact),
            WindowPart::Node(at) => (self.chunks_of(*at).start, Quality::Building),
            WindowPart::Read(chunk) if *chunk <= known => (*chunk, Quality::Exact),
            WindowPart::Early(chunk, _) | WindowPart::Read(chunk) => (*chunk, Quality::Building),
            // The packet index knows nothing of the selected events.
            WindowPart::Estimate(chunk) if self.all.is_some() => (*chunk, Quality::Unknown),
            WindowPart::Estimate(chunk) => (*chunk, Quality::Estimated),
        }
    }

    /// The chunks that have to be read, read side by side.
    fn read(
        &self,
        parts: &[WindowPart],
        keys: &[u64],
        known: usize,
        progress: &Progress,
    ) -> Result<Read, TimelineFailure> {
        let wanted = wanted_of(keys);
        let chunk = |part: &WindowPart| if let WindowPart::Read(chunk) = part { Some(*chunk) } else { None };
        let chunks: Vec<usize> = parts.iter().filter_map(chunk).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut read = Vec::new();
            // Relaxed: the counter only gives each chunk to one thread; results come back when
            // threads are joined.
            while let Some(&chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                read.push((chunk, self.exact(chunk, wanted.as_deref(), known, progress)?));
            }
            Ok(read)
        };
        let others = self.session.threads.min(chunks.len()).saturating_sub(1);
        let read: Vec<Result<_, TimelineFailure>> = std::thread::scope(|scope| {
            let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
            let own = work();
            let join =
                |other: std::thread::ScopedJoinHandle<'_, _>| other.join().unwrap_or_else(|panic| resume_unwind(panic));
            std::iter::once(own).chain(others.into_iter().map(join)).collect()
        });
        let mut nodes = HashMap::new();
        for read in read {
            nodes.extend(read?);
        }
        Ok(nodes)
    }

    /// The values of tracks when a chunk begins: the last ones in the nodes before it. A track that
    /// none of them has is as it was when the trace began.
    pub(super) fn known_before(&self, mut keys: Vec<u64>, chunk: usize) -> Result<Known, TimelineFailure> {
        let mut known = Known::new();
        let mut end = chunk;
        while end > 0 && !keys.is_empty() {
            let at = self.widest_up_to(end);
            let mut others = Vec::new();
            for key in keys {
                let Some(node) = self.pyramid.node(at, key)? else { return Ok(known) };
                match node.track(key) {
                    Some(part) => {
                        known.insert(key, part.last);
                    }
                    None => others.push(key),
                }
            }
            keys = others;
            end = self.chunks_of(at).start;
        }
        // The events that some of them leave out at the begin are unknown.
        let is_of_all = self.all.is_none();
        let initial = |key: u64| Some((key, Some((self.names.initial(key).filter(|_| is_of_all)?, i64::MIN))));
        known.extend(keys.into_iter().filter_map(initial));
        Ok(known)
    }

    /// The widest node that is there of those that end with a chunk.
    fn widest_up_to(&self, end: usize) -> At {
        let mut at: At = (0, end - 1);
        loop {
            let above = (at.0 + 1, at.1 / FAN);
            if above.0 >= self.pyramid.heights()
                || self.chunks_of(above).end != end
                || self.pyramid.level(above).is_none()
            {
                break;
            }
            at = above;
        }
        at
    }

    /// The changes of some tracks at least in a chunk, in the finest buckets; `None`: of all. A
    /// question that wants the same as others do waits for them, and does not read it again.
    pub(super) fn exact(
        &self,
        chunk: usize,
        wanted: Option<&[u64]>,
        known: usize,
        progress: &Progress,
    ) -> Result<Arc<TimelineNode>, TimelineFailure> {
        let is_known = chunk <= known;
        let turn = self.shared.turn(chunk);
        let mut found = take_turn(&turn);
        let looked_at = self.pyramid.looked_at(PageKey::Exact(chunk));
        // A viewer that looks at other tracks of it will look at more of them: then all there is is
        // taken from it.
        let is_again = looked_at.is_some() || found.is_some();
        if let Some(node) = looked_at.filter(|node| node.knows(wanted)) {
            return Ok(node);
        }
        // A result without the state before does for a question that has none either.
        let is_it = |(was_known, node): &&(bool, Arc<TimelineNode>)| (*was_known || !is_known) && node.knows(wanted);
        if let Some((_, node)) = found.as_ref().filter(is_it) {
            return Ok(Arc::clone(node));
        }
        let sealed = self.look(chunk, EXACT_LEVEL, progress)?;
        let node = Arc::new(match wanted.filter(|_| !is_again) {
            Some(keys) => self.analysis.node_of(sealed, EXACT_LEVEL, keys),
            None => self.analysis.node(sealed, EXACT_LEVEL, true),
        });
        *found = Some((is_known, Arc::clone(&node)));
        if is_known {
            // Only a result that stays true is kept for later questions.
            self.pyramid.remember(PageKey::Exact(chunk), &node);
        } else {
            self.meet(&node);
        }
        Ok(node)
    }

    /// The changes in a chunk, as far as nodes know the state before it.
    pub(super) fn look(&self, chunk: usize, level: Level, progress: &Progress) -> Result<Sealed, TimelineFailure> {
        let state = self.read_chunk(chunk, level, progress)?;
        let mut known = self.known_before(self.analysis.asked(&state), chunk)?;
        known.extend(self.known_before(self.analysis.asked_next(&known), chunk)?);
        let mut before = self.analysis.before(&state, &known);
        let sealed = self.analysis.seal(&mut before, state, self.chunks[chunk].span.0);
        self.names.learn_routes(&sealed);
        Ok(sealed)
    }

    /// The content of a track in a tile, from its cells.
    fn track_tile(
        &self,
        (number, key): (u32, u64),
        (cells, carry): (&[TrackCell], Option<u64>),
        (level, first): (Level, u64),
    ) -> Option<TrackTile> {
        let bucket = |bucket: u64| (bucket - first) as u32;
        let items = match kind(key)? {
            TrackKind::States => {
                let meaning = meaning(key)?;
                let value = |value: u64| self.names.value(&self.analysis, meaning, value);
                // In 128 bits: a bucket may be so wide that the product exceeds 64.
                let share = |covered: u64| ((u128::from(covered) * 65535) >> level) as u16;
                let buckets =
                    cells::buckets(cells, level, carry, |value| is_rest(key, value)).map(|found| StateBucket {
                        bucket: bucket(found.bucket),
                        value: found.first.map(|(first, _)| value(first)),
                        second: found.second.map(|(second, _)| value(second)),
                        last: found.last.map(value),
                        begins: found.begins,
                        share: found.first.map_or(0, |(_, covered)| share(covered)),
                        share_second: found.second.map_or(0, |(_, covered)| share(covered)),
                        busiest: found.busiest.map(|(busiest, _)| value(busiest)),
                        busy: share(found.busy),
                    });
                Items::States { carry: carry.map(value), buckets: buckets.collect() }
            }
            TrackKind::Instants => Items::Instants(self.instants(key, cells, bucket)?),
            TrackKind::Heat => {
                let heat = |cell: &TrackCell| HeatBucket {
                    bucket: bucket(cell.bucket),
                    bin: cell.value as u32,
                    count: cell.begins,
                };
                Items::Heat(cells.iter().map(heat).collect())
            }
            TrackKind::Counter => self.counter(key, (cells, carry), level, bucket),
            TrackKind::Arrows => Items::Arrows(cells.iter().map(|cell| self.arrow(key, cell, bucket)).collect()),
        };
        Some(TrackTile { number, items })
    }

    /// The numbers of a counter. Tracks that count threads count from the trace's begin: those that
    /// were there then come on top.
    fn counter(
        &self,
        key: u64,
        (cells, carry): (&[TrackCell], Option<u64>),
        level: Level,
        bucket: impl Fn(u64) -> u32,
    ) -> Items {
        let is_crowd = TrackKey::of(key).is_some_and(|key| key.thing == Thing::Crowd);
        let (carry, more) = match is_crowd {
            true => (Some(carry.unwrap_or_else(|| numbers::value(0.0))), f64::from(self.names.crowd(key))),
            false => (carry, 0.0),
        };
        let buckets = numbers::buckets(cells, level, carry).map(|found| CounterBucket {
            bucket: bucket(found.bucket),
            changes: found.changes,
            min: found.min + more,
            max: found.max + more,
            last: found.last + more,
            mean: found.mean + more,
        });
        Items::Counter { carry: carry.map(|carry| numbers::number(carry) + more), buckets: buckets.collect() }
    }

    fn instants(&self, key: u64, cells: &[TrackCell], bucket: impl Fn(u64) -> u32) -> Option<Vec<InstantBucket>> {
        let meaning = meaning(key)?;
        let instant = |of_bucket: &[TrackCell]| {
            let named = |cell: &&TrackCell| (!cells::is_several(cell.value), cell.begins);
            let most = of_bucket.iter().rev().max_by_key(named).expect("a chunk has cells");
            let meaning = if most.value == ESTIMATE { ValueMeaning::Estimate } else { meaning };
            InstantBucket {
                bucket: bucket(most.bucket),
                value: self.names.value(&self.analysis, meaning, most.value),
                count: of_bucket.iter().fold(0, |sum: u32, cell| sum.saturating_add(cell.begins)),
                count_of_value: most.begins,
            }
        };
        Some(cells.chunk_by(|a, b| a.bucket == b.bucket).map(instant).collect())
    }

    fn arrow(&self, key: u64, cell: &TrackCell, bucket: impl Fn(u64) -> u32) -> ArrowBucket {
        let Way { from, to, .. } = self.way_of(key, cell.value);
        ArrowBucket { bucket: bucket(cell.bucket), from, to, count: cell.begins, longest_ns: None }
    }

    /// How many events there are.
    pub(super) fn events(&self) -> u64 {
        let root = (self.pyramid.heights() - 1, 0);
        let begun = |(number, lane): (usize, &LaneFacts)| {
            let key = TrackKey { thing: Thing::LaneEvents, host: lane.host, number: number as i32, track: 0 }.key();
            self.pyramid.node(root, key).ok().flatten().and_then(|node| Some(node.track(key)?.begins))
        };
        self.analysis.lanes().iter().enumerate().filter_map(begun).sum()
    }
}

/// Events of an unknown class.
pub(super) const ESTIMATE: u64 = u64::MAX;
