//! Requests as they come and go, in the order of time.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::opcodes::UringEffect;
use super::report::UringFindings;
use super::sums::{SlowUringRequest, UringLife, UringMoves, UringOwner, UringRow, UringSums};
use super::{
    Completion, HAS_MORE, IS_NOTICE, Opcode, Runner, SUBMITTER, Submission, Uring, UringFact, UringNote, WORKER,
    works_for,
};
use crate::calls::errno;
use crate::calls::unknown_key;
use crate::chains::OPEN_MAX;
use crate::threads::ThreadKey;
use crate::{Comm, Merge};

/// Requests that are open, and the counts of the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UringRequests {
    open: HashMap<(u16, i64), OpenRequest>,
    /// The last open request with a number of the program: machine, ring, number.
    by_data: HashMap<(u16, i64, i64), i64>,
    /// The threads that own rings.
    rings: HashMap<(u16, i64), ThreadKey>,
    /// The threads that CPUs ran when the part before ended, by lane and CPU.
    running: HashMap<(u32, u32), Runner>,
    threads: HashMap<ThreadKey, KnownThread>,
    /// Requests to disks so far: of a thread, and of all workers of a thread.
    issued: HashMap<(bool, ThreadKey), u64>,
    /// Requests that wait for a worker of a thread.
    waiting: HashMap<ThreadKey, Vec<i64>>,
    sums: UringSums,
}

/// The current life of a thread's number.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct KnownThread {
    number: u32,
    is_dead: bool,
    comm: Comm,
    pid: Option<i32>,
}

/// A request that has no last result yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct OpenRequest {
    begin: i64,
    ring: i64,
    user_data: i64,
    opcode: Opcode,
    is_silent: bool,
    owner: UringOwner,
    /// The thread that submitted it, and its requests to disks before.
    submitter: (ThreadKey, u64),
    /// When it was handed over to a worker of which thread, with the requests of these to disks before.
    handed_over: Option<(i64, ThreadKey, u64)>,
    /// When a worker began.
    started: Option<i64>,
    /// The bytes of its results so far.
    moved: UringMoves,
    /// The last result that is not only a notice.
    result: i64,
}

/// Where a note comes from.
#[derive(Clone, Copy)]
struct NoteOrigin {
    host: u16,
    cpu: u32,
    time: i64,
}

impl UringRequests {
    pub(super) fn new(uring: &Uring) -> Self {
        Self {
            open: HashMap::new(),
            by_data: HashMap::new(),
            rings: HashMap::new(),
            running: HashMap::new(),
            threads: HashMap::new(),
            issued: HashMap::new(),
            waiting: HashMap::new(),
            sums: UringSums::new(uring),
        }
    }

    /// The next note.
    pub(super) fn follow(&mut self, uring: &Uring, lane: u32, time: i64, note: &UringNote) {
        let host = uring.host(lane);
        let at = NoteOrigin { host, cpu: note.cpu, time };
        let runner = note.runner.or_else(|| self.running.get(&(lane, note.cpu)).copied());
        let key = |tid| ThreadKey { host, tid };
        let own = runner.filter(|runner| runner.tid > 0).map_or(unknown_key(host, note.cpu), |runner| key(runner.tid));
        let comm = runner.map_or(Comm::default(), |runner| runner.comm);
        match &note.fact {
            UringFact::Submit(submission) => self.submit(uring, at, (own, comm), submission),
            UringFact::Queue(request) => self.hand_over(at, own, *request),
            UringFact::File(request) => self.work(at, comm, *request),
            UringFact::Complete(completion) => self.complete(uring, at, comm, completion),
            UringFact::Ring(ring, is_made) => self.ring(at, (own, comm), *ring, *is_made),
            UringFact::Block => self.issue(host, own, comm),
            UringFact::Work => self.worker_runs(at, comm),
            UringFact::First(prev) => self.first(uring, lane, at, *prev),
            UringFact::Renamed(tid, comm) => self.tell(key(*tid), None, *comm),
            UringFact::Died(tid) => self.threads.entry(key(*tid)).or_default().is_dead = true,
            UringFact::Fork(tid, pid, comm) => self.fork(key(*tid), *pid, *comm),
            UringFact::Known(tid, pid, comm) => self.tell(key(*tid), *pid, *comm),
            UringFact::Last => self.running.extend(runner.map(|runner| ((lane, note.cpu), runner))),
            UringFact::Forget => self.sums = UringSums::new(uring),
        }
    }

