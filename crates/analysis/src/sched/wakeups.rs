//! Wakeups: how long threads waited for a CPU, by priority, and those that took longest.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Sched;
use super::doing::{EndedWait, Start, WakeSource};
use super::row::SchedRow;
use crate::ranking::Ranking;
use crate::threads::{ThreadId, ThreadKey};
use crate::{Histogram, Merge};

/// One wakeup.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Wakeup {
    pub(super) thread: ThreadId,
    pub(super) waited: EndedWait,
    pub(super) start: Start,
}

/// Wakeups of a priority.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Priority {
    pub(super) latencies: Histogram,
    pub(super) lost_inside: u64,
}

/// What wakeups add up to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Wakeups {
    pub(super) priorities: BTreeMap<Option<i32>, Priority>,
    /// Measured ones that ended on another CPU than was meant.
    pub(super) wrong_cpu: u64,
    pub(super) longest: Ranking<Wakeup>,
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

impl Wakeups {
    pub(super) fn new(top: usize) -> Self {
        Self { priorities: BTreeMap::new(), wrong_cpu: 0, longest: Ranking::new(Some(top)) }
    }

    /// A thread has waited for a CPU; whether that may be shown.
    pub(super) fn count(&mut self, sched: &Sched, thread: ThreadId, row: &mut SchedRow, waited: EndedWait) -> bool {
        let ns = waited.begin.abs_diff(waited.end);
        let is_counted = row.has_counted(waited.begin);
        let known = row.wakers.of(waited.wait.waker);
        known.count += u64::from(!is_counted);
        let Some(start) = waited.start else {
            row.lost_inside += 1;
            return false;
        };
        if !sched.wants(thread, start, ns) {
            return false;
        }
        let priority = self.priorities.entry(start.prio).or_default();
        if !sched.is_whole(waited.begin, waited.end) {
            row.lost_inside += 1;
            priority.lost_inside += 1;
            return false;
        }
        known.total_ns += ns;
        row.latencies.record(ns);
        priority.latencies.record(ns);
        self.wrong_cpu += u64::from(waited.wait.target.is_some_and(|target| target != start.cpu));
        self.longest.push(ns, || Wakeup { thread, waited, start })
    }

    pub(super) fn merge(&mut self, right: Self, who: impl Fn(WakeSource) -> WakeSource) {
        for (prio, priority) in right.priorities {
            let known = self.priorities.entry(prio).or_default();
            known.latencies.merge(priority.latencies);
            known.lost_inside += priority.lost_inside;
        }
        self.wrong_cpu += right.wrong_cpu;
        self.longest.merge_changed(right.longest, |wakeup| {
            wakeup.thread = identified(wakeup.thread, &who);
            wakeup.waited.wait.waker = who(wakeup.waited.wait.waker);
        });
    }
}

/// Which life that is.
pub(super) fn identified(id: ThreadId, who: impl Fn(WakeSource) -> WakeSource) -> ThreadId {
    if let WakeSource::Thread(id) = who(WakeSource::Thread(id)) { id } else { id }
}
