//! Calls of threads in the order of time: calls that cross the borders of parts, and calls that are
//! open when the trace ends.
//!
//! ```text
//! left     tid 7 ════ a ════╡ on CPU 0            right    head of CPU 0 ╞═x dies    fork ═══ b ═══
//! merged   tid 7 ════ a ═══════════════x dies    fork ═══ b ═══
//! ```
//!
//! Lives that are over in the right part stay over; their numbers go up by the number of lives
//! before them, which the owners of the numbers learn from [`Bases`].

use hashbrown::HashMap;

use super::lane::{CpuCalls, RunEnd, unknown_key};
use super::lives::{
    CallLife, CallLives, CpuAt, Deferred, LifeBorder, LifePiece, Rare, RunHead, RunOwner, SpareLives, Stuck,
};
use super::state::{Bases, CallSink, CallState, DeferredOf, EndOf, LaneRuns, LifeOf, LivesOf, RunOf, SummaryOf};
use super::{CallObserver, EventPosition};
use crate::threads::ThreadKey;

/// The run of each CPU that the left part leaves.
type Tails<W> = HashMap<CpuAt, RunOf<W>>;

type StuckOf<W> =
    Stuck<<W as CallObserver>::Entry, <W as CallObserver>::Exit, <W as CallObserver>::Run, <W as CallObserver>::Rows>;

/// Runs that have not ended, by thread.
type LastRuns<'a, A, B, C> = HashMap<ThreadKey, Vec<(CpuAt, &'a CpuCalls<A, B, C>)>>;

/// Two parts become one.
struct Merging<'a, W: CallObserver> {
    sink: CallSink<'a, W>,
    tails: Tails<W>,
    /// Nothing comes before the left part.
    is_anchored: bool,
}