    /// The current life of a thread, about which there is an event.
    fn life(&mut self, key: ThreadKey) -> UringOwner {
        let thread = self.threads.entry(key).or_default();
        if thread.is_dead {
            *thread = KnownThread { number: thread.number + 1, ..KnownThread::default() };
        }
        (key, thread.number)
    }

    fn fork(&mut self, key: ThreadKey, pid: Option<i32>, comm: Comm) {
        let number = self.threads.get(&key).map_or(0, |thread| thread.number + 1);
        self.threads.insert(key, KnownThread { number, is_dead: false, comm, pid });
    }

    /// A thread has this name, and is of this process.
    fn tell(&mut self, key: ThreadKey, pid: Option<i32>, comm: Comm) {
        let owner = self.life(key);
        let thread = self.threads.entry(key).or_default();
        (thread.comm, thread.pid) = (comm.or(thread.comm), pid.or(thread.pid));
        if let Some(life) = self.sums.lives.get_mut(&owner) {
            (life.comm, life.pid) = (thread.comm, thread.pid);
        }
    }

    /// The requests of a life that are of an opcode.
    fn counts(&mut self, owner: UringOwner, opcode: Opcode) -> &mut UringRow {
        self.requests_of(owner).rows.entry(opcode).or_default()
    }

    /// The requests of a life; while it is the current one of its number, its name is known.
    fn requests_of(&mut self, owner: UringOwner) -> &mut UringLife {
        let thread = self.threads.get(&owner.0).filter(|thread| thread.number == owner.1);
        let (comm, pid) = thread.map_or_else(Default::default, |thread| (thread.comm, thread.pid));
        let new = || UringLife { comm, pid, ..UringLife::default() };
        self.sums.lives.entry(owner).or_insert_with(new)
    }

    /// A thread that is no kernel's owns the rings that it makes and uses; the first one does.
    fn ring(&mut self, at: NoteOrigin, (own, comm): (ThreadKey, Comm), ring: i64, is_made: bool) {
        // The address of a ring is used again, too.
        if is_made {
            self.rings.remove(&(at.host, ring));
        }
        if own.tid > 0 && works_for(comm, SUBMITTER).is_none() && works_for(comm, WORKER).is_none() {
            self.rings.entry((at.host, ring)).or_insert(own);
        }
    }

    fn submit(&mut self, uring: &Uring, at: NoteOrigin, (own, comm): (ThreadKey, Comm), submission: &Submission) {
        let Submission { ring, request, user_data, opcode, is_silent, is_by_kernel } = *submission;
        let submits_for = works_for(comm, SUBMITTER);
        let owner = match is_by_kernel || submits_for.is_some() {
            true => {
                let named = submits_for.map(|tid| ThreadKey { host: at.host, tid });
                self.rings.get(&(at.host, ring)).copied().or(named).unwrap_or(own)
            }
            false => {
                if own.tid > 0 {
                    self.tell(own, None, comm);
                }
                self.ring(at, (own, comm), ring, false);
                own
            }
        };
        let key = (at.host, request);
        if let Some(open) = self.open.remove(&key) {
            self.left_open(uring, &open);
        }
        if self.open.len() >= OPEN_MAX {
            self.give_up(uring);
        }
        let owner = self.life(owner);
        self.requests_of(owner);
        let submitter = (own, self.issued.get(&(false, own)).copied().unwrap_or(0));
        let (handed_over, started, moved, result) = Default::default();
        let begin = at.time;
        let open = OpenRequest {
            begin,
            ring,
            user_data,
            opcode,
            is_silent,
            owner,
            submitter,
            handed_over,
            started,
            moved,
            result,
        };
        self.open.insert(key, open);
        self.by_data.insert((at.host, ring, user_data), request);
    }

    fn hand_over(&mut self, at: NoteOrigin, own: ThreadKey, request: i64) {
        let issued = self.issued.get(&(true, own)).copied().unwrap_or(0);
        if let Some(open) = self.open.get_mut(&(at.host, request)) {
            open.handed_over.get_or_insert((at.time, own, issued));
            if open.started.is_none() {
                self.waiting.entry(own).or_default().push(request);
            }
        }
    }

    /// A worker of a thread begins to run: it may serve any request that was handed over to the thread's workers.
    fn worker_runs(&mut self, at: NoteOrigin, comm: Comm) {
        let Some(tid) = works_for(comm, WORKER) else { return };
        for request in self.waiting.remove(&ThreadKey { host: at.host, tid }).unwrap_or_default() {
            self.started(at, request);
        }
    }

