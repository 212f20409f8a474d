//! Calls of threads in the order of time: what crosses the ends of runs, and of parts.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::lane::{CallLane, Note, Run, RunEnd, Told, unknown_key};
use super::lives::{Border, CpuAt, Head, Life, Piece, latest, life_at};
use super::{Meeting, Outcome, Place, Rows, Settings, Summary, Watch, touches};
use crate::threads::ThreadKey;

/// The last run of each CPU of a lane.
type LaneRuns<A, B, R> = Vec<(u32, Run<A, B, R>)>;

/// Calls in a part of a trace.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(
    serialize = "A: Serialize, B: Serialize, R: Serialize",
    deserialize = "A: Deserialize<'de>, B: Deserialize<'de>, R: Deserialize<'de>"
))]
pub struct CallState<A, B, R> {
    /// The last run of each CPU, by lane.
    cpus: Vec<LaneRuns<A, B, R>>,
    /// Lives of each thread, in the order of their borders.
    tids: HashMap<ThreadKey, Vec<Life<A, B, R>>>,
    /// Nothing comes before.
    is_anchored: bool,
}

/// A life at the end of the trace.
#[derive(Clone, Debug)]
pub struct LifeView<R> {
    /// Its thread; below zero: nobody knows.
    pub key: ThreadKey,
    /// Which of the lives of this number.
    pub incarnation: u64,
    /// From where on; `None`: from the beginning.
    pub since: Option<Place>,
    /// Its name.
    pub comm: Option<String>,
    /// Its process.
    pub pid: Option<i32>,
    /// What was counted.
    pub rows: R,
}

type LifeOf<W> = Life<<W as Watch>::Entry, <W as Watch>::Exit, <W as Watch>::Rows>;
type RunOf<W> = Run<<W as Watch>::Entry, <W as Watch>::Exit, <W as Watch>::Rows>;
type SummaryOf<W> = Summary<<W as Watch>::Entry, <W as Watch>::Exit>;
type Tails<W> = HashMap<CpuAt, RunOf<W>>;

/// Who counts, and into what.
struct Sink<'a, W: Watch> {
    watch: &'a W,
    totals: &'a mut W::Totals,
}

impl<W: Watch> Sink<'_, W> {
    fn settings(&self) -> &Settings {
        self.watch.settings()
    }

    fn settle(&mut self, rows: &mut W::Rows, outcome: Outcome<W::Entry, W::Exit>) {
        self.watch.settle(self.totals, rows, outcome, false);
    }

    /// Adds runs to a life.
    fn append(&mut self, key: ThreadKey, life: &mut LifeOf<W>, summary: SummaryOf<W>, rows: W::Rows) {
        if let Some(open) = &summary.open {
            self.watch.leaves_open(self.totals, key, open);
        }
        life.rows.add(rows);
        let Life { pieces, rows, .. } = life;
        match pieces.last_mut().filter(|piece| piece.head.is_none()) {
            Some(piece) => {
                let settings = self.watch.settings();
                let meet = |met: Meeting<_, _>| {
                    let outcome = met.outcome(|begin, end| settings.is_whole(begin, end));
                    self.watch.settle(self.totals, rows, outcome, false);
                };
                piece.summary.then(summary, meet);
            }
            None => push(pieces, Piece { summary, head: None, rows: W::Rows::default() }),
        }
        self.watch.attribute(self.totals, key, rows);
    }

    /// Adds what the same run did later, in the next part.
    fn extend(&mut self, lane: u32, run: &mut RunOf<W>, summary: SummaryOf<W>, rows: W::Rows) {
        let Run { summary: known, rows: counted, .. } = run;
        let holes = &self.watch.settings().lanes[lane as usize].holes;
        known.then(summary, |met| {
            let outcome = met.outcome(|begin, end| !touches(holes, begin, end));
            self.watch.settle(self.totals, counted, outcome, true);
        });
        counted.add(rows);
    }
}

