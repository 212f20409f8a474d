//! `sched`: how long threads wait for a CPU once they were woken, how long they run, and what they do else.
//!
//! ```text
//! thread 7     blocked in read ├─ waiting ─┤├──── running ────┤├ preempted ┤├ running ...
//! CPU 0        wake 7 ─────────↑           │                  │            │
//! CPU 1                                    ↑ switch to 7      ↑ away       ↑
//! ```
//!
//! Threads wander between CPUs, so their states are kept in the order of time, from notes of all lanes (`lane`). What a
//! piece of a thread's life in a part of the trace does not know, it keeps until it is joined with the piece before
//! (`row`).

mod lane;
mod report;
mod row;
#[cfg(test)]
mod tests;
mod whole;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ranking::Ranking;
use crate::roles::{CPU, Role, fork, priority, switch, syscall_entry, thread_state, wake};
use crate::threads::{ThreadId, ThreadKey, Threads};
use crate::windows::Windows;
use crate::{
    Analysis, Answer, Event, Histogram, Identity, KeyTable, LaneFacts, Merge, Needs, Notes, Setup, Shape, SpoolError,
    Weight, Wishes,
};
use lane::{CpuHead, CpuState, CpuTail, Rename, Switch, Wake};
pub use lane::{Lane, Note};
use row::{Away, Call, Row, Start, Times, Wait, Waited, Who};

/// The analysis.
#[derive(Debug)]
pub struct Sched {
    lanes: Vec<LaneFacts>,
    wishes: Wishes,
    /// Holes of all lanes.
    holes: Windows,
    /// For each class of events the name of its calls.
    calls: Vec<Call>,
    /// Names that classes give to calls.
    names: Vec<String>,
}

/// The thread that a CPU runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Running {
    cpu: u32,
    tid: i32,
    /// Which life of it.
    since: i64,
    /// The call that it was in when the run began, or was found to be in since.
    call: Call,
}

/// Somebody woke somebody on a CPU before its first switch in a part of the trace: who was that?
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Early {
    lane: u32,
    cpu: u32,
    /// When that happened first.
    time: i64,
    /// The answer, when it is known.
    who: Option<Who>,
}

/// Wakeups of a priority.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Priority {
    latencies: Histogram,
    lost_inside: u64,
}

/// One wakeup.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Wakeup {
    thread: ThreadId,
    waited: Waited,
    start: Start,
}

/// What wakeups add up to.
#[derive(Debug, Serialize, Deserialize)]
struct Wakeups {
    /// By who is woken, and by whom: all waits, and the time of those that were measured.
    wakers: KeyTable<(ThreadId, Who), Times>,
    priorities: BTreeMap<Option<i32>, Priority>,
    /// Measured ones that ended on another CPU than was meant.
    wrong_cpu: u64,
    longest: Ranking<Wakeup>,
}

/// What is known behind a part of the trace.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// By lane, then by CPU.
    cpus: Vec<Vec<CpuState>>,
    /// By lane, then by CPU.
    running: Vec<Vec<Running>>,
    threads: Threads<Box<Row>>,
    /// Lives that are over, in pieces.
    over: Vec<(ThreadId, Box<Row>)>,
    early: Vec<Early>,
    wakeups: Wakeups,
    /// When the first and the last event were.
    span: Option<(i64, i64)>,
}

impl Merge for Times {
    fn merge(&mut self, later: Self) {
        self.add(later);
    }
}

impl Weight for Times {}
impl Weight for ThreadId {}
impl Weight for Who {}

impl Sched {
    /// What it asks of events.
    #[must_use]
    pub fn needs() -> Needs {
        use {fork::*, priority::*, switch::*, syscall_entry::*, thread_state::*, wake::*};
        Needs {
            roles: vec![
                (Role::Switch, vec![PREV_TID, PREV_STATE, NEXT_TID, PREV_COMM, NEXT_COMM, NEXT_PRIO]),
                (Role::Waking, vec![WOKEN_TID, WOKEN_COMM, TARGET_CPU]),
                (Role::Wakeup, vec![WOKEN_TID, WOKEN_COMM, TARGET_CPU]),
                (Role::Fork, vec![CHILD_TID, CHILD_PID, CHILD_COMM, PARENT_TID, PARENT_PID]),
                (Role::ThreadState, vec![KNOWN_TID, KNOWN_PID, KNOWN_COMM]),
                (Role::Rename, vec![CHANGED_TID, NEW_COMM]),
                (Role::SyscallEntry, vec![ENTRY_NAME, ENTRY_NUMBER]),
                (Role::SyscallExit, Vec::new()),
            ],
            context: vec![CPU],
            ..Needs::default()
        }
    }

