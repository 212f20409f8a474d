//! A trace of a session: runs of lanes become packets, and their event classes become metadata.
//!
//! ```text
//! Run ── choose ── which events of it ── name ── ids of the trace ──> packet ──> lane_N (and index/lane_N.idx)
//!                                           └ the first time: metadata
//! ```
//!
//! All programs of a trace have one clock; programs of another clock go to another trace.

pub(crate) mod choose;
pub(crate) mod chunk;
pub(crate) mod firings;
pub(crate) mod journal;
pub(crate) mod live;
mod losses;
pub(crate) mod mend;
mod own;
pub(crate) mod repair;
pub(crate) mod resume;
mod rotate;
mod tally;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use kymo_lane::{ClockSource, WriterThread};
use kymo_schema::definition::EventClass;
use kymo_schema::field::{DefinedField, FieldType, IntegerType, ScalarType};
pub use kymo_writer::CtfVersion;
use kymo_writer::EVENT_HEAD_BYTES;

use crate::clock::{ClockDescription, TickSource, step_max};
use crate::program::drain::{DrainProgress, Position, lost_since};
use crate::program::namespaces::Namespaces;
use crate::program::objects::ExecutableObject;
use crate::program::run::{EventRun, LaneEnd};
use crate::program::walk::{
    self, EventTreatment, EventVerdict, EventWalk, SINCE_BYTES, TickRange, TreatmentTable, WalkStop, wanted_parts,
};
use crate::program::{ProgramFacts, ProgramIdentity};
use crate::rule::{RuleTotals, ToldRuleWords};
use crate::trace::choose::RunJudge;
pub use crate::trace::choose::{AskedEvent, Choose, ClassDecision, Everything, SingleTrace};
use crate::trace::chunk::{PacketOrigin, PacketSpan, StreamNumber, TraceChunk, raw_clock};
use crate::trace::firings::FiringStream;
use crate::trace::journal::{Journal, JournalHead, beginning};
use crate::trace::own::{LossCause, OwnEvents};
use crate::trace::resume::rest;
pub use crate::trace::tally::{OutputOptions, Tally};

/// A trace that is being written.
#[derive(Debug)]
pub struct Output {
    pub(crate) path: PathBuf,
    pub(crate) options: OutputOptions,
    pub(crate) clock: TickSource,
    pub(crate) facts: ClockDescription,
    pub(crate) tally: Tally,
    pub(crate) chunk: TraceChunk,
    pub(crate) chunk_begin: Instant,
    pub(crate) own: OwnEvents,
    pub(crate) own_stream: StreamNumber,
    /// Firings of triggers, if there were any in the chunk.
    pub(crate) firings: Option<FiringStream>,
    pub(crate) programs: HashMap<u64, ProgramState>,
    /// Progress of an earlier recorder, for programs that have not come back since.
    pub(crate) resumed: HashMap<u64, DrainProgress>,
    pub(crate) namespaces: Namespaces,
    /// Complete chunks, and their bytes.
    pub(crate) chunks: VecDeque<(PathBuf, u64)>,
    pub(crate) error: Option<TraceError>,
    pub(crate) bytes: Vec<u8>,
    /// Ticks of the events that are wanted.
    pub(crate) wanted: (u64, u64),
    pub(crate) last_sample: Option<Instant>,
    /// When the last look that took the events of all programs began.
    pub(crate) drained: Option<SystemTime>,
    pub(crate) last_failure: Option<Instant>,
    /// Cycles of the first event of a program.
    first: Option<u64>,
    /// The clock was sampled for the last time: whether it is known better than the metadata tells.
    is_better: Option<bool>,
}

/// Why a trace cannot be written.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TraceError(#[from] kymo_writer::WriteError);

/// A file cannot be written.
pub(crate) fn file_error(path: &Path, error: std::io::Error) -> kymo_writer::WriteError {
    kymo_writer::WriteProblem::File { path: path.display().to_string(), error }.into()
}