impl<A, B, R: Rows> CallState<A, B, R> {
    /// Before anything was seen.
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        let cpus = std::iter::repeat_with(Vec::new).take(lanes).collect();
        Self { cpus, tids: HashMap::default(), is_anchored: false }
    }

    /// A note of a lane.
    pub fn note<W>(&mut self, watch: &W, totals: &mut W::Totals, note: Note<A, B, R>)
    where
        W: Watch<Entry = A, Exit = B, Rows = R>,
        A: Clone,
        B: Clone,
    {
        let mut sink = Sink { watch, totals };
        match note {
            Note::Run(end) => self.run(&mut sink, end),
            Note::Fork { place, child, parent } => {
                let lives = self.tids.entry(child.key).or_default();
                let border = Border { place, is_death: false, head: None };
                lives.push(Life { is_forked: true, is_seen: true, ..Life::new(Some(border)) });
                self.tell(place, &child);
                parent.iter().for_each(|parent| self.tell(place, parent));
            }
            Note::Known { place, told } => self.tell(place, &told),
        }
    }

    /// The life of a thread that is not over.
    fn tell(&mut self, place: Place, told: &Told) {
        let lives = self.tids.entry(told.key).or_default();
        if lives.is_empty() {
            lives.push(Life::new(None));
        }
        let life = lives.last_mut().expect("one was made if there was none");
        life.is_seen = true;
        latest(&mut life.told, (!told.comm.is_empty()).then_some((place, told.comm)));
        latest(&mut life.pid, told.pid.map(|pid| (place, pid)));
    }

    fn run<W>(&mut self, sink: &mut Sink<'_, W>, end: RunEnd<A, B, R>)
    where
        W: Watch<Entry = A, Exit = B, Rows = R>,
        A: Clone,
        B: Clone,
    {
        let lives = self.tids.entry(end.key).or_default();
        let at = life_at(lives, end.run.begin);
        let is_last = at + 1 == lives.len();
        let life = &mut lives[at];
        let Run { begin, comm, said, summary, rows, .. } = end.run;
        let is_seen = summary.is_touched || end.is_dead;
        let head = begin.is_none().then_some((end.place.lane, end.cpu));
        match head {
            Some(at) => {
                let head = Head { at, end: end.place, comm, said, is_seen };
                push(&mut life.pieces, Piece { summary, head: Some(Box::new(head)), rows });
            }
            None => {
                life.ran(end.key.tid, end.place, comm, said, is_seen);
                sink.append(end.key, life, summary, rows);
            }
        }
        if end.is_dead && is_last {
            lives.push(Life::new(Some(Border { place: end.place, is_death: true, head })));
        }
    }

    /// The part of a lane ends.
    pub fn leave<W>(&mut self, lane: usize, end: CallLane<'_, W>) -> W::Totals
    where
        W: Watch<Entry = A, Exit = B, Rows = R>,
    {
        let (cpus, totals) = end.end();
        self.cpus[lane] = cpus;
        totals
    }

    /// Adds the part that follows.
    pub fn merge<W>(&mut self, watch: &W, totals: &mut W::Totals, right: Self)
    where
        W: Watch<Entry = A, Exit = B, Rows = R>,
        A: Clone,
        B: Clone,
    {
        let mut sink = Sink { watch, totals };
        let mut tails: Tails<W> = HashMap::default();
        for (lane, cpus) in right.cpus.into_iter().enumerate() {
            for (cpu, run) in cpus {
                let known = self.cpus[lane].iter_mut().find(|known| known.0 == cpu);
                match known {
                    None => self.cpus[lane].push((cpu, run)),
                    Some((_, known)) if run.begin.is_some() => {
                        tails.insert((lane as u32, cpu), std::mem::replace(known, run));
                    }
                    Some((_, known)) => {
                        known.said = known.said.or(run.said);
                        sink.extend(lane as u32, known, run.summary, run.rows);
                    }
                }
            }
        }
        for (key, lives) in right.tids {
            merge_lives(&mut sink, key, self.tids.entry(key).or_default(), lives, &mut tails, self.is_anchored);
        }
    }

    /// Nothing comes before: runs that began before this part began with the trace.
    pub fn anchor<W>(&mut self, watch: &W, totals: &mut W::Totals)
    where
        W: Watch<Entry = A, Exit = B, Rows = R>,
        A: Clone,
        B: Clone,
    {
        self.is_anchored = true;
        let mut sink = Sink { watch, totals };
        for (key, lives) in &mut self.tids {
            for life in lives {
                life.border = life.border.map(|border| Border { head: None, ..border });
                for piece in std::mem::take(&mut life.pieces) {
                    if let Some(head) = piece.head {
                        life.ran(key.tid, head.end, head.comm, head.said, head.is_seen);
                    }
                    sink.append(*key, life, piece.summary, piece.rows);
                }
            }
        }
    }

    /// Where the first run begins that has not ended, and of which something waits for its thread; `None`: there is none.
    #[must_use]
    pub fn settled_until(&self) -> Option<Place> {
        let begins = self.cpus.iter().flatten().filter(|(_, run)| run.summary.is_touched || !run.rows.is_empty());
        let first = Place { time: i64::MIN, lane: 0, nth: 0 };
        begins.map(|(_, run)| run.begin.unwrap_or(first)).min()
    }

    /// All lives with what was counted of them, in the order of threads and time.
    pub fn finish<W>(&self, watch: &W, totals: &mut W::Totals, mut each: impl FnMut(LifeView<R>))
    where
        W: Watch<Entry = A, Exit = B, Rows = R>,
        A: Clone,
        B: Clone,
    {
        let mut sink = Sink { watch, totals };
        let mut tails: HashMap<ThreadKey, Vec<&Run<A, B, R>>> = HashMap::default();
        for (lane, cpus) in self.cpus.iter().enumerate() {
            let host = sink.settings().lanes[lane].host;
            for (cpu, run) in cpus.iter().filter(|cpu| cpu.1.summary.is_touched || !cpu.1.rows.is_empty()) {
                let is_known = run.begin.is_some() && run.next > 0;
                let key = if is_known { ThreadKey { host, tid: run.next } } else { unknown_key(host, *cpu) };
                tails.entry(key).or_default().push(run);
            }
        }
        let mut keys: Vec<ThreadKey> = self.tids.keys().chain(tails.keys()).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let mut lives: Vec<Life<A, B, R>> = self.tids.get(&key).cloned().unwrap_or_default();
            for run in tails.get(&key).into_iter().flatten() {
                let at = life_at(&mut lives, run.begin);
                let end = Place { time: i64::MAX, lane: u32::MAX, nth: u32::MAX };
                lives[at].ran(key.tid, end, run.comm, run.said, true);
                sink.append(key, &mut lives[at], run.summary.clone(), run.rows.clone());
            }
            over(&mut sink, key, lives, &mut each);
        }
    }
}