    /// The analysis of these lanes.
    #[must_use]
    pub fn new(setup: &Setup<'_>) -> Self {
        let mut holes = Windows::default();
        setup.lanes.iter().for_each(|lane| holes.extend(&lane.holes));
        let (calls, names) = lane::calls(setup.classes);
        Self { lanes: setup.lanes.to_vec(), wishes: setup.wishes.clone(), holes, calls, names }
    }

    /// Whether no event between two instants is missing.
    fn is_whole(&self, begin: i64, end: i64) -> bool {
        self.holes.is_empty() || !self.holes.touch(begin, end)
    }

    fn key(&self, lane: usize, tid: i32) -> ThreadKey {
        ThreadKey { host: self.lanes[lane].host, tid }
    }
}

impl Wakeups {
    fn new(top: usize) -> Self {
        let (wakers, priorities) = (KeyTable::default(), BTreeMap::new());
        Self { wakers, priorities, wrong_cpu: 0, longest: Ranking::new(Some(top)) }
    }

    /// A thread has waited for a CPU.
    fn count(&mut self, sched: &Sched, thread: ThreadId, row: &mut Row, waited: Waited) {
        let ns = waited.begin.abs_diff(waited.end);
        let is_whole = sched.is_whole(waited.begin, waited.end);
        let known = self.wakers.entry((thread, waited.wait.waker));
        known.count += 1;
        let Some(start) = waited.start else {
            row.lost_inside += 1;
            return;
        };
        if !sched.wants(thread, start, ns) {
            return;
        }
        let priority = self.priorities.entry(start.prio).or_default();
        if !is_whole {
            row.lost_inside += 1;
            priority.lost_inside += 1;
            return;
        }
        known.total_ns += ns;
        row.latencies.record(ns);
        priority.latencies.record(ns);
        self.wrong_cpu += u64::from(waited.wait.target.is_some_and(|target| target != start.cpu));
        self.longest.push(ns, || Wakeup { thread, waited, start });
    }

    fn merge(&mut self, right: Self) {
        Merge::merge(&mut self.wakers, right.wakers);
        for (prio, priority) in right.priorities {
            let known = self.priorities.entry(prio).or_default();
            known.latencies.merge(priority.latencies);
            known.lost_inside += priority.lost_inside;
        }
        self.wrong_cpu += right.wrong_cpu;
        self.longest.merge(right.longest);
    }
}

impl Wakeup {
    /// Of those that take equally long the earliest comes first.
    fn order(&self) -> (i64, ThreadKey) {
        (self.waited.end, self.thread.key)
    }
}

impl PartialEq for Wakeup {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Wakeup {}

impl PartialOrd for Wakeup {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wakeup {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl Early {
    fn is_of(&self, lane: u32, cpu: u32) -> bool {
        (self.lane, self.cpu) == (lane, cpu)
    }
}

impl State {
    /// Says something of a life that may be over meanwhile.
    fn tell(&mut self, id: ThreadId, what: impl FnOnce(&mut Row)) {
        match self.threads.life(id) {
            Some(row) => what(row),
            None => {
                let mut piece = Box::<Row>::default();
                what(&mut piece);
                self.over.push((id, piece));
            }
        }
    }

    fn running(&self, lane: usize, cpu: u32) -> Option<Running> {
        self.running[lane].iter().find(|running| running.cpu == cpu).copied()
    }

    fn running_mut(&mut self, lane: usize, cpu: u32) -> Option<&mut Running> {
        self.running[lane].iter_mut().find(|running| running.cpu == cpu)
    }

    /// Adds what was seen of a CPU; its last switch before that.
    fn append_cpu(&mut self, lane: usize, cpu: CpuState) -> Option<CpuTail> {
        let Some(known) = self.cpus[lane].iter_mut().find(|known| known.cpu == cpu.cpu) else {
            self.cpus[lane].push(cpu);
            return None;
        };
        if known.head.is_none() {
            (known.head, known.seen) = (cpu.head, cpu.seen.after(known.seen));
        }
        let before = known.tail;
        known.tail = cpu.tail.or(before);
        before
    }

