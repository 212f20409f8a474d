//! `cpu`: how long each CPU was busy, and with which threads.
//!
//! ```text
//! CPU 0   ├── bash ──┤├─ idle ─┤├──── make ────┤░░ lost ░░├── make ──┤
//!         ↑ edge     ↑ switch   ↑               ↑           ↑          ↑ edge
//! ```
//!
//! A run of a thread is what lies between two switches of a CPU. Each run is measured where it is seen; what is known of
//! a thread is put together in the order of time, as threads wander. Before the first switch of a part of the trace the
//! CPU ran the thread that this switch ends; since when, the part before knows.

mod report;
#[cfg(test)]
mod tests;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::ranking::Ranking;
use crate::roles::{CPU, PID, Role, TID, fork, priority, switch, thread_state};
use crate::threads::{Life, Slot, ThreadId, ThreadKey, Threads, is_dead, is_runnable};
use crate::windows::Windows;
use crate::{
    Analysis, Answer, Comm, Event, Identity, LaneFacts, Meaning, Needs, Notes, Setup, Shape, SpoolError, Wishes,
};

/// The analysis.
#[derive(Debug)]
pub struct Cpu {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
    bins: Bins,
}

/// Equal spans of time.
#[derive(Clone, Copy, Debug)]
struct Bins {
    begin: i64,
    /// Nanoseconds of each; not 0.
    width: u64,
    count: usize,
}

/// What is known of a CPU in a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CpuState {
    /// Its first switch: when, and the thread that it ended.
    head: Option<Head>,
    /// Its last switch: when, and the thread that it began.
    tail: Option<(i64, i32)>,
    sums: CpuSums,
    /// Runs that ended with another thread than they began with: something was lost that nobody counted.
    odd: Windows,
    /// One of them is not explained by events that are known to be lost.
    is_uncounted: bool,
}

/// The first switch of a CPU in a part of the trace.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Head {
    time: i64,
    prev: i32,
}

/// What a CPU did between its first and its last switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CpuSums {
    busy_ns: u64,
    /// Of that, in holes.
    doubt_ns: u64,
    idle_ns: u64,
    switches: u64,
    /// Busy nanoseconds in each bin.
    course: Vec<u64>,
    /// The bin that was added to last.
    #[serde(skip)]
    last: LastBin,
}

/// Where a bin begins and ends, and which one it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastBin {
    begin: i64,
    end: i64,
    bin: usize,
}

/// What is known of a thread's life.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadRow {
    /// How many lives of the same number were before.
    lives_before: u32,
    /// How many CPUs began to run it, less those that stopped.
    running_on: i32,
    comm: Comm,
    pid: Option<i32>,
    run_ns: u64,
    /// Of that, in holes.
    doubt_ns: u64,
    runs: u64,
    preemptions: u64,
    /// Among runs whose beginning was seen.
    migrations: u64,
    /// Where the first of these was.
    first_cpu: Option<u32>,
    last_cpu: Option<u32>,
    prio: Option<i32>,
}

/// What is known behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// By lane, then by CPU.
    cpus: Vec<Vec<(u32, CpuState)>>,
    /// By lane, what each CPU runs.
    running: Vec<Vec<Running>>,
    threads: Threads<ThreadRow>,
    over: Over,
}

/// What a CPU runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Running {
    cpu: u32,
    tid: i32,
    /// Which life of the thread.
    since: i64,
    /// Where the thread is kept; it is 0 for what does not come from this part.
    slot: Slot,
}

/// Lives that are over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Over {
    /// Those that may be shown.
    rows: Ranking<(ThreadId, ThreadRow)>,
    /// All of them, by machine and process.
    processes: HashMap<(u16, Option<i32>), Process>,
}

/// Lives of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Process {
    threads: u64,
    runs: u64,
    run_ns: u64,
    doubt_ns: u64,
    /// Its first thread's: since when that lived, and its name.
    name: Option<(i64, Comm)>,
}

/// A lane while it is read.
#[derive(Debug)]
pub struct Lane<'a> {
    facts: &'a LaneFacts,
    /// What CPU events are of that do not say it.
    cpu: u32,
    /// By CPU; almost always one.
    cpus: Vec<(u32, CpuState)>,
}

