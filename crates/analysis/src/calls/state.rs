//! Calls of threads in the order of time: calls that cross the ends of runs.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::lane::{BareRunEnd, CallLane, CallNote, CallSegment, CpuCalls, RunEnd, ThreadFacts, unknown_key};
use super::lives::{CallLife, CallLives, CpuAt, Deferred, LifeBorder, RunHead, RunOwner, SpareLives, Stuck};
use super::{CallObserver, CallOutcome, CallSummary, EventPosition, Meeting, Settings, is_cut, touches};
use crate::Comm;
use crate::threads::{Slots, ThreadKey};

/// The last run of each CPU of a lane.
pub(super) type LaneRuns<A, B, C> = Vec<(u32, CpuCalls<A, B, C>)>;

/// Calls in a part of a trace.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(
    serialize = "A: Serialize, B: Serialize, C: Serialize, R: Serialize",
    deserialize = "A: Deserialize<'de>, B: Deserialize<'de>, C: Deserialize<'de>, R: Deserialize<'de>"
))]
pub struct CallState<A, B, C, R> {
    /// The last run of each CPU, by lane.
    pub(super) cpus: Vec<LaneRuns<A, B, C>>,
    /// Where the lives of a thread are.
    slots: Slots,
    pub(super) lives: Vec<CallLives<A, B, C, R>>,
    /// Nothing comes before.
    pub(super) is_anchored: bool,
    #[serde(skip)]
    pub(super) spare: SpareLives<A, B, C, R>,
}

/// A life that is over, or the trace is.
#[derive(Debug)]
pub struct LifeView<'a, R> {
    /// Its thread; below zero: unknown.
    pub key: ThreadKey,
    /// Which of the lives of this number: 0 is one that was there before anything else was known of
    /// the thread; 1 is the first one behind it with a visible begin.
    pub number: u32,
    /// Its name.
    pub comm: Comm,
    /// Its process.
    pub pid: Option<i32>,
    /// Its fork was seen.
    pub is_forked: bool,
    /// From where on; `None`: from the beginning.
    pub since: Option<EventPosition>,
    /// To where.
    pub until: EventPosition,
    /// Its counts.
    pub rows: &'a mut R,
}

/// How many lives of a thread, behind the first one, were before those that are numbered elsewhere
/// from there on.
pub type Bases = HashMap<ThreadKey, u32>;

pub(super) type LifeOf<W> = CallLife<
    <W as CallObserver>::Entry,
    <W as CallObserver>::Exit,
    <W as CallObserver>::Run,
    <W as CallObserver>::Rows,
>;
pub(super) type LivesOf<W> = CallLives<
    <W as CallObserver>::Entry,
    <W as CallObserver>::Exit,
    <W as CallObserver>::Run,
    <W as CallObserver>::Rows,
>;
pub(super) type SpareOf<W> = SpareLives<
    <W as CallObserver>::Entry,
    <W as CallObserver>::Exit,
    <W as CallObserver>::Run,
    <W as CallObserver>::Rows,
>;
pub(super) type RunOf<W> = CpuCalls<<W as CallObserver>::Entry, <W as CallObserver>::Exit, <W as CallObserver>::Run>;
pub(super) type EndOf<W> = RunEnd<<W as CallObserver>::Entry, <W as CallObserver>::Exit, <W as CallObserver>::Run>;
pub(super) type DeferredOf<W> = Deferred<
    <W as CallObserver>::Entry,
    <W as CallObserver>::Exit,
    <W as CallObserver>::Run,
    <W as CallObserver>::Rows,
>;
pub(super) type SegmentOf<W> =
    CallSegment<<W as CallObserver>::Entry, <W as CallObserver>::Exit, <W as CallObserver>::Run>;
pub(super) type SummaryOf<W> = CallSummary<<W as CallObserver>::Entry, <W as CallObserver>::Exit>;

/// The watch, and the totals that it counts into.
pub(super) struct CallSink<'a, W: CallObserver> {
    pub(super) watch: &'a W,
    pub(super) totals: &'a mut W::Totals,
    /// Nothing comes before.
    pub(super) is_anchored: bool,
    /// Calls of an unknown thread, because of holes; and the key that stands for the thread of
    /// their CPU.
    pub(super) nobodys: Vec<(ThreadKey, SegmentOf<W>)>,
    pub(super) spare: &'a mut SpareOf<W>,
}

