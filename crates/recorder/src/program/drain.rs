//! What is taken from a program's lanes, and in which order.
//!
//! ```text
//! look at all ──> of each lane: sequence 4 │ 5 │ 6 (open)
//!                    next: 4, none taken      take, take, take what is new of it when it is worth it
//! ```
//!
//! A sub-buffer of a lane that is not there while later ones are is looked for once more: whatever was taken before those is to be seen
//! then, or is overwritten. What a lane holds and is not worth a packet yet stays where it is, where whoever comes next finds it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use kymo_lane::{Losses, Recorder, Seen, Thread};
use serde::{Deserialize, Serialize};

use crate::clock::step_max;
use crate::program::run::{End, Run, Sink};
use crate::program::{Control, Drained, Known, Patience};

/// How long events wait for others.
const WAIT: Duration = Duration::from_millis(100);

/// Sub-buffers that are given back before programs are told.
const FREED_TOLD: u32 = 8;

/// Bytes that are taken from a program before others have their turn, and what a sub-buffer counts for at least.
const ROUND_BYTES: u64 = 16 << 20;
const LEAST_BYTES: u32 = 1024;

/// How often it is looked at what was lost and which texts were cut.
const LOOK: Duration = Duration::from_secs(1);

/// How often threads that are gone are looked for, also where nothing happens.
pub(crate) const REAP: Duration = Duration::from_secs(1);
pub(crate) const REAP_WHO_RESTS: Duration = Duration::from_secs(5);
/// More than that nobody can have lost since somebody looked: who says so says nothing.
const LOST_MAX: u64 = 1 << 40;
/// As many sub-buffers cannot be missing.
const MISSING_MAX: u64 = 1 << 32;

/// Where the last trace of a lane ends: what is before it is in there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Which of the lane's sub-buffers it is, and how many of its bytes are taken.
    pub sequence: u64,
    /// See [`Position::sequence`].
    pub bytes: u32,
    /// Ticks of the last event.
    pub last: u64,
    /// What the lane had lost, as far as the trace tells.
    pub discarded: u64,
}

/// How far a recorder is with a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Where the trace of each lane ends.
    pub positions: HashMap<u16, Position>,
    /// Events that were lost where there was no lane, as far as it was told.
    pub discarded: u64,
    /// Texts that were cut, as far as it was told.
    pub cut: u64,
}

impl Position {
    /// Of two that are known of one lane, what is behind both.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        let place = |position: &Self| (position.sequence, position.bytes);
        let later = if place(&other) >= place(&self) { other } else { self };
        Self { last: self.last.max(other.last), discarded: self.discarded.max(other.discarded), ..later }
    }
}

impl Progress {
    /// Of two that are known of one program, what is behind both.
    #[must_use]
    pub fn later(mut self, other: &Self) -> Self {
        for (lane, position) in &other.positions {
            let known = self.positions.entry(*lane).or_default();
            *known = known.later(*position);
        }
        let (discarded, cut) = (self.discarded.max(other.discarded), self.cut.max(other.cut));
        Self { discarded, cut, ..self }
    }

    /// Of what two have of one program, what both have.
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

/// What is known of a lane.
#[derive(Clone, Copy, Debug)]
struct LaneState {
    position: Position,
    thread: Thread,
    /// Since when something waits.
    waits: Option<Instant>,
    /// It has an [`End`] to come.
    is_open: bool,
    /// Its thread was gone when it had this sub-buffer: nothing comes into that.
    gone_at: Option<u64>,
    /// Where it is was another recorder's doing.
    is_resumed: bool,
}

impl LaneState {
    fn new(position: Position, thread: Thread) -> Self {
        Self { position, thread, waits: None, is_open: false, gone_at: None, is_resumed: false }
    }
}

/// The lanes of a program.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: HashMap<u16, LaneState>,
    room: Vec<u8>,
    bytes: Vec<u8>,
    discarded: u64,
    /// What lanes have lost and cut, as far as somebody was told, and when that was looked at.
    losses: HashMap<u16, Losses>,
    looked_at_losses: Option<Instant>,
    /// Texts that were cut, altogether.
    cut: u64,
    /// What a lane had lost that nobody knows yet is to be told.
    tells_all: bool,
    reaped: Option<Instant>,
    /// The lane that comes first the next time.
    next: u16,
}

type Memory = Recorder<Control>;

impl Lanes {
    /// How far it is.
    pub(crate) fn progress(&self) -> Progress {
        let positions = self.lanes.iter().map(|(lane, state)| (*lane, state.position)).collect();
        Progress { positions, discarded: self.discarded, cut: self.cut }
    }

