//! The remains of lives that are over: the rows that may be shown, sums of processes, names.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};

use super::acts::EndedLife;
use super::file::FileKey;
use super::sums::{BytesByKind, IoSums, SlowOperation};
use crate::Wishes;
use crate::calls::{Bases, ThreadLife};
use crate::ranking::Ranking;
use crate::threads::ThreadKey;

/// The operations of a life.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadIo {
    /// Of two with as many bytes, that with more operations comes first.
    operations: Reverse<u64>,
    pub(super) who: ThreadLife,
    pub(super) sums: IoSums,
    pub(super) kinds: BytesByKind,
}

/// An operation that took long, and its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlowUse {
    pub(super) slow: SlowOperation,
    pub(super) file: Option<FileKey>,
    pub(super) who: ThreadLife,
}

/// The remains of lives that are over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndedIoLives {
    /// Operations by life.
    pub(super) threads: Ranking<ThreadIo>,
    /// By machine and process.
    pub(super) processes: HashMap<(u16, Option<i32>), (IoSums, BytesByKind)>,
    /// Operations of unknown threads.
    pub(super) unknown: (IoSums, BytesByKind),
    pub(super) slow: Ranking<SlowUse>,
    /// The last life of each thread that may give its name to something: to its process, or to fds
    /// of an unknown process.
    pub(super) last: HashMap<ThreadKey, ThreadLife>,
    /// Threads that were there before anything else was known of them, when the trace is over.
    #[serde(skip)]
    pub(super) firsts: HashSet<ThreadKey>,
}

impl EndedIoLives {
    pub(super) fn new(wishes: &Wishes, slow: usize) -> Self {
        Self {
            threads: Ranking::new(wishes.top),
            processes: HashMap::default(),
            unknown: Default::default(),
            slow: Ranking::new(Some(slow)),
            last: HashMap::default(),
            firsts: HashSet::default(),
        }
    }

    /// Notes the identity of a life that is over.
    pub(super) fn known(&mut self, who: ThreadLife, is_forked: bool) {
        if who.number == 0 {
            self.firsts.insert(who.key);
        }
        // A life with a known process from its fork on did nothing outside of that process.
        if is_forked && who.pid.is_some_and(|pid| pid != who.key.tid) {
            return;
        }
        let last = self.last.entry(who.key).or_insert(who);
        if last.number <= who.number {
            *last = who;
        }
    }

    /// Counts a life that is over, with the kinds of its files.
    pub(super) fn take(&mut self, whole: &EndedLife, kinds: &BytesByKind) {
        let EndedLife { who, sums, .. } = whole;
        let (all, all_kinds) = self.processes.entry((who.key.host, who.pid)).or_default();
        all.add(sums);
        all_kinds.add(kinds);
        if who.key.tid <= 0 {
            self.unknown.0.add(sums);
            self.unknown.1.add(kinds);
        } else {
            let row = || ThreadIo { operations: Reverse(sums.operations()), who: *who, sums: *sums, kinds: *kinds };
            self.threads.push(sums.bytes(), row);
        }
    }

    /// Adds those of another part, whose lives count from these numbers on.
    pub(super) fn add(&mut self, other: Self, bases: &Bases) {
        self.threads.merge_changed(other.threads, |row| row.who.rebase(bases));
        self.slow.merge_changed(other.slow, |slow| slow.who.rebase(bases));
        for (process, (sums, kinds)) in other.processes {
            let (all, all_kinds) = self.processes.entry(process).or_default();
            all.add(&sums);
            all_kinds.add(&kinds);
        }
        self.unknown.0.add(&other.unknown.0);
        self.unknown.1.add(&other.unknown.1);
        for mut who in other.last.into_values() {
            who.rebase(bases);
            self.known(who, false);
        }
    }
}
