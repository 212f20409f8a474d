//! Runs and instants one by one, of chunks that were read in buckets of a nanosecond.
//!
//! ```text
//! before ──┐   cells of an instant: what ends, what begins and ends at once, what begins
//! 7 ───────┴──7──┐  9 ──┐        9 ─ ─ ─ (nothing was read any more: the end is unknown)
//!          │ window         │
//! ```
//!
//! A run is told with its true begin and end, also where these are outside of the window; where
//! they are outside of the read chunks, the state before says when it began, and its end is
//! unknown. Times count from the timeline's begin.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hashbrown::HashMap;
use kymo_analysis::timeline::cells::{Level, TrackCell};
use kymo_analysis::timeline::node::TimelineNode;
use kymo_analysis::timeline::{Thing, TrackKey, told};

use super::catalogue::{ALL_EVENTS, TrackKind, ValueMeaning, kind, meaning};
use super::tiles::{BEGIN_UNKNOWN, END_UNKNOWN, ExactInstant, ExactRun, IN_DOUBT, Items};
use super::{Timeline, TimelineFailure};
use crate::open::progress::Progress;

/// A value from when to when, counted from the timeline's begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackRun {
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) value: u64,
    pub(super) flags: u32,
}

/// The value of a track where reading begins, and since when if that is known.
pub(super) type Before = Option<(u64, Option<i64>)>;

/// A request for a track, and from when to when it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackRequest {
    pub(super) key: u64,
    pub(super) read: (i64, i64),
    pub(super) window: (i64, i64),
    /// More are not wanted.
    pub(super) most: usize,
}

impl TrackRequest {
    /// Whether something is in the window; an instant is where it begins.
    pub(super) fn has(&self, begin: i64, end: i64) -> bool {
        begin < self.window.1 && (self.window.0 < end || self.window.0 <= begin)
    }
}

/// Puts runs together.
struct RunJoiner {
    wanted: TrackRequest,
    open: Option<TrackRun>,
    done: Vec<TrackRun>,
}

/// The changes of one value at one instant.
struct InstantChanges {
    value: u64,
    begins: u32,
    ends: i64,
    /// Events are missing around the begins, and around the ends.
    doubts: (bool, bool),
}

impl RunJoiner {
    fn push(&mut self, run: TrackRun) {
        if self.wanted.has(run.begin, run.end) {
            self.done.push(run);
        }
    }

    fn close(&mut self, at: i64, flags: u32) {
        if let Some(open) = self.open.take() {
            self.push(TrackRun { end: at, flags: open.flags | flags, ..open });
        }
    }

    /// The changes of one instant: the open run ends before another begins.
    fn instant(&mut self, at: i64, cells: &[TrackCell]) {
        let mut changes: Vec<InstantChanges> = Vec::new();
        for cell in cells {
            let (value, is_doubtful) = told(self.wanted.key, cell.value);
            let ends = i64::from(cell.begins) - i64::from(cell.net);
            let place = changes.iter().position(|change| change.value == value).unwrap_or_else(|| {
                changes.push(InstantChanges { value, begins: 0, ends: 0, doubts: (false, false) });
                changes.len() - 1
            });
            let InstantChanges { begins: all_begins, ends: all_ends, doubts, .. } = &mut changes[place];
            *all_begins = all_begins.saturating_add(cell.begins);
            *all_ends += ends;
            doubts.0 |= is_doubtful && cell.begins > 0;
            doubts.1 |= is_doubtful && ends > 0;
        }
        for change in &mut changes {
            if change.ends > 0 && self.open.is_some_and(|open| open.value == change.value) {
                self.close(at, flag(change.doubts.1));
                change.ends -= 1;
            }
        }
        for change in &changes {
            self.begin(at, change);
        }
    }