/// State of a program in a trace.
#[derive(Debug)]
pub(crate) struct ProgramState {
    identity: ProgramIdentity,
    pid_outside: Option<u32>,
    /// Tables, by the contexts that events carry.
    tables: HashMap<u64, (u32, TreatmentTable)>,
    streams: HashMap<(u16, u32), StreamNumber>,
    /// Objects that it can execute, as far as the trace tells them.
    objects: Vec<ExecutableObject>,
    /// Sets of contexts that events have carried so far: each new one costs a stream class, and
    /// files.
    masks: HashSet<u64>,
    /// How often its times stepped back: each step costs a file.
    steps_back: u32,
    /// An event class got no id, or could not be written to the metadata; the recorder tries again.
    has_lost_names: bool,
    /// Verdicts at the ends of runs, by lane: each is about an event of the next run.
    verdicts: HashMap<u16, EventVerdict>,
    /// How far it is in the trace.
    progress: DrainProgress,
    /// Where an earlier recorder was in lanes that have had no run since.
    resumed: HashMap<u16, Position>,
    /// Losses without a lane that the earlier recorder has counted.
    told: Option<u64>,
}

/// How often a program's times may step back. A program could otherwise fill the folder with files.
const STEPS_BACK_MAX: u32 = 64;
/// How many sets of contexts a program's events may carry, and how many files its lanes may use at
/// a time.
const MASKS_MAX: usize = 64;
const STREAMS_MAX: usize = 8192;
/// How often the recorder samples the clock, and does other periodic work.
const SAMPLE: Duration = Duration::from_secs(1);
/// Cycles that a packet of the recorder itself may span.
const OWN_SPAN: u64 = 1 << 31;
/// Bytes that such a packet may have.
const OWN_BYTES: usize = 256 << 10;

/// Whether a trace of a session has begun in a folder.
pub(crate) fn is_begun(folder: &Path) -> bool {
    live::said(folder).is_some()
}

impl Output {
    /// Begins a trace in a folder, which is made. Events before `earliest` belong to others; a
    /// caller that takes events from before the session passes 0, or an earlier time.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, or has a trace.
    pub fn create(
        path: &Path,
        options: OutputOptions,
        clock: &mut TickSource,
        earliest: u64,
    ) -> Result<Self, TraceError> {
        let facts = clock.facts(earliest);
        let now = clock.now().saturating_sub(facts.base);
        let first = if options.has_chunks() { path.join("000001") } else { path.to_owned() };
        let beginning = beginning(path, &options, clock, facts)?;
        let (chunk, own, own_stream) = begin(&first, &beginning, now)?;
        live::begin(&first, options.session.as_deref());
        let mut output = Self::of(path, options, clock, (facts, chunk, own, own_stream));
        output.wanted.0 = earliest;
        output.tell_counters();
        Ok(output)
    }

    pub(crate) fn of(
        path: &Path,
        options: OutputOptions,
        clock: &TickSource,
        (facts, chunk, own, own_stream): (ClockDescription, TraceChunk, OwnEvents, StreamNumber),
    ) -> Self {
        Self {
            path: path.to_owned(),
            namespaces: Namespaces::new(options.namespaces),
            options,
            clock: *clock,
            facts,
            tally: Tally { chunks: 1, ..Tally::default() },
            chunk,
            chunk_begin: Instant::now(),
            own,
            own_stream,
            firings: None,
            programs: HashMap::new(),
            resumed: HashMap::new(),
            chunks: VecDeque::new(),
            error: None,
            bytes: Vec::new(),
            wanted: (facts.base, u64::MAX),
            last_sample: None,
            drained: None,
            last_failure: None,
            first: None,
            is_better: None,
        }
    }