    /// Goes on where others were.
    pub(crate) fn resume(&mut self, progress: &Progress) {
        self.discarded = self.discarded.max(progress.discarded);
        self.cut = self.cut.max(progress.cut);
        self.tells_all = true;
        for (lane, position) in &progress.positions {
            let state = LaneState { is_resumed: true, ..LaneState::new(*position, Thread::default()) };
            let known = self.lanes.entry(*lane).or_insert(state);
            known.position = known.position.later(*position);
        }
    }

    /// Everything that is there, by lane and in order. What is missing in between was looked for twice.
    pub(crate) fn look(&mut self, memory: &Memory) -> io::Result<Vec<Seen>> {
        let first = self.look_once(memory)?;
        let begin = |lane: u16| self.lanes.get(&lane).map(|state| state.position.sequence);
        let is_whole = first.chunk_by(|one, next| one.lane == next.lane).all(|lane| {
            let begin = begin(lane[0].lane).unwrap_or(0);
            let open = lane.iter().filter(|seen| seen.sequence >= begin);
            // A program may say any numbers, the largest one too.
            open.zip(0_u64..).all(|(seen, further)| seen.sequence == begin.wrapping_add(further))
        });
        if is_whole { Ok(first) } else { self.look_once(memory) }
    }

    pub(crate) fn look_once(&mut self, memory: &Memory) -> io::Result<Vec<Seen>> {
        let ready = memory.ready()?;
        self.room.resize(Recorder::<Control>::look_bytes(ready), 0);
        let mut all = Vec::new();
        memory.look_all(ready, &mut self.room, |seen| all.push(seen))?;
        all.sort_unstable_by_key(|seen| (seen.lane, seen.sequence));
        // Two of one number are nobody's doing who keeps to the rules.
        all.dedup_by_key(|seen| (seen.lane, seen.sequence));
        Ok(all)
    }

    /// Takes what was seen.
    pub(crate) fn drain(
        &mut self,
        memory: &Memory,
        known: &Known,
        all: &[Seen],
        patience: Patience,
        sink: &mut dyn Sink,
    ) -> io::Result<Drained> {
        let mut drained = Drained::default();
        let (mut freed, mut done, mut looked) = (0_u32, Ok(()), 0_u64);
        let (before, behind) = all.split_at(all.partition_point(|seen| seen.lane < self.next));
        let lanes = [behind, before].into_iter().flat_map(|all| all.chunk_by(|one, next| one.lane == next.lane));
        for lane in lanes {
            if looked >= ROUND_BYTES && matches!(patience, Patience::Wait | Patience::Seldom) {
                (self.next, drained.is_left) = (lane[0].lane, true);
                break;
            }
            for seen in lane {
                looked += u64::from(seen.bytes.max(LEAST_BYTES));
                match self.step(memory, known, seen, patience, sink, &mut drained) {
                    Ok(Step::Freed) => {
                        freed += 1;
                        // Who waits for room need not wait until everything is written.
                        if freed.is_multiple_of(FREED_TOLD) {
                            memory.freed(kymo_tracer::counter())?;
                        }
                    }
                    Ok(Step::Skipped) => {}
                    Ok(Step::Waits) => break,
                    Err(error) => done = Err(error),
                }
            }
        }
        if freed > 0 && done.is_ok() {
            // Whatever it is, it is not what it was.
            done = memory.freed(kymo_tracer::counter());
        }
        done?;
        drained.given_back = freed.into();
        let all_lost = memory.discarded()?;
        drained.discarded = lost_since(std::mem::replace(&mut self.discarded, all_lost), all_lost);
        drained.discarded_ever = all_lost;
        if matches!(patience, Patience::Now | Patience::Last)
            || self.looked_at_losses.is_none_or(|last| last.elapsed() >= LOOK)
        {
            self.looked_at_losses = Some(Instant::now());
            self.look_at_losses(memory, &mut drained)?;
        }
        drained.cut_ever = self.cut;
        Ok(drained)
    }

