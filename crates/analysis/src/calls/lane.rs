//! Calls on one CPU, run by run.

use serde::{Deserialize, Serialize};

use super::{CallEntry, CallExit, CallId, CallObserver, CallSummary, EventPosition, Settings, touches};
use crate::events::RoleEvent;
use crate::roles::{COMM, PID, TID, fork, switch, thread_state};
use crate::threads::{ThreadKey, is_dead};
use crate::{AnalysisEvent, Comm, FieldSlot, LaneFacts, LaneNotes};

/// The calls on a CPU since its last switch in a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CpuCalls<A, B, C> {
    /// The switch; `None`: there was none in this part.
    pub begin: Option<EventPosition>,
    /// The thread that the switch named.
    pub next: i32,
    /// Its name.
    pub comm: Comm,
    /// Which thread is of which process, as an event says.
    pub said: Option<(i32, i32)>,
    /// Calls that cross its ends.
    pub summary: CallSummary<A, B>,
    /// Calls that do not.
    pub counted: C,
    /// When something that this tells of happened last.
    pub last_ns: i64,
    /// Something was told of its thread when it happened.
    pub is_told: bool,
    /// The same before a hole.
    pub earlier: Option<Box<Segments<A, B, C>>>,
}

/// The calls of a run before holes, or in one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Segments<A, B, C>(pub Vec<CallSegment<A, B, C>>);

/// The calls of a run between two holes, or in one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallSegment<A, B, C> {
    /// Calls that cross its ends.
    pub summary: CallSummary<A, B>,
    /// Calls that do not.
    pub counted: C,
    /// When something happened in it.
    pub last_ns: i64,
}

impl<A, B, C: Default> CpuCalls<A, B, C> {
    /// Later calls are behind a hole, or in one.
    pub fn cut(&mut self) {
        let Self { summary, counted, last_ns, .. } = self;
        let (summary, counted) = (std::mem::take(summary), std::mem::take(counted));
        let segments = self.earlier.get_or_insert_with(|| Box::new(Segments(Vec::new())));
        segments.0.push(CallSegment { summary, counted, last_ns: *last_ns });
    }
}

impl<A, B, C: Default> Default for CpuCalls<A, B, C> {
    fn default() -> Self {
        Self {
            begin: None,
            next: 0,
            comm: Comm::default(),
            said: None,
            summary: CallSummary::default(),
            counted: C::default(),
            last_ns: 0,
            is_told: false,
            earlier: None,
        }
    }
}

/// The notes of lanes about calls and their threads.
#[derive(Clone, Debug)]
pub enum CallNote<A, B, C> {
    /// A run ends.
    Run(Box<RunEnd<A, B, C>>),
    /// One ends of which nothing waits for its thread.
    End(BareRunEnd),
    /// A thread is made.
    Fork {
        /// Where.
        place: EventPosition,
        /// The new one.
        child: ThreadFacts,
        /// The parent thread, if that is known.
        parent: Option<ThreadFacts>,
    },
    /// A thread is known by these.
    Known {
        /// Where.
        place: EventPosition,
        /// The known facts.
        told: ThreadFacts,
    },
}

/// The end of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunEnd<A, B, C> {
    /// The thread.
    pub key: ThreadKey,
    /// The CPU.
    pub cpu: u32,
    /// Where it ends.
    pub place: EventPosition,
    /// The thread dies with it.
    pub is_dead: bool,
    /// Not if the run goes on, and only this is told of it before.
    pub is_over: bool,
    /// The calls in it.
    pub run: CpuCalls<A, B, C>,
}

/// The end of a run, of which everything else was told or is nothing.
#[derive(Clone, Copy, Debug)]
pub struct BareRunEnd {
    /// The thread.
    pub key: ThreadKey,
    /// The CPU.
    pub cpu: u32,
    /// Where it ends.
    pub place: EventPosition,
    /// Where it began.
    pub begin: EventPosition,
    /// Its name.
    pub comm: Comm,
    /// Which thread is of which process, as an event says.
    pub said: Option<(i32, i32)>,
    /// The thread dies with it.
    pub is_dead: bool,
    /// There was an entry or an exit.
    pub is_touched: bool,
}

/// The facts that an event tells about a thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ThreadFacts {
    /// The thread.
    pub key: ThreadKey,
    /// Its process.
    pub pid: Option<i32>,
    /// Its name.
    pub comm: Comm,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct CallLane<'a, W: CallObserver> {
    watch: &'a W,
    settings: &'a Settings,
    facts: &'a LaneFacts,
    now: EventPosition,
    /// CPU of events that do not name one.
    cpu: u32,
    /// By CPU; almost always one.
    cpus: Vec<CpuRun<W>>,
    /// Which of them the event is of.
    at: usize,
    totals: W::Totals,
}

