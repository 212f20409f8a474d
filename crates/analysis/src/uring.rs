//! Requests of io_uring, from submission to completion, for the analyses that count them (`io`, `syscalls`).
//!
//! ```text
//! thread 7        submit ─┐ hand over ─┐                              7 owns the request
//! iou-wrk-7               │            └── runs ── file ── complete ─┐ waited for a worker: from "hand over" to "runs"
//!                         └────────────────── latency ───────────────┘
//! ```
//!
//! A request is known by its address, which the kernel uses again; some results name only the ring and the number that
//! the program gave. Who owns a request, and which results are its, depends on everything before. So a state that
//! nothing comes before follows requests as they come (`follow`), and other states only collect notes, packed, which are
//! followed when the state before is known. The same notes in the same order give the same answer, wherever the trace
//! was cut.

mod follow;
mod lane;
mod opcodes;
pub(crate) mod report;
mod sums;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::roles::{EventRole, FieldIndex, uring};
use crate::windows::Windows;
use crate::{Comm, LaneFacts, Setup, Wishes};

use follow::UringRequests;
pub(crate) use lane::UringLane;
pub(crate) use opcodes::UringEffect;
pub(crate) use report::UringFindings;
pub(crate) use sums::{SlowUringRequest, UringMoves};

/// How requests are followed in a trace.
#[derive(Debug)]
pub(crate) struct Uring {
    lanes: Vec<LaneFacts>,
    /// Where events of any lane may be missing.
    holes: Windows,
    wishes: Wishes,
    /// The trace has such events.
    is_any: bool,
    /// How many of the slowest requests are kept.
    slow: usize,
}

/// The state behind a part of the trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct UringState {
    /// If nothing comes before.
    requests: Option<Box<UringRequests>>,
    /// Otherwise the notes, one after the other.
    notes: Vec<u8>,
}

/// An opcode by its name: no name is longer than that of a thread may be.
type Opcode = Comm;

/// A thread that runs, and its name when it began to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Runner {
    tid: i32,
    comm: Comm,
}

/// The note of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UringNote {
    cpu: u32,
    /// The thread that the CPU ran; `None`: that from before the part.
    runner: Option<Runner>,
    fact: UringFact,
}

/// What an event tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum UringFact {
    Submit(Submission),
    /// The request is handed over to a worker.
    Queue(i64),
    /// The file of the request is looked up.
    File(i64),
    Complete(Completion),
    /// The ring is made, or used.
    Ring(i64, bool),
    /// A request goes to a disk.
    Block,
    /// A worker begins to run.
    Work,
    /// The first switch of a CPU in a part: the thread that ran until then.
    First(Runner),
    /// The thread had this name when it stopped running.
    Renamed(i32, Comm),
    /// A thread dies.
    Died(i32),
    /// A thread is made: its process and its name.
    Fork(i32, Option<i32>, Comm),
    /// A thread is of that process, and has that name.
    Known(i32, Option<i32>, Comm),
    /// The part ends while the CPU runs the runner.
    Last,
    /// The counts are forgotten.
    Forget,
}

/// A request is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Submission {
    ring: i64,
    request: i64,
    user_data: i64,
    opcode: Opcode,
    /// No completion is asked for, unless it fails.
    is_silent: bool,
    /// A thread of the kernel submits, for the owner of the ring.
    is_by_kernel: bool,
}

/// A result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Completion {
    ring: i64,
    /// 0: only the ring and the program's number are known.
    request: i64,
    user_data: i64,
    result: i64,
    flags: i64,
}

/// How many of the slowest requests are shown by default.
const SLOW: usize = 10;
/// `IOSQE_CQE_SKIP_SUCCESS`.
const SKIPS_COMPLETION: i64 = 1 << 6;
/// `IORING_CQE_F_MORE`.
const HAS_MORE: i64 = 1 << 1;
/// `IORING_CQE_F_NOTIF`: the buffer of a request with an earlier result can be used again.
const IS_NOTICE: i64 = 1 << 3;
/// Names of workers and of threads that submit begin so; the number of the thread that they work for follows.
const WORKER: &str = "iou-wrk-";
const SUBMITTER: &str = "iou-sqp-";