impl<W: CallObserver> CallSink<'_, W> {
    pub(super) fn settings(&self) -> &Settings {
        self.watch.settings()
    }

    /// Adds runs to a life.
    #[inline]
    pub(super) fn append(&mut self, key: ThreadKey, life: &mut LifeOf<W>, summary: SummaryOf<W>, counted: W::Run) {
        if let Some(open) = &summary.open {
            self.watch.leaves_open(self.totals, key, open);
        }
        let CallLife { summary: known, rows, .. } = life;
        self.watch.count(self.totals, key, rows, counted);
        if !self.is_anchored
            && !known.is_touched
            && let Some(exit) = &summary.asks
        {
            self.watch.asks(self.totals, key, exit);
        }
        let settings = self.watch.settings();
        known.then(summary, |met| {
            let outcome = met.outcome(|begin, end| settings.is_whole(begin, end));
            self.watch.settle(self.totals, key, rows, outcome);
        });
    }

    /// Adds the later counts of the same run.
    fn extend(&mut self, lane: u32, run: &mut RunOf<W>, later: SegmentOf<W>) {
        let CpuCalls { summary: known, counted: all, .. } = run;
        let holes = &self.watch.settings().facts(lane).holes;
        known.then(later.summary, |met: Meeting<_, _>| {
            let outcome = met.outcome(|begin, end| !touches(holes, begin, end));
            self.watch.settle_in_run(self.totals, all, outcome);
        });
        self.watch.extend(all, later.counted);
        run.last_ns = later.last_ns;
    }

    /// Adds the counts of the same run in the next part.
    pub(super) fn go_on(&mut self, lane: u32, run: &mut RunOf<W>, later: RunOf<W>) {
        run.said = run.said.or(later.said);
        for segment in segments(later) {
            let holes = &self.watch.settings().facts(lane).holes;
            let is_any = |summary: &SummaryOf<W>, counted| summary.is_touched || !self.watch.is_empty(counted);
            if !is_any(&segment.summary, &segment.counted) {
                continue;
            }
            if is_any(&run.summary, &run.counted) && is_cut(holes, run.last_ns, segment.last_ns) {
                run.cut();
            }
            self.extend(lane, run, segment);
        }
    }

    /// Leaves the segments of a run that are its thread's for certain; it ended then, or the trace
    /// did.
    ///
    /// Segments before all holes are of the thread that the run began with; segments behind them
    /// are of the one that it ended with. If these are one, so are segments in a hole. The rest is
    /// of no thread.
    pub(super) fn keep_known(&mut self, key: ThreadKey, (lane, cpu): CpuAt, run: &mut RunOf<W>, end: Option<i64>) {
        let settings = self.watch.settings();
        let facts = settings.facts(lane);
        if facts.holes.is_empty() || settings.is_by_context || key.tid <= 0 {
            return;
        }
        let begin = run.begin.map(|begin| begin.time);
        let is_odd = begin.is_some() && run.next != key.tid;
        let nobody = unknown_key(facts.host, cpu);
        let known =
            CpuCalls { begin: run.begin, next: run.next, comm: run.comm, said: run.said, ..CpuCalls::default() };
        for segment in segments(std::mem::replace(run, known)) {
            let at = segment.last_ns;
            let is_behind = end.is_some_and(|end| !facts.holes.touch(at, end));
            let is_before = || begin.is_some_and(|begin| !facts.holes.touch(begin, at));
            match is_behind || !is_odd && (is_before() || facts.holes.touch(at, at)) {
                true => self.extend(lane, run, segment),
                false => self.nobodys.push((nobody, segment)),
            }
        }
    }

    /// A run is of no thread.
    pub(super) fn lose(&mut self, end: EndOf<W>) {
        let nobody = unknown_key(end.key.host, end.cpu);
        self.nobodys.extend(segments(end.run).map(|segment| (nobody, segment)));
    }

    /// Counts calls that are of no thread: calls that cross their ends are lost.
    pub(super) fn count_nobodys(&mut self, key: ThreadKey, life: &mut LifeOf<W>, segment: SegmentOf<W>) {
        let CallSegment { summary: CallSummary { asks, open, .. }, counted, .. } = segment;
        life.is_seen = true;
        self.watch.count(self.totals, key, &mut life.rows, counted);
        let lost = asks.map(CallOutcome::LostExit).into_iter().chain(open.map(CallOutcome::LostEntry));
        lost.for_each(|lost| self.watch.settle(self.totals, key, &mut life.rows, lost));
    }

    /// A run ends; at a CPU if it is a head.
    #[inline]
    pub(super) fn run(&mut self, lives: &mut LivesOf<W>, end: EndOf<W>, is_seen: bool, head: Option<CpuAt>) {
        let whose = lives.whose(end.run.begin);
        match whose {
            RunOwner::Late if !self.is_anchored => return lives.rare().late.push(end),
            RunOwner::Nobody if head.is_some() => return lives.rare().lost.push(end),
            RunOwner::Nobody => return self.lose(end),
            RunOwner::Early | RunOwner::Late | RunOwner::Before | RunOwner::Current => {}
        }
        let RunEnd { key, cpu, place, is_dead, mut run, .. } = end;
        let life = lives.life(whose, self.spare);
        let is_seen = is_seen || run.summary.is_touched || run.earlier.is_some();
        if let Some(at) = head {
            life.push_head(RunHead { at, end: place, is_seen, run });
        } else {
            self.keep_known(key, (place.lane, cpu), &mut run, Some(place.time));
            life.ran(key.tid, place, run.comm, run.said, is_seen);
            self.append(key, life, run.summary, run.counted);
        }
        match head {
            _ if !is_dead || !lives.is_last(whose) => {}
            Some(at) if whose == RunOwner::Early => {
                lives.rare().deferred.push(Deferred::Death { at, begin: None, place });
            }
            _ => self.border(lives, LifeBorder { place, is_death: true }),
        }
    }

    /// A border behind which the current life is certain.
    pub(super) fn border(&mut self, lives: &mut LivesOf<W>, border: LifeBorder) {
        let first = *lives.first.get_or_insert(border);
        let is_seen = lives.current.as_ref().is_some_and(|current| current.is_seen);
        if lives.over == 0 && !is_seen && border != first {
            lives.rare().begin = Some(border);
        }
        match lives.border {
            None => lives.is_before_dead = border.is_death,
            Some(_) if is_seen => self.next(lives, border),
            // Death, then fork, is one step.
            Some(_) => lives.current.iter_mut().for_each(|current| current.border = Some(border)),
        }
        lives.border = Some(border);
    }

    /// A life was there, the next one begins.
    fn next(&mut self, lives: &mut LivesOf<W>, border: LifeBorder) {
        self.end_before(lives);
        lives.over += 1;
        lives.is_before_dead = border.is_death;
        let Some(mut current) = lives.current.take() else { return };
        current.end = Some(border);
        if border.is_death && current.earlier.is_empty() {
            self.over(lives.key, lives.over, &mut current, border.place);
            self.spare.keep(current);
        } else {
            lives.before = Some(current);
        }
    }

    /// The life before the last is over.
    pub(super) fn end_before(&mut self, lives: &mut LivesOf<W>) {
        let Some(mut life) = lives.before.take() else { return };
        let until = lives.border.map_or(EventPosition::LAST, |border| border.place);
        if life.earlier.is_empty() {
            self.over(lives.key, lives.over, &mut life, until);
            self.spare.keep(life);
        } else {
            let number = lives.over;
            lives.rare().stuck.push(Stuck { number, until, life: *life });
        }
    }

    /// A life is over and known whole.
    pub(super) fn over(&mut self, key: ThreadKey, number: u32, life: &mut LifeOf<W>, until: EventPosition) {
        let death = life.end.filter(|border| border.is_death).map_or(i64::MAX, |border| border.place.time);
        self.last(key, life, death);
        let comm = life.comm.or(life.told).map_or(Comm::default(), |(_, comm)| comm);
        let pid = life.pid.map(|(_, pid)| pid);
        let since = life.border.map(|border| border.place);
        let is_forked = life.is_forked;
        self.watch
            .over(self.totals, LifeView { key, number, comm, pid, is_forked, since, until, rows: &mut life.rows });
    }

    /// Settles the call that a life leaves and the open call when there is nothing else.
    fn last(&mut self, key: ThreadKey, life: &mut LifeOf<W>, end: i64) {
        let CallSummary { asks, open, .. } = std::mem::take(&mut life.summary);
        if let Some(exit) = asks {
            let outcome = match self.settings().is_whole(i64::MIN, exit.place.time) {
                _ if life.is_forked => CallOutcome::ChildReturns(exit),
                true => CallOutcome::BeganBefore(exit),
                false => CallOutcome::LostExit(exit),
            };
            self.watch.settle(self.totals, key, &mut life.rows, outcome);
        }
        if let Some(entry) = open {
            let outcome = match self.settings().is_whole(entry.place.time, end) {
                true => CallOutcome::NeverEnded(entry),
                false => CallOutcome::LostEntry(entry),
            };
            self.watch.settle(self.totals, key, &mut life.rows, outcome);
        }
    }
}

