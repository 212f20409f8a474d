//! What is counted of operations in any order, and what has to wait for its place in the order of time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use super::log::Log;
use super::ops::{Category, Op};
use super::over::Over;
use super::{IoEntry, IoExit};
use crate::calls::{self, Bases, CallId, Entry, Exit, LifeView, Outcome, Place, Who};
use crate::syscalls::errno;
use crate::threads::ThreadKey;
use crate::{Histogram, Merge, Wishes};

/// Operations and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sums {
    pub(super) read: u64,
    pub(super) write: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) opens: u64,
    pub(super) syncs: u64,
    pub(super) errors: u64,
}

/// Operations of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IoRun {
    rows: IoRows,
    /// What waits for its thread.
    acts: Vec<(Place, Act)>,
}

/// Operations of a thread's life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoRows {
    pub(super) sums: Sums,
    /// Latencies of each category, if only some threads are asked for.
    pub(super) latencies: Option<Box<[Histogram; 4]>>,
}

/// Something that concerns files, and comes in an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Act {
    /// An operation on a file.
    Use(Target, Use),
    /// One that took long.
    Slow(Target, Box<Slow>),
    /// What are these? The answer is for later.
    Look(Option<i32>, Option<i32>),
    /// A path was opened; as this, if it could be.
    Open {
        /// The path.
        path: Box<[u8]>,
        /// The new fd.
        fd: Option<i32>,
        /// It did not work.
        is_error: bool,
        /// It goes when its process becomes another program.
        closes_on_exec: bool,
        /// It is among what is asked for.
        counts: bool,
    },
    /// An operation of which only its thread is told.
    Count(Use),
    /// A socket or pipe.
    Make {
        /// The new fd.
        fd: i32,
        /// It is no pipe.
        is_socket: bool,
        /// It is of the internet.
        is_net: bool,
        /// It goes when its process becomes another program.
        closes_on_exec: bool,
    },
    /// A socket of the kind of another, or the same file again.
    Derive {
        /// The other one.
        from: i32,
        /// The new fd.
        fd: i32,
        /// A socket, not the same file.
        is_socket: bool,
        /// It goes when its process becomes another program.
        closes_on_exec: bool,
    },
    /// An fd is given up.
    Close(i32),
    /// The process becomes another program.
    Exec,
    /// The thread is made: its process, that of who made it, and who that is.
    Fork(Option<i32>, Option<i32>, Option<ThreadKey>),
    /// The process of the thread.
    Known(i32),
    /// The process of another thread of the same machine.
    Said(i32, i32),
    /// A life is over, and known whole but for its files.
    Over(Box<Whole>),
    /// The thread's life may be over.
    Died,
    /// A file that a process had before.
    FileState {
        /// The process.
        pid: i32,
        /// The fd.
        fd: i32,
        /// What it is.
        path: Box<[u8]>,
    },
}

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    pub(super) bytes: u64,
    pub(super) category: Category,
    pub(super) is_error: bool,
    /// What the same call does besides.
    pub(super) is_second: bool,
}

/// A life that is over, since a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whole {
    pub(super) who: Who,
    pub(super) since: Option<Place>,
    pub(super) sums: Sums,
    /// Somebody wants to know of it.
    pub(super) is_wanted: bool,
}

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// What this fd is.
    Fd(i32),
    /// What the thread looked up when it entered the call: the first fd or the other one.
    Looked {
        /// The other one.
        is_other: bool,
    },
    /// Nobody knows, or none.
    None,
}

/// An operation that took long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slow {
    pub(super) ns: u64,
    pub(super) begin: Place,
    pub(super) end: Place,
    pub(super) call: CallId,
    pub(super) ret: Option<i64>,
    /// Of what was opened.
    pub(super) path: Option<Box<[u8]>>,
}

/// Packets and bytes of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
    pub(super) received_bytes: u64,
}

/// What is counted of all threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Totals {
    pub(super) log: Log,
    pub(super) over: Over,
    /// Of each category.
    pub(super) latencies: [Histogram; 4],
    pub(super) interfaces: BTreeMap<(u16, Box<[u8]>), Traffic>,
    /// How long the slowest ones took here.
    #[serde(skip)]
    longest_ns: BinaryHeap<Reverse<u64>>,
}