    fn step(
        &mut self,
        memory: &Memory,
        known: &Known,
        seen: &Seen,
        patience: Patience,
        sink: &mut dyn Sink,
        drained: &mut Drained,
    ) -> io::Result<Step> {
        // What a lane had lost before the first of it that anybody knows was somebody else's to tell.
        let discarded = if seen.sequence == 0 || self.tells_all { 0 } else { seen.discarded };
        let position = Position { sequence: seen.sequence, discarded, ..Position::default() };
        let state = self.lanes.entry(seen.lane).or_insert(LaneState::new(position, seen.thread));
        let is_full =
            seen.is_full || patience == Patience::Last || state.gone_at.is_some_and(|gone| seen.sequence <= gone);
        if seen.sequence < state.position.sequence {
            // A recorder before this one has it, and was killed before it could say so.
            return if is_full { memory.free(seen).map(|()| Step::Freed) } else { Ok(Step::Skipped) };
        }
        let ahead = seen.sequence - state.position.sequence;
        let missing = match state.is_resumed {
            // A recorder before this one has given the sub-buffer back that it was in: it had all of it.
            true if state.position.bytes > 0 => ahead.saturating_sub(1),
            // Nobody knows where it was.
            true if state.position.sequence == 0 => 0,
            _ => ahead,
        };
        let missing = missing.min(MISSING_MAX);
        let from = if ahead > 0 { 0 } else { state.position.bytes.min(seen.bytes) };
        let length = seen.bytes - from;
        if !is_full && !is_due(state, length, memory.layout().sub_buffer_bytes, patience) && missing == 0 {
            drained.is_left |= length > 0;
            return Ok(Step::Waits);
        }
        state.waits = None;
        let has_losses = seen.discarded > state.position.discarded;
        if length > 0 || missing > 0 || has_losses {
            self.bytes.resize(length as usize, 0);
            // What was overwritten meanwhile is missing when the next one comes.
            if !memory.copy(seen, from, &mut self.bytes)? {
                return Ok(Step::Skipped);
            }
            let run = run(seen, state, from, missing, &self.bytes, step_max(known.identity.clock));
            sink.take(known, &run);
            let known_losses = self.losses.get(&seen.lane).map_or(0, |losses| losses.discarded);
            drained.lost += lost_since(known_losses.max(state.position.discarded), seen.discarded);
            state.is_open = true;
            drained.runs += u64::from(length > 0);
            drained.bytes += u64::from(length);
            state.position.last = run.last;
            state.position.discarded = state.position.discarded.max(seen.discarded);
        }
        (state.position.sequence, state.position.bytes, state.thread) = (seen.sequence, seen.bytes, seen.thread);
        state.is_resumed = false;
        if !is_full {
            return Ok(Step::Waits);
        }
        state.position = Position { sequence: seen.sequence.wrapping_add(1), bytes: 0, ..state.position };
        memory.free(seen).map(|()| Step::Freed)
    }

    /// Whether there is something that no recorder has taken.
    pub(crate) fn has_new(&mut self, memory: &Memory) -> io::Result<bool> {
        let all = self.look_once(memory)?;
        Ok(all.iter().any(|seen| {
            let taken = self.lanes.get(&seen.lane).map(|state| (state.position.sequence, state.position.bytes));
            seen.bytes > 0 && taken.is_none_or(|taken| (seen.sequence, seen.bytes) > taken)
        }))
    }