    /// The folder that is written now: the trace, or its last chunk.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.chunk.path()
    }

    /// Events outside of these ticks, both included, belong to others: the trace drops them.
    pub fn wants(&mut self, first: u64, last: u64) {
        self.wanted = (first, last.max(first));
    }

    /// Takes a run of a program's lane. Events that cannot be written are counted;
    /// [`Output::error`] says why.
    pub fn take(&mut self, program: &ProgramFacts, run: &EventRun<'_>, choose: &mut dyn Choose) {
        self.take_within(program, run, &[self.wanted], choose);
    }

    /// The same, of a session that starts and stops: it wants the events of these windows, first and last
    /// ticks, in order. Events that have started or stopped it belong to it too.
    pub fn take_within(
        &mut self,
        program: &ProgramFacts,
        run: &EventRun<'_>,
        windows: &[(u64, u64)],
        choose: &mut dyn Choose,
    ) {
        // Many runs may come at once: a chunk with all of them could exceed the size of the ring.
        if self.is_long() && is_time(self.last_failure) {
            self.roll();
        }
        let state = self.state(program);
        let Some(run) = rest(&mut state.resumed, *run) else { return };
        let bytes = run.from.saturating_add(run.bytes.len() as u32);
        let position = Position { sequence: run.sequence, bytes, last: run.last, discarded: run.discarded_ever };
        // Before the run is written: events that cannot be written are lost and counted, and must
        // not be taken a second time.
        state.progress.positions.insert(run.lane, position);
        self.take_rest(program, &run, windows, choose);
    }

    fn take_rest(
        &mut self,
        program: &ProgramFacts,
        run: &EventRun<'_>,
        windows: &[(u64, u64)],
        choose: &mut dyn Choose,
    ) {
        add(&mut self.tally.discarded, run.discarded);
        add(&mut self.tally.missing, run.missing);
        let horizon = self.clock.now().saturating_add(self.facts.frequency);
        let is_possible = run.begin <= run.last && run.last <= horizon;
        if !is_possible {
            self.unreadable(program, run, LossCause::OtherTime, run.bytes.len());
            self.lose_quietly(program, run.lane, run.discarded, run.discarded_ever);
            return;
        }
        self.bytes.clear();
        // Room for the times since their begins.
        let free = if choose.measures() { SINCE_BYTES * (1 + run.bytes.len() / EVENT_HEAD_BYTES) } else { 0 };
        self.bytes.resize(self.chunk.before_events() + free, 0);
        self.bytes.extend_from_slice(run.bytes);
        let Some((class, walk)) = self.walk(program, (run, free), windows, choose) else {
            self.unwalked(program, run, windows, choose);
            self.lose_quietly(program, run.lane, run.discarded, run.discarded_ever);
            return;
        };
        let read = walk.read - free;
        let broken = run.bytes.len() - read;
        let (events, kept) = (walk.events, walk.kept);
        self.count_walk(program, run, &walk);
        if broken > 0 {
            self.unreadable(program, run, LossCause::Unreadable, broken);
        }
        let missing = run.missing + u64::from(broken > 0);
        let discarded = run.discarded + walk.lost + walk.refused;
        if events == 0 && discarded == 0 && missing == 0 {
            return;
        }
        let (begin, end) = (kept_since(run, windows, &walk).max(self.facts.base), run.last);
        let Some(stream) = self.stream(program, run, class, begin) else {
            return self.unreadable(program, run, LossCause::OtherTime, read);
        };
        self.chunk.lose(stream, discarded, missing);
        let origin = self.origin(program, run);
        if events == 0 {
            return self.chunk.comes_from(stream, origin);
        }
        let base = self.facts.base;
        let span = PacketSpan { begin: begin - base, end: end.saturating_sub(base), events: events as u32, origin };
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.truncate(self.chunk.before_events() + kept);
        let written = self.chunk.packet(stream, &mut bytes, &span);
        self.bytes = bytes;
        self.count();
        match written {
            Ok(()) => {
                self.tally.events += events;
                self.first = Some(self.first.map_or(span.begin, |first| first.min(span.begin)));
                self.error = None;
            }
            Err(error) => {
                self.chunk.lose_unwritten(stream, events);
                add(&mut self.tally.discarded, events);
                add(&mut self.tally.unwritten, events);
                self.say_lost(program, run, LossCause::Unwritten, events);
                self.error = Some(error.into());
            }
        }
    }

    fn origin(&mut self, program: &ProgramFacts, run: &EventRun<'_>) -> PacketOrigin {
        PacketOrigin {
            pid: program.identity.pid,
            thread: run.thread,
            namespaces: self.namespaces.of(program, run.thread.tid),
            program: program.identity.key,
            lane: run.lane,
            sequence: run.sequence,
            bytes: run.from + run.bytes.len() as u32,
            discarded: run.discarded_ever,
        }
    }

    /// Walks over the run, which follows the packet's header and free bytes, and adds new event classes to the
    /// metadata. `None`: no class can be added at all.
    fn walk(
        &mut self,
        program: &ProgramFacts,
        (run, free): (&EventRun<'_>, usize),
        windows: &[(u64, u64)],
        choose: &mut dyn Choose,
    ) -> Option<(u32, EventWalk)> {
        let parts = wanted_parts(run, windows, self.facts.base);
        let times = TickRange::of(run, &parts, step_max(program.identity.clock)).judged(run, self.wanted);
        let (mut walk, mut may_roll) = (EventWalk::begin_behind(free), true);
        walk.verdict = self.state(program).verdicts.remove(&run.lane);
        loop {
            let state = state(&mut self.programs, &mut self.resumed, program);
            let (class, table) = match state.tables.entry(run.contexts) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    if state.masks.len() >= MASKS_MAX && !state.masks.contains(&run.contexts) {
                        return None;
                    }
                    let fields = walk::carried(program, run.contexts)?;
                    state.masks.insert(run.contexts);
                    match self.chunk.class(&fields) {
                        Ok(class) => place.insert((class, TreatmentTable::new(&fields))),
                        Err(error) => {
                            self.error = Some(error.into());
                            return None;
                        }
                    }
                }
            };
            let bytes = &mut self.bytes[self.chunk.before_events()..];
            let mut judge = RunJudge { program, begin: run.begin, table, choose };
            let stop = table.walk(bytes, &times, &mut walk, &mut judge);
            let WalkStop::Unknown(id) = stop else {
                state.verdicts.extend(walk.verdict.map(|verdict| (run.lane, verdict)));
                return Some((*class, walk));
            };
            if let Some(fields) = program.refused.get(&id) {
                table.say(id, fields, EventTreatment::Refuse);
                continue;
            }
            let Some(event) = program.events.get(usize::from(id)).and_then(Option::as_ref) else {
                return Some((*class, walk));
            };
            let what = match choose.choose(&program.identity, event) {
                ClassDecision::Drop => EventTreatment::Drop,
                choice => match self.chunk.event(*class, event) {
                    Ok(Some(id)) if choice == ClassDecision::Keep => EventTreatment::Keep(id),
                    Ok(Some(id)) if choice == ClassDecision::AskSince => {
                        // Where there is no ID for it, its events are kept without the time.
                        match self.chunk.event(*class, &with_since(event)) {
                            Ok(Some(with_since)) => EventTreatment::AskSince(id, with_since),
                            _ => EventTreatment::Ask(id),
                        }
                    }
                    Ok(Some(id)) => EventTreatment::Ask(id),
                    Ok(None)
                        if may_roll && walk.events == 0 && self.chunk.packets > 1 && is_time(self.last_failure) =>
                    {
                        // The stream class has no more event ids: a new trace has all ids again.
                        may_roll = self.roll();
                        continue;
                    }
                    Ok(None) => {
                        state.has_lost_names = true;
                        EventTreatment::Lose
                    }
                    Err(error) => {
                        self.error = Some(error.into());
                        state.has_lost_names = true;
                        EventTreatment::Lose
                    }
                },
            };
            table.say(id, &event.fields, what);
        }
    }

    /// The stream of a lane for the contexts that the run carries.
    fn stream(&mut self, program: &ProgramFacts, run: &EventRun<'_>, class: u32, begin: u64) -> Option<StreamNumber> {
        let begin = begin.saturating_sub(self.facts.base);
        let state = state(&mut self.programs, &mut self.resumed, program);
        let its = state.streams.get(&(run.lane, class)).copied();
        if let Some(stream) = its {
            // Time must not step back in a file. If the program's does, its lane moves to another
            // file.
            if begin >= self.chunk.end(stream) {
                return Some(stream);
            }
            state.steps_back += 1;
            if state.steps_back > STEPS_BACK_MAX {
                return None;
            }
            self.chunk.leave(stream);
        } else if state.streams.len() >= STREAMS_MAX {
            return None;
        }
        let stream = self.chunk.stream(class, begin);
        state.streams.insert((run.lane, class), stream);
        self.tally.files = self.tally.files.max(self.chunk.files() as u64);
        Some(stream)
    }

    /// The current time, in cycles of the trace.
    fn cycles(&mut self) -> u64 {
        let now = self.clock.now().saturating_sub(self.facts.base);
        if now.saturating_sub(self.own.begin) > OWN_SPAN || self.own.bytes.len() > OWN_BYTES {
            self.put_own();
        }
        now
    }

    /// A lane ends, or the session does: writes its losses.
    pub fn end(&mut self, program: &ProgramFacts, end: &LaneEnd) {
        let state = self.state(program);
        let discarded = match state.resumed.remove(&end.lane) {
            Some(position) => lost_since(position.discarded, end.discarded_ever),
            None => end.discarded,
        };
        let known = state.progress.positions.entry(end.lane).or_default();
        known.discarded = known.discarded.max(end.discarded_ever);
        add(&mut self.tally.discarded, discarded);
        let state = self.state(program);
        let its: Vec<_> = state.streams.keys().filter(|(lane, _)| *lane == end.lane).copied().collect();
        let mut streams: Vec<_> = its.iter().filter_map(|key| state.streams.remove(key)).collect();
        // The losses go to the stream with the latest packet: they happened since then.
        streams.sort_by_key(|stream| self.chunk.end(*stream));
        let Some(last) = streams.last().copied() else {
            return self.lose_quietly(program, end.lane, discarded, end.discarded_ever);
        };
        self.chunk.lose(last, discarded, 0);
        // A recorder that continues after this point knows that these losses are counted.
        let origin = self.chunk.origin(last);
        self.chunk.comes_from(last, PacketOrigin { discarded: end.discarded_ever, ..origin });
        let until = end.ticks.saturating_sub(self.facts.base);
        for stream in streams {
            if self.chunk.has_secrets(stream) || until > self.chunk.end(stream) {
                self.say(stream, until);
            }
            self.chunk.leave(stream);
        }
    }

    fn say(&mut self, stream: StreamNumber, until: u64) {
        match self.chunk.say(stream, until) {
            Ok(()) => self.error = None,
            Err(error) => self.error = Some(error.into()),
        }
        self.count();
    }

    /// A program is present, or there are new facts about it: its name, path and numbers are in the
    /// trace from now on.
    pub fn program(&mut self, program: &ProgramFacts) {
        self.state(program).pid_outside = program.pid_outside;
        let now = self.cycles();
        self.own.process(now, &program.identity, program.pid_outside);
    }

    /// What a program has kept and let go for a rule of the session so far.
    pub(crate) fn rule(&mut self, program: &ProgramFacts, rule: &ToldRuleWords, counts: &RuleTotals) {
        let now = self.cycles();
        self.own.rule(now, program.identity.key, rule, counts);
    }

    /// The objects that a program can execute: all that are known, those written before unchanged.
    pub(crate) fn objects(&mut self, program: &ProgramFacts, all: &[ExecutableObject]) {
        let told = state(&mut self.programs, &mut self.resumed, program).objects.len();
        for object in all.get(told..).unwrap_or(&[]) {
            let now = self.cycles();
            self.own.object(now, program.identity.key, object);
            state(&mut self.programs, &mut self.resumed, program).objects.push(object.clone());
        }
    }

    /// The program with that [`key`](ProgramIdentity::key) is gone, and all of its lanes have ended.
    pub fn forget(&mut self, program: u64) {
        self.namespaces.forget(program);
        let gone = self.programs.remove(&program);
        gone.into_iter().flat_map(|state| state.streams).for_each(|(_, stream)| self.chunk.leave(stream));
        // The program's memory is deleted after this, and with it the only other count of its
        // losses.
        self.put_own();
    }

    /// Events that a program has lost where no lane could count them, since the last call, and in
    /// total.
    pub fn lost(&mut self, program: &ProgramFacts, events: u64, events_ever: u64) {
        let state = self.state(program);
        state.progress.discarded = events_ever;
        let events = state.told.take().map_or(events, |told| lost_since(told, events_ever));
        add(&mut self.tally.discarded, events);
        add(&mut self.tally.no_lane, events);
        self.lose_quietly(program, u16::MAX, events, events_ever);
    }

    fn state(&mut self, program: &ProgramFacts) -> &mut ProgramState {
        state(&mut self.programs, &mut self.resumed, program)
    }

    /// Call this about ten times a second, after all programs were drained: it samples the clock,
    /// rotates chunks, and tries failed work again.
    pub fn beat(&mut self, clock: &mut TickSource) {
        if self.last_sample.is_none_or(|last| last.elapsed() >= SAMPLE) {
            self.last_sample = Some(Instant::now());
            self.sample(clock);
            self.look_after();
        }
        self.put_firings();
        let is_old = self.options.chunk_time.is_some_and(|most| self.chunk_begin.elapsed() >= most);
        if (self.is_long() || is_old) && is_time(self.last_failure) {
            self.roll();
        }
        self.count();
        live::say(self.chunk.path(), true, self.drained, self.options.session.as_deref());
    }

    fn is_long(&self) -> bool {
        self.options.chunk_bytes().is_some_and(|most| self.chunk.bytes >= most)
    }

    /// New facts about the clock, if those in the trace differ from them by more than both may be
    /// wrong: new facts move the times of events, also of those that a reader that follows the trace
    /// has already seen.
    fn known_better(&self, now: ClockDescription) -> Option<ClockDescription> {
        let cycles = self.clock.now().saturating_sub(self.facts.base);
        let apart = |cycles| now.nanos(cycles).abs_diff(self.facts.nanos(cycles));
        let error = u128::from(now.error_ns + self.facts.error_ns);
        (apart(0).max(apart(cycles)) > 2 * error).then_some(now)
    }

    fn sample(&mut self, clock: &mut TickSource) {
        let sample = clock.sample();
        self.clock = *clock;
        self.cycles();
        if clock.runs() {
            self.own.clock(sample.ticks.saturating_sub(self.facts.base), &sample);
        }
        self.put_own();
    }

    /// Checks that the folder still exists, and tries again to write event classes that could not
    /// be written.
    fn look_after(&mut self) {
        self.look_after_files();
        if let Err(error) = self.chunk.is_there() {
            // The deleted files are still open, and further writes to them would be lost.
            self.chunk.release();
            self.error = Some(error.into());
        }
        for state in self.programs.values_mut().filter(|state| state.has_lost_names) {
            state.tables.clear();
            state.has_lost_names = false;
        }
    }

    /// Writes how far the counters of CPUs are apart, as the first events of the chunk: readers look for them
    /// in its first packet.
    fn tell_counters(&mut self) {
        if self.options.counters.is_empty() || self.clock.source() != ClockSource::Counter {
            return;
        }
        let id = self.chunk.class(&[]).and_then(|class| self.chunk.event(class, &own::CPU_CLOCK));
        match id {
            Ok(id) => {
                let id = id.expect("there are ids for the first ones");
                for counter in self.options.counters.clone() {
                    let now = self.cycles();
                    self.own.cpu_clock(id, now, &counter);
                }
                self.put_own();
            }
            Err(error) => self.error = Some(error.into()),
        }
    }

    /// Writes the recorder's own events; when that fails, some of them wait for the next attempt.
    fn put_own(&mut self) {
        let error = put_own(&mut self.chunk, &mut self.tally, &mut self.own, self.own_stream);
        self.error = error.or(self.error.take());
    }

    /// The selection has changed: every event class is chosen again.
    pub fn choose_again(&mut self) {
        self.programs.values_mut().for_each(|state| state.tables.clear());
    }

    pub(crate) fn count(&mut self) {
        self.tally.packets = self.tally.packets_before + self.chunk.packets;
        self.tally.bytes = self.tally.bytes_before + self.chunk.bytes;
    }

    /// Ticks of the first event of a program.
    pub(crate) fn first_event(&self) -> Option<u64> {
        self.first.map(|first| self.facts.base + first)
    }

    /// The time of these ticks, in nanoseconds since 1970, as the trace tells it.
    pub(crate) fn nanos(&self, ticks: u64) -> Option<i64> {
        let nanos = self.facts.nanos(ticks.saturating_sub(self.facts.base));
        i64::try_from(nanos).ok().filter(|_| self.facts.is_absolute)
    }

    /// How far the trace is written.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Why the last write failed; `None`: writes have succeeded since.
    #[must_use]
    pub fn error(&self) -> Option<&TraceError> {
        self.error.as_ref()
    }

    /// Samples the clock once more: from now on, times are those that the metadata will tell.
    pub(crate) fn end_clock(&mut self, clock: &mut TickSource) {
        if self.is_better.is_some() {
            return;
        }
        self.sample(clock);
        let better = self.known_better(clock.facts(self.facts.base));
        (self.facts, self.is_better) = (better.unwrap_or(self.facts), Some(better.is_some()));
    }

    /// The clock, as the trace describes it.
    pub(crate) fn clock_description(&self) -> ClockDescription {
        self.facts
    }

    /// Ends the trace: all files are complete, and the metadata describes the clock as well as it
    /// is known now.
    ///
    /// # Errors
    ///
    /// A file could not be written.
    pub fn finish(mut self, clock: &mut TickSource) -> Result<Tally, TraceError> {
        self.end_clock(clock);
        self.put_firings();
        let given_up = self.own.give_up() + self.end_firings();
        self.chunk.lose(self.own_stream, given_up, 0);
        let better = Some(self.facts).filter(|_| self.is_better == Some(true));
        let error = self.error.take();
        self.chunk.is_there()?;
        let path = self.chunk.path().to_owned();
        let (packets, bytes) = self.chunk.finish(better.map(|facts| raw_clock(clock.source(), &facts)).as_ref())?;
        live::say(&path, false, None, None);
        if self.options.session.is_none() {
            Journal::delete(&path);
        }
        self.tally.packets = self.tally.packets_before + packets;
        self.tally.bytes = self.tally.bytes_before + bytes;
        error.map_or(Ok(self.tally), Err)
    }
}

