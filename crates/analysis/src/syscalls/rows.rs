//! What is counted of calls: for each thread little, for each call everything, and the slowest ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use super::Limits;
use crate::calls::{CallId, Entry, Exit, Figures, Outcome, Place, Rows};
use crate::threads::ThreadKey;
use crate::{Histogram, Merge};

/// Calls of a run, or of a thread's life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRows {
    /// By call; in the order in which they were made first.
    rows: Vec<(CallId, CallRow)>,
    /// Candidates for the slowest ones.
    slow: Vec<Slow>,
}

/// A thread's calls of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRow {
    pub(super) figures: Figures,
    pub(super) errors: u64,
    /// If there are any; most calls are completed.
    others: Option<Box<Others>>,
    /// If only some threads are asked for.
    pub(super) detail: Option<Box<Detail>>,
}

/// Calls that are not completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    pub(super) began_before: u64,
    pub(super) child_returns: u64,
    pub(super) never_ended: u64,
    pub(super) lost_inside: u64,
}

/// How calls of one name are distributed, and what came of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    pub(super) latency_ns: Histogram,
    pub(super) errors: BTreeMap<u16, u64>,
}

/// A call that took long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slow {
    pub(super) ns: u64,
    /// Of two that took as long, the earlier one comes first.
    pub(super) begin: Reverse<Place>,
    pub(super) end: Place,
    pub(super) call: CallId,
    pub(super) ret: Option<i64>,
}

/// What is counted of all threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Calls with names, by their place among the names.
    named: Vec<Detail>,
    /// Calls without.
    others: BTreeMap<CallId, Detail>,
    /// The slowest ones and their threads; more of them than asked for.
    slow: Vec<(Slow, ThreadKey)>,
    /// How long the slowest ones took here: what is faster than all of them is none.
    #[serde(skip)]
    longest_ns: BinaryHeap<Reverse<u64>>,
}

impl CallRows {
    /// The row of a call.
    #[inline]
    fn row(&mut self, call: CallId) -> &mut CallRow {
        // Threads make few different calls, mostly one of the last.
        match self.rows.iter().rposition(|row| row.0 == call) {
            Some(at) => &mut self.rows[at].1,
            None => {
                if self.rows.len() == self.rows.capacity() {
                    // There are many threads that make one call only.
                    self.rows.reserve_exact(1 + self.rows.len() / 2);
                }
                self.rows.push((call, CallRow::default()));
                let last = self.rows.len() - 1;
                &mut self.rows[last].1
            }
        }
    }

    /// All rows.
    pub(super) fn rows(&self) -> &[(CallId, CallRow)] {
        &self.rows
    }

    /// Candidates for the slowest ones that were not given to the totals.
    pub(super) fn slow(&self) -> &[Slow] {
        &self.slow
    }
}

impl CallRow {
    /// Calls that are not completed.
    pub(super) fn others(&self) -> Others {
        self.others.as_deref().copied().unwrap_or_default()
    }

    fn others_mut(&mut self) -> &mut Others {
        self.others.get_or_insert_default()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.figures.add(&other.figures);
        self.errors += other.errors;
        if let Some(others) = &other.others {
            self.others.get_or_insert_default().add(others);
        }
        if let Some(detail) = &other.detail {
            self.detail.get_or_insert_default().add(detail);
        }
    }
}

impl Others {
    pub(super) fn add(&mut self, other: &Self) {
        self.began_before += other.began_before;
        self.child_returns += other.child_returns;
        self.never_ended += other.never_ended;
        self.lost_inside += other.lost_inside;
    }
}

impl Detail {
    pub(super) fn add(&mut self, other: &Self) {
        self.latency_ns.merge_from(&other.latency_ns);
        for (errno, count) in &other.errors {
            *self.errors.entry(*errno).or_default() += count;
        }
    }

    #[inline]
    fn record(&mut self, ns: u64, errno: Option<u16>) {
        self.latency_ns.record(ns);
        if let Some(errno) = errno {
            *self.errors.entry(errno).or_default() += 1;
        }
    }
}

impl Rows for CallRows {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn add(&mut self, later: Self) {
        for (call, row) in &later.rows {
            self.row(*call).add(row);
        }
        self.slow.extend(later.slow);
    }
}

impl Totals {
    #[inline]
    fn detail(&mut self, call: CallId) -> &mut Detail {
        match call.place() {
            Some(place) => {
                if self.named.len() <= place {
                    self.named.resize_with(place + 1, Detail::default);
                }
                &mut self.named[place]
            }
            None => self.others.entry(call).or_default(),
        }
    }

