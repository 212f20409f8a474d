//! Lives that are over, as far as an answer can need them: rows that may be shown, and sums.
//!
//! ```text
//! life ──is over──> sums, distributions                    of all
//!              └──> rankings: waits, runs, states, ...     only rows that may be shown
//!              └──> its name                               as long as a row, or a living thread, refers to it
//! ```

use std::cmp::Ordering;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};

use super::Sched;
use super::doing::{CurrentCall, EndedWait, STATES, WakeSource};
use super::row::SchedRow;
use super::sums::{DurationSums, DurationsByKey};
use super::wakeups::{Wakeups, identified};
use crate::ranking::Ranking;
use crate::threads::{ThreadId, ThreadKey};
use crate::{Comm, Histogram};

/// A row of a table; there is one of each key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeyedRow<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

/// How long a life waited for CPUs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LifeWaits {
    pub(super) latencies: Histogram,
    pub(super) never_ended: bool,
    pub(super) lost_inside: u64,
    pub(super) unseen: u64,
}

/// How long a life ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LifeRuns {
    pub(super) lengths: Histogram,
    pub(super) cut: u64,
    pub(super) preemptions: u64,
    pub(super) migrations: u64,
}

/// How long a life was blocked in a call.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Blocked {
    pub(super) times: DurationSums,
    /// From its begin to its end.
    pub(super) whole_ns: u64,
}

/// The parts of a life that are shown wherever it is named.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) number: u32,
    pub(super) comm: Comm,
    pub(super) pid: Option<i32>,
}

/// Sums over lives.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LifeTotals {
    pub(super) never_ended: u64,
    pub(super) lost_inside: u64,
    pub(super) unseen: u64,
}

/// Lives that are over.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EndedSchedLives {
    pub(super) wakeups: Wakeups,
    pub(super) totals: LifeTotals,
    pub(super) waits: Ranking<KeyedRow<ThreadId, LifeWaits>>,
    pub(super) runs: Ranking<KeyedRow<ThreadId, LifeRuns>>,
    pub(super) states: Ranking<KeyedRow<ThreadId, [u64; STATES.len()]>>,
    pub(super) blocked: Ranking<KeyedRow<(ThreadId, CurrentCall), Blocked>>,
    /// By woken thread and waker: how long that took.
    pub(super) wakers: Ranking<KeyedRow<(ThreadId, WakeSource), u64>>,
    /// By woken thread: some of the wakers are known to the part before only.
    pub(super) unknown: Vec<(ThreadId, DurationsByKey<WakeSource>)>,
    /// The lives with names that are needed; nothing, while a life is not over.
    pub(super) names: HashMap<ThreadId, Option<Name>>,
    /// So many names are worth looking which ones are needed.
    names_max: usize,
}

/// Names that are kept without being looked at.
const NAMES: usize = 1 << 14;

impl<K: Ord, V> Ord for KeyedRow<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<K: Ord, V> PartialOrd for KeyedRow<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, V> PartialEq for KeyedRow<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K: Ord, V> Eq for KeyedRow<K, V> {}

/// Whether any waker is not known.
fn is_unknown(wakers: &DurationsByKey<WakeSource>) -> bool {
    wakers.iter().any(|(who, _)| matches!(who, WakeSource::Before(..)))
}

impl EndedSchedLives {
    pub(super) fn new(sched: &Sched) -> Self {
        let top = sched.wishes.top;
        Self {
            wakeups: Wakeups::new(sched.top()),
            totals: LifeTotals::default(),
            waits: Ranking::new(top),
            runs: Ranking::new(top),
            states: Ranking::new(top),
            blocked: Ranking::new(top),
            wakers: Ranking::new(top),
            unknown: Vec::new(),
            names: HashMap::default(),
            names_max: NAMES,
        }
    }

