//! Durations of threads that lie inside each other: how deep each of them is, and when it ends.
//!
//! ```text
//! depth 0    │ request ──────────────────┐       │ request ───
//! depth 1        │ parse ─┐ │ store ─┐
//! depth 2                     │ write ┘
//! ```
//!
//! A duration that begins gets the lowest depth of its thread that is free, and keeps it until it
//! ends: durations inside each other are drawn so, and durations that only overlap, as requests
//! that a thread serves by turns, lie side by side. An end belongs to the duration that began with
//! the same key: on its own thread the latest one, else the last one with that key on any thread.
//! Durations without a key are nested by themselves: an end closes the last one with its name.
//!
//! Where events are missing, depths must not grow for ever:
//!
//! - A key that begins again on its thread is over: its end was not seen. Names of scopes are keys
//!   that come again.
//! - With each duration that ends on its own thread, all end that began later there and cannot be
//!   trusted to be there still: durations without a key, if neither has one, and durations across a
//!   time in which events were lost.
//! - A duration with an unseen begin is not drawn, and one with an unseen end lasts. If it has to end
//!   by the rules above, its value says that it is in doubt, as that of a thread's state does.
//! - There are [`DEPTHS`]. In the last one, a duration that begins ends the one that is there.
//!
//! Chunks are sealed in order, so that all is known of the chunks before them. For code that reads
//! a chunk alone, nodes know the open durations behind them: hidden tracks say of each thread which
//! depths are taken, of each depth with which key, and of each key the thread that has it.

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};

use super::marks::ThreadMark;
use super::node::NodeBuilder;
use super::{Thing, TrackKey};
use crate::Windows;
use crate::runs::StateRun;
use crate::states::DOUBT;

/// Depths that are told apart.
pub const DEPTHS: u8 = 64;
/// Where the hidden track is that says which depths are taken: beside those of depths.
const TAKEN: u8 = u8::MAX;

/// The known values of some tracks: the value and since when.
type Known = HashMap<u64, Option<(u64, i64)>>;

/// Something that is open.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct OpenSlice {
    key: u64,
    name: u64,
    since: i64,
    /// In which chunk it began.
    round: u32,
}

/// The open durations of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct SliceStack {
    /// A bit for each depth that is taken.
    taken: u64,
    /// By depth; for depths that are not taken, the last duration there.
    slices: Vec<OpenSlice>,
}

/// The open durations behind a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OpenSlices {
    threads: HashMap<u64, SliceStack>,
    /// On which thread and how deep that is which began last with a key.
    owners: HashMap<u64, (u64, u8)>,
    /// How many chunks there were.
    round: u32,
}

/// The results of a chunk.
#[derive(Debug, Default)]
pub struct SlicesSequel {
    /// Durations that begin and end in it.
    pub(super) inner: Vec<StateRun>,
    /// Durations that end in it and began before.
    pub(super) ended: Vec<StateRun>,
    /// Durations that begin in it and go on behind it.
    pub(super) open: Vec<StateRun>,
    /// The values of hidden tracks behind it.
    pub(super) hidden: Vec<(u64, Option<(u64, i64)>)>,
}

/// A chunk while it is put behind the chunks before it.
struct ChunkMerge<'a> {
    slices: &'a mut OpenSlices,
    holes: &'a Windows,
    sequel: SlicesSequel,
    /// Threads with marks, and keys that had an owner before the chunk.
    threads: HashSet<u64>,
    disowned: HashSet<u64>,
    /// When its first mark is.
    since: i64,
}

fn depths(taken: u64) -> impl Iterator<Item = u8> {
    (0..DEPTHS).filter(move |depth| taken >> depth & 1 != 0)
}

/// The track of a depth.
fn track(thread: u64, depth: u8) -> u64 {
    thread | u64::from(depth) << 56
}

/// The hidden track of a depth that says which key it has, or of [`TAKEN`].
fn hidden(thread: u64, depth: u8) -> u64 {
    const STEP: u64 = Thing::SliceKeys as u64 - Thing::Slices as u64;
    track(thread, depth) + (STEP << 48)
}

/// Of a hidden track the thread and the depth.
fn of_hidden(key: u64) -> Option<(u64, u8)> {
    let TrackKey { thing, track, .. } = TrackKey::of(key)?;
    let is_it = matches!(thing, Thing::SliceKeys | Thing::LaneSliceKeys);
    is_it.then(|| (key - (hidden(0, track)), track))
}

/// The hidden track that says the owner of a key; several keys may share one.
fn owned(key: u64) -> u64 {
    TrackKey { thing: Thing::SliceOwners, host: (key >> 40) as u16, number: key as i32, track: (key >> 32) as u8 }.key()
}

/// An owner as a value: the part of the thread's track that is not the same for all.
fn owner((thread, depth): (u64, u8)) -> u64 {
    thread | u64::from(depth) << 56
}

