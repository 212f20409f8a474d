//! `memory`: who takes pages of memory from the kernel, and who gives them back.
//!
//! ```text
//! CPU 0   ├──────── bash ────────┤├─ idle ─┤├──── make ────┤
//!            +4    -1        +1              +8  ░░ lost ░░ -2      pages
//! ```
//!
//! Where an event does not say of which thread it is, it is of the one that its CPU runs. What a run uses is given to its
//! thread when the run ends: only then is known whether the switch at its end names the same thread, and whether events may
//! be missing between the use and either of its ends. A part of the trace does not know who ran before its first switch;
//! merging does.

mod report;
#[cfg(test)]
mod tests;
mod usage;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::ranking::Ranking;
use crate::rates::{Course, Periods};
use crate::roles::{CPU, PID, Role, TID, fork, page, priority, switch, thread_state};
use crate::threads::{Life, ThreadId, ThreadKey, Threads, is_dead};
use crate::{
    Analysis, Answer, Comm, Event, Identity, LaneFacts, Meaning, Needs, Notes, Setup, Shape, SpoolError, Wishes,
};
use usage::{Depth, Pending, Share, Usage};

/// The analysis.
#[derive(Debug)]
pub struct Memory {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
    periods: Periods,
}

/// What is known of a CPU in a part of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CpuState {
    /// Its first switch.
    head: Option<Head>,
    /// What was used before that; if there is none, what was used.
    before: Pending,
    /// What it runs since its last switch.
    run: Option<Run>,
    /// What was used since then.
    since: Pending,
    /// All that was used.
    sums: Usage,
}

/// The first switch of a CPU in a part of the trace, and the thread that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    time: i64,
    prev: i32,
}

/// What a CPU runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    begin: i64,
    tid: i32,
    /// Which life of the thread.
    since: i64,
}

/// What is known of a thread's life.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ThreadRow {
    /// How many lives of the same number were before.
    lives_before: u32,
    /// How many CPUs began to run it, less those that stopped.
    running_on: i32,
    comm: Comm,
    pid: Option<i32>,
    share: Share,
}

/// What is known behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// By lane, then by CPU.
    cpus: Vec<Vec<(u32, CpuState)>>,
    threads: Threads<ThreadRow>,
    over: Over,
    /// What was used while CPUs ran nobody.
    idle: Share,
    /// What nobody is known to have used.
    unknown: Usage,
    /// Pages over time: series are [`TAKEN`] and [`GIVEN`].
    course: Course,
    depth: Depth,
}

/// A series of the course: pages that were taken.
const TAKEN: u64 = 0;
/// Pages that were given back.
const GIVEN: u64 = 1;

/// Lives that are over.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Over {
    /// Those that may be shown.
    rows: Ranking<(ThreadId, ThreadRow)>,
    /// All of them, by machine and process.
    processes: HashMap<(u16, Option<i32>), Process>,
}

/// Lives of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Process {
    threads: u64,
    share: Share,
    /// Its first thread's: since when that lived, and its name.
    name: Option<(i64, Comm)>,
}

/// What happens.
#[derive(Debug)]
pub struct Note {
    cpu: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Pages are taken or given back, by a thread if the event says by which.
    Used(Usage, Option<i32>),
    /// A CPU changes threads.
    Switch(Switch),
    /// A thread is made: its number, process and name, and who made it, of which process.
    Fork(i32, Option<i32>, Comm, Option<(i32, i32)>),
    /// A thread is known by these: its number, process and name.
    Known(i32, Option<i32>, Comm),
}

#[derive(Debug)]
struct Switch {
    prev: i32,
    prev_comm: Comm,
    prev_pid: Option<i32>,
    is_dead: bool,
    next: i32,
    next_comm: Comm,
}

