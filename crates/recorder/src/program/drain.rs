//! Drains the lanes (the per-thread ring buffers) of a traced program, and decides in which order.
//!
//! ```text
//! look at all ──> of each lane: sequence 4 │ 5 │ 6 (open)
//!                    next: 4, none taken      take, take, take what is new of it when it is worth it
//! ```
//!
//! A sub-buffer that is absent while later ones of its lane are present is looked for a second
//! time: because the thread wrote it before those, the second look finds it, or it has been
//! overwritten. Events that are not worth a packet yet stay in the lane, where this recorder or a
//! later one finds them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use kymo_lane::{Losses, RecorderSide, SubBufferSnapshot, WriterThread};
use serde::{Deserialize, Serialize};

use crate::clock::step_max;
use crate::program::run::{EventRun, LaneEnd, RunSink};
use crate::program::{Control, DrainTiming, Drained, ProgramFacts};

/// How long events wait for more events before the recorder writes a packet.
const WAIT: Duration = Duration::from_millis(100);

/// Sub-buffers that the recorder gives back before it tells waiting programs.
const FREED_TOLD: u32 = 8;

/// Bytes that the recorder takes from one program before other programs have their turn, and the
/// least that a sub-buffer counts for. Sixteen MiB are the default pool of one program. An empty
/// sub-buffer counts too, because giving it back costs a system call.
const ROUND_BYTES: u64 = 16 << 20;
const LEAST_BYTES: u32 = 1024;

/// How often the recorder looks at the counters of lost events and of cut texts.
const LOOK: Duration = Duration::from_secs(1);

/// How often the recorder looks for threads that are gone, also while no program records anything.
pub(crate) const REAP: Duration = Duration::from_secs(1);
pub(crate) const REAP_WHO_RESTS: Duration = Duration::from_secs(5);
/// No lane can lose more events between two looks: a larger difference is not believed, and counts
/// as 0.
const LOST_MAX: u64 = 1 << 40;
/// No lane can miss this many sub-buffers.
const MISSING_MAX: u64 = 1 << 32;

/// Where the last trace of a lane ends: everything before this position is in that trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Sequence number of the sub-buffer, and how many of its bytes have been taken.
    pub sequence: u64,
    /// See [`Position::sequence`].
    pub bytes: u32,
    /// Ticks of the last event.
    pub last: u64,
    /// Events that the lane had lost, as far as the trace counts them.
    pub discarded: u64,
}

/// How far a recorder has drained a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainProgress {
    /// Where the trace of each lane ends.
    pub positions: HashMap<u16, Position>,
    /// Events that were lost because a thread had no lane, as far as the trace counts them.
    pub discarded: u64,
    /// Texts that were cut, as far as they have been reported.
    pub cut: u64,
}

impl Position {
    /// Of two positions that are known of one lane, one that is behind both.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        let place = |position: &Self| (position.sequence, position.bytes);
        let later = if place(&other) >= place(&self) { other } else { self };
        Self { last: self.last.max(other.last), discarded: self.discarded.max(other.discarded), ..later }
    }
}

impl DrainProgress {
    /// Of two states that are known of one program, one that is behind both.
    #[must_use]
    pub fn later(mut self, other: &Self) -> Self {
        for (lane, position) in &other.positions {
            let known = self.positions.entry(*lane).or_default();
            *known = known.later(*position);
        }
        let (discarded, cut) = (self.discarded.max(other.discarded), self.cut.max(other.cut));
        Self { discarded, cut, ..self }
    }

    /// Of two states that are known of one program, the progress that both have made.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        let both = self.positions.iter().filter_map(|(lane, position)| {
            let other = other.positions.get(lane)?;
            let place = |position: &Position| (position.sequence, position.bytes);
            let earlier = if place(position) <= place(other) { position } else { other };
            let (last, discarded) = (position.last.min(other.last), position.discarded.min(other.discarded));
            Some((*lane, Position { last, discarded, ..*earlier }))
        });
        let (discarded, cut) = (self.discarded.min(other.discarded), self.cut.min(other.cut));
        Self { positions: both.collect(), discarded, cut }
    }
}

/// State of a lane.
#[derive(Clone, Copy, Debug)]
struct DrainedLane {
    position: Position,
    thread: WriterThread,
    /// Since when events have been waiting.
    waits: Option<Instant>,
    /// The sink still has to get a [`LaneEnd`] for it.
    is_open: bool,
    /// The thread was gone when it had this sub-buffer: no more events come into it.
    gone_at: Option<u64>,
    /// Another recorder left the lane at this position.
    is_resumed: bool,
}

