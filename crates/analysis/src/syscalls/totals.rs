//! The counts of all threads: each call, the slowest calls, and the rows of lives that are over.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};

use super::CallLimits;
use super::rows::{CANDIDATES, CallRow, CallRows, Detail, Others, SlowCall, shorten};
use crate::Wishes;
use crate::calls::{Bases, CallId, Figures, LifeView, ThreadLife};
use crate::ranking::Ranking;
use crate::threads::ThreadKey;

/// The counts of all threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SyscallTotals {
    /// Calls with names, by their place among the names.
    named: Vec<CallNameTotals>,
    /// Calls without.
    others: BTreeMap<CallId, CallNameTotals>,
    /// The slowest ones and their threads; more of them than asked for.
    slow: Vec<(SlowCall, ThreadLife)>,
    /// Calls of lives that are over.
    pub(super) threads: Ranking<ThreadCall>,
    /// Calls of unknown threads, when the trace is over.
    #[serde(skip)]
    pub(super) unknown: CallRows,
    /// Threads that were there before anything else was known of them, when the trace is over.
    #[serde(skip)]
    pub(super) firsts: HashSet<ThreadKey>,
    /// Memory of lives that are over.
    #[serde(skip)]
    spare: Vec<Vec<(CallId, CallRow)>>,
    /// Durations of the slowest ones here: a faster call is not among them.
    #[serde(skip)]
    longest_ns: BinaryHeap<Reverse<u64>>,
}

/// The counts of all calls of a name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CallNameTotals {
    pub(super) figures: Figures,
    pub(super) errors: u64,
    pub(super) others: Others,
    pub(super) detail: Detail,
}

/// A life's calls of a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadCall {
    pub(super) who: ThreadLife,
    pub(super) call: CallId,
    pub(super) row: CallRow,
}

/// Maximum number of kept lives; memory of further ones is given back.
const SPARE: usize = 64;

impl ThreadCall {
    fn id(&self) -> (ThreadKey, u32, CallId) {
        (self.who.key, self.who.number, self.call)
    }
}

impl PartialEq for ThreadCall {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for ThreadCall {}

impl PartialOrd for ThreadCall {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ThreadCall {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id().cmp(&other.id())
    }
}

impl CallNameTotals {
    /// Whether there is a call.
    pub(super) fn is_any(&self) -> bool {
        self.figures.count > 0 || self.others != Others::default()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.figures.add(&other.figures);
        self.errors += other.errors;
        self.others.add(&other.others);
        self.detail.add(&other.detail);
    }

    fn add_row(&mut self, row: &CallRow) {
        self.figures.add(&row.figures);
        self.errors += row.errors;
        self.others.add(&row.others());
        row.detail.iter().for_each(|detail| self.detail.add(detail));
    }
}

/// Names beyond these are looked for: there are about 500 system calls, and states from elsewhere may name any.
const NAMED: usize = 4096;

impl SyscallTotals {
    pub(super) fn new(wishes: &Wishes) -> Self {
        Self {
            named: Vec::new(),
            others: BTreeMap::new(),
            slow: Vec::new(),
            threads: Ranking::new(wishes.top),
            unknown: CallRows::default(),
            firsts: HashSet::new(),
            spare: Vec::new(),
            longest_ns: BinaryHeap::new(),
        }
    }

    /// Forgets the counts, but not the earlier lives.
    pub(super) fn forget(&mut self, wishes: &Wishes) {
        let Self { firsts, spare, .. } = std::mem::replace(self, Self::new(wishes));
        (self.firsts, self.spare) = (firsts, spare);
    }

    /// Gives a life that begins the memory of one that is over, which is in cache.
    #[inline]
    pub(super) fn lend(&mut self, rows: &mut CallRows) {
        if rows.rows.capacity() == 0
            && let Some(spare) = self.spare.pop()
        {
            rows.rows = spare;
        }
    }

    /// All calls of one name, or of one number.
    #[inline]
    pub(super) fn whole(&mut self, call: CallId) -> &mut CallNameTotals {
        match call.place() {
            Some(place) if place < NAMED => {
                if self.named.len() <= place {
                    self.named.resize_with(place + 1, CallNameTotals::default);
                }
                &mut self.named[place]
            }
            _ => self.others.entry(call).or_default(),
        }
    }

    /// All calls, by name.
    pub(super) fn calls(&self) -> impl Iterator<Item = (CallId, &CallNameTotals)> {
        let named = self.named.iter().enumerate().map(|(place, whole)| (CallId::at(place), whole));
        named.chain(self.others.iter().map(|(call, whole)| (*call, whole)))
    }

    /// Whether a call may be one of the slowest.
    #[inline]
    pub(super) fn is_slow(&mut self, limits: &CallLimits, ns: u64) -> bool {
        if limits.slow == 0 {
            return false;
        }
        if self.longest_ns.len() < limits.slow {
            self.longest_ns.push(Reverse(ns));
            return true;
        }
        let is_slow = self.longest_ns.peek().is_some_and(|shortest| ns >= shortest.0);
        if is_slow {
            self.longest_ns.pop();
            self.longest_ns.push(Reverse(ns));
        }
        is_slow
    }

    /// A life is over.
    pub(super) fn over(&mut self, limits: &CallLimits, wishes: &Wishes, life: LifeView<'_, CallRows>) {
        let LifeView { key, number, comm, pid, rows, .. } = life;
        if number == 0 {
            self.firsts.insert(key);
        }
        let who = ThreadLife { key, number, comm, pid };
        if !wishes.wants_thread(key.tid, || comm.text()) {
            rows.rows.clear();
            rows.slow.clear();
        }
        let mut all = std::mem::take(&mut rows.rows);
        for (call, row) in all.drain(..) {
            if limits.is_by_thread {
                self.whole(call).add_row(&row);
            }
            if key.tid <= 0 {
                self.unknown.row(call).add(&row);
            } else if row.is_any() {
                self.threads.push(row.figures.total, || ThreadCall { who, call, row });
            }
        }
        if self.spare.len() < SPARE {
            self.spare.push(all);
        }
        self.slow.extend(rows.slow.drain(..).map(|slow| (slow, who)));
        if self.slow.len() > limits.slow * 2 + CANDIDATES {
            shorten(limits, &mut self.slow);
        }
    }

    /// The slowest calls, the slowest first.
    pub(super) fn slowest(&self, limits: &CallLimits) -> Vec<(SlowCall, ThreadLife)> {
        let mut slow = self.slow.clone();
        shorten(limits, &mut slow);
        slow
    }

    /// Adds others, whose lives count from these numbers on.
    pub(super) fn add(&mut self, limits: &CallLimits, other: Self, bases: &Bases) {
        if self.named.len() < other.named.len() {
            self.named.resize_with(other.named.len(), CallNameTotals::default);
        }
        self.named.iter_mut().zip(&other.named).for_each(|(whole, more)| whole.add(more));
        for (call, whole) in &other.others {
            self.others.entry(*call).or_default().add(whole);
        }
        self.threads.merge_changed(other.threads, |thread| thread.who.rebase(bases));
        self.slow.extend(other.slow.into_iter().map(|(slow, mut who)| {
            who.rebase(bases);
            (slow, who)
        }));
        shorten(limits, &mut self.slow);
    }
}