impl Uring {
    /// Roles and fields that it needs, beside those that tell of threads.
    pub(crate) fn roles() -> Vec<(EventRole, Vec<FieldIndex>)> {
        use uring::{BY_KERNEL, OPCODE, REQUEST, REQUEST_FLAGS, RESULT, RESULT_FLAGS, RING, RING_FD, USER_DATA};
        vec![
            (EventRole::UringSubmit, vec![RING, REQUEST, USER_DATA, OPCODE, REQUEST_FLAGS, BY_KERNEL]),
            (EventRole::UringQueue, vec![RING, REQUEST]),
            (EventRole::UringFile, vec![RING, REQUEST]),
            (EventRole::UringComplete, vec![RING, REQUEST, USER_DATA, RESULT, RESULT_FLAGS]),
            (EventRole::UringRing, vec![RING, RING_FD]),
        ]
    }

    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        let wishes = setup.wishes.clone();
        let mut roles = setup.classes.iter().flat_map(|class| &class.roles);
        let is_any = roles.any(|bound| matches!(bound.role, EventRole::UringSubmit | EventRole::UringComplete));
        let slow = wishes.top.unwrap_or(SLOW);
        Self { lanes: setup.lanes.to_vec(), holes: setup.holes(), wishes, is_any, slow }
    }

    /// Whether the trace has such events.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any
    }

    fn wants(&self, cpu: u32, owner: sums::UringOwner, opcode: Opcode) -> bool {
        self.wishes.wants_tid(owner.0.tid) && self.wishes.wants_cpu(Some(cpu)) && self.wants_opcode(opcode)
    }

    fn wants_opcode(&self, opcode: Opcode) -> bool {
        self.wishes.names.is_empty() || self.wishes.wants_called(&opcode.to_string())
    }

    fn host(&self, lane: u32) -> u16 {
        self.lanes.get(lane as usize).map_or(0, |lane| lane.host)
    }

    /// A note of a lane.
    pub(crate) fn note(&self, state: &mut UringState, lane: usize, time: i64, note: &UringNote) {
        match &mut state.requests {
            Some(requests) => requests.follow(self, lane as u32, time, note),
            None => {
                let bytes = std::mem::take(&mut state.notes);
                let bytes = postcard::to_extend(&(lane as u32, time, note), bytes);
                state.notes = bytes.expect("a vector takes all bytes, and notes have lengths");
            }
        }
    }

    /// The part of a lane ends.
    pub(crate) fn leave(&self, state: &mut UringState, lane: usize, end: UringLane<'_>) {
        end.last().for_each(|note| self.note(state, lane, i64::MAX, &note));
    }

    /// Adds the part that follows.
    pub(crate) fn merge(&self, left: &mut UringState, right: UringState) {
        match &mut left.requests {
            Some(requests) => self.follow_all(requests, &right.notes),
            None => left.notes.extend(right.notes),
        }
    }

    /// Nothing comes before.
    pub(crate) fn anchor(&self, state: &mut UringState) {
        if state.requests.is_none() {
            state.requests = Some(Box::new(self.requests(state)));
            state.notes = Vec::new();
        }
    }

    /// Forgets the counts.
    pub(crate) fn forget(&self, state: &mut UringState) {
        if self.is_any {
            self.note(state, 0, i64::MAX, &UringNote { cpu: 0, runner: None, fact: UringFact::Forget });
        }
    }

    /// The answer so far.
    pub(crate) fn finish(&self, state: &UringState) -> UringFindings {
        self.requests(state).findings(self)
    }

    fn requests(&self, state: &UringState) -> UringRequests {
        let new = || UringRequests::new(self);
        let mut requests = state.requests.as_deref().map_or_else(new, Clone::clone);
        self.follow_all(&mut requests, &state.notes);
        requests
    }

    fn follow_all(&self, requests: &mut UringRequests, mut notes: &[u8]) {
        // Bytes from elsewhere may be anything: what cannot be read ends them.
        while let Ok(((lane, time, note), rest)) = postcard::take_from_bytes::<(u32, i64, UringNote)>(notes) {
            requests.follow(self, lane, time, &note);
            notes = rest;
        }
    }
}

/// The number behind the beginning of a thread's name.
fn works_for(comm: Comm, beginning: &str) -> Option<i32> {
    let bytes = comm.bytes();
    let digits = bytes.strip_prefix(beginning.as_bytes())?.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