impl DrainedLane {
    fn new(position: Position, thread: WriterThread) -> Self {
        Self { position, thread, waits: None, is_open: false, gone_at: None, is_resumed: false }
    }
}

/// The lanes of a program.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: HashMap<u16, DrainedLane>,
    room: Vec<u8>,
    bytes: Vec<u8>,
    discarded: u64,
    /// Events that lanes have lost and texts that they have cut, as far as they have been reported,
    /// and when the recorder last looked.
    losses: HashMap<u16, Losses>,
    looked_at_losses: Option<Instant>,
    /// Texts that were cut, in total.
    cut: u64,
    /// Losses of a lane that this recorder meets for the first time are still to be reported.
    tells_all: bool,
    reaped: Option<Instant>,
    /// The lane that comes first in the next round.
    next: u16,
    /// How far the events of lanes were looked into before they are taken.
    peeked: HashMap<u16, Position>,
}

type Memory = RecorderSide<Control>;

impl Lanes {
    /// How far the recorder has drained the program.
    pub(crate) fn progress(&self) -> DrainProgress {
        let positions = self.lanes.iter().map(|(lane, state)| (*lane, state.position)).collect();
        DrainProgress { positions, discarded: self.discarded, cut: self.cut }
    }

    /// Goes on where earlier recorders were.
    pub(crate) fn resume(&mut self, progress: &DrainProgress) {
        self.discarded = self.discarded.max(progress.discarded);
        self.cut = self.cut.max(progress.cut);
        self.tells_all = true;
        for (lane, position) in &progress.positions {
            let state = DrainedLane { is_resumed: true, ..DrainedLane::new(*position, WriterThread::default()) };
            let known = self.lanes.entry(*lane).or_insert(state);
            known.position = known.position.later(*position);
        }
    }

    /// All sub-buffers that are present, by lane and in order. A gap between them has been looked
    /// for twice.
    pub(crate) fn look(&mut self, memory: &Memory) -> io::Result<Vec<SubBufferSnapshot>> {
        // The look is not atomic: a lane may take its next sub-buffer at a place that the look has
        // passed. Sequence numbers show that; a second look, after the first, then sees both.
        let first = self.look_once(memory)?;
        let begin = |lane: u16| self.lanes.get(&lane).map(|state| state.position.sequence);
        let is_whole = first.chunk_by(|one, next| one.lane == next.lane).all(|lane| {
            let begin = begin(lane[0].lane).unwrap_or(0);
            let open = lane.iter().filter(|seen| seen.sequence >= begin);
            // The program writes the numbers, and may write any of them, the largest one too.
            open.zip(0_u64..).all(|(seen, further)| seen.sequence == begin.wrapping_add(further))
        });
        if is_whole { Ok(first) } else { self.look_once(memory) }
    }

    pub(crate) fn look_once(&mut self, memory: &Memory) -> io::Result<Vec<SubBufferSnapshot>> {
        let ready = memory.ready()?;
        self.room.resize(RecorderSide::<Control>::look_bytes(ready), 0);
        let mut all = Vec::new();
        memory.look_all(ready, &mut self.room, |seen| all.push(seen))?;
        all.sort_unstable_by_key(|seen| (seen.lane, seen.sequence));
        // A program that keeps to the protocol never has two sub-buffers of one number.
        all.dedup_by_key(|seen| (seen.lane, seen.sequence));
        Ok(all)
    }