    fn begin(&mut self, at: i64, change: &InstantChanges) {
        let InstantChanges { value, begins, ends, doubts } = *change;
        let run = TrackRun { begin: at, end: at, value, flags: flag(doubts.0) };
        let at_once = i64::from(begins).min(ends).max(0);
        for _ in 0..at_once {
            // More than wanted is enough to know: one bucket may hold billions of changes.
            if self.done.len() > self.wanted.most {
                return;
            }
            self.push(run);
        }
        if ends > at_once && self.open.is_none() {
            // Its begin is unknown.
            self.push(TrackRun { begin: self.wanted.read.0, flags: flag(doubts.1) | BEGIN_UNKNOWN, ..run });
        }
        if i64::from(begins) > at_once {
            // A track has one value at a time: where events are missing, the end of the one before may be, too.
            self.close(at, IN_DOUBT);
            self.open = Some(run);
        }
    }
}

fn flag(is_doubtful: bool) -> u32 {
    if is_doubtful { IN_DOUBT } else { 0 }
}

/// Calls back with the cells of each instant, in order, until it is told to stop.
fn each_instant(cells: impl Iterator<Item = TrackCell>, mut with: impl FnMut(i64, &[TrackCell]) -> bool) {
    let (mut cells, mut of_instant) = (cells.peekable(), Vec::new());
    while let Some(cell) = cells.next() {
        of_instant.clear();
        of_instant.push(cell);
        while let Some(next) = cells.next_if(|next| next.bucket == cell.bucket) {
            of_instant.push(next);
        }
        if !with(cell.bucket.cast_signed(), &of_instant) {
            return;
        }
    }
}

/// The runs of a track that are in the window, in the order of their begins; `None`: there are more than are wanted.
pub(super) fn runs(
    cells: impl Iterator<Item = TrackCell>,
    before: Before,
    wanted: TrackRequest,
) -> Option<Vec<TrackRun>> {
    let open = before.map(|(value, since)| TrackRun {
        begin: since.unwrap_or(0),
        end: wanted.read.1,
        value,
        flags: if since.is_some() { 0 } else { BEGIN_UNKNOWN },
    });
    let mut runs = RunJoiner { wanted, open, done: Vec::new() };
    each_instant(cells, |at, cells| {
        let is_behind = wanted.window.1 <= at && runs.open.is_none_or(|open| wanted.window.1 <= open.begin);
        if !is_behind {
            runs.instant(at, cells);
        }
        !is_behind && runs.done.len() <= wanted.most
    });
    runs.close(wanted.read.1, END_UNKNOWN);
    let mut done = runs.done;
    done.sort_by_key(|run| run.begin);
    (done.len() <= wanted.most).then_some(done)
}

/// The instants in the window, in order; `None`: there are more than wanted.
pub(super) fn instants(cells: impl Iterator<Item = TrackCell>, wanted: TrackRequest) -> Option<Vec<(i64, u64)>> {
    let mut found = Vec::new();
    each_instant(cells, |at, cells| {
        for cell in cells.iter().filter(|_| wanted.has(at, at)) {
            let room = wanted.most.saturating_add(1).saturating_sub(found.len()).min(cell.begins as usize);
            found.extend(std::iter::repeat_n((at, cell.value), room));
        }
        at < wanted.window.1 && found.len() <= wanted.most
    });
    (found.len() <= wanted.most).then_some(found)
}

/// Neighboring chunks that were read as a whole.
pub(super) struct Exactly<'a> {
    pub(super) timeline: &'a Timeline,
    /// In the order of time, the first of them a chunk.
    pub(super) nodes: Vec<&'a TimelineNode>,
    pub(super) first_chunk: usize,
    pub(super) read: (i64, i64),
    pub(super) progress: &'a Progress,
}