type RunOf<W> = CpuCalls<<W as CallObserver>::Entry, <W as CallObserver>::Exit, <W as CallObserver>::Run>;
type CpuRun<W> = (u32, RunOf<W>);
type NoteOf<W> = CallNote<<W as CallObserver>::Entry, <W as CallObserver>::Exit, <W as CallObserver>::Run>;

/// A run of a thread that is certain.
#[derive(Debug)]
pub struct ToldRun<'a, C> {
    /// The thread.
    pub tid: i32,
    /// The CPU.
    pub cpu: u32,
    /// The counts that wait to be told.
    pub counted: &'a mut C,
    /// To be set where something is told of it before it ends.
    pub is_told: &'a mut bool,
}

/// The key that stands for the unknown thread of a CPU.
#[must_use]
pub fn unknown_key(host: u16, cpu: u32) -> ThreadKey {
    // Threads have positive numbers. The mask keeps the subtraction from overflowing.
    ThreadKey { host, tid: -1 - (cpu & 0x7fff_ffff) as i32 }
}

impl<'a, W: CallObserver> CallLane<'a, W> {
    /// Lane number `lane` begins.
    pub fn new(watch: &'a W, lane: usize, totals: W::Totals) -> Self {
        let settings = watch.settings();
        let facts = &settings.lanes[lane];
        let cpu = facts.cpu.unwrap_or(lane as u32);
        let now = EventPosition { time: i64::MIN, lane: lane as u32, nth: 0 };
        Self { watch, settings, facts, now, cpu, cpus: Vec::new(), at: 0, totals }
    }

    /// An event comes; where it is.
    #[inline]
    pub fn arrive(&mut self, event: &AnalysisEvent<'_>) -> EventPosition {
        if event.time == self.now.time {
            self.now.nth += 1;
        } else {
            (self.now.time, self.now.nth) = (event.time, 0);
        }
        let cpu = self.facts.cpu.or_else(|| event.cpu()).unwrap_or(self.cpu);
        if self.cpus.get(self.at).is_none_or(|known| known.0 != cpu) {
            self.move_to(cpu);
        }
        self.now
    }

    /// The event is of another CPU than the one before.
    #[cold]
    fn move_to(&mut self, cpu: u32) {
        self.at = self.cpus.iter().position(|known| known.0 == cpu).unwrap_or_else(|| {
            self.cpus.push((cpu, CpuCalls::default()));
            self.cpus.len() - 1
        });
    }

    /// The counts of all threads.
    pub fn totals(&mut self) -> &mut W::Totals {
        &mut self.totals
    }

    /// Results of the lane by CPU, and its totals.
    pub(super) fn end(self) -> (Vec<CpuRun<W>>, W::Totals) {
        (self.cpus, self.totals)
    }

    /// The CPU that the event is of, and which run it is.
    #[inline]
    fn at(&self) -> (u32, usize) {
        (self.cpus[self.at].0, self.at)
    }

    /// A thread enters a call.
    #[inline]
    pub fn enter<N: From<NoteOf<W>>>(
        &mut self,
        meaning: &RoleEvent<'_>,
        call: CallId,
        more: W::Entry,
        notes: &mut LaneNotes<N>,
    ) {
        let (cpu, at) = self.at();
        let entry = CallEntry { call, place: self.now, cpu, more };
        if self.settings.is_by_context {
            let summary = CallSummary { asks: None, open: Some(entry), is_touched: true };
            self.single(meaning, cpu, summary, W::Run::default(), notes);
            return;
        }
        self.said(meaning, at);
        self.hole(at);
        let Self { watch, totals, cpus, .. } = self;
        let run = &mut cpus[at].1;
        if let Some(lost) = run.summary.enter(entry) {
            watch.settle_in_run(totals, &mut run.counted, super::CallOutcome::LostEntry(lost));
        }
    }

    /// A thread comes back from a call.
    #[inline]
    pub fn exit<N: From<NoteOf<W>>>(
        &mut self,
        meaning: &RoleEvent<'_>,
        call: CallId,
        ret: Option<i64>,
        more: W::Exit,
        notes: &mut LaneNotes<N>,
    ) {
        let (cpu, at) = self.at();
        let exit = CallExit { call, place: self.now, cpu, ret, more };
        if self.settings.is_by_context {
            let summary = CallSummary { asks: Some(exit), open: None, is_touched: true };
            self.single(meaning, cpu, summary, W::Run::default(), notes);
            return;
        }
        self.said(meaning, at);
        self.hole(at);
        let Self { watch, totals, cpus, facts, .. } = self;
        let run = &mut cpus[at].1;
        let counted = &mut run.counted;
        let is_certain = |begin, end| !touches(&facts.holes, begin, end);
        run.summary.exit(exit, |met| watch.settle_in_run(totals, counted, met.outcome(is_certain)));
    }