/// What concerns threads.
#[derive(Debug)]
pub enum Note {
    /// A CPU changes threads.
    Switch(Switch),
    /// The same, where something was lost.
    Odd(Box<Odd>),
    /// A thread is made.
    Fork(Fork),
    /// A thread is known by these: its number, process and name.
    Known(i32, Option<i32>, Comm),
}

/// A thread is made.
#[derive(Debug)]
pub struct Fork {
    child: i32,
    child_pid: Option<i32>,
    comm: Comm,
    /// Who made it, and of which process that is.
    parent: Option<(i32, i32)>,
}

/// A CPU changes threads.
#[derive(Debug)]
pub struct Switch {
    /// Names are empty if they are not known.
    prev_comm: Comm,
    next_comm: Comm,
    /// For how long the thread ran that its last switch began.
    run_ns: u64,
    cpu: u32,
    prev: i32,
    next: i32,
    next_prio: Small,
    prev_pid: Small,
    /// Its last switch was seen, and began the thread that this one ends.
    is_known: bool,
    is_preempted: bool,
    is_dead: bool,
}

/// A switch that ends another thread than its CPU is known to have run, or a run that is in doubt.
#[derive(Debug)]
pub struct Odd {
    switch: Switch,
    /// The thread that it ran.
    ran: i32,
    run: Run,
}

/// A number, if there is one, in half the room of an option.
#[derive(Clone, Copy, Debug)]
struct Small(i32);

impl Small {
    /// No thread, process or priority is that.
    const NONE: i32 = i32::MIN;

    fn of(number: Option<i32>) -> Self {
        Self(number.unwrap_or(Self::NONE))
    }

    fn get(self) -> Option<i32> {
        (self.0 != Self::NONE).then_some(self.0)
    }
}

const _: () = assert!(size_of::<Note>() <= 72, "notes are written and read again for each switch");

/// How long a thread ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    ns: u64,
    /// Of that, in holes.
    doubt_ns: u64,
}

impl Cpu {
    /// What it asks of events.
    #[must_use]
    pub fn needs() -> Needs {
        use {fork::*, priority::*, switch::*, thread_state::*};
        Needs {
            roles: vec![
                (Role::Switch, vec![PREV_TID, PREV_STATE, NEXT_TID, PREV_COMM, NEXT_COMM, NEXT_PRIO]),
                (Role::Fork, vec![CHILD_TID, CHILD_PID, CHILD_COMM, PARENT_TID, PARENT_PID]),
                (Role::ThreadState, vec![KNOWN_TID, KNOWN_PID, KNOWN_COMM]),
                (Role::Rename, vec![CHANGED_TID, NEW_COMM]),
            ],
            context: vec![CPU, TID, PID],
            ..Needs::default()
        }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let (begin, end) = setup.span_ns().unwrap_or((0, 0));
        let span = begin.abs_diff(end);
        let wanted = setup.wishes.bins.max(1) as u64;
        let width = setup.wishes.period_ns.unwrap_or(span.div_ceil(wanted)).max(1);
        let count = usize::try_from(span.div_ceil(width)).unwrap_or(BINS_MAX).min(BINS_MAX);
        let bins = Bins { begin, width, count };
        Self { lanes: setup.lanes.to_vec(), wishes: setup.wishes.clone(), bins }
    }
}

/// Spans of time that a course has at most.
const BINS_MAX: usize = 1 << 16;

impl Bins {
    /// Adds a span of time to the bins that it covers.
    #[inline]
    fn add(&self, course: &mut Vec<u64>, known: &mut LastBin, begin: i64, end: i64) {
        // Almost every run lies in the bin of the one before, which is known without a division.
        if known.begin <= begin && begin < end && end <= known.end {
            course[known.bin] += begin.abs_diff(end);
        } else if self.count != 0 && begin < end {
            *known = self.add_elsewhere(course, begin, end);
        }
    }

    /// The same for a span anywhere; the last bin that it touches.
    #[cold]
    fn add_elsewhere(&self, course: &mut Vec<u64>, begin: i64, end: i64) -> LastBin {
        let of = |time: i64| (time.saturating_sub(self.begin).max(0) as u64 / self.width).min(self.count as u64 - 1);
        let (first, last) = (of(begin) as usize, of(end - 1) as usize);
        if course.len() <= last {
            course.resize(last + 1, 0);
        }
        let mut from = begin;
        for (bin, busy) in course.iter_mut().enumerate().take(last).skip(first) {
            let to = self.begin.saturating_add_unsigned((bin as u64 + 1) * self.width);
            *busy += from.abs_diff(to);
            from = to;
        }
        course[last] += from.abs_diff(end);
        let border = |bin: usize| self.begin.saturating_add_unsigned(bin as u64 * self.width);
        // What is before the first bin and behind the last one is theirs.
        LastBin { begin: border(last), end: border(last + 1), bin: last }
    }
}