impl Exactly<'_> {
    /// All cells of a track, in the order of time.
    pub(super) fn cells(&self, key: u64) -> impl Iterator<Item = TrackCell> {
        self.nodes.iter().flat_map(move |node| cells_of(node, key, 0))
    }

    /// The items of a track in a window one by one, of a question with a first bucket that begins
    /// with it; `None`: these are more than wanted, or add up.
    pub(super) fn items(
        &self,
        key: u64,
        before: Before,
        (window, level, most): ((i64, i64), Level, usize),
    ) -> Result<Option<Items>, TimelineFailure> {
        let wanted = TrackRequest { key, read: self.read, window, most };
        let number = |meaning: Option<ValueMeaning>, value: u64| {
            meaning.map(|meaning| self.timeline.names.value(&self.timeline.analysis, meaning, value))
        };
        Ok(match kind(key) {
            Some(TrackKind::States) => runs(self.cells(key), before, wanted).and_then(|runs| {
                let run = |run: TrackRun| {
                    let (begin, end) = (run.begin - window.0, run.end - window.0);
                    Some(ExactRun { begin, end, value: number(meaning(key), run.value)?, flags: run.flags })
                };
                runs.into_iter().map(run).collect::<Option<_>>().map(Items::Runs)
            }),
            Some(TrackKind::Instants) => instants(self.cells(key), wanted).and_then(|found| {
                let instant = |(at, value): (i64, u64)| {
                    let value = number(meaning(key), value)?;
                    Some(ExactInstant { time: at - window.0, value, flags: 0 })
                };
                found.into_iter().map(instant).collect::<Option<_>>().map(Items::ExactInstants)
            }),
            Some(TrackKind::Arrows) => {
                let flights = self.flights(TrackRequest { most: usize::MAX, ..wanted })?;
                Some(self.arrows(key, &flights, (window, level, most)))
            }
            _ => None,
        })
    }
}

/// The cells of a track of a node in the order of buckets, also of all events together.
pub(super) fn cells_of(node: &TimelineNode, key: u64, level: Level) -> Vec<TrackCell> {
    if key != ALL_EVENTS.key() {
        return node.track(key).map(|part| part.cells(level).collect()).unwrap_or_default();
    }
    let lanes = node.tracks().filter(|part| TrackKey::of(part.key).is_some_and(|key| key.thing == Thing::LaneEvents));
    let mut cells: Vec<TrackCell> = lanes.flat_map(|part| part.cells(level).collect::<Vec<_>>()).collect();
    cells.sort_by_key(|cell| cell.bucket);
    cells
}

/// The tracks that answers of some are made of, as far as these are few; `None`: of any.
pub(super) fn wanted_of(keys: &[u64]) -> Option<Vec<u64>> {
    let is_one = |key: &u64| *key != ALL_EVENTS.key() && kind(*key) != Some(TrackKind::Arrows);
    keys.iter().all(is_one).then(|| keys.to_vec())
}

impl Timeline {
    /// The nodes' value of a track before a chunk, with times that count from the timeline's begin.
    pub(super) fn before_of(&self, known: Option<(u64, i64)>) -> Before {
        let (value, since) = known?;
        Some((value, (since != i64::MIN).then(|| since.saturating_sub(self.span.0))))
    }
}

/// A chunk that a thread reads: others that want the same wait for it.
#[derive(Default)]
pub(super) struct SharedChunk(Mutex<HashMap<usize, Weak<Turn>>>);

/// The turn to read a chunk, and the result: whether all was known that is before it.
pub(super) type Turn = Mutex<Option<(bool, Arc<TimelineNode>)>>;

impl SharedChunk {
    /// The turn of a chunk, for all threads that want it at the same time.
    pub(super) fn turn(&self, chunk: usize) -> Arc<Turn> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Weak, so that a result lives only as long as a thread waits for it. The cache keeps it
        // longer.
        if let Some(turn) = turns.get(&chunk).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(chunk, Arc::downgrade(&turn));
        turn
    }
}