impl<A, B, C: Default, R: Default> CallState<A, B, C, R> {
    /// Before anything was seen.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        let cpus = std::iter::repeat_with(Vec::new).take(lanes).collect();
        Self { cpus, slots: Slots::default(), lives: Vec::new(), is_anchored: false, spare: SpareLives::default() }
    }

    /// Whether it is of so many lanes, and its numbers point into its tables.
    #[must_use]
    pub fn fits(&self, lanes: usize) -> bool {
        let is_kept = |(at, lives): (usize, &CallLives<A, B, C, R>)| self.slots.get(lives.key) == Some(at as u32);
        let is_indexed = self.lives.iter().enumerate().all(is_kept) && self.slots.all().count() == self.lives.len();
        self.cpus.len() == lanes && is_indexed
    }

    /// Where the lives of a thread are.
    #[inline]
    pub(super) fn slot(&mut self, key: ThreadKey) -> usize {
        let lives = &mut self.lives;
        let slot = self.slots.of(key, || {
            lives.push(CallLives::new(key));
            (lives.len() - 1) as u32
        });
        slot as usize
    }

    /// A note of a lane.
    #[inline]
    pub fn note<W>(&mut self, watch: &W, totals: &mut W::Totals, note: CallNote<A, B, C>)
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        if let CallNote::End(end) = note {
            return self.end(watch, totals, end, C::default());
        }
        let mut spare = std::mem::take(&mut self.spare);
        let mut sink =
            CallSink { watch, totals, is_anchored: self.is_anchored, nobodys: Vec::new(), spare: &mut spare };
        match note {
            CallNote::Run(end) => self.run(&mut sink, *end),
            CallNote::Fork { place, child, parent } => {
                let slot = self.slot(child.key);
                let lives = &mut self.lives[slot];
                sink.border(lives, LifeBorder { place, is_death: false });
                lives.last(sink.spare).is_forked = true;
                lives.tell(place, &child, sink.spare);
                if let Some(parent) = parent {
                    self.tell(place, &parent, sink.spare);
                }
            }
            CallNote::Known { place, told } => self.tell(place, &told, sink.spare),
            CallNote::End(_) => {}
        }
        if !sink.nobodys.is_empty() {
            self.nobodys(&mut sink);
        }
        self.spare = spare;
    }

    /// Counts calls that are of no thread.
    pub(super) fn nobodys<W>(&mut self, sink: &mut CallSink<'_, W>)
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        for (key, segment) in std::mem::take(&mut sink.nobodys) {
            let slot = self.slot(key);
            let life = self.lives[slot].last(sink.spare);
            sink.count_nobodys(key, life, segment);
        }
    }

    fn tell(&mut self, place: EventPosition, told: &ThreadFacts, spare: &mut SpareLives<A, B, C, R>) {
        let slot = self.slot(told.key);
        self.lives[slot].tell(place, told, spare);
    }

    fn run<W>(&mut self, sink: &mut CallSink<'_, W>, end: RunEnd<A, B, C>)
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        let slot = self.slot(end.key);
        let lives = &mut self.lives[slot];
        let at = (end.run.begin.is_none() && !self.is_anchored).then_some((end.place.lane, end.cpu));
        if lives.defers() {
            let is_seen = end.is_dead;
            lives.rare().deferred.push(Deferred::Run(Box::new(end), is_seen));
        } else {
            let is_seen = end.is_dead;
            sink.run(lives, end, is_seen, at);
        }
    }

    /// A run ends, and everything but its counts was told.
    #[inline]
    pub fn end<W>(&mut self, watch: &W, totals: &mut W::Totals, end: BareRunEnd, counted: C)
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        let BareRunEnd { key, cpu, place, begin, comm, said, is_dead, is_touched } = end;
        let slot = self.slot(key);
        let lives = &mut self.lives[slot];
        let whose = lives.whose(Some(begin));
        if lives.defers() || matches!(whose, RunOwner::Late | RunOwner::Nobody) {
            let summary = CallSummary { is_touched, ..CallSummary::default() };
            let begin = Some(begin);
            let run = CpuCalls { begin, next: key.tid, comm, said, summary, counted, ..CpuCalls::default() };
            return self.note(
                watch,
                totals,
                CallNote::Run(Box::new(RunEnd { key, cpu, place, is_dead, is_over: true, run })),
            );
        }
        let (is_anchored, nobodys, spare) = (self.is_anchored, Vec::new(), &mut self.spare);
        let mut sink = CallSink { watch, totals, is_anchored, nobodys, spare };
        let life = lives.life(whose, sink.spare);
        life.ran(key.tid, place, comm, said, is_dead || is_touched);
        sink.append(key, life, CallSummary { is_touched, ..CallSummary::default() }, counted);
        if is_dead && lives.is_last(whose) {
            sink.border(lives, LifeBorder { place, is_death: true });
        }
    }

    /// The part of a lane ends.
    pub fn leave<W>(&mut self, lane: usize, end: CallLane<'_, W>) -> W::Totals
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        let (cpus, totals) = end.end();
        self.cpus[lane] = cpus;
        totals
    }

    /// The counts of the run of a CPU that has not ended when the part of its lane did.
    pub fn last(&mut self, (lane, cpu): CpuAt) -> Option<&mut C> {
        let run = self.cpus[lane as usize].iter_mut().find(|run| run.0 == cpu)?;
        Some(&mut run.1.counted)
    }

    /// Whether each lane is a CPU's, and its last run began in this part.
    #[must_use]
    pub fn is_switched(&self, settings: &Settings) -> bool {
        let is_begun = |(lane, runs): (usize, &LaneRuns<A, B, C>)| {
            let cpu = settings.facts(lane as u32).cpu;
            runs.iter().any(|(at, run)| cpu == Some(*at) && run.begin.is_some())
        };
        self.cpus.iter().enumerate().all(is_begun)
    }

    /// Where the first thing is that is still to be told of runs that have not ended, if `first` says where that is in a run;
    /// `None`: there is none.
    #[must_use]
    pub fn settled_until(
        &self,
        first: impl Fn(&CallSummary<A, B>, &C) -> Option<EventPosition>,
    ) -> Option<EventPosition> {
        let of_run = |(_, run): &(u32, CpuCalls<A, B, C>)| match run.earlier {
            Some(_) => Some(run.begin.unwrap_or(EventPosition { time: i64::MIN, lane: 0, nth: 0 })),
            None => first(&run.summary, &run.counted),
        };
        self.cpus.iter().flatten().filter_map(of_run).min()
    }
}

/// The segments of a run, in its order.
fn segments<A, B, C>(run: CpuCalls<A, B, C>) -> impl Iterator<Item = CallSegment<A, B, C>> {
    let CpuCalls { summary, counted, last_ns, earlier, .. } = run;
    let earlier = earlier.map(|earlier| earlier.0).unwrap_or_default();
    earlier.into_iter().chain([CallSegment { summary, counted, last_ns }])
}