    /// Takes the sub-buffers that a look has found.
    pub(crate) fn drain(
        &mut self,
        memory: &Memory,
        known: &ProgramFacts,
        all: &[SubBufferSnapshot],
        patience: DrainTiming,
        sink: &mut dyn RunSink,
    ) -> io::Result<Drained> {
        let mut drained = Drained::default();
        let (mut freed, mut done, mut looked) = (0_u32, Ok(()), 0_u64);
        // A round begins with the lane where the last one stopped. Otherwise the first lanes of a
        // busy program would use up every round.
        let (before, behind) = all.split_at(all.partition_point(|seen| seen.lane < self.next));
        let lanes = [behind, before].into_iter().flat_map(|all| all.chunk_by(|one, next| one.lane == next.lane));
        for lane in lanes {
            // Only ordinary rounds may stop here: the last ones of a session or program take
            // everything.
            if looked >= ROUND_BYTES && matches!(patience, DrainTiming::Wait | DrainTiming::Seldom) {
                (self.next, drained.is_left) = (lane[0].lane, true);
                break;
            }
            for seen in lane {
                looked += u64::from(seen.bytes.max(LEAST_BYTES));
                match self.step(memory, known, seen, patience, sink, &mut drained) {
                    Ok(DrainStep::Freed) => {
                        freed += 1;
                        // Threads that wait for room need not wait until the recorder has written
                        // everything.
                        if freed.is_multiple_of(FREED_TOLD) {
                            memory.freed(kymo_tracer::counter())?;
                        }
                    }
                    Ok(DrainStep::Skipped) => {}
                    Ok(DrainStep::Waits) => break,
                    // Other sub-buffers may still be readable, so the loop goes on.
                    Err(error) => done = Err(error),
                }
            }
        }
        if freed > 0 && done.is_ok() {
            // The counter serves as the epoch, because any value does that differs from the last one.
            done = memory.freed(kymo_tracer::counter());
        }
        done?;
        drained.given_back = freed.into();
        let all_lost = memory.discarded()?;
        drained.discarded = lost_since(std::mem::replace(&mut self.discarded, all_lost), all_lost);
        drained.discarded_ever = all_lost;
        if matches!(patience, DrainTiming::Now | DrainTiming::Last)
            || self.looked_at_losses.is_none_or(|last| last.elapsed() >= LOOK)
        {
            self.looked_at_losses = Some(Instant::now());
            self.look_at_losses(memory, &mut drained)?;
        }
        drained.cut_ever = self.cut;
        Ok(drained)
    }