    /// A thread comes back from a call that began so many nanoseconds before, as the event itself tells: its entry is not in the trace.
    pub fn whole<N: From<NoteOf<W>>>(
        &mut self,
        meaning: &RoleEvent<'_>,
        call: CallId,
        (took_ns, ret): (u64, Option<i64>),
        (entry, exit): (W::Entry, W::Exit),
        notes: &mut LaneNotes<N>,
    ) {
        let ((cpu, at), place) = (self.at(), self.now);
        let begin = EventPosition { time: place.time.saturating_sub_unsigned(took_ns), ..place };
        let entry = CallEntry { call, place: begin, cpu, more: entry };
        let outcome = super::CallOutcome::Completed(entry, CallExit { call, place, cpu, ret, more: exit });
        if self.settings.is_by_context {
            let mut counted = W::Run::default();
            self.watch.settle_in_run(&mut self.totals, &mut counted, outcome);
            self.single(meaning, cpu, CallSummary::default(), counted, notes);
            return;
        }
        self.said(meaning, at);
        self.hole(at);
        let Self { watch, totals, cpus, .. } = self;
        watch.settle_in_run(totals, &mut cpus[at].1.counted, outcome);
    }

    /// Cuts the run if a hole begins or ends between its last event and this one.
    #[inline]
    fn hole(&mut self, at: usize) {
        let Self { facts, watch, now, cpus, .. } = self;
        if facts.holes.is_empty() {
            return;
        }
        let run = &mut cpus[at].1;
        let waits = run.summary.is_touched || !watch.is_empty(&run.counted);
        // Only where something waits: an empty run loses nothing, and its thread is known by its
        // end.
        if waits && super::is_cut(&facts.holes, run.last_ns, now.time) {
            run.cut();
        }
        run.last_ns = now.time;
    }

    /// Keeps the process of the thread, from an event's context.
    #[inline]
    fn said(&mut self, meaning: &RoleEvent<'_>, at: usize) {
        let run = &mut self.cpus[at].1;
        let context = &meaning.event.class.context;
        // Once in a run suffices, because its thread does not change.
        if run.said.is_some() || context[PID] == FieldSlot::Absent || context[TID] == FieldSlot::Absent {
            return;
        }
        run.said = meaning.event.small_context(TID).zip(meaning.event.small_context(PID));
        if let Some((tid, pid)) = run.said.filter(|said| said.0 > 0) {
            self.watch.says(&mut run.counted, self.now, tid, pid);
        }
    }