impl CpuState {
    /// The CPU ran a thread from one time to another, and was found to run `found` then.
    fn ran(&mut self, bins: &Bins, holes: &Windows, (begin, tid): (i64, i32), (end, found): (i64, i32)) -> Run {
        if found != tid {
            self.odd.add(begin, end);
            self.is_uncounted |= !holes.touch(begin, end);
        }
        self.sums.ran(bins, tid, begin, end, |begin, end| match found == tid {
            true if holes.is_empty() => 0,
            true => holes.cover(begin, end),
            false => begin.abs_diff(end),
        })
    }
}

impl CpuSums {
    /// The CPU ran a thread.
    fn ran(&mut self, bins: &Bins, tid: i32, begin: i64, end: i64, doubt: impl FnOnce(i64, i64) -> u64) -> Run {
        let run = Run { ns: begin.abs_diff(end), doubt_ns: doubt(begin, end) };
        if tid == 0 {
            self.idle_ns += run.ns;
        } else {
            self.busy_ns += run.ns;
            self.doubt_ns += run.doubt_ns;
            bins.add(&mut self.course, &mut self.last, begin, end);
        }
        run
    }

    fn add(&mut self, other: &Self) {
        self.busy_ns += other.busy_ns;
        self.doubt_ns += other.doubt_ns;
        self.idle_ns += other.idle_ns;
        self.switches += other.switches;
        if self.course.len() < other.course.len() {
            self.course.resize(other.course.len(), 0);
        }
        self.course.iter_mut().zip(&other.course).for_each(|(sum, more)| *sum += more);
    }
}

impl ThreadRow {
    /// It begins to run on a CPU.
    fn begins_on(&mut self, cpu: u32) {
        self.runs += 1;
        self.running_on += 1;
        self.migrations += u64::from(self.last_cpu.is_some_and(|last| last != cpu));
        self.first_cpu.get_or_insert(cpu);
        self.last_cpu = Some(cpu);
    }

    /// What was counted is forgotten; who it is, and where it runs, is not.
    fn forget(&mut self) {
        let Self { lives_before, running_on, comm, pid, last_cpu, prio, .. } = *self;
        *self = Self { lives_before, running_on, comm, pid, last_cpu, prio, first_cpu: last_cpu, ..Self::default() };
    }

    /// Before anything else that is known of it, it ran on a CPU whose switch to it nobody saw.
    fn was_on(&mut self, cpu: u32) {
        self.migrations += u64::from(self.first_cpu.is_some_and(|first| first != cpu));
        self.first_cpu = Some(cpu);
    }
}

impl Life for ThreadRow {
    fn join(&mut self, later: Self) {
        let has_moved = self.last_cpu.zip(later.first_cpu).is_some_and(|(last, first)| last != first);
        self.comm = later.comm.or(self.comm);
        self.pid = later.pid.or(self.pid);
        self.run_ns += later.run_ns;
        self.doubt_ns += later.doubt_ns;
        self.runs += later.runs;
        self.preemptions += later.preemptions;
        self.migrations += later.migrations + u64::from(has_moved);
        self.first_cpu = self.first_cpu.or(later.first_cpu);
        self.last_cpu = later.last_cpu.or(self.last_cpu);
        self.prio = later.prio.or(self.prio);
        self.running_on += later.running_on;
    }

    fn is_running(&self) -> bool {
        self.running_on > 0
    }

    fn number(&mut self, lives_before: u32) {
        self.lives_before = lives_before;
    }
}

impl Over {
    fn new(wishes: &Wishes) -> Self {
        Self { rows: Ranking::new(wishes.top), processes: HashMap::default() }
    }

    /// Takes a life that is over.
    fn take(&mut self, wishes: &Wishes, id: ThreadId, row: ThreadRow) {
        let has_run = row.runs > 0 || row.run_ns > 0;
        if has_run || row.pid == Some(id.key.tid) {
            self.processes.entry((id.key.host, row.pid)).or_default().add(id, &row, has_run);
        }
        if has_run && row.is_wanted(wishes, id) {
            self.rows.push(row.run_ns, || (id, row));
        }
    }