/// Which operations count.
#[derive(Clone, Debug)]
pub struct Limits {
    min_ns: u64,
    max_ns: u64,
    min_bytes: u64,
    max_bytes: u64,
    cpus: Vec<u32>,
    pub(super) tids: Vec<i64>,
    pub(super) is_by_thread: bool,
    pub(super) slow: usize,
}

/// How many of the slowest operations are shown if nobody says.
const SLOW: usize = 10;

impl Limits {
    pub(super) fn new(wishes: &Wishes) -> Self {
        Self {
            min_ns: wishes.min_ns.unwrap_or(0),
            max_ns: wishes.max_ns.unwrap_or(u64::MAX),
            min_bytes: wishes.min_bytes.unwrap_or(0),
            max_bytes: wishes.max_bytes.unwrap_or(u64::MAX),
            cpus: wishes.cpus.clone(),
            tids: wishes.tids.clone(),
            is_by_thread: !wishes.tids.is_empty() || !wishes.comms.is_empty(),
            slow: wishes.top.unwrap_or(SLOW),
        }
    }
}

impl Sums {
    pub(super) fn bytes(&self) -> u64 {
        self.read.saturating_add(self.write)
    }

    pub(super) fn operations(&self) -> u64 {
        self.reads + self.writes + self.opens + self.syncs
    }

    /// Adds an operation.
    #[inline]
    pub(super) fn count(&mut self, used: Use) {
        self.errors += u64::from(used.is_error);
        match used.category {
            Category::Open => self.opens += 1,
            Category::Read => {
                self.reads += 1;
                self.read = self.read.saturating_add(used.bytes);
            }
            Category::Write => {
                self.writes += 1;
                self.write = self.write.saturating_add(used.bytes);
            }
            Category::Sync => self.syncs += 1,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.read = self.read.saturating_add(other.read);
        self.write = self.write.saturating_add(other.write);
        self.reads += other.reads;
        self.writes += other.writes;
        self.opens += other.opens;
        self.syncs += other.syncs;
        self.errors += other.errors;
    }
}

impl Act {
    /// It was counted, if it counts: whether it says something besides.
    pub(super) fn forget(&mut self) -> bool {
        if let Self::Open { counts, .. } = self {
            *counts = false;
        }
        !matches!(self, Self::Use(..) | Self::Slow(..) | Self::Count(_) | Self::Over(_))
    }

    /// What it counts for its thread.
    #[inline]
    pub(super) fn counts(&self) -> Option<Use> {
        match *self {
            // A call fails once.
            Self::Use(_, used) | Self::Count(used) => Some(Use { is_error: used.is_error && !used.is_second, ..used }),
            Self::Open { counts: true, is_error, .. } => {
                Some(Use { bytes: 0, category: Category::Open, is_error, is_second: false })
            }
            _ => None,
        }
    }
}

impl IoRun {
    /// What was counted where it was told.
    pub(super) fn told(sums: Sums) -> Self {
        Self { rows: IoRows { sums, latencies: None }, acts: Vec::new() }
    }

    /// Whether something has a place in the order of time.
    pub(super) fn has_acts(&self) -> bool {
        !self.acts.is_empty()
    }

    /// Takes what waits for its thread, in its order; with what that counts.
    #[inline]
    pub(super) fn tell(&mut self) -> std::vec::Drain<'_, (Place, Act)> {
        self.rows.sums = Sums::default();
        self.acts.drain(..)
    }

    /// What was counted is forgotten, what changes fds is not.
    pub(super) fn forget(&mut self) {
        self.rows = IoRows::default();
        self.acts.retain_mut(|(_, act)| act.forget());
    }

    /// Whether nothing waits for its thread.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.acts.is_empty() && self.rows.sums == Sums::default() && self.rows.latencies.is_none()
    }

    /// Something happens that concerns files.
    #[inline]
    pub(super) fn act(&mut self, place: Place, act: Act) {
        self.acts.push((place, act));
    }

    /// Adds what the same run did later.
    pub(super) fn extend(&mut self, later: Self) {
        self.rows.add(later.rows);
        self.acts.extend(later.acts);
    }
}