/// Adds lives of a thread in the part that follows.
fn merge_lives<W: Watch>(
    sink: &mut Sink<'_, W>,
    key: ThreadKey,
    lives: &mut Vec<LifeOf<W>>,
    right: Vec<LifeOf<W>>,
    tails: &mut Tails<W>,
    is_anchored: bool,
) {
    for mut life in right {
        let is_border = match life.border {
            None => false,
            Some(Border { head: None, .. }) => true,
            Some(Border { head: Some(at), .. }) => {
                let begin = tails.get(&at).and_then(|tail| tail.begin);
                let is_of_last = life_at(lives, begin) + 1 == lives.len();
                // Where the head began before the left part too, what comes before that has the last word.
                life.border = life.border.map(|border| {
                    let is_open = begin.is_none() && !is_anchored;
                    Border { head: is_open.then_some(at), ..border }
                });
                is_of_last
            }
        };
        if is_border {
            lives.push(life);
            continue;
        }
        if lives.is_empty() {
            lives.push(Life::new(None));
        }
        let last = lives.len() - 1;
        lives[last].tell(&life);
        lives[last].rows.add(life.rows);
        for piece in life.pieces {
            match piece.head.as_deref().copied() {
                Some(head) => merge_head(sink, key, lives, head, piece, tails, is_anchored),
                None => {
                    let last = lives.len() - 1;
                    sink.append(key, &mut lives[last], piece.summary, W::Rows::default());
                }
            }
        }
    }
}

