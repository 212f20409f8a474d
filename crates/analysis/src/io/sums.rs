//! The sums of operations on files: which operations count, their number and bytes, and the slowest
//! of them.

use serde::{Deserialize, Serialize};

use super::file::{FileKey, IoFileKind};
use super::ops::Category;
use crate::Wishes;
use crate::calls::{CallId, EventPosition};
use crate::names::Renumbering;

/// The use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileUse {
    pub(super) bytes: u64,
    pub(super) category: Category,
    pub(super) is_error: bool,
    /// The second operation of one call.
    pub(super) is_second: bool,
}

/// An operation that took long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlowOperation {
    pub(super) ns: u64,
    pub(super) begin: EventPosition,
    pub(super) end: EventPosition,
    pub(super) call: CallId,
    pub(super) ret: Option<i64>,
    /// Path, for an open.
    pub(super) path: Option<Box<[u8]>>,
}

/// Operations and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IoSums {
    pub(super) read: u64,
    pub(super) write: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) opens: u64,
    pub(super) syncs: u64,
    pub(super) errors: u64,
}

/// Bytes that were read, and that were written: disk, net. The others are of unknown kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BytesByKind {
    pub(super) read: [u64; 2],
    pub(super) write: [u64; 2],
}

/// The uses of a thread since a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUses {
    pub(super) since: EventPosition,
    pub(super) kinds: BytesByKind,
    pub(super) slow: Vec<(SlowOperation, Option<FileKey>)>,
}

/// Which operations count.
#[derive(Clone, Debug)]
pub struct OperationLimits {
    min_ns: u64,
    max_ns: u64,
    min_bytes: u64,
    max_bytes: u64,
    cpus: Vec<u32>,
    tids: Vec<i64>,
    pub(super) is_by_thread: bool,
    pub(super) slow: usize,
}

/// How many of the slowest operations are shown by default.
pub(super) const SLOW: usize = 10;

/// Room for candidates for the slowest operations beyond those that are asked for. The list is
/// sorted once for so many new ones.
const CANDIDATES: usize = 64;

impl FileUse {
    /// A path is opened.
    pub(super) fn open(is_error: bool) -> Self {
        Self { bytes: 0, category: Category::Open, is_error, is_second: false }
    }

    /// Whether it moves bytes, and it is known of which kind of file these are.
    #[inline]
    pub(super) fn moves(&self, kind: IoFileKind) -> bool {
        self.bytes > 0 && kind != IoFileKind::Unknown
    }
}

impl IoSums {
    pub(super) fn bytes(&self) -> u64 {
        self.read.saturating_add(self.write)
    }

    pub(super) fn operations(&self) -> u64 {
        self.reads + self.writes + self.opens + self.syncs
    }

    /// Adds an operation.
    #[inline]
    pub(super) fn count(&mut self, used: FileUse) {
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

impl BytesByKind {
    pub(super) fn add(&mut self, other: &Self) {
        let add = |own: &mut [u64; 2], more: &[u64; 2]| {
            own.iter_mut().zip(more).for_each(|(own, more)| *own = own.saturating_add(*more));
        };
        add(&mut self.read, &other.read);
        add(&mut self.write, &other.write);
    }

    /// Counts bytes of an operation on a file.
    #[inline]
    pub(super) fn count(&mut self, kind: IoFileKind, used: FileUse) {
        let Self { read, write } = self;
        let bytes = if used.category == Category::Read { &mut read[kind as usize] } else { &mut write[kind as usize] };
        *bytes = bytes.saturating_add(used.bytes);
    }
}

impl ThreadUses {
    pub(super) fn new(since: EventPosition) -> Self {
        Self { since, kinds: BytesByKind::default(), slow: Vec::new() }
    }

    /// Names have other numbers now.
    pub(super) fn rename(&mut self, names: &Renumbering) {
        self.slow.iter_mut().for_each(|(_, file)| *file = file.map(|file| file.renamed(names)));
    }

    /// One of the slowest operations, perhaps.
    pub(super) fn slow(&mut self, limits: &OperationLimits, slow: SlowOperation, file: Option<FileKey>) {
        self.slow.push((slow, file));
        if self.slow.len() > limits.slow.saturating_add(CANDIDATES) {
            // Ties are broken by all fields, so the result does not depend on how the trace was
            // cut.
            self.slow.sort_unstable_by(|one, other| other.0.ns.cmp(&one.0.ns).then_with(|| one.cmp(other)));
            self.slow.truncate(limits.slow);
        }
    }
}

impl OperationLimits {
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

    /// Whether operations of a thread count for files.
    #[inline]
    pub(super) fn wants(&self, tid: i32) -> bool {
        self.tids.is_empty() || self.tids.contains(&i64::from(tid))
    }

    /// Whether operations that end on a CPU count.
    #[inline]
    pub(super) fn counts_on(&self, cpu: u32) -> bool {
        self.cpus.is_empty() || self.cpus.contains(&cpu)
    }

    /// Whether one that took so long, and moved so many bytes, is among those whose latency is asked for.
    #[inline]
    pub(super) fn times(&self, ns: u64, bytes: u64) -> bool {
        (self.min_ns..=self.max_ns).contains(&ns) && (self.min_bytes..=self.max_bytes).contains(&bytes)
    }
}