    /// Takes a life that is over; whether it may be shown.
    pub(super) fn take(&mut self, sched: &Sched, id: ThreadId, row: &mut SchedRow) -> bool {
        if !sched.wishes.wants_thread(id.key.tid, || row.comm().text()) {
            return false;
        }
        self.totals.never_ended += u64::from(row.never_ended);
        self.totals.lost_inside += row.lost_inside;
        self.totals.unseen += row.unseen;
        let tables = &sched.tables;
        let waits = tables.thread && self.take_waits(id, row);
        let runs = tables.run && self.take_runs(id, row);
        let states = tables.state && self.take_states(id, row);
        let wakers = tables.waker && self.take_wakers(id, &row.wakers);
        waits || runs || states || wakers
    }

    fn take_waits(&mut self, id: ThreadId, row: &mut SchedRow) -> bool {
        let SchedRow { never_ended, lost_inside, unseen, .. } = *row;
        let size = size(&row.latencies, lost_inside + unseen + u64::from(never_ended));
        let latencies = &mut row.latencies;
        let keyed = || {
            let latencies = std::mem::take(latencies);
            KeyedRow { key: id, value: LifeWaits { latencies, never_ended, lost_inside, unseen } }
        };
        size > 0 && self.waits.push(size, keyed)
    }

    fn take_runs(&mut self, id: ThreadId, row: &mut SchedRow) -> bool {
        let SchedRow { cut, preemptions, migrations, .. } = *row;
        let size = size(&row.lengths, cut + preemptions + migrations);
        let lengths = &mut row.lengths;
        let keyed = || {
            let lengths = std::mem::take(lengths);
            KeyedRow { key: id, value: LifeRuns { lengths, cut, preemptions, migrations } }
        };
        size > 0 && self.runs.push(size, keyed)
    }

    fn take_states(&mut self, id: ThreadId, row: &SchedRow) -> bool {
        let [running, preempted, waiting, blocked, new, _] = row.times_ns;
        let active = running + preempted + waiting;
        // Lives that did anything come before those that only were there.
        let keyed = || KeyedRow { key: id, value: row.times_ns };
        let mut is_kept = active + blocked + new > 0 && self.states.push(active.saturating_add(1), keyed);
        for (call, times) in row.blocked.iter() {
            let value = || Blocked { times, whole_ns: row.times_ns.iter().sum() };
            is_kept |= self.blocked.push(times.total_ns, || KeyedRow { key: (id, call), value: value() });
        }
        is_kept
    }

    /// Takes the wakers of a life that is over; returns whether that may be shown.
    pub(super) fn take_wakers(&mut self, id: ThreadId, wakers: &DurationsByKey<WakeSource>) -> bool {
        if is_unknown(wakers) {
            wakers.iter().for_each(|(who, _)| self.ask(who));
            self.unknown.push((id, wakers.clone()));
            return true;
        }
        let mut is_kept = false;
        for (who, times) in wakers.some() {
            if self.wakers.push(times.count, || KeyedRow { key: (id, who), value: times.total_ns }) {
                self.ask(who);
                is_kept = true;
            }
        }
        is_kept
    }

    /// A thread has waited for a CPU.
    #[inline]
    pub(super) fn count(&mut self, sched: &Sched, id: ThreadId, row: &mut SchedRow, waited: EndedWait) {
        let waker = waited.wait.waker;
        if self.wakeups.count(sched, id, row, waited) {
            self.refer(id, row, waker);
        }
        if waited.wait.is_last && !row.awaits_last(waker) {
            self.forget(sched, id, row, waker);
        }
    }

    /// A life that is not over, and its waker, are in a row that may be shown.
    fn refer(&mut self, id: ThreadId, row: &mut SchedRow, waker: WakeSource) {
        row.is_referred = true;
        self.names.entry(id).or_default();
        self.ask(waker);
    }

    /// The name of a thread is needed.
    fn ask(&mut self, who: WakeSource) {
        if let WakeSource::Thread(id) = who {
            self.names.entry(id).or_default();
        }
    }