impl ProgramState {
    /// How far the trace is, all recorders together.
    fn known(&self) -> DrainProgress {
        let earlier = DrainProgress { positions: self.resumed.clone(), discarded: self.told.unwrap_or(0), cut: 0 };
        earlier.later(&self.progress)
    }
}

/// Since when a packet of a run has events: a session that starts and stops has no packets in between. The event
/// that has stopped it is later than its window.
fn kept_since(run: &EventRun<'_>, windows: &[(u64, u64)], walk: &EventWalk) -> u64 {
    let first = windows.iter().find(|(_, last)| *last >= run.begin).map_or(run.begin, |(first, _)| *first);
    let earliest = if walk.events > 0 { run.begin + u64::from(walk.first) } else { run.last };
    run.begin.max(first.min(earliest))
}

/// The class of events of this class with the time since their begin, in nanoseconds.
fn with_since(class: &EventClass) -> Arc<EventClass> {
    let is_free = |name: &String| class.fields.iter().all(|field| field.name != *name);
    let names = std::iter::once("took_ns".to_owned()).chain((2..).map(|number| format!("took_ns_{number}")));
    let name = names.into_iter().find(is_free).expect("numbers do not end");
    let mut class = class.clone();
    class.fields.push(DefinedField { name, kind: FieldType::Scalar(ScalarType::Integer(IntegerType::unsigned(8))) });
    Arc::new(class)
}

