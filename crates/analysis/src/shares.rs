//! Shares: the parts of a sum that belong to threads and to their processes.
//!
//! ```text
//! CPU 0   ├──────── bash ────────┤├─ idle ─┤├──── make ────┤
//!            2     1        1              8  ░░ lost ░░ 2      amounts
//! ```
//!
//! Where an event does not say of which thread it is, it is of the one that its CPU runs. The
//! amounts of a run are given to its thread when the run ends: only then is known whether the
//! switch at its end names the same thread, and whether events may be missing between the event and
//! either of its ends. A part of the trace does not know which thread ran before its first switch;
//! merging does.

mod pending;

use std::cmp::Reverse;
use std::fmt::Debug;

use hashbrown::HashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ranking::Ranking;
use crate::roles::{EventRole, FieldIndex, PID, TID, fork, priority, switch, thread_state};
use crate::threads::{LifeFacts, PartLives, ThreadId, ThreadKey, is_dead};
use crate::{Comm, LaneFacts, RoleEvent, Wishes};

pub(crate) use pending::{AmountShare, Pending};

/// An amount that is added up.
pub(crate) trait Amount:
    Copy + Debug + Default + Eq + Ord + Serialize + DeserializeOwned + Send + 'static
{
    fn add(&mut self, other: &Self);

    fn is_empty(&self) -> bool;

    /// The more, the more worth looking at.
    fn rank(&self) -> u64;
}

/// The state of a CPU in a part of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CpuShares<A> {
    /// Its first switch.
    pub(crate) head: Option<ShareFirstSwitch>,
    /// The amounts before that; if there is none, all amounts.
    before: Pending<A>,
    /// Its run since its last switch.
    run: Option<ShareRun>,
    /// The amounts since then.
    since: Pending<A>,
    /// The sum of all amounts.
    pub(crate) sums: A,
}

/// The first switch of a CPU in a part of the trace, and the thread that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShareFirstSwitch {
    time: i64,
    prev: i32,
}

/// The run of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ShareRun {
    begin: i64,
    tid: i32,
    /// Which life of the thread.
    since: i64,
}

/// The facts about a thread's life.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ShareThreadRow<A> {
    /// How many lives of the same number were before.
    pub(crate) lives_before: u32,
    /// How many CPUs began to run it, less those that stopped.
    running_on: i32,
    pub(crate) comm: Comm,
    pub(crate) pid: Option<i32>,
    pub(crate) share: AmountShare<A>,
}

/// The amounts of threads, as far as a part of the trace tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "A: Amount")]
pub(crate) struct ThreadShares<A> {
    /// By lane, then by CPU.
    pub(crate) cpus: Vec<Vec<(u32, CpuShares<A>)>>,
    threads: PartLives<ShareThreadRow<A>>,
    over: EndedShareLives<A>,
    /// The amounts while CPUs ran no thread.
    idle: AmountShare<A>,
    /// The amounts of unknown threads.
    unknown: A,
}

/// Lives that are over.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "A: Amount")]
pub(crate) struct EndedShareLives<A> {
    /// Those that may be shown.
    pub(crate) rows: Ranking<(ThreadId, ShareThreadRow<A>)>,
    /// All of them, by machine and process; only threads with chosen numbers have amounts there.
    pub(crate) processes: HashMap<(u16, ThreadOwner), ShareProcess<A>>,
    /// The doubtful amounts of the other threads, which may belong to chosen ones.
    doubt_elsewhere: A,
}

/// The owner of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum ThreadOwner {
    /// A process.
    Process(i32),
    /// An unknown process; threads of one name are together.
    Unknown(Comm),
}

/// Lives of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ShareProcess<A> {
    pub(crate) threads: u64,
    pub(crate) share: AmountShare<A>,
    /// Its first thread's: since when that lived, and its name.
    name: Option<(i64, Comm)>,
    /// That of its threads with the lowest number that has a name, its last life.
    lowest: Option<(Reverse<i32>, i64, Comm)>,
}

/// Everything that is known in the end.
pub(crate) struct ShareTotals<A> {
    pub(crate) threads: EndedShareLives<A>,
    pub(crate) idle: AmountShare<A>,
    pub(crate) unknown: A,
    /// Amounts that may be of other threads than it seems, or are of none.
    pub(crate) doubt: A,
}