    /// A life that is over will not wake a life any more that is not.
    pub(super) fn forget(&mut self, sched: &Sched, id: ThreadId, row: &mut SchedRow, who: WakeSource) {
        if let Some(times) = row.wakers.remove(who).filter(|times| *times != DurationSums::default())
            && sched.tables.waker
            && sched.wishes.wants_thread(id.key.tid, || None)
            && self.wakers.push(times.count, || KeyedRow { key: (id, who), value: times.total_ns })
        {
            self.refer(id, row, who);
        }
    }

    /// The name of a life that is over, if a row needs it, or will do so.
    pub(super) fn name(&mut self, id: ThreadId, name: Name, is_needed: bool) {
        if is_needed {
            self.names.insert(id, Some(name));
        } else if let Some(asked) = self.names.get_mut(&id) {
            *asked = Some(name);
        }
    }

    /// Adds the part that follows. `before` says how many lives of a thread were before, and `who`
    /// resolves a waker.
    pub(super) fn merge(
        &mut self,
        right: Self,
        before: impl Fn(ThreadKey) -> u32,
        who: impl Fn(WakeSource) -> WakeSource,
    ) {
        self.wakeups.merge(right.wakeups, &who);
        self.totals.never_ended += right.totals.never_ended;
        self.totals.lost_inside += right.totals.lost_inside;
        self.totals.unseen += right.totals.unseen;
        self.waits.merge(right.waits);
        self.runs.merge(right.runs);
        self.states.merge(right.states);
        self.blocked.merge(right.blocked);
        self.wakers.merge_changed(right.wakers, |row| {
            row.key = (identified(row.key.0, &who), who(row.key.1));
        });
        for (id, mut wakers) in right.unknown {
            wakers.rekey(&who);
            self.take_wakers(id, &wakers);
        }
        for (id, name) in right.names {
            let name = name.map(|name| Name { number: name.number + before(id.key), ..name });
            let known = self.names.entry(identified(id, &who)).or_default();
            *known = known.or(name);
        }
    }

    /// Whether there are so many names that some may not be needed.
    pub(super) fn is_crowded(&self) -> bool {
        self.names.len() >= self.names_max
    }

    /// Forgets names that neither rows refer to nor current lives, which were woken by `others`.
    pub(super) fn sweep(&mut self, others: impl Iterator<Item = WakeSource>) {
        let mut needed: HashSet<ThreadId> = HashSet::default();
        needed.extend(self.waits.rows().map(|row| row.key));
        needed.extend(self.runs.rows().map(|row| row.key));
        needed.extend(self.states.rows().map(|row| row.key));
        needed.extend(self.blocked.rows().map(|row| row.key.0));
        needed.extend(self.wakers.rows().map(|row| row.key.0));
        needed.extend(self.wakeups.longest.rows().map(|wakeup| wakeup.thread));
        needed.extend(self.unknown.iter().map(|(id, _)| *id));
        let unknown = self.unknown.iter().flat_map(|(_, wakers)| wakers.iter().map(|(who, _)| who));
        let longest = self.wakeups.longest.rows().map(|wakeup| wakeup.waited.wait.waker);
        let shown = self.wakers.rows().map(|row| row.key.1).chain(longest).chain(unknown);
        needed.extend(
            shown.chain(others).filter_map(|who| if let WakeSource::Thread(id) = who { Some(id) } else { None }),
        );
        self.names.retain(|id, _| needed.contains(id));
        self.names_max = NAMES.max(2 * self.names.len());
    }
}

/// The sum of values, and one more if there is anything: seen values come before unseen ones.
fn size(values: &Histogram, others: u64) -> u64 {
    total_ns(values).saturating_add(u64::from(others + values.count() > 0))
}

pub(super) fn total_ns(values: &Histogram) -> u64 {
    u64::try_from(values.sum()).unwrap_or(u64::MAX)
}