/// The result of the thread that had the turn before.
pub(super) fn take_turn(turn: &Turn) -> MutexGuard<'_, Option<(bool, Arc<TimelineNode>)>> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use kymo_analysis::timeline::node::NodeBuilder;

    use super::*;

    /// Runs of a track that follow each other, some with gaps, some that take no time, some twice the same.
    fn made(seed: u64) -> Vec<(i64, i64, u64)> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let (mut runs, mut at) = (Vec::new(), 0);
        for _ in 0..60 {
            at += (below(3) / 2 * below(9)).cast_signed();
            let end = at + below(12).cast_signed();
            runs.push((at, end, 1 + below(3)));
            at = end;
        }
        runs
    }

    /// The runs in a node of them, read up to a time, and the value before it.
    fn told_of(runs_made: &[(i64, i64, u64)], read: (i64, i64), window: (i64, i64)) -> Vec<(i64, i64, u64, u32)> {
        let key = TrackKey { thing: Thing::Cpu, host: 0, number: 0, track: 0 }.key();
        let mut node = NodeBuilder::new(0, 0);
        for &(begin, end, value) in runs_made {
            if (read.0..read.1).contains(&begin) {
                node.begin(key, begin, value);
            }
            if (read.0..read.1).contains(&end) {
                node.end(key, end, value);
            }
        }
        let open = runs_made.iter().find(|run| run.0 < read.0 && read.0 <= run.1);
        let before = open.map(|run| (run.2, Some(run.0)));
        let node = node.build();
        let cells = node.track(key).map(|part| part.cells(0).collect::<Vec<_>>()).unwrap_or_default();
        let wanted = TrackRequest { key, read, window, most: 1000 };
        let runs = runs(cells.into_iter(), before, wanted).unwrap();
        runs.into_iter().map(|run| (run.begin, run.end, run.value, run.flags)).collect()
    }

    #[test]
    fn runs_are_those_that_were_made() {
        for seed in 0..300 {
            let made = made(seed);
            let last = made.iter().map(|run| run.1).max().unwrap();
            let (from, to) = (last / 4, last * 3 / 4);
            for (read, window) in
                [((0, last + 1), (0, last + 1)), ((0, last + 1), (from, to)), ((from, to), (from + 5, to - 9))]
            {
                let is_there =
                    |&&(begin, end, _): &&(i64, i64, u64)| begin < window.1 && (window.0 < end || window.0 <= begin);
                let mut expected: Vec<_> = made
                    .iter()
                    .filter(is_there)
                    .map(
                        |&(begin, end, value)| {
                            if end < read.1 { (begin, end, value, 0) } else { (begin, read.1, value, END_UNKNOWN) }
                        },
                    )
                    .collect();
                let mut found = told_of(&made, read, window);
                // Several that take no time at one instant have no order.
                expected.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, expected, "{seed}: {read:?}, {window:?}");
            }
        }
    }

    #[test]
    fn what_is_unknown_is_said() {
        let key = TrackKey { thing: Thing::Thread, host: 0, number: 7, track: 0 }.key();
        let doubt = 1 << 63;
        let mut node = NodeBuilder::new(0, 0);
        node.end(key, 10, 5);
        node.begin(key, 20, 6 | doubt);
        node.end(key, 30, 6 | doubt);
        node.begin(key, 30, 6);
        let node = node.build();
        let wanted = TrackRequest { key, read: (4, 50), window: (8, 40), most: 3 };
        let of = |before, wanted| runs(node.track(key).unwrap().cells(0), before, wanted);
        let run = |begin, end, value, flags| TrackRun { begin, end, value, flags };
        let behind = [run(20, 30, 6, IN_DOUBT), run(30, 50, 6, END_UNKNOWN)];
        assert_eq!(of(None, wanted).unwrap(), [&[run(4, 10, 5, BEGIN_UNKNOWN)][..], &behind].concat());
        assert_eq!(of(Some((5, None)), wanted).unwrap(), [&[run(0, 10, 5, BEGIN_UNKNOWN)][..], &behind].concat());
        assert_eq!(of(Some((5, Some(1))), wanted).unwrap(), [&[run(1, 10, 5, 0)][..], &behind].concat());
        assert_eq!(of(None, TrackRequest { most: 2, ..wanted }), None);
    }
}