impl<A, B, C, R> CallState<A, B, C, R>
where
    A: Clone,
    B: Clone,
    C: Clone + Default,
    R: Clone + Default,
{
    /// Adds the part that follows; how many lives were before those that were over in it.
    pub fn merge<W>(&mut self, watch: &W, totals: &mut W::Totals, right: Self) -> Bases
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        let mut spare = SpareLives::default();
        let mut merging = Merging {
            sink: CallSink { watch, totals, is_anchored: self.is_anchored, nobodys: Vec::new(), spare: &mut spare },
            tails: HashMap::default(),
            is_anchored: self.is_anchored,
        };
        // CPUs first: they move the last runs of the left part to `tails`, where heads of the right
        // part find their begin.
        merging.cpus(&mut self.cpus, right.cpus);
        let mut bases = Bases::default();
        for lives in right.lives {
            let key = lives.key;
            let slot = self.slot(key);
            let base = merging.lives(&mut self.lives[slot], lives);
            if base > 0 {
                bases.insert(key, base);
            }
        }
        let mut sink = merging.sink;
        self.nobodys(&mut sink);
        bases
    }

    /// Nothing comes before: runs that began before this part began with the trace.
    pub fn anchor<W>(&mut self, watch: &W, totals: &mut W::Totals) -> Bases
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        if std::mem::replace(&mut self.is_anchored, true) {
            return Bases::default();
        }
        let mut spare = SpareLives::default();
        let mut merging = Merging {
            sink: CallSink { watch, totals, is_anchored: true, nobodys: Vec::new(), spare: &mut spare },
            tails: HashMap::default(),
            is_anchored: true,
        };
        let mut bases = Bases::default();
        for lives in &mut self.lives {
            let known = std::mem::replace(lives, CallLives::new(lives.key));
            let base = merging.lives(lives, known);
            if base > 0 {
                bases.insert(lives.key, base);
            }
        }
        let mut sink = merging.sink;
        self.nobodys(&mut sink);
        bases
    }

    /// Gives all lives that are not over to `watch`, as if they were; in any order. Lives that are over already count from
    /// these numbers on.
    pub fn finish<W>(&self, watch: &W, totals: &mut W::Totals) -> Bases
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        let mut bases = Bases::default();
        let mut spare = SpareLives::default();
        let mut merging = Merging {
            sink: CallSink { watch, totals, is_anchored: true, nobodys: Vec::new(), spare: &mut spare },
            tails: HashMap::default(),
            is_anchored: true,
        };
        let mut tails = self.tails(watch);
        for lives in &self.lives {
            let mut all = CallLives::new(lives.key);
            let base = merging.lives(&mut all, lives.clone());
            if base > 0 {
                bases.insert(lives.key, base);
            }
            merging.finish(all, tails.remove(&lives.key).unwrap_or_default());
        }
        for (key, runs) in tails {
            merging.finish(CallLives::new(key), runs);
        }
        for (key, segment) in std::mem::take(&mut merging.sink.nobodys) {
            let mut life = CallLife::new(None);
            merging.sink.count_nobodys(key, &mut life, segment);
            merging.sink.over(key, 0, &mut life, EventPosition::LAST);
        }
        bases
    }

    /// A period ends: the counts are forgotten, open calls and current lives are not. Nothing may
    /// come before this state.
    pub fn forget<W>(&mut self, watch: &W)
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        let mut begins = Vec::new();
        for (key, runs) in self.tails(watch) {
            begins.extend(runs.iter().filter(|run| is_touched(run.1)).map(|run| (key, run.1.begin)));
        }
        // Calls that were open when these runs began are counted, though the runs go on.
        for (key, begin) in begins {
            let slot = self.slot(key);
            let lives = &mut self.lives[slot];
            let whose = lives.whose(begin);
            if whose != RunOwner::Nobody {
                lives.life(whose, &mut self.spare).summary.open = None;
            }
        }
        for (_, run) in self.cpus.iter_mut().flatten() {
            let CpuCalls { summary, counted, earlier, .. } = run;
            let earlier = earlier.iter_mut().flat_map(|earlier| &mut earlier.0);
            let segments = earlier.map(|segment| (&mut segment.summary, &mut segment.counted));
            for (summary, counted) in segments.chain([(summary, counted)]) {
                summary.asks = None;
                watch.forget(counted);
            }
        }
        for lives in &mut self.lives {
            for life in [&mut lives.early, &mut lives.before, &mut lives.current].into_iter().flatten() {
                life.rows = R::default();
                life.summary.asks = None;
            }
        }
    }

    /// Runs that have not ended, by their threads.
    fn tails<W>(&self, watch: &W) -> LastRuns<'_, A, B, C>
    where
        W: CallObserver<Entry = A, Exit = B, Run = C, Rows = R>,
    {
        let mut tails: LastRuns<'_, A, B, C> = HashMap::default();
        for (lane, cpus) in self.cpus.iter().enumerate() {
            let host = watch.settings().lanes[lane].host;
            let waits = |run: &CpuCalls<A, B, C>| {
                run.summary.is_touched || run.earlier.is_some() || !watch.is_empty(&run.counted)
            };
            for (cpu, run) in cpus.iter().filter(|cpu| waits(&cpu.1)) {
                // Without a switch in the trace, or in the idle thread, the run is of no thread
                // that could be named.
                let is_known = run.begin.is_some() && run.next > 0;
                let key = if is_known { ThreadKey { host, tid: run.next } } else { unknown_key(host, *cpu) };
                tails.entry(key).or_default().push(((lane as u32, *cpu), run));
            }
        }
        tails
    }
}

/// Whether there was an entry or an exit in a run.
fn is_touched<A, B, C>(run: &CpuCalls<A, B, C>) -> bool {
    let mut earlier = run.earlier.iter().flat_map(|earlier| &earlier.0);
    run.summary.is_touched || earlier.any(|segment| segment.summary.is_touched)
}

