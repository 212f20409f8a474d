//! What is counted of requests: by the life of the thread that owns them, and by opcode.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::opcodes::UringEffect;
use super::{Opcode, Uring};
use crate::ranking::Ranking;
use crate::threads::ThreadKey;
use crate::{Comm, Histogram, Merge};

/// A life of a thread: its number among all that the thread's number had, from 0.
pub(crate) type UringOwner = (ThreadKey, u32);

/// The requests of an opcode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UringRow {
    /// From submission to the last completion.
    pub(crate) latencies: Histogram,
    pub(super) errors: u64,
    pub(super) handovers: u64,
    /// Of those, how many are known to have waited how long for a worker.
    pub(super) waits: u64,
    pub(super) wait_ns: u64,
    pub(super) wait_ns_max: u64,
    pub(super) blocks: u64,
    /// Results before the last one.
    pub(super) more: u64,
    pub(super) began_before: u64,
    pub(super) never_ended: u64,
    pub(super) silent: u64,
    pub(super) lost_inside: u64,
    pub(crate) moved: UringMoves,
}

/// Bytes and requests, however long they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UringMoves {
    pub(crate) read: u64,
    pub(crate) write: u64,
    /// Requests that are over.
    pub(crate) requests: u64,
    /// Those that failed.
    pub(crate) failures: u64,
}

/// A life with requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct UringLife {
    pub(crate) comm: Comm,
    pub(crate) pid: Option<i32>,
    pub(crate) rows: BTreeMap<Opcode, UringRow>,
    /// Requests that failed, by opcode and number of the error.
    pub(super) errors: BTreeMap<(Opcode, u16), u64>,
}

/// A request that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct SlowUringRequest {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) owner: UringOwner,
    pub(crate) opcode: Opcode,
    pub(crate) result: i64,
    pub(super) request: i64,
    pub(super) user_data: i64,
    pub(super) is_handed_over: bool,
    pub(super) wait_ns: Option<u64>,
    pub(super) blocks: u64,
}

/// All that is counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UringSums {
    pub(super) lives: BTreeMap<UringOwner, UringLife>,
    pub(super) slow: Ranking<SlowUringRequest>,
    /// Results that belong to no request: messages to a ring from another one.
    pub(super) loose: u64,
}

impl UringMoves {
    /// Bytes of one result.
    pub(super) fn count(&mut self, effect: UringEffect, result: i64) {
        let bytes = result.max(0).cast_unsigned();
        if matches!(effect, UringEffect::Read | UringEffect::Both) {
            self.read = self.read.saturating_add(bytes);
        }
        if matches!(effect, UringEffect::Write | UringEffect::Both) {
            self.write = self.write.saturating_add(bytes);
        }
    }
}

impl Merge for UringRow {
    fn merge(&mut self, later: Self) {
        self.latencies.merge(later.latencies);
        self.errors += later.errors;
        self.handovers += later.handovers;
        self.waits += later.waits;
        self.wait_ns = self.wait_ns.saturating_add(later.wait_ns);
        self.wait_ns_max = self.wait_ns_max.max(later.wait_ns_max);
        self.blocks += later.blocks;
        self.more += later.more;
        self.began_before += later.began_before;
        self.never_ended += later.never_ended;
        self.silent += later.silent;
        self.lost_inside += later.lost_inside;
        self.moved.read = self.moved.read.saturating_add(later.moved.read);
        self.moved.write = self.moved.write.saturating_add(later.moved.write);
        self.moved.requests += later.moved.requests;
        self.moved.failures += later.moved.failures;
    }
}

impl Merge for UringLife {
    fn merge(&mut self, later: Self) {
        self.comm = self.comm.or(later.comm);
        self.pid = self.pid.or(later.pid);
        for (opcode, row) in later.rows {
            self.rows.entry(opcode).or_default().merge(row);
        }
        for (error, count) in later.errors {
            *self.errors.entry(error).or_default() += count;
        }
    }
}

impl UringSums {
    pub(super) fn new(uring: &Uring) -> Self {
        // Names of threads are only known at the end.
        let wanted = uring.wishes.comms.is_empty().then_some(uring.slow);
        Self { lives: BTreeMap::new(), slow: Ranking::new(wanted), loose: 0 }
    }
}