    fn set_running(&mut self, lane: usize, running: Running) {
        match self.running_mut(lane, running.cpu) {
            Some(known) => *known = running,
            None => self.running[lane].push(running),
        }
    }

    /// Who is on a CPU now.
    fn who(&mut self, sched: &Sched, lane: usize, cpu: u32, time: i64) -> Who {
        if let Some(run) = self.running(lane, cpu) {
            return sched.runner(lane, run);
        }
        let lane = lane as u32;
        let known = self.early.iter().find(|early| early.is_of(lane, cpu));
        let time = known.map_or(time, |known| known.time);
        if known.is_none() {
            self.early.push(Early { lane, cpu, time, who: None });
        }
        Who::Before(lane, cpu, time)
    }

    fn switch(&mut self, sched: &Sched, lane: usize, time: i64, switch: &Switch) {
        let run = self.running(lane, switch.cpu);
        let is_of_prev = switch.prev != 0 && self.leaves(sched, lane, time, switch, run);
        if let Some(run) = run.filter(|run| run.tid != 0 && !is_of_prev) {
            let id = ThreadId { key: sched.key(lane, run.tid), since: run.since };
            if let Some(row) = self.threads.life(id).filter(|_| run.tid != switch.prev) {
                row.lose(switch.cpu, time);
            }
            if let Some(ns) = switch.ran_ns.filter(|_| sched.wants_cpu(switch.cpu)) {
                self.tell(id, |row| row.ran(ns, switch.is_cut));
            }
        }
        let mut running = Running { cpu: switch.cpu, tid: switch.next, since: time, call: Call::None };
        if switch.next != 0 {
            let key = sched.key(lane, switch.next);
            let living = self.threads.living(key, time);
            let row = &mut living.row;
            row.name_it(switch.next_comm, time);
            (running.since, running.call) = (living.since, row.call);
            let start = Start { cpu: switch.cpu, prio: switch.next_prio, comm: switch.next_comm };
            if let Some(waited) = row.begin(time, start) {
                self.wakeups.count(sched, ThreadId { key, since: living.since }, row, waited);
            }
        }
        self.set_running(lane, running);
    }

    /// A thread leaves a CPU; whether the run that ends was its.
    fn leaves(&mut self, sched: &Sched, lane: usize, time: i64, switch: &Switch, run: Option<Running>) -> bool {
        let key = sched.key(lane, switch.prev);
        let living = self.threads.living(key, time);
        let id = ThreadId { key, since: living.since };
        let row = &mut living.row;
        if switch.away == Away::Dead && row.is_unborn() {
            return false;
        }
        let run = run.map(|run| (run, run.tid == switch.prev && run.since == id.since));
        let call = match run {
            Some((run, true)) => switch.seen.or(run.call),
            None if living.is_left => Call::BeforeCpu(lane as u32, switch.cpu),
            _ => Call::None,
        };
        let is_its = matches!(run, Some((_, true)));
        if let Some(ns) = switch.ran_ns.filter(|_| is_its && sched.wants_cpu(switch.cpu)) {
            row.ran(ns, switch.is_cut);
        }
        if let Some(waited) = row.away(time, switch.away, call) {
            self.wakeups.count(sched, id, row, waited);
        }
        if switch.away == Away::Dead {
            let over = &mut self.over;
            self.threads.end(key, |id, row| over.push((id, row)));
        }
        is_its
    }

    fn rename(&mut self, sched: &Sched, lane: usize, time: i64, rename: &Rename) {
        let Some(run) = self.running(lane, rename.cpu) else { return };
        let id = ThreadId { key: sched.key(lane, run.tid), since: run.since };
        if run.tid != 0 {
            self.tell(id, |row| row.name_it(rename.comm, time));
        }
    }

    fn wake(&mut self, sched: &Sched, lane: usize, time: i64, wake: &Wake) {
        let waker = self.who(sched, lane, wake.cpu, time);
        let row = self.threads.at(sched.key(lane, wake.tid), time);
        row.name_it(wake.comm, time);
        row.wake(time, &Wait { waker, target: wake.target, is_woken: wake.is_wakeup });
    }
}

impl Analysis for Sched {
    type State = State;
    type Lane<'a> = Lane<'a>;
    type Note = Note;