impl<W: CallObserver> Merging<'_, W> {
    /// Runs go on in the part that follows.
    fn cpus(
        &mut self,
        left: &mut [LaneRuns<W::Entry, W::Exit, W::Run>],
        right: Vec<LaneRuns<W::Entry, W::Exit, W::Run>>,
    ) {
        for (lane, cpus) in right.into_iter().enumerate() {
            for (cpu, run) in cpus {
                let known = left[lane].iter_mut().find(|known| known.0 == cpu);
                match known {
                    None => left[lane].push((cpu, run)),
                    Some((_, known)) if run.begin.is_some() => {
                        self.tails.insert((lane as u32, cpu), std::mem::replace(known, run));
                    }
                    Some((_, known)) => {
                        self.sink.go_on(lane as u32, known, run);
                    }
                }
            }
        }
    }

    /// Adds lives of a thread in the part that follows; how many were before those that were over in it.
    fn lives(&mut self, left: &mut LivesOf<W>, right: LivesOf<W>) -> u32 {
        let Rare { begin, deferred, late, lost, stuck } = right.rare.map_or_else(Rare::default, |rare| *rare);
        if let Some(early) = right.early {
            match left.defers() {
                true => self.defer(left, *early),
                false => self.go_on(left, *early),
            }
        }
        deferred.into_iter().for_each(|deferred| self.deferred(left, deferred));
        let Some(first) = right.first else { return 0 };
        self.sink.border(left, first);
        late.into_iter().for_each(|end| self.run(left, end));
        for mut end in lost {
            self.join_tail(&mut end);
            match end.run.begin.is_none() && !self.is_anchored {
                true => left.rare().lost.push(end),
                false => self.sink.lose(end),
            }
        }
        if let Some(begin) = begin {
            self.sink.border(left, begin);
        }
        let base = left.over;
        if right.over > 0 {
            self.sink.end_before(left);
            left.over += right.over;
            left.before = right.before;
            left.is_before_dead = right.is_before_dead;
            left.before.iter_mut().for_each(|before| self.resolve(left.key, before));
        }
        left.border = right.border;
        // The left part's current life was given to `before` or ended above: behind the right
        // part's borders, only lives of the right part go on.
        left.current = right.current;
        left.current.iter_mut().for_each(|current| self.resolve(left.key, current));
        self.unstick(left, base, stuck);
        if right.over > 0 { base } else { 0 }
    }

    /// Adds the part of a life that is in the part that follows.
    fn go_on(&mut self, left: &mut LivesOf<W>, mut life: LifeOf<W>) {
        let known = left.last(self.sink.spare);
        known.tell(&life);
        self.sink.watch.add(&mut known.rows, std::mem::take(&mut life.rows));
        for piece in life.earlier {
            match piece {
                LifePiece::Head(head) => self.head(left, *head),
                LifePiece::Runs(summary) => self.append(left, summary),
            }
        }
        self.append(left, life.summary);
    }

    /// Adds a summary to the last life.
    fn append(&mut self, lives: &mut LivesOf<W>, summary: SummaryOf<W>) {
        let key = lives.key;
        let life = lives.last(self.sink.spare);
        self.sink.append(key, life, summary, W::Run::default());
    }

    /// Puts a life aside, piece by piece.
    fn defer(&mut self, left: &mut LivesOf<W>, mut life: LifeOf<W>) {
        let pieces = std::mem::take(&mut life.earlier);
        let last = std::mem::take(&mut life.summary);
        let runs = |summary| Deferred::Life(Box::new(CallLife { summary, ..CallLife::new(None) }));
        left.rare().deferred.push(Deferred::Life(Box::new(life)));
        for piece in pieces {
            let deferred = match piece {
                LifePiece::Runs(summary) => runs(summary),
                LifePiece::Head(head) => {
                    let is_seen = head.is_seen;
                    Deferred::Run(Box::new(head.end_of(left.key)), is_seen)
                }
            };
            self.deferred(left, deferred);
        }
        left.rare().deferred.push(runs(last));
    }

    /// Adds a note that had to wait until the current life is known.
    fn deferred(&mut self, left: &mut LivesOf<W>, mut deferred: DeferredOf<W>) {
        match &mut deferred {
            Deferred::Run(end, _) if end.run.begin.is_none() => self.join_tail(end),
            Deferred::Death { at, begin, .. } if begin.is_none() => {
                *begin = self.tails.get(at).and_then(|tail| tail.begin);
            }
            _ => {}
        }
        if left.defers() {
            left.rare().deferred.push(deferred);
            return;
        }
        match deferred {
            Deferred::Told(place, told) => left.tell(place, &told, self.sink.spare),
            Deferred::Life(life) => {
                self.go_on(left, *life);
            }
            Deferred::Run(end, is_seen) => {
                let at = self.head_at(&end);
                self.sink.run(left, *end, is_seen, at);
            }
            Deferred::Death { begin, place, .. } => {
                let whose = left.whose(begin);
                // If the head began before the left part too, an earlier part decides.
                if begin.is_none() && !self.is_anchored && whose == RunOwner::Early {
                    left.rare().deferred.push(deferred);
                } else if left.is_last(whose) {
                    self.sink.border(left, LifeBorder { place, is_death: true });
                }
            }
        }
    }

    /// A run of the part that follows ends.
    fn run(&mut self, left: &mut LivesOf<W>, mut end: EndOf<W>) {
        if end.run.begin.is_none() {
            self.join_tail(&mut end);
        }
        let (is_seen, at) = (end.is_dead, self.head_at(&end));
        self.sink.run(left, end, is_seen, at);
    }

    /// The CPU of a run whose begin is still not known, and may be.
    fn head_at(&self, end: &EndOf<W>) -> Option<CpuAt> {
        (end.run.begin.is_none() && !self.is_anchored).then_some((end.place.lane, end.cpu))
    }

    /// Adds the beginning of a run from the part before.
    fn join_tail(&mut self, end: &mut EndOf<W>) {
        let at = (end.place.lane, end.cpu);
        let mut tail = self.tails.remove(&at).unwrap_or_default();
        let begin = tail.begin;
        let head = std::mem::take(&mut end.run);
        tail.comm = head.comm;
        self.sink.go_on(at.0, &mut tail, head);
        end.run = tail;
        self.tails.insert(at, CpuCalls { begin, ..CpuCalls::default() });
    }

    /// Adds a run that began before the part that follows.
    fn head(&mut self, left: &mut LivesOf<W>, head: RunHead<W::Entry, W::Exit, W::Run>) {
        let is_seen = head.is_seen;
        let mut end = head.end_of(left.key);
        self.join_tail(&mut end);
        let at = self.head_at(&end);
        self.sink.run(left, end, is_seen, at);
    }

    /// Adds a run that began before the part that follows to its life.
    fn head_of(&mut self, key: ThreadKey, life: &mut LifeOf<W>, head: RunHead<W::Entry, W::Exit, W::Run>) {
        let mut tail = self.tails.remove(&head.at).unwrap_or_default();
        let begin = tail.begin;
        let is_seen = head.is_seen || tail.summary.is_touched || tail.earlier.is_some();
        tail.comm = head.run.comm;
        self.sink.go_on(head.at.0, &mut tail, head.run);
        if self.is_anchored || begin.is_some() {
            self.sink.keep_known(key, head.at, &mut tail, Some(head.end.time));
            life.ran(key.tid, head.end, tail.comm, tail.said, is_seen);
            self.sink.append(key, life, tail.summary, tail.counted);
        } else {
            life.push_head(RunHead { at: head.at, end: head.end, is_seen, run: tail });
        }
        // Whether the thread's death counts is asked next.
        self.tails.insert(head.at, CpuCalls { begin, ..CpuCalls::default() });
    }

    /// Lives that were over but for their heads are over, if these are known now.
    fn unstick(&mut self, left: &mut LivesOf<W>, base: u32, stuck: Vec<StuckOf<W>>) {
        for Stuck { number, until, mut life } in stuck {
            self.resolve(left.key, &mut life);
            let number = base + number;
            if life.earlier.is_empty() {
                self.sink.over(left.key, number, &mut life, until);
            } else {
                left.rare().stuck.push(Stuck { number, until, life });
            }
        }
    }

    /// Adds heads of a life to it.
    fn resolve(&mut self, key: ThreadKey, life: &mut LifeOf<W>) {
        if life.earlier.is_empty() {
            return;
        }
        // The life's own summary is of runs behind its heads, so it is added after them.
        let behind = std::mem::take(&mut life.summary);
        for piece in std::mem::take(&mut life.earlier) {
            match piece {
                LifePiece::Runs(summary) => self.sink.append(key, life, summary, W::Run::default()),
                LifePiece::Head(head) => self.head_of(key, life, *head),
            }
        }
        self.sink.append(key, life, behind, W::Run::default());
    }

    /// The trace ends: so do all lives.
    fn finish(&mut self, mut lives: LivesOf<W>, tails: Vec<(CpuAt, &RunOf<W>)>) {
        let key = lives.key;
        for (at, run) in tails {
            let mut run = run.clone();
            self.sink.keep_known(key, at, &mut run, None);
            let whose = lives.whose(run.begin);
            if whose == RunOwner::Nobody {
                let end = RunEnd { key, cpu: at.1, place: EventPosition::LAST, is_dead: false, is_over: true, run };
                self.sink.lose(end);
                continue;
            }
            let life = lives.life(whose, self.sink.spare);
            life.ran(key.tid, EventPosition::LAST, run.comm, run.said, true);
            self.sink.append(key, life, run.summary, run.counted);
        }
        if let Some(early) = lives.early.as_mut().filter(|early| early.is_seen) {
            early.end = lives.first;
            self.sink.over(key, 0, early, lives.first.map_or(EventPosition::LAST, |border| border.place));
        }
        self.sink.end_before(&mut lives);
        if let Some(current) = lives.current.as_mut().filter(|current| current.is_seen) {
            self.sink.over(key, lives.over + 1, current, EventPosition::LAST);
        }
    }
}