    /// Adds what follows; `lives_before` says how many lives of a thread were before.
    fn merge(&mut self, right: Self, lives_before: impl Fn(ThreadKey) -> u32) {
        self.rows.merge_changed(right.rows, |(id, row)| row.lives_before += lives_before(id.key));
        for (key, process) in right.processes {
            self.processes.entry(key).or_default().join(&process);
        }
    }
}

impl Process {
    /// Adds a life, or only its name if it has not run.
    fn add(&mut self, id: ThreadId, row: &ThreadRow, has_run: bool) {
        let is_first = row.pid == Some(id.key.tid) && !row.comm.is_empty();
        let name = is_first.then_some((id.since, row.comm));
        let (runs, run_ns, doubt_ns) = (row.runs, row.run_ns, row.doubt_ns);
        self.join(&Self { threads: u64::from(has_run), runs, run_ns, doubt_ns, name });
    }

    fn join(&mut self, other: &Self) {
        self.threads += other.threads;
        self.runs += other.runs;
        self.run_ns += other.run_ns;
        self.doubt_ns += other.doubt_ns;
        self.name = self.name.max(other.name);
    }
}

impl Lane<'_> {
    fn cpu(&mut self, cpu: u32) -> &mut CpuState {
        let at = self.cpus.iter().position(|known| known.0 == cpu);
        let at = at.unwrap_or_else(|| {
            self.cpus.push((cpu, CpuState::default()));
            self.cpus.len() - 1
        });
        &mut self.cpus[at].1
    }

    fn switch(&mut self, bins: &Bins, event: Meaning<'_>, notes: &mut Notes<Note>) -> Option<()> {
        let prev = event.small(switch::PREV_TID)?;
        let next = event.small(switch::NEXT_TID)?;
        let time = event.event.time;
        let number = match self.facts.cpu {
            Some(cpu) => cpu,
            None => event.event.cpu().unwrap_or(self.cpu),
        };
        let facts = self.facts;
        let cpu = self.cpu(number);
        cpu.sums.switches += 1;
        let ran = cpu.tail.map(|tail| tail.1);
        let run = cpu.tail.map(|tail| cpu.ran(bins, &facts.holes, tail, (time, prev))).unwrap_or_default();
        if ran.is_none() {
            cpu.head = Some(Head { time, prev });
        }
        cpu.tail = Some((time, next));
        let state = event.integer(switch::PREV_STATE);
        let prev_pid = event.event.small_context(PID).filter(|_| event.event.small_context(TID) == Some(prev));
        let switch = Switch {
            prev_comm: event.comm(switch::PREV_COMM),
            next_comm: event.comm(switch::NEXT_COMM),
            run_ns: run.ns,
            cpu: number,
            prev,
            next,
            next_prio: Small::of(event.small(switch::NEXT_PRIO)),
            prev_pid: Small::of(prev_pid),
            is_known: ran.is_some(),
            is_preempted: state.is_some_and(is_runnable),
            is_dead: state.is_some_and(|state| is_dead(state, facts.kernel)),
        };
        let note = match ran.filter(|ran| *ran != prev || run.doubt_ns > 0) {
            Some(ran) => Note::Odd(Box::new(Odd { switch, ran, run })),
            None => Note::Switch(switch),
        };
        notes.push(time, note);
        Some(())
    }
}

/// What a CPU runs; the place is made if there is none.
fn running(cpus: &mut Vec<Running>, cpu: u32) -> &mut Running {
    let at = cpus.iter().position(|known| known.cpu == cpu).unwrap_or_else(|| {
        cpus.push(Running { cpu, tid: 0, since: 0, slot: 0 });
        cpus.len() - 1
    });
    &mut cpus[at]
}

impl State {
    /// A CPU stops running a life, which may be over meanwhile.
    fn ran(&mut self, wishes: &Wishes, id: ThreadId, run: Run) {
        let Some(row) = self.threads.life(id) else { return };
        row.run_ns += run.ns;
        row.doubt_ns += run.doubt_ns;
        row.running_on -= 1;
        self.threads.stopped(id, |id, row| self.over.take(wishes, id, row));
    }