/// The facts that events tell about threads.
#[derive(Debug)]
pub(crate) enum ShareNote {
    /// A CPU changes threads.
    Switch(ShareSwitch),
    /// A thread is made: its number, process and name, and its parent thread, of which process.
    Fork(i32, Option<i32>, Comm, Option<(i32, i32)>),
    /// A thread is known by these: its number, process and name.
    Known(i32, Option<i32>, Comm),
}

#[derive(Debug)]
pub(crate) struct ShareSwitch {
    prev: i32,
    prev_comm: Comm,
    prev_pid: Option<i32>,
    is_dead: bool,
    next: i32,
    next_comm: Comm,
}

/// Roles that tell of threads, with the fields that are asked for.
pub(crate) fn needs() -> Vec<(EventRole, Vec<FieldIndex>)> {
    use {fork::*, priority::*, switch::*, thread_state::*};
    vec![
        (EventRole::Switch, vec![PREV_TID, PREV_STATE, NEXT_TID, PREV_COMM, NEXT_COMM]),
        (EventRole::Fork, vec![CHILD_TID, CHILD_PID, CHILD_COMM, PARENT_TID, PARENT_PID]),
        (EventRole::ThreadState, vec![KNOWN_TID, KNOWN_PID, KNOWN_COMM]),
        (EventRole::Rename, vec![CHANGED_TID, NEW_COMM]),
    ]
}

impl ShareNote {
    /// The facts that an event tells in one of these roles.
    pub(crate) fn by(lane: &LaneFacts, meaning: RoleEvent<'_>) -> Option<Self> {
        let event = meaning.event;
        match meaning.role {
            EventRole::Switch => {
                let (prev, next) = (meaning.small(switch::PREV_TID)?, meaning.small(switch::NEXT_TID)?);
                let state = meaning.integer(switch::PREV_STATE);
                Some(Self::Switch(ShareSwitch {
                    prev,
                    prev_comm: meaning.comm(switch::PREV_COMM),
                    prev_pid: event.small_context(PID).filter(|_| event.small_context(TID) == Some(prev)),
                    is_dead: state.is_some_and(|state| is_dead(state, lane.kernel)),
                    next,
                    next_comm: meaning.comm(switch::NEXT_COMM),
                }))
            }
            EventRole::Fork => {
                let parent = meaning.small(fork::PARENT_TID).zip(meaning.small(fork::PARENT_PID));
                let child = meaning.small(fork::CHILD_TID)?;
                Some(Self::Fork(child, meaning.small(fork::CHILD_PID), meaning.comm(fork::CHILD_COMM), parent))
            }
            EventRole::ThreadState => {
                let pid = meaning.small(thread_state::KNOWN_PID);
                Some(Self::Known(meaning.small(thread_state::KNOWN_TID)?, pid, meaning.comm(thread_state::KNOWN_COMM)))
            }
            EventRole::Rename => {
                Some(Self::Known(meaning.small(priority::CHANGED_TID)?, None, meaning.comm(priority::NEW_COMM)))
            }
            _ => None,
        }
    }
}

/// The part of the pending amounts that belongs to a run, and the part of that in doubt: `run` is
/// when it began and its thread, `end` when it ended and its thread as the switch there says.
fn share<A: Amount>(
    lane: &LaneFacts,
    pending: &Pending<A>,
    run: Option<(i64, i32)>,
    end: Option<(i64, i32)>,
) -> AmountShare<A> {
    if let Some((run, end)) = run.zip(end)
        && run.1 != end.1
    {
        return pending.all_in_doubt();
    }
    let holes = &lane.holes;
    let epochs = [
        run.filter(|&(begin, _)| !holes.touch(begin, begin)).map(|(begin, _)| holes.begun(begin)),
        end.map(|(end, _)| holes.begun(end)),
    ];
    pending.share(|epoch| epochs.contains(&Some(epoch)))
}

/// A CPU among those of a lane, which is almost always alone.
fn cpu_of<A: Amount>(cpus: &mut Vec<(u32, CpuShares<A>)>, number: u32) -> &mut CpuShares<A> {
    let at = cpus.iter().position(|known| known.0 == number).unwrap_or_else(|| {
        cpus.push((number, CpuShares::default()));
        cpus.len() - 1
    });
    &mut cpus[at].1
}

impl<A: Amount> ThreadShares<A> {
    pub(crate) fn new(lanes: usize, wishes: &Wishes) -> Self {
        Self {
            cpus: vec![Vec::new(); lanes],
            threads: PartLives::default(),
            over: EndedShareLives::new(wishes),
            idle: AmountShare::default(),
            unknown: A::default(),
        }
    }