/// Adds a run that began before the part that follows.
fn merge_head<W: Watch>(
    sink: &mut Sink<'_, W>,
    key: ThreadKey,
    lives: &mut Vec<LifeOf<W>>,
    head: Head,
    piece: Piece<W::Entry, W::Exit, W::Rows>,
    tails: &mut Tails<W>,
    is_anchored: bool,
) {
    let mut tail = tails.remove(&head.at).unwrap_or_default();
    sink.extend(head.at.0, &mut tail, piece.summary, piece.rows);
    let of = life_at(lives, tail.begin);
    let said = tail.said.or(head.said);
    let is_seen = head.is_seen || tail.summary.is_touched;
    match is_anchored || tail.begin.is_some() {
        true => {
            lives[of].ran(key.tid, head.end, head.comm, said, is_seen);
            sink.append(key, &mut lives[of], tail.summary, tail.rows);
        }
        false => {
            let head = Some(Box::new(Head { said, is_seen, ..head }));
            push(&mut lives[of].pieces, Piece { summary: tail.summary, head, rows: tail.rows });
        }
    }
    // Whether the thread's death counts is asked next.
    tails.insert(head.at, Run { begin: tail.begin, ..Run::default() });
}

/// Adds a piece. Most lives have one, and there are many lives.
fn push<T>(pieces: &mut Vec<T>, piece: T) {
    if pieces.is_empty() {
        pieces.reserve_exact(1);
    }
    pieces.push(piece);
}

/// Counts lives and settles what they leave.
fn over<W: Watch>(
    sink: &mut Sink<'_, W>,
    key: ThreadKey,
    lives: Vec<LifeOf<W>>,
    each: &mut impl FnMut(LifeView<W::Rows>),
) {
    let mut groups: Vec<LifeOf<W>> = Vec::new();
    let mut was_death = false;
    for life in lives {
        let is_death = life.border.is_some_and(|border| border.is_death);
        let is_fork_of_dead = was_death && life.border.is_some() && !is_death;
        match groups.last_mut().filter(|_| is_fork_of_dead) {
            Some(group) => {
                group.tell(&life);
                group.rows.add(life.rows);
                group.pieces.extend(life.pieces);
            }
            None => groups.push(life),
        }
        was_death = is_death;
    }
    let mut incarnation = 0;
    let ends: Vec<Option<Border>> = groups.iter().skip(1).map(|life| life.border).chain([None]).collect();
    for (mut life, end) in groups.into_iter().zip(ends) {
        for head in life.pieces.iter().filter_map(|piece| piece.head.as_deref().copied()).collect::<Vec<_>>() {
            life.ran(key.tid, head.end, head.comm, head.said, head.is_seen);
        }
        if !life.is_seen {
            continue;
        }
        let mut whole = Life::new(life.border);
        std::mem::swap(&mut whole.rows, &mut life.rows);
        for piece in std::mem::take(&mut life.pieces) {
            sink.append(key, &mut whole, piece.summary, piece.rows);
        }
        let end = end.filter(|border| border.is_death).map_or(i64::MAX, |border| border.place.time);
        if let Some(piece) = whole.pieces.pop() {
            last(sink, &mut whole.rows, piece.summary, life.is_forked, end);
            sink.watch.attribute(sink.totals, key, &mut whole.rows);
        }
        each(LifeView {
            key,
            incarnation,
            since: whole.border.map(|border| border.place),
            comm: life.comm.or(life.told).and_then(|(_, comm)| comm.text()),
            pid: life.pid.map(|(_, pid)| pid),
            rows: whole.rows,
        });
        incarnation += 1;
    }
}

/// Settles what a life asks for and leaves open when there is nothing else.
fn last<W: Watch>(sink: &mut Sink<'_, W>, rows: &mut W::Rows, summary: SummaryOf<W>, is_forked: bool, end: i64) {
    if let Some(exit) = summary.asks {
        let outcome = match sink.settings().is_whole(i64::MIN, exit.place.time) {
            _ if is_forked => Outcome::ChildReturns(exit),
            true => Outcome::BeganBefore(exit),
            false => Outcome::LostExit(exit),
        };
        sink.settle(rows, outcome);
    }
    if let Some(entry) = summary.open {
        let outcome = match sink.settings().is_whole(entry.place.time, end) {
            true => Outcome::NeverEnded(entry),
            false => Outcome::LostEntry(entry),
        };
        sink.settle(rows, outcome);
    }
}