    /// What is known of a call.
    pub(super) fn of(&self, call: CallId) -> Option<&Detail> {
        call.place().map_or_else(|| self.others.get(&call), |place| self.named.get(place))
    }

    /// Whether a call may be one of the slowest.
    #[inline]
    fn is_slow(&mut self, limits: &Limits, ns: u64) -> bool {
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

    /// The slowest calls, the slowest first.
    pub(super) fn slowest(&self, limits: &Limits) -> Vec<(Slow, ThreadKey)> {
        let mut slow = self.slow.clone();
        shorten(limits, &mut slow);
        slow
    }

    /// Adds others.
    pub(super) fn add(&mut self, limits: &Limits, other: Self) {
        if self.named.len() < other.named.len() {
            self.named.resize_with(other.named.len(), Detail::default);
        }
        self.named.iter_mut().zip(&other.named).for_each(|(detail, more)| detail.add(more));
        for (call, detail) in &other.others {
            self.others.entry(*call).or_default().add(detail);
        }
        self.slow.extend(other.slow);
        shorten(limits, &mut self.slow);
    }
}

/// Leaves the slowest.
fn shorten<T: Ord>(limits: &Limits, slow: &mut Vec<T>) {
    slow.sort_unstable_by(|one, other| other.cmp(one));
    slow.truncate(limits.slow);
}

/// Room for candidates beyond those that are asked for.
const CANDIDATES: usize = 64;

/// Gives a run's candidates for the slowest calls to their thread.
pub(super) fn attribute(limits: &Limits, totals: &mut Totals, key: ThreadKey, rows: &mut CallRows) {
    if rows.slow.is_empty() {
        return;
    }
    if limits.is_by_thread {
        if rows.slow.len() > limits.slow + CANDIDATES {
            shorten(limits, &mut rows.slow);
        }
        return;
    }
    totals.slow.extend(rows.slow.drain(..).map(|slow| (slow, key)));
    if totals.slow.len() > limits.slow * 2 + CANDIDATES {
        shorten(limits, &mut totals.slow);
    }
}

/// The error that a call returns, if it does.
pub(crate) fn errno(ret: Option<i64>) -> Option<u16> {
    ret.filter(|ret| (-4095..=-1).contains(ret)).map(|ret| ret.unsigned_abs() as u16)
}

/// Counts what came of a call.
pub(super) fn settle(limits: &Limits, totals: &mut Totals, rows: &mut CallRows, outcome: Outcome<(), ()>) {
    let (call, cpu) = match &outcome {
        Outcome::Completed(_, exit) | Outcome::BeganBefore(exit) => (exit.call, exit.cpu),
        Outcome::Doubtful(_, exit) | Outcome::ChildReturns(exit) | Outcome::LostExit(exit) => (exit.call, exit.cpu),
        Outcome::LostEntry(entry) | Outcome::NeverEnded(entry) => (entry.call, entry.cpu),
    };
    if !limits.cpus.is_empty() && !limits.cpus.contains(&cpu) {
        return;
    }
    let others = match outcome {
        Outcome::Completed(entry, exit) => return completed(limits, totals, rows, &entry, &exit),
        // The exit may not say which call it is.
        Outcome::Doubtful(entry, _) => &mut rows.row(entry.call).others_mut().lost_inside,
        Outcome::LostEntry(_) | Outcome::LostExit(_) => &mut rows.row(call).others_mut().lost_inside,
        Outcome::BeganBefore(_) => &mut rows.row(call).others_mut().began_before,
        Outcome::ChildReturns(_) => &mut rows.row(call).others_mut().child_returns,
        Outcome::NeverEnded(_) => &mut rows.row(call).others_mut().never_ended,
    };
    *others += 1;
}

#[inline]
fn completed(limits: &Limits, totals: &mut Totals, rows: &mut CallRows, entry: &Entry<()>, exit: &Exit<()>) {
    let ns = entry.place.time.abs_diff(exit.place.time);
    if ns < limits.min_ns || ns > limits.max_ns {
        return;
    }
    let errno = errno(exit.ret);
    let row = rows.row(entry.call);
    row.figures.record(ns);
    row.errors += u64::from(errno.is_some());
    let is_slow = limits.is_by_thread || totals.is_slow(limits, ns);
    if limits.is_by_thread {
        row.detail.get_or_insert_default().record(ns, errno);
    } else {
        totals.detail(entry.call).record(ns, errno);
    }
    if is_slow {
        rows.slow.push(Slow { ns, begin: Reverse(entry.place), end: exit.place, call: entry.call, ret: exit.ret });
    }
}