    /// A CPU changes threads; it ran that one for so long, if its last switch was seen.
    fn switch(
        &mut self,
        wishes: &Wishes,
        (lane, host): (usize, u16),
        time: i64,
        (switch, ran): (&Switch, Option<(i32, Run)>),
    ) {
        let key = |tid: i32| ThreadKey { host, tid };
        let began = *running(&mut self.running[lane], switch.cpu);
        if switch.prev != 0 {
            let is_same = ran.is_some() && began.tid == switch.prev;
            let slot = if is_same { began.slot } else { self.threads.slot(key(switch.prev)) };
            let began = is_same.then_some(ThreadId { key: key(began.tid), since: began.since });
            self.leaves(wishes, (slot, began), time, (switch, ran));
        }
        if let Some((tid, run)) = ran.filter(|(tid, _)| *tid != 0 && *tid != switch.prev) {
            self.ran(wishes, ThreadId { key: key(tid), since: began.since }, run);
        }
        let (mut slot, mut since) = (0, time);
        if switch.next != 0 {
            slot = self.threads.slot(key(switch.next));
            let living = self.threads.living_in(slot, time);
            since = living.since;
            let row = &mut living.row;
            row.begins_on(switch.cpu);
            row.comm = switch.next_comm.or(row.comm);
            row.prio = switch.next_prio.get().or(row.prio);
        }
        *running(&mut self.running[lane], switch.cpu) = Running { cpu: switch.cpu, tid: switch.next, since, slot };
    }

    /// A thread leaves a CPU, which began to run `began`.
    fn leaves(
        &mut self,
        wishes: &Wishes,
        (slot, began): (Slot, Option<ThreadId>),
        time: i64,
        (switch, ran): (&Switch, Option<(i32, Run)>),
    ) {
        let living = self.threads.living_in(slot, time);
        // The number may have been given away before the last switch of its old thread.
        let older = began.filter(|id| id.since != living.since);
        let row = match older {
            Some(id) => self.threads.life(id),
            None => Some(&mut living.row),
        };
        if let Some(row) = row {
            row.preemptions += u64::from(switch.is_preempted);
            row.pid = switch.prev_pid.get().or(row.pid);
            row.comm = switch.prev_comm.or(row.comm);
            if let Some((_, run)) = ran.filter(|(tid, _)| *tid == switch.prev) {
                row.run_ns += run.ns;
                row.doubt_ns += run.doubt_ns;
                row.running_on -= 1;
            }
        }
        let over = |id, row| self.over.take(wishes, id, row);
        match older {
            Some(id) => self.threads.stopped(id, over),
            None if switch.is_dead => self.threads.end_in(slot, over),
            None => {}
        }
    }
}

impl Analysis for Cpu {
    type State = State;
    type Lane<'a> = Lane<'a>;
    type Note = Note;

    fn identity(&self) -> Identity {
        Identity { name: "cpu", version: 1 }
    }

    fn shape(&self) -> Shape {
        Shape::Slice
    }

    fn init(&self) -> State {
        let lanes = self.lanes.len();
        let over = Over::new(&self.wishes);
        State { cpus: vec![Vec::new(); lanes], running: vec![Vec::new(); lanes], threads: Threads::default(), over }
    }