    fn identity(&self) -> Identity {
        Identity { name: "sched", version: 1 }
    }

    fn shape(&self) -> Shape {
        Shape::Slice
    }

    fn init(&self) -> State {
        let lanes = self.lanes.len();
        State {
            cpus: vec![Vec::new(); lanes],
            running: vec![Vec::new(); lanes],
            threads: Threads::default(),
            over: Vec::new(),
            early: Vec::new(),
            wakeups: Wakeups::new(self.top()),
            span: None,
        }
    }

    fn enter(&self, lane: usize) -> Lane<'_> {
        let facts = &self.lanes[lane];
        Lane::new(facts, &self.calls, facts.cpu.unwrap_or(lane as u32))
    }

    fn step(&self, lane: &mut Lane<'_>, event: &Event<'_>, notes: &mut Notes<Note>) {
        lane.step(event, notes);
    }

    fn note(&self, state: &mut State, lane: usize, time: i64, note: Note) {
        let State { threads, over, .. } = state;
        match &note {
            Note::Switch(switch) => state.switch(self, lane, time, switch),
            Note::Wake(wake) if wake.tid != 0 => state.wake(self, lane, time, wake),
            Note::Fork(named, parent) => {
                if let Some((parent, pid)) = *parent {
                    threads.at(self.key(lane, parent), time).pid = Some(pid);
                }
                if named.tid != 0 {
                    let row = threads.begin(self.key(lane, named.tid), time, |id, row| over.push((id, row)));
                    row.fork(time);
                    row.name_it(named.comm, time);
                    row.pid = named.pid;
                }
            }
            Note::Known(named) if named.tid != 0 => {
                let row = threads.at(self.key(lane, named.tid), time);
                row.name_it(named.comm, time);
                row.pid = named.pid.or(row.pid);
            }
            Note::Rename(rename) => state.rename(self, lane, time, rename),
            Note::Wake(_) | Note::Known(_) => {}
        }
    }

    fn leave(&self, state: &mut State, lane: usize, end: Lane<'_>) {
        for cpu in &end.cpus {
            if let Some(running) = state.running[lane].iter_mut().find(|running| running.cpu == cpu.known.cpu) {
                running.call = cpu.seen.or(running.call);
            }
        }
        state.cpus[lane] = end.cpus.iter().map(lane::LaneCpu::state).collect();
        state.span = union(state.span, end.span);
    }

    fn merge(&self, left: &mut State, mut right: State) {
        self.merge_calls(left, &mut right);
        self.merge_cpus(left, &mut right);
        self.merge_early(left, &mut right);
        self.merge_running(left, &right);
        let State { threads, over, wakeups, .. } = left;
        wakeups.merge(right.wakeups);
        over.extend(right.over);
        threads.merge(right.threads, |id, mut row| {
            if let Some(waited) = row.take_waited() {
                wakeups.count(self, id, &mut row, waited);
            }
            over.push((id, row));
        });
        for (id, row) in threads.rows_mut() {
            if let Some(waited) = row.take_waited() {
                wakeups.count(self, id, row, waited);
            }
        }
        left.span = union(left.span, right.span);
    }

