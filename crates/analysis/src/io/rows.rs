//! What is counted of operations in any order, and what has to wait for its place in the order of time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use super::ops::{Category, Op};
use super::{IoEntry, IoExit};
use crate::calls::{self, CallId, Entry, Exit, Outcome, Place, Rows};
use crate::syscalls::errno;
use crate::threads::ThreadKey;
use crate::{Histogram, Merge, Wishes};

/// Operations and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    pub(super) read: u64,
    pub(super) write: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) opens: u64,
    pub(super) syncs: u64,
    pub(super) errors: u64,
}

/// Operations of a run, or of a thread's life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoRows {
    pub(super) sums: Sums,
    /// What waits for its thread, by place.
    acts: Vec<(Place, Act)>,
    /// Candidates for the slowest ones.
    slow: Vec<(Place, Target, Slow)>,
    /// Latencies of each category, if only some threads are asked for.
    pub(super) latencies: Option<Box<[Histogram; 4]>>,
}

/// Something that concerns files, and comes in an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Act {
    /// Operations on a file.
    Use(Target, Sums),
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
    },
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

/// An act of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    pub(super) place: Place,
    pub(super) key: ThreadKey,
    pub(super) act: Act,
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    log: Vec<Logged>,
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

impl IoRows {
    /// Something happens that concerns files.
    pub(super) fn act(&mut self, place: Place, act: Act) {
        self.acts.push((place, act));
    }

    /// A file is used. What is put aside is in the order of places; an exit may come after changes that came after its
    /// entry.
    #[inline]
    fn uses(&mut self, place: Place, target: Target, sums: &Sums) {
        let mut at = self.acts.len();
        while at > 0 && self.acts[at - 1].0 > place {
            at -= 1;
        }
        let before = at.checked_sub(1).map(|at| &mut self.acts[at].1);
        match before {
            Some(Act::Use(known, all)) if *known == target && matches!(target, Target::Fd(_)) => all.add(sums),
            _ => self.acts.insert(at, (place, Act::Use(target, *sums))),
        }
    }
}

impl Rows for IoRows {
    fn is_empty(&self) -> bool {
        self.acts.is_empty() && self.sums == Sums::default()
    }

    fn add(&mut self, later: Self) {
        self.sums.add(&later.sums);
        for (place, act) in later.acts {
            match act {
                Act::Use(target, sums) => self.uses(place, target, &sums),
                act => self.acts.push((place, act)),
            }
        }
        self.slow.extend(later.slow);
        if let Some(latencies) = later.latencies {
            let own = self.latencies.get_or_insert_default();
            own.iter_mut().zip(latencies.iter()).for_each(|(own, more)| own.merge_from(more));
        }
    }
}

impl Totals {
    /// Logs something.
    pub(super) fn log(&mut self, place: Place, key: ThreadKey, act: Act) {
        self.log.push(Logged { place, key, act });
    }

    /// What is logged, in the order of time.
    pub(super) fn sorted_log<'a>(&'a self, more: &'a Self) -> Vec<&'a Logged> {
        let mut log: Vec<&Logged> = self.log.iter().chain(&more.log).collect();
        log.sort_by_key(|logged| logged.place);
        log
    }