impl IoRows {
    /// Adds others.
    pub(super) fn add(&mut self, later: Self) {
        self.sums.add(&later.sums);
        if let Some(latencies) = later.latencies {
            let own = self.latencies.get_or_insert_default();
            own.iter_mut().zip(latencies.iter()).for_each(|(own, more)| own.merge_from(more));
        }
    }
}

impl Totals {
    /// Nothing is known yet.
    pub(super) fn new(wishes: &Wishes) -> Self {
        Self {
            log: Log::default(),
            over: Over::new(wishes, wishes.top.unwrap_or(SLOW)),
            latencies: Default::default(),
            interfaces: BTreeMap::new(),
            longest_ns: BinaryHeap::new(),
        }
    }

    /// What was counted is forgotten; what changes fds, and who lived, is not.
    pub(super) fn forget(&mut self, wishes: &Wishes) {
        let Self { mut log, over, .. } = std::mem::replace(self, Self::new(wishes));
        log.forget();
        (self.log, self.over.last, self.over.firsts) = (log, over.last, over.firsts);
    }

    /// Logs something.
    pub(super) fn log(&mut self, place: Place, key: ThreadKey, act: Act) {
        self.log.push(place, key, act);
    }

    /// A life is over.
    pub(super) fn over(&mut self, wishes: &Wishes, life: LifeView<'_, IoRows>) {
        let LifeView { key, number, comm, pid, is_forked, since, until, rows } = life;
        let who = Who { key, number, comm, pid };
        let IoRows { sums, latencies } = std::mem::take(rows);
        self.over.known(who, is_forked);
        let is_wanted = wishes.wants_thread(key.tid, || comm.text());
        if let Some(latencies) = latencies.filter(|_| is_wanted) {
            self.latencies.iter_mut().zip(latencies.iter()).for_each(|(all, own)| all.merge_from(own));
        }
        if sums != Sums::default() {
            self.log(until, key, Act::Over(Box::new(Whole { who, since, sums, is_wanted })));
        }
    }

    /// A packet went through an interface.
    pub(super) fn packet(&mut self, host: u16, name: &[u8], is_sent: bool, length: u64) {
        let interface = self.interfaces.entry((host, name.into())).or_default();
        let (count, bytes) = match is_sent {
            true => (&mut interface.sent, &mut interface.sent_bytes),
            false => (&mut interface.received, &mut interface.received_bytes),
        };
        *count += 1;
        *bytes = bytes.saturating_add(length);
    }

    /// Adds others, whose lives count from these numbers on.
    pub(super) fn add(&mut self, other: Self, bases: &Bases) {
        self.over.add(other.over, bases);
        self.log.add(other.log, bases);
        self.latencies.iter_mut().zip(&other.latencies).for_each(|(own, more)| own.merge_from(more));
        for (name, more) in other.interfaces {
            let interface = self.interfaces.entry(name).or_default();
            interface.sent += more.sent;
            interface.sent_bytes = interface.sent_bytes.saturating_add(more.sent_bytes);
            interface.received += more.received;
            interface.received_bytes = interface.received_bytes.saturating_add(more.received_bytes);
        }
    }

    /// Whether an operation may be one of the slowest.
    fn is_slow(&mut self, limits: &Limits, ns: u64) -> bool {
        if limits.slow == 0 {
            return false;
        }
        // Of the slowest ones of a thread that is asked for, nobody knows here that it is asked for.
        let is_full = self.longest_ns.len() >= limits.slow && !limits.is_by_thread;
        if is_full && self.longest_ns.peek().is_some_and(|shortest| ns < shortest.0) {
            return false;
        }
        if is_full {
            self.longest_ns.pop();
        }
        if !limits.is_by_thread {
            self.longest_ns.push(Reverse(ns));
        }
        true
    }
}

