//! Counts of operations in any order, and acts that have to wait for their place in the order of
//! time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use super::acts::{EndedLife, FileAct};
use super::log::{Log, Renumbered};
use super::over::EndedIoLives;
use super::sums::{IoSums, OperationLimits, SLOW};
use super::{IoEntry, IoExit};
use crate::calls::{self, EventPosition, LifeView, ThreadLife};
use crate::threads::ThreadKey;
use crate::{Histogram, Merge, Wishes};

/// Operations of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IoRun {
    pub(super) rows: IoRows,
    /// The acts that wait for their thread.
    pub(super) acts: Vec<(EventPosition, FileAct)>,
}

/// Operations of a thread's life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoRows {
    pub(super) sums: IoSums,
    /// Latencies of each category, if only some threads are asked for.
    pub(super) latencies: Option<Box<[Histogram; 4]>>,
}

/// Packets and bytes of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
    pub(super) received_bytes: u64,
}

/// The counts of all threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IoTotals {
    pub(super) log: Log,
    pub(super) over: EndedIoLives,
    /// Of each category.
    pub(super) latencies: [Histogram; 4],
    pub(super) interfaces: BTreeMap<(u16, Box<[u8]>), Traffic>,
    /// How long the slowest ones took here.
    #[serde(skip)]
    longest_ns: BinaryHeap<Reverse<u64>>,
}

impl IoRun {
    /// Counts that were reported.
    pub(super) fn told(sums: IoSums) -> Self {
        Self { rows: IoRows { sums, latencies: None }, acts: Vec::new() }
    }

    /// Takes the acts that wait for their thread, in their order, and resets their counts: the
    /// reported acts carry them.
    #[inline]
    pub(super) fn tell(&mut self) -> std::vec::Drain<'_, (EventPosition, FileAct)> {
        self.rows.sums = IoSums::default();
        self.acts.drain(..)
    }

    /// Forgets the counts, but not changes of fds.
    pub(super) fn forget(&mut self) {
        self.rows = IoRows::default();
        self.acts.retain_mut(|(_, act)| act.forget());
    }

    /// Whether nothing waits for its thread.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.acts.is_empty() && self.rows.sums == IoSums::default() && self.rows.latencies.is_none()
    }

    /// Something happens that concerns files.
    #[inline]
    pub(super) fn act(&mut self, place: EventPosition, act: FileAct) {
        self.acts.push((place, act));
    }

    /// Adds the later counts of the same run.
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

impl IoTotals {
    /// Nothing is known yet.
    pub(super) fn new(wishes: &Wishes) -> Self {
        Self {
            log: Log::default(),
            over: EndedIoLives::new(wishes, wishes.top.unwrap_or(SLOW)),
            latencies: Default::default(),
            interfaces: BTreeMap::new(),
            longest_ns: BinaryHeap::new(),
        }
    }

    /// Forgets the counts; but not changes of fds, and the lives.
    pub(super) fn forget(&mut self, wishes: &Wishes) {
        let Self { mut log, over, .. } = std::mem::replace(self, Self::new(wishes));
        log.forget();
        (self.log, self.over.last, self.over.firsts) = (log, over.last, over.firsts);
    }

    /// Logs something.
    pub(super) fn log(&mut self, place: EventPosition, key: ThreadKey, act: FileAct) {
        self.log.push(place, key, act);
    }

    /// A life is over.
    pub(super) fn over(&mut self, wishes: &Wishes, life: LifeView<'_, IoRows>) {
        let LifeView { key, number, comm, pid, is_forked, since, until, rows } = life;
        let who = ThreadLife { key, number, comm, pid };
        let IoRows { sums, latencies } = std::mem::take(rows);
        self.over.known(who, is_forked);
        let is_wanted = wishes.wants_thread(key.tid, || comm.text());
        if let Some(latencies) = latencies.filter(|_| is_wanted) {
            self.latencies.iter_mut().zip(latencies.iter()).for_each(|(all, own)| all.merge_from(own));
        }
        if sums != IoSums::default() {
            self.log(until, key, FileAct::Over(Box::new(EndedLife { who, since, sums, is_wanted })));
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

    /// Adds others.
    pub(super) fn add(&mut self, other: Self, numbers: &Renumbered) {
        self.over.add(other.over, &numbers.bases);
        self.log.add(other.log, numbers);
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
    pub(super) fn is_slow(&mut self, limits: &OperationLimits, ns: u64) -> bool {
        if limits.slow == 0 {
            return false;
        }
        // Of the slowest ones of a thread that is selected, it is not known here that it is
        // selected.
        let is_full = self.longest_ns.len() >= limits.slow && !limits.is_by_thread;
        // The heap has the durations alone. It keeps most candidates away from the log, and the log
        // from growing with each operation.
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

/// Gives the counts and acts of a run to its thread.
#[inline]
pub(super) fn count(totals: &mut IoTotals, key: ThreadKey, rows: &mut IoRows, run: IoRun) {
    rows.add(run.rows);
    totals.log.extend(key, run.acts);
}

/// Logs the facts about threads and processes in a note.
pub(super) fn log_note(totals: &mut IoTotals, note: &calls::CallNote<IoEntry, IoExit, IoRun>) {
    match note {
        calls::CallNote::Run(end) if end.is_dead => totals.log(end.place, end.key, FileAct::Died),
        calls::CallNote::End(end) if end.is_dead => totals.log(end.place, end.key, FileAct::Died),
        calls::CallNote::Run(_) | calls::CallNote::End(_) => {}
        calls::CallNote::Fork { place, child, parent } => {
            let (pid, parent_key) = (parent.and_then(|parent| parent.pid), parent.map(|parent| parent.key));
            totals.log(*place, child.key, FileAct::Fork(child.pid, pid, parent_key));
        }
        calls::CallNote::Known { place, told } => {
            if let Some(pid) = told.pid {
                totals.log(*place, told.key, FileAct::Known(pid));
            }
        }
    }
}