impl Memory {
    /// What it asks of events.
    #[must_use]
    pub fn needs() -> Needs {
        use {fork::*, page::*, priority::*, switch::*, thread_state::*};
        Needs {
            roles: vec![
                (Role::PageAlloc, vec![ORDER]),
                (Role::PageFree, vec![ORDER]),
                (Role::Switch, vec![PREV_TID, PREV_STATE, NEXT_TID, PREV_COMM, NEXT_COMM]),
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
        Self { lanes: setup.lanes.to_vec(), wishes: setup.wishes.clone(), periods: Periods::new(setup) }
    }

    /// What an event tells in one of its roles.
    fn told(&self, lane: &LaneFacts, cpu: u32, meaning: Meaning<'_>) -> Option<What> {
        let event = meaning.event;
        match meaning.role {
            Role::PageAlloc | Role::PageFree => {
                let usage = Usage::of(meaning.role == Role::PageAlloc, meaning.integer(page::ORDER));
                self.wishes.wants_cpu(Some(cpu)).then(|| What::Used(usage, event.small_context(TID)))
            }
            Role::Switch => {
                let (prev, next) = (meaning.small(switch::PREV_TID)?, meaning.small(switch::NEXT_TID)?);
                let state = meaning.integer(switch::PREV_STATE);
                Some(What::Switch(Switch {
                    prev,
                    prev_comm: meaning.comm(switch::PREV_COMM),
                    prev_pid: event.small_context(PID).filter(|_| event.small_context(TID) == Some(prev)),
                    is_dead: state.is_some_and(|state| is_dead(state, lane.kernel)),
                    next,
                    next_comm: meaning.comm(switch::NEXT_COMM),
                }))
            }
            Role::Fork => {
                let parent = meaning.small(fork::PARENT_TID).zip(meaning.small(fork::PARENT_PID));
                let child = meaning.small(fork::CHILD_TID)?;
                Some(What::Fork(child, meaning.small(fork::CHILD_PID), meaning.comm(fork::CHILD_COMM), parent))
            }
            Role::ThreadState => {
                let pid = meaning.small(thread_state::KNOWN_PID);
                Some(What::Known(meaning.small(thread_state::KNOWN_TID)?, pid, meaning.comm(thread_state::KNOWN_COMM)))
            }
            Role::Rename => {
                Some(What::Known(meaning.small(priority::CHANGED_TID)?, None, meaning.comm(priority::NEW_COMM)))
            }
            _ => None,
        }
    }

    /// What a run used of what was pending, and what of that is in doubt: `run` is when it began and who runs, `end` when
    /// it ended and who ran as the switch there says.
    fn share(&self, lane: usize, pending: &Pending, run: Option<(i64, i32)>, end: Option<(i64, i32)>) -> Share {
        if let Some((run, end)) = run.zip(end)
            && run.1 != end.1
        {
            return pending.all_in_doubt();
        }
        let holes = &self.lanes[lane].holes;
        let epochs = [
            run.filter(|&(begin, _)| !holes.touch(begin, begin)).map(|(begin, _)| holes.begun(begin)),
            end.map(|(end, _)| holes.begun(end)),
        ];
        pending.share(|epoch| epochs.contains(&Some(epoch)))
    }

    /// Adds what a CPU did in the part that follows.
    fn merge_cpu(&self, left: &mut State, lane: usize, (number, mut right): (u32, CpuState)) {
        let known = cpu_of(&mut left.cpus[lane], number);
        known.sums.add(&right.sums);
        let before = std::mem::take(&mut right.before);
        if known.head.is_none() {
            known.before.append(before);
            (known.head, known.run, known.since) = (right.head, right.run, right.since);
            return;
        }
        known.since.append(before);
        let Some((head, run)) = right.head.zip(known.run) else { return };
        let used = std::mem::replace(&mut known.since, right.since);
        known.run = right.run;
        let share = self.share(lane, &used, Some((run.begin, run.tid)), Some((head.time, head.prev)));
        left.ran(&self.wishes, self.lanes[lane].host, run, share);
    }
}

/// A CPU among those of a lane, which is almost always alone.
fn cpu_of(cpus: &mut Vec<(u32, CpuState)>, number: u32) -> &mut CpuState {
    let at = cpus.iter().position(|known| known.0 == number).unwrap_or_else(|| {
        cpus.push((number, CpuState::default()));
        cpus.len() - 1
    });
    &mut cpus[at].1
}

impl State {
    /// A CPU stops running somebody who may be dead meanwhile.
    fn ran(&mut self, wishes: &Wishes, host: u16, run: Run, share: Share) {
        if run.tid == 0 {
            self.idle.add(&share);
            return;
        }
        let id = ThreadId { key: ThreadKey { host, tid: run.tid }, since: run.since };
        let Some(row) = self.threads.life(id) else {
            self.unknown.add(&share.all);
            return;
        };
        row.share.add(&share);
        row.running_on -= 1;
        self.threads.stopped(id, |id, row| self.over.take(wishes, id, row));
    }

    /// Pages are taken or given back.
    fn used(&mut self, memory: &Memory, (lane, cpu): (usize, u32), time: i64, usage: Usage, tid: Option<i32>) {
        let LaneFacts { host, holes, .. } = &memory.lanes[lane];
        self.depth.add(&usage);
        if time != i64::MIN {
            let (period, _) = memory.periods.of(time);
            for (series, pages) in [(TAKEN, usage.taken.pages), (GIVEN, usage.given.pages)] {
                if pages > 0 {
                    self.course.add(period, series, pages);
                }
            }
        }
        let cpu = cpu_of(&mut self.cpus[lane], cpu);
        cpu.sums.add(&usage);
        match tid {
            Some(0) => self.idle.add(&Share::certain(usage)),
            Some(tid) => self.threads.at(ThreadKey { host: *host, tid }, time).share.add(&Share::certain(usage)),
            None => {
                let pending = if cpu.head.is_some() { &mut cpu.since } else { &mut cpu.before };
                pending.add((!holes.touch(time, time)).then(|| holes.begun(time)), usage);
            }
        }
    }

    /// A CPU changes threads.
    fn switch(&mut self, memory: &Memory, (lane, number): (usize, u32), time: i64, switch: &Switch) {
        let Memory { lanes, wishes, .. } = memory;
        let host = lanes[lane].host;
        let key = |tid: i32| ThreadKey { host, tid };
        let cpu = cpu_of(&mut self.cpus[lane], number);
        let ran = cpu.run.take();
        if cpu.head.is_none() {
            cpu.head = Some(Head { time, prev: switch.prev });
        }
        let used = std::mem::take(&mut cpu.since);
        if switch.prev != 0 {
            self.leaves(wishes, key(switch.prev), time, switch);
        }
        if let Some(run) = ran {
            let share = memory.share(lane, &used, Some((run.begin, run.tid)), Some((time, switch.prev)));
            self.ran(wishes, host, run, share);
        }
        let mut run = Run { begin: time, tid: switch.next, since: time };
        if switch.next != 0 {
            let slot = self.threads.slot(key(switch.next));
            let living = self.threads.living_in(slot, time);
            run.since = living.since;
            living.row.running_on += 1;
            living.row.comm = switch.next_comm.or(living.row.comm);
        }
        cpu_of(&mut self.cpus[lane], number).run = Some(run);
    }

    /// A thread leaves a CPU, and dies maybe; what it used is given to it afterwards.
    fn leaves(&mut self, wishes: &Wishes, key: ThreadKey, time: i64, switch: &Switch) {
        let slot = self.threads.slot(key);
        let row = &mut self.threads.living_in(slot, time).row;
        row.pid = switch.prev_pid.or(row.pid);
        row.comm = switch.prev_comm.or(row.comm);
        if switch.is_dead {
            self.threads.end_in(slot, |id, row| self.over.take(wishes, id, row));
        }
    }

    /// A thread is made.
    fn fork(&mut self, wishes: &Wishes, host: u16, time: i64, (child, pid, comm): (i32, Option<i32>, Comm)) {
        if child != 0 {
            let over = |id, row| self.over.take(wishes, id, row);
            let row = self.threads.begin(ThreadKey { host, tid: child }, time, over);
            (row.pid, row.comm) = (pid, comm);
        }
    }

    fn known(&mut self, host: u16, time: i64, (tid, pid, comm): (i32, Option<i32>, Comm)) {
        if tid != 0 {
            let row = self.threads.at(ThreadKey { host, tid }, time);
            (row.pid, row.comm) = (pid.or(row.pid), comm.or(row.comm));
        }
    }
}

impl Life for ThreadRow {
    fn join(&mut self, later: Self) {
        self.comm = later.comm.or(self.comm);
        self.pid = later.pid.or(self.pid);
        self.running_on += later.running_on;
        self.share.add(&later.share);
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
        let (has_used, is_first) = (!row.share.all.is_empty(), row.pid == Some(id.key.tid));
        if has_used || is_first {
            let name = (is_first && !row.comm.is_empty()).then_some((id.since, row.comm));
            let process = Process { threads: u64::from(has_used), share: row.share, name };
            self.processes.entry((id.key.host, row.pid)).or_default().join(&process);
        }
        if has_used && wishes.wants_thread(id.key.tid, || row.comm.text()) {
            self.rows.push(row.share.all.rank(), || (id, row));
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
    fn join(&mut self, other: &Self) {
        self.threads += other.threads;
        self.share.add(&other.share);
        self.name = self.name.max(other.name);
    }
}

impl Analysis for Memory {
    type State = State;
    type Lane<'a> = usize;
    type Note = Note;

    fn identity(&self) -> Identity {
        Identity { name: "memory", version: 1 }
    }

    fn shape(&self) -> Shape {
        Shape::Slice
    }

    fn init(&self) -> State {
        State {
            cpus: vec![Vec::new(); self.lanes.len()],
            threads: Threads::default(),
            over: Over::new(&self.wishes),
            idle: Share::default(),
            unknown: Usage::default(),
            course: self.periods.course(),
            depth: Depth::default(),
        }
    }

    fn enter(&self, lane: usize) -> usize {
        lane
    }

    fn step(&self, lane: &mut usize, event: &Event<'_>, notes: &mut Notes<Note>) {
        let facts = &self.lanes[*lane];
        let cpu = facts.cpu.or_else(|| event.cpu()).unwrap_or(*lane as u32);
        for what in event.roles().filter_map(|meaning| self.told(facts, cpu, meaning)) {
            notes.push(event.time, Note { cpu, what });
        }
    }

    fn note(&self, state: &mut State, lane: usize, time: i64, Note { cpu, what }: Note) {
        let host = self.lanes[lane].host;
        match what {
            What::Used(usage, tid) => state.used(self, (lane, cpu), time, usage, tid),
            What::Switch(switch) => state.switch(self, (lane, cpu), time, &switch),
            What::Fork(child, pid, comm, parent) => {
                if let Some((parent, pid)) = parent {
                    state.known(host, time, (parent, Some(pid), Comm::default()));
                }
                state.fork(&self.wishes, host, time, (child, pid, comm));
            }
            What::Known(tid, pid, comm) => state.known(host, time, (tid, pid, comm)),
        }
    }

    fn leave(&self, _: &mut State, _: usize, _: usize) {}

    fn merge(&self, left: &mut State, mut right: State) {
        for (lane, cpus) in right.cpus.iter_mut().enumerate() {
            let host = self.lanes[lane].host;
            for (number, mut cpu) in cpus.drain(..) {
                if let Some(run) = cpu.run.as_mut().filter(|run| run.tid != 0) {
                    let key = ThreadKey { host, tid: run.tid };
                    // A life that the part before knows is known since then.
                    let is_first = right.threads.first(key) == Some(ThreadId { key, since: run.since });
                    run.since = left.threads.since(key).filter(|_| is_first).unwrap_or(run.since);
                }
                self.merge_cpu(left, lane, (number, cpu));
            }
        }
        let State { threads, over, .. } = left;
        over.merge(right.over, |key| threads.lives_before(key, &right.threads));
        threads.merge(right.threads, |id, row| over.take(&self.wishes, id, row));
        left.idle.add(&right.idle);
        left.unknown.add(&right.unknown);
        left.course.merge(right.course);
        left.depth.append(&right.depth);
    }

    fn forget(&self, state: &mut State, at: i64) -> bool {
        for (_, cpu) in state.cpus.iter_mut().flatten() {
            // Whose run goes on is known: no edge belongs to anybody.
            let head = cpu.run.map(|_| Head { time: at, prev: 0 });
            *cpu = CpuState { head, run: cpu.run, ..CpuState::default() };
        }
        state.threads.forget(|row| row.share = Share::default());
        state.over = Over::new(&self.wishes);
        (state.idle, state.unknown) = (Share::default(), Usage::default());
        (state.course, state.depth) = (self.periods.course(), Depth::default());
        true
    }

    fn fits(&self, state: &State) -> bool {
        state.cpus.len() == self.lanes.len() && state.threads.fits() && state.course.fits(&self.periods)
    }

    fn finish(&self, state: &State) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}