    /// Looks into the events of a look that it has not looked into, and takes none.
    pub(crate) fn peek(
        &mut self,
        memory: &Memory,
        known: &ProgramFacts,
        all: &[SubBufferSnapshot],
        each: &mut dyn FnMut(&EventRun<'_>),
    ) -> io::Result<()> {
        for seen in all {
            let taken = self.lanes.get(&seen.lane).map_or(Position::default(), |state| state.position);
            let before = self.peeked.get(&seen.lane).map_or(taken, |peeked| peeked.later(taken));
            if seen.sequence < before.sequence || seen.sequence == before.sequence && seen.bytes <= before.bytes {
                continue;
            }
            let from = if seen.sequence == before.sequence { before.bytes } else { 0 };
            self.bytes.resize((seen.bytes - from) as usize, 0);
            if memory.copy(seen, from, &mut self.bytes)? {
                let state = DrainedLane::new(before, seen.thread);
                let run = run(seen, &state, from, 0, &self.bytes, step_max(known.identity.clock));
                each(&run);
                let position = Position { sequence: seen.sequence, bytes: seen.bytes, last: run.last, discarded: 0 };
                self.peeked.insert(seen.lane, position);
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        memory: &Memory,
        known: &ProgramFacts,
        seen: &SubBufferSnapshot,
        patience: DrainTiming,
        sink: &mut dyn RunSink,
        drained: &mut Drained,
    ) -> io::Result<DrainStep> {
        // An earlier recorder has to report what a lane had lost before the first sub-buffer that
        // this one sees.
        let discarded = if seen.sequence == 0 || self.tells_all { 0 } else { seen.discarded };
        let position = Position { sequence: seen.sequence, discarded, ..Position::default() };
        let state = self.lanes.entry(seen.lane).or_insert(DrainedLane::new(position, seen.thread));
        let is_full =
            seen.is_full || patience == DrainTiming::Last || state.gone_at.is_some_and(|gone| seen.sequence <= gone);
        if seen.sequence < state.position.sequence {
            // An earlier recorder has taken it, and was killed before it could give it back.
            return if is_full { memory.free(seen).map(|()| DrainStep::Freed) } else { Ok(DrainStep::Skipped) };
        }
        let ahead = seen.sequence - state.position.sequence;
        let missing = match state.is_resumed {
            // The earlier recorder has given back the sub-buffer of its position, so it had taken
            // all of it.
            true if state.position.bytes > 0 => ahead.saturating_sub(1),
            // The position is unknown, so the number of missing sub-buffers is too.
            true if state.position.sequence == 0 => 0,
            _ => ahead,
        };
        let missing = missing.min(MISSING_MAX);
        // The program may have lowered its count of bytes since. It is not trusted to only raise
        // it.
        let from = if ahead > 0 { 0 } else { state.position.bytes.min(seen.bytes) };
        let length = seen.bytes - from;
        if !is_full && !is_due(state, length, memory.layout().sub_buffer_bytes, patience) && missing == 0 {
            drained.is_left |= length > 0;
            return Ok(DrainStep::Waits);
        }
        state.waits = None;
        let has_losses = seen.discarded > state.position.discarded;
        if length > 0 || missing > 0 || has_losses {
            self.bytes.resize(length as usize, 0);
            // The program has overwritten it meanwhile: it counts as missing when the next
            // sub-buffer comes.
            if !memory.copy(seen, from, &mut self.bytes)? {
                return Ok(DrainStep::Skipped);
            }
            let run = run(seen, state, from, missing, &self.bytes, step_max(known.identity.clock));
            sink.take(known, &run);
            // `look_at_losses` may have reported some of these already.
            let known_losses = self.losses.get(&seen.lane).map_or(0, |losses| losses.discarded);
            drained.lost += lost_since(known_losses.max(state.position.discarded), seen.discarded);
            state.is_open = true;
            drained.runs += u64::from(length > 0);
            drained.bytes += u64::from(length);
            state.position.last = run.last;
            // The program could lower its counter: the position never goes back, so no loss counts
            // twice.
            state.position.discarded = state.position.discarded.max(seen.discarded);
        }
        (state.position.sequence, state.position.bytes, state.thread) = (seen.sequence, seen.bytes, seen.thread);
        state.is_resumed = false;
        if !is_full {
            return Ok(DrainStep::Waits);
        }
        // The sink has the events before the sub-buffer is free. If the recorder is killed between
        // the two, the next one finds the sub-buffer again, and the trace says that its events are
        // written.
        state.position = Position { sequence: seen.sequence.wrapping_add(1), bytes: 0, ..state.position };
        memory.free(seen).map(|()| DrainStep::Freed)
    }

    /// Whether a sub-buffer holds bytes that no recorder has taken.
    pub(crate) fn has_new(&mut self, memory: &Memory) -> io::Result<bool> {
        let all = self.look_once(memory)?;
        Ok(all.iter().any(|seen| {
            let taken = self.lanes.get(&seen.lane).map(|state| (state.position.sequence, state.position.bytes));
            seen.bytes > 0 && taken.is_none_or(|taken| (seen.sequence, seen.bytes) > taken)
        }))
    }

    /// Copies all events that are present, like the first recorder that ever looks, and leaves them
    /// there.
    pub(crate) fn snapshot(
        &mut self,
        memory: &Memory,
        known: &ProgramFacts,
        all: &[SubBufferSnapshot],
        sink: &mut dyn RunSink,
    ) -> io::Result<Drained> {
        let mut drained = Drained::default();
        for lane in all.chunk_by(|one, next| one.lane == next.lane) {
            let SubBufferSnapshot { sequence, discarded, thread, .. } = lane[0];
            let mut state = DrainedLane::new(Position { sequence, discarded, ..Position::default() }, thread);
            for seen in lane {
                self.bytes.resize(seen.bytes as usize, 0);
                // Overwritten while it was copied. The gap in the sequence counts as missing below.
                if !memory.copy(seen, 0, &mut self.bytes)? {
                    continue;
                }
                let missing = (seen.sequence - state.position.sequence).min(MISSING_MAX);
                let run = run(seen, &state, 0, missing, &self.bytes, step_max(known.identity.clock));
                sink.take(known, &run);
                drained.runs += 1;
                drained.bytes += self.bytes.len() as u64;
                let discarded = seen.discarded.max(state.position.discarded);
                state.position =
                    Position { sequence: seen.sequence.wrapping_add(1), bytes: 0, last: run.last, discarded };
                (state.thread, state.is_open) = (seen.thread, true);
            }
            if state.is_open {
                let ever = memory.losses(lane[0].lane)?.discarded;
                sink.end(known, &end(lane[0].lane, &state, ever, state.position.last));
            }
        }
        let held: HashSet<u16> = all.iter().map(|seen| seen.lane).collect();
        for (lane, losses) in all_losses(memory)? {
            drained.cut = drained.cut.saturating_add(losses.cut);
            if losses.discarded > 0 && !held.contains(&lane) {
                // The lane never had room, or has lost its events.
                let state = DrainedLane::new(Position::default(), WriterThread::default());
                sink.end(known, &end(lane, &state, losses.discarded, 0));
            }
        }
        drained.discarded = memory.discarded()?;
        Ok(drained)
    }

    /// All sub-buffers that were seen belong to others: gives them back, and does not
    /// report losses so far.
    pub(crate) fn skip(&mut self, memory: &Memory, all: &[SubBufferSnapshot]) -> io::Result<()> {
        for seen in all {
            let (sequence, bytes) =
                if seen.is_full { (seen.sequence.wrapping_add(1), 0) } else { (seen.sequence, seen.bytes) };
            let discarded = memory.losses(seen.lane)?.discarded;
            let position = Position { sequence, bytes, last: seen.last, discarded };
            self.lanes.insert(seen.lane, DrainedLane::new(position, seen.thread));
            if seen.is_full {
                memory.free(seen)?;
            }
        }
        memory.freed(kymo_tracer::counter())?;
        // Also of lanes that hold no events now.
        for (lane, losses) in all_losses(memory)? {
            let position = Position { discarded: losses.discarded, ..Position::default() };
            let state = DrainedLane { is_resumed: true, ..DrainedLane::new(position, WriterThread::default()) };
            self.lanes.entry(lane).or_insert(state);
        }
        self.discarded = memory.discarded()?;
        self.cut = self.cut_ever(memory)?;
        Ok(())
    }

    /// Whether the sub-buffers that were seen hold everything that the program ever recorded, and
    /// none began before these ticks.
    pub(crate) fn is_since(memory: &Memory, all: &[SubBufferSnapshot], ticks: u64) -> io::Result<bool> {
        // Sequence 0 in each lane means that no sub-buffer has been overwritten or given back.
        let mut firsts = all.chunk_by(|one, next| one.lane == next.lane).map(|lane| &lane[0]);
        let is_new = firsts.all(|first| first.sequence == 0 && first.begin >= ticks);
        Ok(if all.is_empty() { memory.ready()? == 0 } else { is_new })
    }

    /// Events lost and texts cut since the last look. A lane that lost events and records no more
    /// reports its losses nowhere else.
    fn look_at_losses(&mut self, memory: &Memory, drained: &mut Drained) -> io::Result<()> {
        for (lane, state) in &self.lanes {
            let now = memory.losses(*lane)?;
            let told = Losses { discarded: state.position.discarded, cut: 0 };
            let before = self.losses.insert(*lane, now).unwrap_or(told);
            let lost = lost_since(before.discarded.max(told.discarded), now.discarded);
            drained.lost = drained.lost.saturating_add(lost);
        }
        // Those of lanes that are not known any more have been reported already.
        let cut = self.cut_ever(memory)?.max(self.cut);
        drained.cut = lost_since(std::mem::replace(&mut self.cut, cut), cut);
        Ok(())
    }

    /// Texts that the known lanes have cut.
    fn cut_ever(&self, memory: &Memory) -> io::Result<u64> {
        self.lanes.keys().try_fold(0_u64, |sum, lane| Ok(sum.saturating_add(memory.losses(*lane)?.cut)))
    }

    /// Whether it is time to look for threads that are gone.
    pub(crate) fn reaps(&self, each: Duration) -> bool {
        self.reaped.is_none_or(|last| last.elapsed() >= each)
    }

    /// Takes lanes from threads that are gone, and ends those that no thread holds and that have no
    /// events. `lives`: whether a thread does. `is_drained`: the recorder takes the events of this
    /// program; in a flight recorder they stay until they are overwritten.
    pub(crate) fn reap(
        &mut self,
        memory: &Memory,
        known: &ProgramFacts,
        lives: impl Fn(u32) -> bool,
        is_drained: bool,
        sink: &mut dyn RunSink,
    ) -> io::Result<()> {
        self.reaped = Some(Instant::now());
        let held: HashSet<u16> = self.look_once(memory)?.iter().map(|seen| seen.lane).collect();
        for lane in 0..memory.lanes_ready()? {
            let Some(holder) = memory.holder(lane)? else {
                // Only without sub-buffers: until they are taken, the lane's stream still needs its
                // position.
                if let Some(state) = self.lanes.get_mut(&lane).filter(|state| state.is_open && !held.contains(&lane)) {
                    state.is_open = false;
                    let ever = memory.losses(lane)?.discarded;
                    sink.end(known, &end(lane, state, ever, state.position.last));
                    state.position.discarded = state.position.discarded.max(ever);
                }
                continue;
            };
            if holder.tid.is_none_or(&lives) {
                continue;
            }
            // This look comes after the thread's end, so that none of its sub-buffers is missing.
            let all = self.look_once(memory)?;
            let last = all.iter().filter(|seen| seen.lane == lane).map(|seen| seen.sequence).max();
            match self.lanes.get_mut(&lane) {
                // The next thread that holds the lane starts another sub-buffer.
                Some(state) => state.gone_at = last,
                // The next drain meets the lane; the reap after that remembers its last sub-buffer,
                // which has to be given back open.
                None if is_drained && last.is_some() => continue,
                None => {}
            }
            memory.release(lane, &holder)?;
        }
        Ok(())
    }

    /// Ends all lanes, also those that never had room and have lost all events. With `is_told`, the
    /// losses are not reported again.
    pub(crate) fn end(
        &mut self,
        memory: &Memory,
        known: &ProgramFacts,
        ticks: u64,
        is_told: bool,
        sink: &mut dyn RunSink,
    ) -> io::Result<()> {
        for (lane, _) in all_losses(memory)?.into_iter().filter(|(_, losses)| losses.discarded > 0) {
            self.lanes.entry(lane).or_insert_with(|| DrainedLane::new(Position::default(), WriterThread::default()));
        }
        for (lane, state) in &mut self.lanes {
            let ever = memory.losses(*lane)?.discarded;
            if state.is_open || ever > state.position.discarded {
                sink.end(known, &end(*lane, state, ever, ticks.max(state.position.last)));
                if is_told {
                    state.is_open = false;
                    state.position.discarded = state.position.discarded.max(ever);
                }
            }
        }
        Ok(())
    }
}

enum DrainStep {
    /// The sub-buffer was given back.
    Freed,
    /// There is nothing to do.
    Skipped,
    /// The events that are present, or that come, have to wait.
    Waits,
}

fn is_due(state: &mut DrainedLane, length: u32, sub_buffer_bytes: u32, patience: DrainTiming) -> bool {
    match patience {
        _ if length == 0 => false,
        DrainTiming::Now | DrainTiming::Seldom | DrainTiming::Last => true,
        DrainTiming::Wait if length >= sub_buffer_bytes / 2 => true,
        DrainTiming::Wait => state.waits.get_or_insert_with(Instant::now).elapsed() >= WAIT,
    }
}

/// Lanes that have lost events or cut texts.
pub(crate) fn all_losses(memory: &Memory) -> io::Result<Vec<(u16, Losses)>> {
    let lanes = memory.lanes_ready()?;
    let (mut room, mut all) = (vec![0; RecorderSide::<Control>::losses_bytes(lanes)], Vec::new());
    memory.all_losses(lanes, &mut room, |lane, losses| {
        if losses != Losses::default() {
            all.push((lane, losses));
        }
    })?;
    Ok(all)
}

/// Events lost between two readings of a counter.
pub(crate) fn lost_since(before: u64, now: u64) -> u64 {
    // The counters are in the program's memory, and may hold any number.
    let lost = now.saturating_sub(before);
    if lost > LOST_MAX { 0 } else { lost }
}

fn run<'a>(
    seen: &SubBufferSnapshot,
    state: &DrainedLane,
    from: u32,
    missing: u64,
    bytes: &'a [u8],
    step: u32,
) -> EventRun<'a> {
    // A run begins after the previous one. The walk over the events finds a program whose times
    // step back. A recorder that goes on after another one does not know the time of that one's
    // last event.
    let before = state.position.last;
    let is_step = |ticks: u64, before: u64| before.checked_sub(ticks).is_some_and(|back| back <= step.into());
    let begin = if from == 0 && !is_step(seen.begin, before) { seen.begin } else { before.max(seen.begin) };
    EventRun {
        lane: seen.lane,
        thread: seen.thread,
        sequence: seen.sequence,
        from,
        contexts: seen.contexts,
        begin,
        last: if is_step(seen.last, begin) { begin } else { seen.last },
        bytes,
        discarded: lost_since(state.position.discarded, seen.discarded),
        discarded_ever: seen.discarded,
        missing,
    }
}

fn end(lane: u16, state: &DrainedLane, ever: u64, ticks: u64) -> LaneEnd {
    let discarded = lost_since(state.position.discarded, ever);
    LaneEnd { lane, thread: state.thread, discarded, discarded_ever: ever, ticks }
}