fn of_owner(value: u64) -> (u64, u8) {
    (value & !(0xff << 56), (value >> 56) as u8)
}

impl SliceStack {
    /// The latest one that an end is the end of.
    fn ended_by(&self, mark: &ThreadMark) -> Option<u8> {
        let is_it = |slice: &OpenSlice| {
            slice.key == mark.key && (!ThreadMark::is_plain(mark.key) || mark.name == 0 || slice.name == mark.name)
        };
        let fits = depths(self.taken).filter(|&depth| is_it(self.at(depth)));
        fits.max_by_key(|&depth| (self.at(depth).since, depth))
    }

    fn at(&self, depth: u8) -> &OpenSlice {
        &self.slices[usize::from(depth)]
    }

    fn put(&mut self, depth: u8, slice: OpenSlice) {
        let place = usize::from(depth);
        if self.slices.len() <= place {
            self.slices.resize(place + 1, OpenSlice::default());
        }
        self.slices[place] = slice;
        self.taken |= 1 << depth;
    }
}

impl OpenSlices {
    /// Puts marks in the order of time behind all that was before them. `holes`: where events may be missing.
    pub(super) fn follow(&mut self, marks: &[ThreadMark], holes: &Windows) -> SlicesSequel {
        let Some(since) = marks.first().map(|mark| mark.time) else { return SlicesSequel::default() };
        self.round = self.round.wrapping_add(1);
        let (threads, disowned) = (HashSet::new(), HashSet::new());
        let mut following =
            ChunkMerge { slices: self, holes, sequel: SlicesSequel::default(), threads, disowned, since };
        for mark in marks {
            if mark.is_end {
                following.end(mark);
            } else {
                following.begin(mark);
            }
        }
        following.finish()
    }

    /// The keys of tracks that say the open durations before a chunk.
    pub(super) fn asked(marks: &[ThreadMark]) -> Vec<u64> {
        let (mut begun, mut asked) = (HashSet::new(), HashSet::new());
        for mark in marks {
            asked.insert(hidden(mark.thread, TAKEN));
            if !mark.is_end {
                begun.insert(mark.key);
            } else if !ThreadMark::is_plain(mark.key) && !begun.contains(&mark.key) {
                asked.insert(owned(mark.key));
            }
        }
        asked.into_iter().collect()
    }

    /// The keys that have to be asked besides, after those.
    pub(super) fn asked_next(known: &Known) -> Vec<u64> {
        let mut asked = HashSet::new();
        for (&key, now) in known {
            let Some((value, _)) = *now else { continue };
            let open: Vec<(u64, u8)> = match (TrackKey::of(key).map(|key| key.thing), of_hidden(key)) {
                (Some(Thing::SliceOwners), _) => vec![of_owner(value)],
                (_, Some((thread, TAKEN))) => depths(value).map(|depth| (thread, depth)).collect(),
                _ => continue,
            };
            asked.extend(open.into_iter().flat_map(|(thread, depth)| [track(thread, depth), hidden(thread, depth)]));
        }
        asked.into_iter().collect()
    }

    /// The open durations, from others' findings.
    pub(super) fn before(known: &Known) -> Self {
        let mut slices = Self::default();
        let now = |key: u64| known.get(&key).copied().flatten();
        let open = known.keys().filter_map(|&key| of_hidden(key)).filter(|&(_, depth)| depth != TAKEN);
        for (thread, depth) in open {
            let (Some((key, _)), Some((name, since))) = (now(hidden(thread, depth)), now(track(thread, depth))) else {
                continue;
            };
            slices.threads.entry(thread).or_default().put(depth, OpenSlice { key, name, since, round: 0 });
            if now(owned(key)).is_some_and(|(value, _)| of_owner(value) == (thread, depth)) {
                slices.owners.insert(key, (thread, depth));
            }
        }
        slices
    }
}

impl SlicesSequel {
    /// Puts everything into a node. In one with all values, ends that were not seen are in doubt.
    pub(super) fn draw(self, node: &mut NodeBuilder, is_whole: bool) {
        let shown = |value: u64| if is_whole { value } else { value & !DOUBT };
        for StateRun { key, begin, end, value } in self.inner {
            if shown(value) & DOUBT == 0 {
                node.run(key, (begin, end), shown(value));
            } else {
                node.begin(key, begin, value & !DOUBT);
                node.end(key, end, value);
            }
        }
        self.ended.into_iter().for_each(|run| node.end(run.key, run.end, shown(run.value)));
        self.open.into_iter().for_each(|run| node.open(run.key, run.begin, run.value));
        self.hidden.into_iter().for_each(|(key, now)| node.known(key, now));
    }
}