/// Gives what a run did to its thread.
#[inline]
pub(super) fn count(totals: &mut Totals, key: ThreadKey, rows: &mut IoRows, run: IoRun) {
    rows.add(run.rows);
    totals.log.extend(key, run.acts);
}

/// Logs what a note says of threads and processes.
pub(super) fn log_note(totals: &mut Totals, note: &calls::Note<IoEntry, IoExit, IoRun>) {
    match note {
        calls::Note::Run(end) if end.is_dead => totals.log(end.place, end.key, Act::Died),
        calls::Note::End(end) if end.is_dead => totals.log(end.place, end.key, Act::Died),
        calls::Note::Run(_) | calls::Note::End(_) => {}
        calls::Note::Fork { place, child, parent } => {
            let (pid, parent_key) = (parent.and_then(|parent| parent.pid), parent.map(|parent| parent.key));
            totals.log(*place, child.key, Act::Fork(child.pid, pid, parent_key));
        }
        calls::Note::Known { place, told } => {
            if let Some(pid) = told.pid {
                totals.log(*place, told.key, Act::Known(pid));
            }
        }
    }
}

/// An operation that ended.
struct Done {
    op: Op,
    entry: Option<Entry<IoEntry>>,
    exit: Exit<IoExit>,
    is_completed: bool,
    is_in_run: bool,
}

/// Where acts go: to the run, or to the log.
type Acts<'a> = dyn FnMut(Place, Act) + 'a;

/// Counts what came of a call within a run.
pub(super) fn settle_in_run(
    limits: &Limits,
    op_of: impl Fn(CallId) -> Op,
    totals: &mut Totals,
    run: &mut IoRun,
    outcome: Outcome<IoEntry, IoExit>,
) {
    let IoRun { rows, acts } = run;
    settle_any(limits, op_of, totals, (rows, true), outcome, &mut |place, act| acts.push((place, act)));
}

/// Counts what came of a call of a life.
pub(super) fn settle(
    limits: &Limits,
    op_of: impl Fn(CallId) -> Op,
    totals: &mut Totals,
    (key, rows): (ThreadKey, &mut IoRows),
    outcome: Outcome<IoEntry, IoExit>,
) {
    let mut log = std::mem::take(&mut totals.log);
    let mut acts = |place, act| log.push(place, key, act);
    settle_any(limits, op_of, totals, (rows, false), outcome, &mut acts);
    totals.log = log;
}

fn settle_any(
    limits: &Limits,
    op_of: impl Fn(CallId) -> Op,
    totals: &mut Totals,
    (rows, is_in_run): (&mut IoRows, bool),
    outcome: Outcome<IoEntry, IoExit>,
    acts: &mut Acts<'_>,
) {
    let is_completed = matches!(outcome, Outcome::Completed(..));
    let (entry, exit) = match outcome {
        Outcome::Completed(entry, exit) | Outcome::Doubtful(entry, exit) => (Some(entry), exit),
        Outcome::BeganBefore(exit) | Outcome::LostExit(exit) => (None, exit),
        Outcome::ChildReturns(_) | Outcome::LostEntry(_) | Outcome::NeverEnded(_) => return,
    };
    let op = entry.as_ref().map_or_else(|| op_of(exit.call), |entry| entry.more.op);
    let is_operation = op != Op::Fcntl || entry.as_ref().is_some_and(|entry| entry.more.is_duplicate);
    let Some(category) = op.category().filter(|_| is_operation) else { return };
    let mut done = Done { op, entry, exit, is_completed, is_in_run };
    let counts = limits.cpus.is_empty() || limits.cpus.contains(&done.exit.cpu);
    if counts {
        done.count(category, rows, acts);
        done.time(limits, category, totals, rows, acts);
    }
    done.change(counts, acts);
}

impl Done {
    fn is_error(&self) -> bool {
        errno(self.exit.ret).is_some()
    }

    fn bytes(&self) -> u64 {
        match self.op {
            Op::Read | Op::Write | Op::Both => self.exit.ret.unwrap_or(0).max(0).cast_unsigned(),
            _ => 0,
        }
    }