    /// Copies everything that is there, as the first who ever looks, and leaves it.
    pub(crate) fn snapshot(
        &mut self,
        memory: &Memory,
        known: &Known,
        all: &[Seen],
        sink: &mut dyn Sink,
    ) -> io::Result<Drained> {
        let mut drained = Drained::default();
        for lane in all.chunk_by(|one, next| one.lane == next.lane) {
            let Seen { sequence, discarded, thread, .. } = lane[0];
            let mut state = LaneState::new(Position { sequence, discarded, ..Position::default() }, thread);
            for seen in lane {
                self.bytes.resize(seen.bytes as usize, 0);
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
        for lane in 0..memory.layout().lanes as u16 {
            let losses = memory.losses(lane)?;
            drained.cut = drained.cut.saturating_add(losses.cut);
            if losses.discarded > 0 && !held.contains(&lane) {
                // It never had room, or has lost what it had.
                let state = LaneState::new(Position::default(), Thread::default());
                sink.end(known, &end(lane, &state, losses.discarded, 0));
            }
        }
        drained.discarded = memory.discarded()?;
        Ok(drained)
    }

    /// All that was seen is somebody else's: it is given back, and losses so far are not told.
    pub(crate) fn skip(&mut self, memory: &Memory, all: &[Seen]) -> io::Result<()> {
        for seen in all {
            let (sequence, bytes) =
                if seen.is_full { (seen.sequence.wrapping_add(1), 0) } else { (seen.sequence, seen.bytes) };
            let discarded = memory.losses(seen.lane)?.discarded;
            let position = Position { sequence, bytes, last: seen.last, discarded };
            self.lanes.insert(seen.lane, LaneState::new(position, seen.thread));
            if seen.is_full {
                memory.free(seen)?;
            }
        }
        memory.freed(kymo_tracer::counter())?;
        for lane in 0..memory.layout().lanes as u16 {
            // Also of lanes that hold nothing now.
            let losses = memory.losses(lane)?;
            if losses != Losses::default() {
                let position = Position { discarded: losses.discarded, ..Position::default() };
                let state = LaneState { is_resumed: true, ..LaneState::new(position, Thread::default()) };
                self.lanes.entry(lane).or_insert(state);
            }
        }
        self.discarded = memory.discarded()?;
        self.cut = self.cut_ever(memory)?;
        Ok(())
    }

    /// Whether what was seen is everything that was ever recorded there, and not older than these ticks.
    pub(crate) fn is_since(memory: &Memory, all: &[Seen], ticks: u64) -> io::Result<bool> {
        let mut firsts = all.chunk_by(|one, next| one.lane == next.lane).map(|lane| &lane[0]);
        let is_new = firsts.all(|first| first.sequence == 0 && first.begin >= ticks);
        Ok(if all.is_empty() { memory.ready()? == 0 } else { is_new })
    }

    /// What was lost and cut since somebody looked last: a lane that has lost something and goes on with nothing says so nowhere else.
    fn look_at_losses(&mut self, memory: &Memory, drained: &mut Drained) -> io::Result<()> {
        for (lane, state) in &self.lanes {
            let now = memory.losses(*lane)?;
            let told = Losses { discarded: state.position.discarded, cut: 0 };
            let before = self.losses.insert(*lane, now).unwrap_or(told);
            let lost = lost_since(before.discarded.max(told.discarded), now.discarded);
            drained.lost = drained.lost.saturating_add(lost);
        }
        // Of lanes that are not known any more it is told already.
        let cut = self.cut_ever(memory)?.max(self.cut);
        drained.cut = lost_since(std::mem::replace(&mut self.cut, cut), cut);
        Ok(())
    }

    /// What lanes that are known have cut.
    fn cut_ever(&self, memory: &Memory) -> io::Result<u64> {
        self.lanes.keys().try_fold(0_u64, |sum, lane| Ok(sum.saturating_add(memory.losses(*lane)?.cut)))
    }

    /// Whether it is time to look for threads that are gone.
    pub(crate) fn reaps(&self, each: Duration) -> bool {
        self.reaped.is_none_or(|last| last.elapsed() >= each)
    }

    /// Takes lanes from threads that are gone, and ends those that nobody has and that hold nothing. `lives`: whether a thread does.
    pub(crate) fn reap(
        &mut self,
        memory: &Memory,
        known: &Known,
        lives: impl Fn(u32) -> bool,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        self.reaped = Some(Instant::now());
        // Of a lane, the last one.
        let held: HashMap<u16, u64> = self.look_once(memory)?.iter().map(|seen| (seen.lane, seen.sequence)).collect();
        for (lane, state) in &mut self.lanes {
            match memory.holder(*lane)? {
                Some(holder) if !lives(holder.tid) => {
                    memory.release(*lane, &holder)?;
                    // Whoever has the lane next takes others.
                    state.gone_at = held.get(lane).copied();
                }
                None if state.is_open && !held.contains_key(lane) => {
                    state.is_open = false;
                    let ever = memory.losses(*lane)?.discarded;
                    sink.end(known, &end(*lane, state, ever, state.position.last));
                    state.position.discarded = state.position.discarded.max(ever);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends all lanes, also those that never had room and have lost everything. With `is_told`, nobody else has to be told that.
    pub(crate) fn end(
        &mut self,
        memory: &Memory,
        known: &Known,
        ticks: u64,
        is_told: bool,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        for lane in 0..memory.layout().lanes as u16 {
            let ever = memory.losses(lane)?.discarded;
            if ever > 0 {
                self.lanes.entry(lane).or_insert_with(|| LaneState::new(Position::default(), Thread::default()));
            }
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

enum Step {
    /// Was given back.
    Freed,
    /// Nothing is to be done.
    Skipped,
    /// What is there, or comes, has to wait.
    Waits,
}

fn is_due(state: &mut LaneState, length: u32, sub_buffer_bytes: u32, patience: Patience) -> bool {
    match patience {
        _ if length == 0 => false,
        Patience::Now | Patience::Seldom | Patience::Last => true,
        Patience::Wait if length >= sub_buffer_bytes / 2 => true,
        Patience::Wait => state.waits.get_or_insert_with(Instant::now).elapsed() >= WAIT,
    }
}

/// What was lost between two counts.
pub(crate) fn lost_since(before: u64, now: u64) -> u64 {
    let lost = now.saturating_sub(before);
    if lost > LOST_MAX { 0 } else { lost }
}

fn run<'a>(seen: &Seen, state: &LaneState, from: u32, missing: u64, bytes: &'a [u8], step: u32) -> Run<'a> {
    // Behind what came before; a program whose times step back is found out by whoever walks.
    // Who goes on behind another recorder does not know when its last event was.
    let before = state.position.last;
    let is_step = |ticks: u64, before: u64| before.checked_sub(ticks).is_some_and(|back| back <= step.into());
    let begin = if from == 0 && !is_step(seen.begin, before) { seen.begin } else { before.max(seen.begin) };
    Run {
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

fn end(lane: u16, state: &LaneState, ever: u64, ticks: u64) -> End {
    let discarded = lost_since(state.position.discarded, ever);
    End { lane, thread: state.thread, discarded, discarded_ever: ever, ticks }
}