    /// Takes what is logged before a place out of the log, in the order of time.
    pub(super) fn take_log(&mut self, end: Option<Place>) -> Vec<Logged> {
        self.log.sort_by_key(|logged| logged.place);
        let behind = end.map_or(self.log.len(), |end| self.log.partition_point(|logged| logged.place < end));
        let rest = self.log.split_off(behind);
        std::mem::replace(&mut self.log, rest)
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

    /// Adds others.
    pub(super) fn add(&mut self, other: Self) {
        self.log.extend(other.log);
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
pub(super) fn attribute(totals: &mut Totals, key: ThreadKey, rows: &mut IoRows) {
    totals.log.extend(rows.acts.drain(..).map(|(place, act)| Logged { place, key, act }));
    for (place, target, slow) in rows.slow.drain(..) {
        totals.log.push(Logged { place, key, act: Act::Slow(target, Box::new(slow)) });
    }
}

/// Logs what a note says of threads and processes.
pub(super) fn log_note(totals: &mut Totals, note: &calls::Note<IoEntry, IoExit, IoRows>) {
    match note {
        calls::Note::Run(end) if end.is_dead => totals.log(end.place, end.key, Act::Died),
        calls::Note::Run(_) => {}
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
struct Done<'a> {
    op: Op,
    entry: Option<&'a Entry<IoEntry>>,
    exit: &'a Exit<IoExit>,
    is_completed: bool,
    is_in_run: bool,
}

/// Counts what came of a call.
pub(super) fn settle(
    limits: &Limits,
    op_of: impl Fn(CallId) -> Op,
    totals: &mut Totals,
    rows: &mut IoRows,
    outcome: Outcome<IoEntry, IoExit>,
    is_in_run: bool,
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
    let done = Done { op, entry: entry.as_ref(), exit: &exit, is_completed, is_in_run };
    if limits.cpus.is_empty() || limits.cpus.contains(&exit.cpu) {
        done.count(category, rows);
        done.time(limits, category, totals, rows);
    }
    done.change(rows);
}

impl Done<'_> {
    fn is_error(&self) -> bool {
        errno(self.exit.ret).is_some()
    }

    fn bytes(&self) -> u64 {
        match self.op {
            Op::Read | Op::Write | Op::Both => self.exit.ret.unwrap_or(0).max(0).cast_unsigned(),
            _ => 0,
        }
    }

    fn target(&self, is_other: bool) -> Target {
        let fd = |entry: &Entry<IoEntry>| if is_other { entry.more.other_fd } else { entry.more.fd };
        match self.entry.and_then(fd) {
            None => Target::None,
            Some(fd) if self.is_in_run => Target::Fd(fd),
            Some(_) => Target::Looked { is_other },
        }
    }

    /// Where it takes place for its file.
    fn place(&self) -> Place {
        self.entry.filter(|_| self.is_in_run).map_or(self.exit.place, |entry| entry.place)
    }

    fn count(&self, category: Category, rows: &mut IoRows) {
        let errors = u64::from(self.is_error());
        let bytes = self.bytes();
        let nothing = Sums { errors, ..Sums::default() };
        let reads = Sums { read: bytes, reads: 1, ..nothing };
        let writes = Sums { write: bytes, writes: 1, ..nothing };
        match (self.op, category) {
            (Op::Both, _) => {
                rows.sums.add(&Sums { write: bytes, writes: 1, ..reads });
                rows.uses(self.place(), self.target(false), &reads);
                rows.uses(self.place(), self.target(true), &writes);
            }
            (_, Category::Read) => {
                rows.sums.add(&reads);
                rows.uses(self.place(), self.target(false), &reads);
            }
            (_, Category::Write) => {
                rows.sums.add(&writes);
                rows.uses(self.place(), self.target(false), &writes);
            }
            (_, Category::Sync) => {
                let syncs = Sums { syncs: 1, ..nothing };
                rows.sums.add(&syncs);
                if self.op == Op::Sync {
                    rows.uses(self.place(), self.target(false), &syncs);
                }
            }
            (_, Category::Open) => rows.sums.add(&Sums { opens: 1, ..nothing }),
        }
    }

    /// How long it took.
    fn time(&self, limits: &Limits, category: Category, totals: &mut Totals, rows: &mut IoRows) {
        let Some(entry) = self.entry.filter(|_| self.is_completed) else { return };
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
            rows.slow.push((self.place(), self.target(false), slow));
        }
    }

    /// What it changes.
    fn change(&self, rows: &mut IoRows) {
        let Some(entry) = self.entry else { return };
        let fd = self.exit.ret.filter(|&ret| ret >= 0).and_then(|ret| i32::try_from(ret).ok());
        let place = self.exit.place;
        let IoEntry { closes_on_exec, is_net, .. } = entry.more;
        match (self.op, fd) {
            (Op::Open, fd) => {
                let path = entry.more.path.clone().unwrap_or_default();
                rows.act(place, Act::Open { path, fd, is_error: self.is_error(), closes_on_exec });
            }
            (Op::Socket, Some(fd)) => rows.act(place, Act::Make { fd, is_socket: true, is_net, closes_on_exec }),
            (Op::Accept | Op::Dup | Op::Fcntl, Some(fd)) => {
                let is_socket = self.op == Op::Accept;
                if let Some(from) = entry.more.fd {
                    rows.act(place, Act::Derive { from, fd, is_socket, closes_on_exec });
                }
            }
            (Op::Pipe, Some(_)) => {
                for fd in self.exit.more.into_iter().flat_map(|(one, other)| [one, other]) {
                    rows.act(place, Act::Make { fd, is_socket: false, is_net: false, closes_on_exec });
                }
            }
            _ => {}
        }
    }
}