    /// A CPU of a lane.
    pub(crate) fn cpu(&mut self, lane: usize, number: u32) -> &mut CpuShares<A> {
        cpu_of(&mut self.cpus[lane], number)
    }

    /// An amount of a thread that the event itself names.
    pub(crate) fn said(&mut self, host: u16, time: i64, tid: i32, amount: A) {
        if tid == 0 {
            self.idle.add(&AmountShare::certain(amount));
        } else {
            self.threads.at(ThreadKey { host, tid }, time).share.add(&AmountShare::certain(amount));
        }
    }

    /// Adds the facts that an event tells about threads.
    pub(crate) fn told(
        &mut self,
        lanes: &[LaneFacts],
        wishes: &Wishes,
        (lane, cpu): (usize, u32),
        time: i64,
        told: &ShareNote,
    ) {
        let host = lanes[lane].host;
        match *told {
            ShareNote::Switch(ref switch) => self.switch(&lanes[lane], wishes, (lane, cpu), time, switch),
            ShareNote::Fork(child, pid, comm, parent) => {
                if let Some((parent, pid)) = parent {
                    self.known(host, time, (parent, Some(pid), Comm::default()));
                }
                self.fork(wishes, host, time, (child, pid, comm));
            }
            ShareNote::Known(tid, pid, comm) => self.known(host, time, (tid, pid, comm)),
        }
    }