    fn finish(&self, state: &State) -> Result<Answer, SpoolError> {
        Ok(self.report(state))
    }
}

fn union(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

impl Sched {
    /// In which calls threads were when what follows began. Calls that the left part does not know either are its own
    /// unknown ones from now on, so each is replaced once.
    fn merge_calls(&self, left: &mut State, right: &mut State) {
        let causes = self.causes(left, right);
        let cause = |unknown: Call| causes.iter().find(|cause| cause.0 == unknown).map_or(unknown, |cause| cause.1);
        let mut before = |key: ThreadKey| match left.threads.since(key) {
            Some(since) => left.threads.life(ThreadId { key, since }).map_or(Call::None, |row| row.call),
            None if left.threads.is_left(key) => Call::BeforeRow,
            None => Call::None,
        };
        for (lane, running) in right.running.iter_mut().enumerate() {
            for running in running {
                let key = self.key(lane, running.tid);
                running.call = match running.call {
                    Call::BeforeRow if right.threads.first(key) == Some(ThreadId { key, since: running.since }) => {
                        before(key)
                    }
                    Call::BeforeRow => Call::None,
                    call => cause(call),
                };
            }
        }
        for (key, row) in right.threads.first_rows() {
            let before = before(key);
            row.resolve(|call| if call == Call::BeforeRow { before } else { cause(call) });
        }
    }

    /// In which calls threads were when they left CPUs for the first time.
    fn causes(&self, left: &State, right: &State) -> Vec<(Call, Call)> {
        let known = |(lane, cpu): (usize, &CpuState)| {
            let head = cpu.head?;
            let key = self.key(lane, head.prev);
            let call = match left.running(lane, cpu.cpu) {
                Some(run) if run.tid == head.prev && left.threads.since(key) == Some(run.since) => {
                    cpu.seen.or(run.call)
                }
                // It may have run since before that.
                None if left.threads.is_left(key) => return None,
                _ => Call::None,
            };
            Some((Call::BeforeCpu(lane as u32, cpu.cpu), call))
        };
        let cpus = right.cpus.iter().enumerate();
        cpus.flat_map(|(lane, cpus)| cpus.iter().map(move |cpu| (lane, cpu))).filter_map(known).collect()
    }

    /// What was seen of CPUs, and the runs that go on.
    fn merge_cpus(&self, left: &mut State, right: &mut State) {
        for (lane, cpus) in std::mem::take(&mut right.cpus).into_iter().enumerate() {
            for cpu in cpus {
                let tail = left.append_cpu(lane, cpu);
                let Some(head) = cpu.head else {
                    // All that was seen of calls is of the run that goes on.
                    if let Some(running) = left.running_mut(lane, cpu.cpu) {
                        running.call = cpu.seen.or(running.call);
                    }
                    continue;
                };
                if let Some(tail) = tail {
                    self.merge_run(left, right, lane, cpu.cpu, (tail, head));
                }
            }
        }
    }

    /// A run went on to the first switch of what follows.
    fn merge_run(&self, left: &mut State, right: &mut State, lane: usize, cpu: u32, run: (CpuTail, CpuHead)) {
        let (tail, head) = run;
        let Some(run) = left.running(lane, cpu).filter(|run| run.tid != 0) else { return };
        let id = ThreadId { key: self.key(lane, run.tid), since: run.since };
        let is_odd = run.tid != head.prev;
        let first_switch = right.threads.first_row(id.key).and_then(|row| row.first_switch());
        if tail.is_renamed(head.prev, head.comm) {
            left.tell(id, |row| row.name_it(head.comm, head.time));
        }
        let is_lost = is_odd && first_switch.is_none_or(|first| head.time <= first);
        if let Some(row) = left.threads.life(id).filter(|_| is_lost) {
            row.lose(cpu, head.time);
        }
        if self.wants_cpu(cpu) {
            let is_cut = is_odd || lane::is_doubtful(&self.lanes[lane], tail.time, head.time);
            left.tell(id, |row| row.ran(tail.time.abs_diff(head.time), is_cut));
        }
    }

    /// Who was on CPUs before their first switches.
    fn merge_early(&self, left: &mut State, right: &mut State) {
        for mut early in std::mem::take(&mut right.early) {
            if early.who.is_none() {
                let known = left.early.iter().find(|known| known.is_of(early.lane, early.cpu) && known.who.is_none());
                early.who = match left.running(early.lane as usize, early.cpu) {
                    Some(run) => Some(self.runner(early.lane as usize, run)),
                    None => known.map(|known| Who::Before(known.lane, known.cpu, known.time)),
                };
            }
            left.early.push(early);
        }
    }

    /// Who runs at the end of what follows. Lives that were there before are known since then.
    fn merge_running(&self, left: &mut State, right: &State) {
        for (lane, new) in right.running.iter().enumerate() {
            for running in new {
                let mut running = *running;
                let key = self.key(lane, running.tid);
                let is_first = right.threads.first(key) == Some(ThreadId { key, since: running.since });
                running.since = left.threads.since(key).filter(|_| is_first).unwrap_or(running.since);
                left.set_running(lane, running);
            }
        }
    }

    fn runner(&self, lane: usize, run: Running) -> Who {
        match run.tid {
            0 => Who::Idle,
            tid => Who::Thread(ThreadId { key: self.key(lane, tid), since: run.since }),
        }
    }
}