    /// The current run, if its thread is certain: its events can be told at once.
    #[inline]
    pub fn told(&mut self) -> Option<ToldRun<'_, W::Run>> {
        if !self.facts.holes.is_empty() || self.settings.is_by_context {
            return None;
        }
        let (cpu, at) = self.at();
        // A run without a begin in this part, or of the idle thread, has no thread that is certain
        // yet.
        let CpuCalls { begin: Some(_), next: tid @ 1.., counted, is_told, .. } = &mut self.cpus[at].1 else {
            return None;
        };
        Some(ToldRun { tid: *tid, cpu, counted, is_told })
    }

    /// The CPU, if the next event is the first one in its run that waits for the thread; and its
    /// place.
    #[inline]
    pub fn begins_to_wait(&self) -> Option<(u32, EventPosition)> {
        if self.settings.is_by_context {
            return None;
        }
        let (cpu, at) = self.at();
        let run = &self.cpus[at].1;
        let waits = run.summary.is_touched || !self.watch.is_empty(&run.counted) || run.earlier.is_some();
        (!waits).then_some((cpu, self.now))
    }

    /// Something else happens to the thread that runs.
    pub fn act<N: From<NoteOf<W>>>(
        &mut self,
        meaning: &RoleEvent<'_>,
        notes: &mut LaneNotes<N>,
        act: impl FnOnce(EventPosition, &mut W::Run),
    ) {
        let (cpu, at) = self.at();
        if self.settings.is_by_context {
            let mut counted = W::Run::default();
            act(self.now, &mut counted);
            self.single(meaning, cpu, CallSummary::default(), counted, notes);
        } else {
            self.said(meaning, at);
            self.hole(at);
            act(self.now, &mut self.cpus[at].1.counted);
        }
    }

    /// Notes an event that names its own thread.
    fn single<N: From<NoteOf<W>>>(
        &mut self,
        meaning: &RoleEvent<'_>,
        cpu: u32,
        summary: CallSummary<W::Entry, W::Exit>,
        mut counted: W::Run,
        notes: &mut LaneNotes<N>,
    ) {
        let place = self.now;
        let host = self.facts.host;
        let tid = meaning.event.small_context(TID).filter(|&tid| tid > 0);
        let key = tid.map_or(unknown_key(host, cpu), |tid| ThreadKey { host, tid });
        let said = tid.zip(meaning.event.small_context(PID));
        let comm = meaning.event.comm(&meaning.event.class.context[COMM]);
        if let Some((tid, pid)) = said {
            self.watch.says(&mut counted, place, tid, pid);
        }
        let begin = Some(place);
        let run =
            CpuCalls { begin, next: key.tid, comm, said, summary, counted, last_ns: place.time, ..CpuCalls::default() };
        notes.push(
            place.time,
            CallNote::Run(Box::new(RunEnd { key, cpu, place, is_dead: false, is_over: false, run })).into(),
        );
    }

    /// The CPU changes threads.
    #[inline]
    pub fn switch<N: From<NoteOf<W>>>(&mut self, meaning: &RoleEvent<'_>, notes: &mut LaneNotes<N>) {
        let prev = meaning.small(switch::PREV_TID);
        let next = meaning.small(switch::NEXT_TID);
        let (Some(prev), Some(next)) = (prev, next) else { return };
        let (cpu, at) = self.at();
        let (place, host) = (self.now, self.facts.host);
        let run = &mut self.cpus[at].1;
        let state = meaning.integer(switch::PREV_STATE);
        // The idle thread never dies, even if its state looks like it.
        let is_dead = prev != 0 && state.is_some_and(|state| is_dead(state, self.facts.kernel));
        let CallSummary { asks, open, is_touched } = &run.summary;
        let is_left = asks.is_some() || open.is_some() || !self.watch.is_empty(&run.counted) || run.earlier.is_some();
        let key = if prev > 0 { ThreadKey { host, tid: prev } } else { unknown_key(host, cpu) };
        match run.begin {
            // Most runs leave nothing open. Their notes are small and need no memory of their own.
            Some(begin) if !is_left => {
                let (is_touched, said) = (*is_touched, run.said);
                if is_touched || is_dead || run.is_told {
                    let comm = meaning.comm(switch::PREV_COMM);
                    let end = BareRunEnd { key, cpu, place, begin, comm, said, is_dead, is_touched };
                    notes.push(place.time, CallNote::End(end).into());
                }
                (run.summary.is_touched, run.is_told) = (false, false);
            }
            _ => {
                let mut run = std::mem::take(run);
                run.comm = meaning.comm(switch::PREV_COMM);
                notes.push(
                    place.time,
                    CallNote::Run(Box::new(RunEnd { key, cpu, place, is_dead, is_over: true, run })).into(),
                );
            }
        }
        let run = &mut self.cpus[at].1;
        (run.begin, run.next, run.said) = (Some(place), next, None);
        run.comm = if next == 0 { Comm::default() } else { meaning.comm(switch::NEXT_COMM) };
    }

    /// A thread is made.
    pub fn fork<N: From<NoteOf<W>>>(&mut self, meaning: &RoleEvent<'_>, notes: &mut LaneNotes<N>) {
        let told = |tid, pid, comm: Comm| {
            let tid = meaning.small(tid).filter(|&tid| tid > 0)?;
            let key = ThreadKey { host: self.facts.host, tid };
            Some(ThreadFacts { key, pid: meaning.small(pid), comm })
        };
        let Some(child) = told(fork::CHILD_TID, fork::CHILD_PID, meaning.comm(fork::CHILD_COMM)) else { return };
        let parent = told(fork::PARENT_TID, fork::PARENT_PID, Comm::default());
        notes.push(self.now.time, CallNote::Fork { place: self.now, child, parent }.into());
    }

    /// A thread that was there before.
    pub fn known<N: From<NoteOf<W>>>(&mut self, meaning: &RoleEvent<'_>, notes: &mut LaneNotes<N>) {
        let tid = meaning.small(thread_state::KNOWN_TID).filter(|&tid| tid > 0);
        let Some(tid) = tid else { return };
        let key = ThreadKey { host: self.facts.host, tid };
        let pid = meaning.small(thread_state::KNOWN_PID);
        let told = ThreadFacts { key, pid, comm: meaning.comm(thread_state::KNOWN_COMM) };
        notes.push(self.now.time, CallNote::Known { place: self.now, told }.into());
    }
}