    fn enter(&self, lane: usize) -> Lane<'_> {
        let facts = &self.lanes[lane];
        Lane { facts, cpu: facts.cpu.unwrap_or(lane as u32), cpus: Vec::new() }
    }

    fn step(&self, lane: &mut Lane<'_>, event: &Event<'_>, notes: &mut Notes<Note>) {
        for meaning in event.roles() {
            let note = match meaning.role {
                Role::Switch => {
                    lane.switch(&self.bins, meaning, notes);
                    None
                }
                Role::Fork => meaning.small(fork::CHILD_TID).map(|child| {
                    let parent = meaning.small(fork::PARENT_TID);
                    Note::Fork(Fork {
                        child,
                        child_pid: meaning.small(fork::CHILD_PID),
                        comm: meaning.comm(fork::CHILD_COMM),
                        parent: parent.zip(meaning.small(fork::PARENT_PID)),
                    })
                }),
                Role::ThreadState => meaning.small(thread_state::KNOWN_TID).map(|known| {
                    let pid = meaning.small(thread_state::KNOWN_PID);
                    Note::Known(known, pid, meaning.comm(thread_state::KNOWN_COMM))
                }),
                Role::Rename => meaning
                    .small(priority::CHANGED_TID)
                    .map(|changed| Note::Known(changed, None, meaning.comm(priority::NEW_COMM))),
                _ => None,
            };
            if let Some(note) = note {
                notes.push(event.time, note);
            }
        }
    }

    fn note(&self, state: &mut State, lane: usize, time: i64, note: Note) {
        let host = self.lanes[lane].host;
        let State { threads, over, .. } = state;
        match note {
            Note::Switch(ref switch) => {
                let run = Run { ns: switch.run_ns, doubt_ns: 0 };
                let ran = switch.is_known.then_some((switch.prev, run));
                state.switch(&self.wishes, (lane, host), time, (switch, ran));
            }
            Note::Odd(odd) => {
                let ran = Some((odd.ran, odd.run));
                state.switch(&self.wishes, (lane, host), time, (&odd.switch, ran));
            }
            Note::Known(0, ..) => {}
            Note::Fork(ref fork) => {
                if let Some((parent, pid)) = fork.parent.filter(|parent| parent.0 != 0) {
                    threads.at(ThreadKey { host, tid: parent }, time).pid = Some(pid);
                }
                if fork.child != 0 {
                    let key = ThreadKey { host, tid: fork.child };
                    let row = threads.begin(key, time, |id, row| over.take(&self.wishes, id, row));
                    (row.pid, row.comm) = (fork.child_pid, fork.comm);
                }
            }
            Note::Known(tid, pid, comm) => {
                let row = threads.at(ThreadKey { host, tid }, time);
                (row.pid, row.comm) = (pid.or(row.pid), comm.or(row.comm));
            }
        }
    }

    fn leave(&self, state: &mut State, lane: usize, end: Lane<'_>) {
        state.cpus[lane] = end.cpus;
    }

    fn merge(&self, left: &mut State, right: State) {
        for (lane, cpus) in right.cpus.into_iter().enumerate() {
            for (number, cpu) in cpus {
                self.merge_cpu(left, lane, number, cpu);
            }
        }
        for (lane, new) in right.running.into_iter().enumerate() {
            for Running { cpu, tid, since, .. } in new {
                let key = ThreadKey { host: self.lanes[lane].host, tid };
                // A life that the part before knows is known since then.
                let is_first = right.threads.first(key) == Some(ThreadId { key, since });
                let since = left.threads.since(key).filter(|_| is_first).unwrap_or(since);
                let slot = if tid == 0 { 0 } else { left.threads.slot(key) };
                *running(&mut left.running[lane], cpu) = Running { cpu, tid, since, slot };
            }
        }
        let State { threads, over, .. } = left;
        over.merge(right.over, |key| threads.lives_before(key, &right.threads));
        threads.merge(right.threads, |id, row| over.take(&self.wishes, id, row));
    }

    fn forget(&self, state: &mut State, at: i64) -> bool {
        for (_, cpu) in state.cpus.iter_mut().flatten() {
            let tail = cpu.tail.map(|(_, tid)| (at, tid));
            // Whose run goes on is known: no edge belongs to anybody.
            let head = tail.map(|(time, _)| Head { time, prev: 0 });
            *cpu = CpuState { head, tail, ..CpuState::default() };
        }
        state.threads.forget(ThreadRow::forget);
        state.over = Over::new(&self.wishes);
        true
    }

    fn finish(&self, state: &State) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}

impl Cpu {
    /// Adds what a CPU did in the part that follows, and the run across the border.
    fn merge_cpu(&self, left: &mut State, lane: usize, number: u32, right: CpuState) {
        let facts = &self.lanes[lane];
        let Some((_, known)) = left.cpus[lane].iter_mut().find(|known| known.0 == number) else {
            left.cpus[lane].push((number, right));
            return;
        };
        let across = known
            .tail
            .zip(right.head)
            .map(|(tail, head)| (tail.1, known.ran(&self.bins, &facts.holes, tail, (head.time, head.prev))));
        known.sums.add(&right.sums);
        known.odd.extend(&right.odd);
        known.is_uncounted |= right.is_uncounted;
        known.head = known.head.or(right.head);
        known.tail = right.tail.or(known.tail);
        if let Some((tid, run)) = across.filter(|across| across.0 != 0) {
            let since = running(&mut left.running[lane], number).since;
            left.ran(&self.wishes, ThreadId { key: ThreadKey { host: facts.host, tid }, since }, run);
        }
    }
}