    /// Something of a request happens on a worker that ran already.
    fn work(&mut self, at: NoteOrigin, comm: Comm, request: i64) {
        if works_for(comm, WORKER).is_some() {
            self.started(at, request);
        }
    }

    fn started(&mut self, at: NoteOrigin, request: i64) {
        let open = self.open.get_mut(&(at.host, request));
        if let Some(open) = open.filter(|open| open.handed_over.is_some()) {
            open.started.get_or_insert(at.time);
        }
    }

    fn issue(&mut self, host: u16, own: ThreadKey, comm: Comm) {
        *self.issued.entry((false, own)).or_default() += 1;
        if let Some(tid) = works_for(comm, WORKER) {
            *self.issued.entry((true, ThreadKey { host, tid })).or_default() += 1;
        }
    }

    /// Until its first switch in the trace, a CPU ran the thread that this switch names.
    fn first(&mut self, uring: &Uring, lane: u32, at: NoteOrigin, prev: Runner) {
        if let Some(known) = self.running.get(&(lane, at.cpu)).copied() {
            if known.tid == prev.tid && prev.tid > 0 && known.comm != prev.comm && !prev.comm.is_empty() {
                self.tell(ThreadKey { host: at.host, tid: prev.tid }, None, prev.comm);
            }
            return;
        }
        self.running.insert((lane, at.cpu), prev);
        if prev.tid <= 0 {
            return;
        }
        let (unknown, key) = (unknown_key(at.host, at.cpu), ThreadKey { host: at.host, tid: prev.tid });
        self.tell(key, None, prev.comm);
        let owner = self.life(key);
        for open in self.open.values_mut() {
            open.owner = if open.owner.0 == unknown { owner } else { open.owner };
            if open.submitter.0 == unknown {
                open.submitter.0 = key;
            }
        }
        self.rings.values_mut().filter(|ring| **ring == unknown).for_each(|ring| *ring = key);
        for is_of_workers in [false, true] {
            let issued = self.issued.remove(&(is_of_workers, unknown)).unwrap_or(0);
            *self.issued.entry((is_of_workers, key)).or_default() += issued;
        }
        if let Some(life) = self.sums.lives.remove(&(unknown, 0)) {
            let thread = self.threads.get(&key).copied().unwrap_or_default();
            let known = self.sums.lives.entry(owner).or_default();
            (known.comm, known.pid) = (thread.comm, thread.pid);
            known.merge(life);
        }
        let slow = std::mem::replace(&mut self.sums.slow, UringSums::new(uring).slow);
        self.sums.slow.merge_changed(slow, |slow| {
            slow.owner = if slow.owner.0 == unknown { owner } else { slow.owner };
        });
    }

    fn complete(&mut self, uring: &Uring, at: NoteOrigin, comm: Comm, completion: &Completion) {
        let Completion { ring, request, user_data, result, flags } = *completion;
        let by_data = || self.by_data.get(&(at.host, ring, user_data)).copied();
        let is_open = |request: &i64| self.open.contains_key(&(at.host, *request));
        let named = Some(request).filter(|request| *request != 0);
        let (has_more, is_notice) = (flags & HAS_MORE != 0, flags & IS_NOTICE != 0);
        let is_of_ring = |request: &i64| self.open.get(&(at.host, *request)).is_some_and(|open| open.ring == ring);
        // A notice comes from a request of the kernel's own, for the one with the same number.
        let found = if is_notice { by_data().or(named) } else { named.or_else(by_data) };
        let Some(request) = found.filter(is_open).filter(is_of_ring) else {
            return self.ended_alone(uring, at, ring, named.is_none());
        };
        self.work(at, comm, request);
        let Some(open) = self.open.get_mut(&(at.host, request)) else { return };
        let effect = UringEffect::of(open.opcode);
        if !is_notice {
            open.moved.count(effect, result);
            open.result = result;
        }
        let open = *open;
        if uring.wants(at.cpu, open.owner, open.opcode) {
            let row = self.counts(open.owner, open.opcode);
            row.more += u64::from(has_more);
            if !is_notice {
                row.moved.count(effect, result);
            }
        }
        if has_more {
            return;
        }
        self.open.remove(&(at.host, request));
        self.forget_data(at.host, &open, request);
        self.done(uring, at, request, &open);
    }

    fn forget_data(&mut self, host: u16, open: &OpenRequest, request: i64) {
        let data = (host, open.ring, open.user_data);
        if self.by_data.get(&data) == Some(&request) {
            self.by_data.remove(&data);
        }
    }