impl ChunkMerge<'_> {
    fn begin(&mut self, mark: &ThreadMark) {
        let ThreadMark { time, thread, key, name, .. } = *mark;
        self.threads.insert(thread);
        let is_plain = ThreadMark::is_plain(key);
        let again = self.slices.threads.entry(thread).or_default().ended_by(mark).filter(|_| !is_plain);
        if let Some(depth) = again {
            self.close((thread, depth), time, false);
        }
        let OpenSlices { threads, round, .. } = &*self.slices;
        let (taken, round) = (threads.get(&thread).map_or(0, |stack| stack.taken), *round);
        let depth = ((!taken).trailing_zeros() as u8).min(DEPTHS - 1);
        if taken == u64::MAX {
            self.over((thread, depth), time, false);
        }
        let stack = self.slices.threads.entry(thread).or_default();
        stack.put(depth, OpenSlice { key, name, since: time, round });
        if !is_plain && let Some(before) = self.slices.owners.insert(key, (thread, depth)) {
            self.disown(key, before);
        }
    }

    fn end(&mut self, mark: &ThreadMark) {
        self.threads.insert(mark.thread);
        if let Some(depth) = self.slices.threads.get(&mark.thread).and_then(|stack| stack.ended_by(mark)) {
            self.close((mark.thread, depth), mark.time, true);
        } else if let Some(&found) = self.slices.owners.get(&mark.key) {
            // Code that reads this chunk alone does not know the other durations on that thread.
            self.threads.insert(found.0);
            self.over(found, mark.time, true);
        }
    }

    /// A duration is over, and those that began later on its thread and cannot be there still. `is_seen`: its end is
    /// an event.
    fn close(&mut self, (thread, depth): (u64, u8), time: i64, is_seen: bool) {
        let Some(stack) = self.slices.threads.get(&thread) else { return };
        let outer = *stack.at(depth);
        let is_over = |&inner: &u8| {
            let slice = stack.at(inner);
            let are_plain = || ThreadMark::is_plain(outer.key) && ThreadMark::is_plain(slice.key);
            (slice.since, inner) > (outer.since, depth) && (are_plain() || self.holes.touch(slice.since, time))
        };
        let inner = depths(stack.taken).filter(is_over).fold(0u64, |inner, depth| inner | 1 << depth);
        for ended in depths(inner | 1 << depth) {
            self.over((thread, ended), time, is_seen && ended == depth);
        }
    }

    fn over(&mut self, (thread, depth): (u64, u8), time: i64, is_seen: bool) {
        let Some(stack) = self.slices.threads.get_mut(&thread) else { return };
        stack.taken &= !(1 << depth);
        let OpenSlice { key, name, since, round } = *stack.at(depth);
        let value = if is_seen { name } else { name | DOUBT };
        let run = StateRun { key: track(thread, depth), begin: since, end: time, value };
        let is_new = round == self.slices.round;
        if is_new { &mut self.sequel.inner } else { &mut self.sequel.ended }.push(run);
        if self.slices.owners.get(&key) == Some(&(thread, depth)) {
            self.slices.owners.remove(&key);
            self.disown(key, (thread, depth));
        }
    }

    /// A duration does not own a key any more. Of one that began in this chunk, nothing outside
    /// knows.
    fn disown(&mut self, key: u64, (thread, depth): (u64, u8)) {
        let slice = self.slices.threads.get(&thread).and_then(|stack| stack.slices.get(usize::from(depth)));
        if slice.is_none_or(|slice| slice.key != key || slice.round != self.slices.round) {
            self.disowned.insert(key);
        }
    }

    fn finish(self) -> SlicesSequel {
        let Self { slices, mut sequel, threads, disowned, since, .. } = self;
        let known = |slices: &OpenSlices, key: u64| {
            let (thread, depth) = *slices.owners.get(&key)?;
            Some((owner((thread, depth)), slices.threads.get(&thread)?.at(depth).since))
        };
        for &thread in &threads {
            let Some(stack) = slices.threads.get(&thread) else { continue };
            sequel.hidden.push((hidden(thread, TAKEN), (stack.taken != 0).then_some((stack.taken, since))));
            for depth in depths(stack.taken) {
                let OpenSlice { key, name, since, round } = *stack.at(depth);
                if round == slices.round {
                    sequel.open.push(StateRun { key: track(thread, depth), begin: since, end: i64::MAX, value: name });
                    sequel.hidden.push((hidden(thread, depth), Some((key, since))));
                    if !ThreadMark::is_plain(key) && !disowned.contains(&key) {
                        sequel.hidden.push((owned(key), known(slices, key)));
                    }
                }
            }
        }
        sequel.hidden.extend(disowned.iter().map(|&key| (owned(key), known(slices, key))));
        slices.threads.retain(|thread, stack| stack.taken != 0 || !threads.contains(thread));
        sequel
    }
}

#[cfg(test)]
mod tests;