    /// Its thread was known when it was entered.
    fn is_told(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.more.is_told)
    }

    fn target(&self, is_other: bool) -> Target {
        let fd = |entry: &Entry<IoEntry>| if is_other { entry.more.other_fd } else { entry.more.fd };
        match self.entry.as_ref().and_then(fd) {
            None => Target::None,
            Some(fd) if self.is_in_run && !self.is_told() => Target::Fd(fd),
            Some(_) => Target::Looked { is_other },
        }
    }

    /// Where it takes place for its file.
    fn place(&self) -> Place {
        let looked = self.entry.as_ref().filter(|entry| self.is_in_run && !entry.more.is_told);
        looked.map_or(self.exit.place, |entry| entry.place)
    }

    fn count(&self, category: Category, rows: &mut IoRows, acts: &mut Acts<'_>) {
        let (bytes, is_error) = (self.bytes(), self.is_error());
        let used = Use { bytes, category, is_error, is_second: false };
        rows.sums.count(used);
        match self.op {
            Op::Both => {
                rows.sums.count(Use { category: Category::Write, is_error: false, ..used });
                acts(self.place(), Act::Use(self.target(false), used));
                acts(
                    self.place(),
                    Act::Use(self.target(true), Use { category: Category::Write, is_second: true, ..used }),
                );
            }
            Op::Read | Op::Write | Op::Sync => acts(self.place(), Act::Use(self.target(false), used)),
            // It counts with what it changes.
            Op::Open if self.entry.is_some() => {}
            _ => acts(self.place(), Act::Count(used)),
        }
    }

    /// How long it took.
    fn time(&self, limits: &Limits, category: Category, totals: &mut Totals, rows: &mut IoRows, acts: &mut Acts<'_>) {
        let Some(entry) = self.entry.as_ref().filter(|_| self.is_completed) else { return };
        let ns = entry.place.time.abs_diff(self.exit.place.time);
        let bytes = self.bytes();
        let is_long = (limits.min_ns..=limits.max_ns).contains(&ns);
        if !is_long || !(limits.min_bytes..=limits.max_bytes).contains(&bytes) {
            return;
        }
        let latencies = match limits.is_by_thread {
            true => &mut **rows.latencies.get_or_insert_default(),
            false => &mut totals.latencies,
        };
        latencies[category as usize].record(ns);
        if self.op == Op::Both {
            latencies[Category::Write as usize].record(ns);
        }
        if totals.is_slow(limits, ns) {
            let (begin, end) = (entry.place, self.exit.place);
            let path = entry.more.path.clone();
            let slow = Slow { ns, begin, end, call: entry.call, ret: self.exit.ret, path };
            acts(self.place(), Act::Slow(self.target(false), Box::new(slow)));
        }
    }

    /// What it changes.
    fn change(&mut self, counts: bool, acts: &mut Acts<'_>) {
        let is_error = self.is_error();
        let Some(entry) = &mut self.entry else { return };
        let fd = self.exit.ret.filter(|&ret| ret >= 0).and_then(|ret| i32::try_from(ret).ok());
        let place = self.exit.place;
        let IoEntry { closes_on_exec, is_net, .. } = entry.more;
        match (self.op, fd) {
            (Op::Open, fd) => {
                let path = entry.more.path.take().unwrap_or_default();
                acts(place, Act::Open { path, fd, is_error, closes_on_exec, counts });
            }
            (Op::Socket, Some(fd)) => acts(place, Act::Make { fd, is_socket: true, is_net, closes_on_exec }),
            (Op::Accept | Op::Dup | Op::Fcntl, Some(fd)) => {
                let is_socket = self.op == Op::Accept;
                if let Some(from) = entry.more.fd {
                    acts(place, Act::Derive { from, fd, is_socket, closes_on_exec });
                }
            }
            (Op::Pipe, Some(_)) => {
                for fd in self.exit.more.into_iter().flat_map(|(one, other)| [one, other]) {
                    acts(place, Act::Make { fd, is_socket: false, is_net: false, closes_on_exec });
                }
            }
            _ => {}
        }
    }
}