    /// The last result of a request.
    fn done(&mut self, uring: &Uring, at: NoteOrigin, request: i64, open: &OpenRequest) {
        let OpenRequest { begin, opcode, owner, user_data, moved, result, .. } = *open;
        let wishes = &uring.wishes;
        if !uring.wants(at.cpu, owner, opcode) {
            return;
        }
        let wait_ns = open.handed_over.and_then(|(since, ..)| Some(open.started?.abs_diff(since)));
        let issued =
            |of: (bool, ThreadKey), before: u64| self.issued.get(&of).copied().unwrap_or(0).saturating_sub(before);
        let (submitter, before) = open.submitter;
        let by_workers = open.handed_over.map_or(0, |(_, pool, before)| issued((true, pool), before));
        let blocks = issued((false, submitter), before) + by_workers;
        let (latency, errno) = (begin.abs_diff(at.time), errno(Some(result)));
        let row = self.counts(owner, opcode);
        row.moved.requests += 1;
        row.moved.failures += u64::from(errno.is_some());
        if uring.holes.touch(begin, at.time) {
            row.lost_inside += 1;
            return;
        }
        let bytes = moved.read.max(moved.write);
        let is_sized =
            wishes.min_bytes.is_none_or(|min| min <= bytes) && wishes.max_bytes.is_none_or(|max| bytes <= max);
        if !wishes.wants_duration(latency) || !is_sized {
            return;
        }
        row.latencies.record(latency);
        row.errors += u64::from(errno.is_some());
        row.handovers += u64::from(open.handed_over.is_some());
        row.waits += u64::from(wait_ns.is_some());
        row.wait_ns = row.wait_ns.saturating_add(wait_ns.unwrap_or(0));
        row.wait_ns_max = row.wait_ns_max.max(wait_ns.unwrap_or(0));
        row.blocks += blocks;
        if let (Some(errno), Some(life)) = (errno, self.sums.lives.get_mut(&owner)) {
            *life.errors.entry((opcode, errno)).or_default() += 1;
        }
        let is_handed_over = open.handed_over.is_some();
        let slow = || SlowUringRequest {
            begin,
            end: at.time,
            owner,
            opcode,
            result,
            request,
            user_data,
            is_handed_over,
            wait_ns,
            blocks,
        };
        self.sums.slow.push(latency, slow);
    }

    /// A result of a request that was not seen to begin. If it names none, it may be a message from another ring.
    fn ended_alone(&mut self, uring: &Uring, at: NoteOrigin, ring: i64, is_loose: bool) {
        let is_lost = uring.holes.touch(i64::MIN, at.time);
        if is_loose && !is_lost {
            self.sums.loose += 1;
            return;
        }
        let owner = self.rings.get(&(at.host, ring)).copied().unwrap_or(ThreadKey { host: at.host, tid: -1 });
        let owner = self.life(owner);
        if uring.wishes.wants_tid(owner.0.tid) && uring.wishes.wants_cpu(Some(at.cpu)) {
            let row = self.counts(owner, Opcode::default());
            *if is_lost { &mut row.lost_inside } else { &mut row.began_before } += 1;
        }
    }

    /// A request whose last result was not seen.
    fn left_open(&mut self, uring: &Uring, open: &OpenRequest) {
        if !uring.wishes.wants_tid(open.owner.0.tid) || !uring.wants_opcode(open.opcode) {
            return;
        }
        let is_lost = uring.holes.touch(open.begin, i64::MAX);
        let row = self.counts(open.owner, open.opcode);
        *match (open.is_silent, is_lost) {
            (true, _) => &mut row.silent,
            (false, true) => &mut row.lost_inside,
            (false, false) => &mut row.never_ended,
        } += 1;
    }

    /// Too many are open: the older half are given up.
    #[cold]
    fn give_up(&mut self, uring: &Uring) {
        let mut begins: Vec<i64> = self.open.values().map(|open| open.begin).collect();
        let middle = begins.len() / 2;
        let (_, &mut border, _) = begins.select_nth_unstable(middle);
        let old: Vec<_> = self.open.extract_if(|_, open| open.begin <= border).collect();
        for ((host, request), open) in old {
            self.forget_data(host, &open, request);
            self.left_open(uring, &open);
        }
        self.waiting.clear();
    }

    /// The answer so far.
    pub(super) fn findings(mut self, uring: &Uring) -> UringFindings {
        let open: Vec<OpenRequest> = self.open.values().copied().collect();
        open.iter().for_each(|open| self.left_open(uring, open));
        UringFindings::new(uring, self.sums)
    }
}