/// Writes events of the recorder; returns why some of them wait.
pub(crate) fn put_own(
    chunk: &mut TraceChunk,
    tally: &mut Tally,
    events: &mut OwnEvents,
    stream: StreamNumber,
) -> Option<TraceError> {
    let pid = std::process::id();
    let mut name = [0; 16];
    name[..4].copy_from_slice(b"kymo");
    let thread = WriterThread { tid: pid, level: 0, name };
    let origin = PacketOrigin { pid, thread, ..PacketOrigin::default() };
    let put = events.write(origin, |bytes, span| chunk.packet(stream, bytes, span));
    tally.own += put.written;
    chunk.lose(stream, put.lost, 0);
    put.error.map(TraceError::from)
}

/// Whether it is time to retry after a failure.
fn is_time(failed: Option<Instant>) -> bool {
    failed.is_none_or(|last| last.elapsed() >= SAMPLE)
}

/// Programs may report any numbers, so the sums saturate.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

fn state<'p>(
    programs: &'p mut HashMap<u64, ProgramState>,
    resumed: &mut HashMap<u64, DrainProgress>,
    program: &ProgramFacts,
) -> &'p mut ProgramState {
    let key = program.identity.key;
    programs.entry(key).or_insert_with(|| {
        let resumed = resumed.remove(&key);
        ProgramState {
            identity: program.identity.clone(),
            pid_outside: program.pid_outside,
            tables: HashMap::new(),
            streams: HashMap::new(),
            objects: Vec::new(),
            masks: HashSet::new(),
            steps_back: 0,
            has_lost_names: false,
            verdicts: HashMap::new(),
            progress: DrainProgress::default(),
            told: resumed.as_ref().map(|progress| progress.discarded),
            resumed: resumed.map_or_else(HashMap::new, |progress| progress.positions),
        }
    })
}

/// Begins a chunk. If that fails, no file stays that would be in the way of the next attempt.
fn begin(path: &Path, beginning: &JournalHead, now: u64) -> Result<(TraceChunk, OwnEvents, StreamNumber), TraceError> {
    let metadata = path.join("metadata");
    let was_there = metadata.exists();
    begin_files(path, beginning, now).inspect_err(|_| {
        if !was_there {
            let _ = std::fs::remove_file(metadata);
            Journal::delete(path);
        }
    })
}

fn begin_files(
    path: &Path,
    beginning: &JournalHead,
    now: u64,
) -> Result<(TraceChunk, OwnEvents, StreamNumber), TraceError> {
    let mut chunk = TraceChunk::create(path, beginning)?;
    let class = chunk.class(&[])?;
    let mut ids = [0; own::CLASSES_MAX];
    for (id, class_of) in ids.iter_mut().zip(&*own::CLASSES) {
        *id = chunk.event(class, class_of)?.expect("there are ids for the first ones");
    }
    let stream = chunk.stream(class, now);
    let own = OwnEvents::new(ids, chunk.before_events(), now);
    Ok((chunk, own, stream))
}