    /// A CPU stops running a thread that may be dead meanwhile.
    fn ran(&mut self, wishes: &Wishes, host: u16, run: ShareRun, share: AmountShare<A>) {
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

    /// A CPU changes threads.
    fn switch(
        &mut self,
        facts: &LaneFacts,
        wishes: &Wishes,
        (lane, number): (usize, u32),
        time: i64,
        switch: &ShareSwitch,
    ) {
        let key = |tid: i32| ThreadKey { host: facts.host, tid };
        let cpu = self.cpu(lane, number);
        let ran = cpu.run.take();
        if cpu.head.is_none() {
            cpu.head = Some(ShareFirstSwitch { time, prev: switch.prev });
        }
        let done = std::mem::take(&mut cpu.since);
        if switch.prev != 0 {
            self.leaves(wishes, key(switch.prev), time, switch);
        }
        if let Some(run) = ran {
            let share = share(facts, &done, Some((run.begin, run.tid)), Some((time, switch.prev)));
            self.ran(wishes, facts.host, run, share);
        }
        let mut run = ShareRun { begin: time, tid: switch.next, since: time };
        if switch.next != 0 {
            let slot = self.threads.slot(key(switch.next));
            let living = self.threads.living_in(slot, time);
            run.since = living.since;
            living.row.running_on += 1;
            living.row.comm = switch.next_comm.or(living.row.comm);
        }
        self.cpu(lane, number).run = Some(run);
    }

    /// A thread leaves a CPU, and dies maybe; its amounts are given to it afterwards.
    fn leaves(&mut self, wishes: &Wishes, key: ThreadKey, time: i64, switch: &ShareSwitch) {
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

    /// A thread is called so, and of that process.
    pub(crate) fn known(&mut self, host: u16, time: i64, (tid, pid, comm): (i32, Option<i32>, Comm)) {
        if tid != 0 {
            let row = self.threads.at(ThreadKey { host, tid }, time);
            (row.pid, row.comm) = (pid.or(row.pid), comm.or(row.comm));
        }
    }

    /// Adds the part that follows.
    pub(crate) fn merge(&mut self, lanes: &[LaneFacts], wishes: &Wishes, mut right: Self) {
        for (lane, cpus) in right.cpus.iter_mut().enumerate() {
            let host = lanes[lane].host;
            for (number, mut cpu) in cpus.drain(..) {
                if let Some(run) = cpu.run.as_mut().filter(|run| run.tid != 0) {
                    let key = ThreadKey { host, tid: run.tid };
                    // A life that the part before knows is known since then.
                    let is_first = right.threads.first(key) == Some(ThreadId { key, since: run.since });
                    run.since = self.threads.since(key).filter(|_| is_first).unwrap_or(run.since);
                }
                self.merge_cpu(&lanes[lane], wishes, lane, (number, cpu));
            }
        }
        let Self { threads, over, .. } = self;
        over.merge(right.over, |key| threads.lives_before(key, &right.threads));
        threads.merge(right.threads, |id, row| over.take(wishes, id, row));
        self.idle.add(&right.idle);
        self.unknown.add(&right.unknown);
    }

    /// Adds the state of a CPU in the part that follows.
    fn merge_cpu(&mut self, facts: &LaneFacts, wishes: &Wishes, lane: usize, (number, mut right): (u32, CpuShares<A>)) {
        let known = self.cpu(lane, number);
        known.sums.add(&right.sums);
        let before = std::mem::take(&mut right.before);
        if known.head.is_none() {
            known.before.append(before);
            (known.head, known.run, known.since) = (right.head, right.run, right.since);
            return;
        }
        known.since.append(before);
        let Some((head, run)) = right.head.zip(known.run) else { return };
        let done = std::mem::replace(&mut known.since, right.since);
        known.run = right.run;
        let share = share(facts, &done, Some((run.begin, run.tid)), Some((head.time, head.prev)));
        self.ran(wishes, facts.host, run, share);
    }

    /// A period ends, and another one begins: runs that have begun go on.
    pub(crate) fn forget(&mut self, wishes: &Wishes, at: i64) {
        for (_, cpu) in self.cpus.iter_mut().flatten() {
            // The thread of a run that goes on is known: no edge belongs to any thread.
            let head = cpu.run.map(|_| ShareFirstSwitch { time: at, prev: 0 });
            *cpu = CpuShares { head, run: cpu.run, ..CpuShares::default() };
        }
        self.threads.forget(|row| row.share = AmountShare::default());
        self.over = EndedShareLives::new(wishes);
        (self.idle, self.unknown) = (AmountShare::default(), A::default());
    }

    pub(crate) fn fits(&self, lanes: usize) -> bool {
        self.cpus.len() == lanes && self.threads.fits()
    }

    /// Gives the amounts of the first and last runs of CPUs to their threads.
    pub(crate) fn whole(&self, lanes: &[LaneFacts], wishes: &Wishes) -> ShareTotals<A> {
        let numbered = |(id, number, row): (ThreadId, u32, &ShareThreadRow<A>)| {
            (id, ShareThreadRow { lives_before: number, ..row.clone() })
        };
        let mut threads: HashMap<ThreadId, ShareThreadRow<A>> = self.threads.numbered().map(numbered).collect();
        let (mut idle, mut unknown) = (self.idle, self.unknown);
        for (lane, cpus) in self.cpus.iter().enumerate() {
            let host = lanes[lane].host;
            for (_, cpu) in cpus {
                let Some(head) = cpu.head else {
                    unknown.add(&cpu.before.all());
                    continue;
                };
                let key = ThreadKey { host, tid: head.prev };
                let first = self.threads.first(key).unwrap_or(ThreadId { key, since: i64::MIN });
                let mut ends = vec![(first, share(&lanes[lane], &cpu.before, None, Some((head.time, head.prev))))];
                if let Some(run) = cpu.run {
                    let id = ThreadId { key: ThreadKey { host, tid: run.tid }, since: run.since };
                    ends.push((id, share(&lanes[lane], &cpu.since, Some((run.begin, run.tid)), None)));
                }
                for (id, share) in ends.into_iter().filter(|(_, share)| !share.all.is_empty()) {
                    let whose = if id.key.tid == 0 { &mut idle } else { &mut threads.entry(id).or_default().share };
                    whose.add(&share);
                }
            }
        }
        let mut over = self.over.clone();
        threads.into_iter().for_each(|(id, row)| over.take(wishes, id, row));
        ShareTotals::new(over, idle, unknown)
    }
}

impl<A: Amount> ShareTotals<A> {
    pub(crate) fn new(threads: EndedShareLives<A>, idle: AmountShare<A>, unknown: A) -> Self {
        let mut doubt = unknown;
        doubt.add(&threads.doubt_elsewhere);
        threads.processes.values().map(|process| process.share).chain([idle]).for_each(|share| doubt.add(&share.doubt));
        Self { threads, idle, unknown, doubt }
    }

    /// Threads of unknown processes and their amounts, and the amounts of unknown threads.
    pub(crate) fn of_no_process(&self) -> (u64, A) {
        let (mut threads, mut unknown) = (0, self.unknown);
        for (_, process) in self.threads.processes.iter().filter(|(key, _)| key.1.pid().is_none()) {
            threads += process.threads;
            unknown.add(&process.share.all);
        }
        (threads, unknown)
    }
}

impl<A: Amount> CpuShares<A> {
    /// Adds an amount of the thread that the CPU runs, known or not; `epoch` as of [`epoch`].
    pub(crate) fn add(&mut self, epoch: Option<usize>, amount: A) {
        self.pending().add(epoch, amount);
    }

    /// Adds all that was done up to now since the last time.
    pub(crate) fn append(&mut self, done: Pending<A>) {
        self.pending().append(done);
    }

    fn pending(&mut self) -> &mut Pending<A> {
        if self.head.is_some() { &mut self.since } else { &mut self.before }
    }
}

/// Between which holes of a lane a time lies; `None`: in one.
#[inline]
pub(crate) fn epoch(lane: &LaneFacts, time: i64) -> Option<usize> {
    if lane.holes.is_empty() {
        return Some(0);
    }
    (!lane.holes.touch(time, time)).then(|| lane.holes.begun(time))
}

impl<A: Amount> ShareThreadRow<A> {
    /// A thread that had no life before, nor any after.
    pub(crate) fn only(pid: Option<i32>, comm: Comm, amount: A) -> Self {
        Self { lives_before: 0, running_on: 0, comm, pid, share: AmountShare::certain(amount) }
    }
}

impl<A: Amount> LifeFacts for ShareThreadRow<A> {
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

impl<A: Amount> EndedShareLives<A> {
    pub(crate) fn new(wishes: &Wishes) -> Self {
        Self { rows: Ranking::new(wishes.top), processes: HashMap::default(), doubt_elsewhere: A::default() }
    }

    /// Takes a life that is over.
    pub(crate) fn take(&mut self, wishes: &Wishes, id: ThreadId, row: ShareThreadRow<A>) {
        let (has_done, is_first) = (!row.share.all.is_empty(), row.pid == Some(id.key.tid));
        if has_done || is_first {
            let owner = row.pid.map_or(ThreadOwner::Unknown(row.comm), ThreadOwner::Process);
            let name = (!row.comm.is_empty()).then_some((id.since, row.comm));
            let counts = has_done && wishes.wants_tid(id.key.tid);
            if !counts {
                self.doubt_elsewhere.add(&row.share.doubt);
            }
            let process = ShareProcess {
                threads: u64::from(counts),
                share: if counts { row.share } else { AmountShare::default() },
                name: name.filter(|_| is_first),
                lowest: name.map(|(since, comm)| (Reverse(id.key.tid), since, comm)),
            };
            self.processes.entry((id.key.host, owner)).or_default().join(&process);
        }
        if has_done && wishes.wants_thread(id.key.tid, || row.comm.text()) {
            self.rows.push(row.share.all.rank(), || (id, row));
        }
    }

    /// Adds the part that follows; `lives_before` says how many lives of a thread were before.
    fn merge(&mut self, right: Self, lives_before: impl Fn(ThreadKey) -> u32) {
        self.rows.merge_changed(right.rows, |(id, row)| row.lives_before += lives_before(id.key));
        for (key, process) in right.processes {
            self.processes.entry(key).or_default().join(&process);
        }
        self.doubt_elsewhere.add(&right.doubt_elsewhere);
    }
}

impl ThreadOwner {
    pub(crate) fn pid(self) -> Option<i32> {
        if let Self::Process(pid) = self { Some(pid) } else { None }
    }
}

/// The name of the program that a process of this name runs; without one, that of one of its threads counts. Threads of
/// the kernel are named by their task, and behind that by their number: `kworker/0:1`.
pub(crate) fn application(name: Option<String>, thread: Option<Comm>) -> Option<String> {
    let name = name.or_else(|| thread.and_then(Comm::text))?;
    let kind = name.split('/').next().filter(|kind| !kind.is_empty());
    Some(kind.unwrap_or(&name).to_owned())
}

impl<A: Amount> ShareProcess<A> {
    pub(crate) fn join(&mut self, other: &Self) {
        self.threads += other.threads;
        self.share.add(&other.share);
        self.name = self.name.max(other.name);
        self.lowest = self.lowest.max(other.lowest);
    }

    /// Its name.
    pub(crate) fn name(&self) -> Option<String> {
        self.name.and_then(|(_, comm)| comm.text())
    }

    /// An amount that is known to be of the process, but not of which thread, and the name of that.
    pub(crate) fn of_no_thread(amount: A, comm: Comm) -> Self {
        let lowest = (!comm.is_empty()).then_some((Reverse(i32::MAX), i64::MAX, comm));
        Self { threads: 0, share: AmountShare::certain(amount), name: None, lowest }
    }

    /// The name of the program that it runs.
    pub(crate) fn application(&self) -> Option<String> {
        application(self.name(), self.lowest.map(|(.., comm)| comm))
    }
}
